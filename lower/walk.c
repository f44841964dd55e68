/* lower/walk.c - a kernel on warpgroups: its roles, and the interpreter of what each of them executes (compiler/order.c has the
 * order, and the plan all that runs). One function an operation; this file has those of the walk itself: the loop over the
 * chunks, the tiles of a group, what is waited for. */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "lower/walk.h"

#include <stdlib.h>
#include <string.h>

/* ---- the loop over the chunks ---- */

/* What the ring's round has come to: twice its stages, so that stage and parity are in one register. */
static void begin_consumer_step(struct emit *e, struct walk *w)
{
    const uint32_t stages = e->p->nests[0].stages;
    w->now = get(e, e->i32, w->round);
    LLVMValueRef second = less(e, imm(e, stages - 1), w->now);
    w->stage = choose(e, second, sub(e, w->now, imm(e, stages)), w->now);
    w->parity = choose(e, second, imm(e, 1), imm(e, 0));
}

/* Where the step's values are. */
static void find_slots(struct emit *e, struct walk *w)
{
    const struct plan *p = e->p;
    for (uint32_t i = 0; i < p->n_values; i++)
        e->slot[i] = plan_is_of_warp(&p->values[i])       ? warp_of_all(e, w)
                     : p->values[i].space == SPACE_VECTOR ? w->stage
                                                          : NULL;
    const bool as_stage =
        p->nests[0].stages == 2 && (p->segment % 2 == 0 || p->nests[0].reverse); /* the same in turn */
    w->buffer = plan_buffers(p) == 1 ? imm(e, 0) : as_stage ? w->stage : walk_buffer(e, w->step);
    w->third = modulo(e, w->step, imm(e, 3));
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_carried(&p->values[i]))
            e->slot[i] = walk_carried_slot(e, w, w->buffer);
}

/* Where the vectors of the head are, which what follows is of. */
static void find_own_slots(struct emit *e, const struct walk *w)
{
    const struct plan *p = e->p;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].by_head && p->values[i].space == SPACE_VECTOR)
            e->slot[i] = add(e, mul(e, opaque(e, w->stage), imm(e, p->heads)), e->at.start[TG_MEMBER]);
}

void walk_enter_head(struct emit *e, struct walk *w, uint32_t head)
{
    w->column_head = head;
    e->at.start[TG_MEMBER] = imm(e, head);
    find_own_slots(e, w);
}

static void begin_chunks(struct emit *e, struct walk *w, const struct op *op)
{
    const bool loads = op->role == ROLE_LOAD;
    if (e->p->rests && !loads)
        walk_begin_rest(e, w);
    w->loop = walk_begin(e, &w->step);
    w->in_loop = true;
    if (loads)
        producer_begin_step(e, w);
    else
        begin_consumer_step(e, w);
}

struct counted walk_begin(struct emit *e, LLVMValueRef *step)
{
    return loop_from(e, walk_first_step(e),
                     plan_ends_early(e->p) ? walk_last_start(e) : end_of_walk(e, &e->p->nests[0]), step);
}

static void walk_end(struct emit *e, const struct counted *l)
{
    if (!e->p->segment) {
        loop_end(e, l, 1);
        return;
    }
    LLVMValueRef next = add(e, get(e, e->i32, l->counter), imm(e, 1)); /* its end needs no register of its own */
    set(e, l->counter, next);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, modulo(e, next, imm(e, e->p->segment)), imm(e, 0), ""),
                    l->after, l->head);
    LLVMMoveBasicBlockAfter(l->after, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, l->after);
}

static void end_chunks(struct emit *e, struct walk *w, const struct op *op)
{
    w->in_loop = false;
    if (op->role == ROLE_LOAD) {
        producer_end_step(e, w);
        walk_end(e, &w->loop);
        return;
    }
    e->tid = w->outside.tid, e->lane = w->outside.lane, e->warp = w->outside.warp;
    e->quad_row = w->outside.quad_row, e->quad_column = w->outside.quad_column;
    LLVMValueRef next = add(e, w->now, imm(e, 1)), rounds = imm(e, 2 * e->p->nests[0].stages);
    set(e, w->round, choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, next, rounds, ""), imm(e, 0), next));
    if (e->p->rests)
        walk_end_at_rest(e, w);
    walk_end(e, &w->loop);
    w->end = e->p->segment ? get(e, e->i32, w->loop.counter) : end_of_walk(e, &e->p->nests[0]);
    w->step = w->end;
    w->buffer = NULL;
}

