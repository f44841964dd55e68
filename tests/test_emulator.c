/* test_emulator.c - the emulator, through the driver interface it exports.
 *
 * Two kinds of tests. The files of tests/emulator/ are data: *.t says what it wants in the form
 * below, *.ptx only has to load. What needs a reference computation is in C here. All of it but the
 * mutants also runs on a real GPU, which is how the expectations were checked: test_emulator
 * libcuda.so.1
 *
 * A .t file has lines "-- key value":
 *   -- insn TEXT           one instruction of each lane; every line "a=1 b=2 r=3" after it is a
 * lane. Names are
 *   -- regs a:f32 r:u32    registers of these types; r, and others after "->", are results. Bits
 * must agree;
 *   -- ulp N               floats may be N units away.
 *   -- kernel              PTX statements up to the next "--", in a kernel whose %rd1 points to
 * 1024 words 0, 1, 2 .., %rd2 to 1024 words never written; %r1 is the thread. Registers %r %rd %f
 * %fd %h %p are there, and smem, the dynamic shared memory.
 *   -- launch G B S        grid, block, dynamic shared bytes
 *   -- out W W ..          the first words of what %rd2 points to
 *   -- mutate KIND | OLD | NEW | TEXT     with OLD replaced by NEW, every seed must be reported as
 * KIND, or one of several with commas between, with TEXT in the report
 *   -- refused TEXT        the module must not load, and the log must contain TEXT */
#include "tegula_emu.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef unsigned long long device_pointer;

/* -- the driver ------------------------------------------------------------------------------ */

/* X(return type, name, parameters) */
#define DRIVER(X)                                                                                  \
    X(int, cuInit, (unsigned))                                                                     \
    X(int, cuDeviceGetAttribute, (int *, int, int))                                                \
    X(int, cuDevicePrimaryCtxRetain, (void **, int))                                               \
    X(int, cuDevicePrimaryCtxRelease_v2, (int))                                                    \
    X(int, cuCtxSetCurrent, (void *))                                                              \
    X(int, cuCtxSynchronize, (void))                                                               \
    X(int, cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **))                  \
    X(int, cuModuleUnload, (void *))                                                               \
    X(int, cuModuleGetFunction, (void **, void *, const char *))                                   \
    X(int, cuFuncSetAttribute, (void *, int, int))                                                 \
    X(int, cuFuncGetAttribute, (int *, int, void *))                                               \
    X(int, cuMemAlloc_v2, (device_pointer *, size_t))                                              \
    X(int, cuMemFree_v2, (device_pointer))                                                         \
    X(int, cuMemcpyHtoD_v2, (device_pointer, const void *, size_t))                                \
    X(int, cuMemcpyDtoH_v2, (void *, device_pointer, size_t))                                      \
    X(int, cuMemcpyDtoD_v2, (device_pointer, device_pointer, size_t))                              \
    X(int, cuMemsetD8_v2, (device_pointer, unsigned char, size_t))                                 \
    X(int, cuMemsetD32_v2, (device_pointer, unsigned, size_t))                                     \
    X(int, cuLaunchKernel,                                                                         \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,       \
       void **, void **))                                                                          \
    X(int, cuGetErrorName, (int, const char **))                                                   \
    X(int, cuGetErrorString, (int, const char **))                                                 \
    X(int, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, void *, int, size_t))              \
    X(int, cuEventCreate, (void **, unsigned))                                                     \
    X(int, cuEventRecord, (void *, void *))                                                        \
    X(int, cuEventElapsedTime, (float *, void *, void *))                                          \
    X(int, cuEventDestroy_v2, (void *))                                                            \
    X(int, cuPointerGetAttribute, (void *, int, device_pointer))

#define EMULATOR(X)                                                                                \
    X(int, tgemu_configure, (const struct tgemu_config *))                                         \
    X(void, tgemu_get_config, (struct tgemu_config *))                                             \
    X(void, tgemu_counters, (struct tgemu_counters *))                                             \
    X(void, tgemu_last_counters, (struct tgemu_counters *))                                        \
    X(const char *, tgemu_last_report, (void))                                                     \
    X(void, tgemu_reset, (void))

static struct {
#define X(type, name, parameters) type(*name) parameters;
    DRIVER(X)
    EMULATOR(X)
#undef X
    bool is_emulated;
    void *context;
    device_pointer in, out;
    const char *folder;
} cu;

enum { WORDS = 1024, MAX_SEEDS = 5 };

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
    return cu.cuInit && cu.cuLaunchKernel;
}

