/* tests/plain/write.c - a kernel: its parameters, and instruction by instruction. What computes is in compute.c. */
#include "plain.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static void write_element_address(struct writer *w, struct item *item)
{
    int64_t offset;
    const struct reg base = base_of(w, LLVMGetOperand(item->value, 0), &offset);
    const LLVMValueRef index = LLVMGetOperand(item->value, 1);
    const LLVMTypeRef type = LLVMGetGEPSourceElementType(item->value);
    if (LLVMGetNumOperands(item->value) != 2 || LLVMGetTypeKind(type) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(type) != 8 || base.class >= N_CLASSES)
        give_up(w, "an address of elements");
    item->offset = offset;
    if (LLVMIsAConstantInt(index)) {
        item->offset += LLVMConstIntGetSExtValue(index);
        item->regs = keep(w, 1, sizeof base);
        item->regs[item->n_regs++] = base;
        return;
    }
    struct reg by = part_of(w, index);
    if (by.class != base.class) {
        const struct reg wide = new_register(w, base.class);
        pin(w, &wide, 1);
        fprintf(w->out, "\tcvt.%s %s, %s;\n", base.class == CLASS_64 ? "s64.s32" : "u32.u64", text(&wide), text(&by));
        by = wide;
    }
    const struct form form = form_of(w, LLVMTypeOf(item->value));
    own(w, item, &form);
    fprintf(w->out, "\tadd.s%s %s, %s, %s;\n", width_of(&form), text(&item->regs[0]), text(&base), text(&by));
}

/* How many registers go at once. */
static uint32_t together(struct writer *w, const struct item *item, const struct form *form)
{
    const uint32_t bytes = form->class[0] == CLASS_16   ? 2
                           : form->class[0] == CLASS_32 ? 4
                                                        : 8,
                   align = LLVMGetAlignment(item->value);
    uint32_t n = form->n_parts;
    if (form->class[0] == CLASS_PREDICATE || align < bytes)
        give_up(w, "memory of this type or alignment");
    while (n > 1 && (n > 4 || n == 3 || n * bytes > 16 || n * bytes > align))
        n = n == 3 ? 1 : n / 2;
    return n;
}

static const char *space_of(LLVMValueRef pointer)
{
    const unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
    return space == 1 ? ".global" : space == 3 ? ".shared" : "";
}

/* ld or st of all registers of an item. */
static void write_access(struct writer *w, const struct item *item, LLVMValueRef pointer, const struct form *form,
                         const struct reg *regs)
{
    const bool is_load = item->opcode == LLVMLoad;
    const uint32_t n = together(w, item, form), bytes = form->class[0] == CLASS_16   ? 2
                                                        : form->class[0] == CLASS_32 ? 4
                                                                                     : 8;
    int64_t offset;
    const struct reg base = base_of(w, pointer, &offset);
    if (LLVMGetVolatile(item->value) || LLVMGetOrdering(item->value) != LLVMAtomicOrderingNotAtomic)
        give_up(w, "a volatile access");
    for (uint32_t i = 0; i < form->n_parts; i += n) {
        char list[128];
        size_t at = 0;
        for (uint32_t k = 0; k < n; k++)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", k ? ", " : "", text(&regs[i + k]));
        char place[64];
        snprintf(place, sizeof place, "[%s+%lld]", text(&base), (long long)(offset + (int64_t)i * bytes));
        fprintf(w->out, "\t%s%s%s%s ", is_load ? "ld" : "st", space_of(pointer),
                n == 4   ? ".v4"
                : n == 2 ? ".v2"
                         : "",
                suffix[form->class[0]]);
        if (is_load)
            fprintf(w->out, n > 1 ? "{%s}, %s;\n" : "%s, %s;\n", list, place);
        else
            fprintf(w->out, n > 1 ? "%s, {%s};\n" : "%s, %s;\n", place, list);
    }
}

static void write_load(struct writer *w, struct item *item)
{
    const LLVMValueRef pointer = LLVMGetOperand(item->value, 0);
    const struct item *local = item_of(w, pointer);
    const struct form form = form_of(w, LLVMTypeOf(item->value));
    if (local && local->opcode == LLVMAlloca) {
        if (lives_in_local(w, item, local))
            return;
        own(w, item, &form);
        for (uint32_t i = 0; i < item->n_regs; i++)
            fprintf(w->out, "\tmov%s %s, %s;\n", suffix[form.class[i]], text(&item->regs[i]), text(&local->regs[i]));
        return;
    }
    if (form.n_parts == 1)
        result(w, item);
    else
        own(w, item, &form);
    write_access(w, item, pointer, &form, item->regs);
}

