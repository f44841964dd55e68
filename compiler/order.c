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
 * everything is awaited where it is read: other groups too, before the first product by what they have made.
 *
 * Where heads sum up the output, what each has of positions, of the products by its state, and of those into it comes one
 * head after the other; and a step ends with a barrier of all groups.
 *
 * Where the state is made alone only its own products are left, and what is carried beside it is made meanwhile.
 *
 * An output goes to where the group's part of a loaded matrix was, or to a buffer of its own, and from there to memory, so a
 * stage is empty when those stores have read it. Products run while the program goes on: what reads one comes behind its await.
 *
 * requires: nest, walk   makes: roles; ops, each role's in the order in which it executes them */
#include "compiler/plan.h"

#include <string.h>

enum { MOST_TOGETHER = 128 }; /* columns of the state, beside which registers take several products */
enum { LOAD_REGISTERS = 24, WALK_REGISTERS = 240, HALF_REGISTERS = 232, LOAD_WARPS = 4 };

struct order {
    struct plan *p;
    struct op from[PLAN_MAX_OPS]; /* as pass nest left them */
    bool placed[PLAN_MAX_OPS];
    uint32_t n, begin, end; /* of `from`; begin ... end - 1 are a chunk's */
    tg_bits cleaned;        /* matrices on the left with zeros where NaN may have been */
    bool overwrites;        /* all groups have left the chunk before */
    bool together; /* products of positions are under way with those by the state, each awaited where it is read */
    bool owes;     /* ... and the barrier behind which tiles are whole comes before the first product by one of them */
    uint8_t flying[PLAN_MAX_VALUES]; /* ... products under way, as they were issued */
    uint32_t n_flying;
    enum role_kind role;
    enum guard guard;
};

typedef bool which_ops(const struct plan *p, const struct op *op);

static struct op *put(struct order *o, enum op_kind kind)
{
    struct op *op = plan_add_op(o->p, kind, -1);
    op->role = (uint8_t)o->role;
    op->guard = (uint8_t)o->guard;
    return op;
}

static void put_value(struct order *o, enum op_kind kind, uint32_t v)
{
    put(o, kind)->v = (uint8_t)v;
}

static void put_sync(struct order *o, enum op_kind kind, enum sync sync)
{
    put(o, kind)->sync = (uint8_t)sync;
}

static void forget(struct order *o, uint32_t what)
{
    put(o, OP_FORGET)->n = (uint8_t)what;
}

static struct op *put_from(struct order *o, uint32_t i)
{
    struct op *op = put(o, OP_FORGET);
    *op = o->from[i];
    op->role = (uint8_t)o->role;
    op->guard = (uint8_t)o->guard;
    o->placed[i] = true;
    return op;
}

/* ---- what they are ---- */

static bool makes_of_positions(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && !plan_is_owned(p, &p->values[op->v]);
}

static bool reads_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && op->v != p->state && (op->a == p->state || op->b == p->state);
}

static bool changes_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && op->v == p->state;
}

static bool decays_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_DECAY && op->v == p->state;
}

static bool is_of_output(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return plan_is_owned(p, v) && v->n_dims == 2 && plan_is_position(v->dims[0]) && !reads_state(p, op);
}

static bool is_by_tile(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && is_of_output(p, op);
}

static bool sums_loaded(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return op->kind == OP_DOT && v->space == SPACE_PARTS && !v->late &&
           (plan_is_gathered(v) || plan_is_loaded(&p->values[op->a]));
}

static bool works_on_positions(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    const bool map = op->kind == OP_MAP && !plan_is_owned(p, v) && v->space != SPACE_VECTOR;
    return map || (op->kind == OP_DOT && v->space == SPACE_PARTS && !v->late && !sums_loaded(p, op));
}

static bool makes_vector(const struct plan *p, const struct op *op)
{
    return (op->kind == OP_MAP || op->kind == OP_DOT) && p->values[op->v].space == SPACE_VECTOR;
}

static bool sums_state(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return op->kind == OP_DOT && (v->space == SPACE_ROWS || (v->late && v->n_dims == 0));
}

