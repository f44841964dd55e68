/* compiler/statement.c - the operations of each statement, inside the loops that nest.c makes.
 *
 * Operands are loaded where they are first needed; sums start before the loops they sum over and are stored when
 * these have ended; states are started before the walk, read as they arrive, and changed at the end of the step. */
#include "compiler/nest.h"

#include <string.h>

enum { MOST_TO_SOLVE = 64 }; /* a thread has a column of the inverse in registers */

/* Dimensions that an operand has on chip. */
static uint32_t count_dims(const struct plan *p, tg_operand operand)
{
    uint8_t dims[TG_MAX_AXES];
    uint32_t n_dims = 0;
    for (uint32_t i = 0, n = tg_operand_dims(p->algorithm, operand, dims); i < n; i++)
        n_dims += dims[i] != TG_CHUNK;
    return n_dims;
}

/* Not what was loaded into fragments for one reader. */
static int find_loaded_or_made(const struct plan *p, tg_operand operand, int nest)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->operand == operand && !v->direct && (v->nest == -1 || v->nest == nest))
            return (int)i;
    }
    return -1;
}

/* Positions that are held whole are the same tokens for queries and for keys. */
static int read_across(struct builder *b, tg_operand operand, int nest)
{
    struct plan *p = b->p;
    const int other = plan_find(p, tg_operand_swap(operand), nest), from = nest_producer(p, operand);
    const int v = other < 0 ? -1 : plan_add_value(p, operand, from, p->values[other].nest);
    if (v < 0)
        return -1;
    struct op *op = plan_add_op(p, OP_COPY, from);
    op->v = (uint8_t)v;
    op->a = (uint8_t)other;
    return v;
}

static bool add_simple(struct builder *b, int i, const tg_stmt *s, enum op_kind kind, uint32_t domain, uint32_t free);
static bool feeds_product(const struct plan *p, const tg_stmt *map);

/* A map of loaded tiles alone, which a product computes as it fetches them? */
static bool is_map_of_loaded(const struct builder *b, int from)
{
    const tg_stmt *s = &b->p->algorithm->body[from];
    tg_operand reads[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(s, reads);
    for (uint32_t k = 0; k < n; k++)
        if (nest_producer(b->p, reads[k]) >= 0)
            return false;
    return s->op == TG_STMT_MAP && feeds_product(b->p, s);
}
static int begin_state(struct builder *b, int i);

/* A map that an earlier loop has made is made again: cheaper than memory. */
static int make_again(struct builder *b, tg_operand operand)
{
    const int from = nest_producer(b->p, operand);
    if (!add_simple(b, from, &b->p->algorithm->body[from], OP_MAP, b->domain[from], b->free[from]))
        return -1;
    return b->value[from];
}

/* The value of an operand here; loads it from memory when this kernel has not computed it in reach. */
static int need(struct builder *b, tg_operand operand, const tg_stmt *s)
{
    struct plan *p = b->p;
    const uint32_t tile = TG_OPERAND_TILE(operand);
    const uint32_t domain = nest_domain(b, operand);
    const int nest = domain ? b->nest : -1;
    const int found = find_loaded_or_made(p, operand, nest);
    if (found >= 0)
        return found;
    const int from = nest_producer(p, operand);
    const bool computed_here = from >= 0;
    const uint32_t positions = 1u << TG_LQ | 1u << TG_LKV;
    if (computed_here && p->algorithm->body[from].op == TG_STMT_CARRY && (p->one_block || p->by_token) &&
        b->value[from] < 0)
        return begin_state(b, from);
    const bool is_held = (p->held & positions) == positions || plan_has_single_positions(p);
    const int across = computed_here && (is_held || p->one_block) ? read_across(b, operand, nest) : -1;
    if (across >= 0)
        return across;
    const bool is_crossing = computed_here && operand != p->algorithm->body[from].out; /* to the other position */
    if (computed_here && !is_crossing &&
        (p->thread_dim ? p->algorithm->body[from].op == TG_STMT_MAP : is_map_of_loaded(b, from)))
        return make_again(b, operand);
    const bool is_stored = p->slice.stores >> tile & 1;
    const bool is_own = !p->thread_dim || tg_operand_mask(p->algorithm, operand) >> p->thread_dim & 1;
    if (computed_here && !(is_stored && is_own)) { /* what another thread has written is not there yet */
        plan_refuse(p, "TG0504", s->line,
                    is_stored ? "let an earlier row write it" : "add the tile to the outputs of the row",
                    "kernel %s needs tile %s again after the loop that made it has ended", p->row->name,
                    p->algorithm->tensors[tile].name);
        return -1;
    }
    return plan_add_value(p, operand, -1, nest);
}

static void insert_before_nest(struct builder *b, struct op op)
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
        insert_before_nest(b, op);
        return true;
    }
    if (nest && nest->n_loops == 2 && !(free >> nest->loops[1].dim & 1)) {
        op.guard = GUARD_FIRST;
        *plan_add_op(p, OP_ZERO, stmt) = op;
        return true;
    }
    plan_refuse(p, "TG0505", p->algorithm->body[stmt].line, "exchange the roles of the two dimensions",
                "kernel %s would sum over an outer loop while an inner one keeps its blocks apart", p->row->name);
    return false;
}

