/* test_compile.c - the compiler without a device: every target, type and kind of width compiles,
 * and ptxas takes it without spills; what cannot be compiled is refused with its reason; the same
 * input gives the same code, on any number of threads. test_compile [--only TEXT] [--part K/N]
 * [--golden FILE] [--update] [--list] */
#include "cli/cli.h"
#include "code.h"
#include "kernels/tap.h"
#include "made.h"
#include "dsl/slice.h"
#include "variants/variants.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct text messages;

static void emit(void *user, const tg_diag *diag)
{
    const tg_writer w = text_writer(user);
    tg_printf(&w, "%s %s\n", diag->code ? diag->code : "-", diag->message);
}

static const tg_sink sink = {emit, &messages};

static const char *log_text(void)
{
    return text_of(&messages);
}

/* ---- every target ---- */

struct width {
    uint32_t dqk, dhv;
};

/* What people use, the smallest and largest, one block and more, and no powers of two. */
static const struct width widths[] = {{16, 16},   {24, 136},  {40, 72},   {120, 200},
                                      {128, 256}, {120, 512}, {256, 512}, {512, 512}};
enum { N_WIDTHS = 8, N_TARGETS = 6, N_TYPES = 3 };
static const tg_dtype types[N_TYPES] = {TG_BF16, TG_F16, TG_F32};

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
    return tg_schedule_default(variant, target, shape, NULL, chosen, &sink) == TG_OK ? chosen : NULL;
}

/* The delta rule on mma.sync: a walk with the state and four more tiles in registers, in which ptxas spills some (README,
 * Limits). What it must not be is short of a schedule up to this dqk, with fp32 inputs below it; beyond, the state alone takes
 * all registers. */
enum { WIDEST_STATE = 256 };
static bool has_inverse(const tg_algorithm *algorithm)
{
    bool any = false;
    for (uint32_t i = 0; i < algorithm->n_body; i++)
        any |= algorithm->body[i].op == TG_STMT_SOLVE;
    return any;
}

/* Bytes that ptxas may spill. Walks of packed sequences where 64 does not divide dhv have guards beside all that they had, and
 * four heads in one thread block hardly leave registers (README, Limits: 20 bytes of lightning-backward, 168 with the stack of mamba2-backward,
 * 100 of hgrn2, whose keys are made in the kernel; KDA's T, which makes gates, products and the inverse, 244 at dqk 128, and 656
 * where its keys are made there too). */
static uint32_t most_spilled(const tg_schedule *schedule, const tg_shape_class *shape)
{
    if (has_inverse(schedule->algorithm) && strncmp(schedule->name, "portable", 8) == 0)
        return UINT32_MAX;
    if (strncmp(schedule->algorithm->name, "hgrn2", 5) == 0)
        return 100;
    if (strcmp(schedule->algorithm->name, "dfw-backward") == 0)
        return 48; /* two decays in each product */
    if (strncmp(schedule->algorithm->name, "kda", 3) == 0)
        return 1200;
    bool walks = false;
    for (uint32_t i = 0; i < schedule->n_rows; i++)
        walks |= schedule->rows[i].mma == TG_MMA_WGMMA;
    if (strcmp(schedule->name, "walk-parts-heads") == 0 || strcmp(schedule->name, "walk-parts-pairs") == 0)
        return 168;
    return walks && shape->packed && shape->dhv % 64 ? 20 : 0;
}

static void check_kernel(const tg_kernel *kernel, const tg_target *target, const char *ptxas, uint32_t spilled)
{
    char wanted[40];
    snprintf(wanted, sizeof wanted, ".target %s", target->arch);
    tap_expect(strstr(kernel->ptx, wanted) != NULL, "%s: no line %s", kernel->name, wanted);
    tap_expect(kernel->spill_bytes <= spilled, "%s spills %u bytes", kernel->name, kernel->spill_bytes);
    tap_expect(!ptxas || (kernel->registers > 0 && kernel->cubin_bytes > 0), "%s: no facts of ptxas", kernel->name);
    tap_expect(kernel->shared_bytes <= target->shared_optin, "%s: shared memory", kernel->name);
}

/* Nothing was said but that something spills? */
static bool says_only_spills(void)
{
    for (const char *code = log_text(); (code = strstr(code, "TG0")); code++)
        if (strncmp(code, "TG0592", 6) != 0)
            return false;
    return !strstr(log_text(), "C75");
}

