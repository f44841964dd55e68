/* lower/spread_pairs.c - diagonal blocks of a gradient (lower/spread.c) that decay by much: pairs of rows by halves, each lane for its channels,
 * in fp32; all lanes read the same weight, and no factor is above 1. */
#include "compiler/plan_channel.h"
#include "lower/spread.h"

enum { ROWS = CHANNEL_ROWS };

/* To `rows` rows (8 at most) what those positions from `begin` to `end` give that each reaches beside itself, by way of a reference,
 * in two channels from `j` on. What is weighed is made anew for each such set of rows, lest all of it be kept: registers are what
 * is short. */
static void add_pairs_of(const struct spread *s, uint32_t row, uint32_t rows, uint32_t begin, uint32_t end, uint32_t j,
                         const LLVMValueRef reference[8])
{
    struct emit *e = s->c.e;
    LLVMValueRef sums[8][2];
    for (uint32_t r = 0; r < rows; r++)
        sums[r][0] = sums[r][1] = real(e, 0);
    for (uint32_t q = begin; q < end; q++) {
        LLVMValueRef weights[ROWS];
        load_weights(s, row, rows, q, weights);
        for (uint32_t i = 0; i < 2; i++) {
            LLVMValueRef x =
                LLVMBuildFMul(e->b, spread_term(s, q, j + i), spread_term_factor(s, q, j + i, reference[j + i]), "");
            for (uint32_t r = 0; r < rows; r++)
                if (s->by_query ? q < row + r : q > row + r)
                    sums[r][i] = fma_of(e, weights[r], x, sums[r][i]);
        }
    }
    for (uint32_t i = 0; i < 2 * rows; i++) {
        const uint32_t r = row + i / 2, k = j + i % 2;
        LLVMValueRef slot = e->registers[s->out][r * s->c.each + k];
        set(e, slot, fma_of(e, spread_row_factor(s, r, k, reference[k]), sums[i / 2][i % 2], get(e, e->f32, slot)));
    }
}

static void add_pairs(const struct spread *s, uint32_t row, uint32_t rows, uint32_t begin, uint32_t end,
                      const LLVMValueRef given[8])
{
    LLVMValueRef reference[8];
    for (uint32_t j = 0; j < s->c.each; j++)
        reference[j] = forgotten(s->c.e, given[j]);
    for (uint32_t j = 0; j < s->c.each; j += 2) {
        sync_warp(s->c.e);
        add_pairs_of(s, row, rows, begin, end, j, reference);
    }
}

/* Of 2, 4, 8, 16 rows the queries are one half and the keys the other; the reference is the last key. */
void add_pairs_by_halves(const struct spread *s)
{
    for (uint32_t half = ROWS / 2; half; half /= 2)
        for (uint32_t base = 0; base < ROWS; base += 2 * half) {
            const uint32_t first = s->by_query ? base : base + half, row = s->by_query ? base + half : base;
            LLVMValueRef reference[8];
            for (uint32_t j = 0; j < s->c.each; j++)
                reference[j] = key_decay(&s->c, s->op, base + half - 1, j);
            add_pairs(s, row, half, first, first + half, reference);
        }
}
