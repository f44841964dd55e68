/* launch.c - a grid: its CTAs in order, taken by as many threads as there are cores.
 *
 * A CTA's run depends on the seed and its index alone, so the number of threads changes nothing; of
 * several faults the one of the lowest CTA is reported. But a CTA that reads what nothing has
 * written may be early in a race with one that writes it: it stops, the others go on, and a race
 * between CTAs is what is reported if they find one. Each thread keeps one CTA's worth of
 * registers, shared memory and shadow. */
#include "hopper.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct team {
    const struct launch *launch;
    pthread_mutex_t lock; /* guards what follows */
    u64 next, stop_at;    /* CTAs from stop_at on need not run: one before has failed */
    struct report *report;
    u64 unwritten_at; /* the lowest CTA that read what nothing had written */
    struct report unwritten;
    struct tgemu_counters *counters;
    bool is_parallel;
    bool is_out_of_memory;
};

static u64 mix(u64 x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static u64 special_value(const struct cta *c, const struct warp *w, u32 special, u32 lane)
{
    const u32 *block = c->launch->block, *grid = c->launch->grid;
    const u32 t = w->id * LANES + lane;
    switch (special) {
    case SPECIAL_TID_X:
        return t % block[0];
    case SPECIAL_TID_Y:
        return t / block[0] % block[1];
    case SPECIAL_TID_Z:
        return t / block[0] / block[1];
    case SPECIAL_NTID_X:
    case SPECIAL_NTID_Y:
    case SPECIAL_NTID_Z:
        return block[special - SPECIAL_NTID_X];
    case SPECIAL_CTAID_X:
    case SPECIAL_CTAID_Y:
    case SPECIAL_CTAID_Z:
        return c->id[special - SPECIAL_CTAID_X];
    case SPECIAL_NCTAID_X:
    case SPECIAL_NCTAID_Y:
    case SPECIAL_NCTAID_Z:
        return grid[special - SPECIAL_NCTAID_X];
    case SPECIAL_CLUSTERID_X: /* clusters have one CTA */
    case SPECIAL_CLUSTERID_Y:
    case SPECIAL_CLUSTERID_Z:
        return c->id[special - SPECIAL_CLUSTERID_X];
    case SPECIAL_NCLUSTERID_X:
    case SPECIAL_NCLUSTERID_Y:
    case SPECIAL_NCLUSTERID_Z:
        return grid[special - SPECIAL_NCLUSTERID_X];
    case SPECIAL_CLUSTER_CTAID_X:
    case SPECIAL_CLUSTER_CTAID_Y:
    case SPECIAL_CLUSTER_CTAID_Z:
    case SPECIAL_CLUSTER_CTARANK:
        return 0;
    case SPECIAL_CLUSTER_NCTAID_X:
    case SPECIAL_CLUSTER_NCTAID_Y:
    case SPECIAL_CLUSTER_NCTAID_Z:
    case SPECIAL_CLUSTER_NCTARANK:
        return 1;
    case SPECIAL_LANEID:
        return lane;
    case SPECIAL_WARPID:
        return w->id;
    case SPECIAL_NWARPID:
        return c->n_warps;
    case SPECIAL_SMID:
        return c->index % (u64)c->launch->config->sm_count;
    case SPECIAL_NSMID:
        return (u64)c->launch->config->sm_count;
    case SPECIAL_LANEMASK_EQ:
        return 1u << lane;
    case SPECIAL_LANEMASK_LT:
        return (1u << lane) - 1;
    case SPECIAL_LANEMASK_LE:
        return (2u << lane) - 1;
    case SPECIAL_LANEMASK_GT:
        return ~((2u << lane) - 1);
    case SPECIAL_LANEMASK_GE:
        return ~((1u << lane) - 1);
    case SPECIAL_DYNAMIC_SMEM:
        return c->launch->dynamic_smem;
    default:
        return c->shared_bytes;
    }
}

static void fill_row(const struct cta *c, struct warp *w, const struct fixed_row *f)
{
    for (u32 l = 0; l < LANES; l++) {
        const u64 x = f->special ? special_value(c, w, f->special, l) : f->value;
        if (f->bits == 64)
            row64(w, f->row)[l] = x;
        else
            row32(w, f->row)[l] = (u32)x;
    }
}

/* Registers start as NaN, or -1: who reads one before writing it gets nothing sensible. */
static void warp_reset(struct cta *c, struct warp *w)
{
    const struct kernel *k = c->kernel;
    const u32 left = c->launch->n_threads - w->id * LANES;
    w->exists = left >= LANES ? FULL_MASK : (1u << left) - 1;
    memset(w->rows, 0xff, (size_t)k->n_rows * LANES * sizeof(u32));
    memset(w->preds, 0, k->n_preds * sizeof(u32));
    w->preds[PRED_TRUE] = FULL_MASK;
    for (u32 i = 0; i < k->n_fixed; i++)
        fill_row(c, w, &k->fixed[i]);
    if (k->local_bytes) {
        memset(w->local, 0xff, (size_t)k->local_bytes * LANES);
        memset(w->local_written, 0, (size_t)k->local_bytes * LANES);
    }
    w->pc = w->depth = w->exited = w->barrier = w->mbarrier = w->seen_all = 0;
    w->mask = w->exists;
    w->until = w->gave_up_at = NO_PC;
    w->is_done = w->is_blocked = false;
    async_reset(w);
}

static void cta_reset(struct cta *c, u64 index)
{
    const struct launch *l = c->launch;
    c->index = index;
    c->id[0] = (u32)(index % l->grid[0]);
    c->id[1] = (u32)(index / l->grid[0] % l->grid[1]);
    c->id[2] = (u32)(index / l->grid[0] / l->grid[1]);
    c->random = mix(mix(mix(l->config->seed) ^ l->serial) ^ index) | 1;
    c->steps = 0;
    c->patience = 0;
    c->report->is_set = false;
    shadow_reset(c);
    barriers_reset(c);
    hopper_reset(c);
    for (u32 i = 0; i < c->n_warps; i++)
        warp_reset(c, &c->warps[i]);
}

static void cta_free(struct cta *c)
{
    for (u32 i = 0; i < c->n_warps; i++) {
        struct warp *w = &c->warps[i];
        free(w->rows);
        free(w->preds);
        free(w->pending.list);
        free(w->local);
        free(w->local_written);
    }
    shadow_free(&c->shadow);
    hopper_free(c);
    free(c->shared);
    free(c->cached);
    free(c);
}

static bool warp_init(struct cta *c, u32 id)
{
    const struct kernel *k = c->kernel;
    struct warp *w = &c->warps[id];
    w->cta = c;
    w->kernel = k;
    w->id = id;
    w->rows = aligned_alloc(128, (size_t)k->n_rows * LANES * sizeof(u32));
    w->preds = calloc(k->n_preds, sizeof(u32));
    w->local = malloc((size_t)k->local_bytes * LANES + 1);
    w->local_written = malloc((size_t)k->local_bytes * LANES + 1);
    return w->rows && w->preds && w->local && w->local_written;
}

static struct cta *cta_new(const struct launch *l)
{
    struct cta *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->launch = l;
    c->kernel = l->kernel;
    c->n_warps = l->n_warps;
    c->n_agents = l->kernel->is_async ? MAX_AGENTS : l->n_warps;
    c->params = l->params;
    c->shared_bytes = l->kernel->dynamic_base + l->dynamic_smem;
    c->shared = malloc(c->shared_bytes + 16);
    c->cached = calloc(l->kernel->n_code, sizeof *c->cached);
    bool ok = c->shared && c->cached && shadow_init(c) && hopper_init(c);
    for (u32 i = 0; i < c->n_warps; i++)
        ok &= warp_init(c, i);
    if (ok)
        return c;
    cta_free(c);
    return NULL;
}

void counters_add(struct tgemu_counters *sum, const struct tgemu_counters *x)
{
    sum->launches += x->launches;
    sum->instructions += x->instructions;
    sum->lane_instructions += x->lane_instructions;
    sum->global_load_bytes += x->global_load_bytes;
    sum->global_store_bytes += x->global_store_bytes;
    sum->shared_wavefronts += x->shared_wavefronts;
    sum->bank_conflicts += x->bank_conflicts;
    sum->mma += x->mma;
    sum->barriers += x->barriers;
    sum->cp_async_bytes += x->cp_async_bytes;
    sum->bulk_bytes += x->bulk_bytes;
    sum->wgmma += x->wgmma;
}

static bool take(struct team *t, u64 *index)
{
    pthread_mutex_lock(&t->lock);
    *index = t->next++;
    const bool ok = *index < t->stop_at;
    pthread_mutex_unlock(&t->lock);
    return ok;
}

static void hand_in(struct team *t, const struct cta *c)
{
    pthread_mutex_lock(&t->lock);
    if (c->report->kind == REPORT_UNWRITTEN && owner_counts_ctas(c)) {
        if (c->index < t->unwritten_at) {
            t->unwritten_at = c->index;
            t->unwritten = *c->report;
        }
    } else if (c->index < t->stop_at) {
        t->stop_at = c->index;
        *t->report = *c->report;
    }
    pthread_mutex_unlock(&t->lock);
}

static void *work(void *argument)
{
    struct team *t = argument;
    struct tgemu_counters counters = {0};
    struct report report = {0};
    struct cta *c = cta_new(t->launch);
    u64 index;
    if (c) {
        c->is_parallel = t->is_parallel;
        c->counters = &counters;
        c->report = &report;
    }
    while (c && take(t, &index)) {
        cta_reset(c, index);
        cta_run(c);
        if (report.is_set)
            hand_in(t, c);
    }
    pthread_mutex_lock(&t->lock);
    counters_add(t->counters, &counters);
    t->is_out_of_memory |= !c;
    pthread_mutex_unlock(&t->lock);
    if (c)
        cta_free(c);
    return NULL;
}

static u32 thread_count(const struct launch *l)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const u64 wanted = l->config->threads > 0 ? (u64)l->config->threads
                       : cores > 0            ? (u64)cores
                                              : 1;
    return (u32)(wanted < l->n_ctas ? wanted : l->n_ctas);
}

void launch_run(const struct launch *l, struct report *r, struct tgemu_counters *counters)
{
    struct team t = {.launch = l,
                     .stop_at = l->n_ctas,
                     .report = r,
                     .unwritten_at = UINT64_MAX,
                     .counters = counters};
    pthread_t threads[256];
    u32 n = 0;
    const u32 wanted = thread_count(l);
    t.is_parallel = wanted > 1;
    pthread_mutex_init(&t.lock, NULL);
    while (n + 1 < wanted && n < 256 && !pthread_create(&threads[n], NULL, work, &t))
        n++;
    work(&t);
    while (n)
        pthread_join(threads[--n], NULL);
    pthread_mutex_destroy(&t.lock);
    counters->launches = 1;
    if (t.unwritten_at < t.stop_at && !(r->is_set && r->kind == REPORT_GLOBAL_RACE))
        *r = t.unwritten;
    owner_forget(l->memory);
    if (t.is_out_of_memory && !r->is_set)
        report_set(r, REPORT_LAUNCH, "out of host memory");
}
