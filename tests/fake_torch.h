/* tests/fake_torch.h - what a test may ask of the fake libtorch: it has tensors without memory, keeps the kernels that are
 * registered, and counts what is alive. An exception of its is a longjmp. */
#ifndef TEGULA_TESTS_FAKE_TORCH_H
#define TEGULA_TESTS_FAKE_TORCH_H

#include "torch/libtorch.h"

#include <setjmp.h>

enum { FAKE_RANK = 8, FAKE_KERNELS = 16, FAKE_NAME = 64, FAKE_ON_CPU = 0, FAKE_ON_GPU = 1 };
enum { FAKE_U8 = 0, FAKE_I32 = 3, FAKE_I64 = 4, FAKE_F16 = 5, FAKE_F32 = 6, FAKE_F64 = 7, FAKE_BF16 = 15 };

struct tensor_object {
    int64_t rank, sizes[FAKE_RANK], strides[FAKE_RANK];
    int32_t dtype, device_type, device_index;
    uint64_t address;
    bool is_undefined;
};

struct fake_torch {
    int n_tensors, n_values, n_guards; /* alive */
    int n_made, n_copied;              /* by a kernel */
    struct {
        char name[FAKE_NAME], key[FAKE_NAME];
        boxed_kernel *kernel;
    } kernels[FAKE_KERNELS];
    int n_kernels;
    const char *failing;   /* this function fails */
    int64_t fails_above;   /* ... of empty_strided: only for more elements */
    void *stream;          /* the current one of each device */
    int32_t guarded;       /* the device of the last guard */
    uint64_t next_address; /* of the next tensor */
    jmp_buf *catcher;
    char thrown[2048];
};

struct fake_torch *fake_torch(void);
/* Contiguous, on a GPU. */
tensor_handle fake_tensor(int32_t dtype, int64_t rank, const int64_t *sizes);
void fake_drop(tensor_handle tensor);
/* What an optional argument is on the stack. */
stable_value fake_value(stable_value value);

#endif
