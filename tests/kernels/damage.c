/* tests/kernels/damage.c - lines of PTX damaged one at a time, and what finds that out. */
#include "damage.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 4096 }; /* wgmma names its registers one by one */

/* "[%rd8+6144]" becomes "[%rd8+6160]" */
static void shift_address(const char *line, long by, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *open = strchr(line, '['), *close = strchr(line, ']');
    const char *plus = open ? memchr(open, '+', (size_t)(close - open)) : NULL;
    const char *end = plus ? plus : close;
    tg_printf(&w, "%.*s+%ld%s", (int)(end - line), line, (plus ? strtol(plus, NULL, 10) : 0) + by, close);
}

/* Addresses in shared memory may have 32 bits. */
static void shift_lane(const char *line, const char *by, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *open = strchr(line, '[') + 1;
    const size_t base = strcspn(open, "+]");
    const bool is_wide = strncmp(open, "%r", 2) != 0 || open[2] == 'd';
    const char *address = is_wide ? "%mut_rd" : "%mut_s";
    const int bits = is_wide ? 64 : 32;
    tg_printf(&w, "%sand.b32 %%mut_r, %%mut_r, 31;\nsetp.eq.u32 %%mut_p, %%mut_r, 5;\n", REGISTERS);
    tg_printf(&w, "selp.b%d %s, %s, 0, %%mut_p;\nadd.s%d %s, %s, %.*s;\n", bits, address, by, bits, address, address,
              (int)base, open);
    tg_printf(&w, "%.*s%s%s", (int)(open - line), line, address, open + base);
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

/* What the line computes keeps its low half alone. */
static void narrow(const char *line, struct text *out)
{
    const tg_writer w = text_writer(out);
    const char *result = strchr(line, '%');
    const int n = (int)strcspn(result, ",");
    tg_printf(&w, "%s\nand.b64 %.*s, %.*s, 0xffffffff;", line, n, result, n, result);
}

/* The needle in the line, or NULL. "a*b": a, and b somewhere behind it; what is found is a. */
static const char *find(const char *line, const char *needle, size_t *n)
{
    *n = strcspn(needle, "*");
    const char *const rest = needle[*n] ? needle + *n + 1 : "";
    const char *const at = memmem(line, strlen(line), needle, *n);
    return at && strstr(at + *n, rest) ? at : NULL;
}

static void damage_line(const struct injury *m, const char *line, struct text *out)
{
    const tg_writer w = text_writer(out);
    size_t n;
    const char *needle = find(line, m->needle, &n);
    switch (m->damage) {
    case DELETE:
        break;
    case SUBSTITUTE:
        tg_printf(&w, "%.*s%s%s", (int)(needle - line), line, m->text, needle + n);
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
    case NARROW:
        narrow(line, out);
        break;
    }
}

char *damage_text(const struct injury *m, const char *ptx, uint32_t which, char damaged[200])
{
    struct text out = {0};
    const tg_writer w = text_writer(&out);
    uint32_t seen = 0, line_number = 0, wanted = UINT32_MAX;
    const bool is_everywhere = m->damage == NARROW;
    size_t n_needle;
    for (const char *at = ptx; *at; line_number++) {
        char line[MAX_LINE];
        const size_t whole = strcspn(at, "\n"), n = whole < sizeof line ? whole : sizeof line - 1;
        memcpy(line, at, n);
        line[n] = '\0';
        if (find(line, m->needle, &n_needle) && (seen++ == which || is_everywhere)) {
            wanted = line_number + (m->damage == SWAP ? (uint32_t)atoi(m->text) : 0);
            snprintf(damaged, 200, "%.150s", line + strspn(line, "\t"));
        }
        if (line_number == wanted)
            damage_line(m, line, &out);
        else
            w.write(w.user, line, n);
        w.write(w.user, "\n", 1);
        at += whole + (at[whole] == '\n');
    }
    if (is_everywhere ? seen && !which : seen > which)
        return out.bytes;
    text_free(&out);
    return NULL;
}

/* ---- what finds it out ---- */

bool damage_is_one_of(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; n && at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, name, n) == 0 && (at[n] == '|' || at[n] == '\0'))
            return true;
    }
    return false;
}

const char *damage_kind(void)
{
    static char kind[64];
    const char *open = strchr(log_text(), '[');
    snprintf(kind, sizeof kind, "%.*s", open ? (int)strcspn(open + 1, "]") : 0, open ? open + 1 : "");
    return kind;
}

static const char *outcome_in_memory(const struct patient *patient, const tg_module *module, int call)
{
    if (!patient->begin(patient->user, call))
        return damage_kind();
    const char *outcome = patient->go(patient->user, module);
    patient->end(patient->user);
    return outcome;
}

const char *damage_outcome(const struct patient *patient, const tg_program *program, int call)
{
    const char *outcome = "load";
    tg_module *module;
    log_clear();
    if (tg_load(machine_context.machine.driver, program, &module, &log_sink) == TG_OK) {
        outcome = outcome_in_memory(patient, module, call);
        tg_unload(module);
    } else {
        tap_note("%s", log_text());
    }
    if (strcmp(outcome, "nothing") != 0 && strcmp(outcome, "numbers") != 0)
        emulator_reset();
    return outcome;
}

