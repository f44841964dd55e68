/* lanes.c - the instructions of each lane by itself: ops.def's LANE, FLOAT and HALF rows become
 * functions here.
 *
 * Each is a loop over 32 lanes without a branch, which the compiler turns into vector code; a warp
 * with lanes off takes the slower loop below it. */
#include "float_bits.h"

#include <math.h>

/* PTX arithmetic is modular on 16, 32 and 64 bits. */
#define GET_h(p, l)      ((const u32 *)(p))[l]
#define GET_sh(p, l)     (s32)(s16)((const u32 *)(p))[l]
#define GET_u32(p, l)    ((const u32 *)(p))[l]
#define GET_s32(p, l)    ((const s32 *)(p))[l]
#define GET_f32(p, l)    ((const float *)(p))[l]
#define GET_uf32(p, l)   ((const u32 *)(p))[l]
#define GET_u64(p, l)    ((const u64 *)(p))[l]
#define GET_s64(p, l)    ((const s64 *)(p))[l]
#define GET_f64(p, l)    ((const double *)(p))[l]
#define GET_uf64(p, l)   ((const u64 *)(p))[l]
#define PUT_h(p, l, x)   ((u32 *)(p))[l] = (u16)(x)
#define PUT_sh(p, l, x)  ((u32 *)(p))[l] = (u16)(x)
#define PUT_u32(p, l, x) ((u32 *)(p))[l] = (x)
#define PUT_s32(p, l, x) ((s32 *)(p))[l] = (x)
#define PUT_f32(p, l, x) ((float *)(p))[l] = (x)
#define PUT_u64(p, l, x) ((u64 *)(p))[l] = (x)
#define PUT_s64(p, l, x) ((s64 *)(p))[l] = (x)
#define PUT_f64(p, l, x) ((double *)(p))[l] = (x)

typedef u32 value_h, value_u32, value_uf32;
typedef s32 value_sh, value_s32;
typedef u64 value_u64, value_uf64;
typedef s64 value_s64;
typedef float value_f32;
typedef double value_f64;

/* -- what the expressions of ops.def use ----------------------------------------------------- */

static u64 window_base(const struct insn *in)
{
    switch (in->mod[MOD_SPACE]) {
    case SPACE_SHARED:
    case SPACE_SHARED_CTA:
    case SPACE_SHARED_CLUSTER:
        return SHARED_WINDOW;
    case SPACE_LOCAL:
        return LOCAL_WINDOW;
    case SPACE_PARAM:
    case SPACE_PARAM_ENTRY:
        return PARAM_WINDOW;
    default:
        return 0;
    }
}

static inline u64 window_to(const struct insn *in, u64 a)
{
    return a - window_base(in);
}

static inline u64 window_from(const struct insn *in, u64 a)
{
    return a + window_base(in);
}

static inline s32 saturate_s32(s64 x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x;
}

static inline u64 mul_hi_u64(u64 a, u64 b)
{
    return (u64)(((unsigned __int128)a * b) >> 64);
}

static inline s64 mul_hi_s64(s64 a, s64 b)
{
    return (s64)(((__int128)a * b) >> 64);
}

static inline u32 sign24(u32 a)
{
    return (a & 0xffffffu) | (0u - ((a >> 23) & 1)) << 24;
}

static inline u64 join(u32 low, u32 high)
{
    return (u64)high << 32 | low;
}

static inline u64 low_bits(u32 n)
{
    return n >= 64 ? ~0ull : (1ull << n) - 1;
}

/* bfe: bits [pos, pos+len) of a; past the top the sign bit, or zeros. */
static inline u64 bit_field(u64 a, u32 pos, u32 len, u32 width, bool is_signed)
{
    pos &= 0xff;
    len &= 0xff;
    const u32 top = pos + len > width ? width - 1 : pos + len - 1;
    const u64 sign = is_signed && len && (a >> top & 1) ? ~0ull : 0;
    const u64 shifted = pos >= width ? 0 : a >> pos;
    const u32 kept = pos >= width ? 0 : len < width - pos ? len : width - pos;
    return (shifted & low_bits(kept)) | (sign & ~low_bits(kept));
}

