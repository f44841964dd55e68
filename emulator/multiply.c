/* multiply.c - the arithmetic of wgmma, fast: a file of its own, as here a * b + c may be one
 * operation. The products are exact in f32, so it makes no difference.
 *
 * An accumulator register is a row of 32 lanes: lane l holds row l / 4 (and 8 below, in odd pairs
 * of registers) and the columns 2 (l % 4) and 2 (l % 4) + 1 of 8. So A's elements are repeated
 * four times along the lanes, and B's, the even ones of 8 columns or the odd ones, eight times. */
#include "hopper.h"

typedef float quarter __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NAME(x)   x##_512
#define WIDTH     16
#define AT_A_TIME 2
#define TARGET    __attribute__((target("avx512f")))
#include "multiply.inc"

#define TARGET  __attribute__((target_clones("fma", "default")))
#define HAS_512 __builtin_cpu_supports("avx512f")
#else
#define TARGET
#define HAS_512      0
#define multiply_512 multiply_256
#endif

#define NAME(x)   x##_256
#define WIDTH     8
#define AT_A_TIME 1
#include "multiply.inc"

/* Adds to the accumulators of the four warps: registers d[warp][0 .. n / 2 - 1]. */
void wgmma_multiply(const struct wgmma_tiles *t, u32 depth, u32 n, float *d[4][128])
{
    if (HAS_512)
        multiply_512(t, depth, n, d);
    else
        multiply_256(t, depth, n, d);
}
