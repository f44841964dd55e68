/* lower/walk_state.c - the state of a kernel on warpgroups, and what is carried beside it (walk_carry.c): from memory before the
 * first chunk, to memory behind the last.
 *
 * What a segment makes of zero goes to its entry; the last one's is nobody's start, and is not made. A walk begins with what
 * a row between has made of it (compose.c), or the one thread block that walks all segments: the state with which its segment
 * begins, in the first entry the initial one. Segments, as steps, are counted in the order of the walk.
 *
 * Where segments have transitions the first one begins with the initial state, and thread blocks behind those of the state's
 * columns make the transitions, from the identity: in the registers these lie as columns of the state do. */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "lower/walk.h"

/* What is done to two neighbouring columns of a row; address[1] is NULL where they are neighbours in memory too. `sums`: two slots
 * for what is added up of them. */
typedef void each_pair(struct emit *e, tg_dtype dtype, LLVMValueRef *const slot, const LLVMValueRef address[2],
                       const LLVMValueRef *sums);

static LLVMTypeRef element_type(struct emit *e, tg_dtype dtype)
{
    return dtype == TG_F32 ? e->f32 : dtype == TG_BF16 ? e->bfloat : e->half;
}

/* Both elements, one load or two. */
static void fetch_pair(struct emit *e, tg_dtype dtype, const LLVMValueRef address[2], LLVMValueRef x[2])
{
    LLVMTypeRef type = element_type(e, dtype);
    const unsigned bytes = tg_dtype_bytes(dtype);
    LLVMValueRef pair = address[1] ? NULL : LLVMBuildLoad2(e->b, LLVMVectorType(type, 2), address[0], "");
    if (pair)
        LLVMSetAlignment(pair, 2 * bytes);
    for (uint32_t i = 0; i < 2; i++) {
        x[i] = pair ? LLVMBuildExtractElement(e->b, pair, imm(e, i), "") : LLVMBuildLoad2(e->b, type, address[i], "");
        if (!pair)
            LLVMSetAlignment(x[i], bytes);
        x[i] = dtype == TG_F32 ? x[i] : LLVMBuildFPExt(e->b, x[i], e->f32, "");
    }
}

static void init_pair(struct emit *e, tg_dtype dtype, LLVMValueRef *const slot, const LLVMValueRef address[2],
                      const LLVMValueRef *sums)
{
    (void)sums;
    LLVMValueRef x[2];
    fetch_pair(e, dtype, address, x);
    set(e, slot[0], x[0]);
    set(e, slot[1], x[1]);
}

static void sum_pair(struct emit *e, tg_dtype dtype, LLVMValueRef *const slot, const LLVMValueRef address[2],
                     const LLVMValueRef *sums)
{
    LLVMValueRef x[2];
    fetch_pair(e, dtype, address, x);
    for (uint32_t i = 0; i < 2; i++)
        set(e, sums[i], fma_of(e, get(e, e->f32, slot[i]), x[i], get(e, e->f32, sums[i])));
}

static void keep_pair(struct emit *e, tg_dtype dtype, LLVMValueRef *const slot, const LLVMValueRef address[2],
                      const LLVMValueRef *sums)
{
    (void)sums;
    LLVMTypeRef type = element_type(e, dtype);
    const unsigned bytes = tg_dtype_bytes(dtype);
    LLVMValueRef pair = LLVMGetUndef(LLVMVectorType(type, 2));
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef x = get(e, e->f32, slot[i]);
        x = dtype == TG_F32 ? x : LLVMBuildFPTrunc(e->b, x, type, "");
        if (address[1])
            LLVMSetAlignment(LLVMBuildStore(e->b, x, address[i]), bytes);
        pair = LLVMBuildInsertElement(e->b, pair, x, imm(e, i), "");
    }
    if (!address[1])
        LLVMSetAlignment(LLVMBuildStore(e->b, pair, address[0]), 2 * bytes);
}

