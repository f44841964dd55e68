/* compiler/order_positions.c - what a chunk does for positions: products of loaded matrices, maps and sums of them, of several heads
 * one after the other, until the tiles that they make are whole in shared memory. */
#include "compiler/order.h"
#include "compiler/plan_walk.h"

/* The first tile of a chunk that has but one buffer waits until all groups have left the chunk before. */
void order_put_map(struct order *o, uint32_t i)
{
    const struct op *op = &o->from[i];
    const struct value *v = &o->p->values[op->v];
    if (order_is_implied(o->p, op))
        return;
    order_look_at_product(o, order_put_from(o, i));
    if (plan_has_one_buffer(o->p, v))
        order_overwrite(o);
    if (plan_is_made_tile(v) && !v->summed)
        order_put_value(o, OP_PUT, op->v);
}

void order_put_sums_of_loaded(struct order *o, bool by_head)
{
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!order_sums_loaded(o->p, &o->from[i]) || o->p->values[o->from[i].v].by_head != by_head)
            continue;
        if (plan_is_gathered(&o->p->values[o->from[i].v]))
            order_forget(o, FORGET_THREAD);
        order_put_from(o, i);
    }
}

/* Do the groups hand each other anything? Late sums they do behind the barrier of the next chunk. What makers make is no matter of theirs. */
bool order_begins_with_all(const struct order *o)
{
    bool any = false;
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *op = &o->from[i];
        const bool of_positions =
            order_makes_of_positions(o->p, op) || (order_works_on_positions(o->p, op) && !order_is_implied(o->p, op));
        any |= (of_positions && !o->p->has_makers) || order_sums_loaded(o->p, op) || order_stores_late(o->p, op);
    }
    return any;
}

static void put_work_on_positions(struct order *o, bool by_head)
{
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!order_works_on_positions(o->p, &o->from[i]) || o->p->values[o->from[i].v].by_head != by_head)
            continue;
        if (o->from[i].kind == OP_MAP)
            order_put_map(o, i);
        else
            order_put_from(o, i);
    }
}

static void put_products_of_positions(struct order *o, bool by_head)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_makes_of_positions(o->p, &o->from[i]) && o->p->values[o->from[i].v].by_head == by_head)
            order_put_product(o, i);
    if (!o->together && order_has_positions(o))
        order_leave_behind(o, false);
    order_put_sums_of_loaded(o, by_head);
}

static void await_products_of_positions(struct order *o, bool by_head)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_makes_of_positions(o->p, &o->from[i]) && o->p->values[o->from[i].v].by_head == by_head)
            order_await(o, o->from[i].v);
}

/* Of computed tiles whose sum over heads is what products take. */
static void put_summed_tiles(struct order *o, enum op_kind kind)
{
    for (uint32_t i = 0; i < o->p->n_values; i++)
        if (plan_is_made_tile(&o->p->values[i]) && o->p->values[i].summed)
            *order_put(o, kind) = (struct op){
                .kind = (uint8_t)kind, .role = (uint8_t)o->role, .stmt = -1, .v = (uint8_t)i, .a = (uint8_t)i};
}

/* What each of several heads has of positions, in the registers of one; products that all share are under way. */
static void put_positions_of_heads(struct order *o)
{
    order_put(o, OP_HEADS);
    put_products_of_positions(o, true);
    await_products_of_positions(o, true);
    if (o->p->sums_heads)
        await_products_of_positions(o, false);
    put_work_on_positions(o, true);
    put_summed_tiles(o, OP_TOTAL);
    order_put(o, OP_END_HEADS);
    put_summed_tiles(o, OP_PUT);
}

/* Has the group one tile, more than one product that can begin at once, and no sums of those of positions,
 * so that nobody waits for these but products by what they make? */
