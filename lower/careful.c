/* lower/careful.c - a NaN in a value reaches the rows that it influences and no others.
 *
 * In a block on the diagonal the masked weights are zero, and zero times NaN is NaN: a bad value at position
 * j would spoil earlier rows of its block. So each thread looks at the units that it copied itself, when
 * they have arrived and before the barrier of the step, and the barrier tells all threads whether anyone saw
 * one. If so, bad values are taken out of shared memory before the product (they become 0), the first bad
 * position of every column is remembered, and after the product rows from there on are set to NaN. (In dK and
 * dV a query row reaches the keys up to it: the last bad position, and rows up to there.)
 *
 * requires: the second operand of a masked product is used by nothing else in its step
 *
 * Where a chunk is one block (tg_has_one_chunk) the masked tile may be an inverse, or be loaded, and stand on either side;
 * a matrix may be an operand of several products, and be mapped as it is fetched. There nothing is taken out of shared
 * memory: if there is something bad, the product counts it as zero. Where the other operand is a computed tile, whose rows
 * are dqk or dhv, each row finds its own first bad position. */
#include "compiler/plan_tile.h"
#include "lower/matrix.h"

#include <stdlib.h>

/* Numbers as they lie in a word of 4 bytes. */
static LLVMTypeRef word_type(struct emit *e, tg_dtype dtype)
{
    return dtype == TG_F32 ? e->f32 : dtype == TG_BF16 ? e->v2bf16 : e->v2f16;
}

/* sum + 0 x: stays zero as long as all x are finite. One instruction a word. */
LLVMValueRef add_nothing(struct emit *e, tg_dtype dtype, LLVMValueRef sum, LLVMValueRef word)
{
    LLVMTypeRef type = word_type(e, dtype);
    LLVMValueRef args[3] = {as(e, word, type), LLVMConstNull(type), sum};
    return call(e, "llvm.fma", &type, 1, args, 3);
}

/* Did this thread copy something bad into the slot? Units are dealt out as in copy.c. */
static LLVMValueRef saw_bad(struct emit *e, const struct value *v, LLVMValueRef slot)
{
    const uint32_t units = v->extent[1] * tg_dtype_bytes(v->dtype) / 16, total = v->extent[0] * units,
                   threads = e->p->threads;
    LLVMTypeRef v4i32 = LLVMVectorType(e->i32, 4);
    LLVMTypeRef type = word_type(e, v->dtype);
    LLVMValueRef base = slot_address(e, v, slot), seen = local(e, type, "seen");
    set(e, seen, LLVMConstNull(type));
    for (uint32_t i = 0; i * threads < total; i++) {
        LLVMValueRef index = add(e, e->tid, imm(e, i * threads)), sum = get(e, type, seen);
        LLVMBasicBlockRef after = (i + 1) * threads > total ? begin_if(e, less(e, index, imm(e, total))) : NULL;
        LLVMValueRef place = swizzled(e, v, divide(e, index, imm(e, units)), modulo(e, index, imm(e, units)));
        LLVMValueRef unit = LLVMBuildLoad2(e->b, v4i32, byte_offset(e, base, place), "");
        LLVMSetAlignment(unit, 16);
        for (uint32_t w = 0; w < 4; w++)
            sum = add_nothing(e, v->dtype, sum, LLVMBuildExtractElement(e->b, unit, imm(e, w), ""));
        set(e, seen, sum);
        if (after)
            end_if(e, after);
    }
    /* not zero of either sign: NaN */
    LLVMValueRef bits = as(e, get(e, type, seen), e->i32),
                 signs = imm(e, (int64_t)(v->dtype == TG_F32 ? 0x80000000u : 0x80008000u));
    return LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, bits, LLVMBuildNot(e->b, signs, ""), ""), imm(e, 0), "");
}

void careful_barrier(struct emit *e, const struct op *op)
{
    const struct place *at = &e->at;
    LLVMValueRef slot = e->slot[op->v] ? e->slot[op->v] : imm(e, 0);
    LLVMValueRef seen = local(e, e->i1, "seen");
    set(e, seen, LLVMConstInt(e->i1, 0, 0));
    LLVMValueRef last_key = add(e, at->start[TG_LKV], imm(e, e->p->block[TG_LKV] - 1));
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntSGT, last_key, at->start[TG_LQ], ""));
    set(e, seen, saw_bad(e, &e->p->values[op->v], slot));
    end_if(e, after);
    LLVMValueRef args[2] = {imm(e, 0), get(e, e->i1, seen)};
    e->careful = call(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", NULL, 0, args, 2);
}

/* Does the product go from keys to queries (dK, dV)? Then a bad query row reaches the keys up to it, and the
 * last bad position of a column counts instead of the first. */
