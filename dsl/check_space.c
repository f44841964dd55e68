/* dsl/check_space.c - a tuning space: fields that exist, values that they can have. */
#include "dsl/check.h"
#include "dsl/fields.h"

#include <stdio.h>

enum { MAX_VARY = 256 };

/* One row of the space under check. */
struct varied {
    struct check *check;
    const tg_space *space;
    const tg_vary *vary;
    struct tg_field_at at;
    char name[48];
};

static uint32_t value_count(const tg_vary *vary)
{
    uint32_t count = 0;
    while (count < TG_MAX_VALUES && vary->values[count])
        count++;
    return count;
}

static bool has_value(const tg_vary *vary, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (vary->values[i] == value)
            return true;
    return false;
}

static bool is_visited(const tg_schedule *schedule, struct tg_field_at at)
{
    return at.field != TG_FIELD_BLOCK || schedule->rows[at.row].row[at.dim].role != TG_ROLE_NONE;
}

/* The field exists in the schedule; sets its name for messages. */
static bool check_field(struct varied *v)
{
    const tg_schedule *schedule = v->space->schedule;
    const tg_vary *vary = v->vary;
    v->at = (struct tg_field_at){vary->field, vary->row, vary->dim};
    if (vary->field == TG_FIELD_CHUNK)
        v->at.row = v->at.dim = 0;
    if (vary->field == TG_FIELD_NONE || vary->field > TG_FIELD_BLOCKS_PER_SM) {
        tg_fault(v->check, TG0306, "use the TG_FIELD_ values", "field %u is unknown", vary->field);
        return false;
    }
    (void)snprintf(v->name, sizeof v->name, "%s of row %u", tg_field_name(v->at), vary->row);
    if (vary->field == TG_FIELD_CHUNK) {
        (void)snprintf(v->name, sizeof v->name, "chunk");
        return true;
    }
    if (vary->row >= schedule->n_rows || vary->row >= TG_MAX_ROWS) {
        tg_fault(v->check, TG0307, "rows are numbered from 0", "%s: the schedule has %u kernels", v->name,
                 schedule->n_rows);
        return false;
    }
    if (!tg_field_exists(schedule, v->at) || !is_visited(schedule, v->at)) {
        tg_fault(v->check, TG0308, "vary the block of a dimension that has a role in that row",
                 "%s: the dimension has no role there", v->name);
        return false;
    }
    for (uint32_t r = 0; r < 32; r++) {
        const struct tg_field_at other = {vary->field, (uint8_t)r, vary->dim};
        if (!(vary->also >> r & 1) || (tg_field_exists(schedule, other) && is_visited(schedule, other)))
            continue;
        tg_fault(v->check, TG0308, "name rows that have that field in .also", "%s: row %u of .also has no such field",
                 v->name, r);
        return false;
    }
    return true;
}

static void check_values(const struct varied *v, bool schedule_ok)
{
    const uint32_t count = value_count(v->vary);
    struct tg_slice slice;
    const bool sliced =
        schedule_ok && v->at.field != TG_FIELD_CHUNK && tg_row_slice(v->space->schedule, v->at.row, &slice);
    if (count == 0)
        tg_fault(v->check, TG0309, "the values end at the first 0", "%s has no values", v->name);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t value = v->vary->values[i];
        const char *expected = v->at.field == TG_FIELD_BLOCK ? tg_block_fault(&v->space->schedule->rows[v->at.row],
                                                                              sliced ? &slice : NULL, v->at.dim, value)
                                                             : tg_number_fault((tg_field)v->at.field, value);
        if (expected)
            tg_fault(v->check, TG0311, "give another value", "%s: value %u, expected %s", v->name, value, expected);
        if (has_value(v->vary, i, value))
            tg_fault(v->check, TG0310, "give it once", "%s: value %u is given twice", v->name, value);
    }
}

static void check_twice(const struct varied *v)
{
    for (const tg_vary *other = v->space->vary; other < v->vary; other++)
        if (other->field == v->vary->field &&
            (other->field == TG_FIELD_CHUNK ||
             (other->row == v->at.row && (other->field != TG_FIELD_BLOCK || other->dim == v->at.dim))))
            tg_fault(v->check, TG0312, "put all values in one row", "%s is varied already at line %d", v->name,
                     other->line);
}

/* A chunk size that no choice of this block divides. */
static void check_divides(const struct varied *v, uint32_t row, uint32_t dim)
{
    const tg_schedule *schedule = v->space->schedule;
    const struct tg_field_at at = {TG_FIELD_BLOCK, (uint8_t)row, (uint8_t)dim};
    const tg_vary *blocks = NULL;
    for (uint32_t i = 0; i < v->space->n_vary; i++)
        if (v->space->vary[i].field == TG_FIELD_BLOCK && v->space->vary[i].row == row && v->space->vary[i].dim == dim)
            blocks = &v->space->vary[i];
    const uint32_t fixed = tg_field_get(schedule, at);
    const uint32_t count = value_count(v->vary), n_blocks = blocks ? value_count(blocks) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t chunk = v->vary->values[i];
        bool fits = !blocks && (fixed == 0 || chunk % fixed == 0);
        for (uint32_t b = 0; b < n_blocks; b++)
            fits = fits || chunk % blocks->values[b] == 0;
        if (!fits)
            tg_warn(v->check, TG0313, "remove it, or vary the block too",
                    "chunk: value %u is no multiple of any block of %s in row %u, %s", chunk, tg_dim_name(dim), row,
                    blocks ? "which is varied" : "which is fixed");
    }
}

static void check_row(struct check *check, const tg_space *space, const tg_vary *vary, bool schedule_ok)
{
    struct varied v = {.check = check, .space = space, .vary = vary};
    check->line = vary->line;
    if (!check_field(&v))
        return;
    check_values(&v, schedule_ok);
    check_twice(&v);
    const uint32_t n_rows = schedule_ok ? space->schedule->n_rows : 0;
    for (uint32_t row = 0; v.at.field == TG_FIELD_CHUNK && row < n_rows; row++)
        for (uint32_t dim = TG_LQ; dim <= TG_LKV; dim++)
            if (space->schedule->rows[row].mma != TG_MMA_NONE)
                check_divides(&v, row, dim);
}

void tg_check_space(struct check *check, const tg_space *space, bool schedule_ok)
{
    check->file = NULL;
    check->line = 0;
    if (!space) {
        tg_fault(check, TG0301, "pass a tg_space", "the tuning space is NULL");
        return;
    }
    if (!tg_check_header(check, TG0302, "tuning space", space->struct_size, sizeof *space, space->version))
        return;
    check->file = space->file;
    tg_check_name(check, TG0303, "tuning space", space->name);
    if (!space->schedule)
        tg_fault(check, TG0304, "set .schedule", "the tuning space has no schedule");
    const bool vary_ok = space->vary && space->n_vary >= 1 && space->n_vary <= MAX_VARY;
    if (!vary_ok)
        tg_fault(check, TG0305, "use TG_COUNT(vary)", "%u varied fields%s, expected 1 to %d", space->n_vary,
                 space->vary ? "" : " (the array is NULL)", MAX_VARY);
    if (!vary_ok || !space->schedule || space->schedule->struct_size != sizeof *space->schedule)
        return;
    for (uint32_t i = 0; i < space->n_vary; i++)
        check_row(check, space, &space->vary[i], schedule_ok);
    check->line = 0;
}
