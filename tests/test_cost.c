/* tests/test_cost.c - the cost model beside what was measured on a GPU.
 *
 *   test_cost RESULTS.json... --kernels RESULTS.json... --tuned RESULTS.json...
 *
 * A line of such a file (bench/gpu.sh) is a measurement: a median of `tegula bench`, or the
 * candidates that `tegula tune` timed; of the middle ones the kernels count, too; of the last ones, what bench/choice.py
 * found. */
#include "cli/cli.h"
#include "compiler/plan_program.h"
#include "dsl/bind.h"
#include "dsl/fields.h"
#include "kernels/tap.h"
#include "variants/variants.h"
#include "tests/usage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The model chooses among schedules and says what to expect; a schedule is worth trying when it may
 * be faster than another by more than this. Medians of one kernel differ by up to 9 % between
 * commits that did not touch it (bench/NOTES.md), blocks that do the same work by 10 % (H.stages,
 * H.warps), and the model counts neither bank conflicts nor clocks: what it cannot see adds up to
 * 25 %, and tuning is for the rest. On average it must be three times as good. */
static const double tolerance = 0.25, average = 0.08;
/* A decode step of several tokens: nor does it count what every thread does once for them, gates in
 * fp64 among it, which differs from variant to variant. No schedule is chosen by it. */
static const double tolerance_of_tokens = 0.35;
/* Of the chunk sizes that were swept, the model's choice takes at most so much longer than the
 * best. */
static const double regret = 0.05;
/* A kernel may be off by more than the tolerance where that is no more than such a part of its call. */
static const double part_of_call = 0.15;
/* What tuning found faster than the default by more than this, the model must find faster too. */
static const double loss = 0.25;

enum { MOST_POINTS = 2048, LINE = 1 << 20 };

struct point {
    char label[400];
    char variant[32], schedule[256];
    tg_sizes sizes;
    int sweep; /* which one, of those candidates where only schedule and chunk size differ; 0: none
                */
    double measured, predicted;
    double call; /* of a kernel: what all of its call were measured at */
};

/* The default of a drawn shape, and the best that tuning found for it (bench/choice.py). */
struct tuned {
    struct point taken, best;
};

struct taken {
    char label[400];
    double ratio; /* over the best that was timed */
};

static struct context context;
static struct taken taken[MOST_POINTS];
static int n_taken;
static struct point points[MOST_POINTS], kernels[MOST_POINTS];
static struct tuned tuned[MOST_POINTS];
static int n_points, n_kernels, n_unknown, n_sweeps, n_tuned;
/* The line being read is from before a row composed the states of segments: what it says of schedules that have
 * segments is of other kernels. */
static bool is_before_composing;
/* ... or from before decode steps held their state: so is what it says of `step`, and of `step8` without a normaliser. */
static bool is_before_holding;
/* ... or from before parts of a sum had their numbers of dqk or dhv side by side, and sums over heads with threads left over went by
 * several positions at once: and of what makes such sums. */
static bool is_before_sums;
/* ... or from before a ring of two whose rows are made was left in its own step: and of all `-made`. */
static bool is_before_turns;
/* ... or from before gradients of narrow walks had two thread blocks of dK a multiprocessor. */
static bool is_before_two;

/* ... and the GPU. */
static const tg_target *measured_on;

static int64_t integer(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return value ? (int64_t)json_number_value(value) : otherwise;
}

