/* sync.c - barriers, and what they order.
 *
 * A barrier joins what its warps have seen: whoever leaves it has seen all that every arriver had
 * done when it arrived. The rules checked are those of the PTX ISA for .aligned: all threads of a
 * warp arrive together, the same warps at the same barrier with the same count; a warp that has
 * exited can arrive nowhere. */
#include "hopper.h"

#include <stdio.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

insn_run run_bar_red, run_bar_red_popc;

static void barrier_reset(const struct cta *c, struct barrier *b)
{
    memset(b->joined, 0, c->n_agents * sizeof *b->joined);
    *b = (struct barrier){.joined = b->joined};
}

void barriers_reset(struct cta *c)
{
    for (u32 i = 0; i < N_BARRIERS; i++)
        barrier_reset(c, &c->barriers[i]);
    for (u32 i = 0; i < c->n_warps; i++)
        memset(c->warps[i].seen, 0, c->n_agents * sizeof(u32));
}

/* Who knows `to` then also knows what comes before `from`. */
CLONES void clock_join(u32 *to, const u32 *from, u32 n)
{
    for (u32 i = 0; i < n; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* For mma, ldmatrix and the like: all 32 lanes, here and now. */
bool is_convergent(struct warp *w, const struct insn *in, u32 mask)
{
    (void)in;
    if (mask == FULL_MASK)
        return true;
    fault(w, REPORT_DIVERGENT, ALL_LANES, "executed by lanes 0x%08x only; all 32 must execute it together%s%s", mask,
          w->exited ? "; some have exited" : "",
          w->exists != FULL_MASK ? "; the block does not fill its last warp" : "");
    return false;
}

static bool is_whole(struct warp *w, u32 mask)
{
    if (mask == w->exists)
        return true;
    fault(w, REPORT_BARRIER, ALL_LANES, "a barrier reached by lanes 0x%08x of the warp's 0x%08x%s", mask, w->exists,
          w->exited ? ": some have exited" : ": the others are elsewhere, or are guarded off");
    return false;
}

static bool is_uniform(struct warp *w, u32 operand, u32 mask, const char *what)
{
    const u32 *row = row32(w, operand), first = row[first_lane(mask)];
    FOR_LANES(l, mask)
    {
        if (row[l] != first) {
            fault(w, REPORT_BARRIER, (int)l, "the lanes of the warp disagree on the barrier's %s: %u and %u", what,
                  first, row[l]);
            return false;
        }
    }
    return true;
}

void update_seen_all(struct warp *w)
{
    const u32 *seen = w->seen + agent_of(w->cta, 0);
    u32 least = UINT32_MAX;
    for (u32 i = 0; i < w->cta->n_warps; i++)
        if (i != w->id && seen[i] < least)
            least = seen[i];
    w->seen_all = least == UINT32_MAX ? 0 : least;
}

/* What bar.red gives to each of its warps. */
static void deliver(struct warp *w, const struct barrier *b)
{
    const struct insn *in = w->at;
    if (in->run == run_bar_red_popc)
        FOR_LANES(l, w->mask) row32(w, in->op[0])[l] = b->popc;
    else if (in->run == run_bar_red)
        pred_set(w, in->op[0], w->mask,
                 (in->mod[MOD_RMW] == RMW_AND ? b->popc == b->n_red : b->popc > 0) ? FULL_MASK : 0);
}

static void complete(struct cta *c, struct barrier *b)
{
    const u32 now = c->cluster->now++;
    FOR_LANES(i, b->waiting) b->joined[agent_of(c, i)] = now;
    FOR_LANES(i, b->waiting)
    {
        struct warp *w = &c->warps[i];
        clock_join(w->seen, b->joined, c->n_agents);
        update_seen_all(w);
        w->is_blocked = false;
        deliver(w, b);
    }
    barrier_reset(c, b);
    c->counters->barriers++;
    c->cluster->idle_polls = 0;
}

static bool joins(struct warp *w, const struct barrier *b, u32 id, u32 expected)
{
    char first[320];
    if (!b->present)
        return true;
    describe_insn(first, sizeof first, w->kernel, b->first_at);
    if (b->expected != expected)
        fault(w, REPORT_BARRIER, ALL_LANES, "barrier %u expects %u threads here, %u at %s", id, expected, b->expected,
              first);
    else if (b->present >> w->id & 1)
        fault(w, REPORT_BARRIER, ALL_LANES, "the warp arrives at barrier %u again before it has completed", id);
    else if (b->arrived + LANES > expected)
        fault(w, REPORT_BARRIER, ALL_LANES, "more threads arrive at barrier %u than the %u it expects", id, expected);
    return w->event != EVENT_FAULT;
}

/* count: operand with the number of threads, or NO_OPERAND for all of the CTA. */
static struct barrier *arrive(struct warp *w, u32 mask, u32 id_operand, u32 count, bool waits)
{
    struct cta *c = w->cta;
    if (!is_whole(w, mask) || !is_uniform(w, id_operand, mask, "number"))
        return NULL;
    if (count != NO_OPERAND && !is_uniform(w, count, mask, "thread count"))
        return NULL;
    const int lane = first_lane(mask);
    const u32 id = row32(w, id_operand)[lane];
    const u32 expected = count == NO_OPERAND ? c->n_warps * LANES : row32(w, count)[lane];
    if (id >= N_BARRIERS || expected % LANES || !expected || expected > c->n_warps * LANES) {
        fault(w, REPORT_BARRIER, ALL_LANES,
              "barrier %u of %u threads: there are 16 barriers, and the CTA has %u threads", id, expected,
              c->n_warps * LANES);
        return NULL;
    }
    struct barrier *b = &c->barriers[id];
    if (!joins(w, b, id, expected))
        return NULL;
    if (!b->present)
        b->first_at = w->at->serial;
    b->expected = expected;
    b->arrived += LANES;
    b->present |= 1u << w->id;
    clock_join(b->joined, w->seen, c->n_agents);
    if (waits) {
        b->waiting |= 1u << w->id;
        w->is_blocked = true;
        w->barrier = id;
        w->event = EVENT_BLOCK;
    } else {
        b->joined[w->agent] = c->cluster->now++;
    }
    return b;
}

static void complete_if_full(struct warp *w, struct barrier *b)
{
    if (b && b->arrived == b->expected)
        complete(w->cta, b);
}

RUN(bar_sync)
{
    complete_if_full(w, arrive(w, mask, in->op[0], in->op[1], true));
}

RUN(bar_arrive)
{
    complete_if_full(w, arrive(w, mask, in->op[0], in->op[1], false));
}

static void reduce(struct warp *w, const struct insn *in, u32 mask)
{
    struct barrier *b = arrive(w, mask, in->op[1], in->op[2], true);
    if (!b)
        return;
    b->popc += (u32)__builtin_popcount(pred_get(w, in->op[3]) & mask);
    b->n_red += (u32)__builtin_popcount(mask);
    complete_if_full(w, b);
}

RUN(bar_red)
{
    reduce(w, in, mask);
}

RUN(bar_red_popc)
{
    reduce(w, in, mask);
}

/* A warp is one thread of the race check already; what is left is that the lanes named must be
 * here. */
RUN(bar_warp)
{
    FOR_LANES(l, mask)
    {
        const u32 named = row32(w, in->op[0])[l] & w->exists;
        if (!(named >> l & 1) || (named & ~mask)) {
            fault(w, REPORT_DIVERGENT, (int)l, "bar.warp.sync names lanes 0x%08x, of which 0x%08x execute it", named,
                  mask);
            return;
        }
    }
}

RUN(fence)
{
    proxy_note_fence(w);
    (void)in;
    (void)mask;
    full_fence();
}

static bool is_at_barrier(const struct cta *c, const struct warp *w)
{
    return !w->mbarrier && !w->waits_for_cluster && !(c->hopper && c->hopper->waits_for_warps[w->id]);
}

/* "waits at barrier 1 (64 of 128 threads), line 20: bar.sync 1, 128;" */
static void describe_wait(const struct warp *w, char *out, size_t size)
{
    const struct cta *c = w->cta;
    char insn[320], what[512];
    if (w->is_done) {
        snprintf(out, size, "has exited");
        return;
    }
    describe_insn(insn, sizeof insn, w->kernel, w->at->serial);
    if (c->hopper && c->hopper->waits_for_warps[w->id])
        snprintf(what, sizeof what, "the wgmma of the other warps of its warpgroup");
    else if (w->waits_for_cluster)
        snprintf(what, sizeof what, "the cluster's barrier (%u of %u warps)", c->cluster->n_arrived,
                 c->cluster->n * c->n_warps);
    else if (w->mbarrier)
        mbarrier_describe(c, w, what, sizeof what);
    else
        snprintf(what, sizeof what, "barrier %u (%u of %u threads)", w->barrier, c->barriers[w->barrier].arrived,
                 c->barriers[w->barrier].expected);
    snprintf(out, size, "waits %s %s, %s", is_at_barrier(c, w) ? "at" : "for", what, insn);
}

/* Warps that wait for the same thing are named together. */
static void list_waits(const struct cta *c, char *list, size_t size)
{
    char last[900] = "", now[900];
    for (u32 i = 0, first = 0; i <= c->n_warps; i++) {
        const size_t n = strlen(list);
        *now = 0;
        if (i < c->n_warps)
            describe_wait(&c->warps[i], now, sizeof now);
        if (i && strcmp(now, last)) {
            if (first + 1 == i)
                snprintf(list + n, size - n, "\n    warp %u %s", first, last);
            else
                snprintf(list + n, size - n, "\n    warps %u to %u: each %s", first, i - 1, last);
            first = i;
        }
        memcpy(last, now, sizeof last);
    }
}

static bool is_mismatch(const struct cta *c)
{
    bool is_one = false;
    for (u32 i = 0; i < c->n_warps; i++) {
        const struct warp *w = &c->warps[i];
        is_one |= !w->is_done && is_at_barrier(c, w) && c->barriers[w->barrier].expected == c->n_warps * LANES;
    }
    return is_one;
}

/* So are CTAs. */
static void list_cluster(const struct cluster *k, char *list, size_t size)
{
    char last[1600] = "", now[1600];
    for (u32 r = 0, first = 0; r <= k->n; r++) {
        const size_t n = strlen(list);
        *now = 0;
        if (r < k->n)
            list_waits(k->cta[r], now, sizeof now);
        if (r && strcmp(now, last)) {
            if (first + 1 == r)
                snprintf(list + n, size - n, "\n   CTA %u of the cluster:%s", first, last);
            else
                snprintf(list + n, size - n, "\n   CTAs %u to %u of the cluster, each:%s", first, r - 1, last);
            first = r;
        }
        memcpy(last, now, sizeof last);
    }
}

/* No warp can run: says who waits where. */
void barriers_check_stuck(struct cluster *k)
{
    char list[1600] = "";
    enum report_kind kind = REPORT_DEADLOCK;
    struct warp *culprit = NULL;
    for (u32 r = 0; r < k->n; r++) {
        struct cta *c = k->cta[r];
        kind = is_mismatch(c) ? REPORT_BARRIER : kind;
        for (u32 i = 0; i < c->n_warps && !culprit; i++)
            culprit = c->warps[i].is_done ? NULL : &c->warps[i];
    }
    if (k->n > 1)
        list_cluster(k, list, sizeof list);
    else
        list_waits(k->cta[0], list, sizeof list);
    fault(culprit, kind, ALL_LANES, "no warp can go on:%s", list);
}
