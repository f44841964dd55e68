/* dsl/check_roles.c - the role and the block of every dimension of a kernel: what its statements
 * allow, and what its threads can do. */
#include "dsl/check.h"

enum {
    POSITIONS = 1 << TG_LQ | 1 << TG_LKV,
    STATE = 1 << TG_DQK | 1 << TG_DHV,
    AROUND = 1 << TG_BATCH | 1 << TG_MEMBER, /* the axes that every tile has unless its flags say */
    WARP = 32,
    MAX_WARPS = 16,
    MAX_HELD = TG_MAX_HELD
};

/* Without matrix products a tile is not shared among threads: see dsl/tegula.h, tg_axis_role. */
static bool is_thread_kernel(const struct kernel *k)
{
    return k->row->mma == TG_MMA_NONE;
}

static uint32_t threads_of(const struct kernel *k)
{
    return (uint32_t)WARP * k->row->warps;
}

/* All positions, or all chunks of one position, are in registers of every thread. */
static bool is_held(const struct kernel *k, uint32_t dim)
{
    const tg_axis_role *axis = &k->row->row[dim];
    if (dim == TG_CHUNK)
        return tg_row_holds_tokens(k->schedule, k->row);
    return is_thread_kernel(k) && (1u << dim & POSITIONS) && axis->role == TG_ROLE_L && axis->block > 1 &&
           axis->block <= MAX_HELD;
}

/* One block covers the dimension, so that a parallel role does not split it. */
static bool is_whole(const struct kernel *k, uint32_t dim)
{
    const uint32_t block = k->row->row[dim].block, most = k->schedule->max_tokens;
    if (dim == TG_CHUNK)
        return most != 0;
    if (1u << dim & AROUND)
        return false;
    if (!(1u << dim & POSITIONS))
        return block == 0 && !is_thread_kernel(k); /* of a thread kernel 0 means 1 */
    if (most && (is_held(k, TG_CHUNK) || tg_row_walks_tokens(k->schedule, k->row)))
        return block <= 1; /* one position in each chunk */
    if (most)
        return block >= most || (most == 1 && is_thread_kernel(k));
    return block == k->schedule->chunk || (is_held(k, dim) && block >= k->schedule->chunk);
}

/* ---- sums ---- */

const tg_stmt *tg_computed(const struct kernel *k, uint32_t s)
{
    return k->slice.stmts & TG_BIT(s) ? &k->schedule->algorithm->body[s] : NULL;
}

static bool is_matrix(const struct tg_product *p)
{
    return p->m && p->n && p->k && !p->batch;
}

static uint32_t times_read(const tg_stmt *stmt, uint32_t tile)
{
    tg_operand reads[TG_MAX_READS];
    const uint32_t count = tg_stmt_reads(stmt, reads);
    uint32_t times = 0;
    for (uint32_t i = 0; i < count; i++)
        times += TG_OPERAND_TILE(reads[i]) == tile;
    return times;
}

static bool is_read(const struct kernel *k, uint32_t tile)
{
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++)
        if (tg_computed(k, s) && times_read(tg_computed(k, s), tile))
            return true;
    return false;
}

/* ---- sums in parts: each thread block of a parallel dimension adds up its own block of it ---- */

static bool on_warpgroups(const struct kernel *k)
{
    return k->row->mma == TG_MMA_WGMMA;
}

static bool sums_over(const struct kernel *k, const tg_stmt *stmt, uint32_t dim)
{
    return (stmt->op == TG_STMT_CONTRACT || stmt->op == TG_STMT_CARRY) &&
           (tg_stmt_product(k->schedule->algorithm, stmt).k & 1u << dim);
}

static bool reads_any(const tg_stmt *stmt, tg_bits tiles)
{
    tg_operand reads[TG_MAX_READS];
    bool any = false;
    for (uint32_t i = 0, n = tg_stmt_reads(stmt, reads); i < n; i++)
        any |= (tiles >> TG_OPERAND_TILE(reads[i]) & 1) != 0;
    return any;
}

/* Tiles that the row computes as sums over the dimension, or from such: a thread block has a part of each. */
static tg_bits parts_of(const struct kernel *k, uint32_t dim)
{
    tg_bits parts = 0;
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++) {
        const tg_stmt *stmt = tg_computed(k, s);
        if (stmt && (sums_over(k, stmt, dim) || (stmt->op != TG_STMT_CARRY && reads_any(stmt, parts))))
            parts |= TG_BIT(TG_OPERAND_TILE(stmt->out));
    }
    return parts;
}

