/* lower/walk_carry.c - vectors carried beside the state of a kernel on warpgroups: the normaliser's n.
 *
 *   gathered  sums over the positions of a loaded matrix, times a vector: all threads share them out, each a pair of columns of
 *             some positions, while products are under way; parts in shared memory, two buffers in turn
 *   carried   behind the barrier of the chunk each warpgroup adds the parts to its own copy of the vector, decayed, which it reads
 *             in the next chunk. The group's barrier, when it stores the output, lies between; two buffers, since some still
 *             read what others add to
 *
 * A kernel that makes states alone gathers while the state's products are under way, and nobody reads the vector in it: a thread
 * adds to its own elements. What it reads of the parts is not overwritten before the barrier of the next chunk, behind which
 * all have added. */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "lower/walk.h"

/* Of all threads: this one's number, and how many share a pair of columns. */
static LLVMValueRef thread_of_all(struct emit *e, const struct walk *w)
{
    return add(e, mul(e, w->group, imm(e, 128)), e->tid);
}

/* A power of two, so that each has as many positions; threads may be left over. */
static uint32_t sharers(const struct plan *p, const struct value *matrix)
{
    uint32_t n = 1;
    while (2 * n * (matrix->extent[1] / 2) <= 128 * p->groups)
        n *= 2;
    return n;
}

/* A pair of columns of some of the positions: this thread's part. */
void walk_gather(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *matrix = &p->values[op->a], *out = &p->values[op->v];
    const uint32_t pairs = matrix->extent[1] / 2, rows = WALK_TILE / sharers(p, matrix);
    LLVMValueRef thread = thread_of_all(e, w), pair = modulo(e, thread, imm(e, pairs)),
                 first = mul(e, divide(e, thread, imm(e, pairs)), imm(e, rows));
    LLVMValueRef span = mul(e, divide(e, pair, imm(e, 32)), imm(e, WALK_TILE * WALK_SPAN_BYTES)),
                 in_span = modulo(e, pair, imm(e, 32));
    LLVMValueRef in_unit = add(e, span, mul(e, modulo(e, in_span, imm(e, 4)), imm(e, 4))),
                 unit = divide(e, in_span, imm(e, 4));
    LLVMValueRef from = slot_address(e, matrix, w->stage),
                 weights = byte_offset(e, slot_address(e, &p->values[op->b], e->slot[op->b]), mul(e, first, imm(e, 4)));
    LLVMValueRef sum[2] = {real(e, 0), real(e, 0)};
    const uint32_t busy = sharers(p, matrix) * pairs;
    LLVMBasicBlockRef after = busy < 128 * p->groups ? begin_if(e, less(e, thread, imm(e, busy))) : NULL;
    for (uint32_t r = 0; r < rows; r++) {
        LLVMValueRef offset = add(e, unit_offset(e, add(e, first, imm(e, r)), unit), in_unit);
        LLVMValueRef word = LLVMBuildLoad2(e->b, e->i32, byte_offset(e, from, offset), "");
        LLVMValueRef weight = LLVMBuildLoad2(e->b, e->f32, byte_offset(e, weights, imm(e, 4 * r)), "");
        for (uint32_t i = 0; i < 2; i++)
            sum[i] = fma_of(e, unpack(e, word, i), weight, sum[i]);
    }
    LLVMValueRef to = byte_offset(e, slot_address(e, out, w->buffer), mul(e, thread, imm(e, 8)));
    for (uint32_t i = 0; i < 2; i++)
        LLVMBuildStore(e->b, sum[i], byte_offset(e, to, imm(e, 4 * i)));
    if (after) {
        end_if(e, after);
        sync_warp(e);
    }
}

typedef void each_carried(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef index);

/* The elements that this thread has of its group's copy. */
static void for_carried(struct emit *e, const struct walk *w, const struct op *op, each_carried *each)
{
    const uint32_t extent = e->p->values[op->v].extent[0];
    for (uint32_t first = 0; first < extent; first += 128) {
        LLVMBasicBlockRef after =
            extent % 128 ? begin_if(e, less(e, add(e, e->tid, imm(e, first)), imm(e, extent))) : NULL;
        each(e, w, op, add(e, e->tid, imm(e, first)));
        if (after)
            end_if(e, after);
    }
}

/* In the buffer that is read in this chunk, or the other one. */
static LLVMValueRef carried_address(struct emit *e, const struct walk *w, uint32_t v, bool next, LLVMValueRef index)
{
    LLVMValueRef slot = walk_carried_slot(e, w, next ? sub(e, imm(e, 1), w->buffer) : w->buffer);
    return byte_offset(e, slot_address(e, &e->p->values[v], slot), mul(e, index, imm(e, 4)));
}

