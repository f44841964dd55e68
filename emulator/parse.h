/* parse.h - what parse.c (text to statements) and decode.c (statements to insns) share. */
#ifndef PARSE_H
#define PARSE_H

#include "emu.h"

#include <setjmp.h>

/* A variable: parameter, shared, local, global or const. */
struct symbol {
    char *name;
    u32 space;
    u64 address; /* param, local, shared: offset, once is_placed; global, const: device address */
    u64 bytes;
    u32 align;
    bool is_dynamic, is_placed;
    struct allocation *allocation;
    struct symbol *next;
};

/* .reg .b32 %r<100>: names %r0 .. %r99; count 0: the one name as it is. */
struct reg_range {
    const char *name;
    u32 length, count, bits; /* bits 1: predicates */
    u32 *slots;              /* row or predicate number, 0 until first used */
};

enum operand_kind {
    OPERAND_REG,
    OPERAND_PRED,
    OPERAND_IMM,
    OPERAND_FLOAT, /* value holds f32 bits */
    OPERAND_DOUBLE,
    OPERAND_SYMBOL,
    OPERAND_SPECIAL,
    OPERAND_CLOCK,
    OPERAND_VECTOR, /* elements first .. first + n - 1 of builder->parts */
    OPERAND_MEMORY, /* parts[first] is the base, value the offset, n coordinates follow the base */
    OPERAND_SINK,
    OPERAND_NAME, /* a label */
};

struct operand {
    enum operand_kind kind;
    bool is_negated;
    u32 index, bits; /* row or predicate */
    u64 value;
    const struct symbol *symbol;
    const char *name;
    u32 length;
    u32 first, n;
    int second; /* p|q: index of q in parts, or -1 */
};

struct label {
    const char *name;
    u32 length, scope, pc, table; /* table + 1, for .branchtargets */
};

struct fixup {
    u32 pc, scope, line; /* the jump, or NO_PC for an entry of a table */
    u32 table, entry;
    const char *name;
    u32 length;
    bool is_table;
};

enum { MAX_OPERANDS = 16, MAX_VECTOR = 128, MAX_PARTS = 192, MAX_SCOPE_DEPTH = 16 };

/* The first row of ops.def whose pattern an instruction's name fits; the name is empty where none is noted. */
struct first_row {
    char name[60];
    u32 row;
};
enum { N_FIRST_ROWS = 256 };

struct builder {
    jmp_buf failed;
    struct report *report;
    struct module *module;
    struct memory *memory;
    const char *at, *end;
    u32 line, file, src_line;
    struct kernel *kernel;
    struct symbol *locals; /* of the kernel: parameters, .local, .shared */
    struct reg_range *ranges;
    u32 n_ranges, cap_ranges;
    u32 scope, depth, ranges_at[MAX_SCOPE_DEPTH];
    u32 *scope_parent, n_scopes, cap_scopes;
    struct label *labels;
    u32 n_labels, cap_labels;
    struct fixup *fixups;
    u32 n_fixups, cap_fixups;
    u32 cap_code, cap_operands, cap_fixed, cap_params, cap_tables;
    u32 n_operands;
    u32 *first_operand; /* per instruction; operands may move while they grow */
    u32 cap_first;
    u32 n_touched, cap_touched, *first_touched, cap_first_touched;
    struct operand operands[MAX_OPERANDS], parts[MAX_PARTS];
    u32 n_given, n_parts;
    struct first_row first_rows[N_FIRST_ROWS]; /* by the name's hash; the last one stays */
};

#define PUSH(list, n, capacity)                                                                                        \
    ((n) == (capacity) ? (void)((list) = grow_list((list), &(capacity), sizeof *(list))) : (void)0, &(list)[(n)++])

/* lex.c */
void *grow_list(void *list, u32 *capacity, size_t size);
void fail(struct builder *b, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void skip_space(struct builder *b);
char peek(struct builder *b);
bool take(struct builder *b, char c);
bool take_word(struct builder *b, const char *word);
void need(struct builder *b, char c);
const char *read_name(struct builder *b, u32 *length, bool dots);
bool name_is(const char *name, u32 length, const char *what);
struct operand read_number(struct builder *b);
u64 read_integer(struct builder *b);
char *copy_name(const char *name, u32 length);

/* decode.c */
void decode(struct builder *b, const char *mnemonic, u32 length, const struct operand *guard);
u32 fixed_row(struct builder *b, u32 bits, u64 value, const struct symbol *symbol, u32 special);
void finish_kernel(struct builder *b);

/* parse.c */
struct symbol *symbol_place(struct builder *b, const struct symbol *s);

#endif
