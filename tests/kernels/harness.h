/* tests/kernels/harness.h - from a line of cases.def or family.def to outputs on the host.
 *
 * The device, the compiler, the oracle and the judgement are the command's own (cli/); what is
 * here is what a test needs beyond them: strides, guards around every allocation, gate regimes. */
#ifndef TEGULA_TESTS_HARNESS_H
#define TEGULA_TESTS_HARNESS_H

#include "cli/cli.h"
#include "tap.h"
#include "variants/variants.h"

enum layout {
    HEADS,  /* [B, NH, T, d], contiguous: strides left out */
    TOKENS, /* [B, T, NH, d] */
    PADDED, /* unused elements between rows, heads and sequences; gates not next to each other */
    SHARED, /* k is one for all heads: stride 0 */
};

/* What the gates of a call are, by name of the tensor: inputs.c. */
enum gates {
    ORDINARY, /* N(0,1); the forget gate's bias is 0, 3 or 6, by head, and decays are of such gates
               */
    DECAY,    /* forgets almost all at every token: bias -8 */
    UNEVEN,   /* every third head, from the second on, forgets almost all at 64 tokens of 128; all else is ordinary */
    EXTREME,  /* +30 or -30, each sign at random; log decays 0 or -30 */
    OPEN,     /* all +30: nothing is forgotten, everything let in; log decays 0 */
    CLOSED,   /* all -30 */
    MASKED,   /* ordinary, but at one token in five a gate is -inf or float's least number */
    CROSSING, /* much let in, little forgotten: q.n crosses zero far above the normaliser's floor */
};

/* One call, or a forward and the backward that goes with it. Zero is the ordinary case. */
struct spec {
    const char *name;
    const char *variant;   /* NULL: mlstm-sig */
    const tg_variant *own; /* instead of a built-in one */
    tg_dtype io;
    int64_t batch, heads, tokens, dqk, dhv;
    int64_t chunk;        /* 0: the schedule's */
    const char *schedule; /* "tfla-small H.Lhq=64"; "" or NULL: the default of the target */
    const char *backward; /* the backward's; NULL: it is not run */
    enum gates gates;
    bool has_s0;         /* initial states */
    bool no_final;       /* final states are not asked for, and no gradient arrives for them */
    bool zero_states;    /* states and their gradients are zeros */
    const char *without; /* an optional input that is left out all the same */
    enum layout layout;
    double scale;        /* 0: the variant's own */
    int64_t group;       /* heads that share q and k; 0: 1 */
    const char *cuts;    /* "0 5 5 40": packed sequences; they say batch and tokens */
    bool is_wide;        /* cu and index are int64 */
    bool is_pooled;      /* states in slots of a pool, the final one where the initial one is */
    const char *scalars; /* "eps=0.01 exact=0" */
};
/* What lines of all lists of specs have: types and sizes. */
#define SPEC_SIZES(io_, b, nh, t, dqk_, dhv_)                                                                          \
    .io = TG_##io_, .batch = b, .heads = nh, .tokens = t, .dqk = dqk_, .dhv = dhv_

/* Everything that a spec needs in the compiler, and the tensors of the call. */
struct trial {
    const struct spec *spec;
    struct kernel kernel; /* the harness's, who frees it */
    tg_problem problem;
    int64_t chunk;
    enum layout layout;
    bool without_final; /* do not ask for final states */
    int64_t *slot;      /* of a pool: slots of the sequences, then those of none; else NULL */
    int64_t n_slots;
};

struct trial_call; /* launch.c */

extern struct context machine_context;

/* "emu" or a GPU number. `arch`: the GPU that the emulator is; NULL: as it comes. */
bool harness_open(const char *device, const char *arch);
/* On the emulator: whether code is written down as it stands (tests/plain/plain.h), as it is at first, or all of it by LLVM. */
void harness_plainly(bool is);
void harness_close(void);
bool on_emulator(void);
/* Order of warps and asynchronous copies; nothing on a GPU. */
void emulator_seed(uint64_t seed);
/* How many of a launch run at once: no outputs depend on it; nothing on a GPU. */
void emulator_threads(int n);
/* After a fault, which ends a context: a new one. */
void emulator_reset(void);
/* What sinks received since the last trial_run or log_clear. */
extern const tg_sink log_sink;
const char *log_text(void);
void log_clear(void);

/* Compiled, or loaded, once for all who want it; the harness's, who frees it. False after messages in the log. */
bool harness_load(const tg_variant *variant, const tg_schedule *schedule, const tg_shape_class *class,
                  struct kernel *kernel);

const tg_variant *spec_variant(const struct spec *spec);
bool spec_has_schedule(const struct spec *spec, const char *name);
bool spec_has_one_chunk(const struct spec *spec); /* the schedule's alone is its chunk size */
/* Would the compiler take it, both ways, with states as `states` has them (NULL: as declared)? Nothing is expected
 * of it. */
bool spec_is_accepted(const struct spec *spec, const tg_shape_class *states);
/* Makes the class one of programs whose states are like those of `states`. */
void take_states(tg_shape_class *class, const tg_shape_class *states);
/* Compiles, loads and fills the inputs; false after a failed expectation, or when the GPU is not
 * the one that the schedule is for: the test is skipped. The spec must live as long as the trial. */
bool trial_open(struct trial *trial, const struct spec *spec);
/* The backward of a forward that has run: the same inputs, what it computed, and random gradients.
 */
bool trial_open_backward(struct trial *trial, const struct trial *forward);
void trial_close(struct trial *trial);
/* Runs on fresh memory; outputs go to the problem. Expects guards and paddings untouched. Messages
 * of a failure are in log_text. */
tg_status trial_run(struct trial *trial);
/* In steps: memory of a call, its inputs in it (NULL, with a status and messages, where there is none); launches, over memory as
 * it was behind trial_begin, and outputs; the end of that memory. */
tg_status trial_begin(struct trial *trial, struct trial_call **call);
tg_status trial_go(struct trial_call *call, const tg_module *module);
void trial_end(struct trial_call *call); /* or NULL */
/* trial_run, expecting success. */
bool trial_runs(struct trial *trial);

/* Runs the spec, and its backward if it names one, and judges the outputs (family.c). */
void try_both_ways(const struct spec *spec, uint64_t seed);

/* ---- inputs.c ---- */

/* Fills the inputs that the spec has and no forward gives. */
bool fill_inputs(tg_problem *problem, const struct spec *spec);

/* A copy of a tensor's bytes, to compare with later; the caller frees it. */
void *tensor_copy(tg_problem *problem, const char *name);
/* Takes an optional input away. */
void tensor_drop(tg_problem *problem, const char *name);

/* ---- judge.c ---- */

/* Compares all outputs with the oracle, as a whole and head by head; says what is wrong. */
bool outputs_right(tg_problem *problem);
/* From now on what is not is judged once more, by roundings of all that the statements make, as `tegula check` does: for random
 * calls, whose gradients may be 1e-12 of their parts. Slow. */
void outputs_ask_statements(void);
/* The same with the oracle's outputs at hand. Not told: stops at what is beyond the plain limits.
 */
bool outputs_match(tg_problem *problem, const tg_truth *truth, bool is_told);

/* A declaration of one schedule, with a sequence; the spec says how long it is, and its heads and widths. */
void try_declared(const tg_algorithm *algorithm, const tg_schedule *schedule, struct spec spec);
/* It is refused on sm_90a, with that code and that piece of a message. */
void expect_refused(const tg_schedule *schedule, const char *code, const char *fragment);

#endif
