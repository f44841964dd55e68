/* compiler/order_columns.c - where two groups share the columns of the state: products by it, of which each has a part, and their sums.
 *
 * One product comes after the other, when it is first read, for beside the state there are few registers; and the state is awaited anew for
 * each, or LLVM would keep all of it packed as a left operand for the next. What the groups have of it is added up through shared memory,
 * or in the place of a loaded matrix that only positions and the first such product read (walk_place.c). Called by order_tile.c. */
#include "compiler/order.h"
#include "compiler/plan_walk.h"

#include <string.h>

/* Has a barrier of all groups come behind the last sum of columns, and, where such sums are made in the place of a loaded matrix, behind
 * all products? */
static bool is_behind_barrier(const struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = p->n_ops; i-- > 0 && p->ops[i].kind != OP_NEST;) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_BARRIER && op->sync == SYNC_GROUPS)
            return true;
        if (op->kind == OP_ADD_UP || (op->kind == OP_CONTRACT && p->sums_in >= 0))
            return false;
    }
    return false;
}

/* All sums are made in the same memory. Behind the barrier tiles of positions are whole, too. */
static void put_sum_of_columns(struct order *o, uint32_t i)
{
    const uint32_t v = o->from[i].v;
    if (!order_has_positions(o) || o->adds_up)
        order_put_sync(o, OP_AWAIT, SYNC_STATE);
    o->adds_up = true;
    for (uint32_t part = 0; part < plan_state_parts(o->p); part++) {
        order_put_part(o, i, part);
        order_await(o, v);
    }
    if (o->owes || !is_behind_barrier(o))
        order_put_sync(o, OP_BARRIER, SYNC_GROUPS);
    o->owes = false;
    order_put_value(o, OP_ADD_UP, v);
}

void order_put_sums_of_columns(struct order *o, uint32_t end)
{
    for (uint32_t i = o->begin; i < end; i++)
        if (order_reads_state(o->p, &o->from[i]) && !o->placed[i])
            put_sum_of_columns(o, i);
}

void order_put_sums_that_are_read(struct order *o, const struct op *op)
{
    uint8_t reads[PLAN_MAX_OP_READS + 1];
    uint32_t n = plan_op_reads(o->p, op, reads);
    reads[n++] = op->v;
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_reads_state(o->p, &o->from[i]) && memchr(reads, o->from[i].v, n))
            order_put_sums_of_columns(o, i + 1);
}
