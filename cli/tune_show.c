/* cli/tune_show.c - what the tuner found, as a table and a chart, or as JSON. */
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAR = 28, TOP = 8 };

/* Without a driver nothing is measured. */
static bool is_prediction(const tg_tune_request *request)
{
    return !request->machine->driver;
}

static bool is_usable(const tg_candidate *candidate)
{
    return candidate->state == TG_TIMED || candidate->state == TG_PREDICTED;
}

static int by_time(const void *a, const void *b)
{
    const tg_candidate *x = *(const tg_candidate *const *)a;
    const tg_candidate *y = *(const tg_candidate *const *)b;
    if (is_usable(x) != is_usable(y))
        return is_usable(x) ? -1 : 1;
    return (x->milliseconds > y->milliseconds) - (x->milliseconds < y->milliseconds);
}

static void print_row(const tg_candidate *candidate)
{
    char workspace[32];
    printf("  %10.3f ms  %9.0f GB/s  %7.1f TFLOP/s  %10s  ", candidate->milliseconds,
           candidate->cost.bytes / candidate->milliseconds / 1e6, candidate->cost.flops / candidate->milliseconds / 1e9,
           bytes_text(candidate->workspace, workspace));
    if (candidate->state == TG_TIMED)
        printf("rms %.1e  ", candidate->verdict.error.rms_ratio);
    printf("%s\n", candidate->text);
}

static void print_table(const tg_tuning *tuning)
{
    const tg_candidate *sorted[TG_MAX_CANDIDATES];
    for (uint32_t i = 0; i < tuning->n_candidates; i++)
        sorted[i] = &tuning->candidates[i];
    qsort(sorted, tuning->n_candidates, sizeof sorted[0], by_time);
    uint32_t failed = 0;
    for (uint32_t i = 0; i < tuning->n_candidates; i++) {
        failed += !is_usable(sorted[i]);
        if (i < TOP && is_usable(sorted[i]))
            print_row(sorted[i]);
    }
    printf("  %u candidate%s%s", tuning->n_candidates, tuning->n_candidates == 1 ? "" : "s",
           tuning->n_candidates > TOP ? ", the best shown" : "");
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
    const uint32_t segment = tg_schedule_segment(schedule);
    (void)snprintf(text, 32, segment > 1 ? "%u x %u" : "%u", schedule->chunk, segment);
    return text;
}

/* By schedule, then by chunk or segment size. */
static int by_cut(const void *a, const void *b)
{
    const tg_schedule *x = &(*(const tg_candidate *const *)a)->schedule;
    const tg_schedule *y = &(*(const tg_candidate *const *)b)->schedule;
    const int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : (int)(x->chunk * tg_schedule_segment(x)) - (int)(y->chunk * tg_schedule_segment(y));
}

static bool is_alone(const tg_candidate *const *swept, uint32_t n, uint32_t i)
{
    const char *name = swept[i]->schedule.name;
    return (i == 0 || strcmp(swept[i - 1]->schedule.name, name) != 0) &&
           (i + 1 == n || strcmp(swept[i + 1]->schedule.name, name) != 0);
}

/* Only the chunk or segment size varies here, so that the two curves of the TFLA paper's figure 6 show. Where one size is all
 * there is, there is no curve. */
static void print_chart(const tg_tuning *tuning)
{
    const tg_candidate *swept[TG_MAX_CANDIDATES];
    uint32_t n = 0;
    double slowest = 0, largest = 0;
    for (uint32_t i = 0; i < tuning->n_candidates; i++) {
        const tg_candidate *candidate = &tuning->candidates[i];
        if (!candidate->is_sweep || !is_usable(candidate))
            continue;
        swept[n++] = candidate;
        slowest = fmax(slowest, candidate->milliseconds);
        largest = fmax(largest, candidate->workspace);
    }
    qsort(swept, n, sizeof *swept, by_cut);
    const char *shown = "";
    for (uint32_t i = 0; i < n; i++) {
        const tg_candidate *candidate = swept[i];
        char workspace[32], cut[32];
        if (is_alone(swept, n, i))
            continue;
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

void tuning_print(const tg_tune_request *request, const tg_tuning *tuning)
{
    const tg_shape *shape = &request->shape;
    const tg_target *target = request->machine->target;
    printf("%s %s, B=%lld NH=%lld T=%lld dqk=%lld dhv=%lld", request->variant->name, tg_dtype_name(request->io),
           (long long)shape->batch, (long long)shape->heads, (long long)shape->tokens, (long long)shape->dqk,
           (long long)shape->dhv);
    if (shape->group > 1)
        printf(" group=%lld", (long long)shape->group);
    printf(shape->packed ? " packed, " : ", ");
    if (is_prediction(request))
        printf("PREDICTED by the cost model for %s (%s), not measured:\n", target->gpu ? target->gpu : "a GPU",
               target->arch);
    else
        printf("measured on %s:\n", request->machine->device.name);
    print_table(tuning);
    print_chart(tuning);
}

static json_t *candidate_json(const tg_candidate *candidate)
{
    static const char *const states[] = {"timed", "predicted", "not built", "wrong", "not run"};
    json_t *json = json_pack("{s:s, s:i, s:s, s:f, s:f, s:f}", "schedule", candidate->text, "chunk",
                             (int)candidate->schedule.chunk, "state", states[candidate->state], "workspace_bytes",
                             candidate->workspace, "model_ms", 1e3 * candidate->cost.seconds, "model_bytes",
                             candidate->cost.bytes);
    if (is_usable(candidate))
        json_object_set_new(json, "ms", json_number(candidate->milliseconds));
    if (*candidate->reason)
        json_object_set_new(json, "reason", json_string(candidate->reason));
    if (candidate->verdict.name)
        json_object_set_new(json, "rms_ratio", json_number(candidate->verdict.error.rms_ratio));
    return json;
}

json_t *tuning_json(const tg_tune_request *request, const tg_tuning *tuning)
{
    const tg_target *target = request->machine->target;
    const char *predicted_for = target->gpu ? target->gpu : "";
    json_t *candidates = json_array();
    for (uint32_t i = 0; i < tuning->n_candidates; i++)
        json_array_append_new(candidates, candidate_json(&tuning->candidates[i]));
    return json_pack("{s:s, s:s, s:b, s:b, s:s, s:s, s:o, s:o, s:o, s:o}", "variant", request->variant->name, "device",
                     is_prediction(request) ? predicted_for : request->machine->device.name, "prediction",
                     is_prediction(request), "cancelled", tuning->is_cancelled, "arch", target->arch, "dtype",
                     tg_dtype_name(request->io), "shape", shape_json(&request->shape), "candidates", candidates, "best",
                     tuning->best ? candidate_json(tuning->best) : json_null(), "default",
                     tuning->untuned ? candidate_json(tuning->untuned) : json_null());
}
