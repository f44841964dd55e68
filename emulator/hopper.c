/* hopper.c - the asynchronous side of a CTA: made, reset, ended. */
#include "hopper.h"

#include <stdlib.h>
#include <string.h>

bool hopper_init(struct cta *c)
{
    if (!c->kernel->is_async)
        return true;
    struct hopper *h = c->hopper = calloc(1, sizeof *h);
    if (!h)
        return false;
    h->mbarrier_at = calloc(c->shared_bytes / 8 + 1, 1);
    h->readers = calloc(c->shared_bytes / ASYNC_UNIT + 1, sizeof *h->readers);
    h->clocks = calloc((size_t)MAX_MBARRIERS * 4 * c->n_agents, sizeof *h->clocks);
    for (u32 i = 0; i < MAX_MBARRIERS && h->clocks; i++)
        h->mbarriers[i].joined[0] = h->clocks + (size_t)i * 4 * c->n_agents;
    h->fenced = calloc((size_t)MAX_WARPS * 2 * c->n_agents, sizeof *h->fenced);
    return h->mbarrier_at && h->readers && h->clocks && h->fenced && wgmma_init(c);
}

void hopper_free(struct cta *c)
{
    struct hopper *h = c->hopper;
    if (!h)
        return;
    bulk_free(c);
    wgmma_free(c);
    free(h->mbarrier_at);
    free(h->clocks);
    free(h->fenced);
    free(h->readers);
    free(h);
}

void hopper_reset(struct cta *c)
{
    struct hopper *h = c->hopper;
    if (!h)
        return;
    mbarriers_reset(c);
    memset(h->readers, 0, (c->shared_bytes / ASYNC_UNIT + 1) * sizeof *h->readers);
    memset(h->fences, 0, sizeof h->fences);
    memset(h->fenced, 0, (size_t)MAX_WARPS * 2 * c->n_agents * sizeof *h->fenced);
    memset(h->fine, 0, sizeof h->fine);
    bulk_reset(c);
    wgmma_reset(c);
}

/* All the CTA's warps have ended: nothing asynchronous may be left. */
void hopper_end(struct cta *c)
{
    wgmma_end(c);
    if (!c->report->is_set)
        bulk_end(c);
}
