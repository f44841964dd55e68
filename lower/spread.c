/* lower/spread.c - gradients of products that decay, of values of channels (lower/channel.c):
 *
 *     Out_px = start_px + sum_q P_pq X_qx 2^(b_ix - b_jx)        (p, q) is (i, j) or (j, i): queries i, keys j
 *
 * P is in accumulators, a warp's 16 rows of 64; all else by channels. Blocks are of 16 positions.
 *
 *     other blocks    X goes to shared memory, rounded, times what is between it and its block's end: the start where
 *                     it is queries, the last position where it is keys. Each warp multiplies its rows by the blocks that they
 *                     reach, from the farthest to the nearest; from one to the next what is there decays by all of a block.
 *     a diagonal one  where it decays by little, the last of them: its X counts from where sums are, the start of the block where they
 *                     are queries, so that it grows by as much as the block decays; it is not rounded to 16 bits but cut to TF32.
 *                     Otherwise pairs are taken by halves in fp32, as in channel.c, and no factor is above 1. A position's own weight
 *                     has none, and goes through no tensor core: what it gives must cancel (gradients of gates).
 *
 * In the end the rows' own factor is put on: from that start, or end, of their block to themselves. The weights P may lie the other way
 * round, queries in rows where the result has keys: then they turn in shared memory.
 *
 * Only what is reached is touched, so that nothing bad leaks from elsewhere. Shared memory: X; X of diagonal blocks in fp32, and in
 * its place sums, which change from accumulators to channels there; vectors of channels; diagonal blocks of P; P, to turn. */
#include "compiler/plan_channel.h"
#include "lower/spread.h"

#include "lower/matrix.h"

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS };

/* ---- shared memory --------------------------------------------------------------------------------------------------- */

LLVMValueRef spread_scratch(const struct spread *s, uint32_t offset)
{
    return byte_offset(s->c.e, s->c.e->arena, imm(s->c.e, s->c.e->p->scratch_offset + offset));
}

LLVMValueRef spread_sums_address(const struct spread *s)
{
    struct emit *e = s->c.e;
    return byte_offset(e, spread_scratch(s, WARPS * ROWS * s->c.row_bytes), mul(e, e->warp, imm(e, ROWS * 4 * s->c.n)));
}

LLVMValueRef spread_vector(const struct spread *s, enum spread_vector which, LLVMValueRef w)
{
    struct emit *e = s->c.e;
    const uint32_t offset = plan_spread_vectors(e->p) + which * WARPS * 4 * s->c.n;
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

/* The ends of all blocks, and of each what it decays by, to all warps. A block is near where that is little: not where it is a NaN. */
static void find_ends(struct spread *s, struct spread_ends *ends)
{
    struct emit *e = s->c.e;
    LLVMValueRef none = LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, 0), ""), whole[8];
    ends->near = LLVMConstInt(e->i1, 1, 0);
    for (uint32_t j = 0; j < s->c.each; j++)
        ends->end[j] = forgotten(e, key_decay(&s->c, s->op, ROWS - 1, j));
    store_floats(s, lane_floats(s, spread_vector(s, SPREAD_ENDS, e->warp)), ends->end);
    barrier(e);
    LLVMValueRef before = choose(e, none, imm(e, 0), sub(e, e->warp, imm(e, 1)));
    load_floats(s, lane_floats(s, spread_vector(s, SPREAD_ENDS, before)), ends->begin);
    for (uint32_t j = 0; j < s->c.each; j++) {
        ends->begin[j] = forgotten(e, choose(e, none, real(e, 0), ends->begin[j]));
        whole[j] = two_to(e, ends->end[j], ends->begin[j]);
        LLVMValueRef growth = LLVMBuildFSub(e->b, ends->begin[j], ends->end[j], "");
        LLVMValueRef is_little = LLVMBuildFCmp(e->b, LLVMRealOLE, growth, real(e, SPREAD_GROWTH), "");
        ends->near = both(e, ends->near, is_little);
    }
    ends->near = all_lanes(e, ends->near);
    store_floats(s, lane_floats(s, spread_vector(s, SPREAD_WHOLES, e->warp)), whole);
}

