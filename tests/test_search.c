/* tests/test_search.c - what the cost model takes by default: of schedules that are named, and of all points of all spaces. */
#include "cli/cli.h"
#include "dsl/bind.h"
#include "dsl/fields.h"
#include "kernels/tap.h"
#include "tests/usage.h"
#include "variants/variants.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* ---- the default ---- */

/* One point of a table, with the table's space. */
struct alone {
    tg_schedule table;
    tg_point points[2];
    tg_space space;
};

static void take_alone(const char *name, struct alone *alone)
{
    const tg_point *point;
    for (struct tg_table table = {0}; tg_table_next(&tg_mlstm_sig, &table);)
        for (uint32_t at = 0; tg_point_next(&table, &at, &point);)
            if (point && strcmp(point->name, name) == 0) {
                alone->table = *table.declared;
                alone->points[0] = *point;
                alone->points[1] = (tg_point){.name = NULL};
                for (const tg_space *const *space = tg_mlstm_sig.spaces; *space; space++)
                    if ((*space)->schedule == table.declared)
                        alone->space = **space;
            }
    alone->table.points = alone->points;
    alone->space.schedule = &alone->table;
}

/* Of these schedules in this order; "" for none. */
static const char *chosen(const char *const names[4], const tg_sizes *sizes, uint32_t tokens)
{
    const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = 256, .tokens = tokens};
    const tg_schedule *schedules[5] = {NULL};
    const tg_space *spaces[5] = {NULL};
    struct alone all[4] = {0};
    uint32_t n_spaces = 0;
    tg_variant variant = tg_mlstm_sig;
    for (int i = 0; i < 4 && names[i]; i++) {
        take_alone(names[i], &all[i]);
        schedules[i] = &all[i].table;
        if (all[i].space.vary)
            spaces[n_spaces++] = &all[i].space;
    }
    variant.schedules = schedules;
    variant.spaces = spaces;
    tg_schedule s;
    const tg_status status = tg_schedule_default(&variant, tg_target_find("sm_90a"), &class, sizes, &s, &silent_sink);
    return status == TG_OK ? s.name : "";
}

static void suite_default(void)
{
    static const tg_sizes short_call = {1, 1, 512, 0}, many_calls = {64, 16, 32, 0}, few_heads = {1, 16, 65536, 0};
    static const struct {
        const char *names[4];
        const tg_sizes *sizes;
        uint32_t tokens;
        const char *expected, *why;
    } rows[] = {
        {{"tfla-small", "tfla"}, NULL, 0, "tfla", "much faster, though declared later"},
        {{"tfla-small", "walk"}, &short_call, 0, "tfla-small", "few tokens want small blocks"},
        {{"tfla-keep", "tfla-wide", "tfla-small"}, NULL, 0, "tfla-wide", "kept states are asked for"},
        {{"tfla", "tfla-wide"}, &many_calls, 0, "tfla", "a tie: declared first"},
        {{"step", "tfla"}, NULL, 0, "tfla", "a decode step does no sequence"},
        {{"tfla", "step8"}, NULL, 8, "step8", "made for decode steps"},
        {{"tfla", "step"}, NULL, 8, "tfla", "no step of so many tokens"},
        {{"tfla", "walk"}, NULL, 0, "walk", "the states never leave the chip"},
        {{"tfla", "walk"}, &few_heads, 0, "tfla", "16 walks on 132 multiprocessors"},
        {{"tfla", "walk", "segments"}, &few_heads, 0, "segments", "128 walks of an eighth"},
        {{"walk", "segments"}, NULL, 0, "walk", "one segment: a kernel more that does nothing"},
        {{"tfla", "tfla-wgmma"}, &few_heads, 0, "tfla-wgmma", "the same on warpgroups"},
        {{"tfla", "walk-wide-cast"}, NULL, 0, "tfla", "faster, but only by name"},
        {{"step8", "step"}, NULL, 1, "step", "no room for more tokens than there are"},
        {{"tfla-fp32"}, NULL, 0, "", "refused"},
    };
    if (!tap_begin("the default is what the model thinks fastest"))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *found = chosen(rows[i].names, rows[i].sizes, rows[i].tokens);
        tap_expect(strcmp(found, rows[i].expected) == 0, "expected %s (%s), found %s", rows[i].expected, rows[i].why,
                   found);
    }
    tap_end();
}

