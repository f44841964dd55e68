/* test_emulator_files.c - the tests that are data, in tests/emulator/.
 *
 * A .t file has lines "-- key value":
 *   -- insn TEXT           one instruction of each lane; every line "a=1 b=2 r=3" after it is a
 * lane. Names are
 *   -- regs a:f32 r:u32    registers of these types; r, and others after "->", are results. Bits
 * must agree;
 *   -- ulp N               floats may be N units away.
 *   -- kernel              PTX statements up to the next "--", in a kernel whose %rd1 points to
 * 1024 words 0, 1, 2 .., %rd2 to 1024 words never written; %r1 is the thread. Registers %r %rd %f
 * %fd %h %p are there, and smem, the dynamic shared memory.
 *   -- launch G B S        grid, block, dynamic shared bytes
 *   -- cluster N           CTAs of a cluster
 *   -- overlap             it is launched so that it may begin before what is ahead has ended
 *   -- directives TEXT     before the kernel's statements: .maxntid and the like
 *   -- target T            instead of sm_80; ptxas must take the kernel too, where there is one
 *   -- map NAME ..         a parameter more, a tensor map; see harness.h
 *   -- out W W ..          the first words of what %rd2 points to
 *   -- mutate KIND | OLD | NEW | TEXT     with OLD replaced by NEW, every seed on 1, 2 and 4
 * threads must be reported as KIND, or one of several with commas between, with TEXT in the report;
 * KIND "numbers": nothing is reported, and the words are others
 *   -- refused TEXT        the module must not load, and the log must contain TEXT
 *   -- product ..          a wgmma, see test_emulator_wgmma.c
 *   -- box ..              a copy by a tensor map, see test_emulator_tensors.c */
#include "emulator/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REGS = 8, MAX_MUTANTS = 40, MAX_LANES = 256 };

struct reg {
    char name[32], type[8];
    bool is_result;
};

struct test_file {
    char path[512];
    char *text;
    char *insn, *kernel, *refused, *target, *directives, *product, *box;
    struct reg regs[MAX_REGS];
    int n_regs;
    char *lanes[MAX_LANES];
    int n_lanes, ulp;
    unsigned grid, block, shared, cluster, overlap;
    uint32_t out[WORDS];
    int n_out;
    char *maps[MAX_MAPS];
    int n_maps;
    char *mutants[MAX_MUTANTS];
    int n_mutants;
};

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        abort(); /* it was in the folder just now */
    char *text = calloc(1, 4 << 20);
    const size_t n = fread(text, 1, (4 << 20) - 1, f);
    fclose(f);
    text[n] = 0;
    return text;
}

static char *skip_blank(char *s)
{
    return s + strspn(s, " \t");
}

/* "a:f32 b:f32 -> r:f32 q:pred" */
static void parse_regs(struct test_file *t, char *s)
{
    bool is_result = false;
    for (char *word = strtok(s, " "); word; word = strtok(NULL, " ")) {
        if (!strcmp(word, "->")) {
            is_result = true;
            continue;
        }
        struct reg *r = &t->regs[t->n_regs++];
        if (sscanf(word, "%31[^:]:%7s", r->name, r->type) != 2)
            fail_msg("%s: bad register '%s'", t->path, word);
        r->is_result = is_result || !strcmp(r->name, "r");
    }
}

static void parse_key(struct test_file *t, char *key)
{
    char *value = key + strcspn(key, " ");
    if (*value)
        *value++ = 0;
    if (!strcmp(key, "insn"))
        t->insn = value;
    else if (!strcmp(key, "regs"))
        parse_regs(t, value);
    else if (!strcmp(key, "ulp"))
        t->ulp = atoi(value);
    else if (!strcmp(key, "kernel"))
        t->kernel = calloc(1, strlen(t->text) + 65536);
    else if (!strcmp(key, "launch"))
        assert_int_equal(sscanf(value, "%u %u %u", &t->grid, &t->block, &t->shared), 3);
    else if (!strcmp(key, "cluster"))
        t->cluster = (unsigned)atoi(value);
    else if (!strcmp(key, "overlap"))
        t->overlap = 1;
    else if (!strcmp(key, "directives"))
        t->directives = value;
    else if (!strcmp(key, "product"))
        t->product = value;
    else if (!strcmp(key, "box"))
        t->box = value;
    else if (!strcmp(key, "mutate"))
        t->mutants[t->n_mutants++] = value;
    else if (!strcmp(key, "target"))
        t->target = value;
    else if (!strcmp(key, "map"))
        t->maps[t->n_maps++] = value;
    else if (!strcmp(key, "refused"))
        t->refused = value;
    else if (!strcmp(key, "out"))
        for (char *w = strtok(value, " "); w; w = strtok(NULL, " "))
            t->out[t->n_out++] = (uint32_t)strtoll(w, NULL, 0);
    else
        fail_msg("%s: unknown key '%s'", t->path, key);
}

