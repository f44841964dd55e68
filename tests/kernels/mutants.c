/* tests/kernels/mutants.c - kernels damaged on purpose: the emulator's checks and the comparison
 * with the oracle must find out. Emulator only: a GPU would compute nonsense, or hang. */
#include "harness.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum damage { DELETE, SUBSTITUTE, REPLACE, SHIFT, LANE, SWAP, NEVER };
enum seeds { ANY, ALL };

struct mutant {
    const char *kernel, *needle;
    enum damage damage;
    const char *text;
    uint32_t n_spared;
    enum seeds seeds;
    const char *found;
};

#define REGISTERS                                                                                  \
    ".reg .pred %mut_p;\n.reg .b32 %mut_r;\n.reg .b64 %mut_rd;\nmov.u32 %mut_r, %tid.x;\n"
#define HALF_WARP REGISTERS "and.b32 %mut_r, %mut_r, 31;\nsetp.lt.u32 %mut_p, %mut_r, 16;\n"
#define ONE_WARP  REGISTERS "setp.ge.u32 %mut_p, %mut_r, 32;\n"
#define FAULTS                                                                                     \
    "load|in-flight|shared-race|unwritten-read|global-race|out-of-bounds|misaligned|deadlock|"     \
    "barrier-mismatch|divergent|lane-conflict|step-limit|arithmetic|trap"
#define MUTANT(...) {__VA_ARGS__},
static const struct mutant mutants[] = {
#include "mutants.def"
};
#undef MUTANT

/* An initial state; several steps of every ring. A NaN in v opens the path of kernel H that keeps
 * it from earlier tokens. Every line runs in one of two calls: with one block a chunk, the
 * prologues of rings cross chunks; with several, vector kernels go around their loop. The NaNs lie
 * in two steps of one row block, and one is cleaned by another warp than the one that clears its
 * column's mark. */
static const struct spec spec = {.io = TG_BF16,
                                 .batch = 1,
                                 .heads = 2,
                                 .tokens = 300,
                                 .dqk = 32,
                                 .dhv = 32,
                                 .schedule = "tfla H.Lhq=64",
                                 .has_s0 = true};
static const int64_t chunks[] = {64, 256};
static const struct {
    int64_t token, column;
} nans[] = {{80, 9}, {101, 5}}; /* of head 1 */
enum { N_CALLS = 2, N_NANS = 2 };

/* ---- damage ---- */

/* "[%rd8+6144]" becomes "[%rd8+6160]" */
static void shift_address(const char *line, long by, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *open = strchr(line, '['), *close = strchr(line, ']');
    const char *plus = open ? memchr(open, '+', (size_t)(close - open)) : NULL;
    const char *end = plus ? plus : close;
    tg_printf(&w, "%.*s+%ld%s", (int)(end - line), line, (plus ? strtol(plus, NULL, 10) : 0) + by,
              close);
}

static void shift_lane(const char *line, const char *by, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *open = strchr(line, '[') + 1;
    const size_t base = strcspn(open, "+]");
    tg_printf(&w, "%sand.b32 %%mut_r, %%mut_r, 31;\nsetp.eq.u32 %%mut_p, %%mut_r, 5;\n", REGISTERS);
    tg_printf(&w, "selp.b64 %%mut_rd, %s, 0, %%mut_p;\nadd.s64 %%mut_rd, %%mut_rd, %.*s;\n", by,
              (int)base, open);
    tg_printf(&w, "%.*s%%mut_rd%s", (int)(open - line), line, open + base);
}

/* The first two registers of a list in braces, or the last two operands of a plain instruction. */
static void swap_registers(const char *line, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *brace = strchr(line, '{');
    const char *a = brace ? brace + 1 : strchr(line, ',') + 2;
    const size_t n_a = strcspn(a, ",");
    const char *b = a + n_a + 2;
    const size_t n_b = strcspn(b, ",};");
    tg_printf(&w, "%.*s%.*s, %.*s%s", (int)(a - line), line, (int)n_b, b, (int)n_a, a, b + n_b);
}

/* setp.lt.u32 %p1, %r1, %r2 becomes r1 != r1 */
static void never(const char *line, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *predicate = strchr(line, '%'), *a = strchr(predicate, ',') + 2;
    const int n_p = (int)strcspn(predicate, ","), n_a = (int)strcspn(a, ",");
    tg_printf(&w, "setp.ne.u32 %.*s, %.*s, %.*s;", n_p, predicate, n_a, a, n_a, a);
}

