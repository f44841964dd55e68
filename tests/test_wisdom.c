/* tests/test_wisdom.c - which schedule a call on a GPU gets: what is remembered, or the cost
 * model's choice. Nothing is launched, so a name and a compute capability do for a GPU. */
#include "cli/cli.h"
#include "kernels/tap.h"
#include "variants/variants.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct context context;
static char folder[] = "/tmp/test_wisdom-XXXXXX", file[64], lock[80];

/* Another GPU than those of which wisdom is shipped. */
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
static void expect(int64_t batch, int64_t heads, int64_t tokens, int64_t chunk,
                   const char *schedule, const char *origin)
{
    const struct shape sizes = {
        .batch = batch, .heads = heads, .tokens = tokens, .dqk = 128, .dhv = 256};
    const tg_shape_class class = shape_class_of(&sizes, TG_BF16);
    const struct wish wish = {NULL, chunk};
    char text[SCHEDULE_TEXT];
    struct choice choice;
    context.options.chunk = chunk;
    if (!tap_expect(schedule_choose(&context, &tg_mlstm_sig, context.machine.target, &class, &sizes,
                                    wish, &choice),
                    "none for B %lld NH %lld T %lld", (long long)batch, (long long)heads,
                    (long long)tokens))
        return;
    schedule_text(&tg_mlstm_sig, &choice.schedule, text);
    tap_expect((!*schedule || strcmp(text, schedule) == 0) && strcmp(choice.origin, origin) == 0,
               "B %lld NH %lld T %lld: expected %s (%s), found %s (%s)", (long long)batch,
               (long long)heads, (long long)tokens, schedule, origin, text, choice.origin);
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
    expect(1, 8, 32768, 0, "segments-short", "default"); /* 32 thread blocks for 132 */
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

int main(void)
{
    if (!mkdtemp(folder))
        return 2;
    snprintf(file, sizeof file, "%s/wisdom.txt", folder);
    snprintf(lock, sizeof lock, "%s.lock", file);
    suite_near();
    suite_behind();
    suite_unfit();
    suite_chunk();
    (void)unlink(file);
    (void)unlink(lock);
    (void)rmdir(folder);
    return tap_finish();
}
