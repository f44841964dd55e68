/* lower/walk.h - what the files of a kernel on warpgroups share (compiler/walk.c says what such a kernel is).
 *
 *   walk.c           roles, the interpreter of what they execute, the loop over the chunks
 *   walk_producer.c  tensor maps and vectors into the ring
 *   walk_factors.c   exponentials of differences between positions by factors; factors of left operands
 *   walk_decayed.c   the other way of a chunk, with what it decays by in operands
 *   walk_product.c   products, the elements of their accumulators
 *   walk_output.c    maps of these elements; tiles to shared memory and to memory
 *   walk_state.c     the state, from memory and to memory
 *   walk_relay.c     ... from one thread block to the next
 *   walk_sums.c      sums of products, to memory
 *   walk_carry.c     vectors beside the state
 *   walk_rows.c      rows of positions by channels, made on chip
 *   walk_packed.c    where packed sequences end
 *   walk_careful.c   products behind a NaN or an infinity
 *   walk_across.c    tiles of positions by the state's columns
 *   walk_columns.c   two warpgroups with the same rows, each half of the state's columns
 *   walk_cluster.c   two thread blocks add up their parts of the output
 *   walk_turns.c     ... in memory, one after the other
 *   walk_cast.c      neighbours load once what is the same in all of them
 *   wgmma.c          instructions */
#ifndef TEGULA_WALK_H
#define TEGULA_WALK_H

#include "compiler/plan_walk.h"
#include "lower/emit.h"

enum { HALVES_OF_TILE = WALK_TILE / 32, MOST_HEADS = 4 /* of 64 columns at least, which 128 registers have */ };
enum { ALL_GROUPS = 1 }; /* number of the barrier of all that walk; a group's own: 2 and on */

/* ---- wgmma.c: instructions. Addresses in shared memory are i32. --------------------------------------------- */
LLVMValueRef shared_address(struct emit *e, LLVMValueRef offset); /* i32 offset in the arena -> address */
void mbarrier_init(struct emit *e, LLVMValueRef barrier, uint32_t count);
void mbarrier_expect(struct emit *e, LLVMValueRef barrier, uint32_t bytes); /* more bytes will arrive in this phase */
void mbarrier_arrive(struct emit *e, LLVMValueRef barrier);
void mbarrier_wait(struct emit *e, LLVMValueRef barrier, LLVMValueRef parity);
void fence_mbarrier_init(struct emit *e);
/* Between thread blocks: until the number in memory is `turn`, when all that was stored before it was set is seen; sets it. */
void turn_wait(struct emit *e, LLVMValueRef address, LLVMValueRef turn);
void turn_set(struct emit *e, LLVMValueRef address, LLVMValueRef turn);
void fence_async(struct emit *e);      /* what this thread wrote to shared memory, for tensor maps and wgmma */
void let_next_begin(struct emit *e);   /* the kernel behind this one, when all thread blocks have said so */
void wait_for_kernels(struct emit *e); /* ahead on the stream: what they wrote may be read from here on */
void named_barrier(struct emit *e, LLVMValueRef number, uint32_t threads);
void named_barrier_arrive(struct emit *e, LLVMValueRef number, uint32_t threads); /* and goes on */
LLVMValueRef named_barrier_any(struct emit *e, LLVMValueRef number, uint32_t threads,
                               LLVMValueRef x);                             /* i1: is any of theirs true? */
void set_registers_of_warps(struct emit *e, bool more, uint32_t registers); /* setmaxnreg */
/* Of a cluster: this thread block's number; an address in the memory of another one; 16 bytes to there, counted by a barrier
 * beside them; an arrival at a barrier there; at one's own, which waits for bytes; all threads of the cluster. */
LLVMValueRef cluster_rank(struct emit *e);
LLVMValueRef cluster_address(struct emit *e, LLVMValueRef address, LLVMValueRef rank);
void store_far(struct emit *e, LLVMValueRef address, const LLVMValueRef x[4], LLVMValueRef barrier);
void made_here(struct emit *e, LLVMValueRef *x, uint32_t n); /* before what follows, not among it */
void mbarrier_arrive_far(struct emit *e, LLVMValueRef barrier);
void mbarrier_arrive_expecting(struct emit *e, LLVMValueRef barrier, uint32_t bytes);
void cluster_barrier(struct emit *e);
/* A box from a tensor map to shared memory, or back; coordinates as in program.h, tg_map_desc. */
void map_load(struct emit *e, LLVMValueRef map, LLVMValueRef to, const LLVMValueRef at[5], LLVMValueRef barrier);
/* ... to the same place of several thread blocks of the cluster, a bit of `ranks` for each, and to the barrier beside it. */
void map_load_to_many(struct emit *e, LLVMValueRef map, LLVMValueRef to, const LLVMValueRef at[5], LLVMValueRef barrier,
                      LLVMValueRef ranks);
