/* lower/walk_producer.c - one warp of a kernel on warpgroups: it fills the ring, a chunk a stage.
 *
 * Matrices come by tensor maps, whose bytes the stage's barrier counts, by one lane; vectors, which may begin anywhere and
 * end with the sequence, through the registers of all: every lane arrives at the barrier, for what it stored. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

LLVMValueRef map_argument(struct emit *e, uint32_t tile)
{
    tg_map_desc maps[TG_MAX_MAPS];
    for (uint32_t i = 0, n = plan_maps(e->p, maps); i < n; i++)
        if (maps[i].tensor == tile)
            return argument(e, TG_ARG_MAP, tile, i);
    return NULL;
}

LLVMValueRef barrier_address(struct emit *e, LLVMValueRef stage, bool empty)
{
    const struct plan *p = e->p;
    LLVMValueRef offset =
        add(e, mul(e, stage, imm(e, 8)), imm(e, p->barrier_offset + (empty ? 8 * p->nests[0].stages : 0)));
    return shared_address(e, offset);
}

void map_place(struct emit *e, uint32_t tile, LLVMValueRef batch, LLVMValueRef head, LLVMValueRef span,
               LLVMValueRef at[5])
{
    const tg_tensor *t = &e->p->algorithm->tensors[tile];
    const bool by_column = plan_splits_span(e->p, t->axes[1]);
    at[0] = by_column ? mul(e, span, imm(e, WALK_TILE)) : imm(e, 0);
    at[1] = e->at.first_token ? add(e, e->at.token, e->at.first_token) : e->at.token;
    at[2] = by_column ? imm(e, 0) : span;
    at[3] = head_of(e, tile, head);
    if (e->p->heads > 1 && !(t->flags & TG_SHARED))
        at[3] = add(e, at[3], e->at.start[TG_MEMBER]);
    at[4] = e->p->shape.packed || (t->flags & TG_NO_BATCH) ? imm(e, 0) : batch;
}

/* All of a head's, or this thread block's share: of whole spans in one instruction, else span by span. */
static void load_matrix(struct emit *e, const struct walk *w, const struct value *v, LLVMValueRef to)
{
    const uint32_t tile = TG_OPERAND_TILE(v->operand), sharers = plan_sharers(e->p, v),
                   spans = v->extent[1] / WALK_TILE / sharers;
    const bool by_column = plan_splits_span(e->p, v->dims[1]), shared = plan_shared_along(e->p, v) != 0;
    const uint32_t coordinate = by_column ? 0 : 2, unit = by_column ? WALK_TILE : 1;
    LLVMValueRef at[5];
    map_place(e, tile, w->batch, w->head, divide(e, e->at.start[v->dims[1]], imm(e, WALK_TILE)), at);
    if (shared) {
        LLVMValueRef index = cast_index(e, v);
        at[coordinate] = add(e, at[coordinate], mul(e, index, imm(e, unit * spans)));
        to = add(e, to, mul(e, index, imm(e, v->stage_bytes / sharers)));
    }
    for (uint32_t i = 0; i < (by_column ? spans : 1); i++) {
        LLVMValueRef full = v->own_stage ? own_barrier(e, (uint32_t)(v - e->p->values), false)
                            : plan_is_multiplied(e->p, (uint32_t)(v - e->p->values))
                                ? landed_address(e, w->stage)
                                : barrier_address(e, w->stage, false);
        if (shared)
            map_load_to_many(e, map_argument(e, tile), to, at, full, cast_ranks(e, v));
        else
            map_load(e, map_argument(e, tile), to, at, full);
        at[coordinate] = add(e, at[coordinate], imm(e, unit));
        to = add(e, to, imm(e, WALK_TILE * WALK_SPAN_BYTES));
    }
}

