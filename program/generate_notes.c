/* program/generate_notes.c - generated C: scalars, constants, and what a caller must know, as comments. */
#include "program/generate.h"
#include "program/tensor.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    gen_append(text, "(");
    for (const char *at = digits; *at; at++) {
        const bool is_point = !strchr("+-0123456789e", *at);
        is_whole = is_whole && !is_point && *at != 'e';
        if (is_point)
            gen_append(text, at == digits || strchr("0123456789", at[-1]) ? "." : "");
        else
            gen_append(text, "%c", *at);
    }
    gen_append(text, is_whole ? ".0f)" : "f)");
}

/* A scalar may have the name of another parameter. */
static const char *scalar_suffix(const char *name)
{
    static const char *const others[] = {"module", "sizes", "tensors", "workspace", "stream"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], name) == 0)
            return "_";
    return gen_is_taken(name) ? "_" : "";
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
        gen_append(text, "#define @NAME@_DEFAULT_%s ", name);
        append_float(text, set->programs[0].scalars[scalar].value);
        gen_append(text, "\n");
        return;
    }
    gen_append(text, "/* No @NAME@_DEFAULT_%s, which differs:", name);
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_program *p = &set->programs[set->branches[i].first];
        gen_append(text, "%s ", i ? "," : "");
        append_float(text, p->scalars[scalar].value);
        gen_append(text, " for dqk %" PRIu32 ", dhv %" PRIu32, p->dqk, p->dhv);
    }
    gen_append(text, ". */\n");
}

/* In the header parameters have names, in the source numbers, which hide no function. */
void gen_add_scalars(struct keys *keys, const tg_set *set)
{
    const tg_program *program = &set->programs[0];
    struct text *named = gen_add_key(keys, "named_scalars"), *defaults = gen_add_key(keys, "defaults");
    struct text *numbered = gen_add_key(keys, "numbered_scalars"), *list = gen_add_key(keys, "scalars");
    for (uint32_t i = 0; i < program->n_scalars; i++) {
        const tg_scalar_info *s = &program->scalars[i];
        gen_append(named, "%sfloat %s%s,", i ? " " : "", s->name, scalar_suffix(s->name));
        gen_append(numbered, "%sfloat scalar_%" PRIu32 ",", i ? " " : "", i);
        gen_append(list, "%sscalar_%" PRIu32, i ? ", " : "", i);
        append_default(defaults, set, i);
    }
}

static void append_pool(struct text *notes, const tg_program *program)
{
    if (program->pooled == TG_POOL_SLOTS)
        gen_append(notes, " * States are slots of a pool of yours: sequence b has slot index[b], and the first "
                          "stride leads from\n * slot to slot. Initial and final state may be the same "
                          "memory; in a call of B > 0 without tokens\n * they must be.");
    else if (program->pooled >= TG_POOL_TOKENS)
        gen_append(notes,
                   " * States are slots of a pool of yours, and the first stride leads from slot to slot: sequence b\n"
                   " * begins with slot index[b], and its state behind %s goes to slot index_out[b, %s], with which\n"
                   " * no other begins.",
                   program->pooled == TG_POOL_TOKENS ? "token t" : "chunk c",
                   program->pooled == TG_POOL_TOKENS ? "t" : "c");
    else if (program->pooled)
        gen_append(notes, " * States are slots of a pool of yours, and the first stride leads from slot to slot: "
                          "sequence b\n * begins with slot index[b] and ends in slot index_out[b], with which no other "
                          "begins. There is no\n * call of B > 0 without tokens.");
    if (program->pooled)
        gen_append(notes,
                   " A negative slot is none: nothing is read there,\n * so that the sequence begins from zero, and "
                   "nothing written. A sequence without %s is padding:\n * nothing of it is read or "
                   "written.\n *\n",
                   program->pooled >= TG_POOL_TOKENS ? "tokens" : "slots");
    if (tg_program_tensor(program, "count") >= 0)
        gen_append(notes, " * Of sequence b the first count[b] tokens alone are computed, if it has more.\n *\n");
}

