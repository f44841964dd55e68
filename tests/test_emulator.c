/* test_emulator.c - the emulator, through the driver interface it exports.
 *
 * Two kinds of tests. The files of tests/emulator/ are data: *.t says what it wants in the form
 * that test_emulator_files.c describes, *.ptx only has to load. What needs a reference computation
 * is in C: test_emulator_matrices.c, test_emulator_tensors.c, test_emulator_wgmma.c,
 * test_emulator_driver.c. All of it but the mutants also runs on a real GPU, as ./dev gpu-test does
 * (what is for sm_90a on such a GPU only):
 *   test_emulator [--only TEXT] [--part K/N] [libcuda.so.1 [tests/emulator]] */
#include "emulator/harness.h"
#include "tests/usage.h"

#include <dirent.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a GPU may take for a test: a barrier that nobody completes is waited for without end. */
enum { TEST_SECONDS = 20 };

struct driver cu;

static bool load_driver(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
#define X(type, name, parameters) *(void **)&cu.name = dlsym(library, #name);
    DRIVER(X)
    EMULATOR(X)
#undef X
    cu.is_emulated = cu.tgemu_reset;
    return cu.cuInit && cu.cuLaunchKernelEx;
}

const char *error_text(int result)
{
    const char *text = NULL;
    cu.cuGetErrorString(result, &text);
    return text ? text : "?";
}

void ok(int result)
{
    if (result)
        fail_msg("%d: %s", result, error_text(result));
}

void configure(uint64_t seed, int threads)
{
    if (!cu.is_emulated)
        return;
    struct tgemu_config c;
    cu.tgemu_get_config(&c);
    c.seed = seed;
    c.threads = threads;
    c.step_limit = 1000000;
    assert_int_equal(cu.tgemu_configure(&c), 0);
}

bool use_target(const char *target)
{
    struct tgemu_config c;
    int major = 0;
    cu.target = target;
    if (cu.is_emulated) {
        cu.tgemu_get_config(&c);
        c.cc_major = target ? 9 : 8;
        assert_int_equal(cu.tgemu_configure(&c), 0);
    }
    ok(cu.cuDeviceGetAttribute(&major, 75, 0));
    return !target || major == 9;
}

void check_with_ptxas(const char *ptx)
{
    static int has_ptxas = -1;
    char command[256];
    if (has_ptxas < 0)
        has_ptxas = !system("command -v ptxas >/dev/null 2>&1");
    if (!has_ptxas)
        return;
    /* Remarks count too: ptxas repairs what wgmma needs. C7508 and C7511 are
     * about speed: it does not know how many registers setmaxnreg finds; it serialises. */
    snprintf(command, sizeof command,
             "! ptxas -arch=%s -o /dev/null - 2>&1 | grep -v C7508 | grep -v C7511 | grep . >&2",
             cu.target ? cu.target : "sm_80");
    FILE *f = popen(command, "w");
    assert_non_null(f);
    fputs(ptx, f);
    if (pclose(f))
        fail_msg("ptxas refuses\n%s", ptx);
}

void fresh(void)
{
    uint32_t words[WORDS];
    if (cu.is_emulated)
        cu.tgemu_reset();
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i;
    ok(cu.cuMemAlloc_v2(&cu.in, sizeof words));
    ok(cu.cuMemAlloc_v2(&cu.out, sizeof words));
    ok(cu.cuMemcpyHtoD_v2(cu.in, words, sizeof words));
}

void *load(const char *ptx, char *log, size_t log_size, int *result)
{
    void *module = NULL;
    int options[] = {5, 6}; /* CU_JIT_ERROR_LOG_BUFFER and its size */
    void *values[] = {log, (void *)log_size};
    log[0] = 0;
    *result = cu.cuModuleLoadDataEx(&module, ptx, 2, options, values);
    return module;
}

