/* test_oracle.c - the fp64 truth of the scalar-gate family, from which all kernels are judged:
 * - the recurrence against the parallel form of the same operator, which
 * shares only the gates with it;
 * - its adjoint against finite differences of that parallel form;
 * - both against results of another program, in tests/data.
 * test_oracle [--only TEXT], from the repository's root. */
#include "kernels/tap.h"
#include "safetensors.h"
#include "tuning/numbers.h"
#include "tests/oracle_problem.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the parallel form ---- */

/* What gradients count as constant: m, and in the paper's convention den, of each token [B, NH, T].
 * The first evaluation records them, those at shifted inputs use them. */
struct constants {
    double *m, *den;
    bool use_m, use_den;
};

/* A head of a sequence. Inputs and outputs are at its first row. */
struct direct {
    const struct problem *p;
    struct constants *constants;
    double **out;
    int64_t sequence, head, tokens, row, shared, state;
    double *a, *li; /* [tokens] */
};

static double in_or_zero(const struct direct *d, int tile, int64_t at)
{
    return d->p->in[tile] ? d->p->in[tile][at] : 0;
}

/* log of the weight of token j in the state after token i; j = -1: of the initial state. */
static double log_weight(const struct direct *d, int64_t i, int64_t j)
{
    double sum = j < 0 ? (has_max(d->p->kind) ? in_or_zero(d, M0, d->state) : 0) : d->li[j];
    for (int64_t t = j + 1; t <= i; t++)
        sum += d->a[t];
    return sum;
}

/* m after token i, of the inputs as they are; i = -1: of the initial state. */
static double max_of(const struct direct *d, int64_t i)
{
    double m = has_max(d->p->kind) ? log_weight(d, i, -1) : 0;
    for (int64_t j = 0; has_max(d->p->kind) && j <= i; j++)
        m = fmax(m, log_weight(d, i, j));
    return m;
}

static double frozen_max(const struct direct *d, int64_t i)
{
    if (i < 0 || !d->constants->use_m)
        return max_of(d, i);
    return d->constants->m[d->row + i];
}

/* Entry [x][y] of the state after token i; y = dhv: of the normaliser. */
static double state_at(const struct direct *d, int64_t i, int64_t x, int64_t y)
{
    const tg_oracle_call *c = &d->p->call;
    const double m = frozen_max(d, i), *k = d->p->in[K], *v = d->p->in[V];
    double sum =
        exp(log_weight(d, i, -1) - m) * (y == c->dhv ? in_or_zero(d, N0, d->state * c->dqk + x)
                                                     : in_or_zero(d, S0, (d->state * c->dqk + x) * c->dhv + y));
    for (int64_t j = 0; j <= i; j++)
        sum += exp(log_weight(d, i, j) - m) * k[(d->shared + j) * c->dqk + x] *
               (y == c->dhv ? 1 : v[(d->row + j) * c->dhv + y]);
    return sum;
}

static double read_at(const struct direct *d, int64_t i, int64_t y)
{
    const tg_oracle_call *c = &d->p->call;
    double sum = 0;
    for (int64_t x = 0; x < c->dqk; x++)
        sum += d->p->in[Q][(d->shared + i) * c->dqk + x] * state_at(d, i, x, y);
    return c->scalars[SCALE] * sum;
}

static void direct_token(const struct direct *d, int64_t i)
{
    const tg_oracle_call *c = &d->p->call;
    struct constants *constants = d->constants;
    const int64_t row = d->row + i;
    double den = 1, qn = (double)NAN; /* which a plain kind does not write */
    if (!constants->use_m)
        constants->m[row] = max_of(d, i);
    if (is_normalised(d->p->kind)) {
        qn = read_at(d, i, c->dhv);
        den = fmax(fabs(qn), exp(-constants->m[row])) + c->scalars[EPS];
    }
    if (constants->use_den)
        den = constants->den[row];
    else
        constants->den[row] = den;
    d->out[QN][row] = qn;
    for (int64_t y = 0; y < c->dhv; y++)
        d->out[H][row * c->dhv + y] =
            read_at(d, i, y) / den + in_or_zero(d, SKIP, d->head) * d->p->in[V][row * c->dhv + y];
}

