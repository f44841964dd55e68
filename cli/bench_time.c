/* cli/bench_time.c - one call of `tegula bench`, timed: forward, backward, and their kernels. */
#include "bench.h"

static bool estimate(struct bench *bench, const tg_shape *shape, struct timing *timing)
{
    const struct context *context = bench->context;
    const tg_schedule *schedule = &timing->choice.schedule;
    const tg_shape_class class = tg_shape_class_of(shape, bench->io);
    const tg_sizes sizes = tg_sizes_of(shape, schedule->chunk);
    const tg_target *target = context->machine.target;
    tg_cost costs[TG_MAX_ROWS];
    if (tg_cost_estimate(schedule, target, &class, &sizes, &timing->cost, &context->sink) != TG_OK ||
        tg_cost_kernels(schedule, target, &class, &sizes, costs, &context->sink) != TG_OK)
        return false;
    for (uint32_t i = 0; i < schedule->n_rows; i++)
        timing->kernels[i].cost = costs[i];
    return true;
}

static tg_status time_kernels(struct bench *bench, tg_call *call, struct timing *timing)
{
    const struct context *context = bench->context;
    const tg_status status =
        tg_call_time_kernels(call, bench->runs, context->options.flush, bench->times, &context->sink);
    if (status != TG_OK)
        return status;
    timing->n_kernels = tg_module_program(call->module)->n_kernels;
    for (uint32_t i = 0; i < timing->n_kernels; i++)
        timing->kernels[i].median = tg_median(bench->times + (size_t)i * bench->runs, bench->runs);
    return TG_OK;
}

static tg_status time_call(struct bench *bench, tg_call *call, struct timing *timing)
{
    const struct context *context = bench->context;
    const tg_status status = tg_call_time(call, bench->runs, context->options.flush, bench->times, &context->sink);
    if (status != TG_OK)
        return status;
    timing->median = tg_median(bench->times, bench->runs);
    timing->least = (double)bench->times[0];
    timing->most = (double)bench->times[bench->runs - 1];
    timing->workspace = (double)call->workspace_bytes;
    timing->tensors = call->tensor_bytes;
    return bench->by_kernel ? time_kernels(bench, call, timing) : TG_OK;
}

/* The problem with what the call has computed: it is empty behind that. */
static tg_status hand_over(const tg_call *call, tg_problem *problem, tg_problem *kept, const tg_sink *sink)
{
    const tg_status status = tg_call_fetch(call, problem, sink);
    *kept = *problem;
    *problem = (tg_problem){.n_tensors = 0};
    return status;
}

/* `kept`: NULL, or what the forward has handed over. Empty, it gets that; else the backward is timed with it: random numbers in its
 * place would be slower or faster (transitions of the delta rule end early where they have become zeros). */
static int time_kernel(struct bench *bench, const tg_shape *shape, const struct kernel *kernel, struct timing *timing,
                       tg_problem *kept)
{
    struct context *context = bench->context;
    const int64_t chunk = timing->choice.schedule.chunk;
    tg_problem problem;
    tg_call call;
    int code = CODE_USAGE;
    if (problem_layout(context, timing->variant, shape, bench->io, &problem) &&
        tg_problem_keep(kernel->program, chunk, &problem, &context->sink) == TG_OK && estimate(bench, shape, timing)) {
        const bool is_kept = kept && kept->n_tensors;
        tg_status status = is_kept ? tg_problem_feed(kept, &problem, &context->sink) : TG_OK;
        if (status == TG_OK)
            status = tg_call_open_pattern(&call, &context->machine, kernel->module, &problem, chunk, &context->sink);
        if (status == TG_OK) {
            status = time_call(bench, &call, timing);
            if (status == TG_OK && kept && !is_kept)
                status = hand_over(&call, &problem, kept, &context->sink);
            tg_call_close(&call);
        }
        if (shape->most_tokens)
            timing->cost.bytes = timing->tensors;
        code = code_of_status(status);
    }
    tg_problem_free(&problem);
    return code;
}

static int time_program(struct bench *bench, const tg_variant *variant, const tg_shape *shape, struct wish wish,
                        struct timing *timing, tg_problem *kept)
{
    struct context *context = bench->context;
    const tg_shape_class class = tg_shape_class_of(shape, bench->io);
    struct kernel kernel;
    timing->variant = variant;
    if (!schedule_choose(context, variant, context->machine.target, &class, shape, wish, &timing->choice))
        return CODE_USAGE;
    progress(context, "%s B=%lld T=%lld: compiling", variant->name, (long long)shape->batch, (long long)shape->tokens);
    if (!kernel_build(context, variant, &timing->choice.schedule, &class, &kernel, &context->sink))
        return CODE_FAILED;
    progress(context, "%s B=%lld T=%lld: running", variant->name, (long long)shape->batch, (long long)shape->tokens);
    const int code = time_kernel(bench, shape, &kernel, timing, kept);
    kernel_free(&kernel);
    return code;
}

/* With --keep-states the two that hand states over, where a wish does not say otherwise. */
static bool keep_states(struct bench *bench, const tg_variant *variant, const tg_shape *shape, struct wish wish[2],
                        char texts[2][TG_SCHEDULE_TEXT])
{
    const struct context *context = bench->context;
    const tg_shape_class class = tg_shape_class_of(shape, bench->io);
    const tg_sizes sizes = tg_sizes_of(shape, 0);
    tg_keeping pair;
    if (!context->options.keep_states || wish[0].schedule || wish[1].schedule)
        return true;
    if (!tg_schedules_keeping(variant, NULL, context->machine.target, &class, &sizes, &pair)) {
        complain(bench->context, "leave out --keep-states",
                 "--keep-states: %s has no schedules that hand states over for these sizes", variant->name);
        return false;
    }
    tg_schedule_text(variant, &pair.forward, texts[0]);
    tg_schedule_text(variant->backward, &pair.backward, texts[1]);
    wish[0].schedule = texts[0];
    wish[1].schedule = texts[1];
    return true;
}

bool bench_time(struct bench *bench, const tg_variant *variant, const tg_shape *shape, struct wish wish,
                struct timing *forward, struct timing *backward)
{
    /* A decode step has no gradients. */
    const bool both = bench->with_gradients && variant->backward && !shape->most_tokens;
    struct wish wishes[] = {wish, {bench->context->options.backward_schedule, wish.chunk}};
    char texts[2][TG_SCHEDULE_TEXT];
    *forward = *backward = (struct timing){.variant = NULL};
    tg_problem problem = {.n_tensors = 0}, *kept = both && bench->context->options.keep_states ? &problem : NULL;
    int code = both && !keep_states(bench, variant, shape, wishes, texts) ? CODE_USAGE : CODE_OK;
    if (code == CODE_OK)
        code = time_program(bench, variant, shape, wishes[0], forward, kept);
    if (code == CODE_OK && both)
        code = time_program(bench, variant->backward, shape, wishes[1], backward, kept);
    tg_problem_free(&problem);
    bench->code = code > bench->code ? code : bench->code;
    return code == CODE_OK;
}

bool bench_wish(const struct bench *bench, uint32_t i, struct wish *wish)
{
    const struct options *options = &bench->context->options;
    *wish = (struct wish){i < options->n_schedules ? options->schedules[i] : NULL, options->chunk};
    return i < options->n_schedules || i == 0;
}
