/* hopper.c - the asynchronous side of a CTA: made, reset, ended. */
#include "hopper.h"

#include <stdlib.h>

bool hopper_init(struct cta *c)
{
    if (!c->kernel->is_async)
        return true;
    struct hopper *h = c->hopper = calloc(1, sizeof *h);
    if (h)
        h->mbarrier_at = calloc(c->shared_bytes / 8 + 1, 1);
    return h && h->mbarrier_at;
}

void hopper_free(struct cta *c)
{
    struct hopper *h = c->hopper;
    if (!h)
        return;
    free(h->mbarrier_at);
    free(h);
}

void hopper_reset(struct cta *c)
{
    struct hopper *h = c->hopper;
    if (!h)
        return;
    memset(h->mbarriers, 0, h->n_mbarriers * sizeof *h->mbarriers);
    memset(h->mbarrier_at, 0, c->shared_bytes / 8 + 1);
    h->n_mbarriers = h->idle_polls = 0;
}
