/* lower/walk_columns.c - two warpgroups that have the same 64 rows, each half of the columns of the state (compiler/walk.c).
 *
 * What is summed over those columns each has a part of. It leaves its registers in shared memory as they are, and adds those of the
 * same thread of the other group, behind a barrier of both. Both have the same sum then, for a sum of two does not depend on their
 * order, and all that is made of it. The first of them puts outputs, stores them, and has their sums. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

enum {
    PART = WALK_TILE * WALK_TILE * 4,
    PER_ACCESS = 4
}; /* bytes of a group; numbers that a thread stores or loads at once */

LLVMValueRef row_group(struct emit *e, const struct walk *w)
{
    return e->p->shares_columns ? imm(e, 0) : w->group;
}

LLVMValueRef add_columns(struct emit *e, const struct walk *w, LLVMValueRef x, uint32_t each)
{
    return e->p->shares_columns ? add(e, x, mul(e, w->group, imm(e, plan_state_columns(e->p) * each))) : x;
}

LLVMBasicBlockRef begin_one_of_rows(struct emit *e, const struct walk *w)
{
    return e->p->shares_columns ? begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, w->group, imm(e, 0), "")) : NULL;
}

void end_one_of_rows(struct emit *e, LLVMBasicBlockRef after)
{
    if (after)
        end_if(e, after);
}

/* Of register `r` and those behind it, as this thread has left it, or the same thread of the other group. */
static LLVMValueRef part_of(struct emit *e, const struct walk *w, LLVMValueRef group, uint32_t r)
{
    const struct plan *p = e->p;
    LLVMValueRef parts = p->sums_in < 0 ? byte_offset(e, e->arena, imm(e, p->sums_offset))
                                        : slot_address(e, &p->values[p->sums_in], w->stage);
    LLVMValueRef mine = add(e, mul(e, group, imm(e, PART)), mul(e, e->tid, imm(e, 4 * PER_ACCESS)));
    return byte_offset(e, parts, add(e, mine, imm(e, 4 * 128 * r)));
}

void walk_add_up(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMTypeRef type = LLVMVectorType(e->f32, PER_ACCESS);
    LLVMValueRef *const slot = slots(e, w, op->v), other = LLVMBuildXor(e->b, w->group, imm(e, 1), "");
    for (uint32_t r = 0; r < WALK_TILE / 2; r += PER_ACCESS) {
        LLVMValueRef x = LLVMGetUndef(type);
        for (uint32_t i = 0; i < PER_ACCESS; i++)
            x = LLVMBuildInsertElement(e->b, x, get(e, e->f32, slot[r + i]), imm(e, i), "");
        LLVMSetAlignment(LLVMBuildStore(e->b, x, part_of(e, w, w->group, r)), 4 * PER_ACCESS);
    }
    named_barrier(e, imm(e, ALL_GROUPS), 128 * e->p->groups);
    for (uint32_t r = 0; r < WALK_TILE / 2; r += PER_ACCESS) {
        LLVMValueRef x = LLVMBuildLoad2(e->b, type, part_of(e, w, other, r), "");
        LLVMSetAlignment(x, 4 * PER_ACCESS);
        for (uint32_t i = 0; i < PER_ACCESS; i++)
            set(e, slot[r + i],
                LLVMBuildFAdd(e->b, get(e, e->f32, slot[r + i]), LLVMBuildExtractElement(e->b, x, imm(e, i), ""), ""));
    }
}
