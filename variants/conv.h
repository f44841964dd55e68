/* variants/conv.h - the causal convolution of width 4 along the tokens, each channel by itself, and SiLU: what models have
 * before q, k and v.
 *
 *     y_t = sum over n < 4 of wn x_{t-n}  (+ bias)        h_t = y_t sigmoid(y_t)
 *
 * Channels are dhv of a head, so a model's width is NH x dhv, and [B, T, width] in memory is [B, T, NH, dhv]. w0 is the weight
 * of the token itself, the last of a kernel as PyTorch has it. The state is the last three tokens, s1 the last one: in as
 * s10, s20, s30. */
#ifndef TEGULA_CONV_H
#define TEGULA_CONV_H

#include "variants.h"

enum { CONV_WIDTH = 4, CONV_STATE = CONV_WIDTH - 1 };

enum {
    /* the caller's tensors */
    X = 1,            /* [T, dhv] */
    W0, W1, W2, W3,   /* weights [dhv] */
    BIAS,             /* [dhv] */
    S10, S20, S30,    /* initial state: tokens -1, -2, -3 [dhv] */
    H,                /* [T, dhv] */
    S1, S2, S3,       /* final state: the last token, the one before, ... [dhv] */
    DH, DS1, DS2, DS3, /* gradients that arrive for H and the final state */
    DX, DW0, DW1, DW2, DW3, DBIAS, DS10, DS20, DS30,

    X1, X2, X3,       /* x of the tokens before [T, dhv] */
    NEAR, FAR, Y,     /* w0 x + w1 x1, w2 x2 + w3 x3, and their sum with the bias [T, dhv] */
    GATE,             /* sigmoid(y) [T, dhv] */
    SLOPE,            /* derivative of y sigmoid(y) [T, dhv] */
    DY, D1, D2, D3,   /* gradient of y, and that of the tokens behind [T, dhv] */
    FIRST1, FIRST2, FIRST3, /* gradient of y of the first tokens [dhv] */
    DNEAR, DFAR,
    E1, E2, E3,       /* what the gradients of the final state are of these tokens [T, dhv] */
    BEFORE1, BEFORE2, BEFORE3, /* what of them is of tokens before the first [dhv] */
    C0, C1, C2, C3, CB,        /* gradients of the weights over a chunk [chunk, dhv] */
    CONV_TILES
};

TG_API extern const tg_schedule *const tg_conv_forward[], *const tg_conv_backward[]; /* conv_schedules.c */
TG_API extern const tg_space *const tg_conv_forward_spaces[], *const tg_conv_backward_spaces[];

/* The same in fp64 (conv_oracle.c). The bias is 0 where the call has none, an absent state or gradient that arrives is 0, an
 * absent (NULL) output is skipped. */
void tg_conv_oracle(const tg_oracle_call *call);
void tg_conv_oracle_backward(const tg_oracle_call *call);

#endif
