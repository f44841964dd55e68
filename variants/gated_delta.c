/* variants/gated_delta.c - Gated DeltaNet: a log decay for every token and head (reference 6.1):
 *
 *     S_t = e^{a_t} S_{t-1} + beta_t k_t (v_t - e^{a_t} S_{t-1}^T k_t)^T        h_t = scale S_t^T q_t */
#include "variants/delta.h"

enum { LOG_A = DELTA_TILES };

#define VARIANT gated_delta
#define VARIANT_NAME "gated-delta"
#define VARIANT_TITLE "Gated DeltaNet: the delta rule with a log decay of a token (reference 6)"
#define VARIANT_ALIASES "gdn",
/* A decay of 2^-150 and less is none in fp32; a sum with -infinity in it would be of no use for the tokens behind. */
#define LOG2_DECAY TG_MAX(TG_MUL(TG_KV(LOG_A), TG_NUM(LOG2_E)), TG_NUM(-1e30f))
#define GATE_TENSORS [LOG_A] = {"a", TG_F32, TG_IN, {TG_T}},
#define DECAY(...) __VA_ARGS__

#define FINAL_STATE SF

static const struct delta_oracle how = {.log_decay = LOG_A, .dlog_decay = DA};

#include "variants/delta.inc"
