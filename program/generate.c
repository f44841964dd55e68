/* program/generate.c - a set of programs as a pair of C files.
 *
 * Everything that is the same in all of them is text in embed_template.{h,c}.in, with @keys@ where
 * sets differ. This file makes the values of the keys and puts them in; the templates reach
 * it as arrays made by CMake. */
#include "program/fail.h"
#include "program/set.h"
#include "program/tensor.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char header_template[] = {
#include "embed_template.h.inc"
    0};
static const char source_template[] = {
#include "embed_template.c.inc"
    0};
static const char common_header[] = {
#include "tegula_embed.h.inc"
    0};

/* Text that grows; a failed allocation makes every later append a no-op. */
struct text {
    char *data;
    size_t length, capacity;
    bool is_failed;
};

static bool reserve(struct text *text, size_t more)
{
    if (text->is_failed || more < text->capacity - text->length)
        return !text->is_failed;
    size_t capacity = 2 * text->capacity + more + 1;
    char *data = realloc(text->data, capacity);
    text->is_failed = data == NULL;
    if (!data)
        return false;
    text->data = data;
    text->capacity = capacity;
    return true;
}

static void append_bytes(struct text *text, const char *bytes, size_t n)
{
    if (!reserve(text, n))
        return;
    memcpy(text->data + text->length, bytes, n);
    text->length += n;
    text->data[text->length] = '\0';
}

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
    char line[512]; /* pieces are short: names have fixed widths */
    va_list values;
    va_start(values, format);
    int n = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (n >= 0)
        append_bytes(text, line, strlen(line));
}

/* ---- keys and their values ---- */

enum { MAX_KEYS = 40 };

struct key {
    const char *name;
    struct text value;
};

struct keys {
    struct key row[MAX_KEYS];
    size_t n;
};

