/* variants/gated_delta.c - Gated DeltaNet: a log decay for every token and head:
 *
 *     S_t = e^{a_t} S_{t-1} + beta_t k_t (v_t - e^{a_t} S_{t-1}^T k_t)^T        h_t = scale S_t^T q_t */
#include "variants/delta.h"

#define VARIANT gated_delta
#define VARIANT_NAME "gated-delta"
#define VARIANT_TITLE "Gated DeltaNet: the delta rule with a log decay of a token"
#define VARIANT_ALIASES "gdn",
#include "variants/delta_given.inc"

static const struct delta_oracle how = {.log_decay = LOG_A, .dlog_decay = DA};

#include "variants/delta.inc"
