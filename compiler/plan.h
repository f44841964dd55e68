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
 * Passes, in order (plan_build in plan.c is the list): slice, nest, place, pipeline, budget, and of kernels without products
 * rounds; of kernels on warpgroups slice, nest, walk, order; verify runs after each. */
#ifndef TEGULA_PLAN_H
#define TEGULA_PLAN_H

#include "compiler/compiler.h"
#include "dsl/slice.h"

#include <stdbool.h>

enum { PLAN_MAX_VALUES = 64, PLAN_MAX_OPS = 192, PLAN_MAX_NESTS = 4, PLAN_MAX_LOADS = 24 };
/* Of a kernel without products: most steps that it loads ahead, and what of each. */
enum { PLAN_STEPS_AHEAD = 32, PLAN_MAX_AHEAD = PLAN_MAX_LOADS + 8 };

/* Tensors the compiler adds to those of the algorithm: counts of tokens, boundaries of packed sequences, slots in the pool. */
enum { TILE_ADDED = TG_MAX_TILES - 4, TILE_COUNT = TILE_ADDED, TILE_INDEX_OUT, TILE_CU, TILE_INDEX, N_ADDED = 4 };

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
    SPACE_CHANNEL, /* registers of a kernel that makes decays of channels: a warp has 16 rows, a lane some channels of each */
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
    uint8_t place;      /* of what chunks write by tensor maps: the matrix in whose place it is put, or itself */
    bool direct;        /* loaded straight into registers, right before its only use, rows by rows */
    bool apart;         /* a state that threads share: its decay is a number of its own, until that gets small */
    bool staged; /* in shared memory for all steps of its nest, uniform or fetched; or uniform, while a nest runs */
    uint8_t stages;
    uint32_t row_bytes;   /* SPACE_MATRIX: pitch of a row; staged: of a step */
    uint32_t stage_bytes; /* SPACE_MATRIX, SPACE_VECTOR, staged */
    uint32_t offset;      /* in shared memory */
};

enum op_kind {
    OP_LOAD,     /* memory -> v; asynchronous for shared memory */
    OP_COMMIT,   /* close a group of asynchronous copies */
    OP_WAIT,     /* until at most `n` groups are pending */
    OP_BARRIER,  /* all threads of the block */
    OP_PROLOGUE, /* issue the first stages of nest `n` */
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
    OP_SOLVE,    /* v = (I + strictly lower a)^-1 */
    OP_ADDEND,   /* product of a and b, which the OP_DOT behind adds to its own */
    OP_DOT,      /* v += sum of a b (of a when the statement has no b) along rows, or over the whole tile */
    OP_DECAY,    /* v *= 2^a */
    OP_WALK,     /* v[chunk] = state w as it arrives; w = 2^c[chunk] w + a[chunk] b[chunk]; over held chunks */
    OP_COMPOSE, /* segment by segment: `tile` = v; v = 2^sum(a) v + what was in `tile`: a are the decays of its chunks, or v: none */
    OP_STORE, /* v -> memory; `tile` says which tensor */
    /* of kernels on warpgroups alone, see order.c */
    OP_LEAVE,     /* v as it is behind the last step -> `tile` */
    OP_START,     /* v -> `tile`, if a segment begins with the next step */
    OP_KEEP,      /* v -> `tile`, in the slot of the step */
    OP_TILES,     /* begin of what is done for each of a group's tiles of 64 rows */
    OP_END_TILES, /* ... and its end */
    OP_HEADS,     /* begin of what all groups do for each head of the thread block */
    OP_END_HEADS, /* ... and its end */
    OP_CLEAR,     /* 0 to what the stage has of the next packed sequence */
    OP_FETCH,     /* the tile's part of matrix v, as the left operand has it */
    OP_PUT,       /* v, rounded -> shared memory: its own tile, or the place of a: a matrix, or v itself */
    OP_EXCHANGE,  /* half of v to the other thread block of the cluster, and to the other half what comes from there */
    OP_EXPECT,    /* the barrier waits for the bytes of the matrices that come */
    OP_ARRIVE,    /* at `sync` */
    OP_AWAIT,     /* `sync`; of a product v's, with `n` that were issued later still under way */
    OP_FENCE,     /* what was written to shared memory is seen by tensor maps and wgmma */
    OP_REST,      /* nothing is left of the transition v, whose chunk decays by 2^a: no more chunks (transition.c) */
    OP_FORGET,    /* `n`: what is known of places is computed again, for registers are what is short */
    OP_N_KINDS
};

