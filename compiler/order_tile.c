/* compiler/order_tile.c - what a chunk does for each tile of 64 rows of the state: products by it, its decay, what is made of them,
 * products into it, outputs to memory. */
#include "compiler/order.h"
#include "compiler/plan_walk.h"

bool order_has_state_sums(const struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_sums_state(o->p, &o->from[i]))
            return true;
    return false;
}

/* The product that makes the value, or the last of those that it is the sum of, and in `onto` what that is added to; -1: none. */
static int find_product(struct order *o, int v, int *onto)
{
    int found = -1;
    *onto = -1;
    for (uint32_t k = o->begin; k < o->end; k++) {
        const struct op *op = &o->from[k];
        if (op->v != v || (op->kind != OP_CONTRACT && op->kind != OP_COPY))
            continue;
        o->placed[k] = true;
        found = op->kind == OP_CONTRACT ? (int)k : found;
        *onto = op->kind == OP_COPY ? op->a : *onto;
    }
    return found;
}

/* <state, product>: the product, or a sum of two, is made 64 columns at a time and not kept. */
static void put_state_sum(struct order *o, uint32_t i)
{
    struct plan *p = o->p;
    int onto, none;
    const int k = find_product(o, o->from[i].a == p->state ? o->from[i].b : o->from[i].a, &onto),
              first = onto < 0 ? -1 : find_product(o, onto, &none);
    struct op made = o->from[k];
    order_resolve(p, &made);
    if (first >= 0) {
        struct op *op = order_put_from(o, (uint32_t)first);
        order_resolve(p, op);
        op->kind = OP_ADDEND;
        op->v = o->from[i].v;
    }
    struct op *op = order_put_from(o, i);
    op->w = p->state;
    op->a = made.a;
    op->b = made.b;
    op->c = made.c;
    op->flags = (made.flags & OP_SCALED) | OP_OF_PRODUCT;
}

void order_begin_state_sum(struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!order_sums_state(o->p, &o->from[i]))
            continue;
        put_state_sum(o, i);
        struct op *op = &o->p->ops[o->p->n_ops - 1];
        o->begun = *op;
        op->kind = OP_BEGIN;
        o->flying[o->n_flying++] = op->v;
    }
}

void order_put_state_sums(struct order *o)
{
    for (uint32_t i = o->begin; !o->begins && i < o->end; i++)
        if (order_sums_state(o->p, &o->from[i]) && !o->placed[i])
            put_state_sum(o, i);
    if (o->begins) {
        *order_put(o, OP_DOT) = o->begun;
        o->n_flying = 0;
    }
    order_put_all(o, order_stores_rows);
}

static void put_vectors(struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!order_makes_vector(p, &o->from[i]))
            continue;
        struct op *op = order_put_from(o, i);
        if (op->kind == OP_DOT)
            op->b = order_gathered_from(o, op->a);
        for (uint32_t k = o->begin; op->kind == OP_DOT && k < o->end; k++)
            if (o->from[k].kind == OP_DECAY && o->from[k].v == op->v) {
                o->placed[k] = true;
                op->flags |= OP_DECAYED;
                op->c = o->from[k].a;
            }
    }
}

/* Of loaded matrices, once for all products that have them on the left. */
static void fetch_left(struct order *o)
{
    const struct plan *p = o->p;
    tg_bits fetched = 0;
    for (uint32_t i = o->begin; i < o->end; i++) {
        struct op op = o->from[i];
        if (!order_is_by_tile(p, &op) && !order_changes_state(p, &op))
            continue;
        order_resolve(p, &op);
        if (!plan_is_loaded(&p->values[op.a]) || (fetched >> op.a & 1))
            continue;
        fetched |= TG_BIT(op.a);
        order_fetch(o, op.a);
    }
}

/* Has a product into the state the value on its left, or, unless it is `of_state` alone, one by a tile? */
static bool is_on_the_left(const struct order *o, uint32_t v, bool of_state)
{
    for (uint32_t i = o->begin; i < o->end; i++) {
        struct op op = o->from[i];
        if (!order_changes_state(o->p, &op) && (of_state || !order_is_by_tile(o->p, &op)))
            continue;
        order_resolve(o->p, &op);
        if (op.a == plan_first_of(o->p, v))
            return true;
    }
    return false;
}