LLVMValueRef walk_is_transition(struct emit *e)
{
    const struct plan *p = e->p;
    return LLVMBuildNot(e->b, less(e, e->at.start[plan_transition_along(p)], imm(e, plan_transition_first(p))), "");
}

/* The first of this lane's elements of row `row` of the state's block, and whether the 8 rows from `first` on are in the tensor. */
static LLVMValueRef transition_address(struct emit *e, LLVMValueRef row)
{
    const struct plan *p = e->p;
    const uint32_t tile = p->transition;
    LLVMValueRef column = sub(e, add(e, e->at.start[p->owner], row), imm(e, plan_transition_first(p)));
    LLVMValueRef offset = add(e, mul(e, wide(e, e->at.start[TG_CHUNK]), tensor_stride(e, tile, 2)),
                              add(e, mul(e, wide(e, tile_column(e, 0)), tensor_stride(e, tile, 3)), wide(e, column)));
    return byte_offset(e, e->base[tile], mul(e, offset, imm64(e, tg_dtype_bytes(plan_memory_dtype(p, tile)))));
}

static LLVMBasicBlockRef begin_inside_transition(struct emit *e, LLVMValueRef eight)
{
    const struct plan *p = e->p;
    const uint32_t size = plan_dim_size(p, plan_transition_of(p));
    if (size % p->block[p->owner] == 0)
        return NULL;
    return begin_if(e, less(e, add(e, e->at.start[p->owner], eight), imm(e, plan_transition_first(p) + size)));
}

/* For the group's part of the state, or transition, and the tensor that has it in memory. */
static void for_state(struct emit *e, const struct walk *walk, uint32_t tile, each_pair *each, const LLVMValueRef *sums)
{
    const struct plan *p = e->p;
    const struct value *v = &p->values[p->state];
    const bool by_columns = p->owner == v->dims[1];
    const uint32_t other = v->dims[by_columns ? 0 : 1];
    const tg_dtype dtype = plan_memory_dtype(p, tile);
    const bool of_transition = tile == p->transition,
               adjacent = of_transition ? !by_columns : plan_last_axis(p, tile) == other;
    LLVMValueRef stride = tensor_stride(e, tile, 2 + plan_axis_of(p, tile, other)),
                 column = add_columns(e, walk, tile_column(e, 0), 1);
    const struct place outside = e->at;
    const uint32_t heads = plan_heads_in_columns(p);
    struct walk w = *walk;
    for (uint32_t part = 0; part < p->tiles * heads; part++) {
        w.tile = part / heads;
        w.column_head = part % heads;
        if (heads > 1)
            e->at.start[TG_MEMBER] = imm(e, w.column_head);
        find_head(e, &w);
        for (uint32_t half = 0; half < 2; half++) {
            LLVMValueRef row = owner_row(e, &w, half);
            LLVMValueRef first = of_transition ? transition_address(e, row)
                                               : tensor_address(e, v->operand, tile, &e->at, v->dims,
                                                                by_columns ? column : row, by_columns ? row : column);
            LLVMBasicBlockRef rows = of_transition ? begin_inside_transition(e, owner_eight(e, &w, half))
                                                   : begin_inside(e, p->owner, owner_eight(e, &w, half));
            for (uint32_t n = 0; n < plan_state_columns(p) / 8; n++) {
                LLVMBasicBlockRef columns = begin_inside(e, other, add_columns(e, walk, imm(e, 8 * n), 1));
                LLVMValueRef address[2] = {NULL};
                for (uint32_t i = 0; i < (adjacent ? 1 : 2); i++)
                    address[i] = byte_offset(e, first, mul(e, stride, imm64(e, tg_dtype_bytes(dtype) * (8 * n + i))));
                each(e, dtype, &slots(e, &w, p->state)[4 * n + 2 * half], address, sums);
                end_inside(e, columns);
            }
            end_inside(e, rows);
        }
    }
    e->at.start[TG_MEMBER] = outside.start[TG_MEMBER];
}

