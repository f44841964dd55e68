/* async.c - cp.async, as late and as disorderly as the memory model allows.
 *
 * From its issue to the wait that covers it a copy may write its destination at any time. So the
 * bytes are poisoned at issue and marked in flight: whoever touches them before is reported. Half
 * of the copies, at random, deliver at once and stay marked; the others deliver at the wait, in
 * random order. Then the bytes count as written by the waiting warp at that moment: the other warps
 * still need a barrier. */
#include "emu.h"

#include <stdio.h>
#include <stdlib.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

void async_reset(struct warp *w)
{
    w->pending.n = 0;
    memset(w->pending.group, 0, sizeof w->pending.group);
}

/* "cp.async of warp 1 lane 3, group 2 of its thread, line 40: ..." */
const char *async_describe(const struct cta *c, u32 offset, char *out, size_t size)
{
    char insn[320];
    for (u32 i = 0; i < c->n_warps; i++) {
        const struct pending *p = &c->warps[i].pending;
        for (u32 k = 0; k < p->n; k++) {
            const struct copy *copy = &p->list[k];
            if (offset - copy->dst >= copy->bytes)
                continue;
            describe_insn(insn, sizeof insn, c->kernel, copy->at);
            snprintf(out, size, "cp.async of warp %u lane %u, %s, at %s", i, copy->lane,
                     copy->group == p->group[copy->lane] ? "never committed" : "committed but not waited for", insn);
            return out;
        }
    }
    return "";
}

/* Whether all source bytes were written; the shadow takes it over. */
static bool copy_data(struct warp *w, const struct copy *copy)
{
    u8 *to = w->cta->shared + copy->dst;
    u32 i = 0;
    memset(to, 0, copy->bytes);
    if (!copy->src_bytes)
        return true;
    const struct allocation *a = copy->from;
    const u8 *from = a->data + (copy->src - a->base);
    const u32 unit = copy->bytes < 8 ? copy->bytes : 8; /* the source is aligned to copy->bytes */
    for (; i + unit <= copy->src_bytes; i += unit) {
        const u64 x = global_load(from + i, unit);
        memcpy(to + i, &x, unit);
    }
    for (; i < copy->src_bytes; i++)
        to[i] = (u8)global_load(from + i, 1);
    return global_is_written(a, copy->src, copy->src_bytes);
}

static void finish(struct warp *w, const struct copy *copy)
{
    struct cta *c = w->cta;
    const bool is_written = copy_data(w, copy);
    shared_access(w, c, (int)copy->lane, SHARED_BASE + copy->dst, copy->bytes, ACCESS_WRITE | ACCESS_ARRIVAL);
    if (!is_written)
        shared_mark_unwritten(c, copy->dst, copy->bytes);
}

static bool issue(struct warp *w, const struct insn *in, u32 lane, struct copy *copy)
{
    struct cta *c = w->cta;
    const u64 dst = near_address(w, address_of(w, in, 0, (int)lane));
    *copy = (struct copy){.lane = lane, .group = w->pending.group[lane], .bytes = (u32)in->imm, .at = in->serial};
    copy->src = address_of(w, in, 2, (int)lane);
    copy->src_bytes = in->op[4] == NO_OPERAND ? copy->bytes : row32(w, in->op[4])[lane];
    if (copy->src_bytes > copy->bytes) {
        fault(w, REPORT_OUT_OF_BOUNDS, (int)lane, "cp.async of %u bytes with a source of %u", copy->bytes,
              copy->src_bytes);
        return false;
    }
    if (copy->src & (copy->bytes - 1)) {
        fault(w, REPORT_MISALIGNED, (int)lane, "cp.async from global address 0x%llx, which is not a multiple of %u",
              (unsigned long long)copy->src, copy->bytes);
        return false;
    }
    /* The source may be written until it is read; whether it was, is known on arrival. */
    if (copy->src_bytes) {
        if (!c->cached[in->serial] || !allocation_holds(c->cached[in->serial], copy->src, copy->src_bytes))
            c->cached[in->serial] = memory_find(c->launch->memory, copy->src, copy->src_bytes);
        struct allocation *a = copy->from = c->cached[in->serial];
        if (!a) {
            global_access(w, in, (int)lane, copy->src, copy->bytes, ACCESS_READ);
            return false;
        }
        if (!owner_read(w, a, (int)lane, copy->src, copy->src_bytes, 0))
            return false;
    }
    u8 *to = shared_access(w, c, (int)lane, dst, copy->bytes, ACCESS_WRITE | ACCESS_ASYNC);
    if (!to)
        return false;
    copy->dst = (u32)(to - c->shared);
    copy->is_early = random_below(c, 2);
    if (copy->is_early)
        copy_data(w, copy);
    else
        memset(to, 0xff, copy->bytes);
    c->counters->cp_async_bytes += copy->src_bytes;
    c->counters->global_load_bytes += copy->src_bytes;
    return true;
}

RUN(cp_async)
{
    struct pending *p = &w->pending;
    FOR_LANES(l, mask)
    {
        if (p->n == p->capacity) {
            p->capacity = p->capacity ? 2 * p->capacity : 256;
            p->list = realloc(p->list, p->capacity * sizeof *p->list);
        }
        if (!issue(w, in, l, &p->list[p->n]))
            return;
        p->n++;
    }
}

RUN(cp_async_commit)
{
    (void)in;
    FOR_LANES(l, mask) w->pending.group[l]++;
}

/* Finishes all copies of these lanes but those of the last `keep` groups. */
static void wait_groups(struct warp *w, u32 mask, u64 keep)
{
    struct pending *p = &w->pending;
    u32 n_due = 0, kept = 0;
    struct copy *due = malloc((p->n + 1) * sizeof *due);
    for (u32 i = 0; i < p->n; i++) {
        const struct copy *copy = &p->list[i];
        if (mask >> copy->lane & 1 && copy->group + keep < p->group[copy->lane])
            due[n_due++] = *copy;
        else
            p->list[kept++] = *copy;
    }
    p->n = kept;
    while (n_due) {
        const u32 i = random_below(w->cta, n_due);
        finish(w, &due[i]);
        due[i] = due[--n_due];
    }
    free(due);
}

RUN(cp_async_wait)
{
    wait_groups(w, mask, (u64)in->imm);
}

RUN(cp_async_wait_all)
{
    run_cp_async_commit(w, in, mask);
    wait_groups(w, mask, 0);
}
