/* test_emulator_driver.c - what the driver checks, counts and reports. */
#include "emulator/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void test_launch_is_checked(void *unused)
{
    (void)unused;
    char log[512];
    int result, value;
    void *function, *other, *none = NULL;
    if (!cu.is_emulated)
        skip();
    fresh();
    void *module = load(".version 7.8\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 s[1024];\n"
                        ".visible .entry k(.param .u64 a, .param .align 8 .b8 b[24])\n.reqntid 64, 1, "
                        "1\n{\n.reg .b32 "
                        "%r<9>;\nmov.u32 %r1, s;\nret;\n}\n.visible .entry two()\n.maxntid 128\n{\nret;\n}\n",
                        log, sizeof log, &result);
    ok(result);
    ok(cu.cuModuleGetFunction(&function, module, "k"));
    ok(cu.cuModuleGetFunction(&other, module, "two"));
    assert_int_equal(cu.cuModuleGetFunction(&none, module, "three"), 500);
    char b[24] = {0};
    void *good[] = {&cu.in, b}, *bad[] = {&cu.in, NULL};
#define LAUNCH(f, g, t, s, p) cu.cuLaunchKernel(f, g, 1, 1, t, 1, 1, s, NULL, p, NULL)
    assert_int_equal(LAUNCH(function, 1, 32, 0, good), 1);
    assert_non_null(strstr(error_text(1), "compiled for 64"));
    assert_int_equal(LAUNCH(function, 0, 64, 0, good), 1);
    assert_int_equal(LAUNCH(other, 1, 256, 0, good), 1);
    assert_int_equal(LAUNCH(function, 1, 64, 0, bad), 1);
    assert_non_null(strstr(error_text(1), "parameter 1 of 2"));
    assert_int_equal(LAUNCH(function, 1, 64, 48 * 1024, good), 1); /* with the static 1024 too much */
    ok(LAUNCH(function, 1, 64, 47 * 1024, good));
    ok(cu.cuFuncSetAttribute(other, 8, 232448));
    assert_int_equal(cu.cuFuncSetAttribute(other, 8, 232449), 1);
    ok(LAUNCH(other, 1, 128, 232448, NULL));
    ok(cu.cuFuncGetAttribute(&value, 1, function));
    assert_int_equal(value, 1024);
    ok(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, other, 128, 100 * 1024));
    assert_int_equal(value, 2);
    ok(cu.cuModuleUnload(module));
    assert_int_equal(LAUNCH(function, 1, 64, 0, good), 400);
}

void test_memory_is_checked(void *unused)
{
    (void)unused;
    device_pointer a, b, start;
    uint32_t words[16];
    size_t size;
    if (!cu.is_emulated)
        skip();
    fresh();
    ok(cu.cuMemAlloc_v2(&a, 64));
    ok(cu.cuMemAlloc_v2(&b, 64));
    ok(cu.cuMemsetD32_v2(a, 0xabcd1234, 16));
    ok(cu.cuMemcpyDtoD_v2(b + 4, a, 32));
    ok(cu.cuMemcpyDtoH_v2(words, b, 64));
    assert_int_equal(words[8], 0xabcd1234);
    assert_int_equal(cu.cuMemcpyDtoH_v2(words, a + 60, 8), 1);
    assert_int_equal(cu.cuMemcpyHtoD_v2((device_pointer)(uintptr_t)words, words, 8), 1);
    assert_int_equal(cu.cuMemFree_v2(a + 8), 1);
    ok(cu.cuPointerGetAttribute(&start, 11, b + 13));
    assert_int_equal(start, b);
    ok(cu.cuPointerGetAttribute(&size, 12, b + 13));
    assert_int_equal(size, 64);
    assert_int_equal(cu.cuMemAlloc_v2(&a, 25ull << 30), 2);
    /* Use after free is told as such. */
    ok(cu.cuMemFree_v2(cu.in));
    assert_int_equal(run_body("ld.global.u32 %r2, [%rd1+8];", 1, 32, 0, NULL, 0), 700);
    assert_non_null(strstr(error_text(700), "in memory that was freed"));
    /* And the fault stays. */
    assert_int_equal(cu.cuCtxSynchronize(), 700);
    assert_int_equal(cu.cuMemAlloc_v2(&a, 64), 700);
    assert_string_equal(error_text(700), cu.tgemu_last_report());
    cu.tgemu_reset();
    ok(cu.cuMemAlloc_v2(&a, 64));
}

