/* tests/runtime_fixture.h - what the tests of the runtime share: a healthy Hopper behind the fake driver, the calls
 * of the sample programs, messages, and the library's allocations counted. */
#ifndef TEGULA_TESTS_RUNTIME_FIXTURE_H
#define TEGULA_TESTS_RUNTIME_FIXTURE_H

#include "runtime/runtime.h"
#include "tests/bundle/sample.h"
#include "tests/fake_cuda.h"
#include "tests/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { N_ARGS = 8 };              /* tensors of the sample program */
#define APART (UINT64_C(1) << 44) /* from the address of one to the next: no strides here lead so far */

extern const char ptx[];
extern struct fake_state *fake;
extern tg_driver *driver;
extern int n_mallocs; /* so far; the linker sends malloc and calloc to the fixture (--wrap) */

int setup(void **state);
int teardown(void **state); /* fails on leaks */

/* Addresses are never followed by a launch of the fake. */
void sample_call(tg_tensor_arg *args);
tg_module *load_program(const tg_program *p);
tg_tensor_arg *arg_named(tg_tensor_arg *args, const char *name);

/* An address for every tensor of the signature; no launch of the fake follows it. */
uint32_t whole_signature(const tg_program *p, tg_tensor_arg *args);
/* What the kernel got as this parameter. */
uint64_t value_of(const tg_program *p, tg_arg_kind kind, int index, uint32_t axis);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
