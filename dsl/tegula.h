/* dsl/tegula.h - how a kernel is written down: three plain structs with one-way references.
 *
 *   tg_algorithm   tensors named by their axes and a flat list of tile statements: the paper's equations.
 *                  No sizes, no warps, no loops.
 *   tg_schedule    which kernels compute it. A kernel is named by the tensors it writes (what else it
 *                  must compute follows from the equations) and by one row, as in Table 1 of the TFLA
 *                  paper extended by the two sequence levels: the role of every dimension and its block. One
 *                  table may serve several algorithms, at several points.
 *   tg_space       which schedule fields the tuner may vary, and over which values.
 *
 * All three are `static const`, constant-initialised and compile with -std=c11 -pedantic. They carry
 * struct_size and version so that a shared object compiled last year still loads. Zero means default
 * everywhere. Nothing here allocates; the strings and arrays belong to the declaration. */
#ifndef TEGULA_H
#define TEGULA_H

#include "../program/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- dimensions ---------------------------------------------------------------------------------
 * Axes of a tensor in memory are TG_T, TG_CHUNK, TG_DQK, TG_DHV (program.h). A kernel does not
 * iterate over T but over segment, chunk and position inside the chunk; a position is read in one of
 * two capacities: as the query's row (Lhq in the paper) or as the key's and value's (Lkv). */
enum {
    TG_SEG = TG_N_AXES, /* segment: a run of chunks walked by one thread block; its block counts chunks */
    TG_LQ,              /* position inside the chunk of a query row, i */
    TG_LKV,             /* position inside the chunk of a key/value row, j */
    TG_BATCH,           /* sequence of the batch; parallel unless a row loops over it */
    TG_MEMBER,          /* head inside its group; parallel (with the groups) unless a row loops over it. On warpgroups
                         * with TG_P(n): n of them in one thread block, which loads and computes once what they share;
                         * of a tile that is read by sums over heads alone it writes the sum of theirs. Such a tile, with one
                         * head or several, is in memory in the input type, fp32 as it may be declared, unless it has parts */
    TG_N_DIMS
};

/* ---- tiles --------------------------------------------------------------------------------------
 * A tile is everything a statement reads or writes. Tile 0 is reserved ("none"): number them from 1.
 * Every tile has the batch and head axes implicitly, less what TG_NO_BATCH and TG_SHARED say.
 * Positions x positions ({TG_LQ, TG_LKV}) exist in kernels only. {TG_T, TG_LKV}, of an intermediate, is the same in
 * memory: row i of token t, one column for every position of its chunk; it is read at query positions (TG_AT_Q). An
 * algorithm with such a tile, or with a SOLVE, has one chunk size: that of the schedule. */
typedef struct tg_tensor {
    const char *name;          /* as in the paper and in safetensors files */
    uint8_t dtype;             /* TG_IO: the input type, in which vectors and numbers are read by rows without matrix
                                * products alone; TG_F32; TG_F32X2, of an intermediate; 0 means TG_F32 */
    uint8_t flags;             /* TG_IN, TG_OUT, TG_OPTIONAL, TG_NO_BATCH, TG_SHARED, TG_STEADY; 0: an intermediate */
    uint8_t axes[TG_MAX_AXES]; /* {TG_T, TG_DQK}, {TG_CHUNK}, {TG_LQ, TG_LKV}, ... */
    uint8_t drawn;             /* tg_drawn, of an input: what its random numbers are like; changes no kernel */
} tg_tensor;

/* Random inputs, with which kernels are checked and timed, are numbers that a model might have: with others states grow
 * until nothing is left to compare. In every other head little is forgotten, so that what is carried from chunk to chunk
 * matters. */
typedef enum tg_drawn {
    TG_DRAWN_NORMAL = 0, /* mean 0, variance 1 */
    TG_DRAWN_UNIT,       /* rows about 1 long along the last axis: keys of a delta rule */
    TG_DRAWN_FORGET,     /* goes into a sigmoid, of what is kept: normal, about 6 where little is forgotten */
    TG_DRAWN_LET_IN,     /* goes into a sigmoid, of what is let in: the same */
    TG_DRAWN_LOG_LET_IN, /* log of what is let in: normal, about -3 where little is forgotten */
    TG_DRAWN_LOG_DECAY,  /* log of what is kept, never positive: that of a sigmoid of TG_DRAWN_FORGET */
    TG_DRAWN_STEP,       /* goes into a softplus, which makes 0.001 .. 0.1 of it */
    TG_DRAWN_LOG_RATE,   /* log(1) .. log(16) */
    TG_DRAWN_NEAR_ONE,   /* mean 1, deviation 0.1 */
    TG_DRAWN_SMALL,      /* mean 0, deviation 0.1 */
    TG_DRAWN_COUNT,      /* of tokens behind a state: a whole number, 8 .. 15 */
    TG_DRAWN_FRACTION,   /* 0 .. 1 */
    TG_N_DRAWN
} tg_drawn;

/* A tile as an operand: a tile with axis TG_T is read at query or at key/value positions. */
typedef uint16_t tg_operand;
#define TG_AT_Q(tile)            ((tg_operand)((tile) | (TG_LQ << 8)))
#define TG_AT_KV(tile)           ((tg_operand)((tile) | (TG_LKV << 8)))
#define TG_OPERAND_TILE(operand) ((operand)&0xff)
#define TG_OPERAND_AT(operand)   ((operand) >> 8)

/* ---- element-wise expressions -------------------------------------------------------------------
 * Written as functions of functions, in a MAP:
 *
 *     TG_MAP_TO(P, TG_CAUSAL(TG_MUL(TG_EXP2(TG_SUB(TG_Q(B), TG_KV(CJ))), TG_TILE(QK))))
 *
 * which the macros turn into at most 15 codes of reverse Polish, operands before their operation. Tiles of
 * fewer axes are broadcast by axis. Cumulative logs are base 2: on the hardware e^x is ex2, so gates are scaled
 * by log2(e) once, where they are made. */