/* Complete behind the barrier of the next chunk. */
static bool stores_late(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && p->values[op->v].late;
}

/* Of a tile, with it. */
static bool stores_rows(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && p->values[op->v].space == SPACE_ROWS;
}

static bool stores_early(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && p->values[op->v].space != SPACE_FRAGMENT && !stores_late(p, op) &&
           !stores_rows(p, op);
}

static bool stores_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && op->v == p->state;
}

/* ---- products ---- */

/* The first of the values that load the same tile. */
static uint8_t first_of(const struct plan *p, uint32_t v)
{
    const struct value *x = &p->values[v];
    return plan_is_loaded(x) && x->shared_with >= 0 ? (uint8_t)x->shared_with : (uint8_t)v;
}

/* Left: what has the rows of the accumulators. A factor of positions on either operand goes to it. */
static void resolve(const struct plan *p, struct op *op)
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
        op->a = first_of(p, op->a);
    if (op->v == p->state || p->algorithm->body[op->stmt].init)
        op->flags |= OP_ONTO;
}

static bool is_tile(const struct value *v)
{
    return v->n_dims == 2 && plan_is_position(v->dims[0]) && plan_is_position(v->dims[1]);
}

/* On the left the state, a loaded matrix or a computed tile of the owner's rows, on the right what is in shared memory; of tiles of
 * positions both are loaded. */
static bool has_operands(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v], *a = &p->values[op->a], *b = &p->values[op->b];
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

static bool check_products(const struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = o->begin; i < o->end; i++) {
        struct op op = o->from[i];
        if (op.kind != OP_CONTRACT)
            continue;
        resolve(p, &op);
        if (has_operands(p, &op))
            continue;
        plan_refuse(
            p, "TG0518", p->algorithm->body[op.stmt].line, "let another row compute it",
            "kernel %s on warpgroups: %s is no product of what has the output's dimension, in registers or loaded, by "
            "what is in shared memory",
            p->row->name, plan_tensor(p, &p->values[op.v])->name);
        return false;
    }
    return true;
}

static void fetch(struct order *o, uint32_t v)
{
    struct op *op = put(o, OP_FETCH);
    op->v = (uint8_t)v;
    op->flags = plan_is_sum_alone(o->p) ? 0 : OP_CAREFUL; /* a state by itself spoils itself */
    o->cleaned &= ~TG_BIT(v);
}

/* Products end in the order in which they were issued. */
static void await(struct order *o, uint32_t v)
{
    struct op *op = put(o, OP_AWAIT);
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
static void await_reads(struct order *o, const struct op *op)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    for (uint32_t i = 0, n = plan_op_reads(o->p, op, reads); i < n; i++)
        if (memchr(o->flying, reads[i], o->n_flying) && !(op->kind == OP_CONTRACT && reads[i] == op->v))
            await(o, reads[i]);
}

/* Computed tiles are whole. */
static void await_others(struct order *o)
{
    if (o->owes)
        put_sync(o, OP_BARRIER, SYNC_GROUPS);
    o->owes = false;
}

/* Of a matrix on the left of a product by a masked tile zeros may be left where NaN were: for another such it is fetched anew.
 * What is fetched is not read either while a product reads it. */
static void put_product(struct order *o, uint32_t i)
{
    const struct plan *p = o->p;
    struct op op = o->from[i];
    resolve(p, &op);
    if (is_by_tile(p, &op) && plan_is_loaded(&p->values[op.a])) {
        if (o->cleaned >> op.a & 1)
            fetch(o, op.a);
        o->cleaned |= TG_BIT(op.a);
    }
    if (o->together)
        await_reads(o, &op);
    if (plan_is_made_tile(&p->values[op.b]))
        await_others(o);
    resolve(p, put_from(o, i));
    if (o->together)
        o->flying[o->n_flying++] = op.v;
    if (o->together && is_by_tile(p, &op) && plan_is_loaded(&p->values[op.a]))
        await(o, op.v);
}

/* ---- positions ---- */

