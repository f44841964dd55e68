/* tuning/tuning.h - what a kernel is tried with, and which schedule is the fastest (libtegula-tuning): random problems of a
 * variant, the fp64 truth, calls on a GPU, how far from the truth their outputs may be, tg_tune.
 *
 * Apart from libtegula, which compiles and needs no GPU, and from libtegula-rt, which runs and needs no compiler: it needs
 * both. Nothing here prints, exits or reads the environment, and there is no global state: what is not shared may be
 * used from any thread. What fails says why to `sink` (which may be NULL) and leaves nothing behind: what a function
 * that failed was to fill needs no freeing. */
#ifndef TEGULA_TUNING_H
#define TEGULA_TUNING_H

#include "../compiler/compiler.h"
#include "../runtime/runtime.h"
#include "numbers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A GPU, or the emulator, whose context is current on the calling thread. Not owned: it outlives whatever uses it. */
typedef struct tg_machine {
    tg_driver *driver;
    tg_device device;
    const tg_target *target; /* what to compile for: tg_target_for_gpu, or an older one */
    bool is_emulator;        /* it knows which memory was never written, and filling it would hide that */
} tg_machine;

/* The GPU `ordinal` of the driver, with the newest target that it runs; is_emulator is the caller's to set. Makes no
 * context current: tg_context_acquire. TG_E_UNSUPPORTED for GPUs older than compute capability 8.0. */
TG_API tg_status tg_machine_of(tg_driver *driver, int ordinal, tg_machine *machine, const tg_sink *sink);

/* ---- problem.c, random.c: the tensors of a call, on the host ---- */

/* What a call looks like. Zero is the ordinary case for all but the first five. */
typedef struct tg_shape {
    int64_t batch, heads, tokens, dqk, dhv; /* packed: batch is the number of sequences, tokens all of theirs */
    int64_t group;                          /* heads that share a head of the TG_SHARED tensors; 0 means 1 */
    int64_t most_tokens;                    /* a decode step: calls have at most so many tokens; 0: any number */
    bool packed;                            /* sequences of different lengths one behind the other */
    bool pooled;                            /* states are slots of a pool */
    uint8_t state, values_first;            /* states in device memory, as in tg_shape_class */
} tg_shape;

/* No size is negative, and the group divides the heads; else TG_E_ARGUMENT. */
TG_API tg_status tg_shape_check(const tg_shape *shape, const tg_sink *sink);
/* Its run-time sizes, with that chunk. */
TG_API tg_sizes tg_sizes_of(const tg_shape *shape, int64_t chunk);
/* Widths beyond what any kernel takes become one that the compiler refuses. */
TG_API tg_shape_class tg_shape_class_of(const tg_shape *shape, tg_dtype io);

/* Boundaries of packed sequences: n + 1 numbers; sequence s is [at[s], at[s + 1]). */
typedef struct tg_cuts {
    int64_t *at; /* malloc'ed; NULL: none */
    int64_t n;   /* sequences */
} tg_cuts;

/* `to` is the caller's to free: free(to->at). */
TG_API tg_status tg_cuts_copy(const tg_cuts *from, tg_cuts *to, const tg_sink *sink);
/* Checks that they begin with 0, do not fall and end with `tokens`. `label` begins the message. TG_E_ARGUMENT. */
TG_API tg_status tg_cuts_check(const char *label, const tg_cuts *cuts, int64_t tokens, const tg_sink *sink);

/* A tensor [B, NH, axes...], contiguous; an axis of which there is one entry for all is 1 long. */
typedef struct tg_host_tensor {
    const char *name;                /* of the declaration */
    uint32_t tile;                   /* in the algorithm; of a kept one too */
    uint8_t flags;                   /* as declared; of a kept one TG_IN or TG_OUT */
    bool has_tokens;                 /* T is the axis after NH */
    bool is_gradient;                /* dX of a backward: of the output X as an input, of the input X as an output */
    uint8_t drawn;                   /* tg_drawn, as declared */
    bool is_fed;                     /* of a backward: what its forward computed */
    bool is_turned;                  /* [B, NH, dhv, dqk] in device memory: a state with the values first */
    bool is_kept;                    /* an intermediate that the schedule keeps in the caller's memory */
    int first_axis;                  /* the axes before it are 1 long whatever the call: parameters are [NH] */
    tg_num_type dtype;               /* of data */
    int rank;                        /* 2 + axes */
    int64_t extent[2 + TG_MAX_AXES]; /* B, NH, axes...; 1 where there is one for all */
    size_t n, bytes;                 /* elements, and what they take */
    void *data;                      /* malloc'ed; NULL: an absent optional input, or an output not yet computed */
} tg_host_tensor;

