/* lower/spread.c - gradients of products that decay, of values of channels (lower/channel.c):
 *
 *     Out_px = start_px + sum_q P_pq X_qx 2^(b_ix - b_jx)        (p, q) is (i, j) or (j, i): queries i, keys j
 *
 * P is in accumulators, a warp's 16 rows of 64; all else by channels. Blocks are of 16 positions.
 *
 *     other blocks    X goes to shared memory, rounded, times what is between it and its block's end: the start where
 *                     it is queries, the last position where it is keys. Each warp multiplies its rows by the blocks that they
 *                     reach, from the farthest to the nearest; from one to the next what is there decays by all of a block.
 *     a diagonal one  where it decays by little, the last of them: sums decay to the middle of the block, from which its X
 *                     counts, which is not rounded to 16 bits but to TF32. Otherwise pairs are taken by halves in fp32, as in
 *                     channel.c, and no factor is above 1. A position's own weight has none, and goes through no tensor core: what it
 *                     gives must cancel (gradients of gates).
 *
 * In the end the rows' own factor is put on: from their block's end, or its middle, to themselves. The weights P may lie the other way
 * round, queries in rows where the result has keys: then they turn in shared memory.
 *
 * Only what is reached is touched, so that nothing bad leaks from elsewhere. Shared memory: X; X of diagonal blocks in fp32, and in
 * its place sums, which change from accumulators to channels there; vectors of channels; diagonal blocks of P; P, to turn. */
#include "lower/spread.h"

#include "lower/matrix.h"

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS, GROUP = 32 /* channels that are multiplied at a time */ };

/* ---- shared memory --------------------------------------------------------------------------------------------------- */

LLVMValueRef spread_scratch(const struct spread *s, uint32_t offset)
{
    return byte_offset(s->c.e, s->c.e->arena, imm(s->c.e, s->c.e->p->scratch_offset + offset));
}

/* This warp's sums of other blocks: 16 rows of floats, units of 32 bytes exclusive-ored with the row. */
static LLVMValueRef sums_address(const struct spread *s)
{
    struct emit *e = s->c.e;
    return byte_offset(e, spread_scratch(s, WARPS * ROWS * s->c.row_bytes), mul(e, e->warp, imm(e, ROWS * 4 * s->c.n)));
}

/* A float a channel of block w: its last position's decay; what all of it decays by; what sums decay by before the diagonal block. */
enum { ENDS, WHOLES, HALVES };
static LLVMValueRef vector_address(const struct spread *s, uint32_t which, LLVMValueRef w)
{
    struct emit *e = s->c.e;
    const uint32_t offset = SPREAD_TILES * WARPS * ROWS * s->c.row_bytes + which * WARPS * 4 * s->c.n;
    return byte_offset(e, spread_scratch(s, offset), mul(e, w, imm(e, 4 * s->c.n)));
}

static LLVMValueRef lane_floats(const struct spread *s, LLVMValueRef address)
{
    struct emit *e = s->c.e;
    return byte_offset(e, address, mul(e, s->c.first, imm(e, 4)));
}

static void load_floats(const struct spread *s, LLVMValueRef from, LLVMValueRef out[8])
{
    struct emit *e = s->c.e;
    LLVMValueRef x = LLVMBuildLoad2(e->b, channel_type(&s->c, TG_F32), from, "");
    LLVMSetAlignment(x, 4 * s->c.each);
    for (uint32_t j = 0; j < s->c.each; j++)
        out[j] = LLVMBuildExtractElement(e->b, x, imm(e, j), "");
}

static void store_floats(const struct spread *s, LLVMValueRef to, const LLVMValueRef *x)
{
    LLVMSetAlignment(LLVMBuildStore(s->c.e->b, channel_words(&s->c, TG_F32, x), to), 4 * s->c.each);
}

/* ---- decays ---------------------------------------------------------------------------------------------------------- */

