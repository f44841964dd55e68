/* variants/nla_oracle.c - normalised linear attention and its adjoint in fp64: token by token where it is
 * causal, else with the state after all tokens. Nothing decays, so that the state before a token is the one after it
 * less what the token has added: the adjoint walks back without checkpoints. A NaN so stays in the states before it. */
#include "variants/nla.h"
#include "variants/oracle_head.h"
#include "variants/oracle_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A state, or its gradient: of C [dqk][dhv], n [dqk], sv [dhv], and how many tokens. */
struct state {
    double *c, *n, *sv, count;
};

/* A head of a sequence, and where to work. */
struct head {
    const tg_oracle_call *call;
    bool is_causal;
    double a, b;
    struct oracle_head place;
    struct state state, gradient;
    double *q, *k;    /* the token's, normalised */
    double *o, *dnum; /* [dhv] */
    double *dx;       /* [dqk] */
};

/* ---- memory and sizes ---- */

static double *place_state(const tg_oracle_call *call, double *memory, struct state *state)
{
    state->c = memory;
    state->n = state->c + call->dqk * call->dhv;
    state->sv = state->n + call->dqk;
    return state->sv + call->dhv;
}

/* NULL: no memory. */
static double *open_head(struct head *h, const tg_oracle_call *call, bool is_causal)
{
    const int64_t dqk = call->dqk, dhv = call->dhv;
    double *memory = malloc((size_t)(2 * (dqk * dhv + dqk + dhv) + 3 * dqk + 2 * dhv) * sizeof *memory);
    *h = (struct head){.call = call, .is_causal = is_causal};
    if (!memory)
        return NULL;
    h->q = place_state(call, place_state(call, memory, &h->state), &h->gradient);
    h->k = h->q + dqk;
    h->dx = h->k + dqk;
    h->o = h->dx + dqk;
    h->dnum = h->o + dhv;
    return memory;
}

static void begin(struct head *h, int64_t at)
{
    h->place = oracle_head(h->call, at);
    h->a = h->call->in[PA][h->place.head];
    h->b = h->call->in[PB][h->place.head];
}

/* ---- states of the caller ---- */

static void load(double *to, const double *from, int64_t at, int64_t n)
{
    if (from)
        memcpy(to, from + at * n, (size_t)n * sizeof *to);
    else
        memset(to, 0, (size_t)n * sizeof *to);
}

static void store(double *to, const double *from, int64_t at, int64_t n)
{
    if (to)
        memcpy(to + at * n, from, (size_t)n * sizeof *to);
}

/* As the tiles of a state are numbered: C, n, sv. */
static void load_state(const struct head *h, int first, struct state *to)
{
    const tg_oracle_call *c = h->call;
    load(to->c, c->in[first], h->place.state, c->dqk * c->dhv);
    load(to->n, c->in[first + 1], h->place.state, c->dqk);
    load(to->sv, c->in[first + 2], h->place.state, c->dhv);
    to->count = 0;
}

static void store_state(const struct head *h, int first, const struct state *from)
{
    const tg_oracle_call *c = h->call;
    store(c->out[first], from->c, h->place.state, c->dqk * c->dhv);
    store(c->out[first + 1], from->n, h->place.state, c->dqk);
    store(c->out[first + 2], from->sv, h->place.state, c->dhv);
}

static void load_initial(struct head *h)
{
    const tg_oracle_call *c = h->call;
    load_state(h, C0, &h->state);
    h->state.count = c->scalars[COUNT0] + (c->in[CNT0] ? c->in[CNT0][h->place.state] : 0);
}

/* ---- a token ---- */

/* The row, normalised; returns what it was multiplied by. */
static double normalise(const struct head *h, int tile, int64_t t, double *to)
{
    const int64_t dqk = h->call->dqk;
    const double *x = h->call->in[tile] + (h->place.shared + t) * dqk;
    const double factor = 1 / sqrt(oracle_dot(x, x, dqk) + h->call->scalars[EPS]);
    for (int64_t i = 0; i < dqk; i++)
        to[i] = factor * x[i];
    return factor;
}

/* From the gradient of a normalised row to that of the row, added up over a group. */
static void normalise_back(const struct head *h, int tile, int64_t t, const double *row, double factor)
{
    const int64_t dqk = h->call->dqk;
    double *to = h->call->out[tile] ? h->call->out[tile] + (h->place.shared + t) * dqk : NULL;
    const double along = oracle_dot(row, h->dx, dqk);
    for (int64_t i = 0; to && i < dqk; i++)
        to[i] += factor * (h->dx[i] - row[i] * along);
}

static const double *value(const struct head *h, int64_t t)
{
    return h->call->in[V] + (h->place.first + t) * h->call->dhv;
}

/* Adds the token to the state, or takes it out (sign -1). */
static void update(struct head *h, int64_t t, double sign)
{
    const tg_oracle_call *c = h->call;
    normalise(h, K, t, h->k);
    for (int64_t x = 0; x < c->dqk; x++)
        oracle_add(h->state.c + x * c->dhv, value(h, t), sign * h->k[x], c->dhv);
    oracle_add(h->state.n, h->k, sign, c->dqk);
    oracle_add(h->state.sv, value(h, t), sign, c->dhv);
    h->state.count += sign;
}