/* Nothing is to be done for what needs no operation: a sum that begins with its product, a factor that is computed where it is used. */
static bool is_implied(const struct plan *p, const struct op *op)
{
    return op->kind == OP_NEST || op->kind == OP_END || op->kind == OP_ZERO ||
           (op->kind == OP_MAP && p->values[op->v].space == SPACE_OPERAND);
}

/* The first tile of a chunk that has but one buffer waits until all groups have left the chunk before. */
static void put_map(struct order *o, uint32_t i)
{
    const struct op *op = &o->from[i];
    const struct value *v = &o->p->values[op->v];
    if (is_implied(o->p, op))
        return;
    put_from(o, i);
    if (plan_has_one_buffer(o->p, v) && !o->overwrites) {
        put_sync(o, OP_BARRIER, SYNC_GROUPS);
        o->overwrites = true;
    }
    if (plan_is_made_tile(v) && !v->summed)
        put_value(o, OP_PUT, op->v);
}

static void put_sums_of_loaded(struct order *o, bool by_head)
{
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!sums_loaded(o->p, &o->from[i]) || o->p->values[o->from[i].v].by_head != by_head)
            continue;
        if (plan_is_gathered(&o->p->values[o->from[i].v]))
            forget(o, FORGET_THREAD);
        put_from(o, i);
    }
}

/* Do the groups hand each other anything? Late sums they do behind the barrier of the next chunk. */
static bool begins_with_all(const struct order *o)
{
    bool any = false;
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *op = &o->from[i];
        any |= makes_of_positions(o->p, op) || (works_on_positions(o->p, op) && !is_implied(o->p, op)) ||
               sums_loaded(o->p, op) || stores_late(o->p, op);
    }
    return any;
}

static void put_work_on_positions(struct order *o, bool by_head)
{
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!works_on_positions(o->p, &o->from[i]) || o->p->values[o->from[i].v].by_head != by_head)
            continue;
        if (o->from[i].kind == OP_MAP)
            put_map(o, i);
        else
            put_from(o, i);
    }
}

static void put_products_of_positions(struct order *o, bool by_head)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (makes_of_positions(o->p, &o->from[i]) && o->p->values[o->from[i].v].by_head == by_head)
            put_product(o, i);
    put_sums_of_loaded(o, by_head);
}

static void await_products_of_positions(struct order *o, bool by_head)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (makes_of_positions(o->p, &o->from[i]) && o->p->values[o->from[i].v].by_head == by_head)
            await(o, o->from[i].v);
}

/* Of computed tiles whose sum over heads is what products take. */
static void put_summed_tiles(struct order *o, enum op_kind kind)
{
    for (uint32_t i = 0; i < o->p->n_values; i++)
        if (plan_is_made_tile(&o->p->values[i]) && o->p->values[i].summed)
            *put(o, kind) = (struct op){
                .kind = (uint8_t)kind, .role = (uint8_t)o->role, .stmt = -1, .v = (uint8_t)i, .a = (uint8_t)i};
}

/* What each of several heads has of positions, in the registers of one; products that all share are under way. */
static void put_positions_of_heads(struct order *o)
{
    put(o, OP_HEADS);
    put_products_of_positions(o, true);
    await_products_of_positions(o, true);
    if (o->p->sums_heads)
        await_products_of_positions(o, false);
    put_work_on_positions(o, true);
    put_summed_tiles(o, OP_TOTAL);
    put(o, OP_END_HEADS);
    put_summed_tiles(o, OP_PUT);
}

static bool has_positions(const struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (makes_of_positions(o->p, &o->from[i]))
            return true;
    return false;
}

/* Has the group one tile, more than one product that can begin at once, and no sums of those of positions, so that nobody waits
 * for these but products by what they make? */
static bool can_be_together(const struct order *o)
{
    const struct plan *p = o->p;
    uint32_t reads = 0;
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *op = &o->from[i];
        reads += reads_state(p, op);
        if (makes_vector(p, op) || sums_loaded(p, op) || sums_state(p, op) ||
            (op->kind == OP_DOT && works_on_positions(p, op)))
            return false;
    }
    const bool fits = p->block[p->owner == TG_DQK ? TG_DHV : TG_DQK] <= MOST_TOGETHER;
    return reads + has_positions(o) > 1 && p->heads == 1 && p->tiles == 1 && fits;
}