/* Does a map of the output read what such a product has on the left? Then it comes before that, by what has been fetched. */
static bool is_map_of_left(const struct order *o, const struct op *op)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    bool is = false;
    if (!o->p->decayed || op->kind != OP_MAP || !order_is_of_output(o->p, op) || order_is_implied(o->p, op))
        return false;
    for (uint32_t k = 0, n = plan_op_reads(o->p, op, reads); k < n; k++)
        is |= plan_is_loaded(&o->p->values[reads[k]]) && is_on_the_left(o, reads[k], true);
    return is;
}

/* Behind the last product by a tile, and what the state's products have on the left. */
static uint32_t find_last(const struct order *o)
{
    uint32_t last = o->begin;
    for (uint32_t i = o->begin; i < o->end; i++)
        last = order_is_by_tile(o->p, &o->from[i]) || is_on_the_left(o, o->from[i].v, true) ||
                       is_map_of_left(o, &o->from[i])
                   ? i + 1
                   : last;
    return last;
}

/* What maps of the products by the state read of loaded matrices, before these begin: beside them shared memory is slow to
 * answer. */
void order_fetch_for_maps(struct order *o)
{
    const struct plan *p = o->p;
    uint8_t reads[PLAN_MAX_OP_READS];
    for (uint32_t i = o->begin, last = p->sums_heads ? o->begin : find_last(o); i < last; i++) {
        struct op *op = &o->from[i];
        const bool is_map = op->kind == OP_MAP && order_is_of_output(p, op) && !order_is_implied(p, op);
        for (uint32_t k = 0, n = is_map ? plan_op_reads(p, op, reads) : 0; k < n; k++) {
            if (!plan_is_loaded(&p->values[reads[k]]) || is_on_the_left(o, reads[k], false))
                continue;
            order_put_value(o, OP_FETCH, reads[k]);
            op->flags |= OP_AHEAD;
        }
    }
}

static bool stores_output(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && order_is_of_output(p, op);
}

bool order_stores_output(const struct plan *p, const struct op *op)
{
    return stores_output(p, op) && plan_is_mapped_store(p, op);
}

bool order_has_own_place(const struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_stores_output(o->p, &o->from[i]) && o->p->values[o->from[i].v].place == o->from[i].v)
            return true;
    return false;
}

/* Does the next step read what the group carries on before its barrier of all groups, or has it none? */
static bool carries_to_the_start(const struct order *o)
{
    const struct value *values = o->p->values;
    bool reads = !order_begins_with_all(o);
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *op = &o->from[i];
        reads |= order_sums_loaded(o->p, op) && (plan_is_carried(&values[op->a]) || plan_is_carried(&values[op->b]));
    }
    return o->p->carries && reads;
}

/* What has come from the other thread block; all threads of a group have read it before it is overwritten. */
static void put_sums_of_cluster(struct order *o)
{
    bool any = false;
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *from = &o->from[i];
        if (!order_stores_output(o->p, from) || !plan_is_exchanged(o->p, from->tile))
            continue;
        if (!any)
            order_forget(o, FORGET_THREAD);
        order_put_in_place(o, OP_RECEIVE, from->v)->tile = from->tile;
        any = true;
    }
    if (any)
        order_put_sync(o, OP_BARRIER, SYNC_GROUP);
}

/* All behind the last read of what is loaded: fp32 from registers, the rest by way of their places. A buffer of its own is read by
 * the store of the chunk before until one thread has seen it done, and the others hear of that by a barrier. */
