/* cli/study.h - what the files of `tegula study` share. */
#ifndef TEGULA_CLI_STUDY_H
#define TEGULA_CLI_STUDY_H

#include "plot.h"

/* The gates' pre-activations, as far apart as 1 (appendix D.2 of the TFLA paper). */
enum { FORGET_LEAST = -5, FORGET_MOST = 12, INPUT_LEAST = -12, INPUT_MOST = 8 };
enum { N_FORGETS = FORGET_MOST - FORGET_LEAST + 1, N_INPUTS = INPUT_MOST - INPUT_LEAST + 1 };

enum { BEFORE, AFTER, N_STAGES };  /* the norm */
enum { TRUTH, KERNEL, N_SOURCES }; /* the fp64 recurrence, the kernels */
enum { MOST_VARIANTS = MAX_SERIES / N_STAGES };

/* The gains of a variant. */
struct transfer {
    const tg_variant *variant;
    struct choice choice;
    double gain[N_STAGES][N_SOURCES][N_INPUTS][N_FORGETS];
};

struct study {
    struct context *context;
    tg_dtype io;
    double eps;
    tg_shape shape;         /* of a sweep: a head for each value of f */
    const tg_variant *norm; /* without weights */
    struct transfer transfers[MOST_VARIANTS];
    uint32_t n_transfers;
};

/* ---- study_show.c ---- */

/* How far the kernels' gains are off, as a part of the truth, at most. */
double transfer_deviation(const struct transfer *transfer, int stage);
/* Tables, or a line of JSON. */
void study_show(const struct study *study);
/* An exit code. */
int study_draw(const struct study *study);

#endif
