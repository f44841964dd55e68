/* variants/delta_operands.c - the delta rule's oracle with operands that are made in the kernel (delta_operands.inc), in fp64: the
 * operands, then the recurrence between them, then the chain rule. What is given goes through as it is. */
#include "variants/delta_oracle.h"
#include "variants/oracle_head.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_TILES = 256 };

/* The call of the recurrence: the caller's, but for operands and their gradients. */
struct made {
    const tg_oracle_call *call;
    const struct delta_oracle *how;
    int64_t keys, rows;      /* rows of q and k; of beta */
    int64_t channels, gates; /* of a token's decay; elements of all */
    double *memory;
    double *q, *k, *beta, *g, *dq, *dk, *dbeta, *dg;
    const double *in[MOST_TILES];
    double *out[MOST_TILES];
    tg_oracle_call core;
};

static bool allocate(struct made *m)
{
    const tg_oracle_call *c = m->call;
    const int64_t batch = c->cuts ? 1 : c->batch;
    m->rows = batch * c->heads * c->tokens;
    m->keys = m->rows / c->group;
    m->channels = m->how->of_channel ? c->dqk : 1;
    m->gates = m->rows * m->channels;
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

/* Element `at` of a decay [B, NH, T], or [B, NH, T, dqk]: its head, and its element of dt_bias. */
static int64_t head_of(const struct made *m, int64_t at)
{
    return at / m->channels / m->call->tokens % m->call->heads;
}
static int64_t bias_of(const struct made *m, int64_t at)
{
    return head_of(m, at) * m->channels + at % m->channels;
}

static double gate(const struct made *m, int64_t at, double *by_y, double *by_log)
{
    const double *const *in = m->call->in;
    return m->how->gate(m->call, in[G_RAW][at] + in[DT_BIAS][bias_of(m, at)], exp(in[A_LOG][head_of(m, at)]), by_y, by_log);
}

double tg_softplus_gate(const tg_oracle_call *call, double y, double rate, double *by_y, double *by_log)
{
    (void)call;
    const double g = -rate * (fmax(y, 0) + log1p(exp(-fabs(y))));
    *by_y = -rate / (1 + exp(-y));
    *by_log = g;
    return g;
}

/* An operand and its gradient: those made here, or the caller's. */
static void operand(struct made *m, bool is_made, int tile, const double *made, int gradient, double *dmade)
{
    m->in[tile] = is_made ? made : m->call->in[tile];
    m->out[gradient] = is_made ? dmade : m->call->out[gradient];
}

static bool make(struct made *m)
{
    const struct delta_oracle *how = m->how;
    double by_y, by_log;
    if (!allocate(m))
        return false;
    const int given[] = {V, S0, DH, DS}, taken[] = {H, S, DV, DS0};
    for (int i = 0; i < 4; i++) {
        m->in[given[i]] = m->call->in[given[i]];
        m->out[taken[i]] = m->call->out[taken[i]];
    }
    if (how->unit_rows) {
        unit_rows(m, m->q, m->call->in[Q_RAW]);
        unit_rows(m, m->k, m->call->in[K_RAW]);
    }
    for (int64_t i = 0; how->sigmoid_beta && i < m->rows; i++)
        m->beta[i] = m->call->scalars[BETA_MAX] / (1 + exp(-m->call->in[BETA_RAW][i]));
    for (int64_t i = 0; how->gate && i < m->gates; i++)
        m->g[i] = gate(m, i, &by_y, &by_log);
    operand(m, how->unit_rows, Q, m->q, DQ, m->dq);
    operand(m, how->unit_rows, K, m->k, DK, m->dk);
    operand(m, how->sigmoid_beta, BETA, m->beta, DBETA, m->dbeta);
    if (how->log_decay)
        operand(m, how->gate, how->log_decay, m->g, how->dlog_decay, m->dg);
    m->core = *m->call;
    m->core.in = m->in;
    m->core.out = m->out;
    return true;
}

void tg_delta_oracle(const tg_oracle_call *call, const struct delta_oracle *how)
{
    struct made m = {.call = call, .how = how};
    if (make(&m))
        tg_delta_recurrence(&m.core, how);
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

static void beta_back(const struct made *m)
{
    double *dx = m->call->out[DBETA_RAW];
    for (int64_t i = 0; dx && i < m->rows; i++)
        dx[i] = m->dbeta[i] * m->beta[i] / (1 + exp(m->call->in[BETA_RAW][i]));
}

static void gates_back(const struct made *m)
{
    const tg_oracle_call *c = m->call;
    double *dx = c->out[DG_RAW], *dbias = c->out[DDT_BIAS], *drate = c->out[DA_LOG], by_y, by_log;
    for (int64_t i = 0; dbias && i < c->heads * m->channels; i++)
        dbias[i] = 0;
    for (int64_t i = 0; drate && i < c->heads; i++)
        drate[i] = 0;
    for (int64_t at = 0; at < m->gates; at++) {
        gate(m, at, &by_y, &by_log);
        if (dx)
            dx[at] = m->dg[at] * by_y;
        if (dbias)
            dbias[bias_of(m, at)] += m->dg[at] * by_y;
        if (drate)
            drate[head_of(m, at)] += m->dg[at] * by_log;
    }
}

void tg_delta_oracle_backward(const tg_oracle_call *call, const struct delta_oracle *how)
{
    struct made m = {.call = call, .how = how};
    if (make(&m)) {
        tg_delta_recurrence_backward(&m.core, how);
        if (how->unit_rows) {
            unit_rows_back(&m, call->out[DQ_RAW], call->in[Q_RAW], m.q, m.dq);
            unit_rows_back(&m, call->out[DK_RAW], call->in[K_RAW], m.k, m.dk);
        }
        if (how->sigmoid_beta)
            beta_back(&m);
        if (how->gate)
            gates_back(&m);
    }
    free(m.memory);
}
