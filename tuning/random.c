/* tuning/random.c - the tensors of a call, made of random numbers that a model might have. */
#include "tuning/tuning.h"

#include "program/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    NORMAL,
    PRE_SIGMOID, /* of a gate: by head, one that forgets half a token, or 1/400 */
    LOG_DECAY,   /* the log of such a gate: never positive */
    STEP,        /* softplus gives 0.001 .. 0.1 */
    LOG_RATE,    /* log(1) .. log(16), as Mamba-2 is initialised */
    NEAR_ONE,
    SMALL,
    COUNT,    /* of tokens behind a state */
    FRACTION, /* between 0 and 1 */
};

static const struct {
    const char *name;
    enum kind kind;
} kinds[] = {
    {"f", PRE_SIGMOID}, {"i", PRE_SIGMOID},  {"a", LOG_DECAY},  {"log_lambda", LOG_DECAY}, {"dt_raw", STEP},
    {"dt_bias", SMALL}, {"A_log", LOG_RATE}, {"D", NEAR_ONE},   {"b", NEAR_ONE},           {"c0", COUNT},
    {"beta", FRACTION}, {"g", LOG_DECAY},    {"gl", LOG_DECAY}, {"gr", LOG_DECAY},         {"g_raw", STEP},
    {"a_raw", STEP},    {"w", STEP},
};

/* `a` of a token is the log of a decay, of a head the a of a + b q.k. */
static enum kind kind_of(const tg_host_tensor *tensor)
{
    if (!tensor->has_tokens && strcmp(tensor->name, "a") == 0)
        return NEAR_ONE;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, tensor->name) == 0)
            return kinds[i].kind;
    return NORMAL;
}

/* Of [B, NH, T] and of [NH]. */
static size_t head_of(const tg_host_tensor *tensor, size_t index)
{
    const size_t tokens = tensor->has_tokens ? (size_t)tensor->extent[2] : 1;
    return tokens && tensor->extent[1] ? index / tokens % (size_t)tensor->extent[1] : 0;
}

double tg_random_number(const tg_host_tensor *tensor, tg_random random, size_t index)
{
    const bool is_slow = head_of(tensor, index) % 2;
    switch (kind_of(tensor)) {
    case NORMAL:
        break;
    case PRE_SIGMOID:
        /* Where much is let in and little forgotten, q.n crosses zero far from the floor, and what
         * is divided by it says nothing of a kernel. */
        if (tensor->is_exponential)
            return tg_num_normal(random, index) - (is_slow ? 3 : 0);
        return tg_num_normal(random, index) + (is_slow ? 6 : 0);
    case LOG_DECAY:
        return -log1p(exp(-tg_num_normal(random, index) - (is_slow ? 6 : 0)));
    case STEP:
        return log(expm1(0.001 * pow(100, tg_num_uniform(random, index))));
    case LOG_RATE:
        return log(16) * tg_num_uniform(random, index);
    case NEAR_ONE:
        return 1 + 0.1 * tg_num_normal(random, index);
    case COUNT:
        return 8 + floor(8 * tg_num_uniform(random, index));
    case SMALL:
        return 0.1 * tg_num_normal(random, index);
    case FRACTION:
        return tg_num_uniform(random, index);
    }
    return tg_num_normal(random, index) * (tensor->is_unit ? 1 / sqrt((double)tensor->extent[3]) : 1);
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Any, so that some sequences are short or empty. */
static tg_status random_cuts(const tg_shape *shape, uint64_t seed, tg_cuts *cuts, const tg_sink *sink)
{
    const tg_random random = {seed, tg_num_stream("cu")};
    *cuts = (tg_cuts){calloc((size_t)shape->batch + 1, sizeof *cuts->at), shape->batch};
    if (!cuts->at) {
        return tg_fail(sink, TG_E_MEMORY, "TG0799", "use fewer sequences", "no host memory for their boundaries");
    }
    for (int64_t s = 1; s < shape->batch; s++)
        cuts->at[s] = (int64_t)(tg_num_uniform(random, (uint64_t)s) * (double)(shape->tokens + 1));
    cuts->at[shape->batch] = shape->tokens;
    qsort(cuts->at, (size_t)shape->batch + 1, sizeof *cuts->at, by_number);
    return TG_OK;
}

static tg_status take_cuts(const tg_shape *shape, const tg_cuts *from, tg_cuts *to, const tg_sink *sink)
{
    if (from->n != shape->batch)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0904", NULL, "cuts: the boundaries of %lld sequences, expected %lld",
                       (long long)from->n, (long long)shape->batch);
    const tg_status status = tg_cuts_check("cuts", from, shape->tokens, sink);
    return status == TG_OK ? tg_cuts_copy(from, to, sink) : status;
}

static tg_status fill(tg_problem *problem, uint64_t seed, const tg_sink *sink)
{
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < problem->n_tensors && status == TG_OK; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_IN) || tensor->is_fed)
            continue;
        const tg_random random = {seed, tg_num_stream(tensor->name)};
        status = tg_problem_allocate(tensor, sink);
        for (size_t e = 0; status == TG_OK && e < tensor->n; e++)
            tg_num_store(tensor->data, tensor->dtype, e, tg_random_number(tensor, random, e));
    }
    return status;
}

tg_status tg_problem_random(const tg_variant *variant, const tg_variant *forward, const tg_shape *shape, tg_dtype io,
                            uint64_t seed, const tg_cuts *cuts, tg_problem *problem, const tg_sink *sink)
{
    tg_status status = tg_problem_declare(variant, forward, io, problem, sink);
    if (status == TG_OK)
        status = tg_shape_check(shape, sink);
    if (status == TG_OK && shape->packed)
        status = cuts ? take_cuts(shape, cuts, &problem->cuts, sink) : random_cuts(shape, seed, &problem->cuts, sink);
    if (status == TG_OK)
        status = tg_problem_size(shape, problem, sink);
    if (status == TG_OK)
        status = fill(problem, seed, sink);
    if (status != TG_OK)
        tg_problem_free(problem);
    else
        problem->seed = seed;
    return status;
}
