/* program.c - the cu* functions for modules, functions and launches. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

/* -- modules --------------------------------------------------------------------------------- */

/* The text goes to the error log if the caller gave one; an empty one to the info log. */
static void write_logs(unsigned n, const int *options, void **values, const char *text)
{
    for (unsigned i = 0; i < n; i++) {
        const bool is_error = options[i] == JIT_ERROR_LOG;
        const int size_option = is_error ? JIT_ERROR_LOG_BYTES : JIT_INFO_LOG_BYTES;
        if (!is_error && options[i] != JIT_INFO_LOG)
            continue;
        for (unsigned k = 0; k < n; k++) {
            if (options[k] != size_option || !values[i] || !(size_t)values[k])
                continue;
            const int length = snprintf(values[i], (size_t)values[k], "%s", is_error ? text : "");
            if ((size_t)length < (size_t)values[k])
                values[k] = (void *)((size_t)length + 1);
        }
    }
}

static bool is_binary(const void *image)
{
    /* As strings: PTX may be shorter than these. Behind the mark of an ELF file stands its class. */
    return !strncmp(image, "\177ELF\2", 5) || !strncmp(image, "\x50\xed\x55\xba", 4);
}

static CUresult check_target(const struct module *m)
{
    const struct tgemu_config *c = &driver.config;
    const u32 device = (u32)(c->cc_major * 10 + c->cc_minor);
    if (m->target == device || (m->target < device && !m->is_arch_specific))
        return CUDA_SUCCESS;
    return driver_error(CUDA_ERROR_INVALID_PTX, "[invalid-ptx] the module is for sm_%u%s, the device is sm_%u",
                        m->target, m->is_arch_specific ? "a" : "", device);
}

/* Reading PTX takes as long as running it for a few tokens, and tests load the same again and again. What has memory of its own is read anew. */
enum { MOST_IDLE = 24 };

void driver_retire(struct module *m)
{
    u32 n = 0;
    struct module **last = &driver.idle;
    if (module_has_memory(m)) {
        module_free(m, &driver.memory);
        return;
    }
    for (struct kernel *k = m->kernels; k; k = k->next)
        k->max_dynamic_smem = 0;
    m->next = driver.idle;
    driver.idle = m;
    while (*last && n++ < MOST_IDLE)
        last = &(*last)->next;
    if (*last) {
        module_free(*last, &driver.memory);
        *last = NULL;
    }
}

/* With the library. */
__attribute__((destructor)) static void forget_idle(void)
{
    while (driver.idle) {
        struct module *const m = driver.idle;
        driver.idle = m->next;
        module_free(m, &driver.memory);
    }
}

static struct module *take_idle(const char *text)
{
    for (struct module **m = &driver.idle; *m; m = &(*m)->next) {
        struct module *const found = *m;
        if (strcmp(found->text, text) != 0)
            continue;
        *m = found->next;
        return found;
    }
    return NULL;
}

static CUresult load(struct module **out, const void *image)
{
    struct report report = {0};
    if (!image)
        return driver_error(CUDA_ERROR_INVALID_VALUE, "cuModuleLoadData: no image");
    if (is_binary(image))
        return driver_error(CUDA_ERROR_NO_BINARY_FOR_GPU, "the emulator runs PTX, not cubins or fat binaries");
    if (!text_is_ptx(image))
        return driver_error(CUDA_ERROR_INVALID_IMAGE, "the image is no PTX: it does not begin with .version");
    struct module *m = take_idle(image);
    if (!m)
        m = module_parse(image, strlen(image), &driver.memory, &report);
    if (!m)
        return driver_error(CUDA_ERROR_INVALID_PTX, "%s", report.text);
    const CUresult result = check_target(m);
    if (result) {
        driver_retire(m);
        return result;
    }
    m->next = driver.modules;
    driver.modules = *out = m;
    return CUDA_SUCCESS;
}

