/* lower/walk_across.c - kernels on warpgroups: tiles of positions by the dimension that the state has as columns (compiler/walk_across.c
 * has when, this has how).
 *
 * Their accumulators have positions as rows and the group's columns as columns, and both operands of their products are in shared memory.
 * The state lies there in spans of 64 columns with all of its rows, as a loaded matrix does in spans of 64 columns with all positions.
 *
 * Of a product by a masked tile the values are on the right: zero times NaN is NaN (walk_careful.c). What is bad in them shows in another
 * product of positions by the same matrix. So all threads look at what they have of that, and the barrier of the tiles tells them whether
 * one saw something. If so, what it reaches becomes NaN before the product, and 0 takes its place. Nothing else reads the matrix behind
 * that in its step. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

enum { STEP_K = 16, SPAN_BYTES = WALK_TILE * WALK_SPAN_BYTES, UNIT = 16, THREADS = 128 };

LLVMValueRef across_column(struct emit *e, const struct walk *w)
{
    return mul(e, w->group, imm(e, plan_across_columns(e->p)));
}

/* Where 64 columns of the rounded state begin, the first that the group has or, of the whole, span 0. */
static LLVMValueRef rounded_address(struct emit *e, const struct walk *w, LLVMValueRef first_column)
{
    LLVMValueRef spans = divide(e, first_column, imm(e, WALK_TILE)),
                 first = add(e, imm(e, e->p->values[e->p->state].offset), walk_zero(e, w));
    return shared_address(e, add(e, first, mul(e, spans, imm(e, plan_rounded_span(e->p)))));
}

/* This lane's row of 8 x 8 matrices of a tile of 64 rows, and which 16-byte unit of 128, of accumulators in 16 bits. */
static LLVMValueRef lane_offset(struct emit *e)
{
    LLVMValueRef matrix = divide(e, e->lane, imm(e, 8)), row = lane_row(e, matrix);
    return unit_offset(e, row, divide(e, matrix, imm(e, 2)));
}

/* `columns` of accumulators, rounded, to spans that begin at `to`. Bits of the unit's number are 0 in the first: one address serves all. */
static void put_columns(struct emit *e, LLVMValueRef to, LLVMValueRef *const registers, uint32_t columns)
{
    for (uint32_t u = 0; u < columns / 8; u += 2) {
        LLVMValueRef words[4], span = add(e, to, imm(e, u / 8 * plan_rounded_span(e->p)));
        for (uint32_t i = 0; i < 4; i++)
            words[i] = pack(e, get(e, e->f32, registers[4 * u + 2 * i]), get(e, e->f32, registers[4 * u + 2 * i + 1]));
        store_matrices(e, LLVMBuildXor(e->b, span, imm(e, UNIT * (u % 8)), ""), words, false);
    }
}

/* The rows that the group has. */
static LLVMValueRef own_rows(struct emit *e, const struct walk *w)
{
    return mul(e, w->group, imm(e, SPAN_BYTES));
}

void across_put_state(struct emit *e, struct walk *w)
{
    put_columns(e, add(e, add(e, rounded_address(e, w, imm(e, 0)), own_rows(e, w)), lane_offset(e)),
                slots(e, w, e->p->state), plan_state_columns(e->p));
}

/* The output, over what nobody else reads of the rounded state: the group's columns of the group's rows. */
static LLVMValueRef output_address(struct emit *e, const struct walk *w)
{
    return add(e, rounded_address(e, w, across_column(e, w)), own_rows(e, w));
}

void across_put(struct emit *e, struct walk *w, const struct op *op)
{
    put_columns(e, add(e, output_address(e, w), lane_offset(e)), slots(e, w, op->v), plan_across_columns(e->p));
}

