/* compiler/walk.c - a kernel on warpgroups: it walks the chunks with the state in registers (TG_MMA_WGMMA).
 *
 * Forward and gradients have one shape, of which H is
 *
 *     P      = map(Q K^T)                  positions x positions: all groups, each some columns, or makers; to shared memory
 *     H^T    = map(C^T Q^T) + V^T P^T      each group has its own rows of dhv, in tiles of 64
 *     C^T    = 2^g C^T + (w V)^T K         ... of the state too, in registers from the first chunk to the last
 *
 * The output's dqk or dhv is the owner dimension, the rows of all accumulators, and of every left operand: the state and
 * computed tiles from registers as they are, V transposed from shared memory, once for all products; the output goes back
 * to where V was (`place`), a further one to where another such matrix was, or to a buffer of its own. Right operands are
 * in shared memory: loaded, or computed tiles of positions. So the delta rule (N = T (beta (V - K C)) in the
 * place of V, T loaded) is a walk like any other, whose left operands are maps of other products. A factor of positions that
 * is made from sums of rows (the normaliser: q.n and rows of P) is computed by every warp behind the barrier of the chunk. A
 * factor of positions on either operand of a product is put on the left one.
 *
 * With a block of 64 rows for two groups both have them, and each half of the columns of the state: products by it are parts of sums,
 * which they add up (OP_ADD_UP). So a state may have 512 columns.
 *
 * Where a sequence is cut into segments, a row before makes the state alone (the third line), one for each segment: from
 * zero, and vectors beside it; or, where it walks them all, the one that each begins with, which a row with outputs may leave
 * on its way. Its owner is the parallel one of
 * dqk and dhv; where both are, that of the row which carries the state to its end: so both round the same operand. Where
 * what is added depends on the state, thread blocks behind those of the values make the transitions (transition.c).
 *
 * requires: nest   makes: owner, groups, tiles, state; space, dtype, places, offsets and stages of values */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "compiler/walk.h"

bool walk_refuse(const struct plan *p, const char *hint, const char *what)
{
    plan_refuse(p, "TG0518", hint, "kernel %s on warpgroups: %s", p->row->name, what);
    return false;
}

/* Of a row's outputs the number, as they are listed. */
static uint32_t number_of(const tg_kernel_row *row, uint32_t tile)
{
    uint32_t i = 0;
    while (row->outputs[i] && row->outputs[i] != tile)
        i++;
    return i;
}

/* The state, and the output that the chunks write: positions x owner. Of two dimensions it is that of the one listed first. */
static bool find_owner(struct plan *p)
{
    const struct op *state = NULL, *output = NULL;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const struct value *v = &p->values[op->v];
        if (op->kind == OP_CONTRACT && plan_is_state(p, v))
            state = op;
        if (op->kind == OP_STORE && v->n_dims == 2 && plan_is_position(v->dims[0]) && !plan_is_position(v->dims[1]))
            output = !output || p->values[output->v].dims[1] == v->dims[1] ||
                             number_of(p->row, op->tile) < number_of(p->row, output->tile)
                         ? op
                         : output;
    }
    if (!state || (!output && !plan_is_state_alone(p)))
        return walk_refuse(p, "list one output of positions by dqk or dhv that needs the state",
                           "it walks a state and writes no tile that reads it");
    p->state = state->v;
    p->owner = output ? p->values[output->v].dims[1] : plan_owner_of_state(p);
    p->groups = p->row->warps / 4u;
    if (p->row->warps != 4 && p->row->warps != 8)
        return walk_refuse(p, "set .warps", "warps must be 4 or 8");
    p->threads = 128 * (p->groups + 1);
    p->warps_m = 4;
    p->warps_n = 1;
    p->sums_heads = p->heads > 1 && output && p->heads_summed[output->tile] > 1;
    p->shares_columns = plan_row_shares_columns(p->algorithm, p->row);
    p->tiles = plan_heads_in_rows(p) * p->block[p->owner] / (WALK_TILE * plan_row_groups(p));
    return true;
}

