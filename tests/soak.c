/* tests/soak.c DRIVER [--rounds N | --seconds S] [--seed SEED] - an engine in miniature, over a pool of slots: sequences
 * are admitted, prefilled in pieces, decoded, speculated on, evicted, resumed and finished in a random order.
 *
 * Two programs work on one pool: a packed prefill between slots of their own, and counted steps with the state behind every
 * token. After every step all slots that it was not given must be as they were, NaN where they are nobody's. One sequence
 * of a step is repeated alone, from a copy of its state and without the tokens that were rejected: the same bits. What
 * the accepted tokens made, pieced together, is compared with fp64 over the whole sequence. A round follows from its
 * seed. */
#include "tests/soak/soak.h"

#include "tests/kernels/tap.h"
#include "variants/variants.h"
#include "tests/usage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 50 }; /* of a round */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* ---- what is compared ---- */

/* The same part alone, from a copy of its state and without what was rejected. */
static void repeat_alone(struct engine *e, const struct step *step, const struct part *part)
{
    struct step alone = {.is_prefill = step->is_prefill, .n = 1, .parts = {*part}};
    struct part *copy = &alone.parts[0];
    tg_problem *problem = &part->sequence->problem;
    unsigned char *before[TG_MAX_TENSORS] = {NULL};
    const int n_slots = step->is_prefill ? 1 : part->accepted;
    copy->length = copy->count = part->accepted;
    if (part->from >= 0)
        slot_put(e, copy->from = slot_take(e), e->slots + (size_t)part->from * e->slot_bytes);
    for (int j = 0; j < n_slots; j++)
        copy->to[j] = slot_take(e);
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        before[i] = malloc(problem->tensors[i].bytes + 1);
        if (problem->tensors[i].has_tokens)
            memcpy(before[i], problem->tensors[i].data, problem->tensors[i].bytes);
    }
    step_run(e, &alone);
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *host = &problem->tensors[i];
        must(e, !host->has_tokens || memcmp(before[i], host->data, host->bytes) == 0, "alone, other outputs");
        free(before[i]);
    }
    for (int j = 0; j < n_slots; j++) {
        must(e,
             memcmp(e->slots + (size_t)copy->to[j] * e->slot_bytes, e->slots + (size_t)part->to[j] * e->slot_bytes,
                    e->slot_bytes) == 0,
             "alone, another state");
        slot_free(e, copy->to[j]);
    }
    slot_free(e, copy->from);
}

static tg_num_type state_type(const struct kind *kind)
{
    return kind->state == TG_F32 ? TG_NUM_F32 : TG_NUM_BF16;
}

/* A slot of the pool as a state in fp32, [HEADS, dqk, dhv]. */
static void state_of(const struct engine *e, const void *slot, float *state)
{
    const uint32_t dqk = e->kind->dqk, dhv = e->kind->dhv;
    for (uint32_t i = 0; i < HEADS * dqk * dhv; i++) {
        const uint32_t head = i / (dqk * dhv), row = i / dhv % dqk, column = i % dhv;
        const uint32_t at = e->kind->values_first ? (head * dhv + column) * dqk + row : i;
        state[i] = (float)tg_num_load(slot, state_type(e->kind), at);
    }
}

/* The sequence as one call of its tokens so far. */
static bool prefix_of(const struct engine *e, const struct sequence *sequence, tg_problem *prefix)
{
    const tg_shape shape = {
        .batch = 1, .heads = HEADS, .tokens = sequence->at, .dqk = e->kind->dqk, .dhv = e->kind->dhv};
    if (tg_problem_layout(e->variant, NULL, &shape, TG_BF16, prefix, &soak_sink) != TG_OK)
        return false;
    for (uint32_t i = 0; i < prefix->n_tensors; i++) {
        tg_host_tensor *to = &prefix->tensors[i];
        const tg_host_tensor *from = &sequence->problem.tensors[i];
        if (tg_problem_allocate(to, &soak_sink) != TG_OK)
            return false;
        if (!to->has_tokens && to->flags & TG_OUT)
            state_of(e, e->slots + (size_t)sequence->slot * e->slot_bytes, to->data);
        else if (!to->has_tokens && e->values[i])
            memcpy(to->data, e->values[i], to->bytes);
        else if (!to->has_tokens)
            memset(to->data, 0, to->bytes);
        for (size_t h = 0; h < HEADS && to->has_tokens; h++)
            memcpy((char *)to->data + h * to->bytes / HEADS, (char *)from->data + h * from->bytes / HEADS,
                   to->bytes / HEADS);
    }
    return true;
}

/* Each call rounds a state that is kept in 16 bits by at most half a unit in the last place, 2^-9 in bf16, of which as
 * many as there were calls add up like independent errors: that much more than of a state in fp32. */
