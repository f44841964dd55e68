/* corpus.c - hashes of the code of many kernels, as proof that a change of the compiler changes nothing.
 *
 *     corpus [--quick]        one line a kernel: variant direction schedule shape kernel hash
 *     corpus --compare FILE   the same points again: what FILE has is printed with -, what is there now with +
 *     corpus --test           that it tells what differs from what does not
 *
 * A hash is of the PTX without comments and line numbers: statements may move in their file. What the host does with the
 * kernels (grids, arguments, shared memory, workspace) is one more line, (launch). A point that the compiler refuses
 * has the code of the refusal instead. The hashes are of one LLVM: files of them are made before and after a change, on
 * one machine, and not kept. */
#include "cli/cli.h"
#include "code.h"
#include "kernels/tap.h"
#include "variants/variants.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- points: what is compiled ---- */

static const struct {
    uint32_t dqk, dhv;
} widths[] = {{64, 64}, {128, 256}, {256, 512}};
static const struct form {
    const char *name;
    uint32_t group;
    uint8_t packed, pooled;
} forms[] = {{"plain", 1, 0, 0}, {"packed", 1, 1, 0}, {"group4", 4, 0, 0}, {"pooled", 1, 0, 1}};
static const char *const archs[] = {"sm_80", "sm_90a"};
enum { N_WIDTHS = 3, N_FORMS = 4, N_ARCHS = 2, N_POINTS = N_WIDTHS * N_FORMS * N_ARCHS, LINE = 256 };

struct point {
    const tg_variant *variant;
    const char *label; /* "mlstm-sig backward walk bf16,128x256,packed,0,sm_90a" */
    tg_schedule schedule;
    tg_shape_class shape;
    const tg_target *target;
};

/* The code of the first message. */
static void keep_code(void *user, const tg_diag *diag)
{
    char *code = user;
    if (!*code && diag->code)
        snprintf(code, 16, "%s", diag->code);
}

/* Reads a label; false: there is no such variant, schedule or target now. */
static bool point_read(struct point *p, const char *label)
{
    static struct context context;
    char variant[32], direction[16], schedule[64], io[8], form[16], arch[16];
    context.sink = silent_sink;
    *p = (struct point){.label = label};
    if (sscanf(label, "%31s %15s %63s %7[^,],%ux%u,%15[^,],%u,%15s", variant, direction, schedule, io, &p->shape.dqk,
               &p->shape.dhv, form, &p->shape.tokens, arch) != 9)
        return false;
    for (int i = 0; i < N_FORMS; i++)
        if (strcmp(forms[i].name, form) == 0) {
            p->shape.group = forms[i].group;
            p->shape.packed = forms[i].packed;
            p->shape.pooled = forms[i].pooled;
        }
    p->shape.io = strcmp(io, "f32") == 0 ? TG_F32 : TG_BF16;
    p->target = tg_target_find(arch);
    p->variant = tg_variant_find(variant);
    if (p->variant && strcmp(direction, "backward") == 0)
        p->variant = p->variant->backward;
    return p->variant && p->target &&
           schedule_from_text(&context, p->variant, p->target, &p->shape, NULL, schedule, &p->schedule);
}

static bool takes_f32(const tg_schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        if (schedule->rows[r].mma == TG_MMA_TF32X3)
            return true;
    return false;
}

static void point_label(char label[LINE], const tg_variant *forward, bool is_backward, const tg_schedule *schedule,
                        uint32_t n)
{
    snprintf(label, LINE, "%s %s %s %s,%ux%u,%s,%u,%s", forward->name, is_backward ? "backward" : "forward",
             schedule->name, takes_f32(schedule) ? "f32" : "bf16", widths[n % N_WIDTHS].dqk, widths[n % N_WIDTHS].dhv,
             forms[n / N_WIDTHS % N_FORMS].name, schedule->max_tokens, archs[n / N_WIDTHS / N_FORMS]);
}

/* ---- hashes ---- */

static uint64_t hash_of_ptx(const char *ptx)
{
    struct text code = {0};
    add_code(&code, ptx);
    const uint64_t hash = XXH3_64bits(text_of(&code), code.size);
    text_free(&code);
    return hash;
}

/* The program without its code and its names, which may change. */
static uint64_t hash_of_launch(tg_program program)
{
    void *bytes = NULL;
    size_t n = 0;
    uint64_t hash = 0;
    for (uint32_t k = 0; k < program.n_kernels; k++) {
        program.kernels[k].ptx = " ";
        program.kernels[k].ptx_bytes = 1;
    }
    memset(program.schedule, 0, sizeof program.schedule);
    program.schedule[0] = '-';
    if (tg_program_bytes(&program, &bytes, &n, NULL) == TG_OK)
        hash = XXH3_64bits(bytes, n);
    free(bytes);
    return hash;
}

