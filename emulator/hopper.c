/* hopper.c - the asynchronous side of a CTA: made, reset, ended. */
#include "hopper.h"

#include <stdlib.h>

bool hopper_init(struct cta *c)
{
    if (!c->kernel->is_async)
        return true;
    struct hopper *h = c->hopper = calloc(1, sizeof *h);
    if (!h)
        return false;
    h->mbarrier_at = calloc(c->shared_bytes / 8 + 1, 1);
    h->readers = calloc(c->shared_bytes / ASYNC_UNIT + 1, sizeof *h->readers);
    return h->mbarrier_at && h->readers && wgmma_init(c);
}

void hopper_free(struct cta *c)
{
    struct hopper *h = c->hopper;
    if (!h)
        return;
    bulk_free(c);
    wgmma_free(c);
    free(h->mbarrier_at);
    free(h->readers);
    free(h);
}

void hopper_reset(struct cta *c)
{
    struct hopper *h = c->hopper;
    if (!h)
        return;
    memset(h->mbarriers, 0, h->n_mbarriers * sizeof *h->mbarriers);
    memset(h->mbarrier_at, 0, c->shared_bytes / 8 + 1);
    memset(h->readers, 0, (c->shared_bytes / ASYNC_UNIT + 1) * sizeof *h->readers);
    memset(h->fences, 0, sizeof h->fences);
    bulk_reset(c);
    wgmma_reset(c);
    h->n_mbarriers = h->idle_polls = 0;
}

/* All warps have ended: nothing asynchronous may be left. */
void hopper_end(struct cta *c)
{
    wgmma_end(c);
    if (!c->report->is_set)
        bulk_end(c);
}