/* Products of positions and those by the state at once: the former's maps are made while the latter run. */
static void put_together(struct order *o)
{
    const struct plan *p = o->p;
    put_sync(o, OP_AWAIT, SYNC_STATE);
    put_products_of_positions(o, false);
    for (uint32_t i = o->begin; i < o->end; i++)
        if (reads_state(p, &o->from[i]))
            put_product(o, i);
    if (!has_positions(o))
        return;
    await_products_of_positions(o, false);
    put_work_on_positions(o, false);
    put(o, OP_FENCE);
    o->owes = true;
}

static void put_positions(struct order *o)
{
    put_products_of_positions(o, false);
    if (!o->p->sums_heads) {
        await_products_of_positions(o, false);
        put_work_on_positions(o, false);
    }
    if (o->p->heads > 1)
        put_positions_of_heads(o);
    if (o->p->sums_heads)
        put_work_on_positions(o, false);
    if (!begins_with_all(o))
        return;
    put(o, OP_FENCE);
    put_sync(o, OP_BARRIER, o->p->own_heads ? SYNC_GROUP : SYNC_GROUPS);
}

/* ---- a tile of 64 rows ---- */

static void put_all(struct order *o, which_ops *which)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (which(o->p, &o->from[i]))
            put_from(o, i);
}

static bool has_state_sums(const struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (sums_state(o->p, &o->from[i]))
            return true;
    return false;
}

/* <state, product>: the product is made 64 columns at a time and not kept. */
static void put_state_sums(struct order *o)
{
    struct plan *p = o->p;
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!sums_state(p, &o->from[i]))
            continue;
        struct op *op = put_from(o, i);
        const uint8_t product = op->a == p->state ? op->b : op->a;
        for (uint32_t k = o->begin; k < o->end; k++)
            if (o->from[k].kind == OP_CONTRACT && o->from[k].v == product) {
                struct op made = o->from[k];
                o->placed[k] = true;
                resolve(p, &made);
                op->w = p->state;
                op->a = made.a;
                op->b = made.b;
                op->c = made.c;
                op->flags = made.flags | OP_OF_PRODUCT;
            }
    }
    put_all(o, stores_rows);
}

/* Of a matrix's columns, added to what is carried: its decay, and the matrix whose parts they are. */
static uint8_t gathered_from(const struct order *o, uint32_t v)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (o->from[i].kind == OP_DOT && o->from[i].v == v)
            return o->from[i].a;
    return 0;
}

static void put_vectors(struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = o->begin; i < o->end; i++) {
        if (!makes_vector(p, &o->from[i]))
            continue;
        struct op *op = put_from(o, i);
        if (op->kind == OP_DOT)
            op->b = gathered_from(o, op->a);
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
        if (!is_by_tile(p, &op) && !changes_state(p, &op))
            continue;
        resolve(p, &op);
        if (!plan_is_loaded(&p->values[op.a]) || (fetched >> op.a & 1))
            continue;
        fetched |= TG_BIT(op.a);
        fetch(o, op.a);
    }
}

static bool stores_output(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && is_of_output(p, op);
}

/* By way of the place of a matrix that nobody in the group reads any more. */
static void put_in_place(struct order *o, enum op_kind kind, uint32_t v)
{
    struct op *op = put(o, kind);
    op->v = (uint8_t)v;
    op->a = first_of(o->p, o->p->values[v].place);
}

static bool has_own_place(const struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (stores_output(o->p, &o->from[i]) && plan_is_mapped_store(o->p, &o->from[i]) &&
            o->p->values[o->from[i].v].place == o->from[i].v)
            return true;
    return false;
}

/* All behind the last read of what is loaded: fp32 from registers, the rest by way of their places. A buffer of its own is read by
 * the store of the chunk before until one thread has seen it done, and the others hear of that by a barrier. */
