/* tests/test_numbers.c
 * Each conversion is checked against what its format means, computed here another way: a value is
 * decoded with ldexp, and rounding is proved at the midpoint of every two neighbours and at the
 * doubles next to it, which decide all other values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors.h"
#include "tuning/numbers.h"
#include "tests/usage.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static float f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

struct format {
    const char *name;
    int exponent_bits;
    int fraction_bits;
    float (*to_f32)(uint16_t);
    uint16_t (*from_f32)(float);
    uint16_t (*from_f64)(double);
};

static const struct format formats[] = {
    {"bf16", 8, 7, tg_num_bf16_to_f32, tg_num_bf16_from_f32, tg_num_bf16_from_f64},
    {"f16", 5, 10, tg_num_f16_to_f32, tg_num_f16_from_f32, tg_num_f16_from_f64},
};

/* The value of a pattern by the definition; infinity is as far as one exponent more would be. */
static double decode(const struct format *f, unsigned bits)
{
    int special = (1 << f->exponent_bits) - 1;
    int bias = special / 2;
    int exponent = (int)(bits >> f->fraction_bits) & special;
    int fraction = (int)bits & ((1 << f->fraction_bits) - 1);
    double one = exponent ? ldexp(1, f->fraction_bits) : 0;
    double x = ldexp(one + fraction, (exponent ? exponent : 1) - bias - f->fraction_bits);
    return bits & 0x8000 ? -x : x;
}

static unsigned infinity_of(const struct format *f)
{
    return ((1u << f->exponent_bits) - 1) << f->fraction_bits;
}

static void check_all_patterns(const struct format *f)
{
    unsigned infinity = infinity_of(f);
    unsigned quiet = 1u << (f->fraction_bits - 1);
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        unsigned magnitude = bits & 0x7fff;
        float x = f->to_f32((uint16_t)bits);
        if (magnitude > infinity) {
            assert_true(isnan(x));
            assert_int_equal(signbit(x) != 0, bits >> 15);
            assert_int_equal(f->from_f32(x), bits | quiet);
            assert_int_equal(f->from_f64((double)x), bits | quiet);
            continue;
        }
        double truth = magnitude == infinity ? (bits >> 15 ? -INFINITY : INFINITY) : decode(f, bits);
        assert_true((double)x == truth);
        assert_int_equal(signbit(x) != 0, bits >> 15);
        assert_int_equal(f->from_f32(x), bits);
        assert_int_equal(f->from_f64((double)x), bits);
    }
}

static void expect_rounds(const struct format *f, double x, unsigned bits)
{
    if (f->from_f64(x) != bits || f->from_f64(-x) != (bits | 0x8000))
        fail_msg("%s: %a: expected 0x%04x, found 0x%04x, and 0x%04x for the negative", f->name, x, bits, f->from_f64(x),
                 f->from_f64(-x));
    float narrow = (float)x;
    if ((double)narrow == x && f->from_f32(narrow) != bits)
        fail_msg("%s from f32: %a: expected 0x%04x, found 0x%04x", f->name, x, bits, f->from_f32(narrow));
}

static void check_all_midpoints(const struct format *f)
{
    for (unsigned below = 0; below < infinity_of(f); below++) {
        double low = decode(f, below);
        double high = decode(f, below + 1);
        double middle = low + (high - low) / 2;
        expect_rounds(f, middle, below + (below & 1));
        expect_rounds(f, nextafter(middle, 0), below);
        expect_rounds(f, nextafter(middle, INFINITY), below + 1);
        expect_rounds(f, nextafter(high, 0), below + 1);
        expect_rounds(f, (double)nextafterf((float)middle, 0), below);
        expect_rounds(f, (double)nextafterf((float)middle, INFINITY), below + 1);
    }
}

static void test_patterns(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        check_all_patterns(&formats[i]);
}

static void test_rounding(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        check_all_midpoints(&formats[i]);
}