static void compile_with(const tg_variant *variant, const tg_schedule *schedule, const tg_target *target,
                         const tg_shape_class *shape, const char *ptxas)
{
    const uint32_t spilled = most_spilled(schedule, shape);
    const tg_compile_options how = {.ptxas = ptxas, .strict = !spilled};
    tg_program *program = NULL;
    tg_status status = tg_compile(variant, schedule, target, shape, &how, &program, &sink);
    tap_expect(status == TG_OK && (spilled ? says_only_spills() : !*log_text()), "dqk %u dhv %u: %s with %s: %s",
               shape->dqk, shape->dhv, tg_status_name(status), schedule->name, log_text());
    for (uint32_t k = 0; program && k < program->n_kernels; k++)
        check_kernel(&program->kernels[k], target, ptxas, spilled);
    tg_program_free(program);
}

/* With the schedule, if there is one, and why not. */
static bool is_too_wide(const tg_variant *variant, const tg_schedule *schedule, const tg_target *target,
                        const tg_shape_class *shape)
{
    tg_program *program = NULL;
    const bool is_made =
        schedule && tg_compile(variant, schedule, target, shape, &(tg_compile_options){0}, &program, &sink) == TG_OK;
    tg_program_free(program);
    return !is_made && strstr(log_text(), "TG0530");
}

/* As it would be compiled, up to the code. */
static void plan_with(const tg_schedule *schedule, const tg_target *target, const tg_shape_class *shape)
{
    tap_expect(tg_plan_check(schedule, target, shape, &sink) == TG_OK && !*log_text(), "dqk %u dhv %u, %s: %s",
               shape->dqk, shape->dhv, schedule->name, log_text());
}