/* The two ends of a product's decay, where it has one. */
static bool need_decay(struct builder *b, const tg_stmt *s, struct op *op)
{
    if (!tg_stmt_decays(s))
        return true;
    if (b->p->row->mma == TG_MMA_WGMMA) {
        plan_refuse(b->p, "TG0527", s->line, "use TG_MMA_SYNC",
                    "kernel %s: a product with a decay does not run on warpgroups", b->p->row->name);
        return false;
    }
    const int decay = need(b, s->decay, s), since = need(b, s->since, s);
    op->c = (uint8_t)decay;
    op->w = (uint8_t)since;
    return decay >= 0 && since >= 0;
}

static bool add_contract(struct builder *b, int i, const tg_stmt *s, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    struct op decay = {0};
    const int va = need(b, s->a, s), vb = need(b, s->b, s);
    const int init = s->init ? need(b, s->init, s) : -1;
    if (va < 0 || vb < 0 || (s->init && init < 0) || !need_decay(b, s, &decay))
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

/* To the end of the step: of the open nest, or of the kernel where the statement runs outside of nests. */
static void defer(struct builder *b, struct op op, uint32_t domain)
{
    if (b->n_deferred == sizeof b->deferred / sizeof b->deferred[0]) {
        b->p->n_ops = PLAN_MAX_OPS + 1; /* too many: pass_nest says so */
        return;
    }
    b->deferred_in[b->n_deferred] = (int8_t)(domain ? b->nest : -1);
    b->deferred[b->n_deferred++] = op;
}

/* The state of a thread kernel that holds all chunks: each as it arrives, and the one that leaves the last. */
static bool add_walk(struct builder *b, int i, const tg_stmt *s, uint32_t domain)
{
    struct plan *p = b->p;
    const int nest = domain ? b->nest : -1;
    const int decay = s->decay ? need(b, s->decay, s) : -1, va = need(b, s->a, s), vb = s->b ? need(b, s->b, s) : va;
    if (decay < 0 || va < 0 || vb < 0 || !s->final_ || (s->flags & TG_REVERSE)) {
        plan_refuse(p, "TG0506", s->line, "use TG_W(1)",
                    "kernel %s holds the chunks: its state needs a decay, a final tensor, and the forward direction",
                    p->row->name);
        return false;
    }
    const int v = plan_add_value(p, s->out, i, nest), w = plan_add_value(p, s->final_, i, nest);
    if (v < 0 || w < 0)
        return false;
    struct op *op = plan_add_op(p, OP_INIT, i);
    op->v = (uint8_t)w;
    op->tile = (uint8_t)TG_OPERAND_TILE(s->init);
    op = plan_add_op(p, OP_WALK, i);
    op->v = (uint8_t)v;
    op->a = (uint8_t)va;
    op->b = (uint8_t)vb;
    op->c = (uint8_t)decay;
    op->w = (uint8_t)w;
    nest_store(b, w, i, GUARD_ALWAYS);
    b->value[i] = -1; /* stored already */
    return true;
}

/* A state or a scan that goes through the chunks, from the first or from the last one on? */
static bool has_way(const struct plan *p, const tg_stmt *s)
{
    return s->op == TG_STMT_CARRY || (s->op == TG_STMT_SCAN && (tg_stmt_along(p->algorithm, s) >> TG_CHUNK & 1));
}

/* The nest walks the chunks in the statement's direction, which is that of all others in it. */
static bool set_way(struct builder *b, int i)
{
    const struct plan *p = b->p;
    const tg_stmt *body = p->algorithm->body;
    for (int k = 0; k < i; k++)
        if ((p->slice.stmts >> k & 1) && b->in_nest[k] == b->nest && has_way(p, &body[k]) &&
            ((body[k].flags ^ body[i].flags) & TG_REVERSE)) {
            plan_refuse(p, "TG0519", body[i].line, "let a row of its own write one of them",
                        "kernel %s walks the chunks for %s and the other way for %s", p->row->name,
                        p->algorithm->tensors[TG_OPERAND_TILE(body[k].out)].name,
                        p->algorithm->tensors[TG_OPERAND_TILE(body[i].out)].name);
            return false;
        }
    if (body[i].op == TG_STMT_CARRY) /* scans find theirs by themselves, see find_direction() */
        b->p->nests[b->nest].reverse = body[i].flags & TG_REVERSE;
    return true;
}

/* The state of a thread kernel. Where the whole call is one chunk there is no walk: what arrives is the initial
 * state, what leaves the final one. */
static bool add_carry_thread(struct builder *b, int i, const tg_stmt *s, uint32_t domain)
{
    struct plan *p = b->p;
    const bool walks = domain >> TG_CHUNK & 1;
    if ((walks && p->nests[b->nest].n_loops != 1) || (!walks && !p->schedule->max_tokens)) {
        plan_refuse(p, "TG0506", s->line, "give chunk the role W and let nothing else be looped",
                    "kernel %s computes a carried state but does not walk the chunks alone", p->row->name);
        return false;
    }
    if (p->held >> TG_CHUNK & 1)
        return add_walk(b, i, s, domain);
    const bool is_begun = b->value[i] >= 0; /* by what reads it as it arrives */
    const int v = is_begun ? b->value[i] : plan_add_value(p, s->out, i, walks || !domain ? -1 : b->nest);
    const int decay = s->decay ? need(b, s->decay, s) : -1, va = need(b, s->a, s), vb = s->b ? need(b, s->b, s) : va;
    if (v < 0 || va < 0 || vb < 0 || (s->decay && decay < 0))
        return false;
    const struct op init = {
        .kind = OP_INIT, .stmt = (int8_t)i, .v = (uint8_t)v, .tile = (uint8_t)TG_OPERAND_TILE(s->init)};
    if (walks && !is_begun)
        insert_before_nest(b, init);
    else if (!walks)
        *plan_add_op(p, OP_INIT, i) = init;
    if (walks && !set_way(b, i))
        return false;
    nest_store(b, v, i, GUARD_ALWAYS);
    if (decay >= 0)
        defer(b, (struct op){.kind = OP_DECAY, .stmt = (int8_t)i, .v = (uint8_t)v, .a = (uint8_t)decay}, domain);
    defer(b, (struct op){.kind = OP_DOT, .stmt = (int8_t)i, .v = (uint8_t)v, .a = (uint8_t)va, .b = (uint8_t)vb},
          domain);
    const uint32_t final_ = TG_OPERAND_TILE(s->final_);
    if (!walks && (p->slice.stores >> final_ & 1))
        defer(b, (struct op){.kind = OP_STORE, .stmt = (int8_t)i, .v = (uint8_t)v, .tile = (uint8_t)final_}, domain);
    b->value[i] = (int8_t)(walks ? v : -1);
    return true;
}

/* Kernels with matrix products multiply all of a state by one number, or each row or column by its own; a vector beside
 * the state by one number. */
static bool can_decay(const struct builder *b, const tg_stmt *s, int decay)
{
    const struct plan *p = b->p;
    const uint32_t most = count_dims(p, s->out) == 2 ? 1 : 0;
    if (decay < 0 || p->values[decay].n_dims <= most)
        return true;
    plan_refuse(p, "TG0522", s->line, "let a row without matrix products carry the state, or give it one decay a chunk",
                "kernel %s carries %s, whose decay %s is not one number a chunk%s", p->row->name,
                p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name,
                p->algorithm->tensors[TG_OPERAND_TILE(s->decay)].name, most ? ", row or column" : "");
    return false;
}

/* How a state begins, or a vector beside it: with nothing where each segment is made by itself (the first with the initial one
 * where they have transitions), with that of its segment, or with the initial one. */
static struct op begin_carry(const struct plan *p, int i, int v)
{
    const tg_stmt *s = &p->algorithm->body[i];
    const bool enters = p->slice.loads >> TG_OPERAND_TILE(s->out) & 1;
    const bool is_zero = p->makes_segments && !p->transition;
    const uint32_t tile = enters ? TG_OPERAND_TILE(s->out) : is_zero ? 0 : TG_OPERAND_TILE(s->init);
    return (struct op){.kind = enters ? OP_ENTER : OP_INIT, .stmt = (int8_t)i, .v = (uint8_t)v, .tile = (uint8_t)tile};
}

/* A state is there from the first step on, before its statement says what is added to it. */
static int begin_state(struct builder *b, int i)
{
    const int v = plan_add_value(b->p, b->p->algorithm->body[i].out, i, -1);
    if (v < 0)
        return -1;
    insert_before_nest(b, begin_carry(b->p, i, v));
    b->value[i] = (int8_t)v;
    return v;
}

/* A vector carried beside the state, which is added to as it is: read as it arrives, changed at the end of the chunk. */
static bool add_carry_vector(struct builder *b, int i, const tg_stmt *s, uint32_t domain)
{
    struct plan *p = b->p;
    const bool lacks_start = p->segment && !p->makes_segments && !(p->slice.loads >> TG_OPERAND_TILE(s->out) & 1);
    if (lacks_start || p->starts) {
        plan_refuse(p, "TG0521", s->line, "let an earlier row write it",
                    "kernel %s carries %s from chunk to chunk, but %s", p->row->name,
                    p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name,
                    lacks_start ? "begins in the middle of the sequence" : "makes one state alone");
        return false;
    }
    const int v = plan_add_value(p, s->out, i, -1), decay = s->decay ? need(b, s->decay, s) : -1, va = need(b, s->a, s);
    if (v < 0 || va < 0 || (s->decay && decay < 0) || !can_decay(b, s, decay))
        return false;
    if (!set_way(b, i))
        return false;
    insert_before_nest(b, begin_carry(p, i, v));
    if (!p->makes_segments)
        nest_store(b, v, i, GUARD_ALWAYS);
    b->value[i] = (int8_t)v;
    if (decay >= 0)
        defer(b, (struct op){.kind = OP_DECAY, .stmt = (int8_t)i, .v = (uint8_t)v, .a = (uint8_t)decay}, domain);
    defer(b, (struct op){.kind = OP_DOT, .stmt = (int8_t)i, .v = (uint8_t)v, .a = (uint8_t)va, .b = (uint8_t)va},
          domain);
    return true;
}

static bool is_matrix_product(const struct plan *p, const tg_stmt *s)
{
    const struct tg_product product = tg_stmt_product(p->algorithm, s);
    return product.m && product.n && product.k && !product.batch;
}

/* Is the product made for nothing but to be added to a state, by itself or with others? It needs no tile then. */
static bool is_addend(const struct plan *p, const tg_stmt *product)
{
    bool any = false;
    if (product->op != TG_STMT_CONTRACT || (p->slice.stores >> TG_OPERAND_TILE(product->out) & 1) ||
        !is_matrix_product(p, product))
        return false;
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        tg_operand reads[TG_MAX_READS];
        for (uint32_t k = 0, n = p->slice.stmts >> i & 1 ? tg_stmt_reads(s, reads) : 0; k < n; k++) {
            if (TG_OPERAND_TILE(reads[k]) != TG_OPERAND_TILE(product->out))
                continue;
            const bool carried = s->op == TG_STMT_CARRY && !s->b && reads[k] == s->a;
            if (!carried && !(s->op == TG_STMT_CONTRACT && reads[k] == s->init && is_addend(p, s)))
                return false;
            any = true;
        }
    }
    return any;
}