/* Columns of a state beside which there may be another thread block. */
enum { MOST_BESIDE = 192 };

/* Blocks are what the registers of the groups can hold, and whole tiles. */
static bool check_blocks(const struct plan *p)
{
    const uint32_t other = p->owner == TG_DQK ? TG_DHV : TG_DQK;
    bool ok = p->shape.io != TG_F32 ||
              walk_refuse(p, "take a schedule with TG_MMA_TF32X3", "inputs are f32, expected bf16 or f16");
    if (p->target->cc != 90 || !p->target->exact)
        ok = walk_refuse(p, "compile for sm_90a, or take a schedule with TG_MMA_SYNC",
                         "wgmma is an instruction of sm_90a");
    bool one_tile = p->schedule->chunk == WALK_TILE;
    for (uint32_t d = TG_LQ; d <= TG_LKV; d++)
        one_tile &= !(p->slice.dims >> d & 1) || p->block[d] == WALK_TILE;
    if (!one_tile)
        ok = walk_refuse(p, "set both blocks and the chunk to 64", "a chunk must be one tile of 64 positions");
    if (p->row->blocks_per_sm > 1 && (p->groups == 2 || p->block[other] > MOST_BESIDE))
        ok = walk_refuse(p, "leave .blocks_per_sm out", "its registers are all that a multiprocessor has");
    if (group_of(&p->shape) % p->heads)
        ok = walk_refuse(p, "let fewer work together, or leave member out",
                         "heads that work together must share queries and keys: their number must divide the group");
    else if (p->tiles * WALK_TILE * plan_row_groups(p) != plan_heads_in_rows(p) * p->block[p->owner])
        ok = walk_refuse(p, "change the block or warps",
                         "the output's block must be 64 columns, or 128, for each four warps");
    else if (plan_state_columns(p) % WALK_TILE)
        ok = walk_refuse(p, "change the block", "the block of what its state is split by must be a multiple of 64");
    else if (p->tiles * plan_heads_in_columns(p) * plan_state_columns(p) > 256)
        ok = walk_refuse(p, "give the output's dimension a smaller block",
                         "the state needs more than 128 registers a thread");
    return ok;
}

/* Two groups that have the same rows have the same of all but the state, of which they make products: what comes of its rows by
 * itself, or goes to another thread block, one of them has a part of. */
static bool check_shared_columns(const struct plan *p)
{
    bool ok = !p->shares_columns || (p->heads == 1 && !p->adds && !p->makes_segments);
    for (uint32_t i = 0; p->shares_columns && i < p->n_values; i++)
        ok &= p->values[i].space != SPACE_ROWS;
    return ok || walk_refuse(p, "let each four warps have 64 columns of the output",
                             "two groups of four warps that share the columns of its state make no states of segments, "
                             "sum none over its rows, and are in no cluster that adds up");
}

/* How many columns of the state are a left operand at a time: what a thread has then are the state, these in 16 bits, a tile of
 * every product by it, and something of each vector that the chunk makes. With more than there are registers ptxas would do one
 * product after the other, as groups that share its columns do (order_columns.c). */
enum { ALL = 240, ALONE = 255 };
static uint32_t count_by_state(const struct plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        n += op->kind == OP_CONTRACT && op->v != p->state && (op->a == p->state || op->b == p->state) &&
             !plan_is_by_rounded_state(p, op);
    }
    return n;
}

static uint32_t registers_beside_part(const struct plan *p)
{
    enum { TILE = 32, VECTOR = 2, BESIDE = 34 };
    const uint32_t products = count_by_state(p);
    uint32_t need = p->tiles * plan_heads_in_columns(p) * plan_state_columns(p) / 2 + BESIDE;
    need += TILE * (p->shares_columns && products ? 1 : products);
    for (uint32_t i = 0; i < p->n_values; i++)
        need +=
            p->values[i].stmt >= 0 && p->values[i].n_dims == 1 && plan_is_position(p->values[i].dims[0]) ? VECTOR : 0;
    return need;
}