LLVMValueRef forgotten(struct emit *e, LLVMValueRef x)
{
    return as(e, opaque(e, as(e, x, e->i32)), e->f32);
}

LLVMValueRef spread_row_factor(const struct spread *s, uint32_t r, uint32_t j, LLVMValueRef other)
{
    return s->by_query ? two_to(s->c.e, query_decay(&s->c, s->op, r, j), other)
                       : two_to(s->c.e, other, key_decay(&s->c, s->op, r, j));
}

LLVMValueRef spread_term_factor(const struct spread *s, uint32_t r, uint32_t j, LLVMValueRef other)
{
    return s->by_query ? two_to(s->c.e, other, key_decay(&s->c, s->op, r, j))
                       : two_to(s->c.e, query_decay(&s->c, s->op, r, j), other);
}

static LLVMValueRef is_little(struct emit *e, LLVMValueRef so_far, LLVMValueRef from, LLVMValueRef to)
{
    LLVMValueRef growth = LLVMBuildFSub(e->b, from, to, "");
    return both(e, so_far, LLVMBuildFCmp(e->b, LLVMRealOLE, growth, real(e, SPREAD_GROWTH), ""));
}

/* What factors refer to. Not near where there is a NaN. */
static void find_references(struct spread *s, LLVMValueRef middle[8])
{
    struct emit *e = s->c.e;
    LLVMValueRef half[8], one = real(e, 1);
    for (uint32_t j = 0; j < s->c.each; j++) {
        s->near = is_little(e, s->near, s->begin[j], middle[j]);
        s->near = is_little(e, s->near, middle[j], s->end[j]);
    }
    s->near = all_lanes(e, s->near);
    for (uint32_t j = 0; j < s->c.each; j++) {
        LLVMValueRef first = choose(e, s->near, two_to(e, middle[j], s->begin[j]), one),
                     second = choose(e, s->near, two_to(e, s->end[j], middle[j]), one);
        half[j] = s->by_query ? first : second;
        s->to_end[j] = s->by_query ? second : first;
        s->of_terms[j] = forgotten(e, choose(e, s->near, middle[j], s->by_query ? s->end[j] : s->begin[j]));
        s->of_rows[j] = forgotten(e, choose(e, s->near, middle[j], s->by_query ? s->begin[j] : s->end[j]));
    }
    store_floats(s, lane_floats(s, vector_address(s, HALVES, e->warp)), half);
}

static bool has_spread_before(const struct spread *s)
{
    bool has = false;
    for (const struct op *before = s->c.e->p->ops; before < s->op; before++)
        has |= plan_is_spread(s->c.e->p, before);
    return has;
}

/* The ends of all blocks, and of each what it decays by, to all warps. */
static void find_ends(struct spread *s)
{
    struct emit *e = s->c.e;
    LLVMValueRef none = LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, 0), ""), whole[8], middle[8];
    for (uint32_t j = 0; j < s->c.each; j++) {
        middle[j] = forgotten(e, key_decay(&s->c, s->op, ROWS / 2 - 1, j));
        s->end[j] = forgotten(e, key_decay(&s->c, s->op, ROWS - 1, j));
    }
    if (!has_spread_before(s))
        barrier(e); /* what was there has been read; later on ends are read before a barrier of their own */
    store_floats(s, lane_floats(s, vector_address(s, ENDS, e->warp)), s->end);
    barrier(e);
    LLVMValueRef before = choose(e, none, imm(e, 0), sub(e, e->warp, imm(e, 1)));
    load_floats(s, lane_floats(s, vector_address(s, ENDS, before)), s->begin);
    for (uint32_t j = 0; j < s->c.each; j++) {
        s->begin[j] = choose(e, none, real(e, 0), s->begin[j]);
        whole[j] = two_to(e, s->end[j], s->begin[j]);
    }
    store_floats(s, lane_floats(s, vector_address(s, WHOLES, e->warp)), whole);
    find_references(s, middle);
}

