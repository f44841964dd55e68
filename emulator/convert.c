/* convert.c - cvt between any two types. The common pairs have their own rows in ops.def; this is
 * for the rest, one lane at a time: every value goes through s64/u64 if it is an integer, through
 * f64 if it is a float. */
#include "float_bits.h"

#include <math.h>

#define RUN(id)                                                                                                        \
    insn_run run_##id;                                                                                                 \
    void run_##id(struct warp *w, const struct insn *in, u32 mask)

static bool is_float(u32 type)
{
    return type == TYPE_F16 || type == TYPE_BF16 || type == TYPE_F32 || type == TYPE_F64 || type == TYPE_TF32;
}

static double widen(u64 bits, u32 type)
{
    switch (type) {
    case TYPE_F16:
        return (double)half_to_float((u16)bits);
    case TYPE_BF16:
        return (double)bfloat_to_float((u16)bits);
    case TYPE_F32:
    case TYPE_TF32:
        return (double)bits_float((u32)bits);
    default:
        return bits_double(bits);
    }
}

static u64 narrow_to_nearest(double x, u32 type)
{
    switch (type) {
    case TYPE_F16:
        return double_to_half(x);
    case TYPE_BF16:
        return double_to_bfloat(x);
    case TYPE_F32:
        return x != x ? 0x7fffffffu : float_bits((float)x);
    case TYPE_TF32:
        return round_tf32_even(float_bits((float)x));
    default:
        return double_bits(x);
    }
}

/* The directed roundings: round to nearest, and step back if that went the wrong way. The bit
 * patterns of one sign are ordered like the values, so a step is +-1. */
static u64 narrow(double x, u32 type, u32 rnd)
{
    const u64 r = narrow_to_nearest(x, type);
    const double v = widen(r, type);
    if (x != x || v == x)
        return r;
    const bool went_up = v > x, is_negative = x < 0;
    const u64 step = type == TYPE_TF32 ? 0x2000 : 1;
    if ((rnd == RND_RZ && went_up != is_negative) || (rnd == RND_RM && went_up) || (rnd == RND_RP && !went_up)) {
        const bool away_from_zero = rnd == RND_RZ ? false : (rnd == RND_RM) == is_negative;
        return away_from_zero ? r + step : r - step;
    }
    return r;
}

static double round_to_integer(double x, u32 rnd)
{
    switch (rnd) {
    case RND_RZI:
        return trunc(x);
    case RND_RMI:
        return floor(x);
    case RND_RPI:
        return ceil(x);
    case RND_RNI:
        return nearbyint(x);
    default:
        return x;
    }
}

/* Floats become the nearest integer that fits; NaN becomes 0. */
static u64 float_to_int(double x, u32 type)
{
    const u32 bits = 8 * type_bytes(type);
    if (x != x)
        return bits == 64 ? 1ull << 63 : 0;
    if (type_is_signed(type)) {
        const double limit = ldexp(1.0, (int)bits - 1);
        const u64 least = ~0ull << (bits - 1);
        return x >= limit ? ~least : x < -limit ? least : (u64)(s64)x;
    }
    const double limit = ldexp(1.0, (int)bits);
    return x >= limit ? ~0ull >> (64 - bits) : x < 0 ? 0 : (u64)x;
}

static s64 sign_extend(u64 x, u32 type)
{
    const u32 unused = 64 - 8 * type_bytes(type);
    return (s64)(x << unused) >> unused;
}

static u64 zero_extend(u64 x, u32 type)
{
    return x & ~0ull >> (64 - 8 * type_bytes(type));
}

static u64 int_to_int(u64 x, u32 from, u32 to, bool is_saturated)
{
    const bool is_signed = type_is_signed(from);
    const u64 value = is_signed ? (u64)sign_extend(x, from) : zero_extend(x, from);
    if (!is_saturated)
        return value;
    const u32 bits = 8 * type_bytes(to);
    const u64 most = ~0ull >> (64 - bits + type_is_signed(to));
    if (is_signed && (s64)value < 0)
        return !type_is_signed(to) ? 0 : (s64)value < -(s64)most - 1 ? ~most : value;
    return value > most ? most : value;
}

static u64 int_to_float(u64 x, u32 from, u32 to, u32 rnd)
{
    if (type_is_signed(from)) {
        const s64 v = sign_extend(x, from);
        return to == TYPE_F32 && rnd <= RND_RN ? float_bits((float)v) : narrow((double)v, to, rnd);
    }
    const u64 v = zero_extend(x, from);
    return to == TYPE_F32 && rnd <= RND_RN ? float_bits((float)v) : narrow((double)v, to, rnd);
}

static u64 convert(const struct insn *in, u64 x)
{
    const u32 from = in->mod[MOD_FROM], to = in->mod[MOD_TYPE], rnd = in->mod[MOD_RND];
    if (!is_float(from))
        return is_float(to) ? int_to_float(x, from, to, rnd) : int_to_int(x, from, to, in->mod[MOD_SAT]);
    if (in->mod[MOD_FTZ] && from == TYPE_F32)
        x = float_bits(flush_float(bits_float((u32)x), 0x7fffffffu));
    double v = round_to_integer(widen(x, from), rnd);
    if (!is_float(to))
        return float_to_int(v, to);
    if (in->mod[MOD_SAT] == SAT_SAT)
        v = v > 0 ? (v < 1 ? v : 1) : 0;
    else if (in->mod[MOD_SAT] == SAT_RELU)
        v = v > 0 || v != v ? v : 0;
    const u64 r = narrow(v, to, rnd);
    return in->mod[MOD_FTZ] && to == TYPE_F32 ? float_bits(flush_float(bits_float((u32)r), 0x7fffffffu)) : r;
}

/* A destination wider than its type gets the value extended by the type's sign. */
RUN(cvt)
{
    const u32 to = in->mod[MOD_TYPE];
    FOR_LANES(l, mask)
    {
        const u64 r = convert(in, operand_value(w, in->op[1], (int)l));
        operand_store(w, in->op[0], (int)l, type_is_signed(to) ? (u64)sign_extend(r, to) : zero_extend(r, to));
    }
}

/* cvt.rz.bf16x2.f32 d, a, b: a to the upper half. */
RUN(cvt2)
{
    const u32 type = in->mod[MOD_TYPE] == TYPE_F16X2 ? TYPE_F16 : TYPE_BF16;
    FOR_LANES(l, mask)
    {
        u32 r = 0;
        for (u32 k = 1; k <= 2; k++) {
            double v = (double)bits_float(row32(w, in->op[k])[l]);
            if (in->mod[MOD_SAT] == SAT_RELU && v < 0)
                v = 0;
            r = r << 16 | (u32)narrow(v, type, in->mod[MOD_RND]);
        }
        row32(w, in->op[0])[l] = r;
    }
}
