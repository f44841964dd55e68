/* lower/thread_fetch.c - what a decode step that walks its tokens loads, brought to shared memory before the walk.
 *
 * The state takes the registers, so no thread can load tokens ahead; but they are few and short. All are copied at the top
 * of the kernel, asynchronously and in the element type that they have in memory, before the loads of the state: both are
 * on their way together. Rows go by units of 16 bytes, numbers by themselves; what lies outside of the tensor is zero, so
 * that the walk needs no bounds. What sharers read of dqk, for every four values anew, then becomes fp32: each thread
 * converts what it has copied. */
#include "compiler/plan_thread.h"
#include "lower/emit.h"

/* The dimension of a row, 0 of a number: dqk, dhv, or positions that the threads share out. */
static uint32_t row_dim(const struct value *v)
{
    return v->n_dims && v->extent[v->n_dims - 1] > 1 ? v->dims[v->n_dims - 1] : 0;
}

/* Rows of tokens as they come from memory. */
struct rows {
    uint32_t bytes, unit, units, total; /* of a row, of what one copy brings, in a row, in all */
    uint32_t offset;                    /* in shared memory; behind those that are converted */
    bool converts;
};

static struct rows rows_of(const struct emit *e, const struct value *v)
{
    const uint32_t tokens = e->p->schedule->max_tokens, element = tg_dtype_bytes(v->dtype);
    const bool converts = plan_is_converted(e->p, v);
    struct rows rows = {.bytes = converts ? v->row_bytes / 4 * element : v->row_bytes, .converts = converts};
    rows.offset = v->offset + (converts ? v->row_bytes * tokens : 0);
    rows.unit = rows.bytes % 16 ? 4 : 16;
    rows.units = rows.bytes / rows.unit;
    rows.total = rows.units * tokens;
    return rows;
}

/* Unit `i` of all tokens' rows, which lie one behind the other. */
static void copy_unit(struct emit *e, const struct value *v, const struct rows *rows, LLVMValueRef i)
{
    const uint32_t tile = TG_OPERAND_TILE(v->operand), unit = rows->unit, units = rows->units;
    const uint8_t dims[1] = {(uint8_t)row_dim(v)};
    LLVMValueRef token = divide(e, i, imm(e, units));
    struct place at = e->at;
    set_chunk(e, &at, token);
    LLVMValueRef index = mul(e, modulo(e, i, imm(e, units)), imm(e, unit / tg_dtype_bytes(v->dtype)));
    LLVMValueRef there = plan_tensor(e->p, v)->flags & TG_IN ? present(e, tile) : NULL;
    LLVMValueRef valid = dims[0] ? both(e, there, inside(e, &at, dims[0], v->extent[v->n_dims - 1], index)) : there;
    LLVMValueRef from = tensor_address(e, v->operand, tile, &at, dims, dims[0] ? index : NULL, NULL);
    LLVMValueRef to = byte_offset(e, e->arena, add(e, imm(e, rows->offset), mul(e, i, imm(e, unit))));
    async_copy(e, to, from, unit, valid);
}

/* Eight 16-bit numbers, where they have been copied -> fp32. */
static void convert_unit(struct emit *e, const struct value *v, const struct rows *rows, LLVMValueRef i)
{
    LLVMTypeRef half = v->dtype == TG_BF16 ? e->bfloat : e->half;
    LLVMValueRef from = byte_offset(e, e->arena, add(e, imm(e, rows->offset), mul(e, i, imm(e, 16))));
    LLVMValueRef to = byte_offset(e, e->arena, add(e, imm(e, v->offset), mul(e, i, imm(e, 32))));
    LLVMValueRef x = LLVMBuildLoad2(e->b, LLVMVectorType(half, 8), from, "");
    LLVMSetAlignment(x, 16);
    for (uint32_t k = 0; k < 8; k += 4) {
        LLVMValueRef part = LLVMGetUndef(LLVMVectorType(e->f32, 4));
        for (uint32_t r = 0; r < 4; r++) {
            LLVMValueRef y = LLVMBuildFPExt(e->b, LLVMBuildExtractElement(e->b, x, imm(e, k + r), ""), e->f32, "");
            part = LLVMBuildInsertElement(e->b, part, y, imm(e, r), "");
        }
        LLVMSetAlignment(LLVMBuildStore(e->b, part, byte_offset(e, to, imm(e, 4 * k))), 16);
    }
}

typedef void each_unit(struct emit *e, const struct value *v, const struct rows *rows, LLVMValueRef i);

