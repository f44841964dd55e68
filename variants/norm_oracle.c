/* variants/norm_oracle.c - norms and their gradients in fp64, row by row (norm.h). */
#include "variants/norm.h"
#include "variants/oracle_head.h"

#include <math.h>

/* The rows that have one mean: of a head, or of all heads of a group, whose rows of a token lie a head apart. */
struct rows {
    const tg_oracle_call *call;
    enum norm_gate gate;
    int64_t first, apart, n; /* row of the first in a tensor [B, NH, T, dhv], to the next, and how many */
    int64_t weights, weights_apart;
};

/* An element of them. */
struct element {
    int64_t at, weight; /* in tensors of tokens, and in the weights */
};

static struct element element_of(const struct rows *r, int64_t row, int64_t i)
{
    const int64_t dhv = r->call->dhv;
    return (struct element){(r->first + row * r->apart) * dhv + i, (r->weights + row * r->weights_apart) * dhv + i};
}

static double weight_of(const struct rows *r, struct element e)
{
    return r->call->in[WEIGHT] ? r->call->in[WEIGHT][e.weight] : 1;
}

/* The gate's activation, and its derivative by z. */
static double activation(const struct rows *r, struct element e, double *slope)
{
    *slope = 0;
    if (r->gate == NORM_NO_GATE)
        return 1;
    const double z = r->call->in[Z][e.at], s = 1 / (1 + exp(-z)), left = 1 / (1 + exp(z)); /* 1 - s loses digits */
    *slope = r->gate == NORM_SILU ? s * (1 + z * left) : s * left;
    return r->gate == NORM_SILU ? z * s : s;
}

static double factor_of(const struct rows *r)
{
    double sum = 0;
    for (int64_t row = 0; row < r->n; row++)
        for (int64_t i = 0; i < r->call->dhv; i++) {
            const double x = r->call->in[X][element_of(r, row, i).at];
            sum += x * x;
        }
    return 1 / sqrt(sum / (double)(r->n * r->call->dhv) + r->call->scalars[EPS]);
}

static void forward(const struct rows *r)
{
    const double factor = factor_of(r);
    double slope;
    for (int64_t row = 0; r->call->out[H] && row < r->n; row++)
        for (int64_t i = 0; i < r->call->dhv; i++) {
            const struct element e = element_of(r, row, i);
            r->call->out[H][e.at] = r->call->in[X][e.at] * factor * weight_of(r, e) * activation(r, e, &slope);
        }
}

/* The gradient of the normalised rows, times these, over all of them. */
static double along_of(const struct rows *r, double factor)
{
    double along = 0, slope;
    for (int64_t row = 0; row < r->n; row++)
        for (int64_t i = 0; i < r->call->dhv; i++) {
            const struct element e = element_of(r, row, i);
            along += r->call->in[X][e.at] * factor * r->call->in[DH][e.at] * activation(r, e, &slope) * weight_of(r, e);
        }
    return along;
}

static void backward(const struct rows *r)
{
    const double factor = factor_of(r), along = along_of(r, factor) / (double)(r->n * r->call->dhv);
    double *const *out = r->call->out, slope;
    for (int64_t row = 0; row < r->n; row++)
        for (int64_t i = 0; i < r->call->dhv; i++) {
            const struct element e = element_of(r, row, i);
            const double unit = r->call->in[X][e.at] * factor, dh = r->call->in[DH][e.at],
                         dy = dh * activation(r, e, &slope);
            if (out[DX])
                out[DX][e.at] = factor * (dy * weight_of(r, e) - unit * along);
            if (out[DZ])
                out[DZ][e.at] = dh * unit * weight_of(r, e) * slope;
            if (out[DWEIGHT])
                out[DWEIGHT][e.weight] += dy * unit;
        }
}

static void each(const tg_oracle_call *c, enum norm_gate gate, bool over_group, void (*visit)(const struct rows *))
{
    const int64_t heads = over_group ? c->group : 1;
    for (int64_t i = 0; i < c->batch * c->heads; i += heads) {
        const struct oracle_head at = oracle_head(c, i);
        for (int64_t t = at.first; t < at.first + at.tokens; t++)
            visit(&(struct rows){.call = c,
                                 .gate = gate,
                                 .first = t,
                                 .apart = c->tokens,
                                 .n = heads,
                                 .weights = over_group ? at.head : at.head / c->group,
                                 .weights_apart = 1});
    }
}

void tg_norm_oracle(const tg_oracle_call *call, enum norm_gate gate, bool over_group)
{
    each(call, gate, over_group, forward);
}

void tg_norm_oracle_backward(const tg_oracle_call *call, enum norm_gate gate, bool over_group)
{
    const int64_t weights = over_group ? call->heads : call->heads / call->group;
    for (int64_t i = 0; call->out[DWEIGHT] && i < weights * call->dhv; i++)
        call->out[DWEIGHT][i] = 0;
    each(call, gate, over_group, backward);
}
