/* dsl/bind.c - a variant's schedules as they are for its algorithms: the points of every table, one after the other, with
 * the rows, outputs and kept tensors that there are. What comes after sees no table, only what one gives. */
#include "dsl/bind.h"
#include "dsl/check.h"
#include "dsl/fields.h"

#include <stdio.h>
#include <string.h>

/* ---- one table ---- */

static bool has_tile(const tg_algorithm *algorithm, uint32_t tile)
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, tile);
    return tensor && !tg_tensor_unused(tensor);
}

static bool is_of(const tg_algorithm *algorithm, uint32_t has, uint32_t lacks)
{
    return (!has || has_tile(algorithm, has)) && !(lacks && has_tile(algorithm, lacks));
}

/* Tiles that the algorithm has, in their order. */
static void keep_tiles(const tg_algorithm *algorithm, uint8_t *tiles, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < most; i++)
        if (has_tile(algorithm, tiles[i]))
            tiles[n++] = tiles[i];
    memset(tiles + n, 0, most - n);
}

static bool is_there(const tg_schedule *schedule, const tg_kernel_row *row, bool is_cut)
{
    const bool is_kept = schedule->kept[0] != 0;
    return is_of(schedule->algorithm, row->has, row->lacks) && row->outputs[0] &&
           (is_cut || !(row->only & TG_IF_CUT)) && (is_kept || !(row->only & TG_IF_KEPT)) &&
           !(is_kept && (row->only & TG_IF_NOT_KEPT));
}

/* A table's axes of positions that no statement of the row has are none. */
static void keep_axes(tg_schedule *schedule, const struct tg_slices *slices)
{
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        for (uint32_t d = TG_LQ; d <= TG_LKV; d++)
            if (slices->good >> r & 1 && !(slices->rows[r].dims >> d & 1))
                schedule->rows[r].row[d] = (tg_axis_role){0};
}

/* Slices: of what is bound, unless the table is for one algorithm alone. */
static void bind(tg_schedule *schedule, const tg_algorithm *algorithm, struct tg_slices *slices)
{
    const bool is_own = schedule->algorithm != NULL;
    const bool is_cut = tg_schedule_is_cut(schedule);
    const uint32_t declared = tg_row_count(schedule);
    schedule->algorithm = is_own ? schedule->algorithm : algorithm;
    if (schedule->n_rows > TG_MAX_ROWS)
        return; /* which is no table: the checker says so */
    schedule->n_rows = 0;
    if (!is_own)
        keep_tiles(algorithm, schedule->kept, TG_MAX_KEPT);
    for (uint32_t r = 0; r < declared; r++) {
        tg_kernel_row row = schedule->rows[r];
        if (!is_own)
            keep_tiles(algorithm, row.outputs, TG_MAX_OUTPUTS);
        const tg_axis_role *segment = &row.row[TG_SEG];
        if (segment->role != TG_ROLE_R && !is_cut)
            row.row[TG_SEG] = (tg_axis_role){0};
        if (is_there(schedule, &row, is_cut) || (is_own && !row.outputs[0]))
            schedule->rows[schedule->n_rows++] = row;
    }
    memset(&schedule->rows[schedule->n_rows], 0, (TG_MAX_ROWS - schedule->n_rows) * sizeof schedule->rows[0]);
    if (is_own)
        return; /* what its rows need is not known before it is checked */
    tg_schedule_slice(schedule, schedule->n_rows, slices);
    keep_axes(schedule, slices);
}

void tg_schedule_bind(tg_schedule *schedule, const tg_algorithm *algorithm)
{
    struct tg_slices slices;
    bind(schedule, algorithm, &slices);
}

/* ---- a variant's tables and their points ---- */

bool tg_table_next(const tg_variant *variant, struct tg_table *table)
{
    for (;;) {
        const bool is_first = table->way == 0;
        const tg_way *way = is_first || !variant->others ? NULL : &variant->others[table->way - 1];
        if (!is_first && (!way || !way->algorithm))
            return false;
        const tg_schedule *const *schedules = is_first ? variant->schedules : way->schedules;
        table->declared = schedules ? schedules[table->n] : NULL;
        table->algorithm = is_first ? variant->algorithm : way->algorithm;
        if (table->declared) {
            table->n++;
            return true;
        }
        table->way++;
        table->n = 0;
    }
}

