/* runtime/launch.c - check the arguments of a call, then hand them to the kernels.
 *
 * The path of a launch allocates nothing, takes no lock and waits for nothing: everything lives on
 * the stack, so a module may be launched from many threads and into a stream under capture. */
#include "program/piece.h"
#include "program/tensor.h"
#include "runtime/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STRIDES = 2 + TG_MAX_AXES, VECTOR_BYTES = 16, WORKSPACE_ALIGNMENT = 256 };

static const int64_t max_reach = INT64_C(1) << 56;      /* elements from the first to the last */
static const int64_t max_map_stride = INT64_C(1) << 40; /* bytes, which it is below */

struct call {
    const tg_program *program;
    const tg_sizes *sizes;
    const tg_sink *sink;
    struct piece piece; /* the one that is launched */
    uint64_t mapped;    /* a bit for every tensor that kernels reach through a tensor map */
    struct bound bound[TG_MAX_TENSORS];
    float scalars[TG_MAX_SCALARS];
};

static int64_t extent_of(const struct call *call, uint32_t tensor, uint32_t axis)
{
    return call->bound[tensor].extent[axis];
}

static const char *axis_name(const tg_tensor_info *info, uint32_t axis)
{
    static const char *const names[TG_N_AXES] = {
        [TG_AXIS_NONE] = "unused", [TG_T] = "T",         [TG_CHUNK] = "chunk", [TG_DQK] = "dqk",
        [TG_DHV] = "dhv",          [TG_PARTS] = "parts", [TG_CUTS] = "cuts",   [TG_POSITION] = "position",
    };
    return axis == 0 ? "B" : axis == 1 ? "NH" : names[info->axes[axis - 2]];
}

static void set_contiguous(const struct call *call, uint32_t tensor, int64_t *stride)
{
    int64_t step = 1;
    for (uint32_t axis = count_axes(&call->program->tensors[tensor]); axis-- > 0;) {
        stride[axis] = step;
        step *= extent_of(call, tensor, axis);
    }
}

static void find_extents(struct call *call)
{
    for (uint32_t i = 0; i < call->program->n_tensors; i++)
        for (uint32_t axis = 0, n = count_axes(&call->program->tensors[i]); axis < MAX_STRIDES; axis++)
            call->bound[i].extent[axis] = axis < n ? tg_tensor_extent(call->program, call->sizes, i, axis) : 1;
}

/* ---- checks ---- */

/* Names the tensors a caller may give, for the hint of a message about one that does not exist. */
static void list_signature(const tg_program *program, char *text, size_t capacity)
{
    size_t length = (size_t)snprintf(text, capacity, "the program has");
    for (uint32_t i = 0; i < program->n_tensors && !is_workspace(&program->tensors[i]) && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, " %s", program->tensors[i].name);
}

static tg_status bind_name(struct call *call, const tg_tensor_arg *arg, uint32_t position)
{
    const tg_program *program = call->program;
    int i = arg->name ? tg_program_tensor(program, arg->name) : -1;
    if (i < 0 || is_workspace(&program->tensors[i])) {
        char hint[32 + TG_MAX_TENSORS * (sizeof program->tensors[0].name + 1)];
        list_signature(program, hint, sizeof hint);
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0821", hint,
                       "args[%" PRIu32 "].name: expected a tensor of the signature, found %.64s", position,
                       arg->name ? arg->name : "NULL");
    }
    struct bound *bound = &call->bound[i];
    if (bound->is_given)
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0822", NULL,
                       "args[%" PRIu32 "].name: expected every tensor once, found %s again", position, arg->name);
    bound->is_given = true;
    bound->address = arg->address;
    memcpy(bound->stride, arg->stride, sizeof bound->stride);
    return TG_OK;
}

/* Sequences may have any slots of a pool, so that its stride matters for a single sequence too. */
static bool has_one_entry(const struct call *call, uint32_t tensor, uint32_t axis)
{
    bool is_pool = axis == 0 && tg_tensor_is_slot(call->program, tensor);
    return !is_pool && extent_of(call, tensor, axis) < 2;
}

