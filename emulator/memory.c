/* memory.c - the device's memory: allocations, their bounds, and which bytes were ever written.
 *
 * Device addresses are not host addresses and are never given out twice; between two allocations
 * lies a red zone. So an address is either inside one allocation that is alive, or it is a mistake
 * with a name. */
#include "emu.h"

#include <stdlib.h>

#define ALL_WRITTEN 0x0101010101010101ull

enum { ALLOCATION_ALIGN = 512, RED_ZONE = 4096, MAX_FREED = 4096 };

/* Forgets the oldest half of the freed ones. */
static void drop_tombstones(struct memory *m)
{
    u32 n_freed = 0, kept = 0, dropped = 0;
    for (u32 i = 0; i < m->n; i++)
        n_freed += m->list[i]->is_freed;
    if (n_freed < MAX_FREED)
        return;
    for (u32 i = 0; i < m->n; i++) {
        if (m->list[i]->is_freed && dropped < MAX_FREED / 2) {
            dropped++;
            free(m->list[i]);
        } else {
            m->list[kept++] = m->list[i];
        }
    }
    m->n = kept;
}

/* Zero pages from the system: what is never touched costs nothing. */
struct allocation *memory_alloc(struct memory *m, u64 bytes)
{
    struct allocation *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->data = calloc(bytes + 1, 1);
    a->written = calloc(bytes + 1, 1);
    if (m->n == m->capacity) {
        const u32 capacity = m->capacity ? 2 * m->capacity : 64;
        struct allocation **list = realloc(m->list, capacity * sizeof *list);
        if (list) {
            m->list = list;
            m->capacity = capacity;
        }
    }
    if (!a->data || !a->written || m->n == m->capacity) {
        free(a->data);
        free(a->written);
        free(a);
        return NULL;
    }
    if (!m->next_base)
        m->next_base = GLOBAL_BASE;
    a->base = m->next_base;
    a->bytes = bytes;
    m->next_base += (bytes + RED_ZONE + ALLOCATION_ALIGN - 1) & ~(u64)(ALLOCATION_ALIGN - 1);
    m->used += bytes;
    m->list[m->n++] = a;
    return a;
}

