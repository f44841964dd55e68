/* tests/kernels/agree.c - three forms of one operator: chunks, all tokens at once, token by token.
 * They agree to rounding, and a sequence cut into two calls is the sequence. */
#include "results.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two results of which each may be wrong by its tolerance, in different directions. */
static double limit_of(const struct spec *spec, const tg_host_tensor *tensor)
{
    const double gradient = tensor->is_gradient ? 2 : 1;
    return 1.5 * (spec->io == TG_F32 ? 2e-5 : gradient * (spec->io == TG_F16 ? 1e-3 : 4e-3));
}

static void agree(struct results *x, struct results *y, const struct spec *spec, const char *what)
{
    for (uint32_t i = 0; i < x->n; i++) {
        const tg_host_tensor *other = results_find(y, x->tensors[i].name);
        if (other)
            expect_near(&x->tensors[i], other, limit_of(spec, &x->tensors[i]), what);
    }
}

/* The last is longer than the sequence: one chunk, the parallel form. */
static void chunks_agree(const struct spec *base)
{
    static const int64_t chunks[] = {64, 128, 192, 512};
    struct results first = {.n = 0};
    struct spec spec = *base;
    spec.schedule = spec.backward = spec.io == TG_F32 ? "tfla-fp32" : "tfla-small";
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct results again = {.n = 0};
        char what[32];
        spec.chunk = chunks[i];
        snprintf(what, sizeof what, "chunk size %d", (int)chunks[i]);
        if (!results_of(&spec, i ? &again : &first))
            break;
        agree(&again, &first, &spec, what);
        results_free(&again);
    }
    results_free(&first);
}

/* A state on chip and states in memory. */
static void schedules_agree(const struct spec *spec)
{
    struct spec other = *spec;
    struct results x = {.n = 0}, y = {.n = 0};
    other.schedule = "tfla-small";
    if (results_of(spec, &x) && results_of(&other, &y))
        agree(&x, &y, spec, other.schedule);
    results_free(&x);
    results_free(&y);
}

/* ---- calls one after the other ---- */

/* The whole call, and what a run of calls over parts of it makes of its outputs. */
struct stream {
    struct trial whole;
    struct results made; /* the whole's outputs, filled part by part */
    tg_host_tensor states[TG_MAX_TENSORS];
    uint32_t n_states;
};

static bool stream_open(struct stream *stream, const struct spec *spec)
{
    if (!trial_open(&stream->whole, spec))
        return false;
    if (!trial_runs(&stream->whole)) {
        trial_close(&stream->whole);
        return false;
    }
    for (uint32_t i = 0; i < stream->whole.problem.n_tensors; i++) {
        const tg_host_tensor *tensor = &stream->whole.problem.tensors[i];
        if (!(tensor->flags & TG_OUT))
            continue;
        tg_host_tensor *made = &stream->made.tensors[stream->made.n++];
        *made = *tensor;
        made->data = calloc(1, made->bytes + 1);
    }
    return true;
}

static void stream_close(struct stream *stream)
{
    results_free(&stream->made);
    trial_close(&stream->whole);
}

/* The final state of an initial one: C of C0. */
static tg_host_tensor *final_of(struct stream *stream, const tg_host_tensor *initial)
{
    char name[16];
    const size_t n = strlen(initial->name) - 1;
    if (!(initial->flags & TG_IN) || !(initial->flags & TG_OPTIONAL) || initial->name[n] != '0')
        return NULL;
    snprintf(name, sizeof name, "%.*s", (int)n, initial->name);
    return results_find(&stream->made, name);
}

/* Tokens from..from + part.T of every sequence; states as the call before left them. */
static void copy_part(struct stream *stream, tg_problem *part, int64_t from, bool to_whole)
{
    for (uint32_t i = 0; i < part->n_tensors; i++) {
        tg_host_tensor *tensor = &part->tensors[i];
        tg_host_tensor *whole = tg_problem_tensor(&stream->whole.problem, tensor->name);
        if (to_whole)
            whole = results_find(&stream->made, tensor->name);
        else if (from > 0 && final_of(stream, tensor))
            whole = final_of(stream, tensor);
        if (!whole || !whole->data || !tensor->data || (!to_whole && tensor->flags & TG_OUT))
            continue;
        const int64_t batch = whole->flags & TG_NO_BATCH ? 1 : part->shape.batch;
        for (int64_t s = 0; s < batch; s++) {
            const struct part at = {&stream->whole.problem, s, from};
            tg_host_tensor one = *tensor; /* the entry of that sequence */
            one.bytes /= (size_t)batch;
            one.data = (char *)tensor->data + (size_t)s * one.bytes;
            part_of_tensor(&at, whole, &one, to_whole);
        }
    }
}

