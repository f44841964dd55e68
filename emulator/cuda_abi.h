/* cuda_abi.h - the little of cuda.h that the exported functions need, so that the emulator builds
 * without the toolkit. Names and values are those of the CUDA driver ABI, which does not change. */
#ifndef CUDA_ABI_H
#define CUDA_ABI_H

#include <stddef.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct module *CUmodule;
typedef struct kernel *CUfunction;
typedef struct stream *CUstream;
typedef struct event *CUevent;

typedef struct {
    char bytes[16];
} CUuuid;

typedef struct {
    int id; /* 4 cluster dimension, 6 programmatic stream serialisation */
    char pad[4];
    union {
        char bytes[64];
        unsigned dim[3];
    } value;
} CUlaunchAttribute;

typedef struct {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned n_attributes;
} CUlaunchConfig;

/* X(name, value, text) */
#define CUDA_RESULTS(X)                                                                                                \
    X(CUDA_SUCCESS, 0, "no error")                                                                                     \
    X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                                                 \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                                    \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error")                                                           \
    X(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                                 \
    X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                                        \
    X(CUDA_ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                                                 \
    X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                                                       \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")                   \
    X(CUDA_ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed")                                                     \
    X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                                       \
    X(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                                                             \
    X(CUDA_ERROR_NOT_READY, 600, "device not ready")                                                                   \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                                     \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")                              \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                                       \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                                    \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715, "an illegal instruction was encountered")                                   \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                                        \
    X(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                                     \
    X(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported")                                                        \
    X(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912, "invalid cluster size")                                                    \
    X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

enum {
#define X(name, value, text) name = value,
    CUDA_RESULTS(X)
#undef X
};

enum { JIT_INFO_LOG = 3, JIT_INFO_LOG_BYTES = 4, JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6 };
enum {
    FUNC_MAX_THREADS,
    FUNC_SHARED_BYTES,
    FUNC_CONST_BYTES,
    FUNC_LOCAL_BYTES,
    FUNC_NUM_REGS,
    FUNC_PTX_VERSION,
    FUNC_BINARY_VERSION,
    FUNC_CACHE_MODE_CA,
    FUNC_MAX_DYNAMIC_SHARED,
    FUNC_CARVEOUT
};
enum { LAUNCH_ATTRIBUTE_CLUSTER = 4, LAUNCH_ATTRIBUTE_OVERLAP = 6 };

#endif
