/* tests/kernels/damage.c */
#include "damage.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 4096 }; /* wgmma names its registers one by one */

/* "[%rd8+6144]" becomes "[%rd8+6160]" */
static void shift_address(const char *line, long by, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *open = strchr(line, '['), *close = strchr(line, ']');
    const char *plus = open ? memchr(open, '+', (size_t)(close - open)) : NULL;
    const char *end = plus ? plus : close;
    tg_printf(&w, "%.*s+%ld%s", (int)(end - line), line, (plus ? strtol(plus, NULL, 10) : 0) + by, close);
}

/* Addresses in shared memory may have 32 bits. */
static void shift_lane(const char *line, const char *by, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *open = strchr(line, '[') + 1;
    const size_t base = strcspn(open, "+]");
    const bool is_wide = strncmp(open, "%r", 2) != 0 || open[2] == 'd';
    const char *address = is_wide ? "%mut_rd" : "%mut_s";
    const int bits = is_wide ? 64 : 32;
    tg_printf(&w, "%sand.b32 %%mut_r, %%mut_r, 31;\nsetp.eq.u32 %%mut_p, %%mut_r, 5;\n", REGISTERS);
    tg_printf(&w, "selp.b%d %s, %s, 0, %%mut_p;\nadd.s%d %s, %s, %.*s;\n", bits, address, by, bits, address, address,
              (int)base, open);
    tg_printf(&w, "%.*s%s%s", (int)(open - line), line, address, open + base);
}

/* The first two registers of a list in braces, or the last two operands of a plain instruction. */
static void swap_registers(const char *line, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *brace = strchr(line, '{');
    const char *a = brace ? brace + 1 : strchr(line, ',') + 2;
    const size_t n_a = strcspn(a, ",");
    const char *b = a + n_a + 2;
    const size_t n_b = strcspn(b, ",};");
    tg_printf(&w, "%.*s%.*s, %.*s%s", (int)(a - line), line, (int)n_b, b, (int)n_a, a, b + n_b);
}

/* setp.lt.u32 %p1, %r1, %r2 becomes r1 != r1 */
static void never(const char *line, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *predicate = strchr(line, '%'), *a = strchr(predicate, ',') + 2;
    const int n_p = (int)strcspn(predicate, ","), n_a = (int)strcspn(a, ",");
    tg_printf(&w, "setp.ne.u32 %.*s, %.*s, %.*s;", n_p, predicate, n_a, a, n_a, a);
}

static void damage_line(const struct injury *m, const char *line, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *needle = strstr(line, m->needle);
    switch (m->damage) {
    case DELETE:
        break;
    case SUBSTITUTE:
        tg_printf(&w, "%.*s%s%s", (int)(needle - line), line, m->text, needle + strlen(m->needle));
        break;
    case REPLACE:
        tg_printf(&w, "%s", m->text);
        break;
    case SHIFT:
        shift_address(line, strtol(m->text, NULL, 10), out);
        break;
    case LANE:
        shift_lane(line, m->text, out);
        break;
    case SWAP:
        swap_registers(line, out);
        break;
    case NEVER:
        never(line, out);
        break;
    }
}

char *damage_text(const struct injury *m, const char *ptx, uint32_t which, char damaged[200])
{
    struct text out = {0};
    const tg_writer w = text_writer(&out);
    uint32_t seen = 0, line_number = 0, wanted = UINT32_MAX;
    for (const char *at = ptx; *at; line_number++) {
        char line[MAX_LINE];
        const size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        if (strstr(line, m->needle) && seen++ == which) {
            wanted = line_number + (m->damage == SWAP ? (uint32_t)atoi(m->text) : 0);
            snprintf(damaged, 200, "%.150s", line + strspn(line, "\t"));
        }
        if (line_number == wanted)
            damage_line(m, line, &out);
        else
            tg_printf(&w, "%s", line);
        tg_printf(&w, "\n");
        at += n + (at[n] == '\n');
    }
    if (seen > which)
        return out.bytes;
    text_free(&out);
    return NULL;
}
