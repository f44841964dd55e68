/* dsl/print_schedule.c - a schedule as Table 1 of the TFLA paper with two more columns of sequence
 * levels; and as the canonical text that keys caches. */
#include "dsl/check.h"

#include <stdio.h>
#include <string.h>

/* ---- the table ---- */

enum column { KERNEL, BATCH, SEG, CHUNK, LHQ, LKV, DQK, DHV, MEMBER, WRITES, WARPS, STAGES, MMA, PER_SM, N_COLUMNS };

enum { CELL = (TG_MAX_OUTPUTS + 2) * (TG_MAX_IDENTIFIER + 1) }; /* the widest: what a kernel writes */

struct table {
    char cells[TG_MAX_ROWS + 1][N_COLUMNS][CELL];
    uint32_t n_lines;
    bool hidden[N_COLUMNS]; /* few schedules loop over sequences or heads */
};

static const uint8_t column_dims[N_COLUMNS] = {
    [BATCH] = TG_BATCH, [SEG] = TG_SEG, [CHUNK] = TG_CHUNK, [LHQ] = TG_LQ,
    [LKV] = TG_LKV,     [DQK] = TG_DQK, [DHV] = TG_DHV,     [MEMBER] = TG_MEMBER,
};

/* "P", "C" that adds up, "M2" that shares what it loads, "CM2" */
static void role_text(char text[8], tg_axis_role axis)
{
    static const char letters[] = {'.', 'P', 'L', 'W', 'R'};
    const uint32_t sharing = tg_sharing(axis);
    const char *adds = axis.cluster & TG_ADDS ? "C" : "";
    if (sharing)
        (void)snprintf(text, 8, "%sM%u", adds, sharing);
    else
        (void)snprintf(text, 8, "%c", *adds ? *adds : axis.role < sizeof letters ? letters[axis.role] : '?');
}

/* "P 128", "W", "." */
static void fill_role(char cell[CELL], tg_axis_role axis, uint32_t dim)
{
    char role[8];
    const bool single = dim == TG_CHUNK || dim == TG_BATCH || dim == TG_MEMBER;
    const bool plain = axis.block == 0 || (single && axis.block == 1);
    role_text(role, axis);
    if (plain)
        (void)snprintf(cell, CELL, "%s", role);
    else
        (void)snprintf(cell, CELL, "%s %u", role, axis.block);
}

/* The tiles it writes: those it lists and the final states that follow from them. */
static void fill_writes(char cell[CELL], const tg_schedule *schedule, uint32_t row)
{
    struct tg_slice slice;
    tg_bits stores = 0;
    size_t used = 0;
    if (!schedule->algorithm || schedule->algorithm->struct_size != sizeof *schedule->algorithm)
        return;
    if (tg_row_slice(schedule, row, &slice))
        stores = slice.stores;
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS; i++)
        if (schedule->rows[row].outputs[i] && schedule->rows[row].outputs[i] < TG_MAX_TILES)
            stores |= TG_BIT(schedule->rows[row].outputs[i]);
    for (uint32_t tile = 1; tile < TG_MAX_TILES; tile++) {
        struct tg_text text;
        if (!(stores & TG_BIT(tile)) || used >= CELL)
            continue;
        used += (size_t)snprintf(cell + used, CELL - used, "%s%s", used ? " " : "",
                                 tg_tile_text(schedule->algorithm, tile, &text));
    }
}

