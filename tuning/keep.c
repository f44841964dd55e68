/* tuning/keep.c - forwards that leave their states and backwards that take them: which two schedules. */
#include "tuning/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t tg_schedule_cut(const tg_schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->n_rows; r++) {
        const tg_axis_role *segment = &schedule->rows[r].row[TG_SEG];
        if (segment->role != TG_ROLE_NONE && segment->role != TG_ROLE_R) /* relayed ones leave nothing */
            return segment->block;
    }
    return 0;
}

uint32_t tg_schedule_segment(const tg_schedule *schedule)
{
    const uint32_t cut = tg_schedule_cut(schedule);
    return cut ? cut : 1;
}

/* The one leaves what the other takes: the same tiles, of sequences cut alike. */
static bool match(const tg_schedule *forward, const tg_schedule *backward)
{
    return memcmp(forward->kept, backward->kept, sizeof forward->kept) == 0 && forward->chunk == backward->chunk &&
           tg_schedule_segment(forward) == tg_schedule_segment(backward);
}

/* Schedules that keep tensors, each at the point that the model would take, for every cut. */
struct keeper {
    tg_schedule schedule;
    double seconds;
};

struct keepers {
    uint32_t n, room;
    struct keeper *all;
    bool is_full; /* there was no memory for one */
};

static void add_keeper(void *user, const tg_choice *choice)
{
    struct keepers *keepers = user;
    if (keepers->n == keepers->room) {
        const uint32_t room = keepers->room ? 2 * keepers->room : 16;
        struct keeper *all = realloc(keepers->all, room * sizeof *all);
        keepers->is_full |= !all;
        if (!all)
            return;
        keepers->all = all;
        keepers->room = room;
    }
    keepers->all[keepers->n++] = (struct keeper){*choice->schedule, choice->seconds};
}

static bool find_keepers(const tg_variant *variant, const tg_target *target, const tg_shape_class *class,
                         const tg_sizes *sizes, struct keepers *keepers)
{
    return tg_schedule_each(variant, target, class, sizes, TG_EACH_BY_NAME | TG_EACH_KEEPING, add_keeper, keepers,
                            NULL) == TG_OK &&
           !keepers->is_full;
}

/* What rows do not say one by one, their whole does. */
static bool fits(struct keeper *keeper, const tg_target *target, const tg_shape_class *class)
{
    if (tg_plan_check(&keeper->schedule, target, class, NULL) != TG_OK)
        keeper->seconds = HUGE_VAL;
    return keeper->seconds < HUGE_VAL;
}

/* The fastest two of which one leaves what the other takes. */
static bool fastest_pair(const struct keepers keepers[2], struct keeper *pair[2])
{
    double least = HUGE_VAL;
    for (struct keeper *first = keepers[0].all; first < keepers[0].all + keepers[0].n; first++)
        for (struct keeper *then = keepers[1].all; then < keepers[1].all + keepers[1].n; then++)
            if (first->seconds + then->seconds < least && match(&first->schedule, &then->schedule)) {
                least = first->seconds + then->seconds;
                pair[0] = first;
                pair[1] = then;
            }
    return least < HUGE_VAL;
}

/* ---- one of a pair ---- */

static bool keeps(const tg_schedule *schedule, const char *const *names, uint32_t n_names)
{
    uint32_t n = 0, n_found = 0;
    for (; n < TG_MAX_KEPT && schedule->kept[n]; n++)
        for (uint32_t i = 0; i < n_names; i++)
            n_found += strcmp(schedule->algorithm->tensors[schedule->kept[n]].name, names[i]) == 0;
    return n == n_names && n_found == n;
}

static struct keeper *fastest_of(const struct keepers *keepers)
{
    struct keeper *found = NULL;
    for (struct keeper *k = keepers->all; k < keepers->all + keepers->n; k++)
        if (k->seconds < HUGE_VAL && (!found || k->seconds < found->seconds))
            found = k;
    return found;
}

bool tg_schedule_keeping(const tg_variant *variant, const char *const *names, uint32_t n_names, uint32_t segment,
                         const tg_target *target, const tg_shape_class *class, const tg_sizes *sizes,
                         tg_schedule *schedule)
{
    struct keepers keepers = {.n = 0};
    struct keeper *found = NULL;
    tg_sizes whole = *sizes; /* sequences so long that the search does not leave that segment out */
    const int64_t least = (sizes->chunk * segment + 1) * (class->packed ? sizes->batch : 1);
    whole.tokens = whole.tokens < least ? least : whole.tokens;
    bool is_good = find_keepers(variant, target, class, &whole, &keepers);
    for (struct keeper *k = keepers.all; is_good && k < keepers.all + keepers.n; k++)
        if (!keeps(&k->schedule, names, n_names) || tg_schedule_cut(&k->schedule) != segment)
            k->seconds = HUGE_VAL;
    while (is_good && (found = fastest_of(&keepers)) && !fits(found, target, class))
        continue;
    is_good = is_good && found;
    if (is_good)
        *schedule = found->schedule;
    free(keepers.all);
    return is_good;
}

/* ---- both ---- */

bool tg_schedules_keeping(const tg_variant *forward, const tg_schedule *given, const tg_target *target,
                          const tg_shape_class *class, const tg_sizes *sizes, tg_keeping *pair)
{
    struct keepers keepers[2] = {{.n = 0}, {.n = 0}};
    struct keeper *best[2];
    tg_sizes cut = *sizes;
    bool is_found = !given || given->kept[0];
    if (given) {
        cut.chunk = given->chunk;
        add_keeper(&keepers[0], &(tg_choice){.schedule = given});
    } else {
        is_found = find_keepers(forward, target, class, sizes, &keepers[0]);
    }
    is_found = is_found && find_keepers(forward->backward, target, class, &cut, &keepers[1]);
    while (is_found && (is_found = fastest_pair(keepers, best))) {
        const bool both = fits(best[0], target, class);
        if (fits(best[1], target, class) && both)
            break;
    }
    if (is_found)
        *pair = (tg_keeping){best[0]->schedule, best[1]->schedule};
    free(keepers[0].all);
    free(keepers[1].all);
    return is_found;
}
