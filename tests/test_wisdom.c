/* tests/test_wisdom.c - which schedule a call on a GPU gets: what is remembered, or the cost
 * model's choice. Nothing is launched, so a name and a compute capability do for a GPU. */
#include "cli/cli.h"
#include "kernels/tap.h"
#include "variants/variants.h"
#include "tests/usage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct context context;
static char folder[] = "/tmp/test_wisdom-XXXXXX", file[64], lock[80];

static void begin(const char *gpu)
{
    static char driver; /* there is one; nobody calls it */
    context_init(&context);
    context.options.wisdom = file;
    (void)unlink(file);
    context.machine.driver = (tg_driver *)(void *)&driver;
    context.machine.target = tg_target_find("sm_90a");
    context.machine.device = (tg_device){.cc_major = 9};
    snprintf(context.machine.device.name, sizeof context.machine.device.name, "%s", gpu);
    context.errors = json_array(); /* what would have stopped the command */
}

static void end(void)
{
    tap_expect(json_array_size(context.errors) == 0, "there were errors");
    json_decref(context.errors);
    tap_end();
}

static void remember(const char *schedule, int64_t batch, int64_t heads, int64_t tokens)
{
    tg_wisdom entry = {.variant = "mlstm-sig",
                       .dtype = "bf16",
                       .cc = 90,
                       .dqk = 128,
                       .dhv = 256,
                       .batch = batch,
                       .heads = heads,
                       .tokens = tokens,
                       .chunk = 64,
                       .milliseconds = 1};
    snprintf(entry.device, sizeof entry.device, "%s", context.machine.device.name);
    snprintf(entry.schedule, sizeof entry.schedule, "%s", schedule);
    tap_expect(tg_wisdom_add(file, &entry, &context.sink) == TG_OK, "not added");
}

/* Expects this schedule ("": any), from there. */
static void expect(int64_t batch, int64_t heads, int64_t tokens, int64_t chunk, const char *schedule,
                   const char *origin)
{
    const tg_shape sizes = {.batch = batch, .heads = heads, .tokens = tokens, .dqk = 128, .dhv = 256};
    const tg_shape_class class = tg_shape_class_of(&sizes, TG_BF16);
    const struct wish wish = {NULL, chunk};
    char text[TG_SCHEDULE_TEXT];
    struct choice choice;
    context.options.chunk = chunk;
    if (!tap_expect(schedule_choose(&context, &tg_mlstm_sig, context.machine.target, &class, &sizes, wish, &choice),
                    "none for B %lld NH %lld T %lld", (long long)batch, (long long)heads, (long long)tokens))
        return;
    tg_schedule_text(&tg_mlstm_sig, &choice.schedule, text);
    tap_expect((!*schedule || strcmp(text, schedule) == 0) && strcmp(choice.origin, origin) == 0,
               "B %lld NH %lld T %lld: expected %s (%s), found %s (%s)", (long long)batch, (long long)heads,
               (long long)tokens, schedule, origin, text, choice.origin);
}

static void suite_near(void)
{
    if (!tap_begin("what is remembered is for sizes within a factor of two"))
        return;
    begin("a GPU");
    expect(8, 16, 8192, 0, "walk", "default");
    remember("tfla chunk=128", 8, 16, 8192);
    expect(8, 16, 8192, 0, "tfla chunk=128", "wisdom");
    expect(4, 32, 4096, 0, "tfla chunk=128", "wisdom");
    expect(8, 16, 16385, 0, "walk", "default");
    expect(8, 33, 8192, 0, "", "default");
    context.options.no_wisdom = true;
    expect(8, 16, 8192, 0, "walk", "default");
    end();
}

static void suite_behind(void)
{
    if (!tap_begin("what falls behind at other sizes, by the model, is not taken there"))
        return;
    begin("a GPU");
    remember("segments", 1, 16, 65536);
    expect(1, 16, 65536, 0, "segments", "wisdom");
    expect(2, 16, 65536, 0, "segments", "wisdom");
    expect(1, 8, 32768, 0, "segments seg=32", "default"); /* 32 thread blocks for 132 */
    end();
}

