/* tests/bundle/test_generated.c - generated C and the runtime do the same with the same call.
 *
 * The launch loop exists twice, in runtime/launch.c and in program/embed_template.c.in. Random
 * calls, most of them with a mistake, go through both to the fake driver: both must refuse or both
 * must ask it for the same. */
#include "decode.h"
#include "maps.h"
#include "mlstm_sig.h"
#include "packed.h"
#include "runtime/runtime.h"
#include "tests/bundle/sample.h"
#include "tests/fake_cuda.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { N_CALLS = 100000, N_SUBJECTS = 4 };

static struct fake_state *fake;
static tg_driver *driver;

/* ---- the generated programs, behind one type ---- */

struct call {
    tg_sizes sizes;
    float scalars[TG_MAX_SCALARS];
    tg_tensor_arg args[TG_MAX_TENSORS]; /* the signature, in order */
    uint32_t n_args;
    uint64_t workspace;
    void *stream;
};

/* Every prefix has types of its own, all alike; programs differ in how many scalars they have. */
#define ONE_SCALAR(call)  (call)->scalars[0]
#define TWO_SCALARS(call) (call)->scalars[0], (call)->scalars[1]
#define DEFINE_SUBJECT(name, its_scalars)                                                                              \
    static name##_driver driver_of_##name;                                                                             \
    static name##_module module_of_##name;                                                                             \
    static int launch_##name(const struct call *c)                                                                     \
    {                                                                                                                  \
        const tg_sizes *s = &c->sizes;                                                                                 \
        const name##_sizes sizes = {s->batch, s->heads, s->tokens, s->chunk};                                          \
        name##_tensor each[TG_MAX_TENSORS];                                                                            \
        name##_tensors tensors; /* its fields are in the order of the signature */                                     \
        assert_int_equal(sizeof tensors, c->n_args * sizeof *each);                                                    \
        for (uint32_t t = 0; t < c->n_args; t++) {                                                                     \
            each[t].address = c->args[t].address;                                                                      \
            memcpy(each[t].stride, c->args[t].stride, sizeof each[t].stride);                                          \
        }                                                                                                              \
        memcpy(&tensors, each, sizeof tensors);                                                                        \
        return name##_launch(&module_of_##name, &sizes, its_scalars(c), &tensors, c->workspace, c->stream);            \
    }                                                                                                                  \
    static uint64_t bytes_of_##name(const tg_sizes *s)                                                                 \
    {                                                                                                                  \
        const name##_sizes sizes = {s->batch, s->heads, s->tokens, s->chunk};                                          \
        return name##_workspace_bytes(&sizes);                                                                         \
    }                                                                                                                  \
    static int open_##name(void)                                                                                       \
    {                                                                                                                  \
        return name##_driver_open(&driver_of_##name, FAKE_CUDA) || name##_load(&module_of_##name, &driver_of_##name);  \
    }                                                                                                                  \
    static void close_##name(void)                                                                                     \
    {                                                                                                                  \
        name##_unload(&module_of_##name);                                                                              \
    }
DEFINE_SUBJECT(mlstm_sig, ONE_SCALAR)
DEFINE_SUBJECT(packed, TWO_SCALARS)
DEFINE_SUBJECT(decode, ONE_SCALAR)
DEFINE_SUBJECT(maps, ONE_SCALAR)

static struct subject {
    tg_program (*make)(const char *ptx);
    int (*open)(void), (*launch)(const struct call *c);
    uint64_t (*bytes)(const tg_sizes *sizes);
    void (*close)(void);
    tg_program program;
    tg_module *module;
} subjects[N_SUBJECTS] = {
#define SUBJECT(name, make)                                                                                            \
    {                                                                                                                  \
        make, open_##name, launch_##name, bytes_of_##name, close_##name, {0}, NULL                                     \
    }
    SUBJECT(mlstm_sig, sample_program),
    SUBJECT(packed, sample_program_packed),
    SUBJECT(decode, sample_program_decode),
    SUBJECT(maps, sample_program_maps),
};

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
    int result = tg_driver_open(FAKE_CUDA, &driver, NULL);
    for (struct subject *s = subjects; s < subjects + N_SUBJECTS && result == 0; s++) {
        s->program = s->make(ptx);
        result = tg_load(driver, &s->program, &s->module, NULL) || s->open();
    }
    return result;
}