static bool stream_part(struct stream *stream, const struct spec *spec, int64_t from)
{
    struct trial part;
    if (!trial_open(&part, spec))
        return false;
    copy_part(stream, &part.problem, from, false);
    const bool ok = trial_runs(&part);
    if (ok)
        copy_part(stream, &part.problem, from, true);
    trial_close(&part);
    return ok;
}

/* `exact`: the cut is a chunk's end, so both ways compute the same chunks from the same states. */
static void two_calls(const struct spec *spec, int64_t first, bool exact)
{
    struct stream stream = {.n_states = 0};
    struct spec head = *spec, tail = *spec;
    head.tokens = first;
    tail.tokens = spec->tokens - first;
    if (!stream_open(&stream, spec))
        return;
    if (stream_part(&stream, &head, 0) && stream_part(&stream, &tail, first)) {
        struct results whole = {.n = 0};
        results_take(&whole, &stream.whole.problem);
        agree(&stream.made, &whole, spec, "in two calls");
        if (exact)
            expect_same(&stream.made, &whole, "in two calls");
        results_free(&whole);
    }
    stream_close(&stream);
}

/* ---- decode steps ---- */

/* A step computes in fp32 from first to last; what is 16 bits wide of it are its inputs and h. A
 * state after n steps is off by n roundings of 2^-24 at most, h by that and its own. */
static double step_limit(const struct spec *spec, const tg_host_tensor *tensor)
{
    const double n = (double)spec->tokens;
    const double rounding = tensor->dtype == TG_NUM_BF16 ? 0x1p-9 : tensor->dtype == TG_NUM_F16 ? 0x1p-12 : 0;
    return rounding + 0x1p-24 * n;
}

static void steps_right(struct stream *stream, const struct spec *spec)
{
    tg_truth truth;
    if (!tap_expect(truth_compute(&machine_context, &stream->whole.problem, 0, &truth), "no oracle"))
        return;
    for (uint32_t i = 0; i < stream->made.n; i++) {
        tg_host_tensor *x = &stream->made.tensors[i], y = *x;
        y.dtype = TG_NUM_F64;
        y.data = truth.out[x->tile];
        expect_near(x, &y, step_limit(spec, x), "steps against the oracle");
    }
    tg_truth_free(&truth);
}

/* Calls of `most` tokens and a last one of what is left, on states that stay in their slots. */
static void steps_agree(const struct spec *base, const char *schedule, int64_t most)
{
    struct stream stream = {.n_states = 0};
    struct spec spec = *base, step = *base;
    bool ok = true;
    spec.schedule = spec_has_schedule(&spec, "portable-small") ? "portable-small"
                    : spec_has_schedule(&spec, "rows")         ? "rows"
                    : spec.io == TG_F32                        ? "tfla-fp32"
                                                               : "tfla";
    step.schedule = schedule;
    step.is_pooled = true;
    if (!stream_open(&stream, &spec))
        return;
    for (int64_t from = 0; from < spec.tokens && ok; from += most) {
        step.tokens = spec.tokens - from < most ? spec.tokens - from : most;
        ok = stream_part(&stream, &step, from);
    }
    if (ok) {
        struct results whole = {.n = 0};
        steps_right(&stream, &spec);
        results_take(&whole, &stream.whole.problem);
        agree(&stream.made, &whole, &spec, "in steps");
        results_free(&whole);
    }
    stream_close(&stream);
}

#define TEST(text, call)                                                                                               \
    if (tap_begin("%s, %s %s", text, spec->variant, tg_dtype_name(spec->io))) {                                        \
        call;                                                                                                          \
        tap_end();                                                                                                     \
    }

