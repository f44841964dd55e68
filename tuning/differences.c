/* tuning/differences.c - a declared gradient against differences of the declared forward.
 *
 * An oracle is no help against a mistake that is made twice, in the statements of the gradients and in the adjoint. So
 * both algorithms are interpreted in fp64, on a small problem of their own: with L the sum of the outputs times random
 * numbers, which the backward gets as the gradients that arrive, and u a random direction of length 1 in one input,
 *
 *     (L(x + e u) - L(x - e u)) / 2e   must be   <dx, u>
 *
 * The left side is off by e^2 / 6 times the third derivative, which is of the size of the first one for inputs of size
 * 1, and by the rounding of L over e. At e = 2^-17 the first is about 1e-11 of the gradient; the second, 2^-52 of the
 * sum of all |terms| of L over e, is some 1e-8 and is allowed for as it is found, many times. What remains is that
 * statements have log2(e) and ln(2) as floats, 1e-8 beside the mark: `tolerance` is far above it and far below what a
 * wrong factor or a forgotten term makes. */
#include "tuning/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpreter/interpreter.h"
#include "program/fail.h"

static const double step = 0x1p-17, tolerance = 1e-5, roundings = 256 * 0x1p-52;
/* The scalars are the declared ones, whatever the call has: with exact = 0, or with a max state and an eps that is not 0,
 * gradients are by convention others. Groups of heads, several sequences, several chunks of which the last is not full. */
static const tg_shape small = {.batch = 2, .heads = 4, .tokens = 11, .dqk = 3, .dhv = 2, .group = 2};
enum { CHUNK = 4, N_DIRECTIONS = 4 };

/* One of the two algorithms and its tensors in fp64, by tile. */
struct side {
    tg_problem problem;
    double *numbers[256];
};

struct differences {
    uint64_t seed;
    tg_slope_fn *visit;
    void *user;
    const tg_sink *sink;
    struct side forward, backward;
    const double *weight[256]; /* of the forward's outputs; NULL: nothing arrives for it */
};

static tg_host_tensor *named(tg_problem *problem, const char *prefix, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return tg_problem_tensor(problem, full);
}

static tg_status no_memory(const tg_sink *sink)
{
    return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "no host memory for the differences");
}

static tg_status take_numbers(struct side *side, const tg_host_tensor *tensor, const tg_sink *sink)
{
    double *numbers = side->numbers[tensor->tile] = calloc(tensor->n + 1, sizeof *numbers);
    if (!numbers)
        return no_memory(sink);
    if (tensor->data)
        tg_num_convert((tg_array){numbers, TG_NUM_F64, tensor->n},
                       (tg_const_array){tensor->data, tensor->dtype, tensor->n});
    return TG_OK;
}

static tg_status side_open(const struct differences *d, const tg_variant *variant, const tg_variant *forward,
                           struct side *side)
{
    tg_status status = tg_problem_random(variant, forward, &small, TG_F32, d->seed, NULL, &side->problem, d->sink);
    for (uint32_t i = 0; status == TG_OK && i < side->problem.n_tensors; i++)
        status = take_numbers(side, &side->problem.tensors[i], d->sink);
    return status;
}

static void side_close(struct side *side)
{
    for (int tile = 0; tile < 256; tile++)
        free(side->numbers[tile]);
    tg_problem_free(&side->problem);
}

static tg_status interpret(const struct differences *d, struct side *side, const tg_algorithm *algorithm)
{
    const double *in[256] = {NULL};
    double *out[256] = {NULL};
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        in[tile] = algorithm->tensors[tile].flags & TG_IN ? side->numbers[tile] : NULL;
        out[tile] = algorithm->tensors[tile].flags & TG_OUT ? side->numbers[tile] : NULL;
    }
    const tg_oracle_call call = {.batch = small.batch,
                                 .heads = small.heads,
                                 .tokens = small.tokens,
                                 .dqk = small.dqk,
                                 .dhv = small.dhv,
                                 .group = small.group,
                                 .scalars = side->problem.scalars,
                                 .in = in,
                                 .out = out};
    const tg_interpretation what = {.algorithm = algorithm, .call = &call, .chunk = CHUNK};
    return tg_interpret(&what, d->sink);
}

