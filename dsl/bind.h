/* dsl/bind.h - tables and points one by one, for the checker and the compiler; see bind.c. Internal. */
#ifndef TEGULA_DSL_BIND_H
#define TEGULA_DSL_BIND_H

#include "dsl/slice.h"
#include "dsl/tegula.h"

#include <stdbool.h>

/* A table of a variant, and the algorithm that it is for unless it says otherwise. Begin with {0}. */
struct tg_table {
    const tg_schedule *declared;
    const tg_algorithm *algorithm;
    uint32_t way, n; /* of which list, and how many of it have been visited */
};
bool tg_table_next(const tg_variant *variant, struct tg_table *table);

/* Its points that are for its algorithm: begin at 0. One without points has one, which is NULL. */
bool tg_point_next(const struct tg_table *table, uint32_t *at, const tg_point **point);

/* The point, with further changes (NULL: none), bound. Not TG_OK: a change is refused, and the schedule is of no use. */
tg_status tg_point_bind(const struct tg_table *table, const tg_point *point, const char *changes, tg_schedule *schedule,
                        const tg_sink *sink);

/* ... without changes, and what its rows are made of. Before that: does it keep anything? */
tg_status tg_point_slice(const struct tg_table *table, const tg_point *point, tg_schedule *schedule,
                         struct tg_slices *slices);
bool tg_point_keeps(const struct tg_table *table, const tg_point *point);

/* A table, in place: what there is of it for its algorithm, or for this one where it has none. */
void tg_schedule_bind(tg_schedule *schedule, const tg_algorithm *algorithm);

#endif
