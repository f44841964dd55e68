/* cli/oracle.c - the fp64 truth, of an oracle or of the algorithm's own statements, and how far from
 * it a kernel may be (DESIGN section 4).
 * The oracle sees inputs already rounded to their type, so its distance from a kernel's output is
 * the kernel's own error. */
#include "cli.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of interpretations: what is compared does not depend on it. */
static const int64_t usual_chunk = 64;

/* ---- the oracle, or the interpreter, a group of heads at a time on all cores ----
 * A slice is a group of heads of one sequence; of all sequences where they are packed, or where the
 * oracle sums over them (gradients of parameters), so that the sum does not depend on who computes
 * it. In a slice heads count from 0: its tensors are copies. */

struct work {
    const struct problem *problem;
    oracle_fn *oracle; /* NULL: the algorithm is interpreted, in chunks of so many tokens */
    int64_t chunk;
    struct truth *truth;
    bool is_whole_batch;
    size_t group, groups;
    long long n_slices;
    atomic_llong next, n_done;
    atomic_int status;   /* tg_status */
    const tg_sink *sink; /* what is wrong with the statements is told when only one thread is left */
};

/* What a slice has of a tensor: `heads` heads of `batches` sequences. */
struct part {
    size_t first_batch, batches, first_head, heads, all_heads;
    size_t row; /* elements of one head */
};

static struct part part_of(const struct work *work, const struct host_tensor *tensor, size_t slice)
{
    const size_t rows = (size_t)(tensor->extent[0] * tensor->extent[1]);
    struct part part = {.batches = (size_t)tensor->extent[0],
                        .all_heads = (size_t)tensor->extent[1],
                        .row = rows ? tensor->n / rows : 0};
    part.heads = tensor->flags & (TG_SHARED | TG_NO_HEADS) ? 1 : work->group;
    part.first_head = tensor->flags & TG_NO_HEADS ? 0 : slice % work->groups * part.heads;
    if (!work->is_whole_batch) {
        part.first_batch = tensor->flags & TG_NO_BATCH ? 0 : slice / work->groups;
        part.batches = 1;
    }
    return part;
}

static size_t offset_of(const struct part *part, size_t batch)
{
    return ((part->first_batch + batch) * part->all_heads + part->first_head) * part->row;
}

static void gather(const struct part *part, const struct host_tensor *tensor, double *to)
{
    const size_t n = part->heads * part->row, width = st_dtype_bytes(tensor->dtype);
    for (size_t b = 0; b < part->batches; b++) {
        const char *from = (const char *)tensor->data + offset_of(part, b) * width;
        num_convert((struct num_array){to + b * n, ST_F64, n}, (struct num_const_array){from, tensor->dtype, n});
    }
}

static void scatter(const struct part *part, const double *from, double *to)
{
    const size_t n = part->heads * part->row;
    for (size_t b = 0; b < part->batches; b++)
        memcpy(to + offset_of(part, b), from + b * n, n * sizeof *from);
}

/* NaN until written: an oracle that gives up must not pass for one that says zero. */
static double *allocate_f64(size_t n)
{
    double *numbers = malloc((n + 1) * sizeof *numbers);
    for (size_t i = 0; numbers && i < n; i++)
        numbers[i] = NAN;
    return numbers;
}

static void call_oracle(struct work *work, const double *const *in, double *const *out)
{
    const struct problem *problem = work->problem;
    const struct shape *shape = &problem->shape;
    const tg_oracle_call call = {
        .batch = work->is_whole_batch ? shape->batch : 1,
        .heads = (int64_t)work->group,
        .tokens = shape->tokens,
        .dqk = shape->dqk,
        .dhv = shape->dhv,
        .group = (int64_t)work->group,
        .cuts = problem->cuts.at,
        .scalars = problem->scalars,
        .in = in,
        .out = out,
    };
    if (work->oracle) {
        work->oracle(&call);
        return;
    }
    const tg_interpretation what = {.algorithm = problem->variant->algorithm, .call = &call, .chunk = work->chunk};
    const tg_status status = tg_interpret(&what, work->sink);
    if (status != TG_OK)
        atomic_store(&work->status, status);
}