static const char *error_text(int result)
{
    const char *text = NULL;
    cu.cuGetErrorString(result, &text);
    return text ? text : "?";
}

static void ok(int result)
{
    if (result)
        fail_msg("%d: %s", result, error_text(result));
}

static void seed(uint64_t value)
{
    if (!cu.is_emulated)
        return;
    struct tgemu_config c;
    cu.tgemu_get_config(&c);
    c.seed = value;
    c.step_limit = 1000000;
    assert_int_equal(cu.tgemu_configure(&c), 0);
}

/* A fresh device: nothing allocated, no error left. */
static void fresh(void)
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

static void *load(const char *ptx, char *log, size_t log_size, int *result)
{
    void *module = NULL;
    int options[] = {5, 6}; /* CU_JIT_ERROR_LOG_BUFFER and its size */
    void *values[] = {log, (void *)log_size};
    log[0] = 0;
    *result = cu.cuModuleLoadDataEx(&module, ptx, 2, options, values);
    return module;
}

/* Launches kernel k(in, out) of the text; the result of the launch or of the synchronisation after
 * it. */
static int run_ptx(const char *ptx, unsigned grid, unsigned block, unsigned shared)
{
    char log[4096];
    int result;
    void *function, *module = load(ptx, log, sizeof log, &result);
    if (result)
        fail_msg("%s\n%s", log, ptx);
    ok(cu.cuModuleGetFunction(&function, module, "k"));
    if (shared > 48 * 1024)
        ok(cu.cuFuncSetAttribute(function, 8, (int)shared));
    void *parameters[] = {&cu.in, &cu.out};
    result = cu.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, NULL, parameters, NULL);
    if (!result)
        result = cu.cuCtxSynchronize();
    if (!result)
        ok(cu.cuModuleUnload(module));
    return result;
}

static const char preamble[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".extern .shared .align 16 .b8 smem[];\n"
    ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
    ".reg .b16 %h<40>; .reg .b32 %r<100>; .reg .f32 %f<60>; .reg .b64 %rd<40>;\n"
    ".reg .f64 %fd<20>; .reg .pred %p<20>;\n"
    "ld.param.u64 %rd1, [p_in];\nld.param.u64 %rd2, [p_out];\nmov.u32 %r1, %tid.x;\n";

/* Runs the statements, whose results are what they wrote to %rd2, up to WORDS words. */
static int run_body(const char *body, unsigned grid, unsigned block, unsigned shared, uint32_t *out,
                    size_t words)
{
    char *ptx = malloc(strlen(body) + 8192);
    sprintf(ptx, "%s%s\nret;\n}\n", preamble, body);
    const int result = run_ptx(ptx, grid, block, shared);
    free(ptx);
    if (!result && words)
        ok(cu.cuMemcpyDtoH_v2(out, cu.out, words * 4));
    return result;
}

/* -- .t files -------------------------------------------------------------------------------- */

enum { MAX_REGS = 8, MAX_MUTANTS = 24, MAX_LANES = 256 };

struct reg {
    char name[32], type[8];
    bool is_result;
};

struct test_file {
    char path[512];
    char *text;
    char *insn, *kernel, *refused;
    struct reg regs[MAX_REGS];
    int n_regs;
    char *lanes[MAX_LANES];
    int n_lanes, ulp;
    unsigned grid, block, shared;
    uint32_t out[WORDS];
    int n_out;
    char *mutants[MAX_MUTANTS];
    int n_mutants;
};

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = calloc(1, 4 << 20);
    const size_t n = fread(text, 1, (4 << 20) - 1, f);
    fclose(f);
    text[n] = 0;
    return text;
}

static char *skip_blank(char *s)
{
    return s + strspn(s, " \t");
}

/* "a:f32 b:f32 -> r:f32 q:pred" */
static void parse_regs(struct test_file *t, char *s)
{
    bool is_result = false;
    for (char *word = strtok(s, " "); word; word = strtok(NULL, " ")) {
        if (!strcmp(word, "->")) {
            is_result = true;
            continue;
        }
        struct reg *r = &t->regs[t->n_regs++];
        if (sscanf(word, "%31[^:]:%7s", r->name, r->type) != 2)
            fail_msg("%s: bad register '%s'", t->path, word);
        r->is_result = is_result || !strcmp(r->name, "r");
    }
}