static void parse_test(struct test_file *t)
{
    bool in_kernel = false;
    t->grid = 1;
    t->target = strncmp(t->text, "-- product", 10) && strncmp(t->text, "-- box", 6) ? NULL : "sm_90a";
    t->block = 32;
    for (char *line = t->text; line;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (!strncmp(line, "-- ", 3)) {
            in_kernel = !strncmp(line + 3, "kernel", 6);
            parse_key(t, line + 3);
        } else if (in_kernel) {
            strcat(strcat(t->kernel, line), "\n");
        } else if (*line && *line != '#') {
            t->lanes[t->n_lanes++] = line;
        }
        line = next;
    }
}

static unsigned type_size(const char *type)
{
    return strstr(type, "64") ? 8 : !strcmp(type, "pred") || strstr(type, "32") ? 4 : strstr(type, "16") ? 2 : 1;
}

/* The value's bits: "nan", hexadecimal for bits as they are, else a number of the type. */
static uint64_t parse_value(const char *type, const char *s)
{
    if (!strncmp(s, "0x", 2) && !strchr(s, 'p'))
        return strtoull(s, NULL, 16);
    if (!strcmp(type, "f32")) {
        const float x = strtof(s, NULL);
        uint32_t u;
        memcpy(&u, &x, 4);
        return x != x ? 0x7fffffff : u;
    }
    if (!strcmp(type, "f64")) {
        const double x = strtod(s, NULL);
        uint64_t u;
        memcpy(&u, &x, 8);
        return x != x ? 0x7ff8000000000000 : u;
    }
    return *s == '-' ? (uint64_t)strtoll(s, NULL, 0) : strtoull(s, NULL, 0);
}

static bool find_value(const char *line, const char *name, char *out)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", line);
    copy[strcspn(copy, "#")] = 0;
    for (char *word = strtok(copy, " \t"); word; word = strtok(NULL, " \t")) {
        char *equals = strchr(word, '=');
        if (equals && (size_t)(equals - word) == strlen(name) && !strncmp(word, name, strlen(name))) {
            snprintf(out, 64, "%s", equals + 1);
            return true;
        }
    }
    return false;
}

/* Register k of lane l is the 8 bytes at (k * MAX_LANES + l) * 8, in both buffers. */
static void make_lane_kernel(const struct test_file *t, char *s)
{
    s += sprintf(s, "%s",
                 ".version 7.8\n.target sm_80\n.address_size 64\n"
                 ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n.reg .b64 %x, %y, %o;\n"
                 ".reg .b32 %t;\nld.param.u64 %x, [p_in];\nld.param.u64 %y, [p_out];\nmov.u32 %t, %tid.x;\n"
                 "mul.wide.u32 %o, %t, 8;\nadd.u64 %x, %x, %o;\nadd.u64 %y, %y, %o;\n");
    for (int k = 0; k < t->n_regs; k++) {
        const struct reg *r = &t->regs[k];
        const bool is_pred = !strcmp(r->type, "pred"), is_byte = type_size(r->type) == 1;
        s += sprintf(s, ".reg .%s %s;\n", is_byte ? "b16" : r->type, r->name);
        if (is_pred)
            s += sprintf(s, "ld.global.u32 %%t, [%%x+%d];\nsetp.ne.u32 %s, %%t, 0;\n", k * MAX_LANES * 8, r->name);
        else
            s += sprintf(s, "ld.global.%s %s, [%%x+%d];\n", is_byte ? "u8" : r->type, r->name, k * MAX_LANES * 8);
    }
    s += sprintf(s, "%s\n", t->insn);
    for (int k = 0; k < t->n_regs; k++) {
        const struct reg *r = &t->regs[k];
        if (!strcmp(r->type, "pred"))
            s += sprintf(s, "selp.u32 %%t, 1, 0, %s;\nst.global.u32 [%%y+%d], %%t;\n", r->name, k * MAX_LANES * 8);
        else
            s += sprintf(s, "st.global.%s [%%y+%d], %s;\n", type_size(r->type) == 1 ? "u8" : r->type, k * MAX_LANES * 8,
                         r->name);
    }
    sprintf(s, "ret;\n}\n");
}

static int64_t ordered(uint64_t bits, unsigned size)
{
    const int64_t sign = (int64_t)1 << (8 * size - 1), low = sign - 1;
    return bits >> (8 * size - 1) & 1 ? -(int64_t)(bits & (uint64_t)low) : (int64_t)bits;
}

