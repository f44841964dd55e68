/* tests/plain/compute.c - instructions that make values of values. */
#include "plain.h"

#include <string.h>

/* ---- arithmetic ---- */

/* "f32" of a number's type, "bf16x2" of pairs'. */
static const char *real_name(struct writer *w, LLVMTypeRef type)
{
    const bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    switch (LLVMGetTypeKind(is_vector ? LLVMGetElementType(type) : type)) {
    case LLVMHalfTypeKind:
        return is_vector ? "f16x2" : "f16";
    case LLVMBFloatTypeKind:
        return is_vector ? "bf16x2" : "bf16";
    case LLVMFloatTypeKind:
        return "f32";
    case LLVMDoubleTypeKind:
        return "f64";
    default:
        give_up(w, "a type of floats");
    }
}

static LLVMTypeRef element_type(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

void write_real(struct writer *w, struct item *item, const char *name)
{
    struct reg a[MOST_PARTS], b[MOST_PARTS];
    const LLVMTypeRef type = LLVMTypeOf(item->value), element = element_type(type);
    const bool has_two = item->opcode != LLVMFNeg;
    const uint32_t n = parts_of(w, LLVMGetOperand(item->value, 0), a);
    if (has_two)
        parts_of(w, LLVMGetOperand(item->value, 1), b);
    result(w, item);
    for (uint32_t i = 0; i < n; i++)
        fprintf(w->out, "\t%s%s %s, %s%s%s;\n", name, real_name(w, type), text(&item->regs[i]), text_f(&a[i], element),
                has_two ? ", " : "", has_two ? text_f(&b[i], element) : "");
}

const char *width_of(const struct form *form)
{
    static const char *const widths[N_CLASSES] = {"", "16", "32", "64"};
    return widths[form->class[0]];
}

void write_integer(struct writer *w, struct item *item, const char *name)
{
    const struct form form = form_of(w, LLVMTypeOf(item->value));
    struct reg b = part_of(w, LLVMGetOperand(item->value, 1));
    const bool is_shift = item->opcode == LLVMShl || item->opcode == LLVMLShr;
    if (is_shift && b.class != CONSTANT && form.class[0] != CLASS_32)
        give_up(w, "a shift by a register");
    const char *first = operand(w, item->value, 0);
    result(w, item);
    fprintf(w->out, "\t%s%s %s, %s, %s;\n", name, width_of(&form), text(&item->regs[0]), first, text(&b));
}

void write_division(struct writer *w, struct item *item)
{
    const struct reg b = part_of(w, LLVMGetOperand(item->value, 1));
    const bool is_power = b.class == CONSTANT && b.bits && !(b.bits & (b.bits - 1)), rest = item->opcode == LLVMURem;
    if (!is_power) {
        write_integer(w, item, rest ? "rem.u" : "div.u");
        return;
    }
    const struct form form = form_of(w, LLVMTypeOf(item->value));
    const char *first = operand(w, item->value, 0);
    result(w, item);
    fprintf(w->out, "\t%s%s %s, %s, %lld;\n", rest ? "and.b" : "shr.u", width_of(&form), text(&item->regs[0]), first,
            rest ? (long long)b.bits - 1 : (long long)__builtin_ctzll(b.bits));
}

void write_logic(struct writer *w, struct item *item, const char *name)
{
    const struct form form = form_of(w, LLVMTypeOf(item->value));
    const bool is_predicate = form.class[0] == CLASS_PREDICATE;
    const char *a = is_predicate ? operand_in_register(w, item->value, 0) : operand(w, item->value, 0);
    const char *b = is_predicate ? operand_in_register(w, item->value, 1) : operand(w, item->value, 1);
    result(w, item);
    fprintf(w->out, "\t%s%s %s, %s, %s;\n", name, suffix[form.class[0]], text(&item->regs[0]), a, b);
}

void write_integer_comparison(struct writer *w, struct item *item)
{
    static const char *const names[] = {"eq", "ne", "gt", "ge", "lt", "le", "gt", "ge", "lt", "le"};
    const LLVMIntPredicate predicate = LLVMGetICmpPredicate(item->value);
    const struct form form = form_of(w, LLVMTypeOf(LLVMGetOperand(item->value, 0)));
    if (form.class[0] == CLASS_PREDICATE)
        give_up(w, "predicates compared");
    const char *a = operand(w, item->value, 0), *b = operand(w, item->value, 1);
    result(w, item);
    fprintf(w->out, "\tsetp.%s.%c%s %s, %s, %s;\n", names[predicate - LLVMIntEQ], predicate >= LLVMIntSGT ? 's' : 'u',
            width_of(&form), text(&item->regs[0]), a, b);
}

void write_real_comparison(struct writer *w, struct item *item)
{
    static const char *const names[] = {NULL,  "eq",  "gt",  "ge",  "lt",  "le",  "ne",  "num",
                                        "nan", "equ", "gtu", "geu", "ltu", "leu", "neu", NULL};
    const char *name = names[LLVMGetFCmpPredicate(item->value)];
    const LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(item->value, 0));
    if (!name || LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        give_up(w, "a comparison");
    const char *a = operand(w, item->value, 0), *b = operand(w, item->value, 1);
    result(w, item);
    fprintf(w->out, "\tsetp.%s.%s %s, %s, %s;\n", name, real_name(w, type), text(&item->regs[0]), a, b);
}

static void write_predicate_select(struct writer *w, struct item *item)
{
    const char *c = operand_in_register(w, item->value, 0), *a = operand_in_register(w, item->value, 1),
               *b = operand_in_register(w, item->value, 2);
    struct reg t[2] = {new_register(w, CLASS_PREDICATE), new_register(w, CLASS_PREDICATE)};
    pin(w, t, 2);
    result(w, item);
    fprintf(w->out, "\tand.pred %s, %s, %s;\n\tnot.pred %s, %s;\n\tand.pred %s, %s, %s;\n\tor.pred %s, %s, %s;\n",
            text(&t[0]), c, a, text(&t[1]), c, text(&t[1]), text(&t[1]), b, text(&item->regs[0]), text(&t[0]),
            text(&t[1]));
}

void write_select(struct writer *w, struct item *item)
{
    struct reg a[MOST_PARTS], b[MOST_PARTS];
    const LLVMTypeRef type = LLVMTypeOf(item->value), element = element_type(type);
    const struct form form = form_of(w, type);
    if (form.class[0] == CLASS_PREDICATE) {
        write_predicate_select(w, item);
        return;
    }
    const LLVMTypeKind kind = LLVMGetTypeKind(element);
    const bool is_real = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
    const char *c = operand_in_register(w, item->value, 0);
    parts_of(w, LLVMGetOperand(item->value, 1), a);
    parts_of(w, LLVMGetOperand(item->value, 2), b);
    result(w, item);
    for (uint32_t i = 0; i < form.n_parts; i++)
        fprintf(w->out, "\tselp.%c%s %s, %s, %s, %s;\n", is_real ? 'f' : 'b', width_of(&form), text(&item->regs[i]),
                text_f(&a[i], element), text_f(&b[i], element), c);
}

/* ---- from type to type ---- */

static void write_pairs_rounded(struct writer *w, struct item *item)
{
    struct reg a[MOST_PARTS];
    const LLVMTypeRef from = element_type(LLVMTypeOf(LLVMGetOperand(item->value, 0)));
    if (LLVMGetTypeKind(from) != LLVMFloatTypeKind)
        give_up(w, "a vector rounded");
    parts_of(w, LLVMGetOperand(item->value, 0), a);
    result(w, item);
    for (uint32_t i = 0; i < item->n_regs; i++)
        fprintf(w->out, "\tcvt.rn.%s.f32 %s, %s, %s;\n", real_name(w, LLVMTypeOf(item->value)), text(&item->regs[i]),
                text_f(&a[2 * i + 1], from), text_f(&a[2 * i], from));
}

static void write_pairs_widened(struct writer *w, struct item *item)
{
    const struct item *from = item_of(w, LLVMGetOperand(item->value, 0));
    if (!from || !from->elements)
        give_up(w, "a vector widened");
    result(w, item);
    for (uint32_t i = 0; i < item->n_regs; i++)
        fprintf(w->out, "\tcvt.%s.%s %s, %s;\n", real_name(w, LLVMGetElementType(LLVMTypeOf(item->value))),
                real_name(w, LLVMGetElementType(LLVMTypeOf(from->value))), text(&item->regs[i]),
                text(&from->elements[i]));
}

void write_real_cast(struct writer *w, struct item *item)
{
    const LLVMTypeRef to = LLVMTypeOf(item->value), from = LLVMTypeOf(LLVMGetOperand(item->value, 0));
    if (form_of(w, to).is_pairs || form_of(w, from).is_pairs) {
        item->opcode == LLVMFPTrunc ? write_pairs_rounded(w, item) : write_pairs_widened(w, item);
        return;
    }
    const char *a = operand(w, item->value, 0);
    if (LLVMGetTypeKind(to) == LLVMVectorTypeKind ||
        (LLVMGetTypeKind(from) == LLVMDoubleTypeKind && LLVMGetTypeKind(to) != LLVMFloatTypeKind))
        give_up(w, "a cast of floats");
    result(w, item);
    fprintf(w->out, "\tcvt%s.%s.%s %s, %s;\n", item->opcode == LLVMFPTrunc ? ".rn" : "", real_name(w, to),
            real_name(w, from), text(&item->regs[0]), a);
}

/* The lowest one, as a predicate. */
static void write_bit(struct writer *w, const struct form *from, const char *to, const char *a)
{
    const struct reg bit = new_register(w, from->class[0]);
    pin(w, &bit, 1);
    fprintf(w->out, "\tand.b%s %s, %s, 1;\n\tsetp.ne.u%s %s, %s, 0;\n", width_of(from), text(&bit), a, width_of(from),
            to, text(&bit));
}

void write_integer_cast(struct writer *w, struct item *item)
{
    const struct form to = form_of(w, LLVMTypeOf(item->value)),
                      from = form_of(w, LLVMTypeOf(LLVMGetOperand(item->value, 0)));
    const char *a = operand_in_register(w, item->value, 0);
    result(w, item);
    const char *d = text(&item->regs[0]);
    if (to.class[0] == CLASS_PREDICATE)
        write_bit(w, &from, d, a);
    else if (from.class[0] == CLASS_PREDICATE)
        fprintf(w->out, "\tselp.b%s %s, 1, 0, %s;\n", width_of(&to), d, a);
    else
        fprintf(w->out, "\tcvt.u%s.%c%s %s, %s;\n", width_of(&to), item->opcode == LLVMSExt ? 's' : 'u',
                width_of(&from), d, a);
}

/* One register as two, or two as one. */
static void write_halves(struct writer *w, struct item *item)
{
    struct reg a[MOST_PARTS];
    const uint32_t n = parts_of(w, LLVMGetOperand(item->value, 0), a);
    result(w, item);
    if (n == 1 && item->n_regs == 2 && item->regs[0].class == CLASS_32)
        fprintf(w->out, "\tmov.b64 {%s, %s}, %s;\n", text(&item->regs[0]), text(&item->regs[1]), text(&a[0]));
    else if (n == 2 && item->n_regs == 1 && item->regs[0].class == CLASS_64)
        fprintf(w->out, "\tmov.b64 %s, {%s, %s};\n", text(&item->regs[0]), text(&a[0]), text(&a[1]));
    else
        give_up(w, "a bitcast");
}

void write_bitcast(struct writer *w, struct item *item)
{
    struct reg a[MOST_PARTS];
    const LLVMValueRef value = LLVMGetOperand(item->value, 0);
    const struct form to = form_of(w, LLVMTypeOf(item->value)), from = form_of(w, LLVMTypeOf(value));
    if (to.n_parts != from.n_parts || to.class[0] != from.class[0]) {
        write_halves(w, item);
        return;
    }
    item->n_regs = parts_of(w, value, a);
    item->regs = keep(w, item->n_regs, sizeof *a);
    memcpy(item->regs, a, item->n_regs * sizeof *a);
}

/* ---- vectors and structs ---- */

void write_extract(struct writer *w, struct item *item)
{
    const struct item *from = item_of(w, LLVMGetOperand(item->value, 0));
    const bool is_vector = item->opcode == LLVMExtractElement;
    if (!from || !from->regs || (is_vector && !LLVMIsAConstantInt(LLVMGetOperand(item->value, 1))) ||
        (is_vector && !from->elements && form_of(w, LLVMTypeOf(from->value)).is_pairs))
        give_up(w, "an element");
    const uint64_t index =
        is_vector ? LLVMConstIntGetZExtValue(LLVMGetOperand(item->value, 1)) : LLVMGetIndices(item->value)[0];
    item->n_regs = 1;
    item->regs = from->elements && is_vector ? &from->elements[index] : &from->regs[index];
}

/* Pairs are put together when they are complete: for whoever asks but for another element. */
static void put_together(struct writer *w, struct item *item, const struct form *form)
{
    bool is_used = false;
    for (LLVMUseRef use = LLVMGetFirstUse(item->value); use; use = LLVMGetNextUse(use))
        is_used |= !LLVMIsAInsertElementInst(LLVMGetUser(use));
    own(w, item, form);
    for (uint32_t i = 0; i < form->n_parts && is_used; i++)
        fprintf(w->out, "\tmov.b32 %s, {%s, %s};\n", text(&item->regs[i]), text(&item->elements[2 * i]),
                text(&item->elements[2 * i + 1]));
}

void write_insert(struct writer *w, struct item *item)
{
    const LLVMValueRef into = LLVMGetOperand(item->value, 0), index = LLVMGetOperand(item->value, 2);
    const struct form form = form_of(w, LLVMTypeOf(item->value));
    struct reg *elements = keep(w, form.n_elements, sizeof *elements);
    const struct item *from = item_of(w, into);
    if (!LLVMIsAConstantInt(index) || (!from && !LLVMIsUndef(into)) || (from && form.is_pairs && !from->elements))
        give_up(w, "an element put");
    for (uint32_t i = 0; i < form.n_elements; i++)
        elements[i] = !from ? (struct reg){.class = UNDEFINED} : form.is_pairs ? from->elements[i] : from->regs[i];
    elements[LLVMConstIntGetZExtValue(index)] = part_of(w, LLVMGetOperand(item->value, 1));
    if (form.is_pairs) {
        item->elements = elements;
        put_together(w, item, &form);
    } else {
        item->regs = elements;
        item->n_regs = form.n_parts;
    }
}
