/* compiler/order_across.c - tiles of positions by the dimension that the state has as columns (walk_across.c): when the groups put the
 * state, rounded, to where all have it, and what is made of that behind the tiles of the owner's rows. */
#include "compiler/order.h"
#include "compiler/plan_walk.h"

/* All have left the step before, and the store of the output that was put where the state is has read that. */
void order_overwrite(struct order *o)
{
    if (o->overwrites)
        return;
    if (o->p->rounds_state && !o->left)
        order_put_sync(o, OP_AWAIT, SYNC_READ);
    order_put_sync(o, OP_BARRIER, SYNC_GROUPS);
    o->overwrites = true;
}

/* The matrix by which a masked tile is multiplied; -1: there is none. */
static int find_multiplied(const struct order *o)
{
    int found = -1;
    for (uint32_t i = o->begin; i < o->end; i++) {
        struct op op = o->from[i];
        if (op.kind != OP_CONTRACT || !plan_is_across(o->p, &o->p->values[op.v]) || plan_is_by_rounded_state(o->p, &op))
            continue;
        order_resolve(o->p, &op);
        found = op.b;
    }
    return found;
}

/* The map of a product of positions by that matrix looks at the product, in which all that is bad in it shows. */
void order_look_at_product(struct order *o, struct op *map)
{
    const int matrix = find_multiplied(o);
    uint8_t reads[PLAN_MAX_OP_READS];
    for (uint32_t k = 0, n = matrix < 0 ? 0 : plan_op_reads(o->p, map, reads); k < n; k++)
        for (uint32_t i = o->begin; i < o->end; i++)
            if (o->from[i].v == reads[k] && order_makes_of_positions(o->p, &o->from[i]) &&
                (o->from[i].a == matrix || o->from[i].b == matrix)) {
                map->flags |= OP_CAREFUL;
                map->a = (uint8_t)matrix;
            }
}

/* The barrier tells all groups whether there is a NaN in the matrix. */
void order_look_for_nan(struct order *o, struct op *barrier)
{
    const int matrix = find_multiplied(o);
    if (matrix < 0)
        return;
    barrier->flags |= OP_CAREFUL;
    barrier->v = (uint8_t)matrix;
}

/* Does it read a matrix that has a stage of its own, or the product of one? */
static bool reads_own_stage(const struct order *o, const struct op *op)
{
    const struct plan *p = o->p;
    uint8_t reads[PLAN_MAX_OP_READS];
    for (uint32_t k = 0, n = plan_op_reads(p, op, reads); k < n; k++) {
        if (plan_is_loaded(&p->values[reads[k]]) && p->values[reads[k]].own_stage)
            return true;
        for (uint32_t i = o->begin; op->kind == OP_MAP && i < o->end; i++)
            if (o->from[i].kind == OP_CONTRACT && o->from[i].v == reads[k] && reads_own_stage(o, &o->from[i]))
                return true;
    }
    return false;
}

static void put_products_that(struct order *o, bool own_stage)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_makes_of_positions(o->p, &o->from[i]) && reads_own_stage(o, &o->from[i]) == own_stage)
            order_put_product(o, i);
}

static void put_work_that(struct order *o, bool own_stage)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_makes_of_positions(o->p, &o->from[i]) && reads_own_stage(o, &o->from[i]) == own_stage)
            order_await(o, o->from[i].v);
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_works_on_positions(o->p, &o->from[i]) && reads_own_stage(o, &o->from[i]) == own_stage) {
            if (o->from[i].kind == OP_MAP)
                order_put_map(o, i);
            else
                order_put_from(o, i);
        }
}

static void put_rounded_state(struct order *o)
{
    order_overwrite(o);
    order_forget(o, FORGET_THREAD);
    order_put_in_place(o, OP_PUT, o->p->state);
    order_put(o, OP_FENCE);
}

static bool tells(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].told)
            return true;
    return false;
}

/* Matrices that have stages of their own are loaded while what does without them is done: sums of the state, and it is put. Where there
 * are none, the barrier of tiles is the one that the products by the rounded state are behind; else those who walk meet when they are told
 * that such a matrix is there, and that of tiles is to come. */
void order_put_positions_across(struct order *o)
{
    if (order_has_state_sums(o))
        order_put_sync(o, OP_AWAIT, SYNC_STATE);
    put_products_that(o, false);
    order_leave_behind(o, false);
    order_put_sums_of_loaded(o, false);
    order_put_state_sums(o);
    put_work_that(o, false);
    put_rounded_state(o);
    if (!o->p->own_stages)
        order_put_whole(o);
    else if (!tells(o->p))
        order_put_sync(o, OP_BARRIER, SYNC_GROUP);
    put_products_that(o, true);
    order_put_by_columns(o, 0);
    order_put_all(o, order_decays_state);
    put_work_that(o, true);
    if (o->p->own_stages)
        order_put(o, OP_FENCE);
    o->owes = o->p->own_stages > 0;
}

/* The one product by the rounded state, or by a tile; the output. */
static uint32_t find(const struct order *o, enum op_kind kind, bool by_state)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (o->from[i].kind == kind && plan_is_across(o->p, &o->p->values[o->from[i].v]) &&
            plan_is_by_rounded_state(o->p, &o->from[i]) == by_state)
            return i;
    return o->end;
}

/* Maps and copies among `from[begin]` and those before `from[end]`. */
static void put_maps(struct order *o, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if ((o->from[i].kind == OP_MAP || o->from[i].kind == OP_COPY) &&
            plan_is_across(o->p, &o->p->values[o->from[i].v]))
            order_put_from(o, i);
}

void order_begin_across(struct order *o)
{
    const uint32_t i = find(o, OP_CONTRACT, true);
    if (!o->placed[i])
        order_put_product(o, i);
}

bool order_begins_across_early(const struct order *o)
{
    enum { MOST = 128 };
    const struct plan *p = o->p;
    return p->rounds_state && plan_state_columns(p) / 2 + plan_across_columns(p) / 2 <= MOST;
}

/* What the state's product has made is awaited before, or a NaN that it should meet would be taken out. */
void order_put_by_tile_across(struct order *o)
{
    const uint32_t first = find(o, OP_CONTRACT, true), second = find(o, OP_CONTRACT, false);
    order_await(o, o->p->state);
    order_begin_across(o);
    order_await(o, o->from[first].v);
    put_maps(o, first, second);
    order_put_product(o, second);
}

void order_end_across(struct order *o)
{
    const uint32_t product = find(o, OP_CONTRACT, false), store = find(o, OP_STORE, false);
    const struct op output = o->from[store];
    if (!order_begins_across_early(o))
        order_put_sync(o, OP_BARRIER, SYNC_GROUP);
    order_await(o, o->from[product].v);
    put_maps(o, product, o->end);
    order_forget(o, FORGET_THREAD);
    order_put_in_place(o, OP_PUT, output.v)->tile = output.tile;
    order_put(o, OP_FENCE);
    order_put_sync(o, OP_BARRIER, SYNC_GROUP);
    order_put_from(o, store)->a = output.v;
}
