/* cli/check.c - `tegula check`: run a kernel on a file's inputs, or on random ones, and compare its
 * outputs with the truth; then the same for the gradients, whose program gets what the forward
 * computed. The truth is the file's own tensor of that name where it has one and it is of these
 * inputs, else the fp64 oracle or, without one, the statements. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one program: its inputs, a launch, its outputs ---- */

static bool leg_read(struct check *check, struct leg *leg)
{
    struct context *context = check->context;
    tg_dtype io = TG_BF16;
    const bool is_fed = check->forward.variant && leg != &check->forward;
    if (check->file)
        return problem_read(context, leg->variant, check->file, check->path, is_fed, &leg->problem, &leg->notes);
    if (context->options.dtype && !dtype_parse(context, context->options.dtype, &io))
        return false;
    const tg_shape_class class = tg_shape_class_of(check->shape, io);
    return shape_class_check(context, &class) &&
           problem_random(context, leg->variant, check->shape, io, (uint64_t)context->options.seed, &leg->problem);
}

/* A schedule that keeps states, with --keep-states and without one of --schedule. */
static bool choose_keeping(struct check *check, const struct leg *leg, const tg_shape_class *class,
                           char text[TG_SCHEDULE_TEXT])
{
    const struct leg *forward = &check->forward;
    const bool is_forward = leg == forward;
    const bool is_given = !is_forward && forward->choice.schedule.kept[0];
    const tg_sizes sizes = tg_sizes_of(&leg->problem.shape, 0);
    tg_keeping pair;
    if (!tg_schedules_keeping(forward->variant, is_given ? &forward->choice.schedule : NULL,
                              check->context->machine.target, class, &sizes, &pair)) {
        complain(check->context, "leave out --keep-states: the backward then makes them again",
                 "--keep-states: %s has no schedules that hand states over for these sizes", forward->variant->name);
        return false;
    }
    tg_schedule_text(leg->variant, is_forward ? &pair.forward : &pair.backward, text);
    return true;
}

static bool leg_choose(struct check *check, struct leg *leg)
{
    struct context *context = check->context;
    const struct options *options = &context->options;
    const tg_shape_class class = tg_shape_class_of(&leg->problem.shape, leg->problem.io);
    char keeping[TG_SCHEDULE_TEXT];
    struct wish wish = wish_of(options);
    if (leg->variant != check->wanted)
        wish.schedule = leg == &check->forward ? NULL : options->backward_schedule;
    if (leg->variant != check->wanted && leg == &check->forward && !options->keep_states)
        wish.chunk = 0; /* it only computes what the gradients take */
    if (options->keep_states && !wish.schedule) {
        if (!choose_keeping(check, leg, &class, keeping))
            return false;
        wish.schedule = keeping;
    }
    if (!schedule_choose(context, leg->variant, context->machine.target, &class, &leg->problem.shape, wish,
                         &leg->choice))
        return false;
    if (wish.schedule == keeping)
        snprintf(leg->choice.origin, sizeof leg->choice.origin, "--keep-states");
    return true;
}

/* Inputs that only a forward can give, and none has given. */
static bool leg_is_fed(struct check *check, const struct leg *leg)
{
    for (uint32_t i = 0; i < leg->problem.n_tensors; i++) {
        const tg_host_tensor *tensor = &leg->problem.tensors[i];
        if (!(tensor->flags & TG_IN) || tensor->data || tensor->flags & TG_OPTIONAL)
            continue;
        complain(check->context, tensor->is_kept ? "run both with --keep-states" : "check the forward's variant",
                 "schedule %s takes %s, which the forward did not leave", leg->choice.schedule.name, tensor->name);
        return false;
    }
    return true;
}

static int leg_launch(struct check *check, struct leg *leg, const struct kernel *kernel)
{
    struct context *context = check->context;
    const int64_t chunk = leg->choice.schedule.chunk;
    if (tg_problem_keep(kernel->program, chunk, &leg->problem, &context->sink) != TG_OK)
        return CODE_USAGE;
    if (leg != &check->forward && check->forward.variant &&
        tg_problem_feed(&check->forward.problem, &leg->problem, &context->sink) != TG_OK)
        return CODE_USAGE;
    if (!leg_is_fed(check, leg))
        return CODE_USAGE;
    return code_of_status(tg_problem_run(&leg->problem, &context->machine, kernel->module, chunk, &context->sink));
}

static int leg_run(struct check *check, struct leg *leg, bool is_told)
{
    struct context *context = check->context;
    const tg_shape_class class = tg_shape_class_of(&leg->problem.shape, leg->problem.io);
    struct kernel kernel;
    if (!leg_choose(check, leg))
        return CODE_USAGE;
    if (is_told)
        check_print_head(check, leg);
    if (!kernel_build(context, leg->variant, &leg->choice.schedule, &class, &kernel, &context->sink))
        return CODE_FAILED;
    const int code = leg_launch(check, leg, &kernel);
    kernel_free(&kernel);
    return code;
}