void test_variables(void *unused)
{
    (void)unused;
    uint32_t out[8];
    fresh();
    ok(run_ptx(".version 7.8\n.target sm_80\n.address_size 64\n.const .align 4 .b8 t[8] = {1, 2, 0, 0, "
               "7};\n"
               ".global .align 4 .u32 n = 0x1234;\n.global .align 8 .f64 x[2] = {0d3FF0000000000000, "
               "2.5};\n"
               ".shared .align 8 .b8 s[16];\n"
               ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"
               "ld.param.u64 %rd1, [b];\nld.const.u32 %r1, [t];\nmov.u64 %rd2, t;\nld.const.u32 %r2, "
               "[%rd2+4];\n"
               "ld.global.u32 %r3, [n];\nld.global.v2.u32 {%r4, %r5}, [x+8];\nst.shared.u32 [s+12], 99;\n"
               "ld.shared.u32 %r6, [s+12];\nst.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\n"
               "st.global.v2.u32 [%rd1+16], {%r5, %r6};\nret;\n}\n",
               1, 32, 0));
    ok(cu.cuMemcpyDtoH_v2(out, cu.out, 24));
    const uint32_t expected[] = {0x201, 7, 0x1234, 0, 0x40040000, 99};
    assert_memory_equal(out, expected, sizeof expected);
}

static void assert_image(const char *text, int expected)
{
    char log[4096], *image = strdup(text); /* exactly as long: address sanitizers see what is read behind it */
    int result;
    fresh();
    load(image, log, sizeof log, &result);
    if (result != expected)
        fail_msg("result %d of \"%s\", expected %d", result, text, expected);
    free(image);
}

/* Images that are hardly any. */
void test_images(void *unused)
{
    (void)unused;
    enum { INVALID_IMAGE = 200 };
    static const char *const images[] = {"", "\177", "\177E", "\177ELF", "P", "PK", ".", "//", " ", "\n.", "garbage"};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        assert_image(images[i], INVALID_IMAGE);
}

/* Variables that no memory holds. The driver loads such a module, and allocates nothing before it is used. */
void test_large_variables(void *unused)
{
    (void)unused;
    enum { INVALID_PTX = 218 };
#define MODULE ".version 7.8\n.target sm_80\n.address_size 64\n"
    if (!cu.is_emulated)
        skip();
    assert_image(MODULE ".global .b8 x[1073741824][1073741824];\n", INVALID_PTX);
    assert_image(MODULE ".global .b8 x[4294967295];\n", INVALID_PTX);
}

/* Conflicts by hand: stride 4 bytes has none; stride 128 bytes makes 32 lanes meet in one bank;
 * rows of 128 bytes make the 8 rows of an ldmatrix meet in 4 banks. */
