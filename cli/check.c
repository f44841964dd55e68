/* cli/check.c - `tegula check`: run a kernel on a file's inputs, compare its outputs with the
 * truth. The truth is the file's own tensor of that name where it has one and it is of these
 * inputs, else the fp64 oracle. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file_check {
    struct context *context;
    const char *path;
    const tg_variant *variant;
    struct st_file *file;
    struct problem problem;
    struct truth truth;
    bool has_truth;
    bool is_second; /* the gradients of a file whose outputs have been checked */
    json_t *tensors, *skipped; /* arrays, with --json */
    bool ok;
};

static const struct st_tensor *truth_in_file(const struct file_check *check, const char *name)
{
    char full[64];
    if (!check->file)
        return NULL;
    /* Rounded inputs or another scale: the file's outputs answer another question. */
    if (check->problem.is_rounded || check->context->options.scale > 0)
        return NULL;
    problem_name(check->variant, name, TG_OUT, full);
    return st_find(check->file, full);
}

static bool truth_fits(struct file_check *check, const struct st_tensor *truth,
                       const struct host_tensor *tensor)
{
    bool fits = truth->rank == tensor->rank;
    for (int i = 0; fits && i < tensor->rank; i++)
        fits = truth->shape[i] == tensor->extent[i];
    if (!fits)
        complain(check->context, "leave it out to compare with the fp64 oracle",
                 "%s: %s has not the shape of the output, which has %zu numbers", check->path,
                 truth->name, tensor->n);
    return fits;
}

static bool reference_of(struct file_check *check, const struct host_tensor *tensor,
                         struct num_const_array *reference, const char **against)
{
    const struct st_tensor *truth = truth_in_file(check, tensor->name);
    if (truth) {
        *reference = num_of_tensor(truth);
        *against = "file";
        return truth_fits(check, truth, tensor);
    }
    if (!check->has_truth && !truth_compute(check->context, &check->problem, &check->truth))
        return false;
    check->has_truth = true;
    *reference = (struct num_const_array){check->truth.out[tensor->tile], ST_F64, tensor->n};
    *against = "oracle";
    return true;
}

static void tensor_report(struct file_check *check, const struct host_tensor *tensor,
                          const struct verdict *verdict)
{
    char name[64];
    problem_name(check->variant, tensor->name, TG_OUT, name);
    if (check->tensors) {
        json_array_append_new(check->tensors,
                              json_pack("{s:s, s:o, s:o}", "name", name, "rms_ratio",
                                        json_number(verdict->error.rms_ratio), "max_ratio",
                                        json_number(verdict->error.max_ratio)));
        return;
    }
    progress_hide(check->context);
    printf("  %-8s rms %.2e (at most %.2e)  max %.2e (at most %.2e)  %s, against the %s\n", name,
           verdict->error.rms_ratio, verdict->rms_limit, verdict->error.max_ratio,
           verdict->max_limit, verdict->ok ? "ok" : "FAILED", verdict->against);
    if (verdict->ok)
        return;
    int64_t worst = verdict->error.worst_index, at[2 + TG_MAX_AXES] = {0};
    for (int i = tensor->rank - 1; i >= 0 && worst >= 0; i--) {
        at[i] = worst % tensor->extent[i];
        worst /= tensor->extent[i];
    }
    printf("           furthest off at [");
    for (int i = 0; i < tensor->rank; i++)
        printf("%s%lld", i ? ", " : "", (long long)at[i]);
    printf("]%s\n", verdict->error.finite_mismatch ? ": not finite on one side only" : "");
}

static void skip(struct file_check *check, const char *role, const char *name, const char *reason)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s", role, name);
    if (check->skipped)
        json_array_append_new(check->skipped,
                              json_pack("{s:s, s:s}", "name", full, "reason", reason));
    else
        printf("  %s: not checked: %s\n", full, reason);
}