static int kernel_index(const tg_program *program, const char *row)
{
    for (uint32_t k = 0; k < program->n_kernels; k++) {
        const char *name = program->kernels[k].name;
        const size_t n = strlen(name), n_row = strlen(row);
        if (n > n_row && name[n - n_row - 1] == '_' && strcmp(name + n - n_row, row) == 0)
            return (int)k;
    }
    return -1;
}

/* A line that is damaged. */
enum { MOST_LINES = 512, MOST_SEEDS = 8 };
struct wound {
    char *ptx;
    char line[200], outcome[64]; /* the last */
    bool is_shown;               /* under this seed */
    bool is_found, is_decided;   /* of all seeds */
};

static uint32_t make_wounds(const struct injury *injury, const char *ptx, struct wound *wounds)
{
    uint32_t n = 0;
    while (n < MOST_LINES && (wounds[n].ptx = damage_text(injury, ptx, n, wounds[n].line)))
        n++;
    return n;
}

/* Whether it is still to be found out. */
static bool is_hidden(const struct wound *wound)
{
    return !wound->is_decided && !wound->is_shown;
}

static void try_call(const struct patient *patient, const struct mutant *m, uint32_t kernel, uint64_t seed, int call,
                     struct wound *wounds, uint32_t n)
{
    uint32_t first = 0;
    while (first < n && !is_hidden(&wounds[first]))
        first++;
    if (first == n)
        return;
    if (tap_expect(held_begin(patient, patient->open(patient->user), kernel, seed, call), "not held: %s", log_text()))
        for (uint32_t i = first; i < n; i++) {
            if (!is_hidden(&wounds[i]))
                continue;
            snprintf(wounds[i].outcome, sizeof wounds[i].outcome, "%s", held_go(wounds[i].ptx));
            wounds[i].is_shown = damage_is_one_of(m->found, wounds[i].outcome);
        }
    held_end();
}

/* Under some seed, or under all. */
static void try_seeds(const struct patient *patient, const struct mutant *m, uint32_t kernel, struct wound *wounds,
                      uint32_t n)
{
    const uint64_t n_seeds = m->seeds == ONE ? 1 : m->seeds == ALL ? 2 : MOST_SEEDS;
    for (uint64_t seed = 1; seed <= n_seeds; seed++) {
        for (uint32_t i = 0; i < n; i++)
            wounds[i].is_shown = false;
        for (int call = 0; call < patient->n_calls; call++)
            try_call(patient, m, kernel, seed, call, wounds, n);
        for (uint32_t i = 0; i < n; i++) {
            if (!wounds[i].is_decided)
                wounds[i].is_found = wounds[i].is_shown;
            wounds[i].is_decided |= wounds[i].is_shown == (m->seeds == ANY);
        }
    }
}

static void try_mutant(const struct patient *patient, const struct mutant *m)
{
    static struct wound wounds[MOST_LINES];
    const tg_program *program = patient->open(patient->user);
    const int k = program ? kernel_index(program, m->kernel) : -1;
    uint32_t n_found = 0;
    if (!tap_expect(k >= 0, "no kernel %s", m->kernel))
        return;
    memset(wounds, 0, sizeof wounds);
    const uint32_t n = make_wounds(&m->injury, program->kernels[k].ptx, wounds);
    try_seeds(patient, m, (uint32_t)k, wounds, n);
    for (uint32_t i = 0; i < n; i++) {
        n_found += wounds[i].is_found;
        if (!wounds[i].is_found)
            tap_note("%s: line %u, %s", wounds[i].outcome, i, wounds[i].line);
        free(wounds[i].ptx);
    }
    tap_expect(n > 0 && n < MOST_LINES, "%u lines with %s to damage", n, m->injury.needle);
    tap_expect(n_found + m->n_spared >= n, "%u were not found out, expected at most %u", n - n_found, m->n_spared);
    tap_note("%u of %u found out", n_found, n);
}

static bool begin_mutant(const struct patient *patient, const struct mutant *m)
{
    static const char *const names[] = {"DELETE", "SUBSTITUTE", "REPLACE", "SHIFT", "LANE", "SWAP", "NEVER", "NARROW"};
    const struct injury *injury = &m->injury;
    return tap_begin("mutant of %s, %s: %s %s %s", patient->name, m->kernel, names[injury->damage], injury->needle,
                     injury->damage != REPLACE     ? injury->text
                     : strstr(injury->text, "31;") ? "by half a warp's"
                                                   : "by one warp's");
}

void try_mutants(const struct patient *patient, int call, const struct mutant *mutants, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mutants[i].call == call && begin_mutant(patient, &mutants[i])) {
            try_mutant(patient, &mutants[i]);
            tap_end();
        }
}

void try_undamaged(const struct patient *patient, void (*tell)(void *user))
{
    if (!tap_begin("mutant of nothing: %s is right under eight seeds", patient->name))
        return;
    const tg_program *program = patient->open(patient->user);
    for (int i = 0; program && i < MOST_SEEDS * patient->n_calls; i++) {
        emulator_seed((uint64_t)i % MOST_SEEDS + 1);
        const char *outcome = damage_outcome(patient, program, i / MOST_SEEDS);
        if (!tap_expect(strcmp(outcome, "nothing") == 0, "seed %d: %s %s", i % MOST_SEEDS + 1, outcome, log_text()) &&
            tell)
            tell(patient->user);
    }
    tap_end();
}