/* All tensors of a call. Its parts may be changed before a call is opened: scalars, layout, data. */
typedef struct tg_problem {
    const tg_variant *variant;
    tg_shape shape;
    tg_dtype io;
    union {
        double scale;
        double scalars[TG_MAX_SCALARS]; /* as in the algorithm; [0] is the scale, 1 / sqrt(dqk) unless declared */
    };
    const tg_scalar *declared; /* [n_scalars] */
    uint32_t n_scalars;
    tg_cuts cuts;                           /* of packed sequences; the problem owns them */
    bool is_token_major;                    /* [B, T, NH, ...] in device memory */
    bool is_wide;                           /* cu and index are int64 in device memory */
    uint64_t seed;                          /* of the slots of a pool */
    tg_host_tensor tensors[TG_MAX_TENSORS]; /* inputs and outputs, in the declaration's order */
    uint32_t n_tensors;
} tg_problem;

/* The variant that comes with Tegula and whose gradients this one computes; NULL: none. */
TG_API const tg_variant *tg_variant_forward(const tg_variant *variant);

/* Reproducible random inputs, optional ones included, but for what a forward computes (tg_problem_feed): drawn as they are
 * declared (tg_drawn), the same on every machine. `forward`: the variant whose gradients this one computes; NULL: tg_variant_forward. `cuts`: of packed
 * sequences; NULL: random ones, some of them short or empty. tg_problem_free. */
TG_API tg_status tg_problem_random(const tg_variant *variant, const tg_variant *forward, const tg_shape *shape,
                                   tg_dtype io, uint64_t seed, const tg_cuts *cuts, tg_problem *problem,
                                   const tg_sink *sink);
/* One number of such a tensor: a decay is a decay. */
TG_API double tg_random_number(const tg_host_tensor *tensor, tg_random random, size_t index);

/* The same without data; packed sequences are of equal length, as far as T allows. */
TG_API tg_status tg_problem_layout(const tg_variant *variant, const tg_variant *forward, const tg_shape *shape,
                                   tg_dtype io, tg_problem *problem, const tg_sink *sink);
/* The two halves of it, for those who have yet to learn the shape: names, types and default scalars; then extents.
 * TG_E_ARGUMENT for a shape that the variant cannot have. What fails has to be freed. */
TG_API tg_status tg_problem_declare(const tg_variant *variant, const tg_variant *forward, tg_dtype io,
                                    tg_problem *problem, const tg_sink *sink);
TG_API tg_status tg_problem_size(const tg_shape *shape, tg_problem *problem, const tg_sink *sink);

/* Gives inputs that a forward computed (h, qn, kept states) copies of what `forward` holds. */
TG_API tg_status tg_problem_feed(const tg_problem *forward, tg_problem *problem, const tg_sink *sink);
/* Adds the intermediates that the program's schedule keeps in the caller's memory. */
TG_API tg_status tg_problem_keep(const tg_program *program, int64_t chunk, tg_problem *problem, const tg_sink *sink);

TG_API tg_host_tensor *tg_problem_tensor(tg_problem *problem, const char *name);   /* NULL: none */
TG_API int tg_problem_scalar(const tg_problem *problem, const char *name);         /* -1: none */
TG_API tg_status tg_problem_allocate(tg_host_tensor *tensor, const tg_sink *sink); /* what was there is freed */
TG_API void tg_problem_free(tg_problem *problem);

/* ---- truth.c: what the outputs should be ---- */

/* Outputs in fp64, by tile; NULL: none. tg_truth_free. */
typedef struct tg_truth {
    double *out[256];
} tg_truth;