static struct text *add_key(struct keys *keys, const char *name)
{
    struct key *key = &keys->row[keys->n++];
    key->name = name;
    append(&key->value, "%s", ""); /* an empty value is text too */
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
static char *expand(const char *template_text, const struct keys *keys)
{
    struct text out = {0};
    const char *rest = template_text;
    for (const char *at; (at = strchr(rest, '@')) != NULL;) {
        size_t length = strcspn(at + 1, "@");
        const struct text *value = find_key(keys, at + 1, length);
        append_bytes(&out, rest, (size_t)(at - rest));
        if (value && !value->is_failed)
            append_bytes(&out, value->data, value->length);
        else
            out.is_failed = true;
        rest = at + length + 2;
    }
    append_bytes(&out, rest, strlen(rest));
    if (!out.is_failed)
        return out.data;
    free(out.data);
    return NULL;
}

/* ---- C from the program ---- */

/* Keywords of C11, and of C++ up to 20, and macros of <iso646.h>. */
static bool is_keyword(const char *name)
{
    static const char *const words[] = {
        "alignas",
        "alignof",
        "and",
        "and_eq",
        "asm",
        "auto",
        "bitand",
        "bitor",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "char16_t",
        "char32_t",
        "char8_t",
        "class",
        "co_await",
        "co_return",
        "co_yield",
        "compl",
        "concept",
        "const",
        "const_cast",
        "consteval",
        "constexpr",
        "constinit",
        "continue",
        "decltype",
        "default",
        "delete",
        "do",
        "double",
        "dynamic_cast",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "not_eq",
        "nullptr",
        "operator",
        "or",
        "or_eq",
        "private",
        "protected",
        "public",
        "register",
        "reinterpret_cast",
        "requires",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "static_assert",
        "static_cast",
        "struct",
        "switch",
        "template",
        "this",
        "thread_local",
        "throw",
        "true",
        "try",
        "typedef",
        "typeid",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "wchar_t",
        "while",
        "xor",
        "xor_eq",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

static const char *suffix(const tg_tensor_info *t)
{
    return is_keyword(t->name) ? "_" : "";
}

/* "[B, NH/4, T, dqk]": as long as the strides that the caller gives, so an axis that is not there
 * is 1. */
static void describe_axes(struct text *text, const tg_program *program, uint32_t tensor)
{
    static const char *const axes[TG_N_AXES] = {
        [TG_AXIS_NONE] = "", [TG_T] = ", T",         [TG_CHUNK] = ", ceil(T/L)", [TG_DQK] = ", dqk",
        [TG_DHV] = ", dhv",  [TG_PARTS] = ", parts", [TG_CUTS] = ", B+1",        [TG_POSITION] = ", L",
    };
    const tg_tensor_info *t = &program->tensors[tensor];
    append(text, "[%s", lacks_axis(program, tensor, 0) ? "1" : tg_tensor_is_slot(program, tensor) ? "slots" : "B");
    append(text, lacks_axis(program, tensor, 1) ? ", 1" : ", NH");
    if ((t->flags & TG_SHARED) && program->group > 1)
        append(text, "/%" PRIu32, program->group);
    for (int a = 0; a < TG_MAX_AXES; a++)
        if (t->axes[a] == TG_CHUNK && t->segment)
            append(text, ", ceil(%s/%d)", program->packed ? "(T/L+B)" : "T/L", t->segment);
        else
            append(text, "%s", t->axes[a] == TG_CHUNK && program->packed ? ", T/L+B" : axes[t->axes[a]]);
    append(text, "]");
}

static void describe_tensor(struct text *text, const tg_program *program, uint32_t tensor)
{
    const tg_tensor_info *t = &program->tensors[tensor];
    append(text, "%s%s  %s ", t->name, suffix(t), tg_dtype_name((tg_dtype)t->dtype));
    describe_axes(text, program, tensor);
    append(text, "%s", t->flags & TG_OPTIONAL ? ", may be absent" : "");
}

static void add_signature(struct keys *keys, const tg_program *program)
{
    struct text *signature = add_key(keys, "signature"), *fields = add_key(keys, "tensor_fields");
    struct text *types = add_key(keys, "tensor_types");
    for (uint32_t i = 0; i < program->n_tensors && !is_workspace(&program->tensors[i]); i++) {
        const tg_tensor_info *t = &program->tensors[i];
        append(signature, " *     %-4s ",
               (t->flags & TG_IN) && (t->flags & TG_OUT) ? "both"
               : t->flags & TG_IN                        ? "in"
                                                         : "out");
        describe_tensor(signature, program, i);
        append(signature, "\n");
        append(types, "    @NAME@_TYPE_%s = %d, /* %s */\n", t->name, t->dtype, tg_dtype_name((tg_dtype)t->dtype));
        append(fields, "    tegula_tensor %s%s; /* ", t->name, suffix(t));
        describe_tensor(fields, program, i);
        append(fields, " */\n");
    }
}

/* The extents of the axes B and NH as terms: { size, div, mul }. */
static void append_outer(struct text *text, const tg_program *program, uint32_t tensor)
{
    const bool is_shared = program->tensors[tensor].flags & TG_SHARED;
    append(text, "{%s, 1, 1}", lacks_axis(program, tensor, 0) ? "ONE" : "BATCH");
    append(text, ", {%s, %" PRIu32 ", 1}", lacks_axis(program, tensor, 1) ? "ONE" : "HEADS",
           is_shared ? program->group : 1);
}

static void append_extent(struct text *text, const tg_program *program, const tg_tensor_info *t, uint8_t axis)
{
    static const char *const sizes[TG_N_AXES] = {
        [TG_AXIS_NONE] = "ONE", [TG_T] = "TOKENS",  [TG_CHUNK] = "CHUNKS", [TG_DQK] = "ONE",
        [TG_DHV] = "ONE",       [TG_PARTS] = "ONE", [TG_CUTS] = "CUTS",    [TG_POSITION] = "ONE",
    };
    const uint32_t width = axis == TG_DQK        ? program->dqk
                           : axis == TG_DHV      ? program->dhv
                           : axis == TG_PARTS    ? t->parts
                           : axis == TG_POSITION ? program->chunk_default
                                                 : 1;
    const uint32_t entries = axis == TG_CHUNK && t->segment ? t->segment : 1;
    append(text, ", {%s, %" PRIu32 ", %" PRIu32 "}", sizes[axis], entries, width);
}

static int count_axes(const tg_tensor_info *t)
{
    int n = 2;
    while (n < 2 + TG_MAX_AXES && t->axes[n - 2] != TG_AXIS_NONE)
        n++;
    return n;
}

/* The driver's number of the type of a tensor with a map; the verifier saw that it has one. */
static int map_type(const tg_program *program, uint32_t tensor)
{
    static const int8_t types[] = {[TG_BF16] = 9, [TG_F16] = 6, [TG_F32] = 7};
    return mapped_tensors(program) >> tensor & 1 ? types[program->tensors[tensor].dtype] : -1;
}

static void append_axes(struct text *text, const tg_tensor_info *t)
{
    static const char *const names[TG_N_AXES] = {
        [TG_AXIS_NONE] = "", [TG_T] = "T",         [TG_CHUNK] = "chunk", [TG_DQK] = "dqk",
        [TG_DHV] = "dhv",    [TG_PARTS] = "parts", [TG_CUTS] = "cuts",   [TG_POSITION] = "position",
    };
    append(text, "{\"B\", \"NH\"");
    for (int a = 0; a < TG_MAX_AXES; a++)
        append(text, ", \"%s\"", names[t->axes[a]]);
    append(text, "}, ");
}

static void append_tensor(struct text *text, const tg_program *program, uint32_t i)
{
    const tg_tensor_info *t = &program->tensors[i];
    const int n_axes = count_axes(t);
    const bool is_vector = n_axes > 2 && (t->axes[n_axes - 3] == TG_DQK || t->axes[n_axes - 3] == TG_DHV);
    append(text, "    {\"%s\", ", t->name);
    if (!is_workspace(t))
        append(text, "offsetof(@name@_tensors, %s%s), ", t->name, suffix(t));
    else
        append(text, "0, ");
    append(text, "%d, %" PRIu32 ", %d, %d, %d, %d, %d, %d, %" PRIu32 ", %d,\n     ", t->flags,
           tg_dtype_bytes((tg_dtype)t->dtype), tg_tensor_source(program, i), is_vector, t->dtype == TG_I32,
           tg_tensor_is_slot(program, i), lacks_axis(program, i, 0) | lacks_axis(program, i, 1) << 1,
           map_type(program, i), t->place ? t->place - 1u : i, n_axes);
    append_axes(text, t);
    append(text, "{");
    append_outer(text, program, i);
    for (int a = 0; a < TG_MAX_AXES; a++)
        append_extent(text, program, t, t->axes[a]);
    append(text, "}},\n");
}

static void add_tensors(struct keys *keys, const tg_set *set)
{
    struct text *text = add_key(keys, "tensors");
    uint32_t most = 0;
    for (uint32_t p = 0; p < set->n_programs; p++) {
        const tg_program *program = &set->programs[p];
        most = program->n_tensors > most ? program->n_tensors : most;
        append(text, "static const struct tensor tensors_%" PRIu32 "[] = {\n", p);
        for (uint32_t i = 0; i < program->n_tensors; i++)
            append_tensor(text, program, i);
        append(text, "};\n");
    }
    append(add_key(keys, "max_tensors"), "%" PRIu32, most);
}

/* ---- images: those that several kernels have, once ---- */

static bool is_same_image(const void *a, uint64_t n, const void *b, uint64_t m)
{
    return n == m && (a == b || (a && b && memcmp(a, b, n) == 0));
}

/* The number of the first kernel of the set, counted through all programs, with the PTX and the cubin of this one. */
static uint32_t image_of(const tg_set *set, const tg_kernel *k)
{
    uint32_t at = 0;
    for (uint32_t p = 0; p < set->n_programs; p++)
        for (uint32_t i = 0; i < set->programs[p].n_kernels; i++, at++) {
            const tg_kernel *other = &set->programs[p].kernels[i];
            if (other == k || (is_same_image(k->ptx, k->ptx_bytes, other->ptx, other->ptx_bytes) &&
                               is_same_image(k->cubin, k->cubin_bytes, other->cubin, other->cubin_bytes)))
                return at;
        }
    return at;
}

static void append_kernel(struct text *text, const tg_set *set, const tg_kernel *k, uint32_t first_map)
{
    static const char *const sizes[] = {"ONE", "BATCH", "HEADS", "TOKENS", "CHUNKS", "CHUNK"};
    static const char *const kinds[] = {"POINTER", "STRIDE", "SIZE", "SCALAR", "MAP"};
    const uint32_t image = image_of(set, k);
    append(text, "    {\"%s\", ptx_%" PRIu32 ", ", k->name, image);
    append(text, k->cubin ? "cubin_%" PRIu32 : "NULL", image);
    append(text, ", %" PRIu32 ", %" PRIu32 ", %d, %d", k->threads, k->shared_bytes, k->cluster ? k->cluster : 1,
           k->overlap);
    append(text, ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ",\n     {", k->n_grid, k->n_args, k->n_maps,
           first_map);
    for (uint32_t g = 0; g < k->n_grid; g++)
        append(text, "%s{%s, %" PRIu32 ", %" PRIu32 "}", g ? ", " : "", sizes[k->grid[g].size], k->grid[g].div,
               k->grid[g].mul);
    append(text, "},\n     {");
    for (uint32_t a = 0; a < k->n_args; a++) {
        const tg_arg_desc *arg = &k->args[a];
        append(text, "%s{%s, ", a == 0 ? "" : a % 5 ? ", " : ",\n      ", kinds[arg->kind]);
        if (arg->kind == TG_ARG_SIZE)
            append(text, "%s, %d}", sizes[arg->index], arg->axis);
        else
            append(text, "%d, %d}", arg->index, arg->axis);
    }
    append(text, k->n_args ? "},\n     {" : "{0, 0, 0}},\n     {");
    for (uint32_t m = 0; m < k->n_maps; m++) {
        const tg_map_desc *map = &k->maps[m];
        append(text, "%s{%d, %d, %d, %d, %d}", m ? ", " : "", map->tensor, map->swizzle, map->columns, map->rows,
               map->spans);
    }
    append(text, k->n_maps ? "}},\n" : "{0, 0, 0, 0, 0}}},\n");
}

static void add_kernels(struct keys *keys, const tg_set *set)
{
    enum { PLACES = 8 }; /* for the maps of one recipe that a module keeps; a power of two */
    struct text *text = add_key(keys, "kernels");
    uint32_t n_maps = 0;
    for (uint32_t p = 0; p < set->n_programs; p++) {
        append(text, "static const struct kernel kernels_%" PRIu32 "[] = {\n", p);
        for (uint32_t i = 0; i < set->programs[p].n_kernels; i++) {
            append_kernel(text, set, &set->programs[p].kernels[i], n_maps);
            n_maps += set->programs[p].kernels[i].n_maps;
        }
        append(text, "};\n");
    }
    append(add_key(keys, "map_places"), "%d", PLACES);
    append(add_key(keys, "n_places"), "%" PRIu32, n_maps ? n_maps * PLACES : 1);
}

/* A string literal would be shorter, but C guarantees only 4095 characters of one. */
static void append_image(struct text *text, const char *kind, uint32_t i, const void *image, uint64_t n)
{
    const unsigned char *bytes = image;
    append(text, "ALIGNED(16) static const unsigned char %s_%" PRIu32 "[] = {", kind, i);
    for (uint64_t at = 0; at < n; at++)
        append(text, "%s%u,", at % 24 ? "" : "\n    ", bytes[at]);
    append(text, "\n};\n\n");
}

static void add_images(struct keys *keys, const tg_set *set)
{
    struct text *text = add_key(keys, "images");
    uint32_t at = 0;
    for (uint32_t p = 0; p < set->n_programs; p++)
        for (uint32_t i = 0; i < set->programs[p].n_kernels; i++, at++) {
            const tg_kernel *k = &set->programs[p].kernels[i];
            if (image_of(set, k) != at)
                continue;
            append_image(text, "ptx", at, k->ptx, k->ptx_bytes + 1); /* with its NUL */
            if (k->cubin)
                append_image(text, "cubin", at, k->cubin, k->cubin_bytes);
        }
}

/* ---- programs and branches ---- */

/* What stands in comments and strings must not end one or, by a '@', look like a key. */
static void append_harmless(struct text *text, const char *from)
{
    for (; *from; from++)
        append(text, "%c", strchr("*@\\\"", *from) ? '.' : *from);
}

static uint32_t chunk_most(const tg_program *program)
{
    return program->chunk_most ? program->chunk_most : INT32_MAX;
}

static void add_programs(struct keys *keys, const tg_set *set)
{
    struct text *text = add_key(keys, "programs");
    uint32_t n_kernels = 0;
    for (uint32_t i = 0; i < set->n_programs; i++) {
        const tg_program *p = &set->programs[i];
        append(text, "    {\"");
        append_harmless(text, p->schedule);
        append(text,
               "\", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32
               ", tensors_%" PRIu32 ", kernels_%" PRIu32 "},\n",
               p->chunk_multiple, p->chunk_default, chunk_most(p), p->max_tokens, p->n_tensors, p->n_kernels, n_kernels,
               i, i);
        n_kernels += p->n_kernels;
    }
    append(add_key(keys, "n_programs"), "%" PRIu32, set->n_programs);
    append(add_key(keys, "n_kernels"), "%" PRIu32, n_kernels);
}

/* "sm_" and a number: 90 is 9.0. */
static unsigned long arch_number(const tg_program *program)
{
    return strtoul(program->arch + strlen("sm_"), NULL, 10);
}

static int64_t tokens_of(const tg_program *program, const tg_point_of_set *at)
{
    return program->packed ? (at->tokens - 1) / at->batch + 1 : at->tokens;
}

/* Of a branch with a choice. */
static void append_picks(struct text *text, const tg_set *set, uint32_t i)
{
    const tg_branch *b = &set->branches[i];
    append(text, "static const struct point points_%" PRIu32 "[] = {\n", i);
    for (uint32_t k = 0; k < b->n_points; k++) {
        const tg_point_of_set *at = &b->points[k];
        append(text, "    {%" PRId64 ", %" PRId64 ", %d}, /* B %" PRId64 ", NH %" PRId64 ", T %" PRId64 " */\n",
               tg_pick_log(at->batch * at->heads), tg_pick_log(tokens_of(&set->programs[b->first], at)), at->program,
               at->batch, at->heads, at->tokens);
    }
    append(text, b->n_points ? "};\n" : "    {0, 0, 0},\n};\n");
    append(text, "static const unsigned char picks_%" PRIu32 "[PICK_HEADS][PICK_TOKENS] = {\n", i);
    for (uint32_t h = 0; h < TG_PICK_HEADS; h++) {
        append(text, "    {");
        for (uint32_t t = 0; t < TG_PICK_TOKENS; t++)
            append(text, "%s%d", t ? ", " : "", b->picks[h][t]);
        append(text, "},\n");
    }
    append(text, "};\n");
}

static void add_branches(struct keys *keys, const tg_set *set)
{
    struct text *picks = add_key(keys, "picks"), *text = add_key(keys, "branches");
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_branch *b = &set->branches[i];
        const tg_program *p = &set->programs[b->first];
        append(text, "    {%lu, %lu, %d, %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", ",
               arch_number(p) / 10, arch_number(p) % 10, p->arch_exact, p->dqk, p->dhv, b->first, b->n_programs,
               b->n_programs > 1 ? b->n_points : 0);
        if (b->n_programs > 1) {
            append_picks(picks, set, i);
            append(text, "points_%" PRIu32 ", picks_%" PRIu32 "},\n", i, i);
        } else {
            append(text, "NULL, NULL},\n");
        }
    }
    append(add_key(keys, "n_branches"), "%" PRIu32, set->n_branches);
    append(add_key(keys, "pick_heads"), "%d", TG_PICK_HEADS);
    append(add_key(keys, "pick_tokens"), "%d", TG_PICK_TOKENS);
}

/* ---- scalars ---- */

/* A float as C spells it, in any locale: what is no digit of the number is its decimal point. */
static void append_float(struct text *text, float value)
{
    char digits[64];
    int precision = 1;
    do {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
    } while (strtof(digits, NULL) != value && precision++ < 9);
    bool is_whole = true;
    append(text, "(");
    for (const char *at = digits; *at; at++) {
        const bool is_point = !strchr("+-0123456789e", *at);
        is_whole = is_whole && !is_point && *at != 'e';
        if (is_point)
            append(text, at == digits || strchr("0123456789", at[-1]) ? "." : "");
        else
            append(text, "%c", *at);
    }
    append(text, is_whole ? ".0f)" : "f)");
}

/* A scalar may have the name of another parameter. */
static const char *scalar_suffix(const char *name)
{
    static const char *const others[] = {"module", "sizes", "tensors", "workspace", "stream"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], name) == 0)
            return "_";
    return is_keyword(name) ? "_" : "";
}

