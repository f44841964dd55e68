/* cli/compile.c - `tegula compile`: a program as files, for engines that embed it. Needs no GPU. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(bytes, 1, size, file) == size;
    int error = errno;
    if (file && fclose(file) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok)
        complain(output->context, "choose a folder that you may write to, with room on its disk",
                 "%s: cannot be written: %s", path, strerror(error));
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

static bool write_images(const struct output *output, const tg_program *program)
{
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        const tg_kernel *kernel = &program->kernels[i];
        char suffix[96];
        snprintf(suffix, sizeof suffix, ".%s.ptx", short_name(program, i));
        if (!write_file(output, suffix, kernel->ptx, kernel->ptx_bytes))
            return false;
        snprintf(suffix, sizeof suffix, ".%s.cubin", short_name(program, i));
        if (kernel->cubin && !write_file(output, suffix, kernel->cubin, kernel->cubin_bytes))
            return false;
    }
    return true;
}

static bool write_bundle(const struct output *output, const tg_program *program)
{
    void *bytes = NULL;
    size_t size;
    bool ok = tg_program_bytes(program, &bytes, &size, &output->context->sink) == TG_OK &&
              write_file(output, ".tgb", bytes, size);
    free(bytes);
    return ok;
}

static bool write_c(const struct output *output, const tg_program *program)
{
    char *source = NULL, *header = NULL;
    const char *const common = tg_embed_header();
    bool ok = tg_program_c(program, output->name, &source, &header, &output->context->sink) == TG_OK &&
              write_file(output, ".c", source, strlen(source)) && write_file(output, ".h", header, strlen(header)) &&
              write_as(output, "tegula_embed", ".h", common, strlen(common));
    free(source);
    free(header);
    return ok;
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

static int compile_to(struct context *context, struct output *output, const tg_variant *variant,
                      const tg_target *target, const tg_shape_class *shape, const struct shape *sizes)
{
    struct choice choice;
    tg_program *program = NULL;
    if (!schedule_choose(context, variant, target, shape, sizes, wish_of(&context->options), &choice))
        return CODE_USAGE;
    tg_compile_options how = {.ptxas = ptxas_find(context)};
    double start = now();
    progress_begin(context, "compiling %s for %s", variant->name, target->arch);
    tg_status status =
        program_compile(context, variant, &choice.schedule, target, shape, &how, &program, &context->sink);
    double seconds = now() - start;
    progress_end(context);
    if (status != TG_OK)
        return code_of_status(status);

    json_t *kernels = output->files ? json_array() : NULL;
    if (!kernels)
        printf("%s, schedule %s (%s for B %lld, NH %lld, T %lld), %s, %s, dqk %u, dhv %u: %.0f ms%s\n", variant->name,
               choice.schedule.name, choice.origin, (long long)sizes->batch, (long long)sizes->heads,
               (long long)sizes->tokens, target->arch, tg_dtype_name(shape->io), shape->dqk, shape->dhv, 1e3 * seconds,
               how.ptxas ? " with ptxas" : " (without ptxas: no cubin)");
    for (uint32_t i = 0; i < program->n_kernels; i++) {
        struct text facts = {0};
        if (kernels) {
            json_array_append_new(kernels, kernel_json(&program->kernels[i]));
            continue;
        }
        kernel_facts(&program->kernels[i], &facts);
        printf("  %s: %s\n", program->kernels[i].name, text_of(&facts));
        text_free(&facts);
    }
    bool ok = write_images(output, program) && write_bundle(output, program) && write_c(output, program);
    tg_program_free(program);
    if (kernels && ok)
        json_print(json_pack("{s:s, s:s, s:s, s:f, s:o, s:O}", "variant", variant->name, "schedule",
                             choice.schedule.name, "arch", target->arch, "seconds", seconds, "kernels", kernels,
                             "files", output->files));
    else
        json_decref(kernels);
    return ok ? CODE_OK : CODE_USAGE;
}

int command_compile(struct context *context)
{
    struct output output = {.context = context};
    tg_shape_class shape;
    struct shape sizes;
    const tg_variant *variant = variant_by_name(context, context->options.args[0]);
    if (!variant || !shape_class_wanted(context, &shape, &sizes) || !output_open(&output, variant))
        return CODE_USAGE;
    const tg_target *target = target_wanted(context);
    if (!target)
        return CODE_USAGE;
    output.files = context->options.json ? json_array() : NULL;
    int code = compile_to(context, &output, variant, target, &shape, &sizes);
    json_decref(output.files);
    return code;
}