static void damage_line(const struct mutant *m, const char *line, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *needle = strstr(line, m->needle);
    switch (m->damage) {
    case DELETE:
        break;
    case SUBSTITUTE:
        tg_printf(&w, "%.*s%s%s", (int)(needle - line), line, m->text, needle + strlen(m->needle));
        break;
    case REPLACE:
        tg_printf(&w, "%s", m->text);
        break;
    case SHIFT:
        shift_address(line, strtol(m->text, NULL, 10), out);
        break;
    case LANE:
        shift_lane(line, m->text, out);
        break;
    case SWAP:
        swap_registers(line, out);
        break;
    case NEVER:
        never(line, out);
        break;
    }
}

/* The text with the damage in its `which`-th line that contains the needle; NULL if there are
 * fewer. `damaged` receives that line. */
static char *damage(const struct mutant *m, const char *ptx, uint32_t which, char damaged[200])
{
    struct text out = {0};
    const tg_writer w = text_writer(&out);
    uint32_t seen = 0, line_number = 0, wanted = UINT32_MAX;
    for (const char *at = ptx; *at; line_number++) {
        char line[512];
        const size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        if (strstr(line, m->needle) && seen++ == which) {
            wanted = line_number + (m->damage == SWAP ? (uint32_t)atoi(m->text) : 0);
            snprintf(damaged, 200, "%.150s", line + strspn(line, "\t"));
        }
        if (line_number == wanted)
            damage_line(m, line, &out);
        else
            tg_printf(&w, "%s", line);
        tg_printf(&w, "\n");
        at += n + (at[n] == '\n');
    }
    if (seen > which)
        return out.bytes;
    text_free(&out);
    return NULL;
}

/* ---- running ---- */

/* "numbers", "nothing", or the kind of the emulator's report. */
static const char *outcome_of(struct trial *trial, uint64_t seed)
{
    static char kind[64];
    emulator_seed(seed);
    if (trial_run(trial) == TG_OK)
        return outputs_right(&trial->problem, false) ? "nothing" : "numbers";
    const char *open = strchr(log_text(), '[');
    snprintf(kind, sizeof kind, "%.*s", open ? (int)strcspn(open + 1, "]") : 0,
             open ? open + 1 : "");
    return kind;
}

