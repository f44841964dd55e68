/* tuning/numbers.c - one idea: double holds every value of every narrower type, so each operation is written once,
 * in double, with one exact load and one rounding store for each type. */
#include "tuning/numbers.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Random values are promised to the bit; a fused multiply-add would change them. GCC does not
 * contract under -std=c11, clang does. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

static const struct {
    const char *name;
    size_t bytes;
} types[TG_N_NUM_TYPES] = {
    [TG_NUM_BF16] = {"BF16", 2}, [TG_NUM_F16] = {"F16", 2}, [TG_NUM_F32] = {"F32", 4},
    [TG_NUM_F64] = {"F64", 8},   [TG_NUM_I32] = {"I32", 4}, [TG_NUM_I64] = {"I64", 8},
};

const char *tg_num_name(tg_num_type type)
{
    return types[type].name;
}

size_t tg_num_bytes(tg_num_type type)
{
    return types[type].bytes;
}

double tg_num_least(tg_num_type type)
{
    return type == TG_NUM_F16 ? 0x1p-25 : 0;
}

/* Halfway from the largest number to what would be next, which rounds to even. */
double tg_num_most(tg_num_type type)
{
    return type == TG_NUM_F16    ? 65520
           : type == TG_NUM_BF16 ? 0x1.ffp127
           : type == TG_NUM_F32  ? 0x1.ffffffp127
                                 : INFINITY;
}

/* ---- conversions ---- */

static uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

struct small_float {
    int exponent_bits;
    int fraction_bits;
};

static const struct small_float bf16 = {8, 7};
static const struct small_float f16 = {5, 10};