int run_ptx(const char *ptx, unsigned grid, unsigned block, unsigned shared)
{
    char log[4096];
    int result;
    void *function, *module = load(ptx, log, sizeof log, &result);
    if (result)
        fail_msg("%s\n%s", log, ptx);
    ok(cu.cuModuleGetFunction(&function, module, "k"));
    if (shared > 48 * 1024)
        ok(cu.cuFuncSetAttribute(function, 8, (int)shared));
    static _Alignas(64) char maps[MAX_MAPS][128];
    void *parameters[2 + MAX_MAPS] = {&cu.in, &cu.out};
    for (int i = 0; i < cu.n_maps; i++) {
        encode_map(cu.maps[i], maps[i]);
        parameters[2 + i] = maps[i];
    }
    CUlaunchAttribute attributes[2];
    unsigned n_attributes = 0;
    if (cu.cluster > 0)
        attributes[n_attributes++] =
            (CUlaunchAttribute){.id = LAUNCH_ATTRIBUTE_CLUSTER, .value.dim = {cu.cluster, 1, 1}};
    if (cu.overlap)
        attributes[n_attributes++] = (CUlaunchAttribute){.id = LAUNCH_ATTRIBUTE_OVERLAP, .value.dim = {1, 0, 0}};
    const CUlaunchConfig config = {.grid_x = grid,
                                   .grid_y = 1,
                                   .grid_z = 1,
                                   .block_x = block,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .shared_bytes = shared,
                                   .attributes = attributes,
                                   .n_attributes = n_attributes};
    result = cu.cuLaunchKernelEx(&config, function, parameters, NULL);
    if (!result)
        result = cu.cuCtxSynchronize();
    if (!result)
        ok(cu.cuModuleUnload(module));
    return result;
}

void read_list(const char *text, const char *key, int64_t list[5], int64_t otherwise)
{
    const char *s = strstr(text, key);
    s = s ? s + strlen(key) : "";
    for (int i = 0; i < 5; i++) {
        char *end;
        const int64_t x = strtoll(s, &end, 0);
        list[i] = end > s ? x : otherwise;
        s = end + (*end == ',');
    }
}

int read_key(const char *text, const char *key, int otherwise)
{
    int64_t list[5];
    read_list(text, key, list, otherwise);
    return (int)list[0];
}

void encode_map(const char *text, void *map)
{
    static const char *const types[] = {"u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16"};
    char name[32], base[8], type[8];
    int64_t dims[5], strides[5], box[5], steps[5];
    uint64_t dims64[5], strides64[5];
    uint32_t box32[5], steps32[5];
    const int swizzle = read_key(text, "swizzle=", 0);
    int t = 0;
    unsigned rank = 0;
    assert_int_equal(sscanf(text, "%31s %7s %7s", name, base, type), 3);
    while (t < 9 && strcmp(types[t], type))
        t++;
    read_list(text, "dims=", dims, 0);
    read_list(text, "strides=", strides, 0);
    read_list(text, "box=", box, 0);
    read_list(text, "steps=", steps, 1);
    for (; rank < 5 && dims[rank]; rank++) {
        dims64[rank] = (uint64_t)dims[rank];
        strides64[rank] = (uint64_t)strides[rank];
        box32[rank] = (uint32_t)box[rank];
        steps32[rank] = (uint32_t)steps[rank];
    }
    ok(cu.cuTensorMapEncodeTiled(map, t, rank, *base == 'i' ? cu.in : cu.out, dims64, strides64, box32, steps32, 0,
                                 swizzle == 128  ? 3
                                 : swizzle == 64 ? 2
                                                 : swizzle == 32,
                                 0, strstr(text, " nan") != NULL));
}

/* The statements before those of a test. */
static const char preamble[] = ".reg .b16 %h<40>; .reg .b32 %r<100>; .reg .f32 %f<60>; .reg .b64 %rd<40>;\n"
                               ".reg .f64 %fd<20>; .reg .pred %p<20>;\n"
                               "ld.param.u64 %rd1, [p_in];\nld.param.u64 %rd2, [p_out];\nmov.u32 %r1, %tid.x;\n";

