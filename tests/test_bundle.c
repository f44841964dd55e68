/* tests/test_bundle.c - programs as bundles and as generated C. */
#include "program/program.h"
#include "tests/bundle/sample.h"
#include "tests/log.h"

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
    tg_program programs[] = {sample_program_packed(ptx), sample_program_decode(ptx), sample_program_maps(ptx)};
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
        {8, 1, "TG0712 bundle: version: expected 6, found 1"},
        {12, 7, "TG0715 bundle: header reserved: expected 0, found 7"},
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

/* ---- generated C ---- */

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void compile(const char *folder, const char *flags)
{
    char command[700];
    snprintf(command, sizeof command,
             "cd %s && %s %s -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -c sample.c -o "
             "sample.o",
             folder, TEST_C_COMPILER, flags);
    assert_int_equal(system(command), 0);
}

/* As C and as C++; frees both texts. */
static void compile_both(char *source, char *header)
{
    char folder[] = "/tmp/tegula-test-XXXXXX", command[100];
    assert_non_null(mkdtemp(folder));
    write_text(folder, "sample.c", source);
    write_text(folder, "sample.h", header);
    compile(folder, "-std=c11");
    compile(folder, "-x c++ -std=c++17");
    free(source);
    free(header);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
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
    assert_non_null(strstr(header, "sample_tensor do_;"));
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
        "#define SAMPLE_DEFAULT_int (-0xc00000p-23f)\n",
        "cu[b] is where sequence b begins",
        "sequence b has slot index[b]",
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(header, expected[i]))
            fail_msg("no \"%s\" in %s", expected[i], header);
    compile_both(source, header);
}

static void generated_c_says_what_maps_need(void **state)
{
    (void)state;
    static const char ex[] = "CUDA 11.8 and later */\n    int (*cuLaunchKernelEx)";
    static const char encode[] = "CUDA 12.0 and later */\n    int (*cuTensorMapEncodeTiled)";
    static const char strides[] = "positive and below 2^40 bytes in q k v w g h,\n";
    tg_program maps = sample_program_maps(ptx), alone = maps, plain = sample_program(ptx);
    alone.kernels[0].cluster = 0;
    const struct {
        const tg_program *program;
        bool needs_ex, needs_encode;
    } rows[] = {{&maps, true, true}, {&alone, false, true}, {&plain, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *source, *header;
        assert_int_equal(tg_program_c(rows[i].program, "sample", &source, &header, NULL), TG_OK);
        const char *before_ex = strstr(header, ex), *before_encode = strstr(header, encode);
        assert_true(before_ex && before_encode);
        assert_int_equal(memcmp(before_ex - 6, "NULL: ", 6) != 0, rows[i].needs_ex);
        assert_int_equal(memcmp(before_encode - 6, "NULL: ", 6) != 0, rows[i].needs_encode);
        assert_int_equal(strstr(header, strides) != NULL, rows[i].needs_encode);
        compile_both(source, header);
    }
}

static void prefixes_are_identifiers(void **state)
{
    (void)state;
    const char *const wrong[] = {NULL, "", "9a", "a-b", "int", "ä"};
    tg_program p = sample_program(ptx);
    char *source, *header;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        LOG(log);
        assert_int_equal(tg_program_c(&p, wrong[i], &source, &header, &log_sink), TG_E_ARGUMENT);
        assert_says(&log, "TG0731 tg_program_c: name: expected a C identifier");
        assert_null(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bundle_reads_back_equal),
        cmocka_unit_test(every_kind_reads_back_equal),
        cmocka_unit_test(every_damaged_byte_is_found),
        cmocka_unit_test(sealed_damage_never_misleads),
        cmocka_unit_test(the_header_is_explained),
        cmocka_unit_test(counts_are_read_with_care),
        cmocka_unit_test(generated_c_compiles_without_warnings),
        cmocka_unit_test(generated_c_of_every_kind),
        cmocka_unit_test(generated_c_says_what_maps_need),
        cmocka_unit_test(prefixes_are_identifiers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
