/* dsl/slice.c - backward slices of a schedule's rows, see slice.h. */
#include "dsl/slice.h"

#include <string.h>

const tg_tensor *tg_tile_tensor(const tg_algorithm *algorithm, uint32_t tile)
{
    if (!algorithm->tensors || tile == 0 || tile >= algorithm->n_tensors || tile >= TG_MAX_TILES)
        return NULL;
    return &algorithm->tensors[tile];
}

bool tg_tensor_is_of_sequence(const tg_tensor *tensor)
{
    return !(tensor->flags & TG_NO_BATCH) && !memchr(tensor->axes, TG_T, TG_MAX_AXES) &&
           !memchr(tensor->axes, TG_CHUNK, TG_MAX_AXES);
}

static uint32_t body_count(const tg_algorithm *algorithm)
{
    if (!algorithm->body || algorithm->n_body > TG_MAX_BODY)
        return 0;
    return algorithm->n_body;
}

bool tg_tile_has_t(const tg_algorithm *algorithm, uint32_t tile)
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, tile);
    for (uint32_t i = 0; tensor && i < TG_MAX_AXES; i++)
        if (tensor->axes[i] == TG_T)
            return true;
    return false;
}

bool tg_tile_is_square(const tg_algorithm *algorithm, uint32_t tile)
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, tile);
    return tensor && tensor->axes[0] == TG_T && tensor->axes[1] == TG_LKV;
}

bool tg_has_one_chunk(const tg_algorithm *algorithm)
{
    for (uint32_t s = 0; s < body_count(algorithm); s++)
        if (algorithm->body[s].op == TG_STMT_SOLVE)
            return true;
    for (uint32_t tile = 1; tile < algorithm->n_tensors && tile < TG_MAX_TILES; tile++)
        if (tg_tile_is_square(algorithm, tile))
            return true;
    return false;
}

uint32_t tg_operand_dims(const tg_algorithm *algorithm, tg_operand operand, uint8_t dims[TG_MAX_AXES])
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, TG_OPERAND_TILE(operand));
    const uint8_t at = (uint8_t)TG_OPERAND_AT(operand);
    uint32_t count = 0;
    for (uint32_t i = 0; tensor && i < TG_MAX_AXES; i++) {
        const uint8_t axis = tensor->axes[i];
        if (axis == TG_T && (at == TG_LQ || at == TG_LKV))
            dims[count++] = at;
        else if (axis != TG_AXIS_NONE)
            dims[count++] = axis;
    }
    return count;
}

uint32_t tg_operand_mask(const tg_algorithm *algorithm, tg_operand operand)
{
    uint8_t dims[TG_MAX_AXES];
    const uint32_t count = tg_operand_dims(algorithm, operand, dims);
    uint32_t mask = 0;
    for (uint32_t i = 0; i < count; i++)
        if (dims[i] < TG_N_DIMS)
            mask |= 1u << dims[i];
    if (mask & (1u << TG_LQ | 1u << TG_LKV | 1u << TG_T))
        mask |= 1u << TG_CHUNK;
    return mask;
}

tg_operand tg_operand_swap(tg_operand operand)
{
    switch (TG_OPERAND_AT(operand)) {
    case TG_LQ:
        return TG_AT_KV(TG_OPERAND_TILE(operand));
    case TG_LKV:
        return TG_AT_Q(TG_OPERAND_TILE(operand));
    default:
        return operand;
    }
}

int tg_tile_stmt(const tg_algorithm *algorithm, uint32_t tile)
{
    const uint32_t n_body = body_count(algorithm);
    for (uint32_t s = 0; tile != 0 && s < n_body; s++) {
        const tg_stmt *stmt = &algorithm->body[s];
        if (TG_OPERAND_TILE(stmt->out) == tile)
            return (int)s;
        if (tg_stmt_has_final(stmt) &&
            (TG_OPERAND_TILE(stmt->final_) == tile || TG_OPERAND_TILE(stmt->transition) == tile ||
             TG_OPERAND_TILE(stmt->behind) == tile))
            return (int)s;
    }
    return -1;
}

bool tg_tile_is_transition(const tg_algorithm *algorithm, uint32_t tile)
{
    const int s = tg_tile_stmt(algorithm, tile);
    return s >= 0 && algorithm->body[s].op == TG_STMT_CARRY && TG_OPERAND_TILE(algorithm->body[s].transition) == tile;
}

bool tg_tile_is_steady(const tg_algorithm *algorithm, uint32_t tile)
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, tile);
    return tensor && tensor->flags & TG_STEADY;
}

