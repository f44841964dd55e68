/* dsl/fields.c - a schedule's fields one by one, and their text form "chunk=128 H.Lhq=64
 * H.warps=4". */
#include "dsl/fields.h"
#include "dsl/check.h"

#include <stdlib.h>
#include <string.h>

/* Dimensions that have a text, in the order of the printed table. The block of TG_BATCH is always 1. */
static const uint8_t axis_dims[] = {TG_SEG, TG_CHUNK, TG_LQ, TG_LKV, TG_DQK, TG_DHV, TG_BATCH, TG_MEMBER};

uint32_t tg_row_count(const tg_schedule *schedule)
{
    uint32_t n = 0;
    if (schedule->n_rows)
        return schedule->n_rows <= TG_MAX_ROWS ? schedule->n_rows : TG_MAX_ROWS;
    while (n < TG_MAX_ROWS && schedule->rows[n].name)
        n++;
    return n;
}

static bool is_axis_dim(uint32_t dim)
{
    return memchr(axis_dims, (int)dim, sizeof axis_dims) != NULL;
}

bool tg_field_exists(const tg_schedule *schedule, struct tg_field_at at)
{
    if (at.field == TG_FIELD_CHUNK || at.field == TG_FIELD_SEGMENT || at.field == TG_FIELD_PIECES)
        return true;
    if (at.field <= TG_FIELD_NONE || at.field > TG_FIELD_MAKERS || at.row >= tg_row_count(schedule))
        return false;
    return !tg_field_is_of_axis(at.field) || is_axis_dim(at.dim);
}

bool tg_schedule_relays(const tg_schedule *schedule)
{
    bool any = false;
    for (uint32_t r = 0; r < tg_row_count(schedule); r++)
        any |= tg_row_relays(&schedule->rows[r]);
    return any;
}

bool tg_schedule_adds(const tg_schedule *schedule)
{
    bool any = false;
    for (uint32_t r = 0; r < tg_row_count(schedule); r++)
        for (uint32_t d = 1; d < TG_N_DIMS; d++)
            any |= (schedule->rows[r].row[d].cluster & TG_ADDS) != 0;
    return any;
}

bool tg_schedule_is_cut(const tg_schedule *schedule)
{
    bool any = false;
    for (uint32_t r = 0; r < tg_row_count(schedule); r++) {
        const tg_axis_role *segment = &schedule->rows[r].row[TG_SEG];
        any |= segment->role != TG_ROLE_NONE && segment->role != TG_ROLE_R && segment->block > 0;
    }
    return any;
}

/* Segments that the schedule has: where some are relayed there are no others. */
static bool has_segment(const tg_axis_role *segment, bool relays)
{
    return relays ? segment->role == TG_ROLE_R : segment->role != TG_ROLE_NONE;
}

/* The first row with segments; NULL: no row has any. */
static const tg_axis_role *segment_of(const tg_schedule *schedule)
{
    const bool relays = tg_schedule_relays(schedule);
    for (uint32_t r = 0; r < tg_row_count(schedule); r++)
        if (has_segment(&schedule->rows[r].row[TG_SEG], relays))
            return &schedule->rows[r].row[TG_SEG];
    return NULL;
}

uint32_t tg_field_get(const tg_schedule *schedule, struct tg_field_at at)
{
    const tg_kernel_row *row = &schedule->rows[tg_field_is_of_row(at.field) ? at.row : 0];
    switch (at.field) {
    case TG_FIELD_CHUNK:
        return schedule->chunk;
    case TG_FIELD_SEGMENT:
        return segment_of(schedule) ? segment_of(schedule)->block : 0;
    case TG_FIELD_PIECES:
        return schedule->pieces;
    case TG_FIELD_BLOCK:
        return row->row[at.dim].block;
    case TG_FIELD_ROLE:
        return row->row[at.dim].role;
    case TG_FIELD_CLUSTER:
        return row->row[at.dim].cluster;
    case TG_FIELD_WARPS:
        return row->warps;
    case TG_FIELD_STAGES:
        return row->stages;
    case TG_FIELD_BLOCKS_PER_SM:
        return row->blocks_per_sm;
    case TG_FIELD_MAKERS:
        return row->makers;
    case TG_FIELD_MMA:
        return row->mma;
    default:
        return 0;
    }
}

/* One length for all that have segments. */
static void set_segment(tg_schedule *schedule, uint32_t value)
{
    const bool relays = tg_schedule_relays(schedule);
    for (uint32_t r = 0; r < tg_row_count(schedule); r++)
        if (has_segment(&schedule->rows[r].row[TG_SEG], relays))
            schedule->rows[r].row[TG_SEG].block = (uint16_t)value;
}

