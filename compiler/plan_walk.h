/* compiler/plan_walk.h - questions about kernels on warpgroups (walk.c): their states, heads, clusters, tensor maps. */
#ifndef TEGULA_PLAN_WALK_H
#define TEGULA_PLAN_WALK_H

#include "compiler/plan.h"

/* The tile that the value is one of the uses of. There is one place for it (plan_share_tile), at whatever positions it is read. */
static inline uint32_t plan_tile_of(const struct plan *p, uint32_t v)
{
    return TG_OPERAND_TILE(p->values[v].operand);
}
/* Is the code of an expression the tile, at whatever positions? */
static inline bool plan_is_tile_code(const tg_x *x, uint32_t tile)
{
    return x->op == TG_X_TILE && TG_OPERAND_TILE(x->operand) == tile;
}
/* Does the operation sum up the value's products with another, along rows or columns? */
static inline bool plan_sums_value(const struct op *op, uint32_t v)
{
    return op->kind == OP_DOT && (op->a == v || op->b == v);
}
bool plan_check_transition(const struct plan *p); /* transition.c: is what it makes of states linear in them? */
bool plan_can_rest(const struct plan *p);         /* ... do transitions decay, as a whole? */
/* factor.c: which vectors become factors; where the map has their difference, before its exponential, -1: nowhere. */
void plan_find_factors(struct plan *p);
int plan_difference(const struct plan *p, const tg_stmt *s);
bool plan_find_difference(struct plan *p); /* ... the vectors of the first such map; false: there is none */
/* decayed.c: has a chunk another way? Of a map of positions by positions: it without its decay and scalars, what the other way's tile is. */
void plan_find_ways(struct plan *p);
void plan_product_of_map(const tg_stmt *s, tg_stmt *product);
void plan_find_rounded(struct plan *p); /* rounded.c */
/* diagonal.c: is the sum along rows the diagonal of a, the product of both? */
bool plan_is_diagonal(const struct plan *p, const struct op *op);
void plan_find_diagonals(struct plan *p);
/* Where a map has 2^ of a difference of two tiles; -1: nowhere. And finds maps that have it alike, one behind the other (enum exponentials). */
int plan_exponential(const tg_stmt *s);
bool plan_has_same_exponential(const struct plan *p, const struct op *a, const struct op *b);
void plan_share_exponentials(struct plan *p);
/* Is the value accumulators of a head times numbers of positions? And is v that for sums alone, which multiply by themselves? */
struct plan_weight {
    uint32_t of, by; /* values */
    int scalar;      /* ... and a scalar of the call; -1: none */
};
bool plan_is_weighted(const struct plan *p, const struct value *v, struct plan_weight *weight);
bool plan_find_weight(const struct plan *p, uint32_t v, struct plan_weight *weight);
/* Two warpgroups have the same 64 rows, each half of the columns of the state (walk.c). */
bool plan_row_shares_columns(const tg_algorithm *algorithm, const tg_kernel_row *row);
/* Warpgroups with rows of their own. */
static inline uint32_t plan_row_groups(const struct plan *p)
{
    return p->shares_columns ? p->groups / 2 : p->groups;
}
/* Is the value a tile of the output's or the state's elements, which each warpgroup has its own of? */
static inline bool plan_is_owned(const struct plan *p, const struct value *v)
{
    return p->groups && ((v->n_dims > 0 && v->dims[0] == p->owner) || (v->n_dims > 1 && v->dims[1] == p->owner));
}
/* Is it a tile of positions by the dimension that the state has as columns? Its accumulators have positions as rows, and each warpgroup
 * has some of the columns (order_across.c). */