static void compile_one(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                        const struct form *form, bool is_planned, const char *ptxas)
{
    text_free(&messages);
    tg_schedule chosen;
    const tg_schedule *schedule = schedule_for(variant, target, shape, form, &chosen);
    const bool is_widest = shape->io == TG_F32 && shape->dqk == WIDEST_STATE && !schedule;
    if (has_inverse(variant->algorithm) && (shape->dqk > WIDEST_STATE || is_widest)) {
        tap_expect(is_too_wide(variant, schedule, target, shape),
                   "dqk %u: expected to be refused for its registers: %s", shape->dqk, log_text());
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

/* A line of the test: some widths, bit by bit. */
struct coverage {
    const tg_variant *variant;
    const tg_target *target;
    tg_dtype type;
    uint32_t widths;
    const struct form *form;
    bool is_planned; /* and no code made */
};

static void cover(const struct coverage *c, const char *ptxas)
{
    const struct form *f = c->form;
    if (!c->widths || !tap_begin("default %s of %s for %s, %s%s%s", c->is_planned ? "plans" : "schedules",
                                 c->variant->name, c->target->arch, tg_dtype_name(c->type), f->name,
                                 ptxas || c->is_planned ? "" : " (no ptxas: not assembled)"))
        return;
    for (uint32_t w = 0; w < N_WIDTHS; w++) {
        const tg_shape_class shape = {c->type, widths[w].dqk, widths[w].dhv, f->group, f->tokens, f->packed, f->pooled};
        if (c->widths >> w & 1)
            compile_one(c->variant, c->target, &shape, f, c->is_planned, ptxas);
    }
    tap_end();
}

/* The plainest and the richest variant stand for all: with bf16 every width on three targets, the
 * one of the README on all, with the other types every width on one. Of the other variants each
 * target gets one width and one type. */
static uint32_t widths_of(bool is_rich, uint32_t variant, uint32_t target, uint32_t type)
{
    enum { README = 4 };
    uint32_t set = 0;
    if (!is_rich)
        return type == target % N_TYPES ? 1u << (variant + 3 * target) % N_WIDTHS : 0;
    for (uint32_t w = 0; w < N_WIDTHS; w++)
        if (type ? (w + 2 * type) % N_TARGETS == target : (w + target) % 2 == 0 || w == README)
            set |= 1u << w;
    return set;
}

/* How many variants have its table of schedules, and which of them this is, from 0 on. */
static uint32_t share_table(const tg_variant *variant, uint32_t *rank)
{
    uint32_t n = 0;
    *rank = 0;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++)
        if ((*v)->schedules == variant->schedules || (*v)->backward->schedules == variant->schedules) {
            if (*v == variant || (*v)->backward == variant)
                *rank = n;
            n++;
        }
    return n;
}

/* Kernels of one table differ in the expressions of gates alone. So its variants take turns, up to three of them: on a target
 * one has code, the others the plans of all widths; and of each the gradients have code where the forward has plans. */
static bool has_turn(const tg_variant *variant, bool is_rich, uint32_t target)
{
    uint32_t rank;
    const uint32_t n = share_table(variant, &rank), n_turns = n < 3 ? n : 3;
    return is_rich || (rank + target + !variant->backward) % n_turns == 0;
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
static void cover_form(struct coverage c, uint32_t width, const char *ptxas)
{
    const bool is_kept = c.form->schedule && !c.form->tokens;
    if (c.form->tokens && !has_step_of(c.variant, c.form->tokens))
        return;
    if (is_kept && c.target->shared_optin <= 160000)
        return;
    if (is_kept)
        c.type = TG_BF16;
    c.widths = 1u << (is_kept ? width % 2 : width);
    cover(&c, ptxas);
}

static void cover_variant(const tg_variant *variant, bool is_rich, uint32_t number, const char *ptxas)
{
    for (uint32_t t = 0; t < N_TARGETS; t++) {
        struct coverage c = {.variant = variant,
                             .target = tg_targets()[t],
                             .form = &plain,
                             .is_planned = !has_turn(variant, is_rich, t)};
        for (uint32_t type = 0; type < N_TYPES; type++) {
            c.type = types[type];
            c.widths = widths_of(is_rich, number, t, type);
            if (c.is_planned && c.widths)
                c.widths = (1u << N_WIDTHS) - 1;
            cover(&c, ptxas);
        }
        /* a form a target, and each form on another one for the next variant */
        c.form = &forms[(t + number) % N_FORMS];
        c.type = types[(t + number / 2) % N_TYPES];
        cover_form(c, (2 * number + t) % N_WIDTHS, ptxas);
    }
}

static void suite_targets(const char *ptxas)
{
    uint32_t number = 0;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++, number++) {
        const bool is_rich = *v == &tg_mlstm_sig || *v == &tg_mlstm_exp;
        cover_variant(*v, is_rich, number, ptxas);
        cover_variant((*v)->backward, is_rich, number, ptxas);
    }
}

/* ---- kernels on warpgroups ---- */

/* "tfla chunk=64" */
static bool schedule_of(const tg_variant *variant, const char *text, tg_schedule *schedule)
{
    return tg_variant_schedule_named(variant, text, schedule, &sink) == TG_OK;
}

/* Every block that they hold, for the plainest and the richest variants that walk; one of these in
 * packed sequences (gradients not: some of those spill a few words). */
static const struct walk {
    const char *schedule;
    struct width width;
    bool with_floor;    /* of the normalised variants alone */
    uint32_t group;     /* of gradients; 0: 1 */
    bool unpacked;      /* it takes no packed sequences */
    bool without_floor; /* not of these: refused, or ptxas serialises its products (C7512) */
} walks[] =
    {
        {.schedule = "walk", .width = {128, 256}},
        {.schedule = "walk", .width = {64, 256}},
        {.schedule = "walk", .width = {128, 512}},
        {.schedule = "walk walk.warps=4", .width = {64, 256}},
        {.schedule = "walk walk.dhv=128", .width = {128, 128}},
        {.schedule = "walk-wide", .width = {192, 384}},
        {.schedule = "walk-wide", .width = {256, 128}},
        {.schedule = "walk walk.dhv=512 walk.stages=2", .width = {64, 512}, .without_floor = true},
        {.schedule = "walk-narrow", .width = {192, 192}},
        {.schedule = "walk-narrow walk.stages=4", .width = {64, 64}},
        {.schedule = "walk walk.dhv=128 walk.warps=4", .width = {128, 128}},
        {.schedule = "walk-n", .width = {128, 256}, .with_floor = true},
        {.schedule = "walk-n-wide", .width = {256, 512}, .with_floor = true},
        {.schedule = "segments", .width = {128, 256}, .unpacked = true},
        {.schedule = "segments", .width = {64, 512}, .unpacked = true},
        {.schedule = "segments-wide", .width = {256, 128}, .unpacked = true},
        {.schedule = "segments-narrow", .width = {192, 64}, .unpacked = true},
        {.schedule = "walk-wide-cast", .width = {256, 512}},
        {.schedule = "walk-wide-cast4", .width = {256, 512}, .unpacked = true},
        {.schedule = "walk-n-wide-cast", .width = {128, 256}, .with_floor = true},
        {.schedule = "tfla-wgmma", .width = {128, 256}},
        {.schedule = "tfla-wgmma", .width = {64, 512}},
        {.schedule = "tfla-wgmma state.warps=8 state.dhv=256", .width = {128, 256}},
        {.schedule = "tfla-wgmma-wide", .width = {256, 512}},
        {.schedule = "tfla-wgmma-narrow", .width = {192, 64}},
        {.schedule = "walk-parts walk.dqk=192", .width = {384, 64}},
        {.schedule = "walk-parts", .width = {512, 128}},
        {.schedule = "segments-n", .width = {128, 256}, .with_floor = true},
        {.schedule = "segments-n-wide", .width = {256, 512}, .with_floor = true},
},
  back_walks[] = {
      {.schedule = "walk", .width = {128, 256}},
      {.schedule = "walk dV.stages=2", .width = {256, 128}},
      {.schedule = "walk-narrow", .width = {64, 64}},
      {.schedule = "walk-narrow", .width = {192, 128}},
      {.schedule = "walk-n", .width = {128, 256}, .with_floor = true},
      {.schedule = "walk-n", .width = {128, 128}, .with_floor = true},
      {.schedule = "segments", .width = {128, 256}},
      {.schedule = "segments-narrow", .width = {64, 64}},
      {.schedule = "tfla-wgmma", .width = {128, 256}},
      {.schedule = "tfla-wgmma-narrow", .width = {64, 64}},
      {.schedule = "walk-cluster", .width = {128, 512}},
      {.schedule = "walk-parts", .width = {128, 256}, .group = 4},
      {.schedule = "walk-parts-narrow", .width = {128, 64}, .group = 8},
      {.schedule = "walk-parts-deep", .width = {512, 256}},
      {.schedule = "walk-parts-narrow dQ.dhv=192 dK.dhv=192", .width = {192, 384}},
      {.schedule = "walk-cluster-cast", .width = {128, 256}},
      {.schedule = "walk-cluster-cast4", .width = {256, 512}},
      {.schedule = "walk-parts-heads", .width = {128, 64}, .group = 8, .without_floor = true},
};

static void cover_walk(const tg_variant *variant, const struct walk *walk, size_t i, const char *ptxas)
{
    const tg_target *target = tg_target_find("sm_90a");
    const bool packed = variant == &tg_mamba2 && !walk->unpacked;
    tg_shape_class shape = {.io = types[i % 2],
                            .dqk = walk->width.dqk,
                            .dhv = walk->width.dhv,
                            .group = walk->group                       ? walk->group
                                     : variant->backward && i % 3 == 1 ? 2
                                                                       : 1,
                            .packed = packed,
                            .pooled = i % 4 == 1};
    tg_schedule schedule;
    if (!tap_begin("%s of %s, %s dqk %u dhv %u%s%s%s%s", walk->schedule, variant->name, tg_dtype_name(shape.io),
                   shape.dqk, shape.dhv, shape.group > 1 ? ", shared heads" : "", packed ? ", packed" : "",
                   shape.pooled ? ", pooled" : "", ptxas ? "" : " (no ptxas: not assembled)"))
        return;
    text_free(&messages);
    if (tap_expect(schedule_of(variant, walk->schedule, &schedule), "no schedule: %s", log_text()))
        compile_with(variant, &schedule, target, &shape, ptxas);
    tap_end();
}

static void suite_walks(const char *ptxas)
{
    const tg_variant *const variants[] = {&tg_mlstm_sig, &tg_mlstm_exp, &tg_mamba2};
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        for (size_t i = 0; i < sizeof walks / sizeof *walks; i++)
            if (variants[v] == &tg_mlstm_exp ? !walks[i].without_floor : !walks[i].with_floor)
                cover_walk(variants[v], &walks[i], i, ptxas);
        for (size_t i = 0; i < sizeof back_walks / sizeof *back_walks; i++)
            if (variants[v] == &tg_mlstm_exp ? !back_walks[i].without_floor : !back_walks[i].with_floor)
                cover_walk(variants[v]->backward, &back_walks[i], i, ptxas);
    }
}

