/* tests/kernels/properties.c - what must hold between two runs, whatever the numbers are. */
#include "harness.h"
#include "suites.h"

#include <stdlib.h>
#include <string.h>

static const struct spec base = {.io = TG_BF16,
                                 .batch = 1,
                                 .heads = 2,
                                 .tokens = 200,
                                 .dqk = 32,
                                 .dhv = 64,
                                 .chunk = 128,
                                 .has_s0 = true};
static const tg_dtype types[] = {TG_BF16, TG_F16, TG_F32};

static struct spec of_type(tg_dtype io)
{
    struct spec spec = base;
    spec.io = io;
    return spec;
}

static bool same(const void *a, const void *b, size_t bytes)
{
    return a && b && memcmp(a, b, bytes) == 0;
}

/* ---- bits ---- */

/* The emulator's seeds are other orders of warps and copies: what a GPU does by itself. */
static void runs_agree(const struct spec *spec)
{
    struct trial trial;
    if (!trial_open(&trial, spec))
        return;
    void *h = NULL, *s = NULL;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        emulator_seed(seed);
        if (!trial_runs(&trial))
            break;
        if (seed == 1) {
            h = tensor_copy(&trial.problem, "h");
            s = tensor_copy(&trial.problem, "S");
            continue;
        }
        tap_expect(same(h, problem_tensor(&trial.problem, "h")->data,
                        problem_tensor(&trial.problem, "h")->bytes),
                   "h of run %d differs", (int)seed);
        tap_expect(same(s, problem_tensor(&trial.problem, "S")->data,
                        problem_tensor(&trial.problem, "S")->bytes),
                   "S of run %d differs", (int)seed);
    }
    free(h);
    free(s);
    trial_close(&trial);
}

/* Entry `at` of a batch is the only entry of another one. */
static void take_entry(struct problem *one, const struct problem *many, size_t at)
{
    for (uint32_t i = 0; i < one->n_tensors; i++) {
        struct host_tensor *to = &one->tensors[i];
        const struct host_tensor *from = &many->tensors[i];
        if (to->flags & TG_IN && to->data)
            memcpy(to->data, (const char *)from->data + at * to->bytes, to->bytes);
    }
}

static void batch_position(const struct spec *spec, enum layout layout)
{
    struct spec one = *spec, many = *spec;
    struct trial alone, among;
    many.batch = 3;
    many.layout = layout;
    if (!trial_open(&alone, &one))
        return;
    if (trial_open(&among, &many)) {
        for (size_t at = 0; at < 3; at++) {
            take_entry(&alone.problem, &among.problem, at);
            if (!trial_runs(&among) || !trial_runs(&alone))
                break;
            for (uint32_t i = 0; i < alone.problem.n_tensors; i++) {
                const struct host_tensor *x = &alone.problem.tensors[i],
                                         *y = &among.problem.tensors[i];
                tap_expect(!(x->flags & TG_OUT) ||
                               same(x->data, (const char *)y->data + at * x->bytes, x->bytes),
                           "%s differs when its sequence is entry %zu of 3", x->name, at);
            }
        }
        trial_close(&among);
    }
    trial_close(&alone);
}

/* Memory layout is no reason for another result. */
static void layouts_agree(const struct spec *spec)
{
    struct trial trial;
    if (!trial_open(&trial, spec))
        return;
    void *h = NULL;
    for (enum layout layout = HEADS; layout <= PADDED; layout++) {
        trial.layout = layout;
        if (!trial_runs(&trial))
            break;
        if (!h)
            h = tensor_copy(&trial.problem, "h");
        tap_expect(same(h, problem_tensor(&trial.problem, "h")->data,
                        problem_tensor(&trial.problem, "h")->bytes),
                   "h differs in layout %d", (int)layout);
    }
    free(h);
    trial_close(&trial);
}

static void absent_tensors(const struct spec *spec)
{
    struct trial trial;
    if (!trial_open(&trial, spec))
        return;
    struct host_tensor *s0 = problem_tensor(&trial.problem, "S0");
    const size_t bytes = problem_tensor(&trial.problem, "h")->bytes;
    memset(s0->data, 0, s0->bytes);
    if (trial_runs(&trial)) {
        void *h = tensor_copy(&trial.problem, "h");
        trial.without_final = true;
        if (trial_runs(&trial))
            tap_expect(same(h, problem_tensor(&trial.problem, "h")->data, bytes),
                       "h differs when S is not asked for");
        tensor_drop(&trial.problem, "S0");
        if (trial_runs(&trial))
            tap_expect(same(h, problem_tensor(&trial.problem, "h")->data, bytes),
                       "no S0 is not the same as an S0 of zeros");
        free(h);
    }
    trial_close(&trial);
}

/* ---- to rounding ---- */

/* Two results of which each may be wrong by its tolerance, in different directions. */
static void agree(const struct host_tensor *x, const void *y, tg_dtype io, const char *what)
{
    const double limit = 1.5 * (io == TG_F32 ? 2e-5 : io == TG_F16 ? 1e-3 : 4e-3);
    const struct tensor_error error = num_compare((struct num_const_array){x->data, x->dtype, x->n},
                                                  (struct num_const_array){y, x->dtype, x->n});
    tap_expect(!error.finite_mismatch && error.rms_ratio <= limit, "%s, %s: rms %.2e, at most %.2e",
               x->name, what, error.rms_ratio, limit);
}