static void write_store(struct writer *w, struct item *item)
{
    struct reg parts[MOST_PARTS];
    const LLVMValueRef value = LLVMGetOperand(item->value, 0), pointer = LLVMGetOperand(item->value, 1);
    const struct item *local = item_of(w, pointer);
    const struct form form = form_of(w, LLVMTypeOf(value));
    const uint32_t n = parts_of(w, value, parts);
    if (!local || local->opcode != LLVMAlloca) {
        write_access(w, item, pointer, &form, parts);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        move(w, &local->regs[i], &parts[i]);
}

static void write_atomic(struct writer *w, struct item *item)
{
    const LLVMAtomicRMWBinOp op = LLVMGetAtomicRMWBinOp(item->value);
    const LLVMValueRef pointer = LLVMGetOperand(item->value, 0);
    if ((op != LLVMAtomicRMWBinOpMax && op != LLVMAtomicRMWBinOpMin) ||
        form_of(w, LLVMTypeOf(item->value)).class[0] != CLASS_32)
        give_up(w, "an atomic operation");
    const char *by = operand(w, item->value, 1);
    result(w, item);
    fprintf(w->out, "\tatom%s.%s.s32 %s, [%s], %s;\n", space_of(pointer), op == LLVMAtomicRMWBinOpMax ? "max" : "min",
            text(&item->regs[0]), address_text(w, pointer), by);
}

/* ---- where it goes on ---- */

static void jump(struct writer *w, const char *guard, const struct item *to)
{
    fprintf(w->out, "\t%sbra L%u;\n", guard, to->block);
}

static void write_branch(struct writer *w, struct item *item)
{
    char guard[32];
    const unsigned n = LLVMGetNumSuccessors(item->value);
    const struct item *yes = item_of(w, LLVMBasicBlockAsValue(LLVMGetSuccessor(item->value, 0)));
    if (n == 1) {
        if (yes->block != item->block + 1)
            jump(w, "", yes);
        return;
    }
    const struct item *no = item_of(w, LLVMBasicBlockAsValue(LLVMGetSuccessor(item->value, 1)));
    const struct reg c = in_register(w, part_of(w, LLVMGetCondition(item->value)), CLASS_PREDICATE);
    const bool is_next = yes->block == item->block + 1;
    snprintf(guard, sizeof guard, "@%s%s ", is_next ? "!" : "", text(&c));
    jump(w, guard, is_next ? no : yes);
    if (!is_next && no->block != item->block + 1)
        jump(w, "", no);
}

/* ---- all of them ---- */

static const struct {
    LLVMOpcode opcode;
    void (*write)(struct writer *w, struct item *item, const char *name);
    const char *name;
} arithmetic[] = {
    {LLVMAdd, write_integer, "add.s"}, {LLVMSub, write_integer, "sub.s"},  {LLVMMul, write_integer, "mul.lo.s"},
    {LLVMShl, write_integer, "shl.b"}, {LLVMLShr, write_integer, "shr.u"}, {LLVMAnd, write_logic, "and"},
    {LLVMOr, write_logic, "or"},       {LLVMXor, write_logic, "xor"},      {LLVMFAdd, write_real, "add.rn."},
    {LLVMFSub, write_real, "sub.rn."}, {LLVMFMul, write_real, "mul.rn."},  {LLVMFDiv, write_real, "div.rn."},
    {LLVMFNeg, write_real, "neg."},
};

static const struct {
    LLVMOpcode opcode;
    void (*write)(struct writer *w, struct item *item);
} others[] = {
    {LLVMUDiv, write_division},
    {LLVMURem, write_division},
    {LLVMICmp, write_integer_comparison},
    {LLVMFCmp, write_real_comparison},
    {LLVMSelect, write_select},
    {LLVMFPTrunc, write_real_cast},
    {LLVMFPExt, write_real_cast},
    {LLVMZExt, write_integer_cast},
    {LLVMSExt, write_integer_cast},
    {LLVMTrunc, write_integer_cast},
    {LLVMBitCast, write_bitcast},
    {LLVMPtrToInt, write_bitcast},
    {LLVMIntToPtr, write_bitcast},
    {LLVMExtractElement, write_extract},
    {LLVMExtractValue, write_extract},
    {LLVMInsertElement, write_insert},
    {LLVMGetElementPtr, write_element_address},
    {LLVMLoad, write_load},
    {LLVMStore, write_store},
    {LLVMAtomicRMW, write_atomic},
    {LLVMBr, write_branch},
    {LLVMCall, write_call},
};

static void write_item(struct writer *w, struct item *item)
{
    if (item->opcode == A_BLOCK)
        fprintf(w->out, "L%u:\n", item->block);
    if (item->opcode == LLVMRet)
        fprintf(w->out, "\tret;\n");
    if (item->opcode == A_BLOCK || item->opcode == LLVMRet || item->opcode == LLVMAlloca)
        return;
    for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++)
        if (arithmetic[i].opcode == item->opcode) {
            arithmetic[i].write(w, item, arithmetic[i].name);
            take_apart(w, item);
            return;
        }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].opcode == item->opcode) {
            others[i].write(w, item);
            take_apart(w, item);
            return;
        }
    give_up(w, "an instruction");
}

