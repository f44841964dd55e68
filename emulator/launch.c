/* launch.c - a grid: its clusters in order, taken by as many threads as there are cores. Without
 * clusters each CTA is one.
 *
 * A cluster's run depends on the seed and its index alone, so the number of threads changes
 * nothing; of several faults the one of the lowest cluster is reported. But one that reads what
 * nothing has written may be early in a race with one that writes it: it stops, the others go on,
 * and a race between them is what is reported if they find one. Each thread keeps one cluster's
 * worth of registers, shared memory and shadow. */
#include "hopper.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct team {
    const struct launch *launch;
    pthread_mutex_t lock; /* guards what follows */
    u64 next, stop_at;    /* clusters from stop_at on need not run: one before has failed */
    struct report *report;
    u64 unwritten_at; /* the lowest one that read what nothing had written */
    struct report unwritten;
    struct tgemu_counters *counters;
    bool is_parallel;
    bool has_waited, lets_next_begin; /* some CTA */
    bool is_out_of_memory;
};

static u64 mix(u64 x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Of one axis. `first` is that of x, which those of y and z follow. */
static u64 special_of_axis(const struct cta *c, u32 first, u32 axis, u32 thread)
{
    const u32 *block = c->launch->block, *grid = c->launch->grid, *cluster = c->launch->cluster;
    switch (first) {
    case SPECIAL_TID_X:
        return axis == 0 ? thread % block[0] : axis == 1 ? thread / block[0] % block[1] : thread / block[0] / block[1];
    case SPECIAL_NTID_X:
        return block[axis];
    case SPECIAL_CTAID_X:
        return c->id[axis];
    case SPECIAL_NCTAID_X:
        return grid[axis];
    case SPECIAL_CLUSTERID_X:
        return c->id[axis] / cluster[axis];
    case SPECIAL_NCLUSTERID_X:
        return grid[axis] / cluster[axis];
    case SPECIAL_CLUSTER_CTAID_X:
        return c->id[axis] % cluster[axis];
    default: /* SPECIAL_CLUSTER_NCTAID_X */
        return cluster[axis];
    }
}

static u64 special_value(const struct cta *c, const struct warp *w, u32 special, u32 lane)
{
    static const u32 of_axes[] = {SPECIAL_TID_X,           SPECIAL_NTID_X,          SPECIAL_CTAID_X,
                                  SPECIAL_NCTAID_X,        SPECIAL_CLUSTERID_X,     SPECIAL_NCLUSTERID_X,
                                  SPECIAL_CLUSTER_CTAID_X, SPECIAL_CLUSTER_NCTAID_X};
    for (u32 i = 0; i < sizeof of_axes / sizeof *of_axes; i++)
        if (special - of_axes[i] < 3)
            return special_of_axis(c, of_axes[i], special - of_axes[i], w->id * LANES + lane);
    switch (special) {
    case SPECIAL_CLUSTER_CTARANK:
        return c->rank;
    case SPECIAL_CLUSTER_NCTARANK:
        return c->cluster->n;
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
    default: /* SPECIAL_TOTAL_SMEM */
        return c->shared_bytes;
    }
}

static void fill_row(const struct cta *c, struct warp *w, const struct fixed_row *f)
{
    u64 x[LANES];
    const u64 same = f->is_shared ? f->value + cluster_bits(c) : f->value;
    for (u32 l = 0; l < LANES; l++)
        x[l] = same;
    for (u32 l = 0; l < LANES && f->special; l++)
        x[l] = special_value(c, w, f->special, l);
    if (f->bits == 64)
        memcpy(row64(w, f->row), x, sizeof x);
    else
        for (u32 l = 0; l < LANES; l++)
            row32(w, f->row)[l] = (u32)x[l];
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
    w->cluster_arrived = w->cluster_waited = 0;
    w->known = w->known_store = ~0ull;
    w->mask = w->exists;
    w->until = w->gave_up_at = NO_PC;
    w->is_done = w->is_blocked = w->waits_for_cluster = false;
    async_reset(w);
}

/* The id of a CTA: that of its cluster, times the cluster's size, and its place there. */
static void find_id(struct cta *c)
{
    const struct launch *l = c->launch;
    u64 cluster = c->cluster->index;
    u32 rank = c->rank;
    for (u32 i = 0; i < 3; i++) {
        const u32 n = l->grid[i] / l->cluster[i];
        c->id[i] = (u32)(cluster % n) * l->cluster[i] + rank % l->cluster[i];
        cluster /= n;
        rank /= l->cluster[i];
    }
    c->index = c->id[0] + (u64)l->grid[0] * (c->id[1] + (u64)l->grid[1] * c->id[2]);
}

static void cta_reset(struct cta *c)
{
    const struct launch *l = c->launch;
    find_id(c);
    c->random = mix(mix(mix(l->config->seed) ^ l->serial) ^ c->index) | 1;
    c->steps = 0;
    c->patience = 0;
    const u32 groups = c->n_warps / 4;
    c->late_group = groups > 1 && random_below(c, 4) ? random_below(c, groups) : MAX_WARPGROUPS;
    c->has_ended = false;
    c->has_waited = !l->overlaps;
    c->lets_next_begin = false;
    c->report->is_set = false;
    memset(c->visits, 0, c->n_agents * sizeof *c->visits);
    shadow_reset(c);
    barriers_reset(c);
    hopper_reset(c);
    for (u32 i = 0; i < c->n_warps; i++)
        warp_reset(c, &c->warps[i]);
}

static void cluster_reset(struct cluster *k, u64 index)
{
    const u32 n_agents = k->cta[0]->n_agents;
    k->index = index;
    k->now = k->phase = 1;
    k->idle_polls = k->n_arrived = k->n_taken = 0;
    memset(k->joined, 0, n_agents * sizeof *k->joined);
    memset(k->released, 0, n_agents * sizeof *k->released);
    for (u32 r = 0; r < k->n; r++)
        cta_reset(k->cta[r]);
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
    free(c->clocks);
    free(c->visits);
    free(c);
}

static bool warp_init(struct cta *c, u32 id)
{
    const struct kernel *k = c->kernel;
    struct warp *w = &c->warps[id];
    w->cta = c;
    w->kernel = k;
    w->id = id;
    w->agent = agent_of(c, id);
    w->seen = c->clocks + (size_t)id * c->n_agents;
    w->rows = aligned_alloc(128, (size_t)k->n_rows * LANES * sizeof(u32));
    w->preds = calloc(k->n_preds, sizeof(u32));
    w->local = malloc((size_t)k->local_bytes * LANES + 1);
    w->local_written = malloc((size_t)k->local_bytes * LANES + 1);
    return w->rows && w->preds && w->local && w->local_written;
}

/* Alone and without asynchronous agents, the warps are all. */
static u32 agent_count(const struct launch *l)
{
    return l->kernel->is_async || l->n_ranks > 1 ? l->n_ranks * CTA_AGENTS : l->n_warps;
}

static struct cta *cta_new(const struct launch *l, struct cluster *k, u32 rank)
{
    struct cta *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->launch = l;
    c->kernel = l->kernel;
    c->cluster = k;
    c->rank = rank;
    c->n_warps = l->n_warps;
    c->n_agents = agent_count(l);
    c->params = l->params;
    c->shared_bytes = l->kernel->dynamic_base + l->dynamic_smem;
    c->shared = malloc(c->shared_bytes + 16);
    c->cached = calloc(l->kernel->n_code, sizeof *c->cached);
    c->clocks = calloc((size_t)(MAX_WARPS + N_BARRIERS) * c->n_agents, sizeof *c->clocks);
    c->visits = calloc(c->n_agents, sizeof *c->visits);
    bool ok = c->shared && c->cached && c->clocks && c->visits && shadow_init(c) && hopper_init(c);
    for (u32 i = 0; i < c->n_warps && ok; i++)
        ok &= warp_init(c, i);
    for (u32 i = 0; i < N_BARRIERS && ok; i++)
        c->barriers[i].joined = c->clocks + (size_t)(MAX_WARPS + i) * c->n_agents;
    if (ok)
        return c;
    cta_free(c);
    return NULL;
}

static void cluster_free(struct cluster *k)
{
    for (u32 r = 0; r < k->n && k->cta[r]; r++)
        cta_free(k->cta[r]);
    free(k->joined);
    free(k->released);
    free(k->taken);
    free(k);
}

static struct cluster *cluster_new(const struct launch *l)
{
    struct cluster *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->n = l->n_ranks;
    k->joined = calloc(agent_count(l), sizeof *k->joined);
    k->released = calloc(agent_count(l), sizeof *k->released);
    bool ok = k->joined && k->released;
    for (u32 r = 0; r < k->n && ok; r++)
        ok = (k->cta[r] = cta_new(l, k, r)) != NULL;
    if (ok)
        return k;
    cluster_free(k);
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

/* Who reads what nothing has written may have come before another who would have: then that one will report a race, if it is
 * let run. Not where others may wait for this one. */
static void hand_in(struct team *t, const struct cluster *k)
{
    const struct report *report = k->cta[0]->report;
    const bool may_be_a_race = owner_counts_ctas(k->cta[0]) && !k->cta[0]->kernel->has_release;
    pthread_mutex_lock(&t->lock);
    if (report->kind == REPORT_UNWRITTEN && may_be_a_race) {
        if (k->index < t->unwritten_at) {
            t->unwritten_at = k->index;
            t->unwritten = *report;
        }
    } else if (k->index < t->stop_at) {
        __atomic_store_n(&t->stop_at, k->index, __ATOMIC_RELAXED);
        *t->report = *report;
    }
    pthread_mutex_unlock(&t->lock);
}

static void *work(void *argument)
{
    struct team *t = argument;
    struct tgemu_counters counters = {0};
    struct report report = {0};
    struct cluster *k = cluster_new(t->launch);
    bool has_waited = false, lets_next_begin = false;
    u64 index;
    for (u32 r = 0; k && r < k->n; r++) {
        k->cta[r]->is_parallel = t->is_parallel;
        k->cta[r]->counters = &counters;
        k->cta[r]->report = &report;
    }
    while (k && take(t, &index)) {
        k->stop_at = &t->stop_at;
        cluster_reset(k, index);
        cluster_run(k);
        for (u32 r = 0; r < k->n; r++) {
            has_waited |= k->cta[r]->has_waited;
            lets_next_begin |= k->cta[r]->lets_next_begin;
        }
        if (report.is_set)
            hand_in(t, k);
    }
    pthread_mutex_lock(&t->lock);
    counters_add(t->counters, &counters);
    t->has_waited |= has_waited;
    t->lets_next_begin |= lets_next_begin;
    t->is_out_of_memory |= !k;
    pthread_mutex_unlock(&t->lock);
    if (k)
        cluster_free(k);
    return NULL;
}

static u32 thread_count(const struct launch *l)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const u64 wanted = l->config->threads > 0 ? (u64)l->config->threads : cores > 0 ? (u64)cores : 1;
    const u64 n = l->n_ctas / l->n_ranks;
    return (u32)(wanted < n ? wanted : n);
}

void launch_run(const struct launch *l, struct report *r, struct tgemu_counters *counters)
{
    struct team t = {
        .launch = l, .stop_at = l->n_ctas / l->n_ranks, .report = r, .unwritten_at = UINT64_MAX, .counters = counters};
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
    if (!t.has_waited && !r->is_set && !t.is_out_of_memory)
        report_set(r, REPORT_OVERLAP,
                   "kernel %s: no CTA waits for the kernel ahead (griddepcontrol.wait), nor will the next kernel",
                   l->kernel->name);
    ahead_remember(l, t.lets_next_begin);
    owner_forget(l->memory);
    if (t.is_out_of_memory && !r->is_set)
        report_set(r, REPORT_LAUNCH, "out of host memory");
}