/* A final state for which no gradient arrives counts as a constant: the max state, in units of which the others are. What
 * arrives for those then gives another gradient than differences do. */
static bool has_constant_state(struct differences *d)
{
    for (uint32_t i = 0; i < d->forward.problem.n_tensors; i++) {
        const tg_host_tensor *output = &d->forward.problem.tensors[i];
        if (output->flags & TG_OUT && !output->has_tokens && !named(&d->backward.problem, "d", output->name))
            return true;
    }
    return false;
}

/* The forward's outputs, as the backward takes them, and the gradients that arrive for them. */
static void hand_over(struct differences *d)
{
    const bool without_states = has_constant_state(d);
    for (uint32_t i = 0; i < d->forward.problem.n_tensors; i++) {
        const tg_host_tensor *output = &d->forward.problem.tensors[i];
        const tg_host_tensor *fed = named(&d->backward.problem, "", output->name);
        const tg_host_tensor *arriving = named(&d->backward.problem, "d", output->name);
        if (!(output->flags & TG_OUT))
            continue;
        if (fed)
            memcpy(d->backward.numbers[fed->tile], d->forward.numbers[output->tile], output->n * sizeof(double));
        if (arriving && without_states && !output->has_tokens)
            memset(d->backward.numbers[arriving->tile], 0, output->n * sizeof(double));
        if (arriving && arriving->flags & TG_IN)
            d->weight[output->tile] = d->backward.numbers[arriving->tile];
    }
}

/* L, and what the magnitudes of its terms add up to. */
static double weighted(const struct differences *d, double *magnitude)
{
    double sum = 0;
    *magnitude = 0;
    for (uint32_t i = 0; i < d->forward.problem.n_tensors; i++) {
        const tg_host_tensor *output = &d->forward.problem.tensors[i];
        for (size_t e = 0; d->weight[output->tile] && e < output->n; e++) {
            const double term = d->weight[output->tile][e] * d->forward.numbers[output->tile][e];
            sum += term;
            *magnitude += fabs(term);
        }
    }
    return sum;
}

/* ---- one input ---- */

static void move(double *x, const double *u, size_t n, double by)
{
    for (size_t e = 0; e < n; e++)
        x[e] += by * u[e];
}

static tg_status difference(struct differences *d, const tg_host_tensor *input, const double *u, double by,
                            tg_slope *slope)
{
    const tg_algorithm *algorithm = d->forward.problem.variant->algorithm;
    double *x = d->forward.numbers[input->tile], magnitude;
    move(x, u, input->n, by);
    tg_status status = interpret(d, &d->forward, algorithm);
    const double above = weighted(d, &magnitude);
    move(x, u, input->n, -2 * by);
    if (status == TG_OK)
        status = interpret(d, &d->forward, algorithm);
    const double below = weighted(d, &magnitude);
    move(x, u, input->n, by);
    slope->found = (above - below) / (2 * by);
    slope->limit += roundings * magnitude / by;
    slope->ok = fabs(slope->found - slope->declared) <= slope->limit;
    return status;
}

/* Each element by itself where they are few. */
static void direct(const tg_host_tensor *input, size_t number, uint64_t seed, double *u)
{
    const tg_random random = {seed + number, tg_num_stream(input->name)};
    double sum = 0;
    for (size_t e = 0; e < input->n; e++) {
        u[e] = input->n <= N_DIRECTIONS ? e == number : tg_num_normal(random, e);
        sum += u[e] * u[e];
    }
    for (size_t e = 0; e < input->n; e++)
        u[e] /= sqrt(sum);
}

