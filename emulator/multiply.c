/* multiply.c - the arithmetic of mma.sync and wgmma, fast: a file of its own, as here a * b + c may be one
 * operation. The products are exact in f32, so it makes no difference.
 *
 * wgmma: an accumulator register is a row of 32 lanes: lane l holds row l / 4 (and 8 below, in odd pairs
 * of registers) and the columns 2 (l % 4) and 2 (l % 4) + 1 of 8. So A's elements are repeated
 * four times along the lanes, and B's, the even ones of 8 columns or the odd ones, eight times. */
#include "hopper.h"

#include "float_bits.h"

typedef float quarter __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NAME(x)   x##_512
#define WIDTH     16
#define AT_A_TIME 2
#define TARGET    __attribute__((target("avx512f")))
#include "multiply.inc"

#define FUSED   __attribute__((target_clones("fma", "default")))
#define HAS_512 __builtin_cpu_supports("avx512f")
#else
#define FUSED
#define HAS_512      0
#define multiply_512 multiply_256
#endif

#define NAME(x)   x##_256
#define WIDTH     8
#define AT_A_TIME 1
#define TARGET    FUSED
#include "multiply.inc"

/* x + y, cut off where fp32 ends: what is lost in the nearest sum has the other sign where that is too large. */
INLINE float add_cut(float x, float y)
{
    const float sum = x + y, of_y = sum - x, lost = (x - (sum - of_y)) + (y - of_y);
    const u32 is_finite = (float_bits(sum) & 0x7f800000u) != 0x7f800000u;
    return bits_float(float_bits(sum) - (is_finite & (sum * lost < 0)));
}

/* Eight rows at a time, so that their sums do not wait for each other. */
FUSED void mma_multiply(struct mma_tiles *t, u32 depth)
{
    for (u32 i = 0; i < 16; i += 8) {
        float sum[8][8] = {{0}};
        for (u32 k = 0; k < depth; k++)
            for (u32 r = 0; r < 8; r++)
                for (u32 j = 0; j < 8; j++)
                    sum[r][j] += t->a[i + r][k] * t->b[k][j];
        for (u32 r = 0; r < 8; r++)
            for (u32 j = 0; j < 8; j++)
                t->d[i + r][j] = add_cut(t->d[i + r][j], sum[r][j]);
    }
}

/* Adds to the accumulators of the four warps: registers d[warp][0 .. n / 2 - 1]. */
void wgmma_multiply(const struct wgmma_tiles *t, u32 depth, u32 n, float *d[4][128])
{
    if (HAS_512)
        multiply_512(t, depth, n, d);
    else
        multiply_256(t, depth, n, d);
}
