/* runtime/module.c - a program into the current context.
 *
 * What cannot work is refused here in our words, before the driver is asked and answers in its own:
 * the wrong architecture, too much shared memory, too large a block. */
#include "program/arch.h"
#include "runtime/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_WITHOUT_ASKING = 48 * 1024, LOG_BYTES = 16 * 1024 };

struct limits {
    int cc, shared_optin, max_threads;
};

static tg_status query_limits(const tg_driver *driver, struct limits *limits, const tg_sink *sink)
{
    cu_device device = 0;
    tg_status status = current_device(driver, &device, &limits->cc, sink);
    if (status == TG_OK)
        status = device_attribute(driver, device, CU_DEVICE_SHARED_OPTIN, &limits->shared_optin, sink);
    if (status == TG_OK)
        status = device_attribute(driver, device, CU_DEVICE_MAX_THREADS_PER_BLOCK, &limits->max_threads, sink);
    return status;
}

static tg_status check_arch(const tg_program *program, int cc, const tg_sink *sink)
{
    if (runs_on(program, cc))
        return TG_OK;
    return tg_fail(sink, TG_E_UNSUPPORTED, "TG0811", "compile the program for this GPU",
                   "program %s: expected a GPU of %s%s, found sm_%d", program->variant, program->arch,
                   program->arch_exact ? " exactly" : " or newer", cc);
}

/* Overlap is left out where the driver cannot do it; without the others a kernel would be wrong. */
static tg_status check_functions(const tg_driver *driver, const tg_kernel *kernel, const tg_sink *sink)
{
    const struct {
        const char *what, *function;
        bool is_missing;
    } rows[] = {
        {"tensor maps", "cuTensorMapEncodeTiled", kernel->n_maps && !driver->cuTensorMapEncodeTiled},
        {"cluster", "cuLaunchKernelEx", kernel->cluster > 1 && !driver->cuLaunchKernelEx},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_missing)
            return tg_fail(sink, TG_E_UNSUPPORTED, "TG0816", "CUDA 12.0 drivers have it",
                           "kernel %s: %s: expected a driver with the function %s, found none", kernel->name,
                           rows[i].what, rows[i].function);
    return TG_OK;
}

static tg_status check_kernel(const tg_driver *driver, const tg_kernel *kernel, const struct limits *limits,
                              const tg_sink *sink)
{
    if (kernel->shared_bytes > (uint32_t)limits->shared_optin)
        return tg_fail(sink, TG_E_UNSUPPORTED, "TG0812", "use smaller tiles or fewer stages",
                       "kernel %s: shared memory: expected at most %d bytes on this GPU, found %" PRIu32, kernel->name,
                       limits->shared_optin, kernel->shared_bytes);
    if (kernel->threads > (uint32_t)limits->max_threads)
        return tg_fail(sink, TG_E_UNSUPPORTED, "TG0813", NULL,
                       "kernel %s: threads: expected at most %d on this GPU, found %" PRIu32, kernel->name,
                       limits->max_threads, kernel->threads);
    return check_functions(driver, kernel, sink);
}

/* The driver's own words about PTX it refuses (line and reason) are in its log, not in the result.
 */
static tg_status load_ptx(const tg_driver *driver, const tg_kernel *kernel, cu_module *loaded, const tg_sink *sink)
{
    char log[LOG_BYTES] = "", what[128];
    int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)}; /* the size goes by value */
    cu_result result = driver->cuModuleLoadDataEx(loaded, kernel->ptx, 2, options, values);
    if (result == CU_SUCCESS)
        return TG_OK;
    if (log[0])
        tg_report(sink, TG_ERROR, "TG0815", NULL, 0, NULL, "kernel %s: the driver refuses the PTX: %s", kernel->name,
                  log);
    (void)snprintf(what, sizeof what, "cuModuleLoadDataEx (PTX of %s)", kernel->name);
    return driver_fail(driver, result, what, sink);
}

/* A cubin runs on its own major architecture only. One that the driver refuses (it is older than
 * the ptxas that made it) is no failure: the PTX says the same, and costs a compilation. */
