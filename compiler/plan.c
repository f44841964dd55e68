/* compiler/plan.c - the pipeline from schedule row to plan, and the small queries all passes share. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"
#include "compiler/plan_walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t dim_size(const tg_shape_class *shape, uint32_t dim)
{
    return dim == TG_DQK ? shape->dqk : dim == TG_DHV ? shape->dhv : 0;
}

int plan_find(const struct plan *p, tg_operand operand, int nest)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].operand == operand && (p->values[i].nest == -1 || p->values[i].nest == nest))
            return (int)i;
    return -1;
}

int plan_add_value(struct plan *p, tg_operand operand, int stmt, int nest)
{
    if (p->n_values == PLAN_MAX_VALUES) {
        plan_refuse(p, "TG0501", "split the kernel: let another row write some of its tiles",
                    "kernel %s uses more than %d tiles", p->row->name, PLAN_MAX_VALUES);
        return -1;
    }
    struct value *v = &p->values[p->n_values];
    *v = (struct value){.operand = operand, .stmt = (int8_t)stmt, .nest = (int8_t)nest, .shared_with = -1, .stages = 1};
    uint8_t dims[TG_MAX_AXES];
    const uint32_t n = tg_operand_dims(p->algorithm, operand, dims);
    for (uint32_t i = 0; i < n && v->n_dims < 3; i++) {
        const bool by_chunk =
            (p->held >> TG_CHUNK & 1) && (dims[i] == TG_CHUNK || dims[i] == TG_LQ || dims[i] == TG_LKV);
        const uint8_t dim = by_chunk ? TG_CHUNK : dims[i]; /* held chunks have one position */
        if ((dim == TG_CHUNK && p->thread_dim != TG_CHUNK && !by_chunk) || (by_chunk && plan_has_dim(v, TG_CHUNK)))
            continue;
        v->extent[v->n_dims] = p->block[dim];
        v->dims[v->n_dims++] = dim;
    }
    v->stored = (p->slice.stores >> TG_OPERAND_TILE(operand)) & 1 && stmt >= 0;
    return (int)p->n_values++;
}

bool plan_share_tile(struct plan *p, uint32_t v)
{
    struct value *second = &p->values[v];
    for (uint32_t i = 0; p->one_block && i < v && second->shared_with < 0; i++) {
        const struct value *first = &p->values[i];
        if (first->stmt < 0 && !first->direct && first->space == second->space && first->nest == second->nest &&
            first->dtype == second->dtype && TG_OPERAND_TILE(first->operand) == TG_OPERAND_TILE(second->operand))
            second->shared_with = (int8_t)i;
    }
    return second->shared_with >= 0;
}

struct op *plan_add_op(struct plan *p, enum op_kind kind, int stmt)
{
    struct op *op = &p->ops[p->n_ops < PLAN_MAX_OPS ? p->n_ops : PLAN_MAX_OPS];
    p->n_ops++;
    *op = (struct op){.kind = (uint8_t)kind, .stmt = (int8_t)stmt};
    return op;
}

void plan_insert_op(struct plan *p, uint32_t at, struct op op)
{
    if (p->n_ops < PLAN_MAX_OPS) {
        for (uint32_t i = p->n_ops; i > at; i--)
            p->ops[i] = p->ops[i - 1];
        p->ops[at] = op;
    }
    p->n_ops++;
}

const tg_tensor *plan_tensor(const struct plan *p, const struct value *v)
{
    return &p->algorithm->tensors[TG_OPERAND_TILE(v->operand)];
}

bool plan_has_dim(const struct value *v, uint32_t dim)
{
    for (uint32_t i = 0; i < v->n_dims; i++)
        if (v->dims[i] == dim)
            return true;
    return false;
}

