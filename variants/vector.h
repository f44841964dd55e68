/* variants/vector.h - the vector-gate family: a decay of its own for every key dimension.
 *
 *     S_t = diag(e^{a_t}) S_{t-1} + k_t v_t^T        h_t = scale S_t^T q_t        a_t in R^dqk, <= 0
 *
 * A variant is a file that says where the log decay a_t comes from and where its gradient goes, as statements and as an
 * fp64 function, and then includes vector.inc. Forward and backward number their tiles alike. */
#ifndef TEGULA_VECTOR_H
#define TEGULA_VECTOR_H

#include "variants.h"

#include <stdbool.h>

#define LOG2_E 1.44269504f
/* The least log2 decay of a step: 2^-150 is 0 in fp32, so it loses nothing; and the sum over a chunk of 64, at most 9600,
 * still has steps of 2^-10, where a gate of -inf would leave nothing of those behind it. */
#define LEAST_LOG2 (-150.0f)

enum {
    /* the caller's tensors */
    Q = 1, /* queries [T, dqk] */
    K,     /* keys [T, dqk] */
    V,     /* values [T, dhv] */
    S0,    /* initial state [dqk, dhv] */
    H,     /* output [T, dhv] */
    S,     /* final state [dqk, dhv] */
    DH, DS,           /* gradients that arrive for H and S */
    DQ, DK, DV, DS0,  /* gradients of Q, K, V and S0 */

    /* gates, cumulative logs in base 2 */
    A,     /* log2 decay [T, dqk]; the variant's */
    B,     /* sum of A over the chunk up to and with the token [T, dqk] */
    GT,    /* sum of A over the chunk [chunk, dqk] */
    MADE_K, /* keys that the gates are made into, not rounded [T, dqk] */

    /* forward */
    KE,    /* keys as the end of the chunk has them [T, dqk]; in memory in the forward, as QB and P are */
    CK,    /* state that arrives at a chunk [chunk, dqk, dhv] */
    QB,    /* queries as the beginning of the chunk has them, scaled [T, dqk] */
    INTER, /* QB CK [T, dhv] */
    QK, P, /* q k^T inside the chunk, decayed [Lhq, Lkv]; scaled, without what is above the diagonal [T, Lkv] */
    SUM,   /* output [T, dhv] */

    /* backward */
    DC,                        /* gradient of the state after the chunk [chunk, dqk, dhv] */
    DQI, DQG, DP, DPG, DQS, DQH, /* dQ */
    DKI, DKG, KP, KPG, DKS, DKH, /* dK */
    DQM, DKM,                  /* what a head gives dQ and dK, for the sum over heads [T, dqk] */
    DVI, VQ, VP, DVS,          /* dV; VQ: queries, scaled */
    QDQ,   /* q o dq of a head [T, dqk] */
    KDK,   /* k o dk of a head [T, dqk] */
    RK,    /* the part of it that comes from behind the chunk [T, dqk] */
    XC, X, /* rows of CK o DC; decayed [chunk, dqk] */
    E, PE, TE, TR,
    DA,    /* gradient of the log decay, natural log [T, dqk] */

    /* where a token is read before it is written, but for a bonus (rwkv6.c) */
    U,         /* bonus of a key dimension [NH, dqk] */
    BE,        /* sum of A over the chunk before the token [T, dqk] */
    UQ, BONUS, /* scale u q [T, dqk]; what of its own value a token reads, its sum with k [T] */
    VDH,       /* v.dh [T] */
    UT, SUM_U, DU, /* gradient of U: of a token, of a chunk, of all [T, dqk], [chunk, dqk], [NH, dqk] */
    SF, ADD_Q, ADD_K, SQ, SK, Y, ZK, YK, XL, /* walks: their way to X, vector.inc */
    VECTOR_TILES,             /* the variant's own begin here: at most 8 */
    DGATE = VECTOR_TILES + 8, /* what a variant makes of DA: the gradient of its gate [T, dqk] */
};

/* ---- schedules (vector_schedules.c), for all that number their tiles like that -------------------- */

TG_API extern const tg_space *const tg_vector_forward_spaces[], *const tg_vector_backward_spaces[];
TG_API extern const tg_schedule *const tg_vector_forward[], *const tg_vector_backward[], *const tg_vector_walked[],
    *const tg_vector_at_once[];
TG_API extern const tg_alias tg_vector_forward_names[], tg_vector_backward_names[];

/* ---- the oracle: the recurrence and its adjoint, token by token, in fp64 (vector_oracle.c) ---------- */

struct vector_oracle {
    double (*key)(const tg_oracle_call *call, int64_t at); /* of a variant that makes it; NULL: it is the caller's */
    /* Natural log of a decay; `at` into a tensor [B, NH, T, dqk]. */
    double (*gate)(const tg_oracle_call *call, int64_t at);
    /* Writes what da, its gradient, and dk, that of a key made there, give as the gradient of the variant's input. */
    void (*gate_back)(const tg_oracle_call *call, int64_t at, double da, double dk);
    bool reads_before; /* a token reads the state before it, and U of itself */
};
/* Either walks all sequences and heads of the call, whatever group and cuts. An absent (NULL) output is skipped, an absent
 * state or gradient that arrives is 0. Without memory for its states it writes nothing. */
void tg_vector_oracle(const tg_oracle_call *call, const struct vector_oracle *how);
void tg_vector_oracle_backward(const tg_oracle_call *call, const struct vector_oracle *how);

#endif
