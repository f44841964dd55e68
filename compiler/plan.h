/* compiler/plan.h - the plan of one kernel: a small explicit tile program between schedule and LLVM IR.
 *
 * A kernel is a straight list of tile operations with at most a few loop nests in it. A nest is one flat
 * loop over the blocks of one or two dimensions; operations of the outer dimension are guarded by "first"
 * or "last inner block" instead of being nested, so that one ring of asynchronous copies feeds the whole
 * nest without draining at the end of every inner loop.
 *
 * A kernel on warpgroups has roles, each with its own list: the operations in the order in which it executes them, with
 * what it waits for, arrives at and forgets. lower/walk.c lowers it one by one.
 *
 * The passes, in order: plan.c.
 *
 * What is asked of one kind of kernel alone is beside this: plan_tile.h (products by mma.sync), plan_walk.h (warpgroups),
 * plan_channel.h (decays of channels), plan_thread.h (no products); of the program that they are of: plan_program.h. */
#ifndef TEGULA_PLAN_H
#define TEGULA_PLAN_H

#include "compiler/compiler.h"
#include "dsl/slice.h"

#include <stdbool.h>

enum { PLAN_MAX_VALUES = 64, PLAN_MAX_OPS = 192, PLAN_MAX_NESTS = 4, PLAN_MAX_LOADS = 24 };
/* Of a kernel without products: most steps that it loads ahead, and what of each. */
enum { PLAN_STEPS_AHEAD = 32, PLAN_MAX_AHEAD = PLAN_MAX_LOADS + 8 };
enum { PLAN_SHARED_OF_DRIVER = 1024 }; /* that it keeps of each thread block's shared memory */

/* Tensors the compiler adds to those of the algorithm: relayed states and whose turn it is, counts of tokens,
 * boundaries of packed sequences, slots in the pool; how many parts each chunk's sum has. */
enum {
    TILE_ADDED = TG_MAX_TILES - 5,
    TILE_RELAY = TILE_ADDED,
    TILE_COUNT,
    TILE_TURN = TILE_COUNT, /* decode steps relay nothing */
    TILE_INDEX_OUT,
    TILE_CU,
    TILE_SUMMED = TILE_CU, /* of packed sequences no sums are made in turn */
    TILE_INDEX,
    N_ADDED = 5
};

/* Where a tile lives while a kernel works on it. */
enum space {
    SPACE_NONE,
    SPACE_FRAGMENT, /* registers, in the accumulator layout of the matrix instruction */
    SPACE_OPERAND,  /* nowhere: computed on the fly while the operand of a matrix instruction is fetched */
    SPACE_MATRIX,   /* shared memory, rows of swizzled 16-byte units: a ring of stages; computed: two buffers */
    SPACE_VECTOR,   /* shared memory, one value after the other: a ring of stages; computed: buffers of its scope */
    SPACE_ROWS,     /* registers: the values of the rows of this thread's fragments */
    SPACE_THREAD,   /* registers of a thread kernel: thread t has element t of the block; one for every held position */
    SPACE_UNIFORM,  /* registers: every thread has the same value */
    SPACE_CHANNEL, /* registers of a kernel that makes decays of channels: a warp has 16 rows, a lane some channels of each; on
                      warpgroups of makers, each of which has two channels, of some rows after the others (walk_rows.c) */
    SPACE_PARTS, /* shared memory: a sum that warpgroups have made parts of, two buffers; who reads it adds them up */
    SPACE_N_KINDS
};

/* Who has a copy of its own of what is computed into shared memory. */
enum scope { SCOPE_BLOCK, SCOPE_GROUP, SCOPE_WARP, SCOPE_N_KINDS };

/* A tile as this kernel uses it: (tile, position). The same tensor read at query and at key positions is
 * two values. */
