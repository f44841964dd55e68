/* test_oracle_nla.c - the fp64 truth of normalised linear attention, causal and not:
 * - the recurrence against the sums as they are written down;
 * - its adjoint against finite differences of those;
 * - both against results of another program, in tests/data.
 * test_oracle_nla [--only TEXT], from the repository's root. */
#include "kernels/tap.h"
#include "tuning/numbers.h"
#include "safetensors.h"
#include "variants/nla.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum extent { ABSENT, KEYS, VALUES, TOKENS, HEADS, MATRICES, ROWS, COLUMNS, NUMBERS };

/* Role and name are those of the files. */
static const struct tensor {
    const char *role, *name;
    enum extent extent;
    double mean, sigma; /* of random inputs */
} tensors[NLA_TILES] = {
    [Q] = {"in", "q", KEYS, 0, 1},           [K] = {"in", "k", KEYS, 0, 1},
    [V] = {"in", "v", VALUES, 0, 1},         [PA] = {"in", "a", HEADS, 1.2, 0.1},
    [PB] = {"in", "b", HEADS, 0.8, 0.1},     [C0] = {"in", "C0", MATRICES, 0, 1},
    [N0] = {"in", "n0", ROWS, 0, 1},         [SV0] = {"in", "sv0", COLUMNS, 0, 1},
    [CNT0] = {"in", "c0", NUMBERS, 9, 0.5},  [H] = {"out", "h", VALUES, 0, 0},
    [C] = {"out", "C", MATRICES, 0, 0},      [N] = {"out", "n", ROWS, 0, 0},
    [SV] = {"out", "sv", COLUMNS, 0, 0},     [CNT] = {"out", "c", NUMBERS, 0, 0},
    [DEN] = {"out", "den", TOKENS, 0, 0},    [DH] = {"dout", "h", VALUES, 0, 1},
    [DC] = {"dout", "C", MATRICES, 0, 1},    [DN] = {"dout", "n", ROWS, 0, 1},
    [DSV] = {"dout", "sv", COLUMNS, 0, 1},   [DQ] = {"grad", "q", KEYS, 0, 0},
    [DK] = {"grad", "k", KEYS, 0, 0},        [DV] = {"grad", "v", VALUES, 0, 0},
    [DA] = {"grad", "a", HEADS, 0, 0},       [DB] = {"grad", "b", HEADS, 0, 0},
    [DC0] = {"grad", "C0", MATRICES, 0, 0},  [DN0] = {"grad", "n0", ROWS, 0, 0},
    [DSV0] = {"grad", "sv0", COLUMNS, 0, 0},
};

struct problem {
    bool is_causal;
    tg_oracle_call call;
    double scalars[3];
    double *in[NLA_TILES], *out[NLA_TILES];
};

static bool has_role(int tile, const char *role)
{
    return tensors[tile].extent && strcmp(tensors[tile].role, role) == 0;
}

static int find_tile(const char *role, const char *name)
{
    for (int tile = 1; tile < NLA_TILES; tile++)
        if (has_role(tile, role) && strcmp(tensors[tile].name, name) == 0)
            return tile;
    return 0;
}

static size_t count(const tg_oracle_call *c, int tile)
{
    const int64_t tokens = (c->cuts ? 1 : c->batch) * c->tokens, states = c->batch * c->heads;
    const int64_t counts[] = {
        [ABSENT] = 0,
        [KEYS] = tokens * c->heads / c->group * c->dqk,
        [VALUES] = tokens * c->heads * c->dhv,
        [TOKENS] = tokens * c->heads,
        [HEADS] = c->heads,
        [MATRICES] = states * c->dqk * c->dhv,
        [ROWS] = states * c->dqk,
        [COLUMNS] = states * c->dhv,
        [NUMBERS] = states,
    };
    return (size_t)counts[tensors[tile].extent];
}

