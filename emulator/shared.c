/* shared.c - shared memory and its shadow: races, bytes in flight, bytes never written, bank
 * conflicts.
 *
 * Two accesses by different warps to one place, one of them a write, race unless a barrier lies
 * between them. The cluster has one clock, which steps when barriers complete and when a warp
 * arrives without waiting. Each place remembers the time and agent of its last write and the time
 * and warps of the reads since; each warp knows, for every other agent, up to which time that one's
 * accesses lie before its own (warp->seen, a vector clock; sync.c and mbarrier.c move it).
 *
 * A place is a granule: as many bytes as the kernel's narrowest access to shared memory has.
 * Accesses are aligned to their width, so each covers whole granules and nothing is lost by not
 * looking closer. */
#include "hopper.h"

#include <stdio.h>
#include <stdlib.h>

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
    free(s->far_ranks);
    free(s->far);
}

/* For a new CTA: nothing is written, and what lies there is noise. Of the history only what the new one has noted is read. */
void shadow_reset(struct cta *c)
{
    struct shadow *s = &c->shadow;
    memset(c->shared, 0xff, c->shared_bytes);
    if (s->is_used) {
        memset(s->write, 0, s->n * sizeof *s->write);
        memset(s->read_gen, 0, s->n * sizeof(u32));
        memset(s->read_mask, 0, s->n * sizeof(u32));
    }
    if (s->far_ranks)
        memset(s->far_ranks, 0, s->n);
    s->is_used = true;
}

bool is_before(const struct warp *w, u32 agent, u32 time)
{
    return agent == w->agent || time <= w->seen[agent];
}

static const char *verb(int what)
{
    return what & ACCESS_PROXY   ? (what & ACCESS_WRITE ? "starts a bulk copy to" : "reads")
           : what & ACCESS_ASYNC ? "starts a cp.async to"
           : what & ACCESS_WRITE ? "writes"
                                 : "reads";
}

/* " of CTA 1 of the cluster", if that is not the warp's own. */
static const char *whose(const struct warp *w, const struct cta *c, char out[40])
{
    *out = 0;
    if (c != w->cta)
        snprintf(out, 40, " of CTA %u of the cluster", c->rank);
    return out;
}

static void report_race(struct warp *w, const struct cta *c, int lane, u32 g, int what, u32 other,
                        const char *other_did, u32 at)
{
    char insn[320], place[40], by[40];
    const u32 bytes = 1u << c->shadow.granule_log2;
    describe_insn(insn, sizeof insn, w->kernel, at);
    whose(w, c, place);
    if (other % CTA_AGENTS >= AGENT_MBARRIER)
        fault(w, REPORT_IN_FLIGHT, lane,
              "%s shared bytes %u..%u%s, which a bulk copy wrote; no wait for its mbarrier, at "
              "shared "
              "offset %u, has come before\n    the copy is at %s",
              verb(what), g * bytes, (g + 1) * bytes - 1, place,
              c->hopper->mbarriers[other % CTA_AGENTS - AGENT_MBARRIER].offset, insn);
    else
        fault(w, REPORT_SHARED_RACE, lane,
              "%s shared bytes %u..%u%s, which warp %u%s %s with no barrier between\n    at %s", verb(what), g * bytes,
              (g + 1) * bytes - 1, place, other % CTA_AGENTS, whose(w, cta_of(c, other), by), other_did, insn);
}

static void report_in_flight(struct warp *w, const struct cta *c, int lane, u32 g, int what)
{
    char copy[512];
    const u32 offset = g << c->shadow.granule_log2;
    const bool is_bulk = !is_warp((u32)c->shadow.write[g] & SHADOW_AGENT);
    if (is_bulk)
        bulk_describe_load(c, offset, copy, sizeof copy);
    else
        async_describe(c, offset, copy, sizeof copy);
    fault(w, REPORT_IN_FLIGHT, lane, "%s shared byte %u, to which a %s\n    %s", verb(what), offset,
          is_bulk ? "bulk copy is in flight: the phase of its mbarrier has not ended"
                  : "cp.async is in flight: no cp.async.wait_group by its thread covers it",
          copy);
}

