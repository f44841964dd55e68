/* compiler/walk.c - a kernel on warpgroups: it walks the chunks with the state in registers (TG_MMA_WGMMA).
 *
 * Forward and gradients have one shape (reference 2.3), of which H is
 *
 *     P      = map(Q K^T)                  positions x positions: all groups, each some columns; to shared memory
 *     H^T    = map(C^T Q^T) + V^T P^T      each group has its own rows of dhv, in tiles of 64
 *     C^T    = 2^g C^T + (w V)^T K         ... of the state too, in registers from the first chunk to the last
 *
 * The output's dqk or dhv is the owner dimension, the rows of all accumulators, and of every left operand: the state and
 * computed tiles from registers as they are, V transposed from shared memory, once for all products; the output goes back
 * to where V was (`place`), a further one to where another such matrix was, or to a buffer of its own. Right operands are
 * in shared memory: loaded, or computed tiles of positions. So the delta rule (reference 6.2, N = T (beta (V - K C)) in the
 * place of V, T loaded) is a walk like any other, whose left operands are maps of other products. A factor of positions that
 * is made from sums of rows (the normaliser: q.n and rows of P) is computed by every warp behind the barrier of the chunk. A
 * factor of positions on either operand of a product is put on the left one.
 *
 * Where a sequence is cut into segments, a row before makes the state alone (the third line), one for each segment: from
 * zero, and vectors beside it; or, where it walks them all, the one that each begins with. Its owner is the parallel one of
 * dqk and dhv; where both are, that of the row which carries the state to its end: so both round the same operand. Where
 * what is added depends on the state, thread blocks behind those of the values make the transitions (transition.c).
 *
 * requires: nest   makes: owner, groups, tiles, state; space, dtype, places, offsets and stages of values */
#include "compiler/plan.h"

static bool refuse(const struct plan *p, int line, const char *hint, const char *what)
{
    plan_refuse(p, "TG0518", line ? line : p->row->line, hint, "kernel %s on warpgroups: %s", p->row->name, what);
    return false;
}

/* The state, and the output that the chunks write: positions x owner. */
static bool find_owner(struct plan *p)
{
    const struct op *state = NULL, *output = NULL;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const struct value *v = &p->values[op->v];
        if (op->kind == OP_CONTRACT && v->stmt >= 0 && p->algorithm->body[v->stmt].op == TG_STMT_CARRY)
            state = op;
        if (op->kind == OP_STORE && v->n_dims == 2 && plan_is_position(v->dims[0]) && !plan_is_position(v->dims[1]))
            output = op;
    }
    if (!state || (!output && !plan_is_state_alone(p)))
        return refuse(p, 0, "list one output of positions by dqk or dhv that needs the state",
                      "it walks a state and writes no tile that reads it");
    p->state = state->v;
    p->owner = output ? p->values[output->v].dims[1] : plan_owner_of_state(p);
    p->groups = p->row->warps / 4u;
    if (p->row->warps != 4 && p->row->warps != 8)
        return refuse(p, 0, "set .warps", "warps must be 4 or 8");
    p->threads = 128 * (p->groups + 1);
    p->warps_m = 4;
    p->warps_n = 1;
    p->sums_heads = p->heads > 1 && output && plan_heads_summed(p->schedule, &p->shape, output->tile) > 1;
    p->tiles = plan_heads_in_rows(p) * p->block[p->owner] / (WALK_TILE * p->groups);
    return true;
}

