/* tests/code.h - what of PTX is code. */
#ifndef TEGULA_TESTS_CODE_H
#define TEGULA_TESTS_CODE_H

#include "cli/cli.h"

/* Appends it, without comments, the numbers of source lines and what debuggers read. */
void add_code(struct text *code, const char *ptx);

#endif
