/* tests/test_torch.c [old] - operators of PyTorch without PyTorch: libtegula-torch between a fake libtorch, whose stack it
 * reads, and a fake driver, which says what it was called with. */
#include "tests/fake_torch.h"
#include "tests/runtime_fixture.h"
#include "tests/usage.h"
#include "torch/torch.h"

#include <math.h>
#include <string.h>

/* NAME(q, k, v, f, i, S0?, scale?, options) -> (h, S), of the sample program. */
enum { Q, K, V, F, I, S0, N_INPUTS, N_OPTIONS = 2, WIDTH = SAMPLE_WIDTH };
static const int64_t rows[] = {2, 3, 20, WIDTH}, gates[] = {2, 3, 20}, states[] = {2, 3, WIDTH, WIDTH};
static tg_module *module;
static int n_planned, n_run;
static bool is_hosted, is_refused, wants_state, has_workspace;
static uint32_t functional, out;
static tg_torch_call seen;

static void dense(tg_tensor_arg *arg, const tg_torch_tensor *t, const char *name)
{
    arg->name = name;
    for (int32_t i = 0; i < t->rank && t->address; i++)
        arg->stride[i] = t->strides[i];
}

static int plan_call(const tg_torch_call *call, tg_torch_plan *plan, char *message)
{
    static const char *const names[] = {"q", "k", "v", "f", "i", "S0"};
    const int64_t of_h[] = {2, 3, 20, WIDTH};
    n_planned++;
    seen = *call;
    if (is_refused)
        return strcpy(message, "q: expected another, found this"), 1;
    *plan = (tg_torch_plan){.driver = driver,
                            .module = is_hosted ? NULL : module,
                            .sizes = {2, 3, 20, 0},
                            .workspace = has_workspace ? 2 * 3 * WIDTH * WIDTH * 4 : 0,
                            .has_scalars = 1};
    plan->scalars[0] = isnan(call->scalars[0]) ? 0.25f : (float)call->scalars[0];
    plan->outputs[0] = (tg_torch_output){.dtype = TG_F32, .rank = 4};
    memcpy(plan->outputs[0].sizes, of_h, sizeof of_h);
    if (wants_state) {
        plan->outputs[1] = (tg_torch_output){.dtype = TG_F32, .rank = 4};
        memcpy(plan->outputs[1].sizes, states, sizeof states);
    }
    for (uint8_t i = 0; i < N_INPUTS; i++)
        if (call->inputs[i].rank >= 0) {
            dense(&plan->args[plan->n_args], &call->inputs[i], names[i]);
            plan->sources[plan->n_args++] = i;
        }
    for (uint8_t i = 0; i < 1 + wants_state; i++) {
        plan->args[plan->n_args].name = i ? "S" : "h";
        plan->sources[plan->n_args++] = TG_TORCH_TENSORS + i;
    }
    return 0;
}

static int run_call(const tg_torch_call *call, char *message)
{
    n_run++;
    seen = *call;
    return is_refused ? strcpy(message, "cu: expected another, found this"), 1 : 0;
}

/* ---- a call, as PyTorch makes it ---- */

static stable_value stack[N_INPUTS + 1 + N_OPTIONS + 3];
static tensor_handle given[N_INPUTS];