/* ---- waits, barriers ---- */

/* The thread that issued the stores waits for them: until they have read shared memory, or are done. */
static void await_stores(struct emit *e, bool read_only)
{
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    map_store_wait(e, read_only);
    end_if(e, after);
    if (read_only)
        sync_warp(e);
}

/* The barrier of the tiles that are made in the stage, or of the output that is put there; behind the last stage's is that of what is cleared. */
LLVMValueRef made_address(struct emit *e, LLVMValueRef stage)
{
    return shared_address(e, add(e, imm(e, e->p->made_offset), mul(e, stage, imm(e, 8))));
}

/* A stage of the ring: from here on the step is this one. */
static void await_stage(struct emit *e, struct walk *w, bool empty)
{
    mbarrier_wait(e, barrier_address(e, w->stage, empty), w->parity);
    set_chunk(e, &e->at, walked_chunk(e, &e->p->nests[0], w->step));
}

/* Of the barrier of a matrix that has one stage, which has a phase in every step: the lowest bit of the steps since the role began, and
 * the other one where the role waits until what it was in the step before is left. */
static LLVMValueRef own_parity(struct emit *e, const struct walk *w, const struct op *op)
{
    const uint32_t stages = e->p->nests[0].stages;
    LLVMValueRef rounds = LLVMBuildXor(e->b, w->parity, imm(e, 1), ""),
                 steps = op->role == ROLE_LOAD ? add(e, w->stage, mul(e, rounds, imm(e, stages))) : w->now,
                 odd = LLVMBuildAnd(e->b, steps, imm(e, 1), "");
    return op->sync == SYNC_LEFT ? LLVMBuildXor(e->b, odd, imm(e, 1), "") : odd;
}

/* Where the warp that loads tells that the matrix is there. */
static LLVMValueRef told_barrier(struct emit *e, uint32_t v)
{
    return imm(e, ALL_GROUPS + e->p->groups + e->p->values[v].own_stage);
}

static uint32_t told_threads(const struct plan *p)
{
    return 128 * p->groups + 32 * p->roles[ROLE_LOAD].warps;
}

LLVMValueRef own_barrier(struct emit *e, uint32_t v, bool left)
{
    return shared_address(e, imm(e, e->p->own_offset + 16 * (e->p->values[v].own_stage - 1U) + (left ? 8 : 0)));
}

static void walk_await(struct emit *e, struct walk *w, const struct op *op)
{
    switch (op->sync) {
    case SYNC_PRODUCT:
        await_product(e, w, op->v, op->n);
        break;
    case SYNC_PART:
        wgmma_wait(e, NULL, 0, 1);
        break;
    case SYNC_STATE:
        await_product(e, w, e->p->state, 0);
        break;
    case SYNC_FULL:
    case SYNC_EMPTY:
        await_stage(e, w, op->sync == SYNC_EMPTY);
        break;
    case SYNC_LANDED:
        mbarrier_wait(e, landed_address(e, w->stage), LLVMBuildXor(e->b, w->parity, imm(e, 1), ""));
        break;
    case SYNC_LOADED:
    case SYNC_LEFT:
        mbarrier_wait(e, own_barrier(e, op->v, op->sync == SYNC_LEFT), own_parity(e, w, op));
        break;
    case SYNC_TOLD:
        named_barrier(e, told_barrier(e, op->v), told_threads(e->p));
        break;
    case SYNC_OPEN:
        cast_wait(e, w->stage, w->parity);
        break;
    case SYNC_PUT:
    case SYNC_MADE:
        mbarrier_wait(e, made_address(e, w->stage), w->parity);
        break;
    case SYNC_CLEARED:
        walk_await_cleared(e);
        break;
    case SYNC_TURN:
        turn_await(e, w);
        break;
    default:
        if (op->role == ROLE_LOAD)
            map_store_wait(e, op->sync == SYNC_READ);
        else
            await_stores(e, op->sync == SYNC_READ);
        break;
    }
}

