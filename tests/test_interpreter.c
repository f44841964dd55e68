/* test_interpreter.c - the interpreter of statements against the variants' oracles, which share nothing with it: the
 * recurrence token by token. In fp64, so up to rounding; in chunks of any size, packed or not, with groups of heads and
 * with states. test_interpreter [--only TEXT]. */
#include "interpreter/interpreter.h"
#include "kernels/tap.h"
#include "cli/cli.h"
#include "tests/interpreter_states.h"
#include "variants/variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Statements take log2(e) and ln(2) from floats, which are off by a part in 2^26; the exponents that they are in are
 * below 32 here. Variants without such constants agree to what fp64 sums lose. */
static const double fp64_tolerance = 1e-9, float_constant_tolerance = 0x1p-21;

static struct context context;

static bool has_constants(const tg_algorithm *algorithm)
{
    for (uint32_t s = 0; s < algorithm->n_body; s++)
        for (int i = 0; i < TG_MAX_EXPR; i++)
            if (algorithm->body[s].expr[i].op == TG_X_NUMBER &&
                (double)algorithm->body[s].expr[i].number != rint((double)algorithm->body[s].expr[i].number))
                return true;
    return false;
}

struct variation {
    int64_t group;
    bool packed, without_states, paper;
    int64_t chunk;
};

static const struct variation variations[] = {
    {.group = 1, .chunk = 1},
    {.group = 2, .chunk = 7},
    {.group = 1, .packed = true, .chunk = 5},
    {.group = 2, .packed = true, .chunk = 16, .without_states = true},
    {.group = 3, .chunk = 64, .paper = true},
};

/* What the forward computed, as the backward takes it. */
static void feed(const tg_problem *forward, const tg_truth *truth, tg_problem *backward)
{
    for (uint32_t i = 0; i < backward->n_tensors; i++) {
        tg_host_tensor *to = &backward->tensors[i];
        tg_host_tensor *from = tg_problem_tensor((tg_problem *)forward, to->name);
        if (!to->is_fed || !from)
            continue;
        to->dtype = TG_NUM_F64;
        to->data = malloc((to->n + 1) * sizeof(double));
        if (to->data)
            memcpy(to->data, truth->out[from->tile], to->n * sizeof(double));
    }
}

/* All that are optional, or the one of that name. */
static void drop(tg_problem *problem, const char *name)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        if (problem->tensors[i].flags & TG_OPTIONAL && (!name || strcmp(problem->tensors[i].name, name) == 0)) {
            free(problem->tensors[i].data);
            problem->tensors[i].data = NULL;
        }
}

static void compare(const tg_problem *problem, const tg_truth *oracle, const tg_truth *statements)
{
    const double tolerance = has_constants(problem->variant->algorithm) ? float_constant_tolerance : fp64_tolerance;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        double largest = 0, furthest = 0;
        if (!(tensor->flags & TG_OUT))
            continue;
        for (size_t e = 0; e < tensor->n; e++) {
            const double x = oracle->out[tensor->tile][e], y = statements->out[tensor->tile][e];
            largest = fmax(largest, fabs(x));
            furthest = isfinite(x) && isfinite(y) ? fmax(furthest, fabs(x - y)) : INFINITY;
        }
        tap_expect(furthest <= tolerance * largest, "%s is off by %.1e of %.1e", tensor->name, furthest, largest);
    }
}

static bool make(const tg_variant *variant, const struct variation *s, tg_problem *problem)
{
    const tg_shape shape = {
        .batch = 3, .heads = 6, .tokens = 53, .dqk = 6, .dhv = 5, .group = s->group, .packed = s->packed};
    if (!tap_expect(problem_random(&context, variant, &shape, TG_F32, 11, problem), "no problem"))
        return false;
    if (s->without_states)
        drop(problem, NULL);
    if (s->paper && tg_problem_scalar(problem, "exact") >= 0) {
        problem->scalars[tg_problem_scalar(problem, "exact")] = 0;
        drop(problem, "dn"); /* which then has nowhere to go */
    }
    return true;
}

