/* variants/kda.h - the delta rule with a decay of a key dimension, in chunks as delta.h has it:
 *
 *     S' = diag(e^{g_t}) S_{t-1}      S_t = S' + beta_t k_t (v_t - S'^T k_t)^T      h_t = scale S_t^T q_t
 *
 * There the decay is inside of the sums of K K^T and Q K^T, and e^b and w are of Q and K. The core is kda.inc. A variant says where
 * its decay comes from; or it makes all of its operands in the kernel (kda_gate.inc), of rows x and parameters:
 *
 *     q, k = x / sqrt(|x|^2 + eps)      beta = beta_max sigmoid(x)      g: a function of x + dt_bias and e^{A_log} */
#ifndef TEGULA_KDA_H
#define TEGULA_KDA_H

#include "delta_oracle.h"

enum {
    /* cumulative logs in base 2, and the chunk's tiles */
    A = DELTA_CALLERS, B, GT,    /* log2 decay; its sum over the chunk up to a token, and over the chunk [T, dqk], [chunk, dqk] */
    KB, KE, QB,                  /* keys as the beginning of the chunk has them, times beta, and as its end has them; queries, scaled [T, dqk] */
    KK, LOWER, T_,               /* K K^T, decayed; L; T [T, Lkv] */
    QK, P,                       /* Q K^T, decayed, and scaled [T, Lkv] */
    X, R, N,                     /* KB S; beta V - X; the values that are written [T, dhv] */
    CK, INTER, SUM,              /* state that arrives at a chunk; what it gives; the output */
    TR,                          /* what a segment does to a state [chunk, dqk, dqk] */

    /* backward */
    DNI, DN, DR, DRW,            /* gradients of N, through the state and whole, and of R; weighted [T, dhv] */
    ADD_Q, ADD_K, DC, DTR,       /* what a chunk adds to the gradient of the state, that gradient, what a segment does to it */
    CQ, DCK,                     /* walks: the states and their gradients once more, for dQ and dK */
    SF, KDR, KNW, SQ, SR, SK, Y, ZK, YK, XL, /* ... and their way to XG: kda.inc */
    SE, YS,                      /* ... where sequences are cut: the states behind chunks; Y less YK [chunk, dqk] */
    DQI, DQG, DP, DQS, DQH, QDQ, /* dQ; q o dq [T, dqk] */
    GI, GG, LP, LG, Z, KZ, RV, DKR, RDK, /* dK of a key as it is read, over beta; k.z, dr.v [T]; k o dk */
    DQM, DKM,                    /* what a head gives dQ and dK, for the sum over heads [T, dqk] */
    NI, NG, QS, BK, QRK, NR, KP, KPG, KS, KL, KLG, DKW, WDK, RK, DKH, /* dK of a key as it is written; k o dk, and what of it comes from behind */
    XC, XG, E, PE, TE, TX, DA,       /* the gradient of the log decay, natural log [T, dqk] */

    G, /* log decay, where it is given [T, dqk] */
    KDA_TILES
};

enum {
    QQ = KDA_TILES, K2, QR, KR, /* |x|^2 of q and k; what they are normalised by [T] */
    SHIFTED, RATE,  /* x + dt_bias [T, dqk]; e^A_log [NH] */
    QY, KY,         /* q.dq and k.dk of normalised rows [T] */
    DSHIFTED,       /* gradient of SHIFTED [T, dqk] */
    SLOPE,          /* derivative of the log decay by SHIFTED [T, dqk] */
    DRATE,          /* what a token adds to the gradient of A_log [T, dqk] */
    SUM_BIAS, SUM_RATE, SUM_CHUNK, /* of the chunk [chunk, dqk], [chunk, dqk], [chunk] */
};

TG_API extern const tg_space *const tg_kda_forward_spaces[], *const tg_kda_backward_spaces[];
TG_API extern const tg_schedule *const tg_kda_forward[], *const tg_kda_backward[], *const tg_kda_at_once[],
    *const tg_kda_cut[]; /* kda_schedules.c */
TG_API extern const tg_alias tg_kda_forward_names[], tg_kda_backward_names[]; /* names that points had before */

#endif
