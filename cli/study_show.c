/* cli/study_show.c - what `tegula study transfer` has found: tables or JSON, and the paper's figure. */
#include "study.h"

#include <math.h>

static const char *const stage_names[N_STAGES] = {"before", "after"};

double transfer_deviation(const struct transfer *transfer, int stage)
{
    double most = 0;
    for (int i = 0; i < N_INPUTS; i++)
        for (int f = 0; f < N_FORGETS; f++) {
            const double truth = transfer->gain[stage][TRUTH][i][f],
                         x = fabs(transfer->gain[stage][KERNEL][i][f] - truth) / truth;
            most = x > most || isnan(x) ? x : most;
        }
    return most;
}

/* Where the gain behind the norm reaches half of the most that it has at this f, between two values of i; NaN: it is
 * beyond that from the first on. */
static double half_way(const struct transfer *transfer, int source, int f)
{
    double most = 0;
    for (int i = 0; i < N_INPUTS; i++)
        most = fmax(most, transfer->gain[AFTER][source][i][f]);
    for (int i = 1; i < N_INPUTS; i++) {
        const double low = transfer->gain[AFTER][source][i - 1][f], high = transfer->gain[AFTER][source][i][f];
        if (low < most / 2 && high >= most / 2)
            return INPUT_LEAST + i - 1 + (most / 2 - low) / (high - low);
    }
    return NAN;
}

/* The largest difference of two variants' gains, as a part of the largest gain. */
static double difference(const struct transfer *a, const struct transfer *b, int stage)
{
    double most = 0, largest = 0;
    for (int i = 0; i < N_INPUTS; i++)
        for (int f = 0; f < N_FORGETS; f++) {
            const double x = a->gain[stage][KERNEL][i][f], y = b->gain[stage][KERNEL][i][f];
            most = fmax(most, fabs(x - y));
            largest = fmax(largest, fmax(x, y));
        }
    return most / largest;
}

/* ---- for people ---- */

enum { ACROSS = 9 }; /* values of f in a line */

static void print_columns(const struct transfer *transfer, int stage, int first)
{
    const int end = first + ACROSS < N_FORGETS ? first + ACROSS : N_FORGETS;
    printf("       ");
    for (int f = first; f < end; f++)
        printf(" %7d", FORGET_LEAST + f);
    for (int i = 0; i < N_INPUTS; i++) {
        printf("\n  %5d", INPUT_LEAST + i);
        for (int f = first; f < end; f++)
            printf(" %7.2g", transfer->gain[stage][KERNEL][i][f]);
    }
    putchar('\n');
}

static void print_table(const struct transfer *transfer, int stage)
{
    printf("  gain %s the norm, by the kernel: i down, f across\n", stage_names[stage]);
    for (int f = 0; f < N_FORGETS; f += ACROSS)
        print_columns(transfer, stage, f);
    printf("  fp64: at most %.2g %% from it\n", 100 * transfer_deviation(transfer, stage));
}

static void print_half_way(const struct transfer *transfer)
{
    printf("  half of the gain behind the norm at i =");
    for (int f = 0; f < N_FORGETS; f++)
        printf("%s %7.2f", f % ACROSS ? "" : "\n       ", half_way(transfer, KERNEL, f));
    putchar('\n');
}

static void print_text(const struct study *study)
{
    const tg_shape *shape = &study->shape;
    for (uint32_t v = 0; v < study->n_transfers; v++) {
        const struct transfer *transfer = &study->transfers[v];
        char schedule[TG_SCHEDULE_TEXT];
        tg_schedule_text(transfer->variant, &transfer->choice.schedule, schedule);
        printf("%s %s, T=%lld dqk=%lld dhv=%lld, norm eps %g; schedule %s (%s), on %s\n", transfer->variant->name,
               tg_dtype_name(study->io), (long long)shape->tokens, (long long)shape->dqk, (long long)shape->dhv,
               study->eps, schedule, transfer->choice.origin, study->context->machine.device.name);
        for (int stage = 0; stage < N_STAGES; stage++)
            print_table(transfer, stage);
        print_half_way(transfer);
    }
    for (uint32_t v = 1; v < study->n_transfers; v++)
        printf("%s and %s: gains differ by at most %.2g %% of the largest before the norm, %.2g %% after it\n",
               study->transfers[0].variant->name, study->transfers[v].variant->name,
               100 * difference(&study->transfers[0], &study->transfers[v], BEFORE),
               100 * difference(&study->transfers[0], &study->transfers[v], AFTER));
}

