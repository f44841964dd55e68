/* cli/wisdom.c - what tuning has found, for calls like those it was found for.
 *
 * It is advice: damage to a file, or a schedule that no longer fits, must not stop a run. Measuring
 * tells schedules apart, the cost model tells sizes apart: a schedule that was found for another
 * size is taken unless the model thinks that at this one it falls behind what it would choose.
 * What was found here goes before what is shipped. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

#include "variants/variants.h"

/* The model tells no smaller differences (compiler/choose.c). */
static const double tie = 1.1;

/* A call whose schedule is sought. */
struct wanted {
    const tg_variant *variant;
    const tg_target *target;
    const tg_shape_class *shape;
    tg_wisdom like; /* as an entry for it would be */
    int64_t chunk;  /* that is asked for; 0: any */
};

static bool wisdom_entry(const struct context *context, const tg_variant *variant, const tg_shape_class *class,
                         const tg_shape *shape, tg_wisdom *entry)
{
    const tg_sizes sizes = {shape->batch, shape->heads, shape->tokens, 0};
    return tg_wisdom_of(&context->machine.device, variant, class, &sizes, entry);
}

const char *wisdom_path(const struct context *context)
{
    return context->options.wisdom ? context->options.wisdom : context->wisdom;
}

/* Tuning tells about shapes of a like number of thread blocks and of chunks: within a factor of
 * two. Blocks that suit 128 heads leave most of a GPU idle at 16. */
static bool is_near(const tg_wisdom *found, const tg_wisdom *like)
{
    const double heads = (double)(found->batch * found->heads) / (double)(like->batch * like->heads);
    const double tokens = (double)found->tokens / (double)like->tokens;
    return heads >= 0.5 && heads <= 2 && tokens >= 0.5 && tokens <= 2;
}

static double predicted(const struct wanted *wanted, const tg_schedule *schedule, tg_sizes sizes)
{
    tg_cost cost = {0};
    sizes.chunk = schedule->chunk;
    (void)tg_cost_estimate(schedule, wanted->target, wanted->shape, &sizes, &cost, &silent_sink);
    return cost.seconds;
}

/* By what factor the model thinks the schedule slower than its own choice, at the sizes of `at`. */
static double behind(const struct wanted *wanted, const tg_schedule *schedule, const tg_wisdom *at)
{
    const tg_sizes sizes = {at->batch, at->heads, at->tokens, 0};
    tg_schedule chosen;
    const tg_status status =
        tg_schedule_default(wanted->variant, wanted->target, wanted->shape, &sizes, &chosen, &silent_sink);
    return status == TG_OK ? predicted(wanted, schedule, sizes) / predicted(wanted, &chosen, sizes) : 1;
}

static bool keeps_up(const struct wanted *wanted, const tg_schedule *schedule, const tg_wisdom *found)
{
    const tg_wisdom *like = &wanted->like;
    const bool is_same = found->batch == like->batch && found->heads == like->heads && found->tokens == like->tokens;
    return is_same || behind(wanted, schedule, like) <= tie * behind(wanted, schedule, found);
}

static bool takes_chunk(const struct wanted *wanted, const tg_schedule *schedule)
{
    tg_schedule changed = *schedule;
    return schedule_chunk(&changed, wanted->chunk, &silent_sink) &&
           tg_plan_check(&changed, wanted->target, wanted->shape, &silent_sink) == TG_OK;
}

static bool take(struct context *context, const struct wanted *wanted, const tg_wisdom *found, tg_schedule *schedule)
{
    return is_near(found, &wanted->like) &&
           schedule_from_text(context, wanted->variant, wanted->target, wanted->shape, NULL, found->schedule,
                              schedule) &&
           tg_plan_check(schedule, wanted->target, wanted->shape, &context->sink) == TG_OK &&
           takes_chunk(wanted, schedule) && keeps_up(wanted, schedule, found);
}

/* What `tegula tune` found. */
static bool take_own(struct context *context, const struct wanted *wanted, tg_wisdom *found, tg_schedule *schedule)
{
    const char *path = wisdom_path(context);
    int is_found = 0;
    return *path && access(path, F_OK) == 0 &&
           tg_wisdom_find(path, &wanted->like, found, &is_found, &context->sink) == TG_OK && is_found &&
           take(context, wanted, found, schedule);
}

/* What came with the command. It is of the schedules it was built with: a loaded variant may have
 * others by the same names. */
static bool take_shipped(struct context *context, const struct wanted *wanted, tg_wisdom *found, tg_schedule *schedule)
{
    int is_found = 0;
    return tg_variant_find(wanted->variant->name) == wanted->variant &&
           tg_wisdom_find_in(shipped_wisdom, shipped_name, &wanted->like, found, &is_found, &context->sink) == TG_OK &&
           is_found && take(context, wanted, found, schedule);
}

bool schedule_remembered(struct context *context, const tg_variant *variant, const tg_target *target,
                         const tg_shape_class *shape, const tg_shape *sizes, int64_t chunk, struct choice *choice)
{
    struct wanted wanted = {variant, target, shape, {.cc = 0}, chunk};
    if (context->options.no_wisdom || !context->machine.driver || context->machine.is_emulator ||
        !wisdom_entry(context, variant, shape, sizes, &wanted.like))
        return false;
    tg_wisdom found;
    context->is_advice = true;
    const char *origin = take_own(context, &wanted, &found, &choice->schedule)       ? "wisdom"
                         : take_shipped(context, &wanted, &found, &choice->schedule) ? "shipped wisdom"
                                                                                     : NULL;
    context->is_advice = false;
    if (origin)
        snprintf(choice->origin, sizeof choice->origin, "%s", origin);
    return origin != NULL;
}

bool schedule_measured(struct context *context, const tg_variant *variant, const tg_target *target,
                       const tg_shape_class *shape, const tg_shape *sizes, int64_t chunk, struct choice *choice)
{
    struct wanted wanted = {variant, target, shape, {.cc = 0}, chunk};
    if (context->options.no_wisdom || !wisdom_entry(context, variant, shape, sizes, &wanted.like))
        return false;
    tg_wisdom found;
    wanted.like.cc = target->cc;
    wanted.like.device[0] = '\0'; /* any of that capability */
    context->is_advice = true;
    const bool is_own = context->options.wisdom && take_own(context, &wanted, &found, &choice->schedule);
    const bool is_found = is_own || take_shipped(context, &wanted, &found, &choice->schedule);
    context->is_advice = false;
    if (is_found)
        snprintf(choice->origin, sizeof choice->origin, "%s, %.40s", is_own ? "wisdom" : "shipped wisdom",
                 found.device);
    return is_found;
}
