/* lower/thread_loop.c - loops of kernels in which a thread has an element.
 *
 * A nest of two loops is two loops. The inner one, when it goes one element at a time, computes several steps a round
 * and loads all of them first: that is what hides the latency of memory here. */
#include "lower/emit.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_AHEAD = 32, REGISTERS_AHEAD = 128 };

static LLVMValueRef thread_trips(struct emit *e, const struct loop *loop)
{
    if (loop->trips)
        return imm(e, loop->trips);
    if (loop->dim == TG_BATCH)
        return argument(e, TG_ARG_SIZE, TG_SIZE_BATCH, 0);
    return ceil_div(e, loop->dim == TG_CHUNK ? e->at.chunks : e->at.length, loop->block);
}

static struct place place_at(struct emit *e, const struct nest *nest, const struct loop *loop, LLVMValueRef index)
{
    struct place at = e->at;
    if (loop->dim == TG_CHUNK && e->p->thread_dim != TG_CHUNK) {
        set_chunk(e, &at, nest->reverse ? sub(e, sub(e, at.chunks, imm(e, 1)), index) : index);
        return at;
    }
    at.start[loop->dim] = mul(e, index, imm(e, loop->block));
    if (loop->dim == TG_BATCH && e->p->shape.packed)
        set_sequence(e, &at, index);
    return at;
}

static void emit_guarded(struct emit *e, uint32_t begin, uint32_t end, uint32_t guard)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].guard == guard && e->p->ops[i].kind != OP_INIT) /* read early */
            emit_ops(e, i, i + 1);
}

/* Loads of the outer loop; of the inner one those that every thread has alike, which the L1 cache has. */
static void load_nest(struct emit *e, const struct nest *nest, bool outer)
{
    for (uint32_t i = 0; i < nest->n_loads; i++) {
        const struct value *v = &e->p->values[nest->loads[i]];
        const bool is_outer = nest->n_loops == 2 && v->outer;
        if (is_outer == outer && (outer || v->space == SPACE_UNIFORM))
            load_thread(e, nest->loads[i]);
    }
}

/* Scans start anew with every outer block. */
static void reset_scans(struct emit *e, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].kind == OP_SCAN)
            zero_thread(e, &(struct op){.kind = OP_ZERO, .stmt = e->p->ops[i].stmt, .v = e->p->ops[i].v});
}

/* What comes from memory in every step, an element for each thread: tiles, and states of calls of one chunk. */
struct early {
    uint32_t n;
    uint8_t values[PLAN_MAX_LOADS + 8];
};

static struct early find_early(const struct plan *p, const struct nest *nest, uint32_t begin, uint32_t end)
{
    struct early early = {0};
    for (uint32_t i = 0; i < nest->n_loads; i++)
        if (p->values[nest->loads[i]].space == SPACE_THREAD && !(nest->n_loops == 2 && p->values[nest->loads[i]].outer))
            early.values[early.n++] = nest->loads[i];
    for (uint32_t i = begin; i < end; i++)
        if (p->ops[i].kind == OP_INIT && early.n < sizeof early.values)
            early.values[early.n++] = p->ops[i].v;
    return early;
}

/* How many steps to load ahead: as many as registers allow. */
static uint32_t steps_ahead(const struct plan *p, const struct loop *loop, const struct early *early)
{
    uint32_t registers = 0, beside = 0, ahead = STEPS_AHEAD;
    for (uint32_t i = 0; i < early->n; i++)
        registers += plan_held_count(p, &p->values[early->values[i]]);
    for (uint32_t i = 0; i < p->n_values; i++)
        beside += plan_held_count(p, &p->values[i]);
    while (ahead > 2 && ahead * registers + beside / 2 > REGISTERS_AHEAD) /* half of it lives at once */
        ahead /= 2;
    return loop->block > 1 ? 1 : beside > 64 && ahead > 4 ? 4 : ahead; /* held chunks make long steps */
}

typedef LLVMValueRef *register_sets[STEPS_AHEAD][PLAN_MAX_LOADS + 8];

static void make_registers(struct emit *e, const struct early *early, uint32_t ahead, register_sets sets)
{
    for (uint32_t i = 0; i < early->n; i++)
        for (uint32_t step = 0; step < ahead; step++)
            sets[step][i] = step == 0 ? e->registers[early->values[i]] : new_registers(e, early->values[i]);
}

