/* lower/packed.c - kernels on warpgroups: the end of a packed sequence, behind which the next one begins.
 *
 * Tensor maps know where the tokens end, not where a sequence does. In a sequence's last chunk, where it is not whole,
 * the tokens of the next sequence were loaded too: they are overwritten with zeros before anything reads them (weights
 * of zero would do but for NaN); and the output goes to memory row by row. */
#include "lower/walk.h"

enum { UNITS = WALK_SPAN_BYTES / 16, SPAN_BYTES = WALK_TILE * WALK_SPAN_BYTES };

LLVMValueRef is_whole(struct emit *e)
{
    return LLVMBuildICmp(e->b, LLVMIntEQ, e->at.length, imm(e, WALK_TILE), "");
}

/* Rows from the end on of one matrix in its stage; units move inside of their row only. */
static void clear_rows(struct emit *e, const struct walk *w, const struct value *v)
{
    const uint32_t threads = 128 * e->p->groups;
    LLVMTypeRef words = LLVMVectorType(e->i32, 4);
    LLVMValueRef thread = opaque(e, add(e, mul(e, w->group, imm(e, 128)), e->tid)), base = slot_address(e, v, w->stage);
    for (uint32_t first = 0; first < WALK_TILE * UNITS; first += threads) {
        LLVMValueRef unit = add(e, thread, imm(e, first)), row = divide(e, unit, imm(e, UNITS));
        LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, less(e, row, e->at.length), ""));
        for (uint32_t span = 0; span < v->stage_bytes / SPAN_BYTES; span++) {
            LLVMValueRef to = byte_offset(e, base, add(e, mul(e, unit, imm(e, 16)), imm(e, span * SPAN_BYTES)));
            LLVMSetAlignment(LLVMBuildStore(e->b, LLVMConstNull(words), to), 16);
        }
        end_if(e, after);
    }
}

void clear_behind_end(struct emit *e, const struct walk *w)
{
    const struct nest *nest = &e->p->nests[0];
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, is_whole(e), ""));
    for (uint32_t i = 0; i < nest->n_loads; i++)
        if (e->p->values[nest->loads[i]].space == SPACE_MATRIX)
            clear_rows(e, w, &e->p->values[nest->loads[i]]);
    fence_async(e);
    named_barrier(e, imm(e, ALL_GROUPS), 128 * e->p->groups);
    end_if(e, after);
}

void store_rows(struct emit *e, const struct op *op, LLVMValueRef span, LLVMValueRef from)
{
    const struct value *v = &e->p->values[op->v];
    LLVMTypeRef words = LLVMVectorType(e->i32, 4);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, is_whole(e), ""));
    LLVMValueRef thread = opaque(e, e->tid), unit = modulo(e, thread, imm(e, UNITS)), first; /* registers are short in the chunks before */
    LLVMValueRef column = add(e, mul(e, span, imm(e, WALK_TILE)), mul(e, unit, imm(e, WALK_TILE / UNITS)));
    const struct counted l = loop_begin(e, e->at.length, &first);
    LLVMValueRef row = add(e, divide(e, thread, imm(e, UNITS)), first);
    LLVMBasicBlockRef next = begin_if(e, less(e, row, e->at.length));
    LLVMValueRef x = LLVMBuildLoad2(e->b, words, byte_offset(e, from, unit_offset(e, row, unit)), "");
    LLVMSetAlignment(x, 16);
    LLVMValueRef to = tensor_address(e, v->operand, op->tile, &e->at, v->dims, row, column);
    LLVMSetAlignment(LLVMBuildStore(e->b, x, to), 16);
    end_if(e, next);
    loop_end(e, &l, 128 / UNITS);
    end_if(e, after);
}
