/* variants/hgrn2.c - HGRN2 (arXiv 2404.07904): what a key dimension forgets is its key:
 *
 *     lambda_t = gamma + (1 - gamma) sigmoid(gx_t)
 *     S_t = diag(lambda_t) S_{t-1} + (1 - lambda_t) v_t^T        h_t = scale S_t^T q_t
 *
 * k = (1 - gamma) sigmoid(-gx), which is 1 - lambda without its cancellation. */
#include "variants/vector.h"

#include <math.h>

enum { GX = VECTOR_TILES, RATIO, DGX = DGATE };
enum { GAMMA = 1 };

#define VARIANT hgrn2
#define VARIANT_NAME "hgrn2"
#define VARIANT_TITLE "HGRN2: keys are what is forgotten"
#define VARIANT_ALIASES
#define SCALARS {"gamma", 0},
#define REST TG_SUB(TG_NUM(1), TG_SCALAR(GAMMA))
#define LAMBDA(x) TG_ADD(TG_MUL(x, REST), TG_SCALAR(GAMMA))
#define KEY_TENSOR [K] = {"k", TG_IO, 0, {TG_T, TG_DQK}}, [MADE_K] = {"kx", TG_F32, 0, {TG_T, TG_DQK}},
#define KEY_GRADIENT_TENSOR
#define KEY_GRADIENT(...)
#define GATE_TENSORS [GX] = {"gx", TG_F32, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_FORGET},
#define GATES                                                                                                          \
    TG_MAP_TO(TG_AT_KV(A), TG_MAX(TG_LOG2(LAMBDA(TG_SIGMOID(TG_KV(GX)))), TG_NUM(LEAST_LOG2))),                        \
    TG_MAP_TO(TG_AT_KV(MADE_K), TG_MUL(TG_SIGMOID(TG_NEG(TG_KV(GX))), REST)),                                          \
    TG_MAP_TO(TG_AT_KV(K), TG_KV(MADE_K)),
#define GRADIENT_TENSORS [DGX] = {"dgx", TG_F32, TG_OUT, {TG_T, TG_DQK}}, [RATIO] = {"ratio", TG_F32, 0, {TG_T, TG_DQK}},
/* d lambda = k sigmoid(gx) dgx, so d log lambda has sigmoid(gx) / lambda, which is 1 where both are next to nothing */
#define SHARE TG_MAX(TG_SIGMOID(TG_KV(GX)), TG_NUM(1e-37f))
#define GATE_GRADIENTS                                                                                                 \
    TG_MAP_TO(TG_AT_KV(RATIO), TG_DIV(SHARE, LAMBDA(SHARE))),                                                          \
    TG_MAP_TO(TG_AT_KV(DGX), TG_SUB(TG_MUL(TG_MUL(TG_KV(DA), TG_KV(MADE_K)), TG_KV(RATIO)),                            \
                                    TG_MUL(TG_KV(KDK), TG_SIGMOID(TG_KV(GX))))),

static double key(const tg_oracle_call *call, int64_t at)
{
    return (1 - call->scalars[GAMMA]) / (1 + exp(call->in[GX][at]));
}

static double gate(const tg_oracle_call *call, int64_t at)
{
    const double x = call->in[GX][at], gamma = call->scalars[GAMMA];
    return gamma > 0 ? log(gamma + (1 - gamma) / (1 + exp(-x))) : fmin(x, 0) - log1p(exp(-fabs(x)));
}

static void gate_back(const tg_oracle_call *call, int64_t at, double da, double dk)
{
    const double gamma = call->scalars[GAMMA], rises = 1 / (1 + exp(-call->in[GX][at]));
    const double by_log = gamma > 0 ? rises / (gamma + (1 - gamma) * rises) : 1;
    if (call->out[DGX])
        call->out[DGX][at] = key(call, at) * (da * by_log - dk * rises);
}

#define MADE_KEY key

#include "variants/vector.inc"