static void leg_free(struct leg *leg)
{
    if (leg->variant)
        tg_problem_free(&leg->problem);
    if (leg->has_truth)
        tg_truth_free(&leg->truth);
    tg_truth_free(&leg->deviation.square);
}

/* ---- forward, backward, and the backward by the paper's convention ---- */

static int worse(int a, int b)
{
    return a > b ? a : b;
}

/* With exact = 0 the normaliser is a constant: what arrives for n has nowhere to go. */
static void drop_normaliser(struct check *check, struct leg *leg)
{
    const int exact = tg_problem_scalar(&leg->problem, "exact");
    tg_host_tensor *dn = tg_problem_tensor(&leg->problem, "dn");
    if (exact < 0 || leg->problem.scalars[exact] != 0 || !dn || !dn->data)
        return;
    free(dn->data);
    dn->data = NULL;
    check_skip(check, "dout.n", "with exact = 0 the normaliser is a constant");
}

static int run_gradients(struct check *check, const tg_variant *backward, bool is_paper)
{
    struct leg leg = {.variant = backward, .is_paper = is_paper};
    if (!leg_read(check, &leg))
        return CODE_USAGE;
    if (is_paper)
        leg.problem.scalars[tg_problem_scalar(&leg.problem, "exact")] = 0;
    drop_normaliser(check, &leg);
    int code = leg_run(check, &leg, true);
    if (code == CODE_OK)
        code = check_compare(check, &leg);
    leg_free(&leg);
    return code;
}