/* Is the map of parts a part of the same map of their sum? What is added to parts without being one is added to the first. */
static bool is_linear(const tg_stmt *map, tg_bits parts)
{
    bool part[TG_MAX_EXPR + 2] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < tg_expr_length(map); i++) {
        const tg_x *x = &map->expr[i];
        const int arity = tg_expr_arity(x->op);
        if (arity < 0 || n < (uint32_t)arity)
            return false;
        n -= (uint32_t)arity;
        const bool a = arity > 0 && part[n], b = arity > 1 && part[n + 1];
        const bool sum = x->op == TG_X_ADD || x->op == TG_X_SUB;
        const bool product = (x->op == TG_X_MUL && !(a && b)) || (x->op == TG_X_DIV && !b);
        const bool alone = x->op == TG_X_NEG || x->op == TG_X_CAUSAL || x->op == TG_X_BEFORE;
        if ((a || b) && !(sum || product || alone))
            return false;
        part[n++] = x->op == TG_X_TILE ? (parts >> TG_OPERAND_TILE(x->operand) & 1) != 0 : a || b;
    }
    return true;
}

/* The reader is linear in the one part that it reads, and does not visit the dimension, whose block would choose one of
 * the parts. Only kernels on warpgroups have more to make of parts than plain sums. */
static bool keeps_parts(const struct kernel *k, const tg_stmt *reader, uint32_t dim, tg_bits parts)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    const struct tg_product product = tg_stmt_product(algorithm, reader);
    const uint32_t visited = tg_operand_mask(algorithm, reader->a) | tg_operand_mask(algorithm, reader->b) |
                             tg_operand_mask(algorithm, reader->out);
    if (visited & 1u << dim)
        return false;
    if (reader->op == TG_STMT_MAP)
        return on_warpgroups(k) && is_linear(reader, parts);
    if (reader->op == TG_STMT_TOTAL)
        return on_warpgroups(k) && !(reader->flags & TG_MAXIMUM);
    const bool a = (parts >> TG_OPERAND_TILE(reader->a) & 1) != 0, b = (parts >> TG_OPERAND_TILE(reader->b) & 1) != 0;
    return reader->op == TG_STMT_CONTRACT && (reader->b ? a != b : a) && (on_warpgroups(k) || !is_matrix(&product)) &&
           (!reader->init || (parts >> TG_OPERAND_TILE(reader->init) & 1));
}

/* A part may go to memory, where its reader adds up the parts: an intermediate that the row lists. Without warpgroups that is
 * a plain sum which nothing of the row reads. A cluster adds up its parts before. */
static bool may_be_part(const struct kernel *k, const tg_stmt *stmt, uint32_t dim)
{
    const struct tg_product product = tg_stmt_product(k->schedule->algorithm, stmt);
    const uint32_t tile = TG_OPERAND_TILE(stmt->out);
    const bool read = is_read(k, tile);
    if (!tg_row_lists(k->row, tile))
        return read;
    if (tg_is_cluster_sum(k->schedule->algorithm, k->row, tile, dim))
        return !read;
    return !(k->schedule->algorithm->tensors[tile].flags & (TG_IN | TG_OUT)) &&
           (on_warpgroups(k) || (stmt->op == TG_STMT_CONTRACT && !is_matrix(&product) && !read));
}

/* Sums over dqk or dhv may be split among thread blocks when all that is made of them is linear. */
static bool may_split(const struct kernel *k, uint32_t dim)
{
    const tg_bits parts = parts_of(k, dim);
    bool ok = true;
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++) {
        const tg_stmt *stmt = tg_computed(k, s);
        if (!stmt)
            continue;
        const bool sums = sums_over(k, stmt, dim);
        if (sums)
            ok = ok && stmt->op == TG_STMT_CONTRACT && (!stmt->init || (parts >> TG_OPERAND_TILE(stmt->init) & 1));
        else if (reads_any(stmt, parts))
            ok = ok && keeps_parts(k, stmt, dim, parts);
        if (parts >> TG_OPERAND_TILE(stmt->out) & 1)
            ok = ok && may_be_part(k, stmt, dim);
    }
    return ok;
}

/* What the heads of a cluster add up. */
static bool is_added_up(const struct kernel *k, uint32_t tile)
{
    return tg_row_lists(k->row, tile) && !is_read(k, tile) &&
           tg_is_cluster_sum(k->schedule->algorithm, k->row, tile, TG_MEMBER);
}