static inline bool plan_is_across(const struct plan *p, const struct value *v)
{
    return p->groups && v->stmt >= 0 && v->space == SPACE_FRAGMENT && v->n_dims == 2 && plan_is_position(v->dims[0]) &&
           !plan_is_position(v->dims[1]) && !plan_is_owned(p, v);
}
/* A kernel on warpgroups that makes states and nothing else of the chunks. */
static inline bool plan_is_state_alone(const struct plan *p)
{
    return p->makes_segments || p->starts_alone || p->finals_only;
}
/* ... from what does not depend on the state. */
static inline bool plan_is_sum_alone(const struct plan *p)
{
    return plan_is_state_alone(p) && !p->transition && !p->transposed && !p->reads_state;
}
/* Parts of a sum for positions or for the chunk: one from each warp with accumulators, or a state, of its own, from each group otherwise. */
static inline uint32_t plan_sum_parts(const struct plan *p, const struct value *v)
{
    return v->late ? 4 * (v->n_dims ? plan_row_groups(p) : p->groups) : p->groups;
}
/* A sum over the positions of the chunk: parts, one value for each column of a loaded matrix. */
static inline bool plan_is_gathered(const struct value *v)
{
    return v->space == SPACE_PARTS && v->n_dims == 1 && !plan_is_position(v->dims[0]);
}
/* A vector that every warpgroup carries from chunk to chunk. */
static inline bool plan_is_carried(const struct value *v)
{
    return v->space == SPACE_VECTOR && v->scope == SCOPE_GROUP;
}
/* A matrix that a ring loads; a computed one; a vector that every warp makes for itself. */
static inline bool plan_is_loaded(const struct value *v)
{
    return v->space == SPACE_MATRIX && v->stmt < 0;
}
static inline bool plan_is_made_tile(const struct value *v)
{
    return v->space == SPACE_MATRIX && v->stmt >= 0;
}
/* Of a loaded matrix: do the warps that load multiply it by its factors (decayed.c)? */
static inline bool plan_is_multiplied(const struct plan *p, uint32_t v)
{
    return p->ways.scales && plan_is_loaded(&p->values[v]) &&
           (p->values[v].offset == p->values[p->ways.matrices[0]].offset ||
            p->values[v].offset == p->values[p->ways.matrices[1]].offset);
}
/* ... of positions by channels, which makers make row by row (walk_rows.c); do they? */
static inline bool plan_is_made_of_rows(const struct value *v)
{
    return plan_is_made_tile(v) && !plan_is_position(v->dims[1]);
}
static inline bool plan_makes_rows(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_made_of_rows(&p->values[i]))
            return true;
    return false;
}
/* ... or is it what they are made of? */
static inline bool plan_is_of_rows(const struct plan *p, const struct value *v)
{
    return p->groups && v->n_dims == 2 && (v->space == SPACE_CHANNEL || plan_is_made_of_rows(v));
}
/* Has a maker elements of it in registers, of several rows at a time (lower/walk_rows.c)? */
enum { WALK_ROW_REGISTERS = 10 };
static inline bool plan_has_elements_of_rows(const struct plan *p, const struct value *v)
{
    return p->groups &&
           (v->space == SPACE_CHANNEL || plan_is_made_of_rows(v) || (plan_is_loaded(v) && plan_makes_rows(p)));
}
/* Does the operation make such? */
static inline bool plan_works_on_rows(const struct plan *p, const struct op *op)
{
    return (op->kind == OP_MAP || op->kind == OP_SCAN || op->kind == OP_COPY) && plan_is_of_rows(p, &p->values[op->v]);
}
/* walk_rows.c: a loaded matrix, does nothing but what makes rows read it? */
bool plan_is_for_rows(const struct plan *p, uint32_t v);
static inline bool plan_makes_tiles(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_made_tile(&p->values[i]))
            return true;
    return false;
}
static inline bool plan_is_of_warp(const struct value *v)
{
    return v->space == SPACE_VECTOR && v->scope == SCOPE_WARP;
}
/* The first of the values that load the same tile. */
static inline uint8_t plan_first_of(const struct plan *p, uint32_t v)
{
    return (uint8_t)(plan_is_loaded(&p->values[v]) && p->values[v].shared_with >= 0 ? p->values[v].shared_with
                                                                                    : (int)v);
}
/* The matrix that an operand of such a kernel is, or is made of by a factor. */
uint32_t plan_matrix_of(const struct plan *p, uint32_t v);
enum { WALK_TILE = 64, WALK_SPAN_BYTES = 128 }; /* positions of a chunk; a row of 64 elements, the swizzle's */
/* Does the operation make such a tile of the state, which is a right operand then, rounded, in shared memory? */
static inline bool plan_is_by_rounded_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && plan_is_across(p, &p->values[op->v]) && (op->a == p->state || op->b == p->state);
}
/* walk_across.c: a matrix that products into the state have on the right? */
bool plan_is_right_of_state(const struct plan *p, uint32_t v);
/* Columns of the state that a warpgroup has; it is the left operand of a product by so many of them at a time (walk.c; op.n says which). */
static inline uint32_t plan_state_columns(const struct plan *p)
{
    return p->block[p->owner == TG_DQK ? TG_DHV : TG_DQK] / (p->shares_columns ? 2 : 1);
}
static inline uint32_t plan_state_parts(const struct plan *p)
{
    return (plan_state_columns(p) + p->state_part - 1) / p->state_part;
}
/* ... of a tile across. */
static inline uint32_t plan_across_columns(const struct plan *p)
{
    return plan_state_columns(p) / p->groups;
}
/* Bytes from 64 columns of the rounded state to the next: all of its rows. */
static inline uint32_t plan_rounded_span(const struct plan *p)
{
    return p->block[p->owner] * WALK_SPAN_BYTES;
}
/* Is it such a product? */
static inline bool plan_is_by_state(const struct plan *p, const struct op *op)
{
    return p->groups && op->kind == OP_CONTRACT && op->a == p->state && op->v != p->state;
}
static inline uint32_t plan_part_columns(const struct plan *p, uint32_t part)
{
    const uint32_t rest = plan_state_columns(p) - part * p->state_part;
    return rest < p->state_part ? rest : p->state_part;
}
/* Heads side by side in the rows of accumulators; in the columns of the state. */
static inline uint32_t plan_heads_in_rows(const struct plan *p)
{
    return p->sums_heads ? 1 : p->heads;
}
static inline uint32_t plan_heads_in_columns(const struct plan *p)
{
    return p->sums_heads ? p->heads : 1;
}
/* Do heads side by side have one product of positions each, so that the next one's is under way with this one's? */
bool plan_is_ahead(const struct plan *p);
/* Buffers of what is written to shared memory in a step and read behind its barrier: two in turn, or one where steps end
 * with a barrier too, for several heads have little room. */