static void put_stores(struct order *o)
{
    const struct plan *p = o->p;
    bool any = false;
    o->guard = GUARD_FIRST;
    order_leave_behind(o, true);
    o->guard = GUARD_ALWAYS;
    if (order_has_own_place(o) && !p->rounds_state && (p->apart || !order_begins_with_all(o))) {
        o->guard = GUARD_FIRST;
        if (p->apart)
            order_put_sync(o, OP_AWAIT, SYNC_READ);
        order_put_sync(o, OP_BARRIER, SYNC_GROUP);
        o->guard = GUARD_ALWAYS;
    }
    put_sums_of_cluster(o);
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *from = &o->from[i];
        if (!order_stores_output(p, from))
            continue;
        any = true;
        if (!(o->is_put >> from->v & 1))
            order_put_in_place(o, OP_PUT, from->v)->tile = from->tile;
    }
    o->is_put = 0;
    if (any) {
        order_put(o, OP_FENCE);
        if (p->hands)
            order_put_sync(o, OP_ARRIVE, SYNC_PUT);
        else
            order_put_sync(o, OP_BARRIER, SYNC_GROUP);
    }
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *from = &o->from[i];
        if (!stores_output(p, from))
            continue;
        const bool floats = !plan_is_mapped_store(p, from);
        if (p->hands && !floats)
            continue;
        if (floats)
            order_forget(o, FORGET_THREAD);
        order_put_from(o, i)->a = floats ? 0 : plan_first_of(p, p->values[from->v].place);
        if (floats && carries_to_the_start(o))
            order_put_sync(o, OP_BARRIER, SYNC_GROUP);
    }
}

/* Of each head, or what the sum over heads begins with. */
static bool is_of_head(const struct plan *p, const struct op *op)
{
    return p->values[op->v].by_head || (p->values[op->v].summed && op->kind == OP_COPY);
}

/* Before the state changes. What was written to a stage is fenced before that is filled again, if not with the outputs. */
static void end_products_by_state(struct order *o)
{
    bool puts = false;
    order_put_sums_of_columns(o, o->end);
    for (uint32_t i = o->begin; i < o->end; i++)
        puts |= order_stores_output(o->p, &o->from[i]);
    if (o->p->sums_in >= 0 && !puts)
        order_put(o, OP_FENCE);
    order_put_all(o, order_decays_state);
    if (!o->fetches)
        fetch_left(o);
}

/* The last product by a tile, if the only one into the state can begin behind it, before what it makes is awaited: they have the same
 * matrix on the left, each in registers of its own. */
static void find_beside(struct order *o, uint32_t last)
{
    const struct plan *p = o->p;
    uint32_t n = 0;
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!order_changes_state(p, &o->from[i]))
            continue;
        o->into = (int)i;
        n++;
    }
    o->beside = -1;
    if (n != 1 || last == o->begin || !o->together || !order_is_by_tile(p, &o->from[last - 1]) || p->heads > 1 ||
        p->tiles > 1 || p->shares_columns || p->groups < 2 || p->shape.packed)
        return;
    struct op into = o->from[o->into], by_tile = o->from[last - 1];
    order_resolve(p, &into);
    order_resolve(p, &by_tile);
    if (plan_is_loaded(&p->values[into.a]) && by_tile.a == into.a)
        o->beside = (int)last - 1;
}

/* An output to its place, before products into the state take registers. */
static void put_early(struct order *o, uint32_t v)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_stores_output(o->p, &o->from[i]) && o->from[i].v == v && o->p->values[v].place != v) {
            order_put_in_place(o, OP_PUT, (uint8_t)v)->tile = o->from[i].tile;
            o->is_put |= TG_BIT(v);
        }
}

static void put_output(struct order *o, uint32_t begin, uint32_t end)
{
    struct plan *p = o->p;
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &o->from[i];
        const bool by_columns = op->kind == OP_DOT && p->values[op->v].late && !order_sums_state(p, op);
        if (o->placed[i])
            continue;
        if (p->shares_columns && (by_columns || order_is_of_output(p, op)))
            order_put_sums_that_are_read(o, op);
        if (p->shares_columns && order_is_by_tile(p, op) && !o->fetches) {
            fetch_left(o);
            o->fetches = true;
        }
        if (o->together && op->kind != OP_CONTRACT && (by_columns || order_is_of_output(p, op)))
            order_await_reads(o, op);
        if (by_columns)
            order_await_others(o);
        if (by_columns || (order_is_of_output(p, op) && op->kind == OP_COPY)) {
            struct op *put = order_put_from(o, i);
            put->a = p->decayed && put->kind == OP_COPY ? p->ways.inter : put->a;
        } else if (!order_is_of_output(p, op)) {
            continue;
        } else if (op->kind == OP_MAP) {
            order_put_map(o, i);
            if (is_map_of_left(o, op)) {
                p->ops[p->n_ops - 1].flags |= OP_AHEAD;
                put_early(o, op->v);
            }
        } else if (op->kind == OP_CONTRACT) {
            order_put_product(o, i);
            if (!o->together && (int)i != o->beside)
                order_await(o, op->v);
        }
    }
}