/* A statement of the row that sums over the dimension, which must not be split: NULL when none
 * does. */
static const tg_stmt *summed_by(const struct kernel *k, uint32_t dim)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    for (uint32_t s = 0; s < algorithm->n_body; s++) {
        const tg_stmt *stmt = tg_computed(k, s);
        if (!stmt)
            continue;
        if (stmt->op == TG_STMT_TOTAL && (tg_stmt_along(algorithm, stmt) & 1u << dim) &&
            !(dim == TG_MEMBER && is_added_up(k, TG_OPERAND_TILE(stmt->out))))
            return stmt;
        if (sums_over(k, stmt, dim) && !((1u << dim & STATE) && may_split(k, dim)))
            return stmt;
    }
    return NULL;
}

/* Positions may be exchanged in this row, so which of them are summed over only the slice knows. */
static void check_sum(const struct kernel *k, uint32_t dim)
{
    struct tg_text text;
    const uint32_t block = k->row->row[dim].block;
    const tg_stmt *stmt = summed_by(k, dim);
    const bool summed = 1u << dim & POSITIONS ? (k->slice.summed >> dim & 1) : stmt != NULL;
    if (!summed || is_whole(k, dim))
        return;
    const char *made = stmt ? tg_tile_text(k->schedule->algorithm, TG_OPERAND_TILE(stmt->out), &text) : NULL;
    if (block > 1)
        tg_fault(k->check, TG0217, "use TG_L: thread blocks do not add to one another",
                 "%s: %s is parallel in blocks of %u, but this kernel sums over it%s%s", k->name, tg_dim_name(dim),
                 block, made ? " to make " : "", made ? made : "");
    else
        tg_fault(k->check, TG0217, "use TG_L: thread blocks do not add to one another",
                 "%s: %s is parallel, but this kernel sums over it%s%s", k->name, tg_dim_name(dim),
                 made ? " to make " : "", made ? made : "");
}

/* ---- walks ---- */

bool tg_computes_carry(const struct kernel *k)
{
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++)
        if (tg_computed(k, s) && tg_computed(k, s)->op == TG_STMT_CARRY)
            return true;
    return false;
}

static bool shifts(const struct kernel *k)
{
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++)
        if (tg_computed(k, s) && tg_computed(k, s)->op == TG_STMT_SHIFT)
            return true;
    return false;
}

/* Walked means that something is carried from block to block, and the other way round. Threads that
 * take a block together walk over the sums of blocks, too. */
static void check_walk(const struct kernel *k, uint32_t dim)
{
    const uint8_t role = k->row->row[dim].role;
    const char *name = tg_dim_name(dim);
    const bool carry = dim == TG_CHUNK && tg_computes_carry(k);
    const bool carried = carry || (k->slice.scanned & 1u << dim);
    const bool gathers = is_thread_kernel(k) &&
                         ((dim == TG_CHUNK && shifts(k)) || (k->slice.summed & 1u << dim) || tg_row_each(k->row, dim));
    if (role == TG_ROLE_W && !carried && !gathers)
        tg_fault(k->check, TG0215, "use TG_P or TG_L", "%s: %s is walked, but nothing is carried over it", k->name,
                 name);
    if (role == TG_ROLE_W || !carried || is_whole(k, dim))
        return;
    if (carry)
        tg_fault(k->check, TG0216, "use TG_W, or let an earlier kernel write the state",
                 "%s: it computes a CARRY, but chunk is not walked", k->name);
    else
        tg_fault(k->check, TG0216, "use TG_W, or let an earlier kernel write the sums",
                 "%s: it computes a SCAN over %s, which is not walked%s", k->name, name,
                 dim == TG_CHUNK ? "" : " and not one block");
}

static void check_crossing(const struct kernel *k)
{
    for (uint32_t tile = 1; tile < TG_MAX_TILES; tile++) {
        struct tg_text text;
        if ((k->slice.crossing & TG_BIT(tile)) && !(is_whole(k, TG_LQ) && is_whole(k, TG_LKV)))
            tg_fault(k->check, TG0221, "make both blocks the chunk, or let an earlier kernel write it",
                     "%s: %s is computed at one position and read at the other, but Lhq is in blocks of "
                     "%u and Lkv of %u, chunk is %u",
                     k->name, tg_tile_text(k->schedule->algorithm, tile, &text), k->row->row[TG_LQ].block,
                     k->row->row[TG_LKV].block, k->schedule->chunk);
    }
}