/* A product into a state: at the end of the step, or here, where other operations of the step are in a loop of their own. */
static bool add_product(struct builder *b, const tg_stmt *s, int stmt, int state, uint32_t domain)
{
    const int va = need(b, s->a, s), vb = need(b, s->b, s);
    if (va < 0 || vb < 0)
        return false;
    const struct op op = {
        .kind = OP_CONTRACT, .stmt = (int8_t)stmt, .v = (uint8_t)state, .a = (uint8_t)va, .b = (uint8_t)vb};
    if (b->p->one_block)
        defer(b, op, domain);
    else
        *plan_add_op(b->p, OP_CONTRACT, stmt) = op;
    return true;
}

/* The products of a sum that is added to a state: each goes straight into it. */
static bool add_products(struct builder *b, const tg_stmt *carry, tg_operand sum, int state, uint32_t domain)
{
    const int i = nest_producer(b->p, sum);
    const tg_stmt *s = i >= 0 ? &b->p->algorithm->body[i] : NULL;
    if (!s || !is_addend(b->p, s)) {
        plan_refuse(b->p, "TG0529", carry->line,
                    "add products to it (TG_CONTRACT_TO, TG_CONTRACT_ONTO) that nothing else reads",
                    "kernel %s adds %s to a state, which is no sum of products of this kernel alone", b->p->row->name,
                    b->p->algorithm->tensors[TG_OPERAND_TILE(sum)].name);
        return false;
    }
    return (!s->init || add_products(b, carry, s->init, state, domain)) && add_product(b, s, i, state, domain);
}

