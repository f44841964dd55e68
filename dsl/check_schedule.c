/* dsl/check_schedule.c - a schedule: its numbers, that its kernels compute the algorithm in an
 * order that works, and that every dimension has a role that its statements allow. */
#include "dsl/check.h"

#include <stdio.h>

enum {
    POSITIONS = 1 << TG_LQ | 1 << TG_LKV,
    MAX_BLOCK = 512,
    MAX_WARPS = 16,
    MAX_DEPTH = 8,
    MAX_BLOCKS_PER_SM = 16,
    MATRIX_STEP = 16
};

/* One kernel under check. */
struct kernel {
    struct check *check;
    const tg_schedule *schedule;
    const tg_kernel_row *row;
    const char *name;
    struct tg_slice slice;
};

/* ---- numbers: the same rules for a schedule's fields and for a space's values ---- */

const char *tg_block_fault(const struct tg_slice *slice, uint32_t dim, uint32_t block)
{
    const uint32_t bit = 1u << dim;
    if (dim == TG_CHUNK && block > 1)
        return "0 or 1: the blocks of a chunk are those of Lhq and Lkv";
    if (block > MAX_BLOCK)
        return "at most 512";
    if ((bit & POSITIONS) && block == 0)
        return "at least 1: the chunk size is a run-time value, so there is no whole to default to";
    if (slice && (slice->matrix & bit) && block % MATRIX_STEP != 0)
        return "a multiple of 16, as of every dimension of a matrix product";
    return NULL;
}

const char *tg_number_fault(tg_field field, uint32_t value)
{
    switch (field) {
    case TG_FIELD_CHUNK:
        return value >= 1 && value <= UINT16_MAX ? NULL : "1 to 65535";
    case TG_FIELD_WARPS:
        return value >= 1 && value <= MAX_WARPS ? NULL : "1 to 16";
    case TG_FIELD_STAGES:
        return value <= MAX_DEPTH ? NULL : "0 to 8";
    case TG_FIELD_BLOCKS_PER_SM:
        return value <= MAX_BLOCKS_PER_SM ? NULL : "0 to 16";
    default:
        return NULL;
    }
}

static void check_number(const struct kernel *k, const char *field, tg_field id, uint32_t value)
{
    const char *expected = tg_number_fault(id, value);
    if (expected)
        tg_fault(k->check, TG0223, "see dsl/tegula.h", "%s: %s is %u, expected %s", k->name, field,
                 value, expected);
}

/* What can be said of a row without knowing the algorithm. */
static void check_row_alone(const struct kernel *k)
{
    check_number(k, "warps", TG_FIELD_WARPS, k->row->warps);
    check_number(k, "stages", TG_FIELD_STAGES, k->row->stages);
    check_number(k, "blocks_per_sm", TG_FIELD_BLOCKS_PER_SM, k->row->blocks_per_sm);
    if (k->row->mma > TG_MMA_TF32X3)
        tg_fault(k->check, TG0222, "use TG_MMA_NONE, TG_MMA_SYNC or TG_MMA_TF32X3", "%s: mma %u is unknown",
                 k->name, k->row->mma);
    for (uint32_t dim = 0; dim < TG_N_DIMS; dim++)
        if (k->row->row[dim].role > TG_ROLE_W)
            tg_fault(k->check, TG0212, "use TG_P, TG_L or TG_W", "%s: role %u of %s is unknown",
                     k->name, k->row->row[dim].role, tg_dim_name(dim));
    if (k->row->outputs[0] == 0)
        tg_fault(k->check, TG0206, "list the tiles it writes in .outputs", "%s writes nothing",
                 k->name);
}

/* ---- outputs ---- */

static bool is_row_output(const tg_kernel_row *row, uint32_t tile, uint32_t before)
{
    for (uint32_t i = 0; i < before; i++)
        if (row->outputs[i] == tile)
            return true;
    return false;
}

