/* compiler/nest.c - loops from roles and data dependence.
 *
 * A statement must run once for every block of the looped dimensions that its tiles have. Its domain is
 * that set; free dimensions are those its result has, the others are summed over. Statements of compatible
 * domains share a nest; one that needs a sum completed by the current nest closes it.
 *
 * requires: slice, blocks   makes: values, nests, ops (without copies and barriers) */
#include "compiler/nest.h"
#include "compiler/plan_channel.h"
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"

#include <string.h>

uint32_t nest_domain(const struct builder *b, tg_operand operand)
{
    const tg_algorithm *a = b->p->algorithm;
    return operand ? (tg_operand_mask(a, operand) | tg_tile_implicit(a, TG_OPERAND_TILE(operand))) & b->loop_dims : 0;
}

int nest_producer(const struct plan *p, tg_operand operand)
{
    const int s = p->slices->stmt[TG_OPERAND_TILE(operand)];
    const bool is_loaded = s >= 0 && p->algorithm->body[s].op == TG_STMT_SHIFT; /* at another token */
    return s >= 0 && !is_loaded && (p->slice.stmts >> s & 1) ? s : -1;
}

/* Does a kernel that walks segments make one number of the state behind each? */
static bool sums_behind(const struct plan *p, const tg_stmt *s)
{
    return p->segment && p->row->mma == TG_MMA_WGMMA && tg_tile_sums_behind(p->algorithm, TG_OPERAND_TILE(s->out)) &&
           nest_producer(p, s->a) >= 0;
}

/* The updates that wait for the end of the open nest's step; outside of nests, those that wait for all of them. */
static void update_states(struct builder *b)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < b->n_deferred; i++) {
        if (b->deferred_in[i] == b->nest) {
            *plan_add_op(b->p, OP_DECAY, -1) = b->deferred[i];
            continue;
        }
        b->deferred[left] = b->deferred[i];
        b->deferred_in[left++] = b->deferred_in[i];
    }
    b->n_deferred = left;
}

static void close_nest(struct builder *b)
{
    if (b->nest >= 0)
        update_states(b);
    if (b->nest >= 0)
        plan_add_op(b->p, OP_END, -1)->n = (uint8_t)b->nest;
    b->nest = -1;
}

static const uint8_t loop_order[] = {TG_BATCH, TG_CHUNK, TG_LQ, TG_LKV, TG_DQK, TG_DHV, TG_MEMBER};

/* Where the number of steps is known and there is a slot for each, none waits for another to be read. */
void plan_look_ahead(struct nest *nest, uint32_t mma)
{
    const uint32_t known = plan_known_steps(nest);
    nest->steps_ahead = mma != TG_MMA_NONE && known && known <= nest->stages ? known : nest->stages - 1;
}

/* Sorted loops of a nest: sequences, chunks, positions, dqk, dhv, heads of a group. */
static bool nest_loops(struct plan *p, struct nest *nest, uint32_t domain)
{
    nest->n_loops = 0;
    for (uint32_t i = 0; i < sizeof loop_order; i++) {
        const uint32_t d = loop_order[i];
        if (!(domain >> d & 1))
            continue;
        if (nest->n_loops == 2) {
            plan_refuse(p, "TG0502", "give dqk or dhv a block as large as the dimension",
                        "kernel %s would need three nested loops; at most two are possible", p->row->name);
            return false;
        }
        const uint32_t size = d == TG_MEMBER ? group_of(&p->shape) : plan_dim_size(p, d);
        nest->loops[nest->n_loops++] = (struct loop){
            .dim = (uint8_t)d, .block = p->block[d], .trips = size ? (size + p->block[d] - 1) / p->block[d] : 0};
    }
    plan_look_ahead(nest, p->row->mma);
    return true;
}

static uint32_t nest_dims(const struct nest *nest)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < nest->n_loops; i++)
        set |= 1u << nest->loops[i].dim;
    return set;
}

uint32_t nest_pending(const struct builder *b, const tg_stmt *s)
{
    tg_operand list[TG_MAX_READS];
    uint32_t loops = 0;
    for (uint32_t i = 0, n = tg_stmt_reads(s, list); i < n; i++) {
        const int from = nest_producer(b->p, list[i]);
        if (from >= 0 && b->in_nest[from] == b->nest && b->p->algorithm->body[from].op != TG_STMT_CARRY)
            loops |= b->pending[from];
    }
    return loops;
}

