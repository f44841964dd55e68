/* tests/kernels/large.c - what takes a GPU: long sequences, extreme gates over thousands of tokens,
 * tensors of more than 2^31 elements. */
#include "harness.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGE(name_, io_, b, nh, t, dqk_, dhv_, l, gates_, layout_)                                                    \
    {                                                                                                                  \
        .name = name_, .io = io_, .batch = b, .heads = nh, .tokens = t, .dqk = dqk_, .dhv = dhv_, .chunk = l,          \
        .gates = gates_, .has_s0 = true, .layout = layout_,                                                            \
    }
static const struct spec specs[] = {
    LARGE("T = 100,000", TG_BF16, 1, 2, 100000, 64, 128, 0, ORDINARY, HEADS),
    LARGE("T = 100,000 in chunks of 1024", TG_BF16, 1, 2, 100000, 64, 128, 1024, ORDINARY, HEADS),
    LARGE("T = 100,000, f32", TG_F32, 1, 2, 100000, 64, 64, 0, ORDINARY, HEADS),
    LARGE("gates of +-30 at T = 8192", TG_BF16, 2, 4, 8192, 64, 128, 0, EXTREME, HEADS),
    LARGE("gates of +-30 at T = 8192 in chunks of 2048", TG_BF16, 2, 4, 8192, 64, 128, 2048, EXTREME, HEADS),
    LARGE("gates of +-30 at T = 8192, f32", TG_F32, 2, 4, 8192, 64, 64, 0, EXTREME, HEADS),
    LARGE("all gates open at T = 8192", TG_BF16, 2, 4, 8192, 64, 128, 0, OPEN, TOKENS),
    LARGE("padded strides at T = 8192", TG_BF16, 2, 3, 8191, 128, 256, 256, ORDINARY, PADDED),
};

/* Forward and backward of the family. */
#define FAMILY_OF(variant_, io_, b, nh, t, dqk_, dhv_, ...)                                                            \
    {                                                                                                                  \
        .name = variant_ " T=" #t " " #__VA_ARGS__, .variant = variant_, .io = io_, .batch = b, .heads = nh,           \
        .tokens = t, .dqk = dqk_, .dhv = dhv_, .has_s0 = true, .backward = "", __VA_ARGS__                             \
    }
static const struct spec family[] = {
    FAMILY_OF("mlstm-exp", TG_BF16, 2, 4, 8192, 64, 128, .gates = ORDINARY),
    FAMILY_OF("mlstm-exp", TG_F32, 1, 4, 4096, 64, 64, .gates = ORDINARY),
    FAMILY_OF("mlstm-exp", TG_BF16, 1, 2, 100000, 32, 32, .chunk = 256),
    FAMILY_OF("mlstm-exp", TG_BF16, 0, 4, 0, 64, 128, .cuts = "0 9000 9001 9001 9100 20000"),
    FAMILY_OF("mlstm-sig-norm", TG_BF16, 2, 4, 8192, 64, 128, .group = 4),
    FAMILY_OF("mamba2", TG_BF16, 0, 8, 0, 128, 64, .group = 8, .cuts = "0 5000 5001 5001 16384"),
    FAMILY_OF("mamba2", TG_F32, 2, 4, 4096, 64, 64, .group = 2),
    FAMILY_OF("retention", TG_BF16, 4, 4, 16384, 64, 64, .gates = ORDINARY),
    FAMILY_OF("simple-gla", TG_BF16, 1, 4, 16384, 64, 64, .gates = EXTREME),
    FAMILY_OF("gated-retention", TG_BF16, 1, 4, 8192, 64, 64, .is_pooled = true),
    FAMILY_OF("linear", TG_BF16, 1, 4, 8192, 64, 64, .group = 2),
};

/* ---- beyond 2^31 elements ---- */

/* h has B NH T dhv = 2.2e9 elements, 4.3 GB. Every head has the same inputs, at places of its own,
 * but for the last one's values and state, which are doubled: that doubles its outputs exactly. One
 * head alone is compared with the oracle, all heads with it, to the bit. */
enum { BIG_HEADS = 128, BIG_BATCH = 2, BIG_T = 33000, BIG_DQK = 64, BIG_DHV = 256 };

struct big {
    struct trial *one; /* a single head: inputs, and outputs to expect */
    tg_tensor_arg args[TG_MAX_TENSORS];
    uint32_t n_args;
    uint64_t workspace;
};

static void multiply(tg_host_tensor *tensor, double factor)
{
    for (size_t e = 0; e < tensor->n; e++)
        tg_num_store(tensor->data, tensor->dtype, e, factor * tg_num_load(tensor->data, tensor->dtype, e));
}

