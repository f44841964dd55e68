/* variants/gated_delta_gate.c - Gated DeltaNet with all of its operands made in the kernel, as Qwen3-Next has them:
 *
 *     q, k = x / sqrt(|x|^2 + eps)      beta = beta_max sigmoid(x)      a_t = -e^{A_log} softplus(x + dt_bias) */
#include "variants/delta.h"

#define VARIANT gated_delta_gate
#define VARIANT_NAME "gated-delta-gate"
#define VARIANT_TITLE "Gated DeltaNet with unit rows of q and k, sigmoid(beta) and a softplus gate"
#define VARIANT_ALIASES
#define UNIT_ROWS
#define SIGMOID_BETA
#define PARAMETER(name_, flags_, drawn_) {name_, TG_F32, (flags_) | TG_NO_BATCH, {0}, drawn_}
#define LOG_DECAY TG_MUL(TG_SOFTPLUS(TG_KV(SHIFTED)), TG_NEG(TG_TILE(RATE)))
#define LOG2_DECAY TG_MAX(TG_MUL(LOG_DECAY, TG_NUM(LOG2_E)), TG_NUM(LEAST_LOG2))
#define GATES                                                                                                          \
    TG_MAP_TO(RATE, TG_EXP2(TG_MUL(TG_TILE(A_LOG), TG_NUM(LOG2_E)))),                                                  \
    TG_MAP_TO(TG_AT_KV(SHIFTED), TG_ADD(TG_KV(G_RAW), TG_TILE(DT_BIAS))),
#define GATE_TENSORS                                                                                                   \
    [G_RAW] = {"a_raw", TG_F32, TG_IN, {TG_T}, TG_DRAWN_STEP}, [A_LOG] = PARAMETER("A_log", TG_IN, TG_DRAWN_LOG_RATE),  \
    [DT_BIAS] = PARAMETER("dt_bias", TG_IN, TG_DRAWN_SMALL),                                                           \
    [SHIFTED] = {"shifted", TG_F32, 0, {TG_T}}, [RATE] = PARAMETER("rate", 0, 0),
#define DECAY(...) __VA_ARGS__
#define DECAY_OUT 0
#define GATE_GRADIENT_TENSORS                                                                                          \
    [DG_RAW] = {"da_raw", TG_F32, TG_OUT, {TG_T}}, [DA_LOG] = PARAMETER("dA_log", TG_OUT, 0),                             \
    [DDT_BIAS] = PARAMETER("ddt_bias", TG_OUT, 0), [DRATE] = {"drate", TG_F32, 0, {TG_T}},                                \
    [SUM_BIAS] = {"sum_bias", TG_F32, 0, {TG_CHUNK}}, [SUM_RATE] = {"sum_rate", TG_F32, 0, {TG_CHUNK}},
#define GATE_GRADIENTS                                                                                                 \
    TG_MAP_TO(TG_AT_KV(DG_RAW), TG_MUL(TG_KV(DA), TG_MUL(TG_SIGMOID(TG_KV(SHIFTED)), TG_NEG(TG_TILE(RATE))))),         \
    TG_MAP_TO(TG_AT_KV(DRATE), TG_MUL(TG_KV(DA), LOG_DECAY)),                                                          \
    TG_TOTAL_TO(SUM_BIAS, TG_AT_KV(DG_RAW)),                                                                           \
    TG_TOTAL_TO(SUM_RATE, TG_AT_KV(DRATE)),                                                                            \
    TG_TOTAL_TO(DDT_BIAS, SUM_BIAS),                                                                                   \
    TG_TOTAL_TO(DA_LOG, SUM_RATE),
#define FINAL_STATE(tile) (tile)

static const struct delta_oracle how = {
    .log_decay = A, .dlog_decay = DA, .unit_rows = true, .sigmoid_beta = true, .gate = tg_softplus_gate};

#include "variants/delta.inc"