/* Gathered with the first tile's products under way, added behind a barrier with the last one's. */
static void put_beside(struct order *o)
{
    o->guard = GUARD_FIRST;
    order_put_sums_of_loaded(o, false);
    o->guard = GUARD_LAST;
    order_put_sync(o, OP_BARRIER, SYNC_GROUPS);
    put_vectors(o);
    o->guard = GUARD_ALWAYS;
}

static void await_products_by_state(struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_reads_state(o->p, &o->from[i]))
            order_await(o, o->from[i].v);
}

/* All of them by as many columns of the state as can be a left operand at once. The next ones have the same registers, or those of the
 * ones before the last. */
void order_put_by_columns(struct order *o, uint32_t part)
{
    if (part > 1 && o->p->overlaps_parts)
        order_put_sync(o, OP_AWAIT, SYNC_PART);
    else if (part > 0 && !o->p->overlaps_parts)
        await_products_by_state(o);
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_reads_state(o->p, &o->from[i]))
            order_put_part(o, i, part);
}

/* Decays of all heads, or what is done with them instead. */
static void put_decays(struct order *o, enum op_kind kind)
{
    order_put(o, OP_HEADS);
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_decays_state(o->p, &o->from[i]))
            order_put_from(o, i)->kind = (uint8_t)kind;
    order_put(o, OP_END_HEADS);
}

void order_catch_up(struct order *o)
{
    if (o->p->ways.scales && !o->p->ways.decays_first)
        order_put_value(o, OP_CATCH_UP, o->p->state);
}

static void put_products_by_state(struct order *o)
{
    const struct plan *p = o->p;
    if (p->decayed)
        order_put_all(o, order_decays_state);
    if (!o->together && !p->shares_columns) {
        order_fetch_for_maps(o);
        for (uint32_t part = 0; part < plan_state_parts(p) && !p->rounds_state; part++)
            order_put_by_columns(o, part);
    }
    o->guard = GUARD_FIRST;
    order_leave_behind(o, false);
    o->guard = GUARD_ALWAYS;
    if (!p->shares_columns && !p->rounds_state && !p->decayed)
        order_put_all(o, order_decays_state);
    o->guard = GUARD_FIRST;
    if (!plan_is_state_alone(p))
        put_vectors(o);
    o->guard = GUARD_ALWAYS;
    if (p->shares_columns) /* products come where they are read, the decay behind the last (end_products_by_state) */
        return;
    if (!p->sums_heads)
        fetch_left(o);
    if (!o->together)
        await_products_by_state(o);
}

/* What sums have beside the state's products: the part in registers is for all heads, and for sums of the state by the same matrix. */
static tg_bits fetch_for_sums(struct order *o)
{
    const struct plan_ways *ways = &o->p->ways;
    tg_bits fetched = 0;
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *op = &o->from[i];
        const uint8_t v = plan_first_of(o->p, op->a == ways->weighted ? op->b : op->a);
        if (!plan_sums_value(op, ways->weighted) || (fetched >> v & 1))
            continue;
        order_put_value(o, OP_FETCH, v);
        fetched |= TG_BIT(v);
    }
    return fetched;
}

/* A product by the state that has no weight is a sum over heads as it is; what is summed of each head is that of the sum so far. */
static void put_decayed_head(struct order *o)
{
    const struct plan_ways *ways = &o->p->ways;
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *op = &o->from[i];
        if (op->v == ways->inter && op->kind == OP_CONTRACT) {
            order_put_product(o, i);
            o->p->ops[o->p->n_ops - 1].v = ways->sum;
            order_await(o, ways->sum);
        }
        o->placed[i] |= op->v == ways->sum && op->kind == OP_COPY;
        if (!plan_sums_value(op, ways->weighted))
            continue;
        struct op *dot = order_put_from(o, i);
        dot->flags |= OP_AHEAD;
        *(dot->a == ways->weighted ? &dot->a : &dot->b) = ways->sum;
    }
}