/* The scale goes by dqk, so programs of several widths may have several. */
static bool has_one_value(const tg_set *set, uint32_t scalar)
{
    bool ok = true;
    for (uint32_t i = 1; i < set->n_programs; i++)
        ok &= memcmp(&set->programs[i].scalars[scalar].value, &set->programs[0].scalars[scalar].value, sizeof(float)) ==
              0;
    return ok;
}

static void append_default(struct text *text, const tg_set *set, uint32_t scalar)
{
    const char *const name = set->programs[0].scalars[scalar].name;
    if (has_one_value(set, scalar)) {
        append(text, "#define @NAME@_DEFAULT_%s ", name);
        append_float(text, set->programs[0].scalars[scalar].value);
        append(text, "\n");
        return;
    }
    append(text, "/* No @NAME@_DEFAULT_%s, which differs:", name);
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_program *p = &set->programs[set->branches[i].first];
        append(text, "%s ", i ? "," : "");
        append_float(text, p->scalars[scalar].value);
        append(text, " for dqk %" PRIu32 ", dhv %" PRIu32, p->dqk, p->dhv);
    }
    append(text, ". */\n");
}

/* In the header parameters have names, in the source numbers, which hide no function. */
static void add_scalars(struct keys *keys, const tg_set *set)
{
    const tg_program *program = &set->programs[0];
    struct text *named = add_key(keys, "named_scalars"), *defaults = add_key(keys, "defaults");
    struct text *numbered = add_key(keys, "numbered_scalars"), *list = add_key(keys, "scalars");
    for (uint32_t i = 0; i < program->n_scalars; i++) {
        const tg_scalar_info *s = &program->scalars[i];
        append(named, "%sfloat %s%s,", i ? " " : "", s->name, scalar_suffix(s->name));
        append(numbered, "%sfloat scalar_%" PRIu32 ",", i ? " " : "", i);
        append(list, "%sscalar_%" PRIu32, i ? ", " : "", i);
        append_default(defaults, set, i);
    }
}