/* A final state exists when the kernel that makes it is done. */
static void check_finals(const struct kernel *k)
{
    tg_bits finals = 0;
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++)
        if (tg_computed(k, s) && tg_computed(k, s)->op == TG_STMT_CARRY && tg_computed(k, s)->final_)
            finals |= TG_BIT(TG_OPERAND_TILE(tg_computed(k, s)->final_));
    for (uint32_t s = 0; finals && s < k->schedule->algorithm->n_body; s++) {
        tg_operand reads[TG_MAX_READS];
        const uint32_t n = tg_computed(k, s) ? tg_stmt_reads(tg_computed(k, s), reads) : 0;
        for (uint32_t i = 0; i < n; i++) {
            struct tg_text text;
            const uint32_t tile = TG_OPERAND_TILE(reads[i]);
            if (finals & TG_BIT(tile))
                tg_fault(k->check, TG0139, "let an earlier kernel write it",
                         "%s: it reads %s, the final state of a CARRY that it computes itself", k->name,
                         tg_tile_text(k->schedule->algorithm, tile, &text));
        }
    }
}

/* ---- shifts ---- */

/* What is shifted is loaded at tokens that other thread blocks have, and a final state is written once. */
static void check_shift(const struct kernel *k, const tg_stmt *stmt)
{
    struct tg_text text;
    const tg_algorithm *algorithm = k->schedule->algorithm;
    const uint32_t base = tg_tile_shift(algorithm, TG_OPERAND_TILE(stmt->out)).base;
    if (base && !(k->slice.loads & TG_BIT(base)))
        tg_fault(k->check, TG0247, "let an earlier row write it", "%s: it shifts %s, which is not in memory", k->name,
                 tg_tile_text(algorithm, base, &text));
    if (!is_thread_kernel(k))
        tg_fault(k->check, TG0247, "let a row with TG_MMA_NONE do it", "%s: it shifts %s, but mma is not TG_MMA_NONE",
                 k->name, tg_tile_text(algorithm, base, &text));
    if (tg_row_lists(k->row, TG_OPERAND_TILE(stmt->out)))
        tg_fault(k->check, TG0247, "list what is made of it", "%s: it lists %s, the shifted copy of another tile",
                 k->name, tg_tile_text(algorithm, TG_OPERAND_TILE(stmt->out), &text));
    if (tg_row_lists(k->row, TG_OPERAND_TILE(stmt->final_)) && k->row->row[TG_CHUNK].role == TG_ROLE_P)
        tg_fault(k->check, TG0247, "list it in a row of its own",
                 "%s: it lists %s, one for each sequence, but its chunks are parallel", k->name,
                 tg_tile_text(algorithm, TG_OPERAND_TILE(stmt->final_), &text));
}

static void check_shifts(const struct kernel *k)
{
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++)
        if (tg_computed(k, s) && tg_computed(k, s)->op == TG_STMT_SHIFT)
            check_shift(k, tg_computed(k, s));
}

/* ---- threads ---- */

static bool takes_part(const struct kernel *k, uint32_t dim)
{
    return dim != TG_SEG && !(1u << dim & AROUND) && k->row->row[dim].role != TG_ROLE_NONE &&
           (k->slice.dims & 1u << dim);
}

/* Dimensions with a block that the threads share out. */
static uint32_t thread_dims(const struct kernel *k)
{
    uint32_t dims = 0;
    for (uint32_t dim = 1; dim < TG_N_DIMS; dim++)
        if (takes_part(k, dim) && tg_row_each(k->row, dim))
            dims |= 1u << dim;
    return dims;
}

/* Dimensions with a block that a thread can neither visit one by one nor hold. */
/* Several chunks of a thread block, a warp each. */
static bool has_chunk_a_warp(const struct kernel *k)
{
    const tg_axis_role *chunk = &k->row->row[TG_CHUNK];
    return chunk->role == TG_ROLE_P && chunk->block <= MAX_WARPS && k->row->warps == 1 && !k->schedule->max_tokens;
}

static uint32_t unheld_dims(const struct kernel *k, uint32_t threads)
{
    uint32_t dims = 0;
    for (uint32_t dim = 1; dim < TG_N_DIMS; dim++)
        if (takes_part(k, dim) && k->row->row[dim].block > 1 && !is_held(k, dim) &&
            !(dim == TG_CHUNK && has_chunk_a_warp(k)))
            dims |= 1u << dim;
    return dims & ~threads;
}

