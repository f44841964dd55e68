/* compiler/cost.c - the cost model: what a schedule moves and computes, and how long that takes.
 *
 * Counted from the plans themselves: each product's blocks times its grid, each tensor once per kernel. A kernel's time
 * comes from three things that overlap in part, so that two of them together take the hypotenuse of what each takes alone:
 *
 *   memory   bytes over bandwidth
 *   work     of the thread blocks on a multiprocessor: products over its matrix rate, and sums over tiles beside them;
 *            what is brought on chip, which, unlike the bytes, counts what several blocks read
 *   latency  of one thread block: until its first tiles are there, and of every step of its rings. Other blocks on the
 *            same multiprocessor hide it; few blocks, or fat ones, do not.
 *
 * The constants are of the H200, fitted to the times in bench/results of commits 32ea963, 94fe919, b523df5, c9bb039, 1dd2502 and 54576b7, 637 in all,
 * to those of single kernels in 2026-11-23-h200-kernels.json, 2026-11-24-h200-short.json and 2026-11-28-h200-widths.json, T and pairs to
 * those of 2026-11-28-h200-family.json, to which schedule is the fastest in 2026-11-28-h200-narrow.json, and what a call hides of
 * launches to 2026-11-30-h200-choice.json; tests/test_cost.c compares with most of them, and with two results of an H100. Bandwidth, multiprocessors and matrix rates are the target's. */
#include "compiler/plan.h"
#include "compiler/plan_channel.h"
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_walk.h"

#include <math.h>
#include <stdlib.h>

/* Of a kernel timed alone, and what of that and of its beginning passes in a call while the kernel before it ends. */
static const double launch_seconds = 2e-6, launch_hidden = 2.5e-6;
static const double sync_launch_seconds = 4e-6;                                /* ... with products on mma.sync */
static const double walk_launch_seconds = 3.5e-6, walk_launch_hidden = 3.3e-6; /* ... on warpgroups */
static const double piece_seconds = 10e-6; /* of each piece: walks begin and end, and nothing is beside that */
/* What a kernel that runs beside a walk has of the GPU, of the part of its multiprocessors that the walk leaves: it has more of memory. */
static const double left_power = 0.6;
static const double block_seconds = 2.5e-6;  /* from the start to the first tiles, and from the last sums to memory */
static const double step_seconds = 0.2e-6;   /* of a ring: wait, barrier, fetch, first product */
static const double direct_seconds = 0.5e-6; /* ... along chunks: of what is loaded where it is read */
static const double behind_seconds = 0.3e-6; /* ... of a product that takes what one before it makes */
static const double chip_bandwidth = 80e9;   /* bytes a second to and from a multiprocessor */
static const double sum_rate = 10e9;     /* elements a second of a multiprocessor: shuffles, exchanges among warps */
static const double decay_rate = 70e9;   /* ... pairs of positions by channels, of products with decays of these */
static const double row_sum_rate = 30e9; /* ... of a kernel without products, each in the registers of a few lanes */
/* Kernels whose lanes have channels hardly wait for their products, but issue. How many instructions of lanes an element takes, counted
 * in SASS (bench/NOTES.md): that is loaded, mapped, summed or stored; of an operand of a product with a decay, and of a gradient of
 * one, its factors and the way to accumulators and back. */
static const double of_channel = 2.5, of_pair = 16, of_spread = 16, of_series = 12; /* the last: log1p in a map */
/* ... of a thread that has elements, without products: of what is loaded or stored, of a code of a map, of
 * two floats that a map reads, or that are summed up. */
static const double of_access = 2, of_code = 4, of_two_floats = 40, of_exact_sum = 10;
/* A warp waits for its own instructions, mostly for loads that it uses soon, and for those of the others on its scheduler: cycles from
 * one of its instructions to the next, alone and for each warp (ncu: 0.36, 0.42 and 0.51 issued a cycle of 2, 3 and 4 warps);
 * and how much of that where it makes no gradients of products with decays (ncu, 69460ae: 0.61 of 3 warps). */
static const double cycles_alone = 3.3, cycles_beside = 1.14, of_products = 0.84, clock_rate = 1.755e9;
/* Straight code that an instruction cache does not hold is fetched anew by each warp: bytes, those of an instruction, and how many
 * there are for one that runs (the others are for gates that decay by much). */
static const double code_cache = 128 << 10, instruction_bytes = 16, instructions_there = 1.4;
/* Kernels without products: gates, sums of rows, decode steps. Their loads are many steps ahead. */
static const double thread_block_seconds = 3.4e-6, token_block_seconds = 5.9e-6; /* the other: of decode steps */
/* ... without a loop: short blocks, each with its loads, then its stores, keep half of a multiprocessor's share of memory busy. */
static const double loopless_block_seconds = 3.2e-6, loopless_bandwidth = 18e9;
static const double thread_step_seconds = 0.02e-6;
static const double chain_step_seconds =
    0.07e-6; /* ... from chunk to chunk: what is stored waits for the step before */