/* Is the step of the walk, or of the segment, behind another? */
static LLVMValueRef is_behind(struct emit *e, const struct walk *w)
{
    const uint32_t segment = e->p->segment;
    const struct nest *nest = &e->p->nests[0];
    LLVMValueRef of_all = less(e, nest->reverse ? first_of_walk(e, nest) : imm(e, 0), w->step);
    if (!w->in_loop || !segment)
        return of_all;
    LLVMValueRef inside = LLVMBuildICmp(e->b, LLVMIntNE, modulo(e, w->step, imm(e, segment)), imm(e, 0), "");
    return nest->reverse ? both(e, inside, of_all) : inside;
}

/* The thread that stores leaves the stage of the step before, which it had not left with the others. */
static void leave_behind(struct emit *e, struct walk *w)
{
    LLVMValueRef last = imm(e, e->p->nests[0].stages - 1),
                 is_first = LLVMBuildICmp(e->b, LLVMIntEQ, w->stage, imm(e, 0), "");
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    map_store_wait(e, true);
    LLVMBasicBlockRef left = begin_if(e, is_behind(e, w));
    mbarrier_arrive(e, barrier_address(e, choose(e, is_first, last, sub(e, w->stage, imm(e, 1))), true));
    end_if(e, left);
    end_if(e, after);
    sync_warp(e);
}

static void walk_arrive(struct emit *e, struct walk *w, const struct op *op)
{
    if (op->sync == SYNC_BEHIND) {
        leave_behind(e, w);
        return;
    }
    if (op->sync == SYNC_OPEN)
        cast_open(e, w->stage);
    else if (op->sync == SYNC_PUT || op->sync == SYNC_MADE)
        mbarrier_arrive(e, made_address(e, w->stage));
    else if (op->sync == SYNC_TOLD)
        named_barrier_arrive(e, told_barrier(e, op->v), told_threads(e->p));
    else if (op->sync == SYNC_LOADED || op->sync == SYNC_LEFT)
        mbarrier_arrive(e, own_barrier(e, op->v, op->sync == SYNC_LEFT));
    else if (op->sync == SYNC_READY)
        cluster_ready(e, w, op);
    else if (op->sync == SYNC_TURN)
        turn_pass(e, w);
    else
        mbarrier_arrive(e, barrier_address(e, w->stage, op->sync == SYNC_EMPTY));
}

static void walk_barrier(struct emit *e, struct walk *w, const struct op *op)
{
    const uint32_t all = 128 * e->p->groups;
    if (op->flags & OP_CAREFUL)
        w->across_bad = named_barrier_any(e, imm(e, ALL_GROUPS), all, across_sees(e, w));
    else if (op->sync == SYNC_GROUPS)
        named_barrier(e, imm(e, ALL_GROUPS), all);
    else
        named_barrier(e, add(e, w->group, imm(e, 2)), 128);
}

static void walk_fence(struct emit *e, struct walk *w, const struct op *op)
{
    (void)w, (void)op;
    fence_async(e);
}

/* In a chunk threads are found anew in each, and known as they were behind it. */
static void walk_forget(struct emit *e, struct walk *w, const struct op *op)
{
    if (op->n & FORGET_THREAD)
        find_thread(e, opaque(e, e->tid));
    if (op->n == FORGET_BASES) {
        w->outside = (struct thread_place){e->tid, e->lane, e->warp, e->quad_row, e->quad_column};
        find_thread(e, e->tid);
    }
    if (op->n & FORGET_BASES)
        emit_bases(e, opaque(e, w->batch), opaque(e, w->head));
    if (op->n == FORGET_BASES)
        find_slots(e, w);
    if (op->n & FORGET_CHUNK)
        set_chunk(e, &e->at, opaque(e, e->at.start[TG_CHUNK]));
}

/* ---- operations that are several, by where their value is ---- */

static void walk_load(struct emit *e, struct walk *w, const struct op *op)
{
    if (op->role == ROLE_LOAD)
        producer_load(e, w, op);
    else if (e->p->values[op->v].space == SPACE_CHANNEL)
        walk_load_channel(e, op);
    else
        emit_load(e, op->v);
}

/* The first head's begins the sum. */
static void add_of_head(struct emit *e, const struct walk *w, LLVMValueRef slot, LLVMValueRef x)
{
    set(e, slot, w->column_head ? LLVMBuildFAdd(e->b, get(e, e->f32, slot), x, "") : x);
}