/* ---- the search ---- */

/* Where transitions of segments are blocks of values they cost as much again: few heads and long sequences alone. */
static void suite_linear(void)
{
    static const struct {
        const tg_variant *variant;
        tg_sizes sizes;
        uint32_t group;
        const char *name;
        uint32_t least, most;
    } rows[] = {
        {&tg_gated_delta, {1, 32, 8192, 0}, 2, "segments", 32, 43},
        {&tg_gated_delta, {1, 32, 32768, 0}, 2, "segments", 64, 128},
        {&tg_gated_delta, {1, 8, 32768, 0}, 4, "segments", 22, 43},
        {&tg_gated_delta, {1, 32, 512, 0}, 2, "walk-narrow", 1, 1},
        {&tg_gated_delta, {4, 32, 8192, 0}, 2, "walk", 1, 1},
        {&tg_gated_delta, {8, 32, 4096, 0}, 2, "walk", 1, 1},
        {&tg_gated_delta, {8, 32, 8192, 0}, 1, "walk", 1, 1},
        {&tg_kda, {1, 8, 32768, 0}, 1, "segments", 16, 64},
        {&tg_kda, {8, 32, 8192, 0}, 1, "walk-made", 1, 1},
        {&tg_gla, {1, 4, 32768, 0}, 1, "segments", 16, 64},
        {&tg_gla, {8, 16, 8192, 0}, 1, "walk", 1, 1},
    };
    if (!tap_begin("few heads of the delta rule and of decays by channels are cut into segments"))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = 128, .group = rows[i].group};
        tg_schedule s;
        tap_expect(tg_schedule_default(rows[i].variant, tg_target_find("sm_90a"), &class, &rows[i].sizes, &s,
                                       &silent_sink) == TG_OK,
                   "row %zu: none", i);
        const uint32_t chunks = tg_schedule_segment(&s);
        tap_expect(strcmp(s.name, rows[i].name) == 0 && chunks >= rows[i].least && chunks <= rows[i].most,
                   "row %zu: %s, segments of %u", i, s.name, chunks);
    }
    tap_end();
}

/* Heads that share queries: by pairs where they fill the GPU so, else in segments of all walks, which measured faster than pairs in
 * segments (bench/NOTES.md, 2026-11-26). With decays of channels each head writes its own gradients, which rows sum up; wide states
 * are two thread blocks' (2026-11-28). */
static void suite_gradients(void)
{
    static const struct {
        const tg_variant *variant;
        tg_sizes sizes;
        uint32_t group, dqk, dhv;
        const char *name;
    } rows[] = {{&tg_gated_delta, {1, 32, 8192, 0}, 2, 128, 128, "segments-all-paired"},
                {&tg_gated_delta, {1, 32, 32768, 0}, 2, 128, 128, "segments-all-paired"},
                {&tg_gated_delta, {8, 32, 4096, 0}, 2, 128, 128, "walk-paired"},
                {&tg_kda, {8, 32, 8192, 0}, 1, 128, 128, "walk"},
                {&tg_kda, {8, 32, 8192, 0}, 2, 128, 128, "walk-sums"},
                {&tg_kda, {1, 8, 32768, 0}, 4, 128, 128, "segments-sums"},
                {&tg_kda_safe, {4, 16, 8192, 0}, 1, 128, 256, "walk-cluster"},
                {&tg_kda, {4, 16, 8192, 0}, 1, 192, 192, "walk-wide"},
                {&tg_kda, {4, 16, 8192, 0}, 1, 96, 96, "walk-narrow"},
                {&tg_kda, {4, 16, 8192, 0}, 1, 16, 16, "walk-narrow"},
                {&tg_kda, {1, 32, 65536, 0}, 1, 16, 16, "segments"},
                {&tg_gla, {8, 16, 8192, 0}, 2, 32, 32, "walk-sums-narrow"},
                {&tg_kda, {4, 16, 8192, 0}, 1, 160, 160, "walk-wide"},
                {&tg_gla, {4, 16, 8192, 0}, 1, 32, 32, "segments-narrow"},
                {&tg_gla, {8, 16, 8192, 0}, 4, 128, 256, "walk-sums"},
                {&tg_gla, {8, 4, 8192, 0}, 1, 256, 512, "walk-cluster"},
                {&tg_gla, {8, 4, 8192, 0}, 2, 256, 512, "walk-sums-cluster"}};
    if (!tap_begin("gradients are made by the walks that fill the GPU, and heads' sums by rows or clusters"))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tg_shape_class class = {.io = TG_BF16, .dqk = rows[i].dqk, .dhv = rows[i].dhv, .group = rows[i].group};
        tg_schedule s = {.name = ""};
        tap_expect(tg_schedule_default(rows[i].variant->backward, tg_target_find("sm_90a"), &class, &rows[i].sizes, &s,
                                       &silent_sink) == TG_OK &&
                       strcmp(s.name, rows[i].name) == 0,
                   "row %zu: %s", i, s.name);
    }
    tap_end();
}

