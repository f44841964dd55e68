/* compiler/carry.c - the states that pass from chunk to chunk: started before the walk, read as they arrive, and changed
 * at the end of the step; where a step is a loop over blocks of positions, with each block, and what reads the state goes
 * before. Part of pass nest. */
#include "compiler/nest.h"

#include <string.h>

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
    const int decay = s->decay ? nest_fetch(b, s->decay) : -1, va = nest_fetch(b, s->a),
              vb = s->b ? nest_fetch(b, s->b) : va;
    if (decay < 0 || va < 0 || vb < 0 || !s->final_ || (s->flags & TG_REVERSE)) {
        plan_refuse(p, "TG0506", "use TG_W(1)",
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

bool nest_set_way(struct builder *b, int i)
{
    const struct plan *p = b->p;
    const tg_stmt *body = p->algorithm->body;
    if (!has_way(p, &body[i]))
        return true;
    for (int k = 0; k < i; k++)
        if ((p->slice.stmts >> k & 1) && b->in_nest[k] == b->nest && has_way(p, &body[k]) &&
            ((body[k].flags ^ body[i].flags) & TG_REVERSE)) {
            plan_refuse(p, "TG0519", "let a row of its own write one of them",
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
        plan_refuse(p, "TG0506", "give chunk the role W and let nothing else be looped",
                    "kernel %s computes a carried state but does not walk the chunks alone", p->row->name);
        return false;
    }
    if (p->held >> TG_CHUNK & 1)
        return add_walk(b, i, s, domain);
    const bool is_begun = b->value[i] >= 0; /* by what reads it as it arrives */
    const int v = is_begun ? b->value[i] : plan_add_value(p, s->out, i, walks || !domain ? -1 : b->nest);
    const int decay = s->decay ? nest_fetch(b, s->decay) : -1, va = nest_fetch(b, s->a),
              vb = s->b ? nest_fetch(b, s->b) : va;
    if (v < 0 || va < 0 || vb < 0 || (s->decay && decay < 0))
        return false;
    const struct op init = {
        .kind = OP_INIT, .stmt = (int8_t)i, .v = (uint8_t)v, .tile = (uint8_t)TG_OPERAND_TILE(s->init)};
    if (walks && !is_begun)
        nest_insert_before(b, init);
    else if (!walks)
        *plan_add_op(p, OP_INIT, i) = init;
    if (walks && !nest_set_way(b, i))
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
    const uint32_t most = nest_count_dims(p, s->out) == 2 ? 1 : 0;
    if (decay < 0 || p->values[decay].n_dims <= most)
        return true;
    plan_refuse(p, "TG0522", "let a row without matrix products carry the state, or give it one decay a chunk",
                "kernel %s carries %s, whose decay %s is not one number a chunk%s", p->row->name,
                p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name,
                p->algorithm->tensors[TG_OPERAND_TILE(s->decay)].name, most ? ", row or column" : "");
    return false;
}

/* How a state begins, or a vector beside it: with nothing where each segment is made by itself (the first with the initial one
 * where they have transitions), with that of its segment, its own or that of the same state, or with the initial one. */
static struct op begin_carry(const struct plan *p, int i, int v)
{
    const tg_stmt *s = &p->algorithm->body[i];
    const uint32_t out = TG_OPERAND_TILE(s->out), same = TG_OPERAND_TILE(s->same),
                   begun = p->slice.loads >> out & 1            ? out
                           : same && p->slice.loads >> same & 1 ? same
                                                                : 0;
    const bool enters = begun != 0, is_zero = p->makes_segments && !p->transition && !p->transposed;
    const uint32_t tile = enters ? begun : is_zero ? 0 : TG_OPERAND_TILE(s->init);
    return (struct op){.kind = enters ? OP_ENTER : OP_INIT, .stmt = (int8_t)i, .v = (uint8_t)v, .tile = (uint8_t)tile};
}

int nest_begin_state(struct builder *b, int i)
{
    const int v = plan_add_value(b->p, b->p->algorithm->body[i].out, i, -1);
    if (v < 0)
        return -1;
    nest_insert_before(b, begin_carry(b->p, i, v));
    b->value[i] = (int8_t)v;
    return v;
}

/* A vector carried beside the state, which is added to as it is: read as it arrives, changed at the end of the chunk. */
static bool add_carry_vector(struct builder *b, int i, const tg_stmt *s, uint32_t domain)
{
    struct plan *p = b->p;
    const bool lacks_start = p->segment && !p->makes_segments && !(p->slice.loads >> TG_OPERAND_TILE(s->out) & 1);
    if (lacks_start || p->starts) {
        plan_refuse(p, "TG0521", "let an earlier row write it", "kernel %s carries %s from chunk to chunk, but %s",
                    p->row->name, p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name,
                    lacks_start ? "begins in the middle of the sequence" : "leaves states of segments on its way");
        return false;
    }
    const int v = plan_add_value(p, s->out, i, -1), decay = s->decay ? nest_fetch(b, s->decay) : -1,
              va = nest_fetch(b, s->a);
    if (v < 0 || va < 0 || (s->decay && decay < 0) || !can_decay(b, s, decay))
        return false;
    if (!nest_set_way(b, i))
        return false;
    nest_insert_before(b, begin_carry(p, i, v));
    if (!p->makes_segments)
        nest_store(b, v, i, GUARD_ALWAYS);
    b->value[i] = (int8_t)v;
    if (decay >= 0)
        defer(b, (struct op){.kind = OP_DECAY, .stmt = (int8_t)i, .v = (uint8_t)v, .a = (uint8_t)decay}, domain);
    defer(b, (struct op){.kind = OP_DOT, .stmt = (int8_t)i, .v = (uint8_t)v, .a = (uint8_t)va, .b = (uint8_t)va},
          domain);
    return true;
}

bool nest_is_addend(const struct plan *p, const tg_stmt *product)
{
    bool any = false;
    if (product->op != TG_STMT_CONTRACT || (p->slice.stores >> TG_OPERAND_TILE(product->out) & 1) ||
        !nest_is_matrix_product(p, product))
        return false;
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        tg_operand reads[TG_MAX_READS];
        for (uint32_t k = 0, n = p->slice.stmts >> i & 1 ? tg_stmt_reads(s, reads) : 0; k < n; k++) {
            if (TG_OPERAND_TILE(reads[k]) != TG_OPERAND_TILE(product->out))
                continue;
            const bool carried = s->op == TG_STMT_CARRY && !s->b && reads[k] == s->a;
            if (!carried && !(s->op == TG_STMT_CONTRACT && reads[k] == s->init && nest_is_addend(p, s)))
                return false;
            any = true;
        }
    }
    return any;
}

/* A product into a state: at the end of the step, or here, where other operations of the step are in a loop of their own. */
static bool add_product(struct builder *b, const tg_stmt *s, int stmt, int state, uint32_t domain)
{
    const int va = nest_fetch(b, s->a), vb = nest_fetch(b, s->b);
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
    if (!s || !nest_is_addend(b->p, s)) {
        plan_refuse(b->p, "TG0529", "add products to it (TG_CONTRACT_TO, TG_CONTRACT_ONTO) that nothing else reads",
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
    const int v = b->value[i] >= 0 ? b->value[i] : nest_begin_state(b, i);
    const int decay = s->decay ? nest_fetch(b, s->decay) : -1;
    if (v < 0 || (s->decay && decay < 0) || !can_decay(b, s, decay))
        return false;
    if (!nest_set_way(b, i))
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
static bool add_carry_walked(struct builder *b, int i, const tg_stmt *s, uint32_t domain)
{
    struct plan *p = b->p;
    if (!(domain >> TG_CHUNK & 1) || p->nests[b->nest].n_loops != (b->p->one_block ? 1 : 2)) {
        plan_refuse(p, "TG0506", "give chunk the role W and the positions the role L",
                    "kernel %s computes a carried state but does not walk the chunks", p->row->name);
        return false;
    }
    if (b->p->one_block)
        return !s->b && nest_count_dims(p, s->out) < 2 ? add_carry_vector(b, i, s, domain)
                                                       : add_carry_whole(b, i, s, domain);
    tg_operand decays[2];
    const uint32_t n_decays = decays_of(b, s, decays);
    int by[2] = {-1, -1};
    const int v = plan_add_value(p, s->out, i, -1);
    for (uint32_t d = 0; d < n_decays; d++)
        by[d] = nest_fetch(b, decays[d]);
    const int va = s->b ? nest_fetch(b, s->a) : 0, vb = s->b ? nest_fetch(b, s->b) : 0;
    if (v < 0 || va < 0 || vb < 0)
        return false;
    for (uint32_t d = 0; d < n_decays; d++)
        if (by[d] < 0 || !can_decay(b, s, by[d]))
            return false;
    nest_insert_before(b, begin_carry(p, i, v));
    if (!nest_set_way(b, i))
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

void nest_move_before_carry(struct builder *b, uint32_t from)
{
    struct plan *p = b->p;
    for (uint32_t i = from; i < p->n_ops && p->n_ops <= PLAN_MAX_OPS; i++) {
        const struct op op = p->ops[i];
        memmove(&p->ops[b->carry_at + 1], &p->ops[b->carry_at], (i - (uint32_t)b->carry_at) * sizeof op);
        p->ops[b->carry_at++] = op;
    }
}

bool nest_reads_changed_state(const struct builder *b, const tg_stmt *s)
{
    const struct plan *p = b->p;
    tg_operand reads[TG_MAX_READS];
    bool any = false;
    if (p->thread_dim || p->one_block || b->carry_at < 0 || s->op == TG_STMT_CARRY ||
        (s->op == TG_STMT_CONTRACT && !nest_is_matrix_product(p, s)))
        return false;
    for (uint32_t k = 0, n = tg_stmt_reads(s, reads); k < n; k++) {
        const int from = nest_producer(p, reads[k]);
        any |= from >= 0 && b->in_nest[from] == b->nest && p->algorithm->body[from].op == TG_STMT_CARRY;
    }
    if (any)
        plan_refuse(p, "TG0508", "let a row of its own write it, or make a chunk one block of positions",
                    "kernel %s changes its state block by block of positions; %s reads it as it arrives", p->row->name,
                    p->algorithm->tensors[TG_OPERAND_TILE(s->out)].name);
    return any;
}

bool nest_carry(struct builder *b, int i, uint32_t domain)
{
    const tg_stmt *s = &b->p->algorithm->body[i];
    return b->p->thread_dim ? add_carry_thread(b, i, s, domain) : add_carry_walked(b, i, s, domain);
}
