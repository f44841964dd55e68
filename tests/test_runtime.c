/* tests/test_runtime.c - the runtime against a fake driver: loading, marshalling, errors, capture.
 */
#include "tests/runtime_fixture.h"
#include "tests/usage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t cubin[] = {0x7f, 'E', 'L', 'F', 0, 1, 2, 3};

/* ---- driver and device ---- */

static void a_missing_library_is_named(void **state)
{
    (void)state;
    LOG(log);
    tg_driver *none = driver;
    assert_int_equal(tg_driver_open("/nowhere/libcuda.so.1", &none, &log_sink), TG_E_NO_DRIVER);
    assert_null(none);
    assert_says(&log, "TG0801 the driver library cannot be opened: /nowhere/libcuda.so.1");
}

static void a_missing_function_is_named(void **state)
{
    (void)state;
    LOG(log);
    tg_driver *none;
    assert_int_equal(tg_driver_open(FAKE_CUDA_OLD, &none, &log_sink), TG_E_NO_DRIVER);
    assert_says(&log, "TG0802");
    assert_says(&log, "expected the function cuLaunchKernel, found none");
}

static void reports_of_any_length_arrive(void **state)
{
    (void)state;
    LOG(log);
    static char report[9000];
    memset(report, 'r', sizeof report - 1);
    memcpy(report + sizeof report - 5, "end", 3);
    fake->error_text = report;
    fake->failing = "cuCtxSynchronize";
    fake->result = 700;
    assert_int_equal(tg_synchronize(driver, &log_sink), TG_E_DRIVER);
    assert_says(&log, "TG0803 cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS: rrr");
    assert_says(&log, "rrrendr");
    LOG(unknown);
    fake->error_text = NULL;
    fake->result = 12345;
    assert_int_equal(tg_synchronize(driver, &unknown_sink), TG_E_DRIVER);
    assert_says(&unknown, "cuCtxSynchronize: CUresult 12345: no description");
    fake->result = 2;
    fake->failing = "cuMemAlloc";
    uint64_t address;
    assert_int_equal(tg_memory_alloc(driver, 100, &address, NULL), TG_E_MEMORY);
    assert_int_equal(address, 0);
}

static void devices_are_described(void **state)
{
    (void)state;
    tg_device device;
    LOG(log);
    assert_int_equal(tg_device_query(driver, 0, &device, &log_sink), TG_OK);
    assert_string_equal(device.name, "Fake GPU");
    assert_int_equal(device.cc_major * 10 + device.cc_minor, 90);
    assert_int_equal(device.sms, 132);
    assert_int_equal(device.shared_optin, 232448);
    assert_int_equal(device.driver_version, 13000);
    assert_true(device.memory_bytes == (uint64_t)141 << 30);
    assert_int_equal(tg_device_query(driver, 1, &device, &log_sink), TG_E_NO_DEVICE);
    assert_says(&log, "TG0804 device: expected an ordinal below 1, found 1");
    assert_int_equal(tg_context_acquire(driver, 0, NULL), TG_OK);
    tg_context_release(driver, 0);
}

/* ---- load ---- */

static void load_prefers_the_cubin_of_this_gpu(void **state)
{
    (void)state;
    tg_program p = sample_program_rich(ptx, cubin, sizeof cubin);
    tg_module *module;
    strcpy(p.arch, "sm_90");
    assert_int_equal(tg_load(driver, &p, &module, NULL), TG_OK);
    assert_ptr_equal(fake->image, cubin);
    assert_int_equal(fake->n_modules, 2);
    assert_int_equal(fake->dynamic_shared, 100000);
    assert_non_null(strstr(fake->log, "cuFuncLoad"));
    tg_unload(module);
    strcpy(p.arch, "sm_80"); /* another major: the PTX */
    assert_int_equal(tg_load(driver, &p, &module, NULL), TG_OK);
    assert_ptr_equal(fake->image, ptx);
    tg_unload(module);
    LOG(log);
    strcpy(p.arch, "sm_90"); /* refused: the PTX, and a note */
    fake->failing = "cubin";
    fake->result = 209;
    assert_int_equal(tg_load(driver, &p, &module, &log_sink), TG_OK);
    assert_ptr_equal(fake->image, ptx);
    assert_says(&log, "TG0814 kernel second: the driver refuses the cubin (CUDA_ERROR_NO_BINARY_FOR_GPU)");
    tg_unload(module);
}

static void assert_load_says(tg_program *p, tg_status expected_status, const char *expected)
{
    LOG(log);
    tg_module *module;
    assert_int_equal(tg_load(driver, p, &module, &log_sink), expected_status);
    assert_null(module);
    assert_int_equal(fake->n_modules, 0);
    assert_says(&log, expected);
}