static const double outer_step_seconds =
    0.3e-6;                                  /* ... around another loop: no more is loaded ahead than that one has */
static const double token_seconds = 0.78e-6; /* of several tokens a decode step */
/* ... that are walked beside a state in registers: until that is there and from the last token to memory, and of a token,
 * alone and of each element that a thread has of the state. */
static const double held_block_seconds = 3.7e-6;
static const double held_step_seconds = 0.25e-6;
static const double held_element_seconds = 1.6e-9;
static const double parts_bandwidth = 3.0e12; /* bytes a second of the L2's sectors that are written in part */
static const double rest_of_line = 0.75;      /* what it costs beside what is wanted of the line */
static const double thread_sum_rate = 27e9;   /* elements a second of a multiprocessor, of sums over positions */
/* Walks on warpgroups: of a chunk, what waits for barriers and fences; its products come on top. Sums beside them, which hide
 * nothing: of rows of operands, and of a state's elements with what a product makes. */
static const double walk_step_seconds = 0.75e-6, made_step_seconds = 0.45e-6; /* the other: where makers make tiles */
/* ... and where two groups share the columns of a state, of each sum that they add up; where a ring has one stage, until the next
 * chunk is there. */
static const double add_up_seconds = 0.3e-6, one_stage_seconds = 1.6e-6;
/* ... and of makers of rows, for each code of what these are made by: instructions that wait for one another. And in a ring of two of a
 * stage's loads and stores, while neither they nor those who walk have it. */
static const double row_code_seconds = 72e-9, turn_seconds = 2.9e-6;
static const double leave_seconds = 1.4e-6;       /* of a thread block that finds nothing to do */
static const double state_step_seconds = 0.8e-6;  /* of a row that makes states of segments alone */
static const double linear_step_seconds = 1.1e-6; /* ... whose states depend on those they begin with */
/* Of composing those: a product of fp32 that waits for the one before, and what its warps share out among them; or an element,
 * where the state decays alone. */
static const double compose_step_seconds = 1.3e-6, compose_shared_seconds = 7.2e-6, compose_element_seconds = 0.35e-6;
static const double walk_sum_rate = 15.5e9, state_sum_rate = 60e9; /* elements a second of a multiprocessor */
static const double enter_bandwidth = 27e9; /* bytes a second of a multiprocessor, of a segment's first state */

static const double used_by_fours = 2.0 / 3; /* of the multiprocessors: fewer than 32 clusters of four find room */

enum { THREADS_PER_SM = 2048, MOST_REGISTERS = 255, LANES = 32, SCHEDULERS = 4 };

/* ---- how often ---- */

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
    case TG_BATCH:
        return (double)s->batch;
    case TG_MEMBER:
        return group_of(&p->shape);
    default:
        return chunk;
    }
}

/* Of a sequence. */
static double segments(const struct plan *p, const tg_sizes *s)
{
    const uint32_t length = p->segment + p->starts + p->composes;
    return length ? ceil(count(p, s, TG_CHUNK) / length) : 1;
}

/* Of the chunks of transitions that may rest, those that are walked before nothing is left: as of the gates of `tegula bench`,
 * where half of the heads forget half of a token. */
static const double walked_of_transitions = 0.5;

/* Of the segments whose states a row makes, those that another one needs: all but the last; of transitions all but the first
 * too. */
static double used_part(const struct plan *p, const tg_sizes *s)
{
    if (p->makes_segments && p->transition) {
        const double n = segments(p, s), all = plan_blocks(p, plan_transition_along(p)),
                     of_states = ceil((double)plan_transition_first(p) / p->block[plan_transition_along(p)]);
        const double walked = p->rests ? walked_of_transitions : 1;
        return (of_states * (n - 1) + walked * (all - of_states) * fmax(n - 2, 0)) / (n * all);
    }
    if (p->segment && p->finals_only)
        return 1 / segments(p, s);
    return plan_is_state_alone(p) && !plan_final_tile(p) ? 1 - 1 / segments(p, s) : 1;
}

static double blocks_of(const struct plan *p, const tg_sizes *s, uint32_t dim)
{
    if (dim == TG_CHUNK && p->segment)
        return fmin(p->segment, count(p, s, dim));
    return ceil(count(p, s, dim) / (p->block[dim] ? p->block[dim] : 1));
}