struct value {
    tg_operand operand;
    bool by_head;       /* a walk of several heads: each has its own, in shared memory one behind the other */
    bool summed;        /* ... or, of a tile that goes to shared memory and of outputs, it is the sum of theirs */
    uint8_t n_dims;     /* on-chip dimensions: without chunk */
    uint8_t dims[3];    /* three only in thread kernels that hold chunks */
    uint32_t extent[3]; /* elements of the block on each of them, a multiple of 16 in matrix kernels */
    enum space space;
    enum scope scope;   /* SPACE_VECTOR, computed */
    bool late;          /* SPACE_PARTS: made behind the barrier of the step, so whole behind that of the next one */
    tg_dtype dtype;     /* element type where it lives */
    int8_t stmt;        /* statement that computes it here, or -1: loaded from memory */
    int8_t nest;        /* nest that it is loaded or computed in; -1: outside of nests */
    bool outer;         /* in a nest of two loops: belongs to the outer one */
    bool stored;        /* written to memory by this kernel */
    bool lower;         /* positions x positions of a chunk: nobody wants what is above the diagonal, or it is zero */
    int8_t shared_with; /* the value that loads the same tile to the same place; -1: none */
    uint8_t
        place;   /* of what chunks write by tensor maps, and of rows: the matrix in whose place it is put, or itself */
    bool direct; /* loaded straight into registers, right before its only use, rows by rows */
    bool apart;  /* a state that threads share: its decay is a number of its own, until that gets small */
    bool rows_apart; /* ... its decays of rows are in what it meets, until they get small (rows_apart.c) */
    bool staged;     /* in shared memory for all steps of its nest, uniform or fetched; or uniform, while a nest runs */
    uint8_t stages;
    uint8_t
        own_stage; /* of a matrix that a ring loads: 1 + its number among those that have one stage, with barriers of its own; 0: it
                        * has those of the ring */
    bool
        told; /* ... which the state is made of, so that it is left at the end of a step: those who walk are told by the warp that
                        * loads, in the middle of the next one, that it is there */
    uint32_t row_bytes;   /* SPACE_MATRIX: pitch of a row; staged: of a step */
    uint32_t stage_bytes; /* SPACE_MATRIX, SPACE_VECTOR, staged */
    uint32_t offset;      /* in shared memory */
};

enum op_kind {
    OP_LOAD,     /* memory -> v; asynchronous for shared memory */
    OP_COMMIT,   /* close a group of asynchronous copies */
    OP_WAIT,     /* until at most `n` groups are pending */
    OP_BARRIER,  /* all threads of the block */
    OP_PROLOGUE, /* issue the first steps of nest `n`, steps_ahead of them */
    OP_ISSUE,    /* issue the step of nest `n` that the ring has room for, and close its group */
    OP_NEST,     /* begin of nest `n` */
    OP_END,      /* end of nest `n` */
    OP_ZERO,     /* v = 0 */
    OP_COPY,     /* v = a, all of it */
    OP_INIT,     /* v = initial state from memory, or 0 when that tensor is absent */
    OP_ENTER,    /* v = `tile` of the segment: the state with which it begins */
    OP_MAP,      /* v = expression of statement */
    OP_SCAN,     /* v = prefix sum or maximum of a along the block, continued from the block before */
    OP_TOTAL,    /* v += sum of a over the block, or v = max(v, ...) */
    OP_CONTRACT, /* v += a b, on tensor cores */
    OP_ADD_UP, /* v = the sum of what the warps that share the columns of a state have of it, by way of scratch memory */
    OP_SOLVE,  /* v = (I + strictly lower a)^-1 */
    OP_ADDEND,   /* product of a and b, which the OP_DOT behind adds to its own */
    OP_BEGIN,    /* the first of the products that the OP_DOT behind sums up, of which it is the rest: under way */
    OP_DOT,      /* v += sum of a b (of a when the statement has no b) along rows, or over the whole tile */
    OP_DECAY,    /* v *= 2^a */
    OP_PUT_OFF,  /* ... later, */
    OP_CATCH_UP, /* ... now, if that was put off */
    OP_WALK,     /* v[chunk] = state w as it arrives; w = 2^c[chunk] w + a[chunk] b[chunk]; over held chunks */
    OP_COMPOSE, /* segment by segment: `tile` = v; v = 2^sum(a) v + what was in `tile`: a are the decays of its chunks, or v: none */
    OP_STORE, /* v -> memory; `tile` says which tensor */
    /* of kernels on warpgroups alone, see order.c */
    OP_LEAVE,     /* v as it is behind the last step -> `tile` */
    OP_MEET,      /* v = sum of the state a, as it is behind the last step, times `tile` of the segment */
    OP_START,     /* v -> `tile`, if a segment begins with the next step */
    OP_KEEP,      /* v -> `tile`, in the slot of the step */
    OP_TAKE,      /* the state v as the thread block of the segment before has left it, unless this is the first */
    OP_PASS,      /* the state v to that of the next segment, unless this is the last */
    OP_TILES,     /* begin of what is done for each of a group's tiles of 64 rows */
    OP_END_TILES, /* ... and its end */
    OP_ROWS,      /* begin of what makers do for each row of a chunk's positions */
    OP_END_ROWS,  /* ... and its end */
    OP_WAYS,      /* begin of what is done in another way where decays are small (plan_ways) */
    OP_END_WAYS,  /* ... and its end */
    OP_HEADS,     /* begin of what all groups do for each head of the thread block */
    OP_END_HEADS, /* ... and its end */
    OP_CLEAR,     /* 0 to what the stage has of the next packed sequence */
    OP_FETCH,     /* the tile's part of matrix v, as the left operand has it; among rows: its element */
    OP_FACTORS,   /* what the warps that load make of the stage's vectors */
    OP_MULTIPLY,  /* ... and both matrices of plan_ways, times their factors */
    OP_SCALE, /* ... as a product into the state has it, in registers of its own: one by a tile is to be under way from the others */
    OP_PUT, /* v, rounded -> shared memory: its own tile, or the place of a: a matrix, or v itself; the state, to where it is for all groups */
    OP_SEND,    /* half of v to the other thread block of the cluster, to the place of a */
    OP_RECEIVE, /* ... and to the other half what has come from there */
    OP_EXPECT,  /* the barrier waits for the bytes of the matrices that come */
    OP_ARRIVE,  /* at `sync` */
    OP_AWAIT,   /* `sync`; of a product v's, with `n` that were issued later still under way */
    OP_FENCE,   /* what was written to shared memory is seen by tensor maps and wgmma */
    OP_REST,    /* nothing is left of the transition v, whose chunk decays by 2^a: no more chunks (transition.c) */
    OP_FORGET,  /* `n`: what is known of places is computed again, for registers are what is short */
    OP_N_KINDS
};