/* Called from time to time while the truth is computed, on the calling thread. */
typedef struct tg_parts_done {
    void (*tell)(void *user, int64_t done, int64_t parts);
    void *user;
} tg_parts_done;

/* By the variant's oracle, else by its statements; with `chunk` by the statements, in chunks of so many tokens. On all
 * cores. Inputs are taken as they are, already rounded to their type, so that the distance of a kernel's output is its
 * own. `parts` may be NULL. */
TG_API tg_status tg_truth_compute(const tg_problem *problem, int64_t chunk, const tg_parts_done *parts, tg_truth *truth,
                                  const tg_sink *sink);
/* What becomes of each result of the statements, and of a state as products take it (tg_interpretation: round, operand, user).
 * Called by several threads at a time. */
typedef struct tg_rounding {
    double (*of)(void *user, uint32_t tile, uint64_t element, double value);
    double (*operand)(void *user, uint32_t tile, uint64_t element, double value);
    void *user;
} tg_rounding;
/* The same by the statements, rounded; NULL: not rounded. */
TG_API tg_status tg_truth_rounded(const tg_problem *problem, int64_t chunk, const tg_rounding *rounding,
                                  const tg_parts_done *parts, tg_truth *truth, const tg_sink *sink);
TG_API void tg_truth_free(tg_truth *truth);

/* The variant's oracle, or that of a variant that comes with Tegula and has the same algorithm; NULL if neither. */
typedef void tg_oracle_fn(const tg_oracle_call *call);
TG_API tg_oracle_fn *tg_variant_oracle(const tg_variant *variant);

/* ---- judge.c: how far from the truth is allowed ---- */

/* Error levels that are known of an output, over RMS(truth); 0: not known. */
typedef struct tg_levels {
    double rms, max;
} tg_levels;

typedef struct tg_verdict {
    const char *name;            /* of the tensor */
    tg_tensor_error error;       /* numbers.h */
    double rms_limit, max_limit; /* on error.rms_ratio and error.max_ratio */
    bool ok;                     /* within both, and infinite or NaN where the truth is, and only there */
} tg_verdict;

/* How much further off than with one chain of products the variant's results are; 1 for most. */
TG_API double tg_chain_slack(const tg_problem *problem);
/* An output beside its truth: at most 4e-3 of its RMS and ten times that of its largest number in 16 bits, 2e-5 in fp32;
 * gradients twice that, those of parameters four times more; three times the levels where those are stricter. */
TG_API tg_verdict tg_judge(const tg_problem *problem, const tg_host_tensor *tensor, tg_const_array reference,
                           tg_levels levels);
/* The limits alone: nothing is compared, and the verdict is not ok. */
TG_API tg_verdict tg_judge_limits(const tg_problem *problem, const tg_host_tensor *tensor, tg_const_array reference,
                                  tg_levels levels);
/* Every output that was computed beside its truth: the worst verdict. `chunk`: of the schedule, by which the statements
 * say what roundings are worth where there are few numbers. What cannot be computed for that goes to `sink`. */
TG_API tg_verdict tg_judge_all(const tg_problem *problem, const tg_truth *truth, int64_t chunk, const tg_sink *sink);

/* ---- differences.c: gradients beside differences of the forward ---- */

/* Along a random direction in one input, of the sum of all outputs with random weights. */
typedef struct tg_slope {
    const char *name;       /* of the input */
    double found, declared; /* by differences of the forward; by the gradients */
    double limit;           /* on how far they are apart */
    bool ok;                /* within it */
} tg_slope;
typedef void tg_slope_fn(void *user, const tg_slope *slope);

/* The statements of gradients, of the variant and of those of its schedules that have others, against differences of the
 * forward's, both interpreted in fp64 on a small problem with the declared scalars: right or wrong whatever kernels and
 * oracle say. Calls back for each input that has a gradient, with the worst of some directions. TG_E_NUMERICS when some
 * are wrong. */
TG_API tg_status tg_gradients_check(const tg_variant *forward, const tg_variant *backward, uint64_t seed,
                                    tg_slope_fn *visit, void *user, const tg_sink *sink);

