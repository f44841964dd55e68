/* variants/mlstm_gates.h - what the mLSTMs share: a forget and an input gate, pre-activations. */
#ifndef TEGULA_MLSTM_GATES_H
#define TEGULA_MLSTM_GATES_H

#include "scalar.h"

#include <math.h>

enum {
    F = SCALAR_TILES, /* forget gate [T] */
    I,                /* input gate [T] */
    DF = DGATE,
    DI
};
enum { EPS = 1, EXACT = 2 }; /* scalars of the normalised ones */

#define GATE_TENSORS                                                                                                   \
    [F] = {"f", TG_F32, TG_IN, {TG_T}, TG_DRAWN_FORGET}, [I] = {"i", TG_F32, TG_IN, {TG_T}, INPUT_DRAWN},
#define LOG2_DECAY TG_LOGSIG2(TG_KV(F))
#define GRADIENT_TENSORS [DF] = {"df", TG_F32, TG_OUT, {TG_T}}, [DI] = {"di", TG_F32, TG_OUT, {TG_T}},
#define GATE_GRADIENTS                                                                                                 \
    TG_MAP_TO(TG_AT_KV(DF), TG_MUL(TG_KV(DA), TG_SIGMOID(TG_NEG(TG_KV(F))))),                                          \
    TG_MAP_TO(TG_AT_KV(DI), INPUT_GRADIENT(TG_KV(DLI))),

static inline double log_sigmoid(double x)
{
    return fmin(x, 0) - log1p(exp(-fabs(x)));
}

#endif
