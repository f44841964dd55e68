/* tuning/call.c - a launch with its device memory: allocate, copy in, poison, run, copy out. */
#include "tuning/tuning.h"

#include <stdlib.h>
#include <string.h>

/* All bits set is a NaN in bf16, f16 and f32. */
enum { POISON = 0xff, MAX_PATTERN = 8 << 20 };

static const tg_program *program_of(const tg_call *call)
{
    return tg_module_program(call->module);
}

/* [B, NH, T, ...] on the host and [B, T, NH, ...] on the device, or back. */
static void swap_heads_and_tokens(const tg_host_tensor *tensor, const char *from, char *to, bool is_back)
{
    const size_t heads = (size_t)tensor->extent[1], tokens = (size_t)tensor->extent[2];
    const size_t rows = (size_t)tensor->extent[0] * heads * tokens;
    const size_t bytes = rows ? tensor->bytes / rows : 0;
    for (size_t row = 0; row < rows; row++) {
        size_t batch = row / (heads * tokens), head = row / tokens % heads, token = row % tokens;
        size_t other = (batch * tokens + token) * heads + head;
        memcpy(to + (is_back ? row : other) * bytes, from + (is_back ? other : row) * bytes, bytes);
    }
}

/* [B, NH, dqk, dhv] on the host and [B, NH, dhv, dqk] on the device, or back. */
static void turn(const tg_host_tensor *tensor, const char *from, char *to, bool is_back)
{
    const size_t rows = (size_t)tensor->extent[2], columns = (size_t)tensor->extent[3];
    const size_t bytes = tg_num_bytes(tensor->dtype), area = rows * columns;
    for (size_t e = 0; e < tensor->n; e++) {
        const size_t other = e / area * area + e % columns * rows + e / columns % rows;
        memcpy(to + (is_back ? e : other) * bytes, from + (is_back ? other : e) * bytes, bytes);
    }
}

static bool lies_alike(const tg_call *call, const tg_host_tensor *tensor)
{
    return !tensor->is_turned && !(call->is_token_major && tensor->has_tokens);
}

static void rearrange(const tg_host_tensor *tensor, const char *from, char *to, bool is_back)
{
    (tensor->is_turned ? turn : swap_heads_and_tokens)(tensor, from, to, is_back);
}

/* The tensor as it lies on the device; the caller frees it. NULL without memory. */
static char *device_image(const tg_call *call, const tg_host_tensor *tensor)
{
    char *image = malloc(tensor->bytes + 1);
    if (image && lies_alike(call, tensor))
        memcpy(image, tensor->data, tensor->bytes);
    else if (image)
        rearrange(tensor, tensor->data, image, false);
    return image;
}

static tg_status copy_in(tg_call *call, const tg_host_tensor *tensor, uint64_t address, const tg_sink *sink)
{
    if (lies_alike(call, tensor))
        return tg_memory_in(call->machine->driver, address, tensor->data, tensor->bytes, sink);
    char *image = device_image(call, tensor);
    tg_status status = image ? tg_memory_in(call->machine->driver, address, image, tensor->bytes, sink) : TG_E_MEMORY;
    free(image);
    return status;
}

static tg_status copy_out(const tg_call *call, const tg_host_tensor *tensor, uint64_t address, const tg_sink *sink)
{
    if (lies_alike(call, tensor))
        return tg_memory_out(call->machine->driver, tensor->data, address, tensor->bytes, sink);
    char *image = malloc(tensor->bytes + 1);
    tg_status status = image ? tg_memory_out(call->machine->driver, image, address, tensor->bytes, sink) : TG_E_MEMORY;
    if (status == TG_OK)
        rearrange(tensor, image, tensor->data, true);
    free(image);
    return status;
}

/* All zero, the default, means contiguous [B, NH, axes...]. */
static void set_strides(const tg_call *call, const tg_host_tensor *tensor, tg_tensor_arg *arg)
{
    if (!call->is_token_major || !tensor->has_tokens)
        return;
    const int64_t width = tensor->rank > 3 ? tensor->extent[3] : 1;
    arg->stride[0] = tensor->extent[2] * tensor->extent[1] * width;
    arg->stride[1] = width;
    arg->stride[2] = tensor->extent[1] * width;
    if (tensor->rank > 3)
        arg->stride[3] = 1;
}

