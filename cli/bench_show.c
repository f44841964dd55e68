/* cli/bench_show.c - rows and lines of JSON of `tegula bench`. */
#include "bench.h"

json_t *bench_json(const struct bench *bench, const tg_shape *shape, const struct timing *timing)
{
    const struct context *context = bench->context;
    char text[TG_SCHEDULE_TEXT];
    tg_schedule_text(timing->variant, &timing->choice.schedule, text);
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:i, s:s, s:i, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "variant",
                     timing->variant->name, "device", context->machine.device.name, "dtype", tg_dtype_name(bench->io),
                     "shape", shape_json(shape), "schedule", text, "chunk", (int)timing->choice.schedule.chunk,
                     "origin", timing->choice.origin, "runs", (int)bench->runs, "flush", context->options.flush,
                     "median_ms", timing->median, "min_ms", timing->least, "max_ms", timing->most, "gb_per_s",
                     timing->cost.bytes / timing->median / 1e6, "tflop_per_s",
                     timing->cost.flops / timing->median / 1e9, "workspace_bytes", timing->workspace, "tensor_bytes",
                     timing->tensors);
}

void bench_head(const struct bench *bench)
{
    if (bench->context->options.json)
        return;
    printf("%s on %s, median of %u%s\n  %-15s %4s %4s     %7s %4s %4s\n", tg_dtype_name(bench->io),
           bench->context->machine.device.name, bench->runs, bench->context->options.flush ? ", L2 flushed" : "", "",
           "B", "NH", "T", "dqk", "dhv");
}

static void print_shape(const struct timing *timing, const tg_shape *shape)
{
    char group[24] = "";
    if (shape->group > 1)
        snprintf(group, sizeof group, "/%lld", (long long)shape->group);
    printf("  %-15s %4lld %4lld%-4s %7lld %4lld %4lld", timing->variant->name, (long long)shape->batch,
           (long long)shape->heads, group, (long long)shape->tokens, (long long)shape->dqk, (long long)shape->dhv);
}

static void print_timing(const struct timing *timing)
{
    char size[32], text[TG_SCHEDULE_TEXT];
    tg_schedule_text(timing->variant, &timing->choice.schedule, text);
    printf("  %9.3f ms (%.3f .. %.3f)  %6.0f GB/s  %6.1f TFLOP/s  %9s  %s (%s)", timing->median, timing->least,
           timing->most, timing->cost.bytes / timing->median / 1e6, timing->cost.flops / timing->median / 1e9,
           bytes_text(timing->workspace, size), text, timing->choice.origin);
}

static void print_row(const tg_shape *shape, const struct timing *forward, const struct timing *backward)
{
    char size[32], text[TG_SCHEDULE_TEXT];
    print_shape(forward, shape);
    print_timing(forward);
    if (backward->variant) {
        tg_schedule_text(backward->variant, &backward->choice.schedule, text);
        printf("\n  %47s  %9.3f ms  forward and backward; the latter %.3f ms  %9s  %s (%s)", "",
               forward->median + backward->median, backward->median, bytes_text(backward->workspace, size), text,
               backward->choice.origin);
    }
    puts("");
    fflush(stdout);
}

void bench_show(const struct bench *bench, const tg_shape *shape, const struct timing *forward,
                const struct timing *backward, const char *figure)
{
    if (!bench->context->options.json) {
        progress_hide(bench->context);
        print_row(shape, forward, backward);
        return;
    }
    json_t *json = bench_json(bench, shape, forward);
    if (backward->variant) {
        json_object_set_new(json, "backward", bench_json(bench, shape, backward));
        json_object_set_new(json, "both_ms", json_real(forward->median + backward->median));
    }
    if (figure)
        json_object_set_new(json, "figure", json_string(figure));
    json_print(json);
}
