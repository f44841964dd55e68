/* tests/plain/operands.c - the registers of what an instruction reads and gives. */
#include "plain.h"

#include <string.h>

const char *const suffix[N_CLASSES] = {".pred", ".b16", ".b32", ".b64"};

/* ---- operands ---- */

static char *buffer(void)
{
    static _Thread_local char texts[64][64];
    static _Thread_local unsigned n;
    return texts[n++ % 64];
}

const char *text(const struct reg *r)
{
    static const char *const names[N_CLASSES] = {"%p", "%h", "%r", "%rd"};
    char *to = buffer(), *at = to + 63;
    if (r->class >= N_CLASSES) {
        snprintf(to, 64, "%lld", (long long)(r->class == CONSTANT ? r->bits : 0));
        return to;
    }
    *at = '\0'; /* by hand: half of all calls of printf were these */
    for (uint32_t n = r->n; at == to + 63 || n; n /= 10)
        *--at = (char)('0' + n % 10);
    const size_t length = strlen(names[r->class]);
    return memcpy(at - length, names[r->class], length);
}

/* As an operand of that type. */
const char *text_f(const struct reg *r, LLVMTypeRef type)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(type);
    char *to = buffer();
    if (r->class != CONSTANT || (kind != LLVMFloatTypeKind && kind != LLVMDoubleTypeKind))
        return text(r);
    if (kind == LLVMFloatTypeKind)
        snprintf(to, 64, "0f%08X", (unsigned)r->bits);
    else
        snprintf(to, 64, "0d%016llX", (unsigned long long)r->bits);
    return to;
}

static uint64_t bits_of_real(struct writer *w, LLVMValueRef value)
{
    LLVMBool lost;
    const double x = LLVMConstRealGetDouble(value, &lost);
    const float narrow = (float)x;
    uint32_t bits;
    uint64_t wide;
    memcpy(&bits, &narrow, sizeof bits);
    memcpy(&wide, &x, sizeof wide);
    switch (LLVMGetTypeKind(LLVMTypeOf(value))) {
    case LLVMDoubleTypeKind:
        return wide;
    case LLVMFloatTypeKind:
        return bits;
    case LLVMBFloatTypeKind:
        return bits >> 16;
    default:
        if (x == 0)
            return bits >> 16;
        give_up(w, "a constant in half precision");
    }
}

/* What a constant is beyond the address of shared memory, which it may have in it. */
static int64_t constant_offset(struct writer *w, LLVMValueRef value, bool *is_shared)
{
    if (LLVMIsAConstantInt(value))
        return LLVMConstIntGetSExtValue(value);
    if (LLVMIsAGlobalVariable(value)) {
        *is_shared = true;
        return 0;
    }
    if (!LLVMIsAConstantExpr(value))
        give_up(w, "a constant");
    const int64_t a = constant_offset(w, LLVMGetOperand(value, 0), is_shared);
    const LLVMOpcode opcode = LLVMGetConstOpcode(value);
    if (opcode == LLVMPtrToInt || opcode == LLVMIntToPtr || opcode == LLVMBitCast)
        return a;
    if (LLVMGetNumOperands(value) != 2 || (opcode != LLVMAdd && opcode != LLVMGetElementPtr))
        give_up(w, "a constant expression");
    if (opcode == LLVMGetElementPtr && (LLVMGetTypeKind(LLVMGetGEPSourceElementType(value)) != LLVMIntegerTypeKind ||
                                        LLVMGetIntTypeWidth(LLVMGetGEPSourceElementType(value)) != 8))
        give_up(w, "a constant element");
    return a + constant_offset(w, LLVMGetOperand(value, 1), is_shared);
}

const struct reg shared_base = {.class = CLASS_32, .n = 0};

static struct reg constant(struct writer *w, LLVMValueRef value, int64_t *offset)
{
    bool is_shared = false;
    *offset = 0;
    if (LLVMIsUndef(value) || LLVMIsPoison(value))
        return (struct reg){.class = UNDEFINED};
    if (LLVMIsNull(value))
        return (struct reg){.class = CONSTANT};
    if (LLVMIsAConstantFP(value))
        return (struct reg){.class = CONSTANT, .bits = bits_of_real(w, value)};
    const int64_t at = constant_offset(w, value, &is_shared);
    if (!is_shared)
        return (struct reg){.class = CONSTANT, .bits = (uint64_t)at};
    *offset = at;
    return shared_base;
}

static uint32_t parts_of_constant(struct writer *w, LLVMValueRef value, struct reg *parts)
{
    const struct form form = form_of(w, LLVMTypeOf(value));
    int64_t offset;
    for (uint32_t i = 0; i < form.n_parts; i++)
        if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMVectorTypeKind || LLVMIsUndef(value) || LLVMIsNull(value))
            parts[i] = constant(w, value, &offset);
        else if (form.is_pairs)
            parts[i] = (struct reg){.class = CONSTANT,
                                    .bits = constant(w, LLVMGetAggregateElement(value, 2 * i), &offset).bits |
                                            constant(w, LLVMGetAggregateElement(value, 2 * i + 1), &offset).bits << 16};
        else
            parts[i] = constant(w, LLVMGetAggregateElement(value, i), &offset);
    return form.n_parts;
}