static void fill_row(struct table *table, const tg_schedule *schedule, uint32_t r)
{
    const tg_kernel_row *row = &schedule->rows[r];
    char(*cells)[CELL] = table->cells[table->n_lines++];
    const bool named = tg_is_name(row->name, TG_MAX_IDENTIFIER, false);
    (void)snprintf(cells[KERNEL], CELL, "%s", named ? row->name : "?");
    for (uint32_t column = BATCH; column <= MEMBER; column++)
        fill_role(cells[column], row->row[column_dims[column]], column_dims[column]);
    table->hidden[BATCH] = table->hidden[BATCH] && row->row[TG_BATCH].role == TG_ROLE_NONE;
    table->hidden[MEMBER] = table->hidden[MEMBER] && row->row[TG_MEMBER].role == TG_ROLE_NONE;
    fill_writes(cells[WRITES], schedule, r);
    if (row->makers)
        (void)snprintf(cells[WARPS], CELL, "%u+%u", row->warps, row->makers);
    else
        (void)snprintf(cells[WARPS], CELL, "%u", row->warps);
    if (!row->stages && row->mma == TG_MMA_WGMMA)
        (void)snprintf(cells[STAGES], CELL, "2-3");
    else
        (void)snprintf(cells[STAGES], CELL, "%u", row->stages ? row->stages : 2);
    (void)snprintf(cells[MMA], CELL, "%s",
                   row->mma == TG_MMA_NONE     ? "."
                   : row->mma == TG_MMA_SYNC   ? "sync"
                   : row->mma == TG_MMA_TF32X3 ? "tf32x3"
                   : row->mma == TG_MMA_WGMMA  ? "wgmma"
                                               : "?");
    if (row->blocks_per_sm)
        (void)snprintf(cells[PER_SM], CELL, "%u", row->blocks_per_sm);
    else
        (void)snprintf(cells[PER_SM], CELL, ".");
}

static void print_table(const struct table *table, const tg_writer *writer)
{
    size_t widths[N_COLUMNS] = {0};
    for (uint32_t line = 0; line < table->n_lines; line++)
        for (uint32_t c = 0; c < N_COLUMNS; c++)
            if (strlen(table->cells[line][c]) > widths[c])
                widths[c] = strlen(table->cells[line][c]);
    for (uint32_t line = 0; line < table->n_lines; line++) {
        for (uint32_t c = 0; c < N_COLUMNS; c++) {
            if (table->hidden[c])
                continue;
            const char *gap = c == 0 ? "  " : c == WRITES || c == WARPS ? " | " : "  ";
            const int width = c + 1 < N_COLUMNS ? (int)widths[c] : 0;
            tg_printf(writer, "%s%-*s", gap, width, table->cells[line][c]);
        }
        tg_printf(writer, "\n");
    }
}

/* "tfla, chunk 128, at most 16 tokens, in 4 pieces, keeps C N" */
static void print_title(const tg_schedule *schedule, const tg_writer *writer)
{
    const bool named = tg_is_name(schedule->name, TG_MAX_NAME, true);
    const tg_algorithm *algorithm = schedule->algorithm;
    const char *separator = ", keeps";
    tg_printf(writer, "%s, chunk %u", named ? schedule->name : "(no name)", schedule->chunk);
    if (schedule->max_tokens)
        tg_printf(writer, ", at most %u tokens", schedule->max_tokens);
    if (schedule->pieces > 1)
        tg_printf(writer, ", in %u pieces", schedule->pieces);
    for (uint32_t i = 0; i < TG_MAX_KEPT && algorithm; i++) {
        struct tg_text text;
        if (schedule->kept[i] == 0 || algorithm->struct_size != sizeof *algorithm)
            continue;
        tg_printf(writer, "%s %s", separator, tg_tile_text(algorithm, schedule->kept[i], &text));
        separator = "";
    }
    tg_printf(writer, "\n");
}

