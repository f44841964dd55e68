/* parse.c - PTX text: directives, names and scopes. Each statement goes to decode() as it is read.
 *
 * Registers get their rows when first used, so what the compiler declared for nothing costs
 * nothing. */
#include "parse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* -- names ----------------------------------------------------------------------------------- */

static u32 new_row(struct builder *b, u32 bits)
{
    struct kernel *k = b->kernel;
    if (bits == 1)
        return k->n_preds++;
    const u32 row = k->n_rows;
    k->n_rows += bits == 64 ? 2 : 1;
    return row;
}

static bool find_register(struct builder *b, const char *name, u32 length, struct operand *o)
{
    for (u32 i = b->n_ranges; i-- > 0;) {
        struct reg_range *r = &b->ranges[i];
        u32 index = 0, n = r->length;
        if (length < n || memcmp(name, r->name, n) || (!r->count && length != n) || (r->count && length == n))
            continue;
        for (; n < length && isdigit((unsigned char)name[n]) && index < 100000000; n++)
            index = index * 10 + (u32)(name[n] - '0');
        if (n != length || index >= (r->count ? r->count : 1))
            continue;
        if (!r->slots[index])
            r->slots[index] = new_row(b, r->bits);
        o->kind = r->bits == 1 ? OPERAND_PRED : OPERAND_REG;
        o->index = r->slots[index];
        o->bits = r->bits;
        return true;
    }
    return false;
}

static const struct symbol *find_symbol(const struct symbol *list, const char *name, u32 length)
{
    while (list && !name_is(name, length, list->name))
        list = list->next;
    return list;
}

static bool find_special(const char *name, u32 length, struct operand *o)
{
    static const char *const names[] = {"",
#define X(id, text) text,
                                        SPECIALS(X)
#undef X
    };
    static const char *const clocks[] = {"%clock", "%clock64", "%globaltimer", "%clock_hi", "%globaltimer_lo"};
    for (u32 i = 1; i < N_SPECIALS; i++)
        if (name_is(name, length, names[i])) {
            o->kind = OPERAND_SPECIAL;
            o->index = i;
            return true;
        }
    for (u32 i = 0; i < sizeof clocks / sizeof *clocks; i++)
        if (name_is(name, length, clocks[i])) {
            o->kind = OPERAND_CLOCK;
            return true;
        }
    return false;
}

static struct operand resolve(struct builder *b, const char *name, u32 length)
{
    struct operand o = {.second = -1, .name = name, .length = length};
    const struct symbol *s;
    if (name_is(name, length, "_")) {
        o.kind = OPERAND_SINK;
    } else if (name_is(name, length, "WARP_SZ")) {
        o.kind = OPERAND_IMM;
        o.value = LANES;
    } else if (find_register(b, name, length, &o) || find_special(name, length, &o)) {
        return o;
    } else if ((s = find_symbol(b->locals, name, length)) || (s = find_symbol(b->module->globals, name, length))) {
        o.kind = OPERAND_SYMBOL;
        o.symbol = s;
        o.bits = 64;
    } else if (*name == '%') {
        fail(b, "'%.*s' is not declared, or not supported", (int)length, name);
    } else {
        o.kind = OPERAND_NAME;
    }
    return o;
}

/* Shared variables get their place in a kernel when it first uses them. */
struct symbol *symbol_place(struct builder *b, const struct symbol *symbol)
{
    struct symbol *s = (struct symbol *)(uintptr_t)symbol; /* ours; operands see it const */
    struct kernel *k = b->kernel;
    if (s->space != SPACE_SHARED || s->is_placed)
        return s;
    s->is_placed = true;
    if (s->is_dynamic) {
        if (s->align > k->dynamic_base)
            k->dynamic_base = s->align;
        return s;
    }
    k->static_smem = (k->static_smem + s->align - 1) & ~(s->align - 1);
    s->address = SHARED_BASE + k->static_smem;
    k->static_smem += (u32)s->bytes;
    return s;
}

