/* tests/test_tuning.c EMULATOR - the library that tunes (tuning/tuning.h): its problems and its judgement, a search, and what
 * becomes of one that is cancelled, has no time, meets a wrong candidate or a driver that fails. */
#include "tests/tuning_fixture.h"
#include "variants/variants.h"
#include "tests/usage.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static const char *emulator;
tg_machine machine;

static int open_machine(void **state)
{
    (void)state;
    tg_driver *driver;
    if (tg_driver_open(emulator, &driver, NULL) != TG_OK || tg_machine_of(driver, 0, &machine, NULL) != TG_OK)
        return -1;
    machine.is_emulator = true;
    return tg_context_acquire(driver, 0, NULL) == TG_OK ? 0 : -1;
}

static int close_machine(void **state)
{
    (void)state;
    tg_context_release(machine.driver, 0);
    tg_driver_close(machine.driver);
    return 0;
}

/* ---- a variant that compiles at once, with a schedule that is right and one that is not ---- */

enum { X = 1, H };
static const tg_tensor tensors[] = {
    [X] = {"x", TG_IO, TG_IN, {TG_T, TG_DHV}}, [H] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}}};
static const tg_stmt square[] = {TG_MAP_TO(TG_AT_KV(H), TG_MUL(TG_KV(X), TG_KV(X)))};
static const tg_stmt twice[] = {TG_MAP_TO(TG_AT_KV(H), TG_ADD(TG_KV(X), TG_KV(X)))};
#define ALGORITHM(body_)                                                                                               \
    {                                                                                                                  \
        TG_HEADER(tg_algorithm), .name = "square", .title = "h = x x", .file = __FILE__, .tensors = tensors,           \
                                 .n_tensors = TG_COUNT(tensors), .body = body_, .n_body = 1                            \
    }
static const tg_algorithm right = ALGORITHM(square), wrong = ALGORITHM(twice);
#define SCHEDULE(name_)                                                                                                \
    {                                                                                                                  \
        TG_HEADER(tg_schedule), .name = name_, .file = __FILE__, .chunk = 32, .rows = {                                \
            {.name = "map",                                                                                            \
             .line = __LINE__,                                                                                         \
             .outputs = {H},                                                                                           \
             .warps = 1,                                                                                               \
             .blocks_per_sm = 1,                                                                                       \
             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_P(128)}}                                  \
        }                                                                                                              \
    }
static const tg_schedule good = SCHEDULE("good"), damaged = SCHEDULE("damaged");
static const tg_schedule *const right_schedules[] = {&good, NULL}, *const wrong_schedules[] = {&damaged, NULL};
static const tg_way ways[] = {{&wrong, wrong_schedules}, {NULL, NULL}};

const tg_variant squares = {TG_HEADER(tg_variant), .name = "square", .algorithm = &right, .schedules = right_schedules};
static const tg_variant with_damage = {TG_HEADER(tg_variant), .name = "square", .algorithm = &right,
                                       .schedules = right_schedules, .others = ways};

static void says_zero(const tg_oracle_call *call)
{
    for (int64_t i = 0; i < call->batch * call->heads * call->tokens * call->dhv; i++)
        call->out[H][i] = 0;
}
static const tg_variant all_wrong = {TG_HEADER(tg_variant), .name = "square", .algorithm = &right,
                                     .schedules = right_schedules, .oracle = says_zero};

/* Its gradients: dx = 2 x dh, and what one who forgets the 2 would declare. */
enum { DH = 2, DX };
static const tg_tensor gradient_tensors[] = {[X] = {"x", TG_IO, TG_IN, {TG_T, TG_DHV}},
                                             [DH] = {"dh", TG_IO, TG_IN, {TG_T, TG_DHV}},
                                             [DX] = {"dx", TG_IO, TG_OUT, {TG_T, TG_DHV}}};
static const tg_stmt two_x[] = {TG_MAP_TO(TG_AT_KV(DX), TG_MUL(TG_ADD(TG_KV(X), TG_KV(X)), TG_KV(DH)))},
                     one_x[] = {TG_MAP_TO(TG_AT_KV(DX), TG_MUL(TG_KV(X), TG_KV(DH)))};
