/* variants/oracle_head.h - where a head of a sequence lies in the tensors of an oracle's call, packed sequences or not. */
#ifndef TEGULA_ORACLE_HEAD_H
#define TEGULA_ORACLE_HEAD_H

#include "../dsl/tegula.h"

struct oracle_head {
    int64_t sequence, head;
    int64_t state;  /* index of its states, [B, NH, ...] */
    int64_t tokens; /* of the sequence */
    int64_t first;  /* row of its first token in a tensor [B, NH, T, ...] */
    int64_t shared; /* and in one [B, NH / group, T, ...] */
};

/* The head of the number `state`, of batch x heads. */
static inline struct oracle_head oracle_head(const tg_oracle_call *c, int64_t state)
{
    const int64_t sequence = state / c->heads, head = state % c->heads;
    const int64_t batch = c->cuts ? 0 : sequence, from = c->cuts ? c->cuts[sequence] : 0;
    return (struct oracle_head){
        .sequence = sequence,
        .head = head,
        .state = state,
        .tokens = c->cuts ? c->cuts[sequence + 1] - from : c->tokens,
        .first = (batch * c->heads + head) * c->tokens + from,
        .shared = (batch * (c->heads / c->group) + head / c->group) * c->tokens + from,
    };
}

/* Tokens of the longest sequence. */
static inline int64_t oracle_longest(const tg_oracle_call *c)
{
    int64_t most = c->cuts ? 0 : c->tokens;
    for (int64_t s = 0; c->cuts && s < c->batch; s++)
        most = c->cuts[s + 1] - c->cuts[s] > most ? c->cuts[s + 1] - c->cuts[s] : most;
    return most;
}

#endif
