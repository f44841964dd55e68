/* tuning/tune.c - tg_tune: what it takes, the search, and which of the fastest it was.
 *
 * Whatever becomes of the search, what it has found is judged and handed over: a budget that ends, somebody who cancels and
 * a candidate that fails are ordinary. */
#include "tuning/tuner.h"

#include "program/fail.h"

#include <stdlib.h>
#include <string.h>

enum { FINALISTS = 3, FINAL_RUNS = 30 };

/* ---- the request ---- */

static tg_status refuse(const tg_sink *sink, const char *field, const char *expected, int64_t found)
{
    return tg_fail(sink, TG_E_ARGUMENT, "TG0901", NULL, "%s: expected %s, found %lld", field, expected,
                   (long long)found);
}

static tg_status check_shape(const tg_shape *shape, const tg_sink *sink)
{
    const struct {
        const char *field;
        int64_t value;
    } sizes[] = {{"shape.batch", shape->batch},
                 {"shape.heads", shape->heads},
                 {"shape.tokens", shape->tokens},
                 {"shape.dqk", shape->dqk},
                 {"shape.dhv", shape->dhv}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1)
            return refuse(sink, sizes[i].field, "at least 1", sizes[i].value);
    if (shape->most_tokens > 0 && shape->tokens > shape->most_tokens)
        return refuse(sink, "shape.most_tokens", "0, or at least shape.tokens", shape->most_tokens);
    return tg_shape_check(shape, sink);
}

static tg_status check_request(const tg_tune_request *request, const tg_sink *sink)
{
    if (!request->machine || !request->machine->target || !request->variant) {
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", "tg_machine_of fills a machine", "%s is NULL",
                       !request->machine           ? "machine"
                       : !request->machine->target ? "machine->target"
                                                   : "variant");
    }
    if (!(request->budget_seconds >= 0)) {
        return tg_fail(sink, TG_E_ARGUMENT, "TG0901", NULL, "budget_seconds: expected at least 0, found %g",
                       request->budget_seconds);
    }
    const tg_status status = tg_variant_check(request->variant, sink);
    return status == TG_OK ? check_shape(&request->shape, sink) : status;
}

/* ---- the fastest ---- */

static void time_finalist(struct tuner *tuner, tg_candidate *candidate)
{
    tg_tuning *tuning = tuner->tuning;
    if (!tuner_time_again(tuner, candidate, FINAL_RUNS))
        candidate->state = TG_NOT_RUN;
    else if (!tuning->best || candidate->milliseconds < tuning->best->milliseconds)
        tuning->best = candidate;
}

/* A difference of a few percent between ten runs may be noise; thirty runs decide. What a call would get without tuning is
 * always among the finalists. */
static void decide(struct tuner *tuner)
{
    tg_tuning *tuning = tuner->tuning;
    bool is_done[TG_MAX_CANDIDATES] = {false};
    tuning->best = NULL;
    for (int place = 0; place < FINALISTS; place++) {
        tg_candidate *next = NULL;
        for (uint32_t i = 0; i < tuning->n_candidates; i++) {
            tg_candidate *candidate = &tuning->candidates[i];
            if (candidate->state == TG_TIMED && !is_done[i] && (!next || candidate->milliseconds < next->milliseconds))
                next = candidate;
        }
        if (!next)
            return;
        is_done[next - tuning->candidates] = true;
        time_finalist(tuner, next);
    }
    if (tuning->untuned && tuning->untuned->state == TG_TIMED && !is_done[tuning->untuned - tuning->candidates])
        time_finalist(tuner, &tuning->candidates[tuning->untuned - tuning->candidates]);
}

/* ---- the result ---- */

static tg_status none_found(const struct tuner *tuner)
{
    static const tg_status of[] = {
        [TG_NOT_BUILT] = TG_E_COMPILE, [TG_WRONG] = TG_E_NUMERICS, [TG_NOT_RUN] = TG_E_DRIVER};
    const tg_tuning *tuning = tuner->tuning;
    const tg_candidate *first = tuning->n_candidates ? &tuning->candidates[0] : NULL;
    tg_report(tuner->sink, TG_ERROR, "TG0908", NULL, 0,
              "`tegula explain` gives the reasons for this target and these widths",
              "none of %u candidates could be %s%s%s", tuning->n_candidates,
              tuner->is_prediction ? "predicted" : "built, verified and timed", first && *first->reason ? ": " : "",
              first ? first->reason : "");
    return first && first->state >= TG_NOT_BUILT ? of[first->state] : TG_E_UNSUPPORTED;
}

static void fill_wisdom(const struct tuner *tuner)
{
    tg_tuning *tuning = tuner->tuning;
    const tg_candidate *best = tuning->best;
    const tg_sizes sizes = tg_sizes_of(&tuner->shape, 0);
    if (tuner->is_prediction || !best ||
        !tg_wisdom_of(&tuner->request->machine->device, tuner->variant, &tuner->class, &sizes, &tuning->wisdom))
        return;
    tuning->wisdom.chunk = best->schedule.chunk;
    tuning->wisdom.milliseconds = best->milliseconds;
    memcpy(tuning->wisdom.schedule, best->text, sizeof best->text);
}

static tg_status tune(struct tuner *tuner)
{
    tg_tuning *tuning = tuner->tuning;
    tuning->candidates = calloc(TG_MAX_CANDIDATES, sizeof *tuning->candidates);
    if (!tuning->candidates) {
        return tg_fail(tuner->sink, TG_E_MEMORY, "TG0799", NULL, "no host memory for the candidates");
    }
    const tg_status status = tuner_search(tuner);
    if (!tuner->is_prediction)
        decide(tuner);
    fill_wisdom(tuner);
    if (status == TG_OK && !tuning->best && !tuning->is_cancelled)
        return none_found(tuner);
    return status;
}

tg_status tg_tune(const tg_tune_request *request, tg_tuning *tuning, const tg_sink *sink)
{
    if (!request || !tuning)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_tune: %s is NULL", request ? "tuning" : "request");
    *tuning = (tg_tuning){.candidates = NULL};
    tg_status status = check_request(request, sink);
    if (status != TG_OK)
        return status;
    struct tuner *tuner = calloc(1, sizeof *tuner);
    if (!tuner) {
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "no host memory for the tuner");
    }
    tuner->request = request;
    tuner->sink = sink;
    tuner->tuning = tuning;
    tuner->variant = request->variant;
    tuner->forward = request->forward ? request->forward : tg_variant_forward(request->variant);
    tuner->target = request->machine->target;
    tuner->shape = request->shape;
    tuner->class = tg_shape_class_of(&request->shape, request->io);
    tuner->is_prediction = !request->machine->driver;
    tuner->deadline = tuner_now() + request->budget_seconds;
    status = tune(tuner);
    tuner_free(tuner);
    free(tuner);
    return status;
}

void tg_tuning_free(tg_tuning *tuning)
{
    if (!tuning)
        return;
    free(tuning->candidates);
    *tuning = (tg_tuning){.candidates = NULL};
}
