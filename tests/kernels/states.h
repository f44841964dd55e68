/* tests/kernels/states.h - a call as engines make it, beside an ordinary one that says what must come of it.
 *
 * The ordinary program (a trial: fp32 states [dqk, dhv], an entry for each sequence) is compared with the oracle elsewhere.
 * Here it computes from the same inputs what every byte must be that the program under test leaves in memory, bit by bit:
 * outputs, states in their slots and in their type, and everything else as it was. */
#ifndef TEGULA_TESTS_STATES_H
#define TEGULA_TESTS_STATES_H

#include "harness.h"

enum { MOST_SEQUENCES = 8 };

/* How states are kept, and which slots the sequences have. */
struct contract {
    tg_pooling pool;
    tg_dtype state;    /* TG_DTYPE_NONE: as declared */
    bool values_first; /* states are [dhv, dqk] */
    int read[MOST_SEQUENCES], written[MOST_SEQUENCES];
    bool is_wide;  /* tables are int64 */
    bool is_mixed; /* tensors of tokens are slices of [B, T, ...] */
    int room;      /* tokens behind the last packed sequence */
};

/* Gives the trial, whose inputs are there, initial states that the contract's type can hold, zeros where a sequence has no slot
 * to read, and no gradients of padding, which the trial knows nothing of. */
void contract_prepare(struct trial *trial, const struct contract *contract);
/* Compiles what the trial runs by the contract, runs it on the trial's inputs, and expects the trial's outputs. */
void contract_kept(const struct trial *trial, const struct contract *contract);

#endif
