/* test_emulator_matrices.c - mma.sync, ldmatrix, movmatrix against loops over the elements. */
#include "emulator/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};
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
    static const char *const vectors[] = {"", "{%%r%d}", "{%%r%d, %%r%d}", "", "{%%r%d, %%r%d, %%r%d, %%r%d}"};
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
    sprintf(p, ", {%%f0, %%f1, %%f2, %%f3};\nst.global.v4.f32 [%%rd5], {%%f0, %%f1, %%f2, %%f3};\n");
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
                fail_msg("%s lane %d: d%d is %g, not %g", s->insn, l, i, (double)out[l][i], (double)expected);
        }
}

void test_mma(void *unused)
{
    (void)unused;
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
    static const char *const registers[] = {"", "{%r10}", "{%r10, %r11}", "", "{%r10, %r11, %r12, %r13}"};
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

void test_ldmatrix(void *unused)
{
    (void)unused;
    for (int n = 1; n <= 4; n *= 2) {
        check_ldmatrix(n, false);
        check_ldmatrix(n, true);
    }
}

/* Register m of lane l holds m * 64 + 2 * l and the next; rows go to shared memory 16 bytes apart.
 */
static void check_stmatrix(int n, bool is_transposed)
{
    static const char *const registers[] = {"", "{%r10}", "{%r10, %r11}", "", "{%r10, %r11, %r12, %r13}"};
    uint32_t out[128];
    char body[2048], *ptx;
    sprintf(body,
            "mul.wide.u32 %%rd3, %%r1, 16;\nadd.u64 %%rd5, %%rd2, %%rd3;\n"
            "mov.u32 %%r3, smem;\nmad.lo.u32 %%r3, %%r1, 16, %%r3;\n"
            "st.shared.v4.u32 [%%r3], {-1, -1, -1, -1};\nbar.sync 0;\n"
            "mad.lo.u32 %%r10, %%r1, 0x20002, 0x10000;\nadd.u32 %%r11, %%r10, 0x400040;\n"
            "add.u32 %%r12, %%r11, 0x400040;\nadd.u32 %%r13, %%r12, 0x400040;\n"
            "stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 [%%r3], %s;\nbar.sync 0;\n"
            "ld.shared.v4.u32 {%%r20, %%r21, %%r22, %%r23}, [%%r3];\n"
            "st.global.v4.u32 [%%rd5], {%%r20, %%r21, %%r22, %%r23};\n",
            n, is_transposed ? ".trans" : "", registers[n]);
    fresh();
    check_with_ptxas(ptx = make_kernel(body));
    free(ptx);
    ok(run_body(body, 1, 32, 512, out, 128));
    for (int m = 0; m < 4; m++)
        for (int row = 0; row < 8; row++)
            for (int column = 0; column < 8; column++) {
                const uint32_t word = out[(m * 8 + row) * 4 + column / 2];
                const int expected = m * 64 + (is_transposed ? column * 8 + row : row * 8 + column);
                assert_int_equal(word >> 16 * (column & 1) & 0xffff, m < n ? expected : 0xffff);
            }
}

void test_stmatrix(void *unused)
{
    (void)unused;
    if (!use_target("sm_90a"))
        skip();
    for (int n = 1; n <= 4; n *= 2) {
        check_stmatrix(n, false);
        check_stmatrix(n, true);
    }
}

void test_movmatrix(void *unused)
{
    (void)unused;
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
