/* tuning/numbers.h - arrays of numbers of every type that a kernel takes, two of which C does not have: made, read and
 * compared (libtegula-tuning).
 *
 * Array elements are addressed as a `void *` with a type and need no alignment. Rounding is to
 * nearest, ties to even, once: never by way of a second type. A NaN stays a NaN. */
#ifndef TEGULA_NUMBERS_H
#define TEGULA_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../program/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements. */
typedef enum tg_num_type {
    TG_NUM_BF16,
    TG_NUM_F16,
    TG_NUM_F32,
    TG_NUM_F64,
    TG_NUM_I32,
    TG_NUM_I64,
    TG_N_NUM_TYPES,
} tg_num_type;

TG_API const char *tg_num_name(tg_num_type type); /* "BF16" */
TG_API size_t tg_num_bytes(tg_num_type type);     /* of one */
/* What a number near zero may be off by when it is stored: half of f16's smallest, 2^-25. 0 for types that reach so much nearer to zero
 * that it never matters. */
TG_API double tg_num_least(tg_num_type type);
/* The least magnitude that is infinity once it is stored: 65520 in f16. Infinity for F64 and integers. */
TG_API double tg_num_most(tg_num_type type);

/* ---- conversions ---- */

TG_API float tg_num_bf16_to_f32(uint16_t bits);
TG_API float tg_num_f16_to_f32(uint16_t bits);
TG_API uint16_t tg_num_bf16_from_f32(float x);
TG_API uint16_t tg_num_bf16_from_f64(double x);
TG_API uint16_t tg_num_f16_from_f32(float x);
TG_API uint16_t tg_num_f16_from_f64(double x);

/* Integers are loaded too (an I64 beyond 2^53 is rounded). They are not stored: which rounding
 * that would be is the caller's to say, so it is an assertion. */
TG_API double tg_num_load(const void *array, tg_num_type type, size_t index);
TG_API void tg_num_store(void *array, tg_num_type type, size_t index, double x);

typedef struct tg_array {
    void *data;
    tg_num_type type;
    size_t n;
} tg_array;

typedef struct tg_const_array {
    const void *data;
    tg_num_type type;
    size_t n;
} tg_const_array;

/* Both of the same length; they may be one array only if the element sizes are equal. */
TG_API void tg_num_convert(tg_array to, tg_const_array from);

/* ---- comparison (RMS of x - ref over RMS of ref; largest |x - ref| over largest |ref|) ---- */

/* rms_ratio is RMS(x - ref) / RMS(ref), max_ratio is max |x - ref| / max |ref|. Where ref is zero
 * throughout there is nothing to divide by, and both are absolute.
 * A NaN or infinity in ref must be met by the same in x, and is then left out of the sums. One in x
 * alone, or in ref alone, sets finite_mismatch and makes both ratios infinite. What of ref is beyond the range of x's type
 * counts as infinite.
 * worst_index is the first such element, else the one furthest off, else (all equal) -1. */
typedef struct tg_tensor_error {
    double rms_ratio;
    double max_ratio;
    int64_t worst_index;
    bool finite_mismatch;
} tg_tensor_error;

TG_API tg_tensor_error tg_num_compare(tg_const_array x, tg_const_array ref);

/* ---- random numbers ---- */

/* Counter-based (Philox 4x32-10, Salmon et al., SC 2011): the value at an index depends on seed,
 * stream and index only, so any part can be made alone, in any order, on any machine, to the bit.
 */
typedef struct tg_random {
    uint64_t seed;
    uint64_t stream;
} tg_random;

TG_API void tg_num_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
TG_API uint64_t tg_num_stream(const char *name); /* a stream for each tensor, by its name */
TG_API uint64_t tg_num_bits(tg_random random, uint64_t index);
TG_API double tg_num_uniform(tg_random random, uint64_t index); /* inside (0, 1), 53 bits */
TG_API double tg_num_normal(tg_random random, uint64_t index);  /* N(0, 1), |x| < 8.3 */

TG_API void tg_num_fill_uniform(tg_array array, tg_random random, double low, double high);
TG_API void tg_num_fill_normal(tg_array array, tg_random random, double mean, double sigma);

#ifdef __cplusplus
}
#endif

#endif
