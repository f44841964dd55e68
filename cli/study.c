/* cli/study.c - `tegula study transfer`: what gates do to a signal (TFLA paper, section 4.2 and appendix D.2).
 *
 * Random q, k and v go through a variant whose gates are the same for all tokens, and then through an RMS norm without
 * weights. A sweep is a call with a head for each pre-activation of the forget gate; all of them have the same q, k and v.
 * There is one for each pre-activation of the input gate, by the fp64 recurrence and by the kernels. */
#include "study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double most_deviation = 0.02; /* of a gain behind the norm, in 16 bits */

/* A program and the tensors of its sweeps. */
struct leg {
    tg_problem problem;
    struct choice choice;
    struct kernel kernel;
    bool is_open, is_built;
};

static void leg_close(struct leg *leg)
{
    if (leg->is_built)
        kernel_free(&leg->kernel);
    if (leg->is_open)
        tg_problem_free(&leg->problem);
}

static bool leg_open(const struct study *study, const tg_variant *variant, struct wish wish, struct leg *leg)
{
    struct context *context = study->context;
    const tg_shape_class class = tg_shape_class_of(&study->shape, study->io);
    leg->is_open = problem_layout(context, variant, &study->shape, study->io, &leg->problem);
    return leg->is_open &&
           schedule_choose(context, variant, context->machine.target, &class, &study->shape, wish, &leg->choice) &&
           (leg->is_built =
                kernel_build(context, variant, &leg->choice.schedule, &class, &leg->kernel, &context->sink));
}

static bool leg_run(const struct study *study, struct leg *leg)
{
    return tg_problem_run(&leg->problem, &study->context->machine, leg->kernel.module, leg->choice.schedule.chunk,
                          &study->context->sink) == TG_OK;
}

/* ---- inputs ---- */

/* The numbers of one head, in every head that the tensor has. */
static void fill_alike(const struct study *study, tg_host_tensor *tensor)
{
    const size_t heads = (size_t)tensor->extent[1], n = tensor->n / heads;
    const tg_random random = {(uint64_t)study->context->options.seed, tg_num_stream(tensor->name)};
    for (size_t head = 0; head < heads; head++) {
        char *at = (char *)tensor->data + head * n * tg_num_bytes(tensor->dtype);
        tg_num_fill_normal((tg_array){at, tensor->dtype, n}, random, 0, 1);
    }
}

/* f is that of the head; i is given. */
static void fill_gates(tg_problem *problem, double input)
{
    tg_host_tensor *f = tg_problem_tensor(problem, "f"), *i = tg_problem_tensor(problem, "i");
    const size_t tokens = (size_t)problem->shape.tokens;
    for (size_t at = 0; at < f->n; at++) {
        tg_num_store(f->data, f->dtype, at, FORGET_LEAST + (double)(at / tokens));
        tg_num_store(i->data, i->dtype, at, input);
    }
}

static bool fill_rows(const struct study *study, tg_problem *problem)
{
    for (uint32_t t = 0; t < problem->n_tensors; t++) {
        tg_host_tensor *tensor = &problem->tensors[t];
        if (!(tensor->flags & TG_IN) || tensor->flags & TG_OPTIONAL)
            continue;
        if (tg_problem_allocate(tensor, &study->context->sink) != TG_OK)
            return false;
        fill_alike(study, tensor);
    }
    return true;
}

static bool is_gate(const tg_host_tensor *tensor)
{
    return strcmp(tensor->name, "f") == 0 || strcmp(tensor->name, "i") == 0;
}

/* Rows of q, k and v, and two gates of a token. */
static bool has_gates(const struct study *study, const tg_variant *variant)
{
    tg_problem problem;
    uint32_t gates = 0, rows = 0, others = 0;
    if (!problem_declare(study->context, variant, study->io, &problem))
        return false;
    for (uint32_t t = 0; t < problem.n_tensors; t++) {
        const tg_host_tensor *tensor = &problem.tensors[t];
        if (!(tensor->flags & TG_IN) || tensor->flags & TG_OPTIONAL)
            continue;
        if (tensor->has_tokens && is_gate(tensor))
            gates++;
        else if (tensor->has_tokens && strchr("qkv", tensor->name[0]) && tensor->name[1] == '\0')
            rows++;
        else
            others++;
    }
    if (gates == 2 && rows == 3 && others == 0 && tg_problem_tensor(&problem, "h"))
        return true;
    complain(study->context, "choose mlstm-exp, mlstm-sig or mlstm-sig-norm",
             "%s does not take q, k, v and the gates f and i", variant->name);
    return false;
}

