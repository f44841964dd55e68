/* lower/fragment.c - accumulator tiles in registers.
 *
 * Layout of the m16n8 accumulator (PTX ISA, mma.m16n8k16): lane l has rows l/4 and l/4 + 8, columns
 * 2 (l%4) and 2 (l%4) + 1. A row class is (16-row tile, upper or lower half), a column class (8-column tile,
 * left or right element). */
#include "compiler/plan_program.h"
#include "compiler/plan_tile.h"
#include "lower/channel.h"

struct shape fragment_shape(const struct plan *p, const struct value *v)
{
    return (struct shape){v->extent[0] / p->warps_m / 16, v->extent[1] / plan_column_warps(p, v) / 8};
}

/* The warp's number among those that share the rows, in the order in which they have their m-th 16. */
static LLVMValueRef warp_row(struct emit *e, uint32_t m)
{
    const struct plan *p = e->p;
    LLVMValueRef warp = p->warps_n == 1 ? e->warp : divide(e, e->warp, imm(e, p->warps_n));
    return p->to_and_fro && m % 2 ? sub(e, imm(e, p->warps_m - 1), warp) : warp;
}

LLVMValueRef fragment_first_row(struct emit *e, const struct value *v, uint32_t m)
{
    return mul(e, warp_row(e, m), imm(e, e->p->to_and_fro ? 16 : v->extent[0] / e->p->warps_m));
}

uint32_t fragment_row_step(const struct emit *e)
{
    return e->p->to_and_fro ? 16 * e->p->warps_m : 16;
}

LLVMValueRef fragment_row(struct emit *e, const struct value *v, uint32_t row_class)
{
    LLVMValueRef row = add(e, fragment_first_row(e, v, row_class / 2), e->quad_row);
    return add(e, row, imm(e, row_class / 2 * fragment_row_step(e) + row_class % 2 * 8));
}

LLVMValueRef fragment_block(struct emit *e, const struct value *v, uint32_t m)
{
    return divide(e, add(e, fragment_first_row(e, v, m), imm(e, m * fragment_row_step(e))), imm(e, 16));
}

LLVMValueRef fragment_column(struct emit *e, const struct value *v, uint32_t column_class)
{
    const uint32_t warps = plan_column_warps(e->p, v);
    LLVMValueRef column = mul(e, e->quad_column, imm(e, 2));
    if (warps > 1)
        column = add(e, column, mul(e, modulo(e, e->warp, imm(e, warps)), imm(e, v->extent[1] / warps)));
    return add(e, column, imm(e, column_class / 2 * 8 + column_class % 2));
}

void emit_zero(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    if (e->p->thread_dim) {
        zero_thread(e, op);
        return;
    }
    const uint32_t n = v->space == SPACE_FRAGMENT ? plan_fragment_elements(e->p, v)
                       : v->space == SPACE_ROWS   ? 2 * v->extent[0] / (8 * e->p->warps_m)
                                                  : 2;
    for (uint32_t i = 0; i < n; i++)
        set(e, e->registers[op->v][i], op->kind == OP_COPY ? get(e, e->f32, e->registers[op->a][i]) : real(e, 0));
}

void emit_member_sum(struct emit *e, const struct op *op)
{
    for (uint32_t i = 0; i < plan_fragment_elements(e->p, &e->p->values[op->v]); i++)
        set(e, e->registers[op->v][i],
            LLVMBuildFAdd(e->b, get(e, e->f32, e->registers[op->v][i]), get(e, e->f32, e->registers[op->a][i]), ""));
}

/* Optional tensors may be absent: the pointer is null. So may slots of a pool. */
LLVMValueRef present(struct emit *e, uint32_t tile)
{
    LLVMValueRef slot = slot_of(e, tile), has_slot = slot ? is_slot(e, slot) : NULL;
    if (!(e->p->algorithm->tensors[tile].flags & TG_OPTIONAL))
        return has_slot;
    LLVMValueRef pointer = argument(e, TG_ARG_POINTER, tile, 0);
    return both(e, LLVMBuildICmp(e->b, LLVMIntNE, pointer, LLVMConstNull(e->global), ""), has_slot);
}

