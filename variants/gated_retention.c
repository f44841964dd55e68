/* variants/gated_retention.c - gated retention (YOCO): a forget gate with a temperature,
 *
 *     S_t = sigmoid(f_t)^(1/tau) S_{t-1} + k_t v_t^T        h_t = scale S_t^T q_t */
#include "variants/scalar.h"

#include <math.h>

enum { F = SCALAR_TILES, DF = DGATE };
enum { TAU = 1 };

#define VARIANT gated_retention
#define VARIANT_NAME "gated-retention"
#define VARIANT_TITLE "gated retention: forget gate with temperature"
#define VARIANT_ALIASES "gret",
#define SCALARS {"tau", 16}
#define GATE_TENSORS [F] = {"f", TG_F32, TG_IN, {TG_T}, TG_DRAWN_FORGET},
#define LOG2_DECAY TG_DIV(TG_LOGSIG2(TG_KV(F)), TG_SCALAR(TAU))
#define GRADIENT_TENSORS [DF] = {"df", TG_F32, TG_OUT, {TG_T}},
#define GATE_GRADIENTS                                                                                                 \
    TG_MAP_TO(TG_AT_KV(DF), TG_DIV(TG_MUL(TG_KV(DA), TG_SIGMOID(TG_NEG(TG_KV(F)))), TG_SCALAR(TAU))),

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    const double f = call->in[F][at.gate];
    *a = (fmin(f, 0) - log1p(exp(-fabs(f)))) / call->scalars[TAU];
    *li = 0;
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    (void)dli;
    call->out[DF][at.gate] += da / (1 + exp(call->in[F][at.gate])) / call->scalars[TAU];
}

#include "variants/scalar.inc"
