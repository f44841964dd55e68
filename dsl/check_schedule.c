/* dsl/check_schedule.c - a schedule: its numbers, what it keeps, and that its kernels compute the
 * algorithm in an order that works. Roles and blocks are check_roles.c. */
#include "dsl/check.h"

#include <stdio.h>

enum { POSITIONS = 1 << TG_LQ | 1 << TG_LKV, MAX_WARPS = 16, MAX_DEPTH = 8, MAX_BLOCKS_PER_SM = 16, MATRIX_STEP = 16 };

/* ---- numbers: the same rules for a schedule's fields and for a space's values ---- */

const char *tg_block_fault(const tg_kernel_row *row, const struct tg_slice *slice, uint32_t dim, uint32_t block)
{
    const uint32_t bit = 1u << dim;
    const bool threads = row->mma == TG_MMA_NONE; /* its rules need the whole row: check_roles.c */
    const bool together = dim == TG_MEMBER && row->mma == TG_MMA_WGMMA && row->row[dim].role == TG_ROLE_P;
    if ((dim == TG_BATCH || dim == TG_MEMBER) && block > 1 && !together)
        return "0 or 1: sequences and heads go one after the other, or of a kernel on warpgroups heads with TG_P";
    if (dim == TG_CHUNK && block > 1 && !threads)
        return "0 or 1: the blocks of a chunk are those of Lhq and Lkv";
    if (block > TG_MAX_BLOCK)
        return "at most 512";
    if ((bit & POSITIONS) && block == 0 && !threads)
        return "at least 1: the chunk size is a run-time value, so there is no whole to default to";
    if (slice && (slice->matrix & bit) && block % MATRIX_STEP != 0 && !threads)
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
    case TG_FIELD_SEGMENT:
        return value <= TG_MAX_BLOCK ? NULL : "0 to 512";
    case TG_FIELD_PIECES:
        return value <= TG_MAX_PIECES ? NULL : "0 to 8";
    case TG_FIELD_MMA:
        return value <= TG_MMA_WGMMA ? NULL : "a tg_mma";
    case TG_FIELD_ROLE:
        return value <= TG_ROLE_R ? NULL : "a tg_role";
    case TG_FIELD_CLUSTER:
        return value <= 4 ? NULL : "TG_ADDS, 2, 4, or TG_ADDS and 2";
    case TG_FIELD_STAGES:
        return value <= MAX_DEPTH ? NULL : "0 to 8";
    case TG_FIELD_BLOCKS_PER_SM:
        return value <= MAX_BLOCKS_PER_SM ? NULL : "0 to 16";
    case TG_FIELD_MAKERS:
        return value == 0 || value == 4 ? NULL : "0 or 4";
    default:
        return NULL;
    }
}

static void check_number(const struct kernel *k, const char *field, tg_field id, uint32_t value)
{
    const char *expected = tg_number_fault(id, value);
    if (expected)
        tg_fault(k->check, TG0223, "see dsl/tegula.h", "%s: %s is %u, expected %s", k->name, field, value, expected);
}

/* What can be said of a row without knowing the algorithm. */
static void check_row_alone(const struct kernel *k)
{
    check_number(k, "warps", TG_FIELD_WARPS, k->row->warps);
    check_number(k, "stages", TG_FIELD_STAGES, k->row->stages);
    check_number(k, "blocks_per_sm", TG_FIELD_BLOCKS_PER_SM, k->row->blocks_per_sm);
    check_number(k, "makers", TG_FIELD_MAKERS, k->row->makers);
    if (k->row->makers && k->row->mma != TG_MMA_WGMMA)
        tg_fault(k->check, TG0223, "set .mma to TG_MMA_WGMMA, or leave .makers out",
                 "%s: makers is %u without TG_MMA_WGMMA, expected 0", k->name, k->row->makers);
    if (k->row->mma > TG_MMA_WGMMA)
        tg_fault(k->check, TG0222, "use TG_MMA_NONE, TG_MMA_SYNC, TG_MMA_TF32X3 or TG_MMA_WGMMA",
                 "%s: mma %u is unknown", k->name, k->row->mma);
    for (uint32_t dim = 0; dim < TG_N_DIMS; dim++)
        if (k->row->row[dim].role > TG_ROLE_R)
            tg_fault(k->check, TG0212, "use TG_P, TG_L or TG_W", "%s: role %u of %s is unknown", k->name,
                     k->row->row[dim].role, tg_dim_name(dim));
        else if (k->row->row[dim].role == TG_ROLE_R && dim != TG_SEG)
            tg_fault(k->check, TG0212, "use TG_P, TG_L or TG_W", "%s: %s is relayed; only seg can be relayed", k->name,
                     tg_dim_name(dim));
    if (k->row->outputs[0] == 0)
        tg_fault(k->check, TG0206, "list the tiles it writes in .outputs", "%s writes nothing", k->name);
}