/* When an operation in a nest of two loops runs, or among a group's tiles; neighbours under one guard share it. */
enum guard {
    GUARD_ALWAYS,
    GUARD_FIRST,
    GUARD_LAST,
    GUARD_LATER, /* of the step before this one of the walk, if there is one */
    GUARD_ONE    /* one lane does it */
};

/* Who executes an operation: all warps of the thread block, or in a kernel on warpgroups the warp that loads or those
 * that compute. */
enum role_kind { ROLE_ALL, ROLE_LOAD, ROLE_WALK, ROLE_N_KINDS };

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
    SYNC_STATE, /* those of the step before, which are done: the assembler does not see it where no other was awaited since */
    SYNC_FULL,    /* stage of the ring: what was loaded is there */
    SYNC_EMPTY,   /* ... and nobody reads it any more */
    SYNC_OPEN,    /* ... in none of the thread blocks of the cluster */
    SYNC_READ,    /* stores to memory have read shared memory */
    SYNC_WRITTEN, /* ... and are done */
    SYNC_BEHIND,  /* those of the step before have read, whose stage is empty for the thread that stores, too */
    SYNC_READY,   /* the other thread block of the cluster has read its part of the matrix for the last time */
    SYNC_N_KINDS
};

enum forget { FORGET_THREAD = 1, FORGET_BASES = 2, FORGET_CHUNK = 4 };

enum op_flags {
    OP_CAREFUL = 1,    /* OP_FETCH, or OP_BARRIER what was copied of v: looks for NaN and infinities; products by masked
                        * tiles heed what it has seen */
    OP_SCALED = 2,     /* times the factors of positions that c is made with */
    OP_OF_PRODUCT = 4, /* OP_DOT: of w and the product of a and b, which is not kept */
    OP_ONTO = 8,       /* a product is added to what is there */
    OP_DECAYED = 16,   /* times 2^c before */
    OP_AHEAD = 32,     /* OP_LOAD, OP_INIT: for all steps of a round, before the first of them */
    OP_BEHIND = 64,    /* OP_STORE: of all steps of a round, behind the last of them */
    OP_ONCE = 128      /* OP_LOAD: before the first step of the loop that it is in */
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
    uint32_t n_loads;
    uint8_t loads[PLAN_MAX_LOADS]; /* values filled by the ring, one commit group a step */
    bool causal_end;               /* key blocks above the diagonal are not visited */
    bool causal_begin;             /* query blocks above the diagonal are not visited */
    bool reverse;                  /* chunks from the last to the first */
    bool shared_out;               /* the threads share out what is uniform in it (share.c) */
    bool halves;                   /* of rounds: one is loaded while the other is computed */
    uint8_t steps;                 /* of a round, in a kernel without products (rounds.c) */
    tg_bits early;                 /* of a walk of tokens: values that are made of all of them before it (early.c) */
    tg_bits kept; /* ... and leave these values in shared memory meanwhile, for they do not touch them */
};