/* Does the expression make zeros of those of its tiles? */
static bool is_lower_map(const tg_algorithm *algorithm, const tg_stmt *map)
{
    bool zero[TG_MAX_EXPR + 2] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < tg_expr_length(map); i++) {
        const tg_x *x = &map->expr[i];
        n -= (uint32_t)tg_expr_arity(x->op);
        const bool a = zero[n], b = zero[n + 1];
        zero[n++] = x->op == TG_X_TILE ? plan_is_lower(algorithm, TG_OPERAND_TILE(x->operand))
                    : x->op == TG_X_CAUSAL || x->op == TG_X_BEFORE ? true
                    : x->op == TG_X_MUL                            ? a || b
                    : x->op == TG_X_ADD || x->op == TG_X_SUB || x->op == TG_X_MAX || x->op == TG_X_MIN
                        ? a && b
                        : (x->op == TG_X_DIV || x->op == TG_X_NEG || x->op == TG_X_ABS || x->op == TG_X_STEP) && a;
    }
    return n == 1 && zero[0];
}

bool plan_is_lower(const tg_algorithm *algorithm, uint32_t tile)
{
    const uint32_t both = 1u << TG_LQ | 1u << TG_LKV;
    const tg_operand at_query = tg_tile_is_square(algorithm, tile) ? TG_AT_Q(tile) : (tg_operand)tile;
    const int i = tg_tile_stmt(algorithm, tile);
    if (i < 0 || (tg_operand_mask(algorithm, at_query) & both) != both)
        return false;
    const tg_stmt *s = &algorithm->body[i];
    return s->op == TG_STMT_SOLVE || tg_stmt_decays(s) || (s->op == TG_STMT_MAP && is_lower_map(algorithm, s));
}

bool plan_is_masked(const struct plan *p, const struct op *op)
{
    const struct value *a = &p->values[op->a], *b = &p->values[op->b];
    return op->kind == OP_CONTRACT && a->space == SPACE_FRAGMENT && a->stmt >= 0 && plan_is_loaded(b) &&
           plan_is_lower(p->algorithm, TG_OPERAND_TILE(a->operand));
}

int plan_masked_operand(const struct plan *p, const struct op *op)
{
    if (op->kind != OP_CONTRACT || !p->slices->has_one_chunk)
        return -1;
    if (plan_is_lower(p->algorithm, TG_OPERAND_TILE(p->values[op->a].operand)))
        return op->b;
    return plan_is_lower(p->algorithm, TG_OPERAND_TILE(p->values[op->b].operand)) ? op->a : -1;
}

uint32_t plan_marked_columns(const struct plan *p, const struct op *op)
{
    if (op->kind != OP_CONTRACT)
        return 0;
    const int x = p->slices->has_one_chunk ? plan_masked_operand(p, op) : plan_is_masked(p, op) ? op->b : -1;
    return x < 0 || p->values[x].space == SPACE_FRAGMENT ? 0 : p->values[x].extent[1];
}

uint32_t plan_dim_size(const struct plan *p, uint32_t dim)
{
    return dim_size(&p->shape, dim);
}

uint32_t plan_transition_of(const struct plan *p)
{
    return p->transition ? p->algorithm->tensors[p->transition].axes[1] : TG_AXIS_NONE;
}

uint32_t plan_transition_along(const struct plan *p)
{
    const int s = p->transition ? tg_tile_stmt(p->algorithm, p->transition) : -1;
    return s < 0 ? TG_AXIS_NONE : p->algorithm->tensors[TG_OPERAND_TILE(p->algorithm->body[s].out)].axes[2];
}

uint32_t plan_transition_first(const struct plan *p)
{
    const uint32_t along = plan_transition_along(p);
    return round_up(plan_dim_size(p, along), p->block[along]);
}

uint32_t plan_blocks(const struct plan *p, uint32_t dim)
{
    const uint32_t size = plan_dim_size(p, dim);
    if (!size)
        return 0;
    const bool goes_on = p->makes_segments && p->transition && dim == plan_transition_along(p);
    const uint32_t beside = goes_on ? plan_dim_size(p, plan_transition_of(p)) : 0;
    return (size + p->block[dim] - 1) / p->block[dim] + (beside + p->block[dim] - 1) / p->block[dim];
}

void plan_refuse(const struct plan *p, const char *code, const char *hint, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tg_report(p->sink, TG_ERROR, code, p->row->line ? p->schedule->file : NULL, p->row->line, hint,
              "schedule %s on %s: %s", p->schedule->name, p->target->arch, text);
}

