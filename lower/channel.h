/* lower/channel.h - kernels on tensor cores that make decays of channels themselves: channel.c. Internal to lower/. */
#ifndef TEGULA_LOWER_CHANNEL_H
#define TEGULA_LOWER_CHANNEL_H

#include "lower/emit.h"

/* An operation that makes, stores or multiplies values of channels. */
void emit_channels(struct emit *e, const struct op *op);
/* An element of such a value: by the warp's row and the lane's channel, row by row. */
LLVMValueRef channel_element(struct emit *e, uint32_t v, uint32_t index);

#endif
