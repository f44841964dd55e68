/* tests/alike.h - the delta rule where its inverse is largest: keys that are alike, and beta near 2. */
#ifndef TEGULA_TESTS_ALIKE_H
#define TEGULA_TESTS_ALIKE_H

#include "tuning/numbers.h"
#include "tuning/tuning.h"

#include <math.h>

/* Each key is of length 1, and between its own direction and that of its head's first; every beta is 1.9. */
static inline void make_alike(tg_problem *problem)
{
    const tg_host_tensor *k = tg_problem_tensor(problem, "k"), *beta = tg_problem_tensor(problem, "beta");
    const size_t width = (size_t)k->extent[3], head = (size_t)k->extent[2] * width;
    for (size_t row = k->n; row > 0; row -= width) { /* the first of a head last */
        double sum = 0, x;
        for (size_t e = row - width; e < row; e++) {
            x = tg_num_load(k->data, k->dtype, e) + tg_num_load(k->data, k->dtype, e / head * head + e % width);
            sum += x * x;
            tg_num_store(k->data, k->dtype, e, x);
        }
        for (size_t e = row - width; e < row; e++)
            tg_num_store(k->data, k->dtype, e, tg_num_load(k->data, k->dtype, e) / sqrt(sum));
    }
    for (size_t e = 0; e < beta->n; e++)
        tg_num_store(beta->data, beta->dtype, e, 1.9);
}

#endif
