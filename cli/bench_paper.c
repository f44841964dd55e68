/* cli/bench_paper.c - `tegula bench --paper`: figures 5 and 6 of the TFLA paper (arXiv 2503.14376),
 * measured here. Figure 5: time over the sequence length at a constant number of tokens, forward
 * and with the backward. Figure 6: time and memory of both over the chunk size. */
#include "bench.h"

#include <math.h>
#include <string.h>

/* Section 5.2 and appendix E.3: embedding dimension 4096, 65,536 tokens, lengths from 512 up;
 * figure 6 with 8 heads of 512. */
static const tg_shape shape_5 = {.batch = 1, .heads = 16, .tokens = 65536, .dqk = 128, .dhv = 256};
static const tg_shape shape_6 = {.batch = 8, .heads = 8, .tokens = 8192, .dqk = 256, .dhv = 512};
enum { MOST_PARTS = 128, LEAST_TOKENS = 16, LEAST_CHUNK = 64, MOST_CHUNK = 4096 };

struct paper {
    struct bench *bench;
    const tg_variant *variant;
    tg_shape shape;
    struct plot plot;
};

static bool time_point(struct paper *paper, const tg_shape *shape, struct wish wish, double x, const char *figure)
{
    struct timing forward, backward;
    if (!bench_time(paper->bench, paper->variant, shape, wish, &forward, &backward))
        return false;
    bench_show(paper->bench, shape, &forward, &backward, figure);
    plot_point(&paper->plot, "%g %g %g %g", x, forward.median, forward.median + backward.median,
               fmax(forward.workspace, backward.workspace) / 0x1p20);
    return true;
}

/* ---- what is timed ---- */

/* The schedules of both programs before --chunk; one of no rows where there is no backward. */
static bool choose_both(const struct paper *paper, struct wish wish, struct choice choices[2])
{
    struct context *context = paper->bench->context;
    const tg_target *target = context->machine.target;
    const tg_shape_class class = tg_shape_class_of(&paper->shape, paper->bench->io);
    const tg_variant *backward = paper->variant->backward;
    choices[1].schedule.n_rows = 0;
    wish.chunk = 0;
    return schedule_choose(context, paper->variant, target, &class, &paper->shape, wish, &choices[0]) &&
           (!backward || schedule_choose(context, backward, target, &class, &paper->shape,
                                         (struct wish){context->options.backward_schedule, 0}, &choices[1]));
}

/* chunk 0: their own. */
static bool are_accepted(const struct paper *paper, const struct choice choices[2], int64_t chunk, const tg_sink *sink)
{
    const tg_shape_class class = tg_shape_class_of(&paper->shape, paper->bench->io);
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        tg_schedule schedule = choices[i].schedule;
        schedule.chunk = chunk ? (uint16_t)chunk : schedule.chunk;
        ok = ok && (!schedule.n_rows ||
                    tg_plan_check(&schedule, paper->bench->context->machine.target, &class, sink) == TG_OK);
    }
    return ok;
}

/* ---- figure 5 ---- */

static bool has_lengths(const struct paper *paper, struct wish wish, const struct choice choices[2])
{
    return are_accepted(paper, choices, wish.chunk, &paper->bench->context->sink);
}

static void time_lengths(struct paper *paper, struct wish wish)
{
    const int64_t all = paper->shape.batch * paper->shape.tokens;
    plot_series(&paper->plot, "%s", wish.schedule ? wish.schedule : paper->variant->name);
    for (int64_t part = MOST_PARTS; part >= 1; part /= 2) {
        tg_shape shape = paper->shape;
        if (all % part != 0 || all / part < LEAST_TOKENS)
            continue;
        shape.batch = part;
        shape.tokens = all / part;
        if (!time_point(paper, &shape, wish, (double)shape.tokens, "fig5"))
            return;
    }
}

static void draw_lengths(const struct paper *paper, const tg_writer *writer)
{
    const char *forward = "using 1:2 with linespoints", *both = "using 1:3 with linespoints";
    tg_printf(writer,
              "set multiplot layout 1,2 title '%s, %lld tokens, %lld heads of %lld / %lld'\n"
              "set logscale x 2\nset yrange [0:*]\nset key top left\nset xlabel 'T'\n"
              "set ylabel 'ms'\n",
              paper->bench->context->machine.device.name, (long long)(paper->shape.batch * paper->shape.tokens),
              (long long)paper->shape.heads, (long long)paper->shape.dqk, (long long)paper->shape.dhv);
    tg_printf(writer, "set title 'forward'\nplot NaN notitle");
    plot_curves(&paper->plot, writer, forward, "");
    tg_printf(writer, "\nset title 'forward and backward'\nplot NaN notitle");
    plot_curves(&paper->plot, writer, both, "");
}

/* ---- figure 6 ---- */

