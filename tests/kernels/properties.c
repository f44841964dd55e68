/* tests/kernels/properties.c - two calls that must give the same bits, forward and backward. */
#include "dsl/slice.h"
#include "results.h"
#include "suites.h"

#include <stdlib.h>
#include <string.h>

static void compare(const struct spec *x, const struct spec *y, const char *what)
{
    struct results a = {.n = 0}, b = {.n = 0};
    if (results_of(x, &a) && results_of(y, &b))
        expect_same(&a, &b, what);
    results_free(&a);
    results_free(&b);
}

/* The emulator's seeds are other orders of warps and copies: what a GPU does by itself. */
static void runs_agree(const struct spec *spec)
{
    struct results first = {.n = 0};
    if (results_of(spec, &first))
        for (uint64_t seed = 2; seed <= 3; seed++) {
            struct results again = {.n = 0};
            char what[32];
            snprintf(what, sizeof what, "run %d", (int)seed);
            emulator_seed(seed);
            if (results_anew(spec, NULL, NULL, &again))
                expect_same(&first, &again, what);
            results_free(&again);
        }
    results_free(&first);
}

/* Memory layout is no reason for another result, nor is a pool, nor how wide an index is. */
static void layouts_agree(const struct spec *spec)
{
    struct spec other = *spec;
    other.layout = TOKENS;
    compare(spec, &other, "tokens before heads");
    other.layout = PADDED;
    compare(spec, &other, "with gaps");
    other.is_pooled = tg_algorithm_has_states(spec_variant(spec)->algorithm);
    other.is_wide = true;
    compare(spec, &other, "with gaps in a pool");
}

/* What is absent counts as zero. */
static void absent_tensors(const struct spec *spec)
{
    struct spec zeros = *spec, none = *spec;
    zeros.zero_states = true;
    none.has_s0 = false;
    none.no_final = true;
    compare(&zeros, &none, "states left out");
    none.has_s0 = true;
    none.zero_states = true;
    compare(&zeros, &none, "final states left out");
}

/* ---- decode steps ---- */

/* How many tokens a step has room for is no reason for another result. */
static void rooms_agree(const struct spec *spec)
{
    static const uint16_t rooms[] = {2, 3, 5, 6, 7};
    struct spec few = *spec;
    few.backward = NULL;
    few.schedule = "step8";
    few.tokens = 2;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        tg_variant own = *tg_variant_find(spec->variant);
        tg_schedule schedule;
        tap_expect(tg_variant_schedule_named(&own, "step8", &schedule, NULL) == TG_OK, "no step8");
        const tg_schedule *const schedules[] = {&schedule, NULL};
        struct spec other = few;
        for (uint32_t r = 0; r < schedule.n_rows; r++) /* rows that hold the tokens have room in their block */
            if (schedule.rows[r].row[TG_CHUNK].block == schedule.max_tokens)
                schedule.rows[r].row[TG_CHUNK].block = rooms[i];
        schedule.max_tokens = rooms[i];
        own.schedules = schedules;
        other.own = &own;
        compare(&few, &other, "a step with room for fewer tokens");
    }
}

/* ---- sequences among others ---- */

struct many {
    struct trial forward, backward;
    struct results results;
};

static bool open_many(struct many *many, const struct spec *spec)
{
    if (!trial_open(&many->forward, spec))
        return false;
    const bool is_one_way = !spec->backward;
    many->backward = (struct trial){.spec = NULL};
    if (trial_runs(&many->forward) && (is_one_way || trial_open_backward(&many->backward, &many->forward))) {
        if (is_one_way || trial_runs(&many->backward))
            return true;
        trial_close(&many->backward);
    }
    trial_close(&many->forward);
    return false;
}

static void close_many(struct many *many)
{
    trial_close(&many->backward);
    trial_close(&many->forward);
}

/* An empty sequence among others goes the way of the others: its max state is m0 log2(e) ln(2). */
static bool same_part(const tg_host_tensor *found, const tg_host_tensor *one)
{
    if (one->rank == 2 && strcmp(one->name, "m") == 0)
        return tg_num_compare((tg_const_array){found->data, found->dtype, found->n},
                              (tg_const_array){one->data, one->dtype, one->n})
                   .rms_ratio < 1e-6;
    return memcmp(found->data, one->data, one->bytes) == 0;
}

