/* tests/kernels/harness.h - from a line of cases.def to outputs on the host.
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

enum gates {
    ORDINARY, /* N(0,1); the forget gate's bias is 0, 3 or 6, by head */
    DECAY,    /* forgets almost all at every token: bias -8 */
    EXTREME,  /* +30 or -30, each sign at random */
    OPEN,     /* all +30: nothing is forgotten, everything let in */
    CLOSED,   /* all -30 */
};

struct spec {
    const char *name;
    tg_dtype io;
    int64_t batch, heads, tokens, dqk, dhv;
    int64_t chunk;        /* 0: the schedule's */
    const char *schedule; /* "tfla-small H.Lhq=64"; "": the default of the target */
    enum gates gates;
    bool has_s0;
    enum layout layout;
    double scale; /* 0: 1/sqrt(dqk) */
};

/* Everything that a spec needs in the compiler, and the tensors of the call. */
struct trial {
    struct kernel kernel;
    struct problem problem;
    int64_t chunk;
    enum layout layout;
    bool without_final; /* do not ask for S */
};

extern struct context machine_context;

/* "emu" or a GPU number. */
bool harness_open(const char *device);
void harness_close(void);
bool on_emulator(void);
/* Order of warps and asynchronous copies; nothing on a GPU. */
void emulator_seed(uint64_t seed);
/* After a fault, which ends a context: a new one. */
void emulator_reset(void);
/* What sinks received since the last trial_run or log_clear. */
extern const tg_sink log_sink;
const char *log_text(void);
void log_clear(void);

/* Compiles, loads and fills the inputs; false after a failed expectation. */
bool trial_open(struct trial *trial, const struct spec *spec);
void trial_close(struct trial *trial);
bool trial_inputs(struct problem *problem, const struct spec *spec);
/* Runs on fresh memory; outputs go to the problem. Expects guards and paddings untouched. Messages
 * of a failure are in log_text. */
tg_status trial_run(struct trial *trial);
/* The same, expecting success. */
bool trial_runs(struct trial *trial);

struct host_tensor *tensor_of(struct problem *problem, const char *name);
/* A copy of a tensor's bytes, to compare with later; the caller frees it. */
void *tensor_copy(struct problem *problem, const char *name);
/* Takes an optional input away. */
void tensor_drop(struct problem *problem, const char *name);

/* Compares all outputs with the oracle, as a whole and head by head. `strictness` 1 for tests. */
bool outputs_right(struct problem *problem, bool is_told);

#endif