void tg_field_set(tg_schedule *schedule, struct tg_field_at at, uint32_t value)
{
    tg_kernel_row *row = &schedule->rows[tg_field_is_of_row(at.field) ? at.row : 0];
    switch (at.field) {
    case TG_FIELD_CHUNK:
        schedule->chunk = value;
        break;
    case TG_FIELD_SEGMENT:
        set_segment(schedule, value);
        break;
    case TG_FIELD_PIECES:
        schedule->pieces = value;
        break;
    case TG_FIELD_BLOCK:
        row->row[at.dim].block = (uint16_t)value;
        break;
    case TG_FIELD_ROLE:
        row->row[at.dim].role = (uint8_t)value;
        break;
    case TG_FIELD_CLUSTER:
        row->row[at.dim].cluster = (uint8_t)value;
        break;
    case TG_FIELD_WARPS:
        row->warps = (uint8_t)value;
        break;
    case TG_FIELD_STAGES:
        row->stages = (uint8_t)value;
        break;
    case TG_FIELD_BLOCKS_PER_SM:
        row->blocks_per_sm = (uint8_t)value;
        break;
    case TG_FIELD_MAKERS:
        row->makers = (uint8_t)value;
        break;
    case TG_FIELD_MMA:
        row->mma = (uint8_t)value;
        break;
    default:
        break;
    }
}

bool tg_field_next(const tg_schedule *schedule, struct tg_field_at *at)
{
    static const uint8_t of_row[] = {TG_FIELD_BLOCK,         TG_FIELD_WARPS, TG_FIELD_STAGES,
                                     TG_FIELD_BLOCKS_PER_SM, TG_FIELD_MMA,   TG_FIELD_MAKERS};
    if (at->field < TG_FIELD_PIECES) {
        *at = (struct tg_field_at){.field = (uint8_t)(at->field + 1)};
        return true;
    }
    if (at->field == TG_FIELD_PIECES) {
        *at = (struct tg_field_at){.field = TG_FIELD_BLOCK, .dim = axis_dims[0]};
        return tg_row_count(schedule) > 0;
    }
    if (at->field == TG_FIELD_BLOCK) {
        const uint8_t *dim = memchr(axis_dims, at->dim, sizeof axis_dims);
        if (dim && dim + 1 < axis_dims + sizeof axis_dims) {
            at->dim = dim[1];
            return true;
        }
    }
    const uint8_t *field = memchr(of_row, at->field, sizeof of_row);
    if (field && field + 1 < of_row + sizeof of_row) {
        at->field = field[1];
        at->dim = 0;
        return true;
    }
    *at = (struct tg_field_at){TG_FIELD_BLOCK, (uint8_t)(at->row + 1), axis_dims[0]};
    return at->row < tg_row_count(schedule);
}

const char *tg_field_name(struct tg_field_at at)
{
    switch (at.field) {
    case TG_FIELD_CHUNK:
        return "chunk";
    case TG_FIELD_SEGMENT:
        return tg_dim_name(TG_SEG);
    case TG_FIELD_PIECES:
        return "pieces";
    case TG_FIELD_BLOCK:
    case TG_FIELD_ROLE:
    case TG_FIELD_CLUSTER:
        return tg_dim_name(at.dim);
    case TG_FIELD_WARPS:
        return "warps";
    case TG_FIELD_STAGES:
        return "stages";
    case TG_FIELD_BLOCKS_PER_SM:
        return "blocks_per_sm";
    case TG_FIELD_MAKERS:
        return "makers";
    case TG_FIELD_MMA:
        return "mma";
    default:
        return "?";
    }
}

static const char *row_name(const tg_schedule *schedule, uint32_t row)
{
    const char *name = schedule->rows[row].name;
    return tg_is_name(name, TG_MAX_IDENTIFIER, false) ? name : "?";
}

/* ---- what a space varies ---- */

int tg_row_named(const tg_schedule *schedule, const char *name)
{
    for (uint32_t r = 0; name && r < tg_row_count(schedule); r++)
        if (tg_same_name(schedule->rows[r].name, name))
            return (int)r;
    return -1;
}

/* Of row `i`; false: there is none. */
static bool vary_row(const tg_schedule *schedule, const tg_vary *vary, uint32_t i, struct tg_field_at *at)
{
    const int row = i < TG_MAX_VARIED ? tg_row_named(schedule, vary->rows[i]) : -1;
    *at = (struct tg_field_at){vary->field, (uint8_t)(row < 0 ? 0 : row), vary->dim};
    return row >= 0 && tg_field_exists(schedule, *at) &&
           (!tg_field_is_of_axis(vary->field) || schedule->rows[row].row[vary->dim].role != TG_ROLE_NONE);
}

