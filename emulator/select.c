/* select.c - predicates, selection, packing, and integer division. */
#include "float_bits.h"

#include <math.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

/* -- comparison ------------------------------------------------------------------------------ */

#define COMPARE_LOOP(cond)                                                                                             \
    for (u32 l = 0; l < LANES; l++) {                                                                                  \
        r |= (u32)(cond) << l;                                                                                         \
    }                                                                                                                  \
    return r;

#define COMPARE_INT(T, name)                                                                                           \
    CLONES static u32 compare_##name(u32 cmp, const T *a, const T *b)                                                  \
    {                                                                                                                  \
        u32 r = 0;                                                                                                     \
        switch (cmp) {                                                                                                 \
        case CMP_EQ:                                                                                                   \
            COMPARE_LOOP(a[l] == b[l])                                                                                 \
        case CMP_NE:                                                                                                   \
            COMPARE_LOOP(a[l] != b[l])                                                                                 \
        case CMP_LT:                                                                                                   \
        case CMP_LO:                                                                                                   \
            COMPARE_LOOP(a[l] < b[l])                                                                                  \
        case CMP_LE:                                                                                                   \
        case CMP_LS:                                                                                                   \
            COMPARE_LOOP(a[l] <= b[l])                                                                                 \
        case CMP_GT:                                                                                                   \
        case CMP_HI:                                                                                                   \
            COMPARE_LOOP(a[l] > b[l])                                                                                  \
        default:                                                                                                       \
            COMPARE_LOOP(a[l] >= b[l])                                                                                 \
        }                                                                                                              \
    }

/* The "u" forms are true when an operand is NaN. */
#define COMPARE_FLOAT(T, name)                                                                                         \
    CLONES static u32 compare_##name(u32 cmp, const T *a, const T *b)                                                  \
    {                                                                                                                  \
        u32 r = 0;                                                                                                     \
        switch (cmp) {                                                                                                 \
        case CMP_EQ:                                                                                                   \
            COMPARE_LOOP(a[l] == b[l])                                                                                 \
        case CMP_NE:                                                                                                   \
            COMPARE_LOOP(a[l]<b[l] || a[l]> b[l])                                                                      \
        case CMP_LT:                                                                                                   \
            COMPARE_LOOP(a[l] < b[l])                                                                                  \
        case CMP_LE:                                                                                                   \
            COMPARE_LOOP(a[l] <= b[l])                                                                                 \
        case CMP_GT:                                                                                                   \
            COMPARE_LOOP(a[l] > b[l])                                                                                  \
        case CMP_GE:                                                                                                   \
            COMPARE_LOOP(a[l] >= b[l])                                                                                 \
        case CMP_EQU:                                                                                                  \
            COMPARE_LOOP(!(a[l] < b[l] || a[l] > b[l]))                                                                \
        case CMP_NEU:                                                                                                  \
            COMPARE_LOOP(!(a[l] == b[l]))                                                                              \
        case CMP_LTU:                                                                                                  \
            COMPARE_LOOP(!(a[l] >= b[l]))                                                                              \
        case CMP_LEU:                                                                                                  \
            COMPARE_LOOP(!(a[l] > b[l]))                                                                               \
        case CMP_GTU:                                                                                                  \
            COMPARE_LOOP(!(a[l] <= b[l]))                                                                              \
        case CMP_GEU:                                                                                                  \
            COMPARE_LOOP(!(a[l] < b[l]))                                                                               \
        case CMP_NUM:                                                                                                  \
            COMPARE_LOOP(a[l] == a[l] && b[l] == b[l])                                                                 \
        default:                                                                                                       \
            COMPARE_LOOP(a[l] != a[l] || b[l] != b[l])                                                                 \
        }                                                                                                              \
    }

COMPARE_INT(u32, u32)
COMPARE_INT(s32, s32)
COMPARE_INT(u64, u64)
COMPARE_INT(s64, s64)
COMPARE_FLOAT(float, f32)
COMPARE_FLOAT(double, f64)

static u32 combine(const struct warp *w, const struct insn *in, u32 value)
{
    switch (in->mod[MOD_BOOL]) {
    case BOOL_AND:
        return value & pred_get(w, in->op[4]);
    case BOOL_OR:
        return value | pred_get(w, in->op[4]);
    case BOOL_XOR:
        return value ^ pred_get(w, in->op[4]);
    default:
        return value;
    }
}

static void set_predicates(struct warp *w, const struct insn *in, u32 mask, u32 value)
{
    const u32 p = combine(w, in, value), q = combine(w, in, ~value);
    pred_set(w, in->op[0], mask, p);
    pred_set(w, in->op[1], mask, q);
}