static bool is_one_of(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; n && at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, name, n) == 0 && (at[n] == '|' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* Loads the program for one run, for a fault takes all modules with it. */
static const char *run_call(struct trial *trial, const tg_program *program, uint64_t seed)
{
    const char *outcome = "load";
    log_clear();
    if (tg_load(machine_context.machine.driver, program, &trial->kernel.module, &log_sink) ==
        TG_OK) {
        outcome = outcome_of(trial, seed);
        tg_unload(trial->kernel.module);
    } else {
        tap_note("%s", log_text());
    }
    trial->kernel.module = NULL;
    if (strcmp(outcome, "nothing") != 0 && strcmp(outcome, "numbers") != 0)
        emulator_reset();
    return outcome;
}

/* The outcome of the first call that is one of `found`, else of the last. */
static const char *run_calls(struct trial *trial, const tg_program *program, uint64_t seed,
                             const char *found)
{
    const char *outcome = "nothing";
    for (int c = 0; c < N_CALLS; c++) {
        trial->chunk = chunks[c];
        outcome = run_call(trial, program, seed);
        if (is_one_of(found, outcome))
            break;
    }
    return outcome;
}

/* Is the damage found out as it must be? */
static bool is_found(struct trial *trial, const tg_program *program, const struct mutant *m,
                     char last[64])
{
    const uint64_t n_seeds = m->seeds == ALL ? 2 : 8;
    for (uint64_t seed = 1; seed <= n_seeds; seed++) {
        snprintf(last, 64, "%s", run_calls(trial, program, seed, m->found));
        const bool found = is_one_of(m->found, last);
        if (found != (m->seeds == ALL))
            return found;
    }
    return m->seeds == ALL;
}

static int kernel_index(const tg_program *program, const char *row)
{
    for (uint32_t k = 0; k < program->n_kernels; k++) {
        const char *underscore = strrchr(program->kernels[k].name, '_');
        if (underscore && strcmp(underscore + 1, row) == 0)
            return (int)k;
    }
    return -1;
}

static void try_mutant(struct trial *trial, const struct mutant *m)
{
    const int k = kernel_index(trial->kernel.program, m->kernel);
    uint32_t n = 0, n_found = 0;
    if (!tap_expect(k >= 0, "no kernel %s", m->kernel))
        return;
    for (;; n++) {
        tg_program program = *trial->kernel.program;
        char line[200], last[64];
        char *ptx = damage(m, program.kernels[k].ptx, n, line);
        if (!ptx)
            break;
        program.kernels[k].ptx = ptx;
        program.kernels[k].ptx_bytes = strlen(ptx);
        const bool found = is_found(trial, &program, m, last);
        n_found += found;
        if (!found)
            tap_note("%s: line %u, %s", last, n, line);
        free(ptx);
    }
    tap_expect(n > 0, "nothing to damage: no line with %s", m->needle);
    tap_expect(n_found + m->n_spared >= n, "%u were not found out, expected at most %u",
               n - n_found, m->n_spared);
    tap_note("%u of %u found out", n_found, n);
}

/* The forget gate's numbers taken for the input gate's: damage to the arguments. */
static void swapped_gates(struct trial *trial)
{
    tg_program program = *trial->kernel.program;
    const int f = tg_program_tensor(&program, "f"), i = tg_program_tensor(&program, "i");
    for (uint32_t a = 0; a < program.kernels[0].n_args; a++) {
        tg_arg_desc *arg = &program.kernels[0].args[a];
        if (arg->kind == TG_ARG_POINTER && (arg->index == f || arg->index == i))
            arg->index = (uint8_t)(f + i - arg->index);
    }
    tap_expect(strcmp(run_calls(trial, &program, 1, "numbers"), "numbers") == 0, "not found out");
}

/* As a wrong constant would be. */
static void wrong_scale(struct trial *trial, double factor)
{
    const double scale = trial->problem.scale;
    log_clear();
    if (!tap_expect(tg_load(machine_context.machine.driver, trial->kernel.program,
                            &trial->kernel.module, &log_sink) == TG_OK,
                    "%s", log_text()))
        return;
    trial->problem.scale = scale * factor;
    const bool ok = trial_runs(trial);
    trial->problem.scale = scale;
    tap_expect(ok && !outputs_right(&trial->problem, false), "not found out");
    tg_unload(trial->kernel.module);
    trial->kernel.module = NULL;
}

static void each_mutant(struct trial *trial)
{
    static const char *const names[] = {"DELETE", "SUBSTITUTE", "REPLACE", "SHIFT",
                                        "LANE",   "SWAP",       "NEVER"};
    for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++) {
        const struct mutant *m = &mutants[i];
        const bool is_code = m->damage == REPLACE;
        if (!tap_begin("mutant of %s: %s %s %s", m->kernel, names[m->damage], m->needle,
                       !is_code                 ? m->text
                       : strstr(m->text, "31;") ? "by half a warp's"
                                                : "by one warp's"))
            continue;
        try_mutant(trial, m);
        tap_end();
    }
}

static void place_nans(struct problem *problem)
{
    const struct host_tensor *v = problem_tensor(problem, "v");
    for (int i = 0; i < N_NANS; i++)
        num_store(v->data, v->dtype,
                  (size_t)((spec.tokens + nans[i].token) * spec.dhv + nans[i].column), (double)NAN);
}

void suite_mutants(void)
{
    struct trial trial;
    if (!on_emulator() || !trial_open(&trial, &spec))
        return;
    tg_unload(trial.kernel.module);
    trial.kernel.module = NULL;
    place_nans(&trial.problem);
    if (tap_begin("mutant of nothing: right under eight seeds")) {
        for (uint64_t seed = 1; seed <= 8; seed++) {
            const char *outcome = run_calls(&trial, trial.kernel.program, seed, "numbers|" FAULTS);
            tap_expect(strcmp(outcome, "nothing") == 0, "seed %d: %s %s", (int)seed, outcome,
                       log_text());
        }
        tap_end();
    }
    each_mutant(&trial);
    if (tap_begin("mutant of the call: gates exchanged")) {
        swapped_gates(&trial);
        tap_end();
    }
    if (tap_begin("mutant of the call: scale off by 2 percent")) {
        wrong_scale(&trial, 1.02);
        tap_end();
    }
    trial_close(&trial);
}
