/* multiply.c - the arithmetic of wgmma, fast: a file of its own, as here a * b + c may be one
 * operation. The products are exact in f32, so it makes no difference.
 *
 * An accumulator register is a row of 32 lanes: lane l holds row l / 4 (and 8 below, in odd pairs
 * of registers) and the columns 2 (l % 4) and 2 (l % 4) + 1 of 8. So A's elements are repeated
 * four times along the lanes, B's eight times, and each register is four vectors. */
#include "hopper.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FAST __attribute__((target_clones("arch=haswell", "default")))
#else
#define FAST
#endif

typedef float vector __attribute__((vector_size(32)));

enum { PARTS = LANES / 8 };

struct spread_a {
    vector at[2][16][PARTS]; /* [half of the 16 rows][k] */
};

struct spread_b {
    vector at[2][16]; /* [even or odd columns][k] */
};

static inline __attribute__((always_inline)) void spread_a(const struct wgmma_tiles *t, u32 depth,
                                                           u32 warp, struct spread_a *out)
{
    for (u32 h = 0; h < 2; h++)
        for (u32 k = 0; k < depth; k++)
            for (u32 l = 0; l < LANES; l++)
                out->at[h][k][l / 8][l % 8] = t->a[16 * warp + 8 * h + l / 4][k];
}

static inline __attribute__((always_inline)) void spread_b(const struct wgmma_tiles *t, u32 depth,
                                                           u32 column, struct spread_b *out)
{
    for (u32 k = 0; k < depth; k++)
        for (u32 l = 0; l < 8; l++) {
            out->at[0][k][l] = t->b[k][column + l % 4 * 2];
            out->at[1][k][l] = t->b[k][column + l % 4 * 2 + 1];
        }
}

/* d[0] and d[1] are the even and odd columns of one half of the rows. */
static inline __attribute__((always_inline)) void block(const vector (*a)[PARTS],
                                                        const struct spread_b *b, u32 depth,
                                                        float *const *d)
{
    vector even[PARTS], odd[PARTS];
    memcpy(even, d[0], sizeof even);
    memcpy(odd, d[1], sizeof odd);
    for (u32 k = 0; k < depth; k++)
        for (u32 p = 0; p < PARTS; p++) {
            even[p] += a[k][p] * b->at[0][k];
            odd[p] += a[k][p] * b->at[1][k];
        }
    memcpy(d[0], even, sizeof even);
    memcpy(d[1], odd, sizeof odd);
}

/* Adds to the accumulators of one warp: d[0 .. n / 2 - 1] are its registers. */
FAST void wgmma_multiply(const struct wgmma_tiles *t, u32 depth, u32 warp, u32 n, float *const *d)
{
    struct spread_a a;
    struct spread_b b;
    spread_a(t, depth, warp, &a);
    for (u32 j = 0; j < n / 8; j++) {
        spread_b(t, depth, 8 * j, &b);
        block(a.at[0], &b, depth, d + 4 * j);
        block(a.at[1], &b, depth, d + 4 * j + 2);
    }
}
