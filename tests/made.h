/* tests/made.h - what LLVM made once is not made again: compiling takes more than half of the tests' time, and
 * many calls, tests and processes want the same kernels. */
#ifndef TEGULA_TESTS_MADE_H
#define TEGULA_TESTS_MADE_H

#include <stdbool.h>

/* Whether what lies in the folder that the environment variable TEGULA_MADE names is taken, and what is missing put there
 * (it is, at first; without the variable everything is made anew). Not for tests of whether the same input gives the same
 * code. */
void made_take(bool is_taken);

/* From now on `known` is asked, by whatever thread compiles, of each module before LLVM's passes, by a hash of all that decides what
 * LLVM makes of it but the sources that call it. If what becomes of it is known, nothing is made, and the PTX is this; else `done` is
 * told when it is made, by the same thread. */
enum { MADE_HASH = 33 };
typedef bool made_known(const char module[MADE_HASH]);
typedef void made_done(void);
void made_ask(made_known *known, made_done *done);
extern const char made_nothing[];

/* From now on code is made without those of LLVM's passes that take half of its time and change a few instructions in a
 * hundred: for tests on the emulator, where most kernels run once, and of whether code is made at all. For good; what was
 * made before stays as it is. The code that ships is compiled by most of test_compile and the corpus, and run by
 * some of the random declarations and the GPU. */
void made_quickly(void);

/* Whether most kernels that a process makes once it has opened the emulator are written down as they stand (plain/plain.h); at
 * first they are. Not where instructions are looked for. One of TEGULA_OF_LLVM kernels (an environment variable; 64 without it)
 * is LLVM's all the same. */
void made_plainly(bool is);
/* Whether since the last call a kernel became LLVM's because of what tests/plain does not know, and what that is. */
enum { MADE_UNKNOWN = 128 };
bool made_unknown(char text[MADE_UNKNOWN]);

#endif
