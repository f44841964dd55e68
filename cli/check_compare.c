/* cli/check_compare.c - `tegula check`: outputs beside the truth, and what is said of them. */
#include "check.h"

#include <math.h>
#include <string.h>

/* out.h, grad.q; or grad_paper.q. */
static void output_name(const struct leg *leg, const tg_host_tensor *tensor, char full[80])
{
    char name[64];
    tensor_file_name(tensor, name);
    const char *dot = strchr(name, '.');
    snprintf(full, 80, "%.*s%s%s", (int)(dot - name), name, leg->is_paper ? "_paper" : "", dot);
}

static const struct st_tensor *truth_in_file(const struct check *check, const struct leg *leg,
                                             const tg_host_tensor *tensor)
{
    const struct options *options = &check->context->options;
    char full[80];
    if (!check->file)
        return NULL;
    /* Rounded inputs or other scalars: the file's outputs answer another question. */
    if (leg->notes.is_rounded || options->scale > 0 || options->n_settings || options->cuts.at)
        return NULL;
    output_name(leg, tensor, full);
    return st_find(check->file, full);
}

static bool truth_fits(struct check *check, const struct st_tensor *truth, const tg_host_tensor *tensor)
{
    bool fits = truth->rank == tensor->rank - tensor->first_axis || is_for_all_heads(tensor, truth);
    for (int i = 0; fits && i < truth->rank; i++)
        fits = truth->shape[i] == tensor->extent[tensor->first_axis + i];
    if (!fits)
        complain(check->context, "leave it out to compare with the fp64 reference",
                 "%s: %s has not the shape of the output, which has %zu numbers", check->path, truth->name, tensor->n);
    return fits;
}

static bool reference_of(struct check *check, struct leg *leg, const tg_host_tensor *tensor, tg_const_array *reference,
                         const char **against)
{
    const struct st_tensor *truth = truth_in_file(check, leg, tensor);
    if (truth) {
        *reference = st_array(truth);
        *against = "file";
        return truth_fits(check, truth, tensor);
    }
    if (!leg->has_truth && !truth_compute(check->context, &leg->problem, 0, &leg->truth))
        return false;
    leg->has_truth = true;
    *reference = (tg_const_array){leg->truth.out[tensor->tile], TG_NUM_F64, tensor->n};
    *against = tg_variant_oracle(leg->variant) ? "oracle" : "statements";
    return true;
}

/* Error levels of a golden file; 0 when not given. `is_paper`: of the gradients by the TFLA paper's convention. */
static tg_levels levels_of_file(const struct st_file *file, const tg_host_tensor *tensor, tg_dtype io, bool is_paper)
{
    tg_levels levels = {0, 0};
    const char *text = st_meta(file, "error_levels");
    char name[64];
    /* The files' own names: the output is "o", a final state "final_S", a gradient "g_q". fp32
     * levels are of exact fp32 products, which 3xTF32 is not; section 4 gives that case one number.
     */
    if (!text || io == TG_F32)
        return levels;
    if (tensor->is_gradient)
        snprintf(name, sizeof name, "%s_%s", is_paper ? "gp" : "g", tensor->name + 1);
    else if (strcmp(tensor->name, "h") == 0)
        snprintf(name, sizeof name, "o");
    else
        snprintf(name, sizeof name, "final_%s", tensor->name);
    json_t *json = json_loads(text, 0, NULL);
    json_t *pair = json_object_get(json_object_get(json, "bf16_mma"), name);
    levels.rms = json_number_value(json_array_get(pair, 0));
    levels.max = json_number_value(json_array_get(pair, 1));
    json_decref(json);
    return levels;
}

/* Of the column of names: what is compared of a call has numbers below each other. */
static int width_of_names(const struct leg *leg)
{
    int width = 8;
    for (uint32_t i = 0; i < leg->problem.n_tensors; i++) {
        char name[80];
        if (!(leg->problem.tensors[i].flags & TG_OUT))
            continue;
        output_name(leg, &leg->problem.tensors[i], name);
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    }
    return width;
}

/* Most such mistakes are decays above 1: of inputs that are drawn otherwise than the variant wants. */
static void print_mismatch(double truth)
{
    const double most = 3.4e38; /* of float and bf16 */
    if (isfinite(truth) && fabs(truth) > most)
        printf(": the truth is %.1e: states grow beyond float\n", truth);
    else
        puts(": not finite on one side only");
}