/* ... of accumulators times what each of their columns is to be multiplied by. */
static void walk_copy_weighted(struct emit *e, struct walk *w, const struct op *op, const struct plan_weight *weight)
{
    LLVMValueRef by[WALK_TILE / 4];
    for (uint32_t c = 0; c < WALK_TILE / 4; c++)
        by[c] = walk_weight(e, weight, tile_column(e, c));
    for (uint32_t r = 0; r < walk_registers(e->p, &e->p->values[op->v]); r++) {
        LLVMValueRef slot = e->registers[op->v][r], x = get(e, e->f32, e->registers[weight->of][r]),
                     y = by[r / 4 * 2 + r % 2];
        set(e, slot, w->column_head ? fma_of(e, x, y, get(e, e->f32, slot)) : LLVMBuildFMul(e->b, x, y, ""));
    }
}

static void walk_copy(struct emit *e, struct walk *w, const struct op *op)
{
    struct plan_weight weight;
    if (plan_find_weight(e->p, op->a, &weight)) {
        walk_copy_weighted(e, w, op, &weight);
        return;
    }
    for (uint32_t r = 0; r < walk_registers(e->p, &e->p->values[op->v]); r++)
        add_of_head(e, w, e->registers[op->v][r], get(e, e->f32, e->registers[op->a][r]));
}

/* Of a computed tile what the head has, to the sum over them. */
static void walk_total(struct emit *e, struct walk *w, const struct op *op)
{
    for (uint32_t r = 0; r < walk_registers(e->p, &e->p->values[op->v]); r++)
        add_of_head(e, w, sum_slots(e, op->v)[r], get(e, e->f32, e->registers[op->v][r]));
}

static void walk_addend(struct emit *e, struct walk *w, const struct op *op)
{
    (void)e;
    w->addend = op;
}

static void walk_make(struct emit *e, struct walk *w, const struct op *op)
{
    if (e->p->values[op->v].space == SPACE_VECTOR)
        walk_positions_vector(e, w, op);
    else if (e->p->values[op->v].space == SPACE_UNIFORM)
        emit_map(e, op);
    else
        walk_map(e, w, op);
}

static void walk_dot(struct emit *e, struct walk *w, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    emit_walk_op *const whole = op->flags & OP_OF_PRODUCT ? walk_state_sum : walk_tile_sum;
    emit_walk_op *const late = v->n_dims ? walk_column_sums : whole;
    emit_walk_op *const parts = plan_is_gathered(v) ? walk_gather : v->late ? late : walk_row_sums;
    (plan_is_carried(v) ? walk_add_carried : v->space == SPACE_ROWS ? walk_state_rows : parts)(e, w, op);
}

static void walk_to_memory(struct emit *e, struct walk *w, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    emit_walk_op *const vector = plan_is_carried(v)       ? walk_store_carried
                                 : v->space == SPACE_ROWS ? walk_store_state_rows
                                 : plan_is_gathered(v)    ? walk_store_gathered
                                                          : walk_store_sum;
    emit_walk_op *const tile = op->role == ROLE_LOAD ? producer_store : walk_store;
    (v->space == SPACE_FRAGMENT ? tile : vector)(e, w, op);
}

/* ---- the interpreter ---- */

static emit_walk_op *const operations[OP_N_KINDS] = {[OP_LOAD] = walk_load,
                                                     [OP_INIT] = walk_init,
                                                     [OP_ENTER] = walk_enter,
                                                     [OP_LEAVE] = walk_leave,
                                                     [OP_MEET] = walk_meet,
                                                     [OP_START] = walk_start,
                                                     [OP_KEEP] = walk_keep,
                                                     [OP_NEST] = begin_chunks,
                                                     [OP_END] = end_chunks,
                                                     [OP_CLEAR] = walk_clear,
                                                     [OP_FETCH] = walk_fetch,
                                                     [OP_CONTRACT] = walk_product,
                                                     [OP_DOT] = walk_dot,
                                                     [OP_ADDEND] = walk_addend,
                                                     [OP_MAP] = walk_make,
                                                     [OP_BEGIN] = walk_begin_sum,
                                                     [OP_SCALE] = walk_scale,
                                                     [OP_COPY] = walk_copy,
                                                     [OP_DECAY] = walk_decay,
                                                     [OP_PUT] = walk_put,
                                                     [OP_SEND] = cluster_send,
                                                     [OP_RECEIVE] = cluster_receive,
                                                     [OP_STORE] = walk_to_memory,
                                                     [OP_EXPECT] = producer_expect,
                                                     [OP_AWAIT] = walk_await,
                                                     [OP_ARRIVE] = walk_arrive,
                                                     [OP_BARRIER] = walk_barrier,
                                                     [OP_FENCE] = walk_fence,
                                                     [OP_FORGET] = walk_forget,
                                                     [OP_ADD_UP] = walk_add_up,
                                                     [OP_TOTAL] = walk_total,
                                                     [OP_REST] = walk_rest,
                                                     [OP_TAKE] = walk_take,
                                                     [OP_PASS] = walk_pass,
                                                     [OP_PUT_OFF] = walk_put_off,
                                                     [OP_CATCH_UP] = walk_catch_up,
                                                     [OP_FACTORS] = producer_factors,
                                                     [OP_MULTIPLY] = producer_multiply};

