/* variants/delta.h - the delta rule with a scalar decay: DeltaNet and Gated DeltaNet.
 *
 *     u_t = v_t - e^{a_t} S_{t-1}^T k_t        S_t = e^{a_t} S_{t-1} + k_t (beta_t u_t)^T        h_t = scale S_t^T q_t
 *
 * In chunks, with b the sum of a in the chunk up to a token, in the T form:
 *
 *     L = beta_i (K K^T)_ij e^{b_i - b_j} below the diagonal        T = (I + L)^-1
 *     N = T (beta o (V - e^b K S))        H = scale (e^b Q S + P N), P = (Q K^T)_ij e^{b_i - b_j}        S' = e^g S + K^T (w N)
 *
 * T depends on the chunk alone. With N known the rest is linear attention whose values are N; backwards, N and dR = T^T dN
 * take the places of V and dV, and (K, -beta dR) is a second stream of queries beside (Q, dH).
 *
 * The core is delta.inc; a variant is a file that says where its operands and its log decay come from, and where their gradients
 * go (delta_operands.inc). */
#ifndef TEGULA_DELTA_H
#define TEGULA_DELTA_H

#include "delta_oracle.h"

enum {
    /* gates, cumulative logs in base 2 */
    A = DELTA_CALLERS, /* log2 decay [T]; the variant's */
    B,  /* sum of A over the chunk up to and with the token [T] */
    GT, /* sum of A over the chunk [chunk] */
    WI, /* 2^b: weight of the state that arrives at the chunk in a token's row [T] */
    W,  /* 2^(gt - b): weight of a token in the state that leaves its chunk [T] */

    /* forward */
    KK, LOWER, T_, /* K K^T; L; T [T, Lkv] */
    X, R, N, NW,   /* K S; beta (V - e^b X); the values that are written; the same, weighted [T, dhv] */
    CK,            /* state that arrives at a chunk [chunk, dqk, dhv] */
    TR,            /* what a segment does to it [chunk, dqk, dqk] */
    INTER, GATED, QK, P, SUM,

    /* backward */
    VP, PT,                  /* K Q^T; scale P, in memory [T, Lkv], or for walks on chip [Lkv, Lhq] */
    DNI, DNG, DN, DR,        /* gradients of N (through the state, weighted, whole) and of R [T, dhv] */
    QSC,                     /* scale q, where there is no decay [T, dqk] */
    DHW, DRW, ADD_Q, ADD_K, DC, DTR, /* what a chunk adds to the gradient of the state, that gradient, what a segment does to it */
    DQI, DQG, DP, DPG, DQS, DQH, QD, /* dQ; q.dq */
    BL, BN, RB,                      /* is beta large; beta if it is, else 1; beta over that [T] */
    GI, LP, RV, GB, LGB, Z, ZD, DKR, /* dK of a key as it is read, with BN for beta, and k by it; dr.v; as it is */
    NI, NG, KP, KPG, KS, KL, KLG, KLS, DKW, KX, KD, DKH, /* dK of a key as it is written; k by its part through the state, k by it */
    XI, XC, E, PE, TE, /* <C, dC>, decayed; rows less columns of E */
    CQ, DCK,                   /* walks: the states and their gradients once more, for dQ and dK */
    SF, KNW, SR, SK, Y, ZK, PZ, /* the walks' way to it: delta.inc */
    SE, YS,                     /* ... where the values' walks are cut: the states behind chunks; Y less PZ [chunk] */
    DA,                      /* gradient of the log decay, natural log [T] */

    LOG_A, /* log decay, natural log, where it is given [T] */

    /* operands made in the kernel */
    QQ, K2, QR, KR,      /* |x|^2 of q and k; what they are divided by [T] */
    QY, KY,              /* q.dq and k.dk of unit rows [T] */
    SHIFTED, RATE,       /* x + dt_bias [T]; e^A_log [NH] */
    DRATE,               /* what a token adds to the gradient of A_log [T] */
    SUM_BIAS, SUM_RATE,  /* of the chunk [chunk] */
    DELTA_TILES /* the variant's own begin here */
};

/* ---- schedules (delta_schedules.c), for all that number their tiles like that --------------------- */

/* Of the forward, of the backward with the states of all chunks in memory, and of the one without, by whole rows of the state or by
 * parts. */
TG_API extern const tg_alias tg_delta_names[]; /* names that points had before */
TG_API extern const tg_schedule *const tg_delta_forward[], *const tg_delta_backward[], *const tg_delta_walked[], *const tg_delta_cut[],
    *const tg_delta_grouped[], *const tg_delta_cut_keys[], *const tg_delta_parted[], *const tg_delta_cut_parts[];
TG_API extern const tg_space *const tg_delta_forward_spaces[], *const tg_delta_backward_spaces[];

#endif
