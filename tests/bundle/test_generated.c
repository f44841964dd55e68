/* tests/bundle/test_generated.c - generated C and the runtime do the same with the same call.
 *
 * The launch loop exists twice, in runtime/launch.c and in program/embed_template.c.in. Random
 * calls, most of them with a mistake, go through both to the fake driver: both must refuse or both
 * must ask it for the same. */
#include "mlstm_sig.h"
#include "runtime/runtime.h"
#include "tests/bundle/sample.h"
#include "tests/fake_cuda.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { N_TENSORS = 8, N_CALLS = 200000 };

static struct fake_state *fake;
static tg_driver *driver;
static tg_module *module;
static tg_program program;
static mlstm_sig_driver generated_driver;
static mlstm_sig_module generated;

/* What the driver was asked. */
struct trace {
    char log[FAKE_LOG_BYTES];
    unsigned int grid[3], block[3], shared;
    void *stream;
    uint64_t pieces;
    uint64_t values[FAKE_MAX_VALUES];
};

static void take_trace(struct trace *trace)
{
    memset(trace, 0, sizeof *trace);
    memcpy(trace->log, fake->log, sizeof trace->log);
    memcpy(trace->grid, fake->grid, sizeof trace->grid);
    memcpy(trace->block, fake->block, sizeof trace->block);
    memcpy(trace->values, fake->values, sizeof trace->values);
    trace->shared = fake->shared;
    trace->stream = fake->stream;
    trace->pieces = fake->pieces;
}

static int setup(void **state)
{
    (void)state;
    static const char ptx[] = ".version 7.0\n";
    void *library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    fake = library ? dlsym(library, "fake_state") : NULL;
    if (!fake)
        return -1;
    fake->cc_major = 9;
    fake->shared_optin = 232448;
    fake->max_threads = fake->function_threads = 1024;
    program = sample_program(ptx);
    fake->n_values = (int)program.kernels[0].n_args;
    for (int i = 0; i < fake->n_values; i++)
        fake->value_bytes[i] = program.kernels[0].args[i].kind >= TG_ARG_SIZE ? 4 : 8;
    return tg_driver_open(FAKE_CUDA, &driver, NULL) || tg_load(driver, &program, &module, NULL) ||
           mlstm_sig_driver_open(&generated_driver, FAKE_CUDA) ||
           mlstm_sig_load(&generated, &generated_driver);
}

static int teardown(void **state)
{
    (void)state;
    tg_unload(module);
    mlstm_sig_unload(&generated);
    int n_modules = fake->n_modules;
    mlstm_sig_driver_close(&generated_driver);
    tg_driver_close(driver);
    return n_modules;
}

static int64_t one_of(const int64_t *choices, size_t n)
{
    return choices[(size_t)rand() % n];
}
#define ONE_OF(...)                                                                                \
    one_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static int64_t rarely(int64_t strange, int64_t usual)
{
    return rand() % 40 == 0 ? strange : usual;
}

/* Memory that empty calls may really write; other calls only pass addresses on. */
static _Alignas(256) uint8_t memory[1 << 20];

static void random_call(tg_sizes *sizes, tg_tensor_arg *args, uint64_t *workspace)
{
    sizes->batch = ONE_OF(0, 1, 2, 3);
    sizes->heads = rarely(0, ONE_OF(1, 2, 5));
    sizes->tokens = rarely(-1, ONE_OF(0, 0, 1, 16, 17, 100, INT32_MAX));
    sizes->chunk = rarely(15, ONE_OF(0, 16, 64, 128));
    for (int t = 0; t < N_TENSORS; t++) {
        args[t] = (tg_tensor_arg){.name = sample_tensors[t].name};
        args[t].address = (uintptr_t)memory + (uintptr_t)(t == SAMPLE_S ? sizeof memory / 2 : 0);
        args[t].address += (uint64_t)rarely(2, 0);
        if (rarely(1, 0) || (t == SAMPLE_S0 && rand() % 2))
            args[t].address = 0;
        if (rand() % 4 ==
            0) { /* rows of 32 in 16 of each sequence; the state stays inside `memory` */
            const int64_t stride[] = {2560, rarely(0, 512), rarely(34, 32), rarely(2, 1)};
            memcpy(args[t].stride, stride, sizeof stride);
        }
        args[t].stride[0] = rarely(0, args[t].stride[0]);
        if (sizes->tokens > 0)
            args[t].stride[rand() % 4] += rarely(INT64_MAX / 4, 0);
    }
    *workspace = (uint64_t)rarely(0, rarely(0x110, 0x100));
}

