/* cli/bench.h - what the files of `tegula bench` share. */
#ifndef TEGULA_CLI_BENCH_H
#define TEGULA_CLI_BENCH_H

#include "cli.h"

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
bool bench_time(struct bench *bench, const tg_variant *variant, const struct shape *shape, struct wish wish,
                struct timing *forward, struct timing *backward);
/* The wish of the i-th --schedule, or for i = 0 of none; past the last false. */
bool bench_wish(const struct bench *bench, uint32_t i, struct wish *wish);

/* ---- bench_show.c ---- */

/* A row of the table, or a line of JSON, which then says `figure` unless that is NULL. */
void bench_show(const struct bench *bench, const struct shape *shape, const struct timing *forward,
                const struct timing *backward, const char *figure);
/* What the columns of rows are, unless there is JSON. */
void bench_head(const struct bench *bench);
json_t *bench_json(const struct bench *bench, const struct shape *shape, const struct timing *timing);

/* ---- bench_roofline.c, bench_paper.c ---- */

void bench_roofline(struct bench *bench, const tg_variant *variant);
void bench_paper(struct bench *bench, const tg_variant *variant);

/* ---- plot.c: a figure, drawn by gnuplot ---- */

enum { MAX_SERIES = 16 };

struct plot {
    struct text data; /* a block of lines for each series: $s0, $s1, ... */
    char titles[MAX_SERIES][SCHEDULE_TEXT + 64];
    uint32_t n_series;
};

/* Points belong to the series begun last. */
void plot_series(struct plot *plot, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of numbers, or of words without blanks. */
void plot_point(struct plot *plot, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Goes on with a command "plot ...": each series, drawn as `how` says. */
void plot_curves(const struct plot *plot, const tg_writer *commands, const char *how, const char *what);
/* Writes the SVG file; without gnuplot on PATH, the script that makes it, and says so. An exit
 * code.
 */
int plot_draw(struct context *context, const struct plot *plot, const char *commands);
void plot_free(struct plot *plot);

#endif
