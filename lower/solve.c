/* lower/solve.c - the inverse T of I + L, L strictly lower, positions x positions of one chunk, by blocks of 16 x 16.
 *
 * The diagonal blocks by substitution: a lane has one column and takes each row, once it is known, off those behind it,
 * which do not wait for one another. Of T (I + L) = I the others follow from right to left in each block row,
 *
 *     T_ij = -(sum over j < k <= i of T_ik L_kj) T_jj
 *
 * by products on tensor cores in fp32 (three products of TF32 parts). Their left operands are accumulators as they are,
 * and block rows have nothing to do with one another: a warp makes those whose rows of L it has (plan_row_block).
 *
 * Shared memory has the right operands, transposed: L_kj, and in the place of L_jj, once it is known, T_jj. A NaN in a
 * right operand would reach all rows of a product. So if there is anything in L that is not finite, from the first row of
 * such on L is zero there, and T_jj NaN: the rows of T from there on are NaN, and no others know of it. */
#include "compiler/plan_tile.h"
#include "lower/matrix.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 16 };

struct solve {
    struct emit *e;
    const struct value *out;
    uint32_t n, pitch;
    struct shape shape;
    LLVMValueRef *t;        /* T, its rows those of queries */
    LLVMValueRef by_result; /* address of element (l / 4, 2 (l % 4)) of lane l */
    LLVMValueRef by_left;   /* ... (2 (l % 4), l / 4) */
};

static LLVMValueRef scratch_at(struct emit *e, LLVMValueRef index)
{
    return byte_offset(e, e->arena, add(e, imm(e, e->p->scratch_offset), mul(e, index, imm(e, 4))));
}

static LLVMValueRef element_at(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column)
{
    return byte_offset(s->e, from, imm(s->e, 4 * (row * s->pitch + column)));
}

/* Address of element (row, column), both known at run time. */
static LLVMValueRef place_of(const struct solve *s, LLVMValueRef row, LLVMValueRef column)
{
    return scratch_at(s->e, add(s->e, mul(s->e, row, imm(s->e, s->pitch)), column));
}

static LLVMValueRef load_float(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column)
{
    return LLVMBuildLoad2(s->e->b, s->e->f32, element_at(s, from, row, column), "");
}

static LLVMValueRef is_nan(struct emit *e, LLVMValueRef x)
{
    return LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, "");
}

/* ---- L ---- */

/* Are the tile's rows keys' (orient.c)? */
static bool is_turned(const struct value *v)
{
    return v->dims[0] == TG_LKV;
}

/* Address of the element in register r of the warp's m-th 16 rows, transposed. */
static LLVMValueRef turned_place(const struct solve *s, const struct value *v, uint32_t m, uint32_t r)
{
    struct emit *e = s->e;
    const uint32_t by_row = (r & 2) * 4, by_column = r / 4 * 8 + (r & 1);
    LLVMValueRef row = fragment_row(e, v, 2 * m), column = fragment_column(e, v, 0);
    return is_turned(v) ? element_at(s, place_of(s, row, column), by_row, by_column)
                        : element_at(s, place_of(s, column, row), by_column, by_row);
}

/* Is the query of register r behind the end of the chunk, where gates count as zero and a decay may be infinite? */
static LLVMValueRef is_behind(const struct solve *s, const struct value *v, uint32_t m, uint32_t r)
{
    struct emit *e = s->e;
    LLVMValueRef query =
        is_turned(v) ? fragment_column(e, v, r / 4 * 2 + (r & 1)) : fragment_row(e, v, 2 * m + (r & 2) / 2);
    return LLVMBuildICmp(e->b, LLVMIntSGE, query, e->at.length, "");
}

/* If the block is not above the diagonal. */
static LLVMBasicBlockRef begin_below(const struct solve *s, const struct value *v, uint32_t m, uint32_t n)
{
    return begin_if(s->e, LLVMBuildICmp(s->e->b, LLVMIntUGE, fragment_block(s->e, v, m), imm(s->e, n), ""));
}