static void note_sums(void *user, const tg_choice *choice)
{
    *(bool *)user |= strstr(choice->declared->name, "-sums") != NULL;
}

/* Planning them takes a decision time, and where each head has its own keys they are never best. */
static void suite_sums(void)
{
    const tg_target *target = tg_target_find("sm_90a");
    const tg_sizes sizes = {8, 32, 8192, 0};
    if (!tap_begin("rows that sum up heads are searched where heads share queries and keys, or by name"))
        return;
    for (uint32_t group = 1; group <= 2; group++)
        for (int named = 0; named < 2; named++) {
            const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = 128, .group = group};
            bool found = false;
            (void)tg_schedule_each(tg_kda.backward, target, &class, &sizes, named ? TG_EACH_BY_NAME : 0, note_sums,
                                   &found, &silent_sink);
            tap_expect(found == (named || group == 2), "group %u, %s: %s", group, named ? "all" : "by default",
                       found ? "searched" : "not searched");
        }
    tap_end();
}

/* Both of a pair are found again by what they keep, also of a sequence too short for a segment. */
static void expect_each_again(const tg_variant *variant, const tg_keeping *pair, const tg_target *target,
                              const tg_shape_class *class, const tg_sizes *sizes)
{
    const char *names[TG_MAX_KEPT];
    const tg_schedule *const f = &pair->forward;
    uint32_t n = 0;
    for (; n < TG_MAX_KEPT && f->kept[n]; n++)
        names[n] = f->algorithm->tensors[f->kept[n]].name;
    for (int which = 0; which < 3; which++) {
        const tg_schedule *const wanted = which == 1 ? &pair->backward : f;
        tg_sizes cut = *sizes;
        tg_schedule found;
        cut.chunk = f->chunk;
        cut.tokens = which == 2 ? 40 : cut.tokens;
        const bool is_found = tg_schedule_keeping(which == 1 ? variant->backward : variant, names, n,
                                                  tg_schedule_cut(f), target, class, &cut, &found);
        tap_expect(is_found && tg_schedule_cut(&found) == tg_schedule_cut(wanted) &&
                       (which == 2 || strcmp(found.name, wanted->name) == 0),
                   "%s again: %s", wanted->name, is_found ? found.name : "none");
    }
}

/* A forward that leaves what its backward takes. The length of segments is the model's as well: of 32,768 tokens 3.87 ms were
 * measured by 32 chunks, which the points are declared with, and 3.50 by 128 (bench/NOTES.md). */