/* Fraction of the (query, key) blocks at or below the diagonal. */
static double causal_part(const struct plan *p, const tg_sizes *s, const struct nest *nest)
{
    if (!nest->causal_end && !nest->causal_begin)
        return 1;
    const double length = fmin((double)s->chunk, (double)s->tokens),
                 block = p->block[nest->causal_end ? TG_LQ : TG_LKV];
    return fmin(1.0, 0.5 + 0.5 * block / length);
}

/* Steps of a nest (NULL: once), or only those of its outer loop. */
static double trips(const struct plan *p, const tg_sizes *s, const struct nest *nest, bool outer)
{
    double n = nest && !(outer && nest->n_loops > 1) ? causal_part(p, s, nest) : 1;
    for (uint32_t i = 0; nest && i < (outer ? 1 : nest->n_loops); i++)
        n *= blocks_of(p, s, nest->loops[i].dim);
    return n;
}

/* Chunks that a thread block has by warps count as one each. */
static double thread_blocks(const struct plan *p, const tg_sizes *s)
{
    tg_term terms[TG_MAX_TERMS];
    const uint32_t n = plan_grid(p, terms);
    double blocks = plan_chunks_together(p);
    for (uint32_t i = 0; i < n; i++) {
        const double sizes[] = {[TG_SIZE_CONST] = 1,
                                [TG_SIZE_BATCH] = (double)s->batch,
                                [TG_SIZE_HEADS] = (double)s->heads,
                                [TG_SIZE_TOKENS] = (double)s->tokens,
                                [TG_SIZE_CHUNKS] =
                                    count(p, s, TG_CHUNK) *
                                    (p->shape.packed && !p->segment ? (double)s->batch : 1), /* others leave at once */
                                [TG_SIZE_CHUNK] = count(p, s, TG_LQ)};
        blocks *= ceil(sizes[terms[i].size] / terms[i].div) * terms[i].mul;
    }
    return blocks;
}

/* How long the sequences of a packed batch are, a launch does not know: there are thread blocks for as many segments of each as
 * there are tokens, and most of them leave at once. */
static double leaving_blocks(const struct plan *p, const tg_sizes *s, double blocks)
{
    return p->shape.packed && p->segment ? blocks * ((double)s->batch - 1) : 0;
}

/* ---- how much ---- */

static double tensor_bytes(const struct plan *p, const tg_sizes *s, uint32_t tile)
{
    const tg_tensor *t = &p->algorithm->tensors[tile];
    const double batch = t->flags & TG_NO_BATCH ? 1 : (double)s->batch;
    const double heads = t->flags & TG_NO_HEADS
                             ? 1
                             : (double)s->heads / (t->flags & TG_SHARED ? group_of(&p->shape) : p->heads_summed[tile]);
    double bytes = tg_dtype_bytes(plan_memory_dtype(p, tile)) * batch * heads * p->parts[tile];
    for (uint32_t i = 0; i < TG_MAX_AXES && t->axes[i]; i++)
        bytes *= t->axes[i] == TG_T ? (double)s->tokens : count(p, s, t->axes[i]);
    const uint32_t segment = p->slices->by_segments >> tile & 1 ? tg_tile_segment(p->schedule, tile) : 0;
    const double chunks = count(p, s, TG_CHUNK);
    return segment ? bytes * ceil(chunks / segment) / chunks : bytes;
}

/* Each tensor once; what is composed in place, in and out. Without what is optional, as calls are timed; but a decode step without a state is none. */
static double memory_bytes(const struct plan *p, const tg_sizes *s)
{
    double bytes = 0;
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++) {
        const bool is_used = (p->slice.loads | p->slice.stores) >> t & 1;
        if (is_used && (p->shape.tokens || !(p->algorithm->tensors[t].flags & TG_OPTIONAL)))
            bytes += tensor_bytes(p, s, t) * (p->composes && (p->slice.stores >> t & 1) ? 2 : 1);
    }
    return bytes;
}

/* Of one thread block. */
struct work {
    double steps, flops, decays, sums, state_sums, on_chip, instructions;
};

/* Of all heads that a thread block works on together. */
static double elements(const struct plan *p, const struct value *v)
{
    double n = v->by_head ? p->heads : 1;
    for (uint32_t i = 0; i < v->n_dims; i++)
        n *= v->extent[i];
    return n;
}

/* Positions by positions by channels of a product with a decay of channels, whose lanes do not have these. */
static double decays(const struct plan *p, const struct op *op)
{
    const tg_stmt *s = op->stmt < 0 ? NULL : &p->algorithm->body[op->stmt];
    if (!s || op->kind != OP_CONTRACT || p->by_channel || !tg_stmt_decays(s) ||
        !(tg_operand_mask(p->algorithm, s->decay) >> TG_DQK & 1))
        return 0;
    return (double)p->block[TG_LQ] * p->block[TG_LKV] * fmin(p->block[TG_DQK], p->shape.dqk);
}