/* What factors refer to. Those of rows: where their block begins, or its end. */
static void find_references(struct spread *s)
{
    struct emit *e = s->c.e;
    struct spread_ends *ends = &e->ends;
    if (!ends->near || ends->decay != s->op->w)
        find_ends(s, ends);
    else if (ends->is_read)
        barrier(e);
    ends->decay = s->op->w;
    ends->is_read = true;
    s->near = ends->near;
    for (uint32_t j = 0; j < s->c.each; j++) {
        LLVMValueRef to = s->by_query ? ends->end[j] : ends->begin[j];
        s->of_rows[j] = s->by_query ? ends->begin[j] : ends->end[j];
        s->of_terms[j] = forgotten(e, choose(e, s->near, s->of_rows[j], to));
        s->to_end[j] = choose(e, s->near, two_to(e, ends->end[j], ends->begin[j]), real(e, 1));
    }
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
    return byte_offset(e, spread_sums_address(s), add(e, place, imm(e, r * 4 * s->c.n)));
}

/* A row of X: for the diagonal block, and as the end of its block has it. */
struct term_row {
    LLVMValueRef own[8], x[8];
};

static void make_terms(const struct spread *s, uint32_t r, LLVMValueRef factors[8], struct term_row *row)
{
    struct emit *e = s->c.e;
    for (uint32_t j = 0; j < s->c.each; j++) {
        if (!factors[j])
            factors[j] = spread_term_factor(s, r, j, s->of_terms[j]);
        row->own[j] = LLVMBuildFMul(e->b, spread_term(s, r, j), factors[j], "");
        row->x[j] = LLVMBuildFMul(e->b, row->own[j], s->to_end[j], "");
    }
}

/* To shared memory, the latter rounded, units of 16 bytes exclusive-ored with the row. */
static void put_row(const struct spread *s, uint32_t r, const struct term_row *row)
{
    struct emit *e = s->c.e;
    const uint32_t bytes = 2 * s->c.each;
    LLVMValueRef tile = byte_offset(e, spread_scratch(s, 0), mul(e, s->c.row, imm(e, s->c.row_bytes)));
    LLVMValueRef unit = LLVMBuildXor(e->b, mul(e, e->lane, imm(e, bytes)), imm(e, r % 8 * 16), "");
    LLVMValueRef to = byte_offset(e, tile, add(e, unit, imm(e, r * s->c.row_bytes)));
    store_floats(s, sums_of_row(s, r), row->own);
    LLVMSetAlignment(LLVMBuildStore(e->b, channel_words(&s->c, e->p->shape.io, row->x), to), bytes);
}

/* Some rows are made before they are put: no load waits for a store that ptxas cannot tell apart. */
static void put_terms(const struct spread *s, LLVMValueRef factors[ROWS][8])
{
    enum { TOGETHER = 8 };
    for (uint32_t first = 0; first < ROWS; first += TOGETHER) {
        struct term_row rows[TOGETHER];
        for (uint32_t r = 0; r < TOGETHER; r++)
            make_terms(s, first + r, factors[first + r], &rows[r]);
        for (uint32_t r = 0; r < TOGETHER; r++)
            put_row(s, first + r, &rows[r]);
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

/* What a row begins with, what other blocks give it, and what itself, by each of the products. */
static void begin_row(const struct spread *parts, uint32_t n, uint32_t r, LLVMValueRef factors[8])
{
    const struct spread *s = parts;
    struct emit *e = s->c.e;
    const int from = plan_spread_start(e->p, n > 1 ? parts[1].op : s->op);
    LLVMValueRef far[8], out[8];
    load_floats(s, sums_of_row(s, r), far);
    for (uint32_t j = 0; j < s->c.each; j++) {
        LLVMValueRef start = from < 0 ? real(e, 0) : channel_element(e, (uint32_t)from, r * s->c.each + j);
        if (!factors[j])
            factors[j] = spread_row_factor(s, r, j, s->of_rows[j]);
        out[j] = fma_of(e, factors[j], far[j], start);
    }
    for (uint32_t x = 0; x < n; x++)
        add_own(&parts[x], r, out);
    for (uint32_t j = 0; j < s->c.each; j++)
        set(e, e->registers[s->out][r * s->c.each + j], out[j]);
}

/* The rows of one result, of `n` products: their sums are left where channels read them. Rows' factors are made once. */
static void finish_rows(const struct spread *parts, uint32_t n, const LLVMValueRef sums[SPREAD_SUMS],
                        LLVMValueRef factors[ROWS][8])
{
    struct emit *e = parts->c.e;
    leave_sums(parts, sums);
    for (uint32_t r = 0; r < ROWS; r++)
        begin_row(parts, n, r, factors[r]);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, parts->near, ""));
    for (uint32_t x = 0; x < n; x++)
        add_pairs_by_halves(&parts[x]);
    end_if(e, after);
}