/* What holds for reads and writes: the last write is finished and lies before. */
static bool check_last_write(struct warp *w, const struct cta *c, int lane, u32 g, int what)
{
    const struct shadow *s = &c->shadow;
    const u64 last = s->write[g];
    const u32 checks = c->launch->config->checks;
    if (last & SHADOW_IN_FLIGHT && checks & TGEMU_CHECK_IN_FLIGHT) {
        report_in_flight(w, c, lane, g, what);
        return false;
    }
    if (!last || !(checks & TGEMU_CHECK_RACES))
        return true;
    if (is_before(w, last & SHADOW_AGENT, (u32)(last >> SHADOW_TIME_SHIFT))) {
        if (last & SHADOW_WRITTEN)
            w->known = last & ~SHADOW_LANE;
        return true;
    }
    if (last & SHADOW_STRONG && what & ACCESS_STRONG)
        return true;
    report_race(w, c, lane, g, what, last & SHADOW_AGENT, "wrote", s->write_at[g]);
    return false;
}

static u32 *far_reads(const struct cta *c, u32 g, u32 rank)
{
    return c->shadow.far + ((size_t)g * c->cluster->n + rank) * c->n_warps;
}

/* By a warp of another CTA. */
static void note_far_read(const struct warp *w, struct cta *c, u32 g)
{
    struct shadow *s = &c->shadow;
    const u32 rank = w->cta->rank;
    if (!s->far)
        s->far = malloc((size_t)(s->n + 1) * c->cluster->n * c->n_warps * sizeof(u32));
    if (!s->far_ranks)
        s->far_ranks = calloc(s->n + 1, 1);
    if (!s->far || !s->far_ranks)
        abort();
    if (!(s->far_ranks[g] >> rank & 1))
        memset(far_reads(c, g, rank), 0, c->n_warps * sizeof(u32));
    s->far_ranks[g] |= (u8)(1u << rank);
    far_reads(c, g, rank)[w->id] = c->cluster->now;
}

