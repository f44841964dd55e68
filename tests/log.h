/* tests/log.h - a sink that remembers, for tests with cmocka. */
#ifndef TEGULA_TESTS_LOG_H
#define TEGULA_TESTS_LOG_H

#include "program/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct log {
    char text[16384];
    int n; /* messages */
};

/* Of a sink whose user is a log: "CODE message (hint)" in a line. */
static inline void remember(void *user, const tg_diag *diag)
{
    struct log *log = user;
    size_t used = strlen(log->text);
    const char *const hint = diag->hint ? diag->hint : "";
    snprintf(log->text + used, sizeof log->text - used, *hint ? "%s %s (%s)\n" : "%s %s%s\n", diag->code, diag->message,
             hint);
    log->n++;
}

#define LOG(name)                                                                                                      \
    struct log name = {0};                                                                                             \
    const tg_sink name##_sink = {remember, &name}

static inline void assert_says(const struct log *log, const char *expected)
{
    if (!strstr(log->text, expected))
        fail_msg("expected \"%s\" in \"%s\"", expected, log->text);
}

#endif
