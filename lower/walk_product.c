/* lower/walk_product.c - the products of a kernel on warpgroups, and the elements of their accumulators.
 *
 * An accumulator of 64 rows and n columns: warp w of the group has rows 16 w ... 16 w + 15; in it register r of a lane
 * has row l/4 + 8 (r/2 % 2) and column 8 (r/4) + 2 (l%4) + r%2. Packed in pairs the same registers are the left operand
 * of the next product, 16 columns for each 4 of them. Accumulators of the owner's rows have positions as columns, so
 * tile (position, owner) lies transposed in them. */
#include "lower/walk.h"

#include <stdlib.h>

enum { STEP_K = 16, SPAN_BYTES = WALK_TILE * WALK_SPAN_BYTES };

uint32_t other_extent(const struct plan *p)
{
    return p->block[p->owner == TG_DQK ? TG_DHV : TG_DQK];
}

uint32_t walk_registers(const struct plan *p, const struct value *v)
{
    if (v == &p->values[p->state])
        return other_extent(p) / 2;
    return plan_is_owned(p, v) ? WALK_TILE / 2 : WALK_TILE / p->groups / 2;
}

/* Registers of the value, of the tile being emitted. */
LLVMValueRef *slots(struct emit *e, const struct walk *w, uint32_t v)
{
    return e->registers[v] + (v == e->p->state ? w->tile * walk_registers(e->p, &e->p->values[v]) : 0);
}

static uint32_t take(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef *x)
{
    const uint32_t n = walk_registers(e->p, &e->p->values[v]);
    for (uint32_t r = 0; r < n; r++)
        x[r] = get(e, e->f32, slots(e, w, v)[r]);
    return n;
}

/* Of a product that begins a sum: what was in the registers before must not keep them alive. */
static uint32_t fresh(struct emit *e, uint32_t v, LLVMValueRef *x)
{
    const uint32_t n = walk_registers(e->p, &e->p->values[v]);
    for (uint32_t r = 0; r < n; r++)
        x[r] = LLVMGetUndef(e->f32);
    return n;
}

static void put(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef *x)
{
    for (uint32_t r = 0; r < walk_registers(e->p, &e->p->values[v]); r++)
        set(e, slots(e, w, v)[r], x[r]);
}

/* Where a matrix or tile begins in shared memory, in this step. */
static LLVMValueRef matrix_address(struct emit *e, const struct walk *w, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    LLVMValueRef slot = value->space == SPACE_TILE ? w->buffer : w->stage;
    return shared_address(e, add(e, imm(e, value->offset), mul(e, slot, imm(e, value->stage_bytes))));
}

/* Row of the accumulator, and of the owner's block of this thread block. */
LLVMValueRef tile_row(struct emit *e, uint32_t half)
{
    return add(e, add(e, mul(e, e->warp, imm(e, 16)), e->quad_row), imm(e, 8 * half));
}

static LLVMValueRef owner_span(struct emit *e, const struct walk *w)
{
    return add(e, mul(e, w->group, imm(e, e->p->tiles)), imm(e, w->tile));
}

LLVMValueRef owner_row(struct emit *e, const struct walk *w, uint32_t half)
{
    return add(e, mul(e, owner_span(e, w), imm(e, WALK_TILE)), tile_row(e, half));
}

LLVMValueRef tile_column(struct emit *e, uint32_t column_class)
{
    return add(e, mul(e, e->quad_column, imm(e, 2)), imm(e, column_class / 2 * 8 + column_class % 2));
}

/* ---- elements ---- */

LLVMValueRef owned_element(struct emit *e, const LLVMValueRef words[16], uint32_t r)
{
    const uint32_t n = r / 4;
    return unpack(e, words[n / 2 * 4 + n % 2 * 2 + r / 2 % 2], r % 2);
}

/* The loaded matrix among what a map of the owner's tiles reads; -1: none. */
static int owned_matrix(const struct plan *p, const struct op *op)
{
    tg_operand reads[TG_MAX_READS];
    for (uint32_t i = 0, n = tg_stmt_reads(&p->algorithm->body[op->stmt], reads); i < n; i++) {
        const int v = plan_find(p, reads[i], p->values[op->v].nest);
        if (p->values[v].space == SPACE_MATRIX)
            return v;
    }
    return -1;
}