/* -- operands -------------------------------------------------------------------------------- */

static u32 add_part(struct builder *b, struct operand o)
{
    if (b->n_parts == MAX_PARTS)
        fail(b, "too many operands");
    b->parts[b->n_parts] = o;
    return b->n_parts++;
}

static struct operand read_simple(struct builder *b)
{
    u32 n;
    const char c = peek(b);
    if (c == '-' || isdigit((unsigned char)c))
        return read_number(b);
    if (take(b, '!')) {
        struct operand o = read_simple(b);
        o.is_negated = !o.is_negated;
        if (o.kind != OPERAND_PRED)
            fail(b, "'!' needs a predicate");
        return o;
    }
    const char *name = read_name(b, &n, c == '%');
    if (!n)
        fail(b, "unexpected '%c'", c);
    return resolve(b, name, n);
}

static struct operand read_vector(struct builder *b)
{
    struct operand o = {.kind = OPERAND_VECTOR, .second = -1};
    struct operand list[MAX_VECTOR];
    do {
        if (o.n == MAX_VECTOR)
            fail(b, "vector too long");
        list[o.n++] = read_simple(b);
    } while (take(b, ','));
    need(b, '}');
    o.first = b->n_parts;
    for (u32 i = 0; i < o.n; i++)
        add_part(b, list[i]);
    return o;
}

static struct operand read_memory(struct builder *b)
{
    struct operand o = {.kind = OPERAND_MEMORY, .second = -1};
    o.first = add_part(b, read_simple(b));
    if (take(b, '+'))
        o.value = read_integer(b);
    else if (peek(b) == '-')
        o.value = read_integer(b);
    if (take(b, ',')) { /* coordinates in a tensor */
        need(b, '{');
        do {
            add_part(b, read_simple(b));
            o.n++;
        } while (take(b, ','));
        need(b, '}');
    }
    need(b, ']');
    return o;
}

static struct operand read_operand(struct builder *b)
{
    if (take(b, '{'))
        return read_vector(b);
    if (take(b, '['))
        return read_memory(b);
    struct operand o = read_simple(b);
    if (take(b, '|'))
        o.second = (int)add_part(b, read_simple(b));
    else if (o.kind == OPERAND_SYMBOL && take(b, '+'))
        o.value = read_integer(b);
    return o;
}

static void read_statement(struct builder *b, const char *mnemonic, u32 length, const struct operand *guard)
{
    const u32 line = b->line;
    if (name_is(mnemonic, length < 4 ? length : 4, "call"))
        fail(b, "functions are not supported, inline them");
    b->n_given = 0;
    if (peek(b) != ';') {
        do {
            if (b->n_given == MAX_OPERANDS)
                fail(b, "too many operands");
            const struct operand o = read_operand(b);
            b->operands[b->n_given++] = o;
        } while (take(b, ','));
    }
    need(b, ';');
    const u32 now = b->line;
    b->line = line;
    decode(b, mnemonic, length, guard);
    b->line = now;
    b->n_parts = 0;
}

/* -- declarations ---------------------------------------------------------------------------- */

static u32 type_bits(struct builder *b, const char *name, u32 length)
{
    static const struct {
        const char *name;
        u32 bits;
    } types[] = {{".pred", 1},    {".b8", 8},    {".u8", 8},   {".s8", 8},   {".b16", 16}, {".u16", 16}, {".s16", 16},
                 {".f16", 16},    {".bf16", 16}, {".b32", 32}, {".u32", 32}, {".s32", 32}, {".f32", 32}, {".f16x2", 32},
                 {".bf16x2", 32}, {".b64", 64},  {".u64", 64}, {".s64", 64}, {".f64", 64}};
    for (u32 i = 0; i < sizeof types / sizeof *types; i++)
        if (name_is(name, length, types[i].name))
            return types[i].bits;
    fail(b, "type '%.*s' is not supported", (int)length, name);
}

