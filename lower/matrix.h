/* lower/matrix.h - what the files that multiply on tensor cores share: matrix.c whole products, decay.c those whose terms
 * are weighted by a decay. Internal to lower/. */
#ifndef TEGULA_LOWER_MATRIX_H
#define TEGULA_LOWER_MATRIX_H

#include "lower/emit.h"

/* A weight of every element of an operand, 2^(gate - reference) or 2^(reference - gate): of the gate at its position and
 * channel, and of one position's at the same channel. */
struct weight {
    uint32_t gate;           /* value in shared memory: positions x channels */
    bool later;              /* the gate is the query's: less the reference; else the key's: off the reference */
    bool by_sum;             /* channels are what the product sums over; else rows or columns of its result */
    LLVMValueRef *reference; /* of each class of channels */
    LLVMValueRef behind;     /* i32: positions from here on count as zero; NULL: none do */
};

/* One operand of a product: rows (A) or columns (B) of the result along `outer`. */
struct side {
    uint32_t v;                 /* value in shared memory or registers */
    const struct value *matrix; /* where it is fetched from; NULL: registers */
    int map_stmt;               /* expression applied to what was fetched, or -1 */
    const struct value *mapped; /* the tile that the expression makes */
    bool transposed;            /* the summed dimension runs along the rows in shared memory */
    LLVMValueRef slot;          /* address of the ring slot */
    LLVMValueRef first[2];      /* i32: this warp's first row or column; of its 16s with odd numbers less their steps */
    uint32_t step;              /* from 16 rows or columns to the next ones */
    LLVMValueRef first_k;       /* i32: the first of the summed elements that this warp has; NULL: it has all of them */
    bool finite;                /* what is not finite counts as zero */
    bool simple;                /* steps fit into first's powers of two: exclusive-or may be split */
    struct expression *x;
    const struct weight *weight; /* NULL: 1 */
};

/* The sides of a product of `op`: rows and columns of the warp's tile. Freed by side_free. */
void make_sides(struct emit *e, const struct op *op, struct side *a, struct side *b);
void side_free(struct side *s);
/* What the expression remembers was computed in another basic block. */
void side_forget(struct side *s);
/* c (8 sums, of two 16 x 8 tiles) += the 16 x 16 block (m, n) of the product, over 16 elements from 16 k on. */
void multiply_block(struct emit *e, const struct side *a, const struct side *b, uint32_t m, uint32_t n, uint32_t k,
                    LLVMValueRef c[8]);
/* The same with 16-bit operands not rounded to that again after their maps and weights, but to TF32. */
void multiply_finely(struct emit *e, const struct side *a, const struct side *b, uint32_t m, uint32_t n, uint32_t k,
                     LLVMValueRef c[8]);
/* multiply_block in parts: four 8 x 8 matrices of 16-bit elements, of which this lane names a row, transposed on the way or not; c (a 16 x 8 tile) += a b. */
void fetch_matrices(struct emit *e, LLVMValueRef address, bool transposed, LLVMValueRef out[4]);
/* The left operand of the m-th 16 rows, over 16 elements from 16 k on, of accumulators: the layouts agree. */
void pack_fragment(struct emit *e, uint32_t v, uint32_t m, uint32_t k, LLVMValueRef out[4]);
void multiply_words(struct emit *e, LLVMValueRef c[4], const LLVMValueRef a[4], LLVMValueRef b0, LLVMValueRef b1);
/* c (a 16 x 8 tile) += a b of TF32 numbers (i32). */
void multiply_tf32(struct emit *e, LLVMValueRef c[4], const LLVMValueRef a[4], const LLVMValueRef b[2]);
/* c (a 16 x 8 tile) += a b, in fp32: three products of TF32 parts. Lane l has of a, 16 x 8, the rows l / 4 and 8 more, of
 * the columns l % 4 and 4 more (rows first); of b, 8 x 8, the rows l % 4 and 4 more of column l / 4. */
void multiply_floats(struct emit *e, LLVMValueRef c[4], const LLVMValueRef a[4], const LLVMValueRef b[2]);
/* The same where several products have the left operand: its parts, each split by split_float. */
struct split {
    LLVMValueRef lead, trail; /* i32: TF32 numbers, whose sum is what was split */
};
struct split split_float(struct emit *e, LLVMValueRef x);
void multiply_split(struct emit *e, LLVMValueRef c[4], const struct split a[4], const LLVMValueRef b[2]);
/* ... and in parts of bf16, of two elements each (i32): 16 bits of a number, and any that fp32 has but for the smallest. Operands and
 * result are those of multiply_words. */
struct split split_bf16(struct emit *e, const LLVMValueRef x[2]);
LLVMValueRef sum_bf16(struct emit *e, struct split x, uint32_t i); /* the i-th of the two again */
void multiply_split_bf16(struct emit *e, LLVMValueRef c[4], const struct split a[4], const struct split b[2]);
/* One element of a side: outer index and summed index, i32; the classes as in struct element_at. */
LLVMValueRef side_element(struct emit *e, const struct side *s, LLVMValueRef outer, uint32_t outer_class,
                          LLVMValueRef k, uint32_t k_class);

/* decay.c: a product with a decay (TG_CONTRACT_DECAY_TO) */
void emit_decayed(struct emit *e, const struct op *op);
/* Bits that a factor on an operand may grow by: the other factor shrinks by as many, and neither leaves the operand's type. */
double most_growth(const struct emit *e);
/* Is it true of all lanes of the warp? */
LLVMValueRef all_lanes(struct emit *e, LLVMValueRef condition);

#endif
