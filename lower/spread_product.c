/* lower/spread_product.c - products of a gradient (lower/spread.c): the warp's rows of P by the blocks of X that they reach, from the farthest
 * on, and by their own where that is near. Sums are in accumulators until they are left where the lanes that have the channels read them. */
#include "compiler/plan_channel.h"
#include "lower/spread.h"

#include "lower/matrix.h"

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS, GROUP = 32 /* channels that are multiplied at a time */ };

/* The sums of 32 channels, two 16 x 8 tiles and two, times a float a channel. */
static void decay_sums(const struct spread *s, uint32_t group, LLVMValueRef by, const LLVMValueRef sums[16])
{
    struct emit *e = s->c.e;
    LLVMValueRef from = byte_offset(e, by, add(e, mul(e, e->quad_column, imm(e, 8)), imm(e, 4 * GROUP * group)));
    for (uint32_t t = 0; t < GROUP / 8; t++) {
        LLVMValueRef two = LLVMBuildLoad2(e->b, e->v2f32, byte_offset(e, from, imm(e, 32 * t)), "");
        LLVMSetAlignment(two, 8);
        for (uint32_t i = 0; i < 4; i++) {
            LLVMValueRef factor = LLVMBuildExtractElement(e->b, two, imm(e, i % 2), "");
            set(e, sums[4 * t + i], LLVMBuildFMul(e->b, get(e, e->f32, sums[4 * t + i]), factor, ""));
        }
    }
}

/* The left operands of a product: the warp's rows of P, block by block, and what its rows have of each other. */
struct left {
    LLVMValueRef rows[WARPS][4], own[2][4], chain[16];
};

/* chain += the warp's rows of P by 32 channels of a block of X, of each product. */
static void multiply_block_of(const struct spread *s, uint32_t group, uint32_t block, const struct left *left,
                              uint32_t n)
{
    struct emit *e = s->c.e;
    LLVMValueRef in_matrix = modulo(e, e->lane, imm(e, 8)), low = modulo(e, divide(e, e->lane, imm(e, 8)), imm(e, 2)),
                 high = divide(e, e->lane, imm(e, 16));
    LLVMValueRef row = add(e, add(e, in_matrix, mul(e, low, imm(e, 8))), imm(e, ROWS * block));
    LLVMValueRef from = byte_offset(e, spread_scratch(s, 0), mul(e, row, imm(e, s->c.row_bytes)));
    LLVMValueRef unit = LLVMBuildXor(e->b, high, in_matrix, "");
    for (uint32_t t = 0; t < GROUP / 16; t++) {
        LLVMValueRef columns[4], c[4];
        LLVMValueRef at = LLVMBuildXor(e->b, unit, imm(e, GROUP / 8 * group + 2 * t), "");
        fetch_matrices(e, byte_offset(e, from, mul(e, at, imm(e, 16))), true, columns);
        for (uint32_t k = 0; k < 2 * n; k++) {
            const LLVMValueRef *sums = &left[k / 2].chain[8 * t + 4 * (k % 2)];
            for (uint32_t i = 0; i < 4; i++)
                c[i] = get(e, e->f32, sums[i]);
            multiply_words(e, c, left[k / 2].rows[block], columns[2 * (k % 2)], columns[2 * (k % 2) + 1]);
            for (uint32_t i = 0; i < 4; i++)
                set(e, sums[i], c[i]);
        }
    }
}

/* sums += what 32 channels of the warp's rows have of each other, each by those it reaches beside itself. */
static void multiply_own(const struct spread *s, uint32_t group, const struct left *left, uint32_t n,
                         LLVMValueRef sums[][SPREAD_SUMS])
{
    struct emit *e = s->c.e;
    LLVMValueRef from = byte_offset(e, spread_sums_address(s),
                                    add(e, mul(e, e->quad_column, imm(e, 4 * s->c.n)), mul(e, e->quad_row, imm(e, 4))));
    for (uint32_t at = 0; at < 2 * GROUP / 8; at++) {
        const uint32_t k = at / (GROUP / 8), t = at % (GROUP / 8);
        LLVMValueRef columns[2], c[4];
        LLVMValueRef unit = LLVMBuildXor(e->b, e->quad_column, imm(e, GROUP / 8 * group + t), "");
        for (uint32_t i = 0; i < 2; i++) {
            LLVMValueRef place = add(e, mul(e, unit, imm(e, 32)), imm(e, (8 * k + 4 * i) * 4 * s->c.n));
            columns[i] = LLVMBuildLoad2(e->b, e->i32, byte_offset(e, from, place), "");
        }
        for (uint32_t x = 0; x < n; x++) {
            const LLVMValueRef *to = &sums[x][16 * group + 4 * t];
            for (uint32_t i = 0; i < 4; i++)
                c[i] = get(e, e->f32, to[i]);
            multiply_tf32(e, c, left[x].own[k], columns);
            for (uint32_t i = 0; i < 4; i++)
                set(e, to[i], c[i]);
        }
    }
}