struct plan {
    /* what it was made from */
    const tg_schedule *schedule;
    const tg_algorithm *algorithm;
    const tg_kernel_row *row;
    const tg_target *target;
    tg_shape_class shape;
    const struct tg_slices *slices; /* of all rows */
    struct tg_slice slice;          /* of this one */
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
        to_and_fro; /* ... 16 rows after 16 rows, to the last warp and back to the first: each has about as much below the diagonal */
    uint32_t block[TG_N_DIMS]; /* elements of a block of each dimension the kernel iterates over */
    uint32_t segment;          /* chunks that a thread block walks; 0: all of the sequence */
    uint32_t cluster;          /* thread blocks of a cluster, neighbours in the grid; 0: there are none */
    uint8_t along[TG_N_DIMS];  /* ... of which so many are neighbours in the dimension; 1: it is not the cluster's */
    uint32_t adds;             /* dimension in which two of them add up their parts of the output; 0: none do */
    bool makes_segments;       /* ... from a state of zero, which goes to memory */
    uint32_t composes; /* chunks of the segments whose states a kernel without products composes; 0: another kernel */
    uint32_t
        transition; /* tile that takes the transitions of the segments that it makes or composes; 0: it is a number */
    bool rests;     /* thread blocks that make transitions end where these are zero */
    uint32_t rest_offset; /* ... shared memory for a number of each stage of the ring: no more are to be filled */
    uint32_t starts; /* chunks of the segments whose first states it writes, walking all of them; 0: another kernel */
    bool carries;    /* a kernel on warpgroups: vectors beside the state */

    /* A kernel on warpgroups (TG_MMA_WGMMA), see walk.c. */
    struct role roles[ROLE_N_KINDS];
    uint32_t groups; /* warpgroups that compute; 0: another kind of kernel */
    uint32_t owner;  /* dqk or dhv: what the output has, in tiles of 64 dealt out to the groups */
    uint32_t heads;  /* of a group of heads, which a thread block works on, all by TG_L, so many together by TG_P; 1 */
    bool
        own_heads; /* ... of which each warpgroup has whole ones, whose tiles of positions it makes without the others */
    bool sums_heads; /* ... whose outputs are summed up: their states are side by side in columns; otherwise in rows */
    bool factors;    /* ... exponentials of differences between positions are made of factors (factor.c): */
    uint8_t factor_rows, factor_columns; /* ... of these vectors */
    uint32_t factors_offset; /* ... shared memory for a number of each stage and head: are the vectors factors? */
    uint32_t tiles;          /* of a warpgroup: of its heads, or some of one's */
    bool lags;     /* the thread that stores leaves a stage in the step after: nobody waits for what its stores read */
    uint8_t state; /* value */
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
    struct op ops[PLAN_MAX_OPS];

    uint32_t shared_bytes;
    uint32_t scratch_offset; /* shared memory for sums across warps, or marks of columns */
    uint32_t sums_offset;    /* shared memory for the uniform sums of nests that are shared out, a float a warp */
    uint32_t registers;      /* estimate per thread */
};

/* Makes the plan of one row; false after reporting why not. The slices (tg_schedule_slice) must live as long as it. */
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
/* Columns of the state that a thread block composes by transitions, and floats from one to the next row of them in shared
 * memory: what a warp reads at once is in different banks. */
