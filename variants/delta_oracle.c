/* variants/delta_oracle.c - the delta rule and its adjoint, token by token, in fp64. */
#include "variants/delta_oracle.h"
#include "variants/oracle_head.h"
#include "variants/oracle_rows.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A head of a sequence, and where to work. */
struct walk {
    const tg_oracle_call *call;
    const struct delta_oracle *how;
    struct oracle_head at;
    int64_t stride;  /* tokens from one checkpoint to the next */
    double *memory;  /* of all that follows */
    double *s, *ds;  /* [dqk][dhv]: the state, and its gradient */
    double *u, *du;  /* [dhv]: v - S^T k, and its gradient */
    double *checkpoints; /* the state before every stride-th token */
    double *history;     /* decayed states of the tokens of one stride */
};

/* Checkpoints sqrt(T) tokens apart: 2 sqrt(T) states instead of T, for one more walk forward. */
static bool allocate(struct walk *w, bool backward)
{
    const int64_t n = w->call->dqk * w->call->dhv, dhv = w->call->dhv, tokens = oracle_longest(w->call);
    w->stride = (int64_t)ceil(sqrt((double)tokens)) + 1;
    const int64_t kept = backward ? tokens / w->stride + 1 + w->stride : 0;
    w->memory = malloc((size_t)(2 * n + 2 * dhv + kept * n) * sizeof *w->memory);
    if (!w->memory)
        return false;
    w->s = w->memory;
    w->ds = w->s + n;
    w->u = w->ds + n;
    w->du = w->u + dhv;
    w->checkpoints = w->du + dhv;
    w->history = w->checkpoints + (tokens / w->stride + 1) * n;
    return true;
}

static void load(double *to, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from ? from[i] : 0;
}

/* Where the decay of the token's row i of the state is, in its tensor. */
static int64_t decay_at(const struct walk *w, int64_t t, int64_t i)
{
    const int64_t row = w->at.first + t;
    return w->how->of_channel ? row * w->call->dqk + i : row;
}

static double decay_of(const struct walk *w, int64_t t, int64_t i)
{
    return w->how->log_decay ? exp(w->call->in[w->how->log_decay][decay_at(w, t, i)]) : 1;
}

/* The state after token t from the one before, u on the way; the decayed state goes to `decayed`, unless NULL. */
static void step(struct walk *w, int64_t t, double *decayed)
{
    const tg_oracle_call *c = w->call;
    const int64_t dqk = c->dqk, dhv = c->dhv;
    const double *k = c->in[K] + (w->at.shared + t) * dqk, *v = c->in[V] + (w->at.first + t) * dhv;
    const double beta = c->in[BETA][w->at.first + t];
    double decay = 1;
    for (int64_t i = 0; i < dqk; i++) {
        decay = i && !w->how->of_channel ? decay : decay_of(w, t, i);
        oracle_scale(w->s + i * dhv, decay, dhv);
    }
    if (decayed)
        memcpy(decayed, w->s, (size_t)(dqk * dhv) * sizeof *decayed);
    memcpy(w->u, v, (size_t)dhv * sizeof *v);
    for (int64_t i = 0; i < dqk; i++)
        oracle_add(w->u, w->s + i * dhv, -k[i], dhv);
    for (int64_t i = 0; i < dqk; i++)
        oracle_add(w->s + i * dhv, w->u, k[i] * beta, dhv);
}

static void read_out(const struct walk *w, int64_t t)
{
    const tg_oracle_call *c = w->call;
    const int64_t dhv = c->dhv;
    const double *q = c->in[Q] + (w->at.shared + t) * c->dqk;
    double *h = c->out[H] + (w->at.first + t) * dhv;
    memset(h, 0, (size_t)dhv * sizeof *h);
    for (int64_t i = 0; i < c->dqk; i++)
        oracle_add(h, w->s + i * dhv, c->scalars[0] * q[i], dhv);
}

void tg_delta_recurrence(const tg_oracle_call *call, const struct delta_oracle *how)
{
    struct walk w = {.call = call, .how = how};
    const int64_t n = call->dqk * call->dhv;
    if (!allocate(&w, false))
        return;
    for (int64_t at = 0; at < call->batch * call->heads; at++) {
        w.at = oracle_head(call, at);
        load(w.s, call->in[S0] ? call->in[S0] + w.at.state * n : NULL, n);
        for (int64_t t = 0; t < w.at.tokens; t++) {
            step(&w, t, NULL);
            if (call->out[H])
                read_out(&w, t);
        }
        if (call->out[S])
            load(call->out[S] + w.at.state * n, w.s, n);
    }
    free(w.memory);
}

/* ---- gradients ---- */