static bool is_near(const tg_problem *prefix, const tg_host_tensor *tensor, const tg_truth *truth, int calls)
{
    const tg_const_array reference = {truth->out[tensor->tile], TG_NUM_F64, tensor->n};
    const tg_verdict verdict = tg_judge(prefix, tensor, reference, (tg_levels){0, 0});
    const double more = ldexp(sqrt(calls), -9);
    const bool ok =
        verdict.error.rms_ratio <= verdict.rms_limit + more && verdict.error.max_ratio <= verdict.max_limit + 10 * more;
    if (!ok)
        tap_note("%s: RMS %.2g, limit %.2g, after %d calls", verdict.name, verdict.error.rms_ratio,
                 verdict.rms_limit + more, calls);
    return ok;
}

static bool is_right(const struct engine *e, const struct sequence *sequence, const tg_problem *prefix,
                     const tg_truth *truth)
{
    bool ok = true;
    if (e->kind->state == TG_F32) {
        const tg_verdict worst = tg_judge_all(prefix, truth, 64, &soak_sink);
        if (!worst.ok)
            tap_note("%s: RMS %.2g, limit %.2g", worst.name, worst.error.rms_ratio, worst.rms_limit);
        return worst.ok;
    }
    for (uint32_t i = 0; i < prefix->n_tensors && ok; i++)
        ok = !(prefix->tensors[i].flags & TG_OUT) || is_near(prefix, &prefix->tensors[i], truth, sequence->calls);
    return ok;
}

static void compare_with_truth(struct engine *e, const struct sequence *sequence)
{
    tg_problem prefix = {0};
    tg_truth truth = {0};
    if (must(e, prefix_of(e, sequence, &prefix) && tg_truth_compute(&prefix, 0, NULL, &truth, &soak_sink) == TG_OK,
             "the truth"))
        must(e, is_right(e, sequence, &prefix, &truth), "not within the level of fp64");
    tg_truth_free(&truth);
    tg_problem_free(&prefix);
}

/* ---- the engine ---- */

/* Those of the first sequence are everyone's. */
static bool share_parameter(struct engine *e, uint32_t i, tg_host_tensor *tensor)
{
    const size_t state = sizeof(float) * HEADS * e->kind->dqk * e->kind->dhv;
    if (tensor->has_tokens || tensor->flags & TG_OUT || tensor->bytes == state)
        return true;
    if (e->values[i]) {
        memcpy(tensor->data, e->values[i], tensor->bytes);
        return true;
    }
    e->values[i] = malloc(tensor->bytes);
    memcpy(e->values[i], tensor->data, tensor->bytes);
    return tg_memory_alloc(e->machine->driver, tensor->bytes, &e->parameters[i], &soak_sink) == TG_OK &&
           tg_memory_in(e->machine->driver, e->parameters[i], tensor->data, tensor->bytes, &soak_sink) == TG_OK;
}

static void admit(struct engine *e, struct sequence *sequence)
{
    const tg_shape shape = {.batch = 1, .heads = HEADS, .tokens = LENGTH, .dqk = e->kind->dqk, .dhv = e->kind->dhv};
    *sequence = (struct sequence){.slot = -1};
    bool ok = tg_problem_random(e->variant, NULL, &shape, TG_BF16, e->seed * 1000 + e->drawn, NULL, &sequence->problem,
                                &soak_sink) == TG_OK;
    for (uint32_t i = 0; i < sequence->problem.n_tensors && ok; i++) {
        tg_host_tensor *tensor = &sequence->problem.tensors[i];
        ok = tensor->flags & TG_OUT ? tg_problem_allocate(tensor, &soak_sink) == TG_OK : share_parameter(e, i, tensor);
    }
    must(e, ok, "a problem");
}

static void finish(struct engine *e, struct sequence *sequence)
{
    if (sequence->at && e->ok)
        compare_with_truth(e, sequence);
    e->reached[ENDED]++;
    slot_free(e, sequence->slot);
    tg_problem_free(&sequence->problem);
}

/* Its snapshot leaves the pool. */
static void evict(struct engine *e, struct sequence *sequence)
{
    if (sequence->slot < 0)
        return;
    sequence->snapshot = malloc(e->slot_bytes);
    memcpy(sequence->snapshot, e->slots + (size_t)sequence->slot * e->slot_bytes, e->slot_bytes);
    slot_free(e, sequence->slot);
    sequence->is_away = true;
    e->reached[EVICTED]++;
}

static void resume(struct engine *e, struct sequence *sequence)
{
    slot_put(e, sequence->slot = slot_take(e), sequence->snapshot);
    free(sequence->snapshot);
    sequence->is_away = false;
    e->reached[RESUMED]++;
}