bool order_can_be_together(const struct order *o)
{
    const struct plan *p = o->p;
    uint32_t reads = 0;
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *op = &o->from[i];
        reads += order_reads_state(p, op);
        if (order_makes_vector(p, op) || order_sums_loaded(p, op) || order_sums_state(p, op) ||
            (op->kind == OP_DOT && order_works_on_positions(p, op)))
            return false;
    }
    return reads + order_has_positions(o) > 1 && p->heads == 1 && p->tiles == 1 && !p->shares_columns &&
           !p->rounds_state;
}

/* Behind products of positions: what is made of them, for wgmma to read. */
static void put_tiles_of_positions(struct order *o)
{
    await_products_of_positions(o, false);
    put_work_on_positions(o, false);
    order_put(o, OP_FENCE);
}

void order_make_positions(struct order *o)
{
    put_products_of_positions(o, false);
    put_tiles_of_positions(o);
}

/* Each row of what is read, what is made of it, and what products read of that to where the former was. */
void order_make_rows(struct order *o)
{
    const struct plan *p = o->p;
    order_put(o, OP_ROWS);
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_loaded(&p->values[i]) && order_is_read(o, i, true))
            order_put_value(o, OP_FETCH, i);
    order_put_all(o, plan_works_on_rows);
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_made_of_rows(&p->values[i]))
            order_put_in_place(o, OP_PUT, i);
    order_put(o, OP_END_ROWS);
}

/* Products of positions and those by the state at once: the former's maps are made while the latter run. */
void order_put_together(struct order *o)
{
    const struct plan *p = o->p;
    order_put_sync(o, OP_AWAIT, SYNC_STATE);
    if (!p->has_makers)
        put_products_of_positions(o, false);
    o->owes = p->has_makers;
    order_fetch_for_maps(o);
    order_put_by_columns(o, 0);
    order_leave_behind(o, false);
    if (!p->has_makers && order_has_positions(o)) {
        put_tiles_of_positions(o);
        o->owes = true;
    }
    for (uint32_t part = 1; part < plan_state_parts(p); part++)
        order_put_by_columns(o, part);
}

/* Is it products by computed tiles, or sums of columns, alone that wait for the other groups? What one tile of the group begins with
 * the next may not wait for. */
static bool can_owe(const struct order *o)
{
    const struct plan *p = o->p;
    bool can = p->heads == 1 && p->tiles == 1 && p->groups > 1 && plan_buffers(p) > 1 && !p->carries &&
               (order_has_positions(o) || p->shares_columns);
    for (uint32_t i = o->begin; i < o->end; i++)
        can &= !order_makes_vector(p, &o->from[i]) && !order_sums_loaded(p, &o->from[i]);
    return can;
}

/* Is there a sum of the state whose first product can be under way while maps of positions are made? */
bool order_can_begin_state_sum(const struct order *o)
{
    const struct plan *p = o->p;
    uint32_t sums = 0;
    for (uint32_t i = o->begin; i < o->end; i++)
        sums += order_sums_state(p, &o->from[i]);
    return sums == 1 && order_has_positions(o) && p->groups == 2 && p->heads == 1 && p->tiles == 1 &&
           !p->shares_columns;
}

void order_put_positions(struct order *o)
{
    if (o->p->rounds_state) {
        order_put_positions_across(o);
        return;
    }
    o->begins = order_can_begin_state_sum(o);
    put_products_of_positions(o, false);
    if (o->begins)
        order_begin_state_sum(o);
    if (!o->p->sums_heads) {
        await_products_of_positions(o, false);
        put_work_on_positions(o, false);
    }
    if (o->p->heads > 1 && !(o->p->decayed && o->p->own_heads)) /* they have one tile then */
        put_positions_of_heads(o);
    if (o->p->sums_heads)
        put_work_on_positions(o, false);
    if (!order_begins_with_all(o))
        return;
    if (plan_makes_tiles(o->p)) /* else it is sums of the step before that the barrier is for */
        order_put(o, OP_FENCE);
    o->owes = can_owe(o);
    if (!o->owes)
        order_put_whole(o);
}
