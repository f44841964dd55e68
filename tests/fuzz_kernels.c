/* fuzz_kernels.c - random calls of every variant, forward and backward, with gates of every kind, by default and by schedules by
 * name, as tests/test_kernels runs them and judges them by fp64. What is refused is passed over.
 *
 *     fuzz_kernels [--device emu|N] [--seconds N] [--seed FIRST] [--count N] [--each N]
 *
 * A call follows from its seed: `--seed 17 --count 1` repeats it. On the emulator calls are smaller. Of `--each N` seeds one is
 * tried, so that N processes with neighbouring first seeds share them. */
#include "kernels/harness.h"
#include "kernels/tap.h"
#include "tests/usage.h"

#include <stdlib.h>
#include <string.h>

static const int64_t widths[] = {16, 24, 32, 40, 64, 64, 64, 72, 96, 128, 128, 128, 136, 192, 200, 256, 264, 384, 512},
                     lengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 333, 500, 1000, 2000, 4100};
static const enum gates regimes[] = {ORDINARY, ORDINARY, DECAY, EXTREME, EXTREME, OPEN, CLOSED, MASKED};
enum { MOST_SEQUENCES = 4, ON_EMULATOR = 20 << 20, ON_GPU = 500 << 20 };

/* A call, and the texts that it points to. */
struct drawn {
    struct spec spec;
    tg_schedule forward, backward;
    char cuts[128];
};

/* Numbers of a seed, one after the other. */
struct dice {
    tg_random random;
    uint64_t n;
};

static uint64_t roll(struct dice *dice, uint64_t sides)
{
    return tg_num_bits(dice->random, dice->n++) % sides;
}

#define ONE_OF(dice, list) ((list)[roll(dice, sizeof(list) / sizeof *(list))])

/* A schedule by name, of all that the variant has. */
static const char *draw_schedule(struct dice *dice, const tg_variant *variant, tg_schedule *schedule)
{
    uint32_t n = 0;
    while (tg_variant_schedule(variant, n, schedule))
        n++;
    return roll(dice, 2) && tg_variant_schedule(variant, (uint32_t)roll(dice, n), schedule) ? schedule->name : "";
}

static int64_t work_of(const struct spec *spec)
{
    return spec->batch * spec->heads * spec->tokens * spec->dqk * spec->dhv;
}

/* Sequences of all lengths, none among them. */
static void draw_cuts(struct dice *dice, struct drawn *drawn)
{
    int64_t at = 0;
    size_t n = (size_t)snprintf(drawn->cuts, sizeof drawn->cuts, "0");
    for (uint64_t s = 1 + roll(dice, MOST_SEQUENCES); s > 0; s--) {
        at += roll(dice, 4) ? 1 + (int64_t)roll(dice, (uint64_t)drawn->spec.tokens) : 0;
        n += (size_t)snprintf(drawn->cuts + n, sizeof drawn->cuts - n, " %d", (int)at);
    }
    drawn->spec.cuts = drawn->cuts;
}

static void draw_sizes(struct dice *dice, struct spec *spec)
{
    spec->io = roll(dice, 5) ? roll(dice, 4) ? TG_BF16 : TG_F16 : TG_F32;
    spec->group = 1 + (int64_t)roll(dice, 4) * (int64_t)roll(dice, 2);
    spec->batch = 1 + (int64_t)roll(dice, 2);
    spec->heads = spec->group * (1 + (int64_t)roll(dice, 2));
    spec->tokens = ONE_OF(dice, lengths);
    spec->dqk = ONE_OF(dice, widths);
    spec->dhv = roll(dice, 3) ? ONE_OF(dice, widths) : spec->dqk;
    while (work_of(spec) > (on_emulator() ? ON_EMULATOR : ON_GPU) && spec->tokens > 1)
        spec->tokens /= 2;
}

/* Does a decay of its own belong to every channel? */
static bool decays_by_channel(const tg_variant *variant)
{
    bool any = false;
    for (uint32_t i = 1; i < variant->algorithm->n_tensors; i++) {
        const tg_tensor *t = &variant->algorithm->tensors[i];
        const bool is_gate = t->drawn == TG_DRAWN_FORGET || t->drawn == TG_DRAWN_LOG_DECAY || t->drawn == TG_DRAWN_STEP;
        any |= is_gate && (t->axes[1] == TG_DQK || t->axes[1] == TG_DHV);
    }
    return any;
}

