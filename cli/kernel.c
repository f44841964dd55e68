/* cli/kernel.c - from a schedule to a loaded module, through the cache on disk. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *ptxas_given(const struct context *context)
{
    const char *given = context->options.ptxas;
    return given && strcmp(given, "none") != 0 ? given : NULL;
}

const char *ptxas_find(struct context *context)
{
    char *found = context->ptxas;
    const size_t size = sizeof context->ptxas;
    if (context->options.ptxas)
        return ptxas_given(context);
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

/* Hands everything on but what ptxas has refused. */
struct without_ptxas {
    const tg_sink *sink;
    bool is_refused;
};

static void emit_but_ptxas(void *user, const tg_diag *diag)
{
    struct without_ptxas *to = user;
    const bool is_of_ptxas = diag->code && strcmp(diag->code, "TG0591") == 0;
    to->is_refused |= is_of_ptxas;
    if (!is_of_ptxas && to->sink && to->sink->emit)
        to->sink->emit(to->sink->user, diag);
}

typedef tg_status compile_fn(void *user, const tg_compile_options *how, const tg_sink *sink);

static tg_status try_ptxas(const struct context *context, tg_compile_options *how, compile_fn *compile, void *user,
                           const tg_sink *sink)
{
    if (!how->ptxas || ptxas_given(context))
        return compile(user, how, sink);
    struct without_ptxas without = {.sink = sink};
    const tg_status status = compile(user, how, &(tg_sink){emit_but_ptxas, &without});
    if (status != TG_E_COMPILE || !without.is_refused)
        return status;
    remark("%s does not assemble these kernels: going on without it (--ptxas %s says why)", how->ptxas, how->ptxas);
    how->ptxas = NULL;
    return compile(user, how, sink);
}

struct one {
    const tg_variant *variant;
    const tg_schedule *schedule;
    const tg_target *target;
    const tg_shape_class *shape;
    tg_program **program;
};

static tg_status compile_one(void *user, const tg_compile_options *how, const tg_sink *sink)
{
    const struct one *one = user;
    return tg_compile(one->variant, one->schedule, one->target, one->shape, how, one->program, sink);
}

tg_status program_compile(const struct context *context, const tg_variant *variant, const tg_schedule *schedule,
                          const tg_target *target, const tg_shape_class *shape, tg_compile_options *how,
                          tg_program **program, const tg_sink *sink)
{
    struct one one = {variant, schedule, target, shape, program};
    return try_ptxas(context, how, compile_one, &one, sink);
}

struct several {
    const tg_variant *variant;
    const tg_set_part *parts;
    uint32_t n;
    tg_set **set;
};

static tg_status compile_several(void *user, const tg_compile_options *how, const tg_sink *sink)
{
    const struct several *several = user;
    return tg_compile_set(several->variant, several->parts, several->n, how, several->set, sink);
}

tg_status set_compile(const struct context *context, const tg_variant *variant, const tg_set_part *parts, uint32_t n,
                      tg_compile_options *how, tg_set **set, const tg_sink *sink)
{
    struct several several = {variant, parts, n, set};
    return try_ptxas(context, how, compile_several, &several, sink);
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
    tg_compile_options how = {.ptxas = on_gpu ? ptxas_find(context) : ptxas_given(context)};
    char key[33];

    tg_compile_key(schedule, target, shape, how.ptxas, key);
    if (*cache && tg_cache_get(cache, key, &kernel->program, sink) == TG_OK && kernel->program) {
        kernel->is_cached = true;
        return TG_OK;
    }
    kernel->program = NULL;
    tg_status status = program_compile(context, variant, schedule, target, shape, &how, &kernel->program, sink);
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
