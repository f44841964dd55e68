/* torch/plans.h - what calls that are alike come to, by what they are like. From any thread. */
#ifndef TEGULA_TORCH_PLANS_H
#define TEGULA_TORCH_PLANS_H

#include "torch/torch.h"

#include <stdbool.h>

enum { PLAN_KEY_WORDS = 8 + TG_MAX_SCALARS + TG_TORCH_OPTIONS + 2 * TG_TORCH_TENSORS * (3 + 2 * TG_TORCH_RANK) };

struct plan_key {
    uint32_t n;
    int64_t words[PLAN_KEY_WORDS];
};

/* A copy into `plan`, as far as it is used. */
bool plans_find(const struct plan_key *key, tg_torch_plan *plan);
/* Remembers it; of no use if there is no memory. */
void plans_add(const struct plan_key *key, const tg_torch_plan *plan);
uint32_t plans_count(void);
void plans_forget(void);

#endif
