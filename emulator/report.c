/* report.c - what went wrong, where: the text that cuGetErrorString gives. */
#include "emu.h"

#include <ctype.h>
#include <stdio.h>

int report_result(enum report_kind kind)
{
    static const int results[] = {
#define X(id, name, result) result,
        REPORT_KINDS(X)
#undef X
    };
    return results[kind];
}

static const char *kind_name(enum report_kind kind)
{
    static const char *const names[] = {
#define X(id, name, result) name,
        REPORT_KINDS(X)
#undef X
    };
    return names[kind];
}

void report_set(struct report *r, enum report_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = snprintf(r->text, sizeof r->text, "[%s] ", kind_name(kind));
    vsnprintf(r->text + n, sizeof r->text - (size_t)n, format, args);
    va_end(args);
    r->is_set = true;
    r->kind = kind;
}

/* "line 12: st.shared.b32 [%r1], %r2;" */
void describe_insn(char *out, size_t size, const struct kernel *k, u32 serial)
{
    const u32 line = k->code[serial].line;
    const char *text = k->module->lines[line];
    size_t n = 0;
    while (isspace((unsigned char)*text) && *text != '\n')
        text++;
    while (text[n] && text[n] != '\n')
        n++;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    if (n > 200)
        n = 200;
    snprintf(out, size, "line %u: %.*s", line, (int)n, text);
}

static int append_place(char *out, size_t size, const struct warp *w, int lane)
{
    const struct cta *c = w->cta;
    const u32 *block = c->launch->block;
    int n = snprintf(out, size, "  kernel %s, CTA (%u,%u,%u), ", w->kernel->name, c->id[0], c->id[1], c->id[2]);
    if (c->cluster->n > 1)
        n += snprintf(out + n, size - (size_t)n, "%u of its cluster, ", c->rank);
    n += snprintf(out + n, size - (size_t)n, "warp %u", w->id);
    if (lane != ALL_LANES) {
        const u32 t = w->id * LANES + (u32)lane;
        n += snprintf(out + n, size - (size_t)n, " lane %d, thread (%u,%u,%u)", lane, t % block[0],
                      t / block[0] % block[1], t / block[0] / block[1]);
    }
    return n;
}

/* Stops the CTA; its first fault is the one reported. */
void fault(struct warp *w, enum report_kind kind, int lane, const char *format, ...)
{
    struct report *r = w->cta->report;
    w->event = EVENT_FAULT;
    if (r->is_set)
        return;
    char what[1700], place[256], insn[320], source[512] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    append_place(place, sizeof place, w, lane);
    describe_insn(insn, sizeof insn, w->kernel, w->at->serial);
    const struct module *m = w->kernel->module;
    if (w->at->file < m->n_files && m->files[w->at->file])
        snprintf(source, sizeof source, "\n  source %s:%u", m->files[w->at->file], w->at->src_line);
    report_set(r, kind, "%s\n%s\n  ptx %s%s", what, place, insn, source);
}
