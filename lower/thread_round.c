/* lower/thread_round.c - the inner loop of a thread kernel, several steps a round.
 *
 * How many, and what is loaded for all of them first, says the plan (compiler/rounds.c). */
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "lower/emit.h"

#include <stdlib.h>
#include <string.h>

/* What comes from memory for all steps of a round. */
struct early {
    uint32_t n;
    uint8_t values[PLAN_MAX_AHEAD];
};

static struct early find_early(const struct plan *p, uint32_t begin, uint32_t end)
{
    struct early early = {0};
    for (uint32_t i = begin; i < end; i++)
        if (p->ops[i].flags & OP_AHEAD)
            early.values[early.n++] = p->ops[i].v;
    return early;
}

typedef LLVMValueRef *register_sets[PLAN_STEPS_AHEAD][PLAN_MAX_AHEAD];

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
    const struct loop *loop;
    uint32_t ahead;
    uint32_t from, to; /* of them, those at hand: all, or half of them */
    bool whole;        /* all of them, in every round */
    struct place at[PLAN_STEPS_AHEAD];
    LLVMValueRef address[PLAN_MAX_VALUES]; /* of what the nest loads, in the step before */
    register_sets sets;
};

static void go_to_step(struct emit *e, struct round *r, uint32_t i)
{
    e->at = r->at[i];
    for (uint32_t k = 0; k < r->early->n; k++)
        e->registers[r->early->values[k]] = r->sets[i][k];
}

/* One address is all that a step of the operation needs. */
static bool is_one_move(const struct plan *p, const struct op *op)
{
    return plan_held_count(p, &p->values[op->v]) == plan_together(p, op->tile);
}

/* Addresses of a state in the steps of a round, each from the one before: half the instructions of computing it. */
static void find_states(struct emit *e, const struct round *r, const struct nest *nest, const struct op *op,
                        LLVMValueRef address[PLAN_STEPS_AHEAD])
{
    const uint32_t axis = plan_axis_of(e->p, op->tile, nest->loops[0].dim);
    LLVMValueRef step =
        mul(e, tensor_stride(e, op->tile, 2 + axis), imm64(e, tg_dtype_bytes(plan_memory_dtype(e->p, op->tile))));
    e->at = r->at[r->from];
    address[r->from] = thread_address(e, op->v, op->tile);
    for (uint32_t i = r->from + 1; i < r->to; i++)
        address[i] = byte_offset(e, address[i - 1], step);
}

/* Bytes from a tile's element at one position to that at the next. */
static LLVMValueRef position_bytes(struct emit *e, uint32_t tile)
{
    const uint32_t axis = plan_axis_of(e->p, tile, TG_T);
    return mul(e, tensor_stride(e, tile, 2 + axis), imm64(e, tg_dtype_bytes(plan_memory_dtype(e->p, tile))));
}

/* In a loop over positions every address comes from the one before: two instructions, where computing it takes six. A tile of
 * positions x positions has another axis of them. */
static void load_step(struct emit *e, struct round *r, uint32_t v, uint32_t step)
{
    const uint32_t tile = TG_OPERAND_TILE(e->p->values[v].operand);
    const bool chained = r->whole && plan_is_position(r->loop->dim) && tg_tile_has_t(e->p->algorithm, tile) &&
                         !tg_tile_is_square(e->p->algorithm, tile) && !plan_is_shifted(e->p, tile) &&
                         plan_held_count(e->p, &e->p->values[v]) == plan_together(e->p, tile);
    if (chained)
        e->known[tile] = r->address[v] =
            step ? byte_offset(e, r->address[v], position_bytes(e, tile)) : thread_address(e, v, tile);
    load_thread(e, v);
    e->known[tile] = NULL;
}

/* Where in the early values that is which a shifted one is of the token next to, if the steps are tokens one behind the other;
 * -1: it is loaded. */
