/* tuning/tune_try.c - one candidate of the tuner: built, verified on a small problem, then timed.
 * Nothing is timed that has not given the right numbers. */
#include "tuning/tuner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUICK_RUNS = 10 };

double tuner_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void keep_reason(void *user, const tg_diag *diag)
{
    char *reason = user;
    if (diag->severity == TG_ERROR && !*reason)
        snprintf(reason, TG_REASON, "%s%s%s", diag->code ? diag->code : "", diag->code ? ": " : "", diag->message);
}

tg_sink reason_sink(char *reason)
{
    return (tg_sink){keep_reason, reason};
}

static tg_candidate *find_candidate(const struct tuner *tuner, const char *text)
{
    const tg_tuning *tuning = tuner->tuning;
    for (uint32_t i = 0; i < tuning->n_candidates; i++)
        if (strcmp(tuning->candidates[i].text, text) == 0)
            return &tuning->candidates[i];
    return NULL;
}

bool tuner_has(const struct tuner *tuner, const tg_schedule *schedule)
{
    char text[TG_SCHEDULE_TEXT];
    tg_schedule_text(tuner->variant, schedule, text);
    return find_candidate(tuner, text) != NULL;
}

/* False: it shall not be begun. */
static bool may_begin(struct tuner *tuner, tg_candidate *candidate, const char *step)
{
    const tg_tune_request *request = tuner->request;
    tg_tuning *tuning = tuner->tuning;
    if (!tuning->is_cancelled && request->progress)
        tuning->is_cancelled = request->progress(request->user, tuning, candidate, step) != 0;
    return !tuning->is_cancelled;
}

/* ---- is it right? ---- */

/* Two full chunks and an odd tail; for large chunks one and a tail, to save the oracle's time. */
static int64_t verified_tokens(const struct tuner *tuner, int64_t chunk)
{
    int64_t tokens = chunk <= 512 ? 2 * chunk + 37 : chunk + 101;
    return tokens < tuner->shape.tokens ? tokens : tuner->shape.tokens;
}

static void case_free(struct reference_case *reference)
{
    tg_problem_free(&reference->problem);
    tg_truth_free(&reference->truth);
}

/* The forward's outputs are its truth, rounded. */
static tg_status take_truth(tg_problem *forward, const tg_truth *truth, const tg_sink *sink)
{
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < forward->n_tensors && status == TG_OK; i++) {
        tg_host_tensor *tensor = &forward->tensors[i];
        if (!(tensor->flags & TG_OUT))
            continue;
        status = tg_problem_allocate(tensor, sink);
        if (status == TG_OK)
            tg_num_convert((tg_array){tensor->data, tensor->dtype, tensor->n},
                           (tg_const_array){truth->out[tensor->tile], TG_NUM_F64, tensor->n});
    }
    return status;
}

/* What a backward takes of its forward, from the forward's oracle: it is not the forward that is
 * tuned. */
static tg_status feed(const struct tuner *tuner, const tg_shape *shape, tg_problem *problem, const tg_sink *sink)
{
    tg_problem forward;
    tg_truth truth;
    if (!tuner->forward)
        return TG_OK;
    tg_status status =
        tg_problem_random(tuner->forward, NULL, shape, tuner->class.io, tuner->request->seed, NULL, &forward, sink);
    if (status != TG_OK)
        return status;
    status = tg_truth_compute(&forward, 0, NULL, &truth, sink);
    if (status == TG_OK) {
        status = take_truth(&forward, &truth, sink);
        tg_truth_free(&truth);
    }
    if (status == TG_OK)
        status = tg_problem_feed(&forward, problem, sink);
    tg_problem_free(&forward);
    return status;
}

static struct reference_case *case_for(struct tuner *tuner, int64_t tokens, const tg_sink *sink)
{
    tg_shape shape = tuner->shape;
    for (uint32_t i = 0; i < tuner->n_cases; i++)
        if (tuner->cases[i].problem.shape.tokens == tokens)
            return &tuner->cases[i];
    shape.batch = shape.packed ? 3 : 1;
    shape.heads = shape.group > 1 ? shape.group : 2;
    shape.tokens = tokens;
    if (tuner->n_cases == MAX_TRUTHS)
        case_free(&tuner->cases[--tuner->n_cases]);
    struct reference_case *reference = &tuner->cases[tuner->n_cases];
    if (tg_problem_random(tuner->variant, tuner->forward, &shape, tuner->class.io, tuner->request->seed, NULL,
                          &reference->problem, sink) != TG_OK)
        return NULL;
    if (feed(tuner, &shape, &reference->problem, sink) != TG_OK ||
        tg_truth_compute(&reference->problem, 0, NULL, &reference->truth, sink) != TG_OK) {
        tg_problem_free(&reference->problem);
        return NULL;
    }
    tuner->n_cases++;
    return reference;
}

static tg_candidate_state verify(struct tuner *tuner, tg_candidate *candidate)
{
    const tg_sink sink = reason_sink(candidate->reason);
    const int64_t chunk = candidate->schedule.chunk;
    struct reference_case *reference = case_for(tuner, verified_tokens(tuner, chunk), &sink);
    if (!reference)
        return TG_NOT_RUN;
    const tg_status status = tg_problem_run(&reference->problem, tuner->request->machine, tuner->module, chunk, &sink);
    if (status != TG_OK)
        return status == TG_E_NUMERICS ? TG_WRONG : TG_NOT_RUN;
    const tg_verdict *verdict = &candidate->verdict;
    candidate->verdict = tg_judge_all(&reference->problem, &reference->truth, chunk, &sink);
    if (!verdict->ok)
        snprintf(candidate->reason, TG_REASON, "%s has rms %.2e (at most %.2e), max %.2e (at most %.2e)", verdict->name,
                 verdict->error.rms_ratio, verdict->rms_limit, verdict->error.max_ratio, verdict->max_limit);
    return verdict->ok ? TG_TIMED : TG_WRONG;
}