/* What a caller must know about this kind of program. */
static void add_notes(struct keys *keys, const tg_set *set)
{
    const tg_program *program = &set->programs[0];
    struct text *notes = add_key(keys, "notes");
    uint64_t mapped = 0;
    bool has_cluster = false;
    for (uint32_t i = 0; i < set->n_programs; i++) {
        mapped |= mapped_tensors(&set->programs[i]);
        for (uint32_t k = 0; k < set->programs[i].n_kernels; k++)
            has_cluster |= set->programs[i].kernels[k].cluster > 1;
    }
    if (program->group > 1)
        append(notes,
               " * NH counts value heads; %" PRIu32 " in a row share one of the NH/%" PRIu32
               " heads of other arrays.\n *\n",
               program->group, program->group);
    if (program->packed)
        append(notes, " * B sequences of different lengths lie one behind the other on the axis T. T is that "
                      "of all\n * together; cu[b] is where sequence b begins, and cu[B] is T.\n *\n");
    if (program->pooled)
        append(notes, " * States are slots of a pool of yours: sequence b has slot index[b], and the first "
                      "stride leads from\n * slot to slot. Initial and final state may be the same "
                      "memory; in a call of B > 0 without tokens\n * they must be.\n *\n");
    if (program->packed || program->pooled)
        append(notes, " * Arrays of i32 have any positive stride: int64 is the same address with stride "
                      "2.\n *\n");
    if (mapped) {
        append(notes, " * Strides of axes longer than 1 are positive and below 2^40 bytes in");
        for (uint32_t i = 0; i < program->n_tensors && !is_workspace(&program->tensors[i]); i++)
            if (mapped >> i & 1)
                append(notes, " %s", program->tensors[i].name);
        append(notes, ",\n * which are read or written through tensor maps.\n *\n");
    }
    if (mapped || has_cluster)
        append(notes, " * The driver must have%s%s%s.\n *\n", mapped ? " cuTensorMapEncodeTiled" : "",
               mapped && has_cluster ? " and" : "", has_cluster ? " cuLaunchKernelEx" : "");
    if (program->max_tokens)
        append(notes, " * These are decode steps: T is at most %" PRIu32 ".\n *\n", program->max_tokens);
}