static double loaded(const struct plan *p, const struct value *v)
{
    return elements(p, v) * tg_dtype_bytes(plan_memory_dtype(p, TG_OPERAND_TILE(v->operand)));
}

static double series_in_map(const struct plan *p, const struct op *op)
{
    double n = 0;
    const tg_x *x = p->algorithm->body[op->stmt].expr;
    for (int i = 0; op->kind == OP_MAP && i < TG_MAX_EXPR && x[i].op != TG_X_END; i++)
        n += x[i].op == TG_X_LOGSIG2 || x[i].op == TG_X_SOFTPLUS;
    return n;
}

/* Of lanes that have channels; what is copied or begins as zero is made elsewhere. */
static double instructions(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v], *a = &p->values[op->a];
    switch (op->kind) {
    case OP_CONTRACT:
        return plan_is_spread(p, op)       ? of_spread * elements(p, v)
               : a->space == SPACE_CHANNEL ? of_pair * elements(p, a)
                                           : 0;
    case OP_DOT:
    case OP_SCAN:
    case OP_TOTAL:
        return of_channel * elements(p, a);
    case OP_LOAD:
    case OP_MAP:
    case OP_STORE:
        return v->space == SPACE_CHANNEL ? (of_channel + of_series * series_in_map(p, op)) * elements(p, v) : 0;
    default:
        return 0;
    }
}

static double two_floats_in_map(const struct plan *p, const struct op *op)
{
    tg_operand reads[TG_MAX_READS];
    double n = 0;
    for (uint32_t k = 0, all = tg_stmt_reads(&p->algorithm->body[op->stmt], reads); k < all; k++)
        n += p->algorithm->tensors[TG_OPERAND_TILE(reads[k])].dtype == TG_F32X2;
    return n;
}

/* Of threads that have elements, without products. */
static double thread_instructions(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    switch (op->kind) {
    case OP_LOAD:
    case OP_STORE:
        return of_access * elements(p, v);
    case OP_MAP:
        return (of_code * tg_expr_length(&p->algorithm->body[op->stmt]) + of_series * series_in_map(p, op) +
                of_two_floats * two_floats_in_map(p, op)) *
               elements(p, v);
    case OP_SCAN:
    case OP_TOTAL:
        return (v->dtype == TG_F32X2 ? of_exact_sum : 1) * elements(p, &p->values[op->a]);
    default:
        return 0;
    }
}

static void add_op(const struct plan *p, const struct op *op, double times, struct work *work)
{
    const struct value *v = &p->values[op->v], *a = &p->values[op->a];
    work->instructions += times * (p->by_channel   ? instructions(p, op)
                                   : p->thread_dim ? thread_instructions(p, op)
                                                   : 0);
    work->decays += times * decays(p, op);
    switch (op->kind) {
    case OP_CONTRACT:
        work->flops +=
            times * 2.0 * elements(p, v) *
            (p->groups && p->shares_columns && op->v != p->state && plan_is_owned(p, v) ? 2 : 1) *
            (plan_is_by_state(p, op) ? plan_part_columns(p, op->n) : a->extent[plan_has_dim(v, a->dims[0]) ? 1 : 0]);
        break;
    case OP_ADDEND:
        work->flops += times * 2.0 * elements(p, &p->values[p->state]) * a->extent[0];
        break;
    case OP_DOT: /* those of positions alone are made while products are under way */
        if (op->flags & OP_OF_PRODUCT) {
            const struct value *w = &p->values[op->w];
            work->flops += times * 2.0 * elements(p, w) * a->extent[0];
            work->state_sums += times * elements(p, w);
            break;
        }
        work->sums += plan_is_gathered(v) || plan_is_carried(v) || p->by_channel ? 0 : times * elements(p, a);
        break;
    case OP_LOAD: /* those of loops without products below, like those of rings */
        work->on_chip += p->thread_dim && v->nest >= 0 ? 0 : times * loaded(p, v);
        break;
    case OP_MEET:
        work->on_chip += elements(p, &p->values[op->a]) * tg_dtype_bytes(plan_memory_dtype(p, op->tile));
        break;
    case OP_STORE:
    case OP_LEAVE:
        work->on_chip += times * elements(p, v) * tg_dtype_bytes(plan_memory_dtype(p, op->tile));
        break;
    case OP_START: /* one for each segment */
        work->on_chip += times * elements(p, v) * tg_dtype_bytes(plan_memory_dtype(p, op->tile)) / p->starts;
        break;
    default:
        break;
    }
}

