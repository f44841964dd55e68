/* tuning/tune_search.c - the search of tg_tune. It starts from the model's (compiler/search.c), with every
 * schedule in the order in which the cost model believes in them, what a call would get untuned at
 * the head, and without those it thinks much slower. Of all of them the chunk and segment sizes first, so
 * that a short budget has seen each; then, at the two best of each, the fastest schedule first, one
 * field at a time (coordinate descent), so that it stays in seconds; then the finalists once more
 * with more runs. */
#include "tuning/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP = 6, ROUNDS = 2, MAX_STARTS = 64, MAX_CHOICES = 1024 };

/* Blocks and stages change a time by less than this factor. */
static const double hopeless = 1.4;
/* And the model is not wrong by this factor: 25 % for either of two schedules (tests/test_cost.c).
 */
static const double unlikely = 1.6;

static bool is_over(const struct tuner *tuner)
{
    return tuner->tuning->is_cancelled || (!tuner->is_prediction && tuner_now() > tuner->deadline);
}

struct option_value {
    tg_schedule schedule;
    double seconds; /* the model's */
};

static int by_model(const void *a, const void *b)
{
    const struct option_value *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* A block wider than the dimension is cut to it: one such value is enough. */
static bool is_repeated(const struct tuner *tuner, const tg_vary *vary, int index)
{
    const int64_t width = vary->dim == TG_DQK ? tuner->shape.dqk : vary->dim == TG_DHV ? tuner->shape.dhv : INT64_MAX;
    if (vary->field != TG_FIELD_BLOCK)
        return false;
    for (int i = 0; i < TG_MAX_VALUES && vary->values[i]; i++)
        if (vary->values[i] >= width && vary->values[i] < vary->values[index])
            return true;
    return false;
}

/* The field's values that the checker accepts on top of `base`; how many. */
static uint32_t accepted_values(const struct tuner *tuner, const tg_schedule *base, const tg_vary *vary,
                                struct option_value values[TG_MAX_VALUES])
{
    uint32_t n = 0;
    for (int i = 0; i < TG_MAX_VALUES && vary->values[i]; i++) {
        struct option_value *value = &values[n];
        value->schedule = *base;
        if (!tg_vary_apply(vary, vary->values[i], &value->schedule) || is_repeated(tuner, vary, i))
            continue;
        /* Beyond twice T a chunk only grows its padding. */
        if (vary->field == TG_FIELD_CHUNK && vary->values[i] / 2 >= tuner->shape.tokens)
            continue;
        if (tg_plan_check(&value->schedule, tuner->target, &tuner->class, NULL) != TG_OK)
            continue;
        tg_cost cost;
        const tg_sizes sizes = tg_sizes_of(&tuner->shape, value->schedule.chunk);
        if (tg_cost_estimate(&value->schedule, tuner->target, &tuner->class, &sizes, &cost, NULL) != TG_OK)
            continue;
        value->seconds = cost.seconds;
        n++;
    }
    return n;
}

/* Those not tried yet are compiled together. */
static void prepare(struct tuner *tuner, const struct option_value *values, uint32_t n)
{
    const tg_schedule *schedules[TG_MAX_VALUES];
    uint32_t n_new = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!tuner_has(tuner, &values[i].schedule))
            schedules[n_new++] = &values[i].schedule;
    if (n_new > 0 && !tuner->is_prediction && !is_over(tuner))
        tuner_prepare(tuner, schedules, n_new);
}

/* The most promising first, without the unlikely: a short budget has then seen what an untuned call would take. */
static void try_likely(struct tuner *tuner, struct option_value *values, uint32_t n, bool is_sweep)
{
    qsort(values, n, sizeof values[0], by_model);
    while (n > 1 && !tuner->is_prediction && values[n - 1].seconds > unlikely * values[0].seconds)
        n--;
    for (uint32_t i = 0; i < n && !is_over(tuner); i++) {
        tg_candidate *candidate = tuner_try(tuner, &values[i].schedule);
        if (candidate && is_sweep)
            candidate->is_sweep = true;
    }
}

/* How the sequence is cut: into chunks, segments, pieces. */
static bool is_cut(const tg_vary *vary)
{
    return vary->field == TG_FIELD_CHUNK || vary->field == TG_FIELD_SEGMENT || vary->field == TG_FIELD_PIECES;
}