/* What there is; else, for a tensor too large to make number by number, a block of random numbers again and again. What it holds does
 * not matter to a clock, as long as it is neither zero nor constant, and states stay finite: what a forward has kept is small,
 * or they grow by it from chunk to chunk. */
static tg_status copy_pattern(tg_call *call, const tg_host_tensor *tensor, uint64_t address, const tg_sink *sink)
{
    if (tensor->data)
        return copy_in(call, tensor, address, sink);
    size_t bytes = tensor->bytes < MAX_PATTERN ? tensor->bytes : MAX_PATTERN;
    size_t element = tg_num_bytes(tensor->dtype);
    char *pattern = malloc(bytes + 1);
    tg_status status = pattern ? TG_OK : TG_E_MEMORY;
    const tg_random random = {0, tg_num_stream(tensor->name)};
    for (size_t i = 0; pattern && i < bytes / element; i++)
        tg_num_store(pattern, tensor->dtype, i, tg_random_number(tensor, random, i) * (tensor->is_kept ? 1.0 / 64 : 1));
    for (size_t at = 0; at < tensor->bytes && status == TG_OK; at += bytes) {
        size_t left = tensor->bytes - at;
        status = tg_memory_in(call->machine->driver, address + at, pattern, left < bytes ? left : bytes, sink);
    }
    free(pattern);
    return status;
}

typedef tg_status fill_fn(tg_call *call, const tg_host_tensor *tensor, uint64_t address, const tg_sink *sink);

/* ---- pools ---- */

static size_t slot_bytes(const tg_host_tensor *tensor)
{
    return tensor->extent[0] ? tensor->bytes / (size_t)tensor->extent[0] : 0;
}

/* Half as many slots again as there are sequences, and some; which of them are taken is random. */
static tg_status pool_open(tg_pool *pool, int64_t batch, uint64_t seed)
{
    const tg_random random = {seed, tg_num_stream("index")};
    pool->n_slots = batch + batch / 2 + 3;
    pool->slot = malloc((size_t)pool->n_slots * sizeof *pool->slot);
    for (int64_t i = 0; pool->slot && i < pool->n_slots; i++)
        pool->slot[i] = i;
    for (int64_t i = pool->n_slots - 1; pool->slot && i > 0; i--) {
        const int64_t other = (int64_t)(tg_num_bits(random, (uint64_t)i) % (uint64_t)(i + 1));
        const int64_t slot = pool->slot[i];
        pool->slot[i] = pool->slot[other];
        pool->slot[other] = slot;
    }
    return pool->slot ? TG_OK : TG_E_MEMORY;
}

/* The slots of no sequence are NaN: reading one shows, and so does writing it. */
static tg_status pool_fill(tg_call *call, const tg_host_tensor *tensor, uint64_t address, const tg_sink *sink)
{
    const size_t entry = slot_bytes(tensor), bytes = entry * (size_t)call->pool.n_slots;
    char *image = malloc(bytes + 1), *states = tensor->data ? device_image(call, tensor) : NULL;
    tg_status status = image && (states || !tensor->data) ? TG_OK : TG_E_MEMORY;
    if (image)
        memset(image, POISON, bytes);
    for (int64_t b = 0; b < tensor->extent[0] && image && states; b++)
        memcpy(image + (size_t)call->pool.slot[b] * entry, states + (size_t)b * entry, entry);
    if (status == TG_OK)
        status = tg_memory_in(call->machine->driver, address, image, bytes, sink);
    free(image);
    free(states);
    return status;
}

static bool is_untouched(const char *slot, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)slot[i] != POISON)
            return false;
    return true;
}