static int shifted_from(const struct emit *e, const struct round *r, uint32_t v)
{
    const struct plan *p = e->p;
    const uint32_t tile = TG_OPERAND_TILE(p->values[v].operand);
    const int s = plan_is_shifted(p, tile) ? tg_tile_stmt(p->algorithm, tile) : -1;
    if (s < 0 || !r->whole || TG_OPERAND_AT(p->values[v].operand) != r->loop->dim)
        return -1;
    const tg_operand a = (tg_operand)(TG_OPERAND_TILE(p->algorithm->body[s].a) | r->loop->dim << 8);
    for (uint32_t i = 0; p->algorithm->body[s].a && i < r->early->n; i++)
        if (p->values[r->early->values[i]].operand == a)
            return (int)i;
    return -1;
}

static bool shifts_back(const struct emit *e, uint32_t v)
{
    return tg_tile_shift(e->p->algorithm, TG_OPERAND_TILE(e->p->values[v].operand)).reverse;
}

/* The value at the step, of what was loaded for the one before it, or behind it: only at an end it comes from memory. */
static void load_ahead(struct emit *e, struct round *r, uint32_t v, uint32_t step)
{
    const int from = shifted_from(e, r, v);
    const bool back = from >= 0 && shifts_back(e, v), is_end = step == (back ? r->to - 1 : r->from);
    if (from < 0 || is_end) {
        load_step(e, r, v, step);
        return;
    }
    for (uint32_t i = 0; i < 2 * plan_held_count(e->p, &e->p->values[v]); i++)
        set(e, e->registers[v][i], get(e, e->f32, r->sets[back ? step + 1 : step - 1][from][i]));
}

/* Those that come from the step behind are last, from the last step on. */
static void load_values(struct emit *e, struct round *r, uint32_t begin, uint32_t end, bool back)
{
    for (uint32_t n = 0; n < r->to - r->from; n++) {
        const uint32_t i = back ? r->to - 1 - n : r->from + n;
        go_to_step(e, r, i);
        for (uint32_t o = begin; o < end; o++) {
            const uint32_t v = e->p->ops[o].v;
            if (e->p->ops[o].kind == OP_LOAD && e->p->ops[o].flags & OP_AHEAD &&
                (shifted_from(e, r, v) >= 0 && shifts_back(e, v)) == back)
                load_ahead(e, r, v, i);
        }
    }
}

/* What is loaded in the step itself. */
static void load_uniform(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end,
                         uint32_t step)
{
    if (nest->shared_out)
        load_all_staged(e, nest);
    for (uint32_t i = begin; i < end && !nest->shared_out; i++)
        if (e->p->ops[i].kind == OP_LOAD && e->p->ops[i].guard == GUARD_ALWAYS && !(e->p->ops[i].flags & OP_AHEAD))
            load_step(e, r, e->p->ops[i].v, step);
}

/* The loads of all steps, one after the other; one branch for all steps where a tensor may be absent. */
static void load_round(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end)
{
    const struct place outside = e->at;
    load_values(e, r, begin, end, false);
    load_values(e, r, begin, end, true);
    for (uint32_t o = begin; o < end; o++) {
        const struct op *op = &e->p->ops[o];
        if (op->kind != OP_INIT || !(op->flags & OP_AHEAD))
            continue;
        const bool chained = nest->shared_out && r->whole && op->tile && is_one_move(e->p, op);
        LLVMValueRef address[PLAN_STEPS_AHEAD];
        if (chained)
            find_states(e, r, nest, op, address);
        for (uint32_t i = r->from; i < r->to; i++) {
            go_to_step(e, r, i);
            zero_thread(e, op);
        }
        LLVMValueRef there = op->tile ? present(e, op->tile) : NULL;
        LLVMBasicBlockRef after = there ? begin_if(e, there) : NULL;
        for (uint32_t i = r->from; op->tile && i < r->to; i++) {
            go_to_step(e, r, i);
            e->known[op->tile] = chained ? address[i] : NULL;
            read_state(e, op);
        }
        e->known[op->tile] = NULL;
        if (after)
            end_if(e, after);
    }
    e->at = outside;
}

/* A step that may lie behind the last one; NULL: it does not. */
static LLVMBasicBlockRef begin_step(struct emit *e, LLVMValueRef base, uint32_t i, LLVMValueRef trips, bool whole)
{
    return i && !whole ? begin_if(e, less(e, add(e, base, imm(e, i)), trips)) : NULL;
}

