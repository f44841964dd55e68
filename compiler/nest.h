/* compiler/nest.h - what the files of pass nest share: nest.c makes the loops, statement.c puts the operations of each
 * statement into them, fetch.c its operands, carry.c those of states. Internal to the pass. */
#ifndef TEGULA_NEST_H
#define TEGULA_NEST_H

#include "compiler/plan.h"

struct builder {
    struct plan *p;
    uint32_t loop_dims;           /* set of looped and walked dimensions with more than one block */
    int carry_at;                 /* op that first changes the open nest's state, or -1 */
    int nest;                     /* open nest or -1 */
    uint32_t nest_begin;          /* its place in ops */
    uint32_t domain[TG_MAX_BODY]; /* of each statement done */
    uint32_t free[TG_MAX_BODY];
    uint32_t pending[TG_MAX_BODY]; /* the loops at whose end it is complete, with what it reads */
    int8_t value[TG_MAX_BODY];     /* value that each statement made */
    int8_t in_nest[TG_MAX_BODY];   /* nest in which it ran */
    uint32_t n_deferred;           /* updates of states, for the end of the step: everything else reads what arrived */
    struct op deferred[8];
    int8_t deferred_in[8]; /* the nest whose step it ends, or -1: the whole kernel */
};

/* nest.c: looped dimensions that a tile depends on; the statement of this kernel that makes it, or -1. */
uint32_t nest_domain(const struct builder *b, tg_operand operand);
int nest_producer(const struct plan *p, tg_operand operand);
/* The loops of the open nest at whose end all is complete that the statement reads of it. */
uint32_t nest_pending(const struct builder *b, const tg_stmt *s);
/* Puts a statement of that domain into the open nest, a new one, or outside of nests. */
bool nest_enter(struct builder *b, const tg_stmt *s, uint32_t domain);

/* statement.c: the operations of statement `i`. */
bool nest_add(struct builder *b, int i);
void nest_store(struct builder *b, int v, int stmt, uint8_t guard); /* if it is an output of the row */
void nest_insert_before(struct builder *b, struct op op);           /* before the open nest */
/* A map that an earlier loop has made is made again: cheaper than memory. Its value, or -1. */
int nest_make_again(struct builder *b, tg_operand operand);
bool nest_is_matrix_product(const struct plan *p, const tg_stmt *s);
/* Does a matrix product take the map's result, which is then computed while the product fetches its operand? */
bool nest_feeds_product(const struct plan *p, const tg_stmt *map);

/* fetch.c: the value of an operand here, loaded from memory when this kernel has not computed it in reach; -1
 * after a refusal. */
int nest_fetch(struct builder *b, tg_operand operand);
/* The same for a dot product: a computed tile, or one loaded straight into fragments for it. */
int nest_fetch_for_sum(struct builder *b, tg_operand operand, uint8_t guard);
/* The two ends of a product's decay, where it has one, into op->c and op->w. */
bool nest_fetch_decay(struct builder *b, const tg_stmt *s, struct op *op);
uint32_t nest_count_dims(const struct plan *p, tg_operand operand); /* that it has on chip */

/* carry.c: the operations of statement `i`, which carries a state. */
bool nest_carry(struct builder *b, int i, uint32_t domain);
int nest_begin_state(struct builder *b, int i); /* for what reads it before its statement; its value, or -1 */
/* The open nest walks the chunks in the direction of statement `i`, if that has one: as all others in it. */
bool nest_set_way(struct builder *b, int i);
/* Is the product made for nothing but to be added to a state, by itself or with others? It needs no tile then. */
bool nest_is_addend(const struct plan *p, const tg_stmt *product);
/* Moves the operations from `from` on to where the open nest's state begins to change: they read it as it arrived. */
void nest_move_before_carry(struct builder *b, uint32_t from);
/* Refuses a statement that reads a state which has begun to change, block by block of positions. Sums by themselves go
 * before that, nothing else does. True after a refusal. */
bool nest_reads_changed_state(const struct builder *b, const tg_stmt *s);

#endif