bool tg_tile_is_behind(const tg_algorithm *algorithm, uint32_t tile)
{
    const int s = tg_tile_stmt(algorithm, tile);
    return s >= 0 && algorithm->body[s].op == TG_STMT_CARRY && TG_OPERAND_TILE(algorithm->body[s].behind) == tile;
}

bool tg_tile_sums_behind(const tg_algorithm *algorithm, uint32_t tile)
{
    const uint32_t widths = 1u << TG_DQK | 1u << TG_DHV;
    const int s = tg_tile_stmt(algorithm, tile);
    const tg_stmt *stmt = s < 0 ? NULL : &algorithm->body[s];
    if (!stmt || stmt->op != TG_STMT_CONTRACT || stmt->decay || stmt->init ||
        !tg_tile_is_behind(algorithm, TG_OPERAND_TILE(stmt->a)))
        return false;
    const tg_tensor *a = tg_tile_tensor(algorithm, TG_OPERAND_TILE(stmt->a)),
                    *b = tg_tile_tensor(algorithm, TG_OPERAND_TILE(stmt->b));
    return b && memcmp(a->axes, b->axes, sizeof a->axes) == 0 &&
           (tg_operand_mask(algorithm, stmt->a) & widths) == widths &&
           !(tg_operand_mask(algorithm, stmt->out) & widths);
}

bool tg_tile_is_of_ends(const tg_algorithm *algorithm, uint32_t tile)
{
    return tg_tile_is_behind(algorithm, tile) || tg_tile_sums_behind(algorithm, tile);
}

uint32_t tg_expr_length(const tg_stmt *stmt)
{
    uint32_t length = 0;
    while (length < TG_MAX_EXPR && stmt->expr[length].op != TG_X_END)
        length++;
    return length;
}

int tg_expr_arity(uint8_t op)
{
    switch (op) {
    case TG_X_TILE:
    case TG_X_NUMBER:
    case TG_X_SCALAR:
    case TG_X_SIZE:
        return 0;
    case TG_X_NEG:
    case TG_X_ABS:
    case TG_X_EXP2:
    case TG_X_LOG2:
    case TG_X_LOGSIG2:
    case TG_X_SIGMOID:
    case TG_X_SOFTPLUS:
    case TG_X_STEP:
    case TG_X_CAUSAL:
    case TG_X_BEFORE:
        return 1;
    case TG_X_ADD:
    case TG_X_SUB:
    case TG_X_MUL:
    case TG_X_DIV:
    case TG_X_MAX:
    case TG_X_MIN:
        return 2;
    default:
        return -1;
    }
}

uint32_t tg_stmt_reads(const tg_stmt *stmt, tg_operand reads[TG_MAX_READS])
{
    uint32_t count = 0;
    if (stmt->op == TG_STMT_MAP) {
        const uint32_t length = tg_expr_length(stmt);
        for (uint32_t i = 0; i < length; i++)
            if (stmt->expr[i].op == TG_X_TILE)
                reads[count++] = stmt->expr[i].operand;
        return count;
    }
    const tg_operand fields[] = {stmt->a, stmt->b, stmt->init, stmt->decay, stmt->since};
    for (uint32_t i = 0; i < TG_COUNT(fields); i++)
        if (fields[i])
            reads[count++] = fields[i];
    return count;
}

uint32_t tg_stmt_positions(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    tg_operand reads[TG_MAX_READS];
    const uint32_t count = tg_stmt_reads(stmt, reads);
    uint32_t mask = tg_operand_mask(algorithm, stmt->out);
    for (uint32_t i = 0; i < count; i++)
        mask |= tg_operand_mask(algorithm, reads[i]);
    return mask & (1u << TG_LQ | 1u << TG_LKV);
}

struct tg_product tg_stmt_product(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    const uint32_t dims = ~(1u << TG_CHUNK);
    const uint32_t a = tg_operand_mask(algorithm, stmt->a) & dims;
    const uint32_t b = stmt->b ? tg_operand_mask(algorithm, stmt->b) & dims : a;
    const uint32_t out = tg_operand_mask(algorithm, stmt->out) & dims;
    return (struct tg_product){
        .m = a & out & ~b,
        .n = b & out & ~a,
        .k = a & b & ~out,
        .batch = a & b & out,
        .wrong = (out & ~(a | b)) | ((a ^ b) & ~out),
    };
}

uint32_t tg_tile_implicit(const tg_algorithm *algorithm, uint32_t tile)
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, tile);
    const uint32_t flags = tensor ? tensor->flags : 0;
    return (flags & TG_NO_BATCH ? 0 : 1u << TG_BATCH) | (flags & TG_SHARED ? 0 : 1u << TG_MEMBER);
}