typedef enum tg_x_op {
    TG_X_END = 0,
    TG_X_TILE,     /* push the operand */
    TG_X_NUMBER,   /* push a constant */
    TG_X_SCALAR,   /* push a scalar of the call, by its number in `operand`; 0 is the scale */
    TG_X_SIZE,     /* push how many elements the dimension `operand` has: TG_DQK, TG_DHV; TG_MEMBER: heads of a group */
    TG_X_ADD,      /* a b -> a + b */
    TG_X_SUB,      /* a b -> a - b; exact to float for two TG_F32X2 operands */
    TG_X_MUL,      /* a b -> a * b */
    TG_X_DIV,      /* a b -> a / b */
    TG_X_MAX,      /* a b -> max(a, b) */
    TG_X_MIN,      /* a b -> min(a, b) */
    TG_X_NEG,      /* a -> -a */
    TG_X_ABS,      /* a -> |a| */
    TG_X_EXP2,     /* a -> 2^a */
    TG_X_LOG2,     /* a -> log2(a) */
    TG_X_LOGSIG2,  /* a -> log2(sigmoid(a)), stable for any a: min(a,0) - log1p(e^-|a|), times log2(e) */
    TG_X_SIGMOID,  /* a -> 1 / (1 + e^-a) */
    TG_X_SOFTPLUS, /* a -> log(1 + e^a), stable for any a */
    TG_X_STEP,     /* a -> 1 where a > 0, else 0 */
    TG_X_CAUSAL,   /* a -> a where i >= j (and inside the chunk), else 0: a select, so that no inf or nan leaks */
    TG_X_BEFORE,   /* a -> a where i > j (and inside the chunk), else 0: the strict mask */
    TG_X_N_OPS
} tg_x_op;

typedef struct tg_x {
    uint8_t op; /* tg_x_op */
    uint8_t reserved;
    tg_operand operand; /* of TG_X_TILE; of TG_X_SCALAR the scalar's number; of TG_X_SIZE the dimension */
    float number;       /* of TG_X_NUMBER */
} tg_x;

/* An expression is a list of codes in parentheses, so that macros of one's own can take it and hand it on. These
 * four are how the others are made. */
#define TG_CODES(...)                   __VA_ARGS__
#define TG_LEAF(op_, operand_, number_) ({op_, 0, operand_, number_})
#define TG_UNARY(op_, a)                (TG_CODES a, {op_, 0, 0, 0.0f})
#define TG_BINARY(op_, a, b)            (TG_CODES a, TG_CODES b, {op_, 0, 0, 0.0f})

/* What there is to begin with: a tile with axis TG_T at query or at key/value positions, one without it,
 * a number, a scalar of the call, the size of a dimension. */
#define TG_Q(tile)         TG_LEAF(TG_X_TILE, TG_AT_Q(tile), 0.0f)
#define TG_KV(tile)        TG_LEAF(TG_X_TILE, TG_AT_KV(tile), 0.0f)
#define TG_TILE(tile)      TG_LEAF(TG_X_TILE, (tile), 0.0f)
#define TG_NUM(number_)    TG_LEAF(TG_X_NUMBER, 0, (number_))
#define TG_SCALAR(number_) TG_LEAF(TG_X_SCALAR, (number_), 0.0f)
#define TG_SCALE           TG_SCALAR(0)
#define TG_SIZE(dim_)      TG_LEAF(TG_X_SIZE, (dim_), 0.0f)

#define TG_ADD(a, b)   TG_BINARY(TG_X_ADD, a, b)
#define TG_SUB(a, b)   TG_BINARY(TG_X_SUB, a, b)
#define TG_MUL(a, b)   TG_BINARY(TG_X_MUL, a, b)
#define TG_DIV(a, b)   TG_BINARY(TG_X_DIV, a, b)
#define TG_MAX(a, b)   TG_BINARY(TG_X_MAX, a, b)
#define TG_MIN(a, b)   TG_BINARY(TG_X_MIN, a, b)
#define TG_NEG(a)      TG_UNARY(TG_X_NEG, a)
#define TG_ABS(a)      TG_UNARY(TG_X_ABS, a)
#define TG_EXP2(a)     TG_UNARY(TG_X_EXP2, a)
#define TG_LOG2(a)     TG_UNARY(TG_X_LOG2, a)
#define TG_LOGSIG2(a)  TG_UNARY(TG_X_LOGSIG2, a)
#define TG_SIGMOID(a)  TG_UNARY(TG_X_SIGMOID, a)
#define TG_SOFTPLUS(a) TG_UNARY(TG_X_SOFTPLUS, a)
#define TG_STEP(a)     TG_UNARY(TG_X_STEP, a)
#define TG_CAUSAL(a)   TG_UNARY(TG_X_CAUSAL, a)
#define TG_BEFORE(a)   TG_UNARY(TG_X_BEFORE, a)

/* ---- statements ---------------------------------------------------------------------------------
 * Each tile is written by exactly one statement, before it is read (single assignment). Only the out of
 * a CARRY is there before its statement: it arrives from the previous chunk, so what goes into the state
 * may depend on it (delta rule). */
typedef enum tg_stmt_op {
    TG_STMT_NONE = 0,
    TG_STMT_MAP,      /* out = expr */
    TG_STMT_SCAN,     /* out_j = sum over s <= j of a_s: over the positions of the chunk where out and a have
                         axis TG_T, over the chunks of the sequence where they have TG_CHUNK instead */
    TG_STMT_TOTAL,    /* out = sum of a over what a has and out lacks: positions of the chunk (out has TG_CHUNK
                         for TG_T), chunks, sequences (out is TG_NO_BATCH), heads of a group (out is TG_SHARED) */
    TG_STMT_CONTRACT, /* out = init + sum over the axes of a and b that out lacks of a * b; b = 0: of a */
    TG_STMT_CARRY,    /* the state, see below */
    TG_STMT_SOLVE,    /* out = (I + a)^-1 of one chunk, positions x positions; of a only what is below the diagonal
                         (i > j) is read. In fp32, by substitution: the T of the delta rule */
    TG_STMT_SHIFT,    /* out = a of the token before, see below */
    TG_STMT_N_OPS
} tg_stmt_op;