/* Does the statement read a sum that only the end of the open nest completes, or what is made of one? */
static bool needs_end(const struct builder *b, const tg_stmt *s, uint32_t domain)
{
    const uint32_t loops = nest_pending(b, s);
    return domain == 0 ? loops != 0 : (loops & domain) != 0;
}

/* The open nest gets the loops it lacks. What ran every step runs once per outer block when a loop comes
 * inside. */
static bool extend(struct builder *b, uint32_t domain)
{
    struct plan *p = b->p;
    struct nest *nest = &p->nests[b->nest];
    const struct nest before = *nest;
    if (!nest_loops(p, nest, nest_dims(nest) | domain))
        return false;
    if (before.n_loops == nest->n_loops)
        return true;
    if (before.loops[0].dim != nest->loops[0].dim) {
        plan_refuse(p, "TG0508", "reorder the statements, or put a MAP between two products that share an operand",
                    "kernel %s: a loop over %s would have to be put around statements already placed", p->row->name,
                    tg_dim_name(nest->loops[0].dim));
        return false;
    }
    for (uint32_t i = b->nest_begin + 1; i < p->n_ops && i < PLAN_MAX_OPS; i++)
        p->ops[i].guard = GUARD_FIRST;
    return true;
}

/* Would the statement and what the open nest has done not be done alike often? The nest would need a loop around the one
 * it has, or has one around the statement's, which would then add up the same terms again and again. */
static bool needs_own(const struct builder *b, const tg_stmt *s, uint32_t domain)
{
    const struct nest *nest = &b->p->nests[b->nest];
    const uint32_t dims = nest_dims(nest) | domain;
    uint32_t first = 0;
    while (!(dims >> loop_order[first] & 1))
        first++;
    const bool is_inner = dims != 1u << loop_order[first] && !(domain >> loop_order[first] & 1);
    return (nest->n_loops == 1 && nest->loops[0].dim != loop_order[first]) || (is_inner && s->op != TG_STMT_MAP);
}

bool nest_enter(struct builder *b, const tg_stmt *s, uint32_t domain)
{
    struct plan *p = b->p;
    if (b->nest >= 0 && (domain == 0 || needs_end(b, s, domain) || needs_own(b, s, domain)))
        close_nest(b);
    if (domain == 0)
        return true;
    if (b->nest >= 0)
        return extend(b, domain);
    if (p->n_nests == PLAN_MAX_NESTS) {
        plan_refuse(p, "TG0503", "split the kernel into two rows", "kernel %s needs more than %d loop nests",
                    p->row->name, PLAN_MAX_NESTS);
        return false;
    }
    b->nest = (int)p->n_nests++;
    b->carry_at = -1;
    b->nest_begin = p->n_ops;
    p->nests[b->nest] = (struct nest){.stages = p->row->stages ? p->row->stages : 2};
    plan_add_op(p, OP_NEST, -1)->n = (uint8_t)b->nest;
    return nest_loops(p, &p->nests[b->nest], domain);
}

/* Of what a state is at the end: itself, or what a segment makes of zero, its transition, and that behind the last chunk. */
static void store_ends(struct plan *p, int i, const tg_stmt *s, int v)
{
    const bool makes = p->makes_segments;
    const tg_operand tiles[] = {makes ? s->out : s->final_, makes ? s->transition : 0, s->behind};
    for (uint32_t k = 0; k < TG_COUNT(tiles); k++) {
        if (!tiles[k] || !(p->slice.stores >> TG_OPERAND_TILE(tiles[k]) & 1))
            continue;
        struct op *op = plan_add_op(p, OP_STORE, i);
        op->v = (uint8_t)v;
        op->tile = (uint8_t)TG_OPERAND_TILE(tiles[k]);
    }
}

