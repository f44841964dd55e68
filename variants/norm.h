/* variants/norm.h - root-mean-square norms of what a head's tokens have along dhv, with what models put around them:
 *
 *     h_t = w o x_t / sqrt(mean(x_t^2) + eps)  o act(z_t)
 *
 * with learned weights w or without (SRMSNorm), and behind it an output gate or none: SiLU, z sigmoid(z), or sigmoid(z). Heads of
 * a group share their weights. Or the mean is over all heads of a group, which then have weights of their own: over all of a
 * model's width, [B, T, width] as [B, T, NH, dhv], or over a part of it. No products: bound by the bytes; over a head one pass
 * over memory forward and one backward, over a group one more, for it has no more than a head in a thread block. */
#ifndef TEGULA_NORM_H
#define TEGULA_NORM_H

#include "variants.h"

#include <stdbool.h>

enum {
    /* the caller's tensors */
    X = 1,      /* what is normalised [T, dhv] */
    Z,          /* gate pre-activations [T, dhv] */
    WEIGHT,     /* [dhv], of a group */
    H,          /* [T, dhv] */
    DH, DX, DZ, /* gradients of H, X and Z */
    DWEIGHT,    /* [dhv], of a group */

    SQUARES, /* |x|^2 [T] */
    R,       /* 1 / sqrt(mean + eps) [T] */
    UNIT,    /* x R [T, dhv] */
    Y,       /* the same times w [T, dhv] */
    GATE,    /* sigmoid(z) [T, dhv] */
    SLOPE,   /* derivative of the gate's activation by z [T, dhv] */
    DY,      /* gradient of Y [T, dhv] */
    DUNIT,   /* gradient of UNIT [T, dhv] */
    ALONG,   /* unit.dunit [T] */
    ALL_SQUARES, ALL_ALONG, /* the same of all heads of a group [T] */
    OF_CHUNK, OF_HEAD, /* the gradient of w over the tokens of a chunk [chunk, dhv], and of a head [dhv] */
    NORM_TILES
};

enum { EPS = 1 }; /* scalar after the scale, which has no effect */

/* ---- schedules (norm_schedules.c) ---- */

TG_API extern const tg_schedule *const tg_norm_forward[], *const tg_norm_backward[], *const tg_norm_group_forward[],
    *const tg_norm_group_backward[];
TG_API extern const tg_space *const tg_norm_forward_spaces[], *const tg_norm_backward_spaces[], *const tg_norm_group_forward_spaces[],
    *const tg_norm_group_backward_spaces[];
TG_API extern const tg_alias tg_norm_names[];

/* ---- the same in fp64 (norm_oracle.c) ---- */

enum norm_gate { NORM_NO_GATE, NORM_SILU, NORM_SIGMOID };

/* Weights are 1 where the call has none. An absent (NULL) output is skipped. */
void tg_norm_oracle(const tg_oracle_call *call, enum norm_gate gate, bool over_group);
void tg_norm_oracle_backward(const tg_oracle_call *call, enum norm_gate gate, bool over_group);

#endif