static void direct_head(const struct direct *d)
{
    const tg_oracle_call *c = &d->p->call;
    for (int64_t t = 0; t < d->tokens; t++)
        d->p->kind->how.gate(c, (struct scalar_token){d->sequence, d->head, d->row + t}, &d->a[t], &d->li[t]);
    for (int64_t i = 0; i < d->tokens; i++)
        direct_token(d, i);
    const int64_t last = d->tokens - 1;
    for (int64_t x = 0; x < c->dqk; x++) {
        const int64_t at = d->state * c->dqk + x;
        for (int64_t y = 0; y < c->dhv; y++)
            d->out[S][at * c->dhv + y] = state_at(d, last, x, y);
        if (is_normalised(d->p->kind))
            d->out[N][at] = state_at(d, last, x, c->dhv);
    }
    if (has_max(d->p->kind))
        d->out[M][d->state] = frozen_max(d, last);
}

static void direct(const struct problem *p, double **out, struct constants *constants)
{
    const tg_oracle_call *c = &p->call;
    double *a = allocate((size_t)c->tokens), *li = allocate((size_t)c->tokens);
    for (int64_t s = 0; s < c->batch; s++)
        for (int64_t head = 0; head < c->heads; head++) {
            struct direct d = {p, constants, out, s, head, .a = a, .li = li};
            const int64_t groups = c->heads / c->group, of_group = head / c->group;
            d.state = s * c->heads + head;
            d.tokens = c->cuts ? c->cuts[s + 1] - c->cuts[s] : c->tokens;
            d.row = c->cuts ? head * c->tokens + c->cuts[s] : d.state * c->tokens;
            d.shared = c->cuts ? of_group * c->tokens + c->cuts[s] : (s * groups + of_group) * c->tokens;
            direct_head(&d);
        }
    free(a);
    free(li);
}

/* ---- cases ---- */

struct setting {
    int64_t group;
    bool packed, states; /* states: initial ones, and gradients that arrive for the final ones */
    double eps;
    bool exact;
};

/* Heads of two groups, empty sequences at both ends and between, one of a single token, and lengths
 * on both sides of a square (the adjoint has a checkpoint every sqrt(T) tokens or so). */
static const int64_t cuts[] = {0, 0, 1, 6, 6, 15, 15};

static tg_oracle_call shape_of(const struct setting *s)
{
    if (s->packed)
        return (tg_oracle_call){6, 4, 15, 3, 2, .group = s->group, .cuts = cuts};
    return (tg_oracle_call){2, 4, 5, 3, 5, .group = s->group};
}

static bool is_wanted(const struct kind *kind, int tile, bool states)
{
    if (tile >= SCALAR_TILES) {
        for (const int *own = kind->own; *own; own++)
            if (*own == tile)
                return true;
        return false;
    }
    if (tile == Q || tile == K || tile == V || tile == DH)
        return true;
    if (tile == S0 || tile == DS)
        return states;
    return states && (tile == M0 ? has_max(kind) : is_normalised(kind));
}

/* Of the random numbers of a tensor: by name, for tiles are added and numbered anew. */
static uint64_t stream_of(const struct tensor *t)
{
    uint64_t stream = 0;
    for (const char *c = t->role; *c; c++)
        stream = 31 * stream + (uint64_t)*c;
    for (const char *c = t->name; *c; c++)
        stream = 31 * stream + (uint64_t)*c;
    return stream;
}

static void make_random(struct problem *p, const struct kind *kind, const struct setting *s)
{
    const tg_oracle_call shape = shape_of(s);
    *p = (struct problem){.kind = kind, .scalars = {[SCALE] = 0.6, [TAU] = 4, [EPS] = s->eps, [EXACT] = s->exact}};
    set_call(p, &shape);
    for (int tile = 1; tile < N_TILES; tile++) {
        const struct tensor *t = &tensors[tile];
        if ((!has_role(tile, "in") && !has_role(tile, "dout")) || !is_wanted(kind, tile, s->states))
            continue;
        const size_t n = count(&p->call, tile);
        p->in[tile] = allocate(n);
        tg_num_fill_normal((tg_array){p->in[tile], TG_NUM_F64, n}, (tg_random){2, stream_of(t)}, t->mean, t->sigma);
    }
    make_outputs(p);
}

