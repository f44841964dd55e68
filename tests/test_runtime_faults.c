/* tests/test_runtime_faults.c - in every entry point of the runtime that calls the driver, each of its calls fails once:
 * a status, a message that names the call, and nothing stays behind. */
#include "tests/runtime_fixture.h"
#include "tests/usage.h"

#include <stdlib.h>

/* What the entry points are called with. */
static tg_program program, with_maps;
static tg_module *module, *module_with_maps;
static tg_tensor_arg args[N_ARGS], args_of_maps[TG_MAX_TENSORS];
static uint32_t n_args_of_maps;
static tg_set set;
static tg_program set_programs[SAMPLE_SET_PROGRAMS];
static tg_branch set_branches[SAMPLE_SET_BRANCHES];
static const tg_sizes usual = {3, 5, 70, 0};

/* ---- entry points; what they have made they give back ---- */

static tg_status count_devices(const tg_sink *sink)
{
    int n;
    return tg_device_count(driver, &n, sink);
}

static tg_status query_device(const tg_sink *sink)
{
    tg_device device = {.struct_size = sizeof device};
    return tg_device_query(driver, 0, &device, sink);
}

/* The release has no status, and gives the context back all the same. */
static tg_status acquire_context(const tg_sink *sink)
{
    const tg_status status = tg_context_acquire(driver, 0, sink);
    fake->fail_call = 0;
    if (status == TG_OK)
        tg_context_release(driver, 0);
    return status;
}

static tg_status load(const tg_sink *sink)
{
    tg_module *loaded;
    const tg_status status = tg_load(driver, &program, &loaded, sink);
    assert_int_equal(status == TG_OK, loaded != NULL);
    tg_unload(loaded);
    return status;
}

static tg_status load_set(const tg_sink *sink)
{
    tg_modules *loaded;
    const tg_status status = tg_set_load(driver, &set, &loaded, sink);
    assert_int_equal(status == TG_OK, loaded != NULL);
    tg_set_unload(loaded);
    return status;
}

static tg_status launch(const tg_sink *sink)
{
    fake->n_values = 0;
    return tg_launch(module, &usual, NULL, args, N_ARGS, 0x100, NULL, sink);
}

/* Tensor maps that no launch before has kept. */
static tg_status launch_with_maps(const tg_sink *sink)
{
    static int64_t tokens = 100;
    const tg_sizes sizes = {2, 4, tokens++, 0};
    fake->n_values = 0;
    return tg_launch(module_with_maps, &sizes, NULL, args_of_maps, n_args_of_maps, 0x100, NULL, sink);
}

/* Copies and fills of a call without tokens; the initial state is broadcast over heads. */
static tg_status launch_nothing(const tg_sink *sink)
{
    static _Alignas(256) float from[2][3][16][16], to[2][3][16][16], zeros[2][3][16][16];
    const tg_tensor_arg states[] = {
        {.name = "S0", .address = (uintptr_t)from, .stride = {256, 0, 16, 1}},
        {.name = "S", .address = (uintptr_t)to},
    };
    const tg_tensor_arg final[] = {{.name = "S", .address = (uintptr_t)zeros}};
    const tg_sizes empty = {2, 3, 0, 0};
    const tg_status status = tg_launch(module, &empty, NULL, states, 2, 0x100, NULL, sink);
    return status == TG_OK ? tg_launch(module, &empty, NULL, final, 1, 0x100, NULL, sink) : status;
}

static tg_status time_launch(const tg_sink *sink)
{
    float times[3];
    fake->n_values = 0;
    return tg_time(module, &usual, NULL, args, N_ARGS, 0x100, 1, 3, 4096, times, sink);
}

static tg_status time_kernels(const tg_sink *sink)
{
    float times[3];
    fake->n_values = 0;
    return tg_time_kernels(module, &usual, NULL, args, N_ARGS, 0x100, 1, 3, 4096, times, sink);
}