/* Elements r .. r + n - 1 of the registers, side by side in memory. */
typedef void each_run(struct emit *e, const struct op *op, uint32_t r, uint32_t n, LLVMValueRef address);

/* Are neighbouring columns of the tile neighbours in memory? Not where it was turned (compiler/orient.c), or lies there
 * with the values first and was not. */
static bool is_dense(const struct emit *e, const struct value *v, uint32_t tile)
{
    return plan_last_axis(e->p, tile) == v->dims[1];
}

static LLVMValueRef row_inside(struct emit *e, const struct op *op, LLVMValueRef row)
{
    const struct value *v = &e->p->values[op->v];
    return inside_tile(e, &e->at, op->tile, v->dims[0], v->extent[0], row);
}

/* Are the rows of a tile of 16 all inside the tensor, or none? */
static bool has_whole_tiles(const struct emit *e, const struct value *v)
{
    return !plan_is_position(v->dims[0]) && plan_dim_size(e->p, v->dims[0]) % 16 == 0;
}

/* Columns of one block, of which it is known whether a tile of 8 is inside the tensor: widths are multiples of 8. */
static bool has_known_columns(const struct emit *e, const struct value *v)
{
    const uint32_t dim = v->dims[1];
    return !plan_is_position(dim) && plan_column_warps(e->p, v) == 1 && plan_blocks(e->p, dim) == 1;
}

/* How many tiles of 8 columns have something inside. */
static uint32_t column_tiles(const struct emit *e, const struct value *v)
{
    const uint32_t n = fragment_shape(e->p, v).n, size = plan_dim_size(e->p, v->dims[1]);
    return has_known_columns(e, v) && size / 8 < n ? size / 8 : n;
}

static LLVMValueRef column_inside(struct emit *e, const struct op *op, LLVMValueRef column)
{
    const struct value *v = &e->p->values[op->v];
    return has_known_columns(e, v) ? NULL : inside_tile(e, &e->at, op->tile, v->dims[1], v->extent[1], column);
}

/* Calls `each` for every element of the warp's m-th 16 rows that is inside the tensor: columns lie a stride apart. */
static void for_elements_of_tile(struct emit *e, const struct op *op, uint32_t m, each_run *each)
{
    const struct value *v = &e->p->values[op->v];
    const uint32_t n = fragment_shape(e->p, v).n;
    for (uint32_t column_class = 0; column_class < 2 * column_tiles(e, v); column_class++) {
        LLVMValueRef column = fragment_column(e, v, column_class), is_inside = column_inside(e, op, column);
        LLVMBasicBlockRef after_column = is_inside ? begin_if(e, is_inside) : NULL;
        for (uint32_t row_class = 2 * m; row_class < 2 * m + 2; row_class++) {
            LLVMValueRef row = fragment_row(e, v, row_class);
            LLVMValueRef inside = has_whole_tiles(e, v) ? NULL : row_inside(e, op, row);
            LLVMBasicBlockRef after_row = inside ? begin_if(e, inside) : NULL;
            each(e, op, (m * n + column_class / 2) * 4 + row_class % 2 * 2 + column_class % 2, 1,
                 tensor_address(e, v->operand, op->tile, &e->at, v->dims, row, column));
            if (after_row)
                end_if(e, after_row);
        }
        if (after_column)
            end_if(e, after_column);
    }
}

/* ... of tiles [begin, end) of 16 rows. A warp whose rows are behind the last one has one branch around all of them. */
static void for_elements_of(struct emit *e, const struct op *op, uint32_t begin, uint32_t end, each_run *each)
{
    const struct value *v = &e->p->values[op->v];
    for (uint32_t m = begin; m < end; m++) {
        LLVMValueRef inside = has_whole_tiles(e, v) ? row_inside(e, op, fragment_row(e, v, 2 * m)) : NULL;
        LLVMBasicBlockRef after = inside ? begin_if(e, inside) : NULL;
        for_elements_of_tile(e, op, m, each);
        if (after)
            end_if(e, after);
    }
}