static bool far_reads_are_before(const struct warp *w, const struct cta *c, u32 g, u32 *other)
{
    FOR_LANES(rank, c->shadow.far_ranks[g])
    for (u32 i = 0; i < c->n_warps; i++) {
        *other = rank * CTA_AGENTS + i;
        if (!is_before(w, *other, far_reads(c, g, rank)[i]))
            return false;
    }
    return true;
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

/* Those of the CTA's own warps. */
static bool near_reads_are_before(const struct warp *w, const struct cta *c, u32 g, u32 *other)
{
    const struct shadow *s = &c->shadow;
    if (c == w->cta && s->read_gen[g] <= w->seen_all)
        return true;
    FOR_LANES(r, s->read_mask[g])
    {
        const u32 time = s->read_gen[g] == MIXED ? s->history[g * c->n_warps + r] : s->read_gen[g];
        *other = agent_of(c, r);
        if (!is_before(w, *other, time))
            return false;
    }
    return true;
}

static bool reads_are_before(const struct warp *w, const struct cta *c, u32 g, u32 *other)
{
    return near_reads_are_before(w, c, g, other) && (!c->shadow.far_ranks || far_reads_are_before(w, c, g, other));
}

static void note_read(struct warp *w, struct cta *c, u32 g)
{
    struct shadow *s = &c->shadow;
    const u32 now = c->cluster->now;
    u32 other;
    s->read_at[g] = w->at->serial;
    if (c != w->cta) {
        note_far_read(w, c, g);
    } else if (s->read_gen[g] == MIXED) {
        s->history[g * c->n_warps + w->id] = now;
        s->read_mask[g] |= 1u << w->id;
    } else if (s->read_gen[g] == now) {
        s->read_mask[g] |= 1u << w->id;
    } else if (near_reads_are_before(w, c, g, &other)) {
        s->read_gen[g] = now;
        s->read_mask[g] = 1u << w->id;
    } else {
        keep_history(c, g);
        if (s->read_gen[g] == MIXED)
            s->history[g * c->n_warps + w->id] = now;
        s->read_mask[g] |= 1u << w->id;
    }
}

/* Whether what lies there may be read: it is written, and before. */
bool shared_check_read(struct warp *w, struct cta *c, int lane, u32 g, int what)
{
    const struct shadow *s = &c->shadow;
    char place[40];
    if (!check_last_write(w, c, lane, g, what))
        return false;
    if (!(s->write[g] & (SHADOW_WRITTEN | SHADOW_IN_FLIGHT)) && c->launch->config->checks & TGEMU_CHECK_UNWRITTEN) {
        const u32 offset = g << s->granule_log2;
        fault(w, REPORT_UNWRITTEN, lane, "reads shared byte %u%s, which %s", offset, whose(w, c, place),
              s->write[g] ? "was copied from global bytes never written" : "nothing has written");
        return false;
    }
    return true;
}

static bool is_known(const struct warp *w, u64 word)
{
    return (word & ~SHADOW_LANE) == w->known;
}

static bool read_granule(struct warp *w, struct cta *c, int lane, u32 g, int what)
{
    if (!is_known(w, c->shadow.write[g]) && !shared_check_read(w, c, lane, g, what))
        return false;
    if (!(what & ACCESS_STRONG))
        note_read(w, c, g);
    return true;
}

/* All at once where that is plain: of the warp's own CTA, the last write of all of them known, reads of this moment or before. False:
 * one by one. */
static bool read_granules(struct warp *w, struct cta *c, u32 first, u32 last, int what)
{
    struct shadow *s = &c->shadow;
    const u32 now = c->cluster->now, self = 1u << w->id;
    u64 differs = what & ACCESS_STRONG || c != w->cta;
    for (u32 g = first; g <= last; g++)
        differs |= ((s->write[g] ^ w->known) & ~SHADOW_LANE) | (s->read_gen[g] != now && s->read_gen[g] > w->seen_all);
    if (differs)
        return false;
    for (u32 g = first; g <= last; g++) {
        s->read_mask[g] = (s->read_gen[g] == now ? s->read_mask[g] : 0) | self;
        s->read_gen[g] = now;
        s->read_at[g] = w->at->serial;
    }
    return true;
}

static bool may_write(struct warp *w, const struct cta *c, int lane, u32 g, int what)
{
    const struct shadow *s = &c->shadow;
    u32 other;
    if (s->write[g] && !is_known(w, s->write[g]) && !check_last_write(w, c, lane, g, what))
        return false;
    if ((!s->read_mask[g] && !s->far_ranks) || reads_are_before(w, c, g, &other) ||
        !(c->launch->config->checks & TGEMU_CHECK_RACES))
        return true;
    report_race(w, c, lane, g, what, other, "read", s->read_at[g]);
    return false;
}

static bool write_granule(struct warp *w, struct cta *c, int lane, u32 g, int what)
{
    struct shadow *s = &c->shadow;
    const u64 now = (u64)c->cluster->now << SHADOW_TIME_SHIFT;
    if (!(what & ACCESS_ARRIVAL) && !may_write(w, c, lane, g, what))
        return false;
    const u64 by_plain = now | (u64)SHADOW_WRITTEN | w->agent;
    /* A plain store of this moment still races with the others, though an atomic of the same warp
     * came after it. */
    if (what & ACCESS_STRONG && (s->write[g] & ~SHADOW_LANE) == by_plain)
        what &= ~ACCESS_STRONG;
    s->write[g] = now | (u64)(lane & 31) << SHADOW_LANE_SHIFT |
                  (what & ACCESS_ASYNC ? (u64)SHADOW_IN_FLIGHT : (u64)SHADOW_WRITTEN) |
                  (what & ACCESS_STRONG ? (u64)SHADOW_STRONG : 0u) | w->agent;
    s->write_at[g] = w->at->serial;
    s->read_gen[g] = s->read_mask[g] = 0;
    if (s->far_ranks)
        s->far_ranks[g] = 0;
    return true;
}

/* The last write of the first granule; those of the others are like it, mostly. False after a fault. */
static bool is_first_known(struct warp *w, struct cta *c, int lane, u32 g, int what)
{
    const u64 last = c->shadow.write[g];
    if (what & ACCESS_ARRIVAL || is_known(w, last))
        return true;
    return what & ACCESS_READ ? shared_check_read(w, c, lane, g, what) : !last || check_last_write(w, c, lane, g, what);
}

/* As read_granules. What has arrived was asked at its issue. */
static bool write_granules(struct warp *w, struct cta *c, int lane, u32 first, u32 last, int what)
{
    struct shadow *s = &c->shadow;
    bool differs = what & ACCESS_STRONG || c != w->cta || s->far_ranks;
    for (u32 g = first; g <= last && !(what & ACCESS_ARRIVAL); g++)
        differs |= (s->write[g] && !is_known(w, s->write[g])) || (s->read_mask[g] && s->read_gen[g] > w->seen_all);
    if (differs)
        return false;
    const u64 word = (u64)c->cluster->now << SHADOW_TIME_SHIFT | (u64)(lane & 31) << SHADOW_LANE_SHIFT |
                     (what & ACCESS_ASYNC ? (u64)SHADOW_IN_FLIGHT : (u64)SHADOW_WRITTEN) | w->agent;
    for (u32 g = first; g <= last; g++) {
        s->write[g] = word;
        s->write_at[g] = w->at->serial;
        s->read_gen[g] = s->read_mask[g] = 0;
    }
    return true;
}

/* Host memory of an address in the shared memory of a CTA, the warp's own or another of its
 * cluster; NULL after a fault. An access that reads and writes is an atomic one. */
u8 *shared_access(struct warp *w, struct cta *c, int lane, u64 address, u32 bytes, int what)
{
    const u64 offset = address - SHARED_BASE;
    if (offset >= c->shared_bytes || bytes > c->shared_bytes - offset) {
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "%u bytes at shared offset %lld; the CTA has %u bytes", bytes,
              (long long)offset, c->shared_bytes);
        return NULL;
    }
    if (address & (bytes - 1)) {
        fault(w, REPORT_MISALIGNED, lane, "%u bytes at shared offset %llu, which is not a multiple of %u", bytes,
              (unsigned long long)offset, bytes);
        return NULL;
    }
    if (!cluster_lets_visit(w, c, lane))
        return NULL;
    cluster_note_visit(c, w->agent, w->at->serial);
    if (c->hopper && mbarrier_covers(w, c, lane, (u32)offset, bytes, what))
        return NULL;
    if (c->hopper && what & ACCESS_WRITE && !proxy_lets_write(w, c, lane, (u32)offset, bytes))
        return NULL;
    const u32 log2 = c->shadow.granule_log2;
    const u32 first = (u32)offset >> log2, last = (u32)(offset + bytes - 1) >> log2;
    const int how = what & (ACCESS_READ | ACCESS_WRITE);
    if (!is_first_known(w, c, lane, first, what))
        return NULL;
    if ((how == ACCESS_READ && read_granules(w, c, first, last, what)) ||
        (how == ACCESS_WRITE && write_granules(w, c, lane, first, last, what)))
        return c->shared + offset;
    for (u32 g = first; g <= last; g++) {
        if (what & ACCESS_READ && !read_granule(w, c, lane, g, what))
            return NULL;
        if (what & ACCESS_WRITE && !write_granule(w, c, lane, g, what))
            return NULL;
    }
    return c->shared + offset;
}