/* The state where a chunk is one block: whatever reads it has it as it arrives, it changes at the end of the step. */
static bool add_carry_whole(struct builder *b, int i, const tg_stmt *s, uint32_t domain)
{
    struct plan *p = b->p;
    const int v = b->value[i] >= 0 ? b->value[i] : begin_state(b, i);
    const int decay = s->decay ? need(b, s->decay, s) : -1;
    if (v < 0 || (s->decay && decay < 0) || !can_decay(b, s, decay))
        return false;
    if (!set_way(b, i))
        return false;
    if (!p->makes_segments)
        nest_store(b, v, i, GUARD_ALWAYS);
    if (decay >= 0)
        defer(b, (struct op){.kind = OP_DECAY, .stmt = (int8_t)i, .v = (uint8_t)v, .a = (uint8_t)decay}, domain);
    return s->b ? add_product(b, s, i, v, domain) : add_products(b, s, s->a, v, domain);
}

/* What a state decays by, one after the other: a sum of a decay of rows and of one of columns, made here, is both. */
static uint32_t decays_of(const struct builder *b, const tg_stmt *s, tg_operand decays[2])
{
    const int i = s->decay ? nest_producer(b->p, s->decay) : -1;
    const tg_stmt *sum = i >= 0 ? &b->p->algorithm->body[i] : NULL;
    decays[0] = s->decay;
    if (!sum || sum->op != TG_STMT_MAP || sum->expr[0].op != TG_X_TILE || sum->expr[1].op != TG_X_TILE ||
        sum->expr[2].op != TG_X_ADD || sum->expr[3].op != TG_X_END)
        return s->decay ? 1 : 0;
    decays[0] = sum->expr[0].operand;
    decays[1] = sum->expr[1].operand;
    return 2;
}

