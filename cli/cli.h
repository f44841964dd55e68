/* cli/cli.h - what the files of the command share. One banner a file.
 *
 * A command is a row of the table in main.c. It gets a context (options, device, where messages go)
 * and returns an exit code. Below main nothing exits; every message has a hint that says what to
 * do. */
#ifndef TEGULA_CLI_H
#define TEGULA_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>
#include <pthread.h>

#include "compiler/compiler.h"
#include "interpreter/interpreter.h"
#include "runtime/runtime.h"
#include "numbers.h"
#include "safetensors.h"

enum exit_code {
    CODE_OK = 0,
    CODE_FAILED = 1, /* a check failed, or the driver or the compiler did */
    CODE_USAGE = 2,  /* arguments, files, shapes, declarations: something the user can mend */
};

struct context;
struct progress;

/* What a call looks like. Zero is the ordinary case for all but the first five. */
struct shape {
    int64_t batch, heads, tokens, dqk, dhv; /* packed: batch is the number of sequences */
    int64_t group;                          /* heads that share a head of the TG_SHARED tensors */
    int64_t most_tokens;                    /* a decode step: calls have at most so many tokens; 0: any number */
    bool packed;                            /* sequences of different lengths one behind the other */
    bool pooled;                            /* states are slots of a pool */
};

/* ---- options.c ---- */

enum { MAX_SHAPES = 15, MAX_SCHEDULES = 8, MAX_SETTINGS = 8 };

/* --set NAME=VALUE */
struct setting {
    char name[16];
    double value;
};

/* Boundaries of packed sequences: n + 1 numbers; sequence s is [at[s], at[s + 1]). */
struct cuts {
    int64_t *at; /* NULL: none */
    int64_t n;   /* sequences */
};

struct options {
    const char *device, *arch, *dtype, *schedule, *stage, *input, *output, *name, *gpu;
    const char *cache, *wisdom, *load, *ptxas, *layout, *backward_schedule, *paper, *svg;
    const char *schedules[MAX_SCHEDULES]; /* `schedule` is the last of them */
    uint32_t n_schedules;
    struct shape shapes[MAX_SHAPES];
    uint32_t n_shapes;
    struct setting settings[MAX_SETTINGS];
    uint32_t n_settings;
    struct cuts cuts;
    int64_t dqk, dhv, chunk, seed, runs, keep, group, tokens; /* 0: not given */
    double scale, budget_seconds, eps;                        /* 0: not given */
    bool json, time, flush, no_cache, no_wisdom, help;
    bool grad, keep_states, packed, pool, int64, roofline;
    char *const *args; /* what is not an option */
    uint32_t n_args;
};

enum option_id {
    OPT_HELP,
    OPT_JSON,
    OPT_DEVICE,
    OPT_ARCH,
    OPT_DTYPE,
    OPT_DQK,
    OPT_DHV,
    OPT_SHAPE,
    OPT_CHUNK,
    OPT_SCHEDULE,
    OPT_STAGE,
    OPT_SEED,
    OPT_SCALE,
    OPT_SET,
    OPT_GROUP,
    OPT_CU,
    OPT_PACKED,
    OPT_POOL,
    OPT_INT64,
    OPT_TOKENS,
    OPT_GRAD,
    OPT_KEEP_STATES,
    OPT_BACKWARD_SCHEDULE,
    OPT_LAYOUT,
    OPT_IN,
    OPT_OUT,
    OPT_NAME,
    OPT_TIME,
    OPT_FLUSH,
    OPT_RUNS,
    OPT_ROOFLINE,
    OPT_PAPER,
    OPT_SVG,
    OPT_EPS,
    OPT_BUDGET,
    OPT_KEEP,
    OPT_GPU,
    OPT_LOAD,
    OPT_CACHE,
    OPT_NO_CACHE,
    OPT_WISDOM,
    OPT_NO_WISDOM,
    OPT_PTXAS,
    N_OPTIONS,
};
#define TAKES(id) (UINT64_C(1) << (id))

struct command {
    const char *name;
    const char *arguments; /* "VARIANT --in FILE --out FILE" */
    const char *summary;   /* one line */
    uint64_t options;      /* TAKES(OPT_…), or-ed */
    uint32_t min_args, max_args;
    int (*run)(struct context *context);
    const char *notes; /* more lines for --help */
};