static void suite_kept(void)
{
    static const struct {
        const tg_variant *variant;
        tg_sizes sizes;
        uint32_t group, dhv;
        const char *forward, *backward;
        uint32_t least, most;
    } rows[] = {
        {&tg_gated_delta, {1, 32, 8192, 0}, 2, 128, "segments-keep-states", "segments-all-paired-kept", 32, 32},
        {&tg_gated_delta, {1, 32, 32768, 0}, 2, 128, "segments-keep-states", "segments-all-paired-kept", 128, 128},
        {&tg_gated_delta, {8, 32, 4096, 0}, 2, 128, "walk-keep", "walk-paired-kept", 1, 1},
        {&tg_delta_net, {8, 32, 8192, 0}, 1, 128, "walk-keep", "walk-kept", 1, 1},
        {&tg_kda, {8, 32, 8192, 0}, 1, 128, "walk-keep", "walk-kept", 1, 1},
        {&tg_kda, {8, 32, 8192, 0}, 2, 128, "walk-keep", "walk-sums-kept", 1, 1},
        {&tg_kda, {4, 16, 8192, 0}, 1, 256, "walk-keep", "walk-cluster-kept", 1, 1},
        {&tg_mlstm_sig, {1, 16, 65536, 0}, 1, 256, "segments-keep", "segments-joint-kept", 128, 128},
    };
    if (!tap_begin("schedules that keep tensors are cut as the model likes it"))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = rows[i].dhv, .group = rows[i].group};
        const tg_target *target = tg_target_find("sm_90a");
        tg_keeping pair;
        if (!tap_expect(tg_schedules_keeping(rows[i].variant, NULL, target, &class, &rows[i].sizes, &pair),
                        "row %zu: none", i))
            continue;
        const uint32_t chunks = tg_schedule_segment(&pair.forward);
        tap_expect(strcmp(pair.forward.name, rows[i].forward) == 0 &&
                       strcmp(pair.backward.name, rows[i].backward) == 0 && chunks >= rows[i].least &&
                       chunks <= rows[i].most && chunks == tg_schedule_segment(&pair.backward),
                   "row %zu: %s and %s, segments of %u and %u", i, pair.forward.name, pair.backward.name, chunks,
                   tg_schedule_segment(&pair.backward));
        expect_each_again(rows[i].variant, &pair, target, &class, &rows[i].sizes);
    }
    tap_end();
}

/* No schedule is declared with segments of 64 chunks, nor is it found again by what is remembered for other sizes. */
static void suite_segments(void)
{
    const tg_shape_class class = {.io = TG_BF16, .dqk = 256, .dhv = 256};
    const tg_sizes sizes = {2, 8, 16384, 0}, others = {2, 8, 4096, 0};
    const tg_target *target = tg_target_find("sm_90a");
    tg_schedule first, between, again;
    if (!tap_begin("the default is cut into segments as the model likes it"))
        return;
    tap_expect(tg_schedule_default(&tg_mlstm_exp, target, &class, &sizes, &first, &silent_sink) == TG_OK, "none");
    tap_expect(tg_schedule_default(&tg_mlstm_exp, target, &class, &others, &between, &silent_sink) == TG_OK, "none");
    tap_expect(tg_schedule_default(&tg_mlstm_exp, target, &class, &sizes, &again, &silent_sink) == TG_OK, "none");
    tap_expect(tg_schedule_segment(&first) == 64, "%s, segments of %u", first.name, tg_schedule_segment(&first));
    tap_expect(tg_schedule_segment(&between) == 16, "%s, segments of %u", between.name, tg_schedule_segment(&between));
    tap_expect(memcmp(&first, &again, sizeof first) == 0, "another one the second time");
    tap_end();
}