/* ---- what there is, for people ---- */

static const char *or_newer(const tg_program *program)
{
    return program->arch_exact ? "exactly" : "or newer";
}

/* Of each branch: its programs, and what they were chosen for. */
static void add_choices(struct keys *keys, const tg_set *set)
{
    static const char *const origins[] = {
        [TG_BY_MODEL] = "the cost model", [TG_BY_WISDOM] = "measured", [TG_BY_NAME] = "named"};
    struct text *text = add_key(keys, "choices");
    if (set->n_programs == 1)
        return;
    append(text,
           " * A launch takes one of these programs, by the GPU, the widths and the sizes. Each is for calls like\n"
           " * those beside it (B NH, and the tokens of a sequence, within a factor of 1.4); other calls take\n"
           " * what a table made from the cost model says.\n *\n");
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_branch *b = &set->branches[i];
        const tg_program *first = &set->programs[b->first];
        append(text, " * dqk %" PRIu32 ", dhv %" PRIu32 ", %s %s:\n", first->dqk, first->dhv, first->arch,
               or_newer(first));
        for (uint32_t p = 0; p < b->n_programs; p++) {
            append(text, " *     ");
            append_harmless(text, first[p].schedule);
            append(text, ", L %" PRIu32 "%s", first[p].chunk_default, p ? "" : "; the default");
            for (uint32_t k = 0; k < b->n_points; k++)
                if (b->points[k].program == p)
                    append(text, "; B %" PRId64 " NH %" PRId64 " T %" PRId64 " (%s)", b->points[k].batch,
                           b->points[k].heads, b->points[k].tokens, origins[b->points[k].origin]);
            append(text, "\n");
        }
        append(text, " *\n");
    }
}

