/* tests/tuning_fixture.h - what the files of test_tuning share. */
#ifndef TEGULA_TESTS_TUNING_FIXTURE_H
#define TEGULA_TESTS_TUNING_FIXTURE_H

#include "tests/log.h"
#include "tuning/tuning.h"

/* The emulator, its context current. */
extern tg_machine machine;
/* h = x x: compiles at once. */
extern const tg_variant squares;
/* A request that takes no time, of one timed run. */
tg_tune_request request_of(const tg_variant *variant);

/* ---- tuning_faults.c ---- */

void a_driver_call_that_fails_leaves_nothing_behind(void **state);

#endif
