/* tests/fake_cuda.h - what a test may ask of the fake driver. Reached by dlsym: the runtime opens
 * the library by path, and a second dlopen of the same path gives the same copy. */
#ifndef TEGULA_TEST_FAKE_CUDA_H
#define TEGULA_TEST_FAKE_CUDA_H

#include <stdint.h>

enum { FAKE_MAX_VALUES = 96, FAKE_LOG_BYTES = 8192, FAKE_MAX_MAPS = 9, FAKE_MAP_BYTES = 128 };

/* What a tensor map was made of. */
struct fake_map {
    int type, interleave, swizzle, l2_promotion, fill;
    unsigned int rank, box[5], element_strides[5];
    uint64_t address, extents[5], strides[4];
    uint64_t value; /* of the parameter, when it is passed */
};

struct fake_state {
    char log[FAKE_LOG_BYTES]; /* names of the calls, each followed by a blank */
    int is_idle;              /* launches, maps and what else records: return at once, for measuring who calls them */
    const char *failing;      /* this function returns `result` */
    int result;
    int fail_after;         /* after this many good calls */
    int n_calls, fail_call; /* since the test set it to 0; the call with this number, from 1 on, returns `result` ... */
    const char *failed;     /* ... and is this one */
    const char *error_text; /* of cuGetErrorString */
    const char *jit_log;    /* written into the error log when a load fails */
    int cc_major, cc_minor, shared_optin, max_threads, function_threads;
    int dynamic_shared;                                 /* last cuFuncSetAttribute */
    int n_modules, n_events, n_allocations, n_contexts; /* alive */
    const void *image;                                  /* last loaded */
    uint64_t pieces; /* a hash of where asynchronous copies and fills went, and from where; and of what was launched */
    unsigned int clock; /* thread blocks launched so far: an event remembers it */
    /* the last launch */
    unsigned int grid[3], block[3], shared;
    unsigned int cluster[3]; /* zeros without the attribute */
    int overlap;
    void *stream;
    int n_maps; /* encoded since the test set it to 0 */
    struct fake_map maps[FAKE_MAX_MAPS];
    int n_values;                         /* set by the test: how many parameters, */
    uint8_t value_bytes[FAKE_MAX_VALUES]; /* and their sizes */
    uint64_t values[FAKE_MAX_VALUES];     /* of a tensor map a hash */
};

#endif
