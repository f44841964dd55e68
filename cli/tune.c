/* cli/tune.c - `tegula tune`: the search. It starts from the model's (compiler/search.c), with every
 * schedule in the order in which the cost model believes in them, what a call would get untuned at
 * the head, and without those it thinks much slower. Of all of them the chunk and segment sizes first, so
 * that a short budget has seen each; then, at the two best of each, the fastest schedule first, one
 * field at a time (coordinate descent), so that it stays in seconds; then the finalists once more
 * with more runs. */
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEEP = 6, FINALISTS = 3, FINAL_RUNS = 30, ROUNDS = 2, MAX_STARTS = 64, MAX_CHOICES = 1024 };

static const double default_budget = 20; /* seconds: DESIGN section 5 */
/* Blocks and stages change a time by less than this factor. */
static const double hopeless = 1.4;
/* And the model is not wrong by this factor: 25 % for either of two schedules (tests/test_cost.c).
 */
static const double unlikely = 1.6;

static bool is_out_of_time(const struct tuner *tuner)
{
    return !tuner->is_prediction && now() > tuner->deadline;
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
        if (tg_plan_check(&value->schedule, tuner->target, &tuner->class, &silent_sink) != TG_OK)
            continue;
        tg_cost cost;
        const tg_sizes sizes = {tuner->shape.batch, tuner->shape.heads, tuner->shape.tokens, value->schedule.chunk};
        if (tg_cost_estimate(&value->schedule, tuner->target, &tuner->class, &sizes, &cost, &silent_sink) != TG_OK)
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
    if (n_new > 0 && !tuner->is_prediction && !is_out_of_time(tuner))
        tuner_prepare(tuner, schedules, n_new);
}

/* The most promising first, without the unlikely: a short budget has then seen what an untuned call would take. */
static void try_likely(struct tuner *tuner, struct option_value *values, uint32_t n, bool is_sweep)
{
    qsort(values, n, sizeof values[0], by_model);
    while (n > 1 && !tuner->is_prediction && values[n - 1].seconds > unlikely * values[0].seconds)
        n--;
    for (uint32_t i = 0; i < n && !is_out_of_time(tuner); i++) {
        struct candidate *candidate = tuner_try(tuner, &values[i].schedule);
        if (candidate && is_sweep)
            candidate->is_sweep = true;
    }
}

/* How the sequence is cut: into chunks, into segments. */
static bool is_cut(const tg_vary *vary)
{
    return vary->field == TG_FIELD_CHUNK || vary->field == TG_FIELD_SEGMENT;
}