static void parse_key(struct test_file *t, char *key)
{
    char *value = key + strcspn(key, " ");
    if (*value)
        *value++ = 0;
    if (!strcmp(key, "insn"))
        t->insn = value;
    else if (!strcmp(key, "regs"))
        parse_regs(t, value);
    else if (!strcmp(key, "ulp"))
        t->ulp = atoi(value);
    else if (!strcmp(key, "kernel"))
        t->kernel = calloc(1, strlen(t->text) + 65536);
    else if (!strcmp(key, "launch"))
        assert_int_equal(sscanf(value, "%u %u %u", &t->grid, &t->block, &t->shared), 3);
    else if (!strcmp(key, "mutate"))
        t->mutants[t->n_mutants++] = value;
    else if (!strcmp(key, "refused"))
        t->refused = value;
    else if (!strcmp(key, "out"))
        for (char *w = strtok(value, " "); w; w = strtok(NULL, " "))
            t->out[t->n_out++] = (uint32_t)strtoll(w, NULL, 0);
    else
        fail_msg("%s: unknown key '%s'", t->path, key);
}

static void parse_test(struct test_file *t)
{
    bool in_kernel = false;
    t->grid = 1;
    t->block = 32;
    for (char *line = t->text; line;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (!strncmp(line, "-- ", 3)) {
            in_kernel = !strncmp(line + 3, "kernel", 6);
            parse_key(t, line + 3);
        } else if (in_kernel) {
            strcat(strcat(t->kernel, line), "\n");
        } else if (*line && *line != '#') {
            t->lanes[t->n_lanes++] = line;
        }
        line = next;
    }
}

static unsigned type_size(const char *type)
{
    return strstr(type, "64")                            ? 8
           : !strcmp(type, "pred") || strstr(type, "32") ? 4
           : strstr(type, "16")                          ? 2
                                                         : 1;
}

/* The value's bits: "nan", hexadecimal for bits as they are, else a number of the type. */
static uint64_t parse_value(const char *type, const char *s)
{
    if (!strncmp(s, "0x", 2) && !strchr(s, 'p'))
        return strtoull(s, NULL, 16);
    if (!strcmp(type, "f32")) {
        const float x = strtof(s, NULL);
        uint32_t u;
        memcpy(&u, &x, 4);
        return x != x ? 0x7fffffff : u;
    }
    if (!strcmp(type, "f64")) {
        const double x = strtod(s, NULL);
        uint64_t u;
        memcpy(&u, &x, 8);
        return x != x ? 0x7ff8000000000000 : u;
    }
    return *s == '-' ? (uint64_t)strtoll(s, NULL, 0) : strtoull(s, NULL, 0);
}

static bool find_value(const char *line, const char *name, char *out)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", line);
    copy[strcspn(copy, "#")] = 0;
    for (char *word = strtok(copy, " \t"); word; word = strtok(NULL, " \t")) {
        char *equals = strchr(word, '=');
        if (equals && (size_t)(equals - word) == strlen(name) &&
            !strncmp(word, name, strlen(name))) {
            snprintf(out, 64, "%s", equals + 1);
            return true;
        }
    }
    return false;
}

/* Register k of lane l is the 8 bytes at (k * MAX_LANES + l) * 8, in both buffers. */
static void make_lane_kernel(const struct test_file *t, char *s)
{
    s += sprintf(
        s, "%s",
        ".version 7.8\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n.reg .b64 %x, %y, %o;\n"
        ".reg .b32 %t;\nld.param.u64 %x, [p_in];\nld.param.u64 %y, [p_out];\nmov.u32 %t, %tid.x;\n"
        "mul.wide.u32 %o, %t, 8;\nadd.u64 %x, %x, %o;\nadd.u64 %y, %y, %o;\n");
    for (int k = 0; k < t->n_regs; k++) {
        const struct reg *r = &t->regs[k];
        const bool is_pred = !strcmp(r->type, "pred"), is_byte = type_size(r->type) == 1;
        s += sprintf(s, ".reg .%s %s;\n", is_byte ? "b16" : r->type, r->name);
        if (is_pred)
            s += sprintf(s, "ld.global.u32 %%t, [%%x+%d];\nsetp.ne.u32 %s, %%t, 0;\n",
                         k * MAX_LANES * 8, r->name);
        else
            s += sprintf(s, "ld.global.%s %s, [%%x+%d];\n", is_byte ? "u8" : r->type, r->name,
                         k * MAX_LANES * 8);
    }
    s += sprintf(s, "%s\n", t->insn);
    for (int k = 0; k < t->n_regs; k++) {
        const struct reg *r = &t->regs[k];
        if (!strcmp(r->type, "pred"))
            s += sprintf(s, "selp.u32 %%t, 1, 0, %s;\nst.global.u32 [%%y+%d], %%t;\n", r->name,
                         k * MAX_LANES * 8);
        else
            s += sprintf(s, "st.global.%s [%%y+%d], %s;\n",
                         type_size(r->type) == 1 ? "u8" : r->type, k * MAX_LANES * 8, r->name);
    }
    sprintf(s, "ret;\n}\n");
}