static void print_worst(const tg_host_tensor *tensor, const tg_tensor_error *error, tg_const_array reference,
                        int column)
{
    const int64_t index = error->worst_index;
    int64_t worst = error->worst_index, at[2 + TG_MAX_AXES] = {0};
    for (int i = tensor->rank - 1; i >= 0 && worst >= 0; i--) {
        at[i] = worst % tensor->extent[i];
        worst /= tensor->extent[i];
    }
    printf("%*sfurthest off at [", column, "");
    for (int i = tensor->first_axis; i < tensor->rank; i++)
        printf("%s%lld", i > tensor->first_axis ? ", " : "", (long long)at[i]);
    if (error->finite_mismatch) {
        printf("]");
        print_mismatch(tg_num_load(reference.data, reference.type, (size_t)index));
    } else {
        puts("]");
    }
}

static void report(struct check *check, const struct leg *leg, const tg_host_tensor *tensor, const tg_verdict *verdict,
                   tg_const_array reference, const char *against)
{
    char name[80];
    output_name(leg, tensor, name);
    if (check->tensors) {
        json_array_append_new(check->tensors,
                              json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:b}", "name", name, "rms_ratio",
                                        json_number(verdict->error.rms_ratio), "rms_limit",
                                        json_number(verdict->rms_limit), "max_ratio",
                                        json_number(verdict->error.max_ratio), "max_limit",
                                        json_number(verdict->max_limit), "against", against, "ok", verdict->ok));
        return;
    }
    progress_hide(check->context);
    const int width = width_of_names(leg);
    printf("  %-*s rms %.2e (limit %.2e)  max %.2e (limit %.2e)  %s, against the %s\n", width, name,
           verdict->error.rms_ratio, verdict->rms_limit, verdict->error.max_ratio, verdict->max_limit,
           verdict->ok ? "ok" : "FAILED", against);
    if (!verdict->ok)
        print_worst(tensor, &verdict->error, reference, width + 3);
}

void check_skip(struct check *check, const char *name, const char *reason)
{
    if (check->skipped) {
        json_array_append_new(check->skipped, json_pack("{s:s, s:s}", "name", name, "reason", reason));
        return;
    }
    progress_hide(check->context);
    printf("  %s: left out: %s\n", name, reason);
}

void check_skip_gradients(struct check *check)
{
    for (size_t i = 0; i < st_count(check->file); i++) {
        const char *name = st_at(check->file, i)->name;
        if (strncmp(name, "grad", 4) == 0)
            check_skip(check, name, "no backward yet");
    }
}

/* A parameter of which the file has one number for all heads: its gradient is the sum of theirs. */
static tg_host_tensor over_heads(const tg_host_tensor *tensor, float *sum)
{
    tg_host_tensor one = *tensor;
    double total = 0;
    for (size_t i = 0; i < tensor->n; i++)
        total += tg_num_load(tensor->data, tensor->dtype, i);
    *sum = (float)total;
    one.data = sum;
    one.dtype = TG_NUM_F32;
    one.n = 1;
    one.bytes = sizeof *sum;
    one.extent[1] = 1;
    return one;
}

/* Of one number that nearly cancels, roundings to 16 bits may leave nothing: the file says so of its own. */
static bool is_undetermined(const struct leg *leg, const tg_host_tensor *tensor, tg_levels levels)
{
    return leg->problem.io != TG_F32 && tensor->n == 1 && levels.rms >= 1;
}

static int judge_output(struct check *check, struct leg *leg, const tg_host_tensor *tensor)
{
    tg_const_array reference;
    tg_levels levels = {0, 0};
    tg_host_tensor one = *tensor;
    const char *against;
    float sum;
    if (!reference_of(check, leg, tensor, &reference, &against))
        return CODE_USAGE;
    if (check->file)
        levels = levels_of_file(check->file, tensor, leg->problem.io, leg->is_paper);
    if (reference.n < tensor->n)
        one = over_heads(tensor, &sum);
    if (is_undetermined(leg, &one, levels)) {
        char name[80];
        output_name(leg, tensor, name);
        check_skip(check, name, "one number, off by more than it is by rounding alone, as the file says");
        return CODE_OK;
    }
    tg_verdict verdict = tg_judge(&leg->problem, &one, reference, levels);
    /* by the statements, which take what the forward left rounded as the kernel does; an oracle makes it anew */
    if (reference.n == tensor->n && know_deviation(check->context, &leg->problem, leg->choice.schedule.chunk,
                                                   tg_roundings_wanted(&verdict, tensor), &leg->deviation))
        tg_judge_rounded(tensor, reference, leg->deviation.square.out[tensor->tile], &verdict);
    report(check, leg, tensor, &verdict, reference, against);
    return verdict.ok ? CODE_OK : CODE_FAILED;
}