/* Beyond twice T a chunk only grows its padding. */
static int64_t most_chunk(const struct paper *paper)
{
    return paper->shape.tokens < MOST_CHUNK / 2 ? 2 * paper->shape.tokens - 1 : MOST_CHUNK;
}

static bool has_chunks(const struct paper *paper, struct wish wish, const struct choice choices[2])
{
    for (wish.chunk = LEAST_CHUNK; wish.chunk <= most_chunk(paper); wish.chunk *= 2)
        if (are_accepted(paper, choices, wish.chunk, &silent_sink))
            return true;
    complain(paper->bench->context, "give another --schedule, or a longer T",
             "%s: no chunk size from %d to %d is accepted for T = %lld", choices[0].schedule.name, LEAST_CHUNK,
             MOST_CHUNK, (long long)paper->shape.tokens);
    return false;
}

static void time_chunks(struct paper *paper, struct wish wish)
{
    struct choice choices[2];
    plot_series(&paper->plot, "%s", wish.schedule ? wish.schedule : paper->variant->name);
    if (!choose_both(paper, wish, choices))
        return;
    for (wish.chunk = LEAST_CHUNK; wish.chunk <= most_chunk(paper); wish.chunk *= 2)
        if (are_accepted(paper, choices, wish.chunk, &silent_sink) &&
            !time_point(paper, &paper->shape, wish, (double)wish.chunk, "fig6"))
            return;
}

static void draw_chunks(const struct paper *paper, const tg_writer *writer)
{
    tg_printf(writer,
              "set logscale x 2\nset yrange [0:*]\nset y2range [0:*]\nset y2tics\n"
              "set ytics nomirror\nset key top center\nset xlabel 'chunk size'\n"
              "set ylabel 'forward and backward, ms'\nset y2label 'workspace, MiB'\n"
              "set title '%s, B %lld, T %lld, %lld heads of %lld / %lld'\nplot NaN notitle",
              paper->bench->context->machine.device.name, (long long)paper->shape.batch, (long long)paper->shape.tokens,
              (long long)paper->shape.heads, (long long)paper->shape.dqk, (long long)paper->shape.dhv);
    plot_curves(&paper->plot, writer, "using 1:3 with linespoints pt 7", ": time");
    plot_curves(&paper->plot, writer, "using 1:4 axes x1y2 with linespoints pt 6 dt 2", ": workspace");
}

/* ---- either ---- */

struct figure {
    const char *name;
    const tg_shape *shape;
    bool (*has_points)(const struct paper *paper, struct wish wish, const struct choice choices[2]);
    void (*time)(struct paper *paper, struct wish wish);
    void (*draw)(const struct paper *paper, const tg_writer *writer);
};

static const struct figure figures[] = {
    {"fig5", &shape_5, has_lengths, time_lengths, draw_lengths},
    {"fig6", &shape_6, has_chunks, time_chunks, draw_chunks},
};
enum { N_FIGURES = sizeof figures / sizeof figures[0] };

static const struct figure *find_figure(struct context *context)
{
    for (int i = 0; i < N_FIGURES; i++)
        if (strcmp(figures[i].name, context->options.paper) == 0)
            return &figures[i];
    complain(context, "choose fig5 or fig6", "--paper: unknown figure '%s'", context->options.paper);
    return NULL;
}

static int draw(const struct paper *paper, const struct figure *figure)
{
    struct text commands = {0};
    const tg_writer writer = text_writer(&commands);
    figure->draw(paper, &writer);
    const int code = plot_draw(paper->bench->context, &paper->plot, text_of(&commands));
    text_free(&commands);
    return code;
}

/* Minutes are lost where the last schedule turns out to be none. */
static bool are_possible(const struct paper *paper, const struct figure *figure)
{
    struct choice choices[2];
    struct wish wish;
    bool ok = true;
    for (uint32_t i = 0; bench_wish(paper->bench, i, &wish); i++)
        ok = choose_both(paper, wish, choices) && figure->has_points(paper, wish, choices) && ok;
    return ok;
}

void bench_paper(struct bench *bench, const tg_variant *variant)
{
    struct context *context = bench->context;
    const struct options *options = &context->options;
    const struct figure *figure = find_figure(context);
    struct paper paper = {.bench = bench, .variant = variant};
    struct wish wish;
    bench->code = CODE_USAGE;
    if (!figure)
        return;
    paper.shape = options->n_shapes ? options->shapes[0] : *figure->shape;
    if (!options_shape(context, &paper.shape) || !are_possible(&paper, figure))
        return;
    bench->code = CODE_OK;
    bench_head(bench);
    for (uint32_t i = 0; bench->code == CODE_OK && bench_wish(bench, i, &wish); i++)
        figure->time(&paper, wish);
    if (options->svg && bench->code == CODE_OK)
        bench->code = draw(&paper, figure);
    plot_free(&paper.plot);
}
