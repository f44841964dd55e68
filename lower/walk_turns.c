/* lower/walk_turns.c - thread blocks add up an output in memory, one after the other (compiler/turns.c).
 *
 * Whoever is first stores, the next ones add (cp.reduce) when the number of the chunk says that it is their turn; the last leaves 0
 * there for the next kernel. All lanes of the warp that loads wait for the turn, and for the lane that passes it on: one that waited by
 * itself would sleep while the others do. It is passed on behind the loads of a step, which hide that the stores have to be done. */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "lower/walk.h"

/* Parts that are added before this thread block's. */
static LLVMValueRef rank_of(struct emit *e, const struct walk *w)
{
    const uint32_t dim = e->p->adds;
    return dim == TG_MEMBER ? modulo(e, w->head, imm(e, e->p->along[dim]))
                            : divide(e, e->at.start[dim], imm(e, e->p->block[dim]));
}

/* Of the chunk: parts that its sum has. */
static LLVMValueRef number_address(struct emit *e, const struct walk *w)
{
    const uint32_t owner = e->p->owner;
    LLVMValueRef head = e->p->adds == TG_MEMBER ? sub(e, w->head, rank_of(e, w)) : w->head,
                 chunk = add(e, mul(e, head, argument(e, TG_ARG_SIZE, TG_SIZE_CHUNKS, 0)), e->at.start[TG_CHUNK]),
                 sum = add(e, mul(e, chunk, imm(e, plan_sums_of_chunk(e->p))),
                           divide(e, e->at.start[owner], imm(e, e->p->block[owner]))),
                 number = add(e, mul(e, wide(e, w->batch), argument(e, TG_ARG_STRIDE, TILE_SUMMED, 0)), wide(e, sum));
    return byte_offset(e, argument(e, TG_ARG_POINTER, TILE_SUMMED, 0), mul(e, number, imm64(e, sizeof(int32_t))));
}

void turn_await_here(struct emit *e, const struct walk *w)
{
    LLVMValueRef rank = rank_of(e, w);
    LLVMBasicBlockRef after = begin_if(e, less(e, imm(e, 0), rank));
    turn_wait(e, number_address(e, w), rank);
    end_if(e, after);
}

void turn_pass_here(struct emit *e, const struct walk *w)
{
    LLVMValueRef next = add(e, rank_of(e, w), imm(e, 1)), all = imm(e, e->p->along[e->p->adds]);
    map_store_wait(e, false);
    turn_set(e, number_address(e, w), choose(e, less(e, next, all), next, imm(e, 0)));
}

/* Of the chunk that was in the stage before: there is one behind the first steps. */
void turn_await(struct emit *e, const struct walk *w)
{
    const struct place here = e->at;
    LLVMBasicBlockRef after = begin_if(e, producer_refills(e, w));
    producer_go_back(e, w);
    turn_await_here(e, w);
    end_if(e, after);
    sync_warp(e);
    e->at = here;
}

void turn_pass(struct emit *e, struct walk *w)
{
    const struct place here = e->at;
    LLVMBasicBlockRef after = producer_begin_stage(e, w);
    turn_pass_here(e, w);
    end_if(e, after);
    sync_warp(e);
    e->at = here;
}

void turn_store(struct emit *e, const struct walk *w, LLVMValueRef map, LLVMValueRef from, const LLVMValueRef at[5])
{
    LLVMBasicBlockRef store = LLVMAppendBasicBlockInContext(e->context, e->function, "store"),
                      adds = LLVMAppendBasicBlockInContext(e->context, e->function, "add"),
                      after = LLVMAppendBasicBlockInContext(e->context, e->function, "stored");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, rank_of(e, w), imm(e, 0), ""), store, adds);
    LLVMPositionBuilderAtEnd(e->b, store);
    map_store(e, map, from, at);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, adds);
    fence_global(e);
    map_add(e, map, from, at);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, after);
}