static const char *string(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool has_such_sums(const tg_schedule *schedule, const tg_shape_class *class)
{
    const tg_algorithm *a = schedule->algorithm;
    struct tg_slices slices;
    bool has = false;
    for (uint32_t r = 0; r < schedule->n_rows; r++) {
        const uint32_t block = schedule->rows[r].row[TG_DQK].block;
        has |= strcmp(schedule->rows[r].name, "dQsum") == 0 && block && class->dqk % block;
    }
    tg_schedule_slice(schedule, schedule->n_rows, &slices);
    for (uint32_t t = 1; t < a->n_tensors; t++) {
        uint32_t last = TG_AXIS_NONE;
        for (uint32_t i = 0; i < TG_MAX_AXES && a->tensors[t].axes[i] != TG_AXIS_NONE; i++)
            last = a->tensors[t].axes[i];
        has |= plan_is_width(last) && plan_parts(schedule, &slices, class, t) > 1;
    }
    return has;
}

/* A schedule that was measured once and is declared no more tells nothing. */
static bool predict(struct point *point, const tg_shape_class *class, tg_cost *sum)
{
    const tg_target *target = measured_on;
    const tg_variant *variant = variant_lookup(&context, point->variant);
    tg_schedule schedule;
    context.sink = silent_sink;
    if (!variant || !schedule_from_text(&context, variant, target, class, NULL, point->schedule, &schedule))
        return false;
    if (is_before_sums && has_such_sums(&schedule, class))
        return false;
    schedule.chunk = point->sizes.chunk ? (uint32_t)point->sizes.chunk : schedule.chunk;
    return tg_plan_check(&schedule, target, class, &silent_sink) == TG_OK &&
           tg_cost_estimate(&schedule, target, class, &point->sizes, sum, &silent_sink) == TG_OK;
}

static tg_shape_class class_of(const json_t *shape)
{
    const int64_t tokens = integer(shape, "T", 0);
    return (tg_shape_class){.io = TG_BF16,
                            .dqk = (uint32_t)integer(shape, "dqk", 0),
                            .dhv = (uint32_t)integer(shape, "dhv", 0),
                            .group = (uint32_t)integer(shape, "group", 1),
                            .packed = json_is_true(json_object_get(shape, "packed")),
                            .tokens = (uint32_t)(tokens <= 8 ? tokens : 0)}; /* decode steps */
}

/* False if its schedule is declared no more. */
static bool make_point(const json_t *shape, const char *variant, const char *schedule, int64_t chunk, double measured,
                       struct point *point)
{
    const int64_t tokens = integer(shape, "T", 0);
    const tg_shape_class class = class_of(shape);
    tg_cost cost;
    *point =
        (struct point){.sizes = {integer(shape, "B", 0), integer(shape, "NH", 0), tokens, chunk}, .measured = measured};
    snprintf(point->variant, sizeof point->variant, "%s", variant);
    snprintf(point->schedule, sizeof point->schedule, "%s", schedule);
    snprintf(point->label, sizeof point->label, "%s B %lld NH %lld T %lld %u/%u %s chunk %lld", variant,
             (long long)point->sizes.batch, (long long)point->sizes.heads, (long long)tokens, class.dqk, class.dhv,
             schedule, (long long)chunk);
    if (!predict(point, &class, &cost))
        return false;
    point->predicted = 1e3 * cost.seconds;
    return true;
}

/* Of decays by fragments, where the name means rows of lanes now. */
static bool is_of_fragments(const char *variant, const char *schedule)
{
    return strstr(schedule, strstr(variant, "-backward") ? "walk-wide" : "-gates") != NULL;
}

/* Does the name mean other kernels now? */
static bool is_former(const char *variant, const char *schedule)
{
    const bool has_normaliser = strcmp(variant, "mlstm-exp") == 0 || strcmp(variant, "mlstm-sig-norm") == 0;
    const bool is_backward = strstr(variant, "-backward") != NULL;
    if (is_of_fragments(variant, schedule) || (is_before_composing && strncmp(schedule, "segments", 8) == 0) ||
        (is_before_turns && strstr(schedule, "-made")) || (is_before_two && is_backward && strstr(schedule, "-narrow")))
        return true;
    if (is_before_sums && is_backward && strstr(variant, "delta")) /* dQ had two sums and a product more */
        return true;
    return is_before_holding && !strchr(schedule, ' ') && strncmp(schedule, "step", 4) == 0 &&
           (!has_normaliser || strcmp(schedule, "step") == 0);
}

static void add_point(const json_t *shape, const char *variant, const json_t *of, double measured)
{
    const char *schedule = string(of, "schedule");
    if (n_points == MOST_POINTS)
        return;
    if (!is_former(variant, schedule) &&
        make_point(shape, variant, schedule, integer(of, "chunk", 0), measured, &points[n_points]))
        n_points++;
    else
        n_unknown++;
}

/* What is chosen now for a drawn shape, beside all that was timed for it. */
static void add_taken(const json_t *shape, const char *name, const json_t *timed)
{
    const tg_shape_class class = class_of(shape);
    const tg_sizes sizes = {integer(shape, "B", 0), integer(shape, "NH", 0), integer(shape, "T", 0), 0};
    const tg_variant *variant = variant_lookup(&context, name);
    char text[TG_SCHEDULE_TEXT];
    tg_schedule schedule;
    const char *each;
    const json_t *ms;
    double best = HUGE_VAL;
    if (!timed || n_taken == MOST_POINTS ||
        tg_schedule_default(variant, measured_on, &class, &sizes, &schedule, &silent_sink) != TG_OK)
        return;
    tg_schedule_text(variant, &schedule, text);
    json_object_foreach((json_t *)timed, each, ms) best = fmin(best, json_number_value(ms));
    if ((ms = json_object_get(timed, text)) == NULL || is_former(name, text))
        return; /* it was not timed */
    taken[n_taken] = (struct taken){.ratio = json_number_value(ms) / best};
    snprintf(taken[n_taken].label, sizeof taken->label, "%s B %lld NH %lld T %lld: %s", name, (long long)sizes.batch,
             (long long)sizes.heads, (long long)sizes.tokens, text);
    n_taken++;
}

/* T of a drawn shape is that of each sequence. */
static void add_tuned(const json_t *line)
{
    json_t *shape = json_object_get(line, "choice");
    struct tuned *one = &tuned[n_tuned];
    char variant[40];
    snprintf(variant, sizeof variant, "%s%s", string(shape, "variant"),
             json_is_true(json_object_get(shape, "backward")) ? "-backward" : "");
    if (json_is_true(json_object_get(shape, "packed")))
        json_object_set_new(shape, "T", json_integer(integer(shape, "T", 0) * integer(shape, "B", 0)));
    add_taken(shape, variant, json_object_get(line, "timed"));
    if (n_tuned < MOST_POINTS &&
        make_point(shape, variant, string(line, "default"), 0, json_number_value(json_object_get(line, "default_ms")),
                   &one->taken) &&
        make_point(shape, variant, string(line, "best"), 0, json_number_value(json_object_get(line, "best_ms")),
                   &one->best))
        n_tuned++;
}

/* Each kernel of a line of `tegula bench --roofline`, by a schedule as it is declared. */
static void add_kernels(const json_t *shape, const char *name, const json_t *of)
{
    const tg_target *target = measured_on;
    const tg_shape_class class = class_of(shape);
    const tg_sizes sizes = {integer(shape, "B", 0), integer(shape, "NH", 0), integer(shape, "T", 0),
                            integer(of, "chunk", 0)};
    const tg_variant *variant = variant_lookup(&context, name);
    tg_schedule schedule;
    tg_cost costs[TG_MAX_ROWS];
    const json_t *kernel;
    size_t i;
    context.sink = silent_sink;
    if (!variant || strchr(string(of, "schedule"), '.') || is_of_fragments(name, string(of, "schedule")) ||
        !schedule_from_text(&context, variant, target, &class, NULL, string(of, "schedule"), &schedule) ||
        (is_before_sums && has_such_sums(&schedule, &class)) ||
        tg_cost_kernels(&schedule, target, &class, &sizes, costs, &silent_sink) != TG_OK)
        return;
    double call = 0;
    json_array_foreach(json_object_get(of, "kernels"), i, kernel) call +=
        json_number_value(json_object_get(kernel, "median_ms"));
    json_array_foreach(json_object_get(of, "kernels"), i, kernel)
    {
        for (uint32_t r = 0; r < schedule.n_rows && n_kernels < MOST_POINTS; r++) {
            struct point *point = &kernels[n_kernels];
            if (strcmp(schedule.rows[r].name, string(kernel, "name")) != 0)
                continue;
            snprintf(point->label, sizeof point->label, "%s of %s, %s B %lld NH %lld T %lld", schedule.rows[r].name,
                     name, schedule.name, (long long)sizes.batch, (long long)sizes.heads, (long long)sizes.tokens);
            point->measured = json_number_value(json_object_get(kernel, "median_ms"));
            point->predicted = 1e3 * costs[r].seconds;
            point->call = call;
            n_kernels++;
        }
    }
}

static bool is_sweep(const char *schedule)
{
    const char *change = strchr(schedule, ' ');
    return !change || (strncmp(change, " chunk=", 7) == 0 && !strchr(change + 1, ' '));
}

static void add_candidates(const json_t *line)
{
    const json_t *candidate;
    size_t i;
    n_sweeps++;
    json_array_foreach(json_object_get(line, "candidates"), i, candidate)
    {
        const int n = n_points;
        if (json_object_get(candidate, "ms"))
            add_point(json_object_get(line, "shape"), string(line, "variant"), candidate,
                      json_number_value(json_object_get(candidate, "ms")));
        if (n_points > n && is_sweep(string(candidate, "schedule")))
            points[n].sweep = n_sweeps;
    }
}

static void add_line(const json_t *line, bool with_kernels)
{
    const json_t *shape = json_object_get(line, "shape");
    if (json_object_get(line, "candidates"))
        add_candidates(line);
    for (; json_is_object(line); line = json_object_get(line, "backward")) {
        if (json_object_get(line, "median_ms"))
            add_point(shape, string(line, "variant"), line, json_number_value(json_object_get(line, "median_ms")));
        if (with_kernels)
            add_kernels(shape, string(line, "variant"), line);
    }
}

/* "NVIDIA H100 80GB HBM3, driver 580.159.04": the first that has the name, or the H200. */
static const tg_target *gpu_of(const json_t *line)
{
    for (const tg_target *const *t = tg_gpus(); *t; t++)
        if (strstr(string(line, "machine"), (*t)->gpu) || strstr(string(line, "device"), (*t)->gpu))
            return *t;
    return tg_target_find("sm_90a");
}

enum kind { TIMES, KERNELS, TUNED };

static void read_results(const char *path, enum kind kind)
{
    static char text[LINE];
    FILE *file = fopen(path, "r");
    tap_expect(file != NULL, "cannot open %s", path);
    while (file && fgets(text, sizeof text, file)) {
        json_t *line = json_loads(text, 0, NULL);
        is_before_composing = line && strcmp(string(line, "date"), "2026-11-22T07") < 0;
        is_before_holding = line && strcmp(string(line, "date"), "2026-11-22T21") < 0;
        is_before_sums = line && strcmp(string(line, "date"), "2026-11-28") < 0;
        is_before_turns = line && strcmp(string(line, "date"), "2026-11-30T08") < 0;
        is_before_two = line && strcmp(string(line, "date"), "2026-11-30T19") < 0;
        measured_on = gpu_of(line);
        if (kind == TUNED && line && json_object_get(line, "ratio"))
            add_tuned(line);
        if (kind != TUNED && line && json_object_get(line, "shape"))
            add_line(line, kind == KERNELS);
        json_decref(line);
    }
    if (file)
        fclose(file);
}

static void suite_times(void)
{
    double sum = 0;
    if (!tap_begin("predicted times are within %.0f %% of measured ones", 100 * tolerance))
        return;
    for (int i = 0; i < n_points; i++) {
        const struct point *p = &points[i];
        const double off = fabs(log(p->predicted / p->measured));
        sum += off;
        const bool several = p->sizes.tokens > 1 && p->sizes.tokens <= 8;
        tap_expect(off <= log(1 + (several ? tolerance_of_tokens : tolerance)), "%s: predicted %.3f ms, measured %.3f",
                   p->label, p->predicted, p->measured);
    }
    tap_note("%d times, %.1f %% off on average; %d of schedules that are no more", n_points, 100 * sum / n_points,
             n_unknown);
    tap_expect(n_points > 150, "only %d times found", n_points);
    tap_expect(sum / n_points <= average, "%.1f %% off on average", 100 * sum / n_points);
    tap_end();
}

static void suite_each_kernel(void)
{
    double sum = 0, all = 0;
    if (!tap_begin("single kernels are within %.0f %% of measured ones, or %.0f %% of their call", 100 * tolerance,
                   100 * part_of_call))
        return;
    for (const struct point *p = kernels; p < kernels + n_kernels; p++) {
        const double off = fabs(log(p->predicted / p->measured));
        sum += off * p->measured / p->call;
        all += p->measured / p->call;
        tap_expect(off <= log(1 + tolerance) || fabs(p->predicted - p->measured) <= part_of_call * p->call,
                   "%s: predicted %.4f ms, measured %.4f", p->label, p->predicted, p->measured);
    }
    tap_note("%d kernels, %.1f %% off on average, by their parts of a call", n_kernels, 100 * sum / all);
    tap_expect(n_kernels > 200, "only %d kernels found", n_kernels);
    tap_expect(sum / all <= 1.5 * average, "%.1f %% off on average", 100 * sum / all);
    tap_end();
}

static void check_choice(int sweep)
{
    const struct point *chosen = NULL, *best = NULL;
    for (const struct point *p = points; p < points + n_points; p++) {
        if (p->sweep != sweep)
            continue;
        chosen = !chosen || p->predicted < chosen->predicted ? p : chosen;
        best = !best || p->measured < best->measured ? p : best;
    }
    if (!chosen) /* of schedules that are no more */
        return;
    tap_expect(chosen->measured <= (1 + regret) * best->measured,
               "the model's choice, %s, takes %.3f ms; %s takes %.3f", chosen->label, chosen->measured, best->label,
               best->measured);
}

static void suite_choices(void)
{
    if (!tap_begin("the schedule and chunk size that the model would choose are fast"))
        return;
    for (int sweep = 1; sweep <= n_sweeps; sweep++)
        check_choice(sweep);
    tap_expect(n_sweeps >= 2, "only %d sweeps found", n_sweeps);
    tap_end();
}

static void suite_tuned(void)
{
    if (!tap_begin("what tuning found %.0f %% faster than the default the model finds faster too", 100 * loss))
        return;
    for (const struct tuned *d = tuned; d < tuned + n_tuned; d++)
        tap_expect(d->taken.measured <= (1 + loss) * d->best.measured || d->best.predicted < d->taken.predicted,
                   "%s: %.3f ms, predicted %.3f; %s: %.3f, predicted %.3f", d->taken.label, d->taken.measured,
                   d->taken.predicted, d->best.schedule, d->best.measured, d->best.predicted);
    tap_expect(n_tuned >= 40, "only %d drawn shapes found", n_tuned);
    tap_end();
}

static void suite_taken(void)
{
    int n_near = 0;
    double most = 0;
    if (!tap_begin("the default takes at most %.0f %% longer than the best that was timed for a drawn shape",
                   100 * loss))
        return;
    for (const struct taken *t = taken; t < taken + n_taken; t++) {
        n_near += t->ratio <= 1.03;
        most = fmax(most, t->ratio);
        tap_expect(t->ratio <= 1 + loss, "%s takes %.2f times the best", t->label, t->ratio);
    }
    tap_note("%d shapes, %d within 3 %%, at most %.2f times the best", n_taken, n_near, most);
    tap_expect(n_taken >= 40, "only %d drawn shapes, whose default was timed", n_taken);
    tap_expect(2 * n_near > n_taken, "only %d within 3 %%", n_near);
    tap_end();
}

static tg_schedule named(const char *name)
{
    tg_schedule schedule = {.n_rows = 0};
    (void)tg_variant_schedule_named(&tg_mlstm_sig, name, &schedule, NULL);
    return schedule;
}

/* ---- kernel by kernel ---- */

static void suite_kernels(void)
{
    const tg_target *target = tg_target_find("sm_90a");
    const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = 256};
    const tg_sizes sizes = {8, 16, 8192, 256};
    const tg_schedule tfla = named("tfla"), *schedule = &tfla;
    tg_cost costs[TG_MAX_ROWS], sum;
    if (!tap_begin("costs of single kernels are those of bench/NOTES.md, and add up"))
        return;
    tap_expect(schedule && tg_cost_kernels(schedule, target, &class, &sizes, costs, &silent_sink) == TG_OK, "no costs");
    tap_expect(tg_cost_estimate(schedule, target, &class, &sizes, &sum, &silent_sink) == TG_OK, "no sum");
    /* gates, state, H: bytes and flops at L = 256; to three digits */
    static const double bytes[] = {33.6e6, 1.35e9, 2.17e9}, flops[] = {0, 68.7e9, 275e9};
    for (int i = 0; i < 3; i++) {
        tap_expect(fabs(costs[i].bytes - bytes[i]) < 5e-3 * bytes[i], "%s: %.4g bytes", schedule->rows[i].name,
                   costs[i].bytes);
        tap_expect(fabs(costs[i].flops - flops[i]) <= 5e-3 * flops[i], "%s: %.4g flops", schedule->rows[i].name,
                   costs[i].flops);
        tap_expect(costs[i].seconds > fmax(costs[i].memory_seconds, costs[i].matrix_seconds),
                   "%s: faster than its floor", schedule->rows[i].name);
        sum.bytes -= costs[i].bytes;
        sum.flops -= costs[i].flops;
        sum.seconds -= costs[i].seconds - (i ? costs[i].hidden_seconds : 0);
        sum.workspace -= costs[i].workspace;
    }
    tap_expect(fabs(sum.bytes) < 1 && fabs(sum.flops) < 1e3 && fabs(sum.seconds) < 1e-9 && fabs(sum.workspace) < 1,
               "the sum is another");
    tap_expect(costs[0].workspace > 0 && costs[1].workspace > costs[0].workspace && costs[2].workspace == 0,
               "the workspace is that of other kernels");
    tap_end();
}

