/* cli/tune.h - what the three files of `tegula tune` share. */
#ifndef TEGULA_CLI_TUNE_H
#define TEGULA_CLI_TUNE_H

#include "cli.h"

enum { MAX_CANDIDATES = 256, MAX_TRUTHS = 8, MAX_READY = 16 };

enum candidate_state { TIMED, PREDICTED, NOT_BUILT, WRONG, NOT_TIMED };

struct candidate {
    tg_schedule schedule;
    char text[SCHEDULE_TEXT]; /* "tfla chunk=256 H.Lhq=64": what --schedule takes */
    enum candidate_state state;
    bool is_sweep; /* of the first sweep, over chunk sizes alone */
    tg_cost cost;
    double milliseconds; /* the median, or the model's */
    double workspace;    /* bytes */
    tg_verdict verdict;
};

/* A small problem of the same widths, and what it should give. */
struct reference_case {
    tg_problem problem;
    tg_truth truth;
};

/* Code that is compiled and waits for its turn. */
struct ready {
    char text[SCHEDULE_TEXT]; /* of the schedule without its chunk size; empty: taken */
    tg_schedule schedule;
    tg_program *program; /* NULL: could not be compiled, or taken */
};

struct tuner {
    struct context *context;
    const tg_variant *variant;
    const tg_target *target;
    tg_shape shape;
    tg_shape_class class;
    bool is_prediction;
    double deadline; /* on the clock of `now` */
    struct candidate *candidates;
    uint32_t n_candidates;
    const struct candidate *best;
    struct candidate *untuned; /* what a call would get without tuning; NULL: it is not known */

    /* tune_try.c */
    tg_problem timed; /* the full shape; no data on the host */
    tg_call call;
    bool is_call_open;
    struct kernel kernel; /* of the last candidate: other chunk sizes run the same code */
    char kernel_text[SCHEDULE_TEXT];
    struct ready ready[MAX_READY];
    uint32_t n_ready;
    struct reference_case cases[MAX_TRUTHS];
    uint32_t n_cases;
};

/* ---- tune_try.c: one candidate - built, verified, timed ---- */

/* Adds the candidate, or finds it; NULL when there is no room. */
struct candidate *tuner_try(struct tuner *tuner, const tg_schedule *schedule);
bool tuner_has(struct tuner *tuner, const tg_schedule *schedule);
/* Times it again, with more runs, for the final choice. */
bool tuner_time_again(struct tuner *tuner, struct candidate *candidate, uint32_t runs);
void tuner_free(struct tuner *tuner);

/* ---- tune_build.c ---- */

/* Compiles what these schedules need, at once; tuner_kernel then finds it ready. */
void tuner_prepare(struct tuner *tuner, const tg_schedule *const *schedules, uint32_t n);
/* Makes tuner->kernel run this schedule. */
bool tuner_kernel(struct tuner *tuner, const tg_schedule *schedule);
/* Leaves the schedule's code in the cache on disk. */
void tuner_keep_kernel(struct tuner *tuner, const tg_schedule *schedule);
void tuner_forget_kernels(struct tuner *tuner);

/* ---- tune_show.c ---- */

void tuner_print(const struct tuner *tuner);
json_t *tuner_json(const struct tuner *tuner);

#endif
