/* compiler/statement.c - the operations of each statement, inside the loops that nest.c makes.
 *
 * Operands are loaded where they are first needed (fetch.c); sums start before the loops they sum over and are stored
 * when these have ended; states have a file of their own (carry.c). */
#include "compiler/nest.h"
#include "compiler/plan_thread.h"

#include <string.h>

enum { MOST_TO_SOLVE = 64 }; /* a thread has a column of the inverse in registers */

static bool add_simple(struct builder *b, int i, const tg_stmt *s, enum op_kind kind, uint32_t domain, uint32_t free);

void nest_insert_before(struct builder *b, struct op op)
{
    struct plan *p = b->p;
    const uint32_t at = b->nest_begin++;
    plan_add_op(p, OP_BARRIER, -1); /* makes room */
    if (p->n_ops > PLAN_MAX_OPS)
        return;
    memmove(&p->ops[at + 1], &p->ops[at], (p->n_ops - 1 - at) * sizeof(struct op));
    p->ops[at] = op;
    b->carry_at += b->carry_at >= 0;
}

/* Guard of a statement of this domain in the open nest: an outer statement runs before the inner loop
 * unless it reads what that loop sums. */
static uint8_t guard_of(const struct builder *b, const tg_stmt *s, uint32_t domain)
{
    if (b->nest < 0 || b->p->nests[b->nest].n_loops < 2)
        return GUARD_ALWAYS;
    const uint32_t inner = 1u << b->p->nests[b->nest].loops[1].dim;
    if (domain & inner)
        return GUARD_ALWAYS;
    tg_operand list[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(s, list);
    for (uint32_t i = 0; i < n; i++) {
        const int from = nest_producer(b->p, list[i]);
        if (from >= 0 && b->p->algorithm->body[from].op == TG_STMT_CARRY)
            continue; /* read as it arrives */
        if (from >= 0 && b->in_nest[from] == b->nest && (b->domain[from] & inner))
            return GUARD_LAST;
        if (from >= 0 && b->in_nest[from] == b->nest &&
            guard_of(b, &b->p->algorithm->body[from], b->domain[from]) == GUARD_LAST)
            return GUARD_LAST;
    }
    return GUARD_FIRST;
}

void nest_store(struct builder *b, int v, int stmt, uint8_t guard)
{
    struct plan *p = b->p;
    const uint32_t tile = TG_OPERAND_TILE(p->values[v].operand);
    if (!(p->slice.stores >> tile & 1))
        return;
    struct op *op = plan_add_op(p, OP_STORE, stmt);
    op->v = (uint8_t)v;
    op->tile = (uint8_t)tile;
    op->guard = guard;
}

/* A result is complete after its statement, or after the inner loop that it sums over; a sum over the whole nest
 * is stored behind it (store_sums). */
static void store_result(struct builder *b, int v, int i, uint32_t domain, uint32_t free)
{
    if (free == domain)
        nest_store(b, v, i, guard_of(b, &b->p->algorithm->body[i], domain));
    else if (free)
        nest_store(b, v, i, GUARD_LAST);
}

/* Where a sum starts: before the loops that it sums over. */
static bool start_sum(struct builder *b, int v, int init, int stmt, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    const struct nest *nest = b->nest >= 0 ? &p->nests[b->nest] : NULL;
    struct op op = {.kind = init >= 0 ? OP_COPY : OP_ZERO,
                    .stmt = (int8_t)stmt,
                    .v = (uint8_t)v,
                    .a = (uint8_t)(init >= 0 ? init : 0)};
    if (free == domain) { /* nothing looped is summed over */
        op.guard = guard_of(b, &p->algorithm->body[stmt], domain);
        *plan_add_op(p, OP_ZERO, stmt) = op;
        return true;
    }
    if (free == 0) {
        nest_insert_before(b, op);
        return true;
    }
    if (nest && nest->n_loops == 2 && !(free >> nest->loops[1].dim & 1)) {
        op.guard = GUARD_FIRST;
        *plan_add_op(p, OP_ZERO, stmt) = op;
        return true;
    }
    plan_refuse(p, "TG0505", "exchange the roles of the two dimensions",
                "kernel %s would sum over an outer loop while an inner one keeps its blocks apart", p->row->name);
    return false;
}

bool nest_is_matrix_product(const struct plan *p, const tg_stmt *s)
{
    const struct tg_product product = tg_stmt_product(p->algorithm, s);
    return product.m && product.n && product.k && !product.batch;
}

static bool add_contract(struct builder *b, int i, const tg_stmt *s, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    struct op decay = {0};
    const int va = nest_fetch(b, s->a), vb = nest_fetch(b, s->b);
    const int init = s->init ? nest_fetch(b, s->init) : -1;
    if (va < 0 || vb < 0 || (s->init && init < 0) || !nest_fetch_decay(b, s, &decay))
        return false;
    const int v = plan_add_value(p, s->out, i, free ? b->nest : -1);
    if (v < 0 || !start_sum(b, v, init, i, domain, free))
        return false;
    struct op *op = plan_add_op(p, OP_CONTRACT, i);
    op->c = decay.c;
    op->w = decay.w;
    op->v = (uint8_t)v;
    op->a = (uint8_t)va;
    op->b = (uint8_t)vb;
    op->guard = guard_of(b, s, domain);
    b->value[i] = (int8_t)v;
    store_result(b, v, i, domain, free);
    return true;
}

/* out = sum of a b over axes that both have and out lacks: no matrix product. */
static bool add_dot(struct builder *b, int i, const tg_stmt *s, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    const uint32_t begin = p->n_ops;
    const uint8_t guard = guard_of(b, s, domain);
    const int va = nest_fetch_for_sum(b, s->a, guard), vb = s->b ? nest_fetch_for_sum(b, s->b, guard) : va;
    const int init = s->init ? nest_fetch(b, s->init) : -1;
    struct op decay = {0};
    if (!nest_fetch_decay(b, s, &decay))
        return false;
    const int v = plan_add_value(p, s->out, i, free ? b->nest : -1);
    if (va < 0 || vb < 0 || (s->init && init < 0) || v < 0 || !start_sum(b, v, init, i, domain, free))
        return false;
    struct op *op = plan_add_op(p, OP_DOT, i);
    op->c = decay.c;
    op->w = decay.w;
    op->v = (uint8_t)v;
    op->a = (uint8_t)va;
    op->b = (uint8_t)vb;
    op->guard = guard;
    b->value[i] = (int8_t)v;
    store_result(b, v, i, domain, free);
    if (p->thread_dim)
        return true; /* states change at the end of the step */
    const int from_a = nest_producer(p, s->a), from_b = s->b ? nest_producer(p, s->b) : -1;
    const bool of_carry = (from_a >= 0 && p->algorithm->body[from_a].op == TG_STMT_CARRY) ||
                          (from_b >= 0 && p->algorithm->body[from_b].op == TG_STMT_CARRY);
    if (of_carry && b->carry_at >= 0)
        nest_move_before_carry(b, begin);
    return true;
}

bool nest_feeds_product(const struct plan *p, const tg_stmt *map)
{
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        if ((p->slice.stmts >> i & 1) && (s->op == TG_STMT_CONTRACT || s->op == TG_STMT_CARRY) &&
            nest_is_matrix_product(p, s) && (s->a == map->out || s->b == map->out))
            return true;
    }
    return false;
}

