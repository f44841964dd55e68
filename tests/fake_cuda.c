/* tests/fake_cuda.c - a driver library that records what it is asked and fails when told to, or does nothing at once.
 *
 * Device memory is host memory and kernels do nothing. Built again with OLD_DRIVER it lacks a
 * function, with CUDA_11 those that came later. */
#include "tests/fake_cuda.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT    __attribute__((visibility("default")))
#define UNUSED(x) ((void)(x))

extern EXPORT struct fake_state fake_state;
struct fake_state fake_state;

/* Records a call and yields its result. */
static int record(const char *name)
{
    if (fake_state.is_idle)
        return 0;
    size_t used = strlen(fake_state.log);
    snprintf(fake_state.log + used, sizeof fake_state.log - used, "%s ", name);
    if (++fake_state.n_calls == fake_state.fail_call) {
        fake_state.failed = name;
        return fake_state.result;
    }
    if (!fake_state.failing || strcmp(fake_state.failing, name) != 0 || fake_state.fail_after-- > 0)
        return 0;
    return fake_state.result;
}

static void record_piece(uint64_t to, uint64_t from, size_t bytes)
{
    const uint64_t parts[] = {to, from, bytes};
    for (int i = 0; i < 3; i++)
        fake_state.pieces = (fake_state.pieces ^ parts[i]) * 0x100000001b3; /* as FNV does */
}

/* The definition of an exported function, after its prototype. */
#define API(name, parameters)                                                                                          \
    EXPORT int name parameters;                                                                                        \
    int name parameters

API(cuInit, (unsigned int flags))
{
    UNUSED(flags);
    return record("cuInit");
}

API(cuDriverGetVersion, (int *version))
{
    *version = 13000;
    return record("cuDriverGetVersion");
}

API(cuGetErrorName, (int result, const char **text))
{
    if (result != 700 && result != 2 && result != 209)
        return 1;
    *text = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                            : "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
}

API(cuGetErrorString, (int result, const char **text))
{
    UNUSED(result);
    *text = fake_state.error_text;
    return 0;
}

API(cuDeviceGetCount, (int *count))
{
    *count = 1;
    return record("cuDeviceGetCount");
}

API(cuDeviceGet, (int *device, int ordinal))
{
    *device = ordinal;
    return record("cuDeviceGet");
}

API(cuDeviceGetName, (char *name, int capacity, int device))
{
    UNUSED(device);
    snprintf(name, (size_t)capacity, "Fake GPU");
    return record("cuDeviceGetName");
}

API(cuDeviceGetAttribute, (int *value, int attribute, int device))
{
    UNUSED(device);
    const int known[][2] = {
        {1, fake_state.max_threads},   {75, fake_state.cc_major},
        {76, fake_state.cc_minor},     {16, 132},
        {97, fake_state.shared_optin}, {38, 50 << 20},
    };
    *value = 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i][0] == attribute)
            *value = known[i][1];
    return record("cuDeviceGetAttribute");
}

API(cuDeviceTotalMem_v2, (size_t * bytes, int device))
{
    UNUSED(device);
    *bytes = (size_t)141 << 30;
    return record("cuDeviceTotalMem");
}

API(cuDevicePrimaryCtxRetain, (void **context, int device))
{
    UNUSED(device);
    *context = &fake_state;
    const int result = record("cuDevicePrimaryCtxRetain");
    fake_state.n_contexts += result == 0;
    return result;
}

API(cuDevicePrimaryCtxRelease_v2, (int device))
{
    UNUSED(device);
    fake_state.n_contexts--;
    return record("cuDevicePrimaryCtxRelease");
}

API(cuCtxSetCurrent, (void *context))
{
    UNUSED(context);
    return record("cuCtxSetCurrent");
}

API(cuCtxGetDevice, (int *device))
{
    *device = 0;
    return record("cuCtxGetDevice");
}

API(cuCtxSynchronize, (void))
{
    return record("cuCtxSynchronize");
}

/* A cubin (ELF) and PTX fail separately: as "cubin" and as the function's name. */
API(cuModuleLoadDataEx, (void **module, const void *image, unsigned int n, int *options, void **values))
{
    bool is_cubin = memcmp(image, "\177ELF", 4) == 0;
    int result = record(is_cubin ? "cubin" : "cuModuleLoadDataEx");
    if (result != 0) {
        if (n == 2 && options[0] == 5 && options[1] == 6 && fake_state.jit_log)
            snprintf(values[0], (size_t)(uintptr_t)values[1], "%s", fake_state.jit_log);
        return result;
    }
    fake_state.image = image;
    *module = &fake_state.n_modules;
    fake_state.n_modules++;
    return 0;
}

