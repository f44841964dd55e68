/* multiply.c - the arithmetic of wgmma, fast: a file of its own, as here a * b + c may be one
 * operation. The products are exact in f32, so it makes no difference.
 *
 * An accumulator register is a row of 32 lanes: lane l holds row l / 4 (and 8 below, in odd pairs
 * of registers) and the columns 2 (l % 4) and 2 (l % 4) + 1 of 8. So A's elements are repeated
 * four times along the lanes, B's eight times, and each register is four vectors. */
#include "hopper.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FAST __attribute__((target_clones("fma", "default")))
#else
#define FAST
#endif

typedef float vector __attribute__((vector_size(32)));

enum { PARTS = LANES / 8 };

/* A's rows and B's columns as the lanes see them. */
static inline __attribute__((always_inline)) void spread_a(const struct wgmma_tiles *t, u32 depth,
                                                           vector out[8][16][PARTS])
{
    for (u32 h = 0; h < 8; h++) /* half of a warp's rows */
        for (u32 k = 0; k < depth; k++)
            for (u32 p = 0; p < PARTS; p++) {
                const float x = t->a[8 * h + 2 * p][k], y = t->a[8 * h + 2 * p + 1][k];
                out[h][k][p] = (vector){x, x, x, x, y, y, y, y};
            }
}

static inline __attribute__((always_inline)) void spread_b(const struct wgmma_tiles *t, u32 depth,
                                                           u32 column, vector even[16],
                                                           vector odd[16])
{
    for (u32 k = 0; k < depth; k++) {
        vector b;
        memcpy(&b, &t->b[k][column], sizeof b);
        even[k] = __builtin_shufflevector(b, b, 0, 2, 4, 6, 0, 2, 4, 6);
        odd[k] = __builtin_shufflevector(b, b, 1, 3, 5, 7, 1, 3, 5, 7);
    }
}

/* d[0] and d[1] are the even and odd columns of these eight rows. */
static inline __attribute__((always_inline)) void block(const vector (*a)[PARTS],
                                                        const vector *even_b, const vector *odd_b,
                                                        u32 depth, float *const *d)
{
    vector even[PARTS], odd[PARTS];
    memcpy(even, d[0], sizeof even);
    memcpy(odd, d[1], sizeof odd);
    for (u32 k = 0; k < depth; k++)
        for (u32 p = 0; p < PARTS; p++) {
            even[p] += a[k][p] * even_b[k];
            odd[p] += a[k][p] * odd_b[k];
        }
    memcpy(d[0], even, sizeof even);
    memcpy(d[1], odd, sizeof odd);
}

/* Adds to the accumulators of the four warps: registers d[warp][0 .. n / 2 - 1]. */
FAST void wgmma_multiply(const struct wgmma_tiles *t, u32 depth, u32 n, float *d[4][128])
{
    vector a[8][16][PARTS], even[16], odd[16];
    spread_a(t, depth, a);
    for (u32 j = 0; j < n / 8; j++) {
        spread_b(t, depth, 8 * j, even, odd);
        for (u32 h = 0; h < 8; h++)
            block(a[h], even, odd, depth, &d[h / 2][4 * j + 2 * (h % 2)]);
    }
}