static struct work block_work(const struct plan *p, const tg_sizes *s)
{
    const double members = p->by_member ? group_of(&p->shape) : 1;
    const struct nest *nest = NULL;
    struct work work = {0};
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool again = !nest && (op->guard == GUARD_LATER || op->kind == OP_START); /* counted with the steps */
        const bool of_stage = op->role == ROLE_LOAD && op->guard == GUARD_STAGE;
        if ((op->role == ROLE_LOAD && !of_stage) || again)
            continue;
        if (op->kind == OP_NEST || op->kind == OP_END)
            nest = op->kind == OP_NEST ? &p->nests[op->n] : NULL;
        if (op->kind == OP_NEST && op->role != ROLE_MAKE)
            work.steps += members * trips(p, s, nest, false);
        const double times = of_stage ? trips(p, s, &p->nests[0], false) : trips(p, s, nest, op->guard != GUARD_ALWAYS);
        add_op(p, op, (op->when == WHEN_EACH ? members : 1) * times, &work);
    }
    for (uint32_t i = 0; i < p->n_values; i++) { /* what rings and products fetch by themselves */
        const struct value *v = &p->values[i];
        if (v->stmt < 0 && (v->nest >= 0 || v->direct))
            work.on_chip += members * loaded(p, v) * trips(p, s, v->nest >= 0 ? &p->nests[v->nest] : NULL, v->outer);
    }
    return work;
}

/* ---- how long ---- */

static bool begins_by(const struct plan *p, enum op_kind kind)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == kind)
            return true;
    return false;
}

/* Sums of rows that tiles of matrices are laid out for, without a product: a row's elements come and go. */
static bool sums_rows(const struct plan *p)
{
    return p->row->mma == TG_MMA_SYNC && !begins_by(p, OP_CONTRACT);
}

/* Those whose lanes have channels take all registers that they may. */
static double resident_blocks(const struct plan *p)
{
    const uint32_t by_threads = THREADS_PER_SM / p->threads,
                   by_shared = p->target->shared_per_sm / (p->shared_bytes + PLAN_SHARED_OF_DRIVER);
    uint32_t n = by_threads < by_shared ? by_threads : by_shared;
    if (p->resident) /* ptxas is held to it */
        return p->resident;
    if (p->by_channel) {
        const uint32_t by_registers = p->row->blocks_per_sm ? p->row->blocks_per_sm : 1;
        n = n < by_registers ? n : by_registers;
    } else if (p->registers && !sums_rows(p)) {
        const uint32_t registers = p->registers < MOST_REGISTERS ? round_up(p->registers, 8) : MOST_REGISTERS;
        const uint32_t by_registers = p->target->registers_per_sm / (registers * p->threads);
        n = n < by_registers ? n : by_registers;
    }
    return n ? n : 1;
}

static double matrix_rate(const struct plan *p)
{
    if (p->row->mma == TG_MMA_WGMMA)
        return p->target->wgmma_flops;
    return p->target->matrix_flops * (p->shape.io == TG_F32 ? 1.0 / 6 : 1); /* three products at half the rate */
}

/* Reading a state that another row has made. */
static double state_seconds(const struct plan *p)
{
    return elements(p, &p->values[p->state]) * sizeof(float) / enter_bandwidth;
}

/* What makers take for the rows of a chunk. In a ring of two they and those who walk take turns at a stage, each half the time at the other. */
static double row_seconds(const struct plan *p)
{
    double seconds = 0;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_MAP && plan_works_on_rows(p, &p->ops[i]))
            seconds += row_code_seconds * tg_expr_length(&p->algorithm->body[p->ops[i].stmt]);
    return seconds;
}

static double sums_of_columns(const struct plan *p)
{
    double n = 0;
    for (uint32_t i = 0; i < p->n_ops; i++)
        n += p->ops[i].kind == OP_ADD_UP;
    return n;
}

/* Of a thread block that walks: each chunk's products wait for one another, and only those of another thread block run meanwhile.
 * Small blocks that make states in order have hardly any; what they bring on chip they share the way to. */
static double walk_seconds(const struct plan *p, const struct work *work, double together)
{
    const double sms = p->target->sms, sharing = p->makes_segments && p->transition ? together : 1,
                 products = sharing * work->flops * sms / matrix_rate(p);
    if (p->starts_alone)
        return block_seconds +
               hypot(work->steps * step_seconds + together * work->on_chip / chip_bandwidth, together * products);
    const bool enters = begins_by(p, OP_ENTER) || p->relays;
    const double rows = work->steps * row_seconds(p),
                 step = (p->has_makers && plan_makes_positions(p) ? made_step_seconds : walk_step_seconds) +
                        add_up_seconds * sums_of_columns(p) + (p->nests[0].stages == 1 ? one_stage_seconds : 0),
                 walks = fmax(work->steps * step + products, together * products);
    const double chunks = plan_is_sum_alone(p) ? hypot(work->steps * state_step_seconds, products)
                          : p->makes_segments && !plan_makes_tiles(p)
                              ? hypot(work->steps * linear_step_seconds, products)
                          : rows > 0 && p->nests[0].stages == 2 ? (walks + rows + work->steps * turn_seconds) / 2
                                                                : fmax(walks, rows);
    return block_seconds + (enters ? state_seconds(p) : 0) + chunks + work->sums / walk_sum_rate +
           work->state_sums / state_sum_rate;
}