/* The lengths of chunks and segments once more, where blocks have changed. */
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
static void descend(struct tuner *tuner, const tg_space *space, const struct candidate *start)
{
    struct option_value values[TG_MAX_VALUES];
    int64_t keep = tuner->context->options.keep ? tuner->context->options.keep : KEEP;
    const struct candidate *here = start;
    for (int round = 0; round < ROUNDS; round++) {
        const struct candidate *before = here;
        for (uint32_t v = 0; v < space->n_vary; v++) {
            if (is_cut(&space->vary[v]))
                continue;
            uint32_t n = accepted_values(tuner, &here->schedule, &space->vary[v], values);
            qsort(values, n, sizeof values[0], by_model);
            n = n < keep ? n : (uint32_t)keep;
            prepare(tuner, values, n);
            for (uint32_t i = 0; i < n && !is_out_of_time(tuner); i++) {
                const struct candidate *there = tuner_try(tuner, &values[i].schedule);
                if (there && there->state <= PREDICTED && there->milliseconds < here->milliseconds)
                    here = there;
            }
        }
        if (here == before || is_out_of_time(tuner))
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
    uint32_t n_choices, n;
    struct start all[MAX_STARTS];
};

/* The search shows the choices of one schedule after the other. */
static void add_choice(void *user, const tg_choice *choice)
{
    struct starts *starts = user;
    struct start *last = starts->n ? &starts->all[starts->n - 1] : NULL;
    const bool is_next = !last || last->name != choice->declared->name;
    if (choice->declared->max_tokens || starts->n_choices == MAX_CHOICES || (is_next && starts->n == MAX_STARTS))
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
    if (tg_schedule_default(tuner->variant, tuner->target, &tuner->class, sizes, &chosen, &tuner->context->sink) !=
        TG_OK)
        return;
    tuner->untuned = tuner_try(tuner, &chosen);
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
static bool find_starts(struct tuner *tuner, struct starts *starts)
{
    const tg_sizes sizes = {tuner->shape.batch, tuner->shape.heads, tuner->shape.tokens, 0};
    *starts = (struct starts){.choices = malloc(MAX_CHOICES * sizeof *starts->choices)};
    if (!starts->choices || tg_schedule_each(tuner->variant, tuner->target, &tuner->class, &sizes, 1, add_choice,
                                             starts, &tuner->context->sink) != TG_OK)
        return false;
    qsort(starts->all, starts->n, sizeof starts->all[0], by_seconds);
    try_default_first(tuner, &sizes, starts);
    return true;
}

/* At the two fastest of its candidates. */
static void descend_from_best(struct tuner *tuner, const struct start *start)
{
    const struct candidate *best[2] = {NULL, NULL};
    for (uint32_t i = start->first; i < start->end; i++) {
        const struct candidate *candidate = &tuner->candidates[i];
        if (candidate->state != TIMED)
            continue;
        if (!best[0] || candidate->milliseconds < best[0]->milliseconds) {
            best[1] = best[0];
            best[0] = candidate;
        } else if (!best[1] || candidate->milliseconds < best[1]->milliseconds) {
            best[1] = candidate;
        }
    }
    for (int i = 0; i < 2 && best[i]; i++)
        if (best[i]->milliseconds < hopeless * tuner->best->milliseconds)
            descend(tuner, start->space, best[i]);
}

static void sweep(struct tuner *tuner, struct start *start)
{
    start->first = tuner->n_candidates;
    try_likely(tuner, start->choices, start->n, true);
    start->end = tuner->n_candidates;
    start->seconds = HUGE_VAL;
    for (uint32_t i = start->first; i < start->end; i++)
        if (tuner->candidates[i].state == TIMED)
            start->seconds = fmin(start->seconds, 1e-3 * tuner->candidates[i].milliseconds);
}

static void sweep_all(struct tuner *tuner, struct starts *starts)
{
    struct start *all = starts->all;
    const double default_seconds = starts->n ? all[0].seconds : 0;
    uint32_t n_swept = 0;
    for (uint32_t i = 0; i < starts->n && !is_out_of_time(tuner); i++) {
        if (tuner->is_prediction || all[i].seconds <= unlikely * default_seconds) {
            all[n_swept] = all[i];
            sweep(tuner, &all[n_swept++]);
        } else {
            remark("%s is left out: predicted %.3g ms, %s %.3g", all[i].name, 1e3 * all[i].seconds, all[0].name,
                   1e3 * default_seconds);
        }
    }
    starts->n = n_swept;
}

static void search_all(struct tuner *tuner)
{
    struct starts *starts = malloc(sizeof *starts);
    if (starts && find_starts(tuner, starts)) {
        sweep_all(tuner, starts);
        qsort(starts->all, starts->n, sizeof starts->all[0], by_seconds);
        /* The model tells chunks and segments apart, and blocks hardly. */
        for (uint32_t i = 0; i < starts->n && !tuner->is_prediction; i++)
            if (starts->all[i].space)
                descend_from_best(tuner, &starts->all[i]);
    }
    if (starts)
        free(starts->choices);
    free(starts);
}

static void time_finalist(struct tuner *tuner, struct candidate *candidate)
{
    if (!tuner_time_again(tuner, candidate, FINAL_RUNS))
        candidate->state = NOT_TIMED;
    else if (!tuner->best || candidate->milliseconds < tuner->best->milliseconds)
        tuner->best = candidate;
}

/* A difference of a few percent between ten runs may be noise; thirty runs decide. What a call would get without tuning is always
 * among the finalists. */
static void decide(struct tuner *tuner)
{
    bool is_done[MAX_CANDIDATES] = {false};
    tuner->best = NULL;
    for (int place = 0; place < FINALISTS; place++) {
        struct candidate *next = NULL;
        for (uint32_t i = 0; i < tuner->n_candidates; i++) {
            struct candidate *candidate = &tuner->candidates[i];
            if (candidate->state == TIMED && !is_done[i] && (!next || candidate->milliseconds < next->milliseconds))
                next = candidate;
        }
        if (!next)
            return;
        is_done[next - tuner->candidates] = true;
        time_finalist(tuner, next);
    }
    if (tuner->untuned && tuner->untuned->state == TIMED && !is_done[tuner->untuned - tuner->candidates])
        time_finalist(tuner, tuner->untuned);
}

static bool remember(struct tuner *tuner)
{
    struct context *context = tuner->context;
    const char *path = wisdom_path(context);
    tg_wisdom entry;
    if (!wisdom_entry(context, tuner->variant, &tuner->class, &tuner->shape, &entry)) {
        complain(context, "give what it found with --schedule", "the name of %s with its group is too long for wisdom",
                 tuner->variant->name);
        return false;
    }
    entry.chunk = tuner->best->schedule.chunk;
    entry.milliseconds = tuner->best->milliseconds;
    snprintf(entry.schedule, sizeof entry.schedule, "%s", tuner->best->text);
    if (!*path) {
        complain(context, "name a file with --wisdom", "no place for the result: HOME is not set");
        return false;
    }
    if (tg_wisdom_add(path, &entry, &context->sink) != TG_OK)
        return false;
    tuner_keep_kernel(tuner, &tuner->best->schedule);
    if (!context->options.json)
        printf("\n  best: %s\n  remembered in %s, which goes before the wisdom that tegula brings\n", tuner->best->text,
               path);
    return true;
}

/* ---- which GPU ---- */

static const tg_target *target_of_gpu(struct context *context, const char *name)
{
    struct text hint = {0};
    tg_writer writer = text_writer(&hint);
    for (const tg_target *const *t = tg_targets(); *t; t++)
        if ((*t)->gpu && strcasestr((*t)->gpu, name))
            return *t;
    for (const tg_target *const *t = tg_targets(); *t; t++)
        if ((*t)->gpu)
            tg_printf(&writer, "%s%s", hint.size ? ", " : "numbers are known of ", (*t)->gpu);
    complain(context, text_of(&hint), "--gpu: unknown GPU '%s'", name);
    text_free(&hint);
    return NULL;
}

/* A prediction when there is no GPU, or when one is asked for by --gpu. */
static bool choose_target(struct tuner *tuner)
{
    struct context *context = tuner->context;
    if (context->options.gpu) {
        tuner->is_prediction = true;
        tuner->target = target_of_gpu(context, context->options.gpu);
        const char *arch = context->options.arch;
        if (!tuner->target || !arch || strcmp(arch, tuner->target->arch) == 0)
            return tuner->target != NULL;
        complain(context, "give one of them", "--arch %s: the GPU of --gpu is %s", arch, tuner->target->arch);
        return false;
    }
    if (!machine_open(context))
        return false;
    tuner->target = context->machine.target;
    if (!context->machine.is_emulator)
        return true;
    tuner->is_prediction = true;
    if (!context->options.arch && tg_target_find("sm_90a"))
        tuner->target = tg_target_find("sm_90a"); /* the emulator itself has no speed to predict */
    remark("no GPU to measure on: this is the cost model's prediction (--gpu or --arch choose of "
           "what), and nothing is stored");
    return true;
}

static int tune(struct tuner *tuner)
{
    struct context *context = tuner->context;
    progress_begin(context, "tuning %s", tuner->variant->name);
    search_all(tuner);
    if (!tuner->is_prediction)
        decide(tuner);
    progress_end(context);
    if (!tuner->best) {
        complain(context, "`tegula explain` gives the reasons for this target and these widths",
                 "none of %u candidates could be %s", tuner->n_candidates,
                 tuner->is_prediction ? "predicted" : "built, verified and timed");
        return CODE_FAILED;
    }
    if (context->options.json)
        json_print(tuner_json(tuner));
    else
        tuner_print(tuner);
    return tuner->is_prediction || remember(tuner) ? CODE_OK : CODE_USAGE;
}

int command_tune(struct context *context)
{
    const struct options *options = &context->options;
    struct tuner tuner = {.context = context};
    tg_dtype io = TG_BF16;
    tuner.variant = variant_by_name(context, options->args[0]);
    if (!tuner.variant || (options->dtype && !dtype_parse(context, options->dtype, &io)))
        return CODE_USAGE;
    if (options->n_shapes != 1) {
        complain(context, "--shape B=8,NH=16,T=8192,dqk=128,dhv=256", "`tegula tune` needs one --shape, found %u",
                 options->n_shapes);
        return CODE_USAGE;
    }
    tuner.shape = options->shapes[0];
    if (!options_shape(context, &tuner.shape))
        return CODE_USAGE;
    tuner.class = tg_shape_class_of(&tuner.shape, io);
    if (!shape_class_check(context, &tuner.class) || !choose_target(&tuner))
        return CODE_USAGE;
    tuner.deadline = now() + (options->budget_seconds > 0 ? options->budget_seconds : default_budget);
    tuner.candidates = calloc(MAX_CANDIDATES, sizeof *tuner.candidates);
    int code = CODE_FAILED;
    if (tuner.candidates)
        code = tune(&tuner);
    else
        complain(context, "free some memory", "out of memory");
    tuner_free(&tuner);
    return code;
}
