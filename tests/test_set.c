/* tests/test_set.c EMULATOR - sets of compiled programs: what is in them, which of them calls take, how long that takes,
 * and that they compute the same whichever is taken. */
#include "compiler/compiler.h"
#include "runtime/runtime.h"
#include "tests/cost.h"
#include "tests/log.h"
#include "variants/variants.h"
#include "tests/usage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { DQK = 64, DHV = 64, N_RANDOM = 400 };

static const char *emulator;

/* ---- sets ---- */

static const tg_shape_class wide = {.io = TG_BF16, .dqk = 128, .dhv = 256},
                            narrow = {.io = TG_BF16, .dqk = DQK, .dhv = DHV};

static void add_schedule(tg_set_part *part, const char *variant, const tg_sizes *sizes)
{
    tg_schedule *schedule = &part->schedules[part->n_schedules];
    assert_int_equal(tg_schedule_default(tg_variant_find(variant), part->target, &part->shape, sizes, schedule, NULL),
                     TG_OK);
    if (sizes)
        part->points[part->n_points++] = (tg_point_of_set){.batch = sizes->batch,
                                                           .heads = sizes->heads,
                                                           .tokens = sizes->tokens,
                                                           .program = (uint8_t)part->n_schedules};
    part->n_schedules++;
}

/* Few heads and a long sequence, many heads, a short one: three schedules on Hopper, with the default. */
static const tg_sizes wanted[] = {{1, 4, 65536, 0}, {8, 16, 8192, 0}, {16, 16, 4096, 0}, {1, 2, 500, 0}};

static tg_set *set_of_shapes(const tg_target *target, const tg_shape_class *shape)
{
    static tg_set_part part;
    tg_set *set;
    part = (tg_set_part){.target = target, .shape = *shape};
    add_schedule(&part, "mlstm-sig", NULL);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        add_schedule(&part, "mlstm-sig", &wanted[i]);
    assert_int_equal(tg_compile_set(tg_variant_find("mlstm-sig"), &part, 1, NULL, &set, NULL), TG_OK);
    return set;
}

static void the_same_code_is_there_once(void **state)
{
    (void)state;
    tg_set *set = set_of_shapes(tg_target_find("sm_90a"), &wide);
    const tg_branch *b = &set->branches[0];
    assert_true(set->n_programs >= 2 && set->n_programs < 5);
    assert_int_equal(b->n_points, 4);
    assert_int_equal(b->points[1].program, 0); /* the usual sizes, which the default is for */
    for (uint32_t i = 0; i < set->n_programs; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_true(strcmp(set->programs[i].schedule, set->programs[k].schedule) != 0 ||
                        set->programs[i].chunk_default != set->programs[k].chunk_default ||
                        set->programs[i].n_kernels != set->programs[k].n_kernels ||
                        strcmp(set->programs[i].kernels[1].ptx, set->programs[k].kernels[1].ptx) != 0);
    tg_set_free(set);
}

/* ---- choice ---- */

static double model_seconds(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                            tg_sizes sizes)
{
    tg_cost cost;
    sizes.chunk = schedule->chunk;
    assert_int_equal(tg_cost_estimate(schedule, target, shape, &sizes, &cost, NULL), TG_OK);
    return cost.seconds;
}

/* What the model thinks of the program that is taken, over what it thinks of the best of the set. */
static double loss_at(const tg_set *set, const tg_set_part *part, tg_sizes sizes)
{
    const int taken = tg_set_pick(set, 0, &sizes, NULL);
    double least = HUGE_VAL;
    assert_true(taken >= 0 && taken < (int)set->n_programs);
    for (uint32_t i = 0; i < set->n_programs; i++)
        least = fmin(least, model_seconds(&part->schedules[i], part->target, &part->shape, sizes));
    return model_seconds(&part->schedules[taken], part->target, &part->shape, sizes) / least;
}

static int64_t random_size(uint32_t most_bits)
{
    return (int64_t)exp2((double)(rand() % 1000) / 1000 * most_bits);
}

/* The model calls what is a tenth slower the same, and has cliffs, where one more head needs another wave of thread blocks:
 * a size and its step may lie on two sides of one. */
static void tables_choose_as_the_model_does(void **state)
{
    (void)state;
    static const char *const names[] = {"tfla", "walk", "segments", "tfla-wide"};
    static tg_set_part part;
    tg_set *set;
    part = (tg_set_part){.target = tg_target_find("sm_90a"), .shape = wide};
    const tg_variant *variant = tg_variant_find("mlstm-sig");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tg_variant_schedule_named(variant, names[i], &part.schedules[part.n_schedules], NULL) == TG_OK &&
            tg_plan_check(&part.schedules[part.n_schedules], part.target, &part.shape, NULL) == TG_OK)
            part.n_schedules++;
    assert_true(part.n_schedules >= 3);
    assert_int_equal(tg_compile_set(variant, &part, 1, NULL, &set, NULL), TG_OK);
    assert_int_equal(set->n_programs, part.n_schedules);
    double sum = 0, worst = 1;
    bool is_taken[TG_MAX_BRANCH_PROGRAMS] = {false};
    srand(7);
    for (int i = 0; i < N_RANDOM; i++) {
        const tg_sizes sizes = {random_size(6), random_size(6), random_size(18), 0};
        const double loss = loss_at(set, &part, sizes);
        is_taken[tg_set_pick(set, 0, &sizes, NULL)] = true;
        sum += loss;
        worst = fmax(worst, loss);
    }
    print_message("at %d random sizes %.3f times the model's best on average, %.2f at most\n", N_RANDOM, sum / N_RANDOM,
                  worst);
    assert_true(sum / N_RANDOM < 1.02 && worst < 1.6);
    assert_true(is_taken[0] + is_taken[1] + is_taken[2] + is_taken[3] >= 2);
    tg_set_free(set);
}