bool tg_vary_at(const tg_schedule *schedule, const tg_vary *vary, struct tg_field_at *at)
{
    struct tg_field_at other;
    if (!tg_field_is_of_row(vary->field)) {
        *at = (struct tg_field_at){.field = vary->field};
        return vary->field == TG_FIELD_CHUNK || (vary->field == TG_FIELD_SEGMENT && segment_of(schedule)) ||
               (vary->field == TG_FIELD_PIECES && schedule->pieces > 1);
    }
    for (uint32_t i = 1; i < TG_MAX_VARIED && vary->rows[i]; i++)
        if (!vary_row(schedule, vary, i, &other))
            return false;
    return vary_row(schedule, vary, 0, at);
}

int tg_vary_apply(const tg_vary *vary, uint32_t value, tg_schedule *schedule)
{
    struct tg_field_at at;
    if (!tg_vary_at(schedule, vary, &at))
        return 0;
    tg_field_set(schedule, at, value);
    for (uint32_t i = 1; tg_field_is_of_row(vary->field) && vary_row(schedule, vary, i, &at); i++)
        tg_field_set(schedule, at, value);
    return 1;
}

/* ---- tg_schedule_diff ---- */

static const char *const mma_names[] = {"none", "sync", "tf32x3", "wgmma"};
static const char *const role_names[] = {".", "P", "L", "W", "R"};

/* "P/128", "CM2/256"; where role and cluster are as in `base` the block alone, but for seg, of which a block alone is that of
 * all rows. */
static void axis_text(const tg_writer *writer, const tg_axis_role *base, const tg_axis_role *axis, uint32_t dim)
{
    const uint32_t sharing = tg_sharing(*axis);
    if (dim != TG_SEG && base->role == axis->role && base->cluster == axis->cluster) {
        tg_printf(writer, "%u", axis->block);
        return;
    }
    if (!axis->cluster)
        tg_printf(writer, "%s", axis->role < TG_COUNT(role_names) ? role_names[axis->role] : "?");
    if (axis->cluster & TG_ADDS)
        tg_printf(writer, "C");
    if (sharing)
        tg_printf(writer, "M%u", sharing);
    tg_printf(writer, "/%u", axis->block);
}

static bool is_same(const tg_schedule *a, const tg_schedule *b, struct tg_field_at at)
{
    if (at.field == TG_FIELD_SEGMENT && !segment_of(a))
        return true;
    if (at.field != TG_FIELD_BLOCK)
        return tg_field_get(a, at) == tg_field_get(b, at);
    return memcmp(&a->rows[at.row].row[at.dim], &b->rows[at.row].row[at.dim], sizeof(tg_axis_role)) == 0;
}

/* A length of segments is that of all rows that have any, until one says its own. */
void tg_schedule_diff(const tg_schedule *from, const tg_schedule *schedule, const tg_writer *writer)
{
    static const tg_axis_role nothing;
    const struct tg_field_at segment = {.field = TG_FIELD_SEGMENT};
    tg_schedule base = *from;
    const char *separator = "";
    for (struct tg_field_at at = {0}; tg_field_next(schedule, &at);) {
        const bool is_new = !tg_field_exists(&base, at);
        const uint32_t value = tg_field_get(schedule, at);
        if (!is_new && is_same(&base, schedule, at))
            continue;
        tg_printf(writer, "%s", separator);
        if (tg_field_is_of_row(at.field))
            tg_printf(writer, "%s.", row_name(schedule, at.row));
        tg_printf(writer, "%s=", tg_field_name(at));
        if (at.field == TG_FIELD_BLOCK)
            axis_text(writer, is_new ? &nothing : &base.rows[at.row].row[at.dim], &schedule->rows[at.row].row[at.dim],
                      at.dim);
        else if (at.field == TG_FIELD_MMA && value < TG_COUNT(mma_names))
            tg_printf(writer, "%s", mma_names[value]);
        else
            tg_printf(writer, "%u", value);
        if (at.field == TG_FIELD_SEGMENT)
            tg_field_set(&base, segment, value);
        separator = " ";
    }
}

/* ---- tg_schedule_apply ---- */

/* A piece of the text: not terminated. */
struct span {
    const char *start;
    int length;
};

static bool span_is(struct span span, const char *text)
{
    return strlen(text) == (size_t)span.length && memcmp(text, span.start, (size_t)span.length) == 0;
}