#define GRADIENTS(body_)                                                                                               \
    {                                                                                                                  \
        TG_HEADER(tg_algorithm), .name = "square-backward", .title = "dx = 2 x dh", .file = __FILE__,                  \
                                 .tensors = gradient_tensors, .n_tensors = TG_COUNT(gradient_tensors), .body = body_,  \
                                 .n_body = 1                                                                           \
    }
static const tg_algorithm right_gradients = GRADIENTS(two_x), wrong_gradients = GRADIENTS(one_x);

tg_tune_request request_of(const tg_variant *variant)
{
    return (tg_tune_request){.machine = &machine,
                             .variant = variant,
                             .shape = {.batch = 1, .heads = 2, .tokens = 40, .dqk = 16, .dhv = 16},
                             .io = TG_BF16,
                             .budget_seconds = 60,
                             .runs = 1,
                             .seed = 1};
}

/* ---- problems, truth, judgement ---- */

static void a_kernel_is_judged_by_a_problem_of_its_shape(void **state)
{
    (void)state;
    const tg_variant *variant = tg_variant_find("mlstm-sig");
    const tg_shape shape = {.batch = 3, .heads = 4, .tokens = 70, .dqk = 24, .dhv = 40, .group = 2, .packed = true};
    const tg_shape_class class = tg_shape_class_of(&shape, TG_F16);
    tg_problem problem, again, other;
    tg_schedule schedule;
    tg_program *program;
    tg_module *module;
    tg_truth truth;
    LOG(log);
    assert_int_equal(tg_problem_random(variant, NULL, &shape, TG_F16, 7, NULL, &problem, &log_sink), TG_OK);
    assert_int_equal(tg_problem_random(variant, NULL, &shape, TG_F16, 7, NULL, &again, &log_sink), TG_OK);
    assert_int_equal(tg_problem_random(variant, NULL, &shape, TG_F16, 8, NULL, &other, &log_sink), TG_OK);
    const tg_host_tensor *q = tg_problem_tensor(&problem, "q"), *h = tg_problem_tensor(&problem, "h");
    const int64_t extent[] = {1, 2, 70, 24}; /* packed: one sequence of all tokens; two heads share a q */
    assert_memory_equal(q->extent, extent, sizeof extent);
    assert_memory_equal(q->data, tg_problem_tensor(&again, "q")->data, q->bytes);
    assert_memory_not_equal(q->data, tg_problem_tensor(&other, "q")->data, q->bytes);
    assert_int_equal(problem.cuts.n, 3);

    assert_int_equal(tg_schedule_default(variant, machine.target, &class, NULL, &schedule, &log_sink), TG_OK);
    assert_int_equal(tg_compile(variant, &schedule, machine.target, &class, NULL, &program, &log_sink), TG_OK);
    assert_int_equal(tg_load(machine.driver, program, &module, &log_sink), TG_OK);
    assert_int_equal(tg_problem_run(&problem, &machine, module, schedule.chunk, &log_sink), TG_OK);
    assert_int_equal(tg_truth_compute(&problem, 0, NULL, &truth, &log_sink), TG_OK);
    assert_true(tg_judge_all(&problem, &truth, schedule.chunk, NULL).ok);
    tg_num_store(h->data, h->dtype, 5, 3 + tg_num_load(h->data, h->dtype, 5));
    const tg_verdict verdict = tg_judge_all(&problem, &truth, schedule.chunk, NULL);
    assert_false(verdict.ok);
    assert_string_equal(verdict.name, "h");
    assert_int_equal(verdict.error.worst_index, 5);

    tg_truth_free(&truth);
    tg_unload(module);
    tg_program_free(program);
    tg_problem_free(&problem);
    tg_problem_free(&again);
    tg_problem_free(&other);
    assert_string_equal(log.text, "");
}

static void boundaries_are_of_the_shape(void **state)
{
    (void)state;
    const tg_shape shape = {.batch = 2, .heads = 2, .tokens = 40, .dqk = 16, .dhv = 16, .packed = true};
    int64_t short_of_t[] = {0, 5, 39}, three[] = {0, 5, 6, 40};
    const struct {
        tg_cuts cuts;
        const char *said;
    } wrongs[] = {{{short_of_t, 2}, "the boundaries end with 39, expected T = 40"},
                  {{three, 3}, "the boundaries of 3 sequences, expected 2"}};
    for (size_t i = 0; i < 2; i++) {
        tg_problem problem;
        LOG(log);
        assert_int_equal(tg_problem_random(&tg_linear, NULL, &shape, TG_BF16, 1, &wrongs[i].cuts, &problem, &log_sink),
                         TG_E_ARGUMENT);
        assert_says(&log, wrongs[i].said);
    }
}