LLVMValueRef walk_carried_slot(struct emit *e, const struct walk *w, LLVMValueRef buffer)
{
    return add(e, mul(e, w->group, imm(e, 2)), buffer);
}

static void init_carried(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef index)
{
    LLVMValueRef to = carried_address(e, w, op->v, false, index), there = op->tile ? present(e, op->tile) : NULL,
                 x = local(e, e->f32, "carried");
    set(e, x, real(e, 0));
    LLVMBasicBlockRef after = there ? begin_if(e, there) : NULL;
    if (op->tile) {
        const struct value *v = &e->p->values[op->v];
        LLVMBasicBlockRef outside = begin_inside(e, v->dims[0], index);
        set(e, x,
            LLVMBuildLoad2(e->b, e->f32, tensor_address(e, v->operand, op->tile, &e->at, v->dims, index, NULL), ""));
        end_inside(e, outside);
    }
    if (after)
        end_if(e, after);
    LLVMBuildStore(e->b, get(e, e->f32, x), to);
}

/* Before the first chunk, which reads it in another order: behind a barrier of all groups. They have read memory then before one
 * writes the end there: a packed sequence may be empty, and its end lie where it begins. */
void walk_init_carried(struct emit *e, const struct walk *w, const struct op *op)
{
    for_carried(e, w, op, init_carried);
}

/* x + an element of what has been gathered of a matrix. */
static LLVMValueRef add_parts(struct emit *e, const struct walk *w, uint32_t gathered, const struct value *matrix,
                              LLVMValueRef index, LLVMValueRef x)
{
    LLVMValueRef parts = byte_offset(e, slot_address(e, &e->p->values[gathered], w->buffer), mul(e, index, imm(e, 4)));
    for (uint32_t i = 0; i < sharers(e->p, matrix); i++)
        x = LLVMBuildFAdd(
            e->b, x, LLVMBuildLoad2(e->b, e->f32, byte_offset(e, parts, imm(e, 4 * i * matrix->extent[1])), ""), "");
    return x;
}

static void add_carried(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef index)
{
    const struct plan *p = e->p;
    LLVMValueRef x = LLVMBuildLoad2(e->b, e->f32, carried_address(e, w, op->v, false, index), "");
    if (op->flags & OP_DECAYED) {
        LLVMValueRef g = LLVMBuildLoad2(e->b, e->f32, slot_address(e, &p->values[op->c], e->slot[op->c]), "");
        x = LLVMBuildFMul(e->b, x, exp2_approx(e, g), "");
    }
    LLVMBuildStore(e->b, add_parts(e, w, op->a, &p->values[op->b], index, x),
                   carried_address(e, w, op->v, true, index));
}

/* Behind the barrier of the chunk. */
void walk_add_carried(struct emit *e, struct walk *w, const struct op *op)
{
    for_carried(e, w, op, add_carried);
}

static void keep_carried(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef index)
{
    const struct value *v = &e->p->values[op->v];
    LLVMValueRef x = LLVMBuildLoad2(e->b, e->f32, carried_address(e, w, op->v, false, index), "");
    LLVMBasicBlockRef outside = begin_inside(e, v->dims[0], index);
    LLVMBuildStore(e->b, x, tensor_address(e, v->operand, op->tile, &e->at, v->dims, index, NULL));
    end_inside(e, outside);
}

/* By one group of one thread block, on a condition. */
static void keep(struct emit *e, const struct walk *w, const struct op *op, each_carried *each, LLVMValueRef condition)
{
    LLVMValueRef there = both(e, condition, is_first(e, op->tile));
    LLVMBasicBlockRef after = begin_if(e, both(e, LLVMBuildICmp(e->b, LLVMIntEQ, w->group, imm(e, 0), ""), there));
    for_carried(e, w, op, each);
    end_if(e, after);
}

void walk_keep_carried(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef condition)
{
    keep(e, w, op, keep_carried, condition);
}

void walk_store_carried(struct emit *e, struct walk *w, const struct op *op)
{
    walk_keep_carried(e, w, op, present(e, op->tile));
}

static void store_gathered(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef index)
{
    const struct value *v = &e->p->values[op->v];
    LLVMValueRef sum = add_parts(e, w, op->v, &e->p->values[op->a], index, real(e, 0));
    LLVMBasicBlockRef outside = begin_inside(e, v->dims[0], index);
    store_float(e, plan_memory_dtype(e->p, op->tile), sum,
                tensor_address(e, v->operand, op->tile, &e->at, v->dims, index, NULL));
    end_inside(e, outside);
}

void walk_store_gathered(struct emit *e, struct walk *w, const struct op *op)
{
    keep(e, w, op, store_gathered, present(e, op->tile));
    sync_warp(e); /* lanes may have parted, and what follows is for warps */
}
