/* tests/fake_cuda.h - what a test may ask of the fake driver. Reached by dlsym: the runtime opens
 * the library by path, and a second dlopen of the same path gives the same copy. */
#ifndef TEGULA_TEST_FAKE_CUDA_H
#define TEGULA_TEST_FAKE_CUDA_H

#include <stdint.h>

enum { FAKE_MAX_VALUES = 96, FAKE_LOG_BYTES = 8192 };

struct fake_state {
    char log[FAKE_LOG_BYTES]; /* names of the calls, each followed by a blank */
    const char *failing;      /* this function returns `result` */
    int result;
    int fail_after;         /* after this many good calls */
    const char *error_text; /* of cuGetErrorString */
    const char *jit_log;    /* written into the error log when a load fails */
    int cc_major, cc_minor, shared_optin, max_threads, function_threads;
    int dynamic_shared;                     /* last cuFuncSetAttribute */
    int n_modules, n_events, n_allocations; /* alive */
    const void *image;                      /* last loaded */
    uint64_t pieces; /* a hash of where asynchronous copies and fills went, and from where */
    /* the last launch */
    unsigned int grid[3], block[3], shared;
    void *stream;
    int n_values;                         /* set by the test: how many parameters, */
    uint8_t value_bytes[FAKE_MAX_VALUES]; /* and their sizes */
    uint64_t values[FAKE_MAX_VALUES];
};

#endif
