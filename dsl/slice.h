/* dsl/slice.h - what one kernel of a schedule must compute. Internal: the checker, the printer and
 * the compiler share these rules, nobody else restates them.
 *
 * A schedule names a kernel by the tiles it writes. Everything else follows: walk back from those
 * tiles through the statements that write them, and stop at tiles that are in memory already,
 * because they are inputs or because another row writes them.
 *
 * Positions. A statement such as `b at key positions = scan(a at key positions)` mentions one
 * position; when its tile is read at query positions it is evaluated there, with both positions
 * exchanged. A statement that mentions both positions (a product over j that yields rows i) cannot
 * be: its tile is written where it says and read across (the blocks of Lhq and Lkv must then be the
 * whole chunk).
 *
 * Everything here is total: any bytes in the structs give some answer, never a fault, provided the
 * pointers and the counts are those of real arrays. Meaningful answers need a checked declaration.
 */
#ifndef TEGULA_DSL_SLICE_H
#define TEGULA_DSL_SLICE_H

#include "dsl/tegula.h"

#include <stdbool.h>

/* Sets of tiles and of statements, by number. Tile 0 is "none". */
__extension__ typedef unsigned __int128 tg_bits;
enum { TG_MAX_TILES = 128, TG_MAX_BODY = 128, TG_MAX_READS = TG_MAX_EXPR };

#define TG_BIT(n) ((tg_bits)1 << (n))

struct tg_slice {
    tg_bits stmts;    /* body statements this row computes */
    tg_bits loads;    /* tiles it reads from memory */
    tg_bits stores;   /* tiles it writes to memory: its outputs, and the final_ of a carry it owns */
    tg_bits at_q;     /* tiles with axis TG_T that it needs (loaded or computed) at query positions */
    tg_bits at_kv;    /* ... at key/value positions */
    tg_bits crossing; /* tiles that it computes by a statement of both positions at one, and reads
                          at the other */
    tg_bits
        over_dqk; /* statements of `stmts` whose value is a sum over dqk, itself or through what it is made of here */
    tg_bits over_dhv; /* ... over dhv */
    uint32_t dims;    /* bit per dimension that it visits (never TG_SEG) */
    uint32_t summed;  /* ... that a CONTRACT, CARRY or TOTAL of it sums over; not dqk or dhv where the sum goes
                          to memory in parts, one a thread block */
    uint32_t scanned; /* ... that a SCAN of it runs over */
    uint32_t matrix;  /* ... that take part in a matrix product */
};

/* How the dimensions of `out = sum a * b` (CONTRACT, CARRY) take part, as bit masks; without b as if a were
 * both. TG_CHUNK is in none of them: all operands of a statement are of the same chunk. */
struct tg_product {
    uint32_t m;     /* in a and out only: rows */
    uint32_t n;     /* in b and out only: columns */
    uint32_t k;     /* in a and b, not in out: summed */
    uint32_t batch; /* in a, b and out */
    uint32_t wrong; /* in out but in neither operand, or summed but in one operand only */
};

/* Dimensions of an operand, in order, TG_T replaced by the position it is read at (TG_LQ, TG_LKV;
 * left as TG_T when there is none). Returns how many; 0 for a tile that does not exist. */
uint32_t tg_operand_dims(const tg_algorithm *algorithm, tg_operand operand, uint8_t dims[TG_MAX_AXES]);

/* The same as a bit mask; TG_CHUNK is added where there is a position, since a position is one of a
 * chunk. */
uint32_t tg_operand_mask(const tg_algorithm *algorithm, tg_operand operand);

/* TG_BATCH and TG_MEMBER as far as the tile has an entry for each of them. */
uint32_t tg_tile_implicit(const tg_algorithm *algorithm, uint32_t tile);

/* What a TOTAL sums over: positions, TG_CHUNK, TG_BATCH, TG_MEMBER. What a SCAN runs along: a position or
 * TG_CHUNK. 0: nothing. */
uint32_t tg_stmt_along(const tg_algorithm *algorithm, const tg_stmt *stmt);

/* The operand with query and key/value position exchanged; unchanged when it has none. */
tg_operand tg_operand_swap(tg_operand operand);

/* The tensor of a tile, NULL when there is none. */
const tg_tensor *tg_tile_tensor(const tg_algorithm *algorithm, uint32_t tile);

/* One entry for each sequence and head, nothing along the tokens: a state, where it goes in or out. */
bool tg_tensor_is_of_sequence(const tg_tensor *tensor);

/* Has axis TG_T. */
bool tg_tile_has_t(const tg_algorithm *algorithm, uint32_t tile);

