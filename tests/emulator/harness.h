/* harness.h - what the parts of test_emulator share: the driver, and kernels made from text. */
#ifndef TEST_EMULATOR_HARNESS_H
#define TEST_EMULATOR_HARNESS_H

#include "cuda_abi.h"
#include "tegula_emu.h"

#include "kernels/tap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef unsigned long long device_pointer;

/* X(return type, name, parameters) */
#define DRIVER(X)                                                                                                      \
    X(int, cuInit, (unsigned))                                                                                         \
    X(int, cuDeviceGetAttribute, (int *, int, int))                                                                    \
    X(int, cuDevicePrimaryCtxRetain, (void **, int))                                                                   \
    X(int, cuDevicePrimaryCtxRelease_v2, (int))                                                                        \
    X(int, cuCtxSetCurrent, (void *))                                                                                  \
    X(int, cuCtxSynchronize, (void))                                                                                   \
    X(int, cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **))                                      \
    X(int, cuModuleUnload, (void *))                                                                                   \
    X(int, cuModuleGetFunction, (void **, void *, const char *))                                                       \
    X(int, cuFuncSetAttribute, (void *, int, int))                                                                     \
    X(int, cuFuncGetAttribute, (int *, int, void *))                                                                   \
    X(int, cuMemAlloc_v2, (device_pointer *, size_t))                                                                  \
    X(int, cuMemFree_v2, (device_pointer))                                                                             \
    X(int, cuMemcpyHtoD_v2, (device_pointer, const void *, size_t))                                                    \
    X(int, cuMemcpyDtoH_v2, (void *, device_pointer, size_t))                                                          \
    X(int, cuMemcpyDtoD_v2, (device_pointer, device_pointer, size_t))                                                  \
    X(int, cuMemsetD8_v2, (device_pointer, unsigned char, size_t))                                                     \
    X(int, cuMemsetD32_v2, (device_pointer, unsigned, size_t))                                                         \
    X(int, cuLaunchKernel,                                                                                             \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))        \
    X(int, cuLaunchKernelEx, (const CUlaunchConfig *, void *, void **, void **))                                       \
    X(int, cuGetErrorName, (int, const char **))                                                                       \
    X(int, cuGetErrorString, (int, const char **))                                                                     \
    X(int, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, void *, int, size_t))                                  \
    X(int, cuEventCreate, (void **, unsigned))                                                                         \
    X(int, cuEventRecord, (void *, void *))                                                                            \
    X(int, cuEventElapsedTime, (float *, void *, void *))                                                              \
    X(int, cuEventDestroy_v2, (void *))                                                                                \
    X(int, cuPointerGetAttribute, (void *, int, device_pointer))                                                       \
    X(int, cuTensorMapEncodeTiled,                                                                                     \
      (void *, int, unsigned, device_pointer, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *,  \
       int, int, int, int))

#define EMULATOR(X)                                                                                                    \
    X(int, tgemu_configure, (const struct tgemu_config *))                                                             \
    X(void, tgemu_get_config, (struct tgemu_config *))                                                                 \
    X(void, tgemu_counters, (struct tgemu_counters *))                                                                 \
    X(void, tgemu_last_counters, (struct tgemu_counters *))                                                            \
    X(const char *, tgemu_last_report, (void))                                                                         \
    X(int, tgemu_keep, (void))                                                                                         \
    X(int, tgemu_return, (void))                                                                                       \
    X(void, tgemu_reset, (void))

struct driver {
#define X(type, name, parameters) type(*name) parameters;
    DRIVER(X)
    EMULATOR(X)
#undef X
    bool is_emulated;
    const char *target;      /* of the kernels made from here on; NULL: sm_80 */
    const char *const *maps; /* they also take these tensor maps; see encode_map() */
    int n_maps;
    unsigned cluster;       /* CTAs, 0 for 1 */
    unsigned overlap;       /* 1: the launch may begin before what is ahead has ended */
    const char *directives; /* of the kernels, or NULL */
    void *context;
    device_pointer in, out;
    const char *folder;
};

extern struct driver cu;

enum { WORDS = 1024, MAX_SEEDS = 5, MAX_MAPS = 4 };