/* ---- outputs ---- */

static bool lists_before(const tg_kernel_row *row, uint32_t tile, uint32_t before)
{
    for (uint32_t i = 0; i < before; i++)
        if (row->outputs[i] == tile)
            return true;
    return false;
}

/* The one row that may write what another has written: the states of its segments. */
static bool composes(const struct kernel *k, uint32_t other, uint32_t tile)
{
    return tg_row_makes_segments(k->schedule, other) &&
           tg_composing_row(k->schedule, other, tile) == (int)(k->row - k->schedule->rows);
}

/* A row that composes segments makes nothing but states of them. */
static bool check_composed(const struct kernel *k, uint32_t tile, const char *name)
{
    const bool ok = tg_tile_is_state(k->schedule->algorithm, tile) ||
                    !tg_row_composes_segments(k->schedule, (uint32_t)(k->row - k->schedule->rows));
    if (!ok)
        tg_fault(k->check, TG0242, "let another kernel write it",
                 "%s writes %s, which is no state, but walks segments without chunk to compose their states", k->name,
                 name);
    return ok;
}

/* Such a tile has one column for every position of a chunk, whose size a decode step does not fix. */
static bool is_square_of_step(const tg_schedule *schedule, uint32_t tile)
{
    return schedule->max_tokens && tg_tile_is_square(schedule->algorithm, tile);
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
        ok = check_composed(k, tile, name) && ok;
        if (lists_before(k->row, tile, i))
            tg_fault(k->check, TG0208, "list it once", "%s lists %s twice", k->name, name);
        for (const tg_kernel_row *other = k->schedule->rows; other < k->row; other++)
            if (tg_row_lists(other, tile) && !composes(k, (uint32_t)(other - k->schedule->rows), tile))
                tg_fault(k->check, TG0208, "let one kernel write it, the others will read it",
                         "%s writes %s, which kernel %u writes too", k->name, name,
                         (uint32_t)(other - k->schedule->rows));
        if ((tg_operand_mask(algorithm, (tg_operand)tile) & POSITIONS) && !tg_tile_is_square(algorithm, tile))
            tg_fault(k->check, TG0211, "give it the axes TG_T, TG_LKV, or write a tile that it is made of",
                     "%s writes %s, whose axes are positions inside a chunk", k->name, name);
        if (is_square_of_step(k->schedule, tile))
            tg_fault(k->check, TG0211, "let it stay on chip",
                     "%s writes %s, positions by positions, for which a decode step has no memory", k->name, name);
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

/* Blocks of a matrix product must not straddle chunks; a kernel without one masks the end of a
 * chunk. */
static void check_chunk_blocks(const struct kernel *k)
{
    for (uint32_t dim = TG_LQ; k->row->mma != TG_MMA_NONE && dim <= TG_LKV; dim++) {
        const uint32_t block = k->row->row[dim].block;
        if (block && block <= TG_MAX_BLOCK && k->schedule->chunk % block != 0)
            tg_fault(k->check, TG0220, "make chunk a multiple of all blocks of Lhq and Lkv",
                     "%s: chunk is %u, not a multiple of the block %u of %s", k->name, k->schedule->chunk, block,
                     tg_dim_name(dim));
    }
}

/* ---- the whole ---- */

static void check_tensor_count(struct check *check, const tg_schedule *schedule)
{
    uint32_t count = 0;
    for (uint32_t tile = 1; tile < schedule->algorithm->n_tensors; tile++)
        count += (schedule->algorithm->tensors[tile].flags & (TG_IN | TG_OUT)) || tg_tile_row(schedule, tile) >= 0 ||
                 tg_tile_kept(schedule, tile);
    if (count > TG_MAX_TENSORS)
        tg_fault(check, TG0226, "write fewer intermediates to memory", "%u tensors in memory, at most %d", count,
                 TG_MAX_TENSORS);
}

/* The caller has memory for intermediates that some statement computes, each once. */
static void check_kept(struct check *check, const tg_schedule *schedule)
{
    const tg_algorithm *algorithm = schedule->algorithm;
    for (uint32_t i = 0; i < TG_MAX_KEPT; i++) {
        struct tg_text text;
        const uint32_t tile = schedule->kept[i];
        const tg_tensor *tensor = tg_tile_tensor(algorithm, tile);
        const char *name = tg_tile_text(algorithm, tile, &text);
        const char *fault = NULL;
        if (tile == 0)
            continue;
        if (!tensor || tg_tensor_unused(tensor))
            fault = "which does not exist";
        else if (tensor->flags & (TG_IN | TG_OUT))
            fault = "which is a tensor of the caller already";
        else if (tg_tile_stmt(algorithm, tile) < 0)
            fault = "which no statement computes";
        else if (!tg_tile_has_t(algorithm, tile) && (tg_operand_mask(algorithm, (tg_operand)tile) & POSITIONS))
            fault = "whose axes are positions inside a chunk";
        else if (is_square_of_step(schedule, tile))
            fault = "positions by positions, for which a decode step has no memory";
        if (fault)
            tg_fault(check, TG0237, "keep intermediates that a statement writes", "kept: %s, %s", name, fault);
        for (uint32_t before = 0; before < i; before++)
            if (schedule->kept[before] == tile)
                tg_fault(check, TG0238, "list it once", "kept: %s is listed twice", name);
    }
}

static void check_kept_used(struct check *check, const tg_schedule *schedule, tg_bits used)
{
    for (uint32_t i = 0; i < TG_MAX_KEPT; i++) {
        struct tg_text text;
        const uint32_t tile = schedule->kept[i];
        if (tg_tile_tensor(schedule->algorithm, tile) && !(used & TG_BIT(tile)))
            tg_warn(check, TG0239, "remove it from .kept", "kept: no kernel writes or reads %s",
                    tg_tile_text(schedule->algorithm, tile, &text));
    }
}

static void check_written(struct check *check, const tg_schedule *schedule, tg_bits stores)
{
    const tg_algorithm *algorithm = schedule->algorithm;
    const char *more = check->uncounted;
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        struct tg_text text;
        if ((algorithm->tensors[tile].flags & TG_OUT) && !(stores & TG_BIT(tile)) && tg_tile_row(schedule, tile) < 0)
            tg_fault(check, TG0209, more ? "set .n_rows" : "list it in the .outputs of a kernel",
                     "output %s is written by no kernel%s%.31s", tg_tile_text(algorithm, tile, &text),
                     more ? "; behind those of .n_rows there is another: " : "", more ? more : "");
    }
}

