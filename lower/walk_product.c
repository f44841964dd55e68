/* lower/walk_product.c - the products of a kernel on warpgroups, and the elements of their accumulators.
 *
 * An accumulator of 64 rows and n columns: warp w of the group has rows 16 w ... 16 w + 15; in it register r of a lane
 * has row l/4 + 8 (r/2 % 2) and column 8 (r/4) + 2 (l%4) + r%2. Packed in pairs the same registers are the left operand
 * of the next product, 16 columns for each 4 of them. Accumulators of the owner's rows have positions as columns, so
 * tile (position, owner) lies transposed in them. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

#include <stdlib.h>
#include <string.h>

enum { STEP_K = 16, SPAN_BYTES = WALK_TILE * WALK_SPAN_BYTES };

uint32_t walk_registers(const struct plan *p, const struct value *v)
{
    if (v == &p->values[p->state])
        return plan_state_columns(p) / 2;
    if (plan_is_across(p, v))
        return plan_across_columns(p) / 2;
    return plan_is_owned(p, v) ? WALK_TILE / 2 : plan_position_columns(p) / 2;
}

/* Registers of the value, of the tile being emitted. */
LLVMValueRef *slots(struct emit *e, const struct walk *w, uint32_t v)
{
    const uint32_t part = w->tile * plan_heads_in_columns(e->p) + w->column_head;
    return e->registers[v] + (v == e->p->state ? part * walk_registers(e->p, &e->p->values[v]) : 0);
}

LLVMValueRef *sum_slots(struct emit *e, uint32_t v)
{
    return e->registers[v] + walk_registers(e->p, &e->p->values[v]);
}

uint32_t take(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef *x)
{
    const uint32_t n = walk_registers(e->p, &e->p->values[v]);
    for (uint32_t r = 0; r < n; r++)
        x[r] = get(e, e->f32, slots(e, w, v)[r]);
    return n;
}

/* Of a product that begins a sum: what was in the registers before must not keep them alive. */
uint32_t take_fresh(struct emit *e, uint32_t v, LLVMValueRef *x)
{
    const uint32_t n = walk_registers(e->p, &e->p->values[v]);
    for (uint32_t r = 0; r < n; r++)
        x[r] = LLVMGetUndef(e->f32);
    return n;
}

void put_back(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef *x)
{
    for (uint32_t r = 0; r < walk_registers(e->p, &e->p->values[v]); r++)
        set(e, slots(e, w, v)[r], x[r]);
}

/* Zero, but neither LLVM nor the assembler knows that, or that it is the same as another one. What they make of a constant address they
 * keep from step to step, or from one product to the next: descriptors for which there are not enough uniform registers. */
LLVMValueRef walk_zero(struct emit *e, const struct walk *w)
{
    enum { BITS_OF_STAGE = 8, DIFFERENT = 16 };
    return LLVMBuildLShr(e->b, opaque(e, w->stage), imm(e, BITS_OF_STAGE + e->zeros++ % DIFFERENT), "");
}

LLVMValueRef matrix_slot(struct emit *e, const struct walk *w, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    LLVMValueRef buffer = e->p->has_makers ? w->stage : plan_has_one_buffer(e->p, value) ? imm(e, 0) : w->buffer;
    if (e->p->decayed && e->p->own_heads && v == e->p->ways.tile) /* the first head's is theirs */
        return add(e, mul(e, buffer, imm(e, e->p->heads)), mul(e, w->group, imm(e, e->p->heads / e->p->groups)));
    if (plan_is_made_tile(value) && value->by_head && !value->summed)
        return add(e, mul(e, buffer, imm(e, e->p->heads)), e->at.start[TG_MEMBER]);
    if (plan_is_loaded(value) && value->own_stage)
        return walk_zero(e, w);
    return plan_is_made_tile(value) ? buffer : plan_is_loaded(value) ? w->stage : imm(e, 0);
}

/* What a loaded matrix has of other heads before that of the one being emitted, whose rows are not the accumulators'. */
static uint32_t head_bytes(const struct emit *e, const struct walk *w, const struct value *v)
{
    return v->by_head && e->p->sums_heads && plan_is_loaded(v) ? w->column_head * (v->stage_bytes / e->p->heads) : 0;
}

