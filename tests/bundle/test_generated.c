/* tests/bundle/test_generated.c - generated C and the runtime do the same with the same call.
 *
 * The launch loop exists twice, in runtime/launch.c and in program/embed_template.c.in. Random
 * calls, most of them with a mistake, go through both to the fake driver: both must refuse or both
 * must ask it for the same. */
#include "choosing.h"
#include "decode.h"
#include "maps.h"
#include "mlstm_sig.h"
#include "packed.h"
#include "pieces.h"
#include "runtime/runtime.h"
#include "tests/bundle/sample.h"
#include "tests/cost.h"
#include "tests/fake_cuda.h"
#include "tests/usage.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static const uint64_t apart = 0x100000; /* from tensor to tensor, where sizes are not random */
enum { N_CALLS = 100000, N_SUBJECTS = 5, TEXT_BYTES = 16384 };

static struct fake_state *fake;
static tg_driver *driver;
static tegula_driver table; /* for all generated programs */

/* ---- the generated programs, behind one type ---- */

struct call {
    tg_sizes sizes;
    float scalars[TG_MAX_SCALARS];
    tg_tensor_arg args[TG_MAX_TENSORS]; /* the signature, in order */
    uint32_t n_args;
    uint64_t workspace;
    void *stream;
    uint32_t dqk, dhv; /* of a set */
};

static tegula_sizes sizes_of(const struct call *c)
{
    const tegula_sizes sizes = {.batch = c->sizes.batch,
                                .heads = c->sizes.heads,
                                .tokens = c->sizes.tokens,
                                .chunk = c->sizes.chunk,
                                .dqk = (int32_t)c->dqk,
                                .dhv = (int32_t)c->dhv};
    return sizes;
}

/* `tensors` has a field for each tensor of the signature, in its order. */
static void set_tensors(const struct call *c, void *tensors, size_t size)
{
    tegula_tensor each[TG_MAX_TENSORS];
    assert_int_equal(size, c->n_args * sizeof *each);
    for (uint32_t t = 0; t < c->n_args; t++) {
        each[t].address = c->args[t].address;
        memcpy(each[t].stride, c->args[t].stride, sizeof each[t].stride);
    }
    memcpy(tensors, each, size);
}

/* Every prefix has a struct of tensors of its own, all alike; programs differ in how many scalars they have. */
#define ONE_SCALAR(call)  (call)->scalars[0]
#define TWO_SCALARS(call) (call)->scalars[0], (call)->scalars[1]
#define DEFINE_SUBJECT(name, its_scalars)                                                                              \
    static name##_module module_of_##name;                                                                             \
    static int launch_##name(const struct call *c)                                                                     \
    {                                                                                                                  \
        const tegula_sizes sizes = sizes_of(c);                                                                        \
        name##_tensors tensors;                                                                                        \
        set_tensors(c, &tensors, sizeof tensors);                                                                      \
        return name##_launch(&module_of_##name, &sizes, its_scalars(c), &tensors, c->workspace, c->stream);            \
    }                                                                                                                  \
    static int check_##name(const struct call *c, char *text, size_t n)                                                \
    {                                                                                                                  \
        const tegula_sizes sizes = sizes_of(c);                                                                        \
        name##_tensors tensors;                                                                                        \
        set_tensors(c, &tensors, sizeof tensors);                                                                      \
        return name##_check(&module_of_##name, &sizes, &tensors, c->workspace, text, n);                               \
    }                                                                                                                  \
    static uint64_t bytes_of_##name(const struct call *c)                                                              \
    {                                                                                                                  \
        const tegula_sizes sizes = sizes_of(c);                                                                        \
        return name##_workspace_bytes(&sizes);                                                                         \
    }                                                                                                                  \
    static int open_##name(void)                                                                                       \
    {                                                                                                                  \
        return name##_load(&module_of_##name, &table);                                                                 \
    }                                                                                                                  \
    static void close_##name(void)                                                                                     \
    {                                                                                                                  \
        name##_unload(&module_of_##name);                                                                              \
    }
DEFINE_SUBJECT(mlstm_sig, ONE_SCALAR)
DEFINE_SUBJECT(packed, TWO_SCALARS)
DEFINE_SUBJECT(decode, ONE_SCALAR)
DEFINE_SUBJECT(maps, ONE_SCALAR)
DEFINE_SUBJECT(pieces, ONE_SCALAR)

