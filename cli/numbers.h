/* cli/numbers.h
 * Why: the command and the tests read, make and compare numbers of every type a kernel takes, and
 * two of those types C does not have.
 *
 * Array elements are addressed as a `void *` with a type and need no alignment. Rounding is to
 * nearest, ties to even, once: never by way of a second type. A NaN stays a NaN. */
#ifndef TEGULA_CLI_NUMBERS_H
#define TEGULA_CLI_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safetensors.h"

/* ---- conversions ---- */

float num_bf16_to_f32(uint16_t bits);
float num_f16_to_f32(uint16_t bits);
uint16_t num_bf16_from_f32(float x);
uint16_t num_bf16_from_f64(double x);
uint16_t num_f16_from_f32(float x);
uint16_t num_f16_from_f64(double x);

/* Integers are loaded too (an I64 beyond 2^53 is rounded). They are not stored: which rounding
 * that would be is the caller's to say, so it is an assertion. */
double num_load(const void *array, enum st_dtype type, size_t index);
void num_store(void *array, enum st_dtype type, size_t index, double x);

struct num_array {
    void *data;
    enum st_dtype type;
    size_t n;
};

struct num_const_array {
    const void *data;
    enum st_dtype type;
    size_t n;
};

struct num_const_array num_of_tensor(const struct st_tensor *tensor);

/* Both of the same length; they may be one array only if the element sizes are equal. */
void num_convert(struct num_array to, struct num_const_array from);

/* ---- comparison (the metric of DESIGN, "Numbers that must be right") ---- */

/* rms_ratio is RMS(x - ref) / RMS(ref), max_ratio is max |x - ref| / max |ref|. Where ref is zero
 * throughout there is nothing to divide by, and both are absolute.
 * A NaN or infinity in ref must be met by the same in x, and is then left out of the sums. One in x
 * alone, or in ref alone, sets finite_mismatch and makes both ratios infinite.
 * worst_index is the first such element, else the one furthest off, else (all equal) -1. */
struct tensor_error {
    double rms_ratio;
    double max_ratio;
    int64_t worst_index;
    bool finite_mismatch;
};

struct tensor_error num_compare(struct num_const_array x, struct num_const_array ref);

/* ---- random numbers ---- */

/* Counter-based (Philox 4x32-10, Salmon et al., SC 2011): the value at an index depends on seed,
 * stream and index only, so any part can be made alone, in any order, on any machine, to the bit.
 */
struct num_random {
    uint64_t seed;
    uint64_t stream;
};

void num_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
uint64_t num_stream(const char *name); /* a stream for each tensor, by its name */
uint64_t num_bits(struct num_random random, uint64_t index);
double num_uniform(struct num_random random, uint64_t index); /* inside (0, 1), 53 bits */
double num_normal(struct num_random random, uint64_t index);  /* N(0, 1), |x| < 8.3 */

void num_fill_uniform(struct num_array array, struct num_random random, double low, double high);
void num_fill_normal(struct num_array array, struct num_random random, double mean, double sigma);

#endif