LLVMValueRef matrix_address(struct emit *e, const struct walk *w, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    LLVMValueRef offset = add(e, imm(e, value->offset), mul(e, matrix_slot(e, w, v), imm(e, value->stage_bytes)));
    return shared_address(e, head_bytes(e, w, value) ? add(e, offset, imm(e, head_bytes(e, w, value))) : offset);
}

LLVMValueRef matrix_pointer(struct emit *e, const struct walk *w, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    LLVMValueRef first = slot_address(e, value, matrix_slot(e, w, v));
    const uint32_t bytes = head_bytes(e, w, value);
    return bytes ? byte_offset(e, first, imm(e, bytes)) : first;
}

/* Row of the accumulator, and of the owner's block of this thread block. */
LLVMValueRef tile_row(struct emit *e, uint32_t half)
{
    return add(e, add(e, mul(e, e->warp, imm(e, 16)), e->quad_row), imm(e, 8 * half));
}

LLVMValueRef owner_span(struct emit *e, const struct walk *w)
{
    return add(e, mul(e, row_group(e, w), imm(e, e->p->tiles)), imm(e, w->tile));
}

LLVMValueRef head_span(struct emit *e, const struct walk *w)
{
    LLVMValueRef span = owner_span(e, w);
    return plan_heads_in_rows(e->p) > 1 ? modulo(e, span, imm(e, spans_of_head(e->p))) : span;
}

void find_head(struct emit *e, const struct walk *w)
{
    if (plan_heads_in_rows(e->p) > 1)
        e->at.start[TG_MEMBER] = divide(e, owner_span(e, w), imm(e, spans_of_head(e->p)));
}

LLVMValueRef owner_row(struct emit *e, const struct walk *w, uint32_t half)
{
    return add(e, mul(e, head_span(e, w), imm(e, WALK_TILE)), tile_row(e, half));
}

LLVMValueRef owner_eight(struct emit *e, const struct walk *w, uint32_t half)
{
    return add(e, mul(e, head_span(e, w), imm(e, WALK_TILE)), add(e, mul(e, e->warp, imm(e, 16)), imm(e, 8 * half)));
}

LLVMBasicBlockRef begin_inside(struct emit *e, uint32_t dim, LLVMValueRef first)
{
    return plan_is_ragged(e->p, dim)
               ? begin_if(e, less(e, add(e, e->at.start[dim], first), imm(e, plan_dim_size(e->p, dim))))
               : NULL;
}

void end_inside(struct emit *e, LLVMBasicBlockRef after)
{
    if (after)
        end_if(e, after);
}

LLVMValueRef positions_before(struct emit *e, const struct walk *w, uint32_t tile)
{
    return plan_makes_whole_tiles(e->p) ? imm(e, 0) : mul(e, w->group, imm(e, tile / e->p->groups));
}

LLVMValueRef tile_column(struct emit *e, uint32_t column_class)
{
    return add(e, mul(e, e->quad_column, imm(e, 2)), imm(e, column_class / 2 * 8 + column_class % 2));
}

/* 16-byte unit `unit` of row `row` of a tile of 128-byte rows. */
LLVMValueRef unit_offset(struct emit *e, LLVMValueRef row, LLVMValueRef unit)
{
    LLVMValueRef place = LLVMBuildXor(e->b, unit, LLVMBuildAnd(e->b, row, imm(e, 7), ""), "");
    return add(e, mul(e, row, imm(e, WALK_SPAN_BYTES)), mul(e, place, imm(e, 16)));
}

/* ---- elements ---- */

LLVMValueRef owned_element(struct emit *e, const LLVMValueRef words[16], uint32_t r)
{
    const uint32_t n = r / 4;
    return unpack(e, words[n / 2 * 4 + n % 2 * 2 + r / 2 % 2], r % 2);
}

/* ---- products ---- */

LLVMValueRef along_rows(struct emit *e, LLVMValueRef descriptor, uint32_t k)
{
    return add(e, descriptor, imm(e, k / 4 * (SPAN_BYTES / 16) + k % 4 * 2));
}

/* A tile of positions: each group some of its columns, both operands from shared memory. */
static void product_of_matrices(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    const uint32_t columns = plan_position_columns(p);
    LLVMValueRef x[WALK_TILE], a = descriptor(e, matrix_address(e, w, op->a), STEP_K);
    LLVMValueRef rows = positions_before(e, w, SPAN_BYTES);
    LLVMValueRef b = descriptor(e, add(e, matrix_address(e, w, op->b), rows), STEP_K);
    take_fresh(e, op->v, x);
    wgmma_fence(e, NULL, 0);
    for (uint32_t k = 0; k < p->values[op->a].extent[1] / STEP_K; k++)
        wgmma_shared(e, x, columns, along_rows(e, a, k), along_rows(e, b, k), k > 0, false);
    wgmma_commit(e);
    put_back(e, w, op->v, x);
}

