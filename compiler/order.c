/* compiler/order.c - what each role of a kernel on warpgroups executes, in order.
 *
 * One warp loads: it fills the ring, a chunk a stage, and waits where a stage is not empty yet; the vectors of several heads
 * four warps share out. The groups compute, chunk by chunk:
 *
 *     products of positions, all under way before one is waited for; meanwhile sums of what is loaded
 *     maps of them, of several heads one after the other, rounded to shared memory, to a tile with one buffer behind a barrier;
 *     barrier of all groups, or of the one that has the heads by itself: they are whole
 *     for each of the group's tiles of 64 rows
 *         issue the products by the state as it arrives; meanwhile decay it, make vectors, fetch left operands
 *         the products by tiles of positions, and maps between them
 *         issue the state's products; meanwhile round and store the outputs
 *
 * Where a group has one tile and nothing is summed of positions, products by the state are under way with those of positions, and
 * everything is awaited where it is read: other groups too, before the first product by what they have made. Of a state of many columns
 * the first ones are; the others follow with the maps behind them, each packed while the product by those before it runs. A sum of the
 * state has its first product under way instead, and goes on where the tile begins.
 *
 * The state's product begins behind the last one by a tile, before what that makes is awaited, if both have the same matrix on the left and
 * no sum of the state has made registers short: its part, times its factors, is in registers of its own then.
 *
 * A chunk of several heads may have another way (decayed.c): then there are two plans of the row, whose operations differ between OP_WAYS and
 * OP_END_WAYS. There a map of the output that reads what the state's product has on the left comes before that product, and puts the
 * output at once: beside the product there are no registers for both. Decays that would come last are put off to the next chunk: a state
 * that is multiplied and goes around the loop is more than ptxas takes.
 *
 * Where heads sum up the output, what each has of positions, of the products by its state, and of those into it comes one
 * head after the other; and a step ends with a barrier of all groups.
 *
 * Where the state is made alone only its own products are left, and what is carried beside it is made meanwhile.
 *
 * Makers, where the row asks for them and positions are all that they would have to do, take these over: products, maps, and the
 * tiles into the stage that they are made of; and before those rows, for products by the state (walk_rows.c). Those who walk wait for
 * them where they read one.
 *
 * An output goes to where the group's part of a loaded matrix was, or to a buffer of its own, and from there to memory, so a
 * stage is empty when those stores have read it. The thread that stores sees to it in the step after: of a ring of two, or where thread
 * blocks are few, behind its first products, else before it puts the next output, for it would stand still until they have read. Or
 * (walk_place.c: can_hand) those who walk leave the output in its stage and go on: the warp that loads stores it, and fills the stage when
 * that has been read.
 * Products run while the program goes on: what reads one comes behind its await.
 *
 * requires: nest, walk   makes: roles; ops, each role's in the order in which it executes them */
#include "compiler/order.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"

#include <string.h>

enum {
    LOAD_REGISTERS = 24,
    MAKE_REGISTERS = 72,
    ROW_REGISTERS = 56,
    WALK_REGISTERS = 240,
    HALF_REGISTERS = 232,
    LOAD_WARPS = 4
};

/* In each of a walk's steps that begins a segment, and before the first. */
static void put_start(struct order *o)
{
    for (uint32_t i = o->begin; o->p->starts && i < o->end; i++)
        if (order_stores_state(o->p, &o->from[i]))
            order_put_from(o, i)->kind = OP_START;
}

/* States of a pool that has slots for every chunk. */
static void put_kept(struct order *o)
{
    for (uint32_t i = o->end + 1; i < o->n; i++)
        if (o->from[i].kind == OP_STORE && plan_keeps_on_the_way(o->p, o->from[i].tile))
            order_put_from(o, i)->kind = OP_KEEP;
}

/* Behind the barrier of the next step, or of the end of this one. */
static void put_late_sums(struct order *o)
{
    o->guard = plan_buffers(o->p) > 1 ? GUARD_LATER : GUARD_ALWAYS;
    order_put_all(o, order_stores_late);
    o->guard = GUARD_ALWAYS;
}

static void put_rest(struct order *o)
{
    for (uint32_t i = o->begin; o->p->rests && i < o->end; i++)
        if (order_decays_state(o->p, &o->from[i])) {
            struct op *op = order_put(o, OP_REST);
            op->v = o->p->state;
            op->a = o->from[i].a;
        }
}

