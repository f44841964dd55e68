/* lower/spread.c - gradients of products that decay, of values of channels (lower/channel.c):
 *
 *     Out_px = start_px + sum_q P_pq X_qx 2^(b_ix - b_jx)        (p, q) is (i, j) or (j, i): queries i, keys j
 *
 * P is in accumulators, a warp's 16 rows of 64; all else by channels. Blocks are of 16 positions.
 *
 *     other blocks    X goes to shared memory, rounded, times what is between it and its block's end: the start where
 *                     it is queries, the last position where it is keys. Each warp multiplies its rows by the blocks that they
 *                     reach, from the farthest to the nearest; from one to the next what is there decays by all of a block.
 *                     In the end it decays by what is between the rows and their own block's end. No factor is above 1.
 *     a diagonal one  in fp32, each lane for its channels: all lanes read the same weight. Decays count from the middle of
 *                     the block where none is large; otherwise pairs are taken by halves, as in channel.c, and no
 *                     factor is above 1. A position's own weight has none: what it gives must cancel (gradients of gates).
 *
 * Only what is reached is touched, so that nothing bad leaks from elsewhere. Shared memory: X; sums of other blocks, which
 * change from accumulators to channels there; ends of the blocks and what a block decays by; diagonal blocks of P. */
#include "lower/channel.h"

#include "lower/matrix.h"

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS, GROUP = 32 /* channels that are multiplied at a time */ };

struct spread {
    struct channels c;
    const struct op *op;
    uint32_t weights, terms; /* values: P and X */
    bool by_query;           /* rows are queries; else keys */
    bool strict;             /* a query does not reach its own position */
    LLVMValueRef begin[8], middle[8],
        end[8]; /* the keys' decay before the warp's rows, in their middle, of their last */
};

/* ---- shared memory --------------------------------------------------------------------------------------------------- */

static LLVMValueRef scratch(const struct spread *s, uint32_t offset)
{
    return byte_offset(s->c.e, s->c.e->arena, imm(s->c.e, s->c.e->p->scratch_offset + offset));
}

/* This warp's sums of other blocks: 16 rows of floats, units of 32 bytes exclusive-ored with the row. */
static LLVMValueRef sums_address(const struct spread *s)
{
    struct emit *e = s->c.e;
    return byte_offset(e, scratch(s, WARPS * ROWS * s->c.row_bytes), mul(e, e->warp, imm(e, ROWS * 4 * s->c.n)));
}

/* A float a channel of block w: its last position's decay, or what all of it decays by. */
static LLVMValueRef vector_address(const struct spread *s, bool is_whole, LLVMValueRef w)
{
    struct emit *e = s->c.e;
    const uint32_t offset = SPREAD_TILES * WARPS * ROWS * s->c.row_bytes + (is_whole ? WARPS * 4 * s->c.n : 0);
    return byte_offset(e, scratch(s, offset), mul(e, w, imm(e, 4 * s->c.n)));
}