/* Outputs of a sequence by itself against its place among the others. Sums over all sequences have
 * none. */
static void compare_part(struct results *alone, const struct part parts[2], const char *what)
{
    for (uint32_t i = 0; i < alone->n; i++) {
        const tg_host_tensor *one = &alone->tensors[i];
        for (int d = 0; d < 2; d++) {
            tg_problem *whole = (tg_problem *)parts[d].whole;
            const tg_host_tensor *all = tg_problem_tensor(whole, one->name);
            if (!all || !(all->flags & TG_OUT) || all->flags & TG_NO_BATCH)
                continue;
            tg_host_tensor found = *one;
            found.data = malloc(one->bytes + 1);
            part_of_tensor(&parts[d], all, &found, false);
            tap_expect(same_part(&found, one), "%s differs: %s", one->name, what);
            free(found.data);
        }
    }
}

static void sequences_alone(const struct spec *spec)
{
    struct many many = {.results = {.n = 0}};
    if (!open_many(&many, spec))
        return;
    const tg_shape *shape = &many.forward.problem.shape;
    for (int64_t s = 0; s < shape->batch; s++) {
        const int64_t *cuts = many.forward.problem.cuts.at;
        struct part parts[2] = {{&many.forward.problem, s, 0}, {&many.backward.problem, s, 0}};
        struct spec one = *spec;
        struct results alone = {.n = 0};
        char what[40];
        one.batch = 1;
        one.cuts = NULL;
        one.tokens = cuts ? cuts[s + 1] - cuts[s] : spec->tokens;
        snprintf(what, sizeof what, "sequence %d of %d", (int)s, (int)shape->batch);
        if (results_anew(&one, take_part, parts, &alone))
            compare_part(&alone, parts, what);
        results_free(&alone);
    }
    close_many(&many);
}

static void batch_position(const struct spec *spec)
{
    struct spec many = *spec;
    many.batch = 3;
    many.layout = PADDED;
    sequences_alone(&many);
}

/* The schedules that are taken: the defaults of sequences or heads alone may be others, which round otherwise. */
static bool name_schedules(struct spec *spec, struct spec *like)
{
    static char name[sizeof((tg_program *)NULL)->schedule], backward[sizeof name];
    struct many many = {.results = {.n = 0}};
    if (!open_many(&many, spec))
        return false;
    strcpy(name, many.forward.kernel.program->schedule);
    spec->schedule = like->schedule = spec->schedule ? spec->schedule : name;
    if (spec->backward) {
        strcpy(backward, many.backward.kernel.program->schedule);
        spec->backward = like->backward = *spec->backward ? spec->backward : backward;
    }
    close_many(&many);
    return true;
}

static void packed_alone(const struct spec *spec)
{
    struct spec packed = *spec, one = *spec;
    packed.cuts = "0 0 130 131 131 180";
    if (name_schedules(&packed, &one))
        sequences_alone(&packed);
}

/* ---- heads that share q and k ---- */

/* What is made of all heads of a group is not what a head has alone. */
static bool sums_heads(const struct spec *spec)
{
    const tg_algorithm *algorithm = tg_variant_find(spec->variant)->algorithm;
    for (uint32_t s = 0; s < algorithm->n_body; s++)
        if (tg_stmt_along(algorithm, &algorithm->body[s]) >> TG_MEMBER & 1)
            return true;
    return false;
}

/* The call without groups has copies of the shared heads. */
static void repeat_heads(tg_problem *problem, void *user)
{
    const tg_problem *const *grouped = user;
    const tg_problem *from_problem = grouped[0]->variant == problem->variant ? grouped[0] : grouped[1];
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *to = &problem->tensors[i];
        const tg_host_tensor *from = tg_problem_tensor((tg_problem *)from_problem, to->name);
        if (!(to->flags & TG_IN) || !to->data || !from || !from->data || to->is_fed)
            continue;
        const size_t rows = (size_t)(to->extent[0] * to->extent[1]), bytes = to->bytes / rows;
        const size_t per = rows / (size_t)(from->extent[0] * from->extent[1]);
        for (size_t row = 0; row < rows; row++)
            memcpy((char *)to->data + row * bytes, (const char *)from->data + row / per * bytes, bytes);
    }
}

