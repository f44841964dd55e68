/* tests/kernels/nan_family.c - a NaN in an input of a packed call with shared heads, of every
 * variant: it stays in its sequence and in the heads that read it, forward and backward, and there
 * it reaches what it influences. Everything else has the bits that it has without it. */
#include "results.h"
#include "suites.h"

#include <math.h>
#include <string.h>

/* Sequence 1 has tokens 5 .. 150. */
enum { SEQUENCE = 1, BEGIN = 5, END = 150, TOKEN = 12, CHUNK = 128, WALK_CHUNK = 64, GROUP = 2, COLUMN = 5 };

static const char cuts[] = "0 5 150 150 220";

/* Where one NaN goes, and from where it came. */
struct bad {
    const char *input;
    bool is_backward; /* an input of the backward alone */
    int64_t token;    /* in all of the packed tokens; of SEQUENCE */
    int64_t group;    /* heads that share some inputs; it is in the first of the second group */
    bool is_walk;
};

static void place_nan(tg_problem *problem, void *user)
{
    const struct bad *bad = user;
    tg_host_tensor *tensor = tg_problem_tensor(problem, bad->input);
    if (!tensor || !tensor->data || !(tensor->flags & TG_IN))
        return;
    const size_t heads = (size_t)tensor->extent[1], row = tensor->n / heads;
    const size_t head = tensor->flags & TG_SHARED ? 1 : (size_t)bad->group;
    size_t at = head * row;
    if (tensor->has_tokens)
        at += (size_t)bad->token * (row / (size_t)tensor->extent[2]);
    else if (!(tensor->flags & TG_NO_BATCH))
        at = (SEQUENCE * heads + head) * (row / (size_t)tensor->extent[0]);
    tg_num_store(tensor->data, tensor->dtype,
                 at + (tensor->rank > 3 || (!tensor->has_tokens && tensor->rank > 2) ? COLUMN : 0), (double)NAN);
}

/* Of an element of an output. */
struct place {
    int64_t sequence, head, token; /* -1: all */
};

static struct place place_of(const tg_host_tensor *tensor, const tg_problem *problem, size_t element)
{
    struct place place = {-1, 0, -1};
    const size_t heads = (size_t)tensor->extent[1];
    const size_t entry = tensor->n / heads / (size_t)tensor->extent[0];
    place.head = (int64_t)(element / entry % heads);
    if (tensor->has_tokens) {
        place.token = (int64_t)(element % entry / (entry / (size_t)tensor->extent[2]));
        while (place.token >= problem->cuts.at[place.sequence + 1])
            place.sequence++;
    } else if (!(tensor->flags & TG_NO_BATCH)) {
        place.sequence = (int64_t)(element / entry / heads);
    }
    return place;
}

/* Does a head read the input? Shared ones are read by the group, and gradients of shared
 * ones come from it. */
static bool reads(const tg_host_tensor *output, int64_t group, bool is_shared, int64_t head)
{
    if (output->flags & TG_SHARED)
        return head == 1;
    return is_shared ? head / group == 1 : head == group;
}

/* Sums over the later tokens are made of a chunk's sum less that over the earlier ones, so a NaN
 * reaches all of its chunk. */
static bool is_of_decay(const tg_host_tensor *output)
{
    return strcmp(output->name, "df") == 0 || strcmp(output->name, "da") == 0 || strcmp(output->name, "ddt_raw") == 0;
}

/* What of an output a NaN may reach, as its name and the input's say. */
struct reach {
    const struct bad *bad;
    const tg_host_tensor *output;
    bool is_shared, is_query, is_of_decay;
};

static bool may_reach(const struct reach *reach, struct place at)
{
    const struct bad *bad = reach->bad;
    const tg_host_tensor *output = reach->output;
    const bool is_gradient = output->is_gradient;
    if (!reads(output, bad->group, reach->is_shared, at.head) || (at.sequence >= 0 && at.sequence != SEQUENCE))
        return false;
    if (at.token < 0) /* a query leaves no trace in a state */
        return is_gradient || !reach->is_query;
    if (bad->is_backward) { /* gradients go back in time */
        const int64_t chunk = bad->is_walk ? WALK_CHUNK : CHUNK;
        const int64_t end = BEGIN + (bad->token - BEGIN) / chunk * chunk + chunk;
        return at.token <= bad->token || (reach->is_of_decay && at.token < end);
    }
    return is_gradient || (reach->is_query ? at.token == bad->token : at.token >= bad->token);
}