static tg_status load_image(const tg_driver *driver, const tg_kernel *kernel, bool may_use_cubin, cu_module *loaded,
                            const tg_sink *sink)
{
    if (may_use_cubin && kernel->cubin) {
        cu_result result = driver->cuModuleLoadDataEx(loaded, kernel->cubin, 0, NULL, NULL);
        if (result == CU_SUCCESS)
            return TG_OK;
        const char *name = NULL;
        (void)driver->cuGetErrorName(result, &name);
        tg_report(sink, TG_NOTE, "TG0814", NULL, 0, NULL, "kernel %s: the driver refuses the cubin (%s); using the PTX",
                  kernel->name, name ? name : "unknown result");
    }
    return load_ptx(driver, kernel, loaded, sink);
}

static tg_status check_registers(const tg_driver *driver, const tg_kernel *kernel, cu_function function,
                                 const tg_sink *sink)
{
    int max_threads = 0;
    tg_status status =
        DRIVER_CALL(driver, sink, cuFuncGetAttribute, &max_threads, CU_FUNCTION_MAX_THREADS_PER_BLOCK, function);
    if (status == TG_OK && kernel->threads > (uint32_t)max_threads)
        status = tg_fail(sink, TG_E_UNSUPPORTED, "TG0813", "its registers leave room for no more",
                         "kernel %s: threads: expected at most %d as loaded, found %" PRIu32, kernel->name, max_threads,
                         kernel->threads);
    return status;
}

static tg_status get_function(const tg_driver *driver, const tg_kernel *kernel, cu_module loaded, cu_function *function,
                              const tg_sink *sink)
{
    char what[128];
    (void)snprintf(what, sizeof what, "cuModuleGetFunction (%s)", kernel->name);
    tg_status status = driver_status(driver, driver->cuModuleGetFunction(function, loaded, kernel->name), what, sink);
    if (status == TG_OK)
        status = check_registers(driver, kernel, *function, sink);
    if (status == TG_OK && kernel->shared_bytes > SHARED_WITHOUT_ASKING)
        status = DRIVER_CALL(driver, sink, cuFuncSetAttribute, *function, CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES,
                             (int)kernel->shared_bytes);
    /* Drivers load lazily, at the first launch; that must not fall into a stream capture. */
    if (status == TG_OK && driver->cuFuncLoad)
        status = DRIVER_CALL(driver, sink, cuFuncLoad, *function);
    return status;
}

static tg_status load_kernels(tg_module *module, const tg_sink *sink)
{
    const tg_driver *driver = module->driver;
    const tg_program *program = module->program;
    struct limits limits = {0};
    tg_status status = query_limits(driver, &limits, sink);
    if (status == TG_OK)
        status = check_arch(program, limits.cc, sink);
    for (uint32_t i = 0; i < program->n_kernels && status == TG_OK; i++)
        status = check_kernel(driver, &program->kernels[i], &limits, sink);
    bool may_use_cubin = arch_number(program) / 10 == limits.cc / 10;
    for (uint32_t i = 0; i < program->n_kernels && status == TG_OK; i++) {
        const tg_kernel *kernel = &program->kernels[i];
        status = load_image(driver, kernel, may_use_cubin, &module->modules[i], sink);
        if (status != TG_OK)
            break;
        module->n_modules++;
        status = get_function(driver, kernel, module->modules[i], &module->functions[i], sink);
    }
    return status;
}

tg_status tg_load(const tg_driver *driver, const tg_program *program, tg_module **module, const tg_sink *sink)
{
    if (!driver || !module)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_load: %s is NULL", driver ? "module" : "driver");
    *module = NULL;
    tg_status status = tg_program_verify(program, sink);
    if (status != TG_OK)
        return status;
    tg_module *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "tg_load: no memory");
    loaded->driver = driver;
    loaded->program = program;
    const uint32_t n_maps = maps_before(program, program->n_kernels);
    loaded->maps = n_maps ? calloc((size_t)n_maps * MAP_PLACES, sizeof *loaded->maps) : NULL;
    if (n_maps && !loaded->maps)
        status = tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "tg_load: no memory");
    if (status == TG_OK)
        status = load_kernels(loaded, sink);
    if (status != TG_OK) {
        tg_unload(loaded);
        return status;
    }
    *module = loaded;
    return TG_OK;
}

void tg_unload(tg_module *module)
{
    if (!module)
        return;
    for (uint32_t i = 0; i < module->n_modules; i++)
        (void)module->driver->cuModuleUnload(module->modules[i]);
    free(module->maps);
    free(module);
}
