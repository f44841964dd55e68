/* lower/walk_cluster.c - the two thread blocks of a cluster add up the parts of the output that they have (TG_CLUSTER).
 *
 * Each sends half of the positions and keeps the other: what a thread has, the same thread of the other block has of the
 * other part, so that its sum is one addition, whose order does not matter. What is sent lands where the other block's
 * `left` was; two barriers of each group, in the memory of the one who waits, say
 *
 *     ready   the other group has read its `left` for the last time
 *     full    what it has sent has arrived
 *
 * A thread block may end when its last `full` is: nothing comes to it after that.
 * Both are used once in a chunk, so that the chunk's buffer is their parity. Stores that report to a barrier need no
 * fence before: one at the scope of a cluster is one of the whole GPU. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

enum {
    HALF = WALK_TILE / 4,
    PER_STORE = 4,
    PITCH = 128 * 16
}; /* of a thread: elements that it sends; of a store; bytes between its stores */

static LLVMValueRef group_barrier(struct emit *e, const struct walk *w, bool ready)
{
    const uint32_t first = e->p->barrier_offset + 16 * e->p->nests[0].stages + (ready ? 8 : 0);
    return shared_address(e, add(e, mul(e, w->group, imm(e, 16)), imm(e, first)));
}

static LLVMValueRef of_other(struct emit *e, LLVMValueRef address)
{
    return cluster_address(e, address,
                           LLVMBuildXor(e->b, cluster_rank(e), imm(e, plan_cluster_step(e->p, e->p->adds)), ""));
}

LLVMValueRef cluster_index(struct emit *e, uint32_t dim)
{
    const uint32_t step = plan_cluster_step(e->p, dim), along = e->p->along[dim];
    LLVMValueRef rank = cluster_rank(e);
    return along == e->p->cluster ? rank : modulo(e, divide(e, rank, imm(e, step)), imm(e, along));
}

void cluster_init(struct emit *e)
{
    for (uint32_t i = 0; i < 2 * e->p->groups;
         i++) /* full: by one thread for all bytes; ready: by one lane of each warp */
        mbarrier_init(e, shared_address(e, imm(e, e->p->barrier_offset + 16 * e->p->nests[0].stages + 8 * i)),
                      i % 2 ? 4 : 1);
}

void cluster_ready(struct emit *e, const struct walk *w)
{
    sync_warp(e);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    mbarrier_arrive_far(e, of_other(e, group_barrier(e, w, true)));
    end_if(e, after);
    sync_warp(e);
}

static void send(struct emit *e, const struct walk *w, LLVMValueRef to, LLVMValueRef first,
                 const LLVMValueRef x[WALK_TILE / 2])
{
    LLVMValueRef far = of_other(e, to), full = of_other(e, group_barrier(e, w, false));
    for (uint32_t i = 0; i < HALF; i += PER_STORE) {
        LLVMValueRef words[PER_STORE];
        for (uint32_t k = 0; k < PER_STORE; k++)
            words[k] = choose(e, first, x[HALF + i + k], x[i + k]);
        store_far(e, add(e, far, imm(e, i / PER_STORE * PITCH)), words, full);
    }
}

static void receive(struct emit *e, LLVMValueRef from, LLVMValueRef first, LLVMValueRef x[WALK_TILE / 2])
{
    LLVMTypeRef words = LLVMVectorType(e->f32, PER_STORE);
    for (uint32_t i = 0; i < HALF; i += PER_STORE) {
        LLVMValueRef at = LLVMBuildIntToPtr(e->b, add(e, from, imm(e, i / PER_STORE * PITCH)), e->shared, "");
        LLVMValueRef got = LLVMBuildLoad2(e->b, words, at, "");
        LLVMSetAlignment(got, 16);
        for (uint32_t k = 0; k < PER_STORE; k++) {
            LLVMValueRef kept = choose(e, first, x[i + k], x[HALF + i + k]);
            x[i + k] = LLVMBuildFAdd(e->b, kept, LLVMBuildExtractElement(e->b, got, imm(e, k), ""), "");
        }
    }
}

void cluster_exchange(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[WALK_TILE / 2], *slot = slots(e, w, op->v);
    const uint32_t n = take(e, w, op->v, x);
    LLVMValueRef place =
        add(e, matrix_address(e, w, op->a), mul(e, owner_span(e, w), imm(e, WALK_TILE * WALK_SPAN_BYTES)));
    LLVMValueRef first = LLVMBuildICmp(e->b, LLVMIntEQ, cluster_index(e, e->p->adds), imm(e, 0), "");
    LLVMValueRef mine = add(e, place, mul(e, e->tid, imm(e, 4 * PER_STORE)));
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    mbarrier_arrive_expecting(e, group_barrier(e, w, false), 128 * HALF * 4);
    end_if(e, after);
    mbarrier_wait_far(e, group_barrier(e, w, true), w->buffer);
    send(e, w, mine, first, x);
    mbarrier_wait_far(e, group_barrier(e, w, false), w->buffer);
    receive(e, mine, first, x);
    for (uint32_t r = 0; r < n; r++)
        set(e, slot[r], x[r]);
}

LLVMValueRef cluster_first_position(struct emit *e)
{
    return mul(e, cluster_index(e, e->p->adds), imm(e, WALK_TILE / 2));
}