/* To shared memory, as far as it may not be above the diagonal. Is there anything in it that is not finite? Where keys' rows
 * are made of T, its rows behind the end are terms of their sums. */
static LLVMValueRef put_lower(const struct solve *s, uint32_t v)
{
    struct emit *e = s->e;
    const struct value *value = &e->p->values[v];
    LLVMValueRef nothing[4];
    for (uint32_t i = 0; i < 4; i++)
        nothing[i] = real(e, 0);
    for (uint32_t m = 0; m < s->shape.m; m++)
        for (uint32_t n = 0; n < s->shape.n / 2 && !plan_is_above(e->p, value, m, n); n++) {
            LLVMValueRef x[8];
            for (uint32_t r = 0; r < 8; r++) {
                x[r] = get(e, e->f32, e->registers[v][(m * s->shape.n + 2 * n) * 4 + r]);
                if (is_turned(s->out))
                    x[r] = choose(e, is_behind(s, value, m, r), real(e, 0), x[r]);
                nothing[r % 4] = add_nothing(e, TG_F32, nothing[r % 4], x[r]);
            }
            LLVMBasicBlockRef after = plan_is_above_some(e->p, value, m, n) ? begin_below(s, value, m, n) : NULL;
            for (uint32_t r = 0; r < 8; r++)
                LLVMBuildStore(e->b, x[r], turned_place(s, value, m, 8 * n + r));
            if (after)
                end_if(e, after);
        }
    LLVMValueRef one = LLVMBuildFAdd(e->b, nothing[0], nothing[1], ""),
                 other = LLVMBuildFAdd(e->b, nothing[2], nothing[3], "");
    return is_nan(e, LLVMBuildFAdd(e->b, one, other, ""));
}

/* Four elements side by side. */
static void load_four(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column, LLVMValueRef out[4])
{
    struct emit *e = s->e;
    LLVMValueRef four = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, 4), element_at(s, from, row, column), "");
    LLVMSetAlignment(four, 16);
    for (uint32_t i = 0; i < 4; i++)
        out[i] = LLVMBuildExtractElement(e->b, four, imm(e, i), "");
}

/* T_jj of two blocks of this warp, the m-th and the one behind it: lanes have a column each. */
static void solve_diagonal(const struct solve *s, uint32_t m)
{
    struct emit *e = s->e;
    const bool is_last = m + 1 == s->shape.m;
    LLVMValueRef is_first = less(e, e->lane, imm(e, BLOCK)), column = modulo(e, e->lane, imm(e, BLOCK));
    LLVMValueRef block = fragment_block(e, s->out, m);
    if (!is_last)
        block = choose(e, is_first, block, fragment_block(e, s->out, m + 1));
    LLVMValueRef corner = scratch_at(e, mul(e, block, imm(e, BLOCK * (s->pitch + 1)))), y[BLOCK], l[BLOCK];
    for (uint32_t r = 0; r < BLOCK; r++)
        y[r] = choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, column, imm(e, r), ""), real(e, 1), real(e, 0));
    for (uint32_t k = 0; k + 1 < BLOCK; k++) { /* column k of L */
        for (uint32_t r = (k + 1) / 4 * 4; r < BLOCK; r += 4)
            load_four(s, corner, k, r, &l[r]);
        for (uint32_t r = k + 1; r < BLOCK; r++)
            y[r] = fma_of(e, LLVMBuildFNeg(e->b, l[r], ""), y[k], y[r]);
    }
    sync_warp(e); /* L_jj has been read */
    LLVMValueRef to = byte_offset(e, corner, mul(e, column, imm(e, 4 * s->pitch)));
    LLVMBasicBlockRef after = is_last ? begin_if(e, is_first) : NULL;
    for (uint32_t r = 0; r < BLOCK; r += 4) {
        LLVMValueRef four = LLVMGetUndef(LLVMVectorType(e->f32, 4));
        for (uint32_t i = 0; i < 4; i++)
            four = LLVMBuildInsertElement(e->b, four, y[r + i], imm(e, i), "");
        LLVMSetAlignment(LLVMBuildStore(e->b, four, element_at(s, to, 0, r)), 16);
    }
    if (after)
        end_if(e, after);
}