static void read_registers(struct builder *b)
{
    u32 n;
    const char *type = read_name(b, &n, true);
    u32 bits = type_bits(b, type, n);
    if (bits == 8)
        bits = 16;
    do {
        struct reg_range r = {.bits = bits};
        r.name = read_name(b, &r.length, false);
        if (!r.length)
            fail(b, "expected a register name");
        if (take(b, '<')) {
            r.count = (u32)read_integer(b);
            need(b, '>');
        }
        if (r.count > 10000000)
            fail(b, "too many registers");
        r.slots = calloc(r.count + 1, sizeof *r.slots);
        *PUSH(b->ranges, b->n_ranges, b->cap_ranges) = r;
    } while (take(b, ','));
    need(b, ';');
}

/* {1, 2, 3} or a number: `bytes` each. */
static void read_values(struct builder *b, struct symbol *s, u32 bytes)
{
    u64 at = 0;
    const bool is_list = take(b, '{');
    do {
        if (peek(b) == '}')
            break;
        if (!isdigit((unsigned char)peek(b)) && peek(b) != '-')
            fail(b, "initialisers must be numbers");
        const struct operand o = read_number(b);
        if (at + bytes > s->bytes)
            fail(b, "too many initial values");
        memcpy(s->allocation->data + at, &o.value, bytes);
        at += bytes;
    } while (is_list && take(b, ','));
    if (is_list)
        need(b, '}');
}

static u32 read_u32(struct builder *b, u64 limit, const char *what)
{
    const u64 x = read_integer(b);
    if (x > limit)
        fail(b, "%s too large", what);
    return (u32)x;
}

enum { MOST_BYTES = 1 << 30 };

/* .align N .type name[N] of a variable or parameter; returns the bytes of an element. */
static u32 read_variable(struct builder *b, struct symbol *s)
{
    u32 n, bytes = 0;
    const char *word;
    s->align = 0;
    for (;;) {
        word = read_name(b, &n, true);
        if (name_is(word, n, ".align"))
            s->align = read_u32(b, 65536, "alignment");
        else if (n && *word == '.' && !name_is(word, n, ".ptr") && !name_is(word, n, ".global") &&
                 !name_is(word, n, ".shared") && !name_is(word, n, ".const") && !name_is(word, n, ".local") &&
                 !name_is(word, n, ".v2") && !name_is(word, n, ".v4"))
            bytes = type_bits(b, word, n) / 8;
        else if (!n || *word != '.')
            break;
    }
    if (!n || !bytes)
        fail(b, "expected a variable");
    s->bytes = bytes;
    while (take(b, '[')) {
        s->bytes = peek(b) == ']' ? 0 : s->bytes * read_u32(b, MOST_BYTES, "array");
        if (s->bytes > MOST_BYTES)
            fail(b, "array too large");
        need(b, ']');
    }
    s->name = copy_name(word, n);
    return bytes;
}

static struct symbol *add_symbol(struct symbol **list, struct symbol value)
{
    struct symbol *s = malloc(sizeof *s);
    *s = value;
    s->next = *list;
    *list = s;
    return s;
}

static void declare_variable(struct builder *b, u32 space, bool is_extern)
{
    struct symbol value = {.space = space};
    const u32 bytes = read_variable(b, &value);
    if (!value.align)
        value.align = bytes;
    value.is_dynamic = space == SPACE_SHARED && !value.bytes;
    struct symbol *s = add_symbol(b->kernel ? &b->locals : &b->module->globals, value);
    if (space == SPACE_LOCAL) {
        struct kernel *k = b->kernel;
        if (!k)
            fail(b, ".local outside of a kernel");
        s->address = (k->local_bytes + s->align - 1) & ~(s->align - 1);
        k->local_bytes = (u32)(s->address + s->bytes);
    } else if (space != SPACE_SHARED) {
        if (is_extern)
            fail(b, "external variables are not supported");
        s->allocation = memory_alloc(b->memory, s->bytes);
        if (!s->allocation)
            fail(b, "no memory for %llu bytes", (unsigned long long)s->bytes);
        s->address = s->allocation->base;
        memory_mark(s->allocation, s->address, s->bytes);
    }
    if (take(b, '=')) {
        if (!s->allocation)
            fail(b, "only variables in global and constant memory can have initial values");
        read_values(b, s, bytes);
    }
    need(b, ';');
}