static int compare_outputs(struct file_check *check)
{
    int n_compared = 0;
    for (uint32_t i = 0; i < check->problem.n_tensors; i++) {
        const struct host_tensor *tensor = &check->problem.tensors[i];
        struct num_const_array reference;
        const char *against;
        if (!(tensor->flags & TG_OUT) || !tensor->data)
            continue;
        if (!truth_in_file(check, tensor->name) && !variant_oracle(check->variant)) {
            skip(check, "out", tensor->name, "the file has no truth, the variant no oracle");
            continue;
        }
        if (!reference_of(check, tensor, &reference, &against))
            return CODE_USAGE;
        n_compared++;
        struct verdict verdict =
            judge(&check->problem, tensor, reference,
                  check->file ? levels_of_file(check->file, check->variant, tensor, check->problem.io)
                              : (struct levels){0, 0});
        verdict.against = against;
        tensor_report(check, tensor, &verdict);
        check->ok &= verdict.ok;
    }
    if (n_compared == 0) {
        complain(check->context, "give the variant an oracle, or put out.* tensors into the file",
                 "%s: there is nothing to compare with", check->path);
        return CODE_USAGE;
    }
    return check->ok ? CODE_OK : CODE_FAILED;
}

/* What the file could be used for and is not, said aloud. */
static void report_skipped(struct file_check *check)
{
    bool any = false;
    for (size_t i = 0; check->file && i < st_count(check->file); i++) {
        const char *name = st_at(check->file, i)->name;
        if (strncmp(name, "grad.", 5) != 0)
            continue;
        if (check->skipped)
            json_array_append_new(
                check->skipped, json_pack("{s:s, s:s}", "name", name, "reason", "no backward yet"));
        else
            printf("%s%s", any ? ", " : "  ", name);
        any = true;
    }
    if (any && !check->skipped)
        puts(": not checked: no backward yet");
}

static void print_head(const struct file_check *check, const struct choice *choice)
{
    const struct shape *shape = &check->problem.shape;
    char text[SCHEDULE_TEXT];
    schedule_text(check->variant, &choice->schedule, text);
    progress_hide(check->context);
    if (!check->is_second)
        printf("%s\n", check->path);
    printf("  %s %s, B=%lld NH=%lld T=%lld dqk=%lld dhv=%lld; schedule %s (%s)\n", check->variant->name, tg_dtype_name(check->problem.io), (long long)shape->batch,
           (long long)shape->heads, (long long)shape->tokens, (long long)shape->dqk,
           (long long)shape->dhv, text, choice->origin);
}

static int run_problem(struct file_check *check)
{
    struct context *context = check->context;
    const struct shape *shape = &check->problem.shape;
    const tg_shape_class class = shape_class_of(shape, check->problem.io);
    struct choice choice;
    struct kernel kernel;
    struct call call;
    if (!schedule_choose(context, check->variant, context->machine.target, &class, shape, &choice))
        return CODE_USAGE;
    if (!check->tensors)
        print_head(check, &choice);
    if (!kernel_build(context, check->variant, &choice.schedule, &class, &kernel, &context->sink))
        return CODE_FAILED;
    tg_status status = call_open(&call, &context->machine, &kernel, &check->problem,
                                 choice.schedule.chunk, &context->sink);
    if (status == TG_OK) {
        status = call_run(&call, &context->sink);
        if (status == TG_OK)
            status = call_fetch(&call, &check->problem, &context->sink);
        call_close(&call);
    }
    kernel_free(&kernel);
    return code_of_status(status);
}

static bool file_variant(struct file_check *check)
{
    const char *name = st_meta(check->file, "variant");
    if (check->variant)
        return true;
    if (!name) {
        complain(check->context, "name it: tegula check VARIANT FILE",
                 "%s: no metadata `variant` says what it is for", check->path);
        return false;
    }
    check->variant = variant_by_name(check->context, name);
    return check->variant != NULL;
}

static int check_problem(struct file_check *check)
{
    const char *layout = check->context->options.layout;
    check->problem.is_token_major = layout && strcmp(layout, "bthd") == 0;
    int code = run_problem(check);
    if (code == CODE_OK)
        code = compare_outputs(check);
    if (code != CODE_USAGE && !check->variant->backward && !strstr(check->variant->name, "-backward"))
        report_skipped(check);
    problem_free(&check->problem);
    if (check->has_truth)
        truth_free(&check->truth);
    return code;
}

static bool has_gradients(const struct file_check *check)
{
    for (size_t i = 0; i < st_count(check->file); i++)
        if (strncmp(st_at(check->file, i)->name, "grad.", 5) == 0)
            return true;
    return false;
}