uint32_t tg_stmt_along(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    const uint32_t position = 1u << TG_LQ | 1u << TG_LKV, chunk = 1u << TG_CHUNK;
    const uint32_t a = tg_operand_mask(algorithm, stmt->a), out = tg_operand_mask(algorithm, stmt->out);
    if (stmt->op == TG_STMT_SCAN)
        return a & position ? a & position : a & chunk;
    if (stmt->op != TG_STMT_TOTAL)
        return 0;
    const uint32_t implicit = tg_tile_implicit(algorithm, TG_OPERAND_TILE(stmt->a)) &
                              ~tg_tile_implicit(algorithm, TG_OPERAND_TILE(stmt->out));
    return (a & ~out & (position | chunk)) | implicit;
}

struct tg_shift tg_tile_shift(const tg_algorithm *algorithm, uint32_t tile)
{
    struct tg_shift shift = {.base = tile};
    int s = tg_tile_stmt(algorithm, tile);
    while (s >= 0 && algorithm->body[s].op == TG_STMT_SHIFT && shift.far < TG_MAX_SHIFTS) {
        const tg_stmt *stmt = &algorithm->body[s];
        const bool reverse = stmt->flags & TG_REVERSE, is_final = TG_OPERAND_TILE(stmt->out) != shift.base;
        if (shift.far && (is_final || reverse != shift.reverse))
            break; /* a final is no shifted tile */
        shift.is_final |= is_final;
        shift.reverse = reverse;
        shift.init[shift.far++] = TG_OPERAND_TILE(stmt->init);
        shift.base = TG_OPERAND_TILE(stmt->a);
        s = tg_tile_stmt(algorithm, shift.base);
    }
    return shift;
}

bool tg_tile_kept(const tg_schedule *schedule, uint32_t tile)
{
    for (uint32_t i = 0; tile != 0 && i < TG_MAX_KEPT; i++)
        if (schedule->kept[i] == tile)
            return true;
    return false;
}

static bool is_sum_of_heads(const tg_algorithm *algorithm, uint32_t tile)
{
    const int s = tg_tile_stmt(algorithm, tile);
    const tg_stmt *stmt = s < 0 ? NULL : &algorithm->body[s];
    return stmt && stmt->op == TG_STMT_TOTAL && !(stmt->flags & TG_MAXIMUM) &&
           tg_stmt_along(algorithm, stmt) == 1u << TG_MEMBER;
}

bool tg_is_cluster_sum(const tg_algorithm *algorithm, const tg_kernel_row *row, uint32_t tile, uint32_t dim)
{
    const uint8_t *axes = algorithm->tensors[tile].axes;
    if (!(row->row[dim].cluster & TG_ADDS) || axes[0] != TG_T || (axes[1] != TG_DQK && axes[1] != TG_DHV))
        return false;
    return dim == TG_MEMBER ? is_sum_of_heads(algorithm, tile) : axes[1] != dim;
}

bool tg_row_lists(const tg_kernel_row *row, uint32_t tile)
{
    for (uint32_t i = 0; tile != 0 && i < TG_MAX_OUTPUTS; i++)
        if (row->outputs[i] == tile)
            return true;
    return false;
}

