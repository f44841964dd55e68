/* lower/decay.c - products whose terms decay from the key's position to the query's.
 *
 *     pair    P_ij   = sum_c A_ic B_jc 2^(b_ic - b_jc)      channels are summed over
 *     spread  Out_px = sum_q P_pq X_qx 2^(b_ix - b_jx)      channels are columns of the result; (p, q) is (i, j) or (j, i)
 *
 * b_i - b_j <= 0, but 2^b_i 2^-b_j overflows. So every 16 rows of a warp's tile have a reference position r between them
 * and what they reach: their first one where they are queries, their last one where they are keys. Both factors of
 * 2^(b_i - b_r) 2^(b_r - b_j) are then at most 1 in every 16 x 16 block beyond the diagonal one, which goes through the
 * tensor cores with these factors on its operands. In the diagonal block the reference is in its middle, and one of the
 * factors grows: where no channel decays by more there than an operand can grow (is_near), it is a product of that kind too,
 * masked, in TF32 since most of a result that decays fast is from there; otherwise it is evaluated as it is written, in fp32. Blocks on the other side of the diagonal are not touched, so
 * that nothing bad leaks from there; nor does anything inside of a diagonal one, where what is not finite takes the other way.
 *
 * Behind the end of a chunk the decay in shared memory is 0, which is a growth beyond any decay before it: queries from
 * there on count as zero by selection, and blocks of nothing else are not touched. */
#include "lower/matrix.h"

#include <stdlib.h>
#include <string.h>

struct decayed {
    const struct op *op;
    struct shape shape; /* of the result */
    struct side rows, columns;
    bool by_query;           /* rows are queries; else keys */
    bool strict;             /* a query does not reach its own position */
    uint32_t gate, reached;  /* decay of the rows' positions, and of those they reach: values */
    LLVMValueRef first_row;  /* i32: this warp's first row inside the chunk */
    LLVMValueRef first;      /* ... and the first position that it may reach in this step */
    LLVMValueRef *reference; /* decay of the reference, by classes of channels */
    LLVMValueRef middle;     /* i32: of a diagonal block, the reference's row in it; NULL: another block */
    struct weight row_weight, reached_weight;
};

/* ---- positions ------------------------------------------------------------------------------------------------------- */

/* Does the query reach the key? Positions inside the chunk, i32. */
static LLVMValueRef reaches(struct emit *e, const struct decayed *d, LLVMValueRef row, LLVMValueRef other)
{
    LLVMValueRef query = d->by_query ? row : other, key = d->by_query ? other : row;
    LLVMValueRef after = LLVMBuildICmp(e->b, d->strict ? LLVMIntSGT : LLVMIntSGE, query, key, "");
    return LLVMBuildAnd(e->b, after, less(e, query, e->at.length), "");
}

typedef void block(struct emit *e, struct decayed *d, uint32_t m, uint32_t n);

double most_growth(const struct emit *e)
{
    return e->p->shape.io == TG_F16 ? 8 : 60;
}

LLVMValueRef all_lanes(struct emit *e, LLVMValueRef condition)
{
    LLVMValueRef args[2] = {imm(e, -1), condition};
    return call(e, "llvm.nvvm.vote.all.sync", NULL, 0, args, 2);
}

/* Decay of the m-th 16 rows at one of them. */
static LLVMValueRef decay_in(struct emit *e, const struct decayed *d, uint32_t m, LLVMValueRef row,
                             LLVMValueRef channel)
{
    return matrix_element(e, d->gate, add(e, add(e, d->rows.first[0], imm(e, 16 * m)), row), channel);
}

/* Do all channels of the m-th 16 rows decay by little, up to the middle row and from there on? The middle of those that the chunk
 * has. Not where there is a NaN. */
static LLVMValueRef is_near(struct emit *e, struct decayed *d, uint32_t m)
{
    const uint32_t n_channels = e->p->values[d->gate].extent[1];
    LLVMValueRef behind = sub(e, e->at.length, add(e, d->first_row, imm(e, 16 * m)));
    LLVMValueRef last = smaller(e, imm(e, 15), sub(e, behind, imm(e, 1))), near = NULL;
    d->middle = divide(e, last, imm(e, 2));
    for (uint32_t c = 0; c < n_channels; c += 32) {
        LLVMValueRef channel = n_channels - c < 32 ? modulo(e, e->lane, imm(e, 16)) : e->lane;
        channel = add(e, channel, imm(e, c));
        LLVMValueRef first = decay_in(e, d, m, imm(e, 0), channel), middle = decay_in(e, d, m, d->middle, channel),
                     end = decay_in(e, d, m, last, channel), most = real(e, most_growth(e));
        near = both(e, near, LLVMBuildFCmp(e->b, LLVMRealOLE, LLVMBuildFSub(e->b, first, middle, ""), most, ""));
        near = both(e, near, LLVMBuildFCmp(e->b, LLVMRealOLE, LLVMBuildFSub(e->b, middle, end, ""), most, ""));
    }
    return all_lanes(e, near);
}