/* Drops `shift` low bits, to nearest, ties to even. */
static uint64_t shift_right_rounded(uint64_t x, int shift)
{
    uint64_t kept = x >> shift;
    uint64_t rest = x & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint16_t round_to(struct small_float type, double x)
{
    const uint64_t bits = bits_of_f64(x);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    const int exponent = (int)(bits >> 52 & 0x7ff);
    const uint64_t sign = bits >> 63 << 15;
    const int drop = 52 - type.fraction_bits;
    const int special = (1 << type.exponent_bits) - 1;
    const uint64_t infinity = (uint64_t)special << type.fraction_bits;

    if (exponent == 0x7ff) {
        uint64_t quiet = UINT64_C(1) << (type.fraction_bits - 1);
        return (uint16_t)(sign | infinity | (fraction ? quiet | fraction >> drop : 0));
    }
    const int rebiased = exponent - 1023 + special / 2;
    if (rebiased >= special)
        return (uint16_t)(sign | infinity);
    /* Below 2^-1022, or below half the least subnormal, nothing is left. */
    if (exponent == 0 || rebiased < -type.fraction_bits)
        return (uint16_t)sign;
    const uint64_t significand = fraction | UINT64_C(1) << 52;
    /* The leading 1 of a normal number adds one to the exponent field, and so does a carry. */
    if (rebiased > 0)
        return (uint16_t)(sign |
                          (((uint64_t)(rebiased - 1) << type.fraction_bits) + shift_right_rounded(significand, drop)));
    return (uint16_t)(sign | shift_right_rounded(significand, drop + 1 - rebiased));
}

float tg_num_bf16_to_f32(uint16_t bits)
{
    return f32_of_bits((uint32_t)bits << 16);
}

float tg_num_f16_to_f32(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    const uint32_t exponent = bits >> 10 & 0x1f;
    const uint32_t fraction = bits & 0x3ff;
    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    const uint32_t rebiased = exponent == 0x1f ? 0xff : exponent - 15 + 127;
    return f32_of_bits(sign | rebiased << 23 | fraction << 13);
}

uint16_t tg_num_bf16_from_f64(double x)
{
    return round_to(bf16, x);
}

uint16_t tg_num_f16_from_f64(double x)
{
    return round_to(f16, x);
}

/* bf16 is the upper half of f32, so the carry of an addition does all the rounding: this is the
 * conversion that runs over gigabytes. */
uint16_t tg_num_bf16_from_f32(float x)
{
    const uint32_t bits = bits_of_f32(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t tg_num_f16_from_f32(float x)
{
    return round_to(f16, (double)x);
}

double tg_num_load(const void *array, tg_num_type type, size_t index)
{
    const unsigned char *at = array;
    switch (type) {
    case TG_NUM_BF16:
    case TG_NUM_F16: {
        uint16_t x;
        memcpy(&x, at + index * sizeof(x), sizeof(x));
        return (double)(type == TG_NUM_BF16 ? tg_num_bf16_to_f32(x) : tg_num_f16_to_f32(x));
    }
    case TG_NUM_F32: {
        float x;
        memcpy(&x, at + index * sizeof(x), sizeof(x));
        return (double)x;
    }
    case TG_NUM_F64: {
        double x;
        memcpy(&x, at + index * sizeof(x), sizeof(x));
        return x;
    }
    case TG_NUM_I32: {
        int32_t x;
        memcpy(&x, at + index * sizeof(x), sizeof(x));
        return (double)x;
    }
    case TG_NUM_I64: {
        int64_t x;
        memcpy(&x, at + index * sizeof(x), sizeof(x));
        return (double)x;
    }
    case TG_N_NUM_TYPES:
        break;
    }
    assert(false && "not an element type");
    return 0;
}

void tg_num_store(void *array, tg_num_type type, size_t index, double x)
{
    unsigned char *at = array;
    switch (type) {
    case TG_NUM_BF16:
    case TG_NUM_F16: {
        uint16_t y = round_to(type == TG_NUM_BF16 ? bf16 : f16, x);
        memcpy(at + index * sizeof(y), &y, sizeof(y));
        return;
    }
    case TG_NUM_F32: {
        float y = (float)x;
        memcpy(at + index * sizeof(y), &y, sizeof(y));
        return;
    }
    case TG_NUM_F64:
        memcpy(at + index * sizeof(x), &x, sizeof(x));
        return;
    case TG_NUM_I32:
    case TG_NUM_I64:
    case TG_N_NUM_TYPES:
        break;
    }
    assert(false && "only floating-point types are stored");
}

void tg_num_convert(tg_array to, tg_const_array from)
{
    assert(to.n == from.n && "arrays of one length");
    if (to.n == 0)
        return;
    if (to.type == from.type) {
        memmove(to.data, from.data, to.n * tg_num_bytes(to.type));
        return;
    }
    for (size_t i = 0; i < to.n; i++)
        tg_num_store(to.data, to.type, i, tg_num_load(from.data, from.type, i));
}

/* ---- comparison ---- */

static bool is_mismatch(double x, double ref)
{
    if (isfinite(ref))
        return !isfinite(x);
    return isnan(ref) ? !isnan(x) : x != ref;
}

/* An element of ref as x can have it. */
static double truth_of(tg_const_array ref, size_t i, tg_num_type type)
{
    const double truth = tg_num_load(ref.data, ref.type, i);
    return fabs(truth) >= tg_num_most(type) ? copysign(INFINITY, truth) : truth; /* a NaN stays one */
}

/* Root of the sum of squares as scale * sqrt(sum): the scale is the greatest magnitude, so nothing
 * overflows or vanishes, whatever the exponents. */
struct norm {
    double scale;
    double sum;
};

static void norm_add(struct norm *norm, double x)
{
    if (norm->scale > 0) {
        double r = x / norm->scale;
        norm->sum += r * r;
    }
}

static double norm_root(struct norm norm)
{
    return norm.scale * sqrt(norm.sum);
}

tg_tensor_error tg_num_compare(tg_const_array x, tg_const_array ref)
{
    assert(x.n == ref.n && "arrays of one length");
    tg_tensor_error error = {0, 0, -1, false};
    struct norm off = {0, 0};
    struct norm all = {0, 0};
    size_t n = 0;
    for (size_t i = 0; i < x.n; i++) {
        double value = tg_num_load(x.data, x.type, i);
        double truth = truth_of(ref, i, x.type);
        if (is_mismatch(value, truth))
            return (tg_tensor_error){INFINITY, INFINITY, (int64_t)i, true};
        if (!isfinite(truth))
            continue;
        n++;
        all.scale = fmax(all.scale, fabs(truth));
        if (fabs(value - truth) > off.scale) {
            off.scale = fabs(value - truth);
            error.worst_index = (int64_t)i;
        }
    }
    if (error.worst_index < 0)
        return error;
    for (size_t i = 0; i < x.n; i++) {
        double truth = truth_of(ref, i, x.type);
        if (!isfinite(truth))
            continue;
        norm_add(&off, tg_num_load(x.data, x.type, i) - truth);
        norm_add(&all, truth);
    }
    bool is_absolute = all.scale <= 0;
    error.max_ratio = is_absolute ? off.scale : off.scale / all.scale;
    error.rms_ratio = norm_root(off) / (is_absolute ? sqrt((double)n) : norm_root(all));
    return error;
}

/* ---- random numbers ---- */

void tg_num_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53;
        uint64_t b = (uint64_t)c[2] * 0xCD9E8D57;
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k[0];
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k[1];
        c[3] = (uint32_t)a;
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    memcpy(out, c, sizeof(c));
}

uint64_t tg_num_stream(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        hash = (hash ^ *c) * UINT64_C(0x100000001b3);
    return hash;
}

/* One block serves two neighbouring indices. */
static void draw_pair(tg_random random, uint64_t index, uint64_t pair[2])
{
    const uint64_t block = index / 2;
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)random.stream,
                                 (uint32_t)(random.stream >> 32)};
    const uint32_t key[2] = {(uint32_t)random.seed, (uint32_t)(random.seed >> 32)};
    uint32_t out[4];
    tg_num_philox(counter, key, out);
    pair[0] = out[0] | (uint64_t)out[1] << 32;
    pair[1] = out[2] | (uint64_t)out[3] << 32;
}

