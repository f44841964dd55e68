/* runtime/cuda_api.h - what we need of the CUDA Driver API, declared by ourselves: opaque handles,
 * a few constants, and a table of functions resolved by name from the library. */
#ifndef TEGULA_CUDA_API_H
#define TEGULA_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result;
typedef int cu_device;
typedef uint64_t cu_pointer; /* CUdeviceptr on every 64-bit system */
typedef struct cu_context_of_driver *cu_context;
typedef struct cu_module_of_driver *cu_module;
typedef struct cu_function_of_driver *cu_function;
typedef struct cu_event_of_driver *cu_event;
typedef void *cu_stream; /* void: it is the caller's, as tg_launch takes it */

enum cu_result_value {
    CU_SUCCESS = 0,
    CU_OUT_OF_MEMORY = 2,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_CONTEXT = 201,
};

enum cu_device_attribute {
    CU_DEVICE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_CLOCK_KHZ = 13,
    CU_DEVICE_SMS = 16,
    CU_DEVICE_MEMORY_CLOCK_KHZ = 36,
    CU_DEVICE_MEMORY_BUS_BITS = 37,
    CU_DEVICE_L2_BYTES = 38,
    CU_DEVICE_CC_MAJOR = 75,
    CU_DEVICE_CC_MINOR = 76,
    CU_DEVICE_REGISTERS_PER_SM = 82,
    CU_DEVICE_SHARED_OPTIN = 97,
};

enum cu_function_attribute {
    CU_FUNCTION_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNCTION_SHARED_BYTES = 1,
    CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8,
};

enum cu_jit_option { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6 };

/* A tensor map: its bits are the driver's affair. */
struct cu_tensor_map {
    _Alignas(128) uint64_t opaque[16];
};

enum cu_tensor_map_value {
    CU_MAP_F16 = 6,
    CU_MAP_F32 = 7,
    CU_MAP_BF16 = 9,
    CU_MAP_NOT_INTERLEAVED = 0,
    CU_MAP_L2_128 = 2, /* bytes fetched into the L2 at least */
    CU_MAP_FILL_ZEROS = 0,
};

enum cu_launch_attribute_id { CU_LAUNCH_CLUSTER = 4, CU_LAUNCH_OVERLAP = 6 };

struct cu_launch_attribute {
    int id;
    int padding;
    union {
        uint32_t cluster[3];
        int overlap;
        uint64_t whole[8]; /* as large as the driver's */
    };
};

struct cu_launch {
    uint32_t grid[3], block[3], shared_bytes;
    cu_stream stream;
    struct cu_launch_attribute *attributes;
    uint32_t n_attributes;
};

struct tg_driver {
    void *library; /* of dlopen */
#define REQUIRED(field, symbol, parameters) cu_result(*field) parameters;
#define OPTIONAL                            REQUIRED
#include "runtime/cuda_api.def"
#undef REQUIRED
#undef OPTIONAL
};

#endif