/* Calls `each` for every pair of neighbouring elements inside the tensor, with its address; tiles [begin, end) of 16 rows. */
static void for_pairs_of(struct emit *e, const struct op *op, uint32_t begin, uint32_t end, each_run *each)
{
    const struct value *v = &e->p->values[op->v];
    const struct shape s = fragment_shape(e->p, v);
    if (!is_dense(e, v, op->tile)) {
        for_elements_of(e, op, begin, end, each);
        return;
    }
    for (uint32_t row_class = 2 * begin; row_class < 2 * end; row_class++) {
        LLVMValueRef row = fragment_row(e, v, row_class);
        LLVMValueRef inside_row = inside(e, &e->at, v->dims[0], v->extent[0], row);
        LLVMBasicBlockRef after_row = inside_row ? begin_if(e, inside_row) : NULL;
        /* neighbours in dqk and dhv are adjacent: one address a row, constant distances from it */
        LLVMValueRef first = tensor_address(e, v->operand, op->tile, &e->at, v->dims, row, fragment_column(e, v, 0));
        const uint32_t bytes = 8 * tg_dtype_bytes(plan_memory_dtype(e->p, op->tile));
        for (uint32_t n = 0; n < column_tiles(e, v); n++) {
            LLVMValueRef is_inside = column_inside(e, op, fragment_column(e, v, 2 * n));
            LLVMBasicBlockRef after_column = is_inside ? begin_if(e, is_inside) : NULL;
            each(e, op, (row_class / 2 * s.n + n) * 4 + row_class % 2 * 2, 2,
                 byte_offset(e, first, imm64(e, n * bytes)));
            if (after_column)
                end_if(e, after_column);
        }
        if (after_row)
            end_if(e, after_row);
    }
}

static void for_pairs(struct emit *e, const struct op *op, each_run *each)
{
    for_pairs_of(e, op, 0, fragment_shape(e->p, &e->p->values[op->v]).m, each);
}

static void load_run(struct emit *e, const struct op *op, uint32_t r, uint32_t n, LLVMValueRef address)
{
    const tg_dtype dtype = plan_memory_dtype(e->p, op->tile);
    if (n == 1) {
        LLVMValueRef x = LLVMBuildLoad2(e->b,
                                        dtype == TG_F32    ? e->f32
                                        : dtype == TG_BF16 ? e->bfloat
                                                           : e->half,
                                        address, "");
        LLVMSetAlignment(x, tg_dtype_bytes(dtype));
        set(e, e->registers[op->v][r], dtype == TG_F32 ? x : LLVMBuildFPExt(e->b, x, e->f32, ""));
        return;
    }
    LLVMTypeRef type = dtype == TG_F32 ? e->v2f32 : dtype == TG_BF16 ? e->v2bf16 : e->v2f16;
    LLVMValueRef x = LLVMBuildLoad2(e->b, type, address, "");
    LLVMSetAlignment(x, 2 * tg_dtype_bytes(dtype));
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef one = LLVMBuildExtractElement(e->b, x, imm(e, i), "");
        set(e, e->registers[op->v][r + i], dtype == TG_F32 ? one : LLVMBuildFPExt(e->b, one, e->f32, ""));
    }
}

void load_rows_of(struct emit *e, uint32_t v, uint32_t tile_m)
{
    const struct shape s = fragment_shape(e->p, &e->p->values[v]);
    const struct op op = {.kind = OP_ZERO, .v = (uint8_t)v, .tile = (uint8_t)TG_OPERAND_TILE(e->p->values[v].operand)};
    if (!e->p->values[v].direct)
        return;
    for (uint32_t r = tile_m * s.n * 4; r < (tile_m + 1) * s.n * 4; r++)
        set(e, e->registers[v][r], real(e, 0)); /* outside of the tensor */
    LLVMValueRef there =
        e->p->algorithm->tensors[op.tile].flags & TG_IN ? present(e, op.tile) : NULL; /* absent counts as zero */
    LLVMBasicBlockRef after = there ? begin_if(e, there) : NULL;
    for_pairs_of(e, &op, tile_m, tile_m + 1, load_run);
    if (after)
        end_if(e, after);
}

