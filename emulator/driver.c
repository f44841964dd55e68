/* driver.c - the cu* functions for devices, contexts, memory, streams and events.
 *
 * Everything happens at once, so streams and events keep nothing but the time. Every failure leaves
 * a report that says more than its code; cuGetErrorString gives it. */
#include "driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEVICE_BYTES (24ull << 30)

#define DEFAULT_CONFIG                                                                                                 \
    {                                                                                                                  \
        .struct_size = sizeof(struct tgemu_config), .seed = 1, .cc_major = 8, .cc_minor = 0, .smem_optin = 232448,     \
        .sm_count = 4, .threads = 0, .step_limit = 1ull << 32, .checks = TGEMU_CHECK_ALL                               \
    }

struct driver driver = {.config = DEFAULT_CONFIG};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { MAX_CONTEXT_STACK = 32 };
static _Thread_local struct context *context_stack[MAX_CONTEXT_STACK];
static _Thread_local u32 context_depth;

void driver_lock(void)
{
    pthread_mutex_lock(&lock);
}

CUresult driver_unlock(CUresult result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

/* Fails with a report of its own. An execution fault's report is not replaced: it is the reason for
 * what follows. */
CUresult driver_error(CUresult result, const char *format, ...)
{
    va_list args;
    if (driver.sticky)
        return result;
    va_start(args, format);
    vsnprintf(driver.report.text, sizeof driver.report.text, format, args);
    va_end(args);
    driver.report_result = result;
    return result;
}

static struct context *current_context(void)
{
    return context_depth ? context_stack[context_depth - 1] : NULL;
}

CUresult driver_check(bool needs_context)
{
    if (!driver.is_initialized)
        return driver_error(CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called");
    if (needs_context && !current_context())
        return driver_error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    if (needs_context && !driver.context.retained)
        return driver_error(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context has been released");
    return needs_context ? driver.sticky : CUDA_SUCCESS;
}

void driver_forget_errors(void)
{
    driver.sticky = CUDA_SUCCESS;
    driver.report_result = CUDA_SUCCESS;
    driver.report.text[0] = 0;
}

/* What the end of a context takes with it. */
void driver_clear(void)
{
    while (driver.modules) {
        struct module *const m = driver.modules;
        driver.modules = m->next;
        driver_retire(m);
    }
    memory_clear(&driver.memory);
    driver_forget_errors();
}

/* -- errors ---------------------------------------------------------------------------------- */

API CUresult cuGetErrorName(CUresult error, const char **name)
{
    switch (error) {
#define X(id, value, text)                                                                                             \
    case value:                                                                                                        \
        *name = #id;                                                                                                   \
        return CUDA_SUCCESS;
        CUDA_RESULTS(X)
#undef X
    default:
        *name = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static const char *plain_text(CUresult error)
{
    switch (error) {
#define X(id, value, text)                                                                                             \
    case value:                                                                                                        \
        return text;
        CUDA_RESULTS(X)
#undef X
    default:
        return NULL;
    }
}

API CUresult cuGetErrorString(CUresult error, const char **text)
{
    driver_lock();
    const bool has_report = error && error == driver.report_result && driver.report.text[0];
    *text = has_report ? driver.report.text : plain_text(error);
    return driver_unlock(*text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* -- the emulator's own ---------------------------------------------------------------------- */

API void tgemu_get_config(struct tgemu_config *config)
{
    driver_lock();
    *config = driver.config;
    driver_unlock(CUDA_SUCCESS);
}

API int tgemu_configure(const struct tgemu_config *config)
{
    struct tgemu_config c = DEFAULT_CONFIG;
    if (!config || config->struct_size < sizeof config->struct_size)
        return -1;
    driver_lock();
    c = driver.config;
    memcpy(&c, config, config->struct_size < sizeof c ? config->struct_size : sizeof c);
    c.struct_size = sizeof c;
    const bool ok = c.cc_major >= 8 && c.cc_minor >= 0 && c.cc_minor < 10 && c.smem_optin >= DEFAULT_SHARED &&
                    c.smem_optin <= 1 << 20 && c.sm_count > 0 && c.threads >= 0 && c.threads <= 256 && c.step_limit;
    if (ok) {
        driver.config = c;
        driver.n_launches = 0;
    }
    driver_unlock(CUDA_SUCCESS);
    return ok ? 0 : -1;
}

static void copy_counters(struct tgemu_counters *out, const struct tgemu_counters *from)
{
    const size_t size = out->struct_size < sizeof *out ? out->struct_size : sizeof *out;
    driver_lock();
    if (size > sizeof out->struct_size)
        memcpy((char *)out + sizeof out->struct_size, (const char *)from + sizeof out->struct_size,
               size - sizeof out->struct_size);
    driver_unlock(CUDA_SUCCESS);
}

API void tgemu_last_counters(struct tgemu_counters *counters)
{
    copy_counters(counters, &driver.last);
}

API void tgemu_counters(struct tgemu_counters *counters)
{
    copy_counters(counters, &driver.total);
}

API const char *tgemu_last_report(void)
{
    return driver.report.text;
}

API void tgemu_reset(void)
{
    driver_lock();
    driver_clear();
    driver.n_launches = 0;
    memset(&driver.last, 0, sizeof driver.last);
    memset(&driver.total, 0, sizeof driver.total);
    driver_unlock(CUDA_SUCCESS);
}

/* -- the device ------------------------------------------------------------------------------ */

API CUresult cuInit(unsigned flags)
{
    (void)flags;
    driver_lock();
    driver.is_initialized = true;
    return driver_unlock(CUDA_SUCCESS);
}

API CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count)
{
    BEGIN(false)
    *count = 1;
    return driver_unlock(result);
}

static CUresult check_device(CUdevice device)
{
    return device == 0 ? CUDA_SUCCESS : driver_error(CUDA_ERROR_INVALID_DEVICE, "there is no device %d", device);
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    BEGIN(false)
    result = check_device(ordinal);
    *device = 0;
    return driver_unlock(result);
}

API CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    BEGIN(false)
    result = check_device(device);
    if (!result && length > 0)
        snprintf(name, (size_t)length, "Tegula emulator");
    return driver_unlock(result);
}

API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    BEGIN(false)
    result = check_device(device);
    memcpy(uuid->bytes, "tegula emulator", 16);
    return driver_unlock(result);
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    BEGIN(false)
    result = check_device(device);
    *bytes = DEVICE_BYTES;
    return driver_unlock(result);
}

static int device_attribute(int attribute)
{
    static const struct {
        int id, value;
    } constants[] = {
        {1, 1024},           /* MAX_THREADS_PER_BLOCK */
        {2, 1024},           /* MAX_BLOCK_DIM_X */
        {3, 1024},           /* MAX_BLOCK_DIM_Y */
        {4, 64},             /* MAX_BLOCK_DIM_Z */
        {5, 0x7fffffff},     /* MAX_GRID_DIM_X */
        {6, 65535},          /* MAX_GRID_DIM_Y */
        {7, 65535},          /* MAX_GRID_DIM_Z */
        {8, DEFAULT_SHARED}, /* MAX_SHARED_MEMORY_PER_BLOCK */
        {9, 65536},          /* TOTAL_CONSTANT_MEMORY */
        {10, 32},            /* WARP_SIZE */
        {11, 0x7fffffff},    /* MAX_PITCH */
        {12, 65536},         /* MAX_REGISTERS_PER_BLOCK */
        {13, 1000000},       /* CLOCK_RATE, kHz */
        {14, 512},           /* TEXTURE_ALIGNMENT */
        {31, 1},             /* CONCURRENT_KERNELS */
        {36, 0},             /* MEMORY_CLOCK_RATE, kHz: an emulator has no speed to reckon with */
        {37, 0},             /* GLOBAL_MEMORY_BUS_WIDTH, bits */
        {38, 4 << 20},       /* L2_CACHE_SIZE */
        {39, 2048},          /* MAX_THREADS_PER_MULTIPROCESSOR */
        {41, 1},             /* UNIFIED_ADDRESSING */
        {82, 65536},         /* MAX_REGISTERS_PER_MULTIPROCESSOR */
        {106, 32},           /* MAX_BLOCKS_PER_MULTIPROCESSOR */
        {111, 1024},         /* RESERVED_SHARED_MEMORY_PER_BLOCK */
    };
    switch (attribute) {
    case 16:
        return driver.config.sm_count;
    case 75:
        return driver.config.cc_major;
    case 76:
        return driver.config.cc_minor;
    case 81: /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
        return (int)driver.config.smem_optin + 1024;
    case 97: /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
        return (int)driver.config.smem_optin;
    default:
        for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
            if (constants[i].id == attribute)
                return constants[i].value;
        return 0;
    }
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    BEGIN(false)
    result = check_device(device);
    *value = device_attribute(attribute);
    return driver_unlock(result);
}

/* -- contexts -------------------------------------------------------------------------------- */

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    BEGIN(false)
    result = check_device(device);
    if (!result) {
        driver.context.retained++;
        *context = &driver.context;
    }
    return driver_unlock(result);
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    BEGIN(false)
    result = check_device(device);
    if (!result && !driver.context.retained)
        result = driver_error(CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained");
    if (!result && !--driver.context.retained)
        driver_clear();
    return driver_unlock(result);
}

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    BEGIN(false)
    result = check_device(device);
    if (!result)
        driver_clear();
    return driver_unlock(result);
}

API CUresult cuCtxSetCurrent(CUcontext context)
{
    BEGIN(false)
    if (context && context != &driver.context)
        result = driver_error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxSetCurrent: not a context");
    else if (context_depth)
        context_stack[context_depth - 1] = context;
    else
        context_stack[context_depth++] = context;
    return driver_unlock(result);
}

API CUresult cuCtxGetCurrent(CUcontext *context)
{
    BEGIN(false)
    *context = current_context();
    return driver_unlock(result);
}

API CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    BEGIN(false)
    if (context != &driver.context || context_depth == MAX_CONTEXT_STACK)
        result = driver_error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPushCurrent: not a context, or too many pushed");
    else
        context_stack[context_depth++] = context;
    return driver_unlock(result);
}

API CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    BEGIN(false)
    if (!context_depth)
        result = driver_error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPopCurrent: no context is current");
    else if (context)
        *context = context_stack[--context_depth];
    else
        context_depth--;
    return driver_unlock(result);
}

API CUresult cuCtxGetDevice(CUdevice *device)
{
    BEGIN(true)
    *device = 0;
    return driver_unlock(result);
}

API CUresult cuCtxSynchronize(void)
{
    BEGIN(true)
    return driver_unlock(result);
}

/* -- memory ---------------------------------------------------------------------------------- */

API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    BEGIN(true)
    struct allocation *a = NULL;
    if (!bytes)
        result = driver_error(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc: zero bytes");
    else if (bytes > DEVICE_BYTES - driver.memory.used || !(a = memory_alloc(&driver.memory, bytes)))
        result = driver_error(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc: %zu bytes; %llu of %llu are in use", bytes,
                              (unsigned long long)driver.memory.used, DEVICE_BYTES);
    if (a)
        *pointer = a->base;
    return driver_unlock(result);
}

API CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    BEGIN(true)
    struct allocation *a = pointer ? memory_find(&driver.memory, pointer, 1) : NULL;
    if (a && a->base == pointer)
        memory_release(&driver.memory, a);
    else if (pointer)
        result = driver_error(CUDA_ERROR_INVALID_VALUE, "cuMemFree: 0x%llx is not the start of an allocation", pointer);
    return driver_unlock(result);
}

API CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    BEGIN(true)
    *total = DEVICE_BYTES;
    *left = DEVICE_BYTES - driver.memory.used;
    return driver_unlock(result);
}

static struct allocation *range(const char *what, CUdeviceptr pointer, size_t bytes, CUresult *result)
{
    struct allocation *a = memory_find(&driver.memory, pointer, bytes);
    if (!a)
        *result = driver_error(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes at 0x%llx are not within one allocation", what,
                               bytes, pointer);
    return a;
}

API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    BEGIN(true)
    struct allocation *a = bytes ? range("cuMemcpyHtoD", to, bytes, &result) : NULL;
    if (a) {
        memcpy(a->data + (to - a->base), from, bytes);
        memory_mark(a, to, bytes);
    }
    return driver_unlock(result);
}

API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    BEGIN(true)
    const struct allocation *a = bytes ? range("cuMemcpyDtoH", from, bytes, &result) : NULL;
    if (a)
        memcpy(to, a->data + (from - a->base), bytes);
    return driver_unlock(result);
}

API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    BEGIN(true)
    struct allocation *d = bytes ? range("cuMemcpyDtoD", to, bytes, &result) : NULL;
    const struct allocation *s = d ? range("cuMemcpyDtoD", from, bytes, &result) : NULL;
    if (s) {
        memmove(d->data + (to - d->base), s->data + (from - s->base), bytes);
        if (!s->written)
            memory_mark(d, to, bytes);
        else if (d->written)
            memmove(d->written + (to - d->base), s->written + (from - s->base), bytes);
    }
    return driver_unlock(result);
}