static void add(double *to, int64_t i, double x)
{
    if (to)
        to[i] += x;
}

/* One token back; `decayed` is the state behind its decay. */
static void step_back(struct walk *w, int64_t t, const double *decayed)
{
    const tg_oracle_call *c = w->call;
    const int64_t dqk = c->dqk, dhv = c->dhv, row = w->at.first + t, shared = w->at.shared + t;
    const double *q = c->in[Q] + shared * dqk, *k = c->in[K] + shared * dqk, *dh = c->in[DH] + row * dhv;
    const double beta = c->in[BETA][row], scale = c->scalars[0];
    load(w->u, c->in[V] + row * dhv, dhv);
    load(w->du, NULL, dhv);
    for (int64_t i = 0; i < dqk; i++)
        oracle_add(w->u, decayed + i * dhv, -k[i], dhv);
    const double udh = oracle_dot(w->u, dh, dhv);
    for (int64_t i = 0; i < dqk; i++) { /* the state behind the token is decayed + k beta u */
        double *ds = w->ds + i * dhv;
        add(c->out[DQ], shared * dqk + i, scale * (oracle_dot(decayed + i * dhv, dh, dhv) + k[i] * beta * udh));
        oracle_add(ds, dh, scale * q[i], dhv);
        oracle_add(w->du, ds, k[i], dhv);
    }
    const double dbeta = oracle_dot(w->du, w->u, dhv);
    oracle_scale(w->du, beta, dhv);
    double decay = 1;
    for (int64_t i = 0; i < dqk; i++) {
        const double *before = decayed + i * dhv;
        double *ds = w->ds + i * dhv;
        add(c->out[DK], shared * dqk + i, beta * oracle_dot(ds, w->u, dhv) - oracle_dot(before, w->du, dhv));
        oracle_add(ds, w->du, -k[i], dhv);
        add(w->how->dlog_decay ? c->out[w->how->dlog_decay] : NULL, decay_at(w, t, i), oracle_dot(ds, before, dhv));
        decay = i && !w->how->of_channel ? decay : decay_of(w, t, i);
        oracle_scale(ds, decay, dhv);
    }
    if (c->out[DV])
        load(c->out[DV] + row * dhv, w->du, dhv);
    if (c->out[DBETA])
        c->out[DBETA][row] = dbeta;
}

/* Tokens [begin, end): forward from their checkpoint, then back. */
static void stride_back(struct walk *w, int64_t begin, int64_t end)
{
    const int64_t n = w->call->dqk * w->call->dhv;
    memcpy(w->s, w->checkpoints + begin / w->stride * n, (size_t)n * sizeof *w->s);
    for (int64_t t = begin; t < end; t++)
        step(w, t, w->history + (t - begin) * n);
    for (int64_t t = end; t-- > begin;)
        step_back(w, t, w->history + (t - begin) * n);
}

static void head_back(struct walk *w)
{
    const tg_oracle_call *c = w->call;
    const int64_t n = c->dqk * c->dhv;
    load(w->s, c->in[S0] ? c->in[S0] + w->at.state * n : NULL, n);
    for (int64_t t = 0; t < w->at.tokens; t++) {
        if (t % w->stride == 0)
            memcpy(w->checkpoints + t / w->stride * n, w->s, (size_t)n * sizeof *w->s);
        step(w, t, NULL);
    }
    load(w->ds, c->in[DS] ? c->in[DS] + w->at.state * n : NULL, n);
    const int64_t strides = (w->at.tokens + w->stride - 1) / w->stride;
    for (int64_t s = strides; s-- > 0;)
        stride_back(w, s * w->stride, (s + 1) * w->stride < w->at.tokens ? (s + 1) * w->stride : w->at.tokens);
    if (c->out[DS0])
        load(c->out[DS0] + w->at.state * n, w->ds, n);
}

void tg_delta_recurrence_backward(const tg_oracle_call *call, const struct delta_oracle *how)
{
    struct walk w = {.call = call, .how = how};
    const int64_t keys = (call->cuts ? 1 : call->batch) * call->heads / call->group * call->tokens * call->dqk;
    if (!allocate(&w, true))
        return;
    for (int i = 0; i < 2; i++) /* summed over the heads that share them */
        if (call->out[i ? DK : DQ])
            load(call->out[i ? DK : DQ], NULL, keys);
    if (how->dlog_decay && call->out[how->dlog_decay]) /* summed over the values */
        load(call->out[how->dlog_decay], NULL, how->of_channel ? keys * call->group : keys / call->dqk * call->group);
    for (int64_t at = 0; at < call->batch * call->heads; at++) {
        w.at = oracle_head(call, at);
        head_back(&w);
    }
    free(w.memory);
}