uint64_t tg_num_bits(tg_random random, uint64_t index)
{
    uint64_t pair[2];
    draw_pair(random, index, pair);
    return pair[index % 2];
}

/* The half keeps 0 and 1 out; with 52 bits the sum is exact. */
static double uniform_of(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

/* ln x for 0 < x < 1, from operations that IEEE 754 fixes to the bit; libm's logarithm differs
 * between versions. x = m 2^e with m near 1, and ln m = 2 artanh((m - 1) / (m + 1)). */
static double natural_log(double x)
{
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1); /* |s| < 0.172: the 12th term is below 2^-60 */
    double sum = 0;
    for (int odd = 23; odd >= 1; odd -= 2)
        sum = sum * (s * s) + 1.0 / odd;
    return (double)e * 0.69314718055994531 + 2 * s * sum;
}

static double polynomial(const double c[8], double x)
{
    double sum = c[7];
    for (int i = 6; i >= 0; i--)
        sum = sum * x + c[i];
    return sum;
}

/* The quantile of N(0, 1): Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37(3), 1988.
 * Relative error about 1e-16. Chosen over Box-Muller because its centre, 85% of all draws, is
 * arithmetic only. */
static double normal_quantile(double p)
{
    static const double centre[2][8] = {
        {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
         4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
        {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
         3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3},
    };
    static const double side[2][8] = {
        {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
         1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
        {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
         1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9},
    };
    static const double tail[2][8] = {
        {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
         2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
        {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
         7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15},
    };
    const double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * polynomial(centre[0], r) / polynomial(centre[1], r);
    }
    double r = sqrt(-natural_log(q < 0 ? p : 1 - p));
    double x = r <= 5 ? polynomial(side[0], r - 1.6) / polynomial(side[1], r - 1.6)
                      : polynomial(tail[0], r - 5) / polynomial(tail[1], r - 5);
    return q < 0 ? -x : x;
}

double tg_num_uniform(tg_random random, uint64_t index)
{
    return uniform_of(tg_num_bits(random, index));
}

double tg_num_normal(tg_random random, uint64_t index)
{
    return normal_quantile(tg_num_uniform(random, index));
}

void tg_num_fill_uniform(tg_array array, tg_random random, double low, double high)
{
    uint64_t pair[2] = {0, 0};
    for (size_t i = 0; i < array.n; i++) {
        if (i % 2 == 0)
            draw_pair(random, i, pair);
        tg_num_store(array.data, array.type, i, low + (high - low) * uniform_of(pair[i % 2]));
    }
}

void tg_num_fill_normal(tg_array array, tg_random random, double mean, double sigma)
{
    uint64_t pair[2] = {0, 0};
    for (size_t i = 0; i < array.n; i++) {
        if (i % 2 == 0)
            draw_pair(random, i, pair);
        double x = normal_quantile(uniform_of(pair[i % 2]));
        tg_num_store(array.data, array.type, i, mean + sigma * x);
    }
}
