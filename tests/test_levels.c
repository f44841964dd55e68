/* tests/test_levels.c - the limit on the error of h in bf16 (tuning/judge.c) beside what roundings make in the statements alone:
 * each result that a product takes, or that goes out, rounded to bf16, all else in fp64. It is 1.2 times that to twice. */
#include "interpreter/interpreter.h"
#include "tuning/tuning.h"
#include "variants/variants.h"
#include "tests/alike.h"
#include "tests/usage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CHUNK = 64, SEEDS = 10 };
static const tg_shape narrow = {.batch = 1, .heads = 4, .tokens = 71, .dqk = 16, .dhv = 24},
                      of_alike = {.batch = 1, .heads = 2, .tokens = 128, .dqk = 64, .dhv = 64};

struct rounded {
    bool is[256]; /* by tile */
};

static double to_bf16(void *user, uint32_t tile, uint64_t element, double x)
{
    (void)element;
    const struct rounded *rounded = user;
    uint16_t bits;
    if (!rounded->is[tile])
        return x;
    tg_num_store(&bits, TG_NUM_BF16, 0, x);
    return tg_num_load(&bits, TG_NUM_BF16, 0);
}

static struct rounded factors_of(const tg_algorithm *algorithm)
{
    struct rounded rounded = {{false}};
    for (uint32_t i = 0; i < algorithm->n_body; i++) {
        const tg_stmt *stmt = &algorithm->body[i];
        const bool is_product = stmt->op == TG_STMT_CONTRACT || stmt->op == TG_STMT_CARRY;
        rounded.is[TG_OPERAND_TILE(stmt->a)] |= is_product;
        rounded.is[TG_OPERAND_TILE(stmt->b)] |= is_product;
        rounded.is[TG_OPERAND_TILE(stmt->out)] |= algorithm->tensors[TG_OPERAND_TILE(stmt->out)].flags & TG_OUT;
    }
    return rounded;
}

/* h by the statements in fp64, with those tiles rounded, into what the problem has for it. */
static void interpret(tg_problem *problem, struct rounded *rounded)
{
    const double *in[256] = {NULL};
    double *out[256] = {NULL};
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
        double *numbers = calloc(tensor->n + 1, sizeof *numbers);
        assert_non_null(numbers);
        if (tensor->data)
            tg_num_convert((tg_array){numbers, TG_NUM_F64, tensor->n},
                           (tg_const_array){tensor->data, tensor->dtype, tensor->n});
        free(tensor->data);
        tensor->data = numbers;
        tensor->dtype = TG_NUM_F64;
        if (tensor->flags & TG_OUT)
            out[tensor->tile] = numbers;
        else
            in[tensor->tile] = numbers;
    }
    const tg_shape *shape = &problem->shape;
    const tg_oracle_call call = {.batch = shape->batch,
                                 .heads = shape->heads,
                                 .tokens = shape->tokens,
                                 .dqk = shape->dqk,
                                 .dhv = shape->dhv,
                                 .group = 1,
                                 .scalars = problem->scalars,
                                 .in = in,
                                 .out = out};
    const tg_interpretation what = {
        .algorithm = problem->variant->algorithm, .call = &call, .chunk = CHUNK, .round = to_bf16, .user = rounded};
    assert_int_equal(tg_interpret(&what, NULL), TG_OK);
}

/* Mean square over seeds of the error of h; `limit` is what is allowed of its root. */
static double square_error(const tg_variant *variant, bool is_alike, uint64_t seed, double *limit)
{
    struct rounded rounded = factors_of(variant->algorithm);
    tg_problem problem;
    tg_truth truth;
    assert_int_equal(
        tg_problem_random(variant, NULL, is_alike ? &of_alike : &narrow, TG_BF16, seed, NULL, &problem, NULL), TG_OK);
    if (is_alike)
        make_alike(&problem);
    assert_int_equal(tg_truth_compute(&problem, CHUNK, NULL, &truth, NULL), TG_OK);
    interpret(&problem, &rounded);
    const tg_host_tensor *h = tg_problem_tensor(&problem, "h");
    const tg_const_array reference = {truth.out[h->tile], TG_NUM_F64, h->n};
    const tg_verdict verdict = tg_judge(&problem, h, reference, (tg_levels){0, 0});
    *limit = verdict.rms_limit;
    tg_truth_free(&truth);
    tg_problem_free(&problem);
    return verdict.error.rms_ratio * verdict.error.rms_ratio;
}

static void limits_are_what_roundings_make(void **state)
{
    (void)state;
    static const char *const names[] = {"simple-gla", "gla", "delta-net", "gated-delta", "kda", "kda-safe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double square = 0, limit;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            square += square_error(tg_variant_find(names[i]), false, seed, &limit) / SEEDS;
        print_message("%s: roundings make %.2e, allowed is %.2e\n", names[i], sqrt(square), limit);
        assert_true(sqrt(square) < limit / 1.2);
        assert_true(limit < 2 * sqrt(square));
    }
}

/* Of keys that are alike: tests/kernels/roundings.c allows 9e-3. */
static void roundings_where_the_inverse_is_large(void **state)
{
    (void)state;
    double square = 0, limit;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        square += square_error(tg_variant_find("delta-net"), true, seed, &limit) / SEEDS;
    print_message("delta-net, keys that are alike: roundings make %.2e\n", sqrt(square));
    assert_true(sqrt(square) > 6e-3 && sqrt(square) < 7.2e-3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits_are_what_roundings_make),
                                       cmocka_unit_test(roundings_where_the_inverse_is_large)};
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