static void run_slice(struct work *work, size_t slice)
{
    const struct problem *problem = work->problem;
    const double *in[256] = {NULL};
    double *out[256] = {NULL}, *numbers[TG_MAX_TENSORS] = {NULL};
    bool ok = true;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const struct host_tensor *tensor = &problem->tensors[i];
        if (tensor->is_kept || (tensor->flags & TG_IN && !tensor->data))
            continue;
        const struct part part = part_of(work, tensor, slice);
        numbers[i] = allocate_f64(part.batches * part.heads * part.row);
        ok &= numbers[i] != NULL;
        if (tensor->flags & TG_OUT)
            out[tensor->tile] = numbers[i];
        else if (numbers[i])
            gather(&part, tensor, numbers[i]);
        if (!(tensor->flags & TG_OUT))
            in[tensor->tile] = numbers[i];
    }
    if (ok)
        call_oracle(work, in, out);
    else
        atomic_store(&work->status, TG_E_MEMORY);
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const struct host_tensor *tensor = &problem->tensors[i];
        const struct part part = part_of(work, tensor, slice);
        if (ok && tensor->flags & TG_OUT && numbers[i])
            scatter(&part, numbers[i], work->truth->out[tensor->tile]);
        free(numbers[i]);
    }
}

static void *worker(void *user)
{
    struct work *work = user;
    for (long long slice; (slice = atomic_fetch_add(&work->next, 1)) < work->n_slices;) {
        run_slice(work, (size_t)slice);
        atomic_fetch_add(&work->n_done, 1);
    }
    return NULL;
}

static void run_all_slices(struct context *context, struct work *work)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long n = 0;
    while (n < cores && n < MOST && n < work->n_slices && pthread_create(&threads[n], NULL, worker, work) == 0)
        n++;
    if (n == 0)
        worker(work);
    progress_begin(context, "fp64 %s of %s", work->oracle ? "oracle" : "statements", work->problem->variant->name);
    for (long long done; n > 0 && (done = atomic_load(&work->n_done)) < work->n_slices;) {
        progress(context, "fp64 reference: %lld of %lld parts", done, work->n_slices);
        usleep(1000);
    }
    for (long i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    progress_end(context);
}

static void plan_slices(struct work *work)
{
    const struct shape *shape = &work->problem->shape;
    work->group = shape->group > 1 ? (size_t)shape->group : 1;
    work->groups = (size_t)shape->heads / work->group;
    work->is_whole_batch = shape->packed;
    for (uint32_t i = 0; i < work->problem->n_tensors; i++) {
        const uint8_t flags = work->problem->tensors[i].flags;
        work->is_whole_batch |= flags & TG_OUT && flags & TG_NO_BATCH;
    }
    work->n_slices = (long long)work->groups * (work->is_whole_batch ? 1 : shape->batch);
}

static bool allocate_truth(const struct problem *problem, struct truth *truth)
{
    bool ok = true;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const struct host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_OUT) || tensor->is_kept)
            continue;
        truth->out[tensor->tile] = allocate_f64(tensor->n);
        ok &= truth->out[tensor->tile] != NULL;
    }
    return ok;
}

static bool compute(struct context *context, struct work *work)
{
    *work->truth = (struct truth){{NULL}};
    if (!allocate_truth(work->problem, work->truth))
        work->status = TG_E_MEMORY;
    plan_slices(work);
    if (work->status == TG_OK)
        run_all_slices(context, work);
    if (work->status == TG_OK)
        return true;
    work->sink = &context->sink;
    if (work->status == TG_E_MEMORY)
        complain(context, "use a smaller shape", "no host memory for the fp64 reference");
    else
        run_slice(work, 0);
    truth_free(work->truth);
    return false;
}

bool truth_compute(struct context *context, const struct problem *problem, struct truth *truth)
{
    struct work work = {
        .problem = problem, .truth = truth, .oracle = variant_oracle(problem->variant), .chunk = usual_chunk};
    return compute(context, &work);
}

bool truth_interpret(struct context *context, const struct problem *problem, int64_t chunk, struct truth *truth)
{
    struct work work = {.problem = problem, .truth = truth, .chunk = chunk};
    return compute(context, &work);
}

void truth_free(struct truth *truth)
{
    for (int tile = 0; tile < 256; tile++)
        free(truth->out[tile]);
    *truth = (struct truth){{NULL}};
}

/* ---- tolerance ---- */

/* 16-bit inputs: a bf16 matrix operand is off by up to 2^-9, uniformly, so by 2^-9/sqrt(3) = 1.1e-3
 * RMS; a product of two such operands by 1.6e-3, the rounding of the output itself adds 1.1e-3, and
 * a second product (P V) as much again: 2.5e-3 is what the golden emulation shows, 4e-3 leaves room
 * for the sum order. f16 has eight times finer operands and passes with ease. */
static const double rms_16bit = 4e-3;
/* Gradients go through one product more, and the gates' are differences of such sums. */
static const double rms_gradient = 8e-3;
/* Gradients of parameters are sums over all tokens and sequences, of both signs: what is lost to
 * cancellation is not the kernel's. Levels, where there are any, are stricter. */