static struct subject {
    const char *name;
    tg_program (*make)(const char *ptx);
    int (*open)(void), (*launch)(const struct call *c), (*check)(const struct call *c, char *text, size_t n);
    uint64_t (*bytes)(const struct call *c);
    void (*close)(void);
    tg_program program;
    tg_module *module;
} subjects[N_SUBJECTS] = {
#define SUBJECT(name, make)                                                                                            \
    {                                                                                                                  \
#name, make, open_##name, launch_##name, check_##name, bytes_of_##name, close_##name, {0 }, NULL               \
    }
    SUBJECT(mlstm_sig, sample_program),     SUBJECT(packed, sample_program_packed),
    SUBJECT(decode, sample_program_decode), SUBJECT(pieces, sample_program_pieces),
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
    int result = tg_driver_open(FAKE_CUDA, &driver, NULL) || packed_driver_open(&table, FAKE_CUDA);
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
    decode_driver_close(&table);
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

/* Memory that empty calls may really write; other calls only pass addresses on, mostly so far apart that no strides lead from
 * one to the other. */
static _Alignas(256) uint8_t memory[1 << 24];

static uint64_t random_address(const tg_program *p, uint32_t i, int64_t tokens)
{
    /* In a pool final states may be where initial ones are. */
    const int source = tg_tensor_is_slot(p, i) && rand() % 4 ? tg_tensor_source(p, i) : -1;
    const uint64_t place = source >= 0 ? (uint64_t)source : i;
    return tokens > 0 ? (place + 1) << 59 : (uintptr_t)memory + place * (sizeof memory / 16);
}

static void random_tensor(const tg_program *p, uint32_t i, int64_t tokens, tg_tensor_arg *arg)
{
    const tg_tensor_info *t = &p->tensors[i];
    const bool is_out = t->flags & TG_OUT;
    *arg = (tg_tensor_arg){.name = t->name};
    arg->address = random_address(p, i, tokens);
    arg->address += (uint64_t)rarely(2, 0);
    const tg_tensor_arg *other = &arg[i ? -1 - rand() % (int)i : 0];
    if (other->address && rand() % 30 == 0) /* where another one is, or beside it */
        arg->address = other->address + (uint64_t)ONE_OF(0, 32, 64, 128);
    if (rarely(1, 0) || (t->flags & TG_OPTIONAL && rand() % 3 == 0))
        arg->address = 0;
    if (rand() % 4 == 0) { /* rows of 32 or 64; the state stays inside `memory`, and heads of an output apart */
        const bool is_wide = t->axes[1] != TG_AXIS_NONE;
        const int64_t row = is_out ? rarely(8, 64) : 32, head = row * (!is_out ? 16 : tokens > 64 ? tokens : 64);
        const int64_t stride[] = {16 * head, rarely(0, head), is_wide ? rarely(row + 2, row) : rarely(row, 1),
                                  rarely(2, 1)};
        memcpy(arg->stride, stride, sizeof stride);
    }
    arg->stride[0] = rarely(0, arg->stride[0]);
    if (tokens > 0)
        arg->stride[rand() % 4] += rarely(INT64_MAX / 4, 0);
    if (tokens > 0 && rarely(1, 0)) { /* what tensor maps cannot have */
        arg->stride[is_out ? 0 : rand() % 3] =
            is_out ? ONE_OF(0, INT64_C(1) << 41) : ONE_OF(0, -64, INT64_C(1) << 36, INT64_C(1) << 38, INT64_C(1) << 39);
    }
    if (t->dtype == TG_I32)
        arg->stride[rand() % 3] = rarely(-1, ONE_OF(0, 1, 2));
}

static void random_tensors(const tg_program *p, struct call *c)
{
    for (c->n_args = 0; p->tensors[c->n_args].flags & (TG_IN | TG_OUT); c->n_args++)
        random_tensor(p, c->n_args, c->sizes.tokens, &c->args[c->n_args]);
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
    random_tensors(p, c);
    c->workspace = (uint64_t)rarely(0, rarely(0x110, rarely((int64_t)c->args[0].address, 0x100)));
    c->stream = (void *)(uintptr_t)rand();
}

static void count(void *user, const tg_diag *diag)
{
    int *n = user;
    *n += diag->severity == TG_ERROR;
}

static int n_overlaps; /* calls that were refused since memory of them overlaps */

/* NAME_check says of a call what the launch says, in as many lines as the runtime has messages. */
static void check_text(const struct subject *s, const struct call *c, tg_status status, int result)
{
    static char text[TEXT_BYTES], shorter[40];
    int n_messages = 0, n_lines = 0;
    const int checked = s->check(c, text, sizeof text);
    const tg_sink sink = {count, &n_messages};
    (void)tg_launch_check(s->module, &c->sizes, c->args, c->n_args, c->workspace, &sink);
    for (const char *at = text; *at; at++)
        n_lines += *at == '\n';
    if ((result == TEGULA_E_SCALAR ? checked != TEGULA_OK : checked != result) || n_lines != n_messages)
        fail_msg("subject %d: status %d, %d messages; result %d, check %d: %s", (int)(s - subjects), (int)status,
                 n_messages, result, checked, text);
    assert_int_equal(n_lines == 0, checked == TEGULA_OK);
    n_overlaps += strstr(text, "expected memory apart from") || strstr(text, "found an axis that steps into");
    memset(shorter, 'x', sizeof shorter);
    assert_int_equal(s->check(c, shorter, sizeof shorter - 1), checked);
    assert_true(memchr(shorter, '\0', sizeof shorter - 1) && shorter[sizeof shorter - 1] == 'x');
    assert_int_equal(s->check(c, NULL, 0), checked);
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
    if (status != TG_E_DRIVER && result <= TEGULA_OK)
        check_text(s, c, status, result);
    if (c->sizes.tokens < INT32_MAX) /* whose workspace no memory holds */
        assert_int_not_equal(status, TG_E_DRIVER);
    *n_launched += status == TG_OK && strstr(ours.log, "cuLaunchKernel") != NULL;
    *n_empty += status == TG_OK && (c->sizes.batch == 0 || c->sizes.tokens == 0);
    if (tg_sizes_check(&s->program, &c->sizes, NULL) == TG_OK)
        assert_int_equal(tg_workspace_bytes(&s->program, &c->sizes), s->bytes(c));
    else
        assert_int_equal(s->bytes(c), 0);
}

static void both_launch_the_same(void **state)
{
    (void)state;
    for (const struct subject *s = subjects; s < subjects + N_SUBJECTS; s++) {
        int n_launched = 0, n_empty = 0;
        n_overlaps = 0;
        expect_values_of(&s->program.kernels[0]);
        for (int i = 0; i < N_CALLS; i++) {
            struct call c;
            srand((unsigned int)i);
            random_call(&s->program, &c);
            check_both(s, &c, &n_launched, &n_empty);
        }
        assert_true(n_launched > N_CALLS / 20); /* not all were refused */
        assert_true(n_empty > N_CALLS / 20);
        assert_true(n_overlaps > N_CALLS / 200);
    }
}

/* ---- a set ---- */

static tg_program set_programs[SAMPLE_SET_PROGRAMS];
static tg_branch set_branches[SAMPLE_SET_BRANCHES];

DEFINE_SUBJECT(choosing, ONE_SCALAR)

static void random_call_of_set(const tg_set *set, struct call *c)
{
    random_call(&set->programs[0], c);
    c->dqk = (uint32_t)ONE_OF(16, 16, 16, 32, 0, 64);
    c->dhv = (uint32_t)ONE_OF(16, 16, 0, rarely(8, 16));
    if (c->sizes.batch > 0 && c->sizes.tokens > 0) { /* others write their states into `memory` */
        c->sizes.tokens = ONE_OF(1, 16, 60, 90, 120, 1000, 8192, 65536);
        c->sizes.batch = ONE_OF(1, 2, 3, 100);
        random_tensors(&set->programs[0], c);
    }
    c->workspace = 0x100;
}

/* Which program is taken, and what of the driver is asked for it. Yields the program's number; -1: none. */
static int check_set(const tg_modules *modules, const tg_set *set, const struct call *c)
{
    static struct trace ours, theirs;
    const tegula_sizes sizes = sizes_of(c);
    const tg_module *module = tg_set_module(modules, c->dqk, c->dhv, &c->sizes, NULL);
    const tg_program *program = tg_module_program(module);
    const char *schedule = choosing_schedule(&module_of_choosing, &sizes);
    tg_status status = TG_E_ARGUMENT;
    if (module)
        status = tg_launch(module, &c->sizes, c->scalars, c->args, c->n_args, c->workspace, c->stream, NULL);
    take_trace(&ours);
    const int result = launch_choosing(c);
    take_trace(&theirs);
    assert_int_equal(status == TG_OK, result == TEGULA_OK);
    assert_int_equal(module == NULL, result == TEGULA_E_SIZES);
    assert_int_equal(check_choosing(c, NULL, 0), result == TEGULA_E_SCALAR ? TEGULA_OK : result);
    assert_string_equal(ours.log, theirs.log);
    assert_memory_equal(ours.grid, theirs.grid, sizeof ours - offsetof(struct trace, grid));
    assert_string_equal(schedule ? schedule : "none", program ? program->schedule : "none");
    if (program)
        assert_true(bytes_of_choosing(c) >= tg_workspace_bytes(program, &c->sizes));
    return program ? (int)(program - set->programs) : -1;
}

static void both_choose_the_same(void **state)
{
    (void)state;
    const tg_set set = sample_set(".version 7.0\n", set_programs, set_branches);
    static const struct {
        int major, n_programs;
    } rows[] = {{9, 4}, {8, 3}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tg_modules *modules;
        int taken[SAMPLE_SET_PROGRAMS + 1] = {0}, n_programs = 0;
        fake->cc_major = rows[r].major;
        assert_int_equal(tg_set_load(driver, &set, &modules, NULL), TG_OK);
        assert_int_equal(open_choosing(), TEGULA_OK);
        expect_values_of(&set.programs[0].kernels[0]);
        for (int i = 0; i < N_CALLS; i++) {
            struct call c;
            srand((unsigned int)i);
            random_call_of_set(&set, &c);
            taken[1 + check_set(modules, &set, &c)]++;
        }
        for (int i = 0; i < SAMPLE_SET_PROGRAMS; i++)
            n_programs += taken[1 + i] > 0;
        assert_int_equal(n_programs, rows[r].n_programs);
        assert_true(taken[0] > N_CALLS / 20);
        tg_set_unload(modules);
        close_choosing();
    }
    fake->cc_major = 9;
}

/* Whichever call of the driver fails while a set is loaded, nothing stays loaded, and the message names the call. */
static void a_set_that_fails_to_load_leaves_nothing(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuCtxGetDevice",      "cuDeviceGetAttribute", "cuModuleLoadDataEx",
                                        "cuModuleGetFunction", "cuFuncGetAttribute",   "cuFuncLoad"};
    const tg_set set = sample_set(".version 7.0\n", set_programs, set_branches);
    const int n_modules = fake->n_modules;
    int n_failed = 0;
    fake->result = 700;
    fake->error_text = "some text";
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int after = 0; after < 12; after++) {
            tg_modules *modules;
            int n_messages = 0;
            fake->failing = calls[i];
            fake->fail_after = after;
            fake->log[0] = '\0';
            const tg_status status = tg_set_load(driver, &set, &modules, &(tg_sink){count, &n_messages});
            assert_true(status == TG_OK || (status == TG_E_DRIVER && !modules && n_messages == 1));
            n_failed += status != TG_OK;
            tg_set_unload(modules);
            fake->fail_after = after;
            const int result = open_choosing();
            assert_true(result == TEGULA_OK || result == 700);
            if (result == TEGULA_OK)
                close_choosing();
            assert_int_equal(fake->n_modules, n_modules);
        }
    fake->failing = NULL;
    fake->fail_after = 0;
    assert_true(n_failed > 12);
}