static void store_tile(struct emit *e, const struct walk *w, uint32_t v);

void walk_map(struct emit *e, struct walk *w, const struct op *op)
{
    const struct value *out = &e->p->values[op->v];
    if (out->space == SPACE_OPERAND)
        return; /* computed where it is used */
    const bool owned = plan_is_owned(e->p, out);
    const int matrix = owned ? owned_matrix(e->p, op) : -1;
    LLVMValueRef words[16];
    if (matrix >= 0)
        load_all_owned(e, w, (uint32_t)matrix,
                       words); /* even `left`: kept, it would take 16 registers beside the state's product */
    struct expression *x = expression_begin(e, op->stmt, out, true);
    for (uint32_t r = 0; x && r < walk_registers(e->p, out); r++) {
        const uint32_t half = r / 2 % 2, column_class = r / 4 * 2 + r % 2;
        LLVMValueRef column = tile_column(e, column_class), row = owned ? owner_row(e, w, half) : tile_row(e, half);
        struct element_at at = {
            .row_class = half, .column_class = column_class, .row = row, .column = column, .self_index = r};
        if (owned) {
            at = (struct element_at){
                .row_class = column_class, .column_class = half, .row = column, .column = row, .self_index = r};
            at.self = matrix >= 0 ? owned_element(e, words, r) : NULL;
        } else {
            LLVMValueRef first = mul(e, w->group, imm(e, WALK_TILE / e->p->groups));
            at.column = add(e, column, first);
            at.row_base = tile_row(e, 0);
            at.column_base = add(e, tile_column(e, 0), first);
            at.row_offset = 8 * (int32_t)half;
            at.column_offset = (int32_t)(column_class / 2 * 8 + column_class % 2);
        }
        set(e, slots(e, w, op->v)[r], expression_element(e, x, &at));
    }
    free(x);
    if (out->space == SPACE_TILE)
        store_tile(e, w, op->v);
}

/* 16-byte unit `unit` of row `row` of a tile of 128-byte rows. */
LLVMValueRef unit_offset(struct emit *e, LLVMValueRef row, LLVMValueRef unit)
{
    LLVMValueRef place = LLVMBuildXor(e->b, unit, LLVMBuildAnd(e->b, row, imm(e, 7), ""), "");
    return add(e, mul(e, row, imm(e, WALK_SPAN_BYTES)), mul(e, place, imm(e, 16)));
}

/* The group's columns of a tile of positions, rounded, to shared memory. */
static void store_tile(struct emit *e, const struct walk *w, uint32_t v)
{
    LLVMValueRef x[WALK_TILE], base = matrix_address(e, w, v);
    const uint32_t n = take(e, w, v, x), units = WALK_TILE / e->p->groups / 8;
    LLVMValueRef matrix = divide(e, e->lane, imm(e, 8)), in_matrix = modulo(e, e->lane, imm(e, 8));
    LLVMValueRef row =
        add(e, add(e, mul(e, e->warp, imm(e, 16)), mul(e, modulo(e, matrix, imm(e, 2)), imm(e, 8))), in_matrix);
    LLVMValueRef unit = add(e, mul(e, w->group, imm(e, units)), divide(e, matrix, imm(e, 2)));
    LLVMValueRef first = add(e, base, unit_offset(e, row, unit));
    for (uint32_t u = 0; u < n / 4;
         u += 2) { /* bits of the unit's number that are 0 in the first: one address serves all */
        LLVMValueRef words[4];
        for (uint32_t i = 0; i < 4; i++)
            words[i] = pack(e, x[4 * u + 2 * i], x[4 * u + 2 * i + 1]);
        store_matrices(e, LLVMBuildXor(e->b, first, imm(e, 16 * u), ""), words, false);
    }
}

/* ---- products ---- */

/* Where step k of a sum along the rows of a matrix begins: 16 of 64 columns, then the next span. */
static LLVMValueRef along_rows(struct emit *e, LLVMValueRef descriptor, uint32_t k)
{
    return add(e, descriptor, imm(e, k / 4 * (SPAN_BYTES / 16) + k % 4 * 2));
}