static void test_rounding_of_extremes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct format *f = &formats[i];
        unsigned infinity = infinity_of(f);
        expect_rounds(f, DBL_MAX, infinity);
        expect_rounds(f, INFINITY, infinity);
        int bias = (1 << (f->exponent_bits - 1)) - 1;
        for (int e = bias + 1; e <= 1023; e++)
            expect_rounds(f, ldexp(1.5, e), infinity);
        for (int e = -1074; e < -bias - f->fraction_bits; e++)
            expect_rounds(f, ldexp(1, e), 0);
        assert_int_equal(f->from_f64(-0.0), 0x8000);
        assert_int_equal(f->from_f32(-0.0f), 0x8000);
        assert_true(f->from_f64((double)NAN) > infinity);
        /* a payload in the dropped bits alone must not turn a NaN into an infinity */
        float low_payload = f32_from_bits(0x7f800001);
        assert_true((f->from_f32(low_payload) & 0x7fff) > infinity);
        assert_true((f->from_f32(-low_payload) & 0x7fff) > infinity);
        uint64_t signalling = UINT64_C(0x7ff0000000000001);
        double low_payload_f64;
        memcpy(&low_payload_f64, &signalling, 8);
        assert_true((f->from_f64(low_payload_f64) & 0x7fff) > infinity);
    }
    expect_rounds(&formats[1], (double)FLT_MAX, 0x7c00);
    expect_rounds(&formats[0], (double)FLT_MAX, 0x7f80);
    /* by way of f32 this would be a tie, and go down */
    assert_int_equal(tg_num_bf16_from_f64(1 + 0x1p-8 + 0x1p-40), 0x3f81);
}

/* The fast way from f32 against the general one, over f32 in steps that visit every low half. */
static void test_bf16_fast_path(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits < (UINT64_C(1) << 32); bits += 4093) {
        float x = f32_from_bits((uint32_t)bits);
        if (tg_num_bf16_from_f32(x) != tg_num_bf16_from_f64((double)x))
            fail_msg("0x%08x: expected 0x%04x, found 0x%04x", (unsigned)bits, tg_num_bf16_from_f64((double)x),
                     tg_num_bf16_from_f32(x));
    }
}

static void test_load_and_store(void **state)
{
    (void)state;
    static const tg_num_type types[4] = {TG_NUM_BF16, TG_NUM_F16, TG_NUM_F32, TG_NUM_F64};
    unsigned char bytes[1 + 3 * 8];
    for (size_t t = 0; t < 4; t++) {
        void *odd = bytes + 1; /* arrays of a file are not aligned */
        memset(bytes, 0xee, sizeof(bytes));
        tg_num_store(odd, types[t], 0, -1.5);
        tg_num_store(odd, types[t], 1, (double)NAN);
        tg_num_store(odd, types[t], 2, 1e300);
        assert_true(tg_num_load(odd, types[t], 0) == -1.5);
        assert_true(isnan(tg_num_load(odd, types[t], 1)));
        assert_true(tg_num_load(odd, types[t], 2) == (types[t] == TG_NUM_F64 ? 1e300 : INFINITY));
        assert_int_equal(bytes[0], 0xee);
        for (size_t end = 1 + 3 * tg_num_bytes(types[t]); end < sizeof(bytes); end++)
            assert_int_equal(bytes[end], 0xee);
    }
    const int32_t ints[2] = {INT32_MIN, 7};
    const int64_t longs[2] = {-3, INT64_C(1) << 60};
    assert_true(tg_num_load(ints, TG_NUM_I32, 0) == -2147483648.0);
    assert_true(tg_num_load(ints, TG_NUM_I32, 1) == 7);
    assert_true(tg_num_load(longs, TG_NUM_I64, 0) == -3);
    assert_true(tg_num_load(longs, TG_NUM_I64, 1) == 0x1p60);
}

static void test_convert(void **state)
{
    (void)state;
    const float in[4] = {1.00390625f, -0.0f, 1e-30f, INFINITY};
    uint16_t half[4];
    double wide[4];
    tg_num_convert((tg_array){half, TG_NUM_BF16, 4}, (tg_const_array){in, TG_NUM_F32, 4});
    const uint16_t expected[4] = {0x3f80, 0x8000, 0x0da2, 0x7f80};
    assert_memory_equal(half, expected, sizeof(expected));
    tg_num_convert((tg_array){wide, TG_NUM_F64, 4}, (tg_const_array){half, TG_NUM_BF16, 4});
    assert_true(wide[0] == 1 && signbit(wide[1]) && wide[3] > DBL_MAX);
    uint32_t signalling = 0x7fa00001; /* a copy within a type keeps every bit */
    uint32_t copy = 0;
    tg_num_convert((tg_array){&copy, TG_NUM_F32, 1}, (tg_const_array){&signalling, TG_NUM_F32, 1});
    assert_int_equal(copy, signalling);
    tg_num_convert((tg_array){NULL, TG_NUM_F32, 0}, (tg_const_array){NULL, TG_NUM_F64, 0});
}

