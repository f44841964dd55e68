/* cli/compile.c - `tegula compile`: a program, or several that choose, as files, for engines that embed them. Needs no
 * GPU. */
#include "cli.h"
#include "draft.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct output {
    struct context *context;
    const char *folder;
    char name[65]; /* a C identifier */
    json_t *files; /* array, with --json */
};

static bool write_as(const struct output *output, const char *name, const char *suffix, const void *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", output->folder, name, suffix);
    struct draft draft;
    bool ok = draft_open(&draft, path);
    if (ok) {
        ok = draft_write(&draft, bytes, size) && draft_keep(&draft);
        draft_end(&draft);
    }
    if (!ok)
        complain(output->context, "choose a folder that you may write to, with room on its disk",
                 "%s: cannot be written: %s", path, draft_reason());
    else if (output->files)
        json_array_append_new(output->files, json_string(path));
    else
        printf("  %s\n", path);
    return ok;
}

static bool write_file(const struct output *output, const char *suffix, const void *bytes, size_t size)
{
    return write_as(output, output->name, suffix, bytes, size);
}

/* "tegula_mlstm_sig_H" is the H kernel: what all entry points share is left out. */
static const char *short_name(const tg_program *program, uint32_t kernel)
{
    const char *name = program->kernels[kernel].name, *last = name;
    for (size_t n = 1; name[n - 1] != '\0'; n++) {
        for (uint32_t i = 0; i < program->n_kernels; i++)
            if (strncmp(program->kernels[i].name, name, n) != 0)
                return last;
        if (name[n - 1] == '_' && name[n] != '\0')
            last = name + n;
    }
    return last;
}

/* Of several programs the number stands before the kernel's name. */
static bool write_images(const struct output *output, const tg_set *set, uint32_t at)
{
    const tg_program *program = &set->programs[at];
    char number[16] = "";
    if (set->n_programs > 1)
        snprintf(number, sizeof number, ".%u", at);
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        const tg_kernel *kernel = &program->kernels[i];
        char suffix[96];
        snprintf(suffix, sizeof suffix, "%s.%s.ptx", number, short_name(program, i));
        if (!write_file(output, suffix, kernel->ptx, kernel->ptx_bytes))
            return false;
        snprintf(suffix, sizeof suffix, "%s.%s.cubin", number, short_name(program, i));
        if (kernel->cubin && !write_file(output, suffix, kernel->cubin, kernel->cubin_bytes))
            return false;
    }
    return true;
}

static bool write_bundle(const struct output *output, const tg_set *set)
{
    void *bytes = NULL;
    size_t size;
    bool ok =
        tg_set_bytes(set, &bytes, &size, &output->context->sink) == TG_OK && write_file(output, ".tgb", bytes, size);
    free(bytes);
    return ok;
}

static bool write_c(const struct output *output, const tg_set *set)
{
    char *source = NULL, *header = NULL;
    const char *const common = tg_embed_header();
    bool ok = tg_set_c(set, output->name, &source, &header, &output->context->sink) == TG_OK &&
              write_file(output, ".c", source, strlen(source)) && write_file(output, ".h", header, strlen(header)) &&
              write_as(output, "tegula_embed", ".h", common, strlen(common));
    free(source);
    free(header);
    return ok;
}

static bool write_all(const struct output *output, const tg_set *set)
{
    bool ok = true;
    for (uint32_t i = 0; i < set->n_programs && ok; i++)
        ok = write_images(output, set, i);
    return ok && write_bundle(output, set) && write_c(output, set);
}

/* "mlstm-sig" becomes mlstm_sig, and its decode step mlstm_sig_step: an engine has both, and they name C functions. */
static void default_name(const tg_variant *variant, bool is_step, char *name, size_t size)
{
    snprintf(name, size, "%s%s", variant->name, is_step ? "_step" : "");
    for (; *name; name++)
        *name = isalnum((unsigned char)*name) ? *name : '_';
}

