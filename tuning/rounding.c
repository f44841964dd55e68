/* tuning/rounding.c - what roundings do to the outputs: the truth of inputs, and of results that products take, that are off by them.
 *
 * Where large parts of a number cancel, an error of a rounding's size in the parts is large in the number, whoever
 * computes it. How large is measured, not guessed: the statements are asked again, with inputs that are off by up to one
 * rounding of their type each, and with every result of theirs off by one of the type in which a kernel has it: that of
 * operands where a product takes it, that of the tensor where it goes out, else fp32. An oracle has no such results: it is asked
 * with other inputs alone. */
#include "tuning/tuning.h"

#include "program/fail.h"

#include <math.h>
#include <stdlib.h>

/* Half a unit in the last place, as a factor: of operands, which fp32 ones are in TF32 parts that keep 21 bits; of numbers in
 * fp32, such as gates, that no product takes. */
static double rounding_of_operands(tg_dtype io)
{
    return io == TG_BF16 ? 0x1p-9 : io == TG_F16 ? 0x1p-12 : 0x1p-21;
}
static const double rounding_of_f32 = 0x1p-24;

static double rounding_of(const tg_problem *problem, const tg_host_tensor *tensor)
{
    const bool is_operand = tensor->rank > 3; /* rows of q, k, v, dh; states, which products take rounded */
    return is_operand ? rounding_of_operands(problem->io) : rounding_of_f32;
}

/* What a kernel rounds, by tile. */
struct roundings {
    double of[256];    /* half a unit in the last place, as a factor */
    double least[256]; /* ... and at least so much: what f16 has nothing finer for */
    double of_operands;
    uint64_t seed;
};

static double off_by(const struct roundings *roundings, double unit, uint64_t stream, uint64_t element, double x)
{
    return x + unit * (2 * tg_num_uniform((tg_random){roundings->seed, stream}, element) - 1);
}

static double rounded(void *user, uint32_t tile, uint64_t element, double x)
{
    const struct roundings *roundings = user;
    return off_by(roundings, fmax(roundings->of[tile] * fabs(x), roundings->least[tile]), tile, element, x);
}

/* A state is carried in fp32, and rounded where a product takes it. */
static double rounded_state(void *user, uint32_t tile, uint64_t element, double x)
{
    const struct roundings *roundings = user;
    return off_by(roundings, roundings->of_operands * fabs(x), 256 + tile, element, x);
}

static void add_rounding(struct roundings *roundings, uint32_t tile, double unit, bool is_f16)
{
    roundings->of[tile] = fmax(roundings->of[tile], unit);
    roundings->least[tile] = is_f16 ? tg_num_least(TG_NUM_F16) : roundings->least[tile];
}

static struct roundings find_roundings(const tg_problem *problem, uint64_t seed)
{
    const tg_algorithm *algorithm = problem->variant->algorithm;
    struct roundings roundings = {.of_operands = rounding_of_operands(problem->io), .seed = seed};
    for (uint32_t i = 0; i < algorithm->n_body; i++) {
        const tg_stmt *stmt = &algorithm->body[i];
        add_rounding(&roundings, TG_OPERAND_TILE(stmt->out), rounding_of_f32, false);
        if (stmt->op != TG_STMT_CONTRACT && stmt->op != TG_STMT_CARRY)
            continue;
        add_rounding(&roundings, TG_OPERAND_TILE(stmt->a), rounding_of_operands(problem->io), problem->io == TG_F16);
        add_rounding(&roundings, TG_OPERAND_TILE(stmt->b), rounding_of_operands(problem->io), problem->io == TG_F16);
    }
    for (uint32_t i = 0; i < algorithm->n_body; i++)
        if (algorithm->body[i].op == TG_STMT_CARRY) {
            roundings.of[TG_OPERAND_TILE(algorithm->body[i].out)] = rounding_of_f32;
            roundings.least[TG_OPERAND_TILE(algorithm->body[i].out)] = 0;
        }
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        if (tensor->flags & TG_OUT && tensor->dtype != TG_NUM_F32 && tensor->dtype != TG_NUM_F64)
            add_rounding(&roundings, tensor->tile, tensor->dtype == TG_NUM_BF16 ? 0x1p-9 : 0x1p-12,
                         tensor->dtype == TG_NUM_F16);
    }
    return roundings;
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
    struct roundings roundings = find_roundings(problem, seed);
    const tg_rounding rounding = {rounded, rounded_state, &roundings};
    tg_status status = !perturb(problem, &off, seed) ? no_memory(sink)
                       : chunk                       ? tg_truth_rounded(&off, chunk, &rounding, parts, &moved, sink)
                                                     : tg_truth_compute(&off, chunk, parts, &moved, sink);
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

