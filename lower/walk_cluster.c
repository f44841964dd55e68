/* lower/walk_cluster.c - the two thread blocks of a cluster add up the parts of the output that they have (TG_CLUSTER).
 *
 * Each sends half of the positions and keeps the other: what a thread has, the same thread of the other block has of the
 * other part, so that its sum is one addition, whose order does not matter. What is sent lands in the place of the other
 * block's output; two barriers of each group, in the memory of the one who waits, say
 *
 *     ready   the other group has read for the last time what was loaded there (compiler/exchange.c)
 *     full    what it has sent has arrived
 *
 * A thread block may end when its last `full` is: nothing comes to it after that.
 * Both are used once in a chunk. Stores that report to a barrier need no fence before. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

enum {
    HALF = WALK_TILE / 4,
    PER_STORE = 4,
    PITCH = 128 * 16
}; /* of a thread: elements that it sends; of a store; bytes between its stores */

/* Of the group, for the sum that the operation is about. */
static LLVMValueRef group_barrier(struct emit *e, const struct walk *w, const struct op *op, bool ready)
{
    const uint32_t before = e->p->nests[0].stages + plan_cluster_sums(e->p, op->tile) * e->p->groups,
                   first = e->p->barrier_offset + 16 * before + (ready ? 8 : 0);
    return shared_address(e, add(e, mul(e, w->group, imm(e, 16)), imm(e, first)));
}

static LLVMValueRef of_other(struct emit *e, LLVMValueRef address)
{
    return cluster_address(e, address,
                           LLVMBuildXor(e->b, cluster_rank(e), imm(e, plan_cluster_step(e->p, e->p->adds)), ""));
}

/* Parity of the chunks since the first. */
static LLVMValueRef phase(struct emit *e, const struct walk *w)
{
    return e->p->nests[0].stages == 2 ? w->stage : modulo(e, sub(e, w->step, walk_first_step(e)), imm(e, 2));
}

LLVMValueRef cluster_index(struct emit *e, uint32_t dim)
{
    const uint32_t step = plan_cluster_step(e->p, dim), along = e->p->along[dim];
    LLVMValueRef rank = cluster_rank(e);
    return along == e->p->cluster ? rank : modulo(e, divide(e, rank, imm(e, step)), imm(e, along));
}

void cluster_init(struct emit *e)
{
    for (uint32_t i = 0; i < 2 * e->p->groups * plan_cluster_sums(e->p, 0);
         i++) /* full: by one thread for all bytes; ready: by one lane of each warp */
        mbarrier_init(e, shared_address(e, imm(e, e->p->barrier_offset + 16 * e->p->nests[0].stages + 8 * i)),
                      i % 2 ? 4 : 1);
}

void cluster_ready(struct emit *e, const struct walk *w, const struct op *op)
{
    sync_warp(e);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    mbarrier_arrive_far(e, of_other(e, group_barrier(e, w, op, true)));
    end_if(e, after);
    sync_warp(e);
}

/* Parts are rounded before they are added, as those that are added in memory are, so that a packed sequence has the bits that it has
 * alone. */
static void round_parts(struct emit *e, LLVMValueRef *x)
{
    for (uint32_t r = 0; r < PER_STORE; r += 2) {
        LLVMValueRef word = pack(e, x[r], x[r + 1]);
        for (uint32_t half = 0; half < 2; half++)
            x[r + half] = unpack_as(e, e->p->shape.io, word, half);
    }
}

/* What the other one keeps; of the value what is kept here. */
static void send(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef to, LLVMValueRef first,
                 LLVMValueRef x[WALK_TILE / 2])
{
    LLVMValueRef far = of_other(e, to), full = of_other(e, group_barrier(e, w, op, false));
    for (uint32_t i = 0; i < HALF; i += PER_STORE) {
        LLVMValueRef words[PER_STORE];
        for (uint32_t k = 0; k < PER_STORE; k++) {
            words[k] = choose(e, first, x[HALF + i + k], x[i + k]);
            x[i + k] = choose(e, first, x[i + k], x[HALF + i + k]);
        }
        round_parts(e, words);
        round_parts(e, &x[i]);
        store_far(e, add(e, far, imm(e, i / PER_STORE * PITCH)), words, full);
    }
}

static void receive(struct emit *e, LLVMValueRef from, LLVMValueRef x[HALF])
{
    LLVMTypeRef words = LLVMVectorType(e->f32, PER_STORE);
    for (uint32_t i = 0; i < HALF; i += PER_STORE) {
        LLVMValueRef at = LLVMBuildIntToPtr(e->b, add(e, from, imm(e, i / PER_STORE * PITCH)), e->shared, "");
        LLVMValueRef got = LLVMBuildLoad2(e->b, words, at, "");
        LLVMSetAlignment(got, 16);
        for (uint32_t k = 0; k < PER_STORE; k++)
            x[i + k] = LLVMBuildFAdd(e->b, x[i + k], LLVMBuildExtractElement(e->b, got, imm(e, k), ""), "");
    }
}

/* Where what the other thread block sends to this thread comes to. */
static LLVMValueRef place_of(struct emit *e, const struct walk *w, const struct op *op)
{
    LLVMValueRef span =
        add(e, matrix_address(e, w, op->a), mul(e, owner_span(e, w), imm(e, WALK_TILE * WALK_SPAN_BYTES)));
    return add(e, span, mul(e, e->tid, imm(e, 4 * PER_STORE)));
}

void cluster_send(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[WALK_TILE / 2], *slot = slots(e, w, op->v);
    take(e, w, op->v, x);
    LLVMValueRef first = LLVMBuildICmp(e->b, LLVMIntEQ, cluster_index(e, e->p->adds), imm(e, 0), "");
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    mbarrier_arrive_expecting(e, group_barrier(e, w, op, false), 128 * HALF * 4);
    end_if(e, after);
    mbarrier_wait(e, group_barrier(e, w, op, true), phase(e, w));
    send(e, w, op, place_of(e, w, op), first, x);
    for (uint32_t r = 0; r < HALF; r++)
        set(e, slot[r], x[r]);
}

void cluster_receive(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[WALK_TILE / 2], *slot = slots(e, w, op->v);
    take(e, w, op->v, x);
    mbarrier_wait(e, group_barrier(e, w, op, false), phase(e, w));
    receive(e, place_of(e, w, op), x);
    for (uint32_t r = 0; r < HALF; r++)
        set(e, slot[r], x[r]);
}

LLVMValueRef cluster_first_position(struct emit *e)
{
    return mul(e, cluster_index(e, e->p->adds), imm(e, WALK_TILE / 2));
}