/* The state: started before the walk; in every chunk stored as it arrives, decayed, added to. */
static bool add_carry(struct builder *b, int i, const tg_stmt *s, uint32_t domain)
{
    struct plan *p = b->p;
    if (!(domain >> TG_CHUNK & 1) || p->nests[b->nest].n_loops != (b->p->one_block ? 1 : 2)) {
        plan_refuse(p, "TG0506", s->line, "give chunk the role W and the positions the role L",
                    "kernel %s computes a carried state but does not walk the chunks", p->row->name);
        return false;
    }
    if (b->p->one_block)
        return !s->b && count_dims(p, s->out) < 2 ? add_carry_vector(b, i, s, domain)
                                                  : add_carry_whole(b, i, s, domain);
    tg_operand decays[2];
    const uint32_t n_decays = decays_of(b, s, decays);
    int by[2] = {-1, -1};
    const int v = plan_add_value(p, s->out, i, -1);
    for (uint32_t d = 0; d < n_decays; d++)
        by[d] = need(b, decays[d], s);
    const int va = s->b ? need(b, s->a, s) : 0, vb = s->b ? need(b, s->b, s) : 0;
    if (v < 0 || va < 0 || vb < 0)
        return false;
    for (uint32_t d = 0; d < n_decays; d++)
        if (by[d] < 0 || !can_decay(b, s, by[d]))
            return false;
    insert_before_nest(b, begin_carry(p, i, v));
    if (!set_way(b, i))
        return false;
    b->value[i] = (int8_t)v;
    nest_store(b, v, i, GUARD_FIRST);
    b->carry_at = (int)p->n_ops;
    for (uint32_t d = 0; d < n_decays; d++) {
        struct op *op = plan_add_op(p, OP_DECAY, i);
        op->v = (uint8_t)v;
        op->a = (uint8_t)by[d];
        op->guard = GUARD_FIRST;
    }
    if (!s->b)
        return add_products(b, s, s->a, v, domain);
    struct op *op = plan_add_op(p, OP_CONTRACT, i);
    op->v = (uint8_t)v;
    op->a = (uint8_t)va;
    op->b = (uint8_t)vb;
    return true;
}