/* Blocks are what the registers of the groups can hold, and whole tiles. */
static bool check_blocks(const struct plan *p)
{
    const uint32_t other = p->owner == TG_DQK ? TG_DHV : TG_DQK;
    bool ok = p->shape.io != TG_F32 ||
              refuse(p, 0, "take a schedule with TG_MMA_TF32X3", "inputs are f32, expected bf16 or f16");
    if (p->target->cc != 90 || !p->target->exact)
        ok = refuse(p, 0, "take a schedule with TG_MMA_SYNC", "wgmma is an instruction of sm_90a");
    bool one_tile = p->schedule->chunk == WALK_TILE;
    for (uint32_t d = TG_LQ; d <= TG_LKV; d++)
        one_tile &= !(p->slice.dims >> d & 1) || p->block[d] == WALK_TILE;
    if (!one_tile)
        ok = refuse(p, 0, "set both blocks and the chunk to 64", "a chunk must be one tile of 64 positions");
    if (p->groups == 2 && p->row->blocks_per_sm > 1)
        ok = refuse(p, 0, "leave .blocks_per_sm out", "its registers are all that a multiprocessor has");
    if (group_of(&p->shape) % p->heads)
        ok = refuse(p, 0, "let fewer work together, or leave member out",
                    "heads that work together must share queries and keys: their number must divide the group");
    else if (p->tiles * WALK_TILE * p->groups != plan_heads_in_rows(p) * p->block[p->owner])
        ok = refuse(p, 0, "change the block or warps",
                    "the output's block must be 64 columns, or 128, for each four warps");
    else if (p->block[other] % WALK_TILE)
        ok = refuse(p, 0, "change the block", "the block of what its state is split by must be a multiple of 64");
    else if (p->tiles * plan_heads_in_columns(p) * p->block[other] > 256)
        ok = refuse(p, 0, "give the output's dimension a smaller block",
                    "the state needs more than 128 registers a thread");
    return ok;
}

static bool is_operand(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_CONTRACT && (p->ops[i].a == v || p->ops[i].b == v))
            return true;
    return false;
}

/* Is the map's value a multiple of the one, by factors of positions? */
static bool is_product_with(const struct plan *p, const struct value *v, uint32_t of)
{
    bool stack[TG_MAX_EXPR] = {false}; /* is it in this term? */
    uint32_t n = 0, times = 0;
    const tg_stmt *s = &p->algorithm->body[v->stmt];
    for (uint32_t i = 0; s->op == TG_STMT_MAP && i < tg_expr_length(s); i++) {
        const tg_x *x = &s->expr[i];
        const uint32_t arity = (uint32_t)tg_expr_arity(x->op);
        bool has = false;
        for (uint32_t k = 0; k < arity; k++)
            has |= stack[n - 1 - k];
        if (has && x->op != TG_X_MUL && x->op != TG_X_NEG)
            return false;
        n -= arity;
        if (x->op == TG_X_TILE) {
            const uint32_t a = (uint32_t)plan_find(p, x->operand, v->nest);
            has = a == of;
            times += has;
            if (!has && p->values[a].n_dims && (p->values[a].n_dims > 1 || !plan_is_position(p->values[a].dims[0])))
                return false;
        }
        stack[n++] = has;
    }
    return times == 1;
}

/* A matrix, or computed tile of the owner's rows, times a factor of its positions: the factor can go to the left operand. */
static bool is_scaled(const struct plan *p, const struct value *v)
{
    tg_operand reads[TG_MAX_READS];
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[v->stmt], reads); k < n; k++) {
        const uint32_t a = (uint32_t)plan_find(p, reads[k], v->nest);
        if (p->values[a].n_dims == 2)
            return (p->values[a].stmt < 0 || plan_is_owned(p, &p->values[a])) && is_product_with(p, v, a);
    }
    return false;
}

/* The sum of products that makes the value, or NULL. */
static const struct op *sum_of(const struct plan *p, uint32_t i)
{
    for (uint32_t k = 0; k < p->n_ops; k++)
        if (p->ops[k].kind == OP_DOT && p->ops[k].v == i)
            return &p->ops[k];
    return NULL;
}

/* Is it a sum of the state, or of accumulators? */
static bool is_late(const struct plan *p, uint32_t i)
{
    const struct op *op = sum_of(p, i);
    return op && (op->a == p->state || op->b == p->state ||
                  (plan_is_owned(p, &p->values[op->a]) && (p->values[op->a].stmt >= 0 || p->values[op->b].stmt >= 0)));
}

static enum space space_of(const struct plan *p, uint32_t i);

/* A vector along the rows of loaded matrices? */
static bool is_along(const struct value *v)
{
    return v->n_dims == 1 && !plan_is_position(v->dims[0]);
}