static tg_status pool_out(const tg_call *call, const tg_host_tensor *tensor, uint64_t address, const tg_sink *sink)
{
    const tg_pool *pool = &call->pool;
    const size_t entry = slot_bytes(tensor), bytes = entry * (size_t)pool->n_slots;
    char *image = malloc(bytes + 1), *states = malloc(tensor->bytes + 1);
    tg_status status =
        image && states ? tg_memory_out(call->machine->driver, image, address, bytes, sink) : TG_E_MEMORY;
    for (int64_t i = 0; i < pool->n_slots && status == TG_OK; i++) {
        const char *slot = image + (size_t)pool->slot[i] * entry;
        if (i < tensor->extent[0]) {
            memcpy(states + (size_t)i * entry, slot, entry);
        } else if (!is_untouched(slot, entry)) {
            status = TG_E_NUMERICS;
            tg_report(sink, TG_ERROR, "TG0906", NULL, 0, "a defect of the kernel",
                      "%s: slot %lld of the pool belongs to no sequence and was written", tensor->name,
                      (long long)pool->slot[i]);
        }
    }
    if (status == TG_OK && lies_alike(call, tensor))
        memcpy(tensor->data, states, tensor->bytes);
    else if (status == TG_OK)
        rearrange(tensor, states, tensor->data, true);
    free(states);
    free(image);
    return status;
}

/* ---- arguments ---- */

static const tg_tensor_arg *find_arg(const tg_call *call, const char *name)
{
    for (uint32_t a = 0; a < call->n_args; a++)
        if (strcmp(call->args[a].name, name) == 0)
            return &call->args[a];
    return NULL;
}

static bool is_slot(const tg_call *call, const tg_host_tensor *tensor)
{
    const int index = tg_program_tensor(program_of(call), tensor->name);
    return call->pool.slot && index >= 0 && tg_tensor_is_slot(program_of(call), (uint32_t)index);
}

/* Where the initial state is, the final one goes; 0 when there is no initial one. */
static uint64_t initial_address(const tg_call *call, const tg_host_tensor *tensor)
{
    const tg_program *program = program_of(call);
    const int index = tg_program_tensor(program, tensor->name);
    const int source = tg_tensor_source(program, (uint32_t)index);
    const tg_tensor_arg *arg = source >= 0 ? find_arg(call, program->tensors[source].name) : NULL;
    return arg ? arg->address : 0;
}

static tg_status add_slots(tg_call *call, const tg_host_tensor *tensor, fill_fn *fill, const tg_sink *sink)
{
    const uint32_t n = call->n_args - 1;
    tg_host_tensor pool = *tensor;
    pool.extent[0] = call->pool.n_slots;
    pool.bytes = slot_bytes(tensor) * (size_t)call->pool.n_slots;
    call->args[n].address = tensor->flags & TG_OUT ? initial_address(call, tensor) : 0;
    call->is_borrowed[n] = call->args[n].address != 0;
    if (call->is_borrowed[n])
        return TG_OK;
    tg_status status =
        tg_memory_alloc(call->machine->driver, pool.bytes ? pool.bytes : 1, &call->args[n].address, sink);
    if (status != TG_OK || pool.bytes == 0)
        return status;
    return fill == copy_pattern ? copy_pattern(call, &pool, call->args[n].address, sink)
                                : pool_fill(call, tensor, call->args[n].address, sink);
}

static tg_status add_tensor(tg_call *call, const tg_host_tensor *tensor, fill_fn *fill, bool is_present,
                            const tg_sink *sink)
{
    const tg_driver *driver = call->machine->driver;
    tg_tensor_arg *arg = &call->args[call->n_args];
    *arg = (tg_tensor_arg){.name = tensor->name};
    set_strides(call, tensor, arg);
    call->is_borrowed[call->n_args++] = false;
    if (!is_present)
        return TG_OK;
    call->tensor_bytes += (double)tensor->bytes;
    if (is_slot(call, tensor))
        return add_slots(call, tensor, fill, sink);
    size_t bytes = tensor->bytes ? tensor->bytes : 1;
    tg_status status = tg_memory_alloc(driver, bytes, &arg->address, sink);
    if (status != TG_OK || tensor->bytes == 0)
        return status;
    return tensor->flags & TG_IN ? fill(call, tensor, arg->address, sink)
                                 : tg_memory_fill(driver, arg->address, POISON, bytes, sink);
}