/* .file 1 "name", with time and size perhaps. */
static void read_file_directive(struct builder *b)
{
    struct module *m = b->module;
    const u32 index = read_u32(b, 10000, "file number");
    need(b, '"');
    const char *start = b->at;
    while (b->at < b->end && *b->at != '"' && *b->at != '\n')
        b->at++;
    const u32 n = (u32)(b->at - start);
    need(b, '"');
    while (take(b, ','))
        read_integer(b);
    if (index >= m->n_files) {
        m->files = realloc(m->files, (index + 1) * sizeof *m->files);
        memset(m->files + m->n_files, 0, (index + 1 - m->n_files) * sizeof *m->files);
        m->n_files = index + 1;
    }
    free(m->files[index]);
    m->files[index] = copy_name(start, n);
}

/* .loc file line column [, function_name label [+ offset], inlined_at file line column] */
static void read_loc(struct builder *b)
{
    b->file = read_u32(b, 10000, "file number");
    b->src_line = read_u32(b, UINT32_MAX, "line");
    while (b->at < b->end && *b->at != '\n')
        b->at++;
}

static void skip_braces(struct builder *b)
{
    u32 depth = 0;
    do {
        const char c = peek(b);
        if (!c)
            fail(b, "missing '}'");
        depth += c == '{';
        depth -= c == '}';
        b->at++;
    } while (depth);
}

static void skip_to_semicolon(struct builder *b)
{
    while (peek(b) && *b->at != ';')
        b->at++;
    need(b, ';');
}

/* -- kernels --------------------------------------------------------------------------------- */

static void open_scope(struct builder *b)
{
    if (b->depth == MAX_SCOPE_DEPTH)
        fail(b, "scopes too deep");
    b->ranges_at[b->depth++] = b->n_ranges;
    if (!b->n_scopes)
        *PUSH(b->scope_parent, b->n_scopes, b->cap_scopes) = 0; /* scope 0 is outside of all */
    *PUSH(b->scope_parent, b->n_scopes, b->cap_scopes) = b->scope;
    b->scope = b->n_scopes - 1;
}

static void close_scope(struct builder *b)
{
    const u32 keep = b->ranges_at[--b->depth];
    while (b->n_ranges > keep)
        free(b->ranges[--b->n_ranges].slots);
    b->scope = b->scope_parent[b->scope];
}

static void read_branch_targets(struct builder *b, struct label *l)
{
    struct kernel *k = b->kernel;
    struct table *t = PUSH(k->tables, k->n_tables, b->cap_tables);
    *t = (struct table){0};
    l->table = k->n_tables;
    u32 capacity = 0;
    do {
        struct fixup f = {.pc = NO_PC, .scope = b->scope, .line = b->line, .table = k->n_tables - 1, .entry = t->n};
        f.name = read_name(b, &f.length, false);
        *PUSH(t->target, t->n, capacity) = 0;
        *PUSH(b->fixups, b->n_fixups, b->cap_fixups) = f;
    } while (take(b, ','));
    need(b, ';');
}

static void read_label(struct builder *b, const char *name, u32 length)
{
    struct label *l = PUSH(b->labels, b->n_labels, b->cap_labels);
    *l = (struct label){.name = name, .length = length, .scope = b->scope, .pc = b->kernel->n_code};
    if (take_word(b, ".branchtargets"))
        read_branch_targets(b, l);
}

