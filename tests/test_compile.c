/* test_compile.c - the compiler without a device: every target, type and kind of width compiles,
 * and ptxas takes it without spills; what cannot be compiled is refused with its reason; the same
 * input gives the same code, on any number of threads. test_compile [--only TEXT] [--golden FILE]
 * [--update] */
#include "cli/cli.h"
#include "kernels/tap.h"
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
static const struct width widths[] = {{16, 16}, {64, 64}, {128, 256}, {40, 72}, {512, 512}};
static const tg_dtype types[] = {TG_BF16, TG_F16, TG_F32};

static void compile_one(const tg_variant *variant, const tg_target *target,
                        const tg_shape_class *shape, const char *ptxas)
{
    const tg_compile_options how = {.ptxas = ptxas, .strict = 1};
    const tg_schedule *schedule = tg_schedule_default(variant, target, shape, &sink);
    tg_program *program = NULL;
    if (!tap_expect(schedule != NULL, "dqk %u dhv %u: no schedule fits: %s", shape->dqk, shape->dhv,
                    log_text()))
        return;
    tg_status status = tg_compile(variant, schedule, target, shape, &how, &program, &sink);
    tap_expect(status == TG_OK && !*log_text(), "dqk %u dhv %u: %s with %s: %s", shape->dqk,
               shape->dhv, tg_status_name(status), schedule->name, log_text());
    for (uint32_t k = 0; program && k < program->n_kernels; k++) {
        const tg_kernel *kernel = &program->kernels[k];
        char wanted[40];
        snprintf(wanted, sizeof wanted, ".target %s", target->arch);
        tap_expect(strstr(kernel->ptx, wanted) != NULL, "%s: no line %s", kernel->name, wanted);
        tap_expect(kernel->spill_bytes == 0, "%s spills %u bytes", kernel->name,
                   kernel->spill_bytes);
        tap_expect(!ptxas || (kernel->registers > 0 && kernel->cubin_bytes > 0),
                   "%s: no facts of ptxas", kernel->name);
        tap_expect(kernel->shared_bytes <= target->shared_optin, "%s: shared memory", kernel->name);
    }
    tg_program_free(program);
}

/* What a variant's default schedules are for. */
struct coverage {
    const tg_variant *variant;
    const struct width *widths;
    size_t n_widths, n_types;
};

/* Left out: 40 x 72 and 120 x 200, where dstate spills (README, limits). */
static const struct width backward_widths[] = {{16, 16}, {64, 64}, {128, 256}, {24, 136}, {120, 512}};
static const struct coverage coverages[] = {
    {&tg_mlstm_sig, widths, sizeof widths / sizeof *widths, 3},
    {&tg_mlstm_sig_backward, backward_widths, sizeof backward_widths / sizeof *backward_widths, 2},
};

static void cover(const struct coverage *c, const tg_target *target, tg_dtype type, const char *ptxas)
{
    if (!tap_begin("default schedules of %s for %s, %s%s", c->variant->name, target->arch,
                   tg_dtype_name(type), ptxas ? "" : " (no ptxas: not assembled)"))
        return;
    for (size_t w = 0; w < c->n_widths; w++) {
        const tg_shape_class shape = {type, c->widths[w].dqk, c->widths[w].dhv};
        text_free(&messages);
        compile_one(c->variant, target, &shape, ptxas);
    }
    tap_end();
}

static void suite_targets(const char *ptxas)
{
    for (size_t c = 0; c < sizeof coverages / sizeof *coverages; c++)
        for (const tg_target *const *t = tg_targets(); *t; t++)
            for (size_t i = 0; i < coverages[c].n_types; i++)
                cover(&coverages[c], *t, types[i], ptxas);
}

/* ---- refusals ---- */

struct refusal {
    const char *arch;
    tg_dtype io;
    uint32_t dqk, dhv;
    const char *schedule; /* a name, then changes */
    const char *code, *fragment;
};

#define REFUSAL(...) {__VA_ARGS__},
static const struct refusal refusals[] = {
#include "kernels/refusals.def"
};
#undef REFUSAL

static bool schedule_of(const char *text, tg_schedule *schedule)
{
    const size_t n = strcspn(text, " ");
    for (const tg_schedule *const *s = tg_mlstm_sig.schedules; *s; s++)
        if (strlen((*s)->name) == n && strncmp((*s)->name, text, n) == 0) {
            *schedule = **s;
            return tg_schedule_apply(text + n, schedule, &sink) == TG_OK;
        }
    return false;
}

