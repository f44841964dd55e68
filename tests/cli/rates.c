/* tests/cli/rates.c - variants for `tegula --load` whose random inputs no name would tell: a_t = -softplus(x_t) r, with a rate
 * r of each head that must not be negative. DRAWN says how r is drawn; one that is normal makes states grow. */
#include "variants/scalar.h"

#include <math.h>

enum { TG_DRAWN_ODD = 99 };
enum { XG = SCALAR_TILES, RATE, SPEED, DX = DGATE };

#define VARIANT       rates
#define VARIANT_NAME  "rates"
#define VARIANT_TITLE "retention whose heads forget at rates of their own"
#define GATE_TENSORS                                                                                                   \
    [XG] = {"x", TG_F32, TG_IN, {TG_T}}, [RATE] = {"r", TG_F32, TG_IN | TG_NO_BATCH, {0}, DRAWN},                      \
    [SPEED] = {"speed", TG_F32, TG_NO_BATCH, {0}},
#define GATES            TG_MAP_TO(SPEED, TG_NEG(TG_TILE(RATE))),
#define LOG2_DECAY       TG_MUL(TG_MUL(TG_SOFTPLUS(TG_KV(XG)), TG_TILE(SPEED)), TG_NUM(LOG2_E))
#define GRADIENT_TENSORS [DX] = {"dx", TG_F32, TG_OUT, {TG_T}},
#define GATE_GRADIENTS   TG_MAP_TO(TG_AT_KV(DX), TG_MUL(TG_MUL(TG_KV(DA), TG_TILE(SPEED)), TG_SIGMOID(TG_KV(XG)))),

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    const double x = call->in[XG][at.gate];
    *a = -call->in[RATE][at.head] * (fmax(x, 0) + log1p(exp(-fabs(x))));
    *li = 0;
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    (void)dli;
    call->out[DX][at.gate] -= da * call->in[RATE][at.head] / (1 + exp(-call->in[XG][at.gate]));
}

#include "variants/scalar.inc"

TG_API const tg_variant *const tg_variants[] = {&tg_rates, NULL};