static inline u64 bit_insert(u64 from, u64 into, u32 pos, u32 len, u32 width)
{
    pos &= 0xff;
    len &= 0xff;
    if (pos >= width || !len)
        return into;
    const u64 mask = low_bits(len < width - pos ? len : width - pos) << pos;
    return (into & ~mask) | ((from << pos) & mask);
}

static inline u32 extend(const struct insn *in, u32 a, u32 n, bool is_signed)
{
    if (in->mod[MOD_CLAMP] == 2)
        n &= 31;
    if (n == 0 || n >= 32)
        return n ? a : 0;
    const u32 low = a & (u32)low_bits(n);
    return is_signed && (low >> (n - 1) & 1) ? low | ~(u32)low_bits(n) : low;
}

static inline u32 permute(u32 a, u32 b, u32 selector)
{
    const u64 bytes = join(a, b);
    u32 r = 0;
    for (u32 i = 0; i < 4; i++) {
        const u32 s = selector >> 4 * i;
        const u32 byte = (u32)(bytes >> 8 * (s & 7)) & 0xff;
        r |= (s & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << 8 * i;
    }
    return r;
}

static inline u32 permute_mode(const struct insn *in, u32 a, u32 b, u32 c)
{
    static const u16 selectors[][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };
    return permute(a, b, selectors[in->mod[MOD_PRMT] - 1][c & 3]);
}

static inline u32 find_msb(u32 a)
{
    return a ? 31 - (u32)__builtin_clz(a) : ~0u;
}

static inline u32 reverse_bits(u32 a)
{
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(a);
}

static inline u32 lop3(u32 a, u32 b, u32 c, u32 truth)
{
    u32 r = 0;
    for (u32 i = 0; i < 8; i++)
        r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c) & (0u - (truth >> i & 1));
    return r;
}

static inline u32 dp4a(u32 a, u32 b, bool is_signed)
{
    u32 r = 0;
    for (u32 i = 0; i < 32; i += 8)
        r += is_signed ? (u32)((int8_t)(a >> i) * (int8_t)(b >> i)) : (a >> i & 0xff) * (b >> i & 0xff);
    return r;
}

static inline float nan_f32(void)
{
    return bits_float(0x7fffffffu);
}

/* IEEE 754-2019 minimumNumber: a NaN loses, -0 is less than +0. */
static inline float min_f32(float a, float b)
{
    if (a != a && b != b)
        return nan_f32();
    if (a == b)
        return bits_float(float_bits(a) | float_bits(b));
    return a < b || b != b ? a : b;
}

static inline float max_f32(float a, float b)
{
    if (a != a && b != b)
        return nan_f32();
    if (a == b)
        return bits_float(float_bits(a) & float_bits(b));
    return a > b || b != b ? a : b;
}

static inline double min_f64(double a, double b)
{
    if (a != a && b != b)
        return bits_double(0x7ff8000000000000ull);
    if (a == b)
        return bits_double(double_bits(a) | double_bits(b));
    return a < b || b != b ? a : b;
}

static inline double max_f64(double a, double b)
{
    return -min_f64(-a, -b);
}

static inline float saturate_f32(float x, bool is_on)
{
    return !is_on ? x : x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; /* NaN gives 0 */
}

/* -- the loops ------------------------------------------------------------------------------- */

#define EACH_LANE(body)                                                                                                \
    if (mask == FULL_MASK) {                                                                                           \
        _Pragma("GCC ivdep") for (u32 l = 0; l < LANES; l++)                                                           \
        {                                                                                                              \
            body                                                                                                       \
        }                                                                                                              \
    } else {                                                                                                           \
        for (u32 l = 0; l < LANES; l++)                                                                                \
            if (mask >> l & 1) {                                                                                       \
                body                                                                                                   \
            }                                                                                                          \
    }