static int64_t ordered(uint64_t bits, unsigned size)
{
    const int64_t sign = (int64_t)1 << (8 * size - 1), low = sign - 1;
    return bits >> (8 * size - 1) & 1 ? -(int64_t)(bits & (uint64_t)low) : (int64_t)bits;
}

static bool agrees(const struct test_file *t, const char *type, uint64_t got, uint64_t expected)
{
    const unsigned size = type_size(type);
    const uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
    got &= mask;
    expected &= mask;
    if (got == expected)
        return true;
    if (!strcmp(type, "f32") && expected == 0x7fffffff)
        return (got & 0x7fffffff) > 0x7f800000;
    if (!strcmp(type, "f64") && expected == 0x7ff8000000000000)
        return (got & ~(1ull << 63)) > 0x7ff0000000000000;
    return t->ulp && llabs(ordered(got, size) - ordered(expected, size)) <= t->ulp;
}

static void run_lanes(const struct test_file *t)
{
    static uint64_t in[MAX_REGS * MAX_LANES], out[MAX_REGS * MAX_LANES];
    char ptx[16384], value[64];
    memset(in, 0, sizeof in);
    for (int l = 0; l < t->n_lanes; l++)
        for (int k = 0; k < t->n_regs; k++)
            if ((!t->regs[k].is_result || strchr(t->insn, '=')) &&
                find_value(t->lanes[l], t->regs[k].name, value))
                in[k * MAX_LANES + l] = parse_value(t->regs[k].type, value);
    ok(cu.cuMemAlloc_v2(&cu.in, sizeof in));
    ok(cu.cuMemAlloc_v2(&cu.out, sizeof out));
    ok(cu.cuMemcpyHtoD_v2(cu.in, in, sizeof in));
    make_lane_kernel(t, ptx);
    ok(run_ptx(ptx, 1, (unsigned)t->n_lanes, 0));
    ok(cu.cuMemcpyDtoH_v2(out, cu.out, sizeof out));
    for (int l = 0; l < t->n_lanes; l++)
        for (int k = 0; k < t->n_regs; k++) {
            const struct reg *r = &t->regs[k];
            if (!r->is_result)
                continue;
            if (!find_value(t->lanes[l], r->name, value))
                fail_msg("%s: no %s in '%s'", t->path, r->name, t->lanes[l]);
            const uint64_t got = out[k * MAX_LANES + l], expected = parse_value(r->type, value);
            if (!agrees(t, r->type, got, expected))
                fail_msg("%s: %s: '%s' gives %s = 0x%llx, not 0x%llx", t->path, t->insn,
                         t->lanes[l], r->name, (unsigned long long)got,
                         (unsigned long long)expected);
        }
    cu.cuMemFree_v2(cu.in);
    cu.cuMemFree_v2(cu.out);
}

static void check_out(const struct test_file *t, const uint32_t *out, int s)
{
    for (int i = 0; i < t->n_out; i++)
        if (out[i] != t->out[i])
            fail_msg("%s, seed %d: word %d is 0x%x, not 0x%x", t->path, s, i, out[i], t->out[i]);
}

static char *trim(char *s)
{
    s = skip_blank(s);
    size_t n = strlen(s);
    while (n && s[n - 1] == ' ')
        s[--n] = 0;
    return s;
}

/* Two characters, backslash and n, become a line end. */
static void unescape(char *s)
{
    for (char *at; s && (at = strstr(s, "\\n"));) {
        *at = '\n';
        memmove(at + 1, at + 2, strlen(at + 2) + 1);
    }
}

/* One of several kinds, if the order of the warps decides which mistake shows first:
 * "shared-race,in-flight". */
static bool is_of_kind(const char *text, const char *kinds)
{
    for (const char *k = kinds; *k; k += strspn(k, ",")) {
        const size_t n = strcspn(k, ",");
        if (text[0] == '[' && !strncmp(text + 1, k, n) && text[n + 1] == ']')
            return true;
        k += n;
    }
    return false;
}