/* The driver's rules for tensor maps, beyond those for vectors. */
static tg_status check_map_stride(const struct call *call, uint32_t tensor, uint32_t axis)
{
    const tg_tensor_info *info = &call->program->tensors[tensor];
    int64_t stride = call->bound[tensor].stride[axis];
    int64_t least = axis < 2 ? 0 : 1; /* sequences and heads may be broadcast */
    if (!(call->mapped >> tensor & 1))
        return TG_OK;
    int64_t most = max_map_stride / tg_dtype_bytes((tg_dtype)info->dtype) - 1;
    if (stride >= least && stride <= most)
        return TG_OK;
    return tg_fail(call->sink, TG_E_ARGUMENT, "TG0830", "make it contiguous, or use a schedule without tensor maps",
                   "%s: stride of %s: expected %" PRId64 "..%" PRId64 " elements, as a kernel uses a tensor "
                   "map, found %" PRId64,
                   info->name, axis_name(info, axis), least, most, stride);
}

/* Without a division, of which a launch would have one for each axis of each tensor. */
static bool reaches_too_far(int64_t stride, int64_t extent)
{
    int64_t reach;
    return __builtin_mul_overflow(stride, extent, &reach) || reach > max_reach || reach < -max_reach;
}

static tg_status check_stride(const struct call *call, uint32_t tensor, uint32_t axis)
{
    const tg_tensor_info *info = &call->program->tensors[tensor];
    int64_t stride = call->bound[tensor].stride[axis], extent = extent_of(call, tensor, axis);
    int64_t bytes = tg_dtype_bytes((tg_dtype)info->dtype);
    const char *name = axis_name(info, axis);
    bool is_last = axis + 1 == count_axes(info);
    if (has_one_entry(call, tensor, axis))
        return TG_OK; /* the index is always 0 */
    if (reaches_too_far(stride, extent))
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0824", NULL,
                       "%s: stride of %s: expected at most %" PRId64 " elements, found %" PRId64, info->name, name,
                       max_reach / extent, stride);
    if ((info->flags & TG_OUT) && stride == 0)
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0824", "only inputs may be broadcast",
                       "%s: stride of %s: expected an output whose elements do not overlap, found 0", info->name, name);
    if (info->dtype == TG_I32 && stride < 1)
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0824", "1, or 2 for int64",
                       "%s: stride of %s: expected at least 1, found %" PRId64, info->name, name, stride);
    if (is_last && has_rows(info) && stride != 1)
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0824", "make the tensor contiguous in this axis",
                       "%s: stride of %s: expected 1, found %" PRId64, info->name, name, stride);
    if (!is_last && has_rows(info) && stride * bytes % VECTOR_BYTES != 0)
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0825", NULL,
                       "%s: stride of %s: expected a multiple of %" PRId64 " elements (%d bytes), found "
                       "%" PRId64,
                       info->name, name, VECTOR_BYTES / bytes, VECTOR_BYTES, stride);
    return check_map_stride(call, tensor, axis);
}

static bool is_empty(const struct call *call, uint32_t tensor)
{
    for (uint32_t axis = 0, n = count_axes(&call->program->tensors[tensor]); axis < n; axis++)
        if (extent_of(call, tensor, axis) == 0)
            return true;
    return false;
}

/* A tensor of the signature: present if it must be, aligned, with possible strides. */
static tg_status bind_given(struct call *call, uint32_t tensor)
{
    static const int64_t contiguous[MAX_STRIDES] = {0};
    const tg_tensor_info *info = &call->program->tensors[tensor];
    struct bound *bound = &call->bound[tensor];
    uint64_t alignment = has_rows(info) ? VECTOR_BYTES : tg_dtype_bytes((tg_dtype)info->dtype);
    if (is_empty(call, tensor) || (bound->address == 0 && (info->flags & TG_OPTIONAL)))
        return TG_OK; /* never followed, whatever its address and strides are */
    if (bound->address == 0)
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0823", NULL, "%s: expected an address, found %s", info->name,
                       bound->is_given ? "0" : "no argument of that name");
    tg_status status = TG_OK;
    if (bound->address & (alignment - 1)) /* a power of two */
        status = tg_fail(call->sink, TG_E_ARGUMENT, "TG0825", NULL,
                         "%s: address: expected a multiple of %" PRIu64 ", found 0x%" PRIx64, info->name, alignment,
                         bound->address);
    if (memcmp(bound->stride, contiguous, sizeof contiguous) == 0)
        set_contiguous(call, tensor, bound->stride);
    for (uint32_t axis = 0; axis < count_axes(info); axis++)
        if (check_stride(call, tensor, axis) != TG_OK)
            status = TG_E_ARGUMENT;
    return status;
}