/* Flags of SCAN and TOTAL. TG_MAXIMUM: the largest instead of the sum (of nothing: -1e30). TG_EXCLUSIVE, of
 * SCAN: s < j. TG_REVERSE, of SCAN over chunks: from the last one on, s >= j. */

/* A CONTRACT with a decay: every term is weighted by what is left of key position j at query position
 * i, and only pairs with i >= j (TG_EXCLUSIVE: i > j) inside the chunk are terms at all:
 *     out = init + sum over the axes of a and b that out lacks of a * b * 2^(decay_i - since_j)
 * decay is read at query and since at key/value positions. Both have axis TG_T and the same channel axis, or none:
 *     summed over:  P_ij  = sum_c Q_ic K_jc 2^(b_ic - b_jc)       ("pair")
 *     in the out:   Out_ix = sum_j P_ij X_jx 2^(b_ix - b_jx)      ("spread"; at j, sum over i: the reverse)
 * Often both are one cumulative log2 decay of the chunk; decay may also be the sum up to the position before, as where a
 * token is read before it is written. Neither may grow along the positions. Any decay is right, one that underflows
 * too: how the power is split so that nothing overflows is the compiler's business. */

/* TG_STMT_CARRY, the core "state" kernel (TFLA eq. 28): over the chunks k in order
 *     out_k       = state that arrives at chunk k            (what other statements read)
 *     state_{k+1} = 2^decay_k state_k + sum_j a_j b_j
 *     state_0     = init, or 0 when that tensor is absent;   final = the state after the last chunk
 * b = 0: a has the axes of the state and is added as it is; it may be a sum of several products (TG_CONTRACT_ONTO).
 * What is added may depend on the state that arrives; then linearly, if `transition` is to take what a segment of chunks
 * does to a state, a block of values of its own for every segment: state behind it = transition (state before it) + what
 * the segment makes of zero. No statement reads it (segments, below). TG_REVERSE walks the chunks from the last to the
 * first (gradients of states). */
/* TG_STMT_SHIFT, by one token along the sequence, whatever its chunks:
 *     out_t = a_{t-1}        out_0 = init, or 0 when that tensor is absent;   final = a of the last token
 * TG_REVERSE: of the token behind, out_t = a_{t+1}, from the last token to the first. Out and a have axis TG_T at the same
 * position and all other axes alike; init and final lack TG_T. Without a only init is shifted through the sequence. A
 * SHIFT of a SHIFT, the same way, is one by two, and so on up to TG_MAX_SHIFTS: what a convolution reads, whose state is
 * then the finals, of which that of a sequence shorter than the shift is an initial one. What is shifted is in memory: an
 * input, or written by an earlier row; the kernel has no matrix instruction. No row lists out, and one that lists a
 * final has no parallel chunks. */
enum { TG_MAX_SHIFTS = 8 };

enum { TG_REVERSE = 1, TG_MAXIMUM = 2, TG_EXCLUSIVE = 4 };

enum { TG_MAX_EXPR = 16 };

typedef struct tg_stmt {
    uint8_t op;    /* tg_stmt_op */
    uint8_t flags; /* TG_REVERSE, TG_MAXIMUM, TG_EXCLUSIVE: of which statement is said above */
    tg_operand out;
    tg_operand a, b;       /* SCAN, TOTAL, SHIFT: a. CONTRACT, CARRY: a and b, 16-bit or TF32 matrix operands */
    tg_operand init;       /* CONTRACT: accumulate onto this tile. CARRY, SHIFT: the initial state tensor */
    tg_operand decay;      /* CARRY: log2 of the chunk's decay, axes {TG_CHUNK} and any of the state's; 0: none.
                          CONTRACT: cumulative log2 decay of the query's position; 0: none */
    tg_operand final_;     /* CARRY, SHIFT: tensor that receives the final state */
    tg_operand transition; /* CARRY: tile with the axes {TG_CHUNK, X, X}, X being the first of the state's; 0: none */
    tg_operand
        transposed;    /* CARRY: transition of an earlier CARRY the other way, whose transpose this one's is; 0: none */
    tg_operand behind; /* CARRY: tile with the axes of out that receives the state behind each chunk; 0: none */
    tg_operand same;   /* CARRY: out of an earlier CARRY of the same state, and the same way; 0: none */
    tg_operand since;  /* CONTRACT with a decay: cumulative log2 decay of the key's position */
    tg_x expr[TG_MAX_EXPR]; /* MAP; ends with TG_X_END, so at most 15 codes */
    const char *file;       /* where the user wrote it: goes to diagnostics and to .loc lines in the PTX */
    int line;
} tg_stmt;

#define TG_HERE .file = __FILE__, .line = __LINE__
#define TG_MAP_TO(out_, expression_)                                                                                   \
    {                                                                                                                  \
        .op = TG_STMT_MAP, .out = (out_), .expr = {TG_CODES expression_}, TG_HERE                                      \
    }
#define TG_SCAN_TO(out_, a_)                                                                                           \
    {                                                                                                                  \
        .op = TG_STMT_SCAN, .out = (out_), .a = (a_), TG_HERE                                                          \
    }
#define TG_TOTAL_TO(out_, a_)                                                                                          \
    {                                                                                                                  \
        .op = TG_STMT_TOTAL, .out = (out_), .a = (a_), TG_HERE                                                         \
    }
#define TG_SCAN_MAX_TO(out_, a_)                                                                                       \
    {                                                                                                                  \
        .op = TG_STMT_SCAN, .flags = TG_MAXIMUM, .out = (out_), .a = (a_), TG_HERE                                     \
    }
#define TG_TOTAL_MAX_TO(out_, a_)                                                                                      \
    {                                                                                                                  \
        .op = TG_STMT_TOTAL, .flags = TG_MAXIMUM, .out = (out_), .a = (a_), TG_HERE                                    \
    }
#define TG_SOLVE_TO(out_, a_)                                                                                          \
    {                                                                                                                  \
        .op = TG_STMT_SOLVE, .out = (out_), .a = (a_), TG_HERE                                                         \
    }