int tg_tile_row(const tg_schedule *schedule, uint32_t tile)
{
    for (uint32_t r = 0; r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        if (tg_row_lists(&schedule->rows[r], tile))
            return (int)r;
    return -1;
}

bool tg_row_holds_state(const tg_kernel_row *row)
{
    return row->mma == TG_MMA_NONE && row->row[TG_CHUNK].role == TG_ROLE_W && row->row[TG_DQK].role == TG_ROLE_L &&
           row->row[TG_DQK].block == 0 && row->row[TG_DHV].role == TG_ROLE_P;
}

bool tg_row_walks_tokens(const tg_schedule *schedule, const tg_kernel_row *row)
{
    const uint32_t least = tg_row_holds_state(row) ? 1 : 2;
    return row->mma == TG_MMA_NONE && schedule->max_tokens >= least && schedule->chunk == 1 &&
           row->row[TG_CHUNK].role == TG_ROLE_W && row->row[TG_CHUNK].block <= 1;
}

bool tg_row_holds_tokens(const tg_schedule *schedule, const tg_kernel_row *row)
{
    const uint32_t most = schedule->max_tokens;
    return row->mma == TG_MMA_NONE && row->row[TG_CHUNK].role == TG_ROLE_W && most > 1 &&
           row->row[TG_CHUNK].block == most && most <= TG_MAX_HELD;
}

bool tg_row_has_single_tokens(const tg_schedule *schedule, const tg_kernel_row *row)
{
    return tg_row_walks_tokens(schedule, row) || tg_row_holds_tokens(schedule, row);
}

uint32_t tg_row_sharers(const tg_kernel_row *row)
{
    const uint32_t all = 32u * row->warps * TG_HELD_EACH;
    for (uint32_t sharers = 1; tg_row_holds_state(row) && sharers <= 32; sharers *= 2)
        if (row->row[TG_DHV].block * sharers == all)
            return sharers;
    return 0;
}

uint32_t tg_row_each(const tg_kernel_row *row, uint32_t dim)
{
    if (dim == TG_DHV && tg_row_sharers(row))
        return TG_HELD_EACH;
    const bool is_width = dim == TG_DQK || dim == TG_DHV, is_position = dim == TG_LQ || dim == TG_LKV;
    const uint32_t threads = 32u * row->warps, most = is_width ? 4 : is_position ? 2 : 1;
    for (uint32_t each = 1; each <= most; each *= 2)
        if (row->row[dim].block == each * threads)
            return each;
    return 0;
}

/* Of a schedule, what is asked of every operand again and again: by tile. */
struct facts {
    int8_t stmt[TG_MAX_TILES]; /* that writes it; -1: none */
    tg_bits inputs, positions; /* tensors with TG_IN; with axis TG_T */
    tg_bits in_memory;         /* a row lists it, or it is kept */
    tg_bits by_segments;       /* has one entry a segment */
};

static void add_to(tg_bits *set, uint32_t tile)
{
    *set |= tile > 0 && tile < TG_MAX_TILES ? TG_BIT(tile) : 0;
}

/* The first statement that writes a tile counts, as in tg_tile_stmt. */
static void find_writers(const tg_algorithm *algorithm, int8_t stmt_of[TG_MAX_TILES])
{
    memset(stmt_of, -1, TG_MAX_TILES);
    for (uint32_t s = body_count(algorithm); s-- > 0;) {
        const tg_stmt *stmt = &algorithm->body[s];
        const uint32_t out = TG_OPERAND_TILE(stmt->out), final_ = TG_OPERAND_TILE(stmt->final_);
        const uint32_t others[] = {TG_OPERAND_TILE(stmt->transition), TG_OPERAND_TILE(stmt->behind)};
        if (tg_stmt_has_final(stmt) && final_ > 0 && final_ < TG_MAX_TILES)
            stmt_of[final_] = (int8_t)s;
        for (uint32_t i = 0; stmt->op == TG_STMT_CARRY && i < TG_COUNT(others); i++)
            if (others[i] > 0 && others[i] < TG_MAX_TILES)
                stmt_of[others[i]] = (int8_t)s;
        if (out > 0 && out < TG_MAX_TILES)
            stmt_of[out] = (int8_t)s;
    }
}

static void find_facts(const tg_schedule *schedule, struct facts *facts)
{
    const tg_algorithm *algorithm = schedule->algorithm;
    *facts = (struct facts){.inputs = 0};
    find_writers(algorithm, facts->stmt);
    for (uint32_t r = 0; r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        for (uint32_t i = 0; i < TG_MAX_OUTPUTS; i++)
            add_to(&facts->in_memory, schedule->rows[r].outputs[i]);
    for (uint32_t i = 0; i < TG_MAX_KEPT; i++)
        add_to(&facts->in_memory, schedule->kept[i]);
    for (uint32_t t = 1; t < TG_MAX_TILES && t < algorithm->n_tensors; t++) {
        if (tg_tile_tensor(algorithm, t) && (algorithm->tensors[t].flags & TG_IN))
            facts->inputs |= TG_BIT(t);
        if (tg_tile_has_t(algorithm, t))
            facts->positions |= TG_BIT(t);
        if (facts->in_memory >> t & 1 && tg_tile_segment(schedule, t))
            facts->by_segments |= TG_BIT(t);
    }
}

struct slicer {
    const tg_schedule *schedule;
    const tg_algorithm *algorithm;
    const tg_kernel_row *row;
    const struct facts *facts;
    tg_bits mine;  /* what the row lists */
    tg_bits later; /* what only rows behind it list, but it makes for itself too */
    bool has_segments;
    struct tg_slice *slice;
};

/* The row needs the operand: load it, or compute the statement that writes it. */
static void need(const struct slicer *c, tg_operand operand)
{
    const uint32_t tile = TG_OPERAND_TILE(operand);
    if (!tg_tile_tensor(c->algorithm, tile))
        return;
    const tg_bits bit = TG_BIT(tile);
    if (c->facts->positions & bit) {
        if (TG_OPERAND_AT(operand) == TG_LQ)
            c->slice->at_q |= bit;
        else
            c->slice->at_kv |= bit;
    }
    c->slice->dims |= tg_operand_mask(c->algorithm, operand);

    const int stmt = c->facts->stmt[tile];
    const bool is_input = (c->facts->inputs & bit) != 0,
               elsewhere = (c->facts->in_memory & ~c->mine & ~c->later & bit) != 0;
    const bool entered = c->has_segments && (c->facts->by_segments & bit);
    if (is_input || elsewhere)
        c->slice->loads |= bit;
    if (stmt >= 0 && !is_input && (!elsewhere || entered))
        c->slice->stmts |= TG_BIT(stmt);
}

/* A total is over all positions, whichever the row visits them as. */
static bool total_swaps(const struct slicer *c, const tg_stmt *stmt)
{
    const uint32_t at = TG_OPERAND_AT(stmt->a);
    if (stmt->op != TG_STMT_TOTAL || (at != TG_LQ && at != TG_LKV))
        return false;
    const uint32_t other = at == TG_LQ ? TG_LKV : TG_LQ;
    return c->row->row[at].role == TG_ROLE_NONE && c->row->row[other].role != TG_ROLE_NONE;
}

/* Is the tile read by nothing but plain sums that this row writes to memory? */
static bool feeds_parts_only(const struct slicer *c, uint32_t tile)
{
    bool any = false;
    for (uint32_t s = 0; s < body_count(c->algorithm); s++) {
        const tg_stmt *stmt = &c->algorithm->body[s];
        tg_operand reads[TG_MAX_READS];
        const uint32_t count = c->slice->stmts & TG_BIT(s) ? tg_stmt_reads(stmt, reads) : 0;
        for (uint32_t i = 0; i < count; i++) {
            if (TG_OPERAND_TILE(reads[i]) != tile)
                continue;
            const struct tg_product product = tg_stmt_product(c->algorithm, stmt);
            if (stmt->op != TG_STMT_CONTRACT || product.n || !tg_row_lists(c->row, TG_OPERAND_TILE(stmt->out)))
                return false;
            any = true;
        }
    }
    return any;
}

/* The segments' states that the row's begin with: its own, else those of the same state; 0: none. */
static uint32_t begun_by(const struct slicer *c, const tg_stmt *carry)
{
    const uint32_t out = TG_OPERAND_TILE(carry->out), same = TG_OPERAND_TILE(carry->same);
    if (out < TG_MAX_TILES && (c->slice->loads & TG_BIT(out)))
        return out;
    const bool is_there = same > 0 && same < TG_MAX_TILES && (c->facts->by_segments & TG_BIT(same));
    return c->has_segments && !tg_row_lists(c->row, out) && is_there ? same : 0;
}

/* Where segments begin the initial state is not read: each is made of zero, or begins with what is in memory. But where they
 * are composed by transitions the first one begins with it, which saves its transition. */
static bool begins_inside(const struct slicer *c, const tg_stmt *carry)
{
    const uint32_t tile = TG_OPERAND_TILE(carry->out);
    const bool makes = tg_row_has_segments(c->row) && tg_row_lists(c->row, tile) &&
                       !(carry->transition && tg_row_lists(c->row, TG_OPERAND_TILE(carry->transition))) &&
                       !tg_transposed_of(c->schedule, carry);
    return makes || begun_by(c, carry);
}

/* What the states behind segments that this row walks meet is in memory: it walks no other states for it. */
static bool meets(const struct slicer *c, const tg_stmt *stmt, tg_operand operand)
{
    const uint32_t tile = TG_OPERAND_TILE(operand);
    return stmt->op == TG_STMT_CONTRACT && c->has_segments && operand == stmt->b && tile < TG_MAX_TILES &&
           (c->facts->in_memory >> tile & 1) && tg_tile_sums_behind(c->algorithm, TG_OPERAND_TILE(stmt->out));
}

/* Evaluate a statement as written, or with the positions exchanged. */
static void evaluate(const struct slicer *c, const tg_stmt *written, bool swap)
{
    tg_stmt stmt = *written;
    if (swap) {
        stmt.out = tg_operand_swap(stmt.out);
        stmt.a = tg_operand_swap(stmt.a);
        stmt.b = tg_operand_swap(stmt.b);
    }
    tg_operand reads[TG_MAX_READS];
    const uint32_t count = tg_stmt_reads(written, reads), begun = stmt.op == TG_STMT_CARRY ? begun_by(c, &stmt) : 0;
    add_to(&c->slice->loads, begun);
    for (uint32_t i = 0; i < count; i++) {
        if (meets(c, &stmt, reads[i]))
            add_to(&c->slice->loads, TG_OPERAND_TILE(reads[i]));
        else if (!(stmt.op == TG_STMT_CARRY && reads[i] == stmt.init && begins_inside(c, &stmt)))
            need(c, swap ? tg_operand_swap(reads[i]) : reads[i]);
    }

    const struct tg_product product = tg_stmt_product(c->algorithm, &stmt);
    switch (stmt.op) {
    case TG_STMT_CONTRACT:
    case TG_STMT_CARRY: {
        const bool matrix = product.m && product.n && product.k && !product.batch;
        /* a plain sum may go to memory in parts, one a thread block, which its readers add up; a product may be
         * partial when only such sums read it */
        const bool in_parts = matrix ? stmt.op == TG_STMT_CONTRACT && feeds_parts_only(c, TG_OPERAND_TILE(stmt.out))
                                     : tg_row_lists(c->row, TG_OPERAND_TILE(stmt.out));
        c->slice->summed |= in_parts ? product.k & ~(1u << TG_DQK | 1u << TG_DHV) : product.k;
        if (matrix)
            c->slice->matrix |= product.m | product.n | product.k;
        break;
    }
    case TG_STMT_TOTAL:
        c->slice->summed |= tg_stmt_along(c->algorithm, &stmt);
        break;
    case TG_STMT_SCAN:
        c->slice->scanned |= tg_stmt_along(c->algorithm, &stmt);
        break;
    default:
        break;
    }
}

/* A SHIFT loads what it shifts, at other tokens than those that the row visits. What is not in memory is a mistake. */
static void visit_shift(const struct slicer *c, const tg_stmt *stmt)
{
    const uint32_t a = TG_OPERAND_TILE(stmt->a);
    const tg_bits bit = tg_tile_tensor(c->algorithm, a) ? TG_BIT(a) : 0;
    need(c, stmt->init);
    if (!bit)
        return;
    if (c->facts->inputs & bit || (c->facts->in_memory & ~c->mine & bit))
        c->slice->loads |= bit;
    else if (c->facts->stmt[a] >= 0)
        c->slice->stmts |= TG_BIT(c->facts->stmt[a]);
}

/* Visit a computed statement at every position at which its tile is needed. */
static void visit(const struct slicer *c, const tg_stmt *stmt)
{
    if (stmt->op == TG_STMT_SHIFT) {
        visit_shift(c, stmt);
        return;
    }
    const uint32_t tile = TG_OPERAND_TILE(stmt->out);
    const tg_bits bit = tile < TG_MAX_TILES ? TG_BIT(tile) : 0;
    const uint32_t both = 1u << TG_LQ | 1u << TG_LKV;
    c->slice->dims |= tg_operand_mask(c->algorithm, stmt->out) & ~both;

    if (!tg_tile_has_t(c->algorithm, tile)) {
        c->slice->dims |= tg_operand_mask(c->algorithm, stmt->out);
        evaluate(c, stmt, total_swaps(c, stmt));
        return;
    }
    const bool out_at_q = TG_OPERAND_AT(stmt->out) == TG_LQ;
    const tg_bits here = out_at_q ? c->slice->at_q : c->slice->at_kv;
    const tg_bits there = out_at_q ? c->slice->at_kv : c->slice->at_q;
    if (tg_stmt_positions(c->algorithm, stmt) == both) {
        if (there & bit)
            c->slice->crossing |= bit;
        need(c, stmt->out);
        evaluate(c, stmt, false);
        return;
    }
    if (here & bit)
        evaluate(c, stmt, false);
    if (there & bit)
        evaluate(c, stmt, true);
}

/* A carry's out may be read before the carry is written (it arrives from the chunk before), so one
 * backward pass is not enough: repeat until nothing is added. */
static void close_slice(const struct slicer *c)
{
    struct tg_slice before;
    const struct tg_slice *now = c->slice;
    do {
        before = *c->slice;
        for (uint32_t s = body_count(c->algorithm); s-- > 0;)
            if (c->slice->stmts & TG_BIT(s))
                visit(c, &c->algorithm->body[s]);
    } while (before.stmts != now->stmts || before.at_q != now->at_q || before.at_kv != now->at_kv);
}

/* A tile is made of what its statement reads, as far as this row computes that too: a state of what was carried before, so
 * until nothing is added. */
static void find_sums(const struct slicer *c)
{
    struct tg_slice *slice = c->slice;
    for (tg_bits dqk = TG_BIT(0), dhv = 0; dqk != slice->over_dqk || dhv != slice->over_dhv;) {
        dqk = slice->over_dqk;
        dhv = slice->over_dhv;
        for (uint32_t s = 0; s < body_count(c->algorithm); s++) {
            const tg_stmt *stmt = &c->algorithm->body[s];
            tg_operand reads[TG_MAX_READS];
            const uint32_t count = slice->stmts & TG_BIT(s) ? tg_stmt_reads(stmt, reads) : 0;
            const uint32_t own = count && stmt->op == TG_STMT_CONTRACT ? tg_stmt_product(c->algorithm, stmt).k : 0;
            tg_bits made = 0; /* of the values of these statements */
            for (uint32_t i = 0; i < count; i++) {
                const uint32_t tile = TG_OPERAND_TILE(reads[i]);
                const int writer = tg_tile_tensor(c->algorithm, tile) ? c->facts->stmt[tile] : -1;
                made |= writer < 0 ? 0 : TG_BIT(writer);
            }
            slice->over_dqk |= own >> TG_DQK & 1 || made & slice->over_dqk ? TG_BIT(s) : 0;
            slice->over_dhv |= own >> TG_DHV & 1 || made & slice->over_dhv ? TG_BIT(s) : 0;
        }
    }
}

/* A row that composes segments computes no statement: it reads states and decays or transitions, and writes states. */
static bool slice_composed(const struct slicer *c)
{
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && c->row->outputs[i]; i++) {
        const uint32_t tile = c->row->outputs[i];
        const int stmt = tg_tile_stmt(c->algorithm, tile);
        if (!tg_tile_is_state(c->algorithm, tile))
            return false;
        const tg_stmt *carry = &c->algorithm->body[stmt];
        const uint32_t own = TG_OPERAND_TILE(carry->transition),
                       transition = own && own < TG_MAX_TILES && (c->facts->in_memory & TG_BIT(own))
                                        ? own
                                        : tg_transposed_of(c->schedule, carry);
        const bool by_values = transition != 0;
        const tg_operand reads[] = {carry->out, by_values ? (tg_operand)transition : carry->decay, carry->init};
        for (uint32_t k = 0; k < TG_COUNT(reads); k++)
            if (tg_tile_tensor(c->algorithm, TG_OPERAND_TILE(reads[k])))
                c->slice->loads |= TG_BIT(TG_OPERAND_TILE(reads[k]));
        const uint32_t dims = tg_operand_mask(c->algorithm, carry->out) & ~(1u << TG_CHUNK);
        c->slice->stores |= TG_BIT(tile);
        c->slice->dims |= dims;
        c->slice->matrix |= by_values ? dims : 0;
        c->slice->summed |= by_values ? tg_operand_mask(c->algorithm, (tg_operand)transition) & dims : 0;
    }
    return true;
}

/* Does the row make of segments what transitions compose, its own or another carry's? */
static bool makes_by_values(const tg_schedule *schedule, uint32_t row)
{
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS; i++) {
        const uint32_t tile = schedule->rows[row].outputs[i];
        const int s = tile ? tg_tile_stmt(schedule->algorithm, tile) : -1;
        if (s >= 0 && (tg_tile_is_transition(schedule->algorithm, tile) ||
                       (tg_tile_is_state(schedule->algorithm, tile) && tg_row_makes_segments(schedule, row) &&
                        tg_transposed_of(schedule, &schedule->algorithm->body[s]))))
            return true;
    }
    return false;
}