/* The sum over the heads of a group, in fp64. */
static void sum_heads(const tg_host_tensor *each, tg_host_tensor *sum)
{
    const size_t rows = (size_t)(sum->extent[0] * sum->extent[1]), n = sum->n / rows;
    const size_t per = each->n / sum->n;
    sum->dtype = TG_NUM_F64;
    sum->data = calloc(sum->n + 1, sizeof(double));
    for (size_t e = 0; e < each->n && sum->data; e++)
        ((double *)sum->data)[e / n / per * n + e % n] += tg_num_load(each->data, each->dtype, e);
}

/* Results of two kernels, each of which may be off from the truth by what the judge allows, in its own way. */
static void expect_both_right(const tg_host_tensor *x, const tg_problem *problem, const tg_host_tensor *y,
                              const char *what)
{
    const double root_of_two = 1.4142135623730951;
    const tg_verdict verdict = tg_judge(problem, y, (tg_const_array){x->data, x->dtype, x->n}, (tg_levels){0, 0});
    expect_near(x, y, root_of_two * verdict.rms_limit, what);
}

/* The emulator's schedules are the same everywhere: there both round their results, and are no further apart. */
static void expect_sum(const struct spec *spec, const tg_host_tensor *sum, const tg_problem *problem,
                       const tg_host_tensor *whole)
{
    if (on_emulator())
        expect_near(sum, whole, spec->io == TG_F32 ? 2e-5 : 4e-3, "summed over heads");
    else
        expect_both_right(sum, problem, whole, "summed over heads");
}

static void groups_agree(const struct spec *spec)
{
    struct spec grouped = *spec, apart = *spec;
    struct many many = {.results = {.n = 0}};
    struct results each = {.n = 0};
    grouped.group = 2;
    grouped.heads = apart.heads = 4;
    if (!name_schedules(&grouped, &apart) || !open_many(&many, &grouped))
        return;
    const tg_problem *both[2] = {&many.forward.problem, &many.backward.problem};
    if (results_anew(&apart, repeat_heads, both, &each))
        for (uint32_t i = 0; i < each.n; i++) {
            const tg_host_tensor *x = &each.tensors[i];
            const tg_host_tensor *y = tg_problem_tensor(&many.forward.problem, x->name);
            const tg_host_tensor *dy = tg_problem_tensor(&many.backward.problem, x->name);
            if (y && y->flags & TG_OUT) {
                tap_expect(memcmp(x->data, y->data, x->bytes) == 0, "%s differs", x->name);
            } else if (dy && dy->flags & TG_SHARED) {
                tg_host_tensor sum = *dy;
                sum_heads(x, &sum);
                expect_sum(spec, &sum, &many.backward.problem, dy);
                free(sum.data);
            }
        }
    results_free(&each);
    close_many(&many);
}

/* ---- final states alone ---- */

/* The program "NAME-state" makes what the whole one makes of the same inputs. */
static void compare_alone(const struct spec *spec, const char *of, const char *schedule, struct many *many,
                          tg_problem *problem)
{
    const tg_problem *both[2] = {&many->forward.problem, &many->backward.problem};
    char name[64];
    struct spec alone = *spec;
    struct results found = {.n = 0};
    snprintf(name, sizeof name, "%s-state", of);
    alone.variant = name;
    alone.schedule = schedule;
    alone.backward = NULL;
    tap_expect(tg_variant_check(tg_variant_find(name), &log_sink) == TG_OK, "%s: %s", name, log_text());
    if (results_anew(&alone, repeat_heads, both, &found)) {
        tap_expect(found.n > 0, "%s has no outputs", name);
        for (uint32_t i = 0; i < found.n; i++) {
            const char *output = found.tensors[i].name;
            const tg_host_tensor *y = tg_problem_tensor(problem, output);
            if (tap_expect(y && y->flags & TG_OUT, "%s: %s is no output of the whole", name, output))
                expect_both_right(&found.tensors[i], problem, y, name);
        }
    }
    results_free(&found);
}