/* T of the next piece runs beside the walk of this one: the sum of their times is not what they take. */
static void pieces_are_taken_where_they_are_faster(void **state)
{
    (void)state;
    static tg_set_part part;
    tg_set *set;
    part = (tg_set_part){
        .target = tg_target_find("sm_90a"), .shape = {.io = TG_BF16, .dqk = 128, .dhv = 128}, .n_schedules = 2};
    const tg_variant *variant = tg_variant_find("kda");
    const tg_sizes long_call = {1, 32, 65536, 0}, short_call = {1, 32, 512, 0}, many_heads = {1, 128, 65536, 0};
    assert_int_equal(tg_variant_schedule_named(variant, "walk-narrow", &part.schedules[0], NULL), TG_OK);
    assert_int_equal(tg_variant_schedule_named(variant, "pieces", &part.schedules[1], NULL), TG_OK);
    assert_int_equal(tg_compile_set(variant, &part, 1, NULL, &set, NULL), TG_OK);
    assert_int_equal(set->n_programs, 2);
    assert_int_equal(tg_set_pick(set, 0, &long_call, NULL), 1);
    assert_int_equal(tg_set_pick(set, 0, &short_call, NULL), 0);
    assert_int_equal(tg_set_pick(set, 0, &many_heads, NULL), 0);
    tg_set_free(set);
}