#define TG_SUM_TO(out_, a_)                                                                                            \
    {                                                                                                                  \
        .op = TG_STMT_CONTRACT, .out = (out_), .a = (a_), TG_HERE                                                      \
    }
#define TG_CONTRACT_TO(out_, a_, b_)                                                                                   \
    {                                                                                                                  \
        .op = TG_STMT_CONTRACT, .out = (out_), .a = (a_), .b = (b_), TG_HERE                                           \
    }
#define TG_CONTRACT_ONTO(out_, init_, a_, b_)                                                                          \
    {                                                                                                                  \
        .op = TG_STMT_CONTRACT, .out = (out_), .a = (a_), .b = (b_), .init = (init_), TG_HERE                          \
    }
#define TG_CONTRACT_DECAY_TO(out_, a_, b_, decay_, since_)                                                             \
    {                                                                                                                  \
        .op = TG_STMT_CONTRACT, .out = (out_), .a = (a_), .b = (b_), .decay = (decay_), .since = (since_), TG_HERE     \
    }
#define TG_CONTRACT_DECAY_ONTO(out_, init_, a_, b_, decay_, since_)                                                    \
    {                                                                                                                  \
        .op = TG_STMT_CONTRACT, .out = (out_), .a = (a_), .b = (b_), .init = (init_), .decay = (decay_),               \
        .since = (since_), TG_HERE                                                                                     \
    }
#define TG_CONTRACT_DECAY_BEFORE_TO(out_, a_, b_, decay_, since_)                                                      \
    TG_CONTRACT_DECAY_BEFORE_ONTO(out_, 0, a_, b_, decay_, since_)
#define TG_CONTRACT_DECAY_BEFORE_ONTO(out_, init_, a_, b_, decay_, since_)                                             \
    {                                                                                                                  \
        .op = TG_STMT_CONTRACT, .flags = TG_EXCLUSIVE, .out = (out_), .a = (a_), .b = (b_), .init = (init_),           \
        .decay = (decay_), .since = (since_), TG_HERE                                                                  \
    }
#define TG_CARRY_TO(out_, final__, init_, decay_, a_, b_)                                                              \
    {                                                                                                                  \
        .op = TG_STMT_CARRY, .out = (out_), .final_ = (final__), .init = (init_), .decay = (decay_), .a = (a_),        \
        .b = (b_), TG_HERE                                                                                             \
    }
#define TG_CARRY_BACK_TO(out_, final__, init_, decay_, a_, b_)                                                         \
    {                                                                                                                  \
        .op = TG_STMT_CARRY, .flags = TG_REVERSE, .out = (out_), .final_ = (final__), .init = (init_),                 \
        .decay = (decay_), .a = (a_), .b = (b_), TG_HERE                                                               \
    }
/* A state that another CARRY has, once more; with the states behind its chunks (0: nobody reads them). */
#define TG_CARRY_AGAIN_TO(out_, same_, behind_, final__, init_, decay_, a_, b_)                                        \
    {                                                                                                                  \
        .op = TG_STMT_CARRY, .out = (out_), .same = (same_), .behind = (behind_), .final_ = (final__),                 \
        .init = (init_), .decay = (decay_), .a = (a_), .b = (b_), TG_HERE                                              \
    }
#define TG_CARRY_AGAIN_BACK_TO(out_, same_, behind_, final__, init_, decay_, a_, b_)                                   \
    {                                                                                                                  \
        .op = TG_STMT_CARRY, .flags = TG_REVERSE, .out = (out_), .same = (same_), .behind = (behind_),                 \
        .final_ = (final__), .init = (init_), .decay = (decay_), .a = (a_), .b = (b_), TG_HERE                         \
    }
/* ... with a transition. */
#define TG_CARRY_LINEAR_TO(out_, transition_, final__, init_, decay_, a_, b_)                                          \
    {                                                                                                                  \
        .op = TG_STMT_CARRY, .out = (out_), .transition = (transition_), .final_ = (final__), .init = (init_),         \
        .decay = (decay_), .a = (a_), .b = (b_), TG_HERE                                                               \
    }
#define TG_CARRY_LINEAR_BACK_TO(out_, transition_, final__, init_, decay_, a_, b_)                                     \
    TG_CARRY_TRANSPOSED_BACK_TO(out_, transition_, 0, final__, init_, decay_, a_, b_)
/* ... which is the transpose of another's. */
#define TG_CARRY_TRANSPOSED_BACK_TO(out_, transition_, transposed_, final__, init_, decay_, a_, b_)                    \
    {                                                                                                                  \
        .op = TG_STMT_CARRY, .flags = TG_REVERSE, .out = (out_), .transition = (transition_),                          \
        .transposed = (transposed_), .final_ = (final__), .init = (init_), .decay = (decay_), .a = (a_), .b = (b_),    \
        TG_HERE                                                                                                        \
    }

#define TG_SHIFT_TO(out_, final__, init_, a_)                                                                          \
    {                                                                                                                  \
        .op = TG_STMT_SHIFT, .out = (out_), .final_ = (final__), .init = (init_), .a = (a_), TG_HERE                   \
    }
#define TG_SHIFT_BACK_TO(out_, final__, init_, a_)                                                                     \
    {                                                                                                                  \
        .op = TG_STMT_SHIFT, .flags = TG_REVERSE, .out = (out_), .final_ = (final__), .init = (init_), .a = (a_),      \
        TG_HERE                                                                                                        \
    }

/* ---- algorithm ---------------------------------------------------------------------------------- */
/* A number that every call may choose. value 0 of scalar 0, the scale, means 1/sqrt(dqk). */
typedef struct tg_scalar {
    const char *name;
    float value;
} tg_scalar;

typedef struct tg_algorithm {
    uint32_t struct_size;     /* sizeof(tg_algorithm) */
    uint32_t version;         /* TG_DSL_VERSION */
    const char *name;         /* "mlstm-sig" */
    const char *title;        /* one line for people: what it is and from which paper */
    const char *file;         /* __FILE__ */
    const tg_tensor *tensors; /* [0] unused */
    uint32_t n_tensors;
    uint32_t n_body;
    const tg_stmt *body;
    const tg_scalar *scalars; /* [0] is the scale; NULL: {"scale", 0} alone */
    uint32_t n_scalars;
} tg_algorithm;