void walk_positions(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *out = &p->values[op->v];
    const bool in_order = plan_has_dim(&p->values[op->a], out->dims[0]);
    const uint32_t va = in_order ? op->a : op->b, vb = in_order ? op->b : op->a, columns = WALK_TILE / p->groups;
    LLVMValueRef x[WALK_TILE], a = descriptor(e, matrix_address(e, w, va), STEP_K);
    LLVMValueRef rows = mul(e, w->group, imm(e, columns * WALK_SPAN_BYTES));
    LLVMValueRef b = descriptor(e, add(e, matrix_address(e, w, vb), rows), STEP_K);
    fresh(e, op->v, x);
    wgmma_fence(e, NULL, 0);
    for (uint32_t k = 0; k < p->values[va].extent[1] / STEP_K; k++)
        wgmma_shared(e, x, columns, along_rows(e, a, k), along_rows(e, b, k), k > 0);
    wgmma_commit(e);
    put(e, w, op->v, x);
}

/* The state's tile as left operand, 128 columns at a time: more would not fit beside it. */
void walk_read_state(struct emit *e, struct walk *w, const struct op *op)
{
    enum { PART = 128 };
    const struct plan *p = e->p;
    const uint32_t vb = op->a == p->state ? op->b : op->a, extent = other_extent(p);
    LLVMValueRef state[128], words[64], x[WALK_TILE / 2], b = descriptor(e, matrix_address(e, w, vb), STEP_K);
    take(e, w, p->state, state);
    const uint32_t n = fresh(e, op->v, x);
    for (uint32_t begin = 0; begin < extent; begin += PART) {
        const uint32_t end = begin + PART < extent ? begin + PART : extent;
        for (uint32_t i = begin / 4; i < end / 4; i++)
            words[i] = pack(e, state[2 * i], state[2 * i + 1]);
        if (begin)
            wgmma_wait(e, x, n, 0);
        wgmma_fence(e, words + begin / 4, (end - begin) / 4);
        for (uint32_t k = begin / STEP_K; k < end / STEP_K; k++)
            wgmma_registers(e, x, WALK_TILE, words + 4 * k, along_rows(e, b, k), k > 0, false);
        wgmma_commit(e);
    }
    put(e, w, op->v, x);
}

void walk_wait(struct emit *e, struct walk *w, uint32_t value)
{
    LLVMValueRef x[128];
    const uint32_t n = take(e, w, value, x);
    wgmma_wait(e, x, n, 0);
    put(e, w, value, x);
}

void walk_decay(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef factor)
{
    for (uint32_t r = 0; r < walk_registers(e->p, &e->p->values[op->v]); r++) {
        LLVMValueRef slot = slots(e, w, op->v)[r];
        set(e, slot, LLVMBuildFMul(e->b, get(e, e->f32, slot), factor, ""));
    }
}

/* Where this lane's row of 8 x 8 matrices of a tile positions x owner is, less 16 positions a step. Its warp reads 16
 * of the tile's columns, and writes the output to the same. */
static LLVMValueRef owned_address(struct emit *e, const struct walk *w, uint32_t v)
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

void walk_load_left(struct emit *e, struct walk *w)
{
    load_all_owned(e, w, e->p->left, w->left);
}

void walk_add_tile(struct emit *e, struct walk *w, const struct op *op)
{
    const uint32_t tile = e->p->values[op->a].space == SPACE_TILE ? op->a : op->b;
    LLVMValueRef x[WALK_TILE / 2], b = descriptor(e, matrix_address(e, w, tile), STEP_K);
    careful_left(e, w, op);
    const uint32_t n = take(e, w, op->v, x);
    wgmma_fence(e, w->left, WALK_TILE / 4);
    wgmma_fence(e, x, n);
    for (uint32_t k = 0; k < WALK_TILE / STEP_K; k++)
        wgmma_registers(e, x, WALK_TILE, w->left + 4 * k, along_rows(e, b, k),
                        k > 0 || e->p->algorithm->body[op->stmt].init, false);
    wgmma_commit(e);
    wgmma_wait(e, x, n, 0);
    put(e, w, op->v, x);
}

