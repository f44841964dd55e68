/* lower/vector.c - sums along the positions of a block, thread t holding position t.
 *
 * In fp64: a cumulative log gate reaches thousands, and differences of it are wanted to 24 bits. */
#include "lower/emit.h"

static LLVMValueRef shuffle_up(struct emit *e, LLVMValueRef x, uint32_t by)
{
    LLVMValueRef words = as(e, x, e->v2i32), moved = LLVMGetUndef(e->v2i32);
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef args[4] = {imm(e, -1), LLVMBuildExtractElement(e->b, words, imm(e, i), ""), imm(e, by), imm(e, 0)};
        moved = LLVMBuildInsertElement(e->b, moved, call(e, "llvm.nvvm.shfl.sync.up.i32", NULL, 0, args, 4), imm(e, i), "");
    }
    return as(e, moved, e->f64);
}

static LLVMValueRef warp_scan(struct emit *e, LLVMValueRef x)
{
    for (uint32_t by = 1; by < 32; by *= 2) {
        LLVMValueRef before = shuffle_up(e, x, by);
        LLVMValueRef has = LLVMBuildICmp(e->b, LLVMIntUGE, e->lane, imm(e, by), "");
        x = LLVMBuildFAdd(e->b, x, choose(e, has, before, LLVMConstReal(e->f64, 0)), "");
    }
    return x;
}

/* Inclusive prefix sum over the thread block; *total is the sum of all. */
static LLVMValueRef block_scan(struct emit *e, LLVMValueRef x, LLVMValueRef *total)
{
    const uint32_t warps = e->p->threads / 32;
    LLVMValueRef scratch = byte_offset(e, e->arena, imm(e, e->p->scratch_offset));
    LLVMValueRef sum = warp_scan(e, x), before = LLVMConstReal(e->f64, 0);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 31), ""));
    LLVMBuildStore(e->b, sum, byte_offset(e, scratch, mul(e, e->warp, imm(e, 8))));
    end_if(e, after);
    barrier(e);
    *total = before;
    for (uint32_t w = 0; w < warps; w++) {
        LLVMValueRef part = LLVMBuildLoad2(e->b, e->f64, byte_offset(e, scratch, imm(e, 8 * w)), "");
        LLVMValueRef earlier = LLVMBuildICmp(e->b, LLVMIntULT, imm(e, w), e->warp, "");
        before = LLVMBuildFAdd(e->b, before, choose(e, earlier, part, LLVMConstReal(e->f64, 0)), "");
        *total = LLVMBuildFAdd(e->b, *total, part, "");
    }
    barrier(e); /* scratch may be written again */
    return LLVMBuildFAdd(e->b, sum, before, "");
}

/* x as an unevaluated sum of two floats. */
static void set_pair(struct emit *e, uint32_t v, LLVMValueRef x)
{
    LLVMValueRef hi = LLVMBuildFPTrunc(e->b, x, e->f32, "");
    LLVMValueRef rest = LLVMBuildFSub(e->b, x, LLVMBuildFPExt(e->b, hi, e->f64, ""), "");
    set(e, e->registers[v][0], hi);
    set(e, e->registers[v][1], LLVMBuildFPTrunc(e->b, rest, e->f32, ""));
}

/* The operand's positions inside the chunk, as fp64; the others count as zero. */
static LLVMValueRef summand(struct emit *e, uint32_t a)
{
    const struct value *v = &e->p->values[a];
    LLVMValueRef x = LLVMBuildFAdd(e->b, LLVMBuildFPExt(e->b, get(e, e->f32, e->registers[a][0]), e->f64, ""),
                                   LLVMBuildFPExt(e->b, get(e, e->f32, e->registers[a][1]), e->f64, ""), "");
    return choose(e, inside(e, &e->at, v->dims[0], v->extent[0], e->tid), x, LLVMConstReal(e->f64, 0));
}

void emit_scan(struct emit *e, const struct op *op)
{
    const tg_operand operand = e->p->values[op->a].operand;
    LLVMValueRef total = e->scan_total, inclusive = NULL;
    if (op->kind == OP_SCAN || e->scanned != operand)
        inclusive = block_scan(e, summand(e, op->a), &total);
    e->scanned = operand;
    e->scan_total = total;
    if (!e->total[op->v]) {
        e->total[op->v] = local(e, e->f64, "total");
        LLVMBuilderRef b = LLVMCreateBuilderInContext(e->context);
        LLVMPositionBuilderAtEnd(b, e->entry);
        LLVMBuildStore(b, LLVMConstReal(e->f64, 0), e->total[op->v]);
        LLVMDisposeBuilder(b);
    }
    LLVMValueRef carried = get(e, e->f64, e->total[op->v]);
    LLVMValueRef next = LLVMBuildFAdd(e->b, carried, total, "");
    set(e, e->total[op->v], next);
    set_pair(e, op->v, op->kind == OP_SCAN ? LLVMBuildFAdd(e->b, carried, inclusive, "") : next);
}