static tg_status bind_workspace(struct call *call, uint64_t workspace, uint64_t *workspace_bytes)
{
    const tg_program *program = call->program;
    uint64_t offsets[TG_MAX_TENSORS];
    const uint64_t bytes = *workspace_bytes = tg_workspace_offsets(program, call->sizes, offsets);
    for (uint32_t i = 0; i < program->n_tensors; i++) {
        if (!is_workspace(&program->tensors[i]))
            continue;
        call->bound[i].address = workspace + offsets[i];
        set_contiguous(call, i, call->bound[i].stride);
    }
    if (workspace % WORKSPACE_ALIGNMENT != 0)
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0826", NULL,
                       "workspace: expected a multiple of %d, found 0x%" PRIx64, WORKSPACE_ALIGNMENT, workspace);
    if (workspace == 0 && bytes != 0)
        return tg_fail(call->sink, TG_E_ARGUMENT, "TG0826", "tg_workspace_bytes says how much",
                       "workspace: expected the address of %" PRIu64 " bytes, found 0", bytes);
    return TG_OK;
}

/* Which slots a call has is in device memory, where only kernels can read it. Without tokens there
 * are none, so final states must be where the initial ones are. */
static tg_status check_slots(const struct call *call)
{
    const tg_program *program = call->program;
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < program->n_tensors; i++) {
        const struct bound *to = &call->bound[i];
        int source = tg_tensor_source(program, i);
        if (source == TG_SOURCE_NONE || !tg_tensor_is_slot(program, i) || to->address == 0 || is_empty(call, i))
            continue;
        if (program->pooled != TG_POOL_SLOTS) {
            status = tg_fail(call->sink, TG_E_UNSUPPORTED, "TG0827", "leave out calls without tokens",
                             "%s: a call without tokens moves no state to another slot: expected tokens, found 0",
                             program->tensors[i].name);
            continue;
        }
        if (source >= 0 && call->bound[source].address == to->address)
            continue;
        status = tg_fail(call->sink, TG_E_UNSUPPORTED, "TG0827",
                         "leave out calls without tokens, or give both states the same memory",
                         "%s: a call without tokens copies no slots of a pool: expected the "
                         "address of %s, found 0x%" PRIx64,
                         program->tensors[i].name, source < 0 ? "an initial state" : program->tensors[source].name,
                         to->address);
    }
    return status;
}

static bool has_tokens_to_launch(const tg_sizes *sizes)
{
    return sizes->batch > 0 && sizes->tokens > 0;
}

/* Fills `call` with addresses and strides of every tensor, reporting all mistakes. */
static tg_status bind_call(struct call *call, const tg_module *module, const tg_sizes *sizes, const tg_tensor_arg *args,
                           uint32_t n_args, uint64_t workspace, const tg_sink *sink)
{
    if (!module || !sizes || (!args && n_args))
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_launch: %s is NULL",
                       !module  ? "module"
                       : !sizes ? "sizes"
                                : "args");
    memset(call->bound, 0,
           module->program->n_tensors * sizeof *call->bound); /* of those that there are: a launch is short */
    call->program = module->program;
    call->sizes = sizes;
    call->sink = sink;
    call->mapped = mapped_tensors(module->program);
    uint64_t workspace_bytes = 0;
    tg_status status = tg_sizes_check(module->program, sizes, sink);
    if (status != TG_OK)
        return status;
    find_extents(call);
    for (uint32_t i = 0; i < n_args; i++)
        if (bind_name(call, &args[i], i) != TG_OK)
            status = TG_E_ARGUMENT;
    for (uint32_t i = 0; i < module->program->n_tensors && !is_workspace(&module->program->tensors[i]); i++)
        if (bind_given(call, i) != TG_OK)
            status = TG_E_ARGUMENT;
    if (bind_workspace(call, workspace, &workspace_bytes) != TG_OK)
        status = TG_E_ARGUMENT;
    if (status == TG_OK)
        status = check_memory(call->program, call->bound, workspace, workspace_bytes, sink);
    if (status == TG_OK && !has_tokens_to_launch(sizes))
        status = check_slots(call);
    return status;
}

