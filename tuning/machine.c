/* tuning/machine.c - a GPU, and what is compiled for it. */
#include "tuning/tuning.h"

#include "program/fail.h"

tg_status tg_machine_of(tg_driver *driver, int ordinal, tg_machine *machine, const tg_sink *sink)
{
    *machine = (tg_machine){.driver = driver, .device = {.struct_size = sizeof machine->device}};
    const tg_device *device = &machine->device;
    const tg_status status = tg_device_query(driver, ordinal, &machine->device, sink);
    if (status != TG_OK)
        return status;
    machine->target = tg_target_for_gpu(device->cc_major * 10 + device->cc_minor, device->name, device->sms,
                                        device->memory_clock_khz, device->memory_bus_bits);
    if (machine->target)
        return TG_OK;
    return tg_fail(sink, TG_E_UNSUPPORTED, "TG0811", "use a GPU of compute capability 8.0 or newer, or the emulator",
                   "%s has compute capability %d.%d", device->name, device->cc_major, device->cc_minor);
}