enum {
    PLAN_COMPOSED = 16,
    PLAN_COMPOSED_PITCH = 17,
    PLAN_COMPOSED_BYTES = 8 /* of both parts */,
    PLAN_COMPOSED_TILES = 8 /* of 8 rows, of a warp */
};
bool plan_check_transition(const struct plan *p); /* transition.c: is what it makes of states linear in them? */
bool plan_can_rest(const struct plan *p);         /* ... do transitions decay, as a whole? */
/* factor.c: which vectors become factors; where the map has their difference, before its exponential, -1: nowhere. */
void plan_find_factors(struct plan *p);
int plan_difference(const struct plan *p, const tg_stmt *s);
/* Is value v accumulators of a head times numbers of positions, for sums alone, which multiply by themselves? */
struct plan_weight {
    uint32_t of, by; /* values */
};
bool plan_find_weight(const struct plan *p, uint32_t v, struct plan_weight *weight);
/* Is the value a tile of the output's or the state's elements, which each warpgroup has its own of? */
static inline bool plan_is_owned(const struct plan *p, const struct value *v)
{
    return p->groups && ((v->n_dims > 0 && v->dims[0] == p->owner) || (v->n_dims > 1 && v->dims[1] == p->owner));
}
/* A kernel on warpgroups that makes states and nothing else of the chunks. */
static inline bool plan_is_state_alone(const struct plan *p)
{
    return p->makes_segments || p->starts;
}
/* ... from what does not depend on the state. */
static inline bool plan_is_sum_alone(const struct plan *p)
{
    return plan_is_state_alone(p) && !p->transition;
}
static inline bool plan_is_position(uint32_t dim)
{
    return dim == TG_LQ || dim == TG_LKV;
}
/* Parts of a sum for positions or for the chunk: one from each warp of accumulators, from each group otherwise. */
static inline uint32_t plan_sum_parts(const struct plan *p, const struct value *v)
{
    return v->late ? 4 * p->groups : p->groups;
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
static inline bool plan_is_of_warp(const struct value *v)
{
    return v->space == SPACE_VECTOR && v->scope == SCOPE_WARP;
}
/* The matrix that an operand of such a kernel is, or is made of by a factor. */
uint32_t plan_matrix_of(const struct plan *p, uint32_t v);
enum { WALK_TILE = 64, WALK_SPAN_BYTES = 128 }; /* positions of a chunk; a row of 64 elements, the swizzle's */
/* Heads side by side in the rows of accumulators; in the columns of the state. */
static inline uint32_t plan_heads_in_rows(const struct plan *p)
{
    return p->sums_heads ? 1 : p->heads;
}
static inline uint32_t plan_heads_in_columns(const struct plan *p)
{
    return p->sums_heads ? p->heads : 1;
}
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
    return plan_is_made_tile(v) && v->stages < plan_buffers(p);
}
/* Of a tile of positions, what a warpgroup makes. */
static inline uint32_t plan_position_columns(const struct plan *p)
{
    return p->own_heads ? WALK_TILE : WALK_TILE / p->groups;
}
/* cluster.c: the cluster of the row's thread blocks, and whether they can be one */
void plan_find_cluster(struct plan *p);
bool plan_check_cluster(const struct plan *p);
uint32_t plan_cluster_step(const struct plan *p,
                           uint32_t dim); /* thread blocks from one to its neighbour in a dimension */
/* In which dimension are those that share the loads of a matrix (0: each loads it for itself), and how many? Do any? */
uint32_t plan_shared_along(const struct plan *p, const struct value *v);
uint32_t plan_sharers(const struct plan *p, const struct value *v);
bool plan_shares(const struct plan *p);
/* operands.c: is every tile where the operations that take it can find it? False after reporting which is not. */
bool plan_check_operands(const struct plan *p);
/* share.c: decides which nests are shared out; is the operation in such a nest uniform? */
void plan_share_out(struct plan *p);
bool plan_is_shared_out(const struct plan *p, const struct nest *nest, const struct op *op);
/* ... and a sum over the steps of the nest? */
bool plan_is_uniform_sum(const struct plan *p, const struct nest *nest, const struct op *op);
/* verify.c: the rules every plan obeys; `stage` names the pass that just ran */
bool plan_verify(const struct plan *p, const char *stage);
bool plan_verify_order(const struct plan *p); /* verify_order.c: of what each role executes, behind pass order */
/* ... the values that an operation reads, in registers or shared memory */
enum { PLAN_MAX_OP_READS = TG_MAX_READS + 4 };
uint32_t plan_op_reads(const struct plan *p, const struct op *op, uint8_t reads[PLAN_MAX_OP_READS]);
/* print.c */
void plan_print(const struct plan *p, const tg_writer *writer);

/* value of an operand that is live in a nest (-1: outside of nests), or -1 */
int plan_find(const struct plan *p, tg_operand operand, int nest);
int plan_add_value(struct plan *p, tg_operand operand, int stmt, int nest);
/* Does a value before it load the same tile, in the same kind of place? Sets shared_with. */
bool plan_share_tile(struct plan *p, uint32_t v);
struct op *plan_add_op(struct plan *p, enum op_kind kind, int stmt);
const tg_tensor *plan_tensor(const struct plan *p, const struct value *v);
bool plan_has_dim(const struct value *v, uint32_t dim);
/* Is it a map over a loaded matrix that only feeds products? It needs no place: it is computed on fetched operands. */
bool plan_is_on_the_fly(const struct plan *p, uint32_t v);
/* Does such a map read the vector at other positions than the rows of the product, which are all that a thread has in
 * registers? */
