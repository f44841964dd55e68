/* tests/dsl/copy.c - messages and text are remembered, good declarations are copied. */
#include "tests/dsl/test.h"

static void append(char *to, size_t size, const char *text, size_t bytes)
{
    const size_t used = strlen(to);
    if (bytes > size - used - 1)
        bytes = size - used - 1;
    memcpy(to + used, text, bytes);
    to[used + bytes] = '\0';
}

void remember(void *user, const tg_diag *diag)
{
    struct log *log = user;
    char line[2048];
    assert_non_null(diag->hint);
    append(log->codes, sizeof log->codes, " ", log->codes[0] != '\0');
    append(log->codes, sizeof log->codes, diag->code, strlen(diag->code));
    (void)snprintf(line, sizeof line, "%s %s:%d: %s (%s)\n", diag->code, diag->file ? diag->file : "-",
                   diag->line, diag->message, diag->hint);
    append(log->text, sizeof log->text, line, strlen(line));
}

void collect(void *user, const char *text, size_t bytes)
{
    struct log *log = user;
    append(log->text, sizeof log->text, text, bytes);
}

void copy_good(struct copy *c)
{
    copy_variant(c, &good);
}

void copy_variant(struct copy *c, const tg_variant *variant)
{
    memset(c, 0, sizeof *c);
    c->variant = *variant;
    c->algorithm = *variant->algorithm;
    c->schedule = *variant->schedules[0];
    c->space = *variant->spaces[0];
    memcpy(c->tensors, c->algorithm.tensors, c->algorithm.n_tensors * sizeof *c->tensors);
    memcpy(c->body, c->algorithm.body, c->algorithm.n_body * sizeof *c->body);
    memcpy(c->vary, c->space.vary, c->space.n_vary * sizeof *c->vary);
    if (c->algorithm.scalars) {
        memcpy(c->scalars, c->algorithm.scalars, c->algorithm.n_scalars * sizeof *c->scalars);
        c->algorithm.scalars = c->scalars;
    }
    c->algorithm.tensors = c->tensors;
    c->algorithm.body = c->body;
    c->schedule.algorithm = &c->algorithm;
    c->space.schedule = &c->schedule;
    c->space.vary = c->vary;
    c->aliases[0] = variant->aliases[0];
    c->schedules[0] = &c->schedule;
    c->spaces[0] = &c->space;
    c->variant.algorithm = &c->algorithm;
    c->variant.aliases = c->aliases;
    c->variant.schedules = c->schedules;
    c->variant.spaces = c->spaces;
}