enum { TG_DSL_VERSION = 7 };
#define TG_HEADER(type) .struct_size = (uint32_t)sizeof(type), .version = TG_DSL_VERSION
#define TG_COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* ---- schedule ----------------------------------------------------------------------------------- */
typedef enum tg_role {
    TG_ROLE_NONE = 0, /* the kernel does not iterate over this dimension */
    TG_ROLE_P,        /* parallel: blocks of it are different thread blocks (grid) */
    TG_ROLE_L,        /* looped: blocks of it are visited by one thread block, results accumulated */
    TG_ROLE_W,        /* walked: visited in order, something carried on chip from one to the next */
    TG_ROLE_R, /* relayed, TG_SEG alone: different thread blocks, each goes on with what the one before it has left, see below */
} tg_role;

typedef struct tg_axis_role {
    uint8_t role; /* tg_role */
    uint8_t
        cluster; /* with role P, neighbouring thread blocks are a cluster, see below: TG_ADDS; 2 or 4 that share loads; both */
    uint16_t block; /* elements of one tile; 0: the whole dimension (dqk, dhv), or 1 (chunk, segment) */
} tg_axis_role;
#define TG_P(block_)                                                                                                   \
    {                                                                                                                  \
        TG_ROLE_P, 0, (block_)                                                                                         \
    }
#define TG_L(block_)                                                                                                   \
    {                                                                                                                  \
        TG_ROLE_L, 0, (block_)                                                                                         \
    }
#define TG_W(block_)                                                                                                   \
    {                                                                                                                  \
        TG_ROLE_W, 0, (block_)                                                                                         \
    }
#define TG_R(block_)                                                                                                   \
    {                                                                                                                  \
        TG_ROLE_R, 0, (block_)                                                                                         \
    }
enum { TG_ADDS = 1 };
#define TG_CLUSTER(block_)                                                                                             \
    {                                                                                                                  \
        TG_ROLE_P, TG_ADDS, (block_)                                                                                   \
    }
#define TG_CAST(n_, block_)                                                                                            \
    {                                                                                                                  \
        TG_ROLE_P, (n_), (block_)                                                                                      \
    }
#define TG_CLUSTER_CAST(block_)                                                                                        \
    {                                                                                                                  \
        TG_ROLE_P, TG_ADDS | 2, (block_)                                                                               \
    }

/* In a kernel without matrix products (TG_MMA_NONE) a tile is not shared among threads: one dimension has a
 * block of 32 x warps, one element a thread, or of 2 or, if it is dqk or dhv, 4 times that: a thread has so many
 * elements side by side, and loads and stores those of dqk and dhv at once where they are dense in memory. Its role is P; or L, where
 * the kernel sums over dqk or dhv: then the threads have all of it and add up theirs; a width beyond the block takes as many more
 * threads as it is longer. The others go block by block: 1, one after the other (P: the grid; L, W: a loop). A kernel of one warp may
 * have TG_P(n) for the chunk: a thread block has n of them, a warp each. A position with role L and
 * a block n > 1 is held whole, in n registers of every thread; so are, in a decode step (max_tokens = n > 1), n chunks of one position
 * each, with role W: what of their loop over dqk or dhv does not depend on the thread's own element is then done once, shared out among
 * the threads. What the heads of a group share is done once for all of them, by a kernel that has nothing else.
 *
 * A decode step of several tokens (max_tokens > 1, chunk = 1) may also walk its tokens, TG_W(1): what they load is brought on
 * chip before, of all of them. There dqk may be held whole (TG_L(0)), so that the state stays in registers and may be read
 * before it is changed. A thread then has 4 elements of dhv; where the block of dhv is 4 x 32 x warps divided by n (2 to 32),
 * n threads of a warp have the same ones, share out dqk and add up what they have of a sum over it. */

/* Which matrix instruction. If the target or the types cannot do it, that is an error with a reason,
 * never a silent fallback. */
typedef enum tg_mma {
    TG_MMA_NONE = 0,   /* none: every thread computes its elements by itself, see above */
    TG_MMA_SYNC = 1,   /* mma.sync m16n8k16 on bf16 or f16 inputs, sm_80 and later; a row that makes decays of channels
                          (a SCAN of a tile with TG_DQK) may say it without a product, and a chunk is one block then */
    TG_MMA_TF32X3 = 2, /* mma.sync m16n8k8 on f32 inputs split into two TF32 parts, three products; sm_80 and later */
    TG_MMA_WGMMA = 3,  /* wgmma on bf16 or f16 inputs, sm_90a, in a kernel that walks the chunks: see below */
} tg_mma;

/* A kernel with TG_MMA_WGMMA walks the chunks (TG_W), and a chunk is one tile: its size is the block of Lhq and of
 * Lkv, 64. The state stays in registers. `warps` (4 or 8) consume: each four of them, a warpgroup, own as many
 * elements of the output's dqk or dhv, in tiles of 64; they share out the tiles of positions. With 8 and a block of 64 both
 * have all of these, and each half of what else the state has, so up to 512; such a row makes no states of segments, sums none
 * over rows of its state, and is in no cluster that adds up. With `makers` 4 four warps beside
 * them make these, up to `stages` chunks ahead, where nothing is summed of them, every warpgroup has one tile of 64 of one head,
 * and the state leaves registers for it; elsewhere `makers` changes nothing, but for rows: matrices of positions by 64 or 128
 * elements of dqk or dhv that are not the output's, maps and a SCAN over positions of such that are loaded. A product may have one
 * on the right that no row before writes, if there are makers to make it (KDA's kb, ke and qb of k, q and the gates). One more
 * warpgroup loads what they need `stages` chunks ahead. A vector beside the state (a CARRY without b, of a sum over the positions
 * of a loaded matrix times a loaded vector: the normaliser's n) may be carried too.
 *
 * Where a sum over dqk or dhv is parallel (TG_P, several blocks), every thread block has a part of it, which goes to
 * memory in fp32, and the row that reads it adds the parts up. What the row lists must be an intermediate and, in the
 * part, a plain sum; on warpgroups anything linear, and what is added to a part without being one counts in the first.
 * With TG_CLUSTER instead of TG_P the two thread blocks of such a sum add up what the row lists of positions by dqk or dhv: each
 * rounds its part to the input type, and the sum, rounded once more, may be the caller's. Its other sums stay parts. The first
 * stores its part and the other one adds to it in memory; in the first row, of packed sequences, and where the row has not two stages or
 * has makers, they are a cluster and exchange halves on chip. Both give the same bits.
 * With TG_CLUSTER(1) for TG_MEMBER the thread blocks of the two heads of a group add up what the row lists of sums over heads, matrices
 * of positions by dqk or dhv, in the same way; a group of one head has nothing to add up.
 *
 * With TG_CAST(n) instead of TG_P, n neighbouring blocks (2 or 4) of dqk or dhv are a cluster, which loads once what is
 * the same in all of them, every tile without that dimension: each thread block 1/n of its columns, to the memory of all.
 * Where there is but one block nothing is shared, and it is TG_P. TG_CLUSTER_CAST does both. Where both dqk and dhv have
 * clusters, they are one: its thread blocks are neighbours in either. */

