/* compiler/verify_order.h - what the two files that check the order of a kernel on warpgroups share: verify_order.c, which has the rules,
 * and verify_stages.c, which has those of stages and of what roles and thread blocks tell each other. */
#ifndef TEGULA_COMPILER_VERIFY_ORDER_H
#define TEGULA_COMPILER_VERIFY_ORDER_H

#include "compiler/plan.h"

struct check {
    const struct plan *p;
    uint32_t at;
    tg_bits defined;
    tg_bits flying; /* accumulators of products under way */
    tg_bits
        lefts[PLAN_MAX_VALUES]; /* ... and which fetched matrices each of them has on the left, and what on the right */
    tg_bits rights[PLAN_MAX_VALUES];
    uint32_t issued, last[PLAN_MAX_VALUES]; /* products; the number of each value's last one */
    tg_bits fetched;                        /* left operands in registers */
    tg_bits scaled;                         /* ... for products into the state in registers of their own */
    tg_bits put;                            /* computed tiles in shared memory */
    tg_bits added;                          /* ... of which the sum over heads has been made */
    tg_bits read;    /* ... that a group may still read: by products since the last barrier of all */
    tg_bits covered; /* matrices where an output is already */
    tg_bits placed;  /* ... and all places where one is */
    tg_bits stored;  /* outputs in buffers of their own that a store reads, or has read without a barrier since */
    tg_bits cleaned; /* fetched matrices that a masked product has taken NaN out of, and */
    tg_bits cleans[PLAN_MAX_VALUES]; /* ... which of them the product that makes a value has */
    tg_bits unfenced;                /* written to shared memory: for wgmma not yet, for other warps not yet */
    tg_bits unseen;
    tg_bits ungrouped;  /* ... for other warps of the group not yet */
    tg_bits left, owed; /* carried vectors: changed in this step, or in the one before, since the last barrier */
    bool storing;       /* a store to memory reads the stage */
    bool writing;       /* ... and is not known to be done */
    bool lags;          /* a stage has been left that a store reads, but not by the thread that stores */
    bool left_by_few;   /* ... now it has, where thread blocks are few */
    tg_bits loaded;     /* of the stage */
    bool in_stage, in_loop, expects, has_barrier;
    bool factors, expects_landed, landed,
        multiplied;      /* what is made of vectors, and matrices that are multiplied by it before the stage is full */
    bool owes_decay;     /* the state, to the chunk before */
    bool is_open, tells; /* the stage, in all of a cluster; this thread block has said so */
    tg_bits ready,
        sent;       /* outputs: the other thread block knows that the place of its part is free; ours is under way */
    bool awaited;   /* products, since the step began */
    tg_bits parts;  /* products by the columns of the state that the group has: not added up yet */
    bool adds_up;   /* another group may still read what it has left for the sum before */
    uint8_t packed; /* 1 + the value that the state has been a left operand for since it was awaited */
    tg_bits by_columns;                 /* products by these columns of the state */
    uint8_t next_part[PLAN_MAX_VALUES]; /* of each product by it; 0: all of them are made, or none */
    uint8_t columns, parts_ahead;       /* ... and how many before them are under way, too */
    bool of_state, sums; /* ... that of the state alone: its sums are behind one, and its products behind another */
    bool exchanged,
        begins;         /* a barrier is owed: the group's threads read what came; all read what carries begin with */
    bool taken, passed; /* a relayed state, before the loop and behind it */
    bool told;          /* the step has asked whether it is the last */
    bool made;          /* ... has said that its tiles are whole */
    bool put_told;      /* ... that outputs are in their stage; who loads has waited for those of the stage */
    tg_bits handed, handed_last; /* ... and stored these, and those of the last steps */
    bool has_turn, owes_turn;    /* who adds in turn has waited for its turn, and has to pass it on */
    bool cleared;                /* ... knows that nothing of the next packed sequence is in its stage */
    bool of_head;                /* among what is done for each head, or for each tile */
    bool of_row;                 /* ... for each row */
    tg_bits there,
        left_own; /* matrices with stages of their own, in this step: loaded, or open to be; left, or loaded */
    tg_bits expected_own, awaited_own,
        untold;             /* ... whose bytes the barrier waits for; that who loads has awaited itself */
    tg_bits seen, looked;   /* matrices that this thread, and all, have looked for NaN in, in this step */
    tg_bits by_rounded;     /* products by the rounded state, which warps of the group may still read */
    const struct op *stays; /* the map before, of the same step, whose exponentials do; NULL: it leaves none */
    bool ended;             /* behind a barrier of all groups that is behind everything that they work on */
    bool again;             /* the second time through the loop: what one step leaves for the next */
};

/* verify_order.c: reports the rule; false. */
bool order_broken(const struct check *c, const char *rule);
/* ... is the value loaded to the ring; the number of its own stage, 0: it has none; whatever is loaded to the same place; does the
 * operation write its value? */
bool order_is_ring(const struct plan *p, uint32_t v);
uint32_t order_own_stage(const struct plan *p, uint32_t v);
tg_bits order_loaded_to(const struct plan *p, uint32_t v);
bool order_is_written(const struct op *op);

/* verify_stages.c: what each operation does for stages: filled and emptied, and of their own; the stage of the step before; tiles that makers
 * make; outputs that are handed over; clusters. */
bool order_check_ring(struct check *c, const struct op *op);
bool order_check_left_stage(struct check *c, const struct op *op);
bool order_check_made(struct check *c, const struct op *op);
bool order_check_handed(struct check *c, const struct op *op);
bool order_check_cluster(struct check *c, const struct op *op);

#endif
