/* dsl/check_space.c - a tuning space: fields that exist, values that they can have. */
#include "dsl/bind.h"
#include "dsl/check.h"
#include "dsl/fields.h"

#include <stdio.h>

enum { MAX_VARY = 256 };

/* One row of the space under check. */
struct varied {
    struct check *check;
    const tg_space *space;
    const tg_vary *vary;
    const tg_schedule *schedule; /* the first point that has the field; as declared where it was not found good */
    struct tg_field_at at;       /* in that */
    bool is_bound;
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

/* Finds a point that has the field. */
static bool find_point(struct varied *v, const struct tg_table *table, tg_schedule *bound)
{
    const tg_point *point;
    v->schedule = v->space->schedule;
    v->is_bound = table != NULL;
    for (uint32_t at = 0; table && tg_point_next(table, &at, &point);) {
        if (tg_point_bind(table, point, NULL, bound, NULL) == TG_OK && tg_vary_at(bound, v->vary, &v->at)) {
            v->schedule = bound;
            return true;
        }
    }
    return !table && tg_vary_at(v->schedule, v->vary, &v->at);
}

/* Has a point for other algorithms the field? Their checks say what is wrong with it. */
static bool is_of_others(const struct varied *v)
{
    for (const tg_point *point = v->space->schedule->points; point && point->name; point++) {
        tg_schedule changed = *v->space->schedule;
        struct tg_field_at at;
        if (point->changes && tg_schedule_apply(point->changes, &changed, NULL) == TG_OK &&
            tg_vary_at(&changed, v->vary, &at))
            return true;
    }
    return false;
}

/* The field exists in the schedule; sets its name for messages. */
static bool check_field(struct varied *v, const struct tg_table *table, tg_schedule *bound)
{
    const tg_vary *vary = v->vary;
    if (vary->field == TG_FIELD_NONE || vary->field > TG_FIELD_CLUSTER) {
        tg_fault(v->check, TG0306, "use the TG_FIELD_ values", "field %u is unknown", vary->field);
        return false;
    }
    const char *field = tg_field_name((struct tg_field_at){.field = vary->field, .dim = vary->dim});
    (void)snprintf(v->name, sizeof v->name, "%s", field);
    for (uint32_t i = 0; tg_field_is_of_row(vary->field) && i < TG_MAX_VARIED && (i == 0 || vary->rows[i]); i++) {
        const bool is_named = tg_is_name(vary->rows[i], TG_MAX_IDENTIFIER, false);
        if (is_named && tg_row_named(v->space->schedule, vary->rows[i]) >= 0)
            continue;
        tg_fault(v->check, TG0307, "name kernels of the schedule in .rows", "%s: the schedule has no kernel '%s'",
                 v->name, is_named ? vary->rows[i] : "");
        return false;
    }
    if (tg_field_is_of_row(vary->field))
        (void)snprintf(v->name, sizeof v->name, "%s of %s", field, vary->rows[0]);
    if (find_point(v, table, bound))
        return true;
    if (!is_of_others(v))
        tg_fault(v->check, TG0308, "vary what a point of the schedule has, and seg where it is cut",
                 "%s: the dimension has no role there", v->name);
    return false;
}

static void check_values(const struct varied *v)
{
    const uint32_t count = value_count(v->vary);
    struct tg_slice slice;
    const bool sliced = v->is_bound && tg_field_is_of_row(v->at.field) && tg_row_slice(v->schedule, v->at.row, &slice);
    if (count == 0)
        tg_fault(v->check, TG0309, "the values end at the first 0", "%s has no values", v->name);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t value = v->vary->values[i];
        const char *expected = v->at.field == TG_FIELD_BLOCK ? tg_block_fault(&v->schedule->rows[v->at.row],
                                                                              sliced ? &slice : NULL, v->at.dim, value)
                                                             : tg_number_fault((tg_field)v->at.field, value);
        if (expected)
            tg_fault(v->check, TG0311, "give another value", "%s: value %u, expected %s", v->name, value, expected);
        if (has_value(v->vary, i, value))
            tg_fault(v->check, TG0310, "give it once", "%s: value %u is given twice", v->name, value);
    }
}

static bool shares_row(const tg_vary *a, const tg_vary *b)
{
    for (uint32_t i = 0; i < TG_MAX_VARIED && a->rows[i]; i++)
        for (uint32_t k = 0; k < TG_MAX_VARIED && b->rows[k]; k++)
            if (tg_same_name(a->rows[i], b->rows[k]))
                return true;
    return false;
}

static void check_twice(const struct varied *v)
{
    for (const tg_vary *other = v->space->vary; other < v->vary; other++)
        if (other->field == v->vary->field && (!tg_field_is_of_axis(v->vary->field) || other->dim == v->vary->dim) &&
            (!tg_field_is_of_row(v->vary->field) || shares_row(other, v->vary)))
            tg_fault(v->check, TG0312, "put all values in one row", "%s is varied already at line %d", v->name,
                     other->line);
}

/* A chunk size that no choice of this block divides. */
static void check_divides(const struct varied *v, const tg_kernel_row *row, uint32_t dim)
{
    const tg_vary *blocks = NULL;
    for (uint32_t i = 0; i < v->space->n_vary; i++) {
        const tg_vary *other = &v->space->vary[i];
        for (uint32_t k = 0; other->field == TG_FIELD_BLOCK && other->dim == dim && k < TG_MAX_VARIED; k++)
            if (tg_same_name(other->rows[k], row->name))
                blocks = other;
    }
    const uint32_t fixed = row->row[dim].block;
    const uint32_t count = value_count(v->vary), n_blocks = blocks ? value_count(blocks) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t chunk = v->vary->values[i];
        bool fits = !blocks && (fixed == 0 || chunk % fixed == 0);
        for (uint32_t b = 0; b < n_blocks; b++)
            fits = fits || chunk % blocks->values[b] == 0;
        if (!fits)
            tg_warn(v->check, TG0313, "remove it, or vary the block too",
                    "chunk: value %u is no multiple of any block of %s in %s, %s", chunk, tg_dim_name(dim), row->name,
                    blocks ? "which is varied" : "which is fixed");
    }
}

static void check_row(struct check *check, const tg_space *space, const tg_vary *vary, const struct tg_table *table)
{
    struct varied v = {.check = check, .space = space, .vary = vary};
    tg_schedule bound;
    check->line = vary->line;
    if (!check_field(&v, table, &bound))
        return;
    check_values(&v);
    check_twice(&v);
    const uint32_t n_rows = v.is_bound && v.at.field == TG_FIELD_CHUNK ? v.schedule->n_rows : 0;
    for (uint32_t row = 0; row < n_rows; row++)
        for (uint32_t dim = TG_LQ; dim <= TG_LKV; dim++)
            if (v.schedule->rows[row].mma != TG_MMA_NONE)
                check_divides(&v, &v.schedule->rows[row], dim);
}

void tg_check_space(struct check *check, const tg_space *space, const struct tg_table *table)
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
        check_row(check, space, &space->vary[i], table);
    check->line = 0;
}
