/* lower/build.c - short names for the LLVM C API, so that the emitter reads like the code it emits. */
#include "lower/emit.h"

#include <string.h>

LLVMValueRef imm(struct emit *e, int64_t x)
{
    return LLVMConstInt(e->i32, (unsigned long long)x, 1);
}

LLVMValueRef imm64(struct emit *e, int64_t x)
{
    return LLVMConstInt(e->i64, (unsigned long long)x, 1);
}

LLVMValueRef real(struct emit *e, double x)
{
    return LLVMConstReal(e->f32, x);
}

/* Offsets and counts stay below 2^31 (tg_sizes_check), so nothing wraps; saying so lets LLVM fold address
 * arithmetic into the widening. */
LLVMValueRef add(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildNSWAdd(e->b, a, b, "");
}

LLVMValueRef sub(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildNSWSub(e->b, a, b, "");
}

LLVMValueRef mul(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildNSWMul(e->b, a, b, "");
}

LLVMValueRef divide(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildUDiv(e->b, a, b, "");
}

LLVMValueRef modulo(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildURem(e->b, a, b, "");
}

LLVMValueRef ceil_div(struct emit *e, LLVMValueRef a, uint32_t b)
{
    return divide(e, add(e, a, imm(e, b - 1)), imm(e, b));
}

LLVMValueRef wide(struct emit *e, LLVMValueRef a)
{
    return LLVMBuildZExt(e->b, a, e->i64, "");
}

LLVMValueRef less(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildICmp(e->b, LLVMIntSLT, a, b, "");
}

LLVMValueRef smaller(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(e->b, less(e, a, b), a, b, "");
}

LLVMValueRef both(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return !a ? b : !b ? a : LLVMBuildAnd(e->b, a, b, "");
}

LLVMValueRef choose(struct emit *e, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(e->b, c, a, b, "");
}

LLVMValueRef local(struct emit *e, LLVMTypeRef type, const char *name)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(e->context);
    LLVMValueRef first = LLVMGetFirstInstruction(e->entry);
    if (first)
        LLVMPositionBuilderBefore(b, first);
    else
        LLVMPositionBuilderAtEnd(b, e->entry);
    LLVMValueRef slot = LLVMBuildAlloca(b, type, name);
    LLVMDisposeBuilder(b);
    return slot;
}

LLVMValueRef get(struct emit *e, LLVMTypeRef type, LLVMValueRef slot)
{
    return LLVMBuildLoad2(e->b, type, slot, "");
}

void set(struct emit *e, LLVMValueRef slot, LLVMValueRef value)
{
    LLVMBuildStore(e->b, value, slot);
}

LLVMValueRef byte_offset(struct emit *e, LLVMValueRef pointer, LLVMValueRef bytes)
{
    return LLVMBuildInBoundsGEP2(e->b, LLVMInt8TypeInContext(e->context), pointer, &bytes, 1, "");
}

/* The matrix intrinsics lack `convergent` in LLVM 22: without it the optimiser may duplicate them into
 * divergent code, which is undefined. Every call gets it. */
LLVMValueRef call(struct emit *e, const char *intrinsic, LLVMTypeRef *overloads, unsigned n_overloads,
                  LLVMValueRef *args, unsigned n_args)
{
    const unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, overloads, n_overloads);
    LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, overloads, n_overloads);
    LLVMValueRef result = LLVMBuildCall2(e->b, type, function, args, n_args, "");
    if (strstr(intrinsic, ".mma.") || strstr(intrinsic, ".ldmatrix.")) {
        const unsigned kind = LLVMGetEnumAttributeKindForName("convergent", strlen("convergent"));
        LLVMAddCallSiteAttribute(result, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(e->context, kind, 0));
    }
    return result;
}

LLVMValueRef shuffle_xor(struct emit *e, LLVMValueRef x, uint32_t by)
{
    LLVMValueRef args[4] = {imm(e, -1), x, imm(e, by), imm(e, 31)};
    return call(e, "llvm.nvvm.shfl.sync.bfly.f32", NULL, 0, args, 4);
}

LLVMValueRef fma_of(struct emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum)
{
    LLVMValueRef args[3] = {a, b, sum};
    return call(e, "llvm.fma", &e->f32, 1, args, 3);
}

LLVMValueRef call0(struct emit *e, const char *intrinsic)
{
    return call(e, intrinsic, NULL, 0, NULL, 0);
}

LLVMValueRef call1(struct emit *e, const char *intrinsic, LLVMValueRef a)
{
    return call(e, intrinsic, NULL, 0, &a, 1);
}

LLVMValueRef element(struct emit *e, LLVMValueRef aggregate, unsigned i)
{
    return LLVMBuildExtractValue(e->b, aggregate, i, "");
}

LLVMValueRef as(struct emit *e, LLVMValueRef value, LLVMTypeRef type)
{
    return LLVMBuildBitCast(e->b, value, type, "");
}

void barrier(struct emit *e)
{
    call1(e, "llvm.nvvm.barrier.cta.sync.aligned.all", imm(e, 0));
}

LLVMBasicBlockRef begin_if(struct emit *e, LLVMValueRef condition)
{
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(e->context, e->function, "then");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
    LLVMBuildCondBr(e->b, condition, then, after);
    LLVMPositionBuilderAtEnd(e->b, then);
    return after;
}

void end_if(struct emit *e, LLVMBasicBlockRef after)
{
    LLVMBuildBr(e->b, after);
    LLVMMoveBasicBlockAfter(after, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, after);
}

struct counted loop_begin(struct emit *e, LLVMValueRef trips, LLVMValueRef *index)
{
    return loop_from(e, imm(e, 0), trips, index);
}

struct counted loop_from(struct emit *e, LLVMValueRef first, LLVMValueRef end, LLVMValueRef *index)
{
    struct counted l = {.counter = local(e, e->i32, "loop")};
    set(e, l.counter, first);
    l.head = LLVMAppendBasicBlockInContext(e->context, e->function, "loop");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->context, e->function, "body");
    l.after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
    LLVMBuildBr(e->b, l.head);
    LLVMPositionBuilderAtEnd(e->b, l.head);
    *index = get(e, e->i32, l.counter);
    LLVMBuildCondBr(e->b, less(e, *index, end), body, l.after);
    LLVMPositionBuilderAtEnd(e->b, body);
    return l;
}

/* A loop's metadata is a node that names itself first. */
static void keep_rolled(struct emit *e, LLVMValueRef back)
{
    static const char name[] = "llvm.loop.unroll.disable";
    LLVMMetadataRef itself = LLVMTemporaryMDNode(e->context, NULL, 0),
                    text = LLVMMDStringInContext2(e->context, name, sizeof name - 1);
    LLVMMetadataRef parts[2] = {itself, LLVMMDNodeInContext2(e->context, &text, 1)};
    LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, parts, 2);
    LLVMMetadataReplaceAllUsesWith(itself, node);
    LLVMSetMetadata(back, LLVMGetMDKindIDInContext(e->context, "llvm.loop", 9), LLVMMetadataAsValue(e->context, node));
}

void loop_end(struct emit *e, const struct counted *l, uint32_t step)
{
    set(e, l->counter, add(e, get(e, e->i32, l->counter), imm(e, step)));
    LLVMValueRef back = LLVMBuildBr(e->b, l->head);
    LLVMMoveBasicBlockAfter(l->after, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, l->after);
    if (l->rolled)
        keep_rolled(e, back);
}