/* What a hand-written walk of the same arrangement took (bench/NOTES.md). */
static void suite_walk(void)
{
    const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = 256};
    const tg_sizes sizes = {8, 16, 8192, 64};
    const double prototype = 0.43e-3;
    tg_cost cost;
    const tg_schedule walk = named("walk");
    if (!tap_begin("a walk is predicted to take what the prototype took"))
        return;
    tap_expect(tg_cost_estimate(&walk, tg_target_find("sm_90a"), &class, &sizes, &cost, &silent_sink) == TG_OK,
               "no cost");
    tap_expect(fabs(log(cost.seconds / prototype)) < log(1 + tolerance), "%.3f ms", 1e3 * cost.seconds);
    tap_note("%.3f ms", 1e3 * cost.seconds);
    tap_end();
}

/* Sequences one behind the other move what as many of that length do. */
static void suite_packed(void)
{
    const tg_target *target = tg_target_find("sm_90a");
    const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = 256};
    tg_shape_class packed = class;
    const tg_sizes sizes = {8, 16, 8192, 256}, all = {8, 16, 8 * 8192, 256};
    const tg_schedule tfla = named("tfla"), *schedule = &tfla;
    tg_cost one, other;
    packed.packed = 1;
    if (!tap_begin("packed sequences cost what others do"))
        return;
    tap_expect(schedule && tg_cost_estimate(schedule, target, &class, &sizes, &one, &silent_sink) == TG_OK &&
                   tg_cost_estimate(schedule, target, &packed, &all, &other, &silent_sink) == TG_OK,
               "no costs");
    tap_expect(one.bytes == other.bytes && one.flops == other.flops, "%.4g bytes and %.4g flops, packed %.4g and %.4g",
               one.bytes, one.flops, other.bytes, other.flops);
    tap_end();
}