RUN(setp_u32)
{
    set_predicates(w, in, mask, compare_u32(in->mod[MOD_CMP], row32(w, in->op[2]), row32(w, in->op[3])));
}

RUN(setp_u16)
{
    run_setp_u32(w, in, mask);
}

RUN(setp_s32)
{
    const s32 *a = (const s32 *)row32(w, in->op[2]), *b = (const s32 *)row32(w, in->op[3]);
    set_predicates(w, in, mask, compare_s32(in->mod[MOD_CMP], a, b));
}

RUN(setp_s16)
{
    s32 a[LANES], b[LANES];
    for (u32 l = 0; l < LANES; l++) {
        a[l] = (s16)row32(w, in->op[2])[l];
        b[l] = (s16)row32(w, in->op[3])[l];
    }
    set_predicates(w, in, mask, compare_s32(in->mod[MOD_CMP], a, b));
}

RUN(setp_u64)
{
    set_predicates(w, in, mask, compare_u64(in->mod[MOD_CMP], row64(w, in->op[2]), row64(w, in->op[3])));
}

RUN(setp_s64)
{
    const s64 *a = (const s64 *)row64(w, in->op[2]), *b = (const s64 *)row64(w, in->op[3]);
    set_predicates(w, in, mask, compare_s64(in->mod[MOD_CMP], a, b));
}

static u32 compare_floats(struct warp *w, const struct insn *in, u32 first)
{
    float a[LANES], b[LANES];
    const u32 flush = in->mod[MOD_FTZ] ? 0x7fffffffu : 0;
    for (u32 l = 0; l < LANES; l++) {
        a[l] = flush_float(bits_float(row32(w, in->op[first])[l]), flush);
        b[l] = flush_float(bits_float(row32(w, in->op[first + 1])[l]), flush);
    }
    return compare_f32(in->mod[MOD_CMP], a, b);
}

RUN(setp_f32)
{
    set_predicates(w, in, mask, compare_floats(w, in, 2));
}

RUN(setp_f64)
{
    const double *a = (const double *)row64(w, in->op[2]), *b = (const double *)row64(w, in->op[3]);
    set_predicates(w, in, mask, compare_f64(in->mod[MOD_CMP], a, b));
}

static void setp_half(struct warp *w, const struct insn *in, u32 mask, float (*widen)(u16))
{
    float a[LANES], b[LANES];
    for (u32 l = 0; l < LANES; l++) {
        a[l] = widen((u16)row32(w, in->op[2])[l]);
        b[l] = widen((u16)row32(w, in->op[3])[l]);
    }
    set_predicates(w, in, mask, compare_f32(in->mod[MOD_CMP], a, b));
}

RUN(setp_f16)
{
    setp_half(w, in, mask, half_to_float);
}

RUN(setp_bf16)
{
    setp_half(w, in, mask, bfloat_to_float);
}

static void set_register(struct warp *w, const struct insn *in, u32 mask, u32 value)
{
    const u32 yes = in->mod[MOD_TYPE] == TYPE_F32 ? 0x3f800000u : FULL_MASK;
    FOR_LANES(l, mask) row32(w, in->op[0])[l] = value >> l & 1 ? yes : 0;
}

RUN(set_s32)
{
    const s32 *a = (const s32 *)row32(w, in->op[1]), *b = (const s32 *)row32(w, in->op[2]);
    set_register(w, in, mask, compare_s32(in->mod[MOD_CMP], a, b));
}

RUN(set_u32)
{
    set_register(w, in, mask, compare_u32(in->mod[MOD_CMP], row32(w, in->op[1]), row32(w, in->op[2])));
}

RUN(set_f32)
{
    set_register(w, in, mask, compare_floats(w, in, 1));
}

static bool test_class(double x, int class)
{
    switch (class) {
    case TEST_FINITE:
        return isfinite(x);
    case TEST_INFINITE:
        return isinf(x);
    case TEST_NUMBER:
        return !isnan(x);
    default:
        return isnan(x);
    }
}

/* The PTX ISA: zeros count as normal. */
static bool test_size(bool is_normal, bool is_subnormal, int class)
{
    return class == TEST_NORMAL ? is_normal : is_subnormal;
}

RUN(testp_f32)
{
    const int class = in->mod[MOD_TEST];
    u32 r = 0;
    FOR_LANES(l, mask)
    {
        const float x = bits_float(row32(w, in->op[1])[l]);
        const int c = fpclassify(x);
        r |= (u32)(class >= TEST_NORMAL ? test_size(c == FP_NORMAL || c == FP_ZERO, c == FP_SUBNORMAL, class)
                                        : test_class((double)x, class))
             << l;
    }
    pred_set(w, in->op[0], mask, r);
}