/* A generator of its own, so that a seed means the same shape everywhere. */
static uint32_t draw(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

struct drawn {
    const tg_variant *variant;
    tg_shape_class class;
    tg_sizes sizes;
};

static struct drawn draw_shape(uint32_t seed)
{
    uint32_t state = seed * 2654435761u, n = 0;
    struct drawn drawn = {.class = {.io = TG_BF16, .group = 1}};
    while (tg_builtin_variants[n])
        n++;
    drawn.variant = tg_builtin_variants[draw(&state, n)];
    if (draw(&state, 2))
        drawn.variant = drawn.variant->backward;
    drawn.class.dqk = 64 * (1 + draw(&state, 4));
    drawn.class.dhv = 64 * (1 + draw(&state, 8));
    drawn.class.group = draw(&state, 4) ? 1 : 4;
    drawn.class.packed = draw(&state, 4) == 0;
    drawn.sizes = (tg_sizes){1 << draw(&state, 4), 4 << draw(&state, 4), 512 << draw(&state, 8), 0};
    return drawn;
}

/* 0: it does not fit. */
static double seconds_of(const struct drawn *drawn, const tg_schedule *schedule)
{
    const tg_target *target = tg_target_find("sm_90a");
    tg_sizes sizes = drawn->sizes;
    tg_cost cost;
    sizes.chunk = schedule->chunk;
    return tg_plan_check(schedule, target, &drawn->class, &silent_sink) == TG_OK &&
                   tg_cost_estimate(schedule, target, &drawn->class, &sizes, &cost, &silent_sink) == TG_OK
               ? cost.seconds
               : 0;
}

/* Where the point has the field, and it is not fixed. */
static void set_field(tg_schedule *schedule, uint32_t fixed, const tg_vary *vary, uint32_t value)
{
    const uint32_t kind = vary->field == TG_FIELD_CHUNK ? TG_FIXED_CUT : TG_FIXED_BLOCKS;
    struct tg_field_at at;
    if (tg_vary_at(schedule, vary, &at) && (vary->field == TG_FIELD_SEGMENT || !(fixed & kind)))
        tg_vary_apply(vary, value, schedule);
}

/* The fastest of the schedule's points that differ in one field from what is declared, or in as many as are drawn. */
static double best_point(const struct drawn *drawn, const tg_schedule *declared, uint32_t fixed, const tg_space *space,
                         uint32_t *state)
{
    double best = seconds_of(drawn, declared);
    for (uint32_t v = 0; space && v < space->n_vary; v++)
        for (uint32_t i = 0; i < TG_MAX_VALUES && space->vary[v].values[i]; i++) {
            tg_schedule schedule = *declared;
            set_field(&schedule, fixed, &space->vary[v], space->vary[v].values[i]);
            for (uint32_t w = 0; w < space->n_vary && draw(state, 2); w++) {
                const uint32_t k = draw(state, TG_MAX_VALUES);
                if (w != v && space->vary[w].values[k])
                    set_field(&schedule, fixed, &space->vary[w], space->vary[w].values[k]);
            }
            const double seconds = seconds_of(drawn, &schedule);
            best = seconds > 0 && (best == 0 || seconds < best) ? seconds : best;
        }
    return best;
}

static double best_of_all(const struct drawn *drawn, uint32_t seed)
{
    const tg_variant *variant = drawn->variant;
    double best = 0;
    uint32_t state = seed;
    const tg_point *point;
    for (struct tg_table table = {0}; tg_table_next(variant, &table);) {
        const tg_space *own = NULL;
        for (const tg_space *const *space = variant->spaces; space && *space; space++)
            own = (*space)->schedule == table.declared ? *space : own;
        for (uint32_t at = 0; tg_point_next(&table, &at, &point);) {
            tg_schedule s;
            if (tg_point_bind(&table, point, NULL, &s, NULL) != TG_OK || s.max_tokens || s.kept[0] ||
                s.by_name & (drawn->class.group == 1 ? TG_NAMED | TG_NAMED_ALONE : TG_NAMED))
                continue;
            const double seconds = best_point(drawn, &s, point ? point->fixed : 0, own, &state);
            best = seconds > 0 && (best == 0 || seconds < best) ? seconds : best;
        }
    }
    return best;
}

static void note_walk(void *user, const tg_choice *choice)
{
    bool *any = user;
    for (uint32_t r = 0; r < choice->schedule->n_rows; r++)
        *any |= choice->schedule->rows[r].mma == TG_MMA_WGMMA;
}

/* All pairs of multiples of 64; and every width that there is as dqk and as dhv, each with one of all. */
enum { PAIRS_OF_64 = 8 * 8, WIDTHS = 63 };

static tg_shape_class width_pair(uint32_t i)
{
    if (i < PAIRS_OF_64)
        return (tg_shape_class){.io = TG_BF16, .dqk = 64 * (1 + i % 8), .dhv = 64 * (1 + i / 8)};
    return (tg_shape_class){.io = TG_BF16, .dqk = 16 + 8 * (i % WIDTHS), .dhv = 16 + 8 * (26 * i % WIDTHS)};
}

/* No width falls back to mma.sync: each has some point on warpgroups. */
static void suite_widths(void)
{
    const tg_sizes sizes = {2, 16, 4096, 0};
    if (!tap_begin("of the scalar gates every width has a schedule on warpgroups, forward and backward"))
        return;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++)
        for (uint32_t i = 0; i < 2 * (PAIRS_OF_64 + WIDTHS); i++) {
            const tg_variant *variant = i & 1 ? (*v)->backward : *v;
            if (strcmp(variant->algorithm->file, "variants/scalar.inc") != 0) /* another family, whose walks are few */
                continue;
            const tg_shape_class class = width_pair(i / 2);
            bool any = false;
            tg_schedule_each(variant, tg_target_find("sm_90a"), &class, &sizes, 0, note_walk, &any, &silent_sink);
            tap_expect(any, "%s, dqk %u dhv %u: none", variant->name, class.dqk, class.dhv);
        }
    tap_end();
}

