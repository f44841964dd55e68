/* program/arch.h - which GPUs a program is for; for program/ and runtime/. */
#ifndef TEGULA_ARCH_H
#define TEGULA_ARCH_H

#include "program/program.h"

#include <stdbool.h>
#include <stdlib.h>

/* "sm_90a" is 90: verified programs have digits there. */
static inline int arch_number(const tg_program *program)
{
    return (int)strtol(program->arch + sizeof "sm_" - 1, NULL, 10);
}

/* Whether a GPU of compute capability `cc` (90 is 9.0) runs it. */
static inline bool runs_on(const tg_program *program, int cc)
{
    return arch_number(program) == cc || (arch_number(program) < cc && !program->arch_exact);
}

#endif