/* "sm_80 or newer, sm_90a exactly" and "128 x 256, 64 x 64": each once. */
static void add_lists(struct keys *keys, const tg_set *set)
{
    struct text *archs = add_key(keys, "archs"), *widths = add_key(keys, "branch_text");
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_program *p = &set->programs[set->branches[i].first];
        bool has_arch = false, has_width = false;
        for (uint32_t k = 0; k < i; k++) {
            const tg_program *other = &set->programs[set->branches[k].first];
            has_arch |= strcmp(other->arch, p->arch) == 0;
            has_width |= other->dqk == p->dqk && other->dhv == p->dhv;
        }
        if (!has_arch)
            append(archs, "%s%s %s", i ? ", " : "", p->arch, or_newer(p));
        if (!has_width)
            append(widths, "%s%" PRIu32 " and %" PRIu32, i ? ", or " : "", p->dqk, p->dhv);
    }
}

/* A line of what all programs agree in. */
static void append_constant(struct text *text, const char *name, const tg_set *set, uint32_t (*get)(const tg_program *),
                            const char *comment)
{
    for (uint32_t i = 1; i < set->n_programs; i++)
        if (get(&set->programs[i]) != get(&set->programs[0]))
            return;
    append(text, "    @NAME@_%s = %" PRIu32 ",%s\n", name, get(&set->programs[0]), comment);
}

