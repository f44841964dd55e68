/* tuning/truth.c - the fp64 truth, of an oracle or of the algorithm's own statements.
 * The oracle sees inputs already rounded to their type, so its distance from a kernel's output is
 * the kernel's own error. */
#include "tuning/tuning.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpreter/interpreter.h"
#include "variants/variants.h"

/* Of interpretations: what is compared does not depend on it. */
static const int64_t usual_chunk = 64;

/* ---- the oracle, or the interpreter, a group of heads at a time on all cores ----
 * A slice is a group of heads of one sequence; of all sequences where they are packed, or where the
 * oracle sums over them (gradients of parameters), so that the sum does not depend on who computes
 * it. In a slice heads count from 0: its tensors are copies. */

struct work {
    const tg_problem *problem;
    tg_oracle_fn *oracle; /* NULL: the algorithm is interpreted, in chunks of so many tokens */
    int64_t chunk;
    const tg_rounding *rounding; /* NULL: nothing is rounded */
    tg_truth *truth;
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

static struct part part_of(const struct work *work, const tg_host_tensor *tensor, size_t slice)
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

static void gather(const struct part *part, const tg_host_tensor *tensor, double *to)
{
    const size_t n = part->heads * part->row, width = tg_num_bytes(tensor->dtype);
    for (size_t b = 0; b < part->batches; b++) {
        const char *from = (const char *)tensor->data + offset_of(part, b) * width;
        tg_num_convert((tg_array){to + b * n, TG_NUM_F64, n}, (tg_const_array){from, tensor->dtype, n});
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
    const tg_problem *problem = work->problem;
    const tg_shape *shape = &problem->shape;
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
    const tg_rounding nothing = {NULL, NULL, NULL}, *rounding = work->rounding ? work->rounding : &nothing;
    const tg_interpretation what = {.algorithm = problem->variant->algorithm,
                                    .call = &call,
                                    .chunk = work->chunk,
                                    .round = rounding->of,
                                    .operand = rounding->operand,
                                    .user = rounding->user};
    const tg_status status = tg_interpret(&what, work->sink);
    if (status != TG_OK)
        atomic_store(&work->status, status);
}

static void run_slice(struct work *work, size_t slice)
{
    const tg_problem *problem = work->problem;
    const double *in[256] = {NULL};
    double *out[256] = {NULL}, *numbers[TG_MAX_TENSORS] = {NULL};
    bool ok = true;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
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
        const tg_host_tensor *tensor = &problem->tensors[i];
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

static void run_all_slices(struct work *work, const tg_parts_done *parts)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long n = 0;
    while (n < cores && n < MOST && n < work->n_slices && pthread_create(&threads[n], NULL, worker, work) == 0)
        n++;
    if (n == 0)
        worker(work);
    for (long long done; n > 0 && (done = atomic_load(&work->n_done)) < work->n_slices;) {
        if (parts)
            parts->tell(parts->user, done, work->n_slices);
        usleep(1000);
    }
    for (long i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void plan_slices(struct work *work)
{
    const tg_shape *shape = &work->problem->shape;
    work->group = shape->group > 1 ? (size_t)shape->group : 1;
    work->groups = (size_t)shape->heads / work->group;
    work->is_whole_batch = shape->packed;
    for (uint32_t i = 0; i < work->problem->n_tensors; i++) {
        const uint8_t flags = work->problem->tensors[i].flags;
        work->is_whole_batch |= flags & TG_OUT && flags & TG_NO_BATCH;
    }
    work->n_slices = (long long)work->groups * (work->is_whole_batch ? 1 : shape->batch);
}

static bool allocate_truth(const tg_problem *problem, tg_truth *truth)
{
    bool ok = true;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_OUT) || tensor->is_kept)
            continue;
        truth->out[tensor->tile] = allocate_f64(tensor->n);
        ok &= truth->out[tensor->tile] != NULL;
    }
    return ok;
}

static tg_status compute(struct work *work, const tg_parts_done *parts, const tg_sink *sink)
{
    *work->truth = (tg_truth){{NULL}};
    if (!allocate_truth(work->problem, work->truth))
        work->status = TG_E_MEMORY;
    plan_slices(work);
    if (work->status == TG_OK)
        run_all_slices(work, parts);
    if (work->status == TG_OK)
        return TG_OK;
    work->sink = sink;
    if (work->status == TG_E_MEMORY)
        tg_report(sink, TG_ERROR, "TG0799", NULL, 0, "use a smaller shape", "no host memory for the fp64 reference");
    else
        run_slice(work, 0);
    tg_truth_free(work->truth);
    return (tg_status)work->status;
}

tg_oracle_fn *tg_variant_oracle(const tg_variant *variant)
{
    if (variant->oracle)
        return variant->oracle;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++)
        if ((*v)->algorithm == variant->algorithm)
            return (*v)->oracle;
    return NULL;
}

tg_status tg_truth_compute(const tg_problem *problem, int64_t chunk, const tg_parts_done *parts, tg_truth *truth,
                           const tg_sink *sink)
{
    struct work work = {.problem = problem,
                        .truth = truth,
                        .oracle = chunk ? NULL : tg_variant_oracle(problem->variant),
                        .chunk = chunk ? chunk : usual_chunk};
    return compute(&work, parts, sink);
}

tg_status tg_truth_rounded(const tg_problem *problem, int64_t chunk, const tg_rounding *rounding,
                           const tg_parts_done *parts, tg_truth *truth, const tg_sink *sink)
{
    struct work work = {.problem = problem, .truth = truth, .rounding = rounding, .chunk = chunk ? chunk : usual_chunk};
    return compute(&work, parts, sink);
}

void tg_truth_free(tg_truth *truth)
{
    for (int tile = 0; tile < 256; tile++)
        free(truth->out[tile]);
    *truth = (tg_truth){{NULL}};
}
