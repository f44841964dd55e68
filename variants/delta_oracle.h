/* variants/delta_oracle.h - the delta rule's tensors between a caller and any of its forms, and what they are by the recurrence. */
#ifndef TEGULA_DELTA_ORACLE_H
#define TEGULA_DELTA_ORACLE_H

#include "variants/variants.h"

#include <stdbool.h>

#define LOG2_E 1.44269504f

enum {
    Q = 1, /* queries [T, dqk] */
    K,     /* keys [T, dqk] */
    V,     /* values [T, dhv] */
    BETA,  /* how much of the new value is taken [T] */
    S0,    /* initial state [dqk, dhv] */
    H,     /* output [T, dhv] */
    S,     /* final state [dqk, dhv] */
    DH, DS,               /* gradients that arrive for H and S */
    DQ, DK, DV, DBETA, DS0, /* gradients of Q, K, V, BETA and S0 */
    DELTA_CALLERS /* a family's own begin here */
};

/* ---- the oracle: the recurrence and its adjoint, token by token, in fp64 (delta_oracle.c) ---------- */

struct delta_oracle {
    int log_decay;   /* tile of a [T], or [T, dqk], natural log; 0: there is none */
    int dlog_decay;  /* tile of its gradient */
    bool of_channel; /* it has dqk */
};
/* Either walks all sequences and heads of the call, whatever the group and cuts. An absent (NULL) output is skipped, an
 * absent state or gradient that arrives is 0. Without memory for its states it writes nothing. */
void tg_delta_oracle(const tg_oracle_call *call, const struct delta_oracle *how);
void tg_delta_oracle_backward(const tg_oracle_call *call, const struct delta_oracle *how);

#endif
