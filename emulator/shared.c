/* shared.c - shared memory and its shadow: races, bytes in flight, bytes never written, bank
 * conflicts.
 *
 * Two accesses by different warps to one place, one of them a write, race unless a barrier lies
 * between them. The CTA has one clock, which steps when barriers complete and when a warp arrives
 * without waiting. Each place remembers the time and agent of its last write and the time and warps
 * of the reads since; each warp knows, for every other agent, up to which time that one's accesses
 * lie before its own (warp->seen, a vector clock; sync.c and mbarrier.c move it).
 *
 * A place is a granule: as many bytes as the kernel's narrowest access to shared memory has.
 * Accesses are aligned to their width, so each covers whole granules and nothing is lost by not
 * looking closer. */
#include "hopper.h"

#include <stdlib.h>

enum {
    AGENT = 0xff,
    WRITTEN = 1 << 8,
    IN_FLIGHT = 2 << 8,
    STRONG = 4 << 8,
    LANE_SHIFT = 16,
    TIME_SHIFT = 32,
};

#define MIXED 0xffffffffu /* read_gen: see history */

bool shadow_init(struct cta *c)
{
    struct shadow *s = &c->shadow;
    s->granule_log2 = c->kernel->granule_log2;
    s->n = (c->shared_bytes + (1u << s->granule_log2) - 1) >> s->granule_log2;
    u32 **arrays[] = {&s->read_gen, &s->read_mask, &s->write_at, &s->read_at, &s->store_id};
    bool ok = (s->write = calloc(s->n + 1, sizeof *s->write)) != NULL;
    for (u32 i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ok &= (*arrays[i] = calloc(s->n + 1, sizeof(u32))) != NULL;
    return ok;
}

void shadow_free(struct shadow *s)
{
    free(s->write);
    free(s->read_gen);
    free(s->read_mask);
    free(s->write_at);
    free(s->read_at);
    free(s->store_id);
    free(s->history);
}

/* For a new CTA: nothing is written, and what lies there is noise. */
void shadow_reset(struct cta *c)
{
    struct shadow *s = &c->shadow;
    memset(c->shared, 0xff, c->shared_bytes);
    memset(s->write, 0, s->n * sizeof *s->write);
    memset(s->read_gen, 0, s->n * sizeof(u32));
    memset(s->read_mask, 0, s->n * sizeof(u32));
    memset(s->store_id, 0, s->n * sizeof(u32));
    if (s->history)
        memset(s->history, 0, (size_t)s->n * c->n_warps * sizeof(u32));
    c->now = 1;
    c->store_id = 0;
}

bool is_before(const struct warp *w, u32 agent, u32 time)
{
    return agent == w->id || (agent < MAX_WARPS && time <= w->seen_all) || time <= w->seen[agent];
}

static void report_race(struct warp *w, int lane, u32 g, int what, u32 other, const char *other_did,
                        u32 at)
{
    char insn[320];
    const u32 bytes = 1u << w->cta->shadow.granule_log2;
    describe_insn(insn, sizeof insn, w->kernel, at);
    fault(w, REPORT_SHARED_RACE, lane,
          "%s shared bytes %u..%u, which warp %u %s with no barrier between\n    at %s",
          what & ACCESS_ASYNC   ? "starts a cp.async to"
          : what & ACCESS_WRITE ? "writes"
                                : "reads",
          g * bytes, (g + 1) * bytes - 1, other, other_did, insn);
}

static void report_in_flight(struct warp *w, int lane, u32 g, int what)
{
    char copy[512];
    const u32 offset = g << w->cta->shadow.granule_log2;
    fault(w, REPORT_IN_FLIGHT, lane,
          "%s shared byte %u, to which a cp.async is in flight: no cp.async.wait_group by its "
          "thread covers it\n    %s",
          what & ACCESS_WRITE ? "writes" : "reads", offset,
          async_describe(w->cta, offset, copy, sizeof copy));
}

/* What holds for reads and writes: the last write is finished and lies before. */
static bool check_last_write(struct warp *w, int lane, u32 g, int what)
{
    const struct shadow *s = &w->cta->shadow;
    const u64 last = s->write[g];
    const u32 checks = w->cta->launch->config->checks;
    if (last & IN_FLIGHT && checks & TGEMU_CHECK_IN_FLIGHT) {
        report_in_flight(w, lane, g, what);
        return false;
    }
    if (!last || !(checks & TGEMU_CHECK_RACES) ||
        is_before(w, last & AGENT, (u32)(last >> TIME_SHIFT)) ||
        (last & STRONG && what & ACCESS_STRONG))
        return true;
    report_race(w, lane, g, what, last & AGENT, "wrote", s->write_at[g]);
    return false;
}

/* Several warps read at different times, unordered: from now on each has its own entry. */
static void keep_history(struct cta *c, u32 g)
{
    struct shadow *s = &c->shadow;
    if (!s->history)
        s->history = calloc((size_t)s->n * c->n_warps, sizeof(u32));
    if (!s->history)
        return;
    FOR_LANES(r, s->read_mask[g]) s->history[g * c->n_warps + r] = s->read_gen[g];
    s->read_gen[g] = MIXED;
}

static bool reads_are_before(const struct warp *w, u32 g, u32 *other)
{
    const struct cta *c = w->cta;
    const struct shadow *s = &c->shadow;
    if (s->read_gen[g] <= w->seen_all)
        return true;
    FOR_LANES(r, s->read_mask[g])
    {
        const u32 time = s->read_gen[g] == MIXED ? s->history[g * c->n_warps + r] : s->read_gen[g];
        *other = r;
        if (!is_before(w, r, time))
            return false;
    }
    return true;
}

static void note_read(struct warp *w, u32 g)
{
    struct cta *c = w->cta;
    struct shadow *s = &c->shadow;
    u32 other;
    s->read_at[g] = w->at->serial;
    if (s->read_gen[g] == MIXED) {
        s->history[g * c->n_warps + w->id] = c->now;
        s->read_mask[g] |= 1u << w->id;
    } else if (s->read_gen[g] == c->now) {
        s->read_mask[g] |= 1u << w->id;
    } else if (reads_are_before(w, g, &other)) {
        s->read_gen[g] = c->now;
        s->read_mask[g] = 1u << w->id;
    } else {
        keep_history(c, g);
        if (s->read_gen[g] == MIXED)
            s->history[g * c->n_warps + w->id] = c->now;
        s->read_mask[g] |= 1u << w->id;
    }
}

static bool read_granule(struct warp *w, int lane, u32 g, int what)
{
    const struct shadow *s = &w->cta->shadow;
    if (!check_last_write(w, lane, g, what))
        return false;
    if (!(s->write[g] & (WRITTEN | IN_FLIGHT)) &&
        w->cta->launch->config->checks & TGEMU_CHECK_UNWRITTEN) {
        const u32 offset = g << s->granule_log2;
        fault(w, REPORT_UNWRITTEN, lane, "reads shared byte %u, which %s", offset,
              s->write[g] ? "was copied by cp.async from global bytes never written"
                          : "nothing has written");
        return false;
    }
    if (!(what & ACCESS_STRONG))
        note_read(w, g);
    return true;
}

static bool write_granule(struct warp *w, int lane, u32 g, int what)
{
    struct cta *c = w->cta;
    struct shadow *s = &c->shadow;
    u32 other;
    if (!(what & ACCESS_ARRIVAL)) {
        if (!check_last_write(w, lane, g, what))
            return false;
        if (c->launch->config->checks & TGEMU_CHECK_RACES && !reads_are_before(w, g, &other)) {
            report_race(w, lane, g, what, other, "read", s->read_at[g]);
            return false;
        }
    }
    const u64 by_plain = (u64)c->now << TIME_SHIFT | (u64)WRITTEN | w->id;
    /* A plain store of this moment still races with the others, though an atomic of the same warp
     * came after it. */
    if (what & ACCESS_STRONG && (s->write[g] & ~((u64)(LANES - 1) << LANE_SHIFT)) == by_plain)
        what &= ~ACCESS_STRONG;
    s->write[g] = (u64)c->now << TIME_SHIFT | (u64)(lane & 31) << LANE_SHIFT |
                  (what & ACCESS_ASYNC ? (u64)IN_FLIGHT : (u64)WRITTEN) |
                  (what & ACCESS_STRONG ? (u64)STRONG : 0u) | w->id;
    s->write_at[g] = w->at->serial;
    if (s->read_gen[g] == MIXED)
        memset(s->history + g * c->n_warps, 0, c->n_warps * sizeof(u32));
    s->read_gen[g] = s->read_mask[g] = 0;
    return true;
}

/* Host memory of a shared address; NULL after a fault. An access that reads and writes is an atomic
 * one. */
u8 *shared_access(struct warp *w, int lane, u64 address, u32 bytes, int what)
{
    struct cta *c = w->cta;
    const u64 offset = address - SHARED_BASE;
    if (offset >= c->shared_bytes || bytes > c->shared_bytes - offset) {
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "%u bytes at shared offset %lld; the CTA has %u bytes",
              bytes, (long long)offset, c->shared_bytes);
        return NULL;
    }
    if (address & (bytes - 1)) {
        fault(w, REPORT_MISALIGNED, lane,
              "%u bytes at shared offset %llu, which is not a multiple of %u", bytes,
              (unsigned long long)offset, bytes);
        return NULL;
    }
    if (c->hopper && mbarrier_covers(w, lane, (u32)offset, bytes, what))
        return NULL;
    const u32 log2 = c->shadow.granule_log2;
    const u32 first = (u32)offset >> log2, last = (u32)(offset + bytes - 1) >> log2;
    for (u32 g = first; g <= last; g++) {
        if (what & ACCESS_READ && !read_granule(w, lane, g, what))
            return NULL;
        if (what & ACCESS_WRITE && !write_granule(w, lane, g, what))
            return NULL;
    }
    return c->shared + offset;
}

