/* tests/kernels/nan.c - a NaN or an infinity in an input reaches what it influences and nothing
 * else: everything else has the bits that it has without it. Masked weights are zeros, and zero
 * times NaN is NaN: the kernels must not let that happen. */
#include "results.h"
#include "suites.h"

#include <math.h>
#include <string.h>

enum { BATCH = 2, N_HEADS = 2, T = 300, MOST_DHV = 256, HEAD = 2, COLUMN = 21, MAX_BAD = 4 };

/* Bad numbers in one input of head HEAD. */
struct bad {
    const char *input;
    double number;
    int n;
    struct {
        int64_t row, column;
    } at[MAX_BAD];
};

/* What they may reach in that head: h from a token on, by column; S. */
struct reach {
    int64_t first[MOST_DHV], last;
    bool state;
};

static int64_t first_of_column(const struct bad *bad, int64_t column)
{
    const bool is_value = strcmp(bad->input, "v") == 0, is_state = strcmp(bad->input, "S0") == 0;
    int64_t first = T;
    for (int i = 0; i < bad->n; i++) {
        if ((is_value || is_state) && bad->at[i].column != column)
            continue;
        const int64_t row = is_state ? 0 : bad->at[i].row;
        first = row < first ? row : first;
    }
    return first;
}

static struct reach reach_of(const struct bad *bad)
{
    const bool is_query = strcmp(bad->input, "q") == 0;
    struct reach reach = {.last = is_query ? bad->at[0].row : T, .state = !is_query};
    for (int64_t column = 0; column < MOST_DHV; column++)
        reach.first[column] = first_of_column(bad, column);
    return reach;
}

static bool is_bad(const tg_host_tensor *tensor, size_t index)
{
    return !isfinite(tg_num_load(tensor->data, tensor->dtype, index));
}

static bool same_bits(const tg_host_tensor *tensor, const tg_host_tensor *clean, size_t index)
{
    const size_t bytes = tg_num_bytes(tensor->dtype);
    return memcmp((const char *)tensor->data + index * bytes, (const char *)clean->data + index * bytes, bytes) == 0;
}

static void check_h(struct results *results, struct results *of_clean, const struct reach *reach)
{
    const tg_host_tensor *h = results_find(results, "h"), *clean = results_find(of_clean, "h");
    const size_t dhv = (size_t)h->extent[3];
    for (size_t e = 0; e < h->n; e++) {
        const int64_t column = (int64_t)(e % dhv), token = (int64_t)(e / dhv % T);
        const int64_t first = e / dhv / T == HEAD ? reach->first[column] : T;
        if (token >= first && token <= reach->last)
            tap_expect(token > first || is_bad(h, e), "did not reach its own token %lld, column %lld", (long long)token,
                       (long long)column);
        else
            tap_expect(same_bits(h, clean, e), "reached h of head %zu, token %lld, column %lld", e / dhv / T,
                       (long long)token, (long long)column);
    }
}

static void check_s(struct results *results, struct results *of_clean, const struct reach *reach)
{
    const tg_host_tensor *s = results_find(results, "S"), *clean = results_find(of_clean, "S");
    const size_t dhv = (size_t)s->extent[3], dqk = (size_t)s->extent[2];
    for (size_t e = 0; e < s->n; e++) {
        const bool may = e / dhv / dqk == HEAD && reach->state && reach->first[e % dhv] < T;
        tap_expect(may || same_bits(s, clean, e), "reached S of head %zu at %zu, %zu", e / dhv / dqk, e / dhv % dqk,
                   e % dhv);
    }
}

static void place_bad(tg_problem *problem, void *user)
{
    const struct bad *bad = user;
    const tg_host_tensor *input = tg_problem_tensor(problem, bad->input);
    const size_t width = input->rank > 3 ? (size_t)input->extent[3] : 1;
    for (int i = 0; i < bad->n; i++) {
        const size_t row = HEAD * (size_t)input->extent[2] + (size_t)bad->at[i].row;
        const size_t column = width > 1 ? (size_t)bad->at[i].column : 0;
        tg_num_store(input->data, input->dtype, row * width + column, bad->number);
    }
}

