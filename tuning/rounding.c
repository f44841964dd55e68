/* tuning/rounding.c - what one rounding of every input does to the outputs: the truth of inputs that are off by it.
 *
 * Where large parts of a number cancel, an error of a rounding's size in the parts is large in the number, whoever
 * computes it. How large is measured, not guessed: the truth is asked for again, with inputs that are off by up to one
 * rounding of their type each. */
#include "tuning/tuning.h"

#include "program/fail.h"

#include <math.h>
#include <stdlib.h>

/* Half a unit in the last place, as a factor: of the type, or of a product of fp32 split in TF32
 * parts that keeps 21 bits. fp32 numbers that no product takes (gates) keep all 24. */
static double rounding_of(const tg_problem *problem, const tg_host_tensor *tensor)
{
    const bool is_operand = tensor->rank > 3; /* rows of q, k, v, dh; states, which products take rounded */
    if (!is_operand)
        return 0x1p-24;
    return problem->io == TG_BF16 ? 0x1p-9 : problem->io == TG_F16 ? 0x1p-12 : 0x1p-21;
}

/* The inputs, each off by up to a rounding. fp64 arrays, so that what is off by less stays so. */
static bool perturb(const tg_problem *problem, tg_problem *off, uint64_t seed)
{
    *off = *problem;
    for (uint32_t i = 0; i < off->n_tensors; i++)
        off->tensors[i].data = NULL;
    for (uint32_t i = 0; i < off->n_tensors; i++) {
        const tg_host_tensor *from = &problem->tensors[i];
        tg_host_tensor *to = &off->tensors[i];
        if (!(from->flags & TG_IN) || !from->data || from->is_kept)
            continue;
        const tg_random random = {seed, tg_num_stream(from->name)};
        const double rounding = rounding_of(problem, from);
        to->dtype = TG_NUM_F64;
        to->data = malloc((from->n + 1) * sizeof(double));
        if (!to->data)
            return false;
        for (size_t e = 0; e < from->n; e++)
            ((double *)to->data)[e] =
                tg_num_load(from->data, from->dtype, e) * (1 + rounding * (2 * tg_num_uniform(random, e) - 1));
    }
    return true;
}

static void free_inputs(tg_problem *off)
{
    for (uint32_t i = 0; i < off->n_tensors; i++)
        free(off->tensors[i].data);
}

static tg_status no_memory(const tg_sink *sink)
{
    return tg_fail(sink, TG_E_MEMORY, "TG0799", "use a smaller shape", "no host memory for the fp64 reference");
}

static bool add_deviation(const tg_problem *problem, const tg_truth *truth, const tg_truth *moved, double weight,
                          tg_truth *square)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        const double *x = moved->out[tensor->tile], *y = truth->out[tensor->tile];
        if (!x || !y)
            continue;
        if (!square->out[tensor->tile])
            square->out[tensor->tile] = calloc(tensor->n + 1, sizeof(double));
        double *sum = square->out[tensor->tile];
        if (!sum)
            return false;
        for (size_t e = 0; e < tensor->n; e++)
            if (isfinite(x[e]) && isfinite(y[e]))
                sum[e] += (x[e] - y[e]) * (x[e] - y[e]) * weight;
    }
    return true;
}

static tg_status add_sample(const tg_problem *problem, int64_t chunk, const tg_truth *truth, uint64_t seed,
                            double weight, const tg_parts_done *parts, tg_truth *square, const tg_sink *sink)
{
    tg_problem off;
    tg_truth moved;
    tg_status status =
        perturb(problem, &off, seed) ? tg_truth_compute(&off, chunk, parts, &moved, sink) : no_memory(sink);
    if (status == TG_OK) {
        status = add_deviation(problem, truth, &moved, weight, square) ? TG_OK : no_memory(sink);
        tg_truth_free(&moved);
    }
    free_inputs(&off);
    return status;
}

tg_status tg_truth_deviation(const tg_problem *problem, int64_t chunk, const tg_truth *truth, uint32_t samples,
                             const tg_parts_done *parts, tg_truth *square, const tg_sink *sink)
{
    tg_truth own = {{NULL}};
    *square = own;
    tg_status status = truth ? TG_OK : tg_truth_compute(problem, chunk, parts, &own, sink);
    for (uint64_t seed = 1; status == TG_OK && seed <= samples; seed++)
        status = add_sample(problem, chunk, truth ? truth : &own, seed, 1.0 / samples, parts, square, sink);
    tg_truth_free(&own);
    if (status != TG_OK)
        tg_truth_free(square);
    return status;
}

/* The limits are over the RMS of a tensor, which says how large its numbers are, and how large their parts, only if there
 * are enough of them. Of two or three numbers, all may be small by chance where their parts are not: the gradient
 * of a gate at T = 1 is one sum of hundreds of rounded parts of both signs, and nearly zero in one call of ten. The numbers
 * of a row count as one: h of a first token is v times one sum, q.k, whose rounding all of them share. Such
 * tensors may be off by what the roundings of their parts are worth. A kernel rounds about seven factors on the way,
 * where four inputs were rounded here, so an error of 1.3 deviations is expected, and five times that happens once in
 * a million right numbers. */
enum { FEW = 64 };
static const double deviations = 5 * 1.3;
static const double less_than_all = 0.9; /* zeros are never right */

bool tg_verdict_is_of_few(const tg_verdict *verdict, const tg_host_tensor *tensor)
{
    const bool is_of_rows = tensor->rank > 3 || (tensor->rank == 3 && !tensor->has_tokens); /* n0 has rows of dqk */
    const bool has_rows = is_of_rows && tensor->extent[tensor->rank - 1] > 0;
    const size_t n = has_rows ? tensor->n / (size_t)tensor->extent[tensor->rank - 1] : tensor->n;
    return !verdict->ok && !verdict->error.finite_mismatch && n < FEW;
}

void tg_judge_few(tg_const_array reference, const double *square, tg_verdict *verdict)
{
    double rms = 0, largest = 0, off = 0, most_off = 0;
    for (size_t i = 0; i < reference.n; i++) {
        const double truth = tg_num_load(reference.data, reference.type, i);
        if (!isfinite(truth))
            continue;
        rms += truth * truth;
        largest = fmax(largest, fabs(truth));
        off += square[i];
        most_off = fmax(most_off, sqrt(square[i]));
    }
    if (!(rms > 0))
        return;
    verdict->rms_limit = fmax(verdict->rms_limit, fmin(deviations * sqrt(off / rms), less_than_all));
    verdict->max_limit = fmax(verdict->max_limit, fmin(deviations * most_off / largest, less_than_all));
    verdict->ok = verdict->error.rms_ratio <= verdict->rms_limit && verdict->error.max_ratio <= verdict->max_limit;
}