/* A row that makes segments which transitions compose comes before those that write what the states are made of: it makes that,
 * too. */
static tg_bits made_later(const tg_schedule *schedule, uint32_t row)
{
    tg_bits before = 0, later = 0;
    const bool any = makes_by_values(schedule, row);
    for (uint32_t r = 0; any && r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        for (uint32_t i = 0; i < TG_MAX_OUTPUTS; i++)
            add_to(r <= row ? &before : &later, schedule->rows[r].outputs[i]);
    return later & ~before;
}

/* Everything but the final states. */
static bool slice_outputs(const tg_schedule *schedule, const struct facts *facts, uint32_t row, struct tg_slice *slice)
{
    memset(slice, 0, sizeof *slice);
    struct slicer c = {.schedule = schedule,
                       .algorithm = schedule->algorithm,
                       .row = &schedule->rows[row],
                       .facts = facts,
                       .has_segments = tg_row_has_segments(&schedule->rows[row]),
                       .slice = slice};
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS; i++)
        add_to(&c.mine, c.row->outputs[i]);
    c.later = made_later(schedule, row);
    if (tg_row_composes_segments(schedule, row))
        return slice_composed(&c);
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && c.row->outputs[i]; i++) {
        const uint32_t tile = c.row->outputs[i];
        const int stmt = tg_tile_stmt(c.algorithm, tile);
        if (stmt < 0 || !tg_tile_tensor(c.algorithm, tile))
            return false;
        slice->stmts |= TG_BIT(stmt);
        slice->stores |= TG_BIT(tile);
        const tg_operand out = c.algorithm->body[stmt].out;
        const bool enters = c.has_segments && (facts->by_segments >> TG_OPERAND_TILE(out) & 1);
        if (TG_OPERAND_TILE(out) == tile ||
            enters) /* a final state is that of the last segment, which begins with its own */
            need(&c, out);
        if (TG_OPERAND_TILE(out) != tile)
            slice->dims |= tg_operand_mask(c.algorithm, (tg_operand)tile);
    }
    close_slice(&c);
    find_sums(&c);
    return true;
}

