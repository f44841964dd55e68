/* variants/srms_norm_silu.c - SRMSNorm and an output gate, SiLU of z. */
#include "variants/norm.h"

#define VARIANT srms_norm_silu
#define VARIANT_NAME "srms-norm-silu"
#define VARIANT_TITLE "SRMSNorm and an output gate, SiLU of z"
#define GATED NORM_SILU
#define ACTIVATION TG_MUL(TG_KV(Z), TG_KV(GATE))
/* s (1 + z (1 - s)) */
#define SLOPE_OF_GATE TG_MUL(TG_KV(GATE), TG_ADD(TG_NUM(1), TG_MUL(TG_KV(Z), TG_SIGMOID(TG_NEG(TG_KV(Z))))))

#include "variants/norm.inc"
