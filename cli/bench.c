/* cli/bench.c - `tegula bench`: how long kernels take. Bytes and flops are the model's counts, so
 * GB/s and TFLOP/s say how well the time uses the machine for that schedule; of a decode step the
 * bytes are those of its tensors, each once. */
#include "bench.h"

#include <stdlib.h>

enum { RUNS = 30, MOST_RUNS = 100000 };

#define SIZES(b, nh, t, qk, hv) .batch = (b), .heads = (nh), .tokens = (t), .dqk = (qk), .dhv = (hv)

/* 65,536 tokens at four lengths: the protocol of the TFLA paper's figure 5. */
static const tg_shape default_shapes[] = {{SIZES(128, 16, 512, 128, 256)},
                                          {SIZES(32, 16, 2048, 128, 256)},
                                          {SIZES(8, 16, 8192, 128, 256)},
                                          {SIZES(1, 16, 65536, 128, 256)}};

/* Each variant at the sizes of its models; then decode steps, which read and write a state for a
 * token. */
static const struct row {
    const char *variant;
    tg_shape shape;
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
    {"lightning", {SIZES(8, 32, 8192, 128, 128)}},
    {"linear", {SIZES(8, 32, 8192, 128, 128)}},
    {"mamba2", {SIZES(8, 64, 8192, 128, 64), .group = 64}},
    {"mamba2", {SIZES(8, 128, 8192, 128, 64), .group = 16}},
    {"mamba2", {SIZES(8, 16, 8192, 128, 256)}},
    {"mlstm-sig", {SIZES(1, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-sig", {SIZES(8, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-sig", {SIZES(64, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-sig", {SIZES(512, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-exp", {SIZES(1, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-exp", {SIZES(8, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-exp", {SIZES(64, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-exp", {SIZES(512, 16, 1, 128, 256), .most_tokens = 1}},
    {"mlstm-sig", {SIZES(1, 16, 8, 128, 256), .most_tokens = 8}},
    {"mlstm-sig", {SIZES(64, 16, 8, 128, 256), .most_tokens = 8}},
    {"mlstm-sig", {SIZES(512, 16, 8, 128, 256), .most_tokens = 8}},
    {"mlstm-exp", {SIZES(1, 16, 8, 128, 256), .most_tokens = 8}},
    {"mlstm-exp", {SIZES(64, 16, 8, 128, 256), .most_tokens = 8}},
    {"mlstm-exp", {SIZES(512, 16, 8, 128, 256), .most_tokens = 8}},
    {"gated-delta", {SIZES(1, 32, 1, 128, 128), .most_tokens = 1}},
    {"gated-delta", {SIZES(64, 32, 1, 128, 128), .most_tokens = 1}},
    {"gated-delta", {SIZES(512, 32, 1, 128, 128), .most_tokens = 1}},
    {"gated-delta", {SIZES(1, 32, 8, 128, 128), .most_tokens = 8}},
    {"gated-delta", {SIZES(64, 32, 8, 128, 128), .most_tokens = 8}},
    {"gated-delta", {SIZES(512, 32, 8, 128, 128), .most_tokens = 8}},
};

static void bench_row(struct bench *bench, const tg_variant *variant, const tg_shape *shape)
{
    struct timing forward, backward;
    struct wish wish;
    for (uint32_t i = 0; bench_wish(bench, i, &wish); i++)
        if (bench_time(bench, variant, shape, wish, &forward, &backward))
            bench_show(bench, shape, &forward, &backward, NULL);
}

/* ---- which rows ---- */

static void bench_shapes(struct bench *bench, const tg_variant *variant)
{
    const struct options *options = &bench->context->options;
    const bool is_given = options->n_shapes > 0;
    const uint32_t n = is_given ? options->n_shapes : sizeof default_shapes / sizeof default_shapes[0];
    for (uint32_t i = 0; i < n; i++) {
        tg_shape shape = is_given ? options->shapes[i] : default_shapes[i];
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

/* Of all variants they are measured anyway. */
static bool has_gradients(const struct options *options, bool is_one)
{
    return options->grad || options->keep_states || options->roofline || options->paper || !is_one;
}

/* What of the command line goes together. */
static bool is_meant(struct context *context)
{
    const struct options *options = &context->options;
    if (options->n_args == 0 && options->roofline) {
        complain(context, "name a variant", "--roofline: expected a variant, found none");
        return false;
    }
    if (options->roofline && options->paper) {
        complain(context, "ask for one after the other", "--roofline and --paper are two figures");
        return false;
    }
    if (options->paper && options->n_shapes > 1) {
        complain(context, "give one --shape", "a figure of --paper is of one shape");
        return false;
    }
    if (options->backward_schedule && options->n_args && !has_gradients(options, true)) {
        complain(context, "add --grad", "--backward-schedule: no gradients are asked for");
        return false;
    }
    if (options->svg && !options->roofline && !options->paper) {
        complain(context, "add --roofline, or --paper fig5",
                 "--svg: expected --roofline or --paper beside it, found neither");
        return false;
    }
    if (options->n_args == 0 && options->n_shapes == 0 && !options->paper &&
        (options->group || options->tokens || options->packed || options->pool || options->states ||
         options->schedule || options->chunk)) {
        complain(context, "name a variant, or give a --shape",
                 "the table of all variants has sizes and schedules of its own");
        return false;
    }
    return true;
}

static bool is_possible(struct context *context)
{
    if (context->machine.is_emulator && !context->options.n_shapes) {
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

static bool bench_open(struct bench *bench, const tg_variant *variant)
{
    struct context *context = bench->context;
    const struct options *options = &context->options;
    if (!is_meant(context) || (options->dtype && !dtype_parse(context, options->dtype, &bench->io)) ||
        !plot_is_possible(context) || !machine_open(context) || !is_possible(context))
        return false;
    bench->with_gradients = has_gradients(options, variant != NULL);
    bench->by_kernel = options->roofline;
    if (options->runs)
        bench->runs = options->runs < MOST_RUNS ? (uint32_t)options->runs : MOST_RUNS;
    return true;
}

static void bench_all(struct bench *bench, const tg_variant *variant)
{
    const struct options *options = &bench->context->options;
    progress_begin(bench->context, "compiling");
    if (options->roofline) {
        bench_roofline(bench, variant);
    } else if (options->paper) {
        bench_paper(bench, variant ? variant : variant_lookup(bench->context, "mlstm-sig"));
    } else {
        bench_head(bench);
        if (variant)
            bench_shapes(bench, variant);
        else if (options->n_shapes)
            variants_each(bench->context, bench_each, bench);
        else
            bench_family(bench);
    }
    progress_end(bench->context);
}

int command_bench(struct context *context)
{
    const struct options *options = &context->options;
    const tg_variant *variant = NULL;
    struct bench bench = {.context = context, .io = TG_BF16, .runs = RUNS};
    if (options->n_args && !(variant = variant_by_name(context, options->args[0])))
        return CODE_USAGE;
    if (!bench_open(&bench, variant))
        return CODE_USAGE;
    bench.times = calloc(bench.by_kernel ? TG_MAX_KERNELS : 1, bench.runs * sizeof *bench.times);
    if (!bench.times) {
        complain(context, "ask for fewer --runs", "out of memory");
        return CODE_FAILED;
    }
    bench_all(&bench, variant);
    free(bench.times);
    return bench.code;
}