/* The dqk or dhv of what a row writes for every token; 0: nothing. */
static uint32_t written_columns(const tg_algorithm *algorithm, const tg_kernel_row *row)
{
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && row->outputs[i]; i++) {
        const uint8_t *axes = algorithm->tensors[row->outputs[i]].axes;
        if (axes[0] == TG_T && plan_is_width(axes[1]))
            return axes[1];
    }
    return 0;
}

/* What the groups of warps of a row on warpgroups have rows of, as far as the row alone says: what is written for every token,
 * else the only parallel one of dqk and dhv; 0: neither. */
static uint32_t owner_of(const tg_algorithm *algorithm, const tg_kernel_row *row)
{
    const uint32_t written = written_columns(algorithm, row);
    const bool by_dqk = row->row[TG_DQK].role == TG_ROLE_P, by_dhv = row->row[TG_DHV].role == TG_ROLE_P;
    return written ? written : by_dqk == by_dhv ? 0 : by_dqk ? TG_DQK : TG_DHV;
}

static bool has_heads_together(const tg_kernel_row *row)
{
    return row->row[TG_MEMBER].role == TG_ROLE_P && row->row[TG_MEMBER].block > 1;
}

bool plan_row_shares_columns(const tg_algorithm *algorithm, const tg_kernel_row *row)
{
    const uint32_t owner = owner_of(algorithm, row);
    return row->mma == TG_MMA_WGMMA && row->warps == 8 && owner && row->row[owner].block == WALK_TILE &&
           !has_heads_together(row);
}

/* Warpgroups that have a block of the dimension between them. */
static uint32_t groups_along(const tg_algorithm *algorithm, const tg_kernel_row *row, uint32_t dim)
{
    const bool is_owner = dim == owner_of(algorithm, row);
    if (plan_row_shares_columns(algorithm, row))
        return plan_is_width(dim) && !is_owner ? 2 : 1;
    return is_owner && !has_heads_together(row) && row->warps >= 4 ? row->warps / 4u : 1;
}

/* Elements of a block of a dimension: the schedule's, or the whole of dqk or dhv. Never more than the
 * dimension, and in units of the matrix instruction. */
/* Warps of a walk that share the columns of a state, since there are more of them than rows of 16 (columns.c). */
static uint32_t column_warps(const tg_kernel_row *row)
{
    const tg_axis_role *rows = &row->row[TG_DHV];
    const bool can_share = row->row[TG_CHUNK].role == TG_ROLE_W && row->mma != TG_MMA_WGMMA &&
                           rows->role == TG_ROLE_P && rows->block > 0 && rows->block % 16 == 0;
    return can_share && rows->block < 16u * row->warps ? row->warps / (rows->block / 16u) : 1;
}

static uint32_t block_of(const tg_algorithm *algorithm, const struct tg_slices *slices, const tg_kernel_row *row,
                         const tg_shape_class *shape, uint32_t dim)
{
    const tg_axis_role *role = &row->row[dim];
    if (dim == TG_DQK && tg_row_sharers(row))
        return round_up(shape->dqk, SHARED_OUT_GROUP * tg_row_sharers(row));
    if (row->mma == TG_MMA_NONE)
        return role->block ? role->block : 1;
    /* a tile of 32 x 32 can be shared by 4 warps, but not where all rows of one belong to a warp (orient.c); what is
     * outside of the tensor counts as zero */
    const bool whole = row->mma == TG_MMA_SYNC && slices->has_one_chunk,
               of_states = row->row[TG_LQ].role == TG_ROLE_NONE && row->row[TG_LKV].role == TG_ROLE_NONE;
    const uint32_t sharers = dim == TG_DQK && slices->has_one_chunk ? column_warps(row) : 1;
    const uint32_t parallel = whole ? 16u * row->warps : 32u, other = sharers > 1          ? 16 * sharers
                                                                      : whole || of_states ? 32
                                                                                           : 16;
    const uint32_t unit = row->mma == TG_MMA_WGMMA  ? WALK_TILE * groups_along(algorithm, row, dim)
                          : role->role == TG_ROLE_P ? parallel
                                                    : other;
    const uint32_t size = round_up(dim_size(shape, dim), unit);
    const uint32_t block = size && (role->block == 0 || role->block > size) ? size : role->block;
    return role->role == TG_ROLE_NONE ? size : block;
}