/* A factor of positions whose operands are there behind the barrier of the chunk. */
static enum space space_of_vector(const struct plan *p, uint32_t i)
{
    tg_operand reads[TG_MAX_READS];
    const struct value *v = &p->values[i];
    if (v->n_dims != 1 || !plan_is_position(v->dims[0]))
        return SPACE_NONE;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[v->stmt], reads); k < n; k++) {
        const uint32_t from = (uint32_t)plan_find(p, reads[k], v->nest);
        const enum space space = space_of(p, from);
        const bool is_whole = space == SPACE_VECTOR || (space == SPACE_PARTS && !is_late(p, from));
        if (space != SPACE_UNIFORM && (!is_whole || is_along(&p->values[from])))
            return SPACE_NONE;
    }
    return SPACE_VECTOR;
}

/* A sum for each row of the state? */
static bool sums_rows_of_state(const struct plan *p, uint32_t i)
{
    const struct op *op = sum_of(p, i);
    return op && p->values[i].dims[0] == p->owner && (op->a == p->state || op->b == p->state);
}

/* What is made of such a vector, carried or about to be. */
static enum space space_along(const struct plan *p, uint32_t i)
{
    if (sums_rows_of_state(p, i))
        return SPACE_ROWS;
    const tg_stmt *s = &p->algorithm->body[p->values[i].stmt];
    const bool gathers = s->op == TG_STMT_CONTRACT && s->b && !s->init;
    return s->op == TG_STMT_CARRY ? SPACE_VECTOR : gathers || sum_of(p, i) ? SPACE_PARTS : SPACE_NONE;
}

static enum space space_of(const struct plan *p, uint32_t i)
{
    const struct value *v = &p->values[i];
    const bool owned = plan_is_owned(p, v);
    if (v->stmt < 0 && v->n_dims == 2)
        return plan_is_position(v->dims[0]) ? SPACE_MATRIX : SPACE_NONE;
    if (v->stmt < 0)
        return v->nest < 0 ? SPACE_UNIFORM : SPACE_VECTOR;
    if (is_along(v))
        return space_along(p, i);
    if (v->n_dims < 2 && p->algorithm->body[v->stmt].op == TG_STMT_MAP)
        return space_of_vector(p, i);
    if (v->n_dims < 2)
        return sum_of(p, i) ? SPACE_PARTS : SPACE_NONE;
    if (i == p->state || (owned && !plan_is_position(v->dims[0])))
        return SPACE_FRAGMENT;
    if (is_operand(p, i) && is_scaled(p, v))
        return SPACE_OPERAND;
    if (!owned && plan_is_position(v->dims[0]) && plan_is_position(v->dims[1]))
        return is_operand(p, i) ? SPACE_MATRIX : SPACE_FRAGMENT;
    return owned && plan_is_position(v->dims[0]) ? SPACE_FRAGMENT : SPACE_NONE;
}

uint32_t plan_matrix_of(const struct plan *p, uint32_t v)
{
    tg_operand reads[TG_MAX_READS];
    const uint32_t n =
        p->values[v].space == SPACE_OPERAND ? tg_stmt_reads(&p->algorithm->body[p->values[v].stmt], reads) : 0;
    for (uint32_t k = 0; k < n; k++) {
        const int a = plan_find(p, reads[k], p->values[v].nest);
        if (p->values[a].n_dims == 2)
            return (uint32_t)a;
    }
    return v;
}

/* Vectors of several heads have a place each in a stage, matrices are one behind the other as if they were wider. */
static void place_ring(struct plan *p, uint32_t i, uint32_t *offset)
{
    struct value *v = &p->values[i];
    const bool matrix = plan_is_loaded(v);
    v->dtype = plan_memory_dtype(p, TG_OPERAND_TILE(v->operand));
    v->row_bytes = matrix ? WALK_SPAN_BYTES : 0;
    v->stage_bytes =
        round_up(tg_dtype_bytes(v->dtype) * (v->n_dims ? v->extent[0] : 1) * (matrix ? v->extent[1] : 1), 16);
    v->stages = (uint8_t)p->nests[v->nest].stages;
    if (v->by_head && matrix)
        v->stage_bytes *= p->heads;
    else if (v->by_head)
        v->stages = (uint8_t)(v->stages * p->heads);
    if (plan_share_tile(p, i)) {
        v->offset = p->values[v->shared_with].offset;
        return;
    }
    v->offset = *offset;
    *offset += v->stage_bytes * v->stages;
    p->nests[v->nest].loads[p->nests[v->nest].n_loads++] = (uint8_t)i;
}