/* Threads for each that has an element, where threads have several: the others keep no memory busy. */
static double idle_share(const struct plan *p)
{
    const uint32_t size = plan_dim_size(p, p->thread_dim);
    return p->each > 1 && size ? (double)(plan_blocks(p, p->thread_dim) * p->block[p->thread_dim]) / size : 1;
}

/* Of the states that a thread has from the first token to the last. */
static double held_elements(const struct plan *p)
{
    double n = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        n += p->values[i].nest < 0 && p->values[i].space == SPACE_THREAD ? plan_held_count(p, &p->values[i]) : 0;
    return n;
}

/* Several parts of one number. */
static bool loads_parts(const struct plan *p)
{
    bool in_parts = false;
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++)
        in_parts |= (p->slice.loads >> t & 1) && p->parts[t] > 1;
    return in_parts;
}

/* Of the loops of a kernel without products. */
static double thread_steps_seconds(const struct plan *p, const tg_sizes *s, const struct work *work)
{
    double seconds = work->steps * thread_step_seconds * idle_share(p);
    for (uint32_t i = 0; i < p->n_ops && !p->schedule->max_tokens; i++) {
        const struct nest *nest = p->ops[i].kind == OP_NEST ? &p->nests[p->ops[i].n] : NULL;
        if (nest && nest->n_loops > 1 && loads_parts(p))
            seconds += trips(p, s, nest, true) * outer_step_seconds;
        else if (nest && nest->loops[0].dim == TG_CHUNK)
            seconds += trips(p, s, nest, true) * (chain_step_seconds - thread_step_seconds);
    }
    return seconds;
}

/* Of threads that have elements, without products. */
static double thread_seconds(const struct plan *p, const tg_sizes *s, const struct work *work, double together,
                             double waves)
{
    const double sums = p->schedule->max_tokens ? 0 : work->sums / thread_sum_rate; /* steps wait for memory */
    const double tokens = p->held >> TG_CHUNK & 1 ? p->block[TG_CHUNK] : 0;         /* their gates, once */
    if (p->composes)
        return loopless_block_seconds + waves * segments(p, s) * compose_element_seconds;
    if (work->steps == 0 && !p->schedule->max_tokens)
        return loopless_block_seconds + waves * together * (work->on_chip / loopless_bandwidth + sums);
    const double block = p->schedule->max_tokens ? token_block_seconds : thread_block_seconds;
    const double issue =
        p->schedule->max_tokens ? 0 : together * work->instructions / (LANES * SCHEDULERS) / clock_rate;
    return waves * (block + tokens * token_seconds + fmax(thread_steps_seconds(p, s, work), issue) + together * sums);
}

/* Of a thread block whose lanes have channels, and those beside it. */
static double issue_seconds(const struct plan *p, const struct work *work, double together)
{
    const double of_warp = work->instructions / p->threads, warps = together * p->threads / LANES / SCHEDULERS;
    const double code =
        of_warp * instructions_there * instruction_bytes / (plan_has_blocks(p) ? plan_blocks(p, TG_DQK) : 1);
    const double cycles = (cycles_alone + cycles_beside * warps) * (p->spreads ? 1 : of_products);
    return of_warp * cycles * fmax(1, code / code_cache) / clock_rate;
}

/* Of steps along the chunks on mma.sync, beside the rings': nothing of one step runs beside the one before. */
static double chain_seconds(const struct plan *p, const tg_sizes *s)
{
    const struct nest *nest = NULL;
    double seconds = 0, step = 0;
    for (uint32_t i = 0, products = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_NEST) {
            nest = &p->nests[op->n];
            products = 0;
            step = 0;
        }
        step += op->kind == OP_LOAD && p->values[op->v].direct ? direct_seconds : 0;
        step += op->kind == OP_CONTRACT && products++ ? behind_seconds : 0;
        if (op->kind == OP_END && nest && nest->n_loops == 1 && nest->loops[0].dim == TG_CHUNK && products)
            seconds += trips(p, s, nest, true) * step;
    }
    return seconds;
}

