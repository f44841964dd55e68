/* variants/mlstm_sig.h - the tiles of mlstm-sig by name, for whoever writes a schedule for it. */
#ifndef TEGULA_MLSTM_SIG_H
#define TEGULA_MLSTM_SIG_H

enum {
    Q = 1, /* queries [T, dqk] */
    K,     /* keys [T, dqk] */
    V,     /* values [T, dhv] */
    F,     /* forget gate pre-activation [T] */
    I,     /* input gate pre-activation [T] */
    S0,    /* initial state [dqk, dhv] */
    H,     /* output [T, dhv] */
    S,     /* final state [dqk, dhv] */
    A,     /* log2 of the forget gate [T] */
    LI,    /* log2 of the input gate [T] */
    B,     /* prefix sum of A inside the chunk [T] */
    G,     /* sum of A over the chunk [chunk] */
    W,     /* weight of a token in the state that leaves its chunk [T] */
    KW,    /* weighted keys [T, dqk] */
    C,     /* state that arrives at a chunk [chunk, dqk, dhv] */
    INTER, /* q C [T, dhv] */
    GATED, /* the same, decayed from the start of the chunk [T, dhv] */
    QK,    /* q k^T inside the chunk [Lhq, Lkv] */
    P,     /* the same, gated and masked [Lhq, Lkv] */
    SUM,   /* output before the scale [T, dhv] */
    N_MLSTM_SIG_TILES
};

#endif
