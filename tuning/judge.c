/* tuning/judge.c - how far from the fp64 truth a kernel's outputs may be (CONTRIBUTING.md, How it is checked). */
#include "tuning/tuning.h"

#include <math.h>

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
/* A decay of channels is multiplied into keys and queries, which are then rounded to the type of operands: nine factors
 * are rounded where there were six, on the way of the delta rule to h (S, P, T, R, N, h; and K e^b, K e^(g - b), Q e^b).
 * The statements in fp64 with each of these rounded say 1.15 to 1.20 (bench/NOTES.md, 2026-11-26). Of outputs in 16 bits;
 * of gradients, and in fp32, nobody has shown it. */
static const double channel_slack = 1.2247448713915890;
/* One wrong element in a million leaves the RMS alone; the largest error must not. The golden
 * emulation's largest errors are 0.02 .. 0.04 RMS(truth), about 0.01 of the largest value. */
static const double max_over_rms_limit = 10;
/* A right kernel sums in another order than the emulation that the levels come from. */
static const double levels_slack = 3;
/* The emulation keeps its results in fp32. A kernel rounds them to the type of the output, by at
 * most half of the last place, uniformly; fp32 sums in another order are off by some last places.
 */
static double rounding_of(tg_num_type dtype)
{
    return dtype == TG_NUM_BF16 ? 0x1p-8 : dtype == TG_NUM_F16 ? 0x1p-11 : 1e-6;
}

/* RMS and largest absolute value of what is finite. */
struct size {
    double rms, max;
};

static struct size size_of(tg_const_array x)
{
    double sum = 0, largest = 0;
    size_t n = 0;
    for (size_t i = 0; i < x.n; i++) {
        double value = tg_num_load(x.data, x.type, i);
        if (!isfinite(value))
            continue;
        sum += value * value;
        largest = fmax(largest, fabs(value));
        n++;
    }
    return (struct size){n ? sqrt(sum / (double)n) : 0, largest};
}

/* Where all is zero, nothing is known of it. */
static double over(double x, double size)
{
    return size > 0 ? x / size : 0;
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

static bool solves(const tg_algorithm *algorithm)
{
    for (uint32_t i = 0; i < algorithm->n_body; i++)
        if (algorithm->body[i].op == TG_STMT_SOLVE)
            return true;
    return false;
}

static bool decays_by_channel(const tg_algorithm *algorithm)
{
    for (uint32_t i = 0; i < algorithm->n_body; i++) {
        const tg_stmt *stmt = &algorithm->body[i];
        const uint8_t *axes = algorithm->tensors[TG_OPERAND_TILE(stmt->decay)].axes;
        if (stmt->op == TG_STMT_CONTRACT && stmt->decay && axes[1] == TG_DQK)
            return true;
    }
    return false;
}

double tg_chain_slack(const tg_problem *problem)
{
    return solves(problem->variant->algorithm) ? solve_slack : 1;
}

/* Before tg_chain_slack. */
static double rms_of(const tg_problem *problem, const tg_host_tensor *tensor)
{
    const tg_algorithm *algorithm = problem->variant->algorithm;
    if (problem->io == TG_F32)
        return rms_f32;
    if (tensor->is_gradient)
        return rms_gradient;
    return rms_16bit * (solves(algorithm) && decays_by_channel(algorithm) ? channel_slack : 1);
}

tg_verdict tg_judge_limits(const tg_problem *problem, const tg_host_tensor *tensor, tg_const_array reference,
                           tg_levels levels)
{
    tg_verdict verdict = {.name = tensor->name};
    const bool is_parameter = tensor->is_gradient && tensor->flags & TG_NO_BATCH;
    const double absolute =
        rms_of(problem, tensor) * (is_parameter && !(levels.rms > 0) ? parameter_slack : 1) * tg_chain_slack(problem);
    const double rounding = rounding_of(tensor->dtype);
    /* A state of 16 bits beside inputs of fp32 is rounded once more, when it is stored. */
    const bool is_narrow = problem->io == TG_F32 && tensor->dtype != TG_NUM_F32;
    const double most = is_narrow ? hypot(absolute, rounding / sqrt(3)) : absolute;
    const struct size size = size_of(reference);
    verdict.rms_limit = hypot(limit(most, levels.rms, rounding / sqrt(3)), over(tg_num_least(tensor->dtype), size.rms));
    verdict.max_limit =
        limit(max_over_rms_limit * most, levels.max * (size.max > 0 ? size.rms / size.max : 1), rounding) +
        over(tg_num_least(tensor->dtype), size.max);
    return verdict;
}

tg_verdict tg_judge(const tg_problem *problem, const tg_host_tensor *tensor, tg_const_array reference, tg_levels levels)
{
    tg_verdict verdict = tg_judge_limits(problem, tensor, reference, levels);
    verdict.error = tg_num_compare((tg_const_array){tensor->data, tensor->dtype, tensor->n}, reference);
    verdict.ok = !verdict.error.finite_mismatch && verdict.error.rms_ratio <= verdict.rms_limit &&
                 verdict.error.max_ratio <= verdict.max_limit;
    return verdict;
}

tg_verdict tg_judge_all(const tg_problem *problem, const tg_truth *truth, int64_t chunk, const tg_sink *sink)
{
    tg_deviation deviation = {.samples = 0};
    tg_verdict worst = {.name = "nothing"};
    double furthest = -1;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_OUT) || !tensor->data || tensor->is_kept)
            continue;
        const tg_const_array reference = {truth->out[tensor->tile], TG_NUM_F64, tensor->n};
        tg_verdict verdict = tg_judge(problem, tensor, reference, (tg_levels){0, 0});
        if (tg_deviation_know(problem, chunk, tg_roundings_wanted(&verdict, tensor), NULL, &deviation, sink))
            tg_judge_rounded(tensor, reference, deviation.square.out[tensor->tile], &verdict);
        const double distance = verdict.ok ? verdict.error.rms_ratio / verdict.rms_limit : INFINITY;
        if (distance > furthest) {
            furthest = distance;
            worst = verdict;
        }
    }
    tg_truth_free(&deviation.square);
    return worst;
}
