/* mbarrier.c - barriers that are objects in shared memory: they count arrivals, and bytes that
 * asynchronous copies bring.
 *
 * The 8 bytes themselves mean nothing; the objects are in struct hopper. A phase ends when no
 * arrival is pending and no byte is due. Whoever then sees that it has ended has seen what every
 * arriver had done when it arrived, and what the copies of the phase have written. */
#include "hopper.h"

#include <stdio.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

/* -- objects --------------------------------------------------------------------------------- */

static bool is_place(struct warp *w, int lane, u64 address)
{
    const u64 offset = address - SHARED_BASE;
    if (offset >= w->cta->shared_bytes || 8 > w->cta->shared_bytes - offset)
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "an mbarrier at shared offset %lld; the CTA has %u bytes",
              (long long)offset, w->cta->shared_bytes);
    else if (offset & 7)
        fault(w, REPORT_MISALIGNED, lane, "an mbarrier at shared offset %llu, which is not a multiple of 8",
              (unsigned long long)offset);
    return w->event != EVENT_FAULT;
}

/* Whether the warp knows of its initialisation by the cluster's barrier. */
bool mbarrier_is_announced(const struct warp *w, const struct mbarrier *m)
{
    return m->init_phase && w->cluster_waited >= m->init_phase;
}

/* The live object at an address in the CTA's shared memory; NULL after a fault. */
struct mbarrier *mbarrier_find(struct warp *w, struct cta *c, int lane, u64 address)
{
    struct hopper *h = c->hopper;
    char insn[320];
    if (!is_place(w, lane, address) || !cluster_lets_visit(w, c, lane))
        return NULL;
    const u32 offset = (u32)(address - SHARED_BASE), index = h->mbarrier_at[offset / 8];
    if (!index) {
        fault(w, REPORT_MBARRIER, lane, "there is no mbarrier at shared offset %u: no mbarrier.init has come before",
              offset);
        return NULL;
    }
    struct mbarrier *m = &h->mbarriers[index - 1];
    if (!is_before(w, m->init_agent, m->init_time) && !mbarrier_is_announced(w, m) &&
        w->cta->launch->config->checks & TGEMU_CHECK_RACES) {
        describe_insn(insn, sizeof insn, w->kernel, m->init_at);
        fault(w, REPORT_SHARED_RACE, lane,
              "uses the mbarrier at shared offset %u, which warp %u initialises with no barrier "
              "between\n    at %s",
              offset, m->init_agent % CTA_AGENTS, insn);
        return NULL;
    }
    return m;
}

static u64 shared_address(struct warp *w, const struct insn *in, u32 k, int lane)
{
    u64 address = address_of(w, in, k, lane);
    if (in->mod[MOD_SPACE] == SPACE_GENERIC && generic_space(&address) != SPACE_SHARED)
        address = 0; /* out of bounds */
    return address;
}

/* The warp's own CTA's. */
static struct mbarrier *near_operand(struct warp *w, const struct insn *in, u32 k, int lane)
{
    return mbarrier_find(w, w->cta, lane, near_address(w, shared_address(w, in, k, lane)));
}

static struct mbarrier *operand(struct warp *w, const struct insn *in, u32 k, int lane)
{
    u64 address = shared_address(w, in, k, lane);
    const u32 space = in->mod[MOD_SPACE];
    struct cta *c = w->cta;
    if (space == SPACE_GENERIC || space == SPACE_SHARED_CLUSTER)
        c = cluster_target(w, lane, &address);
    else
        address = near_address(w, address);
    struct mbarrier *m = c ? mbarrier_find(w, c, lane, address) : NULL;
    if (m)
        cluster_note_visit(c, w->agent, in->serial);
    return m;
}