void test_counters(void *unused)
{
    (void)unused;
    static const struct {
        const char *body;
        uint64_t wavefronts, conflicts;
    } cases[] = {
        {"shl.b32 %r3, %r1, 2;\nadd.u32 %r3, %r2, %r3;\nst.shared.u32 [%r3], 0;", 1, 0},
        {"shl.b32 %r3, %r1, 7;\nadd.u32 %r3, %r2, %r3;\nst.shared.u32 [%r3], 0;", 32, 31},
        {"shl.b32 %r3, %r1, 3;\nadd.u32 %r3, %r2, %r3;\nst.shared.u32 [%r3], 0;", 2, 1},
        {"st.shared.u32 [%r2], 0;", 1, 0},
        {"shl.b32 %r3, %r1, 4;\nadd.u32 %r3, %r2, %r3;\nst.shared.v4.u32 [%r3], {%r1, %r1, %r1, "
         "%r1};",
         4, 0},
        {"shl.b32 %r3, %r1, 3;\nadd.u32 %r3, %r2, %r3;\nst.shared.v2.u32 [%r3], {%r1, %r1};", 2, 0},
    };
    struct tgemu_counters c = {.struct_size = sizeof c};
    struct tgemu_config config;
    char body[1024];
    if (!cu.is_emulated)
        skip();
    cu.tgemu_get_config(&config);
    config.checks |= TGEMU_COUNT_BANKS;
    assert_int_equal(cu.tgemu_configure(&config), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fresh();
        sprintf(body, "mov.u32 %%r2, smem;\n%s", cases[i].body);
        ok(run_body(body, 1, 32, 4096, NULL, 0));
        cu.tgemu_last_counters(&c);
        assert_int_equal(c.shared_wavefronts, cases[i].wavefronts);
        assert_int_equal(c.bank_conflicts, cases[i].conflicts);
    }
    config.checks &= ~(unsigned)TGEMU_COUNT_BANKS;
    assert_int_equal(cu.tgemu_configure(&config), 0);
    fresh();
    ok(run_body(body, 1, 32, 4096, NULL, 0));
    cu.tgemu_last_counters(&c);
    assert_int_equal(c.shared_wavefronts, 0);
    fresh();
    ok(run_body("ld.global.v2.u32 {%r2, %r3}, [%rd1];\nst.volatile.global.u32 [%rd2], %r2;\nbar.sync 0;", 3, 64, 0,
                NULL, 0));
    cu.tgemu_counters(&c);
    assert_int_equal(c.launches, 1);
    assert_int_equal(c.global_load_bytes, 3 * 64 * 8);
    assert_int_equal(c.global_store_bytes, 3 * 64 * 4);
    assert_int_equal(c.barriers, 3);
    assert_int_equal(c.instructions, 3 * 2 * 7);
    assert_int_equal(c.lane_instructions, 3 * 64 * 7);
}

void test_targets(void *unused)
{
    (void)unused;
    char log[512];
    int result;
    struct tgemu_config c;
    if (!cu.is_emulated)
        skip();
    load(".version 8.0\n.target sm_90\n.address_size 64\n", log, sizeof log, &result);
    assert_int_equal(result, 218);
    assert_non_null(strstr(log, "sm_90"));
    load("\177ELF\2...", log, sizeof log, &result);
    assert_int_equal(result, 209);
    cu.tgemu_get_config(&c);
    c.cc_major = 9;
    assert_int_equal(cu.tgemu_configure(&c), 0);
    load(".version 8.0\n.target sm_90\n.address_size 64\n", log, sizeof log, &result);
    ok(result);
    c.cc_major = 8;
    assert_int_equal(cu.tgemu_configure(&c), 0);
    c.sm_count = 0;
    assert_int_equal(cu.tgemu_configure(&c), -1);
}

/* Kernels count the lines of those before them. */
void test_lines(void *unused)
{
    (void)unused;
    char log[512];
    int result;
    if (!cu.is_emulated)
        skip();
    load(".version 7.8\n.target sm_80\n.address_size 64\n"
         ".visible .entry k()\n{\nbra end;\n\n\nend:\nret;\n}\n"
         ".visible .entry l()\n{\nbogus;\n}\n",
         log, sizeof log, &result);
    assert_int_equal(result, 218);
    assert_non_null(strstr(log, "line 14: bogus;"));
}

/* The last statement need not be the one that ends the kernel. */
void test_last_statements(void *unused)
{
    static const char *const bodies[] = {"ret;\n", "", "bra first;\nsecond:\nret;\nfirst:\nbra.uni second;\n",
                                         "ret;\nmov.u32 %r1, 7;\n"};
    (void)unused;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char text[256], log[512];
        void *function;
        int result;
        fresh();
        snprintf(text, sizeof text,
                 ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %%r<2>;\n%s}\n",
                 bodies[i]);
        void *module = load(text, log, sizeof log, &result);
        if (result)
            fail_msg("%s: %s", bodies[i], log);
        ok(cu.cuModuleGetFunction(&function, module, "k"));
        ok(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        ok(cu.cuCtxSynchronize());
        ok(cu.cuModuleUnload(module));
    }
}