/* ---- comparison ---- */

static tg_tensor_error compare(const double *x, const double *ref, size_t n)
{
    return tg_num_compare((tg_const_array){x, TG_NUM_F64, n}, (tg_const_array){ref, TG_NUM_F64, n});
}

static void assert_error(tg_tensor_error e, double rms, double max, int64_t worst)
{
    if (fabs(e.rms_ratio - rms) > 1e-14 * rms || fabs(e.max_ratio - max) > 1e-14 * max || e.worst_index != worst ||
        e.finite_mismatch)
        fail_msg("expected %g, %g at %lld, found %g, %g at %lld%s", rms, max, (long long)worst, e.rms_ratio,
                 e.max_ratio, (long long)e.worst_index, e.finite_mismatch ? ", finite mismatch" : "");
}

static void assert_mismatch(tg_tensor_error e, int64_t worst)
{
    assert_true(e.finite_mismatch);
    assert_true(isinf(e.rms_ratio) && isinf(e.max_ratio));
    assert_int_equal(e.worst_index, worst);
}

static void test_compare(void **state)
{
    (void)state;
    const double ref[4] = {3, -4, 0, 5};
    const double x[4] = {3, -4.5, 0.25, 5.25};
    assert_error(compare(ref, ref, 4), 0, 0, -1);
    assert_error(compare(x, ref, 4), sqrt((0.25 + 0.0625 + 0.0625) / 50), 0.1, 1);
    assert_error(compare(x, ref, 0), 0, 0, -1);
    const double minus[2] = {1, -10};
    const double off[2] = {2, -10};
    assert_error(compare(off, minus, 2), 1 / sqrt(101), 0.1, 0);
    /* neither the squares nor the differences may leave the range */
    const double tiny[2] = {3e-320, 4e-320};
    const double zero[2] = {0, 0};
    assert_error(compare(zero, tiny, 2), 1, 1, 1);
    const double huge[2] = {1e300, 1e300};
    const double near[2] = {1e300, 1.5e300};
    assert_error(compare(near, huge, 2), sqrt(0.125), 0.5, 1);
}

static void test_compare_with_zero_is_absolute(void **state)
{
    (void)state;
    const double zero[4] = {0, -0.0, 0, 0};
    const double x[4] = {0, 0, -2, 0};
    assert_error(compare(zero, zero, 4), 0, 0, -1);
    assert_error(compare(x, zero, 4), 1, 2, 2);
}

static void test_compare_not_finite(void **state)
{
    (void)state;
    const double ref[4] = {1, (double)NAN, INFINITY, 2};
    const double same[4] = {1.5, -(double)NAN, INFINITY, 2};
    const double nan_alone[4] = {9, (double)NAN, INFINITY, (double)NAN};
    const double inf_alone[4] = {-INFINITY, (double)NAN, INFINITY, 2};
    const double nan_lost[4] = {9, 3, INFINITY, 2};
    const double wrong_sign[4] = {1, (double)NAN, -INFINITY, 2};
    const double inf_to_nan[4] = {1, (double)NAN, (double)NAN, 2};
    const double all_nan[2] = {(double)NAN, (double)NAN};
    assert_error(compare(same, ref, 4), 0.5 / sqrt(5), 0.25, 0);
    assert_mismatch(compare(nan_alone, ref, 4), 3);
    assert_mismatch(compare(inf_alone, ref, 4), 0);
    assert_mismatch(compare(nan_lost, ref, 4), 1);
    assert_mismatch(compare(wrong_sign, ref, 4), 2);
    assert_mismatch(compare(inf_to_nan, ref, 4), 2);
    assert_error(compare(all_nan, all_nan, 2), 0, 0, -1);
}

