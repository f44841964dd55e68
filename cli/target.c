/* cli/target.c - which GPU kernels are for: --gpu, --arch, or what is there. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

bool target_of_arch(struct context *context, const char *arch, const tg_target **target)
{
    struct text names = {0};
    tg_writer writer = text_writer(&names);
    *target = tg_target_find(arch);
    if (*target)
        return true;
    for (const tg_target *const *t = tg_targets(); *t; t++)
        tg_printf(&writer, "%s%s", names.size ? ", " : "choose one of ", (*t)->arch);
    complain(context, text_of(&names), "--arch: unknown architecture '%s'", arch);
    text_free(&names);
    return false;
}

/* By its whole name, for "H20" is no H200; or by a part of it. */
static const tg_target *gpu_named(const char *name)
{
    for (const tg_target *const *t = tg_gpus(); *t; t++)
        if (strcasecmp((*t)->gpu, name) == 0)
            return *t;
    for (const tg_target *const *t = tg_gpus(); *t; t++)
        if (strcasestr((*t)->gpu, name))
            return *t;
    return NULL;
}

static const tg_target *find_gpu(struct context *context, const char *name)
{
    struct text hint = {0};
    tg_writer writer = text_writer(&hint);
    const tg_target *found = gpu_named(name);
    if (found)
        return found;
    for (const tg_target *const *t = tg_gpus(); *t; t++)
        tg_printf(&writer, "%s%s", hint.size ? ", " : "numbers are known of ", (*t)->gpu);
    complain(context, text_of(&hint), "--gpu: unknown GPU '%s'", name);
    text_free(&hint);
    return NULL;
}

const tg_target *target_of_gpu(struct context *context)
{
    const char *arch = context->options.arch;
    const tg_target *target = find_gpu(context, context->options.gpu);
    if (!target || !arch || strcmp(arch, target->arch) == 0)
        return target;
    complain(context, "give one of them", "--arch %s: the GPU of --gpu is %s", arch, target->arch);
    return NULL;
}

const tg_target *target_of_device(const tg_device *device)
{
    return tg_target_for_gpu(device->cc_major * 10 + device->cc_minor, device->name, device->sms,
                             device->memory_clock_khz, device->memory_bus_bits);
}

const tg_target *target_wanted(struct context *context)
{
    const tg_target *target = NULL;
    if (context->options.gpu)
        return target_of_gpu(context);
    if (context->options.arch)
        return target_of_arch(context, context->options.arch, &target) ? target : NULL;
    tg_driver *driver;
    tg_device device = {.struct_size = sizeof device};
    int count = 0;
    if (tg_driver_open(NULL, &driver, &silent_sink) == TG_OK) {
        if (tg_device_count(driver, &count, &silent_sink) == TG_OK && count > 0 &&
            tg_device_query(driver, 0, &device, &silent_sink) == TG_OK)
            target = target_of_device(&device);
        tg_driver_close(driver);
    }
    return target ? target : tg_targets()[0];
}

bool targets_wanted(struct context *context, const tg_target *targets[MAX_TARGETS], uint32_t *n)
{
    const char *at = context->options.arch;
    *n = 0;
    if (!at)
        return (targets[(*n)++] = target_wanted(context)) != NULL;
    for (bool more = true; more; at++) {
        const size_t length = strcspn(at, ",");
        char arch[16];
        const tg_target *target;
        bool is_known = false;
        snprintf(arch, sizeof arch, "%.*s", length < sizeof arch ? (int)length : (int)sizeof arch - 1, at);
        if (!target_of_arch(context, arch, &target))
            return false;
        for (uint32_t i = 0; i < *n; i++)
            is_known |= targets[i] == target;
        if (!is_known)
            targets[(*n)++] = target;
        at += length;
        more = *at != '\0';
    }
    return true;
}