static bool both(const tg_problem *problem, const struct variation *s, tg_truth *oracle)
{
    tg_truth statements;
    if (!tap_expect(truth_compute(&context, problem, 0, oracle), "no oracle"))
        return false;
    if (tap_expect(truth_compute(&context, problem, s->chunk, &statements), "not interpreted"))
        compare(problem, oracle, &statements);
    tg_truth_free(&statements);
    return true;
}

static void test_backward(const tg_variant *variant, const tg_algorithm *algorithm, const struct variation *s,
                          const tg_problem *forward, const tg_truth *computed)
{
    tg_variant backward = *variant->backward;
    tg_problem problem;
    tg_truth truth;
    if (!make(variant->backward, s, &problem))
        return;
    backward.algorithm = algorithm;
    problem.variant = &backward;
    feed(forward, computed, &problem);
    if (both(&problem, s, &truth))
        tg_truth_free(&truth);
    tg_problem_free(&problem);
}

/* Schedules may compute the same by other statements. */
static void test_others(const tg_variant *variant, const struct variation *s, const tg_problem *forward,
                        const tg_truth *computed)
{
    enum { MOST = 8 };
    const tg_algorithm *seen[MOST] = {variant->backward->algorithm};
    uint32_t n = 1;
    tg_schedule schedule;
    for (uint32_t i = 0; n < MOST && tg_variant_schedule(variant->backward, i, &schedule); i++) {
        uint32_t k = 0;
        while (k < n && seen[k] != schedule.algorithm)
            k++;
        if (k < n)
            continue;
        seen[n++] = schedule.algorithm;
        test_backward(variant, schedule.algorithm, s, forward, computed);
    }
}

static void test_variation(const tg_variant *variant, const struct variation *s)
{
    const tg_variant *backward = variant->backward;
    tg_problem forward;
    tg_truth truth;
    if (!tap_begin("%s, group %d%s%s%s, chunk %d", variant->name, (int)s->group, s->packed ? ", packed" : "",
                   s->without_states ? ", without states" : "", s->paper ? ", den constant" : "", (int)s->chunk))
        return;
    if (make(variant, s, &forward) && both(&forward, s, &truth)) {
        test_backward(variant, backward->algorithm, s, &forward, &truth);
        test_others(variant, s, &forward, &truth);
        tg_truth_free(&truth);
    }
    tg_problem_free(&forward);
    tap_end();
}

/* ---- states that no built-in variant has ---- */

static void test_state(const tg_variant *variant, int64_t chunk)
{
    const struct variation variation = {.group = 1, .chunk = chunk};
    tg_problem problem;
    tg_truth truth;
    if (!tap_begin("%s, chunk %d", variant->name, (int)chunk))
        return;
    if (make(variant, &variation, &problem) && both(&problem, &variation, &truth))
        tg_truth_free(&truth);
    tg_problem_free(&problem);
    tap_end();
}

/* ---- what is refused, and why ---- */

static void note_code(void *user, const tg_diag *diag)
{
    snprintf(user, 8, "%s", diag->code);
}

static void expect_refusal(const char *code, tg_status expected, const tg_interpretation *what)
{
    char found[8] = "";
    const tg_status status = tg_interpret(what, &(tg_sink){note_code, found});
    tap_expect(status == expected && strcmp(found, code) == 0, "expected %s, status %d; found %s, status %d", code,
               expected, found, status);
}

