/* compiler/launch.c - what a launch of the kernel looks like: its grid and its parameters, both as
 * formulas of the run-time sizes. The lowering reads parameters by the same table. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_walk.h"

#include <string.h>

uint32_t plan_grid_dims(const struct plan *p, uint8_t dims[TG_N_DIMS])
{
    /* fastest first: neighbours in the grid share keys, values and states in the L2 */
    static const uint8_t order[] = {TG_DHV, TG_DQK, TG_LQ, TG_LKV, TG_CHUNK, TG_SEG};
    uint32_t n = 0;
    for (uint32_t i = 0; i < sizeof order; i++) {
        const bool is_one = (plan_is_position(order[i]) && plan_has_single_positions(p)) ||
                            (order[i] == TG_SEG && tg_row_has_ends(p->row)); /* the chunk is its last */
        if ((p->row->row[order[i]].role == TG_ROLE_P || p->row->row[order[i]].role == TG_ROLE_R) && !is_one)
            dims[n++] = order[i];
    }
    return n;
}

uint32_t plan_chunk_step(const struct plan *p)
{
    return tg_row_has_ends(p->row) && !p->shape.packed ? p->block[TG_SEG] : 1;
}

uint32_t plan_chunks_together(const struct plan *p)
{
    const bool by_warps =
        p->row->mma == TG_MMA_NONE && p->row->row[TG_CHUNK].role == TG_ROLE_P && p->thread_dim != TG_CHUNK;
    return by_warps && p->block[TG_CHUNK] ? p->block[TG_CHUNK] : 1;
}

uint32_t plan_grid(const struct plan *p, tg_term terms[TG_MAX_TERMS])
{
    uint8_t dims[TG_N_DIMS];
    const uint32_t n_dims = plan_grid_dims(p, dims);
    uint32_t n = 0, fixed = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        const uint32_t blocks = plan_blocks(p, dims[i]);
        if (blocks)
            fixed *= blocks;
        else
            terms[n++] =
                (tg_term){.size = dims[i] == TG_CHUNK || dims[i] == TG_SEG ? TG_SIZE_CHUNKS : TG_SIZE_CHUNK,
                          .div = dims[i] == TG_CHUNK ? plan_chunk_step(p) * plan_chunks_together(p) : p->block[dims[i]],
                          .mul = 1};
    }
    const bool by_slot = p->shape.packed && p->row->row[TG_CHUNK].role == TG_ROLE_P;
    terms[n++] = (tg_term){.size = TG_SIZE_HEADS, .div = p->heads, .mul = fixed};
    if (p->row->row[TG_BATCH].role == TG_ROLE_NONE &&
        !by_slot) /* the chunks of packed sequences are numbered through */
        terms[n++] = (tg_term){.size = TG_SIZE_BATCH, .div = 1, .mul = 1};
    return n;
}

/* Strides of B, NH and of every axis but the innermost one, whose neighbours are adjacent unless parts lie between. */
static uint32_t n_strides(const struct plan *p, uint32_t tile)
{
    const uint8_t *axes = plan_memory_axes(p, tile);
    const uint32_t last = plan_last_axis(p, tile);
    uint32_t n = 0;
    while (n < TG_MAX_AXES && axes[n] != TG_AXIS_NONE)
        n++;
    const bool dense = plan_is_width(last) || (last == TG_LKV && p->parts[tile] == 1);
    return 2 + n - (dense ? 1 : 0);
}

static tg_bits tensors_of(const struct plan *p)
{
    tg_bits set = p->slice.loads | p->slice.stores;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if ((p->ops[i].kind == OP_INIT || p->ops[i].kind == OP_STORE) && p->ops[i].tile)
            set |= TG_BIT(p->ops[i].tile);
    return set;
}

bool plan_is_mapped_store(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return op->kind == OP_STORE && p->groups && v->n_dims == 2 && plan_is_position(v->dims[0]) &&
           plan_memory_dtype(p, op->tile) != TG_F32;
}

/* Counts those for which there is no room too: plan_check_args. */
static void add_map(tg_map_desc maps[TG_MAX_MAPS], uint32_t *n, const tg_map_desc *map)
{
    if (*n < TG_MAX_MAPS)
        maps[*n] = *map;
    ++*n;
}