/* cu and index: whole numbers, of 4 bytes or of 8, where a stride of 2 finds the low half. */
static tg_status add_table(tg_call *call, const char *name, int axis, const int64_t *numbers, int64_t n, bool is_wide,
                           const tg_sink *sink)
{
    tg_tensor_arg *arg = &call->args[call->n_args];
    const size_t width = is_wide ? 8 : 4, bytes = (size_t)n * width;
    char *table = malloc(bytes + 1);
    *arg = (tg_tensor_arg){.name = name};
    arg->stride[axis] = is_wide ? 2 : 1;
    call->is_borrowed[call->n_args++] = false;
    for (int64_t i = 0; table && i < n; i++)
        memcpy(table + (size_t)i * width, &numbers[i], width); /* little endian */
    tg_status status =
        table ? tg_memory_alloc(call->machine->driver, bytes ? bytes : 1, &arg->address, sink) : TG_E_MEMORY;
    if (status == TG_OK && bytes)
        status = tg_memory_in(call->machine->driver, arg->address, table, bytes, sink);
    free(table);
    return status;
}

static tg_status add_tables(tg_call *call, const tg_problem *problem, const tg_sink *sink)
{
    const tg_cuts *cuts = &problem->cuts;
    const int64_t batch = problem->shape.batch;
    tg_status status = TG_OK;
    if (program_of(call)->packed)
        status = add_table(call, "cu", 2, cuts->at, cuts->n + 1, problem->is_wide, sink);
    if (program_of(call)->pooled && status == TG_OK)
        status = add_table(call, "index", 0, call->pool.slot, batch, problem->is_wide, sink);
    return status;
}

static tg_status add_workspace(tg_call *call, const tg_sink *sink)
{
    const tg_driver *driver = call->machine->driver;
    call->workspace_bytes = tg_workspace_bytes(program_of(call), &call->sizes);
    if (call->workspace_bytes == 0)
        return TG_OK;
    tg_status status = tg_memory_alloc(driver, call->workspace_bytes, &call->workspace, sink);
    /* The emulator knows by itself what was never written; filling would hide it. */
    if (status == TG_OK && !call->machine->is_emulator)
        status = tg_memory_fill(driver, call->workspace, POISON, call->workspace_bytes, sink);
    return status;
}

static void report_size(const tg_call *call, const tg_problem *problem, const tg_sink *sink)
{
    const double mib = 1 << 20;
    double bytes = 0;
    for (uint32_t i = 0; i < problem->n_tensors; i++)
        bytes += (double)problem->tensors[i].bytes;
    tg_report(sink, TG_ERROR, "TG0907", NULL, 0,
              "use a smaller batch, or a larger chunk: the states of all chunks are the workspace",
              "%.0f MiB of tensors and %.0f MiB of workspace do not fit %s, which has %.0f MiB", bytes / mib,
              (double)tg_workspace_bytes(program_of(call), &call->sizes) / mib, call->machine->device.name,
              (double)call->machine->device.memory_bytes / mib);
}

/* Timed without what is optional, as the peers are; but a decode step without a state is none. */
static bool is_present(const tg_problem *problem, const tg_host_tensor *tensor, fill_fn *fill)
{
    if (fill == copy_pattern)
        return !(tensor->flags & TG_OPTIONAL) || problem->shape.most_tokens;
    return tensor->flags & TG_OUT || tensor->data;
}

/* Inputs before outputs, which may lie in their memory. */
static tg_status add_signature(tg_call *call, const tg_problem *problem, uint8_t direction, fill_fn *fill,
                               const tg_sink *sink)
{
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < problem->n_tensors && status == TG_OK; i++) {
        const tg_host_tensor *tensor = &problem->tensors[i];
        /* A schedule may have no use for an input. */
        if (tensor->flags & direction && tg_program_tensor(program_of(call), tensor->name) >= 0)
            status = add_tensor(call, tensor, fill, is_present(problem, tensor, fill), sink);
    }
    return status;
}