/* Are gradients 1e-12 of their parts and less? Nobody's roundings resolve these, nor does the judge know what they are: of one token
 * that is divided by what normalises it; of decays of channels, or of rows divided by their lengths, where gates are saturated. */
static bool cancels(const struct spec *spec, const tg_variant *variant)
{
    const bool is_normalised = strncmp(spec->variant, "nla", 3) == 0 || strcmp(spec->variant, "mlstm-exp") == 0 ||
                               strcmp(spec->variant, "mlstm-sig-norm") == 0,
               is_saturated = spec->gates != ORDINARY && spec->gates != MASKED,
               has_units = strncmp(spec->variant, "gated-delta-", 12) == 0;
    return (is_normalised && spec->tokens == 1) || (decays_by_channel(variant) && is_saturated) ||
           (has_units && spec->gates == CLOSED);
}

static void draw(uint64_t seed, struct drawn *drawn)
{
    struct dice dice = {{seed, tg_num_stream("calls")}, 0};
    struct spec *spec = &drawn->spec;
    uint64_t n = 0;
    while (tg_builtin_variants[n])
        n++;
    const tg_variant *variant = tg_builtin_variants[roll(&dice, n)];
    *spec = (struct spec){.name = "", .variant = variant->name, .gates = ONE_OF(&dice, regimes)};
    draw_sizes(&dice, spec);
    spec->schedule = draw_schedule(&dice, variant, &drawn->forward);
    spec->backward =
        variant->backward && roll(&dice, 2) ? draw_schedule(&dice, variant->backward, &drawn->backward) : NULL;
    spec->has_s0 = roll(&dice, 2);
    spec->no_final = roll(&dice, 6) == 0;
    spec->zero_states = roll(&dice, 12) == 0;
    spec->layout = (enum layout)roll(&dice, 3);
    spec->is_pooled = spec->has_s0 && roll(&dice, 5) == 0;
    spec->scale = roll(&dice, 8) ? 0 : 1;
    if (roll(&dice, 4) == 0)
        draw_cuts(&dice, drawn);
    spec->is_wide = spec->cuts && roll(&dice, 4) == 0;
    if (spec->io == TG_F32 && spec->gates == MASKED)
        spec->gates = ORDINARY; /* docs/limits.md: not to the last bits behind them */
    if (cancels(spec, variant))
        spec->backward = NULL;
    if (!*spec->schedule || !drawn->forward.max_tokens)
        return;
    spec->tokens = 1 + (int64_t)roll(&dice, drawn->forward.max_tokens);
    spec->cuts = NULL;
    spec->backward = NULL;
}

static const char *const regime_names[] = {"ordinary", "decay", "extreme", "open", "closed", "masked", "crossing"};

static void try_seed(uint64_t seed)
{
    struct drawn drawn;
    draw(seed, &drawn);
    const struct spec *s = &drawn.spec;
    if (!spec_is_accepted(s) ||
        !tap_begin("seed %llu: %s %s B=%d NH=%d T=%d dqk=%d dhv=%d group %d, gates %s, cuts %s, layout %d%s%s%s%s, "
                   "schedule '%s', backward %s",
                   (unsigned long long)seed, s->variant, tg_dtype_name(s->io), (int)s->batch, (int)s->heads,
                   (int)s->tokens, (int)s->dqk, (int)s->dhv, (int)s->group, regime_names[s->gates],
                   s->cuts ? s->cuts : "-", (int)s->layout, s->has_s0 ? ", states" : "",
                   s->no_final ? ", no final ones" : "", s->is_pooled ? ", pooled" : "",
                   s->scale > 0 ? ", scale 1" : "", s->schedule, s->backward ? s->backward : "-"))
        return;
    try_both_ways(s, seed);
    tap_end();
}

int main(int argc, char **argv)
{
    const char *device = "emu";
    uint64_t seed = 1, count = UINT64_MAX, each = 1;
    double seconds = 60;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--device") == 0 && *value)
            device = value;
        else if (strcmp(argv[i], "--seconds") == 0 && *value)
            seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--seed") == 0 && *value)
            seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--count") == 0 && *value)
            count = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--each") == 0 && strtoull(value, NULL, 10))
            each = strtoull(value, NULL, 10);
        else
            return usage_wrong(argv, argv[i], "[--device emu|N] [--seconds N] [--seed FIRST] [--count N] [--each N]");
    }
    if (!harness_open(device))
        return 2;
    emulator_threads(1);
    const double end = now() + seconds;
    for (; count > 0 && now() < end; count--, seed += each)
        try_seed(seed);
    harness_close();
    return tap_finish();
}
