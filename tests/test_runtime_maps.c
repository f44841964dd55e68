/* tests/test_runtime_maps.c - the runtime against a fake driver: tensor maps, clusters, overlapping launches.
 */
#include "tests/runtime_fixture.h"
#include "tests/usage.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One kernel, whose only parameter is one map of a tensor this wide. */
static tg_program program_of_map(tg_program (*make)(const char *ptx), const char *name, uint32_t width,
                                 tg_map_desc recipe)
{
    tg_program p = make(ptx);
    tg_kernel *kernel = &p.kernels[0];
    strcpy(p.arch, "sm_90");
    p.dqk = p.dhv = width;
    recipe.tensor = (uint8_t)tg_program_tensor(&p, name);
    kernel->n_args = kernel->n_maps = 1;
    kernel->args[0] = (tg_arg_desc){.kind = TG_ARG_MAP, .index = recipe.tensor};
    kernel->maps[0] = recipe;
    kernel->shared_bytes = 100000;
    kernel->cluster = kernel->overlap = 0;
    return p;
}

static void maps_follow_the_call(void **state)
{
    (void)state;
    enum { F16 = 6, F32 = 7, BF16 = 9 }; /* CU_TENSOR_MAP_DATA_TYPE_* */
    const uint64_t TB = UINT64_C(1) << 40;
    const int64_t far = (INT64_C(1) << 39) - 8; /* elements of 2 bytes */
    const struct {
        tg_program (*make)(const char *ptx);
        const char *tensor;
        uint32_t width;
        tg_map_desc recipe; /* of a tensor put in later: swizzle, columns, rows, spans */
        tg_sizes sizes;
        int64_t stride[4]; /* B, NH, T, width */
        int type;
        uint64_t extents[5], strides[4]; /* columns, T, spans, NH, B; bytes from T on */
    } rows[] = {
        /* contiguous, half the heads */
        {sample_program_maps,
         "q",
         128,
         {0, 3, 64, 128, 2},
         {2, 6, 1000, 0},
         {0},
         BF16,
         {64, 1000, 2, 3, 2},
         {256, 128, 256000, 768000}},
        /* [B, T, NH, width] in a larger buffer; a box beyond the width */
        {sample_program_maps,
         "v",
         192,
         {0, 3, 64, 64, 4},
         {2, 4, 77, 0},
         {100000, 192, 1024, 1},
         F16,
         {64, 77, 3, 4, 2},
         {2048, 128, 384, 200000}},
        /* one for all sequences, one for all heads: whatever the strides say */
        {sample_program_maps,
         "w",
         64,
         {0, 2, 16, 8, 4},
         {3, 4, 5, 0},
         {-7, 320, 64, 1},
         F32,
         {16, 5, 4, 4, 1},
         {256, 64, 1280, 16}},
        {sample_program_maps,
         "g",
         40,
         {0, 0, 8, 256, 5},
         {3, 4, 5, 0},
         {200, -7, 40, 1},
         BF16,
         {8, 5, 5, 1, 3},
         {80, 16, 16, 400}},
        /* a width that spans do not divide: columns of all of it */
        {sample_program_maps,
         "q",
         80,
         {0, 3, 64, 64, 1},
         {2, 6, 100, 0},
         {0},
         BF16,
         {80, 100, 1, 3, 2},
         {160, 128, 16000, 48000}},
        /* single entries */
        {sample_program_maps,
         "q",
         64,
         {0, 3, 64, 64, 1},
         {1, 2, 1, 0},
         {-3, 0, 5, 1},
         BF16,
         {64, 1, 1, 1, 1},
         {16, 128, 16, 16}},
        /* an output, whose heads are the outermost axis */
        {sample_program_maps,
         "h",
         32,
         {0, 3, 32, 64, 1},
         {2, 2, 100, 0},
         {3200, 6400, 32, 1},
         F32,
         {32, 100, 1, 2, 2},
         {128, 128, 25600, 12800}},
        /* the largest strides there are */
        {sample_program_maps,
         "k",
         16,
         {0, 1, 16, 1, 1},
         {2, 4, 2, 0},
         {far, far - 8, far - 16, 1},
         BF16,
         {16, 2, 1, 2, 2},
         {TB - 48, 32, TB - 32, TB - 16}},
        /* packed: the tokens of all sequences */
        {sample_program_packed,
         "q",
         16,
         {0, 2, 16, 64, 1},
         {3, 4, 500, 0},
         {99, 16, 64, 1},
         F32,
         {16, 500, 1, 2, 1},
         {256, 64, 64, 16}},
        /* workspace */
        {sample_program_maps,
         "u",
         128,
         {0, 3, 64, 64, 2},
         {2, 4, 100, 0},
         {0},
         BF16,
         {64, 100, 2, 4, 2},
         {256, 128, 25600, 102400}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        const tg_map_desc *recipe = &rows[i].recipe;
        tg_program p = program_of_map(rows[i].make, rows[i].tensor, rows[i].width, *recipe);
        tg_module *module = load_program(&p);
        tg_tensor_arg args[TG_MAX_TENSORS];
        uint32_t n = whole_signature(&p, args), tensor = p.kernels[0].maps[0].tensor;
        uint64_t address = 0x100; /* the workspace's */
        if (tensor < n) {
            memcpy(args[tensor].stride, rows[i].stride, sizeof rows[i].stride);
            address = args[tensor].address;
        }
        fake->n_maps = 0;
        if (tg_launch(module, &rows[i].sizes, NULL, args, n, 0x100, NULL, &log_sink) != TG_OK)
            fail_msg("row %zu: %s", i, log.text);
        assert_string_equal(fake->log, "cuTensorMapEncodeTiled cuLaunchKernel ");
        const struct fake_map *m = &fake->maps[0];
        assert_int_equal(fake->n_maps, 1);
        assert_int_equal(fake->values[0], m->value);
        assert_int_equal(m->address, address);
        assert_int_equal(m->type, rows[i].type);
        assert_int_equal(m->rank, 5);
        assert_int_equal(m->swizzle, recipe->swizzle);
        assert_int_equal(m->interleave + m->fill, 0);
        assert_int_equal(m->l2_promotion, 2);
        const unsigned int box[] = {recipe->columns, recipe->rows, recipe->spans, 1, 1};
        for (int d = 0; d < 5; d++) {
            assert_int_equal(m->box[d], box[d]);
            assert_int_equal(m->element_strides[d], 1);
            if (m->extents[d] != rows[i].extents[d] || (d > 0 && m->strides[d - 1] != rows[i].strides[d - 1]))
                fail_msg("row %zu: dimension %d: extent %llu, stride %llu", i, d, (unsigned long long)m->extents[d],
                         (unsigned long long)(d > 0 ? m->strides[d - 1] : 0));
        }
        tg_unload(module);
    }
}

static void maps_refuse_what_cannot_be_encoded(void **state)
{
    (void)state;
    const struct {
        const char *tensor;
        int64_t stride[4];
        const char *expected; /* NULL: accepted */
    } rows[] = {
        {"q", {0, 4800, 48, 1}, NULL}, /* inputs may be broadcast over sequences and heads */
        {"q", {9600, 0, 48, 1}, NULL},
        {"q",
         {9600, 4800, 0, 1},
         "TG0830 q: stride of T: expected 1..549755813887 elements, as a kernel uses a tensor map, found 0"},
        {"q", {9600, -4800, 48, 1}, "TG0830 q: stride of NH: expected 0..549755813887 elements"},
        {"q",
         {9600, 4800, -48, 1},
         "TG0830 q: stride of T: expected 1..549755813887 elements, as a kernel uses a tensor map, "
         "found -48"},
        {"q", {INT64_C(1) << 39, 4800, 48, 1}, "TG0830 q: stride of B: expected 0..549755813887 elements"},
        {"w", {0, 6400, 64, 1}, NULL}, /* one for all sequences */
        {"w", {0, INT64_C(1) << 38, 64, 1}, "TG0830 w: stride of NH: expected 0..274877906943"},
        {"g", {4800, 0, 48, 1}, NULL}, /* one for all heads */
        {"q", {9600, 4800, 47, 1}, "TG0825 q: stride of T: expected a multiple of 8"},
        {"h", {0, 6400, 64, 1}, "TG0824 h: stride of B: expected an output whose"},
        {"plain", {0, 0, -64, 1}, NULL}, /* no map */
    };
    tg_program p = sample_program_maps(ptx);
    tg_module *module = load_program(&p);
    const tg_sizes sizes = {2, 4, 100, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        tg_tensor_arg args[TG_MAX_TENSORS];
        uint32_t n = whole_signature(&p, args);
        memcpy(arg_named(args, rows[i].tensor)->stride, rows[i].stride, sizeof rows[i].stride);
        tg_status expected = rows[i].expected ? TG_E_ARGUMENT : TG_OK;
        fake->log[0] = '\0';
        if (tg_launch_check(module, &sizes, args, n, 0x100, NULL) != expected ||
            tg_launch(module, &sizes, NULL, args, n, 0x100, NULL, &log_sink) != expected)
            fail_msg("row %zu: %s", i, log.text);
        if (rows[i].expected) {
            assert_says(&log, rows[i].expected);
            assert_string_equal(fake->log, "");
        }
    }
    tg_unload(module);
}

/* All maps that there may be, among the other parameters, in another order; nothing else is asked of the driver. */
static void maps_are_parameters(void **state)
{
    (void)state;
    tg_program p = sample_program_maps(ptx);
    tg_module *module = load_program(&p);
    tg_tensor_arg args[TG_MAX_TENSORS];
    uint32_t n = whole_signature(&p, args);
    const tg_sizes sizes = {2, 4, 100, 0};
    int before = n_mallocs;
    assert_int_equal(tg_launch(module, &sizes, NULL, args, n, 0x100, (void *)0x77, NULL), TG_OK);
    assert_int_equal(n_mallocs, before);
    char expected[400] = "";
    for (int m = 0; m < TG_MAX_MAPS; m++)
        strcat(expected, "cuTensorMapEncodeTiled ");
    assert_string_equal(fake->log, strcat(expected, "cuLaunchKernelEx "));
    for (uint32_t m = 0; m < TG_MAX_MAPS; m++) {
        const uint8_t tensor = p.kernels[0].maps[m].tensor;
        assert_int_equal(fake->maps[m].address, tensor < n ? args[tensor].address : 0x100);
        assert_int_equal(fake->values[TG_MAX_MAPS - 1 - m], fake->maps[m].value);
    }
    assert_int_equal(value_of(&p, TG_ARG_POINTER, 0, 0), APART);
    assert_int_equal(value_of(&p, TG_ARG_SIZE, TG_SIZE_TOKENS, 0), 100);
    assert_ptr_equal(fake->stream, (void *)0x77);
    /* no map of an absent tensor is made: zeros are passed */
    uint64_t zeros = 0xcbf29ce484222325; /* the fake's hash of them */
    for (int i = 0; i < FAKE_MAP_BYTES; i++)
        zeros *= 0x100000001b3;
    arg_named(args, "g")->address = 0;
    fake->n_maps = 0;
    assert_int_equal(tg_launch(module, &sizes, NULL, args, n, 0x100, NULL, NULL), TG_OK);
    assert_int_equal(fake->n_maps, 0); /* the others are kept */
    assert_int_equal(value_of(&p, TG_ARG_MAP, 4, 4), zeros);
    assert_int_equal(value_of(&p, TG_ARG_MAP, 0, 5), fake->maps[5].value);
    /* the driver's refusal has names; nothing is launched */
    LOG(log);
    fake->failing = "cuTensorMapEncodeTiled";
    fake->result = 700;
    fake->fail_after = 1;
    fake->log[0] = '\0';
    const tg_sizes longer = {sizes.batch, sizes.heads, sizes.tokens + 1, 0}; /* of which nothing is kept */
    assert_int_equal(tg_launch(module, &longer, NULL, args, n, 0x100, NULL, &log_sink), TG_E_DRIVER);
    assert_says(&log, "TG0803 cuTensorMapEncodeTiled (recurrence, k): CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_string_equal(fake->log, "cuTensorMapEncodeTiled cuTensorMapEncodeTiled ");
    /* without tokens nothing is encoded */
    fake->failing = NULL;
    fake->log[0] = '\0';
    const tg_sizes none = {2, 4, 0, 0}, empty = {0, 4, 100, 0};
    assert_int_equal(tg_launch(module, &none, NULL, args, n, 0x100, NULL, NULL), TG_OK);
    assert_int_equal(tg_launch(module, &empty, NULL, args, n, 0x100, NULL, NULL), TG_OK);
    assert_string_equal(fake->log, "");
    tg_unload(module);
}

static void launches_have_clusters_and_overlap(void **state)
{
    (void)state;
    const struct {
        uint8_t cluster, overlap;
        bool is_plain;
    } rows[] = {{0, 0, true}, {1, 0, true}, {2, 0, false}, {8, 0, false}, {0, 1, false}, {1, 1, false}, {4, 1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tg_program p = sample_program(ptx);
        tg_kernel *kernel = &p.kernels[0];
        strcpy(p.arch, "sm_90");
        kernel->cluster = rows[i].cluster;
        kernel->overlap = rows[i].overlap;
        kernel->shared_bytes = 60000;
        tg_module *module = load_program(&p);
        tg_tensor_arg args[N_ARGS];
        sample_call(args);
        const tg_sizes sizes = {2, 4, 70, 0};
        assert_int_equal(tg_launch(module, &sizes, NULL, args, N_ARGS, 0x100, (void *)0x77, NULL), TG_OK);
        assert_string_equal(fake->log, rows[i].is_plain ? "cuLaunchKernel " : "cuLaunchKernelEx ");
        assert_int_equal(fake->cluster[0], rows[i].cluster > 1 ? rows[i].cluster : 0);
        assert_int_equal(fake->cluster[1], rows[i].cluster > 1);
        assert_int_equal(fake->cluster[2], rows[i].cluster > 1);
        assert_int_equal(fake->overlap, rows[i].overlap);
        assert_int_equal(fake->grid[0], 8);
        assert_int_equal(fake->grid[1] * fake->grid[2], 1);
        assert_int_equal(fake->block[0], 16);
        assert_int_equal(fake->block[1] * fake->block[2], 1);
        assert_int_equal(fake->shared, 60000);
        assert_int_equal(fake->dynamic_shared, 60000);
        assert_ptr_equal(fake->stream, (void *)0x77);
        assert_int_equal(value_of(&p, TG_ARG_SIZE, TG_SIZE_TOKENS, 0), 70);
        LOG(log);
        fake->failing = rows[i].is_plain ? "cuLaunchKernel" : "cuLaunchKernelEx";
        fake->result = 700;
        assert_int_equal(tg_launch(module, &sizes, NULL, args, N_ARGS, 0x100, NULL, &log_sink), TG_E_DRIVER);
        assert_says(&log, rows[i].is_plain ? "TG0803 cuLaunchKernel (recurrence): "
                                           : "TG0803 cuLaunchKernelEx (recurrence): ");
        fake->failing = NULL;
        tg_unload(module);
    }
    LOG(log);
    tg_program p = sample_program_maps(ptx);
    tg_module *module = load_program(&p);
    tg_tensor_arg args[TG_MAX_TENSORS];
    uint32_t n = whole_signature(&p, args);
    const tg_sizes odd = {1, 2, 100, 0};
    assert_int_equal(tg_launch(module, &odd, NULL, args, n, 0x100, NULL, &log_sink), TG_E_ARGUMENT);
    assert_says(&log, "TG0706 kernel recurrence: expected a multiple of 4 blocks, the cluster, "
                      "found 2");
    assert_string_equal(fake->log, "");
    tg_unload(module);
}

/* Of the functions that CUDA 11.4 lacks, overlap alone can be done without. */
static void older_drivers_are_refused_by_name(void **state)
{
    (void)state;
    tg_driver *old;
    void *library = dlopen(FAKE_CUDA_11, RTLD_NOW | RTLD_LOCAL);
    struct fake_state *fake_11 = library ? dlsym(library, "fake_state") : NULL;
    assert_non_null(fake_11);
    *fake_11 = *fake;
    assert_int_equal(tg_driver_open(FAKE_CUDA_11, &old, NULL), TG_OK);
    const struct {
        uint8_t n_maps, cluster;
        const char *expected; /* NULL: accepted */
    } rows[] = {
        {0, 0, NULL},
        {0, 1, NULL},
        {1, 0,
         "TG0816 kernel recurrence: tensor maps: expected a driver with the function "
         "cuTensorMapEncodeTiled, found none (CUDA 12.0 drivers have it)"},
        {0, 2, "TG0816 kernel recurrence: cluster: expected a driver with the function cuLaunchKernelEx"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        tg_program p = program_of_map(sample_program_maps, "q", 64, (tg_map_desc){0, 3, 64, 8, 1});
        tg_module *module;
        p.kernels[0].n_maps = p.kernels[0].n_args = rows[i].n_maps;
        p.kernels[0].cluster = rows[i].cluster;
        p.kernels[0].overlap = 1;
        fake_11->log[0] = '\0';
        tg_status expected = rows[i].expected ? TG_E_UNSUPPORTED : TG_OK;
        assert_int_equal(tg_load(old, &p, &module, &log_sink), expected);
        if (rows[i].expected) {
            assert_null(module);
            assert_says(&log, rows[i].expected);
            assert_null(strstr(fake_11->log, "cuModuleLoadDataEx"));
            continue;
        }
        tg_tensor_arg args[TG_MAX_TENSORS];
        uint32_t n = whole_signature(&p, args);
        const tg_sizes sizes = {1, 2, 100, 0};
        fake_11->log[0] = '\0';
        assert_int_equal(tg_launch(module, &sizes, NULL, args, n, 0x100, NULL, NULL), TG_OK);
        assert_string_equal(fake_11->log, "cuLaunchKernel ");
        tg_unload(module);
    }
    tg_driver_close(old);
    dlclose(library);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(maps_follow_the_call),
        TEST(maps_refuse_what_cannot_be_encoded),
        TEST(maps_are_parameters),
        TEST(launches_have_clusters_and_overlap),
        TEST(older_drivers_are_refused_by_name),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
