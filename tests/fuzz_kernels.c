/* fuzz_kernels.c - random calls of every variant, forward and backward, with gates of every kind, by default and by schedules by
 * name. Most run as tests/test_kernels runs them, judged by fp64, some of these by a forward that keeps tensors for the backward;
 * the others with states as engines keep them (tests/kernels/states.h), to the bit. What is refused is passed over.
 *
 *     fuzz_kernels [--device emu|N] [--arch A] [--seconds N] [--seed FIRST] [--count N] [--each N] [--work N]
 *
 * A call follows from its seed: `--seed 17 --count 1` repeats it. A call has at most `--work` numbers of tokens x dqk x dhv, of all
 * its heads: less on the emulator, so `--work 524288000 --arch sm_90a` repeats there what an H200 was asked. Of `--each N` seeds one
 * is tried, so that N processes with neighbouring first seeds share them. */
#include "kernels/states.h"
#include "kernels/tap.h"
#include "tests/usage.h"

#include <stdlib.h>
#include <string.h>

static const int64_t widths[] = {16, 24, 32, 40, 64, 64, 64, 72, 96, 128, 128, 128, 136, 192, 200, 256, 264, 384, 512},
                     lengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 333, 500, 1000, 2000, 4100};
static const enum gates regimes[] = {ORDINARY, ORDINARY, DECAY, UNEVEN, EXTREME, EXTREME, OPEN, CLOSED, MASKED};
enum { MOST_CUTS = 4, ON_EMULATOR = 20 << 20, ON_GPU = 500 << 20 };
static int64_t most_work;
#define USAGE "[--device emu|N] [--arch A] [--seconds N] [--seed FIRST] [--count N] [--each N] [--work N]"

