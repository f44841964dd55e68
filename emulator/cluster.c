/* cluster.c - CTAs that run together: their barrier, and each other's shared memory.
 *
 * An address of the shared::cluster window is one of a CTA's own shared memory with the CTA's rank,
 * counted from 1, in the bits above. In a cluster of more than one the addresses of variables have
 * it too, as on an H200: so they mean the same in both windows, and a wgmma descriptor made of one
 * must mask it. The hardware counts from 0, and what has no rank is the first CTA's there; here it
 * is nobody's. The race checks are those of shared.c. Beside them a CTA must know, through the cluster's barrier or an mbarrier, that
 * another has begun before it accesses its shared memory, and that all others are done with its own
 * before it ends. */
#include "hopper.h"

#include <stdio.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

/* -- addresses ------------------------------------------------------------------------------- */

enum { OFFSET_MASK = (1 << RANK_SHIFT) - 1 };

static u64 rank_bits(u32 rank)
{
    return (u64)(rank + 1) << RANK_SHIFT;
}

/* What the addresses of the CTA's variables have beside their place. */
u64 cluster_bits(const struct cta *c)
{
    return c->cluster->n > 1 ? rank_bits(c->rank) : 0;
}

bool is_near(const struct warp *w, u64 address)
{
    return !(near_address(w, address) >> RANK_SHIFT);
}

/* The CTA of an address of the shared::cluster window, which becomes an address of that CTA's
 * shared memory; NULL after a fault. */
struct cta *cluster_target(struct warp *w, int lane, u64 *address)
{
    const struct cluster *k = w->cta->cluster;
    const u64 rank = *address >> RANK_SHIFT;
    if (!rank && k->n == 1)
        return w->cta;
    if (!rank || rank > k->n) {
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "0x%llx is an address of no CTA of the cluster",
              (unsigned long long)*address);
        return NULL;
    }
    *address &= OFFSET_MASK;
    return k->cta[rank - 1];
}

RUN(mapa)
{
    const struct cluster *k = w->cta->cluster;
    FOR_LANES(l, mask)
    {
        const u64 from = operand_value(w, in->op[1], (int)l);
        const u32 rank = row32(w, in->op[2])[l];
        if (rank >= k->n) {
            fault(w, REPORT_OUT_OF_BOUNDS, (int)l, "CTA %u of the cluster, which has %u", rank, k->n);
            return;
        }
        operand_store(w, in->op[0], (int)l, (from & ~(0xffull << RANK_SHIFT)) | rank_bits(rank));
    }
}

RUN(getctarank)
{
    FOR_LANES(l, mask)
    {
        u64 address = operand_value(w, in->op[1], (int)l);
        if (!in->mod[MOD_SPACE] && generic_space(&address) != SPACE_SHARED)
            address = ~0ull; /* no CTA's */
        const struct cta *c = cluster_target(w, (int)l, &address);
        if (!c)
            return;
        row32(w, in->op[0])[l] = c->rank;
    }
}

/* -- visits ---------------------------------------------------------------------------------- */

static bool is_checked(const struct cta *c)
{
    return c->launch->config->checks & TGEMU_CHECK_RACES;
}

static bool knows_of(const struct warp *w, const struct cta *c)
{
    for (u32 i = 0; i < c->n_warps; i++)
        if (w->seen[agent_of(c, i)])
            return true;
    return w->cluster_waited > 0;
}

/* An agent of the cluster accesses this CTA's shared memory. */
void cluster_note_visit(struct cta *c, u32 agent, u32 at)
{
    if (agent / CTA_AGENTS != c->rank)
        c->visits[agent] = (struct visit){.time = c->cluster->now, .at = at};
}

/* Whether the warp may access this CTA's shared memory now; else a fault. */
bool cluster_lets_visit(struct warp *w, const struct cta *c, int lane)
{
    if (c == w->cta)
        return true;
    if (c->has_ended)
        fault(w, REPORT_CLUSTER, lane, "accesses the shared memory of CTA %u of the cluster, which has ended", c->rank);
    else if (is_checked(c) && !knows_of(w, c))
        fault(w, REPORT_CLUSTER, lane,
              "accesses the shared memory of CTA %u of the cluster, which may not have begun: no "
              "barrier.cluster comes before",
              c->rank);
    return w->event != EVENT_FAULT;
}

