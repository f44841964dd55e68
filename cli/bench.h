/* cli/bench.h - what the files of `tegula bench` share. */
#ifndef TEGULA_CLI_BENCH_H
#define TEGULA_CLI_BENCH_H

#include "cli.h"
#include "plot.h"

struct bench {
    struct context *context;
    tg_dtype io;
    uint32_t runs;
    float *times; /* [runs], by kernel [TG_MAX_KERNELS][runs]: milliseconds, ascending */
    bool with_gradients, by_kernel;
    int code; /* the worst so far */
};

/* One program, timed. */
struct timing {
    const tg_variant *variant; /* NULL: there is none */
    struct choice choice;
    double median, least, most; /* milliseconds */
    tg_cost cost;
    double workspace, tensors; /* bytes; the latter of all inputs and outputs, each once */
    uint32_t n_kernels;        /* 0 unless they were timed one by one */
    struct {
        double median;
        tg_cost cost;
    } kernels[TG_MAX_KERNELS];
};

/* ---- bench_time.c ---- */

/* The forward and, where gradients are wanted and there are any, the backward; else the latter's
 * variant is NULL. False after a message; the worst exit code is kept. */
bool bench_time(struct bench *bench, const tg_variant *variant, const tg_shape *shape, struct wish wish,
                struct timing *forward, struct timing *backward);
/* The wish of the i-th --schedule, or for i = 0 of none; past the last false. */
bool bench_wish(const struct bench *bench, uint32_t i, struct wish *wish);

/* ---- bench_show.c ---- */

/* A row of the table, or a line of JSON, which then says `figure` unless that is NULL. */
void bench_show(const struct bench *bench, const tg_shape *shape, const struct timing *forward,
                const struct timing *backward, const char *figure);
/* What the columns of rows are, unless there is JSON. */
void bench_head(const struct bench *bench);
json_t *bench_json(const struct bench *bench, const tg_shape *shape, const struct timing *timing);

/* ---- bench_roofline.c, bench_paper.c ---- */

void bench_roofline(struct bench *bench, const tg_variant *variant);
void bench_paper(struct bench *bench, const tg_variant *variant);

#endif
