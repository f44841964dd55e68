/* variants/rms_norm.c - RMSNorm: a root-mean-square norm with weights. */
#include "variants/norm.h"

#define VARIANT rms_norm
#define VARIANT_NAME "rms-norm"
#define VARIANT_TITLE "RMSNorm: a root-mean-square norm with weights"
#define WEIGHTED

#include "variants/norm.inc"