static void when(struct emit *e, const struct walk *w, uint32_t tile, each_pair *each, LLVMValueRef condition)
{
    LLVMBasicBlockRef after = condition ? begin_if(e, condition) : NULL;
    for_state(e, w, tile, each, NULL);
    if (after)
        end_if(e, after);
}

/* Of the segment that ends with so many steps; 0 without any. */
static LLVMValueRef entry_of_end(struct emit *e, LLVMValueRef end, uint32_t segment)
{
    LLVMValueRef last = choose(e, less(e, imm(e, 0), end), sub(e, end, imm(e, 1)), imm(e, 0));
    return divide(e, last, imm(e, segment));
}

static bool is_cut_backwards(const struct plan *p)
{
    return p->nests[0].reverse && (p->segment || p->starts);
}

LLVMValueRef walk_first_step(struct emit *e)
{
    LLVMValueRef start = e->at.start[TG_SEG], first = first_of_walk(e, &e->p->nests[0]);
    return is_cut_backwards(e->p) ? choose(e, less(e, start, first), first, start) : start;
}

/* Backwards a segment may begin with any step. */
LLVMValueRef walk_buffer(struct emit *e, LLVMValueRef step)
{
    return modulo(e, is_cut_backwards(e->p) ? sub(e, step, walk_first_step(e)) : step, imm(e, 2));
}

LLVMValueRef walk_last_start(struct emit *e)
{
    const uint32_t segment = e->p->starts;
    return mul(e, entry_of_end(e, end_of_walk(e, &e->p->nests[0]), segment), imm(e, segment));
}

LLVMValueRef walk_is_inner(struct emit *e)
{
    return less(e, add(e, e->at.start[TG_SEG], imm(e, e->p->segment)), e->at.chunks);
}

LLVMValueRef is_first_segment(struct emit *e)
{
    return LLVMBuildICmp(e->b, LLVMIntEQ, e->at.start[TG_SEG], imm(e, 0), "");
}

/* Ones where the row, counted from the first of the transition, is the column. */
static void begin_transition(struct emit *e, const struct walk *walk)
{
    const struct plan *p = e->p;
    struct walk w = *walk;
    for (w.tile = 0; w.tile < p->tiles; w.tile++)
        for (uint32_t r = 0; r < walk_registers(p, &p->values[p->state]); r++) {
            LLVMValueRef row = add(e, e->at.start[p->owner], owner_row(e, &w, r / 2 % 2)),
                         one = add(e, tile_column(e, r / 4 * 2 + r % 2), imm(e, plan_transition_first(p)));
            set(e, slots(e, &w, p->state)[r],
                choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, row, one, ""), real(e, 1), real(e, 0)));
        }
}

/* Where segments have transitions: the initial state, the identity, or zeros, which registers are already. */
static void init_linear(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef is_transition = walk_is_transition(e), is_first = is_first_segment(e);
    LLVMBasicBlockRef after = begin_if(e, is_transition);
    begin_transition(e, w);
    end_if(e, after);
    if (op->tile)
        when(e, w, op->tile, init_pair,
             both(e, both(e, is_first, LLVMBuildNot(e->b, is_transition, "")), present(e, op->tile)));
}

void walk_init(struct emit *e, struct walk *w, const struct op *op)
{
    if (op->v != e->p->state)
        walk_init_carried(e, w, op);
    else if (e->p->makes_segments && e->p->transition)
        init_linear(e, w, op);
    else if (op->tile)
        when(e, w, op->tile, init_pair,
             both(e, e->p->makes_segments ? is_first_segment(e) : NULL, present(e, op->tile)));
}

void walk_enter(struct emit *e, struct walk *w, const struct op *op)
{
    const struct place outside = e->at;
    go_to_entry(e, divide(e, e->at.start[TG_SEG], imm(e, e->p->segment)));
    walk_init(e, w, op);
    e->at = outside;
}