/* Loads, and launches a call that one of the random ones is. */
static int load_and_launch(const struct subject *s, const struct call *c)
{
    const int loaded = s->open(), result = loaded ? loaded : s->launch(c);
    if (!loaded)
        s->close();
    return result;
}

/* Whichever call of the driver fails, the result is the driver's own and nothing stays loaded. */
static void each_call_of_the_driver_fails_once(void **state)
{
    (void)state;
    fake->result = 700;
    for (const struct subject *s = subjects; s < subjects + N_SUBJECTS; s++) {
        struct call c;
        int n = 0, result = 1;
        expect_values_of(&s->program.kernels[0]);
        s->close();
        for (unsigned int i = 0; result != TEGULA_OK || !strstr(fake->log, "cuLaunchKernel"); i++) {
            srand(i);
            random_call(&s->program, &c);
            fake->log[0] = '\0';
            result = load_and_launch(s, &c);
        }
        const int n_modules = fake->n_modules;
        for (fake->failed = ""; fake->failed; n++) {
            fake->failed = NULL;
            fake->n_calls = 0;
            fake->fail_call = n + 1;
            result = load_and_launch(s, &c);
            const bool is_end = fake->failed && strcmp(fake->failed, "cuModuleUnload") == 0;
            assert_int_equal(result, fake->failed && !is_end ? 700 : TEGULA_OK);
            assert_int_equal(fake->n_modules, n_modules);
        }
        assert_true(n > 6);
        fake->fail_call = 0;
        assert_int_equal(s->open(), TEGULA_OK);
    }
}

