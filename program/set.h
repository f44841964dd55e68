/* program/set.h - programs that choose: several programs of one variant, and which of them a call takes.
 *
 * All programs of a set have the same signature, scalars and kind of call. They differ in architecture,
 * widths, what is suggested for the scalars and schedule. Those of one architecture and one pair of widths are a branch. Each branch has a
 * table, which the compiler makes from its cost model: for the heads of all sequences together (B * NH) and
 * the tokens of a sequence, both in steps of a quarter of an octave, the program to take. A choice is thus a look-up
 * and the check of the sizes that every launch does: no model, no search, well below a microsecond.
 *
 * A leaf like program.h: plain C11 (and C++). */
#ifndef TEGULA_SET_H
#define TEGULA_SET_H

#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TG_MAX_SET_PROGRAMS = 64,
    TG_MAX_BRANCHES = 16,
    TG_MAX_BRANCH_PROGRAMS = 16,
    TG_MAX_POINTS = 16,
    TG_PICK_STEPS = 4,   /* to an octave */
    TG_PICK_HEADS = 57,  /* 1 to 2^14 heads of all sequences; beyond as there */
    TG_PICK_TOKENS = 81, /* 1 to 2^20 tokens of a sequence; beyond as there */
};

/* Why a program is the one for a point. */
typedef enum tg_origin {
    TG_BY_MODEL = 0,  /* the cost model thinks it fastest */
    TG_BY_WISDOM = 1, /* it was measured and found fastest */
    TG_BY_NAME = 2,   /* somebody named it */
} tg_origin;

/* Sizes of calls that a program was chosen for. Calls within a factor of the square root of 2 of them, in heads of
 * all sequences and in tokens of a sequence, take it whatever the table says; of several points the nearest, the
 * first of equal ones. */
typedef struct tg_point_of_set {
    int64_t batch, heads, tokens; /* as in tg_sizes; >= 1 */
    uint8_t program;              /* of the branch */
    uint8_t origin;               /* tg_origin */
} tg_point_of_set;

/* The programs of one architecture and one pair of widths, which are those of its first program. */
typedef struct tg_branch {
    uint32_t first, n_programs; /* in the set; 1..TG_MAX_BRANCH_PROGRAMS. The first is the default */
    uint32_t n_points;
    tg_point_of_set points[TG_MAX_POINTS];
    uint8_t picks[TG_PICK_HEADS][TG_PICK_TOKENS]; /* a program of the branch */
} tg_branch;

/* Immutable once built; may be read from many threads. */
typedef struct tg_set {
    uint32_t struct_size; /* sizeof(tg_set) */
    uint32_t version;     /* TG_PROGRAM_VERSION */
    uint32_t n_programs;  /* 1..TG_MAX_SET_PROGRAMS; those of a branch side by side, branch after branch */
    tg_program *programs;
    uint32_t n_branches; /* 1..TG_MAX_BRANCHES; no two of the same architecture and widths */
    tg_branch *branches;
    void *storage; /* of a set that was read: what holds the images; else NULL */
} tg_set;

/* Structural check, as tg_program_verify: of every program, that they are alike where they must be, and of the
 * branches. */
TG_API tg_status tg_set_verify(const tg_set *set, const tg_sink *sink);

/* For those who make sets: one with room for so many programs and branches, zero but for their versions; NULL without
 * memory. tg_set_take moves a malloc'ed program to place `i` of it. */
TG_API tg_set *tg_set_new(uint32_t n_programs, uint32_t n_branches);
TG_API void tg_set_take(tg_set *set, uint32_t i, tg_program *program);

/* A set of one program, which becomes the set's, also when there is no memory. */
TG_API tg_status tg_set_of(tg_program *program, tg_set **set, const tg_sink *sink);

/* Frees the programs with their storage, the branches and the malloc'ed set. NULL is allowed. */
TG_API void tg_set_free(tg_set *set);

/* Of the branches with these widths (0: the only ones of the set) the one for a GPU of compute capability `cc`
 * (90 is 9.0): the newest architecture that the GPU runs. The index, or -1 after a message that says which widths
 * and architectures there are and what was asked for. */
TG_API int tg_set_branch(const tg_set *set, int cc, uint32_t dqk, uint32_t dhv, const tg_sink *sink);

/* Which program a call of these sizes takes: that of the nearest point, else of the table, or when that cannot take
 * the sizes the first of the branch that can (a chunk size, blocks of a cluster). An index into set->programs, or -1
 * after messages that say what each program wants. */
TG_API int tg_set_pick(const tg_set *set, uint32_t branch, const tg_sizes *sizes, const tg_sink *sink);

/* log2 of a size, 16 bits behind the point: exact for powers of two, at most 0.09 too small between them; 0 for sizes
 * below 1. */
TG_API int64_t tg_pick_log(int64_t value);
/* Row and column of the table: the step that is nearest. For `value` < 1 it is 0; at most `n` - 1. */
TG_API uint32_t tg_pick_step(int64_t value, uint32_t n);
/* The size that a step stands for: 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 10 ... */
TG_API int64_t tg_pick_size(uint32_t step);

/* Bundle file of a set. A set of one program without points is written as the bundle of that program, which
 * tg_program_parse reads. `*bytes` is malloc'ed. */
TG_API tg_status tg_set_bytes(const tg_set *set, void **bytes, size_t *size, const tg_sink *sink);
/* Reads a bundle of either kind; tg_set_free. */
TG_API tg_status tg_set_parse(const void *bytes, size_t size, tg_set **set, const tg_sink *sink);

/* The set as a pair of files NAME.c and NAME.h, as tg_program_c makes them. Both need tegula_embed.h, whose text is
 * tg_embed_header(). */
TG_API tg_status tg_set_c(const tg_set *set, const char *name, char **source, char **header, const tg_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