/* Whether plain data are accessed where an object lives: a fault. */
bool mbarrier_covers(struct warp *w, struct cta *c, int lane, u32 offset, u32 bytes, int what)
{
    const struct hopper *h = c->hopper;
    for (u32 i = offset / 8; i <= (offset + bytes - 1) / 8; i++) {
        if (!h->mbarrier_at[i])
            continue;
        fault(w, REPORT_MBARRIER, lane, "%s the mbarrier at shared offset %u as if it were data",
              what & ACCESS_WRITE ? "writes" : "reads", i * 8);
        return true;
    }
    return false;
}

/* As new, but for its clocks' places. */
static void clear(struct mbarrier *m, u32 n_agents)
{
    u32 *clock = m->joined[0];
    memset(clock, 0, 4 * n_agents * sizeof *clock);
    *m = (struct mbarrier){.joined = {clock, clock + n_agents},
                           .released = {clock + 2 * n_agents, clock + 3 * n_agents}};
}

void mbarriers_reset(struct cta *c)
{
    struct hopper *h = c->hopper;
    for (u32 i = 0; i < h->n_mbarriers; i++)
        h->mbarriers[i].is_live = false;
    h->n_mbarriers = 0;
    memset(h->mbarrier_at, 0, c->shared_bytes / 8 + 1);
}

static void init(struct warp *w, int lane, u64 address, u32 count)
{
    struct cta *c = w->cta;
    struct hopper *h = c->hopper;
    if (!is_place(w, lane, address))
        return;
    const u32 offset = (u32)(address - SHARED_BASE);
    if (!count || count > MAX_MBARRIER_COUNT) {
        fault(w, REPORT_MBARRIER, lane, "an mbarrier for %u arrivals; 1 to %u are possible", count, MAX_MBARRIER_COUNT);
        return;
    }
    if (h->mbarrier_at[offset / 8]) {
        fault(w, REPORT_MBARRIER, lane,
              "initialises the mbarrier at shared offset %u again; mbarrier.inval must come before", offset);
        return;
    }
    if (!shared_access(w, c, lane, address, 8, ACCESS_WRITE))
        return;
    u32 i = 0;
    while (i < MAX_MBARRIERS && h->mbarriers[i].is_live)
        i++;
    if (i == MAX_MBARRIERS) {
        fault(w, REPORT_MBARRIER, lane, "more than %u mbarriers at a time; the emulator has no more", MAX_MBARRIERS);
        return;
    }
    struct mbarrier *m = &h->mbarriers[i];
    clear(m, c->n_agents);
    m->is_live = true;
    m->cta = c;
    m->offset = offset;
    m->expected = m->pending = count;
    m->init_time = c->cluster->now;
    m->init_agent = w->agent;
    m->init_lane = (u32)lane;
    m->init_at = w->at->serial;
    h->mbarrier_at[offset / 8] = (u8)(i + 1);
    if (i >= h->n_mbarriers)
        h->n_mbarriers = i + 1;
}

RUN(mbarrier_init)
{
    FOR_LANES(l, mask)
    {
        const u64 address = near_address(w, shared_address(w, in, 0, (int)l));
        if (w->event != EVENT_FAULT)
            init(w, (int)l, address, row32(w, in->op[2])[l]);
    }
}

RUN(mbarrier_inval)
{
    FOR_LANES(l, mask)
    {
        struct mbarrier *m = near_operand(w, in, 0, (int)l);
        if (!m)
            return;
        const u32 index = (u32)(m - w->cta->hopper->mbarriers);
        if (m->tx || bulk_reports_to(w->cta, index)) {
            fault(w, REPORT_MBARRIER, (int)l,
                  "invalidates the mbarrier at shared offset %u, which waits for %d bytes%s", m->offset, m->tx,
                  bulk_reports_to(w->cta, index) ? ": a copy will report to it" : "");
            return;
        }
        m->is_live = false;
        w->cta->hopper->mbarrier_at[m->offset / 8] = 0;
        shared_mark_unwritten(w->cta, m->offset, 8);
    }
}

/* -- phases ---------------------------------------------------------------------------------- */