static void free_registers(const struct early *early, uint32_t ahead, register_sets sets)
{
    for (uint32_t i = 0; i < early->n; i++)
        for (uint32_t step = 1; step < ahead; step++)
            free(sets[step][i]);
}

/* The steps that one round of the loop computes. */
struct round {
    const struct early *early;
    uint32_t ahead;
    struct place at[STEPS_AHEAD];
    register_sets sets;
};

static void go_to_step(struct emit *e, struct round *r, uint32_t i)
{
    e->at = r->at[i];
    for (uint32_t k = 0; k < r->early->n; k++)
        e->registers[r->early->values[k]] = r->sets[i][k];
}

/* The loads of all steps, one after the other; one branch for all steps where a tensor may be absent. */
static void load_round(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end)
{
    const struct place outside = e->at;
    for (uint32_t i = 0; i < r->ahead; i++) {
        go_to_step(e, r, i);
        for (uint32_t k = 0; k < nest->n_loads; k++)
            if (memchr(r->early->values, nest->loads[k], r->early->n))
                load_thread(e, nest->loads[k]);
    }
    for (uint32_t o = begin; o < end; o++) {
        const struct op *op = &e->p->ops[o];
        if (op->kind != OP_INIT)
            continue;
        for (uint32_t i = 0; i < r->ahead; i++) {
            go_to_step(e, r, i);
            zero_thread(e, op);
        }
        LLVMValueRef there = op->tile ? present(e, op->tile) : NULL;
        LLVMBasicBlockRef after = there ? begin_if(e, there) : NULL;
        for (uint32_t i = 0; op->tile && i < r->ahead; i++) {
            go_to_step(e, r, i);
            read_state(e, op);
        }
        if (after)
            end_if(e, after);
    }
    e->at = outside;
}

static void inner_loop(struct emit *e, const struct nest *nest, const struct loop *loop, uint32_t begin, uint32_t end)
{
    const struct early early = find_early(e->p, nest, begin, end);
    struct round r = {.early = &early, .ahead = steps_ahead(e->p, loop, &early)};
    const bool whole = loop->trips && loop->trips % r.ahead == 0; /* rounds */
    make_registers(e, &early, r.ahead, r.sets);
    LLVMValueRef base, trips = thread_trips(e, loop), last = sub(e, trips, imm(e, 1));
    const struct place outside = e->at;
    const struct counted l = loop_begin(e, trips, &base);
    for (uint32_t i = 0; i < r.ahead; i++) { /* behind the last step the last one is loaded again, and not used */
        LLVMValueRef step = add(e, base, imm(e, i));
        r.at[i] = place_at(e, nest, loop, whole || !i ? step : smaller(e, step, last));
    }
    load_round(e, &r, nest, begin, end);
    for (uint32_t i = 0; i < r.ahead; i++) {
        LLVMBasicBlockRef after = i && !whole ? begin_if(e, less(e, add(e, base, imm(e, i)), trips)) : NULL;
        e->scanned = 0;
        go_to_step(e, &r, i);
        load_nest(e, nest, false);
        emit_guarded(e, begin, end, GUARD_ALWAYS);
        if (after)
            end_if(e, after);
    }
    go_to_step(e, &r, 0);
    free_registers(&early, r.ahead, r.sets);
    e->at = outside;
    e->scanned = 0;
    loop_end(e, &l, r.ahead);
}

uint32_t emit_thread_nest(struct emit *e, uint32_t begin)
{
    const struct nest *nest = &e->p->nests[e->p->ops[begin].n];
    const struct place outside = e->at;
    uint32_t end = begin;
    while (e->p->ops[end].kind != OP_END)
        end++;
    e->scanned = 0;
    if (nest->n_loops == 1) {
        reset_scans(e, begin + 1, end);
        inner_loop(e, nest, &nest->loops[0], begin + 1, end);
        return end;
    }
    LLVMValueRef index;
    const struct counted l = loop_begin(e, thread_trips(e, &nest->loops[0]), &index);
    e->at = place_at(e, nest, &nest->loops[0], index);
    load_nest(e, nest, true);
    reset_scans(e, begin + 1, end);
    emit_guarded(e, begin + 1, end, GUARD_FIRST);
    inner_loop(e, nest, &nest->loops[1], begin + 1, end);
    emit_guarded(e, begin + 1, end, GUARD_LAST);
    e->at = outside;
    loop_end(e, &l, 1);
    return end;
}
