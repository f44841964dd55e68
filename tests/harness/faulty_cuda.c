/* tests/harness/faulty_cuda.c - a libcuda.so.1 in front of another driver library, one of whose calls fails.
 *
 * FAULTY_DRIVER is the other library. FAULTY_CALL: the number of the call that fails, from 1 on, and with FAULTY_AFTER all
 * behind it too; FAULTY_RESULT: as what. What is made and ended is counted: at the end of the process FAULTY_LOG gets a
 * line "CALLS NAME MEMORY MODULES EVENTS CONTEXTS", NAME being what failed first, or "none". */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All parameters of the driver are integers and pointers: as many words as the longest list has do for each. */
typedef uint64_t word;
#define WORDS    word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l
#define WORDS_OF a, b, c, d, e, f, g, h, i, j, k, l
typedef int driver_fn(WORDS);

enum { N_KINDS = 4 };
static const char *const makers[N_KINDS] = {"cuMemAlloc", "cuModuleLoadDataEx", "cuEventCreate",
                                            "cuDevicePrimaryCtxRetain"};
static const char *const enders[N_KINDS] = {"cuMemFree", "cuModuleUnload", "cuEventDestroy",
                                            "cuDevicePrimaryCtxRelease"};
static int n_calls, alive[N_KINDS];
static const char *failed = "none";
static void *library;

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

/* What is ended is named by the first parameter; a device is one too where it is 0. */
static void count(const char *name, int result, word what)
{
    for (int kind = 0; kind < N_KINDS; kind++) {
        alive[kind] += result == 0 && strcmp(name, makers[kind]) == 0;
        alive[kind] -=
            (what || kind == N_KINDS - 1) && strcmp(name, enders[kind]) == 0; /* failed, too: who could do more? */
    }
}

/* ... so that the other library lets go of it all the same. */
static int ends(const char *name)
{
    for (int kind = 0; kind < N_KINDS; kind++)
        if (strcmp(name, enders[kind]) == 0)
            return 1;
    return 0;
}

/* The texts of errors are told always. */
static int fails(const char *name)
{
    const long call = number("FAULTY_CALL");
    if (strncmp(name, "cuGetError", strlen("cuGetError")) == 0)
        return 0;
    n_calls++;
    if (!call || n_calls < call || (n_calls > call && !number("FAULTY_AFTER")))
        return 0;
    failed = strcmp(failed, "none") == 0 ? name : failed;
    return 1;
}

static int nothing(WORDS)
{
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h, (void)i, (void)j, (void)k, (void)l;
    return 0;
}

/* What the other library lacks (the emulator cuFuncLoad) has nothing to do. */
static driver_fn *find(const char *symbol)
{
    driver_fn *function = nothing;
    if (!library)
        library = dlopen(getenv("FAULTY_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        abort();
    void *address = dlsym(library, symbol);
    if (address)
        memcpy(&function, &address, sizeof function);
    return function;
}

#define REQUIRED(name, symbol, parameters)                                                                             \
    __attribute__((visibility("default"))) int faulty_##name(WORDS) __asm__(symbol);                                   \
    int faulty_##name(WORDS)                                                                                           \
    {                                                                                                                  \
        static driver_fn *real;                                                                                        \
        real = real ? real : find(symbol);                                                                             \
        const int is_failure = fails(#name), done = !is_failure || ends(#name) ? real(WORDS_OF) : 0;                   \
        const int result = is_failure ? (int)number("FAULTY_RESULT") : done;                                           \
        count(#name, result, a);                                                                                       \
        return result;                                                                                                 \
    }
#define OPTIONAL REQUIRED
#include "runtime/cuda_api.def"

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAULTY_LOG");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%d %s", n_calls, failed);
    for (int kind = 0; kind < N_KINDS; kind++)
        fprintf(file, " %d", alive[kind]);
    fputc('\n', file);
    fclose(file);
}
