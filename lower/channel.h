/* lower/channel.h - kernels on tensor cores that make decays of channels themselves: channel.c, channel_product.c. Internal to
 * lower/. */
#ifndef TEGULA_LOWER_CHANNEL_H
#define TEGULA_LOWER_CHANNEL_H

#include "compiler/plan_channel.h"
#include "lower/emit.h"

/* What a warp and a lane have of rows of channels. */
struct channels {
    struct emit *e;
    uint32_t n, each, row_bytes; /* channels; of a lane, 2 or 4; of a row of 16-bit elements */
    LLVMValueRef first;          /* i32: the lane's first channel */
    LLVMValueRef row;            /* i32: the warp's first row */
};
struct channels channels_of(struct emit *e);
/* A lane's elements of a row, side by side; those of x are rounded where memory has 16 bits. */
LLVMTypeRef channel_type(const struct channels *c, tg_dtype dtype);
LLVMValueRef channel_words(const struct channels *c, tg_dtype dtype, const LLVMValueRef *x);

/* Does the operation make, store or multiply values of channels? */
bool is_of_channels(const struct plan *p, const struct op *op);
/* An operation that makes, stores or multiplies values of channels. */
void emit_channels(struct emit *e, const struct op *op);
/* Numbers of rows, made in registers, to where maps of channels read them. */
void put_beside(struct emit *e, uint32_t v);
/* That of a row. */
LLVMValueRef number_beside(struct emit *e, uint32_t v, LLVMValueRef row);
/* An element of such a value: by the warp's row and the lane's channel, row by row. For sums over channels or positions, and for products:
 * zero where the tensor has no such channel. */
LLVMValueRef channel_element(struct emit *e, uint32_t v, uint32_t index);
LLVMValueRef channel_term(const struct channels *c, uint32_t v, uint32_t index);

/* The decay of a product's query, or key, in the warp's r-th row and the lane's j-th channel; 2^(later - earlier). */
LLVMValueRef query_decay(const struct channels *c, const struct op *op, uint32_t r, uint32_t j);
LLVMValueRef key_decay(const struct channels *c, const struct op *op, uint32_t r, uint32_t j);
LLVMValueRef two_to(struct emit *e, LLVMValueRef later, LLVMValueRef earlier);

/* ---- spread.c, spread_rows.c: kernels of gradients --------------------------------------------------------- */
/* The same of them. */
void emit_spread_rows(struct emit *e, const struct op *op);
LLVMValueRef spread_element(struct emit *e, uint32_t v, uint32_t index);
void spread_set(struct emit *e, uint32_t v, uint32_t index, LLVMValueRef x);
/* Behind the last product: loads what is read again. */
void spread_load_again(const struct channels *c);
/* A product with a decay whose result keeps the channels. */
void emit_spread(struct emit *e, const struct op *op);

/* ---- channel.c ---------------------------------------------------------------------------------------------- */
/* One of the 64 rows by all channels in shared memory (plan_channel_tiles). */
LLVMValueRef channel_tile(struct emit *e, uint32_t tile);
/* Shorter rows in the last tile, each warp's where its own are, which no other reads: of this warp, where the first of all would be. */
LLVMValueRef channel_spare(struct emit *e, uint32_t pitch);
/* That in which the value waits. */
LLVMValueRef waiting_tile(struct emit *e, uint32_t v);
/* Where in the first tile the lane's channels of the warp's r-th row are: units of 16 bytes, exclusive-ored with the row. */
LLVMValueRef channel_place(const struct channels *c, uint32_t r);
/* The lane's words of the r-th row of all tensors that wait in shared memory, into registers. */
void fetch_channels(const struct channels *c, uint32_t r);
/* The lane's channels in row `row` of the floats behind the tiles: a row a warp. */
LLVMValueRef channel_floats(const struct channels *c, LLVMValueRef row);
/* Are the lane's channels, or that which is `channel` of the block, in the tensor? NULL: all are. Of those that are not, loaded rows are
 * zero, and vectors any number. They are not stored. */
LLVMValueRef channels_there(const struct channels *c);
LLVMValueRef channel_is_there(const struct channels *c, LLVMValueRef channel);
/* A vector of channels from memory, into registers. */
void channel_load_vector(const struct channels *c, uint32_t v);
/* Bytes from one position's row to the next. */
LLVMValueRef channel_row_stride(struct emit *e, uint32_t tile);
/* Elements of the lane side by side, in memory of either kind. */
void channel_load_row(const struct channels *c, uint32_t v, LLVMValueRef from, LLVMValueRef *registers);
/* What waits is there, of this warp, but for so many tensors that were begun last. */
void await_channels(struct emit *e, uint32_t behind);
/* ... once more, where an earlier product has made operands in its place. */
void bring_rows(const struct channels *c, const struct op *op);
/* Those that the value is made of are there, and in registers, all of the warp's rows. */
void bring_waiting(const struct channels *c, const struct op *op, uint32_t u);
/* A value before it of the same tensor, at the other positions; -1: none. */
int channel_same_before(const struct plan *p, uint32_t v);
/* An element of what an expression makes; and of the map v by itself. */
LLVMValueRef channel_map_element(const struct channels *c, struct expression *x, uint32_t i);
LLVMValueRef channel_map_made(struct emit *e, uint32_t v, uint32_t index);
/* Is value v made of u? Maps are made where they are read. */
bool channel_is_of(const struct plan *p, uint32_t v, uint32_t u);
/* Goes through the rows for the operation `pass`: stores what waits for it and, where it is a product, makes its operands. */
void go_through_rows(const struct channels *c, const struct op *pass);

/* ---- channel_sums.c ----------------------------------------------------------------------------------------- */
/* A prefix sum over positions, or the sum. */
void sum_channels(const struct channels *c, const struct op *op);
/* v += sum of a b over the channels of each row. Lane l has rows l / 4 and 8 more of v. */
void dot_channels(const struct channels *c, const struct op *op);

/* ---- channel_product.c ---------------------------------------------------------------------------------------- */
enum { CHANNEL_WORDS = CHANNEL_PRODUCTS + 1 };
/* Does the operation multiply positions by positions? */
bool is_channel_product(const struct plan *p, const struct op *op);
/* The product that makes the operands of this one: an earlier one with the same keys, or itself. */
const struct op *channel_leader(const struct plan *p, const struct op *op);
/* References of the factors; products of diagonal blocks that decay by much. Before the rows. */
void begin_operands(const struct channels *c, const struct op *leader);
/* The lane's words of operands of row r; how many. And into their tiles, at `place`. */
uint32_t make_operands(const struct channels *c, const struct op *leader, uint32_t r,
                       LLVMValueRef words[CHANNEL_WORDS]);
void put_operands(const struct channels *c, uint32_t n, LLVMValueRef place, LLVMValueRef words[CHANNEL_WORDS]);
void multiply_channels(const struct channels *c, const struct op *op);

#endif