/* Names for "expected ..." lists: as long as those of all rows. */
struct list {
    char text[TG_MAX_ROWS * (TG_MAX_IDENTIFIER + 2) + 1];
    size_t used;
};

static void list_add(struct list *list, const char *name)
{
    const size_t length = strlen(name);
    if (list->used + length + 3 > sizeof list->text)
        return;
    if (list->used) {
        memcpy(list->text + list->used, ", ", 2);
        list->used += 2;
    }
    memcpy(list->text + list->used, name, length + 1);
    list->used += length;
}

/* The first row of that name from `row` on; false: there are no more. */
static bool find_row(const tg_schedule *schedule, struct span name, uint8_t *row)
{
    for (; *row < tg_row_count(schedule); ++*row)
        if (span_is(name, row_name(schedule, *row)))
            return true;
    return false;
}

static void say_no_row(struct check *check, const tg_schedule *schedule, struct span name)
{
    struct list expected = {{0}, 0};
    for (uint32_t r = 0; r < tg_row_count(schedule); r++)
        list_add(&expected, row_name(schedule, r));
    tg_fault(check, TG0231, "use a kernel of this schedule", "no kernel '%.*s', expected one of: %s", name.length,
             name.start, expected.text);
}

/* A length of segments may be written as a block of any row that has them; with a role it is the row's alone. */
static bool find_field(struct check *check, const tg_schedule *schedule, struct span name, uint8_t row,
                       struct tg_field_at *at)
{
    struct list expected = {{0}, 0};
    for (*at = (struct tg_field_at){0}; tg_field_next(schedule, at);) {
        if (at->field == TG_FIELD_CHUNK || at->field == TG_FIELD_PIECES ||
            (tg_field_is_of_row(at->field) && at->row != row))
            continue;
        if (span_is(name, tg_field_name(*at)))
            return true;
        if (at->field != TG_FIELD_SEGMENT) /* seg is there twice */
            list_add(&expected, tg_field_name(*at));
    }
    tg_fault(check, TG0232, "use a field of a kernel", "no field '%.*s', expected one of: %s", name.length, name.start,
             expected.text);
    return false;
}

static bool parse_number(struct span text, uint32_t *value)
{
    uint32_t number = 0;
    bool ok = text.length > 0;
    for (int i = 0; ok && i < text.length; i++) {
        ok = text.start[i] >= '0' && text.start[i] <= '9' && number <= UINT16_MAX;
        number = number * 10 + (uint32_t)(text.start[i] - '0');
    }
    *value = number;
    return ok && number <= UINT16_MAX;
}

/* "P", "L", "W", "R", "C", "M2", "CM4"; "." for none */
static bool parse_role(struct span text, tg_axis_role *axis)
{
    *axis = (tg_axis_role){.role = TG_ROLE_P};
    for (uint8_t role = TG_ROLE_NONE; role < TG_COUNT(role_names); role++)
        if (span_is(text, role_names[role])) {
            axis->role = role;
            return true;
        }
    if (text.length > 0 && *text.start == 'C') {
        axis->cluster = TG_ADDS;
        text = (struct span){text.start + 1, text.length - 1};
    }
    if (text.length == 0)
        return axis->cluster != 0;
    if (!span_is(text, "M2") && !span_is(text, "M4"))
        return false;
    axis->cluster |= (uint8_t)(text.start[1] - '0');
    return true;
}

/* "128", "P/128", "L". Returns what was expected; NULL: it was. */
static const char *parse_axis(struct span text, const tg_kernel_row *row, uint32_t dim, tg_axis_role *axis)
{
    const char *slash = memchr(text.start, '/', (size_t)text.length);
    const bool is_number = text.length > 0 && *text.start >= '0' && *text.start <= '9';
    const struct span role = {text.start, slash ? (int)(slash - text.start) : is_number ? 0 : text.length};
    const struct span number = {slash ? slash + 1 : text.start, text.length - (slash ? role.length + 1 : 0)};
    uint32_t block = axis->block;
    tg_axis_role given;
    if (role.length || slash) {
        if (!parse_role(role, &given))
            return "P, L, W, R, C, M2, M4 or CM2 and, after a slash, a block";
        axis->role = given.role;
        axis->cluster = given.cluster;
    }
    if ((slash || !role.length) && !parse_number(number, &block))
        return dim == TG_SEG ? "R and, after a slash, a block of at most 512; or such a block alone"
                             : "a block of at most 512, or a role and, after a slash, such a block";
    axis->block = (uint16_t)block;
    tg_kernel_row changed = *row;
    changed.row[dim] = *axis;
    return tg_block_fault(&changed, NULL, dim, block);
}