static void expect_close(const char *what, const double *x, const double *truth, size_t n, double tolerance)
{
    const tg_tensor_error e =
        tg_num_compare((tg_const_array){x, TG_NUM_F64, n}, (tg_const_array){truth, TG_NUM_F64, n});
    const int64_t at = e.worst_index;
    tap_expect(e.rms_ratio <= tolerance, "%s: error %.1e, wanted %.0e; [%lld] is %g, not %g", what, e.rms_ratio,
               tolerance, (long long)at, at < 0 ? 0 : x[at], at < 0 ? 0 : truth[at]);
}

/* Of fp64 sums of a few dozen terms. Measured, rms: below 3e-16. */
static const double rounding = 1e-14;

static void check_forward(struct problem *p, struct constants *constants)
{
    double *truth[N_TILES] = {NULL};
    for (int tile = 1; tile < N_TILES; tile++)
        if (has_role(tile, "out"))
            truth[tile] = allocate(count(&p->call, tile));
    direct(p, truth, constants);
    run_forward(p);
    for (int tile = 1; tile < N_TILES; tile++)
        if (truth[tile])
            expect_close(tensors[tile].name, p->out[tile], truth[tile], count(&p->call, tile), rounding);
    for (int tile = 1; tile < N_TILES; tile++)
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

/* The number whose gradients are DQ, DK, ... In the paper's convention n is a constant. */
static double loss(const struct problem *p, double **out, struct constants *constants)
{
    direct(p, out, constants);
    return sum_of_products(out[H], p->in[DH], count(&p->call, DH)) +
           sum_of_products(out[S], p->in[DS], count(&p->call, DS)) +
           (p->scalars[EXACT] != 0 ? sum_of_products(out[N], p->in[DN], count(&p->call, DN)) : 0);
}

/* Off from the truth by step^2/6, 1e-10, times the third derivative, which is up to some hundreds
 * where a small q.n divides, and by the rounding of the loss (some dozen terms of order 10) over
 * the step, about 1e-9 of the largest gradient. Measured: below 3e-9. */
static const double step = 2e-5, fd_tolerance = 1e-7;

static double slope(struct problem *p, double *at, double **out, struct constants *constants)
{
    const double x = *at, h = step * fmax(1, fabs(x));
    *at = x + h;
    const double above = loss(p, out, constants), top = *at;
    *at = x - h;
    const double below = loss(p, out, constants), bottom = *at;
    *at = x;
    return (above - below) / (top - bottom);
}

static void check_gradient(struct problem *p, int input, double **out, struct constants *constants)
{
    const int tile = find_tile("grad", tensors[input].name);
    const size_t n = count(&p->call, tile);
    double *expected = allocate(n), largest = 1;
    for (size_t i = 0; i < n; i++) {
        expected[i] = slope(p, &p->in[input][i], out, constants);
        largest = fmax(largest, fabs(expected[i]));
    }
    for (size_t i = 0; i < n; i++)
        tap_expect(fabs(p->out[tile][i] - expected[i]) <= fd_tolerance * largest,
                   "grad.%s[%zu] is %.10g, finite differences give %.10g", tensors[tile].name, i, p->out[tile][i],
                   expected[i]);
    free(expected);
}

static void check_gradients(struct problem *p, struct constants *constants)
{
    double *out[N_TILES] = {NULL};
    for (int tile = 1; tile < N_TILES; tile++)
        if (has_role(tile, "out"))
            out[tile] = allocate(count(&p->call, tile));
    run_backward(p);
    constants->use_m = true;
    constants->use_den = p->scalars[EXACT] == 0;
    for (int input = 1; input < N_TILES; input++)
        if (has_role(input, "in") && p->in[input] && input != M0)
            check_gradient(p, input, out, constants);
    for (int tile = 1; tile < N_TILES; tile++)
        free(out[tile]);
}

/* Tokens whose q.n is below its floor and above it, over all cases. */
static int on_floor, above_floor;

/* |q.n| has a kink at its floor, where finite differences mean nothing: the inputs must avoid it.
 */
static void check_kinks(const struct problem *p, const struct constants *constants)
{
    for (size_t i = 0; is_normalised(p->kind) && i < count(&p->call, QN); i++) {
        const double qn = fabs(p->out[QN][i]), floor = exp(-constants->m[i]);
        tap_expect(fabs(qn - floor) > 100 * step * floor, "|q.n| %g of token %zu is at its floor", qn, i);
        *(qn > floor ? &above_floor : &on_floor) += 1;
    }
}

static void test_setting(const struct kind *kind, const struct setting *s)
{
    struct problem p;
    if (!tap_begin("%s, group %d%s%s, eps %g%s", kind->name, (int)s->group, s->packed ? ", packed" : "",
                   s->states ? ", states" : "", s->eps, s->exact ? "" : ", den constant"))
        return;
    make_random(&p, kind, s);
    struct constants constants = {allocate(count(&p.call, QN)), allocate(count(&p.call, QN)), false, false};
    check_forward(&p, &constants);
    check_kinks(&p, &constants);
    check_gradients(&p, &constants);
    free(constants.m);
    free(constants.den);
    release(&p);
    tap_end();
}

static void test_settings(const struct kind *kind)
{
    const int n = is_normalised(kind) ? 32 : 8;
    for (int i = 0; i < n; i++)
        test_setting(
            kind,
            &(struct setting){
                .group = i & 1 ? 2 : 1, .packed = i & 2, .states = i & 4, .eps = i & 8 ? 1e-2 : 0, .exact = !(i & 16)});
}

static void test_floor(void)
{
    if (on_floor + above_floor == 0 || !tap_begin("tokens on the floor and above it"))
        return;
    tap_expect(on_floor > 100 && above_floor > 100, "%d and %d", on_floor, above_floor);
    tap_end();
}

/* ---- optional tensors ---- */

/* An absent DH counts as zeros, and each output alone is what it is among the others. */
static void test_optional(const struct kind *kind, const char *role, void (*run)(struct problem *))
{
    struct problem p;
    double *all[N_TILES];
    if (!tap_begin("%s, each %s alone", kind->name, role))
        return;
    make_random(&p, kind, &(struct setting){.group = 2, .packed = true, .states = true, .exact = true});
    double *dh = p.in[DH], *zeros = calloc(count(&p.call, DH), sizeof *zeros);
    p.in[DH] = zeros;
    run(&p);
    memcpy(all, p.out, sizeof all);
    memset(p.out, 0, sizeof p.out);
    p.in[DH] = dh;
    run(&p); /* no output at all; leaves its numbers in the memory that the next run gets */
    p.in[DH] = NULL;
    for (int tile = 1; tile < N_TILES; tile++) {
        if (!has_role(tile, role))
            continue;
        const size_t n = count(&p.call, tile);
        double *alone = p.out[tile] = allocate(n);
        run(&p);
        tap_expect(memcmp(all[tile], alone, n * sizeof *alone) == 0, "%s differs", tensors[tile].name);
        free(alone);
        p.out[tile] = NULL;
    }
    memcpy(p.out, all, sizeof all);
    free(dh);
    free(zeros);
    release(&p);
    tap_end();
}

/* A NaN in n0 makes h of its head NaN, though the larger of it and the floor is a number to fmax.
 */
static void test_nan(const struct kind *kind)
{
    struct problem p;
    if (!is_normalised(kind) || !tap_begin("%s, NaN in n0", kind->name))
        return;
    make_random(&p, kind, &(struct setting){.group = 2, .states = true, .exact = true});
    const size_t head = (size_t)(p.call.tokens * p.call.dhv);
    p.in[N0][0] = (double)NAN;
    run_forward(&p);
    for (size_t i = 0; i < count(&p.call, H); i++)
        tap_expect(isnan(p.out[H][i]) == (i < head), "h[%zu] is %g", i, p.out[H][i]);
    release(&p);
    tap_end();
}

/* ---- golden data: another program's fp64 results, rounded to float (relative 3e-8 rms) ---- */

static const double golden_tolerance = 1e-6;

static const struct golden {
    const char *file, *kind;
} golden[] = {
    {"la_b", "la"},
    {"cdecay_b", "cdecay"},
    {"gret_x", "gret"},
    {"sgla_x", "sgla"},
    {"sgla_varlen_b", "sgla"},
    {"ssd_x", "ssd"},
    {"ssd_grouped_b", "ssd"},
    {"mlstmsig_a", "mlstmsig"},
    {"mlstmsig_b", "mlstmsig"},
    {"mlstmsig_x", "mlstmsig"},
    {"mlstmsign_b", "mlstmsign"},
    {"mlstmsign_x", "mlstmsign"},
    {"mlstmexp_x", "mlstmexp"},
};

/* "grad.f" is tile D_F. */
static int tile_of(const struct st_tensor *t)
{
    char role[16] = "";
    const size_t n = strcspn(t->name, ".");
    if (n >= sizeof role)
        return 0;
    memcpy(role, t->name, n);
    return find_tile(strcmp(role, "grad_paper") ? role : "grad", t->name + n + 1);
}

static double *load(const struct st_tensor *t)
{
    const size_t n = (size_t)st_elements(t);
    double *x = allocate(n);
    tg_num_convert((tg_array){x, TG_NUM_F64, n}, st_array(t));
    return x;
}

static bool set_shape(struct problem *p, const struct st_file *file, int64_t *cu)
{
    json_t *scalars = json_loads(st_meta(file, "scalars"), 0, NULL);
    const json_t *list = json_object_get(scalars, "cu"), *tau = json_object_get(scalars, "tau");
    const struct st_tensor *q = st_find(file, "in.q"), *v = st_find(file, "in.v");
    q = q ? q : st_find(file, "in.Cm");
    v = v ? v : st_find(file, "in.x");
    if (!tap_expect(scalars && q && v, "no scalars, queries or values"))
        return false;
    tg_oracle_call shape = {q->shape[0], v->shape[1], q->shape[2],
                            q->shape[3], v->shape[3], .group = v->shape[1] / q->shape[1]};
    if (list) {
        shape.batch = (int64_t)json_array_size(list) - 1;
        shape.cuts = cu;
        for (size_t i = 0; i < json_array_size(list); i++)
            cu[i] = json_integer_value(json_array_get(list, i));
    }
    set_call(p, &shape);
    p->scalars[SCALE] = json_number_value(json_object_get(scalars, "scale"));
    p->scalars[TAU] = json_number_value(tau);
    json_decref(scalars);
    return true;
}

static void load_inputs(struct problem *p, const struct st_file *file)
{
    for (size_t i = 0; i < st_count(file); i++) {
        const struct st_tensor *t = st_at(file, i);
        const int tile = tile_of(t);
        if (tap_expect(tile && (size_t)st_elements(t) == count(&p->call, tile), "%s: unknown", t->name) &&
            (has_role(tile, "in") || has_role(tile, "dout")))
            p->in[tile] = load(t);
    }
    make_outputs(p);
}

/* How many tensors of the file have names that begin so; each is compared. */
static int compare(const struct problem *p, const struct st_file *file, const char *prefix)
{
    int n = 0;
    for (size_t i = 0; i < st_count(file); i++) {
        const struct st_tensor *t = st_at(file, i);
        if (strncmp(t->name, prefix, strlen(prefix)) != 0)
            continue;
        double *truth = load(t);
        expect_close(t->name, p->out[tile_of(t)], truth, (size_t)st_elements(t), golden_tolerance);
        free(truth);
        n++;
    }
    return n;
}

static void check_golden(struct problem *p, const struct st_file *file)
{
    int64_t cu[16];
    if (!set_shape(p, file, cu))
        return;
    load_inputs(p, file);
    p->scalars[EXACT] = 1;
    run_forward(p);
    tap_expect(compare(p, file, "out.") > 0, "no outputs in the file");
    run_backward(p);
    tap_expect(compare(p, file, "grad.") >= 3, "no gradients in the file");
    p->scalars[EXACT] = 0;
    run_backward(p);
    tap_expect((compare(p, file, "grad_paper.") > 0) == is_normalised(p->kind),
               "gradients in the paper's convention belong to the normalised kinds");
    release(p);
}

static void test_golden(const struct golden *g)
{
    struct problem p = {0};
    struct st_file *file = NULL;
    char path[128], err[256];
    if (!tap_begin("golden %s", g->file))
        return;
    for (int i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i].name, g->kind) == 0)
            p.kind = &kinds[i];
    snprintf(path, sizeof path, "tests/data/%s.safetensors", g->file);
    if (tap_expect(st_open(path, &file, err, sizeof err), "%s", err)) {
        check_golden(&p, file);
        st_close(file);
    }
    tap_end();
}

int main(int argc, char **argv)
{
    if (!tap_arguments(argc, argv))
        return 2;
    for (int i = 0; i < N_KINDS; i++) {
        test_settings(&kinds[i]);
        test_optional(&kinds[i], "out", run_forward);
        test_optional(&kinds[i], "grad", run_backward);
        test_nan(&kinds[i]);
    }
    test_floor();
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        test_golden(&golden[i]);
    return tap_finish();
}
