/* variants/scalar_oracle.c - the scalar-gate recurrence and its adjoint, token by token, in fp64.
 *
 * The normaliser state n is one more column of the state, fed by a value that is always 1. The
 * recurrence and every gradient of it are then the same code for all kinds; only what is read from
 * the state, and the gradient that arrives there, know of the division. A state in memory is
 * [dqk][width], width = dhv plus that column, and after it the max state m. */
#include "oracle_head.h"
#include "oracle_rows.h"
#include "scalar.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A head of a sequence, and where to work. */
struct walk {
    const tg_oracle_call *call;
    const struct scalar_oracle *how;
    struct oracle_head at;
    int64_t width;
    int64_t n_state;         /* doubles of a state, m included */
    double *memory;          /* of all that follows */
    double *value, *read;    /* [width]: v_t and 1; scale S_t^T q_t, or its gradient */
    double *state[2];        /* forward: before and after a token */
    int64_t stride;          /* backward: tokens from one checkpoint to the next */
    double *checkpoints;     /* state before every stride-th token */
    double *history;         /* states before and after the tokens of one stride */
    double *dstate, *dv, *u; /* gradient of the current state; [width]; [dqk] */
    double *zeros;           /* [dhv] */
};

static struct walk plan(const tg_oracle_call *call, const struct scalar_oracle *how)
{
    struct walk w = {.call = call, .how = how};
    w.width = call->dhv + (how->normaliser != SCALAR_PLAIN);
    w.n_state = call->dqk * w.width + 1;
    return w;
}

static bool allocate_forward(struct walk *w)
{
    double *next = w->memory = malloc((size_t)(2 * w->width + 2 * w->n_state) * sizeof *next);
    if (!next)
        return false;
    w->value = next;
    w->read = next += w->width;
    w->state[0] = next += w->width;
    w->state[1] = next + w->n_state;
    return true;
}

/* Checkpoints sqrt(T) tokens apart: 2 sqrt(T) states instead of T, for one more walk forward. */
static bool allocate_backward(struct walk *w)
{
    const int64_t tokens = oracle_longest(w->call), dqk = w->call->dqk, dhv = w->call->dhv;
    w->stride = (int64_t)ceil(sqrt((double)tokens)) + 1;
    const int64_t n_checkpoints = tokens / w->stride + 1, n_history = w->stride + 1;
    const int64_t n = 3 * w->width + dqk + dhv + (1 + n_checkpoints + n_history) * w->n_state;
    double *next = w->memory = malloc((size_t)n * sizeof *next);
    if (!next)
        return false;
    w->value = next;
    w->read = next += w->width;
    w->dv = next += w->width;
    w->u = next += w->width;
    w->zeros = next += dqk;
    w->dstate = next += dhv;
    w->checkpoints = next += w->n_state;
    w->history = next + n_checkpoints * w->n_state;
    tg_oracle_zero(w->zeros, dhv);
    return true;
}

/* ---- rows ---- */

void tg_oracle_zero(double *x, int64_t n)
{
    for (int64_t i = 0; x && i < n; i++)
        x[i] = 0;
}

/* ---- states: the caller's are apart and optional, ours have the normaliser as a column ---- */

static void load_state(const struct walk *w, int s, int n, double *to)
{
    const tg_oracle_call *c = w->call;
    const int64_t at = w->at.state;
    tg_oracle_zero(to, w->n_state);
    for (int64_t x = 0; x < c->dqk; x++) {
        if (c->in[s])
            oracle_add(to + x * w->width, c->in[s] + (at * c->dqk + x) * c->dhv, 1, c->dhv);
        if (w->width > c->dhv && c->in[n])
            to[x * w->width + c->dhv] = c->in[n][at * c->dqk + x];
    }
}

static void store_state(const struct walk *w, int s, int n, const double *from)
{
    const tg_oracle_call *c = w->call;
    const int64_t at = w->at.state;
    for (int64_t x = 0; x < c->dqk; x++) {
        if (c->out[s])
            memcpy(c->out[s] + (at * c->dqk + x) * c->dhv, from + x * w->width,
                   (size_t)c->dhv * sizeof *from);
        if (w->width > c->dhv && c->out[n])
            c->out[n][at * c->dqk + x] = from[x * w->width + c->dhv];
    }
}

static bool has_max(const struct walk *w)
{
    return w->how->normaliser == SCALAR_MAX_NORMALISED;
}

static double *max_state(const struct walk *w, double *state)
{
    return &state[w->n_state - 1];
}

static void load_initial(const struct walk *w, double *to)
{
    load_state(w, S0, N0, to);
    if (has_max(w) && w->call->in[M0])
        *max_state(w, to) = w->call->in[M0][w->at.state];
}

/* ---- the recurrence ---- */

static struct scalar_token token(const struct walk *w, int64_t t)
{
    return (struct scalar_token){w->at.sequence, w->at.head, w->at.first + t};
}

/* The larger; a NaN if either is one, which fmax would hide. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

struct gates {
    double decay, input; /* factors of the stored state and of k v^T */
    double max;          /* m_t; 0 where there is none */
};

