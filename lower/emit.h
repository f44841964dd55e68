/* lower/emit.h - what the files of lower/ share while they emit one kernel.
 *
 * Registers of tiles are allocas: the emitter assigns freely, LLVM's SROA turns them into values. Loops that
 * matter are emitted unrolled; the optimiser is asked for clean-up only. */
#ifndef TEGULA_EMIT_H
#define TEGULA_EMIT_H

#include "compiler/lower.h"
#include "compiler/plan_channel.h"

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

enum { EMIT_MAX_FRAGMENT = 512 };

/* A number, or an unevaluated sum of two. */
struct pair {
    LLVMValueRef hi, lo; /* lo: NULL for plain floats */
};

/* Where the current block of each dimension begins. */
struct place {
    LLVMValueRef start[TG_N_DIMS];         /* i32; of TG_CHUNK the number of the chunk */
    LLVMValueRef token;                    /* i32: first token of the chunk, in its sequence */
    LLVMValueRef length;                   /* i32: tokens of the chunk */
    LLVMValueRef tokens, chunks;           /* i32: of the sequence */
    LLVMValueRef first_token, first_chunk; /* i32: of a packed sequence, or of a piece of the call; NULL: 0 */
};

/* Run-time position in a nest, as allocas: outer and inner block, ring slots of both. */
struct cursor {
    LLVMValueRef outer, inner, slot, outer_slot;
};

/* Of products of positions whose operands are in shared memory (channel_product.c). */
struct channel_products {
    LLVMValueRef near; /* i1: the warp's rows decay by little */
    LLVMValueRef reference[8],
        mine[8]; /* decay that factors of keys, and of queries, refer to, of the lane's channels */
    LLVMValueRef own[CHANNEL_PRODUCTS][8];                       /* the diagonal block */
    LLVMValueRef before[CHANNEL_PRODUCTS][CHANNEL_WARPS - 1][8]; /* those of the keys of the warps before */
};

/* Of gradients of products with decays of channels (spread.c): the keys' decay before the warp's rows, and of their last. */
struct spread_ends {
    uint32_t decay;    /* value */
    LLVMValueRef near; /* i1: that is little; NULL: they have not been found */
    LLVMValueRef begin[8], end[8];
    bool is_read; /* warps may read yet what products had in shared memory */
};

struct emit {
    const struct plan *p;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b;
    LLVMValueRef function;
    LLVMBasicBlockRef entry; /* allocas go here */
    LLVMDIBuilderRef debug;
    LLVMMetadataRef debug_scope;
    LLVMTypeRef i1, i16, i32, i64, f32, f64, half, bfloat, v2bf16, v2f16, v2f32, v2i32, global, shared;
    tg_arg_desc described[TG_MAX_ARGS]; /* the parameters: plan_args, asked for once, since it takes long */
    LLVMValueRef args[TG_MAX_ARGS];
    uint32_t n_args;
    LLVMValueRef batch, head; /* i32: of this thread block */
    LLVMValueRef relayed;     /* i32: ... where segments are relayed, its number among those of its segment */
    LLVMValueRef read_slot, written_slot; /* i32: of the pool, negative: none; NULL: there is no pool */
    LLVMValueRef base[TG_MAX_TILES];      /* address of the tensor's (batch, head); NULL when not a parameter */
    LLVMValueRef arena;                   /* shared memory */
    LLVMValueRef tid, lane, warp, quad_row, quad_column; /* quad_row = lane / 4, quad_column = lane % 4 */
    LLVMValueRef owner,
        sharer; /* of a thread kernel: the thread's number among those with other elements, and among those
                                 * that share them (plan.sharers); else tid and 0 */
    struct place at;
    bool shares;                      /* a nest has been shared out: others may still read what it left */
    LLVMValueRef known[TG_MAX_TILES]; /* address of the tile's element in this step of a loop; NULL: to be computed */
    LLVMValueRef *registers[PLAN_MAX_VALUES]; /* allocas: fragments [tile][4], rows, (hi, lo) of vectors */
    LLVMValueRef *total[PLAN_MAX_VALUES];     /* fp64 allocas of scans and totals, one a register */
    LLVMValueRef slot[PLAN_MAX_VALUES];       /* i32: ring slot being read */
    struct cursor issue[PLAN_MAX_NESTS];
    LLVMValueRef steps[PLAN_MAX_NESTS]; /* i32: number of steps of a nest */
    LLVMValueRef step;                  /* i32: of the ring's nest that runs */
    tg_operand scanned;                 /* operand whose block sums are in scan_..., in this step */
    LLVMValueRef scan_inclusive, scan_exclusive, scan_total;
    bool scanned_max;                           /* it was the maximum */
    LLVMValueRef decayed_from[PLAN_MAX_VALUES]; /* local i32: tokens from this one on decay the state (thread_rows.c) */
    LLVMValueRef careful;                       /* i1: this step has a NaN on the diagonal (careful.c) */
    uint32_t zeros;                             /* that have been made (walk_product.c) */
    uint32_t finite; /* 1 + the operand of a product that is taken with zeros where it is not finite; 0: none is */
    struct channel_products products;
    struct spread_ends ends;
    enum {
        ROWS_LOADED,
        ROWS_EARLY,
        ROWS_THERE
    } rows; /* tiles of channels: those that are read first are there; all are */
    enum { AGAIN_NOT, AGAIN_LOADED, AGAIN_THERE } again; /* those that are loaded again (plan.rows_again) */
    int line;                                            /* of the statement being emitted */
    bool abandoned;                                      /* LLVM's objects are in an unknown state: leave them */
};

