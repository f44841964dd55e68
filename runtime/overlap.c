/* runtime/overlap.c - what a call writes lies apart from all else that it has.
 *
 * A tensor is an interval of bytes with gaps. Two intervals that meet may still be apart, as slices of one tensor are (dq, dk
 * and dv of dqkv): then there is a stride of either, a period, of which all larger strides of both are multiples, and what
 * each has within a period is in a place of its own there. What is apart in no such way is taken for overlapping. */
#include "program/tensor.h"
#include "runtime/internal.h"

#include <inttypes.h>
#include <string.h>

/* Where the elements of a tensor lie, the first at `begin`. */
struct layout {
    uint64_t begin, element;                               /* bytes of one */
    uint32_t n;                                            /* axes with more than one entry, the smallest step first */
    uint64_t step[2 + TG_MAX_AXES], last[2 + TG_MAX_AXES]; /* bytes from entry to entry; entries less one */
};

/* Sorts the axes by their steps, the smallest first. There are a handful. */
static void sort_axes(struct layout *layout)
{
    for (uint32_t i = 1; i < layout->n; i++)
        for (uint32_t k = i; k > 0 && layout->step[k] < layout->step[k - 1]; k--) {
            const uint64_t step = layout->step[k], last = layout->last[k];
            layout->step[k] = layout->step[k - 1];
            layout->last[k] = layout->last[k - 1];
            layout->step[k - 1] = step;
            layout->last[k - 1] = last;
        }
}

static struct layout layout_of(uint64_t address, uint64_t bytes)
{
    return (struct layout){.begin = address, .element = bytes};
}

static void add_axis(struct layout *layout, int64_t extent, int64_t stride)
{
    if (extent < 2 || stride == 0)
        return;
    const uint64_t step = (uint64_t)(stride < 0 ? -stride : stride) * layout->element, last = (uint64_t)extent - 1;
    layout->step[layout->n] = step;
    layout->last[layout->n++] = last;
    layout->begin -= stride < 0 ? last * step : 0;
    sort_axes(layout);
}

/* Does an axis step into what those with smaller steps have? */
static bool meets_itself(const struct layout *layout)
{
    uint64_t reach = layout->element;
    for (uint32_t i = 0; i < layout->n; i++) {
        if (layout->step[i] < reach)
            return true;
        reach += layout->last[i] * layout->step[i];
    }
    return false;
}

/* The bytes of a period within which all of it lies, or 0: it does not repeat with the period. */
static uint64_t within(const struct layout *layout, uint64_t period)
{
    uint64_t reach = layout->element;
    for (uint32_t i = 0; i < layout->n; i++) {
        if (layout->step[i] < period)
            reach += layout->last[i] * layout->step[i];
        else if (layout->step[i] % period)
            return 0;
    }
    return reach <= period ? reach : 0;
}

static bool are_interleaved(const struct layout *a, const struct layout *b, uint64_t period)
{
    const uint64_t of_a = within(a, period), of_b = within(b, period);
    const uint64_t ahead =
        b->begin >= a->begin ? (b->begin - a->begin) % period : (period - (a->begin - b->begin) % period) % period;
    return of_a && of_b && ahead >= of_a && period - ahead >= of_b;
}

static bool are_apart(const struct layout *a, const struct layout *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (are_interleaved(a, b, a->step[i]))
            return true;
    for (uint32_t i = 0; i < b->n; i++)
        if (are_interleaved(a, b, b->step[i]))
            return true;
    return false;
}

/* ---- the tensors of a call ---- */

/* From byte `begin` to before `end`; nothing: absent, or empty. */
struct interval {
    uint64_t begin, end;
};

struct memory {
    const tg_program *program;
    const struct bound *bound;
    const tg_sink *sink;
    uint32_t n;
    struct interval intervals[TG_MAX_TENSORS];
};

static struct interval interval_of(const struct bound *bound, uint64_t element)
{
    struct interval interval = {bound->address, bound->address + element};
    for (uint32_t axis = 0; axis < 2 + TG_MAX_AXES; axis++) {
        const uint64_t reach = (uint64_t)((bound->extent[axis] - 1) * bound->stride[axis]) * element;
        if (bound->extent[axis] == 0)
            return (struct interval){0, 0};
        if (bound->extent[axis] > 1)
            *(bound->stride[axis] < 0 ? &interval.begin : &interval.end) += reach;
    }
    return interval;
}

/* Of slots of a pool what one of each has. */
static struct layout layout_of_tensor(const struct memory *memory, uint32_t tensor)
{
    const struct bound *bound = &memory->bound[tensor];
    struct layout layout = layout_of(bound->address, tg_dtype_bytes((tg_dtype)memory->program->tensors[tensor].dtype));
    const uint32_t first = tg_tensor_is_slot(memory->program, tensor) ? 1 : 0;
    for (uint32_t axis = 2 + TG_MAX_AXES; axis-- > first;) /* mostly from the smallest step on */
        add_axis(&layout, bound->extent[axis], bound->stride[axis]);
    return layout;
}

/* A final state may be where the initial one is, which has been read by then. */
static bool is_in_place(const struct memory *memory, uint32_t out, uint32_t in)
{
    const struct bound *to = &memory->bound[out], *from = &memory->bound[in];
    return to->address == from->address && memcmp(to->stride, from->stride, sizeof to->stride) == 0 &&
           tg_tensor_source(memory->program, out) == (int)in;
}

static bool reach_each_other(struct interval a, struct interval b)
{
    return a.begin < b.end && b.begin < a.end;
}

/* Each pair once. */
static bool may_meet(const struct memory *memory, uint32_t out, uint32_t i)
{
    const tg_program *program = memory->program;
    if (i == out || (program->tensors[i].flags & TG_OUT && i < out) ||
        !reach_each_other(memory->intervals[out], memory->intervals[i]) || tg_tensor_is_slot(program, out) ||
        tg_tensor_is_slot(program, i) || is_in_place(memory, out, i))
        return false;
    const struct layout a = layout_of_tensor(memory, out), b = layout_of_tensor(memory, i);
    return !are_apart(&a, &b);
}

static tg_status check_output(const struct memory *memory, uint32_t out)
{
    const tg_tensor_info *tensors = memory->program->tensors;
    tg_status status = TG_OK;
    const struct layout own = layout_of_tensor(memory, out);
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
        memory.intervals[memory.n] = interval_of(&bound[memory.n], bytes);
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