static void test_compare_types(void **state)
{
    (void)state;
    const uint16_t x[2] = {0x3f80, 0x4000}; /* bf16 1, 2 */
    const float ref[2] = {1, 4};
    assert_error(tg_num_compare((tg_const_array){x, TG_NUM_BF16, 2}, (tg_const_array){ref, TG_NUM_F32, 2}),
                 2 / sqrt(17), 0.5, 1);
}

/* What f16 cannot hold is infinite there, with its sign; what rounds to its largest number is not. */
static void test_compare_beyond(void **state)
{
    (void)state;
    const double ref[4] = {65519, 65520, -1e9, 1}, just[4] = {65520, 65520, -1e9, 1};
    const uint16_t x[4] = {0x7bff, 0x7c00, 0xfc00, 0x3c00}; /* f16 65504, inf, -inf, 1 */
    assert_error(tg_num_compare((tg_const_array){x, TG_NUM_F16, 4}, (tg_const_array){ref, TG_NUM_F64, 4}),
                 15 / hypot(65519, 1), 15.0 / 65519, 0);
    assert_mismatch(tg_num_compare((tg_const_array){x, TG_NUM_F16, 4}, (tg_const_array){just, TG_NUM_F64, 4}), 0);
    const float large = 0x1.fffffep127f, none = INFINITY;
    const double under = 0x1.fffffefp127, over = 0x1.ffffffp127;
    assert_error(tg_num_compare((tg_const_array){&large, TG_NUM_F32, 1}, (tg_const_array){&under, TG_NUM_F64, 1}),
                 (under - 0x1.fffffep127) / under, (under - 0x1.fffffep127) / under, 0);
    assert_error(tg_num_compare((tg_const_array){&none, TG_NUM_F32, 1}, (tg_const_array){&over, TG_NUM_F64, 1}), 0, 0,
                 -1);
    uint16_t stored;
    tg_num_store(&stored, TG_NUM_BF16, 0, tg_num_most(TG_NUM_BF16));
    assert_int_equal(stored, 0x7f80);
    tg_num_store(&stored, TG_NUM_BF16, 0, nextafter(tg_num_most(TG_NUM_BF16), 0));
    assert_int_equal(stored, 0x7f7f);
}

static void test_compare_tensors(void **state)
{
    (void)state;
    const float ref[3] = {1, 2, 2};
    const double x[3] = {1, 2, 5};
    const struct st_tensor a = {"x", TG_NUM_F64, 2, {3, 1}, x, sizeof(x)};
    const struct st_tensor b = {"ref", TG_NUM_F32, 1, {3}, ref, sizeof(ref)};
    assert_error(tg_num_compare(st_array(&a), st_array(&b)), 1, 1.5, 2);
}

/* ---- random numbers ---- */

/* The known answers of the authors' distribution, Random123 (kat_vectors, philox4x32 10). */
static void test_philox_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t out[4];
        tg_num_philox(rows[i].counter, rows[i].key, out);
        assert_memory_equal(out, rows[i].out, sizeof(out));
    }
}

static void test_bits_are_philox(void **state)
{
    (void)state;
    const tg_random random = {UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e)};
    const uint64_t block = UINT64_C(0x05a308d3243f6a88);
    const uint32_t counter[4] = {0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344};
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    uint32_t out[4];
    tg_num_philox(counter, key, out);
    assert_true(tg_num_bits(random, 2 * block) == (out[0] | (uint64_t)out[1] << 32));
    assert_true(tg_num_bits(random, 2 * block + 1) == (out[2] | (uint64_t)out[3] << 32));
    assert_true(tg_num_stream("") == UINT64_C(0xcbf29ce484222325)); /* FNV-1a, published */
    assert_true(tg_num_stream("foobar") == UINT64_C(0x85944171f73967e8));
}