static struct reg sum(struct writer *w, struct reg base, int64_t offset)
{
    if (!offset)
        return base;
    const struct reg to = new_register(w, base.class);
    pin(w, &to, 1);
    fprintf(w->out, "\tadd.s%d %s, %s, %lld;\n", base.class == CLASS_32 ? 32 : 64, text(&to), text(&base),
            (long long)offset);
    return to;
}

uint32_t parts_of(struct writer *w, LLVMValueRef value, struct reg *parts)
{
    const struct item *item = item_of(w, value);
    if (!item) {
        int64_t offset = 0;
        if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind)
            return parts_of_constant(w, value, parts);
        parts[0] = constant(w, value, &offset);
        parts[0] = sum(w, parts[0], offset);
        return 1;
    }
    if (!item->regs)
        give_up(w, "a value before its instruction");
    memcpy(parts, item->regs, item->n_regs * sizeof *parts);
    if (item->offset)
        parts[0] = sum(w, parts[0], item->offset);
    return item->n_regs;
}

struct reg part_of(struct writer *w, LLVMValueRef value)
{
    struct reg parts[MOST_PARTS];
    if (parts_of(w, value, parts) != 1)
        give_up(w, "an operand of several registers");
    return parts[0];
}

const char *operand(struct writer *w, LLVMValueRef user, unsigned i)
{
    const LLVMValueRef value = LLVMGetOperand(user, i);
    const struct reg r = part_of(w, value);
    return text_f(&r, LLVMTypeOf(value));
}

/* A constant, too. */
struct reg in_register(struct writer *w, struct reg r, uint8_t class)
{
    if (r.class < N_CLASSES)
        return r;
    const struct reg to = new_register(w, class);
    pin(w, &to, 1);
    fprintf(w->out, "\tmov%s %s, %lld;\n", suffix[class], text(&to),
            class == CLASS_PREDICATE ? -(long long)(r.bits & 1) : (long long)r.bits);
    return to;
}

const char *operand_in_register(struct writer *w, LLVMValueRef user, unsigned i)
{
    const LLVMValueRef value = LLVMGetOperand(user, i);
    const struct reg r = in_register(w, part_of(w, value), form_of(w, LLVMTypeOf(value)).class[0]);
    return text(&r);
}

struct reg base_of(struct writer *w, LLVMValueRef pointer, int64_t *offset)
{
    const struct item *item = item_of(w, pointer);
    if (!item)
        return constant(w, pointer, offset);
    *offset = item->offset;
    return item->regs[0];
}

const char *address_text(struct writer *w, LLVMValueRef pointer)
{
    int64_t offset;
    const struct reg base = base_of(w, pointer, &offset);
    char *to = buffer(), name[32];
    snprintf(name, sizeof name, "%s", text(&base));
    snprintf(to, 64, "%s+%lld", name, (long long)offset);
    return to;
}

/* ---- results ---- */

void result(struct writer *w, struct item *item)
{
    const struct form form = form_of(w, LLVMTypeOf(item->value));
    const struct item *home = home_of(w, (uint32_t)(item - w->items));
    if (home && home->n_regs == form.n_parts && home->regs[0].class == form.class[0])
        share(item, home);
    else
        own(w, item, &form);
}

/* What asks for elements of pairs. */
static bool has_elements_taken(struct writer *w, const struct item *item)
{
    for (LLVMUseRef use = LLVMGetFirstUse(item->value); use; use = LLVMGetNextUse(use)) {
        const LLVMOpcode opcode = item_of(w, LLVMGetUser(use))->opcode;
        if (opcode == LLVMExtractElement || opcode == LLVMInsertElement || opcode == LLVMFPExt)
            return true;
    }
    return false;
}

/* Pairs by elements, as far as somebody wants them. */
void take_apart(struct writer *w, struct item *item)
{
    const LLVMTypeRef type = LLVMTypeOf(item->value);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind || item->elements || !item->regs)
        return;
    const struct form form = form_of(w, type);
    if (!form.is_pairs || !has_elements_taken(w, item))
        return;
    item->elements = keep(w, form.n_elements, sizeof *item->elements);
    for (uint32_t i = 0; i < form.n_elements; i++)
        item->elements[i] = new_register(w, CLASS_16);
    pin(w, item->elements, form.n_elements);
    for (uint32_t i = 0; i < form.n_parts; i++)
        fprintf(w->out, "\tmov.b32 {%s, %s}, %s;\n", text(&item->elements[2 * i]), text(&item->elements[2 * i + 1]),
                text(&item->regs[i]));
}

void move(struct writer *w, const struct reg *to, const struct reg *from)
{
    if (from->class == UNDEFINED || (from->class == to->class && from->n == to->n))
        return;
    const bool is_true = to->class == CLASS_PREDICATE && from->class == CONSTANT && from->bits & 1;
    fprintf(w->out, "\tmov%s %s, %s;\n", suffix[to->class], text(to), is_true ? "-1" : text(from));
}