static uint32_t registers_of_parts(const struct plan *p)
{
    return p->state_part / 4 * (p->overlaps_parts ? 2 : 1);
}

static bool find_state_part(struct plan *p)
{
    enum { MOST = 128, LEAST = 32 };
    const uint32_t need = registers_beside_part(p), most = p->groups == 2 ? ALL : ALONE;
    if (p->rounds_state) { /* it is in shared memory */
        p->state_part = plan_state_columns(p);
        return true;
    }
    p->overlaps_parts = plan_state_columns(p) > MOST && count_by_state(p) == 1 && plan_can_overlap_parts(p);
    p->state_part = p->shares_columns ? LEAST : p->overlaps_parts ? MOST / 2 : MOST;
    while (p->heads == 1 && p->state_part > LEAST && need + registers_of_parts(p) > most)
        p->state_part /= 2;
    return p->heads > 1 || need + registers_of_parts(p) <= most ||
           walk_refuse(p, "give four warps half of the block",
                       "the state and several products by it need more registers than a thread has");
}

/* Four more warps, if the row asks for them and there is something for them to do, and registers for all. */
static void find_makers(struct plan *p)
{
    const uint32_t most = p->groups == 2 ? plan_registers_beside_makers(p) : ALL;
    p->has_makers =
        p->row->makers && plan_can_have_makers(p) && registers_beside_part(p) + registers_of_parts(p) <= most;
    p->threads += p->has_makers ? 128 : 0;
}

/* Sums that a carried vector is made of: of a loaded matrix and vector, a thread for each pair of columns; and in a pool, where what
 * is left of it goes to the place that it came from, no other thread block may still have to begin with it (segments do not begin
 * there). */
static bool check_carried(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const struct value *v = &p->values[op->v], *a = &p->values[op->a], *b = &p->values[op->b];
        const bool gathers = op->kind == OP_DOT && plan_is_gathered(v), adds = op->kind == OP_DOT && plan_is_carried(v);
        if (gathers && !(plan_is_loaded(a) && b->space == SPACE_VECTOR && a->extent[1] / 2 <= 128 * p->groups))
            return walk_refuse(
                p, "let an earlier row write it",
                "it sums a matrix with more pairs of columns than there are threads, or something else over the positions");
        if (adds && !plan_is_gathered(a))
            return walk_refuse(p, "let an earlier row write it",
                               "a carried vector is not made of sums over the positions of its chunk");
        const bool shared = !p->segment && v->dims[0] != p->owner && plan_dim_size(p, p->owner) > p->block[p->owner];
        if (op->kind == OP_STORE && plan_is_carried(v) && shared && p->shape.pooled)
            return walk_refuse(p, "let a row of its own write it",
                               "several thread blocks begin with a vector whose end goes to the same slot");
    }
    return true;
}

/* A row of a tile of positions is in the lanes of a warp, which sum it; a column is in all warps. */
static bool check_tile_sums(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const struct value *v = &p->values[op->v], *a = &p->values[op->a];
        const bool is_tile = plan_has_dim(a, TG_LQ) && plan_has_dim(a, TG_LKV);
        if (op->kind == OP_DOT && is_tile && v->n_dims == 1 && v->dims[0] != a->dims[0])
            return walk_refuse(p, "let a row of its own write it", "it sums a tile of positions over its rows");
    }
    return true;
}

