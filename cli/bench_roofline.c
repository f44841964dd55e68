/* cli/bench_roofline.c - `tegula bench --roofline`: every kernel of a call beside its floor, the
 * longer of its bytes at the GPU's bandwidth and its matrix products at the matrix rate; then the
 * call beside the floor of the operation, which reads and writes every input and output once. */
#include "bench.h"

#include <math.h>

static const tg_shape usual = {.batch = 8, .heads = 16, .tokens = 8192, .dqk = 128, .dhv = 256};

struct roofline {
    struct bench *bench;
    const tg_target *target;
    struct plot plot;
};

static double floor_ms(const tg_cost *cost)
{
    return 1e3 * fmax(cost->memory_seconds, cost->matrix_seconds);
}

static const char *limit(const tg_cost *cost)
{
    return cost->matrix_seconds > cost->memory_seconds ? "matrix rate" : "memory";
}

/* Kernels come one after the other, so their floors add up, whatever limits each. */
static double floor_of_all(const struct timing *timing)
{
    double sum = 0;
    for (uint32_t i = 0; i < timing->n_kernels; i++)
        sum += floor_ms(&timing->kernels[i].cost);
    return sum;
}

static tg_cost operation_cost(const struct roofline *roofline, const struct timing *timing)
{
    return (tg_cost){.bytes = timing->tensors, .memory_seconds = timing->tensors / roofline->target->bandwidth};
}

/* ---- as JSON ---- */

static json_t *floor_json(const char *name, double ms, const tg_cost *cost)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:s}", "name", name, "median_ms", ms, "bytes", cost->bytes,
                     "flops", cost->flops, "floor_ms", floor_ms(cost), "of_floor", floor_ms(cost) / ms, "limit",
                     limit(cost));
}

static json_t *timing_json(const struct roofline *roofline, const tg_shape *shape, const struct timing *timing)
{
    json_t *json = bench_json(roofline->bench, shape, timing), *kernels = json_array();
    const tg_cost operation = operation_cost(roofline, timing);
    for (uint32_t i = 0; i < timing->n_kernels; i++)
        json_array_append_new(kernels, floor_json(timing->choice.schedule.rows[i].name, timing->kernels[i].median,
                                                  &timing->kernels[i].cost));
    json_object_set_new(json, "kernels", kernels);
    json_object_set_new(json, "floor_ms", json_real(floor_of_all(timing)));
    json_object_set_new(json, "operation", floor_json("operation", timing->median, &operation));
    json_object_set_new(json, "roofs",
                        json_pack("{s:s, s:f, s:f, s:f}", "gpu", roofline->target->gpu, "bytes_per_s",
                                  roofline->target->bandwidth, "flops_per_s", roofline->target->matrix_flops,
                                  "wgmma_flops_per_s", roofline->target->wgmma_flops));
    return json;
}

/* ---- as a table ---- */

static void print_line(const char *name, double ms, double floor, const tg_cost *cost)
{
    printf("  %-10s %9.4f  %9.4f  %9.2f  %8.1f  %9.4f  %6.1f %%", name, ms, cost->bytes / 1e9, cost->flops / 1e9,
           cost->flops / cost->bytes, floor, 100 * floor / ms);
}

static void print_kernels(const struct timing *timing)
{
    double sum = 0;
    printf("  %-10s %9s  %9s  %9s  %8s  %9s  %8s  limited by\n", "kernel", "ms", "GB", "GFLOP", "flop/B", "floor ms",
           "of floor");
    for (uint32_t i = 0; i < timing->n_kernels; i++) {
        const tg_cost *cost = &timing->kernels[i].cost;
        print_line(timing->choice.schedule.rows[i].name, timing->kernels[i].median, floor_ms(cost), cost);
        printf("  %s\n", limit(cost));
        sum += timing->kernels[i].median;
    }
    print_line("whole call", timing->median, floor_of_all(timing), &timing->cost);
    printf("  its kernels, which take %.4f ms one by one\n", sum);
}

static void print_timing(const struct roofline *roofline, const tg_shape *shape, const struct timing *timing)
{
    char text[TG_SCHEDULE_TEXT];
    const tg_cost operation = operation_cost(roofline, timing);
    tg_schedule_text(timing->variant, &timing->choice.schedule, text);
    printf("\n%s B=%lld NH=%lld T=%lld dqk=%lld dhv=%lld: %s (%s), chunk %u\n", timing->variant->name,
           (long long)shape->batch, (long long)shape->heads, (long long)shape->tokens, (long long)shape->dqk,
           (long long)shape->dhv, text, timing->choice.origin, timing->choice.schedule.chunk);
    print_kernels(timing);
    print_line("operation", timing->median, floor_ms(&operation), &operation);
    puts("  each input and output once");
}