static void check(const struct bad *bad, const tg_problem *problem, bool is_shared, struct results *clean,
                  struct results *found)
{
    const bool is_query = strcmp(bad->input, "q") == 0 || strcmp(bad->input, "Cm") == 0;
    for (uint32_t i = 0; i < found->n; i++) {
        const tg_host_tensor *x = &found->tensors[i], *y = results_find(clean, x->name);
        const size_t bytes = tg_num_bytes(x->dtype);
        const struct reach reach = {bad, x, is_shared, is_query, is_of_decay(x)};
        size_t n_reached = 0;
        for (size_t e = 0; e < x->n; e++) {
            const bool same = memcmp((const char *)x->data + e * bytes, (const char *)y->data + e * bytes, bytes) == 0;
            const struct place at = place_of(x, problem, e);
            n_reached += isfinite(tg_num_load(x->data, x->dtype, e)) ? 0 : 1;
            tap_expect(same || may_reach(&reach, at), "NaN in %s reached %s of sequence %d, head %d, token %d",
                       bad->input, x->name, (int)at.sequence, (int)at.head, (int)at.token);
        }
        if (strcmp(x->name, "h") == 0 && !bad->is_backward)
            tap_expect(n_reached > 0, "NaN in %s did not reach h", bad->input);
    }
}

static void try_nan(const struct spec *spec, const char *input, bool is_backward)
{
    struct bad bad = {input, is_backward, TOKEN, spec->group, spec->schedule != NULL};
    struct results clean = {.n = 0}, found = {.n = 0};
    struct trial trial;
    if (!trial_open(&trial, spec))
        return;
    const tg_host_tensor *tensor = tg_problem_tensor(&trial.problem, input);
    const bool is_shared = tensor && tensor->flags & TG_SHARED;
    if (tensor && !tensor->has_tokens)
        bad.token = BEGIN; /* an initial state */
    if ((tensor || is_backward) && results_of(spec, &clean) && results_anew(spec, place_nan, &bad, &found))
        check(&bad, &trial.problem, is_shared, &clean, &found);
    results_free(&clean);
    results_free(&found);
    trial_close(&trial);
}

static void test_variant(const struct spec *spec, const char *const *inputs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool is_backward = strcmp(inputs[i], "dh") == 0;
        if (!tap_begin("NaN in %s of packed heads%s, %s %s", inputs[i], spec->group > 1 ? " that share q" : "",
                       spec->variant, spec->schedule ? spec->schedule : ""))
            continue;
        try_nan(spec, inputs[i], is_backward);
        tap_end();
    }
}

/* Inverses and weights of positions in memory: their zeros are loaded. */
static void suite_delta(void)
{
    static const char *const inputs[] = {"v", "beta", "dh"}, *const gradient[] = {"dh"};
    struct spec spec = {.variant = "gated-delta",
                        .io = TG_BF16,
                        .heads = 4,
                        .dqk = 64,
                        .dhv = 64,
                        .group = GROUP,
                        .cuts = cuts,
                        .has_s0 = true,
                        .schedule = "portable",
                        .backward = "portable"};
    test_variant(&spec, inputs, sizeof inputs / sizeof *inputs);
    spec.schedule = spec.backward = "portable-shared";
    test_variant(&spec, inputs, 1);
    test_variant(&spec, gradient, 1);
    spec.variant = "delta-net";
    spec.io = TG_F32;
    spec.dqk = 40;
    spec.schedule = spec.backward = "portable-fp32";
    test_variant(&spec, gradient, 1);
}