/* ---- gains ---- */

static double largest(const void *row, tg_num_type dtype, size_t first, size_t n)
{
    double most = 0;
    for (size_t i = first; i < first + n; i++) {
        const double x = fabs(tg_num_load(row, dtype, i));
        most = x > most || isnan(x) ? x : most;
    }
    return most;
}

/* Of each head: the mean over the tokens of max|h_t| / max|v_t|. */
static void measure(const struct study *study, const void *h, tg_num_type dtype, const tg_host_tensor *v,
                    double gain[N_FORGETS])
{
    const size_t tokens = (size_t)study->shape.tokens, dhv = (size_t)study->shape.dhv;
    for (size_t head = 0; head < N_FORGETS; head++) {
        double sum = 0;
        for (size_t t = 0; t < tokens; t++) {
            const size_t row = (head * tokens + t) * dhv;
            sum += largest(h, dtype, row, dhv) / largest(v->data, v->dtype, row, dhv);
        }
        gain[head] = sum / (double)tokens;
    }
}

/* The norm in fp64. */
static void normalise(const struct study *study, struct leg *norm, const double *h, double *to)
{
    const double *in[256] = {NULL};
    double *out[256] = {NULL};
    in[tg_problem_tensor(&norm->problem, "x")->tile] = h;
    out[tg_problem_tensor(&norm->problem, "h")->tile] = to;
    const tg_shape *shape = &study->shape;
    const tg_oracle_call call = {.batch = 1,
                                 .heads = shape->heads,
                                 .tokens = shape->tokens,
                                 .dqk = shape->dqk,
                                 .dhv = shape->dhv,
                                 .group = 1,
                                 .scalars = norm->problem.scalars,
                                 .in = in,
                                 .out = out};
    tg_variant_oracle(study->norm)(&call);
}

static bool sweep_truth(const struct study *study, struct transfer *transfer, struct leg legs[2], int input)
{
    const tg_host_tensor *h = tg_problem_tensor(&legs[0].problem, "h"), *v = tg_problem_tensor(&legs[0].problem, "v");
    tg_truth truth;
    if (!truth_compute(study->context, &legs[0].problem, 0, &truth))
        return false;
    double *normal = malloc(h->n * sizeof *normal);
    const bool ok = normal != NULL;
    if (ok) {
        normalise(study, &legs[1], truth.out[h->tile], normal);
        measure(study, truth.out[h->tile], TG_NUM_F64, v, transfer->gain[BEFORE][TRUTH][input]);
        measure(study, normal, TG_NUM_F64, v, transfer->gain[AFTER][TRUTH][input]);
    } else {
        complain(study->context, "use a smaller --shape", "no host memory for the truth");
    }
    free(normal);
    tg_truth_free(&truth);
    return ok;
}

/* The norm's kernel takes what the variant's has left. */
static bool sweep_kernel(const struct study *study, struct transfer *transfer, struct leg legs[2], int input)
{
    const tg_host_tensor *v = tg_problem_tensor(&legs[0].problem, "v");
    if (!leg_run(study, &legs[0]))
        return false;
    const tg_host_tensor *h = tg_problem_tensor(&legs[0].problem, "h");
    memcpy(tg_problem_tensor(&legs[1].problem, "x")->data, h->data, h->bytes);
    if (!leg_run(study, &legs[1]))
        return false;
    const tg_host_tensor *normal = tg_problem_tensor(&legs[1].problem, "h");
    measure(study, h->data, h->dtype, v, transfer->gain[BEFORE][KERNEL][input]);
    measure(study, normal->data, normal->dtype, v, transfer->gain[AFTER][KERNEL][input]);
    return true;
}