static bool check_outputs(const struct kernel *k)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    bool ok = k->row->outputs[0] != 0;
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && k->row->outputs[i]; i++) {
        struct tg_text text;
        const uint32_t tile = k->row->outputs[i];
        const char *name = tg_tile_text(algorithm, tile, &text);
        if (tg_tile_stmt(algorithm, tile) < 0 || !tg_tile_tensor(algorithm, tile)) {
            tg_fault(k->check, TG0207, "list tiles that a statement writes",
                     "%s writes %s, which no statement computes", k->name, name);
            ok = false;
            continue;
        }
        if (is_row_output(k->row, tile, i))
            tg_fault(k->check, TG0208, "list it once", "%s lists %s twice", k->name, name);
        for (const tg_kernel_row *other = k->schedule->rows; other < k->row; other++)
            if (tg_row_lists(other, tile))
                tg_fault(k->check, TG0208, "let one kernel write it, the others will read it",
                         "%s writes %s, which kernel %u writes too", k->name, name,
                         (uint32_t)(other - k->schedule->rows));
        if (tg_operand_mask(algorithm, (tg_operand)tile) & POSITIONS)
            tg_fault(k->check, TG0211, "write a tile that it is made of, or one made of it",
                     "%s writes %s, whose axes are positions inside a chunk", k->name, name);
    }
    return ok;
}

static void check_order(const struct kernel *k)
{
    for (uint32_t tile = 1; tile < TG_MAX_TILES; tile++) {
        struct tg_text text;
        const int writer = tg_tile_row(k->schedule, tile);
        if (!(k->slice.loads & TG_BIT(tile)) || writer < 0)
            continue;
        const tg_kernel_row *later = &k->schedule->rows[writer];
        if (later > k->row)
            tg_fault(k->check, TG0210, "kernels are launched in the order of the rows: move one",
                     "%s needs %s, which the later kernel %u writes", k->name,
                     tg_tile_text(k->schedule->algorithm, tile, &text), (uint32_t)writer);
    }
}

/* ---- roles ---- */

/* One block covers the dimension, so that a parallel role does not split it. */
static bool is_whole(const struct kernel *k, uint32_t dim)
{
    const uint32_t block = k->row->row[dim].block;
    return 1u << dim & POSITIONS ? block == k->schedule->chunk : block == 0;
}

static bool computes_carry(const struct kernel *k)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    for (uint32_t s = 0; s < algorithm->n_body; s++)
        if ((k->slice.stmts & TG_BIT(s)) && algorithm->body[s].op == TG_STMT_CARRY)
            return true;
    return false;
}

static void check_block(const struct kernel *k, uint32_t dim)
{
    const uint32_t block = k->row->row[dim].block;
    const char *expected = tg_block_fault(&k->slice, dim, block);
    if (!expected)
        return;
    const bool step = block <= MAX_BLOCK && block != 0 && dim != TG_CHUNK;
    tg_fault(k->check, step ? TG0219 : TG0218, "give another block",
             "%s: block %u of %s, expected %s", k->name, block, tg_dim_name(dim), expected);
}

/* Walked means that something is carried from block to block, and the other way round. */
static void check_walk(const struct kernel *k, uint32_t dim, bool carry)
{
    const uint8_t role = k->row->row[dim].role;
    const char *name = tg_dim_name(dim);
    const bool carried = dim == TG_CHUNK ? carry : (k->slice.scanned & 1u << dim) != 0;
    if (role == TG_ROLE_W && !carried)
        tg_fault(k->check, TG0215, "use TG_P or TG_L",
                 "%s: %s is walked, but nothing is carried over it", k->name, name);
    if (role == TG_ROLE_W || role == TG_ROLE_NONE || !carried)
        return;
    if (dim == TG_CHUNK)
        tg_fault(k->check, TG0216, "use TG_W, or let an earlier kernel write the state",
                 "%s: it computes a CARRY, but chunk is not walked", k->name);
    else if (!is_whole(k, dim))
        tg_fault(k->check, TG0216, "use TG_W, or let an earlier kernel write the sums",
                 "%s: it computes a SCAN over %s, which is not walked and not one block", k->name,
                 name);
}

