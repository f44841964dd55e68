/* dsl/fields.c - a schedule's fields one by one, and their text form "chunk=128 H.Lhq=64
 * H.warps=4". */
#include "dsl/fields.h"
#include "dsl/check.h"

#include <stdlib.h>
#include <string.h>

/* Dimensions that have a block, in the order of the printed table. Those of TG_BATCH and TG_MEMBER
 * are always 1. */
static const uint8_t block_dims[] = {TG_SEG, TG_CHUNK, TG_LQ, TG_LKV, TG_DQK, TG_DHV};

static uint32_t row_count(const tg_schedule *schedule)
{
    return schedule->n_rows <= TG_MAX_ROWS ? schedule->n_rows : TG_MAX_ROWS;
}

bool tg_field_exists(const tg_schedule *schedule, struct tg_field_at at)
{
    if (at.field == TG_FIELD_CHUNK)
        return true;
    if (at.field <= TG_FIELD_NONE || at.field > TG_FIELD_BLOCKS_PER_SM || at.row >= row_count(schedule))
        return false;
    return at.field != TG_FIELD_BLOCK || memchr(block_dims, at.dim, sizeof block_dims) != NULL;
}

uint32_t tg_field_get(const tg_schedule *schedule, struct tg_field_at at)
{
    const tg_kernel_row *row = &schedule->rows[at.field == TG_FIELD_CHUNK ? 0 : at.row];
    switch (at.field) {
    case TG_FIELD_CHUNK:
        return schedule->chunk;
    case TG_FIELD_BLOCK:
        return row->row[at.dim].block;
    case TG_FIELD_WARPS:
        return row->warps;
    case TG_FIELD_STAGES:
        return row->stages;
    case TG_FIELD_BLOCKS_PER_SM:
        return row->blocks_per_sm;
    default:
        return 0;
    }
}

void tg_field_set(tg_schedule *schedule, struct tg_field_at at, uint32_t value)
{
    tg_kernel_row *row = &schedule->rows[at.field == TG_FIELD_CHUNK ? 0 : at.row];
    switch (at.field) {
    case TG_FIELD_CHUNK:
        schedule->chunk = value;
        break;
    case TG_FIELD_BLOCK:
        for (uint32_t r = 0; at.dim == TG_SEG && r < row_count(schedule); r++) /* one for all that have segments */
            if (schedule->rows[r].row[TG_SEG].role != TG_ROLE_NONE)
                schedule->rows[r].row[TG_SEG].block = (uint16_t)value;
        row->row[at.dim].block = (uint16_t)value;
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
    default:
        break;
    }
}

bool tg_field_next(const tg_schedule *schedule, struct tg_field_at *at)
{
    if (at->field == TG_FIELD_NONE) {
        *at = (struct tg_field_at){.field = TG_FIELD_CHUNK};
        return true;
    }
    if (at->field == TG_FIELD_CHUNK) {
        *at = (struct tg_field_at){.field = TG_FIELD_BLOCK, .dim = block_dims[0]};
        return row_count(schedule) > 0;
    }
    if (at->field == TG_FIELD_BLOCK) {
        const uint8_t *dim = memchr(block_dims, at->dim, sizeof block_dims);
        if (dim && dim + 1 < block_dims + sizeof block_dims) {
            at->dim = dim[1];
            return true;
        }
    }
    if (at->field < TG_FIELD_BLOCKS_PER_SM) {
        at->field++;
        at->dim = 0;
        return true;
    }
    *at = (struct tg_field_at){TG_FIELD_BLOCK, (uint8_t)(at->row + 1), block_dims[0]};
    return at->row < row_count(schedule);
}

const char *tg_field_name(struct tg_field_at at)
{
    switch (at.field) {
    case TG_FIELD_CHUNK:
        return "chunk";
    case TG_FIELD_BLOCK:
        return tg_dim_name(at.dim);
    case TG_FIELD_WARPS:
        return "warps";
    case TG_FIELD_STAGES:
        return "stages";
    case TG_FIELD_BLOCKS_PER_SM:
        return "blocks_per_sm";
    default:
        return "?";
    }
}

