/* tegula_emu.h - the emulator's own interface, beside the cu* functions it exports.
 *
 * libtegula-emu.so stands in for libcuda.so.1: a program which loads the driver by path and calls
 * cu* runs its kernels on the CPU, without knowing it. The emulator executes PTX (sm_80 and what of
 * it later targets share; sm_90a: mbarriers, bulk copies and tensor maps, wgmma, clusters of up to
 * 8 CTAs), and stops a kernel at its first mistake with a report: what happened, in which kernel,
 * CTA, warp and lane, at which PTX line and source line. The report is the text of the error:
 * cuGetErrorString() of the code that the failed call returned gives it whole, so a runtime that
 * prints driver errors needs no change.
 *
 * Everything below is optional. Without it the device is "Tegula emulator", cc 8.0, all checks on,
 * seed 1. The library reads no environment variable and prints nothing.
 *
 * What a caller has to know
 *   - Launches run inside cuLaunchKernel. An execution fault is its result, and every later call's (sticky), until the
 *     primary context is released or reset, or tgemu_reset() is called.
 *   - Device pointers are not host pointers. Addresses are never reused, so a stale one is always found out.
 *   - Shared memory starts at address 1024, not 0, and all of it is "never written" when a CTA starts. In a cluster the
 *     addresses of its variables have the CTA's rank in the bits from 24 on.
 *   - Asynchronous copies and wgmma complete as late as they may, warps run in a random order. The seed fixes both: the
 *     same seed gives the same run whatever the number of threads; a right kernel gives the same result for every seed.
 *   - An arrival at an mbarrier of another CTA of the cluster orders what came before it only if it is .release.cluster and
 *     the wait .acquire.cluster, as the memory model has it; or, at the scope of the CTA, what came before a
 *     fence.acq_rel.cta and a fence.proxy.async, which are the same instructions as PTX 8.6's fence of a cluster's shared
 *     memory. A relaxed arrival at the cluster's barrier orders only mbarriers before a fence.mbarrier_init.
 *   - st.release and ld.acquire of gpu scope order the stores of different clusters, and nothing else does. A kernel with
 *     fences of gpu scope, or with atomics that release or acquire, is trusted to order them. When a warp first looks at a
 *     released value, it finds the one before, unless it can know better. Nobody else of its cluster runs while a warp asks
 *     for such a value again and again: who waits so for a warp of the same cluster waits for ever.
 *   - Cubins are refused with CUDA_ERROR_NO_BINARY_FOR_GPU; what does not begin as PTX with CUDA_ERROR_INVALID_IMAGE, as
 *     the driver does it; unknown PTX with CUDA_ERROR_INVALID_PTX, and the line and text of the instruction in the JIT
 *     error log and in the report. */
#ifndef TEGULA_EMU_H
#define TEGULA_EMU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Checks, one bit each. What is always checked: addresses, alignment, barriers, convergence,
 * deadlock. */
enum tgemu_check {
    TGEMU_CHECK_RACES = 1 << 0,     /* unordered accesses to shared memory by two warps, or by two lanes of one store;
                   stores that bulk copies or wgmma read with no fence.proxy.async between */
    TGEMU_CHECK_UNWRITTEN = 1 << 1, /* loads of bytes that nothing has written */
    TGEMU_CHECK_IN_FLIGHT = 1 << 2, /* accesses to bytes that an asynchronous copy not yet waited for will write; stores
                   to those that one, or wgmma, will read */
    TGEMU_CHECK_GLOBAL = 1 << 3,    /* two warps of one launch storing to the same global word, or one reading it */
    TGEMU_CHECK_ALL = 0xf,
    TGEMU_COUNT_BANKS = 1 << 4, /* no check: shared_wavefronts and bank_conflicts are counted, which takes time */
};

struct tgemu_config {
    size_t struct_size; /* sizeof(struct tgemu_config) */
    uint64_t seed;      /* order of warps and of asynchronous completions */
    int cc_major;       /* compute capability; PTX for a newer one is refused */
    int cc_minor;
    size_t smem_optin;   /* bytes of shared memory a CTA may ask for through cuFuncSetAttribute */
    int sm_count;        /* what the device reports; execution does not depend on it */
    int threads;         /* CPU threads for clusters; 0 = as many as there are cores */
    uint64_t step_limit; /* warp instructions a CTA may execute before it counts as an endless loop */
    unsigned checks;     /* enum tgemu_check, or-ed; TGEMU_CHECK_ALL at first */
};

struct tgemu_counters {
    size_t struct_size;          /* sizeof(struct tgemu_counters) */
    uint64_t launches;           /* kernels */
    uint64_t instructions;       /* warp instructions issued */
    uint64_t lane_instructions;  /* the same, times the lanes which took part */
    uint64_t global_load_bytes;  /* ld and cp.async from global memory, counted by lane */
    uint64_t global_store_bytes; /* st, and red and atom, to global memory */
    uint64_t shared_wavefronts;  /* passes through the shared memory banks; 0 without TGEMU_COUNT_BANKS */
    uint64_t bank_conflicts;     /* of these, the passes which a conflict-free layout would not need */
    uint64_t mma;                /* mma.sync, per warp */
    uint64_t barriers;           /* of CTAs and clusters, completed */
    uint64_t cp_async_bytes;
    uint64_t bulk_bytes; /* by bulk copies, both ways */
    uint64_t wgmma;      /* wgmma.mma_async, per warpgroup */
};

/* Copies *config's fields that lie within struct_size; fields beyond keep their values. A seed's orders begin anew: what was
 * launched before plays no part. 0, or -1 for a bad value. */
int tgemu_configure(const struct tgemu_config *config);

/* The current configuration, to change a field of. */
void tgemu_get_config(struct tgemu_config *config);

/* Counters of the last launch, and of all since the start or the last tgemu_reset(). */
void tgemu_last_counters(struct tgemu_counters *counters);
void tgemu_counters(struct tgemu_counters *counters);

/* The last report, "" if there is none; the first line begins with its kind in brackets. Valid
 * until the next launch, module load or reset. */
const char *tgemu_last_report(void);

/* Keeps a copy of all device memory, and of which of it was ever written, in the place of the one kept before. Launches may
 * then be repeated: tgemu_return() makes memory what it was, and launches give what they would have given. What was allocated
 * since stays as it is, and so do modules; faults are forgotten. 0, or -1: no host memory for it; nothing is kept, or something
 * of it was freed. */
int tgemu_keep(void);
int tgemu_return(void);

/* Frees all allocations and modules, forgets errors and counters; keeps the configuration. */
void tgemu_reset(void);

#ifdef __cplusplus
}
#endif
#endif
