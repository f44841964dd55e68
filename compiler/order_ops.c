/* compiler/order_ops.c - the operations that pass order puts: how each is added, what it is, and of products their operands and
 * when they are awaited. Products run while the program goes on, and end in the order in which they were issued. */
#include "compiler/order.h"
#include "compiler/plan_walk.h"

#include <string.h>

/* ---- putting ---- */

struct op *order_put(struct order *o, enum op_kind kind)
{
    struct op *op = plan_add_op(o->p, kind, -1);
    op->role = (uint8_t)o->role;
    op->guard = (uint8_t)o->guard;
    return op;
}

void order_put_value(struct order *o, enum op_kind kind, uint32_t v)
{
    order_put(o, kind)->v = (uint8_t)v;
}

struct op *order_put_in_place(struct order *o, enum op_kind kind, uint32_t v)
{
    struct op *op = order_put(o, kind);
    op->v = (uint8_t)v;
    op->a = plan_first_of(o->p, o->p->values[v].place);
    return op;
}

void order_put_sync(struct order *o, enum op_kind kind, enum sync sync)
{
    order_put(o, kind)->sync = (uint8_t)sync;
}

void order_put_sync_of(struct order *o, enum op_kind kind, enum sync sync, uint32_t v)
{
    order_put_sync(o, kind, sync);
    o->p->ops[o->p->n_ops - 1].v = (uint8_t)v;
}

void order_forget(struct order *o, uint32_t what)
{
    order_put(o, OP_FORGET)->n = (uint8_t)what;
}

struct op *order_put_from(struct order *o, uint32_t i)
{
    struct op *op = order_put(o, OP_FORGET);
    *op = o->from[i];
    op->role = (uint8_t)o->role;
    op->guard = (uint8_t)o->guard;
    o->placed[i] = true;
    return op;
}

/* ---- what they are ---- */

bool order_makes_of_positions(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && !plan_is_owned(p, &p->values[op->v]) && !plan_is_across(p, &p->values[op->v]);
}

bool order_reads_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && op->v != p->state && (op->a == p->state || op->b == p->state) &&
           !plan_is_across(p, &p->values[op->v]);
}

bool order_changes_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && op->v == p->state;
}

bool order_decays_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_DECAY && op->v == p->state;
}

bool order_is_of_output(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return plan_is_owned(p, v) && v->n_dims == 2 && plan_is_position(v->dims[0]) && !order_reads_state(p, op);
}

bool order_is_by_tile(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && order_is_of_output(p, op);
}

bool order_sums_loaded(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return op->kind == OP_DOT && v->space == SPACE_PARTS && !v->late &&
           (plan_is_gathered(v) || plan_is_loaded(&p->values[op->a]));
}

bool order_works_on_positions(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    const bool map = op->kind == OP_MAP && !plan_is_owned(p, v) && !plan_is_across(p, v) && v->space != SPACE_VECTOR &&
                     !plan_works_on_rows(p, op);
    return map || (op->kind == OP_DOT && v->space == SPACE_PARTS && !v->late && !order_sums_loaded(p, op));
}

bool order_makes_vector(const struct plan *p, const struct op *op)
{
    return (op->kind == OP_MAP || op->kind == OP_DOT) && p->values[op->v].space == SPACE_VECTOR;
}

bool order_sums_state(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return op->kind == OP_DOT && (v->space == SPACE_ROWS || v->late) && (op->a == p->state || op->b == p->state);
}

/* Complete behind the barrier of the next chunk. */
bool order_stores_late(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && p->values[op->v].late;
}

bool order_has_late_sums(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].late)
            return true;
    return false;
}

/* Of a tile, with it. */
bool order_stores_rows(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && p->values[op->v].space == SPACE_ROWS;
}

bool order_stores_early(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && p->values[op->v].space != SPACE_FRAGMENT && !order_stores_late(p, op) &&
           !order_stores_rows(p, op);
}

bool order_stores_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && op->v == p->state;
}

/* ---- products ---- */

