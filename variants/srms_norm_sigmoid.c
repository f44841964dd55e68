/* variants/srms_norm_sigmoid.c - SRMSNorm and an output gate, sigmoid of z. */
#include "variants/norm.h"

#define VARIANT srms_norm_sigmoid
#define VARIANT_NAME "srms-norm-sigmoid"
#define VARIANT_TITLE "SRMSNorm and an output gate, sigmoid of z"
#define GATED NORM_SIGMOID
#define ACTIVATION TG_KV(GATE)
#define SLOPE_OF_GATE TG_MUL(TG_KV(GATE), TG_SIGMOID(TG_NEG(TG_KV(Z))))

#include "variants/norm.inc"