/* The lines of a point. */
static void point_hash(const struct point *p, struct text *lines)
{
    char code[16] = "";
    const tg_sink sink = {keep_code, code};
    const tg_writer writer = text_writer(lines);
    tg_program *program = NULL;
    if (tg_compile(p->variant, &p->schedule, p->target, &p->shape, NULL, &program, &sink) != TG_OK) {
        tg_printf(&writer, "%s (refused) %s\n", p->label, code);
        return;
    }
    for (uint32_t k = 0; k < program->n_kernels; k++)
        tg_printf(&writer, "%s %s %016llx\n", p->label, program->kernels[k].name,
                  (unsigned long long)hash_of_ptx(program->kernels[k].ptx));
    tg_printf(&writer, "%s (launch) %016llx\n", p->label, (unsigned long long)hash_of_launch(*program));
    tg_program_free(program);
}

/* ---- the corpus ---- */

/* Of each schedule so many of its points, others for the next schedule and variant; of those before them that are
 * refused, the codes. */
static void print_schedule(const tg_variant *forward, bool is_backward, const tg_schedule *schedule, uint32_t start,
                           int wanted)
{
    enum { STRIDE = 7 }; /* of all points: it has no factor in common with their number */
    for (uint32_t i = 0; i < N_POINTS && wanted > 0; i++) {
        char label[LINE];
        struct point p;
        struct text lines = {0};
        point_label(label, forward, is_backward, schedule, (start + STRIDE * i) % N_POINTS);
        if (!point_read(&p, label))
            continue;
        point_hash(&p, &lines);
        fputs(text_of(&lines), stdout);
        fflush(stdout);
        wanted -= strstr(text_of(&lines), "(refused)") == NULL;
        text_free(&lines);
    }
}

/* The plainest and the richest variants have all schedules in several points, the others share them out. */
static void print_corpus(bool is_quick)
{
    uint32_t v = 0;
    for (const tg_variant *const *variant = tg_builtin_variants; *variant; variant++, v++) {
        const bool is_rich = *variant == &tg_mlstm_sig || *variant == &tg_mlstm_exp || *variant == &tg_mamba2;
        for (int is_backward = 0; is_backward < 2; is_backward++) {
            const tg_variant *const of = is_backward ? (*variant)->backward : *variant;
            tg_schedule schedule;
            for (uint32_t s = 0; of && tg_variant_schedule(of, s, &schedule); s++) {
                const bool is_quick_one = (s + v) % (is_rich ? 3 : 12) == 0, is_third = (s + v) % 3 == 0;
                print_schedule(*variant, is_backward, &schedule, 5 * v + 11 * s,
                               is_quick   ? is_quick_one
                               : is_rich  ? 3
                               : is_third ? 2
                                          : 1);
            }
        }
    }
}

/* ---- comparing ---- */

static bool has_line(const char *lines, const char *line, size_t n)
{
    for (const char *at = lines; *at; at += strcspn(at, "\n") + 1)
        if (strcspn(at, "\n") == n && strncmp(at, line, n) == 0)
            return true;
    return false;
}

/* Prints the lines of `a` that `b` lacks, and returns their number. */
static int print_lacking(const char *a, const char *b, char sign, FILE *out)
{
    int n = 0;
    for (const char *line = a; *line; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\n");
        if (has_line(b, line, length))
            continue;
        fprintf(out, "%c %.*s\n", sign, (int)length, line);
        n++;
    }
    return n;
}

/* All lines of a point as they were; returns how many differ. */
static int compare_point(const char *label, const char *before, FILE *out)
{
    struct point p;
    struct text now = {0};
    if (point_read(&p, label))
        point_hash(&p, &now);
    const int n = print_lacking(before, text_of(&now), '-', out) + print_lacking(text_of(&now), before, '+', out);
    text_free(&now);
    return n;
}

/* The part of a line that says what is compiled: all but its last two words. */
static void label_of(const char *line, char label[LINE])
{
    snprintf(label, LINE, "%s", line);
    for (int i = 0; i < 2; i++)
        if (strrchr(label, ' '))
            *strrchr(label, ' ') = '\0';
}

/* Returns how many lines differ; those of `file` that begin with # are not its business. */
static int compare(FILE *file, FILE *out)
{
    char line[LINE], label[LINE], last[LINE] = "";
    struct text before = {0};
    const tg_writer writer = text_writer(&before);
    int n = 0, n_points = 0;
    while (fgets(line, sizeof line, file)) {
        if (*line == '#')
            continue;
        label_of(line, label);
        if (*last && strcmp(label, last) != 0) {
            n += compare_point(last, text_of(&before), out);
            n_points++;
            text_free(&before);
        }
        tg_printf(&writer, "%s", line);
        memcpy(last, label, sizeof last);
    }
    if (*last)
        n += compare_point(last, text_of(&before), out);
    text_free(&before);
    fprintf(out, "%d points compared, %d lines differ\n", n_points + (*last != '\0'), n);
    return *last ? n : -1;
}

