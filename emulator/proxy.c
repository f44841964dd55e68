/* proxy.c - the async proxy's view of shared memory: what bulk copies and wgmma may read, and when
 * what they read may be written again.
 *
 * They do not see what a thread has stored by ordinary means before that thread's
 * fence.proxy.async, which must come before whatever orders the store and the reader. So each
 * warp's last fences are kept, with their times and lanes. The memory model would take a fence
 * anywhere on the way; we want the writer's, which is what everybody writes. */
#include "hopper.h"

#include <stdio.h>
#include <string.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

static void note_fence(struct warp *w, u32 mask, u32 covers)
{
    struct cta *c = w->cta;
    struct fences *f = &c->hopper->fences[w->id];
    f->list[f->n++ % MAX_FENCES] = (struct fence){.time = c->cluster->now++, .mask = mask, .covers = covers};
}

/* fence.acq_rel.cta, and behind it fence.proxy.async: the assembler makes of the two what it makes of PTX 8.6's
 * fence.release.sync_restrict::shared::cta.cluster, so that an arrival behind them orders shared memory between the CTAs of
 * a cluster, whatever its scope. */
static u32 *seen_at_fence(const struct warp *w, u32 which)
{
    return w->cta->hopper->fenced + ((size_t)w->id * 2 + which) * w->cta->n_agents;
}

void proxy_note_fence(struct warp *w)
{
    if (!w->cta->hopper)
        return;
    memcpy(seen_at_fence(w, 0), w->seen, w->cta->n_agents * sizeof *w->seen);
    seen_at_fence(w, 0)[w->agent] = w->cta->cluster->now++;
}

const u32 *proxy_released(const struct warp *w)
{
    return seen_at_fence(w, 1);
}

RUN(fence_proxy_async)
{
    (void)in;
    note_fence(w, mask, FENCE_SHARED | FENCE_INIT);
    memcpy(seen_at_fence(w, 1), seen_at_fence(w, 0), w->cta->n_agents * sizeof(u32));
}

/* Global memory's proxies are not told apart. */
RUN(fence_proxy_global)
{
    (void)w;
    (void)in;
    (void)mask;
}

RUN(fence_mbarrier_init)
{
    (void)in;
    note_fence(w, mask, FENCE_INIT | FENCE_INIT_CLUSTER);
}

/* The lanes that have fenced what they did at that time, as far as this warp comes after it. */
static u32 fenced_lanes(const struct warp *w, u32 writer, u32 time, u32 covers)
{
    const struct fences *f = &cta_of(w->cta, writer)->hopper->fences[writer % CTA_AGENTS];
    const u32 known = writer == w->agent ? UINT32_MAX : w->seen[writer];
    const u32 oldest = f->n > MAX_FENCES ? f->n - MAX_FENCES : 0;
    u32 lanes = 0;
    for (u32 i = f->n; i-- > oldest;) {
        const struct fence *x = &f->list[i % MAX_FENCES];
        if (x->time < time)
            return lanes;
        if (x->time <= known && x->covers & covers)
            lanes |= x->mask;
    }
    return oldest ? FULL_MASK : lanes; /* longer ago than is remembered */
}

bool proxy_was_fenced(const struct warp *w, u32 writer, u32 lane, u32 time, u32 covers)
{
    return fenced_lanes(w, writer, time, covers) >> lane & 1;
}

static void report_unfenced(struct warp *w, const struct cta *c, int lane, u32 g, u32 writer, u32 by, int what)
{
    const struct shadow *s = &c->shadow;
    const u32 bytes = 1u << s->granule_log2;
    char insn[320];
    describe_insn(insn, sizeof insn, w->kernel, s->write_at[g]);
    fault(w, REPORT_PROXY, lane,
          "%s through the async proxy shared bytes %u..%u, which warp %u lane %u has written: no "
          "fence.proxy.async by that thread comes between\n    at %s",
          what & ACCESS_WRITE ? "writes" : "reads", g * bytes, (g + 1) * bytes - 1, writer % CTA_AGENTS, by, insn);
}

static bool is_checked(const struct warp *w)
{
    return w->cta->launch->config->checks & TGEMU_CHECK_RACES;
}

/* What the lanes of a warp have stored at one time, and which of them have fenced it: most granules
 * are like those before them. */
struct stored {
    u64 word; /* but for its lane */
    u32 fenced;
};

static bool is_fenced(struct warp *w, const struct cta *c, int lane, u32 g, int what, struct stored *same)
{
    const u64 last = c->shadow.write[g];
    const u32 writer = last & SHADOW_AGENT, by = last >> SHADOW_LANE_SHIFT & (LANES - 1);
    if (!last || !is_warp(writer) || !is_checked(w))
        return true;
    if (same->word != (last & ~SHADOW_LANE)) {
        same->word = last & ~SHADOW_LANE;
        same->fenced = fenced_lanes(w, writer, (u32)(last >> SHADOW_TIME_SHIFT), FENCE_SHARED);
    }
    if (same->fenced >> by & 1)
        return true;
    report_unfenced(w, c, lane, g, writer, by, what);
    return false;
}