static int teardown(void **state)
{
    (void)state;
    for (struct subject *s = subjects; s < subjects + N_SUBJECTS; s++) {
        tg_unload(s->module);
        s->close();
    }
    int n_modules = fake->n_modules;
    mlstm_sig_driver_close(&driver_of_mlstm_sig);
    packed_driver_close(&driver_of_packed);
    decode_driver_close(&driver_of_decode);
    maps_driver_close(&driver_of_maps);
    tg_driver_close(driver);
    return n_modules;
}

/* ---- what the driver was asked ---- */

struct trace {
    char log[FAKE_LOG_BYTES];
    unsigned int grid[3], block[3], shared, cluster[3];
    int overlap, n_maps;
    void *stream;
    struct fake_map maps[FAKE_MAX_MAPS];
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
    memcpy(trace->cluster, fake->cluster, sizeof trace->cluster);
    memcpy(trace->maps, fake->maps, sizeof trace->maps);
    trace->n_maps = fake->n_maps;
    trace->overlap = fake->overlap;
    trace->shared = fake->shared;
    trace->stream = fake->stream;
    trace->pieces = fake->pieces;
    fake->log[0] = '\0';
    fake->pieces = 0;
    fake->n_maps = 0;
    memset(fake->maps, 0, sizeof fake->maps);
}

static void expect_values_of(const tg_kernel *kernel)
{
    fake->n_values = (int)kernel->n_args;
    for (int i = 0; i < fake->n_values; i++)
        fake->value_bytes[i] = sample_value_bytes(&kernel->args[i]);
    fake->log[0] = '\0';
    fake->pieces = 0;
}

/* ---- random calls ---- */

static int64_t one_of(const int64_t *choices, size_t n)
{
    return choices[(size_t)rand() % n];
}
#define ONE_OF(...) one_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static int64_t rarely(int64_t strange, int64_t usual)
{
    return rand() % 60 == 0 ? strange : usual;
}

/* Memory that empty calls may really write; other calls only pass addresses on. */
static _Alignas(256) uint8_t memory[1 << 20];

static void random_tensor(const tg_program *p, uint32_t i, int64_t tokens, tg_tensor_arg *arg)
{
    const tg_tensor_info *t = &p->tensors[i];
    /* In a pool final states may be where initial ones are; elsewhere copies must not overlap. */
    bool is_above = t->flags & TG_OUT && !(tg_tensor_is_slot(p, i) && rand() % 4);
    *arg = (tg_tensor_arg){.name = t->name};
    arg->address = (uintptr_t)memory + (uintptr_t)(is_above ? sizeof memory / 2 : 0);
    arg->address += (uint64_t)rarely(2, 0);
    if (rarely(1, 0) || (t->flags & TG_OPTIONAL && rand() % 3 == 0))
        arg->address = 0;
    if (rand() % 4 == 0) { /* rows of 32 in 16 of each sequence; the state stays inside `memory` */
        const bool is_wide = t->axes[1] != TG_AXIS_NONE;
        const int64_t stride[] = {2560, rarely(0, 512), is_wide ? rarely(34, 32) : rarely(32, 1), rarely(2, 1)};
        memcpy(arg->stride, stride, sizeof stride);
    }
    arg->stride[0] = rarely(0, arg->stride[0]);
    if (tokens > 0)
        arg->stride[rand() % 4] += rarely(INT64_MAX / 4, 0);
    if (tokens > 0 && rarely(1, 0)) /* what tensor maps cannot have */
        arg->stride[rand() % 3] = ONE_OF(0, -64, INT64_C(1) << 36, INT64_C(1) << 38, INT64_C(1) << 39);
    if (t->dtype == TG_I32)
        arg->stride[rand() % 3] = rarely(-1, ONE_OF(0, 1, 2));
}