static int study_variant(struct study *study, const tg_variant *variant)
{
    struct transfer *transfer = &study->transfers[study->n_transfers];
    struct leg legs[2] = {0};
    transfer->variant = variant;
    int code = CODE_USAGE;
    if (leg_open(study, variant, wish_of(&study->context->options), &legs[0]) &&
        leg_open(study, study->norm, (struct wish){NULL, 0}, &legs[1]) && fill_rows(study, &legs[0].problem) &&
        fill_rows(study, &legs[1].problem)) {
        code = CODE_OK;
        transfer->choice = legs[0].choice;
        legs[1].problem.scalars[tg_problem_scalar(&legs[1].problem, "eps")] = study->eps;
    }
    for (int input = 0; code == CODE_OK && input < N_INPUTS; input++) {
        progress(study->context, "%s: input gate %d", variant->name, INPUT_LEAST + input);
        fill_gates(&legs[0].problem, INPUT_LEAST + input);
        if (!sweep_truth(study, transfer, legs, input) || !sweep_kernel(study, transfer, legs, input))
            code = CODE_FAILED;
    }
    leg_close(&legs[0]);
    leg_close(&legs[1]);
    study->n_transfers += code == CODE_OK;
    return code;
}

/* ---- the command ---- */

/* One head of one sequence, which a sweep has once for each value of f. */
static bool take_shape(struct study *study)
{
    struct context *context = study->context;
    const struct options *options = &context->options;
    study->shape = (tg_shape){.batch = 1, .heads = 1, .tokens = 512, .dqk = 128, .dhv = 128};
    if (options->n_shapes > 1) {
        complain(context, "run the command once more for the other", "%u --shape options; a study has one",
                 options->n_shapes);
        return false;
    }
    if (options->n_shapes)
        study->shape = options->shapes[0];
    if (study->shape.batch != 1 || study->shape.heads != 1) {
        complain(context, "write B=1,NH=1", "--shape: the study is of one head, found B=%lld NH=%lld",
                 (long long)study->shape.batch, (long long)study->shape.heads);
        return false;
    }
    study->shape.heads = N_FORGETS;
    const tg_shape_class class = tg_shape_class_of(&study->shape, study->io);
    return shape_class_check(context, &class);
}

static bool take_options(struct study *study)
{
    struct context *context = study->context;
    const struct options *options = &context->options;
    if (strcmp(options->args[0], "transfer") != 0) {
        complain(context, "`tegula study transfer`", "unknown study '%s'", options->args[0]);
        return false;
    }
    if (options->n_args - 1 > MOST_VARIANTS) {
        complain(context, "run the command once more for the others", "more than %d variants", MOST_VARIANTS);
        return false;
    }
    study->eps = options->eps > 0 ? options->eps : 1e-6;
    study->norm = variant_lookup(context, "srms-norm");
    return (!options->dtype || dtype_parse(context, options->dtype, &study->io)) && take_shape(study);
}

static int judge_transfer(const struct study *study, const struct transfer *transfer)
{
    const double deviation = transfer_deviation(transfer, AFTER);
    if (deviation <= most_deviation)
        return CODE_OK;
    complain(study->context, "`tegula check` says whether the kernel is right at random gates",
             "%s: behind the norm the kernel's gain is %.3g %% off the truth's, expected at most %g %%",
             transfer->variant->name, 100 * deviation, 100 * most_deviation);
    return CODE_FAILED;
}

static int run_study(struct study *study)
{
    static const char *const usual[] = {"mlstm-exp", "mlstm-sig"};
    const struct options *options = &study->context->options;
    const uint32_t n = options->n_args > 1 ? options->n_args - 1 : 2;
    const tg_variant *variants[MOST_VARIANTS];
    for (uint32_t i = 0; i < n; i++) {
        variants[i] = variant_by_name(study->context, options->n_args > 1 ? options->args[i + 1] : usual[i]);
        if (!variants[i] || !has_gates(study, variants[i]))
            return CODE_USAGE;
    }
    if (!plot_is_possible(study->context) || !machine_open(study->context))
        return CODE_USAGE;
    progress_begin(study->context, "compiling");
    int code = CODE_OK;
    for (uint32_t i = 0; code == CODE_OK && i < n; i++)
        code = study_variant(study, variants[i]);
    progress_end(study->context);
    if (code == CODE_OK)
        study_show(study);
    for (uint32_t i = 0; code == CODE_OK && i < study->n_transfers; i++)
        code = judge_transfer(study, &study->transfers[i]);
    const int drawn = code != CODE_USAGE && options->svg && study->n_transfers == n ? study_draw(study) : CODE_OK;
    return code == CODE_OK ? drawn : code;
}

int command_study(struct context *context)
{
    struct study *study = calloc(1, sizeof *study);
    if (!study) {
        complain(context, "free some memory", "out of memory");
        return CODE_FAILED;
    }
    study->context = context;
    study->io = TG_BF16;
    const int code = take_options(study) ? run_study(study) : CODE_USAGE;
    free(study);
    return code;
}
