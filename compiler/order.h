/* compiler/order.h - what the files of pass order share: order.c has the roles and what is around a chunk, order_positions.c what a
 * chunk does for positions, order_tile.c what it does for each tile of 64 rows, order_columns.c where groups share columns, order_ops.c
 * the operations that they put, exchange.c when a cluster's halves are sent. Internal to the pass. */
#ifndef TEGULA_ORDER_H
#define TEGULA_ORDER_H

#include "compiler/plan.h"

struct order {
    struct plan *p;
    struct op from[PLAN_MAX_OPS]; /* as pass nest left them; maps know what is fetched ahead */
    bool placed[PLAN_MAX_OPS];
    uint32_t n, begin, end; /* of `from`; begin ... end - 1 are a chunk's */
    tg_bits cleaned;        /* matrices on the left with zeros where NaN may have been */
    bool overwrites;        /* all groups have left the chunk before */
    bool together; /* products of positions are under way with those by the state, each awaited where it is read */
    bool owes;     /* ... and the barrier behind which tiles are whole comes before the first product by one of them */
    bool fetches;  /* what products have on the left is fetched */
    bool begins;   /* the first product of a sum of the state is under way with those of positions */
    struct op begun; /* ... that sum */
    int beside,
        into; /* a product by a tile that is still under way when the one into the state begins; -1: there is none */
    bool adds_up;                    /* a sum of columns has been made */
    tg_bits is_put;                  /* outputs that are in their places before others are */
    bool left;                       /* the stage of the step before, by the thread that stores */
    bool left_by_few;                /* ... where thread blocks are few */
    uint8_t flying[PLAN_MAX_VALUES]; /* ... products under way, as they were issued */
    uint32_t n_flying;
    enum role_kind role;
    enum guard guard;
};

typedef bool which_ops(const struct plan *p, const struct op *op);

/* order_ops.c: adds an operation of the role and under the guard that hold now. */
struct op *order_put(struct order *o, enum op_kind kind);
void order_put_value(struct order *o, enum op_kind kind, uint32_t v);
/* ... by way of the place of a matrix that nobody who could still reads any more. */
struct op *order_put_in_place(struct order *o, enum op_kind kind, uint32_t v);
void order_put_sync(struct order *o, enum op_kind kind, enum sync sync);
void order_put_sync_of(struct order *o, enum op_kind kind, enum sync sync, uint32_t v);
void order_forget(struct order *o, uint32_t what);
struct op *order_put_from(struct order *o, uint32_t i);
void order_put_all(struct order *o, which_ops *which);
void order_put_product(struct order *o, uint32_t i);
void order_put_part(struct order *o, uint32_t i, uint32_t part); /* one by some of the state's columns */

/* ... a matrix on the left of products; the end of a product, of all that the operation reads, and of the other groups' tiles. */
void order_fetch(struct order *o, uint32_t v);
void order_await(struct order *o, uint32_t v);
void order_await_reads(struct order *o, const struct op *op);
void order_await_others(struct order *o);
void order_put_whole(struct order *o); /* the barrier behind which these are whole */

/* ... the stage of the step before is left by the thread that stores: with the step's first products under way, which it would begin late
 * if its stores were still reading; so of a longer ring, where nobody waits for the stage yet and memory is the limit, before the outputs
 * are put (`last`). */
void order_leave_behind(struct order *o, bool last);

/* ... what an operation is. */
bool order_makes_of_positions(const struct plan *p, const struct op *op);
bool order_reads_state(const struct plan *p, const struct op *op);
bool order_changes_state(const struct plan *p, const struct op *op);
bool order_decays_state(const struct plan *p, const struct op *op);
bool order_is_of_output(const struct plan *p, const struct op *op);
bool order_is_by_tile(const struct plan *p, const struct op *op);
bool order_sums_loaded(const struct plan *p, const struct op *op);
bool order_works_on_positions(const struct plan *p, const struct op *op);
bool order_makes_vector(const struct plan *p, const struct op *op);
bool order_sums_state(const struct plan *p, const struct op *op);
bool order_stores_late(const struct plan *p, const struct op *op);
bool order_has_late_sums(const struct plan *p);
bool order_stores_rows(const struct plan *p, const struct op *op);
bool order_stores_early(const struct plan *p, const struct op *op);
bool order_stores_state(const struct plan *p, const struct op *op);
bool order_is_implied(const struct plan *p, const struct op *op);

/* ... operands: left is what has the rows of the accumulators; matrices that load the same tile go by the first (plan_first_of). */
void order_resolve(const struct plan *p, struct op *op);
uint8_t order_gathered_from(const struct order *o, uint32_t v);
bool order_has_positions(const struct order *o);
bool order_is_read(const struct order *o, uint32_t v, bool for_rows); /* to make rows, and numbers for these; or else */
bool order_check_products(const struct order *o);

/* order_positions.c: a map, to shared memory where others read it; sums of loaded matrices; whether the groups hand each other
 * anything; positions beside the products by the state, where that is possible, or before them. */
void order_put_map(struct order *o, uint32_t i);
void order_put_sums_of_loaded(struct order *o, bool by_head);
bool order_begins_with_all(const struct order *o);
bool order_can_be_together(const struct order *o);
bool order_can_begin_state_sum(const struct order *o);
void order_make_positions(struct order *o); /* all of it, for makers */
void order_make_rows(struct order *o);      /* ... and their rows */
void order_put_together(struct order *o);
void order_put_positions(struct order *o);

/* order_tile.c: all that is left of a chunk, for each tile of the group. */
void order_put_tile(struct order *o);
void order_put_by_columns(struct order *o, uint32_t part); /* products by some columns of the state */
void order_catch_up(struct order *o); /* with decays of the chunk before that were put off, if any are */
bool order_has_state_sums(const struct order *o);
void order_put_state_sums(struct order *o);
void order_begin_state_sum(struct order *o);                         /* of which the rest comes with the tile */
void order_fetch_for_maps(struct order *o);                          /* before the products by the state */
bool order_has_own_place(const struct order *o);                     /* has an output a buffer of its own? */
bool order_stores_output(const struct plan *p, const struct op *op); /* by way of shared memory */
/* order_own_stage.c: when matrices that have stages of their own are awaited, and left. */
void order_own_stages(struct plan *p);
/* order_across.c, where a row has outputs of both dimensions: what a chunk does for positions; a barrier behind which nobody reads what
 * is in one buffer any more; what a map, and the barrier of tiles, do for products behind a NaN. */
void order_put_positions_across(struct order *o);
void order_overwrite(struct order *o);
void order_look_at_product(struct order *o, struct op *map);
void order_look_for_nan(struct order *o, struct op *barrier);
/* ... of the tile across, behind the products into the state: that by the rounded state, early if there are registers; that by a tile of
 * positions; the output. */
bool order_begins_across_early(const struct order *o);
void order_begin_across(struct order *o);
void order_put_by_tile_across(struct order *o);
void order_end_across(struct order *o);
/* order_columns.c: where groups share the columns of the state, products by it before `from[end]`, if they are not there yet; and those
 * up to the one whose sum the operation reads. */
void order_put_sums_of_columns(struct order *o, uint32_t end);
void order_put_sums_that_are_read(struct order *o, const struct op *op);
/* exchange.c: does the operation read shared memory where the matrix is loaded; is it the end of product v; of an output that a cluster adds up, what comes before OP_RECEIVE. */
bool order_reads_place(const struct plan *p, const struct op *op, uint32_t matrix);
bool order_awaits(const struct plan *p, const struct op *op, uint32_t v);
void order_hide_exchange(struct plan *p);

#endif
