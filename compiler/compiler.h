/* compiler/compiler.h - algorithm + schedule + target + shape class -> program (libtegula).
 *
 * A kernel is planned (the passes: plan.c), lowered to LLVM IR, and that to PTX; tg_compile_options.stage receives the text
 * of each of the three. */
#ifndef TEGULA_COMPILER_H
#define TEGULA_COMPILER_H

#include "../dsl/tegula.h"
#include "../program/set.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A GPU as the compiler sees it. A value: compiling needs no GPU and no driver. */
typedef struct tg_target {
    char arch[16];         /* "sm_80", "sm_90a" */
    uint16_t cc;           /* 80, 90 */
    uint8_t exact;         /* code runs on this arch only */
    uint8_t ptx;           /* PTX ISA version x 10 that its features need */
    uint32_t shared_optin; /* bytes of shared memory a thread block may have */
    uint32_t shared_per_sm;
    uint32_t registers_per_sm;
    uint32_t sms;        /* of the GPU named below; for the cost model */
    double bandwidth;    /* bytes/s, copy; of the GPU named below; for the cost model */
    double matrix_flops; /* bf16 flop/s through mma.sync; for the cost model */
    double wgmma_flops;  /* the same through wgmma; 0: it has none */
    const char *gpu;     /* the GPU these numbers are of */
} tg_target;

/* The target with that name ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"); NULL if none. */
TG_API const tg_target *tg_target_find(const char *arch);
/* All of them, NULL-terminated. */
TG_API const tg_target *const *tg_targets(void);
/* The target for a GPU of compute capability cc (90 -> sm_90a); NULL if older than 80. */
TG_API const tg_target *tg_target_for_cc(int cc);
/* GPUs that the model has numbers of, several of an architecture, NULL-terminated: the H200, the H100 and the H20 are sm_90a. */
TG_API const tg_target *const *tg_gpus(void);
/* The target for a GPU that is there, by what tg_device_query says of it: that of its compute capability, with this GPU's own
 * numbers for the cost model. A GPU that is in tg_gpus() is that one. Of others the bandwidth is 0.87 of what clock and bus give;
 * matrix rates are, by multiprocessor, those of the GPU in tg_gpus() whose name is in theirs, else the architecture's. Where
 * `sms` or the memory's numbers are 0, as of the emulator, or `name` is NULL, tg_target_for_cc; NULL if older than 80. `name` is
 * copied; what is returned lives as long as the process. Thread-safe. */
TG_API const tg_target *tg_target_for_gpu(int cc, const char *name, int sms, int memory_clock_khz, int memory_bus_bits);

/* What is baked into the code. Like all arguments of calls it has no struct_size: where it changes, so does the version in
 * the libraries' names. */
typedef struct tg_shape_class {
    tg_dtype io;       /* TG_BF16, TG_F16 or TG_F32 */
    uint32_t dqk, dhv; /* multiples of 8, 16 .. 512 */
    uint32_t group;    /* heads that share a head of the TG_SHARED tensors; 0 means 1 */
    uint32_t tokens;   /* calls have at most so many tokens (a decode step); 0: any number */
    uint8_t packed;    /* sequences of different lengths, see tg_program.packed */
    uint8_t pooled;    /* tg_pooling */
    /* States, inputs and outputs [dqk, dhv] of a head: their type in memory, TG_BF16, TG_F16 or TG_F32, 0 as declared
     * (on chip they are fp32; what is stored is rounded to nearest even); and 1 where they are [dhv, dqk] there. */
    uint8_t state, values_first;
    uint8_t
        counted; /* decode steps with an input "count" [B], i32: of sequence b the first count[b] tokens alone, if it
                        has more */
} tg_shape_class;

/* 1 for what .state and .values_first are of: an input or output [dqk, dhv] or [dhv, dqk] of each sequence and head. */
TG_API int tg_tensor_is_state(const tg_tensor *tensor);
/* 1 when something that goes in or out has one entry for each sequence, and nothing along it: what a pool has slots of. */
TG_API int tg_algorithm_has_states(const tg_algorithm *algorithm);

typedef enum tg_stage { TG_STAGE_PLAN, TG_STAGE_LLVM, TG_STAGE_PTX } tg_stage;

typedef struct tg_compile_options {
    const char *ptxas; /* path of ptxas, or NULL: no cubin, no register facts */
    /* Receives the text of every stage of every kernel; NULL: none. */
    void (*stage)(void *user, const char *kernel, tg_stage stage, const char *text);
    void *user;
    uint8_t strict; /* spills and C75xx messages of ptxas are errors (TG_E_COMPILE) */
} tg_compile_options;

/* Can this schedule be compiled for this target and shape class? Microseconds, no LLVM. Every refusal
 * has a reason with its numbers. */
TG_API tg_status tg_plan_check(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                               const tg_sink *sink);

