/* variants/nla.h - normalised linear attention, f(x) = a + b x:
 *
 *     o_i = sum over n of (a + b q_i.k_n) v_n / sum over n of (a + b q_i.k_n),      n <= i, or all n
 *
 * with q and k normalised row by row, x / sqrt(|x|^2 + eps), and a and b learned, one pair a head. The state is
 * C = sum k v^T, n = sum k, sv = sum v and c, how many tokens there were.
 *
 * Rows of q and k are never normalised in memory: their factors rq and rk scale what the products give. */
#ifndef TEGULA_NLA_H
#define TEGULA_NLA_H

#include "variants.h"

#include <stdbool.h>

enum {
    /* the caller's tensors */
    Q = 1,            /* queries [T, dqk] */
    K,                /* keys [T, dqk] */
    V,                /* values [T, dhv] */
    PA,               /* a [NH] */
    PB,               /* b [NH] */
    C0, N0, SV0, CNT0, /* initial state; c0 without it: 0 */
    H,                /* output [T, dhv] */
    C, N, SV, CNT,    /* final state */
    DEN,              /* the denominator [T] */
    DH, DC, DN, DSV,  /* gradients that arrive for H, C, N and SV */
    DQ, DK, DV, DA, DB, DC0, DN0, DSV0,

    /* row norms and counts */
    QQ, KK, /* |q|^2, |k|^2 [T] */
    RQ, RK, /* what normalises a row [T] */
    ONE,    /* 1 [T] */
    LEN,    /* tokens of the chunk [chunk] */
    BEFORE, /* tokens of the call before the chunk, or all of them [chunk] or [] */
    SEEN,   /* the same and those behind the initial state */
    ALL,    /* tokens of the call [] */

    /* states that arrive at a chunk */
    KN,     /* normalised keys [T, dqk] */
    CK,     /* [chunk, dqk, dhv] */
    NK, NS, /* what a chunk adds, and what arrives [chunk, dqk] */
    VK, VS, /* the same of sv [chunk, dhv] */

    /* forward */
    INTER, /* q C [T, dhv] */
    GATED, /* b rq INTER + a sv [T, dhv] */
    QK,    /* q k^T [Lhq, Lkv] */
    P,     /* a + b q.k, masked [Lhq, Lkv] */
    SUM,   /* the numerator [T, dhv] */
    QN,    /* q.n [T] */
    RS,    /* row sums of P [T] */

    /* backward */
    OD,     /* o.do, of h as it is in memory [T] */
    INSIDE, /* tokens of the chunk up to and with this one [T] */
    READS,  /* tokens that this one reads [T] */
    RI,     /* 1 / denominator [T] */
    QW, ZW, NW, /* weights: of q in dC, b rq / denominator; of do in dsv, a / denominator; of q in dn [T] */
    QB,     /* weighted queries [T, dqk] */
    DCK,    /* gradient of C after a chunk [chunk, dqk, dhv] */
    DNK, DNS, DVK, DVSS, /* of n and sv, as forward */
    DQI,    /* do C^T [T, dqk] */
    DP,     /* do v^T [Lhq, Lkv] */
    DPM,    /* masked */
    DPG,    /* less o.do, weighted */
    DPK,    /* weighted by rk, masked */
    RKM,    /* rk, masked [Lhq, Lkv] */
    OS, DPS, XA, /* do.sv before the chunk, inside of it, and both [T] */
    XI, XE, XB,  /* the same of do.(C q); XB is weighted by rq */
    QE,     /* q.n inside of the chunk; QN: before it [T] */
    DQG, DQS, TOOK, DQH, /* dQ; what its norm takes off [T] */
    ODX,    /* o.do, exact [T] */
    DAT, DBT, SUM_A, SUM_B, /* parts of da and db [T], [chunk] */
    KP, KPG, DKI, DKG, DKS, KD, DKH, /* dK; KD: k.dks [T] */
    VP, VPG, DVI, DVG, DVS,          /* dV */
    NLA_TILES
};

enum { EPS = 1, COUNT0 }; /* scalars after the scale */

/* ---- schedules (nla_schedules.c), causal and not ---- */

TG_API extern const tg_schedule *const tg_nla_forward[], *const tg_nla_backward[];
TG_API extern const tg_schedule *const tg_nla_full_forward[], *const tg_nla_full_backward[];
TG_API extern const tg_space *const tg_nla_forward_spaces[], *const tg_nla_backward_spaces[];
TG_API extern const tg_space *const tg_nla_full_forward_spaces[], *const tg_nla_full_backward_spaces[];

/* The recurrence, token by token, in fp64, and its adjoint. An absent (NULL) output is skipped, an absent state or
 * gradient that arrives is 0. Without memory nothing is written. */
void tg_nla_oracle(const tg_oracle_call *call, bool is_causal);
void tg_nla_oracle_backward(const tg_oracle_call *call, bool is_causal);

#endif