/* Sums of the state come before the output's sum takes registers. */
static void put_state_sums_of_heads(struct order *o, tg_bits fetched)
{
    if (!order_has_state_sums(o))
        return;
    order_put(o, OP_HEADS);
    for (uint32_t i = o->p->n_ops, n = (order_put_state_sums(o), o->p->n_ops); i < n; i++) {
        struct op *op = &o->p->ops[i];
        op->flags |= op->kind == OP_DOT && (fetched >> op->a & 1) ? OP_AHEAD : 0;
    }
    order_put(o, OP_END_HEADS);
}

static void put_decayed_heads(struct order *o)
{
    if (o->p->ways.decays_first)
        put_decays(o, OP_DECAY);
    const tg_bits fetched = fetch_for_sums(o);
    put_state_sums_of_heads(o, fetched);
    order_put(o, OP_HEADS);
    put_decayed_head(o);
    order_put(o, OP_END_HEADS);
}

/* What each head has of an output that is their sum: its products by its columns of the state, and what is made of them. */
static void put_heads(struct order *o)
{
    order_forget(o, FORGET_THREAD);
    order_catch_up(o);
    if (o->p->decayed) {
        put_decayed_heads(o);
    } else {
        put_state_sums_of_heads(o, 0);
        order_put(o, OP_HEADS);
        put_products_by_state(o);
        for (uint32_t i = o->begin; i < o->end; i++)
            if (is_of_head(o->p, &o->from[i]))
                put_output(o, i, i + 1);
        order_put(o, OP_END_HEADS);
    }
    fetch_left(o);
}

/* Two that have the same loaded matrix on the left are not under way at once: its part in registers is of one of them. */
static void put_products_into_state(struct order *o)
{
    const bool by_head = o->p->sums_heads;
    tg_bits lefts = 0;
    if (by_head)
        order_put(o, OP_HEADS);
    for (uint32_t i = o->begin; i < o->end; i++) {
        struct op op = o->from[i];
        if (!order_changes_state(o->p, &op))
            continue;
        order_resolve(o->p, &op);
        if (lefts >> op.a & 1) {
            order_await(o, o->p->state);
            lefts = 0;
        }
        lefts |= plan_is_loaded(&o->p->values[op.a]) ? TG_BIT(op.a) : 0;
        order_put_product(o, i);
    }
    if (by_head)
        order_put(o, OP_END_HEADS);
}

void order_put_tile(struct order *o)
{
    const struct plan *p = o->p;
    const bool alone = plan_is_sum_alone(p);
    const uint32_t last = find_last(o);
    find_beside(o, last);
    const bool awaits = !order_has_positions(o) && !alone && !o->together && !p->shares_columns;
    if (awaits && order_has_state_sums(o))
        order_put_sync(o, OP_AWAIT, SYNC_STATE);
    if (!p->sums_heads)
        order_put_state_sums(o);
    if (awaits) /* behind its sums again, or ptxas spills what these had */
        order_put_sync(o, OP_AWAIT, SYNC_STATE);
    if (p->sums_heads)
        put_heads(o);
    else
        put_products_by_state(o);
    put_output(o, o->begin, last);
    if (p->shares_columns)
        end_products_by_state(o);
    if (!p->sums_heads)
        put_products_into_state(o);
    if (order_begins_across_early(o))
        order_begin_across(o);
    if (o->beside >= 0)
        order_await(o, o->from[o->beside].v);
    if (alone && p->carries)
        put_beside(o);
    put_output(o, last, o->end);
    order_await_others(o);
    if (order_begins_across_early(o))
        order_put_by_tile_across(o);
    put_stores(o);
    if (p->sums_heads)
        put_products_into_state(o);
    if (p->rounds_state && !order_begins_across_early(o))
        order_put_by_tile_across(o);
    if (p->rounds_state)
        order_end_across(o);
    else
        order_await(o, p->state);
    if (p->decayed && p->ways.scales && !p->ways.decays_first)
        put_decays(o, OP_PUT_OFF);
}