static void try_bad(const struct spec *spec, struct bad *bad)
{
    const struct reach reach = reach_of(bad);
    struct results clean = {.n = 0}, found = {.n = 0};
    if (results_of(spec, &clean) && results_anew(spec, place_bad, bad, &found)) {
        check_h(&found, &clean, &reach);
        check_s(&found, &clean, &reach);
    }
    results_free(&clean);
    results_free(&found);
}

static void test_bad(const struct spec *spec, struct bad *bad)
{
    if (!tap_begin("%s in %s, row %d%s, %s %s L=%d dhv=%d", isnan(bad->number) ? "NaN" : "infinity", bad->input,
                   (int)bad->at[0].row, bad->n > 1 ? " and others" : "", tg_dtype_name(spec->io), spec->schedule,
                   (int)spec->chunk, (int)spec->dhv))
        return;
    try_bad(spec, bad);
    tap_end();
}

static void each_input(const struct spec *spec, int64_t token, double number)
{
    static const char *const inputs[] = {"q", "k", "v", "S0", "f", "i"};
    const size_t n = isnan(number) ? 6 : 4; /* an infinite gate is an open or a closed one */
    for (size_t i = 0; i < n; i++) {
        const int64_t row = i == 3 ? token % spec->dqk : token;
        test_bad(spec, &(struct bad){inputs[i], number, 1, {{row, COLUMN}}});
    }
}

/* Values in the first chunk and in the last, at their ends, in every lane of a quad; several in one
 * chunk. */
static void test_walk(const struct spec *spec)
{
    static const int64_t tokens[] = {0, 63, 64, 251, 299};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        test_bad(spec, &(struct bad){"v", NAN, 1, {{tokens[i], COLUMN}}});
    test_bad(spec, &(struct bad){"v", NAN, 4, {{140, 7}, {133, 7}, {133, 8}, {170, 40}}});
    test_bad(spec, &(struct bad){"v", -INFINITY, 4, {{140, 7}, {133, 15}, {134, 7}, {190, 7}}});
}

void suite_nan(void)
{
    static const int64_t tokens[] = {0, 100, 127, 128, 245, 299};
    struct spec spec = {.io = TG_BF16,
                        .batch = BATCH,
                        .heads = N_HEADS,
                        .tokens = T,
                        .dqk = 32,
                        .dhv = 48,
                        .schedule = "",
                        .has_s0 = true};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        each_input(&spec, tokens[i], NAN);
    each_input(&spec, 100, INFINITY);
    for (tg_dtype io = TG_BF16; io <= TG_F32; io++) {
        spec.io = io;
        each_input(&spec, 245, NAN);
        /* several in one tile: twice in a column, beside each other, in the next block */
        test_bad(&spec, &(struct bad){"v", NAN, 4, {{140, 7}, {133, 7}, {133, 8}, {170, 40}}});
        test_bad(&spec, &(struct bad){"v", -INFINITY, 4, {{140, 7}, {133, 7}, {133, 8}, {170, 40}}});
    }
    spec.io = TG_BF16;
    spec.chunk = 256;
    spec.schedule = "tfla H.Lhq=64 H.Lkv=64 H.stages=3 H.dhv=32";
    each_input(&spec, 200, NAN);
    spec.chunk = 0;
    spec.schedule = "walk walk.dhv=128";
    spec.dqk = 64;
    spec.dhv = 128;
    each_input(&spec, 129, NAN);
    test_walk(&spec);
    spec.schedule = "segments-narrow walk.seg=2";
    each_input(&spec, 129, NAN);
    test_walk(&spec);
    spec.schedule = "tfla-wgmma-narrow walk.seg=1";
    each_input(&spec, 129, NAN);
    test_walk(&spec);
    spec.io = TG_F16;
    spec.schedule = "walk";
    spec.dhv = 256;
    test_walk(&spec);
    spec.dqk = 40; /* zeros on chip beside both */
    spec.dhv = 232;
    each_input(&spec, 129, NAN);
    test_walk(&spec);
    results_forget();
}