void walk_start(struct emit *e, struct walk *w, const struct op *op)
{
    const struct place outside = e->at;
    LLVMValueRef step = w->in_loop ? add(e, w->step, imm(e, 1)) : imm(e, 0), length = imm(e, e->p->starts),
                 begins = LLVMBuildICmp(e->b, LLVMIntEQ, modulo(e, step, length), imm(e, 0), "");
    if (!plan_ends_early(e->p)) /* it walks on to the end, where none begins */
        begins = both(e, begins,
                      LLVMBuildOr(e->b, less(e, step, end_of_walk(e, &e->p->nests[0])),
                                  LLVMBuildICmp(e->b, LLVMIntEQ, step, imm(e, 0), ""), ""));
    go_to_entry(e, divide(e, step, length));
    when(e, w, op->tile, keep_pair, begins);
    e->at = outside;
}

/* To the slot of the chunk. */
void walk_keep(struct emit *e, struct walk *w, const struct op *op)
{
    go_to_slot(e, op->tile);
    when(e, w, op->tile, keep_pair, present(e, op->tile));
}

/* At the end of the sequence; of a segment by itself, at its own, and what is behind each. */
void walk_leave(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    w->buffer = w->buffer ? w->buffer : walk_buffer(e, w->end);
    LLVMValueRef condition = present(e, op->tile);
    const struct place outside = e->at;
    if (p->makes_segments && p->transition) {
        LLVMValueRef is_transition = walk_is_transition(e);
        condition =
            both(e, op->tile == p->transition ? is_transition : LLVMBuildNot(e->b, is_transition, ""), condition);
    }
    if (p->makes_segments || tg_tile_is_of_ends(p->algorithm, op->tile))
        go_to_entry(e, entry_of_end(e, w->end, p->segment));
    else if (p->segment)
        condition = both(e, LLVMBuildICmp(e->b, LLVMIntEQ, w->end, end_of_walk(e, &p->nests[0]), ""), condition);
    if (op->v == p->state)
        when(e, w, op->tile, keep_pair, condition);
    else if (p->values[op->v].space == SPACE_PARTS)
        walk_leave_sum(e, w, op);
    else
        walk_keep_carried(e, w, op, condition);
    e->at = outside;
}

/* <state behind the segment, the one with which a walk back begins there>: each warp's part. Entries are counted in the order of
 * either walk. */
void walk_meet(struct emit *e, struct walk *w, const struct op *op)
{
    const struct place outside = e->at;
    const uint32_t segment = e->p->segment;
    LLVMValueRef sums[2], last = entry_of_end(e, e->at.chunks, segment);
    for (uint32_t i = 0; i < 2; i++)
        set(e, sums[i] = local(e, e->f32, "met"), real(e, 0));
    go_to_entry(e, sub(e, last, entry_of_end(e, w->end, segment)));
    for_state(e, w, op->tile, sum_pair, sums);
    e->at = outside;
    walk_meet_sum(e, w, op, LLVMBuildFAdd(e->b, get(e, e->f32, sums[0]), get(e, e->f32, sums[1]), ""));
}

/* ---- transitions that end early ---- */

enum { SMALL = -100 }; /* log2 of what decays have left, from which on fp32 may have nothing left */

/* Of a stage: shall it and those behind it stay as they are? */
static LLVMValueRef rest_of_stage(struct emit *e, LLVMValueRef stage)
{
    return byte_offset(e, e->arena, add(e, imm(e, e->p->rest_offset), mul(e, stage, imm(e, 4))));
}

void init_rest(struct emit *e)
{
    for (uint32_t s = 0; s < e->p->nests[0].stages; s++)
        LLVMBuildStore(e->b, imm(e, 0), rest_of_stage(e, imm(e, s)));
}