/* The m-th 16 rows and the n-th 16 positions that they may reach: calls one of the two if they do. */
static void for_block(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, block *beyond, block *diagonal)
{
    LLVMValueRef row = add(e, d->first_row, imm(e, 16 * m)), other = add(e, d->first, imm(e, 16 * n));
    LLVMValueRef query = d->by_query ? row : other, key = d->by_query ? other : row;
    LLVMValueRef there = less(e, query, e->at.length);
    LLVMBasicBlockRef after = begin_if(e, both(e, there, less(e, key, query)));
    beyond(e, d, m, n);
    end_if(e, after);
    after = begin_if(e, both(e, there, LLVMBuildICmp(e->b, LLVMIntEQ, key, query, "")));
    diagonal(e, d, m, n);
    end_if(e, after);
}

/* Index in its block of a row of this lane: r-th of the two in the m-th 16. */
static LLVMValueRef lane_row(struct emit *e, const struct decayed *d, uint32_t m, uint32_t r)
{
    return add(e, add(e, d->rows.first[0], e->quad_row), imm(e, 16 * m + 8 * r));
}

/* Index in its block of a column of this lane: c-th of the four in the n-th 16. */
static LLVMValueRef lane_column(struct emit *e, const struct decayed *d, uint32_t n, uint32_t c)
{
    LLVMValueRef first = add(e, d->columns.first[0], mul(e, e->quad_column, imm(e, 2)));
    return add(e, first, imm(e, 16 * n + c / 2 * 8 + c % 2));
}

/* Decay at the reference of the m-th 16 rows. */
static LLVMValueRef reference_at(struct emit *e, const struct decayed *d, uint32_t m, LLVMValueRef channel)
{
    return decay_in(e, d, m, d->middle ? d->middle : imm(e, d->by_query ? 0 : 15), channel);
}

/* 2^(decay of the query - decay of the key), of which one is of a row. */
static LLVMValueRef left_of(struct emit *e, const struct decayed *d, LLVMValueRef row, LLVMValueRef other)
{
    return exp2_approx(e, LLVMBuildFSub(e->b, d->by_query ? row : other, d->by_query ? other : row, ""));
}

static void forget(struct decayed *d)
{
    side_forget(&d->rows);
    side_forget(&d->columns);
}

/* ---- pair ------------------------------------------------------------------------------------------------------------ */

static uint32_t channels(const struct emit *e, const struct decayed *d)
{
    return e->p->values[d->gate].extent[1];
}

/* c += the product of a block with factors on both operands. */
static void multiply_pair(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, LLVMValueRef c[8])
{
    forget(d);
    for (uint32_t i = 0; i < channels(e, d) / 4; i++) { /* those of this lane, in steps of 16: 2 and, 8 further on, 2 */
        LLVMValueRef channel = add(e, mul(e, e->quad_column, imm(e, 2)), imm(e, i / 2 * 8 + i % 2));
        d->reference[i] = reference_at(e, d, m, channel);
    }
    d->rows.weight = &d->row_weight;
    d->columns.weight = &d->reached_weight;
    for (uint32_t k = 0; k < channels(e, d) / 16; k++)
        (d->middle ? multiply_finely : multiply_block)(e, &d->rows, &d->columns, m, n, k, c);
    d->rows.weight = d->columns.weight = NULL;
}

static void pair_beyond(struct emit *e, struct decayed *d, uint32_t m, uint32_t n)
{
    LLVMValueRef c[8], *sums = &e->registers[d->op->v][(m * d->shape.n + 2 * n) * 4];
    for (uint32_t r = 0; r < 8; r++)
        c[r] = get(e, e->f32, sums[r]);
    multiply_pair(e, d, m, n, c);
    for (uint32_t r = 0; r < 8; r++)
        set(e, sums[r], c[r]);
}