/* Dimensions that a row sums over to make the tile, each thread block its own block of them. */
static uint32_t parallel_sums(const tg_schedule *schedule, const struct tg_slices *slices, uint32_t row, uint32_t tile)
{
    uint32_t parallel = 0;
    for (uint32_t d = TG_DQK; d <= TG_DHV; d++)
        if (schedule->rows[row].row[d].role == TG_ROLE_P)
            parallel |= 1u << d;
    if (parallel)
        parallel &= ~tg_operand_mask(schedule->algorithm, (tg_operand)tile);
    return parallel && (slices->good >> row & 1) ? parallel & tg_row_sums(schedule, &slices->rows[row], tile) : 0;
}

/* Whether the row sums over a dimension is asked last: that goes through all that it computes. */
static uint32_t parts_of(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                         uint32_t row, uint32_t tile)
{
    const tg_kernel_row *r = &schedule->rows[row];
    uint32_t parts = 1;
    for (uint32_t d = TG_DQK; d <= TG_DHV; d++) {
        if (r->row[d].role != TG_ROLE_P)
            continue;
        const uint32_t size = dim_size(shape, d), block = block_of(schedule->algorithm, slices, r, shape, d);
        if (size > block && !tg_is_cluster_sum(schedule->algorithm, r, tile, d) &&
            parallel_sums(schedule, slices, row, tile) >> d & 1)
            parts *= (size + block - 1) / block;
    }
    return parts;
}

uint32_t plan_parts(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                    uint32_t tile)
{
    const int row = tg_tile_row(schedule, tile);
    return row < 0 ? 1 : parts_of(schedule, slices, shape, (uint32_t)row, tile);
}

uint32_t plan_split_dims(const struct plan *p, uint32_t tile)
{
    const uint32_t summed = parallel_sums(p->schedule, p->slices, (uint32_t)(p->row - p->schedule->rows), tile);
    uint32_t split = 0;
    for (uint32_t d = 1; d < TG_N_DIMS; d++)
        if ((summed >> d & 1) && plan_blocks(p, d) > 1)
            split |= 1u << d;
    return split;
}

uint32_t plan_owner_of_state(const struct plan *p)
{
    const tg_schedule *schedule = p->schedule;
    const uint32_t final_ = TG_OPERAND_TILE(p->algorithm->body[p->values[p->state].stmt].final_);
    if (p->row->row[TG_DHV].role != TG_ROLE_P || p->row->row[TG_DQK].role != TG_ROLE_P)
        return p->row->row[TG_DHV].role == TG_ROLE_P ? TG_DHV : TG_DQK;
    for (uint32_t r = 0; final_ && r < schedule->n_rows; r++) {
        const uint32_t owner = written_columns(schedule->algorithm, &schedule->rows[r]);
        if (owner && (p->slices->good >> r & 1) && (p->slices->rows[r].stores >> final_ & 1))
            return owner;
    }
    return TG_DQK;
}

uint32_t plan_final_tile(const struct plan *p)
{
    const uint32_t tile = TG_OPERAND_TILE(p->algorithm->body[p->values[p->state].stmt].final_);
    return p->slice.stores >> tile & 1 ? tile : 0;
}

/* A walk on warpgroups that writes final states, and nothing else? */
static void find_finals(struct plan *p)
{
    tg_bits finals = 0, states = 0, read = 0;
    for (uint32_t i = 0; i < p->algorithm->n_body; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        tg_operand reads[TG_MAX_READS];
        if (s->op == TG_STMT_CARRY) {
            finals |= TG_BIT(TG_OPERAND_TILE(s->final_));
            states |= TG_BIT(TG_OPERAND_TILE(s->out));
        }
        for (uint32_t k = 0, n = p->slice.stmts >> i & 1 ? tg_stmt_reads(s, reads) : 0; k < n; k++)
            read |= TG_BIT(TG_OPERAND_TILE(reads[k]));
    }
    p->finals_only = p->row->mma == TG_MMA_WGMMA && p->slice.stores && !(p->slice.stores & ~finals);
    p->reads_state = p->finals_only && (states & read & ~TG_BIT(0));
}