static bool is_backward(const struct emit *e, const struct op *op)
{
    return plan_has_dim(&e->p->values[op->v], TG_LKV);
}

/* A product whose other operand is a masked tile, and the operand that may be bad: positions x columns. */
struct values {
    const struct op *op;
    uint32_t v;
    LLVMValueRef seen; /* local i1: something bad was found */
};

static LLVMValueRef marked(struct emit *e, LLVMValueRef column)
{
    return byte_offset(e, e->arena, add(e, imm(e, e->p->scratch_offset), mul(e, column, imm(e, 4))));
}

/* for (index = thread; index < count; index += threads) body */
static void for_threads(struct emit *e, uint32_t count, const struct values *x,
                        void (*body)(struct emit *, const struct values *, LLVMValueRef))
{
    LLVMValueRef slot = local(e, e->i32, "index");
    set(e, slot, e->tid);
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->context, e->function, "each");
    LLVMBasicBlockRef inner = LLVMAppendBasicBlockInContext(e->context, e->function, "body");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    LLVMValueRef index = get(e, e->i32, slot);
    LLVMBuildCondBr(e->b, less(e, index, imm(e, count)), inner, after);
    LLVMPositionBuilderAtEnd(e->b, inner);
    body(e, x, index);
    set(e, slot, add(e, index, imm(e, e->p->threads)));
    LLVMBuildBr(e->b, head);
    LLVMMoveBasicBlockAfter(after, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, after);
}

static void clear_column(struct emit *e, const struct values *x, LLVMValueRef column)
{
    LLVMBuildStore(e->b, imm(e, is_backward(e, x->op) ? INT32_MIN : INT32_MAX), marked(e, column));
}

LLVMValueRef has_exponent(struct emit *e, LLVMValueRef bits, LLVMTypeRef type, uint32_t exponent)
{
    LLVMValueRef mask = LLVMConstInt(type, exponent, 0);
    return LLVMBuildICmp(e->b, LLVMIntEQ, LLVMBuildAnd(e->b, bits, mask, ""), mask, "");
}

static LLVMValueRef address_in(struct emit *e, uint32_t i, LLVMValueRef row, LLVMValueRef column)
{
    const struct value *v = &e->p->values[i];
    const uint32_t bytes = tg_dtype_bytes(v->dtype), per_unit = 16 / bytes;
    LLVMValueRef place = add(e, swizzled(e, v, row, divide(e, column, imm(e, per_unit))),
                             mul(e, modulo(e, column, imm(e, per_unit)), imm(e, bytes)));
    return byte_offset(e, slot_address(e, v, e->slot[i] ? e->slot[i] : imm(e, 0)), place);
}

/* Is the element bad, as the product takes it: mapped, and rounded to the input type? */
static LLVMValueRef is_bad_mapped(struct emit *e, const struct values *x, LLVMValueRef row, LLVMValueRef column)
{
    struct side a, b;
    make_sides(e, x->op, &a, &b);
    LLVMValueRef value = side_element(e, a.v == x->v ? &a : &b, column, 0, row, 0);
    side_free(&a);
    side_free(&b);
    if (e->p->shape.io == TG_F32)
        return LLVMBuildNot(e->b, is_finite(e, value), "");
    return has_exponent(e, pack(e, value, real(e, 0)), e->i32, e->p->shape.io == TG_BF16 ? 0x7f80u : 0x7c00u);
}

static LLVMValueRef is_bad(struct emit *e, const struct values *x, LLVMValueRef row, LLVMValueRef column)
{
    const struct value *v = &e->p->values[x->v];
    LLVMTypeRef type = v->dtype == TG_F32 ? e->i32 : e->i16;
    if (v->space == SPACE_OPERAND)
        return is_bad_mapped(e, x, row, column);
    return has_exponent(e, LLVMBuildLoad2(e->b, type, address_in(e, x->v, row, column), ""), type,
                        v->dtype == TG_F32    ? 0x7f800000u
                        : v->dtype == TG_BF16 ? 0x7f80u
                                              : 0x7c00u);
}

static LLVMValueRef row_of(struct emit *e, const struct values *x, LLVMValueRef index)
{
    return divide(e, index, imm(e, e->p->values[x->v].extent[1]));
}

static LLVMValueRef column_of(struct emit *e, const struct values *x, LLVMValueRef index)
{
    return modulo(e, index, imm(e, e->p->values[x->v].extent[1]));
}

