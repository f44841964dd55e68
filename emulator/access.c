/* access.c - ld, st and the parameter and local spaces. */
#include "emu.h"

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

static u8 *local_access(struct warp *w, int lane, u64 address, u32 bytes, int what)
{
    const u32 size = w->kernel->local_bytes;
    if (address >= size || bytes > size - address) {
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "%u bytes at local offset %lld; the thread has %u bytes", bytes,
              (long long)address, size);
        return NULL;
    }
    if (address & (bytes - 1)) {
        fault(w, REPORT_MISALIGNED, lane, "%u bytes at local offset %llu", bytes, (unsigned long long)address);
        return NULL;
    }
    const size_t at = (size_t)lane * size + address;
    for (u32 i = 0; i < bytes; i++) {
        if (what & ACCESS_WRITE) {
            w->local_written[at + i] = 1;
        } else if (!w->local_written[at + i] && w->cta->launch->config->checks & TGEMU_CHECK_UNWRITTEN) {
            fault(w, REPORT_UNWRITTEN, lane, "reads local byte %llu, which nothing has written",
                  (unsigned long long)address + i);
            return NULL;
        }
    }
    return w->local + at;
}

static u8 *param_access(struct warp *w, int lane, u64 address, u32 bytes, int what)
{
    const u32 size = w->kernel->param_bytes;
    if (what & ACCESS_WRITE || address >= size || bytes > size - address) {
        fault(w, REPORT_OUT_OF_BOUNDS, lane, "%u bytes at offset %lld of the %u bytes of parameters%s", bytes,
              (long long)address, size, what & ACCESS_WRITE ? ": they cannot be written" : "");
        return NULL;
    }
    if (address & (bytes - 1)) {
        fault(w, REPORT_MISALIGNED, lane, "%u bytes at parameter offset %llu", bytes, (unsigned long long)address);
        return NULL;
    }
    return w->cta->params + address;
}

/* Which space a generic address is in; changes it to an address of that space. */
u32 generic_space(u64 *address)
{
    static const struct {
        u64 base;
        u32 space;
    } windows[] = {{LOCAL_WINDOW, SPACE_LOCAL}, {SHARED_WINDOW, SPACE_SHARED}, {PARAM_WINDOW, SPACE_PARAM}};
    for (u32 i = 0; i < 3; i++)
        if (*address - windows[i].base < WINDOW_BYTES) {
            *address -= windows[i].base;
            return windows[i].space;
        }
    return SPACE_GLOBAL;
}

static int strength(const struct insn *in)
{
    return in->mod[MOD_STRONG] ? ACCESS_STRONG : 0;
}

/* Host memory of what the lane accesses; NULL after a fault. Tells where the address, as the
 * instruction has it, really is. */
u8 *resolve_access(struct warp *w, const struct insn *in, int lane, u32 bytes, int what, struct place *p)
{
    const u32 named = in->mod[MOD_SPACE];
    p->space = named == SPACE_GENERIC ? generic_space(&p->address) : named;
    p->cta = w->cta;
    what |= strength(in);
    switch (p->space) {
    case SPACE_SHARED_CLUSTER:
    case SPACE_SHARED_CTA:
    case SPACE_SHARED:
        p->space = SPACE_SHARED;
        if (named == SPACE_GENERIC || named == SPACE_SHARED_CLUSTER)
            p->cta = cluster_target(w, lane, &p->address);
        else
            p->address = near_address(w, p->address);
        return p->cta ? shared_access(w, p->cta, lane, p->address, bytes, what) : NULL;
    case SPACE_LOCAL:
        return local_access(w, lane, p->address, bytes, what);
    case SPACE_PARAM:
    case SPACE_PARAM_ENTRY:
        return param_access(w, lane, p->address, bytes, what);
    default:
        p->space = SPACE_GLOBAL;
        return global_access(w, in, lane, p->address, bytes, what);
    }
}