/* Left: what has the rows of the accumulators. A factor of positions on either operand goes to it. */
void order_resolve(const struct plan *p, struct op *op)
{
    const struct value *v = &p->values[op->v];
    const uint8_t a = op->a, b = op->b;
    const bool owned = plan_is_owned(p, v);
    const bool in_order = owned ? plan_is_owned(p, &p->values[a]) : plan_has_dim(&p->values[a], v->dims[0]);
    if (p->values[a].space == SPACE_OPERAND || p->values[b].space == SPACE_OPERAND) {
        op->flags |= OP_SCALED;
        op->c = p->values[a].space == SPACE_OPERAND ? a : b;
    }
    op->a = (uint8_t)plan_matrix_of(p, in_order ? a : b);
    op->b = (uint8_t)plan_matrix_of(p, in_order ? b : a);
    if (owned)
        op->a = plan_first_of(p, op->a);
    if (op->v == p->state || p->algorithm->body[op->stmt].init)
        op->flags |= OP_ONTO;
    if (p->decayed && p->ways.scales) /* matrices have their factors */
        op->flags &= (uint8_t)~OP_SCALED;
    if (p->decayed && !p->ways.scales && op->v == p->ways.sum) {
        op->flags |= OP_SCALED;
        op->c = p->ways.operand;
    }
}

static bool is_tile(const struct value *v)
{
    return v->n_dims == 2 && plan_is_position(v->dims[0]) && plan_is_position(v->dims[1]);
}

/* Of a tile across: on the left a loaded matrix by the state on the right, or a computed tile of positions by a loaded matrix. */
static bool has_operands_across(const struct plan *p, const struct op *op)
{
    const struct value *a = &p->values[op->a], *b = &p->values[op->b];
    const bool by_state = op->b == p->state && plan_is_loaded(a) && !is_tile(a) && !(op->flags & OP_ONTO),
               by_tile =
                   plan_is_made_tile(a) && is_tile(a) && plan_is_loaded(b) && !is_tile(b) && (op->flags & OP_ONTO);
    return !(op->flags & OP_SCALED) && (by_state || by_tile);
}

/* On the left the state, a loaded matrix or a computed tile of the owner's rows, on the right what is in shared memory; of tiles of
 * positions both are loaded. */
static bool has_operands(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v], *a = &p->values[op->a], *b = &p->values[op->b];
    if (plan_is_across(p, v))
        return has_operands_across(p, op);
    if (!plan_is_owned(p, v))
        return plan_is_loaded(a) && plan_is_loaded(b) && !(op->flags & (OP_SCALED | OP_ONTO)) && !is_tile(a) &&
               !is_tile(b);
    if (!plan_is_owned(p, a) || plan_is_owned(p, b) || b->space != SPACE_MATRIX)
        return false;
    if (op->a == p->state)
        return op->v != p->state && !is_tile(b) && !(op->flags & (OP_SCALED | OP_ONTO));
    const bool of_registers = a->space == SPACE_FRAGMENT && plan_is_position(a->dims[0]);
    return (of_registers || plan_is_loaded(a)) && is_tile(b) == plan_is_position(v->dims[0]);
}

bool order_check_products(const struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = o->begin; i < o->end; i++) {
        struct op op = o->from[i];
        if (op.kind != OP_CONTRACT)
            continue;
        order_resolve(p, &op);
        if (has_operands(p, &op))
            continue;
        plan_refuse(
            p, "TG0518", "let another row compute it",
            "kernel %s on warpgroups: %s is no product of what has the output's dimension, in registers or loaded, by "
            "what is in shared memory",
            p->row->name, plan_tensor(p, &p->values[op.v])->name);
        return false;
    }
    return true;
}

void order_fetch(struct order *o, uint32_t v)
{
    struct op *op = order_put(o, OP_FETCH);
    op->v = (uint8_t)v;
    op->flags = plan_is_sum_alone(o->p) ? 0 : OP_CAREFUL; /* a state by itself spoils itself */
    o->cleaned &= ~TG_BIT(v);
}

/* Products end in the order in which they were issued. */
void order_await(struct order *o, uint32_t v)
{
    struct op *op = order_put(o, OP_AWAIT);
    op->sync = SYNC_PRODUCT;
    op->v = (uint8_t)v;
    uint32_t left = 0;
    for (uint32_t i = 0; i < o->n_flying; i++) {
        op->n = o->flying[i] == v ? 0 : (uint8_t)(op->n + 1);
        if (o->flying[i] != v)
            o->flying[left++] = o->flying[i];
    }
    o->n_flying = left;
}

/* What the operation reads, if it is the result of products under way. A sum may have several at once. */
void order_await_reads(struct order *o, const struct op *op)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    for (uint32_t i = 0, n = plan_op_reads(o->p, op, reads); i < n; i++)
        if (memchr(o->flying, reads[i], o->n_flying) && !(op->kind == OP_CONTRACT && reads[i] == op->v))
            order_await(o, reads[i]);
}

void order_put_whole(struct order *o)
{
    order_put_sync(o, OP_BARRIER, o->p->own_heads ? SYNC_GROUP : SYNC_GROUPS);
    order_look_for_nan(o, &o->p->ops[o->p->n_ops - 1]);
}

