/* cli/plot.h - a figure, drawn by gnuplot (plot.c). */
#ifndef TEGULA_CLI_PLOT_H
#define TEGULA_CLI_PLOT_H

#include "cli.h"

enum { MAX_SERIES = 16 };

struct plot {
    struct text data; /* a block of lines for each series: $s0, $s1, ... */
    char titles[MAX_SERIES][TG_SCHEDULE_TEXT + 64];
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
/* Can --svg, if it is given, be written? Complains if not; asked before anything is measured. */
bool plot_is_possible(struct context *context);
int plot_draw(struct context *context, const struct plot *plot, const char *commands);
void plot_free(struct plot *plot);

#endif