/* Sums of a state as it is behind the last chunk, which need no loop of their own: those of the walk. */
static bool sum_ends(struct builder *b)
{
    struct plan *p = b->p;
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        const uint32_t out = TG_OPERAND_TILE(s->out);
        if (!(p->slice.stmts >> i & 1) || !sums_behind(p, s))
            continue;
        if (p->heads > 1) {
            plan_refuse(p, "TG0518", "let each head have a thread block of its own, or write the states",
                        "kernel %s on warpgroups: of %u heads together it cannot make %s, a sum of their last states",
                        p->row->name, p->heads, p->algorithm->tensors[out].name);
            return false;
        }
        const int carry = nest_producer(p, s->a), v = plan_add_value(p, s->out, (int)i, -1);
        if (v < 0)
            return false;
        struct op *op = plan_add_op(p, OP_MEET, (int)i);
        op->v = (uint8_t)v;
        op->a = (uint8_t)b->value[carry];
        op->tile = (uint8_t)TG_OPERAND_TILE(s->b);
        op = plan_add_op(p, OP_STORE, (int)i);
        op->v = (uint8_t)v;
        op->tile = (uint8_t)out;
    }
    return true;
}

/* Sums over whole nests are complete now: write those that are outputs, and the final states. */
static void store_sums(struct builder *b, int nest)
{
    struct plan *p = b->p;
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        if (!(p->slice.stmts >> i & 1) || b->in_nest[i] != nest || b->value[i] < 0)
            continue;
        if (s->op == TG_STMT_CARRY)
            store_ends(p, (int)i, s, b->value[i]);
        else if (b->domain[i] != b->free[i] && b->free[i] == 0)
            nest_store(b, b->value[i], (int)i, GUARD_ALWAYS);
    }
}

/* Does the operation add up what it has along the positions of `dim`? And is all of that zero above the diagonal? */
static bool sums_along(const struct plan *p, const struct op *op, uint32_t dim, bool *causal)
{
    if ((op->kind != OP_CONTRACT && op->kind != OP_DOT && op->kind != OP_TOTAL && op->kind != OP_SCAN) ||
        (op->kind != OP_SCAN && plan_has_dim(&p->values[op->v], dim)))
        return false;
    const struct value *of[] = {&p->values[op->a],
                                &p->values[op->kind == OP_CONTRACT || op->kind == OP_DOT ? op->b : op->a]};
    if (!plan_has_dim(of[0], dim) && !plan_has_dim(of[1], dim))
        return false;
    *causal = plan_is_decayed(p, op);
    for (int i = 0; i < 2; i++)
        *causal |= plan_has_dim(of[i], TG_LQ) && plan_has_dim(of[i], TG_LKV) &&
                   plan_is_lower(p->algorithm, TG_OPERAND_TILE(of[i]->operand));
    return true;
}

/* Blocks above the diagonal are not visited where nothing in them is added to a sum. Threads visit all. */
static void find_causal(struct plan *p)
{
    for (uint32_t n = 0; n < p->n_nests; n++) {
        const uint32_t dim = p->nests[n].loops[0].dim;
        bool any = false, all = true, in_nest = false;
        for (uint32_t i = 0; plan_is_position(dim) && !p->thread_dim && i < p->n_ops; i++) {
            const struct op *op = &p->ops[i];
            bool causal;
            if (op->kind == OP_NEST || op->kind == OP_END)
                in_nest = op->kind == OP_NEST && op->n == n;
            if (!in_nest || !sums_along(p, op, dim, &causal))
                continue;
            any = true;
            all = all && causal;
        }
        p->nests[n].causal_end = any && all && dim == TG_LKV && p->row->row[TG_LQ].role == TG_ROLE_P;
        p->nests[n].causal_begin = any && all && dim == TG_LQ && p->row->row[TG_LKV].role == TG_ROLE_P;
    }
}

/* Scans over the chunks of a kernel go one way. */
static bool find_direction(struct plan *p)
{
    uint32_t ways = 0;
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        if ((p->slice.stmts >> i & 1) && s->op == TG_STMT_SCAN && !tg_tile_has_t(p->algorithm, TG_OPERAND_TILE(s->a)))
            ways |= s->flags & TG_REVERSE ? 2 : 1;
    }
    p->backwards = ways == 2;
    if (ways == 3 || (p->backwards && p->thread_dim != TG_CHUNK))
        plan_refuse(p, "TG0519", "let a row of their own with the role W for chunk make them",
                    "kernel %s scans the chunks backwards%s", p->row->name,
                    ways == 3 ? " and forwards" : ", but a thread has none of its own");
    return ways < 3 && (!p->backwards || p->thread_dim == TG_CHUNK);
}