RUN(testp_f64)
{
    const int class = in->mod[MOD_TEST];
    u32 r = 0;
    FOR_LANES(l, mask)
    {
        const double x = bits_double(row64(w, in->op[1])[l]);
        const int c = fpclassify(x);
        r |= (u32)(class >= TEST_NORMAL ? test_size(c == FP_NORMAL || c == FP_ZERO, c == FP_SUBNORMAL, class)
                                        : test_class(x, class))
             << l;
    }
    pred_set(w, in->op[0], mask, r);
}

/* -- predicates as values -------------------------------------------------------------------- */

RUN(and_pred)
{
    pred_set(w, in->op[0], mask, pred_get(w, in->op[1]) & pred_get(w, in->op[2]));
}

RUN(or_pred)
{
    pred_set(w, in->op[0], mask, pred_get(w, in->op[1]) | pred_get(w, in->op[2]));
}

RUN(xor_pred)
{
    pred_set(w, in->op[0], mask, pred_get(w, in->op[1]) ^ pred_get(w, in->op[2]));
}

RUN(not_pred)
{
    pred_set(w, in->op[0], mask, ~pred_get(w, in->op[1]));
}

RUN(mov_pred)
{
    pred_set(w, in->op[0], mask, pred_get(w, in->op[1]));
}

RUN(selp_32)
{
    u32 *d = row32(w, in->op[0]);
    const u32 *a = row32(w, in->op[1]), *b = row32(w, in->op[2]), p = pred_get(w, in->op[3]);
    for (u32 l = 0; l < LANES; l++)
        d[l] = mask >> l & 1 ? (p >> l & 1 ? a[l] : b[l]) : d[l];
}

RUN(selp_64)
{
    u64 *d = row64(w, in->op[0]);
    const u64 *a = row64(w, in->op[1]), *b = row64(w, in->op[2]);
    const u32 p = pred_get(w, in->op[3]);
    for (u32 l = 0; l < LANES; l++)
        d[l] = mask >> l & 1 ? (p >> l & 1 ? a[l] : b[l]) : d[l];
}

/* -- packing --------------------------------------------------------------------------------- */

static void pack(struct warp *w, const struct insn *in, u32 mask, u32 n, u32 bits)
{
    FOR_LANES(l, mask)
    {
        u64 r = 0;
        for (u32 i = 0; i < n; i++)
            r |= (u64)row32(w, in->op[1 + i])[l] << bits * i;
        operand_store(w, in->op[0], (int)l, r);
    }
}

static void unpack(struct warp *w, const struct insn *in, u32 mask, u32 n, u32 bits)
{
    FOR_LANES(l, mask)
    {
        const u64 x = operand_value(w, in->op[n], (int)l);
        for (u32 i = 0; i < n; i++)
            row32(w, in->op[i])[l] = (u32)(x >> bits * i) & (bits == 16 ? 0xffffu : FULL_MASK);
    }
}

RUN(pack_2h)
{
    pack(w, in, mask, 2, 16);
}

RUN(pack_4h)
{
    pack(w, in, mask, 4, 16);
}

RUN(pack_2r)
{
    pack(w, in, mask, 2, 32);
}

RUN(unpack_2h)
{
    unpack(w, in, mask, 2, 16);
}

RUN(unpack_4h)
{
    unpack(w, in, mask, 4, 16);
}

RUN(unpack_2r)
{
    unpack(w, in, mask, 2, 32);
}

/* Steps, not seconds: a run must be the same each time. */
RUN(clock)
{
    FOR_LANES(l, mask) operand_store(w, in->op[0], (int)l, w->cta->steps);
}

/* -- division -------------------------------------------------------------------------------- */

static s64 sign_extend(u64 x, u32 type)
{
    return type == TYPE_S16 ? (s16)x : type == TYPE_S32 ? (s32)x : (s64)x;
}

static void divide(struct warp *w, const struct insn *in, u32 mask, bool is_rem)
{
    const u32 type = in->mod[MOD_TYPE];
    FOR_LANES(l, mask)
    {
        const u64 a = operand_value(w, in->op[1], (int)l), b = operand_value(w, in->op[2], (int)l);
        u64 r;
        if (b == 0) {
            fault(w, REPORT_ARITHMETIC, (int)l, "integer division by zero");
            return;
        }
        if (type_is_signed(type)) {
            const s64 x = sign_extend(a, type), y = sign_extend(b, type);
            r = y == -1 ? (is_rem ? 0 : 0 - a) : (u64)(is_rem ? x % y : x / y);
        } else {
            r = is_rem ? a % b : a / b;
        }
        operand_store(w, in->op[0], (int)l, r);
    }
}

RUN(divide)
{
    divide(w, in, mask, false);
}

RUN(remainder)
{
    divide(w, in, mask, true);
}