/* What a user waits for once a shape. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const double most_seconds = 0.2;
#else
static const double most_seconds = 0.01;
#endif

/* Sixty shapes; of all points that are tried none is faster, but for the tenth that is a tie. */
static void suite_search(void)
{
    const double most = 1.1;
    double worst = 1, slowest = 0, sum = 0;
    if (!tap_begin("the default is the model's best of all spaces"))
        return;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        const struct drawn drawn = draw_shape(seed);
        tg_schedule chosen;
        const clock_t begin = clock();
        const tg_status status = tg_schedule_default(drawn.variant, tg_target_find("sm_90a"), &drawn.class,
                                                     &drawn.sizes, &chosen, &silent_sink);
        const double took = (double)(clock() - begin) / CLOCKS_PER_SEC;
        slowest = fmax(slowest, took);
        sum += took;
        const double best = best_of_all(&drawn, seed), own = status == TG_OK ? seconds_of(&drawn, &chosen) : 0;
        worst = fmax(worst, own / best);
        tap_expect(own > 0 && own <= most * best, "seed %u, %s %u/%u B %d NH %d T %d: %s takes %.4f ms, another %.4f",
                   seed, drawn.variant->name, drawn.class.dqk, drawn.class.dhv, (int)drawn.sizes.batch,
                   (int)drawn.sizes.heads, (int)drawn.sizes.tokens, status == TG_OK ? chosen.name : "nothing",
                   1e3 * own, 1e3 * best);
    }
    tap_note("at most %.3f times the best; the slowest decision took %.1f ms", worst, 1e3 * slowest);
    tap_expect(sum / 60 < most_seconds, "a decision takes %.1f ms on average", 1e3 * sum / 60);
    tap_end();
}

/* ---- the GPU at hand ---- */

static const char *default_on(const tg_target *target)
{
    const tg_shape_class class = {.io = TG_BF16, .dqk = 128, .dhv = 128, .group = 2};
    const tg_sizes sizes = {1, 32, 8192, 0};
    static tg_schedule s;
    return tg_schedule_default(&tg_gated_delta, target, &class, &sizes, &s, &silent_sink) == TG_OK ? s.name : "";
}

static bool is_near(double x, double expected)
{
    return fabs(x / expected - 1) < 1e-6;
}