void map_store(struct emit *e, LLVMValueRef map, LLVMValueRef from, const LLVMValueRef at[5]);
void map_add(struct emit *e, LLVMValueRef map, LLVMValueRef from, const LLVMValueRef at[5]); /* to what is there */
void fence_global(struct emit *e); /* what others have stored is there for these */
void map_store_commit(struct emit *e);
void map_store_wait(struct emit *e, bool read_only); /* until sources may be overwritten, or all is written */
void load_matrices(struct emit *e, LLVMValueRef address, LLVMValueRef out[4]); /* ldmatrix.x4.trans */
void store_matrices(struct emit *e, LLVMValueRef address, const LLVMValueRef x[4], bool transposed);

/* A descriptor's lower half; the upper one is the same for all: rows of 128 bytes, 128-byte swizzle. */
LLVMValueRef descriptor(struct emit *e, LLVMValueRef address, uint32_t span_bytes);
/* c[n] (+)= a b, n = columns / 2 registers. a: descriptor, or 4 registers. */
void wgmma_shared(struct emit *e, LLVMValueRef *c, uint32_t columns, LLVMValueRef a, LLVMValueRef b, bool accumulate,
                  bool b_by_columns);
void wgmma_registers(struct emit *e, LLVMValueRef *c, uint32_t columns, const LLVMValueRef a[4], LLVMValueRef b,
                     bool accumulate, bool b_by_columns);
/* The registers are computed before, and what follows sees them after. */
void wgmma_fence(struct emit *e, LLVMValueRef *x, uint32_t n);
void wgmma_commit(struct emit *e);
void wgmma_wait(struct emit *e, LLVMValueRef *x, uint32_t n, uint32_t pending); /* for all products but the last ones */

/* ---- walk.c ------------------------------------------------------------------------------------------------------ */
struct thread_place {
    LLVMValueRef tid, lane, warp, quad_row, quad_column;
};
/* What is in registers while a role's operations are emitted. */
/* What the chunk adds to the other state: one product or the sum of two, 64 columns of it at a time, of two in turn. */
struct addends {
    uint32_t n;
    LLVMValueRef left[2][16], right[2], x[2][WALK_TILE / 2];
    uint32_t turn;                     /* which of x the part has that is issued next, or is under way */
    bool is_begun;                     /* the first part is under way */
    bool is_ahead;                     /* ... of the next head */
    LLVMValueRef begun[WALK_TILE / 2]; /* ... to these registers */
};
struct walk {
    LLVMValueRef group;       /* number of this warpgroup */
    LLVMValueRef batch, head; /* of the thread block */
    struct counted loop;      /* over the steps of the walk, which a segment is some of: those of the sequence are
                               * counted in the order in which they are walked */
    bool in_loop;
    LLVMValueRef forgotten, rested;       /* where transitions end early: the decays so far, is it zero? */
    LLVMValueRef step;                    /* behind the loop: one beyond the last */
    LLVMValueRef end;                     /* behind the loop: the step that the next segment begins with */
    LLVMValueRef stage, parity;           /* slot of the ring, and its barrier's */
    LLVMValueRef round, now;              /* of the ring: slot and value in this step, of those that compute */
    LLVMValueRef stage_slot, parity_slot; /* ... of the warp that loads */
    struct thread_place outside;          /* of the loop */
    LLVMValueRef buffer, third;           /* of shared tiles, of which there are two; of what there are three */
    uint32_t tile;                        /* being emitted, of the group's */
    uint32_t column_head;                 /* ... and of the heads that the state has side by side in its columns */
    LLVMValueRef factored;                /* i1, the same in all lanes: are its vectors factors? NULL: they never are */
    LLVMValueRef put_off[MOST_HEADS];     /* decays of heads that were put off; 1: none */
    const struct plan *decayed;           /* the plan of the other way of a chunk; NULL: there is none */
    LLVMValueRef multipliers
        [2][HALVES_OF_TILE]; /* ... of the warp that loads: its head's factors of both matrices, twice in a word */
    LLVMValueRef kept[WALK_TILE / 2]; /* exponentials that stay for the next map (enum exponentials) */
    LLVMValueRef
        words[PLAN_MAX_VALUES]
             [16]; /* 64 rows of the owner's x 64 positions of a fetched matrix, as the left operand has them */
    LLVMValueRef scaled[16];               /* ... as a product into the state has it */
    LLVMValueRef careful[PLAN_MAX_VALUES]; /* i1, the same in all lanes: there is a NaN among them, or an infinity */
    LLVMValueRef across_seen;              /* 0, or NaN if this thread has seen something bad; in the step */
    LLVMValueRef across_bad;  /* i1, the same in all threads that walk: in the matrix that a tile across is made of */
    uint32_t ahead;           /* products of the next head that are under way with this one's */
    LLVMValueRef columns[16]; /* of the head before: sums of columns that lanes have parts of */
    const struct op *summed;  /* ... which is what makes them; NULL: there are none */
    LLVMValueRef
        so_far[2]; /* ... and what they are of all heads before, where accumulators are a sum over heads already */
    struct addends addends;
    const struct op *addend;             /* what the next sum of the state adds to its product; NULL: nothing */
    LLVMValueRef place[PLAN_MAX_VALUES]; /* where the group's part of an output was put */
};
typedef void emit_walk_op(struct emit *e, struct walk *w, const struct op *op);
struct counted walk_begin(struct emit *e, LLVMValueRef *step);
void walk_enter_head(struct emit *e, struct walk *w, uint32_t head); /* of those side by side in the state's columns */
LLVMValueRef uniform(struct emit *e, LLVMValueRef x); /* the same in all lanes, and the assembler knows it */
LLVMValueRef made_address(struct emit *e, LLVMValueRef stage);
LLVMValueRef own_barrier(struct emit *e, uint32_t v,
                         bool left); /* of a matrix that has a stage of its own: it is loaded; it is left */
