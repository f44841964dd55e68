/* tuning/keep.c - forwards that leave their states and backwards that take them: which two schedules. */
#include "tuning/tuning.h"

#include <string.h>

uint32_t tg_schedule_segment(const tg_schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        if (schedule->rows[r].row[TG_SEG].role != TG_ROLE_NONE)
            return schedule->rows[r].row[TG_SEG].block;
    return 1;
}

/* The one leaves what the other takes: the same tiles, of sequences cut alike. */
static bool match(const tg_schedule *forward, const tg_schedule *backward)
{
    return forward->kept[0] && memcmp(forward->kept, backward->kept, sizeof forward->kept) == 0 &&
           forward->chunk == backward->chunk && tg_schedule_segment(forward) == tg_schedule_segment(backward);
}

/* How long the model thinks that it takes; below 0: it does not fit. */
static double seconds_of(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *class,
                         const tg_sizes *sizes)
{
    tg_sizes cut = *sizes;
    tg_cost cost;
    cut.chunk = schedule->chunk;
    return tg_plan_check(schedule, target, class, NULL) == TG_OK &&
                   tg_cost_estimate(schedule, target, class, &cut, &cost, NULL) == TG_OK
               ? cost.seconds
               : -1;
}

/* The fastest backward that takes what the forward leaves. */
static void pair_with(const tg_schedule *first, const tg_variant *backward, const tg_target *target,
                      const tg_shape_class *class, const tg_sizes *sizes, double *least, tg_keeping *pair)
{
    tg_schedule then;
    const double forward = first->kept[0] ? seconds_of(first, target, class, sizes) : -1;
    for (uint32_t i = 0; forward >= 0 && tg_variant_schedule(backward, i, &then); i++) {
        const double seconds = match(first, &then) ? seconds_of(&then, target, class, sizes) : -1;
        if (seconds < 0 || (*least >= 0 && forward + seconds >= *least))
            continue;
        *least = forward + seconds;
        *pair = (tg_keeping){*first, then};
    }
}

bool tg_schedules_keeping(const tg_variant *forward, const tg_schedule *given, const tg_target *target,
                          const tg_shape_class *class, const tg_sizes *sizes, tg_keeping *pair)
{
    double least = -1;
    tg_schedule first;
    if (given)
        pair_with(given, forward->backward, target, class, sizes, &least, pair);
    for (uint32_t i = 0; !given && tg_variant_schedule(forward, i, &first); i++)
        pair_with(&first, forward->backward, target, class, sizes, &least, pair);
    return least >= 0;
}
