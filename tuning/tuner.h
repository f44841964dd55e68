/* tuning/tuner.h - what the files of tg_tune share. */
#ifndef TEGULA_TUNER_H
#define TEGULA_TUNER_H

#include "tuning/tuning.h"

enum { MAX_TRUTHS = 8, MAX_READY = 16 };

/* A small problem of the same widths, and what it should give. */
struct reference_case {
    tg_problem problem;
    tg_truth truth;
};

/* Code that is compiled and waits for its turn. */
struct ready {
    char text[TG_SCHEDULE_TEXT]; /* of the schedule without its chunk size; empty: taken */
    tg_schedule schedule;
    tg_program *program; /* NULL: could not be compiled, or taken */
    char reason[TG_REASON];
};

struct tuner {
    const tg_tune_request *request;
    const tg_sink *sink;
    tg_tuning *tuning; /* the candidates, of which there is room for TG_MAX_CANDIDATES */
    const tg_variant *variant, *forward;
    const tg_target *target;
    tg_shape shape;
    tg_shape_class class;
    bool is_prediction;
    double deadline; /* on the clock of tuner_now */

    /* tune_try.c */
    tg_problem timed; /* the full shape; no data on the host */
    tg_call call;
    bool is_call_open;
    struct reference_case cases[MAX_TRUTHS];
    uint32_t n_cases;

    /* tune_build.c */
    tg_program *program; /* of the last candidate: other chunk sizes run the same code */
    tg_module *module;
    char program_text[TG_SCHEDULE_TEXT];
    struct ready ready[MAX_READY];
    uint32_t n_ready;
};

/* ---- tune_search.c: which candidates ---- */

/* Tries them; TG_OK unless there is nothing to try. */
tg_status tuner_search(struct tuner *tuner);

/* ---- tune_try.c: one candidate - built, verified, timed ---- */

/* Seconds, monotonic. */
double tuner_now(void);
/* Adds the candidate, or finds it; NULL when there is no room, or somebody has cancelled. */
tg_candidate *tuner_try(struct tuner *tuner, const tg_schedule *schedule);
bool tuner_has(const struct tuner *tuner, const tg_schedule *schedule);
/* Times it again, with more runs, for the final choice. */
bool tuner_time_again(struct tuner *tuner, tg_candidate *candidate, uint32_t runs);
void tuner_free(struct tuner *tuner);
/* Keeps the first error in char[TG_REASON]. */
tg_sink reason_sink(char *reason);

/* ---- tune_build.c ---- */

/* Compiles what these schedules need, at once; tuner_load then finds it ready. */
void tuner_prepare(struct tuner *tuner, const tg_schedule *const *schedules, uint32_t n);
/* Makes tuner->module run this schedule; `reason` says why not. */
bool tuner_load(struct tuner *tuner, const tg_schedule *schedule, char reason[TG_REASON]);
void tuner_forget_programs(struct tuner *tuner);

#endif