API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options, void **values)
{
    BEGIN(true)
    result = load(module, image);
    write_logs(n, options, values, result ? driver.report.text : "");
    return driver_unlock(result);
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

API CUresult cuModuleUnload(CUmodule module)
{
    BEGIN(true)
    struct module **m = &driver.modules;
    while (*m && *m != module)
        m = &(*m)->next;
    if (*m) {
        *m = module->next;
        driver_retire(module);
    } else {
        result = driver_error(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload: not a module");
    }
    return driver_unlock(result);
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    BEGIN(true)
    struct kernel *k = module->kernels;
    while (k && strcmp(k->name, name))
        k = k->next;
    *function = k;
    if (!k)
        result = driver_error(CUDA_ERROR_NOT_FOUND, "the module has no kernel '%s'", name);
    return driver_unlock(result);
}

API CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name)
{
    BEGIN(true)
    u64 address = 0, size = 0;
    if (!module_find_global(module, name, &address, &size))
        result = driver_error(CUDA_ERROR_NOT_FOUND, "the module has no variable '%s'", name);
    if (pointer)
        *pointer = address;
    if (bytes)
        *bytes = size;
    return driver_unlock(result);
}

/* -- functions ------------------------------------------------------------------------------- */

static struct kernel *find_kernel(CUfunction function, CUresult *result)
{
    for (const struct module *m = driver.modules; m; m = m->next)
        for (struct kernel *k = m->kernels; k; k = k->next)
            if (k == function)
                return k;
    *result = driver_error(CUDA_ERROR_INVALID_HANDLE, "not a function, or its module was unloaded");
    return NULL;
}

static u32 max_threads(const struct kernel *k)
{
    return k->max_threads ? k->max_threads : 1024;
}

/* The PTX does not tell; what ptxas would at most use under the kernel's own limits. */
static u32 register_count(const struct kernel *k)
{
    const u32 fits = 65536 / max_threads(k) & ~7u;
    return k->max_regs ? k->max_regs : fits < 64 ? fits : 64;
}

API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    BEGIN(true)
    const struct kernel *k = find_kernel(function, &result);
    const int version = driver.config.cc_major * 10 + driver.config.cc_minor;
    if (!k)
        return driver_unlock(result);
    const int values[] = {
        [FUNC_MAX_THREADS] = (int)max_threads(k),
        [FUNC_SHARED_BYTES] = (int)k->static_smem,
        [FUNC_LOCAL_BYTES] = (int)k->local_bytes,
        [FUNC_NUM_REGS] = (int)register_count(k),
        [FUNC_PTX_VERSION] = (int)k->module->target,
        [FUNC_BINARY_VERSION] = version,
        [FUNC_MAX_DYNAMIC_SHARED] = (int)k->max_dynamic_smem,
        [FUNC_CARVEOUT] = -1,
    };
    if (attribute >= 0 && (size_t)attribute < sizeof values / sizeof *values)
        *value = values[attribute];
    else
        result = driver_error(CUDA_ERROR_INVALID_VALUE, "cuFuncGetAttribute: attribute %d", attribute);
    return driver_unlock(result);
}

API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    BEGIN(true)
    struct kernel *k = find_kernel(function, &result);
    if (!k || attribute == FUNC_CARVEOUT)
        return driver_unlock(result);
    if (attribute != FUNC_MAX_DYNAMIC_SHARED)
        result = driver_error(CUDA_ERROR_INVALID_VALUE, "cuFuncSetAttribute: attribute %d", attribute);
    else if (value < 0 || (size_t)value + k->static_smem > driver.config.smem_optin)
        result = driver_error(CUDA_ERROR_INVALID_VALUE,
                              "%s: %d bytes of dynamic and %u of static shared memory; the device allows %zu", k->name,
                              value, k->static_smem, driver.config.smem_optin);
    else
        k->max_dynamic_smem = (u32)value;
    return driver_unlock(result);
}

