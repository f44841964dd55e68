/* compiler/plan_channel.h - questions about kernels that make decays of channels, and gradients of products with them. */
#ifndef TEGULA_PLAN_CHANNEL_H
#define TEGULA_PLAN_CHANNEL_H

#include "compiler/plan.h"

/* Does a lane have channels of it, in a kernel that makes decays of them? */
static inline bool plan_is_of_channels(const struct plan *p, const struct value *v)
{
    return p->by_channel && plan_has_dim(v, TG_DQK);
}
/* Do they take one block of these after another, where it does not make gradients of them? */
static inline bool plan_has_blocks(const struct plan *p)
{
    return p->by_channel && !p->spreads && p->n_nests > 0;
}
/* Lanes have blocks of so many channels, or twice as many, of which the tensor may lack the last. */
enum { CHANNEL_UNIT = 64 };
/* In shared memory it has tiles of the chunk's 64 rows, in which 16-bit tensors wait to be read and, in their place, are operands of
 * products of positions then: queries, keys and, of a second product by the same keys, its queries. What decays by much is
 * multiplied by way of the last of them, in which nothing of 16 bits waits. fp32 tensors wait from there on, half of each warp's rows in a
 * tile, until the first operation that reads rows has them in registers, where the other half is loaded. Behind them are floats of each channel: the references of the four warps,
 * and sums of the four or factors of 16 bits of each pair of them; then numbers of rows. */
enum { CHANNEL_ROWS = 16, CHANNEL_WARPS = 4, CHANNEL_PRODUCTS = 2, CHANNEL_FLOATS = 4 + 6 };
enum { CHANNEL_NUMBERS = 4 * CHANNEL_ROWS * CHANNEL_WARPS }; /* bytes of a float a row */
/* Is it a number a row, made in registers, that maps of channels read? It is in shared memory too: place.c. */
bool plan_is_beside(const struct plan *p, uint32_t v);
/* How many tensors before it have such values. */
uint32_t plan_beside_before(const struct plan *p, uint32_t tensor);
/* How many tensors before it, with elements of so many bytes, wait there: pipeline.c. */
uint32_t plan_waiting_before(const struct plan *p, uint32_t tensor, uint32_t bytes);
/* Are rows of the value, with elements of so many bytes, copied there? */
static inline bool plan_waits_with(const struct value *v, uint32_t bytes)
{
    return v->space == SPACE_CHANNEL && v->stmt < 0 && v->n_dims == 2 && tg_dtype_bytes(v->dtype) == bytes;
}
static inline bool plan_waits(const struct value *v)
{
    return plan_waits_with(v, 2);
}
/* Bytes of a tile. What is stored of positions by positions goes by way of the first: rows of 9 units of 16 bytes. */
static inline uint32_t plan_channel_tile(const struct plan *p)
{
    const uint32_t row = 2 * p->block[TG_DQK];
    return CHANNEL_WARPS * CHANNEL_ROWS * (row > 9 * 16 ? row : 9 * 16);
}
static inline uint32_t plan_channel_tiles(const struct plan *p)
{
    const uint32_t waiting = plan_waiting_before(p, TG_MAX_TILES, 2);
    return 1 + (waiting > CHANNEL_PRODUCTS ? waiting : CHANNEL_PRODUCTS);
}
/* Bytes before the floats. */
static inline uint32_t plan_channel_floats(const struct plan *p)
{
    const uint32_t waiting = plan_waiting_before(p, TG_MAX_TILES, 4);
    return (plan_channel_tiles(p) + (waiting ? waiting - 1 : 0)) * plan_channel_tile(p);
}
/* Bytes before numbers of rows. */
static inline uint32_t plan_channel_numbers(const struct plan *p)
{
    return plan_channel_floats(p) + CHANNEL_FLOATS * 4 * p->block[TG_DQK];
}
static inline uint32_t plan_channel_scratch(const struct plan *p)
{
    return plan_channel_numbers(p) + plan_beside_before(p, TG_MAX_TILES) * CHANNEL_NUMBERS;
}
/* Is it a product with a decay whose result keeps the channels, where lanes have them? */
static inline bool plan_is_spread(const struct plan *p, const struct op *op)
{
    return p->spreads && op->kind == OP_CONTRACT && p->values[op->v].space == SPACE_CHANNEL;
}
/* The same of gradients (lower/spread.c): an operand of 16 bits, sums in fp32, vectors of each warp: two of products, and its sum
 * of positions; diagonal blocks of 16 x 16 weights, those of which all 64 x 64 are turned in places of their own, and these. Factors
 * in fp32 may grow by so many bits, for others shrink by as many. */
