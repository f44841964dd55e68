/* tests/fake_cuda.c - a driver library that records what it is asked and fails when told to.
 *
 * Device memory is host memory and kernels do nothing. Built a second time with OLD_DRIVER it lacks
 * a function. */
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
    size_t used = strlen(fake_state.log);
    snprintf(fake_state.log + used, sizeof fake_state.log - used, "%s ", name);
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
#define API(name, parameters)                                                                      \
    EXPORT int name parameters;                                                                    \
    int name parameters

API(cuInit, (unsigned int flags))
{
    UNUSED(flags);
    return record("cuInit");
}

API(cuDriverGetVersion, (int *version))
{
    *version = 13000;
    return 0;
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
    return 0;
}

API(cuDeviceGetName, (char *name, int capacity, int device))
{
    UNUSED(device);
    snprintf(name, (size_t)capacity, "Fake GPU");
    return 0;
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
    return 0;
}

API(cuDevicePrimaryCtxRetain, (void **context, int device))
{
    UNUSED(device);
    *context = &fake_state;
    return record("cuDevicePrimaryCtxRetain");
}

API(cuDevicePrimaryCtxRelease_v2, (int device))
{
    UNUSED(device);
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
API(cuModuleLoadDataEx,
    (void **module, const void *image, unsigned int n, int *options, void **values))
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

API(cuFuncLoad, (void *function))
{
    UNUSED(function);
    return record("cuFuncLoad");
}

#ifndef OLD_DRIVER
API(cuLaunchKernel, (void *function, unsigned int gx, unsigned int gy, unsigned int gz,
                     unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                     void *stream, void **parameters, void **extra))
{
    struct fake_state *s = &fake_state;
    UNUSED(function);
    UNUSED(extra);
    memcpy(s->grid, (unsigned int[]){gx, gy, gz}, sizeof s->grid);
    memcpy(s->block, (unsigned int[]){bx, by, bz}, sizeof s->block);
    s->shared = shared;
    s->stream = stream;
    for (int i = 0; i < s->n_values; i++) {
        s->values[i] = 0;
        memcpy(&s->values[i], parameters[i], s->value_bytes[i]);
    }
    return record("cuLaunchKernel");
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
    *event = &fake_state.n_events;
    return result;
}

API(cuEventDestroy_v2, (void *event))
{
    UNUSED(event);
    fake_state.n_events--;
    return 0;
}

API(cuEventRecord, (void *event, void *stream))
{
    UNUSED(event);
    UNUSED(stream);
    return record("cuEventRecord");
}

API(cuEventElapsedTime, (float *milliseconds, void *from, void *to))
{
    static int n;
    UNUSED(from);
    UNUSED(to);
    *milliseconds = (float)(++n * 7 % 5); /* out of order */
    return record("cuEventElapsedTime");
}
