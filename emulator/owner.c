/* owner.c - races on global memory: who of this launch stored to a place last, and who has read it.
 *
 * A place is a granule as wide as the kernel's narrowest global access. Stores to it by two CTAs
 * leave a result that depends on their order, and a load by one CTA may come before or after the
 * store of another: all are reported, unless the accesses are strong (volatile, relaxed, atomic) or
 * two stores agree on the value, or the one is before the other by what CTAs tell each other
 * (release.c). Within a cluster the clocks of shared.c decide; there loads are not remembered, so a
 * store after an unordered load is found in other seeds or never. Nor are those of several clusters
 * told apart: where CTAs tell each other anything, a store after such loads passes. A kernel with a
 * fence of gpu scope is trusted to order its CTAs by flags.
 *
 * CTAs run on several threads, and which comes first must not decide whether a race is found. A
 * reader enters itself before it looks for an owner, a store makes itself owner before it looks for
 * readers: one of them sees the other. A store locks the block that its places are in until its
 * value is there, so that the next one compares with that. */
#include "emu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 32 }; /* bytes: no access is wider. Its lock is a bit of its first place's owner. */
enum {
    CTA_SHIFT = 32,
    TIME_SHIFT = 8,
    SHARED = 1 << 7, /* another CTA has stored too, the same value or as strongly, not before this one */
    LOCKED = 1 << 6,
    STRONG = 1 << 5,
    WARP = 31
};

#define SEVERAL 0xffffffffu /* readers */

/* Whether CTAs are told apart: some are not ordered, by nature, nor is the next kernel that is let begin. */
bool owner_counts_ctas(const struct cta *c)
{
    const bool others = c->launch->n_ctas > 1 || c->kernel->lets_next_begin;
    return others && !c->kernel->has_gpu_fence && c->launch->config->checks & TGEMU_CHECK_GLOBAL;
}