static bool holds_mbarrier(const struct cta *c, u32 offset, u32 bytes)
{
    bool has = false;
    for (u32 i = offset / 8; c->hopper && i <= (offset + bytes - 1) / 8; i++)
        has |= c->hopper->mbarrier_at[i];
    return has;
}

/* What lanes load side by side, aligned, from their own CTA, `lane` first: host memory, or NULL after a fault or where they have to be
 * looked at one by one. */
const u8 *shared_range(struct warp *w, int lane, u64 address, u32 bytes)
{
    struct cta *c = w->cta;
    const u64 offset = address - SHARED_BASE;
    const u32 log2 = c->shadow.granule_log2, first = (u32)offset >> log2;
    if (offset >= c->shared_bytes || bytes > c->shared_bytes - offset || holds_mbarrier(c, (u32)offset, bytes) ||
        !is_first_known(w, c, lane, first, ACCESS_READ))
        return NULL;
    return read_granules(w, c, first, (u32)(offset + bytes - 1) >> log2, ACCESS_READ) ? c->shared + offset : NULL;
}

/* Whether what is known of a granule is what is known of the one before. */
static bool is_like_last(const struct shadow *s, u32 g)
{
    return !((s->write[g] ^ s->write[g - 1]) & ~SHADOW_LANE) && !s->far_ranks &&
           s->read_mask[g] == s->read_mask[g - 1] && s->read_gen[g] == s->read_gen[g - 1] && s->read_gen[g] != MIXED;
}

/* Whether a bulk copy, issued by the warp, may write these bytes of a CTA's shared memory, which
 * are there, and the CTA is; then they count as in flight to the mbarrier's agent. */
