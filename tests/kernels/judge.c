/* tests/kernels/judge.c - how far from the fp64 oracle an output may be.
 *
 * The limits are those that tuning/judge.c keeps and explains, over the RMS of
 * the output. That measure fails where an output is small because large parts of it cancel, or
 * grows without bound near a zero that something is divided by: there an error of a rounding's size
 * in the parts is large in the result, whoever computes it. How large is measured, not guessed: the
 * oracle is asked again with inputs that are off by one rounding of their type each. What moves the
 * truth that way by `level` may put the kernel off by 3 levels, the room that tuning/judge.c gives
 * levels of files: it rounds about seven factors on the way to a gradient (q.n, h, P, the state and
 * what goes into it, dh V^T, the result), where the oracle's four inputs were rounded once, so 1.3
 * levels are expected. A head alone is one sample of what varies: three times that. For a plain sum
 * of n parts x a level is rounding * rms(x) * sqrt(n): the scale of what is summed. */
#include "harness.h"

#include "variants/scalar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* f16 operands have 11 bits where bf16 have 8, so 4e-3 / 8 = 5e-4 is what the same roundings give;
 * 1e-3 leaves room for a state that outgrows the fine part of f16's range. Gradients: twice that,
 * as with bf16. */
static const double rms_f16 = 1e-3;
/* A head's own RMS may be far below the tensor's, and with few tokens a head is a small sample
 * whose error scatters: 3 is what is left of 4e-3 over the expected 2.5e-3, twice. */
static const double head_slack = 3;
static const double level_slack = 3;
/* One wrong element in a million leaves the RMS alone: the largest error is held against the
 * largest number, as in tuning/judge.c. */
static const double max_slack = 10;
enum { SAMPLES = 6, FEW = 8 }; /* of roundings; heads */

struct judgement {
    tg_problem *problem;
    tg_truth truth;
    tg_truth levels; /* what the parts of the outputs are worth; made when something is beyond its limit */
    bool has_levels;
    bool asks_levels; /* not of a mutant: nobody asks why */
    bool is_told;
};

/* ---- gradients of decays ----
 * The gradient of a token's log decay is a sum over all tokens of parts q.dq and k.dk that cancel
 * but for what crosses the token: nearly all of it when the gate is closed. Whoever
 * sums n such numbers in fp32 is off by 2^-24 * rms * sqrt(n), and the parts themselves are
 * rounded, as sums of products: 2^-22. A part is a sum of products q_c dq_c, which may cancel within
 * the token too: what is rounded is as large as the part, or as its products. A parameter's gradient
 * adds up the tokens', which share these errors: n times that. */
static const double fp32_sum = 0x1p-22;

/* The square of a token's part, or of its products where they cancel. */
static double row_square(const tg_host_tensor *x, const double *dx, size_t row)
{
    const size_t n = (size_t)x->extent[3];
    double sum = 0, squares = 0;
    for (size_t i = row * n; i < (row + 1) * n; i++) {
        const double product = tg_num_load(x->data, x->dtype, i) * dx[i];
        sum += product;
        squares += product * product;
    }
    const double square = fmax(sum * sum, squares);
    return isfinite(square) ? square : 0;
}

/* sqrt of the sum of the squares of all parts of a value head. */
static double parts_of(const struct judgement *j, size_t head)
{
    const tg_problem *p = j->problem;
    const size_t group = (size_t)p->shape.group;
    double sum = 0;
    for (uint32_t i = 0; i < p->n_tensors; i++) {
        const tg_host_tensor *x = &p->tensors[i];
        char name[32];
        if (x->tile != Q && x->tile != K && strcmp(x->name, "q") != 0 && strcmp(x->name, "k") != 0)
            continue;
        snprintf(name, sizeof name, "d%s", x->name);
        const double *dx = j->truth.out[tg_problem_tensor((tg_problem *)p, name)->tile];
        const size_t heads = (size_t)x->extent[1], tokens = (size_t)x->extent[2];
        for (size_t b = 0; b < (size_t)x->extent[0]; b++)
            for (size_t t = 0; t < tokens; t++)
                sum += row_square(x, dx, (b * heads + head / group) * tokens + t);
    }
    return sqrt(sum);
}

static double input_of(const tg_problem *p, const char *name, size_t index)
{
    const tg_host_tensor *x = tg_problem_tensor((tg_problem *)p, name);
    return x && x->data ? tg_num_load(x->data, x->dtype, index) : 0;
}