/* Without the attribute, 48 KiB together with the static. */
static size_t dynamic_limit(const struct kernel *k)
{
    const size_t plain = k->static_smem < DEFAULT_SHARED ? DEFAULT_SHARED - k->static_smem : 0;
    return k->max_dynamic_smem > plain ? k->max_dynamic_smem : plain;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t smem)
{
    BEGIN(true)
    const struct kernel *k = find_kernel(function, &result);
    if (!k)
        return driver_unlock(result);
    if (threads < 1) {
        result = driver_error(CUDA_ERROR_INVALID_VALUE, "cuOccupancy: %d threads", threads);
        return driver_unlock(result);
    }
    const u32 rounded = ((u32)threads + LANES - 1) & ~(LANES - 1u);
    const size_t shared = smem + k->static_smem + 1024;
    size_t n = 2048 / rounded < 32 ? 2048 / rounded : 32;
    if ((driver.config.smem_optin + 1024) / shared < n)
        n = (driver.config.smem_optin + 1024) / shared;
    if (65536 / (rounded * register_count(k)) < n)
        n = 65536 / (rounded * register_count(k));
    *blocks = smem > dynamic_limit(k) || (u32)threads > max_threads(k) ? 0 : (int)n;
    return driver_unlock(result);
}

/* -- launches -------------------------------------------------------------------------------- */

static CUresult check_shape(const struct kernel *k, const CUlaunchConfig *c)
{
    const u64 threads = (u64)c->block_x * c->block_y * c->block_z;
    const u32 block[3] = {c->block_x, c->block_y, c->block_z};
    const char *name = k->name;
    if (!c->grid_x || !c->grid_y || !c->grid_z || c->grid_x > 0x7fffffff || c->grid_y > 65535 || c->grid_z > 65535)
        return driver_error(CUDA_ERROR_INVALID_VALUE, "[launch] %s: a grid of %u x %u x %u", name, c->grid_x, c->grid_y,
                            c->grid_z);
    if (!threads || threads > 1024 || c->block_z > 64)
        return driver_error(CUDA_ERROR_INVALID_VALUE, "[launch] %s: a block of %u x %u x %u", name, c->block_x,
                            c->block_y, c->block_z);
    if (threads > max_threads(k) || (k->reqntid[0] && memcmp(block, k->reqntid, sizeof block)))
        return driver_error(CUDA_ERROR_INVALID_VALUE,
                            "[launch] %s: a block of %u x %u x %u threads; the kernel is compiled for %s%u", name,
                            c->block_x, c->block_y, c->block_z, k->reqntid[0] ? "" : "at most ", max_threads(k));
    if (c->shared_bytes > dynamic_limit(k))
        return driver_error(CUDA_ERROR_INVALID_VALUE,
                            "[launch] %s: %u bytes of dynamic shared memory; %zu are allowed (cuFuncSetAttribute)",
                            name, c->shared_bytes, dynamic_limit(k));
    return CUDA_SUCCESS;
}

/* The kernel's own wins, and the launch must not say otherwise. */
static CUresult find_cluster(const struct kernel *k, const CUlaunchConfig *c, u32 out[3])
{
    const u32 grid[3] = {c->grid_x, c->grid_y, c->grid_z};
    const bool is_fixed = k->reqnctapercluster[0];
    for (u32 i = 0; i < 3; i++)
        out[i] = is_fixed ? k->reqnctapercluster[i] : 1;
    for (u32 i = 0; i < c->n_attributes; i++) {
        const unsigned *dim = c->attributes[i].value.dim;
        if (c->attributes[i].id != LAUNCH_ATTRIBUTE_CLUSTER)
            continue;
        if (is_fixed && memcmp(out, dim, 3 * sizeof *out))
            return driver_error(CUDA_ERROR_INVALID_VALUE,
                                "[launch] %s: clusters of %u x %u x %u; the kernel is compiled for "
                                "%u x %u x %u",
                                k->name, dim[0], dim[1], dim[2], out[0], out[1], out[2]);
        memcpy(out, dim, 3 * sizeof *out);
    }
    const u64 n = (u64)out[0] * out[1] * out[2];
    if (!n || n > MAX_CLUSTER || (k->max_cluster && n > k->max_cluster))
        return driver_error(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                            "[launch] %s: clusters of %u x %u x %u; %u CTAs are possible", k->name, out[0], out[1],
                            out[2], k->max_cluster ? k->max_cluster : MAX_CLUSTER);
    for (u32 i = 0; i < 3; i++)
        if (grid[i] % out[i])
            return driver_error(CUDA_ERROR_INVALID_VALUE,
                                "[launch] %s: a grid of %u x %u x %u in clusters of %u x %u x %u", k->name, grid[0],
                                grid[1], grid[2], out[0], out[1], out[2]);
    return CUDA_SUCCESS;
}

