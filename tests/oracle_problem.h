/* tests/oracle_problem.h - what the tests of the oracle ask it: the tensors of the scalar-gate family, the gates of
 * its variants in fp64, and a call with its memory. */
#ifndef TEGULA_TESTS_ORACLE_PROBLEM_H
#define TEGULA_TESTS_ORACLE_PROBLEM_H

#include "variants/scalar.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- tensors ---- */

enum { /* the gates' own, then their gradients in the same order */
       F = SCALAR_TILES,
       I,
       DECAY,
       LOG_LAMBDA,
       DT_RAW,
       DT_BIAS,
       A_LOG,
       SKIP,
       D_F,
       D_I,
       D_DECAY,
       D_LOG_LAMBDA,
       D_DT_RAW,
       D_DT_BIAS,
       D_A_LOG,
       D_SKIP,
       N_TILES
};

enum extent { ABSENT, KEYS, VALUES, TOKENS, HEADS, STATES, COLUMNS, NUMBERS };

/* Role and name are those of the files; mean and sigma of random inputs are such that |q.n| lies on
 * both sides of its floor. */
extern const struct tensor {
    const char *role, *name, *alias;
    enum extent extent;
    double mean, sigma;
} tensors[N_TILES];

int find_tile(const char *role, const char *name); /* 0: none */
bool has_role(int tile, const char *role);
size_t count(const tg_oracle_call *c, int tile); /* elements */

/* ---- the variants ---- */

enum { SCALE, TAU, EPS, EXACT, N_SCALARS };
enum { N_KINDS = 8 };

extern const struct kind {
    const char *name;
    struct scalar_oracle how;
    int own[5];
} kinds[N_KINDS];

bool is_normalised(const struct kind *kind);
bool has_max(const struct kind *kind);

/* ---- a problem: a call and its memory ---- */

struct problem {
    const struct kind *kind;
    tg_oracle_call call;
    double scalars[N_SCALARS];
    double *in[N_TILES], *out[N_TILES];
};

double *allocate(size_t n); /* of NaN; free() it */
void set_call(struct problem *p, const tg_oracle_call *shape);
void make_outputs(struct problem *p);
void release(struct problem *p);

/* Every test writes into NaN, as the command does. */
void run_forward(struct problem *p);
void run_backward(struct problem *p);

#endif