bool tg_deviation_know(const tg_problem *problem, int64_t chunk, uint32_t samples, const tg_parts_done *parts,
                       tg_deviation *deviation, const tg_sink *sink)
{
    if (samples <= deviation->samples)
        return samples > 0;
    tg_truth_free(&deviation->square);
    const bool is_known = tg_truth_deviation(problem, chunk, NULL, samples, parts, &deviation->square, sink) == TG_OK;
    deviation->samples = is_known ? samples : 0;
    return is_known;
}

/* The limits of judge.c are over the RMS of a tensor, which says how large its parts are, if these do not cancel and its numbers are
 * not few. Of two or three numbers all may be small by chance where their parts are not: the gradient of a gate at T = 1 is one
 * sum of hundreds of rounded parts of both signs, and nearly zero in one call of ten. What shares a rounding counts as one:
 * h of a first token is v times one sum, q.k, so a row is one number. An output beyond its limit is judged again by what the
 * roundings of its parts are worth: of few numbers five deviations, which happens once in a million right ones; of many the RMS
 * is known, and three times what roundings make are allowed as they are of levels in files; but of outputs no more than twice their
 * limit, and of gradients no more than a quarter of the truth. */
enum { FEW = 64 };
static const double deviations_of_few = 5, deviations_of_many = 3;
static const double less_than_all = 0.9; /* zeros are never right */
static const double most_of_outputs = 2, most_of_gradients = 0.25;

static size_t numbers_of(const tg_host_tensor *tensor)
{
    const bool is_of_rows = tensor->rank > 3 || (tensor->rank == 3 && !tensor->has_tokens); /* n0 has rows of dqk */
    const bool has_rows = is_of_rows && tensor->extent[tensor->rank - 1] > 0;
    return has_rows ? tensor->n / (size_t)tensor->extent[tensor->rank - 1] : tensor->n;
}

uint32_t tg_roundings_wanted(const tg_verdict *verdict, const tg_host_tensor *tensor)
{
    if (verdict->ok || verdict->error.finite_mismatch)
        return 0;
    const uint32_t least = TG_ROUNDINGS / 8; /* of which each number's deviation is known to a quarter */
    const size_t n = numbers_of(tensor);
    return n * least < TG_ROUNDINGS ? TG_ROUNDINGS / (uint32_t)(n ? n : 1) : least;
}

/* At most this of the truth may be wrong. */
static double most_wrong(const tg_host_tensor *tensor, double limit)
{
    if (numbers_of(tensor) < FEW)
        return less_than_all;
    return tensor->is_gradient ? fmax(limit, most_of_gradients) : most_of_outputs * limit;
}

void tg_judge_rounded(const tg_host_tensor *tensor, tg_const_array reference, const double *square, tg_verdict *verdict)
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
    const double factor = numbers_of(tensor) < FEW ? deviations_of_few : deviations_of_many;
    const double rms_allowed = fmin(factor * sqrt(off / rms), most_wrong(tensor, verdict->rms_limit)),
                 max_allowed = fmin(deviations_of_few * most_off / largest, most_wrong(tensor, verdict->max_limit));
    verdict->rms_limit = fmax(verdict->rms_limit, rms_allowed);
    verdict->max_limit = fmax(verdict->max_limit, max_allowed);
    verdict->ok = verdict->error.rms_ratio <= verdict->rms_limit && verdict->error.max_ratio <= verdict->max_limit;
}