static tg_status open_with(tg_call *call, const tg_machine *machine, const tg_module *module, const tg_problem *problem,
                           int64_t chunk, fill_fn *fill, const tg_sink *sink)
{
    const tg_shape *shape = &problem->shape;
    *call = (tg_call){.machine = machine, .module = module};
    for (uint32_t i = 0; i < problem->n_scalars; i++)
        call->scalars[i] = (float)problem->scalars[i];
    call->is_token_major = problem->is_token_major;
    call->sizes = tg_sizes_of(shape, chunk);
    tg_status status = tg_sizes_check(program_of(call), &call->sizes, sink);
    if (status == TG_OK && program_of(call)->pooled)
        status = pool_open(&call->pool, shape->batch, problem->seed);
    if (status == TG_OK)
        status = add_signature(call, problem, TG_IN, fill, sink);
    if (status == TG_OK)
        status = add_signature(call, problem, TG_OUT, fill, sink);
    if (status == TG_OK)
        status = add_tables(call, problem, sink);
    if (status == TG_OK)
        status = add_workspace(call, sink);
    if (status == TG_E_MEMORY)
        report_size(call, problem, sink);
    if (status != TG_OK)
        tg_call_close(call);
    return status;
}

tg_status tg_call_open(tg_call *call, const tg_machine *machine, const tg_module *module, const tg_problem *problem,
                       int64_t chunk, const tg_sink *sink)
{
    return open_with(call, machine, module, problem, chunk, copy_in, sink);
}

tg_status tg_call_open_pattern(tg_call *call, const tg_machine *machine, const tg_module *module,
                               const tg_problem *problem, int64_t chunk, const tg_sink *sink)
{
    return open_with(call, machine, module, problem, chunk, copy_pattern, sink);
}

tg_status tg_call_rebind(tg_call *call, const tg_module *module, int64_t chunk, const tg_sink *sink)
{
    const tg_sizes sizes = {call->sizes.batch, call->sizes.heads, call->sizes.tokens, chunk};
    const tg_program *program = tg_module_program(module);
    tg_status status = tg_sizes_check(program, &sizes, sink);
    if (status != TG_OK)
        return status;
    call->module = module;
    call->sizes = sizes;
    if (tg_workspace_bytes(program, &sizes) > call->workspace_bytes) {
        if (call->workspace)
            tg_memory_free(call->machine->driver, call->workspace);
        call->workspace = 0;
        call->workspace_bytes = 0;
        status = add_workspace(call, sink);
    }
    return status;
}

tg_status tg_call_run(tg_call *call, const tg_sink *sink)
{
    tg_status status =
        tg_launch(call->module, &call->sizes, call->scalars, call->args, call->n_args, call->workspace, NULL, sink);
    return status == TG_OK ? tg_synchronize(call->machine->driver, sink) : status;
}

tg_status tg_call_fetch(const tg_call *call, tg_problem *problem, const tg_sink *sink)
{
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < problem->n_tensors && status == TG_OK; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
        for (uint32_t a = 0; a < call->n_args && status == TG_OK; a++) {
            if (!(tensor->flags & TG_OUT) || !call->args[a].address || strcmp(call->args[a].name, tensor->name) != 0)
                continue;
            if (!tensor->data)
                tensor->data = malloc(tensor->bytes ? tensor->bytes : 1);
            if (!tensor->data)
                status = TG_E_MEMORY;
            else if (tensor->bytes && is_slot(call, tensor))
                status = pool_out(call, tensor, call->args[a].address, sink);
            else if (tensor->bytes)
                status = copy_out(call, tensor, call->args[a].address, sink);
        }
    }
    return status;
}

void tg_call_close(tg_call *call)
{
    for (uint32_t i = 0; i < call->n_args; i++)
        if (call->args[i].address && !call->is_borrowed[i])
            tg_memory_free(call->machine->driver, call->args[i].address);
    if (call->workspace)
        tg_memory_free(call->machine->driver, call->workspace);
    free(call->pool.slot);
    call->pool.slot = NULL;
    call->n_args = 0;
    call->workspace = 0;
}

tg_status tg_problem_run(tg_problem *problem, const tg_machine *machine, const tg_module *module, int64_t chunk,
                         const tg_sink *sink)
{
    tg_call call;
    tg_status status = tg_call_open(&call, machine, module, problem, chunk, sink);
    if (status != TG_OK)
        return status;
    status = tg_call_run(&call, sink);
    if (status == TG_OK)
        status = tg_call_fetch(&call, problem, sink);
    tg_call_close(&call);
    return status;
}