/* The last allocation that begins at or before the address, freed ones included. */
static struct allocation *find_before(const struct memory *m, u64 address)
{
    u32 low = 0, high = m->n;
    while (low < high) {
        const u32 middle = (low + high) / 2;
        if (m->list[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? m->list[low - 1] : NULL;
}

bool allocation_holds(const struct allocation *a, u64 address, u64 bytes)
{
    const u64 offset = address - a->base;
    return !a->is_freed && offset < a->bytes && bytes <= a->bytes - offset;
}

/* The living allocation that holds all of the range, or NULL. */
struct allocation *memory_find(const struct memory *m, u64 address, u64 bytes)
{
    struct allocation *a = find_before(m, address);
    return a && allocation_holds(a, address, bytes) ? a : NULL;
}

void memory_release(struct memory *m, struct allocation *a)
{
    m->used -= a->bytes;
    keep_forget(m, a);
    a->is_freed = true;
    free(a->data);
    free(a->written);
    free(a->ahead);
    a->data = a->written = a->ahead = NULL; /* between launches, so it has no owners */
    drop_tombstones(m);
}

void memory_clear(struct memory *m)
{
    owner_forget(m);
    keep_drop(m);
    for (u32 i = 0; i < m->n; i++) {
        free(m->list[i]->data);
        free(m->list[i]->written);
        free(m->list[i]->ahead);
        free(m->list[i]);
    }
    free(m->list);
    m->list = NULL;
    m->n = m->capacity = 0;
    m->used = 0; /* next_base goes on: old pointers stay invalid */
}

void memory_mark(struct allocation *a, u64 address, u64 bytes)
{
    if (a->written)
        memset(a->written + (address - a->base), 1, bytes);
    if (address == a->base && bytes == a->bytes) {
        free(a->written);
        a->written = NULL;
    }
}

bool global_is_written(const struct allocation *a, u64 address, u32 bytes)
{
    if (!a->written || !bytes)
        return true;
    const u8 *p = a->written + (address - a->base);
    const u64 aligned = (address | bytes) & (~(address | bytes) + 1);
    const u32 unit = aligned < 8 ? (u32)aligned : 8;
    const u64 ones = ALL_WRITTEN >> (64 - 8 * unit);
    for (u32 i = 0; i < bytes; i += unit)
        if (global_load(p + i, unit) != ones)
            return false;
    return true;
}

/* What several lanes load side by side, aligned: host memory, or NULL where they have to be looked at one by one. */
const u8 *global_range(struct warp *w, const struct insn *in, u64 address, u32 bytes)
{
    struct allocation **cached = &w->cta->cached[in->serial];
    if (!w->cta->has_waited)
        return NULL;
    if (!*cached || !allocation_holds(*cached, address, bytes))
        *cached = memory_find(w->cta->launch->memory, address, bytes);
    if (!*cached || !owner_read_inputs(w, *cached, address, bytes))
        return NULL;
    if (w->cta->launch->config->checks & TGEMU_CHECK_UNWRITTEN && !global_is_written(*cached, address, bytes))
        return NULL;
    return (*cached)->data + (address - (*cached)->base);
}

/* By a kernel: an aligned access. */
static void mark_stored(struct allocation *a, u64 address, u32 bytes)
{
    u8 *p = a->written + (address - a->base);
    const u32 unit = bytes < 8 ? bytes : 8;
    for (u32 i = 0; i < bytes; i += unit)
        global_store(p + i, unit, ALL_WRITTEN);
}

static void report_bounds(struct warp *w, int lane, u64 address, u32 bytes)
{
    const struct allocation *a = find_before(w->cta->launch->memory, address);
    if (!a)
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "%u bytes at global address 0x%llx, which is no device memory", bytes,
              (unsigned long long)address);
    else if (a->is_freed && address - a->base < a->bytes)
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "%u bytes at 0x%llx, in memory that was freed (0x%llx, %llu bytes)", bytes,
              (unsigned long long)address, (unsigned long long)a->base, (unsigned long long)a->bytes);
    else
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "%u bytes at 0x%llx: offset %llu of the allocation 0x%llx of %llu bytes",
              bytes, (unsigned long long)address, (unsigned long long)(address - a->base), (unsigned long long)a->base,
              (unsigned long long)a->bytes);
}

/* Host memory of a device address; NULL after a fault. */
u8 *global_access(struct warp *w, const struct insn *in, int lane, u64 address, u32 bytes, int what)
{
    struct allocation *a = w->cta->cached[in->serial];
    if (!a || !allocation_holds(a, address, bytes)) {
        a = memory_find(w->cta->launch->memory, address, bytes);
        if (!a) {
            report_bounds(w, lane, address, bytes);
            return NULL;
        }
        w->cta->cached[in->serial] = a;
    }
    if (address & (bytes - 1)) {
        fault(w, REPORT_MISALIGNED, lane, "%u bytes at global address 0x%llx, which is not a multiple of %u", bytes,
              (unsigned long long)address, bytes);
        return NULL;
    }
    if (!w->cta->has_waited && !ahead_allows(w, a, lane, address, bytes, what))
        return NULL;
    if (what & ACCESS_READ && !owner_read(w, a, lane, address, bytes, what))
        return NULL;
    if (!(what & ACCESS_WRITE) && w->cta->launch->config->checks & TGEMU_CHECK_UNWRITTEN &&
        !global_is_written(a, address, bytes)) {
        fault(w, REPORT_UNWRITTEN, lane,
              "reads %u bytes at 0x%llx (offset %llu of an allocation of %llu bytes), not all of "
              "which were ever written",
              bytes, (unsigned long long)address, (unsigned long long)(address - a->base),
              (unsigned long long)a->bytes);
        return NULL;
    }
    if (what & ACCESS_WRITE && a->written)
        mark_stored(a, address, bytes);
    return a->data + (address - a->base);
}