static tg_status big_tensor(struct big *big, tg_host_tensor *tensor)
{
    const tg_driver *driver = machine_context.machine.driver;
    const size_t n = (size_t)BIG_HEADS * BIG_BATCH;
    const bool is_doubled = strcmp(tensor->name, "v") == 0 || strcmp(tensor->name, "S0") == 0;
    tg_tensor_arg *arg = &big->args[big->n_args++];
    *arg = (tg_tensor_arg){.name = tensor->name};
    tg_status status = tg_memory_alloc(driver, n * tensor->bytes, &arg->address, &log_sink);
    if (status != TG_OK || tensor->flags & TG_OUT)
        return status == TG_OK ? tg_memory_fill(driver, arg->address, 0xff, n * tensor->bytes, &log_sink) : status;
    for (size_t head = 0; head < n && status == TG_OK; head++) {
        if (head == n - 1 && is_doubled)
            multiply(tensor, 2);
        status = tg_memory_in(driver, arg->address + head * tensor->bytes, tensor->data, tensor->bytes, &log_sink);
    }
    if (is_doubled)
        multiply(tensor, 0.5);
    return status;
}

static void big_compare(const struct big *big, const char *name)
{
    tg_host_tensor *expected = tg_problem_tensor(&big->one->problem, name);
    const size_t n = (size_t)BIG_HEADS * BIG_BATCH;
    char *found = malloc(expected->bytes);
    for (uint32_t i = 0; i < big->n_args && found; i++) {
        if (strcmp(big->args[i].name, name) != 0)
            continue;
        for (size_t head = 0; head < n; head++) {
            if (head == n - 1)
                multiply(expected, 2);
            tg_status status = tg_memory_out(machine_context.machine.driver, found,
                                             big->args[i].address + head * expected->bytes, expected->bytes, &log_sink);
            tap_expect(status == TG_OK && memcmp(found, expected->data, expected->bytes) == 0,
                       "%s of head %zu of %zu differs", name, head, n);
        }
        multiply(expected, 0.5);
    }
    free(found);
}

static tg_status big_run(struct big *big)
{
    const tg_driver *driver = machine_context.machine.driver;
    const tg_sizes sizes = {BIG_BATCH, BIG_HEADS, BIG_T, big->one->chunk};
    tg_problem *problem = &big->one->problem;
    const float scale = (float)problem->scale;
    tg_status status = TG_OK;
    log_clear();
    for (uint32_t i = 0; i < problem->n_tensors && status == TG_OK; i++)
        status = big_tensor(big, &problem->tensors[i]);
    if (status == TG_OK)
        status =
            tg_memory_alloc(driver, tg_workspace_bytes(big->one->kernel.program, &sizes), &big->workspace, &log_sink);
    if (status == TG_OK)
        status =
            tg_launch(big->one->kernel.module, &sizes, &scale, big->args, big->n_args, big->workspace, NULL, &log_sink);
    return status == TG_OK ? tg_synchronize(driver, &log_sink) : status;
}

static void beyond_2_31(void)
{
    const struct spec spec = {.io = TG_BF16,
                              .batch = 1,
                              .heads = 1,
                              .tokens = BIG_T,
                              .dqk = BIG_DQK,
                              .dhv = BIG_DHV,
                              .chunk = 1024,
                              .has_s0 = true};
    struct trial one;
    if (!trial_open(&one, &spec))
        return;
    struct big big = {.one = &one};
    if (trial_runs(&one) && outputs_right(&one.problem)) {
        tg_status status = big_run(&big);
        if (status == TG_E_MEMORY || strstr(log_text(), "OUT_OF_MEMORY"))
            tap_skip("not enough memory");
        else if (tap_expect(status == TG_OK, "%s: %s", tg_status_name(status), log_text())) {
            big_compare(&big, "h");
            big_compare(&big, "S");
        }
    }
    for (uint32_t i = 0; i < big.n_args; i++)
        tg_memory_free(machine_context.machine.driver, big.args[i].address);
    tg_memory_free(machine_context.machine.driver, big.workspace);
    trial_close(&one);
}

void suite_large(void)
{
    if (on_emulator())
        return;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct trial trial;
        if (!tap_begin("large: %s", specs[i].name))
            continue;
        if (trial_open(&trial, &specs[i])) {
            if (trial_runs(&trial))
                outputs_right(&trial.problem);
            trial_close(&trial);
        }
        tap_end();
    }
    for (size_t i = 0; i < sizeof family / sizeof *family; i++)
        if (tap_begin("large: %s", family[i].name)) {
            try_both_ways(&family[i], 1);
            tap_end();
        }
    if (tap_begin("large: 2.2e9 elements")) {
        beyond_2_31();
        tap_end();
    }
}
