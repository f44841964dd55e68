/* cli/bench.c - `tegula bench`: how long kernels take. Bytes and flops are the model's counts, so
 * GB/s and TFLOP/s say how well the time uses the machine for that schedule; of a decode step the
 * bytes are those of its tensors, each once. */
#include "cli.h"

#include <stdlib.h>

enum { RUNS = 30, MOST_RUNS = 100000 };

#define SIZES(b, nh, t, qk, hv) .batch = (b), .heads = (nh), .tokens = (t), .dqk = (qk), .dhv = (hv)

/* 65,536 tokens at four lengths: the protocol of the TFLA paper's figure 5. */
static const struct shape default_shapes[] = {{SIZES(128, 16, 512, 128, 256)},
                                              {SIZES(32, 16, 2048, 128, 256)},
                                              {SIZES(8, 16, 8192, 128, 256)},
                                              {SIZES(1, 16, 65536, 128, 256)}};

/* Each variant at the sizes of its models; then decode steps, which read and write a state for a
 * token. */
static const struct row {
    const char *variant;
    struct shape shape;
} family[] = {
    {"mlstm-sig", {SIZES(8, 16, 8192, 128, 256)}},
    {"mlstm-sig", {SIZES(1, 16, 65536, 128, 256)}},
    {"mlstm-sig", {SIZES(8, 8, 8192, 256, 512)}},
    {"mlstm-exp", {SIZES(8, 16, 8192, 128, 256)}},
    {"mlstm-exp", {SIZES(1, 16, 65536, 128, 256)}},
    {"mlstm-exp", {SIZES(8, 8, 8192, 256, 512)}},
    {"mlstm-sig-norm", {SIZES(8, 16, 8192, 128, 256)}},
    {"mlstm-sig-norm", {SIZES(1, 16, 65536, 128, 256)}},
    {"mlstm-sig-norm", {SIZES(8, 8, 8192, 256, 512)}},
    {"simple-gla", {SIZES(8, 16, 8192, 128, 256)}},
    {"retention", {SIZES(8, 32, 8192, 128, 128)}},
    {"linear", {SIZES(8, 32, 8192, 128, 128)}},
    {"mamba2", {SIZES(8, 64, 8192, 128, 64), .group = 64}},
    {"mamba2", {SIZES(8, 16, 8192, 128, 256)}},
    {"mlstm-sig", {SIZES(1, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-sig", {SIZES(8, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-sig", {SIZES(64, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-sig", {SIZES(512, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-exp", {SIZES(1, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-exp", {SIZES(8, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-exp", {SIZES(64, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-exp", {SIZES(512, 16, 1, 128, 256), .most_tokens = 1}},
};

struct bench {
    struct context *context;
    tg_dtype io;
    uint32_t runs;
    float *times; /* [runs], milliseconds, ascending */
    bool with_gradients;
    int code; /* the worst so far */
};

/* One program, timed. */
struct timing {
    const tg_variant *variant;
    struct choice choice;
    double median, least, most; /* milliseconds */
    double bytes, flops, workspace, tensors;
};

/* ---- timing ---- */

static bool estimate(struct bench *bench, const struct shape *shape, struct timing *timing)
{
    const struct context *context = bench->context;
    const tg_shape_class class = shape_class_of(shape, bench->io);
    const tg_sizes sizes = {shape->batch, shape->heads, shape->tokens,
                            timing->choice.schedule.chunk};
    tg_cost cost = {0};
    const tg_status status = tg_cost_estimate(&timing->choice.schedule, context->machine.target,
                                              &class, &sizes, &cost, &context->sink);
    timing->bytes = cost.bytes;
    timing->flops = cost.flops;
    return status == TG_OK;
}

static tg_status time_call(struct bench *bench, struct call *call, struct timing *timing)
{
    const struct context *context = bench->context;
    const tg_status status =
        call_time(call, bench->runs, context->options.flush, bench->times, &context->sink);
    if (status != TG_OK)
        return status;
    timing->median = median_of(bench->times, bench->runs);
    timing->least = (double)bench->times[0];
    timing->most = (double)bench->times[bench->runs - 1];
    timing->workspace = (double)call->workspace_bytes;
    timing->tensors = call->tensor_bytes;
    return TG_OK;
}

static int time_kernel(struct bench *bench, const struct shape *shape, const struct kernel *kernel,
                       struct timing *timing)
{
    struct context *context = bench->context;
    const int64_t chunk = timing->choice.schedule.chunk;
    struct problem problem;
    struct call call;
    int code = CODE_USAGE;
    if (problem_layout(context, timing->variant, shape, bench->io, &problem) &&
        problem_keep(context, kernel->program, chunk, &problem) && estimate(bench, shape, timing)) {
        tg_status status =
            call_open_pattern(&call, &context->machine, kernel, &problem, chunk, &context->sink);
        if (status == TG_OK) {
            status = time_call(bench, &call, timing);
            call_close(&call);
        }
        if (shape->most_tokens)
            timing->bytes = timing->tensors;
        code = code_of_status(status);
    }
    problem_free(&problem);
    return code;
}

static int time_program(struct bench *bench, const tg_variant *variant, const struct shape *shape,
                        struct wish wish, struct timing *timing)
{
    struct context *context = bench->context;
    const tg_shape_class class = shape_class_of(shape, bench->io);
    struct kernel kernel;
    *timing = (struct timing){.variant = variant};
    if (!schedule_choose(context, variant, context->machine.target, &class, shape, wish,
                         &timing->choice))
        return CODE_USAGE;
    progress(context, "%s B=%lld T=%lld: compiling", variant->name, (long long)shape->batch,
             (long long)shape->tokens);
    if (!kernel_build(context, variant, &timing->choice.schedule, &class, &kernel, &context->sink))
        return CODE_FAILED;
    progress(context, "%s B=%lld T=%lld: running", variant->name, (long long)shape->batch,
             (long long)shape->tokens);
    const int code = time_kernel(bench, shape, &kernel, timing);
    kernel_free(&kernel);
    return code;
}

/* ---- results ---- */

static json_t *timing_json(const struct bench *bench, const struct shape *shape,
                           const struct timing *timing)
{
    const struct context *context = bench->context;
    char text[SCHEDULE_TEXT];
    schedule_text(timing->variant, &timing->choice.schedule, text);
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:i, s:s, s:i, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
        "variant", timing->variant->name, "device", context->machine.device.name, "dtype",
        tg_dtype_name(bench->io), "shape", shape_json(shape), "schedule", text, "chunk",
        (int)timing->choice.schedule.chunk, "origin", timing->choice.origin, "runs",
        (int)bench->runs, "flush", context->options.flush, "median_ms", timing->median, "min_ms",
        timing->least, "max_ms", timing->most, "gb_per_s", timing->bytes / timing->median / 1e6,
        "tflop_per_s", timing->flops / timing->median / 1e9, "workspace_bytes", timing->workspace,
        "tensor_bytes", timing->tensors);
}

static void print_shape(const struct timing *timing, const struct shape *shape)
{
    char group[24] = "";
    if (shape->group > 1)
        snprintf(group, sizeof group, "/%lld", (long long)shape->group);
    printf("  %-15s %4lld %4lld%-4s %7lld %4lld %4lld", timing->variant->name,
           (long long)shape->batch, (long long)shape->heads, group, (long long)shape->tokens,
           (long long)shape->dqk, (long long)shape->dhv);
}

static void print_timing(const struct timing *timing)
{
    char size[32], text[SCHEDULE_TEXT];
    schedule_text(timing->variant, &timing->choice.schedule, text);
    printf("  %9.3f ms (%.3f .. %.3f)  %6.0f GB/s  %6.1f TFLOP/s  %9s  %s (%s)", timing->median,
           timing->least, timing->most, timing->bytes / timing->median / 1e6,
           timing->flops / timing->median / 1e9, bytes_text(timing->workspace, size), text,
           timing->choice.origin);
}

/* `backward` NULL: the forward alone. */
static void report(const struct bench *bench, const struct shape *shape,
                   const struct timing *forward, const struct timing *backward)
{
    const double both = forward->median + (backward ? backward->median : 0);
    if (bench->context->options.json) {
        json_t *json = timing_json(bench, shape, forward);
        if (backward) {
            json_object_set_new(json, "backward", timing_json(bench, shape, backward));
            json_object_set_new(json, "both_ms", json_real(both));
        }
        json_print(json);
        return;
    }
    progress_hide(bench->context);
    print_shape(forward, shape);
    print_timing(forward);
    if (backward) {
        char size[32], text[SCHEDULE_TEXT];
        schedule_text(backward->variant, &backward->choice.schedule, text);
        printf("\n  %47s  %9.3f ms  forward and backward; the latter %.3f ms  %9s  %s (%s)", "",
               both, backward->median, bytes_text(backward->workspace, size), text,
               backward->choice.origin);
    }
    puts("");
    fflush(stdout);
}

static void bench_row(struct bench *bench, const tg_variant *variant, const struct shape *shape)
{
    const struct options *options = &bench->context->options;
    /* A decode step has no gradients. */
    const bool with_gradients = bench->with_gradients && variant->backward && !shape->most_tokens;
    struct timing forward, backward;
    int code = time_program(bench, variant, shape, wish_of(options), &forward);
    if (code == CODE_OK && with_gradients)
        code = time_program(bench, variant->backward, shape,
                            (struct wish){options->backward_schedule, options->chunk}, &backward);
    if (code == CODE_OK)
        report(bench, shape, &forward, with_gradients ? &backward : NULL);
    bench->code = code > bench->code ? code : bench->code;
}

/* ---- which rows ---- */

static void bench_shapes(struct bench *bench, const tg_variant *variant)
{
    const struct options *options = &bench->context->options;
    const bool is_given = options->n_shapes > 0;
    const uint32_t n =
        is_given ? options->n_shapes : sizeof default_shapes / sizeof default_shapes[0];
    for (uint32_t i = 0; i < n; i++) {
        struct shape shape = is_given ? options->shapes[i] : default_shapes[i];
        if (options_shape(bench->context, &shape))
            bench_row(bench, variant, &shape);
        else
            bench->code = CODE_USAGE;
    }
}

static void bench_each(void *user, const tg_variant *variant)
{
    bench_shapes(user, variant);
}

static void bench_family(struct bench *bench)
{
    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++)
        bench_row(bench, variant_lookup(bench->context, family[i].variant), &family[i].shape);
}

static bool is_possible(struct context *context)
{
    const struct options *options = &context->options;
    if (options->n_args == 0 && options->n_shapes == 0 &&
        (options->group || options->tokens || options->packed || options->pool ||
         options->schedule || options->chunk)) {
        complain(context, "name a variant, or give a --shape",
                 "the table of all variants has sizes and schedules of its own");
        return false;
    }
    if (context->machine.is_emulator && !options->n_shapes) {
        complain(context,
                 "`tegula tune --gpu NAME` predicts; --shape B=1,NH=1,T=256,dqk=64,dhv=64 "
                 "runs on the emulator",
                 "there is no GPU to time on, and the default shapes are too large to emulate");
        return false;
    }
    if (context->machine.is_emulator)
        remark("times of the emulator say nothing about a GPU");
    return true;
}

static void print_head(const struct bench *bench)
{
    printf("%s on %s, median of %u%s\n  %-15s %4s %4s     %7s %4s %4s\n", tg_dtype_name(bench->io),
           bench->context->machine.device.name, bench->runs,
           bench->context->options.flush ? ", L2 flushed" : "", "", "B", "NH", "T", "dqk", "dhv");
}

int command_bench(struct context *context)
{
    const struct options *options = &context->options;
    const tg_variant *variant = NULL;
    struct bench bench = {.context = context, .io = TG_BF16, .runs = RUNS};
    if (options->n_args && !(variant = variant_by_name(context, options->args[0])))
        return CODE_USAGE;
    if ((options->dtype && !dtype_parse(context, options->dtype, &bench.io)) ||
        !machine_open(context) || !is_possible(context))
        return CODE_USAGE;
    bench.with_gradients = options->grad || !variant;
    if (options->runs)
        bench.runs = options->runs < MOST_RUNS ? (uint32_t)options->runs : MOST_RUNS;
    bench.times = malloc(bench.runs * sizeof *bench.times);
    if (!bench.times) {
        complain(context, "ask for fewer --runs", "out of memory");
        return CODE_FAILED;
    }
    if (!options->json)
        print_head(&bench);
    progress_begin(context, "compiling");
    if (variant)
        bench_shapes(&bench, variant);
    else if (options->n_shapes)
        variants_each(context, bench_each, &bench);
    else
        bench_family(&bench);
    progress_end(context);
    free(bench.times);
    return bench.code;
}
