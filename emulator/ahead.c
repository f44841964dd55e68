/* ahead.c - a kernel that runs beside the one ahead of it on the stream.
 *
 * Grids run one after the other here, so what a kernel does before griddepcontrol.wait is compared with what the one ahead has
 * touched, all of it: that may come before or after. It must have let this one begin (griddepcontrol.launch_dependents) when
 * it had itself waited for what is ahead of it, or nothing may be touched yet. And some CTA has to wait in the end: the next
 * kernel waits for this one alone. */
#include "emu.h"

#include <stdlib.h>

enum { READ = 1, STORED = 2 };

static void mark(struct allocation *a, u32 granule_log2)
{
    const u64 n = (a->bytes >> granule_log2) + 1;
    if (!a->owner && !a->reader[0] && !a->reader[1])
        return;
    a->ahead = calloc(a->bytes + 1, 1);
    for (u64 g = 0; a->ahead && g < n; g++) {
        const bool is_read = (a->reader[0] && a->reader[0][g]) || (a->reader[1] && a->reader[1][g]);
        const u8 marks = (u8)((is_read ? READ : 0) | (a->owner && a->owner[g] ? STORED : 0));
        const u64 begin = g << granule_log2, end = (g + 1) << granule_log2;
        for (u64 i = begin; i < end && i < a->bytes; i++)
            a->ahead[i] = marks;
    }
}

/* After a launch, whose owners and readers are still known. */
void ahead_remember(const struct launch *l, bool lets_next_begin)
{
    struct memory *m = l->memory;
    for (u32 i = 0; i < m->n; i++) {
        free(m->list[i]->ahead);
        m->list[i]->ahead = NULL;
        if (lets_next_begin && !m->list[i]->is_freed)
            mark(m->list[i], l->kernel->global_granule_log2);
    }
    m->lets_next_begin = lets_next_begin;
}

/* False after a fault. */
bool ahead_allows(struct warp *w, const struct allocation *a, int lane, u64 address, u32 bytes, int what)
{
    const u8 *marks = a->ahead ? a->ahead + (address - a->base) : NULL;
    const int conflicts = what & ACCESS_WRITE ? READ | STORED : STORED;
    if (!w->cta->launch->memory->lets_next_begin) {
        fault(
            w, REPORT_OVERLAP, lane,
            "touches global address 0x%llx before griddepcontrol.wait: the kernel ahead, which may still run, overlaps with "
            "this one",
            (unsigned long long)address);
        return false;
    }
    for (u32 i = 0; marks && i < bytes; i++) {
        if (!(marks[i] & conflicts))
            continue;
        fault(w, REPORT_OVERLAP, lane, "%s global address 0x%llx before griddepcontrol.wait, which the kernel ahead %s",
              what & ACCESS_WRITE ? "writes" : "reads", (unsigned long long)(address + i),
              marks[i] & STORED ? "stores to" : "reads");
        return false;
    }
    return true;
}
