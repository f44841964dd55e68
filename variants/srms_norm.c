/* variants/srms_norm.c - SRMSNorm: a root-mean-square norm without weights. */
#include "variants/norm.h"

#define VARIANT srms_norm
#define VARIANT_NAME "srms-norm"
#define VARIANT_TITLE "SRMSNorm: a root-mean-square norm without weights"

#include "variants/norm.inc"