static void chunks_agree(struct spec spec)
{
    static const int64_t chunks[] = {64, 128, 192, 256, 512, 1024};
    struct trial trial;
    spec.tokens = 500;
    spec.dhv = 32;
    spec.schedule = spec.io == TG_F32 ? "" : "tfla H.Lhq=64";
    if (!trial_open(&trial, &spec))
        return;
    void *h = NULL, *s = NULL;
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        char what[32];
        snprintf(what, sizeof what, "chunk size %d", (int)chunks[i]);
        trial.chunk = chunks[i];
        if (!trial_runs(&trial))
            break;
        if (!h) {
            h = tensor_copy(&trial.problem, "h");
            s = tensor_copy(&trial.problem, "S");
        }
        agree(problem_tensor(&trial.problem, "h"), h, spec.io, what);
        agree(problem_tensor(&trial.problem, "S"), s, spec.io, what);
    }
    free(h);
    free(s);
    trial_close(&trial);
}

/* ---- a sequence in two calls ---- */

/* Tokens from .. from + part.T of the whole, by head. */
static void take_tokens(struct problem *part, const struct problem *whole, int64_t from)
{
    for (uint32_t i = 0; i < part->n_tensors; i++) {
        struct host_tensor *to = &part->tensors[i];
        const struct host_tensor *all = &whole->tensors[i];
        if (!(to->flags & TG_IN) || !to->has_tokens)
            continue;
        const size_t heads = (size_t)(to->extent[0] * to->extent[1]);
        const size_t row = all->bytes / heads / (size_t)all->extent[2];
        for (size_t head = 0; head < heads; head++)
            memcpy((char *)to->data + head * to->bytes / heads,
                   (const char *)all->data + head * all->bytes / heads + (size_t)from * row,
                   to->bytes / heads);
    }
}

/* Puts the part's h into `h`, laid out as the whole's. */
static void give_tokens(char *h, const struct problem *part, const struct host_tensor *whole,
                        int64_t from)
{
    const size_t heads = (size_t)(whole->extent[0] * whole->extent[1]);
    const size_t row = whole->bytes / heads / (size_t)whole->extent[2];
    for (uint32_t i = 0; i < part->n_tensors; i++) {
        const struct host_tensor *tensor = &part->tensors[i];
        if (strcmp(tensor->name, "h") != 0)
            continue;
        for (size_t head = 0; head < heads; head++)
            memcpy(h + head * whole->bytes / heads + (size_t)from * row,
                   (const char *)tensor->data + head * tensor->bytes / heads,
                   tensor->bytes / heads);
    }
}

static bool run_part(const struct spec *spec, const struct problem *whole, int64_t from,
                     const void *s0, void *s, char *h)
{
    struct trial part;
    if (!trial_open(&part, spec))
        return false;
    take_tokens(&part.problem, whole, from);
    struct host_tensor *initial = problem_tensor(&part.problem, "S0");
    memcpy(initial->data, s0, initial->bytes);
    bool ok = trial_runs(&part);
    if (ok) {
        for (uint32_t i = 0; i < whole->n_tensors; i++)
            if (strcmp(whole->tensors[i].name, "h") == 0)
                give_tokens(h, &part.problem, &whole->tensors[i], from);
        memcpy(s, problem_tensor(&part.problem, "S")->data, initial->bytes);
    }
    trial_close(&part);
    return ok;
}

/* `exact`: the cut is a chunk's end, so both ways compute the same chunks from the same states. */
static void two_calls(const struct spec *spec, int64_t first, bool exact)
{
    struct trial whole;
    struct spec head = *spec, tail = *spec;
    head.tokens = first;
    tail.tokens = spec->tokens - first;
    if (!trial_open(&whole, spec))
        return;
    struct host_tensor *s = problem_tensor(&whole.problem, "S"),
                       *h = problem_tensor(&whole.problem, "h");
    void *state = tensor_copy(&whole.problem, "S0");
    char *output = calloc(1, h->bytes);
    if (trial_runs(&whole) && run_part(&head, &whole.problem, 0, state, state, output) &&
        run_part(&tail, &whole.problem, first, state, state, output)) {
        agree(h, output, spec->io, "in two calls");
        agree(s, state, spec->io, "in two calls");
        tap_expect(!exact || same(h->data, output, h->bytes), "h is not the same to the bit");
        tap_expect(!exact || same(s->data, state, s->bytes), "S is not the same to the bit");
    }
    free(output);
    free(state);
    trial_close(&whole);
}

void suite_properties(void)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct spec spec = of_type(types[i]);
        const char *name = tg_dtype_name(types[i]);
#define TEST(text, call)                                                                           \
    if (tap_begin("%s, %s", text, name)) {                                                         \
        call;                                                                                      \
        tap_end();                                                                                 \
    }
        TEST("every run gives the same bits", runs_agree(&spec))
        TEST("batch position does not change bits", batch_position(&spec, HEADS))
        TEST("batch position does not change bits, padded", batch_position(&spec, PADDED))
        TEST("layout does not change bits", layouts_agree(&spec))
        TEST("tensors left out change nothing", absent_tensors(&spec))
        TEST("chunk sizes agree", chunks_agree(spec))
        TEST("200 tokens are 120 and 80", two_calls(&spec, 120, false))
        TEST("200 tokens are 128 and 72, to the bit", two_calls(&spec, 128, true))
        TEST("200 tokens are 1 and 199", two_calls(&spec, 1, false))
#undef TEST
    }
}
