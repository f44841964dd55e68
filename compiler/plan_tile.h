/* compiler/plan_tile.h - questions about kernels with products by mma.sync: their operands, fragments, masks. */
#ifndef TEGULA_PLAN_TILE_H
#define TEGULA_PLAN_TILE_H

#include "compiler/plan.h"

/* Is it a map over a loaded matrix that only feeds products? It needs no place: it is computed on fetched operands. */
bool plan_is_on_the_fly(const struct plan *p, uint32_t v);
/* Does such a map read the vector at other positions than the rows of the product, which are all that a thread has in
 * registers? */
bool plan_is_read_while_fetched(const struct plan *p, uint32_t v);
/* Is this a product with causally masked weights on the left and a loaded tile on the right? */
bool plan_is_masked(const struct plan *p, const struct op *op);
/* The matrix in shared memory that a product fetches where its operand v is computed on the fly; what else the operand is
 * made of is read element by element. */
int plan_fetched(const struct plan *p, uint32_t v);
/* Floats from one row to the next of what is inverted in shared memory: those of operands are in different banks, be they floats
 * or, of 16-bit inputs, matrices of their parts. */
static inline uint32_t plan_solve_pitch(const struct plan *p, const struct op *op)
{
    return p->values[op->v].extent[1] + (p->shape.io == TG_F32 ? 8 : 4);
}
/* Of a product by a tile of positions that is zero where the key is behind the query, computed or loaded, the other operand;
 * -1: it is no such product. What is bad in it must not get there. Where a chunk is one block. */
int plan_masked_operand(const struct plan *p, const struct op *op);
/* Columns of it whose bad positions are marked in shared memory; 0: none, or they are found in registers. */
uint32_t plan_marked_columns(const struct plan *p, const struct op *op);
/* Which 16 rows of a fragment are the m-th of `tiles` that a warp has? */
static inline uint32_t plan_row_block(const struct plan *p, uint32_t tiles, uint32_t m, uint32_t warp)
{
    return p->to_and_fro ? m * p->warps_m + (m % 2 ? p->warps_m - 1 - warp : warp) : warp * tiles + m;
}
/* Is block n of 16 columns above the diagonal for every warp's m-th 16 rows, where that is nothing? */
static inline bool plan_is_above(const struct plan *p, const struct value *v, uint32_t m, uint32_t n)
{
    return v->lower && p->to_and_fro && n >= (m + 1) * p->warps_m;
}
/* ... for some warps' alone? Below it for every warp's? */
static inline bool plan_is_above_some(const struct plan *p, const struct value *v, uint32_t m, uint32_t n)
{
    return v->lower && p->to_and_fro && n > m * p->warps_m && !plan_is_above(p, v, m, n);
}
static inline bool plan_is_below(const struct plan *p, const struct value *v, uint32_t m, uint32_t n)
{
    return v->lower && p->to_and_fro && n < m * p->warps_m;
}
/* columns.c: do so many warps share the columns of states? Sets how, and adds up what each has a part of. */
bool plan_share_columns(struct plan *p);
/* A product that sums over the columns of a state, which is its left operand. */
static inline bool plan_is_part(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && !plan_is_state(p, &p->values[op->v]) &&
           ((p->values[op->a].space == SPACE_FRAGMENT && plan_is_state(p, &p->values[op->a])) ||
            (p->values[op->b].space == SPACE_FRAGMENT && plan_is_state(p, &p->values[op->b])));
}
/* Warps that share the columns of a fragment. */
static inline uint32_t plan_column_warps(const struct plan *p, const struct value *v)
{
    return p->shares_columns && !plan_is_state(p, v) ? 1 : p->warps_n;
}
/* Elements of a fragment that a thread has. */
static inline uint32_t plan_fragment_elements(const struct plan *p, const struct value *v)
{
    return v->extent[0] * v->extent[1] / (32 * p->warps_m * plan_column_warps(p, v));
}
/* Steps of a nest; 0: a run-time number. */
static inline uint32_t plan_known_steps(const struct nest *nest)
{
    return nest->loops[0].trips * (nest->n_loops == 2 ? nest->loops[1].trips : 1);
}
bool plan_is_async(const struct plan *p, const struct value *v); /* pipeline.c */
/* ... Is it a map of what the top of the kernel brings to shared memory? */
bool plan_maps_root_shared(const struct plan *p, const struct op *op);

#endif
