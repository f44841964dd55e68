/* variants/vector_decay.c - linear attention with a log decay for every token and key dimension, as it is given:
 *
 *     S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T        h_t = scale S_t^T q_t */
#include "variants/vector.h"

enum { G = VECTOR_TILES, DG = DGATE };

#define VARIANT vector_decay
#define VARIANT_NAME "vector-decay"
#define VARIANT_TITLE "linear attention with a log decay of a key dimension"
#define VARIANT_ALIASES
#define GATE_TENSORS [G] = {"g", TG_F32, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_LOG_DECAY},
#define GATES TG_MAP_TO(TG_AT_KV(A), TG_MAX(TG_MUL(TG_KV(G), TG_NUM(LOG2_E)), TG_NUM(LEAST_LOG2))),
#define GRADIENT_TENSORS [DG] = {"dg", TG_F32, TG_OUT, {TG_T, TG_DQK}},
#define GATE_GRADIENTS TG_MAP_TO(TG_AT_KV(DG), TG_KV(DA)),
#define SCALARS

static double gate(const tg_oracle_call *call, int64_t at)
{
    return call->in[G][at];
}

static void gate_back(const tg_oracle_call *call, int64_t at, double da, double dk)
{
    (void)dk;
    if (call->out[DG])
        call->out[DG][at] = da;
}

#include "variants/vector.inc"
