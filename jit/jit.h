/* jit/jit.h - kernels on first use: a variant and what a call is like -> a module to launch (libtegula-jit).
 *
 * For programs that learn their shapes at run time, and for bindings of other languages: what lies between a
 * declaration and tg_launch in one call. It chooses the schedule for the sizes as the command does (what tuning found here,
 * what is shipped, the cost model), takes the program from the cache on disk or compiles it, loads it, and keeps it for the
 * next call. Needs libtegula, with LLVM, libtegula-rt and libtegula-tuning; a dlopen of libtegula-jit finds the functions
 * of all of them. */
#ifndef TEGULA_JIT_H
#define TEGULA_JIT_H

#include "../compiler/compiler.h"
#include "../runtime/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A GPU and all that was loaded into its primary context. Use from any thread. */
typedef struct tg_jit tg_jit;

typedef struct tg_jit_options {
    const char *cache;  /* folder of the kernel cache, see tg_cache_put; NULL: nothing is kept on disk */
    const char *wisdom; /* file of what tuning found here, see tg_wisdom_advice; NULL: only what is shipped */
    const char *ptxas;  /* as in tg_compile_options; NULL: the driver assembles */
} tg_jit_options;

/* For device `ordinal` of the driver, which must outlive it. `options` NULL: all its fields NULL; it is copied.
 * TG_E_NO_DEVICE, or TG_E_UNSUPPORTED for a GPU older than any target. */
TG_API tg_status tg_jit_open(const tg_driver *driver, int ordinal, const tg_jit_options *options, tg_jit **jit,
                             const tg_sink *sink);
/* Unloads all modules, with the same context current. NULL is allowed. */
TG_API void tg_jit_close(tg_jit *jit);

/* The module for calls of this kind and these sizes, with the device's primary context current (tg_context_acquire).
 * The first call for a kind takes as long as a compiler (0.1 to 1 s, or 10 ms from the cache), and others wait for it;
 * a later one below a microsecond where kind and sizes are among the last 64, else as long as a look at wisdom and
 * tg_schedule_default. Sizes that lead to the same code lead to the same module. It is the jit's and lasts until tg_jit_close. `sizes->chunk` 0: any chunk size. A
 * cache that cannot be written, or wisdom that cannot be used, is a warning. */
TG_API tg_status tg_jit_module(tg_jit *jit, const tg_variant *variant, const tg_shape_class *shape,
                               const tg_sizes *sizes, const tg_module **module, const tg_sink *sink);

/* Tensors that a forward leaves for its backward in memory of the caller's: `names` as the programs have them, and how the
 * sequences of both are cut, for tensors with an entry a chunk, or a segment of them. */
enum { TG_JIT_KEPT = 8 };
typedef struct tg_jit_kept {
    uint32_t n; /* 0: nothing is kept */
    const char *names[TG_JIT_KEPT];
    uint32_t chunk, segment;         /* positions of a chunk, chunks of a segment; 0: there are no segments */
    double seconds, seconds_without; /* of forward and backward by the cost model: so, and with nothing kept */
} tg_jit_kept;

/* The i-th of the tensors that some schedule of a variant keeps; NULL: there are no more. */
TG_API const tg_tensor *tg_jit_kept_tensor(const tg_variant *variant, uint32_t i);

/* What a forward and its backward would keep, at these sizes; whether it pays is in the seconds. Its names are the
 * variant's. Milliseconds. */
TG_API tg_status tg_jit_keeping(tg_jit *jit, const tg_variant *forward, const tg_shape_class *shape,
                                const tg_sizes *sizes, tg_jit_kept *kept, const tg_sink *sink);

/* As tg_jit_module, of the forward or of the backward that keep these. TG_E_UNSUPPORTED where there is none. */
TG_API tg_status tg_jit_module_keeping(tg_jit *jit, const tg_variant *variant, const tg_shape_class *shape,
                                       const tg_sizes *sizes, const tg_jit_kept *kept, const tg_module **module,
                                       const tg_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
