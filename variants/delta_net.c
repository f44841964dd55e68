/* variants/delta_net.c - DeltaNet: no decay:
 *
 *     S_t = S_{t-1} + beta_t k_t (v_t - S_{t-1}^T k_t)^T        h_t = scale S_t^T q_t */
#include "variants/delta.h"

#define VARIANT delta_net
#define VARIANT_NAME "delta-net"
#define VARIANT_TITLE "DeltaNet: the delta rule without a decay"
#define VARIANT_ALIASES "delta",
#define UNGATED
#define LOG2_DECAY TG_NUM(0)
#define GATES
#define GATE_TENSORS
#define DECAY(...)
#define GATE_GRADIENT_TENSORS
#define GATE_GRADIENTS

#define FINAL_STATE(tile) 0

static const struct delta_oracle how = {0};

#include "variants/delta.inc"