static int last_row(const tg_schedule *schedule, const struct tg_slices *slices, uint32_t tile, bool stores)
{
    int last = -1;
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        if ((stores ? slices->rows[r].stores : slices->rows[r].loads) & TG_BIT(tile))
            last = (int)r;
    return last;
}

/* A final state may be where the initial one was, in a slot of a pool it is: nobody begins with that any more. */
static void check_in_place(struct check *check, const tg_schedule *schedule, const struct tg_slices *slices)
{
    const tg_algorithm *algorithm = schedule->algorithm;
    for (uint32_t s = 0; s < algorithm->n_body; s++) {
        const tg_stmt *stmt = &algorithm->body[s];
        const uint32_t init = TG_OPERAND_TILE(stmt->init), final_ = TG_OPERAND_TILE(stmt->final_);
        struct tg_text from, to;
        if (!tg_stmt_has_final(stmt) || !init || !final_)
            continue;
        const int reader = last_row(schedule, slices, init, false), writer = last_row(schedule, slices, final_, true);
        if (writer < 0 || reader <= writer)
            continue;
        check->line = schedule->rows[writer].line;
        tg_fault(check, TG0248, "list it in the last kernel that begins with the other",
                 "kernel %s writes %s, which may be where %s was, before kernel %s reads that",
                 schedule->rows[writer].name, tg_tile_text(algorithm, final_, &to),
                 tg_tile_text(algorithm, init, &from), schedule->rows[reader].name);
    }
}

