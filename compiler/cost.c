/* compiler/cost.c - the cost model: what a schedule moves and computes, and how long that takes.
 *
 * Counted from the plans themselves (each product's blocks times its grid, each tensor once per kernel),
 * which for mLSTMsig gives the table of reference section 10. Time of a kernel: the larger of bytes over
 * bandwidth and flops over matrix rate, stretched when too few thread blocks fill the GPU, plus a launch. */
#include "compiler/plan.h"

#include <math.h>
#include <stdlib.h>

static const double launch_seconds = 3e-6;
static const double step_seconds = 0.7e-6; /* latency of one step of a ring: wait, barrier, fetch, products */

static double count(const struct plan *p, const tg_sizes *s, uint32_t dim)
{
    const double chunk = fmin((double)s->chunk, (double)s->tokens);
    switch (dim) {
    case TG_DQK:
        return p->shape.dqk;
    case TG_DHV:
        return p->shape.dhv;
    case TG_CHUNK:
        return ceil((double)s->tokens / chunk);
    default:
        return chunk;
    }
}

static double blocks_of(const struct plan *p, const tg_sizes *s, uint32_t dim)
{
    return ceil(count(p, s, dim) / (p->block[dim] ? p->block[dim] : 1));
}

/* Fraction of the (query, key) blocks at or below the diagonal. */
static double causal_part(const struct plan *p, const tg_sizes *s, const struct nest *nest)
{
    if (!nest->causal_end && !nest->causal_begin)
        return 1;
    const double length = fmin((double)s->chunk, (double)s->tokens), block = p->block[nest->causal_end ? TG_LQ : TG_LKV];
    return fmin(1.0, 0.5 + 0.5 * block / length);
}

static double op_flops(const struct plan *p, const tg_sizes *s, const struct op *op, const struct nest *nest)
{
    const struct value *out = &p->values[op->v], *a = &p->values[op->a];
    const uint32_t k = plan_has_dim(out, a->dims[0]) ? 1 : 0;
    double flops = 2.0 * out->extent[0] * out->extent[1] * a->extent[k];
    for (uint32_t i = 0; nest && i < nest->n_loops; i++) {
        const bool outer_only = i == 1 && op->guard != GUARD_ALWAYS;
        flops *= outer_only ? 1 : blocks_of(p, s, nest->loops[i].dim);
    }
    return nest ? flops * causal_part(p, s, nest) : flops;
}

static double thread_blocks(const struct plan *p, const tg_sizes *s)
{
    uint8_t dims[TG_N_DIMS];
    const uint32_t n = plan_grid_dims(p, dims);
    double blocks = (double)s->batch * (double)s->heads;
    for (uint32_t i = 0; i < n; i++)
        blocks *= blocks_of(p, s, dims[i]);
    return blocks;
}

static double tensor_bytes(const struct plan *p, const tg_sizes *s, uint32_t tile)
{
    const tg_tensor *t = &p->algorithm->tensors[tile];
    double bytes = tg_dtype_bytes(plan_memory_dtype(p, tile)) * (double)s->batch * (double)s->heads;
    for (uint32_t i = 0; i < TG_MAX_AXES && t->axes[i]; i++)
        bytes *= t->axes[i] == TG_T ? (double)s->tokens : count(p, s, t->axes[i]);
    return bytes;
}

static void kernel_cost(const struct plan *p, const tg_sizes *s, tg_cost *cost)
{
    const double blocks = thread_blocks(p, s), resident = fmax(1.0, floor((double)p->target->shared_per_sm / (p->shared_bytes + 1024.0)));
    const double slots = p->target->sms * fmin(resident, 4.0), waves = ceil(blocks / slots);
    const struct nest *nest = NULL;
    double flops = 0, bytes = 0, steps = 1;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_NEST || op->kind == OP_END)
            nest = op->kind == OP_NEST ? &p->nests[op->n] : NULL;
        if (op->kind == OP_CONTRACT)
            flops += op_flops(p, s, op, nest) * blocks;
        if (op->kind == OP_NEST) {
            double n = causal_part(p, s, nest);
            for (uint32_t k = 0; k < nest->n_loops; k++)
                n *= blocks_of(p, s, nest->loops[k].dim);
            steps += n;
        }
    }
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++) {
        const bool used = (p->slice.loads | p->slice.stores) >> t & 1, absent = p->algorithm->tensors[t].flags & TG_OPTIONAL;
        bytes += used && !absent ? tensor_bytes(p, s, t) : 0;
    }
    const double rate = p->target->matrix_flops * (p->shape.io == TG_F32 ? 1.0 / 6 : 1);
    const double fill = fmin(1.0, blocks / p->target->sms);
    cost->flops += flops;
    cost->bytes += bytes;
    cost->seconds += fmax(fmax(bytes / p->target->bandwidth, flops / (rate * fill)), steps * waves * step_seconds) + launch_seconds;
}

tg_status tg_cost_estimate(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape, const tg_sizes *sizes,
                           tg_cost *cost, const tg_sink *sink)
{
    if (!schedule || !target || !shape || !sizes || !cost)
        return TG_E_ARGUMENT;
    *cost = (tg_cost){0};
    tg_sizes s = *sizes;
    s.chunk = s.chunk > 0 ? s.chunk : schedule->chunk;
    if (s.tokens < 1 || s.batch < 1 || s.heads < 1)
        return TG_OK;
    struct plan *p = malloc(sizeof *p);
    if (!p)
        return TG_E_MEMORY;
    tg_status status = TG_OK;
    tg_bits workspace = 0;
    for (uint32_t r = 0; r < schedule->n_rows && status == TG_OK; r++) {
        if (!plan_build(p, schedule, r, target, shape, sink)) {
            status = TG_E_UNSUPPORTED;
            break;
        }
        kernel_cost(p, &s, cost);
        for (uint32_t t = 1; t < p->algorithm->n_tensors; t++)
            if ((p->slice.stores >> t & 1) && !(p->algorithm->tensors[t].flags & TG_OUT) && !(workspace >> t & 1)) {
                workspace |= TG_BIT(t);
                cost->workspace += tensor_bytes(p, &s, t);
            }
    }
    free(p);
    return status;
}