static void keep_slope(void *user, const tg_slope *slope)
{
    *(tg_slope *)user = *slope;
}

static void gradients_are_what_differences_say(void **state)
{
    (void)state;
    const tg_schedule *const none[] = {NULL};
    const tg_variant backwards[] = {
        {TG_HEADER(tg_variant), .name = "right", .algorithm = &right_gradients, .schedules = none},
        {TG_HEADER(tg_variant), .name = "wrong", .algorithm = &wrong_gradients, .schedules = none}};
    tg_slope slope;
    LOG(log);
    assert_int_equal(tg_gradients_check(&squares, &backwards[0], 3, keep_slope, &slope, &log_sink), TG_OK);
    assert_true(slope.ok);
    assert_int_equal(tg_gradients_check(&squares, &backwards[1], 3, keep_slope, &slope, &log_sink), TG_E_NUMERICS);
    assert_false(slope.ok);
    assert_string_equal(slope.name, "x");
    assert_true(fabs(slope.found - 2 * slope.declared) < 1e-6 * fabs(slope.found));
    assert_string_equal(log.text, "");
}

/* Names say nothing: `f` is a fraction here, `a` whole numbers, and what nobody draws is normal. */
static void inputs_are_drawn_as_declared(void **state)
{
    (void)state;
    static const tg_tensor declared[] = {
        [1] = {"f", TG_F32, TG_IN, {TG_T}, TG_DRAWN_FRACTION},    [2] = {"a", TG_F32, TG_IN, {TG_T}, TG_DRAWN_COUNT},
        [3] = {"x", TG_F32, TG_IN, {TG_T}, TG_DRAWN_LOG_DECAY},   [4] = {"y", TG_F32, TG_IN, {TG_T}, TG_DRAWN_STEP},
        [5] = {"z", TG_F32, TG_IN, {TG_T}, TG_DRAWN_LOG_RATE},    [6] = {"beta", TG_F32, TG_IN, {TG_T}},
        [7] = {"k", TG_F32, TG_IN, {TG_T, TG_DHV}, TG_DRAWN_UNIT}};
    const struct {
        double least, most, mean;
    } expected[] = {{0, 1, 0.5},     {8, 15, 11.5}, {-5, 0, -0.4}, {-7, -2.2, -4.6},
                    {0, 2.78, 1.39}, {-5, 5, 0},    {-2, 2, 0}};
    const tg_algorithm algorithm = {TG_HEADER(tg_algorithm), .name = "drawn", .tensors = declared,
                                    .n_tensors = TG_COUNT(declared)};
    const tg_variant variant = {TG_HEADER(tg_variant), .name = "drawn", .algorithm = &algorithm};
    const tg_shape shape = {.batch = 2, .heads = 2, .tokens = 500, .dqk = 16, .dhv = 16};
    tg_problem problem;
    assert_int_equal(tg_problem_random(&variant, NULL, &shape, TG_BF16, 1, NULL, &problem, NULL), TG_OK);
    for (uint32_t i = 0; i < problem.n_tensors; i++) {
        const float *x = problem.tensors[i].data;
        double sum = 0;
        for (size_t e = 0; e < problem.tensors[i].n; e++) {
            sum += (double)x[e];
            assert_true((double)x[e] >= expected[i].least && (double)x[e] <= expected[i].most);
        }
        assert_true(fabs(sum / (double)problem.tensors[i].n - expected[i].mean) < 0.15);
    }
    tg_problem_free(&problem);
}

/* ---- searches ---- */