/* Two lanes of one store in one place must agree; `old` is what lies there. */
bool shared_store_conflicts(struct warp *w, int lane, u32 offset, u32 bytes, const u8 *old,
                            const u8 *value)
{
    struct cta *c = w->cta;
    struct shadow *s = &c->shadow;
    const u32 log2 = s->granule_log2, size = 1u << log2;
    for (u32 i = 0; i < bytes; i += size) {
        u32 *id = &s->store_id[(offset + i) >> log2];
        if (*id == c->store_id && memcmp(old + i, value + i, size) &&
            c->launch->config->checks & TGEMU_CHECK_RACES) {
            fault(w, REPORT_LANE_CONFLICT, lane,
                  "writes shared byte %u, to which another lane of the same store writes a "
                  "different value",
                  offset + i);
            return true;
        }
        *id = c->store_id;
    }
    return false;
}

void shared_mark_unwritten(struct cta *c, u32 offset, u32 bytes)
{
    struct shadow *s = &c->shadow;
    for (u32 g = offset >> s->granule_log2; g <= (offset + bytes - 1) >> s->granule_log2; g++)
        s->write[g] &= ~(u64)WRITTEN;
}

/* Passes needed by these lanes together: the most words any of the 32 banks must give. */
static u32 passes(const u64 *address, u32 mask, u32 bytes)
{
    u32 words[32][32], n[32] = {0}, most = 0;
    FOR_LANES(l, mask)
    {
        for (u32 b = 0; b < (bytes + 3) / 4; b++) {
            const u32 word = (u32)(address[l] / 4) + b, bank = word % 32;
            u32 i = 0;
            while (i < n[bank] && words[bank][i] != word)
                i++;
            if (i == n[bank])
                words[bank][n[bank]++] = word;
            if (n[bank] > most)
                most = n[bank];
        }
    }
    return most;
}

/* The hardware serves at most 128 bytes at a time: 32 lanes of 4 bytes, 16 of 8, 8 of 16. */
void count_wavefronts(struct cta *c, const u64 *address, u32 mask, u32 bytes)
{
    const u32 lanes = bytes <= 4 ? 32 : 128 / bytes;
    for (u32 first = 0; first < LANES; first += lanes) {
        const u32 part = mask & (lanes == 32 ? FULL_MASK : ((1u << lanes) - 1) << first);
        if (!part)
            continue;
        const u32 n = passes(address, part, bytes);
        c->counters->shared_wavefronts += n;
        c->counters->bank_conflicts += n - 1;
    }
}