/* This warp's diagonal block of P: 16 rows of 16 floats. */
static LLVMValueRef own_address(const struct spread *s)
{
    struct emit *e = s->c.e;
    const uint32_t offset = SPREAD_TILES * WARPS * ROWS * s->c.row_bytes + 2 * WARPS * 4 * s->c.n;
    return byte_offset(e, scratch(s, offset), mul(e, e->warp, imm(e, ROWS * ROWS * 4)));
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

static LLVMValueRef query_decay(const struct spread *s, uint32_t r, uint32_t j)
{
    return channel_element(s->c.e, s->op->c, r * s->c.each + j);
}

static LLVMValueRef key_decay(const struct spread *s, uint32_t r, uint32_t j)
{
    return channel_element(s->c.e, s->op->w, r * s->c.each + j);
}

static LLVMValueRef two_to(struct emit *e, LLVMValueRef later, LLVMValueRef earlier)
{
    return exp2_approx(e, LLVMBuildFSub(e->b, later, earlier, ""));
}

/* The same number, of which nothing that was made of it before is kept. */
static LLVMValueRef forgotten(struct emit *e, LLVMValueRef x)
{
    return as(e, opaque(e, as(e, x, e->i32)), e->f32);
}

/* What a row, or what it reaches, decays by between its position and another decay. */
static LLVMValueRef row_factor(const struct spread *s, uint32_t r, uint32_t j, LLVMValueRef other)
{
    return s->by_query ? two_to(s->c.e, query_decay(s, r, j), other) : two_to(s->c.e, other, key_decay(s, r, j));
}

static LLVMValueRef term_factor(const struct spread *s, uint32_t r, uint32_t j, LLVMValueRef other)
{
    return s->by_query ? two_to(s->c.e, other, key_decay(s, r, j)) : two_to(s->c.e, query_decay(s, r, j), other);
}

/* The ends of all blocks, and of each what it decays by, to all warps. */
static void find_ends(struct spread *s)
{
    struct emit *e = s->c.e;
    LLVMValueRef none = LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, 0), ""), whole[8];
    for (uint32_t j = 0; j < s->c.each; j++) {
        s->middle[j] = forgotten(e, key_decay(s, ROWS / 2 - 1, j));
        s->end[j] = forgotten(e, key_decay(s, ROWS - 1, j));
    }
    barrier(e); /* what was there has been read */
    store_floats(s, lane_floats(s, vector_address(s, false, e->warp)), s->end);
    barrier(e);
    LLVMValueRef before = choose(e, none, imm(e, 0), sub(e, e->warp, imm(e, 1)));
    load_floats(s, lane_floats(s, vector_address(s, false, before)), s->begin);
    for (uint32_t j = 0; j < s->c.each; j++) {
        s->begin[j] = choose(e, none, real(e, 0), s->begin[j]);
        whole[j] = two_to(e, s->end[j], s->begin[j]);
    }
    store_floats(s, lane_floats(s, vector_address(s, true, e->warp)), whole);
}

static LLVMValueRef is_little(struct emit *e, LLVMValueRef so_far, LLVMValueRef from, LLVMValueRef to)
{
    LLVMValueRef growth = LLVMBuildFSub(e->b, from, to, "");
    return both(e, so_far, LLVMBuildFCmp(e->b, LLVMRealOLE, growth, real(e, SPREAD_GROWTH), ""));
}

/* Do all channels decay by little from before the warp's rows to their middle, and from there to their end? Not where there is a NaN. */
static LLVMValueRef is_near(const struct spread *s)
{
    struct emit *e = s->c.e;
    LLVMValueRef near = NULL;
    for (uint32_t j = 0; j < s->c.each; j++) {
        near = is_little(e, near, s->begin[j], s->middle[j]);
        near = is_little(e, near, s->middle[j], s->end[j]);
    }
    return all_lanes(e, near);
}

/* ---- other blocks ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef term(const struct spread *s, uint32_t r, uint32_t j)
{
    return channel_element(s->c.e, s->terms, r * s->c.each + j);
}

/* Are there decays of queries other than those of keys? */
static bool decays_apart(const struct spread *s)
{
    const struct value *values = s->c.e->p->values;
    return TG_OPERAND_TILE(values[s->op->c].operand) != TG_OPERAND_TILE(values[s->op->w].operand);
}

/* Queries behind the end of the chunk count as zero, in their registers, and decay as keys there: one that decays by less than the
 * last key would be infinity times zero. */
static void clear_behind(const struct spread *s)
{
    struct emit *e = s->c.e;
    for (uint32_t r = 0; r < ROWS && !s->by_query; r++) {
        LLVMValueRef there = less(e, add(e, s->c.row, imm(e, r)), e->at.length);
        for (uint32_t j = 0; j < s->c.each; j++) {
            const uint32_t i = r * s->c.each + j;
            LLVMValueRef slot = e->registers[s->terms][i], decay = e->registers[s->op->c][i];
            set(e, slot, choose(e, there, get(e, e->f32, slot), real(e, 0)));
            if (decays_apart(s))
                set(e, decay, choose(e, there, get(e, e->f32, decay), key_decay(s, r, j)));
        }
    }
}

