/* compiler/target.c - the GPUs that the compiler knows, as values: compiling needs none of them.
 * Limits are the architecture's (CUDA programming guide, table of compute capabilities). Bandwidth and
 * matrix rates are for the cost model only; those of the H200, and the bandwidth of the H100, were measured (bench/NOTES.md), the others
 * are data-sheet numbers scaled by the H200's measured fraction of its data sheet. Of a GPU that is there the driver knows
 * its multiprocessors and its memory: then these are its own. */
#include "compiler/compiler.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const tg_target sm_80 = {"sm_80", 80, 0, 70, 166912, 167936, 65536, 108, 1.8e12, 0.24e15, 0, "A100"};
static const tg_target sm_86 = {"sm_86", 86, 0, 71, 101376, 102400, 65536, 82, 0.83e12, 0.06e15, 0, "RTX 3090"};
static const tg_target sm_89 = {"sm_89", 89, 0, 78, 101376, 102400, 65536, 128, 0.9e12, 0.13e15, 0, "RTX 4090"};
static const tg_target sm_90a = {"sm_90a", 90, 1, 80, 232448, 233472, 65536, 132, 4.25e12, 0.42e15, 0.81e15, "H200"};
static const tg_target sm_100a = {"sm_100a", 100, 1, 86, 232448, 233472, 65536, 148, 7.0e12, 0.5e15, 0, "B200"};
static const tg_target sm_120a = {"sm_120a", 120, 1, 87, 101376, 102400, 65536, 170, 1.6e12, 0.17e15, 0, "RTX 5090"};

static const tg_target h100 = {"sm_90a", 90, 1, 80, 232448, 233472, 65536, 132, 2.95e12, 0.42e15, 0.81e15, "H100"};
static const tg_target h20 = {"sm_90a", 90, 1, 80, 232448, 233472, 65536, 78, 3.5e12, 0.063e15, 0.12e15, "H20"};

static const tg_target *const all[] = {&sm_80, &sm_86, &sm_89, &sm_90a, &sm_100a, &sm_120a, NULL};
static const tg_target *const gpus[] = {&sm_80, &sm_86, &sm_89, &sm_90a, &h100, &h20, &sm_100a, &sm_120a, NULL};

const tg_target *const *tg_targets(void)
{
    return all;
}

const tg_target *const *tg_gpus(void)
{
    return gpus;
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

/* ---- of a GPU that is there ---- */

static const double copy_fraction = 0.87;   /* of what clock and bus give: H200 0.864, H100 0.880 (bench/NOTES.md) */
static const double least_bandwidth = 1e10; /* less is no GPU's: the driver does not say, or is the emulator */
static const double same = 0.03;            /* GPUs that differ by less are alike */

/* What has been made of a target for a GPU that is not in the table; never freed, for there are few. */
struct own {
    tg_target target;
    char name[64];
    struct own *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct own *owns;

/* "H20" is in "NVIDIA H20-3e", and not in "NVIDIA H200". */
static bool is_named(const char *device, const char *gpu)
{
    const char *at = strstr(device, gpu);
    return at && !isalnum((unsigned char)at[strlen(gpu)]);
}

static const tg_target *find_own(const tg_target *like, const char *name, uint32_t sms, double bandwidth)
{
    for (const struct own *o = owns; o; o = o->next)
        if (strcmp(o->target.arch, like->arch) == 0 && strcmp(o->name, name) == 0 && o->target.sms == sms &&
            fabs(o->target.bandwidth - bandwidth) < 1)
            return &o->target;
    return NULL;
}

static const tg_target *add_own(const tg_target *like, const char *name, uint32_t sms, double bandwidth)
{
    struct own *o = calloc(1, sizeof *o);
    if (!o)
        return like;
    strncpy(o->name, name, sizeof o->name - 1);
    o->target = *like;
    o->target.gpu = o->name;
    o->target.bandwidth = bandwidth;
    o->target.matrix_flops *= (double)sms / like->sms;
    o->target.wgmma_flops *= (double)sms / like->sms;
    o->target.sms = sms;
    o->next = owns;
    owns = o;
    return &o->target;
}

const tg_target *tg_target_for_gpu(int cc, const char *name, int sms, int memory_clock_khz, int memory_bus_bits)
{
    const tg_target *like = tg_target_for_cc(cc);
    const double bandwidth = copy_fraction * 2e3 * memory_clock_khz * memory_bus_bits / 8; /* two transfers a cycle */
    if (!like || !name || sms < 1 || bandwidth < least_bandwidth)
        return like;
    for (const tg_target *const *t = gpus; *t; t++)
        if (strcmp((*t)->arch, like->arch) == 0 && is_named(name, (*t)->gpu))
            like = *t;
    if (is_named(name, like->gpu) && (int)like->sms == sms && fabs(bandwidth / like->bandwidth - 1) < same)
        return like;
    pthread_mutex_lock(&lock);
    const tg_target *own = find_own(like, name, (uint32_t)sms, bandwidth);
    own = own ? own : add_own(like, name, (uint32_t)sms, bandwidth);
    pthread_mutex_unlock(&lock);
    return own;
}