static void place_buffers(struct value *v, uint32_t bytes, uint32_t n, uint32_t *offset)
{
    v->row_bytes = WALK_SPAN_BYTES;
    v->stage_bytes = bytes;
    v->stages = (uint8_t)n;
    v->offset = *offset;
    *offset += bytes * v->stages;
}

/* Computed tiles have two buffers, the last `single` of them one. */
static void place_made_tiles(struct plan *p, uint32_t single, uint32_t *offset)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        left += plan_is_made_tile(&p->values[i]);
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (plan_is_made_tile(v))
            place_buffers(v, WALK_TILE * WALK_SPAN_BYTES,
                          (left-- > single ? plan_buffers(p) : 1) * (v->by_head && !v->summed ? p->heads : 1), offset);
    }
}

/* Matrices and tiles at multiples of 1024 bytes, as the swizzle wants them; then vectors; then barriers. */
static void place_all(struct plan *p, uint32_t single)
{
    uint32_t offset = 0;
    p->nests[0].n_loads = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_loaded(&p->values[i]))
            place_ring(p, i, &offset);
    place_made_tiles(p, single, &offset);
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (plan_is_mapped_store(p, &p->ops[i]) && p->values[p->ops[i].v].place == p->ops[i].v)
            place_buffers(&p->values[p->ops[i].v], plan_heads_in_rows(p) * p->block[p->owner] * WALK_SPAN_BYTES, 1,
                          &offset);
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_VECTOR && p->values[i].stmt < 0)
            place_ring(p, i, &offset);
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (plan_is_gathered(v)) /* two elements from each thread */
            place_buffers(v, 8 * 128 * p->groups, 2, &offset);
        else if (v->space == SPACE_PARTS)
            place_buffers(v, 4 * plan_sum_parts(p, v) * (v->n_dims ? v->extent[0] : 1),
                          plan_part_buffers(p, v) * (v->by_head ? p->heads : 1), &offset);
        if (plan_is_carried(v))
            place_buffers(v, 4 * v->extent[0], 2 * p->groups, &offset);
        if (plan_is_of_warp(v))
            place_buffers(v, 4 * v->extent[0], 4 * p->groups, &offset);
    }
    p->barrier_offset = round_up(offset, 16);
    p->shared_bytes = p->barrier_offset + 16u * (p->nests[0].stages + (p->adds ? p->groups : 0)) +
                      (plan_shares(p) ? 8u * p->nests[0].stages : 0);
    p->rest_offset = p->shared_bytes;
    p->shared_bytes += p->rests ? 4u * p->nests[0].stages : 0;
    p->factors_offset = p->shared_bytes;
    p->shared_bytes += p->factors ? 4u * p->nests[0].stages * p->heads : 0;
}

/* A tile with one buffer costs a barrier in every chunk (order.c): where there is no room for two. Tiles of several heads
 * have two each. */
static void place_shared(struct plan *p)
{
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        tiles += p->heads == 1 && plan_is_made_tile(&p->values[i]);
    place_all(p, 0);
    for (uint32_t single = 1; single <= tiles && p->shared_bytes > p->target->shared_optin; single++)
        place_all(p, single);
}

/* ---- several heads ---- */

/* Does each of the heads have its own? What is made of what they share is theirs together. */
static bool is_by_head(const struct plan *p, uint32_t i)
{
    tg_operand reads[TG_MAX_READS];
    const struct value *v = &p->values[i];
    if (v->stmt < 0)
        return !(plan_tensor(p, v)->flags & (TG_SHARED | TG_NO_HEADS));
    bool any = false;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[v->stmt], reads); k < n && !any; k++) {
        const int a = plan_find(p, reads[k], 0);
        any = a >= 0 && (uint32_t)a != i && is_by_head(p, (uint32_t)a);
    }
    return any;
}

