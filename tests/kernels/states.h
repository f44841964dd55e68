/* tests/kernels/states.h - a call as engines make it, beside an ordinary one that says what must come of it.
 *
 * The ordinary program (a trial: fp32 states [dqk, dhv], an entry for each sequence) is compared with the oracle elsewhere.
 * Here it computes from the same inputs what every byte must be that the program under test leaves in memory, bit by bit:
 * outputs, states in their slots and in their type, and everything else as it was. */
#ifndef TEGULA_TESTS_STATES_H
#define TEGULA_TESTS_STATES_H

#include "harness.h"

enum { MOST_SEQUENCES = 8, MOST_TOKENS = 8 };

/* How states are kept, and which slots the sequences have. */
struct contract {
    tg_pooling pool;
    tg_dtype state;    /* TG_DTYPE_NONE: as declared */
    bool values_first; /* states are [dhv, dqk] */
    int read[MOST_SEQUENCES], written[MOST_SEQUENCES];
    bool is_wide;  /* tables are int64 */
    bool is_mixed; /* tensors of tokens are slices of [B, T, ...] */
    int room;      /* tokens behind the last packed sequence */
    /* Decode steps: the trial's sequences have all its tokens; here each may have fewer. */
    bool is_packed;                        /* they lie one behind the other */
    bool is_counted;                       /* by an input, count */
    int length[MOST_SEQUENCES];            /* tokens of a sequence, packed or not; all 0: the trial's */
    int count[MOST_SEQUENCES];             /* ... of which so many count */
    int each[MOST_SEQUENCES][MOST_TOKENS]; /* TG_POOL_TOKENS, TG_POOL_CHUNKS: slots of its tokens, or chunks of 64 */
};

/* Gives the trial, whose inputs are there, initial states that the contract's type can hold, zeros where a sequence has no slot
 * to read, and no gradients of padding, which the trial knows nothing of. */
void contract_prepare(struct trial *trial, const struct contract *contract);
/* Compiles what the trial runs by the contract, runs it on the trial's inputs, and expects the trial's outputs. after[t]: the
 * same of the first t tokens, where sequences have fewer than the trial or states behind every token or chunk; else NULL. */
void contract_kept(const struct trial *trial, const struct trial *const *after, const struct contract *contract);
/* What a program must be like for it, of what a class says of states. */
tg_shape_class contract_states(const struct contract *contract);
/* In steps, for programs that have changed meanwhile. That program, the harness's, who frees it: */
bool contract_load(const struct trial *trial, const struct contract *contract, struct kernel *kernel);
/* A call of it in memory of its own, or NULL after messages; to be ended. */
struct contract_call *contract_begin(const struct trial *trial, const struct trial *const *after,
                                     const struct contract *contract, const tg_program *program);
/* "nothing" where all is as it must be, "numbers" where it is not (which is told, if so wished), else the kind of the emulator's
 * report. Over memory as it was behind contract_begin. */
const char *contract_go(const struct contract_call *call, const tg_module *module, bool is_told);
void contract_end(struct contract_call *call); /* or NULL */

/* Does it take those? Which: of so many tokens of a sequence the state is wanted behind each `contract_step`, and the last. */
bool contract_is_ragged(const struct contract *contract);
int contract_tokens(const struct trial *trial, const struct contract *contract, int64_t sequence);
int contract_step(const struct contract *contract);

/* All of it for a call, whose schedules are by name, forward and backward. */
void try_contract(const struct spec *spec, const struct contract *contract, uint64_t seed);

/* The calls of fewer tokens that a contract asks for, beside that of all: after[t] as contract_kept takes it. */
struct firsts {
    struct trial trials[16];
    struct spec specs[16];
    const struct trial *after[257];
    int n;
};
/* Runs them on the first tokens of `whole`, which has run. False after a failed expectation. */
bool firsts_open(struct firsts *firsts, const struct trial *whole, const struct contract *contract);
void firsts_close(struct firsts *firsts);

#endif
