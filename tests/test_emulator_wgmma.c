/* test_emulator_wgmma.c - wgmma.mma_async against loops over the elements. The sections are lines:
 *   -- product TYPE n=N steps=S a=A b=B     S instructions along the sum, of 16 or 8 each. A matrix
 * is "k" or "mn", what is contiguous, and the bytes of the swizzle's rows or 0: k128, mn0; A may be
 * "registers". B's tile may begin "base=" lines of 128 bytes behind where swizzles do.
 * "negates=ab", "adds": the sign of A, of B; accumulates from the first instruction on. */
#include "emulator/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A_BYTES = 8192, TILE_BYTES = A_BYTES + 32768, MAX_N = 256, MAX_DEPTH = 64 };

/* A matrix of lines (rows of A, columns of B) by depth, as it lies in shared memory. */
struct tile {
    bool is_lines_first; /* MN-major; else K-major */
    int width;           /* units of 16 bytes to a row: 8, 4, 2 swizzled, 1 not */
    int leading, stride; /* bytes */
    int base;            /* it begins so many lines of 128 bytes after a multiple of 1024 */
};

struct product {
    enum { BF16, F16, TF32 } type;
    int n, steps; /* of 16 along the sum; 8 for tf32 */
    bool has_a;   /* in shared memory */
    struct tile a, b;
    bool negates_a, negates_b, accumulates;
};

static int element_bytes(const struct product *p)
{
    return p->type == TF32 ? 4 : 2;
}

static int step_depth(const struct product *p)
{
    return p->type == TF32 ? 8 : 16;
}

/* The byte of an element in its tile, which begins at a multiple of 1024. */
static int place(const struct tile *t, int line, int k, int bytes)
{
    const int unit = 16 / bytes; /* elements */
    int at;
    if (!t->is_lines_first && t->width == 1)
        at = line / 8 * t->stride + line % 8 * 16 + k / unit * t->leading + k % unit * bytes;
    else if (!t->is_lines_first)
        at = line / 8 * t->stride + line % 8 * t->width * 16 + k * bytes;
    else if (t->width == 1)
        at = line / 8 * t->stride + k / 8 * t->leading + k % 8 * 16 + line % 8 * 2;
    else
        at = line / (8 * t->width) * t->leading + k / 8 * t->stride + k % 8 * t->width * 16 + line % (8 * t->width) * 2;
    return at ^ (at / 128 % t->width) << 4;
}

static uint64_t descriptor(const struct tile *t)
{
    static const uint64_t modes[] = {0, 0, 3, 0, 2, 0, 0, 0, 1};
    return (uint64_t)(t->leading / 16) << 16 | (uint64_t)(t->stride / 16) << 32 | (uint64_t)t->base << 49 |
           modes[t->width] << 62;
}

/* How far the descriptor's start goes from one step of the sum to the next. */
static int advance(const struct tile *t)
{
    return t->is_lines_first ? 16 * t->width * 16 : 32;
}

static uint32_t element(const struct product *p, int x)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    const float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, 4);
    if (p->type == F16)
        return halves[abs(x)] | (x < 0 ? 0x8000u : 0);
    return p->type == TF32 ? u : u >> 16;
}

static int a_value(int row, int k)
{
    return (row * 7 + k * 5 + row * k) % 9 - 4;
}

static int b_value(int k, int column)
{
    return (column * 3 + k * 7 + column * k) % 9 - 4;
}

static void put(const struct product *p, unsigned char *image, const struct tile *t, int line, int k, int x)
{
    const uint32_t u = element(p, x);
    memcpy(image + place(t, line, k, element_bytes(p)), &u, (size_t)element_bytes(p));
}

/* Register r of a thread holds A of these; pairs for 16-bit types. */
static uint32_t a_register(const struct product *p, int thread, int r, int step)
{
    const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + r % 2 * 8;
    if (p->type == TF32)
        return element(p, a_value(row, step * 8 + lane % 4 + r / 2 * 4));
    const int k = step * 16 + lane % 4 * 2 + r / 2 * 8;
    return element(p, a_value(row, k)) | element(p, a_value(row, k + 1)) << 16;
}

