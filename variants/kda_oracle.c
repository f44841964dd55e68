/* variants/kda_oracle.c - KDA with operands that are made in the kernel (kda.h), in fp64: the operands, then the oracle of the
 * delta rule between them, then the chain rule. */
#include "variants/kda.h"
#include "variants/oracle_head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TILES = DDT_BIAS + 1 };

/* The call of the core: the caller's, but for operands and their gradients. */
struct made {
    const tg_oracle_call *call;
    const struct kda_oracle *how;
    int64_t keys, rows, gates; /* rows of q and k; of beta; elements of g */
    double *memory;
    double *q, *k, *beta, *g, *dq, *dk, *dbeta, *dg;
    const double *in[MOST_TILES];
    double *out[MOST_TILES];
    tg_oracle_call core;
};

/* The tile of g is one that the caller has no use for. */
static const struct delta_oracle core_oracle = {.log_decay = A, .dlog_decay = DA, .of_channel = true};

static bool allocate(struct made *m)
{
    const tg_oracle_call *c = m->call;
    const int64_t batch = c->cuts ? 1 : c->batch;
    m->rows = batch * c->heads * c->tokens;
    m->keys = m->rows / c->group;
    m->gates = m->rows * c->dqk;
    const size_t q = (size_t)(m->keys * c->dqk), g = (size_t)m->gates, beta = (size_t)m->rows;
    m->memory = calloc(2 * (2 * q + g + beta) + 1, sizeof *m->memory);
    m->q = m->memory;
    m->k = m->q + q;
    m->dq = m->k + q;
    m->dk = m->dq + q;
    m->g = m->dk + q;
    m->dg = m->g + g;
    m->beta = m->dg + g;
    m->dbeta = m->beta + beta;
    return m->memory;
}

static double inverse_norm(const struct made *m, const double *x)
{
    double sum = m->call->scalars[EPS];
    for (int64_t i = 0; i < m->call->dqk; i++)
        sum += x[i] * x[i];
    return 1 / sqrt(sum);
}

static void unit_rows(const struct made *m, double *y, const double *x)
{
    const int64_t dqk = m->call->dqk;
    for (int64_t row = 0; row < m->keys; row++)
        for (int64_t i = 0; i < dqk; i++)
            y[row * dqk + i] = x[row * dqk + i] * inverse_norm(m, x + row * dqk);
}

/* Element `at` of a tensor [B, NH, T, dqk]: its head, and its channel among those of all heads. */
static int64_t head_of(const struct made *m, int64_t at)
{
    return at / m->call->dqk / m->call->tokens % m->call->heads;
}

static double gate(const struct made *m, int64_t at, double *by_y, double *by_log)
{
    const int64_t head = head_of(m, at), channel = head * m->call->dqk + at % m->call->dqk;
    const double *const *in = m->call->in;
    return m->how->gate(m->call, in[G_RAW][at] + in[DT_BIAS][channel], exp(in[A_LOG][head]), by_y, by_log);
}

static bool make(struct made *m)
{
    double by_y, by_log;
    if (!allocate(m))
        return false;
    unit_rows(m, m->q, m->call->in[Q_RAW]);
    unit_rows(m, m->k, m->call->in[K_RAW]);
    for (int64_t i = 0; i < m->rows; i++)
        m->beta[i] = 1 / (1 + exp(-m->call->in[BETA_RAW][i]));
    for (int64_t i = 0; i < m->gates; i++)
        m->g[i] = gate(m, i, &by_y, &by_log);
    const int given[] = {V, S0, DH, DS}, taken[] = {H, S, DV, DS0};
    for (int i = 0; i < 4; i++) {
        m->in[given[i]] = m->call->in[given[i]];
        m->out[taken[i]] = m->call->out[taken[i]];
    }
    m->in[Q] = m->q;
    m->in[K] = m->k;
    m->in[BETA] = m->beta;
    m->in[A] = m->g;
    m->core = *m->call;
    m->core.in = m->in;
    m->core.out = m->out;
    return true;
}

void tg_kda_oracle(const tg_oracle_call *call, const struct kda_oracle *how)
{
    struct made m = {.call = call, .how = how};
    if (make(&m))
        tg_delta_oracle(&m.core, &core_oracle);
    free(m.memory);
}

/* ---- gradients ---- */

static void unit_rows_back(const struct made *m, double *dx, const double *x, const double *y, const double *dy)
{
    const int64_t dqk = m->call->dqk;
    for (int64_t row = 0; dx && row < m->keys * dqk; row += dqk) {
        double dot = 0;
        for (int64_t i = row; i < row + dqk; i++)
            dot += y[i] * dy[i];
        for (int64_t i = row; i < row + dqk; i++)
            dx[i] = (dy[i] - y[i] * dot) * inverse_norm(m, x + row);
    }
}

static void gates_back(const struct made *m)
{
    const tg_oracle_call *c = m->call;
    double *dx = c->out[DG_RAW], *dbias = c->out[DDT_BIAS], *drate = c->out[DA_LOG], by_y, by_log;
    for (int64_t i = 0; dbias && i < c->heads * c->dqk; i++)
        dbias[i] = 0;
    for (int64_t i = 0; drate && i < c->heads; i++)
        drate[i] = 0;
    for (int64_t at = 0; at < m->gates; at++) {
        const int64_t head = head_of(m, at);
        gate(m, at, &by_y, &by_log);
        if (dx)
            dx[at] = m->dg[at] * by_y;
        if (dbias)
            dbias[head * c->dqk + at % c->dqk] += m->dg[at] * by_y;
        if (drate)
            drate[head] += m->dg[at] * by_log;
    }
}

void tg_kda_oracle_backward(const tg_oracle_call *call, const struct kda_oracle *how)
{
    struct made m = {.call = call, .how = how};
    if (make(&m)) {
        m.out[DQ] = m.dq;
        m.out[DK] = m.dk;
        m.out[DBETA] = m.dbeta;
        m.out[DA] = m.dg;
        tg_delta_oracle_backward(&m.core, &core_oracle);
        unit_rows_back(&m, call->out[DQ_RAW], call->in[Q_RAW], m.q, m.dq);
        unit_rows_back(&m, call->out[DK_RAW], call->in[K_RAW], m.k, m.dk);
        for (int64_t i = 0; call->out[DBETA_RAW] && i < m.rows; i++)
            call->out[DBETA_RAW][i] = m.dbeta[i] * m.beta[i] * (1 - m.beta[i]);
        gates_back(&m);
    }
    free(m.memory);
}