/* ---- rounding.c: what roundings do to the outputs ---- */

enum { TG_ROUNDINGS = 64 }; /* numbers, or samples of one, by which a deviation is known to a tenth */

/* Mean squares of it, of so many samples, element by element, of every output; tg_truth_free. `chunk` and `parts` as for
 * tg_truth_compute, which gave `truth`; NULL: it is computed. By an oracle (chunk 0) of inputs alone. */
TG_API tg_status tg_truth_deviation(const tg_problem *problem, int64_t chunk, const tg_truth *truth, uint32_t samples,
                                    const tg_parts_done *parts, tg_truth *square, const tg_sink *sink);
/* The same, once somebody must know: by so many samples; 0: nothing is known yet. The
 * caller's: {0}, and tg_truth_free(&square) in the end. */
typedef struct tg_deviation {
    tg_truth square;
    uint32_t samples;
} tg_deviation;

/* By at least so many samples; false: none are wanted, or it cannot be computed, as `sink` was told. `chunk` and
 * `parts` as for tg_truth_compute. */
TG_API bool tg_deviation_know(const tg_problem *problem, int64_t chunk, uint32_t samples, const tg_parts_done *parts,
                              tg_deviation *deviation, const tg_sink *sink);
/* By how many samples an output must be judged again before it is called wrong; 0: it is right, or wrong without doubt. */
TG_API uint32_t tg_roundings_wanted(const tg_verdict *verdict, const tg_host_tensor *tensor);
/* ... and that, by such mean squares of its deviation. */
TG_API void tg_judge_rounded(const tg_host_tensor *tensor, tg_const_array reference, const double *square,
                             tg_verdict *verdict);

/* ---- call.c: a launch with its device memory ---- */

/* Where the states of the sequences lie: more slots than sequences, in a random order. */
typedef struct tg_pool {
    int64_t *slot;   /* [n_slots], the first `batch` are the sequences'; NULL: there is no pool */
    int64_t n_slots; /* in the memory of each pooled state */
} tg_pool;

/* What tg_launch takes, and the memory it lies in; to be read. */
typedef struct tg_call {
    const tg_machine *machine;
    const tg_module *module;
    tg_sizes sizes;
    float scalars[TG_MAX_SCALARS];      /* of the problem */
    bool is_token_major;                /* as the problem's */
    tg_tensor_arg args[TG_MAX_TENSORS]; /* [n_args] */
    bool is_borrowed[TG_MAX_TENSORS];   /* the memory is another argument's */
    uint32_t n_args;
    tg_pool pool;
    double tensor_bytes;      /* of those that are there, each once */
    uint64_t workspace;       /* device address; 0: none */
    uint64_t workspace_bytes; /* may be more than the program needs */
} tg_call;

/* Inputs are copied in; outputs are poisoned with NaN, so that what is never written shows. Pooled
 * states lie in slots chosen by the problem's seed, the final one where the initial one was. Machine and module must
 * outlive the call. tg_call_close. */
TG_API tg_status tg_call_open(tg_call *call, const tg_machine *machine, const tg_module *module,
                              const tg_problem *problem, int64_t chunk, const tg_sink *sink);
/* The same with inputs made of a short random pattern, but for those that the problem has data of: for timing, at any size. */
TG_API tg_status tg_call_open_pattern(tg_call *call, const tg_machine *machine, const tg_module *module,
                                      const tg_problem *problem, int64_t chunk, const tg_sink *sink);
TG_API tg_status tg_call_run(tg_call *call, const tg_sink *sink); /* launches and waits */
/* Another program of the same variant, or another chunk size, on the same tensors. */
TG_API tg_status tg_call_rebind(tg_call *call, const tg_module *module, int64_t chunk, const tg_sink *sink);
/* time.c: milliseconds, ascending, into times[runs]; with `flush` the L2 cache is emptied before each. */
TG_API tg_status tg_call_time(tg_call *call, uint32_t runs, bool flush, float *times, const tg_sink *sink);
/* The same of each kernel, into times[n_kernels][runs]. */
TG_API tg_status tg_call_time_kernels(tg_call *call, uint32_t runs, bool flush, float *times, const tg_sink *sink);
/* Of n > 0. */
TG_API double tg_median(const float *ascending, uint32_t n);
/* Outputs that there are back into the problem. TG_E_NUMERICS when a slot of the pool was written that is no sequence's. */
TG_API tg_status tg_call_fetch(const tg_call *call, tg_problem *problem, const tg_sink *sink);
TG_API void tg_call_close(tg_call *call);

