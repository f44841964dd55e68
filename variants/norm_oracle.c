/* variants/norm_oracle.c - norms and their gradients in fp64, row by row (norm.h). */
#include "variants/norm.h"
#include "variants/oracle_head.h"

#include <math.h>

/* A row of a tensor [.., T, dhv]; NULL of one that is absent. */
struct row {
    const double *x, *z, *dh, *weight; /* weight: of the head */
    double *h, *dx, *dz, *dweight;
};

static const double *row_in(const tg_oracle_call *c, int tile, int64_t at)
{
    return c->in[tile] ? c->in[tile] + at * c->dhv : NULL;
}
static double *row_out(const tg_oracle_call *c, int tile, int64_t at)
{
    return c->out[tile] ? c->out[tile] + at * c->dhv : NULL;
}

static double weight_of(const struct row *row, int64_t i)
{
    return row->weight ? row->weight[i] : 1;
}

/* The gate's activation, and its derivative by z. */
static double activation(const struct row *row, enum norm_gate gate, int64_t i, double *slope)
{
    *slope = 0;
    if (gate == NORM_NO_GATE)
        return 1;
    const double z = row->z[i], s = 1 / (1 + exp(-z)), left = 1 / (1 + exp(z)); /* 1 - s loses digits */
    *slope = gate == NORM_SILU ? s * (1 + z * left) : s * left;
    return gate == NORM_SILU ? z * s : s;
}

static double factor_of(const tg_oracle_call *c, const struct row *row)
{
    double sum = 0;
    for (int64_t i = 0; i < c->dhv; i++)
        sum += row->x[i] * row->x[i];
    return 1 / sqrt(sum / (double)c->dhv + c->scalars[EPS]);
}

static void forward(const tg_oracle_call *c, const struct row *row, enum norm_gate gate)
{
    const double r = factor_of(c, row);
    double slope;
    for (int64_t i = 0; row->h && i < c->dhv; i++)
        row->h[i] = row->x[i] * r * weight_of(row, i) * activation(row, gate, i, &slope);
}

static void backward(const tg_oracle_call *c, const struct row *row, enum norm_gate gate)
{
    const double r = factor_of(c, row);
    double along = 0, slope;
    for (int64_t i = 0; i < c->dhv; i++)
        along += row->x[i] * r * row->dh[i] * activation(row, gate, i, &slope) * weight_of(row, i);
    for (int64_t i = 0; i < c->dhv; i++) {
        const double unit = row->x[i] * r, dy = row->dh[i] * activation(row, gate, i, &slope);
        if (row->dx)
            row->dx[i] = r * (dy * weight_of(row, i) - unit * along / (double)c->dhv);
        if (row->dz)
            row->dz[i] = row->dh[i] * unit * weight_of(row, i) * slope;
        if (row->dweight)
            row->dweight[i] += dy * unit;
    }
}

static void each_row(const tg_oracle_call *c, enum norm_gate gate,
                     void (*visit)(const tg_oracle_call *, const struct row *, enum norm_gate), int has_gradients)
{
    for (int64_t i = 0; i < c->batch * c->heads; i++) {
        const struct oracle_head at = oracle_head(c, i);
        const int64_t group = at.head / c->group;
        for (int64_t t = at.first; t < at.first + at.tokens; t++) {
            struct row row = {.x = row_in(c, X, t), .z = row_in(c, Z, t), .weight = row_in(c, WEIGHT, group)};
            if (has_gradients) {
                row.dh = row_in(c, DH, t);
                row.dx = row_out(c, DX, t);
                row.dz = row_out(c, DZ, t);
                row.dweight = row_out(c, DWEIGHT, group);
            } else {
                row.h = row_out(c, H, t);
            }
            visit(c, &row, gate);
        }
    }
}

void tg_norm_oracle(const tg_oracle_call *call, enum norm_gate gate)
{
    each_row(call, gate, forward, 0);
}

void tg_norm_oracle_backward(const tg_oracle_call *call, enum norm_gate gate)
{
    for (int64_t i = 0; call->out[DWEIGHT] && i < call->heads / call->group * call->dhv; i++)
        call->out[DWEIGHT][i] = 0;
    each_row(call, gate, backward, 1);
}