/* A test; it may end early, and the next one runs all the same. */
typedef void test(void *argument);
void run_test(test *run, void *argument, const char *name, ...) __attribute__((format(printf, 3, 4)));
void fail_msg(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void skip(void) __attribute__((noreturn));

#define assert_true(x)                  ((x) ? (void)0 : fail_msg("%s:%d: not so: %s", __FILE__, __LINE__, #x))
#define assert_non_null(x)              assert_true((x) != NULL)
#define assert_memory_equal(a, b, size) assert_true(!memcmp(a, b, size))
#define assert_int_equal(a, b)          check_equal((long long)(a), (long long)(b), __FILE__, __LINE__)
#define assert_string_equal(a, b)                                                                                      \
    (strcmp(a, b) ? fail_msg("%s:%d: '%s' is not '%s'", __FILE__, __LINE__, a, b) : (void)0)

static inline void check_equal(long long a, long long b, const char *file, int line)
{
    if (a != b)
        fail_msg("%s:%d: %lld (0x%llx) is not %lld (0x%llx)", file, line, a, (unsigned long long)a, b,
                 (unsigned long long)b);
}

const char *error_text(int result);

/* How many seeds a kernel is to be run with: on a GPU they change nothing. */
int seed_count(void);

/* Fails the test unless the result is 0. */
void ok(int result);

/* On how many threads the emulator runs CTAs: 0 for all. */
void configure(uint64_t seed, int threads);

/* Kernels from here on are for this target, or sm_80 again; false if the device cannot run them. */
bool use_target(const char *target);

/* "NAME in|out TYPE dims=64,16 strides=128 box=8,8 steps=1,1 swizzle=128 nan", for cu.in or cu.out
 * as it is now; the first dimension is the innermost, strides are in bytes. */
void encode_map(const char *text, void *map);

/* Assembles the text with ptxas, if the PATH has one. */
void check_with_ptxas(const char *ptx);

/* A fresh device: nothing allocated but cu.in, words 0, 1, 2 .., and cu.out, never written. */
void fresh(void);

/* The module, and what the driver says: its result, and its error log. */
void *load(const char *ptx, char *log, size_t log_size, int *result);

/* Launches kernel k(in, out) of the text; the result of the launch or of the synchronisation after
 * it. */
int run_ptx(const char *ptx, unsigned grid, unsigned block, unsigned shared);

/* A kernel k(in, out) of these statements; the caller frees it. */
char *make_kernel(const char *body);

/* Runs the statements, whose results are what they wrote to %rd2, up to WORDS words. */
int run_body(const char *body, unsigned grid, unsigned block, unsigned shared, uint32_t *out, size_t words);

/* test_emulator_files.c: the tests that a file in cu.folder has. */
void run_t(const char *name);
void run_ptx_file(const char *name);

/* test_emulator_wgmma.c, test_emulator_tensors.c: what follows the key of such a section. */
void check_product(const char *text);
void check_box(const char *text);

/* The number after KEY in a section, or `otherwise`. */
int read_key(const char *text, const char *key, int otherwise);

/* KEY1,2,3: up to five numbers, the others as they would be without it. */
void read_list(const char *text, const char *key, int64_t list[5], int64_t otherwise);

/* The others need no argument. */
#define C_TESTS(X)                                                                                                     \
    X(mma)                                                                                                             \
    X(ldmatrix)                                                                                                        \
    X(stmatrix)                                                                                                        \
    X(movmatrix)                                                                                                       \
    X(tensor_maps)                                                                                                     \
    X(nan_fill)                                                                                                        \
    X(clusters)                                                                                                        \
    X(launch_is_checked)                                                                                               \
    X(memory_is_checked)                                                                                               \
    X(variables)                                                                                                       \
    X(images)                                                                                                          \
    X(large_variables)                                                                                                 \
    X(counters)                                                                                                        \
    X(last_statements)                                                                                                 \
    X(kernels_side_by_side)                                                                                            \
    X(memory_is_kept)                                                                                                  \
    X(lines)                                                                                                           \
    X(targets)                                                                                                         \
    X(threads_do_not_show)

#define X(name) test test_##name;
C_TESTS(X)
#undef X

#endif