static inline uint32_t plan_buffers(const struct plan *p)
{
    return p->sums_heads ? 1 : 2;
}
/* ... of parts of a sum. Those of the whole state are made before the barrier of their step and read behind that of the next one. */
static inline uint32_t plan_part_buffers(const struct plan *p, const struct value *v)
{
    return v->late && v->n_dims == 0 && plan_buffers(p) == 2 ? 3 : plan_buffers(p);
}
/* A computed tile that, unlike others of the kernel, is overwritten in the next chunk, not in the one after? */
static inline bool plan_has_one_buffer(const struct plan *p, const struct value *v)
{
    return plan_is_made_tile(v) && !p->has_makers && v->stages < plan_buffers(p);
}
/* Do they make tiles of positions? Rows alone need few registers. */
static inline bool plan_makes_positions(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_made_tile(&p->values[i]) && !plan_is_made_of_rows(&p->values[i]))
            return true;
    return false;
}
/* Registers of a thread in each of two groups that walk where four more warps make what they take: all that these, and those that
 * load, leave. */
static inline uint32_t plan_registers_beside_makers(const struct plan *p)
{
    return plan_makes_positions(p) ? 208 : 216;
}
/* order.c: have makers anything to do, and nothing that they cannot? */
bool plan_can_have_makers(struct plan *p);
bool plan_can_overlap_parts(struct plan *p);
/* Does who makes a tile of positions make all of it? */
static inline bool plan_makes_whole_tiles(const struct plan *p)
{
    return p->own_heads || p->has_makers;
}
/* Of a tile of positions, what a warpgroup makes. */
static inline uint32_t plan_position_columns(const struct plan *p)
{
    return plan_makes_whole_tiles(p) ? WALK_TILE : WALK_TILE / p->groups;
}
/* Does the warp that loads store what those who walk have left in a stage? */
static inline bool plan_is_handed(const struct op *op)
{
    return op->role == ROLE_LOAD && op->kind == OP_STORE;
}
/* cluster.c: the cluster of the row's thread blocks, and whether they can be one */
void plan_find_cluster(struct plan *p);
bool plan_check_cluster(const struct plan *p);
bool plan_is_added_up(const struct plan *p, uint32_t tile);  /* do its two thread blocks add up the tile? */
bool plan_is_exchanged(const struct plan *p, uint32_t tile); /* ... by sending each other halves of it, not in turn? */
uint32_t plan_cluster_sums(const struct plan *p,
                           uint32_t before); /* how many such the row lists before that one; 0: in all */