/* A matrix with the state's columns, from the first that the group has. */
static LLVMValueRef columns_of(struct emit *e, const struct walk *w, uint32_t v, uint32_t span_bytes)
{
    return descriptor(e, add_columns(e, w, matrix_address(e, w, v), SPAN_BYTES / WALK_TILE), span_bytes);
}

/* Some columns of the state's tile as left operand; a sum over heads goes on. */
static void product_of_state(struct emit *e, struct walk *w, const struct op *op)
{
    const bool adds = e->p->values[op->v].summed && w->column_head;
    const uint32_t begin = op->n * e->p->state_part, columns = plan_part_columns(e->p, op->n);
    LLVMValueRef words[64], x[WALK_TILE / 2], *const state = slots(e, w, op->a) + begin / 2,
                                                     b = columns_of(e, w, op->b, STEP_K);
    for (uint32_t i = 0; i < columns / 4; i++)
        words[i] = pack(e, get(e, e->f32, state[2 * i]), get(e, e->f32, state[2 * i + 1]));
    if (begin || adds)
        take(e, w, op->v, x);
    else
        take_fresh(e, op->v, x);
    wgmma_fence(e, words, columns / 4);
    for (uint32_t k = 0; k < columns / STEP_K; k++)
        wgmma_registers(e, x, WALK_TILE, words + 4 * k, along_rows(e, b, begin / STEP_K + k), adds || begin + k > 0,
                        false);
    wgmma_commit(e);
    put_back(e, w, op->v, x);
}

void await_product(struct emit *e, struct walk *w, uint32_t v, uint32_t pending)
{
    LLVMValueRef x[128];
    const uint32_t n = walk_registers(e->p, &e->p->values[v]) * (v == e->p->state ? plan_heads_in_columns(e->p) : 1);
    LLVMValueRef *const from = slots(e, w, v);
    for (uint32_t r = 0; r < n; r++)
        x[r] = get(e, e->f32, from[r]);
    wgmma_wait(e, x, n, pending + w->ahead);
    for (uint32_t r = 0; r < n; r++)
        set(e, from[r], x[r]);
}

LLVMValueRef walk_weight(struct emit *e, const struct plan_weight *weight, LLVMValueRef position)
{
    LLVMValueRef from = slot_address(e, &e->p->values[weight->by], e->slot[weight->by]),
                 by = LLVMBuildLoad2(e->b, e->f32, byte_offset(e, from, mul(e, position, imm(e, 4))), "");
    return weight->scalar < 0 ? by
                              : LLVMBuildFMul(e->b, by, argument(e, TG_ARG_SCALAR, (uint32_t)weight->scalar, 0), "");
}

static LLVMValueRef decay_factor(struct emit *e, const struct op *op, LLVMValueRef index)
{
    const struct value *g = &e->p->values[op->a];
    LLVMValueRef from = slot_address(e, g, e->slot[op->a]);
    from = index ? byte_offset(e, from, mul(e, index, imm(e, tg_dtype_bytes(g->dtype)))) : from;
    return exp2_approx(e, LLVMBuildLoad2(e->b, e->f32, from, ""));
}

/* By one number, or one for each row or column. */
void walk_decay(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *g = &p->values[op->a];
    const bool by_rows = g->n_dims && g->dims[0] == p->owner;
    LLVMValueRef factor[2] = {NULL};
    if (!g->n_dims)
        factor[0] = factor[1] = decay_factor(e, op, NULL);
    for (uint32_t half = 0; by_rows && half < 2; half++)
        factor[half] = decay_factor(e, op, owner_row(e, w, half));
    for (uint32_t r = 0; r < walk_registers(p, &p->values[op->v]); r++) {
        const uint32_t half = r / 2 % 2;
        if (g->n_dims && !by_rows && !half) /* both rows of the lane have the column's */
            factor[r % 2] = decay_factor(e, op, add_columns(e, w, tile_column(e, r / 4 * 2 + r % 2), 1));
        LLVMValueRef slot = slots(e, w, op->v)[r], by = factor[g->n_dims && !by_rows ? r % 2 : half];
        set(e, slot, LLVMBuildFMul(e->b, get(e, e->f32, slot), by, ""));
    }
}

