/* tests/compile/compile.h - what the tests of the compiler share: its messages, and a compilation that is judged. */
#ifndef TEGULA_TESTS_COMPILE_H
#define TEGULA_TESTS_COMPILE_H

#include "cli/cli.h"
#include "tests/kernels/tap.h"

struct width {
    uint32_t dqk, dhv;
};

/* What q, k and v may be. */
enum { N_TYPES = 3, N_TARGETS = 6 };
extern const tg_dtype types[N_TYPES];

/* ---- judge.c ---- */

/* What this sink received since the last log_clear. */
extern const tg_sink log_sink;
const char *log_text(void);
void log_clear(void);

/* "tfla chunk=64"; false, and said why: there is none, or no such field. */
bool schedule_of(const tg_variant *variant, const char *text, tg_schedule *schedule);

/* The schedule makes T by inverting a matrix, and keeps it in registers beside the state. */
bool has_inverse(const tg_algorithm *algorithm);

/* It compiles without a word, and ptxas (NULL: none) takes it without spills, or with no more of them than the README
 * says. */
void compile_with(const tg_variant *variant, const tg_schedule *schedule, const tg_target *target,
                  const tg_shape_class *shape, const char *ptxas);

/* ---- groups of tests ---- */

void suite_targets(const char *ptxas);   /* targets.c */
void suite_walks(const char *ptxas);     /* walks.c */
void suite_cancelled(const char *ptxas); /* cancelled.c */
void suite_refusals(void);               /* refusals.c */
void suite_combinations(void);           /* combinations.c */
void suite_same_code(void);              /* same.c */
void suite_keys(void);                   /* same.c: which code is meant */
/* The plan of one kernel beside a file, NULL: not, which is written anew if it says so. */
void suite_plan(const char *golden, bool is_update); /* same.c */

#endif
