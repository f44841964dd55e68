/* program/fail.h - one line to report an error and return its status, for program/ and runtime/. */
#ifndef TEGULA_FAIL_H
#define TEGULA_FAIL_H

#include "program/program.h"

/* Arguments: sink, status, code, hint (may be NULL), format, values... Yields the status. */
#define tg_fail(sink, status, code, hint, ...)                                                                         \
    (tg_report((sink), TG_ERROR, (code), NULL, 0, (hint), __VA_ARGS__), (status))

/* A rule of the format, in a function with a `sink`: returns TG_E_FORMAT with the message where it does not hold. */
#define REQUIRE_CODE(code, condition, ...)                                                                             \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return tg_fail(sink, TG_E_FORMAT, code, NULL, __VA_ARGS__);                                                \
    } while (0)

#endif