/* The warp's rows of X, as the end of their block has them, rounded: units of 16 bytes, exclusive-ored with the row. */
static void put_terms(const struct spread *s)
{
    struct emit *e = s->c.e;
    const uint32_t bytes = 2 * s->c.each;
    LLVMValueRef tile = byte_offset(e, scratch(s, 0), mul(e, s->c.row, imm(e, s->c.row_bytes)));
    for (uint32_t r = 0; r < ROWS; r++) {
        LLVMValueRef x[8];
        for (uint32_t j = 0; j < s->c.each; j++)
            x[j] = LLVMBuildFMul(e->b, term(s, r, j), term_factor(s, r, j, s->by_query ? s->end[j] : s->begin[j]), "");
        LLVMValueRef unit = LLVMBuildXor(e->b, mul(e, e->lane, imm(e, bytes)), imm(e, r % 8 * 16), "");
        LLVMValueRef to = byte_offset(e, tile, add(e, unit, imm(e, r * s->c.row_bytes)));
        LLVMSetAlignment(LLVMBuildStore(e->b, channel_words(&s->c, e->p->shape.io, x), to), bytes);
    }
}

/* The diagonal block of the warp's rows of P, which is the block of columns that has the warp's number: column by column. */
static void put_own(const struct spread *s)
{
    struct emit *e = s->c.e;
    LLVMValueRef *p = e->registers[s->weights];
    LLVMValueRef at = add(e, mul(e, e->quad_column, imm(e, 2 * ROWS * 4)), mul(e, e->quad_row, imm(e, 4)));
    LLVMValueRef block = byte_offset(e, own_address(s), at);
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t row = i % 4 / 2 * 8, column = i / 4 * 8 + i % 2;
        LLVMValueRef own = get(e, e->f32, p[i]);
        for (uint32_t w = 1; w < WARPS; w++) {
            LLVMValueRef is_own = LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, w), "");
            own = choose(e, is_own, get(e, e->f32, p[8 * w + i]), own);
        }
        LLVMBuildStore(e->b, own, byte_offset(e, block, imm(e, (column * ROWS + row) * 4)));
    }
}

/* The sums of 32 channels, which have come past the block before this one, come past this one: two 16 x 8 tiles and two. */
static void decay_by_block(const struct spread *s, uint32_t group, uint32_t block, LLVMValueRef sums[16])
{
    struct emit *e = s->c.e;
    LLVMValueRef from = byte_offset(e, vector_address(s, true, imm(e, block)),
                                    add(e, mul(e, e->quad_column, imm(e, 8)), imm(e, 4 * GROUP * group)));
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
    LLVMValueRef from = byte_offset(e, scratch(s, 0), mul(e, row, imm(e, s->c.row_bytes)));
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

/* The warp's rows by the blocks that they reach but their own, from the farthest on. */
static void multiply_others(const struct spread *s)
{
    struct emit *e = s->c.e;
    LLVMValueRef rows[WARPS][4], sums[16];
    for (uint32_t w = 0; w < WARPS; w++)
        pack_fragment(e, s->weights, 0, w, rows[w]);
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
                decay_by_block(s, group, block, sums);
            multiply_block_of(s, group, block, rows[block], sums);
            end_if(e, after);
        }
        leave_sums(s, group, sums);
    }
}

static void load_sums(const struct spread *s, uint32_t r, LLVMValueRef out[8])
{
    struct emit *e = s->c.e;
    LLVMValueRef place = LLVMBuildXor(e->b, mul(e, s->c.first, imm(e, 4)), imm(e, r % 4 * 32), "");
    load_floats(s, byte_offset(e, sums_address(s), add(e, place, imm(e, r * 4 * s->c.n))), out);
}

/* ---- the diagonal block ---------------------------------------------------------------------------------------------- */

/* P of so many rows of the diagonal block, 4 or more of them, or one, by column q. */
static void load_weights(const struct spread *s, uint32_t row, uint32_t rows, uint32_t q, LLVMValueRef *out)
{
    struct emit *e = s->c.e;
    const uint32_t together = rows < 4 ? rows : 4;
    for (uint32_t r = 0; r < rows; r += together) {
        LLVMValueRef from = byte_offset(e, own_address(s), imm(e, (q * ROWS + row + r) * 4));
        LLVMValueRef x = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, together), from, "");
        LLVMSetAlignment(x, 4 * together);
        for (uint32_t i = 0; i < together; i++)
            out[r + i] = LLVMBuildExtractElement(e->b, x, imm(e, i), "");
    }
}