/* With the last tile: the next chunk's first one catches up with what the chunk before has put off. */
void walk_put_off(struct emit *e, struct walk *w, const struct op *op)
{
    if (w->tile + 1 == e->p->tiles)
        set(e, w->put_off[w->column_head], decay_factor(e, op, NULL));
}

/* Of the tile, all heads' columns; behind the loop, of all tiles. */
void walk_catch_up(struct emit *e, struct walk *w, const struct op *op)
{
    const struct walk here = *w;
    const uint32_t n = walk_registers(e->p, &e->p->values[op->v]), tiles = e->p->tiles;
    for (w->tile = w->in_loop ? here.tile : 0; w->tile < (w->in_loop ? here.tile + 1 : tiles); w->tile++)
        for (w->column_head = 0; w->column_head < e->p->heads; w->column_head++) {
            LLVMValueRef by = get(e, e->f32, w->put_off[w->column_head]);
            for (uint32_t r = 0; r < n; r++) {
                LLVMValueRef slot = slots(e, w, op->v)[r];
                set(e, slot, LLVMBuildFMul(e->b, get(e, e->f32, slot), by, ""));
            }
            if (w->tile + 1 == tiles)
                set(e, w->put_off[w->column_head], real(e, 1));
        }
    w->tile = here.tile;
    w->column_head = here.column_head;
}

/* Where this lane's row of 8 x 8 matrices of a tile positions x owner is, less 16 positions a step. Its warp reads 16
 * of the tile's columns, and writes the output to the same. */
LLVMValueRef owned_address(struct emit *e, const struct walk *w, uint32_t v)
{
    LLVMValueRef matrix = divide(e, e->lane, imm(e, 8)), in_matrix = modulo(e, e->lane, imm(e, 8));
    LLVMValueRef row = add(e, mul(e, divide(e, matrix, imm(e, 2)), imm(e, 8)), in_matrix);
    LLVMValueRef unit = add(e, mul(e, e->warp, imm(e, 2)), modulo(e, matrix, imm(e, 2)));
    LLVMValueRef span = add(e, matrix_address(e, w, v), mul(e, owner_span(e, w), imm(e, SPAN_BYTES)));
    return add(e, span, unit_offset(e, row, unit));
}

void load_owned(struct emit *e, const struct walk *w, uint32_t v, uint32_t k, LLVMValueRef words[16])
{
    load_matrices(e, add(e, owned_address(e, w, v), imm(e, k * STEP_K * WALK_SPAN_BYTES)), words + 4 * k);
}

void load_all_owned(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef words[16])
{
    for (uint32_t k = 0; k < WALK_TILE / STEP_K; k++)
        load_owned(e, w, v, k, words);
}

void walk_fetch(struct emit *e, struct walk *w, const struct op *op)
{
    load_all_owned(e, w, op->v, w->words[op->v]);
    if (op->flags & OP_CAREFUL)
        w->careful[op->v] = careful_sees(e, w->words[op->v], false);
}

/* The factors of two positions, even and odd, in the input type, as the operand would be. */
static LLVMValueRef factor_word(struct emit *e, const struct op *op, struct expression *x, uint32_t position)
{
    LLVMValueRef factor[2];
    if (e->p->rounded[op->c])
        return walk_rounded(e, op->c, position);
    for (uint32_t k = 0; k < 2; k++) {
        const struct element_at at = {.row_class = position + k, /* class of equal positions */
                                      .row = tile_column(e, position + k),
                                      .column = imm(e, 0),
                                      .self = real(e, 1)};
        factor[k] = expression_element(e, x, &at);
    }
    return pack(e, factor[0], factor[1]);
}

/* Words times the factor of their positions, one of the operands' maps. */
static void scale_owned(struct emit *e, const struct op *op, const LLVMValueRef words[16], LLVMValueRef out[16])
{
    const struct value *scaled = op->flags & OP_SCALED ? &e->p->values[op->c] : NULL;
    LLVMTypeRef type = e->p->shape.io == TG_BF16 ? e->v2bf16 : e->v2f16;
    struct expression *x = scaled ? expression_begin(e, scaled->stmt, scaled, true) : NULL;
    for (uint32_t i = 0; i < 16; i++) { /* word i: positions 16 (i/4) + 8 (i/2 % 2) + 2 (l%4), and the next */
        out[i] = words[i];
        if (x)
            out[i] = as(e, LLVMBuildFMul(e->b, as(e, out[i], type), as(e, factor_word(e, op, x, i / 2 * 2), type), ""),
                        e->i32);
    }
    free(x);
}