enum { SPREAD_TILES = 3, SPREAD_VECTORS = 3, SPREAD_GROWTH = 80 };
uint32_t plan_spread_vectors(
    const struct plan *p); /* where the vectors begin: what is before is used from the first product on */
static inline uint32_t plan_spread_tiles(const struct plan *p)
{
    return CHANNEL_WARPS * SPREAD_TILES * CHANNEL_ROWS * 2 * p->block[TG_DQK];
}
static inline uint32_t plan_spread_weights(const struct plan *p, const struct op *op)
{
    return p->values[op->a].space == SPACE_FRAGMENT ? op->a : op->b;
}
/* spread.c: all of it. */
uint32_t plan_spread_scratch(const struct plan *p);
/* Is the value a map of rows that is made at each use? Not one that is stored; and one of several tiles takes their place. */
bool plan_is_made_anew(const struct plan *p, uint32_t v);
/* Is it zero behind the end of the chunk, and at channels that the tensor does not have? */
bool plan_is_zero_behind(const struct plan *p, uint32_t v);
/* Is it decays, of a product, that another kernel has summed up? Behind the end of the chunk they stay what they are there. */
bool plan_is_loaded_decay(const struct plan *p, uint32_t v);
/* Rows of channels that are loaded lie behind all that, each warp's where it has had them copied; so do, in fp32, decays that the
 * kernel sums up, and maps that products stand between and their readers. Where those begin; and finds their places. */
uint32_t plan_spread_rows(const struct plan *p);
void plan_keep_rows(struct plan *p);
/* Does the operation, or a product that is made as it is, read the tile, or what maps make of it? */
bool plan_reads_row(const struct plan *p, const struct op *op, uint32_t tile);
/* Is a row tile loaded before all others, since a sum reads it before the first product? */
bool plan_is_early_row(const struct plan *p, uint32_t tile);
static inline bool plan_is_loaded_row(const struct value *v)
{
    return v->space == SPACE_CHANNEL && v->stmt < 0 && v->n_dims == 2;
}
/* What the sums of a product begin with: a value; -1: nothing. Two products with the same decays, one right behind the other, may be made
 * together, where neither is made with a third one. The product before this one, where it makes this start and nothing else reads that:
 * both are made as this one is; NULL: not so. The product behind it, where it has the same X, and all else of it is there: it is made as this
 * one is. Is the product made as another one is? */
int plan_spread_start(const struct plan *p, const struct op *op);
const struct op *plan_spread_onto(const struct plan *p, const struct op *op);
const struct op *plan_spread_beside(const struct plan *p, const struct op *op);
bool plan_spread_is_part(const struct plan *p, const struct op *op);
/* Place of weights that a product takes turned, from 1 on, else 0; how many places there are. Place of the diagonal blocks of a product's
 * weights: of those that are turned for good, of others while the product is made; of two products that are made together each has its
 * own. How many of them. */
uint32_t plan_turned(const struct plan *p, uint32_t weights);
uint32_t plan_turned_places(const struct plan *p);
uint32_t plan_own_place(const struct plan *p, const struct op *op);
uint32_t plan_own_places(const struct plan *p);

#endif