/* "KIND | OLD | NEW | TEXT" */
static void run_mutant(const struct test_file *t, const char *mutant)
{
    char copy[1024];
    char *field[4] = {NULL, NULL, NULL, NULL}, *rest = copy;
    snprintf(copy, sizeof copy, "%s", mutant);
    for (int i = 0; i < 4 && rest; i++) {
        char *bar = strstr(rest, " |");
        if (bar)
            *bar = 0;
        field[i] = trim(rest);
        rest = bar ? bar + 2 : NULL;
    }
    for (int i = 1; i <= 2; i++)
        unescape(field[i]);
    const char *at = strstr(t->kernel, field[1]);
    if (!at)
        fail_msg("%s: nothing to mutate: '%s'", t->path, field[1]);
    char *body = calloc(1, strlen(t->kernel) + 1024);
    sprintf(body, "%.*s%s%s", (int)(at - t->kernel), t->kernel, field[2] ? field[2] : "",
            at + strlen(field[1]));
    for (int s = 1; s <= MAX_SEEDS; s++) {
        fresh();
        seed((uint64_t)s);
        const int result = run_body(body, t->grid, t->block, t->shared, NULL, 0);
        const char *text = error_text(result);
        if (!result)
            fail_msg("%s, seed %d: not reported: %s", t->path, s, mutant);
        if (!is_of_kind(text, field[0]) || (field[3] && *field[3] && !strstr(text, field[3])))
            fail_msg("%s, seed %d: '%s' is reported as\n%s", t->path, s, mutant, text);
    }
    free(body);
}

static void run_kernel(const struct test_file *t)
{
    uint32_t out[WORDS];
    for (int s = 1; s <= MAX_SEEDS; s++) {
        fresh();
        seed((uint64_t)s);
        const int result = run_body(t->kernel, t->grid, t->block, t->shared, out, (size_t)t->n_out);
        if (result)
            fail_msg("%s, seed %d: %s", t->path, s, error_text(result));
        check_out(t, out, s);
    }
    for (int i = 0; i < t->n_mutants && cu.is_emulated; i++)
        run_mutant(t, t->mutants[i]);
}

static void run_refused(const struct test_file *t)
{
    char log[4096], *ptx = malloc(strlen(t->kernel) + 8192);
    int result;
    sprintf(ptx, "%s%s\nret;\n}\n", preamble, t->kernel);
    load(ptx, log, sizeof log, &result);
    assert_int_equal(result, 218);
    if (!strstr(log, t->refused))
        fail_msg("%s: refused with\n%s", t->path, log);
    assert_string_equal(log, error_text(result));
    free(ptx);
}

static void run_section(const char *path, char *text)
{
    struct test_file *t = calloc(1, sizeof *t);
    snprintf(t->path, sizeof t->path, "%s", path);
    t->text = text;
    parse_test(t);
    if (t->refused && cu.is_emulated)
        run_refused(t);
    else if (t->kernel && !t->refused)
        run_kernel(t);
    else if (t->insn)
        run_lanes(t);
    free(t->kernel);
    free(t);
}

/* A file is a series of sections, each beginning with "-- insn" or "-- launch". */
static char *next_section(char *text)
{
    char *insn = strstr(text, "\n-- insn "), *launch = strstr(text, "\n-- launch ");
    return !insn || (launch && launch < insn) ? launch : insn;
}

static void test_t(void **state)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", cu.folder, (const char *)*state);
    char *text = read_file(path);
    assert_non_null(text);
    char *section = next_section(text);
    while (section) {
        char *next = next_section(section + 1);
        if (next)
            *next = 0;
        run_section(path, section + 1);
        section = next ? (*next = '\n', next) : NULL;
    }
    free(text);
}

static void test_loads(void **state)
{
    char path[512], log[4096];
    int result;
    snprintf(path, sizeof path, "%s/%s", cu.folder, (const char *)*state);
    char *text = read_file(path);
    void *module = load(text, log, sizeof log, &result);
    if (result)
        fail_msg("%s: %s", path, log);
    ok(cu.cuModuleUnload(module));
    free(text);
}

/* -- matrices -------------------------------------------------------------------------------- */

/* A multiply of 16 x K by K x 8. The places of the elements are the PTX ISA's formulas, by element
 * index i. */
struct shape {
    const char *insn;
    int depth, n_a, n_b; /* registers */
    enum { BF16, F16, TF32 } type;
};