/* Does the right operand have the columns of the accumulators along its rows' length, not as its rows? */
static bool is_by_columns(const struct plan *p, const struct op *op)
{
    return !plan_has_dim(&p->values[op->v], p->values[op->b].dims[0]);
}

/* They are there before a product is under way from the others. */
void walk_scale(struct emit *e, struct walk *w, const struct op *op)
{
    scale_owned(e, op, w->words[op->v], w->scaled);
    wgmma_fence(e, w->scaled, 16);
}

/* A computed tile's accumulators, packed, or what its scaled map makes of them, are the left operand; or they times the factor of the
 * right one's map. */
static void pack_computed(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef words[16])
{
    const struct value *scaled = op->flags & OP_SCALED ? &e->p->values[op->c] : NULL;
    const bool is_others = scaled && plan_matrix_of(e->p, op->c) != op->a;
    struct expression *x = scaled ? expression_begin(e, scaled->stmt, scaled, true) : NULL;
    LLVMValueRef y[WALK_TILE / 2];
    const uint32_t n = take(e, w, op->a, y);
    for (uint32_t r = 0; x && r < n; r++) {
        const uint32_t position = r / 4 * 2 + r % 2, half = r / 2 % 2;
        const struct element_at at = {.row_class = position,
                                      .column_class = half,
                                      .row = tile_column(e, position),
                                      .column = owner_row(e, w, half),
                                      .self = is_others ? real(e, 1) : NULL,
                                      .self_index = r};
        LLVMValueRef mapped = expression_element(e, x, &at);
        y[r] = is_others ? LLVMBuildFMul(e->b, y[r], mapped, "") : mapped;
    }
    for (uint32_t i = 0; i < n / 2; i++)
        words[i] = pack(e, y[2 * i], y[2 * i + 1]);
    free(x);
}

/* 64 columns of the left operand, from registers, times a tile of as many positions, or times a matrix into the state. */
static void issue_by_words(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef *words, LLVMValueRef b)
{
    const bool by_columns = is_by_columns(e->p, op);
    LLVMValueRef x[128];
    const uint32_t n = take(e, w, op->v, x);
    if (!(op->flags & OP_AHEAD))
        wgmma_fence(e, words, 16);
    wgmma_fence(e, x, n);
    for (uint32_t k = 0; k < WALK_TILE / STEP_K; k++)
        wgmma_registers(e, x, 2 * n, words + 4 * k,
                        by_columns ? add(e, b, imm(e, k * STEP_K * WALK_SPAN_BYTES / 16)) : along_rows(e, b, k), true,
                        by_columns);
    wgmma_commit(e);
    put_back(e, w, op->v, x);
}

static LLVMValueRef right_operand(struct emit *e, struct walk *w, const struct op *op)
{
    const uint32_t span_bytes = is_by_columns(e->p, op) ? SPAN_BYTES : STEP_K;
    return op->v == e->p->state ? columns_of(e, w, op->b, span_bytes)
                                : descriptor(e, matrix_address(e, w, op->b), span_bytes);
}

/* Zeros to begin with: what is spoiled before a product stays so. */
static void begin_sum(struct emit *e, struct walk *w, const struct op *op)
{
    for (uint32_t r = 0; !(op->flags & OP_ONTO) && r < walk_registers(e->p, &e->p->values[op->v]); r++)
        set(e, slots(e, w, op->v)[r], real(e, 0));
}

/* Left operands of the products into all heads' columns would take too many registers: there are two at most. */
static void await_head_before(struct emit *e, struct walk *w, uint32_t v)
{
    if (!w->column_head)
        return;
    w->column_head--;
    LLVMValueRef x[128];
    wgmma_wait(e, x, take(e, w, v, x), 0);
    put_back(e, w, v, x);
    w->column_head++;
}

/* Of heads of their own, in the other way: both products have the same on the left. */
static void product_of_decayed(struct emit *e, struct walk *w, const struct op *op)
{
    if (op->v != e->p->state) {
        careful_left(e, w, op, w->words[op->a], w->careful[op->a], true);
        scale_owned(e, op, w->words[op->a], w->scaled);
    }
    issue_by_words(e, w, op, w->scaled, right_operand(e, w, op));
}