static void points_take_what_was_chosen_for_them(void **state)
{
    (void)state;
    tg_set *set = set_of_shapes(tg_target_find("sm_90a"), &wide);
    const tg_branch *b = &set->branches[0];
    for (uint32_t i = 0; i < b->n_points; i++) {
        const tg_sizes at = {b->points[i].batch, b->points[i].heads, b->points[i].tokens, 0};
        assert_int_equal(tg_set_pick(set, 0, &at, NULL), b->points[i].program);
    }
    tg_set_free(set);
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const double most_nanoseconds = 20000;
#else
static const double most_nanoseconds = 1000;
#endif

struct choosing {
    const tg_set *set;
    int n, sum;
};

static void choose_once(void *user)
{
    struct choosing *c = user;
    const int i = c->n++;
    const tg_sizes sizes = {1 + i % 8, 16, 1 + 7 * i % 65536, 0};
    const int branch = tg_set_branch(c->set, 90, 128, 256, NULL);
    c->sum += tg_set_pick(c->set, (uint32_t)branch, &sizes, NULL);
}

static void a_choice_takes_less_than_a_microsecond(void **state)
{
    (void)state;
    tg_set *set = set_of_shapes(tg_target_find("sm_90a"), &wide);
    struct choosing c = {set, 0, 0};
    const double cost = cost_ns(choose_once, &c);
    print_message("a choice takes %.0f ns\n", cost);
    assert_true(c.sum > 0 && cost < most_nanoseconds);
    tg_set_free(set);
}

/* ---- on the emulator ---- */

struct device {
    tg_driver *driver;
    uint64_t q, k, v, f, i, h, workspace;
};

static uint64_t upload(const tg_driver *driver, const void *data, size_t bytes)
{
    uint64_t address;
    assert_int_equal(tg_memory_alloc(driver, bytes, &address, NULL), TG_OK);
    assert_int_equal(tg_memory_in(driver, address, data, bytes, NULL), TG_OK);
    return address;
}

static uint16_t small_bf16(void)
{
    return (uint16_t)(0x3c00 + rand() % 0x300 + (rand() % 2 << 15));
}

/* Arrays of one call; the caller frees them. */
static void fill(struct device *d, const tg_sizes *s, size_t workspace)
{
    const size_t tokens = (size_t)(s->batch * s->heads * s->tokens);
    uint16_t *wide_array = malloc(tokens * DQK * sizeof *wide_array);
    float *gates = malloc(tokens * sizeof *gates);
    uint64_t *const wides[] = {&d->q, &d->k, &d->v, &d->h};
    for (size_t t = 0; t < tokens; t++)
        gates[t] = (float)(rand() % 1000) / 200.0f;
    for (size_t a = 0; a < 4; a++) {
        for (size_t x = 0; x < tokens * DQK; x++)
            wide_array[x] = small_bf16();
        *wides[a] = upload(d->driver, wide_array, tokens * DQK * sizeof *wide_array);
    }
    d->f = upload(d->driver, gates, tokens * sizeof *gates);
    d->i = upload(d->driver, gates, tokens * sizeof *gates);
    assert_int_equal(tg_memory_alloc(d->driver, workspace, &d->workspace, NULL), TG_OK);
    free(wide_array);
    free(gates);
}

static void release(struct device *d)
{
    const uint64_t all[] = {d->q, d->k, d->v, d->h, d->f, d->i, d->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tg_memory_free(d->driver, all[i]);
}

/* h of a call through the module, malloc'ed as floats. */
static float *run(const struct device *d, const tg_module *module, const tg_sizes *s)
{
    const tg_tensor_arg args[] = {{.name = "q", .address = d->q}, {.name = "k", .address = d->k},
                                  {.name = "v", .address = d->v}, {.name = "f", .address = d->f},
                                  {.name = "i", .address = d->i}, {.name = "h", .address = d->h}};
    const size_t n = (size_t)(s->batch * s->heads * s->tokens) * DHV;
    LOG(log);
    if (tg_launch(module, s, NULL, args, 6, d->workspace, NULL, &log_sink) != TG_OK ||
        tg_synchronize(d->driver, &log_sink) != TG_OK)
        fail_msg("%s", log.text);
    uint16_t *half = malloc(n * sizeof *half);
    float *h = malloc(n * sizeof *h);
    assert_int_equal(tg_memory_out(d->driver, half, d->h, n * sizeof *half, NULL), TG_OK);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)half[i] << 16;
        memcpy(&h[i], &bits, sizeof bits);
    }
    free(half);
    return h;
}

/* Two architectures in one set; this GPU takes its own, and calls of different sizes take different programs, which give
 * the same as the other one. */
