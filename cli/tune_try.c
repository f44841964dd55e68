/* cli/tune_try.c - one candidate of the tuner: built, verified on a small problem, then timed.
 * Nothing is timed that has not given the right numbers. */
#include "tune.h"

#include <stdlib.h>
#include <string.h>

enum { QUICK_RUNS = 10 };

static struct candidate *find_candidate(struct tuner *tuner, const char *text)
{
    for (uint32_t i = 0; i < tuner->n_candidates; i++)
        if (strcmp(tuner->candidates[i].text, text) == 0)
            return &tuner->candidates[i];
    return NULL;
}

bool tuner_has(struct tuner *tuner, const tg_schedule *schedule)
{
    char text[SCHEDULE_TEXT];
    schedule_text(tuner->variant, schedule, text);
    return find_candidate(tuner, text) != NULL;
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

/* What a backward takes of its forward, from the forward's oracle: it is not the forward that is
 * tuned. */
static bool feed(struct tuner *tuner, const tg_shape *shape, tg_problem *problem)
{
    const tg_variant *variant = variant_forward(tuner->context, tuner->variant);
    tg_problem forward;
    tg_truth truth;
    if (!variant)
        return true;
    if (!problem_random(tuner->context, variant, shape, tuner->class.io, (uint64_t)tuner->context->options.seed,
                        &forward))
        return false;
    bool ok = truth_compute(tuner->context, &forward, 0, &truth);
    for (uint32_t i = 0; i < forward.n_tensors && ok; i++) {
        tg_host_tensor *tensor = &forward.tensors[i];
        if (!(tensor->flags & TG_OUT))
            continue;
        ok = tg_problem_allocate(tensor, &tuner->context->sink) == TG_OK;
        if (ok)
            tg_num_convert((tg_array){tensor->data, tensor->dtype, tensor->n},
                           (tg_const_array){truth.out[tensor->tile], TG_NUM_F64, tensor->n});
    }
    ok = ok && tg_problem_feed(&forward, problem, &tuner->context->sink) == TG_OK;
    tg_truth_free(&truth);
    tg_problem_free(&forward);
    return ok;
}

static struct reference_case *case_for(struct tuner *tuner, int64_t tokens)
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
    if (!problem_random(tuner->context, tuner->variant, &shape, tuner->class.io, (uint64_t)tuner->context->options.seed,
                        &reference->problem))
        return NULL;
    if (!feed(tuner, &shape, &reference->problem) ||
        !truth_compute(tuner->context, &reference->problem, 0, &reference->truth)) {
        tg_problem_free(&reference->problem);
        return NULL;
    }
    tuner->n_cases++;
    return reference;
}

static bool is_right(struct tuner *tuner, struct candidate *candidate)
{
    tg_call call;
    int64_t chunk = candidate->schedule.chunk;
    struct reference_case *reference = case_for(tuner, verified_tokens(tuner, chunk));
    if (!reference)
        return false;
    tg_problem *problem = &reference->problem;
    tg_status status =
        tg_call_open(&call, &tuner->context->machine, tuner->kernel.module, problem, chunk, &tuner->context->sink);
    if (status != TG_OK)
        return false;
    status = tg_call_run(&call, &tuner->context->sink);
    if (status == TG_OK)
        status = tg_call_fetch(&call, problem, &tuner->context->sink);
    tg_call_close(&call);
    if (status != TG_OK)
        return false;
    candidate->verdict = tg_judge_all(problem, &reference->truth);
    return candidate->verdict.ok;
}

/* ---- how fast is it? ---- */

static bool bind(struct tuner *tuner, int64_t chunk)
{
    const tg_sink *sink = &tuner->context->sink;
    if (tuner->is_call_open)
        return tg_call_rebind(&tuner->call, tuner->kernel.module, chunk, sink) == TG_OK;
    if (!problem_layout(tuner->context, tuner->variant, &tuner->shape, tuner->class.io, &tuner->timed))
        return false;
    tuner->is_call_open = tg_call_open_pattern(&tuner->call, &tuner->context->machine, tuner->kernel.module,
                                               &tuner->timed, chunk, sink) == TG_OK;
    return tuner->is_call_open;
}

static bool time_it(struct tuner *tuner, struct candidate *candidate, uint32_t runs)
{
    float *times = malloc(runs * sizeof *times);
    bool ok = times && bind(tuner, candidate->schedule.chunk) &&
              tg_call_time(&tuner->call, runs, true, times, &tuner->context->sink) == TG_OK;
    if (ok) {
        candidate->milliseconds = tg_median(times, runs);
        candidate->workspace = (double)tg_workspace_bytes(tuner->kernel.program, &tuner->call.sizes);
    }
    free(times);
    return ok;
}

static uint32_t runs_wanted(const struct tuner *tuner, uint32_t otherwise)
{
    int64_t runs = tuner->context->options.runs;
    return runs > 0 && runs <= 10000 ? (uint32_t)runs : otherwise;
}

static enum candidate_state measure(struct tuner *tuner, struct candidate *candidate)
{
    if (!tuner_kernel(tuner, &candidate->schedule))
        return NOT_BUILT;
    if (!is_right(tuner, candidate))
        return WRONG;
    return time_it(tuner, candidate, runs_wanted(tuner, QUICK_RUNS)) ? TIMED : NOT_TIMED;
}

struct candidate *tuner_try(struct tuner *tuner, const tg_schedule *schedule)
{
    char text[SCHEDULE_TEXT];
    schedule_text(tuner->variant, schedule, text);
    struct candidate *candidate = find_candidate(tuner, text);
    if (candidate || tuner->n_candidates == MAX_CANDIDATES)
        return candidate;
    candidate = &tuner->candidates[tuner->n_candidates++];
    *candidate = (struct candidate){.schedule = *schedule};
    memcpy(candidate->text, text, sizeof candidate->text);
    const tg_sizes sizes = {tuner->shape.batch, tuner->shape.heads, tuner->shape.tokens, schedule->chunk};
    tg_cost_estimate(schedule, tuner->target, &tuner->class, &sizes, &candidate->cost, &silent_sink);
    if (tuner->is_prediction) {
        candidate->state = PREDICTED;
        candidate->milliseconds = 1e3 * candidate->cost.seconds;
        candidate->workspace = candidate->cost.workspace;
    } else {
        progress(tuner->context, "candidate %u: %s%s", tuner->n_candidates, text, tuner->best ? "" : " (the first)");
        candidate->state = measure(tuner, candidate);
        if (candidate->state == WRONG)
            remark("%s is not within tolerance and is left out: %s has rms %.2e", text,
                   candidate->verdict.name ? candidate->verdict.name : "the run failed, nothing",
                   candidate->verdict.error.rms_ratio);
    }
    if (candidate->state <= PREDICTED && (!tuner->best || candidate->milliseconds < tuner->best->milliseconds))
        tuner->best = candidate;
    return candidate;
}

bool tuner_time_again(struct tuner *tuner, struct candidate *candidate, uint32_t runs)
{
    return tuner_kernel(tuner, &candidate->schedule) && time_it(tuner, candidate, runs_wanted(tuner, runs));
}

void tuner_free(struct tuner *tuner)
{
    if (tuner->is_call_open)
        tg_call_close(&tuner->call);
    tuner_forget_kernels(tuner);
    for (uint32_t i = 0; i < tuner->n_cases; i++)
        case_free(&tuner->cases[i]);
    tg_problem_free(&tuner->timed);
    free(tuner->candidates);
}