/* When an operation in a nest of two loops runs, or among a group's tiles; neighbours under one guard share it. */
enum guard {
    GUARD_ALWAYS,
    GUARD_FIRST,
    GUARD_LAST,
    GUARD_LATER, /* of the step before this one of the walk, if there is one */
    GUARD_ONE,   /* one lane does it */
    GUARD_STAGE, /* ... of the step that had the stage before, if there was one */
    GUARD_FEW, /* where thread blocks are fewer than three quarters of the GPU's multiprocessors, so that memory is not the limit */
    GUARD_MANY /* ... or are not */
};

/* Who executes an operation: all warps of the thread block, or in a kernel on warpgroups the warp that loads, those that make
 * tiles of positions for the others, if there are any, or those that walk. */
enum role_kind { ROLE_ALL, ROLE_LOAD, ROLE_MAKE, ROLE_WALK, ROLE_N_KINDS };

struct role {
    uint32_t first_warp, warps;
    uint32_t registers; /* of a thread, from the start of its role on; 0: as the kernel was launched */
};

/* What is waited for, arrived at, or a barrier of. */
enum sync {
    SYNC_BLOCK,   /* all threads of the block */
    SYNC_GROUPS,  /* all that compute */
    SYNC_GROUP,   /* those of a warpgroup */
    SYNC_PRODUCT, /* products under way */
    SYNC_PART,    /* ... but the last one, whose left operand has registers of its own */
    SYNC_STATE, /* those of the step before, which are done: the assembler does not see it where no other was awaited since */
    SYNC_LANDED,  /* the matrices of a stage of the ring have come, before they are multiplied by their factors */
    SYNC_FULL,    /* stage of the ring: what was loaded is there */
    SYNC_EMPTY,   /* ... and nobody reads it any more */
    SYNC_OPEN,    /* ... in none of the thread blocks of the cluster */
    SYNC_READ,    /* stores to memory have read shared memory */
    SYNC_WRITTEN, /* ... and are done */
    SYNC_BEHIND,  /* those of the step before have read, whose stage is empty for the thread that stores, too */
    SYNC_PUT,     /* the output is in the stage */
    SYNC_MADE,    /* the tiles of positions of the stage are whole */
    SYNC_LOADED,  /* the matrix v, which has a stage of its own, is there */
    SYNC_TOLD,    /* ... the warp that loads tells all who walk, who meet at that barrier */
    SYNC_LEFT,    /* ... and nobody reads it any more */
    SYNC_CLEARED, /* what the stage has behind the end of a packed sequence is zero: makers have seen to it */
    SYNC_TURN,    /* the thread blocks before this one have added their parts of the output to memory */
    SYNC_READY,   /* the other thread block of the cluster has read its part of the matrix for the last time */
    SYNC_N_KINDS
};

