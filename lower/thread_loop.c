/* lower/thread_loop.c - loops of kernels in which a thread has an element.
 *
 * A nest of two loops is two loops. The inner one, when it goes one element at a time, loads several steps ahead of
 * computing them: that is what hides the latency of memory here. */
#include "lower/emit.h"

#include <stdlib.h>

enum { STEPS_AHEAD = 32, REGISTERS_AHEAD = 160 };

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

static void load_nest(struct emit *e, const struct nest *nest, bool outer)
{
    for (uint32_t i = 0; i < nest->n_loads; i++)
        if (nest->n_loops < 2 || e->p->values[nest->loads[i]].outer == outer)
            load_thread(e, nest->loads[i]);
}

/* Scans start anew with every outer block. */
static void reset_scans(struct emit *e, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].kind == OP_SCAN)
            zero_thread(e, &(struct op){.kind = OP_ZERO, .stmt = e->p->ops[i].stmt, .v = e->p->ops[i].v});
}

/* What is read from memory in every step: tiles, and states of calls of one chunk. */
struct early {
    uint32_t n;
    uint8_t values[PLAN_MAX_LOADS + 8];
    bool outer[PLAN_MAX_LOADS + 8]; /* read by the outer loop */
};

static struct early find_early(const struct plan *p, const struct nest *nest, uint32_t begin, uint32_t end)
{
    struct early early = {0};
    for (uint32_t i = 0; i < nest->n_loads; i++) {
        early.outer[early.n] = nest->n_loops == 2 && p->values[nest->loads[i]].outer;
        early.values[early.n++] = nest->loads[i];
    }
    for (uint32_t i = begin; i < end; i++)
        if (p->ops[i].kind == OP_INIT && early.n < sizeof early.values)
            early.values[early.n++] = p->ops[i].v;
    return early;
}

static void load_step(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    load_nest(e, nest, false);
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].kind == OP_INIT)
            init_thread(e, &e->p->ops[i]);
}

/* How many steps to load ahead: as many as registers allow. */
static uint32_t steps_ahead(const struct plan *p, const struct loop *loop, const struct early *early)
{
    uint32_t registers = 0, beside = 0, ahead = STEPS_AHEAD;
    for (uint32_t i = 0; i < early->n; i++)
        if (!early->outer[i])
            registers += plan_held_count(p, &p->values[early->values[i]]);
    for (uint32_t i = 0; i < p->n_values; i++)
        beside += plan_held_count(p, &p->values[i]);
    while (ahead > 2 && ahead * registers + beside > REGISTERS_AHEAD)
        ahead /= 2;
    return loop->block > 1 ? 1 : ahead;
}

typedef LLVMValueRef *register_sets[STEPS_AHEAD][PLAN_MAX_LOADS + 8];

static void use_registers(struct emit *e, const struct early *early, uint32_t step, register_sets sets)
{
    for (uint32_t i = 0; i < early->n; i++)
        e->registers[early->values[i]] = sets[step][i];
}

static void make_registers(struct emit *e, const struct early *early, uint32_t ahead, register_sets sets)
{
    for (uint32_t i = 0; i < early->n; i++)
        for (uint32_t step = 0; step < ahead; step++)
            sets[step][i] = step == 0 ? e->registers[early->values[i]] : early->outer[i] ? sets[0][i] : new_registers(e, early->values[i]);
}

static void free_registers(const struct early *early, uint32_t ahead, register_sets sets)
{
    for (uint32_t i = 0; i < early->n; i++)
        for (uint32_t step = 1; step < ahead && !early->outer[i]; step++)
            free(sets[step][i]);
}

static void inner_loop(struct emit *e, const struct nest *nest, const struct loop *loop, uint32_t begin, uint32_t end)
{
    const struct early early = find_early(e->p, nest, begin, end);
    const uint32_t ahead = steps_ahead(e->p, loop, &early);
    register_sets sets;
    make_registers(e, &early, ahead, sets);
    LLVMValueRef base, trips = thread_trips(e, loop), last = sub(e, trips, imm(e, 1));
    const struct place outside = e->at;
    const struct counted l = loop_begin(e, trips, &base);
    struct place at[STEPS_AHEAD];
    for (uint32_t i = 0; i < ahead; i++) { /* behind the last step the last one is loaded again, and not used */
        at[i] = e->at = place_at(e, nest, loop, i ? smaller(e, add(e, base, imm(e, i)), last) : base);
        use_registers(e, &early, i, sets);
        load_step(e, nest, begin, end);
        e->at = outside;
    }
    for (uint32_t i = 0; i < ahead; i++) {
        LLVMBasicBlockRef after = i ? begin_if(e, less(e, add(e, base, imm(e, i)), trips)) : NULL;
        e->at = at[i];
        e->scanned = 0;
        use_registers(e, &early, i, sets);
        emit_guarded(e, begin, end, GUARD_ALWAYS);
        if (after)
            end_if(e, after);
    }
    use_registers(e, &early, 0, sets);
    free_registers(&early, ahead, sets);
    e->at = outside;
    e->scanned = 0;
    loop_end(e, &l, ahead);
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
