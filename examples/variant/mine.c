/* examples/variant/mine.c - a variant of your own. Gated retention in which every head learns how
 * fast it forgets:
 *
 *     a_t = e^{log_rate_h} log sigmoid(f_t)
 *     S_t = e^{a_t} S_{t-1} + k_t v_t^T           h_t = scale S_t^T q_t
 *
 *     cc -std=c11 -shared -fPIC -Ibuild/include examples/variant/mine.c variants/scalar_oracle.c -lm -o build/variant.so
 *
 * LOG2_DECAY is a token's log decay (base 2), GATES are the statements of what it reads beside the
 * inputs, those of GATE_GRADIENTS take its gradient DA (natural log) to the inputs. There is no
 * input gate (LOG2_INPUT). gate and gate_back say the same in fp64, for `check`. All the rest is
 * the family's (variants/scalar.inc). */
#include <tegula/variants/scalar.h>

#include <math.h>

enum { F = SCALAR_TILES, LOG_RATE, RATE, TOKEN, DF = DGATE, DLOG_RATE = DPARAMETER, CHUNK = CHUNK_SUM };

#define VARIANT paced_retention
#define VARIANT_NAME "paced-retention"
#define VARIANT_TITLE "retention with a forget gate and a learned rate of the head (example)"
#define GATE_TENSORS                                                                               \
    [F] = {"f", TG_F32, TG_IN, {TG_T}, TG_DRAWN_FORGET},                                           \
    [RATE] = {"rate", TG_F32, TG_NO_BATCH, {0}},                                                   \
    [LOG_RATE] = {"log_rate", TG_F32, TG_IN | TG_NO_BATCH, {0}},
#define GATES TG_MAP_TO(RATE, TG_EXP2(TG_MUL(TG_TILE(LOG_RATE), TG_NUM(LOG2_E)))),
#define LOG2_DECAY TG_MUL(TG_LOGSIG2(TG_KV(F)), TG_TILE(RATE))
/* df = da rate sigmoid(-f); dlog_rate = sum of da a, over the tokens of a chunk, then over all. */
#define GRADIENT_TENSORS                                                                           \
    [DF] = {"df", TG_F32, TG_OUT, {TG_T}}, [TOKEN] = {"da_a", TG_F32, 0, {TG_T}},                  \
    [CHUNK] = {"sum_da_a", TG_F32, 0, {TG_CHUNK}},                                                 \
    [DLOG_RATE] = {"dlog_rate", TG_F32, TG_OUT | TG_NO_BATCH, {0}},
#define GATE_GRADIENTS                                                                             \
    TG_MAP_TO(TG_AT_KV(DF), TG_MUL(TG_MUL(TG_KV(DA), TG_TILE(RATE)),                               \
                                   TG_SIGMOID(TG_NEG(TG_KV(F))))),                                 \
    TG_MAP_TO(TG_AT_KV(TOKEN), TG_MUL(TG_KV(DA), TG_MUL(TG_KV(A), TG_NUM(LN_2)))),                 \
    TG_TOTAL_TO(CHUNK, TG_AT_KV(TOKEN)), TG_TOTAL_TO(DLOG_RATE, CHUNK),

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    const double f = call->in[F][at.gate], rate = exp(call->in[LOG_RATE][at.head]);
    *a = rate * (fmin(f, 0) - log1p(exp(-fabs(f))));
    *li = 0;
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    double a, rate = exp(call->in[LOG_RATE][at.head]);
    gate(call, at, &a, &dli); /* dli is no input's */
    call->out[DF][at.gate] += da * rate / (1 + exp(call->in[F][at.gate]));
    call->out[DLOG_RATE][at.head] += da * a;
}

#include <tegula/variants/scalar.inc>
/* What --load looks for. */
TG_API const tg_variant *const tg_variants[] = {&tg_paced_retention, NULL};