/* argv[0] is the command's name. False after a message. */
bool options_parse(struct context *context, int argc, char **argv);
void options_free(struct options *options);
/* What --group, --packed, --cu, --pool and --tokens say of a shape that --shape gives. False after
 * a message. */
bool options_shape(struct context *context, struct shape *shape);
void options_print_help(const struct command *command, FILE *to);
bool dtype_parse(struct context *context, const char *text, tg_dtype *dtype);
/* The name in the NULL-terminated list that `wrong` was probably meant to be; NULL if none is near.
 */
const char *nearest_name(const char *wrong, const char *const *names);

/* ---- context.c ---- */

/* A GPU or the emulator, opened, with its primary context current once it is ready. */
struct machine {
    tg_driver *driver; /* NULL: not opened */
    tg_device device;
    const tg_target *target; /* what to compile for */
    bool is_emulator, is_ready;
    bool is_waking; /* a thread makes the context */
    pthread_t waking;
    int n_held; /* times the context is acquired */
};

struct context {
    const struct command *command;
    struct options options;
    tg_sink sink;   /* prints to stderr and, with --json, also collects into `errors` */
    json_t *errors; /* array; NULL without --json */
    struct machine machine;
    void *plugin;                             /* dlopen handle of --load */
    void *emulator;                           /* dlopen handle, to configure it */
    const tg_variant *const *plugin_variants; /* of --load, and what they are added to */
    struct joined *joined;                    /* join.c; malloc'ed */
    double process_start;                     /* seconds on the clock of `now` */
    char cache[4096], wisdom[4096], ptxas[4096];
    struct progress *progress; /* NULL: nothing that may take long is going on */
    bool is_cache_warned;
    bool is_advice; /* what is found wrong now can be done without: errors become warnings */
};

void context_init(struct context *context);
void context_close(struct context *context);