static void load_refuses_before_the_driver_does(void **state)
{
    (void)state;
    tg_program p = sample_program_rich(ptx, cubin, sizeof cubin);
    strcpy(p.arch, "sm_100");
    assert_load_says(&p, TG_E_UNSUPPORTED, "TG0811 program mlstm-sig: expected a GPU of sm_100 or newer, found sm_90");
    strcpy(p.arch, "sm_80");
    p.arch_exact = 1;
    assert_load_says(&p, TG_E_UNSUPPORTED, "expected a GPU of sm_80 exactly, found sm_90");
    p.arch_exact = 0;
    p.kernels[1].shared_bytes = 232449;
    assert_load_says(&p, TG_E_UNSUPPORTED,
                     "TG0812 kernel second: shared memory: expected at most 232448 bytes on this GPU, "
                     "found 232449");
    p.kernels[1].shared_bytes = 0;
    p.kernels[1].threads = 1024;
    fake->max_threads = 512;
    assert_load_says(&p, TG_E_UNSUPPORTED, "TG0813 kernel second: threads: expected at most 512 on");
    assert_null(strstr(fake->log, "cuModuleLoadDataEx"));
    fake->max_threads = 1024;
    fake->function_threads = 256;
    assert_load_says(&p, TG_E_UNSUPPORTED, "kernel second: threads: expected at most 256 as loaded, found 1024");
    p.n_kernels = 0;
    assert_load_says(&p, TG_E_FORMAT, "n_kernels");
}

static void load_errors_carry_the_drivers_words(void **state)
{
    (void)state;
    tg_program p = sample_program_rich(ptx, cubin, sizeof cubin);
    fake->failing = "cuModuleLoadDataEx";
    fake->result = 209;
    fake->fail_after = 1; /* the first kernel loads, and is unloaded again */
    fake->jit_log = "ptxas application ptx input, line 7; error : Unknown opcode";
    assert_load_says(&p, TG_E_DRIVER,
                     "TG0815 kernel second: the driver refuses the PTX: ptxas application ptx input, line 7");
    fake->fail_after = 0;
    assert_load_says(&p, TG_E_DRIVER, "cuModuleLoadDataEx (PTX of recurrence): CUDA_ERROR_NO_BINARY_FOR_GPU");
    fake->failing = "cuModuleGetFunction";
    assert_load_says(&p, TG_E_DRIVER, "cuModuleGetFunction (recurrence): ");
    fake->failing = "cuFuncSetAttribute";
    assert_load_says(&p, TG_E_DRIVER, "cuFuncSetAttribute: ");
    fake->failing = "cuCtxGetDevice";
    fake->result = 201;
    assert_load_says(&p, TG_E_DRIVER, "make a CUDA context current first");
}

/* ---- launch ---- */

static tg_module *load_sample(tg_program *p)
{
    *p = sample_program(ptx);
    return load_program(p);
}