/* ---- other blocks ---------------------------------------------------------------------------------------------------- */

LLVMValueRef spread_term(const struct spread *s, uint32_t r, uint32_t j)
{
    struct emit *e = s->c.e;
    LLVMValueRef x = channel_element(e, s->terms, r * s->c.each + j);
    if (s->by_query || plan_is_zero_behind(e->p, s->terms))
        return x;
    return choose(e, less(e, add(e, s->c.row, imm(e, r)), e->at.length), x, real(e, 0));
}

/* Are there decays of queries other than those of keys? */
static bool decays_apart(const struct spread *s)
{
    const struct value *values = s->c.e->p->values;
    return TG_OPERAND_TILE(values[s->op->c].operand) != TG_OPERAND_TILE(values[s->op->w].operand);
}

/* Queries behind the end of the chunk decay as keys there: one that decays by less than the last key would be infinity times zero. */
static void clear_behind(const struct spread *s)
{
    struct emit *e = s->c.e;
    for (uint32_t r = 0; r < ROWS && !s->by_query && decays_apart(s); r++) {
        LLVMValueRef there = less(e, add(e, s->c.row, imm(e, r)), e->at.length);
        for (uint32_t j = 0; j < s->c.each; j++) {
            LLVMValueRef decay = choose(e, there, query_decay(&s->c, s->op, r, j), key_decay(&s->c, s->op, r, j));
            spread_set(e, s->op->c, r * s->c.each + j, decay);
        }
    }
}

/* Floats of row r of the lane's channels, in the warp's sums or in their place. */
static LLVMValueRef sums_of_row(const struct spread *s, uint32_t r)
{
    struct emit *e = s->c.e;
    LLVMValueRef place = LLVMBuildXor(e->b, mul(e, s->c.first, imm(e, 4)), imm(e, r % 4 * 32), "");
    return byte_offset(e, sums_address(s), add(e, place, imm(e, r * 4 * s->c.n)));
}

/* The warp's rows of X: for the diagonal block, and as the end of their block has them, rounded, units of 16 bytes exclusive-ored
 * with the row. */
static void put_terms(const struct spread *s)
{
    struct emit *e = s->c.e;
    const uint32_t bytes = 2 * s->c.each;
    LLVMValueRef tile = byte_offset(e, spread_scratch(s, 0), mul(e, s->c.row, imm(e, s->c.row_bytes)));
    for (uint32_t r = 0; r < ROWS; r++) {
        LLVMValueRef own[8], x[8];
        for (uint32_t j = 0; j < s->c.each; j++) {
            LLVMValueRef weighted =
                LLVMBuildFMul(e->b, spread_term(s, r, j), spread_term_factor(s, r, j, s->of_terms[j]), "");
            own[j] = weighted;
            x[j] = LLVMBuildFMul(e->b, weighted, s->to_end[j], "");
        }
        store_floats(s, sums_of_row(s, r), own);
        LLVMValueRef unit = LLVMBuildXor(e->b, mul(e, e->lane, imm(e, bytes)), imm(e, r % 8 * 16), "");
        LLVMValueRef to = byte_offset(e, tile, add(e, unit, imm(e, r * s->c.row_bytes)));
        LLVMSetAlignment(LLVMBuildStore(e->b, channel_words(&s->c, e->p->shape.io, x), to), bytes);
    }
}

/* ---- products -------------------------------------------------------------------------------------------------------- */

/* The sums of 32 channels, two 16 x 8 tiles and two, times a float a channel. */
static void decay_sums(const struct spread *s, uint32_t group, LLVMValueRef by, LLVMValueRef sums[16])
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