/* Of all thread blocks, as if memory were infinitely fast. */
static double block_seconds_in_all(const struct plan *p, const tg_sizes *s, const struct work *work, double blocks)
{
    const double sms = p->target->sms, members = p->by_member ? group_of(&p->shape) : 1;
    const double together = fmin(resident_blocks(p), ceil(blocks / sms));
    double waves = blocks / (sms * (p->cluster == 4 ? used_by_fours : 1) * together);
    if (waves < 2 || p->transition || p->groups) /* of many short ones, the last one does not show */
        waves = ceil(waves);
    if (p->relays) /* those of a sequence one after the other */
        waves = fmax(waves, segments(p, s));
    if (p->row->mma == TG_MMA_WGMMA)
        return waves * walk_seconds(p, work, together) +
               leaving_blocks(p, s, blocks) / (sms * resident_blocks(p)) * leave_seconds;
    if (p->composes && p->transition)
        return waves * (work->steps - 1) * /* the first is there */
               (compose_step_seconds + compose_shared_seconds / p->row->warps);
    if (p->by_token)
        return waves *
               (held_block_seconds + work->steps * (held_step_seconds + held_elements(p) * held_element_seconds));
    if (p->row->mma == TG_MMA_NONE)
        return thread_seconds(p, s, work, together, waves);
    if (p->by_channel)
        return block_seconds + waves * issue_seconds(p, work, together);
    const double products = work->flops * sms / matrix_rate(p) + work->decays / decay_rate + work->sums / sum_rate;
    const double alone = sums_rows(p) ? work->sums / row_sum_rate : hypot(products, work->on_chip / chip_bandwidth);
    const double latency = members * block_seconds + work->steps * step_seconds + members * chain_seconds(p, s);
    return waves * hypot(latency + alone, together * alone);
}

/* A producer that does nothing else keeps memory busy, and how fast warps issue is what it is beside their loads: of the two times
 * hardly more than the longer shows. */
static double overlapped(const struct plan *p, double memory, double blocks)
{
    return p->row->mma == TG_MMA_WGMMA || p->by_channel ? sqrt(hypot(memory * memory, blocks * blocks))
                                                        : hypot(memory, blocks);
}

/* A state that thread blocks take in columns: half a line costs most of what a whole one does. */
static double lines_moved(const struct plan *p)
{
    enum { LINE = 128 };
    const uint32_t columns = p->by_token && p->block[TG_DHV] ? p->block[TG_DHV] * (uint32_t)sizeof(float) : LINE;
    return columns < LINE ? 1 + rest_of_line * ((double)LINE / columns - 1) : 1;
}

/* Parts of numbers lie beside each other, so that each of them writes pieces of the L2's sectors. */
static double parts_bytes(const struct plan *p, const tg_sizes *s)
{
    enum { SECTOR = 32 };
    double bytes = 0;
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++) {
        const uint32_t parts = p->parts[t];
        if ((p->slice.stores >> t & 1) && parts > 1 && plan_part_step(p, t) == 1)
            bytes += tensor_bytes(p, s, t) * fmin(parts, (double)SECTOR / sizeof(float));
    }
    return bytes;
}

tg_cost plan_cost(const struct plan *p, const tg_sizes *s)
{
    struct work work = block_work(p, s);
    work.steps = p->composes && p->transition ? segments(p, s) : work.steps;
    const double used = used_part(p, s),
                 blocks = thread_blocks(p, s) * (p->segment && plan_is_state_alone(p) ? used : 1);
    if (p->starts_alone) {
        work.steps *= used;
        work.flops *= used;
        work.on_chip *= used;
    }
    const double launch = p->groups                    ? walk_launch_seconds
                          : p->row->mma == TG_MMA_SYNC ? sync_launch_seconds
                                                       : launch_seconds;
    tg_cost cost = {.flops = work.flops * blocks,
                    .bytes = memory_bytes(p, s) * used,
                    .seconds = launch,
                    .hidden_seconds = p->groups ? walk_launch_hidden : launch_hidden};
    if (blocks <= 0)
        return cost;
    cost.memory_seconds = cost.bytes / p->target->bandwidth;
    cost.matrix_seconds = cost.flops / matrix_rate(p);
    const double memory = fmax(cost.memory_seconds * lines_moved(p), parts_bytes(p, s) / parts_bandwidth);
    cost.seconds = overlapped(p, memory, block_seconds_in_all(p, s, &work, blocks)) + launch;
    return cost;
}

/* ---- of a schedule ---- */

/* What the row writes into a place of its own, which no row before it has used. */
static double workspace_of(const struct plan *p, const tg_sizes *s, const uint8_t place[TG_MAX_TILES])
{
    double bytes = 0;
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++)
        if ((p->slice.stores >> t & 1) && place[t] == t)
            bytes += tensor_bytes(p, s, t);
    return bytes;
}