/* What neighbours under one guard share. */
struct guarded {
    LLVMBasicBlockRef after;
    struct place here;
    LLVMValueRef buffer, third;
};

/* Are thread blocks fewer than three quarters of the GPU's multiprocessors? */
static LLVMValueRef are_few(struct emit *e)
{
    LLVMValueRef blocks =
        mul(e, call0(e, "llvm.nvvm.read.ptx.sreg.nctaid.x"),
            mul(e, call0(e, "llvm.nvvm.read.ptx.sreg.nctaid.y"), call0(e, "llvm.nvvm.read.ptx.sreg.nctaid.z")));
    return less(e, mul(e, blocks, imm(e, 4)), mul(e, call0(e, "llvm.nvvm.read.ptx.sreg.nsmid"), imm(e, 3)));
}

static struct guarded begin_guard(struct emit *e, struct walk *w, enum guard guard)
{
    struct guarded g = {.here = e->at, .buffer = w->buffer, .third = w->third};
    if (guard == GUARD_ONE)
        g.after = begin_if(e, producer_is_one(e));
    if (guard == GUARD_STAGE)
        g.after = producer_begin_stage(e, w);
    if (guard == GUARD_FEW || guard == GUARD_MANY)
        g.after = begin_if(e, guard == GUARD_FEW ? are_few(e) : LLVMBuildNot(e->b, are_few(e), ""));
    if (guard != GUARD_LATER)
        return g;
    g.after = begin_if(e, is_behind(e, w));
    LLVMValueRef before = sub(e, w->step, imm(e, 1));
    set_chunk(e, &e->at, walked_chunk(e, &e->p->nests[0], before));
    w->buffer = walk_buffer(e, before);
    w->third = modulo(e, before, imm(e, 3));
    return g;
}

static void end_guard(struct emit *e, struct walk *w, const struct guarded *g)
{
    if (!g->after)
        return;
    end_if(e, g->after);
    e->at = g->here;
    w->buffer = g->buffer;
    w->third = g->third;
}

static bool is_left_out(const struct emit *e, const struct walk *w, const struct op *op)
{
    return (op->guard == GUARD_FIRST && w->tile > 0) || (op->guard == GUARD_LAST && w->tile + 1 < e->p->tiles);
}

static void emit_operations(struct emit *e, struct walk *w, enum role_kind role, uint32_t begin, uint32_t end);

static uint32_t find_op(const struct plan *p, enum op_kind kind)
{
    uint32_t i = 0;
    while (p->ops[i].kind != kind)
        i++;
    return i;
}

/* One of the two ways of a chunk, of whichever plan; what is known behind it is what was known before. */
static void emit_way(struct emit *e, const struct walk *walk, const struct plan *p, LLVMBasicBlockRef at,
                     LLVMBasicBlockRef after)
{
    struct walk w = *walk;
    const struct plan *outside = e->p;
    const struct place place = e->at;
    const struct thread_place thread = {e->tid, e->lane, e->warp, e->quad_row, e->quad_column};
    LLVMValueRef slots[PLAN_MAX_VALUES];
    memcpy(slots, e->slot, sizeof slots);
    LLVMPositionBuilderAtEnd(e->b, at);
    e->p = p;
    emit_operations(e, &w, ROLE_WALK, find_op(p, OP_WAYS) + 1, find_op(p, OP_END_WAYS));
    LLVMBuildBr(e->b, after);
    e->p = outside;
    e->at = place;
    e->tid = thread.tid, e->lane = thread.lane, e->warp = thread.warp;
    e->quad_row = thread.quad_row, e->quad_column = thread.quad_column;
    memcpy(e->slot, slots, sizeof slots);
}