static struct gates gates_at(const struct walk *w, int64_t t, double max_before)
{
    double a, li, max = 0;
    w->how->gate(w->call, token(w, t), &a, &li);
    if (has_max(w))
        max = larger(a + max_before, li);
    return (struct gates){exp(a + max_before - max), exp(li - max), max};
}

static void load_value(const struct walk *w, int64_t t)
{
    const int64_t dhv = w->call->dhv;
    memcpy(w->value, w->call->in[V] + (w->at.first + t) * dhv, (size_t)dhv * sizeof *w->value);
    if (w->width > dhv)
        w->value[dhv] = 1;
}

/* The state after token t from the one before it; leaves the token's value in w->value. */
static void advance(const struct walk *w, int64_t t, double *before, double *after)
{
    const struct gates g = gates_at(w, t, *max_state(w, before));
    const int64_t dqk = w->call->dqk;
    const double *k = w->call->in[K] + (w->at.shared + t) * dqk;
    load_value(w, t);
    for (int64_t x = 0; x < dqk; x++)
        oracle_update(after + x * w->width, before + x * w->width, g.decay, w->value, g.input * k[x], w->width);
    *max_state(w, after) = g.max;
}

/* Where |q.n| is below the floor, the floor divides. */
static double floor_of(const struct walk *w, double max)
{
    return has_max(w) ? exp(-max) : 1;
}

static double denominator(const struct walk *w, double qn, double floor)
{
    const double eps = w->how->eps ? w->call->scalars[w->how->eps] : 0;
    return larger(fabs(qn), floor) + eps;
}

static double skip_of(const struct walk *w)
{
    const double *d = w->how->skip ? w->call->in[w->how->skip] : NULL;
    return d ? d[w->at.head] : 0;
}

/* h_t and q.n from the state after the token. */
static void read_state(const struct walk *w, int64_t t, double *state)
{
    const tg_oracle_call *c = w->call;
    const double *q = c->in[Q] + (w->at.shared + t) * c->dqk;
    double *h = c->out[H] ? c->out[H] + (w->at.first + t) * c->dhv : NULL, den = 1;
    tg_oracle_zero(w->read, w->width);
    for (int64_t x = 0; x < c->dqk; x++)
        oracle_add(w->read, state + x * w->width, c->scalars[0] * q[x], w->width);
    if (w->width > c->dhv) {
        den = denominator(w, w->read[c->dhv], floor_of(w, *max_state(w, state)));
        if (c->out[QN])
            c->out[QN][w->at.first + t] = w->read[c->dhv];
    }
    for (int64_t y = 0; h && y < c->dhv; y++)
        h[y] = w->read[y] / den + skip_of(w) * w->value[y];
}

static void walk_forward(struct walk *w)
{
    double **state = w->state;
    load_initial(w, state[0]);
    for (int64_t t = 0; t < w->at.tokens; t++) {
        advance(w, t, state[t % 2], state[1 - t % 2]);
        read_state(w, t, state[1 - t % 2]);
    }
    double *final = state[w->at.tokens % 2];
    store_state(w, S, N, final);
    if (has_max(w) && w->call->out[M])
        w->call->out[M][w->at.state] = *max_state(w, final);
}

/* Without memory the outputs keep their NaN, and no comparison passes. */
void tg_scalar_oracle(const tg_oracle_call *call, const struct scalar_oracle *how)
{
    struct walk w = plan(call, how);
    if (!allocate_forward(&w))
        return;
    for (int64_t i = 0; i < call->batch * call->heads; i++) {
        w.at = oracle_head(call, i);
        walk_forward(&w);
    }
    free(w.memory);
}

/* ---- its adjoint ---- */

static bool is_exact(const struct walk *w)
{
    return !w->how->exact || w->call->scalars[w->how->exact] != 0;
}

/* From dh_t to the gradient of what was read, in w->read: dh / den, and behind it that of q.n,
 * which is 0 where the floor divides and where den counts as a constant. Adds dq_t. */
static void read_back(const struct walk *w, int64_t t, double *after, const double *dh)
{
    const tg_oracle_call *c = w->call;
    const double scale = c->scalars[0], *q = c->in[Q] + (w->at.shared + t) * c->dqk;
    double *dq = c->out[DQ] ? c->out[DQ] + (w->at.shared + t) * c->dqk : NULL;
    const bool normalised = w->width > c->dhv;
    double qn = 0, num_dh = 0, den = 1, dqn = 0;
    for (int64_t x = 0; x < c->dqk; x++) {
        w->u[x] = scale * oracle_dot(after + x * w->width, dh, c->dhv);
        num_dh += q[x] * w->u[x];
        if (normalised)
            qn += scale * q[x] * after[x * w->width + c->dhv];
    }
    if (normalised) {
        const double floor = floor_of(w, *max_state(w, after));
        den = denominator(w, qn, floor);
        if (is_exact(w) && !(fabs(qn) <= floor))
            dqn = -copysign(1, qn) * num_dh / (den * den);
        w->read[c->dhv] = dqn;
    }
    for (int64_t y = 0; y < c->dhv; y++)
        w->read[y] = dh[y] / den;
    for (int64_t x = 0; dq && x < c->dqk; x++)
        dq[x] += w->u[x] / den + (normalised ? scale * dqn * after[x * w->width + c->dhv] : 0);
}

