/* runtime/memory.c - synchronous memory helpers for tools and tests. */
#include "runtime/internal.h"

tg_status tg_memory_alloc(const tg_driver *driver, size_t bytes, uint64_t *address, const tg_sink *sink)
{
    *address = 0;
    return DRIVER_CALL(driver, sink, cuMemAlloc, address, bytes ? bytes : 1); /* 0 is an error of CUDA */
}

void tg_memory_free(const tg_driver *driver, uint64_t address)
{
    if (address)
        (void)driver->cuMemFree(address);
}

tg_status tg_memory_in(const tg_driver *driver, uint64_t to, const void *from, size_t bytes, const tg_sink *sink)
{
    return bytes ? DRIVER_CALL(driver, sink, cuMemcpyHtoD, to, from, bytes) : TG_OK;
}

tg_status tg_memory_out(const tg_driver *driver, void *to, uint64_t from, size_t bytes, const tg_sink *sink)
{
    return bytes ? DRIVER_CALL(driver, sink, cuMemcpyDtoH, to, from, bytes) : TG_OK;
}

tg_status tg_memory_fill(const tg_driver *driver, uint64_t to, uint8_t value, size_t bytes, const tg_sink *sink)
{
    return bytes ? DRIVER_CALL(driver, sink, cuMemsetD8, to, value, bytes) : TG_OK;
}

tg_status tg_synchronize(const tg_driver *driver, const tg_sink *sink)
{
    return DRIVER_CALL(driver, sink, cuCtxSynchronize);
}