/* Whether the async proxy may read what lies there, for this warp. */
bool proxy_check_read(struct warp *w, int lane, u32 offset, u32 bytes)
{
    const struct shadow *s = &w->cta->shadow;
    struct stored same = {0};
    u64 good = 0; /* most granules have the same last write */
    for (u32 g = offset >> s->granule_log2; g <= (offset + bytes - 1) >> s->granule_log2; g++) {
        if (s->write[g] == good && good)
            continue;
        if (!shared_check_read(w, w->cta, lane, g, ACCESS_READ | ACCESS_PROXY) ||
            !is_fenced(w, w->cta, lane, g, ACCESS_READ, &same))
            return false;
        good = s->write[g];
    }
    return true;
}

/* Whether it may write there, as far as stores by ordinary means go. */
bool proxy_check_write(struct warp *w, struct cta *c, int lane, u32 offset, u32 bytes)
{
    const struct shadow *s = &c->shadow;
    struct stored same = {0};
    for (u32 g = offset >> s->granule_log2; g <= (offset + bytes - 1) >> s->granule_log2; g++)
        if (!is_fenced(w, c, lane, g, ACCESS_WRITE, &same))
            return false;
    return true;
}

/* Other lanes of what was seen last need no look of their own: it is readable. */
static bool add_origin(struct warp *w, struct origins *o, u32 g)
{
    const u64 word = w->cta->shadow.write[g], same = word & ~SHADOW_LANE;
    if (!same || same != (o->last & ~SHADOW_LANE)) {
        if (!shared_check_read(w, w->cta, ALL_LANES, g, ACCESS_READ | ACCESS_PROXY))
            return false;
        for (o->at = 0; o->at < o->n && o->list[o->at].word != same; o->at++)
            ;
        if (o->at == o->n && o->n < MAX_ORIGINS)
            o->list[o->n++] = (struct origin){.word = same, .granule = g};
    }
    o->last = word;
    if (o->at < MAX_ORIGINS)
        o->list[o->at].lanes |= 1u << ((word & SHADOW_LANE) >> SHADOW_LANE_SHIFT);
    return true;
}

/* What the async proxy will read: readable for this warp, and by whom it was written. */
bool proxy_add_origins(struct warp *w, struct origins *o, const struct operand_units *units)
{
    const struct shadow *s = &w->cta->shadow;
    const u32 per_unit = ASYNC_UNIT >> s->granule_log2;
    for (u32 i = 0; i < units->n; i++) {
        const u32 first = units->offset[i] >> s->granule_log2;
        for (u32 g = first; g < first + per_unit; g++)
            if ((s->write[g] != o->last || !o->last) && !add_origin(w, o, g))
                return false;
    }
    return true;
}

static bool check_origin(struct warp *w, const struct origin *x)
{
    const u32 writer = x->word & SHADOW_AGENT, time = (u32)(x->word >> SHADOW_TIME_SHIFT);
    if (!is_before(w, writer, time) && !shared_check_read(w, w->cta, ALL_LANES, x->granule, ACCESS_READ | ACCESS_PROXY))
        return false;
    if (!x->word || !is_warp(writer) || !is_checked(w))
        return true;
    const u32 unfenced = x->lanes & ~fenced_lanes(w, writer, time, FENCE_SHARED);
    if (!unfenced)
        return true;
    report_unfenced(w, w->cta, ALL_LANES, x->granule, writer, (u32)first_lane(unfenced), ACCESS_READ);
    return false;
}

/* Whether this warp may read what they have written. What it may read once it may read again. */
bool proxy_check_origins(struct warp *w, const struct origins *o)
{
    struct origin *fine = w->cta->hopper->fine[w->id];
    for (u32 i = 0; i < o->n; i++) {
        const struct origin *x = &o->list[i];
        struct origin *known = &fine[(x->word ^ x->word >> SHADOW_TIME_SHIFT) % MAX_ORIGINS];
        if (known->word == x->word && !(x->lanes & ~known->lanes))
            continue;
        if (!check_origin(w, x))
            return false;
        if (known->word != x->word)
            *known = (struct origin){.word = x->word};
        known->lanes |= x->lanes;
    }
    return true;
}

/* From now on until proxy_end_read() nobody may write there. */
void proxy_begin_read(struct cta *c, u32 offset, u32 bytes)
{
    for (u32 i = offset / ASYNC_UNIT; i <= (offset + bytes - 1) / ASYNC_UNIT; i++)
        c->hopper->readers[i]++;
}

void proxy_end_read(struct cta *c, u32 offset, u32 bytes)
{
    for (u32 i = offset / ASYNC_UNIT; i <= (offset + bytes - 1) / ASYNC_UNIT; i++)
        c->hopper->readers[i]--;
}

/* Whether no asynchronous operation still reads there; else a fault. */
bool proxy_lets_write(struct warp *w, struct cta *c, int lane, u32 offset, u32 bytes)
{
    char reader[512];
    if (!(c->launch->config->checks & TGEMU_CHECK_IN_FLIGHT))
        return true;
    for (u32 i = offset / ASYNC_UNIT; i <= (offset + bytes - 1) / ASYNC_UNIT; i++) {
        if ((c->hopper->wgmma_read && !wgmma_lets_write(w, c, lane, i)) ||
            (c->hopper->sent && !bulk_lets_write(w, c, lane, i)))
            return false;
        if (!c->hopper->readers[i])
            continue;
        if (!wgmma_describe_reader(c, i, reader, sizeof reader))
            bulk_describe_store(c, i * ASYNC_UNIT, reader, sizeof reader);
        fault(w, REPORT_IN_FLIGHT, lane, "writes shared byte %u, which is still to be read\n    %s", offset, reader);
        return false;
    }
    return true;
}