/* Of what is made in a chunk memory gets matrices of positions by the owner. Or the state, of some chunks. */
static bool check_stores(const struct plan *p)
{
    bool in_chunk = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        in_chunk = op->kind == OP_NEST || (in_chunk && op->kind != OP_END);
        const struct value *v = &p->values[op->v];
        if (op->kind != OP_STORE || !in_chunk || v->n_dims < 2)
            continue;
        const bool is_start = p->starts && op->v == p->state;
        const bool to_caller =
            plan_memory_dtype(p, op->tile) == TG_F32 &&
            ((p->algorithm->tensors[op->tile].flags & TG_OUT) || tg_tile_kept(p->schedule, op->tile));
        if (plan_is_added_up(p, op->tile) && !plan_is_mapped_store(p, op)) {
            plan_refuse(
                p, "TG0518", "take TG_P, or the input type",
                "kernel %s on warpgroups: a cluster adds up what is of the input type, and %s is fp32 in memory",
                p->row->name, plan_tensor(p, v)->name);
            return false;
        }
        const bool can_write =
            is_start || (plan_is_position(v->dims[0]) && (plan_is_owned(p, v) || plan_is_across(p, v)));
        if (to_caller || !can_write) {
            plan_refuse(
                p, "TG0518", "let another row write it",
                "kernel %s on warpgroups: its chunks write positions by dqk or dhv as its rows are, to the caller in the "
                "input type, and cannot write %s",
                p->row->name, plan_tensor(p, v)->name);
            return false;
        }
    }
    return true;
}

/* Does the map add something to parts of a sum, in the first of them (lower/expression.c)? */
static bool adds_to_part(const struct plan *p, const struct value *v)
{
    bool part[TG_MAX_EXPR + 2] = {false};
    uint32_t n = 0;
    const tg_stmt *s = &p->algorithm->body[v->stmt];
    for (uint32_t i = 0; i < tg_expr_length(s); i++) {
        const tg_x *x = &s->expr[i];
        const uint32_t arity = (uint32_t)tg_expr_arity(x->op);
        n -= arity;
        const bool a = arity > 0 && part[n], b = arity > 1 && part[n + 1];
        if (a != b && (x->op == TG_X_ADD || x->op == TG_X_SUB))
            return true;
        part[n++] = x->op == TG_X_TILE ? plan_split_dims(p, TG_OPERAND_TILE(x->operand)) != 0 : a || b;
    }
    return false;
}

/* What comes off the first part alone may be what kept the whole in the range of f16: with extreme gates of the
 * mLSTM parts are as large as delta, whose difference they should be. */
static bool check_range(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_made_tile(&p->values[i]) && p->shape.io == TG_F16 && adds_to_part(p, &p->values[i]))
            return walk_refuse(p, "take another schedule, or bf16",
                               "parts of a tile of positions may be too large for f16");
    return true;
}

/* Of a thread. Two warpgroups have all that there are. One has the state; beside it, in turn, the products of positions by
 * positions, or a tile of the output and a left operand; and what it makes of rows, sums
 * and maps of them. ptxas 13.0 took at most 16 fewer and 6 more; it may take 40 more where nothing keeps it from it. */
static uint32_t registers_of(const struct plan *p)
{
    enum { ADDRESSES = 42, STARTS = 56, TILE = 32, OPERAND = 16, VECTOR = 5, THREADS = 128 };
    const struct value *state = &p->values[p->state];
    const uint32_t elements = state->extent[0] * state->extent[1] / THREADS,
                   depth = state->extent[state->dims[0] == p->owner ? 1 : 0];
    uint32_t products = 0, vectors = 0;
    if (p->groups > 1)
        return ALL;
    if (plan_is_sum_alone(p))
        return (p->starts ? STARTS : ADDRESSES) + elements;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        products += v->space == SPACE_FRAGMENT && plan_is_position(v->dims[0]) && plan_is_position(v->dims[1]);
        vectors += v->stmt >= 0 && v->n_dims == 1 && plan_is_position(v->dims[0]);
    }
    const uint32_t beside = products * TILE > TILE + OPERAND ? products * TILE : TILE + OPERAND;
    return ADDRESSES + elements + beside + vectors * VECTOR + (depth > WALK_TILE ? OPERAND : 0);
}