/* Who writes the final state of carry `stmt` that `row` computes: see slice.h. `before`: statements that rows before
 * compute, which do not make segments. */
static bool owns_final(const tg_schedule *schedule, uint32_t row, uint32_t stmt, tg_bits before)
{
    const tg_stmt *carry = &schedule->algorithm->body[stmt];
    const int by_final = tg_tile_row(schedule, TG_OPERAND_TILE(carry->final_));
    const int by_out = tg_tile_row(schedule, TG_OPERAND_TILE(carry->out));
    if (by_final >= 0)
        return by_final == (int)row;
    if (by_out >= 0 && !tg_row_makes_segments(schedule, (uint32_t)by_out))
        return by_out == (int)row;
    return !tg_row_makes_segments(schedule, row) && !(before & TG_BIT(stmt));
}

static void add_finals(const tg_schedule *schedule, uint32_t row, tg_bits before, struct tg_slice *slice)
{
    for (uint32_t s = 0; s < schedule->algorithm->n_body; s++) {
        const tg_stmt *stmt = &schedule->algorithm->body[s];
        const uint32_t final_ = TG_OPERAND_TILE(stmt->final_);
        if (!(slice->stmts & TG_BIT(s)) || stmt->op != TG_STMT_CARRY)
            continue;
        if (tg_tile_tensor(schedule->algorithm, final_) && owns_final(schedule, row, s, before))
            slice->stores |= TG_BIT(final_);
    }
}