static void wake(struct cta *c, u32 index)
{
    for (u32 i = 0; i < c->n_warps; i++) {
        struct warp *w = &c->warps[i];
        if (w->mbarrier != index + 1)
            continue;
        w->mbarrier = 0;
        w->is_blocked = false;
    }
}

static void complete_phase(struct mbarrier *m)
{
    struct cta *c = m->cta;
    const u32 index = (u32)(m - c->hopper->mbarriers);
    m->phase++;
    m->pending = m->expected;
    m->joined[0][agent_of(c, AGENT_MBARRIER + index)] = c->cluster->now;
    bulk_publish(c, index);
    memcpy(m->released[0], m->joined[0], 2 * c->n_agents * sizeof(u32)); /* both */
    c->cluster->now++;
    wake(c, index);
}

/* After each change of the counts. */
static void check_phase(struct warp *w, int lane, struct mbarrier *m)
{
    if (m->tx > MAX_MBARRIER_COUNT || m->tx < -MAX_MBARRIER_COUNT) {
        fault(w, REPORT_MBARRIER, lane, "the mbarrier at shared offset %u then waits for %d bytes; it can count to %d",
              m->offset, m->tx, MAX_MBARRIER_COUNT);
        return;
    }
    if (m->pending)
        return;
    if (m->tx < 0)
        fault(w, REPORT_MBARRIER, lane,
              "%d bytes more arrive at the mbarrier at shared offset %u than its phase %u expects", -m->tx, m->offset,
              m->phase);
    else if (!m->tx)
        complete_phase(m);
}

/* Bytes that a copy or complete_tx brings. */
void mbarrier_complete_tx(struct warp *w, int lane, struct mbarrier *m, u32 bytes)
{
    w->cta->cluster->idle_polls = 0;
    m->tx -= (s32)bytes;
    check_phase(w, lane, m);
}

static bool expect(struct warp *w, int lane, struct mbarrier *m, u32 bytes)
{
    if (bytes > MAX_MBARRIER_COUNT) {
        fault(w, REPORT_MBARRIER, lane, "expects %u bytes at the mbarrier at shared offset %u", bytes, m->offset);
        return false;
    }
    m->tx += (s32)bytes;
    return true;
}

/* Between CTAs only this orders. */
static bool is_of_cluster_scope(const struct insn *in)
{
    return in->mod[MOD_SCOPE] >= SCOPE_CLUSTER;
}

/* What the arriver has done so far is ordered before the end of the phase. */
static void join(const struct warp *w, const struct insn *in, struct mbarrier *m)
{
    const struct cta *c = w->cta;
    const bool is_far = c != m->cta;
    if (is_far && in->mod[MOD_STRONG] != STRONG_RELAXED && !is_of_cluster_scope(in)) {
        const u32 *released = proxy_released(w);
        clock_join(m->joined[0], released, c->n_agents);
        m->cta->visits[w->agent].time = released[w->agent]; /* who learns of that has seen this arrival */
        return;
    }
    u32 *joined = m->joined[is_far];
    if (in->mod[MOD_STRONG] == STRONG_RELAXED ||
        joined[w->agent] == c->cluster->now) /* another lane of this instruction */
        return;
    clock_join(joined, w->seen, c->n_agents);
    joined[w->agent] = c->cluster->now;
}

struct arrival {
    u32 count, bytes;
    bool must_not_complete, is_dropped;
};