enum forget { FORGET_THREAD = 1, FORGET_BASES = 2, FORGET_CHUNK = 4 };

/* Of two maps that have 2^ of the same difference of positions, in their n: the first one leaves it in registers for the second. */
enum exponentials { EXPONENTIALS_KEPT = 1, EXPONENTIALS_TAKEN = 2 };

enum op_flags {
    OP_CAREFUL = 1,    /* OP_FETCH, or OP_BARRIER what was copied of v: looks for NaN and infinities; products by masked
                        * tiles heed what it has seen */
    OP_SCALED = 2,     /* times the factors of positions that c is made with */
    OP_OF_PRODUCT = 4, /* OP_DOT: of w and the product of a and b, which is not kept */
    OP_ONTO = 8,       /* a product is added to what is there */
    OP_DECAYED = 16,   /* times 2^c before */
    OP_AHEAD = 32,  /* OP_LOAD, OP_INIT: for all steps of a round, before the first of them. OP_MAP: what it reads of a
                     * loaded matrix has been fetched. OP_CONTRACT: its left operand has been made by OP_SCALE */
    OP_BEHIND = 64, /* OP_STORE: of all steps of a round, behind the last of them */
    OP_ONCE = 128   /* OP_LOAD: before the first step of the loop that it is in */
};

/* In a kernel that runs once for every head of a group: before, for each of them, or after. */
enum when { WHEN_EACH, WHEN_BEFORE, WHEN_AFTER };

struct op {
    uint8_t kind;  /* enum op_kind */
    uint8_t role;  /* enum role_kind */
    uint8_t when;  /* enum when */
    uint8_t guard; /* enum guard */
    uint8_t sync;  /* enum sync */
    uint8_t flags; /* enum op_flags */
    int8_t stmt;   /* statement it comes from: diagnostics and .loc; -1: none */
    uint8_t tile;  /* OP_STORE, OP_INIT, OP_ENTER, OP_COMPOSE: the tensor in memory */
    uint8_t v, a, b;
    uint8_t c, w; /* OP_WALK: decay and running state; OP_CONTRACT, OP_DOT with a decay: decay and since; OP_SCALED,
                     OP_OF_PRODUCT */
    uint8_t n;
};

struct loop {
    uint8_t dim;
    uint32_t block;
    uint32_t trips; /* 0: a run-time number */
};

struct nest {
    uint32_t n_loops;
    struct loop loops[2]; /* outer, inner; a nest of one loop has only [0] */
    uint32_t stages;
    uint32_t
        steps_ahead; /* whose copies are under way before the first: one fewer than slots, or all if there are no more */
    uint32_t n_loads;
    uint8_t loads[PLAN_MAX_LOADS]; /* values filled by the ring, one commit group a step */
    bool causal_end;               /* key blocks above the diagonal are not visited */
    bool causal_begin;             /* query blocks above the diagonal are not visited */
    bool reverse;                  /* chunks from the last to the first */
    bool shared_out;               /* the threads share out what is uniform in it (share.c) */
    bool halves;                   /* of rounds: one is loaded while the other is computed */
    uint8_t steps;                 /* of a round, in a kernel without products (rounds.c) */
    uint8_t
        blocks; /* ... and so many blocks of the outer loop, each with all steps of the inner one; 0: less than one */
    tg_bits early; /* of a walk of tokens: values that are made of all of them before it (early.c) */
    tg_bits kept;  /* ... and leave these values in shared memory meanwhile, for they do not touch them */
};