static void put_stores(struct order *o)
{
    const struct plan *p = o->p;
    bool any = false;
    if (has_own_place(o) && !begins_with_all(o)) {
        o->guard = GUARD_FIRST;
        put_sync(o, OP_BARRIER, SYNC_GROUP);
        o->guard = GUARD_ALWAYS;
    }
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *from = &o->from[i];
        if (!stores_output(p, from) || !plan_is_mapped_store(p, from))
            continue;
        any = true;
        if (p->adds) {
            forget(o, FORGET_THREAD);
            put_in_place(o, OP_EXCHANGE, from->v);
            put_sync(o, OP_BARRIER, SYNC_GROUP);
        }
        put_in_place(o, OP_PUT, from->v);
    }
    if (any) {
        put(o, OP_FENCE);
        put_sync(o, OP_BARRIER, SYNC_GROUP);
    }
    for (uint32_t i = o->begin; i < o->end; i++) {
        const struct op *from = &o->from[i];
        if (!stores_output(p, from))
            continue;
        const bool floats = !plan_is_mapped_store(p, from);
        if (floats)
            forget(o, FORGET_THREAD);
        put_from(o, i)->a = floats ? 0 : first_of(p, p->values[from->v].place);
        if (floats && p->carries) /* what the group carries on is whole */
            put_sync(o, OP_BARRIER, SYNC_GROUP);
    }
}

/* Of each head, or what the sum over heads begins with. */
static bool is_of_head(const struct plan *p, const struct op *op)
{
    return p->values[op->v].by_head || (p->values[op->v].summed && op->kind == OP_COPY);
}

static void put_output(struct order *o, uint32_t begin, uint32_t end)
{
    const struct plan *p = o->p;
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &o->from[i];
        const bool by_columns = op->kind == OP_DOT && p->values[op->v].late && p->values[op->v].n_dims;
        if (o->placed[i])
            continue;
        if (o->together && op->kind != OP_CONTRACT && (by_columns || is_of_output(p, op)))
            await_reads(o, op);
        if (by_columns)
            await_others(o);
        if (by_columns || (is_of_output(p, op) && op->kind == OP_COPY)) {
            put_from(o, i);
        } else if (!is_of_output(p, op)) {
            continue;
        } else if (op->kind == OP_MAP) {
            put_map(o, i);
        } else if (op->kind == OP_CONTRACT) {
            put_product(o, i);
            if (!o->together)
                await(o, op->v);
        }
    }
}

/* Gathered with the first tile's products under way, added behind a barrier with the last one's. */
static void put_beside(struct order *o)
{
    o->guard = GUARD_FIRST;
    put_sums_of_loaded(o, false);
    o->guard = GUARD_LAST;
    put_sync(o, OP_BARRIER, SYNC_GROUPS);
    put_vectors(o);
    o->guard = GUARD_ALWAYS;
}

static bool is_left_of_state(const struct order *o, uint32_t v)
{
    for (uint32_t i = o->begin; i < o->end; i++) {
        struct op op = o->from[i];
        if (!changes_state(o->p, &op))
            continue;
        resolve(o->p, &op);
        if (op.a == v)
            return true;
    }
    return false;
}

static void await_products_by_state(struct order *o)
{
    for (uint32_t i = o->begin; i < o->end; i++)
        if (reads_state(o->p, &o->from[i]))
            await(o, o->from[i].v);
}

static void put_products_by_state(struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = o->begin; i < o->end && !o->together; i++)
        if (reads_state(p, &o->from[i]))
            put_product(o, i);
    put_all(o, decays_state);
    o->guard = GUARD_FIRST;
    if (!plan_is_state_alone(p))
        put_vectors(o);
    o->guard = GUARD_ALWAYS;
    if (!p->sums_heads)
        fetch_left(o);
    if (!o->together)
        await_products_by_state(o);
}

/* What each head has of an output that is their sum: its products by its columns of the state, and what is made of them. */
static void put_heads(struct order *o)
{
    if (has_state_sums(o)) { /* before the output's sum takes registers */
        put(o, OP_HEADS);
        put_state_sums(o);
        put(o, OP_END_HEADS);
    }
    put(o, OP_HEADS);
    put_products_by_state(o);
    for (uint32_t i = o->begin; i < o->end; i++)
        if (is_of_head(o->p, &o->from[i]))
            put_output(o, i, i + 1);
    put(o, OP_END_HEADS);
    fetch_left(o);
}