static void add_part(struct engine *e, struct step *step, struct sequence *sequence)
{
    struct part *part = &step->parts[step->n++];
    const int most = step->is_prefill ? (draw(e, 4) ? 16 : 80) : MOST_DRAFT;
    *part = (struct part){.sequence = sequence, .at = sequence->at, .from = sequence->slot};
    part->count = 1 + draw(e, least(most, LENGTH - sequence->at));
    part->length = part->count + (step->is_prefill ? 0 : draw(e, MOST_DRAFT + 1 - part->count));
    part->accepted = step->is_prefill ? part->count : 1 + draw(e, part->count);
    for (int j = 0; j < (step->is_prefill ? 1 : part->count); j++)
        part->to[j] = slot_take(e);
}

/* A sequence without slots, or a step's of which no token counts: memory that nobody may read. */
static void add_padding(struct engine *e, struct step *step)
{
    struct part *part = &step->parts[step->n++];
    *part = (struct part){.from = -1, .to = {-1}, .length = 1 + draw(e, MOST_DRAFT)};
    e->reached[PADDED]++;
}

static void accept(struct engine *e, const struct step *step, const struct part *part)
{
    struct sequence *sequence = part->sequence;
    const int n = step->is_prefill ? 1 : part->count, kept = step->is_prefill ? 0 : part->accepted - 1;
    slot_free(e, part->from);
    for (int j = 0; j < n; j++)
        if (j != kept)
            slot_free(e, part->to[j]);
    e->reached[step->is_prefill ? PREFILLED : DECODED]++;
    e->reached[IN_PIECES] += step->is_prefill && sequence->at > 0;
    e->reached[REJECTED] += part->accepted < part->count;
    sequence->slot = part->to[kept];
    sequence->at += part->accepted;
    sequence->calls++;
}

static void serve(struct engine *e)
{
    struct step step = {.is_prefill = draw(e, 3) == 0};
    const struct part *repeated = NULL;
    for (int s = 0; s < MOST_LIVE; s++) {
        if (draw(e, 4) == 0)
            add_padding(e, &step);
        if (!e->live[s].is_away && draw(e, 3))
            add_part(e, &step, &e->live[s]);
    }
    if (step.n == 0)
        return;
    step_run(e, &step);
    e->steps++;
    for (int p = 0; p < step.n; p++)
        if (step.parts[p].sequence && draw(e, 2))
            repeated = &step.parts[p];
    if (repeated && e->ok)
        repeat_alone(e, &step, repeated);
    for (int p = 0; p < step.n; p++)
        if (step.parts[p].sequence)
            accept(e, &step, &step.parts[p]);
}

/* What happens to a sequence between two steps; in the place of one that ends another begins. */
static void manage(struct engine *e, struct sequence *sequence)
{
    const int what = draw(e, 16);
    if (sequence->is_away && what < 6)
        resume(e, sequence);
    else if (sequence->is_away)
        return;
    else if (sequence->at == LENGTH || (what == 0 && sequence->at)) {
        finish(e, sequence);
        admit(e, sequence);
    } else if (what == 1)
        evict(e, sequence);
    else if (what == 2 && sequence->at)
        compare_with_truth(e, sequence);
}

static void play_round(struct engine *e, uint64_t seed)
{
    e->seed = seed;
    e->drawn = 0;
    for (int s = 0; s < MOST_LIVE; s++)
        admit(e, &e->live[s]);
    for (int i = 0; i < STEPS && e->ok; i++) {
        serve(e);
        for (int s = 0; s < MOST_LIVE && e->ok; s++)
            manage(e, &e->live[s]);
    }
    for (int s = 0; s < MOST_LIVE; s++) {
        if (e->live[s].is_away)
            resume(e, &e->live[s]);
        finish(e, &e->live[s]);
    }
}

/* ---- the test ---- */

static bool prepare(struct engine *e, tg_jit *jit)
{
    const struct kind *kind = e->kind;
    const tg_shape_class prefill = {.io = TG_BF16,
                                    .dqk = kind->dqk,
                                    .dhv = kind->dhv,
                                    .packed = 1,
                                    .pooled = TG_POOL_MOVES,
                                    .state = kind->state,
                                    .values_first = kind->values_first};
    tg_shape_class decode = prefill;
    decode.pooled = TG_POOL_TOKENS;
    decode.tokens = MOST_DRAFT;
    decode.counted = 1;
    e->slot_bytes = tg_num_bytes(state_type(kind)) * HEADS * kind->dqk * kind->dhv;
    e->slots = malloc(SLOTS * e->slot_bytes);
    memset(e->slots, POISON, SLOTS * e->slot_bytes);
    return tg_jit_module(jit, e->variant, &prefill, &(tg_sizes){4, HEADS, 64, 0}, &e->prefill, &soak_sink) == TG_OK &&
           tg_jit_module(jit, e->variant, &decode, &(tg_sizes){4, HEADS, 16, 0}, &e->decode, &soak_sink) == TG_OK &&
           tg_memory_alloc(e->machine->driver, SLOTS * e->slot_bytes, &e->pool, &soak_sink) == TG_OK &&
           tg_memory_in(e->machine->driver, e->pool, e->slots, SLOTS * e->slot_bytes, &soak_sink) == TG_OK;
}

