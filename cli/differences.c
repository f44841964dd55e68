/* cli/differences.c - `tegula check --grad`: a declared gradient against differences of the declared forward.
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
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    struct context *context;
    struct side forward, backward;
    const double *weight[256]; /* of the forward's outputs; NULL: nothing arrives for it */
};

static tg_host_tensor *named(tg_problem *problem, const char *prefix, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return tg_problem_tensor(problem, full);
}

static bool side_open(struct differences *d, const tg_variant *variant, struct side *side)
{
    const uint64_t seed = (uint64_t)d->context->options.seed;
    bool ok = problem_random(d->context, variant, &small, TG_F32, seed, &side->problem);
    for (uint32_t i = 1; ok && i < side->problem.n_scalars; i++)
        side->problem.scalars[i] = (double)side->problem.declared[i].value;
    for (uint32_t i = 0; ok && i < side->problem.n_tensors; i++) {
        const tg_host_tensor *tensor = &side->problem.tensors[i];
        double *numbers = side->numbers[tensor->tile] = calloc(tensor->n + 1, sizeof *numbers);
        if (numbers && tensor->data)
            tg_num_convert((tg_array){numbers, TG_NUM_F64, tensor->n},
                           (tg_const_array){tensor->data, tensor->dtype, tensor->n});
        ok = numbers != NULL;
    }
    return ok;
}

static void side_close(struct side *side)
{
    for (int tile = 0; tile < 256; tile++)
        free(side->numbers[tile]);
    tg_problem_free(&side->problem);
}

static bool interpret(struct differences *d, struct side *side, const tg_algorithm *algorithm)
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
    return tg_interpret(&what, &d->context->sink) == TG_OK;
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

struct slope {
    double found, expected, limit;
};

static void move(double *x, const double *u, size_t n, double by)
{
    for (size_t e = 0; e < n; e++)
        x[e] += by * u[e];
}

static bool difference(struct differences *d, const tg_host_tensor *input, const double *u, double by,
                       struct slope *slope)
{
    const tg_algorithm *algorithm = d->forward.problem.variant->algorithm;
    double *x = d->forward.numbers[input->tile], magnitude;
    move(x, u, input->n, by);
    bool ok = interpret(d, &d->forward, algorithm);
    const double above = weighted(d, &magnitude);
    move(x, u, input->n, -2 * by);
    ok = ok && interpret(d, &d->forward, algorithm);
    const double below = weighted(d, &magnitude);
    move(x, u, input->n, by);
    slope->found = (above - below) / (2 * by);
    slope->limit += roundings * magnitude / by;
    return ok;
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

static struct slope expect(const tg_host_tensor *input, const double *gradient, const double *u)
{
    struct slope slope = {0, 0, 0};
    double sum = 0;
    for (size_t e = 0; e < input->n; e++) {
        slope.expected += gradient[e] * u[e];
        sum += gradient[e] * gradient[e];
    }
    slope.limit = tolerance * sqrt(sum / (double)input->n); /* which is what `expected` usually is */
    return slope;
}

static bool is_right(const struct slope *slope)
{
    return fabs(slope->found - slope->expected) <= slope->limit;
}

static int try_direction(struct differences *d, const tg_host_tensor *input, const double *gradient, const double *u,
                         struct slope *slope)
{
    *slope = expect(input, gradient, u);
    if (!difference(d, input, u, step, slope))
        return CODE_USAGE;
    if (is_right(slope))
        return CODE_OK;
    /* |x| or a maximum may have its corner between the two points: seldom, and more seldom the closer they are. */
    *slope = expect(input, gradient, u);
    if (!difference(d, input, u, step / 64, slope))
        return CODE_USAGE;
    return is_right(slope) ? CODE_OK : CODE_FAILED;
}

/* The worst of its directions. */
static int try_input(struct differences *d, const tg_host_tensor *input, const double *gradient, struct slope *worst)
{
    double *u = malloc((input->n + 1) * sizeof *u);
    int code = u ? CODE_OK : CODE_USAGE;
    *worst = (struct slope){0, 0, tolerance};
    for (size_t number = 0; number < N_DIRECTIONS && number < input->n && code == CODE_OK; number++) {
        struct slope slope;
        direct(input, number, (uint64_t)d->context->options.seed, u);
        code = try_direction(d, input, gradient, u, &slope);
        if (code != CODE_OK ||
            fabs(slope.found - slope.expected) * worst->limit > fabs(worst->found - worst->expected) * slope.limit)
            *worst = slope;
    }
    free(u);
    return code;
}

/* ---- all of them ---- */

static void report(struct check *check, const tg_host_tensor *gradient, const struct slope *slope, int code)
{
    const double error = fabs(slope->found - slope->expected);
    if (check->differences)
        json_array_append_new(check->differences,
                              json_pack("{s:s+, s:o, s:o, s:b}", "name", "grad.", gradient->name + 1, "error",
                                        json_number(error), "limit", json_number(slope->limit), "ok", code == CODE_OK));
    if (check->differences || code == CODE_OK)
        return;
    progress_hide(check->context);
    printf("  grad.%-3s the statements say %.6g along a random direction, differences of the forward's %.6g  FAILED\n",
           gradient->name + 1, slope->expected, slope->found);
}

static int try_algorithm(struct check *check, struct differences *d, const tg_algorithm *algorithm)
{
    int worst = interpret(d, &d->backward, algorithm) ? CODE_OK : CODE_USAGE;
    for (uint32_t i = 0; i < d->forward.problem.n_tensors && worst != CODE_USAGE; i++) {
        const tg_host_tensor *input = &d->forward.problem.tensors[i];
        const tg_host_tensor *gradient = named(&d->backward.problem, "d", input->name);
        struct slope slope;
        if (!(input->flags & TG_IN) || !gradient || !(gradient->flags & TG_OUT))
            continue;
        const int code = try_input(d, input, d->backward.numbers[gradient->tile], &slope);
        if (code != CODE_USAGE)
            report(check, gradient, &slope, code);
        worst = code > worst ? code : worst;
    }
    return worst;
}

/* The variant's own, and those of its schedules that compute the same by other statements. */
static int try_algorithms(struct check *check, struct differences *d, const tg_variant *backward)
{
    int worst = try_algorithm(check, d, backward->algorithm);
    const tg_algorithm *last = backward->algorithm;
    tg_schedule s;
    for (uint32_t i = 0; worst == CODE_OK && tg_variant_schedule(backward, i, &s); i++) {
        if (s.algorithm == last || s.algorithm == backward->algorithm)
            continue;
        last = s.algorithm;
        worst = try_algorithm(check, d, last);
    }
    return worst;
}

int check_differences(struct check *check, const tg_variant *forward, const tg_variant *backward)
{
    struct differences d = {.context = check->context};
    int code = CODE_USAGE;
    bool ok = side_open(&d, forward, &d.forward) && side_open(&d, backward, &d.backward);
    if (ok && interpret(&d, &d.forward, forward->algorithm)) {
        hand_over(&d);
        code = try_algorithms(check, &d, backward);
        if (code == CODE_OK && !check->differences) {
            progress_hide(check->context);
            printf("  the statements of %s agree with differences of the forward's\n", backward->name);
        }
    }
    side_close(&d.forward);
    side_close(&d.backward);
    return code;
}