static int a_row(const struct shape *s, int lane, int i)
{
    if (s->type == TF32)
        return i == 0 || i == 2 ? lane / 4 : lane / 4 + 8;
    if (s->depth == 8)
        return i < 2 ? lane / 4 : lane / 4 + 8;
    return i < 2 || (i >= 4 && i < 6) ? lane / 4 : lane / 4 + 8;
}

static int a_column(const struct shape *s, int lane, int i)
{
    if (s->type == TF32)
        return i < 2 ? lane % 4 : lane % 4 + 4;
    return i < 4 ? lane % 4 * 2 + (i & 1) : lane % 4 * 2 + (i & 1) + 8;
}

static int b_row(const struct shape *s, int lane, int i)
{
    if (s->type == TF32)
        return i < 1 ? lane % 4 : lane % 4 + 4;
    return i < 2 ? lane % 4 * 2 + (i & 1) : lane % 4 * 2 + (i & 1) + 8;
}

static uint32_t float_word(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

/* Small integers are exact in all three types. */
static uint32_t element(const struct shape *s, int x)
{
    static const uint16_t halves[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400,
                                      0x4500, 0x4600, 0x4700, 0x4800};
    if (s->type == TF32)
        return float_word((float)x) | (x ? 0x1555 : 0); /* bits that must not count */
    if (s->type == F16)
        return halves[abs(x)] | (x < 0 ? 0x8000u : 0);
    return float_word((float)x) >> 16;
}

static void put_element(const struct shape *s, uint32_t *regs, int i, int x)
{
    if (s->type == TF32)
        regs[i] = element(s, x);
    else
        regs[i / 2] |= element(s, x) << 16 * (i & 1);
}

static void make_mma_body(const struct shape *s, char *p)
{
    static const char *const vectors[] = {"", "{%%r%d}", "{%%r%d, %%r%d}", "",
                                          "{%%r%d, %%r%d, %%r%d, %%r%d}"};
    p += sprintf(p, "mul.wide.u32 %%rd3, %%r1, 64;\nadd.u64 %%rd4, %%rd1, %%rd3;\nmul.wide.u32 "
                    "%%rd5, %%r1, 16;\n"
                    "add.u64 %%rd5, %%rd2, %%rd5;\n");
    for (int i = 0; i < s->n_a + s->n_b; i++)
        p += sprintf(p, "ld.global.u32 %%r%d, [%%rd4+%d];\n", 10 + i, 4 * i);
    for (int i = 0; i < 4; i++)
        p += sprintf(p, "ld.global.f32 %%f%d, [%%rd4+%d];\n", i, 48 + 4 * i);
    p += sprintf(p, "%s {%%f0, %%f1, %%f2, %%f3}, ", s->insn);
    p += sprintf(p, vectors[s->n_a], 10, 11, 12, 13);
    p += sprintf(p, ", ");
    p += sprintf(p, vectors[s->n_b], 10 + s->n_a, 11 + s->n_a);
    sprintf(p,
            ", {%%f0, %%f1, %%f2, %%f3};\nst.global.v4.f32 [%%rd5], {%%f0, %%f1, %%f2, %%f3};\n");
}

static void check_mma(const struct shape *s)
{
    int a[16][16], b[16][8];
    static uint32_t in[32][16];
    float out[32][4];
    char body[4096];
    memset(in, 0, sizeof in);
    for (int k = 0; k < 16; k++) {
        for (int i = 0; i < 16; i++)
            a[i][k] = (i * 7 + k * 3) % 13 - 6;
        for (int j = 0; j < 8; j++)
            b[k][j] = (k * 5 + j * 11) % 15 - 7;
    }
    for (int l = 0; l < 32; l++) {
        const int per = s->type == TF32 ? 1 : 2;
        for (int i = 0; i < s->n_a * per; i++)
            put_element(s, in[l], i, a[a_row(s, l, i)][a_column(s, l, i)]);
        for (int i = 0; i < s->n_b * per; i++)
            put_element(s, in[l] + s->n_a, i, b[b_row(s, l, i)][l / 4]);
        for (int i = 0; i < 4; i++)
            in[l][12 + i] = float_word((float)(l * 4 + i) + 0.5f);
    }
    fresh();
    ok(cu.cuMemcpyHtoD_v2(cu.in, in, sizeof in));
    make_mma_body(s, body);
    ok(run_body(body, 1, 32, 0, (uint32_t *)(void *)out, 128));
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            const int row = l / 4 + (i < 2 ? 0 : 8), column = l % 4 * 2 + (i & 1);
            float expected = (float)(l * 4 + i) + 0.5f;
            for (int k = 0; k < s->depth; k++)
                expected += (float)(a[row][k] * b[k][column]);
            if (out[l][i] != expected)
                fail_msg("%s lane %d: d%d is %g, not %g", s->insn, l, i, (double)out[l][i],
                         (double)expected);
        }
}

