/* lower/solve.c - the inverse T of I + L, L strictly lower, positions x positions of one chunk.
 *
 * By substitution, 16 rows at a time. Of block row i of T, block column j is
 *
 *     (I + L_ii) T_ij = -sum over j <= k < i of L_ik T_kj        (j = i: the identity)
 *
 * The sums are products on tensor cores in fp32 (three products of TF32 parts); then every lane has one column of 16 rows and
 * takes each row, once it is known, off those behind it, which do not wait for one another. Columns of T have nothing to do
 * with one another, so a warp makes two block columns by itself, one long and one short.
 *
 * Shared memory: T row by row on and below the diagonal; L transposed above it. So nothing that a warp reads is written by
 * another one. A NaN in row r of L reaches the rows of T from r on and no others: a product's rows are those of L. */
#include "lower/matrix.h"

#include <stdlib.h>

enum { BLOCK = 16 };

struct solve {
    struct emit *e;
    uint32_t n, pitch;
    LLVMValueRef
        by_quad; /* address of element (l % 4, l / 4) of lane l: of operands, as far as the lane is concerned */
    LLVMValueRef by_result; /* ... (l / 4, 2 (l % 4)): of products */
    LLVMValueRef by_column; /* ... (0, the column that the lane has) */
    LLVMValueRef column;    /* ... in its block */
    LLVMValueRef is_second; /* i1: the lane has a column of the warp's second block */
    uint32_t first, second; /* block columns of this warp; the same: there is but one */
};

static LLVMValueRef scratch_at(struct emit *e, LLVMValueRef index)
{
    return byte_offset(e, e->arena, add(e, imm(e, e->p->scratch_offset), mul(e, index, imm(e, 4))));
}

static LLVMValueRef element_at(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column)
{
    return byte_offset(s->e, from, imm(s->e, 4 * (row * s->pitch + column)));
}

static LLVMValueRef load_float(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column)
{
    return LLVMBuildLoad2(s->e->b, s->e->f32, element_at(s, from, row, column), "");
}

/* ---- between registers and shared memory ---- */

/* Do the tile's rows lie in columns of registers (orient.c)? */
static bool is_turned(const struct value *v)
{
    return v->dims[0] == TG_LKV;
}

/* L, transposed. */
static void put_lower(const struct solve *s, uint32_t v)
{
    struct emit *e = s->e;
    const struct value *value = &e->p->values[v];
    const struct shape f = fragment_shape(e->p, value);
    const bool turned = is_turned(value);
    LLVMValueRef row = fragment_row(e, value, 0), column = fragment_column(e, value, 0);
    LLVMValueRef from = scratch_at(e, add(e, mul(e, turned ? row : column, imm(e, s->pitch)), turned ? column : row));
    for (uint32_t r = 0; r < f.m * f.n * 4; r++) {
        const uint32_t by_row = r / 4 / f.n * 16 + (r & 2) * 4, by_column = r / 4 % f.n * 8 + (r & 1);
        LLVMBuildStore(e->b, get(e, e->f32, e->registers[v][r]),
                       turned ? element_at(s, from, by_row, by_column) : element_at(s, from, by_column, by_row));
    }
}

/* T, turned; above its diagonal zeros. */
static void take_turned(const struct solve *s, uint32_t v)
{
    struct emit *e = s->e;
    const struct value *value = &e->p->values[v];
    const struct shape f = fragment_shape(e->p, value);
    LLVMValueRef row = fragment_row(e, value, 0), column = fragment_column(e, value, 0);
    LLVMValueRef from = scratch_at(e, add(e, mul(e, column, imm(e, s->pitch)), row)), below = sub(e, column, row);
    for (uint32_t r = 0; r < f.m * f.n * 4; r++) {
        const uint32_t by_row = r / 4 / f.n * 16 + (r & 2) * 4, by_column = r / 4 % f.n * 8 + (r & 1);
        LLVMValueRef is_above = LLVMBuildICmp(e->b, LLVMIntSLT, below, imm(e, (int)by_row - (int)by_column), "");
        set(e, e->registers[v][r], choose(e, is_above, real(e, 0), load_float(s, from, by_column, by_row)));
    }
}

