/* lower/copy.c - tiles from memory to where they are needed.
 *
 * Matrices go to shared memory in units of 16 bytes, asynchronously (cp.async) when the element type stays
 * the same and through registers when it is rounded on the way. A unit's place in its row is exclusive-ored
 * with the row, so that the 8 rows an ldmatrix fetches lie in different banks. What lies outside of the
 * tensor is filled with zeros. */
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"
#include "lower/emit.h"

/* The exclusive-or of a row; repeats every 8 rows. */
static LLVMValueRef swizzle(struct emit *e, const struct value *v, LLVMValueRef row)
{
    const uint32_t pitch = v->row_bytes / 16;
    if (pitch >= 8)
        return LLVMBuildAnd(e->b, row, imm(e, 7), "");
    return LLVMBuildAnd(e->b, divide(e, row, imm(e, 8 / pitch)), imm(e, pitch - 1), "");
}

LLVMValueRef swizzled(struct emit *e, const struct value *v, LLVMValueRef row, LLVMValueRef unit)
{
    LLVMValueRef place = LLVMBuildXor(e->b, unit, swizzle(e, v, row), "");
    return add(e, mul(e, row, imm(e, v->row_bytes)), mul(e, place, imm(e, 16)));
}

LLVMValueRef slot_address(struct emit *e, const struct value *v, LLVMValueRef slot)
{
    LLVMValueRef offset = imm(e, v->offset);
    if (v->stages > 1)
        offset = add(e, offset, mul(e, slot, imm(e, v->stage_bytes)));
    return byte_offset(e, e->arena, offset);
}

LLVMValueRef matrix_element(struct emit *e, uint32_t v, LLVMValueRef row, LLVMValueRef column)
{
    const struct value *matrix = &e->p->values[v];
    const uint32_t bytes = tg_dtype_bytes(matrix->dtype), per_unit = 16 / bytes;
    LLVMTypeRef type = matrix->dtype == TG_F32 ? e->f32 : matrix->dtype == TG_BF16 ? e->bfloat : e->half;
    LLVMValueRef place = add(e, swizzled(e, matrix, row, divide(e, column, imm(e, per_unit))),
                             mul(e, modulo(e, column, imm(e, per_unit)), imm(e, bytes)));
    LLVMValueRef x = LLVMBuildLoad2(
        e->b, type, byte_offset(e, slot_address(e, matrix, e->slot[v] ? e->slot[v] : imm(e, 0)), place), "");
    return matrix->dtype == TG_F32 ? x : LLVMBuildFPExt(e->b, x, e->f32, "");
}

void async_copy(struct emit *e, LLVMValueRef to, LLVMValueRef from, uint32_t bytes, LLVMValueRef valid)
{
    const char *name = bytes == 16  ? "llvm.nvvm.cp.async.cg.shared.global.16"
                       : bytes == 8 ? "llvm.nvvm.cp.async.ca.shared.global.8"
                                    : "llvm.nvvm.cp.async.ca.shared.global.4";
    const char *name_zero = bytes == 16  ? "llvm.nvvm.cp.async.cg.shared.global.16.s"
                            : bytes == 8 ? "llvm.nvvm.cp.async.ca.shared.global.8.s"
                                         : "llvm.nvvm.cp.async.ca.shared.global.4.s";
    LLVMValueRef args[3] = {to, from, valid ? choose(e, valid, imm(e, bytes), imm(e, 0)) : NULL};
    call(e, valid ? name_zero : name, NULL, 0, args, valid ? 3 : 2);
}

static LLVMValueRef aligned_load(struct emit *e, LLVMTypeRef type, LLVMValueRef from, unsigned align)
{
    LLVMValueRef x = LLVMBuildLoad2(e->b, type, from, "");
    LLVMSetAlignment(x, align);
    return x;
}

