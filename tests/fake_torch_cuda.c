/* tests/fake_torch_cuda.c - the same under the name of libtorch_cuda.so: streams and guards. */
#include "tests/fake_torch.h"

#define API __attribute__((visibility("default")))

API int32_t aoti_torch_get_current_cuda_stream(int32_t device, void **stream);
API int32_t aoti_torch_create_cuda_guard(int32_t device, guard_handle *made);
API int32_t aoti_torch_delete_cuda_guard(guard_handle guard);

int32_t aoti_torch_get_current_cuda_stream(int32_t device, void **stream)
{
    (void)device;
    *stream = fake_torch()->stream;
    return 0;
}

int32_t aoti_torch_create_cuda_guard(int32_t device, guard_handle *made)
{
    fake_torch()->guarded = device;
    fake_torch()->n_guards++;
    *made = (guard_handle)fake_torch();
    return 0;
}

int32_t aoti_torch_delete_cuda_guard(guard_handle guard)
{
    (void)guard;
    fake_torch()->n_guards--;
    return 0;
}