static void suite_unfit(void)
{
    if (!tap_begin("a line that no longer fits is left out"))
        return;
    begin("a GPU");
    remember("gone chunk=64", 8, 16, 8192);
    expect(8, 16, 8192, 0, "walk", "default");
    remember("walk chunk=72", 8, 16, 8192);
    expect(8, 16, 8192, 0, "walk", "default");
    end();
}

static void suite_chunk(void)
{
    if (!tap_begin("what does not take the chunk that is asked for is left out"))
        return;
    begin("a GPU");
    remember("walk", 8, 16, 8192);
    expect(8, 16, 8192, 64, "walk", "wisdom");
    expect(8, 16, 8192, 128, "tfla chunk=128", "default");
    end();
}

/* ---- what is shipped ---- */

static void suite_shipped(void)
{
    if (!tap_begin("what is shipped is for its GPU, behind the user's own"))
        return;
    begin("NVIDIA H200");
    expect(8, 16, 8192, 0, "walk", "shipped wisdom");
    expect(8, 16, 512, 0, "", "default");
    remember("tfla chunk=128", 8, 16, 8192);
    expect(8, 16, 8192, 0, "tfla chunk=128", "wisdom");
    expect(1, 16, 65536, 0, "segments", "shipped wisdom"); /* the user's is not near */
    remember("gone", 8, 16, 8192);
    expect(8, 16, 8192, 0, "walk", "shipped wisdom");
    context.options.no_wisdom = true;
    expect(8, 16, 8192, 0, "walk", "default");
    context.options.no_wisdom = false;
    snprintf(context.machine.device.name, sizeof context.machine.device.name, "another GPU");
    expect(8, 16, 8192, 0, "walk", "default");
    end();
}

/* Schedules of a loaded variant may have the same names and be others. */
static void suite_loaded(void)
{
    tg_variant mine = tg_mlstm_sig;
    const tg_shape sizes = {.batch = 8, .heads = 16, .tokens = 8192, .dqk = 128, .dhv = 256};
    const tg_shape_class class = tg_shape_class_of(&sizes, TG_BF16);
    struct choice choice;
    if (!tap_begin("what is shipped is not for variants that are loaded"))
        return;
    begin("NVIDIA H200");
    tap_expect(
        schedule_choose(&context, &mine, context.machine.target, &class, &sizes, (struct wish){NULL, 0}, &choice) &&
            strcmp(choice.origin, "default") == 0,
        "found %s", choice.origin);
    end();
}

struct shipped {
    int n, n_backward;
};

/* The other way round than tg_wisdom_of. */
static bool read_name(const char *text, const tg_variant **variant, tg_shape_class *class)
{
    const tg_device none = {.struct_size = sizeof none};
    const tg_sizes sizes = {0};
    char name[sizeof((tg_wisdom *)0)->variant];
    tg_wisdom again;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "+"), text);
    for (const char *at = text; (at = strchr(at, '+')) != NULL; at++) {
        class->group = at[1] == 'g' ? (uint32_t)atoi(at + 2) : class->group;
        class->tokens = at[1] == 't' ? (uint32_t)atoi(at + 2) : class->tokens;
        class->packed |= strncmp(at, "+cu", 3) == 0;
        class->pooled |= strncmp(at, "+pool", 5) == 0;
    }
    *variant = tg_variant_find(name);
    return *variant && tg_wisdom_of(&none, *variant, class, &sizes, &again) && strcmp(again.variant, text) == 0;
}

static double predicted(const tg_schedule *schedule, const tg_shape_class *class, const tg_wisdom *entry)
{
    const tg_sizes sizes = {entry->batch, entry->heads, entry->tokens, schedule->chunk};
    tg_cost cost = {0};
    tg_cost_estimate(schedule, context.machine.target, class, &sizes, &cost, &silent_sink);
    return 1e3 * cost.seconds;
}