static void clean_element(struct emit *e, const struct values *x, LLVMValueRef index)
{
    LLVMValueRef row = row_of(e, x, index), column = column_of(e, x, index);
    LLVMBasicBlockRef after = begin_if(e, is_bad(e, x, row, column));
    if (!tg_has_one_chunk(e->p->algorithm))
        LLVMBuildStore(e->b, LLVMConstInt(e->p->values[x->v].dtype == TG_F32 ? e->i32 : e->i16, 0, 0),
                       address_in(e, x->v, row, column));
    const LLVMAtomicRMWBinOp extremum = is_backward(e, x->op) ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpMin;
    LLVMBuildAtomicRMW(e->b, extremum, marked(e, column), row, LLVMAtomicOrderingMonotonic, 0);
    end_if(e, after);
}

/* The barrier of this step has ordered the marks' last readers before us. */
static void mark_columns(struct emit *e, const struct values *x)
{
    const struct value *v = &e->p->values[x->v];
    for_threads(e, v->extent[1], x, clear_column);
    barrier(e);
    for_threads(e, v->extent[0] * v->extent[1], x, clean_element);
    barrier(e);
}

/* What the bad positions of their column reach. */
static void spoil_columns(struct emit *e, const struct op *op)
{
    const struct value *out = &e->p->values[op->v];
    const struct shape s = fragment_shape(e->p, out);
    const bool turned = !plan_is_position(out->dims[0]);
    const uint32_t n_columns = 2 * (turned ? s.m : s.n), n_positions = 2 * (turned ? s.n : s.m),
                   other = is_backward(e, op) ? TG_LQ : TG_LKV;
    for (uint32_t i = 0; i < n_columns; i++) {
        LLVMValueRef column = turned ? fragment_row(e, out, i) : fragment_column(e, out, i);
        LLVMValueRef bad = LLVMBuildLoad2(e->b, e->i32, marked(e, column), "");
        /* a position's index from the first one of the other block; unmarked columns are out of its reach */
        for (uint32_t k = 0; k < n_positions; k++) {
            const uint32_t r = turned ? i : k, c = turned ? k : i;
            LLVMValueRef position = sub(e,
                                        add(e, e->at.start[out->dims[turned ? 1 : 0]],
                                            turned ? fragment_column(e, out, c) : fragment_row(e, out, r)),
                                        e->at.start[other]);
            LLVMValueRef *x = &e->registers[op->v][(r / 2 * s.n + c / 2) * 4 + r % 2 * 2 + c % 2];
            LLVMValueRef hit = LLVMBuildICmp(e->b, is_backward(e, op) ? LLVMIntSLE : LLVMIntSGE, position, bad, "");
            set(e, *x, choose(e, hit, LLVMConstReal(e->f32, __builtin_nan("")), get(e, e->f32, *x)));
        }
    }
}

static void product(struct emit *e, const struct op *op)
{
    (plan_is_decayed(e->p, op) ? emit_decayed : emit_contract)(e, op);
}

static void contract_in_ring(struct emit *e, const struct op *op)
{
    LLVMBasicBlockRef after = begin_if(e, e->careful);
    mark_columns(e, &(struct values){.op = op, .v = op->b});
    end_if(e, after);
    product(e, op);
    after = begin_if(e, e->careful);
    spoil_columns(e, op);
    end_if(e, after);
}

/* ---- where a chunk is one block ---- */

static void contract_marked(struct emit *e, const struct values *x)
{
    mark_columns(e, x);
    e->finite = 1 + x->v;
    product(e, x->op);
    e->finite = 0;
    spoil_columns(e, x->op);
}

static void see_element(struct emit *e, const struct values *x, LLVMValueRef index)
{
    LLVMValueRef bad = is_bad(e, x, row_of(e, x, index), column_of(e, x, index));
    set(e, x->seen, LLVMBuildOr(e->b, get(e, e->i1, x->seen), bad, ""));
}

