/* cli/context.c - messages, progress, paths and the device: what every command starts from. */
#include "cli.h"

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emulator/tegula_emu.h"

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds since the kernel started this process, to 10 ms; 0 where /proc does not say. Includes the
 * dynamic linker, which a clock read in main would leave out. */
static double process_age(void)
{
    char line[1024];
    unsigned long long ticks = 0;
    FILE *file = fopen("/proc/self/stat", "r");
    if (!file)
        return 0;
    const char *after = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    /* Field 22, the 20th after the name, which may itself hold spaces. */
    for (int field = 2; after && field < 22; field++)
        after = strchr(after + 1, ' ');
    if (!after || sscanf(after, "%llu", &ticks) != 1)
        return 0;
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    double age = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec - (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return fmax(age, 0);
}

static void collect(struct context *context, const tg_diag *diag)
{
    json_t *error = json_pack("{s:s}", "message", diag->message);
    if (diag->code)
        json_object_set_new(error, "code", json_string(diag->code));
    if (diag->file)
        json_object_set_new(error, "file", json_string(diag->file));
    if (diag->line)
        json_object_set_new(error, "line", json_integer(diag->line));
    if (diag->hint)
        json_object_set_new(error, "hint", json_string(diag->hint));
    for (size_t i = 0; i < json_array_size(context->errors) && error; i++)
        if (json_equal(json_array_get(context->errors, i), error)) {
            json_decref(error);
            error = NULL;
        }
    if (error)
        json_array_append_new(context->errors, error);
}

/* A name from a file may hold what a terminal obeys. */
static void add_harmless(const tg_writer *writer, const char *text)
{
    for (; *text; text++) {
        const bool is_harmless = ((unsigned char)*text >= ' ' && *text != 0x7f) || *text == '\n' || *text == '\t';
        writer->write(writer->user, is_harmless ? text : "?", 1);
    }
}

/* A statement is checked as often as directions and schedules have it: the same of the same place is told once. */
static bool is_told(struct context *context, const tg_diag *diag, const char *text)
{
    const uint64_t hash = tg_num_stream(text);
    if (!diag->file)
        return false;
    for (uint32_t i = 0; i < context->n_told; i++)
        if (context->told[i] == hash)
            return true;
    if (context->n_told < MOST_TOLD)
        context->told[context->n_told++] = hash;
    return false;
}

static void emit(void *user, const tg_diag *diag)
{
    static const char *const severities[] = {"note", "warning", "error"};
    struct context *context = user;
    struct text text = {0};
    const tg_writer writer = text_writer(&text);

    tg_printf(&writer, "%s%s%s", severities[diag->severity], diag->code ? " " : "", diag->code ? diag->code : "");
    if (diag->file) {
        tg_printf(&writer, " ");
        add_harmless(&writer, diag->file);
    }
    if (diag->file && diag->line)
        tg_printf(&writer, ":%d", diag->line);
    tg_printf(&writer, ": ");
    add_harmless(&writer, diag->message);
    if (diag->hint) {
        tg_printf(&writer, "\n  hint: ");
        add_harmless(&writer, diag->hint);
    }
    tg_printf(&writer, "\n");
    if (!is_told(context, diag, text_of(&text))) {
        progress_hide(context);
        print_message(text_of(&text));
    }
    text_free(&text);
    if (context->errors && diag->severity == TG_ERROR)
        collect(context, diag);
}

const tg_sink silent_sink = {NULL, NULL};

void keep_driver_reason(void *user, const tg_diag *diag)
{
    char *reason = user;
    if (!*reason && diag->code && strcmp(diag->code, "TG0803") == 0)
        snprintf(reason, DRIVER_REASON, ": %s", diag->message);
}

void complain(struct context *context, const char *hint, const char *format, ...)
{
    char message[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    emit(context, &(tg_diag){.severity = TG_ERROR, .message = message, .hint = hint});
}

void remark(const char *format, ...)
{
    char message[1024], line[1040];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    snprintf(line, sizeof line, "note: %s\n", message);
    print_message(line);
}

int code_of_status(tg_status status)
{
    switch (status) {
    case TG_OK:
        return CODE_OK;
    case TG_E_NUMERICS:
    case TG_E_COMPILE:
    case TG_E_DRIVER:
    case TG_E_MEMORY:
        return CODE_FAILED;
    default:
        return CODE_USAGE;
    }
}

static void default_paths(struct context *context)
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char folder[4000] = ""; /* a longer name, or a relative one, is as none: nothing is remembered */
    if (base && *base == '/' && strlen(base) < sizeof folder / 2)
        snprintf(folder, sizeof folder, "%s/tegula", base);
    else if (home && *home == '/' && strlen(home) < sizeof folder / 2)
        snprintf(folder, sizeof folder, "%s/.cache/tegula", home);
    snprintf(context->cache, sizeof context->cache, "%s", folder);
    if (*folder)
        snprintf(context->wisdom, sizeof context->wisdom, "%s/wisdom.txt", folder);
}

void context_init(struct context *context)
{
    *context = (struct context){0};
    context->process_start = now() - process_age();
    context->sink = (tg_sink){emit, context};
    default_paths(context);
}

static void machine_close(struct context *context)
{
    tg_machine *machine = &context->machine;
    struct waking *waking = &context->waking;
    if (waking->is_running)
        pthread_join(waking->thread, NULL);
    for (; waking->n_held > 0; waking->n_held--)
        tg_context_release(machine->driver, machine->device.ordinal);
    if (machine->driver)
        tg_driver_close(machine->driver);
}

void context_close(struct context *context)
{
    options_free(&context->options);
    machine_close(context);
    if (context->errors && json_array_size(context->errors) > 0)
        json_print(json_pack("{s:b, s:O}", "ok", 0, "errors", context->errors));
    json_decref(context->errors);
    free(context->joined);
    if (context->plugin)
        dlclose(context->plugin);
    if (context->emulator)
        dlclose(context->emulator);
}

void emulator_path(char *path, size_t size)
{
    char self[2048];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    static const char *const folders[] = {TEGULA_TO_LIB, "../lib", "."}; /* installed, built, beside the executable */
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, size, "%s/%s/libtegula-emu.so.1", self, folders[i]);
        if (access(path, R_OK) == 0)
            return;
    }
}