void emit_walk(struct emit *e, LLVMValueRef batch, LLVMValueRef head);

/* ---- walk_producer.c --------------------------------------------------------------------------------------------- */
void producer_begin(struct emit *e, struct walk *w); /* before the loop; in a step of it; at its end */
void producer_begin_step(struct emit *e, struct walk *w);
void producer_end_step(struct emit *e, struct walk *w);
LLVMValueRef producer_is_one(struct emit *e); /* i1: the lane that does what one does */
emit_walk_op producer_expect;
emit_walk_op producer_load;
emit_walk_op producer_store;
/* i1: had a step the stage before? From here on the chunk is that step's. */
LLVMValueRef producer_refills(struct emit *e, const struct walk *w);
void producer_go_back(struct emit *e, const struct walk *w);
/* One lane goes on, if a step had the stage before, and that is the step: the block where all others do. */
LLVMBasicBlockRef producer_begin_stage(struct emit *e, struct walk *w);
LLVMValueRef map_argument(struct emit *e, uint32_t tile);
void map_place(struct emit *e, uint32_t tile, LLVMValueRef batch, LLVMValueRef head, LLVMValueRef span,
               LLVMValueRef at[5]);
LLVMValueRef barrier_address(struct emit *e, LLVMValueRef stage, bool empty);

/* ---- walk_across.c ----------------------------------------------------------------------------------------------- */
LLVMValueRef across_column(struct emit *e, const struct walk *w); /* the first that the group has */
void across_put_state(struct emit *e, struct walk *w);            /* rounded, to where all groups have it */
emit_walk_op across_put, across_store;                            /* an output */
emit_walk_op across_product, across_product_of_state; /* of such a tile; of the rounded state's rows by a matrix */
emit_walk_op across_look; /* at a product of positions by the matrix of which such a tile is made */
LLVMValueRef across_sees(struct emit *e, struct walk *w); /* i1: has this thread seen something bad in it? */

/* ---- walk_columns.c ---------------------------------------------------------------------------------------------- */
LLVMValueRef row_group(struct emit *e, const struct walk *w); /* number of the group, of those with rows of their own */
/* x and, where groups share the state's columns, the first that the group has, times `each`. */
LLVMValueRef add_columns(struct emit *e, const struct walk *w, LLVMValueRef x, uint32_t each);
/* What is done to rows once is done by one of the groups that have them; NULL: each has its own. */
LLVMBasicBlockRef begin_one_of_rows(struct emit *e, const struct walk *w);
void end_one_of_rows(struct emit *e, LLVMBasicBlockRef after);
emit_walk_op walk_add_up;