/* Adds what is of the diagonal block: row and column count from the first of the block, which are the same position. */
static void add_reached(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, LLVMValueRef c[8])
{
    LLVMValueRef *sums = &e->registers[d->op->v][(m * d->shape.n + 2 * n) * 4];
    for (uint32_t i = 0; i < 8; i++) {
        LLVMValueRef row = add(e, add(e, d->first_row, e->quad_row), imm(e, 16 * m + i % 4 / 2 * 8));
        LLVMValueRef other =
            add(e, add(e, d->first, mul(e, e->quad_column, imm(e, 2))), imm(e, 16 * n + i / 4 * 8 + i % 2));
        LLVMValueRef term = choose(e, reaches(e, d, row, other), c[i], real(e, 0));
        set(e, sums[i], LLVMBuildFAdd(e->b, get(e, e->f32, sums[i]), term, ""));
    }
}

/* One channel of the diagonal block: element r as in the accumulators of two 16 x 8 tiles. */
static void add_channel(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, LLVMValueRef channel,
                        LLVMValueRef sum[8])
{
    LLVMValueRef row[2], row_gate[2], column[4], column_gate[4];
    for (uint32_t r = 0; r < 2; r++) {
        row[r] = side_element(e, &d->rows, lane_row(e, d, m, r), r, channel, 0);
        row_gate[r] = matrix_element(e, d->gate, lane_row(e, d, m, r), channel);
    }
    for (uint32_t c = 0; c < 4; c++) {
        column[c] = side_element(e, &d->columns, lane_column(e, d, n, c), c, channel, 0);
        column_gate[c] = matrix_element(e, d->reached, lane_column(e, d, n, c), channel);
    }
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t r = i % 4 / 2, c = i / 4 * 2 + i % 2;
        LLVMValueRef x = LLVMBuildFMul(e->b, row[r], left_of(e, d, row_gate[r], column_gate[c]), "");
        set(e, sum[i], fma_of(e, x, column[c], get(e, e->f32, sum[i])));
    }
}

/* As it is written. */
static void pair_exactly(struct emit *e, struct decayed *d, uint32_t m, uint32_t n)
{
    LLVMValueRef sum[8], channel;
    for (uint32_t i = 0; i < 8; i++)
        set(e, sum[i] = local(e, e->f32, "pair"), real(e, 0));
    forget(d);
    struct counted l = loop_begin(e, imm(e, channels(e, d)), &channel);
    l.rolled = true;
    add_channel(e, d, m, n, channel, sum);
    loop_end(e, &l, 1);
    for (uint32_t i = 0; i < 8; i++)
        sum[i] = get(e, e->f32, sum[i]);
    add_reached(e, d, m, n, sum);
}

static void pair_diagonal(struct emit *e, struct decayed *d, uint32_t m, uint32_t n)
{
    LLVMValueRef near = is_near(e, d, m), c[8];
    LLVMBasicBlockRef after = begin_if(e, near);
    for (uint32_t i = 0; i < 8; i++)
        c[i] = real(e, 0);
    multiply_pair(e, d, m, n, c);
    add_reached(e, d, m, n, c);
    end_if(e, after);
    d->middle = NULL;
    after = begin_if(e, LLVMBuildNot(e->b, near, ""));
    pair_exactly(e, d, m, n);
    end_if(e, after);
}

/* ---- spread ---------------------------------------------------------------------------------------------------------- */

/* What the channels of this lane's fetched operands decay by to the reference. */
static void find_references(struct emit *e, struct decayed *d, uint32_t m)
{
    forget(d);
    for (uint32_t i = 0; i < d->shape.n; i++)
        d->reference[i] =
            reference_at(e, d, m, add(e, add(e, d->columns.first[0], divide(e, e->lane, imm(e, 4))), imm(e, 8 * i)));
}

/* c = the product of 16 positions by 16 channels; what the rows decay by is put on by add_spread. */
static void multiply_spread(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, uint32_t k, LLVMValueRef c[8])
{
    d->columns.weight = &d->reached_weight;
    for (uint32_t i = 0; i < 8; i++)
        c[i] = real(e, 0);
    (d->middle ? multiply_finely : multiply_block)(e, &d->rows, &d->columns, m, n, k, c);
    d->columns.weight = NULL;
}

static void add_spread(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, LLVMValueRef c[8])
{
    LLVMValueRef *sums = &e->registers[d->op->v][(m * d->shape.n + 2 * n) * 4];
    for (uint32_t i = 0; i < 8; i++) {
        LLVMValueRef channel = lane_column(e, d, n, i / 4 * 2 + i % 2);
        LLVMValueRef left = left_of(e, d, matrix_element(e, d->gate, lane_row(e, d, m, i % 4 / 2), channel),
                                    reference_at(e, d, m, channel));
        set(e, sums[i], fma_of(e, c[i], left, get(e, e->f32, sums[i])));
    }
}