static const char *parse_mma(struct span text, uint32_t *value)
{
    for (*value = 0; *value < TG_COUNT(mma_names); ++*value)
        if (span_is(text, mma_names[*value]))
            return NULL;
    return "none, sync, tf32x3 or wgmma";
}

static void apply_value(struct check *check, tg_schedule *schedule, struct span text, struct tg_field_at at)
{
    tg_kernel_row *row = &schedule->rows[at.row];
    tg_axis_role axis = row->row[at.dim];
    uint32_t value = 0;
    const char *expected;
    if (at.field == TG_FIELD_BLOCK)
        expected = parse_axis(text, row, at.dim, &axis);
    else if (at.field == TG_FIELD_MMA)
        expected = parse_mma(text, &value);
    else
        expected = parse_number(text, &value)     ? tg_number_fault((tg_field)at.field, value)
                   : at.field == TG_FIELD_SEGMENT ? "0 to 512; a role is that of a kernel, KERNEL.seg=R/32"
                                                  : "a number of 0 to 65535";
    if (at.field == TG_FIELD_SEGMENT && !expected && value && !segment_of(schedule))
        expected = "0: no kernel of the schedule has segments";
    if (expected)
        tg_fault(check, TG0233, "give a value in that range", "%s is '%.*s', expected %s", tg_field_name(at),
                 text.length, text.start, expected);
    else if (at.field == TG_FIELD_BLOCK)
        row->row[at.dim] = axis;
    else
        tg_field_set(schedule, at, value);
}

/* One "chunk=128" or "H.Lhq=64". */
static void apply_item(struct check *check, tg_schedule *schedule, struct span item)
{
    const char *equals = memchr(item.start, '=', (size_t)item.length);
    const char *dot = memchr(item.start, '.', (size_t)(equals ? equals - item.start : item.length));
    if (!equals) {
        tg_fault(check, TG0230, "write fields as chunk=128 H.Lhq=64", "'%.*s' has no '='", item.length, item.start);
        return;
    }
    const struct span value = {equals + 1, item.length - (int)(equals + 1 - item.start)};
    const struct span name = {item.start, (int)((dot ? dot : equals) - item.start)};
    const struct span field = {dot ? dot + 1 : equals, dot ? (int)(equals - dot - 1) : 0};
    struct tg_field_at at = {0};
    while (tg_field_next(schedule, &at) && !tg_field_is_of_row(at.field) && !span_is(name, tg_field_name(at)))
        ;
    if (!dot && !tg_field_is_of_row(at.field)) {
        apply_value(check, schedule, value, at);
    } else if (!dot) {
        tg_fault(check, TG0232, "fields of a kernel are written as KERNEL.field",
                 "no field '%.*s', expected chunk, seg, pieces or KERNEL.field", name.length, name.start);
    } else {
        uint8_t row = 0;
        if (!find_row(schedule, name, &row))
            say_no_row(check, schedule, name);
        const uint32_t before = check->errors; /* several rows may have the name */
        for (;
             check->errors == before && find_row(schedule, name, &row) && find_field(check, schedule, field, row, &at);
             row++) {
            const bool has_role = value.length > 0 && (*value.start < '0' || *value.start > '9');
            if (at.field == TG_FIELD_SEGMENT && has_role)
                at = (struct tg_field_at){TG_FIELD_BLOCK, row, TG_SEG};
            apply_value(check, schedule, value, at);
        }
    }
}

tg_status tg_schedule_apply(const char *text, tg_schedule *schedule, const tg_sink *sink)
{
    struct check check = {.sink = sink};
    enum { LONGEST = 4096 };
    if (!text || !schedule || schedule->struct_size != sizeof *schedule) {
        tg_fault(&check, TG0230, "pass a text and a schedule", "the text or the schedule is missing");
        return TG_E_ARGUMENT;
    }
    tg_schedule changed = *schedule; /* all of the text, or nothing */
    while (*text) {
        const size_t blank = strspn(text, " \t\n");
        const size_t length = strcspn(text + blank, " \t\n");
        if (length > LONGEST) {
            tg_fault(&check, TG0230, "separate fields by blanks", "a field of %zu characters", length);
            break;
        }
        if (length)
            apply_item(&check, &changed, (struct span){text + blank, (int)length});
        text += blank + length;
    }
    if (check.errors)
        return TG_E_ARGUMENT;
    *schedule = changed;
    return TG_OK;
}