static const double parameter_slack = 4;
/* fp32 with 3xTF32: each product keeps 21 bits; 2e-5 is room for sums over 512 x T. Plain TF32
 * (1e-3) and a state kept in bf16 fail it by far. */
static const double rms_f32 = 2e-5;
/* What the delta rule writes into its state is the result of such a chain itself: T R, of an R that is made of K S. Its
 * errors and those of the products with it are of one size and add up as squares. */
static const double solve_slack = 1.4142135623730951;
/* One wrong element in a million leaves the RMS alone; the largest error must not. The golden
 * emulation's largest errors are 0.02 .. 0.04 RMS(truth), about 0.01 of the largest value. */
static const double max_over_rms_limit = 10;
/* A right kernel sums in another order than the emulation that the levels come from. */
static const double levels_slack = 3;
/* The emulation keeps its results in fp32. A kernel rounds them to the type of the output, by at
 * most half of the last place, uniformly; fp32 sums in another order are off by some last places.
 */
static double rounding_of(enum st_dtype dtype)
{
    return dtype == ST_BF16 ? 0x1p-8 : dtype == ST_F16 ? 0x1p-11 : 1e-6;
}

struct levels levels_of_file(const struct st_file *file, const struct host_tensor *tensor, tg_dtype io, bool is_paper)
{
    struct levels levels = {0, 0};
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

/* Levels are over RMS(truth); max_ratio is over max |truth|. */
static double rms_over_max(struct num_const_array x)
{
    double sum = 0, largest = 0;
    size_t n = 0;
    for (size_t i = 0; i < x.n; i++) {
        double value = num_load(x.data, x.type, i);
        if (!isfinite(value))
            continue;
        sum += value * value;
        largest = fmax(largest, fabs(value));
        n++;
    }
    return largest > 0 ? sqrt(sum / (double)n) / largest : 1;
}

/* What is off by a quarter is not rounded but wrong, whatever a file says of it. */
static const double most_of_file = 0.25;

/* The absolute limit, tightened by the levels and what the output's type adds to them; what cancels
 * so much that the emulation itself is beyond the limit is judged by its levels alone. */
static double limit(double absolute, double level, double rounding)
{
    if (!(level > 0))
        return absolute;
    if (level > absolute)
        return fmin(levels_slack * level, fmax(absolute, most_of_file));
    return fmin(absolute, hypot(levels_slack * level, rounding));
}

double chain_slack(const struct problem *problem)
{
    const tg_algorithm *algorithm = problem->variant->algorithm;
    for (uint32_t i = 0; i < algorithm->n_body; i++)
        if (algorithm->body[i].op == TG_STMT_SOLVE)
            return solve_slack;
    return 1;
}

struct verdict judge(const struct problem *problem, const struct host_tensor *tensor, struct num_const_array reference,
                     struct levels levels)
{
    struct verdict verdict = {.name = tensor->name};
    verdict.error = num_compare((struct num_const_array){tensor->data, tensor->dtype, tensor->n}, reference);
    const bool is_parameter = tensor->is_gradient && tensor->flags & TG_NO_BATCH;
    const double absolute = (problem->io == TG_F32 ? rms_f32
                             : tensor->is_gradient ? rms_gradient
                                                   : rms_16bit) *
                            (is_parameter && !(levels.rms > 0) ? parameter_slack : 1) * chain_slack(problem);
    const double rounding = rounding_of(tensor->dtype);
    verdict.rms_limit = limit(absolute, levels.rms, rounding / sqrt(3));
    verdict.max_limit = limit(max_over_rms_limit * absolute, levels.max * rms_over_max(reference), rounding);
    verdict.ok = !verdict.error.finite_mismatch && verdict.error.rms_ratio <= verdict.rms_limit &&
                 verdict.error.max_ratio <= verdict.max_limit;
    return verdict;
}

struct verdict judge_all(const struct problem *problem, const struct truth *truth)
{
    struct verdict worst = {.name = "nothing"};
    double furthest = -1;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const struct host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_OUT) || !tensor->data || tensor->is_kept)
            continue;
        struct verdict verdict =
            judge(problem, tensor, (struct num_const_array){truth->out[tensor->tile], ST_F64, tensor->n},
                  (struct levels){0, 0});
        double distance = verdict.ok ? verdict.error.rms_ratio / verdict.rms_limit : INFINITY;
        if (distance > furthest) {
            furthest = distance;
            worst = verdict;
        }
    }
    return worst;
}