static bool adds_up(const struct kernel *k, uint32_t dim)
{
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++)
        if (tg_computed(k, s) && sums_over(k, tg_computed(k, s), dim))
            return true;
    return false;
}

/* Blocks of 128 threads: dims = 1 << their dimension. */
static void check_thread_role(const struct kernel *k, uint32_t dims)
{
    for (uint32_t dim = 1; dim < TG_N_DIMS; dim++) {
        const uint8_t role = k->row->row[dim].role;
        if (!(dims & 1u << dim))
            continue;
        if (dim == TG_CHUNK && role != TG_ROLE_W)
            tg_fault(k->check, TG0228, "use TG_W: one thread block takes all chunks",
                     "%s: chunk is the dimension of its threads and not walked", k->name);
        if ((1u << dim & STATE) && role != TG_ROLE_P && !(role == TG_ROLE_L && adds_up(k, dim)))
            tg_fault(k->check, TG0228, "use TG_P; TG_L is for sums over it",
                     "%s: %s is the dimension of its threads and not parallel", k->name, tg_dim_name(dim));
    }
}

static void check_held(const struct kernel *k, uint32_t dim)
{
    const uint32_t most = k->schedule->max_tokens;
    if (!takes_part(k, dim) || !is_held(k, dim) || is_whole(k, dim))
        return;
    tg_fault(k->check, TG0234, "hold the whole chunk, or use TG_W(1)",
             "%s: %u of %s are held in registers, but %s is %u", k->name, k->row->row[dim].block, tg_dim_name(dim),
             most ? "max_tokens" : "chunk", most ? most : k->schedule->chunk);
}

/* A state that stays on chip. */
static void check_held_state(const struct kernel *k)
{
    if (!tg_row_holds_state(k->row) || !takes_part(k, TG_DQK))
        return;
    if (!tg_row_sharers(k->row))
        tg_fault(k->check, TG0244, "give dhv 4 x 32 x warps, or that divided by 2, 4, 8, 16 or 32",
                 "%s: it holds dqk whole, but its threads cannot share out blocks of %u of dhv", k->name,
                 k->row->row[TG_DHV].block);
    if (!tg_row_walks_tokens(k->schedule, k->row))
        tg_fault(k->check, TG0244, "set .chunk = 1 and .max_tokens, and use TG_W(1); or give dqk the block 1",
                 "%s: it holds dqk whole, but does not walk the tokens of a decode step", k->name);
}

/* What one row has made of a chunk another one takes for the same. A call of one token is one chunk either way. */
static void check_tokens_alike(const struct kernel *k)
{
    const tg_schedule *schedule = k->schedule;
    if (!(k->slice.dims & (POSITIONS | 1u << TG_CHUNK)) || tg_row_has_single_tokens(schedule, k->row) ||
        schedule->max_tokens == 1)
        return;
    for (uint32_t r = 0; r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        if (tg_row_has_single_tokens(schedule, &schedule->rows[r])) {
            tg_fault(k->check, TG0245, "walk the tokens in all rows (TG_W(1)), or hold them",
                     "%s: its chunk is the whole call, that of kernel %s one token", k->name, schedule->rows[r].name);
            return;
        }
}

/* What has a chunk's entry in memory has one of the call: every token would write it. */
static void check_token_outputs(const struct kernel *k)
{
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && tg_row_has_single_tokens(k->schedule, k->row); i++) {
        const tg_tensor *tensor = tg_tile_tensor(k->schedule->algorithm, k->row->outputs[i]);
        bool by_chunk = false;
        for (uint32_t a = 0; tensor && a < TG_MAX_AXES; a++)
            by_chunk |= tensor->axes[a] == TG_CHUNK;
        if (by_chunk)
            tg_fault(k->check, TG0245, "let it stay on chip, or take TG_W(1) without .max_tokens",
                     "%s: it writes %s for every token, but for a decode step memory holds one chunk", k->name,
                     tensor->name);
    }
}