static bool fits(const tg_wisdom *entry, const tg_variant *variant, const tg_shape_class *class, tg_schedule *schedule)
{
    const tg_target *target = context.machine.target;
    return tap_expect(schedule_from_text(&context, variant, target, class, NULL, entry->schedule, schedule) &&
                          tg_plan_check(schedule, target, class, &context.sink) == TG_OK,
                      "%s does not fit", entry->schedule) &&
           tap_expect(schedule->chunk == entry->chunk, "%s: chunk is %u, remembered as %lld", entry->schedule,
                      schedule->chunk, (long long)entry->chunk);
}

static void check_entry(void *user, const tg_wisdom *entry)
{
    /* As far as the model may be wrong (tuning/tune_search.c); and not by the factor of another unit. */
    const double unlikely = 1.6, absurd = 3;
    struct shipped *shipped = user;
    const tg_variant *variant;
    tg_schedule schedule;
    tg_dtype io = TG_BF16;
    tg_shape_class class = {.dqk = (uint32_t)entry->dqk, .dhv = (uint32_t)entry->dhv, .group = 1};
    shipped->n++;
    shipped->n_backward += strstr(entry->variant, "-backward") != NULL;
    tap_expect(strcmp(entry->device, "NVIDIA H200") == 0 && entry->cc == 90, "for %s, %d", entry->device, entry->cc);
    if (!tap_expect(read_name(entry->variant, &variant, &class), "unknown variant %s", entry->variant) ||
        !tap_expect(dtype_parse(&context, entry->dtype, &io), "type %s", entry->dtype))
        return;
    class.io = io;
    if (!fits(entry, variant, &class, &schedule))
        return;
    const tg_sizes sizes = {entry->batch, entry->heads, entry->tokens, 0};
    tg_schedule chosen;
    const bool any =
        tg_schedule_default(variant, context.machine.target, &class, &sizes, &chosen, &silent_sink) == TG_OK;
    const double own = predicted(&schedule, &class, entry), best = any ? predicted(&chosen, &class, entry) : 0;
    tap_expect(own <= unlikely * best, "%s %s: predicted %.3f ms, the default %.3f", entry->variant, entry->schedule,
               own, best);
    tap_expect(entry->milliseconds < absurd * own && entry->milliseconds > own / absurd,
               "%s %s: %.3f ms, predicted %.3f", entry->variant, entry->schedule, entry->milliseconds, own);
}

static void count_messages(void *user, const tg_diag *diag)
{
    tap_expect(false, "%s", diag->message);
    ++*(int *)user;
}

static void suite_lines(void)
{
    struct shipped shipped = {0};
    int n_messages = 0;
    const tg_sink sink = {count_messages, &n_messages};
    if (!tap_begin("every line that is shipped parses, and its schedule fits and is not slow"))
        return;
    begin("NVIDIA H200");
    tap_expect(tg_wisdom_each(tg_shipped_wisdom, tg_shipped_name, check_entry, &shipped, &sink) == TG_OK, "not read");
    tap_expect(n_messages == 0, "%d messages", n_messages);
    tap_expect(shipped.n >= 28 && shipped.n_backward >= 14, "only %d lines, %d of gradients", shipped.n,
               shipped.n_backward);
    end();
}

int main(int argc, char **argv)
{
    if (!usage_is(argc, argv, 0, 0, "") || !mkdtemp(folder))
        return 2;
    snprintf(file, sizeof file, "%s/wisdom.txt", folder);
    snprintf(lock, sizeof lock, "%s.lock", file);
    suite_near();
    suite_behind();
    suite_unfit();
    suite_chunk();
    suite_shipped();
    suite_loaded();
    suite_lines();
    (void)unlink(file);
    (void)unlink(lock);
    (void)rmdir(folder);
    return tap_finish();
}