static void refuse(const struct refusal *r)
{
    const tg_target *target = tg_target_find(r->arch);
    const tg_shape_class shape = {r->io, r->dqk, r->dhv};
    tg_program *program = NULL;
    tg_schedule schedule;
    char code[16];
    text_free(&messages);
    if (schedule_of(r->schedule, &schedule)) {
        tap_expect(tg_plan_check(&schedule, target, &shape, &sink) != TG_OK,
                   "tg_plan_check accepts it");
        text_free(&messages);
        tap_expect(tg_compile(&tg_mlstm_sig, &schedule, target, &shape, NULL, &program, &sink) !=
                       TG_OK,
                   "tg_compile accepts it");
        tap_expect(program == NULL, "there is a program");
        tg_program_free(program);
    }
    snprintf(code, sizeof code, "%s ", r->code);
    tap_expect(strstr(log_text(), code) != NULL, "expected %s, found: %s", r->code, log_text());
    tap_expect(strstr(log_text(), r->fragment) != NULL, "expected \"%s\", found: %s", r->fragment,
               log_text());
}

static void suite_refusals(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        if (!tap_begin("refused: %s, %s %s dqk %u dhv %u, %s", r->code, r->arch,
                       tg_dtype_name(r->io), r->dqk, r->dhv, r->schedule))
            continue;
        refuse(r);
        tap_end();
    }
}

/* The checker allows it, since at chunk 128 one block is the whole chunk; but a chunk is a run-time size. */
static void suite_whole_chunk(void)
{
    tg_schedule schedule = *tg_mlstm_sig.schedules[0];
    const tg_shape_class shape = {TG_BF16, 64, 64};
    if (!tap_begin("refused: TG0516, a scan over parallel positions of one block"))
        return;
    schedule.chunk = 128;
    schedule.rows[0].row[TG_LKV].role = TG_ROLE_P;
    text_free(&messages);
    tap_expect(tg_schedule_check(&schedule, &silent_sink) == TG_OK, "the checker refuses it");
    tap_expect(tg_plan_check(&schedule, tg_target_find("sm_80"), &shape, &sink) != TG_OK,
               "tg_plan_check accepts it");
    tap_expect(strstr(log_text(), "TG0516 ") != NULL, "found: %s", log_text());
    tap_end();
}

/* Any combination of fields either compiles or is refused with a reason: LLVM never aborts, and no
 * plan that passed its checks fails later. */
static void suite_combinations(void)
{
    static const char *const fields[] = {
        "H.Lhq",        "H.Lkv",           "H.dqk",       "H.dhv",     "H.warps",
        "H.stages",     "state.Lkv",       "state.dqk",   "state.dhv", "state.warps",
        "state.stages", "H.blocks_per_sm", "gates.warps", "chunk"};
    static const uint32_t values[] = {0, 1, 2, 3, 4, 8, 16, 32, 48, 64, 128, 256, 512};
    static const uint32_t sizes[] = {16, 24, 64, 136, 256, 512};
    const struct num_random random = {11, num_stream("combinations")};
    uint64_t draw = 0;
    int n_compiled = 0, n_refused = 0;
    if (!tap_begin("any combination compiles or is refused with a reason"))
        return;
    for (int i = 0; i < 300; i++) {
        tg_program *program = NULL;
        tg_schedule schedule = *tg_mlstm_sig.schedules[num_bits(random, draw++) % 3];
        const tg_shape_class shape = {types[num_bits(random, draw++) % 3],
                                      sizes[num_bits(random, draw++) % 6],
                                      sizes[num_bits(random, draw++) % 6]};
        const tg_target *target = tg_targets()[num_bits(random, draw++) % 6];
        for (uint64_t c = num_bits(random, draw++) % 4; c > 0; c--) {
            char change[64];
            snprintf(change, sizeof change, "%s=%u", fields[num_bits(random, draw) % 14],
                     values[num_bits(random, draw + 1) % 13]);
            draw += 2;
            tg_schedule_apply(change, &schedule, &silent_sink);
        }
        text_free(&messages);
        const tg_status status =
            tg_compile(&tg_mlstm_sig, &schedule, target, &shape, NULL, &program, &sink);
        n_compiled += status == TG_OK;
        n_refused += status != TG_OK;
        tap_expect((status == TG_OK) == (program != NULL), "combination %d: status %d", i,
                   (int)status);
        tap_expect(status == TG_OK || *log_text(), "combination %d: no reason", i);
        tap_expect(status != TG_E_COMPILE && !strstr(log_text(), "TG0590") &&
                       !strstr(log_text(), "TG0599"),
                   "combination %d, %s %s dqk %u dhv %u: %s", i, target->arch,
                   tg_dtype_name(shape.io), shape.dqk, shape.dhv, log_text());
        tg_program_free(program);
    }
    tap_note("%d compiled, %d refused", n_compiled, n_refused);
    tap_expect(n_compiled > 30 && n_refused > 30, "a one-sided draw");
    tap_end();
}

