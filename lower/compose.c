/* lower/compose.c - composes segments in place (compiler/compose.c): every thread its own elements, segment by segment.
 *
 * Nothing that is read depends on what is computed, but for the entry's own place: some segments are read ahead. */
#include "compiler/plan_thread.h"
#include "lower/emit.h"

#include <stdlib.h>

enum { AHEAD = 4 };

/* Of a vector beside the state one thread takes care where it lacks the threads' dimension, else one thread block; NULL:
 * all have elements of their own. */
static LLVMValueRef is_mine(struct emit *e, const struct op *op)
{
    LLVMValueRef first = is_first(e, op->tile);
    if (plan_has_dim(&e->p->values[op->v], e->p->thread_dim))
        return first;
    return both(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""), first);
}

/* The sum of the decays of a segment's chunks, the same in all lanes: there is a next one, so it has all of them, but where the
 * first one is the sequence's last. */
static LLVMValueRef sum_of_decays(struct emit *e, const struct op *op, LLVMValueRef first)
{
    const struct value *decay = &e->p->values[op->a];
    const struct nest order = {.reverse = e->p->algorithm->body[op->stmt].flags & TG_REVERSE};
    LLVMValueRef sum = real(e, 0);
    struct place at = e->at;
    const uint32_t length = e->p->composes;
    for (uint32_t i = 0; i < length; i += 32) {
        LLVMValueRef step = add(e, e->lane, imm(e, i)),
                     counts = i + 32 <= length ? NULL : less(e, step, imm(e, length)),
                     chunk = walked_chunk(e, &order, add(e, first, counts ? choose(e, counts, step, imm(e, 0)) : step));
        if (order.reverse)
            counts = both(e, counts, less(e, chunk, e->at.chunks));
        at.start[TG_CHUNK] = order.reverse ? smaller(e, chunk, sub(e, e->at.chunks, imm(e, 1))) : chunk;
        LLVMValueRef from =
            tensor_address(e, decay->operand, TG_OPERAND_TILE(decay->operand), &at, decay->dims, NULL, NULL);
        LLVMValueRef x = LLVMBuildLoad2(e->b, e->f32, from, "");
        sum = LLVMBuildFAdd(e->b, sum, counts ? choose(e, counts, x, real(e, 0)) : x, "");
    }
    for (uint32_t lane = 1; lane < 32; lane *= 2)
        sum = LLVMBuildFAdd(e->b, sum, shuffle_xor(e, sum, lane), "");
    return sum;
}

/* What the segment makes of zero, into the value's registers, and the sum of its decays; if there is a next one. */
static void read_segment(struct emit *e, const struct op *op, LLVMValueRef segment, LLVMValueRef sum)
{
    LLVMValueRef first = mul(e, segment, imm(e, e->p->composes)), mine = is_mine(e, op);
    LLVMBasicBlockRef after = begin_if(e, less(e, add(e, first, imm(e, e->p->composes)), e->at.chunks));
    if (op->a != op->v)
        set(e, sum, sum_of_decays(e, op, first));
    const struct place outside = e->at;
    go_to_entry(e, segment);
    LLVMBasicBlockRef done = mine ? begin_if(e, mine) : NULL;
    read_state(e, op);
    if (done)
        end_if(e, done);
    e->at = outside;
    end_if(e, after);
}

static void write_segment(struct emit *e, const struct op *op, LLVMValueRef segment)
{
    const struct place outside = e->at;
    go_to_entry(e, segment);
    emit_store(e, op);
    e->at = outside;
}

/* A segment after the last is none. Behind the last one nothing is wanted. */
void compose_segments(struct emit *e, const struct op *op)
{
    const uint32_t n = plan_held_count(e->p, &e->p->values[op->v]);
    LLVMValueRef *const state = e->registers[op->v], *made[AHEAD], sum[AHEAD], segment;
    for (uint32_t i = 0; i < AHEAD; i++) {
        made[i] = new_registers(e, op->v);
        sum[i] = local(e, e->f32, "decays");
        set(e, sum[i], real(e, 0));
    }
    LLVMValueRef chunks =
        choose(e, less(e, imm(e, 0), e->at.chunks), e->at.chunks, imm(e, 1)); /* an empty sequence has a segment */
    LLVMValueRef count = ceil_div(e, chunks, e->p->composes);
    const struct counted l = loop_begin(e, count, &segment);
    for (uint32_t i = 0; i < AHEAD; i++) {
        e->registers[op->v] = made[i];
        read_segment(e, op, add(e, segment, imm(e, i)), sum[i]);
    }
    e->registers[op->v] = state;
    for (uint32_t i = 0; i < AHEAD; i++) {
        LLVMBasicBlockRef after = begin_if(e, less(e, add(e, segment, imm(e, i)), count));
        write_segment(e, op, add(e, segment, imm(e, i)));
        LLVMValueRef decay = exp2_approx(e, get(e, e->f32, sum[i]));
        for (uint32_t r = 0; r < n; r++)
            set(e, state[2 * r], fma_of(e, get(e, e->f32, state[2 * r]), decay, get(e, e->f32, made[i][2 * r])));
        end_if(e, after);
    }
    loop_end(e, &l, AHEAD);
    for (uint32_t i = 0; i < AHEAD; i++)
        free(made[i]);
}
