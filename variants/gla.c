/* variants/gla.c - gated linear attention: a decay for every token and key dimension, from a gate:
 *
 *     S_t = diag(sigmoid(gx_t)^(1/tau)) S_{t-1} + k_t v_t^T        h_t = scale S_t^T q_t
 *
 * A gate of -inf masks the token's dimension: nothing from before it is left. */
#include "variants/vector.h"

#include <math.h>

enum { GX = VECTOR_TILES, DGX = DGATE };
enum { TAU = 1 };

#define VARIANT gla
#define VARIANT_NAME "gla"
#define VARIANT_TITLE "gated linear attention: a decay of a key dimension"
#define VARIANT_ALIASES
#define GATE_TENSORS [GX] = {"gx", TG_IO, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_FORGET},
#define GATES                                                                                                          \
    TG_MAP_TO(TG_AT_KV(A), TG_MAX(TG_DIV(TG_LOGSIG2(TG_KV(GX)), TG_SCALAR(TAU)), TG_NUM(LEAST_LOG2))),
#define GRADIENT_TENSORS [DGX] = {"dgx", TG_IO, TG_OUT, {TG_T, TG_DQK}},
#define GATE_GRADIENTS                                                                                                 \
    TG_MAP_TO(TG_AT_KV(DGX), TG_DIV(TG_MUL(TG_SIGMOID(TG_NEG(TG_KV(GX))), TG_KV(DA)), TG_SCALAR(TAU))),
#define SCALARS {"tau", 16.0f}

static double gate(const tg_oracle_call *call, int64_t at)
{
    const double x = call->in[GX][at];
    return (fmin(x, 0) - log1p(exp(-fabs(x)))) / call->scalars[TAU];
}

static void gate_back(const tg_oracle_call *call, int64_t at, double da, double dk)
{
    (void)dk;
    if (call->out[DGX])
        call->out[DGX][at] = da / (1 + exp(call->in[GX][at])) / call->scalars[TAU];
}

#include "variants/vector.inc"