/* Is something bad in the matrix, or in what is made of it? All threads of the block say so, or none. */
static LLVMValueRef block_sees(struct emit *e, struct values *x)
{
    const struct value *v = &e->p->values[x->v];
    LLVMValueRef seen;
    if (v->space == SPACE_OPERAND) {
        x->seen = local(e, e->i1, "seen");
        set(e, x->seen, LLVMConstInt(e->i1, 0, 0));
        for_threads(e, v->extent[0] * v->extent[1], x, see_element);
        seen = get(e, e->i1, x->seen);
    } else {
        seen = saw_bad(e, v, e->slot[x->v] ? e->slot[x->v] : imm(e, 0));
    }
    LLVMValueRef args[2] = {imm(e, 0), seen};
    return call(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", NULL, 0, args, 2);
}

/* First (is_first) or last position of a row of the left operand that is not finite, over all lanes that have the row. */
static LLVMValueRef bad_position(struct emit *e, uint32_t v, uint32_t row_class, bool is_first)
{
    const struct value *left = &e->p->values[v];
    const struct shape s = fragment_shape(e->p, left);
    LLVMValueRef bad = imm(e, is_first ? INT32_MAX : INT32_MIN);
    for (uint32_t c = 0; c < 2 * s.n; c++) {
        LLVMValueRef x = get(e, e->f32, e->registers[v][(row_class / 2 * s.n + c / 2) * 4 + row_class % 2 * 2 + c % 2]);
        LLVMValueRef column = fragment_column(e, left, c);
        LLVMValueRef extreme = is_first ? smaller(e, bad, column) : choose(e, less(e, bad, column), column, bad);
        bad = choose(e, is_finite(e, x), bad, extreme);
    }
    for (uint32_t by = 1; by < 4; by *= 2) {
        LLVMValueRef other = as(e, shuffle_xor(e, as(e, bad, e->f32), by), e->i32);
        bad = is_first ? smaller(e, bad, other) : choose(e, less(e, bad, other), other, bad);
    }
    return bad;
}

/* The product of what is finite; then the positions that a row's bad ones reach are NaN. The operand stays as it is. */
static void contract_rows(struct emit *e, const struct op *op, uint32_t left)
{
    const struct value *out = &e->p->values[op->v];
    const struct shape s = fragment_shape(e->p, &e->p->values[left]), to = fragment_shape(e->p, out);
    const uint32_t n = s.m * s.n * 4;
    const bool forward = out->dims[1] == TG_LQ;
    LLVMValueRef *kept = calloc(n, sizeof *kept), *bad = calloc(2 * s.m, sizeof *bad);
    for (uint32_t c = 0; kept && bad && c < 2 * s.m; c++)
        bad[c] = bad_position(e, left, c, forward);
    for (uint32_t r = 0; kept && bad && r < n; r++) {
        kept[r] = get(e, e->f32, e->registers[left][r]);
        set(e, e->registers[left][r], choose(e, is_finite(e, kept[r]), kept[r], real(e, 0)));
    }
    product(e, op);
    for (uint32_t r = 0; kept && bad && r < n; r++)
        set(e, e->registers[left][r], kept[r]);
    for (uint32_t r = 0; kept && bad && r < to.m * to.n * 4; r++) {
        const uint32_t row_class = r / 4 / to.n * 2 + (r & 2) / 2;
        LLVMValueRef column = fragment_column(e, out, r / 4 % to.n * 2 + (r & 1)), *x = &e->registers[op->v][r];
        LLVMValueRef hit = LLVMBuildICmp(e->b, forward ? LLVMIntSGE : LLVMIntSLE, column, bad[row_class], "");
        set(e, *x, choose(e, hit, LLVMConstReal(e->f32, __builtin_nan("")), get(e, e->f32, *x)));
    }
    free(kept);
    free(bad);
}

/* Has any lane of the warp something that is not finite in this tile? */
static LLVMValueRef warp_sees(struct emit *e, uint32_t v)
{
    const struct shape s = fragment_shape(e->p, &e->p->values[v]);
    LLVMValueRef sum = real(e, 0);
    for (uint32_t r = 0; r < s.m * s.n * 4; r++)
        sum = fma_of(e, get(e, e->f32, e->registers[v][r]), real(e, 0), sum);
    LLVMValueRef args[2] = {imm(e, -1), LLVMBuildFCmp(e->b, LLVMRealUNE, sum, real(e, 0), "")};
    return call(e, "llvm.nvvm.vote.any.sync", NULL, 0, args, 2);
}

static void contract_whole(struct emit *e, const struct op *op)
{
    struct values x = {.op = op, .v = (uint32_t)plan_masked_operand(e->p, op)};
    const bool in_registers = e->p->values[x.v].space == SPACE_FRAGMENT;
    LLVMValueRef seen = in_registers ? warp_sees(e, x.v) : block_sees(e, &x);
    LLVMBasicBlockRef bad = LLVMAppendBasicBlockInContext(e->context, e->function, "bad"),
                      good = LLVMAppendBasicBlockInContext(e->context, e->function, "good"),
                      after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
    LLVMBuildCondBr(e->b, seen, bad, good);
    LLVMPositionBuilderAtEnd(e->b, bad);
    if (in_registers)
        contract_rows(e, op, x.v);
    else
        contract_marked(e, &x);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, good);
    product(e, op);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, after);
}

void careful_contract(struct emit *e, const struct op *op)
{
    if (plan_masked_operand(e->p, op) >= 0)
        contract_whole(e, op);
    else if (!tg_has_one_chunk(e->p->algorithm) && plan_is_masked(e->p, op))
        contract_in_ring(e, op);
    else
        product(e, op);
}