/* As many as there is room for, by the estimate of registers; ptxas, which knows nothing of shared memory, is told. Of two, the
 * groups that compute take the registers that the loading warps leave, so that nothing spills. */
uint32_t walk_resident(const struct plan *p)
{
    const uint32_t by_shared = p->target->shared_per_sm / (p->shared_bytes + PLAN_SHARED_OF_DRIVER),
                   by_registers = p->target->registers_per_sm / (round_up(p->registers, 8) * p->threads),
                   asked = p->row->blocks_per_sm ? p->row->blocks_per_sm : 1,
                   n = by_registers < by_shared ? by_registers : by_shared;
    return p->has_makers ? 1 : n > asked ? n : asked;
}

/* Parts of a sum are added up by maps that make vectors, not for every element of a tile. */
static bool check_sums_read(const struct plan *p)
{
    tg_operand reads[TG_MAX_READS];
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        const tg_stmt *s = v->stmt < 0 ? NULL : &p->algorithm->body[v->stmt];
        for (uint32_t k = 0, n = s && s->op == TG_STMT_MAP && v->n_dims > 1 ? tg_stmt_reads(s, reads) : 0; k < n; k++) {
            const struct value *from = &p->values[plan_find(p, reads[k], v->nest)];
            if (from->space != SPACE_PARTS)
                continue;
            plan_refuse(
                p, "TG0510", "make a vector of it first, by a MAP of its own, and read that",
                "kernel %s on warpgroups: %s is a sum that warpgroups have parts of; a map of a tile cannot read it",
                p->row->name, plan_tensor(p, from)->name);
            return false;
        }
    }
    return true;
}

bool pass_walk(struct plan *p)
{
    if (!find_owner(p) || !check_blocks(p))
        return false;
    walk_find_heads(p);
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        v->space = walk_space(p, i);
        if (v->space == SPACE_VECTOR && v->stmt >= 0)
            v->scope = plan_is_state(p, v) ? SCOPE_GROUP : SCOPE_WARP;
        v->late = v->space == SPACE_PARTS && walk_is_late(p, i);
        p->carries |= plan_is_carried(v);
        v->dtype =
            v->stmt >= 0 || v->space == SPACE_UNIFORM ? TG_F32 : plan_memory_dtype(p, TG_OPERAND_TILE(v->operand));
        if (v->space == SPACE_NONE) {
            plan_refuse(p, "TG0510", "let an earlier row write it", "kernel %s on warpgroups cannot %s %s",
                        p->row->name, v->stmt < 0 ? "load" : "compute", plan_tensor(p, v)->name);
            return false;
        }
    }
    if (!check_sums_read(p))
        return false;
    walk_find_uniforms(p);
    plan_find_diagonals(p);
    p->own_heads = walk_has_own_heads(p);
    if (p->n_nests != 1)
        return walk_refuse(p, NULL, "its products are not those of one walk over the chunks");
    walk_find_places_of_rows(p);
    if (!walk_check_heads(p) || !check_shared_columns(p) || !walk_check_across(p) || !find_state_part(p) ||
        !check_stores(p) || !check_carried(p) || !check_tile_sums(p) || !check_range(p) || !plan_check_operands(p) ||
        !plan_check_cluster(p) || !plan_check_transition(p))
        return false;
    p->rests = plan_can_rest(p);
    find_makers(p);
    if (!walk_check_rows(p))
        return false;
    plan_find_ways(p);
    plan_find_factors(p);
    plan_find_rounded(p);
    p->registers = registers_of(p);
    walk_place_shared(p);
    if (p->decayed && p->own_heads) /* the heads of a group have one together */
        p->values[p->ways.tile].by_head = false;
    p->resident = walk_resident(p);
    if (p->shared_bytes <= p->target->shared_optin)
        return true;
    plan_refuse(p, "TG0531", "use smaller blocks or fewer stages",
                "kernel %s needs %u bytes of shared memory; at most %u", p->row->name, p->shared_bytes,
                p->target->shared_optin);
    return false;
}
