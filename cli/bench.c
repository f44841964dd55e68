/* cli/bench.c - `tegula bench`: how long a kernel takes. Bytes and flops are the model's counts, so
 * GB/s and TFLOP/s say how well the time uses the machine for that schedule. */
#include "cli.h"

#include <stdlib.h>

enum { RUNS = 30, MOST_RUNS = 100000 };

/* 65,536 tokens at four lengths: the protocol of the TFLA paper's figure 5. */
static const struct shape default_shapes[] = {
    {.batch = 128, .heads = 16, .tokens = 512, .dqk = 128, .dhv = 256},
    {.batch = 32, .heads = 16, .tokens = 2048, .dqk = 128, .dhv = 256},
    {.batch = 8, .heads = 16, .tokens = 8192, .dqk = 128, .dhv = 256},
    {.batch = 1, .heads = 16, .tokens = 65536, .dqk = 128, .dhv = 256},
};

struct bench {
    struct context *context;
    const tg_variant *variant;
    tg_dtype io;
    uint32_t runs;
    float *times; /* [runs], milliseconds, ascending */
};

static void report(const struct bench *bench, const struct shape *shape,
                   const struct choice *choice, const tg_cost *cost, double workspace)
{
    const struct context *context = bench->context;
    const double median = median_of(bench->times, bench->runs);
    const double least = (double)bench->times[0], most = (double)bench->times[bench->runs - 1];
    char size[32], text[SCHEDULE_TEXT];
    schedule_text(bench->variant, &choice->schedule, text);
    if (context->options.json) {
        json_print(json_pack(
            "{s:s, s:s, s:s, s:{s:I, s:I, s:I, s:I, s:I}, s:s, s:i, s:s, s:i, s:b, s:f, s:f, s:f, "
            "s:f, s:f, s:f}",
            "variant", bench->variant->name, "device", context->machine.device.name, "dtype",
            tg_dtype_name(bench->io), "shape", "B", (json_int_t)shape->batch, "NH",
            (json_int_t)shape->heads, "T", (json_int_t)shape->tokens, "dqk", (json_int_t)shape->dqk,
            "dhv", (json_int_t)shape->dhv, "schedule", text, "chunk", (int)choice->schedule.chunk,
            "origin", choice->origin, "runs", (int)bench->runs, "flush", context->options.flush,
            "median_ms", median, "min_ms", least, "max_ms", most, "gb_per_s",
            cost->bytes / median / 1e6, "tflop_per_s", cost->flops / median / 1e9,
            "workspace_bytes", workspace));
        return;
    }
    progress_hide(bench->context);
    printf("  %4lld %4lld %7lld %4lld %4lld  %9.3f ms (%.3f .. %.3f)  %6.0f GB/s  %6.1f TFLOP/s  "
           "%9s  %s (%s)\n",
           (long long)shape->batch, (long long)shape->heads, (long long)shape->tokens,
           (long long)shape->dqk, (long long)shape->dhv, median, least, most,
           cost->bytes / median / 1e6, cost->flops / median / 1e9, bytes_text(workspace, size),
           text, choice->origin);
    fflush(stdout);
}

static int bench_kernel(struct bench *bench, const struct shape *shape, const struct choice *choice,
                        const struct kernel *kernel)
{
    struct context *context = bench->context;
    const tg_shape_class class = shape_class_of(shape, bench->io);
    const tg_sizes sizes = {shape->batch, shape->heads, shape->tokens, choice->schedule.chunk};
    struct problem problem;
    struct call call;
    tg_cost cost = {0};
    tg_status status = tg_cost_estimate(&choice->schedule, context->machine.target, &class, &sizes,
                                        &cost, &context->sink);
    if (status != TG_OK || !problem_layout(context, bench->variant, shape, bench->io, &problem))
        return CODE_USAGE;
    status = call_open_pattern(&call, &context->machine, kernel, &problem, choice->schedule.chunk,
                               &context->sink);
    if (status != TG_OK)
        return code_of_status(status);
    status = call_time(&call, bench->runs, context->options.flush, bench->times, &context->sink);
    if (status == TG_OK)
        report(bench, shape, choice, &cost, (double)call.workspace_bytes);
    call_close(&call);
    return code_of_status(status);
}

static int bench_shape(struct bench *bench, const struct shape *shape)
{
    struct context *context = bench->context;
    const tg_shape_class class = shape_class_of(shape, bench->io);
    struct choice choice;
    struct kernel kernel;
    if (!schedule_choose(context, bench->variant, context->machine.target, &class, shape,
                         wish_of(&context->options), &choice))
        return CODE_USAGE;
    progress(context, "B=%lld T=%lld: compiling", (long long)shape->batch,
             (long long)shape->tokens);
    if (!kernel_build(context, bench->variant, &choice.schedule, &class, &kernel, &context->sink))
        return CODE_FAILED;
    progress(context, "B=%lld T=%lld: running", (long long)shape->batch, (long long)shape->tokens);
    int code = bench_kernel(bench, shape, &choice, &kernel);
    kernel_free(&kernel);
    return code;
}

int command_bench(struct context *context)
{
    const struct options *options = &context->options;
    struct bench bench = {.context = context, .io = TG_BF16, .runs = RUNS};
    bench.variant = variant_by_name(context, options->args[0]);
    if (!bench.variant || (options->dtype && !dtype_parse(context, options->dtype, &bench.io)) ||
        !machine_open(context))
        return CODE_USAGE;
    if (options->runs)
        bench.runs = options->runs < MOST_RUNS ? (uint32_t)options->runs : MOST_RUNS;
    if (context->machine.is_emulator && !options->n_shapes) {
        complain(context,
                 "`tegula tune --gpu NAME` predicts; --shape B=1,NH=1,T=256,dqk=64,dhv=64 "
                 "runs on the emulator",
                 "there is no GPU to time on, and the default shapes are too large to emulate");
        return CODE_USAGE;
    }
    if (context->machine.is_emulator)
        remark("times of the emulator say nothing about a GPU");
    const struct shape *shapes = options->n_shapes ? options->shapes : default_shapes;
    const uint32_t n =
        options->n_shapes ? options->n_shapes : sizeof default_shapes / sizeof default_shapes[0];
    bench.times = malloc(bench.runs * sizeof *bench.times);
    if (!bench.times) {
        complain(context, "ask for fewer --runs", "out of memory");
        return CODE_FAILED;
    }
    if (!options->json)
        printf("%s %s on %s, median of %u%s\n  %4s %4s %7s %4s %4s\n", bench.variant->name,
               tg_dtype_name(bench.io), context->machine.device.name, bench.runs,
               options->flush ? ", L2 flushed" : "", "B", "NH", "T", "dqk", "dhv");
    progress_begin(context, "compiling");
    int code = CODE_OK;
    for (uint32_t i = 0; i < n; i++) {
        int one = bench_shape(&bench, &shapes[i]);
        code = one > code ? one : code;
    }
    progress_end(context);
    free(bench.times);
    return code;
}