static void the_best_can_be_remembered_and_compiled(void **state)
{
    (void)state;
    tg_tune_request request = request_of(&tg_linear);
    request.budget_seconds = 3;
    tg_tuning tuning;
    assert_int_equal(tg_tune(&request, &tuning, NULL), TG_OK);
    assert_true(tuning.n_candidates > 2);
    assert_ptr_equal(tuning.untuned, &tuning.candidates[0]);
    for (uint32_t i = 0; i < tuning.n_candidates; i++) {
        assert_int_equal(tuning.candidates[i].state, TG_TIMED);
        assert_true(tuning.candidates[i].verdict.ok && tuning.candidates[i].milliseconds > 0);
    }
    assert_true(tuning.best->milliseconds <= tuning.untuned->milliseconds);

    char path[] = "/tmp/tegula-tuning-XXXXXX";
    tg_wisdom found;
    int is_found = 0;
    assert_int_equal(close(mkstemp(path)), 0);
    assert_int_equal(tg_wisdom_add(path, &tuning.wisdom, NULL), TG_OK);
    assert_int_equal(tg_wisdom_find(path, &tuning.wisdom, &found, &is_found, NULL), TG_OK);
    assert_true(is_found);
    assert_string_equal(found.schedule, tuning.best->text);
    const tg_shape_class class = tg_shape_class_of(&request.shape, request.io);
    tg_wanted wanted = {.variant = &tg_linear, .target = machine.target, .shape_class = &class, .like = tuning.wisdom};
    tg_schedule again;
    assert_true(tg_wisdom_advice(&wanted, path, &found, &again, NULL));
    assert_int_equal(again.chunk, tuning.best->schedule.chunk);
    wanted.like.tokens *= 4; /* too far from what was measured */
    assert_false(tg_wisdom_advice(&wanted, path, &found, &again, NULL));
    unlink(path);

    tg_set_part part = {.target = machine.target, .shape = class};
    tg_set *set;
    part.schedules[part.n_schedules++] = tuning.best->schedule;
    assert_int_equal(tg_compile_set(&tg_linear, &part, 1, NULL, &set, NULL), TG_OK);
    tg_set_free(set);
    tg_tuning_free(&tuning);
}

/* Without time there is what a call gets untuned: of a forward, of gradients, of packed sequences with groups. */
static void without_time_the_untuned_is_timed(void **state)
{
    (void)state;
    tg_tune_request requests[] = {request_of(&tg_linear), request_of(tg_linear.backward), request_of(&tg_simple_gla)};
    requests[2].shape.packed = true;
    requests[2].shape.group = 2;
    for (size_t i = 0; i < 3; i++) {
        tg_tuning tuning;
        LOG(log);
        requests[i].budget_seconds = 0;
        assert_int_equal(tg_tune(&requests[i], &tuning, &log_sink), TG_OK);
        assert_int_equal(tuning.n_candidates, 1);
        assert_ptr_equal(tuning.best, tuning.untuned);
        assert_int_equal(tuning.best->state, TG_TIMED);
        assert_false(tuning.is_cancelled);
        tg_tuning_free(&tuning);
    }
}

/* Of two numbers, which are sums of hundreds of parts of both signs, both may be nearly zero; their errors are not. */
static void right_numbers_that_cancel_are_right(void **state)
{
    (void)state;
    tg_tune_request request = request_of(tg_variant_find("mlstm-sig-backward"));
    request.shape.tokens = 1;
    request.budget_seconds = 0;
    tg_tuning tuning;
    LOG(log);
    assert_int_equal(tg_tune(&request, &tuning, &log_sink), TG_OK);
    assert_string_equal(log.text, "");
    assert_int_equal(tuning.best->state, TG_TIMED);
    tg_tuning_free(&tuning);
}

static void a_damaged_candidate_is_found_wrong(void **state)
{
    (void)state;
    tg_tune_request request = request_of(&with_damage);
    tg_tuning tuning;
    LOG(log);
    assert_int_equal(tg_tune(&request, &tuning, &log_sink), TG_OK);
    assert_int_equal(tuning.n_candidates, 2);
    assert_string_equal(tuning.best->text, "good");
    const tg_candidate *bad = &tuning.candidates[1];
    assert_string_equal(bad->schedule.name, "damaged");
    assert_int_equal(bad->state, TG_WRONG);
    assert_non_null(strstr(bad->reason, "h has rms "));
    assert_says(&log, "damaged is not within tolerance and is left out: h has rms ");
    tg_tuning_free(&tuning);
}

