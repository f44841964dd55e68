/* tests/compile/targets.c - every target, type and kind of width: there is a schedule, its plan passes, LLVM makes code of
 * it, and ptxas takes that without spills. */
#include "compile.h"

#include "variants/variants.h"

#include <string.h>

/* The smallest and largest, one block and more, and no powers of two; from that of the README's examples on, what people
 * use. */
static const struct width widths[] = {{16, 16},   {24, 136},  {40, 72}, {120, 200}, {120, 512}, {256, 512},
                                      {512, 512}, {128, 256}, {64, 64}, {64, 128},  {128, 128}, {256, 256}};
enum { README = 7, N_OTHERS = 8, N_WIDTHS = 12, N_USED = N_WIDTHS - README, ALL = (1 << N_WIDTHS) - 1 };
enum { HOPPER = 3 }; /* of the targets, sm_90a: it alone has kernels on warpgroups */

/* What a shape class may ask for beside types and widths. */
struct form {
    const char *name;
    uint32_t group, tokens;
    uint8_t packed, pooled;
    const char *schedule; /* NULL: the default */
};
static const struct form plain = {"", 1, 0, 0, 0, NULL};
static const struct form forms[] = {
    {", group of 2", 2, 0, 0, 0, NULL},
    {", decode step of 1", 1, 1, 0, 0, "step"},
    {", decode step of 8, pooled, group of 4", 4, 8, 0, 1, "step8"},
    {", decode step of 8, narrow", 1, 8, 0, 0, "step8-narrow"},
    {", packed", 1, 0, 1, 0, NULL},
    {", packed, pooled, group of 2", 2, 0, 1, 1, NULL},
    {", states kept", 1, 0, 0, 0, "tfla-ke"}, /* -keep and -kept */
};
enum { N_FORMS = 7 };

/* In `chosen`: of those that begin with the form's name the first that takes the widths, or where nothing is named the default. */
static const tg_schedule *schedule_for(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                                       const struct form *form, tg_schedule *chosen)
{
    for (uint32_t i = 0; form->schedule && tg_variant_schedule(variant, i, chosen); i++)
        if (strncmp(chosen->name, form->schedule, strlen(form->schedule)) == 0 && chosen->max_tokens == form->tokens &&
            tg_plan_check(chosen, target, shape, NULL) == TG_OK)
            return chosen;
    return tg_schedule_default(variant, target, shape, NULL, chosen, &log_sink) == TG_OK ? chosen : NULL;
}

/* As it would be compiled, up to the code. */
static void plan_with(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape)
{
    tap_expect(tg_plan_check(schedule, target, shape, &log_sink) == TG_OK && !*log_text(), "dqk %u dhv %u, %s: %s",
               shape->dqk, shape->dhv, schedule->name, log_text());
}

/* KDA's walk reads keys three ways: 16 tokens of 512 in fp32 are 96 KB, and 99 is all that these GPUs have (docs/limits.md). */
static bool is_too_wide(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape)
{
    return strncmp(variant->name, "kda", 3) == 0 && shape->io == TG_F32 && shape->dqk == 512 && !shape->tokens &&
           target->shared_optin < 100 * 1024;
}

static void compile_one(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                        const struct form *form, bool is_planned, const char *ptxas)
{
    log_clear();
    tg_schedule chosen;
    const tg_schedule *schedule = schedule_for(variant, target, shape, form, &chosen);
    if (is_too_wide(variant, target, shape)) {
        tap_expect(!schedule && strstr(log_text(), "bytes of shared memory; at most 101376"),
                   "dqk %u: expected to be refused for shared memory: %s", shape->dqk, log_text());
        return;
    }
    if (!tap_expect(schedule != NULL, "dqk %u dhv %u: no schedule fits: %s", shape->dqk, shape->dhv, log_text()))
        return;
    tap_expect(schedule->max_tokens == form->tokens, "schedule %s", schedule->name);
    if (is_planned)
        plan_with(schedule, target, shape);
    else
        compile_with(variant, schedule, target, shape, ptxas);
}

/* A line of the test: widths, bit by bit. */
struct coverage {
    const tg_variant *variant;
    const tg_target *target;
    tg_dtype type;
    uint32_t coded; /* made into code and assembled */
    uint32_t planned;
    const struct form *form;
};