/* All of it: opens a call, runs it, fetches the outputs, closes it. */
TG_API tg_status tg_problem_run(tg_problem *problem, const tg_machine *machine, const tg_module *module, int64_t chunk,
                                const tg_sink *sink);

/* ---- wisdom.c: schedules as wisdom keeps them ---- */

enum { TG_SCHEDULE_TEXT = 256 };

/* "tfla chunk=256 H.Lhq=64", for tg_variant_schedule_named and --schedule. */
TG_API void tg_schedule_text(const tg_variant *variant, const tg_schedule *schedule, char text[TG_SCHEDULE_TEXT]);

/* The entry of such a call on this GPU, but for what is to be known of it: schedule, chunk, milliseconds. It is filed under
 * the variant's name and what else the code depends on, "mlstm-sig+g2+cu". False when that does not fit; `variant` is
 * then empty, and tg_wisdom_add refuses it. */
TG_API bool tg_wisdom_of(const tg_device *device, const tg_variant *variant, const tg_shape_class *shape_class,
                         const tg_sizes *sizes, tg_wisdom *entry);

/* ---- advice.c: what wisdom says of a call ---- */

/* wisdom/h200.txt, built in; and what messages call it. */
TG_API extern const char tg_shipped_wisdom[], tg_shipped_name[];

/* A call that a schedule is sought for. */
typedef struct tg_wanted {
    const tg_variant *variant;
    const tg_target *target;
    const tg_shape_class *shape_class;
    tg_wisdom like; /* tg_wisdom_of; an empty device stands for any */
    int64_t chunk;  /* that the schedule must take; 0: any */
} tg_wanted;

/* The schedule that wisdom has for it: that of the nearest entry of the file `path`, or of what is shipped (NULL; for
 * variants that come with Tegula), if sizes are within a factor of two, it can be compiled and, at these sizes, the model
 * does not think it slower than its own choice. `found` is the entry. False: there is none. It is advice, so what is wrong
 * with a file or an entry is a warning; a missing file is an empty one. */
TG_API bool tg_wisdom_advice(const tg_wanted *wanted, const char *path, tg_wisdom *found, tg_schedule *schedule,
                             const tg_sink *sink);

/* The schedule in chunks of so many tokens; 0: as it is. Fails as tg_schedule_apply. */
TG_API tg_status tg_schedule_set_chunk(tg_schedule *schedule, int64_t chunk, const tg_sink *sink);

/* ---- keep.c: states that a forward hands to its backward ---- */

typedef struct tg_keeping {
    tg_schedule forward, backward;
} tg_keeping;

/* A forward's schedule that leaves its states in the caller's memory, and one of its backward that takes them: of those
 * that fit, at all lengths of chunks and segments of their spaces, the two that the model thinks fastest. With `given`
 * the forward's is that. False if there are none. */
TG_API bool tg_schedules_keeping(const tg_variant *forward, const tg_schedule *given, const tg_target *target,
                                 const tg_shape_class *shape_class, const tg_sizes *sizes, tg_keeping *pair);
/* Of a variant's schedules that keep just these tensors, cut into chunks of sizes->chunk and segments of `segment` of them
 * (tg_schedule_cut), the one that the model thinks fastest: a forward's or a backward's, of such a pair. False if there is
 * none. */
TG_API bool tg_schedule_keeping(const tg_variant *variant, const char *const *names, uint32_t n_names, uint32_t segment,
                                const tg_target *target, const tg_shape_class *shape_class, const tg_sizes *sizes,
                                tg_schedule *schedule);
/* Chunks of a segment; 0, or 1, where there are none. */
TG_API uint32_t tg_schedule_cut(const tg_schedule *schedule);
TG_API uint32_t tg_schedule_segment(const tg_schedule *schedule);