static double *allocate(size_t n)
{
    double *x = malloc((n + 1) * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (double)NAN;
    return x;
}

static void make_outputs(struct problem *p)
{
    for (int tile = 1; tile < NLA_TILES; tile++)
        if (has_role(tile, "out") || has_role(tile, "grad"))
            p->out[tile] = allocate(count(&p->call, tile));
}

static void release(struct problem *p)
{
    for (int tile = 1; tile < NLA_TILES; tile++) {
        free(p->in[tile]);
        free(p->out[tile]);
    }
}

/* ---- the program under test ---- */

static tg_oracle_call call_of(const struct problem *p)
{
    tg_oracle_call call = p->call;
    call.scalars = p->scalars;
    call.in = (const double *const *)p->in;
    call.out = (double *const *)p->out;
    return call;
}

static void run_forward(const struct problem *p)
{
    const tg_oracle_call call = call_of(p);
    tg_nla_oracle(&call, p->is_causal);
}

/* The backward that is not causal takes the final state of the forward. */
static void run_backward(struct problem *p)
{
    for (int tile = C; tile <= SV && !p->is_causal; tile++)
        p->in[tile] = p->out[tile];
    const tg_oracle_call call = call_of(p);
    tg_nla_oracle_backward(&call, p->is_causal);
    for (int tile = C; tile <= SV; tile++)
        p->in[tile] = NULL;
}

/* ---- the sums as they are written down ---- */

/* A head of a sequence: its first rows, its states, and what the sums use. */
struct direct {
    const struct problem *p;
    double **out;
    int64_t head, state, tokens, row, shared;
};

static double in_or_zero(const struct direct *d, int tile, int64_t at)
{
    return d->p->in[tile] ? d->p->in[tile][at] : 0;
}

/* Element x of the normalised row of q or k. */
static double normal(const struct direct *d, int tile, int64_t t, int64_t x)
{
    const int64_t dqk = d->p->call.dqk;
    const double *row = d->p->in[tile] + (d->shared + t) * dqk;
    double sum = d->p->scalars[EPS];
    for (int64_t i = 0; i < dqk; i++)
        sum += row[i] * row[i];
    return row[x] / sqrt(sum);
}

/* Element y of the numerator of token i; y = dhv: the denominator. */
static double weighted(const struct direct *d, int64_t i, int64_t y)
{
    const tg_oracle_call *c = &d->p->call;
    const double a = d->p->in[PA][d->head], b = d->p->in[PB][d->head];
    const bool is_number = y == c->dhv;
    double sum = a * (is_number ? d->p->scalars[COUNT0] + in_or_zero(d, CNT0, d->state)
                                : in_or_zero(d, SV0, d->state * c->dhv + y));
    for (int64_t x = 0; x < c->dqk; x++)
        sum += b * normal(d, Q, i, x) *
               (is_number ? in_or_zero(d, N0, d->state * c->dqk + x)
                          : in_or_zero(d, C0, (d->state * c->dqk + x) * c->dhv + y));
    for (int64_t n = 0; n < (d->p->is_causal ? i + 1 : d->tokens); n++) {
        double f = a;
        for (int64_t x = 0; x < c->dqk; x++)
            f += b * normal(d, Q, i, x) * normal(d, K, n, x);
        sum += f * (is_number ? 1 : d->p->in[V][(d->row + n) * c->dhv + y]);
    }
    return sum;
}

static void direct_states(const struct direct *d)
{
    const tg_oracle_call *c = &d->p->call;
    double *final[] = {d->out[C] + d->state * c->dqk * c->dhv, d->out[N] + d->state * c->dqk,
                       d->out[SV] + d->state * c->dhv};
    for (int64_t x = 0; x < c->dqk; x++) {
        final[1][x] = in_or_zero(d, N0, d->state * c->dqk + x);
        for (int64_t y = 0; y < c->dhv; y++)
            final[0][x * c->dhv + y] = in_or_zero(d, C0, (d->state * c->dqk + x) * c->dhv + y);
    }
    for (int64_t y = 0; y < c->dhv; y++)
        final[2][y] = in_or_zero(d, SV0, d->state * c->dhv + y);
    for (int64_t t = 0; t < d->tokens; t++) {
        const double *v = d->p->in[V] + (d->row + t) * c->dhv;
        for (int64_t x = 0; x < c->dqk; x++) {
            const double k = normal(d, K, t, x);
            final[1][x] += k;
            for (int64_t y = 0; y < c->dhv; y++)
                final[0][x * c->dhv + y] += k * v[y];
        }
        for (int64_t y = 0; y < c->dhv; y++)
            final[2][y] += v[y];
    }
    d->out[CNT][d->state] = d->p->scalars[COUNT0] + in_or_zero(d, CNT0, d->state) + (double)d->tokens;
}

static void direct_head(const struct direct *d)
{
    const int64_t dhv = d->p->call.dhv;
    for (int64_t i = 0; i < d->tokens; i++) {
        const double den = d->out[DEN][d->row + i] = weighted(d, i, dhv);
        for (int64_t y = 0; y < dhv; y++)
            d->out[H][(d->row + i) * dhv + y] = weighted(d, i, y) / den;
    }
    direct_states(d);
}

static void direct(const struct problem *p, double **out)
{
    const tg_oracle_call *c = &p->call;
    for (int64_t s = 0; s < c->batch; s++)
        for (int64_t head = 0; head < c->heads; head++) {
            struct direct d = {p, out, .head = head, .state = s * c->heads + head};
            const int64_t groups = c->heads / c->group, of_group = head / c->group;
            d.tokens = c->cuts ? c->cuts[s + 1] - c->cuts[s] : c->tokens;
            d.row = c->cuts ? head * c->tokens + c->cuts[s] : d.state * c->tokens;
            d.shared = c->cuts ? of_group * c->tokens + c->cuts[s] : (s * groups + of_group) * c->tokens;
            direct_head(&d);
        }
}

/* ---- cases ---- */

struct setting {
    bool is_causal, packed, states;
    int64_t group;
};

/* Empty sequences at both ends and between, one of a single token. */
static const int64_t cuts[] = {0, 0, 1, 5, 5, 9, 9};

/* Without a state behind it an empty sequence has no denominator, but no token reads it. */
static void make_random(struct problem *p, const struct setting *s)
{
    *p = (struct problem){.is_causal = s->is_causal, .scalars = {[EPS] = 0.3, [COUNT0] = s->states ? 2 : 0}};
    p->call = s->packed ? (tg_oracle_call){6, 4, 9, 3, 2, .group = s->group, .cuts = cuts}
                        : (tg_oracle_call){2, 4, 4, 3, 5, .group = s->group};
    for (int tile = 1; tile < NLA_TILES; tile++) {
        const struct tensor *t = &tensors[tile];
        const bool is_state = t->extent >= MATRICES;
        if ((!has_role(tile, "in") && !has_role(tile, "dout")) || (is_state && !s->states))
            continue;
        const size_t n = count(&p->call, tile);
        p->in[tile] = allocate(n);
        tg_num_fill_normal((tg_array){p->in[tile], TG_NUM_F64, n}, (tg_random){2, (uint64_t)tile}, t->mean, t->sigma);
    }
    make_outputs(p);
}

static void expect_close(const char *role, const char *name, const double *x, const double *truth, size_t n,
                         double tolerance)
{
    const tg_tensor_error e =
        tg_num_compare((tg_const_array){x, TG_NUM_F64, n}, (tg_const_array){truth, TG_NUM_F64, n});
    const int64_t at = e.worst_index;
    tap_expect(!e.finite_mismatch && e.rms_ratio <= tolerance, "%s.%s: error %.1e, wanted %.0e; [%lld] is %g, not %g",
               role, name, e.rms_ratio, tolerance, (long long)at, at < 0 ? 0 : x[at], at < 0 ? 0 : truth[at]);
}

/* Of fp64 sums of a few dozen terms. */
static const double rounding = 1e-14;

static void make_direct(const struct problem *p, double **out)
{
    for (int tile = 1; tile < NLA_TILES; tile++)
        out[tile] = has_role(tile, "out") ? allocate(count(&p->call, tile)) : NULL;
    direct(p, out);
}

static void check_forward(const struct problem *p)
{
    double *truth[NLA_TILES];
    make_direct(p, truth);
    run_forward(p);
    for (int tile = 1; tile < NLA_TILES; tile++)
        if (truth[tile])
            expect_close("out", tensors[tile].name, p->out[tile], truth[tile], count(&p->call, tile), rounding);
    for (int tile = 1; tile < NLA_TILES; tile++)
        free(truth[tile]);
}

/* ---- finite differences ---- */

static double sum_of_products(const double *x, const double *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; x && y && i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* The number whose gradients are DQ, DK, ... */
static double loss(const struct problem *p, double **out)
{
    static const int pairs[][2] = {{H, DH}, {C, DC}, {N, DN}, {SV, DSV}};
    double sum = 0;
    direct(p, out);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        sum += sum_of_products(out[pairs[i][0]], p->in[pairs[i][1]], count(&p->call, pairs[i][0]));
    return sum;
}

/* Off from the truth by step^2/6 times the third derivative, some dozens, and by the rounding of the loss (of order 10
 * times 1e-16, some dozen terms) over the step: 1e-9. Measured: below 4e-9. */
static const double step = 2e-5, fd_tolerance = 1e-7;

static double slope(const struct problem *p, double *at, double **out)
{
    const double x = *at;
    *at = x + step;
    const double above = loss(p, out), top = *at;
    *at = x - step;
    const double below = loss(p, out), bottom = *at;
    *at = x;
    return (above - below) / (top - bottom);
}

static void check_gradient(const struct problem *p, int input, double **out)
{
    const int tile = find_tile("grad", tensors[input].name);
    const size_t n = count(&p->call, input);
    double *expected = allocate(n), largest = 1;
    for (size_t i = 0; i < n; i++) {
        expected[i] = slope(p, &p->in[input][i], out);
        largest = fmax(largest, fabs(expected[i]));
    }
    for (size_t i = 0; i < n; i++)
        tap_expect(fabs(p->out[tile][i] - expected[i]) <= fd_tolerance * largest,
                   "grad.%s[%zu] is %.10g, finite differences give %.10g", tensors[tile].name, i, p->out[tile][i],
                   expected[i]);
    free(expected);
}

static void check_gradients(struct problem *p)
{
    double *out[NLA_TILES];
    make_direct(p, out);
    run_backward(p);
    for (int input = 1; input < NLA_TILES; input++)
        if (has_role(input, "in") && p->in[input] && input != CNT0)
            check_gradient(p, input, out);
    for (int tile = 1; tile < NLA_TILES; tile++)
        free(out[tile]);
}

static void test_setting(const struct setting *s)
{
    struct problem p;
    if (!tap_begin("%s, group %d%s%s", s->is_causal ? "causal" : "full", (int)s->group, s->packed ? ", packed" : "",
                   s->states ? ", states" : ""))
        return;
    make_random(&p, s);
    check_forward(&p);
    check_gradients(&p);
    release(&p);
    tap_end();
}

/* ---- optional tensors ---- */

/* Each output alone is what it is among the others. */
static void test_optional(bool is_causal, const char *role, void (*run)(struct problem *))
{
    struct problem p;
    double *all[NLA_TILES];
    if (!tap_begin("%s, each %s alone", is_causal ? "causal" : "full", role))
        return;
    make_random(&p, &(struct setting){is_causal, .packed = true, .states = true, .group = 2});
    run_forward(&p);
    run(&p);
    memcpy(all, p.out, sizeof all);
    for (int tile = 1; tile < NLA_TILES; tile++) {
        if (!has_role(tile, role))
            continue;
        const size_t n = count(&p.call, tile);
        memset(p.out, 0, sizeof p.out);
        memcpy(p.out + C, all + C, (SV - C + 1) * sizeof *all);
        double *alone = p.out[tile] = allocate(n);
        run(&p);
        tap_expect(memcmp(all[tile], alone, n * sizeof *alone) == 0, "%s differs", tensors[tile].name);
        free(alone);
    }
    memcpy(p.out, all, sizeof all);
    release(&p);
    tap_end();
}

static void forward_alone(struct problem *p)
{
    run_forward(p);
}

/* ---- golden data: another program's fp64 results, rounded to float (relative 3e-8 rms) ---- */

static const double golden_tolerance = 1e-6;

/* One number stands for all heads, and its gradient is the sum of theirs. */
static void load(struct problem *p, const struct st_tensor *t, int tile)
{
    const size_t n = count(&p->call, tile), have = (size_t)st_elements(t);
    p->in[tile] = allocate(n);
    for (size_t i = 0; i < n; i++)
        p->in[tile][i] = tg_num_load(t->data, t->dtype, have == n ? i : 0);
}

static void compare(const struct problem *p, const struct st_tensor *t, const char *role, int tile)
{
    const size_t n = (size_t)st_elements(t), own = count(&p->call, tile);
    double *truth = allocate(n), sum = 0;
    tg_num_convert((tg_array){truth, TG_NUM_F64, n}, st_array(t));
    for (size_t i = 0; i < own; i++)
        sum += p->out[tile][i];
    expect_close(role, tensors[tile].name, n < own ? &sum : p->out[tile], truth, n, golden_tolerance);
    free(truth);
}

static void each_tensor(struct problem *p, const struct st_file *file, const char *role, bool is_input)
{
    int n = 0;
    for (size_t i = 0; i < st_count(file); i++) {
        const struct st_tensor *t = st_at(file, i);
        const char *dot = strchr(t->name, '.');
        if (!dot || strncmp(t->name, role, (size_t)(dot - t->name)) != 0 || role[dot - t->name])
            continue;
        const int tile = find_tile(role, dot + 1);
        if (!tap_expect(tile != 0, "%s: unknown", t->name))
            continue;
        if (is_input)
            load(p, t, tile);
        else
            compare(p, t, role, tile);
        n++;
    }
    tap_expect(n > 0, "no %s in the file", role);
}

static void test_golden(const char *name, bool is_causal, double count0)
{
    struct problem p = {.is_causal = is_causal, .scalars = {[EPS] = 1e-6, [COUNT0] = count0}};
    struct st_file *file = NULL;
    char path[128], err[256];
    if (!tap_begin("golden %s", name))
        return;
    snprintf(path, sizeof path, "tests/data/%s.safetensors", name);
    if (tap_expect(st_open(path, &file, err, sizeof err), "%s", err)) {
        const struct st_tensor *q = st_find(file, "in.q"), *v = st_find(file, "in.v");
        p.call = (tg_oracle_call){q->shape[0], v->shape[1], q->shape[2], q->shape[3], v->shape[3], .group = 1};
        each_tensor(&p, file, "in", true);
        each_tensor(&p, file, "dout", true);
        make_outputs(&p);
        run_forward(&p);
        each_tensor(&p, file, "out", false);
        run_backward(&p);
        each_tensor(&p, file, "grad", false);
        release(&p);
        st_close(file);
    }
    tap_end();
}

int main(int argc, char **argv)
{
    if (!tap_arguments(argc, argv))
        return 2;
    for (int i = 0; i < 16; i++)
        test_setting(&(struct setting){.is_causal = i & 1, .packed = i & 2, .states = i & 4, .group = i & 8 ? 2 : 1});
    for (int is_causal = 0; is_causal < 2; is_causal++) {
        test_optional(is_causal, "out", forward_alone);
        test_optional(is_causal, "grad", run_backward);
    }
    test_golden("nla_b", true, 8);
    test_golden("nla_full_b", false, 8);
    return tap_finish();
}
