/* runtime/device.c - what a GPU is, and its primary context. */
#include "runtime/internal.h"

#include <string.h>

tg_status device_attribute(const tg_driver *driver, cu_device device, int attribute, int *value, const tg_sink *sink)
{
    return DRIVER_CALL(driver, sink, cuDeviceGetAttribute, value, attribute, device);
}

tg_status current_device(const tg_driver *driver, cu_device *device, int *cc, const tg_sink *sink)
{
    int major = 0, minor = 0;
    tg_status status = DRIVER_CALL(driver, sink, cuCtxGetDevice, device);
    if (status == TG_OK)
        status = device_attribute(driver, *device, CU_DEVICE_CC_MAJOR, &major, sink);
    if (status == TG_OK)
        status = device_attribute(driver, *device, CU_DEVICE_CC_MINOR, &minor, sink);
    *cc = 10 * major + minor;
    return status;
}

tg_status tg_device_count(const tg_driver *driver, int *count, const tg_sink *sink)
{
    return DRIVER_CALL(driver, sink, cuDeviceGetCount, count);
}

/* cuDeviceGet says only "invalid device"; people want to know how many there are. */
static tg_status get_device(const tg_driver *driver, int ordinal, cu_device *device, const tg_sink *sink)
{
    int count = 0;
    tg_status status = tg_device_count(driver, &count, sink);
    if (status != TG_OK)
        return status;
    if (ordinal < 0 || ordinal >= count)
        return tg_fail(sink, TG_E_NO_DEVICE, "TG0804", NULL, "device: expected an ordinal below %d, found %d", count,
                       ordinal);
    return DRIVER_CALL(driver, sink, cuDeviceGet, device, ordinal);
}

static tg_status query_attributes(const tg_driver *driver, cu_device handle, tg_device *device, const tg_sink *sink)
{
    const struct {
        int attribute;
        int *value;
    } rows[] = {
        {CU_DEVICE_CC_MAJOR, &device->cc_major},
        {CU_DEVICE_CC_MINOR, &device->cc_minor},
        {CU_DEVICE_SMS, &device->sms},
        {CU_DEVICE_SHARED_OPTIN, &device->shared_optin},
        {CU_DEVICE_REGISTERS_PER_SM, &device->registers_per_sm},
        {CU_DEVICE_L2_BYTES, &device->l2_bytes},
        {CU_DEVICE_CLOCK_KHZ, &device->clock_khz},
        {CU_DEVICE_MEMORY_CLOCK_KHZ, &device->memory_clock_khz},
        {CU_DEVICE_MEMORY_BUS_BITS, &device->memory_bus_bits},
    };
    tg_status status = TG_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == TG_OK; i++)
        status = device_attribute(driver, handle, rows[i].attribute, rows[i].value, sink);
    return status;
}

tg_status tg_device_query(const tg_driver *driver, int ordinal, tg_device *device, const tg_sink *sink)
{
    if (!driver || !device)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_device_query: %s is NULL",
                       driver ? "device" : "driver");
    cu_device handle = 0;
    size_t memory_bytes = 0;
    tg_device found = {.struct_size = sizeof found, .ordinal = ordinal};
    tg_status status = get_device(driver, ordinal, &handle, sink);
    if (status == TG_OK)
        status = DRIVER_CALL(driver, sink, cuDeviceGetName, found.name, sizeof found.name, handle);
    if (status == TG_OK)
        status = query_attributes(driver, handle, &found, sink);
    if (status == TG_OK)
        status = DRIVER_CALL(driver, sink, cuDeviceTotalMem, &memory_bytes, handle);
    if (status == TG_OK)
        status = DRIVER_CALL(driver, sink, cuDriverGetVersion, &found.driver_version);
    found.memory_bytes = memory_bytes;
    if (status == TG_OK)
        *device = found;
    return status;
}

tg_status tg_context_acquire(const tg_driver *driver, int ordinal, const tg_sink *sink)
{
    cu_device device = 0;
    cu_context context = NULL;
    tg_status status = get_device(driver, ordinal, &device, sink);
    if (status == TG_OK)
        status = DRIVER_CALL(driver, sink, cuDevicePrimaryCtxRetain, &context, device);
    if (status != TG_OK)
        return status;
    status = DRIVER_CALL(driver, sink, cuCtxSetCurrent, context);
    if (status != TG_OK)
        (void)driver->cuDevicePrimaryCtxRelease(device);
    return status;
}

void tg_context_release(const tg_driver *driver, int ordinal)
{
    cu_device device = 0;
    if (driver->cuDeviceGet(&device, ordinal) != CU_SUCCESS)
        device = ordinal; /* which handles are: what was acquired is given back all the same */
    (void)driver->cuCtxSetCurrent(NULL);
    (void)driver->cuDevicePrimaryCtxRelease(device);
}
