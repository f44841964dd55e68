/* tegula_embed.h - what all kernels that `tegula compile` writes have in common: the driver, tensors, sizes and
 * results. One copy of it serves them all, so that they can share a table of driver functions and be called through
 * one C++ template. C11, and C++14 and later. */
#ifndef TEGULA_EMBED_H
#define TEGULA_EMBED_H

#include <stddef.h>
#include <stdint.h>

#define TEGULA_EMBED_VERSION 1 /* generated headers say which they need */

#ifdef __cplusplus
extern "C" {
#endif

/* Every function that returns an int returns 0, one of these, or, above 0, the result of the driver call that
 * failed. */
enum {
    TEGULA_OK = 0,
    TEGULA_E_DRIVER = -1,    /* the driver library cannot be opened or lacks a function */
    TEGULA_E_DEVICE = -2,    /* the GPU of the current context cannot run these kernels */
    TEGULA_E_SIZES = -3,     /* no program takes these sizes or widths */
    TEGULA_E_TENSOR = -4,    /* a required tensor is missing, an address or stride is impossible, or memory overlaps */
    TEGULA_E_WORKSPACE = -5, /* the workspace is missing, not 256-byte aligned, or where a tensor is */
    TEGULA_E_SCALAR = -6,    /* a scalar is not finite */
    TEGULA_E_SLOTS = -7,     /* a call without tokens would have to copy slots of a pool */
};

/* Element types. */
enum { TEGULA_BF16 = 2, TEGULA_F16 = 3, TEGULA_F32 = 4, TEGULA_F32X2 = 5, TEGULA_I32 = 6 };

/* The driver functions used, all with the types of cuda.h. Filled by NAME_driver_open of any program, for all of
 * them, or by you, for example from cuGetProcAddress. */
typedef struct tegula_driver {
    void *library; /* of dlopen; NULL when you filled the table */
    int (*cuInit)(unsigned int flags);
    int (*cuCtxGetDevice)(int *device);
    int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
    int (*cuModuleLoadData)(void **module, const void *image);
    int (*cuModuleUnload)(void *module);
    int (*cuModuleGetFunction)(void **function, void *module, const char *name);
    int (*cuFuncSetAttribute)(void *function, int attribute, int value);
    int (*cuLaunchKernel)(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                          unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                          void *stream, void **parameters, void **extra);
    int (*cuMemcpyDtoDAsync)(uint64_t to, uint64_t from, size_t bytes, void *stream); /* _v2 */
    int (*cuMemsetD8Async)(uint64_t to, unsigned char value, size_t bytes, void *stream);
    int (*cuGetErrorString)(int result, const char **text);
    /* The rest may be NULL, but for what a program's header says it needs. */
    int (*cuFuncLoad)(void *function); /* CUDA 12.4 and later */
    /* CUDA 11.8 and later */
    int (*cuLaunchKernelEx)(const void *launch, void *function, void **parameters, void **extra);
    /* CUDA 12.0 and later */
    int (*cuTensorMapEncodeTiled)(void *map, int data_type, uint32_t rank, void *address, const uint64_t *extents,
                                  const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
                                  int interleave, int swizzle, int l2_promotion, int fill);
} tegula_driver;

/* One array: device address and strides in elements for the axes that the program's header shows. All strides zero
 * means contiguous; those of axes of length 0 or 1 do not matter. When the last axis is dqk, dhv or the positions of a
 * chunk (L), its stride is 1 and the address and the other strides are multiples of 16 bytes. Zero all of it for an
 * absent optional array. */
typedef struct tegula_tensor {
    uint64_t address;
    int64_t stride[5];
} tegula_tensor;

/* Part of a module, opaque: a tensor map that a launch has made, for the next one with the same array. */
typedef struct tegula_map_place {
    uint32_t turn, padding;
    uint64_t key[10], map[16];
} tegula_map_place;

/* The sizes of a call. */
typedef struct tegula_sizes {
    int64_t batch;  /* B >= 0; packed: the number of sequences, 0 only without tokens */
    int64_t heads;  /* NH >= 1: a multiple of the program's group */
    int64_t tokens; /* T >= 0; packed: of all sequences together */
    int64_t chunk;  /* L, or 0: that of the program */
    int32_t dqk;    /* widths of q and k, and of v and h; 0 where all programs have the same */
    int32_t dhv;
} tegula_sizes;

#ifdef __cplusplus
}
#endif
#endif