/* What row r gives itself is added to out. */
static void add_own(const struct spread *s, uint32_t r, LLVMValueRef out[8])
{
    struct emit *e = s->c.e;
    LLVMValueRef weight;
    if (s->strict)
        return;
    load_weights(s, r, 1, r, &weight);
    for (uint32_t j = 0; j < s->c.each; j++) {
        LLVMValueRef x = term(s, r, j);
        if (decays_apart(s))
            x = LLVMBuildFMul(e->b, x, two_to(e, query_decay(s, r, j), key_decay(s, r, j)), "");
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
    load_sums(s, r, far);
    if (from >= 0)
        spread_load_with(&s->c, (uint32_t)from, r);
    for (uint32_t j = 0; j < s->c.each; j++) {
        LLVMValueRef start = from < 0 ? real(e, 0) : channel_element(e, (uint32_t)from, r * s->c.each + j);
        out[j] = fma_of(e, row_factor(s, r, j, s->by_query ? s->begin[j] : s->end[j]), far[j], start);
    }
    add_own(s, r, out);
    for (uint32_t j = 0; j < s->c.each; j++)
        set(e, e->registers[s->op->v][r * s->c.each + j], out[j]);
}

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
            LLVMValueRef x = LLVMBuildFMul(e->b, term(s, q, j + i), term_factor(s, q, j + i, reference[j + i]), "");
            for (uint32_t r = 0; r < rows; r++)
                if (s->by_query ? q < row + r : q > row + r)
                    sums[r][i] = fma_of(e, weights[r], x, sums[r][i]);
        }
    }
    for (uint32_t i = 0; i < 2 * rows; i++) {
        const uint32_t r = row + i / 2, k = j + i % 2;
        LLVMValueRef slot = e->registers[s->op->v][r * s->c.each + k];
        set(e, slot, fma_of(e, row_factor(s, r, k, reference[k]), sums[i / 2][i % 2], get(e, e->f32, slot)));
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

static void add_near(const struct spread *s)
{
    for (uint32_t row = 0; row < ROWS; row += 8)
        add_pairs(s, row, 8, s->by_query ? 0 : row + 1, s->by_query ? row + 7 : ROWS, s->middle);
}

/* Of 2, 4, 8, 16 rows the queries are one half and the keys the other; the reference is the last key. */
static void add_halves(const struct spread *s)
{
    for (uint32_t half = ROWS / 2; half; half /= 2)
        for (uint32_t base = 0; base < ROWS; base += 2 * half) {
            const uint32_t first = s->by_query ? base : base + half, row = s->by_query ? base + half : base;
            LLVMValueRef reference[8];
            for (uint32_t j = 0; j < s->c.each; j++)
                reference[j] = key_decay(s, base + half - 1, j);
            add_pairs(s, row, half, first, first + half, reference);
        }
}

/* ---------------------------------------------------------------------------------------------------------------------- */

void emit_spread(struct emit *e, const struct op *op)
{
    const bool in_order = e->p->values[op->a].space == SPACE_FRAGMENT;
    struct spread s = {.c = channels_of(e),
                       .op = op,
                       .weights = in_order ? op->a : op->b,
                       .terms = in_order ? op->b : op->a,
                       .by_query = e->p->values[op->v].dims[0] == TG_LQ,
                       .strict = e->p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE};
    find_ends(&s);
    clear_behind(&s);
    put_terms(&s);
    put_own(&s);
    barrier(e); /* all of X is there */
    multiply_others(&s);
    sync_warp(e);
    for (uint32_t r = 0; r < ROWS; r++)
        begin_row(&s, r);
    LLVMValueRef near = is_near(&s);
    LLVMBasicBlockRef after = begin_if(e, near);
    add_near(&s);
    end_if(e, after);
    after = begin_if(e, LLVMBuildNot(e->b, near, ""));
    add_halves(&s);
    end_if(e, after);
}