/* A call, and the texts that it points to. */
struct drawn {
    struct spec spec;
    tg_schedule forward, backward;
    char cuts[128], keeping[2][TG_SCHEDULE_TEXT];
    int64_t longest; /* tokens of a sequence */
    struct contract contract;
    bool has_contract;
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

/* A schedule by name, of all that the variant has but those that go with another. */
static const char *draw_schedule(struct dice *dice, const tg_variant *variant, tg_schedule *schedule)
{
    uint32_t n = 0;
    while (tg_variant_schedule(variant, n, schedule))
        n++;
    return roll(dice, 2) && tg_variant_schedule(variant, (uint32_t)roll(dice, n), schedule) && !schedule->kept[0]
               ? schedule->name
               : "";
}

static int64_t work_of(const struct spec *spec)
{
    return spec->batch * spec->heads * spec->tokens * spec->dqk * spec->dhv;
}

/* Sequences of all lengths, none among them. */
static void draw_cuts(struct dice *dice, struct drawn *drawn)
{
    int64_t at = 0;
    drawn->longest = 0;
    size_t n = (size_t)snprintf(drawn->cuts, sizeof drawn->cuts, "0");
    for (uint64_t s = 1 + roll(dice, MOST_CUTS); s > 0; s--) {
        const int64_t length = roll(dice, 4) ? 1 + (int64_t)roll(dice, (uint64_t)drawn->spec.tokens) : 0;
        drawn->longest = length > drawn->longest ? length : drawn->longest;
        at += length;
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
    while (work_of(spec) > most_work && spec->tokens > 1)
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

/* Are gradients 1e-12 of their parts and less, so that nobody's roundings resolve these? Of tokens that are alone and divided by what
 * normalises them, or have decays of channels; where gates are saturated, of decays of channels, of lone tokens of what mLSTM
 * normalises, and in f16 of what it divides by next to nothing (docs/limits.md). */
static bool cancels(const struct drawn *drawn, const tg_variant *variant)
{
    const struct spec *spec = &drawn->spec;
    const bool is_saturated = spec->gates != ORDINARY && spec->gates != MASKED, is_alone = drawn->longest <= 1;
    if (decays_by_channel(variant))
        return is_saturated || is_alone;
    return (strncmp(spec->variant, "nla", 3) == 0 && is_alone) ||
           (strcmp(spec->variant, "mlstm-sig-norm") == 0 && is_saturated && is_alone) ||
           (strcmp(spec->variant, "mlstm-exp") == 0 && is_saturated && (is_alone || spec->io == TG_F16));
}

/* A schedule that keeps tensors, if the variant has any, and what goes with it backward. */
static void draw_keeping(struct dice *dice, const tg_variant *variant, struct drawn *drawn)
{
    struct spec *s = &drawn->spec;
    const tg_shape shape = {
        s->batch, s->heads, s->tokens, s->dqk, s->dhv, .group = s->group, .packed = s->cuts != NULL};
    const tg_shape_class class = tg_shape_class_of(&shape, s->io);
    const tg_sizes sizes = tg_sizes_of(&shape, 0);
    const tg_target *target =
        on_emulator() && roll(dice, 2) ? tg_target_find("sm_90a") : machine_context.machine.target;
    const uint64_t die = roll(dice, 64);
    const bool is_given = die < 48; /* else the pair is the model's */
    tg_keeping pair;
    for (uint32_t i = 0; tg_variant_schedule(variant, i, &drawn->forward); i++)
        if (i >= die % 16 && drawn->forward.kept[0] &&
            tg_schedules_keeping(variant, is_given ? &drawn->forward : NULL, target, &class, &sizes, &pair)) {
            tg_schedule_text(variant, &pair.forward, drawn->keeping[0]);
            tg_schedule_text(variant->backward, &pair.backward, drawn->keeping[1]);
            s->schedule = drawn->keeping[0];
            s->backward = drawn->keeping[1];
            return;
        }
}

/* Slots of a pool, none of them twice. */
struct slots {
    uint64_t first, step;
    int used;
};
enum { N_SLOTS = 16 };

static int next_slot(struct slots *slots)
{
    return slots->used < N_SLOTS ? (int)((slots->first + (uint64_t)slots->used++ * slots->step) % N_SLOTS) : -1;
}

/* Decode steps of ragged sequences, and the states of all their tokens; those of a forward's chunks. */
static void draw_ragged(struct dice *dice, struct drawn *drawn, struct slots *slots)
{
    struct spec *s = &drawn->spec;
    struct contract *c = &drawn->contract;
    const bool is_step = drawn->forward.max_tokens;
    if (!is_step && (s->cuts || drawn->forward.chunk != 64 || roll(dice, 4)))
        return;
    if (!is_step)
        s->tokens = 1 + (int64_t)roll(dice, 256);
    c->is_packed = roll(dice, 3) == 0;
    c->is_counted = is_step && roll(dice, 3) == 0;
    if (!is_step || roll(dice, 3) == 0)
        c->pool = is_step ? TG_POOL_TOKENS : TG_POOL_CHUNKS;
    for (int64_t b = 0; b < s->batch; b++) {
        c->length[b] = c->is_packed && b ? (int)roll(dice, (uint64_t)s->tokens + 1) : (int)s->tokens;
        c->count[b] = (int)roll(dice, (uint64_t)s->tokens + 3) - 1;
        for (int64_t k = 0; k * contract_step(c) < s->tokens; k++)
            c->each[b][k] = roll(dice, 4) ? next_slot(slots) : -1;
    }
}

/* States as engines keep them: schedules by name, and no more sequences than there are slots. */
static void draw_contract(struct dice *dice, struct drawn *drawn)
{
    static const tg_dtype types[] = {TG_DTYPE_NONE, TG_BF16, TG_F16, TG_F32};
    struct spec *s = &drawn->spec;
    struct contract *c = &drawn->contract;
    struct slots slots = {roll(dice, N_SLOTS), 1 + 2 * roll(dice, N_SLOTS / 2), 0};
    if (!*s->schedule)
        return;
    drawn->has_contract = s->has_s0 = true;
    s->is_pooled = s->no_final = false;
    s->layout = HEADS;
    c->pool = (tg_pooling)roll(dice, TG_POOL_MOVES + 1);
    c->state = ONE_OF(dice, types);
    c->values_first = roll(dice, 2);
    c->is_wide = roll(dice, 2);
    c->is_mixed = roll(dice, 3) == 0;
    for (int64_t b = 0; b < MOST_CUTS; b++) {
        c->read[b] = roll(dice, 4) ? next_slot(&slots) : -1;
        c->written[b] = c->pool != TG_POOL_MOVES || roll(dice, 3) == 0 ? c->read[b] : next_slot(&slots);
    }
    if (c->pool)
        draw_ragged(dice, drawn, &slots);
    if (s->cuts || (c->is_packed && !drawn->forward.max_tokens))
        c->room = (int)roll(dice, 2) * (int)roll(dice, 150);
    if (s->cuts && c->pool == TG_POOL_MOVES && drawn->longest == 0 && c->room == 0)
        c->room = 1; /* a call without tokens is refused: TG0827 */
    if (contract_is_ragged(c) || (s->backward && !*s->backward))
        s->backward = NULL;
}

/* How a call is made and judged. */
static void draw_kind(struct dice *dice, const tg_variant *variant, struct drawn *drawn)
{
    const uint64_t kind = roll(dice, 4);
    if (kind == 0 && drawn->spec.backward)
        draw_keeping(dice, variant, drawn);
    if (kind == 1)
        draw_contract(dice, drawn);
}

static void draw(uint64_t seed, struct drawn *drawn)
{
    struct dice dice = {{seed, tg_num_stream("calls")}, 0};
    struct spec *spec = &drawn->spec;
    uint64_t n = 0;
    while (tg_builtin_variants[n])
        n++;
    const tg_variant *variant = tg_builtin_variants[roll(&dice, n)];
    *drawn = (struct drawn){.spec = {.name = "", .variant = variant->name, .gates = ONE_OF(&dice, regimes)}};
    draw_sizes(&dice, spec);
    drawn->longest = spec->tokens;
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
    if (cancels(drawn, variant))
        spec->backward = NULL;
    if (*spec->schedule && drawn->forward.max_tokens) {
        spec->tokens = 1 + (int64_t)roll(&dice, drawn->forward.max_tokens);
        spec->cuts = NULL;
        spec->backward = NULL;
    }
    draw_kind(&dice, variant, drawn);
}

/* States of some types, orders and slots are refused, of some variants backward alone. */
static bool is_accepted(struct drawn *drawn)
{
    const tg_shape_class states = contract_states(&drawn->contract);
    bool is = spec_is_accepted(&drawn->spec, NULL);
    if (is && drawn->has_contract) {
        if (!spec_is_accepted(&drawn->spec, &states))
            drawn->spec.backward = NULL;
        is = spec_is_accepted(&drawn->spec, &states);
    }
    return is;
}

static const char *const regime_names[] = {"ordinary", "decay",  "uneven", "extreme",
                                           "open",     "closed", "masked", "crossing"};

static void try_seed(uint64_t seed)
{
    struct drawn drawn;
    char contract[80] = "";
    draw(seed, &drawn);
    const struct spec *s = &drawn.spec;
    const struct contract *c = &drawn.contract;
    if (drawn.has_contract)
        snprintf(contract, sizeof contract, ", pool %d, state %d%s%s%s%s%s, room %d", (int)c->pool, (int)c->state,
                 c->values_first ? ", v-first" : "", c->is_wide ? ", wide" : "", c->is_mixed ? ", mixed" : "",
                 c->is_packed ? ", packed" : "", c->is_counted ? ", counted" : "", c->room);
    if (!is_accepted(&drawn) ||
        !tap_begin("seed %llu: %s %s B=%d NH=%d T=%d dqk=%d dhv=%d group %d, gates %s, cuts %s, layout %d%s%s%s%s, "
                   "schedule '%s', backward %s%s",
                   (unsigned long long)seed, s->variant, tg_dtype_name(s->io), (int)s->batch, (int)s->heads,
                   (int)s->tokens, (int)s->dqk, (int)s->dhv, (int)s->group, regime_names[s->gates],
                   s->cuts ? s->cuts : "-", (int)s->layout, s->has_s0 ? ", states" : "",
                   s->no_final ? ", no final ones" : "", s->is_pooled ? ", pooled" : "",
                   s->scale > 0 ? ", scale 1" : "", s->schedule, s->backward ? s->backward : "-", contract))
        return;
    if (drawn.has_contract)
        try_contract(s, &drawn.contract, seed);
    else
        try_both_ways(s, seed);
    tap_end();
}

int main(int argc, char **argv)
{
    const char *device = "emu", *arch = NULL;
    uint64_t seed = 1, count = UINT64_MAX, each = 1;
    double seconds = 60;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--device") == 0 && *value)
            device = value;
        else if (strcmp(argv[i], "--arch") == 0 && *value)
            arch = value;
        else if (strcmp(argv[i], "--work") == 0 && strtoll(value, NULL, 10) > 0)
            most_work = strtoll(value, NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && *value)
            seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--seed") == 0 && *value)
            seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--count") == 0 && *value)
            count = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--each") == 0 && strtoull(value, NULL, 10))
            each = strtoull(value, NULL, 10);
        else
            return usage_wrong(argv, argv[i], USAGE);
    }
    if (!harness_open(device, arch))
        return 2;
    emulator_threads(1);
    outputs_ask_statements();
    if (!most_work)
        most_work = on_emulator() ? ON_EMULATOR : ON_GPU;
    const double end = now() + seconds;
    for (; count > 0 && now() < end; count--, seed += each)
        try_seed(seed);
    harness_close();
    return tap_finish();
}
