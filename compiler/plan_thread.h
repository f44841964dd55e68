/* compiler/plan_thread.h - questions about kernels without products: steps, shared dimensions, composed segments. */
#ifndef TEGULA_PLAN_THREAD_H
#define TEGULA_PLAN_THREAD_H

#include "compiler/plan.h"

/* Columns of the state that a thread block composes by transitions, and floats from one to the next row of them in shared
 * memory: what a warp reads at once is in different banks. */
enum {
    PLAN_COMPOSED = 16,
    PLAN_COMPOSED_PAIR =
        (8 + 1) * 16,       /* bytes of two rows, one part: 8 units, and one more, for eight lanes read four pairs */
    PLAN_COMPOSED_TILES = 4 /* of 8 rows, of a warp */
};
/* share.c: decides which nests are shared out; is the operation in such a nest uniform? */
void plan_share_out(struct plan *p);
bool plan_is_shared_out(const struct plan *p, const struct nest *nest, const struct op *op);
/* ... and a sum over the steps of the nest? */
bool plan_is_uniform_sum(const struct plan *p, const struct nest *nest, const struct op *op);
/* The values that an operation of a thread kernel reads; returns their number. */
uint32_t plan_reads(const struct plan *p, const struct op *op, uint8_t reads[TG_MAX_READS]);
/* Elements of a tile that a thread moves at once: all that it has side by side, where the tile has them so too. */
uint32_t plan_together(const struct plan *p, uint32_t tile);
/* dqk where threads share it out: dealt to them in groups of so many, which are side by side. 0: they do not. */
enum { SHARED_OUT_GROUP = 4 };
static inline uint32_t plan_shared_dim(const struct plan *p)
{
    return p->sharers ? TG_DQK : 0;
}
/* Is it the loop over the tokens of a decode step? What it loads is brought to shared memory before it, of all of them. */
static inline bool plan_walks_tokens(const struct plan *p, const struct nest *nest)
{
    return p->by_token && nest->n_loops == 1 && nest->loops[0].dim == TG_CHUNK;
}
/* Is it what that loop reads of dqk, where threads share it out? It stays in shared memory, in fp32. */
bool plan_is_shared_row(const struct plan *p, const struct value *v);
/* early.c: what is made of all tokens before the walk. Does the operation make it? The threads of a token that do. Moves such operations to
 * the front of the nest at `begin`; returns how many they are. */
bool plan_is_early(const struct plan *p, const struct op *op);
uint32_t plan_makers(const struct plan *p);
uint32_t plan_make_early(struct plan *p, uint32_t begin);
bool plan_leaves_power(const struct plan *p, uint32_t v); /* what it leaves is 2^v: nothing but decays read it */
bool plan_is_converted(const struct plan *p,
                       const struct value *v); /* a fetched row: to fp32, beside what was copied */
/* Is it loaded at another token, of what a SHIFT shifts? */
bool plan_is_shifted(const struct plan *p, uint32_t tile);
/* Is it a sum over dqk to which each of the threads that share it out has a part? */
bool plan_sums_shared(const struct plan *p, const struct op *op);
/* Of a product by something of dqk, the factor that has no dqk; -1: it is no such product. */
int plan_factor_beside(const struct plan *p, const struct op *op);
/* rows_apart.c: the row of dqk with which a state is summed, that decays it, or by which something is added to it; -1: the operation does none
 * of these. Decides of which states the decays are in these rows, in the walk at `begin`. */
int plan_row_beside(const struct plan *p, const struct op *op, uint32_t state);
void plan_keep_rows_apart(struct plan *p, uint32_t begin);
/* Have chunks one position, in a kernel that holds them or walks them? */
static inline bool plan_has_single_positions(const struct plan *p)
{
    return p->by_token || (p->held >> TG_CHUNK & 1);
}
/* Elements of a held dimension that a thread has. */
uint32_t plan_held_of(const struct plan *p, uint32_t dim);
/* Registers of a value in a thread kernel: the product of the held positions it has. */
uint32_t plan_held_count(const struct plan *p, const struct value *v);

#endif
