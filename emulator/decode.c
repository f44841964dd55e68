/* decode.c - one statement to one insn: finds the row of ops.def which fits it, and binds the
 * operands to rows. */
#include "parse.h"

#include <stdlib.h>

/* -- the table ------------------------------------------------------------------------------- */

#define LANE1(id, pattern, D, A, expr)          OP(id, LANE, pattern, "")
#define LANE2(id, pattern, D, A, B, expr)       OP(id, LANE, pattern, "")
#define LANE3(id, pattern, D, A, B, C, expr)    OP(id, LANE, pattern, "")
#define LANE4(id, pattern, D, A, B, C, E, expr) OP(id, LANE, pattern, "")
#define FLOAT1(id, pattern, expr)               OP(id, LANE, pattern, "")
#define FLOAT2(id, pattern, expr)               OP(id, LANE, pattern, "")
#define FLOAT3(id, pattern, expr)               OP(id, LANE, pattern, "")
#define HALF1(id, name, modifiers, expr)        insn_run run_##id##_f16, run_##id##_bf16, run_##id##_f16x2, run_##id##_bf16x2;
#define HALF2(id, name, modifiers, expr)        HALF1(id, name, modifiers, expr)
#define HALF3(id, name, modifiers, expr)        HALF1(id, name, modifiers, expr)
#define OP(id, kind, pattern, operands)         insn_run run_##id;
#define OP90(id, kind, pattern, operands)       insn_run run_##id;
#define OP90A(id, kind, pattern, operands)      insn_run run_##id;
#include "ops.def"
#undef OP
#undef OP90
#undef OP90A
#undef LANE1
#undef LANE2
#undef LANE3
#undef LANE4
#undef FLOAT1
#undef FLOAT2
#undef FLOAT3
#undef HALF1
#undef HALF2
#undef HALF3

#define LETTER_h    "h"
#define LETTER_sh   "h"
#define LETTER_u32  "r"
#define LETTER_s32  "r"
#define LETTER_f32  "f"
#define LETTER_uf32 "f"
#define LETTER_u64  "l"
#define LETTER_s64  "l"
#define LETTER_f64  "d"
#define LETTER_uf64 "d"

