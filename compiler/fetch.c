/* compiler/fetch.c - the operands of a statement: what this kernel has made of them, or a load where they are first
 * needed. Part of pass nest. */
#include "compiler/nest.h"
#include "compiler/plan_thread.h"

enum { MOST_TO_SOLVE = 64 }; /* a thread has a column of the inverse in registers */

uint32_t nest_count_dims(const struct plan *p, tg_operand operand)
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

/* A map of loaded tiles alone, which a product computes as it fetches them? */
static bool is_map_of_loaded(const struct builder *b, int from)
{
    const tg_stmt *s = &b->p->algorithm->body[from];
    tg_operand reads[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(s, reads);
    for (uint32_t k = 0; k < n; k++)
        if (nest_producer(b->p, reads[k]) >= 0)
            return false;
    return s->op == TG_STMT_MAP && nest_feeds_product(b->p, s);
}

/* A map of lanes' channels, which has not been made in reach: each loop over blocks of these makes it for itself. */
static bool is_left_to_readers(const struct plan *p, int from, int nest)
{
    const tg_stmt *s = &p->algorithm->body[from];
    return p->by_channel && s->op == TG_STMT_MAP && plan_find(p, s->out, nest) < 0;
}

int nest_fetch(struct builder *b, tg_operand operand)
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
        return nest_begin_state(b, from);
    if (computed_here && is_left_to_readers(p, from, nest)) {
        const int made = nest_make_again(b, p->algorithm->body[from].out);
        if (made < 0 || operand == p->algorithm->body[from].out)
            return made;
    }
    const bool is_held = (p->held & positions) == positions || plan_has_single_positions(p);
    const int across = computed_here && (is_held || p->one_block) ? read_across(b, operand, nest) : -1;
    if (across >= 0)
        return across;
    const bool is_crossing = computed_here && operand != p->algorithm->body[from].out; /* to the other position */
    if (computed_here && !is_crossing &&
        (p->thread_dim ? p->algorithm->body[from].op == TG_STMT_MAP : is_map_of_loaded(b, from)))
        return nest_make_again(b, operand);
    const bool is_stored = p->slice.stores >> tile & 1;
    const bool is_own = !p->thread_dim || tg_operand_mask(p->algorithm, operand) >> p->thread_dim & 1;
    if (computed_here && !(is_stored && is_own)) { /* what another thread has written is not there yet */
        plan_refuse(p, "TG0504",
                    is_stored ? "let an earlier row write it" : "add the tile to the outputs of an earlier row",
                    "kernel %s needs tile %s again after the loop that made it has ended", p->row->name,
                    p->algorithm->tensors[tile].name);
        return -1;
    }
    return plan_add_value(p, operand, -1, nest);
}

int nest_fetch_for_sum(struct builder *b, tg_operand operand, uint8_t guard)
{
    struct plan *p = b->p;
    const bool of_channels = p->by_channel && tg_operand_mask(p->algorithm, operand) >> TG_DQK & 1;
    if (p->thread_dim || of_channels || nest_count_dims(p, operand) < 2 || nest_producer(p, operand) >= 0 ||
        p->row->mma == TG_MMA_WGMMA)
        return nest_fetch(b, operand);
    const int v = plan_add_value(p, operand, -1, nest_domain(b, operand) ? b->nest : -1);
    if (v < 0)
        return -1;
    p->values[v].direct = true;
    struct op *op = plan_add_op(p, OP_LOAD, -1);
    op->v = (uint8_t)v;
    op->guard = guard;
    return v;
}

bool nest_fetch_decay(struct builder *b, const tg_stmt *s, struct op *op)
{
    if (!tg_stmt_decays(s))
        return true;
    if (b->p->row->mma == TG_MMA_WGMMA) {
        plan_refuse(b->p, "TG0527", "use TG_MMA_SYNC", "kernel %s: a product with a decay does not run on warpgroups",
                    b->p->row->name);
        return false;
    }
    const int decay = nest_fetch(b, s->decay), since = nest_fetch(b, s->since);
    op->c = (uint8_t)decay;
    op->w = (uint8_t)since;
    return decay >= 0 && since >= 0;
}