static stable_value number_of(double x)
{
    stable_value bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void put_arguments(bool has_state)
{
    const int64_t *const shapes[] = {rows, rows, rows, gates, gates, states};
    for (int i = 0; i < N_INPUTS; i++)
        given[i] = i == S0 && !has_state ? NULL : fake_tensor(FAKE_F32, i == F || i == I ? 3 : 4, shapes[i]);
    for (int i = 0; i < S0; i++)
        stack[i] = (uintptr_t)given[i];
    stack[S0] = has_state ? fake_value((uintptr_t)given[S0]) : 0;
    stack[N_INPUTS] = 0;
    for (int i = 0; i < N_OPTIONS; i++)
        stack[N_INPUTS + 1 + i] = (stable_value)(40 + i);
}

/* True, or false with the text of the exception. */
static bool call(uint32_t number)
{
    jmp_buf catcher;
    fake_torch()->catcher = &catcher;
    fake_torch()->thrown[0] = 0;
    if (setjmp(catcher))
        return false;
    fake_torch()->kernels[2 * number].kernel(stack, 0, 0);
    return true;
}

static void drop_results(int n)
{
    for (int i = 0; i < n; i++)
        fake_drop((tensor_handle)(uintptr_t)stack[i]);
}

static void assert_nothing_is_left(void)
{
    assert_int_equal(fake_torch()->n_tensors, 0);
    assert_int_equal(fake_torch()->n_values, 0);
    assert_int_equal(fake_torch()->n_guards, 0);
}

static tg_program program;

static int begin(void **state)
{
    if (setup(state))
        return -1;
    program = sample_program(ptx);
    module = load_program(&program);
    n_planned = n_run = 0;
    is_hosted = is_refused = wants_state = false;
    has_workspace = true;
    tg_torch_forget();
    fake_torch()->failing = NULL;
    fake_torch()->n_made = fake_torch()->n_copied = 0;
    fake_torch()->stream = (void *)(uintptr_t)0x5000;
    fake_torch()->next_address = UINT64_C(1) << 40;
    return 0;
}

static int end(void **state)
{
    assert_nothing_is_left();
    tg_unload(module);
    return teardown(state);
}

/* ---- tests ---- */

static void operators_are_registered_for_both_devices(void **state)
{
    (void)state;
    assert_int_equal(fake_torch()->n_kernels, 4);
    assert_string_equal(fake_torch()->kernels[0].name, "sample");
    assert_string_equal(fake_torch()->kernels[0].key, "CPU");
    assert_string_equal(fake_torch()->kernels[1].key, "CUDA");
    assert_string_equal(fake_torch()->kernels[2].name, "sample.out");
    assert_ptr_not_equal(fake_torch()->kernels[0].kernel, fake_torch()->kernels[2].kernel);
}

static void a_call_goes_to_the_current_stream(void **state)
{
    (void)state;
    put_arguments(false);
    const uint64_t q = given[Q]->address;
    assert_true(call(functional));
    assert_ptr_equal(fake->stream, fake_torch()->stream);
    assert_int_equal(fake->grid[0], 6);
    const tensor_handle h = (tensor_handle)(uintptr_t)stack[0], none = (tensor_handle)(uintptr_t)stack[1];
    assert_int_equal(value_of(&program, TG_ARG_POINTER, SAMPLE_Q, 0), q);
    assert_int_equal(value_of(&program, TG_ARG_POINTER, SAMPLE_H, 0), h->address);
    assert_int_equal(value_of(&program, TG_ARG_POINTER, SAMPLE_S0, 0), 0);
    assert_int_equal(value_of(&program, TG_ARG_STRIDE, SAMPLE_H, 1), 20 * WIDTH);
    assert_int_equal(h->rank, 4);
    assert_int_equal(h->device_type, FAKE_ON_GPU);
    assert_int_equal(none->sizes[0], 0); /* the state, which nobody wants */
    assert_int_equal(fake_torch()->n_made, 3);
    drop_results(2);
    assert_nothing_is_left(); /* nor the workspace */
}

static void calls_that_are_alike_have_one_plan(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        put_arguments(false);
        const uint64_t v = given[V]->address;
        assert_true(call(functional));
        assert_int_equal(value_of(&program, TG_ARG_POINTER, SAMPLE_V, 0), v);
        drop_results(2);
    }
    assert_int_equal(n_planned, 1);
    assert_int_equal(seen.options[1], 41);
    assert_true(isnan(seen.scalars[0]));
    assert_int_equal(seen.inputs[S0].rank, -1);
    put_arguments(true);
    stack[N_INPUTS] = fake_value(number_of(0.5));
    assert_true(call(functional));
    assert_int_equal(n_planned, 2);
    assert_int_equal(value_of(&program, TG_ARG_SCALAR, 0, 0), 0x3f000000);
    drop_results(2);
    put_arguments(false);
    given[Q]->strides[0] = 0; /* broadcast */
    assert_true(call(functional));
    drop_results(2);
    put_arguments(false);
    for (int i = 0; i < S0; i++)
        given[i]->device_index = 1;
    assert_true(call(functional));
    assert_int_equal(fake_torch()->guarded, 1);
    assert_int_equal(((tensor_handle)(uintptr_t)stack[0])->device_index, 1);
    drop_results(2);
    put_arguments(false);
    stack[N_INPUTS + 1] = 0;
    assert_true(call(functional));
    drop_results(2);
    assert_int_equal(n_planned, 5);
    assert_int_equal(tg_torch_plans(), 5);
}

