/* tests/soak/soak.h - sequences, the steps that serve them, and the pool where their states lie (tests/soak.c). */
#ifndef TEGULA_TESTS_SOAK_H
#define TEGULA_TESTS_SOAK_H

#include "jit/jit.h"
#include "tuning/tuning.h"

enum {
    POISON = 0xff, /* a NaN in every type */
    HEADS = 2,
    LENGTH = 160, /* tokens that a sequence can have */
    MOST_LIVE = 4,
    MOST_PARTS = 2 * MOST_LIVE,
    MOST_DRAFT = 8,
    MOST_ROW = MOST_PARTS * LENGTH,
    SLOTS = 64,
    NOBODYS = 0, /* a slot that is never given */
    WRONG = 31   /* so far off are the tokens of drafts that get rejected */
};

/* What is served: a variant with one state and perhaps parameters, its widths, and how the pool keeps the state. */
struct kind {
    const char *variant;
    uint32_t dqk, dhv;
    tg_dtype state; /* in memory */
    bool values_first;
};

struct sequence {
    tg_problem problem; /* inputs, and outputs of the tokens accepted so far */
    int at, slot;       /* tokens accepted; of the state behind them, -1: zero */
    int calls;          /* that made them: as often was the state stored, and read again */
    bool is_away;
    unsigned char *snapshot; /* of one that is away */
};

/* A sequence in a step; no sequence: padding. */
struct part {
    struct sequence *sequence;
    int at;                      /* tokens accepted before */
    int length, count, accepted; /* tokens in memory; those of them that count; and the first that are accepted */
    int from, to[MOST_DRAFT];    /* slots, negative: none; of a prefill the first `to` alone */
};

/* A call of one of the two programs. */
struct step {
    bool is_prefill;
    int n;
    struct part parts[MOST_PARTS];
    int cuts[MOST_PARTS + 1]; /* of `length`s; step_run sets them */
};

/* What a round is for. */
enum event { PREFILLED, DECODED, IN_PIECES, REJECTED, PADDED, EVICTED, RESUMED, ENDED, N_EVENTS };

struct engine {
    const tg_machine *machine;
    const struct kind *kind;
    const tg_variant *variant;
    const tg_module *prefill, *decode;
    uint64_t pool, seed, drawn; /* device address; random numbers drawn so far */
    size_t slot_bytes;
    unsigned char *slots; /* what is in the pool */
    /* Inputs with neither tokens nor a state, the same for all sequences: in device memory, zero of other tensors, and here. */
    uint64_t parameters[TG_MAX_TENSORS];
    unsigned char *values[TG_MAX_TENSORS];
    bool is_taken[SLOTS];
    struct sequence live[MOST_LIVE]; /* all alike in their tensors */
    long long steps;
    int reached[N_EVENTS]; /* how often */
    bool ok;
};

extern const tg_sink soak_sink; /* prints */

/* What is not `ok` fails the test, once, with the seed. Returns ok. */
bool must(struct engine *e, bool ok, const char *what);
/* 0 .. n - 1 */
int draw(struct engine *e, int n);

/* The pool: writing a slot of host memory; a free slot, to own; giving it back, NaN again (negative: none). */
void slot_put(struct engine *e, int slot, const void *from);
int slot_take(struct engine *e);
void slot_free(struct engine *e, int slot);

/* Launches the step and fetches: outputs of accepted tokens into their sequences, the pool into `slots`. Nothing else may have
 * been written. */
void step_run(struct engine *e, struct step *step);

#endif
