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
#include "runtime/runtime.h"
#include "tuning/tuning.h"
#include "safetensors.h"

enum exit_code {
    CODE_OK = 0,
    CODE_FAILED = 1, /* a check failed, or the driver or the compiler did */
    CODE_USAGE = 2,  /* arguments, files, shapes, declarations: something the user can mend */
};

struct context;
struct progress;

/* ---- options.c ---- */

enum { MAX_SHAPES = 15, MAX_SCHEDULES = 8, MAX_SETTINGS = 8 };

/* --set NAME=VALUE */
struct setting {
    char name[16];
    double value;
};

struct options {
    const char *device, *arch, *dtype, *schedule, *stage, *input, *output, *name, *gpu;
    const char *cache, *wisdom, *load, *ptxas, *layout, *file_layout, *backward_schedule, *paper, *svg, *states;
    const char *schedules[MAX_SCHEDULES]; /* `schedule` is the last of them */
    uint32_t n_schedules;
    tg_shape shapes[MAX_SHAPES];
    uint32_t n_shapes;
    struct setting settings[MAX_SETTINGS];
    uint32_t n_settings;
    tg_cuts cuts;
    int64_t dqk, dhv, chunk, seed, runs, keep, group, tokens; /* 0: not given */
    double scale, budget_seconds, eps;                        /* 0: not given */
    bool json, time, flush, no_cache, no_wisdom, help;
    bool grad, keep_states, packed, pool, count, int64, roofline;
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
    OPT_STATES,
    OPT_COUNT,
    OPT_INT64,
    OPT_TOKENS,
    OPT_GRAD,
    OPT_KEEP_STATES,
    OPT_BACKWARD_SCHEDULE,
    OPT_LAYOUT,
    OPT_FILE_LAYOUT,
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
/* What --group, --packed, --cu, --pool, --states and --tokens say of a shape that --shape gives. False
 * after a message. */
bool options_shape(struct context *context, tg_shape *shape);
/* What --states says of a call's: their type and order. */
bool options_states_of(struct context *context, tg_shape *shape);
/* All that it says of what is compiled, and --count. */
bool options_states(struct context *context, tg_shape_class *shape);
void options_print_help(const struct command *command, FILE *to);
bool dtype_parse(struct context *context, const char *text, tg_dtype *dtype);
/* The name in the NULL-terminated list that `wrong` was probably meant to be; NULL if none is near.
 */
const char *nearest_name(const char *wrong, const char *const *names);

/* ---- context.c ---- */

/* The making of the driver's context, by a thread of its own. */
struct waking {
    pthread_t thread;
    bool is_running, is_ready;
    int n_held; /* times the context is acquired */
};

enum { MOST_TOLD = 64 };

struct context {
    const struct command *command;
    struct options options;
    tg_sink sink;       /* prints to stderr and, with --json, also collects into `errors` */
    json_t *errors;     /* array; NULL without --json */
    tg_machine machine; /* no driver: not opened */
    struct waking waking;
    void *plugin;                             /* dlopen handle of --load */
    void *emulator;                           /* dlopen handle, to configure it */
    const tg_variant *const *plugin_variants; /* of --load, and what they are added to */
    struct joined *joined;                    /* join.c; malloc'ed */
    double process_start;                     /* seconds on the clock of `now` */
    char cache[4096], wisdom[4096], ptxas[4096];
    struct progress *progress; /* NULL: nothing that may take long is going on */
    bool is_cache_warned;
    uint64_t told[MOST_TOLD]; /* hashes of messages about places in files */
    uint32_t n_told;
};

void context_init(struct context *context);
void context_close(struct context *context);

/* A mistake of the user's, or of the file's: what is wrong, and what to do about it. */
void complain(struct context *context, const char *hint, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A remark on stderr that is no error. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Drops every message: for candidates that may be refused. */
extern const tg_sink silent_sink;
/* Keeps in `user`, a text of DRIVER_REASON bytes that begins empty, the first message of a driver's call that failed. */
enum { DRIVER_REASON = 256 };
void keep_driver_reason(void *user, const tg_diag *diag);
int code_of_status(tg_status status);

/* Opens what --device names; without it GPU 0, or the emulator when there is no GPU. Between its
 * two halves the driver makes the context, which takes it as long as we take to compile. */
bool machine_open(struct context *context);
bool machine_begin(struct context *context); /* after it the device and the target are known */
bool machine_ready(struct context *context);
/* Where libtegula-emu.so.1 lies beside this executable. */
void emulator_path(char *path, size_t size) __attribute__((nonnull));
double now(void); /* seconds, monotonic */

/* ---- target.c ---- */

/* False after a message: there is no such architecture. */
bool target_of_arch(struct context *context, const char *arch, const tg_target **target);
/* That of --gpu, of which numbers are known. NULL after a message. */
const tg_target *target_of_gpu(struct context *context);
/* That of --gpu or --arch, else the GPU's, else the oldest. Opens nothing that stays open. NULL after a message. */
const tg_target *target_wanted(struct context *context);
/* The same of an --arch that names several, "sm_80,sm_90a", each once. False after a message. */
enum { MAX_TARGETS = 8 };
bool targets_wanted(struct context *context, const tg_target *targets[MAX_TARGETS], uint32_t *n);
/* What a GPU that is there is, to the compiler and the cost model; NULL: too old. */
const tg_target *target_of_device(const tg_device *device);

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

/* ---- wrap.c: nothing that a terminal shows is wider than it, or than 100 columns ---- */

/* Words, from that column on; the lines that continue it begin there too. Ends the line. */
void print_list(FILE *to, int column, const char *text);
/* On standard error. */
void print_message(const char *text);
/* From now on on standard output, unless it is no terminal. Not for JSON, nor for code. */
void wrap_output(void);

/* ---- find.c: variants and schedules by name ---- */

bool plugin_load(struct context *context);
/* Sets context->plugin_variants to these, and to the built-in ones that some of them add schedules to. */
bool plugin_join(struct context *context, const tg_variant *const *loaded);
/* Built-in or loaded, by name or alias; NULL after a message that names the nearest. */
const tg_variant *variant_by_name(struct context *context, const char *name);
const tg_variant *variant_lookup(const struct context *context, const char *name); /* no message */
/* The variant whose gradients this one computes; NULL if none. */
const tg_variant *variant_forward(const struct context *context, const tg_variant *variant);
/* Calls back for every variant: built in, then loaded. */
void variants_each(const struct context *context, void (*visit)(void *user, const tg_variant *variant), void *user);

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
                     const tg_shape_class *shape, const tg_shape *sizes, struct wish wish, struct choice *choice);
/* "tfla chunk=128 H.Lhq=64": an optional schedule name and changes to it. Without a name it is the
 * default of these sizes. */
bool schedule_from_text(struct context *context, const tg_variant *variant, const tg_target *target,
                        const tg_shape_class *shape, const tg_shape *sizes, const char *text, tg_schedule *schedule);
bool shape_class_check(struct context *context, const tg_shape_class *shape);
/* From --dtype, and --dqk and --dhv or one --shape, else bf16, 128 and 256; --group and the like. `sizes`: the calls that
 * a schedule is for, those of --shape or usual ones. */
bool shape_class_wanted(struct context *context, tg_shape_class *shape, tg_shape *sizes);
/* The shapes of every --shape, else one of the widths of --dqk and --dhv without sizes; with --group and the like. */
bool shapes_wanted(struct context *context, tg_shape shapes[MAX_SHAPES], uint32_t *n);

/* ---- wisdom.c: what tuning has found ---- */

/* The user's own; "" where there is no place for it. */
const char *wisdom_path(const struct context *context);
/* What is known of this GPU and these sizes, if it takes the chunk (0: any), and where from: the
 * user's own wisdom, else what is shipped. */
bool schedule_remembered(struct context *context, const tg_variant *variant, const tg_target *target,
                         const tg_shape_class *shape, const tg_shape *sizes, int64_t chunk, struct choice *choice);

/* What is known of these sizes on a GPU of the target's capability, which need not be here: of --wisdom when that is
 * given, else what is shipped. */
bool schedule_measured(struct context *context, const tg_variant *variant, const tg_target *target,
                       const tg_shape_class *shape, const tg_shape *sizes, int64_t chunk, struct choice *choice);

/* ---- parts.c: what a set of programs is made of ---- */

enum { MAX_CHOSEN = 128 };

/* What was chosen for what. */
struct chosen {
    uint32_t part, program; /* of the set's parts, and of the part's schedules */
    bool is_default;        /* for no sizes of its own */
    tg_shape sizes;
    char schedule[TG_SCHEDULE_TEXT], origin[64];
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

/* ---- layout.c ---- */

/* False after a message. NULL: the default. */
bool layout_is_known(struct context *context, const char *layout);
/* In the files of this command the tensor's tokens go before its heads. */
bool is_turned_in_files(const struct context *context, const tg_host_tensor *tensor);
/* Copies such a tensor, of elements of so many bytes, between a file's order and ours. */
void layout_turn(const tg_host_tensor *tensor, size_t element, const void *from, void *to, bool is_from_file);

/* ---- problem.c: problems as the options say; all but the first false after a message ---- */

/* The tensor's name in a file: in.q, out.h; of a backward also dout.h and grad.q. */
void tensor_file_name(const tg_host_tensor *tensor, char full[64]);
/* {"B": 1, ...}, with "group", "packed", "pooled", "states" and "values_first" where they are not as usual. */
json_t *shape_json(const tg_shape *shape);
/* --set, --scale, --layout and --int64. */
bool problem_options(struct context *context, tg_problem *problem);
/* Complains of a scalar that the variant does not have, found `where`. */
bool problem_unknown_scalar(struct context *context, const tg_problem *problem, const char *where, const char *name);
/* As tg_problem_random with --cu and those, and the others of its kind. */
bool problem_random(struct context *context, const tg_variant *variant, const tg_shape *shape, tg_dtype io,
                    uint64_t seed, tg_problem *problem);
bool problem_layout(struct context *context, const tg_variant *variant, const tg_shape *shape, tg_dtype io,
                    tg_problem *problem);
bool problem_declare(struct context *context, const tg_variant *variant, tg_dtype io, tg_problem *problem);
/* As tg_truth_compute, tg_truth_deviation and tg_deviation_know, with progress. */
bool truth_compute(struct context *context, const tg_problem *problem, int64_t chunk, tg_truth *truth);
bool truth_deviation(struct context *context, const tg_problem *problem, int64_t chunk, const tg_truth *truth,
                     uint32_t samples, tg_truth *square);
bool know_deviation(struct context *context, const tg_problem *problem, int64_t chunk, uint32_t samples,
                    tg_deviation *deviation);

/* ---- problem_file.c ---- */

/* How a file says it. */
struct file_notes {
    bool is_rounded;  /* --dtype changed some input: what the file says of outputs no longer holds */
    bool is_prefixed; /* in.q, not q */
};

/* Reads and checks; all mistakes of the file are reported. What a forward computes for the backward
 * need not be there when `is_fed`. */
bool problem_read(struct context *context, const tg_variant *variant, const struct st_file *file, const char *path,
                  bool is_fed, tg_problem *problem, struct file_notes *notes);
/* One number where the tensor has one a head: it stands for all of them. */
bool is_for_all_heads(const tg_host_tensor *tensor, const struct st_tensor *found);
const struct st_tensor *tensor_in_file(const struct st_file *file, const tg_host_tensor *tensor);

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

/* ---- facts.c: what is known of a compiled kernel ---- */

void kernel_facts(const tg_kernel *kernel, struct text *text);
/* Tensors, with the axes that strides are given for: the same in all programs of a set. */
json_t *signature_json(const tg_program *program);
/* What they are by default. */
json_t *scalars_json(const tg_program *program);
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