uint32_t plan_maps(const struct plan *p, tg_map_desc maps[TG_MAX_MAPS])
{
    uint32_t n = 0;
    if (!p->groups)
        return 0;
    tg_map_desc map = {.swizzle = TG_SWIZZLE_128, .rows = WALK_TILE};
    for (uint32_t i = 0; i < p->nests[0].n_loads; i++) {
        const struct value *v = &p->values[p->nests[0].loads[i]];
        if (!plan_is_loaded(v))
            continue;
        map.tensor = (uint8_t)TG_OPERAND_TILE(v->operand);
        map.columns = (uint16_t)(WALK_SPAN_BYTES / tg_dtype_bytes(plan_memory_dtype(p, map.tensor)));
        map.spans = (uint16_t)(plan_splits_span(p, v->dims[1]) ? 1 : v->extent[1] / map.columns / plan_sharers(p, v));
        add_map(maps, &n, &map);
    }
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (plan_is_mapped_store(p, &p->ops[i]) && !plan_is_of_last_steps(&p->ops[i])) {
            map.tensor = p->ops[i].tile;
            map.columns = WALK_TILE;
            map.rows = plan_is_exchanged(p, map.tensor) ? WALK_TILE / 2 : WALK_TILE;
            map.spans = 1;
            add_map(maps, &n, &map);
        }
    return n;
}

/* Is the tensor read by tensor maps alone? */
static bool is_mapped(const struct plan *p, uint32_t tile)
{
    bool mapped = false;
    for (uint32_t i = 0; i < p->n_values && p->groups; i++)
        mapped |= plan_is_loaded(&p->values[i]) && TG_OPERAND_TILE(p->values[i].operand) == tile;
    return mapped;
}

/* A table of whole numbers, with the strides of one axis or of two. */
static void add_table(tg_arg_desc args[TG_MAX_ARGS], uint32_t *n, uint32_t tile, uint8_t axis, uint8_t last)
{
    args[(*n)++] = (tg_arg_desc){.kind = TG_ARG_POINTER, .index = (uint8_t)tile};
    args[(*n)++] = (tg_arg_desc){.kind = TG_ARG_STRIDE, .index = (uint8_t)tile, .axis = axis};
    if (last != axis)
        args[(*n)++] = (tg_arg_desc){.kind = TG_ARG_STRIDE, .index = (uint8_t)tile, .axis = last};
}

static uint32_t n_scalars(const struct plan *p)
{
    return p->algorithm->n_scalars ? p->algorithm->n_scalars : 1;
}

enum { N_SIZES = 5 };

/* Parameters behind those of the tensors: sizes, boundaries, slots, counts, scalars. */
static uint32_t n_behind(const struct plan *p)
{
    const tg_shape_class *s = &p->shape;
    const uint32_t written = s->pooled >= TG_POOL_TOKENS ? 3 : s->pooled >= TG_POOL_MOVES ? 2 : 0;
    const uint32_t tables = (s->packed ? 2u : 0) + (s->pooled ? 2u : 0) + written + (s->counted ? 2u : 0),
                   relay = p->relays || plan_clears_turns(p) ? 2u : 0,
                   summed = p->in_turn || plan_clears_sums(p) ? 2u : 0;
    return N_SIZES + (p->schedule->pieces > 1 ? 1u : 0) + tables + relay + summed + n_scalars(p);
}

/* Have both one entry for the same sequences, heads, positions and so on, in the workspace? It is contiguous. */
static bool lie_alike(const struct plan *p, uint32_t a, uint32_t b)
{
    const uint32_t apart = TG_IN | TG_OUT, same = TG_SHARED | TG_NO_BATCH | TG_NO_HEADS;
    const uint32_t of_a = p->algorithm->tensors[a].flags, of_b = p->algorithm->tensors[b].flags;
    return !((of_a | of_b) & apart) && !((of_a ^ of_b) & same) && !tg_tile_kept(p->schedule, a) &&
           !tg_tile_kept(p->schedule, b) && memcmp(plan_memory_axes(p, a), plan_memory_axes(p, b), TG_MAX_AXES) == 0 &&
           tg_tile_segment(p->schedule, a) == tg_tile_segment(p->schedule, b) && p->parts[a] == p->parts[b];
}