/* Segments, for sequences too few to fill the GPU: with TG_SEG parallel a thread block walks only so many chunks. Two
 * kinds of rows do, both with TG_MMA_WGMMA. One that lists the out of a carry writes what each segment by itself makes
 * of a state of zero, one state a segment instead of one a chunk. A later one that needs that tile, or one of another
 * program for which the tile is kept, walks on from the state with which its segment begins. Between them a row without
 * matrix products lists the tile once more and walks the segments (TG_W) but not the chunks: it composes them in place,
 * each state decayed by all chunks behind it. All rows of a schedule have the same block. Both may list the
 * vector beside the state too, which then has one entry a segment like it.
 *
 * Where what is added depends on the state, a number is not enough to compose by. The first row lists the transition of the
 * CARRY too: its thread blocks then are those of the values, and behind them as many as the transition needs, which walk
 * the same chunks from the identity, with zeros for what they load of the values. The first segment begins with the
 * initial state. What rows behind it list this row makes for itself. The row between has matrix products, with
 * TG_MMA_TF32X3: each state times the transition of its segment.
 *
 * Both ways through a sequence are cut at the same chunks: backwards the segment that comes first may be shorter. So what
 * segments have of one walk others can use:
 *   same        of a CARRY: the same state as that of another CARRY, whose segments' states are in memory. Where it has none by
 *               itself, it begins with those. The two differ by rounding, so that this one's segments do not begin with what
 *               those before have ended with;
 *   transposed  of a CARRY the other way: segments are composed by the transpose of that transition, where it is in memory, so
 *               that the row that makes them lists none;
 *   behind      of a CARRY: a row that walks segments on from where they begin may list it. Of each there is the state behind
 *               the last chunk. Or it lists a CONTRACT of these with the states of a CARRY the other way, summed over both
 *               widths: then the row reads those with which that one's segments begin, and no state is written;
 *   TG_STEADY   of a tile of chunks: it is the same for all those of a sequence, but for rounding. A row with
 *               TG_P(chunks) for TG_SEG and TG_P(1) for TG_CHUNK has of each segment the last chunk, and makes one number for
 *               all of them. It reads the states behind it, or such a CONTRACT, and gradients of states, which arrive there
 *               from the other side; with numbers of chunks alone it has TG_MMA_SYNC and one warp;
 *               rows with one chunk each read what it has made of their segment.
 *
 * The first of them may walk the segments instead (TG_W): all chunks in order, from the initial state, and it writes the
 * state with which each segment begins, so that there is nothing to compose. These are the two kernels of the TFLA
 * paper, whose chunk is a segment here, and whose second level of tiling is the walk inside of it. It may have other outputs,
 * of its chunks, and leave the states on its way. */

/* Relays, for sequences whose thread blocks are a little more than the GPU has room for, so that a last few would walk while the
 * others of its multiprocessors have nothing to do. With TG_R(chunks) for TG_SEG in a row with TG_MMA_WGMMA a thread block walks so
 * many chunks and leaves its state, in fp32, in the workspace; the one that walks the next ones of that sequence waits for it and
 * goes on from there, bit by bit as if one had walked all. Thread blocks begin in the order of the grid, in which all that walk the
 * first chunks come before those of the next ones: who is waited for has begun. What says that a state is there is cleared by the
 * first row, which therefore is another one. Nothing else is carried from chunk to chunk: no vector beside the state. Rows may have
 * different lengths; where one is relayed, none is cut into segments. */

/* Pieces, for sequences that are long and too few: with .pieces = n > 1 all rows are launched for the first chunks of each sequence,
 * then for the next ones, n times; each piece is shorter than the one before (n, n - 1, ... 1 parts of the chunks). Walks begin
 * with the states that those of the piece before have ended with, which are in the workspace. The first row, where it reads
 * nothing but inputs (T of KDA), does not wait for them: it begins beside the last row of the piece before, on the multiprocessors
 * that this leaves. Rows have TG_P or, forward in time, TG_W for TG_CHUNK, and no TG_SEG; each CARRY has `init` and `final_`. */

enum { TG_MAX_OUTPUTS = 12, TG_MAX_ROWS = 32, TG_MAX_KEPT = 8, TG_MAX_VARIED = 4 };

/* A schedule may be a table for several algorithms that number their tiles alike, and for several ways to cut and to keep
 * (points, below). What there is of a row is decided when it is bound to an algorithm (tg_variant_schedule): outputs that
 * the algorithm has no tile of are left out, so is a row without outputs, and one whose conditions do not hold. Where a
 * row differs from one case to the other, it is there twice, by one name and with other conditions. */
enum {
    TG_IF_CUT = 1,     /* where the sequences are cut into segments */
    TG_IF_KEPT = 2,    /* where the caller has memory for tensors of .kept */
    TG_IF_NOT_KEPT = 4 /* where not */
};