static void states_alone(const struct spec *spec, const char *schedule, const char *back_schedule)
{
    const tg_variant *variant = spec_variant(spec);
    struct many many = {.results = {.n = 0}};
    if (!open_many(&many, spec))
        return;
    compare_alone(spec, variant->name, schedule, &many, &many.forward.problem);
    compare_alone(spec, variant->backward->name, back_schedule, &many, &many.backward.problem);
    close_many(&many);
}

static void suite_states_alone(void)
{
    static const struct {
        const char *variant, *schedule, *back_schedule;
        uint32_t dqk; /* 0: 64 */
    } cut[] = {
        {"simple-gla", "walk", "segments seg=1", 0},
        {"mlstm-exp", "segments-n seg=1", NULL, 0},
        {"mamba2", "segments seg=2", "walk", 0},
        {"gla", "segments seg=1", "walk-gates", 192},
        {"gla", "segments seg=1", "segments seg=2", 0},
        {"gla", "walk", "walk", 128},
        {"hgrn2", "segments seg=2", "walk", 0},
        {"rwkv6", "walk", "segments seg=1", 0},
        {"rwkv6", "walk", "segments-gates seg=2", 0},
        {"gated-delta", "segments seg=1", "segments-all seg=2", 0},
        {"gated-delta-gate", "walk", "segments-all seg=1", 0},
        {"kda-safe", "segments seg=1", "walk", 0},
        {"kda", "walk", "segments seg=1", 0},
        {"nla", "segments-n seg=1", NULL, 0},
    };
    struct spec spec = {
        .io = TG_BF16, .batch = 2, .heads = 2, .tokens = 65, .dqk = 24, .dhv = 40, .has_s0 = true, .backward = ""};
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++) {
        spec.variant = (*v)->name;
        if (tg_algorithm_has_states((*v)->algorithm) && tap_begin("final states alone, %s", spec.variant)) {
            states_alone(&spec, NULL, NULL);
            tap_end();
        }
    }
    spec.dqk = spec.dhv = 64;
    spec.batch = 1;
    spec.tokens = 200;
    for (size_t i = 0; i < TG_COUNT(cut); i++) {
        spec.variant = cut[i].variant;
        spec.dqk = cut[i].dqk ? cut[i].dqk : 64;
        if (!tap_begin("final states alone, %s %s", spec.variant, cut[i].schedule))
            continue;
        states_alone(&spec, cut[i].schedule, cut[i].back_schedule);
        tap_end();
    }
}

/* ---- states kept for the backward ---- */

static void kept_agree(const struct spec *spec)
{
    struct spec kept = *spec, made_again = *spec;
    kept.chunk = made_again.chunk = spec_has_one_chunk(spec) ? 64 : 128;
    made_again.schedule = made_again.backward = "tfla";
    kept.schedule = "tfla-keep";
    kept.backward = "tfla-kept";
    compare(&made_again, &kept, "states kept");
}

/* The backward's states of segments, made as the forward that keeps them makes them. */
static void kept_segments_agree(const struct spec *spec)
{
    struct spec kept = *spec, made_again = *spec;
    kept.dqk = kept.dhv = made_again.dqk = made_again.dhv = 128;
    made_again.schedule = kept.schedule = "segments-keep walk.seg=1 walk.dhv=128";
    made_again.backward = "segments dQ.seg=1 dV.dhv=128";
    kept.backward = "segments-kept dQ.seg=1 dV.dhv=128";
    compare(&made_again, &kept, "states of segments kept");
}

/* ---- all of them ---- */