static void nothing_right_is_an_error_with_reasons(void **state)
{
    (void)state;
    tg_tune_request request = request_of(&all_wrong);
    tg_tuning tuning;
    LOG(log);
    assert_int_equal(tg_tune(&request, &tuning, &log_sink), TG_E_NUMERICS);
    assert_says(&log, "TG0908 none of 1 candidates could be built, verified and timed");
    assert_null(tuning.best);
    assert_int_equal(tuning.candidates[0].state, TG_WRONG);
    assert_string_equal(tuning.wisdom.variant, "");
    assert_int_equal(tg_wisdom_add("/nonexistent/wisdom.txt", &tuning.wisdom, NULL), TG_E_ARGUMENT);
    tg_tuning_free(&tuning);
}

struct canceller {
    uint32_t wanted;  /* candidates, */
    const char *step; /* and then this one */
    int n_calls;
};

static int cancel(void *user, const tg_tuning *so_far, const tg_candidate *candidate, const char *step)
{
    struct canceller *c = user;
    c->n_calls++;
    assert_true(*candidate->text);
    return so_far->n_candidates == c->wanted && strcmp(step, c->step) == 0;
}

static void what_was_found_before_a_cancel_is_kept(void **state)
{
    (void)state;
    struct canceller c = {.wanted = 1, .step = "compile"};
    tg_tune_request request = request_of(&tg_linear);
    request.progress = cancel;
    request.user = &c;
    tg_tuning tuning;
    LOG(log);
    assert_int_equal(tg_tune(&request, &tuning, &log_sink), TG_OK);
    assert_true(tuning.is_cancelled);
    assert_int_equal(tuning.n_candidates, 1);
    assert_ptr_equal(tuning.best, &tuning.candidates[0]);
    assert_int_equal(tuning.best->state, TG_TIMED);
    assert_string_equal(tuning.wisdom.schedule, tuning.best->text);
    assert_int_equal(c.n_calls, 4); /* three steps of the first, and never again */
    tg_tuning_free(&tuning);
}

static void before_the_first_there_is_nothing_to_keep(void **state)
{
    (void)state;
    static const char *const steps[] = {"compile", "check", "time"};
    for (int i = 0; i < 3; i++) {
        struct canceller c = {.step = steps[i]};
        tg_tune_request request = request_of(&squares);
        request.progress = cancel;
        request.user = &c;
        tg_tuning tuning;
        LOG(log);
        assert_int_equal(tg_tune(&request, &tuning, &log_sink), TG_OK);
        assert_true(tuning.is_cancelled);
        assert_null(tuning.best);
        assert_int_equal(tuning.n_candidates, i > 0);
        assert_int_equal(c.n_calls, i + 1);
        if (i > 0)
            assert_string_equal(tuning.candidates[0].reason, "cancelled");
        assert_string_equal(log.text, "");
        tg_tuning_free(&tuning);
    }
}

static void without_a_gpu_the_model_predicts(void **state)
{
    (void)state;
    const tg_machine none = {.target = tg_target_find("sm_90a")};
    tg_tune_request request = request_of(tg_variant_find("mlstm-sig"));
    request.machine = &none;
    request.shape = (tg_shape){.batch = 8, .heads = 16, .tokens = 8192, .dqk = 128, .dhv = 256};
    tg_tuning tuning;
    assert_int_equal(tg_tune(&request, &tuning, NULL), TG_OK);
    assert_true(tuning.n_candidates > 20);
    for (uint32_t i = 0; i < tuning.n_candidates; i++)
        assert_int_equal(tuning.candidates[i].state, TG_PREDICTED);
    assert_string_equal(tuning.wisdom.variant, "");
    tg_tuning_free(&tuning);
}