static void expect_all_reached(const struct engine *e)
{
    static const char *const names[N_EVENTS] = {
        [PREFILLED] = "prefill", [DECODED] = "decode",   [IN_PIECES] = "prefill in pieces", [REJECTED] = "rejection",
        [PADDED] = "padding",    [EVICTED] = "eviction", [RESUMED] = "resumption",          [ENDED] = "end",
    };
    for (int i = 0; i < N_EVENTS && e->ok; i++)
        tap_expect(e->reached[i] > 0, "there was no %s", names[i]);
}

/* limits: rounds, seconds of this kind, seed of the first round. */
static void soak(const tg_machine *machine, tg_jit *jit, const struct kind *kind, const long long limits[3])
{
    struct engine *e = calloc(1, sizeof *e);
    const time_t end = time(NULL) + limits[1];
    e->machine = machine;
    e->kind = kind;
    e->variant = tg_variant_find(kind->variant);
    e->ok = true;
    if (!tap_begin("soak %s %u %u%s%s", kind->variant, kind->dqk, kind->dhv, kind->state == TG_F32 ? "" : " bf16",
                   kind->values_first ? " v-first" : ""))
        return free(e);
    if (tap_expect(prepare(e, jit), "cannot prepare"))
        for (long long r = 0; e->ok && (r < limits[0] || time(NULL) < end); r++)
            play_round(e, (uint64_t)(limits[2] + r));
    tap_note("%lld steps", e->steps);
    expect_all_reached(e);
    tap_end();
    for (uint32_t i = 0; i < TG_MAX_TENSORS; i++) {
        if (e->values[i])
            tg_memory_free(machine->driver, e->parameters[i]);
        free(e->values[i]);
    }
    tg_memory_free(machine->driver, e->pool);
    free(e->slots);
    free(e);
}

/* False: an option is unknown, or lacks its number. */
static bool read_options(int argc, char **argv, long long limits[3])
{
    static const char *const options[] = {"--rounds", "--seconds", "--seed"};
    for (int i = 2; i < argc; i += 2) {
        int o = 0;
        while (o < 3 && strcmp(argv[i], options[o]) != 0)
            o++;
        if (o == 3 || i + 1 == argc)
            return false;
        limits[o] = atoll(argv[i + 1]);
    }
    return argc > 1;
}

int main(int argc, char **argv)
{
    static const struct kind kinds[] = {
        {"gated-delta", 16, 24, TG_F32, false}, {"mlstm-sig", 16, 24, TG_F32, false}, {"kda", 16, 24, TG_F32, false},
        {"simple-gla", 24, 16, TG_F32, true},   {"delta-net", 32, 16, TG_F32, true},  {"mamba2", 16, 32, TG_BF16, true},
        {"gated-delta", 64, 64, TG_BF16, true}, {"kda-safe", 32, 64, TG_F32, true},
    };
    enum { N_KINDS = sizeof kinds / sizeof kinds[0] };
    long long limits[3] = {1, 0, 1}; /* rounds of a kind, seconds in all, seed */
    tg_driver *driver;
    tg_machine machine;
    tg_jit *jit;
    if (!read_options(argc, argv, limits) || argv[1][0] == '-')
        return usage_wrong(argv, argv[argc > 1], "DRIVER [--rounds N | --seconds S] [--seed SEED]");
    if (tg_driver_open(argv[1], &driver, &soak_sink) != TG_OK || tg_context_acquire(driver, 0, &soak_sink) != TG_OK ||
        tg_machine_of(driver, 0, &machine, &soak_sink) != TG_OK ||
        tg_jit_open(driver, 0, NULL, &jit, &soak_sink) != TG_OK)
        return 2;
    limits[1] /= N_KINDS;
    for (int k = 0; k < N_KINDS; k++)
        soak(&machine, jit, &kinds[k], limits);
    tg_jit_close(jit);
    tg_context_release(driver, 0);
    tg_driver_close(driver);
    return tap_finish();
}