static void emit_ways(struct emit *e, const struct walk *w)
{
    LLVMBasicBlockRef decayed = LLVMAppendBasicBlockInContext(e->context, e->function, "decayed"),
                      exact = LLVMAppendBasicBlockInContext(e->context, e->function, "exact"),
                      after = LLVMAppendBasicBlockInContext(e->context, e->function, "behind");
    LLVMBuildCondBr(e->b, walk_is_decayed(e, w), decayed, exact);
    emit_way(e, w, w->decayed, decayed, after);
    emit_way(e, w, e->p, exact, after);
    LLVMMoveBasicBlockAfter(after, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, after);
}

static void emit_operations(struct emit *e, struct walk *w, enum role_kind role, uint32_t begin, uint32_t end)
{
    const struct plan *p = e->p;
    struct guarded guarded = {0};
    uint32_t tiles = 0, heads = 0, head = 0;
    const bool own = p->own_heads;
    const uint32_t looped = own ? p->heads / p->groups : p->heads; /* of the group, or of all */
    enum guard guard = GUARD_ALWAYS;
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &p->ops[i];
        if (op->role != role || is_left_out(e, w, op))
            continue;
        if (op->kind == OP_WAYS) {
            emit_ways(e, w);
            i = find_op(p, OP_END_WAYS);
            continue;
        }
        if (op->guard != guard) {
            end_guard(e, w, &guarded);
            guarded = begin_guard(e, w, op->guard);
            guard = op->guard;
        }
        debug_line(e, op->stmt);
        if (op->kind == OP_TILES || op->kind == OP_HEADS)
            *(op->kind == OP_TILES ? &tiles : &heads) = i;
        else if (op->kind == OP_END_TILES)
            i = ++w->tile < p->tiles ? tiles : i;
        else if (op->kind == OP_ROWS)
            i = walk_rows(e, w, i);
        else if (op->kind == OP_END_HEADS)
            i = ++head < looped ? heads : i;
        else
            operations[op->kind](e, w, op);
        w->tile = w->tile < p->tiles ? w->tile : 0;
        head = head < looped ? head : 0;
        if (p->ops[i].kind == OP_TILES)
            find_head(e, w);
        if (p->sums_heads && (p->ops[i].kind == OP_HEADS || p->ops[i].kind == OP_END_HEADS))
            w->column_head = head;
        if (p->ops[i].kind == OP_HEADS || (p->sums_heads && p->ops[i].kind == OP_END_HEADS))
            e->at.start[TG_MEMBER] = own ? add(e, mul(e, w->group, imm(e, looped)), imm(e, head)) : imm(e, head);
        if (p->ops[i].kind == OP_TILES || p->ops[i].kind == OP_HEADS)
            find_own_slots(e, w);
        if (p->ops[i].kind == OP_HEADS)
            w->factored = p->factors ? walk_has_factors(e, w, e->at.start[TG_MEMBER], 1) : NULL;
    }
    end_guard(e, w, &guarded);
}

static void emit_role(struct emit *e, struct walk *w, enum role_kind role)
{
    emit_operations(e, w, role, 0, e->p->n_ops);
}

static void init_barriers(struct emit *e)
{
    const struct plan *p = e->p;
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    for (uint32_t s = 0; s < p->nests[0].stages; s++) {
        mbarrier_init(e, barrier_address(e, imm(e, s), false), 32 * p->roles[ROLE_LOAD].warps);
        mbarrier_init(e, barrier_address(e, imm(e, s), true),
                      (p->lags ? 129 : 128) * p->groups + (p->has_makers ? 128 : 0));
    }
    for (uint32_t s = 0; p->ways.scales && s < p->nests[0].stages; s++)
        mbarrier_init(e, landed_address(e, imm(e, s)), 1);
    for (uint32_t i = 0; i < p->own_stages; i++)
        for (uint32_t left = 0; left < 2; left++)
            mbarrier_init(e, shared_address(e, imm(e, p->own_offset + 16 * i + 8 * left)),
                          left ? 128 * p->groups : 32 * p->roles[ROLE_LOAD].warps);
    const uint32_t made = p->hands ? p->nests[0].stages : p->has_makers ? p->nests[0].stages + p->shape.packed : 0;
    for (uint32_t s = 0; s < made; s++)
        mbarrier_init(e, made_address(e, imm(e, s)), p->hands ? 128 * p->groups : 128);
    if (p->rests)
        init_rest(e);
    if (p->adds && !p->in_turn)
        cluster_init(e);
    if (plan_shares(p))
        cast_init(e);
    fence_mbarrier_init(e);
    end_if(e, after);
    if (plan_cluster_size(p))
        cluster_barrier(e);
    else
        barrier(e);
}