uint32_t plan_cluster_step(const struct plan *p,
                           uint32_t dim); /* thread blocks from one to its neighbour in a dimension */
/* In which dimension are those that share the loads of a matrix (0: each loads it for itself), and how many? Do any? */
uint32_t plan_shared_along(const struct plan *p, const struct value *v);
uint32_t plan_sharers(const struct plan *p, const struct value *v);
bool plan_shares(const struct plan *p);
/* Of a kernel that makes segments with their transitions: the axis of the state along which its thread blocks go on with those
 * of the transition, the axis from and to which that is, and where, along the former, its columns begin. */
uint32_t plan_transition_along(const struct plan *p);
uint32_t plan_transition_of(const struct plan *p);
uint32_t plan_transition_first(const struct plan *p);
/* A kernel on warpgroups: does the last block of dqk or dhv reach beyond its end? What is there is zero on chip and not in memory. */
static inline bool plan_is_ragged(const struct plan *p, uint32_t dim)
{
    return p->groups && plan_dim_size(p, dim) % p->block[dim] != 0;
}
/* ... and its end is in the middle of a span of 64: tensor maps move such spans one by one. */
static inline bool plan_splits_span(const struct plan *p, uint32_t dim)
{
    return p->groups && plan_dim_size(p, dim) % WALK_TILE != 0;
}
/* dqk or dhv, as owner of a state by itself (walk.c). */
uint32_t plan_owner_of_state(const struct plan *p);
/* The state's tensor for what it is behind the last chunk, where this kernel writes that; 0: it does not. */
uint32_t plan_final_tile(const struct plan *p);
/* Does it write the states with which segments begin, and nothing else, so that it ends with the last state that a segment begins with. */
static inline bool plan_ends_early(const struct plan *p)
{
    return p->starts_alone && !plan_final_tile(p);
}
/* Does a kernel on warpgroups store a tile of positions by a tensor map? fp32 goes to memory from registers. */
bool plan_is_mapped_store(const struct plan *p, const struct op *op);
/* ... of the steps behind which nobody fills their stages: what is stored in the loop, once more. */
static inline bool plan_is_of_last_steps(const struct op *op)
{
    return op->kind == OP_STORE && op->role == ROLE_LOAD && op->guard == GUARD_ONE;
}
/* Tensor maps of a kernel on warpgroups: of the matrices it loads, and of the tiles it stores; `tensor` is a tile. */
uint32_t plan_maps(const struct plan *p, tg_map_desc maps[TG_MAX_MAPS]);

#endif
