/* cli/wisdom.c - where the command looks for what tuning has found: what was found here goes before what is shipped. */
#include "cli.h"

#include <string.h>

const char *wisdom_path(const struct context *context)
{
    return context->options.wisdom ? context->options.wisdom : context->wisdom;
}

static bool want(const struct context *context, const tg_variant *variant, const tg_target *target,
                 const tg_shape_class *class, const tg_shape *shape, int64_t chunk, tg_wanted *wanted)
{
    const tg_sizes sizes = {shape->batch, shape->heads, shape->tokens, 0};
    *wanted = (tg_wanted){.variant = variant, .target = target, .shape_class = class, .chunk = chunk};
    return !context->options.no_wisdom && tg_wisdom_of(&context->machine.device, variant, class, &sizes, &wanted->like);
}

/* What `tegula tune` found. */
static bool take_own(struct context *context, const tg_wanted *wanted, tg_wisdom *found, tg_schedule *schedule)
{
    const char *path = wisdom_path(context);
    return *path && tg_wisdom_advice(wanted, path, found, schedule, &context->sink);
}

bool schedule_remembered(struct context *context, const tg_variant *variant, const tg_target *target,
                         const tg_shape_class *class, const tg_shape *shape, int64_t chunk, struct choice *choice)
{
    tg_wanted wanted;
    tg_wisdom found;
    if (!context->machine.driver || context->machine.is_emulator ||
        !want(context, variant, target, class, shape, chunk, &wanted))
        return false;
    const bool is_own = take_own(context, &wanted, &found, &choice->schedule);
    const bool is_found = is_own || tg_wisdom_advice(&wanted, NULL, &found, &choice->schedule, &context->sink);
    if (is_found)
        snprintf(choice->origin, sizeof choice->origin, "%s", is_own ? "wisdom" : "shipped wisdom");
    return is_found;
}

bool schedule_measured(struct context *context, const tg_variant *variant, const tg_target *target,
                       const tg_shape_class *class, const tg_shape *shape, int64_t chunk, struct choice *choice)
{
    tg_wanted wanted;
    tg_wisdom found;
    if (!want(context, variant, target, class, shape, chunk, &wanted))
        return false;
    wanted.like.cc = target->cc;
    wanted.like.device[0] = '\0'; /* any of that capability */
    const bool is_own = context->options.wisdom && take_own(context, &wanted, &found, &choice->schedule);
    const bool is_found = is_own || tg_wisdom_advice(&wanted, NULL, &found, &choice->schedule, &context->sink);
    if (is_found)
        snprintf(choice->origin, sizeof choice->origin, "%s, %.40s", is_own ? "wisdom" : "shipped wisdom",
                 found.device);
    return is_found;
}