/* What a plan of either way has in its order. */
static void put_work(struct order *o)
{
    const struct plan *p = o->p;
    if (p->ways.any)
        order_put(o, OP_WAYS);
    o->together = order_can_be_together(o) && (plan_state_parts(p) == 1 || p->overlaps_parts);
    if (o->together)
        order_put_together(o);
    else if (!plan_is_sum_alone(p))
        order_put_positions(o);
    order_forget(o, FORGET_CHUNK);
    order_put(o, OP_TILES);
    order_put_tile(o);
    order_put(o, OP_END_TILES);
    if (p->ways.any)
        order_put(o, OP_END_WAYS);
}

static void put_chunk(struct order *o)
{
    const struct plan *p = o->p;
    order_put_sync(o, OP_AWAIT, SYNC_FULL);
    order_forget(o, FORGET_BASES);
    if (p->shape.packed && p->has_makers)
        order_put_sync(o, OP_AWAIT, SYNC_CLEARED);
    else if (p->shape.packed)
        order_put(o, OP_CLEAR);
    put_work(o);
    if (p->ways.any) /* what is known of places would be kept through both */
        order_forget(o, FORGET_THREAD | FORGET_BASES);
    if (!p->lags && !p->apart && !p->hands)
        order_put_sync(o, OP_AWAIT, SYNC_READ);
    put_rest(o);
    order_put_sync(o, OP_ARRIVE, SYNC_EMPTY);
    put_start(o);
    put_kept(o);
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_stores_early(p, &o->from[i]))
            order_put_from(o, i)->a = order_gathered_from(o, o->from[i].v);
    if (plan_buffers(p) == 1)
        order_put_sync(o, OP_BARRIER, SYNC_GROUPS);
    put_late_sums(o);
}

/* Sums of the state behind the last chunk; are there any? */
static bool put_ends(struct order *o)
{
    bool any = false;
    for (uint32_t i = o->end + 1; i < o->n; i++)
        if (o->from[i].kind == OP_MEET) {
            order_put_from(o, i);
            any = true;
        }
    return any;
}

static void put_walk(struct order *o)
{
    struct plan *p = o->p;
    o->role = ROLE_WALK;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_UNIFORM && p->values[i].stmt < 0 &&
            (!order_is_read(o, i, true) || order_is_read(o, i, false)))
            order_put_value(o, OP_LOAD, i);
    bool carries = false;
    for (uint32_t i = 0; i + 1 < o->begin; i++) {
        if (o->from[i].kind != OP_INIT && o->from[i].kind != OP_ENTER)
            continue;
        order_put_from(o, i);
        carries |= plan_is_carried(&p->values[o->from[i].v]);
    }
    if (p->relays)
        order_put_value(o, OP_TAKE, p->state);
    if (carries) /* all have read memory before one writes the end there */
        order_put_sync(o, OP_BARRIER, SYNC_GROUPS);
    put_start(o);
    order_put(o, OP_NEST);
    put_chunk(o);
    order_put(o, OP_END);
    order_forget(o, FORGET_THREAD | FORGET_BASES);
    order_catch_up(o);
    if (p->relays)
        order_put_value(o, OP_PASS, p->state);
    const bool meets = put_ends(o), is_late = order_has_late_sums(p) && plan_buffers(p) > 1;
    if (meets || is_late)
        order_put_sync(o, OP_BARRIER, SYNC_GROUPS);
    if (is_late)
        put_late_sums(o);
    for (uint32_t i = o->end + 1; i < o->n; i++)
        if (o->from[i].kind == OP_STORE && !plan_keeps_on_the_way(p, o->from[i].tile))
            order_put_from(o, i)->kind = OP_LEAVE;
    if (!p->hands)
        order_put_sync(o, OP_AWAIT, SYNC_WRITTEN);
}

/* Is an output handed over where the matrix is loaded? */
static bool is_under_output(const struct order *o, uint32_t matrix)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (o->p->hands && order_stores_output(o->p, &o->from[i]) &&
            o->p->values[plan_first_of(o->p, o->p->values[o->from[i].v].place)].offset == o->p->values[matrix].offset)
            return true;
    return false;
}

/* Of matrices: those that are loaded by this thread block alone, and not under an output; those under one; those that it shares. */
enum which_loads { LOADS_FREE, LOADS_UNDER, LOADS_SHARED };

static void put_loads(struct order *o, enum space space, enum which_loads which)
{
    const struct plan *p = o->p;
    for (uint32_t i = 0; i < p->nests[0].n_loads; i++) {
        const uint32_t load = p->nests[0].loads[i];
        const struct value *v = &p->values[load];
        const enum which_loads is = space != SPACE_MATRIX      ? LOADS_FREE
                                    : plan_shared_along(p, v)  ? LOADS_SHARED
                                    : is_under_output(o, load) ? LOADS_UNDER
                                                               : LOADS_FREE;
        if (v->space == space && is == which && !v->own_stage)
            order_put_value(o, OP_LOAD, load);
    }
}