/* What a kernel reads: the tiles, then A's registers by step, thread and number. */
static void make_input(const struct product *p, unsigned char *in)
{
    const int depth = p->steps * step_depth(p);
    memset(in, 0, TILE_BYTES);
    for (int k = 0; k < depth; k++) {
        for (int row = 0; row < 64 && p->has_a; row++)
            put(p, in, &p->a, row, k, a_value(row, k));
        for (int column = 0; column < p->n; column++)
            put(p, in + A_BYTES + 128 * p->b.base, &p->b, column, k, b_value(k, column));
    }
    uint32_t *registers = (uint32_t *)(void *)(in + TILE_BYTES);
    for (int step = 0; step < p->steps; step++)
        for (int thread = 0; thread < 128; thread++)
            for (int r = 0; r < 4; r++)
                registers[(step * 128 + thread) * 4 + r] = a_register(p, thread, r, step);
}

static const char *const type_names[] = {"bf16", "f16", "tf32"};

/* Thread t copies every 128th unit; then descriptors in %rd10 and %rd11, A's registers from %a0. */
static char *print_loads(char *s, const struct product *p)
{
    s += sprintf(s, "mov.u32 %%r3, smem;\nmov.u32 %%r4, %%r1;\ncopy:\n"
                    "shl.b32 %%r5, %%r4, 4;\ncvt.u64.u32 %%rd3, %%r5;\nadd.u64 %%rd3, %%rd1, %%rd3;\n"
                    "add.u32 %%r5, %%r3, %%r5;\n"
                    "ld.global.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%rd3];\n"
                    "st.shared.v4.u32 [%%r5], {%%r10, %%r11, %%r12, %%r13};\n"
                    "add.u32 %%r4, %%r4, 128;\n");
    s += sprintf(s, "setp.lt.u32 %%p1, %%r4, %d;\n@%%p1 bra copy;\n", TILE_BYTES / 16);
    s += sprintf(s, "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                    "shr.u32 %%r6, %%r3, 4;\ncvt.u64.u32 %%rd9, %%r6;\n");
    s += sprintf(s, "or.b64 %%rd10, %%rd9, 0x%llx;\n", (unsigned long long)descriptor(&p->a));
    s += sprintf(s, "add.u64 %%rd9, %%rd9, %d;\nor.b64 %%rd11, %%rd9, 0x%llx;\n", A_BYTES / 16 + 8 * p->b.base,
                 (unsigned long long)descriptor(&p->b));
    s += sprintf(s, "mul.wide.u32 %%rd3, %%r1, 16;\nadd.u64 %%rd3, %%rd1, %%rd3;\n");
    for (int step = 0; step < p->steps && !p->has_a; step++)
        s += sprintf(s, "ld.global.v4.u32 {%%a%d, %%a%d, %%a%d, %%a%d}, [%%rd3+%d];\n", 4 * step, 4 * step + 1,
                     4 * step + 2, 4 * step + 3, TILE_BYTES + 2048 * step);
    return s;
}

static char *print_step(char *s, const struct product *p, int step)
{
    s += sprintf(s, "wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {", p->n, step_depth(p), type_names[p->type],
                 type_names[p->type]);
    for (int i = 0; i < p->n / 2; i++)
        s += sprintf(s, "%s%%d%d", i ? ", " : "", i);
    if (p->has_a)
        s += sprintf(s, "}, %%rd10, ");
    else
        s += sprintf(s, "}, {%%a%d, %%a%d, %%a%d, %%a%d}, ", 4 * step, 4 * step + 1, 4 * step + 2, 4 * step + 3);
    s += sprintf(s, "%%rd11, %%p%d, %d, %d", step ? 3 : 2, p->negates_a ? -1 : 1, p->negates_b ? -1 : 1);
    if (p->has_a && p->type != TF32)
        s += sprintf(s, ", %d", p->a.is_lines_first);
    if (p->type != TF32)
        s += sprintf(s, ", %d", p->b.is_lines_first);
    return s + sprintf(s, ";\nadd.u64 %%rd10, %%rd10, %d;\nadd.u64 %%rd11, %%rd11, %d;\n", advance(&p->a) / 16,
                       advance(&p->b) / 16);
}

static char *make_body(const struct product *p)
{
    char *body = malloc(200000), *s = body;
    s += sprintf(s, ".reg .f32 %%d<%d>;\n.reg .b32 %%a<%d>;\n", p->n / 2, 4 * p->steps);
    s = print_loads(s, p);
    for (int i = 0; i < p->n / 2; i++)
        s += sprintf(s, "mov.f32 %%d%d, 0f40A00000;\n", i); /* 5 */
    s += sprintf(s, "setp.eq.u32 %%p2, %%r3, %s;\nsetp.ne.u32 %%p3, %%r3, 0;\n", p->accumulates ? "%r3" : "0");
    s += sprintf(s, "wgmma.fence.sync.aligned;\n");
    for (int step = 0; step < p->steps; step++)
        s = print_step(s, p, step);
    s += sprintf(s, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
                    "mul.wide.u32 %%rd3, %%r1, 4;\nadd.u64 %%rd3, %%rd2, %%rd3;\n");
    for (int i = 0; i < p->n / 2; i++)
        s += sprintf(s, "st.global.f32 [%%rd3+%d], %%d%d;\n", 512 * i, i);
    return body;
}

static float expected(const struct product *p, int row, int column)
{
    int sum = 0;
    for (int k = 0; k < p->steps * step_depth(p); k++)
        sum += a_value(row, k) * b_value(k, column);
    if (p->negates_a != p->negates_b)
        sum = -sum;
    return (float)(sum + (p->accumulates ? 5 : 0));
}

static void run_product(const struct product *p, const char *text)
{
    static unsigned char in[TILE_BYTES + MAX_DEPTH / 8 * 2048];
    static float out[MAX_N / 2][128];
    char *body = make_body(p);
    fresh();
    configure(1, 0);
    ok(cu.cuMemFree_v2(cu.in));
    ok(cu.cuMemFree_v2(cu.out));
    ok(cu.cuMemAlloc_v2(&cu.in, sizeof in));
    ok(cu.cuMemAlloc_v2(&cu.out, sizeof out));
    make_input(p, in);
    ok(cu.cuMemcpyHtoD_v2(cu.in, in, sizeof in));
    char *ptx = make_kernel(body);
    check_with_ptxas(ptx);
    free(ptx);
    ok(run_body(body, 1, 128, TILE_BYTES, (uint32_t *)(void *)out, (size_t)(p->n / 2 * 128)));
    for (int t = 0; t < 128; t++)
        for (int i = 0; i < p->n / 2; i++) {
            const int row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + t % 4 * 2 + i % 2;
            const float e = expected(p, row, column);
            if (out[i][t] != e)
                fail_msg("%s: row %d column %d is %g, not %g", text, row, column, (double)out[i][t], (double)e);
        }
    free(body);
    ok(cu.cuMemFree_v2(cu.in));
    ok(cu.cuMemFree_v2(cu.out));
}

/* Dense tiles; with the widest rows, those that a tensor map writes with a swizzle of 128 bytes. */
static struct tile tile(bool is_lines_first, int width, int depth)
{
    const int row = width * 16;
    return (struct tile){.is_lines_first = is_lines_first,
                         .width = width,
                         .leading = width == 1       ? 128
                                    : is_lines_first ? depth * row
                                                     : 16,
                         .stride = width == 1 ? 256 : 8 * row};
}

static struct tile read_tile(const char *text, const char *key, int depth)
{
    char order[3] = "";
    int swizzle = 0;
    const char *at = strstr(text, key);
    assert_int_equal(at ? sscanf(at + strlen(key), "%2[kmn]%d", order, &swizzle) : 0, 2);
    return tile(!strcmp(order, "mn"), swizzle ? swizzle / 16 : 1, depth);
}

void check_product(const char *text)
{
    char type[8];
    const char *negates = strstr(text, " negates=");
    struct product p = {.n = read_key(text, " n=", 0),
                        .steps = read_key(text, " steps=", 1),
                        .has_a = !strstr(text, " a=registers"),
                        .accumulates = strstr(text, " adds") != NULL};
    assert_int_equal(sscanf(text, "%7s", type), 1);
    while (strcmp(type_names[p.type], type))
        assert_true(p.type++ < TF32);
    const int depth = p.steps * step_depth(&p);
    p.a = p.has_a ? read_tile(text, " a=", depth) : tile(false, 8, depth);
    p.b = read_tile(text, " b=", depth);
    p.b.base = read_key(text, " base=", 0);
    if (negates) {
        negates += strlen(" negates=");
        p.negates_a = *negates == 'a';
        p.negates_b = strcspn(negates, "b") < strcspn(negates, " ");
    }
    run_product(&p, text);
}
