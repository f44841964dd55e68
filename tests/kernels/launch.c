/* tests/kernels/launch.c - a trial's tensors in device memory, with guards, gaps and slots. */
#include "harness.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Guards lie on both sides of a tensor. 0xff is a NaN in every type; 0xa5 a number nobody computes.
 */
enum { GUARD = 4096, CANARY = 0xa5, POISON = 0xff, MAX_RANK = 2 + TG_MAX_AXES };

struct device_tensor {
    tg_host_tensor *host;
    uint64_t base;
    unsigned char *image; /* what lies there, guards included */
    size_t guard, bytes;  /* bytes: with both guards */
    int64_t stride[MAX_RANK];
    const int64_t *slot; /* of the sequences, when it is a pool; else NULL */
    bool is_borrowed;    /* the memory is that of an input, the initial state */
    bool is_overwritten; /* an output lies in it */
};

/* ---- layout ---- */

static bool is_slot(const struct trial *trial, const tg_host_tensor *host)
{
    const int index = tg_program_tensor(trial->kernel.program, host->name);
    return index >= 0 && tg_tensor_is_slot(trial->kernel.program, (uint32_t)index);
}

/* The last axis is dqk, dhv or the positions of a chunk, whose elements are adjacent and whose rows start at multiples of 16
 * bytes. */
static bool is_dense(const struct trial *trial, const tg_host_tensor *host)
{
    const uint8_t *axes = trial->problem.variant->algorithm->tensors[host->tile].axes;
    const uint8_t last = host->rank > 2 ? axes[host->rank - 3] : (uint8_t)TG_AXIS_NONE;
    return last == TG_DQK || last == TG_DHV || last == TG_LKV;
}

static void set_contiguous(const tg_host_tensor *host, int64_t *stride)
{
    int64_t step = 1;
    for (int i = host->rank; i-- > 0;) {
        stride[i] = step;
        step *= host->extent[i];
    }
}

/* Gaps behind every row, matrix, head and sequence. */
static void set_padded(const tg_host_tensor *host, bool dense, int64_t *stride)
{
    const int64_t unit = dense ? 16 / (int64_t)tg_num_bytes(host->dtype) : 1;
    int64_t step = dense ? 1 : 3;
    for (int i = host->rank, gap = 1; i-- > 0; gap++) {
        stride[i] = step;
        step = step * host->extent[i] + (dense && i == host->rank - 1 ? unit : gap * unit);
    }
}

static void set_strides(const struct trial *trial, const tg_host_tensor *host, int64_t *stride)
{
    set_contiguous(host, stride);
    if (trial->layout == TOKENS && host->has_tokens) {
        const int64_t width = host->rank > 3 ? host->extent[3] : 1;
        stride[0] = host->extent[2] * host->extent[1] * width;
        stride[1] = width;
        stride[2] = host->extent[1] * width;
    }
    if (trial->layout == SHARED && strcmp(host->name, "k") == 0)
        stride[1] = 0;
    if (trial->layout == PADDED)
        set_padded(host, is_dense(trial, host), stride);
}

static size_t offset_of(const struct device_tensor *device, size_t element)
{
    int64_t offset = 0;
    for (int i = device->host->rank; i-- > 0;) {
        int64_t index = (int64_t)(element % (size_t)device->host->extent[i]);
        if (i == 0 && device->slot)
            index = device->slot[index];
        offset += index * device->stride[i];
        element /= (size_t)device->host->extent[i];
    }
    return device->guard + (size_t)offset * tg_num_bytes(device->host->dtype);
}

/* Elements that lie next to each other, from each multiple of their number on. */
static size_t adjacent(const struct device_tensor *device)
{
    const int last = device->host->rank - 1;
    return last > 0 && device->stride[last] == 1 ? (size_t)device->host->extent[last] : 1;
}

/* On the emulator an access beyond an allocation is found where it happens, so guards there are
 * for the padded layout only, whose gaps lie inside the allocation. */
static size_t guard_of(enum layout layout)
{
    return on_emulator() && layout != PADDED ? 0 : GUARD;
}