static void find_heads(struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values && p->heads > 1; i++)
        p->values[i].by_head = is_by_head(p, i);
}

/* Has each warpgroup what its heads need of positions, and no other any of it? */
static bool has_own_heads(const struct plan *p)
{
    bool own = p->heads > 1 && !p->sums_heads && p->heads % p->groups == 0;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        own = own && v->space != SPACE_PARTS && !(plan_is_made_tile(v) && !v->by_head);
    }
    return own;
}

/* What is uniform differs between them then, and comes with the chunks. */
static void find_uniforms(struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (!v->by_head || v->space != SPACE_UNIFORM)
            continue;
        v->space = SPACE_VECTOR;
        v->nest = 0;
    }
}

/* Heads have tiles of the output's rows of their own, and their maps of what positions have in common. */
static bool check_own_rows(const struct plan *p)
{
    bool ok = true;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        ok = ok && !(plan_is_loaded(v) && plan_is_owned(p, v) != v->by_head);
        ok = ok && !(v->space == SPACE_PARTS && (v->by_head || v->stored));
    }
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct value *v = &p->values[p->ops[i].v];
        ok = ok && !(p->ops[i].kind == OP_CONTRACT && v->by_head && !plan_is_owned(p, v));
    }
    return ok ||
           refuse(p, 0, "leave member out",
                  "heads work together on an output that each has its own of, from what they share and from their "
                  "own vectors, without sums");
}

/* Is it the value, times what heads share? */
static bool is_multiple(const struct plan *p, const struct value *v, int *of)
{
    tg_operand reads[TG_MAX_READS];
    *of = -1;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[v->stmt], reads); k < n; k++) {
        const int a = plan_find(p, reads[k], v->nest);
        if (!p->values[a].by_head)
            continue;
        if (*of >= 0)
            return false;
        *of = a;
    }
    return *of >= 0 && is_product_with(p, v, (uint32_t)*of);
}

/* Of what is stored of all heads the sum is made as early as it can be: of accumulators with which the output's sum begins,
 * and of the computed tile that what they share is multiplied by. */
static bool find_sum(struct plan *p, uint32_t i)
{
    struct value *v = &p->values[i];
    int of = -1;
    v->summed = true;
    v->by_head = false;
    for (uint32_t k = 0; k < p->n_ops; k++) {
        const struct op *op = &p->ops[k];
        if (op->v != i)
            continue;
        if (op->kind == OP_MAP && !(is_multiple(p, v, &of) && find_sum(p, (uint32_t)of)))
            return false;
        if (op->kind != OP_CONTRACT)
            continue;
        const bool in_order = plan_is_owned(p, &p->values[op->a]);
        struct value *left = &p->values[in_order ? op->a : op->b], *right = &p->values[in_order ? op->b : op->a];
        if (left->by_head || !right->by_head || !plan_is_made_tile(right))
            return false;
        right->summed = true;
    }
    return true;
}

/* Nothing but what the sum is made for reads it. */
static bool is_read_once(const struct plan *p, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_ops; k++) {
        const struct op *op = &p->ops[k];
        tg_operand reads[TG_MAX_READS];
        const struct value *v = &p->values[op->v];
        n += op->kind == OP_STORE && op->v == i;
        n += op->kind == OP_CONTRACT && (op->a == i || op->b == i);
        n += !plan_is_made_tile(&p->values[i]) && (op->kind == OP_DOT || op->kind == OP_COPY) &&
             (op->a == i || op->b == i);
        for (uint32_t r = 0, m = op->kind == OP_MAP ? tg_stmt_reads(&p->algorithm->body[op->stmt], reads) : 0; r < m;
             r++)
            n += plan_find(p, reads[r], v->nest) == (int)i;
    }
    return n == 1;
}