/* The lengths of chunks and segments, and pieces, once more, where blocks have changed. */
static void sweep_cuts(struct tuner *tuner, const tg_space *space, const tg_schedule *base)
{
    struct option_value values[TG_MAX_VALUES];
    for (uint32_t v = 0; v < space->n_vary; v++) {
        if (!is_cut(&space->vary[v]))
            continue;
        const uint32_t n = accepted_values(tuner, base, &space->vary[v], values);
        try_likely(tuner, values, n, false);
    }
}

/* Each field in turn, at the value that was best; until a round changes nothing. */
static void descend(struct tuner *tuner, const tg_space *space, const tg_candidate *start)
{
    struct option_value values[TG_MAX_VALUES];
    const uint32_t keep = tuner->request->keep ? tuner->request->keep : KEEP;
    const tg_candidate *here = start;
    for (int round = 0; round < ROUNDS; round++) {
        const tg_candidate *before = here;
        for (uint32_t v = 0; v < space->n_vary; v++) {
            if (is_cut(&space->vary[v]))
                continue;
            uint32_t n = accepted_values(tuner, &here->schedule, &space->vary[v], values);
            qsort(values, n, sizeof values[0], by_model);
            n = n < keep ? n : keep;
            prepare(tuner, values, n);
            for (uint32_t i = 0; i < n && !is_over(tuner); i++) {
                const tg_candidate *there = tuner_try(tuner, &values[i].schedule);
                if (there && there->state <= TG_PREDICTED && there->milliseconds < here->milliseconds)
                    here = there;
            }
        }
        if (here == before || is_over(tuner))
            break;
    }
    sweep_cuts(tuner, space, &here->schedule);
}

/* One of the variant's schedules with what the model's search found for it: a choice for every cut. */
struct start {
    const char *name;             /* of what is declared */
    const tg_space *space;        /* NULL: the schedule has none */
    double seconds;               /* at the best of them: by the model, then as measured */
    struct option_value *choices; /* of starts.choices */
    uint32_t n;
    uint32_t first, end; /* its candidates of the sweep */
};

struct starts {
    struct option_value *choices; /* malloc'ed */
    int64_t tokens;
    uint32_t n_choices, n;
    struct start all[MAX_STARTS];
};

/* Two of one schedule whose segments hold the sequence are the same call. */
static bool is_there_already(const struct starts *starts, const struct start *start, const tg_schedule *schedule)
{
    if ((int64_t)schedule->chunk * tg_schedule_segment(schedule) < starts->tokens)
        return false;
    for (uint32_t i = 0; i < start->n; i++) {
        const tg_schedule *other = &start->choices[i].schedule;
        if (other->chunk == schedule->chunk && (int64_t)other->chunk * tg_schedule_segment(other) >= starts->tokens)
            return true;
    }
    return false;
}

/* The search shows the choices of one schedule after the other. */
static void add_choice(void *user, const tg_choice *choice)
{
    struct starts *starts = user;
    struct start *last = starts->n ? &starts->all[starts->n - 1] : NULL;
    const bool is_next = !last || last->name != choice->declared->name;
    if (choice->declared->max_tokens || starts->n_choices == MAX_CHOICES || (is_next && starts->n == MAX_STARTS))
        return;
    if (!is_next && is_there_already(starts, last, choice->schedule))
        return;
    struct option_value *value = &starts->choices[starts->n_choices++];
    *value = (struct option_value){*choice->schedule, choice->seconds};
    if (is_next) {
        last = &starts->all[starts->n++];
        *last = (struct start){
            .name = choice->declared->name, .space = choice->space, .seconds = HUGE_VAL, .choices = value};
    }
    last->n++;
    last->seconds = fmin(last->seconds, choice->seconds);
}