/* An operand of a dot product: a computed tile, or one loaded straight into fragments for it. */
static int dot_operand(struct builder *b, tg_operand operand, const tg_stmt *s, uint8_t guard)
{
    struct plan *p = b->p;
    const bool of_channels = p->by_channel && tg_operand_mask(p->algorithm, operand) >> TG_DQK & 1;
    if (p->thread_dim || of_channels || count_dims(p, operand) < 2 || nest_producer(p, operand) >= 0 ||
        p->row->mma == TG_MMA_WGMMA)
        return need(b, operand, s);
    const int v = plan_add_value(p, operand, -1, nest_domain(b, operand) ? b->nest : -1);
    if (v < 0)
        return -1;
    p->values[v].direct = true;
    struct op *op = plan_add_op(p, OP_LOAD, -1);
    op->v = (uint8_t)v;
    op->guard = guard;
    return v;
}

/* Moves the operations from `from` on to where the open nest's state begins to change: they read it as it
 * arrived. */
static void move_before_carry(struct builder *b, uint32_t from)
{
    struct plan *p = b->p;
    for (uint32_t i = from; i < p->n_ops && p->n_ops <= PLAN_MAX_OPS; i++) {
        const struct op op = p->ops[i];
        memmove(&p->ops[b->carry_at + 1], &p->ops[b->carry_at], (i - (uint32_t)b->carry_at) * sizeof op);
        p->ops[b->carry_at++] = op;
    }
}

/* out = sum of a b over axes that both have and out lacks: no matrix product. */
static bool add_dot(struct builder *b, int i, const tg_stmt *s, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    const uint32_t begin = p->n_ops;
    const uint8_t guard = guard_of(b, s, domain);
    const int va = dot_operand(b, s->a, s, guard), vb = s->b ? dot_operand(b, s->b, s, guard) : va;
    const int init = s->init ? need(b, s->init, s) : -1;
    struct op decay = {0};
    if (!need_decay(b, s, &decay))
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
        move_before_carry(b, begin);
    return true;
}

/* Does a matrix product take the map's result, which is then computed while the product fetches its operand? */
static bool feeds_product(const struct plan *p, const tg_stmt *map)
{
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        if ((p->slice.stmts >> i & 1) && (s->op == TG_STMT_CONTRACT || s->op == TG_STMT_CARRY) &&
            is_matrix_product(p, s) && (s->a == map->out || s->b == map->out))
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
        any |= count_dims(p, reads[k]) == 2 && nest_producer(p, reads[k]) >= 0;
    return any;
}