static u64 load_element(const u8 *p, u32 type, bool is_global)
{
    u64 x = 0;
    if (is_global)
        x = global_load(p, type_bytes(type));
    else
        memcpy(&x, p, type_bytes(type));
    switch (type) {
    case TYPE_S8:
        return (u64)(s64)(int8_t)x;
    case TYPE_S16:
        return (u64)(s64)(s16)x;
    case TYPE_S32:
        return (u64)(s64)(s32)x;
    default:
        return x;
    }
}

static void load_rows(struct warp *w, const struct insn *in, u32 mask, const u8 *const *from, u32 global)
{
    const u32 type = in->mod[MOD_TYPE], bytes = type_bytes(type);
    for (u32 e = 0; e < in->n_dst; e++) {
        if (bytes == 4 && OPERAND_BITS(in->op[e]) == 32) {
            u32 *d = row32(w, in->op[e]);
            FOR_LANES(l, mask & global) d[l] = (u32)global_load(from[l] + 4 * e, 4);
            FOR_LANES(l, mask & ~global) memcpy(&d[l], from[l] + 4 * e, 4);
        } else {
            FOR_LANES(l, mask)
            operand_store(w, in->op[e], (int)l, load_element(from[l] + bytes * e, type, global >> l & 1));
        }
    }
}

/* The first of these lanes and those behind it that load no byte before its own and leave none out; tells where they end. */
static u32 side_by_side(const u64 *address, u32 lanes, u32 bytes, u64 *end)
{
    const u64 begin = address[first_lane(lanes)];
    u32 run = 0;
    *end = begin;
    FOR_LANES(l, lanes)
    {
        if (address[l] < begin || address[l] > *end)
            break;
        if (address[l] == *end)
            *end += bytes;
        run |= 1u << l;
    }
    return run;
}

/* From global memory or the CTA's own, all lanes that are side by side at once. False, and nothing else has happened, where they have
 * to be looked at one by one. */
static bool load_side_by_side(struct warp *w, const struct insn *in, u32 mask, u32 bytes)
{
    const bool is_global = in->mod[MOD_SPACE] == SPACE_GLOBAL;
    const u8 *from[LANES];
    u64 address[LANES], offsets = 0, end;
    FOR_LANES(l, mask)
    {
        const u64 at = address_of(w, in, in->n_dst, (int)l);
        offsets |= address[l] = is_global ? at : near_address(w, at);
    }
    if (offsets & (bytes - 1))
        return false;
    for (u32 rest = mask, run; rest; rest &= ~run) {
        const int first = first_lane(rest);
        const u64 begin = address[first];
        run = side_by_side(address, rest, bytes, &end);
        const u32 n = (u32)(end - begin);
        const u8 *data = is_global ? global_range(w, in, begin, n) : shared_range(w, first, begin, n);
        if (!data)
            return w->event == EVENT_FAULT;
        FOR_LANES(l, run) from[l] = data + (address[l] - begin);
    }
    if (is_global)
        w->cta->counters->global_load_bytes += bytes * (u32)__builtin_popcount(mask);
    else
        count_wavefronts(w->cta, address, mask, bytes);
    load_rows(w, in, mask, from, is_global ? mask : 0);
    return true;
}

/* A plain load from a space that its instruction names. */
static bool may_be_side_by_side(const struct insn *in)
{
    const u32 space = in->mod[MOD_SPACE];
    return !in->mod[MOD_STRONG] && (space == SPACE_GLOBAL || space == SPACE_SHARED || space == SPACE_SHARED_CTA);
}

/* Lanes side by side that load from one address find one value. */
static void acquire(struct warp *w, const struct insn *in, u32 mask, const u64 *address)
{
    const u32 type = in->mod[MOD_TYPE];
    bool is_early = false;
    u64 last = 0, before = 0;
    FOR_LANES(l, mask)
    {
        if (address[l] != last)
            is_early = release_take(w, address[l], &before);
        last = address[l];
        if (is_early && in->n_dst == 1)
            operand_store(w, in->op[0], (int)l, load_element((const u8 *)&before, type, false));
    }
}