/* Words times the factor of their positions, one of the operands' maps; in the input type, as the operand would be. */
static void scale_owned(struct emit *e, const struct op *op, const LLVMValueRef words[16], LLVMValueRef out[16])
{
    const struct value *a = &e->p->values[op->a], *b = &e->p->values[op->b];
    const struct value *scaled = a->space == SPACE_OPERAND ? a : b->space == SPACE_OPERAND ? b : NULL;
    LLVMTypeRef type = e->p->shape.io == TG_BF16 ? e->v2bf16 : e->v2f16;
    struct expression *x = scaled ? expression_begin(e, scaled->stmt, scaled, true) : NULL;
    for (uint32_t i = 0; i < 16; i++) { /* word i: positions 16 (i/4) + 8 (i/2 % 2) + 2 (l%4), and the next */
        LLVMValueRef factor[2];
        for (uint32_t k = 0; x && k < 2; k++) {
            const uint32_t position = i / 2 * 2 + k; /* class of equal positions */
            const struct element_at at = {
                .row_class = position, .row = tile_column(e, position), .column = imm(e, 0), .self = real(e, 1)};
            factor[k] = expression_element(e, x, &at);
        }
        out[i] = words[i];
        if (x)
            out[i] =
                as(e, LLVMBuildFMul(e->b, as(e, out[i], type), as(e, pack(e, factor[0], factor[1]), type), ""), e->i32);
    }
    free(x);
}

void walk_add_state(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    LLVMValueRef x[128], left[16];
    scale_owned(e, op, w->left, left);
    LLVMValueRef b = descriptor(e, matrix_address(e, w, p->right), SPAN_BYTES);
    const uint32_t n = take(e, w, op->v, x);
    wgmma_fence(e, left, 16);
    wgmma_fence(e, x, n);
    for (uint32_t k = 0; k < WALK_TILE / STEP_K; k++)
        wgmma_registers(e, x, other_extent(p), left + 4 * k, add(e, b, imm(e, k * STEP_K * WALK_SPAN_BYTES / 16)), true,
                        true);
    wgmma_commit(e);
    put(e, w, op->v, x);
}

/* 64 columns of what the chunk adds to the other state. */
static void issue_addend(struct emit *e, LLVMValueRef left[16], LLVMValueRef right, LLVMValueRef x[WALK_TILE / 2])
{
    wgmma_fence(e, left, 16);
    for (uint32_t k = 0; k < WALK_TILE / STEP_K; k++)
        wgmma_registers(e, x, WALK_TILE, left + 4 * k, add(e, right, imm(e, k * STEP_K * WALK_SPAN_BYTES / 16)), k > 0,
                        true);
    wgmma_commit(e);
}

LLVMValueRef dot_with_state(struct emit *e, struct walk *w, uint32_t v)
{
    const struct plan *p = e->p;
    const struct op *op = NULL;
    for (uint32_t i = 0; i < p->n_ops; i++)
        op = p->ops[i].kind == OP_CONTRACT && p->ops[i].v == v ? &p->ops[i] : op;
    const uint32_t a = plan_matrix_of(p, op->a), b = plan_matrix_of(p, op->b);
    const bool in_order = plan_is_owned(p, &p->values[a]);
    const uint32_t parts = other_extent(p) / WALK_TILE;
    LLVMValueRef left[16], x[2][WALK_TILE / 2], sums[2] = {real(e, 0), real(e, 0)};
    load_all_owned(e, w, in_order ? a : b, left);
    scale_owned(e, op, left, left);
    LLVMValueRef right = descriptor(e, matrix_address(e, w, in_order ? b : a), SPAN_BYTES);
    for (uint32_t r = 0; r < WALK_TILE;
         r++) /* the parts take turns in these: left alone, ptxas uses more than there are */
        x[r % 2][r / 2] = LLVMGetUndef(e->f32);
    for (uint32_t part = 0; part <= parts; part++) { /* one part is multiplied while the one before is summed up */
        if (part < parts)
            issue_addend(e, left, add(e, right, imm(e, part * SPAN_BYTES / 16)), x[part % 2]);
        if (part == 0)
            continue;
        wgmma_wait(e, x[(part - 1) % 2], WALK_TILE / 2, part < parts);
        for (uint32_t r = 0; r < WALK_TILE / 2; r++) {
            LLVMValueRef state = get(e, e->f32, slots(e, w, p->state)[(part - 1) * WALK_TILE / 2 + r]);
            sums[r % 2] = fma_of(e, x[(part - 1) % 2][r], state, sums[r % 2]);
        }
    }
    return LLVMBuildFAdd(e->b, sums[0], sums[1], "");
}

