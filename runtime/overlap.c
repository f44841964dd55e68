/* runtime/overlap.c - what a call writes lies apart from all else that it has (program/apart.h says how two arrays do). */
#include "program/apart.h"
#include "program/tensor.h"
#include "runtime/internal.h"

#include <inttypes.h>
#include <string.h>

_Static_assert((int)APART_AXES == 2 + TG_MAX_AXES, "as many axes as tensors have");

struct memory {
    const tg_program *program;
    const struct bound *bound;
    const tg_sink *sink;
    uint32_t n;
    struct interval intervals[TG_MAX_TENSORS];
};

/* Of slots of a pool what one of each has. */
static struct layout layout_of(const struct memory *memory, uint32_t tensor)
{
    const struct bound *bound = &memory->bound[tensor];
    struct layout layout;
    lay_out(&layout, bound->address, tg_dtype_bytes((tg_dtype)memory->program->tensors[tensor].dtype), bound->extent,
            bound->stride, tg_tensor_is_slot(memory->program, tensor), APART_AXES);
    return layout;
}

/* A final state may be where the initial one is, which has been read by then. */
static bool is_in_place(const struct memory *memory, uint32_t out, uint32_t in)
{
    const struct bound *to = &memory->bound[out], *from = &memory->bound[in];
    return to->address == from->address && memcmp(to->stride, from->stride, sizeof to->stride) == 0 &&
           tg_tensor_source(memory->program, out) == (int)in;
}

/* Each pair once. */
static bool may_meet(const struct memory *memory, uint32_t out, uint32_t i)
{
    const tg_program *program = memory->program;
    if (i == out || (program->tensors[i].flags & TG_OUT && i < out) ||
        !reach_each_other(memory->intervals[out], memory->intervals[i]) || tg_tensor_is_slot(program, out) ||
        tg_tensor_is_slot(program, i) || is_in_place(memory, out, i))
        return false;
    const struct layout a = layout_of(memory, out), b = layout_of(memory, i);
    return !are_apart(&a, &b);
}

static tg_status check_output(const struct memory *memory, uint32_t out)
{
    const tg_tensor_info *tensors = memory->program->tensors;
    tg_status status = TG_OK;
    const struct layout own = layout_of(memory, out);
    if (meets_itself(&own))
        status = tg_fail(memory->sink, TG_E_ARGUMENT, "TG0833", "make it contiguous",
                         "%s: strides: expected an output whose elements do not overlap, found an axis that steps into "
                         "what others have",
                         tensors[out].name);
    for (uint32_t i = 0; i < memory->n; i++)
        if (may_meet(memory, out, i))
            status = tg_fail(memory->sink, TG_E_ARGUMENT, "TG0833",
                             "only a final state may be where the initial one is, with the same strides",
                             "%s: address: expected memory apart from that of %s, found 0x%" PRIx64, tensors[out].name,
                             tensors[i].name, memory->bound[out].address);
    return status;
}

tg_status check_memory(const tg_program *program, const struct bound *bound, uint64_t workspace,
                       uint64_t workspace_bytes, const tg_sink *sink)
{
    struct memory memory;
    memory.program = program;
    memory.bound = bound;
    memory.sink = sink;
    const struct interval work = {workspace, workspace + workspace_bytes};
    tg_status status = TG_OK;
    for (memory.n = 0; memory.n < program->n_tensors && !is_workspace(&program->tensors[memory.n]); memory.n++) {
        const uint64_t bytes = bound[memory.n].address ? tg_dtype_bytes((tg_dtype)program->tensors[memory.n].dtype) : 0;
        const struct bound *own = &bound[memory.n];
        memory.intervals[memory.n] = interval_of(own->address, bytes, own->extent, own->stride, APART_AXES);
    }
    for (uint32_t i = 0; i < memory.n; i++) {
        const struct interval own = memory.intervals[i];
        if (own.begin == own.end)
            continue;
        if (program->tensors[i].flags & TG_OUT && check_output(&memory, i) != TG_OK)
            status = TG_E_ARGUMENT;
        if (workspace_bytes && reach_each_other(own, work))
            status = tg_fail(sink, TG_E_ARGUMENT, "TG0833", NULL,
                             "workspace: expected memory apart from that of %s, found 0x%" PRIx64,
                             program->tensors[i].name, workspace);
    }
    return status;
}
