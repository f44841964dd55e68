/* tests/oracle_problem.c - the tables, gates and calls of the tests of the oracle (oracle_problem.h). */
#include "tests/oracle_problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct tensor tensors[N_TILES] = {
    [Q] = {"in", "q", "Cm", KEYS, 0, 1},
    [K] = {"in", "k", "Bm", KEYS, 0, 1},
    [V] = {"in", "v", "x", VALUES, 0, 1},
    [S0] = {"in", "S0", "C0", STATES, 0, 1},
    [N0] = {"in", "n0", "n0", COLUMNS, 0, 2},
    [M0] = {"in", "m0", "m0", NUMBERS, 0, 1},
    [H] = {"out", "h", "h", VALUES, 0, 0},
    [S] = {"out", "S", "C", STATES, 0, 0},
    [N] = {"out", "n", "n", COLUMNS, 0, 0},
    [M] = {"out", "m", "m", NUMBERS, 0, 0},
    [QN] = {"out", "qn", "qn", TOKENS, 0, 0},
    [DH] = {"dout", "h", "h", VALUES, 0, 1},
    [DS] = {"dout", "S", "C", STATES, 0, 1},
    [DN] = {"dout", "n", "n", COLUMNS, 0, 1},
    [DQ] = {"grad", "q", "Cm", KEYS, 0, 0},
    [DK] = {"grad", "k", "Bm", KEYS, 0, 0},
    [DV] = {"grad", "v", "x", VALUES, 0, 0},
    [DS0] = {"grad", "S0", "C0", STATES, 0, 0},
    [DN0] = {"grad", "n0", "n0", COLUMNS, 0, 0},
    [F] = {"in", "f", "f", TOKENS, 1, 2},
    [I] = {"in", "i", "i", TOKENS, 0, 1},
    [DECAY] = {"in", "a", "a", TOKENS, -0.5, 0.3},
    [LOG_LAMBDA] = {"in", "log_lambda", "log_lambda", HEADS, -0.5, 0.3},
    [DT_RAW] = {"in", "dt_raw", "dt_raw", TOKENS, 0, 1},
    [DT_BIAS] = {"in", "dt_bias", "dt_bias", HEADS, 0, 1},
    [A_LOG] = {"in", "A_log", "A_log", HEADS, -1, 0.5},
    [SKIP] = {"in", "D", "D", HEADS, 0, 1},
    [D_F] = {"grad", "f", "f", TOKENS, 0, 0},
    [D_I] = {"grad", "i", "i", TOKENS, 0, 0},
    [D_DECAY] = {"grad", "a", "a", TOKENS, 0, 0},
    [D_LOG_LAMBDA] = {"grad", "log_lambda", "log_lambda", HEADS, 0, 0},
    [D_DT_RAW] = {"grad", "dt_raw", "dt_raw", TOKENS, 0, 0},
    [D_DT_BIAS] = {"grad", "dt_bias", "dt_bias", HEADS, 0, 0},
    [D_A_LOG] = {"grad", "A_log", "A_log", HEADS, 0, 0},
    [D_SKIP] = {"grad", "D", "D", HEADS, 0, 0},
};

int find_tile(const char *role, const char *name)
{
    for (int tile = 1; tile < N_TILES; tile++)
        if (tensors[tile].extent && strcmp(tensors[tile].role, role) == 0 &&
            (strcmp(tensors[tile].name, name) == 0 || strcmp(tensors[tile].alias, name) == 0))
            return tile;
    return 0;
}

bool has_role(int tile, const char *role)
{
    return tensors[tile].extent && strcmp(tensors[tile].role, role) == 0;
}

size_t count(const tg_oracle_call *c, int tile)
{
    const int64_t tokens = (c->cuts ? 1 : c->batch) * c->tokens, states = c->batch * c->heads;
    const int64_t counts[] = {
        [ABSENT] = 0,
        [KEYS] = tokens * c->heads / c->group * c->dqk,
        [VALUES] = tokens * c->heads * c->dhv,
        [TOKENS] = tokens * c->heads,
        [HEADS] = c->heads,
        [STATES] = states * c->dqk * c->dhv,
        [COLUMNS] = states * c->dqk,
        [NUMBERS] = states,
    };
    return (size_t)counts[tensors[tile].extent];
}