static void store_round(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end,
                        LLVMValueRef base, LLVMValueRef trips)
{
    for (uint32_t o = begin; o < end; o++) {
        const uint32_t tile = e->p->ops[o].tile;
        if (!(e->p->ops[o].flags & OP_BEHIND))
            continue;
        LLVMValueRef there = present(e, tile), address[PLAN_STEPS_AHEAD];
        LLVMBasicBlockRef stored = there ? begin_if(e, there) : NULL;
        const bool chained = r->whole && is_one_move(e->p, &e->p->ops[o]);
        if (chained)
            find_states(e, r, nest, &e->p->ops[o], address);
        for (uint32_t i = r->from; i < r->to; i++) {
            LLVMBasicBlockRef after = begin_step(e, base, i, trips, r->whole);
            go_to_step(e, r, i);
            e->known[tile] = chained ? address[i] : NULL;
            emit_ops(e, o, o + 1);
            if (after)
                end_if(e, after);
        }
        e->known[tile] = NULL;
        if (stored)
            end_if(e, stored);
    }
}

static void compute_round(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end,
                          LLVMValueRef base, LLVMValueRef trips)
{
    for (uint32_t i = r->from; i < r->to; i++) {
        LLVMBasicBlockRef after = begin_step(e, base, i, trips, r->whole);
        e->scanned = 0;
        go_to_step(e, r, i);
        load_uniform(e, r, nest, begin, end, i);
        emit_guarded(e, nest, begin, end, GUARD_ALWAYS);
        if (after)
            end_if(e, after);
    }
    store_round(e, r, nest, begin, end, base, trips);
}

/* Rounds from step `first` on; those that are whole need `ahead` steps before the end. Returns where they have ended. */
static LLVMValueRef emit_rounds(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end,
                                LLVMValueRef first, LLVMValueRef trips)
{
    LLVMValueRef base, last = sub(e, trips, imm(e, 1));
    const struct place outside = e->at;
    struct counted l =
        loop_from(e, first, r->whole && !r->loop->trips ? sub(e, trips, imm(e, r->ahead - 1)) : trips, &base);
    l.rolled = nest->shared_out; /* unrolled, few rounds would take all registers */
    r->from = 0;
    r->to = r->ahead;
    for (uint32_t i = 0; i < r->ahead; i++) { /* behind the last step the last one is loaded again, and not used */
        LLVMValueRef step = add(e, base, imm(e, i));
        r->at[i] = place_in_nest(e, nest, r->loop, r->whole || !i ? step : smaller(e, step, last));
    }
    load_round(e, r, nest, begin, end);
    compute_round(e, r, nest, begin, end, base, trips);
    go_to_step(e, r, 0);
    e->at = outside;
    e->scanned = 0;
    loop_end(e, &l, r->ahead);
    return get(e, e->i32, l.counter);
}

/* The steps at hand are those of one half of a round, which begins at `first`. */
static void take_half(struct emit *e, struct round *r, const struct nest *nest, uint32_t half, LLVMValueRef first)
{
    r->from = half * r->ahead / 2;
    r->to = r->from + r->ahead / 2;
    for (uint32_t i = r->from; i < r->to; i++)
        r->at[i] = place_in_nest(e, nest, r->loop, add(e, first, imm(e, i - r->from)));
}

/* Whole rounds of two halves: while one is computed the other is on its way, so that memory never waits for a thread. */
static void emit_halves(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end)
{
    const uint32_t half = r->ahead / 2;
    const struct place outside = e->at;
    LLVMValueRef base, trips = imm(e, r->loop->trips);
    take_half(e, r, nest, 0, imm(e, 0));
    load_round(e, r, nest, begin, end);
    struct counted l = loop_begin(e, trips, &base);
    l.rolled = true;
    for (uint32_t h = 0; h < 2; h++) {
        LLVMValueRef here = add(e, base, imm(e, h * half)), next = add(e, here, imm(e, half));
        take_half(e, r, nest, !h, h ? smaller(e, next, imm(e, r->loop->trips - half)) : next);
        load_round(e, r, nest, begin, end);
        take_half(e, r, nest, h, here);
        compute_round(e, r, nest, begin, end, base, trips);
        e->at = outside;
    }
    go_to_step(e, r, 0);
    e->at = outside;
    e->scanned = 0;
    loop_end(e, &l, r->ahead);
}

