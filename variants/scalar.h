/* variants/scalar.h - the scalar-gate family: one core, and what a variant adds to it.
 *
 *     S_t = e^{a_t} S_{t-1} + e^{li_t} k_t v_t^T        h_t = scale S_t^T q_t      (+ D v_t, / normaliser)
 *
 * The core is scalar_forward.inc and scalar_backward.inc. A variant is a file that says where the log decay a_t
 * and the log input gate li_t come from, and where their gradients go, as expressions, as statements and in fp64,
 * and then includes scalar.inc. Forward and backward number their tiles alike. */
#ifndef TEGULA_SCALAR_H
#define TEGULA_SCALAR_H

#include "variants.h"

#define LOG2_E 1.44269504f
#define LN_2 0.69314718f

enum {
    /* the caller's tensors */
    Q = 1, /* queries [T, dqk] */
    K,     /* keys [T, dqk] */
    V,     /* values [T, dhv] */
    S0,    /* initial state [dqk, dhv] */
    H,     /* output [T, dhv] */
    S,     /* final state [dqk, dhv] */
    N0,    /* initial normaliser state [dqk] */
    N,     /* final normaliser state [dqk] */
    M0,    /* initial max state [] */
    M,     /* final max state [] */
    QN,    /* q.n, scaled: the normaliser before its floor [T] */
    DH, DS, DN,          /* gradients that arrive for H, S and N */
    DQ, DK, DV, DS0, DN0, /* gradients of Q, K, V, S0 and N0 */

    /* gates, cumulative logs in base 2 */
    A,     /* log2 decay [T]; the variant's */
    LI,    /* log2 input gate [T]; the variant's */
    B,     /* sum of A over the chunk up to and with the token [T] */
    CJ,    /* B - LI: what a key takes from the exponent [T] */
    R,     /* what a query adds to the exponent: B, or B less its max state [T] */
    WI,    /* weight of the state that arrives at the chunk in a query's row [T] */
    W,     /* weight of a token in the state that leaves its chunk [T] */
    GT,    /* sum of A over the chunk [chunk] */
    G,     /* log2 decay of the state over the chunk [chunk] */
    NCJ, MI, MT, GS, U, UE, GTT, UT, MARR, MU, MUL, FLOOR, /* max state: scalar_gates.inc */

    /* forward */
    KW,    /* weighted keys [T, dqk] */
    CK,    /* state that arrives at a chunk [chunk, dqk, dhv] */
    NK,    /* what a chunk adds to the normaliser state [chunk, dqk] */
    NS,    /* normaliser state that arrives at a chunk [chunk, dqk] */
    INTER, /* q CK [T, dhv] */
    GATED, /* the same, weighted [T, dhv] */
    QK,    /* q k^T inside the chunk [Lhq, Lkv] */
    P,     /* the same, gated and masked [Lhq, Lkv] */
    SUM,   /* output before scale and normaliser [T, dhv] */
    QNI,   /* q.NS [T] */
    RS,    /* row sums of P [T] */
    HN,    /* scale over denominator [T] */

    /* backward */
    HD,    /* h.dh [T] */
    DEN, RN, WIN, DELTA, TOOK, HDX, DELTAX, REX, DNW, /* normaliser: scalar_backward.inc */
    QB,    /* weighted queries [T, dqk] */
    DC,    /* gradient of the state after the chunk [chunk, dqk, dhv] */
    DNK, DNS, X, XN,
    QDH, KWV, SF, SR, SK, Y, ZK, PZ, /* the walks' way to X: scalar_backward.inc */
    DP, DPG, DQI, DQG, DQS, QS, RE, RX, DQH, /* dQ */
    KP, KPG, DKI, DKG, KX, DKS, KQ, CE, DKH, /* dK */
    VP, VPG, DVI, DVG, DVS,                  /* dV */
    E, PE, TE, TX,
    DA,    /* gradient of the log decay, natural log [T] */
    DLI,   /* gradient of the log input gate, natural log [T] */
    SCALAR_TILES, /* the variant's own begin here: at most 8 */

    /* What a variant makes of the gradients of its gates, as far as it has so many */
    DGATE = SCALAR_TILES + 8, DGATE2,     /* gradients of inputs of a token [T] */
    DPARAMETER, DPARAMETER2, DPARAMETER3, /* gradients of parameters of the head [], of sums over its chunks */
    CHUNK_SUM, CHUNK_SUM2,                /* such sums [chunk] */
    SKIPPED,                              /* v.dh [T] */
    CHUNK_SUM3,

    QD = RE, KD = CE /* where a thread block has one head, and rows and columns of E come with rx and kx: q.dq and k.dk */
};

/* ---- schedules (scalar_schedules.c), for all that number their tiles like that -------------------- */

TG_API extern const tg_schedule *const tg_scalar_forward[];
/* Of the backward with the states of all chunks in memory, and of those without: all, where one body serves all of them; else
 * where a thread block has one head (ALONE in scalar_backward.inc), and where it may have several. */
TG_API extern const tg_schedule *const tg_scalar_backward[], *const tg_scalar_walked[], *const tg_scalar_alone[],
    *const tg_scalar_together[];
TG_API extern const tg_space *const tg_scalar_forward_spaces[], *const tg_scalar_backward_spaces[];
TG_API extern const tg_alias tg_scalar_names[], tg_scalar_normalised_names[];

/* ---- the oracle: the recurrence and its adjoint, token by token, in fp64 (scalar_oracle.c) ---------- */

/* One token of one head of one sequence, as indices into the variant's own tensors. */
struct scalar_token {
    int64_t sequence, head;
    int64_t gate; /* into a tensor [B, NH, T] */
};

enum scalar_normaliser {
    SCALAR_PLAIN,
    SCALAR_NORMALISED,     /* by max(|q.n|, 1) */
    SCALAR_MAX_NORMALISED, /* by max(|q.n|, e^-m), states scaled by e^-m */
};

struct scalar_oracle {
    /* Natural logs of decay and input gate of a token. */
    void (*gate)(const tg_oracle_call *call, struct scalar_token at, double *a, double *li);
    /* Adds what a token's da and dli give to the gradients of the variant's inputs. */
    void (*gate_back)(const tg_oracle_call *call, struct scalar_token at, double da, double dli);
    enum scalar_normaliser normaliser;
    int eps, exact; /* numbers of these scalars, 0: eps = 0, exact gradient */
    int skip, d_skip; /* tiles of D [NH] (h += D v) and of its gradient; 0: none */
};
/* Either walks all sequences and heads of the call, whatever the normaliser, group and cuts. An absent (NULL) output
 * is skipped, an absent state or gradient that arrives is 0. Without memory for its states it writes nothing. The
 * variant's wrapper zeroes what gate_back adds to; the oracle writes or zeroes all the rest. */
void tg_scalar_oracle(const tg_oracle_call *call, const struct scalar_oracle *how);
void tg_scalar_oracle_backward(const tg_oracle_call *call, const struct scalar_oracle *how);
void tg_oracle_zero(double *x, int64_t n); /* x: may be NULL */

#endif
