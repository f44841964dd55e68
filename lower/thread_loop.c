/* lower/thread_loop.c - loops of kernels in which a thread has an element.
 *
 * A nest of two loops is two loops; the inner one goes by rounds of several steps (thread_round.c). */
#include "compiler/plan_thread.h"
#include "lower/emit.h"

LLVMValueRef thread_trips(struct emit *e, const struct loop *loop)
{
    if (loop->trips)
        return imm(e, loop->trips);
    if (loop->dim == TG_BATCH)
        return argument(e, TG_ARG_SIZE, TG_SIZE_BATCH, 0);
    return ceil_div(e, loop->dim == TG_CHUNK ? e->at.chunks : e->at.length, loop->block);
}

struct place place_in_nest(struct emit *e, const struct nest *nest, const struct loop *loop, LLVMValueRef index)
{
    struct place at = e->at;
    if (loop->dim == TG_CHUNK && e->p->thread_dim != TG_CHUNK) {
        set_chunk(e, &at, walked_chunk(e, nest, index));
        return at;
    }
    at.start[loop->dim] = mul(e, index, imm(e, loop->block));
    if (loop->dim == TG_BATCH && e->p->shape.packed)
        set_sequence(e, &at, index);
    if (loop->dim == TG_BATCH && e->p->shape.pooled)
        at.chunks = choose(e, is_padding(e, index), imm(e, 0), at.chunks);
    return at;
}

void emit_guarded(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end, uint32_t guard)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].guard == guard && e->p->ops[i].kind != OP_INIT &&
            e->p->ops[i].kind != OP_LOAD /* read early */ && !plan_is_shared_out(e->p, nest, &e->p->ops[i]) &&
            !(e->p->ops[i].flags & OP_BEHIND))
            emit_ops(e, i, i + 1);
}

void load_all_staged(struct emit *e, const struct nest *nest)
{
    for (uint32_t i = 0; i < e->p->n_values; i++)
        if (is_staged_in(e, i, nest))
            load_staged(e, i, e->at.start[nest->loops[0].dim]);
}

/* Of a nest of two loops: once for each block of the outer one. */
static void load_outer(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    if (nest->shared_out)
        load_all_staged(e, nest);
    for (uint32_t i = begin; i < end && !nest->shared_out; i++)
        if (e->p->ops[i].kind == OP_LOAD && e->p->ops[i].guard == GUARD_FIRST)
            load_thread(e, e->p->ops[i].v);
}

/* Scans start anew with every outer block. */
void reset_scans(struct emit *e, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].kind == OP_SCAN)
            zero_thread(e, &(struct op){.kind = OP_ZERO, .stmt = e->p->ops[i].stmt, .v = e->p->ops[i].v});
}

/* Is there anything in the nest that differs from thread to thread? */
static bool has_own_work(const struct plan *p, const struct nest *nest, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (!plan_is_shared_out(p, nest, &p->ops[i]))
            return true;
    return false;
}

/* What is left of a nest that has been shared out: no step of it needs another thread, so threads outside of the tensor
 * stay outside of the loop. */
static void own_loop(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    if (!has_own_work(e->p, nest, begin, end))
        return;
    const uint32_t held[TG_N_DIMS] = {0}; /* the first: what a thread has side by side is inside, or none of it */
    LLVMValueRef is_inside =
        inside(e, &e->at, e->p->thread_dim, e->p->block[e->p->thread_dim], thread_index(e, e->p->thread_dim, held));
    LLVMBasicBlockRef after = is_inside ? begin_if(e, is_inside) : NULL;
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].flags & OP_ONCE)
            emit_ops(e, i, i + 1);
    emit_thread_rounds(e, nest, &nest->loops[0], begin, end);
    if (after)
        end_if(e, after);
}

uint32_t emit_thread_nest(struct emit *e, uint32_t begin)
{
    const struct nest *nest = &e->p->nests[e->p->ops[begin].n];
    const struct place outside = e->at;
    uint32_t end = begin;
    while (e->p->ops[end].kind != OP_END)
        end++;
    e->scanned = 0;
    if (nest->shared_out) {
        share_out(e, nest, begin + 1, end);
        own_loop(e, nest, begin + 1, end);
        load_kept(e, nest);
        return end;
    }
    if (plan_walks_tokens(e->p, nest)) {
        walk_tokens(e, nest, begin + 1, end);
        return end;
    }
    if (nest->n_loops == 1) {
        reset_scans(e, begin + 1, end);
        emit_thread_rounds(e, nest, &nest->loops[0], begin + 1, end);
        return end;
    }
    LLVMValueRef index, first = nest->blocks ? emit_thread_blocks(e, nest, begin + 1, end) : imm(e, 0);
    const struct counted l = loop_from(e, first, thread_trips(e, &nest->loops[0]), &index);
    e->at = place_in_nest(e, nest, &nest->loops[0], index);
    load_outer(e, nest, begin + 1, end);
    reset_scans(e, begin + 1, end);
    emit_guarded(e, nest, begin + 1, end, GUARD_FIRST);
    emit_thread_rounds(e, nest, &nest->loops[1], begin + 1, end);
    emit_guarded(e, nest, begin + 1, end, GUARD_LAST);
    e->at = outside;
    loop_end(e, &l, 1);
    return end;
}