void emit_init(struct emit *e, const struct op *op)
{
    if (e->p->thread_dim) {
        init_thread(e, op);
        return;
    }
    emit_zero(e, op);
    if (!op->tile)
        return;
    LLVMValueRef there = present(e, op->tile);
    LLVMBasicBlockRef after = there ? begin_if(e, there) : NULL;
    for_pairs(e, op, load_run);
    if (after)
        end_if(e, after);
}

/* A decay of its own for every row of the state, or for every column. */
static void decay_channels(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v], *g = &e->p->values[op->a];
    const struct shape s = fragment_shape(e->p, v);
    const bool by_row = g->dims[0] == v->dims[0];
    for (uint32_t c = 0; c < 2 * (by_row ? s.m : s.n); c++) {
        LLVMValueRef index = by_row ? fragment_row(e, v, c) : fragment_column(e, v, c);
        LLVMValueRef from = byte_offset(e, slot_address(e, g, e->slot[op->a] ? e->slot[op->a] : imm(e, 0)),
                                        mul(e, index, imm(e, tg_dtype_bytes(g->dtype))));
        LLVMValueRef decay = exp2_approx(e, LLVMBuildLoad2(e->b, e->f32, from, ""));
        for (uint32_t other = 0; other < 2 * (by_row ? s.n : s.m); other++) {
            const uint32_t row = by_row ? c : other, column = by_row ? other : c;
            LLVMValueRef *x = &e->registers[op->v][(row / 2 * s.n + column / 2) * 4 + row % 2 * 2 + column % 2];
            set(e, *x, LLVMBuildFMul(e->b, get(e, e->f32, *x), decay, ""));
        }
    }
}

void emit_decay(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v], *g = &e->p->values[op->a];
    if (e->p->thread_dim) {
        decay_thread(e, op);
        return;
    }
    if (g->n_dims) {
        decay_channels(e, op);
        return;
    }
    LLVMValueRef log2_decay = g->space == SPACE_VECTOR
                                  ? LLVMBuildLoad2(e->b, e->f32, slot_address(e, g, e->slot[op->a]), "")
                                  : get(e, e->f32, e->registers[op->a][0]);
    LLVMValueRef decay = exp2_approx(e, log2_decay);
    for (uint32_t i = 0; i < plan_fragment_elements(e->p, v); i++)
        set(e, e->registers[op->v][i], LLVMBuildFMul(e->b, get(e, e->f32, e->registers[op->v][i]), decay, ""));
}

void store_float(struct emit *e, tg_dtype dtype, LLVMValueRef x, LLVMValueRef address)
{
    x = dtype == TG_F32 ? x : LLVMBuildFPTrunc(e->b, x, dtype == TG_BF16 ? e->bfloat : e->half, "");
    LLVMSetAlignment(LLVMBuildStore(e->b, x, address), tg_dtype_bytes(dtype));
}