uint32_t plan_together(const struct plan *p, uint32_t tile)
{
    const uint32_t last = plan_last_axis(p, tile);
    const bool is_plain = plan_memory_dtype(p, tile) != TG_F32X2 && p->parts[tile] == 1;
    if (p->sharers && last == plan_shared_dim(p) && is_plain)
        return SHARED_OUT_GROUP;
    return p->each > 1 && last == p->thread_dim && is_plain ? p->each : 1;
}

uint32_t plan_held_of(const struct plan *p, uint32_t dim)
{
    if (p->sharers && dim == plan_shared_dim(p))
        return p->block[dim] / p->sharers;
    return dim == p->thread_dim ? p->each : p->block[dim];
}

bool plan_is_shifted(const struct plan *p, uint32_t tile)
{
    const int s = p->slices->stmt[tile];
    return s >= 0 && p->algorithm->body[s].op == TG_STMT_SHIFT && (p->slice.stmts >> s & 1);
}

bool plan_sums_shared(const struct plan *p, const struct op *op)
{
    const uint32_t dim = plan_shared_dim(p);
    return p->sharers && op->kind == OP_DOT && !plan_has_dim(&p->values[op->v], dim) &&
           (plan_has_dim(&p->values[op->a], dim) || plan_has_dim(&p->values[op->b], dim));
}

uint32_t plan_held_count(const struct plan *p, const struct value *v)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < v->n_dims; i++)
        n *= p->held >> v->dims[i] & 1 ? plan_held_of(p, v->dims[i]) : 1;
    return n;
}

/* Threads that share out dqk or dhv and add up what they have of it have all of it: as many more of them as that takes. */
static void take_whole(struct plan *p)
{
    const uint32_t d = p->thread_dim, size = d ? plan_dim_size(p, d) : 0;
    if (!d || plan_is_position(d) || d == TG_CHUNK || p->row->row[d].role != TG_ROLE_L || size <= p->block[d])
        return;
    const uint32_t times = (size + p->block[d] - 1) / p->block[d];
    p->threads *= times;
    p->block[d] *= times;
}

/* A thread kernel: which dimension the threads share out, and which positions or chunks they hold whole. */
static void find_threads(struct plan *p)
{
    for (uint32_t d = 1; d < TG_N_DIMS && !p->thread_dim; d++)
        if (d != TG_SEG && p->row->row[d].role != TG_ROLE_NONE && tg_row_each(p->row, d))
            p->thread_dim = d;
    p->each = p->thread_dim ? tg_row_each(p->row, p->thread_dim) : 0;
    take_whole(p);
    p->held = p->each > 1 ? 1u << p->thread_dim : 0;
    for (uint32_t d = TG_LQ; d <= TG_LKV; d++) {
        const uint32_t most = p->schedule->max_tokens;
        if (d != p->thread_dim && p->row->row[d].role == TG_ROLE_L &&
            (p->block[d] > 1 || (most && p->block[d] >= most)))
            p->held |= 1u << d;
    }
    if (p->schedule->max_tokens && p->row->row[TG_CHUNK].role == TG_ROLE_W && p->block[TG_CHUNK] > 1 &&
        p->thread_dim != TG_CHUNK)
        p->held |= 1u << TG_CHUNK;
    p->by_token = tg_row_walks_tokens(p->schedule, p->row);
    p->sharers = tg_row_sharers(p->row);
    p->held |= p->sharers ? 1u << plan_shared_dim(p) : 0;
}

/* The inverse of a chunk of one position is 1: what makes the rest of what it inverts is not needed. */
static void drop_inverted(struct plan *p)
{
    tg_bits wanted = p->slice.stores;
    for (uint32_t i = p->algorithm->n_body; i-- > 0;) {
        const tg_stmt *s = &p->algorithm->body[i];
        tg_operand reads[TG_MAX_READS];
        const bool is_needed = tg_stmt_has_final(s) || (wanted >> TG_OPERAND_TILE(s->out) & 1);
        if (!is_needed)
            p->slice.stmts &= ~TG_BIT(i);
        if (!(p->slice.stmts >> i & 1) || s->op == TG_STMT_SOLVE)
            continue;
        for (uint32_t k = 0, n = tg_stmt_reads(s, reads); k < n; k++)
            wanted |= TG_BIT(TG_OPERAND_TILE(reads[k]));
    }
}