/* The other way of a chunk whose decays are small, with the decay in operands (decayed.c). */
struct plan_ways {
    bool any; /* is there one? */
    bool
        scales; /* the warps that load multiply both of the tile's matrices by their factors; else what products have on the left
                        * is multiplied by one factor, and the sum by the other */
    bool decays_first; /* the state decays before products by it, else behind those into it */
    int number;        /* value: what the factors' logs refer to; -1: 0 */
    uint8_t tile;      /* value: the tile of positions, */
    uint8_t product;   /* ... what it is without the decay: accumulators, */
    uint8_t inter;     /* ... the product by the state, */
    uint8_t weighted;  /* ... and it with its weight, with which */
    uint8_t sum;       /* ... this sum begins */
    /* where matrices are multiplied: of queries, times the tile's scalars, and of keys */
    uint8_t matrices[2];
    /* ... where the left operand is: */
    uint8_t operand; /* value: the operand whose factor it has */
    bool of_rows;    /* what multiplies the sum is of the vector factor_rows, not of factor_columns */
    int scale;       /* scalar by which the sum is multiplied where it is read; -1: none */
    bool undoes;     /* a diagonal of the tile is read without the factors */
    uint32_t
        offset; /* shared memory: what the sum, or a diagonal, is multiplied by in the end, 64 floats for each stage and head */
    uint32_t landed_offset; /* ... barriers of matrices that have come, one for each stage */
};

struct plan {
    /* what it was made from */
    const tg_schedule *schedule;
    const tg_algorithm *algorithm;
    const tg_kernel_row *row;
    const tg_target *target;
    tg_shape_class shape;
    const struct tg_slices *slices;                           /* of all rows */
    struct tg_slice slice;                                    /* of this one */
    uint16_t parts[TG_MAX_TILES], heads_summed[TG_MAX_TILES]; /* plan_parts and plan_heads_summed, of each tile */
    tg_bits for_heads;                                        /* plan_is_for_heads */
    const tg_sink *sink;
    char name[64];

    uint32_t threads;
    uint32_t thread_dim; /* a thread kernel (no matrix products): the dimension that the threads share out; else 0 */
    uint32_t each;       /* ... and how many elements of it a thread has, side by side */
    uint32_t sharers; /* ... and how many threads have the same ones and share out dqk, which is held; 0: it is not */
    bool backwards;   /* ... which is the chunks, the last one first: reverse scans */
    uint32_t held;    /* ... the set of positions, or TG_CHUNK, held whole in registers of every thread; also the
                          * threads' dimension where each has several, and dqk where threads share it out */
    bool by_token;    /* ... a decode step that walks its tokens: each is a chunk of one position */
    uint32_t warps_m, warps_n; /* how the warps share a fragment tile's rows and columns */
    bool
        shares_columns; /* ... columns of states alone: what else is in registers each of warps_n has (columns.c), or each warpgroup */
    bool
        to_and_fro; /* ... 16 rows after 16 rows, to the last warp and back to the first: each has about as much below the diagonal */
    uint32_t block[TG_N_DIMS]; /* elements of a block of each dimension the kernel iterates over */
    uint32_t segment;          /* chunks that a thread block walks; 0: all of the sequence */
    bool relays;               /* ... from the state that the thread block of the segment before has left: relay.c */
    bool sequences_first; /* neighbours in the grid are heads and sequences, which load the same rows; else positions */
    uint32_t cluster;     /* thread blocks of a cluster, neighbours in the grid; 0: there are none */
    uint8_t along[TG_N_DIMS]; /* ... of which so many are neighbours in the dimension; 1: it is not the cluster's */
    uint32_t adds;            /* dimension in which two of them add up their parts of the output; 0: none do */
    bool makes_segments;      /* ... from a state of zero, which goes to memory */
    bool
        finals_only; /* a walk on warpgroups that writes final states and nothing else: of segments the last of a sequence has to be walked */
    bool reads_state;  /* ... which are made of the states of chunks before */
    uint32_t composes; /* chunks of the segments whose states a kernel without products composes; 0: another kernel */
    uint32_t
        transition; /* tile that takes the transitions of the segments that it makes or composes; 0: it is a number */
    bool
        transposed; /* ... whose transpose it is; of a row that makes segments: that there is one, which it does not make */
    bool rests;     /* thread blocks that make transitions end where these are zero */
    uint32_t rest_offset; /* ... shared memory for a number of each stage of the ring: no more are to be filled */
    uint32_t starts;   /* chunks of the segments whose first states it writes, walking all of them; 0: another kernel */
    bool starts_alone; /* ... and writes nothing else of them */
    bool carries;      /* a kernel on warpgroups: vectors beside the state */