RUN(ld)
{
    const u8 *from[LANES];
    u64 address[LANES];
    u32 shared = 0, global = 0;
    const u32 bytes = type_bytes(in->mod[MOD_TYPE]) * in->n_dst;
    if (may_be_side_by_side(in) && load_side_by_side(w, in, mask, bytes))
        return;
    FOR_LANES(l, mask)
    {
        struct place p = {.address = address_of(w, in, in->n_dst, (int)l)};
        from[l] = resolve_access(w, in, (int)l, bytes, ACCESS_READ, &p);
        if (!from[l])
            return;
        address[l] = p.address;
        if (p.space == SPACE_SHARED)
            shared |= 1u << l;
        if (p.space != SPACE_GLOBAL)
            continue;
        global |= 1u << l;
        w->cta->counters->global_load_bytes += bytes;
    }
    if (shared)
        count_wavefronts(w->cta, address, shared, bytes);
    load_rows(w, in, mask, from, global);
    if (in->mod[MOD_STRONG] == STRONG_ACQUIRE && in->mod[MOD_SCOPE] >= SCOPE_GPU)
        acquire(w, in, mask & global, address);
}

RUN(ldu)
{
    run_ld(w, in, mask);
}

RUN(st)
{
    u64 address[LANES];
    u32 shared = 0;
    const u32 type = in->mod[MOD_TYPE], bytes = type_bytes(type), n = in->n_ops - 3; /* base, offset, hint */
    const bool releases = in->mod[MOD_STRONG] == STRONG_RELEASE && in->mod[MOD_SCOPE] >= SCOPE_GPU;
    w->cta->cluster->store_id++;
    FOR_LANES(l, mask)
    {
        u8 value[64];
        for (u32 e = 0; e < n; e++) {
            const u64 x = operand_value(w, in->op[2 + e], (int)l);
            memcpy(value + bytes * e, &x, bytes);
        }
        struct place p = {.address = address_of(w, in, 0, (int)l)};
        u8 *to = resolve_access(w, in, (int)l, bytes * n, ACCESS_WRITE, &p);
        if (!to)
            return;
        address[l] = p.address;
        if (p.space == SPACE_SHARED) {
            shared |= 1u << l;
            if (shared_store_conflicts(w, p.cta, (int)l, (u32)p.address - SHARED_BASE, bytes * n, to, value))
                return;
        } else if (p.space == SPACE_GLOBAL) {
            w->cta->counters->global_store_bytes += bytes * n;
            if (releases)
                release_announce(w, w->cta->cached[in->serial], p.address, bytes);
            if (!owner_store(w, in, (int)l, p.address, bytes * n, strength(in), to, value))
                return;
            continue;
        }
        memcpy(to, value, bytes * n);
    }
    w->cta->cluster->now += releases;
    if (shared)
        count_wavefronts(w->cta, address, shared, bytes * n);
}

RUN(isspacep)
{
    u32 r = 0;
    const u32 named = in->mod[MOD_SPACE], wanted = named == SPACE_SHARED_CTA ? SPACE_SHARED : named;
    FOR_LANES(l, mask)
    {
        u64 address = row64(w, in->op[1])[l];
        u32 space = generic_space(&address);
        if (space == SPACE_SHARED && (wanted == SPACE_SHARED_CLUSTER || !is_near(w, address)))
            space = SPACE_SHARED_CLUSTER;
        r |= (u32)(space == wanted) << l;
    }
    pred_set(w, in->op[0], mask, r);
}

/* Caches are not modelled, so all policies are one. */
RUN(policy)
{
    FOR_LANES(l, mask) row64(w, in->op[0])[l] = 0;
}

/* Grids run one after the other here. A CTA's other warps may know of the wait by a barrier, which is not looked into. */
RUN(wait_for_grids)
{
    (void)in;
    (void)mask;
    w->cta->has_waited = true;
}

RUN(let_next_begin)
{
    (void)in;
    (void)mask;
    w->cta->lets_next_begin = w->cta->has_waited;
}

RUN(nop)
{
    (void)w;
    (void)in;
    (void)mask;
}