/* Compiles. Thread-safe; milliseconds. The program owns its images; tg_program_free. */
TG_API tg_status tg_compile(const tg_variant *variant, const tg_schedule *schedule, const tg_target *target,
                            const tg_shape_class *shape, const tg_compile_options *options, tg_program **program,
                            const tg_sink *sink);

/* What a branch of a set is made of: schedules for one target and shape class, the default first, and the sizes that
 * some of them were chosen for (tg_point_of_set.program is an index into `schedules` here). */
typedef struct tg_set_part {
    const tg_target *target;
    tg_shape_class shape;
    uint32_t n_schedules; /* 1..TG_MAX_BRANCH_PROGRAMS; the same code is compiled once */
    tg_schedule schedules[TG_MAX_BRANCH_PROGRAMS];
    uint32_t n_points;
    tg_point_of_set points[TG_MAX_POINTS];
} tg_set_part;

/* Compiles a set of programs, a branch for each part, no two parts with the same target and widths. The table of a
 * branch, by which calls take one of several programs, is filled from the cost model: at every step of it the program
 * that the model thinks fastest, or one before it that is at most a tenth slower. Beyond the compilation of the programs
 * that takes a few milliseconds each. tg_set_free. */
TG_API tg_status tg_compile_set(const tg_variant *variant, const tg_set_part *parts, uint32_t n_parts,
                                const tg_compile_options *options, tg_set **set, const tg_sink *sink);

/* The cost model: what a run of this schedule moves and computes, and how long
 * the model thinks it takes on the target's GPU. A prediction, never a measurement. No kernel is faster
 * than the larger of its memory_seconds and matrix_seconds. */
typedef struct tg_cost {
    double flops;          /* matrix products, causal blocks skipped */
    double bytes;          /* global memory traffic, each kernel reading its operands once */
    double workspace;      /* bytes */
    double memory_seconds; /* bytes at the GPU's bandwidth */
    double matrix_seconds; /* flops at the rate of the schedule's matrix instruction */
    double seconds;        /* of a kernel by itself; of a call */
    double hidden_seconds; /* ... those that pass in a call before the kernel before it has ended; of a call: 0 */
} tg_cost;
TG_API tg_status tg_cost_estimate(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                                  const tg_sizes *sizes, tg_cost *cost, const tg_sink *sink);
/* The same kernel by kernel: costs[i] is of row i of the schedule, its workspace what that row is the
 * first to write. tg_cost_estimate is the sum, of all but the first without hidden_seconds. */
TG_API tg_status tg_cost_kernels(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                                 const tg_sizes *sizes, tg_cost costs[TG_MAX_ROWS], const tg_sink *sink);

/* A point of a schedule's space: what is declared with other values of the fields that its space varies. */
typedef struct tg_choice {
    const tg_schedule *schedule;
    const tg_schedule *declared; /* the variant's, by whose name it goes: where the search began */
    const tg_space *space;       /* the variant's that `declared` is in; NULL: there is none */
    double seconds;              /* the cost model's */
} tg_choice;
typedef void tg_choice_fn(void *user, const tg_choice *choice);

/* Which schedules are searched. */
enum {
    TG_EACH_BY_NAME = 1, /* those too that are only taken by name */
    TG_EACH_KEEPING = 2  /* those that keep tensors in the caller's memory; else those that keep none */
};

/* The model's search, without compiling or measuring: of every schedule of the variant, in their order, and for every
 * length of chunks and segments that its space names, the point that the model would take, each row's fields for
 * themselves. `which` is of TG_EACH_... What does not fit is left out, so are decode steps without room for
 * shape->tokens; with sizes->chunk, all but that one. What a choice points to is valid until `visit` returns.
 * TG_E_ARGUMENT for what is no shape. */
TG_API tg_status tg_schedule_each(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                                  const tg_sizes *sizes, uint32_t which, tg_choice_fn *visit, void *user,
                                  const tg_sink *sink);

/* What to take when nobody says: of those choices the one that the cost model thinks fastest, or that of a schedule
 * declared before it which is at most a tenth slower, for the model is no better than that. Decode steps
 * (shape->tokens) take a schedule made for them where there is one, others never. `sizes` NULL: what is usual,
 * tg_sizes_usual. The same arguments give the same schedule; the first decision takes milliseconds, and the last 64 are
 * kept: asked once more, microseconds. Thread-safe. When none is accepted, TG_E_UNSUPPORTED with the reasons, or
 * TG_E_ARGUMENT for what is no shape. */
TG_API tg_status tg_schedule_default(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                                     const tg_sizes *sizes, tg_schedule *schedule, const tg_sink *sink);
/* 65,536 tokens in 8 sequences, or decode steps of 64, with 16 heads or a group of more. */
TG_API tg_sizes tg_sizes_usual(const tg_shape_class *shape);

/* Key of the kernel cache: everything that decides the code, the ptxas (its path, size and time) too, as a hex string
 * (32 digits + NUL). */
TG_API void tg_compile_key(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape,
                           const char *ptxas, char key[33]);

#ifdef __cplusplus
}
#endif
#endif