/* ---- refusals ---- */

struct refusal {
    const char *variant; /* NULL: mlstm-sig */
    tg_shape_class more; /* what the class has beside type and widths */
    const char *arch;
    tg_dtype io;
    uint32_t dqk, dhv;
    const char *schedule; /* a name, then changes */
    const char *code, *fragment;
};

#define REFUSAL(...)                     {.variant = NULL, .more = {0}, __VA_ARGS__},
#define REFUSAL_OF(variant_, more_, ...) {.variant = variant_, .more = {more_}, __VA_ARGS__},
static const struct refusal refusals[] = {
#include "kernels/refusals.def"
};
#undef REFUSAL
#undef REFUSAL_OF

static void refuse(const struct refusal *r)
{
    const tg_target *target = tg_target_find(r->arch);
    const tg_variant *variant = r->variant ? tg_variant_find(r->variant) : &tg_mlstm_sig;
    tg_shape_class shape = r->more;
    tg_program *program = NULL;
    tg_schedule schedule;
    char code[16];
    shape.io = r->io;
    shape.dqk = r->dqk;
    shape.dhv = r->dhv;
    text_free(&messages);
    if (schedule_of(variant, r->schedule, &schedule)) {
        tap_expect(tg_plan_check(&schedule, target, &shape, &sink) != TG_OK, "tg_plan_check accepts it");
        text_free(&messages);
        tap_expect(tg_compile(variant, &schedule, target, &shape, NULL, &program, &sink) != TG_OK,
                   "tg_compile accepts it");
        tap_expect(program == NULL, "there is a program");
        tg_program_free(program);
    }
    snprintf(code, sizeof code, "%s ", r->code);
    tap_expect(strstr(log_text(), code) != NULL, "expected %s, found: %s", r->code, log_text());
    tap_expect(strstr(log_text(), r->fragment) != NULL, "expected \"%s\", found: %s", r->fragment, log_text());
}