static int by_seconds(const void *a, const void *b)
{
    const struct start *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* The default goes first: what is found and remembered is never slower than without tuning. */
static void try_default_first(struct tuner *tuner, const tg_sizes *sizes, struct starts *starts)
{
    tg_schedule chosen;
    if (tg_schedule_default(tuner->variant, tuner->target, &tuner->class, sizes, &chosen, tuner->sink) != TG_OK)
        return;
    tuner->tuning->untuned = tuner_try(tuner, &chosen);
    for (uint32_t i = 0; i < starts->n; i++) {
        if (strcmp(starts->all[i].name, chosen.name) != 0)
            continue;
        const struct start found = starts->all[i];
        memmove(&starts->all[1], &starts->all[0], i * sizeof starts->all[0]);
        starts->all[0] = found;
        return;
    }
}

/* All there are, the most promising first. */
static tg_status find_starts(struct tuner *tuner, struct starts *starts)
{
    const tg_sizes sizes = tg_sizes_of(&tuner->shape, 0);
    starts->tokens = tuner->shape.tokens;
    const tg_status status = tg_schedule_each(tuner->variant, tuner->target, &tuner->class, &sizes, TG_EACH_BY_NAME,
                                              add_choice, starts, tuner->sink);
    if (status != TG_OK)
        return status;
    qsort(starts->all, starts->n, sizeof starts->all[0], by_seconds);
    try_default_first(tuner, &sizes, starts);
    return TG_OK;
}

/* At the two fastest of its candidates. */
static void descend_from_best(struct tuner *tuner, const struct start *start)
{
    const tg_candidate *best[2] = {NULL, NULL};
    for (uint32_t i = start->first; i < start->end; i++) {
        const tg_candidate *candidate = &tuner->tuning->candidates[i];
        if (candidate->state != TG_TIMED)
            continue;
        if (!best[0] || candidate->milliseconds < best[0]->milliseconds) {
            best[1] = best[0];
            best[0] = candidate;
        } else if (!best[1] || candidate->milliseconds < best[1]->milliseconds) {
            best[1] = candidate;
        }
    }
    for (int i = 0; i < 2 && best[i]; i++)
        if (best[i]->milliseconds < hopeless * tuner->tuning->best->milliseconds)
            descend(tuner, start->space, best[i]);
}

static void sweep(struct tuner *tuner, struct start *start)
{
    start->first = tuner->tuning->n_candidates;
    try_likely(tuner, start->choices, start->n, true);
    start->end = tuner->tuning->n_candidates;
    start->seconds = HUGE_VAL;
    for (uint32_t i = start->first; i < start->end; i++)
        if (tuner->tuning->candidates[i].state == TG_TIMED)
            start->seconds = fmin(start->seconds, 1e-3 * tuner->tuning->candidates[i].milliseconds);
}

static void sweep_all(struct tuner *tuner, struct starts *starts)
{
    struct start *all = starts->all;
    const double default_seconds = starts->n ? all[0].seconds : 0;
    uint32_t n_swept = 0;
    for (uint32_t i = 0; i < starts->n && !is_over(tuner); i++) {
        if (tuner->is_prediction || all[i].seconds <= unlikely * default_seconds) {
            all[n_swept] = all[i];
            sweep(tuner, &all[n_swept++]);
        } else {
            tg_report(tuner->sink, TG_NOTE, NULL, NULL, 0, NULL, "%s is left out: predicted %.3g ms, %s %.3g",
                      all[i].name, 1e3 * all[i].seconds, all[0].name, 1e3 * default_seconds);
        }
    }
    starts->n = n_swept;
}

static tg_status search_from(struct tuner *tuner, struct starts *starts)
{
    const tg_status status = find_starts(tuner, starts);
    if (status != TG_OK)
        return status;
    sweep_all(tuner, starts);
    qsort(starts->all, starts->n, sizeof starts->all[0], by_seconds);
    /* The model tells chunks and segments apart, and blocks hardly. */
    for (uint32_t i = 0; i < starts->n && !tuner->is_prediction; i++)
        if (starts->all[i].space)
            descend_from_best(tuner, &starts->all[i]);
    return TG_OK;
}

tg_status tuner_search(struct tuner *tuner)
{
    tg_status status = TG_E_MEMORY;
    struct starts *starts = calloc(1, sizeof *starts);
    if (starts)
        starts->choices = malloc(MAX_CHOICES * sizeof *starts->choices);
    if (starts && starts->choices)
        status = search_from(tuner, starts);
    else
        tg_report(tuner->sink, TG_ERROR, "TG0799", NULL, 0, NULL, "no host memory for the search");
    if (starts)
        free(starts->choices);
    free(starts);
    return status;
}