/* What a caller must know about this kind of program. */
void gen_add_notes(struct keys *keys, const tg_set *set)
{
    const tg_program *program = &set->programs[0];
    struct text *notes = gen_add_key(keys, "notes");
    uint64_t mapped = 0;
    bool has_cluster = false;
    for (uint32_t i = 0; i < set->n_programs; i++) {
        mapped |= mapped_tensors(&set->programs[i]);
        for (uint32_t k = 0; k < set->programs[i].n_kernels; k++)
            has_cluster |= set->programs[i].kernels[k].cluster > 1;
    }
    if (program->group > 1)
        gen_append(notes,
                   " * NH counts value heads; %" PRIu32 " in a row share one of the NH/%" PRIu32
                   " heads of other arrays.\n *\n",
                   program->group, program->group);
    if (program->packed)
        gen_append(notes, " * B sequences of different lengths lie one behind the other on the axis T. T is that "
                          "of all\n * together; cu[b] is where sequence b begins, and cu[B] is T,\n"
                          " * or less: tokens behind it are none.\n *\n");
    append_pool(notes, program);
    if (program->packed || program->pooled)
        gen_append(notes, " * Arrays of i32 have any positive stride: int64 is the same address with stride "
                          "2.\n *\n");
    if (mapped) {
        gen_append(notes, " * Strides of axes longer than 1 are positive and below 2^40 bytes in");
        for (uint32_t i = 0; i < program->n_tensors && !is_workspace(&program->tensors[i]); i++)
            if (mapped >> i & 1)
                gen_append(notes, " %s", program->tensors[i].name);
        gen_append(notes, ",\n * which are read or written through tensor maps.\n *\n");
    }
    if (mapped || has_cluster)
        gen_append(notes, " * The driver must have%s%s%s.\n *\n", mapped ? " cuTensorMapEncodeTiled" : "",
                   mapped && has_cluster ? " and" : "", has_cluster ? " cuLaunchKernelEx" : "");
    if (program->max_tokens)
        gen_append(notes, " * These are decode steps: %s at most %" PRIu32 ".\n *\n",
                   program->packed ? "the tokens of a sequence are" : "T is", program->max_tokens);
}

/* ---- what there is, for people ---- */

static const char *or_newer(const tg_program *program)
{
    return program->arch_exact ? "exactly" : "or newer";
}

/* Of each branch: its programs, and what they were chosen for. */
void gen_add_choices(struct keys *keys, const tg_set *set)
{
    static const char *const origins[] = {
        [TG_BY_MODEL] = "the cost model", [TG_BY_WISDOM] = "measured", [TG_BY_NAME] = "named"};
    struct text *text = gen_add_key(keys, "choices");
    if (set->n_programs == 1)
        return;
    gen_append(text,
               " * A launch takes one of these programs, by the GPU, the widths and the sizes. Each is for calls like\n"
               " * those beside it (B NH, and the tokens of a sequence, within a factor of 1.4); other calls take\n"
               " * what a table made from the cost model says.\n *\n");
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_branch *b = &set->branches[i];
        const tg_program *first = &set->programs[b->first];
        gen_append(text, " * dqk %" PRIu32 ", dhv %" PRIu32 ", %s %s:\n", first->dqk, first->dhv, first->arch,
                   or_newer(first));
        for (uint32_t p = 0; p < b->n_programs; p++) {
            gen_append(text, " *     ");
            gen_append_harmless(text, first[p].schedule);
            gen_append(text, ", L %" PRIu32 "%s", first[p].chunk_default, p ? "" : "; the default");
            for (uint32_t k = 0; k < b->n_points; k++)
                if (b->points[k].program == p)
                    gen_append(text, "; B %" PRId64 " NH %" PRId64 " T %" PRId64 " (%s)", b->points[k].batch,
                               b->points[k].heads, b->points[k].tokens, origins[b->points[k].origin]);
            gen_append(text, "\n");
        }
        gen_append(text, " *\n");
    }
}