/* `slices` is NULL where the algorithm is not sound. */
static void check_row(struct check *check, const tg_schedule *schedule, uint32_t r, const struct tg_slices *slices,
                      tg_bits *stores, tg_bits *loads)
{
    char name[TG_MAX_IDENTIFIER + 16];
    struct kernel k = {.check = check, .schedule = schedule, .row = &schedule->rows[r], .name = name};
    (void)snprintf(name, sizeof name, "kernel %u", r);
    check->line = k.row->line;
    if (tg_check_identifier(check, TG0203, name, k.row->name)) {
        (void)snprintf(name, sizeof name, "kernel %s", k.row->name);
        for (uint32_t other = 0; slices && other < r; other++) /* else rows of several algorithms */
            if (tg_same_name(schedule->rows[other].name, k.row->name))
                tg_fault(check, TG0224, "rename one", "kernels %u and %u are both named '%s'", other, r, k.row->name);
    }
    check_row_alone(&k);
    check_chunk_blocks(&k);
    if (!slices || !check_outputs(&k) || !(slices->good >> r & 1))
        return;
    k.slice = slices->rows[r];
    *stores |= k.slice.stores;
    *loads |= k.slice.loads;
    check_order(&k);
    tg_check_roles(&k);
    tg_check_pieces(&k);
}

void tg_check_schedule(struct check *check, const tg_schedule *schedule, bool algorithm_ok)
{
    check->file = NULL;
    check->line = 0;
    if (!schedule) {
        tg_fault(check, TG0201, "pass a tg_schedule", "the schedule is NULL");
        return;
    }
    if (!tg_check_header(check, TG0202, "schedule", schedule->struct_size, sizeof *schedule, schedule->version))
        return;
    check->file = schedule->file;
    tg_check_name(check, TG0203, "schedule", schedule->name);
    if (!schedule->algorithm)
        tg_fault(check, TG0205, "set .algorithm", "the schedule has no algorithm");
    const char *expected = tg_number_fault(TG_FIELD_CHUNK, schedule->chunk);
    if (expected)
        tg_fault(check, TG0220, "set .chunk", "chunk is %u, expected %s", schedule->chunk, expected);
    if (schedule->max_tokens > UINT16_MAX)
        tg_fault(check, TG0236, "set .max_tokens, or leave it out", "max_tokens is %u, expected 0 to %d",
                 schedule->max_tokens, UINT16_MAX);
    expected = tg_number_fault(TG_FIELD_PIECES, schedule->pieces);
    if (expected)
        tg_fault(check, TG0250, "set .pieces, or leave it out", "pieces is %u, expected %s", schedule->pieces,
                 expected);
    if (schedule->n_rows < 1 || schedule->n_rows > TG_MAX_ROWS) {
        tg_fault(check, TG0204, "set .n_rows", "%u kernels, expected 1 to %d", schedule->n_rows, TG_MAX_ROWS);
        return;
    }
    const uint32_t before = check->errors;
    tg_bits stores = 0, loads = 0;
    if (algorithm_ok && schedule->algorithm)
        check_kept(check, schedule);
    struct tg_slices slices;
    const bool is_sliced = algorithm_ok && schedule->algorithm;
    if (is_sliced)
        tg_schedule_slice(schedule, TG_MAX_ROWS, &slices);
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        check_row(check, schedule, r, is_sliced ? &slices : NULL, &stores, &loads);
    check->line = 0;
    if (!algorithm_ok || !schedule->algorithm)
        return;
    if (check->errors == before) {
        check_kept_used(check, schedule, stores | loads);
        check_in_place(check, schedule, &slices);
    }
    check_written(check, schedule, stores);
    check_tensor_count(check, schedule);
}