/* sums += the warp's rows of P by 32 channels of a block of X. */
static void multiply_block_of(const struct spread *s, uint32_t group, uint32_t block, const LLVMValueRef rows[4],
                              LLVMValueRef sums[16])
{
    struct emit *e = s->c.e;
    LLVMValueRef in_matrix = modulo(e, e->lane, imm(e, 8)), low = modulo(e, divide(e, e->lane, imm(e, 8)), imm(e, 2)),
                 high = divide(e, e->lane, imm(e, 16));
    LLVMValueRef row = add(e, add(e, in_matrix, mul(e, low, imm(e, 8))), imm(e, ROWS * block));
    LLVMValueRef from = byte_offset(e, spread_scratch(s, 0), mul(e, row, imm(e, s->c.row_bytes)));
    LLVMValueRef unit = LLVMBuildXor(e->b, high, in_matrix, "");
    for (uint32_t t = 0; t < GROUP / 16; t++) {
        LLVMValueRef columns[4], c[8];
        LLVMValueRef at = LLVMBuildXor(e->b, unit, imm(e, GROUP / 8 * group + 2 * t), "");
        fetch_matrices(e, byte_offset(e, from, mul(e, at, imm(e, 16))), true, columns);
        for (uint32_t i = 0; i < 8; i++)
            c[i] = get(e, e->f32, sums[8 * t + i]);
        for (uint32_t half = 0; half < 2; half++)
            multiply_words(e, &c[4 * half], rows, columns[2 * half], columns[2 * half + 1]);
        for (uint32_t i = 0; i < 8; i++)
            set(e, sums[8 * t + i], c[i]);
    }
}

/* sums += what 32 channels of the warp's rows have of each other, each by those it reaches beside itself. */
static void multiply_own(const struct spread *s, uint32_t group, LLVMValueRef rows[2][4], LLVMValueRef sums[16])
{
    struct emit *e = s->c.e;
    LLVMValueRef from = byte_offset(e, sums_address(s),
                                    add(e, mul(e, e->quad_column, imm(e, 4 * s->c.n)), mul(e, e->quad_row, imm(e, 4))));
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t t = 0; t < GROUP / 8; t++) {
            LLVMValueRef columns[2], c[4];
            LLVMValueRef unit = LLVMBuildXor(e->b, e->quad_column, imm(e, GROUP / 8 * group + t), "");
            for (uint32_t i = 0; i < 2; i++) {
                LLVMValueRef at = add(e, mul(e, unit, imm(e, 32)), imm(e, (8 * k + 4 * i) * 4 * s->c.n));
                columns[i] = LLVMBuildLoad2(e->b, e->i32, byte_offset(e, from, at), "");
            }
            for (uint32_t i = 0; i < 4; i++)
                c[i] = get(e, e->f32, sums[4 * t + i]);
            multiply_tf32(e, c, rows[k], columns);
            for (uint32_t i = 0; i < 4; i++)
                set(e, sums[4 * t + i], c[i]);
        }
    }
}