static bool output_open(struct output *output, const tg_variant *variant)
{
    const struct options *options = &output->context->options;
    if (!options->output) {
        complain(output->context, "name a folder: -o DIR", "`tegula compile` needs -o");
        return false;
    }
    if (options->name)
        snprintf(output->name, sizeof output->name, "%s", options->name);
    else
        default_name(variant, options->tokens > 0, output->name, sizeof output->name);
    if (tg_c_name_check(options->name ? options->name : output->name, &output->context->sink) != TG_OK)
        return false;
    output->folder = options->output;
    struct stat status;
    if (mkdir(output->folder, 0777) == 0 || (stat(output->folder, &status) == 0 && S_ISDIR(status.st_mode)))
        return true;
    complain(output->context, "create its parent folder, or choose another one with -o",
             "%s: cannot be made a folder: %s", output->folder, strerror(errno));
    return false;
}

/* ---- what was chosen for what ---- */

/* The number of its program in the set: parts_wanted has every schedule of a part once. */
static uint32_t program_of(const struct chosen *chosen, const tg_set *set)
{
    return set->branches[chosen->part].first + chosen->program;
}

static json_t *chosen_json(const struct set_parts *parts, const tg_set *set)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < parts->n_chosen; i++) {
        const struct chosen *c = &parts->chosen[i];
        const uint32_t at = program_of(c, set);
        json_t *row =
            json_pack("{s:s, s:i, s:i, s:i, s:s, s:s}", "arch", set->programs[at].arch, "dqk", (int)c->sizes.dqk, "dhv",
                      (int)c->sizes.dhv, "program", (int)at, "schedule", c->schedule, "origin", c->origin);
        json_object_set_new(row, "shape", c->is_default ? json_null() : shape_json(&c->sizes));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *program_json(const tg_program *program)
{
    json_t *kernels = json_array();
    for (uint32_t i = 0; i < program->n_kernels; i++)
        json_array_append_new(kernels, kernel_json(&program->kernels[i]));
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o}", "schedule", program->schedule, "arch", program->arch, "dqk",
                     (int)program->dqk, "dhv", (int)program->dhv, "chunk", (int)program->chunk_default, "scalars",
                     scalars_json(program), "kernels", kernels);
}

/* One program keeps the names it had when there was no choice. */
static void print_json(const struct output *output, const struct set_parts *parts, const tg_set *set, double seconds)
{
    json_t *programs = json_array();
    for (uint32_t i = 0; i < set->n_programs; i++)
        json_array_append_new(programs, program_json(&set->programs[i]));
    json_t *all =
        json_pack("{s:s, s:f, s:o, s:O, s:o}", "variant", set->programs->variant, "seconds", seconds, "chosen",
                  chosen_json(parts, set), "files", output->files, "signature", signature_json(set->programs));
    if (set->n_programs == 1) {
        json_object_update(all, json_array_get(programs, 0));
        json_decref(programs);
    } else {
        json_object_set_new(all, "programs", programs);
    }
    json_print(all);
}

static void print_kernels(const tg_program *program, const char *indent)
{
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        struct text facts = {0};
        kernel_facts(&program->kernels[i], &facts);
        printf("%s%s: %s\n", indent, program->kernels[i].name, text_of(&facts));
        text_free(&facts);
    }
}

/* Branch by branch, each program with what it is for. */
static void print_set(const struct set_parts *parts, const tg_set *set)
{
    for (uint32_t at = 0; at < set->n_programs; at++) {
        const tg_program *p = &set->programs[at];
        bool is_named = false;
        for (uint32_t i = 0; i < parts->n_chosen; i++) {
            const struct chosen *c = &parts->chosen[i];
            if (program_of(c, set) != at)
                continue;
            if (!is_named)
                printf("program %u: %s, dqk %u, dhv %u: %s\n", at, p->arch, p->dqk, p->dhv, c->schedule);
            is_named = true;
            if (c->is_default)
                printf("  for no sizes of its own (%s)\n", c->origin);
            else
                printf("  for calls like B %lld, NH %lld, T %lld (%s)\n", (long long)c->sizes.batch,
                       (long long)c->sizes.heads, (long long)c->sizes.tokens, c->origin);
        }
        print_kernels(p, "  ");
    }
}