    /* A kernel on warpgroups (TG_MMA_WGMMA), see walk.c. */
    struct role roles[ROLE_N_KINDS];
    uint32_t groups; /* warpgroups that walk; 0: another kind of kernel */
    bool has_makers; /* one more makes tiles of positions, or rows, for them, in stages of the ring */
    uint32_t
        made_offset; /* ... barriers of these, of each stage, and of the one stage that is cleared; or of outputs in it */
    uint32_t owner; /* dqk or dhv: what the output has, in tiles of 64 dealt out to the groups */
    uint32_t heads; /* of a group of heads, which a thread block works on, all by TG_L, so many together by TG_P; 1 */
    bool
        own_heads; /* ... of which each warpgroup has whole ones, whose tiles of positions it makes without the others */
    bool sums_heads; /* ... whose outputs are summed up: their states are side by side in columns; otherwise in rows */
    bool factors;    /* ... exponentials of differences between positions are made of factors (factor.c): */
    uint8_t factor_rows, factor_columns; /* ... of these vectors */
    uint32_t factors_offset; /* ... shared memory for a number of each stage and head: are the vectors factors? */
    uint8_t rounded
        [PLAN_MAX_VALUES]; /* of an operand that is a matrix times a vector: 1 + the vector, which is rounded (rounded.c) */
    struct plan_ways ways; /* of a chunk (decayed.c): is there another one, and */
    bool decayed;          /* ... is this plan's order of operations that? */
    uint32_t tiles;        /* of a warpgroup: of its heads, or some of one's */
    uint32_t state_part;   /* columns of the state that are a left operand at a time */
    bool overlaps_parts;   /* ... and the next ones while a product by them runs */
    bool rounds_state;     /* in each step it is put to shared memory, rounded, for products of tiles across */
    uint32_t own_stages,
        own_offset; /* matrices that have one stage each; shared memory for its barriers: loaded, left */
    bool apart;     /* outputs are put in buffers of their own: a stage is left while their stores read */
    bool lags;      /* the thread that stores leaves a stage in the step after: nobody waits for what its stores read */
    bool hands;     /* the output is left in its stage: the warp that loads stores it before it fills that anew */
    bool in_turn;   /* ... and thread blocks that add up an output do so in memory, one after the other: turns.c */
    uint8_t state;  /* value */
    uint32_t
        barrier_offset; /* of the ring's: full and empty of each stage; where a cluster adds up: full and ready of each group;
                              * where it shares loads: open of each stage */

    bool
        by_channel; /* a kernel on tensor cores whose values of dqk are SPACE_CHANNEL: it makes decays of channels, or */
    bool spreads;   /* ... gradients of products that decay by channels */
    uint32_t rows_at
        [TG_MAX_TILES]; /* ... 1 + bytes to a tile in a warp's part of shared memory (spread.c); 0: it is not there */
    uint32_t
        rows_again[TG_MAX_TILES]; /* ... where it is loaded again behind the last of those products; 0: it is not */
    uint32_t rows_bytes;          /* ... of that part */
    bool one_block; /* a chunk is one block of positions: what is there at query positions is at key positions */
    bool by_member; /* a tile kernel that does its work for every head of a group, one after the other */

    uint32_t n_values;
    struct value values[PLAN_MAX_VALUES];
    uint32_t n_nests;
    struct nest nests[PLAN_MAX_NESTS];
    uint32_t n_ops;
    struct op ops[PLAN_MAX_OPS + 1]; /* the last takes what is too much: n_ops is checked once, in pass_nest */

    uint32_t shared_bytes;
    uint32_t scratch_offset; /* shared memory for sums across warps, or marks of columns */
    uint32_t
        sums_offset; /* shared memory for the uniform sums of nests that are shared out, a float a warp; or for a tile of each
                           * warpgroup that shares the columns of a state, if they have no loaded matrix for it: */
    int sums_in;        /* ... that value, in its stage; -1: none */
    uint32_t registers; /* estimate per thread */
    uint32_t resident;  /* of a walk: thread blocks that a multiprocessor shall have room for; else 0 */
    bool is_draft;      /* not verified */
};

/* Makes the plan of one row; false after reporting why not. The slices (tg_schedule_slice) must live as long as it. A draft is what
 * a search reckons with: it is not verified, for what is chosen is planned again. */
bool plan_draft(struct plan *p, const tg_schedule *schedule, const struct tg_slices *slices, uint32_t row,
                const tg_target *target, const tg_shape_class *shape, const tg_sink *sink);
