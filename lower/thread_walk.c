/* lower/thread_walk.c - a decode step that walks its tokens, one after the other (plan.h, plan_walks_tokens).
 *
 * Where it holds a state, the threads that have the same value columns share out dqk. Sums over it that need nothing else of
 * the step come first (pipeline.c), and one loop over what is held makes all of them: a group of four rows is read from
 * shared memory right before it is used, for registers are what is short, and the shuffles of all sums are on their way
 * together. What is read of dqk behind that is read again.
 *
 * A state that decays by one number a token is not multiplied by it: what is in registers is the state over the product c of
 * the decays since the last time that c became small. Sums over it are multiplied by c, what is added to it by 1 / c. */
#include "compiler/plan_thread.h"
#include "lower/emit.h"

#include <stdlib.h>

static const double least_apart = 0x1p-20;

static void load_rows_of_sum(struct emit *e, const struct op *op, uint32_t group)
{
    if (plan_is_shared_row(e->p, &e->p->values[op->a]))
        load_fetched_group(e, op->a, group);
    if (op->b != op->a && plan_is_shared_row(e->p, &e->p->values[op->b]))
        load_fetched_group(e, op->b, group);
}

/* What the threads have of the sums, added up in all of them. */
static void add_sharers(struct emit *e, const struct op *sums[], uint32_t n)
{
    for (uint32_t by = 32 / e->p->sharers; by < 32; by *= 2)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t r = 0; r < plan_held_count(e->p, &e->p->values[sums[i]->v]); r++) {
                LLVMValueRef slot = e->registers[sums[i]->v][2 * r], x = get(e, e->f32, slot);
                set(e, slot, LLVMBuildFAdd(e->b, x, shuffle_xor(e, x, by), ""));
            }
}

static void sum_together(struct emit *e, const struct op *sums[], uint32_t n)
{
    const uint32_t dim = plan_shared_dim(e->p);
    for (uint32_t group = 0; group < plan_held_of(e->p, dim); group += SHARED_OUT_GROUP) {
        for (uint32_t i = 0; i < n; i++)
            load_rows_of_sum(e, sums[i], group);
        for (uint32_t row = group; row < group + SHARED_OUT_GROUP; row++)
            for (uint32_t i = 0; i < n; i++) {
                uint32_t held[TG_N_DIMS] = {0};
                held[dim] = row;
                dot_elements(e, sums[i], held, dims_of_dot(e->p, sums[i]) & ~(1u << dim));
            }
    }
    add_sharers(e, sums, n);
}

/* By itself: what there was before counts once. */
void dot_of_sharers(struct emit *e, const struct op *op)
{
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, e->sharer, imm(e, 0), "");
    for (uint32_t r = 0; r < plan_held_count(e->p, &e->p->values[op->v]); r++) {
        LLVMValueRef slot = e->registers[op->v][2 * r];
        set(e, slot, choose(e, is_first, get(e, e->f32, slot), real(e, 0)));
    }
    sum_together(e, &op, 1);
}

/* ---- decays apart ---- */

/* c: the register beside the state's first, of no use to a float. */
static LLVMValueRef apart(struct emit *e, uint32_t v)
{
    return e->registers[v][1];
}

static void multiply(struct emit *e, uint32_t v, LLVMValueRef by)
{
    for (uint32_t r = 0; r < plan_held_count(e->p, &e->p->values[v]); r++) {
        LLVMValueRef slot = e->registers[v][2 * r];
        set(e, slot, LLVMBuildFMul(e->b, get(e, e->f32, slot), by, ""));
    }
}

static void begin_apart(struct emit *e)
{
    for (uint32_t i = 0; i < e->p->n_values; i++)
        if (e->p->values[i].apart)
            set(e, apart(e, i), real(e, 1));
}

static void end_apart(struct emit *e)
{
    for (uint32_t i = 0; i < e->p->n_values; i++)
        if (e->p->values[i].apart)
            multiply(e, i, get(e, e->f32, apart(e, i)));
}

/* ... of a NaN too: it belongs to the state. */
static void decay_apart(struct emit *e, const struct op *op)
{
    LLVMValueRef decay = thread_decay(e, op, 0);
    LLVMValueRef c = LLVMBuildFMul(e->b, get(e, e->f32, apart(e, op->v)), decay, "");
    set(e, apart(e, op->v), c);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildFCmp(e->b, LLVMRealULT, c, real(e, least_apart), ""));
    multiply(e, op->v, c);
    set(e, apart(e, op->v), real(e, 1));
    end_if(e, after);
}

