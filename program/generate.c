/* program/generate.c - a set of programs as a pair of C files.
 *
 * Everything that is the same in all of them is text in embed_template.{h,c}.in, with @keys@ where
 * sets differ. The files beside this one make the values of the keys; this one puts them in. The templates reach
 * it as arrays made by CMake. */
#include "program/generate.h"
#include "program/fail.h"

#include <stdlib.h>

static const char header_template[] = {
#include "embed_template.h.inc"
    0};
static const char source_template[] = {
#include "embed_template.c.inc"
    0};
static const char common_header[] = {
#include "tegula_embed.h.inc"
    0};

static const char apart[] = {
#include "apart.h.inc"
    0};

/* Some values contain @name@ themselves, hence two expansions. */
static char *expand_all(const char *template_text, const struct keys *keys)
{
    char *once = gen_expand(template_text, keys);
    char *whole = once ? gen_expand(once, keys) : NULL;
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
    gen_add_names(&keys, set, name);
    gen_add_title(&keys, set);
    gen_add_lists(&keys, set);
    gen_add_choices(&keys, set);
    gen_add_constants(&keys, set);
    gen_add_numbers(&keys, set);
    gen_add_signature(&keys, &set->programs[0]);
    gen_add_images(&keys, set);
    gen_add_tensors(&keys, set);
    gen_add_kernels(&keys, set);
    gen_add_programs(&keys, set);
    gen_add_branches(&keys, set);
    gen_add_scalars(&keys, set);
    gen_add_notes(&keys, set);
    gen_append(gen_add_key(&keys, "apart"), "%s", apart);
    *source = expand_all(source_template, &keys);
    *header = expand_all(header_template, &keys);
    for (size_t i = 0; i < keys.n; i++)
        free(keys.row[i].value.bytes);
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
