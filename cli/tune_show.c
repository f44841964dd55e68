/* cli/tune_show.c - what the tuner found, as a table and a chart, or as JSON. */
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAR = 28, TOP = 8 };

static bool is_usable(const struct candidate *candidate)
{
    return candidate->state == TIMED || candidate->state == PREDICTED;
}

static int by_time(const void *a, const void *b)
{
    const struct candidate *x = *(const struct candidate *const *)a;
    const struct candidate *y = *(const struct candidate *const *)b;
    if (is_usable(x) != is_usable(y))
        return is_usable(x) ? -1 : 1;
    return (x->milliseconds > y->milliseconds) - (x->milliseconds < y->milliseconds);
}

static void print_row(const struct tuner *tuner, const struct candidate *candidate)
{
    char workspace[32];
    printf("  %10.3f ms  %9.0f GB/s  %7.1f TFLOP/s  %10s  ", candidate->milliseconds,
           candidate->cost.bytes / candidate->milliseconds / 1e6, candidate->cost.flops / candidate->milliseconds / 1e9,
           bytes_text(candidate->workspace, workspace));
    if (!tuner->is_prediction)
        printf("rms %.1e  ", candidate->verdict.error.rms_ratio);
    printf("%s\n", candidate->text);
}

static void print_table(const struct tuner *tuner)
{
    const struct candidate *sorted[MAX_CANDIDATES];
    for (uint32_t i = 0; i < tuner->n_candidates; i++)
        sorted[i] = &tuner->candidates[i];
    qsort(sorted, tuner->n_candidates, sizeof sorted[0], by_time);
    uint32_t failed = 0;
    for (uint32_t i = 0; i < tuner->n_candidates; i++) {
        failed += !is_usable(sorted[i]);
        if (i < TOP && is_usable(sorted[i]))
            print_row(tuner, sorted[i]);
    }
    printf("  %u candidates%s", tuner->n_candidates, tuner->n_candidates > TOP ? ", the best shown" : "");
    printf(failed ? "; %u could not be built, run or verified\n" : "\n", failed);
}

static void bar(double value, double most)
{
    int n = most > 0 ? (int)lround(BAR * value / most) : 0;
    for (int i = 0; i < BAR; i++)
        fputs(i < n || (i == 0 && value > 0) ? "#" : " ", stdout);
}

/* "64", or "64 x 128" where so many chunks are a segment. */
static const char *cut_text(const tg_schedule *schedule, char text[32])
{
    const uint32_t segment = schedule_segment(schedule);
    (void)snprintf(text, 32, segment > 1 ? "%u x %u" : "%u", schedule->chunk, segment);
    return text;
}

/* By schedule, then by chunk or segment size. */
static int by_cut(const void *a, const void *b)
{
    const tg_schedule *x = &(*(const struct candidate *const *)a)->schedule;
    const tg_schedule *y = &(*(const struct candidate *const *)b)->schedule;
    const int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : (int)(x->chunk * schedule_segment(x)) - (int)(y->chunk * schedule_segment(y));
}

/* Only the chunk or segment size varies here, so that the two curves of the TFLA paper's figure 6 show. */
static void print_chart(const struct tuner *tuner)
{
    const struct candidate *swept[MAX_CANDIDATES];
    uint32_t n = 0;
    double slowest = 0, largest = 0;
    for (uint32_t i = 0; i < tuner->n_candidates; i++) {
        const struct candidate *candidate = &tuner->candidates[i];
        if (!candidate->is_sweep || !is_usable(candidate))
            continue;
        swept[n++] = candidate;
        slowest = fmax(slowest, candidate->milliseconds);
        largest = fmax(largest, candidate->workspace);
    }
    qsort(swept, n, sizeof *swept, by_cut);
    const char *shown = "";
    for (uint32_t i = 0; i < n; i++) {
        const struct candidate *candidate = swept[i];
        char workspace[32], cut[32];
        if (strcmp(shown, candidate->schedule.name) != 0)
            printf("\n  %s\n  %9s  %-*s  %s\n", candidate->schedule.name, "chunk", BAR + 12, "time", "workspace");
        shown = candidate->schedule.name;
        printf("  %9s  ", cut_text(&candidate->schedule, cut));
        bar(candidate->milliseconds, slowest);
        printf(" %8.3f ms  ", candidate->milliseconds);
        bar(candidate->workspace, largest);
        printf(" %s\n", bytes_text(candidate->workspace, workspace));
    }
}

void tuner_print(const struct tuner *tuner)
{
    const tg_shape *shape = &tuner->shape;
    printf("%s %s, B=%lld NH=%lld T=%lld dqk=%lld dhv=%lld", tuner->variant->name, tg_dtype_name(tuner->class.io),
           (long long)shape->batch, (long long)shape->heads, (long long)shape->tokens, (long long)shape->dqk,
           (long long)shape->dhv);
    if (shape->group > 1)
        printf(" group=%lld", (long long)shape->group);
    printf(shape->packed ? " packed, " : ", ");
    if (tuner->is_prediction)
        printf("PREDICTED by the cost model for %s (%s), not measured:\n",
               tuner->target->gpu ? tuner->target->gpu : "a GPU", tuner->target->arch);
    else
        printf("measured on %s:\n", tuner->context->machine.device.name);
    print_table(tuner);
    print_chart(tuner);
}

static json_t *candidate_json(const struct candidate *candidate)
{
    static const char *const states[] = {"timed", "predicted", "not built", "wrong", "not timed"};
    json_t *json = json_pack("{s:s, s:i, s:s, s:f, s:f, s:f}", "schedule", candidate->text, "chunk",
                             (int)candidate->schedule.chunk, "state", states[candidate->state], "workspace_bytes",
                             candidate->workspace, "model_ms", 1e3 * candidate->cost.seconds, "model_bytes",
                             candidate->cost.bytes);
    if (is_usable(candidate))
        json_object_set_new(json, "ms", json_number(candidate->milliseconds));
    if (candidate->verdict.name)
        json_object_set_new(json, "rms_ratio", json_number(candidate->verdict.error.rms_ratio));
    return json;
}

json_t *tuner_json(const struct tuner *tuner)
{
    json_t *candidates = json_array();
    for (uint32_t i = 0; i < tuner->n_candidates; i++)
        json_array_append_new(candidates, candidate_json(&tuner->candidates[i]));
    return json_pack("{s:s, s:s, s:b, s:s, s:s, s:o, s:o, s:o, s:o}", "variant", tuner->variant->name, "device",
                     tuner->is_prediction ? (tuner->target->gpu ? tuner->target->gpu : "")
                                          : tuner->context->machine.device.name,
                     "prediction", tuner->is_prediction, "arch", tuner->target->arch, "dtype",
                     tg_dtype_name(tuner->class.io), "shape", shape_json(&tuner->shape), "candidates", candidates,
                     "best", tuner->best ? candidate_json(tuner->best) : json_null(), "default",
                     tuner->untuned ? candidate_json(tuner->untuned) : json_null());
}
