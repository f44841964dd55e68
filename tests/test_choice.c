/* tests/test_choice.c SHAPES - programs that choose take what the command takes: of every drawn shape (a line of
 * `bench/choice.py --list`: variant, B, NH, T, dqk, dhv, group, packed), so that what was measured of one holds for the other.
 *
 * Sets are made as `tegula compile --arch sm_90a --shape S --shape S` makes them, but that no code is: which schedules there
 * are and who takes them does not depend on it. A set that holds a shape takes what is chosen for it on an H200, with what
 * Tegula knows of that. One of four other shapes that span what there is takes what the model thinks not much slower than
 * its choice of all schedules. That generated C takes what the set does is tests/bundle/test_generated.c's. */
#include "cli/cli.h"
#include "compiler/lower.h"
#include "kernels/tap.h"
#include "variants/variants.h"
#include "tests/usage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DRAWN = 400 };

/* In the place of lower/: kernels without code. */
bool __wrap_lower_plan(const struct plan *p, bool keep_llvm, struct lowered *out);
bool __wrap_lower_plan(const struct plan *p, bool keep_llvm, struct lowered *out)
{
    (void)p;
    (void)keep_llvm;
    out->ptx = strdup(".version 8.0\n");
    return out->ptx != NULL;
}

struct drawn {
    char variant[40];
    tg_shape shape;
};

static struct context context;
static struct drawn drawn[MOST_DRAWN];
static int n_drawn;

static bool read_shapes(const char *path)
{
    FILE *file = fopen(path, "r");
    struct drawn *d = drawn;
    long long b, nh, t, dqk, dhv, group;
    int packed;
    while (file && d < drawn + MOST_DRAWN &&
           fscanf(file, "%39s %lld %lld %lld %lld %lld %lld %d", d->variant, &b, &nh, &t, &dqk, &dhv, &group,
                  &packed) == 8)
        (d++)->shape = (tg_shape){
            .batch = b, .heads = nh, .tokens = t, .dqk = dqk, .dhv = dhv, .group = group, .packed = packed != 0};
    n_drawn = (int)(d - drawn);
    if (file)
        fclose(file);
    return n_drawn >= 60;
}

static void begin(void)
{
    static char driver; /* there is one; nobody calls it */
    static const struct command compile = {.name = "compile"};
    context_init(&context);
    context.command = &compile;
    context.options.wisdom = "";
    context.options.arch = "sm_90a";
    context.machine.driver = (tg_driver *)(void *)&driver;
    context.machine.target = tg_target_find("sm_90a");
    context.machine.device = (tg_device){.cc_major = 9, .name = "NVIDIA H200"};
}

/* ---- sets ---- */

/* As `tegula compile VARIANT` with these shapes; NULL: it failed. */
static tg_set *make_set(const tg_variant *variant, const tg_shape *shapes, uint32_t n, struct set_parts *parts)
{
    struct options *options = &context.options;
    tg_set *set = NULL;
    memcpy(options->shapes, shapes, n * sizeof *shapes);
    options->n_shapes = n;
    options->group = shapes->group;
    options->packed = shapes->packed;
    options->wisdom = NULL;
    if (!tap_expect(parts_wanted(&context, variant, parts), "%s: no parts", variant->name))
        return NULL;
    if (!tap_expect(tg_compile_set(variant, parts->row, parts->n, NULL, &set, &context.sink) == TG_OK, "%s: no set",
                    variant->name))
        parts_free(parts);
    options->wisdom = "";
    return set;
}

/* The schedule that a call takes: as many programs in a branch as schedules in its part, in their order. */
static const tg_schedule *taken(const tg_set *set, const struct set_parts *parts, const tg_shape *shape)
{
    const tg_sizes sizes = tg_sizes_of(shape, 0);
    const int branch = tg_set_branch(set, 90, (uint32_t)shape->dqk, (uint32_t)shape->dhv, NULL);
    const int program = branch < 0 ? -1 : tg_set_pick(set, (uint32_t)branch, &sizes, NULL);
    if (!tap_expect(program >= 0, "%s: no program", set->programs->variant))
        return NULL;
    const uint32_t at = (uint32_t)program - set->branches[branch].first;
    tap_expect(set->branches[branch].n_programs == parts->row[branch].n_schedules, "programs are not the schedules");
    return &parts->row[branch].schedules[at];
}

static bool choose(const tg_variant *variant, const tg_shape *shape, struct choice *choice)
{
    const tg_shape_class class = tg_shape_class_of(shape, TG_BF16);
    return tap_expect(
        schedule_choose(&context, variant, context.machine.target, &class, shape, (struct wish){NULL, 0}, choice),
        "%s: no choice", variant->name);
}

/* ---- shapes that the set holds ---- */

static void expect_same(const tg_variant *variant, const tg_shape *shape, const tg_schedule *schedule)
{
    char expected[TG_SCHEDULE_TEXT], found[TG_SCHEDULE_TEXT];
    struct choice choice;
    if (!schedule || !choose(variant, shape, &choice))
        return;
    tg_schedule_text(variant, &choice.schedule, expected);
    tg_schedule_text(variant, schedule, found);
    tap_expect(strcmp(expected, found) == 0, "%s B %lld NH %lld T %lld dqk %lld dhv %lld: expected %s (%s), found %s",
               variant->name, (long long)shape->batch, (long long)shape->heads, (long long)shape->tokens,
               (long long)shape->dqk, (long long)shape->dhv, expected, choice.origin, found);
}

