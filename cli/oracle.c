/* cli/oracle.c - the fp64 truth, and how far from it a kernel may be (DESIGN section 4).
 * The oracle sees inputs already rounded to their type, so its distance from a kernel's output is
 * the kernel's own error. */
#include "cli.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the oracle, one head at a time on all cores ---- */

struct work {
    const struct problem *problem;
    const double *in[256]; /* by tile; [B, NH, axes...] */
    double *out[256];
    size_t stride[256]; /* elements of one head */
    atomic_llong next, n_done;
};

static void run_head(struct work *work, size_t head)
{
    const struct problem *problem = work->problem;
    const double *in[256] = {NULL};
    double *out[256] = {NULL};
    for (int tile = 0; tile < 256; tile++) {
        in[tile] = work->in[tile] ? work->in[tile] + head * work->stride[tile] : NULL;
        out[tile] = work->out[tile] ? work->out[tile] + head * work->stride[tile] : NULL;
    }
    const tg_oracle_call call = {
        1,  1,  problem->shape.tokens, problem->shape.dqk, problem->shape.dhv, problem->scale,
        in, out};
    variant_oracle(problem->variant)(&call);
}

static void *worker(void *user)
{
    struct work *work = user;
    const long long heads = work->problem->shape.batch * work->problem->shape.heads;
    for (long long head; (head = atomic_fetch_add(&work->next, 1)) < heads;) {
        run_head(work, (size_t)head);
        atomic_fetch_add(&work->n_done, 1);
    }
    return NULL;
}

static void run_all_heads(struct context *context, struct work *work)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    const long long heads = work->problem->shape.batch * work->problem->shape.heads;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long n = 0;
    while (n < cores && n < MOST && n < heads &&
           pthread_create(&threads[n], NULL, worker, work) == 0)
        n++;
    if (n == 0)
        worker(work);
    progress_begin(context, "fp64 oracle of %s", work->problem->variant->name);
    for (long long done; n > 0 && (done = atomic_load(&work->n_done)) < heads;) {
        progress(context, "fp64 oracle: %lld of %lld heads", done, heads);
        usleep(1000);
    }
    for (long i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    progress_end(context);
}

/* NaN until written: an oracle that gives up must not pass for one that says zero. */
static double *allocate_f64(const struct host_tensor *tensor)
{
    double *numbers = malloc((tensor->n + 1) * sizeof *numbers);
    for (size_t i = 0; numbers && i < tensor->n; i++)
        numbers[i] = NAN;
    return numbers;
}

bool truth_compute(struct context *context, const struct problem *problem, struct truth *truth)
{
    struct work *work = calloc(1, sizeof *work);
    bool ok = work != NULL;
    *truth = (struct truth){{NULL}};
    if (!variant_oracle(problem->variant)) {
        complain(context, "give the variant an `oracle`, or put out.* tensors into the file",
                 "%s has no oracle to compare with", problem->variant->name);
        free(work);
        return false;
    }
    for (uint32_t i = 0; i < problem->n_tensors && ok; i++) {
        const struct host_tensor *tensor = &problem->tensors[i];
        const size_t heads = (size_t)(problem->shape.batch * problem->shape.heads);
        work->stride[tensor->tile] = heads ? tensor->n / heads : 0;
        if (tensor->flags & TG_IN && !tensor->data)
            continue;
        double *numbers = allocate_f64(tensor);
        ok = numbers != NULL;
        if (tensor->flags & TG_OUT)
            truth->out[tensor->tile] = work->out[tensor->tile] = numbers;
        else
            work->in[tensor->tile] = numbers;
        if (ok && tensor->flags & TG_IN)
            num_convert((struct num_array){numbers, ST_F64, tensor->n},
                        (struct num_const_array){tensor->data, tensor->dtype, tensor->n});
    }
    if (ok) {
        work->problem = problem;
        run_all_heads(context, work);
    } else {
        complain(context, "use a smaller shape", "no host memory for the fp64 oracle");
    }
    for (int tile = 0; work && tile < 256; tile++)
        free((void *)(uintptr_t)work->in[tile]);
    free(work);
    if (!ok)
        truth_free(truth);
    return ok;
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
/* fp32 with 3xTF32: each product keeps 21 bits; 2e-5 is room for sums over 512 x T. Plain TF32
 * (1e-3) and a state kept in bf16 fail it by far. */
static const double rms_f32 = 2e-5;
/* One wrong element in a million leaves the RMS alone; the largest error must not. The golden
 * emulation's largest errors are 0.02 .. 0.04 RMS(truth), about 0.01 of the largest value. */
static const double max_over_rms_limit = 10;
/* A right kernel sums in another order than the emulation that the levels come from. */
static const double levels_slack = 3;

struct levels levels_of_file(const struct st_file *file, const tg_variant *variant,
                             const struct host_tensor *tensor, tg_dtype io)
{
    struct levels levels = {0, 0};
    const char *text = st_meta(file, "error_levels");
    char name[64], full[64];
    /* The files' own names: the output is "o", a final state "final_S", a gradient "g_q". fp32 levels are of exact
     * fp32 products, which 3xTF32 is not; section 4 gives that case one number. */
    if (!text || io == TG_F32)
        return levels;
    if (problem_name(variant, tensor->name, tensor->flags, full))
        snprintf(name, sizeof name, "g_%s", tensor->name + 1);
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

/* The absolute limit, tightened by the levels; what cancels so much that the emulation itself is beyond the
 * limit is judged by its levels alone. */
static double limit(double absolute, double level)
{
    if (!(level > 0))
        return absolute;
    return level > absolute ? levels_slack * level : fmin(absolute, levels_slack * level);
}

struct verdict judge(const struct problem *problem, const struct host_tensor *tensor,
                     struct num_const_array reference, struct levels levels)
{
    char full[64];
    const bool gradient = problem_name(problem->variant, tensor->name, tensor->flags, full);
    struct verdict verdict = {.name = tensor->name};
    verdict.error =
        num_compare((struct num_const_array){tensor->data, tensor->dtype, tensor->n}, reference);
    const double absolute = problem->io == TG_F32 ? rms_f32 : gradient ? rms_gradient : rms_16bit;
    verdict.rms_limit = limit(absolute, levels.rms);
    verdict.max_limit =
        limit(max_over_rms_limit * absolute, levels.max * rms_over_max(reference));
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
        if (!(tensor->flags & TG_OUT) || !tensor->data)
            continue;
        struct verdict verdict =
            judge(problem, tensor,
                  (struct num_const_array){truth->out[tensor->tile], ST_F64, tensor->n},
                  (struct levels){0, 0});
        double distance = verdict.ok ? verdict.error.rms_ratio / verdict.rms_limit : INFINITY;
        if (distance > furthest) {
            furthest = distance;
            worst = verdict;
        }
    }
    return worst;
}