static bool has_seen(const struct cta *c, u32 agent, u32 time)
{
    for (u32 i = 0; i < c->n_warps; i++)
        if (is_before(&c->warps[i], agent, time))
            return true;
    return false;
}

static void check_visits(struct cta *c)
{
    for (u32 k = 0; k < c->n_agents && !c->report->is_set; k++) {
        const struct visit *v = &c->visits[k];
        if (has_seen(c, k, v->time))
            continue;
        struct warp *w = &c->warps[0];
        w->at = &c->kernel->code[v->at];
        fault(w, REPORT_CLUSTER, ALL_LANES,
              "the CTA may end before CTA %u of the cluster is done with its shared memory: no "
              "barrier.cluster comes after",
              k / CTA_AGENTS);
    }
}

/* All its warps have ended. */
void cluster_end_cta(struct cta *c)
{
    if (c->hopper)
        hopper_end(c);
    if (is_checked(c))
        check_visits(c);
    c->has_ended = true;
}

/* -- the barrier ----------------------------------------------------------------------------- */

/* All lanes of the warp that have not exited. */
static bool is_whole(struct warp *w, u32 mask)
{
    if (mask == (w->exists & ~w->exited))
        return true;
    fault(w, REPORT_BARRIER, ALL_LANES, "the cluster's barrier reached by lanes 0x%08x of the warp's 0x%08x", mask,
          w->exists & ~w->exited);
    return false;
}

/* A relaxed arrival tells only of mbarriers, those before a fence.mbarrier_init. */
static void announce_mbarriers(const struct warp *w)
{
    struct hopper *h = w->cta->hopper;
    for (u32 i = 0; i < h->n_mbarriers; i++) {
        struct mbarrier *m = &h->mbarriers[i];
        if (m->init_agent == w->agent && !m->init_phase &&
            proxy_was_fenced(w, w->agent, m->init_lane, m->init_time, FENCE_INIT_CLUSTER))
            m->init_phase = w->cluster_arrived;
    }
}

RUN(cluster_arrive)
{
    struct cta *c = w->cta;
    struct cluster *k = c->cluster;
    if (!is_whole(w, mask))
        return;
    if (w->cluster_arrived != w->cluster_waited) {
        fault(w, REPORT_BARRIER, ALL_LANES,
              "arrives at the cluster's barrier again; barrier.cluster.wait must come between");
        return;
    }
    w->cluster_arrived = k->phase;
    announce_mbarriers(w);
    if (in->mod[MOD_STRONG] != STRONG_RELAXED) {
        clock_join(k->joined, w->seen, c->n_agents);
        k->joined[w->agent] = k->now++;
    }
    k->n_arrived++;
    cluster_check_barrier(k);
}

/* Lets those go on who wait for the last phase. */
static void wake(struct cta *c)
{
    for (u32 i = 0; i < c->n_warps; i++) {
        struct warp *w = &c->warps[i];
        if (!w->waits_for_cluster)
            continue;
        w->waits_for_cluster = false;
        w->is_blocked = false;
    }
}

/* The phase is over when all warps that have not ended have arrived. */
void cluster_check_barrier(struct cluster *k)
{
    struct cta *first = k->cta[0];
    u32 n = 0;
    for (u32 r = 0; r < k->n; r++)
        for (u32 i = 0; i < first->n_warps; i++) {
            const struct warp *w = &k->cta[r]->warps[i];
            n += !w->is_done && w->cluster_arrived != k->phase;
        }
    if (n || !k->n_arrived)
        return;
    memcpy(k->released, k->joined, first->n_agents * sizeof *k->released);
    k->n_arrived = 0;
    k->phase++;
    k->now++;
    k->idle_polls = 0;
    first->counters->barriers++;
    for (u32 r = 0; r < k->n; r++)
        wake(k->cta[r]);
}

RUN(cluster_wait)
{
    struct cluster *k = w->cta->cluster;
    if (!is_whole(w, mask))
        return;
    if (w->cluster_arrived == w->cluster_waited) {
        fault(w, REPORT_BARRIER, ALL_LANES, "waits at the cluster's barrier; barrier.cluster.arrive must come before");
    } else if (w->cluster_arrived == k->phase) {
        w->waits_for_cluster = true;
        w->is_blocked = true;
        w->pc = in->serial;
        w->event = EVENT_BLOCK;
    } else {
        w->cluster_waited = w->cluster_arrived;
        clock_join(w->seen, k->released, w->cta->n_agents);
        update_seen_all(w);
    }
}