/* The matrix that has this one, and loads it. */
static uint32_t find_own_stage(const struct plan *p, uint32_t own_stage)
{
    uint32_t i = 0;
    while (p->values[i].own_stage != own_stage || p->values[i].shared_with >= 0)
        i++;
    return i;
}

/* Matrices that have a stage of their own, when they are left. */
static void put_own_loads(struct order *o)
{
    for (uint32_t n = 1; n <= o->p->own_stages; n++) {
        const uint32_t i = find_own_stage(o->p, n);
        order_put_sync_of(o, OP_AWAIT, SYNC_LEFT, i);
        o->guard = GUARD_ONE;
        order_put_sync_of(o, OP_EXPECT, SYNC_LOADED, i);
        order_put_value(o, OP_LOAD, i);
        o->guard = GUARD_ALWAYS;
        order_put_sync_of(o, OP_ARRIVE, SYNC_LOADED, i);
    }
}

/* Outputs that those who walk have left in the stage. */
static void put_handed(struct order *o, enum guard guard)
{
    const struct plan *p = o->p;
    if (guard == GUARD_STAGE)
        order_put_sync(o, OP_AWAIT, SYNC_PUT);
    if (guard == GUARD_STAGE && p->in_turn)
        order_put_sync(o, OP_AWAIT, SYNC_TURN);
    o->guard = guard;
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_stores_output(p, &o->from[i]))
            order_put_from(o, i)->a = plan_first_of(p, p->values[o->from[i].v].place);
    o->guard = GUARD_ALWAYS;
}

/* Where matrices wait for what is made of them, as soon as these are under way. */
static void put_vectors(struct order *o)
{
    o->guard = GUARD_ALWAYS;
    put_loads(o, SPACE_VECTOR, LOADS_FREE);
    if (o->p->heads > 1)
        order_put(o, OP_FACTORS);
}

static void put_load(struct order *o)
{
    const bool shares = plan_shares(o->p), scales = o->p->ways.scales;
    o->role = ROLE_LOAD;
    order_put(o, OP_NEST);
    if (o->p->hands)
        put_handed(o, GUARD_STAGE);
    order_put_sync(o, OP_AWAIT, SYNC_EMPTY);
    put_rest(o);
    if (shares)
        order_put_sync(o, OP_ARRIVE, SYNC_OPEN);
    o->guard = GUARD_ONE;
    order_put_sync(o, OP_EXPECT, SYNC_FULL);
    if (scales)
        order_put_sync(o, OP_EXPECT, SYNC_LANDED);
    put_loads(o, SPACE_MATRIX, LOADS_FREE);
    if (scales)
        put_vectors(o);
    o->guard = GUARD_ONE;
    if (o->p->hands)
        order_put_sync(o, OP_AWAIT, SYNC_READ);
    put_loads(o, SPACE_MATRIX, LOADS_UNDER);
    o->guard = GUARD_ALWAYS;
    if (shares)
        order_put_sync(o, OP_AWAIT, SYNC_OPEN);
    o->guard = GUARD_ONE;
    put_loads(o, SPACE_MATRIX, LOADS_SHARED);
    o->guard = GUARD_ALWAYS;
    if (scales) {
        order_put_sync(o, OP_AWAIT, SYNC_LANDED);
        order_put(o, OP_MULTIPLY);
    } else {
        put_vectors(o);
    }
    order_put_sync(o, OP_ARRIVE, SYNC_FULL);
    put_own_loads(o);
    if (o->p->in_turn)
        order_put_sync(o, OP_ARRIVE, SYNC_TURN);
    order_put(o, OP_END);
    if (!o->p->hands)
        return;
    put_handed(o, GUARD_ONE);
    o->guard = GUARD_ONE;
    order_put_sync(o, OP_AWAIT, SYNC_WRITTEN);
    o->guard = GUARD_ALWAYS;
}

/* What rows are made of that is the same in all chunks. */
static void put_parameters(struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].stmt < 0 && (p->values[i].space == SPACE_UNIFORM || p->values[i].space == SPACE_CHANNEL) &&
            order_is_read(o, i, true))
            order_put_value(o, OP_LOAD, i);
    for (uint32_t i = 0; i < o->begin; i++)
        if (o->from[i].kind == OP_MAP && p->values[o->from[i].v].space == SPACE_UNIFORM)
            order_put_from(o, i);
}

