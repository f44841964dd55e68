/* runtime/runtime.h - load and launch compiled programs on the CUDA Driver API (libtegula-rt).
 *
 * The driver is opened by path with dlopen: libcuda.so.1, or the emulator, which exports the same
 * functions. Nothing here prints, exits, reads the environment or creates threads. */
#ifndef TEGULA_RUNTIME_H
#define TEGULA_RUNTIME_H

#include "../program/set.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An opened driver library. Immutable after tg_driver_open: use from any thread. */
typedef struct tg_driver tg_driver;
/* A program loaded into one CUDA context. Launch from any thread: what launches keep in it, tensor maps that the next ones
 * may want, they share without waiting. */
typedef struct tg_module tg_module;

/* What the tuner, the cost model and the compiler want to know about a GPU. */
typedef struct tg_device {
    uint32_t struct_size; /* out: sizeof(tg_device) */
    char name[64];
    int ordinal;
    int cc_major, cc_minor; /* compute capability */
    int sms;                /* multiprocessors */
    int shared_optin;       /* bytes of shared memory a block may opt in to */
    int registers_per_sm;
    int l2_bytes;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    uint64_t memory_bytes;
    int driver_version; /* 13000 = CUDA 13.0 */
} tg_device;

/* Opens the driver library `path` (NULL: "libcuda.so.1") and resolves every entry point.
 * TG_E_NO_DRIVER names the library or the missing symbol. */
TG_API tg_status tg_driver_open(const char *path, tg_driver **driver, const tg_sink *sink);
TG_API void tg_driver_close(tg_driver *driver);

/* GPUs that the driver shows. */
TG_API tg_status tg_device_count(const tg_driver *driver, int *count, const tg_sink *sink);
/* Of one of them, 0 .. count - 1; *device is written whole. */
TG_API tg_status tg_device_query(const tg_driver *driver, int ordinal, tg_device *device, const tg_sink *sink);

/* Makes the primary context of a device current on this thread / gives it back, after which no
 * context is current. Applications that have a context of their own need neither. */
TG_API tg_status tg_context_acquire(const tg_driver *driver, int ordinal, const tg_sink *sink);
TG_API void tg_context_release(const tg_driver *driver, int ordinal);

/* Loads the program into the current context: cubin when it fits the GPU, PTX otherwise (a cubin
 * that the driver refuses is a TG_NOTE). Program and driver must outlive the module. Device, arch,
 * shared-memory limits and what the driver can do (tensor maps and clusters need CUDA 12) are checked
 * with a clear message. Unload with the same context current. */
TG_API tg_status tg_load(const tg_driver *driver, const tg_program *program, tg_module **module, const tg_sink *sink);
TG_API void tg_unload(tg_module *module);

/* The program of a module. */
TG_API const tg_program *tg_module_program(const tg_module *module);

/* A set of programs (program/set.h) loaded into one CUDA context. Immutable after tg_set_load: use from any thread. */
typedef struct tg_modules tg_modules;

/* Loads of each pair of widths the programs of the newest architecture that the GPU runs, as tg_load does. Set and
 * driver must outlive it. TG_E_UNSUPPORTED with what there is when nothing is for this GPU. */
TG_API tg_status tg_set_load(const tg_driver *driver, const tg_set *set, tg_modules **modules, const tg_sink *sink);
TG_API void tg_set_unload(tg_modules *modules);

/* The module that a call of these widths (0: the only ones) and sizes takes, for tg_launch, and by tg_module_program for
 * tg_workspace_bytes: the look-up of tg_set_pick, below a microsecond, no lock. NULL after messages that say which widths
 * and architectures there are, or what the sizes must be, and what was asked for. */
TG_API const tg_module *tg_set_module(const tg_modules *modules, uint32_t dqk, uint32_t dhv, const tg_sizes *sizes,
                                      const tg_sink *sink);

/* A tensor of a call. Strides are in elements, for B, NH and then the tensor's axes; all zero means
 * contiguous [B, NH, axes...], where an axis of which the tensor has one entry (TG_NO_BATCH,
 * TG_NO_HEADS; packed: B of tensors with tokens or chunks) is 1 long. When the last axis is dqk, dhv or
 * the positions of a chunk, its stride is 1 and the address and the other strides are multiples of 16
 * bytes. Strides of axes with fewer than two elements do not matter; inputs may be broadcast with stride
 * 0. Tensors that a kernel reaches through a tensor map (tg_kernel.maps) have strides below 2^40 bytes,
 * positive but for those of B and NH.
 *
 * TG_I32 tensors ("cu" of packed programs, strides {0, 0, step}; "index" and "index_out" of pooled ones, {step})
 * have any positive stride: int64 is the same address with stride 2, as its low half comes first.
 * What is in them is not checked; cu begins with 0, does not decrease and ends with T or
 * less.
 *
 * What a call writes lies apart from all else of it: elements of an output from one another, and outputs and the workspace
 * from other tensors (TG0833). Slices of one tensor are apart: dq, dk and dv of [B, T, 3, NH, d]. A final state may be
 * where the initial one is, with the same strides. Slots of pools are the caller's to keep apart, and inputs may overlap.
 *
 * Slots of a pool (tg_tensor_is_slot): the stride of B leads from slot to slot, also for a single
 * sequence. How many slots there are is not known here, nor which ones a call takes: see tg_pooling. */
typedef struct tg_tensor_arg {
    const char *name; /* as in the program's signature */
    uint64_t address; /* device pointer; 0 for an absent optional tensor, or one of no elements */
    int64_t stride[2 + TG_MAX_AXES];
} tg_tensor_arg;