static void test_mma(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, 4, 2, BF16},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, 4, 2, F16},
        {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 8, 2, 1, BF16},
        {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 8, 2, 1, F16},
        {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, 4, 2, TF32},
        {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 4, 2, 1, TF32},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_mma(&shapes[i]);
}

/* Element e of matrix m is m * 64 + e; in shared memory the rows of a matrix are 16 bytes apart. */
static void check_ldmatrix(int n, bool is_transposed)
{
    static const char *const registers[] = {"", "{%r10}", "{%r10, %r11}", "",
                                            "{%r10, %r11, %r12, %r13}"};
    uint16_t in[4 * 64];
    uint32_t out[128];
    char body[2048];
    for (int i = 0; i < 256; i++)
        in[i] = (uint16_t)i;
    sprintf(body,
            "mul.wide.u32 %%rd3, %%r1, 16;\nadd.u64 %%rd4, %%rd1, %%rd3;\nadd.u64 %%rd5, %%rd2, "
            "%%rd3;\n"
            "mov.u32 %%r3, smem;\nmad.lo.u32 %%r3, %%r1, 16, %%r3;\nmov.u32 %%r10, 0;\nmov.u32 "
            "%%r11, 0;\n"
            "mov.u32 %%r12, 0;\nmov.u32 %%r13, 0;\nld.global.v4.u32 {%%r20, %%r21, %%r22, %%r23}, "
            "[%%rd4];\n"
            "st.shared.v4.u32 [%%r3], {%%r20, %%r21, %%r22, %%r23};\nbar.sync 0;\n"
            "ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s, [%%r3];\n"
            "st.global.v4.u32 [%%rd5], {%%r10, %%r11, %%r12, %%r13};\n",
            n, is_transposed ? ".trans" : "", registers[n]);
    fresh();
    ok(cu.cuMemcpyHtoD_v2(cu.in, in, sizeof in));
    ok(run_body(body, 1, 32, 512, out, 128));
    for (int l = 0; l < 32; l++)
        for (int m = 0; m < n; m++)
            for (int h = 0; h < 2; h++) {
                const int row = l / 4, column = l % 4 * 2 + h;
                const int expected = m * 64 + (is_transposed ? column * 8 + row : row * 8 + column);
                assert_int_equal(out[l * 4 + m] >> 16 * h & 0xffff, expected);
            }
}

static void test_ldmatrix(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n *= 2) {
        check_ldmatrix(n, false);
        check_ldmatrix(n, true);
    }
}

static void test_movmatrix(void **state)
{
    (void)state;
    uint32_t in[32], out[32];
    for (uint32_t l = 0; l < 32; l++)
        in[l] = (2 * l + 1) << 16 | 2 * l; /* element e of the matrix is e */
    fresh();
    ok(cu.cuMemcpyHtoD_v2(cu.in, in, sizeof in));
    ok(run_body("mul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n"
                "ld.global.u32 %r2, [%rd4];\nmovmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;\n"
                "st.global.u32 [%rd5], %r3;\n",
                1, 32, 0, out, 32));
    for (uint32_t l = 0; l < 32; l++)
        for (uint32_t h = 0; h < 2; h++)
            assert_int_equal(out[l] >> 16 * h & 0xffff, (l % 4 * 2 + h) * 8 + l / 4);
}

/* -- the driver ------------------------------------------------------------------------------ */

