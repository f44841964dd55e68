/* collect.c - operations of a warp's lanes together: shuffles, votes, reductions. */
#include "emu.h"

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

/* The member mask must be the same in all lanes, name each of them, and none that is elsewhere. */
static bool members_are_here(struct warp *w, u32 operand, u32 mask)
{
    FOR_LANES(l, mask)
    {
        const u32 members = row32(w, operand)[l] & w->exists;
        if (members != mask) {
            fault(w, REPORT_DIVERGENT, (int)l, "names lanes 0x%08x, but lanes 0x%08x execute it", members, mask);
            return false;
        }
    }
    return true;
}

/* The lane to read from, and whether it is within the segment. */
static bool shuffle_source(u32 how, u32 lane, u32 b, u32 c, u32 *source)
{
    const u32 segment = c >> 8 & 31, clamp = c & 31;
    const u32 last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    b &= 31;
    switch (how) {
    case HOW_UP:
        *source = lane - b;
        return (s32)*source >= (s32)last; /* up: c's low bits are the least lane */
    case HOW_DOWN:
        *source = lane + b;
        return *source <= last;
    case HOW_BFLY:
        *source = lane ^ b;
        return *source <= last;
    default:
        *source = first | (b & ~segment);
        return *source <= last;
    }
}

RUN(shfl)
{
    u32 a[LANES], inside = 0;
    if (!members_are_here(w, in->op[5], mask))
        return;
    memcpy(a, row32(w, in->op[2]), sizeof a);
    const u32 *b = row32(w, in->op[3]), *c = row32(w, in->op[4]);
    u32 result[LANES];
    FOR_LANES(l, mask)
    {
        u32 source;
        const bool is_inside = shuffle_source(in->mod[MOD_HOW], l, b[l], c[l], &source);
        inside |= (u32)is_inside << l;
        if (!is_inside)
            source = l;
        if (!(mask >> source & 1)) {
            fault(w, REPORT_DIVERGENT, (int)l, "reads from lane %u, which does not execute the shuffle", source);
            return;
        }
        result[l] = a[source];
    }
    FOR_LANES(l, mask) row32(w, in->op[0])[l] = result[l];
    pred_set(w, in->op[1], mask, inside);
}

RUN(vote_pred)
{
    if (!members_are_here(w, in->op[2], mask))
        return;
    const u32 yes = pred_get(w, in->op[1]) & mask;
    const bool r = in->mod[MOD_VOTE] == VOTE_ALL   ? yes == mask
                   : in->mod[MOD_VOTE] == VOTE_ANY ? yes != 0
                                                   : yes == mask || !yes;
    pred_set(w, in->op[0], mask, r ? FULL_MASK : 0);
}

RUN(vote_ballot)
{
    if (!members_are_here(w, in->op[2], mask))
        return;
    const u32 yes = pred_get(w, in->op[1]) & mask;
    FOR_LANES(l, mask) row32(w, in->op[0])[l] = yes;
}

RUN(activemask)
{
    FOR_LANES(l, mask) row32(w, in->op[0])[l] = mask;
}

RUN(elect)
{
    if (!members_are_here(w, in->op[2], mask))
        return;
    const u32 leader = (u32)first_lane(mask);
    FOR_LANES(l, mask) row32(w, in->op[0])[l] = leader;
    pred_set(w, in->op[1], mask, 1u << leader);
}

static u32 reduce(u32 how, u32 type, u32 a, u32 b)
{
    switch (how) {
    case RMW_ADD:
        return a + b;
    case RMW_MIN:
        return type == TYPE_S32 ? ((s32)a < (s32)b ? a : b) : (a < b ? a : b);
    case RMW_MAX:
        return type == TYPE_S32 ? ((s32)a > (s32)b ? a : b) : (a > b ? a : b);
    case RMW_AND:
        return a & b;
    case RMW_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

RUN(redux)
{
    if (!members_are_here(w, in->op[2], mask))
        return;
    const u32 *a = row32(w, in->op[1]);
    const u32 first = (u32)first_lane(mask);
    u32 r = a[first];
    FOR_LANES(l, mask & ~(1u << first)) r = reduce(in->mod[MOD_RMW], in->mod[MOD_TYPE], r, a[l]);
    FOR_LANES(l, mask) row32(w, in->op[0])[l] = r;
}

RUN(match_any)
{
    u32 a[LANES];
    if (!members_are_here(w, in->op[2], mask))
        return;
    memcpy(a, row32(w, in->op[1]), sizeof a);
    FOR_LANES(l, mask)
    {
        u32 r = 0;
        FOR_LANES(k, mask) r |= (u32)(a[k] == a[l]) << k;
        row32(w, in->op[0])[l] = r;
    }
}