#define DEFINE_GET(field)                                                                                              \
    static uint32_t get_##field(const tg_program *program)                                                             \
    {                                                                                                                  \
        return program->field;                                                                                         \
    }
DEFINE_GET(dqk)
DEFINE_GET(dhv)
DEFINE_GET(chunk_multiple)
DEFINE_GET(chunk_default)
DEFINE_GET(packed)
DEFINE_GET(pooled)
DEFINE_GET(group)
DEFINE_GET(max_tokens)

static void add_constants(struct keys *keys, const tg_set *set)
{
    const struct {
        const char *name;
        uint32_t (*get)(const tg_program *);
        const char *comment;
    } rows[] = {
        {"DQK", get_dqk, ""},
        {"DHV", get_dhv, ""},
        {"CHUNK_MULTIPLE", get_chunk_multiple, " /* L is a multiple of it */"},
        {"CHUNK_DEFAULT", get_chunk_default, " /* L when 0 is given */"},
        {"CHUNK_MOST", chunk_most, ""},
        {"PACKED", get_packed, " /* 1: sequences of different lengths, see above */"},
        {"POOLED", get_pooled, " /* 1: states in a pool, see above */"},
        {"GROUP", get_group, " /* value heads that share a head of other arrays */"},
        {"MAX_TOKENS", get_max_tokens, " /* of a call; 0: any number */"},
    };
    struct text *text = add_key(keys, "constants");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        append_constant(text, rows[i].name, set, rows[i].get, rows[i].comment);
}

