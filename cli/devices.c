/* cli/devices.c - `tegula devices`: where kernels can run here, and what the compiler knows. */
#include "cli.h"

#include <string.h>

static json_t *device_json(const tg_device *device, const char *id)
{
    const tg_target *target = target_of_device(device);
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:i, s:s?, s:s?}", "device", id, "name", device->name, "cc",
                     device->cc_major * 10 + device->cc_minor, "sms", device->sms, "shared_bytes", device->shared_optin,
                     "l2_bytes", device->l2_bytes, "memory_bytes", (json_int_t)device->memory_bytes, "driver_version",
                     device->driver_version, "arch", target ? target->arch : NULL, "model",
                     target ? target->gpu : NULL);
}

static void device_print(const tg_device *device, const char *id)
{
    char shared[32], l2[32], memory[32];
    const tg_target *target = target_of_device(device);
    printf("  %-4s %-28s cc %d.%d  %3d SMs  shared %s  L2 %s  memory %s  driver %d.%d  -> ", id, device->name,
           device->cc_major, device->cc_minor, device->sms, bytes_text(device->shared_optin, shared),
           bytes_text(device->l2_bytes, l2), bytes_text((double)device->memory_bytes, memory),
           device->driver_version / 1000, device->driver_version % 1000 / 10);
    if (target)
        printf("%s, predicted as %s, %.2f TB/s\n", target->arch, target->gpu, target->bandwidth / 1e12);
    else
        puts("too old");
}

/* Adds the devices of one driver library; how many there are, or -1 when it cannot be opened. */
static int list_driver(const struct context *context, const char *path, json_t *list, const tg_sink *sink)
{
    tg_driver *driver;
    int count = 0, shown = 0;
    if (tg_driver_open(path, &driver, sink) != TG_OK)
        return -1;
    if (tg_device_count(driver, &count, sink) != TG_OK)
        count = 0;
    for (int i = 0; i < count; i++) {
        char id[16] = "emu";
        tg_device device = {.struct_size = sizeof device};
        if (tg_device_query(driver, i, &device, sink) != TG_OK)
            continue;
        if (!path)
            snprintf(id, sizeof id, "%d", i);
        if (context->options.json)
            json_array_append_new(list, device_json(&device, id));
        else
            device_print(&device, id);
        shown++;
    }
    tg_driver_close(driver);
    return shown;
}

static void list_targets(json_t *list)
{
    for (const tg_target *const *t = tg_targets(); *t; t++) {
        const tg_target *target = *t;
        char shared[32];
        if (list)
            json_array_append_new(list, json_pack("{s:s, s:i, s:b, s:i, s:s?}", "arch", target->arch, "cc",
                                                  (int)target->cc, "exact", (int)target->exact, "shared_bytes",
                                                  (int)target->shared_optin, "gpu", target->gpu));
        else
            printf("  %-8s %-9s shared %s a block; the cost model's numbers are of %s\n", target->arch,
                   target->exact ? "this only" : "and newer", bytes_text(target->shared_optin, shared), target->gpu);
    }
}

int command_devices(struct context *context)
{
    const bool json = context->options.json;
    json_t *devices = json ? json_array() : NULL;
    json_t *targets = json ? json_array() : NULL;
    char emulator[2200], reason[DRIVER_REASON] = "";

    if (!json)
        puts("devices (for --device):");
    if (list_driver(context, NULL, devices, &(tg_sink){keep_driver_reason, reason}) <= 0 && !json)
        printf("  no GPU: libcuda.so.1 is missing or finds none%s\n", reason);
    emulator_path(emulator, sizeof emulator);
    int emulators = list_driver(context, emulator, devices, &context->sink);
    if (!json)
        puts("targets (for --arch):");
    list_targets(targets);
    if (json)
        json_print(json_pack("{s:o, s:o}", "devices", devices, "targets", targets));
    return emulators > 0 ? CODE_OK : CODE_USAGE;
}
