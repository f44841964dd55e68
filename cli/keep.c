/* cli/keep.c - forwards that leave their states and backwards that take them: which two schedules. */
#include "cli.h"

#include <string.h>

uint32_t schedule_segment(const tg_schedule *schedule)
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
           forward->chunk == backward->chunk && schedule_segment(forward) == schedule_segment(backward);
}

/* How long the model thinks that it takes; below 0: it does not fit. */
static double seconds_of(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *class,
                         const struct shape *shape)
{
    const tg_sizes sizes = {shape->batch, shape->heads, shape->tokens, schedule->chunk};
    tg_cost cost;
    return tg_plan_check(schedule, target, class, &silent_sink) == TG_OK &&
                   tg_cost_estimate(schedule, target, class, &sizes, &cost, &silent_sink) == TG_OK
               ? cost.seconds
               : -1;
}

bool schedules_keeping(const tg_variant *forward, const tg_schedule *given, const tg_target *target,
                       const tg_shape_class *class, const struct shape *shape, struct keeping *pair)
{
    const tg_schedule *const given_alone[] = {given, NULL};
    double least = -1;
    for (const tg_schedule *const *f = given ? given_alone : forward->schedules; *f; f++)
        for (const tg_schedule *const *b = forward->backward->schedules; *b; b++) {
            const bool fit = match(*f, *b);
            const double first = fit ? seconds_of(*f, target, class, shape) : -1;
            const double then = first < 0 ? -1 : seconds_of(*b, target, class, shape);
            if (then < 0 || (least >= 0 && first + then >= least))
                continue;
            least = first + then;
            *pair = (struct keeping){*f, *b};
        }
    return least >= 0;
}