/* The next sequence's tokens are in the last chunk of each. */
static void suite_walk(void)
{
    static const char *const sig[] = {"q", "k", "v", "f", "i", "S0", "dh"};
    static const char *const ssd[] = {"Cm", "Bm", "x", "dt_raw"};
    static const char *const both_ways[] = {"q", "k", "v", "S0", "dh"};
    static const char *const rich[] = {"q", "k", "v", "f", "i", "C0", "n0", "m0", "dh"};
    static const char *const beside[] = {"k", "i", "n0"};
    static const char *const nla[] = {"q", "k", "v", "C0", "n0", "sv0", "c0"};
    struct spec spec = {.variant = "mlstm-sig",
                        .io = TG_BF16,
                        .heads = 4,
                        .dqk = 64,
                        .dhv = 128,
                        .group = GROUP,
                        .cuts = cuts,
                        .has_s0 = true,
                        .schedule = "walk walk.dhv=128"};
    spec.variant = "mamba2";
    test_variant(&spec, ssd, sizeof ssd / sizeof *ssd);
    spec.dqk = 128;
    spec.group = 1;
    spec.heads = 2;
    spec.backward = "walk";
    spec.variant = "mlstm-sig";
    test_variant(&spec, sig, sizeof sig / sizeof *sig);
    spec.backward = "walk-joint";
    test_variant(&spec, sig, sizeof sig / sizeof *sig);
    spec.dhv = 256;
    test_variant(&spec, sig, sizeof sig / sizeof *sig);
    spec.dhv = 128;
    spec.backward = "walk";
    spec.variant = "mlstm-exp";
    test_variant(&spec, rich, sizeof rich / sizeof *rich);
    spec.schedule = "segments walk.seg=1 walk.dhv=128 state.dhv=128";
    spec.backward = "segments dQ.seg=1";
    test_variant(&spec, rich, sizeof rich / sizeof *rich);
    spec.schedule = "tfla-wgmma walk.seg=1 walk.dhv=128";
    spec.backward = "tfla-wgmma dQ.seg=1";
    test_variant(&spec, rich, sizeof rich / sizeof *rich);
    spec.schedule = spec.backward = "walk-n";
    test_variant(&spec, rich, sizeof rich / sizeof *rich);
    spec.schedule = "segments-n walk.seg=1";
    test_variant(&spec, beside, sizeof beside / sizeof *beside);
    spec.schedule = "walk walk.dhv=128";
    spec.backward = NULL;
    spec.variant = "nla";
    test_variant(&spec, nla, sizeof nla / sizeof *nla);
    spec.backward = "walk";
    spec.variant = "linear";
    spec.io = TG_F16;
    test_variant(&spec, both_ways, sizeof both_ways / sizeof *both_ways);
    spec.dqk = 72;
    spec.dhv = 104;
    test_variant(&spec, both_ways, sizeof both_ways / sizeof *both_ways);
}

/* Rows of keys and queries are made on chip, by lanes that hand each other sums of decays. */
static void suite_rows(void)
{
    static const char *const inputs[] = {"q", "k", "v", "beta", "S0"}, *const gate[] = {"g_raw"};
    struct spec spec = {.variant = "kda",
                        .io = TG_BF16,
                        .heads = 4,
                        .dqk = 128,
                        .dhv = 128,
                        .group = GROUP,
                        .cuts = cuts,
                        .has_s0 = true,
                        .schedule = "walk-made"};
    test_variant(&spec, inputs, sizeof inputs / sizeof *inputs);
    spec.variant = "kda-safe";
    test_variant(&spec, gate, 1);
}

void suite_nan_family(void)
{
    static const char *const rich[] = {"q", "k", "v", "f", "i", "C0", "n0", "m0", "dh"};
    static const char *const ssd[] = {"Cm", "Bm", "x", "dt_raw", "S0", "dh"};
    static const char *const nla[] = {"q", "k", "v", "C0", "n0", "sv0", "c0", "dh"};
    struct spec spec = {.variant = "mlstm-exp",
                        .io = TG_BF16,
                        .heads = 4,
                        .dqk = 24,
                        .dhv = 40,
                        .group = GROUP,
                        .cuts = cuts,
                        .has_s0 = true,
                        .backward = ""};
    test_variant(&spec, rich, sizeof rich / sizeof *rich);
    spec.variant = "mamba2";
    test_variant(&spec, ssd, sizeof ssd / sizeof *ssd);
    spec.variant = "nla";
    test_variant(&spec, nla, sizeof nla / sizeof *nla);
    suite_delta();
    suite_walk();
    suite_rows();
    results_forget();
}