static int run_in_turn(const char *body, bool overlaps)
{
    char *ptx = make_kernel(body);
    cu.overlap = overlaps;
    const int result = run_ptx(ptx, 2, 32, 0);
    cu.overlap = 0;
    free(ptx);
    return result;
}

/* A kernel touches memory before it waits for the one ahead: nothing of that one's, which must have let it begin. */
void test_kernels_side_by_side(void *unused)
{
#define LET  "griddepcontrol.launch_dependents;\n"
#define WAIT "griddepcontrol.wait;\n"
    static const char first[] = LET "ld.global.u32 %r2, [%rd1+64];\nst.global.u32 [%rd2], 5;\n",
                      quiet[] = "ld.global.u32 %r2, [%rd1+64];\nst.global.u32 [%rd2], 5;\n",
                      late[] = WAIT LET "st.global.u32 [%rd2], 5;\n", early[] = LET WAIT "st.global.u32 [%rd2], 5;\n";
    static const struct {
        const char *ahead, *beside, *says; /* NULL: it is right */
        bool overlaps;                     /* the one ahead */
    } rows[] = {
        {first, "ld.global.u32 %r2, [%rd1+64];\nst.global.u32 [%rd2+128], 7;\n" WAIT, NULL, false},
        {late, "st.global.u32 [%rd2+128], 7;\n" WAIT, NULL, true},
        {first, WAIT "ld.global.u32 %r2, [%rd2];\nst.global.u32 [%rd1+64], 7;\n", NULL, false},
        {first, "ld.global.u32 %r2, [%rd2];\n" WAIT, "reads global address", false},
        {first, "st.global.u32 [%rd2], 7;\n" WAIT, "which the kernel ahead stores to", false},
        {first, "st.global.u32 [%rd1+64], 7;\n" WAIT, "which the kernel ahead reads", false},
        {first, "st.global.u32 [%rd2+128], 7;\n", "no CTA waits for the kernel ahead", false},
        {quiet, "st.global.u32 [%rd2+128], 7;\n" WAIT,
         "before griddepcontrol.wait: the kernel ahead, which may still run", false},
        {early, "st.global.u32 [%rd2+128], 7;\n" WAIT,
         "before griddepcontrol.wait: the kernel ahead, which may still run", true},
    };
    (void)unused;
    if (!cu.is_emulated)
        skip();
    (void)use_target("sm_90");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fresh();
        ok(run_in_turn(first, false)); /* what is ahead of the one ahead is not asked about */
        ok(run_in_turn(rows[i].ahead, rows[i].overlaps));
        const int result = run_in_turn(rows[i].beside, true);
        if ((result != 0) != (rows[i].says != NULL) || (rows[i].says && !strstr(cu.tgemu_last_report(), rows[i].says)))
            fail_msg("row %zu: %d, %s", i, result, cu.tgemu_last_report());
    }
    (void)use_target(NULL);
    fresh();
}

/* Launches behind a return are what they were behind the keeping: values, what is unwritten, what the kernel ahead has touched,
 * the order of warps. */
