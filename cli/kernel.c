/* cli/kernel.c - from a schedule to a loaded module, through the cache on disk. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *ptxas_find(struct context *context)
{
    char *found = context->ptxas;
    const size_t size = sizeof context->ptxas;
    if (context->options.ptxas)
        return context->options.ptxas;
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        snprintf(found, size, "%.*s/ptxas", (int)length, path);
        if (length && access(found, X_OK) == 0)
            return found;
        path += length + (path[length] == ':');
    }
    snprintf(found, size, "/usr/local/cuda/bin/ptxas"); /* where NVIDIA's packages put it */
    return access(found, X_OK) == 0 ? found : NULL;
}

static tg_status program_make(struct context *context, const tg_variant *variant, const tg_schedule *schedule,
                              const tg_shape_class *shape, struct kernel *kernel, const tg_sink *sink)
{
    const struct options *options = &context->options;
    const tg_target *target = context->machine.target;
    const char *cache = options->no_cache ? "" : options->cache ? options->cache : context->cache;
    /* The driver assembles PTX as well as ptxas does, but one kernel after the other: 350 to 430 ms
     * where three ptxas side by side take half of that. The emulator wants PTX. */
    const bool on_gpu = context->machine.driver && !context->machine.is_emulator;
    const tg_compile_options how = {.ptxas = on_gpu ? ptxas_find(context) : options->ptxas};
    char key[33];

    tg_compile_key(schedule, target, shape, how.ptxas, key);
    if (*cache && tg_cache_get(cache, key, &kernel->program, sink) == TG_OK && kernel->program) {
        kernel->is_cached = true;
        return TG_OK;
    }
    kernel->program = NULL;
    tg_status status = tg_compile(variant, schedule, target, shape, &how, &kernel->program, sink);
    if (status == TG_OK && *cache) {
        /* A cache that cannot be written costs time at the next run, and nothing now. */
        if (tg_cache_put(cache, key, kernel->program, &silent_sink) != TG_OK && !context->is_cache_warned) {
            remark("cannot write the kernel cache %s; choose another with --cache", cache);
            context->is_cache_warned = true;
        }
    }
    return status;
}

bool kernel_load(struct context *context, tg_program *program, struct kernel *kernel, const tg_sink *sink)
{
    *kernel = (struct kernel){.program = program};
    if (!machine_ready(context)) {
        kernel_free(kernel);
        return false;
    }
    double start = now();
    tg_status status = tg_load(context->machine.driver, program, &kernel->module, sink);
    kernel->load_seconds = now() - start;
    if (status != TG_OK) {
        kernel->module = NULL;
        kernel_free(kernel);
    }
    return status == TG_OK;
}

bool kernel_build(struct context *context, const tg_variant *variant, const tg_schedule *schedule,
                  const tg_shape_class *shape, struct kernel *kernel, const tg_sink *sink)
{
    struct kernel made = {.program = NULL};
    double start = now();
    *kernel = made;
    tg_status status = program_make(context, variant, schedule, shape, &made, sink);
    double seconds = now() - start;
    if (status != TG_OK || !kernel_load(context, made.program, kernel, sink))
        return false;
    kernel->is_cached = made.is_cached;
    kernel->compile_seconds = seconds;
    return true;
}

void kernel_free(struct kernel *kernel)
{
    if (kernel->module)
        tg_unload(kernel->module);
    tg_program_free(kernel->program);
    kernel->module = NULL;
    kernel->program = NULL;
}
