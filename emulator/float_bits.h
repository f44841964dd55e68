/* float_bits.h - f16, bf16 and tf32 as bit patterns, without help from the compiler or the CPU, so
 * that every machine gives the same bits. NaN results are the canonical 0x7fff and 0x7fffffff of
 * the PTX ISA. */
#ifndef FLOAT_BITS_H
#define FLOAT_BITS_H

#include "emu.h"

static inline u32 float_bits(float x)
{
    u32 u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float bits_float(u32 u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline u64 double_bits(double x)
{
    u64 u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double bits_double(u64 u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Subnormals to zero of the same sign, when `flush` is 0x7fffffff; nothing when it is 0. */
static inline float flush_float(float x, u32 flush)
{
    const u32 u = float_bits(x);
    return bits_float(u & ~((u & 0x7f800000u) ? 0u : flush));
}

static inline float bfloat_to_float(u16 b)
{
    return bits_float((u32)b << 16);
}

static inline u16 float_to_bfloat(float x)
{
    const u32 u = float_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (u16)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

static inline float half_to_float(u16 h)
{
    const u32 magnitude = h & 0x7fffu;
    const u32 infinite = magnitude >= 0x7c00u ? 0x7f800000u : 0; /* and NaN */
    const float scaled = bits_float(magnitude << 13) * 0x1p112f;
    return bits_float(float_bits(scaled) | infinite | (u32)(h & 0x8000u) << 16);
}

static inline u16 float_to_half(float x)
{
    const u32 u = float_bits(x), sign = (u >> 16) & 0x8000u;
    u32 m = u & 0x7fffffffu;
    if (m > 0x7f800000u)
        return 0x7fff;
    if (m >= 0x477ff000u) /* 65520, half way to the first one too large */
        return (u16)(sign | 0x7c00u);
    if (m < 0x38800000u) /* subnormal: the addition rounds at 2^-24 */
        m = float_bits(bits_float(m) + 0.5f) - 0x3f000000u;
    else
        m = (m + 0xc8000fffu + ((m >> 13) & 1)) >> 13;
    return (u16)(sign | m);
}

/* To f32 with the last bit sticky: rounding it again, to 22 bits or fewer, is the same as rounding
 * x itself. */
static inline float double_to_odd_float(double x)
{
    float f = (float)x;
    if (f != f || (double)f == x)
        return f;
    u32 u = float_bits(f);
    const double magnitude = x < 0 ? -x : x, rounded = f < 0 ? -(double)f : (double)f;
    if (rounded > magnitude)
        u--;
    return bits_float(u | 1);
}

static inline u16 double_to_half(double x)
{
    return float_to_half(double_to_odd_float(x));
}

static inline u16 double_to_bfloat(double x)
{
    return float_to_bfloat(double_to_odd_float(x));
}

/* tf32 is f32 without its low 13 bits. */
static inline u32 round_tf32_away(u32 u)
{
    return (u & 0x7fffffffu) > 0x7f800000u    ? 0x7fffffffu
           : (u & 0x7f800000u) == 0x7f800000u ? u
                                              : (u + 0x1000u) & ~0x1fffu;
}

static inline u32 round_tf32_even(u32 u)
{
    if ((u & 0x7f800000u) == 0x7f800000u)
        return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : u;
    return (u + 0xfffu + ((u >> 13) & 1)) & ~0x1fffu;
}

#endif
