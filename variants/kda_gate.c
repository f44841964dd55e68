/* variants/kda_gate.c - KDA as Kimi Linear has it, with all of its operands made in the kernel (kda.h):
 *
 *     g_t = -e^{A_log} softplus(g_raw_t + dt_bias) */
#include "variants/kda.h"

#define VARIANT kda_gate
#define VARIANT_NAME "kda-gate"
#define VARIANT_TITLE "KDA with unit rows of q and k, sigmoid(beta) and a softplus gate"
#define VARIANT_ALIASES "kda_full",
#define SCALARS
#define LOG_DECAY TG_MUL(TG_SOFTPLUS(TG_KV(SHIFTED)), TG_NEG(TG_TILE(RATE)))
#define LOG2_DECAY TG_MUL(LOG_DECAY, TG_NUM(LOG2_E))
#define SLOPE_OF_GATE TG_MUL(TG_SIGMOID(TG_KV(SHIFTED)), TG_NEG(TG_TILE(RATE)))
#define RATE_GRADIENT TG_MUL(TG_KV(DA), LOG_DECAY)

static const struct delta_oracle how = {
    .log_decay = A, .dlog_decay = DA, .of_channel = true, .unit_rows = true, .sigmoid_beta = true, .gate = tg_softplus_gate};

#include "variants/kda_gate.inc"
