/* program/verify.h - the parts of the checks of programs and sets. */
#ifndef TEGULA_VERIFY_H
#define TEGULA_VERIFY_H

#include "program/program.h"

/* That a struct is of this version; `what` it is, for the message. */
tg_status verify_header(const char *what, uint32_t struct_size, uint32_t version, size_t size, const tg_sink *sink);
/* verify_map.c: recipe `i` of a kernel whose arguments and grid are in order. */
tg_status verify_map(const tg_program *program, const tg_kernel *kernel, uint32_t i, const tg_sink *sink);

#endif