/* Of a sum of each chunk a declaration says that all chunks have the same. */
static void test_steady(void)
{
    enum { NONE, X, SUM, Y };
    static const tg_tensor tensors[] = {[X] = {"x", TG_F32, TG_IN, {TG_T}, 0},
                                        [SUM] = {"sum", TG_F32, TG_STEADY, {TG_CHUNK}, 0},
                                        [Y] = {"y", TG_F32, TG_OUT, {TG_T}, 0}};
    static const tg_stmt body[] = {TG_TOTAL_TO(SUM, TG_AT_KV(X)),
                                   TG_MAP_TO(TG_AT_KV(Y), TG_ADD(TG_KV(X), TG_TILE(SUM)))};
    static const tg_algorithm steady = {
        TG_HEADER(tg_algorithm),        .name = "steady", .file = __FILE__,        .tensors = tensors,
        .n_tensors = TG_COUNT(tensors), .body = body,     .n_body = TG_COUNT(body)};
    double x[] = {1, 2, 2, 1}, y[4], *out[256] = {[Y] = y};
    const double *in[256] = {[X] = x};
    const tg_oracle_call call = {
        .batch = 1, .heads = 1, .tokens = 4, .dqk = 2, .dhv = 2, .group = 1, .in = in, .out = out};
    tg_interpretation what = {.algorithm = &steady, .call = &call, .chunk = 2};
    if (!tap_begin("a steady tile that is none"))
        return;
    tap_expect(tg_interpret(&what, NULL) == TG_OK && y[3] == 4, "of the same sums, %g", y[3]);
    x[3] = 3;
    expect_refusal("TG0605", TG_E_DECLARATION, &what);
    tap_end();
}

static void test_refusals(void)
{
    double numbers[64] = {0}, *out[256] = {NULL};
    const double *in[256] = {NULL};
    const int64_t falling[] = {0, 3, 2}, short_cuts[] = {0, 1, 3};
    tg_oracle_call call = {.batch = 2, .heads = 2, .tokens = 2, .dqk = 2, .dhv = 2, .group = 1, .in = in, .out = out};
    tg_interpretation what = {.algorithm = &circular, .call = &call, .chunk = 1};
    if (!tap_begin("what is refused"))
        return;
    expect_refusal("TG0602", TG_E_ARGUMENT, &what);
    in[1] = in[2] = numbers;
    for (uint32_t tile = 0; tile < circular.n_tensors; tile++)
        out[tile] = circular.tensors[tile].flags & TG_OUT ? numbers + 32 : NULL;
    expect_refusal("TG0603", TG_E_DECLARATION, &what);
    what.chunk = 0;
    expect_refusal("TG0601", TG_E_ARGUMENT, &what);
    what.chunk = 1;
    call.group = 3;
    expect_refusal("TG0601", TG_E_ARGUMENT, &what);
    call.group = 1;
    call.cuts = falling;
    expect_refusal("TG0601", TG_E_ARGUMENT, &what);
    call.cuts = short_cuts;
    expect_refusal("TG0601", TG_E_ARGUMENT, &what);
    what.algorithm = &(tg_algorithm){0};
    expect_refusal("TG0102", TG_E_DECLARATION, &what);
    tap_end();
}

static void fail_with(void *user, const tg_diag *diag)
{
    (void)user;
    tap_expect(diag->severity != TG_ERROR, "%s %s:%d: %s", diag->code, diag->file ? diag->file : "-", diag->line,
               diag->message);
}

/* Commands check what they load, not what comes with them. */
static void test_declaration(const tg_variant *variant)
{
    const tg_sink sink = {fail_with, NULL};
    if (!tap_begin("what %s declares is valid", variant->name))
        return;
    tap_expect(tg_variant_check(variant, &sink) == TG_OK, "refused");
    tap_end();
}

int main(int argc, char **argv)
{
    if (!tap_arguments(argc, argv))
        return 2;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++)
        test_declaration(*v);
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++)
        for (size_t i = 0; i < sizeof variations / sizeof *variations; i++)
            test_variation(*v, &variations[i]);
    for (int64_t chunk = 1; chunk <= 64; chunk *= 8)
        test_state(&channel_variant, chunk);
    test_state(&delta_variant, 1);
    test_state(&prefix_variant, 64);
    test_refusals();
    test_steady();
    return tap_finish();
}