static uint32_t heads_of(const tg_kernel_row *row, const tg_shape_class *shape)
{
    const tg_axis_role *member = &row->row[TG_MEMBER];
    if (member->role == TG_ROLE_P)
        return member->block ? member->block : 1;
    return member->role == TG_ROLE_L ? group_of(shape) : 1;
}

/* A thread kernel that reads and writes nothing but what the heads of a group share is run once for all of them. */
static bool is_of_group(const struct plan *p)
{
    bool is = p->row->mma == TG_MMA_NONE;
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++)
        if ((p->slice.loads | p->slice.stores) >> t & 1)
            is &= !(tg_tile_implicit(p->algorithm, t) >> TG_MEMBER & 1);
    return is;
}

/* Does a thread kernel load rows of positions that sequences share, or heads of a group? */
static bool loads_same_rows(const struct plan *p)
{
    bool loads = false;
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++) {
        const tg_tensor *tensor = &p->algorithm->tensors[t];
        const bool shared =
            tensor->flags & TG_NO_BATCH || (tensor->flags & TG_SHARED && group_of(&p->shape) > p->heads);
        loads |= (p->slice.loads >> t & 1) && tensor->axes[0] == TG_T && tensor->axes[1] && shared;
    }
    return loads && p->row->mma == TG_MMA_NONE && p->row->row[TG_CHUNK].role == TG_ROLE_P && !p->shape.packed &&
           p->row->row[TG_BATCH].role == TG_ROLE_NONE && p->row->row[TG_MEMBER].role == TG_ROLE_NONE;
}

/* Of the states of segments that the row makes or composes. */
static void find_transition(struct plan *p)
{
    for (uint32_t i = 0; (p->makes_segments || p->composes) && i < TG_MAX_OUTPUTS && p->row->outputs[i]; i++) {
        const int s = tg_tile_stmt(p->algorithm, p->row->outputs[i]);
        const tg_stmt *stmt = s < 0 ? NULL : &p->algorithm->body[s];
        const uint32_t own = stmt ? TG_OPERAND_TILE(stmt->transition) : 0,
                       other = stmt ? tg_transposed_of(p->schedule, stmt) : 0;
        if (own && tg_tile_row(p->schedule, own) >= 0)
            p->transition = own;
        else if (other) {
            p->transposed = true;
            p->transition = p->composes ? other : 0;
        }
    }
}

/* Do all statements that read the tile sum it over heads, and are there any? */
static bool is_for_sums(const tg_algorithm *algorithm, uint32_t tile)
{
    bool any = false;
    for (uint32_t i = 0; i < algorithm->n_body; i++) {
        tg_operand reads[TG_MAX_READS];
        const tg_stmt *s = &algorithm->body[i];
        for (uint32_t k = 0, n = tg_stmt_reads(s, reads); k < n; k++) {
            if (TG_OPERAND_TILE(reads[k]) != tile)
                continue;
            if (s->op != TG_STMT_TOTAL || tg_stmt_along(algorithm, s) != 1u << TG_MEMBER)
                return false;
            any = true;
        }
    }
    return any && !(algorithm->tensors[tile].flags & TG_OUT);
}

static uint32_t heads_summed_by(const tg_kernel_row *row, const tg_algorithm *algorithm, const tg_shape_class *shape,
                                uint32_t tile)
{
    const uint32_t heads = row->mma == TG_MMA_WGMMA ? heads_of(row, shape) : 1;
    return heads > 1 && is_for_sums(algorithm, tile) ? heads : 1;
}

/* Does the row write of each head, or of some together, what nothing but a sum over heads reads? */
static bool is_for_heads(const tg_kernel_row *row, const tg_algorithm *algorithm, const tg_shape_class *shape,
                         uint32_t tile)
{
    return row->mma != TG_MMA_NONE && group_of(shape) > 1 && is_for_sums(algorithm, tile);
}

bool plan_is_for_heads(const tg_schedule *schedule, const tg_shape_class *shape, uint32_t tile)
{
    const int row = tg_tile_row(schedule, tile);
    return row >= 0 && is_for_heads(&schedule->rows[row], schedule->algorithm, shape, tile);
}