static void either_program_computes_the_same(void **state)
{
    (void)state;
    static tg_set_part parts[2];
    static const char *const names[] = {"tfla", "tfla chunk=512"};
    const tg_variant *variant = tg_variant_find("mlstm-sig");
    const tg_sizes calls[] = {{1, 2, 300, 0}, {2, 1, 70, 0}};
    struct device d = {0};
    tg_set *set;
    tg_modules *modules;
    memset(parts, 0, sizeof parts);
    for (int p = 0; p < 2; p++) {
        parts[p].target = tg_target_find(p ? "sm_80" : "sm_90a");
        parts[p].shape = narrow;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tg_variant_schedule_named(variant, names[i], &parts[p].schedules[i], NULL), TG_OK);
            parts[p].points[i] =
                (tg_point_of_set){calls[i].batch, calls[i].heads, calls[i].tokens, (uint8_t)i, TG_BY_NAME};
        }
        parts[p].n_schedules = parts[p].n_points = 2;
    }
    LOG(log);
    if (tg_compile_set(variant, parts, 2, NULL, &set, &log_sink) != TG_OK ||
        tg_driver_open(emulator, &d.driver, &log_sink) != TG_OK ||
        tg_context_acquire(d.driver, 0, &log_sink) != TG_OK || tg_set_load(d.driver, set, &modules, &log_sink) != TG_OK)
        fail_msg("%s", log.text);
    assert_int_equal(set->n_programs, 4);
    const tg_module *both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = tg_set_module(modules, DQK, DHV, &calls[i], NULL);
        assert_ptr_equal(tg_module_program(both[i]), &set->programs[2 + i]); /* of sm_80 */
    }
    for (int c = 0; c < 2; c++) {
        const size_t n = (size_t)(calls[c].batch * calls[c].heads * calls[c].tokens) * DHV;
        const uint64_t bytes[] = {tg_workspace_bytes(&set->programs[2], &calls[c]),
                                  tg_workspace_bytes(&set->programs[3], &calls[c])};
        fill(&d, &calls[c], bytes[0] > bytes[1] ? bytes[0] : bytes[1]);
        float *const mine = run(&d, both[c], &calls[c]), *const other = run(&d, both[1 - c], &calls[c]);
        double difference = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            difference += ((double)mine[i] - (double)other[i]) * ((double)mine[i] - (double)other[i]);
            size += (double)mine[i] * (double)mine[i];
        }
        assert_true(size > 0 && sqrt(difference / size) < 8e-3);
        free(mine);
        free(other);
        release(&d);
    }
    assert_null(tg_set_module(modules, 128, 0, &calls[0], &log_sink));
    assert_says(
        &log,
        "TG0732 set of mlstm-sig: expected one of dqk 64 dhv 64 on sm_90a, dqk 64 dhv 64 on sm_80 or newer, found "
        "dqk 128 dhv 0 on sm_80");
    tg_set_unload(modules);
    tg_context_release(d.driver, 0);
    tg_driver_close(d.driver);
    tg_set_free(set);
}

static void impossible_parts_are_refused(void **state)
{
    (void)state;
    static tg_set_part part;
    const tg_variant *variant = tg_variant_find("mlstm-sig");
    tg_set *set;
    part = (tg_set_part){.target = tg_target_find("sm_80"), .shape = narrow};
    assert_int_equal(tg_compile_set(variant, &part, 1, NULL, &set, NULL), TG_E_ARGUMENT); /* no schedule */
    add_schedule(&part, "mlstm-sig", NULL);
    part.n_points = 1;
    part.points[0] = (tg_point_of_set){1, 1, 1, 1, 0}; /* of a schedule that is not there */
    assert_int_equal(tg_compile_set(variant, &part, 1, NULL, &set, NULL), TG_E_ARGUMENT);
    part.points[0] = (tg_point_of_set){0, 1, 1, 0, 0};
    LOG(log);
    assert_int_equal(tg_compile_set(variant, &part, 1, NULL, &set, &log_sink), TG_E_FORMAT);
    assert_says(&log, "TG0734 set: branches[0].points[0]: expected sizes of");
    assert_int_equal(tg_compile_set(variant, &part, 0, NULL, &set, NULL), TG_E_ARGUMENT);
    assert_int_equal(tg_compile_set(NULL, NULL, 1, NULL, &set, NULL), TG_E_ARGUMENT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_code_is_there_once),
        cmocka_unit_test(tables_choose_as_the_model_does),
        cmocka_unit_test(pieces_are_taken_where_they_are_faster),
        cmocka_unit_test(points_take_what_was_chosen_for_them),
        cmocka_unit_test(a_choice_takes_less_than_a_microsecond),
        cmocka_unit_test(either_program_computes_the_same),
        cmocka_unit_test(impossible_parts_are_refused),
    };
    if (!usage_is(argc, argv, 1, 1, "EMULATOR"))
        return 2;
    emulator = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
