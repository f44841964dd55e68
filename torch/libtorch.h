/* torch/libtorch.h - libtorch's stable C interface, as far as operators need it, declared by us.
 *
 * No header and no library of PyTorch is there when this is built: the functions are looked up in the libtorch that the
 * program has loaded. So one file serves every PyTorch from 2.9 on. */
#ifndef TEGULA_LIBTORCH_H
#define TEGULA_LIBTORCH_H

#include "program/program.h"

#include <stdbool.h>

/* An argument or a result on the stack of a boxed kernel: a number, the bits of a double, a tensor's handle, which belongs
 * to the kernel, or of an optional argument the address of one, NULL for none. */
typedef uint64_t stable_value;
typedef struct tensor_object *tensor_handle;
typedef struct library_object *library_handle;
typedef struct guard_object *guard_handle;
typedef void boxed_kernel(stable_value *stack, uint64_t n_arguments, uint64_t n_results);

struct libtorch {
#define FUNCTION(result, name, parameters) result(*name) parameters;
#include "libtorch.def"
#undef FUNCTION
    void (*free_value)(stable_value *value); /* what an optional argument is in */
    /* Of CUDA: NULL where PyTorch has none. */
    int32_t (*aoti_torch_get_current_cuda_stream)(int32_t device, void **stream);
    int32_t (*aoti_torch_create_cuda_guard)(int32_t device, guard_handle *made);
    int32_t (*aoti_torch_delete_cuda_guard)(guard_handle guard);
};

/* Looks everything up. TG_E_UNSUPPORTED names what this process lacks: an older PyTorch, or none. */
tg_status libtorch_find(struct libtorch *torch, const tg_sink *sink);

#endif