static void print_head(const struct roofline *roofline)
{
    const struct bench *bench = roofline->bench;
    const tg_target *target = roofline->target;
    printf("%s on %s, median of %u%s; roofs of %s (%s): %.0f GB/s, %.0f TFLOP/s by mma.sync", tg_dtype_name(bench->io),
           bench->context->machine.device.name, bench->runs, bench->context->options.flush ? ", L2 flushed" : "",
           target->gpu, target->arch, target->bandwidth / 1e9, target->matrix_flops / 1e12);
    if (target->wgmma_flops > 0)
        printf(", %.0f by wgmma", target->wgmma_flops / 1e12);
    puts("");
}

/* ---- as a figure ---- */

/* Without matrix products a kernel has no place in it. */
static void add_points(struct roofline *roofline, const tg_shape *shape, const struct timing *timing)
{
    char text[TG_SCHEDULE_TEXT];
    tg_schedule_text(timing->variant, &timing->choice.schedule, text);
    plot_series(&roofline->plot, "%s, T %lld, %s", timing->variant->name, (long long)shape->tokens, text);
    for (uint32_t i = 0; i < timing->n_kernels; i++) {
        const tg_cost *cost = &timing->kernels[i].cost;
        if (cost->flops > 0)
            plot_point(&roofline->plot, "%s %g %g", timing->choice.schedule.rows[i].name, cost->flops / cost->bytes,
                       cost->flops / timing->kernels[i].median * 1e3);
    }
}

static int draw(struct roofline *roofline)
{
    const struct bench *bench = roofline->bench;
    const tg_target *target = roofline->target;
    struct text commands = {0};
    const tg_writer writer = text_writer(&commands);
    tg_printf(&writer,
              "set title '%s on %s'\nset logscale xy\nset xrange [1:4000]\nset key bottom right\n"
              "set xlabel 'flop per byte of memory'\nset ylabel 'flop/s'\nset format y '%%.0s%%c'\n"
              "roof(x, rate) = x * %g < rate ? x * %g : rate\n"
              "plot roof(x, %g) with lines lc 'black' title 'roofs of %s'",
              tg_dtype_name(bench->io), bench->context->machine.device.name, target->bandwidth, target->bandwidth,
              target->matrix_flops, target->gpu);
    if (target->wgmma_flops > 0)
        tg_printf(&writer, ", roof(x, %g) with lines lc 'black' dt 2 title 'by wgmma'", target->wgmma_flops);
    plot_curves(&roofline->plot, &writer, "using 2:3 with points pt 7", "");
    for (uint32_t i = 0; i < roofline->plot.n_series; i++)
        tg_printf(&writer, ", $s%u using 2:3:1 with labels left offset 1,0 notitle", i);
    const int code = plot_draw(bench->context, &roofline->plot, text_of(&commands));
    text_free(&commands);
    return code;
}

/* ---- the command ---- */

static void show(struct roofline *roofline, const tg_shape *shape, const struct timing *forward,
                 const struct timing *backward)
{
    if (roofline->bench->context->options.json) {
        json_t *json = timing_json(roofline, shape, forward);
        if (backward->variant)
            json_object_set_new(json, "backward", timing_json(roofline, shape, backward));
        json_print(json);
    } else {
        progress_hide(roofline->bench->context);
        print_timing(roofline, shape, forward);
        if (backward->variant)
            print_timing(roofline, shape, backward);
        fflush(stdout);
    }
    add_points(roofline, shape, forward);
    if (backward->variant)
        add_points(roofline, shape, backward);
}

static void bench_shape(struct roofline *roofline, const tg_variant *variant, tg_shape shape)
{
    struct bench *bench = roofline->bench;
    struct timing forward, backward;
    struct wish wish;
    if (!options_shape(bench->context, &shape)) {
        bench->code = CODE_USAGE;
        return;
    }
    for (uint32_t i = 0; bench_wish(bench, i, &wish); i++)
        if (bench_time(bench, variant, &shape, wish, &forward, &backward))
            show(roofline, &shape, &forward, &backward);
}

void bench_roofline(struct bench *bench, const tg_variant *variant)
{
    const struct options *options = &bench->context->options;
    struct roofline roofline = {.bench = bench, .target = bench->context->machine.target};
    if (!options->json)
        print_head(&roofline);
    for (uint32_t i = 0; i < options->n_shapes; i++)
        bench_shape(&roofline, variant, options->shapes[i]);
    if (options->n_shapes == 0)
        bench_shape(&roofline, variant, usual);
    if (options->svg && bench->code == CODE_OK)
        bench->code = draw(&roofline);
    plot_free(&roofline.plot);
}