static void test_launch_is_checked(void **state)
{
    (void)state;
    char log[512];
    int result, value;
    void *function, *other, *none = NULL;
    if (!cu.is_emulated)
        skip();
    fresh();
    void *module =
        load(".version 7.8\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 s[1024];\n"
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
    assert_int_equal(LAUNCH(function, 1, 64, 48 * 1024, good),
                     1); /* with the static 1024 too much */
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

static void test_memory_is_checked(void **state)
{
    (void)state;
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

static void test_variables(void **state)
{
    (void)state;
    uint32_t out[8];
    fresh();
    ok(run_ptx(
        ".version 7.8\n.target sm_80\n.address_size 64\n.const .align 4 .b8 t[8] = {1, 2, 0, 0, "
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

/* Conflicts by hand: stride 4 bytes has none; stride 128 bytes makes 32 lanes meet in one bank;
 * rows of 128 bytes make the 8 rows of an ldmatrix meet in 4 banks. */
static void test_counters(void **state)
{
    (void)state;
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
    char body[1024];
    if (!cu.is_emulated)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fresh();
        sprintf(body, "mov.u32 %%r2, smem;\n%s", cases[i].body);
        ok(run_body(body, 1, 32, 4096, NULL, 0));
        cu.tgemu_last_counters(&c);
        assert_int_equal(c.shared_wavefronts, cases[i].wavefronts);
        assert_int_equal(c.bank_conflicts, cases[i].conflicts);
    }
    fresh();
    ok(run_body(
        "ld.global.v2.u32 {%r2, %r3}, [%rd1];\nst.volatile.global.u32 [%rd2], %r2;\nbar.sync 0;", 3,
        64, 0, NULL, 0));
    cu.tgemu_counters(&c);
    assert_int_equal(c.launches, 1);
    assert_int_equal(c.global_load_bytes, 3 * 64 * 8);
    assert_int_equal(c.global_store_bytes, 3 * 64 * 4);
    assert_int_equal(c.barriers, 3);
    assert_int_equal(c.instructions, 3 * 2 * 7);
    assert_int_equal(c.lane_instructions, 3 * 64 * 7);
}

static void test_targets(void **state)
{
    (void)state;
    char log[512];
    int result;
    struct tgemu_config c;
    if (!cu.is_emulated)
        skip();
    load(".version 8.0\n.target sm_90\n.address_size 64\n", log, sizeof log, &result);
    assert_int_equal(result, 218);
    assert_non_null(strstr(log, "sm_90"));
    load("\177ELF....", log, sizeof log, &result);
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

/* The fault of the lowest CTA is reported, however many threads there are; and the same counters.
 */
static void test_threads_do_not_show(void **state)
{
    (void)state;
    char reports[2][2048];
    struct tgemu_config c;
    if (!cu.is_emulated)
        skip();
    cu.tgemu_get_config(&c);
    for (int i = 0; i < 2; i++) {
        c.threads = i ? 7 : 1;
        assert_int_equal(cu.tgemu_configure(&c), 0);
        fresh();
        assert_int_equal(
            run_body(
                "mov.u32 %r2, %ctaid.x;\nsetp.gt.u32 %p1, %r2, 10;\nmul.wide.u32 %rd3, %r1, 4;\n"
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

#define C_TESTS(X)                                                                                 \
    X(mma)                                                                                         \
    X(ldmatrix)                                                                                    \
    X(movmatrix)                                                                                   \
    X(launch_is_checked) X(memory_is_checked) X(variables) X(counters) X(targets)                  \
        X(threads_do_not_show)

/* -- all ------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    if (cu.is_emulated)
        cu.tgemu_reset();
    return cu.cuCtxSetCurrent(cu.context);
}

enum { MAX_TESTS = 500 };

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct CMUnitTest *)a)->name, ((const struct CMUnitTest *)b)->name);
}

static bool ends_with(const char *s, const char *end)
{
    return strlen(s) > strlen(end) && !strcmp(s + strlen(s) - strlen(end), end);
}

static size_t add_files(struct CMUnitTest *tests)
{
    size_t n = 0;
    DIR *folder = opendir(cu.folder);
    for (struct dirent *e; folder && (e = readdir(folder)) && n < MAX_TESTS;) {
        const bool is_t = ends_with(e->d_name, ".t");
        if (!is_t && !ends_with(e->d_name, ".ptx"))
            continue;
        char *name = strdup(e->d_name);
        tests[n++] = (struct CMUnitTest){name, is_t ? test_t : test_loads, set_up, NULL, name};
    }
    if (folder)
        closedir(folder);
    qsort(tests, n, sizeof *tests, by_name);
    return n;
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[MAX_TESTS + 100];
    cu.folder = argc > 2 ? argv[2] : EMULATOR_TESTS;
    if (!load_driver(argc > 1 ? argv[1] : EMULATOR_PATH) || cu.cuInit(0) ||
        cu.cuDevicePrimaryCtxRetain(&cu.context, 0))
        return 1;
    const size_t n_files = add_files(tests);
    size_t n = n_files;
    if (!n_files)
        return 1;
#define X(name) tests[n++] = (struct CMUnitTest){#name, test_##name, set_up, NULL, NULL};
    C_TESTS(X)
#undef X
    const int failed = _cmocka_run_group_tests("emulator", tests, n, NULL, NULL);
    for (size_t i = 0; i < n_files; i++)
        free(tests[i].initial_state);
    return failed != 0;
}