/* The table behind *at, made on first use; NULL if there is no memory for it. */
static void *shared_table(void **at, u64 n, size_t size)
{
    void *table = __atomic_load_n(at, __ATOMIC_ACQUIRE), *none = NULL;
    if (table)
        return table;
    table = calloc(n, size);
    if (__atomic_compare_exchange_n(at, &none, table, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return table;
    free(table); /* another thread was faster */
    return none;
}

static u64 granule(const struct warp *w, const struct allocation *a, u64 address)
{
    return (address - a->base) >> w->kernel->global_granule_log2;
}

static u64 address_of_granule(const struct warp *w, const struct allocation *a, u64 g)
{
    return a->base + (g << w->kernel->global_granule_log2);
}

/* The CTA of the cluster that has stored, or NULL. */
static const struct cta *member(const struct cluster *k, u64 old)
{
    for (u32 r = 0; r < k->n; r++)
        if (old >> CTA_SHIFT == k->cta[r]->index + 1)
            return k->cta[r];
    return NULL;
}

/* Is the store before what the warp does now? */
static bool comes_before(struct warp *w, u64 old)
{
    const u32 warp = (u32)old & WARP, time = (u32)old >> TIME_SHIFT;
    const struct cta *by = member(w->cta->cluster, old);
    if (w->kernel->has_gpu_fence)
        return !by || is_before(w, agent_of(by, warp), time);
    if (old & SHARED)
        return false;
    if (old == w->known_store || (by && is_before(w, agent_of(by, warp), time)))
        return true;
    if (!release_orders(w, (old >> CTA_SHIFT) - 1, warp, time))
        return false;
    w->known_store = old;
    return true;
}

static bool is_ordered(struct warp *w, u64 old, int what)
{
    return !old || (old & STRONG && what & ACCESS_STRONG) || comes_before(w, old);
}

/* -- loads ----------------------------------------------------------------------------------- */

/* Whether that was news. */
static bool enter_reader(const struct cta *c, u32 *place, u32 self)
{
    u32 old = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (old == self || old == SEVERAL)
        return false;
    if (!c->is_parallel)
        *place = old ? SEVERAL : self;
    else if (old || !__atomic_compare_exchange_n(place, &old, self, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        __atomic_store_n(place, SEVERAL, __ATOMIC_RELAXED);
    return true;
}

/* Two at once: most are entered already. */
static bool are_entered(const u32 *places, u32 self)
{
    const u64 two = __atomic_load_n((const u64 *)(const void *)places, __ATOMIC_RELAXED);
    const u32 low = (u32)two, high = (u32)(two >> 32);
    return (low == self || low == SEVERAL) && (high == self || high == SEVERAL);
}

static void enter_readers(struct warp *w, struct allocation *a, u64 first, u64 last, int what)
{
    const struct cta *c = w->cta;
    bool is_new = false;
    const u32 self = (u32)c->cluster->index + 1;
    u32 *table = shared_table((void **)&a->reader[what & ACCESS_STRONG ? 1 : 0], granule(w, a, a->base + a->bytes) + 1,
                              sizeof *table);
    for (u64 g = first; table && g <= last; g++) {
        if (!(g & 1) && g < last && are_entered(&table[g], self))
            g++;
        else
            is_new |= enter_reader(c, &table[g], self);
    }
    if (is_new && c->is_parallel)
        full_fence(); /* the reader is there before the owner is looked up */
}

/* A plain load of what this launch has not stored to anywhere, which is all of most inputs; false: see owner_read. */
bool owner_read_inputs(struct warp *w, struct allocation *a, u64 address, u32 bytes)
{
    if (owner_counts_ctas(w->cta))
        enter_readers(w, a, granule(w, a, address), granule(w, a, address + bytes - 1), 0);
    return !__atomic_load_n(&a->owner, __ATOMIC_ACQUIRE);
}

/* False after a fault. */
bool owner_read(struct warp *w, struct allocation *a, int lane, u64 address, u32 bytes, int what)
{
    const u64 first = granule(w, a, address), last = granule(w, a, address + bytes - 1);
    if (owner_counts_ctas(w->cta))
        enter_readers(w, a, first, last, what);
    const u64 *table = __atomic_load_n(&a->owner, __ATOMIC_ACQUIRE);
    if (!table || !(w->cta->launch->config->checks & TGEMU_CHECK_GLOBAL))
        return true;
    for (u64 g = first; g <= last; g++) {
        const u64 old = __atomic_load_n(&table[g], __ATOMIC_RELAXED) & ~(u64)LOCKED;
        if (is_ordered(w, old, what))
            continue;
        fault(w, REPORT_GLOBAL_RACE, lane,
              "reads global address 0x%llx, which warp %u of CTA %llu has stored to, with nothing "
              "to order them",
              (unsigned long long)address_of_granule(w, a, g), (u32)old & WARP,
              (unsigned long long)(old >> CTA_SHIFT) - 1);
        return false;
    }
    return true;
}

/* -- stores ---------------------------------------------------------------------------------- */

static void lock_block(u64 *block)
{
    u64 old = __atomic_load_n(block, __ATOMIC_RELAXED);
    for (;;) {
        if (old & LOCKED) {
            sched_yield();
            old = __atomic_load_n(block, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(block, &old, old | LOCKED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return;
        }
    }
}

static void unlock_block(u64 *block)
{
    const u64 owner = __atomic_load_n(block, __ATOMIC_RELAXED) & ~(u64)LOCKED;
    __atomic_store_n(block, owner, __ATOMIC_RELEASE);
}

/* Makes this warp the owner; tells who was. The lock stays. */
static u64 take_over(struct warp *w, u64 *place, u64 self)
{
    const u64 was = __atomic_load_n(place, __ATOMIC_RELAXED), old = was & ~(u64)LOCKED;
    u64 new = self | (was & LOCKED);
    if (old && (old & SHARED || ((old ^ self) >> CTA_SHIFT && !comes_before(w, old))))
        new = (new | SHARED) & (old | ~(u64)STRONG);
    __atomic_store_n(place, new, __ATOMIC_RELAXED);
    return old;
}

struct store {
    struct warp *w;
    struct allocation *a;
    u64 *owner;      /* NULL: not checked */
    u64 first, last; /* places */
    u32 bytes, unit;
    int lane, what;
    u8 *to;
    const u8 *value; /* NULL: an atomic operation, which stores by itself */
};

/* The reader is not known to be unordered: when it read is not remembered. */
static bool may_be_before(const struct warp *w, u32 reader)
{
    return w->kernel->has_release && (reader == SEVERAL || release_tells_of(w, reader - 1));
}

/* A reader of these places in another cluster, or SEVERAL, or 0. */
static u32 other_reader(const struct store *s, int kind)
{
    const u32 self = (u32)s->w->cta->cluster->index + 1;
    const u32 *table = __atomic_load_n(&s->a->reader[kind], __ATOMIC_ACQUIRE);
    for (u64 g = s->first; table && g <= s->last; g++) {
        const u32 reader = __atomic_load_n(&table[g], __ATOMIC_RELAXED);
        if (reader && reader != self && !may_be_before(s->w, reader))
            return reader;
    }
    return 0;
}

static bool check_readers(const struct store *s)
{
    char who[32] = "several CTAs have";
    u32 reader = other_reader(s, 0);
    if (!reader && !(s->what & ACCESS_STRONG))
        reader = other_reader(s, 1);
    if (!reader)
        return true;
    if (reader != SEVERAL)
        snprintf(who, sizeof who, "%s %u has", s->w->cta->cluster->n > 1 ? "cluster" : "CTA", reader - 1);
    fault(s->w, REPORT_GLOBAL_RACE, s->lane, "writes global address 0x%llx, which %s read, with nothing to order them",
          (unsigned long long)address_of_granule(s->w, s->a, s->first), who);
    return false;
}

static bool agrees(const struct store *s)
{
    for (u32 i = 0; s->value && i < s->bytes; i++)
        if (global_load(s->to + i, 1) != s->value[i])
            return false;
    return s->value;
}

static bool check_owners(const struct store *s)
{
    struct warp *w = s->w;
    const struct cta *c = w->cta;
    const u64 self = (c->index + 1) << CTA_SHIFT | (u64)(c->cluster->now & 0xffffff) << TIME_SHIFT |
                     (s->what & ACCESS_STRONG ? (u64)STRONG : 0) | w->id;
    for (u64 g = s->first; g <= s->last; g++) {
        const u64 old = take_over(w, &s->owner[g], self);
        if (is_ordered(w, old, s->what) || agrees(s))
            continue;
        fault(w, REPORT_GLOBAL_RACE, s->lane,
              "writes a different value to global address 0x%llx, which warp %u of CTA %llu has "
              "stored to, with nothing to order them",
              (unsigned long long)address_of_granule(w, s->a, g), (u32)old & WARP,
              (unsigned long long)(old >> CTA_SHIFT) - 1);
        return false;
    }
    return true;
}

static bool check_store(const struct store *s)
{
    const struct cta *c = s->w->cta;
    if (!check_owners(s))
        return false;
    if (!owner_counts_ctas(c))
        return true;
    if (c->is_parallel)
        full_fence(); /* the owners are there before the readers are looked up */
    return check_readers(s);
}

static void put_value(const struct store *s)
{
    for (u32 i = 0; s->value && i < s->bytes; i += s->unit) {
        u64 x = 0;
        memcpy(&x, s->value + i, s->unit);
        global_store(s->to + i, s->unit, x);
    }
}

/* Stores value to the place; an atomic operation, without a value, only announces itself. False
 * after a fault. */
bool owner_store(struct warp *w, const struct insn *in, int lane, u64 address, u32 bytes, int what, u8 *to,
                 const u8 *value)
{
    const struct cta *c = w->cta;
    struct allocation *a = c->cached[in->serial];
    struct store s = {.w = w,
                      .a = a,
                      .first = granule(w, a, address),
                      .last = granule(w, a, address + bytes - 1),
                      .bytes = bytes,
                      .unit = in->mod[MOD_TYPE] ? type_bytes(in->mod[MOD_TYPE])
                              : bytes < 8       ? bytes
                                                : 8, /* of a bulk copy */
                      .lane = lane,
                      .what = what,
                      .to = to,
                      .value = value};
    if (c->launch->config->checks & TGEMU_CHECK_GLOBAL)
        s.owner = shared_table((void **)&a->owner, granule(w, a, a->base + a->bytes) + 1, sizeof *s.owner);
    u64 *lock = NULL;
    if (s.owner && c->is_parallel)
        lock = &s.owner[granule(w, a, address & ~(u64)(BLOCK - 1))];
    if (lock)
        lock_block(lock);
    const bool ok = !s.owner || check_store(&s);
    if (ok)
        put_value(&s);
    if (lock)
        unlock_block(lock);
    return ok;
}

/* After a launch. */
void owner_forget(struct memory *m)
{
    for (u32 i = 0; i < m->n; i++) {
        struct allocation *a = m->list[i];
        free(a->owner);
        free(a->reader[0]);
        free(a->reader[1]);
        a->owner = NULL;
        a->reader[0] = a->reader[1] = NULL;
        release_forget(a);
    }
}