/* The caller's numbers, or the program's. */
static tg_status bind_scalars(struct call *call, const float *scalars)
{
    const tg_program *program = call->program;
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < program->n_scalars; i++) {
        call->scalars[i] = scalars ? scalars[i] : program->scalars[i].value;
        if (!isfinite(call->scalars[i]))
            status = tg_fail(call->sink, TG_E_ARGUMENT, "TG0829", NULL,
                             "scalars[%" PRIu32 "] (%s): expected a finite number, found %f", i,
                             program->scalars[i].name, (double)call->scalars[i]);
    }
    return status;
}

tg_status tg_launch_check(const tg_module *module, const tg_sizes *sizes, const tg_tensor_arg *args, uint32_t n_args,
                          uint64_t workspace, const tg_sink *sink)
{
    struct call call;
    return bind_call(&call, module, sizes, args, n_args, workspace, sink);
}

/* ---- a call without tokens: final states are copies of the initial ones, or zeros ---- */

static bool is_dense(const struct call *call, uint32_t tensor, uint32_t axis)
{
    int64_t step = 1;
    for (uint32_t i = count_axes(&call->program->tensors[tensor]); i-- > axis;) {
        int64_t extent = extent_of(call, tensor, i);
        if (extent > 1 && call->bound[tensor].stride[i] != step)
            return false;
        step *= extent;
    }
    return true;
}

static tg_status define_dense(const tg_driver *driver, uint64_t to, uint64_t from, size_t bytes, cu_stream stream,
                              const tg_sink *sink)
{
    if (bytes == 0)
        return TG_OK;
    if (from)
        return DRIVER_CALL(driver, sink, cuMemcpyDtoDAsync, to, from, bytes, stream);
    return DRIVER_CALL(driver, sink, cuMemsetD8Async, to, 0, bytes, stream);
}

/* Defines the elements at `to` on the axes from `axis` on, in as few pieces as the strides allow.
 */
static tg_status define_axes(const tg_driver *driver, const struct call *call, uint32_t tensor, uint32_t source,
                             uint32_t axis, uint64_t to, uint64_t from, cu_stream stream)
{
    const tg_tensor_info *info = &call->program->tensors[tensor];
    int64_t bytes = tg_dtype_bytes((tg_dtype)info->dtype);
    uint32_t n_axes = count_axes(info);
    if (is_dense(call, tensor, axis) && (from == 0 || is_dense(call, source, axis))) {
        for (uint32_t i = axis; i < n_axes; i++)
            bytes *= extent_of(call, tensor, i);
        return define_dense(driver, to, from, (size_t)bytes, stream, call->sink);
    }
    tg_status status = TG_OK;
    for (int64_t i = 0; i < extent_of(call, tensor, axis) && status == TG_OK; i++) {
        status = define_axes(driver, call, tensor, source, axis + 1, to, from, stream);
        to += (uint64_t)(call->bound[tensor].stride[axis] * bytes);
        if (from)
            from += (uint64_t)(call->bound[source].stride[axis] * bytes);
    }
    return status;
}

static tg_status define_states(const tg_driver *driver, const struct call *call, cu_stream stream)
{
    tg_status status = TG_OK;
    for (uint32_t i = 0; i < call->program->n_tensors && status == TG_OK; i++) {
        int source = tg_tensor_source(call->program, i);
        if (source == TG_SOURCE_NONE || call->bound[i].address == 0 ||
            tg_tensor_is_slot(call->program, i)) /* in place, says check_slots */
            continue;
        uint32_t from = source == TG_SOURCE_ZERO ? i : (uint32_t)source;
        uint64_t from_address = source == TG_SOURCE_ZERO ? 0 : call->bound[from].address;
        status = define_axes(driver, call, i, from, 0, call->bound[i].address, from_address, stream);
    }
    return status;
}