static void leave_group(const struct spread *s, uint32_t group, const LLVMValueRef sums[16])
{
    struct emit *e = s->c.e;
    LLVMValueRef to = byte_offset(e, spread_sums_address(s),
                                  add(e, mul(e, e->quad_row, imm(e, 4 * s->c.n)), mul(e, e->quad_column, imm(e, 8))));
    LLVMValueRef moved = modulo(e, e->quad_row, imm(e, 4));
    for (uint32_t i = 0; i < 16; i += 2) {
        LLVMValueRef unit = mul(e, LLVMBuildXor(e->b, moved, imm(e, i / 4), ""), imm(e, 32));
        LLVMValueRef two = LLVMBuildInsertElement(e->b, LLVMGetUndef(e->v2f32), get(e, e->f32, sums[i]), imm(e, 0), "");
        two = LLVMBuildInsertElement(e->b, two, get(e, e->f32, sums[i + 1]), imm(e, 1), "");
        LLVMValueRef at = add(e, unit, imm(e, 4 * GROUP * group + i % 4 / 2 * 8 * 4 * s->c.n));
        LLVMSetAlignment(LLVMBuildStore(e->b, two, byte_offset(e, to, at)), 8);
    }
}

void leave_sums(const struct spread *s, const LLVMValueRef sums[SPREAD_SUMS])
{
    sync_warp(s->c.e); /* X, or sums of another product, have been read where they go */
    for (uint32_t group = 0; group < s->c.n / GROUP; group++)
        leave_group(s, group, &sums[16 * group]);
    sync_warp(s->c.e);
}

void new_sums(const struct spread *s, LLVMValueRef sums[SPREAD_SUMS])
{
    struct emit *e = s->c.e;
    for (uint32_t i = 0; i < 16 * (s->c.n / GROUP); i++)
        sums[i] = local(e, e->f32, "sum");
}

static void multiply_group(const struct spread *s, uint32_t group, const struct left *left, uint32_t n, bool adds,
                           LLVMValueRef sums[][SPREAD_SUMS])
{
    struct emit *e = s->c.e;
    for (uint32_t i = 0; i < 16 * n; i++)
        set(e, left[i / 16].chain[i % 16], real(e, 0));
    for (uint32_t k = 0; k + 1 < WARPS; k++) {
        const uint32_t block = s->by_query ? k : WARPS - 1 - k;
        LLVMValueRef reached = s->by_query ? less(e, imm(e, block), e->warp) : less(e, e->warp, imm(e, block));
        LLVMBasicBlockRef after = begin_if(e, reached);
        for (uint32_t x = 0; x < n && k; x++)
            decay_sums(s, group, spread_vector(s, SPREAD_WHOLES, imm(e, block)), left[x].chain);
        multiply_block_of(s, group, block, left, n);
        end_if(e, after);
    }
    for (uint32_t i = 0; i < 16 * n; i++) {
        LLVMValueRef sum = sums[i / 16][16 * group + i % 16], far = get(e, e->f32, left[i / 16].chain[i % 16]);
        set(e, sum, adds ? LLVMBuildFAdd(e->b, get(e, e->f32, sum), far, "") : far);
    }
    LLVMBasicBlockRef after = begin_if(e, s->near);
    multiply_own(s, group, left, n, sums);
    end_if(e, after);
}

void multiply_blocks(const struct spread *parts, uint32_t n, bool adds, LLVMValueRef sums[][SPREAD_SUMS])
{
    struct left left[2];
    for (uint32_t x = 0; x < n; x++) {
        for (uint32_t w = 0; w < WARPS; w++)
            fetch_weights(&parts[x], w, left[x].rows[w]);
        for (uint32_t k = 0; k < 2; k++)
            fetch_own(&parts[x], k, left[x].own[k]);
        for (uint32_t i = 0; i < 16; i++)
            left[x].chain[i] = local(parts->c.e, parts->c.e->f32, "far");
    }
    for (uint32_t group = 0; group < parts->c.n / GROUP; group++)
        multiply_group(parts, group, left, n, adds, sums);
}