static void read_local_directive(struct builder *b, const char *word, u32 n)
{
    if (name_is(word, n, ".reg"))
        read_registers(b);
    else if (name_is(word, n, ".loc"))
        read_loc(b);
    else if (name_is(word, n, ".local"))
        declare_variable(b, SPACE_LOCAL, false);
    else if (name_is(word, n, ".shared"))
        declare_variable(b, SPACE_SHARED, false);
    else if (name_is(word, n, ".pragma"))
        skip_to_semicolon(b);
    else
        fail(b, "directive '%.*s' is not supported here", (int)n, word);
}

/* A label, a directive, or an instruction, perhaps guarded. */
static void read_body_item(struct builder *b)
{
    struct operand guard = {0};
    bool is_guarded = false;
    u32 n;
    if (take(b, '@')) {
        guard = read_simple(b);
        is_guarded = true;
        if (guard.kind != OPERAND_PRED)
            fail(b, "expected a predicate");
    }
    skip_space(b);
    const char *start = b->at, *name = read_name(b, &n, false);
    if (n && !is_guarded && peek(b) == ':' && b->at[1] != ':') {
        b->at++;
        read_label(b, name, n);
        return;
    }
    b->at = start;
    name = read_name(b, &n, true);
    if (!n)
        fail(b, "unexpected '%c'", *b->at);
    if (*name == '.')
        read_local_directive(b, name, n);
    else
        read_statement(b, name, n, is_guarded ? &guard : NULL);
}

static void read_body(struct builder *b)
{
    const u32 bottom = b->depth;
    need(b, '{');
    open_scope(b);
    while (b->depth > bottom) {
        if (!peek(b))
            fail(b, "missing '}'");
        if (take(b, '{'))
            open_scope(b);
        else if (take(b, '}'))
            close_scope(b);
        else if (!take(b, ';'))
            read_body_item(b);
    }
}

static void read_parameters(struct builder *b)
{
    struct kernel *k = b->kernel;
    if (!take(b, '(') || take(b, ')'))
        return;
    do {
        struct symbol value = {.space = SPACE_PARAM};
        if (!take_word(b, ".param"))
            fail(b, "expected .param");
        /* .ptr .align N tells about what is pointed to, not about the parameter. */
        const u32 element = read_variable(b, &value);
        const u32 align = value.bytes > element && value.align ? value.align : element;
        k->param_bytes = (k->param_bytes + align - 1) & ~(align - 1);
        value.address = k->param_bytes;
        struct param *p = PUSH(k->params, k->n_params, b->cap_params);
        *p = (struct param){copy_name(value.name, (u32)strlen(value.name)), k->param_bytes, (u32)value.bytes};
        k->param_bytes += (u32)value.bytes;
        add_symbol(&b->locals, value);
    } while (take(b, ','));
    need(b, ')');
}

static u32 read_triple(struct builder *b, u32 *out)
{
    u32 n = 1;
    for (u32 i = 0; i < 3; i++) {
        out[i] = i == 0 || take(b, ',') ? read_u32(b, 1 << 20, "dimension") : 1;
        n *= out[i];
    }
    return n;
}

static void read_performance_directives(struct builder *b)
{
    struct kernel *k = b->kernel;
    u32 unused[3];
    while (peek(b) == '.') {
        u32 n;
        const char *word = read_name(b, &n, true);
        if (name_is(word, n, ".reqntid"))
            k->max_threads = read_triple(b, k->reqntid);
        else if (name_is(word, n, ".maxntid"))
            k->max_threads = read_triple(b, unused);
        else if (name_is(word, n, ".maxnreg"))
            k->max_regs = read_u32(b, 1024, "register count");
        else if (name_is(word, n, ".reqnctapercluster"))
            read_triple(b, k->reqnctapercluster);
        else if (name_is(word, n, ".maxclusterrank"))
            k->max_cluster = read_u32(b, 16, "cluster size");
        else if (name_is(word, n, ".explicitcluster")) {
        } else if (name_is(word, n, ".minnctapersm") || name_is(word, n, ".maxnctapersm"))
            read_integer(b);
        else if (name_is(word, n, ".pragma"))
            skip_to_semicolon(b);
        else
            fail(b, "directive '%.*s' is not supported", (int)n, word);
    }
}

