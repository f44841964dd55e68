/* program/generate_text.c - templates with keys, and the names that C and C++ leave free. */
#include "program/generate.h"
#include "program/fail.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gen_append(struct text *text, const char *format, ...)
{
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    const int n = vsnprintf(NULL, 0, format, values);
    if (n >= 0 && text_reserve(text, (size_t)n + 1)) {
        vsnprintf(text->bytes + text->size, (size_t)n + 1, format, again);
        text->size += (size_t)n;
    }
    va_end(again);
    va_end(values);
}

struct text *gen_add_key(struct keys *keys, const char *name)
{
    struct key *key = &keys->row[keys->n++];
    key->name = name;
    gen_append(&key->value, "%s", ""); /* an empty value is text too */
    return &key->value;
}

static const struct text *find_key(const struct keys *keys, const char *name, size_t length)
{
    for (size_t i = 0; i < keys->n; i++)
        if (strlen(keys->row[i].name) == length && memcmp(keys->row[i].name, name, length) == 0)
            return &keys->row[i].value;
    return NULL;
}

/* Replaces every @key@ of the template. */
char *gen_expand(const char *template_text, const struct keys *keys)
{
    struct text out = {0};
    const char *rest = template_text;
    for (const char *at; (at = strchr(rest, '@')) != NULL;) {
        size_t length = strcspn(at + 1, "@");
        const struct text *value = find_key(keys, at + 1, length);
        text_add(&out, rest, (size_t)(at - rest));
        if (value && !value->is_failed)
            text_add(&out, value->bytes, value->size);
        else
            out.is_failed = true;
        rest = at + length + 2;
    }
    text_add(&out, rest, strlen(rest));
    if (!out.is_failed)
        return out.bytes;
    free(out.bytes);
    return NULL;
}

/* Keywords of C11, and of C++ up to 20, macros of <iso646.h>, and those that gcc defines unasked. */
static bool is_keyword(const char *name)
{
    static const char *const words[] = {
        "alignas",   "alignof",   "and",           "and_eq",       "asm",
        "auto",      "bitand",    "bitor",         "bool",         "break",
        "case",      "catch",     "char",          "char16_t",     "char32_t",
        "char8_t",   "class",     "co_await",      "co_return",    "co_yield",
        "compl",     "concept",   "const",         "const_cast",   "consteval",
        "constexpr", "constinit", "continue",      "decltype",     "default",
        "delete",    "do",        "double",        "dynamic_cast", "else",
        "enum",      "explicit",  "export",        "extern",       "false",
        "float",     "for",       "friend",        "goto",         "i386",
        "if",        "inline",    "int",           "linux",        "long",
        "mutable",   "namespace", "new",           "noexcept",     "not",
        "not_eq",    "nullptr",   "operator",      "or",           "or_eq",
        "private",   "protected", "public",        "register",     "reinterpret_cast",
        "requires",  "restrict",  "return",        "short",        "signed",
        "sizeof",    "static",    "static_assert", "static_cast",  "struct",
        "switch",    "template",  "this",          "thread_local", "throw",
        "true",      "try",       "typedef",       "typeid",       "typename",
        "union",     "unix",      "unsigned",      "using",        "virtual",
        "void",      "volatile",  "wchar_t",       "while",        "xor",
        "xor_eq",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

/* As macros are written: NULL, EOF, INT_MAX. What headers define is more than a list could name. */
static bool is_like_a_macro(const char *name)
{
    const size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n > 2 && name[n] == '\0' && isalpha((unsigned char)name[0]) && isalpha((unsigned char)name[1]);
}

bool gen_is_taken(const char *name)
{
    return is_keyword(name) || *name == '_' || is_like_a_macro(name);
}

static bool is_identifier(const char *name)
{
    if (!(isalpha((unsigned char)*name) || *name == '_'))
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == '\0';
}

/* What C and C++ keep for themselves, or our common header has. */
static bool is_reserved(const char *name)
{
    return is_keyword(name) || *name == '_' || strstr(name, "__") || strcmp(name, "tegula") == 0 ||
           strcmp(name, "tegula_embed") == 0;
}

tg_status tg_c_name_check(const char *name, const tg_sink *sink)
{
    enum { MAX_PREFIX = 64 };
    if (!name || !is_identifier(name) || strlen(name) > MAX_PREFIX)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0731", "letters, digits and _ make an identifier",
                       "name: expected a C identifier of at most %d characters, found %.80s", MAX_PREFIX,
                       name ? name : "NULL");
    if (is_reserved(name))
        return tg_fail(sink, TG_E_ARGUMENT, "TG0731", "put something before or behind it",
                       "name: expected one that C, C++ and tegula_embed.h leave free, found %s", name);
    return TG_OK;
}
