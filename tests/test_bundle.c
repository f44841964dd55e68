/* tests/test_bundle.c - programs and sets of them as bundles and as generated C. */
#include "program/program.h"
#include "tests/bundle/sample.h"
#include "tests/log.h"
#include "tests/usage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <xxhash.h>

static const char ptx[] = ".version 7.0\n.target sm_80\n";
static const uint8_t cubin[] = {0x7f, 'E', 'L', 'F', 0, 1, 2, 3};

/* ---- bundle ---- */

enum { TRAILER = 8 };

static void put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Makes damage reach the fields behind the checksum. */
static void seal(uint8_t *bytes, size_t size)
{
    put_u64(bytes + size - TRAILER, XXH64(bytes, size - TRAILER, 0));
}

static uint8_t *bytes_of(const tg_program *program, size_t *size)
{
    void *bytes;
    assert_int_equal(tg_program_bytes(program, &bytes, size, NULL), TG_OK);
    return bytes;
}

static uint8_t *sample_bytes(size_t *size)
{
    tg_program p = sample_program_rich(ptx, cubin, sizeof cubin);
    return bytes_of(&p, size);
}

static void a_bundle_reads_back_equal(void **state)
{
    (void)state;
    tg_program p = sample_program_rich(ptx, cubin, sizeof cubin);
    size_t size, size_again;
    void *bytes = sample_bytes(&size), *again;
    tg_program *read;
    assert_int_equal(tg_program_parse(bytes, size, &read, NULL), TG_OK);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(read->kernels[i].ptx, ptx);
        assert_true((uintptr_t)read->kernels[i].cubin % 16 == 0);
    }
    assert_null(read->kernels[0].cubin);
    assert_memory_equal(read->kernels[1].cubin, cubin, sizeof cubin);
    assert_int_equal(tg_program_bytes(read, &again, &size_again, NULL), TG_OK);
    assert_int_equal(size, size_again);
    assert_memory_equal(bytes, again, size);
    for (int i = 0; i < 2; i++) { /* beside the addresses, the structs are equal bit by bit */
        read->kernels[i].ptx = p.kernels[i].ptx;
        read->kernels[i].cubin = p.kernels[i].cubin;
    }
    void *storage = read->storage;
    read->storage = NULL;
    assert_memory_equal(read, &p, sizeof p);
    read->storage = storage;
    tg_program_free(read);
    tg_program_free(NULL);
    free(bytes);
    free(again);
}

static void every_kind_reads_back_equal(void **state)
{
    (void)state;
    tg_program programs[] = {sample_program_packed(ptx), sample_program_decode(ptx), sample_program_maps(ptx),
                             sample_program_pieces(ptx)};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        tg_program *p = &programs[i], *read;
        void *bytes;
        size_t size;
        assert_int_equal(tg_program_bytes(p, &bytes, &size, NULL), TG_OK);
        assert_int_equal(tg_program_parse(bytes, size, &read, NULL), TG_OK);
        assert_int_equal(read->packed, p->packed);
        assert_int_equal(read->pooled, p->pooled);
        assert_int_equal(read->group, p->group);
        assert_int_equal(read->max_tokens, p->max_tokens);
        assert_int_equal(read->pieces, p->pieces);
        assert_int_equal(read->n_scalars, p->n_scalars);
        assert_memory_equal(read->scalars, p->scalars, sizeof p->scalars);
        assert_memory_equal(read->tensors, p->tensors, sizeof p->tensors);
        assert_memory_equal(read->kernels[0].args, p->kernels[0].args, sizeof p->kernels[0].args);
        assert_int_equal(read->kernels[0].n_maps, p->kernels[0].n_maps);
        assert_memory_equal(read->kernels[0].maps, p->kernels[0].maps, sizeof p->kernels[0].maps);
        assert_int_equal(read->kernels[0].cluster, p->kernels[0].cluster);
        assert_int_equal(read->kernels[0].overlap, p->kernels[0].overlap);
        tg_program_free(read);
        free(bytes);
    }
}