API(cuModuleLoadData, (void **module, const void *image))
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

API(cuModuleUnload, (void *module))
{
    UNUSED(module);
    fake_state.n_modules--;
    return record("cuModuleUnload");
}

API(cuModuleGetFunction, (void **function, void *module, const char *name))
{
    UNUSED(module);
    UNUSED(name);
    *function = &fake_state.grid;
    return record("cuModuleGetFunction");
}

API(cuFuncGetAttribute, (int *value, int attribute, void *function))
{
    UNUSED(attribute);
    UNUSED(function);
    *value = fake_state.function_threads;
    return record("cuFuncGetAttribute");
}

API(cuFuncSetAttribute, (void *function, int attribute, int value))
{
    UNUSED(function);
    if (attribute == 8)
        fake_state.dynamic_shared = value;
    return record("cuFuncSetAttribute");
}

#ifndef CUDA_11
API(cuFuncLoad, (void *function))
{
    UNUSED(function);
    return record("cuFuncLoad");
}
#endif

static uint64_t hash(const void *data, size_t n)
{
    uint64_t value = 0xcbf29ce484222325; /* FNV */
    for (size_t i = 0; i < n; i++)
        value = (value ^ ((const uint8_t *)data)[i]) * 0x100000001b3;
    return value;
}

static void take_values(void **parameters)
{
    struct fake_state *s = &fake_state;
    for (int i = 0; i < s->n_values; i++) {
        s->values[i] = 0;
        if (s->value_bytes[i] != FAKE_MAP_BYTES)
            memcpy(&s->values[i], parameters[i], s->value_bytes[i]);
        else if ((uintptr_t)parameters[i] % 64 == 0)
            s->values[i] = hash(parameters[i], FAKE_MAP_BYTES);
    }
    record_piece(s->grid[0], (uint64_t)s->overlap, (size_t)hash(s->values, (size_t)s->n_values * sizeof s->values[0]));
}

#ifndef OLD_DRIVER
API(cuLaunchKernel,
    (void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
     unsigned int bz, unsigned int shared, void *stream, void **parameters, void **extra))
{
    struct fake_state *s = &fake_state;
    UNUSED(function);
    UNUSED(extra);
    if (s->is_idle)
        return 0;
    memcpy(s->grid, (unsigned int[]){gx, gy, gz}, sizeof s->grid);
    memcpy(s->block, (unsigned int[]){bx, by, bz}, sizeof s->block);
    memset(s->cluster, 0, sizeof s->cluster);
    s->overlap = 0;
    s->shared = shared;
    s->stream = stream;
    s->clock += gx * gy * gz;
    take_values(parameters);
    return record("cuLaunchKernel");
}
#endif

#ifndef CUDA_11
struct launch_config { /* CUlaunchConfig of cuda.h */
    unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
    void *stream;
    struct {
        int id;
        char padding[4];
        union {
            unsigned int dim[3];
            int flag;
            char padding[64];
        } value;
    } * attributes;
    unsigned int n_attributes;
};

API(cuLaunchKernelEx, (const struct launch_config *c, void *function, void **parameters, void **extra))
{
    struct fake_state *s = &fake_state;
    UNUSED(function);
    UNUSED(extra);
    if (s->is_idle)
        return 0;
    memcpy(s->grid, (unsigned int[]){c->grid_x, c->grid_y, c->grid_z}, sizeof s->grid);
    memcpy(s->block, (unsigned int[]){c->block_x, c->block_y, c->block_z}, sizeof s->block);
    memset(s->cluster, 0, sizeof s->cluster);
    s->overlap = 0;
    s->shared = c->shared;
    s->stream = c->stream;
    for (unsigned int i = 0; i < c->n_attributes; i++) {
        if (c->attributes[i].id == 4)
            memcpy(s->cluster, c->attributes[i].value.dim, sizeof s->cluster);
        else if (c->attributes[i].id == 6)
            s->overlap = c->attributes[i].value.flag;
        else
            return 1;
    }
    take_values(parameters);
    return record("cuLaunchKernelEx");
}

