/* tests/bundle/files.h - what the tests of files share: a folder of their own, and messages that are remembered. */
#ifndef TEGULA_TESTS_FILES_H
#define TEGULA_TESTS_FILES_H

#include "runtime/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

struct log {
    char text[4096];
    int n_warnings, n_errors;
};

static inline void remember(void *user, const tg_diag *diag)
{
    struct log *log = user;
    size_t used = strlen(log->text);
    snprintf(log->text + used, sizeof log->text - used, "%s %s\n", diag->code, diag->message);
    log->n_warnings += diag->severity == TG_WARNING;
    log->n_errors += diag->severity == TG_ERROR;
}

#define LOG(name)                                                                                                      \
    struct log name = {0};                                                                                             \
    const tg_sink name##_sink = {remember, &name}

static char folder[] = "/tmp/tegula-files-XXXXXX";

static inline int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tegula-files-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static inline void overwrite(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline size_t slurp(const char *name, char *bytes, size_t capacity)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, capacity - 1, file);
    bytes[n] = '\0';
    fclose(file);
    return n;
}

#endif