/* The largest dt of any token, at a head's rate. */
static double largest_step(const tg_problem *p)
{
    const tg_host_tensor *dt = tg_problem_tensor((tg_problem *)p, "dt_raw");
    const tg_host_tensor *x = dt ? dt : tg_problem_tensor((tg_problem *)p, "a_raw");
    double most = 0;
    for (size_t e = 0; x && e < x->n; e++)
        most = fmax(most, tg_num_load(x->data, x->dtype, e));
    return 1 + most; /* softplus(z) < 1 + z */
}

/* What the gradient of this input is, times that of the log decay. */
static double factor_of(const tg_problem *p, const tg_host_tensor *tensor, size_t head)
{
    const char *name = tensor->name;
    const double n = (double)(p->shape.packed ? p->shape.tokens : p->shape.batch * p->shape.tokens);
    const double rate = exp(input_of(p, "A_log", head));                            /* 1 where there is none */
    if (strcmp(name, "df") == 0 || (strcmp(name, "da") == 0 && tensor->has_tokens)) /* nla's a is none */
        return 1;
    if (strcmp(name, "dlog_lambda") == 0)
        return n;
    if (strcmp(name, "ddt_raw") == 0 || strcmp(name, "da_raw") == 0)
        return rate;
    if (strcmp(name, "ddt_bias") == 0)
        return rate * n;
    return strcmp(name, "dA_log") == 0 ? rate * n * largest_step(p) : 0;
}

/* The error that summing in fp32 leaves in an element of a head. */
static double cancelled(const struct judgement *j, const tg_host_tensor *tensor, size_t head)
{
    const double factor = factor_of(j->problem, tensor, head);
    return factor > 0 ? fp32_sum * factor * parts_of(j, head) : 0;
}

static void make_levels(struct judgement *j)
{
    if (!j->has_levels)
        (void)truth_deviation(&machine_context, j->problem, 0, &j->truth, SAMPLES, &j->levels);
    j->has_levels = true;
}

/* ---- limits ---- */

/* Elements [at, at + n) of an output. */
struct stretch {
    const tg_host_tensor *tensor;
    size_t at, n;
    size_t first_head, n_heads; /* of value heads, sequence by sequence */
    double limit;               /* of the RMS of the error over that of the truth */
    double max_limit;           /* of the largest error */
};

static double rms_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += isfinite(x[i]) ? x[i] * x[i] : 0;
    return n ? sqrt(sum / (double)n) : 0;
}

static double largest(const double *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = isfinite(x[i]) ? fmax(most, fabs(x[i])) : most;
    return most;
}

/* Below this there is nothing: f16 ends at 2^-24 (weighted keys of closed gates are zero there, and
 * so is a state that is made of nothing else), and fp32 at 2^-126, which a factor of a product may
 * reach before the product does. */
static double least(const tg_problem *problem)
{
    return problem->io == TG_F16 ? 0x1p-24 : 0x1p-100;
}

/* An f16 number below 2^-14 is off by half a step of 2^-24 at most, uniformly. */
static double step_of(const tg_host_tensor *tensor)
{
    return tensor->dtype == TG_NUM_F16 ? 0x1p-24 : 0;
}

struct errors {
    double rms, max; /* the first over the RMS of the truth */
    bool mismatch;
};

static struct errors errors_of(const struct stretch *s, const double *truth, double scale)
{
    struct errors e = {0, 0, false};
    for (size_t i = s->at; i < s->at + s->n; i++) {
        const double x = tg_num_load(s->tensor->data, s->tensor->dtype, i), error = fabs(x - truth[i]);
        const bool is_finite = fabs(truth[i]) < tg_num_most(s->tensor->dtype);
        const bool is_infinite = !is_finite && !isnan(truth[i]);
        if (isfinite(x) != is_finite || isnan(x) != isnan(truth[i]) || (is_infinite && signbit(x) != signbit(truth[i])))
            e.mismatch = true;
        if (!is_finite || !isfinite(x))
            continue;
        e.rms += error * error;
        e.max = fmax(e.max, error);
    }
    e.rms = s->n ? sqrt(e.rms / (double)s->n) / scale : 0;
    return e;
}

/* The max state is an exponent: an error of 1e-5 in it is one of 1e-5 in what it multiplies. */
static double scale_of(const struct judgement *j, const struct stretch *s, const double *truth)
{
    const double rms = fmax(rms_of(truth + s->at, s->n), least(j->problem));
    return strcmp(s->tensor->name, "m") == 0 ? fmax(rms, 1) : rms;
}

/* What the parts of a stretch allow for. */
struct conditioned {
    double rms, max;
};

