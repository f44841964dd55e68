/* tests/declarations/declare.h - random declarations: an algorithm, a schedule of it, a target and a call, all from one
 * seed. Most are valid; what the checker or the compiler refuses is refused with a reason, and what they accept must
 * compute what its statements say. */
#ifndef TEGULA_TESTS_DECLARE_H
#define TEGULA_TESTS_DECLARE_H

#include "interpreter/interpreter.h"
#include "cli/cli.h"

/* ---- random choices, the same for the same seed ---- */

struct draw {
    tg_random random;
    uint64_t n;
};
uint32_t draw_below(struct draw *draw, uint32_t n);
bool draw_chance(struct draw *draw, uint32_t percent);
/* One of the values. */
#define DRAW(draw, ...)                                                                                                \
    ((const int[]){__VA_ARGS__}[draw_below(draw, (uint32_t)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))])

/* ---- a declaration and a call of it ---- */

enum { MOST_TILES = 96, MOST_STATEMENTS = 96 };

struct declaration {
    tg_tensor tensors[MOST_TILES];
    char names[MOST_TILES][16];
    tg_stmt body[MOST_STATEMENTS];
    tg_algorithm algorithm;
    tg_schedule schedule;
    const tg_schedule *schedules[2];
    tg_variant variant;
    const tg_target *target;
    tg_dtype io;
    tg_shape shape;
    bool without_optional;
    bool is_mutant; /* of a built-in variant */
    bool is_states; /* final states alone of what was drawn */
};

/* algorithm.c: statements of the family's kind, in other orders and with other operands. */
void declare_algorithm(struct draw *draw, struct declaration *d);
/* schedule.c: rows for them. */
void declare_schedule(struct draw *draw, struct declaration *d);
/* A built-in variant with a schedule of its own, of which some fields are changed. */
void declare_mutant(struct draw *draw, struct declaration *d);
/* Its final states alone, where it has any. */
void declare_states(struct declaration *d);
/* call.c: sizes, element type, target. */
void declare_call(struct draw *draw, struct declaration *d);
/* So many seeds, from one that this divides on, are schedules of one algorithm. */
enum { SCHEDULES_OF_EACH = 4 };
void declare(uint64_t seed, struct declaration *d);
void print_declaration(const struct declaration *d);

/* What declarations have, each of which is drawn and accepted often enough. */
enum kind {
    KIND_SOLVE,
    KIND_SQUARE,
    KIND_DECAY,
    KIND_SPREAD,
    KIND_SUM,
    KIND_PARAMETER,
    KIND_WALK,
    KIND_SEGMENTS,
    KIND_HEADS,
    KIND_CLUSTER,
    KIND_ENDS,
    KIND_HELD,
    KIND_POOL,
    KIND_KEPT,
    KIND_STATES,
    KIND_PIECES,
    KIND_RELAY,
    KIND_COLUMNS,
    N_KINDS
};
extern const char *const kind_names[N_KINDS];
bool is_of_kind(const struct declaration *d, enum kind kind);

/* ---- what becomes of it: judge.c ---- */

enum outcome {
    REFUSED,     /* by the checker or the compiler, with a reason: `code` */
    UNJUDGED,    /* some numbers outgrow the element type, or hang on its roundings: nothing can be said */
    RIGHT,       /* it ran and computed what its statements say */
    SILENT,      /* refused without a reason */
    NOT_LOWERED, /* accepted, but no program came of it */
    FAULTY,      /* it did not run */
    WRONG,       /* it computed something else */
};

struct result {
    enum outcome outcome;
    char code[8];
    char text[1024]; /* what is wrong */
};
void judge_declaration(struct context *context, uint64_t seed, const struct declaration *d, struct result *result);
/* The same of kernels of d that should compute what another one says, with the same tensors. */
void judge_as(struct context *context, uint64_t seed, const struct declaration *d, const struct declaration *meant,
              struct result *result);
/* steps.c: are kernels right whose small numbers underflow, and those wrong that compute something else? `result`: of the last. */
bool judge_steps(struct context *context, struct result *result);

#endif
