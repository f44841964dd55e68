/* tests/compile/assembled.h - what ptxas said of kernels, kept: it takes two thirds of the time of the compiler's tests. */
#ifndef TEGULA_TESTS_ASSEMBLED_H
#define TEGULA_TESTS_ASSEMBLED_H

#include <stdbool.h>

/* From now on neither LLVM nor ptxas is asked about a kernel of which the file (NULL: none) has a line of these versions; its numbers
 * are judged as if they were measured. The environment variable TEGULA_ASSEMBLE, "PERCENT SEED", has that many of them made
 * nevertheless, chosen at random: they must be as they were. `list` (NULL: none): where lines are written, of all kernels that
 * come by. What is not recorded is assembled, and kept in the folder TEGULA_MADE until the next time. Without ptxas (NULL) LLVM is
 * not asked about what any ptxas has assembled. */
void assembled_begin(const char *ptxas, const char *record, const char *list);

/* What is asked about the next kernels. */
enum assembled_what { ASSEMBLED_NOTHING, ASSEMBLED_CODE /* that LLVM makes it */, ASSEMBLED_CUBIN };
void assembled_ask(enum assembled_what what);

/* Says how many kernels were assembled. A test: with TEGULA_ASSEMBLE, most must be recorded. */
void assembled_end(void);

#endif