API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}

API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyDtoH_v2(to, from, bytes);
}

API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyDtoD_v2(to, from, bytes);
}

static CUresult fill(CUdeviceptr to, const void *value, size_t size, size_t count)
{
    BEGIN(true)
    struct allocation *a = count ? range("cuMemset", to, size * count, &result) : NULL;
    if (a) {
        for (size_t i = 0; i < count; i++)
            memcpy(a->data + (to - a->base) + i * size, value, size);
        memory_mark(a, to, size * count);
    }
    return driver_unlock(result);
}

API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    return fill(to, &value, 1, count);
}

API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    return fill(to, &value, 2, count);
}

API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count)
{
    return fill(to, &value, 4, count);
}

API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    (void)stream;
    return fill(to, &value, 1, count);
}

API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    (void)stream;
    return fill(to, &value, 2, count);
}

API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    (void)stream;
    return fill(to, &value, 4, count);
}

enum {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE,
    POINTER_DEVICE,
    POINTER_HOST,
    POINTER_IS_MANAGED = 8,
    POINTER_ORDINAL,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE
};

API CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr pointer)
{
    BEGIN(true)
    const struct allocation *a = memory_find(&driver.memory, pointer, 1);
    if (!a)
        result = driver_error(CUDA_ERROR_INVALID_VALUE, "cuPointerGetAttribute: 0x%llx is no device memory", pointer);
    else if (attribute == POINTER_CONTEXT)
        memcpy(data, &(CUcontext){&driver.context}, sizeof(CUcontext));
    else if (attribute == POINTER_MEMORY_TYPE)
        memcpy(data, &(unsigned){2}, sizeof(unsigned)); /* CU_MEMORYTYPE_DEVICE */
    else if (attribute == POINTER_DEVICE)
        memcpy(data, &pointer, sizeof pointer);
    else if (attribute == POINTER_IS_MANAGED || attribute == POINTER_ORDINAL)
        memset(data, 0, sizeof(int));
    else if (attribute == POINTER_RANGE_START)
        memcpy(data, &a->base, sizeof a->base);
    else if (attribute == POINTER_RANGE_SIZE)
        memcpy(data, &(size_t){a->bytes}, sizeof(size_t));
    else
        result = driver_error(CUDA_ERROR_INVALID_VALUE, "cuPointerGetAttribute: attribute %d", attribute);
    return driver_unlock(result);
}

