/* owner.c - races on global memory: who of this launch stored to a place last.
 *
 * A place is a granule as wide as the kernel's narrowest global access. Stores to it by two CTAs
 * leave a result that depends on their order, and a load of what another CTA stores in the same
 * launch may come before it: both are reported, unless values agree or the accesses are strong
 * (volatile, relaxed, atomic). Within a CTA the clocks of shared.c decide. Loads are not
 * remembered, so a store after an unordered load is found in other seeds or never; and a kernel
 * with a fence of gpu scope is trusted to order its CTAs by flags. */
#include "emu.h"

#include <stdlib.h>

enum { CTA_SHIFT = 32, TIME_SHIFT = 8, STRONG = 1 << 5, WARP = 31 };

static u64 *owner_table(struct allocation *a, u32 log2)
{
    u64 *table = __atomic_load_n(&a->owner, __ATOMIC_ACQUIRE), *none = NULL;
    if (table)
        return table;
    table = calloc((a->bytes >> log2) + 1, sizeof *table);
    if (__atomic_compare_exchange_n(&a->owner, &none, table, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return table;
    free(table); /* another thread was faster */
    return none;
}

static bool is_ordered(const struct warp *w, u64 old, u64 self, int what)
{
    const u32 warp = (u32)old & WARP, time = (u32)old >> TIME_SHIFT;
    if (!old || (old & STRONG && what & ACCESS_STRONG))
        return true;
    if (old >> CTA_SHIFT != self >> CTA_SHIFT)
        return w->kernel->has_gpu_fence;
    return warp == w->id || time <= w->seen_all || time <= w->seen[warp];
}

/* False after a fault. For stores `value` is what will be written to `to`. */
bool owner_access(struct warp *w, const struct insn *in, int lane, u64 address, u32 bytes, int what,
                  const u8 *to, const u8 *value)
{
    const struct cta *c = w->cta;
    struct allocation *a = c->cached[in->serial];
    const u32 log2 = w->kernel->global_granule_log2;
    if (!(c->launch->config->checks & TGEMU_CHECK_GLOBAL))
        return true;
    if (what & ACCESS_READ && !__atomic_load_n(&a->owner, __ATOMIC_RELAXED))
        return true; /* nobody has stored here yet */
    u64 *table = owner_table(a, log2);
    if (!table)
        return true;
    const u64 self = (c->index + 1) << CTA_SHIFT | (u64)(c->now & 0xffffff) << TIME_SHIFT |
                     (what & ACCESS_STRONG ? (u64)STRONG : 0) | w->id;
    const u64 first = (address - a->base) >> log2, last = (address - a->base + bytes - 1) >> log2;
    for (u64 g = first; g <= last; g++) {
        const u64 old = what & ACCESS_READ ? __atomic_load_n(&table[g], __ATOMIC_RELAXED)
                                           : __atomic_exchange_n(&table[g], self, __ATOMIC_RELAXED);
        if (is_ordered(w, old, self, what) || (value && !memcmp(to, value, bytes)))
            continue;
        fault(w, REPORT_GLOBAL_RACE, lane,
              "%s global address 0x%llx, which warp %u of CTA %llu has stored to, with nothing "
              "to order them",
              what & ACCESS_READ ? "reads" : "writes a different value to",
              (unsigned long long)(a->base + (g << log2)), (u32)old & WARP,
              (unsigned long long)(old >> CTA_SHIFT) - 1);
        return false;
    }
    return true;
}

/* After a launch. */
void owner_forget(struct memory *m)
{
    for (u32 i = 0; i < m->n; i++) {
        free(m->list[i]->owner);
        m->list[i]->owner = NULL;
    }
}