static void values_arrive_in_order(void **state)
{
    (void)state;
    tg_program p;
    tg_module *module = load_sample(&p);
    tg_tensor_arg args[N_ARGS];
    sample_call(args);
    args[SAMPLE_Q].stride[0] = INT64_C(1) << 40; /* beyond 32 bits */
    args[SAMPLE_Q].stride[1] = 0;                /* broadcast over heads */
    args[SAMPLE_Q].stride[2] = -16;
    args[SAMPLE_Q].stride[3] = 1;
    args[SAMPLE_S0] = args[SAMPLE_S]; /* S0 is absent; the order does not matter */
    tg_sizes sizes = {3, 5, 70, 0};
    assert_int_equal(tg_launch(module, &sizes, NULL, args, N_ARGS - 1, 0x100, (void *)0x77, NULL), TG_OK);
    const uint64_t expected[] = {
        1 * APART, UINT64_C(1) << 40,
        0,         (uint64_t)-16, /* q */
        2 * APART, 5 * 70 * 16,
        70 * 16,   16, /* k, contiguous */
        3 * APART, 5 * 70 * 16,
        70 * 16,   16, /* v */
        4 * APART, 5 * 70,
        70,        1, /* f */
        5 * APART, 5 * 70,
        70,        1, /* i */
        0,         0,
        0,         0, /* S0 */
        7 * APART, 5 * 70 * 16,
        70 * 16,   16, /* h */
        8 * APART, 5 * 256,
        256,       16, /* S */
        0x100,     5,
        70,        0x3e800000,
        2,         64, /* workspace, NH, T, scale, chunks, L */
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(fake->values[i], expected[i]);
    assert_int_equal(fake->grid[0], 15);
    assert_int_equal(fake->grid[1] * fake->grid[2], 1);
    assert_int_equal(fake->block[0], 16);
    assert_ptr_equal(fake->stream, (void *)0x77);
    tg_unload(module);
}

/* What a stream under capture forbids: anything but asynchronous work; and no allocation of ours.
 */
static void a_launch_only_launches(void **state)
{
    (void)state;
    tg_program p;
    tg_module *module = load_sample(&p);
    tg_tensor_arg args[N_ARGS];
    sample_call(args);
    tg_sizes sizes = {3, 5, 70, 0};
    int before = n_mallocs;
    assert_int_equal(tg_launch(module, &sizes, NULL, args, N_ARGS, 0x100, NULL, NULL), TG_OK);
    assert_string_equal(fake->log, "cuLaunchKernel ");
    assert_int_equal(n_mallocs, before);
    LOG(log);
    fake->failing = "cuLaunchKernel";
    fake->result = 700;
    assert_int_equal(tg_launch(module, &sizes, NULL, args, N_ARGS, 0x100, NULL, &log_sink), TG_E_DRIVER);
    assert_says(&log, "cuLaunchKernel (recurrence): CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory");
    tg_unload(module);
}

static void all_mistakes_of_a_call_are_named(void **state)
{
    (void)state;
    tg_program p;
    tg_module *module = load_sample(&p);
    tg_tensor_arg args[N_ARGS + 2];
    sample_call(args);
    args[SAMPLE_Q].name = "x";
    args[SAMPLE_K].address += 8;
    memcpy(args[SAMPLE_V].stride, (int64_t[]){5, 16, 16, 2}, 4 * sizeof(int64_t));
    args[SAMPLE_F].address += 2;
    args[SAMPLE_I].stride[0] = INT64_MAX;
    memcpy(args[SAMPLE_H].stride, (int64_t[]){16, 0, 16, 1}, 4 * sizeof(int64_t));
    args[8] = args[SAMPLE_K];
    args[9] = (tg_tensor_arg){.name = "C", .address = 0x100};
    tg_sizes sizes = {3, 5, 70, 0};
    LOG(log);
    assert_int_equal(tg_launch_check(module, &sizes, args, N_ARGS + 2, 0x10, &log_sink), TG_E_ARGUMENT);
    const char *const expected[] = {
        "TG0821 args[0].name: expected a tensor of the signature, found x (the program has q k v f "
        "i S0 h S)",
        "TG0822 args[8].name: expected every tensor once, found k again",
        "TG0821 args[9].name: expected a tensor of the signature, found C",
        "TG0823 q: expected an address, found no argument of that name",
        "TG0825 k: address: expected a multiple of 16, found 0x200000000008",
        "TG0825 v: stride of B: expected a multiple of 4 elements (16 bytes), found 5",
        "TG0824 v: stride of dhv: expected 1, found 2",
        "TG0825 f: address: expected a multiple of 4, found 0x400000000002",
        "TG0824 i: stride of B: expected at most",
        "TG0824 h: stride of NH: expected an output whose elements do not overlap, found 0",
        "TG0826 workspace: expected a multiple of 256, found 0x10",
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_says(&log, expected[i]);
    LOG(more);
    sample_call(args);
    args[SAMPLE_K].address = 0;
    assert_int_equal(tg_launch_check(module, &sizes, args, N_ARGS, 0, &more_sink), TG_E_ARGUMENT);
    assert_says(&more, "TG0823 k: expected an address, found 0");
    assert_says(&more, "TG0826 workspace: expected the address of 15360 bytes, found 0");
    sizes.chunk = 7;
    assert_int_equal(tg_launch(module, &sizes, NULL, args, N_ARGS, 0, NULL, &more_sink), TG_E_ARGUMENT);
    assert_says(&more, "sizes.chunk");
    assert_int_equal(tg_launch_check(NULL, &sizes, args, N_ARGS, 0, NULL), TG_E_ARGUMENT);
    assert_string_equal(fake->log, "");
    tg_unload(module);
}

/* What a forward keeps for a backward: [B, NH, T, L]. */
static void rows_of_positions_are_aligned(void **state)
{
    (void)state;
    tg_program p = sample_program(ptx);
    p.chunk_most = p.chunk_default;
    p.tensors[SAMPLE_V].axes[1] = TG_POSITION;
    tg_module *module = load_program(&p);
    tg_tensor_arg args[N_ARGS];
    sample_call(args);
    const int64_t row = p.chunk_default, strides[] = {5 * 70 * row, 70 * row, row, 1},
                  odd[] = {5, 70 * row, row + 1, 2};
    const tg_sizes sizes = {3, 5, 70, 0};
    memcpy(args[SAMPLE_V].stride, strides, sizeof strides);
    assert_int_equal(tg_launch_check(module, &sizes, args, N_ARGS, 0x100, NULL), TG_OK);
    memcpy(args[SAMPLE_V].stride, odd, sizeof odd);
    args[SAMPLE_V].address += 8;
    LOG(log);
    assert_int_equal(tg_launch_check(module, &sizes, args, N_ARGS, 0x100, &log_sink), TG_E_ARGUMENT);
    assert_says(&log, "TG0825 v: address: expected a multiple of 16, found");
    assert_says(&log, "TG0825 v: stride of B: expected a multiple of 4 elements (16 bytes), found 5");
    assert_says(&log, "TG0825 v: stride of T: expected a multiple of 4 elements");
    assert_says(&log, "TG0824 v: stride of position: expected 1, found 2");
    tg_unload(module);
}

/* T = 0: no kernel runs, S becomes S0, in one copy or row by row, or zeros. */
static void an_empty_call_defines_the_state(void **state)
{
    (void)state;
    tg_program p;
    tg_module *module = load_sample(&p);
    static _Alignas(256) float from[2][3][16][16], to[2][3][16][32];
    for (int i = 0; i < 2 * 3 * 256; i++)
        (&from[0][0][0][0])[i] = (float)i;
    memset(to, 0xff, sizeof to);
    tg_tensor_arg args[] = {
        {.name = "h", .address = 1, .stride = {0, 0, 3, 2}}, /* of no elements: never followed */
        {.name = "S0", .address = (uintptr_t)from},
        {.name = "S", .address = (uintptr_t)to, .stride = {3 * 512, 512, 32, 1}},
    };
    tg_sizes sizes = {2, 3, 0, 0};
    int before = n_mallocs;
    assert_int_equal(tg_launch(module, &sizes, NULL, args, 3, 0x100, (void *)5, NULL), TG_OK);
    assert_ptr_equal(fake->stream, (void *)5);
    for (int row = 0; row < 2 * 3 * 16; row++) {
        assert_memory_equal((&to[0][0][0])[row], (&from[0][0][0])[row], 16 * sizeof(float));
        assert_int_equal(((uint8_t *)(&to[0][0][0])[row])[16 * sizeof(float)], 0xff);
    }
    fake->log[0] = '\0';
    memset(args[2].stride, 0, sizeof args[2].stride); /* dense: one piece; broadcast: one for each */
    assert_int_equal(tg_launch(module, &sizes, NULL, args, 3, 0x100, NULL, NULL), TG_OK);
    assert_string_equal(fake->log, "cuMemcpyDtoDAsync ");
    memcpy(args[1].stride, (int64_t[]){0, 256, 16, 1}, 4 * sizeof(int64_t));
    assert_int_equal(tg_launch(module, &sizes, NULL, args, 3, 0x100, NULL, NULL), TG_OK);
    assert_string_equal(fake->log, "cuMemcpyDtoDAsync cuMemcpyDtoDAsync cuMemcpyDtoDAsync ");
    assert_memory_equal((float *)to + 3 * 256, from, sizeof from / 2);
    assert_int_equal(tg_launch(module, &sizes, NULL, args + 2, 1, 0x100, NULL, NULL), TG_OK);
    assert_non_null(strstr(fake->log, "cuMemsetD8Async"));
    assert_true(to[0][0][0][1] == 0.0f);
    sizes.batch = 0; /* nothing at all */
    fake->log[0] = '\0';
    assert_int_equal(tg_launch(module, &sizes, NULL, args, 3, 0, NULL, NULL), TG_OK);
    assert_string_equal(fake->log, "");
    assert_int_equal(n_mallocs, before);
    tg_unload(module);
}

/* ---- programs of the other kinds ---- */

static void missing_axes_have_stride_0(void **state)
{
    (void)state;
    enum { H = 4, T = 100, D = 16, SLOTS = 6 }; /* 100 / 32 chunks and 3 sequences */
    tg_program p = sample_program_packed(ptx);
    tg_module *module = load_program(&p);
    tg_tensor_arg args[TG_MAX_TENSORS];
    uint32_t n = whole_signature(&p, args);
    const tg_sizes sizes = {3, H, T, 32};
    memcpy(arg_named(args, "A")->stride, (int64_t[]){77, 64, 1}, 3 * sizeof(int64_t));
    memcpy(arg_named(args, "bias")->stride, (int64_t[]){77, 55, 1}, 3 * sizeof(int64_t));
    memcpy(arg_named(args, "v")->stride, (int64_t[]){77, 16, 64, 1}, 4 * sizeof(int64_t));
    arg_named(args, "cu")->stride[2] = arg_named(args, "index")->stride[0] = 2; /* int64 */
    assert_int_equal(tg_launch(module, &sizes, NULL, args, n, 0x100, NULL, NULL), TG_OK);
    const struct {
        const char *name;
        uint64_t expected[5]; /* as far as the tensor has axes */
        uint32_t n_axes;
    } rows[] = {
        {"q", {0, T * D, D, 1}, 4}, /* contiguous, packed, half the heads */
        {"v", {0, 16, 64, 1}, 4},   /* what the caller says of B is not passed on */
        {"f", {0, T, 1}, 3},
        {"S0", {H * D * D, D * D, D, 1}, 4},
        {"A", {0, 64, 1}, 3},
        {"bias", {0, 0, 1}, 3},
        {"cu", {0, 0, 2}, 3},
        {"index", {2, 0}, 2},
        {"kept", {0, SLOTS, 1}, 3},
        {"dA", {0, D, 1}, 3},
        {"C", {0, SLOTS * D * D, D * D, D, 1}, 5}, /* workspace too */
        {"first", {0, 0, 1}, 3},
        {"sum", {0, D * 3, 3, 1}, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t axis = 0; axis < rows[i].n_axes; axis++)
            if (value_of(&p, TG_ARG_STRIDE, tg_program_tensor(&p, rows[i].name), axis) != rows[i].expected[axis])
                fail_msg("%s: stride %u", rows[i].name, axis);
    assert_int_equal(value_of(&p, TG_ARG_SIZE, TG_SIZE_BATCH, 0), 3);
    assert_int_equal(value_of(&p, TG_ARG_SIZE, TG_SIZE_TOKENS, 0), T);
    assert_int_equal(value_of(&p, TG_ARG_SIZE, TG_SIZE_CHUNKS, 0), SLOTS);
    tg_unload(module);
}

static void scalars_are_given_or_default(void **state)
{
    (void)state;
    tg_program p = sample_program_packed(ptx);
    tg_module *module = load_program(&p);
    tg_tensor_arg args[TG_MAX_TENSORS];
    uint32_t n = whole_signature(&p, args);
    const tg_sizes sizes = {3, 4, 100, 0};
    const struct {
        const float *given;
        float expected[2];
        const char *message; /* NULL: accepted */
    } rows[] = {
        {NULL, {0.25f, -1.5f}, NULL},
        {(const float[]){2.0f, 0.0f}, {2.0f, 0.0f}, NULL},
        {(const float[]){NAN, 1.0f}, {0}, "TG0829 scalars[0] (scale): expected a finite number"},
        {(const float[]){1.0f, -INFINITY}, {0}, "TG0829 scalars[1] (tau): expected a finite number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        tg_status expected = rows[i].message ? TG_E_ARGUMENT : TG_OK;
        fake->log[0] = '\0';
        assert_int_equal(tg_launch(module, &sizes, rows[i].given, args, n, 0x100, NULL, &log_sink), expected);
        if (rows[i].message) {
            assert_says(&log, rows[i].message);
            assert_string_equal(fake->log, "");
            continue;
        }
        for (int scalar = 0; scalar < 2; scalar++) {
            uint32_t bits;
            memcpy(&bits, &rows[i].expected[scalar], sizeof bits);
            assert_int_equal(value_of(&p, TG_ARG_SCALAR, scalar, 0), bits);
        }
    }
    float time;
    assert_int_equal(tg_time(module, &sizes, (const float[]){1.0f, 2.0f}, args, n, 0x100, 0, 1, 0, &time, NULL), TG_OK);
    assert_int_equal(value_of(&p, TG_ARG_SCALAR, 1, 0), 0x40000000); /* 2.0f */
    tg_unload(module);
}

static void calls_fit_the_kind_of_program(void **state)
{
    (void)state;
    const struct {
        tg_program (*make)(const char *ptx);
        tg_sizes sizes;
        const char *tensor; /* gets `stride` */
        int64_t stride[3];
        const char *expected; /* NULL: accepted */
    } rows[] = {
        {sample_program_decode, {2, 6, 20, 0}, "q", {0}, NULL},
        {sample_program_decode, {2, 6, 21, 0}, "q", {0}, "TG0704 sizes.tokens: expected at most 20"},
        {sample_program_decode, {2, 5, 4, 0}, "q", {0}, "TG0703 sizes.heads: expected a multiple of 3"},
        {sample_program_packed, {2, 5, 4, 0}, "q", {0}, "TG0703 sizes.heads: expected a multiple of 2"},
        {sample_program_packed, {2, 4, 4, 0}, "cu", {0, 0, 2}, NULL},
        {sample_program_packed,
         {2, 4, 4, 0},
         "cu",
         {1, 0, 0},
         "TG0824 cu: stride of cuts: expected at least 1, found 0"},
        {sample_program_packed,
         {2, 4, 4, 0},
         "index",
         {-2},
         "TG0824 index: stride of B: expected at least 1, found -2"},
        {sample_program_packed, {1, 4, 4, 0}, "index", {-2}, NULL},
        /* the slot matters for one sequence too */
        {sample_program_packed,
         {1, 4, 4, 0},
         "S0",
         {1026, 256, 16},
         "TG0825 S0: stride of B: expected a multiple of 4"},
        {sample_program_packed, {1, 4, 4, 0}, "S", {0, 256, 16}, "TG0824 S: stride of B: expected an output whose"},
        {sample_program, {1, 4, 4, 0}, "S0", {1026, 256, 16}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        tg_program p = rows[i].make(ptx);
        tg_module *module = load_program(&p);
        tg_tensor_arg args[TG_MAX_TENSORS];
        uint32_t n = whole_signature(&p, args);
        tg_tensor_arg *changed = arg_named(args, rows[i].tensor);
        memcpy(changed->stride, rows[i].stride, sizeof rows[i].stride);
        changed->stride[3] = changed->name[0] == 'S'; /* of dhv */
        tg_status expected = rows[i].expected ? TG_E_ARGUMENT : TG_OK;
        tg_status status = tg_launch(module, &rows[i].sizes, NULL, args, n, 0x100, NULL, &log_sink);
        if (status != expected)
            fail_msg("row %zu: %s", i, log.text);
        if (rows[i].expected)
            assert_says(&log, rows[i].expected);
        tg_unload(module);
    }
}

/* Not even where both are the same memory: the slots differ. */
static void an_empty_call_moves_no_state(void **state)
{
    (void)state;
    static _Alignas(256) float memory[2][6][256];
    tg_program p = sample_program_decode(ptx);
    p.pooled = TG_POOL_MOVES;
    p.tensors[SAMPLE_F] = (tg_tensor_info){.name = "index_out", .dtype = TG_I32, .flags = TG_IN | TG_NO_HEADS};
    sample_all_args(&p);
    tg_module *module = load_program(&p);
    const tg_sizes sizes = {1, 6, 0, 0};
    for (int has_final = 0; has_final < 2; has_final++) {
        LOG(log);
        tg_tensor_arg args[TG_MAX_TENSORS];
        const uint32_t n = whole_signature(&p, args);
        arg_named(args, "S0")->address = (uintptr_t)memory;
        arg_named(args, "S")->address = has_final ? (uintptr_t)memory : 0;
        assert_int_equal(tg_launch(module, &sizes, NULL, args, n, 0x100, NULL, &log_sink),
                         has_final ? TG_E_UNSUPPORTED : TG_OK);
        if (has_final)
            assert_says(&log,
                        "TG0827 S: a call without tokens moves no state to another slot: expected tokens, found 0");
    }
    tg_unload(module);
}

static void an_empty_call_leaves_pools_alone(void **state)
{
    (void)state;
    static _Alignas(256) float memory[2][2][2 * 256], dA[2][16]; /* 2 slots of 2 heads */
    tg_program p = sample_program_packed(ptx);
    tg_module *module = load_program(&p);
    const uint64_t at = (uintptr_t)memory, other = (uintptr_t)memory[1];
    const struct {
        tg_sizes sizes;
        uint64_t S0, S;
        const char *expected; /* NULL: accepted */
    } rows[] = {
        {{1, 2, 0, 0}, at, at, NULL},
        {{1, 2, 0, 0}, at, 0, NULL},
        {{0, 2, 0, 0}, at, other, NULL}, /* no sequence, no slot */
        {{1, 2, 0, 0},
         at,
         other,
         "TG0827 S: a call without tokens copies no slots of a pool: expected the address of S0"},
        {{1, 2, 0, 0}, 0, at, "TG0827 S: a call without tokens"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        tg_tensor_arg args[TG_MAX_TENSORS];
        uint32_t n = whole_signature(&p, args);
        arg_named(args, "S0")->address = rows[i].S0;
        arg_named(args, "S")->address = rows[i].S;
        arg_named(args, "dA")->address = (uintptr_t)dA;
        memset(memory, 0x11, sizeof memory);
        memset(dA, 0xff, sizeof dA);
        fake->log[0] = '\0';
        tg_status expected = rows[i].expected ? TG_E_UNSUPPORTED : TG_OK;
        assert_int_equal(tg_launch_check(module, &rows[i].sizes, args, n, 0x100, NULL), expected);
        assert_int_equal(tg_launch(module, &rows[i].sizes, NULL, args, n, 0x100, NULL, &log_sink), expected);
        /* the gradient of the parameter, and nothing else, is defined */
        assert_string_equal(fake->log, rows[i].expected ? "" : "cuMemsetD8Async ");
        for (size_t e = 0; e < sizeof memory / sizeof(float); e++)
            assert_int_equal(((uint8_t *)memory)[4 * e], 0x11);
        for (int e = 0; e < 32; e++)
            assert_int_equal(((uint8_t *)dA)[4 * e], rows[i].expected ? 0xff : 0);
        if (rows[i].expected)
            assert_says(&log, rows[i].expected);
    }
    tg_unload(module);
}

/* With a batch of 0 the parameters' gradients still have elements. */
static void sums_over_no_batch_are_zeros(void **state)
{
    (void)state;
    static _Alignas(256) float dA[3][16];
    tg_program p = sample_program(ptx);
    p.tensors[SAMPLE_S] =
        (tg_tensor_info){.name = "dA", .dtype = TG_F32, .flags = TG_OUT | TG_NO_BATCH, .axes = {TG_DQK}};
    p.kernels[0].n_args = 0;
    tg_module *module = load_program(&p);
    for (int64_t batch = 0; batch < 3; batch++) {
        const tg_sizes sizes = {batch, 3, 0, 0};
        tg_tensor_arg args[TG_MAX_TENSORS];
        uint32_t n = whole_signature(&p, args);
        arg_named(args, "dA")->address = (uintptr_t)dA;
        memset(dA, 0xff, sizeof dA);
        assert_int_equal(tg_launch(module, &sizes, NULL, args, n, 0x100, NULL, NULL), TG_OK);
        for (int e = 0; e < 48; e++)
            assert_true((&dA[0][0])[e] == 0.0f);
    }
    tg_unload(module);
}

static void long_signatures_are_listed_whole(void **state)
{
    (void)state;
    tg_program p = sample_program(ptx);
    p.kernels[0].n_args = 0;
    p.n_tensors = TG_MAX_TENSORS;
    for (uint32_t i = 0; i < p.n_tensors; i++) {
        p.tensors[i] = (tg_tensor_info){.dtype = TG_F32, .flags = TG_IN | TG_OPTIONAL};
        snprintf(p.tensors[i].name, sizeof p.tensors[i].name, "long_name_%05u", i % 1000);
    }
    tg_module *module = load_program(&p);
    const tg_tensor_arg arg = {.name = "x"};
    LOG(log);
    assert_int_equal(tg_launch_check(module, &(tg_sizes){1, 1, 1, 0}, &arg, 1, 0, &log_sink), TG_E_ARGUMENT);
    assert_says(&log, "long_name_00062 long_name_00063)");
    tg_unload(module);
}

/* ---- memory that is written ---- */

/* Of [B 3, NH 5, T 70, 16], fp32: what of two addresses and strides is refused, and in which words. */
static void what_is_written_lies_apart(void **state)
{
    (void)state;
    enum { Q = SAMPLE_Q, V = SAMPLE_V, H = SAMPLE_H, S = SAMPLE_S, S0 = SAMPLE_S0 };
    const int64_t last = 3 * 5 * 70 * 16 - 16;
    const struct {
        int to, from;          /* `to` is moved: to the address of `from` */
        int64_t offset;        /* and so many elements on */
        int64_t strides[2][4]; /* of both */
        const char *expected;  /* NULL: accepted */
    } rows[] = {
        {H, H, 0, {{5 * 70 * 48, 48, 5 * 48, 1}}, NULL},
        {H, H, 0, {{5 * 70 * 48, 32, 64, 1}}, "TG0833 h: strides: expected an output whose elements do not overlap"},
        {H, H, 0, {{70 * 16, 70 * 16, 16, 1}}, "TG0833 h: strides: expected an output whose elements do not overlap"},
        {H, H, 0, {{5 * 70 * 16, 70 * 16, -16, 1}}, NULL},
        {H, V, 0, {{0}}, "TG0833 h: address: expected memory apart from that of v, found 0x300000000000"},
        {H, V, last, {{0}}, "TG0833 h: address: expected memory apart from that of v"},
        {H, V, last + 16, {{0}}, NULL},
        {V, H, last, {{0}}, "TG0833 h: address: expected memory apart from that of v"},
        {Q, V, 0, {{0}}, NULL}, /* inputs may be one */
        {S, H, 16, {{0}}, "TG0833 h: address: expected memory apart from that of S"},
        {S, S0, 0, {{0}}, NULL}, /* in place */
        {S, S0, 16, {{0}}, "TG0833 S: address: expected memory apart from that of S0"},
        {S, S0, 0, {{5 * 512, 512, 32, 1}}, "TG0833 S: address: expected memory apart from that of S0"},
        /* slices of one tensor [B, T, 3, NH, 16], and of [B, NH, T, 3 * 16] */
        {H, V, 5 * 16, {{70 * 240, 16, 240, 1}, {70 * 240, 16, 240, 1}}, NULL},
        {H, V, 4 * 16, {{70 * 240, 16, 240, 1}, {70 * 240, 16, 240, 1}}, "TG0833 h: address: expected memory apart"},
        {H, V, -5 * 16, {{70 * 240, 16, 240, 1}, {70 * 240, 16, 240, 1}}, NULL},
        {H, V, 16, {{5 * 70 * 48, 70 * 48, 48, 1}, {5 * 70 * 48, 70 * 48, 48, 1}}, NULL},
        {H, V, 8, {{5 * 70 * 48, 70 * 48, 48, 1}, {5 * 70 * 48, 70 * 48, 48, 1}}, "TG0833 h: address: expected memory"},
        /* beside one that heads or sequences share */
        {H, V, 32, {{5 * 70 * 48, 70 * 48, 48, 1}, {5 * 70 * 48, 0, 48, 1}}, NULL},
        {H, V, 0, {{5 * 70 * 48, 70 * 48, 48, 1}, {0, 70 * 48, 48, 1}}, "TG0833 h: address: expected memory apart"},
        {S, H, -1000000, {{0}}, NULL},
    };
    tg_program p;
    tg_module *module = load_sample(&p);
    const tg_sizes sizes = {3, 5, 70, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        tg_tensor_arg args[N_ARGS];
        sample_call(args);
        tg_tensor_arg *to = &args[rows[i].to];
        const int64_t bytes = tg_dtype_bytes((tg_dtype)p.tensors[rows[i].to].dtype);
        to->address = args[rows[i].from].address + (uint64_t)(rows[i].offset * bytes);
        memcpy(args[rows[i].from].stride, rows[i].strides[1], sizeof rows[i].strides[1]);
        memcpy(to->stride, rows[i].strides[0], sizeof to->stride);
        const tg_status status = tg_launch_check(module, &sizes, args, N_ARGS, 0x100, &log_sink);
        if (status != (rows[i].expected ? TG_E_ARGUMENT : TG_OK))
            fail_msg("row %zu: %s", i, log.text);
        if (rows[i].expected)
            assert_says(&log, rows[i].expected);
    }
    LOG(log);
    tg_tensor_arg args[N_ARGS];
    sample_call(args);
    const uint64_t inside = args[SAMPLE_Q].address + 256;
    assert_int_equal(tg_launch_check(module, &sizes, args, N_ARGS, inside, &log_sink), TG_E_ARGUMENT);
    assert_says(&log, "TG0833 workspace: expected memory apart from that of q, found 0x100000000100");
    tg_unload(module);
}

/* ---- times ---- */

static void times_are_sorted_and_nothing_leaks(void **state)
{
    (void)state;
    tg_program p;
    tg_module *module = load_sample(&p);
    tg_tensor_arg args[N_ARGS];
    sample_call(args);
    fake->n_values = 2; /* of the flush kernel */
    tg_sizes sizes = {3, 5, 70, 0};
    float times[8];
    assert_int_equal(tg_time(module, &sizes, NULL, args, N_ARGS, 0x100, 2, 8, 1 << 20, times, NULL), TG_OK);
    for (int i = 1; i < 8; i++)
        assert_true(times[i - 1] <= times[i]);
    const char *const failing[] = {"cuEventCreate", "cuEventRecord",    "cuLaunchKernel",    "cuMemsetD8",
                                   "cuMemAlloc",    "cuCtxSynchronize", "cuEventElapsedTime"};
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
        fake->failing = failing[i];
        fake->result = 700;
        fake->fail_after = 0;
        assert_int_equal(tg_time(module, &sizes, NULL, args, N_ARGS, 0x100, 2, 8, 4096, times, NULL), TG_E_DRIVER);
    }
    fake->failing = NULL;
    assert_int_equal(tg_time(module, &sizes, NULL, args, N_ARGS, 0x100, 1, 0, 0, NULL, NULL), TG_OK);
    tg_unload(module);
}

/* The clock of the fake driver counts thread blocks. */
static void kernels_are_timed_one_by_one(void **state)
{
    (void)state;
    enum { RUNS = 5 };
    tg_program p = sample_program_rich(ptx, NULL, 0);
    tg_module *module = load_program(&p);
    tg_tensor_arg args[N_ARGS];
    sample_call(args);
    tg_sizes sizes = {3, 5, 70, 0};
    const int64_t blocks[] = {3 * 5, 3 * 5 * 4 * 2 * 2}; /* of chunks of 64, blocks of 16 */
    float times[2][RUNS], whole[RUNS];
    fake->log[0] = '\0';
    assert_int_equal(tg_time_kernels(module, &sizes, NULL, args, N_ARGS, 0x100, 1, RUNS, 0, times[0], NULL), TG_OK);
    assert_non_null(strstr(fake->log, "cuEventCreate cuLaunchKernel cuLaunchKernel cuEventRecord "
                                      "cuLaunchKernel cuEventRecord cuLaunchKernel cuEventRecord"));
    for (int kernel = 0; kernel < 2; kernel++)
        for (int i = 0; i < RUNS; i++) {
            assert_int_equal((int64_t)times[kernel][i], blocks[kernel]);
            assert_true(i == 0 || times[kernel][i - 1] <= times[kernel][i]);
        }
    assert_int_equal(tg_time(module, &sizes, NULL, args, N_ARGS, 0x100, 1, RUNS, 0, whole, NULL), TG_OK);
    assert_int_equal((int64_t)whole[0], blocks[0] + blocks[1]);
    sizes.batch = 0; /* nothing is launched */
    assert_int_equal(tg_time_kernels(module, &sizes, NULL, args, N_ARGS, 0x100, 1, RUNS, 0, times[0], NULL), TG_OK);
    assert_int_equal((int64_t)times[1][RUNS - 1], 0);
    tg_unload(module);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_missing_library_is_named),
        TEST(a_missing_function_is_named),
        TEST(reports_of_any_length_arrive),
        TEST(devices_are_described),
        TEST(load_prefers_the_cubin_of_this_gpu),
        TEST(load_refuses_before_the_driver_does),
        TEST(load_errors_carry_the_drivers_words),
        TEST(values_arrive_in_order),
        TEST(a_launch_only_launches),
        TEST(all_mistakes_of_a_call_are_named),
        TEST(rows_of_positions_are_aligned),
        TEST(an_empty_call_defines_the_state),
        TEST(missing_axes_have_stride_0),
        TEST(scalars_are_given_or_default),
        TEST(calls_fit_the_kind_of_program),
        TEST(an_empty_call_leaves_pools_alone),
        TEST(an_empty_call_moves_no_state),
        TEST(sums_over_no_batch_are_zeros),
        TEST(long_signatures_are_listed_whole),
        TEST(what_is_written_lies_apart),
        TEST(times_are_sorted_and_nothing_leaks),
        TEST(kernels_are_timed_one_by_one),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