/* The rules of the driver's manual. */
static bool can_encode(const struct fake_map *m, const void *map)
{
    const unsigned int bytes = m->type == 6 || m->type == 9 ? 2 : m->type == 7 ? 4 : 0;
    const unsigned int span = bytes * m->box[0];
    bool ok = (uintptr_t)map % 64 == 0 && bytes != 0 && m->rank == 5 && m->interleave == 0 && m->address != 0 &&
              m->address % 16 == 0 && span % 16 == 0 && (m->swizzle == 0 || span <= 16u << m->swizzle) &&
              m->swizzle <= 3 && m->fill == 0;
    for (int i = 0; i < 5; i++)
        ok = ok && m->extents[i] >= 1 && m->extents[i] <= UINT64_C(1) << 32 && m->box[i] >= 1 && m->box[i] <= 256 &&
             m->element_strides[i] == 1;
    for (int i = 0; i < 4; i++)
        ok = ok && m->strides[i] % 16 == 0 && m->strides[i] < UINT64_C(1) << 40;
    return ok;
}

API(cuTensorMapEncodeTiled, (void *map, int type, unsigned int rank, void *address, const uint64_t *extents,
                             const uint64_t *strides, const unsigned int *box, const unsigned int *element_strides,
                             int interleave, int swizzle, int l2_promotion, int fill))
{
    if (fake_state.is_idle)
        return 0;
    struct fake_map *m = &fake_state.maps[fake_state.n_maps++ % FAKE_MAX_MAPS];
    *m = (struct fake_map){.type = type,
                           .interleave = interleave,
                           .swizzle = swizzle,
                           .l2_promotion = l2_promotion,
                           .fill = fill,
                           .rank = rank,
                           .address = (uintptr_t)address};
    memcpy(m->box, box, sizeof m->box);
    memcpy(m->element_strides, element_strides, sizeof m->element_strides);
    memcpy(m->extents, extents, sizeof m->extents);
    memcpy(m->strides, strides, sizeof m->strides);
    if (!can_encode(m, map))
        return 1;
    memset(map, 0, FAKE_MAP_BYTES);
    const uint64_t content = hash(m, sizeof *m);
    memcpy((char *)map + FAKE_MAP_BYTES - sizeof content, &content, sizeof content);
    m->value = hash(map, FAKE_MAP_BYTES);
    return record("cuTensorMapEncodeTiled");
}
#endif

API(cuMemAlloc_v2, (uint64_t * address, size_t bytes))
{
    int result = record("cuMemAlloc");
    void *memory = result ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
    *address = (uint64_t)(uintptr_t)memory;
    fake_state.n_allocations += memory != NULL;
    return result;
}

API(cuMemFree_v2, (uint64_t address))
{
    free((void *)(uintptr_t)address);
    fake_state.n_allocations--;
    return record("cuMemFree");
}

API(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return record("cuMemcpyHtoD");
}

API(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return record("cuMemcpyDtoH");
}

API(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))
{
    fake_state.stream = stream;
    record_piece(to, from, bytes);
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return record("cuMemcpyDtoDAsync");
}

API(cuMemsetD8_v2, (uint64_t to, unsigned char value, size_t bytes))
{
    memset((void *)(uintptr_t)to, value, bytes);
    return record("cuMemsetD8");
}

API(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t bytes, void *stream))
{
    fake_state.stream = stream;
    record_piece(to, value, bytes);
    memset((void *)(uintptr_t)to, value, bytes);
    return record("cuMemsetD8Async");
}

API(cuEventCreate, (void **event, unsigned int flags))
{
    UNUSED(flags);
    int result = record("cuEventCreate");
    fake_state.n_events += result == 0;
    *event = result == 0 ? calloc(1, sizeof fake_state.clock) : NULL;
    return result;
}

API(cuEventDestroy_v2, (void *event))
{
    free(event);
    fake_state.n_events--;
    return record("cuEventDestroy");
}

API(cuEventRecord, (void *event, void *stream))
{
    UNUSED(stream);
    *(unsigned int *)event = fake_state.clock;
    return record("cuEventRecord");
}

API(cuEventElapsedTime, (float *milliseconds, void *from, void *to))
{
    static int n;
    const unsigned int blocks = *(unsigned int *)to - *(unsigned int *)from;
    *milliseconds = (float)blocks + (float)(++n * 7 % 5) / 8; /* out of order */
    return record("cuEventElapsedTime");
}