static void both_launch_the_same(void **state)
{
    (void)state;
    static struct trace ours, theirs;
    int n_launched = 0, n_defined = 0;
    for (int call = 0; call < N_CALLS; call++) {
        tg_sizes sizes;
        tg_tensor_arg args[N_TENSORS];
        mlstm_sig_tensor tensors[N_TENSORS];
        uint64_t workspace;
        srand((unsigned int)call);
        random_call(&sizes, args, &workspace);
        const mlstm_sig_sizes same_sizes = {sizes.batch, sizes.heads, sizes.tokens, sizes.chunk};
        for (int t = 0; t < N_TENSORS; t++) {
            tensors[t].address = args[t].address;
            memcpy(tensors[t].stride, args[t].stride, sizeof args[t].stride);
        }
        mlstm_sig_tensors same_tensors;
        memcpy(&same_tensors, tensors, sizeof same_tensors); /* its fields are in this order */
        fake->log[0] = '\0';
        fake->pieces = 0;
        void *stream = (void *)(uintptr_t)call;
        tg_status status =
            tg_launch(module, &sizes, 0.5f, args, N_TENSORS, workspace, stream, NULL);
        take_trace(&ours);
        fake->log[0] = '\0';
        fake->pieces = 0;
        int result =
            mlstm_sig_launch(&generated, &same_sizes, 0.5f, &same_tensors, workspace, stream);
        take_trace(&theirs);
        if ((status == TG_OK) != (result == MLSTM_SIG_OK) || strcmp(ours.log, theirs.log) != 0 ||
            memcmp(ours.grid, theirs.grid, sizeof ours - offsetof(struct trace, grid)) != 0)
            fail_msg("call %d: status %d \"%s\", result %d \"%s\"", call, (int)status, ours.log,
                     result, theirs.log);
        n_launched += status == TG_OK && strstr(ours.log, "cuLaunchKernel") != NULL;
        n_defined += status == TG_OK && strstr(ours.log, "Async") != NULL;
        if (tg_sizes_check(&program, &sizes, NULL) == TG_OK)
            assert_int_equal(tg_workspace_bytes(&program, &sizes),
                             mlstm_sig_workspace_bytes(&same_sizes));
    }
    assert_true(n_launched > N_CALLS / 20 && n_defined > N_CALLS / 20); /* not all were refused */
}

static void mistakes_have_their_codes(void **state)
{
    (void)state;
    mlstm_sig_sizes sizes = {1, 1, 16, 0};
    mlstm_sig_tensors t = {0};
    assert_int_equal(mlstm_sig_launch(&generated, &sizes, 1, &t, 0, NULL), MLSTM_SIG_E_WORKSPACE);
    assert_int_equal(mlstm_sig_launch(&generated, &sizes, 1, &t, 256, NULL), MLSTM_SIG_E_TENSOR);
    sizes.heads = 0;
    assert_int_equal(mlstm_sig_launch(&generated, &sizes, 1, &t, 256, NULL), MLSTM_SIG_E_SIZES);
    assert_int_equal(mlstm_sig_workspace_bytes(&sizes), 0);
    mlstm_sig_driver other;
    mlstm_sig_module none;
    assert_int_equal(mlstm_sig_driver_open(&other, "/nowhere.so"), MLSTM_SIG_E_DRIVER);
    assert_int_equal(mlstm_sig_driver_open(&other, FAKE_CUDA_OLD), MLSTM_SIG_E_DRIVER);
    assert_null(other.library);
    fake->cc_major = 7;
    assert_int_equal(mlstm_sig_load(&none, &generated_driver), MLSTM_SIG_E_DEVICE);
    fake->cc_major = 9;
    fake->failing = "cuFuncLoad";
    fake->result = 700;
    fake->error_text = "some text";
    assert_int_equal(mlstm_sig_load(&none, &generated_driver), 700);
    assert_string_equal(mlstm_sig_error(&generated_driver, 700), "some text");
    fake->failing = NULL;
    for (int result = MLSTM_SIG_E_WORKSPACE; result <= MLSTM_SIG_OK; result++)
        assert_non_null(mlstm_sig_error(NULL, result));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_launch_the_same),
        cmocka_unit_test(mistakes_have_their_codes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