static void suite_refusals(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        if (!tap_begin("refused: %s, %s, %s %s dqk %u dhv %u, %s", r->code, r->variant ? r->variant : "mlstm-sig",
                       r->arch, tg_dtype_name(r->io), r->dqk, r->dhv, r->schedule))
            continue;
        refuse(r);
        tap_end();
    }
}

/* A schedule that a test has changed is refused, and why. */
static void expect_refused(const tg_schedule *schedule, const char *arch, uint32_t dqk, uint32_t dhv,
                           const char *expected)
{
    const tg_shape_class shape = {.io = TG_BF16, .dqk = dqk, .dhv = dhv};
    text_free(&messages);
    tap_expect(tg_plan_check(schedule, tg_target_find(arch), &shape, &sink) != TG_OK, "tg_plan_check accepts it");
    tap_expect(strstr(log_text(), expected) != NULL, "expected \"%s\", found: %s", expected, log_text());
}

/* The checker allows it, since at chunk 128 one block is the whole chunk; but a chunk is a run-time
 * size. */
static void suite_whole_chunk(void)
{
    tg_schedule schedule;
    if (!tap_begin("refused: TG0516, a scan over parallel positions of one block"))
        return;
    tap_expect(schedule_of(&tg_mlstm_sig, "tfla", &schedule), "no schedule tfla");
    schedule.chunk = 128;
    schedule.rows[0].row[TG_LKV].role = TG_ROLE_P;
    tap_expect(tg_schedule_check(&schedule, &silent_sink) == TG_OK, "the checker refuses it");
    expect_refused(&schedule, "sm_80", 64, 64, "TG0516 ");
    tap_end();
}

/* The max states are made by two scans over the chunks. */
static void refuse_both_ways(void)
{
    tg_schedule schedule;
    tg_stmt body[128];
    if (!tap_begin("refused: TG0519, scans over chunks in both directions"))
        return;
    tap_expect(schedule_of(&tg_mlstm_exp, "tfla", &schedule), "no schedule tfla");
    tg_algorithm algorithm = *schedule.algorithm;
    schedule.algorithm = &algorithm;
    memcpy(body, algorithm.body, algorithm.n_body * sizeof *body);
    algorithm.body = body;
    for (uint32_t i = 0; i < algorithm.n_body; i++)
        if (body[i].op == TG_STMT_SCAN && body[i].flags == (TG_MAXIMUM | TG_EXCLUSIVE))
            body[i].flags |= TG_REVERSE;
    expect_refused(&schedule, "sm_80", 64, 64, "TG0519 ");
    tap_end();
}

/* A walk on warpgroups writes matrices of its owner's rows: another one is refused, not left out. */
static void refuse_second_matrix(const char *name)
{
    tg_schedule schedule;
    char expected[160];
    if (!tap_begin("refused: TG0518, a walk that writes %s beside h", name))
        return;
    tap_expect(schedule_of(&tg_simple_gla, "walk", &schedule), "no schedule walk");
    tg_kernel_row *row = &schedule.rows[schedule.n_rows - 1];
    uint32_t n = 0, tile = 0;
    while (row->outputs[n])
        n++;
    for (uint32_t i = 1; i < schedule.algorithm->n_tensors; i++)
        if (schedule.algorithm->tensors[i].name && strcmp(schedule.algorithm->tensors[i].name, name) == 0)
            tile = i;
    tap_expect(tile > 0, "no tile %s", name);
    row->outputs[n] = (uint8_t)tile;
    snprintf(expected, sizeof expected, "to the caller in the input type, in a cluster one, and cannot write %s", name);
    expect_refused(&schedule, "sm_90a", 128, 256, expected);
    tap_end();
}