static void spread_beyond(struct emit *e, struct decayed *d, uint32_t m, uint32_t k)
{
    find_references(e, d, m);
    for (uint32_t n = 0; n < d->shape.n / 2; n++) {
        LLVMValueRef c[8];
        multiply_spread(e, d, m, n, k, c);
        add_spread(e, d, m, n, c);
    }
}

/* Element (row r of this lane's, column j) of the k-th 16 columns of the left operand, which the lanes of a quad share. */
static LLVMValueRef weight_at(struct emit *e, const struct decayed *d, uint32_t m, uint32_t r, uint32_t k,
                              LLVMValueRef j)
{
    const struct shape s = fragment_shape(e->p, &e->p->values[d->rows.v]);
    LLVMValueRef *x = &e->registers[d->rows.v][(m * s.n + 2 * k) * 4 + 2 * r], half[2];
    LLVMValueRef is_odd = LLVMBuildICmp(e->b, LLVMIntNE, modulo(e, j, imm(e, 2)), imm(e, 0), "");
    for (uint32_t i = 0; i < 2; i++)
        half[i] = choose(e, is_odd, get(e, e->f32, x[4 * i + 1]), get(e, e->f32, x[4 * i]));
    LLVMValueRef lane = add(e, sub(e, e->lane, e->quad_column), modulo(e, divide(e, j, imm(e, 2)), imm(e, 4)));
    LLVMValueRef args[4] = {imm(e, -1), choose(e, less(e, j, imm(e, 8)), half[0], half[1]), lane, imm(e, 31)};
    return call(e, "llvm.nvvm.shfl.sync.idx.f32", NULL, 0, args, 4);
}

/* What one position of the diagonal block adds to 16 channels of this lane's rows. */
static void add_position(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, uint32_t k, LLVMValueRef j)
{
    LLVMValueRef p[2], is_reached[2], position = add(e, imm(e, 16 * k), j);
    for (uint32_t r = 0; r < 2; r++) {
        LLVMValueRef row = add(e, add(e, d->first_row, e->quad_row), imm(e, 16 * m + 8 * r));
        p[r] = weight_at(e, d, m, r, k, j);
        is_reached[r] = reaches(e, d, row, add(e, d->first, position));
    }
    for (uint32_t c = 4 * n; c < 4 * n + 4; c++) {
        LLVMValueRef channel = lane_column(e, d, c / 4, c % 4);
        LLVMValueRef x = side_element(e, &d->columns, channel, c, position, 0),
                     gate = matrix_element(e, d->reached, position, channel);
        for (uint32_t r = 0; r < 2; r++) {
            LLVMValueRef slot = e->registers[d->op->v][(m * d->shape.n + c / 2) * 4 + 2 * r + c % 2];
            LLVMValueRef left = left_of(e, d, matrix_element(e, d->gate, lane_row(e, d, m, r), channel), gate);
            LLVMValueRef term = LLVMBuildFMul(e->b, LLVMBuildFMul(e->b, p[r], x, ""), left, "");
            set(e, slot, LLVMBuildFAdd(e->b, get(e, e->f32, slot), choose(e, is_reached[r], term, real(e, 0)), ""));
        }
    }
}

/* As it is written. */
static void spread_exactly(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, uint32_t k)
{
    LLVMValueRef j;
    forget(d);
    struct counted l = loop_begin(e, imm(e, 16), &j);
    l.rolled = true;
    add_position(e, d, m, n, k, j);
    loop_end(e, &l, 1);
}

/* The left operand with zeros but where the query is behind the key, in the place of its registers; those are returned. */
static void swap_masked(struct emit *e, const struct decayed *d, uint32_t m, uint32_t k, LLVMValueRef kept[8])
{
    const struct shape s = fragment_shape(e->p, &e->p->values[d->rows.v]);
    LLVMValueRef *x = &e->registers[d->rows.v][(m * s.n + 2 * k) * 4];
    for (uint32_t i = 0; i < 8; i++) {
        LLVMValueRef row = add(e, add(e, d->first_row, e->quad_row), imm(e, 16 * m + i % 4 / 2 * 8));
        LLVMValueRef other =
            add(e, add(e, d->first, mul(e, e->quad_column, imm(e, 2))), imm(e, 16 * k + i / 4 * 8 + i % 2));
        LLVMValueRef is_other = LLVMBuildICmp(e->b, LLVMIntNE, row, other, "");
        kept[i] = x[i];
        x[i] = local(e, e->f32, "masked");
        set(e, x[i], choose(e, both(e, reaches(e, d, row, other), is_other), get(e, e->f32, kept[i]), real(e, 0)));
    }
}