static void check_roles(const struct kernel *k)
{
    const bool carry = computes_carry(k);
    for (uint32_t dim = 1; dim < TG_N_DIMS; dim++) {
        const tg_axis_role *axis = &k->row->row[dim];
        const char *name = tg_dim_name(dim);
        if (dim == TG_SEG || dim == TG_T || axis->role > TG_ROLE_W)
            continue;
        if (!(k->slice.dims & 1u << dim)) {
            if (axis->role != TG_ROLE_NONE || axis->block != 0)
                tg_fault(
                    k->check, TG0214, "remove it",
                    "%s: %s has a role or block, but no statement of this kernel has that axis",
                    k->name, name);
            continue;
        }
        if (axis->role == TG_ROLE_NONE) {
            tg_fault(k->check, TG0213, "give it TG_P, TG_L or TG_W",
                     "%s: %s has no role, but this kernel visits it", k->name, name);
            continue;
        }
        check_block(k, dim);
        check_walk(k, dim, carry);
        if (axis->role == TG_ROLE_P && (k->slice.summed & 1u << dim) && !is_whole(k, dim))
            tg_fault(k->check, TG0217, "use TG_L: thread blocks do not add to one another",
                     "%s: %s is parallel in blocks of %u, but this kernel sums over it", k->name,
                     name, axis->block);
    }
    if (k->row->row[TG_T].role != TG_ROLE_NONE || k->row->row[TG_T].block != 0)
        tg_fault(k->check, TG0214, "give roles to TG_CHUNK, TG_LQ and TG_LKV",
                 "%s: T has a role or block, but kernels visit chunks and positions", k->name);
}

/* A segment starts from a state in memory, and is walked from there. */
static void check_segment(const struct kernel *k)
{
    const tg_axis_role *segment = &k->row->row[TG_SEG];
    const tg_algorithm *algorithm = k->schedule->algorithm;
    if (segment->role == TG_ROLE_NONE && segment->block == 0)
        return;
    bool resumes = segment->role == TG_ROLE_P && k->row->row[TG_CHUNK].role == TG_ROLE_W;
    for (uint32_t s = 0; s < algorithm->n_body; s++) {
        const tg_stmt *stmt = &algorithm->body[s];
        if ((k->slice.stmts & TG_BIT(s)) && stmt->op == TG_STMT_CARRY)
            resumes = resumes && (k->slice.loads & TG_BIT(TG_OPERAND_TILE(stmt->out)));
    }
    if (!resumes || !computes_carry(k))
        tg_fault(k->check, TG0225,
                 "walk chunk, and let an earlier kernel write the state; or leave seg out",
                 "%s: seg has a role or block, but its segments have no states to start from",
                 k->name);
}

static void check_matrix(const struct kernel *k)
{
    if (k->slice.matrix && k->row->mma == TG_MMA_NONE)
        tg_fault(k->check, TG0222, "set .mma = TG_MMA_SYNC",
                 "%s: it computes matrix products, but mma is TG_MMA_NONE", k->name);
    if (!k->slice.matrix && k->row->mma != TG_MMA_NONE)
        tg_fault(k->check, TG0222, "set .mma = TG_MMA_NONE",
                 "%s: it computes no matrix product, but mma is not TG_MMA_NONE", k->name);
}

static void check_crossing(const struct kernel *k)
{
    for (uint32_t tile = 1; tile < TG_MAX_TILES; tile++) {
        struct tg_text text;
        if ((k->slice.crossing & TG_BIT(tile)) && !(is_whole(k, TG_LQ) && is_whole(k, TG_LKV)))
            tg_fault(
                k->check, TG0221, "make both blocks the chunk, or let an earlier kernel write it",
                "%s: %s is computed at one position and read at the other, but Lhq is in blocks of "
                "%u and Lkv of %u, chunk is %u",
                k->name, tg_tile_text(k->schedule->algorithm, tile, &text),
                k->row->row[TG_LQ].block, k->row->row[TG_LKV].block, k->schedule->chunk);
    }
}

