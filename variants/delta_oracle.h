/* variants/delta_oracle.h - the delta rule's tensors between a caller and any of its forms, and what they are by the recurrence. */
#ifndef TEGULA_DELTA_ORACLE_H
#define TEGULA_DELTA_ORACLE_H

#include "variants.h"

#include <stdbool.h>

#define LOG2_E 1.44269504f
#define LEAST_LOG2 (-150.0f) /* of a decay of a step, as in vector.h */

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

    /* where operands are made in the kernel (delta_operands.inc): what they are made of */
    Q_RAW, K_RAW,   /* rows [T, dqk] */
    BETA_RAW,       /* [T] */
    G_RAW,          /* of the log decay [T], or [T, dqk] */
    A_LOG, DT_BIAS, /* [NH]; [NH], or [NH, dqk] */
    DQ_RAW, DK_RAW, DBETA_RAW, DG_RAW, DA_LOG, DDT_BIAS,
    DELTA_CALLERS /* a family's own begin here */
};
enum { EPS = 1, BETA_MAX, LOWER_BOUND }; /* their scalars */

/* ---- the oracle: operands, the recurrence and its adjoint, token by token, in fp64 (delta_operands.c, delta_oracle.c) ---------- */

/* The log decay of y = x + dt_bias where e^A_log is `rate`; writes its derivatives by y and by A_log. */
typedef double delta_gate(const tg_oracle_call *call, double y, double rate, double *by_y, double *by_log);

struct delta_oracle {
    int log_decay;     /* tile of a [T], or [T, dqk], natural log; 0: there is none */
    int dlog_decay;    /* tile of its gradient */
    bool of_channel;   /* it has dqk */
    bool unit_rows;    /* q and k are rows divided by their length */
    bool sigmoid_beta; /* beta is BETA_MAX sigmoid(BETA_RAW) */
    delta_gate *gate;  /* the log decay is made so; NULL: it is given. Its tiles are then no tensors of the caller's */
};
/* Either walks all sequences and heads of the call, whatever the group and cuts. An absent (NULL) output is skipped, an
 * absent state or gradient that arrives is 0. Without memory for its states it writes nothing. */
void tg_delta_oracle(const tg_oracle_call *call, const struct delta_oracle *how);
void tg_delta_oracle_backward(const tg_oracle_call *call, const struct delta_oracle *how);

/* -rate softplus(y): Mamba's and Kimi's */
delta_gate tg_softplus_gate;

/* Of operands as they are: what the two above call with those that they have made. */
void tg_delta_recurrence(const tg_oracle_call *call, const struct delta_oracle *how);
void tg_delta_recurrence_backward(const tg_oracle_call *call, const struct delta_oracle *how);

#endif