static void free_symbols(struct symbol *s)
{
    while (s) {
        struct symbol *next = s->next;
        free(s->name);
        free(s);
        s = next;
    }
}

/* What was needed to build one kernel, and is not part of it. */
static void forget_kernel(struct builder *b)
{
    while (b->n_ranges)
        free(b->ranges[--b->n_ranges].slots);
    free_symbols(b->locals);
    free(b->first_operand);
    free(b->first_touched);
    b->locals = NULL;
    b->first_operand = b->first_touched = NULL;
    b->kernel = NULL;
    b->cap_first = b->cap_code = b->cap_operands = b->cap_fixed = b->cap_params = b->cap_tables = 0;
    b->n_touched = b->cap_touched = b->cap_first_touched = 0;
    b->n_operands = b->n_labels = b->n_fixups = b->n_scopes = b->scope = b->depth = 0;
    b->file = b->src_line = 0;
    for (struct symbol *s = b->module->globals; s; s = s->next)
        s->is_placed = false;
}

static void read_kernel(struct builder *b)
{
    u32 n;
    const char *name = read_name(b, &n, false);
    struct kernel *k = calloc(1, sizeof *k);
    k->module = b->module;
    k->name = copy_name(name, n);
    k->n_rows = N_FIXED_ROWS;
    k->n_preds = N_FIXED_PREDS;
    k->granule_log2 = k->global_granule_log2 = 4;
    k->dynamic_base = 1; /* an alignment, until all is known */
    k->next = b->module->kernels;
    b->module->kernels = b->kernel = k;
    read_parameters(b);
    read_performance_directives(b);
    read_body(b);
    const u32 align = k->dynamic_base;
    k->dynamic_base = (k->static_smem + align - 1) & ~(align - 1);
    finish_kernel(b);
    find_reconvergence(k);
    forget_kernel(b);
}

/* Functions are inlined by our compilers; one that is never called does no harm. */
static void skip_function(struct builder *b)
{
    while (peek(b) && *b->at != '{' && *b->at != ';')
        b->at++;
    if (!take(b, ';'))
        skip_braces(b);
}

static void read_target(struct builder *b)
{
    u32 n;
    const char *name = read_name(b, &n, false);
    if (n < 5 || memcmp(name, "sm_", 3))
        fail(b, "unknown target");
    for (u32 i = 3; i < n && isdigit((unsigned char)name[i]); i++)
        b->module->target = b->module->target * 10 + (u32)(name[i] - '0');
    b->module->is_arch_specific = !isdigit((unsigned char)name[n - 1]);
    while (take(b, ','))
        read_name(b, &n, false);
}

static void read_module_item(struct builder *b)
{
    u32 n;
    bool is_extern = false;
    const char *word = read_name(b, &n, true);
    while (name_is(word, n, ".visible") || name_is(word, n, ".extern") || name_is(word, n, ".weak") ||
           name_is(word, n, ".common")) {
        is_extern |= name_is(word, n, ".extern");
        word = read_name(b, &n, true);
    }
    if (name_is(word, n, ".version"))
        read_number(b);
    else if (name_is(word, n, ".target"))
        read_target(b);
    else if (name_is(word, n, ".address_size")) {
        if (read_integer(b) != 64)
            fail(b, "only 64-bit addresses are supported");
    } else if (name_is(word, n, ".entry"))
        read_kernel(b);
    else if (name_is(word, n, ".func"))
        skip_function(b);
    else if (name_is(word, n, ".shared"))
        declare_variable(b, SPACE_SHARED, is_extern);
    else if (name_is(word, n, ".global"))
        declare_variable(b, SPACE_GLOBAL, is_extern);
    else if (name_is(word, n, ".const"))
        declare_variable(b, SPACE_CONST, is_extern);
    else if (name_is(word, n, ".file"))
        read_file_directive(b);
    else if (name_is(word, n, ".section")) {
        read_name(b, &n, true);
        skip_braces(b);
    } else if (name_is(word, n, ".pragma") || name_is(word, n, ".alias"))
        skip_to_semicolon(b);
    else
        fail(b, n ? "'%.*s' is not supported" : "unexpected text%.*s", (int)n, word);
}