/* The thread's units of what the nest fetches: of all, or of what is converted. */
static void for_units(struct emit *e, const struct nest *nest, bool converted, each_unit *each)
{
    for (uint32_t k = 0; k < nest->n_loads; k++) {
        const struct value *v = &e->p->values[nest->loads[k]];
        if (!v->staged || v->shared_with >= 0)
            continue;
        const struct rows rows = rows_of(e, v);
        for (uint32_t first = 0; first < rows.total && (rows.converts || !converted); first += e->p->threads) {
            LLVMValueRef i = add(e, e->tid, imm(e, first)), total = mul(e, e->at.chunks, imm(e, rows.units));
            LLVMBasicBlockRef after = begin_if(e, less(e, i, smaller(e, total, imm(e, rows.total))));
            each(e, v, &rows, i);
            end_if(e, after);
        }
    }
}

void fetch_tokens(struct emit *e, const struct nest *nest)
{
    for_units(e, nest, false, copy_unit);
    call0(e, "llvm.nvvm.cp.async.commit.group");
}

void await_tokens(struct emit *e, const struct nest *nest)
{
    call1(e, "llvm.nvvm.cp.async.wait.group", imm(e, 0));
    for_units(e, nest, true, convert_unit);
    barrier(e);
}

static LLVMValueRef row_address(struct emit *e, const struct value *v)
{
    LLVMValueRef row = add(e, mul(e, e->at.start[TG_CHUNK], imm(e, v->row_bytes)), imm(e, v->offset));
    return byte_offset(e, e->arena, row);
}

void load_fetched_group(struct emit *e, uint32_t v, uint32_t group)
{
    const struct value *value = &e->p->values[v];
    uint32_t held[TG_N_DIMS] = {0};
    held[plan_shared_dim(e->p)] = group;
    const tg_dtype type = plan_is_converted(e->p, value) ? TG_F32 : value->dtype;
    LLVMValueRef index = mul(e, thread_index(e, plan_shared_dim(e->p), held), imm(e, tg_dtype_bytes(type)));
    load_side_by_side(e, false, type, byte_offset(e, row_address(e, value), index),
                      &e->registers[v][2 * thread_register(e->p, value, held)], SHARED_OUT_GROUP, 0);
}

/* A row goes by groups, as it is read; a number by itself, or both parts of it. */
void put_fetched(struct emit *e, const struct value *v, LLVMValueRef *registers)
{
    const uint32_t dim = row_dim(v), n = dim ? SHARED_OUT_GROUP : v->row_bytes / 4;
    uint32_t held[TG_N_DIMS] = {0};
    for (; held[dim] < (dim ? plan_held_of(e->p, dim) : 1); held[dim] += n) {
        LLVMValueRef index = dim ? thread_index(e, dim, held) : imm(e, 0), x = LLVMGetUndef(LLVMVectorType(e->f32, n));
        LLVMValueRef to = byte_offset(e, row_address(e, v), mul(e, index, imm(e, tg_dtype_bytes(TG_F32))));
        for (uint32_t r = 0; r < n; r++) {
            LLVMValueRef slot = dim ? registers[2 * (held[dim] + r)] : registers[r];
            x = LLVMBuildInsertElement(e->b, x, get(e, e->f32, slot), imm(e, r), "");
        }
        LLVMSetAlignment(LLVMBuildStore(e->b, x, to), 4 * n);
    }
}

void load_number(struct emit *e, uint32_t v)
{
    const uint32_t parts = e->p->values[v].row_bytes / 4;
    LLVMValueRef from = row_address(e, &e->p->values[v]),
                 x = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, parts), from, "");
    LLVMSetAlignment(x, 4 * parts);
    for (uint32_t i = 0; i < parts; i++)
        set(e, e->registers[v][i], LLVMBuildExtractElement(e->b, x, imm(e, i), ""));
}

/* Read anew: what has been read of it before is not kept. */
static void load_shared_row(struct emit *e, uint32_t v)
{
    LLVMValueRef token = e->at.start[TG_CHUNK];
    e->at.start[TG_CHUNK] = opaque(e, token);
    for (uint32_t group = 0; group < plan_held_of(e->p, plan_shared_dim(e->p)); group += SHARED_OUT_GROUP)
        load_fetched_group(e, v, group);
    e->at.start[TG_CHUNK] = token;
}

void load_fetched(struct emit *e, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    const uint32_t together = plan_together(e->p, TG_OPERAND_TILE(value->operand)), dim = row_dim(value);
    uint32_t held[TG_N_DIMS] = {0};
    if (plan_is_shared_row(e->p, value)) {
        load_shared_row(e, v);
        return;
    }
    do {
        if (dim && held[dim] % together)
            continue;
        LLVMValueRef index = dim ? thread_index(e, dim, held) : imm(e, 0);
        LLVMValueRef from = byte_offset(e, row_address(e, value), mul(e, index, imm(e, tg_dtype_bytes(value->dtype))));
        load_side_by_side(e, false, value->dtype, from, &e->registers[v][2 * thread_register(e->p, value, held)],
                          dim ? together : 1, 0);
    } while (next_held(e->p, value_dims(value), held));
}
