/* tests/kernels/results.h - what a call computed, forward and backward, kept to compare with
 * another. */
#ifndef TEGULA_TESTS_RESULTS_H
#define TEGULA_TESTS_RESULTS_H

#include "harness.h"

struct results {
    tg_host_tensor tensors[TG_MAX_TENSORS]; /* outputs of both directions; they own their data */
    uint32_t n;
};

/* Moves the outputs of a trial that has run; kept states are none. */
void results_take(struct results *results, tg_problem *problem);
void results_free(struct results *results);
tg_host_tensor *results_find(struct results *results, const char *name);

/* Inputs of a direction come from elsewhere: called for the forward and for the backward once they
 * are open. */
typedef void change_fn(tg_problem *problem, void *user);
/* Runs the spec, its backward if it names one, and takes the outputs. False after a failed
 * expectation. */
bool results_anew(const struct spec *spec, change_fn *change, void *user, struct results *results);
/* The same with the spec's own inputs: what one of the last calls came to is not computed again, since many tests compare
 * with the same one (that every run gives the same bits is a test of results_anew). On the emulator by its first seed. */
bool results_of(const struct spec *spec, struct results *results);
void results_forget(void);

/* Expects that all outputs which both have are equal to the bit. */
void expect_same(struct results *x, struct results *y, const char *what);
/* Expects an output to be equal up to `limit` (of the RMS of the difference over that of y). */
void expect_near(const tg_host_tensor *x, const tg_host_tensor *y, double limit, const char *what);

/* Part of a call: sequence `sequence` of it (packed or not), tokens from `first` on, as many as the
 * part has. Copies a tensor between whole and part, in either direction; what has no tokens is of
 * that sequence, what has no batch is the same in both. */
struct part {
    const tg_problem *whole; /* of the direction of the tensor */
    int64_t sequence, first;
};
void part_of_tensor(const struct part *at, const tg_host_tensor *whole, const tg_host_tensor *part, bool to_whole);
/* A change_fn for results_of: user is struct part[2], of the forward and of the backward. */
void take_part(tg_problem *problem, void *user);

#endif