static bool has_prefix(const struct check *check, const char *prefix)
{
    for (size_t i = 0; check->file && i < st_count(check->file); i++)
        if (strncmp(st_at(check->file, i)->name, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static bool has_exact(const tg_variant *variant)
{
    for (uint32_t i = 0; i < variant->algorithm->n_scalars; i++)
        if (strcmp(variant->algorithm->scalars[i].name, "exact") == 0)
            return true;
    return false;
}

static int check_backward(struct check *check, const tg_variant *backward)
{
    const tg_variant *forward = variant_forward(check->context, backward);
    int code = run_gradients(check, backward, false);
    if (code != CODE_USAGE && forward)
        code = worse(code, check_differences(check, forward, backward));
    if (code != CODE_USAGE && has_prefix(check, "grad_paper.") && has_exact(backward))
        code = worse(code, run_gradients(check, backward, true));
    return code;
}

/* For a backward alone the forward runs where something of it is taken, but is not compared. */
static bool needs_forward(const struct check *check, const tg_variant *backward, const tg_variant *forward)
{
    tg_problem problem;
    bool is_needed = check->context->options.keep_states;
    if (!forward || !problem_declare(check->context, backward, TG_F32, &problem))
        return false;
    for (uint32_t i = 0; i < problem.n_tensors; i++)
        is_needed |= problem.tensors[i].is_fed;
    return is_needed;
}

static int check_forward(struct check *check, bool is_compared)
{
    if (!leg_read(check, &check->forward))
        return CODE_USAGE;
    int code = leg_run(check, &check->forward, is_compared);
    if (code == CODE_OK && is_compared)
        code = check_compare(check, &check->forward);
    return code;
}

static bool wants_gradients(const struct check *check)
{
    const struct options *options = &check->context->options;
    return options->grad || options->keep_states || has_prefix(check, "grad.");
}

/* Options that would be without effect. */
static bool options_fit(struct check *check, bool is_backward)
{
    const struct options *options = &check->context->options;
    if (!options->backward_schedule || is_backward || wants_gradients(check))
        return true;
    complain(check->context, "add --grad", "--backward-schedule: no gradients are asked for");
    return false;
}

static int check_directions(struct check *check)
{
    const tg_variant *wanted = check->wanted, *forward = variant_forward(check->context, wanted);
    const bool is_backward = forward != NULL;
    const tg_variant *backward = is_backward ? wanted : wanted->backward;
    int code = CODE_OK;
    if (!options_fit(check, is_backward))
        return CODE_USAGE;
    if (!is_backward || needs_forward(check, backward, forward)) {
        check->forward.variant = is_backward ? forward : wanted;
        code = check_forward(check, !is_backward);
    }
    if (code == CODE_USAGE || (!is_backward && !wants_gradients(check)))
        return code;
    if (backward)
        return worse(code, check_backward(check, backward));
    if (!check->context->options.grad && !check->context->options.keep_states) {
        check_skip_gradients(check);
        return code;
    }
    const char *option = check->context->options.grad ? "--grad" : "--keep-states";
    char hint[32];
    snprintf(hint, sizeof hint, "leave out %s", option);
    complain(check->context, hint, "%s: %s has no backward", option, wanted->name);
    return CODE_USAGE;
}

/* ---- files and shapes ---- */

static bool file_variant(struct check *check)
{
    const char *name = st_meta(check->file, "variant");
    if (check->wanted)
        return true;
    if (!name) {
        complain(check->context, "name it: tegula check VARIANT FILE", "%s: no metadata `variant` says what it is for",
                 check->path);
        return false;
    }
    check->wanted = variant_by_name(check->context, name);
    return check->wanted != NULL;
}

static int check_opened(struct check *check)
{
    char error[512];
    if (!st_open(check->path, &check->file, error, sizeof error)) {
        complain(check->context, "give a safetensors file with in.* tensors", "%s", error);
        return CODE_USAGE;
    }
    const int code = file_variant(check) ? check_directions(check) : CODE_USAGE;
    leg_free(&check->forward);
    st_close(check->file);
    return code;
}

/* What is of the size of a benchmark runs for ever, it seems. As two processors do it, and roughly. */
static void warn_of_emulator(const struct check *check, const tg_shape *shape)
{
    const double a_second = 6e7, of_gradients = wants_gradients(check) ? 4 : 1;
    const double size = (double)shape->batch * (double)shape->heads * (double)shape->tokens;
    const double minutes = size * (double)shape->dqk * (double)shape->dhv * of_gradients / a_second / 60;
    if (check->context->machine.is_emulator && minutes > 1)
        remark("the emulator takes about %.2g minutes for this; a smaller --shape takes less", minutes);
}

static int check_random(struct check *check)
{
    tg_shape shape = *check->shape;
    if (!options_shape(check->context, &shape))
        return CODE_USAGE;
    warn_of_emulator(check, &shape);
    check->shape = &shape;
    const int code = check_directions(check);
    leg_free(&check->forward);
    return code;
}

static void print_json(struct check *check, int code)
{
    struct context *context = check->context;
    json_t *object = json_pack("{s:s, s:b, s:s, s:O, s:O}", "file", check->path, "ok", code == CODE_OK, "device",
                               context->machine.device.name, "programs", check->programs, "tensors", check->tensors);
    if (json_array_size(check->differences))
        json_object_set(object, "differences", check->differences);
    if (json_array_size(check->skipped))
        json_object_set(object, "skipped", check->skipped);
    if (json_array_size(context->errors))
        json_object_set_new(object, "errors", json_copy(context->errors));
    json_array_clear(context->errors);
    json_print(object);
}

/* `shape` NULL: a file. */
static int check_one(struct context *context, const tg_variant *variant, const char *path, const tg_shape *shape)
{
    struct check check = {.context = context, .path = path, .wanted = variant, .shape = shape};
    if (context->options.json) {
        check.programs = json_array();
        check.tensors = json_array();
        check.skipped = json_array();
        check.differences = json_array();
    }
    progress_begin(context, "checking %s", path);
    int code = shape ? check_random(&check) : check_opened(&check);
    progress_end(context);
    if (check.tensors)
        print_json(&check, code);
    else
        puts(code == CODE_OK ? "  ok" : "  FAILED");
    fflush(stdout);
    json_decref(check.programs);
    json_decref(check.tensors);
    json_decref(check.skipped);
    json_decref(check.differences);
    return code;
}

/* The first argument is a variant if it names one; a word that is neither that nor a file was meant
 * to be one, if files follow. */
static bool first_is_variant(struct context *context, const tg_variant **variant)
{
    const char *first = context->options.args[0];
    *variant = variant_lookup(context, first);
    if (*variant)
        return true;
    const bool wants_variant = context->options.n_args > 1 || context->options.n_shapes;
    if (first && wants_variant && !strpbrk(first, "/.") && access(first, F_OK) != 0)
        variant_by_name(context, first); /* says that it is unknown */
    else
        return true;
    return false;
}

int command_check(struct context *context)
{
    const struct options *options = &context->options;
    const tg_variant *variant;
    uint32_t n_ok = 0;
    int code = CODE_OK;
    if (!layout_is_known(context, context->options.layout) || !first_is_variant(context, &variant))
        return CODE_USAGE;
    const uint32_t first = variant ? 1 : 0;
    const uint32_t n = options->n_args - first + options->n_shapes;
    if (n == 0 || (options->n_shapes && !variant)) {
        complain(context, "usage: tegula check [VARIANT] FILE..., or VARIANT --shape SHAPE", "%s",
                 n == 0 ? "no file to check" : "no variant for the random inputs of --shape");
        return CODE_USAGE;
    }
    if (!machine_open(context))
        return CODE_USAGE;
    for (uint32_t i = 0; i < n; i++) {
        const bool is_file = i < options->n_args - first;
        const tg_shape *shape = is_file ? NULL : &options->shapes[i - options->n_args + first];
        int one = check_one(context, variant, is_file ? options->args[first + i] : "random inputs", shape);
        n_ok += one == CODE_OK;
        code = worse(code, one);
    }
    if (!options->json && n > 1)
        printf("%u of %u within tolerance on %s\n", n_ok, n, context->machine.device.name);
    return code;
}