/* Rows; products of positions, their maps; all rounded to shared memory: in a stage of the ring, so it stays until all have left that. */
static void put_make(struct order *o)
{
    o->role = ROLE_MAKE;
    o->together = true;
    if (plan_makes_rows(o->p))
        put_parameters(o);
    order_put(o, OP_NEST);
    order_put_sync(o, OP_AWAIT, SYNC_FULL);
    order_forget(o, FORGET_BASES);
    if (o->p->shape.packed) {
        order_put(o, OP_CLEAR);
        order_put_sync(o, OP_AWAIT, SYNC_CLEARED);
    }
    if (plan_makes_rows(o->p))
        order_make_rows(o);
    order_make_positions(o);
    order_put_sync(o, OP_ARRIVE, SYNC_MADE);
    order_put_sync(o, OP_ARRIVE, SYNC_EMPTY);
    order_put(o, OP_END);
}

/* A ring of one stage would never be filled again. Who shares loads with a cluster waits as it goes. In a ring of two whose rows are made
 * those who walk and those who make take turns at a stage: it is left in its own step, or its rows would be made a step later. */
static bool can_lag(const struct order *o)
{
    const struct plan *p = o->p;
    const bool turns = plan_makes_rows(p) && p->nests[0].stages == 2;
    bool stores = false;
    for (uint32_t i = o->begin; i < o->end; i++)
        stores |= order_stores_output(p, &o->from[i]);
    return stores && !p->apart && p->nests[0].stages > 1 && !plan_shares(p) && !turns;
}

static void find_chunk(struct order *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->from[i].kind == OP_NEST)
            o->begin = i + 1;
        if (o->from[i].kind == OP_END)
            o->end = i;
    }
}

/* What pass nest has left. */
static void read_ops(struct order *o, struct plan *p)
{
    *o = (struct order){.p = p, .n = p->n_ops, .beside = -1};
    memcpy(o->from, p->ops, p->n_ops * sizeof *p->ops);
    find_chunk(o);
}

/* Nothing is left out in silence. */
static bool check_placed(const struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct op *op = &o->from[i];
        if (o->placed[i] || order_is_implied(p, op))
            continue;
        plan_refuse(p, "TG0518", "let another row compute it",
                    "kernel %s on warpgroups: it has no place for what makes %s", p->row->name,
                    plan_tensor(p, &p->values[op->v])->name);
        return false;
    }
    return true;
}

/* One group has registers enough, unless there are two such thread blocks, or others beside it. */
static void find_roles(struct plan *p)
{
    const bool moves = p->groups == 2 || p->resident == 2 || p->has_makers;
    const uint32_t walk = p->groups == 2  ? p->has_makers ? plan_registers_beside_makers(p) : WALK_REGISTERS
                          : p->has_makers ? WALK_REGISTERS
                                          : HALF_REGISTERS;
    p->roles[ROLE_WALK] = (struct role){.warps = 4 * p->groups, .registers = moves ? walk : 0};
    const uint32_t make = p->groups == 1 || plan_makes_positions(p) ? MAKE_REGISTERS : ROW_REGISTERS;
    if (p->has_makers)
        p->roles[ROLE_MAKE] = (struct role){.first_warp = 4 * p->groups, .warps = 4, .registers = make};
    p->roles[ROLE_LOAD] = (struct role){.first_warp = 4 * (p->groups + p->has_makers),
                                        .warps = p->heads > 1 ? LOAD_WARPS : 1,
                                        .registers = moves ? LOAD_REGISTERS : 0};
}

/* What they make is read by products alone, each awaited where it is read. */
bool plan_can_have_makers(struct plan *p)
{
    struct order o;
    read_ops(&o, p);
    return order_can_be_together(&o) && plan_state_parts(p) == 1 && (order_has_positions(&o) || plan_makes_rows(p)) &&
           !p->rests;
}

/* Are there products beside those by the state, from the start of a step on, and registers? Then the latter are under way, too, while
 * their operands are packed. */
bool plan_can_overlap_parts(struct plan *p)
{
    struct order o;
    read_ops(&o, p);
    return p->groups == 2 && (order_can_be_together(&o) || order_can_begin_state_sum(&o));
}

bool pass_order(struct plan *p)
{
    struct order o;
    read_ops(&o, p);
    p->n_ops = 0;
    if (!order_check_products(&o))
        return false;
    find_roles(p);
    p->lags = !p->hands && can_lag(&o);
    put_load(&o);
    if (p->has_makers)
        put_make(&o);
    put_walk(&o);
    order_own_stages(p);
    if (p->adds && !p->in_turn)
        order_hide_exchange(p);
    if (p->n_ops > PLAN_MAX_OPS) {
        plan_refuse(p, "TG0507", "split the kernel into two rows", "kernel %s needs more than %d tile operations",
                    p->row->name, PLAN_MAX_OPS);
        return false;
    }
    plan_share_exponentials(p);
    return check_placed(&o);
}
