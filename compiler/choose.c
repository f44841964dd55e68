/* compiler/choose.c - which of a variant's schedules, when nobody says. */
#include "compiler/plan.h"

static const double tie = 1.1; /* the model tells no smaller differences */

tg_sizes tg_sizes_usual(const tg_shape_class *shape)
{
    tg_sizes sizes = {.batch = 8, .heads = 16, .tokens = 8192};
    if (shape->tokens) {
        sizes.batch = 64;
        sizes.tokens = shape->tokens;
    }
    if (group_of(shape) > 1)
        sizes.heads = round_up((uint32_t)sizes.heads, group_of(shape));
    if (shape->packed)
        sizes.tokens *= sizes.batch;
    return sizes;
}

/* Can it be called with this chunk size? 0: its own. */
static bool takes_chunk(const tg_schedule *s, int64_t chunk)
{
    return chunk == 0 ||
           (chunk % plan_chunk_multiple(s) == 0 && (plan_chunk_most(s) == 0 || chunk <= plan_chunk_most(s)));
}

/* Seconds, or 0 when it is not to be taken. */
static double predicted(const tg_schedule *s, const tg_target *target, const tg_shape_class *shape,
                        const tg_sizes *sizes, bool is_step)
{
    const tg_sink quiet = {0};
    const tg_sizes of_this = {sizes->batch, sizes->heads, sizes->tokens, sizes->chunk ? sizes->chunk : s->chunk};
    tg_cost cost;
    const bool fits = (s->max_tokens != 0) == is_step && (is_step || takes_chunk(s, sizes->chunk)) && !s->kept[0] &&
                      !s->by_name && tg_plan_check(s, target, shape, &quiet) == TG_OK &&
                      tg_cost_estimate(s, target, shape, &of_this, &cost, &quiet) == TG_OK;
    return fits ? cost.seconds + 1e-9 : 0; /* calls of no tokens cost nothing and have a schedule */
}

/* Of decode steps one with room for as few tokens as there are. */
static const tg_schedule *fastest(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                                  const tg_sizes *sizes, bool is_step)
{
    double least = 0;
    uint32_t room = UINT32_MAX;
    for (const tg_schedule *const *s = variant->schedules; s && *s; s++) {
        const double seconds = (*s)->max_tokens > room ? 0 : predicted(*s, target, shape, sizes, is_step);
        if (seconds > 0 && (least == 0 || (*s)->max_tokens < room || seconds < least)) {
            least = seconds;
            room = (*s)->max_tokens;
        }
    }
    for (const tg_schedule *const *s = variant->schedules; least > 0 && *s; s++) {
        const double seconds = (*s)->max_tokens == room ? predicted(*s, target, shape, sizes, is_step) : 0;
        if (seconds > 0 && seconds <= tie * least)
            return *s;
    }
    return NULL;
}

const tg_schedule *tg_schedule_default(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                                       const tg_sizes *sizes, const tg_sink *sink)
{
    if (!variant || !target || !shape)
        return NULL;
    const tg_sizes usual = tg_sizes_usual(shape);
    const tg_sizes *const s = sizes ? sizes : &usual;
    const tg_schedule *found = shape->tokens ? fastest(variant, target, shape, s, true) : NULL;
    if (!found)
        found = fastest(variant, target, shape, s, false);
    for (const tg_schedule *const *all = variant->schedules; !found && all && *all; all++) {
        const tg_status status = tg_plan_check(*all, target, shape, sink);
        if (status == TG_E_ARGUMENT)
            break; /* the shape is no shape: said once */
        if (status == TG_OK && !takes_chunk(*all, s->chunk))
            tg_report(sink, TG_ERROR, "TG0542", (*all)->file, (*all)->rows[0].line, NULL,
                      "schedule %s: chunk size %lld, expected a multiple of %u%s", (*all)->name, (long long)s->chunk,
                      plan_chunk_multiple(*all), plan_chunk_most(*all) ? " and no more" : "");
    }
    return found;
}