static void rows_that_kernels_cannot_read_are_copied(void **state)
{
    (void)state;
    put_arguments(true);
    given[Q]->address += 4;
    given[K]->strides[3] = 2;
    given[F]->address += 4; /* gates are read by elements */
    given[S0]->strides[2] = 17;
    assert_true(call(functional));
    assert_int_equal(fake_torch()->n_copied, 3);
    assert_int_equal(value_of(&program, TG_ARG_POINTER, SAMPLE_Q, 0) % 16, 0);
    drop_results(2);
}

static void outputs_and_workspace_of_the_caller_are_used(void **state)
{
    (void)state;
    const int64_t bytes = 2 * 3 * WIDTH * WIDTH * 4;
    stable_value *const outputs = &stack[N_INPUTS + 1 + N_OPTIONS];
    wants_state = true;
    put_arguments(false);
    const tensor_handle h = fake_tensor(FAKE_F32, 4, rows), S = fake_tensor(FAKE_F32, 4, states);
    const tensor_handle workspace = fake_tensor(FAKE_U8, 1, &bytes);
    const uint64_t addresses[] = {h->address, S->address, workspace->address};
    outputs[0] = fake_value((uintptr_t)h);
    outputs[1] = fake_value((uintptr_t)S);
    outputs[2] = fake_value((uintptr_t)workspace);
    assert_true(call(out));
    assert_int_equal(fake_torch()->n_made, 0);
    assert_int_equal(value_of(&program, TG_ARG_POINTER, SAMPLE_H, 0), addresses[0]);
    assert_int_equal(value_of(&program, TG_ARG_POINTER, SAMPLE_S, 0), addresses[1]);
    assert_int_equal(value_of(&program, TG_ARG_POINTER, SAMPLE_C, 0), addresses[2]);
}

static void a_workspace_that_is_too_small_is_refused(void **state)
{
    (void)state;
    const int64_t bytes = 2 * 3 * WIDTH * WIDTH * 4 - 1;
    stable_value *const outputs = &stack[N_INPUTS + 1 + N_OPTIONS];
    put_arguments(false);
    outputs[0] = fake_value((uintptr_t)fake_tensor(FAKE_F32, 4, rows));
    outputs[1] = 0;
    outputs[2] = fake_value((uintptr_t)fake_tensor(FAKE_U8, 1, &bytes));
    assert_false(call(out));
    assert_string_equal(fake_torch()->thrown,
                        "TG0826 workspace: expected a uint8 tensor of 6144 elements, found another");
}

static void calls_of_the_host_are_its_own(void **state)
{
    (void)state;
    is_hosted = true;
    for (int i = 0; i < 2; i++) {
        put_arguments(false);
        for (int j = 0; j < S0; j++)
            given[j]->device_type = FAKE_ON_CPU;
        given[K]->strides[1] = 1; /* the host reads memory in one piece */
        assert_true(call(functional));
        assert_int_equal(seen.inputs[Q].device, TG_TORCH_HOST);
        assert_int_equal(seen.outputs[0].sizes[3], WIDTH);
        assert_int_equal(((tensor_handle)(uintptr_t)stack[0])->device_type, FAKE_ON_CPU);
        drop_results(2);
    }
    assert_int_equal(n_planned, 1);
    assert_int_equal(n_run, 2);
    assert_int_equal(fake_torch()->n_copied, 2);
}