static void find_every_damaged_byte(const tg_program *program)
{
    size_t size;
    uint8_t *bytes = bytes_of(program, &size);
    tg_program *read;
    for (size_t i = 0; i < size; i++) {
        LOG(log);
        bytes[i] ^= 0x40;
        assert_int_equal(tg_program_parse(bytes, size, &read, &log_sink), TG_E_FORMAT);
        assert_null(read);
        assert_int_equal(log.n, 1);
        assert_says(&log, "expected");
        bytes[i] ^= 0x40;
    }
    for (size_t n = 0; n < size; n++) {
        uint8_t *shorter = malloc(n ? n : 1); /* its own block: reading past it is found by ASan */
        memcpy(shorter, bytes, n);
        assert_int_equal(tg_program_parse(shorter, n, &read, NULL), TG_E_FORMAT);
        if (n >= 32) { /* and with header and checksum right again */
            put_u64(shorter + 16, n);
            seal(shorter, n);
            assert_int_equal(tg_program_parse(shorter, n, &read, NULL), TG_E_FORMAT);
        }
        free(shorter);
    }
    free(bytes);
}

static void every_damaged_byte_is_found(void **state)
{
    (void)state;
    const tg_program rich = sample_program_rich(ptx, cubin, sizeof cubin);
    const tg_program maps = sample_program_maps(ptx);
    find_every_damaged_byte(&rich);
    find_every_damaged_byte(&maps);
}

/* With a right checksum a changed byte is either refused or means another valid program. */
static void read_sealed_damage(const tg_program *program)
{
    size_t size;
    uint8_t *bytes = bytes_of(program, &size), *copy = malloc(size);
    int n_refused = 0;
    for (size_t i = 0; i + TRAILER < size; i++)
        for (int value = 0; value < 256; value += 51) {
            LOG(log);
            tg_program *read;
            memcpy(copy, bytes, size);
            copy[i] = (uint8_t)value;
            seal(copy, size);
            tg_status status = tg_program_parse(copy, size, &read, &log_sink);
            assert_true(status == TG_OK || (status == TG_E_FORMAT && log.n == 1));
            n_refused += status != TG_OK;
            if (status == TG_OK) { /* what is read is what would be written */
                void *again;
                size_t size_again;
                assert_int_equal(tg_program_bytes(read, &again, &size_again, NULL), TG_OK);
                assert_int_equal(size_again, size);
                assert_memory_equal(again, copy, size);
                free(again);
            }
            tg_program_free(read);
        }
    assert_true(n_refused > 1000);
    free(copy);
    free(bytes);
}

static void sealed_damage_never_misleads(void **state)
{
    (void)state;
    const tg_program rich = sample_program_rich(ptx, cubin, sizeof cubin);
    const tg_program maps = sample_program_maps(ptx);
    read_sealed_damage(&rich);
    read_sealed_damage(&maps);
}