void test_memory_is_kept(void *unused)
{
    static const char ahead[] = LET "st.global.u32 [%rd2], 5;\n", other[] = "st.global.u32 [%rd2+4], 7;\n",
                      last[] = "shr.u32 %r2, %r1, 5;\natom.global.exch.b32 %r3, [%rd1], %r2;\n"
                               "atom.global.exch.b32 %r3, [%rd1+4], %r2;\natom.global.exch.b32 %r3, [%rd1+8], %r2;\n"
                               "atom.global.exch.b32 %r3, [%rd1+12], %r2;\n";
    uint32_t words[2], winners[2][4];
    (void)unused;
    if (!cu.is_emulated)
        skip();
    (void)use_target("sm_90");
    fresh();
    assert_int_equal(cu.tgemu_return(), -1);
    ok(run_in_turn(ahead, false));
    ok(cu.tgemu_keep());
    for (int i = 0; i < 2; i++) {
        ok(run_in_turn("st.global.u32 [%rd2+128], 7;\n" WAIT, true));
        ok(cu.tgemu_return());
        assert_int_equal(run_in_turn("ld.global.u32 %r2, [%rd2];\n" WAIT, true), 719);
        ok(cu.tgemu_return());
        ok(cu.cuCtxSynchronize());
        ok(run_body(last, 1, 512, 0, NULL, 0));
        ok(cu.cuMemcpyDtoH_v2(winners[i], cu.in, sizeof winners[i]));
        ok(run_body(other, 1, 32, 0, words, 2));
        assert_int_equal(words[0] + words[1], 5 + 7);
        ok(cu.tgemu_return());
        ok(cu.cuMemcpyDtoH_v2(words, cu.in, 4));
        assert_int_equal(words[0], 0);
        assert_int_equal(run_body("ld.global.u32 %r2, [%rd2+4];\n", 1, 32, 0, NULL, 0), 719);
        ok(cu.tgemu_return());
    }
    assert_memory_equal(winners[0], winners[1], sizeof winners[0]);
    ok(cu.cuMemFree_v2(cu.out));
    assert_int_equal(cu.tgemu_return(), -1);
    (void)use_target(NULL);
    fresh();
}

/* The fault of the lowest CTA is reported, however many threads there are; and the same counters.
 */
void test_threads_do_not_show(void *unused)
{
    (void)unused;
    char reports[2][2048];
    struct tgemu_config c;
    if (!cu.is_emulated)
        skip();
    cu.tgemu_get_config(&c);
    for (int i = 0; i < 2; i++) {
        c.threads = i ? 7 : 1;
        assert_int_equal(cu.tgemu_configure(&c), 0);
        fresh();
        assert_int_equal(run_body("mov.u32 %r2, %ctaid.x;\nsetp.gt.u32 %p1, %r2, 10;\nmul.wide.u32 %rd3, %r1, 4;\n"
                                  "add.u64 %rd3, %rd3, %rd1;\n@%p1 ld.global.u32 %r3, [%rd3+4000];",
                                  64, 32, 0, NULL, 0),
                         700);
        snprintf(reports[i], sizeof reports[i], "%s", cu.tgemu_last_report());
    }
    c.threads = 0;
    assert_int_equal(cu.tgemu_configure(&c), 0);
    assert_string_equal(strchr(reports[0], '\n'), strchr(reports[1], '\n')); /* addresses differ */
    assert_non_null(strstr(reports[0], "CTA (11,0,0), warp 0 lane 24, thread (24,0,0)"));
    assert_non_null(strstr(reports[0], "ptx line 16: @%p1 ld.global.u32 %r3, [%rd3+4000];"));
}

struct cluster_launch {
    unsigned grid_x, dim[3];
    const char *directive, *what; /* in the report */
    int result;
};

