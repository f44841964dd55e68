/* tuning/random.c - the tensors of a call, made of random numbers as they are declared (tg_drawn). */
#include "tuning/tuning.h"

#include "program/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Which of [B, NH, ...]. */
static size_t head_of(const tg_host_tensor *tensor, size_t index)
{
    size_t elements = 1;
    for (int axis = 2; axis < tensor->rank; axis++)
        elements *= (size_t)tensor->extent[axis];
    return elements && tensor->extent[1] ? index / elements % (size_t)tensor->extent[1] : 0;
}

double tg_random_number(const tg_host_tensor *tensor, tg_random random, size_t index)
{
    const bool is_slow = head_of(tensor, index) % 2;
    switch (tensor->drawn) {
    case TG_DRAWN_UNIT:
        return tg_num_normal(random, index) / sqrt((double)tensor->extent[tensor->rank - 1]);
    case TG_DRAWN_FORGET:
    case TG_DRAWN_LET_IN:
        return tg_num_normal(random, index) + (is_slow ? 6 : 0);
    case TG_DRAWN_LOG_LET_IN:
        /* Where much is let in and little forgotten, q.n crosses zero far from the floor, and what
         * is divided by it says nothing of a kernel. */
        return tg_num_normal(random, index) - (is_slow ? 3 : 0);
    case TG_DRAWN_LOG_DECAY:
        return -log1p(exp(-tg_num_normal(random, index) - (is_slow ? 6 : 0)));
    case TG_DRAWN_STEP:
        return log(expm1(0.001 * pow(100, tg_num_uniform(random, index))));
    case TG_DRAWN_LOG_RATE:
        return log(16) * tg_num_uniform(random, index);
    case TG_DRAWN_NEAR_ONE:
        return 1 + 0.1 * tg_num_normal(random, index);
    case TG_DRAWN_SMALL:
        return 0.1 * tg_num_normal(random, index);
    case TG_DRAWN_COUNT:
        return 8 + floor(8 * tg_num_uniform(random, index));
    case TG_DRAWN_FRACTION:
        return tg_num_uniform(random, index);
    default:
        return tg_num_normal(random, index);
    }
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