static size_t end_of(const struct device_tensor *device, int64_t n_slots)
{
    int64_t last = 0;
    for (int i = 0; i < device->host->rank; i++)
        last += ((i == 0 && device->slot ? n_slots : device->host->extent[i]) - 1) * device->stride[i];
    return device->host->n ? (size_t)(last + 1) * tg_num_bytes(device->host->dtype) : 0;
}

static int fill_byte(const struct device_tensor *device)
{
    return device->host->flags & TG_IN || device->is_borrowed ? POISON : CANARY;
}

/* The image: inputs with NaN around them, outputs poisoned with a number around them. */
static bool image_open(struct device_tensor *device, const struct trial *trial, tg_host_tensor *host)
{
    const size_t element = tg_num_bytes(host->dtype);
    *device = (struct device_tensor){.host = host, .guard = guard_of(trial->layout)};
    device->slot = is_slot(trial, host) ? trial->slot : NULL;
    set_strides(trial, host, device->stride);
    device->bytes = end_of(device, trial->n_slots) + 2 * device->guard;
    device->image = malloc(device->bytes + 1);
    if (!device->image)
        return false;
    memset(device->image, fill_byte(device), device->bytes);
    const size_t n = adjacent(device);
    for (size_t e = 0; e < host->n; e += n) {
        unsigned char *to = device->image + offset_of(device, e);
        if (host->flags & TG_IN)
            memcpy(to, (const char *)host->data + e * element, n * element);
        else
            memset(to, POISON, n * element);
    }
    return true;
}

/* Told as the emulator tells its faults, so that mutants are found out by it. */
static tg_status complain_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static tg_status complain_of(const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    tg_report(&log_sink, TG_ERROR, NULL, NULL, 0, NULL, "[numbers] %s", text);
    return TG_E_NUMERICS;
}

/* All bytes of the image are the background: found by comparing it with itself, one byte on. */
static bool is_untouched(const struct device_tensor *device, int background)
{
    const unsigned char *image = device->image;
    return device->bytes == 0 || (image[0] == background && memcmp(image, image + 1, device->bytes - 1) == 0);
}

static tg_status complain_of_touched(const struct device_tensor *device, int background)
{
    size_t n_touched = 0, first = 0;
    for (size_t i = device->bytes; i-- > 0;)
        if (device->image[i] != background) {
            n_touched++;
            first = i;
        }
    return complain_of("%s: %zu bytes outside the tensor were written, the first at %lld", device->host->name,
                       n_touched, (long long)first - (long long)device->guard);
}

/* Takes the elements out of the image; what remains must be what was there before the launch. */
static tg_status image_read(struct device_tensor *device, char *to)
{
    const size_t element = tg_num_bytes(device->host->dtype), n = adjacent(device);
    const bool is_input = device->host->flags & TG_IN;
    const int background = fill_byte(device);
    for (size_t e = 0; e < device->host->n; e += n) {
        unsigned char *from = device->image + offset_of(device, e);
        if (!is_input)
            memcpy(to + e * element, from, n * element);
        else if (memcmp(from, (const char *)device->host->data + e * element, n * element) != 0)
            return complain_of("input %s was changed from element %zu on", device->host->name, e);
    }
    for (size_t e = 0; e < device->host->n; e += n)
        memset(device->image + offset_of(device, e), background, n * element);
    return is_untouched(device, background) ? TG_OK : complain_of_touched(device, background);
}

/* ---- the call ---- */

struct trial_call {
    struct trial *trial;
    struct device_tensor tensors[TG_MAX_TENSORS];
    tg_tensor_arg args[TG_MAX_TENSORS + 2];
    uint32_t n, n_args; /* args: the tensors, then cu and index */
    uint64_t workspace; /* base, a guard before it */
    size_t workspace_bytes, guard;
};

/* The input whose other end a pooled output is; NULL when it was not given. */
static struct device_tensor *initial_of(struct trial_call *call, const struct trial *trial, const tg_host_tensor *host)
{
    const tg_program *program = trial->kernel.program;
    const int index = tg_program_tensor(program, host->name);
    const int source = tg_tensor_source(program, (uint32_t)index);
    for (uint32_t i = 0; source >= 0 && i < call->n; i++)
        if (strcmp(call->tensors[i].host->name, program->tensors[source].name) == 0)
            return &call->tensors[i];
    return NULL;
}

