/* tests/compile/refusals.c - what cannot be compiled is refused with its reason. */
#include "compile.h"

#include "variants/variants.h"

#include <string.h>

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
#include "tests/kernels/refusals.def"
};
#undef REFUSAL
#undef REFUSAL_OF

/* The first of the compiler's messages that has another place than a row of the schedule: what is to be changed is the row, whose
 * file is not that of the statements. */
struct strays {
    const tg_schedule *schedule;
    char first[200];
};

static void find_stray(void *user, const tg_diag *diag)
{
    struct strays *strays = user;
    const tg_schedule *schedule = strays->schedule;
    bool is_row = false;
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        is_row |= diag->line == schedule->rows[r].line;
    if (strncmp(diag->code, "TG05", 4) == 0 && diag->file && !*strays->first &&
        !(is_row && strcmp(diag->file, schedule->file) == 0))
        snprintf(strays->first, sizeof strays->first, "%s:%d: %s", diag->file, diag->line, diag->message);
}

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
    log_clear();
    if (schedule_of(variant, r->schedule, &schedule)) {
        struct strays strays = {.schedule = &schedule};
        tap_expect(tg_plan_check(&schedule, target, &shape, &log_sink) != TG_OK, "tg_plan_check accepts it");
        (void)tg_plan_check(&schedule, target, &shape, &(tg_sink){find_stray, &strays});
        tap_expect(!*strays.first, "it is in no row of %s: %s", schedule.file, strays.first);
        log_clear();
        tap_expect(tg_compile(variant, &schedule, target, &shape, NULL, &program, &log_sink) != TG_OK,
                   "tg_compile accepts it");
        tap_expect(program == NULL, "there is a program");
        tg_program_free(program);
    }
    snprintf(code, sizeof code, "%s ", r->code);
    tap_expect(strstr(log_text(), code) != NULL, "expected %s, found: %s", r->code, log_text());
    tap_expect(strstr(log_text(), r->fragment) != NULL, "expected \"%s\", found: %s", r->fragment, log_text());
}

static void refuse_table(void)
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
    log_clear();
    tap_expect(tg_plan_check(schedule, tg_target_find(arch), &shape, &log_sink) != TG_OK, "tg_plan_check accepts it");
    tap_expect(strstr(log_text(), expected) != NULL, "expected \"%s\", found: %s", expected, log_text());
}

/* The checker allows it, since at chunk 128 one block is the whole chunk; but a chunk is a run-time
 * size. */
static void refuse_whole_chunk(void)
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

static void add_output(const tg_schedule *schedule, tg_kernel_row *row, const char *name)
{
    uint32_t n = 0, tile = 0;
    while (row->outputs[n])
        n++;
    for (uint32_t i = 1; i < schedule->algorithm->n_tensors; i++)
        if (schedule->algorithm->tensors[i].name && strcmp(schedule->algorithm->tensors[i].name, name) == 0)
            tile = i;
    tap_expect(tile > 0, "no tile %s", name);
    row->outputs[n] = (uint8_t)tile;
}

/* A walk on warpgroups writes matrices of its owner's rows: another one is refused, not left out. */
static void refuse_second_matrix(const char *name)
{
    tg_schedule schedule;
    char expected[160];
    if (!tap_begin("refused: TG0518, a walk that writes %s beside h", name))
        return;
    tap_expect(schedule_of(&tg_simple_gla, "walk", &schedule), "no schedule walk");
    add_output(&schedule, &schedule.rows[schedule.n_rows - 1], name);
    snprintf(expected, sizeof expected, "to the caller in the input type, and cannot write %s", name);
    expect_refused(&schedule, "sm_90a", 128, 256, expected);
    tap_end();
}

/* Outputs of dqk and of dhv from one walk: what a thread block has no room for, and more than one of the second kind. */
static void refuse_joint(void)
{
    static const struct {
        const char *schedule;
        uint32_t dqk, dhv;
        const char *more, *expected;
    } all[] = {
        {"walk-joint", 256, 128, NULL, "it has one head and one tile of 64 rows for each four warps"},
        {"walk-joint", 128, 64, NULL, "it has all of both, and of one of them 64 columns, or 128, for each four warps"},
        {"walk-joint-narrow", 64, 256, NULL, "a state and a tile of more than 128 columns need more registers"},
        {"walk-joint", 128, 128, "dvg",
         "it has one of the other, the sum of a product by the state and of one by a tile"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tg_schedule schedule;
        if (!tap_begin("refused: TG0518, %s at %u, %u%s", all[i].schedule, all[i].dqk, all[i].dhv,
                       all[i].more ? ", one output more" : ""))
            continue;
        tap_expect(schedule_of(tg_simple_gla.backward, all[i].schedule, &schedule), "no schedule %s", all[i].schedule);
        for (uint32_t r = 0; all[i].more && r < schedule.n_rows; r++)
            if (strcmp(schedule.rows[r].name, "dKV") == 0)
                add_output(&schedule, &schedule.rows[r], all[i].more);
        expect_refused(&schedule, "sm_90a", all[i].dqk, all[i].dhv, all[i].expected);
        tap_end();
    }
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

void suite_refusals(void)
{
    refuse_table();
    refuse_whole_chunk();
    refuse_both_ways();
    refuse_second_matrix("states");
    refuse_joint();
    refuse_split_of_output();
}
