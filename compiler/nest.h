/* compiler/nest.h - what the two files of pass nest share: nest.c makes the loops, statement.c puts the operations of
 * each statement into them. Internal to the pass. */
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
    int8_t value[TG_MAX_BODY];   /* value that each statement made */
    int8_t in_nest[TG_MAX_BODY]; /* nest in which it ran */
    uint32_t n_deferred;         /* updates of states, for the end of the step: everything else reads what arrived */
    struct op deferred[8];
    int8_t deferred_in[8]; /* the nest whose step it ends, or -1: the whole kernel */
};

/* nest.c: looped dimensions that a tile depends on; the statement of this kernel that makes it, or -1. */
uint32_t nest_domain(const struct builder *b, tg_operand operand);
int nest_producer(const struct plan *p, tg_operand operand);
/* Puts a statement of that domain into the open nest, a new one, or outside of nests. */
bool nest_enter(struct builder *b, const tg_stmt *s, uint32_t domain);

/* statement.c: the operations of statement `i`. */
bool nest_add(struct builder *b, int i);
void nest_store(struct builder *b, int v, int stmt, uint8_t guard); /* if it is an output of the row */

#endif