/* What a position has of itself, not rounded: a gradient of gates is a difference in which it cancels. */
static void add_own(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, uint32_t k)
{
    forget(d);
    for (uint32_t r = 0; r < 2 && !d->strict; r++) {
        LLVMValueRef j = add(e, e->quad_row, imm(e, 8 * r)), p = weight_at(e, d, m, r, k, j);
        for (uint32_t c = 4 * n; c < 4 * n + 4; c++) {
            LLVMValueRef slot = e->registers[d->op->v][(m * d->shape.n + c / 2) * 4 + 2 * r + c % 2];
            LLVMValueRef x =
                side_element(e, &d->columns, lane_column(e, d, c / 4, c % 4), c, add(e, imm(e, 16 * k), j), r);
            set(e, slot, fma_of(e, p, x, get(e, e->f32, slot)));
        }
    }
}

/* Adds the product of 16 channels if all of it is finite: sets `done`. */
static void spread_near(struct emit *e, struct decayed *d, uint32_t m, uint32_t n, uint32_t k, LLVMValueRef done)
{
    LLVMValueRef c[8], kept[8], nothing = real(e, 0);
    LLVMValueRef *x = &e->registers[d->rows.v][(m * fragment_shape(e->p, &e->p->values[d->rows.v]).n + 2 * k) * 4];
    find_references(e, d, m);
    swap_masked(e, d, m, k, kept);
    multiply_spread(e, d, m, n, k, c);
    memcpy(x, kept, sizeof kept);
    for (uint32_t i = 0; i < 8; i++)
        nothing = fma_of(e, c[i], real(e, 0), nothing);
    LLVMValueRef finite = all_lanes(e, LLVMBuildFCmp(e->b, LLVMRealOEQ, nothing, real(e, 0), ""));
    LLVMBasicBlockRef after = begin_if(e, finite);
    add_spread(e, d, m, n, c);
    add_own(e, d, m, n, k);
    end_if(e, after);
    set(e, done, finite);
}

static void spread_diagonal(struct emit *e, struct decayed *d, uint32_t m, uint32_t k)
{
    LLVMValueRef near = is_near(e, d, m);
    for (uint32_t n = 0; n < d->shape.n / 2; n++) {
        LLVMValueRef done = local(e, e->i1, "done"), middle = d->middle;
        set(e, done, LLVMConstInt(e->i1, 0, 0));
        LLVMBasicBlockRef after = begin_if(e, near);
        spread_near(e, d, m, n, k, done);
        end_if(e, after);
        d->middle = NULL;
        after = begin_if(e, LLVMBuildNot(e->b, get(e, e->i1, done), ""));
        spread_exactly(e, d, m, n, k);
        end_if(e, after);
        d->middle = middle;
    }
    d->middle = NULL;
}

/* ---------------------------------------------------------------------------------------------------------------------- */

static struct decayed begin_decayed(struct emit *e, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *out = &p->values[op->v];
    struct decayed d = {.op = op, .shape = fragment_shape(p, out), .by_query = out->dims[0] == TG_LQ};
    d.strict = p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE;
    d.gate = d.by_query ? op->c : op->w;
    d.reached = d.by_query ? op->w : op->c;
    make_sides(e, op, &d.rows, &d.columns);
    d.first_row = add(e, e->at.start[out->dims[0]], d.rows.first[0]);
    return d;
}

void emit_decayed(struct emit *e, const struct op *op)
{
    struct decayed d = begin_decayed(e, op);
    const struct value *out = &e->p->values[op->v];
    const bool is_pair = plan_is_position(out->dims[1]);
    const uint32_t reached_dim = d.by_query ? TG_LKV : TG_LQ;
    LLVMValueRef end = sub(e, e->at.length, e->at.start[TG_LQ]);
    d.first = is_pair ? add(e, e->at.start[reached_dim], d.columns.first[0]) : e->at.start[reached_dim];
    d.reference = calloc(e->p->values[d.gate].extent[1], sizeof *d.reference);
    d.row_weight = (struct weight){d.gate, d.by_query, is_pair, d.reference, d.by_query ? end : NULL};
    d.reached_weight = (struct weight){d.reached, !d.by_query, is_pair, d.reference, d.by_query ? NULL : end};
    const uint32_t blocks = is_pair ? d.shape.n / 2 : e->p->values[d.reached].extent[0] / 16;
    for (uint32_t m = 0; d.reference && m < d.shape.m; m++)
        for (uint32_t n = 0; n < blocks; n++)
            for_block(e, &d, m, n, is_pair ? pair_beyond : spread_beyond, is_pair ? pair_diagonal : spread_diagonal);
    free(d.reference);
    side_free(&d.rows);
    side_free(&d.columns);
}