static bool agrees(const struct test_file *t, const char *type, uint64_t got, uint64_t expected)
{
    const unsigned size = type_size(type);
    const uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
    got &= mask;
    expected &= mask;
    if (got == expected)
        return true;
    if (!strcmp(type, "f32") && expected == 0x7fffffff)
        return (got & 0x7fffffff) > 0x7f800000;
    if (!strcmp(type, "f64") && expected == 0x7ff8000000000000)
        return (got & ~(1ull << 63)) > 0x7ff0000000000000;
    return t->ulp && llabs(ordered(got, size) - ordered(expected, size)) <= t->ulp;
}

static void run_lanes(const struct test_file *t)
{
    static uint64_t in[MAX_REGS * MAX_LANES], out[MAX_REGS * MAX_LANES];
    char ptx[16384], value[64];
    memset(in, 0, sizeof in);
    for (int l = 0; l < t->n_lanes; l++)
        for (int k = 0; k < t->n_regs; k++)
            if ((!t->regs[k].is_result || strchr(t->insn, '=')) && find_value(t->lanes[l], t->regs[k].name, value))
                in[k * MAX_LANES + l] = parse_value(t->regs[k].type, value);
    ok(cu.cuMemAlloc_v2(&cu.in, sizeof in));
    ok(cu.cuMemAlloc_v2(&cu.out, sizeof out));
    ok(cu.cuMemcpyHtoD_v2(cu.in, in, sizeof in));
    make_lane_kernel(t, ptx);
    ok(run_ptx(ptx, 1, (unsigned)t->n_lanes, 0));
    ok(cu.cuMemcpyDtoH_v2(out, cu.out, sizeof out));
    for (int l = 0; l < t->n_lanes; l++)
        for (int k = 0; k < t->n_regs; k++) {
            const struct reg *r = &t->regs[k];
            if (!r->is_result)
                continue;
            if (!find_value(t->lanes[l], r->name, value))
                fail_msg("%s: no %s in '%s'", t->path, r->name, t->lanes[l]);
            const uint64_t got = out[k * MAX_LANES + l], expected = parse_value(r->type, value);
            if (!agrees(t, r->type, got, expected))
                fail_msg("%s: %s: '%s' gives %s = 0x%llx, not 0x%llx", t->path, t->insn, t->lanes[l], r->name,
                         (unsigned long long)got, (unsigned long long)expected);
        }
    cu.cuMemFree_v2(cu.in);
    cu.cuMemFree_v2(cu.out);
}

static void check_out(const struct test_file *t, const uint32_t *out, int s)
{
    for (int i = 0; i < t->n_out; i++)
        if (out[i] != t->out[i])
            fail_msg("%s, seed %d: word %d is 0x%x, not 0x%x", t->path, s, i, out[i], t->out[i]);
}

static char *trim(char *s)
{
    s = skip_blank(s);
    size_t n = strlen(s);
    while (n && s[n - 1] == ' ')
        s[--n] = 0;
    return s;
}

/* Two characters, backslash and n, become a line end. */
static void unescape(char *s)
{
    for (char *at; s && (at = strstr(s, "\\n"));) {
        *at = '\n';
        memmove(at + 1, at + 2, strlen(at + 2) + 1);
    }
}

/* One of several kinds, if the order of the warps decides which mistake shows first:
 * "shared-race,in-flight". */
static bool is_of_kind(const char *text, const char *kinds)
{
    for (const char *k = kinds; *k; k += strspn(k, ",")) {
        const size_t n = strcspn(k, ",");
        if (text[0] == '[' && !strncmp(text + 1, k, n) && text[n + 1] == ']')
            return true;
        k += n;
    }
    return false;
}