/* Heads share what has the rows of the output, and sum it up: each has its own columns of the state, and of what goes into it. */
static bool find_sums_of_heads(struct plan *p)
{
    bool ok = true;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        ok = ok && !(plan_is_loaded(v) && plan_is_owned(p, v) == v->by_head);
        ok = ok && !(v->space == SPACE_PARTS && !v->by_head && v->stored);
    }
    for (uint32_t i = 0; ok && i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_STORE && p->values[op->v].space == SPACE_FRAGMENT && op->v != p->state)
            ok = plan_heads_summed(p->schedule, &p->shape, op->tile) == p->heads && p->values[op->v].by_head &&
                 find_sum(p, op->v);
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        ok = ok && (!p->values[i].summed || is_read_once(p, i));
    return ok ||
           refuse(
               p, 0, "leave member out",
               "heads work together on a sum of theirs, of which each has multiples of products of what they share by its "
               "own, and of its own by its state");
}

static bool check_heads(struct plan *p)
{
    if (p->heads == 1)
        return true;
    bool ok = !plan_is_state_alone(p) && !p->segment && !p->cluster && !p->carries;
    for (uint32_t i = 0; i < p->n_values; i++)
        ok = ok && !(p->values[i].by_head && plan_is_of_warp(&p->values[i])) && p->values[i].space != SPACE_ROWS;
    if (!ok)
        return refuse(
            p, 0, "leave member out",
            "heads work together without segments, clusters, carried vectors, sums of rows, and vectors made of them");
    return p->sums_heads ? find_sums_of_heads(p) : check_own_rows(p);
}

/* ---- outputs ---- */

/* Loaded matrices of the owner's, in whose places outputs can be put: what products have on the left before others, the last
 * one first. Returns their number. */
static uint32_t list_places(const struct plan *p, uint8_t places[PLAN_MAX_VALUES])
{
    tg_bits left = 0;
    uint32_t n = 0;
    for (uint32_t i = p->n_ops; i-- > 0;) {
        const struct op *op = &p->ops[i];
        const uint32_t sides[] = {plan_matrix_of(p, op->b), plan_matrix_of(p, op->a)};
        for (uint32_t k = 0; op->kind == OP_CONTRACT && k < 2; k++)
            if (plan_is_loaded(&p->values[sides[k]]) && plan_is_owned(p, &p->values[sides[k]]) &&
                !(left >> sides[k] & 1)) {
                left |= TG_BIT(sides[k]);
                places[n++] = (uint8_t)sides[k];
            }
    }
    for (uint32_t i = p->n_values; i-- > 0;)
        if (plan_is_loaded(&p->values[i]) && plan_is_owned(p, &p->values[i]) && !(left >> i & 1))
            places[n++] = (uint8_t)i;
    return n;
}

/* Where each of the outputs is put on its way to memory: a place that no other takes, or a buffer of its own. All are put there
 * behind the last read of what is loaded (order.c). */
static void find_places(struct plan *p)
{
    uint8_t places[PLAN_MAX_VALUES];
    const uint32_t n = list_places(p, places);
    bool taken[TG_MAX_TILES] = {false}; /* a tensor read at query and at key positions is one tile */
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        uint32_t k = 0;
        if (!plan_is_mapped_store(p, op))
            continue;
        while (k < n && taken[TG_OPERAND_TILE(p->values[places[k]].operand)])
            k++;
        p->values[op->v].place = k < n ? places[k] : op->v;
        if (k < n)
            taken[TG_OPERAND_TILE(p->values[places[k]].operand)] = true;
    }
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
            return refuse(
                p, p->algorithm->body[op->stmt].line, "let an earlier row write it",
                "it sums a matrix with more pairs of columns than there are threads, or something else over the positions");
        if (adds && !plan_is_gathered(a))
            return refuse(p, p->algorithm->body[op->stmt].line, "let an earlier row write it",
                          "a carried vector is not made of sums over the positions of its chunk");
        const bool shared = !p->segment && v->dims[0] != p->owner && plan_dim_size(p, p->owner) > p->block[p->owner];
        if (op->kind == OP_STORE && plan_is_carried(v) && shared && p->shape.pooled)
            return refuse(p, 0, "let a row of its own write it",
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
            return refuse(p, p->algorithm->body[op->stmt].line, "let a row of its own write it",
                          "it sums a tile of positions over its rows");
    }
    return true;
}

/* Of what is made in a chunk memory gets matrices of positions by the owner; where a cluster adds up its parts, one. Or the
 * state, of some chunks. */