/* What is added to the state over c is over c. */
static void add_apart(struct emit *e, uint32_t i)
{
    const struct op *op = &e->p->ops[i];
    const uint32_t factor = (uint32_t)plan_factor_beside(e->p, op);
    LLVMValueRef before[TG_HELD_EACH], over = call1(e, "llvm.nvvm.rcp.approx.ftz.f", get(e, e->f32, apart(e, op->v)));
    const uint32_t n = plan_held_count(e->p, &e->p->values[factor]);
    for (uint32_t r = 0; r < n; r++)
        before[r] = get(e, e->f32, e->registers[factor][2 * r]);
    multiply(e, factor, over);
    emit_ops(e, i, i + 1);
    for (uint32_t r = 0; r < n; r++)
        set(e, e->registers[factor][2 * r], before[r]);
}

/* A state over c, as it is: copies, for the walk goes on with what there is. */
static void store_apart(struct emit *e, const struct op *op)
{
    const uint32_t n = plan_held_count(e->p, &e->p->values[op->v]);
    LLVMValueRef *const state = e->registers[op->v], *whole = new_registers(e, op->v);
    for (uint32_t r = 0; r < n; r++)
        set(e, whole[2 * r], LLVMBuildFMul(e->b, get(e, e->f32, state[2 * r]), get(e, e->f32, apart(e, op->v)), ""));
    e->registers[op->v] = whole;
    emit_store(e, op);
    e->registers[op->v] = state;
    free(whole);
}

static void emit_apart(struct emit *e, uint32_t i)
{
    const struct op *op = &e->p->ops[i];
    const bool is_apart = e->p->values[op->v].apart, has_rows_apart = e->p->values[op->v].rows_apart;
    if (has_rows_apart && op->kind == OP_DECAY) {
        decay_rows(e, op->v);
        return;
    }
    load_rows_for(e, op);
    if (is_apart && op->kind == OP_DECAY)
        decay_apart(e, op);
    else if (is_apart && op->kind == OP_STORE)
        store_apart(e, op);
    else if (is_apart)
        add_apart(e, i);
    else if (has_rows_apart && op->kind == OP_STORE)
        store_undecayed(e, op);
    else
        emit_ops(e, i, i + 1);
}

/* ---- the walk ---- */

/* The sums with which the step begins, each behind its zero; returns where they have ended. */
static uint32_t first_sums(struct emit *e, uint32_t begin)
{
    const struct op *sums[PLAN_MAX_LOADS];
    uint32_t n = 0, i = begin;
    for (; e->p->ops[i].kind == OP_ZERO && plan_sums_shared(e->p, &e->p->ops[i + 1]) && n < PLAN_MAX_LOADS; i += 2) {
        emit_ops(e, i, i + 1);
        sums[n++] = &e->p->ops[i + 1];
    }
    sum_together(e, sums, n);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t state = 0; state < e->p->n_values; state++)
            if (e->p->values[state].apart && (sums[k]->a == state || sums[k]->b == state))
                multiply(e, sums[k]->v, get(e, e->f32, apart(e, state)));
    return i;
}

void load_rows_for(struct emit *e, const struct op *op)
{
    uint8_t reads[TG_MAX_READS];
    for (uint32_t k = 0, n = plan_reads(e->p, op, reads); k < n; k++)
        if (plan_is_shared_row(e->p, &e->p->values[reads[k]]) && !plan_sums_shared(e->p, op))
            load_fetched(e, reads[k]);
}

/* Numbers that were made before; rows are read where they are used. */
static void load_made(struct emit *e, const struct nest *nest)
{
    for (uint32_t v = 0; v < e->p->n_values; v++)
        if ((nest->early >> v & 1) && e->p->values[v].staged && !plan_is_shared_row(e->p, &e->p->values[v]))
            load_number(e, v);
}

/* What the step reads of its token: operations `begin` to `end`. */
static void load_token(struct emit *e, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->values[e->p->ops[i].v].staged)
            load_fetched(e, e->p->ops[i].v);
        else
            load_thread(e, e->p->ops[i].v);
}

/* The operations are loads, then what is made before the walk, then the walk's. */
void walk_tokens(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    const struct place outside = e->at;
    LLVMValueRef index;
    uint32_t made = begin, walk;
    while (e->p->ops[made].kind == OP_LOAD)
        made++;
    for (walk = made; walk < end && plan_is_early(e->p, &e->p->ops[walk]);)
        walk++;
    await_tokens(e, nest);
    if (walk > made)
        make_early(e, nest, made, walk);
    part_rows(e, walk);
    reset_scans(e, begin, end);
    begin_apart(e);
    const struct counted l = loop_begin(e, thread_trips(e, &nest->loops[0]), &index);
    e->at = place_in_nest(e, nest, &nest->loops[0], index);
    load_token(e, begin, made);
    load_made(e, nest);
    for (uint32_t i = e->p->sharers ? first_sums(e, walk) : walk; i < end; i++)
        emit_apart(e, i);
    e->at = outside;
    e->scanned = 0;
    loop_end(e, &l, 1);
    end_apart(e);
    end_rows(e);
}
