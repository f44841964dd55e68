/* lower/walk_packed.c - kernels on warpgroups: the end of a packed sequence, behind which the next one begins.
 *
 * Tensor maps know where the tokens end, not where a sequence does. In a sequence's last chunk, where it is not whole,
 * the tokens of the next sequence were loaded too: they are overwritten with zeros before anything reads them (weights
 * of zero would do but for NaN); and the output goes to memory row by row. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

enum { UNITS = WALK_SPAN_BYTES / 16, SPAN_BYTES = WALK_TILE * WALK_SPAN_BYTES };

LLVMValueRef is_whole(struct emit *e)
{
    return LLVMBuildICmp(e->b, LLVMIntEQ, e->at.length, imm(e, WALK_TILE), "");
}

static LLVMValueRef cleared_address(struct emit *e)
{
    return made_address(e, imm(e, e->p->nests[0].stages));
}

/* A sequence has one chunk that is not whole at most, so the barrier has one phase. */
void walk_await_cleared(struct emit *e)
{
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, is_whole(e), ""));
    mbarrier_wait(e, cleared_address(e), imm(e, 0));
    end_if(e, after);
}

/* Of what is loaded, or of the matrix alone of which those who walk have been told. */
static bool is_cleared(const struct plan *p, const struct op *op, uint32_t v)
{
    return plan_is_loaded(&p->values[v]) && (op->sync == SYNC_TOLD ? v == op->v : !p->values[v].told);
}

/* All groups together, or makers for them. Units move inside of their row only. */
void walk_clear(struct emit *e, struct walk *w, const struct op *op)
{
    const struct nest *nest = &e->p->nests[0];
    LLVMTypeRef words = LLVMVectorType(e->i32, 4);
    LLVMValueRef unit, end = imm(e, WALK_TILE * UNITS);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, is_whole(e), ""));
    LLVMValueRef first = e->p->has_makers ? imm(e, 0) : mul(e, w->group, imm(e, 128)),
                 thread = opaque(e, add(e, first, e->tid)), stage = opaque(e, w->stage);
    LLVMValueRef begin = add(e, mul(e, e->at.length, imm(e, UNITS)), thread);
    const struct counted l = loop_begin(e, sub(e, end, begin), &unit);
    for (uint32_t i = 0; i < nest->n_loads; i++) {
        const struct value *v = &e->p->values[nest->loads[i]];
        LLVMValueRef slot = v->own_stage ? imm(e, 0) : stage,
                     to = byte_offset(e, slot_address(e, v, slot), mul(e, add(e, begin, unit), imm(e, 16)));
        for (uint32_t span = 0; is_cleared(e->p, op, nest->loads[i]) && span < v->stage_bytes / SPAN_BYTES; span++)
            LLVMSetAlignment(LLVMBuildStore(e->b, LLVMConstNull(words), byte_offset(e, to, imm(e, span * SPAN_BYTES))),
                             16);
    }
    loop_end(e, &l, 128 * (e->p->has_makers ? 1 : e->p->groups));
    fence_async(e);
    if (e->p->has_makers)
        mbarrier_arrive(e, cleared_address(e));
    else
        named_barrier(e, imm(e, ALL_GROUPS), 128 * e->p->groups);
    end_if(e, after);
}

void walk_store_rows(struct emit *e, const struct op *op, LLVMValueRef span, LLVMValueRef from, LLVMValueRef begin,
                     uint32_t n)
{
    const struct value *v = &e->p->values[op->v];
    LLVMTypeRef words = LLVMVectorType(e->i32, 4);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, is_whole(e), ""));
    LLVMValueRef thread = opaque(e, e->tid), unit = modulo(e, thread, imm(e, UNITS)),
                 first; /* registers are short in the chunks before */
    LLVMValueRef column = add(e, mul(e, span, imm(e, WALK_TILE)), mul(e, unit, imm(e, WALK_TILE / UNITS)));
    LLVMValueRef far = add(e, begin, imm(e, n)), end = choose(e, less(e, far, e->at.length), far, e->at.length);
    const struct counted l = loop_from(e, begin, end, &first);
    LLVMValueRef row = add(e, divide(e, thread, imm(e, UNITS)), first);
    LLVMBasicBlockRef next = begin_if(e, less(e, row, end)), there = begin_inside(e, v->dims[1], column);
    LLVMValueRef x = LLVMBuildLoad2(e->b, words, byte_offset(e, from, unit_offset(e, row, unit)), "");
    LLVMSetAlignment(x, 16);
    LLVMValueRef to = tensor_address(e, v->operand, op->tile, &e->at, v->dims, row, column);
    LLVMSetAlignment(LLVMBuildStore(e->b, x, to), 16);
    end_inside(e, there);
    end_if(e, next);
    loop_end(e, &l, 128 / UNITS);
    end_if(e, after);
}
