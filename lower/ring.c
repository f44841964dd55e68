/* lower/ring.c - a nest: one flat loop over the blocks of one or two dimensions, fed by a ring, whose waits and copies are
 * operations of the plan (compiler/pipeline.c). An outer block's copies are issued with its first inner block. */
#include "lower/emit.h"

static const struct loop *inner_loop(const struct nest *nest)
{
    return nest->n_loops == 2 ? &nest->loops[1] : NULL;
}

/* Blocks of a loop inside the chunk at `at`. */
static LLVMValueRef trips(struct emit *e, const struct nest *nest, const struct loop *loop, const struct place *at)
{
    if (loop->trips)
        return imm(e, loop->trips);
    if (loop->dim == TG_CHUNK)
        return at->chunks;
    LLVMValueRef end = at->length;
    if (nest->causal_end && loop == &nest->loops[0])
        end = smaller(e, end, add(e, at->start[TG_LQ], imm(e, e->p->block[TG_LQ])));
    return ceil_div(e, end, loop->block);
}

/* First block of the outer loop: later than 0 when earlier blocks are above the diagonal. */
static LLVMValueRef first_block(struct emit *e, const struct nest *nest)
{
    return nest->causal_begin ? divide(e, e->at.start[TG_LKV], imm(e, nest->loops[0].block)) : imm(e, 0);
}

static LLVMValueRef count_steps(struct emit *e, const struct nest *nest)
{
    LLVMValueRef outer = sub(e, trips(e, nest, &nest->loops[0], &e->at), first_block(e, nest));
    const struct loop *inner = inner_loop(nest);
    if (!inner)
        return outer;
    if (nest->loops[0].dim != TG_CHUNK)
        return mul(e, outer, trips(e, nest, inner, &e->at));
    if (inner->trips)
        return mul(e, outer, imm(e, inner->trips));
    struct place last = e->at; /* all chunks but the last are whole */
    set_chunk(e, &last, sub(e, outer, imm(e, 1)));
    LLVMValueRef whole = ceil_div(e, argument(e, TG_ARG_SIZE, TG_SIZE_CHUNK, 0), inner->block);
    return add(e, mul(e, sub(e, outer, imm(e, 1)), whole), trips(e, nest, inner, &last));
}

static void cursor_new(struct emit *e, struct cursor *c, const struct nest *nest)
{
    LLVMValueRef *all[] = {&c->outer, &c->inner, &c->slot, &c->outer_slot};
    for (int i = 0; i < 4; i++) {
        *all[i] = local(e, e->i32, "cursor");
        set(e, *all[i], i == 0 ? first_block(e, nest) : imm(e, 0));
    }
}

static void place_dim(struct emit *e, struct place *at, const struct nest *nest, const struct loop *loop,
                      LLVMValueRef index)
{
    if (loop->dim == TG_CHUNK)
        set_chunk(e, at, walked_chunk(e, nest, index));
    else
        at->start[loop->dim] = mul(e, index, imm(e, loop->block));
}

static struct place cursor_place(struct emit *e, const struct cursor *c, const struct nest *nest)
{
    struct place at = e->at;
    place_dim(e, &at, nest, &nest->loops[0], get(e, e->i32, c->outer));
    if (inner_loop(nest))
        place_dim(e, &at, nest, inner_loop(nest), get(e, e->i32, c->inner));
    return at;
}

static void wrap(struct emit *e, LLVMValueRef counter, LLVMValueRef limit)
{
    LLVMValueRef next = add(e, get(e, e->i32, counter), imm(e, 1));
    set(e, counter, choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, next, limit, ""), imm(e, 0), next));
}

static void cursor_advance(struct emit *e, const struct cursor *c, const struct nest *nest, const struct place *at)
{
    const struct loop *inner = inner_loop(nest);
    wrap(e, c->slot, imm(e, nest->stages));
    if (!inner) {
        set(e, c->outer, add(e, get(e, e->i32, c->outer), imm(e, 1)));
        return;
    }
    wrap(e, c->inner, trips(e, nest, inner, at));
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, get(e, e->i32, c->inner), imm(e, 0), ""));
    set(e, c->outer, add(e, get(e, e->i32, c->outer), imm(e, 1)));
    wrap(e, c->outer_slot, imm(e, nest->stages));
    end_if(e, after);
}

