/* tests/made.h - what LLVM and ptxas made once is not made again: compiling takes more than half of the tests' time, and
 * many calls, tests and processes want the same kernels. */
#ifndef TEGULA_TESTS_MADE_H
#define TEGULA_TESTS_MADE_H

#include <stdbool.h>

/* Whether what lies in the folder that the environment variable TEGULA_MADE names is taken, and what is missing put there
 * (it is, at first; without the variable everything is made anew). Not for tests of whether the same input gives the same
 * code. */
void made_take(bool is_taken);

#endif
