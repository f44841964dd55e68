/* tests/plain/call.c - what PTX has an instruction for, and what is PTX already. */
#include "plain.h"

#include <string.h>

/* "$0" and so on are the registers of the result, and of the arguments behind them. */
static const struct {
    const char *name, *code;
} intrinsics[] = {
    {"llvm.nvvm.read.ptx.sreg.tid.x", "mov.u32 $0, %tid.x;"},
    {"llvm.nvvm.read.ptx.sreg.ctaid.x", "mov.u32 $0, %ctaid.x;"},
    {"llvm.nvvm.read.ptx.sreg.nctaid.x", "mov.u32 $0, %nctaid.x;"},
    {"llvm.nvvm.read.ptx.sreg.nctaid.y", "mov.u32 $0, %nctaid.y;"},
    {"llvm.nvvm.read.ptx.sreg.nctaid.z", "mov.u32 $0, %nctaid.z;"},
    {"llvm.nvvm.read.ptx.sreg.nsmid", "mov.u32 $0, %nsmid;"},
    {"llvm.nvvm.barrier.cta.sync.aligned.all", "bar.sync $0;"},
    {"llvm.nvvm.barrier.cta.red.or.aligned.all", "bar.red.or.pred $0, $1, $2;"},
    {"llvm.nvvm.vote.any.sync", "vote.sync.any.pred $0, $2, $1;"},
    {"llvm.nvvm.vote.all.sync", "vote.sync.all.pred $0, $2, $1;"},
    {"llvm.nvvm.shfl.sync.bfly.", "shfl.sync.bfly.b32 $0, $2, $3, $4, $1;"},
    {"llvm.nvvm.shfl.sync.idx.", "shfl.sync.idx.b32 $0, $2, $3, $4, $1;"},
    {"llvm.nvvm.shfl.sync.up.", "shfl.sync.up.b32 $0, $2, $3, $4, $1;"},
    {"llvm.nvvm.cp.async.cg.shared.global.16.s", "cp.async.cg.shared.global [$0], [$1], 16, $2;"},
    {"llvm.nvvm.cp.async.cg.shared.global.16", "cp.async.cg.shared.global [$0], [$1], 16;"},
    {"llvm.nvvm.cp.async.ca.shared.global.8.s", "cp.async.ca.shared.global [$0], [$1], 8, $2;"},
    {"llvm.nvvm.cp.async.ca.shared.global.8", "cp.async.ca.shared.global [$0], [$1], 8;"},
    {"llvm.nvvm.cp.async.ca.shared.global.4.s", "cp.async.ca.shared.global [$0], [$1], 4, $2;"},
    {"llvm.nvvm.cp.async.ca.shared.global.4", "cp.async.ca.shared.global [$0], [$1], 4;"},
    {"llvm.nvvm.cp.async.commit.group", "cp.async.commit_group;"},
    {"llvm.nvvm.cp.async.wait.group", "cp.async.wait_group $0;"},
    {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16",
     "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];"},
    {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];"},
    {"llvm.nvvm.mma.m16n8k16.row.col.bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, "
                                            "{$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};"},
    {"llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, "
                                               "{$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};"},
    {"llvm.nvvm.mma.m16n8k8.row.col.tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0, $1, $2, $3}, "
                                           "{$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};"},
    {"llvm.nvvm.ex2.approx.ftz", "ex2.approx.ftz.f32 $0, $1;"},
    {"llvm.nvvm.lg2.approx.ftz.f", "lg2.approx.ftz.f32 $0, $1;"},
    {"llvm.nvvm.lg2.approx.f", "lg2.approx.f32 $0, $1;"},
    {"llvm.nvvm.rcp.approx.ftz.f", "rcp.approx.ftz.f32 $0, $1;"},
    {"llvm.nvvm.div.full", "div.full.f32 $0, $1, $2;"},
    {"llvm.nvvm.f2tf32.rna", "cvt.rna.tf32.f32 $0, $1;"},
    {"llvm.nvvm.ff2bf16x2.rn", "cvt.rn.bf16x2.f32 $0, $1, $2;"},
    {"llvm.nvvm.ff2f16x2.rn", "cvt.rn.f16x2.f32 $0, $1, $2;"},
    {"llvm.fabs.f32", "abs.f32 $0, $1;"},
    {"llvm.fma.f32", "fma.rn.f32 $0, $1, $2, $3;"},
    {"llvm.fma.f64", "fma.rn.f64 $0, $1, $2, $3;"},
    {"llvm.fma.v2bf16", "fma.rn.bf16x2 $0, $1, $2, $3;"},
    {"llvm.fma.v2f16", "fma.rn.f16x2 $0, $1, $2, $3;"},
};

/* The registers that "$0" and so on are. */
struct operands {
    const char *text[2 * MOST_PARTS];
    char room[2 * MOST_PARTS][64];
    uint32_t n;
};

static void add_operand(struct operands *o, const char *name)
{
    snprintf(o->room[o->n], sizeof *o->room, "%s", name);
    o->text[o->n] = o->room[o->n];
    o->n++;
}

