/* tuning/advice.c - what tuning has found, for calls like those it was found for.
 *
 * It is advice: damage to a file, or a schedule that no longer fits, must not stop a run. Measuring tells schedules apart,
 * the cost model tells sizes apart: a schedule that was found for another size is taken unless the model thinks that at this
 * one it falls behind what it would choose. */
#include "tuning/tuning.h"

#include <stdio.h>

#include "variants/variants.h"

static const tg_sink silent = {NULL, NULL};

/* The model tells no smaller differences (compiler/choose.c). */
static const double tie = 1.1;

tg_status tg_schedule_set_chunk(tg_schedule *schedule, int64_t chunk, const tg_sink *sink)
{
    char change[40];
    snprintf(change, sizeof change, "chunk=%lld", (long long)chunk);
    return chunk ? tg_schedule_apply(change, schedule, sink) : TG_OK;
}

/* Tuning tells about shapes of a like number of thread blocks and of chunks: within a factor of two. Blocks that suit 128
 * heads leave most of a GPU idle at 16. */
static bool is_near(const tg_wisdom *found, const tg_wisdom *like)
{
    const double heads = (double)(found->batch * found->heads) / (double)(like->batch * like->heads);
    const double tokens = (double)found->tokens / (double)like->tokens;
    return heads >= 0.5 && heads <= 2 && tokens >= 0.5 && tokens <= 2;
}

static double predicted(const tg_wanted *wanted, const tg_schedule *schedule, tg_sizes sizes)
{
    tg_cost cost = {0};
    sizes.chunk = schedule->chunk;
    (void)tg_cost_estimate(schedule, wanted->target, wanted->shape_class, &sizes, &cost, &silent);
    return cost.seconds;
}

/* By what factor the model thinks the schedule slower than its own choice, at the sizes of `at`. */
static double behind(const tg_wanted *wanted, const tg_schedule *schedule, const tg_wisdom *at)
{
    const tg_sizes sizes = {at->batch, at->heads, at->tokens, 0};
    tg_schedule chosen;
    const tg_status status =
        tg_schedule_default(wanted->variant, wanted->target, wanted->shape_class, &sizes, &chosen, &silent);
    return status == TG_OK ? predicted(wanted, schedule, sizes) / predicted(wanted, &chosen, sizes) : 1;
}

static bool keeps_up(const tg_wanted *wanted, const tg_schedule *schedule, const tg_wisdom *found)
{
    const tg_wisdom *like = &wanted->like;
    const bool is_same = found->batch == like->batch && found->heads == like->heads && found->tokens == like->tokens;
    return is_same || behind(wanted, schedule, like) <= tie * behind(wanted, schedule, found);
}

static bool takes_chunk(const tg_wanted *wanted, const tg_schedule *schedule)
{
    tg_schedule changed = *schedule;
    return tg_schedule_set_chunk(&changed, wanted->chunk, &silent) == TG_OK &&
           tg_plan_check(&changed, wanted->target, wanted->shape_class, &silent) == TG_OK;
}

static bool take(const tg_wanted *wanted, const tg_wisdom *found, tg_schedule *schedule, const tg_sink *sink)
{
    return is_near(found, &wanted->like) &&
           tg_variant_schedule_named(wanted->variant, found->schedule, schedule, sink) == TG_OK &&
           tg_plan_check(schedule, wanted->target, wanted->shape_class, sink) == TG_OK &&
           takes_chunk(wanted, schedule) && keeps_up(wanted, schedule, found);
}

/* What is found wrong can be done without: errors become warnings. */
static void emit_warning(void *user, const tg_diag *diag)
{
    const tg_sink *to = user;
    tg_diag milder = *diag;
    if (milder.severity == TG_ERROR)
        milder.severity = TG_WARNING;
    if (to && to->emit)
        to->emit(to->user, &milder);
}

bool tg_wisdom_advice(const tg_wanted *wanted, const char *path, tg_wisdom *found, tg_schedule *schedule,
                      const tg_sink *sink)
{
    const tg_sink milder = {emit_warning, (void *)(uintptr_t)sink};
    int is_found = 0;
    /* What is shipped is of the schedules it came with: a loaded variant may have others by the same names. */
    if (!path && tg_variant_find(wanted->variant->name) != wanted->variant)
        return false;
    const tg_status status =
        path ? tg_wisdom_find(path, &wanted->like, found, &is_found, &milder)
             : tg_wisdom_find_in(tg_shipped_wisdom, tg_shipped_name, &wanted->like, found, &is_found, &milder);
    return status == TG_OK && is_found && take(wanted, found, schedule, &milder);
}
