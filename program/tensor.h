/* program/tensor.h - what the axes and flags of a tensor come to, for program/ and runtime/. */
#ifndef TEGULA_TENSOR_H
#define TEGULA_TENSOR_H

#include "program/program.h"

#include <stdbool.h>

_Static_assert(TG_MAX_AXES == 3, "every axis is compared");

static inline bool has_axis(const tg_tensor_info *info, tg_axis axis)
{
    return info->axes[0] == axis || info->axes[1] == axis || info->axes[2] == axis;
}

/* Tensors along the sequence, which packed sequences share; the others are states and parameters, and what every sequence
 * has so many chunks to an entry of. */
static inline bool has_tokens(const tg_tensor_info *info)
{
    return has_axis(info, TG_T) || (has_axis(info, TG_CHUNK) && !info->segment);
}

/* B, NH and those of the tensor. */
static inline uint32_t count_axes(const tg_tensor_info *info)
{
    uint32_t n = 2;
    while (n < 2 + TG_MAX_AXES && info->axes[n - 2] != TG_AXIS_NONE)
        n++;
    return n;
}

/* The last axis is a row that kernels read 16 bytes at a time: a width, or the positions of a chunk, all of them. */
static inline bool has_rows(const tg_tensor_info *info)
{
    const uint32_t n = count_axes(info);
    const uint8_t last = n > 2 ? info->axes[n - 3] : (uint8_t)TG_AXIS_NONE;
    return last == TG_DQK || last == TG_DHV || last == TG_POSITION;
}

/* One entry for each sequence and nothing along it: a state, or its gradient. */
static inline bool is_of_sequence(const tg_tensor_info *info)
{
    return !has_axis(info, TG_T) && !has_axis(info, TG_CHUNK);
}

/* Neither input nor output: other flags a workspace tensor may have too. */
static inline bool is_workspace(const tg_tensor_info *info)
{
    return !(info->flags & (TG_IN | TG_OUT));
}

/* Tensors that some kernel reads or writes through a tensor map, as bits. */
static inline uint64_t mapped_tensors(const tg_program *program)
{
    uint64_t mapped = 0;
    for (uint32_t k = 0; k < program->n_kernels; k++)
        for (uint32_t m = 0; m < program->kernels[k].n_maps; m++)
            mapped |= UINT64_C(1) << program->kernels[k].maps[m].tensor;
    return mapped;
}
_Static_assert(TG_MAX_TENSORS <= 64, "a bit for every tensor");

/* Whether the tensor has one entry for all sequences (axis 0) or heads (axis 1). Kernels get stride
 * 0 there, so that they need not know. */
static inline bool lacks_axis(const tg_program *program, uint32_t tensor, uint32_t axis)
{
    const tg_tensor_info *info = &program->tensors[tensor];
    if (axis == 0)
        return (info->flags & TG_NO_BATCH) || (program->packed && has_tokens(info));
    return axis == 1 && (info->flags & TG_NO_HEADS);
}

#endif
