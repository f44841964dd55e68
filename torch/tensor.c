/* torch/tensor.c - a tensor as the host and kernels see it: address, sizes, strides, type, device. */
#include "torch/tensor.h"

static int32_t dtype_of(const struct libtorch *torch, int32_t dtype)
{
    return dtype == torch->aoti_torch_dtype_bfloat16()  ? TG_BF16
           : dtype == torch->aoti_torch_dtype_float16() ? TG_F16
           : dtype == torch->aoti_torch_dtype_float32() ? TG_F32
           : dtype == torch->aoti_torch_dtype_int32()   ? TG_I32
           : dtype == torch->aoti_torch_dtype_int64()   ? TG_TORCH_I64
           : dtype == torch->aoti_torch_dtype_uint8()   ? TG_TORCH_U8
                                                        : 0;
}

int32_t tensor_torch_dtype(const struct libtorch *torch, int32_t dtype)
{
    return dtype == TG_BF16  ? torch->aoti_torch_dtype_bfloat16()
           : dtype == TG_F16 ? torch->aoti_torch_dtype_float16()
           : dtype == TG_F32 ? torch->aoti_torch_dtype_float32()
                             : torch->aoti_torch_dtype_uint8();
}

bool tensor_describe(const struct libtorch *torch, tensor_handle tensor, tg_torch_tensor *to, const char **why)
{
    int64_t rank, *sizes, *strides;
    int32_t dtype, type, index;
    void *address;
    bool is_defined = false;
    to->rank = -1;
    if (!tensor || (torch->aoti_torch_is_defined(tensor, &is_defined) == 0 && !is_defined))
        return true;
    *why = "expected tensors in memory, found one that has none";
    if (torch->aoti_torch_get_dim(tensor, &rank) || torch->aoti_torch_get_sizes(tensor, &sizes) ||
        torch->aoti_torch_get_strides(tensor, &strides) || torch->aoti_torch_get_dtype(tensor, &dtype) ||
        torch->aoti_torch_get_device_type(tensor, &type) || torch->aoti_torch_get_device_index(tensor, &index) ||
        torch->aoti_torch_get_data_ptr(tensor, &address))
        return false;
    *why = "expected tensors of 6 axes at most, found one of more";
    if (rank > TG_TORCH_RANK)
        return false;
    *to = (tg_torch_tensor){.address = (uintptr_t)address,
                            .sizes = sizes,
                            .strides = strides,
                            .rank = (int32_t)rank,
                            .dtype = dtype_of(torch, dtype),
                            .device = type == torch->aoti_torch_device_type_cuda() ? index : TG_TORCH_HOST};
    return true;
}

void tensor_dense_strides(int32_t rank, const int64_t *sizes, int64_t strides[TG_TORCH_RANK])
{
    int64_t step = 1;
    for (int32_t i = rank; i-- > 0;) {
        strides[i] = step;
        step *= sizes[i] > 0 ? sizes[i] : 1;
    }
}

bool tensor_is_dense(const tg_torch_tensor *t)
{
    int64_t dense[TG_TORCH_RANK];
    bool is_empty = false, is_good = true;
    tensor_dense_strides(t->rank, t->sizes, dense);
    for (int32_t i = 0; i < t->rank; i++) {
        is_empty |= t->sizes[i] == 0;
        is_good &= t->sizes[i] == 1 || t->strides[i] == dense[i];
    }
    return is_good || is_empty;
}

bool tensor_has_good_rows(const tg_torch_tensor *t)
{
    const int64_t step = t->dtype == TG_F32 ? 4 : t->dtype == TG_BF16 || t->dtype == TG_F16 ? 8 : 1;
    bool is_empty = t->rank == 0, is_good = t->address % 16 == 0;
    for (int32_t i = 0; i < t->rank; i++) {
        is_empty |= t->sizes[i] == 0;
        is_good &= i + 1 == t->rank ? t->strides[i] == 1 : t->strides[i] % step == 0;
    }
    return is_good || is_empty || step == 1;
}