void tg_schedule_slice(const tg_schedule *schedule, uint32_t n, struct tg_slices *slices)
{
    struct facts facts;
    tg_bits before = 0;
    slices->good = 0;
    slices->has_one_chunk = false;
    if (!schedule || !schedule->algorithm || body_count(schedule->algorithm) == 0)
        return;
    find_facts(schedule, &facts);
    slices->has_one_chunk = tg_has_one_chunk(schedule->algorithm);
    memcpy(slices->stmt, facts.stmt, sizeof slices->stmt);
    slices->by_segments = facts.by_segments;
    for (uint32_t r = 0; r < n && r < schedule->n_rows && r < TG_MAX_ROWS; r++) {
        if (!slice_outputs(schedule, &facts, r, &slices->rows[r]))
            continue;
        const tg_bits own = slices->rows[r].stmts;
        slices->good |= 1u << r;
        add_finals(schedule, r, before, &slices->rows[r]);
        before |= tg_row_makes_segments(schedule, r) ? 0 : own;
    }
}

bool tg_row_slice(const tg_schedule *schedule, uint32_t row, struct tg_slice *slice)
{
    struct tg_slices slices;
    memset(slice, 0, sizeof *slice);
    if (row >= TG_MAX_ROWS)
        return false;
    tg_schedule_slice(schedule, row + 1, &slices);
    if (slices.good >> row & 1)
        *slice = slices.rows[row];
    return slices.good >> row & 1;
}

bool tg_row_scans_channels(const tg_algorithm *algorithm, const tg_kernel_row *row, const struct tg_slice *slice)
{
    bool any = false;
    for (uint32_t s = 0; row->mma == TG_MMA_SYNC && s < body_count(algorithm); s++)
        any |= (slice->stmts & TG_BIT(s)) && algorithm->body[s].op == TG_STMT_SCAN &&
               (tg_operand_mask(algorithm, algorithm->body[s].a) >> TG_DQK & 1);
    return any;
}

uint32_t tg_row_sums(const tg_schedule *schedule, const struct tg_slice *slice, uint32_t tile)
{
    const int s = tg_tile_stmt(schedule->algorithm, tile);
    if (s < 0)
        return 0;
    return (uint32_t)(slice->over_dqk >> s & 1) << TG_DQK | (uint32_t)(slice->over_dhv >> s & 1) << TG_DHV;
}