/* The elements of a lane; what lies behind the end of the sequence counts as zero. */
static void load_vector(struct emit *e, const struct value *v, LLVMValueRef stage)
{
    const uint32_t tile = TG_OPERAND_TILE(v->operand), bytes = tg_dtype_bytes(v->dtype),
                   n = v->n_dims ? v->extent[0] : 1;
    LLVMTypeRef type = v->dtype == TG_F32X2 ? e->i64 : e->i32;
    LLVMValueRef to = slot_address(e, v, stage);
    for (uint32_t i = 0; i < n; i += 32) {
        LLVMValueRef index = add(e, e->lane, imm(e, i)), word = local(e, type, "word");
        LLVMValueRef valid = v->n_dims ? inside(e, &e->at, v->dims[0], v->extent[0], index)
                                       : LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), "");
        set(e, word, LLVMConstNull(type));
        LLVMBasicBlockRef after = valid ? begin_if(e, valid) : NULL;
        LLVMValueRef from = tensor_address(e, v->operand, tile, &e->at, v->dims, v->n_dims ? index : NULL, NULL);
        LLVMValueRef x = LLVMBuildLoad2(e->b, type, from, "");
        LLVMSetAlignment(x, bytes);
        set(e, word, x);
        if (after)
            end_if(e, after);
        LLVMBasicBlockRef mine = n < 32 ? begin_if(e, less(e, index, imm(e, n))) : NULL;
        LLVMSetAlignment(LLVMBuildStore(e->b, get(e, type, word), byte_offset(e, to, mul(e, index, imm(e, bytes)))),
                         bytes);
        if (mine)
            end_if(e, mine);
    }
}

LLVMValueRef producer_is_one(struct emit *e)
{
    const struct role *role = &e->p->roles[ROLE_LOAD];
    return role->warps > 1 ? LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 32 * role->first_warp), "")
                           : LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), "");
}

/* Several warps share out the heads. All are under way at once, for which registers are too few, and for all of their
 * addresses; a warp waits before it arrives. */
static void load_vectors(struct emit *e, const struct walk *w, const struct value *v)
{
    const struct role *role = &e->p->roles[ROLE_LOAD];
    const uint32_t tile = TG_OPERAND_TILE(v->operand), bytes = tg_dtype_bytes(v->dtype),
                   heads = v->by_head ? e->p->heads : 1, n = v->n_dims ? v->extent[0] : 1;
    LLVMValueRef head, own = sub(e, e->warp, imm(e, role->first_warp)), first = mul(e, w->stage, imm(e, heads));
    const struct counted l = loop_from(e, own, imm(e, heads), &head);
    e->at.start[TG_MEMBER] = head;
    for (uint32_t i = 0; i < n; i += 32) {
        LLVMValueRef index = add(e, e->lane, imm(e, i)), to = slot_address(e, v, add(e, first, head)),
                     valid = v->n_dims ? inside(e, &e->at, v->dims[0], v->extent[0], index) : NULL;
        LLVMBasicBlockRef mine = n - i < 32 ? begin_if(e, less(e, index, imm(e, n))) : NULL;
        async_copy(e, byte_offset(e, to, mul(e, index, imm(e, bytes))),
                   tensor_address(e, v->operand, tile, &e->at, v->dims, v->n_dims ? index : NULL, NULL), bytes, valid);
        if (mine)
            end_if(e, mine);
    }
    loop_end(e, &l, role->warps);
    sync_warp(e); /* lanes may have parted, and what follows is for all of them */
}

void producer_load(struct emit *e, struct walk *w, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    if (v->space != SPACE_MATRIX) {
        if (e->p->heads > 1)
            load_vectors(e, w, v);
        else
            load_vector(e, v, w->stage);
        return;
    }
    const uint32_t heads = v->by_head ? e->p->heads : 1;
    for (uint32_t head = 0; head < heads; head++) {
        LLVMValueRef stage = v->own_stage ? imm(e, 0) : w->stage,
                     to = shared_address(e, add(e, imm(e, v->offset), mul(e, stage, imm(e, v->stage_bytes))));
        e->at.start[TG_MEMBER] = imm(e, head);
        load_matrix(e, w, v, add(e, to, imm(e, head * (v->stage_bytes / heads))));
    }
}

/* ---- outputs that those who walk have left in a stage ---- */

LLVMValueRef producer_refills(struct emit *e, const struct walk *w)
{
    return less(e, add(e, walk_first_step(e), imm(e, e->p->nests[0].stages - 1)), w->step);
}

void producer_go_back(struct emit *e, const struct walk *w)
{
    const struct nest *nest = &e->p->nests[0];
    set_chunk(e, &e->at, walked_chunk(e, nest, sub(e, w->step, imm(e, nest->stages))));
}

LLVMBasicBlockRef producer_begin_stage(struct emit *e, struct walk *w)
{
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildAnd(e->b, producer_is_one(e), producer_refills(e, w), ""));
    producer_go_back(e, w);
    return after;
}