/* A position that is held is one token, read as query and as key: both are as many. */
static void check_held_alike(const struct kernel *k)
{
    const uint32_t queries = k->row->row[TG_LQ].block, keys = k->row->row[TG_LKV].block;
    const bool looped = k->row->row[TG_LQ].role == TG_ROLE_L && k->row->row[TG_LKV].role == TG_ROLE_L;
    if (takes_part(k, TG_LQ) && takes_part(k, TG_LKV) && looped && queries != keys &&
        (is_held(k, TG_LQ) || is_held(k, TG_LKV)))
        tg_fault(k->check, TG0234, "give both the same block", "%s: %u of Lhq are held in registers, but %u of Lkv",
                 k->name, queries, keys);
}

static void check_threads(const struct kernel *k)
{
    struct tg_text text;
    const uint32_t threads = threads_of(k), dims = thread_dims(k), unheld = unheld_dims(k, dims);
    const bool one = dims && !(dims & (dims - 1));
    if (threads == 0 || k->row->warps > MAX_WARPS)
        return;
    if (k->slice.matrix && (!one || unheld))
        tg_fault(k->check, TG0222, "set .mma = TG_MMA_SYNC; or give one dimension a block of 32 x warps, the others 1",
                 "%s: it computes matrix products, but mma is TG_MMA_NONE", k->name);
    else if (!dims)
        tg_fault(k->check, TG0227, "give Lhq, Lkv, chunk, dqk or dhv that block",
                 "%s: no dimension has a block of %u, one element a thread (32 x warps)", k->name, threads);
    else if (!one)
        tg_fault(k->check, TG0227, "give the others the block 1",
                 "%s: %s have blocks of %u (32 x warps), expected one dimension", k->name, tg_mask_text(dims, &text),
                 threads);
    else
        check_thread_role(k, dims);
    for (uint32_t dim = 1; one && !k->slice.matrix && dim < TG_N_DIMS; dim++)
        if (unheld & 1u << dim)
            tg_fault(k->check, TG0229, "a kernel without matrix products shares no tiles among threads",
                     "%s: block %u of %s, expected 1, %sor %u (32 x warps) in its place", k->name,
                     k->row->row[dim].block, tg_dim_name(dim),
                     1u << dim & POSITIONS ? "2 to 16 with role L, "
                     : dim == TG_CHUNK     ? "2 to 16 with role P and one warp, "
                                           : "",
                     threads);
    check_held(k, TG_LQ);
    check_held(k, TG_LKV);
    check_held_state(k);
    check_held_alike(k);
}

/* A row may want tiles shared among threads for plain sums alone. */
static bool sums_tiles(const struct kernel *k)
{
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++)
        if (tg_computed(k, s) && tg_computed(k, s)->op == TG_STMT_CONTRACT)
            return true;
    return false;
}

/* Numbers of chunks, at once, have no dimension that could be the threads'. */
static bool has_numbers_alone(const struct kernel *k)
{
    return k->slice.dims == 1u << TG_CHUNK && k->row->row[TG_CHUNK].role == TG_ROLE_P;
}

static void check_matrix(const struct kernel *k)
{
    if (is_thread_kernel(k))
        check_threads(k);
    else if (!k->slice.matrix && !sums_tiles(k) && !has_numbers_alone(k) &&
             !tg_row_scans_channels(k->schedule->algorithm, k->row, &k->slice))
        tg_fault(k->check, TG0222, "set .mma = TG_MMA_NONE",
                 "%s: it computes no matrix product, plain sum or decay of channels, but mma is not TG_MMA_NONE",
                 k->name);
}

/* ---- the whole ---- */

static void check_block(const struct kernel *k, uint32_t dim)
{
    const uint32_t block = k->row->row[dim].block;
    const char *expected = tg_block_fault(k->row, &k->slice, dim, block);
    if (!expected)
        return;
    const bool step = block <= TG_MAX_BLOCK && block != 0 && dim != TG_CHUNK && !(1u << dim & AROUND);
    tg_fault(k->check, step ? TG0219 : TG0218, "give another block", "%s: block %u of %s, expected %s", k->name, block,
             tg_dim_name(dim), expected);
}

static void report_unvisited(const struct kernel *k, uint32_t dim)
{
    if (k->row->row[dim].role != TG_ROLE_NONE || k->row->row[dim].block != 0)
        tg_fault(k->check, TG0214, "remove it",
                 "%s: %s has a role or block, but no statement of this kernel has that axis", k->name,
                 tg_dim_name(dim));
}