/* Positions x positions in memory: axes TG_T, TG_LKV. */
bool tg_tile_is_square(const tg_algorithm *algorithm, uint32_t tile);

/* The algorithm has such tiles, or a SOLVE: a chunk is one block of positions, and its size the schedule's. */
bool tg_has_one_chunk(const tg_algorithm *algorithm);

static inline bool tg_stmt_has_final(const tg_stmt *stmt)
{
    return stmt->op == TG_STMT_CARRY || stmt->op == TG_STMT_SHIFT;
}
/* Index of the statement whose `out`, `final_`, `transition` or `behind` is the tile, -1 when there is none. */
int tg_tile_stmt(const tg_algorithm *algorithm, uint32_t tile);
/* Is it the out of a CARRY? */
bool tg_tile_is_state(const tg_algorithm *algorithm, uint32_t tile);

/* Is it TG_STEADY? */
bool tg_tile_is_steady(const tg_algorithm *algorithm, uint32_t tile);

/* Is it the transition of a CARRY? Has it the states behind chunks? */
bool tg_tile_is_transition(const tg_algorithm *algorithm, uint32_t tile);
bool tg_tile_is_behind(const tg_algorithm *algorithm, uint32_t tile);
/* Is it a CONTRACT of such states, matrices, with others like them: one number of each, which the row that walks a segment
 * makes behind its last chunk? */
bool tg_tile_sums_behind(const tg_algorithm *algorithm, uint32_t tile);
/* Has the tile an entry for the end of each segment, for either reason? */
bool tg_tile_is_of_ends(const tg_algorithm *algorithm, uint32_t tile);

/* Operands the statement reads: the tiles of its expression, or a, b, init, decay and since where given. */
uint32_t tg_stmt_reads(const tg_stmt *stmt, tg_operand reads[TG_MAX_READS]);

/* Codes of a MAP's expression before TG_X_END; TG_MAX_EXPR when it is not terminated. */
uint32_t tg_expr_length(const tg_stmt *stmt);

/* Operands a code pops from the stack (each pushes one); -1 for an unknown code. */
int tg_expr_arity(uint8_t op);

/* Positions the statement mentions: bits TG_LQ and TG_LKV. */
uint32_t tg_stmt_positions(const tg_algorithm *algorithm, const tg_stmt *stmt);

/* Is it a CONTRACT with a decay? */
static inline bool tg_stmt_decays(const tg_stmt *stmt)
{
    return stmt->op == TG_STMT_CONTRACT && stmt->decay;
}

/* The roles of the dimensions in a CONTRACT or CARRY. It is a matrix product when m, n and k are
 * not empty and batch is. */
struct tg_product tg_stmt_product(const tg_algorithm *algorithm, const tg_stmt *stmt);

/* What a tile that a SHIFT writes has of tokens: with `far` links, the nearest first. At so many tokens from where the
 * sequence begins (TG_REVERSE: ends), the first being 0, it is init[that], or from `far` on the base at that less far. The
 * final state is what the out would be behind the last token. */
struct tg_shift {
    uint32_t base;                /* tile; 0: zeros */
    uint32_t far;                 /* 0: no SHIFT writes the tile */
    uint32_t init[TG_MAX_SHIFTS]; /* tiles; 0: zeros */
    bool reverse, is_final;
};
struct tg_shift tg_tile_shift(const tg_algorithm *algorithm, uint32_t tile);

/* The row lists the tile among its outputs. */
bool tg_row_lists(const tg_kernel_row *row, uint32_t tile);

/* Is it a tile of positions by dqk or dhv, whose parts the thread blocks of the dimension, a cluster, add up? Of TG_MEMBER the
 * sum over the heads of a group. */
bool tg_is_cluster_sum(const tg_algorithm *algorithm, const tg_kernel_row *row, uint32_t tile, uint32_t dim);

/* Neighbours of a parallel dimension that load once what they share; 0: each loads for itself. */
static inline uint32_t tg_sharing(tg_axis_role axis)
{
    return axis.cluster & 0xffu & ~(uint32_t)TG_ADDS;
}

/* The row that lists the tile, the first one where another composes its segments; -1 when none does. */
int tg_tile_row(const tg_schedule *schedule, uint32_t tile);

/* The row's thread blocks walk one segment each. */
bool tg_row_has_segments(const tg_kernel_row *row);
/* ... from the state that the thread block of the segment before has left. */
static inline bool tg_row_relays(const tg_kernel_row *row)
{
    return row->row[TG_SEG].role == TG_ROLE_R;
}
/* Elements of the dimension that a thread of a kernel without matrix products has, side by side; 0: the block is not
 * one that the threads could share out. */
