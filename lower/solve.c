/* lower/solve.c - the inverse of I + L, L strictly lower, positions x positions of one chunk.
 *
 * By substitution: row r of the inverse is e_r less the sum of L_rm times row m over the m before it. A thread has a
 * column of the inverse in registers, so that all of it is sums of its own; the rows of L it reads from shared memory,
 * where all threads want the same 16 bytes at a time. fp32 throughout: products of inverses of blocks are as exact
 * (reference 9.7), and faster where this counts.
 *
 * A NaN in row r reaches the rows from r on and no others. */
#include "lower/emit.h"

#include <stdlib.h>

static LLVMValueRef scratch_at(struct emit *e, LLVMValueRef index)
{
    return byte_offset(e, e->arena, add(e, imm(e, e->p->scratch_offset), mul(e, index, imm(e, 4))));
}

typedef void each_element(struct emit *e, LLVMValueRef reg, LLVMValueRef place);

/* Calls `each` for this thread's elements of a fragment, with their places in shared memory. */
static void for_elements(struct emit *e, uint32_t v, uint32_t pitch, each_element *each)
{
    const struct value *value = &e->p->values[v];
    const struct shape s = fragment_shape(e->p, value);
    for (uint32_t r = 0; r < s.m * s.n * 4; r++) {
        LLVMValueRef row = fragment_row(e, value, r / 4 / s.n * 2 + (r & 2) / 2),
                     column = fragment_column(e, value, r / 4 % s.n * 2 + (r & 1));
        each(e, e->registers[v][r], scratch_at(e, add(e, mul(e, row, imm(e, pitch)), column)));
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

/* Row r of this thread's column: 1 on the diagonal, less what the rows before it contribute. */
static void substitute(struct emit *e, LLVMValueRef *column, uint32_t r, uint32_t pitch)
{
    LLVMTypeRef v4f32 = LLVMVectorType(e->f32, 4);
    LLVMValueRef diagonal = LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, r), "");
    LLVMValueRef sum = choose(e, diagonal, real(e, 1), real(e, 0)), four = NULL;
    for (uint32_t m = 0; m < r; m++) {
        if (m % 4 == 0) {
            four = LLVMBuildLoad2(e->b, v4f32, scratch_at(e, imm(e, r * pitch + m)), "");
            LLVMSetAlignment(four, 16);
        }
        LLVMValueRef l = LLVMBuildExtractElement(e->b, four, imm(e, m % 4), "");
        sum = fma_of(e, LLVMBuildFNeg(e->b, l, ""), get(e, e->f32, column[m]), sum);
    }
    set(e, column[r], sum);
}

void emit_solve(struct emit *e, const struct op *op)
{
    const uint32_t n = e->p->values[op->v].extent[0], pitch = plan_solve_pitch(e->p, op);
    LLVMValueRef *column = calloc(n, sizeof *column);
    if (!column)
        return;
    barrier(e); /* what was there before has been read */
    for_elements(e, op->a, pitch, put);
    barrier(e);
    LLVMValueRef has_column = less(e, e->tid, imm(e, n));
    for (uint32_t r = 0; r < n; r++)
        column[r] = local(e, e->f32, "column");
    LLVMBasicBlockRef after = begin_if(e, has_column);
    for (uint32_t r = 0; r < n; r++)
        substitute(e, column, r, pitch);
    end_if(e, after);
    barrier(e); /* all have read the rows */
    after = begin_if(e, has_column);
    for (uint32_t r = 0; r < n; r++)
        put(e, column[r], scratch_at(e, add(e, imm(e, r * pitch), e->tid)));
    end_if(e, after);
    barrier(e);
    for_elements(e, op->v, pitch, take);
    free(column);
}