static void store_run(struct emit *e, const struct op *op, uint32_t r, uint32_t n, LLVMValueRef address)
{
    const tg_dtype dtype = plan_memory_dtype(e->p, op->tile);
    if (n == 1) {
        store_float(e, dtype, get(e, e->f32, e->registers[op->v][r]), address);
        return;
    }
    LLVMValueRef x[2] = {get(e, e->f32, e->registers[op->v][r]), get(e, e->f32, e->registers[op->v][r + 1])};
    LLVMValueRef both_x;
    if (dtype == TG_F32) {
        both_x = LLVMBuildInsertElement(e->b, LLVMGetUndef(e->v2f32), x[0], imm(e, 0), "");
        both_x = LLVMBuildInsertElement(e->b, both_x, x[1], imm(e, 1), "");
    } else {
        LLVMValueRef args[2] = {x[1], x[0]};
        both_x = call(e, dtype == TG_BF16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn", NULL, 0, args, 2);
    }
    LLVMSetAlignment(LLVMBuildStore(e->b, both_x, address), 2 * tg_dtype_bytes(dtype));
}

/* Whole rows, 16 bytes a lane, by way of the memory that the inverse was made in: of a fragment, a lane has but two elements
 * side by side, and each store would be of 8 rows. */
static void store_inverse(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    const struct shape s = fragment_shape(e->p, v);
    const uint32_t units = v->extent[1] / 8, pitch = 16 * (units + 1), rows = 32 / units;
    const bool is_own = e->p->by_channel && !e->p->spreads && pitch <= 2 * e->p->block[TG_DQK];
    LLVMValueRef start = is_own ? channel_spare(e, pitch) : byte_offset(e, e->arena, imm(e, e->p->scratch_offset));
    LLVMTypeRef v4i32 = LLVMVectorType(e->i32, 4);
    if (is_own)
        sync_warp(e); /* the warp alone has read it */
    else
        barrier(e); /* it has been read */
    LLVMValueRef column = mul(e, e->quad_column, imm(e, 4));
    for (uint32_t r = 0; r < s.m * s.n * 4; r += 2) {
        LLVMValueRef *x = &e->registers[op->v][r];
        LLVMValueRef row = fragment_row(e, v, r / 4 / s.n * 2 + (r & 2) / 2);
        LLVMValueRef to = byte_offset(e, start, add(e, mul(e, row, imm(e, pitch)), column));
        LLVMBuildStore(e->b, pack(e, get(e, e->f32, x[0]), get(e, e->f32, x[1])),
                       byte_offset(e, to, imm(e, r / 4 % s.n * 16)));
    }
    sync_warp(e);
    LLVMValueRef unit = modulo(e, e->lane, imm(e, units)), among = divide(e, e->lane, imm(e, units));
    LLVMValueRef base = NULL; /* of 16 rows: lanes with channels have no registers for it */
    for (uint32_t r = 0; r < 16 * s.m; r += rows) {
        LLVMValueRef first = fragment_first_row(e, v, r / 16);
        LLVMValueRef row = add(e, add(e, first, among), imm(e, r / 16 * fragment_row_step(e) + r % 16));
        if (r % 16 == 0 && !e->p->by_channel)
            base = tensor_address(e, v->operand, op->tile, &e->at, v->dims, row, mul(e, unit, imm(e, 8)));
        LLVMBasicBlockRef after = begin_if(e, inside(e, &e->at, v->dims[0], v->extent[0], row));
        LLVMValueRef from = byte_offset(e, start, add(e, mul(e, row, imm(e, pitch)), mul(e, unit, imm(e, 16))));
        LLVMValueRef x = LLVMBuildLoad2(e->b, v4i32, from, "");
        LLVMSetAlignment(x, 16);
        LLVMValueRef to = base ? byte_offset(e, base, mul(e, tensor_stride(e, op->tile, 2), imm64(e, 2 * (r % 16))))
                               : tensor_address(e, v->operand, op->tile, &e->at, v->dims, row, mul(e, unit, imm(e, 8)));
        LLVMSetAlignment(LLVMBuildStore(e->b, x, to), 16);
        end_if(e, after);
    }
}

/* One value a row, from the first lane of its quad. */
static void store_rows(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->quad_column, imm(e, 0), ""));
    for (uint32_t c = 0; c < v->extent[0] / (8 * e->p->warps_m); c++) {
        LLVMValueRef row = fragment_row(e, v, c);
        LLVMBasicBlockRef after_row = begin_if(e, inside(e, &e->at, v->dims[0], v->extent[0], row));
        LLVMValueRef address = tensor_address(e, v->operand, op->tile, &e->at, v->dims, row, NULL);
        address = byte_offset(e, address, part_offset(e, op->tile));
        store_float(e, plan_memory_dtype(e->p, op->tile), get(e, e->f32, e->registers[op->v][2 * c]), address);
        end_if(e, after_row);
    }
    end_if(e, after);
}

static LLVMValueRef side_by_side(struct emit *e, tg_dtype dtype, LLVMValueRef *reg, uint32_t n, uint32_t between)
{
    LLVMTypeRef one = dtype == TG_F32 ? e->f32 : dtype == TG_BF16 ? e->bfloat : e->half;
    LLVMValueRef x = LLVMGetUndef(LLVMVectorType(e->f32, n));
    for (uint32_t i = 0; i < n; i++)
        x = LLVMBuildInsertElement(e->b, x, get(e, e->f32, reg[(2 + between) * i]), imm(e, i), "");
    return dtype == TG_F32 ? x : LLVMBuildFPTrunc(e->b, x, LLVMVectorType(one, n), "");
}

