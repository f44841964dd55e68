/* variants/dfw_oracle.c - dfw's recurrence and its adjoint, token by token, in fp64 (dfw.h). */
#include "variants/dfw.h"
#include "variants/oracle_head.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* A head of a sequence, and where to work. */
struct walk {
    const tg_oracle_call *call;
    struct oracle_head at;
    int64_t n_state, stride; /* tokens from one checkpoint to the next */
    double *memory, *state;  /* forward: the state; backward: its gradient */
    double *checkpoints;     /* the state before every stride-th token */
    double *history;         /* states before the tokens of one stride, and behind the last */
};

static bool allocate(struct walk *w, bool backward)
{
    const int64_t tokens = oracle_longest(w->call);
    w->n_state = w->call->dqk * w->call->dhv;
    w->stride = (int64_t)ceil(sqrt((double)tokens)) + 1;
    const int64_t n_checkpoints = backward ? tokens / w->stride + 1 : 0, kept = backward ? w->stride + 1 : 0;
    w->memory = malloc((size_t)((1 + n_checkpoints + kept) * w->n_state + 1) * sizeof *w->memory);
    w->state = w->memory;
    w->checkpoints = w->memory + w->n_state;
    w->history = w->checkpoints + n_checkpoints * w->n_state;
    return w->memory;
}

static void load(double *to, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from ? from[i] : 0;
}

/* A head's entry of a tensor of states. */
static double *of_head(const struct walk *w, double *states)
{
    return states ? states + w->at.state * w->n_state : NULL;
}
static const double *given(const struct walk *w, int tile)
{
    return of_head(w, (double *)w->call->in[tile]);
}

static double left(const struct walk *w, int64_t t, int64_t x)
{
    return exp(w->call->in[GL][(w->at.first + t) * w->call->dqk + x]);
}
static double right(const struct walk *w, int64_t t, int64_t y)
{
    return exp(w->call->in[GR][(w->at.first + t) * w->call->dhv + y]);
}

/* after = the state behind token t, of the one before; they may be the same. */
static void step(const struct walk *w, int64_t t, const double *before, double *after)
{
    const tg_oracle_call *c = w->call;
    const double *k = c->in[K] + (w->at.shared + t) * c->dqk, *v = c->in[V] + (w->at.first + t) * c->dhv;
    for (int64_t y = 0; y < c->dhv; y++) {
        const double by = right(w, t, y);
        for (int64_t x = 0; x < c->dqk; x++)
            after[x * c->dhv + y] = left(w, t, x) * by * before[x * c->dhv + y] + k[x] * v[y];
    }
}

static void read_state(const struct walk *w, int64_t t)
{
    const tg_oracle_call *c = w->call;
    const double *q = c->in[Q] + (w->at.shared + t) * c->dqk;
    double *h = c->out[H] + (w->at.first + t) * c->dhv;
    load(h, NULL, c->dhv);
    for (int64_t x = 0; x < c->dqk; x++)
        for (int64_t y = 0; y < c->dhv; y++)
            h[y] += c->scalars[0] * q[x] * w->state[x * c->dhv + y];
}

void tg_dfw_oracle(const tg_oracle_call *call)
{
    struct walk w = {.call = call};
    if (!allocate(&w, false))
        return;
    for (int64_t i = 0; i < call->batch * call->heads; i++) {
        w.at = oracle_head(call, i);
        load(w.state, given(&w, S0), w.n_state);
        for (int64_t t = 0; t < w.at.tokens; t++) {
            step(&w, t, w.state, w.state);
            if (call->out[H])
                read_state(&w, t);
        }
        if (call->out[S])
            load(of_head(&w, call->out[S]), w.state, w.n_state);
    }
    free(w.memory);
}

/* ---- gradients ---- */

static void add(double *to, int64_t i, double x)
{
    if (to)
        to[i] += x;
}

/* Of token t: w->state is that of the state after it, and becomes that of the state before. */
static void step_back(const struct walk *w, int64_t t, const double *before, const double *after)
{
    const tg_oracle_call *c = w->call;
    const int64_t row = w->at.first + t, shared = w->at.shared + t;
    const double *q = c->in[Q] + shared * c->dqk, *k = c->in[K] + shared * c->dqk;
    const double *v = c->in[V] + row * c->dhv, *dh = c->in[DH] + row * c->dhv, scale = c->scalars[0];
    for (int64_t y = 0; y < c->dhv; y++) {
        const double by = right(w, t, y);
        for (int64_t x = 0; x < c->dqk; x++) {
            double *ds = &w->state[x * c->dhv + y];
            const double decay = left(w, t, x) * by, leaves = decay * before[x * c->dhv + y];
            *ds += scale * q[x] * dh[y];
            add(c->out[DQ], shared * c->dqk + x, scale * after[x * c->dhv + y] * dh[y]);
            add(c->out[DK], shared * c->dqk + x, *ds * v[y]);
            add(c->out[DV], row * c->dhv + y, *ds * k[x]);
            add(c->out[DGL], row * c->dqk + x, *ds * leaves);
            add(c->out[DGR], row * c->dhv + y, *ds * leaves);
            *ds *= decay;
        }
    }
}

/* From the last token to the first, with the states of one stride after the other made again. */
static void head_back(const struct walk *w)
{
    const int64_t n = w->n_state, tokens = w->at.tokens;
    load(w->history, given(w, S0), n);
    for (int64_t t = 0; t < tokens; t++) {
        if (t % w->stride == 0)
            load(w->checkpoints + t / w->stride * n, w->history, n);
        step(w, t, w->history, w->history);
    }
    load(w->state, given(w, DS), n);
    for (int64_t s = (tokens + w->stride - 1) / w->stride; s-- > 0;) {
        const int64_t first = s * w->stride, end = first + w->stride < tokens ? first + w->stride : tokens;
        load(w->history, w->checkpoints + s * n, n);
        for (int64_t t = first; t < end; t++)
            step(w, t, w->history + (t - first) * n, w->history + (t - first + 1) * n);
        for (int64_t t = end; t-- > first;)
            step_back(w, t, w->history + (t - first) * n, w->history + (t - first + 1) * n);
    }
}

void tg_dfw_oracle_backward(const tg_oracle_call *call)
{
    struct walk w = {.call = call};
    const int64_t rows = (call->cuts ? 1 : call->batch) * call->heads * call->tokens, keys = rows / call->group;
    if (!allocate(&w, true))
        return;
    const struct {
        int tile;
        int64_t n;
    } sums[] = {{DQ, keys * call->dqk}, {DK, keys * call->dqk}, {DV, rows * call->dhv}, {DGL, rows * call->dqk}, {DGR, rows * call->dhv}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (call->out[sums[i].tile])
            load(call->out[sums[i].tile], NULL, sums[i].n);
    for (int64_t i = 0; i < call->batch * call->heads; i++) {
        w.at = oracle_head(call, i);
        head_back(&w);
        if (call->out[DS0])
            load(of_head(&w, call->out[DS0]), w.state, w.n_state);
    }
    free(w.memory);
}