static bool is_wanted(const struct trial *trial, const tg_host_tensor *host)
{
    if (tg_program_tensor(trial->kernel.program, host->name) < 0)
        return false; /* a schedule may have no use for an input */
    if (host->flags & TG_IN)
        return host->data != NULL;
    return !(trial->without_final && host->flags & TG_OPTIONAL && !host->has_tokens);
}

static tg_status call_tensor(struct trial_call *call, const struct trial *trial, tg_host_tensor *host)
{
    const tg_driver *driver = machine_context.machine.driver;
    if (!is_wanted(trial, host))
        return TG_OK;
    struct device_tensor *device = &call->tensors[call->n], *initial = NULL;
    tg_tensor_arg *arg = &call->args[call->n];
    if (!image_open(device, trial, host))
        return TG_E_MEMORY;
    if (host->flags & TG_OUT && device->slot)
        initial = initial_of(call, trial, host);
    call->n++;
    *arg = (tg_tensor_arg){.name = host->name};
    if (trial->layout != HEADS)
        memcpy(arg->stride, device->stride, sizeof arg->stride);
    tg_status status = TG_OK;
    if (initial) {
        device->base = initial->base;
        device->is_borrowed = initial->is_overwritten = true;
    } else {
        status = tg_memory_alloc(driver, device->bytes + 1, &device->base, &log_sink);
        if (status == TG_OK)
            status = tg_memory_in(driver, device->base, device->image, device->bytes, &log_sink);
    }
    arg->address = device->base + device->guard;
    return status;
}

/* cu and index: whole numbers, of 4 bytes or of 8, where a stride of 2 finds the low half. */
static tg_status call_table(struct trial_call *call, const struct trial *trial, const char *name, int axis,
                            const int64_t *numbers, int64_t n)
{
    const tg_driver *driver = machine_context.machine.driver;
    const bool is_wide = trial->spec->is_wide;
    const size_t width = is_wide ? 8 : 4;
    tg_tensor_arg *arg = &call->args[call->n_args++];
    *arg = (tg_tensor_arg){.name = name};
    arg->stride[axis] = is_wide ? 2 : 1;
    tg_status status = tg_memory_alloc(driver, (size_t)n * width + 1, &arg->address, &log_sink);
    for (int64_t i = 0; i < n && status == TG_OK; i++) /* little endian */
        status = tg_memory_in(driver, arg->address + (size_t)i * width, &numbers[i], width, &log_sink);
    return status;
}

static tg_status call_tables(struct trial_call *call, const struct trial *trial)
{
    const tg_cuts *cuts = &trial->problem.cuts;
    tg_status status = TG_OK;
    call->n_args = call->n;
    if (cuts->at)
        status = call_table(call, trial, "cu", 2, cuts->at, cuts->n + 1);
    if (trial->slot && status == TG_OK)
        status = call_table(call, trial, "index", 0, trial->slot, trial->problem.shape.batch);
    return status;
}

/* On the emulator the workspace stays unwritten, so that reading it too early is found out. */
static tg_status call_workspace(struct trial_call *call, const struct trial *trial, const tg_sizes *sizes)
{
    const tg_driver *driver = machine_context.machine.driver;
    const uint64_t bytes = tg_workspace_bytes(trial->kernel.program, sizes);
    call->guard = guard_of(trial->layout);
    call->workspace_bytes = bytes + 2 * call->guard;
    tg_status status = tg_memory_alloc(driver, call->workspace_bytes + 1, &call->workspace, &log_sink);
    if (status != TG_OK || call->guard == 0)
        return status;
    if (!on_emulator())
        status = tg_memory_fill(driver, call->workspace, POISON, call->workspace_bytes, &log_sink);
    if (status == TG_OK)
        status = tg_memory_fill(driver, call->workspace, CANARY, call->guard, &log_sink);
    return status == TG_OK
               ? tg_memory_fill(driver, call->workspace + call->guard + bytes, CANARY, call->guard, &log_sink)
               : status;
}

