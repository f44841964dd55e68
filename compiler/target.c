/* compiler/target.c - the GPUs that the compiler knows, as values: compiling needs none of them.
 * Limits are the architecture's (CUDA programming guide, table of compute capabilities). Bandwidth and
 * matrix rates are for the cost model only; those of the H200 were measured (bench/NOTES.md), the others
 * are data-sheet numbers scaled by the H200's measured fraction of its data sheet. */
#include "compiler/compiler.h"

#include <string.h>

static const tg_target sm_80 = {"sm_80", 80, 0, 70, 166912, 167936, 65536, 108, 1.8e12, 0.24e15, 0, "A100"};
static const tg_target sm_86 = {"sm_86", 86, 0, 71, 101376, 102400, 65536, 82, 0.83e12, 0.06e15, 0, "RTX 3090"};
static const tg_target sm_89 = {"sm_89", 89, 0, 78, 101376, 102400, 65536, 128, 0.9e12, 0.13e15, 0, "RTX 4090"};
static const tg_target sm_90a = {"sm_90a", 90, 1, 80, 232448, 233472, 65536, 132, 4.25e12, 0.42e15, 0.81e15, "H200"};
static const tg_target sm_100a = {"sm_100a", 100, 1, 86, 232448, 233472, 65536, 148, 7.0e12, 0.5e15, 0, "B200"};
static const tg_target sm_120a = {"sm_120a", 120, 1, 87, 101376, 102400, 65536, 170, 1.6e12, 0.17e15, 0, "RTX 5090"};

static const tg_target *const all[] = {&sm_80, &sm_86, &sm_89, &sm_90a, &sm_100a, &sm_120a, NULL};

const tg_target *const *tg_targets(void)
{
    return all;
}

const tg_target *tg_target_find(const char *arch)
{
    for (const tg_target *const *t = all; *t; t++)
        if (strcmp((*t)->arch, arch) == 0)
            return *t;
    return NULL;
}

/* The newest one that the GPU can run: its own, or a portable one of an older generation. */
const tg_target *tg_target_for_cc(int cc)
{
    const tg_target *best = NULL;
    for (const tg_target *const *t = all; *t; t++)
        if ((*t)->cc == cc || ((*t)->cc < cc && !(*t)->exact))
            best = *t;
    return best;
}