/* What has no decode step has no state to go on from: every token reads all of them. */
static void test_forms(const struct spec *base)
{
    struct spec of_variant = *base;
    const struct spec *spec = &of_variant;
    const bool has_chunks = !spec_has_one_chunk(base) && spec_has_schedule(base, "tfla-small");
    of_variant.chunk = has_chunks ? base->chunk : 64;
    struct spec few = *spec, long_one = *spec;
    few.tokens = 21;
    few.batch = 2;
    few.no_final = long_one.no_final = false;
    long_one.tokens = 300;
    if (has_chunks)
        TEST("chunk sizes and the parallel form agree", chunks_agree(&long_one))
    if (!spec_has_schedule(spec, "step") && !spec_has_schedule(spec, "step8"))
        return;
    if (spec_has_schedule(spec, "step"))
        TEST("steps of one token and chunks agree", steps_agree(&few, "step", 1))
    if (spec_has_schedule(spec, "step8"))
        TEST("steps of 8 tokens and chunks agree", steps_agree(&few, "step8", 8))
    TEST("200 tokens are 120 and 80", two_calls(spec, 120, false))
    /* a max state leaves a call as a natural logarithm */
    TEST("200 tokens are 128 and 72, to the bit", two_calls(spec, 128, spec->variant != tg_mlstm_exp.name))
    TEST("200 tokens are 1 and 199", two_calls(spec, 1, false))
}

/* A max state leaves a call as a natural logarithm; none of these has one. */
static void test_walk(const struct spec *spec)
{
    TEST("the walk and states in memory agree", schedules_agree(spec))
    TEST("200 tokens walked are 120 and 80", two_calls(spec, 120, false))
    TEST("200 tokens walked are 128 and 72, to the bit", two_calls(spec, 128, true))
    TEST("200 tokens walked are 1 and 199", two_calls(spec, 1, false))
    struct spec cut = *spec;
    cut.schedule = "segments-narrow walk.seg=1 walk.dhv=128 walk.warps=8 state.dhv=128 state.warps=8";
    TEST("segments and states in memory agree", schedules_agree(&cut))
    TEST("200 tokens in segments are 120 and 80", two_calls(&cut, 120, false))
    cut.schedule = "tfla-wgmma walk.seg=1 walk.dhv=128";
    TEST("states that segments begin with and of every chunk agree", schedules_agree(&cut))
    TEST("200 tokens in started segments are 128 and 72, to the bit", two_calls(&cut, 128, true))
}
#undef TEST