/* ---- what is not finite ---- */

/* for (*index = thread; *index < n; *index += threads) */
static struct counted for_threads(const struct solve *s, LLVMValueRef *index)
{
    return loop_from(s->e, s->e->tid, imm(s->e, s->n), index);
}

/* A mark behind each row of L or T_jj that has something: NaN. */
static void mark_rows(const struct solve *s)
{
    struct emit *e = s->e;
    LLVMValueRef row, column, sum = local(e, e->f32, "nothing");
    const struct counted rows = for_threads(s, &row);
    set(e, sum, real(e, 0));
    const struct counted columns = loop_from(e, imm(e, 0), add(e, row, imm(e, 1)), &column);
    LLVMValueRef x = LLVMBuildLoad2(e->b, e->f32, place_of(s, column, row), "");
    set(e, sum, add_nothing(e, TG_F32, get(e, e->f32, sum), x));
    loop_end(e, &columns, 1);
    LLVMBuildStore(e->b, get(e, e->f32, sum), place_of(s, row, imm(e, s->n)));
    loop_end(e, &rows, e->p->threads);
}

static LLVMValueRef first_marked(const struct solve *s)
{
    struct emit *e = s->e;
    LLVMValueRef back, first = local(e, e->i32, "first");
    set(e, first, imm(e, s->n));
    const struct counted rows = loop_from(e, imm(e, 0), imm(e, s->n), &back);
    LLVMValueRef row = sub(e, imm(e, s->n - 1), back);
    LLVMValueRef mark = LLVMBuildLoad2(e->b, e->f32, place_of(s, row, imm(e, s->n)), "");
    set(e, first, choose(e, is_nan(e, mark), row, get(e, e->i32, first)));
    loop_end(e, &rows, 1);
    return get(e, e->i32, first);
}

static void contain(const struct solve *s)
{
    struct emit *e = s->e;
    LLVMValueRef row, column;
    mark_rows(s);
    barrier(e);
    LLVMValueRef first = first_marked(s);
    const struct counted columns = for_threads(s, &column), rows = loop_from(e, first, imm(e, s->n), &row);
    LLVMValueRef is_diagonal =
        LLVMBuildICmp(e->b, LLVMIntEQ, divide(e, row, imm(e, BLOCK)), divide(e, column, imm(e, BLOCK)), "");
    LLVMBuildStore(e->b, choose(e, is_diagonal, real(e, (double)NAN), real(e, 0)), place_of(s, column, row));
    loop_end(e, &rows, 1);
    loop_end(e, &columns, e->p->threads);
    barrier(e);
}

/* ---- T ---- */

/* Registers of block (i, j) of T, which is in the warp's m-th row of blocks. */
static LLVMValueRef *registers_of(const struct solve *s, uint32_t m, uint32_t j)
{
    return &s->t[(m * s->shape.n + 2 * j) * 4];
}

/* Step of 8 of an accumulator as a left operand: in an order of the summed dimension of its own (matrix.c). */
static void left_of(const struct solve *s, LLVMValueRef *block, uint32_t step, LLVMValueRef a[4])
{
    for (uint32_t r = 0; r < 4; r++)
        a[r] = get(s->e, s->e->f32, block[4 * step + r % 2 * 2 + r / 2]);
}

/* c += the block by what is of (k, j) in shared memory. */
static void add_product(const struct solve *s, LLVMValueRef *block, uint32_t k, uint32_t j, LLVMValueRef c[8])
{
    struct emit *e = s->e;
    for (uint32_t step = 0; step < 2; step++) {
        LLVMValueRef a[4];
        left_of(s, block, step, a);
        for (uint32_t half = 0; half < 2; half++) {
            LLVMValueRef from = element_at(s, s->by_result, BLOCK * j + 8 * half, BLOCK * k + 8 * step), b[2];
            LLVMValueRef two = LLVMBuildLoad2(e->b, e->v2f32, from, "");
            LLVMSetAlignment(two, 8);
            for (uint32_t i = 0; i < 2; i++)
                b[i] = LLVMBuildExtractElement(e->b, two, imm(e, i), "");
            multiply_floats(e, &c[4 * half], a, b);
        }
    }
}

