/* matrix.c - ldmatrix, stmatrix, movmatrix and mma.sync, by the fragment layouts of the PTX ISA
 * (9.7.14).
 *
 * Lane l is in group g = l / 4 and is the t = l % 4 -th of it. A 16-bit register pair holds columns
 * 2t, 2t+1. A (16 x K)  a0 (g, 2t)  a1 (g+8, 2t)  a2 (g, 2t+8)  a3 (g+8, 2t+8)      tf32: one
 * column, t, and +4 instead of +8 B (K x 8)   b0 (2t, g)  b1 (2t+8, g) C, D        c0 (g, 2t)  c1
 * (g, 2t+1)  c2 (g+8, 2t)  c3 (g+8, 2t+1) Products are exact in f32; their sum is made in f32, k
 * ascending, rounding to nearest, and added to C with what is beyond f32 cut off: as on an H200, where
 * 65,536 tokens that are added one behind the other lose 5e-4 of their sum. Hardware keeps a few bits
 * fewer or more of the sum, in an order it does not tell. */
#include "float_bits.h"
#include "hopper.h"

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

/* Two columns a register; depth / 4 registers for A, depth / 8 for B. */
static inline __attribute__((always_inline)) void unpack(const struct warp *w, const u32 *a, const u32 *b, u32 depth,
                                                         bool is_half, struct mma_tiles *t)
{
    float low[LANES], high[LANES];
    for (u32 r = 0; r < depth / 4 + depth / 8; r++) {
        const bool is_a = r < depth / 4;
        const u32 *row = row32(w, is_a ? a[r] : b[r - depth / 4]);
        for (u32 l = 0; l < LANES; l++) {
            low[l] = is_half ? half_to_float((u16)row[l]) : bits_float(row[l] << 16);
            high[l] = is_half ? half_to_float((u16)(row[l] >> 16)) : bits_float(row[l] & 0xffff0000u);
        }
        for (u32 l = 0; l < LANES && is_a; l++) {
            float *out = &t->a[l / 4 + (r & 1) * 8][l % 4 * 2 + (r >> 1) * 8];
            out[0] = low[l];
            out[1] = high[l];
        }
        for (u32 l = 0; l < LANES && !is_a; l++) {
            float(*out)[8] = &t->b[l % 4 * 2 + (r - depth / 4) * 8];
            out[0][l / 4] = low[l];
            out[1][l / 4] = high[l];
        }
    }
}

CLONES static void unpack_pairs(const struct warp *w, const u32 *a, const u32 *b, u32 depth, bool is_half,
                                struct mma_tiles *t)
{
    if (is_half)
        unpack(w, a, b, depth, true, t);
    else
        unpack(w, a, b, depth, false, t);
}

/* The hardware does not look at the low 13 bits. */
static void unpack_tf32(const struct warp *w, const u32 *a, const u32 *b, u32 depth, struct mma_tiles *t)
{
    for (u32 l = 0; l < LANES; l++) {
        for (u32 r = 0; r < depth / 2; r++)
            t->a[l / 4 + (r & 1) * 8][l % 4 + (r >> 1) * 4] = bits_float(row32(w, a[r])[l] & ~0x1fffu);
        for (u32 r = 0; r < depth / 4; r++)
            t->b[l % 4 + r * 4][l / 4] = bits_float(row32(w, b[r])[l] & ~0x1fffu);
    }
}

static void unpack_c(const struct warp *w, const u32 *c, struct mma_tiles *t)
{
    for (u32 r = 0; r < 4; r++)
        for (u32 l = 0; l < LANES; l++)
            t->d[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)] = bits_float(row32(w, c[r])[l]);
}

static void pack_d(struct warp *w, const u32 *d, const struct mma_tiles *t)
{
    for (u32 r = 0; r < 4; r++)
        for (u32 l = 0; l < LANES; l++)
            row32(w, d[r])[l] = float_bits(t->d[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)]);
}

static void mma_pairs(struct warp *w, const struct insn *in, u32 mask, u32 depth)
{
    struct mma_tiles t;
    const u32 *a = in->op + 4, *b = a + depth / 4, *c = b + depth / 8;
    if (!is_convergent(w, in, mask))
        return;
    unpack_pairs(w, a, b, depth, in->mod[MOD_FROM] == TYPE_F16, &t);
    unpack_c(w, c, &t);
    mma_multiply(&t, depth);
    pack_d(w, in->op, &t);
    w->cta->counters->mma++;
}

RUN(mma_k16)
{
    mma_pairs(w, in, mask, 16);
}

RUN(mma_k8)
{
    mma_pairs(w, in, mask, 8);
}

