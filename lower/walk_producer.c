/* lower/walk_producer.c - one warp of a kernel on warpgroups: it fills the ring, a chunk a stage.
 *
 * Matrices come by tensor maps, whose bytes the stage's barrier counts; vectors, which may begin anywhere and end with
 * the sequence, through the warp's registers. */
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
    const uint32_t group = group_of(&e->p->shape);
    at[0] = imm(e, 0);
    at[1] = e->at.first_token ? add(e, e->at.token, e->at.first_token) : e->at.token;
    at[2] = span;
    at[3] = (t->flags & TG_SHARED) && group > 1 ? divide(e, head, imm(e, group)) : head;
    at[4] = e->p->shape.packed || (t->flags & TG_NO_BATCH) ? imm(e, 0) : batch;
}

static void load_matrix(struct emit *e, const struct value *v, LLVMValueRef batch, LLVMValueRef head,
                        LLVMValueRef stage)
{
    const uint32_t tile = TG_OPERAND_TILE(v->operand);
    LLVMValueRef at[5], to = shared_address(e, add(e, imm(e, v->offset), mul(e, stage, imm(e, v->stage_bytes))));
    map_place(e, tile, batch, head, divide(e, e->at.start[v->dims[1]], imm(e, WALK_TILE)), at);
    if (!plan_shared_along(e->p, v)) {
        map_load(e, map_argument(e, tile), to, at, barrier_address(e, stage, false));
        return;
    }
    const uint32_t sharers = plan_sharers(e->p, v);
    LLVMValueRef index = cast_index(e, v); /* of as many parts, some of its spans each */
    at[2] = add(e, at[2], mul(e, index, imm(e, v->extent[1] / WALK_TILE / sharers)));
    to = add(e, to, mul(e, index, imm(e, v->stage_bytes / sharers)));
    map_load_to_many(e, map_argument(e, tile), to, at, barrier_address(e, stage, false), cast_ranks(e, v));
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

/* The matrices of this thread block alone, or those that it shares. */
static void load_matrices_of(struct emit *e, bool shared, LLVMValueRef batch, LLVMValueRef head, LLVMValueRef stage)
{
    const struct nest *nest = &e->p->nests[0];
    for (uint32_t i = 0; i < nest->n_loads; i++) {
        const struct value *v = &e->p->values[nest->loads[i]];
        if (v->space == SPACE_MATRIX && shared == (plan_shared_along(e->p, v) != 0))
            load_matrix(e, v, batch, head, stage);
    }
}

static LLVMBasicBlockRef begin_first_lane(struct emit *e)
{
    return begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
}

static void fill_stage(struct emit *e, LLVMValueRef batch, LLVMValueRef head, LLVMValueRef stage, LLVMValueRef parity)
{
    const struct plan *p = e->p;
    const struct nest *nest = &p->nests[0];
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < nest->n_loads; i++)
        bytes += p->values[nest->loads[i]].space == SPACE_MATRIX ? p->values[nest->loads[i]].stage_bytes : 0;
    if (plan_shares(p))
        cast_open(e, stage);
    LLVMBasicBlockRef after = begin_first_lane(e);
    mbarrier_expect(e, barrier_address(e, stage, false), bytes);
    load_matrices_of(e, false, batch, head, stage);
    end_if(e, after);
    if (plan_shares(p)) {
        cast_wait(e, stage, parity);
        after = begin_first_lane(e);
        load_matrices_of(e, true, batch, head, stage);
        end_if(e, after);
    }
    for (uint32_t i = 0; i < nest->n_loads; i++)
        if (p->values[nest->loads[i]].space == SPACE_VECTOR)
            load_vector(e, &p->values[nest->loads[i]], stage);
    mbarrier_arrive(e, barrier_address(e, stage, false)); /* every lane, for what it stored */
}

void emit_producer(struct emit *e, LLVMValueRef batch, LLVMValueRef head)
{
    const struct nest *nest = &e->p->nests[0];
    LLVMValueRef step, stage_slot = local(e, e->i32, "stage"), parity_slot = local(e, e->i32, "parity");
    set(e, stage_slot, imm(e, 0));
    set(e, parity_slot, imm(e, 1)); /* nobody has filled a stage: it is empty */
    const struct counted l = walk_begin(e, &step);
    LLVMValueRef stage = get(e, e->i32, stage_slot), parity = get(e, e->i32, parity_slot);
    mbarrier_wait(e, barrier_address(e, stage, true), parity);
    set_chunk(e, &e->at, walked_chunk(e, nest, step));
    fill_stage(e, batch, head, stage, parity);
    LLVMValueRef next = add(e, stage, imm(e, 1)),
                 wraps = LLVMBuildICmp(e->b, LLVMIntEQ, next, imm(e, nest->stages), "");
    set(e, stage_slot, choose(e, wraps, imm(e, 0), next));
    set(e, parity_slot, choose(e, wraps, LLVMBuildXor(e->b, parity, imm(e, 1), ""), parity));
    walk_end(e, &l);
}