static void write_code(struct writer *w, const char *code, size_t n_code, const struct operands *o)
{
    fputc('\t', w->out);
    for (const char *at = code; at < code + n_code; at++) {
        if (*at != '$') {
            fputc(*at, w->out);
            continue;
        }
        uint32_t i = 0;
        const char *digits = at + 1;
        for (; digits < code + n_code && *digits >= '0' && *digits <= '9'; digits++)
            i = 10 * i + (uint32_t)(*digits - '0');
        if (digits == at + 1 || i >= o->n)
            give_up(w, "an operand of assembly");
        fputs(o->text[i], w->out);
        at = digits - 1;
    }
    fputc('\n', w->out);
}

static void add_argument(struct writer *w, struct operands *o, LLVMValueRef value)
{
    struct reg parts[MOST_PARTS];
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) {
        add_operand(o, address_text(w, value));
        return;
    }
    const uint32_t n = parts_of(w, value, parts);
    if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 1)
        parts[0] = in_register(w, parts[0], CLASS_PREDICATE);
    for (uint32_t i = 0; i < n; i++)
        add_operand(o, text_f(&parts[i], type));
}

/* Registers of the results: of locals, of a tied operand that nobody reads any more, or new ones. */
static struct reg register_of(struct writer *w, struct item *call, uint32_t k, uint8_t class)
{
    const bool is_struct = LLVMGetTypeKind(LLVMTypeOf(call->value)) == LLVMStructTypeKind;
    const struct item *element = is_struct ? element_of_call(w, call, k) : call,
                      *home = element ? home_of(w, (uint32_t)(element - w->items)) : NULL;
    if (home && home->n_regs == 1)
        return home->regs[0];
    if (tied_to(call->value, k) >= 0) {
        const struct item *from = item_of(w, LLVMGetOperand(call->value, k));
        if (from && from->last == w->at && from->opcode != LLVMLoad && from->regs[0].class == class)
            return from->regs[0];
    }
    return new_register(w, class);
}

static void own_results(struct writer *w, struct item *call)
{
    if (LLVMGetTypeKind(LLVMTypeOf(call->value)) == LLVMVoidTypeKind)
        return;
    const struct form form = form_of(w, LLVMTypeOf(call->value));
    struct reg *regs = keep(w, form.n_parts, sizeof *regs);
    for (uint32_t k = 0; k < form.n_parts; k++)
        regs[k] = register_of(w, call, k, form.class[k]);
    call->regs = regs;
    call->n_regs = form.n_parts;
}

static void write_assembly(struct writer *w, struct item *call, LLVMValueRef code)
{
    struct operands o;
    struct reg parts[MOST_PARTS];
    size_t n_text;
    const uint32_t n = LLVMGetNumArgOperands(call->value);
    o.n = 0;
    own_results(w, call);
    pin(w, call->regs, call->n_regs);
    for (uint32_t k = 0; k < call->n_regs; k++)
        add_operand(&o, text(&call->regs[k]));
    for (uint32_t i = 0; i < n; i++) {
        const LLVMValueRef value = LLVMGetOperand(call->value, i);
        const int tied = tied_to(call->value, i);
        if (parts_of(w, value, parts) != 1)
            give_up(w, "a vector for assembly");
        if (tied >= 0) {
            move(w, &call->regs[tied], &parts[0]);
            add_operand(&o, text(&call->regs[tied]));
            continue;
        }
        parts[0] = in_register(w, parts[0], form_of(w, LLVMTypeOf(value)).class[0]);
        pin(w, parts, 1);
        add_operand(&o, text(&parts[0]));
    }
    const char *assembly = LLVMGetInlineAsmAsmString(code, &n_text);
    write_code(w, assembly, n_text, &o);
}

static void write_intrinsic(struct writer *w, struct item *call, const char *code)
{
    struct operands o, arguments;
    o.n = arguments.n = 0;
    for (uint32_t i = 0; i < LLVMGetNumArgOperands(call->value); i++)
        add_argument(w, &arguments, LLVMGetOperand(call->value, i));
    if (LLVMGetTypeKind(LLVMTypeOf(call->value)) != LLVMVoidTypeKind) {
        const struct form form = form_of(w, LLVMTypeOf(call->value));
        own_results(w, call);
        end_with_last(w, call);
        for (uint32_t k = 0; k < form.n_parts; k++)
            add_operand(&o, text(&call->regs[k]));
    }
    for (uint32_t i = 0; i < arguments.n; i++)
        add_operand(&o, arguments.text[i]);
    write_code(w, code, strlen(code), &o);
}

void write_call(struct writer *w, struct item *call)
{
    size_t n;
    LLVMValueRef called = LLVMGetCalledValue(call->value);
    if (LLVMIsAInlineAsm(called)) {
        write_assembly(w, call, called);
        return;
    }
    const char *name = LLVMGetValueName2(called, &n);
    for (size_t i = 0; i < sizeof intrinsics / sizeof *intrinsics; i++)
        if (strncmp(name, intrinsics[i].name, strlen(intrinsics[i].name)) == 0) {
            write_intrinsic(w, call, intrinsics[i].code);
            return;
        }
    give_up(w, name);
}