/* extra: {1, buffer, 2, &size, 0}, in the order of cuda.h's CU_LAUNCH_PARAM_*. */
static CUresult gather_buffer(const struct kernel *k, void **extra, u8 *out)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (; *extra; extra += 2) {
        if ((size_t)*extra == 1)
            buffer = extra[1];
        else if ((size_t)*extra == 2)
            size = *(const size_t *)extra[1];
    }
    if (!buffer || size < k->param_bytes)
        return driver_error(CUDA_ERROR_INVALID_VALUE, "[launch] %s: %zu bytes of parameters, it takes %u", k->name,
                            size, k->param_bytes);
    memcpy(out, buffer, k->param_bytes);
    return CUDA_SUCCESS;
}

static CUresult gather_parameters(const struct kernel *k, void **params, void **extra, u8 *out)
{
    if (!params && extra)
        return gather_buffer(k, extra, out);
    for (u32 i = 0; i < k->n_params; i++) {
        if (!params || !params[i])
            return driver_error(CUDA_ERROR_INVALID_VALUE, "[launch] %s: parameter %u of %u is missing", k->name, i,
                                k->n_params);
        memcpy(out + k->params[i].offset, params[i], k->params[i].bytes);
    }
    return CUDA_SUCCESS;
}

static bool overlaps(const CUlaunchConfig *c)
{
    for (u32 i = 0; i < c->n_attributes; i++)
        if (c->attributes[i].id == LAUNCH_ATTRIBUTE_OVERLAP)
            return c->attributes[i].value.dim[0] != 0; /* an int */
    return false;
}

static CUresult run(const struct kernel *k, const CUlaunchConfig *c, const u32 cluster[3], u8 *params)
{
    const u32 threads = c->block_x * c->block_y * c->block_z;
    const struct launch l = {
        .kernel = k,
        .config = &driver.config,
        .memory = &driver.memory,
        .params = params,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .cluster = {cluster[0], cluster[1], cluster[2]},
        .n_ranks = cluster[0] * cluster[1] * cluster[2],
        .n_threads = threads,
        .n_warps = (threads + LANES - 1) / LANES,
        .dynamic_smem = c->shared_bytes,
        .n_ctas = (u64)c->grid_x * c->grid_y * c->grid_z,
        .serial = driver.n_launches++,
        .overlaps = overlaps(c),
    };
    struct report report = {0};
    memset(&driver.last, 0, sizeof driver.last);
    launch_run(&l, &report, &driver.last);
    counters_add(&driver.total, &driver.last);
    if (!report.is_set)
        return CUDA_SUCCESS;
    const CUresult result = report_result(report.kind);
    driver_error(result, "%s", report.text);
    driver.sticky = result;
    return result;
}

static CUresult launch(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    BEGIN(true)
    const struct kernel *k = find_kernel(function, &result);
    if (!k)
        return driver_unlock(result);
    u32 cluster[3];
    u8 *buffer = calloc(k->param_bytes + 1, 1);
    if (!buffer)
        result = driver_error(CUDA_ERROR_OUT_OF_MEMORY, "[launch] out of host memory");
    if (!result)
        result = check_shape(k, config);
    if (!result)
        result = find_cluster(k, config, cluster);
    if (!result)
        result = gather_parameters(k, params, extra, buffer);
    if (!result)
        result = run(k, config, cluster, buffer);
    free(buffer);
    return driver_unlock(result);
}

API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
                            void **extra)
{
    const CUlaunchConfig config = {.grid_x = grid_x,
                                   .grid_y = grid_y,
                                   .grid_z = grid_z,
                                   .block_x = block_x,
                                   .block_y = block_y,
                                   .block_z = block_z,
                                   .shared_bytes = shared_bytes,
                                   .stream = stream};
    return launch(&config, function, params, extra);
}

API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    return launch(config, function, params, extra);
}