static bool arrive(struct warp *w, const struct insn *in, int lane, const struct arrival *a)
{
    struct mbarrier *m = operand(w, in, 1, lane);
    if (!m)
        return false;
    if (!a->count || a->count > m->pending) {
        fault(w, REPORT_MBARRIER, lane,
              "arrives %u times at the mbarrier at shared offset %u, whose phase %u expects %u more "
              "of %u arrivals",
              a->count, m->offset, m->phase, m->pending, m->expected);
        return false;
    }
    if (a->must_not_complete && a->count == m->pending) {
        fault(w, REPORT_MBARRIER, lane, "arrive.noComplete is the last arrival at the mbarrier at shared offset %u",
              m->offset);
        return false;
    }
    /* The state: the phase, and what was pending before. */
    operand_store(w, in->op[0], lane, (u64)m->phase << 32 | m->pending);
    if (!expect(w, lane, m, a->bytes))
        return false;
    join(w, in, m);
    m->pending -= a->count;
    m->expected -= a->is_dropped ? a->count : 0;
    check_phase(w, lane, m);
    return w->event != EVENT_FAULT;
}

static void arrive_lanes(struct warp *w, const struct insn *in, u32 mask, bool expects, struct arrival a)
{
    w->cta->cluster->idle_polls = 0;
    FOR_LANES(l, mask)
    {
        const u32 given = in->op[3] == NO_OPERAND ? 1 : row32(w, in->op[3])[l];
        a.count = expects ? 1 : given;
        a.bytes = expects ? given : 0;
        if (!arrive(w, in, (int)l, &a))
            return;
    }
    w->cta->cluster->now++;
}

RUN(mbarrier_arrive)
{
    arrive_lanes(w, in, mask, false, (struct arrival){0});
}

RUN(mbarrier_arrive_no_complete)
{
    arrive_lanes(w, in, mask, false, (struct arrival){.must_not_complete = true});
}

RUN(mbarrier_arrive_expect)
{
    arrive_lanes(w, in, mask, true, (struct arrival){0});
}

RUN(mbarrier_drop)
{
    arrive_lanes(w, in, mask, false, (struct arrival){.is_dropped = true});
}

RUN(mbarrier_drop_expect)
{
    arrive_lanes(w, in, mask, true, (struct arrival){.is_dropped = true});
}

RUN(mbarrier_expect)
{
    w->cta->cluster->idle_polls = 0;
    FOR_LANES(l, mask)
    {
        struct mbarrier *m = operand(w, in, 0, (int)l);
        if (!m || !expect(w, (int)l, m, row32(w, in->op[2])[l]))
            return;
        check_phase(w, (int)l, m);
    }
}

RUN(mbarrier_complete)
{
    FOR_LANES(l, mask)
    {
        struct mbarrier *m = operand(w, in, 0, (int)l);
        if (!m)
            return;
        mbarrier_complete_tx(w, (int)l, m, row32(w, in->op[2])[l]);
    }
}

RUN(mbarrier_pending)
{
    FOR_LANES(l, mask) row32(w, in->op[0])[l] = (u32)row64(w, in->op[1])[l];
}

/* -- waits ----------------------------------------------------------------------------------- */

/* Whether the phase that the lane names has ended. */
static bool has_ended(struct warp *w, const struct insn *in, int lane, const struct mbarrier *m, bool by_parity)
{
    if (by_parity) {
        const u32 parity = row32(w, in->op[3])[lane];
        if (parity > 1)
            fault(w, REPORT_MBARRIER, lane, "waits for parity %u; it is 0 or 1", parity);
        return (m->phase & 1) != parity;
    }
    const u32 phase = (u32)(row64(w, in->op[3])[lane] >> 32);
    if (phase != m->phase && phase + 1 != m->phase)
        fault(w, REPORT_MBARRIER, lane,
              "waits with the state of phase %u at the mbarrier at shared offset %u, which is in "
              "phase %u",
              phase, m->offset, m->phase);
    return phase != m->phase;
}

static void learn(struct warp *w, const struct insn *in, const struct mbarrier *m)
{
    if (in->mod[MOD_STRONG] == STRONG_RELAXED)
        return;
    clock_join(w->seen, m->released[0], w->cta->n_agents);
    if (is_of_cluster_scope(in))
        clock_join(w->seen, m->released[1], w->cta->n_agents);
    update_seen_all(w);
}