/* The quantile is right if the distribution function gives the probability back. */
static void test_normal_is_the_quantile(void **state)
{
    (void)state;
    const tg_random random = {1, 2};
    double widest = 0;
    for (uint64_t i = 0; i < 1000000; i++) {
        double u = tg_num_uniform(random, i);
        double z = tg_num_normal(random, i);
        double tail = u < 0.5 ? u : 1 - u;
        if (u <= 0 || u >= 1 || fabs(0.5 * erfc(fabs(z) / sqrt(2)) - tail) > 2e-15 * fmax(1, z * z) * tail ||
            (z < 0) != (u < 0.5))
            fail_msg("index %llu: uniform %a gives normal %a", (unsigned long long)i, u, z);
        widest = fmax(widest, fabs(z));
    }
    assert_true(widest > 4.4 && widest < 6.5);
}

static void test_moments(void **state)
{
    (void)state;
    enum { N = 1000000 };
    const tg_random random = {20260101, tg_num_stream("in.q")};
    double *z = malloc(N * sizeof(*z));
    double *u = malloc(N * sizeof(*u));
    tg_num_fill_normal((tg_array){z, TG_NUM_F64, N}, random, 0, 1);
    tg_num_fill_uniform((tg_array){u, TG_NUM_F64, N}, random, 0, 1);
    double sum[5] = {0};
    double lag = 0;
    double mean = 0;
    for (int i = 0; i < N; i++) {
        double power = 1;
        for (int p = 1; p <= 4; p++)
            sum[p] += power *= z[i];
        lag += i ? z[i] * z[i - 1] : 0;
        mean += u[i];
    }
    /* each within five standard deviations of what it estimates */
    assert_true(fabs(sum[1] / N) < 5e-3);
    assert_true(fabs(sum[2] / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(sum[3] / N) < 5 * sqrt(15.0 / N));
    assert_true(fabs(sum[4] / N - 3) < 5 * sqrt(96.0 / N));
    assert_true(fabs(lag / N) < 5e-3);
    assert_true(fabs(mean / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
    free(z);
    free(u);
}

static void test_fill_equals_single_draws(void **state)
{
    (void)state;
    const tg_random random = {7, 9};
    const tg_random other = {7, 10};
    float normal[101];
    float uniform[101];
    tg_num_fill_normal((tg_array){normal, TG_NUM_F32, 101}, random, 3, 0.5);
    tg_num_fill_uniform((tg_array){uniform, TG_NUM_F32, 101}, random, -2, 6);
    int n_same = 0;
    for (size_t i = 0; i < 101; i++) {
        assert_true(f32_bits(normal[i]) == f32_bits((float)(3 + 0.5 * tg_num_normal(random, i))));
        assert_true(f32_bits(uniform[i]) == f32_bits((float)(-2 + 8 * tg_num_uniform(random, i))));
        n_same += tg_num_bits(random, i) == tg_num_bits(other, i);
    }
    assert_int_equal(n_same, 0);
}

/* Data made today must be made again by every later version, on every machine. The values were
 * computed by another program, in another language, from the same two publications. */
static void test_values_are_pinned(void **state)
{
    (void)state;
    const tg_random random = {0, 0};
    static const double normals[] = {0x1.2d769e93cb51fp+0,  0x1.11fbd69d8e301p-2,  -0x1.69580971eeeebp-2,
                                     -0x1.c913544cdba35p+0, -0x1.e082db6bb1547p-2, -0x1.370f3670d2175p-1};
    for (size_t i = 0; i < sizeof(normals) / sizeof(normals[0]); i++)
        if (tg_num_normal(random, i) != normals[i])
            fail_msg("normal %zu: expected %a, found %a", i, normals[i], tg_num_normal(random, i));
    uint64_t hash = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        double z = tg_num_normal(random, i);
        uint64_t bits;
        memcpy(&bits, &z, 8);
        hash = (hash ^ bits) * UINT64_C(0x100000001b3);
    }
    assert_true(hash == UINT64_C(0x7e74fdcd68e121cb));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_rounding_of_extremes),
        cmocka_unit_test(test_bf16_fast_path),
        cmocka_unit_test(test_load_and_store),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_compare_with_zero_is_absolute),
        cmocka_unit_test(test_compare_not_finite),
        cmocka_unit_test(test_compare_types),
        cmocka_unit_test(test_compare_beyond),
        cmocka_unit_test(test_compare_tensors),
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_bits_are_philox),
        cmocka_unit_test(test_normal_is_the_quantile),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_fill_equals_single_draws),
        cmocka_unit_test(test_values_are_pinned),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