/* A kernel on tensor cores takes a chunk as one block: on warpgroups, where the algorithm has but one chunk size, and where it
 * makes decays of channels. */
static bool find_one_block(struct plan *p)
{
    const uint32_t positions = 1u << TG_LQ | 1u << TG_LKV;
    const bool is_fixed = p->slices->has_one_chunk || tg_row_scans_channels(p->algorithm, p->row, &p->slice),
               needed = p->row->mma != TG_MMA_NONE && is_fixed && (p->slice.dims & positions);
    for (uint32_t d = TG_LQ; needed && d <= TG_LKV; d++)
        if ((p->slice.dims >> d & 1) && p->block[d] != p->schedule->chunk) {
            plan_refuse(p, "TG0528", "make both blocks the chunk",
                        "kernel %s: the block of %s is %u, but a chunk of this algorithm is one block of %u",
                        p->row->name, tg_dim_name(d), p->block[d], p->schedule->chunk);
            return false;
        }
    p->one_block = needed || p->row->mma == TG_MMA_WGMMA;
    return true;
}

/* So many channels are 2 or 4 a lane. */
static bool is_of_lanes(uint32_t n)
{
    return n == CHANNEL_UNIT || n == 2 * CHANNEL_UNIT;
}

static bool has_channels(const tg_algorithm *algorithm, tg_operand operand)
{
    return operand && (tg_operand_mask(algorithm, operand) >> TG_DQK & 1);
}

/* Are there gradients of what decays by channels in the row, and no other matrix products of these? Blocks of 64 or 128 then are in
 * registers (SPACE_CHANNEL), of the last one what there is. */
static bool find_spreads(const struct plan *p)
{
    const tg_algorithm *a = p->algorithm;
    const uint32_t n = p->block[TG_DQK], positions = 1u << TG_LQ | 1u << TG_LKV;
    bool any = false, others = false;
    for (uint32_t i = 0; i < a->n_body; i++) {
        const tg_stmt *s = &a->body[i];
        const uint32_t along = s->op == TG_STMT_TOTAL || s->op == TG_STMT_SCAN ? tg_stmt_along(a, s) : 0;
        const bool is_of_heads = s->op == TG_STMT_TOTAL && along == 1u << TG_MEMBER,
                   is_of_rows = has_channels(a, s->out) && along && !(along & ~positions);
        if (!(p->slice.stmts >> i & 1) || s->op == TG_STMT_MAP || is_of_heads || is_of_rows)
            continue;
        const bool spreads = tg_stmt_decays(s) && has_channels(a, s->out) && has_channels(a, s->decay),
                   of_channels = has_channels(a, s->out) || has_channels(a, s->a) || has_channels(a, s->b),
                   is_sum_of_rows = !has_channels(a, s->out) && !tg_stmt_product(a, s).n;
        any |= spreads;
        others |= (of_channels && !spreads && !is_sum_of_rows) || s->op != TG_STMT_CONTRACT;
    }
    return any && !others && p->row->mma == TG_MMA_SYNC && p->one_block && !p->by_member &&
           p->row->warps == CHANNEL_WARPS && p->schedule->chunk == CHANNEL_WARPS * CHANNEL_ROWS && is_of_lanes(n);
}

/* A kernel on tensor cores that makes decays of channels: each of four warps has 16 positions, a lane 2 or 4 channels; where there are
 * more than 128, of one block after another. */
static bool find_channels(struct plan *p)
{
    p->spreads = p->by_channel = find_spreads(p);
    if (p->spreads)
        return true;
    p->by_channel = tg_row_scans_channels(p->algorithm, p->row, &p->slice);
    if (!p->by_channel)
        return true;
    const uint32_t block = round_up(p->block[TG_DQK], CHANNEL_UNIT);
    p->block[TG_DQK] = is_of_lanes(block) ? block : CHANNEL_UNIT;
    if (p->one_block && p->row->warps == CHANNEL_WARPS && p->schedule->chunk == CHANNEL_WARPS * CHANNEL_ROWS)
        return true;
    plan_refuse(p, "TG0535", "let an earlier row without matrix products make them",
                "kernel %s makes decays of channels: expected 4 warps and a chunk of 64, not %u warps and %u",
                p->row->name, p->row->warps, p->schedule->chunk);
    return false;
}