/* dV goes to the caller, who adds up no parts. */
static void refuse_split_of_output(void)
{
    tg_schedule schedule;
    if (!tap_begin("refused: TG0217, an output in parts"))
        return;
    tap_expect(schedule_of(tg_mlstm_exp.backward, "walk-parts", &schedule), "no schedule walk-parts");
    for (uint32_t r = 0; r < schedule.n_rows; r++)
        if (strcmp(schedule.rows[r].name, "dV") == 0)
            schedule.rows[r].row[TG_DQK] = (tg_axis_role)TG_P(64);
    expect_refused(&schedule, "sm_90a", 128, 256,
                   "kernel dV: dqk is parallel in blocks of 64, but this kernel sums over it to make dvi");
    tap_expect(strstr(log_text(), "TG0217 ") != NULL, "found: %s", log_text());
    tap_end();
}

/* Any combination of fields either compiles or is refused with a reason: LLVM never aborts, and no
 * plan that passed its checks fails later. */
struct combination {
    const tg_variant *variant;
    tg_schedule schedule;
    tg_shape_class shape;
    const tg_target *target;
};

/* Picks of a stream of random numbers. */
static uint64_t pick(uint64_t *draw, uint64_t n)
{
    return num_bits((struct num_random){11, num_stream("combinations")}, (*draw)++) % n;
}

/* Half of the draws are of mlstm-sig, whose rows the fields name. */
static void draw_variant(uint64_t *draw, struct combination *c)
{
    uint64_t n_variants = 0, n_schedules = 0;
    while (tg_builtin_variants[n_variants])
        n_variants++;
    c->variant = pick(draw, 2) ? tg_builtin_variants[pick(draw, n_variants)] : &tg_mlstm_sig;
    if (pick(draw, 3) == 0)
        c->variant = c->variant->backward;
    while (tg_variant_schedule(c->variant, (uint32_t)n_schedules, &c->schedule))
        n_schedules++;
    (void)tg_variant_schedule(c->variant, (uint32_t)pick(draw, n_schedules), &c->schedule);
}

static bool is_on_warpgroups(const tg_schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        if (schedule->rows[r].mma == TG_MMA_WGMMA)
            return true;
    return false;
}

/* Half of the schedules on warpgroups are drawn again: few targets and widths take them, and the next draw is theirs. */
static void draw_combination(uint64_t *draw, struct combination *c)
{
    static const char *const fields[] = {
        "H.Lhq",     "H.Lkv",      "H.dqk",  "H.dhv",  "H.warps",      "H.stages",        "state.Lkv",   "state.dqk",
        "state.dhv", "chunk",      "dQ.Lhq", "dK.Lkv", "state.stages", "H.blocks_per_sm", "gates.warps", "gates.Lkv",
        "step.dhv",  "step.warps", "dQ.dhv", "dV.dqk", "nsum.dqk",     "state.warps",     "maxima.warps"};
    static const uint32_t values[] = {0, 1, 2, 3, 4, 8, 16, 32, 48, 64, 128, 256, 512};
    static const uint32_t sizes[] = {16, 24, 64, 136, 256, 512};
    static const uint32_t tokens[] = {0, 0, 0, 1, 2, 8, 9};
    do {
        draw_variant(draw, c);
    } while (is_on_warpgroups(&c->schedule) && pick(draw, 2));
    c->shape = (tg_shape_class){.io = types[pick(draw, N_TYPES)],
                                .dqk = sizes[pick(draw, 6)],
                                .dhv = sizes[pick(draw, 6)],
                                .group = (uint32_t)pick(draw, 3),
                                .tokens = tokens[pick(draw, 7)],
                                .packed = pick(draw, 3) == 0,
                                .pooled = pick(draw, 3) == 0};
    c->target = tg_targets()[pick(draw, N_TARGETS)];
    for (uint64_t n = pick(draw, 4); n > 0; n--) {
        char change[64];
        const char *field = fields[pick(draw, sizeof fields / sizeof *fields)];
        snprintf(change, sizeof change, "%s=%u", field, values[pick(draw, 13)]);
        tg_schedule_apply(change, &c->schedule, &silent_sink);
    }
}

static tg_status try_combination(const struct combination *c, int number)
{
    tg_program *program = NULL;
    text_free(&messages);
    const tg_status status = tg_compile(c->variant, &c->schedule, c->target, &c->shape, NULL, &program, &sink);
    tap_expect((status == TG_OK) == (program != NULL), "combination %d: status %d", number, (int)status);
    tap_expect(status == TG_OK || *log_text(), "combination %d: no reason", number);
    tap_expect(status != TG_E_COMPILE && !strstr(log_text(), "TG0590") && !strstr(log_text(), "TG0599"),
               "combination %d, %s %s %s dqk %u dhv %u: %s", number, c->variant->name, c->target->arch,
               tg_dtype_name(c->shape.io), c->shape.dqk, c->shape.dhv, log_text());
    tg_program_free(program);
    return status;
}