tg_sizes plan_sizes(const tg_shape_class *shape, const tg_sizes *sizes)
{
    tg_sizes s = *sizes;
    if (shape->packed && s.batch > 0)
        s.tokens = (s.tokens + s.batch - 1) / s.batch;
    return s;
}

/* Thread blocks of the row that wait for the chunks before. */
static double walk_blocks(const tg_kernel_row *row, const tg_shape_class *shape, const tg_sizes *s)
{
    const uint32_t sizes[TG_N_DIMS] = {[TG_DQK] = shape->dqk, [TG_DHV] = shape->dhv};
    double blocks = row->row[TG_CHUNK].role == TG_ROLE_W ? (double)(s->batch * s->heads) : 0;
    for (uint32_t d = 0; d < TG_N_DIMS; d++)
        if (sizes[d] && row->row[d].role == TG_ROLE_P && row->row[d].block)
            blocks *= ceil((double)sizes[d] / row->row[d].block);
    return blocks;
}

double plan_seconds(const tg_schedule *schedule, const struct tg_slices *slices, const tg_target *target,
                    const tg_shape_class *shape, const tg_sizes *s, const double seconds[TG_MAX_ROWS])
{
    const uint32_t n = schedule->pieces;
    const bool beside = tg_begins_beside(schedule, slices);
    double rest = 0, blocks = 0;
    for (uint32_t r = beside ? 1 : 0; r < schedule->n_rows; r++) {
        rest += seconds[r];
        blocks = fmax(blocks, walk_blocks(&schedule->rows[r], shape, s));
    }
    if (!beside)
        return rest + (n > 1 ? (n - 1) * piece_seconds : 0);
    const double left = pow(fmax(1 - blocks / target->sms, 1e-3), left_power), part = 2.0 / (n * (n + 1));
    double sum = n * part * seconds[0];
    for (uint32_t i = 0; i < n; i++) {
        const double own = (n - i) * part * rest, next = (n - i - 1) * part * seconds[0];
        sum += piece_seconds + fmin(own + next, fmax(own, next / left)); /* at worst it waits */
    }
    return sum;
}

tg_status tg_cost_kernels(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                          const tg_sizes *sizes, tg_cost costs[TG_MAX_ROWS], const tg_sink *sink)
{
    if (!schedule || !target || !shape || !sizes || !costs)
        return TG_E_ARGUMENT;
    tg_sizes s = plan_sizes(shape, sizes);
    s.chunk = s.chunk > 0 ? s.chunk : schedule->chunk;
    const bool is_empty = s.tokens < 1 || s.batch < 1 || s.heads < 1;
    struct plan *p = malloc(sizeof *p);
    if (!p)
        return TG_E_MEMORY;
    tg_status status = TG_OK;
    uint8_t place[TG_MAX_TILES];
    struct tg_slices slices;
    tg_schedule_slice(schedule, TG_MAX_ROWS, &slices);
    plan_places(schedule, &slices, shape, place);
    for (uint32_t r = 0; r < schedule->n_rows && status == TG_OK; r++) {
        costs[r] = (tg_cost){0};
        if (!plan_build(p, schedule, &slices, r, target, shape, sink)) {
            status = TG_E_UNSUPPORTED;
        } else if (!is_empty) {
            costs[r] = plan_cost(p, &s);
            costs[r].workspace = workspace_of(p, &s, place);
        }
    }
    free(p);
    return status;
}

tg_status tg_cost_estimate(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                           const tg_sizes *sizes, tg_cost *cost, const tg_sink *sink)
{
    tg_cost costs[TG_MAX_ROWS];
    if (!cost)
        return TG_E_ARGUMENT;
    *cost = (tg_cost){0};
    const tg_status status = tg_cost_kernels(schedule, target, shape, sizes, costs, sink);
    double seconds[TG_MAX_ROWS] = {0};
    bool any = false; /* a call without tokens takes no time */
    for (uint32_t r = 0; status == TG_OK && r < schedule->n_rows; r++) {
        cost->flops += costs[r].flops;
        cost->bytes += costs[r].bytes;
        cost->workspace += costs[r].workspace;
        cost->memory_seconds += costs[r].memory_seconds;
        cost->matrix_seconds += costs[r].matrix_seconds;
        seconds[r] = costs[r].seconds - (any ? costs[r].hidden_seconds : 0);
        any |= costs[r].seconds > 0;
    }
    if (status != TG_OK || !any)
        return status;
    struct tg_slices slices;
    const tg_sizes counted = plan_sizes(shape, sizes);
    tg_schedule_slice(schedule, TG_MAX_ROWS, &slices);
    cost->seconds = plan_seconds(schedule, &slices, target, shape, &counted, seconds);
    return status;
}