/* o of a token from the state, with q normalised; returns the denominator. */
static double read_state(struct head *h)
{
    const tg_oracle_call *c = h->call;
    const double den = h->a * h->state.count + h->b * oracle_dot(h->q, h->state.n, c->dqk);
    for (int64_t y = 0; y < c->dhv; y++)
        h->o[y] = h->a * h->state.sv[y] / den;
    for (int64_t x = 0; x < c->dqk; x++)
        oracle_add(h->o, h->state.c + x * c->dhv, h->b * h->q[x] / den, c->dhv);
    return den;
}

static void query(struct head *h, int64_t t)
{
    const tg_oracle_call *c = h->call;
    normalise(h, Q, t, h->q);
    const double den = read_state(h);
    if (c->out[DEN])
        c->out[DEN][h->place.first + t] = den;
    store(c->out[H], h->o, h->place.first + t, c->dhv);
}

static void run_forward(struct head *h)
{
    load_initial(h);
    for (int64_t t = 0; t < h->place.tokens; t++) {
        update(h, t, 1);
        if (h->is_causal)
            query(h, t);
    }
    for (int64_t t = 0; !h->is_causal && t < h->place.tokens; t++)
        query(h, t);
    store_state(h, C, &h->state);
    if (h->call->out[CNT])
        h->call->out[CNT][h->place.state] = h->state.count;
}

void tg_nla_oracle(const tg_oracle_call *call, bool is_causal)
{
    struct head h;
    double *memory = open_head(&h, call, is_causal);
    for (int64_t i = 0; memory && i < call->batch * call->heads; i++) {
        begin(&h, i);
        run_forward(&h);
    }
    free(memory);
}

/* ---- the adjoint ---- */

static void add_parameter(double *to, const struct head *h, double x)
{
    if (to)
        to[h->place.head] += x;
}

/* What the token's output gives: to the gradients of q, a and b, and of the state that it read. */
static void query_back(struct head *h, int64_t t)
{
    const tg_oracle_call *c = h->call;
    const double factor = normalise(h, Q, t, h->q), den = read_state(h);
    load(h->dnum, c->in[DH], h->place.first + t, c->dhv);
    for (int64_t y = 0; y < c->dhv; y++)
        h->dnum[y] /= den;
    const double dden = -oracle_dot(h->o, h->dnum, c->dhv);
    for (int64_t x = 0; x < c->dqk; x++)
        h->dx[x] = oracle_dot(h->state.c + x * c->dhv, h->dnum, c->dhv) + dden * h->state.n[x];
    add_parameter(c->out[DA], h, oracle_dot(h->dnum, h->state.sv, c->dhv) + dden * h->state.count);
    add_parameter(c->out[DB], h, oracle_dot(h->q, h->dx, c->dqk));
    for (int64_t x = 0; x < c->dqk; x++) {
        h->dx[x] *= h->b;
        oracle_add(h->gradient.c + x * c->dhv, h->dnum, h->b * h->q[x], c->dhv);
    }
    oracle_add(h->gradient.n, h->q, h->b * dden, c->dqk);
    oracle_add(h->gradient.sv, h->dnum, h->a, c->dhv);
    normalise_back(h, DQ, t, h->q, factor);
}

/* What the gradient of the state after it gives to the token's key and value. */
static void key_back(struct head *h, int64_t t)
{
    const tg_oracle_call *c = h->call;
    const double factor = normalise(h, K, t, h->k);
    load(h->o, h->gradient.sv, 0, c->dhv);
    for (int64_t x = 0; x < c->dqk; x++) {
        h->dx[x] = oracle_dot(h->gradient.c + x * c->dhv, value(h, t), c->dhv) + h->gradient.n[x];
        oracle_add(h->o, h->gradient.c + x * c->dhv, h->k[x], c->dhv);
    }
    store(c->out[DV], h->o, h->place.first + t, c->dhv);
    normalise_back(h, DK, t, h->k, factor);
}

/* After all tokens. Where it is not causal, the caller has that state from the forward. */
static void load_final(struct head *h)
{
    load_initial(h);
    for (int64_t t = 0; h->is_causal && t < h->place.tokens; t++)
        update(h, t, 1);
    if (h->is_causal)
        return;
    const double count = h->state.count + (double)h->place.tokens;
    load_state(h, C, &h->state);
    h->state.count = count;
}

static void run_backward(struct head *h)
{
    load_final(h);
    load_state(h, DC, &h->gradient);
    for (int64_t t = h->place.tokens - 1; t >= 0; t--) {
        query_back(h, t);
        if (!h->is_causal)
            continue;
        key_back(h, t);
        update(h, t, -1);
    }
    for (int64_t t = 0; !h->is_causal && t < h->place.tokens; t++)
        key_back(h, t);
    store_state(h, DC0, &h->gradient);
}

static void zero(double *x, int64_t n)
{
    for (int64_t i = 0; x && i < n; i++)
        x[i] = 0;
}

void tg_nla_oracle_backward(const tg_oracle_call *call, bool is_causal)
{
    struct head h;
    double *memory = open_head(&h, call, is_causal);
    const int64_t rows = (call->cuts ? 1 : call->batch) * (call->heads / call->group) * call->tokens;
    if (!memory)
        return;
    zero(call->out[DQ], rows * call->dqk);
    zero(call->out[DK], rows * call->dqk);
    zero(call->out[DA], call->heads);
    zero(call->out[DB], call->heads);
    for (int64_t i = 0; i < call->batch * call->heads; i++) {
        begin(&h, i);
        run_backward(&h);
    }
    free(memory);
}