/* Walks, forward and backward, of widths and blocks that are seldom drawn together otherwise. */
static void draw_walk(uint64_t *draw, struct combination *c)
{
    static const char *const changes[] = {
        "walk.dhv=64", "walk.dhv=128", "walk.dhv=512", "walk.warps=4", "walk.stages=2", "walk.stages=4",  "dQ.dqk=64",
        "dQ.warps=4",  "dK.dqk=64",    "dK.warps=4",   "dV.dhv=64",    "dV.dhv=128",    "dV.warps=4",     "dV.stages=2",
        "dK.dqk=256",  "walk.seg=1",   "dQ.seg=7",     "state.dhv=64", "state.dqk=64",  "dstate.warps=4", "dQ.dhv=64",
        "dQ.dhv=128",  "dK.dhv=192",   "dKsum.dqk=64", "dQsum.warps=2"};
    static const uint32_t sizes[] = {64, 128, 192, 256, 512};
    do {
        draw_variant(draw, c);
    } while (!is_on_warpgroups(&c->schedule));
    c->shape = (tg_shape_class){.io = types[pick(draw, 2)],
                                .dqk = sizes[pick(draw, 5)],
                                .dhv = sizes[pick(draw, 5)],
                                .group = (uint32_t)pick(draw, 3),
                                .packed = pick(draw, 3) == 0,
                                .pooled = pick(draw, 3) == 0};
    c->target = tg_target_find("sm_90a");
    for (uint64_t n = pick(draw, 4); n > 0; n--)
        tg_schedule_apply(changes[pick(draw, sizeof changes / sizeof *changes)], &c->schedule, &silent_sink);
}

static void try_combinations(void (*draw_one)(uint64_t *, struct combination *), int n)
{
    uint64_t draw = 0;
    int n_compiled = 0, n_refused = 0;
    for (int i = 0; i < n; i++) {
        struct combination c;
        draw_one(&draw, &c);
        const bool ok = try_combination(&c, i) == TG_OK;
        n_compiled += ok;
        n_refused += !ok;
    }
    tap_note("%d compiled, %d refused", n_compiled, n_refused);
    tap_expect(n_compiled > n / 8 && n_refused > n / 8, "a one-sided draw");
}

static void suite_combinations(void)
{
    if (tap_begin("any combination compiles or is refused with a reason")) {
        try_combinations(draw_combination, 400);
        tap_end();
    }
    if (tap_begin("any walk compiles or is refused with a reason")) {
        try_combinations(draw_walk, 200);
        tap_end();
    }
}

/* ---- the same code ---- */

static tg_program *default_program(tg_dtype io)
{
    tg_program *program = NULL;
    const tg_target *target = tg_target_find("sm_80");
    const tg_shape_class shape = {.io = io, .dqk = 64, .dhv = 64};
    tg_schedule schedule;
    if (tg_schedule_default(&tg_mlstm_sig, target, &shape, NULL, &schedule, &silent_sink) == TG_OK)
        tg_compile(&tg_mlstm_sig, &schedule, target, &shape, NULL, &program, &silent_sink);
    return program;
}

/* What is kept has no source lines, and so no labels where they begin and end. */
static void drop_labels(struct text *code)
{
    static const char *const labels[] = {"$L__func_begin0:\n", "$L__func_end0:\n"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char *at = code->bytes ? strstr(code->bytes, labels[i]) : NULL;
        if (at)
            memmove(at, at + strlen(labels[i]), strlen(at + strlen(labels[i])) + 1);
    }
}

static bool same_ptx(const char *a, const char *b)
{
    struct text code[2] = {0};
    add_code(&code[0], a);
    add_code(&code[1], b);
    drop_labels(&code[0]);
    drop_labels(&code[1]);
    const bool same = strcmp(text_of(&code[0]), text_of(&code[1])) == 0;
    text_free(&code[0]);
    text_free(&code[1]);
    return same;
}

static bool same_code(const tg_program *a, const tg_program *b)
{
    bool same = a && b && a->n_kernels == b->n_kernels;
    for (uint32_t k = 0; same && k < a->n_kernels; k++)
        same =
            same_ptx(a->kernels[k].ptx, b->kernels[k].ptx) && a->kernels[k].shared_bytes == b->kernels[k].shared_bytes;
    return same;
}