/* ---- the same code ---- */

static tg_program *default_program(tg_dtype io)
{
    tg_program *program = NULL;
    const tg_target *target = tg_target_find("sm_80");
    const tg_shape_class shape = {io, 64, 64};
    const tg_schedule *schedule = tg_schedule_default(&tg_mlstm_sig, target, &shape, &silent_sink);
    if (schedule)
        tg_compile(&tg_mlstm_sig, schedule, target, &shape, NULL, &program, &silent_sink);
    return program;
}

static bool same_code(const tg_program *a, const tg_program *b)
{
    bool same = a && b && a->n_kernels == b->n_kernels;
    for (uint32_t k = 0; same && k < a->n_kernels; k++)
        same = strcmp(a->kernels[k].ptx, b->kernels[k].ptx) == 0 &&
               a->kernels[k].shared_bytes == b->kernels[k].shared_bytes;
    return same;
}

static void *compile_thread(void *io)
{
    return default_program(*(const tg_dtype *)io);
}

static void suite_same_code(void)
{
    enum { N_THREADS = 4 };
    tg_program *first[3];
    for (int i = 0; i < 3; i++)
        first[i] = default_program(types[i]);
    if (tap_begin("compiling twice gives the same PTX")) {
        for (int i = 0; i < 3; i++) {
            tg_program *again = default_program(types[i]);
            tap_expect(same_code(first[i], again), "%s differs", tg_dtype_name(types[i]));
            tg_program_free(again);
        }
        tap_end();
    }
    if (tap_begin("four threads give the same PTX")) {
        pthread_t threads[N_THREADS];
        void *programs[N_THREADS] = {NULL};
        tg_dtype io[N_THREADS];
        for (int i = 0; i < N_THREADS; i++) {
            io[i] = types[i % 3];
            tap_expect(pthread_create(&threads[i], NULL, compile_thread, &io[i]) == 0, "no thread");
        }
        for (int i = 0; i < N_THREADS; i++) {
            pthread_join(threads[i], &programs[i]);
            tap_expect(same_code(first[i % 3], programs[i]), "thread %d differs", i);
            tg_program_free(programs[i]);
        }
        tap_end();
    }
    for (int i = 0; i < 3; i++)
        tg_program_free(first[i]);
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
        if (!tap_expect(
                strncmp(at, line, n) == 0,
                "line %u\n  expected %.*s\n  found    %.*s\n  --update writes the file anew",
                number, (int)n - 1, line, (int)strcspn(at, "\n"), at))
            break;
        at += n;
    }
    fclose(file);
}

static void suite_plan(const char *golden, bool is_update)
{
    struct text plan = {0};
    const tg_compile_options how = {.stage = keep_plan, .user = &plan};
    const tg_shape_class shape = {TG_BF16, 128, 256};
    const tg_target *target = tg_target_find("sm_90a");
    tg_program *program = NULL;
    if (!golden || !tap_begin("the plan of H for bf16, dqk 128, dhv 256 on sm_90a is as written"))
        return;
    const tg_schedule *schedule = tg_schedule_default(&tg_mlstm_sig, target, &shape, &sink);
    tap_expect(schedule && tg_compile(&tg_mlstm_sig, schedule, target, &shape, &how, &program,
                                      &sink) == TG_OK,
               "%s", log_text());
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
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            tap_only(argv[++i]);
        else if (strcmp(argv[i], "--golden") == 0 && i + 1 < argc)
            golden = argv[++i];
    }
    const char *ptxas = ptxas_find(&context);
    printf("# ptxas: %s\n", ptxas ? ptxas : "none, nothing is assembled");
    suite_plan(golden, is_update);
    suite_refusals();
    suite_whole_chunk();
    suite_same_code();
    suite_combinations();
    suite_targets(ptxas);
    text_free(&messages);
    return tap_finish();
}