static void issue(struct emit *e, uint32_t n)
{
    const struct nest *nest = &e->p->nests[n];
    const struct cursor *c = &e->issue[n];
    const struct place at = cursor_place(e, c, nest);
    for (uint32_t outer = 0; outer < 2; outer++) {
        LLVMBasicBlockRef after = NULL;
        for (uint32_t i = 0; i < nest->n_loads; i++) {
            if (e->p->values[nest->loads[i]].outer != (outer == 1))
                continue;
            if (outer && !after)
                after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, get(e, e->i32, c->inner), imm(e, 0), ""));
            emit_copy(e, nest->loads[i], &at, get(e, e->i32, outer ? c->outer_slot : c->slot));
        }
        if (after)
            end_if(e, after);
    }
    cursor_advance(e, c, nest, &at);
}

/* Issues step `step` if there is one; closes a group either way, so that groups count steps. */
static void issue_step(struct emit *e, uint32_t n, LLVMValueRef step)
{
    LLVMBasicBlockRef after = begin_if(e, less(e, step, e->steps[n]));
    issue(e, n);
    end_if(e, after);
    call0(e, "llvm.nvvm.cp.async.commit.group");
}

void emit_prologue(struct emit *e, uint32_t n)
{
    const struct nest *nest = &e->p->nests[n];
    e->steps[n] = count_steps(e, nest);
    cursor_new(e, &e->issue[n], nest);
    for (uint32_t s = 0; s < nest->steps_ahead; s++)
        issue_step(e, n, imm(e, s));
}

void emit_issue(struct emit *e, uint32_t n)
{
    issue_step(e, n, add(e, e->step, imm(e, e->p->nests[n].steps_ahead)));
}

/* The operations of a step; runs of equal guard share one branch. */
static void emit_step(struct emit *e, uint32_t begin, uint32_t end, const struct cursor *c, const struct nest *nest)
{
    for (uint32_t i = begin; i < end;) {
        const uint32_t guard = e->p->ops[i].guard;
        uint32_t same = i;
        while (same < end && e->p->ops[same].guard == guard)
            same++;
        if (guard == GUARD_ALWAYS) {
            emit_ops(e, i, same);
        } else {
            LLVMValueRef inner = get(e, e->i32, c->inner);
            LLVMValueRef at =
                guard == GUARD_FIRST ? imm(e, 0) : sub(e, trips(e, nest, inner_loop(nest), &e->at), imm(e, 1));
            LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, inner, at, ""));
            emit_ops(e, i, same);
            end_if(e, after);
        }
        i = same;
    }
}

uint32_t emit_nest(struct emit *e, uint32_t begin)
{
    const uint32_t n = e->p->ops[begin].n;
    const struct nest *nest = &e->p->nests[n];
    const struct place outside = e->at;
    if (nest->n_loads == 0) /* it has no prologue */
        e->steps[n] = count_steps(e, nest);
    uint32_t end = begin;
    while (e->p->ops[end].kind != OP_END)
        end++;
    struct cursor c;
    cursor_new(e, &c, nest);
    LLVMValueRef step_slot = local(e, e->i32, "step");
    set(e, step_slot, imm(e, 0));
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->context, e->function, "nest");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->context, e->function, "step");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "done");
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    LLVMValueRef step = get(e, e->i32, step_slot);
    LLVMBuildCondBr(e->b, less(e, step, e->steps[n]), body, after);
    LLVMPositionBuilderAtEnd(e->b, body);
    LLVMValueRef tid = e->tid;
    if (e->p->shape.io == TG_F32 && tg_has_one_chunk(e->p->algorithm))
        find_thread(e, opaque(e, tid)); /* hundreds of addresses are not to be kept from step to step */
    e->at = cursor_place(e, &c, nest);
    for (uint32_t i = 0; i < nest->n_loads; i++)
        e->slot[nest->loads[i]] = get(e, e->i32, e->p->values[nest->loads[i]].outer ? c.outer_slot : c.slot);
    for (uint32_t i = 0; i < e->p->n_values; i++) {
        const struct value *v = &e->p->values[i];
        if (v->shared_with >= 0 && v->nest == (int)n)
            e->slot[i] = e->slot[v->shared_with];
    }
    e->step = step;
    emit_step(e, begin + 1, end, &c, nest);
    cursor_advance(e, &c, nest, &e->at);
    set(e, step_slot, add(e, step, imm(e, 1)));
    LLVMBuildBr(e->b, head);
    LLVMMoveBasicBlockAfter(after, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, after);
    find_thread(e, tid);
    e->at = outside;
    return end;
}