static void *compile_thread(void *io)
{
    return default_program(*(const tg_dtype *)io);
}

static void expect_same_code(const tg_program *first, tg_program *again, const char *what)
{
    tap_expect(same_code(first, again), "%s differs", what);
    tg_program_free(again);
}

static void compile_in_threads(const tg_program *const first[N_TYPES])
{
    enum { N_THREADS = 4 };
    pthread_t threads[N_THREADS];
    tg_dtype io[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        io[i] = types[i % N_TYPES];
        tap_expect(pthread_create(&threads[i], NULL, compile_thread, &io[i]) == 0, "no thread");
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *program = NULL;
        pthread_join(threads[i], &program);
        expect_same_code(first[i % N_TYPES], program, "what a thread made");
    }
}

static void suite_same_code(void)
{
    tg_program *first[N_TYPES];
    if (!tap_begin("compiling twice, and in four threads, gives the same PTX"))
        return;
    made_take(false);
    for (int i = 0; i < N_TYPES; i++)
        first[i] = default_program(types[i]);
    for (int i = 0; i < N_TYPES; i++)
        expect_same_code(first[i], default_program(types[i]), tg_dtype_name(types[i]));
    compile_in_threads((const tg_program *const *)first);
    made_take(true);
    for (int i = 0; i < 2 * N_TYPES; i++)
        expect_same_code(first[i / 2], default_program(types[i / 2]), "what was kept");
    for (int i = 0; i < N_TYPES; i++)
        tg_program_free(first[i]);
    tap_end();
}

/* ---- the plan ---- */

static void keep_plan(void *user, const char *kernel, tg_stage stage, const char *text)
{
    const tg_writer w = text_writer(user);
    if (stage == TG_STAGE_PLAN && strstr(kernel, "_H"))
        tg_printf(&w, "%s", text);
}

static void check_golden(const char *plan, const char *path, bool is_update)
{
    FILE *file = fopen(path, is_update ? "w" : "r");
    if (!tap_expect(file != NULL, "cannot open %s", path))
        return;
    if (is_update) {
        fputs(plan, file);
        fclose(file);
        return;
    }
    char line[512];
    uint32_t number = 1;
    for (const char *at = plan; fgets(line, sizeof line, file); number++) {
        const size_t n = strcspn(line, "\n") + 1;
        if (!tap_expect(strncmp(at, line, n) == 0,
                        "line %u\n  expected %.*s\n  found    %.*s\n  --update writes the file anew", number,
                        (int)n - 1, line, (int)strcspn(at, "\n"), at))
            break;
        at += n;
    }
    fclose(file);
}

static void suite_plan(const char *golden, bool is_update)
{
    struct text plan = {0};
    const tg_compile_options how = {.stage = keep_plan, .user = &plan};
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = 256};
    const tg_target *target = tg_target_find("sm_90a");
    tg_program *program = NULL;
    if (!golden || !tap_begin("the plan of H for bf16, dqk 128, dhv 256 on sm_90a is as written"))
        return;
    const struct form tfla = {"", 1, 0, 0, 0, "tfla"};
    tg_schedule chosen;
    const tg_schedule *schedule = schedule_for(&tg_mlstm_sig, target, &shape, &tfla, &chosen);
    tap_expect(schedule && tg_compile(&tg_mlstm_sig, schedule, target, &shape, &how, &program, &sink) == TG_OK, "%s",
               log_text());
    check_golden(text_of(&plan), golden, is_update);
    tg_program_free(program);
    text_free(&plan);
    tap_end();
}

int main(int argc, char **argv)
{
    static struct context context;
    const char *golden = NULL;
    bool is_update = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--update") == 0)
            is_update = true;
        else if (strcmp(argv[i], "--list") == 0)
            tap_list();
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            tap_only(argv[++i]);
        else if (strcmp(argv[i], "--part") == 0 && i + 1 < argc && tap_part(argv[i + 1]))
            i++;
        else if (strcmp(argv[i], "--golden") == 0 && i + 1 < argc)
            golden = argv[++i];
    }
    const char *ptxas = ptxas_find(&context);
    printf("# ptxas: %s\n", ptxas ? ptxas : "none, nothing is assembled");
    suite_plan(golden, is_update);
    suite_refusals();
    suite_whole_chunk();
    refuse_both_ways();
    refuse_second_matrix("states");
    refuse_split_of_output();
    suite_same_code();
    suite_combinations();
    suite_walks(ptxas);
    suite_targets(ptxas);
    text_free(&messages);
    return tap_finish();
}