/* "KIND | OLD | NEW | TEXT" */
static void run_mutant(const struct test_file *t, const char *mutant)
{
    uint32_t out[WORDS];
    char copy[1024];
    char *field[4] = {NULL, NULL, NULL, NULL}, *rest = copy;
    snprintf(copy, sizeof copy, "%s", mutant);
    for (int i = 0; i < 4 && rest; i++) {
        char *bar = strstr(rest, " |");
        if (bar)
            *bar = 0;
        field[i] = trim(rest);
        rest = bar ? bar + 2 : NULL;
    }
    for (int i = 1; i <= 2; i++)
        unescape(field[i]);
    const char *at = strstr(t->kernel, field[1]);
    if (!at)
        fail_msg("%s: nothing to mutate: '%s'", t->path, field[1]);
    char *body = calloc(1, strlen(t->kernel) + 1024);
    sprintf(body, "%.*s%s%s", (int)(at - t->kernel), t->kernel, field[2] ? field[2] : "", at + strlen(field[1]));
    for (int i = 0; i < 3 * MAX_SEEDS; i++) {
        const int s = 1 + i / 3, threads = 1 << i % 3;
        fresh();
        configure((uint64_t)s, threads);
        const int result = run_body(body, t->grid, t->block, t->shared, out, (size_t)t->n_out);
        const char *text = error_text(result);
        if (!result && !strcmp(field[0], "numbers") && memcmp(out, t->out, 4 * (size_t)t->n_out))
            continue;
        if (!result)
            fail_msg("%s, seed %d, threads %d: not reported: %s", t->path, s, threads, mutant);
        if (!is_of_kind(text, field[0]) || (field[3] && *field[3] && !strstr(text, field[3])))
            fail_msg("%s, seed %d, threads %d: '%s' is reported as\n%s", t->path, s, threads, mutant, text);
    }
    free(body);
}

static void run_kernel(const struct test_file *t)
{
    uint32_t out[WORDS];
    if (t->target) {
        char *ptx = make_kernel(t->kernel);
        check_with_ptxas(ptx);
        free(ptx);
    }
    for (int s = 1; s <= seed_count(); s++) {
        fresh();
        configure((uint64_t)s, 0);
        const int result = run_body(t->kernel, t->grid, t->block, t->shared, out, (size_t)t->n_out);
        if (result)
            fail_msg("%s, seed %d: %s", t->path, s, error_text(result));
        check_out(t, out, s);
    }
    for (int i = 0; i < t->n_mutants && cu.is_emulated; i++)
        run_mutant(t, t->mutants[i]);
}

static void run_refused(const struct test_file *t)
{
    char log[4096], *ptx = make_kernel(t->kernel);
    int result;
    fresh(); /* a mutant's fault may be there still */
    load(ptx, log, sizeof log, &result);
    assert_int_equal(result, 218);
    if (!strstr(log, t->refused))
        fail_msg("%s: refused with\n%s", t->path, log);
    assert_string_equal(log, error_text(result));
    free(ptx);
}

struct section {
    const char *path;
    char *text;
};

static void test_section(void *argument)
{
    const struct section *section = argument;
    struct test_file *t = calloc(1, sizeof *t);
    snprintf(t->path, sizeof t->path, "%s", section->path);
    t->text = section->text;
    parse_test(t);
    const bool can_run = use_target(t->target);
    cu.maps = (const char *const *)t->maps;
    cu.n_maps = t->n_maps;
    cu.cluster = t->cluster;
    cu.overlap = t->overlap;
    cu.directives = t->directives;
    if (t->refused && cu.is_emulated)
        run_refused(t);
    else if (t->refused || !can_run)
        skip();
    else if (t->kernel)
        run_kernel(t);
    else if (t->insn)
        run_lanes(t);
    else if (t->product)
        check_product(t->product);
    else if (t->box)
        check_box(t->box);
    free(t->kernel);
    free(t);
}

/* A file is a series of sections, each beginning with one of these. */
static char *next_section(char *text)
{
    static const char *const begins[] = {"\n-- insn ", "\n-- launch ", "\n-- product ", "\n-- box "};
    char *first = NULL;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        char *at = strstr(text, begins[i]);
        if (at && (!first || at < first))
            first = at;
    }
    return first;
}

static int count_lines(const char *from, const char *to)
{
    int n = 0;
    while ((from = memchr(from, '\n', (size_t)(to - from)))) {
        from++;
        n++;
    }
    return n;
}

void run_t(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", cu.folder, name);
    char *text = read_file(path), *from = text;
    int line = 1;
    for (char *at = next_section(text); at;) {
        char *next = next_section(at + 1);
        struct section section = {path, at + 1};
        line += count_lines(from, at + 1);
        from = at + 1;
        if (next)
            *next = 0;
        char *copy = section.text = strdup(section.text);
        run_test(test_section, &section, "%s line %d", name, line);
        free(copy);
        if (next)
            *next = '\n';
        at = next;
    }
    free(text);
}

static void test_loads(void *argument)
{
    char log[4096];
    int result;
    char *text = read_file(argument);
    if (!use_target(strstr(text, ".target sm_90a") ? "sm_90a" : NULL))
        skip();
    void *module = load(text, log, sizeof log, &result);
    if (result)
        fail_msg("%s", log);
    ok(cu.cuModuleUnload(module));
    free(text);
}

void run_ptx_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", cu.folder, name);
    run_test(test_loads, path, "%s", name);
}