/* ---- the variants' gates ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void add(const tg_oracle_call *c, int tile, int64_t at, double x)
{
    if (c->out[tile])
        c->out[tile][at] += x;
}

static void no_gate(const tg_oracle_call *c, struct scalar_token at, double *a, double *li)
{
    (void)c, (void)at;
    *a = *li = 0;
}

static void no_gate_back(const tg_oracle_call *c, struct scalar_token at, double da, double dli)
{
    (void)c, (void)at, (void)da, (void)dli;
}

static void constant(const tg_oracle_call *c, struct scalar_token at, double *a, double *li)
{
    *a = c->in[LOG_LAMBDA][at.head];
    *li = 0;
}

static void constant_back(const tg_oracle_call *c, struct scalar_token at, double da, double dli)
{
    (void)dli;
    add(c, D_LOG_LAMBDA, at.head, da);
}

static void retention(const tg_oracle_call *c, struct scalar_token at, double *a, double *li)
{
    *a = -softplus(-c->in[F][at.gate]) / c->scalars[TAU];
    *li = 0;
}

static void retention_back(const tg_oracle_call *c, struct scalar_token at, double da, double dli)
{
    (void)dli;
    add(c, D_F, at.gate, da * sigmoid(-c->in[F][at.gate]) / c->scalars[TAU]);
}

static void given(const tg_oracle_call *c, struct scalar_token at, double *a, double *li)
{
    *a = c->in[DECAY][at.gate];
    *li = 0;
}

static void given_back(const tg_oracle_call *c, struct scalar_token at, double da, double dli)
{
    (void)dli;
    add(c, D_DECAY, at.gate, da);
}

static void ssd(const tg_oracle_call *c, struct scalar_token at, double *a, double *li)
{
    const double dt = softplus(c->in[DT_RAW][at.gate] + c->in[DT_BIAS][at.head]);
    *a = dt * -exp(c->in[A_LOG][at.head]);
    *li = log(dt);
}

static void ssd_back(const tg_oracle_call *c, struct scalar_token at, double da, double dli)
{
    const double z = c->in[DT_RAW][at.gate] + c->in[DT_BIAS][at.head], dt = softplus(z);
    const double rate = -exp(c->in[A_LOG][at.head]);
    const double dz = (rate * da + dli / dt) * sigmoid(z);
    add(c, D_DT_RAW, at.gate, dz);
    add(c, D_DT_BIAS, at.head, dz);
    add(c, D_A_LOG, at.head, da * dt * rate);
}

static void sigmoids(const tg_oracle_call *c, struct scalar_token at, double *a, double *li)
{
    *a = -softplus(-c->in[F][at.gate]);
    *li = -softplus(-c->in[I][at.gate]);
}

static void sigmoids_back(const tg_oracle_call *c, struct scalar_token at, double da, double dli)
{
    add(c, D_F, at.gate, da * sigmoid(-c->in[F][at.gate]));
    add(c, D_I, at.gate, dli * sigmoid(-c->in[I][at.gate]));
}

static void exponential(const tg_oracle_call *c, struct scalar_token at, double *a, double *li)
{
    *a = -softplus(-c->in[F][at.gate]);
    *li = c->in[I][at.gate];
}

static void exponential_back(const tg_oracle_call *c, struct scalar_token at, double da, double dli)
{
    add(c, D_F, at.gate, da * sigmoid(-c->in[F][at.gate]));
    add(c, D_I, at.gate, dli);
}

const struct kind kinds[N_KINDS] = {
    {"la", {.gate = no_gate, .gate_back = no_gate_back}, {0}},
    {"cdecay", {.gate = constant, .gate_back = constant_back}, {LOG_LAMBDA}},
    {"gret", {.gate = retention, .gate_back = retention_back}, {F}},
    {"sgla", {.gate = given, .gate_back = given_back}, {DECAY}},
    {"ssd", {.gate = ssd, .gate_back = ssd_back, .skip = SKIP, .d_skip = D_SKIP}, {DT_RAW, DT_BIAS, A_LOG, SKIP}},
    {"mlstmsig", {.gate = sigmoids, .gate_back = sigmoids_back}, {F, I}},
    {"mlstmsign", {sigmoids, sigmoids_back, SCALAR_NORMALISED, .eps = EPS, .exact = EXACT}, {F, I}},
    {"mlstmexp", {exponential, exponential_back, SCALAR_MAX_NORMALISED, .eps = EPS, .exact = EXACT}, {F, I}},
};

bool is_normalised(const struct kind *kind)
{
    return kind->how.normaliser != SCALAR_PLAIN;
}

bool has_max(const struct kind *kind)
{
    return kind->how.normaliser == SCALAR_MAX_NORMALISED;
}

/* ---- a problem: a call and its memory ---- */

double *allocate(size_t n)
{
    double *x = malloc((n + 1) * sizeof *x);
    if (!x)
        abort();
    for (size_t i = 0; i <= n; i++)
        x[i] = (double)NAN;
    return x;
}

void make_outputs(struct problem *p)
{
    for (int tile = 1; tile < N_TILES; tile++)
        if (has_role(tile, "out") || has_role(tile, "grad"))
            p->out[tile] = allocate(count(&p->call, tile));
}

void set_call(struct problem *p, const tg_oracle_call *shape)
{
    p->call = *shape;
    p->call.scalars = p->scalars;
    p->call.in = (const double *const *)p->in;
    p->call.out = p->out;
}

void release(struct problem *p)
{
    for (int tile = 0; tile < N_TILES; tile++) {
        free(p->in[tile]);
        free(p->out[tile]);
    }
}

void run_forward(struct problem *p)
{
    for (int tile = 1; tile < N_TILES; tile++)
        for (size_t i = 0; p->out[tile] && i < count(&p->call, tile); i++)
            p->out[tile][i] = (double)NAN;
    tg_scalar_oracle(&p->call, &p->kind->how);
}

void run_backward(struct problem *p)
{
    for (int tile = 1; tile < N_TILES; tile++)
        for (size_t i = 0; p->out[tile] && i < count(&p->call, tile); i++)
            p->out[tile][i] = (double)NAN;
    for (const int *own = p->kind->own; *own; own++) {
        const int tile = find_tile("grad", tensors[*own].name);
        if (tile != p->kind->how.d_skip) /* which the oracle knows */
            tg_oracle_zero(p->out[tile], (int64_t)count(&p->call, tile));
    }
    tg_scalar_oracle_backward(&p->call, &p->kind->how);
}