static void try_own_gpu(void)
{
    const tg_target *h200 = tg_target_find("sm_90a"),
                    *pcie = tg_target_for_gpu(90, "NVIDIA H100 PCIe", 114, 1593000, 5120);
    if (!tap_begin("a GPU that is in no table has its own numbers, and is made once"))
        return;
    tap_expect(strcmp(pcie->arch, "sm_90a") == 0 && strcmp(pcie->gpu, "NVIDIA H100 PCIe") == 0, "%s", pcie->gpu);
    tap_expect(pcie->sms == 114 && pcie->shared_optin == h200->shared_optin, "%u multiprocessors", pcie->sms);
    tap_expect(is_near(pcie->bandwidth, 0.87 * 2 * 1.593e9 * 640), "%g bytes a second", pcie->bandwidth);
    tap_expect(is_near(pcie->wgmma_flops, h200->wgmma_flops * 114 / 132), "%g by wgmma", pcie->wgmma_flops);
    tap_expect(is_near(pcie->matrix_flops, h200->matrix_flops * 114 / 132), "%g by mma.sync", pcie->matrix_flops);
    tap_expect(tg_target_for_gpu(90, "NVIDIA H100 PCIe", 114, 1593000, 5120) == pcie, "twice");
    tap_expect(tg_target_for_gpu(90, "NVIDIA H100 PCIe", 113, 1593000, 5120) != pcie, "other multiprocessors");
    tap_expect(tg_target_for_gpu(90, "NVIDIA H100 PCIe", 114, 1593000, 6144) != pcie, "another memory");
    tap_end();
}

static void suite_gpus(void)
{
    static const struct {
        int cc;
        const char *name;
        int sms, clock, bus;
        const char *arch, *gpu; /* NULL: none */
    } rows[] = {
        {90, "NVIDIA H200", 132, 3201000, 6144, "sm_90a", "H200"},
        {90, "NVIDIA H100 80GB HBM3", 132, 2619000, 5120, "sm_90a", "H100"},
        {90, "NVIDIA H20", 78, 2619000, 6144, "sm_90a", "H20"},
        {90, "NVIDIA H20-3e", 78, 3201000, 6144, "sm_90a", "NVIDIA H20-3e"},
        {80, "NVIDIA A100-SXM4-80GB", 108, 1593000, 5120, "sm_80", "A100"},
        {86, "NVIDIA A10", 72, 6251000, 384, "sm_86", "NVIDIA A10"},
        {87, "Orin", 16, 3200000, 256, "sm_86", "Orin"},
        {80, "Tegula emulator", 4, 0, 0, "sm_80", "A100"}, /* nothing is known of its memory */
        {90, "NVIDIA H200", 0, 3201000, 6144, "sm_90a", "H200"},
        {90, NULL, 78, 2619000, 6144, "sm_90a", "H200"},
        {75, "NVIDIA T4", 40, 5001000, 256, NULL, NULL},
    };
    if (tap_begin("the model's numbers are those of the GPU at hand")) {
        for (size_t i = 0; i < TG_COUNT(rows); i++) {
            const tg_target *t = tg_target_for_gpu(rows[i].cc, rows[i].name, rows[i].sms, rows[i].clock, rows[i].bus);
            tap_expect(!t == !rows[i].arch && (!t || strcmp(t->arch, rows[i].arch) == 0), "%s: architecture %s",
                       rows[i].name ? rows[i].name : "no name", t ? t->arch : "none");
            tap_expect(!t || strcmp(t->gpu, rows[i].gpu) == 0, "%s: %s", rows[i].name ? rows[i].name : "no name",
                       t ? t->gpu : "");
        }
        const tg_target *h20 = tg_target_for_gpu(90, "NVIDIA H20", 78, 2619000, 6144);
        tap_expect(tg_target_for_gpu(90, "NVIDIA H20-3e", 78, 3201000, 6144)->wgmma_flops == h20->wgmma_flops,
                   "an H20 with more memory multiplies as fast");
        tap_expect(tg_target_for_gpu(90, "NVIDIA H200", 132, 3201000, 6144) == tg_target_find("sm_90a"), "H200");
        tap_expect(strcmp(default_on(tg_target_find("sm_90a")), "segments") == 0, "on an H200");
        tap_expect(strcmp(default_on(h20), "walk-narrow") == 0, "on an H20: %s", default_on(h20));
        tap_end();
    }
    try_own_gpu();
}

int main(int argc, char **argv)
{
    if (!tap_arguments(argc, argv))
        return 2;
    suite_default();
    suite_segments();
    suite_linear();
    suite_gradients();
    suite_sums();
    suite_kept();
    suite_widths();
    suite_search();
    suite_gpus();
    return tap_finish();
}