/* ---- walk_factors.c ---------------------------------------------------------------------------------------------- */
emit_walk_op producer_factors; /* of the vectors of several heads that are on their way */
/* Of the slot of a head: the logs of both vectors' factors, the lane's element of each half of the positions; they refer to two parts of a
 * number, or, NULL, to the first vector's middle. i1, the same in all lanes: may they be factors? For those who walk. */
LLVMValueRef head_logs(struct emit *e, LLVMValueRef slot, const LLVMValueRef *reference,
                       LLVMValueRef logs[2][HALVES_OF_TILE]);
void put_flag(struct emit *e, const struct walk *w, LLVMValueRef head, LLVMValueRef has_factors);
/* Factors of left operands, in 16 bits (compiler/rounded.c): a word of those of a position, even, and the next one. */
LLVMValueRef walk_rounded(struct emit *e, uint32_t operand, uint32_t column_class);
/* i1, the same in all lanes: have so many heads, from the first on, factors? */
LLVMValueRef walk_has_factors(struct emit *e, const struct walk *w, LLVMValueRef first, uint32_t heads);

/* ---- walk_decayed.c ---------------------------------------------------------------------------------------------- */
void producer_find_ways(struct emit *e, struct walk *w); /* says which heads have factors; numbers that multiply sums */
emit_walk_op producer_multiply;                          /* both matrices, if all heads have */
LLVMValueRef landed_address(struct emit *e, LLVMValueRef stage); /* the barrier of matrices that have come */
LLVMValueRef walk_is_decayed(struct emit *e,
                             const struct walk *w); /* i1, the same in all lanes: is the chunk done in that way? */
/* What multiplies the sum at a position in the end, of the head that what follows is of; or, of matrices that have their factors, what undoes
 * both. */
LLVMValueRef walk_multiplier(struct emit *e, const struct walk *w, LLVMValueRef position);

/* ---- walk_product.c ---------------------------------------------------------------------------------------------- */
uint32_t walk_registers(const struct plan *p, const struct value *v); /* of one tile */
/* Registers of the value, of the tile being emitted; the values in them, whose number it returns. */
LLVMValueRef *slots(struct emit *e, const struct walk *w, uint32_t v);
LLVMValueRef *sum_slots(struct emit *e,
                        uint32_t v); /* of a computed tile, of which the sum over heads goes to shared memory */
uint32_t take(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef *x);
/* Those of a product that begins a sum: what was in the registers before must not keep them alive; and what comes back. */
uint32_t take_fresh(struct emit *e, uint32_t v, LLVMValueRef *x);
void put_back(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef *x);
/* Rows and columns of this lane. */
LLVMValueRef owner_span(struct emit *e, const struct walk *w); /* number of the tile, of all of the thread block's */
LLVMValueRef head_span(struct emit *e, const struct walk *w);  /* ... of its head's */
void find_head(struct emit *e, const struct walk *w);          /* of the tile, where the thread block has several */
static inline uint32_t spans_of_head(const struct plan *p)
{
    return p->block[p->owner] / WALK_TILE;
}
LLVMValueRef owner_row(struct emit *e, const struct walk *w,
                       uint32_t half);                /* of the owner's block of the thread block */
LLVMValueRef tile_row(struct emit *e, uint32_t half); /* of this lane, in a tile of 64 rows */
/* Widths are multiples of 8, and a warp has 8 rows at a time: the first of them in the thread block's block; and what is done
 * only if this row or column of a block, and so the 7 behind it, is in the tensor. */
LLVMValueRef owner_eight(struct emit *e, const struct walk *w, uint32_t half);
LLVMBasicBlockRef begin_inside(struct emit *e, uint32_t dim, LLVMValueRef first);
void end_inside(struct emit *e, LLVMBasicBlockRef after);
LLVMValueRef tile_column(struct emit *e, uint32_t column_class);
/* Of a tile of positions, of which all columns are `tile`: what is before the group's. */
LLVMValueRef positions_before(struct emit *e, const struct walk *w, uint32_t tile);
LLVMValueRef walk_zero(struct emit *e, const struct walk *w);
/* In which of its buffers a matrix or tile is in this step; where it, or this head's part of it, begins in shared memory, as a
 * pointer and as an address; 16-byte unit `unit` of row `row` of a tile of 128-byte rows. */