static tg_status use_memory(const tg_sink *sink)
{
    uint64_t address;
    char bytes[16] = "";
    tg_status status = tg_memory_alloc(driver, sizeof bytes, &address, sink);
    if (status != TG_OK)
        return status;
    status = tg_memory_in(driver, address, bytes, sizeof bytes, sink);
    if (status == TG_OK)
        status = tg_memory_fill(driver, address, 1, sizeof bytes, sink);
    if (status == TG_OK)
        status = tg_memory_out(driver, bytes, address, sizeof bytes, sink);
    if (status == TG_OK)
        status = tg_synchronize(driver, sink);
    tg_memory_free(driver, address);
    return status;
}

/* ---- each call fails once ---- */

struct alive {
    int modules, events, allocations, contexts;
};

static struct alive count_alive(void)
{
    return (struct alive){fake->n_modules, fake->n_events, fake->n_allocations, fake->n_contexts};
}

/* Who ends something has nobody left to tell. */
static bool is_end(const char *name)
{
    static const char *const ends[] = {"cuModuleUnload", "cuEventDestroy", "cuMemFree", "cuDevicePrimaryCtxRelease"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(ends[i], name) == 0)
            return true;
    return false;
}

/* How many calls there are that can fail. */
static int fail_each(const char *what, tg_status (*entry)(const tg_sink *sink))
{
    const struct alive before = count_alive();
    int n = 0;
    fake->result = 700;
    for (int call = 1;; call++) {
        LOG(log);
        fake->log[0] = '\0';
        fake->n_calls = 0;
        fake->failed = NULL;
        fake->fail_call = call;
        const tg_status status = entry(&log_sink);
        const struct alive after = count_alive();
        fake->fail_call = 0;
        if (memcmp(&before, &after, sizeof before) != 0)
            fail_msg("%s, %s failed: something was left behind", what, fake->failed);
        if (!fake->failed) {
            assert_int_equal(status, TG_OK);
            return n;
        }
        n++;
        if (!is_end(fake->failed) && (status != TG_E_DRIVER || !strstr(log.text, fake->failed)))
            fail_msg("%s, %s failed: status %d, \"%s\"", what, fake->failed, (int)status, log.text);
    }
}

static void each_call_of_the_driver_fails_once(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        tg_status (*entry)(const tg_sink *sink);
        int least; /* calls */
    } entries[] = {
        {"tg_device_count", count_devices, 1},
        {"tg_device_query", query_device, 10},
        {"tg_context_acquire", acquire_context, 4},
        {"tg_load", load, 5},
        {"tg_set_load", load_set, 10},
        {"tg_launch", launch, 1},
        {"tg_launch with maps", launch_with_maps, 1 + TG_MAX_MAPS},
        {"tg_launch without tokens", launch_nothing, 7},
        {"tg_time", time_launch, 20},
        {"tg_time_kernels", time_kernels, 20},
        {"tg_memory and tg_synchronize", use_memory, 6},
    };
    program = sample_program(ptx);
    with_maps = sample_program_maps(ptx);
    set = sample_set(ptx, set_programs, set_branches);
    module = load_program(&program);
    module_with_maps = load_program(&with_maps);
    sample_call(args);
    n_args_of_maps = whole_signature(&with_maps, args_of_maps);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const int n = fail_each(entries[i].what, entries[i].entry);
        if (n < entries[i].least)
            fail_msg("%s: %d calls, expected at least %d", entries[i].what, n, entries[i].least);
    }
    tg_unload(module_with_maps);
    tg_unload(module);
}

/* ... of a release too. */
static void a_context_is_released_whichever_call_fails(void **state)
{
    (void)state;
    const int before = fake->n_contexts;
    fake->result = 101;
    for (int call = 1; call <= 4; call++) {
        LOG(log);
        assert_int_equal(tg_context_acquire(driver, 0, &log_sink), TG_OK);
        fake->n_calls = 0;
        fake->fail_call = call;
        tg_context_release(driver, 0);
        fake->fail_call = 0;
        assert_int_equal(fake->n_contexts, before);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {TEST(each_call_of_the_driver_fails_once),
                                       TEST(a_context_is_released_whichever_call_fails)};
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