static const char *row_name(const tg_schedule *schedule, uint32_t row)
{
    const char *name = schedule->rows[row].name;
    return tg_is_name(name, TG_MAX_IDENTIFIER, false) ? name : "?";
}

void tg_schedule_diff(const tg_schedule *base, const tg_schedule *schedule, const tg_writer *writer)
{
    const char *separator = "";
    tg_schedule so_far = *base; /* a length of segments is said once, and is that of all rows */
    for (struct tg_field_at at = {0}; tg_field_next(schedule, &at);) {
        const uint32_t value = tg_field_get(schedule, at);
        if (tg_field_exists(&so_far, at)) {
            if (tg_field_get(&so_far, at) == value)
                continue;
            tg_field_set(&so_far, at, value);
        }
        if (at.field == TG_FIELD_CHUNK)
            tg_printf(writer, "%schunk=%u", separator, value);
        else
            tg_printf(writer, "%s%s.%s=%u", separator, row_name(schedule, at.row), tg_field_name(at), value);
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

static bool find_row(struct check *check, const tg_schedule *schedule, struct span name, uint8_t *row)
{
    struct list expected = {{0}, 0};
    for (uint32_t r = 0; r < row_count(schedule); r++) {
        if (span_is(name, row_name(schedule, r))) {
            *row = (uint8_t)r;
            return true;
        }
        list_add(&expected, row_name(schedule, r));
    }
    tg_fault(check, TG0231, "use a kernel of this schedule", "no kernel '%.*s', expected one of: %s", name.length,
             name.start, expected.text);
    return false;
}

static bool find_field(struct check *check, const tg_schedule *schedule, struct span name, uint8_t row,
                       struct tg_field_at *at)
{
    struct list expected = {{0}, 0};
    for (struct tg_field_at field = {0}; tg_field_next(schedule, &field);) {
        if (field.field == TG_FIELD_CHUNK || field.row != row)
            continue;
        if (span_is(name, tg_field_name(field))) {
            *at = field;
            return true;
        }
        list_add(&expected, tg_field_name(field));
    }
    tg_fault(check, TG0232, "use a field of a kernel", "no field '%.*s', expected one of: %s", name.length, name.start,
             expected.text);
    return false;
}

static bool parse_value(struct check *check, const tg_schedule *schedule, struct span text, struct tg_field_at at,
                        uint32_t *value)
{
    const tg_kernel_row *row = &schedule->rows[at.row];
    uint32_t number = 0;
    bool ok = text.length > 0;
    for (int i = 0; ok && i < text.length; i++) {
        ok = text.start[i] >= '0' && text.start[i] <= '9' && number <= UINT16_MAX;
        number = number * 10 + (uint32_t)(text.start[i] - '0');
    }
    ok = ok && number <= UINT16_MAX;
    const char *expected = "a number of 0 to 65535";
    if (ok) {
        *value = number;
        expected = at.field == TG_FIELD_BLOCK ? tg_block_fault(row, NULL, at.dim, number)
                                              : tg_number_fault((tg_field)at.field, number);
    }
    if (!expected)
        return true;
    tg_fault(check, TG0233, "give a value in that range", "%s is '%.*s', expected %s", tg_field_name(at), text.length,
             text.start, expected);
    return false;
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
    const struct span number = {equals + 1, item.length - (int)(equals + 1 - item.start)};
    struct tg_field_at at = {.field = TG_FIELD_CHUNK};
    uint32_t value = 0;
    if (!dot) {
        const struct span name = {item.start, (int)(equals - item.start)};
        if (!span_is(name, "chunk")) {
            tg_fault(check, TG0232, "fields of a kernel are written as KERNEL.field",
                     "no field '%.*s', expected chunk or KERNEL.field", name.length, name.start);
            return;
        }
    } else {
        uint8_t row = 0;
        const struct span kernel = {item.start, (int)(dot - item.start)};
        const struct span field = {dot + 1, (int)(equals - dot - 1)};
        if (!find_row(check, schedule, kernel, &row) || !find_field(check, schedule, field, row, &at))
            return;
    }
    if (parse_value(check, schedule, number, at, &value))
        tg_field_set(schedule, at, value);
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