static uint32_t strides_of(const struct plan *p, tg_bits set, uint32_t tile)
{
    if (!p->thread_dim || tile >= p->algorithm->n_tensors)
        return tile;
    for (uint32_t t = 1; t < tile; t++)
        if ((set >> t & 1) && lie_alike(p, t, tile))
            return t;
    return tile;
}

uint32_t plan_strides_of(const struct plan *p, uint32_t tile)
{
    return strides_of(p, tensors_of(p), tile);
}

/* Of those of the kernel, what a tensor that is no map takes; 0 of one that the kernel does not have. */
static uint32_t args_of_tensor(const struct plan *p, tg_bits set, uint32_t tile)
{
    if (!(set >> tile & 1) || is_mapped(p, tile))
        return 0;
    return strides_of(p, set, tile) == tile ? 1 + n_strides(p, tile) : 1;
}

bool plan_check_args(const struct plan *p)
{
    tg_map_desc maps[TG_MAX_MAPS];
    const uint32_t n_maps = plan_maps(p, maps);
    const tg_bits set = tensors_of(p);
    uint32_t n = n_maps + n_behind(p);
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++)
        n += args_of_tensor(p, set, t);
    if (n <= TG_MAX_ARGS && n_maps <= TG_MAX_MAPS)
        return true;
    plan_refuse(p, "TG0555", "split the kernel into two rows",
                "kernel %s would have %u parameters, %u tensor maps among them; at most %d and %d", p->row->name, n,
                n_maps, TG_MAX_ARGS, TG_MAX_MAPS);
    return false;
}

uint32_t plan_args(const struct plan *p, tg_arg_desc args[TG_MAX_ARGS])
{
    static const uint8_t sizes[N_SIZES] = {TG_SIZE_BATCH, TG_SIZE_HEADS, TG_SIZE_TOKENS, TG_SIZE_CHUNK, TG_SIZE_CHUNKS};
    tg_map_desc maps[TG_MAX_MAPS];
    const tg_bits set = tensors_of(p);
    const uint32_t n_maps = plan_maps(p, maps);
    uint32_t n = 0;
    for (; n < n_maps; n++)
        args[n] = (tg_arg_desc){.kind = TG_ARG_MAP, .index = maps[n].tensor, .axis = (uint8_t)n};
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++) {
        if (!args_of_tensor(p, set, t))
            continue;
        args[n++] = (tg_arg_desc){.kind = TG_ARG_POINTER, .index = (uint8_t)t};
        for (uint32_t axis = 0; axis + 1 < args_of_tensor(p, set, t); axis++)
            args[n++] = (tg_arg_desc){.kind = TG_ARG_STRIDE, .index = (uint8_t)t, .axis = (uint8_t)axis};
    }
    for (uint32_t i = 0; i < sizeof sizes; i++)
        args[n++] = (tg_arg_desc){.kind = TG_ARG_SIZE, .index = sizes[i]};
    if (p->schedule->pieces > 1)
        args[n++] = (tg_arg_desc){.kind = TG_ARG_SIZE, .index = TG_SIZE_FIRST};
    if (p->shape.packed)
        add_table(args, &n, TILE_CU, 2, 2);
    if (p->shape.pooled)
        add_table(args, &n, TILE_INDEX, 0, 0);
    if (p->shape.pooled >= TG_POOL_MOVES)
        add_table(args, &n, TILE_INDEX_OUT, 0, p->shape.pooled >= TG_POOL_TOKENS ? 2 : 0);
    if (p->shape.counted)
        add_table(args, &n, TILE_COUNT, 0, 0);
    if (plan_clears_turns(p))
        add_table(args, &n, TILE_TURN, 0, 0);
    for (uint32_t tile = TILE_RELAY; p->relays && tile <= TILE_TURN; tile++)
        args[n++] = (tg_arg_desc){.kind = TG_ARG_POINTER, .index = (uint8_t)tile};
    if (p->in_turn || plan_clears_sums(p))
        add_table(args, &n, TILE_SUMMED, 0, 0);
    for (uint32_t i = 0; i < n_scalars(p); i++)
        args[n++] = (tg_arg_desc){.kind = TG_ARG_SCALAR, .index = (uint8_t)i};
    return n;
}
