/* variants/rms_norm_sigmoid.c - RMSNorm and an output gate, sigmoid of z. */
#include "variants/norm.h"

#define VARIANT rms_norm_sigmoid
#define VARIANT_NAME "rms-norm-sigmoid"
#define VARIANT_TITLE "RMSNorm and an output gate, sigmoid of z"
#define WEIGHTED
#define GATED NORM_SIGMOID
#define ACTIVATION TG_KV(GATE)
#define SLOPE_OF_GATE TG_MUL(TG_KV(GATE), TG_SIGMOID(TG_NEG(TG_KV(Z))))

#include "variants/norm.inc"