/* The size, what is there and what was asked for. */
static void a_set_says_why_nothing_fits(void **state)
{
    (void)state;
    char text[500];
    choosing_tensors tensors = {0};
    choosing_sizes sizes = {.batch = 1, .heads = 1, .tokens = 1, .dqk = 64, .dhv = 16};
    choosing_module none, empty = {0};
    assert_int_equal(open_choosing(), TEGULA_OK);
    assert_int_equal(choosing_check(&empty, &sizes, &tensors, 256, text, sizeof text), TEGULA_E_SIZES);
    assert_string_equal(text, "module: expected one that choosing_load has filled, found none of its kernels\n");
    assert_int_equal(choosing_check(&module_of_choosing, &sizes, &tensors, 256, text, sizeof text), TEGULA_E_SIZES);
    assert_string_equal(text, "sizes.dqk, sizes.dhv: expected 16 and 16, or 32 and 16, found 64 and 16 on this GPU\n");
    sizes.dqk = 16;
    sizes.chunk = 8;
    assert_int_equal(choosing_check(&module_of_choosing, &sizes, &tensors, 256, text, sizeof text), TEGULA_E_SIZES);
    assert_non_null(strstr(text, "sizes.chunk: expected a multiple of "));
    sizes.chunk = 0;
    tensors.q.address = 0x102;
    assert_int_equal(choosing_check(&module_of_choosing, &sizes, &tensors, 0, text, sizeof text), TEGULA_E_WORKSPACE);
    assert_non_null(strstr(text, "workspace: expected the address of 1024 bytes, found 0\n"));
    assert_non_null(strstr(text, "q: address: expected a multiple of 16, found 0x102\n"));
    assert_non_null(strstr(text, "k: address: expected one, found 0\n"));
    close_choosing();
    fake->cc_major = 7;
    assert_int_equal(choosing_load(&none, &table), TEGULA_E_DEVICE);
    assert_string_equal(choosing_error(NULL, TEGULA_E_DEVICE),
                        "the GPU cannot run these kernels: they are for sm_80 or newer, sm_90 or newer");
    fake->cc_major = 9;
}