static void add_numbers(struct keys *keys, const tg_set *set)
{
    const tg_program *program = &set->programs[0];
    const struct {
        const char *name;
        uint32_t value;
    } rows[] = {
        {"packed", program->packed}, {"group", program->group}, {"n_scalars", program->n_scalars},
        {"max_args", TG_MAX_ARGS},   {"max_maps", TG_MAX_MAPS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        append(add_key(keys, rows[i].name), "%" PRIu32, rows[i].value);
}

static void add_title(struct keys *keys, const tg_set *set)
{
    const tg_program *program = &set->programs[0];
    struct text *title = add_key(keys, "title"), *widths = add_key(keys, "widths");
    append_harmless(title, program->variant);
    if (set->n_programs == 1) {
        append(title, ", schedule ");
        append_harmless(title, program->schedule);
        append(title, ", for %s %s", program->arch, or_newer(program));
    } else {
        append(title, ", %" PRIu32 " programs of which each call takes one", set->n_programs);
    }
    bool is_one = true;
    for (uint32_t i = 1; i < set->n_programs; i++)
        is_one &= set->programs[i].dqk == program->dqk && set->programs[i].dhv == program->dhv;
    if (is_one)
        append(widths, "dqk = %" PRIu32 ", dhv = %" PRIu32, program->dqk, program->dhv);
    else
        append(widths, "dqk and dhv are @branch_text@ (say which in the sizes)");
    append(add_key(keys, "load_note"), "%s",
           set->n_branches > 1 ? ": of each pair of widths those of the newest\n * architecture that its GPU runs"
                               : "");
    append(add_key(keys, "workspace_note"), "%s", set->n_programs > 1 ? ",\n * whichever of the GPUs it is on" : "");
}

static void add_names(struct keys *keys, const tg_set *set, const char *name)
{
    append(add_key(keys, "io"), "%s", tg_dtype_name((tg_dtype)set->programs[0].io_dtype));
    struct text *upper = add_key(keys, "NAME"), *indent = add_key(keys, "indent");
    for (const char *at = name; *at; at++)
        append(upper, "%c", toupper((unsigned char)*at));
    append(indent, "%*s", (int)(strlen(name) + strlen("int _launch(")), "");
    append(add_key(keys, "name"), "%s", name);
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

/* Some values contain @name@ themselves, hence two expansions. */
static char *expand_all(const char *template_text, const struct keys *keys)
{
    char *once = expand(template_text, keys);
    char *whole = once ? expand(once, keys) : NULL;
    free(once);
    return whole;
}

const char *tg_embed_header(void)
{
    return common_header;
}

tg_status tg_set_c(const tg_set *set, const char *name, char **source, char **header, const tg_sink *sink)
{
    if (!source || !header)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0731", NULL, "tg_set_c: %s is NULL", source ? "header" : "source");
    *source = *header = NULL;
    tg_status status = tg_c_name_check(name, sink);
    if (status == TG_OK)
        status = tg_set_verify(set, sink);
    if (status != TG_OK)
        return status;
    struct keys keys = {0};
    add_names(&keys, set, name);
    add_title(&keys, set);
    add_lists(&keys, set);
    add_choices(&keys, set);
    add_constants(&keys, set);
    add_numbers(&keys, set);
    add_signature(&keys, &set->programs[0]);
    add_images(&keys, set);
    add_tensors(&keys, set);
    add_kernels(&keys, set);
    add_programs(&keys, set);
    add_branches(&keys, set);
    add_scalars(&keys, set);
    add_notes(&keys, set);
    *source = expand_all(source_template, &keys);
    *header = expand_all(header_template, &keys);
    for (size_t i = 0; i < keys.n; i++)
        free(keys.row[i].value.data);
    if (*source && *header)
        return TG_OK;
    free(*source);
    free(*header);
    *source = *header = NULL;
    return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "tg_set_c: no memory for the text");
}

tg_status tg_program_c(const tg_program *program, const char *name, char **source, char **header, const tg_sink *sink)
{
    tg_branch branch = {.n_programs = 1};
    tg_status status = tg_program_verify(program, sink);
    if (status != TG_OK)
        return status;
    tg_program copy = *program; /* a set may be changed, and this one is not */
    const tg_set set = {.struct_size = sizeof set,
                        .version = TG_PROGRAM_VERSION,
                        .n_programs = 1,
                        .programs = &copy,
                        .n_branches = 1,
                        .branches = &branch};
    return tg_set_c(&set, name, source, header, sink);
}