static void the_header_is_explained(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = sample_bytes(&size);
    tg_program *read;
    const struct {
        size_t at;
        uint8_t value;
        const char *expected;
    } rows[] = {
        {0, 'X', "TG0711 bundle: magic: expected \"TEGULA\\r\\n\""},
        {8, 1, "TG0712 bundle: version: expected 8, found 1"},
        {12, 7, "TG0715 bundle: kind: expected 0 (one program) or 1 (a set), found 7"},
        {12, 1, "TG0716 bundle: kind: expected 0 (one program), found 1 (a set)"},
        {17, 0xff, "TG0713 bundle: size: expected the"},
        {24, 40, "TG0715 bundle: variant at byte 28: expected at most 31, found 40"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LOG(log);
        uint8_t saved = bytes[rows[i].at];
        bytes[rows[i].at] = rows[i].value;
        seal(bytes, size);
        assert_int_equal(tg_program_parse(bytes, size, &read, &log_sink), TG_E_FORMAT);
        assert_says(&log, rows[i].expected);
        bytes[rows[i].at] = saved;
    }
    LOG(log);
    assert_int_equal(tg_program_parse(bytes, 3, &read, &log_sink), TG_E_FORMAT);
    assert_int_equal(tg_program_parse(bytes, 20, &read, &log_sink), TG_E_FORMAT);
    assert_says(&log, "bundle: expected at least 32 bytes, found 20");
    assert_int_equal(tg_program_parse(NULL, 0, &read, NULL), TG_E_ARGUMENT);
    free(bytes);
}

/* A count that is too large never becomes an index. */
static void counts_are_read_with_care(void **state)
{
    (void)state;
    LOG(log);
    tg_program p = sample_program_maps(ptx), *read;
    size_t size;
    uint8_t *bytes = bytes_of(&p, &size);
    size_t n_maps_at = size - TRAILER - TG_MAX_MAPS * 8 - 4;
    assert_int_equal(bytes[n_maps_at], TG_MAX_MAPS);
    bytes[n_maps_at] = TG_MAX_MAPS + 1;
    seal(bytes, size);
    assert_int_equal(tg_program_parse(bytes, size, &read, &log_sink), TG_E_FORMAT);
    assert_says(&log, "TG0715 bundle: kernel n_maps at byte");
    free(bytes);
}

/* ---- bundles of sets ---- */

static tg_program set_programs[SAMPLE_SET_PROGRAMS];
static tg_branch set_branches[SAMPLE_SET_BRANCHES];

static uint8_t *set_bytes(size_t *size)
{
    const tg_set set = sample_set(ptx, set_programs, set_branches);
    void *bytes;
    set.programs[1].kernels[0].cubin = cubin;
    set.programs[1].kernels[0].cubin_bytes = sizeof cubin;
    assert_int_equal(tg_set_bytes(&set, &bytes, size, NULL), TG_OK);
    return bytes;
}

/* Frees the set. */
static void assert_written_as(tg_set *set, const void *bytes, size_t size)
{
    void *again;
    size_t size_again;
    assert_int_equal(tg_set_bytes(set, &again, &size_again, NULL), TG_OK);
    assert_int_equal(size_again, size);
    assert_memory_equal(again, bytes, size);
    free(again);
    tg_set_free(set);
}

static void a_set_reads_back_equal(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = set_bytes(&size);
    tg_set *read;
    tg_program *one;
    assert_int_equal(tg_set_parse(bytes, size, &read, NULL), TG_OK);
    assert_int_equal(read->n_programs, SAMPLE_SET_PROGRAMS);
    assert_int_equal(read->n_branches, SAMPLE_SET_BRANCHES);
    assert_string_equal(read->programs[6].kernels[0].ptx, ptx);
    assert_memory_equal(read->programs[1].kernels[0].cubin, cubin, sizeof cubin);
    assert_memory_equal(read->branches[1].picks, set_branches[1].picks, sizeof set_branches[1].picks);
    assert_int_equal(read->branches[1].points[2].tokens, 256);
    assert_int_equal(read->branches[1].points[2].origin, TG_BY_NAME);
    assert_int_equal(read->branches[1].points[1].program, 1);
    assert_written_as(read, bytes, size);
    LOG(log);
    assert_int_equal(tg_program_parse(bytes, size, &one, &log_sink), TG_E_FORMAT);
    assert_says(&log, "TG0716 bundle: kind: expected 0 (one program), found 1 (a set)");
    free(bytes);
}

/* One program is one file, whichever function wrote it, and either function reads it. */
static void a_set_of_one_is_a_program(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = sample_bytes(&size);
    tg_set *read;
    assert_int_equal(tg_set_parse(bytes, size, &read, NULL), TG_OK);
    assert_int_equal(read->n_programs, 1);
    const tg_sizes sizes = {1, 1, 16, 0};
    assert_int_equal(tg_set_branch(read, 90, 0, 0, NULL), 0);
    assert_int_equal(tg_set_pick(read, 0, &sizes, NULL), 0);
    assert_written_as(read, bytes, size);
    tg_set_free(NULL);
    free(bytes);
}

static void damage_of_a_set_is_found(void **state)
{
    (void)state;
    size_t size, n_refused = 0, n_read = 0;
    uint8_t *bytes = set_bytes(&size), *copy = malloc(size);
    tg_set *read;
    for (size_t i = 0; i < size; i++) {
        LOG(log);
        memcpy(copy, bytes, size);
        copy[i] ^= 0x40;
        assert_int_equal(tg_set_parse(copy, size, &read, &log_sink), TG_E_FORMAT);
        assert_int_equal(log.n, 1);
        if (i < 16 || i + TRAILER >= size)
            continue;
        copy[i] ^= 0x41;
        seal(copy, size); /* refused, or another valid set */
        if (tg_set_parse(copy, size, &read, NULL) == TG_OK) {
            n_read++;
            assert_written_as(read, copy, size);
        } else {
            n_refused++;
        }
    }
    assert_true(n_refused > 1000 && n_read > 1000);
    for (size_t n = 32; n < size; n += 7) {
        uint8_t *shorter = malloc(n);
        memcpy(shorter, bytes, n);
        put_u64(shorter + 16, n);
        seal(shorter, n);
        assert_int_equal(tg_set_parse(shorter, n, &read, NULL), TG_E_FORMAT);
        free(shorter);
    }
    free(copy);
    free(bytes);
}

/* ---- generated C ---- */

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void compile(const char *folder, const char *flags, const char *file)
{
    char command[700];
    snprintf(command, sizeof command,
             "cd %s && %s %s -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -c %s -o sample.o", folder,
             TEST_C_COMPILER, flags, file);
    assert_int_equal(system(command), 0);
}

static void make_folder(char folder[])
{
    assert_non_null(mkdtemp(folder));
    write_text(folder, "tegula_embed.h", tg_embed_header());
}

static void remove_folder(const char *folder)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void compile_as_all(const char *folder, const char *file)
{
    compile(folder, "-std=c11", file);
    compile(folder, "-std=gnu11", file);
    compile(folder, "-x c++ -std=c++14", file);
    compile(folder, "-x c++ -std=gnu++17", file);
    compile(folder, "-x c++ -std=c++17", file);
}

/* As C and as C++; frees both texts. */
static void compile_both(char *source, char *header)
{
    char folder[] = "/tmp/tegula-test-XXXXXX";
    make_folder(folder);
    write_text(folder, "sample.c", source);
    write_text(folder, "sample.h", header);
    compile_as_all(folder, "sample.c");
    free(source);
    free(header);
    remove_folder(folder);
}

static void generated_c_compiles_without_warnings(void **state)
{
    (void)state;
    tg_program p = sample_program_rich(ptx, cubin, sizeof cubin);
    strcpy(p.tensors[SAMPLE_H].name, "do");   /* a keyword */
    strcpy(p.variant, "tricky */ @name@ \\"); /* ends no comment, is no key */
    char *source, *header;
    assert_int_equal(tg_program_c(&p, "sample", &source, &header, NULL), TG_OK);
    assert_null(strchr(source, '@'));
    assert_null(strchr(header, '@'));
    assert_non_null(strstr(header, "tegula_tensor do_;"));
    compile_both(source, header);
}

/* Names that C, or the function around them, has for something else. */
static void generated_c_of_every_kind(void **state)
{
    (void)state;
    tg_program p = sample_program_packed(ptx);
    p.n_scalars = 4;
    strcpy(p.scalars[1].name, "int");
    p.scalars[2] = (tg_scalar_info){"stream", 1e-40f}; /* subnormal */
    p.scalars[3] = (tg_scalar_info){"product", 3.4e38f};
    char *source, *header;
    assert_int_equal(tg_program_c(&p, "sample", &source, &header, NULL), TG_OK);
    const char *const expected[] = {
        "in   q  f32 [1, NH/2, T, dqk]\n",
        "in   S0  f32 [slots, NH, dqk, dhv], may be absent\n",
        "in   bias  f32 [1, 1, dhv]\n",
        "in   cu  i32 [1, 1, B+1]\n",
        "in   index  i32 [B, 1]\n",
        "out  kept  f32 [1, NH, T/L+B], may be absent\n",
        "SAMPLE_PACKED = 1,",
        "SAMPLE_POOLED = 1,",
        "SAMPLE_GROUP = 2,",
        "SAMPLE_MAX_TOKENS = 0,",
        "SAMPLE_TYPE_cu = 6, /* i32 */",
        "float scale, float int_, float stream_, float product,\n",
        "#define SAMPLE_DEFAULT_scale (0.25f)\n",
        "#define SAMPLE_DEFAULT_int (-1.5f)\n",

        "cu[b] is where sequence b begins",
        "sequence b has slot index[b]",
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(header, expected[i]))
            fail_msg("no \"%s\" in %s", expected[i], header);
    compile_both(source, header);
}

/* What gcc, its headers and the compiler have: for C and C++, with the extensions of GNU and without. */
static void names_that_are_taken_get_an_underscore(void **state)
{
    (void)state;
    static const struct {
        const char *names[8], *suffix;
    } rows[] = {{{"linux", "unix", "NULL", "EOF", "_Bool", "_t", "SIZE_MAX", "BUFSIZ"}, "_"},
                {{"Q", "C0", "A_log", "dS0", "DK", "D2", "q_", "Null"}, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *source, *header, expected[40];
        tg_program p = sample_program(ptx);
        for (int t = 0; t < 8; t++)
            strcpy(p.tensors[t].name, rows[i].names[t]);
        assert_int_equal(tg_program_c(&p, "sample", &source, &header, NULL), TG_OK);
        for (int t = 0; t < 8; t++) {
            snprintf(expected, sizeof expected, "tegula_tensor %s%s;", rows[i].names[t], rows[i].suffix);
            if (!strstr(header, expected))
                fail_msg("no \"%s\" in %s", expected, header);
        }
        compile_both(source, header);
    }
}

static void generated_c_says_what_maps_need(void **state)
{
    (void)state;
    static const char strides[] = "positive and below 2^40 bytes in q k v w g h,\n";
    tg_program maps = sample_program_maps(ptx), alone = maps, plain = sample_program(ptx);
    alone.kernels[0].cluster = 0;
    const struct {
        const tg_program *program;
        const char *needs;
    } rows[] = {{&maps, "must have cuTensorMapEncodeTiled and cuLaunchKernelEx."},
                {&alone, "must have cuTensorMapEncodeTiled."},
                {&plain, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *source, *header;
        assert_int_equal(tg_program_c(rows[i].program, "sample", &source, &header, NULL), TG_OK);
        assert_int_equal(strstr(header, strides) != NULL, rows[i].needs != NULL);
        assert_int_equal(strstr(header, "The driver must have") != NULL, rows[i].needs != NULL);
        assert_true(!rows[i].needs || strstr(header, rows[i].needs));
        compile_both(source, header);
    }
}

/* Every float is spelt so that it reads back the same, and as people write it. */
static void scalars_are_decimal(void **state)
{
    (void)state;
    static const struct {
        float value;
        const char *text;
    } rows[] = {{0.0f, "(0.0f)"},     {1.0f, "(1.0f)"},        {0.125f, "(0.125f)"},           {-1.5f, "(-1.5f)"},
                {1e-40f, "(1e-40f)"}, {3.4e38f, "(3.4e+38f)"}, {1.0f / 3.0f, "(0.33333334f)"}, {1e-6f, "(1e-06f)"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tg_program p = sample_program(ptx);
        char *source, *header, line[64];
        p.scalars[0].value = rows[i].value;
        snprintf(line, sizeof line, "#define SAMPLE_DEFAULT_scale %s\n", rows[i].text);
        assert_int_equal(tg_program_c(&p, "sample", &source, &header, NULL), TG_OK);
        if (!strstr(header, line))
            fail_msg("no \"%s\" in %s", line, header);
        free(source);
        free(header);
    }
}

/* The header says what was chosen for what; a kernel that several programs have is there once. */
static void a_set_as_generated_c(void **state)
{
    (void)state;
    const tg_set set = sample_set(ptx, set_programs, set_branches);
    char *source, *header;
    set.programs[6].scalars[0].value = 0.125f;
    assert_int_equal(tg_set_c(&set, "sample", &source, &header, NULL), TG_OK);
    const char *const expected[] = {
        "mlstm-sig, 7 programs of which each call takes one",
        "dqk and dhv are 16 and 16, or 32 and 16 (say which in the sizes)",
        " * dqk 16, dhv 16, sm_80 or newer:\n *     walk, L 64; the default; B 1 NH 2 T 16 (the cost model)\n"
        " *     tfla, L 32; B 2 NH 2 T 64 (measured)\n *     clusters, L 32; B 3 NH 2 T 256 (named)\n",
        "    SAMPLE_DHV = 16,\n",
        "No SAMPLE_DEFAULT_scale, which differs: (0.25f) for dqk 16, dhv 16, (0.25f) for dqk 16, dhv 16, (0.125f) for dqk 32, "
        "dhv 16.",
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(header, expected[i]))
            fail_msg("no \"%s\" in %s", expected[i], header);
    assert_null(strstr(header, "SAMPLE_DQK")); /* it is not the same in all */
    assert_non_null(strstr(source, "unsigned char ptx_0[]"));
    assert_null(strstr(source, "unsigned char ptx_1[]"));
    compile_both(source, header);
}

/* Two programs in one application: one table of driver functions and one template serve both. */
static void programs_share_types(void **state)
{
    (void)state;
    static const char *const names[] = {"prefill", "sample_step"};
    static const char application[] =
        "#include \"prefill.h\"\n"
        "#include \"sample_step.h\"\n"
        "int use(tegula_driver *driver, prefill_module *a, sample_step_module *b);\n"
        "int use(tegula_driver *driver, prefill_module *a, sample_step_module *b)\n"
        "{\n"
        "    int result = prefill_driver_open(driver, NULL);\n"
        "    return result ? result : prefill_load(a, driver) || sample_step_load(b, driver);\n"
        "}\n"
        "#ifdef __cplusplus\n"
        "template <typename Module, typename Tensors>\n"
        "int forward(int (*launch)(const Module *, const tegula_sizes *, float, const Tensors *, uint64_t, void *),\n"
        "            const Module &module, const tegula_sizes &sizes, const tegula_tensor &q)\n"
        "{\n"
        "    Tensors tensors = Tensors();\n"
        "    tensors.q = q;\n"
        "    return launch(&module, &sizes, PREFILL_DEFAULT_scale, &tensors, 0, nullptr);\n"
        "}\n"
        "int both(const prefill_module &a, const sample_step_module &b, const tegula_sizes &sizes);\n"
        "int both(const prefill_module &a, const sample_step_module &b, const tegula_sizes &sizes)\n"
        "{\n"
        "    const tegula_tensor q = tegula_tensor();\n"
        "    return forward(prefill_launch, a, sizes, q) + forward(sample_step_launch, b, sizes, q);\n"
        "}\n"
        "#endif\n";
    const tg_program programs[] = {sample_program(ptx), sample_program_decode(ptx)};
    char folder[] = "/tmp/tegula-test-XXXXXX", file[32];
    make_folder(folder);
    for (size_t i = 0; i < 2; i++) {
        char *source, *header;
        assert_int_equal(tg_program_c(&programs[i], names[i], &source, &header, NULL), TG_OK);
        snprintf(file, sizeof file, "%s.h", names[i]);
        write_text(folder, file, header);
        free(source);
        free(header);
    }
    write_text(folder, "application.c", application);
    compile_as_all(folder, "application.c");
    remove_folder(folder);
}

static void prefixes_are_identifiers(void **state)
{
    (void)state;
    const char *const wrong[] = {NULL, "", "9a", "a-b", "ä"};
    const char *const reserved[] = {"int", "_Bool", "register", "typename", "a__b", "tegula"};
    tg_program p = sample_program(ptx);
    char *source, *header;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        LOG(log);
        assert_int_equal(tg_program_c(&p, wrong[i], &source, &header, &log_sink), TG_E_ARGUMENT);
        assert_says(&log, "TG0731 name: expected a C identifier of at most 64 characters, found ");
        assert_null(source);
    }
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        LOG(log);
        assert_int_equal(tg_c_name_check(reserved[i], &log_sink), TG_E_ARGUMENT);
        assert_says(&log, "TG0731 name: expected one that C, C++ and tegula_embed.h leave free, found ");
        assert_int_equal(tg_program_c(&p, reserved[i], &source, &header, NULL), TG_E_ARGUMENT);
    }
    assert_int_equal(tg_c_name_check("mlstm_exp_step", NULL), TG_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bundle_reads_back_equal),
        cmocka_unit_test(every_kind_reads_back_equal),
        cmocka_unit_test(every_damaged_byte_is_found),
        cmocka_unit_test(sealed_damage_never_misleads),
        cmocka_unit_test(the_header_is_explained),
        cmocka_unit_test(counts_are_read_with_care),
        cmocka_unit_test(a_set_reads_back_equal),
        cmocka_unit_test(a_set_of_one_is_a_program),
        cmocka_unit_test(damage_of_a_set_is_found),
        cmocka_unit_test(generated_c_compiles_without_warnings),
        cmocka_unit_test(generated_c_of_every_kind),
        cmocka_unit_test(generated_c_says_what_maps_need),
        cmocka_unit_test(names_that_are_taken_get_an_underscore),
        cmocka_unit_test(scalars_are_decimal),
        cmocka_unit_test(a_set_as_generated_c),
        cmocka_unit_test(programs_share_types),
        cmocka_unit_test(prefixes_are_identifiers),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