static struct conditioned condition(struct judgement *j, const struct stretch *s)
{
    struct conditioned c = {0, 0};
    const size_t heads = (size_t)j->problem->shape.heads;
    make_levels(j);
    const double *square = j->levels.out[s->tensor->tile];
    for (size_t i = s->at; square && i < s->at + s->n; i++) {
        c.rms += square[i] / (double)s->n;
        c.max = fmax(c.max, sqrt(square[i]));
    }
    c.rms = hypot(level_slack * (s->n_heads < FEW ? head_slack : 1) * sqrt(c.rms), step_of(s->tensor) / sqrt(12));
    for (size_t head = s->first_head; head < s->first_head + s->n_heads; head++) {
        const double sum = cancelled(j, s->tensor, head % heads);
        c.rms = fmax(c.rms, sum);
        c.max = fmax(c.max, sum);
    }
    return c;
}

static bool stretch_right(struct judgement *j, const struct stretch *s, const char *what)
{
    const double *truth = j->truth.out[s->tensor->tile];
    const double scale = scale_of(j, s, truth);
    const struct errors e = errors_of(s, truth, scale);
    double limit = s->limit, max_limit = s->max_limit;
    if (!e.mismatch && e.rms <= limit && e.max <= max_limit)
        return true;
    if (!j->asks_levels)
        return false;
    const struct conditioned c = condition(j, s);
    limit = fmax(limit, c.rms / scale);
    max_limit = fmax(max_limit, max_slack * c.max);
    const bool ok = !e.mismatch && e.rms <= limit && e.max <= max_limit;
    tap_expect(ok || !j->is_told, "%s%s: rms %.2e of at most %.2e, max %.2e of at most %.2e%s", s->tensor->name, what,
               e.rms, limit, e.max, max_limit, e.mismatch ? "; not finite" : "");
    return ok;
}

/* Sums over tokens (parameters have no other elements in a head) are judged as one tensor. */
static bool output_right(struct judgement *j, const tg_host_tensor *tensor)
{
    const tg_dtype io = j->problem->io;
    const tg_const_array truth = {j->truth.out[tensor->tile], TG_NUM_F64, tensor->n};
    const double rms_limit = tg_judge_limits(j->problem, tensor, truth, (tg_levels){0, 0}).rms_limit;
    const size_t heads = (size_t)(tensor->extent[0] * tensor->extent[1]);
    struct stretch s = {tensor, 0, tensor->n, 0, heads, rms_limit, 0};
    if (io == TG_F16)
        s.limit = (tensor->is_gradient ? 2 * rms_f16 : rms_f16) * tg_chain_slack(j->problem);
    s.max_limit = max_slack * s.limit * fmax(least(j->problem), largest(j->truth.out[tensor->tile], tensor->n));
    bool ok = stretch_right(j, &s, "");
    s.limit *= head_slack;
    s.n_heads = 1;
    s.max_limit = INFINITY;
    for (size_t head = 0; tensor->n && head < heads; head++) {
        char what[32];
        snprintf(what, sizeof what, " of head %zu", head);
        s.n = tensor->n / heads;
        s.at = head * s.n;
        s.first_head = head;
        ok &= stretch_right(j, &s, what);
    }
    return ok;
}

static bool match(struct judgement *j)
{
    bool ok = true;
    for (uint32_t i = 0; i < j->problem->n_tensors && (ok || j->is_told); i++) {
        const tg_host_tensor *tensor = &j->problem->tensors[i];
        if (tensor->flags & TG_OUT && tensor->data && !tensor->is_kept)
            ok &= output_right(j, tensor);
    }
    tg_truth_free(&j->levels);
    return ok;
}

bool outputs_match(tg_problem *problem, const tg_truth *truth, bool is_told)
{
    struct judgement j = {.problem = problem, .truth = *truth, .asks_levels = is_told, .is_told = is_told};
    return match(&j);
}

static bool asks_statements;

void outputs_ask_statements(void)
{
    asks_statements = true;
}

/* What is right by roundings of the statements' results, where those of inputs say too little. */
static bool statements_allow(tg_problem *problem, const tg_truth *truth)
{
    enum { CHUNK = 64 };
    struct judgement j = {.problem = problem, .truth = *truth, .asks_levels = true};
    if (match(&j))
        return true;
    const tg_verdict worst = tg_judge_all(problem, truth, CHUNK, &log_sink);
    tap_note("by the statements' roundings: %s, rms %.2e of at most %.2e", worst.name, worst.error.rms_ratio,
             worst.rms_limit);
    return worst.ok;
}

bool outputs_right(tg_problem *problem)
{
    tg_truth truth;
    if (!truth_compute(&machine_context, problem, 0, &truth))
        return tap_expect(false, "no oracle: %s", log_text());
    const bool ok = (asks_statements && statements_allow(problem, &truth)) || outputs_match(problem, &truth, true);
    tg_truth_free(&truth);
    return ok;
}
