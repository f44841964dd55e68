/* variants/vector_oracle.c - the vector-gate recurrence and its adjoint, token by token, in fp64. */
#include "variants/oracle_head.h"
#include "variants/oracle_rows.h"
#include "variants/vector.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A head of a sequence, and where to work. */
struct walk {
    const tg_oracle_call *call;
    const struct vector_oracle *how;
    struct oracle_head at;
    int64_t n_state;
    int64_t stride;      /* tokens from one checkpoint to the next */
    double *checkpoints; /* state before every stride-th token */
    double *history;     /* states before and after the tokens of one stride */
    double *state;       /* forward: the state; backward: its gradient */
};

/* The state of this head in a tensor of them, or nothing. */
static const double *state_in(const struct walk *w, uint32_t tile)
{
    const double *states = w->call->in[tile];
    return states ? states + (w->at.state) * w->n_state : NULL;
}

static void copy_state(const struct walk *w, double *to, const double *from)
{
    if (from)
        memcpy(to, from, (size_t)w->n_state * sizeof *to);
    else
        memset(to, 0, (size_t)w->n_state * sizeof *to);
}

static void write_state(const struct walk *w, uint32_t tile)
{
    double *states = w->call->out[tile];
    if (states)
        copy_state(w, states + (w->at.state) * w->n_state, w->state);
}

/* Element x of the key of token t. */
static double key(const struct walk *w, int64_t t, int64_t x)
{
    const tg_oracle_call *c = w->call;
    return w->how->key ? w->how->key(c, (w->at.first + t) * c->dqk + x) : c->in[K][(w->at.shared + t) * c->dqk + x];
}

/* after = the state behind token t, of the one before; they may be the same. */
static void step(const struct walk *w, int64_t t, const double *before, double *after)
{
    const tg_oracle_call *c = w->call;
    const double *v = c->in[V] + (w->at.first + t) * c->dhv;
    for (int64_t x = 0; x < c->dqk; x++) {
        const double decay = exp(w->how->gate(c, (w->at.first + t) * c->dqk + x));
        oracle_update(after + x * c->dhv, before + x * c->dhv, decay, v, key(w, t, x), c->dhv);
    }
}

/* ---- forward ---- */

/* The bonus of key dimension x, times its key; 0 where there is none. */
static double bonus(const struct walk *w, int64_t t, int64_t x)
{
    return w->how->reads_before ? w->call->in[U][w->at.head * w->call->dqk + x] * key(w, t, x) : 0;
}

static void read_state(const struct walk *w, int64_t t)
{
    const tg_oracle_call *c = w->call;
    const double *q = c->in[Q] + (w->at.shared + t) * c->dqk, *v = c->in[V] + (w->at.first + t) * c->dhv;
    double *h = c->out[H] + (w->at.first + t) * c->dhv;
    memset(h, 0, (size_t)c->dhv * sizeof *h);
    double own = 0;
    for (int64_t x = 0; x < c->dqk; x++) {
        oracle_add(h, w->state + x * c->dhv, c->scalars[0] * q[x], c->dhv);
        own += c->scalars[0] * q[x] * bonus(w, t, x);
    }
    if (w->how->reads_before)
        oracle_add(h, v, own, c->dhv);
}

void tg_vector_oracle(const tg_oracle_call *call, const struct vector_oracle *how)
{
    struct walk w = {.call = call, .how = how, .n_state = call->dqk * call->dhv};
    w.state = malloc((size_t)w.n_state * sizeof *w.state);
    for (int64_t i = 0; w.state && i < call->batch * call->heads; i++) {
        w.at = oracle_head(call, i);
        copy_state(&w, w.state, state_in(&w, S0));
        for (int64_t t = 0; t < w.at.tokens; t++) {
            if (call->out[H] && how->reads_before)
                read_state(&w, t);
            step(&w, t, w.state, w.state);
            if (call->out[H] && !how->reads_before)
                read_state(&w, t);
        }
        write_state(&w, S);
    }
    free(w.state);
}

/* ---- backward ---- */

static void add(double *to, int64_t i, double x)
{
    if (to)
        to[i] += x;
}

/* What token t reads of itself, h += scale (u o q).k v. */
static void own_back(const struct walk *w, int64_t t)
{
    const tg_oracle_call *c = w->call;
    const int64_t row = w->at.first + t, shared = w->at.shared + t, head = w->at.head * c->dqk;
    const double *q = c->in[Q] + shared * c->dqk, *k = c->in[K] + shared * c->dqk, *u = c->in[U] + head;
    const double *v = c->in[V] + row * c->dhv, *dh = c->in[DH] + row * c->dhv;
    double vdh = 0;
    for (int64_t y = 0; y < c->dhv; y++)
        vdh += c->scalars[0] * v[y] * dh[y];
    for (int64_t x = 0; x < c->dqk; x++) {
        add(c->out[DQ], shared * c->dqk + x, u[x] * k[x] * vdh);
        add(c->out[DK], shared * c->dqk + x, u[x] * q[x] * vdh);
        add(c->out[DU], head + x, q[x] * k[x] * vdh);
        for (int64_t y = 0; y < c->dhv; y++)
            add(c->out[DV], row * c->dhv + y, c->scalars[0] * u[x] * q[x] * k[x] * dh[y]);
    }
}