static bool add_simple(struct builder *b, int i, const tg_stmt *s, enum op_kind kind, uint32_t domain, uint32_t free)
{
    struct plan *p = b->p;
    tg_operand list[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(s, list);
    const bool direct = kind == OP_MAP && !p->thread_dim && p->row->mma != TG_MMA_WGMMA && !p->by_channel &&
                        (!feeds_product(p, s) || reads_computed(p, s));
    int a = -1;
    for (uint32_t k = 0; k < n; k++)
        if ((a = direct ? dot_operand(b, list[k], s, guard_of(b, s, domain)) : need(b, list[k], s)) < 0)
            return false;
    const int v = plan_add_value(p, s->out, i, free ? b->nest : -1);
    if (v < 0 || (kind == OP_TOTAL && !start_sum(b, v, -1, i, domain, free)))
        return false;
    struct op *op = plan_add_op(p, kind, i);
    op->v = (uint8_t)v;
    op->a = (uint8_t)(kind == OP_MAP ? 0 : a);
    op->guard = guard_of(b, s, domain);
    const bool is_stored = b->value[i] >= 0; /* made again, see need() */
    b->value[i] = (int8_t)v;
    if (!is_stored)
        store_result(b, v, i, domain, free);
    return true;
}

/* A tile summed over the heads of a group: it stays in registers from one head to the next. */
static bool add_member_sum(struct builder *b, int i, const tg_stmt *s)
{
    struct plan *p = b->p;
    const int a = need(b, s->a, s), v = plan_add_value(p, s->out, i, -1);
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

/* A sum over the heads of a group of one, or over chunks where there is one chunk, is what it sums. */
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
    const uint32_t single = (group_of(&p->shape) == 1 ? 1u << TG_MEMBER : 0) |
                            (p->schedule->max_tokens && !p->by_token ? 1u << TG_CHUNK : 0) | positions;
    if (along & ~looped & ~on_chip & ~single) {
        plan_refuse(
            p, "TG0517", s->line, "give it the role L in this row, or take a schedule that has a row for the sum",
            "kernel %s sums %s over a dimension that it does not loop over%s", p->row->name,
            p->algorithm->tensors[TG_OPERAND_TILE(s->a)].name, along >> TG_MEMBER & 1 ? " (heads of a group)" : "");
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
            p, "TG0532", s->line, "let a row of its own with TG_MMA_SYNC or TG_MMA_TF32X3 make it and what it inverts",
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
            plan_refuse(p, "TG0508", s->line, "let a row of its own write it",
                        "kernel %s would go on with the scan %s from one %s to the next", p->row->name,
                        p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name, d == TG_MEMBER ? "head" : tg_dim_name(d));
            return false;
        }
    if ((domain >> TG_CHUNK & 1) && has_way(p, s) && !set_way(b, i))
        return false;
    return add_simple(b, i, s, is_scan_of_one(p, s) ? OP_COPY : OP_SCAN, domain, free);
}

/* What it writes is loaded where it is read, from what it shifts. Tokens that are walked have been loaded before. */
static bool add_shift(const struct plan *p, const tg_stmt *s)
{
    if (!p->by_token)
        return true;
    plan_refuse(p, "TG0537", s->line, "hold the tokens: TG_W(max_tokens)",
                "kernel %s walks the tokens of a decode step one by one, and shifts %s", p->row->name,
                p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name);
    return false;
}

/* Does it read a state that has begun to change, block by block of positions? Sums by themselves go before that
 * (move_before_carry), nothing else does. */
static bool reads_changed_state(const struct builder *b, const tg_stmt *s)
{
    const struct plan *p = b->p;
    tg_operand reads[TG_MAX_READS];
    bool any = false;
    if (p->thread_dim || p->one_block || b->carry_at < 0 || s->op == TG_STMT_CARRY ||
        (s->op == TG_STMT_CONTRACT && !is_matrix_product(p, s)))
        return false;
    for (uint32_t k = 0, n = tg_stmt_reads(s, reads); k < n; k++) {
        const int from = nest_producer(p, reads[k]);
        any |= from >= 0 && b->in_nest[from] == b->nest && p->algorithm->body[from].op == TG_STMT_CARRY;
    }
    if (any)
        plan_refuse(p, "TG0508", s->line, "let a row of its own write it, or make a chunk one block of positions",
                    "kernel %s changes its state block by block of positions; %s reads it as it arrives", p->row->name,
                    p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name);
    return any;
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
    b->in_nest[i] = (int8_t)(domain ? b->nest : -1);
    if (reads_changed_state(b, s))
        return false;
    if (!p->thread_dim && is_addend(p, s))
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
        return is_matrix_product(p, s) && !p->thread_dim ? add_contract(b, i, s, domain, free)
                                                         : add_dot(b, i, s, domain, free);
    default:
        return p->thread_dim ? add_carry_thread(b, i, s, domain) : add_carry(b, i, s, domain);
    }
}