int check_compare(struct check *check, struct leg *leg)
{
    int n_compared = 0, code = CODE_OK;
    for (uint32_t i = 0; i < leg->problem.n_tensors; i++) {
        const tg_host_tensor *tensor = &leg->problem.tensors[i];
        if (!(tensor->flags & TG_OUT) || !tensor->data || tensor->is_kept)
            continue;
        const int one = judge_output(check, leg, tensor);
        if (one == CODE_USAGE)
            return CODE_USAGE;
        n_compared++;
        code = one > code ? one : code;
    }
    if (n_compared > 0)
        return code;
    complain(check->context, "let a row of the schedule write an output", "%s: no output was computed", check->path);
    return CODE_USAGE;
}

/* What of a call is not as usual: " group=2 packed states=bf16 exact=0". */
static void print_kind(const tg_problem *problem)
{
    const tg_shape *shape = &problem->shape;
    const double by_width = 1 / sqrt((double)shape->dqk);
    if (shape->group > 1)
        printf(" group=%lld", (long long)shape->group);
    printf("%s%s", shape->packed ? " packed" : "", shape->pooled ? " pooled" : "");
    if (shape->state)
        printf(" states=%s", tg_dtype_name((tg_dtype)shape->state));
    printf("%s", shape->values_first ? " states=[dhv,dqk]" : "");
    printf("%s", problem->is_wide && (shape->packed || shape->pooled) ? " int64" : "");
    for (uint32_t i = 0; i < problem->n_scalars; i++) {
        const double usual = (double)problem->declared[i].value;
        if (fabs(problem->scalars[i] - (i == 0 && usual == 0 ? by_width : usual)) > 1e-6)
            printf(" %s=%g", problem->declared[i].name, problem->scalars[i]);
    }
}

void check_print_head(struct check *check, const struct leg *leg)
{
    const tg_shape *shape = &leg->problem.shape;
    char text[TG_SCHEDULE_TEXT];
    tg_schedule_text(leg->variant, &leg->choice.schedule, text);
    if (check->tensors) {
        json_array_append_new(check->programs,
                              json_pack("{s:s, s:s, s:o, s:s, s:s}", "variant", leg->variant->name, "dtype",
                                        tg_dtype_name(leg->problem.io), "shape", shape_json(shape), "schedule", text,
                                        "origin", leg->choice.origin));
        return;
    }
    progress_hide(check->context);
    if (!check->has_head)
        printf("%s\n", check->path);
    check->has_head = true;
    printf("  %s %s, B=%lld NH=%lld T=%lld dqk=%lld dhv=%lld", leg->variant->name, tg_dtype_name(leg->problem.io),
           (long long)shape->batch, (long long)shape->heads, (long long)shape->tokens, (long long)shape->dqk,
           (long long)shape->dhv);
    print_kind(&leg->problem);
    printf("; schedule %s (%s)\n", text, leg->choice.origin);
}

static void report_slope(void *user, const tg_slope *slope)
{
    struct check *check = user;
    if (check->differences)
        json_array_append_new(check->differences, json_pack("{s:s+, s:o, s:o, s:b}", "name", "grad.", slope->name,
                                                            "error", json_number(fabs(slope->found - slope->declared)),
                                                            "limit", json_number(slope->limit), "ok", slope->ok));
    if (check->differences || slope->ok)
        return;
    progress_hide(check->context);
    printf("  grad.%-3s the statements say %.6g along a random direction, differences of the forward's %.6g  FAILED\n",
           slope->name, slope->declared, slope->found);
}

int check_differences(struct check *check, const tg_variant *forward, const tg_variant *backward)
{
    const struct context *context = check->context;
    const tg_status status =
        tg_gradients_check(forward, backward, (uint64_t)context->options.seed, report_slope, check, &context->sink);
    if (status == TG_OK && !check->differences) {
        progress_hide(check->context);
        printf("  the statements of %s agree with differences of the forward's\n", backward->name);
    }
    return status == TG_OK || status == TG_E_NUMERICS ? code_of_status(status) : CODE_USAGE;
}