/* Each group's tile. */
static void store_tiles(struct emit *e, struct walk *w, const struct op *op)
{
    const struct walk outside = *w;
    const struct place at = e->at;
    for (uint32_t group = 0; group < e->p->groups; group++) {
        w->group = imm(e, group);
        e->at.start[TG_MEMBER] = e->p->heads > 1 ? imm(e, 0) : at.start[TG_MEMBER];
        find_head(e, w);
        LLVMValueRef place = mul(e, owner_span(e, w), imm(e, WALK_TILE * WALK_SPAN_BYTES));
        walk_store_tile(e, w, op, add(e, matrix_address(e, w, op->a), place));
    }
    map_store_commit(e);
    *w = outside;
    e->at = at;
}

/* All outputs of the chunk, from this one on. */
static void store_outputs(struct emit *e, struct walk *w, const struct op *op)
{
    if (e->p->in_turn)
        turn_await_here(e, w);
    for (; plan_is_handed(op); op++)
        store_tiles(e, w, op);
    if (e->p->in_turn)
        turn_pass_here(e, w);
}

/* Behind the loop: of the last steps, whose stages nobody fills any more. */
static void store_last(struct emit *e, struct walk *w, const struct op *op)
{
    const struct nest *nest = &e->p->nests[0];
    const struct walk outside = *w;
    const struct place at = e->at;
    LLVMValueRef i, end = get(e, e->i32, w->loop.counter), before = imm(e, nest->stages);
    const struct counted l = loop_begin(e, before, &i);
    LLVMValueRef stage = add(e, get(e, e->i32, w->stage_slot), i), parity = get(e, e->i32, w->parity_slot),
                 wraps = less(e, imm(e, nest->stages - 1), stage), step = sub(e, add(e, end, i), before);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, less(e, step, walk_first_step(e)), ""));
    w->stage = choose(e, wraps, sub(e, stage, before), stage);
    mbarrier_wait(e, made_address(e, w->stage), choose(e, wraps, LLVMBuildXor(e->b, parity, imm(e, 1), ""), parity));
    set_chunk(e, &e->at, walked_chunk(e, nest, step));
    store_outputs(e, w, op);
    e->at = at;
    end_if(e, after);
    loop_end(e, &l, 1);
    *w = outside;
}

void producer_store(struct emit *e, struct walk *w, const struct op *op)
{
    if (w->in_loop)
        store_tiles(e, w, op);
    else if (!plan_is_handed(op - 1)) /* with those that follow */
        store_last(e, w, op);
}

/* Of all matrices, whoever loads them, but for one that has a stage of its own, or those that are multiplied first. */
void producer_expect(struct emit *e, struct walk *w, const struct op *op)
{
    if (op->sync == SYNC_LOADED) {
        mbarrier_expect(e, own_barrier(e, op->v, false), e->p->values[op->v].stage_bytes);
        return;
    }
    const struct nest *nest = &e->p->nests[op->n];
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < nest->n_loads; i++)
        bytes += plan_is_loaded(&e->p->values[nest->loads[i]]) && !e->p->values[nest->loads[i]].own_stage &&
                         plan_is_multiplied(e->p, nest->loads[i]) == (op->sync == SYNC_LANDED)
                     ? e->p->values[nest->loads[i]].stage_bytes
                     : 0;
    if (op->sync == SYNC_LANDED)
        mbarrier_arrive_expecting(e, landed_address(e, w->stage), bytes);
    else
        mbarrier_expect(e, barrier_address(e, w->stage, false), bytes);
}

void producer_begin(struct emit *e, struct walk *w)
{
    w->stage_slot = local(e, e->i32, "stage");
    w->parity_slot = local(e, e->i32, "parity");
    set(e, w->stage_slot, imm(e, 0));
    set(e, w->parity_slot, imm(e, 1)); /* nobody has filled a stage: it is empty */
}

void producer_begin_step(struct emit *e, struct walk *w)
{
    w->stage = get(e, e->i32, w->stage_slot);
    w->parity = get(e, e->i32, w->parity_slot);
}

void producer_end_step(struct emit *e, struct walk *w)
{
    LLVMValueRef next = add(e, w->stage, imm(e, 1)),
                 wraps = LLVMBuildICmp(e->b, LLVMIntEQ, next, imm(e, e->p->nests[0].stages), "");
    set(e, w->stage_slot, choose(e, wraps, imm(e, 0), next));
    set(e, w->parity_slot, choose(e, wraps, LLVMBuildXor(e->b, w->parity, imm(e, 1), ""), w->parity));
}
