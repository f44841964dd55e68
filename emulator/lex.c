/* lex.c - PTX text to words and numbers, and the error that ends a parse. */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>

void *grow_list(void *list, u32 *capacity, size_t size)
{
    *capacity = *capacity ? 2 * *capacity : 32;
    list = realloc(list, *capacity * size);
    if (!list)
        abort(); /* nothing of ours is this large: the machine is gone */
    return list;
}

void fail(struct builder *b, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *text = b->line <= b->module->n_lines ? b->module->lines[b->line] : "";
    while (*text == ' ' || *text == '\t')
        text++;
    const int n = (int)strcspn(text, "\n");
    report_set(b->report, REPORT_INVALID_PTX, "%s\n  ptx line %u: %.*s%s%s", what, b->line, n > 300 ? 300 : n, text,
               b->kernel ? "\n  kernel " : "", b->kernel ? b->kernel->name : "");
    longjmp(b->failed, 1);
}

/* Of ASCII, in which PTX is written; ctype's would be a call a character. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$' || c == '%';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void skip_space(struct builder *b)
{
    while (b->at < b->end) {
        if (*b->at == '\n') {
            b->line++;
            b->at++;
        } else if (is_space(*b->at)) {
            b->at++;
        } else if (b->at[0] == '/' && b->at[1] == '/') {
            while (b->at < b->end && *b->at != '\n')
                b->at++;
        } else if (b->at[0] == '/' && b->at[1] == '*') {
            for (b->at += 2; b->at < b->end && !(b->at[0] == '*' && b->at[1] == '/'); b->at++)
                b->line += *b->at == '\n';
            b->at += 2;
        } else {
            break;
        }
    }
    if (b->at > b->end)
        b->at = b->end;
}

char peek(struct builder *b)
{
    skip_space(b);
    return b->at < b->end ? *b->at : 0;
}

bool take(struct builder *b, char c)
{
    if (peek(b) != c || !c)
        return false;
    b->at++;
    return true;
}

void need(struct builder *b, char c)
{
    if (!take(b, c))
        fail(b, "expected '%c'", c);
}

/* A name; `dots` takes those in it too, as mnemonics, directives and %tid.x need. */
const char *read_name(struct builder *b, u32 *length, bool dots)
{
    skip_space(b);
    const char *start = b->at;
    while (b->at < b->end && (is_name(*b->at) || (dots && (*b->at == '.' || *b->at == ':'))))
        b->at++;
    *length = (u32)(b->at - start);
    return start;
}

bool name_is(const char *name, u32 length, const char *what)
{
    return length == strlen(what) && !memcmp(name, what, length);
}

bool take_word(struct builder *b, const char *word)
{
    u32 n;
    skip_space(b);
    const char *at = b->at, *name = read_name(b, &n, true);
    if (name_is(name, n, word))
        return true;
    b->at = at;
    return false;
}

static u64 read_hex(struct builder *b, u32 digits)
{
    char text[20] = "";
    if ((size_t)(b->end - b->at) < digits)
        fail(b, "number cut off");
    memcpy(text, b->at, digits);
    b->at += digits;
    return strtoull(text, NULL, 16);
}

/* An integer, or a float in one of its forms. */
struct operand read_number(struct builder *b)
{
    struct operand o = {.kind = OPERAND_IMM, .second = -1, .bits = 64};
    const bool is_negative = take(b, '-');
    skip_space(b);
    if (b->at[0] == '0' && (b->at[1] == 'f' || b->at[1] == 'F' || b->at[1] == 'd' || b->at[1] == 'D')) {
        const bool is_float = b->at[1] == 'f' || b->at[1] == 'F';
        b->at += 2;
        o.kind = is_float ? OPERAND_FLOAT : OPERAND_DOUBLE;
        o.value = read_hex(b, is_float ? 8 : 16);
        if (is_negative)
            o.value ^= is_float ? 1ull << 31 : 1ull << 63;
        return o;
    }
    char *stop, *float_stop;
    const bool is_binary = b->at[0] == '0' && (b->at[1] == 'b' || b->at[1] == 'B');
    o.value = strtoull(is_binary ? b->at + 2 : b->at, &stop, is_binary ? 2 : 0);
    if (stop == b->at)
        fail(b, "expected a number");
    if (*stop == '.' || ((*stop == 'e' || *stop == 'E') && b->at[1] != 'x')) {
        const double d = strtod(b->at, &float_stop) * (is_negative ? -1 : 1);
        memcpy(&o.value, &d, sizeof d);
        o.kind = OPERAND_DOUBLE;
        stop = float_stop;
    } else if (is_negative) {
        o.value = 0 - o.value;
    }
    b->at = stop;
    if (*b->at == 'U')
        b->at++;
    return o;
}

u64 read_integer(struct builder *b)
{
    const struct operand o = read_number(b);
    if (o.kind != OPERAND_IMM)
        fail(b, "expected an integer");
    return o.value;
}

char *copy_name(const char *name, u32 length)
{
    char *s = malloc(length + 1);
    memcpy(s, name, length);
    s[length] = 0;
    return s;
}