static void cover(const struct coverage *c, const char *ptxas)
{
    const struct form *f = c->form;
    if (!tap_begin("default %s of %s for %s, %s%s%s", c->coded ? "schedules" : "plans", c->variant->name,
                   c->target->arch, tg_dtype_name(c->type), f->name,
                   ptxas || !c->coded ? "" : " (no ptxas: not assembled)"))
        return;
    for (uint32_t w = 0; w < N_WIDTHS; w++) {
        const tg_shape_class shape = {.io = c->type,
                                      .dqk = widths[w].dqk,
                                      .dhv = widths[w].dhv,
                                      .group = f->group,
                                      .tokens = f->tokens,
                                      .packed = f->packed,
                                      .pooled = f->pooled && tg_algorithm_has_states(c->variant->algorithm)};
        if ((c->coded | c->planned) >> w & 1)
            compile_one(c->variant, c->target, &shape, f, !(c->coded >> w & 1), ptxas);
    }
    tap_end();
}

/* How many variants have its table of schedules before it. */
static uint32_t rank_in_table(const tg_variant *variant)
{
    uint32_t n = 0;
    for (const tg_variant *const *v = tg_builtin_variants; *v && *v != variant && (*v)->backward != variant; v++)
        n += (*v)->schedules == variant->schedules || (*v)->backward->schedules == variant->schedules;
    return n;
}

/* Kernels of one table differ in the expressions of gates alone. So its variants take turns: on a target one of three has
 * code, the others plans; and of each the gradients have code where the forward has plans. */
static bool has_turn(const tg_variant *variant, uint32_t target)
{
    return (rank_in_table(variant) + target + !variant->backward) % 3 == 0;
}

/* The plainest and the richest variant stand for all: with bf16 on sm_90a every width, on each other target that of the
 * README and one or two more; with the other types every width, or of f16, which differs from bf16 in the names of
 * instructions alone, every second one, on one target. */
static uint32_t widths_of_rich(uint32_t target, uint32_t type)
{
    uint32_t set = 0;
    if (types[type] == TG_BF16 && target == HOPPER)
        return ALL;
    const uint32_t place = target - (target > HOPPER);
    for (uint32_t w = types[type] == TG_F16; w < N_OTHERS; w += types[type] == TG_F16 ? 2 : 1)
        if (types[type] == TG_BF16 ? w % (N_TARGETS - 1) == place || w == README : (w + 2 * type) % N_TARGETS == target)
            set |= 1u << w;
    return set;
}

/* Of the others, with bf16 on sm_90a, one of those widths that people use, of a table's first variant that of the README; on
 * other targets, in turns, some width and type. */
static uint32_t widths_of(const tg_variant *variant, uint32_t number, uint32_t target)
{
    if (target == HOPPER)
        return 1u << (README + rank_in_table(variant) % N_USED);
    return has_turn(variant, target) ? 1u << (number + 3 * target) % N_OTHERS : 0;
}

static bool has_step_of(const tg_variant *variant, uint32_t tokens)
{
    tg_schedule s;
    for (uint32_t i = 0; tg_variant_schedule(variant, i, &s); i++)
        if (s.max_tokens == tokens)
            return true;
    return false;
}

/* Decode steps have no gradients, and not every variant has them of several tokens, or at all; states are kept on GPUs
 * with much shared memory only. */
static void cover_form(struct coverage c, bool is_coded, uint32_t width, const char *ptxas)
{
    const bool is_kept = c.form->schedule && !c.form->tokens;
    if (c.form->tokens && !has_step_of(c.variant, c.form->tokens))
        return;
    if (is_kept && c.target->shared_optin <= 160000)
        return;
    if (is_kept)
        c.type = TG_BF16;
    c.planned = 1u << (is_kept ? width % 2 : width);
    c.coded = is_coded ? c.planned : 0;
    cover(&c, ptxas);
}

static void cover_variant(const tg_variant *variant, bool is_rich, uint32_t number, const char *ptxas)
{
    for (uint32_t t = 0; t < N_TARGETS; t++) {
        struct coverage c = {.variant = variant, .target = tg_targets()[t], .planned = ALL, .form = &plain};
        for (uint32_t type = 0; type < N_TYPES; type++) {
            c.type = types[type];
            c.coded = is_rich ? widths_of_rich(t, type) : widths_of(variant, number, t);
            if (is_rich || type == t % N_TYPES)
                cover(&c, ptxas);
        }
        /* a form a target, and each form on another one for the next variant */
        c.form = &forms[(t + number) % N_FORMS];
        c.type = types[(t + number / 2) % N_TYPES];
        cover_form(c, is_rich || has_turn(variant, t), (2 * number + t) % N_OTHERS, ptxas);
    }
}

void suite_targets(const char *ptxas)
{
    uint32_t number = 0;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++, number++) {
        const bool is_rich = *v == &tg_mlstm_sig || *v == &tg_mlstm_exp;
        cover_variant(*v, is_rich, number, ptxas);
        cover_variant((*v)->backward, is_rich, number, ptxas);
    }
}
