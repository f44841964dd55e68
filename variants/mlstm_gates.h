/* variants/mlstm_gates.h - what the mLSTMs share: a forget and an input gate, pre-activations. */
#ifndef TEGULA_MLSTM_GATES_H
#define TEGULA_MLSTM_GATES_H

#include "variants/scalar.h"

#include <math.h>

enum {
    F = SCALAR_TILES, /* forget gate [T] */
    I,                /* input gate [T] */
    DF, DI
};
enum { EPS = 1, EXACT = 2 }; /* scalars of the normalised ones */

#define GATE_TENSORS [F] = {"f", TG_F32, TG_IN, {TG_T}}, [I] = {"i", TG_F32, TG_IN, {TG_T}},
#define GATES                                                                                                          \
    TG_MAP_TO(TG_AT_KV(A), TG_GET(TG_AT_KV(F)), TG_LOGSIG2), TG_MAP_TO(TG_AT_KV(LI), TG_GET(TG_AT_KV(I)), INPUT_GATE),
#define GRADIENT_TENSORS [DF] = {"df", TG_F32, TG_OUT, {TG_T}}, [DI] = {"di", TG_F32, TG_OUT, {TG_T}},
#define GATE_GRADIENTS                                                                                                 \
    TG_MAP_TO(TG_AT_KV(DF), TG_GET(TG_AT_KV(DA)), TG_GET(TG_AT_KV(F)), TG_NEG, TG_SIGMOID, TG_MUL),                     \
    TG_MAP_TO(TG_AT_KV(DI), TG_GET(TG_AT_KV(DLI)) INPUT_GRADIENT),
#define GRADIENT_OUTPUTS DF, DI,

static inline double log_sigmoid(double x)
{
    return fmin(x, 0) - log1p(exp(-fabs(x)));
}

#endif