static bool is_like(const struct drawn *a, const struct drawn *b)
{
    return strcmp(a->variant, b->variant) == 0 && a->shape.group == b->shape.group &&
           a->shape.packed == b->shape.packed;
}

/* Of each kind of calls one set, in which every shape drawn of it is; the kind of the first of them counts. */
static void check_kind(int first)
{
    tg_shape shapes[MAX_SHAPES];
    uint32_t n = 0;
    struct set_parts parts;
    for (int i = 0; i < n_drawn; i++) {
        if (i < first && is_like(&drawn[i], &drawn[first]))
            return;
        if (i >= first && is_like(&drawn[i], &drawn[first]) && n < MAX_SHAPES)
            shapes[n++] = drawn[i].shape;
    }
    const tg_variant *variant = tg_variant_find(drawn[first].variant);
    tg_set *set = variant ? make_set(variant, shapes, n, &parts) : NULL;
    if (!tap_expect(set, "%s: no set", drawn[first].variant))
        return;
    for (uint32_t i = 0; i < n; i++)
        expect_same(variant, &shapes[i], taken(set, &parts, &shapes[i]));
    tg_set_free(set);
    parts_free(&parts);
}

static void suite_held(void)
{
    if (!tap_begin("a set takes for each of %d shapes that it holds what the command takes", n_drawn))
        return;
    for (int i = 0; i < n_drawn; i++)
        check_kind(i);
    tap_end();
}

/* ---- others ---- */

static double predicted(const tg_schedule *schedule, const tg_shape *shape)
{
    const tg_shape_class class = tg_shape_class_of(shape, TG_BF16);
    const tg_sizes sizes = tg_sizes_of(shape, schedule->chunk);
    tg_cost cost = {.seconds = HUGE_VAL};
    (void)tg_cost_estimate(schedule, context.machine.target, &class, &sizes, &cost, NULL);
    return cost.seconds;
}

/* Few heads, long sequences and short, and some more of both; the default is for many. */
static void span(const tg_shape *like, tg_shape shapes[4])
{
    static const int64_t sizes[4][3] = {{1, 8, 32768}, {1, 8, 2048}, {2, 8, 8192}, {4, 8, 1024}};
    for (int i = 0; i < 4; i++) {
        shapes[i] = *like;
        shapes[i].batch = sizes[i][0];
        shapes[i].heads = sizes[i][1];
        shapes[i].tokens = sizes[i][2] * (like->packed ? sizes[i][0] : 1);
    }
}

/* What the model thinks of what is taken, over what it thinks of its choice of all. */
static double loss_of(const struct drawn *d)
{
    const tg_variant *variant = tg_variant_find(d->variant);
    tg_shape shapes[4];
    struct set_parts parts;
    tg_schedule best;
    const tg_shape_class class = tg_shape_class_of(&d->shape, TG_BF16);
    const tg_sizes sizes = tg_sizes_of(&d->shape, 0);
    span(&d->shape, shapes);
    tg_set *set = variant ? make_set(variant, shapes, 4, &parts) : NULL;
    if (!set)
        return HUGE_VAL;
    const tg_schedule *schedule = taken(set, &parts, &d->shape);
    const bool ok = schedule && tap_expect(tg_schedule_default(variant, context.machine.target, &class, &sizes, &best,
                                                               NULL) == TG_OK,
                                           "no choice");
    const double loss = ok ? predicted(schedule, &d->shape) / predicted(&best, &d->shape) : HUGE_VAL;
    tg_set_free(set);
    parts_free(&parts);
    return loss;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A part of what is drawn, as sets of four take longer. */
static void suite_others(void)
{
    enum { EVERY = 5 };
    double losses[MOST_DRAWN];
    int n = 0;
    if (!tap_begin("a set of four other shapes takes for %d what the model thinks hardly slower than its choice",
                   (n_drawn + EVERY - 1) / EVERY))
        return;
    for (int i = 0; i < n_drawn; i += EVERY)
        losses[n++] = loss_of(&drawn[i]);
    qsort(losses, (size_t)n, sizeof losses[0], by_size);
    tap_note("times the model's choice: median %.2f, nine of ten %.2f, most %.2f", losses[n / 2], losses[n * 9 / 10],
             losses[n - 1]);
    tap_expect(losses[n / 2] <= 1.1 && losses[n - 1] <= 1.6, "too slow");
    tap_end();
}

int main(int argc, char **argv)
{
    if (!usage_is(argc, argv, 0, 1, "[FILE], of the lines of bench/choice.py --list"))
        return 2;
    begin();
    if (!read_shapes(argc > 1 ? argv[1] : "/dev/stdin")) {
        fputs("usage: python3 bench/choice.py --list | test_choice\n", stderr);
        return 2;
    }
    suite_held();
    suite_others();
    return tap_finish();
}