static void what_cannot_be_tuned_is_refused(void **state)
{
    (void)state;
    static const tg_variant nothing = {TG_HEADER(tg_variant), .name = "nothing"};
    tg_tune_request r[10];
    for (int i = 0; i < 10; i++)
        r[i] = request_of(&squares);
    r[0].shape.batch = 0;
    r[1].shape.tokens = -5;
    r[2].shape.dhv = 17;
    r[3].shape.group = 3;
    r[4].io = TG_DTYPE_NONE;
    r[5].budget_seconds = NAN;
    r[6].variant = NULL;
    r[7].variant = &nothing;
    r[8].shape.most_tokens = 8;
    r[9].shape.dqk = 0;
    static const struct {
        tg_status status;
        const char *said;
    } expected[] = {{TG_E_ARGUMENT, "TG0901 shape.batch: expected at least 1, found 0"},
                    {TG_E_ARGUMENT, "TG0901 shape.tokens: expected at least 1, found -5"},
                    {TG_E_ARGUMENT, "dhv"},
                    {TG_E_ARGUMENT, "TG0902 a group of 3 heads does not divide NH = 2"},
                    {TG_E_ARGUMENT, "type"},
                    {TG_E_ARGUMENT, "TG0901 budget_seconds: expected at least 0, found "},
                    {TG_E_ARGUMENT, "TG0828 variant is NULL"},
                    {TG_E_DECLARATION, "algorithm"},
                    {TG_E_ARGUMENT, "TG0901 shape.most_tokens: expected 0, or at least shape.tokens, found 8"},
                    {TG_E_ARGUMENT, "TG0901 shape.dqk: expected at least 1, found 0"}};
    for (int i = 0; i < 10; i++) {
        tg_tuning tuning;
        LOG(log);
        assert_int_equal(tg_tune(&r[i], &tuning, &log_sink), expected[i].status);
        assert_says(&log, expected[i].said);
        assert_int_equal(tuning.n_candidates, 0);
        tg_tuning_free(&tuning);
    }
    tg_tuning tuning;
    LOG(log);
    assert_int_equal(tg_tune(NULL, &tuning, &log_sink), TG_E_ARGUMENT);
    assert_says(&log, "TG0828 tg_tune: request is NULL");
    assert_int_equal(tg_tune(&r[0], NULL, &log_sink), TG_E_ARGUMENT);
    assert_says(&log, "TG0828 tg_tune: tuning is NULL");
    tg_tuning_free(NULL);
}

/* What shares a rounding counts as one: the rows of q's kind, not the numbers in them. */
static void rows_of_few_are_few(void **state)
{
    (void)state;
    const tg_verdict is_off = {.ok = false}, is_right = {.ok = true}, not_finite = {.error = {.finite_mismatch = true}};
    tg_host_tensor h = {.rank = 4, .extent = {1, 2, 31, 24}, .n = 1488, .has_tokens = true},
                   gate = {.rank = 3, .extent = {1, 2, 31}, .n = 62, .has_tokens = true},
                   n0 = {.rank = 3, .extent = {2, 1, 40}, .n = 80};
    assert_int_equal(tg_roundings_wanted(&is_off, &n0), TG_ROUNDINGS / 2);
    assert_int_equal(tg_roundings_wanted(&is_right, &h), 0);
    assert_int_equal(tg_roundings_wanted(&not_finite, &h), 0);
    for (int64_t tokens = 1; tokens <= 100; tokens *= 10) {
        h.extent[2] = gate.extent[2] = tokens;
        h.n = (size_t)(48 * tokens);
        gate.n = (size_t)(2 * tokens);
        assert_int_equal(tg_roundings_wanted(&is_off, &h), tokens == 1 ? TG_ROUNDINGS / 2 : TG_ROUNDINGS / 8);
        assert_int_equal(tg_roundings_wanted(&is_off, &gate), tokens == 1 ? TG_ROUNDINGS / 2 : TG_ROUNDINGS / 8);
    }
}

static double nothing(void *user, uint32_t tile, uint64_t element, double value)
{
    (void)user, (void)tile, (void)element, (void)value;
    return 0;
}

/* What products take in place of a state reaches the outputs, and is not carried on. */
static void a_state_is_rounded_where_it_is_read(void **state)
{
    (void)state;
    const tg_shape shape = {.batch = 1, .heads = 1, .tokens = 128, .dqk = 16, .dhv = 16};
    const tg_rounding rounding = {.operand = nothing};
    tg_problem problem;
    tg_truth plain, without;
    LOG(log);
    assert_int_equal(tg_problem_random(&tg_linear, NULL, &shape, TG_BF16, 1, NULL, &problem, &log_sink), TG_OK);
    assert_int_equal(tg_truth_rounded(&problem, 64, NULL, NULL, &plain, &log_sink), TG_OK);
    assert_int_equal(tg_truth_rounded(&problem, 64, &rounding, NULL, &without, &log_sink), TG_OK);
    const tg_host_tensor *h = tg_problem_tensor(&problem, "h"), *final = tg_problem_tensor(&problem, "S");
    assert_memory_equal(plain.out[final->tile], without.out[final->tile], final->n * sizeof(double));
    assert_memory_not_equal(plain.out[h->tile], without.out[h->tile], h->n * sizeof(double));
    tg_truth_free(&plain);
    tg_truth_free(&without);
    tg_problem_free(&problem);
}