/* A fetched matrix on the left. By a tile, which is masked: what NaN reach is spoiled before, the state too. */
static void product_of_fetched(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef left[16], *words = op->flags & OP_SCALED ? left : w->words[op->a];
    begin_sum(e, w, op);
    if (e->p->decayed && e->p->own_heads) {
        product_of_decayed(e, w, op);
        return;
    }
    if (op->v == e->p->state) {
        if (!(op->flags & OP_AHEAD))
            scale_owned(e, op, w->words[op->a], left);
        await_head_before(e, w, op->v);
        issue_by_words(e, w, op, op->flags & OP_AHEAD ? w->scaled : words, right_operand(e, w, op));
        return;
    }
    LLVMValueRef b = right_operand(e, w, op);
    careful_left(e, w, op, w->words[op->a], w->careful[op->a], true);
    scale_owned(e, op, w->words[op->a], left);
    issue_by_words(e, w, op, words, b);
}

static void product_of_computed(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef words[16];
    begin_sum(e, w, op);
    pack_computed(e, w, op, words);
    if (op->v != e->p->state)
        careful_left(e, w, op, words, careful_sees(e, words, true), false);
    issue_by_words(e, w, op, words, right_operand(e, w, op));
}

/* Of heads that are side by side: the next one's is under way with this one's, in registers of its own. */
static void product_of_heads(struct emit *e, struct walk *w, const struct op *op)
{
    const uint32_t n = walk_registers(e->p, &e->p->values[op->v]), head = w->column_head;
    LLVMValueRef *const registers = e->registers[op->v];
    if (head == 0)
        product_of_matrices(e, w, op);
    for (uint32_t r = 0; head && r < n; r++) { /* not their values: those are being made */
        LLVMValueRef const done = registers[r];
        registers[r] = registers[n + r];
        registers[n + r] = done;
    }
    w->ahead = head + 1 < e->p->heads;
    if (!w->ahead)
        return;
    w->column_head++;
    e->registers[op->v] += n;
    product_of_matrices(e, w, op);
    e->registers[op->v] -= n;
    w->column_head--;
}

void walk_product(struct emit *e, struct walk *w, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    if (plan_is_across(e->p, v))
        across_product(e, w, op);
    else if (!plan_is_owned(e->p, v) && v->by_head && plan_is_ahead(e->p))
        product_of_heads(e, w, op);
    else if (!plan_is_owned(e->p, v))
        product_of_matrices(e, w, op);
    else if (op->a == e->p->state)
        (e->p->rounds_state ? across_product_of_state : product_of_state)(e, w, op);
    else if (plan_is_loaded(&e->p->values[op->a]))
        product_of_fetched(e, w, op);
    else
        product_of_computed(e, w, op);
    if (op->a == e->p->state)
        walk_end_columns(e, w);
}

static void add_addend(struct emit *e, struct walk *w, const struct op *op, struct addends *a)
{
    LLVMValueRef *const left = a->left[a->n];
    if (op->flags & OP_AHEAD)
        memcpy(left, w->words[op->a], sizeof a->left[0]);
    else
        load_all_owned(e, w, op->a, left);
    scale_owned(e, op, left, left);
    a->right[a->n++] = columns_of(e, w, op->b, SPAN_BYTES);
}

/* Columns of the state in one part: beside those of several heads, or of a state that leaves no room for two stages, there are registers
 * for 32. */
static uint32_t dot_columns(const struct plan *p)
{
    return (plan_heads_in_columns(p) > 1 && !p->decayed) || p->own_stages ? WALK_TILE / 2 : WALK_TILE;
}

/* ... some columns of it. */
static void issue_addends(struct emit *e, struct addends *a, uint32_t part, LLVMValueRef x[WALK_TILE / 2])
{
    const uint32_t columns = dot_columns(e->p), first = part * columns;
    const uint32_t place = first / WALK_TILE * SPAN_BYTES + first % WALK_TILE * 2;
    for (uint32_t i = 0; !a->is_begun && i < a->n; i++) /* else a product reads them, and they may not be moved */
        wgmma_fence(e, a->left[i], 16);
    if (a->is_begun)
        wgmma_fence(e, NULL, 0);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < WALK_TILE / STEP_K; k++)
            wgmma_registers(e, x, columns, a->left[i] + 4 * k,
                            add(e, a->right[i], imm(e, (place + k * STEP_K * WALK_SPAN_BYTES) / 16)), i + k > 0, true);
    wgmma_commit(e);
}