/* Gradients of token t: w->state is that of the state after it, and becomes that of the state before. */
static void step_back(const struct walk *w, int64_t t, const double *before, const double *after)
{
    const tg_oracle_call *c = w->call;
    const bool reads_before = w->how->reads_before;
    const int64_t row = w->at.first + t, shared = w->at.shared + t;
    const double *q = c->in[Q] + shared * c->dqk;
    const double *v = c->in[V] + row * c->dhv, *dh = c->in[DH] + row * c->dhv;
    double *dv = c->out[DV] ? c->out[DV] + row * c->dhv : NULL;
    for (int64_t y = 0; dv && y < c->dhv; y++)
        dv[y] = 0;
    for (int64_t x = 0; x < c->dqk; x++) {
        const double decay = exp(w->how->gate(c, row * c->dqk + x)), k = key(w, t, x);
        const double reads = c->scalars[0] * q[x], *read = (reads_before ? before : after) + x * c->dhv;
        double *ds = w->state + x * c->dhv;
        if (!reads_before)
            oracle_add(ds, dh, reads, c->dhv);
        const double dk = oracle_dot(ds, v, c->dhv), da = decay * oracle_dot(ds, before + x * c->dhv, c->dhv);
        if (dv)
            oracle_add(dv, ds, k, c->dhv);
        oracle_scale(ds, decay, c->dhv);
        if (reads_before)
            oracle_add(ds, dh, reads, c->dhv);
        add(c->out[DQ], shared * c->dqk + x, c->scalars[0] * oracle_dot(read, dh, c->dhv));
        add(c->out[DK], shared * c->dqk + x, dk);
        w->how->gate_back(c, row * c->dqk + x, da, dk);
    }
    if (reads_before)
        own_back(w, t);
}

/* From the last token to the first, recomputing the states of one stride after the other. */
static void walk_back(struct walk *w)
{
    copy_state(w, w->history, state_in(w, S0));
    for (int64_t t = 0; t < w->at.tokens; t++) {
        if (t % w->stride == 0)
            copy_state(w, w->checkpoints + t / w->stride * w->n_state, w->history);
        step(w, t, w->history, w->history);
    }
    copy_state(w, w->state, state_in(w, DS));
    for (int64_t first = (w->at.tokens - 1) / w->stride * w->stride; w->at.tokens > 0 && first >= 0; first -= w->stride) {
        const int64_t end = first + w->stride < w->at.tokens ? first + w->stride : w->at.tokens;
        copy_state(w, w->history, w->checkpoints + first / w->stride * w->n_state);
        for (int64_t t = first; t < end; t++)
            step(w, t, w->history + (t - first) * w->n_state, w->history + (t - first + 1) * w->n_state);
        for (int64_t t = end - 1; t >= first; t--)
            step_back(w, t, w->history + (t - first) * w->n_state, w->history + (t - first + 1) * w->n_state);
    }
}

void tg_vector_oracle_backward(const tg_oracle_call *call, const struct vector_oracle *how)
{
    struct walk w = {.call = call, .how = how, .n_state = call->dqk * call->dhv};
    const int64_t tokens = oracle_longest(call);
    w.stride = (int64_t)ceil(sqrt((double)tokens)) + 1;
    const int64_t n_checkpoints = tokens / w.stride + 1;
    w.checkpoints = malloc((size_t)((n_checkpoints + w.stride + 2) * w.n_state) * sizeof *w.checkpoints);
    if (!w.checkpoints)
        return;
    w.history = w.checkpoints + n_checkpoints * w.n_state;
    w.state = w.history + (w.stride + 1) * w.n_state;
    const int64_t rows = (call->cuts ? 1 : call->batch) * (call->heads / call->group) * call->tokens;
    for (uint32_t i = 0; i < 2; i++) {
        double *sum = call->out[i ? DK : DQ];
        if (sum)
            memset(sum, 0, (size_t)(rows * call->dqk) * sizeof *sum);
    }
    for (int64_t i = 0; how->reads_before && call->out[DU] && i < call->heads * call->dqk; i++)
        call->out[DU][i] = 0;
    for (int64_t i = 0; i < call->batch * call->heads; i++) {
        w.at = oracle_head(call, i);
        walk_back(&w);
        write_state(&w, DS0);
    }
    free(w.checkpoints);
}
