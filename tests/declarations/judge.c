/* tests/declarations/judge.c - a declaration from the checker to the comparison of its kernels' outputs, computed on the
 * emulator, with the interpretation of its statements in fp64.
 *
 * How far off a kernel may be: the statements are interpreted some times more with every tile off by a random part of the
 * rounding that a kernel must or may do to it - operands of products to the inputs' type, all others to fp32 - and what
 * that does to an output, several times over, is allowed. So sums may be of any length, and may cancel.
 *
 * What no part of a rounding does is to make a number zero, as fp32 does with a small one. Where that matters, as in a step
 * of it, a kernel may compute what one more interpretation says, in which numbers are zero that fp32 has not. Those that it
 * has and some instructions take for zero are left open: an element that hangs on them may be anything. Those are found from
 * power to power of two, for what two such numbers do to an element may cancel, and a kernel has one of them. */
#include "declare.h"
#include "dsl/slice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_NOISY = 3 };
static const double slack = 8; /* of the largest of so few samples, on sums in another order */
/* fp32 has nothing below 2^-149. Powers of two that kernels compute are zero below 2^-126 (ex2.approx.ftz), while sums and
 * products keep what they have. Twice and half of that, since exponents are rounded, too. */
static const double least_of_fp32 = 0x1p-150, least_of_all = 0x1p-125;

/* ---- messages ---- */

static void note(void *user, const tg_diag *diag)
{
    struct result *result = user;
    if (diag->severity != TG_ERROR || result->text[0])
        return;
    snprintf(result->code, sizeof result->code, "%s", diag->code ? diag->code : "none");
    snprintf(result->text, sizeof result->text, "%s", diag->message);
}

static void say(struct result *result, enum outcome outcome, const char *what)
{
    result->outcome = outcome;
    if (!result->text[0])
        snprintf(result->text, sizeof result->text, "%s", what);
}

/* ---- interpretations ---- */

struct noise {
    const struct declaration *d;
    tg_random random;
    bool is_operand[256];
    bool is_decayed[256]; /* ... of a product with a decay, whose factors are rounded with it */
    double amount;        /* 0: exact */
    double largest;       /* of all numbers */
    double least;         /* those nearer to zero are zero */
};

static double operand_rounding(tg_dtype io)
{
    return io == TG_BF16 ? 0x1p-8 : io == TG_F16 ? 0x1p-11 : 0x1p-20;
}

/* Below this f16 has nothing. */
static double least(tg_dtype io)
{
    return io == TG_F16 ? 0x1p-24 : 0;
}

static double disturb(void *user, uint32_t tile, uint64_t element, double value)
{
    struct noise *noise = user;
    const bool is_rounded = noise->is_operand[tile];
    const double part = is_rounded ? operand_rounding(noise->d->io) : 0x1p-22;
    const double off = 2 * tg_num_uniform(noise->random, element) - 1;
    noise->largest = isfinite(value) ? fmax(noise->largest, fabs(value)) : INFINITY;
    return value + noise->amount * off * (part * fabs(value) + (is_rounded ? least(noise->d->io) : 0));
}

/* A type of fp32 says nothing of an input that is multiplied in 16 bits. */
static void find_operands(const struct declaration *d, struct noise *noise)
{
    for (uint32_t s = 0; s < d->algorithm.n_body; s++) {
        const tg_stmt *stmt = &d->algorithm.body[s];
        if (stmt->op != TG_STMT_CONTRACT && stmt->op != TG_STMT_CARRY)
            continue;
        noise->is_operand[TG_OPERAND_TILE(stmt->a)] |= stmt->b != 0;
        noise->is_operand[TG_OPERAND_TILE(stmt->b)] |= stmt->b != 0;
        noise->is_decayed[TG_OPERAND_TILE(stmt->a)] |= tg_stmt_decays(stmt);
        noise->is_decayed[TG_OPERAND_TILE(stmt->b)] |= tg_stmt_decays(stmt);
    }
    for (uint32_t tile = 0; tile < d->algorithm.n_tensors; tile++)
        noise->is_operand[tile] |= d->algorithm.tensors[tile].dtype == TG_IO;
}

