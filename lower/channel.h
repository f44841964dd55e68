/* lower/channel.h - kernels on tensor cores that make decays of channels themselves: channel.c. Internal to lower/. */
#ifndef TEGULA_LOWER_CHANNEL_H
#define TEGULA_LOWER_CHANNEL_H

#include "lower/emit.h"

/* What a warp and a lane have of rows of channels. */
struct channels {
    struct emit *e;
    uint32_t n, each, row_bytes; /* channels; of a lane; of a row of 16-bit elements */
    LLVMValueRef first;          /* i32: the lane's first channel */
    LLVMValueRef row;            /* i32: the warp's first row */
};
struct channels channels_of(struct emit *e);
/* A lane's elements of a row, side by side; those of x are rounded where memory has 16 bits. */
LLVMTypeRef channel_type(const struct channels *c, tg_dtype dtype);
LLVMValueRef channel_words(const struct channels *c, tg_dtype dtype, const LLVMValueRef *x);

/* An operation that makes, stores or multiplies values of channels. */
void emit_channels(struct emit *e, const struct op *op);
/* An element of such a value: by the warp's row and the lane's channel, row by row. */
LLVMValueRef channel_element(struct emit *e, uint32_t v, uint32_t index);

#endif
