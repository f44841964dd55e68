/* tests/kernels/nan.c - a NaN in an input reaches what it influences and nothing else: everything
 * else has the bits that it has without the NaN.
 *
 * One exception is measured and written down here: a masked tile of P is multiplied with V as a
 * whole, and 0 times NaN is NaN, so that a NaN in v also reaches earlier tokens of its own block.
 */
#include "harness.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 2,
    HEADS_N = 2,
    T = 300,
    DQK = 32,
    DHV = 48,
    AT_BATCH = 1,
    AT_HEAD = 0,
    AT_COLUMN = 21
};

/* What a NaN may reach, in its own head: tokens first .. last, of h and of S, in which columns. */
struct reach {
    int64_t first, last;
    bool all_columns, state;
};

static bool is_nan_at(const struct host_tensor *tensor, size_t index)
{
    return isnan(num_load(tensor->data, tensor->dtype, index));
}

static bool same_bits(const struct host_tensor *tensor, const char *clean, size_t index)
{
    const size_t bytes = st_dtype_bytes(tensor->dtype);
    return memcmp((const char *)tensor->data + index * bytes, clean + index * bytes, bytes) == 0;
}

/* Tokens outside of `reach` unchanged; token `at` itself reached; how far it really went back. */
static void check_h(struct problem *problem, const char *clean, const struct reach *reach,
                    int64_t at)
{
    const struct host_tensor *h = tensor_of(problem, "h");
    int64_t earliest = T;
    for (size_t e = 0; e < h->n; e++) {
        const int64_t column = (int64_t)(e % DHV), token = (int64_t)(e / DHV % T);
        const bool is_here = e / DHV / T == AT_BATCH * HEADS_N + AT_HEAD;
        const bool may = is_here && token >= reach->first && token <= reach->last &&
                         (reach->all_columns || column == AT_COLUMN);
        if (is_nan_at(h, e) && is_here && token < earliest)
            earliest = token;
        if (!may &&
            !tap_expect(same_bits(h, clean, e), "reached h of head %zu, token %lld, column %lld",
                        e / DHV / T, (long long)token, (long long)column))
            return;
        if (may && token == at)
            tap_expect(is_nan_at(h, e), "did not reach h of its own token, column %lld",
                       (long long)column);
    }
    if (earliest < at)
        tap_note("reaches back from token %lld to %lld", (long long)at, (long long)earliest);
}

static void check_s(struct problem *problem, const char *clean, const struct reach *reach)
{
    const struct host_tensor *s = tensor_of(problem, "S");
    for (size_t e = 0; e < s->n; e++) {
        const bool may = e / DHV / DQK == AT_BATCH * HEADS_N + AT_HEAD && reach->state &&
                         (reach->all_columns || e % DHV == AT_COLUMN);
        if (!may && !tap_expect(same_bits(s, clean, e), "reached S of head %zu at %zu, %zu",
                                e / DHV / DQK, e / DHV % DQK, e % DHV))
            return;
    }
}

static void nan_in(const struct spec *spec, const char *name, int64_t at, const struct reach *reach)
{
    struct trial trial;
    if (!trial_open(&trial, spec))
        return;
    if (trial_runs(&trial)) {
        struct host_tensor *input = tensor_of(&trial.problem, name);
        char *h = tensor_copy(&trial.problem, "h"), *s = tensor_copy(&trial.problem, "S");
        const size_t head = AT_BATCH * HEADS_N + AT_HEAD;
        const size_t width = input->rank > 3 ? (size_t)input->extent[3] : 1;
        const size_t row = head * (size_t)input->extent[2] + (size_t)at;
        num_store(input->data, input->dtype, row * width + (width > 1 ? AT_COLUMN : 0), NAN);
        if (trial_runs(&trial)) {
            check_h(&trial.problem, h, reach, strcmp(name, "S0") == 0 ? 0 : at);
            check_s(&trial.problem, s, reach);
        }
        free(h);
        free(s);
    }
    trial_close(&trial);
}

static int64_t row_block(const struct spec *spec)
{
    /* Lhq of the schedule: the rows that share a masked tile with token t are those of its block.
     */
    tg_schedule schedule;
    const tg_shape_class class = {spec->io, DQK, DHV};
    if (!schedule_from_text(&machine_context, &tg_mlstm_sig, machine_context.machine.target, &class,
                            spec->schedule, &schedule))
        return T;
    return schedule.rows[schedule.n_rows - 1].row[TG_LQ].block;
}

static void nan_at(const struct spec *spec, int64_t at)
{
    const struct reach later = {at, T, true, true}, only = {at, at, true, false};
    static const char *const later_inputs[] = {"k", "f", "i"};
    const char *type = tg_dtype_name(spec->io);
    for (size_t i = 0; i < 3; i++)
        if (tap_begin("NaN in %s at token %d of %d, %s", later_inputs[i], (int)at, T, type)) {
            nan_in(spec, later_inputs[i], at, &later);
            tap_end();
        }
    if (tap_begin("NaN in q at token %d of %d, %s", (int)at, T, type)) {
        nan_in(spec, "q", at, &only);
        tap_end();
    }
    if (tap_begin("NaN in v at token %d of %d, %s", (int)at, T, type)) {
        const int64_t block = row_block(spec);
        nan_in(spec, "v", at, &(struct reach){at / block * block, T, false, true});
        tap_end();
    }
    if (tap_begin("NaN in S0 row %d, %s", (int)at % DQK, type)) {
        nan_in(spec, "S0", at % DQK, &(struct reach){0, T, false, true});
        tap_end();
    }
}

void suite_nan(void)
{
    static const int64_t tokens[] = {0, 100, 127, 128, 245, 299};
    struct spec spec = {"", TG_BF16, BATCH, HEADS_N, T, DQK, DHV, 0, "", ORDINARY, true, HEADS, 0};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        nan_at(&spec, tokens[i]);
    spec.io = TG_F32;
    nan_at(&spec, 100);
    spec.io = TG_F16;
    nan_at(&spec, 245);
}