struct numbers {
    double *of[256]; /* by tile */
};

static void free_numbers(struct numbers *numbers)
{
    for (int tile = 0; tile < 256; tile++)
        free(numbers->of[tile]);
}

static bool make_numbers(const tg_problem *problem, struct noise *noise, struct numbers *numbers)
{
    bool ok = true;
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        double *to = NULL;
        if ((!(tensor->flags & TG_OUT) && !tensor->data) || tensor->is_kept)
            continue;
        to = numbers->of[tensor->tile] = calloc(tensor->n + 1, sizeof *to);
        ok &= to != NULL;
        for (size_t e = 0; to && !(tensor->flags & TG_OUT) && e < tensor->n; e++) {
            to[e] = tg_num_load(tensor->data, tensor->dtype, e);
            if (tensor->dtype == TG_NUM_F32 || noise->is_decayed[tensor->tile]) /* else it is exact */
                to[e] = disturb(noise, tensor->tile, e, to[e]);
        }
    }
    return ok;
}

static tg_status interpret(const tg_problem *problem, struct noise *noise, struct numbers *numbers, const tg_sink *sink)
{
    const struct declaration *d = noise->d;
    const tg_shape *s = &problem->shape;
    const double *in[256] = {NULL};
    double *out[256] = {NULL};
    *numbers = (struct numbers){{NULL}};
    if (!make_numbers(problem, noise, numbers))
        return TG_E_MEMORY;
    for (uint32_t tile = 0; tile < d->algorithm.n_tensors; tile++)
        *(d->algorithm.tensors[tile].flags & TG_OUT ? &out[tile] : (double **)&in[tile]) = numbers->of[tile];
    const tg_oracle_call call = {.batch = s->batch,
                                 .heads = s->heads,
                                 .tokens = s->tokens,
                                 .dqk = s->dqk,
                                 .dhv = s->dhv,
                                 .group = s->group,
                                 .cuts = problem->cuts.at,
                                 .scalars = problem->scalars,
                                 .in = in,
                                 .out = out};
    bool is_whole = d->schedule.max_tokens; /* the call is one chunk */
    for (uint32_t r = 0; r < d->schedule.n_rows; r++)
        is_whole = is_whole && !tg_row_has_single_tokens(&d->schedule, &d->schedule.rows[r]);
    const tg_interpretation what = {.algorithm = &d->algorithm,
                                    .call = &call,
                                    .chunk = is_whole ? s->tokens : d->schedule.chunk,
                                    .round = disturb,
                                    .user = noise,
                                    .least = noise->least};
    return tg_interpret(&what, sink);
}

/* ---- comparison ---- */

struct distance {
    double rms, max;
};

static void add_distance(struct distance *d, double x, size_t n)
{
    d->rms += x * x / (double)n;
    d->max = fmax(d->max, fabs(x));
}

static double output_rounding(const tg_host_tensor *tensor)
{
    return tensor->dtype == TG_NUM_BF16 ? 0x1p-8 : tensor->dtype == TG_NUM_F16 ? 0x1p-11 : 0x1p-18;
}

/* What the statements say: exactly; with roundings; and, where that is of interest (else NULL), without the numbers that
 * fp32 has not, and how much of it hangs on those that may be taken for zero. */
struct truths {
    struct numbers exact, noisy[N_NOISY];
    const struct numbers *flushed, *open;
};

/* How far an element is from what it should be. */
static double off_by(const struct truths *truths, uint32_t tile, size_t e, double x, double largest)
{
    const double truth = truths->exact.of[tile][e], off = isfinite(x) ? fabs(x - truth) : INFINITY;
    if (!truths->open)
        return off;
    if (!(truths->open->of[tile][e] <= 0x1p-22 * largest))
        return 0;
    return isfinite(x) ? fmin(off, fabs(x - truths->flushed->of[tile][e])) : INFINITY;
}

static double largest_of(const double *of, size_t n)
{
    double largest = 0;
    for (size_t e = 0; e < n; e++)
        largest = fmax(largest, fabs(of[e]));
    return largest;
}