/* ---- build.c: short names for LLVM ------------------------------------------------------------- */
LLVMValueRef imm(struct emit *e, int64_t x);   /* i32 */
LLVMValueRef imm64(struct emit *e, int64_t x); /* i64 */
LLVMValueRef real(struct emit *e, double x);   /* f32 */
LLVMValueRef add(struct emit *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef sub(struct emit *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef mul(struct emit *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef divide(struct emit *e, LLVMValueRef a, LLVMValueRef b); /* unsigned */
LLVMValueRef modulo(struct emit *e, LLVMValueRef a, LLVMValueRef b); /* unsigned */
LLVMValueRef ceil_div(struct emit *e, LLVMValueRef a, uint32_t b);
LLVMValueRef wide(struct emit *e, LLVMValueRef a);                    /* i32 -> i64, non-negative */
LLVMValueRef less(struct emit *e, LLVMValueRef a, LLVMValueRef b);    /* signed */
LLVMValueRef smaller(struct emit *e, LLVMValueRef a, LLVMValueRef b); /* min */
LLVMValueRef both(struct emit *e, LLVMValueRef a, LLVMValueRef b);    /* and; NULL stands for true */
LLVMValueRef choose(struct emit *e, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef local(struct emit *e, LLVMTypeRef type, const char *name); /* alloca in the entry block */
LLVMValueRef get(struct emit *e, LLVMTypeRef type, LLVMValueRef slot);
void set(struct emit *e, LLVMValueRef slot, LLVMValueRef value);
LLVMValueRef byte_offset(struct emit *e, LLVMValueRef pointer, LLVMValueRef bytes);
LLVMValueRef call(struct emit *e, const char *intrinsic, LLVMTypeRef *overloads, unsigned n_overloads,
                  LLVMValueRef *args, unsigned n_args);
LLVMValueRef call0(struct emit *e, const char *intrinsic);
LLVMValueRef call1(struct emit *e, const char *intrinsic, LLVMValueRef a);
LLVMValueRef fma_of(struct emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum); /* a b + sum, fp32 */
LLVMValueRef shuffle_xor(struct emit *e, LLVMValueRef x,
                         uint32_t by); /* x of the lane whose number differs in these bits */
LLVMValueRef element(struct emit *e, LLVMValueRef aggregate, unsigned i);
LLVMValueRef as(struct emit *e, LLVMValueRef value, LLVMTypeRef type); /* bitcast */
void barrier(struct emit *e);
void sync_warp(struct emit *e); /* memory too */
/* if (condition) { ... } : returns the block to hand to end_if */
LLVMBasicBlockRef begin_if(struct emit *e, LLVMValueRef condition);
void end_if(struct emit *e, LLVMBasicBlockRef after);
/* for (*index = 0; *index < trips; *index += step) */
struct counted {
    LLVMValueRef counter;
    LLVMBasicBlockRef head, after;
    bool rolled; /* ptxas is told to leave it so */
};
struct counted loop_begin(struct emit *e, LLVMValueRef trips, LLVMValueRef *index);
struct counted loop_from(struct emit *e, LLVMValueRef first, LLVMValueRef end, LLVMValueRef *index);
void loop_end(struct emit *e, const struct counted *l, uint32_t step);

/* ---- kernel.c: the frame ---------------------------------------------------------------------------- */
LLVMValueRef argument(struct emit *e, tg_arg_kind kind, uint32_t index, uint32_t axis);
/* The same number, but LLVM does not know it. */
LLVMValueRef opaque(struct emit *e, LLVMValueRef x);
/* Lane, warp and so on of thread `tid`. */
void find_thread(struct emit *e, LLVMValueRef tid);
void debug_line(struct emit *e, int stmt);
void emit_ops(struct emit *e, uint32_t begin, uint32_t end);
/* Registers of a value, one or (hi, lo) each; freed by the caller. */
LLVMValueRef *new_registers(struct emit *e, uint32_t v);

/* ---- place.c: grid, sequences, addresses --------------------------------------------------------------- */
/* Blocks of this thread block from its index in the grid: e->at, and its sequence and head. */
void emit_grid(struct emit *e, LLVMValueRef *batch, LLVMValueRef *head);
/* Addresses of that sequence's and head's entry of every tensor: e->base. */
void emit_bases(struct emit *e, LLVMValueRef batch, LLVMValueRef head);
LLVMValueRef head_of(struct emit *e, uint32_t tile, LLVMValueRef head);
/* Of a pool with slots for every token or chunk: to that of the one at hand. */
void go_to_slot(struct emit *e, uint32_t tile);
/* The sequence's slot where the tile is a pool's, else NULL; whether it is one (i1). */
LLVMValueRef slot_of(struct emit *e, uint32_t tile);
LLVMValueRef is_slot(struct emit *e, LLVMValueRef slot);
/* Has the sequence no slot, in a program with a pool? */
LLVMValueRef is_padding(struct emit *e, LLVMValueRef batch);
/* Bounds of packed sequence `s`. */
void set_sequence(struct emit *e, struct place *at, LLVMValueRef s);
/* Start of the chunk with that number. */
void set_chunk(struct emit *e, struct place *at, LLVMValueRef chunk);
LLVMValueRef is_last_of_segment(struct emit *e); /* i1: of a row that has of each segment the last chunk */
/* To a segment's entry of a tile that has one a segment; those of a packed sequence are its own. */
void go_to_entry(struct emit *e, LLVMValueRef entry);
LLVMValueRef walked_chunk(struct emit *e, const struct nest *nest, LLVMValueRef step); /* the nest's step-th chunk */
/* The last step and one, and the first, of all segments. Backwards, steps are counted as if the last segment had all of its
 * chunks: both ways are cut at the same chunks. */
LLVMValueRef end_of_walk(struct emit *e, const struct nest *nest);
LLVMValueRef first_of_walk(struct emit *e, const struct nest *nest);
/* Tokens are chunk tokens + position; the stride of an axis in elements. */
LLVMValueRef tensor_stride(struct emit *e, uint32_t tile, uint32_t axis);
/* Address of element (row, column) of the operand's block at `at`; local indices, i32; NULL = 0. */
LLVMValueRef tensor_address(struct emit *e, tg_operand operand, uint32_t tile, const struct place *at,
                            const uint8_t *dims, LLVMValueRef row, LLVMValueRef column);
/* The same of a tile in memory, where positions that are an axis of its own are all there. */
LLVMValueRef inside_tile(struct emit *e, const struct place *at, uint32_t tile, uint32_t dim, uint32_t extent,
                         LLVMValueRef i);
/* Is local index `i` of dimension `dim` inside the tensor? NULL when it always is. */
LLVMValueRef inside(struct emit *e, const struct place *at, uint32_t dim, uint32_t extent, LLVMValueRef i);

/* ---- ring.c: loops and rings of copies ------------------------------------------------------------ */
void emit_prologue(struct emit *e, uint32_t nest);
void emit_issue(struct emit *e, uint32_t nest);
/* Emits nest at op index `begin`; returns the index of its end. */
uint32_t emit_nest(struct emit *e, uint32_t begin);

/* ---- copy.c: memory -> shared memory or registers --------------------------------------------------- */
void emit_copy(struct emit *e, uint32_t v, const struct place *at, LLVMValueRef slot);
void emit_load(struct emit *e, uint32_t v);
/* cp.async of 4, 8 or 16 bytes; zeros where not valid (NULL: always). */
void async_copy(struct emit *e, LLVMValueRef to, LLVMValueRef from, uint32_t bytes, LLVMValueRef valid);
/* n elements side by side by one load, into the first of two registers each, with so many between. */
void load_side_by_side(struct emit *e, bool constant, tg_dtype dtype, LLVMValueRef from, LLVMValueRef *reg, uint32_t n,
                       uint32_t between);
/* An element of a tile: local indices on up to two dimensions, the others begin their block. */
struct element_place {
    uint8_t dims[2];
    LLVMValueRef index[2]; /* NULL: 0 */
    LLVMValueRef valid;    /* NULL: always inside of the tensor */
    uint32_t n;            /* so many side by side in memory; 0: one */
    uint32_t between;      /* registers between one of them and the next, beside the two of each */
};
/* Elements of a value into (hi, lo); zero where they are not valid. */
void load_element(struct emit *e, uint32_t v, LLVMValueRef *reg, const struct element_place *at);
/* The same from another tensor of the same axes. */
void load_tile_element(struct emit *e, uint32_t v, uint32_t tile, LLVMValueRef *reg, const struct element_place *at);
LLVMValueRef slot_address(struct emit *e, const struct value *v, LLVMValueRef slot);
LLVMValueRef swizzled(struct emit *e, const struct value *v, LLVMValueRef row, LLVMValueRef unit); /* bytes in a slot */
/* An element of a matrix in shared memory, in its ring slot of this step: f32. */
LLVMValueRef matrix_element(struct emit *e, uint32_t v, LLVMValueRef row, LLVMValueRef column);

/* ---- fragment.c: accumulators ------------------------------------------------------------------------ */
struct shape {
    uint32_t m, n; /* 16-row and 8-column tiles of a warp */
};
struct shape fragment_shape(const struct plan *p, const struct value *v);
/* The warp's m-th 16 rows begin at the first row of m plus m steps. */
LLVMValueRef fragment_first_row(struct emit *e, const struct value *v, uint32_t m);
uint32_t fragment_row_step(const struct emit *e);
LLVMValueRef fragment_block(struct emit *e, const struct value *v, uint32_t m);             /* ... and are this block */
LLVMValueRef fragment_row(struct emit *e, const struct value *v, uint32_t row_class);       /* local row */
LLVMValueRef fragment_column(struct emit *e, const struct value *v, uint32_t column_class); /* local column */
void emit_zero(struct emit *e, const struct op *op);
void emit_init(struct emit *e, const struct op *op);
void emit_decay(struct emit *e, const struct op *op);
void emit_member_sum(struct emit *e, const struct op *op);
void emit_store(struct emit *e, const struct op *op);
/* 16 rows of a tile that is read straight from memory, right before they are used; nothing for other tiles. */
void load_rows_of(struct emit *e, uint32_t v, uint32_t tile_m);
/* Of the blocks of a dimension that the tile lacks, the one that writes it; NULL: all do. */
LLVMValueRef is_first(struct emit *e, uint32_t tile);
LLVMValueRef present(struct emit *e, uint32_t tile); /* i1: an optional tensor, or slot, is there; NULL: always */
/* Elements from (hi, lo) to memory. */
void store_element(struct emit *e, const struct op *op, LLVMValueRef *reg, const struct element_place *at);
void store_float(struct emit *e, tg_dtype dtype, LLVMValueRef x, LLVMValueRef address); /* as fp32, bf16 or f16 */

/* ---- matrix.c: products ------------------------------------------------------------------------------- */
void emit_contract(struct emit *e, const struct op *op);
LLVMValueRef is_finite(struct emit *e, LLVMValueRef x);              /* i1, of an f32 */
void emit_solve(struct emit *e, const struct op *op);                /* solve.c */
LLVMValueRef pack(struct emit *e, LLVMValueRef x0, LLVMValueRef x1); /* two floats, rounded to the input type: i32 */
LLVMValueRef unpack(struct emit *e, LLVMValueRef word, uint32_t i);  /* one of them: f32 */
LLVMValueRef unpack_as(struct emit *e, tg_dtype dtype, LLVMValueRef word,
                       uint32_t i); /* ... of another type than the inputs' */

/* ---- expression.c -------------------------------------------------------------------------------------- */
/* An element of the tile that a map makes, as the expression sees it. */
struct element_at {
    uint32_t row_class, column_class; /* elements with equal class have equal index */
    LLVMValueRef row, column;         /* local indices, i32 */
    LLVMValueRef row_base,
        column_base;                   /* of a tile on the diagonal of a walk: their parts that differ by thread, and */
    int32_t row_offset, column_offset; /* the rest: a mask compares with constants. NULL: elsewhere */
    LLVMValueRef self;                 /* value of the two-dimensional operand; NULL: from its registers */
    uint32_t self_index;               /* register of fragments */
    const uint32_t *held;              /* of a thread kernel: the held positions */
};
struct expression {
    const tg_stmt *stmt;
    const struct value *out;
    const struct value *fetched; /* the operand whose element is `self`, where it reads several in shared memory */
    bool causal;  /* apply TG_X_CAUSAL and TG_X_BEFORE; false below the diagonal, where it is the identity */
    bool ends;    /* behind the end of the chunk it is 0 */
    int factored; /* where the difference is that is a product of factors (compiler/factor.c); 0: there is none */
    LLVMValueRef
        *kept; /* locals, one a register: exponentials of differences that two maps have alike; NULL: there are none */
    int kept_at; /* ... where they are */
    bool keeps;  /* ... this is the first of the two */
    const LLVMValueRef
        *multipliers; /* what the sum of compiler/decayed.c is read times, by classes of rows; NULL: it is not read */
    struct pair memo[TG_MAX_EXPR][160];
};
LLVMValueRef exp2_approx(struct emit *e, LLVMValueRef a); /* ex2.approx.ftz: 2 units in the last place */
/* What an expression is evaluated with. */
struct expression *expression_begin(struct emit *e, int stmt, const struct value *out, bool causal);
LLVMValueRef expression_element(struct emit *e, struct expression *x, const struct element_at *at);
struct pair expression_pair(struct emit *e, struct expression *x, const struct element_at *at);
void emit_map(struct emit *e, const struct op *op);

/* ---- dot.c ------------------------------------------------------------------------------------------- */
void emit_dot(struct emit *e, const struct op *op);
void emit_add_up(struct emit *e, const struct op *op);
LLVMValueRef part_offset(struct emit *e, uint32_t tile); /* i32, bytes */

/* ---- careful.c: NaN only where it belongs ------------------------------------------------------------------ */
/* The barrier of a step, which tells all threads whether one saw NaN in what it copied of v. Sets e->careful. */
void careful_barrier(struct emit *e, const struct op *op);
/* sum + 0 x: stays zero as long as all x are finite. One instruction a word. */
LLVMValueRef add_nothing(struct emit *e, tg_dtype dtype, LLVMValueRef sum, LLVMValueRef word);
/* i1: are these bits of the exponent all set in the number's, which has the type? */
LLVMValueRef has_exponent(struct emit *e, LLVMValueRef bits, LLVMTypeRef type, uint32_t exponent);
/* A product; where it could spread a NaN, with care. */
void careful_contract(struct emit *e, const struct op *op);

/* ---- thread.c: kernels in which a thread has an element --------------------------------------------------- */
uint32_t thread_register(const struct plan *p, const struct value *v, const uint32_t held[TG_N_DIMS]);
bool next_held(const struct plan *p, uint32_t mask, uint32_t held[TG_N_DIMS]);
uint32_t value_dims(const struct value *v);
/* Index of this thread's element inside the block of a dimension; NULL: the block has one element. */
LLVMValueRef thread_index(struct emit *e, uint32_t dim, const uint32_t held[TG_N_DIMS]);
struct pair pair_of_f64(struct emit *e, LLVMValueRef x);
LLVMValueRef larger_f64(struct emit *e, LLVMValueRef a, LLVMValueRef b); /* hands a NaN on */
void load_thread(struct emit *e, uint32_t v);
void zero_thread(struct emit *e, const struct op *op);
void init_thread(struct emit *e, const struct op *op);
void read_state(struct emit *e, const struct op *op);
LLVMValueRef thread_address(struct emit *e, uint32_t v, uint32_t tile); /* of this thread's element of v, in a tensor */
void decay_thread(struct emit *e, const struct op *op);
void walk_thread(struct emit *e, const struct op *op);
void store_thread(struct emit *e, const struct op *op);
void emit_scan(struct emit *e, const struct op *op);
void emit_total(struct emit *e, const struct op *op);
LLVMValueRef thread_decay(struct emit *e, const struct op *op, uint32_t r); /* of register r of a decay */
void emit_thread_dot(struct emit *e, const struct op *op);

/* Its terms of the held elements in `mask`, beginning with `held`. */
void dot_elements(struct emit *e, const struct op *op, uint32_t held[TG_N_DIMS], uint32_t mask);
uint32_t dims_of_dot(const struct plan *p, const struct op *op);

/* ---- thread_walk.c: a decode step that walks its tokens, with a state that threads share ------------------------ */
void dot_of_sharers(struct emit *e, const struct op *op);
void walk_tokens(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end);
void load_rows_for(struct emit *e, const struct op *op); /* what it reads of dqk */

/* ---- thread_rows.c: a state whose decays of rows are in the rows that it meets ------------------------------------- */
void part_rows(struct emit *e, uint32_t begin);            /* before the walk, whose operations are from there on */
void decay_rows(struct emit *e, uint32_t state);           /* in a token */
void store_undecayed(struct emit *e, const struct op *op); /* in a token: such a state */
void end_rows(struct emit *e);                             /* behind the walk */

/* ---- thread_early.c: what it makes of all tokens before the walk: operations `begin` to `end` -------------------- */
void make_early(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end);

/* ---- thread_fetch.c: what a decode step that walks its tokens loads, of all of them before the walk ------------- */
void fetch_tokens(struct emit *e, const struct nest *nest); /* on their way */
void await_tokens(struct emit *e, const struct nest *nest); /* ... and there, for all threads */
/* Of the token at hand: all, or of what sharers read the elements of one group. */
void load_fetched(struct emit *e, uint32_t v);
void load_fetched_group(struct emit *e, uint32_t v, uint32_t group);
/* What is made of it: to where it is read; and from there, of a number. */
void put_fetched(struct emit *e, const struct value *v, LLVMValueRef *registers);
void load_number(struct emit *e, uint32_t v);

/* ---- thread_loop.c ------------------------------------------------------------------------------------------ */
/* Emits the nest at op index `begin`; returns the index of its end. */
uint32_t emit_thread_nest(struct emit *e, uint32_t begin);
void reset_scans(struct emit *e, uint32_t begin, uint32_t end);

/* Steps of a loop; the place in its step number `index`. */
LLVMValueRef thread_trips(struct emit *e, const struct loop *loop);
struct place place_in_nest(struct emit *e, const struct nest *nest, const struct loop *loop, LLVMValueRef index);
/* The operations of the nest that run in a step, but for those that come together at the end of a round. */
void emit_guarded(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end, uint32_t guard);
void load_all_staged(struct emit *e, const struct nest *nest); /* of this step, in a nest that is shared out */

/* ---- thread_round.c ----------------------------------------------------------------------------------------- */
/* The inner loop of a nest. */
void emit_thread_rounds(struct emit *e, const struct nest *nest, const struct loop *loop, uint32_t begin, uint32_t end);
/* Of a nest whose inner loop is short: rounds of several blocks of the outer one. Returns the first block that is in none. */
LLVMValueRef emit_thread_blocks(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end);

/* ---- thread_share.c: what is uniform in a nest that is shared out ---------------------------------------------- */
/* Does all of it, operations [begin, end) of the nest. */
void share_out(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end);
/* Is value i one that the steps of the nest leave for all threads? */
bool is_staged_in(const struct emit *e, uint32_t i, const struct nest *nest);
/* What waits for the end of the nest, in registers again. */
void load_kept(struct emit *e, const struct nest *nest);
/* What step `step` (i32) left for all threads. */
void load_staged(struct emit *e, uint32_t v, LLVMValueRef step);

/* ---- compose.c: what a segment begins with, of what each makes by itself ------------------------------------- */
void compose_segments(struct emit *e, const struct op *op);
void compose_by_values(struct emit *e, const struct op *op); /* compose_values.c */

/* ---- llvm.c ------------------------------------------------------------------------------------------------ */
bool emit_finish(struct emit *e, bool keep_llvm, struct lowered *out);

#endif