/* Computed tiles are whole. */
void order_await_others(struct order *o)
{
    if (o->owes && o->p->has_makers)
        order_put_sync(o, OP_AWAIT, SYNC_MADE);
    if (o->owes && (!o->p->has_makers || order_has_late_sums(o->p)))
        order_put_whole(o);
    o->owes = false;
}

/* Whoever begins a product waits for the whole group, so that nothing stands before the first. */
void order_leave_behind(struct order *o, bool last)
{
    const struct plan *p = o->p;
    const enum guard guard = o->guard;
    const bool by_few = !last && p->nests[0].stages > 2 && !order_has_own_place(o);
    if (o->left || !p->lags || (by_few && (o->left_by_few || p->tiles > 1)))
        return;
    o->guard = by_few ? GUARD_FEW : o->left_by_few ? GUARD_MANY : guard;
    order_put_sync(o, OP_ARRIVE, SYNC_BEHIND);
    o->guard = guard;
    o->left_by_few = by_few;
    o->left = !by_few;
}

/* The left operand of the product into the state, ahead. */
static void put_scaled(struct order *o, uint32_t i)
{
    struct op product = o->from[i];
    order_resolve(o->p, &product);
    struct op *op = order_put(o, OP_SCALE);
    op->stmt = product.stmt;
    op->v = product.a;
    op->c = product.c;
    op->flags = product.flags & OP_SCALED;
}

/* Of a matrix on the left of a product by a masked tile zeros may be left where NaN were: for another such it is fetched anew.
 * What is fetched is not read either while a product reads it. */
void order_put_product(struct order *o, uint32_t i)
{
    const struct plan *p = o->p;
    struct op op = o->from[i];
    order_resolve(p, &op);
    if (order_is_by_tile(p, &op) && plan_is_loaded(&p->values[op.a])) {
        if (o->cleaned >> op.a & 1)
            order_fetch(o, op.a);
        o->cleaned |= TG_BIT(op.a);
    }
    if (o->together)
        order_await_reads(o, &op);
    if (plan_is_made_tile(&p->values[op.b]))
        order_await_others(o);
    if ((int)i == o->beside)
        put_scaled(o, (uint32_t)o->into);
    order_resolve(p, order_put_from(o, i));
    const bool is_beside = (int)i == o->beside, is_behind = o->beside >= 0 && op.v == p->state;
    o->p->ops[p->n_ops - 1].flags |= is_behind ? OP_AHEAD : 0;
    if (o->together || o->begins || is_beside || is_behind || p->rounds_state)
        o->flying[o->n_flying++] = op.v;
    if (o->together && order_is_by_tile(p, &op) && plan_is_loaded(&p->values[op.a]) && !is_beside)
        order_await(o, op.v);
}

void order_put_part(struct order *o, uint32_t i, uint32_t part)
{
    order_put_product(o, i);
    struct op *op = &o->p->ops[o->p->n_ops - 1];
    op->n = (uint8_t)part;
    op->flags |= part ? OP_ONTO : 0;
}

/* Nothing is to be done for what needs no operation: a sum that begins with its product, a factor that is computed where it is used. */
bool order_is_implied(const struct plan *p, const struct op *op)
{
    return op->kind == OP_NEST || op->kind == OP_END || op->kind == OP_ZERO ||
           (op->kind == OP_MAP && p->values[op->v].space == SPACE_OPERAND) ||
           (p->decayed && op->kind == OP_MAP && op->v == p->ways.weighted);
}

bool order_has_positions(const struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (order_makes_of_positions(o->p, &o->from[i]))
            return true;
    return false;
}

/* Is the value read to make rows, or numbers for these; or for anything else? */
bool order_is_read(const struct order *o, uint32_t v, bool for_rows)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    for (uint32_t i = 0; i < o->n; i++) {
        const struct op *op = &o->from[i];
        const bool of_rows =
            plan_works_on_rows(o->p, op) || (op->kind == OP_MAP && o->p->values[op->v].space == SPACE_UNIFORM);
        for (uint32_t k = 0, n = plan_op_reads(o->p, op, reads); of_rows == for_rows && k < n; k++)
            if (reads[k] == v)
                return true;
    }
    return false;
}

void order_put_all(struct order *o, which_ops *which)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (which(o->p, &o->from[i]))
            order_put_from(o, i);
}

/* Of a matrix's columns, added to what is carried: its decay, and the matrix whose parts they are. */
uint8_t order_gathered_from(const struct order *o, uint32_t v)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (o->from[i].kind == OP_DOT && o->from[i].v == v)
            return o->from[i].a;
    return 0;
}