static void random_call(const tg_program *p, struct call *c)
{
    memset(c, 0, sizeof *c);
    c->sizes.batch = ONE_OF(0, 1, 2, 3);
    c->sizes.heads = rarely(0, ONE_OF(1, 2, 5) * p->group) + (p->group > 1 ? rarely(1, 0) : 0);
    c->sizes.tokens = p->max_tokens ? rarely(-1, ONE_OF(0, 0, 1, 4, 17, rarely(21, 20)))
                                    : rarely(-1, ONE_OF(0, 0, 1, 16, 17, 100, INT32_MAX));
    c->sizes.chunk = rarely(15, ONE_OF(0, 16, 64, 128));
    for (uint32_t i = 0; i < p->n_scalars; i++)
        c->scalars[i] = (float)ONE_OF(0, 1, -3);
    c->scalars[rand() % (int)p->n_scalars] += rand() % 60 ? 0.25f : (rand() % 2 ? NAN : -INFINITY);
    while (p->tensors[c->n_args].flags & (TG_IN | TG_OUT)) {
        random_tensor(p, c->n_args, c->sizes.tokens, &c->args[c->n_args]);
        c->n_args++;
    }
    c->workspace = (uint64_t)rarely(0, rarely(0x110, 0x100));
    c->stream = (void *)(uintptr_t)rand();
}

static void check_both(const struct subject *s, const struct call *c, int *n_launched, int *n_empty)
{
    static struct trace ours, theirs;
    tg_status status = tg_launch(s->module, &c->sizes, c->scalars, c->args, c->n_args, c->workspace, c->stream, NULL);
    take_trace(&ours);
    int result = s->launch(c);
    take_trace(&theirs);
    if ((status == TG_OK) != (result == MLSTM_SIG_OK) ||
        (status == TG_E_UNSUPPORTED) != (result == MLSTM_SIG_E_SLOTS) || strcmp(ours.log, theirs.log) != 0 ||
        memcmp(ours.grid, theirs.grid, sizeof ours - offsetof(struct trace, grid)) != 0)
        fail_msg("subject %d: status %d \"%s\", result %d \"%s\"", (int)(s - subjects), (int)status, ours.log, result,
                 theirs.log);
    if (c->sizes.tokens < INT32_MAX) /* whose workspace no memory holds */
        assert_int_not_equal(status, TG_E_DRIVER);
    *n_launched += status == TG_OK && strstr(ours.log, "cuLaunchKernel") != NULL;
    *n_empty += status == TG_OK && (c->sizes.batch == 0 || c->sizes.tokens == 0);
    if (tg_sizes_check(&s->program, &c->sizes, NULL) == TG_OK)
        assert_int_equal(tg_workspace_bytes(&s->program, &c->sizes), s->bytes(&c->sizes));
    else
        assert_int_equal(s->bytes(&c->sizes), 0);
}

static void both_launch_the_same(void **state)
{
    (void)state;
    for (const struct subject *s = subjects; s < subjects + N_SUBJECTS; s++) {
        int n_launched = 0, n_empty = 0;
        expect_values_of(&s->program.kernels[0]);
        for (int i = 0; i < N_CALLS; i++) {
            struct call c;
            srand((unsigned int)i);
            random_call(&s->program, &c);
            check_both(s, &c, &n_launched, &n_empty);
        }
        assert_true(n_launched > N_CALLS / 20); /* not all were refused */
        assert_true(n_empty > N_CALLS / 20);
    }
}

static void constants_are_those_of_the_program(void **state)
{
    (void)state;
    assert_int_equal(MLSTM_SIG_GROUP, 1);
    assert_int_equal(MLSTM_SIG_PACKED + MLSTM_SIG_POOLED + MLSTM_SIG_MAX_TOKENS, 0);
    assert_int_equal(PACKED_PACKED * PACKED_POOLED, 1);
    assert_int_equal(PACKED_GROUP, 2);
    assert_int_equal(PACKED_TYPE_cu, PACKED_I32);
    assert_int_equal(DECODE_MAX_TOKENS, 20);
    assert_true(MLSTM_SIG_DEFAULT_scale == 0.25f && PACKED_DEFAULT_tau == -1.5f);
}

