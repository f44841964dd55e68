/* variants/srms_norm_group.c - SRMSNorm over all heads of a group. */
#include "variants/norm.h"

#define VARIANT srms_norm_group
#define VARIANT_NAME "srms-norm-group"
#define VARIANT_TITLE "SRMSNorm over all heads of a group"
#define OVER_GROUP

#include "variants/norm.inc"