/* Blocks of a matrix product must not straddle chunks; a kernel without one masks the end of a chunk. */
static void check_chunk_blocks(const struct kernel *k)
{
    for (uint32_t dim = TG_LQ; k->row->mma != TG_MMA_NONE && dim <= TG_LKV; dim++) {
        const uint32_t block = k->row->row[dim].block;
        if (block && block <= MAX_BLOCK && k->schedule->chunk % block != 0)
            tg_fault(k->check, TG0220, "make chunk a multiple of all blocks of Lhq and Lkv",
                     "%s: chunk is %u, not a multiple of the block %u of %s", k->name,
                     k->schedule->chunk, block, tg_dim_name(dim));
    }
}

/* ---- the whole ---- */

static void check_tensor_count(struct check *check, const tg_schedule *schedule)
{
    uint32_t count = 0;
    for (uint32_t tile = 1; tile < schedule->algorithm->n_tensors; tile++)
        count += (schedule->algorithm->tensors[tile].flags & (TG_IN | TG_OUT)) ||
                 tg_tile_row(schedule, tile) >= 0;
    if (count > TG_MAX_TENSORS)
        tg_fault(check, TG0226, "write fewer intermediates to memory",
                 "%u tensors in memory, at most %d", count, TG_MAX_TENSORS);
}

static void check_written(struct check *check, const tg_schedule *schedule, uint64_t stores)
{
    const tg_algorithm *algorithm = schedule->algorithm;
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        struct tg_text text;
        if ((algorithm->tensors[tile].flags & TG_OUT) && !(stores & TG_BIT(tile)) &&
            tg_tile_row(schedule, tile) < 0)
            tg_fault(check, TG0209, "list it in the .outputs of a kernel",
                     "output %s is written by no kernel", tg_tile_text(algorithm, tile, &text));
    }
}

static void check_row(struct check *check, const tg_schedule *schedule, uint32_t r,
                      bool algorithm_ok, uint64_t *stores)
{
    char name[TG_MAX_IDENTIFIER + 16];
    struct kernel k = {
        .check = check, .schedule = schedule, .row = &schedule->rows[r], .name = name};
    (void)snprintf(name, sizeof name, "kernel %u", r);
    check->line = k.row->line;
    if (tg_check_identifier(check, TG0203, name, k.row->name)) {
        (void)snprintf(name, sizeof name, "kernel %s", k.row->name);
        for (uint32_t other = 0; other < r; other++)
            if (tg_same_name(schedule->rows[other].name, k.row->name))
                tg_fault(check, TG0224, "rename one", "kernels %u and %u are both named '%s'",
                         other, r, k.row->name);
    }
    check_row_alone(&k);
    check_chunk_blocks(&k);
    if (!algorithm_ok || !check_outputs(&k) || !tg_row_slice(schedule, r, &k.slice))
        return;
    *stores |= k.slice.stores;
    check_order(&k);
    check_roles(&k);
    check_segment(&k);
    check_matrix(&k);
    check_crossing(&k);
}

void tg_check_schedule(struct check *check, const tg_schedule *schedule, bool algorithm_ok)
{
    check->file = NULL;
    check->line = 0;
    if (!schedule) {
        tg_fault(check, TG0201, "pass a tg_schedule", "the schedule is NULL");
        return;
    }
    if (!tg_check_header(check, TG0202, "schedule", schedule->struct_size, sizeof *schedule,
                         schedule->version))
        return;
    check->file = schedule->file;
    tg_check_name(check, TG0203, "schedule", schedule->name);
    if (!schedule->algorithm)
        tg_fault(check, TG0205, "set .algorithm", "the schedule has no algorithm");
    const char *expected = tg_number_fault(TG_FIELD_CHUNK, schedule->chunk);
    if (expected)
        tg_fault(check, TG0220, "set .chunk", "chunk is %u, expected %s", schedule->chunk,
                 expected);
    if (schedule->n_rows < 1 || schedule->n_rows > TG_MAX_ROWS) {
        tg_fault(check, TG0204, "set .n_rows", "%u kernels, expected 1 to %d", schedule->n_rows,
                 TG_MAX_ROWS);
        return;
    }
    uint64_t stores = 0;
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        check_row(check, schedule, r, algorithm_ok && schedule->algorithm, &stores);
    check->line = 0;
    if (!algorithm_ok || !schedule->algorithm)
        return;
    check_written(check, schedule, stores);
    check_tensor_count(check, schedule);
}