/* ---- tune.c: which schedule is the fastest ---- */

enum { TG_REASON = 240, TG_MAX_CANDIDATES = 256 };

typedef enum tg_candidate_state {
    TG_TIMED,     /* right on a small problem, and timed at the sizes of the request */
    TG_PREDICTED, /* the cost model's time: there was no GPU to ask */
    TG_NOT_BUILT, /* could not be compiled or loaded */
    TG_WRONG,     /* not within tolerance of the fp64 truth */
    TG_NOT_RUN,   /* a call failed, or the search was cancelled before its time was known */
} tg_candidate_state;

typedef struct tg_candidate {
    tg_schedule schedule;        /* for tg_compile and tg_set_part */
    char text[TG_SCHEDULE_TEXT]; /* "tfla chunk=256 H.Lhq=64": for tg_variant_schedule_named and --schedule */
    tg_candidate_state state;
    char reason[TG_REASON]; /* of one that is neither timed nor predicted; else "" */
    bool is_sweep;          /* of the first sweep, over lengths of chunks and segments alone */
    tg_cost cost;           /* the model's */
    double milliseconds;    /* the median of the runs, or the model's; of those two states only */
    double workspace;       /* bytes; of those two states only */
    tg_verdict verdict;     /* of the worst output; its name is NULL where none was judged */
} tg_candidate;

/* What tuning has found so far, or in all. */
typedef struct tg_tuning {
    tg_candidate *candidates; /* in the order in which they were tried */
    uint32_t n_candidates;
    const tg_candidate *best;    /* of the candidates; NULL: none was timed, or predicted */
    const tg_candidate *untuned; /* what a call gets without tuning, always the first; NULL: none fits */
    bool is_cancelled;           /* by `progress` */
    tg_wisdom wisdom;            /* the best as tg_wisdom_add takes it; no `variant`: it was not measured, or no entry
                                    can name it */
} tg_tuning;

/* What to tune, and how. Zero what does not matter. */
typedef struct tg_tune_request {
    const tg_machine
        *machine; /* without a driver nothing is measured: the candidates are the cost model's of its target */
    const tg_variant *variant;
    const tg_variant *forward; /* whose gradients `variant` computes; needed of gradients of one's own alone */
    tg_shape shape;            /* the call that is timed */
    tg_dtype io;
    double budget_seconds; /* after so long no further candidate is begun. What a call gets untuned is always tried */
    uint32_t runs;         /* timed runs of a candidate; 0: 10, and 30 of the fastest */
    uint32_t keep;         /* values of a field that are tried, the likely ones first; 0: 6 */
    uint64_t seed;         /* of the inputs that candidates are judged with */
    const char *ptxas;     /* as in tg_compile_options */
    /* Called on the calling thread before each step of a candidate - "compile", "check", "time" - with what was found so
     * far. Anything but 0 cancels: no further step is begun. NULL: nobody asks. */
    int (*progress)(void *user, const tg_tuning *so_far, const tg_candidate *candidate, const char *step);
    void *user;
} tg_tune_request;

/* Searches from the model's choices: every schedule of the variant that fits, the likely ones first; those that the model
 * thinks much slower are left out, with a TG_NOTE. Each is compiled, judged against fp64 on a small problem of the same
 * widths, and only then timed, the L2 cache emptied before each run; the fastest are timed again. A candidate that fails is
 * a TG_NOTE and does not end the search. Compiles on all cores; takes device memory for one call of the shape.
 * TG_OK when something was found, and when it was cancelled before that; `best` says which. Else TG_E_ARGUMENT,
 * TG_E_DECLARATION or TG_E_UNSUPPORTED for what cannot be tuned, TG_E_MEMORY, or TG_E_NUMERICS, TG_E_COMPILE or
 * TG_E_DRIVER after what the untuned candidate failed of. In all cases tg_tuning_free, and candidates say why they
 * failed. */
TG_API tg_status tg_tune(const tg_tune_request *request, tg_tuning *tuning, const tg_sink *sink);
TG_API void tg_tuning_free(tg_tuning *tuning); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