static void put_products_into_state(struct order *o)
{
    const bool by_head = o->p->sums_heads;
    if (by_head)
        put(o, OP_HEADS);
    for (uint32_t i = o->begin; i < o->end; i++)
        if (changes_state(o->p, &o->from[i]))
            put_product(o, i);
    if (by_head)
        put(o, OP_END_HEADS);
}

static void put_tile(struct order *o)
{
    const struct plan *p = o->p;
    const bool alone = plan_is_sum_alone(p);
    uint32_t last = o->begin; /* behind the last product by a tile, and what the state's products have on the left */
    for (uint32_t i = o->begin; i < o->end; i++)
        last = is_by_tile(p, &o->from[i]) || is_left_of_state(o, o->from[i].v) ? i + 1 : last;
    const bool awaits = !has_positions(o) && !alone && !o->together;
    if (awaits && has_state_sums(o))
        put_sync(o, OP_AWAIT, SYNC_STATE);
    if (!p->sums_heads)
        put_state_sums(o);
    if (awaits) /* behind its sums again, or ptxas spills what these had */
        put_sync(o, OP_AWAIT, SYNC_STATE);
    if (p->sums_heads)
        put_heads(o);
    else
        put_products_by_state(o);
    put_output(o, o->begin, last);
    if (!p->sums_heads)
        put_products_into_state(o);
    if (alone && p->carries)
        put_beside(o);
    if (p->adds)
        put_sync(o, OP_ARRIVE, SYNC_READY);
    put_output(o, last, o->end);
    await_others(o);
    put_stores(o);
    if (p->sums_heads)
        put_products_into_state(o);
    await(o, p->state);
}

/* ---- roles ---- */

/* In each of a walk's steps that begins a segment, and before the first. */
static void put_start(struct order *o)
{
    for (uint32_t i = o->begin; o->p->starts && i < o->end; i++)
        if (stores_state(o->p, &o->from[i]))
            put_from(o, i)->kind = OP_START;
}

static bool has_late_sums(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].late)
            return true;
    return false;
}

/* Behind the barrier of the next step, or of the end of this one. */
static void put_late_sums(struct order *o)
{
    o->guard = plan_buffers(o->p) > 1 ? GUARD_LATER : GUARD_ALWAYS;
    put_all(o, stores_late);
    o->guard = GUARD_ALWAYS;
}

static void put_rest(struct order *o)
{
    for (uint32_t i = o->begin; o->p->rests && i < o->end; i++)
        if (decays_state(o->p, &o->from[i])) {
            struct op *op = put(o, OP_REST);
            op->v = o->p->state;
            op->a = o->from[i].a;
        }
}

static void put_chunk(struct order *o)
{
    const struct plan *p = o->p;
    put_sync(o, OP_AWAIT, SYNC_FULL);
    forget(o, FORGET_BASES);
    if (p->shape.packed)
        put(o, OP_CLEAR);
    o->together = can_be_together(o);
    if (o->together)
        put_together(o);
    else if (!plan_is_sum_alone(p))
        put_positions(o);
    forget(o, FORGET_CHUNK);
    put(o, OP_TILES);
    put_tile(o);
    put(o, OP_END_TILES);
    put_sync(o, OP_AWAIT, SYNC_READ);
    put_rest(o);
    put_sync(o, OP_ARRIVE, SYNC_EMPTY);
    put_start(o);
    for (uint32_t i = o->begin; i < o->end; i++)
        if (stores_early(p, &o->from[i]))
            put_from(o, i)->a = gathered_from(o, o->from[i].v);
    if (plan_buffers(p) == 1)
        put_sync(o, OP_BARRIER, SYNC_GROUPS);
    put_late_sums(o);
}