/* ---- for scripts ---- */

static json_t *gain_json(const struct transfer *transfer, int stage, int i, int f)
{
    return json_pack("{s:o, s:o}", "fp64", json_number(transfer->gain[stage][TRUTH][i][f]), "kernel",
                     json_number(transfer->gain[stage][KERNEL][i][f]));
}

static json_t *transfer_json(const struct transfer *transfer)
{
    json_t *points = json_array(), *halves = json_array();
    char schedule[TG_SCHEDULE_TEXT];
    tg_schedule_text(transfer->variant, &transfer->choice.schedule, schedule);
    for (int f = 0; f < N_FORGETS; f++) {
        json_array_append_new(halves, json_pack("{s:i, s:o, s:o}", "f", FORGET_LEAST + f, "fp64",
                                                json_number(half_way(transfer, TRUTH, f)), "kernel",
                                                json_number(half_way(transfer, KERNEL, f))));
        for (int i = 0; i < N_INPUTS; i++)
            json_array_append_new(points, json_pack("{s:i, s:i, s:o, s:o}", "i", INPUT_LEAST + i, "f", FORGET_LEAST + f,
                                                    "before", gain_json(transfer, BEFORE, i, f), "after",
                                                    gain_json(transfer, AFTER, i, f)));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:{s:o, s:o}}", "variant", transfer->variant->name, "schedule", schedule,
                     "points", points, "half_way", halves, "deviation", "before",
                     json_number(transfer_deviation(transfer, BEFORE)), "after",
                     json_number(transfer_deviation(transfer, AFTER)));
}

static void print_json(const struct study *study)
{
    json_t *transfers = json_array();
    for (uint32_t v = 0; v < study->n_transfers; v++)
        json_array_append_new(transfers, transfer_json(&study->transfers[v]));
    json_print(json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:o}", "study", "transfer", "device",
                         study->context->machine.device.name, "dtype", tg_dtype_name(study->io), "T",
                         (json_int_t)study->shape.tokens, "dqk", (json_int_t)study->shape.dqk, "dhv",
                         (json_int_t)study->shape.dhv, "eps", study->eps, "seed",
                         (json_int_t)study->context->options.seed, "transfers", transfers));
}

void study_show(const struct study *study)
{
    if (study->context->options.json)
        print_json(study);
    else
        print_text(study);
}

/* ---- the figure ---- */

/* A panel for each stage and variant; gains beyond 1.2 have the colour of 1.2. */
int study_draw(const struct study *study)
{
    struct plot plot = {0};
    struct text commands = {0};
    const tg_writer writer = text_writer(&commands);
    tg_printf(&writer,
              "set multiplot layout %d,%u title 'gain over gates, T %lld, %lld / %lld, norm eps %g'\n"
              "set cbrange [0:1.2]\nset xlabel 'f'\nset ylabel 'i'\nset xrange [%d.5:%d.5]\nset yrange [%d.5:%d.5]\n",
              N_STAGES, study->n_transfers, (long long)study->shape.tokens, (long long)study->shape.dqk,
              (long long)study->shape.dhv, study->eps, FORGET_LEAST, FORGET_MOST, INPUT_LEAST, INPUT_MOST);
    for (int stage = 0; stage < N_STAGES; stage++)
        for (uint32_t v = 0; v < study->n_transfers; v++) {
            const struct transfer *transfer = &study->transfers[v];
            tg_printf(&writer, "set title '%s, %s the norm'\nplot $s%u using 1:2:3 with image notitle\n",
                      transfer->variant->name, stage_names[stage], plot.n_series);
            plot_series(&plot, "%s", transfer->variant->name);
            for (int i = 0; i < N_INPUTS; i++)
                for (int f = 0; f < N_FORGETS; f++)
                    plot_point(&plot, "%d %d %g", FORGET_LEAST + f, INPUT_LEAST + i,
                               transfer->gain[stage][KERNEL][i][f]);
        }
    const int code = plot_draw(study->context, &plot, text_of(&commands));
    text_free(&commands);
    plot_free(&plot);
    return code;
}
