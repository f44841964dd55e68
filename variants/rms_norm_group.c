/* variants/rms_norm_group.c - RMSNorm over all heads of a group. */
#include "variants/norm.h"

#define VARIANT rms_norm_group
#define VARIANT_NAME "rms-norm-group"
#define VARIANT_TITLE "RMSNorm over all heads of a group"
#define OVER_GROUP
#define WEIGHTED

#include "variants/norm.inc"