static void test_bits(const struct spec *spec)
{
    const char *name = tg_dtype_name(spec->io), *schedule = spec->schedule ? spec->schedule : "";
#define TEST(text, call)                                                                                               \
    if (tap_begin("%s, %s %s %s", text, spec->variant, name, schedule)) {                                              \
        call;                                                                                                          \
        tap_end();                                                                                                     \
    }
    TEST("every run gives the same bits", runs_agree(spec))
    TEST("batch position does not change bits", batch_position(spec))
    TEST("packed sequences have the bits they have alone", packed_alone(spec))
    TEST("layout does not change bits", layouts_agree(spec))
    TEST("tensors left out are zeros", absent_tensors(spec))
    if (spec->variant == tg_mlstm_sig.name || spec->variant == tg_mlstm_exp.name)
        TEST("room for more tokens does not change bits", rooms_agree(spec))
    const char *back = spec->backward ? spec->backward : "";
    if (!sums_heads(spec) && !strstr(back, "joint") && !strstr(back, "cluster")) /* a head has its own there */
        TEST("heads that share q and k have the bits they have alone", groups_agree(spec))
    if (spec->io == TG_BF16 && !spec->schedule && spec_has_schedule(spec, "tfla-keep"))
        TEST("states kept or made again give the same bits", kept_agree(spec))
#undef TEST
}

/* Kernels on warpgroups: forward, and their widths. */
static void suite_walk(void)
{
    static const struct {
        const tg_variant *variant;
        tg_dtype io;
    } walks[] = {{&tg_mlstm_sig, TG_BF16}, {&tg_mamba2, TG_BF16}, {&tg_retention, TG_F16}, {&tg_mlstm_exp, TG_BF16}};
    struct spec spec = {.batch = 1, .heads = 2, .tokens = 150, .dqk = 64, .dhv = 128, .has_s0 = true};
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
        spec.variant = walks[i].variant->name;
        spec.io = walks[i].io;
        spec.schedule = "walk walk.dhv=128";
        test_bits(&spec);
        spec.schedule = "segments-narrow walk.seg=1";
        test_bits(&spec);
        if (tap_begin("states of segments kept or made again give the same bits, %s", spec.variant)) {
            kept_segments_agree(&spec);
            tap_end();
        }
        spec.schedule = "tfla-wgmma-narrow walk.seg=1";
        test_bits(&spec);
        if (walks[i].variant != &tg_mlstm_exp)
            continue;
        spec.schedule = "walk-n";
        test_bits(&spec);
        spec.schedule = "segments-n walk.seg=1";
        test_bits(&spec);
    }
}

/* dK and dV in one walk, of everything in two stages and of v and dh in one. */
static void suite_joint(void)
{
    struct spec spec = {.io = TG_BF16, .batch = 1, .heads = 2, .tokens = 150, .dqk = 24, .dhv = 40, .has_s0 = true};
    spec.variant = "linear";
    spec.schedule = "walk-narrow";
    spec.backward = "walk-joint-narrow";
    test_bits(&spec);
    spec.variant = tg_mlstm_sig.name;
    spec.dqk = 128;
    spec.dhv = 256;
    spec.schedule = "walk";
    spec.backward = "walk-joint";
    test_bits(&spec);
}

/* Thread blocks that add up what they have: two heads, two blocks of dhv. */
static void suite_added(void)
{
    struct spec spec = {.io = TG_BF16, .batch = 1, .heads = 2, .tokens = 150, .dqk = 64, .dhv = 64, .has_s0 = true};
    spec.variant = "gated-delta";
    spec.group = 2;
    spec.schedule = "walk-narrow";
    spec.backward = "walk-paired dQ.warps=4 dQ.dqk=64 dK.warps=4 dK.dqk=64";
    test_bits(&spec);
    spec.variant = "simple-gla";
    spec.group = 1;
    spec.dhv = 128;
    spec.backward = "walk-cluster dQ.warps=4 dQ.dqk=64 dQ.dhv=64 dK.warps=4 dK.dqk=64 dK.dhv=64 dV.warps=4 dV.dhv=64";
    test_bits(&spec);
}

void suite_properties(void)
{
    static const struct {
        const tg_variant *variant;
        tg_dtype io;
    } more[] = {{&tg_mlstm_sig, TG_F16}, {&tg_mlstm_exp, TG_F32}};
    struct spec spec = {
        .io = TG_BF16, .batch = 1, .heads = 2, .tokens = 150, .dqk = 24, .dhv = 40, .has_s0 = true, .backward = ""};
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++) {
        spec.variant = (*v)->name;
        test_bits(&spec);
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        spec.variant = more[i].variant->name;
        spec.io = more[i].io;
        test_bits(&spec);
    }
    suite_walk();
    suite_joint();
    suite_added();
    suite_states_alone();
    results_forget();
}