#define SOURCE(n, name, T) const value_##T name = GET_##T(p##n, l);
#define BEGIN(id)                                                                                                      \
    insn_run run_##id;                                                                                                 \
    CLONES void run_##id(struct warp *w, const struct insn *in, u32 mask)
#define OP(id, kind, pattern, operands)

#define LANE1(id, pattern, D, A, expr)                                                                                 \
    BEGIN(id)                                                                                                          \
    {                                                                                                                  \
        void *p0 = row32(w, in->op[0]);                                                                                \
        const void *p1 = row32(w, in->op[1]);                                                                          \
        EACH_LANE(SOURCE(1, a, A) PUT_##D(p0, l, expr);)                                                               \
    }
#define LANE2(id, pattern, D, A, B, expr)                                                                              \
    BEGIN(id)                                                                                                          \
    {                                                                                                                  \
        void *p0 = row32(w, in->op[0]);                                                                                \
        const void *p1 = row32(w, in->op[1]), *p2 = row32(w, in->op[2]);                                               \
        EACH_LANE(SOURCE(1, a, A) SOURCE(2, b, B) PUT_##D(p0, l, expr);)                                               \
    }
#define LANE3(id, pattern, D, A, B, C, expr)                                                                           \
    BEGIN(id)                                                                                                          \
    {                                                                                                                  \
        void *p0 = row32(w, in->op[0]);                                                                                \
        const void *p1 = row32(w, in->op[1]), *p2 = row32(w, in->op[2]), *p3 = row32(w, in->op[3]);                    \
        EACH_LANE(SOURCE(1, a, A) SOURCE(2, b, B) SOURCE(3, c, C) PUT_##D(p0, l, expr);)                               \
    }
#define LANE4(id, pattern, D, A, B, C, E, expr)                                                                        \
    BEGIN(id)                                                                                                          \
    {                                                                                                                  \
        void *p0 = row32(w, in->op[0]);                                                                                \
        const void *p1 = row32(w, in->op[1]), *p2 = row32(w, in->op[2]), *p3 = row32(w, in->op[3]),                    \
                   *p4 = row32(w, in->op[4]);                                                                          \
        EACH_LANE(SOURCE(1, a, A) SOURCE(2, b, B) SOURCE(3, c, C) SOURCE(4, e, E) PUT_##D(p0, l, expr);)               \
    }

#define FLOAT_SOURCE(n, name) const float name = flush_float(((const float *)p##n)[l], flush);
#define FLOAT_MODES                                                                                                    \
    const u32 flush = in->mod[MOD_FTZ] ? 0x7fffffffu : 0;                                                              \
    const bool is_saturated = in->mod[MOD_SAT] == SAT_SAT;
#define FLOAT_RESULT(expr) p0[l] = saturate_f32(flush_float(expr, flush), is_saturated);

#define FLOAT1(id, pattern, expr)                                                                                      \
    BEGIN(id)                                                                                                          \
    {                                                                                                                  \
        FLOAT_MODES                                                                                                    \
        float *p0 = (float *)row32(w, in->op[0]);                                                                      \
        const void *p1 = row32(w, in->op[1]);                                                                          \
        EACH_LANE(FLOAT_SOURCE(1, a) FLOAT_RESULT(expr))                                                               \
    }
#define FLOAT2(id, pattern, expr)                                                                                      \
    BEGIN(id)                                                                                                          \
    {                                                                                                                  \
        FLOAT_MODES                                                                                                    \
        float *p0 = (float *)row32(w, in->op[0]);                                                                      \
        const void *p1 = row32(w, in->op[1]), *p2 = row32(w, in->op[2]);                                               \
        EACH_LANE(FLOAT_SOURCE(1, a) FLOAT_SOURCE(2, b) FLOAT_RESULT(expr))                                            \
    }
#define FLOAT3(id, pattern, expr)                                                                                      \
    BEGIN(id)                                                                                                          \
    {                                                                                                                  \
        FLOAT_MODES                                                                                                    \
        float *p0 = (float *)row32(w, in->op[0]);                                                                      \
        const void *p1 = row32(w, in->op[1]), *p2 = row32(w, in->op[2]), *p3 = row32(w, in->op[3]);                    \
        EACH_LANE(FLOAT_SOURCE(1, a) FLOAT_SOURCE(2, b) FLOAT_SOURCE(3, c) FLOAT_RESULT(expr))                         \
    }

/* -- 16-bit floats --------------------------------------------------------------------------- */

/* f64 holds the exact product of any two, and their sum to far more bits than decide the rounding.
 */
struct half_format {
    double (*widen)(u16);
    u16 (*narrow)(double);
    u16 exponent; /* its bits */
};

static double widen_half(u16 x)
{
    return (double)half_to_float(x);
}

static double widen_bfloat(u16 x)
{
    return (double)bfloat_to_float(x);
}

static const struct half_format half_format = {widen_half, double_to_half, 0x7c00};
static const struct half_format bfloat_format = {widen_bfloat, double_to_bfloat, 0x7f80};

typedef double half_expr(double a, double b, double c);

static u16 half_compute(const struct half_format *f, const struct insn *in, half_expr *expr, const u16 *x)
{
    double v[3];
    for (u32 i = 0; i < 3; i++) {
        const bool is_flushed = in->mod[MOD_FTZ] && !(x[i] & f->exponent);
        v[i] = f->widen(is_flushed ? x[i] & 0x8000u : x[i]);
    }
    double r = expr(v[0], v[1], v[2]);
    if (in->mod[MOD_SAT] == SAT_SAT)
        r = r > 0 ? (r < 1 ? r : 1) : 0;
    else if (in->mod[MOD_SAT] == SAT_RELU && r <= 0)
        r = 0;
    const u16 bits = f->narrow(r);
    return in->mod[MOD_FTZ] && !(bits & f->exponent) ? bits & 0x8000u : bits;
}

static void half_lanes(struct warp *w, const struct insn *in, u32 mask, const struct half_format *f, half_expr *expr,
                       u32 n_halves)
{
    FOR_LANES(l, mask)
    {
        u32 result = 0;
        for (u32 i = 0; i < n_halves; i++) {
            u16 x[3] = {0, 0, 0};
            for (u32 k = 1; k < in->n_ops; k++)
                x[k - 1] = (u16)(row32(w, in->op[k])[l] >> 16 * i);
            result |= (u32)half_compute(f, in, expr, x) << 16 * i;
        }
        row32(w, in->op[0])[l] = result;
    }
}

#define HALF_RUN(id, format, n_halves)                                                                                 \
    insn_run run_##id##_##format;                                                                                      \
    void run_##id##_##format(struct warp *w, const struct insn *in, u32 mask)

#define HALF(id, expr)                                                                                                 \
    static double half_##id(double a, double b, double c)                                                              \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        (void)c;                                                                                                       \
        return expr;                                                                                                   \
    }                                                                                                                  \
    HALF_RUN(id, f16, 1)                                                                                               \
    {                                                                                                                  \
        half_lanes(w, in, mask, &half_format, half_##id, 1);                                                           \
    }                                                                                                                  \
    HALF_RUN(id, bf16, 1)                                                                                              \
    {                                                                                                                  \
        half_lanes(w, in, mask, &bfloat_format, half_##id, 1);                                                         \
    }                                                                                                                  \
    HALF_RUN(id, f16x2, 2)                                                                                             \
    {                                                                                                                  \
        half_lanes(w, in, mask, &half_format, half_##id, 2);                                                           \
    }                                                                                                                  \
    HALF_RUN(id, bf16x2, 2)                                                                                            \
    {                                                                                                                  \
        half_lanes(w, in, mask, &bfloat_format, half_##id, 2);                                                         \
    }
#define HALF1(id, name, modifiers, expr) HALF(id, expr)
#define HALF2(id, name, modifiers, expr) HALF(id, expr)
#define HALF3(id, name, modifiers, expr) HALF(id, expr)

#define OP90(id, kind, pattern, operands)
#define OP90A(id, kind, pattern, operands)
#include "ops.def"