static const tg_algorithm *algorithm_of(const struct tg_table *table)
{
    return table->declared->algorithm ? table->declared->algorithm : table->algorithm;
}

bool tg_point_next(const struct tg_table *table, uint32_t *at, const tg_point **point)
{
    const tg_point *points = table->declared->points;
    *point = NULL;
    if (!points)
        return (*at)++ == 0;
    for (; points[*at].name; ++*at)
        if (is_of(algorithm_of(table), points[*at].has, points[*at].lacks)) {
            *point = &points[(*at)++];
            return true;
        }
    return false;
}

/* The point's table, before it is bound. */
static tg_status set_point(const struct tg_table *table, const tg_point *point, tg_schedule *schedule,
                           const tg_sink *sink)
{
    *schedule = *table->declared;
    schedule->points = NULL;
    if (!point)
        return TG_OK;
    schedule->name = point->name;
    schedule->by_name |= point->by_name;
    schedule->max_tokens = point->max_tokens ? point->max_tokens : schedule->max_tokens;
    if (point->kept[0])
        memcpy(schedule->kept, point->kept, sizeof schedule->kept);
    return point->changes ? tg_schedule_apply(point->changes, schedule, sink) : TG_OK;
}

bool tg_point_keeps(const struct tg_table *table, const tg_point *point)
{
    const uint8_t *const kept = point && point->kept[0] ? point->kept : table->declared->kept;
    bool any = false;
    for (uint32_t i = 0; i < TG_MAX_KEPT; i++)
        any |= kept[i] && (table->declared->algorithm || has_tile(table->algorithm, kept[i]));
    return any;
}

tg_status tg_point_slice(const struct tg_table *table, const tg_point *point, tg_schedule *schedule,
                         struct tg_slices *slices)
{
    const tg_status status = set_point(table, point, schedule, NULL);
    if (status != TG_OK)
        return status;
    bind(schedule, table->algorithm, slices);
    if (table->declared->algorithm)
        tg_schedule_slice(schedule, TG_MAX_ROWS, slices);
    return TG_OK;
}

tg_status tg_point_bind(const struct tg_table *table, const tg_point *point, const char *changes, tg_schedule *schedule,
                        const tg_sink *sink)
{
    tg_status status = set_point(table, point, schedule, sink);
    if (status == TG_OK && changes && *changes)
        status = tg_schedule_apply(changes, schedule, sink);
    if (status == TG_OK)
        tg_schedule_bind(schedule, table->algorithm);
    return status;
}

/* The next point of them all: it begins where one before it has ended. */
static bool next_point(const tg_variant *variant, struct tg_table *table, uint32_t *at, const tg_point **point)
{
    while (!table->declared || table->declared->struct_size != sizeof(tg_schedule) || !algorithm_of(table) ||
           !tg_point_next(table, at, point)) {
        *at = 0;
        if (!tg_table_next(variant, table))
            return false;
    }
    return true;
}

int tg_variant_schedule(const tg_variant *variant, uint32_t i, tg_schedule *schedule)
{
    struct tg_table table = {0};
    const tg_point *point = NULL;
    uint32_t at = 0;
    while (variant && next_point(variant, &table, &at, &point))
        if (i-- == 0) {
            (void)tg_point_bind(&table, point, NULL, schedule, NULL); /* what it refuses, the variant's check refuses */
            return 1;
        }
    return 0;
}

/* ---- by name ---- */

static bool is_name(const char *name, const char *text, size_t length)
{
    return name && strlen(name) == length && memcmp(name, text, length) == 0;
}

static const char *name_of(const struct tg_table *table, const tg_point *point)
{
    return point ? point->name : table->declared->name;
}