/* Does a lane make the map of its channels where it is read, in whichever loop over blocks of these that is? What is stored is made at its
 * place. */
static bool is_made_when_read(const struct builder *b, const tg_stmt *s)
{
    const struct plan *p = b->p;
    return p->by_channel && (b->loop_dims >> TG_DQK & 1) && s->op == TG_STMT_MAP &&
           has_channels(p->algorithm, s->out) && !(p->slice.stores >> TG_OPERAND_TILE(s->out) & 1);
}

/* Positions that a statement names are the row's: it is computed at those that it is written at. */
static bool check_positions(const struct plan *p)
{
    for (uint32_t i = 0; p->row->mma != TG_MMA_NONE && i < p->n_values; i++)
        for (uint32_t k = 0; k < p->values[i].n_dims; k++)
            if (plan_is_position(p->values[i].dims[k]) && !p->block[p->values[i].dims[k]]) {
                plan_refuse(p, p->row->mma == TG_MMA_WGMMA ? "TG0518" : "TG0524",
                            "let an earlier row write what it reads at other positions",
                            "kernel %s: %s is at positions for which the row has no role", p->row->name,
                            plan_tensor(p, &p->values[i])->name);
                return false;
            }
    return true;
}

/* Final states of shifts: loaded before anything is stored, and stored behind everything that reads initial ones, for they may
 * lie where those do. */
static bool store_shifted(struct plan *p)
{
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        const uint32_t final_ = TG_OPERAND_TILE(s->final_);
        if (s->op != TG_STMT_SHIFT || !final_ || !(p->slice.stores >> final_ & 1))
            continue;
        const int v =
            plan_find(p, s->final_, -1) >= 0 ? plan_find(p, s->final_, -1) : plan_add_value(p, s->final_, -1, -1);
        if (v < 0)
            return false;
        struct op *op = plan_add_op(p, OP_STORE, (int)i);
        op->v = (uint8_t)v;
        op->tile = (uint8_t)final_;
    }
    return true;
}

bool pass_nest(struct plan *p)
{
    if (!find_direction(p))
        return false;
    struct builder b = {.p = p, .nest = -1, .carry_at = -1};
    memset(b.value, -1, sizeof b.value);
    memset(b.in_nest, -1, sizeof b.in_nest);
    p->by_member = !p->thread_dim && p->row->row[TG_MEMBER].role == TG_ROLE_L && group_of(&p->shape) > 1;
    const uint32_t most = plan_chunk_most(p->schedule, p->slices);
    if (!find_one_block(p) || !find_channels(p))
        return false;
    for (uint32_t d = 1; d < TG_N_DIMS; d++) {
        const uint32_t role = p->row->row[d].role, size = plan_dim_size(p, d);
        if (d == TG_MEMBER && !p->thread_dim)
            continue; /* around the whole kernel */
        const bool shared_out =
            d == p->thread_dim && plan_is_position(d); /* block by block, however many a thread has */
        const bool whole = (size && size <= p->block[d]) || (p->held >> d & 1 && !shared_out) ||
                           (d == TG_CHUNK && p->schedule->max_tokens && !p->by_token) ||
                           (plan_has_single_positions(p) && plan_is_position(d)) ||
                           (shared_out && most && most <= p->block[d]) || /* ... and one block is all */
                           (p->one_block && plan_is_position(d));
        if ((role == TG_ROLE_L || role == TG_ROLE_W) && !whole)
            b.loop_dims |= 1u << d;
    }
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        if (!(p->slice.stmts >> i & 1) || sums_behind(p, s) || is_made_when_read(&b, s))
            continue;
        if (!nest_add(&b, (int)i))
            return false;
    }
    close_nest(&b);
    update_states(&b);
    for (uint32_t n = 0; n < p->n_nests; n++)
        store_sums(&b, (int)n);
    store_sums(&b, -1);
    if (!sum_ends(&b) || !store_shifted(p))
        return false;
    find_causal(p);
    if (p->n_ops > PLAN_MAX_OPS) {
        plan_refuse(p, "TG0507", "split the kernel into two rows", "kernel %s needs more than %d tile operations",
                    p->row->name, PLAN_MAX_OPS);
        return false;
    }
    return check_positions(p);
}