uint32_t plan_heads_summed(const tg_schedule *schedule, const tg_shape_class *shape, uint32_t tile)
{
    const int row = tg_tile_row(schedule, tile);
    return row < 0 ? 1 : heads_summed_by(&schedule->rows[row], schedule->algorithm, shape, tile);
}

/* Of all tiles at once, of which kernels and the model ask again and again. The first row that lists a tile counts. */
static void find_parts(struct plan *p)
{
    for (uint32_t tile = 0; tile < TG_MAX_TILES; tile++)
        p->parts[tile] = p->heads_summed[tile] = 1;
    for (uint32_t r = p->schedule->n_rows; r-- > 0;) {
        const tg_kernel_row *row = &p->schedule->rows[r];
        for (uint32_t i = 0; i < TG_MAX_OUTPUTS && row->outputs[i]; i++) {
            const uint32_t tile = row->outputs[i];
            p->parts[tile] = (uint16_t)parts_of(p->schedule, p->slices, &p->shape, r, tile);
            p->heads_summed[tile] = (uint16_t)heads_summed_by(row, p->algorithm, &p->shape, tile);
            p->for_heads &= ~TG_BIT(tile);
            p->for_heads |= is_for_heads(row, p->algorithm, &p->shape, tile) ? TG_BIT(tile) : 0;
        }
    }
}

/* A row that sums over heads goes from one sum that is in memory to the next. */
static bool find_member_block(struct plan *p)
{
    uint32_t block = 0;
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++) {
        if (!(p->slice.loads >> t & 1) || !(tg_tile_implicit(p->algorithm, t) >> TG_MEMBER & 1))
            continue;
        const uint32_t heads = p->heads_summed[t];
        if ((block && heads != block) || (heads > 1 && p->row->mma != TG_MMA_NONE)) {
            plan_refuse(p, "TG0517", "let a row of its own, without a matrix instruction, sum over heads",
                        "kernel %s reads %s, of which memory has sums of %u heads, beside what it has otherwise",
                        p->row->name, p->algorithm->tensors[t].name, heads);
            return false;
        }
        block = heads;
    }
    if (p->row->row[TG_MEMBER].role == TG_ROLE_L && block > 1)
        p->block[TG_MEMBER] = block;
    return true;
}

static void plan_name(struct plan *p)
{
    snprintf(p->name, sizeof p->name, "tegula_%s_%s", p->algorithm->name, p->row->name);
    for (char *c = p->name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
}

static bool verify(const struct plan *p, const char *pass)
{
    return p->is_draft || plan_verify(p, pass);
}

static bool check_what_calls_give(struct plan *p)
{
    return plan_check_states(p) && plan_check_args(p);
}

static bool check_walk(struct plan *p)
{
    return plan_check_relay(p) && check_what_calls_give(p);
}

/* Of both ways of a chunk. */
static bool verify_order(struct plan *p)
{
    if (p->is_draft)
        return true;
    struct plan *decayed = p->ways.any && !p->decayed ? malloc(sizeof *decayed) : NULL;
    const bool ok = plan_verify_order(p) && (!decayed || plan_build_decayed(p, decayed));
    free(decayed);
    return ok;
}

/* What loops without products load, some steps ahead. */
static bool load_ahead(struct plan *p)
{
    return !p->thread_dim || (pass_rounds(p) && verify(p, "rounds"));
}

struct pass {
    const char *name; /* plan_verify follows; NULL: a check, or nothing that it could see */
    bool (*run)(struct plan *p);
};

static const struct pass composing[] = {
    {"compose", pass_compose}, /* all of it: one product and a sum for each segment */
    {NULL, NULL},
};
static const struct pass on_warpgroups[] = {
    {"nest", pass_nest},  /* loops, from roles and data dependence */
    {"walk", pass_walk},  /* tiles to warpgroups and shared memory */
    {NULL, check_walk},   /* what calls give it, and what it passes on */
    {NULL, pass_order},   /* what each role executes, waits included */
    {NULL, verify_order}, /* every use has its definition, barrier and fence */
    {NULL, NULL},
};
static const struct pass on_warps[] = {
    {"nest", pass_nest},
    {"orient", pass_orient},       /* which way round computed tiles lie in registers */
    {"place", pass_place},         /* tiles to registers and shared memory */
    {NULL, check_what_calls_give}, /* states, and how many arguments */
    {"pipeline", pass_pipeline},   /* rings of asynchronous copies */
    {NULL, plan_keep_states},      /* states for slots are stored in the step that they are of */
    {"budget", pass_budget},       /* does it fit */
    {NULL, load_ahead},
    {NULL, NULL},
};

static bool run_passes(struct plan *p)
{
    const struct pass *pass = p->composes ? composing : p->row->mma == TG_MMA_WGMMA ? on_warpgroups : on_warps;
    for (; pass->run; pass++)
        if (!pass->run(p) || (pass->name && !verify(p, pass->name)))
            return false;
    return true;
}

static bool lists_states_alone(const struct plan *p)
{
    bool alone = true;
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && p->row->outputs[i]; i++) {
        const int stmt = tg_tile_stmt(p->algorithm, p->row->outputs[i]);
        alone &= stmt >= 0 && p->algorithm->body[stmt].op == TG_STMT_CARRY;
    }
    return alone;
}