/* Every CTA of a grid of N x 2 x 3 stores where in its cluster it is, a digit for each answer. */
static const char cluster_ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u64 b)%s\n{\n.reg .b32 %%r<30>;\n"
    ".reg .b64 %%rd<9>;\n.reg .pred %%p<2>;\nld.param.u64 %%rd1, [b];\n"
    "mov.u32 %%r1, %%cluster_ctaid.x;\nmov.u32 %%r2, %%cluster_ctaid.z;\n"
    "mov.u32 %%r3, %%clusterid.x;\nmov.u32 %%r4, %%clusterid.y;\nmov.u32 %%r5, %%clusterid.z;\n"
    "mov.u32 %%r6, %%cluster_ctarank;\nmov.u32 %%r7, %%cluster_nctarank;\n"
    "mov.u32 %%r8, %%nclusterid.x;\nmov.u32 %%r9, %%cluster_nctaid.z;\n"
    "mad.lo.u32 %%r10, %%r1, 10, %%r2;\nmad.lo.u32 %%r10, %%r10, 10, %%r3;\n"
    "mad.lo.u32 %%r10, %%r10, 10, %%r4;\nmad.lo.u32 %%r10, %%r10, 10, %%r5;\n"
    "mad.lo.u32 %%r10, %%r10, 10, %%r6;\nmad.lo.u32 %%r10, %%r10, 10, %%r7;\n"
    "mad.lo.u32 %%r10, %%r10, 10, %%r8;\nmad.lo.u32 %%r10, %%r10, 10, %%r9;\n"
    "mov.u32 %%r11, %%ctaid.x;\nmov.u32 %%r12, %%ctaid.y;\nmov.u32 %%r13, %%ctaid.z;\n"
    "mad.lo.u32 %%r14, %%r13, 2, %%r12;\nmad.lo.u32 %%r14, %%r14, 4, %%r11;\n"
    "mul.wide.u32 %%rd2, %%r14, 4;\nadd.u64 %%rd1, %%rd1, %%rd2;\n"
    "st.global.u32 [%%rd1], %%r10;\nret;\n}\n";

static int launch_clusters(const struct cluster_launch *c, uint32_t *out)
{
    char text[4096], log[512];
    void *function, *parameters[] = {&cu.in, &cu.out};
    CUlaunchAttribute cluster = {.id = LAUNCH_ATTRIBUTE_CLUSTER};
    int result;
    fresh();
    snprintf(text, sizeof text, cluster_ptx, c->directive);
    void *module = load(text, log, sizeof log, &result);
    ok(result);
    ok(cu.cuModuleGetFunction(&function, module, "k"));
    memcpy(cluster.value.dim, c->dim, sizeof c->dim);
    const CUlaunchConfig config = {.grid_x = c->grid_x,
                                   .grid_y = 2,
                                   .grid_z = 3,
                                   .block_x = 32,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .attributes = &cluster,
                                   .n_attributes = c->dim[0] > 0};
    result = cu.cuLaunchKernelEx(&config, function, parameters, NULL);
    if (!result)
        ok(cu.cuMemcpyDtoH_v2(out, cu.out, 24 * sizeof *out));
    if (result && cu.is_emulated && !strstr(error_text(result), c->what))
        fail_msg("%s", error_text(result));
    ok(cu.cuModuleUnload(module));
    return result;
}

void test_clusters(void *unused)
{
    static const struct cluster_launch good[] = {
        {4, {2, 1, 3}, "", NULL, 0},
        {4, {2, 1, 3}, " .reqnctapercluster 2, 1, 3", NULL, 0},
        {4, {0}, " .reqnctapercluster 2, 1, 3", NULL, 0},
    };
    static const struct cluster_launch bad[] = {
        {4, {2, 1, 1}, " .reqnctapercluster 2, 1, 3", "compiled for 2 x 1 x 3", 1},
        {5, {2, 1, 3}, "", "a grid of 5 x 2 x 3 in clusters of 2 x 1 x 3", 1},
        {4, {4, 2, 3}, "", "8 CTAs are possible", 912},
    };
    uint32_t out[24];
    (void)unused;
    if (!use_target("sm_90a"))
        skip();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ok(launch_clusters(&good[i], out));
        for (uint32_t at = 0; at < 24; at++) {
            const uint32_t x = at % 4, y = at / 4 % 2, z = at / 8;
            const uint32_t digits[] = {x % 2, z, x / 2, y, 0, z * 2 + x % 2, 6, 2, 3};
            uint32_t expected = 0;
            for (int k = 0; k < 9; k++)
                expected = expected * 10 + digits[k];
            assert_int_equal(out[at], expected);
        }
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int result = launch_clusters(&bad[i], out);
        assert_true(cu.is_emulated ? result == bad[i].result : result != 0);
    }
}