void store_element(struct emit *e, const struct op *op, LLVMValueRef *reg, const struct element_place *at)
{
    const struct value *v = &e->p->values[op->v];
    const tg_dtype dtype = plan_memory_dtype(e->p, op->tile);
    LLVMValueRef address = tensor_address(e, v->operand, op->tile, &e->at, at->dims, at->index[0], at->index[1]),
                 x = get(e, e->f32, reg[0]);
    if (at->n > 1) {
        x = side_by_side(e, dtype, reg, at->n, at->between);
    } else if (dtype == TG_F32X2) {
        LLVMValueRef pair = LLVMBuildInsertElement(e->b, LLVMGetUndef(e->v2f32), x, imm(e, 0), "");
        x = LLVMBuildInsertElement(e->b, pair, get(e, e->f32, reg[1]), imm(e, 1), "");
    } else if (dtype == TG_F32) {
        address = byte_offset(e, address, part_offset(e, op->tile));
    } else {
        x = LLVMBuildFPTrunc(e->b, x, dtype == TG_BF16 ? e->bfloat : e->half, "");
    }
    LLVMSetAlignment(LLVMBuildStore(e->b, x, address), tg_dtype_bytes(dtype) * (at->n > 1 ? at->n : 1));
}

/* The one value that every thread has. */
static void store_uniform(struct emit *e, const struct op *op)
{
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    store_element(e, op, e->registers[op->v], &(struct element_place){0});
    end_if(e, after);
}

/* Blocks of a parallel dimension that the tile does not have, and is no sum over, have the same value: the first
 * one writes it. NULL: all do. */
LLVMValueRef is_first(struct emit *e, uint32_t tile)
{
    const struct plan *p = e->p;
    const uint32_t own = tg_operand_mask(p->algorithm, (tg_operand)tile) | tg_row_sums(p->schedule, &p->slice, tile);
    LLVMValueRef first = NULL;
    for (uint32_t d = TG_DQK; d <= TG_DHV; d++)
        if (p->row->row[d].role == TG_ROLE_P && !(own >> d & 1) && plan_dim_size(p, d) > p->block[d])
            first = both(e, first, LLVMBuildICmp(e->b, LLVMIntEQ, e->at.start[d], imm(e, 0), ""));
    return first;
}

/* An inverse, or another tile of positions beside one of channels, whose rows are 32, 64 or 128 bytes side by side in memory? */
static bool is_inverse(const struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    return v->stmt >= 0 && (e->p->algorithm->body[v->stmt].op == TG_STMT_SOLVE || e->p->by_channel) &&
           is_dense(e, v, op->tile) && tg_dtype_bytes(plan_memory_dtype(e->p, op->tile)) == 2 &&
           32 % (v->extent[1] / 8) == 0;
}

/* Of warps that have the same the first one stores it; NULL: none have. */
static LLVMValueRef is_first_warp(struct emit *e, const struct value *v)
{
    const bool is_whole = e->p->shares_columns && v->space == SPACE_FRAGMENT && !plan_is_state(e->p, v);
    return is_whole ? LLVMBuildICmp(e->b, LLVMIntEQ, modulo(e, e->warp, imm(e, e->p->warps_n)), imm(e, 0), "") : NULL;
}

void emit_store(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    if (plan_keeps_on_the_way(e->p, op->tile))
        go_to_slot(e, op->tile);
    LLVMValueRef there = both(e, both(e, present(e, op->tile), is_first(e, op->tile)), is_first_warp(e, v));
    LLVMBasicBlockRef after = there ? begin_if(e, there) : NULL;
    if (e->p->thread_dim)
        store_thread(e, op);
    else if (v->space == SPACE_FRAGMENT && is_inverse(e, op))
        store_inverse(e, op);
    else if (v->space == SPACE_FRAGMENT)
        for_pairs(e, op, store_run);
    else if (v->space == SPACE_ROWS)
        store_rows(e, op);
    else
        store_uniform(e, op);
    if (after)
        end_if(e, after);
}