/* Of a plan that has another way of a chunk (decayed.c): the same row, whose operations are in the order of that. */
bool plan_build_decayed(const struct plan *p, struct plan *decayed);
bool plan_build(struct plan *p, const tg_schedule *schedule, const struct tg_slices *slices, uint32_t row,
                const tg_target *target, const tg_shape_class *shape, const tg_sink *sink);
/* nest.c, place.c, pipeline.c, budget.c, rounds.c; of kernels on warpgroups walk.c, order.c; compose.c: the passes */
bool pass_nest(struct plan *p);
bool pass_orient(struct plan *p);
bool pass_place(struct plan *p);
bool pass_pipeline(struct plan *p);
bool pass_budget(struct plan *p);
bool pass_rounds(struct plan *p);
bool pass_walk(struct plan *p);
bool pass_order(struct plan *p);
bool pass_compose(struct plan *p);
/* nest.c: how many steps ahead a nest of so many stages loads; budget.c: the shared memory that a thread block may have */
void plan_look_ahead(struct nest *nest, uint32_t mma);
uint32_t plan_shared_limit(const struct plan *p);
/* operands.c: is every tile where the operations that take it can find it? False after reporting which is not. */
bool plan_check_operands(const struct plan *p);
/* verify.c: the rules every plan obeys; `stage` names the pass that just ran */
bool plan_verify(const struct plan *p, const char *stage);
bool plan_verify_order(const struct plan *p); /* verify_order.c: of what each role executes, behind pass order */
/* ... the values that an operation reads, in registers or shared memory */
enum { PLAN_MAX_OP_READS = TG_MAX_READS + 4 };
uint32_t plan_op_reads(const struct plan *p, const struct op *op, uint8_t reads[PLAN_MAX_OP_READS]);
/* The one operation that reads the value, stores among them; NULL: there are several, or none. */
const struct op *plan_only_reader(const struct plan *p, uint32_t v);
/* print.c */
void plan_print(const struct plan *p, const tg_writer *writer);
/* value of an operand that is live in a nest (-1: outside of nests), or -1 */
int plan_find(const struct plan *p, tg_operand operand, int nest);
int plan_add_value(struct plan *p, tg_operand operand, int stmt, int nest);
/* Does a value before it load the same tile, in the same kind of place? Sets shared_with. */
bool plan_share_tile(struct plan *p, uint32_t v);
struct op *plan_add_op(struct plan *p, enum op_kind kind, int stmt);
/* Too many are counted in n_ops all the same: a pass behind refuses the plan. */
void plan_insert_op(struct plan *p, uint32_t at, struct op op);
const tg_tensor *plan_tensor(const struct plan *p, const struct value *v);
bool plan_has_dim(const struct value *v, uint32_t dim);
static inline bool plan_is_position(uint32_t dim)
{
    return dim == TG_LQ || dim == TG_LKV;
}
/* Does a CARRY of this kernel make it? */
static inline bool plan_is_state(const struct plan *p, const struct value *v)
{
    return v->stmt >= 0 && p->algorithm->body[v->stmt].op == TG_STMT_CARRY;
}
/* Is the tile of positions x positions, in whichever row it is made, zero where the key is behind the query? */
bool plan_is_lower(const tg_algorithm *algorithm, uint32_t tile);
/* Is it a product whose terms are weighted by a decay from the key's to the query's position? */
static inline bool plan_is_decayed(const struct plan *p, const struct op *op)
{
    return (op->kind == OP_CONTRACT || op->kind == OP_DOT) && tg_stmt_decays(&p->algorithm->body[op->stmt]);
}
uint32_t plan_dim_size(const struct plan *p, uint32_t dim); /* dqk or dhv; 0 for run-time sizes */
uint32_t plan_blocks(const struct plan *p, uint32_t dim);   /* that it is cut into; 0 for run-time sizes */
static inline uint32_t round_up(uint32_t x, uint32_t to)
{
    return (x + to - 1) / to * to;
}
/* Dimensions over which the row sums up to make the tile, and of which a thread block has one block of several. */
uint32_t plan_split_dims(const struct plan *p, uint32_t tile);
static inline uint32_t group_of(const tg_shape_class *shape)
{
    return shape->group ? shape->group : 1;
}
/* Says why the row cannot be a kernel, with the row's place: what is to be changed is there, whatever statement it is of. */
void plan_refuse(const struct plan *p, const char *code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