/* T; above the diagonal zeros. */
static void take_inverse(const struct solve *s, uint32_t v)
{
    struct emit *e = s->e;
    const struct value *value = &e->p->values[v];
    const struct shape f = fragment_shape(e->p, value);
    LLVMValueRef row = fragment_row(e, value, 0), column = fragment_column(e, value, 0);
    LLVMValueRef from = scratch_at(e, add(e, mul(e, row, imm(e, s->pitch)), column)), below = sub(e, row, column);
    for (uint32_t r = 0; r < f.m * f.n * 4; r += 2) {
        const uint32_t by_row = r / 4 / f.n * 16 + (r & 2) * 4, by_column = r / 4 % f.n * 8;
        LLVMValueRef two = LLVMBuildLoad2(e->b, e->v2f32, element_at(s, from, by_row, by_column), "");
        LLVMSetAlignment(two, 8);
        for (uint32_t i = 0; i < 2; i++) {
            LLVMValueRef is_above =
                LLVMBuildICmp(e->b, LLVMIntSLT, below, imm(e, (int)(by_column + i) - (int)by_row), "");
            LLVMValueRef x = LLVMBuildExtractElement(e->b, two, imm(e, i), "");
            set(e, e->registers[v][r + i], choose(e, is_above, real(e, 0), x));
        }
    }
}

/* ---- a block row ---- */

/* 8 of the rows of T_kj, 8 columns, as a right operand. */
static void load_inverse(const struct solve *s, uint32_t k, uint32_t j, uint32_t step, uint32_t half, LLVMValueRef b[2])
{
    struct emit *e = s->e;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t row = 8 * step + 4 * i, column = 8 * half;
        b[i] = load_float(s, s->by_quad, BLOCK * k + row, BLOCK * j + column);
        if (k > j)
            continue;
        LLVMValueRef below = sub(e, e->quad_column, e->quad_row); /* of the diagonal's block: L lies above it */
        LLVMValueRef is_above = LLVMBuildICmp(e->b, LLVMIntSLT, below, imm(e, (int)column - (int)row), "");
        b[i] = choose(e, is_above, real(e, 0), b[i]);
    }
}

/* The sum of L_ik T_kj over the k from j to i, where T_ij will be. */
static void put_sum(const struct solve *s, uint32_t i, uint32_t j)
{
    struct emit *e = s->e;
    LLVMValueRef c[2][4];
    for (uint32_t r = 0; r < 8; r++)
        c[r / 4][r % 4] = real(e, 0);
    for (uint32_t k8 = 2 * j; k8 < 2 * i; k8++) {
        LLVMValueRef a[4], b[2];
        for (uint32_t r = 0; r < 4; r++)
            a[r] = load_float(s, s->by_quad, 8 * k8 + r / 2 * 4, BLOCK * i + r % 2 * 8);
        for (uint32_t half = 0; half < 2; half++) {
            load_inverse(s, k8 / 2, j, k8 % 2, half, b);
            multiply_floats(e, c[half], a, b);
        }
    }
    for (uint32_t r = 0; r < 8; r += 2) {
        LLVMValueRef two = LLVMGetUndef(e->v2f32);
        for (uint32_t k = 0; k < 2; k++)
            two = LLVMBuildInsertElement(e->b, two, c[r / 4][r % 4 + k], imm(e, k), "");
        LLVMValueRef to = element_at(s, s->by_result, BLOCK * i + r % 4 / 2 * 8, BLOCK * j + r / 4 * 8);
        LLVMSetAlignment(LLVMBuildStore(e->b, two, to), 8);
    }
}

/* L_rm of the r behind m, of diagonal block i. */
static void load_column(const struct solve *s, uint32_t i, uint32_t m, LLVMValueRef l[BLOCK])
{
    struct emit *e = s->e;
    LLVMValueRef start = scratch_at(e, imm(e, 0));
    uint32_t r = m + 1;
    for (; r % 4; r++)
        l[r] = load_float(s, start, BLOCK * i + m, BLOCK * i + r);
    for (; r < BLOCK; r += 4) {
        LLVMValueRef from = element_at(s, start, BLOCK * i + m, BLOCK * i + r);
        LLVMValueRef four = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, 4), from, "");
        LLVMSetAlignment(four, 16);
        for (uint32_t k = 0; k < 4; k++)
            l[r + k] = LLVMBuildExtractElement(e->b, four, imm(e, k), "");
    }
}

