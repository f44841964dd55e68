/* box.c - where the bytes of a bulk copy lie: in shared memory densely, the innermost dimension
 * first, swizzled as the tensor map says; in global memory by its strides.
 *
 * A swizzle exchanges the 16-byte units of a row: the unit's number, two address bits or more up
 * from bit 4, is changed by those from bit 7 up. So it depends on the address, not on the box.
 *
 * A box may reach over any edge of its tensor when it is loaded, and over the far ones when it is
 * stored or added; its rows begin at whole units, and stores end at them. */
#include "hopper.h"

static u32 count(const struct tensor_map *m, u32 i)
{
    return i ? (m->box[i] + m->step[i] - 1u) / m->step[i] : m->box[0]; /* no steps inside rows */
}

u32 box_bytes(const struct tensor_map *m)
{
    u32 bytes = m->element_bytes;
    for (u32 i = 0; i < m->rank; i++)
        bytes *= count(m, i);
    return bytes;
}

static bool refuse(struct warp *w, const struct bulk *b, u32 i, const char *why)
{
    const struct tensor_map *m = &b->map;
    fault(w, REPORT_BOX, (int)b->lane,
          "the box's coordinate %u is %d, of elements of %u bytes, and the dimension has %llu: %s", i, b->coordinate[i],
          m->element_bytes, m->last[i] + 1ull, why);
    return false;
}

/* Whether the hardware copies such a box; else a fault. An H200 ends with an illegal instruction,
 * but for the last rule: there it writes all 16 bytes, past the end of the row. */
bool box_check(struct warp *w, const struct bulk *b)
{
    const struct tensor_map *m = &b->map;
    const s64 first = (s64)b->coordinate[0] * m->element_bytes, row = ((s64)m->last[0] + 1) * m->element_bytes;
    if (first & 15)
        return refuse(w, b, 0, "a box must begin at a multiple of 16 bytes of a row");
    if (b->kind == BULK_LOAD)
        return true;
    for (u32 i = 0; i < m->rank; i++)
        if (b->coordinate[i] < 0)
            return refuse(w, b, i, "what is written must begin at 0 or above");
    if (row & 15 && first < row && first + m->box[0] * m->element_bytes > row)
        return refuse(w, b, 0, "what is written over the end of a row needs rows of a multiple of 16 bytes");
    return true;
}

static bool walk_plain(const struct bulk *b, piece_visit *visit, void *context)
{
    for (u32 i = 0; i < b->bytes; i += ASYNC_UNIT) {
        const struct piece p = {.offset = b->offset + i, .to = ASYNC_UNIT, .global = b->global + i};
        if (!visit(context, b, &p))
            return false;
    }
    return true;
}

/* The row with this index in the box: where it begins in global memory, and whether it is in bounds
 * but for the innermost dimension. */
static bool locate_row(const struct bulk *b, u32 row, u64 *global)
{
    const struct tensor_map *m = &b->map;
    bool is_inside = true;
    *global = m->base;
    for (u32 i = 1; i < m->rank; i++) {
        const u32 n = count(m, i);
        const s64 at = b->coordinate[i] + (s64)(row % n) * m->step[i];
        row /= n;
        is_inside &= at >= 0 && at <= (s64)m->last[i];
        *global += (u64)at * m->stride[i - 1];
    }
    return is_inside;
}

static s64 clamp(s64 x, s64 low, s64 high)
{
    return x < low ? low : x > high ? high : x;
}

static bool walk_row(const struct bulk *b, u32 row, u32 pitch, piece_visit *visit, void *context)
{
    const struct tensor_map *m = &b->map;
    u64 global;
    const bool is_inside = locate_row(b, row, &global);
    /* Bytes of the row that are in bounds. */
    const s64 first = (s64)b->coordinate[0] * m->element_bytes, from = is_inside ? clamp(-first, 0, pitch) : 0,
              to = is_inside ? clamp(((s64)m->last[0] + 1) * m->element_bytes - first, 0, pitch) : 0;
    for (u32 i = 0; i < pitch; i += ASYNC_UNIT) {
        struct piece p = {.offset = b->offset + row * pitch + i,
                          .from = (u32)clamp(from - i, 0, ASYNC_UNIT),
                          .to = (u32)clamp(to - i, 0, ASYNC_UNIT)};
        p.offset ^= ((p.offset >> 7) & m->swizzle) << 4;
        p.global = global + (u64)(first + i + p.from);
        if (p.from >= p.to)
            p.from = p.to = 0;
        if (!visit(context, b, &p))
            return false;
    }
    return true;
}

/* Visits each 16 bytes of the copy; false as soon as a visit is. */
bool box_walk(const struct bulk *b, piece_visit *visit, void *context)
{
    if (!b->is_tensor)
        return walk_plain(b, visit, context);
    const u32 pitch = b->map.box[0] * b->map.element_bytes, rows = b->bytes / pitch;
    for (u32 row = 0; row < rows; row++)
        if (!walk_row(b, row, pitch, visit, context))
            return false;
    return true;
}