LLVMValueRef uniform(struct emit *e, LLVMValueRef x)
{
    LLVMValueRef args[] = {imm(e, -1), x, imm(e, 0), imm(e, 31)};
    return call(e, "llvm.nvvm.shfl.sync.idx.i32", NULL, 0, args, 4);
}

/* From here on a warpgroup that computes: threads count from its first. */
static void begin_group(struct emit *e, struct walk *w, const struct role *role, bool more)
{
    if (role->registers)
        set_registers_of_warps(e, more, role->registers);
    e->tid = modulo(e, e->tid, imm(e, 128));
    e->warp = modulo(e, e->warp, imm(e, 4));
    w->buffer = walk_buffer(e, walk_first_step(e));
    set(e, w->round = local(e, e->i32, "round"), imm(e, 0));
}

/* What comes until the function returns is done by the warpgroup `group`; then, by the others, what is behind. */
static LLVMBasicBlockRef begin_role(struct emit *e, const struct walk *w, uint32_t group)
{
    LLVMBasicBlockRef mine = LLVMAppendBasicBlockInContext(e->context, e->function, "role");
    LLVMBasicBlockRef others = LLVMAppendBasicBlockInContext(e->context, e->function, "others");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, w->group, imm(e, group), ""), mine, others);
    LLVMPositionBuilderAtEnd(e->b, mine);
    return others;
}

static void end_role(struct emit *e, LLVMBasicBlockRef others)
{
    LLVMBuildRetVoid(e->b);
    LLVMMoveBasicBlockAfter(others, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, others);
}

static void emit_load_role(struct emit *e, struct walk *w)
{
    const struct role *load = &e->p->roles[ROLE_LOAD];
    if (load->registers)
        set_registers_of_warps(e, false, load->registers);
    LLVMBasicBlockRef after =
        load->warps > 1
            ? NULL
            : begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, uniform(e, e->warp), imm(e, load->first_warp), ""));
    producer_begin(e, w);
    emit_role(e, w, ROLE_LOAD);
    if (after)
        end_if(e, after);
}

void emit_walk(struct emit *e, LLVMValueRef batch, LLVMValueRef head)
{
    const struct plan *p = e->p;
    init_barriers(e);
    struct walk w = {.batch = batch, .head = head};
    w.group = uniform(e, divide(e, e->tid, imm(e, 128)));
    const struct place outside = e->at;
    const struct thread_place thread = {e->tid, e->lane, e->warp, e->quad_row, e->quad_column};
    LLVMBasicBlockRef others = begin_role(e, &w, p->groups + p->has_makers);
    emit_load_role(e, &w);
    end_role(e, others);
    e->at = outside;
    if (p->has_makers) {
        others = begin_role(e, &w, p->groups);
        begin_group(e, &w, &p->roles[ROLE_MAKE], false);
        emit_role(e, &w, ROLE_MAKE);
        end_role(e, others);
        e->at = outside;
        e->tid = thread.tid, e->lane = thread.lane, e->warp = thread.warp;
        e->quad_row = thread.quad_row, e->quad_column = thread.quad_column;
        emit_bases(e, batch, head);
    }
    begin_group(e, &w, &p->roles[ROLE_WALK], true);
    struct plan *decayed = p->ways.any ? malloc(sizeof *decayed) : NULL;
    if (decayed && plan_build_decayed(p, decayed))
        w.decayed = decayed;
    for (uint32_t i = 0; i < p->heads && p->ways.scales && !p->ways.decays_first; i++)
        set(e, w.put_off[i] = local(e, e->f32, "put_off"), real(e, 1));
    emit_role(e, &w, ROLE_WALK);
    free(decayed);
}