/* ---- the output ---- */

/* What the reader adds up, or sums over heads, is fp32: from registers, where eight lanes have neighbours. It is in the
 * workspace, whose strides are known: every address is one register and a constant. LLVM must not see that columns
 * are the same in every chunk: each would take a register through all of them. */
static void store_floats(struct emit *e, const struct walk *w, const struct op *op, const LLVMValueRef x[WALK_TILE / 2])
{
    const struct value *v = &e->p->values[op->v];
    const uint32_t parts = plan_parts(e->p->schedule, e->p->slices, &e->p->shape, op->tile),
                   row = parts * plan_dim_size(e->p, e->p->owner);
    find_thread(e, opaque(e, e->tid));
    LLVMValueRef column = tile_column(e, 0),
                 first = tensor_address(e, v->operand, op->tile, &e->at, v->dims, column, owner_row(e, w, 0));
    first = byte_offset(e, first, mul(e, part_index(e, op->tile), imm(e, 4)));
    for (uint32_t c = 0; c < WALK_TILE / 4; c++) {
        const uint32_t position = c / 2 * 8 + c % 2;
        LLVMBasicBlockRef after = begin_if(e, less(e, add(e, column, imm(e, position)), e->at.length));
        for (uint32_t i = 0; i < 2; i++) {
            LLVMValueRef to = byte_offset(e, first, imm64(e, 4 * (position * row + 8 * i * parts)));
            LLVMSetAlignment(LLVMBuildStore(e->b, x[c / 2 * 4 + 2 * i + c % 2], to), 4);
        }
        end_if(e, after);
    }
    sync_warp(e);      /* lanes may have parted, and what follows is for warps */
    if (e->p->carries) /* what the group carries on is whole: as in walk_store */
        named_barrier(e, add(e, w->group, imm(e, 2)), 128);
}

void walk_store(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[WALK_TILE / 2];
    take(e, w, op->v, x);
    if (plan_memory_dtype(e->p, op->tile) == TG_F32) {
        store_floats(e, w, op, x);
        return;
    }
    const uint32_t rows = e->p->adds ? WALK_TILE / 2 : WALK_TILE;
    LLVMValueRef offset = mul(e, owner_span(e, w), imm(e, SPAN_BYTES)),
                 place = add(e, matrix_address(e, w, e->p->left), offset), begin = imm(e, 0);
    if (e->p->adds) {
        cluster_sum(e, w, place, x);
        begin = cluster_first_position(e);
    }
    LLVMValueRef skipped = mul(e, begin, imm(e, WALK_SPAN_BYTES)),
                 to = add(e, owned_address(e, w, e->p->left), skipped);
    for (uint32_t u = 0; u < rows / 8; u += 2) {
        LLVMValueRef words[4];
        for (uint32_t i = 0; i < 4; i++)
            words[i] = pack(e, x[4 * u + 2 * i], x[4 * u + 2 * i + 1]);
        store_matrices(e, add(e, to, imm(e, u * 8 * WALK_SPAN_BYTES)), words, true);
    }
    fence_async(e);
    named_barrier(e, add(e, w->group, imm(e, 2)), 128);
    LLVMValueRef one = LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), "");
    if (e->p->shape.packed)
        walk_store_rows(e, op, owner_span(e, w),
                        byte_offset(e, slot_address(e, &e->p->values[e->p->left], w->stage), offset), begin, rows);
    LLVMBasicBlockRef after = begin_if(e, both(e, one, e->p->shape.packed ? is_whole(e) : NULL));
    LLVMValueRef at[5], span = add(e, divide(e, e->at.start[e->p->owner], imm(e, WALK_TILE)), owner_span(e, w));
    map_place(e, op->tile, w->batch, w->head, span, at);
    at[1] = add(e, at[1], begin);
    map_store(e, map_argument(e, op->tile), add(e, place, skipped), at);
    map_store_commit(e);
    end_if(e, after);
    sync_warp(e);
}