/* A product of the first columns is under way, the others follow. */
static void begin_dot(struct emit *e, struct walk *w, const struct op *op, const struct op *addend)
{
    struct addends *a = &w->addends;
    a->n = 0;
    if (addend)
        add_addend(e, w, addend, a);
    add_addend(e, w, op, a);
    issue_addends(e, a, 0, a->x[a->turn]);
}

/* The first of all heads'. Parts take turns in these registers: left alone, ptxas uses more than there are. */
static void begin_dots(struct emit *e, struct walk *w, const struct op *op, const struct op *addend)
{
    struct addends *a = &w->addends;
    a->turn = 0;
    for (uint32_t r = 0; r < WALK_TILE; r++)
        a->x[r % 2][r / 2] = LLVMGetUndef(e->f32);
    begin_dot(e, w, op, addend);
}

/* What it is under way to is not moved. */
void walk_begin_sum(struct emit *e, struct walk *w, const struct op *op)
{
    struct addends *a = &w->addends;
    begin_dots(e, w, op, w->addend);
    w->addend = NULL;
    for (uint32_t r = 0; r < WALK_TILE / 2; r++) {
        a->begun[r] = a->begun[r] ? a->begun[r] : local(e, e->f32, "begun");
        set(e, a->begun[r], a->x[0][r]);
    }
    a->is_begun = true;
}

/* Of the first part what is under way, if it was begun before; awaited where it is. */
static void await_part(struct emit *e, struct addends *a, LLVMValueRef *x, bool is_first, bool is_last)
{
    const bool was_begun = a->is_begun && is_first;
    for (uint32_t r = 0; was_begun && r < WALK_TILE / 2; r++)
        x[r] = get(e, e->f32, a->begun[r]);
    wgmma_wait(e, x, dot_columns(e->p) / 2, !is_last);
    for (uint32_t r = 0; was_begun && r < WALK_TILE / 2; r++)
        set(e, a->begun[r], x[r]);
}

/* Of heads that are side by side the next one's begins before this one's last part is awaited. */
static bool begin_dot_of_next_head(struct emit *e, struct walk *w, const struct op *op, const struct op *addend)
{
    const uint32_t head = w->column_head;
    w->addends.is_ahead = head + 1 < plan_heads_in_columns(e->p);
    if (!w->addends.is_ahead)
        return false;
    walk_enter_head(e, w, head + 1);
    begin_dot(e, w, op, addend);
    walk_enter_head(e, w, head);
    return true;
}

void dot_with_state(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef sums[2])
{
    const struct plan *p = e->p;
    const uint32_t columns = dot_columns(p), parts = plan_state_columns(p) / columns;
    const bool by_rows = p->values[op->v].space == SPACE_ROWS;
    const struct op *addend = w->addend;
    struct addends *a = &w->addends;
    w->addend = NULL;
    if (!a->is_begun && !a->is_ahead)
        begin_dots(e, w, op, addend);
    for (uint32_t part = 1; part <= parts; part++) { /* one part is multiplied while the one before is summed up */
        LLVMValueRef *x = a->x[a->turn];
        bool more = part < parts;
        a->turn = 1 - a->turn;
        if (more)
            issue_addends(e, a, part, a->x[a->turn]);
        else
            more = begin_dot_of_next_head(e, w, op, addend);
        await_part(e, a, x, part == 1, !more);
        LLVMValueRef of_part[2] = {real(e, 0), real(e, 0)}; /* long sums would be rounded as what they have grown to */
        for (uint32_t r = 0; r < columns / 2; r++) {
            LLVMValueRef state = get(e, e->f32, slots(e, w, p->state)[(part - 1) * columns / 2 + r]);
            LLVMValueRef *sum = &of_part[by_rows ? r / 2 % 2 : r % 2];
            *sum = fma_of(e, x[r], state, *sum);
        }
        for (uint32_t i = 0; i < 2; i++)
            sums[i] = part == 1 ? of_part[i] : LLVMBuildFAdd(e->b, sums[i], of_part[i], "");
        made_here(e, sums, 2); /* or the sums of all parts are made behind the last, of all they are made of */
    }
    a->is_begun = false;
}
