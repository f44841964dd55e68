/* variants/simple_gla.c - simple gated linear attention: a log decay for every token and head:
 *
 *     S_t = e^{a_t} S_{t-1} + k_t v_t^T        h_t = scale S_t^T q_t */
#include "variants/scalar.h"

enum { LOG_A = SCALAR_TILES, DLOG_A = DGATE };

#define VARIANT simple_gla
#define VARIANT_NAME "simple-gla"
#define VARIANT_TITLE "simple GLA: log decay of a token given"
#define VARIANT_ALIASES "sgla", "sgla_varlen",
#define GATE_TENSORS [LOG_A] = {"a", TG_F32, TG_IN, {TG_T}, TG_DRAWN_LOG_DECAY},
#define LOG2_DECAY TG_MUL(TG_KV(LOG_A), TG_NUM(LOG2_E))
#define GRADIENT_TENSORS [DLOG_A] = {"da", TG_F32, TG_OUT, {TG_T}},
#define GATE_GRADIENTS TG_MAP_TO(TG_AT_KV(DLOG_A), TG_KV(DA)),

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    *a = call->in[LOG_A][at.gate];
    *li = 0;
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    (void)dli;
    call->out[DLOG_A][at.gate] += da;
}

#include "variants/scalar.inc"