/* "sm_80 or newer, sm_90a exactly" and "128 x 256, 64 x 64": each once. */
void gen_add_lists(struct keys *keys, const tg_set *set)
{
    struct text *archs = gen_add_key(keys, "archs"), *widths = gen_add_key(keys, "branch_text");
    for (uint32_t i = 0; i < set->n_branches; i++) {
        const tg_program *p = &set->programs[set->branches[i].first];
        bool has_arch = false, has_width = false;
        for (uint32_t k = 0; k < i; k++) {
            const tg_program *other = &set->programs[set->branches[k].first];
            has_arch |= strcmp(other->arch, p->arch) == 0;
            has_width |= other->dqk == p->dqk && other->dhv == p->dhv;
        }
        if (!has_arch)
            gen_append(archs, "%s%s %s", i ? ", " : "", p->arch, or_newer(p));
        if (!has_width)
            gen_append(widths, "%s%" PRIu32 " and %" PRIu32, i ? ", or " : "", p->dqk, p->dhv);
    }
}

/* A line of what all programs agree in. */
static void append_constant(struct text *text, const char *name, const tg_set *set, uint32_t (*get)(const tg_program *),
                            const char *comment)
{
    for (uint32_t i = 1; i < set->n_programs; i++)
        if (get(&set->programs[i]) != get(&set->programs[0]))
            return;
    gen_append(text, "    @NAME@_%s = %" PRIu32 ",%s\n", name, get(&set->programs[0]), comment);
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

void gen_add_constants(struct keys *keys, const tg_set *set)
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
        {"CHUNK_MOST", gen_chunk_most, ""},
        {"PACKED", get_packed, " /* 1: sequences of different lengths, see above */"},
        {"POOLED", get_pooled, " /* 1: states in a pool, see above */"},
        {"GROUP", get_group, " /* value heads that share a head of other arrays */"},
        {"MAX_TOKENS", get_max_tokens, " /* of a call; 0: any number */"},
    };
    struct text *text = gen_add_key(keys, "constants");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        append_constant(text, rows[i].name, set, rows[i].get, rows[i].comment);
}

void gen_add_numbers(struct keys *keys, const tg_set *set)
{
    const tg_program *program = &set->programs[0];
    const struct {
        const char *name;
        uint32_t value;
    } rows[] = {
        {"packed", program->packed},       {"pooled", program->pooled}, {"group", program->group},
        {"n_scalars", program->n_scalars}, {"max_args", TG_MAX_ARGS},   {"max_maps", TG_MAX_MAPS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        gen_append(gen_add_key(keys, rows[i].name), "%" PRIu32, rows[i].value);
}

void gen_add_title(struct keys *keys, const tg_set *set)
{
    const tg_program *program = &set->programs[0];
    struct text *title = gen_add_key(keys, "title"), *widths = gen_add_key(keys, "widths");
    gen_append_harmless(title, program->variant);
    if (set->n_programs == 1) {
        gen_append(title, ", schedule ");
        gen_append_harmless(title, program->schedule);
        gen_append(title, ", for %s %s", program->arch, or_newer(program));
    } else {
        gen_append(title, ", %" PRIu32 " programs of which each call takes one", set->n_programs);
    }
    bool is_one = true;
    for (uint32_t i = 1; i < set->n_programs; i++)
        is_one &= set->programs[i].dqk == program->dqk && set->programs[i].dhv == program->dhv;
    if (is_one)
        gen_append(widths, "dqk = %" PRIu32 ", dhv = %" PRIu32, program->dqk, program->dhv);
    else
        gen_append(widths, "dqk and dhv are @branch_text@ (say which in the sizes)");
    gen_append(gen_add_key(keys, "load_note"), "%s",
               set->n_branches > 1 ? ": of each pair of widths those of the newest\n * architecture that its GPU runs"
                                   : "");
    gen_append(gen_add_key(keys, "workspace_note"), "%s",
               set->n_programs > 1 ? ",\n * whichever of the GPUs it is on" : "");
}

void gen_add_names(struct keys *keys, const tg_set *set, const char *name)
{
    gen_append(gen_add_key(keys, "io"), "%s", tg_dtype_name((tg_dtype)set->programs[0].io_dtype));
    struct text *upper = gen_add_key(keys, "NAME"), *indent = gen_add_key(keys, "indent");
    for (const char *at = name; *at; at++)
        gen_append(upper, "%c", toupper((unsigned char)*at));
    gen_append(indent, "%*s", (int)(strlen(name) + strlen("int _launch(")), "");
    gen_append(gen_add_key(keys, "name"), "%s", name);
}