LLVMValueRef matrix_slot(struct emit *e, const struct walk *w, uint32_t v);
LLVMValueRef matrix_pointer(struct emit *e, const struct walk *w, uint32_t v);
LLVMValueRef matrix_address(struct emit *e, const struct walk *w, uint32_t v);
LLVMValueRef unit_offset(struct emit *e, LLVMValueRef row, LLVMValueRef unit);
/* Where step k of a sum along the rows of a matrix begins: 16 of 64 columns, then the next span. */
LLVMValueRef along_rows(struct emit *e, LLVMValueRef descriptor, uint32_t k);
/* Where this lane's row of 8 x 8 matrices of a tile positions x owner is, less 16 positions a step. */
LLVMValueRef owned_address(struct emit *e, const struct walk *w, uint32_t v);
/* The tile's elements of a matrix positions x owner, packed as the left operand has them, 16 positions to 4 words:
 * those of step k; and the one that lies where register r of an accumulator is. */
void load_owned(struct emit *e, const struct walk *w, uint32_t v, uint32_t k, LLVMValueRef words[16]);
void load_all_owned(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef words[16]);
LLVMValueRef owned_element(struct emit *e, const LLVMValueRef words[16], uint32_t r);
emit_walk_op walk_fetch, walk_scale; /* a left operand; that of a product into the state, ahead */
emit_walk_op walk_product;           /* issues it */
void await_product(struct emit *e, struct walk *w, uint32_t v, uint32_t pending); /* pending: under way, issued later */
emit_walk_op walk_decay, walk_put_off, walk_catch_up;
LLVMValueRef walk_weight(struct emit *e, const struct plan_weight *weight, LLVMValueRef position);
emit_walk_op walk_begin_sum; /* issues the first part of the product that the next one sums up */
/* This thread's part of the sum over the tile of the state times a product of loaded matrices, which is not kept, in two sums;
 * where a value of rows asks for it, those of its two rows. */
void dot_with_state(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef sums[2]);

/* ---- walk_output.c ----------------------------------------------------------------------------------------------- */
/* The row of a tile of 64 that this lane addresses of one of four 8 x 8 matrices, 16 bytes each, two below each other. */
LLVMValueRef lane_row(struct emit *e, LLVMValueRef matrix);
emit_walk_op walk_map;
emit_walk_op walk_put;
emit_walk_op walk_store;
/* The tile from where it lies, by this thread. */
void walk_store_tile(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef from);

/* ---- walk_state.c ------------------------------------------------------------------------------------------------ */
emit_walk_op walk_init;
LLVMValueRef is_first_segment(struct emit *e); /* i1: this thread block begins the sequence */
LLVMValueRef walk_is_inner(struct emit *e); /* i1: another segment follows this thread block's, and needs its state */
LLVMValueRef walk_is_transition(struct emit *e); /* i1: this thread block makes one of the transitions */
emit_walk_op walk_enter;                         /* with the state that the segment begins with */
/* Writes that state, if a segment begins with the step; and the step of the last one of them. */
emit_walk_op walk_start;
emit_walk_op walk_keep;
LLVMValueRef walk_first_step(struct emit *e);                /* of the segment */
LLVMValueRef walk_buffer(struct emit *e, LLVMValueRef step); /* of two that steps use in turn */
LLVMValueRef walk_last_start(struct emit *e);
emit_walk_op walk_leave;
emit_walk_op walk_meet;
/* Is the transition zero (transition.c)? Begins before the loop, ends a step of it. Of the warp that loads: is the stage one too many? */
void walk_begin_rest(struct emit *e, struct walk *w);
emit_walk_op walk_rest;
void walk_end_at_rest(struct emit *e, struct walk *w);
void init_rest(struct emit *e);

/* ---- walk_relay.c ------------------------------------------------------------------------------------------------ */
/* Of the program's first kernel: nobody has left a state yet, or added to a sum. */
void clear_numbers(struct emit *e, uint32_t tile);
/* The state from the thread block of the segment before, and to that of the next one. */
emit_walk_op walk_take;
emit_walk_op walk_pass;

/* ---- walk_sums.c ------------------------------------------------------------------------------------------------- */
LLVMValueRef warp_of_all(struct emit *e, const struct walk *w); /* number of this warp */
emit_walk_op walk_row_sums;
emit_walk_op walk_column_sums;
void walk_end_columns(struct emit *e, struct walk *w); /* of the head before, if its sums are not made yet */
emit_walk_op walk_state_sum, walk_tile_sum;
emit_walk_op walk_state_rows;       /* a sum for each row of the state */
emit_walk_op walk_store_state_rows; /* ... to memory */
/* Values of positions that are made from sums of rows: each warp computes them all, two a lane. */
emit_walk_op walk_positions_vector;
emit_walk_op walk_store_sum;
/* Of a state behind the last chunk: this lane's part of a sum of it; the whole, to memory. */
void walk_meet_sum(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef sum);
void walk_leave_sum(struct emit *e, const struct walk *w, const struct op *op);

