/* compiler/workspace.c - which intermediates have memory of their own.
 *
 * One that is written when another of the same size has been read for the last time takes its place: partial sums of dK
 * those of dQ, vectors of the gates one another's. Kernels of a call run one after the other, so that a row may write
 * what the rows before it were the last to read. Sizes are known when a call is made: the same means the same formula. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"

#include <string.h>

static bool is_intermediate(const tg_schedule *schedule, uint32_t tile)
{
    return !(schedule->algorithm->tensors[tile].flags & (TG_IN | TG_OUT)) && !tg_tile_kept(schedule, tile);
}

static bool same_size(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                      uint32_t a, uint32_t b)
{
    const tg_tensor *x = &schedule->algorithm->tensors[a], *y = &schedule->algorithm->tensors[b];
    return tg_dtype_bytes(plan_dtype_in(schedule, slices, shape, a)) ==
               tg_dtype_bytes(plan_dtype_in(schedule, slices, shape, b)) &&
           x->flags == y->flags && memcmp(x->axes, y->axes, sizeof x->axes) == 0 &&
           plan_parts(schedule, slices, shape, a) == plan_parts(schedule, slices, shape, b) &&
           tg_tile_segment(schedule, a) == tg_tile_segment(schedule, b);
}

/* A place whose last reader runs before the row, or the tile's own. */
static uint32_t find_place(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                           uint32_t tile, uint32_t row, const uint8_t place[TG_MAX_TILES],
                           const uint8_t busy[TG_MAX_TILES])
{
    for (uint32_t t = 1; t < schedule->algorithm->n_tensors; t++)
        if (place[t] == t && busy[t] < row && same_size(schedule, slices, shape, tile, t))
            return t;
    return tile;
}

void plan_places(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                 uint8_t place[TG_MAX_TILES])
{
    uint8_t last[TG_MAX_TILES] = {0}, busy[TG_MAX_TILES] = {0};
    tg_bits used[TG_MAX_ROWS] = {0};
    memset(place, 0, TG_MAX_TILES);
    for (uint32_t r = 0; r < schedule->n_rows; r++) {
        const struct tg_slice *slice = &slices->rows[r];
        used[r] = slices->good >> r & 1 ? slice->loads | slice->stores : 0;
        for (uint32_t t = 1; t < schedule->algorithm->n_tensors; t++)
            if (used[r] >> t & 1)
                last[t] = (uint8_t)r;
    }
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        for (uint32_t t = 1; t < schedule->algorithm->n_tensors; t++) {
            if (!(used[r] >> t & 1) || place[t] || !is_intermediate(schedule, t))
                continue;
            place[t] = (uint8_t)find_place(schedule, slices, shape, t, r, place, busy);
            busy[place[t]] = last[t];
        }
}