/* A mistake of the user's, or of the file's: what is wrong, and what to do about it. */
void complain(struct context *context, const char *hint, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A remark on stderr that is no error. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Drops every message: for candidates that may be refused. */
extern const tg_sink silent_sink;
int code_of_status(tg_status status);

/* Opens what --device names; without it GPU 0, or the emulator when there is no GPU. Between its
 * two halves the driver makes the context, which takes it as long as we take to compile. */
bool machine_open(struct context *context);
bool machine_begin(struct context *context); /* after it the device and the target are known */
bool machine_ready(struct context *context);
/* Where libtegula-emu.so lies beside this executable. */
void emulator_path(char *path, size_t size);
/* --arch, else the GPU's, else the oldest. Opens nothing that stays open. NULL after a message. */
const tg_target *target_wanted(struct context *context);
/* The same of an --arch that names several, "sm_80,sm_90a", each once. False after a message. */
enum { MAX_TARGETS = 8 };
bool targets_wanted(struct context *context, const tg_target *targets[MAX_TARGETS], uint32_t *n);

double now(void); /* seconds, monotonic */

/* ---- progress.c ---- */

/* Between begin and end a line on stderr says what is going on, once it lasts more than a second.
 * Pairs may nest; the text is that of the last call. */
void progress_begin(struct context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress(struct context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_hide(struct context *context); /* before other text on stderr */
void progress_end(struct context *context);

/* ---- text.c: text in memory, and numbers for people ---- */

struct text {
    char *bytes; /* NUL-terminated, or NULL when empty */
    size_t size, room;
};

tg_writer text_writer(struct text *text);
tg_writer file_writer(FILE *file);
const char *text_of(const struct text *text);
void text_free(struct text *text);
/* "1.5 GiB" into a buffer of 32. */
const char *bytes_text(double bytes, char buffer[32]);
/* NaN and infinity, which JSON lacks, become null. */
json_t *json_number(double x);
/* One line of JSON on stdout; gives up the reference. */
void json_print(json_t *object);

/* ---- find.c: variants and schedules by name ---- */

bool plugin_load(struct context *context);
/* Sets context->plugin_variants to these, and to the built-in ones that some of them add schedules to. */
bool plugin_join(struct context *context, const tg_variant *const *loaded);
/* Built-in or loaded, by name or alias; NULL after a message that names the nearest. */
const tg_variant *variant_by_name(struct context *context, const char *name);
const tg_variant *variant_lookup(const struct context *context, const char *name); /* no message */
/* The variant whose gradients this one computes; NULL if none. */
const tg_variant *variant_forward(const struct context *context, const tg_variant *variant);
/* The variant's oracle, or that of a built-in variant with the same algorithm; NULL if neither: then
 * the truth is what its statements say. */
typedef void oracle_fn(const tg_oracle_call *call);
oracle_fn *variant_oracle(const tg_variant *variant);
/* Calls back for every variant: built in, then loaded. */
void variants_each(const struct context *context, void (*visit)(void *user, const tg_variant *variant), void *user);

/* ---- keep.c: states handed over ---- */

/* Chunks of a segment; 1 where there are none. */
uint32_t schedule_segment(const tg_schedule *schedule);
/* A forward's schedule that leaves its states in the caller's memory, and one of its backward that
 * takes them: of those that fit the two that the model thinks fastest. With `given` the forward's is
 * that. False if there are none. */
struct keeping {
    tg_schedule forward, backward;
};
bool schedules_keeping(const tg_variant *forward, const tg_schedule *given, const tg_target *target,
                       const tg_shape_class *class, const struct shape *shape, struct keeping *pair);

/* What a user asks for: --schedule, NULL when not given, and --chunk, 0 when not given. */
struct wish {
    const char *schedule;
    int64_t chunk;
};
struct wish wish_of(const struct options *options);

/* The schedule to compile: the wish's, else wisdom's (when `sizes` is given and there is a
 * machine), else what the cost model chooses for these sizes (NULL: for usual ones). The wish's
 * chunk goes on top. `origin` says where it comes from. */
struct choice {
    tg_schedule schedule;
    char origin[64];
};
bool schedule_choose(struct context *context, const tg_variant *variant, const tg_target *target,
                     const tg_shape_class *shape, const struct shape *sizes, struct wish wish, struct choice *choice);
/* Puts the chunk on top, unless it is 0. */
bool schedule_chunk(tg_schedule *schedule, int64_t chunk, const tg_sink *sink);
/* "tfla chunk=128 H.Lhq=64": an optional schedule name and changes to it. Without a name it is the
 * default of these sizes. */
bool schedule_from_text(struct context *context, const tg_variant *variant, const tg_target *target,
                        const tg_shape_class *shape, const struct shape *sizes, const char *text,
                        tg_schedule *schedule);
/* The other way round: "tfla chunk=256", as wisdom keeps it. */
enum { SCHEDULE_TEXT = 256 };
void schedule_text(const tg_variant *variant, const tg_schedule *schedule, char text[SCHEDULE_TEXT]);
bool shape_class_check(struct context *context, const tg_shape_class *shape);
/* From --dtype, and --dqk and --dhv or one --shape, else bf16, 128 and 256; --group and the like. `sizes`: the calls that
 * a schedule is for, those of --shape or usual ones. */
bool shape_class_wanted(struct context *context, tg_shape_class *shape, struct shape *sizes);
/* The shapes of every --shape, else one of the widths of --dqk and --dhv without sizes; with --group and the like. */
bool shapes_wanted(struct context *context, struct shape shapes[MAX_SHAPES], uint32_t *n);

/* ---- wisdom.c: what tuning has found ---- */

/* What wisdom is filed under: the variant's name, and what else the code depends on. False when
 * that does not fit a line of wisdom; then there is none. */
bool wisdom_name(const tg_variant *variant, const tg_shape_class *shape, char name[sizeof((tg_wisdom *)0)->variant]);
/* An entry for such a call on this GPU, but for what is to be known of it. False as above. */
bool wisdom_entry(const struct context *context, const tg_variant *variant, const tg_shape_class *shape,
                  const struct shape *sizes, tg_wisdom *entry);
/* The user's own; "" where there is no place for it. */
const char *wisdom_path(const struct context *context);
/* wisdom/h200.txt, built in; and what messages call it. */
extern const char shipped_wisdom[], shipped_name[];
/* What is known of this GPU and these sizes, if it takes the chunk (0: any), and where from: the
 * user's own wisdom, else what is shipped. */
bool schedule_remembered(struct context *context, const tg_variant *variant, const tg_target *target,
                         const tg_shape_class *shape, const struct shape *sizes, int64_t chunk, struct choice *choice);

/* What is known of these sizes on a GPU of the target's capability, which need not be here: of --wisdom when that is
 * given, else what is shipped. */
bool schedule_measured(struct context *context, const tg_variant *variant, const tg_target *target,
                       const tg_shape_class *shape, const struct shape *sizes, int64_t chunk, struct choice *choice);

/* ---- parts.c: what a set of programs is made of ---- */

enum { MAX_CHOSEN = 128 };

/* What was chosen for what. */
struct chosen {
    uint32_t part, program; /* of the set's parts, and of the part's schedules */
    bool is_default;        /* for no sizes of its own */
    struct shape sizes;
    char schedule[SCHEDULE_TEXT], origin[64];
};

struct set_parts {
    tg_set_part *row; /* malloc'ed */
    uint32_t n;
    struct chosen chosen[MAX_CHOSEN];
    uint32_t n_chosen;
};

/* From --arch, --shape, --schedule and --wisdom. False after a message; else parts_free. */
bool parts_wanted(struct context *context, const tg_variant *variant, struct set_parts *parts);
void parts_free(struct set_parts *parts);

/* ---- problem.c: the tensors of a call, on the host ---- */

struct host_tensor {
    const char *name;
    uint32_t tile;       /* in the algorithm; of a kept one too */
    uint8_t flags;       /* as declared; of a kept one TG_IN or TG_OUT */
    bool has_tokens;     /* T is the axis after NH */
    bool is_gradient;    /* dX of a backward: of the output X as an input, of the input X as an output
                       */
    bool is_exponential; /* a gate that goes into e^x, not into a sigmoid */
    bool is_unit;        /* keys of a delta rule, which of longer ones has no bounded state */
    bool is_fed;         /* of a backward: what its forward computed */
    bool is_kept;        /* an intermediate that the schedule keeps in the caller's memory */
    int first_axis;      /* files leave out the axes before it: parameters are [NH] there */
    enum st_dtype dtype;
    int rank;
    int64_t extent[2 + TG_MAX_AXES]; /* B, NH, axes...; 1 where there is one for all */
    size_t n, bytes;
    void *data; /* NULL: an absent optional input, or an output not yet computed */
};

struct problem {
    const tg_variant *variant;
    struct shape shape;
    tg_dtype io;
    union {
        double scale;
        double scalars[TG_MAX_SCALARS]; /* as in the algorithm; [0] is the scale */
    };
    const tg_scalar *declared; /* [n_scalars] */
    uint32_t n_scalars;
    struct cuts cuts;    /* of packed sequences; the problem owns them */
    bool is_rounded;     /* --dtype changed some input: what the file says of outputs no longer holds */
    bool is_token_major; /* [B, T, NH, ...] in device memory */
    bool is_wide;        /* cu and index are int64 in device memory */
    bool is_prefixed;    /* the file says in.q, not q */
    uint64_t seed;       /* of the slots of a pool */
    struct host_tensor tensors[TG_MAX_TENSORS]; /* inputs and outputs, in the declaration's order */
    uint32_t n_tensors;
};

/* Names, types and extents of all tensors; default scalars; when packed sequences of equal length,
 * as far as T allows. No data. */
bool problem_layout(struct context *context, const tg_variant *variant, const struct shape *shape, tg_dtype io,
                    struct problem *problem);
/* The two halves of it: without extents, for those who have yet to learn the shape. */
bool problem_declare(struct context *context, const tg_variant *variant, tg_dtype io, struct problem *problem);
bool problem_size(struct context *context, const struct shape *shape, struct problem *problem);
/* --set, --scale, --layout and --int64. */
bool problem_options(struct context *context, struct problem *problem);
/* Gives inputs that a forward computed (h, qn, kept states) what `forward` holds. */
bool problem_feed(struct context *context, const struct problem *forward, struct problem *problem);
/* Adds the intermediates that the kernel's schedule keeps. */
bool problem_keep(struct context *context, const tg_program *program, int64_t chunk, struct problem *problem);
struct host_tensor *problem_tensor(struct problem *problem, const char *name);
int problem_scalar(const struct problem *problem, const char *name); /* -1: none */
/* Complains of a scalar that the variant does not have, found `where`; false. */
bool problem_unknown_scalar(struct context *context, const struct problem *problem, const char *where,
                            const char *name);
bool problem_allocate(struct context *context, struct host_tensor *tensor);
void problem_free(struct problem *problem);
bool cuts_copy(struct context *context, const struct cuts *from, struct cuts *to);
/* Checks that they begin with 0, do not fall and end with `tokens`. `label` is of the message. */
bool cuts_check(struct context *context, const char *label, const struct cuts *cuts, int64_t tokens);
/* The tensor's name in a file: in.q, out.h; of a backward also dout.h and grad.q. */
void tensor_file_name(const struct host_tensor *tensor, char full[64]);
/* {"B": 1, ...}, with "group", "packed" and "pooled" where they are not as usual. */
json_t *shape_json(const struct shape *shape);
/* Widths beyond what any kernel takes become one that shape_class_check refuses. */
tg_shape_class shape_class_of(const struct shape *shape, tg_dtype io);

/* ---- problem_file.c ---- */

/* Reads and checks; all mistakes of the file are reported. What a forward computes for the backward
 * need not be there when `is_fed`. */
bool problem_read(struct context *context, const tg_variant *variant, const struct st_file *file, const char *path,
                  bool is_fed, struct problem *problem);
/* One number where the tensor has one a head: it stands for all of them. */
bool is_for_all_heads(const struct host_tensor *tensor, const struct st_tensor *found);
const struct st_tensor *tensor_in_file(const struct st_file *file, const struct host_tensor *tensor);

/* ---- problem_random.c ---- */

/* Reproducible random inputs, optional ones included, but for what a forward computes. Half of the
 * heads forget slowly, so that what is carried from chunk to chunk matters. */
bool problem_random(struct context *context, const tg_variant *variant, const struct shape *shape, tg_dtype io,
                    uint64_t seed, struct problem *problem);
/* One number of such a tensor: a decay is a decay. */
double random_number(const struct host_tensor *tensor, struct num_random random, size_t index);

/* ---- kernel.c: from schedule to something that runs ---- */

struct kernel {
    tg_program *program;
    tg_module *module;
    bool is_cached;
    double compile_seconds, load_seconds;
};

bool kernel_build(struct context *context, const tg_variant *variant, const tg_schedule *schedule,
                  const tg_shape_class *shape, struct kernel *kernel, const tg_sink *sink);
/* The kernel owns the program from here on, also when loading fails. */
bool kernel_load(struct context *context, tg_program *program, struct kernel *kernel, const tg_sink *sink);
void kernel_free(struct kernel *kernel);
/* Path of ptxas: --ptxas, else on PATH; NULL if there is none, or it shall be none. The second looks at --ptxas alone. */
const char *ptxas_find(struct context *context);
const char *ptxas_given(const struct context *context);
/* tg_compile and tg_compile_set. A ptxas that was found, not given, and does not do for these kernels is left out: says so,
 * and sets how->ptxas to NULL. */
tg_status program_compile(const struct context *context, const tg_variant *variant, const tg_schedule *schedule,
                          const tg_target *target, const tg_shape_class *shape, tg_compile_options *how,
                          tg_program **program, const tg_sink *sink);
tg_status set_compile(const struct context *context, const tg_variant *variant, const tg_set_part *parts, uint32_t n,
                      tg_compile_options *how, tg_set **set, const tg_sink *sink);

/* ---- call.c: a launch with its device memory ---- */

/* Where the states of the sequences lie: more slots than sequences, in a random order. */
struct pool {
    int64_t *slot; /* [batch]; NULL: there is no pool */
    int64_t n_slots;
};

struct call {
    const struct machine *machine;
    const struct kernel *kernel;
    tg_sizes sizes;
    float scalars[TG_MAX_SCALARS];
    bool is_token_major;
    tg_tensor_arg args[TG_MAX_TENSORS];
    bool is_borrowed[TG_MAX_TENSORS]; /* the memory is another argument's */
    uint32_t n_args;
    struct pool pool;
    double tensor_bytes; /* of those that are there, each once */
    uint64_t workspace;
    uint64_t workspace_bytes;
};

/* Inputs are copied in; outputs are poisoned with NaN, so that what is never written shows. Pooled
 * states lie in slots chosen by the problem's seed, the final one where the initial one was. */
tg_status call_open(struct call *call, const struct machine *machine, const struct kernel *kernel,
                    const struct problem *problem, int64_t chunk, const tg_sink *sink);
/* The same with inputs made of a short random pattern: for timing, at any size. */
tg_status call_open_pattern(struct call *call, const struct machine *machine, const struct kernel *kernel,
                            const struct problem *problem, int64_t chunk, const tg_sink *sink);
tg_status call_run(struct call *call, const tg_sink *sink); /* launches and waits */
/* Another kernel of the same variant, or another chunk size, on the same tensors. */
tg_status call_rebind(struct call *call, const struct kernel *kernel, int64_t chunk, const tg_sink *sink);
/* Milliseconds, ascending, into times[runs]. */
tg_status call_time(struct call *call, uint32_t runs, bool flush, float *times, const tg_sink *sink);
/* The same of each kernel, into times[n_kernels][runs]. */
tg_status call_time_kernels(struct call *call, uint32_t runs, bool flush, float *times, const tg_sink *sink);
double median_of(const float *ascending, uint32_t n);
tg_status call_fetch(const struct call *call, struct problem *problem, const tg_sink *sink);
void call_close(struct call *call);

/* ---- oracle.c: the fp64 truth, and how far from it is allowed ---- */

/* Outputs in fp64, by tile; free with truth_free. */
struct truth {
    double *out[256];
};
/* By the variant's oracle, else by its statements. */
bool truth_compute(struct context *context, const struct problem *problem, struct truth *truth);
/* By the statements, in chunks of so many tokens. */
bool truth_interpret(struct context *context, const struct problem *problem, int64_t chunk, struct truth *truth);
void truth_free(struct truth *truth);

/* Error levels of a golden file, [rms, max] over rms(truth); 0 when not given. */
struct levels {
    double rms, max;
};
/* `is_paper`: of the gradients by the TFLA paper's convention. */
struct levels levels_of_file(const struct st_file *file, const struct host_tensor *tensor, tg_dtype io, bool is_paper);

struct verdict {
    const char *name; /* of the tensor */
    struct tensor_error error;
    double rms_limit, max_limit; /* on rms_ratio and max_ratio */
    bool ok;
    const char *against; /* "file", "oracle" or "statements" */
};
/* How much further off than with one chain of products the variant's results are; 1 for most. */
double chain_slack(const struct problem *problem);
struct verdict judge(const struct problem *problem, const struct host_tensor *tensor, struct num_const_array reference,
                     struct levels levels);
/* Compares every output with the oracle's; the worst verdict. */
struct verdict judge_all(const struct problem *problem, const struct truth *truth);

/* ---- rounding.c: what roundings of the inputs do to the outputs ---- */

/* Mean squares of it, of so many samples, element by element, of every output; free with truth_free. `chunk`: the truth
 * is that of the statements, which read all inputs; 0: that of truth_compute. */
bool truth_deviation(struct context *context, const struct problem *problem, int64_t chunk, const struct truth *truth,
                     uint32_t times, struct truth *square);
/* A tensor of so few numbers that what its parts are worth must be known before it is called wrong; then it is
 * judged again with that, and with the truth. */
bool verdict_is_of_few(const struct verdict *verdict, const struct host_tensor *tensor);
void judge_few(struct num_const_array reference, const double *square, struct verdict *verdict);

/* ---- facts.c: what is known of a compiled kernel ---- */

void kernel_facts(const tg_kernel *kernel, struct text *text);
json_t *kernel_json(const tg_kernel *kernel);

/* ---- the commands, one a file ---- */

int command_devices(struct context *context);
int command_variants(struct context *context);
int command_explain(struct context *context);
int command_compile(struct context *context);
int command_check(struct context *context);
int command_run(struct context *context);
int command_tune(struct context *context);
int command_bench(struct context *context);
int command_study(struct context *context);

#endif
