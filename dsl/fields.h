/* dsl/fields.h - the fields of a schedule that may be varied, one by one. Internal: the checker,
 * the text form and the tuner set them through here. */
#ifndef TEGULA_DSL_FIELDS_H
#define TEGULA_DSL_FIELDS_H

#include "dsl/tegula.h"

#include <stdbool.h>

struct tg_field_at {
    uint8_t field; /* tg_field */
    uint8_t row;   /* not of TG_FIELD_CHUNK */
    uint8_t dim;   /* of TG_FIELD_BLOCK */
};

/* There is such a field in the schedule: known, of a row and a dimension that exist. */
bool tg_field_exists(const tg_schedule *schedule, struct tg_field_at at);

/* Value of a field that exists. */
uint32_t tg_field_get(const tg_schedule *schedule, struct tg_field_at at);
void tg_field_set(tg_schedule *schedule, struct tg_field_at at, uint32_t value);

/* All fields in their canonical order: start with {0}; false after the last. */
bool tg_field_next(const tg_schedule *schedule, struct tg_field_at *at);

/* "chunk", "Lhq", "warps": the name without its row. */
const char *tg_field_name(struct tg_field_at at);

#endif