static int compare_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "corpus: cannot open %s\n", path);
        return CODE_USAGE;
    }
    const int n = compare(file, stdout);
    fclose(file);
    return n ? CODE_FAILED : CODE_OK;
}

/* ---- the test of it ---- */

static const char small[] = "mlstm-sig forward tfla bf16,64x64,plain,0,sm_80";

static void hash_changed(const char *changes, struct text *lines)
{
    struct point p;
    tap_expect(point_read(&p, small), "no point %s", small);
    tap_expect(tg_schedule_apply(changes, &p.schedule, &silent_sink) == TG_OK, "cannot apply %s", changes);
    point_hash(&p, lines);
}

/* The same algorithm, written elsewhere. */
static void hash_moved(struct text *lines)
{
    enum { MOST = 64 };
    struct point p;
    tg_stmt body[MOST];
    tap_expect(point_read(&p, small), "no point %s", small);
    tg_algorithm moved = *p.schedule.algorithm;
    for (uint32_t i = 0; i < moved.n_body && i < MOST; i++) {
        body[i] = moved.body[i];
        body[i].file = "elsewhere.inc";
        body[i].line += (int)(10 * i + 1000);
    }
    moved.body = body;
    moved.file = "elsewhere.inc";
    p.schedule.algorithm = &moved;
    tap_expect(moved.n_body <= MOST, "the algorithm has %u statements", moved.n_body);
    point_hash(&p, lines);
}

static void test_hashes(void)
{
    struct text before = {0}, moved = {0}, other = {0};
    hash_changed("", &before);
    if (tap_begin("statements in other lines of another file have the same hashes")) {
        hash_moved(&moved);
        tap_expect(strcmp(text_of(&before), text_of(&moved)) == 0, "before\n%snow\n%s", text_of(&before),
                   text_of(&moved));
        tap_end();
    }
    if (tap_begin("another block has other hashes, of its kernel alone")) {
        FILE *silent = fopen("/dev/null", "w");
        hash_changed("H.Lhq=64", &other);
        const int n = silent ? print_lacking(text_of(&before), text_of(&other), '-', silent) : 0;
        tap_expect(n == 2, "%d lines differ, expected H and the launch:\n%s", n, text_of(&other));
        tap_expect(strstr(text_of(&other), "_H ") != NULL, "there is no H:\n%s", text_of(&other));
        tap_end();
        if (silent)
            fclose(silent);
    }
    text_free(&before);
    text_free(&moved);
    text_free(&other);
}

static int compare_text(char *text)
{
    FILE *file = fmemopen(text, strlen(text), "r"), *silent = fopen("/dev/null", "w");
    const int n = file && silent ? compare(file, silent) : -1;
    if (file)
        fclose(file);
    if (silent)
        fclose(silent);
    return n;
}

static void test_compare(void)
{
    struct text lines = {0};
    char gone[] = "gone forward tfla bf16,64x64,plain,0,sm_80 (launch) 0123456789abcdef\n", empty[] = "# 1\n";
    char refused[] = "mlstm-sig forward walk bf16,64x64,plain,0,sm_80 (launch) 0123456789abcdef\n";
    hash_changed("", &lines);
    if (tap_begin("--compare says what differs")) {
        char *const text = lines.bytes;
        tap_expect(compare_text(text) == 0, "the same differs");
        text[lines.size - 2] ^= 1;
        tap_expect(compare_text(text) == 2, "another hash does not count");
        text[lines.size - 2] ^= 1;
        tap_expect(compare_text(strchr(text, '\n') + 1) == 1, "a new kernel does not count");
        tap_expect(compare_text(gone) == 1, "a variant that is no more does not count");
        tap_expect(compare_text(refused) == 2, "a refusal does not count");
        tap_expect(compare_text(empty) == -1, "an empty corpus is taken for the same");
        tap_end();
    }
    text_free(&lines);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--compare") == 0)
        return compare_file(argv[2]);
    if (argc == 2 && strcmp(argv[1], "--test") == 0) {
        test_hashes();
        test_compare();
        return tap_finish();
    }
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--quick") != 0)) {
        fprintf(stderr, "usage: corpus [--quick] | --compare FILE | --test\n");
        return CODE_USAGE;
    }
    print_corpus(argc == 2);
    return CODE_OK;
}