/* Is the tensor what it should be? UNJUDGED where roundings alone make it something else. */
static enum outcome compare(const tg_problem *problem, const tg_host_tensor *tensor, const struct truths *truths,
                            struct result *result)
{
    const double *truth = truths->exact.of[tensor->tile];
    const double rounding = output_rounding(tensor), largest = largest_of(truth, tensor->n);
    struct distance size = {0, 0}, found = {0, 0}, spread = {0, 0};
    for (size_t e = 0; e < tensor->n; e++) {
        const double x = tg_num_load(tensor->data, tensor->dtype, e);
        add_distance(&size, truth[e], tensor->n);
        add_distance(&found, off_by(truths, tensor->tile, e, x, largest), tensor->n);
        for (int i = 0; i < N_NOISY; i++)
            add_distance(&spread, truths->noisy[i].of[tensor->tile][e] - truth[e], tensor->n * N_NOISY);
    }
    const double rms = slack * sqrt(spread.rms) + rounding * sqrt(size.rms) + least(problem->io);
    const double max = slack * spread.max + 2 * rounding * size.max + least(problem->io);
    if (!(sqrt(spread.rms) < 0.02 * sqrt(size.rms) + 0x1p-20))
        return UNJUDGED;
    if (sqrt(found.rms) <= rms && found.max <= max)
        return RIGHT;
    snprintf(result->text, sizeof result->text, "%s is off by %.2e rms (at most %.2e) and %.2e (at most %.2e), of %.2e",
             tensor->name, sqrt(found.rms), rms, found.max, max, size.max);
    return WRONG;
}

static void compare_all(const tg_problem *problem, const struct truths *truths, struct result *result)
{
    result->outcome = RIGHT;
    result->text[0] = '\0';
    for (uint32_t i = 0; i < problem->n_tensors && result->outcome != WRONG; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_OUT) || !tensor->data || tensor->n == 0 || tensor->is_kept)
            continue; /* what is kept is judged by what reads it */
        const enum outcome one = compare(problem, tensor, truths, result);
        result->outcome = one == WRONG || one < result->outcome ? one : result->outcome;
    }
}

/* The outputs with another limit, in place of those with the last one: how far each element moved, at most. */
static bool move_limit(const tg_problem *problem, struct noise *noise, struct numbers *last, struct numbers *open)
{
    struct numbers next;
    const bool ok = interpret(problem, noise, &next, &silent_sink) == TG_OK;
    for (uint32_t i = 0; ok && i < problem->n_tensors; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        const uint32_t tile = tensor->tile;
        for (size_t e = 0; tensor->flags & TG_OUT && open->of[tile] && e < tensor->n; e++) {
            const double moved = fabs(next.of[tile][e] - last->of[tile][e]);
            if (moved > open->of[tile][e] || isnan(moved))
                open->of[tile][e] = moved;
        }
    }
    free_numbers(last);
    *last = next;
    return ok;
}

/* Operands of a product with a decay are rounded to the inputs' type with it: in f16 they are zero below 2^-25. What they are
 * multiplied by may be a little above 1, so sums of such products may be zero below 2^-24. */
static double least_made(const struct noise *noise)
{
    bool any = false;
    for (uint32_t tile = 0; tile < noise->d->algorithm.n_tensors; tile++)
        any |= noise->is_decayed[tile];
    return any && noise->d->io == TG_F16 ? 0x1p-24 : least_of_all;
}

/* What is wrong, again with what underflow may make of it. */
static void compare_flushed(const tg_problem *problem, struct noise *noise, struct truths *truths,
                            struct result *result)
{
    struct numbers flushed, last, open = {{NULL}};
    noise->amount = 0;
    noise->least = least_of_fp32;
    bool ok = make_numbers(problem, noise, &open);
    ok = interpret(problem, noise, &flushed, &silent_sink) == TG_OK && ok;
    ok = interpret(problem, noise, &last, &silent_sink) == TG_OK && ok;
    while (ok && noise->least < least_made(noise)) {
        noise->least *= 2;
        ok = move_limit(problem, noise, &last, &open);
    }
    if (ok) {
        truths->flushed = &flushed;
        truths->open = &open;
        compare_all(problem, truths, result);
    }
    free_numbers(&flushed);
    free_numbers(&last);
    free_numbers(&open);
}