/* ---- tensor maps that are kept ---- */

/* How many maps the driver is asked for in a call. */
static int count_maps(const struct subject *s, const struct call *c, bool is_generated)
{
    fake->n_maps = 0;
    fake->log[0] = '\0';
    const int result = is_generated ? s->launch(c)
                                    : (int)tg_launch(s->module, &c->sizes, c->scalars, c->args, c->n_args, c->workspace,
                                                     c->stream, NULL);
    assert_int_equal(result, 0);
    return fake->n_maps;
}

static struct call call_of_maps(const struct subject *s, uint64_t base)
{
    struct call c = {.sizes = {2, 12, 16, 0}, .workspace = 0x100};
    for (uint32_t i = 0; s->program.tensors[i].flags & (TG_IN | TG_OUT); i++)
        c.args[c.n_args++] = (tg_tensor_arg){.name = s->program.tensors[i].name, .address = base + apart * (i + 1)};
    return c;
}

/* What an array is made of is asked of the driver once, whatever came between, and again when it is something else. */
static void maps_are_kept_by_address(void **state)
{
    (void)state;
    const struct subject *s = &subjects[N_SUBJECTS - 1];
    for (int is_generated = 0; is_generated < 2; is_generated++) {
        struct call first = call_of_maps(s, 0x770000), longer = first, wider = first;
        assert_int_equal(count_maps(s, &first, is_generated), TG_MAX_MAPS);
        const uint64_t value = fake->values[0];
        assert_int_equal(count_maps(s, &first, is_generated), 0);
        longer.sizes.tokens = 32;
        assert_int_equal(count_maps(s, &longer, is_generated), TG_MAX_MAPS);
        assert_int_equal(count_maps(s, &first, is_generated), TG_MAX_MAPS);
        memcpy(wider.args[2].stride, (int64_t[]){24 * 16 * 64, 16 * 64, 128, 1}, 4 * sizeof(int64_t));
        assert_int_equal(count_maps(s, &wider, is_generated), 1); /* of v */
        assert_int_equal(count_maps(s, &first, is_generated), 1);
        assert_int_equal(fake->values[0], value);
        int n_asked = 0;
        for (int i = 0; i < 40; i++) { /* more arrays than there are places */
            const struct call other = call_of_maps(s, UINT64_C(0x1000000) * (unsigned int)(i % 20 + 1));
            n_asked += count_maps(s, &other, is_generated);
        }
        assert_true(n_asked > 20 * (TG_MAX_MAPS - 1) && n_asked <= 40 * TG_MAX_MAPS);
    }
}