enum { MANY = 100, FEW = 3 };

static tg_verdict judged_again(bool is_gradient, size_t n, double rms_ratio, double deviation)
{
    double truth[MANY], squared[MANY];
    for (size_t i = 0; i < n; i++) {
        truth[i] = i % 2 ? 1 : -1;
        squared[i] = deviation * deviation;
    }
    const tg_host_tensor tensor = {
        .rank = 3, .extent = {1, 1, (int64_t)n}, .n = n, .has_tokens = true, .is_gradient = is_gradient};
    tg_verdict verdict = {
        .error = {.rms_ratio = rms_ratio, .max_ratio = rms_ratio}, .rms_limit = 0.01, .max_limit = 0.1};
    tg_judge_rounded(&tensor, (tg_const_array){truth, TG_NUM_F64, n}, squared, &verdict);
    return verdict;
}

/* What is beyond its limit may be three times as wrong as roundings make it; of few numbers five times. But an output no more than
 * twice what is allowed where nothing cancels, a gradient no more than a quarter. */
static void roundings_excuse_what_they_make(void **state)
{
    (void)state;
    assert_true(judged_again(true, MANY, 0.029, 0.01).ok);
    assert_false(judged_again(true, MANY, 0.031, 0.01).ok);
    assert_true(judged_again(true, FEW, 0.049, 0.01).ok);
    assert_false(judged_again(true, FEW, 0.051, 0.01).ok);
    assert_true(judged_again(false, MANY, 0.019, 1).ok);
    assert_false(judged_again(false, MANY, 0.021, 1).ok);
    assert_true(judged_again(true, MANY, 0.24, 1).ok);
    assert_false(judged_again(true, MANY, 0.26, 1).ok);
    assert_false(judged_again(true, FEW, 1, 1).ok);
    assert_false(judged_again(true, MANY, 0.011, 1e-4).ok);
}

/* f16 has nothing between 0 and 6e-8: zeros are right where the truth is nearer to 0 than to that, and only there. */
static void what_f16_cannot_hold_is_no_error(void **state)
{
    (void)state;
    const tg_problem problem = {.variant = &tg_linear, .io = TG_F16};
    for (int k = 0; k < 2; k++) {
        const double size = k ? 1e-6 : 1e-8, truth[2] = {size, -size};
        uint16_t zeros[2] = {0, 0};
        const tg_host_tensor h = {.rank = 4, .extent = {1, 1, 1, 2}, .n = 2, .data = zeros, .dtype = TG_NUM_F16};
        assert_true(tg_judge(&problem, &h, (tg_const_array){truth, TG_NUM_F64, 2}, (tg_levels){0, 0}).ok == !k);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_is_judged_by_a_problem_of_its_shape),
        cmocka_unit_test(boundaries_are_of_the_shape),
        cmocka_unit_test(gradients_are_what_differences_say),
        cmocka_unit_test(inputs_are_drawn_as_declared),
        cmocka_unit_test(the_best_can_be_remembered_and_compiled),
        cmocka_unit_test(without_time_the_untuned_is_timed),
        cmocka_unit_test(right_numbers_that_cancel_are_right),
        cmocka_unit_test(rows_of_few_are_few),
        cmocka_unit_test(a_state_is_rounded_where_it_is_read),
        cmocka_unit_test(roundings_excuse_what_they_make),
        cmocka_unit_test(what_f16_cannot_hold_is_no_error),
        cmocka_unit_test(a_damaged_candidate_is_found_wrong),
        cmocka_unit_test(nothing_right_is_an_error_with_reasons),
        cmocka_unit_test(what_was_found_before_a_cancel_is_kept),
        cmocka_unit_test(before_the_first_there_is_nothing_to_keep),
        cmocka_unit_test(without_a_gpu_the_model_predicts),
        cmocka_unit_test(what_cannot_be_tuned_is_refused),
        cmocka_unit_test(a_driver_call_that_fails_leaves_nothing_behind),
    };
    if (!usage_is(argc, argv, 1, 1, "EMULATOR"))
        return 2;
    emulator = argv[1];
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
