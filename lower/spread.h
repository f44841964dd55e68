/* lower/spread.h - a gradient of a product that decays, of values of channels: spread.c, spread_weights.c, spread_pairs.c. Internal to
 * lower/. */
#ifndef TEGULA_LOWER_SPREAD_H
#define TEGULA_LOWER_SPREAD_H

#include "lower/channel.h"

struct spread {
    struct channels c;
    const struct op *op;
    uint32_t weights, terms, out; /* values: P and X, and whose registers take the rows */
    bool by_query;                /* rows are queries; else keys */
    bool strict;                  /* a query does not reach its own position */
    bool turned;                  /* P has rows where the result has columns */
    LLVMValueRef near;            /* i1: of the warp's rows (struct spread_ends) */
    LLVMValueRef of_terms[8],
        of_rows
            [8]; /* what factors of X, and of rows, refer to: the keys' decay before the warp's rows, or of their last */
    LLVMValueRef to_end[8]; /* factors from there to the end of the block to which X counts for others */
};

/* ---- spread.c ------------------------------------------------------------------------------------------------- */
/* In the kernel's shared memory for products (plan_spread_scratch). */
LLVMValueRef spread_scratch(const struct spread *s, uint32_t offset);
/* ... this warp's sums: 16 rows of floats, units of 32 bytes exclusive-ored with the row. */
LLVMValueRef spread_sums_address(const struct spread *s);
/* ... a float a channel of block w: its last position's decay; what all of it decays by. */
enum spread_vector { SPREAD_ENDS, SPREAD_WHOLES };
LLVMValueRef spread_vector(const struct spread *s, enum spread_vector which, LLVMValueRef w);
/* An element of X; queries behind the end of the chunk count as zero. */
LLVMValueRef spread_term(const struct spread *s, uint32_t r, uint32_t j);
/* What a row, or what it reaches, decays by between its position and another decay. */
LLVMValueRef spread_row_factor(const struct spread *s, uint32_t r, uint32_t j, LLVMValueRef other);
LLVMValueRef spread_term_factor(const struct spread *s, uint32_t r, uint32_t j, LLVMValueRef other);
/* The same number, of which nothing that was made of it before is kept. */
LLVMValueRef forgotten(struct emit *e, LLVMValueRef x);

/* ---- spread_product.c ----------------------------------------------------------------------------------------- */
/* Accumulators of the warp's rows by 128 channels at most. */
enum { SPREAD_SUMS = 64 };
void new_sums(const struct spread *s, LLVMValueRef sums[SPREAD_SUMS]);
/* sums = the warp's rows of P by what they reach of X, which all of the products have, + sums where it `adds`. */
void multiply_blocks(const struct spread *parts, uint32_t n, bool adds, LLVMValueRef sums[][SPREAD_SUMS]);
/* To where the lanes that have the channels read them. */
void leave_sums(const struct spread *s, const LLVMValueRef sums[SPREAD_SUMS]);

/* ---- spread_weights.c ----------------------------------------------------------------------------------------- */
/* To shared memory, if no product has done it before. */
void put_weights(const struct spread *s);
/* The left operand of the warp's rows by block w. */
void fetch_weights(const struct spread *s, uint32_t w, LLVMValueRef out[4]);
/* Of the diagonal block what each row reaches beside itself: the left operand of 8 positions from 8 k on, in TF32. */
void fetch_own(const struct spread *s, uint32_t k, LLVMValueRef out[4]);
/* P of so many rows of the diagonal block, 4 or more of them, or one, by column q. */
void load_weights(const struct spread *s, uint32_t row, uint32_t rows, uint32_t q, LLVMValueRef *out);

/* ---- spread_pairs.c ------------------------------------------------------------------------------------------- */
/* To the rows of the result what those of their diagonal block give them, pair by pair in fp32, where they decay by much. */
void add_pairs_by_halves(const struct spread *s);

#endif