/* f16 accumulators: pairs of columns in a register; the sum is rounded once, at the end. */
RUN(mma_k16_f16)
{
    struct mma_tiles t;
    const u32 *c = in->op + 8;
    if (!is_convergent(w, in, mask))
        return;
    unpack_pairs(w, in->op + 2, in->op + 6, 16, true, &t);
    for (u32 l = 0; l < LANES; l++)
        for (u32 r = 0; r < 4; r++)
            t.d[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)] =
                half_to_float((u16)(row32(w, c[r >> 1])[l] >> 16 * (r & 1)));
    mma_multiply(&t, 16);
    for (u32 l = 0; l < LANES; l++)
        for (u32 r = 0; r < 2; r++)
            row32(w, in->op[r])[l] = float_to_half(t.d[l / 4 + r * 8][l % 4 * 2]) |
                                     (u32)float_to_half(t.d[l / 4 + r * 8][l % 4 * 2 + 1]) << 16;
    w->cta->counters->mma++;
}

static void mma_tf32(struct warp *w, const struct insn *in, u32 mask, u32 depth)
{
    struct mma_tiles t;
    const u32 *a = in->op + 4, *b = a + depth / 2, *c = b + depth / 4;
    if (!is_convergent(w, in, mask))
        return;
    unpack_tf32(w, a, b, depth, &t);
    unpack_c(w, c, &t);
    mma_multiply(&t, depth);
    pack_d(w, in->op, &t);
    w->cta->counters->mma++;
}

RUN(mma_tf32_k8)
{
    mma_tf32(w, in, mask, 8);
}

RUN(mma_tf32_k4)
{
    mma_tf32(w, in, mask, 4);
}

/* Row i of matrix m is the 16 bytes that lane 8m + i points to; lane l receives elements 2(l%4),
 * 2(l%4)+1 of row l/4, or of column l/4 when transposed. */
static void ldmatrix(struct warp *w, const struct insn *in, u32 mask, u32 n)
{
    u16 matrix[4][8][8];
    u64 address[LANES];
    if (!is_convergent(w, in, mask))
        return;
    for (u32 l = 0; l < 8 * n; l++) {
        address[l] = near_address(w, address_of(w, in, n, (int)l));
        const u8 *p = shared_access(w, w->cta, (int)l, address[l], 16, ACCESS_READ);
        if (!p)
            return;
        memcpy(matrix[l / 8][l % 8], p, 16);
    }
    for (u32 m = 0; m < n; m++) {
        count_wavefronts(w->cta, address, 0xffu << 8 * m, 16);
        u32 *d = row32(w, in->op[m]);
        for (u32 l = 0; l < LANES; l++) {
            const u32 i = l / 4, j = l % 4 * 2;
            d[l] = in->mod[MOD_TRANS] ? matrix[m][j][i] | (u32)matrix[m][j + 1][i] << 16
                                      : matrix[m][i][j] | (u32)matrix[m][i][j + 1] << 16;
        }
    }
}

RUN(ldmatrix_x1)
{
    ldmatrix(w, in, mask, 1);
}

RUN(ldmatrix_x2)
{
    ldmatrix(w, in, mask, 2);
}

RUN(ldmatrix_x4)
{
    ldmatrix(w, in, mask, 4);
}

/* The other way round: lane 8m + i points to where row i of matrix m goes. */
static void stmatrix(struct warp *w, const struct insn *in, u32 mask, u32 n)
{
    u16 matrix[4][8][8];
    u64 address[LANES];
    if (!is_convergent(w, in, mask))
        return;
    for (u32 m = 0; m < n; m++) {
        const u32 *from = row32(w, in->op[2 + m]);
        for (u32 l = 0; l < LANES; l++)
            for (u32 h = 0; h < 2; h++) {
                const u32 i = l / 4, j = l % 4 * 2 + h;
                *(in->mod[MOD_TRANS] ? &matrix[m][j][i] : &matrix[m][i][j]) = (u16)(from[l] >> 16 * h);
            }
    }
    w->cta->cluster->store_id++;
    for (u32 l = 0; l < 8 * n; l++) {
        address[l] = near_address(w, address_of(w, in, 0, (int)l));
        u8 *to = shared_access(w, w->cta, (int)l, address[l], 16, ACCESS_WRITE);
        const u8 *row = (const u8 *)matrix[l / 8][l % 8];
        if (!to || shared_store_conflicts(w, w->cta, (int)l, (u32)address[l] - SHARED_BASE, 16, to, row))
            return;
        memcpy(to, row, 16);
    }
    for (u32 m = 0; m < n; m++)
        count_wavefronts(w->cta, address, 0xffu << 8 * m, 16);
}

RUN(stmatrix_x1)
{
    stmatrix(w, in, mask, 1);
}

RUN(stmatrix_x2)
{
    stmatrix(w, in, mask, 2);
}

RUN(stmatrix_x4)
{
    stmatrix(w, in, mask, 4);
}

RUN(movmatrix)
{
    u16 matrix[8][8];
    if (!is_convergent(w, in, mask))
        return;
    for (u32 l = 0; l < LANES; l++) {
        const u32 x = row32(w, in->op[1])[l];
        matrix[l / 4][l % 4 * 2] = (u16)x;
        matrix[l / 4][l % 4 * 2 + 1] = (u16)(x >> 16);
    }
    for (u32 l = 0; l < LANES; l++)
        row32(w, in->op[0])[l] = matrix[l % 4 * 2][l / 4] | (u32)matrix[l % 4 * 2 + 1][l / 4] << 16;
}
