/* runtime/driver.c - open the driver library by path, resolve its functions, name its errors. */
#include "runtime/internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *symbol;
    size_t offset; /* of the function pointer in struct tg_driver */
    bool is_required;
};

static const struct entry entries[] = {
#define REQUIRED(field, symbol, parameters) {symbol, offsetof(struct tg_driver, field), true},
#define OPTIONAL(field, symbol, parameters) {symbol, offsetof(struct tg_driver, field), false},
#include "runtime/cuda_api.def"
#undef REQUIRED
#undef OPTIONAL
};

static tg_status resolve(tg_driver *driver, const char *path, const tg_sink *sink)
{
    tg_status status = TG_OK;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *address = dlsym(driver->library, entries[i].symbol);
        /* ISO C has no cast from void * to a function pointer; POSIX gives them one representation.
         */
        memcpy((char *)driver + entries[i].offset, &address, sizeof address);
        if (!address && entries[i].is_required)
            status = tg_fail(sink, TG_E_NO_DRIVER, "TG0802",
                             "the driver is too old (CUDA 11.4 is needed) or this is no CUDA driver",
                             "%s: expected the function %s, found none", path, entries[i].symbol);
    }
    return status;
}

tg_status tg_driver_open(const char *path, tg_driver **driver, const tg_sink *sink)
{
    if (!driver)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_driver_open: driver is NULL");
    *driver = NULL;
    const char *library = path ? path : "libcuda.so.1";
    tg_driver *opened = calloc(1, sizeof *opened);
    if (!opened)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "%s: no memory", library);
    opened->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    tg_status status = TG_OK;
    if (!opened->library)
        status = tg_fail(sink, TG_E_NO_DRIVER, "TG0801", "install the NVIDIA driver, or name the emulator's library",
                         "the driver library cannot be opened: %s", dlerror());
    if (status == TG_OK)
        status = resolve(opened, library, sink);
    if (status == TG_OK)
        status = DRIVER_CALL(opened, sink, cuInit, 0);
    if (status != TG_OK) {
        tg_driver_close(opened);
        return status;
    }
    *driver = opened;
    return TG_OK;
}

void tg_driver_close(tg_driver *driver)
{
    if (!driver)
        return;
    if (driver->library)
        dlclose(driver->library);
    free(driver);
}

static tg_status status_of(cu_result result)
{
    switch (result) {
    case CU_OUT_OF_MEMORY:
        return TG_E_MEMORY;
    case CU_NO_DEVICE:
    case CU_INVALID_DEVICE:
        return TG_E_NO_DEVICE;
    default:
        return TG_E_DRIVER;
    }
}

tg_status driver_fail(const tg_driver *driver, cu_result result, const char *what, const tg_sink *sink)
{
    const char *name = NULL, *text = NULL;
    char number[32];
    if (driver->cuGetErrorName(result, &name) != CU_SUCCESS || !name) {
        (void)snprintf(number, sizeof number, "CUresult %d", result);
        name = number;
    }
    if (driver->cuGetErrorString(result, &text) != CU_SUCCESS || !text)
        text = "no description";
    const char *hint =
        result == CU_INVALID_CONTEXT ? "make a CUDA context current first, for example with tg_context_acquire" : NULL;
    return tg_fail(sink, status_of(result), "TG0803", hint, "%s: %s: %s", what, name, text);
}

tg_status driver_status(const tg_driver *driver, cu_result result, const char *what, const tg_sink *sink)
{
    return result == CU_SUCCESS ? TG_OK : driver_fail(driver, result, what, sink);
}
