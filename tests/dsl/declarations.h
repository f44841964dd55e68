/* tests/dsl/declarations.h - declarations that the checker must accept: the one that test_dsl.c
 * spoils in many ways, and those that later milestones need, written to see that the structs hold
 * them. */
#ifndef TESTS_DSL_DECLARATIONS_H
#define TESTS_DSL_DECLARATIONS_H

#include "dsl/tegula.h"

/* good.c; its tiles are in good.h */
extern const tg_variant good;
extern const tg_schedule good_walk, good_segments, good_starts, good_step;

/* forms.c; its tiles are in forms.h */
extern const tg_variant forms;

/* backward.c, gla.c, kda.c */
extern const tg_schedule backward_tfla, gla_tfla, kda_three, kda_one;

#endif