static void print_one(const struct set_parts *parts, const tg_set *set, double seconds, bool has_ptxas)
{
    const struct chosen *c = &parts->chosen[parts->n_chosen - 1];
    const tg_program *p = &set->programs[0];
    printf("%s, schedule %s (%s for B %lld, NH %lld, T %lld), %s, %s, dqk %u, dhv %u: %.0f ms%s\n", p->variant,
           p->schedule, c->origin, (long long)c->sizes.batch, (long long)c->sizes.heads, (long long)c->sizes.tokens,
           p->arch, tg_dtype_name((tg_dtype)p->io_dtype), p->dqk, p->dhv, 1e3 * seconds,
           has_ptxas ? " with ptxas" : " (without ptxas: no cubin)");
    print_kernels(p, "  ");
}

static void print_text(const struct set_parts *parts, const tg_set *set, double seconds, bool has_ptxas)
{
    if (set->n_programs == 1) {
        print_one(parts, set, seconds, has_ptxas);
        return;
    }
    printf("%s, %s, %u programs of which each call takes one: %.0f ms%s\n", set->programs->variant,
           tg_dtype_name((tg_dtype)set->programs->io_dtype), set->n_programs, 1e3 * seconds,
           has_ptxas ? " with ptxas" : " (without ptxas: no cubin)");
    print_set(parts, set);
    printf("other calls take the program that the cost model thinks fastest\n");
}

/* --tokens asks for decode steps, and there may be none for so many. */
static void say_if_no_step(const struct context *context, const tg_set *set)
{
    for (uint32_t i = 0; context->options.tokens && i < set->n_programs; i++)
        if (!set->programs[i].max_tokens)
            remark("schedule %s is for calls of any length: %s has no decode step for %lld tokens",
                   set->programs[i].schedule, set->programs[i].variant, (long long)context->options.tokens);
}

static int compile_to(struct context *context, struct output *output, const tg_variant *variant,
                      const struct set_parts *parts)
{
    tg_set *set = NULL;
    tg_compile_options how = {.ptxas = ptxas_find(context)};
    const double start = now();
    progress_begin(context, "compiling %s for %s", variant->name, parts->row[0].target->arch);
    const tg_status status = set_compile(context, variant, parts->row, parts->n, &how, &set, &context->sink);
    const double seconds = now() - start;
    progress_end(context);
    if (status != TG_OK)
        return code_of_status(status);
    say_if_no_step(context, set);
    if (!output->files)
        print_text(parts, set, seconds, how.ptxas != NULL);
    const bool ok = write_all(output, set);
    if (ok && output->files)
        print_json(output, parts, set, seconds);
    tg_set_free(set);
    return ok ? CODE_OK : CODE_USAGE;
}

/* Elsewhere a file that is not there has nothing in it yet; here it was meant to say what to compile. */
static bool wisdom_is_there(struct context *context)
{
    const char *const path = context->options.wisdom;
    if (!path || access(path, R_OK) == 0)
        return true;
    complain(context, "`tegula tune` writes it; leave --wisdom out for the cost model's choice", "--wisdom %s: %s",
             path, strerror(errno));
    return false;
}

int command_compile(struct context *context)
{
    struct output output = {.context = context};
    struct set_parts parts;
    const tg_variant *variant = variant_by_name(context, context->options.args[0]);
    if (!variant || !wisdom_is_there(context) || !output_open(&output, variant) ||
        !parts_wanted(context, variant, &parts))
        return CODE_USAGE;
    output.files = context->options.json ? json_array() : NULL;
    int code = compile_to(context, &output, variant, &parts);
    json_decref(output.files);
    parts_free(&parts);
    return code;
}