/* dv_t and dD, from w->dv and the term past the state. */
static void value_back(const struct walk *w, int64_t t, const double *dh)
{
    const tg_oracle_call *c = w->call;
    double *dv = c->out[DV] ? c->out[DV] + (w->at.first + t) * c->dhv : NULL;
    for (int64_t y = 0; dv && y < c->dhv; y++)
        dv[y] = w->dv[y] + skip_of(w) * dh[y];
    if (w->how->d_skip && c->out[w->how->d_skip])
        c->out[w->how->d_skip][w->at.head] += oracle_dot(w->value, dh, c->dhv);
}

/* Token t, the gradient of its state arriving in dstate; leaves there the gradient for t - 1. */
static void step_back(const struct walk *w, int64_t t, double *before, double *after)
{
    const tg_oracle_call *c = w->call;
    const struct gates g = gates_at(w, t, *max_state(w, before));
    const double *q = c->in[Q] + (w->at.shared + t) * c->dqk, *k = c->in[K] + (w->at.shared + t) * c->dqk;
    const double *dh = c->in[DH] ? c->in[DH] + (w->at.first + t) * c->dhv : w->zeros;
    double *dk = c->out[DK] ? c->out[DK] + (w->at.shared + t) * c->dqk : NULL, da = 0, dli = 0;
    load_value(w, t);
    read_back(w, t, after, dh);
    tg_oracle_zero(w->dv, w->width);
    for (int64_t x = 0; x < c->dqk; x++) {
        double *d = w->dstate + x * w->width;
        oracle_add(d, w->read, c->scalars[0] * q[x], w->width);
        const double d_key = g.input * oracle_dot(d, w->value, w->width);
        if (dk)
            dk[x] += d_key;
        dli += k[x] * d_key;
        oracle_add(w->dv, d, g.input * k[x], w->width);
        da += g.decay * oracle_dot(d, before + x * w->width, w->width);
        oracle_scale(d, g.decay, w->width);
    }
    value_back(w, t, dh);
    if (w->how->gate_back) /* gates that nothing is learned of have none */
        w->how->gate_back(c, token(w, t), da, dli);
}

static void make_checkpoints(const struct walk *w)
{
    double *state = w->history;
    load_initial(w, state);
    for (int64_t t = 0; t < w->at.tokens; t++) {
        if (t % w->stride == 0)
            memcpy(w->checkpoints + t / w->stride * w->n_state, state,
                   (size_t)w->n_state * sizeof *state);
        double *next = state == w->history ? w->history + w->n_state : w->history;
        advance(w, t, state, next);
        state = next;
    }
}

/* The tokens from `from`, where a checkpoint is, up to `to`. */
static void stride_back(const struct walk *w, int64_t from, int64_t to)
{
    const int64_t n = w->n_state;
    memcpy(w->history, w->checkpoints + from / w->stride * n, (size_t)n * sizeof *w->history);
    for (int64_t t = from; t < to; t++)
        advance(w, t, w->history + (t - from) * n, w->history + (t - from + 1) * n);
    for (int64_t t = to - 1; t >= from; t--)
        step_back(w, t, w->history + (t - from) * n, w->history + (t - from + 1) * n);
}

static void walk_back(struct walk *w)
{
    load_state(w, DS, DN, w->dstate);
    for (int64_t x = 0; !is_exact(w) && w->width > w->call->dhv && x < w->call->dqk; x++)
        w->dstate[x * w->width + w->call->dhv] =
            0; /* n is a constant: what arrives for it is lost */
    make_checkpoints(w);
    for (int64_t to = w->at.tokens; to > 0;) {
        const int64_t from = (to - 1) / w->stride * w->stride;
        stride_back(w, from, to);
        to = from;
    }
    store_state(w, DS0, DN0, w->dstate);
}

/* DQ and DK are sums over a group, D's gradient over the tokens; the rest is written once. */
static void zero_sums(const struct walk *w)
{
    const tg_oracle_call *c = w->call;
    const int64_t rows = (c->cuts ? 1 : c->batch) * (c->heads / c->group) * c->tokens;
    tg_oracle_zero(c->out[DQ], rows * c->dqk);
    tg_oracle_zero(c->out[DK], rows * c->dqk);
    if (w->how->d_skip)
        tg_oracle_zero(c->out[w->how->d_skip], c->heads);
}

void tg_scalar_oracle_backward(const tg_oracle_call *call, const struct scalar_oracle *how)
{
    struct walk w = plan(call, how);
    if (!allocate_backward(&w))
        return;
    zero_sums(&w);
    for (int64_t i = 0; i < call->batch * call->heads; i++) {
        w.at = oracle_head(call, i);
        walk_back(&w);
    }
    free(w.memory);
}