typedef struct tg_kernel_row {
    const char *name;                /* "state", "H"; NULL: the rows end here */
    uint8_t outputs[TG_MAX_OUTPUTS]; /* tiles this kernel writes to memory; the rest follows */
    tg_axis_role row[TG_N_DIMS];     /* the Table-1 row, indexed by TG_CHUNK, TG_LQ, TG_LKV, TG_DQK, TG_DHV, TG_SEG */
    uint8_t mma;                     /* tg_mma */
    uint8_t warps;                   /* warps of a thread block */
    uint8_t
        stages; /* tiles of a looped or walked operand in flight, 1 .. 8; 0 means 2, of walks on warpgroups 3 where there is room; a
                 * row that makes gradients with decays of channels takes fewer where there are fewer steps, or no room for so many */
    uint8_t blocks_per_sm; /* registers are limited so that this many fit; 0: as ptxas likes */
    uint8_t only;          /* TG_IF_... that must hold */
    uint8_t has, lacks;    /* only for algorithms that have the one tile, and do not have the other; 0: all */
    uint8_t
        makers; /* with TG_MMA_WGMMA, warps beside those that make tiles of positions where they can, and rows: 4; 0: none */
    int line; /* __LINE__ */
} tg_kernel_row;

/* A point of a schedule: the table with other values of some fields, as tg_schedule_apply takes them ("chunk=128
 * H.Lhq=64"). It has a name of its own, under which it is chosen, named and remembered. */
enum {
    TG_FIXED_CUT = 1,   /* its chunk, and the length of its segments */
    TG_FIXED_BLOCKS = 2 /* what its rows have: blocks, warps, stages */
};
/* When a schedule is not taken by default, but only where it is named or tuning has found it fastest. */
enum {
    TG_NAMED = 1,      /* always */
    TG_NAMED_ALONE = 2 /* where no heads share queries and keys: it sums up what those give that do */
};
typedef struct tg_point {
    const char *name;          /* NULL: the points end here */
    const char *changes;       /* NULL: none */
    uint32_t max_tokens;       /* as in the schedule; 0: that of the schedule */
    uint8_t by_name;           /* ... */
    uint8_t kept[TG_MAX_KEPT]; /* ... */
    uint8_t has, lacks;        /* as in a row */
    uint8_t fixed;             /* TG_FIXED_...: what the model does not vary by default, and tuning does */
} tg_point;

typedef struct tg_schedule {
    uint32_t struct_size; /* sizeof(tg_schedule) */
    uint32_t version;
    const char *name; /* "tfla" */
    const char *file; /* __FILE__ */
    /* NULL: that of the variant which lists the schedule. Given, the table is for this one: outputs it has no tile of
     * are mistakes. */
    const tg_algorithm *algorithm;
    uint32_t chunk;      /* default chunk size L; a run-time value otherwise */
    uint32_t max_tokens; /* the whole call is one chunk of at most so many tokens (a decode step); 0: any T */
    uint32_t by_name;    /* TG_NAMED, TG_NAMED_ALONE; 0: never */
    /* The chunks are taken in so many pieces, one after another, at most TG_MAX_PIECES; 0: all at once. */
    uint32_t pieces;
    /* Intermediates that live in the caller's memory instead of the workspace: outputs of the program where a
     * row writes them, inputs where none does. How a backward gets the states of its forward. */
    uint8_t kept[TG_MAX_KEPT];
    const tg_point *points;          /* in the order in which they are preferred; NULL: the table alone, by its name */
    uint32_t n_rows;                 /* 0: up to the first without a name */
    tg_kernel_row rows[TG_MAX_ROWS]; /* launched in this order */
} tg_schedule;

/* ---- tuning space ------------------------------------------------------------------------------- */
typedef enum tg_field {
    TG_FIELD_NONE = 0,
    TG_FIELD_CHUNK,
    TG_FIELD_SEGMENT, /* chunks of a segment, of all rows with TG_SEG; where they have none, sequences are not cut */
    TG_FIELD_PIECES,  /* of a point that has some; for tuning: the model takes those of the point */
    TG_FIELD_BLOCK,
    TG_FIELD_WARPS,
    TG_FIELD_STAGES,
    TG_FIELD_BLOCKS_PER_SM,
    TG_FIELD_MMA,     /* tg_mma */
    TG_FIELD_ROLE,    /* tg_role */
    TG_FIELD_CLUSTER, /* as in tg_axis_role */
    TG_FIELD_MAKERS
} tg_field;

enum { TG_MAX_VALUES = 12 };

typedef struct tg_vary {
    uint8_t field;                  /* tg_field */
    uint8_t dim;                    /* of TG_FIELD_BLOCK, TG_FIELD_ROLE and TG_FIELD_CLUSTER */
    uint16_t values[TG_MAX_VALUES]; /* ends at the first 0 */
    /* Kernels that have the value, all of them the same (blocks whose sums another row adds up); not of TG_FIELD_CHUNK,
     * TG_FIELD_SEGMENT and TG_FIELD_PIECES. Of a point without these rows or that dimension the field is not varied. */
    const char *rows[TG_MAX_VARIED];
    int line;
} tg_vary;

typedef struct tg_space {
    uint32_t struct_size;
    uint32_t version;
    const char *name;
    const char *file;
    const tg_schedule *schedule; /* its points are the points of departure */
    const tg_vary *vary;
    uint32_t n_vary;
} tg_space;

/* ---- variant: what the command line and a user's shared object offer ------------------------------ */

/* Tensors of an oracle call, contiguous [B, NH, axes...] less what their flags say, fp64; NULL when absent.
 * Indexed by tile. An oracle is called from several threads at once, each time for some of the heads: it writes to `out`
 * and to memory of its own, to nothing static. Where `cuts` is given, tensors with TG_T have one sequence [1, NH, T, ...]
 * with `batch` of them behind one another, and states have `batch`: an oracle must heed it. */
typedef struct tg_oracle_call {
    int64_t batch, heads, tokens, dqk, dhv;
    int64_t group;         /* heads that share a head of the TG_SHARED tensors; >= 1 */
    const int64_t *cuts;   /* packed sequences: [batch + 1] where each begins in T; NULL: batch x tokens */
    const double *scalars; /* as in the algorithm */
    const double *const *in;
    double *const *out;
} tg_oracle_call;