static void mistakes_have_their_codes(void **state)
{
    (void)state;
    mlstm_sig_sizes sizes = {1, 1, 16, 0};
    mlstm_sig_tensors t = {0};
    assert_int_equal(mlstm_sig_launch(&module_of_mlstm_sig, &sizes, 1, &t, 0, NULL), MLSTM_SIG_E_WORKSPACE);
    assert_int_equal(mlstm_sig_launch(&module_of_mlstm_sig, &sizes, 1, &t, 256, NULL), MLSTM_SIG_E_TENSOR);
    mlstm_sig_sizes nothing = {0, 1, 0, 0};
    assert_int_equal(mlstm_sig_launch(&module_of_mlstm_sig, &nothing, NAN, &t, 0, NULL), MLSTM_SIG_E_SCALAR);
    sizes.heads = 0;
    assert_int_equal(mlstm_sig_launch(&module_of_mlstm_sig, &sizes, 1, &t, 256, NULL), MLSTM_SIG_E_SIZES);
    assert_int_equal(mlstm_sig_workspace_bytes(&sizes), 0);
    mlstm_sig_driver other;
    mlstm_sig_module none;
    assert_int_equal(mlstm_sig_driver_open(&other, "/nowhere.so"), MLSTM_SIG_E_DRIVER);
    assert_int_equal(mlstm_sig_driver_open(&other, FAKE_CUDA_OLD), MLSTM_SIG_E_DRIVER);
    assert_null(other.library);
    fake->cc_major = 7;
    assert_int_equal(mlstm_sig_load(&none, &driver_of_mlstm_sig), MLSTM_SIG_E_DEVICE);
    fake->cc_major = 9;
    maps_module no_maps;
    maps_driver older = driver_of_maps;
    older.cuTensorMapEncodeTiled = NULL;
    assert_int_equal(maps_load(&no_maps, &older), MAPS_E_DRIVER);
    older = driver_of_maps;
    older.cuLaunchKernelEx = NULL; /* the clusters need it */
    assert_int_equal(maps_load(&no_maps, &older), MAPS_E_DRIVER);
    decode_module steps;
    decode_driver plain = driver_of_decode;
    const decode_sizes step = {1, 3, 1, 0};
    decode_tensors d = {0};
    d.q = d.k = d.v = d.f = d.index = d.h = (decode_tensor){.address = 0x100};
    plain.cuLaunchKernelEx = NULL; /* overlap does without */
    assert_int_equal(decode_load(&steps, &plain), DECODE_OK);
    fake->n_values = 0;
    fake->log[0] = '\0';
    assert_int_equal(decode_launch(&steps, &step, 1, &d, 0x100, NULL), DECODE_OK);
    assert_string_equal(fake->log, "cuLaunchKernel ");
    decode_unload(&steps);
    assert_int_equal(mlstm_sig_driver_open(&other, FAKE_CUDA_11), MLSTM_SIG_OK);
    assert_true(!other.cuFuncLoad && !other.cuLaunchKernelEx && !other.cuTensorMapEncodeTiled);
    mlstm_sig_driver_close(&other);
    fake->failing = "cuFuncLoad";
    fake->result = 700;
    fake->error_text = "some text";
    assert_int_equal(mlstm_sig_load(&none, &driver_of_mlstm_sig), 700);
    assert_string_equal(mlstm_sig_error(&driver_of_mlstm_sig, 700), "some text");
    fake->failing = NULL;
    for (int result = MLSTM_SIG_E_SLOTS; result <= MLSTM_SIG_OK; result++)
        assert_non_null(mlstm_sig_error(NULL, result));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_launch_the_same),
        cmocka_unit_test(constants_are_those_of_the_program),
        cmocka_unit_test(mistakes_have_their_codes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