/* ---- how fast is it? ---- */

static tg_status bind(struct tuner *tuner, int64_t chunk, const tg_sink *sink)
{
    const tg_tune_request *request = tuner->request;
    if (tuner->is_call_open)
        return tg_call_rebind(&tuner->call, tuner->module, chunk, sink);
    if (tuner->timed.n_tensors == 0) {
        const tg_status status =
            tg_problem_layout(tuner->variant, tuner->forward, &tuner->shape, tuner->class.io, &tuner->timed, sink);
        if (status != TG_OK)
            return status;
    }
    const tg_status status =
        tg_call_open_pattern(&tuner->call, request->machine, tuner->module, &tuner->timed, chunk, sink);
    tuner->is_call_open = status == TG_OK;
    return status;
}

static tg_candidate_state time_it(struct tuner *tuner, tg_candidate *candidate, uint32_t runs)
{
    const tg_sink sink = reason_sink(candidate->reason);
    runs = tuner->request->runs ? tuner->request->runs : runs;
    float *times = malloc(runs * sizeof *times);
    bool ok = times && bind(tuner, candidate->schedule.chunk, &sink) == TG_OK &&
              tg_call_time(&tuner->call, runs, true, times, &sink) == TG_OK;
    if (ok) {
        candidate->milliseconds = tg_median(times, runs);
        candidate->workspace = (double)tg_workspace_bytes(tuner->program, &tuner->call.sizes);
    }
    free(times);
    return ok ? TG_TIMED : TG_NOT_RUN;
}

static tg_candidate_state measure(struct tuner *tuner, tg_candidate *candidate)
{
    tg_candidate_state state = TG_NOT_RUN;
    if (!tuner_load(tuner, &candidate->schedule, candidate->reason))
        return TG_NOT_BUILT;
    if (may_begin(tuner, candidate, "check"))
        state = verify(tuner, candidate);
    if (state == TG_TIMED)
        state = may_begin(tuner, candidate, "time") ? time_it(tuner, candidate, QUICK_RUNS) : TG_NOT_RUN;
    return state;
}

/* ---- the list ---- */

static void take_prediction(tg_candidate *candidate)
{
    candidate->state = TG_PREDICTED;
    candidate->milliseconds = 1e3 * candidate->cost.seconds;
    candidate->workspace = candidate->cost.workspace;
}

static void say_left_out(const struct tuner *tuner, const tg_candidate *candidate)
{
    if (!tuner->tuning->is_cancelled)
        tg_report(tuner->sink, TG_NOTE, NULL, NULL, 0, NULL,
                  candidate->state == TG_WRONG ? "%s is not within tolerance and is left out: %s"
                                               : "%s is left out: %s",
                  candidate->text, candidate->reason);
}

static void take_measurement(struct tuner *tuner, tg_candidate *candidate)
{
    candidate->state = measure(tuner, candidate);
    if (candidate->state == TG_TIMED)
        return;
    if (!*candidate->reason)
        snprintf(candidate->reason, TG_REASON, "%s", tuner->tuning->is_cancelled ? "cancelled" : "out of host memory");
    say_left_out(tuner, candidate);
}

tg_candidate *tuner_try(struct tuner *tuner, const tg_schedule *schedule)
{
    tg_tuning *tuning = tuner->tuning;
    char text[TG_SCHEDULE_TEXT];
    tg_schedule_text(tuner->variant, schedule, text);
    tg_candidate *candidate = find_candidate(tuner, text);
    if (candidate || tuning->n_candidates == TG_MAX_CANDIDATES || tuning->is_cancelled)
        return candidate;
    candidate = &tuning->candidates[tuning->n_candidates];
    *candidate = (tg_candidate){.schedule = *schedule};
    memcpy(candidate->text, text, sizeof text);
    const tg_sizes sizes = tg_sizes_of(&tuner->shape, schedule->chunk);
    (void)tg_cost_estimate(schedule, tuner->target, &tuner->class, &sizes, &candidate->cost, NULL);
    if (!tuner->is_prediction && !may_begin(tuner, candidate, "compile"))
        return NULL;
    if (tuner->is_prediction)
        take_prediction(candidate);
    else
        take_measurement(tuner, candidate);
    tuning->n_candidates++;
    if (candidate->state <= TG_PREDICTED && (!tuning->best || candidate->milliseconds < tuning->best->milliseconds))
        tuning->best = candidate;
    return candidate;
}

bool tuner_time_again(struct tuner *tuner, tg_candidate *candidate, uint32_t runs)
{
    if (!may_begin(tuner, candidate, "time"))
        return true; /* with what is known of it */
    if (tuner_load(tuner, &candidate->schedule, candidate->reason) && time_it(tuner, candidate, runs) == TG_TIMED)
        return true;
    say_left_out(tuner, candidate);
    return false;
}

void tuner_free(struct tuner *tuner)
{
    if (tuner->is_call_open)
        tg_call_close(&tuner->call);
    tuner_forget_programs(tuner);
    for (uint32_t i = 0; i < tuner->n_cases; i++)
        case_free(&tuner->cases[i]);
    tg_problem_free(&tuner->timed);
}