void tg_schedule_print(const tg_schedule *schedule, const tg_writer *writer)
{
    static const char *const titles[N_COLUMNS] = {
        "kernel", "batch",  "seg",    "chunk", "Lhq",    "Lkv", "dqk",
        "dhv",    "member", "writes", "warps", "stages", "mma", "per SM",
    };
    if (!schedule || schedule->struct_size != sizeof *schedule) {
        tg_printf(writer, "(no schedule of this version)\n");
        return;
    }
    struct table table;
    memset(&table, 0, sizeof table);
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        (void)snprintf(table.cells[0][c], CELL, "%s", titles[c]);
    table.n_lines = 1;
    table.hidden[BATCH] = table.hidden[MEMBER] = true;
    for (uint32_t r = 0; r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        fill_row(&table, schedule, r);
    print_title(schedule, writer);
    print_table(&table, writer);
}

/* ---- the key ---- */

static void key_tensor(const tg_schedule *schedule, uint32_t tile, const tg_writer *writer)
{
    const tg_tensor *tensor = &schedule->algorithm->tensors[tile];
    if (tg_tensor_unused(tensor))
        return;
    tg_printf(writer, "t%u:%u,%u", tile, tensor->dtype ? tensor->dtype : TG_F32, tensor->flags);
    for (uint32_t i = 0; i < TG_MAX_AXES; i++)
        tg_printf(writer, ",%u", tensor->axes[i]);
    /* The caller finds tensors by name: those names are part of what is generated. */
    const bool is_public = (tensor->flags & (TG_IN | TG_OUT)) || tg_tile_kept(schedule, tile);
    if (is_public && tg_is_name(tensor->name, TG_MAX_IDENTIFIER, false))
        tg_printf(writer, ",%s", tensor->name);
    tg_printf(writer, ";");
}

static void key_stmt(const tg_stmt *stmt, const tg_writer *writer)
{
    tg_printf(writer, "s%u:%u,%x,%x,%x,%x,%x,%x", stmt->op, stmt->flags, stmt->out, stmt->a, stmt->b, stmt->init,
              stmt->decay, stmt->final_);
    if (stmt->since)
        tg_printf(writer, ",~%x", stmt->since);
    if (stmt->transition)
        tg_printf(writer, ",*%x", stmt->transition);
    if (stmt->transposed)
        tg_printf(writer, ",'%x", stmt->transposed);
    if (stmt->behind)
        tg_printf(writer, ",>%x", stmt->behind);
    if (stmt->same)
        tg_printf(writer, ",=%x", stmt->same);
    const uint32_t length = tg_expr_length(stmt);
    for (uint32_t i = 0; i < length; i++) {
        const tg_x *x = &stmt->expr[i];
        tg_printf(writer, ",%u", x->op);
        if (x->op == TG_X_TILE || x->op == TG_X_SCALAR || x->op == TG_X_SIZE)
            tg_printf(writer, ":%x", x->operand);
        if (x->op == TG_X_NUMBER)
            tg_printf(writer, ":%a", (double)x->number);
    }
    tg_printf(writer, ";");
}

/* What a caller sees of them: names and defaults. */
static void key_scalars(const tg_algorithm *algorithm, const tg_writer *writer)
{
    for (uint32_t i = 0; i < tg_scalar_count(algorithm); i++) {
        struct tg_text text;
        const float value = algorithm->scalars ? algorithm->scalars[i].value : 0.0f;
        tg_printf(writer, "n%s,%a;", tg_scalar_text(algorithm, i, &text), (double)value);
    }
}

static void key_row(const tg_kernel_row *row, const tg_writer *writer)
{
    tg_printf(writer, "k:");
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && row->outputs[i]; i++)
        tg_printf(writer, "%s%u", i ? "," : "", row->outputs[i]);
    for (uint32_t dim = 0; dim < TG_N_DIMS; dim++) {
        const tg_axis_role *axis = &row->row[dim];
        tg_printf(writer, ",%u/%u%s", axis->role, axis->block, axis->cluster & TG_ADDS ? "c" : "");
        if (tg_sharing(*axis))
            tg_printf(writer, "m%u", tg_sharing(*axis));
    }
    tg_printf(writer, ",%u,%u,%u,%u", row->mma, row->warps, row->stages, row->blocks_per_sm);
    if (row->makers)
        tg_printf(writer, ",%u", row->makers);
    tg_printf(writer, ";");
}

void tg_schedule_key(const tg_schedule *schedule, const tg_writer *writer)
{
    if (!schedule || schedule->struct_size != sizeof *schedule)
        return;
    const tg_algorithm *algorithm = schedule->algorithm;
    tg_printf(writer, "tegula-dsl %d;", TG_DSL_VERSION);
    if (algorithm && algorithm->struct_size == sizeof *algorithm && algorithm->tensors && algorithm->body) {
        for (uint32_t tile = 1; tile < algorithm->n_tensors && tile < TG_MAX_TILES; tile++)
            key_tensor(schedule, tile, writer);
        for (uint32_t s = 0; s < algorithm->n_body && s < TG_MAX_BODY; s++)
            key_stmt(&algorithm->body[s], writer);
        key_scalars(algorithm, writer);
    }
    tg_printf(writer, "c%u,%u;", schedule->chunk, schedule->max_tokens);
    if (schedule->pieces > 1)
        tg_printf(writer, "p%u;", schedule->pieces);
    for (uint32_t i = 0; i < TG_MAX_KEPT; i++)
        if (schedule->kept[i])
            tg_printf(writer, "e%u;", schedule->kept[i]);
    for (uint32_t r = 0; r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        key_row(&schedule->rows[r], writer);
}