/* Checks sizes and tensors of a call without launching: names, missing or duplicate tensors,
 * strides, alignment, memory that is written twice. Costs microseconds; reports all mistakes. */
TG_API tg_status tg_launch_check(const tg_module *module, const tg_sizes *sizes, const tg_tensor_arg *args,
                                 uint32_t n_args, uint64_t workspace, const tg_sink *sink);

/* Launches every kernel of the program on `stream` (a CUstream, 0 = default). Performs the checks
 * of tg_launch_check. No allocation, no lock, no synchronisation; safe during stream capture.
 * `workspace`: device address, 256-byte aligned, tg_workspace_bytes() large; unused after the
 * call's work on the stream is done. `scalars`: one for each of the program's, finite, or NULL for their
 * defaults. B = 0 or T = 0 launches nothing but still defines the final state (a copy of the
 * initial one, or zeros) and outputs that are sums over the batch (zeros). Slots of a pool it cannot
 * copy: with T = 0 and B > 0, a final state elsewhere than at the address of the initial one is
 * TG_E_UNSUPPORTED. */
TG_API tg_status tg_launch(const tg_module *module, const tg_sizes *sizes, const float *scalars,
                           const tg_tensor_arg *args, uint32_t n_args, uint64_t workspace, void *stream,
                           const tg_sink *sink);

/* Small helpers for tools and tests. Synchronous, current context. */
TG_API tg_status tg_memory_alloc(const tg_driver *driver, size_t bytes, uint64_t *address, const tg_sink *sink);
TG_API void tg_memory_free(const tg_driver *driver, uint64_t address);
TG_API tg_status tg_memory_in(const tg_driver *driver, uint64_t to, const void *from, size_t bytes,
                              const tg_sink *sink);
TG_API tg_status tg_memory_out(const tg_driver *driver, void *to, uint64_t from, size_t bytes, const tg_sink *sink);
TG_API tg_status tg_memory_fill(const tg_driver *driver, uint64_t to, uint8_t value, size_t bytes, const tg_sink *sink);
TG_API tg_status tg_synchronize(const tg_driver *driver, const tg_sink *sink);

/* Times a launch on the default stream: `warmup` untimed runs, then `runs` timed with events, the
 * L2 flushed before each by reading `flush_bytes` of scratch (0: no flush; twice tg_device.l2_bytes
 * is good). All runs are queued before any is waited for. Milliseconds, sorted ascending, into
 * times[runs]. */
TG_API tg_status tg_time(const tg_module *module, const tg_sizes *sizes, const float *scalars,
                         const tg_tensor_arg *args, uint32_t n_args, uint64_t workspace, uint32_t warmup, uint32_t runs,
                         size_t flush_bytes, float *times, const tg_sink *sink);

/* The same kernel by kernel: every run is a whole launch, with events also between its kernels, so that
 * each finds its inputs as the ones before left them. Milliseconds into times[n_kernels][runs], those of
 * each kernel sorted ascending. Together they take longer than tg_time says where kernels overlap. */
TG_API tg_status tg_time_kernels(const tg_module *module, const tg_sizes *sizes, const float *scalars,
                                 const tg_tensor_arg *args, uint32_t n_args, uint64_t workspace, uint32_t warmup,
                                 uint32_t runs, size_t flush_bytes, float *times, const tg_sink *sink);

/* Kernel cache on disk: key -> bundle. A key is any text that says all of what the program depends
 * on. Files are versioned and checksummed, hold their key, and are written by rename, for the user alone (0600). One
 * that is damaged, of another key, no regular file, somebody else's (but root's), or that others may write, is
 * reported as a warning (TG0832) and treated as missing. tg_cache_get gives TG_OK with *program NULL when there is
 * none; a program it gives is freed with tg_program_free. tg_cache_put creates `directory` when missing; when
 * entries take more than 1 GiB in all, it removes those that were read longest ago. */
TG_API tg_status tg_cache_get(const char *directory, const char *key, tg_program **program, const tg_sink *sink);
TG_API tg_status tg_cache_put(const char *directory, const char *key, const tg_program *program, const tg_sink *sink);

/* Wisdom: a text file of tuning results, a line for each variant, device, type and shape:
 *
 *   mlstm-sig | NVIDIA H200 | 90 bf16 | dqk 128 dhv 256 | B 4 NH 16 T 8192 | walk stages=3 | L 64 | 431000 ns
 *
 * Text fields may hold anything printable but '|'. */
typedef struct tg_wisdom {
    char variant[32], device[64], dtype[8];
    int cc; /* 90 */
    int64_t dqk, dhv, batch, heads, tokens;
    char schedule[256]; /* what the compiler needs to build it again */
    int64_t chunk;
    double milliseconds;
} tg_wisdom;

/* The entry that matches best: the same variant, device (empty: any), cc, dtype, dqk and dhv, and of these the nearest shape by
 * log distance of tokens and of batch * heads. A missing file has no entries; damaged lines are warnings and left out. */
TG_API tg_status tg_wisdom_find(const char *path, const tg_wisdom *wanted, tg_wisdom *found, int *is_found,
                                const tg_sink *sink);
/* The same in a text in memory, which messages call `name`. */
TG_API tg_status tg_wisdom_find_in(const char *text, const char *name, const tg_wisdom *wanted, tg_wisdom *found,
                                   int *is_found, const tg_sink *sink);
/* Calls back for each entry of such a text, in its order. */
TG_API tg_status tg_wisdom_each(const char *text, const char *name, void (*visit)(void *user, const tg_wisdom *entry),
                                void *user, const tg_sink *sink);
/* Replaces the entry of the same shape. Written by rename under a lock file; missing folders are created. */
TG_API tg_status tg_wisdom_add(const char *path, const tg_wisdom *entry, const tg_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