/* -- modules --------------------------------------------------------------------------------- */

static void index_lines(struct module *m)
{
    u32 capacity = 0, n = 0;
    *PUSH(m->lines, n, capacity) = m->text; /* lines[0] is not used */
    *PUSH(m->lines, n, capacity) = m->text;
    for (const char *p = m->text; *p; p++)
        if (*p == '\n')
            *PUSH(m->lines, n, capacity) = p + 1;
    m->n_lines = n - 1;
}

/* False after fail(). A function of its own, as setjmp forbids locals that change. */
static bool read_module(struct builder *b)
{
    if (setjmp(b->failed))
        return false;
    while (peek(b))
        read_module_item(b);
    if (!b->module->target)
        fail(b, "no .target directive");
    return true;
}

/* NULL when the text is not understood: the report says where. */
/* As the driver sees it, which takes any other text for no image at all. */
bool text_is_ptx(const char *text)
{
    struct builder b = {.at = text, .end = text + strlen(text)};
    skip_space(&b);
    return !strncmp(b.at, ".version", 8);
}

struct module *module_parse(const char *text, size_t size, struct memory *memory, struct report *r)
{
    struct builder *b = calloc(1, sizeof *b);
    struct module *m = calloc(1, sizeof *m);
    m->text = copy_name(text, (u32)size);
    index_lines(m);
    *b = (struct builder){.report = r, .module = m, .memory = memory, .at = m->text, .end = m->text + size, .line = 1};
    const bool ok = read_module(b);
    forget_kernel(b);
    free(b->ranges);
    free(b->labels);
    free(b->fixups);
    free(b->scope_parent);
    free(b);
    if (!ok) {
        module_free(m, memory);
        return NULL;
    }
    return m;
}

bool module_find_global(const struct module *m, const char *name, u64 *address, u64 *bytes)
{
    const struct symbol *s = find_symbol(m->globals, name, (u32)strlen(name));
    if (!s || !s->allocation)
        return false;
    *address = s->address;
    *bytes = s->bytes;
    return true;
}

bool module_has_memory(const struct module *m)
{
    bool has = false;
    for (const struct symbol *s = m->globals; s; s = s->next)
        has |= s->allocation != NULL;
    return has;
}

static void kernel_free(struct kernel *k)
{
    for (u32 i = 0; i < k->n_params; i++)
        free(k->params[i].name);
    for (u32 i = 0; i < k->n_tables; i++)
        free(k->tables[i].target);
    free(k->name);
    free(k->code);
    free(k->operands);
    free(k->touched);
    free(k->tables);
    free(k->fixed);
    free(k->params);
    free(k);
}

void module_free(struct module *m, struct memory *memory)
{
    while (m->kernels) {
        struct kernel *next = m->kernels->next;
        kernel_free(m->kernels);
        m->kernels = next;
    }
    for (struct symbol *s = m->globals; s; s = s->next)
        if (s->allocation)
            memory_release(memory, s->allocation);
    free_symbols(m->globals);
    for (u32 i = 0; i < m->n_files; i++)
        free(m->files[i]);
    free(m->files);
    free(m->lines);
    free(m->text);
    free(m);
}
