/* variants/kda_safe.c - KDA with a gate that is bounded below, and all of its operands made in the kernel (kda.h):
 *
 *     g_t = lower_bound sigmoid(e^{A_log} (g_raw_t + dt_bias))        lower_bound < 0 */
#include "variants/kda.h"

#include <math.h>

#define VARIANT kda_safe
#define VARIANT_NAME "kda-safe"
#define VARIANT_TITLE "KDA with unit rows of q and k, sigmoid(beta) and a bounded gate"
#define VARIANT_ALIASES "kda_lb",
#define SCALARS {"lower_bound", -5}
#define STEEP TG_MUL(TG_KV(SHIFTED), TG_TILE(RATE))
#define LOG2_DECAY TG_MUL(TG_MUL(TG_SIGMOID(STEEP), TG_SCALAR(LOWER_BOUND)), TG_NUM(LOG2_E))
#define SLOPE_OF_GATE                                                                                                  \
    TG_MUL(TG_MUL(TG_SIGMOID(STEEP), TG_SIGMOID(TG_NEG(STEEP))), TG_MUL(TG_TILE(RATE), TG_SCALAR(LOWER_BOUND)))
#define RATE_GRADIENT TG_MUL(TG_KV(DSHIFTED), TG_KV(SHIFTED))

static double gate(const tg_oracle_call *call, double y, double rate, double *by_y, double *by_log)
{
    const double s = 1 / (1 + exp(-rate * y)), bound = call->scalars[LOWER_BOUND];
    *by_y = bound * s / (1 + exp(rate * y)) * rate;
    *by_log = *by_y * y;
    return bound * s;
}

static const struct delta_oracle how = {
    .log_decay = A, .dlog_decay = DA, .of_channel = true, .unit_rows = true, .sigmoid_beta = true, .gate = gate};

#include "variants/kda_gate.inc"