/* Are all states that the nest reads and writes there? NULL: always. */
static LLVMValueRef states_present(struct emit *e, uint32_t begin, uint32_t end)
{
    LLVMValueRef all = NULL;
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &e->p->ops[i];
        const bool is_read = op->kind == OP_INIT && op->tile && op->flags & OP_AHEAD;
        LLVMValueRef there = is_read || op->flags & OP_BEHIND ? present(e, op->tile) : NULL;
        all = there ? both(e, all, there) : all;
    }
    return all;
}

/* By halves where all states are there: a branch around loads or stores would let ptxas move what is to be computed
 * meanwhile before them. */
static void emit_pipelined(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end)
{
    LLVMValueRef there = states_present(e, begin, end);
    LLVMBasicBlockRef otherwise = there ? begin_if(e, there) : NULL;
    emit_halves(e, r, nest, begin, end);
    if (!there)
        return;
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
    end_if(e, after);
    LLVMPositionBuilderAtEnd(e->b, otherwise);
    r->ahead /= 2;
    emit_rounds(e, r, nest, begin, end, imm(e, 0), imm(e, r->loop->trips));
    r->ahead *= 2;
    end_if(e, after);
}

/* The blocks of a round, one after the other. */
static void compute_blocks(struct emit *e, struct round *r, const struct nest *nest, uint32_t begin, uint32_t end)
{
    const uint32_t inner = nest->loops[1].trips;
    for (uint32_t i = 0; i < r->ahead; i++) {
        go_to_step(e, r, i);
        e->scanned = 0;
        if (i % inner == 0)
            emit_guarded(e, nest, begin, end, GUARD_FIRST);
        load_uniform(e, r, nest, begin, end, i);
        emit_guarded(e, nest, begin, end, GUARD_ALWAYS);
        if (i % inner + 1 == inner)
            emit_guarded(e, nest, begin, end, GUARD_LAST);
    }
}

LLVMValueRef emit_thread_blocks(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    const struct early early = find_early(e->p, begin, end);
    struct round r = {.early = &early, .loop = &nest->loops[1], .ahead = nest->steps, .to = nest->steps, .whole = true};
    const struct place outside = e->at;
    LLVMValueRef base, last = sub(e, thread_trips(e, &nest->loops[0]), imm(e, nest->blocks - 1));
    make_registers(e, &early, r.ahead, r.sets);
    const struct counted l = loop_begin(e, last, &base);
    for (uint32_t i = 0; i < r.ahead; i++) {
        e->at = place_in_nest(e, nest, &nest->loops[0], add(e, base, imm(e, i / r.loop->trips)));
        r.at[i] = place_in_nest(e, nest, r.loop, imm(e, i % r.loop->trips));
        e->at = outside;
    }
    load_round(e, &r, nest, begin, end);
    compute_blocks(e, &r, nest, begin, end);
    go_to_step(e, &r, 0);
    e->at = outside;
    e->scanned = 0;
    loop_end(e, &l, nest->blocks);
    free_registers(&early, r.ahead, r.sets);
    return get(e, e->i32, l.counter);
}

/* Of a number of steps that is not known: whole rounds, then one that is not. */
void emit_thread_rounds(struct emit *e, const struct nest *nest, const struct loop *loop, uint32_t begin, uint32_t end)
{
    const struct early early = find_early(e->p, begin, end);
    struct round r = {.early = &early, .loop = loop, .ahead = nest->steps};
    LLVMValueRef trips = thread_trips(e, loop), first = imm(e, 0);
    make_registers(e, &early, r.ahead, r.sets);
    r.whole = r.ahead > 1 && !loop->trips;
    if (r.whole)
        first = emit_rounds(e, &r, nest, begin, end, first, trips);
    r.whole = loop->trips && loop->trips % r.ahead == 0;
    if (nest->halves)
        emit_pipelined(e, &r, nest, begin, end);
    else
        emit_rounds(e, &r, nest, begin, end, first, trips);
    free_registers(&early, r.ahead, r.sets);
}