/* ---- walk_carry.c ------------------------------------------------------------------------------------------------ */
emit_walk_op walk_gather; /* this thread's part of the chunk's sums */
LLVMValueRef walk_carried_slot(struct emit *e, const struct walk *w, LLVMValueRef buffer); /* of this group's copy */
emit_walk_op walk_store_gathered; /* behind the chunk's barrier */
/* The copy: from memory before the first chunk; into the other buffer behind the chunk's barrier; to memory, as it is read, on a
 * condition. */
void walk_init_carried(struct emit *e, const struct walk *w, const struct op *op);
emit_walk_op walk_add_carried;
emit_walk_op walk_store_carried;
void walk_keep_carried(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef condition);

/* ---- walk_rows.c ------------------------------------------------------------------------------------------------- */
/* What makers do for each row, which begins with the operation; returns the index of its end. */
uint32_t walk_rows(struct emit *e, struct walk *w, uint32_t begin);
void walk_load_channel(struct emit *e, const struct op *op); /* a vector of channels: the maker's */

/* ---- walk_packed.c ----------------------------------------------------------------------------------------------- */
LLVMValueRef is_whole(struct emit *e);   /* i1: the chunk has all its tokens */
emit_walk_op walk_clear;                 /* what is behind the end of what has been loaded, before it is read */
void walk_await_cleared(struct emit *e); /* ... where makers have cleared it */
/* The rows first ... first + n - 1 of a chunk that is not whole, of a span that lies in shared memory; its number in the thread block. */
void walk_store_rows(struct emit *e, const struct op *op, LLVMValueRef span, LLVMValueRef from, LLVMValueRef first,
                     uint32_t n);

/* ---- walk_careful.c ---------------------------------------------------------------------------------------------- */
/* The output's positions that a value at a position reaches: up to it, or from it on? */
bool walk_is_backward(const struct emit *e, const struct op *op);
/* Is there a NaN among the words, or an infinity? `soon`: the answer is waited for. */
LLVMValueRef careful_sees(struct emit *e, const LLVMValueRef words[16], bool soon);
/* Before the product by the tile: bad values out of its left operand. `kept`: the state's products take the words too. */
void careful_left(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef left[16], LLVMValueRef careful,
                  bool kept);

/* ---- walk_cluster.c ---------------------------------------------------------------------------------------------- */
LLVMValueRef cluster_index(struct emit *e, uint32_t dim); /* of this thread block, in the dimension */
void cluster_init(struct emit *e);
void cluster_ready(struct emit *e, const struct walk *w,
                   const struct op *op); /* this warp does not read its part of the matrix any more */
/* Of this thread block's part of the tile; its first half becomes the sum of this thread block's half of the positions,
 * by way of the place where the group's part of matrix a was. */
emit_walk_op cluster_send, cluster_receive;          /* the half that is kept is the first of the tile behind it */
LLVMValueRef cluster_first_position(struct emit *e); /* of that half, in the chunk */

/* ---- walk_turns.c ------------------------------------------------------------------------------------------------ */
/* By all lanes of the warp that loads, of the chunk that was in the stage before; by one lane, of the chunk at hand. */
void turn_await(struct emit *e, const struct walk *w);
void turn_pass(struct emit *e, struct walk *w);
void turn_await_here(struct emit *e, const struct walk *w);
void turn_pass_here(struct emit *e, const struct walk *w);
/* The tile, or its sum with what is there. */
void turn_store(struct emit *e, const struct walk *w, LLVMValueRef map, LLVMValueRef from, const LLVMValueRef at[5]);

/* ---- walk_cast.c ------------------------------------------------------------------------------------------------- */
void cast_init(struct emit *e);
void cast_open(struct emit *e, LLVMValueRef stage); /* by the warp that fills the ring: it is empty here */
void cast_wait(struct emit *e, LLVMValueRef stage, LLVMValueRef parity); /* until it is in the others */
/* Of the thread blocks that share the loads of a matrix: this one's number; all of them, a bit for each. */
LLVMValueRef cast_index(struct emit *e, const struct value *v);
LLVMValueRef cast_ranks(struct emit *e, const struct value *v);

#endif
