/* warp.c - runs a cluster: which warp next, which lanes of it, what instruction.
 *
 * A warp whose lanes part at a jump keeps a stack of frames and brings them together again at the
 * jump's immediate post-dominator (cfg.c). Between accesses to memory and synchronisation the order
 * of warps does not matter, so only there may another warp go on, chosen at random. */
#include "hopper.h"

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

enum { MAX_PATIENCE = 12 };

/* xorshift64*: from 0 to n - 1. */
u32 random_below(struct cta *c, u32 n)
{
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return (u32)((c->random * 0x2545f4914f6cdd1dull >> 32) * n >> 32);
}

/* -- divergence ------------------------------------------------------------------------------ */

static void push_frame(struct warp *w, u32 pc, u32 until, u32 mask)
{
    if (pc == until)
        return; /* these lanes are there already */
    if (w->depth == sizeof w->stack / sizeof *w->stack) {
        fault(w, REPORT_DIVERGENT, ALL_LANES, "lanes diverge too deeply");
        return;
    }
    w->stack[w->depth++] = (struct frame){pc, until, mask};
}

/* Goes on with the next frame that still has lanes. */
static void pop_frame(struct warp *w)
{
    while (w->depth) {
        const struct frame *f = &w->stack[--w->depth];
        w->pc = f->pc;
        w->until = f->until;
        w->mask = f->mask & ~w->exited;
        if (w->mask && w->pc != w->until)
            return;
    }
    w->mask = 0;
    w->is_done = true;
    w->event = EVENT_EXIT;
}

/* Leaves a frame to come back to at the meeting point; returns that point. */
static u32 begin_split(struct warp *w, const struct insn *in)
{
    const u32 meet = in->reconverge == NO_PC ? w->until : in->reconverge;
    if (meet != w->until)
        push_frame(w, meet, w->until, w->mask);
    return meet;
}

static void split(struct warp *w, const struct insn *in, u32 taken)
{
    const u32 others = w->mask & ~taken, target = (u32)in->imm, next = w->pc;
    const u32 meet = begin_split(w, in);
    const bool swap = random_below(w->cta, 2);
    push_frame(w, swap ? target : next, meet, swap ? taken : others);
    w->until = meet;
    w->pc = swap ? next : target;
    w->mask = swap ? others : taken;
}

RUN(bra)
{
    if (mask == w->mask)
        w->pc = (u32)in->imm;
    else
        split(w, in, mask);
}

RUN(brx)
{
    const struct table *t = &w->kernel->tables[in->imm];
    const u32 *index = row32(w, in->op[0]);
    const u32 whole = w->mask, next = w->pc, meet = begin_split(w, in);
    if (whole & ~mask)
        push_frame(w, next, meet, whole & ~mask);
    for (u32 rest = mask; rest;) {
        const u32 i = index[first_lane(rest)];
        u32 same = 0;
        FOR_LANES(l, rest) same |= (u32)(index[l] == i) << l;
        if (i >= t->n) {
            fault(w, REPORT_OUT_OF_BOUNDS, first_lane(rest), "brx.idx %u of %u targets", i, t->n);
            return;
        }
        push_frame(w, t->target[i], meet, same);
        rest &= ~same;
    }
    pop_frame(w);
}

RUN(exit)
{
    (void)in;
    w->exited |= mask;
    w->mask &= ~mask;
    if (!w->mask)
        pop_frame(w);
}

RUN(trap)
{
    (void)in;
    fault(w, REPORT_TRAP, first_lane(mask), "trap");
}

/* -- running --------------------------------------------------------------------------------- */

static void after_access(struct warp *w)
{
    struct cta *c = w->cta;
    if (c->patience--)
        return;
    c->patience = random_below(c, MAX_PATIENCE);
    if (!w->event)
        w->event = EVENT_YIELD;
}

/* Until it blocks, ends, fails, or another one's turn has come. */
static void warp_run(struct warp *w)
{
    struct cta *c = w->cta;
    const struct insn *code = w->kernel->code;
    const u64 limit = c->launch->config->step_limit;
    u64 lanes = 0;
    w->event = EVENT_NONE;
    do {
        const struct insn *in = &code[w->pc++];
        const u32 mask = w->mask & pred_get(w, in->guard);
        w->at = in;
        lanes += mask == FULL_MASK ? LANES : (u32)__builtin_popcount(mask);
        if (mask && (!in->n_touched || in->is_wgmma || wgmma_lets_touch(w, in)))
            in->run(w, in, mask);
        while (w->pc == w->until && !w->is_done)
            pop_frame(w);
        if (++c->steps > limit)
            fault(w, REPORT_STEP_LIMIT, ALL_LANES, "more than %llu instructions in one CTA: an endless loop?",
                  (unsigned long long)limit);
        if (in->kind >= KIND_ACCESS)
            after_access(w);
    } while (!w->event);
    c->counters->lane_instructions += lanes;
}

static bool is_late(const struct warp *w)
{
    return w->id / 4 == w->cta->late_group;
}

/* Any that can go on; but a group of warps that is late only where no other can: what one role of a kernel does long before another
 * needs it must be waited for all the same. */
static struct warp *choose_warp(struct cluster *k)
{
    struct warp *ready[MAX_CLUSTER * MAX_WARPS];
    u32 n = 0, n_late = 0;
    for (u32 r = 0; r < k->n; r++)
        for (u32 i = 0; i < k->cta[r]->n_warps; i++) {
            struct warp *w = &k->cta[r]->warps[i];
            if (w->is_done || w->is_blocked)
                continue;
            ready[n++] = w;
            if (!is_late(w))
                continue;
            ready[n - 1] = ready[n_late];
            ready[n_late++] = w;
        }
    const u32 first = n_late < n ? n_late : 0;
    return n ? ready[first + random_below(k->cta[0], n - first)] : NULL;
}

static bool is_finished(const struct cta *c)
{
    for (u32 i = 0; i < c->n_warps; i++)
        if (!c->warps[i].is_done)
            return false;
    return true;
}

/* Something asynchronous comes to its end; false if there is nothing. */
static bool hurry(struct cluster *k)
{
    const u32 first = k->n > 1 ? random_below(k->cta[0], k->n) : 0;
    for (u32 i = 0; i < k->n; i++)
        if (bulk_hurry(k->cta[(first + i) % k->n]))
            return true;
    return false;
}

/* One before it has failed, for which it may wait. */
static bool is_given_up(const struct cluster *k)
{
    return __atomic_load_n(k->stop_at, __ATOMIC_RELAXED) < k->index;
}

/* Runs the cluster to its end or its first fault, which is in the CTAs' report. */
void cluster_run(struct cluster *k)
{
    const struct report *report = k->cta[0]->report;
    u32 n_left = k->n;
    while (!report->is_set && n_left && !is_given_up(k)) {
        for (u32 r = 0; r < k->n && k->cta[r]->hopper; r++)
            bulk_step(k->cta[r]);
        struct warp *w = choose_warp(k);
        if (w)
            warp_run(w);
        else if (!hurry(k))
            break;
        if (report->is_set || !w || !w->is_done)
            continue;
        cluster_check_barrier(k);
        if (!is_finished(w->cta))
            continue;
        cluster_end_cta(w->cta);
        n_left--;
    }
    for (u32 r = 0; r < k->n; r++)
        k->cta[r]->counters->instructions += k->cta[r]->steps;
    if (!report->is_set && n_left && !is_given_up(k))
        barriers_check_stuck(k);
}