void walk_begin_rest(struct emit *e, struct walk *w)
{
    set(e, w->forgotten = local(e, e->f32, "forgotten"), real(e, 0));
    set(e, w->rested = local(e, e->i32, "rested"), imm(e, 0));
}

/* i1: has this thread something else than zeros? */
static LLVMValueRef has_any(struct emit *e, const struct walk *walk)
{
    struct walk w = *walk;
    LLVMValueRef bits = imm(e, 0);
    for (w.tile = 0; w.tile < e->p->tiles; w.tile++)
        for (uint32_t r = 0; r < walk_registers(e->p, &e->p->values[e->p->state]); r++)
            bits = LLVMBuildOr(e->b, bits, as(e, get(e, e->f32, slots(e, &w, e->p->state)[r]), e->i32), "");
    return LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, bits, imm(e, 0x7fffffff), ""), imm(e, 0), "");
}

static void producer_rest(struct emit *e, struct walk *w)
{
    LLVMBasicBlockRef on = LLVMAppendBasicBlockInContext(e->context, e->function, "on");
    LLVMValueRef rest = LLVMBuildLoad2(e->b, e->i32, rest_of_stage(e, w->stage), "");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntNE, rest, imm(e, 0), ""), w->loop.after, on);
    LLVMPositionBuilderAtEnd(e->b, on);
}

void walk_rest(struct emit *e, struct walk *w, const struct op *op)
{
    if (op->role == ROLE_LOAD) {
        producer_rest(e, w);
        return;
    }
    LLVMValueRef decay = LLVMBuildLoad2(e->b, e->f32, slot_address(e, &e->p->values[op->a], e->slot[op->a]), ""),
                 sum = LLVMBuildFAdd(e->b, get(e, e->f32, w->forgotten), decay, "");
    set(e, w->forgotten, sum);
    LLVMBasicBlockRef after =
        begin_if(e, both(e, walk_is_transition(e), LLVMBuildFCmp(e->b, LLVMRealOLT, sum, real(e, SMALL), "")));
    LLVMValueRef any = named_barrier_any(e, imm(e, ALL_GROUPS), 128 * e->p->groups, has_any(e, w));
    set(e, w->rested, choose(e, any, imm(e, 0), imm(e, 1)));
    LLVMValueRef is_one = both(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""),
                               LLVMBuildICmp(e->b, LLVMIntEQ, w->group, imm(e, 0), ""));
    LLVMBasicBlockRef told = begin_if(e, both(e, is_one, LLVMBuildNot(e->b, any, "")));
    LLVMBuildStore(e->b, imm(e, 1), rest_of_stage(e, w->stage));
    end_if(e, told);
    end_if(e, after);
}

/* Nothing may be on its way to shared memory any more when the thread block ends: the ring's other stages, if the segment has
 * chunks for them. */
void walk_end_at_rest(struct emit *e, struct walk *w)
{
    const uint32_t stages = e->p->nests[0].stages, segment = e->p->segment;
    LLVMBasicBlockRef on = begin_if(e, LLVMBuildICmp(e->b, LLVMIntNE, get(e, e->i32, w->rested), imm(e, 0), ""));
    LLVMValueRef step = modulo(e, w->step, imm(e, segment));
    for (uint32_t i = 1; i < stages; i++) {
        LLVMBasicBlockRef after = begin_if(e, less(e, add(e, step, imm(e, i)), imm(e, segment)));
        LLVMValueRef now = modulo(e, add(e, w->now, imm(e, i)), imm(e, 2 * stages)),
                     second = less(e, imm(e, stages - 1), now);
        mbarrier_wait(e, barrier_address(e, choose(e, second, sub(e, now, imm(e, stages)), now), false),
                      choose(e, second, imm(e, 1), imm(e, 0)));
        end_if(e, after);
    }
    set(e, w->loop.counter, add(e, w->step, imm(e, 1)));
    LLVMBuildBr(e->b, w->loop.after);
    LLVMPositionBuilderAtEnd(e->b, on);
}