/* What row r of block row i begins with: less its sum, or of the lane's block i the identity. */
static LLVMValueRef load_row(const struct solve *s, uint32_t i, uint32_t r)
{
    struct emit *e = s->e;
    LLVMValueRef is_diagonal = LLVMBuildICmp(e->b, LLVMIntEQ, s->column, imm(e, r), "");
    LLVMValueRef one = choose(e, is_diagonal, real(e, 1), real(e, 0));
    if (s->first == i)
        return one;
    LLVMValueRef sum = LLVMBuildFNeg(e->b, load_float(s, s->by_column, BLOCK * i + r, 0), "");
    return s->second == i ? choose(e, s->is_second, one, sum) : sum;
}

/* ... to shared memory. Where T has its diagonal L lies above it, and what is there of the column, zeros, goes to the
 * diagonal's place, which its own row overwrites. */
static void put_rows(const struct solve *s, uint32_t i, LLVMValueRef y[BLOCK])
{
    struct emit *e = s->e;
    const bool has_second = s->second != s->first && s->second <= i;
    LLVMBasicBlockRef after = has_second ? NULL : begin_if(e, LLVMBuildNot(e->b, s->is_second, ""));
    LLVMValueRef first = s->first == i ? s->column : imm(e, 0), second = s->second == i ? s->column : imm(e, 0);
    LLVMValueRef diagonal = has_second ? choose(e, s->is_second, second, first) : first;
    for (uint32_t r = 0; r < BLOCK; r++) {
        LLVMValueRef row = choose(e, less(e, imm(e, r), diagonal), diagonal, imm(e, r));
        LLVMValueRef offset = mul(e, row, imm(e, 4 * s->pitch));
        LLVMBuildStore(e->b, y[r], byte_offset(e, element_at(s, s->by_column, BLOCK * i, 0), offset));
    }
    if (after)
        end_if(e, after);
}

/* Block row i of the lane's column. */
static void solve_rows(const struct solve *s, uint32_t i)
{
    struct emit *e = s->e;
    LLVMValueRef y[BLOCK], l[BLOCK];
    for (uint32_t r = 0; r < BLOCK; r++)
        y[r] = load_row(s, i, r);
    for (uint32_t m = 0; m + 1 < BLOCK; m++) {
        load_column(s, i, m, l);
        for (uint32_t r = m + 1; r < BLOCK; r++)
            y[r] = fma_of(e, LLVMBuildFNeg(e->b, l[r], ""), y[m], y[r]);
    }
    put_rows(s, i, y);
}

static void solve_columns(struct solve *s)
{
    struct emit *e = s->e;
    s->is_second = LLVMBuildICmp(e->b, LLVMIntUGE, e->lane, imm(e, BLOCK), "");
    s->column = modulo(e, e->lane, imm(e, BLOCK));
    LLVMValueRef block = choose(e, s->is_second, imm(e, BLOCK * s->second), imm(e, BLOCK * s->first));
    s->by_column = scratch_at(e, add(e, block, s->column));
    for (uint32_t i = s->first; i < s->n / BLOCK; i++) {
        if (s->first < i)
            put_sum(s, i, s->first);
        if (s->second != s->first && s->second < i)
            put_sum(s, i, s->second);
        sync_warp(e);
        solve_rows(s, i);
        sync_warp(e);
    }
}

void emit_solve(struct emit *e, const struct op *op)
{
    struct solve s = {.e = e, .n = e->p->values[op->v].extent[0], .pitch = plan_solve_pitch(e->p, op)};
    const uint32_t blocks = s.n / BLOCK, warps = e->p->threads / 32;
    s.by_quad = scratch_at(e, add(e, mul(e, e->quad_column, imm(e, s.pitch)), e->quad_row));
    s.by_result = scratch_at(e, add(e, mul(e, e->quad_row, imm(e, s.pitch)), mul(e, e->quad_column, imm(e, 2))));
    barrier(e); /* what was there before has been read */
    put_lower(&s, op->a);
    barrier(e);
    for (s.first = 0; 2 * s.first < blocks; s.first++) {
        s.second = blocks - 1 - s.first;
        LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, s.first % warps), ""));
        solve_columns(&s);
        end_if(e, after);
    }
    barrier(e);
    (is_turned(&e->p->values[op->v]) ? take_turned : take_inverse)(&s, op->v);
}