/* Sequences and heads of a group are parallel unless the row loops over them. */
static void check_around(const struct kernel *k, uint32_t dim)
{
    const tg_axis_role *axis = &k->row->row[dim];
    const tg_algorithm *algorithm = k->schedule->algorithm;
    uint32_t around = 0;
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        const int s = tg_tile_stmt(algorithm, tile);
        const bool here = s >= 0 && tg_computed(k, (uint32_t)s);
        if (here || ((k->slice.loads | k->slice.stores) & TG_BIT(tile)))
            around |= tg_tile_implicit(algorithm, tile);
    }
    if (!(around & 1u << dim)) {
        report_unvisited(k, dim);
        return;
    }
    check_block(k, dim);
    if (dim == TG_MEMBER && on_warpgroups(k) && axis->role == TG_ROLE_P)
        check_sum(k, dim);
    else if (axis->role == TG_ROLE_P || axis->role == TG_ROLE_W)
        tg_fault(k->check, TG0235, "use TG_L(1), or leave it out",
                 "%s: %s is %s; it is parallel by itself unless it is looped", k->name, tg_dim_name(dim),
                 axis->role == TG_ROLE_P ? "TG_P" : "TG_W");
    else if (dim == TG_BATCH && axis->role == TG_ROLE_NONE)
        check_sum(k, dim); /* a sum over heads is none where a group is one head: the compiler knows */
}

/* Thread blocks that add up what they have of a sum. */
static void check_cluster(const struct kernel *k, uint32_t dim)
{
    const tg_axis_role *axis = &k->row->row[dim];
    bool sums = false;
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && k->row->outputs[i]; i++)
        sums |= tg_is_cluster_sum(k->schedule->algorithm, k->row, k->row->outputs[i], dim);
    if ((axis->cluster & TG_ADDS) && !(axis->role == TG_ROLE_P && on_warpgroups(k) && sums))
        tg_fault(k->check, TG0240, "use TG_P",
                 "%s: %s is a cluster, expected role P, TG_MMA_WGMMA and a listed tile of positions %s %s to add up",
                 k->name, tg_dim_name(dim), dim == TG_MEMBER ? "that is a sum over" : "without", tg_dim_name(dim));
}

/* ... and those that load once what they share. */
static void check_sharing(const struct kernel *k, uint32_t dim)
{
    const tg_axis_role *axis = &k->row->row[dim];
    const uint32_t sharing = tg_sharing(*axis);
    const bool several = sharing == 2 || (sharing == 4 && !(axis->cluster & TG_ADDS));
    if (sharing && !(several && axis->role == TG_ROLE_P && on_warpgroups(k) && (1u << dim & STATE)))
        tg_fault(
            k->check, TG0241, "use TG_P",
            "%s: %u neighbours of %s share what they load, expected 2, or 4 that add up nothing, of dqk or dhv with role P and TG_MMA_WGMMA",
            k->name, sharing, tg_dim_name(dim));
}

static void check_dim(const struct kernel *k, uint32_t dim)
{
    const tg_axis_role *axis = &k->row->row[dim];
    if (!(k->slice.dims & 1u << dim)) {
        report_unvisited(k, dim);
        return;
    }
    if (axis->role == TG_ROLE_NONE) {
        tg_fault(k->check, TG0213, "give it TG_P, TG_L or TG_W", "%s: %s has no role, but this kernel visits it",
                 k->name, tg_dim_name(dim));
        return;
    }
    check_block(k, dim);
    check_walk(k, dim);
    if (axis->role == TG_ROLE_P)
        check_sum(k, dim);
}

void tg_check_roles(const struct kernel *k)
{
    for (uint32_t dim = 1; dim < TG_N_DIMS; dim++) {
        check_cluster(k, dim);
        check_sharing(k, dim);
        if (dim == TG_SEG)
            check_block(k, dim);
        if (dim == TG_SEG || dim == TG_T || k->row->row[dim].role > TG_ROLE_W)
            continue;
        if (1u << dim & AROUND)
            check_around(k, dim);
        else
            check_dim(k, dim);
    }
    if (k->row->row[TG_T].role != TG_ROLE_NONE || k->row->row[TG_T].block != 0)
        tg_fault(k->check, TG0214, "give roles to TG_CHUNK, TG_LQ and TG_LKV",
                 "%s: T has a role or block, but kernels visit chunks and positions", k->name);
    tg_check_segments(k);
    check_matrix(k);
    check_tokens_alike(k);
    check_token_outputs(k);
    check_crossing(k);
    check_finals(k);
    check_shifts(k);
}
