/* torch/tensor.h - what libtorch's tensors are like. */
#ifndef TEGULA_TORCH_TENSOR_H
#define TEGULA_TORCH_TENSOR_H

#include "torch/libtorch.h"
#include "torch/torch.h"

/* Of no tensor, or an undefined one, a rank of -1. False with the reason. */
bool tensor_describe(const struct libtorch *torch, tensor_handle tensor, tg_torch_tensor *to, const char **why);
/* PyTorch's number of a type that outputs and workspaces have. */
int32_t tensor_torch_dtype(const struct libtorch *torch, int32_t dtype);
void tensor_dense_strides(int32_t rank, const int64_t *sizes, int64_t strides[TG_TORCH_RANK]);
/* In one piece. */
bool tensor_is_dense(const tg_torch_tensor *t);
/* Rows as kernels want them: dense, the rest and the address in steps of 16 bytes. */
bool tensor_has_good_rows(const tg_torch_tensor *t);

#endif