/* ... to memory, by one thread, a span after the other; row by row where the chunk is not whole. */
void across_store(struct emit *e, struct walk *w, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    const uint32_t spans = plan_across_columns(e->p) / WALK_TILE, span_bytes = plan_rounded_span(e->p);
    LLVMValueRef first = mul(e, w->group, imm(e, spans)), one = LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), "");
    LLVMValueRef from = byte_offset(
        e, e->arena,
        add(e, add(e, imm(e, e->p->values[e->p->state].offset), own_rows(e, w)), mul(e, first, imm(e, span_bytes))));
    for (uint32_t s = 0; e->p->shape.packed && s < spans; s++)
        walk_store_rows(e, op, add(e, first, imm(e, s)), byte_offset(e, from, imm(e, s * span_bytes)), imm(e, 0),
                        WALK_TILE);
    LLVMBasicBlockRef after = begin_if(e, both(e, one, e->p->shape.packed ? is_whole(e) : NULL));
    LLVMValueRef address = output_address(e, w);
    for (uint32_t s = 0; s < spans; s++) {
        LLVMValueRef at[5],
            span = add(e, divide(e, e->at.start[v->dims[1]], imm(e, WALK_TILE)), add(e, first, imm(e, s)));
        map_place(e, op->tile, w->batch, w->head, span, at);
        map_store(e, map_argument(e, op->tile), add(e, address, imm(e, s * span_bytes)), at);
    }
    map_store_commit(e);
    end_if(e, after);
    sync_warp(e);
}

/* ---- products behind a NaN ---- */

static LLVMValueRef all_thread(struct emit *e, const struct walk *w)
{
    return add(e, mul(e, w->group, imm(e, THREADS)), e->tid);
}

/* A sum of products with something bad is not finite. So of a product of positions by the matrix one row tells of all of its columns,
 * or one column of all rows. */
void across_look(struct emit *e, struct walk *w, const struct op *op)
{
    tg_operand reads[TG_MAX_READS];
    w->across_seen = real(e, 0);
    for (uint32_t k = 0, n = tg_stmt_reads(&e->p->algorithm->body[op->stmt], reads); k < n; k++) {
        const uint32_t v = (uint32_t)plan_find(e->p, reads[k], e->p->values[op->v].nest);
        const struct value *product = &e->p->values[v];
        const bool in_columns = product->n_dims == 2 && product->dims[1] == e->p->values[op->a].dims[0];
        for (uint32_t r = 0; product->n_dims == 2 && r < walk_registers(e->p, product); r++)
            if (in_columns ? r / 2 % 2 == 0 : r == 0 || r == 2)
                w->across_seen = fma_of(e, get(e, e->f32, slots(e, w, v)[r]), real(e, 0), w->across_seen);
    }
}

LLVMValueRef across_sees(struct emit *e, struct walk *w)
{
    return LLVMBuildFCmp(e->b, LLVMRealUNO, w->across_seen, w->across_seen, "");
}

static LLVMValueRef is_bad(struct emit *e, LLVMValueRef bits)
{
    return has_exponent(e, bits, e->i16, e->p->shape.io == TG_BF16 ? 0x7f80 : 0x7c00);
}

/* Numbers that the group leaves for its columns, where the output will be. */
static LLVMValueRef mark(struct emit *e, const struct walk *w, LLVMValueRef column)
{
    LLVMValueRef spans = divide(e, across_column(e, w), imm(e, WALK_TILE)),
                 first = add(e, own_rows(e, w), mul(e, spans, imm(e, plan_rounded_span(e->p))));
    return byte_offset(e, slot_address(e, &e->p->values[e->p->state], imm(e, 0)),
                       add(e, first, mul(e, column, imm(e, 4))));
}

/* A thread for each column: the first or the last position at which it has something bad; beyond all if there is none. */
static void mark_column(struct emit *e, struct walk *w, const struct op *op)
{
    const bool backward = walk_is_backward(e, op);
    LLVMValueRef found = local(e, e->i32, "bad"), position, column = add(e, across_column(e, w), e->tid);
    LLVMBasicBlockRef after = begin_if(e, less(e, e->tid, imm(e, plan_across_columns(e->p))));
    LLVMValueRef span = mul(e, divide(e, column, imm(e, WALK_TILE)), imm(e, SPAN_BYTES)),
                 in_span = modulo(e, column, imm(e, WALK_TILE)), unit = divide(e, in_span, imm(e, 8)),
                 first = byte_offset(e, matrix_pointer(e, w, op->b),
                                     add(e, span, mul(e, modulo(e, in_span, imm(e, 8)), imm(e, 2))));
    set(e, found, imm(e, backward ? -1 : WALK_TILE));
    const struct counted l = loop_begin(e, imm(e, WALK_TILE), &position);
    LLVMValueRef at = backward ? position : sub(e, imm(e, WALK_TILE - 1), position),
                 bad = is_bad(e, LLVMBuildLoad2(e->b, e->i16, byte_offset(e, first, unit_offset(e, at, unit)), ""));
    set(e, found, choose(e, bad, at, get(e, e->i32, found)));
    loop_end(e, &l, 1);
    LLVMBuildStore(e->b, get(e, e->i32, found), mark(e, w, e->tid));
    end_if(e, after);
}

