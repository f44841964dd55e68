/* lower/solve.c - the inverse of I + L, L strictly lower, positions x positions of one chunk.
 *
 * By substitution: row r of the inverse is e_r less the sum of L_rm times row m over the m before it. A thread has a
 * column of the inverse in registers, so that all of it is sums of its own. As soon as row m is known it comes off all the
 * rows behind it, which do not wait for one another; the column m of L that this takes it reads from shared memory, where L
 * lies transposed and all threads want the same 16 bytes at a time. Rows before its column's are zero: a warp begins with the
 * first of its columns. fp32 throughout.
 *
 * A NaN in row r reaches the rows from r on and no others. */
#include "lower/emit.h"

#include <stdlib.h>

static LLVMValueRef scratch_at(struct emit *e, LLVMValueRef index)
{
    return byte_offset(e, e->arena, add(e, imm(e, e->p->scratch_offset), mul(e, index, imm(e, 4))));
}

typedef void each_element(struct emit *e, LLVMValueRef reg, LLVMValueRef place);

/* Calls `each` for this thread's elements of a fragment, with their places in shared memory: element (i, j) at i rows + j
 * columns. */
static void for_elements(struct emit *e, uint32_t v, uint32_t rows, uint32_t columns, each_element *each)
{
    const struct value *value = &e->p->values[v];
    const struct shape s = fragment_shape(e->p, value);
    for (uint32_t r = 0; r < s.m * s.n * 4; r++) {
        LLVMValueRef row = fragment_row(e, value, r / 4 / s.n * 2 + (r & 2) / 2),
                     column = fragment_column(e, value, r / 4 % s.n * 2 + (r & 1));
        each(e, e->registers[v][r], scratch_at(e, add(e, mul(e, row, imm(e, rows)), mul(e, column, imm(e, columns)))));
    }
}

static void put(struct emit *e, LLVMValueRef reg, LLVMValueRef place)
{
    LLVMBuildStore(e->b, get(e, e->f32, reg), place);
}

static void take(struct emit *e, LLVMValueRef reg, LLVMValueRef place)
{
    set(e, reg, LLVMBuildLoad2(e->b, e->f32, place, ""));
}

/* Takes row m of this thread's column, which is known, off the n - m - 1 rows behind it. */
static void substitute(struct emit *e, LLVMValueRef *column, uint32_t m, uint32_t n, uint32_t pitch)
{
    LLVMTypeRef v4f32 = LLVMVectorType(e->f32, 4);
    LLVMValueRef known = get(e, e->f32, column[m]), four = NULL;
    for (uint32_t r = m + 1; r < n; r++) {
        if (!four || r % 4 == 0) {
            four = LLVMBuildLoad2(e->b, v4f32, scratch_at(e, imm(e, m * pitch + r / 4 * 4)), "");
            LLVMSetAlignment(four, 16);
        }
        LLVMValueRef l = LLVMBuildExtractElement(e->b, four, imm(e, r % 4), "");
        set(e, column[r], fma_of(e, LLVMBuildFNeg(e->b, l, ""), known, get(e, e->f32, column[r])));
    }
}

void emit_solve(struct emit *e, const struct op *op)
{
    const uint32_t n = e->p->values[op->v].extent[0], pitch = plan_solve_pitch(e->p, op);
    LLVMValueRef *column = calloc(n, sizeof *column);
    if (!column)
        return;
    barrier(e); /* what was there before has been read */
    for_elements(e, op->a, 1, pitch, put);
    barrier(e);
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef diagonal = LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, r), "");
        set(e, column[r] = local(e, e->f32, "column"), choose(e, diagonal, real(e, 1), real(e, 0)));
    }
    for (uint32_t first = 0; first < n; first += 32) { /* the warps that have a column up to there */
        const uint32_t end = first + 32 < n ? first + 32 : n;
        LLVMBasicBlockRef after = begin_if(e, less(e, e->tid, imm(e, end)));
        for (uint32_t m = first; m < end; m++)
            substitute(e, column, m, n, pitch);
        end_if(e, after);
    }
    barrier(e); /* all have read the columns */
    LLVMBasicBlockRef after = begin_if(e, less(e, e->tid, imm(e, n)));
    for (uint32_t r = 0; r < n; r++)
        put(e, column[r], scratch_at(e, add(e, imm(e, r * pitch), e->tid)));
    end_if(e, after);
    barrier(e);
    for_elements(e, op->v, pitch, 1, take);
    free(column);
}
