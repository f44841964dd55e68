/* tests/plain/plain.h - PTX of a module as the compiler makes it, written down as it stands: for tests on the emulator, most
 * of whose kernels run once, LLVM's code generator takes longer than all else.
 *
 * Locals are registers already; what is computed goes straight to the local that it is stored to where nobody looks at that
 * in between (registers.c), so that accumulators stay where matrix instructions have them. What is not known here is left to
 * LLVM, as are some kernels of every test (made.c) and all that run on a GPU. */
#ifndef TEGULA_TESTS_PLAIN_H
#define TEGULA_TESTS_PLAIN_H

#include "lower/emit.h"

#include <setjmp.h>
#include <stdio.h>

/* NULL, or what in the module this does not know, which may be a name of the module's; then nothing has been written. */
const char *plain_write(struct emit *e, struct lowered *out);

/* ---- inside ---- */

enum { MOST_PARTS = 264 };
enum { CLASS_PREDICATE, CLASS_16, CLASS_32, CLASS_64, N_CLASSES, CONSTANT = N_CLASSES, UNDEFINED };
#define A_VALUE ((LLVMOpcode)0) /* a parameter */
#define A_BLOCK ((LLVMOpcode)1000)
#define ESCAPES UINT32_MAX

/* A register, or a constant. */
struct reg {
    uint8_t class;
    uint32_t n;
    uint64_t bits;
};

/* How values of a type lie in registers: an even number of elements of 16 bits in pairs, all others one each. */
struct form {
    uint8_t class[MOST_PARTS];
    uint32_t n_parts, n_elements;
    bool is_pairs;
};

/* A parameter, an instruction, or a value of one. */
struct item {
    LLVMValueRef value;
    LLVMOpcode opcode;    /* or one of the above */
    uint32_t block, last; /* the last instruction of its block that reads it, if only that block does; else ESCAPES */
    struct reg *regs;
    uint32_t n_regs;
    struct reg *elements;     /* of pairs: each by itself; NULL: nobody asks */
    struct item **of_struct;  /* of a call that gives several: who takes each; NULL: nobody has asked */
    int64_t offset;           /* of an address: beyond its register */
    uint32_t next_to_end;     /* owners that end at the same instruction */
    uint32_t event, n_events; /* of a local: loads and stores, in order */
    uint32_t busy;            /* of a local: until then something is read there */
};

struct writer {
    jmp_buf unknown;
    const char *reason; /* NULL: all of it is known */
    LLVMValueRef function;
    FILE *out;
    struct item *items;
    uint32_t n_items, first; /* the first instruction */
    uint32_t *table, table_size;
    uint32_t *events;
    uint32_t *ends; /* owners by where they end */
    uint32_t n_used[N_CLASSES];
    struct reg *unused[N_CLASSES];
    uint32_t n_unused[N_CLASSES], room[N_CLASSES];
    bool *is_pinned[N_CLASSES];
    uint32_t room_pinned[N_CLASSES];
    uint32_t at;   /* what is being written */
    void **blocks; /* memory of the parts of items */
    uint32_t n_blocks;
};

_Noreturn void give_up(struct writer *w, const char *reason);
void *keep(struct writer *w, size_t n, size_t size);

/* registers.c */
void registers_begin(struct writer *w);
void registers_end(struct writer *w);
struct item *item_of(struct writer *w, LLVMValueRef value); /* NULL: a constant */
struct form form_of(struct writer *w, LLVMTypeRef type);
struct reg new_register(struct writer *w, uint8_t class);
void pin(struct writer *w, const struct reg *regs, uint32_t n); /* nobody else ever has them */
void release_ended(struct writer *w);
void own(struct writer *w, struct item *item, const struct form *form);
void share(struct item *item, const struct item *from);
void end_with_last(struct writer *w, struct item *item); /* its registers are free then */
bool lives_in_local(struct writer *w, struct item *load, const struct item *local);
struct item *home_of(struct writer *w, uint32_t item);
struct item *element_of_call(struct writer *w, struct item *call, uint32_t index);
int tied_to(LLVMValueRef call, uint32_t operand); /* the output; -1: none */

/* operands.c */
extern const char *const suffix[N_CLASSES];
extern const struct reg shared_base; /* where shared memory begins */
const char *text(const struct reg *r);
const char *text_f(const struct reg *r, LLVMTypeRef type);
uint32_t parts_of(struct writer *w, LLVMValueRef value,
                  struct reg *parts); /* addresses with all that is added to them */
struct reg part_of(struct writer *w, LLVMValueRef value);
const char *operand(struct writer *w, LLVMValueRef user, unsigned i);
const char *operand_in_register(struct writer *w, LLVMValueRef user, unsigned i);
struct reg in_register(struct writer *w, struct reg r, uint8_t class);
struct reg base_of(struct writer *w, LLVMValueRef pointer, int64_t *offset);
const char *address_text(struct writer *w, LLVMValueRef pointer);
void result(struct writer *w, struct item *item); /* where it goes */
void take_apart(struct writer *w, struct item *item);
void move(struct writer *w, const struct reg *to, const struct reg *from);

/* compute.c */
const char *width_of(const struct form *form);
void write_real(struct writer *w, struct item *item, const char *name);
void write_integer(struct writer *w, struct item *item, const char *name);
void write_logic(struct writer *w, struct item *item, const char *name);
void write_division(struct writer *w, struct item *item);
void write_integer_comparison(struct writer *w, struct item *item);
void write_real_comparison(struct writer *w, struct item *item);
void write_select(struct writer *w, struct item *item);
void write_real_cast(struct writer *w, struct item *item);
void write_integer_cast(struct writer *w, struct item *item);
void write_bitcast(struct writer *w, struct item *item);
void write_extract(struct writer *w, struct item *item);
void write_insert(struct writer *w, struct item *item);

/* call.c */
void write_call(struct writer *w, struct item *item);

#endif