/* ---- launch ---- */

/* The driver reads as many bytes at the address of each value as its type has. */
union value {
    uint64_t pointer;
    int64_t stride;
    uint32_t size;
    float scalar;
};

/* The stride of an axis that the tensor lacks is 0 whatever the caller said: kernels multiply it by
 * the index of the sequence or head. */
static int64_t stride_of(const struct call *call, uint32_t tensor, uint32_t axis)
{
    const struct bound *bound = &call->bound[tensor];
    return bound->address && !lacks_axis(call->program, tensor, axis) ? bound->stride[axis] : 0;
}

static union value make_value(const struct call *call, const tg_arg_desc *arg)
{
    union value value = {0};
    switch ((tg_arg_kind)arg->kind) {
    case TG_ARG_POINTER:
        value.pointer = call->bound[arg->index].address;
        break;
    case TG_ARG_STRIDE:
        value.stride = stride_of(call, arg->index, arg->axis);
        break;
    case TG_ARG_SIZE:
        value.size = (uint32_t)piece_size(call->program, &call->piece, arg->index);
        break;
    case TG_ARG_SCALAR:
        value.scalar = call->scalars[arg->index];
        break;
    case TG_ARG_MAP: /* lies apart: encode_maps */
        break;
    }
    return value;
}

/* Kernels do not use the map of an absent tensor. */
static tg_status encode_maps(const tg_module *module, const struct call *call, uint32_t i, struct cu_tensor_map *maps)
{
    const tg_kernel *kernel = &module->program->kernels[i];
    const uint32_t first = maps_before(module->program, i);
    memset(maps, 0, kernel->n_maps * sizeof *maps);
    for (uint32_t m = 0; m < kernel->n_maps; m++) {
        const tg_map_desc *recipe = &kernel->maps[m];
        const struct bound *bound = &call->bound[recipe->tensor];
        if (bound->address == 0)
            continue;
        cu_result result = map_encode(module->driver, call->program, call->sizes, recipe, bound->address, bound->stride,
                                      &module->maps[(first + m) * MAP_PLACES], &maps[m]);
        if (result == CU_SUCCESS)
            continue;
        char what[128];
        (void)snprintf(what, sizeof what, "cuTensorMapEncodeTiled (%s, %s)", kernel->name,
                       call->program->tensors[recipe->tensor].name);
        return driver_fail(module->driver, result, what, call->sink);
    }
    return TG_OK;
}

/* Overlap only saves time: without the function that can say so, the kernel starts after the one
 * before. tg_load saw to it that clusters have the function. */
static tg_status launch_blocks(const tg_module *module, const struct call *call, uint32_t i, uint32_t blocks,
                               cu_stream stream, void **parameters)
{
    const tg_driver *driver = module->driver;
    const tg_kernel *kernel = &module->program->kernels[i];
    const bool overlaps =
        kernel->overlap == TG_OVERLAP_WAITS || (kernel->overlap == TG_OVERLAP_BESIDE && call->piece.first > 0);
    const bool is_plain = (kernel->cluster <= 1 && !overlaps) || !driver->cuLaunchKernelEx;
    cu_result result;
    if (is_plain) {
        result = driver->cuLaunchKernel(module->functions[i], blocks, 1, 1, kernel->threads, 1, 1, kernel->shared_bytes,
                                        stream, parameters, NULL);
    } else {
        struct cu_launch_attribute attributes[2] = {0};
        struct cu_launch launch = {.grid = {blocks, 1, 1},
                                   .block = {kernel->threads, 1, 1},
                                   .shared_bytes = kernel->shared_bytes,
                                   .stream = stream,
                                   .attributes = attributes};
        if (kernel->cluster > 1)
            attributes[launch.n_attributes++] =
                (struct cu_launch_attribute){.id = CU_LAUNCH_CLUSTER, .cluster = {kernel->cluster, 1, 1}};
        if (overlaps)
            attributes[launch.n_attributes++] = (struct cu_launch_attribute){.id = CU_LAUNCH_OVERLAP, .overlap = 1};
        result = driver->cuLaunchKernelEx(&launch, module->functions[i], parameters, NULL);
    }
    if (result == CU_SUCCESS)
        return TG_OK;
    char what[128];
    (void)snprintf(what, sizeof what, "cuLaunchKernel%s (%s)", is_plain ? "" : "Ex", kernel->name);
    return driver_fail(driver, result, what, call->sink);
}

