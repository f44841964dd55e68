/* lower/walk_cast.c - neighbours of a cluster load once what is the same in all of them (TG_CAST).
 *
 * Each loads its share of such a matrix into the memory of all, whose `full` barriers count the bytes of the whole. So a
 * stage must be empty in every thread block before anyone fills it: the warp that fills the ring waits for its own `empty`,
 * says so to the others, and waits for a third barrier, `open`, at which each of them arrives. What computes has no part
 * in it.
 *
 * A thread block may end when it has used its last stage: it has waited for all that came, as many times as the others
 * sent, for all of them walk the same chunks. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

static LLVMValueRef open_barrier(struct emit *e, LLVMValueRef stage)
{
    const struct plan *p = e->p;
    const uint32_t first = p->barrier_offset + 16 * (p->nests[0].stages + plan_cluster_sums(p, 0) * p->groups);
    return shared_address(e, add(e, mul(e, stage, imm(e, 8)), imm(e, first)));
}

void cast_init(struct emit *e)
{
    for (uint32_t s = 0; s < e->p->nests[0].stages; s++)
        mbarrier_init(e, open_barrier(e, imm(e, s)), e->p->cluster - 1);
}

void cast_open(struct emit *e, LLVMValueRef stage)
{
    LLVMValueRef others = both(e, less(e, imm(e, 0), e->lane), less(e, e->lane, imm(e, e->p->cluster)));
    LLVMBasicBlockRef after = begin_if(e, others); /* a lane for each: numbers are a power of two */
    mbarrier_arrive_far(e,
                        cluster_address(e, open_barrier(e, stage), LLVMBuildXor(e->b, cluster_rank(e), e->lane, "")));
    end_if(e, after);
    sync_warp(e);
}

void cast_wait(struct emit *e, LLVMValueRef stage, LLVMValueRef parity)
{
    mbarrier_wait(e, open_barrier(e, stage),
                  LLVMBuildXor(e->b, parity, imm(e, 1), "")); /* it has no round before the first */
}

LLVMValueRef cast_index(struct emit *e, const struct value *v)
{
    return cluster_index(e, plan_shared_along(e->p, v));
}

LLVMValueRef cast_ranks(struct emit *e, const struct value *v)
{
    const uint32_t dim = plan_shared_along(e->p, v), step = plan_cluster_step(e->p, dim), n = plan_sharers(e->p, v);
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < n; i++)
        ranks |= 1u << i * step;
    if (n == e->p->cluster)
        return imm(e, ranks);
    LLVMValueRef first = LLVMBuildAnd(e->b, cluster_rank(e), imm(e, ~(int64_t)((n - 1) * step)), "");
    return LLVMBuildShl(e->b, imm(e, ranks), first, "");
}