enum { N_THREADS = 4, N_RACES = 60000 };

static tegula_driver quiet; /* whose maps are their address, over and over */
static int n_wrong;

static int encode_address(void *map, int type, uint32_t rank, void *address, const uint64_t *extents,
                          const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides, int interleave,
                          int swizzle, int promotion, int fill)
{
    uint64_t *words = map;
    for (int i = 0; i < 16; i++)
        words[i] = (uintptr_t)address;
    (void)type, (void)rank, (void)extents, (void)strides, (void)box, (void)element_strides, (void)interleave;
    (void)swizzle, (void)promotion, (void)fill;
    return 0;
}

/* The maps come first among the parameters, the last one foremost, then the address of the first tensor. */
static int see_maps(const void *launch, void *function, void **parameters, void **extra)
{
    const uint64_t base = *(uint64_t *)parameters[TG_MAX_MAPS] - apart;
    const tg_program *p = &subjects[N_SUBJECTS - 1].program;
    (void)launch, (void)function, (void)extra;
    for (uint32_t m = 1; m < TG_MAX_MAPS; m++) { /* the last is of workspace */
        const uint64_t *words = parameters[m], expected = base + apart * (p->kernels[0].args[m].index + 1u);
        for (int i = 0; i < 16; i++)
            if (words[i] != expected)
                __atomic_fetch_add(&n_wrong, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

static void *launch_often(void *user)
{
    const struct subject *s = &subjects[N_SUBJECTS - 1];
    struct call calls[3];
    for (int i = 0; i < 3; i++) /* which differ in bits that do not choose the place */
        calls[i] = call_of_maps(s, UINT64_C(1) << 39 << i);
    for (int i = 0; i < N_RACES; i++)
        if (s->launch(&calls[(i + *(int *)user) % 3]) != 0)
            __atomic_fetch_add(&n_wrong, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Threads that share one place for every recipe never get another one's map, nor parts of two. */
static void kept_maps_survive_threads(void **state)
{
    (void)state;
    pthread_t threads[N_THREADS];
    int number[N_THREADS];
    maps_module *own = &module_of_maps;
    quiet = table;
    quiet.cuTensorMapEncodeTiled = encode_address;
    quiet.cuLaunchKernelEx = see_maps;
    own->driver = &quiet;
    n_wrong = 0;
    for (int i = 0; i < N_THREADS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &number[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    own->driver = &table;
    memset(own->maps, 0, sizeof own->maps); /* they are none of the other driver */
    assert_int_equal(n_wrong, 0);
}

/* ---- what a launch costs beside the driver ---- */

struct launching {
    const struct subject *subject;
    const struct call *call;
    bool is_generated;
    int result;
};

static void launch_once(void *user)
{
    struct launching *l = user;
    const struct call *c = l->call;
    l->result |= l->is_generated ? l->subject->launch(c)
                                 : (int)tg_launch(l->subject->module, &c->sizes, c->scalars, c->args, c->n_args,
                                                  c->workspace, c->stream, NULL);
}

static double cost_of(const struct subject *s, const struct call *c, bool is_generated)
{
    struct launching l = {s, c, is_generated, 0};
    const double cost = cost_ns(launch_once, &l);
    assert_int_equal(l.result, 0);
    return cost;
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const double most_nanoseconds = 30000;
#else
static const double most_nanoseconds = 3000;
#endif

static void a_launch_takes_less_than_3_us(void **state)
{
    (void)state;
    bool all_are_quick = true;
    fake->is_idle = 1;
    for (const struct subject *s = subjects; s < subjects + N_SUBJECTS; s++) {
        struct call c = {.sizes = {2, 12, 16, 0}, .workspace = 0x100};
        for (uint32_t i = 0; s->program.tensors[i].flags & (TG_IN | TG_OUT); i++)
            c.args[c.n_args++] = (tg_tensor_arg){.name = s->program.tensors[i].name, .address = apart * (i + 1)};
        const double generated = cost_of(s, &c, true), runtime = cost_of(s, &c, false);
        print_message("%s, %u tensors, %u parameters, %u maps: NAME_launch %.0f ns, tg_launch %.0f ns\n", s->name,
                      s->program.n_tensors, s->program.kernels[0].n_args, s->program.kernels[0].n_maps, generated,
                      runtime);
        all_are_quick &= generated < most_nanoseconds && runtime < most_nanoseconds;
    }
    fake->is_idle = 0;
    assert_true(all_are_quick);
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
    mlstm_sig_sizes sizes = {.batch = 1, .heads = 1, .tokens = 16};
    mlstm_sig_tensors t = {0};
    assert_int_equal(mlstm_sig_launch(&module_of_mlstm_sig, &sizes, 1, &t, 0, NULL), MLSTM_SIG_E_WORKSPACE);
    assert_int_equal(mlstm_sig_launch(&module_of_mlstm_sig, &sizes, 1, &t, 256, NULL), MLSTM_SIG_E_TENSOR);
    mlstm_sig_sizes nothing = {.heads = 1};
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
    assert_int_equal(mlstm_sig_load(&none, &table), MLSTM_SIG_E_DEVICE);
    fake->cc_major = 9;
    maps_module no_maps;
    maps_driver older = table;
    older.cuTensorMapEncodeTiled = NULL;
    assert_int_equal(maps_load(&no_maps, &older), MAPS_E_DRIVER);
    older = table;
    older.cuLaunchKernelEx = NULL; /* the clusters need it */
    assert_int_equal(maps_load(&no_maps, &older), MAPS_E_DRIVER);
    decode_module steps;
    decode_driver plain = table;
    const decode_sizes step = {.batch = 1, .heads = 3, .tokens = 1};
    decode_tensors d = {0};
    d.q = d.k = d.v = d.f = d.index = (decode_tensor){.address = 0x100};
    d.h = (decode_tensor){.address = 0x1000};
    plain.cuLaunchKernelEx = NULL; /* overlap does without */
    assert_int_equal(decode_load(&steps, &plain), DECODE_OK);
    fake->n_values = 0;
    fake->log[0] = '\0';
    assert_int_equal(decode_launch(&steps, &step, 1, &d, 0x2000, NULL), DECODE_OK);
    assert_string_equal(fake->log, "cuLaunchKernel ");
    decode_unload(&steps);
    assert_int_equal(mlstm_sig_driver_open(&other, FAKE_CUDA_11), MLSTM_SIG_OK);
    assert_true(!other.cuFuncLoad && !other.cuLaunchKernelEx && !other.cuTensorMapEncodeTiled);
    mlstm_sig_driver_close(&other);
    fake->failing = "cuFuncLoad";
    fake->result = 700;
    fake->error_text = "some text";
    assert_int_equal(mlstm_sig_load(&none, &table), 700);
    assert_string_equal(mlstm_sig_error(&table, 700), "some text");
    fake->failing = NULL;
    for (int result = MLSTM_SIG_E_SLOTS; result <= MLSTM_SIG_OK; result++)
        assert_non_null(mlstm_sig_error(NULL, result));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_launch_the_same),
        cmocka_unit_test(both_choose_the_same),
        cmocka_unit_test(a_set_that_fails_to_load_leaves_nothing),
        cmocka_unit_test(each_call_of_the_driver_fails_once),
        cmocka_unit_test(maps_are_kept_by_address),
        cmocka_unit_test(kept_maps_survive_threads),
        cmocka_unit_test(a_launch_takes_less_than_3_us),
        cmocka_unit_test(a_set_says_why_nothing_fits),
        cmocka_unit_test(constants_are_those_of_the_program),
        cmocka_unit_test(mistakes_have_their_codes),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, setup, teardown);
}