static tg_status launch_kernel(const tg_module *module, const struct call *call, uint32_t i, cu_stream stream)
{
    const tg_kernel *kernel = &module->program->kernels[i];
    union value values[TG_MAX_ARGS];
    struct cu_tensor_map maps[TG_MAX_MAPS];
    void *parameters[TG_MAX_ARGS];
    tg_status status = encode_maps(module, call, i, maps);
    if (status != TG_OK)
        return status;
    for (uint32_t a = 0; a < kernel->n_args; a++) {
        const tg_arg_desc *arg = &kernel->args[a];
        values[a] = make_value(call, arg);
        parameters[a] = arg->kind == TG_ARG_MAP ? (void *)&maps[arg->axis] : &values[a];
    }
    int64_t blocks = piece_blocks(module->program, &call->piece, kernel);
    return launch_blocks(module, call, i, (uint32_t)blocks, stream, parameters);
}

/* What is between two pieces stands for the final state of the first and for the initial one of the second. */
static void bind_piece(struct call *call, const struct bound *given)
{
    const tg_program *program = call->program;
    for (uint32_t i = program->n_tensors; i-- > 0 && program->tensors[i].between;) {
        const uint32_t state = program->tensors[i].between - 1u;
        const int source = tg_tensor_source(program, state);
        call->bound[source] = call->piece.first > 0 ? call->bound[i] : given[source];
        call->bound[state] = call->piece.is_last ? given[state] : call->bound[i];
    }
}

/* With events for each kernel the call is one piece. */
static tg_status launch_kernels(const tg_module *module, struct call *call, cu_stream stream, const cu_event *events)
{
    const tg_program *program = module->program;
    const uint32_t pieces = piece_count(program, events != NULL);
    struct bound given[TG_MAX_TENSORS];
    tg_status status = TG_OK;
    if (pieces > 1)
        memcpy(given, call->bound, program->n_tensors * sizeof *given);
    if (!has_tokens_to_launch(call->sizes))
        status = define_states(module->driver, call, stream);
    for (uint32_t n = 0; n < pieces && status == TG_OK; n++) {
        const bool is_there = piece_of(program, call->sizes, pieces, n, &call->piece);
        if (pieces > 1)
            bind_piece(call, given);
        for (uint32_t i = 0; i <= program->n_kernels && status == TG_OK; i++) {
            if (events)
                status = DRIVER_CALL(module->driver, call->sink, cuEventRecord, events[i], stream);
            if (status == TG_OK && i < program->n_kernels && is_there && has_tokens_to_launch(call->sizes))
                status = launch_kernel(module, call, i, stream);
        }
    }
    return status;
}

tg_status launch_recorded(const tg_module *module, const tg_sizes *sizes, const float *scalars,
                          const tg_tensor_arg *args, uint32_t n_args, uint64_t workspace, cu_stream stream,
                          const cu_event *events, const tg_sink *sink)
{
    struct call call;
    tg_status status = bind_call(&call, module, sizes, args, n_args, workspace, sink);
    if (status == TG_OK)
        status = bind_scalars(&call, scalars);
    return status == TG_OK ? launch_kernels(module, &call, stream, events) : status;
}

tg_status tg_launch(const tg_module *module, const tg_sizes *sizes, const float *scalars, const tg_tensor_arg *args,
                    uint32_t n_args, uint64_t workspace, void *stream, const tg_sink *sink)
{
    return launch_recorded(module, sizes, scalars, args, n_args, workspace, stream, NULL, sink);
}