/* The primary context is the process's, and is made by the first who acquires it: what fails here
 * fails again in machine_ready, which says so. */
static void *wake(void *user)
{
    struct context *context = user;
    const tg_machine *machine = &context->machine;
    context->waking.n_held = tg_context_acquire(machine->driver, machine->device.ordinal, &silent_sink) == TG_OK;
    return NULL;
}

static bool machine_use(struct context *context, const char *path, int ordinal, bool is_emulator, const tg_sink *sink)
{
    tg_machine *machine = &context->machine;
    int count = 0;
    if (tg_driver_open(path, &machine->driver, sink) != TG_OK) {
        machine->driver = NULL;
        return false;
    }
    if (tg_device_count(machine->driver, &count, sink) != TG_OK)
        goto failed;
    if (ordinal >= count) {
        tg_report(sink, TG_ERROR, NULL, NULL, 0, "`tegula devices` lists what there is; --device emu needs no GPU",
                  "there is no GPU %d: the driver has %d", ordinal, count);
        goto failed;
    }
    if (tg_machine_of(machine->driver, ordinal, machine, sink) != TG_OK)
        goto failed;
    machine->is_emulator = is_emulator;
    context->waking.is_running = pthread_create(&context->waking.thread, NULL, wake, context) == 0;
    return true;
failed:
    tg_driver_close(machine->driver);
    machine->driver = NULL;
    return false;
}

/* The emulated GPU is the one that is compiled for, and --seed picks the order of its warps and of
 * its asynchronous copies. A library that lacks these functions is used as it is. */
static void emulator_configure(struct context *context, const char *path)
{
    const struct options *options = &context->options;
    const tg_target *target = options->arch ? tg_target_find(options->arch) : NULL;
    context->emulator = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!context->emulator)
        return; /* tg_driver_open says why */
    void (*get)(struct tgemu_config *);
    int (*set)(const struct tgemu_config *);
    *(void **)&get = dlsym(context->emulator, "tgemu_get_config");
    *(void **)&set = dlsym(context->emulator, "tgemu_configure");
    struct tgemu_config config = {.struct_size = sizeof config};
    if (!get || !set)
        return;
    get(&config);
    if (options->seed)
        config.seed = (uint64_t)options->seed;
    if (target) {
        config.cc_major = target->cc / 10;
        config.cc_minor = target->cc % 10;
        config.smem_optin = target->shared_optin;
    }
    set(&config);
}

static bool use_emulator(struct context *context)
{
    char path[2200];
    emulator_path(path, sizeof path);
    if (access(path, R_OK) != 0) {
        complain(context, "build it with `./dev build`; it belongs into ../lib beside bin/tegula",
                 "the emulator %s does not exist", path);
        return false;
    }
    emulator_configure(context, path);
    return machine_use(context, path, 0, true, &context->sink);
}

static bool use_default(struct context *context)
{
    char reason[DRIVER_REASON] = "";
    if (machine_use(context, NULL, 0, false, &(tg_sink){keep_driver_reason, reason})) {
        remark("device: GPU 0, %s", context->machine.device.name);
        return true;
    }
    remark("device: the emulator, for libcuda.so.1 finds no GPU%s (choose with --device)", reason);
    return use_emulator(context);
}

static bool use_numbered(struct context *context, const char *text)
{
    char *end;
    long ordinal = strtol(text, &end, 10);
    if (end == text || *end != '\0' || ordinal < 0 || ordinal > 1023) {
        complain(context, "write --device emu, or --device 0 for the first GPU",
                 "--device: expected 'emu' or a GPU number, found '%s'", text);
        return false;
    }
    return machine_use(context, NULL, (int)ordinal, false, &context->sink);
}

bool machine_ready(struct context *context)
{
    const tg_machine *machine = &context->machine;
    struct waking *waking = &context->waking;
    if (waking->is_ready)
        return true;
    if (waking->is_running)
        pthread_join(waking->thread, NULL);
    waking->is_running = false;
    if (tg_context_acquire(machine->driver, machine->device.ordinal, &context->sink) != TG_OK)
        return false;
    waking->n_held++;
    waking->is_ready = true;
    return true;
}

bool machine_open(struct context *context)
{
    return machine_begin(context) && machine_ready(context);
}

bool machine_begin(struct context *context)
{
    const char *device = context->options.device;
    if (context->machine.driver)
        return true;
    /* The emulator runs any PTX it knows; a GPU only that of its own compute capability or older. A wrong --arch should
     * not cost opening a device. */
    const tg_target *target = NULL;
    if (context->options.arch && !target_of_arch(context, context->options.arch, &target))
        return false;
    bool is_open = !device                      ? use_default(context)
                   : strcmp(device, "emu") == 0 ? use_emulator(context)
                                                : use_numbered(context, device);
    if (target)
        context->machine.target = target;
    return is_open;
}
