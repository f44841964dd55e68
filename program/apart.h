/* program/apart.h - do two arrays of a call share memory? One text for the runtime and for generated C, which has a copy of
 * it; hence plain C that is C++ too, and no includes of ours.
 *
 * An array is an interval of bytes with gaps. Two intervals that meet may still be apart, as slices of one tensor are (dq, dk
 * and dv of dqkv): then there is a stride of either, a period, of which all larger strides of both are multiples, and what
 * each has within a period is in a place of its own there. What is apart in no such way is taken for overlapping. */
#ifndef TEGULA_APART_H
#define TEGULA_APART_H

#include <stdint.h>

enum { APART_AXES = 5 };

/* Where the elements of an array lie, the first at `begin`. */
struct layout {
    uint64_t begin, element;                     /* bytes of one */
    int n;                                       /* axes with more than one entry, the smallest step first */
    uint64_t step[APART_AXES], last[APART_AXES]; /* bytes from entry to entry; entries less one */
};

/* From byte `begin` to before `end`; nothing: absent, or empty. */
struct interval {
    uint64_t begin, end;
};

/* An axis goes to its place among those that are there, most of which are smaller. */
static void add_axis(struct layout *layout, int64_t extent, int64_t stride)
{
    const uint64_t step = (uint64_t)(stride < 0 ? -stride : stride) * layout->element, last = (uint64_t)extent - 1;
    int at = layout->n;
    if (extent < 2 || stride == 0)
        return;
    for (layout->n++; at > 0 && layout->step[at - 1] > step; at--) {
        layout->step[at] = layout->step[at - 1];
        layout->last[at] = layout->last[at - 1];
    }
    layout->step[at] = step;
    layout->last[at] = last;
    layout->begin -= stride < 0 ? last * step : 0;
}

/* Of the axes from `first` on. */
static void lay_out(struct layout *layout, uint64_t address, uint64_t element, const int64_t *extent,
                    const int64_t *stride, int first, int n_axes)
{
    layout->begin = address;
    layout->element = element;
    layout->n = 0;
    for (int axis = n_axes - 1; axis >= first; axis--) /* mostly from the smallest step on */
        add_axis(layout, extent[axis], stride[axis]);
}

static struct interval interval_of(uint64_t address, uint64_t element, const int64_t *extent, const int64_t *stride,
                                   int n_axes)
{
    struct interval interval = {address, address + element}, nothing = {0, 0};
    for (int axis = 0; axis < n_axes; axis++) {
        const uint64_t reach = (uint64_t)((extent[axis] - 1) * stride[axis]) * element;
        if (extent[axis] == 0)
            return nothing;
        if (extent[axis] > 1)
            *(stride[axis] < 0 ? &interval.begin : &interval.end) += reach;
    }
    return interval;
}

static int reach_each_other(struct interval a, struct interval b)
{
    return a.begin < b.end && b.begin < a.end;
}

/* Does an axis step into what those with smaller steps have? */
static int meets_itself(const struct layout *layout)
{
    uint64_t reach = layout->element;
    for (int i = 0; i < layout->n; i++) {
        if (layout->step[i] < reach)
            return 1;
        reach += layout->last[i] * layout->step[i];
    }
    return 0;
}

/* The bytes of a period within which all of it lies, or 0: it does not repeat with the period. */
static uint64_t within(const struct layout *layout, uint64_t period)
{
    uint64_t reach = layout->element;
    for (int i = 0; i < layout->n; i++) {
        if (layout->step[i] < period)
            reach += layout->last[i] * layout->step[i];
        else if (layout->step[i] % period)
            return 0;
    }
    return reach <= period ? reach : 0;
}

static int are_interleaved(const struct layout *a, const struct layout *b, uint64_t period)
{
    const uint64_t of_a = within(a, period), of_b = within(b, period);
    const uint64_t ahead =
        b->begin >= a->begin ? (b->begin - a->begin) % period : (period - (a->begin - b->begin) % period) % period;
    return of_a && of_b && ahead >= of_a && period - ahead >= of_b;
}

static int are_apart(const struct layout *a, const struct layout *b)
{
    for (int i = 0; i < a->n; i++)
        if (are_interleaved(a, b, a->step[i]))
            return 1;
    for (int i = 0; i < b->n; i++)
        if (are_interleaved(a, b, b->step[i]))
            return 1;
    return 0;
}

#endif