#define LANE1(id, pattern, D, A, expr)    OP(id, LANE, pattern, "=" LETTER_##D " " LETTER_##A)
#define LANE2(id, pattern, D, A, B, expr) OP(id, LANE, pattern, "=" LETTER_##D " " LETTER_##A " " LETTER_##B)
#define LANE3(id, pattern, D, A, B, C, expr)                                                                           \
    OP(id, LANE, pattern, "=" LETTER_##D " " LETTER_##A " " LETTER_##B " " LETTER_##C)
#define LANE4(id, pattern, D, A, B, C, E, expr)                                                                        \
    OP(id, LANE, pattern, "=" LETTER_##D " " LETTER_##A " " LETTER_##B " " LETTER_##C " " LETTER_##E)
#define FLOAT1(id, pattern, expr) OP(id, LANE, pattern, "=f f")
#define FLOAT2(id, pattern, expr) OP(id, LANE, pattern, "=f f f")
#define FLOAT3(id, pattern, expr) OP(id, LANE, pattern, "=f f f f")
#define HALF_ROWS(id, name, modifiers, h, r)                                                                           \
    OP(id##_f16, LANE, name "." modifiers ".f16", h)                                                                   \
    OP(id##_bf16, LANE, name "." modifiers ".bf16", h)                                                                 \
    OP(id##_f16x2, LANE, name "." modifiers ".f16x2", r)                                                               \
    OP(id##_bf16x2, LANE, name "." modifiers ".bf16x2", r)
#define HALF1(id, name, modifiers, expr)   HALF_ROWS(id, name, modifiers, "=h h", "=r r")
#define HALF2(id, name, modifiers, expr)   HALF_ROWS(id, name, modifiers, "=h h h", "=r r r")
#define HALF3(id, name, modifiers, expr)   HALF_ROWS(id, name, modifiers, "=h h h h", "=r r r r")
#define OP(id, kind, pattern, operands)    {run_##id, KIND_##kind, 0, pattern, operands},
#define OP90(id, kind, pattern, operands)  {run_##id, KIND_##kind, SINCE_90, pattern, operands},
#define OP90A(id, kind, pattern, operands) {run_##id, KIND_##kind, ONLY_90A, pattern, operands},

enum { SINCE_90 = 1, ONLY_90A };

static const struct op_row {
    insn_run *run;
    u8 kind, target;
    const char *pattern, *operands;
} op_rows[] = {
#include "ops.def"
};
enum { N_ROWS = sizeof op_rows / sizeof *op_rows };

static const struct {
    const char *name, *words;
} classes[N_MODS] = {
#define X(id, name, words) {name, words},
    MOD_CLASSES(X)
#undef X
};

/* -- mnemonics against patterns -------------------------------------------------------------- */

static size_t span(const char *s, const char *stops)
{
    return strcspn(s, stops);
}

static bool words_equal(const char *a, size_t n, const char *b, size_t m)
{
    return n == m && !memcmp(a, b, n);
}

/* The word's place, from 1, among the words of this text, or 0. */
static u8 find_word(const char *words, size_t length, char stop, const char *word, size_t n)
{
    const char *end = words + length;
    for (u8 place = 1; words <= end; place++) {
        const char *next = memchr(words, stop, (size_t)(end - words));
        if (!next)
            next = end;
        if (words_equal(word, n, words, (size_t)(next - words)))
            return place;
        words = next + 1;
    }
    return 0;
}

static int find_class(const char *name, size_t n)
{
    for (int i = 0; i < N_MODS; i++)
        if (words_equal(name, n, classes[i].name, strlen(classes[i].name)))
            return i;
    return -1;
}

/* Whether one of the pattern's first words has this first letter: most rows are done with so. */
static bool may_match(const char *pattern, char letter)
{
    for (; *pattern != letter; pattern++) {
        while (*pattern && *pattern != '|' && *pattern != '.')
            pattern++;
        if (*pattern != '|')
            return false;
    }
    return true;
}

static bool match_pattern(const char *pattern, const char *text, u8 *mod)
{
    if (*pattern == '.') /* of an absent modifier list */
        pattern++;
    if (!*pattern)
        return !*text;
    const size_t n = span(pattern, ".");
    const char last = pattern[n - 1];
    const size_t body = last == '?' || last == '*' ? n - 1 : n;
    const char *rest = pattern + n + (pattern[n] == '.');
    const size_t m = span(text, ".");
    const char *text_rest = text + m + (text[m] == '.');
    if (*text) {
        u8 saved = 0;
        int class = -1;
        u8 place;
        if (*pattern == '<') {
            class = find_class(pattern + 1, body - 2);
            place = find_word(classes[class].words, strlen(classes[class].words), ' ', text, m);
            saved = mod[class];
        } else {
            place = find_word(pattern, body, '|', text, m);
        }
        if (place) {
            if (class >= 0)
                mod[class] = place;
            if (match_pattern(last == '*' ? pattern : rest, text_rest, mod))
                return true;
            if (class >= 0)
                mod[class] = saved;
        }
    }
    return body != n && match_pattern(rest, text, mod);
}

/* -- operands against letters ---------------------------------------------------------------- */

/* A row that holds the same value all the time; equal ones are shared. */
u32 fixed_row(struct builder *b, u32 bits, u64 value, const struct symbol *symbol, u32 special)
{
    struct kernel *k = b->kernel;
    if (bits < 64)
        value &= (1ull << bits) - 1;
    for (u32 i = 0; i < k->n_fixed; i++) {
        const struct fixed_row *f = &k->fixed[i];
        if (f->bits == bits && f->value == value && f->symbol == symbol && f->special == special)
            return f->row;
    }
    struct fixed_row *f = PUSH(k->fixed, k->n_fixed, b->cap_fixed);
    *f = (struct fixed_row){.row = k->n_rows, .bits = bits, .value = value, .symbol = symbol, .special = special};
    k->n_rows += bits == 64 ? 2 : 1;
    return f->row;
}

static u32 encode_row(u32 row, u32 bits)
{
    return row | (bits == 64 ? 3u : bits == 32 ? 2u : 1u) << 28;
}

static u64 float_immediate(const struct operand *o, bool is_double)
{
    if (o->kind == OPERAND_FLOAT && is_double) {
        float f;
        memcpy(&f, &(u32){(u32)o->value}, sizeof f);
        const double d = (double)f;
        u64 u;
        memcpy(&u, &d, sizeof u);
        return u;
    }
    if (o->kind == OPERAND_DOUBLE && !is_double) {
        double d;
        memcpy(&d, &o->value, sizeof d);
        const float f = (float)d;
        u32 u;
        memcpy(&u, &f, sizeof u);
        return u;
    }
    return o->value;
}

/* The operand as a row of `bits`; false if it is something else. */
static bool bind_row(struct builder *b, const struct operand *o, u32 bits, bool is_dst, bool takes_floats, u32 *out)
{
    switch (o->kind) {
    case OPERAND_REG:
        *out = encode_row(o->index, o->bits);
        return o->bits == bits;
    case OPERAND_SINK:
        *out = encode_row(ROW_SINK, bits);
        return is_dst;
    case OPERAND_IMM:
        *out = encode_row(fixed_row(b, bits, o->value, NULL, 0), bits);
        return !is_dst;
    case OPERAND_FLOAT:
    case OPERAND_DOUBLE:
        if (is_dst || !(takes_floats || (o->kind == OPERAND_FLOAT ? bits == 32 : bits == 64)))
            return false;
        *out = encode_row(fixed_row(b, bits, float_immediate(o, bits == 64), NULL, 0), bits);
        return true;
    case OPERAND_SYMBOL:
        *out = encode_row(fixed_row(b, bits, o->value, symbol_place(b, o->symbol), 0), bits);
        return !is_dst && bits >= 32;
    case OPERAND_SPECIAL:
        *out = encode_row(fixed_row(b, bits, 0, NULL, o->index), bits);
        return !is_dst;
    default:
        return false;
    }
}

static bool bind_any(struct builder *b, const struct operand *o, bool is_dst, u32 type, u32 *out)
{
    const u32 bytes = type ? type_bytes(type) : 4;
    if (o->kind == OPERAND_REG)
        return bind_row(b, o, o->bits, is_dst, false, out);
    return bind_row(b, o, bytes == 8 ? 64 : bytes == 4 ? 32 : 16, is_dst, type == TYPE_F32 || type == TYPE_F64, out);
}

static bool bind_predicate(const struct operand *o, bool is_dst, u32 *out)
{
    if (o->kind == OPERAND_SINK && is_dst)
        *out = PRED_SINK << 1;
    else if (o->kind == OPERAND_PRED)
        *out = o->index << 1 | o->is_negated;
    else if (o->kind == OPERAND_IMM && !is_dst)
        *out = (o->value ? PRED_TRUE : PRED_FALSE) << 1;
    else
        return false;
    return true;
}

static void push_operand(struct builder *b, struct insn *in, u32 value)
{
    *PUSH(b->kernel->operands, b->n_operands, b->cap_operands) = value;
    in->n_ops++;
}

/* wgmma holds registers of 32 bits. */
static void note_touched(struct builder *b, const struct operand *o)
{
    const struct module *m = b->module;
    if (o->kind == OPERAND_REG && o->bits == 32 && m->target == 90 && m->is_arch_specific)
        *PUSH(b->kernel->touched, b->n_touched, b->cap_touched) = o->index;
}

/* [base + offset] makes two operands: the base's row, and the offset itself. */
static bool bind_memory(struct builder *b, const struct operand *o, u32 rank, struct insn *in)
{
    if (o->kind != OPERAND_MEMORY || o->n != rank)
        return false;
    struct operand base = b->parts[o->first];
    s64 offset = (s64)o->value;
    u32 out;
    if (base.kind == OPERAND_SYMBOL || base.kind == OPERAND_IMM) {
        base.value += o->value;
        offset = 0;
        base.bits = 64;
    }
    if (offset != (s32)offset || base.bits < 32 || !bind_row(b, &base, base.bits, false, false, &out))
        return false;
    note_touched(b, &base);
    push_operand(b, in, out);
    push_operand(b, in, (u32)offset);
    for (u32 i = 0; i < rank; i++) {
        if (!bind_row(b, &b->parts[o->first + 1 + i], 32, false, false, &out))
            return false;
        note_touched(b, &b->parts[o->first + 1 + i]);
        push_operand(b, in, out);
    }
    return true;
}

static void add_fixup(struct builder *b, const struct operand *o, bool is_table)
{
    struct fixup *f = PUSH(b->fixups, b->n_fixups, b->cap_fixups);
    *f = (struct fixup){.pc = b->kernel->n_code,
                        .scope = b->scope,
                        .line = b->line,
                        .name = o->name,
                        .length = o->length,
                        .is_table = is_table};
}

static bool bind_letter(struct builder *b, const struct operand *o, char letter, bool is_dst, struct insn *in)
{
    u32 out = 0, second = PRED_SINK << 1;
    bool fits = false;
    if (o->second >= 0 && letter != 'q' && letter != 'R')
        return false;
    if (o->second >= 0 && !bind_predicate(&b->parts[o->second], true, &second))
        return false;
    switch (letter) {
    case 'h':
        fits = bind_row(b, o, 16, is_dst, false, &out);
        break;
    case 'r':
    case 'R':
        fits = bind_row(b, o, 32, is_dst, false, &out);
        break;
    case 'f':
        fits = bind_row(b, o, 32, is_dst, true, &out);
        break;
    case 'l':
        fits = bind_row(b, o, 64, is_dst, false, &out);
        break;
    case 'd':
        fits = bind_row(b, o, 64, is_dst, true, &out);
        break;
    case 'x':
        fits = bind_any(b, o, is_dst, in->mod[MOD_FROM] && !is_dst ? in->mod[MOD_FROM] : in->mod[MOD_TYPE], &out);
        break;
    case 'p':
    case 'q':
        fits = bind_predicate(o, is_dst, &out);
        break;
    case 'm':
        return bind_memory(b, o, 0, in);
    case 't':
        return bind_memory(b, o, in->mod[MOD_RANK], in);
    case 'c':
        return o->kind == OPERAND_CLOCK;
    case 'k':
        push_operand(b, in, (u32)o->value);
        return o->kind == OPERAND_IMM;
    case 'i':
        in->imm = (s64)o->value;
        return o->kind == OPERAND_IMM;
    case 'L':
    case 'T':
        if (o->kind == OPERAND_NAME)
            add_fixup(b, o, letter == 'T');
        return o->kind == OPERAND_NAME;
    default:
        break;
    }
    if (!fits)
        return false;
    note_touched(b, o);
    push_operand(b, in, out);
    if (letter == 'q' || letter == 'R')
        push_operand(b, in, second);
    return true;
}

/* One slot of the signature: "=", a count, a letter, "?". */
struct slot {
    bool is_dst, is_optional;
    u32 count;
    char letter;
};

static struct slot read_slot(const char **s)
{
    struct slot slot = {0};
    while (**s == ' ')
        (*s)++;
    if (**s == '=') {
        slot.is_dst = true;
        (*s)++;
    }
    while (**s >= '0' && **s <= '9')
        slot.count = slot.count * 10 + (u32)(*(*s)++ - '0');
    slot.letter = *(*s)++;
    if (**s == '?') {
        slot.is_optional = true;
        (*s)++;
    }
    return slot;
}

static u32 count_required(const char *s)
{
    u32 n = 0;
    while (*s)
        n += !read_slot(&s).is_optional;
    return n;
}

/* The accumulators of a wgmma: N / 2 registers. */
static bool bind_accumulators(struct builder *b, const struct operand *o, struct insn *in)
{
    const u32 n = 4u * (in->mod[MOD_WGMMA16] + in->mod[MOD_WGMMA8]);
    if (o->kind != OPERAND_VECTOR || o->n != n)
        return false;
    for (u32 i = 0; i < n; i++)
        if (b->parts[o->first + i].kind != OPERAND_REG || !bind_letter(b, &b->parts[o->first + i], 'f', true, in))
            return false;
    return true;
}

static bool bind_slot(struct builder *b, const struct operand *o, const struct slot *slot, struct insn *in)
{
    if (slot->letter == 'a')
        return bind_accumulators(b, o, in);
    if (!slot->count)
        return bind_letter(b, o, slot->letter, slot->is_dst, in);
    if (o->kind != OPERAND_VECTOR) /* a vector of one may go without braces */
        return slot->count == 1 && bind_letter(b, o, slot->letter, slot->is_dst, in);
    if (o->n != slot->count)
        return false;
    for (u32 i = 0; i < o->n; i++)
        if (!bind_letter(b, &b->parts[o->first + i], slot->letter, slot->is_dst, in))
            return false;
    return true;
}

static bool bind_operands(struct builder *b, const char *signature, struct insn *in)
{
    u32 given = 0;
    while (*signature) {
        const struct slot slot = read_slot(&signature);
        const u32 left = b->n_given - given;
        if (slot.is_optional && left <= count_required(signature)) {
            push_operand(b, in, NO_OPERAND);
            continue;
        }
        if (!left || !bind_slot(b, &b->operands[given++], &slot, in))
            return false;
        if (slot.is_dst)
            in->n_dst = in->n_ops;
    }
    return given == b->n_given;
}

/* -- the statement --------------------------------------------------------------------------- */

static bool try_row(struct builder *b, const struct op_row *row, const char *mnemonic, struct insn *in)
{
    const u32 n_operands = b->n_operands, n_fixups = b->n_fixups, n_touched = b->n_touched;
    memset(in->mod, 0, sizeof in->mod);
    in->n_ops = in->n_dst = 0;
    in->imm = 0;
    if (match_pattern(row->pattern, mnemonic, in->mod) && bind_operands(b, row->operands, in)) {
        in->run = row->run;
        in->kind = row->kind;
        return true;
    }
    b->n_operands = n_operands;
    b->n_fixups = n_fixups;
    b->n_touched = n_touched;
    return false;
}

static void narrow(u32 *log2, u32 bytes)
{
    if ((u32)__builtin_ctz(bytes) < *log2)
        *log2 = (u32)__builtin_ctz(bytes);
}

static void check_target(struct builder *b, const struct op_row *row)
{
    const struct module *m = b->module;
    if (row->target == SINCE_90 && m->target < 90)
        fail(b, "needs .target sm_90");
    if (row->target == ONLY_90A && !(m->target == 90 && m->is_arch_specific))
        fail(b, "needs .target sm_90a");
    b->kernel->is_async |= row->target;
}

static bool fits_pattern(const struct op_row *row, const char *mnemonic)
{
    u8 mod[N_MODS] = {0};
    return may_match(row->pattern, *mnemonic) && match_pattern(row->pattern, mnemonic, mod);
}

/* A kernel has thousands of instructions and tens of names: the rows before this one need not be tried again. */
static u32 first_row_of(struct builder *b, const char *mnemonic)
{
    u32 hash = 0, i = 0;
    for (const char *at = mnemonic; *at; at++)
        hash = hash * 31 + (u8)*at;
    struct first_row *first = &b->first_rows[(hash ^ hash >> 8) % N_FIRST_ROWS];
    if (!strcmp(first->name, mnemonic))
        return first->row;
    while (i < N_ROWS && !fits_pattern(&op_rows[i], mnemonic))
        i++;
    if (strlen(mnemonic) < sizeof first->name) {
        strcpy(first->name, mnemonic);
        first->row = i;
    }
    return i;
}

/* The narrowest accesses decide how fine the shadows are. A generic one may be to any space. */
static void note_access(struct kernel *k, const struct insn *in, const char *mnemonic)
{
    const u32 space = in->mod[MOD_SPACE];
    if (!strncmp(mnemonic, "cp.async.ca", 11) && in->imm) {
        narrow(&k->granule_log2, (u32)in->imm);
        narrow(&k->global_granule_log2, (u32)in->imm);
    }
    if (!strncmp(mnemonic, "mbarrier", 8)) {
        narrow(&k->granule_log2, 8); /* the size of the object */
        k->is_async = true;
        return;
    }
    /* Tensor stores end anywhere inside of 16 bytes, though hardly inside of 2. */
    if (!strncmp(mnemonic, "cp.async.bulk.tensor", 20) || !strncmp(mnemonic, "cp.reduce", 9))
        narrow(&k->global_granule_log2, 2);
    const bool is_division = !strncmp(mnemonic, "div", 3) || !strncmp(mnemonic, "rem", 3);
    if (in->kind == KIND_ACCESS && in->mod[MOD_TYPE] && !is_division) {
        if (space == SPACE_GENERIC || space == SPACE_SHARED || space == SPACE_SHARED_CTA)
            narrow(&k->granule_log2, type_bytes(in->mod[MOD_TYPE]));
        if (space == SPACE_GENERIC || space == SPACE_GLOBAL)
            narrow(&k->global_granule_log2, type_bytes(in->mod[MOD_TYPE]));
    }
    k->lets_next_begin |= !strcmp(mnemonic, "griddepcontrol.launch_dependents");
    const bool is_fence = !strncmp(mnemonic, "fence", 5) || in->mod[MOD_STRONG] >= STRONG_ACQUIRE,
               is_access = !strncmp(mnemonic, "ld.", 3) || !strncmp(mnemonic, "st.", 3);
    if (is_fence && is_access && in->mod[MOD_SCOPE] >= SCOPE_GPU)
        k->has_release = true;
    else
        k->has_gpu_fence |= (is_fence && in->mod[MOD_SCOPE] >= SCOPE_CLUSTER) ||
                            (!strncmp(mnemonic, "membar", 6) && strcmp(mnemonic, "membar.cta") != 0);
}

void decode(struct builder *b, const char *mnemonic, u32 length, const struct operand *guard)
{
    char name[192];
    struct kernel *k = b->kernel;
    if (length >= sizeof name)
        fail(b, "instruction name too long");
    memcpy(name, mnemonic, length);
    name[length] = 0;
    struct insn in = {.line = b->line, .file = b->file, .src_line = b->src_line, .serial = k->n_code};
    in.guard = guard ? guard->index << 1 | guard->is_negated : PRED_TRUE << 1;
    const u32 first = b->n_operands, first_touched = b->n_touched;
    u32 i = first_row_of(b, name);
    while (i < N_ROWS && !try_row(b, &op_rows[i], name, &in))
        i++;
    if (i == N_ROWS)
        fail(b, "instruction %s not supported, or its operands do not fit", name);
    check_target(b, &op_rows[i]);
    note_access(k, &in, name);
    in.is_wgmma = !strncmp(name, "wgmma.mma_async", 15);
    in.n_touched = b->n_touched - first_touched;
    const u32 n = k->n_code;
    *PUSH(k->code, k->n_code, b->cap_code) = in;
    if (n == b->cap_first)
        b->first_operand = grow_list(b->first_operand, &b->cap_first, sizeof(u32));
    b->first_operand[n] = first;
    if (n == b->cap_first_touched)
        b->first_touched = grow_list(b->first_touched, &b->cap_first_touched, sizeof(u32));
    b->first_touched[n] = first_touched;
}

/* -- the end of a kernel --------------------------------------------------------------------- */

static const struct label *find_label(const struct builder *b, const struct fixup *f)
{
    for (u32 scope = f->scope;; scope = b->scope_parent[scope]) {
        for (u32 i = 0; i < b->n_labels; i++) {
            const struct label *l = &b->labels[i];
            if (l->scope == scope && words_equal(l->name, l->length, f->name, f->length))
                return l;
        }
        if (!scope)
            return NULL;
    }
}

/* Numbers the registers that wgmma holds; of what an insn touches only these are kept. */
static void number_touched(struct builder *b)
{
    struct kernel *k = b->kernel;
    u32 *number = calloc(k->n_rows, sizeof *number); /* from 1 */
    for (u32 i = 0; i < k->n_code; i++) {
        const u32 *touched = k->touched + b->first_touched[i];
        for (u32 t = 0; t < k->code[i].n_touched && k->code[i].is_wgmma; t++)
            if (!number[touched[t]])
                number[touched[t]] = ++k->n_wgmma_rows;
    }
    for (u32 i = 0; i < k->n_code; i++) {
        struct insn *in = &k->code[i];
        u32 *touched = k->touched + b->first_touched[i], n = 0;
        for (u32 t = 0; t < in->n_touched; t++)
            if (number[touched[t]])
                touched[n++] = number[touched[t]] - 1;
        in->touched = touched;
        in->n_touched = n;
    }
    free(number);
}

/* Resolves jumps and addresses, now that all labels and all of shared memory are known. */
void finish_kernel(struct builder *b)
{
    struct kernel *k = b->kernel;
    insn_run *const exit_run = run_exit;
    const u32 line = b->line;
    if (!k->n_code || k->code[k->n_code - 1].run != exit_run) {
        b->n_given = 0; /* operands of the last statement are not its */
        decode(b, "ret", 3, NULL);
    }
    for (u32 i = 0; i < b->n_fixups; i++) {
        const struct fixup *f = &b->fixups[i];
        const struct label *l = find_label(b, f);
        b->line = f->line;
        if (!l)
            fail(b, "no label '%.*s'", (int)f->length, f->name);
        if (f->pc == NO_PC)
            k->tables[f->table].target[f->entry] = l->pc;
        else if (f->is_table && !l->table)
            fail(b, "'%.*s' is not a list of branch targets", (int)f->length, f->name);
        else
            k->code[f->pc].imm = f->is_table ? l->table - 1 : l->pc;
    }
    b->line = line;
    for (u32 i = 0; i < k->n_code; i++)
        k->code[i].op = k->operands + b->first_operand[i];
    number_touched(b);
    for (u32 i = 0; i < k->n_fixed; i++) {
        struct fixed_row *f = &k->fixed[i];
        const struct symbol *s = f->symbol;
        if (!s)
            continue;
        f->value += s->is_dynamic ? SHARED_BASE + k->dynamic_base : s->address;
        f->is_shared = s->space == SPACE_SHARED;
        f->symbol = NULL;
    }
}