/* What bad values of their column reach: in gradients that go from queries to keys the positions up to the last, else those from the
 * first on. */
static void spoil_columns(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef *const x = slots(e, w, op->v);
    for (uint32_t c = 0; c < plan_across_columns(e->p) / 4; c++) {
        LLVMValueRef bad = LLVMBuildLoad2(e->b, e->i32, mark(e, w, tile_column(e, c)), "");
        for (uint32_t half = 0; half < 2; half++) {
            LLVMValueRef slot = x[c / 2 * 4 + 2 * half + c % 2], row = tile_row(e, half),
                         hit = LLVMBuildICmp(e->b, walk_is_backward(e, op) ? LLVMIntSLE : LLVMIntSGE, row, bad, "");
            set(e, slot, choose(e, hit, LLVMConstReal(e->f32, __builtin_nan("")), get(e, e->f32, slot)));
        }
    }
}

static void clean(struct emit *e, struct walk *w, const struct op *op)
{
    const uint32_t n = e->p->values[op->b].stage_bytes / 2;
    LLVMValueRef index, thread = all_thread(e, w), first = matrix_pointer(e, w, op->b);
    const struct counted l = loop_from(e, thread, imm(e, n), &index);
    LLVMValueRef at = byte_offset(e, first, mul(e, index, imm(e, 2)));
    LLVMBasicBlockRef after = begin_if(e, is_bad(e, LLVMBuildLoad2(e->b, e->i16, at, "")));
    LLVMBuildStore(e->b, LLVMConstInt(e->i16, 0, 0), at);
    end_if(e, after);
    loop_end(e, &l, THREADS * e->p->groups);
    fence_async(e);
}

/* All groups are here, or none; nobody's product reads the matrix then. */
static void take_out_bad(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef all = imm(e, ALL_GROUPS);
    const uint32_t threads = THREADS * e->p->groups;
    LLVMBasicBlockRef after = begin_if(e, w->across_bad);
    named_barrier(e, all, threads);
    mark_column(e, w, op);
    named_barrier(e, all, threads);
    spoil_columns(e, w, op);
    clean(e, w, op);
    named_barrier(e, all, threads);
    end_if(e, after);
}

/* The group's rows of the rounded state as left operand. */
void across_product_of_state(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    const uint32_t depth = plan_state_columns(p);
    LLVMValueRef x[WALK_TILE / 2], a = descriptor(e, add(e, rounded_address(e, w, imm(e, 0)), own_rows(e, w)), STEP_K),
                                   b = descriptor(e, matrix_address(e, w, op->b), STEP_K);
    take_fresh(e, op->v, x);
    wgmma_fence(e, NULL, 0);
    for (uint32_t k = 0; k < depth / STEP_K; k++) {
        LLVMValueRef step = imm(e, (k / 4 * plan_rounded_span(p) + k % 4 * 2 * STEP_K) / 16);
        wgmma_shared(e, x, WALK_TILE, add(e, a, step), along_rows(e, b, k), k > 0, false);
    }
    wgmma_commit(e);
    put_back(e, w, op->v, x);
}

void across_product(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    const bool by_state = op->b == p->state;
    const uint32_t columns = plan_across_columns(p), depth = p->values[op->a].extent[1],
                   span_bytes = by_state ? plan_rounded_span(p) : SPAN_BYTES;
    LLVMValueRef x[WALK_TILE], first = divide(e, across_column(e, w), imm(e, WALK_TILE));
    if (!by_state)
        take_out_bad(e, w, op);
    if (by_state)
        take_fresh(e, op->v, x);
    else
        take(e, w, op->v, x);
    LLVMValueRef a = descriptor(e, matrix_address(e, w, op->a), STEP_K),
                 b_address = by_state ? rounded_address(e, w, imm(e, 0)) : matrix_address(e, w, op->b),
                 b = descriptor(e, add(e, b_address, mul(e, first, imm(e, span_bytes))), span_bytes);
    wgmma_fence(e, x, by_state ? 0 : columns / 2);
    for (uint32_t k = 0; k < depth / STEP_K; k++)
        wgmma_shared(e, x, columns, along_rows(e, a, k), add(e, b, imm(e, k * STEP_K * WALK_SPAN_BYTES / 16)),
                     !by_state || k > 0, true);
    wgmma_commit(e);
    put_back(e, w, op->v, x);
}