/* Does the map read a computed tile? Then it is one itself. */
static bool reads_computed(const struct plan *p, const tg_stmt *map)
{
    tg_operand reads[TG_MAX_READS];
    bool any = false;
    for (uint32_t k = 0, n = tg_stmt_reads(map, reads); k < n; k++)
        any |= nest_count_dims(p, reads[k]) == 2 && nest_producer(p, reads[k]) >= 0;
    return any;
}

static bool add_simple(struct builder *b, int i, const tg_stmt *s, enum op_kind kind, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    tg_operand list[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(s, list);
    const bool direct = kind == OP_MAP && !p->thread_dim && p->row->mma != TG_MMA_WGMMA && !p->by_channel &&
                        (!nest_feeds_product(p, s) || reads_computed(p, s));
    int a = -1;
    for (uint32_t k = 0; k < n; k++)
        if ((a = direct ? nest_fetch_for_sum(b, list[k], guard_of(b, s, domain)) : nest_fetch(b, list[k])) < 0)
            return false;
    const int v = plan_add_value(p, s->out, i, free ? b->nest : -1);
    if (v < 0 || (kind == OP_TOTAL && !start_sum(b, v, -1, i, domain, free)))
        return false;
    struct op *op = plan_add_op(p, kind, i);
    op->v = (uint8_t)v;
    op->a = (uint8_t)(kind == OP_MAP ? 0 : a);
    op->guard = guard_of(b, s, domain);
    const bool is_stored = b->value[i] >= 0; /* made again, see nest_fetch() */
    b->value[i] = (int8_t)v;
    if (!is_stored)
        store_result(b, v, i, domain, free);
    return true;
}

int nest_make_again(struct builder *b, tg_operand operand)
{
    const int from = nest_producer(b->p, operand);
    if (b->value[from] < 0)
        return nest_add(b, from) ? b->value[from] : -1;
    if (!add_simple(b, from, &b->p->algorithm->body[from], OP_MAP, b->domain[from], b->free[from]))
        return -1;
    return b->value[from];
}

/* A tile summed over the heads of a group: it stays in registers from one head to the next. */
static bool add_member_sum(struct builder *b, int i, const tg_stmt *s)
{
    struct plan *p = b->p;
    const int a = nest_fetch(b, s->a), v = plan_add_value(p, s->out, i, -1);
    if (a < 0 || v < 0)
        return false;
    struct op op = {.kind = OP_ZERO, .when = WHEN_BEFORE, .stmt = (int8_t)i, .v = (uint8_t)v, .a = (uint8_t)a};
    *plan_add_op(p, OP_ZERO, i) = op;
    op.kind = OP_TOTAL;
    op.when = WHEN_EACH;
    *plan_add_op(p, OP_TOTAL, i) = op;
    op.kind = OP_STORE;
    op.when = WHEN_AFTER;
    op.tile = (uint8_t)TG_OPERAND_TILE(s->out);
    *plan_add_op(p, OP_STORE, i) = op;
    return true;
}

/* A sum over the heads of a group of one, or over chunks where there is one chunk, is what it sums; over the heads of a cluster
 * it becomes that when the thread blocks exchange what they have. */
static bool add_total(struct builder *b, int i, const tg_stmt *s, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    const uint32_t along = tg_stmt_along(p->algorithm, s), looped = along & b->loop_dims;
    const uint32_t on_chip = p->thread_dim   ? p->held | 1u << p->thread_dim
                             : p->by_channel ? 1u << TG_LQ | 1u << TG_LKV
                                             : 0;
    if (p->by_member && along == 1u << TG_MEMBER && domain == 0)
        return add_member_sum(b, i, s);
    const uint32_t positions = plan_has_single_positions(p) ? 1u << TG_LQ | 1u << TG_LKV : 0;
    const uint32_t together = p->adds == TG_MEMBER ? p->along[TG_MEMBER] : 1;
    const uint32_t single = (group_of(&p->shape) == together ? 1u << TG_MEMBER : 0) |
                            (p->schedule->max_tokens && !p->by_token ? 1u << TG_CHUNK : 0) | positions;
    if (along & ~looped & ~on_chip & ~single) {
        plan_refuse(p, "TG0517", "give it the role L in this row, or take a schedule that has a row for the sum",
                    "kernel %s sums %s over a dimension that it does not loop over%s", p->row->name,
                    p->algorithm->tensors[TG_OPERAND_TILE(s->a)].name,
                    along >> TG_MEMBER & 1 ? " (heads of a group)" : "");
        return false;
    }
    if (looped || (along & on_chip))
        return add_simple(b, i, s, OP_TOTAL, domain, free);
    return add_simple(b, i, s, OP_COPY, domain, free);
}

/* Of one position: 1, whatever is inverted (plan.c, drop_inverted). */
static bool add_one(struct builder *b, int i, const tg_stmt *s, uint32_t free)
{
    const int v = plan_add_value(b->p, s->out, i, free ? b->nest : -1);
    if (v < 0)
        return false;
    struct op *op = plan_add_op(b->p, OP_SOLVE, i);
    op->v = op->a = (uint8_t)v;
    b->value[i] = (int8_t)v;
    return true;
}

static bool add_solve(struct builder *b, int i, const tg_stmt *s, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    if (p->by_token && !(p->slice.stores >> TG_OPERAND_TILE(s->out) & 1))
        return add_one(b, i, s, free);
    if (!b->p->one_block || p->row->mma == TG_MMA_WGMMA || nest_producer(p, s->a) < 0 ||
        p->block[TG_LQ] > MOST_TO_SOLVE) {
        plan_refuse(
            p, "TG0532", "let a row of its own with TG_MMA_SYNC or TG_MMA_TF32X3 make it and what it inverts",
            "kernel %s inverts %s: expected a tile of at most %d positions, computed in the same kernel on tensor cores",
            p->row->name, p->algorithm->tensors[TG_OPERAND_TILE(s->a)].name, MOST_TO_SOLVE);
        return false;
    }
    return add_simple(b, i, s, OP_SOLVE, domain, free);
}

/* Over the positions of a chunk that has but one. */
static bool is_scan_of_one(const struct plan *p, const tg_stmt *s)
{
    const uint32_t positions = 1u << TG_LQ | 1u << TG_LKV;
    return p->by_token && !(s->flags & TG_EXCLUSIVE) && !(tg_stmt_along(p->algorithm, s) & ~positions);
}

/* A scan has one running total: what it goes along is the only loop that it is in, or in none. */
static bool add_scan(struct builder *b, int i, const tg_stmt *s, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    const uint32_t along = tg_stmt_along(p->algorithm, s), heads = 1u << TG_MEMBER;
    const uint32_t others = p->row->row[TG_MEMBER].role == TG_ROLE_L ? domain | heads : domain & along ? domain : 0;
    for (uint32_t d = 1; p->thread_dim && d < TG_N_DIMS; d++)
        if ((others & ~along) >> d & 1) {
            plan_refuse(p, "TG0508", "let a row of its own write it",
                        "kernel %s would go on with the scan %s from one %s to the next", p->row->name,
                        p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name, d == TG_MEMBER ? "head" : tg_dim_name(d));
            return false;
        }
    if ((domain >> TG_CHUNK & 1) && !nest_set_way(b, i))
        return false;
    return add_simple(b, i, s, is_scan_of_one(p, s) ? OP_COPY : OP_SCAN, domain, free);
}

/* What it writes is loaded where it is read, from what it shifts. Tokens that are walked have been loaded before. */
static bool add_shift(const struct plan *p, const tg_stmt *s)
{
    if (!p->by_token)
        return true;
    plan_refuse(p, "TG0537", "hold the tokens: TG_W(max_tokens)",
                "kernel %s walks the tokens of a decode step one by one, and shifts %s", p->row->name,
                p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name);
    return false;
}

bool nest_add(struct builder *b, int i)
{
    struct plan *p = b->p;
    const tg_stmt *s = &p->algorithm->body[i];
    if (s->op == TG_STMT_SHIFT)
        return add_shift(p, s);
    tg_operand list[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(s, list);
    const uint32_t free = s->op == TG_STMT_CARRY ? 0 : nest_domain(b, s->out);
    uint32_t domain = nest_domain(b, s->out);
    for (uint32_t k = 0; k < n; k++)
        domain |= nest_domain(b, list[k]);
    if (!nest_enter(b, s, domain))
        return false;
    b->domain[i] = domain;
    b->free[i] = free;
    b->pending[i] = (domain & ~free) | (domain ? nest_pending(b, s) : 0);
    b->in_nest[i] = (int8_t)(domain ? b->nest : -1);
    if (nest_reads_changed_state(b, s))
        return false;
    if (!p->thread_dim && nest_is_addend(p, s))
        return true; /* with the state's statement */
    switch (s->op) {
    case TG_STMT_MAP:
        return add_simple(b, i, s, OP_MAP, domain, free);
    case TG_STMT_SOLVE:
        return add_solve(b, i, s, domain, free);
    case TG_STMT_SCAN:
        return add_scan(b, i, s, domain, free);
    case TG_STMT_TOTAL:
        return add_total(b, i, s, domain, free);
    case TG_STMT_CONTRACT:
        return nest_is_matrix_product(p, s) && !p->thread_dim ? add_contract(b, i, s, domain, free)
                                                              : add_dot(b, i, s, domain, free);
    default:
        return nest_carry(b, i, domain);
    }
}
