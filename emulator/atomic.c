/* atomic.c - atom and red, on shared and global memory.
 *
 * CTAs run on several threads, so global memory is changed by compare-and-swap; shared memory by
 * the same code, as it costs nothing. Float sums depend on the order of CTAs, which is not fixed:
 * as on the hardware. */
#include "float_bits.h"

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

static u64 add_halves(u64 a, u64 b, bool is_bfloat)
{
    u64 r = 0;
    for (u32 i = 0; i < 32; i += 16) {
        const u16 x = (u16)(a >> i), y = (u16)(b >> i);
        r |= (u64)(is_bfloat ? float_to_bfloat(bfloat_to_float(x) + bfloat_to_float(y))
                             : float_to_half(half_to_float(x) + half_to_float(y)))
             << i;
    }
    return r;
}

static u64 add(u64 a, u64 b, u32 type)
{
    switch (type) {
    case TYPE_F32:
        return float_bits(bits_float((u32)a) + bits_float((u32)b));
    case TYPE_F64:
        return double_bits(bits_double(a) + bits_double(b));
    case TYPE_F16:
    case TYPE_F16X2:
        return add_halves(a, b, false);
    case TYPE_BF16:
    case TYPE_BF16X2:
        return add_halves(a, b, true);
    default:
        return a + b;
    }
}

static bool is_less(u64 a, u64 b, u32 type)
{
    return type == TYPE_S32 ? (s32)a < (s32)b : type == TYPE_S64 ? (s64)a < (s64)b : a < b;
}

static u64 combine(const struct insn *in, u64 a, u64 b)
{
    const u32 type = in->mod[MOD_TYPE];
    switch (in->mod[MOD_RMW]) {
    case RMW_ADD:
        return add(a, b, type);
    case RMW_MIN:
        return is_less(b, a, type) ? b : a;
    case RMW_MAX:
        return is_less(a, b, type) ? b : a;
    case RMW_AND:
        return a & b;
    case RMW_OR:
        return a | b;
    case RMW_XOR:
        return a ^ b;
    case RMW_INC:
        return a >= b ? 0 : a + 1;
    case RMW_DEC:
        return a == 0 || a > b ? b : a - 1;
    default: /* exch */
        return b;
    }
}

/* Tries once to replace `old`, which is what the caller has seen; tells what was there. */
static bool try_swap(u8 *p, u32 bytes, u64 *old, u64 value)
{
    if (bytes == 8)
        return __atomic_compare_exchange_n((u64 *)(void *)p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (bytes == 4) {
        u32 seen = (u32)*old;
        const bool done =
            __atomic_compare_exchange_n((u32 *)(void *)p, &seen, (u32)value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        *old = seen;
        return done;
    }
    u16 seen = (u16)*old;
    const bool done =
        __atomic_compare_exchange_n((u16 *)(void *)p, &seen, (u16)value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    *old = seen;
    return done;
}

static u8 *atomic_access(struct warp *w, const struct insn *in, u32 k, int lane)
{
    struct place p = {.address = address_of(w, in, k, lane)}, again = p;
    const u32 bytes = type_bytes(in->mod[MOD_TYPE]);
    /* Twice: it reads a value that must have been written, and then writes. */
    if (!resolve_access(w, in, lane, bytes, ACCESS_READ | ACCESS_STRONG, &p))
        return NULL;
    u8 *at = resolve_access(w, in, lane, bytes, ACCESS_WRITE | ACCESS_STRONG, &again);
    if (at && p.space == SPACE_GLOBAL) {
        w->cta->counters->global_store_bytes += bytes;
        if (!owner_store(w, in, lane, p.address, bytes, ACCESS_STRONG, at, NULL))
            return NULL;
    }
    return at;
}

void atomic_add(u8 *p, u32 type, u64 value)
{
    u64 old = 0;
    while (!try_swap(p, type_bytes(type), &old, add(old, value, type)))
        ;
}

static void modify(struct warp *w, const struct insn *in, u32 mask, u32 first)
{
    const u32 bytes = type_bytes(in->mod[MOD_TYPE]);
    FOR_LANES(l, mask)
    {
        u8 *p = atomic_access(w, in, first, (int)l);
        u64 old = 0;
        if (!p)
            return;
        const u64 b = operand_value(w, in->op[first + 2], (int)l);
        while (!try_swap(p, bytes, &old, combine(in, old, b)))
            ;
        if (first)
            operand_store(w, in->op[0], (int)l, old);
    }
}

RUN(atom)
{
    modify(w, in, mask, 1);
}

RUN(red)
{
    modify(w, in, mask, 0);
}

RUN(atom_cas)
{
    const u32 bytes = type_bytes(in->mod[MOD_TYPE]);
    FOR_LANES(l, mask)
    {
        u8 *p = atomic_access(w, in, 1, (int)l);
        if (!p)
            return;
        u64 old = operand_value(w, in->op[3], (int)l);
        try_swap(p, bytes, &old, operand_value(w, in->op[4], (int)l));
        operand_store(w, in->op[0], (int)l, old);
    }
}
