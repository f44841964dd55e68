/* tests/fake_torch.c - libtorch's C interface over nothing, under the name of libtorch_cpu.so. OLD_TORCH lacks a function. */
#include "tests/fake_torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

#define FUNCTION(result, name, parameters) API result name parameters;
#include "torch/libtorch.def"
#undef FUNCTION
API struct fake_torch *fake_torch(void);
API tensor_handle fake_tensor(int32_t dtype, int64_t rank, const int64_t *sizes);
API void fake_drop(tensor_handle tensor);
API stable_value fake_value(stable_value value);
API int32_t torch_delete_stable_ivalue(stable_value *value);

static struct fake_torch state;

struct fake_torch *fake_torch(void)
{
    return &state;
}

static int32_t fails(const char *function)
{
    return state.failing && strcmp(state.failing, function) == 0;
}

static tensor_handle add_tensor(int32_t dtype, int64_t rank, const int64_t *sizes, const int64_t *strides)
{
    const tensor_handle made = calloc(1, sizeof *made);
    if (!made)
        abort();
    *made = (struct tensor_object){.rank = rank, .dtype = dtype, .address = state.next_address += 1 << 20};
    memcpy(made->sizes, sizes, (size_t)rank * sizeof *sizes);
    memcpy(made->strides, strides, (size_t)rank * sizeof *strides);
    state.n_tensors++;
    return made;
}

tensor_handle fake_tensor(int32_t dtype, int64_t rank, const int64_t *sizes)
{
    int64_t strides[FAKE_RANK], step = 1;
    for (int64_t i = rank; i-- > 0; step *= sizes[i])
        strides[i] = step;
    const tensor_handle made = add_tensor(dtype, rank, sizes, strides);
    made->device_type = FAKE_ON_GPU;
    return made;
}

void fake_drop(tensor_handle tensor)
{
    (void)aoti_torch_delete_tensor_object(tensor);
}

stable_value fake_value(stable_value value)
{
    stable_value *const made = malloc(sizeof *made);
    if (!made)
        abort();
    *made = value;
    state.n_values++;
    return (uintptr_t)made;
}

int32_t torch_delete_stable_ivalue(stable_value *value)
{
    free(value);
    state.n_values--;
    return 0;
}

/* ---- registering ---- */

int32_t aoti_torch_library_init_impl(const char *space, const char *key, const char *file, uint32_t line,
                                     library_handle *made)
{
    (void)space, (void)file, (void)line;
    *made = (library_handle)(uintptr_t)key;
    return fails("aoti_torch_library_init_impl");
}

int32_t aoti_torch_library_impl(library_handle library, const char *name, boxed_kernel *kernel)
{
    if (state.n_kernels == FAKE_KERNELS || fails("aoti_torch_library_impl"))
        return 1;
    snprintf(state.kernels[state.n_kernels].name, FAKE_NAME, "%s", name);
    snprintf(state.kernels[state.n_kernels].key, FAKE_NAME, "%s", (const char *)library);
    state.kernels[state.n_kernels++].kernel = kernel;
    return 0;
}

void aoti_torch_check(bool condition, const char *function, const char *file, uint32_t line, const char *text)
{
    (void)function, (void)file, (void)line;
    if (condition)
        return;
    snprintf(state.thrown, sizeof state.thrown, "%s", text);
    longjmp(*state.catcher, 1);
}

/* ---- tensors ---- */

int32_t aoti_torch_delete_tensor_object(tensor_handle tensor)
{
    free(tensor);
    state.n_tensors--;
    return 0;
}

#ifndef OLD_TORCH
int32_t aoti_torch_is_defined(tensor_handle tensor, bool *is_defined)
{
    *is_defined = !tensor->is_undefined;
    return 0;
}
#endif

int32_t aoti_torch_get_data_ptr(tensor_handle tensor, void **address)
{
    *address = (void *)(uintptr_t)tensor->address;
    return fails("aoti_torch_get_data_ptr");
}

int32_t aoti_torch_get_dim(tensor_handle tensor, int64_t *rank)
{
    *rank = tensor->rank;
    return 0;
}

int32_t aoti_torch_get_sizes(tensor_handle tensor, int64_t **sizes)
{
    *sizes = tensor->sizes;
    return 0;
}

int32_t aoti_torch_get_strides(tensor_handle tensor, int64_t **strides)
{
    *strides = tensor->strides;
    return 0;
}

int32_t aoti_torch_get_dtype(tensor_handle tensor, int32_t *dtype)
{
    *dtype = tensor->dtype;
    return 0;
}

int32_t aoti_torch_get_device_type(tensor_handle tensor, int32_t *type)
{
    *type = tensor->device_type;
    return 0;
}

int32_t aoti_torch_get_device_index(tensor_handle tensor, int32_t *index)
{
    *index = tensor->device_index;
    return 0;
}

int32_t aoti_torch_empty_strided(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                                 int32_t device_type, int32_t device_index, tensor_handle *made)
{
    int64_t n = 1;
    for (int64_t i = 0; i < rank; i++)
        n *= sizes[i];
    if (fails("aoti_torch_empty_strided") && n > state.fails_above)
        return 1;
    *made = add_tensor(dtype, rank, sizes, strides);
    (*made)->device_type = device_type;
    (*made)->device_index = device_index;
    state.n_made++;
    return 0;
}

int32_t aoti_torch_copy_(tensor_handle to, tensor_handle from, int32_t non_blocking)
{
    (void)to, (void)from, (void)non_blocking;
    state.n_copied++;
    return fails("aoti_torch_copy_");
}

/* ---- constants ---- */

#define CONSTANT(name, value)                                                                                          \
    int32_t name(void)                                                                                                 \
    {                                                                                                                  \
        return value;                                                                                                  \
    }
CONSTANT(aoti_torch_device_type_cuda, FAKE_ON_GPU)
CONSTANT(aoti_torch_dtype_bfloat16, FAKE_BF16)
CONSTANT(aoti_torch_dtype_float16, FAKE_F16)
CONSTANT(aoti_torch_dtype_float32, FAKE_F32)
CONSTANT(aoti_torch_dtype_int32, FAKE_I32)
CONSTANT(aoti_torch_dtype_int64, FAKE_I64)
CONSTANT(aoti_torch_dtype_uint8, FAKE_U8)