static bool find_point(const tg_variant *variant, const char *name, size_t length, struct tg_table *table,
                       const tg_point **point)
{
    uint32_t at = 0;
    *table = (struct tg_table){0};
    while (variant && next_point(variant, table, &at, point))
        if (is_name(name_of(table, *point), name, length))
            return true;
    return false;
}

static void say_unknown(const tg_variant *variant, const char *name, size_t length, const tg_sink *sink)
{
    struct tg_table table = {0};
    const tg_point *point = NULL;
    char hint[1024];
    size_t used = (size_t)snprintf(hint, sizeof hint, "%s has:", variant->name);
    for (uint32_t at = 0; next_point(variant, &table, &at, &point) && used < sizeof hint;)
        used += (size_t)snprintf(hint + used, sizeof hint - used, " %s", name_of(&table, point));
    if (used < sizeof hint)
        (void)snprintf(hint + used, sizeof hint - used, "; changes are written name=value");
    struct check check = {.sink = sink};
    tg_fault(&check, TG0243, hint, "%s has no schedule '%.*s'", variant->name, (int)length, name);
}

/* `depth`: an alias is of a point, not of an alias. */
static tg_status bind_named(const tg_variant *variant, const char *text, const char *more, int depth,
                            tg_schedule *schedule, const tg_sink *sink)
{
    enum { LONGEST = 4096 };
    char changes[LONGEST];
    struct tg_table table;
    const tg_point *point;
    const size_t length = strcspn(text, " ");
    if ((size_t)snprintf(changes, sizeof changes, "%s %s", text + length, more) >= sizeof changes)
        return TG_E_ARGUMENT;
    if (find_point(variant, text, length, &table, &point))
        return tg_point_bind(&table, point, changes, schedule, sink);
    for (const tg_alias *alias = depth ? NULL : variant->names; alias && alias->name; alias++)
        if (is_name(alias->name, text, length))
            return bind_named(variant, alias->text, changes, 1, schedule, sink);
    say_unknown(variant, text, length, sink);
    return TG_E_ARGUMENT;
}

tg_status tg_variant_schedule_named(const tg_variant *variant, const char *text, tg_schedule *schedule,
                                    const tg_sink *sink)
{
    tg_schedule found;
    if (!variant || !text || !schedule)
        return TG_E_ARGUMENT;
    const tg_status status = bind_named(variant, text + strspn(text, " "), "", 0, &found, sink);
    if (status == TG_OK)
        *schedule = found;
    return status;
}

/* What follows a name: a blank before the first of it. */
struct follow {
    const tg_writer *writer;
    bool any;
};

static void write_following(void *user, const char *text, size_t bytes)
{
    struct follow *follow = user;
    if (!follow->any)
        follow->writer->write(follow->writer->user, " ", 1);
    follow->any = true;
    follow->writer->write(follow->writer->user, text, bytes);
}

/* A schedule that is cut has other rows than one that is not: it is compared with the point cut alike, or, where it relays and
 * the point does not, not at all. */
void tg_variant_schedule_text(const tg_variant *variant, const tg_schedule *schedule, const tg_writer *writer)
{
    const struct tg_field_at segment = {.field = TG_FIELD_SEGMENT};
    struct tg_table table;
    const tg_point *point;
    tg_schedule base;
    tg_printf(writer, "%s", schedule->name);
    if (!find_point(variant, schedule->name, strlen(schedule->name), &table, &point) ||
        set_point(&table, point, &base, NULL) != TG_OK)
        return;
    const bool relays = tg_schedule_relays(schedule), is_alike = relays == tg_schedule_relays(&base);
    const uint32_t chunks = is_alike ? tg_field_get(schedule, segment) : 0;
    if (is_alike || relays) {
        if (chunks != tg_field_get(&base, segment))
            tg_printf(writer, " seg=%u", chunks);
        tg_field_set(&base, segment, chunks);
    }
    tg_schedule_bind(&base, table.algorithm);
    struct follow follow = {.writer = writer};
    tg_schedule_diff(&base, schedule, &(tg_writer){write_following, &follow});
}