/* 8 floats -> one unit of 8 16-bit values. */
static LLVMValueRef rounded_unit(struct emit *e, const struct value *v, LLVMValueRef from)
{
    LLVMTypeRef v4i32 = LLVMVectorType(e->i32, 4), v4f32 = LLVMVectorType(e->f32, 4);
    LLVMValueRef unit = LLVMGetUndef(v4i32);
    for (uint32_t half = 0; half < 2; half++) {
        LLVMValueRef x = aligned_load(e, v4f32, byte_offset(e, from, imm64(e, half * 16)), 16);
        for (uint32_t i = 0; i < 2; i++) {
            LLVMValueRef lo = LLVMBuildExtractElement(e->b, x, imm(e, 2 * i), ""),
                         hi = LLVMBuildExtractElement(e->b, x, imm(e, 2 * i + 1), "");
            LLVMValueRef args[2] = {hi, lo};
            LLVMValueRef packed =
                call(e, v->dtype == TG_BF16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn", NULL, 0, args, 2);
            unit = LLVMBuildInsertElement(e->b, unit, as(e, packed, e->i32), imm(e, 2 * half + i), "");
        }
    }
    return unit;
}

/* A unit that is rounded on its way, or zeros. */
static void rounding_copy(struct emit *e, const struct value *v, LLVMValueRef to, LLVMValueRef from, LLVMValueRef valid)
{
    LLVMTypeRef v4i32 = LLVMVectorType(e->i32, 4);
    if (!valid) {
        LLVMSetAlignment(LLVMBuildStore(e->b, rounded_unit(e, v, from), to), 16);
        return;
    }
    LLVMValueRef slot = local(e, v4i32, "unit");
    set(e, slot, LLVMConstNull(v4i32));
    LLVMBasicBlockRef after = begin_if(e, valid);
    set(e, slot, rounded_unit(e, v, from));
    end_if(e, after);
    LLVMSetAlignment(LLVMBuildStore(e->b, get(e, v4i32, slot), to), 16);
}

static void copy_matrix(struct emit *e, const struct value *v, const struct place *at, LLVMValueRef slot)
{
    const uint32_t tile = TG_OPERAND_TILE(v->operand), threads = e->p->threads;
    const uint32_t per_unit = 16 / tg_dtype_bytes(v->dtype), units = v->extent[1] / per_unit;
    const uint32_t total = v->extent[0] * units, rows_apart = threads / units;
    const bool regular = threads % units == 0; /* a thread stays in its column */
    LLVMValueRef to = slot_address(e, v, slot);
    LLVMValueRef row0 = divide(e, e->tid, imm(e, units)), unit0 = modulo(e, e->tid, imm(e, units));
    LLVMValueRef from0 = tensor_address(e, v->operand, tile, at, v->dims, row0, mul(e, unit0, imm(e, per_unit)));
    LLVMValueRef place0 = swizzled(e, v, row0, unit0);
    for (uint32_t i = 0; i * threads < total; i++) {
        LLVMValueRef row = add(e, row0, imm(e, i * rows_apart)), unit = unit0, from = from0, place = place0;
        if (regular) {
            const uint32_t axis = plan_tensor(e->p, v)->axes[0] == TG_CHUNK ? 3 : 2; /* of the rows */
            LLVMValueRef step = mul(e, tensor_stride(e, tile, axis),
                                    imm64(e, (int64_t)i * rows_apart * tg_dtype_bytes(plan_memory_dtype(e->p, tile))));
            from = byte_offset(e, from0, step);
            place =
                rows_apart % 8 == 0 ? add(e, place0, imm(e, i * rows_apart * v->row_bytes)) : swizzled(e, v, row, unit);
        } else {
            LLVMValueRef index = add(e, e->tid, imm(e, i * threads));
            row = divide(e, index, imm(e, units));
            unit = modulo(e, index, imm(e, units));
            from = tensor_address(e, v->operand, tile, at, v->dims, row, mul(e, unit, imm(e, per_unit)));
            place = swizzled(e, v, row, unit);
        }
        LLVMBasicBlockRef after = NULL;
        if ((i + 1) * threads > total)
            after = begin_if(e, less(e, add(e, e->tid, imm(e, i * threads)), imm(e, total)));
        LLVMValueRef valid = both(e, inside(e, at, v->dims[0], v->extent[0], row),
                                  inside_tile(e, at, tile, v->dims[1], v->extent[1], mul(e, unit, imm(e, per_unit))));
        if (plan_is_async(e->p, v))
            async_copy(e, byte_offset(e, to, place), from, 16, valid);
        else
            rounding_copy(e, v, byte_offset(e, to, place), from, valid);
        if (after)
            end_if(e, after);
    }
}

static void copy_vector(struct emit *e, const struct value *v, const struct place *at, LLVMValueRef slot)
{
    const uint32_t tile = TG_OPERAND_TILE(v->operand), bytes = tg_dtype_bytes(v->dtype),
                   n = v->n_dims ? v->extent[0] : 1;
    LLVMValueRef to = slot_address(e, v, slot);
    for (uint32_t i = 0; i * e->p->threads < n; i++) {
        LLVMValueRef index = add(e, e->tid, imm(e, i * e->p->threads));
        LLVMBasicBlockRef after = begin_if(e, less(e, index, imm(e, n)));
        LLVMValueRef valid = v->n_dims ? inside(e, at, v->dims[0], v->extent[0], index) : NULL;
        LLVMValueRef from = tensor_address(e, v->operand, tile, at, v->dims, v->n_dims ? index : NULL, NULL);
        async_copy(e, byte_offset(e, to, mul(e, index, imm(e, bytes))), from, bytes, valid);
        end_if(e, after);
    }
}

void emit_copy(struct emit *e, uint32_t v, const struct place *at, LLVMValueRef slot)
{
    if (e->p->values[v].space == SPACE_MATRIX)
        copy_matrix(e, &e->p->values[v], at, slot);
    else
        copy_vector(e, &e->p->values[v], at, slot);
}

/* Nothing in this kernel writes the tile: loads may pass stores, and go through the read-only path. States may lie
 * where their final ones do. In tile kernels, whose loads stand before their stores anyway, it costs registers. */
static bool is_constant(const struct plan *p, uint32_t tile)
{
    const uint32_t mask = tg_operand_mask(p->algorithm, (tg_operand)tile);
    return p->thread_dim && !(p->slice.stores >> tile & 1) && (mask & (1u << TG_T | 1u << TG_CHUNK));
}

static LLVMValueRef constant_load(struct emit *e, bool constant, LLVMTypeRef type, LLVMValueRef from, unsigned align)
{
    LLVMValueRef x = aligned_load(e, type, from, align);
    if (constant)
        LLVMSetMetadata(x, LLVMGetMDKindIDInContext(e->context, "invariant.load", 14),
                        LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, NULL, 0)));
    return x;
}

