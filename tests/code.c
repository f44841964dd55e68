/* tests/code.c */
#include "code.h"

#include <string.h>

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

static void add_line(struct text *code, const char *line, size_t n)
{
    const tg_writer writer = text_writer(code);
    while (n > 0 && (*line == ' ' || *line == '\t'))
        line++, n--;
    if (begins(line, ".loc") || begins(line, ".file") || begins(line, "$L__tmp"))
        return;
    for (size_t i = 0; i + 1 < n; i++)
        if (line[i] == '/' && line[i + 1] == '/')
            n = i;
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    if (n > 0)
        tg_printf(&writer, "%.*s\n", (int)n, line);
}

/* Sections hold what debuggers read, behind the code. */
void add_code(struct text *code, const char *ptx)
{
    bool is_section = false;
    for (const char *line = ptx; *line;) {
        const size_t n = strcspn(line, "\n");
        is_section = is_section || begins(line, "\t.section");
        if (!is_section)
            add_line(code, line, n);
        else if (memchr(line, '}', n))
            is_section = false;
        line += n + (line[n] == '\n');
    }
}
