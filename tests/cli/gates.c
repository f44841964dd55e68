/* tests/cli/gates.c - variants for `tegula --load` that go through what `check` compares with: one whose gradient of the
 * gate is wrong in the statements and, in the same way, in the oracle; one in which the oracle is right; and one without
 * an oracle. */
#include "variants/scalar.h"

#include <math.h>

enum { F = SCALAR_TILES, DF = DGATE };

#define VARIANT          wrong_twice
#define VARIANT_NAME     "wrong-twice"
#define VARIANT_TITLE    "retention with a forget gate, whose gradient is wrong"
#define GATE_TENSORS     [F] = {"f", TG_F32, TG_IN, {TG_T}, TG_DRAWN_FORGET},
#define LOG2_DECAY       TG_LOGSIG2(TG_KV(F))
#define GRADIENT_TENSORS [DF] = {"df", TG_F32, TG_OUT, {TG_T}},
#define GATE_GRADIENTS   /* sigmoid(f), which should be of -f */                                                       \
    TG_MAP_TO(TG_AT_KV(DF), TG_MUL(TG_KV(DA), TG_SIGMOID(TG_KV(F)))),

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    const double f = call->in[F][at.gate];
    *a = fmin(f, 0) - log1p(exp(-fabs(f)));
    *li = 0;
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    (void)dli;
    call->out[DF][at.gate] += da / (1 + exp(-call->in[F][at.gate]));
}

#include "variants/scalar.inc"

/* The gradient by sigmoid(-f) from that by sigmoid(f). */
static void right_backward(const tg_oracle_call *call)
{
    oracle_backward(call);
    for (int64_t i = 0; i < call->batch * call->heads * call->tokens; i++)
        call->out[DF][i] *= exp(-call->in[F][i]);
}

static const tg_variant wrong_once_backward = {
    TG_HEADER(tg_variant),           .name = "wrong-once-backward",
    .aliases = no_aliases,           .algorithm = &BACKWARD_ALGORITHM,
    .schedules = tg_scalar_backward, .oracle = right_backward,
};
static const tg_variant wrong_once = {
    TG_HEADER(tg_variant),
    .name = "wrong-once",
    .aliases = no_aliases,
    .algorithm = &FORWARD_ALGORITHM,
    .schedules = tg_scalar_forward,
    .oracle = oracle,
    .backward = &wrong_once_backward,
};
static const tg_variant bare_backward = {
    TG_HEADER(tg_variant),           .name = "bare-backward", .aliases = no_aliases, .algorithm = &BACKWARD_ALGORITHM,
    .schedules = tg_scalar_backward,
};
static const tg_variant bare = {
    TG_HEADER(tg_variant),          .name = "bare",
    .aliases = no_aliases,          .algorithm = &FORWARD_ALGORITHM,
    .schedules = tg_scalar_forward, .backward = &bare_backward,
};

TG_API const tg_variant *const tg_variants[] = {&tg_wrong_twice, &wrong_once, &bare, NULL};