/* A walk by one thread block and by several, which pass the state on. */
static void test_relays(void)
{
    static const struct {
        const char *variant, *walk, *relay, *back_walk, *back_relay;
        int64_t dqk, dhv, group;
        const char *cuts;
    } all[] = {
        {"linear", "walk walk.dhv=128", "relay seg=2 walk.dhv=128", "walk", "relay seg=1", 64, 128, 1, NULL},
        {"mlstm-sig", "walk", "relay seg=1", "walk", "relay seg=2", 128, 256, 1, NULL},
        {"mlstm-sig", "walk", "relay seg=2", "walk-joint", "relay-joint seg=1", 128, 256, 1, "0 0 5 5 205 330"},
        {"mlstm-exp", "walk-wide", "relay-wide seg=2", "walk", "relay seg=2", 128, 256, 1, NULL},
        {"mamba2", "walk walk.dhv=128", "relay seg=2 walk.dhv=128", "walk-paired", "relay-paired seg=1", 64, 128, 2,
         NULL},
        {"gla", "walk", "relay seg=1", "walk", "relay seg=2", 128, 256, 1, NULL},
        {"gla", "walk-half", "relay-half seg=2", "walk-sums", "relay-sums seg=1", 64, 256, 2, "0 0 5 5 205 470"},
        {"gated-delta", "walk", "relay seg=2", "walk", "relay seg=2", 128, 128, 1, NULL},
        {"gated-delta", "walk", "relay seg=1", "walk-paired", "relay-paired seg=2", 128, 128, 2, "0 0 5 5 205 530"},
        {"delta-net", "walk-narrow", "relay-narrow seg=2", "walk-grouped", "relay-grouped seg=3", 128, 128, 2, NULL},
        {"delta-net", "walk-keep", "relay-keep seg=2", "walk-kept", "relay-kept seg=1", 96, 72, 1, NULL},
        {"kda", "walk", "relay seg=2", "walk", "relay seg=1", 128, 128, 1, NULL},
        {"kda", "walk-made", "relay-made seg=1", "walk-sums", "relay-sums seg=2", 128, 128, 2, "0 0 5 5 205 330"},
        {"kda-safe", "walk-keep", "relay-keep seg=1", "walk-kept", "relay-kept seg=2", 128, 128, 1, NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct spec walked = {.variant = all[i].variant,
                              .io = TG_BF16,
                              .batch = 1,
                              .heads = 2,
                              .tokens = 330,
                              .dqk = all[i].dqk,
                              .dhv = all[i].dhv,
                              .group = all[i].group,
                              .cuts = all[i].cuts,
                              .schedule = all[i].walk,
                              .backward = all[i].back_walk,
                              .has_s0 = true};
        struct results one = {.n = 0}, several = {.n = 0};
        if (!tap_begin("walked and relayed to the bit, %s %s, %s", walked.variant, all[i].relay, all[i].back_relay))
            continue;
        struct spec relayed = walked;
        relayed.schedule = all[i].relay;
        relayed.backward = all[i].back_relay;
        if (results_of(&walked, &one) && results_of(&relayed, &several))
            expect_same(&several, &one, "relayed");
        results_free(&one);
        results_free(&several);
        tap_end();
    }
}

/* The same module, written down as it stands and by LLVM. */
static void writers_agree(const struct spec *spec)
{
    struct results plain = {.n = 0}, of_llvm = {.n = 0};
    const bool ok = results_anew(spec, NULL, NULL, &plain);
    harness_plainly(false);
    if (ok && results_anew(spec, NULL, NULL, &of_llvm))
        expect_same(&of_llvm, &plain, "written down and by LLVM");
    harness_plainly(true);
    results_free(&plain);
    results_free(&of_llvm);
}

static void test_writers(void)
{
    static const struct spec specs[] = {
        {.variant = "mlstm-sig", .io = TG_BF16, .dqk = 24, .dhv = 40, .schedule = "", .backward = ""},
        {.variant = "mlstm-exp", .io = TG_F32, .dqk = 24, .dhv = 40, .schedule = "", .backward = ""},
        {.variant = "gated-delta", .io = TG_F16, .dqk = 24, .dhv = 40, .schedule = "", .backward = ""},
        {.variant = "vector-decay", .io = TG_BF16, .dqk = 24, .dhv = 40, .schedule = ""},
        {.variant = "mlstm-sig",
         .io = TG_BF16,
         .dqk = 64,
         .dhv = 128,
         .schedule = "walk walk.dhv=128",
         .backward = "walk-narrow"},
        {.variant = "mlstm-exp", .io = TG_BF16, .tokens = 3, .dqk = 24, .dhv = 40, .schedule = "step8"},
    };
    for (size_t i = 0; on_emulator() && i < sizeof specs / sizeof *specs; i++) {
        struct spec spec = specs[i];
        spec.batch = 1;
        spec.heads = 2;
        spec.tokens = spec.tokens ? spec.tokens : 100;
        spec.has_s0 = true;
        if (!tap_begin("code written down gives the bits of LLVM's, %s %s %s", spec.variant, tg_dtype_name(spec.io),
                       spec.schedule))
            continue;
        writers_agree(&spec);
        tap_end();
    }
}

void suite_agree(void)
{
    test_writers();
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++) {
        const bool is_rich = *v == &tg_mlstm_sig || *v == &tg_mlstm_exp;
        for (tg_dtype io = TG_BF16; io <= (is_rich ? TG_F32 : TG_BF16); io++) {
            const struct spec spec = {.variant = (*v)->name,
                                      .io = io,
                                      .batch = 1,
                                      .heads = 3,
                                      .tokens = 200,
                                      .dqk = 24,
                                      .dhv = 40,
                                      .has_s0 = true,
                                      .chunk = 128};
            test_forms(&spec);
        }
    }
    static const tg_variant *const walks[] = {&tg_linear, &tg_simple_gla, &tg_mlstm_sig, &tg_mlstm_sig_norm};
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
        const struct spec spec = {.variant = walks[i]->name,
                                  .io = i == 0 ? TG_F16 : TG_BF16,
                                  .batch = 1,
                                  .heads = 3,
                                  .tokens = 200,
                                  .dqk = 64,
                                  .dhv = 128,
                                  .schedule = "walk walk.dhv=128",
                                  .has_s0 = true};
        test_walk(&spec);
    }
    test_relays();
    results_forget();
}
