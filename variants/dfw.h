/* variants/dfw.h - a state that decays by rows and by columns (ULA's decoupled forget weights):
 *
 *     S_t = diag(e^{gl_t}) S_{t-1} diag(e^{gr_t}) + k_t v_t^T        h_t = scale S_t^T q_t        gl, gr <= 0
 *
 * In a chunk both decays are between two positions: that of dqk inside of the sum q.k ("pair"), that of dhv beside what it weights
 * ("spread"). At its ends they are of the operands: KE, QB, VE, DHB, which are written once, in the input type. */
#ifndef TEGULA_DFW_H
#define TEGULA_DFW_H

#include "variants.h"

#define LOG2_E 1.44269504f

enum {
    /* the caller's tensors */
    Q = 1, K, V, S0, H, S, DH, DS, DQ, DK, DV, DS0,
    GL, GR, DGL, DGR, /* log decays of rows [T, dqk] and of columns [T, dhv], and their gradients */

    /* left and right: cumulative logs in base 2 */
    AL, BL, GTL, /* log2 decay, its sum up to a token, and over the chunk [T, dqk], [chunk, dqk] */
    AR, BR, GTR, /* [T, dhv], [chunk, dhv] */
    G,           /* of an element of the state over the chunk [chunk, dqk, dhv] */

    WR,     /* 2^br: weight of the state that arrives at the chunk in a token's columns [T, dhv] */
    KE, VE, /* keys and values as the end of the chunk has them */
    QS, QB, /* queries, scaled; as the beginning of the chunk has them */
    CK, INTER, P, OWN, SUM,

    /* backward */
    DHB, DC,                 /* dh as the beginning of the chunk has it; gradient of the state after the chunk */
    DQI, DQG, DP, DQS, DQH,  /* dQ */
    DKI, DKG, KP, DKS, DKH,  /* dK */
    DVI, DVG, VQ, VP, DVS,   /* dV; VQ is QS once more, in the loop of VP */
    QDQ, KDK, RK,            /* q o dq, k o dk, and what of it comes from behind the chunk [T, dqk] */
    HDH, VDV, RV,            /* h o dh, v o dv, the same [T, dhv] */
    LEAVES, XL, XR,          /* what is left of the state at the end of the chunk; its product with DC: rows', columns' sums */
    EL, PEL, TEL, TRL, /* as in vector.inc */
    ER, PER, TER, TRR,
    DFW_TILES
};

TG_API extern const tg_schedule *const tg_dfw_forward[], *const tg_dfw_backward[]; /* dfw_schedules.c */

/* The recurrence and its adjoint, token by token, in fp64 (dfw_oracle.c). */
void tg_dfw_oracle(const tg_oracle_call *call);
void tg_dfw_oracle_backward(const tg_oracle_call *call);

#endif