/* -- streams and events ---------------------------------------------------------------------- */

struct stream {
    unsigned flags;
};

struct event {
    struct timespec time;
    bool is_recorded;
};

API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    BEGIN(true)
    *stream = calloc(1, sizeof **stream);
    if (*stream)
        (*stream)->flags = flags;
    else
        result = driver_error(CUDA_ERROR_OUT_OF_MEMORY, "cuStreamCreate: out of host memory");
    return driver_unlock(result);
}

API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    (void)priority;
    return cuStreamCreate(stream, flags);
}

API CUresult cuStreamDestroy_v2(CUstream stream)
{
    free(stream);
    return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    BEGIN(true)
    return driver_unlock(result);
}

API CUresult cuStreamQuery(CUstream stream)
{
    return cuStreamSynchronize(stream);
}

API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)event;
    (void)flags;
    return cuStreamSynchronize(stream);
}

API CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    (void)stream;
    BEGIN(true)
    *status = 0;
    return driver_unlock(result);
}

API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    BEGIN(true)
    *event = calloc(1, sizeof **event);
    if (!*event)
        result = driver_error(CUDA_ERROR_OUT_OF_MEMORY, "cuEventCreate: out of host memory");
    return driver_unlock(result);
}

API CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

API CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    BEGIN(true)
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    event->is_recorded = true;
    return driver_unlock(result);
}

API CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    BEGIN(true)
    return driver_unlock(result);
}

API CUresult cuEventQuery(CUevent event)
{
    return cuEventSynchronize(event);
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to)
{
    BEGIN(true)
    if (!from->is_recorded || !to->is_recorded)
        result = driver_error(CUDA_ERROR_INVALID_HANDLE, "cuEventElapsedTime: an event was not recorded");
    else
        *milliseconds = (float)((double)(to->time.tv_sec - from->time.tv_sec) * 1e3 +
                                (double)(to->time.tv_nsec - from->time.tv_nsec) * 1e-6);
    return driver_unlock(result);
}

API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to)
{
    return cuEventElapsedTime(milliseconds, from, to);
}