char *make_kernel(const char *body)
{
    char *ptx = malloc(strlen(body) + 8192), *s = ptx, name[32];
    s += sprintf(s,
                 ".version %s\n.target %s\n.address_size 64\n"
                 ".extern .shared .align 1024 .b8 smem[];\n"
                 ".visible .entry k(.param .u64 p_in, .param .u64 p_out",
                 cu.target ? "8.6" : "7.8", cu.target ? cu.target : "sm_80");
    for (int i = 0; i < cu.n_maps; i++)
        if (sscanf(cu.maps[i], "%31s", name) == 1)
            s += sprintf(s, ", .param .align 64 .b8 %s[128]", name);
    sprintf(s, ")%s\n{\n%s%s\nret;\n}\n", cu.directives ? cu.directives : "", preamble, body);
    return ptx;
}

int run_body(const char *body, unsigned grid, unsigned block, unsigned shared, uint32_t *out, size_t words)
{
    char *ptx = make_kernel(body);
    const int result = run_ptx(ptx, grid, block, shared);
    free(ptx);
    if (!result && words)
        ok(cu.cuMemcpyDtoH_v2(out, cu.out, words * 4));
    return result;
}

/* -- all ------------------------------------------------------------------------------------- */

static jmp_buf ended;

void fail_msg(const char *format, ...)
{
    static char text[8192];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    tap_expect(false, "%s", text);
    longjmp(ended, 1);
}

void skip(void)
{
    tap_skip("not on this device");
    longjmp(ended, 1);
}

int seed_count(void)
{
    return cu.is_emulated ? MAX_SEEDS : 1;
}

void run_test(test *run, void *argument, const char *name, ...)
{
    char text[256];
    va_list list;
    va_start(list, name);
    vsnprintf(text, sizeof text, name, list);
    va_end(list);
    if (!tap_begin("%s", text))
        return;
    if (!setjmp(ended)) {
        if (cu.is_emulated)
            cu.tgemu_reset();
        use_target(NULL);
        cu.n_maps = 0;
        cu.cluster = cu.overlap = 0;
        cu.directives = NULL;
        ok(cu.cuCtxSetCurrent(cu.context));
        alarm(cu.is_emulated ? 0 : TEST_SECONDS);
        run(argument);
    }
    alarm(0);
    if (!cu.is_emulated && cu.cuCtxSynchronize())
        _exit(EXIT_FAILURE); /* the context is lost */
    tap_end();
}

static bool ends_with(const char *s, const char *end)
{
    return strlen(s) > strlen(end) && !strcmp(s + strlen(s) - strlen(end), end);
}

static void run_files(void)
{
    struct dirent **list;
    const int n = scandir(cu.folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        if (ends_with(name, ".t"))
            run_t(name);
        else if (ends_with(name, ".ptx"))
            run_ptx_file(name);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

/* After a fault the process is of no more use to CUDA, and a kernel that hangs ends with it only:
 * the tests that follow run in another. Returns in each of them; the first process never sees the
 * driver, waits, and ends the tests they left. */
static void run_apart(void)
{
    int status;
    pid_t child;
    if (!tap_share())
        exit(EXIT_FAILURE);
    while ((child = fork())) {
        if (child < 0 || waitpid(child, &status, 0) < 0)
            exit(EXIT_FAILURE);
        if (!tap_is_open())
            exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
        if (WIFSIGNALED(status))
            tap_expect(false, "the process ended: %s", strsignal(WTERMSIG(status)));
        else
            tap_expect(false, "the process ended with exit code %d", WEXITSTATUS(status));
        tap_end();
    }
}

int main(int argc, char **argv)
{
    const char *path = EMULATOR_PATH;
    cu.folder = EMULATOR_TESTS;
    int i = 1;
    while (tap_argument(argc, argv, &i))
        ;
    if (!usage_is(argc - i + 1, argv + i - 1, 0, 2, "[--only TEXT] [--part K/N] [DRIVER [FOLDER]]"))
        return 2;
    if (i < argc)
        path = argv[i++];
    if (i < argc)
        cu.folder = argv[i];
    run_apart();
    if (!load_driver(path) || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&cu.context, 0))
        return 1;
    run_files();
#define X(name) run_test(test_##name, NULL, #name);
    C_TESTS(X)
#undef X
    return tap_finish();
}