/* The sum of the parts that thread blocks wrote, in order. */
static LLVMValueRef load_parts(struct emit *e, bool constant, LLVMValueRef from, uint32_t tile)
{
    const uint32_t step = 4 * plan_part_step(e->p, tile);
    LLVMValueRef sum = constant_load(e, constant, e->f32, from, 4);
    for (uint32_t i = 1; i < e->p->parts[tile]; i++)
        sum = LLVMBuildFAdd(e->b, sum, constant_load(e, constant, e->f32, byte_offset(e, from, imm64(e, step * i)), 4),
                            "");
    return sum;
}

void load_side_by_side(struct emit *e, bool constant, tg_dtype dtype, LLVMValueRef from, LLVMValueRef *reg, uint32_t n,
                       uint32_t between)
{
    const bool in_words = dtype != TG_F32 && n > 1;
    LLVMTypeRef one = in_words ? e->i32 : dtype == TG_F32 ? e->f32 : dtype == TG_BF16 ? e->bfloat : e->half;
    LLVMValueRef x =
        constant_load(e, constant, LLVMVectorType(one, in_words ? n / 2 : n), from, n * tg_dtype_bytes(dtype));
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef y = LLVMBuildExtractElement(e->b, x, imm(e, in_words ? i / 2 : i), "");
        y = in_words ? unpack_as(e, dtype, y, i % 2) : dtype == TG_F32 ? y : LLVMBuildFPExt(e->b, y, e->f32, "");
        set(e, reg[(2 + between) * i], y);
    }
}

static void clear(struct emit *e, LLVMValueRef *reg, const struct element_place *at)
{
    for (uint32_t i = 0; i < (at->n ? at->n : 1); i++)
        for (uint32_t half = 0; half < 2; half++)
            set(e, reg[(2 + at->between) * i + half], real(e, 0));
}

/* To registers that are zero. */
static void load_valid(struct emit *e, tg_operand operand, uint32_t tile, LLVMValueRef *reg,
                       const struct element_place *at)
{
    const tg_dtype dtype = plan_memory_dtype(e->p, tile);
    const bool constant = is_constant(e->p, tile);
    LLVMBasicBlockRef after = at->valid ? begin_if(e, at->valid) : NULL;
    LLVMValueRef from = tensor_address(e, operand, tile, &e->at, at->dims, at->index[0], at->index[1]);
    if (at->n > 1) {
        load_side_by_side(e, constant, dtype, from, reg, at->n, at->between);
    } else if (dtype == TG_F32X2) {
        LLVMValueRef x = constant_load(e, constant, e->v2f32, from, 8);
        set(e, reg[0], LLVMBuildExtractElement(e->b, x, imm(e, 0), ""));
        set(e, reg[1], LLVMBuildExtractElement(e->b, x, imm(e, 1), ""));
    } else if (dtype == TG_F32) {
        set(e, reg[0], load_parts(e, constant, from, tile));
    } else {
        LLVMValueRef x = constant_load(e, constant, dtype == TG_BF16 ? e->bfloat : e->half, from, 2);
        set(e, reg[0], LLVMBuildFPExt(e->b, x, e->f32, ""));
    }
    if (after)
        end_if(e, after);
}