static void judge_numbers(const struct declaration *d, const tg_problem *problem, struct result *result)
{
    struct noise noise = {.d = d, .random = {1, tg_num_stream("noise")}};
    struct truths truths = {.flushed = NULL};
    find_operands(d, &noise);
    tg_status status = interpret(problem, &noise, &truths.exact, &(tg_sink){note, result});
    const double largest = noise.largest;
    for (int i = 0; i < N_NOISY; i++) {
        noise.amount = 1;
        noise.random.seed++;
        const tg_status again = interpret(problem, &noise, &truths.noisy[i], &(tg_sink){note, result});
        status = status == TG_OK ? again : status;
    }
    if (status != TG_OK)
        say(result, status == TG_E_MEMORY ? UNJUDGED : WRONG, "the statements cannot be evaluated");
    else if (!(largest < (d->io == TG_F16 ? 3e4 : 1e30)))
        result->outcome = UNJUDGED;
    else
        compare_all(problem, &truths, result);
    if (status == TG_OK && result->outcome == WRONG)
        compare_flushed(problem, &noise, &truths, result);
    free_numbers(&truths.exact);
    for (int i = 0; i < N_NOISY; i++)
        free_numbers(&truths.noisy[i]);
}

/* ---- from the checker to the device ---- */

/* `meant`: what the kernels of d should compute. */
static void run(struct context *context, const struct declaration *d, const struct declaration *meant,
                const struct kernel *kernel, tg_problem *problem, struct result *result)
{
    const tg_sink sink = {note, result};
    tg_call call;
    tg_status status = tg_call_open(&call, &context->machine, kernel->module, problem, d->schedule.chunk, &sink);
    if (status != TG_OK) {
        result->outcome = result->text[0] ? REFUSED : SILENT;
        return;
    }
    status = tg_call_run(&call, &sink);
    if (status == TG_OK)
        status = tg_call_fetch(&call, problem, &sink);
    if (status == TG_OK)
        judge_numbers(meant, problem, result);
    else
        say(result, FAULTY, "a launch failed without a message");
    tg_call_close(&call);
}

static void drop_optional(tg_problem *problem)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        if (problem->tensors[i].flags & TG_IN && problem->tensors[i].flags & TG_OPTIONAL) {
            free(problem->tensors[i].data);
            problem->tensors[i].data = NULL;
        }
}

void judge_as(struct context *context, uint64_t seed, const struct declaration *d, const struct declaration *meant,
              struct result *result)
{
    const tg_sink sink = {note, result};
    const tg_shape_class class = tg_shape_class_of(&d->shape, d->io);
    struct kernel kernel;
    tg_problem problem;
    *result = (struct result){.outcome = REFUSED};
    if (tg_schedule_check(&d->schedule, &sink) != TG_OK ||
        tg_plan_check(&d->schedule, d->target, &class, &sink) != TG_OK) {
        if (!result->text[0])
            say(result, SILENT, "refused without a reason");
        else if (strcmp(result->code, "TG0599") == 0) /* the plan is wrong, and it was noticed */
            result->outcome = NOT_LOWERED;
        return;
    }
    context->machine.target = d->target;
    if (!kernel_build(context, &d->variant, &d->schedule, &class, &kernel, &sink)) {
        say(result, NOT_LOWERED, "no program, without a message");
        return;
    }
    if (problem_random(context, &d->variant, &d->shape, d->io, seed, &problem)) {
        if (d->without_optional)
            drop_optional(&problem);
        if (tg_problem_keep(kernel.program, d->schedule.chunk, &problem, &sink) == TG_OK)
            run(context, d, meant, &kernel, &problem, result);
        else
            say(result, FAULTY, "no room for what is kept");
        tg_problem_free(&problem);
    }
    kernel_free(&kernel);
}

void judge_declaration(struct context *context, uint64_t seed, const struct declaration *d, struct result *result)
{
    judge_as(context, seed, d, d, result);
}