/* ---------------------------------------------------------------------------------------------------------------------- */

/* The product; by the same decays as `like`, if it is given. */
static struct spread describe(struct emit *e, const struct op *op, const struct spread *like)
{
    const uint32_t weights = plan_spread_weights(e->p, op), rows = e->p->values[op->v].dims[0];
    struct spread s = like ? *like : (struct spread){.c = channels_of(e)};
    s.op = op;
    s.out = op->v;
    s.weights = weights;
    s.terms = weights == op->a ? op->b : op->a;
    s.by_query = rows == TG_LQ;
    s.strict = e->p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE;
    s.turned = e->p->values[weights].dims[0] != rows;
    return s;
}

/* X, and weights, of products with the same X. */
static void put_operands_of(const struct spread *parts, uint32_t n, LLVMValueRef factors[ROWS][8])
{
    put_terms(parts, factors);
    for (uint32_t x = 0; x < n; x++)
        put_weights(&parts[x]);
    barrier(parts->c.e); /* all of X is there */
}

/* A product onto another one, or with another one that has the same X; or alone. */
static void emit_products(struct emit *e, const struct op *op)
{
    const struct op *onto = plan_spread_onto(e->p, op), *beside = plan_spread_beside(e->p, op);
    struct spread parts[2] = {describe(e, op, NULL)};
    LLVMValueRef sums[2][SPREAD_SUMS], of_rows[ROWS][8] = {{NULL}}, of_terms[ROWS][8] = {{NULL}};
    find_references(&parts[0]);
    clear_behind(&parts[0]);
    if (onto || beside)
        parts[1] = describe(e, onto ? onto : beside, &parts[0]);
    for (uint32_t x = 0; x < (beside ? 2 : 1); x++)
        new_sums(&parts[x], sums[x]);
    if (onto) {
        put_operands_of(&parts[1], 1, of_terms);
        multiply_blocks(&parts[1], 1, false, sums);
        barrier(e); /* its X has been read */
        parts[1].out = parts[0].out;
    }
    put_operands_of(parts, beside ? 2 : 1, of_terms);
    multiply_blocks(parts, beside ? 2 : 1, onto, sums);
    finish_rows(parts, onto ? 2 : 1, sums[0], of_rows);
    if (beside)
        finish_rows(&parts[1], 1, sums[1], of_rows);
}

static bool is_last(const struct plan *p, const struct op *op)
{
    bool is = true;
    for (const struct op *other = op + 1; other < p->ops + p->n_ops; other++)
        is &= !plan_is_spread(p, other);
    return is;
}

void emit_spread(struct emit *e, const struct op *op)
{
    if (!plan_spread_is_part(e->p, op))
        emit_products(e, op);
    const struct channels c = channels_of(e);
    if (is_last(e->p, op))
        spread_load_again(&c);
}