static tg_status check_workspace(const struct trial_call *call)
{
    unsigned char bytes[2][GUARD];
    const tg_driver *driver = machine_context.machine.driver;
    if (call->guard == 0)
        return TG_OK;
    tg_status status = tg_memory_out(driver, bytes[0], call->workspace, call->guard, &log_sink);
    if (status == TG_OK)
        status = tg_memory_out(driver, bytes[1], call->workspace + call->workspace_bytes - call->guard, call->guard,
                               &log_sink);
    for (size_t i = 0; status == TG_OK && i < 2 * call->guard; i++)
        if (bytes[i / GUARD][i % GUARD] != CANARY)
            status = complain_of("a byte %s the workspace was written", i < GUARD ? "before" : "after");
    return status;
}

static tg_status call_fetch_all(struct trial_call *call)
{
    const tg_driver *driver = machine_context.machine.driver;
    tg_status status = check_workspace(call);
    for (uint32_t i = 0; i < call->n && status == TG_OK; i++) {
        struct device_tensor *device = &call->tensors[i];
        tg_host_tensor *host = device->host;
        if (device->is_overwritten)
            continue;
        if (host->flags & TG_OUT && !host->data)
            host->data = malloc(host->bytes + 1);
        status = tg_memory_out(driver, device->image, device->base, device->bytes, &log_sink);
        if (status == TG_OK)
            status = image_read(device, host->data);
    }
    return status;
}

/* Inputs before outputs, which may lie in their memory. */
static tg_status call_make(struct trial_call *call, struct trial *trial, const tg_sizes *sizes)
{
    tg_problem *problem = &trial->problem;
    tg_status status = tg_sizes_check(trial->kernel.program, sizes, &log_sink);
    for (uint8_t direction = TG_IN; direction <= TG_OUT; direction++)
        for (uint32_t i = 0; i < problem->n_tensors && status == TG_OK; i++)
            if (problem->tensors[i].flags & direction)
                status = call_tensor(call, trial, &problem->tensors[i]);
    if (status == TG_OK)
        status = call_tables(call, trial);
    return status == TG_OK ? call_workspace(call, trial, sizes) : status;
}

static tg_sizes sizes_of(const struct trial *trial)
{
    const tg_shape *shape = &trial->problem.shape;
    return (tg_sizes){shape->batch, shape->heads, shape->tokens, trial->chunk};
}

void trial_end(struct trial_call *call)
{
    for (uint32_t i = 0; call && (i < call->n_args || i < call->n); i++) {
        if (i >= call->n || !call->tensors[i].is_borrowed)
            tg_memory_free(machine_context.machine.driver, i < call->n ? call->tensors[i].base : call->args[i].address);
        if (i < call->n)
            free(call->tensors[i].image);
    }
    if (call)
        tg_memory_free(machine_context.machine.driver, call->workspace);
    free(call);
}

tg_status trial_begin(struct trial *trial, struct trial_call **begun)
{
    const tg_sizes sizes = sizes_of(trial);
    struct trial_call *call = calloc(1, sizeof *call);
    log_clear();
    if (call)
        call->trial = trial;
    const tg_status status = call ? call_make(call, trial, &sizes) : TG_E_MEMORY;
    *begun = status == TG_OK ? call : NULL;
    if (status != TG_OK)
        trial_end(call);
    return status;
}

tg_status trial_go(struct trial_call *call, const tg_module *module)
{
    const tg_problem *problem = &call->trial->problem;
    const tg_sizes sizes = sizes_of(call->trial);
    float scalars[TG_MAX_SCALARS];
    for (uint32_t i = 0; i < problem->n_scalars; i++)
        scalars[i] = (float)problem->scalars[i];
    log_clear();
    tg_status status =
        tg_launch(module, &sizes, scalars, call->args, call->n_args, call->workspace + call->guard, NULL, &log_sink);
    if (status == TG_OK)
        status = tg_synchronize(machine_context.machine.driver, &log_sink);
    return status == TG_OK ? call_fetch_all(call) : status;
}

tg_status trial_run(struct trial *trial)
{
    struct trial_call *call;
    tg_status status = trial_begin(trial, &call);
    if (status == TG_OK)
        status = trial_go(call, trial->kernel.module);
    trial_end(call);
    return status;
}

bool trial_runs(struct trial *trial)
{
    tg_status status = trial_run(trial);
    tap_expect(status == TG_OK, "%s: %s", tg_status_name(status), log_text());
    if (status != TG_OK)
        emulator_reset();
    return status == TG_OK;
}