static tg_slope expect(const tg_host_tensor *input, const double *gradient, const double *u)
{
    tg_slope slope = {.name = input->name};
    double sum = 0;
    for (size_t e = 0; e < input->n; e++) {
        slope.declared += gradient[e] * u[e];
        sum += gradient[e] * gradient[e];
    }
    slope.limit = tolerance * sqrt(sum / (double)input->n); /* which is what `declared` usually is */
    return slope;
}

static tg_status try_direction(struct differences *d, const tg_host_tensor *input, const double *gradient,
                               const double *u, tg_slope *slope)
{
    *slope = expect(input, gradient, u);
    const tg_status status = difference(d, input, u, step, slope);
    if (status != TG_OK || slope->ok)
        return status;
    /* |x| or a maximum may have its corner between the two points: seldom, and more seldom the closer they are. */
    *slope = expect(input, gradient, u);
    return difference(d, input, u, step / 64, slope);
}

/* The worst of its directions. */
static tg_status try_input(struct differences *d, const tg_host_tensor *input, const double *gradient, tg_slope *worst)
{
    tg_status status = TG_OK;
    double *u = malloc((input->n + 1) * sizeof *u);
    if (!u)
        return no_memory(d->sink);
    *worst = (tg_slope){.name = input->name, .limit = tolerance, .ok = true};
    for (size_t number = 0; number < N_DIRECTIONS && number < input->n && status == TG_OK && worst->ok; number++) {
        tg_slope slope;
        direct(input, number, d->seed, u);
        status = try_direction(d, input, gradient, u, &slope);
        if (!slope.ok ||
            fabs(slope.found - slope.declared) * worst->limit > fabs(worst->found - worst->declared) * slope.limit)
            *worst = slope;
    }
    free(u);
    return status;
}

/* ---- all of them ---- */

/* TG_E_NUMERICS: some gradient is wrong. */
static tg_status try_algorithm(struct differences *d, const tg_algorithm *algorithm)
{
    bool ok = true;
    tg_status status = interpret(d, &d->backward, algorithm);
    for (uint32_t i = 0; i < d->forward.problem.n_tensors && status == TG_OK; i++) {
        const tg_host_tensor *input = &d->forward.problem.tensors[i];
        const tg_host_tensor *gradient = named(&d->backward.problem, "d", input->name);
        tg_slope slope;
        if (!(input->flags & TG_IN) || !gradient || !(gradient->flags & TG_OUT))
            continue;
        status = try_input(d, input, d->backward.numbers[gradient->tile], &slope);
        if (status == TG_OK)
            d->visit(d->user, &slope);
        ok = ok && slope.ok;
    }
    return status == TG_OK && !ok ? TG_E_NUMERICS : status;
}

/* The variant's own, and those of its schedules that compute the same by other statements. */
static tg_status try_algorithms(struct differences *d, const tg_variant *backward)
{
    const tg_algorithm *last = backward->algorithm;
    tg_status status = try_algorithm(d, last);
    tg_schedule s;
    for (uint32_t i = 0; status == TG_OK && tg_variant_schedule(backward, i, &s); i++) {
        if (s.algorithm == last || s.algorithm == backward->algorithm)
            continue;
        last = s.algorithm;
        status = try_algorithm(d, last);
    }
    return status;
}

tg_status tg_gradients_check(const tg_variant *forward, const tg_variant *backward, uint64_t seed, tg_slope_fn *visit,
                             void *user, const tg_sink *sink)
{
    struct differences d = {.seed = seed, .visit = visit, .user = user, .sink = sink};
    tg_status status = side_open(&d, forward, NULL, &d.forward);
    if (status == TG_OK)
        status = side_open(&d, backward, forward, &d.backward);
    if (status == TG_OK)
        status = interpret(&d, &d.forward, forward->algorithm);
    if (status == TG_OK) {
        hand_over(&d);
        status = try_algorithms(&d, backward);
    }
    side_close(&d.forward);
    side_close(&d.backward);
    return status;
}
