/* lower/decay.c - products whose terms decay from the key's position to the query's (reference 2.4, 2.8).
 *
 *     pair    P_ij   = sum_c A_ic B_jc 2^(b_ic - b_jc)      channels are summed over
 *     spread  Out_px = sum_q P_pq X_qx 2^(b_ix - b_jx)      channels are columns of the result; (p, q) is (i, j) or (j, i)
 *
 * b_i - b_j <= 0, but 2^b_i 2^-b_j overflows. So every 16 rows of a warp's tile have a reference position r between them
 * and what they reach: their first one where they are queries, their last one where they are keys. Both factors of
 * 2^(b_i - b_r) 2^(b_r - b_j) are then at most 1 in every 16 x 16 block beyond the diagonal one, which goes through the
 * tensor cores with these factors on its operands. The diagonal block is evaluated as it is written, in fp32. Blocks on
 * the other side of the diagonal are not touched, so that nothing bad leaks from there.
 *
 * Behind the end of a chunk the decay in shared memory is 0, which is a growth beyond any decay before it: queries from
 * there on count as zero by selection, and blocks of nothing else are not touched. */
#include "lower/matrix.h"

#include <stdlib.h>

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
    LLVMValueRef row = add(e, d->rows.first[0], imm(e, 16 * m + (d->by_query ? 0 : 15)));
    return matrix_element(e, d->gate, row, channel);
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

static void pair_beyond(struct emit *e, struct decayed *d, uint32_t m, uint32_t n)
{
    LLVMValueRef c[8], *sums = &e->registers[d->op->v][(m * d->shape.n + 2 * n) * 4];
    forget(d);
    for (uint32_t i = 0; i < channels(e, d) / 4; i++) { /* those of this lane, in steps of 16: 2 and, 8 further on, 2 */
        LLVMValueRef channel = add(e, mul(e, e->quad_column, imm(e, 2)), imm(e, i / 2 * 8 + i % 2));
        d->reference[i] = reference_at(e, d, m, channel);
    }
    for (uint32_t r = 0; r < 8; r++)
        c[r] = get(e, e->f32, sums[r]);
    d->rows.weight = &d->row_weight;
    d->columns.weight = &d->reached_weight;
    for (uint32_t k = 0; k < channels(e, d) / 16; k++)
        multiply_block(e, &d->rows, &d->columns, m, n, k, c);
    d->rows.weight = d->columns.weight = NULL;
    for (uint32_t r = 0; r < 8; r++)
        set(e, sums[r], c[r]);
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

static void pair_diagonal(struct emit *e, struct decayed *d, uint32_t m, uint32_t n)
{
    LLVMValueRef sum[8], channel, *sums = &e->registers[d->op->v][(m * d->shape.n + 2 * n) * 4];
    for (uint32_t i = 0; i < 8; i++)
        set(e, sum[i] = local(e, e->f32, "pair"), real(e, 0));
    forget(d);
    struct counted l = loop_begin(e, imm(e, channels(e, d)), &channel);
    l.rolled = true;
    add_channel(e, d, m, n, channel, sum);
    loop_end(e, &l, 1);
    for (uint32_t i = 0; i < 8; i++) { /* row and column from the first of the block, which are the same position */
        LLVMValueRef row = add(e, add(e, d->first_row, e->quad_row), imm(e, 16 * m + i % 4 / 2 * 8));
        LLVMValueRef other =
            add(e, add(e, d->first, mul(e, e->quad_column, imm(e, 2))), imm(e, 16 * n + i / 4 * 8 + i % 2));
        LLVMValueRef term = choose(e, reaches(e, d, row, other), get(e, e->f32, sum[i]), real(e, 0));
        set(e, sums[i], LLVMBuildFAdd(e->b, get(e, e->f32, sums[i]), term, ""));
    }
}

/* ---- spread ---------------------------------------------------------------------------------------------------------- */

/* 16 positions by 16 channels at a time; what the rows decay by comes onto the sum. */
static void spread_beyond(struct emit *e, struct decayed *d, uint32_t m, uint32_t k)
{
    forget(d);
    for (uint32_t i = 0; i < d->shape.n; i++) /* channels as this lane fetches them */
        d->reference[i] =
            reference_at(e, d, m, add(e, add(e, d->columns.first[0], divide(e, e->lane, imm(e, 4))), imm(e, 8 * i)));
    d->columns.weight = &d->reached_weight;
    for (uint32_t n = 0; n < d->shape.n / 2; n++) {
        LLVMValueRef c[8], *sums = &e->registers[d->op->v][(m * d->shape.n + 2 * n) * 4];
        for (uint32_t i = 0; i < 8; i++)
            c[i] = real(e, 0);
        multiply_block(e, &d->rows, &d->columns, m, n, k, c);
        for (uint32_t i = 0; i < 8; i++) {
            LLVMValueRef channel = lane_column(e, d, n, i / 4 * 2 + i % 2);
            LLVMValueRef left = left_of(e, d, matrix_element(e, d->gate, lane_row(e, d, m, i % 4 / 2), channel),
                                        reference_at(e, d, m, channel));
            set(e, sums[i], fma_of(e, c[i], left, get(e, e->f32, sums[i])));
        }
    }
    d->columns.weight = NULL;
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

/* What one position of the diagonal block adds to all channels of this lane's rows. */
static void add_position(struct emit *e, struct decayed *d, uint32_t m, uint32_t k, LLVMValueRef j)
{
    LLVMValueRef p[2], is_reached[2], position = add(e, imm(e, 16 * k), j);
    for (uint32_t r = 0; r < 2; r++) {
        LLVMValueRef row = add(e, add(e, d->first_row, e->quad_row), imm(e, 16 * m + 8 * r));
        p[r] = weight_at(e, d, m, r, k, j);
        is_reached[r] = reaches(e, d, row, add(e, d->first, position));
    }
    for (uint32_t c = 0; c < 2 * d->shape.n; c++) {
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

static void spread_diagonal(struct emit *e, struct decayed *d, uint32_t m, uint32_t k)
{
    LLVMValueRef j;
    forget(d);
    struct counted l = loop_begin(e, imm(e, 16), &j);
    l.rolled = true;
    add_position(e, d, m, k, j);
    loop_end(e, &l, 1);
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