struct poll {
    u32 done;
    struct mbarrier *first_left; /* of the lanes whose phase has not ended */
};

static bool poll(struct warp *w, const struct insn *in, u32 mask, bool by_parity, struct poll *p)
{
    FOR_LANES(l, mask)
    {
        struct mbarrier *m = near_operand(w, in, 1, (int)l);
        if (!m)
            return false;
        if (has_ended(w, in, (int)l, m, by_parity))
            p->done |= 1u << l;
        else if (!p->first_left)
            p->first_left = m;
        if (w->event == EVENT_FAULT)
            return false;
    }
    return true;
}

/* The answer may be used: what was waited for is ordered before. */
static void answer(struct warp *w, const struct insn *in, u32 mask, u32 done)
{
    const struct mbarrier *last = NULL;
    pred_set(w, in->op[0], mask, done);
    FOR_LANES(l, done)
    {
        const struct mbarrier *m = near_operand(w, in, 1, (int)l);
        if (m != last)
            learn(w, in, m);
        last = m;
        w->cta->cluster->idle_polls = 0;
    }
}

static void fail_to_wait(struct warp *w, const struct insn *in, u32 mask, const struct poll *p)
{
    char what[512];
    answer(w, in, mask, p->done);
    w->event = EVENT_YIELD;
    if (++w->cta->cluster->idle_polls < MAX_IDLE_POLLS)
        return;
    w->mbarrier = (u32)(p->first_left - w->cta->hopper->mbarriers) + 1;
    mbarrier_describe(w->cta, w, what, sizeof what);
    fault(w, REPORT_DEADLOCK, first_lane(mask & ~p->done), "polls on and on, and no warp arrives: it waits for %s",
          what);
}

static void test_wait(struct warp *w, const struct insn *in, u32 mask, bool by_parity)
{
    struct poll p = {0};
    if (!poll(w, in, mask, by_parity, &p))
        return;
    if (p.done == mask)
        answer(w, in, mask, p.done);
    else
        fail_to_wait(w, in, mask, &p);
}

/* May give up, and does so the first time: code that tries but once must not get away with it. The
 * second time the warp sleeps until the phase ends, and tries again. */
static void try_wait(struct warp *w, const struct insn *in, u32 mask, bool by_parity)
{
    struct poll p = {0};
    if (!poll(w, in, mask, by_parity, &p))
        return;
    if (p.done == mask) {
        answer(w, in, mask, p.done);
        w->gave_up_at = NO_PC;
    } else if (w->gave_up_at != in->serial) {
        w->gave_up_at = in->serial;
        fail_to_wait(w, in, mask, &p);
    } else {
        w->mbarrier = (u32)(p.first_left - w->cta->hopper->mbarriers) + 1;
        w->is_blocked = true;
        w->pc = in->serial;
        w->event = EVENT_BLOCK;
    }
}

RUN(mbarrier_test)
{
    test_wait(w, in, mask, false);
}

RUN(mbarrier_test_parity)
{
    test_wait(w, in, mask, true);
}

RUN(mbarrier_try)
{
    try_wait(w, in, mask, false);
}

RUN(mbarrier_try_parity)
{
    try_wait(w, in, mask, true);
}

/* "the end of phase 3 (parity 1) of the mbarrier at shared offset 64, made at line 20: ..; 1 of 2
 * arrivals and 512 bytes are due" */
void mbarrier_describe(const struct cta *c, const struct warp *w, char *out, size_t size)
{
    const struct mbarrier *m = &c->hopper->mbarriers[w->mbarrier - 1];
    char insn[320];
    describe_insn(insn, sizeof insn, c->kernel, m->init_at);
    snprintf(out, size,
             "the end of phase %u (parity %u) of the mbarrier at shared offset %u, for which %u of "
             "%u arrivals and %d bytes are due; made at %s",
             m->phase, m->phase & 1, m->offset, m->pending, m->expected, m->tx, insn);
}