static int check_tensors(struct file_check *check)
{
    if (!problem_read(check->context, check->variant, check->file, check->path, &check->problem))
        return CODE_USAGE;
    return check_problem(check);
}

/* The forward; then, where the file has gradients and the variant a backward, that. */
static int check_directions(struct file_check *check)
{
    if (!file_variant(check))
        return CODE_USAGE;
    const tg_variant *backward = check->variant->backward;
    int code = check_tensors(check);
    if (code == CODE_USAGE || !backward || !has_gradients(check))
        return code;
    check->variant = backward;
    check->has_truth = false;
    check->is_second = true;
    const int backward_code = check_tensors(check);
    return backward_code > code ? backward_code : code;
}

static int check_opened(struct context *context, struct file_check *check)
{
    char error[512];
    if (!st_open(check->path, &check->file, error, sizeof error)) {
        complain(context, "give a safetensors file with in.* tensors", "%s", error);
        return CODE_USAGE;
    }
    int code = check_directions(check);
    st_close(check->file);
    return code;
}

/* Random inputs of a shape, every optional one included, against the oracle. */
static int check_random(struct context *context, struct file_check *check,
                        const struct shape *shape)
{
    const struct options *options = &context->options;
    tg_dtype io = TG_BF16;
    if (options->dtype && !dtype_parse(context, options->dtype, &io))
        return CODE_USAGE;
    const tg_shape_class class = shape_class_of(shape, io);
    if (!shape_class_check(context, &class) ||
        !problem_random(context, check->variant, shape, io, (uint64_t)options->seed,
                        &check->problem))
        return CODE_USAGE;
    if (options->scale > 0)
        check->problem.scale = options->scale;
    return check_problem(check);
}

static void print_json(struct file_check *check, int code)
{
    struct context *context = check->context;
    json_t *object = json_pack("{s:s, s:b, s:s, s:O}", "file", check->path, "ok", code == CODE_OK,
                               "device", context->machine.device.name, "tensors", check->tensors);
    if (json_array_size(check->skipped))
        json_object_set(object, "skipped", check->skipped);
    if (json_array_size(context->errors))
        json_object_set_new(object, "errors", json_copy(context->errors));
    json_array_clear(context->errors);
    json_print(object);
}

/* `shape` NULL: a file. */
static int check_one(struct context *context, const tg_variant *variant, const char *path,
                     const struct shape *shape)
{
    struct file_check check = {.context = context, .path = path, .variant = variant, .ok = true};
    if (context->options.json) {
        check.tensors = json_array();
        check.skipped = json_array();
    }
    progress_begin(context, "checking %s", path);
    int code = shape ? check_random(context, &check, shape) : check_opened(context, &check);
    progress_end(context);
    if (check.tensors)
        print_json(&check, code);
    else
        puts(code == CODE_OK ? "  ok" : "  FAILED");
    fflush(stdout);
    json_decref(check.tensors);
    json_decref(check.skipped);
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
    if (context->options.n_args > 1 && !strpbrk(first, "/.") && access(first, F_OK) != 0)
        variant_by_name(context, first); /* says that it is unknown */
    else
        return true;
    return false;
}

static bool layout_is_known(struct context *context)
{
    const char *layout = context->options.layout;
    if (!layout || strcmp(layout, "bhtd") == 0 || strcmp(layout, "bthd") == 0)
        return true;
    complain(context, "choose bhtd or bthd", "--layout: unknown layout '%s'", layout);
    return false;
}

int command_check(struct context *context)
{
    const struct options *options = &context->options;
    const tg_variant *variant;
    uint32_t n_ok = 0;
    int code = CODE_OK;
    if (!layout_is_known(context) || !first_is_variant(context, &variant))
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
        const struct shape *shape = is_file ? NULL : &options->shapes[i - options->n_args + first];
        int one = check_one(context, variant, is_file ? options->args[first + i] : "random inputs",
                            shape);
        n_ok += one == CODE_OK;
        code = one > code ? one : code;
    }
    if (!options->json && n > 1)
        printf("%u of %u within tolerance on %s\n", n_ok, n, context->machine.device.name);
    return code;
}