static bool check_stores(const struct plan *p)
{
    bool in_chunk = false, has_output = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        in_chunk = op->kind == OP_NEST || (in_chunk && op->kind != OP_END);
        const struct value *v = &p->values[op->v];
        if (op->kind != OP_STORE || !in_chunk || v->n_dims < 2)
            continue;
        const bool to_caller =
            plan_memory_dtype(p, op->tile) == TG_F32 &&
            ((p->algorithm->tensors[op->tile].flags & TG_OUT) || tg_tile_kept(p->schedule, op->tile));
        const bool can_write = p->starts ? op->v == p->state : plan_is_position(v->dims[0]) && plan_is_owned(p, v);
        if ((has_output && p->adds) || to_caller || !can_write) {
            plan_refuse(
                p, "TG0518", p->row->line, "let another row write it",
                "kernel %s on warpgroups: its chunks write positions by dqk or dhv as its rows are, to the caller in the "
                "input type, in a cluster one, and cannot write %s",
                p->row->name, plan_tensor(p, v)->name);
            return false;
        }
        has_output = true;
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
            return refuse(p, p->algorithm->body[p->values[i].stmt].line, "take another schedule, or bf16",
                          "parts of a tile of positions may be too large for f16");
    return true;
}

/* Of a thread. Two warpgroups have all that there are. One has the state; beside it, in turn, the products of positions by
 * positions, or a tile of the output and a left operand; and what it makes of rows, sums
 * and maps of them. ptxas 13.0 takes at most 16 fewer and 6 more. */
static uint32_t registers_of(const struct plan *p)
{
    enum { ALL = 240, HALF = 128, ADDRESSES = 42, STARTS = 56, TILE = 32, OPERAND = 16, VECTOR = 5, THREADS = 128 };
    const struct value *state = &p->values[p->state];
    const uint32_t elements = state->extent[0] * state->extent[1] / THREADS,
                   depth = state->extent[state->dims[0] == p->owner ? 1 : 0];
    uint32_t products = 0, vectors = 0;
    if (p->groups > 1)
        return ALL;
    if (p->row->blocks_per_sm == 2)
        return HALF;
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
                p, "TG0510", s->line, "make a vector of it first, by a MAP of its own, and read that",
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
    find_heads(p);
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        v->space = space_of(p, i);
        if (v->space == SPACE_VECTOR && v->stmt >= 0)
            v->scope = p->algorithm->body[v->stmt].op == TG_STMT_CARRY ? SCOPE_GROUP : SCOPE_WARP;
        v->late = v->space == SPACE_PARTS && is_late(p, i);
        p->carries |= plan_is_carried(v);
        v->dtype =
            v->stmt >= 0 || v->space == SPACE_UNIFORM ? TG_F32 : plan_memory_dtype(p, TG_OPERAND_TILE(v->operand));
        if (v->space == SPACE_NONE) {
            plan_refuse(p, "TG0510", v->stmt < 0 ? 0 : p->algorithm->body[v->stmt].line, "let an earlier row write it",
                        "kernel %s on warpgroups cannot %s %s", p->row->name, v->stmt < 0 ? "load" : "compute",
                        plan_tensor(p, v)->name);
            return false;
        }
    }
    if (!check_sums_read(p))
        return false;
    find_uniforms(p);
    p->own_heads = has_own_heads(p);
    if (p->n_nests != 1)
        return refuse(p, 0, NULL, "its products are not those of one walk over the chunks");
    find_places(p);
    if (!check_heads(p) || !check_stores(p) || !check_carried(p) || !check_tile_sums(p) || !check_range(p) ||
        !plan_check_operands(p) || !plan_check_cluster(p) || !plan_check_transition(p))
        return false;
    p->rests = plan_can_rest(p);
    plan_find_factors(p);
    place_shared(p);
    p->registers = registers_of(p);
    if (p->shared_bytes <= p->target->shared_optin)
        return true;
    plan_refuse(p, "TG0531", p->row->line, "use smaller blocks or fewer stages",
                "kernel %s needs %u bytes of shared memory; at most %u", p->row->name, p->shared_bytes,
                p->target->shared_optin);
    return false;
}