/* Short calls too, where a segment is all there is. */
static void suite_numbers(void)
{
    static const tg_sizes sizes[] = {{1, 1, 1, 0}, {8, 16, 8192, 0}, {1, 16, 65536, 0}};
    const tg_target *target = tg_target_find("sm_90a");
    const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = 256};
    int n = 0;
    if (!tap_begin("every schedule is predicted to take some time"))
        return;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++)
        for (int back = 0; back < 2; back++) {
            const tg_variant *variant = back ? (*v)->backward : *v;
            tg_schedule s;
            for (uint32_t at = 0; tg_variant_schedule(variant, at, &s); at++)
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                    tg_cost cost;
                    if (s.max_tokens || tg_cost_estimate(&s, target, &class, &sizes[i], &cost, &silent_sink) != TG_OK)
                        continue;
                    n++;
                    tap_expect(cost.seconds > 1e-6 && cost.seconds < 1 && cost.bytes > 0,
                               "%s %s at T %d: %g s, %g bytes", variant->name, s.name, (int)sizes[i].tokens,
                               cost.seconds, cost.bytes);
                }
        }
    tap_expect(n > 100, "only %d", n);
    tap_end();
}

int main(int argc, char **argv)
{
    context_init(&context);
    enum kind kind = TIMES;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--kernels") == 0)
            kind = KERNELS;
        else if (strcmp(argv[i], "--tuned") == 0)
            kind = TUNED;
        else if (argv[i][0] != '-')
            read_results(argv[i], kind);
        else
            return usage_wrong(argv, argv[i], "RESULTS.json... [--kernels RESULTS.json...] [--tuned RESULTS.json...]");
    suite_times();
    suite_each_kernel();
    suite_choices();
    suite_tuned();
    suite_taken();
    suite_kernels();
    suite_walk();
    suite_packed();
    suite_numbers();
    return tap_finish();
}