/* ---- the kernel ---- */

static bool is_map(LLVMValueRef function, uint32_t i)
{
    return LLVMGetEnumAttributeAtIndex(function, i + 1, LLVMGetEnumAttributeKindForName("byval", 5)) != NULL;
}

static void load_parameters(struct writer *w, const char *name)
{
    for (uint32_t i = 0; i < w->first; i++) {
        struct item *item = &w->items[i];
        if (!LLVMGetFirstUse(item->value))
            continue;
        const struct form form = form_of(w, LLVMTypeOf(item->value));
        own(w, item, &form);
        const char *to = text(&item->regs[0]);
        if (is_map(w->function, i))
            fprintf(w->out, "\tmov.b64 %s, %s_param_%u;\n\tcvta.param.u64 %s, %s;\n", to, name, i, to, to);
        else
            fprintf(w->out, "\tld.param%s %s, [%s_param_%u];\n", suffix[form.class[0]], to, name, i);
    }
}

static void write_body(struct writer *w, const char *name)
{
    new_register(w, CLASS_32); /* shared_base */
    pin(w, &shared_base, 1);
    fprintf(w->out, "\tmov.b32 %s, tegula_shared;\n", text(&shared_base));
    registers_begin(w);
    load_parameters(w, name);
    for (w->at = w->first; w->at < w->n_items; w->at++) {
        write_item(w, &w->items[w->at]);
        release_ended(w);
    }
}

static void write_number(FILE *out, LLVMValueRef function, const char *key, const char *directive)
{
    unsigned n;
    LLVMAttributeRef a = LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, key,
                                                       (unsigned)strlen(key));
    if (a)
        fprintf(out, "%s %s\n", directive, LLVMGetStringAttributeValue(a, &n));
}

static void write_head(FILE *out, const struct emit *e, const char *name)
{
    const unsigned version = e->p->adds && e->p->target->ptx < 81 ? 81 : e->p->target->ptx;
    fprintf(out, ".version %u.%u\n.target %s\n.address_size 64\n\n", version / 10, version % 10, e->p->target->arch);
    fprintf(out, ".extern .shared .align 1024 .b8 tegula_shared[];\n\n.visible .entry %s(\n", name);
    for (uint32_t i = 0; i < e->n_args; i++) {
        const LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(e->args[i]));
        const bool is_wide = kind == LLVMPointerTypeKind ||
                             (kind == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(LLVMTypeOf(e->args[i])) == 64);
        fprintf(out,
                is_map(e->function, i) ? "\t.param .align 64 .b8 %s_param_%u[128]%s\n"
                : is_wide              ? "\t.param .b64 %s_param_%u%s\n"
                                       : "\t.param .b32 %s_param_%u%s\n",
                name, i, i + 1 < e->n_args ? "," : "");
    }
    fprintf(out, ")\n");
    write_number(out, e->function, "nvvm.reqntid", ".reqntid");
    write_number(out, e->function, "nvvm.minctasm", ".minnctapersm");
}

static uint32_t count(const char *ptx, const char *word)
{
    uint32_t n = 0;
    for (const char *at = ptx; (at = strstr(at, word)) != NULL; at++)
        n++;
    return n;
}

/* Nothing twice: lower/ computes addresses where it needs them. */
static bool simplify(struct emit *e)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(e->module, "function(early-cse)", NULL, options);
    LLVMDisposePassBuilderOptions(options);
    LLVMConsumeError(error);
    return !error && !LLVMVerifyModule(e->module, LLVMReturnStatusAction, NULL);
}

const char *plain_write(struct emit *e, struct lowered *out)
{
    char *body = NULL, *all = NULL;
    size_t n_body, n_all;
    struct writer *w = calloc(1, sizeof *w);
    if (!w || !simplify(e) || !(w->out = open_memstream(&body, &n_body))) {
        free(w);
        return "the module, or no memory";
    }
    w->function = e->function;
    if (setjmp(w->unknown) == 0)
        write_body(w, e->p->name);
    fclose(w->out);
    FILE *file = open_memstream(&all, &n_all);
    write_head(file, e, e->p->name);
    fprintf(file, "{\n\t.reg .pred %%p<%u>;\n\t.reg .b16 %%h<%u>;\n\t.reg .b32 %%r<%u>;\n\t.reg .b64 %%rd<%u>;\n",
            w->n_used[0] + 1, w->n_used[1] + 1, w->n_used[2] + 1, w->n_used[3] + 1);
    fprintf(file, "%s}\n", body);
    fclose(file);
    const char *const unknown = w->reason;
    registers_end(w);
    free(w);
    free(body);
    if (unknown) {
        free(all);
        return unknown;
    }
    out->ptx = all;
    out->n_mma = count(all, "mma.sync") + count(all, "wgmma.mma_async.");
    return NULL;
}