bool plan_is_read_while_fetched(const struct plan *p, uint32_t v);
/* Is the tile of positions x positions, in whichever row it is made, zero where the key is behind the query? */
bool plan_is_lower(const tg_algorithm *algorithm, uint32_t tile);
/* Is this a product with causally masked weights on the left and a loaded tile on the right? */
bool plan_is_masked(const struct plan *p, const struct op *op);
/* Is it a product whose terms are weighted by a decay from the key's to the query's position? */
static inline bool plan_is_decayed(const struct plan *p, const struct op *op)
{
    return (op->kind == OP_CONTRACT || op->kind == OP_DOT) && tg_stmt_decays(&p->algorithm->body[op->stmt]);
}
/* The matrix in shared memory that a product fetches where its operand v is computed on the fly; what else the operand is
 * made of is read element by element. */
int plan_fetched(const struct plan *p, uint32_t v);
/* Floats from one row to the next of what is inverted in shared memory: those of operands are in different banks. */
static inline uint32_t plan_solve_pitch(const struct plan *p, const struct op *op)
{
    return p->values[op->v].extent[1] + 8;
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
/* Does a lane have channels of it, in a kernel that makes decays of them? */
static inline bool plan_is_of_channels(const struct plan *p, const struct value *v)
{
    return p->by_channel && plan_has_dim(v, TG_DQK);
}
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
bool plan_is_zero_behind(const struct plan *p, uint32_t v); /* the end of the chunk? */
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
bool plan_is_async(const struct plan *p, const struct value *v); /* pipeline.c */
/* ... Is it a map of what the top of the kernel brings to shared memory? */
bool plan_maps_root_shared(const struct plan *p, const struct op *op);
uint32_t plan_dim_size(const struct plan *p, uint32_t dim); /* dqk or dhv; 0 for run-time sizes */
uint32_t plan_blocks(const struct plan *p, uint32_t dim);   /* that it is cut into; 0 for run-time sizes */
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
/* Have chunks one position, in a kernel that holds them or walks them? */
static inline bool plan_has_single_positions(const struct plan *p)
{
    return p->by_token || (p->held >> TG_CHUNK & 1);
}
/* Elements of a held dimension that a thread has. */
uint32_t plan_held_of(const struct plan *p, uint32_t dim);
/* Registers of a value in a thread kernel: the product of the held positions it has. */
uint32_t plan_held_count(const struct plan *p, const struct value *v);
/* dqk or dhv, as owner of a state by itself (walk.c). */
uint32_t plan_owner_of_state(const struct plan *p);
/* The state's tensor for what it is behind the last chunk, where this kernel writes that; 0: it does not. */
uint32_t plan_final_tile(const struct plan *p);
/* Dimensions over which the row sums up to make the tile, and of which a thread block has one block of several. */
uint32_t plan_split_dims(const struct plan *p, uint32_t tile);
/* Partial sums in memory of a tile whose row sums over a parallel dimension; 1: none, or a cluster adds them up. */
uint32_t plan_parts(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                    uint32_t tile);
/* Heads whose sum alone is in memory, in the place of the first of them: so many work together in the row that writes the
 * tile, and all that read it sum over heads. 1: each head has its own. */
uint32_t plan_heads_summed(const tg_schedule *schedule, const tg_shape_class *shape, uint32_t tile);
/* workspace.c: the tile in whose memory each intermediate is: itself, or one of the same size that no row from the first
 * that uses this needs; 0: it is none, or the caller's. */
void plan_places(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                 uint8_t place[TG_MAX_TILES]);
/* states.c: how callers keep states. Is it one: an input or output [dqk, dhv] of a head? */
/* Axes and type of a tensor in memory: of states as the class says, of others as declared. */
const uint8_t *plan_axes_of(const tg_tensor *tensor, const tg_shape_class *shape);
tg_dtype plan_dtype_of(const tg_tensor *tensor, const tg_shape_class *shape);
/* ... of a tile; where the dimension is among its axes; the innermost one, TG_AXIS_NONE of a number. */
const uint8_t *plan_memory_axes(const struct plan *p, uint32_t tile);
tg_dtype plan_memory_dtype(const struct plan *p, uint32_t tile);
uint32_t plan_axis_of(const struct plan *p, uint32_t tile, uint32_t dim);
uint32_t plan_last_axis(const struct plan *p, uint32_t tile);
/* Is a state that lies otherwise than declared read only where any order will do? False after reporting. */
bool plan_check_states(const struct plan *p);
/* Where sequences of a step may have no tokens, their states are in a pool: there they stay as they are. */
static inline bool plan_takes_ragged(const tg_shape_class *shape)
{
    return shape->pooled || !(shape->packed || shape->counted);
}
/* Is it a state that goes to a slot behind every token or chunk? Their stores, behind the loop, move to the end of its step. */
bool plan_keeps_on_the_way(const struct plan *p, uint32_t tile);
bool plan_keep_states(struct plan *p);
/* Have sequences of a decode step each their own number of tokens? */
static inline bool plan_counts_tokens(const struct plan *p)
{
    return p->schedule->max_tokens && (p->shape.packed || p->shape.counted);
}
/* Does the tile belong to a slot of the caller's pool? */
bool plan_is_pooled(const struct plan *p, uint32_t tile);
static inline uint32_t group_of(const tg_shape_class *shape)
{
    return shape->group ? shape->group : 1;
}
void plan_refuse(const struct plan *p, const char *code, int line, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* launch.c: grid and parameters of the kernel */
uint32_t plan_grid(const struct plan *p, tg_term terms[TG_MAX_TERMS]);
/* Dimensions of grid.x, fastest first; returns their number. */
uint32_t plan_grid_dims(const struct plan *p, uint8_t dims[TG_N_DIMS]);
uint32_t plan_args(const struct plan *p, tg_arg_desc args[TG_MAX_ARGS]);
/* The tensor whose strides are this one's: in a kernel without products the first in the workspace that lies like it, so that one
 * index serves all of them; otherwise itself. */
uint32_t plan_strides_of(const struct plan *p, uint32_t tile);
/* Are they no more than a kernel may have? False after reporting. */
bool plan_check_args(const struct plan *p);
/* Does a kernel on warpgroups store a tile of positions by a tensor map? fp32 goes to memory from registers. */
bool plan_is_mapped_store(const struct plan *p, const struct op *op);
/* Tensor maps of a kernel on warpgroups: of the matrices it loads, and of the tiles it stores; `tensor` is a tile. */
uint32_t plan_maps(const struct plan *p, tg_map_desc maps[TG_MAX_MAPS]);

/* cost.c: of a kernel, for a call of these sizes; of packed sequences `tokens` is that of each. */
tg_cost plan_cost(const struct plan *p, const tg_sizes *s);
/* What the model counts of them: packed sequences as if they were of equal length. */
tg_sizes plan_sizes(const tg_shape_class *shape, const tg_sizes *sizes);

/* The model tells no smaller differences between schedules, or between blocks of a row. */
static const double plan_tie = 1.1;

/* compile.c: widths, types and groups that there are, and nothing said of states that there are not */
bool plan_check_shape(const tg_algorithm *algorithm, const tg_shape_class *shape, const tg_sink *sink);

/* signature.c */
uint32_t plan_chunk_multiple(const tg_schedule *schedule); /* position blocks must divide the chunk size */
uint32_t plan_chunk_most(const tg_schedule *schedule);     /* 0: any */
/* The program's tensors, the caller's first; index[tile] is the tile's number among them. */
bool plan_tensors(tg_program *program, const tg_schedule *schedule, const struct tg_slices *slices,
                  const tg_shape_class *shape, uint8_t index[TG_MAX_TILES], const tg_sink *sink);
void plan_header(tg_program *program, const char *variant, const tg_schedule *schedule, const tg_target *target,
                 const tg_shape_class *shape);
void plan_copy_name(char *to, size_t size, const char *from);

static inline uint32_t round_up(uint32_t x, uint32_t to)
{
    return (x + to - 1) / to * to;
}

#endif