static void load_diagonal(const struct solve *s, uint32_t i, LLVMValueRef *block)
{
    for (uint32_t r = 0; r < 8; r++) {
        LLVMValueRef x = load_float(s, s->by_left, BLOCK * i + r / 4 * 8 + r % 2, BLOCK * i + r % 4 / 2 * 8);
        set(s->e, block[r], x);
    }
}

/* Block row i. A block that is known is added at once to the sums of all that stand left of it. */
static void solve_row(const struct solve *s, uint32_t m, uint32_t i)
{
    struct emit *e = s->e;
    LLVMValueRef sum[EMIT_MAX_FRAGMENT / 8][8];
    for (uint32_t j = 0; j < s->n / BLOCK; j++)
        for (uint32_t r = 0; r < 8; r++)
            set(e, registers_of(s, m, j)[r], sum[j][r] = real(e, 0));
    load_diagonal(s, i, registers_of(s, m, i));
    for (uint32_t k = i; k > 0; k--) {
        LLVMValueRef x[8], *left = registers_of(s, m, k - 1);
        for (uint32_t j = k; j-- > 0;)
            add_product(s, registers_of(s, m, k), k, j, sum[j]);
        for (uint32_t r = 0; r < 8; r++) {
            set(e, left[r], LLVMBuildFNeg(e->b, sum[k - 1][r], ""));
            x[r] = real(e, 0);
        }
        add_product(s, left, k - 1, k - 1, x);
        for (uint32_t r = 0; r < 8; r++)
            set(e, left[r], x[r]);
    }
}

/* T by way of shared memory, for a product that takes it with keys' rows. */
static void turn(const struct solve *s, uint32_t v)
{
    struct emit *e = s->e;
    struct value straight = *s->out;
    straight.dims[0] = TG_LQ;
    straight.dims[1] = TG_LKV;
    barrier(e); /* right operands have been read */
    for (uint32_t m = 0; m < s->shape.m; m++)
        for (uint32_t r = 0; r < s->shape.n * 4; r++)
            LLVMBuildStore(e->b, get(e, e->f32, s->t[m * s->shape.n * 4 + r]), turned_place(s, &straight, m, r));
    barrier(e);
    for (uint32_t m = 0; m < s->shape.m; m++)
        for (uint32_t r = 0; r < s->shape.n * 4; r++)
            set(e, e->registers[v][m * s->shape.n * 4 + r],
                LLVMBuildLoad2(e->b, e->f32, turned_place(s, s->out, m, r), ""));
}

void emit_solve(struct emit *e, const struct op *op)
{
    const struct value *out = &e->p->values[op->v];
    struct solve s = {.e = e, .out = out, .n = out->extent[0], .pitch = plan_solve_pitch(e->p, op)};
    s.t = is_turned(out) ? new_registers(e, op->v) : e->registers[op->v];
    if (!s.t)
        return;
    LLVMValueRef twice = mul(e, e->quad_column, imm(e, 2));
    s.shape = fragment_shape(e->p, out);
    s.by_result = place_of(&s, e->quad_row, twice);
    s.by_left = place_of(&s, twice, e->quad_row);
    barrier(e); /* what was there before has been read */
    LLVMValueRef args[2] = {imm(e, 0), put_lower(&s, op->a)};
    sync_warp(e);
    for (uint32_t m = 0; m < s.shape.m; m += 2)
        solve_diagonal(&s, m);
    LLVMBasicBlockRef after = begin_if(e, call(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", NULL, 0, args, 2));
    contain(&s);
    end_if(e, after);
    for (uint32_t w = 0; w < e->p->warps_m; w++) {
        after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, w), ""));
        for (uint32_t m = s.shape.m; m-- > 0;) /* the longest one first, which needs most registers */
            solve_row(&s, m, plan_row_block(e->p, s.shape.m, m, w));
        end_if(e, after);
    }
    if (!is_turned(out))
        return;
    turn(&s, op->v);
    free(s.t);
}