/* Whatever goes wrong is an exception, and nothing stays behind. */
static void what_goes_wrong_is_thrown(void **state)
{
    (void)state;
    static const struct {
        const char *failing, *expected;
    } rows_of[] = {
        {"aoti_torch_empty_strided", "CUDA out of memory. Tried to allocate 6144 bytes for sample"},
        {"aoti_torch_get_data_ptr", "sample: expected tensors in memory, found one that has none"},
    };
    fake_torch()->fails_above = 2 * 3 * 20 * WIDTH; /* the workspace */
    for (size_t i = 0; i < sizeof rows_of / sizeof *rows_of; i++) {
        put_arguments(true);
        fake_torch()->failing = rows_of[i].failing;
        assert_false(call(functional));
        assert_string_equal(fake_torch()->thrown, rows_of[i].expected);
        assert_nothing_is_left();
    }
    fake_torch()->failing = NULL;
    put_arguments(true);
    is_refused = true;
    tg_torch_forget();
    assert_false(call(functional));
    assert_string_equal(fake_torch()->thrown, "q: expected another, found this");
    assert_int_equal(tg_torch_plans(), 0);
}

static void what_a_launch_reports_is_thrown(void **state)
{
    (void)state;
    put_arguments(false);
    fake->failing = "cuLaunchKernel";
    fake->result = 700;
    assert_false(call(functional));
    assert_non_null(strstr(fake_torch()->thrown, "TG08"));
    assert_non_null(strstr(fake_torch()->thrown, "an illegal memory access was encountered"));
    fake->failing = NULL;
}

static void undefined_tensors_and_too_many_axes(void **state)
{
    (void)state;
    put_arguments(false);
    given[I]->is_undefined = true;
    is_refused = true;
    assert_false(call(functional));
    assert_int_equal(seen.inputs[I].rank, -1);
    put_arguments(false);
    given[Q]->rank = 7;
    assert_false(call(functional));
    assert_string_equal(fake_torch()->thrown, "sample: expected tensors of 6 axes at most, found one of more");
}

static void old_libtorch_is_refused(void **state)
{
    (void)state;
    LOG(log);
    const tg_torch_host host = {plan_call, run_call};
    assert_int_equal(tg_torch_open(&host, &log_sink), TG_E_UNSUPPORTED);
    assert_says(&log, "TG0834 libtorch_cpu.so: expected aoti_torch_is_defined, found no such function");
}

static bool open_all(void)
{
    const tg_torch_host host = {plan_call, run_call};
    const tg_torch_operator of = {.name = "sample",
                                  .n_inputs = N_INPUTS,
                                  .n_scalars = 1,
                                  .n_options = N_OPTIONS,
                                  .n_outputs = 2,
                                  .optional = 1 << S0,
                                  .rows = 1 << Q | 1 << K | 1 << V | 1 << S0};
    tg_torch_operator with_outputs = of;
    with_outputs.name = "sample.out";
    with_outputs.takes_outputs = 1;
    return tg_torch_open(&host, NULL) == TG_OK && tg_torch_implement(&of, &functional, NULL) == TG_OK &&
           tg_torch_implement(&with_outputs, &out, NULL) == TG_OK;
}

#define CALL(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int n, char **arguments)
{
    const struct CMUnitTest old[] = {cmocka_unit_test(old_libtorch_is_refused)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_are_registered_for_both_devices),
        CALL(a_call_goes_to_the_current_stream),
        CALL(calls_that_are_alike_have_one_plan),
        CALL(rows_that_kernels_cannot_read_are_copied),
        CALL(outputs_and_workspace_of_the_caller_are_used),
        CALL(a_workspace_that_is_too_small_is_refused),
        CALL(calls_of_the_host_are_its_own),
        CALL(what_goes_wrong_is_thrown),
        CALL(what_a_launch_reports_is_thrown),
        CALL(undefined_tensors_and_too_many_axes),
    };
    if (!usage_is(n, arguments, 0, 1, "[old]"))
        return 2;
    if (n > 1)
        return cmocka_run_group_tests(old, NULL, NULL);
    return open_all() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
