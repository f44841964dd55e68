/* tests/dsl/test.h - what the files of test_dsl share. */
#ifndef TESTS_DSL_TEST_H
#define TESTS_DSL_TEST_H

#include "dsl/check.h"
#include "tests/dsl/forms.h"
#include "tests/dsl/good.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- copy.c: a sink and a writer that remember, and copies of good.c and forms.c that can be
 * spoiled ---- */

struct log {
    char codes[4096], text[65536];
};

void remember(void *user, const tg_diag *diag);           /* a tg_sink into a log */
void collect(void *user, const char *text, size_t bytes); /* a tg_writer into a log's text */

enum { SPARE = N_GOOD, MOST_VARIED = 256 };

struct copy {
    tg_tensor tensors[TG_MAX_TILES];
    tg_stmt body[TG_MAX_BODY];
    tg_scalar scalars[TG_MAX_SCALARS];
    tg_algorithm algorithm, other;
    tg_schedule schedule, stranger;
    tg_vary vary[MOST_VARIED];
    tg_space space;
    const char *aliases[2];
    const tg_schedule *schedules[2];
    const tg_space *spaces[2];
    tg_point points[3];
    tg_alias names[2];
    tg_variant variant;
};

void copy_good(struct copy *c);
void copy_variant(struct copy *c, const tg_variant *variant);

/* ---- tables.c, text.c, garbage.c ---- */

void test_tables(void **state);
void test_table_texts(void **state);
void test_own_table(void **state);
void test_states_alone(void **state);
void test_states_alone_once(void **state);
void test_states_alone_of_none(void **state);
void test_golden(void **state);
void test_infix(void **state);
void test_diff_and_apply(void **state);
void test_apply_mistakes(void **state);
void test_key(void **state);
void test_key_of_forms(void **state);
void test_dim_names(void **state);
void test_garbage(void **state);

#endif