static void leave_sums(const struct spread *s, uint32_t group, LLVMValueRef sums[16])
{
    struct emit *e = s->c.e;
    LLVMValueRef to = byte_offset(e, sums_address(s),
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

/* The warp's rows by the blocks that they reach, from the farthest on, and by their own where that is near. */
static void multiply_blocks(const struct spread *s)
{
    struct emit *e = s->c.e;
    LLVMValueRef rows[WARPS][4], own[2][4], sums[16];
    for (uint32_t w = 0; w < WARPS; w++)
        fetch_weights(s, w, rows[w]);
    for (uint32_t k = 0; k < 2; k++)
        fetch_own(s, k, own[k]);
    for (uint32_t i = 0; i < 16; i++)
        sums[i] = local(e, e->f32, "far");
    for (uint32_t group = 0; group < s->c.n / GROUP; group++) {
        for (uint32_t i = 0; i < 16; i++)
            set(e, sums[i], real(e, 0));
        for (uint32_t k = 0; k + 1 < WARPS; k++) {
            const uint32_t block = s->by_query ? k : WARPS - 1 - k;
            LLVMValueRef reached = s->by_query ? less(e, imm(e, block), e->warp) : less(e, e->warp, imm(e, block));
            LLVMBasicBlockRef after = begin_if(e, reached);
            if (k)
                decay_sums(s, group, vector_address(s, WHOLES, imm(e, block)), sums);
            multiply_block_of(s, group, block, rows[block], sums);
            end_if(e, after);
        }
        decay_sums(s, group, vector_address(s, HALVES, e->warp), sums);
        LLVMBasicBlockRef after = begin_if(e, s->near);
        multiply_own(s, group, own, sums);
        end_if(e, after);
        sync_warp(e); /* X has been read where sums go */
        leave_sums(s, group, sums);
    }
}

/* ---- the diagonal block ---------------------------------------------------------------------------------------------- */

/* What row r gives itself is added to out. */
static void add_own(const struct spread *s, uint32_t r, LLVMValueRef out[8])
{
    struct emit *e = s->c.e;
    LLVMValueRef weight;
    if (s->strict)
        return;
    load_weights(s, r, 1, r, &weight);
    for (uint32_t j = 0; j < s->c.each; j++) {
        LLVMValueRef x = spread_term(s, r, j);
        if (decays_apart(s))
            x = LLVMBuildFMul(e->b, x, two_to(e, query_decay(&s->c, s->op, r, j), key_decay(&s->c, s->op, r, j)), "");
        out[j] = fma_of(e, weight, x, out[j]);
    }
}

/* What the sums begin with: -1: nothing. */
static int start_of(const struct plan *p, const struct op *op)
{
    for (const struct op *before = op; before-- > p->ops;)
        if ((before->kind == OP_COPY || before->kind == OP_ZERO) && before->v == op->v)
            return before->kind == OP_COPY ? before->a : -1;
    return -1;
}

/* What a row begins with, what other blocks give it, and what itself. */
static void begin_row(const struct spread *s, uint32_t r)
{
    struct emit *e = s->c.e;
    const int from = start_of(e->p, s->op);
    LLVMValueRef far[8], out[8];
    load_floats(s, sums_of_row(s, r), far);
    for (uint32_t j = 0; j < s->c.each; j++) {
        LLVMValueRef start = from < 0 ? real(e, 0) : channel_element(e, (uint32_t)from, r * s->c.each + j);
        out[j] = fma_of(e, spread_row_factor(s, r, j, s->of_rows[j]), far[j], start);
    }
    add_own(s, r, out);
    for (uint32_t j = 0; j < s->c.each; j++)
        set(e, e->registers[s->op->v][r * s->c.each + j], out[j]);
}

/* ---------------------------------------------------------------------------------------------------------------------- */

static bool is_last(const struct plan *p, const struct op *op)
{
    bool is = true;
    for (const struct op *other = op + 1; other < p->ops + p->n_ops; other++)
        is &= !plan_is_spread(p, other);
    return is;
}

void emit_spread(struct emit *e, const struct op *op)
{
    const uint32_t weights = plan_spread_weights(e->p, op), rows = e->p->values[op->v].dims[0];
    struct spread s = {.c = channels_of(e),
                       .op = op,
                       .weights = weights,
                       .terms = weights == op->a ? op->b : op->a,
                       .by_query = rows == TG_LQ,
                       .strict = e->p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE,
                       .turned = e->p->values[weights].dims[0] != rows};
    find_ends(&s);
    clear_behind(&s);
    put_terms(&s);
    put_weights(&s);
    barrier(e); /* all of X is there */
    multiply_blocks(&s);
    sync_warp(e);
    for (uint32_t r = 0; r < ROWS; r++) {
        if (r % 4 == 0)
            sync_warp(e);
        begin_row(&s, r);
    }
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, s.near, ""));
    add_pairs_by_halves(&s);
    end_if(e, after);
    if (is_last(e->p, op))
        spread_load_again(&s.c);
}
