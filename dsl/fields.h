/* dsl/fields.h - the fields of a schedule that may be varied, one by one. Internal: the checker,
 * the text form and the tuner set them through here. */
#ifndef TEGULA_DSL_FIELDS_H
#define TEGULA_DSL_FIELDS_H

#include "dsl/tegula.h"

#include <stdbool.h>

struct tg_field_at {
    uint8_t field; /* tg_field */
    uint8_t row;   /* of what a row has: all but TG_FIELD_CHUNK, TG_FIELD_SEGMENT and TG_FIELD_PIECES */
    uint8_t dim;   /* of an axis: TG_FIELD_BLOCK, TG_FIELD_ROLE, TG_FIELD_CLUSTER */
};

/* Rows of the schedule: those counted, or up to the first without a name. */
uint32_t tg_row_count(const tg_schedule *schedule);

/* Does a row relay its segments? Then their length is the schedule's. */
bool tg_schedule_relays(const tg_schedule *schedule);
/* Are there thread blocks that add up what they have of an output (TG_CLUSTER)? */
bool tg_schedule_adds(const tg_schedule *schedule);
/* Has a row a length of segments that are not relayed? A table's roles without one are for its points. */
bool tg_schedule_is_cut(const tg_schedule *schedule);

/* The row has this field, the axis this dimension; the schedule itself the others. */
static inline bool tg_field_is_of_row(uint32_t field)
{
    return field > TG_FIELD_PIECES;
}
static inline bool tg_field_is_of_axis(uint32_t field)
{
    return field == TG_FIELD_BLOCK || field == TG_FIELD_ROLE || field == TG_FIELD_CLUSTER;
}

/* There is such a field in the schedule: known, of a row and a dimension that exist. */
bool tg_field_exists(const tg_schedule *schedule, struct tg_field_at at);

/* Value of a field that exists. */
uint32_t tg_field_get(const tg_schedule *schedule, struct tg_field_at at);
void tg_field_set(tg_schedule *schedule, struct tg_field_at at, uint32_t value);

/* What a space varies, at the first of its rows. False: the schedule has not all of them with that dimension, or is not cut. */
bool tg_vary_at(const tg_schedule *schedule, const tg_vary *vary, struct tg_field_at *at);
/* Does the field have several rows? */
static inline bool tg_vary_is_joint(const tg_vary *vary)
{
    return vary->rows[0] && vary->rows[1];
}
/* The row of that name; -1: there is none. */
int tg_row_named(const tg_schedule *schedule, const char *name);

/* All fields that have a text of their own, in their canonical order (a role and a cluster are part of their block's): start
 * with {0}; false after the last. */
bool tg_field_next(const tg_schedule *schedule, struct tg_field_at *at);

/* "chunk", "Lhq", "warps": the name without its row. */
const char *tg_field_name(struct tg_field_at at);

#endif
