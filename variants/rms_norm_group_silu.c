/* variants/rms_norm_group_silu.c - RMSNorm over all heads of a group, and an output gate, SiLU of z. */
#include "variants/norm.h"

#define VARIANT rms_norm_group_silu
#define VARIANT_NAME "rms-norm-group-silu"
#define VARIANT_TITLE "RMSNorm over all heads of a group, and an output gate, SiLU of z"
#define OVER_GROUP
#define WEIGHTED
#define GATED NORM_SILU
#define ACTIVATION TG_MUL(TG_KV(Z), TG_KV(GATE))
/* s (1 + z (1 - s)) */
#define SLOPE_OF_GATE TG_MUL(TG_KV(GATE), TG_ADD(TG_NUM(1), TG_MUL(TG_KV(Z), TG_SIGMOID(TG_NEG(TG_KV(Z))))))

#include "variants/norm.inc"