uint32_t tg_row_each(const tg_kernel_row *row, uint32_t dim);

/* A kernel without matrix products holds all of dqk on chip while it walks the chunks: a thread has 4 elements of dhv, and
 * so many threads of a warp share out the dqk of these. 0: it does not, or its block of dhv is none that allows it. */
enum { TG_HELD_EACH = 4 };
uint32_t tg_row_sharers(const tg_kernel_row *row);
/* The row says so, whether it can or not. */
bool tg_row_holds_state(const tg_kernel_row *row);
/* A decode step of several tokens, or one that holds its state, whose kernel walks them: each is a chunk of one position. */
bool tg_row_walks_tokens(const tg_schedule *schedule, const tg_kernel_row *row);
/* ... or holds all of them, in registers of every thread. */
enum { TG_MAX_HELD = 16 };
bool tg_row_holds_tokens(const tg_schedule *schedule, const tg_kernel_row *row);
/* Either: in other rows of decode steps the whole call is one chunk. */
bool tg_row_has_single_tokens(const tg_schedule *schedule, const tg_kernel_row *row);

/* The row walks segments and lists the out of a carry: the states that each segment makes of zero by itself. */
bool tg_row_makes_segments(const tg_schedule *schedule, uint32_t row);

/* The row walks all segments of the sequence and lists the out of a carry: the states with which
 * they begin. */
bool tg_row_starts_segments(const tg_schedule *schedule, uint32_t row);

/* Either: the states have one entry a segment. */
bool tg_row_writes_segments(const tg_schedule *schedule, uint32_t row);

/* The row walks the segments but no chunks, and lists the out of a carry: of what each segment makes by itself it makes, in the
 * same place, the state with which each begins. */
bool tg_row_composes_segments(const tg_schedule *schedule, uint32_t row);

/* The transition of another carry, in memory, by whose transpose the segments of this one are composed, so that no row need
 * make its own; 0: none. */
uint32_t tg_transposed_of(const tg_schedule *schedule, const tg_stmt *carry);

/* Of each segment the row's thread blocks have one chunk, the last. */
bool tg_row_has_ends(const tg_kernel_row *row);

/* The first row after `row` that composes the segments of the tile, -1 when none does. */
int tg_composing_row(const tg_schedule *schedule, uint32_t row, uint32_t tile);

/* Chunks to an entry of the tile in memory: of the out of a carry that rows write by segments, or take from the caller who kept
 * it, vectors excepted; of states behind chunks, of which segments write their last; of a steady tile that a row makes of ends.
 * 0: one a chunk. */
uint32_t tg_tile_segment(const tg_schedule *schedule, uint32_t tile);

/* The schedule keeps the tile in the caller's memory. */
bool tg_tile_kept(const tg_schedule *schedule, uint32_t tile);

/* The dqk and dhv that a tile's value in the row of that slice is a sum over, itself or through what it is made of there. */
uint32_t tg_row_sums(const tg_schedule *schedule, const struct tg_slice *slice, uint32_t tile);

/* Does the row, of that slice, make decays of channels by tensor cores: TG_MMA_SYNC, and a SCAN of a tile with axis TG_DQK? */
bool tg_row_scans_channels(const tg_algorithm *algorithm, const tg_kernel_row *row, const struct tg_slice *slice);

/* What row `row` computes, loads and stores. False when the schedule, its algorithm or the row is
 * not there, a count is out of range, or an output is written by no statement.
 *
 * The final state of a carry is stored by the row that lists it, else by the row that lists the
 * carry's out tile and walks whole sequences, else by the first row that computes the carry from
 * the initial state. A row with segments that needs a carried tile which another row writes by
 * segments both loads it (those of the segments before its own, or the one to begin with) and
 * computes it (from there on). */
bool tg_row_slice(const tg_schedule *schedule, uint32_t row, struct tg_slice *slice);

/* The first n rows at once, for whoever asks about several. */
struct tg_slices {
    uint32_t good; /* a bit for each row of which tg_row_slice says true */
    struct tg_slice rows[TG_MAX_ROWS];
    int8_t stmt[TG_MAX_TILES]; /* tg_tile_stmt of each tile; this and the next where a row is good */
    tg_bits by_segments;       /* in memory, with entries of segments (tg_tile_segment) */
    bool has_one_chunk;        /* tg_has_one_chunk */
};
void tg_schedule_slice(const tg_schedule *schedule, uint32_t n, struct tg_slices *slices);

/* pieces.c: of a schedule that is taken in pieces, does the first row wait for nothing that the others make? Then it begins beside
 * the last row of the piece before. */
bool tg_begins_beside(const tg_schedule *schedule, const struct tg_slices *slices);

#endif