void load_tile_element(struct emit *e, uint32_t v, uint32_t tile, LLVMValueRef *reg, const struct element_place *at)
{
    clear(e, reg, at);
    load_valid(e, e->p->values[v].operand, tile, reg, at);
}

/* An absent tensor counts as zero. */
static LLVMValueRef if_present(struct emit *e, uint32_t tile, LLVMValueRef valid)
{
    LLVMValueRef there = e->p->algorithm->tensors[tile].flags & TG_IN ? present(e, tile) : NULL;
    return there ? both(e, valid, there) : valid;
}

/* The token of the element in its sequence, and the element without it. */
static LLVMValueRef token_of(struct emit *e, tg_operand operand, struct element_place *at)
{
    const uint32_t dim = e->p->held >> TG_CHUNK & 1 ? (uint32_t)TG_CHUNK : TG_OPERAND_AT(operand);
    LLVMValueRef token = add(e, e->at.token, e->at.start[dim]);
    for (uint32_t i = 0; i < 2; i++)
        if (at->index[i] && at->dims[i] == dim) {
            token = add(e, token, at->index[i]);
            at->index[i] = imm(e, 0);
        }
    return token;
}

/* What a SHIFT writes, `far` tokens on from what it shifts: of the first of them initial states, else that (slice.h). */
static void load_shifted(struct emit *e, tg_operand operand, LLVMValueRef *reg, const struct element_place *place)
{
    const struct tg_shift shift = tg_tile_shift(e->p->algorithm, TG_OPERAND_TILE(operand));
    const struct place outside = e->at;
    struct element_place at = *place;
    LLVMValueRef token = shift.is_final ? NULL : token_of(e, operand, &at), last = sub(e, outside.tokens, imm(e, 1));
    LLVMValueRef along = !token ? outside.tokens : shift.reverse ? sub(e, last, token) : token;
    LLVMValueRef source = sub(e, along, imm(e, shift.far)), is_initial = less(e, source, imm(e, 0));
    clear(e, reg, &at);
    e->at.token = shift.reverse ? sub(e, last, source) : source;
    e->at.start[TG_LQ] = e->at.start[TG_LKV] = imm(e, 0);
    if (e->p->held >> TG_CHUNK & 1)
        e->at.start[TG_CHUNK] = imm(e, 0);
    if (shift.base) {
        at.valid = if_present(e, shift.base, both(e, place->valid, LLVMBuildNot(e->b, is_initial, "")));
        load_valid(e, TG_AT_KV(shift.base), shift.base, reg, &at);
    }
    LLVMBasicBlockRef after = begin_if(e, is_initial);
    for (uint32_t i = 0; i < shift.far; i++)
        if (shift.init[i]) {
            LLVMValueRef is_it = LLVMBuildICmp(e->b, LLVMIntEQ, along, imm(e, i), "");
            at.valid = if_present(e, shift.init[i], both(e, place->valid, is_it));
            load_valid(e, (tg_operand)shift.init[i], shift.init[i], reg, &at);
        }
    end_if(e, after);
    e->at = outside;
}

void load_element(struct emit *e, uint32_t v, LLVMValueRef *reg, const struct element_place *at)
{
    const tg_operand operand = e->p->values[v].operand;
    const uint32_t tile = TG_OPERAND_TILE(operand);
    if (plan_is_shifted(e->p, tile)) {
        load_shifted(e, operand, reg, at);
        return;
    }
    struct element_place place = *at;
    place.valid = if_present(e, tile, at->valid);
    load_tile_element(e, v, tile, reg, &place);
}

/* The values of the rows of this thread's fragments, or the one value all threads have. */
static void load_rows(struct emit *e, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    for (uint32_t c = 0; c < value->extent[0] / (8 * e->p->warps_m); c++) {
        LLVMValueRef row = fragment_row(e, value, c);
        const struct element_place at = {.dims = {value->dims[0]},
                                         .index = {row},
                                         .valid = inside(e, &e->at, value->dims[0], value->extent[0], row)};
        load_element(e, v, &e->registers[v][2 * c], &at);
    }
}

void emit_load(struct emit *e, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    if (e->p->thread_dim) {
        load_thread(e, v);
        return;
    }
    switch (value->space) {
    case SPACE_FRAGMENT: /* row by row, where it is used */
        break;
    case SPACE_ROWS:
        load_rows(e, v);
        break;
    case SPACE_UNIFORM:
        load_element(e, v, e->registers[v], &(struct element_place){0});
        break;
    default:
        emit_copy(e, v, &e->at, imm(e, 0));
    }
}