static void put_walk(struct order *o)
{
    struct plan *p = o->p;
    o->role = ROLE_WALK;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_UNIFORM && p->values[i].stmt < 0)
            put_value(o, OP_LOAD, i);
    bool carries = false;
    for (uint32_t i = 0; i + 1 < o->begin; i++) {
        if (o->from[i].kind != OP_INIT && o->from[i].kind != OP_ENTER)
            continue;
        put_from(o, i);
        carries |= plan_is_carried(&p->values[o->from[i].v]);
    }
    if (carries) /* all have read memory before one writes the end there */
        put_sync(o, OP_BARRIER, SYNC_GROUPS);
    put_start(o);
    put(o, OP_NEST);
    put_chunk(o);
    put(o, OP_END);
    forget(o, FORGET_THREAD | FORGET_BASES);
    if (has_late_sums(p) && plan_buffers(p) > 1) {
        put_sync(o, OP_BARRIER, SYNC_GROUPS);
        put_late_sums(o);
    }
    for (uint32_t i = o->end + 1; i < o->n; i++)
        if (o->from[i].kind == OP_STORE)
            put_from(o, i)->kind = OP_LEAVE;
    put_sync(o, OP_AWAIT, SYNC_WRITTEN);
}

static void put_loads(struct order *o, enum space space, bool shared)
{
    const struct plan *p = o->p;
    for (uint32_t i = 0; i < p->nests[0].n_loads; i++) {
        const struct value *v = &p->values[p->nests[0].loads[i]];
        if (v->space == space && shared == (space == SPACE_MATRIX && plan_shared_along(p, v)))
            put_value(o, OP_LOAD, p->nests[0].loads[i]);
    }
}

static void put_load(struct order *o)
{
    const bool shares = plan_shares(o->p);
    o->role = ROLE_LOAD;
    put(o, OP_NEST);
    put_sync(o, OP_AWAIT, SYNC_EMPTY);
    put_rest(o);
    if (shares)
        put_sync(o, OP_ARRIVE, SYNC_OPEN);
    o->guard = GUARD_ONE;
    put_sync(o, OP_EXPECT, SYNC_FULL);
    put_loads(o, SPACE_MATRIX, false);
    o->guard = GUARD_ALWAYS;
    if (shares)
        put_sync(o, OP_AWAIT, SYNC_OPEN);
    o->guard = GUARD_ONE;
    put_loads(o, SPACE_MATRIX, true);
    o->guard = GUARD_ALWAYS;
    put_loads(o, SPACE_VECTOR, false);
    put_sync(o, OP_ARRIVE, SYNC_FULL);
    put(o, OP_END);
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

/* Nothing is left out in silence. */
static bool check_placed(const struct order *o)
{
    const struct plan *p = o->p;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct op *op = &o->from[i];
        if (o->placed[i] || is_implied(p, op))
            continue;
        plan_refuse(p, "TG0518", op->stmt < 0 ? p->row->line : p->algorithm->body[op->stmt].line,
                    "let another row compute it", "kernel %s on warpgroups: it has no place for what makes %s",
                    p->row->name, plan_tensor(p, &p->values[op->v])->name);
        return false;
    }
    return true;
}

bool pass_order(struct plan *p)
{
    struct order o = {.p = p, .n = p->n_ops};
    /* One group has registers enough, unless there are two such thread blocks. */
    const bool moves = p->groups == 2 || p->row->blocks_per_sm == 2;
    memcpy(o.from, p->ops, p->n_ops * sizeof *p->ops);
    p->n_ops = 0;
    find_chunk(&o);
    if (!check_products(&o))
        return false;
    p->roles[ROLE_LOAD] = (struct role){
        .first_warp = 4 * p->groups, .warps = p->heads > 1 ? LOAD_WARPS : 1, .registers = moves ? LOAD_REGISTERS : 0};
    p->roles[ROLE_WALK] = (struct role){.warps = 4 * p->groups,
                                        .registers = !moves           ? 0
                                                     : p->groups == 2 ? WALK_REGISTERS
                                                                      : HALF_REGISTERS};
    put_load(&o);
    put_walk(&o);
    if (p->n_ops > PLAN_MAX_OPS) {
        plan_refuse(p, "TG0507", p->row->line, "split the kernel into two rows",
                    "kernel %s needs more than %d tile operations", p->row->name, PLAN_MAX_OPS);
        return false;
    }
    return check_placed(&o);
}