enum kind_of_plan { DRAFT, WHOLE, DECAYED };

static bool build(struct plan *p, const tg_schedule *schedule, const struct tg_slices *slices, uint32_t row,
                  const tg_target *target, const tg_shape_class *shape, enum kind_of_plan kind, const tg_sink *sink)
{
    memset(p, 0, sizeof *p);
    p->is_draft = kind == DRAFT;
    p->decayed = kind == DECAYED;
    p->schedule = schedule;
    p->slices = slices;
    p->algorithm = schedule->algorithm;
    p->row = &schedule->rows[row];
    p->target = target;
    p->shape = *shape;
    p->sink = sink;
    p->threads = 32u * p->row->warps;
    plan_name(p);
    find_parts(p);
    for (uint32_t d = 1; d < TG_N_DIMS; d++)
        p->block[d] = block_of(p->algorithm, slices, p->row, shape, d);
    p->relays = tg_row_relays(p->row);
    p->segment = tg_row_has_segments(p->row) || p->relays ? p->block[TG_SEG] : 0;
    p->makes_segments = tg_row_makes_segments(schedule, row);
    plan_find_cluster(p);
    p->heads = heads_of(p->row, shape);
    p->starts = tg_row_starts_segments(schedule, row) ? p->block[TG_SEG] : 0;
    p->starts_alone = p->starts && lists_states_alone(p);
    p->composes = tg_row_composes_segments(schedule, row) ? p->block[TG_SEG] : 0;
    find_transition(p);
    if (p->row->mma == TG_MMA_NONE)
        find_threads(p);
    if (!(slices->good >> row & 1))
        return false;
    p->slice = slices->rows[row];
    if (is_of_group(p))
        p->heads = group_of(shape);
    p->sequences_first = loads_same_rows(p);
    find_finals(p);
    if (!find_member_block(p))
        return false;
    if (!plan_check_pieces(p))
        return false;
    if (p->by_token)
        drop_inverted(p);
    if ((p->segment || p->starts) && p->row->mma != TG_MMA_WGMMA) {
        plan_refuse(p, "TG0521", "use TG_MMA_WGMMA, or leave seg out",
                    "kernel %s has segments, but does not run on warpgroups", p->row->name);
        return false;
    }
    return run_passes(p);
}

bool plan_draft(struct plan *p, const tg_schedule *schedule, const struct tg_slices *slices, uint32_t row,
                const tg_target *target, const tg_shape_class *shape, const tg_sink *sink)
{
    return build(p, schedule, slices, row, target, shape, DRAFT, sink);
}

bool plan_build(struct plan *p, const tg_schedule *schedule, const struct tg_slices *slices, uint32_t row,
                const tg_target *target, const tg_shape_class *shape, const tg_sink *sink)
{
    return build(p, schedule, slices, row, target, shape, WHOLE, sink);
}

bool plan_build_decayed(const struct plan *p, struct plan *decayed)
{
    const uint32_t row = (uint32_t)(p->row - p->schedule->rows);
    return build(decayed, p->schedule, p->slices, row, p->target, &p->shape, DECAYED, p->sink);
}