/* Another name, for wisdom and --schedule: {"segments-short", "segments seg=32"}. The text is the name of a point or of a
 * schedule without points, then changes. */
typedef struct tg_alias {
    const char *name;
    const char *text;
} tg_alias;

/* Another algorithm between the same tensors, and the schedules that are of it unless they say otherwise. */
typedef struct tg_way {
    const tg_algorithm *algorithm;       /* NULL: the ways end here */
    const tg_schedule *const *schedules; /* NULL-terminated */
} tg_way;

typedef struct tg_variant {
    uint32_t struct_size;
    uint32_t version;
    const char *name;           /* command-line name */
    const char *const *aliases; /* NULL-terminated, or NULL; golden-file names */
    const tg_algorithm *algorithm;
    const tg_schedule *const *schedules; /* NULL-terminated; of those accepted the cost model takes one */
    const tg_way *others;                /* after these; may be NULL */
    const tg_space *const *spaces;       /* NULL-terminated; may be NULL */
    const tg_alias *names;               /* of points; ends with a name of NULL; may be NULL */
    /* The recurrence in fp64, token by token, by which kernels are judged; NULL: they are judged by the statements
     * themselves (interpreter/interpreter.h), so that a mistake in these is not found. */
    void (*oracle)(const tg_oracle_call *);
    /* Gradients; NULL: none yet. Its tensors are the inputs by their names, "dX" as input for the gradient
     * that arrives for output X, "dX" as output for the gradient of input X. */
    const struct tg_variant *backward;
} tg_variant;

/* A user's shared object exports this: a NULL-terminated list of its variants.
 *     const tg_variant *const tg_variants[] = {&mine, NULL};
 * One without an algorithm is an addition: its schedules and spaces join those of the variant that comes with Tegula
 * by that name, forward ("mlstm-sig") or backward ("mlstm-sig-backward"). */
#define TG_PLUGIN_SYMBOL "tg_variants"

/* What a variant's tokens make of its states and nothing else, as a variant by the name "NAME-state": its statements, tensors and
 * schedules without what final states are not made of; of a backward, without what gradients of initial states are not made
 * of. Tensors keep their names; no output is optional. It has no oracle and no backward. NULL where the variant has no
 * states, or there is no memory. To be freed when nothing made of it is used any more; tg_variant_find
 * (variants/variants.h) has those of the built-in variants, which stay. */
TG_API const tg_variant *tg_states_of(const tg_variant *variant);
TG_API void tg_states_free(const tg_variant *states);

/* Receives text piecewise. */
typedef struct tg_writer {
    void (*write)(void *user, const char *text, size_t bytes);
    void *user;
} tg_writer;

/* The schedules of a variant, each point bound to its algorithm: rows, outputs and kept tensors as they are for that. The
 * i-th in the order of the lists and of their points; 0 when there are no more. Whatever takes a tg_schedule alone
 * wants such a one. */
TG_API int tg_variant_schedule(const tg_variant *variant, uint32_t i, tg_schedule *schedule);

/* Sets what a space varies, in all its rows. 0: the schedule does not have that field. */
TG_API int tg_vary_apply(const tg_vary *vary, uint32_t value, tg_schedule *schedule);

/* One of them by text: the name of a point, then changes, which may cut what is not cut: "walk seg=64 walk.stages=2".
 * TG_E_ARGUMENT, with a message, for a name that there is not (TG0231) and for changes as tg_schedule_apply refuses
 * them. And the shortest such text of a schedule that is one. */
TG_API tg_status tg_variant_schedule_named(const tg_variant *variant, const char *text, tg_schedule *schedule,
                                           const tg_sink *sink);
TG_API void tg_variant_schedule_text(const tg_variant *variant, const tg_schedule *schedule, const tg_writer *writer);

/* ---- checking and printing: microseconds, no LLVM, no GPU ----------------------------------------- */

/* Check a declaration by itself; report ALL its mistakes, each with a stable code (dsl/codes.def),
 * file:line of the statement, the numbers and a hint. TG_E_DECLARATION when there was an error. */
TG_API tg_status tg_algorithm_check(const tg_algorithm *algorithm, const tg_sink *sink);
TG_API tg_status tg_schedule_check(const tg_schedule *schedule, const tg_sink *sink); /* and its algorithm */
TG_API tg_status tg_space_check(const tg_space *space, const tg_sink *sink);          /* and its schedule */
TG_API tg_status tg_variant_check(const tg_variant *variant, const tg_sink *sink);    /* and all of it */

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
TG_API void
tg_printf(const tg_writer *writer, const char *format, ...);

/* The algorithm as equations, one line a statement; the schedule as its Table-1 rows. */
TG_API void tg_algorithm_print(const tg_algorithm *algorithm, const tg_writer *writer);
TG_API void tg_schedule_print(const tg_schedule *schedule, const tg_writer *writer);
TG_API const char *tg_dim_name(uint32_t dim); /* "Lhq" */

/* A canonical text of everything that decides the generated code (names and lines left out):
 * the key of caches. */
TG_API void tg_schedule_key(const tg_schedule *schedule, const tg_writer *writer);

/* The schedule fields that differ from `base`, which has the same rows, as "chunk=128 H.Lhq=64 H.warps=4"; and back.
 * seg=32 is the length of segments, or of all that is relayed; walk.seg=R/32 that of one row, walk.seg=./0 none. The axis of a row is a block alone, or with the role before it, as in the printed
 * table: dQ.dqk=P/128, .dhv=C/256 (TG_CLUSTER), .dhv=M2/128 (TG_CAST), .member=L. mma is none, sync, tf32x3 or wgmma.
 * Rows of one name are changed together. Wisdom files and `tegula run --schedule` use this form. */
TG_API void tg_schedule_diff(const tg_schedule *base, const tg_schedule *schedule, const tg_writer *writer);
TG_API tg_status tg_schedule_apply(const char *text, tg_schedule *schedule, const tg_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