bool shared_begin_copy(struct warp *w, struct cta *c, u32 lane, u32 offset, u32 bytes, u32 agent)
{
    struct shadow *s = &c->shadow;
    const u32 first = offset >> s->granule_log2, n = bytes >> s->granule_log2;
    if (mbarrier_covers(w, c, (int)lane, offset, bytes, ACCESS_WRITE) ||
        !proxy_lets_write(w, c, (int)lane, offset, bytes))
        return false;
    for (u32 g = first; g < first + n; g++)
        if (!(g > first && is_like_last(s, g)) && !may_write(w, c, (int)lane, g, ACCESS_WRITE | ACCESS_PROXY))
            return false;
    memset(s->read_gen + first, 0, n * sizeof *s->read_gen);
    memset(s->read_mask + first, 0, n * sizeof *s->read_mask);
    if (s->far_ranks)
        memset(s->far_ranks + first, 0, n);
    shared_set_writer(c, offset, bytes, (u64)c->cluster->now << SHADOW_TIME_SHIFT | (u64)SHADOW_IN_FLIGHT | agent,
                      w->at->serial);
    return true;
}

/* Two lanes of one store in one place must agree; `old` is what lies there. */
bool shared_store_conflicts(struct warp *w, struct cta *c, int lane, u32 offset, u32 bytes, const u8 *old,
                            const u8 *value)
{
    struct shadow *s = &c->shadow;
    const u32 log2 = s->granule_log2, size = 1u << log2, self = w->cta->cluster->store_id;
    for (u32 i = 0; i < bytes; i += size) {
        u32 *id = &s->store_id[(offset + i) >> log2];
        if (*id == self && memcmp(old + i, value + i, size) && c->launch->config->checks & TGEMU_CHECK_RACES) {
            fault(w, REPORT_LANE_CONFLICT, lane,
                  "writes shared byte %u, to which another lane of the same store writes a "
                  "different value",
                  offset + i);
            return true;
        }
        *id = self;
    }
    return false;
}

/* The granules of these bytes have been read by the warp just now. */
void shared_note_reads(struct warp *w, u32 offset, u32 bytes)
{
    const u32 log2 = w->cta->shadow.granule_log2;
    for (u32 g = offset >> log2; g <= (offset + bytes - 1) >> log2; g++)
        note_read(w, w->cta, g);
}

/* They were written by an agent that is no warp: `word` says who and when. */
void shared_set_writer(struct cta *c, u32 offset, u32 bytes, u64 word, u32 at)
{
    struct shadow *s = &c->shadow;
    for (u32 g = offset >> s->granule_log2; g <= (offset + bytes - 1) >> s->granule_log2; g++) {
        s->write[g] = word;
        s->write_at[g] = at;
    }
}

void shared_mark_unwritten(struct cta *c, u32 offset, u32 bytes)
{
    struct shadow *s = &c->shadow;
    for (u32 g = offset >> s->granule_log2; g <= (offset + bytes - 1) >> s->granule_log2; g++)
        s->write[g] &= ~(u64)SHADOW_WRITTEN;
}

/* Whether these lanes' words lie among 32 in a row, each in a bank of its own. */
static bool are_near(const u64 *address, u32 mask, u32 bytes)
{
    u64 least = ~0ull, most = 0;
    FOR_LANES(l, mask)
    {
        least = address[l] < least ? address[l] : least;
        most = address[l] > most ? address[l] : most;
    }
    return (most + bytes - 1) / 4 - least / 4 < 32;
}

/* Passes needed by these lanes together: the most words any of the 32 banks must give. */
static u32 passes(const u64 *address, u32 mask, u32 bytes)
{
    if (are_near(address, mask, bytes))
        return 1;
    u32 words[32][32], n[32] = {0}, most = 0;
    u64 last = ~0ull;
    FOR_LANES(l, mask)
    {
        if (address[l] == last)
            continue;
        last = address[l];
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
    if (!(c->launch->config->checks & TGEMU_COUNT_BANKS))
        return;
    for (u32 first = 0; first < LANES; first += lanes) {
        const u32 part = mask & (lanes == 32 ? FULL_MASK : ((1u << lanes) - 1) << first);
        if (!part)
            continue;
        const u32 n = passes(address, part, bytes);
        c->counters->shared_wavefronts += n;
        c->counters->bank_conflicts += n - 1;
    }
}
