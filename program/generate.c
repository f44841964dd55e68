/* program/generate.c - a program as a pair of C files.
 *
 * Everything that is the same in all of them is text in embed_template.{h,c}.in, with @keys@ where
 * a program differs. This file makes the values of the keys and puts them in; the templates reach
 * it as arrays made by CMake. */
#include "program/fail.h"
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

enum { MAX_KEYS = 56 };

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

static bool is_keyword(const char *name)
{
    /* What a tensor may be called by mathematicians and not in C or C++. */
    static const char *const words[] = {"do", "if", "or", "and", "not", "xor", "int", "new", "for", "asm"};
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
        append(fields, "    @name@_tensor %s%s; /* ", t->name, suffix(t));
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

static void add_tensors(struct keys *keys, const tg_program *program)
{
    struct text *text = add_key(keys, "tensors");
    for (uint32_t i = 0; i < program->n_tensors; i++) {
        const tg_tensor_info *t = &program->tensors[i];
        if (!is_workspace(t))
            append(text, "    {offsetof(@name@_tensors, %s%s), ", t->name, suffix(t));
        else
            append(text, "    {0, ");
        int n_axes = count_axes(t);
        bool is_vector = n_axes > 2 && (t->axes[n_axes - 3] == TG_DQK || t->axes[n_axes - 3] == TG_DHV);
        append(text, "%d, %" PRIu32 ", %d, %d, %d, %d, %d, %d, %" PRIu32 ", %d, {", t->flags,
               tg_dtype_bytes((tg_dtype)t->dtype), tg_tensor_source(program, i), is_vector, t->dtype == TG_I32,
               tg_tensor_is_slot(program, i), lacks_axis(program, i, 0) | lacks_axis(program, i, 1) << 1,
               map_type(program, i), t->place ? t->place - 1u : i, n_axes);
        append_outer(text, program, i);
        for (int a = 0; a < TG_MAX_AXES; a++)
            append_extent(text, program, t, t->axes[a]);
        append(text, "}}, /* %s */\n", t->name);
    }
}

static void add_kernels(struct keys *keys, const tg_program *program)
{
    static const char *const sizes[] = {"ONE", "BATCH", "HEADS", "TOKENS", "CHUNKS", "CHUNK"};
    static const char *const kinds[] = {"POINTER", "STRIDE", "SIZE", "SCALAR", "MAP"};
    struct text *text = add_key(keys, "kernels");
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        const tg_kernel *k = &program->kernels[i];
        append(text, "    {\"%s\", ptx_%" PRIu32 ", ", k->name, i);
        append(text, k->cubin ? "cubin_%" PRIu32 : "NULL", i);
        append(text, ", %" PRIu32 ", %" PRIu32 ", %d, %d", k->threads, k->shared_bytes, k->cluster ? k->cluster : 1,
               k->overlap);
        append(text, ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ",\n     {", k->n_grid, k->n_args, k->n_maps);
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

static void add_images(struct keys *keys, const tg_program *program)
{
    struct text *text = add_key(keys, "images");
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        const tg_kernel *k = &program->kernels[i];
        append_image(text, "ptx", i, k->ptx, k->ptx_bytes + 1); /* with its NUL */
        if (k->cubin)
            append_image(text, "cubin", i, k->cubin, k->cubin_bytes);
    }
}

/* A float as C spells it in any locale: no decimal point. The verifier saw that it is finite. */
static void append_float(struct text *text, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t exponent = bits >> 23 & 255, fraction = bits & 0x7fffff;
    append(text, "(%s0x%" PRIx32 "p%df)", bits >> 31 ? "-" : "", exponent ? fraction | 0x800000 : fraction,
           (int)(exponent ? exponent : 1) - 150);
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

/* In the header parameters have names, in the source numbers, which hide no function. */
static void add_scalars(struct keys *keys, const tg_program *program)
{
    struct text *named = add_key(keys, "named_scalars"), *defaults = add_key(keys, "defaults");
    struct text *numbered = add_key(keys, "numbered_scalars"), *list = add_key(keys, "scalars");
    for (uint32_t i = 0; i < program->n_scalars; i++) {
        const tg_scalar_info *s = &program->scalars[i];
        append(named, "%sfloat %s%s,", i ? " " : "", s->name, scalar_suffix(s->name));
        append(numbered, "%sfloat scalar_%" PRIu32 ",", i ? " " : "", i);
        append(list, "%sscalar_%" PRIu32, i ? ", " : "", i);
        append(defaults, "#define @NAME@_DEFAULT_%s ", s->name);
        append_float(defaults, s->value);
        append(defaults, "\n");
    }
}

/* Whether this program can do without the functions that only newer drivers have. */
static void add_optional(struct keys *keys, const tg_program *program)
{
    const char *may = "may be NULL: ";
    bool has_cluster = false;
    for (uint32_t i = 0; i < program->n_kernels; i++)
        has_cluster |= program->kernels[i].cluster > 1;
    append(add_key(keys, "clusters_optional"), "%s", has_cluster ? "" : may);
    append(add_key(keys, "maps_optional"), "%s", mapped_tensors(program) ? "" : may);
}

/* What a caller must know about this kind of program. */
static void add_notes(struct keys *keys, const tg_program *program)
{
    struct text *notes = add_key(keys, "notes");
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
    const uint64_t mapped = mapped_tensors(program);
    if (mapped) {
        append(notes, " * Strides of axes longer than 1 are positive and below 2^40 bytes in");
        for (uint32_t i = 0; i < program->n_tensors; i++)
            if (mapped >> i & 1 && !is_workspace(&program->tensors[i]))
                append(notes, " %s", program->tensors[i].name);
        append(notes, ",\n * which are read or written through tensor maps.\n *\n");
    }
    if (program->max_tokens)
        append(notes, " * These are decode steps: T is at most %" PRIu32 ".\n *\n", program->max_tokens);
}

static void add_numbers(struct keys *keys, const tg_program *program)
{
    const struct {
        const char *name;
        uint32_t value;
    } rows[] = {
        {"dqk", program->dqk},
        {"dhv", program->dhv},
        {"packed", program->packed},
        {"pooled", program->pooled},
        {"group", program->group},
        {"max_tokens", program->max_tokens},
        {"n_scalars", program->n_scalars},
        {"max_args", TG_MAX_ARGS},
        {"max_maps", TG_MAX_MAPS},
        {"chunk_multiple", program->chunk_multiple},
        {"chunk_default", program->chunk_default},
        {"chunk_most", program->chunk_most ? program->chunk_most : INT32_MAX},
        {"n_tensors", program->n_tensors},
        {"n_kernels", program->n_kernels},
        {"arch_exact", program->arch_exact},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        append(add_key(keys, rows[i].name), "%" PRIu32, rows[i].value);
    unsigned long arch = strtoul(program->arch + 3, NULL, 10); /* after "sm_": 90 is 9.0 */
    append(add_key(keys, "arch_major"), "%lu", arch / 10);
    append(add_key(keys, "arch_minor"), "%lu", arch % 10);
}

/* Descriptions stand in comments; they must not end one or, by a '@', look like a key. */
static void append_comment(struct text *text, const char *from)
{
    for (; *from; from++)
        append(text, "%c", *from == '*' || *from == '@' || *from == '\\' ? '.' : *from);
}

static void add_names(struct keys *keys, const tg_program *program, const char *name)
{
    append_comment(add_key(keys, "variant"), program->variant);
    append_comment(add_key(keys, "schedule"), program->schedule);
    append(add_key(keys, "arch_text"), "%s%s", program->arch, program->arch_exact ? " exactly" : " or newer");
    append(add_key(keys, "io"), "%s", tg_dtype_name((tg_dtype)program->io_dtype));
    struct text *upper = add_key(keys, "NAME"), *indent = add_key(keys, "indent");
    for (const char *at = name; *at; at++)
        append(upper, "%c", toupper((unsigned char)*at));
    append(indent, "%*s", (int)(strlen(name) + strlen("int _launch(")), "");
    append(add_key(keys, "name"), "%s", name);
}

static bool is_prefix(const char *name)
{
    if (!name || !(isalpha((unsigned char)*name) || *name == '_') || is_keyword(name))
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == '\0';
}

/* Some values contain @name@ themselves, hence two expansions. */
static char *expand_all(const char *template_text, const struct keys *keys)
{
    char *once = expand(template_text, keys);
    char *whole = once ? expand(once, keys) : NULL;
    free(once);
    return whole;
}

tg_status tg_program_c(const tg_program *program, const char *name, char **source, char **header, const tg_sink *sink)
{
    enum { MAX_PREFIX = 64 };
    if (!source || !header)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0731", NULL, "tg_program_c: %s is NULL", source ? "header" : "source");
    *source = *header = NULL;
    if (!is_prefix(name) || strlen(name) > MAX_PREFIX)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0731", "letters, digits and _ make an identifier",
                       "tg_program_c: name: expected a C identifier of at most %d characters, found %.80s", MAX_PREFIX,
                       name ? name : "NULL");
    tg_status status = tg_program_verify(program, sink);
    if (status != TG_OK)
        return status;
    struct keys keys = {0};
    add_names(&keys, program, name);
    add_numbers(&keys, program);
    add_signature(&keys, program);
    add_images(&keys, program);
    add_tensors(&keys, program);
    add_kernels(&keys, program);
    add_scalars(&keys, program);
    add_notes(&keys, program);
    add_optional(&keys, program);
    *source = expand_all(source_template, &keys);
    *header = expand_all(header_template, &keys);
    for (size_t i = 0; i < keys.n; i++)
        free(keys.row[i].value.data);
    if (*source && *header)
        return TG_OK;
    free(*source);
    free(*header);
    *source = *header = NULL;
    return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "tg_program_c: no memory for the text");
}
