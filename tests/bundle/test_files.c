/* tests/bundle/test_files.c - cache and wisdom: damage, concurrency, nearest shapes. */
#include "runtime/runtime.h"
#include "tests/bundle/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const char ptx[] = ".version 7.0\n";

struct log {
    char text[4096];
    int n_warnings, n_errors;
};

static void remember(void *user, const tg_diag *diag)
{
    struct log *log = user;
    size_t used = strlen(log->text);
    snprintf(log->text + used, sizeof log->text - used, "%s %s\n", diag->code, diag->message);
    log->n_warnings += diag->severity == TG_WARNING;
    log->n_errors += diag->severity == TG_ERROR;
}

#define LOG(name)                                                                                                      \
    struct log name = {0};                                                                                             \
    const tg_sink name##_sink = {remember, &name}

static char folder[] = "/tmp/tegula-files-XXXXXX";
static char path[64]; /* of the wisdom file */

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tegula-files-XXXXXX");
    snprintf(path, sizeof path, "%s/a/b/wisdom", mkdtemp(folder) ? folder : "");
    return folder[0] ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void overwrite(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static size_t slurp(const char *name, char *bytes, size_t capacity)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, capacity - 1, file);
    bytes[n] = '\0';
    fclose(file);
    return n;
}

/* ---- cache ---- */

/* The one file of the cache. */
static void cached_file(char *name, size_t capacity)
{
    char command[100];
    snprintf(command, sizeof command, "ls %s/cache/*", folder);
    FILE *list = popen(command, "r");
    assert_non_null(fgets(name, (int)capacity, list));
    name[strcspn(name, "\n")] = '\0';
    assert_int_equal(fgetc(list), EOF); /* and no temporary ones */
    pclose(list);
}

static void a_damaged_cache_file_is_missing(void **state)
{
    (void)state;
    char directory[64], file[200], bytes[4096];
    snprintf(directory, sizeof directory, "%s/cache", folder);
    tg_program p = sample_program(ptx), *read = &p;
    assert_int_equal(tg_cache_get(directory, "key", &read, NULL), TG_OK);
    assert_null(read);
    assert_int_equal(tg_cache_put(directory, "key", &p, NULL), TG_OK);
    assert_int_equal(tg_cache_put(directory, "key", &p, NULL), TG_OK);
    assert_int_equal(tg_cache_get(directory, "key", &read, NULL), TG_OK);
    assert_string_equal(read->variant, "mlstm-sig");
    tg_program_free(read);
    assert_int_equal(tg_cache_get(directory, "another key", &read, NULL), TG_OK);
    assert_null(read);

    cached_file(file, sizeof file);
    size_t size = slurp(file, bytes, sizeof bytes);
    const size_t cuts[] = {0, 1, 30, size / 2, size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        LOG(log);
        overwrite(file, bytes, cuts[i]);
        assert_int_equal(tg_cache_get(directory, "key", &read, &log_sink), TG_OK);
        assert_null(read);
        assert_int_equal(log.n_warnings, 1);
        assert_int_equal(log.n_errors, 0);
        assert_non_null(strstr(log.text, "TG0832 cache file ignored: bundle: "));
    }
    assert_int_equal(tg_cache_put(directory, "key", &p, NULL), TG_OK);
    assert_int_equal(tg_cache_get(directory, "key", &read, NULL), TG_OK);
    assert_non_null(read);
    tg_program_free(read);
}

static void an_impossible_cache_is_an_error(void **state)
{
    (void)state;
    char file[64];
    tg_program p = sample_program(ptx), *read;
    LOG(log);
    snprintf(file, sizeof file, "%s/file", folder);
    overwrite(file, "", 0);
    assert_int_equal(tg_cache_put(file, "key", &p, &log_sink), TG_E_FILE);
    assert_non_null(strstr(log.text, "TG0831 cannot write "));
    assert_int_equal(tg_cache_get(file, "key", &read, &log_sink), TG_E_FILE);
    assert_int_equal(tg_cache_get("", "key", &read, NULL), TG_E_ARGUMENT);
    assert_int_equal(tg_cache_get(folder, NULL, &read, NULL), TG_E_ARGUMENT);
}

/* Readers and writers at once: a reader sees a whole program or none. */
static void the_cache_survives_concurrent_writers(void **state)
{
    (void)state;
    char directory[64];
    snprintf(directory, sizeof directory, "%s/cache", folder);
    pid_t child = fork();
    for (uint32_t i = 0; i < 200; i++) {
        tg_program p = sample_program(ptx), *read;
        LOG(log);
        p.kernels[0].registers = i;
        bool ok = tg_cache_put(directory, "key", &p, &log_sink) == TG_OK &&
                  tg_cache_get(directory, "key", &read, &log_sink) == TG_OK && read && !log.n_warnings;
        if (child == 0 && (!ok || i == 199))
            _exit(!ok);
        assert_true(ok);
        tg_program_free(read);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

/* ---- wisdom ---- */

static tg_wisdom sample_wisdom(int64_t tokens)
{
    return (tg_wisdom){.variant = "mlstm-sig",
                       .device = "NVIDIA H200",
                       .dtype = "bf16",
                       .cc = 90,
                       .dqk = 128,
                       .dhv = 256,
                       .batch = 4,
                       .heads = 16,
                       .tokens = tokens,
                       .schedule = "walk stages=3 lhq=64",
                       .chunk = 64,
                       .milliseconds = 0.431234};
}

static void lookup_finds_the_nearest_shape(void **state)
{
    (void)state;
    tg_wisdom wanted = sample_wisdom(8192), found;
    int is_found = 1;
    assert_int_equal(tg_wisdom_find(path, &wanted, &found, &is_found, NULL), TG_OK);
    assert_false(is_found);
    const int64_t lengths[] = {1024, 8192, 65536};
    for (int i = 0; i < 3; i++) {
        tg_wisdom w = sample_wisdom(lengths[i]);
        assert_int_equal(tg_wisdom_add(path, &w, NULL), TG_OK);
    }
    const struct {
        int64_t tokens, batch, expected;
    } rows[] = {{1024, 4, 1024}, {2000, 4, 1024}, {4000, 4, 8192}, {1000000, 1, 65536}, {20000, 64, 8192}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wanted.tokens = rows[i].tokens;
        wanted.batch = rows[i].batch;
        assert_int_equal(tg_wisdom_find(path, &wanted, &found, &is_found, NULL), TG_OK);
        assert_true(is_found);
        assert_int_equal(found.tokens, rows[i].expected);
    }
    tg_wisdom expected = sample_wisdom(8192);
    assert_string_equal(found.device, expected.device);
    assert_string_equal(found.schedule, expected.schedule);
    assert_int_equal(found.chunk, expected.chunk);
    assert_true(found.milliseconds == expected.milliseconds);
    wanted.dhv = 128;
    assert_int_equal(tg_wisdom_find(path, &wanted, &found, &is_found, NULL), TG_OK);
    assert_false(is_found);
}

static void adding_replaces_the_same_shape(void **state)
{
    (void)state;
    char text[2048];
    tg_wisdom w = sample_wisdom(8192);
    assert_int_equal(tg_wisdom_add(path, &w, NULL), TG_OK);
    w.milliseconds = 0.25;
    strcpy(w.schedule, "other");
    assert_int_equal(tg_wisdom_add(path, &w, NULL), TG_OK);
    slurp(path, text, sizeof text);
    assert_string_equal(text, "tegula-wisdom 1\nmlstm-sig | NVIDIA H200 | 90 bf16 | dqk 128 dhv 256 | "
                              "B 4 NH 16 T 8192 | other | L 64 | 250000 ns\n");
}

static void damaged_lines_are_left_out(void **state)
{
    (void)state;
    static const char good[] = "v | d | 90 bf16 | dqk 16 dhv 16 | B 1 NH 1 T 64 | s | L 64 | 1000 ns";
    char text[8192] = "tegula-wisdom 1\n# by hand\n\n", line[sizeof good];
    int n_damaged = 0;
    for (size_t cut = 1; cut < sizeof good - 1; cut += 3, n_damaged++) { /* cut short */
        memcpy(line, good, cut);
        line[cut] = '\0';
        strcat(strcat(text, line), "\n");
    }
    const char *const wrong[] = {
        "v | d | 90 bf16 | dqk 16 dhv 16 | B 1 NH 1 T 64 | s | L 64 | 1000 ns tail",
        "v | d | 90 bf16 | dqk 16 dhv 16 | B 0 NH 1 T 64 | s | L 64 | 1000 ns",
        "v | d | 90 bf16 | dqk 16 dhv 16 | B 1 NH 1 T 99999999999999999999 | s | L 64 | 1000 ns",
        "v | d | 90 bf16 | dqk 16 dhv 16 | B 1 NH 1 T 64 | s | L 64 | -5 ns",
        "v | d | 90 bf16 | dqk 16 dhv 16 | B 1 NH 1 T 64 |  | L 64 | 1000 ns",
        "a name that is longer than the field has room for | d | 90 bf16 | dqk 16 dhv 16 | B 1 NH "
        "1 T 64 "
        "| s | L 64 | 1000 ns",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++, n_damaged++)
        strcat(strcat(text, wrong[i]), "\n");
    strcat(text, good); /* no newline at the end of the file */
    tg_wisdom w = sample_wisdom(64),
              wanted = {.variant = "v",
                        .device = "d",
                        .dtype = "bf16",
                        .cc = 90,
                        .dqk = 16,
                        .dhv = 16,
                        .batch = 1,
                        .heads = 1,
                        .tokens = 64},
              found;
    assert_int_equal(tg_wisdom_add(path, &w, NULL), TG_OK); /* makes the folders */
    overwrite(path, text, strlen(text));
    int is_found;
    LOG(log);
    assert_int_equal(tg_wisdom_find(path, &wanted, &found, &is_found, &log_sink), TG_OK);
    assert_true(is_found);
    assert_int_equal(log.n_warnings, n_damaged);
    assert_non_null(strstr(log.text, ":4: a damaged line is left out"));
    assert_int_equal(tg_wisdom_add(path, &w, NULL), TG_OK);
    slurp(path, text, sizeof text);
    snprintf(line, sizeof line, "%s", good);
    assert_non_null(strstr(text, "# by hand\n\n"));
    assert_non_null(strstr(text, line));
    LOG(clean);
    assert_int_equal(tg_wisdom_find(path, &wanted, &found, &is_found, &clean_sink), TG_OK);
    assert_true(is_found && clean.n_warnings == 0);
}

static void count_entry(void *user, const tg_wisdom *entry)
{
    assert_string_equal(entry->device, "NVIDIA H200");
    ++*(int *)user;
}

static void a_text_in_memory_is_read_like_a_file(void **state)
{
    (void)state;
    static const char text[] =
        "tegula-wisdom 1\n# from somewhere\n"
        "mlstm-sig | NVIDIA H200 | 90 bf16 | dqk 128 dhv 256 | B 4 NH 16 T 1024 | a | L 64 | 7 ns\n"
        "no entry\n"
        "mlstm-sig | NVIDIA H200 | 90 bf16 | dqk 128 dhv 256 | B 4 NH 16 T 9000 | b | L 64 | 9 ns";
    tg_wisdom wanted = sample_wisdom(8192), found;
    int is_found = 0, n = 0;
    LOG(log);
    assert_int_equal(tg_wisdom_find_in(text, "mine", &wanted, &found, &is_found, &log_sink), TG_OK);
    assert_true(is_found);
    assert_string_equal(found.schedule, "b");
    assert_int_equal(log.n_warnings, 1);
    assert_non_null(strstr(log.text, "mine:4: a damaged line is left out"));
    assert_int_equal(tg_wisdom_each(text, "mine", count_entry, &n, NULL), TG_OK);
    assert_int_equal(n, 2);
    wanted.cc = 80;
    assert_int_equal(tg_wisdom_find_in(text, "mine", &wanted, &found, &is_found, NULL), TG_OK);
    assert_false(is_found);
    LOG(other);
    wanted.cc = 90;
    assert_int_equal(tg_wisdom_find_in("", "mine", &wanted, &found, &is_found, &other_sink), TG_OK);
    assert_true(!is_found && other.n_warnings == 1);
    assert_int_equal(tg_wisdom_find_in(NULL, "mine", &wanted, &found, &is_found, NULL), TG_E_ARGUMENT);
}

static void a_file_of_another_version_is_not_touched(void **state)
{
    (void)state;
    static const char newer[] = "tegula-wisdom 2\nwhatever\n";
    char text[100];
    tg_wisdom w = sample_wisdom(64), found;
    int is_found;
    assert_int_equal(tg_wisdom_add(path, &w, NULL), TG_OK);
    overwrite(path, newer, strlen(newer));
    LOG(log);
    assert_int_equal(tg_wisdom_find(path, &w, &found, &is_found, &log_sink), TG_OK);
    assert_false(is_found);
    assert_int_equal(log.n_warnings, 1);
    assert_int_equal(tg_wisdom_add(path, &w, &log_sink), TG_E_FORMAT);
    assert_non_null(strstr(log.text, "expected the first line \"tegula-wisdom 1\", found \"tegula-wisdom 2\""));
    slurp(path, text, sizeof text);
    assert_string_equal(text, newer);
}

static void entries_that_would_not_read_back_are_refused(void **state)
{
    (void)state;
    LOG(log);
    tg_wisdom w = sample_wisdom(64);
    strcpy(w.schedule, "a | b");
    assert_int_equal(tg_wisdom_add(path, &w, &log_sink), TG_E_ARGUMENT);
    assert_non_null(strstr(log.text, "TG0843 wisdom: schedule: expected"));
    w = sample_wisdom(0);
    assert_int_equal(tg_wisdom_add(path, &w, &log_sink), TG_E_ARGUMENT);
    w = sample_wisdom(64);
    w.milliseconds = 0.0 / (double)(w.chunk - 64);
    assert_int_equal(tg_wisdom_add(path, &w, &log_sink), TG_E_ARGUMENT);
    strcpy(w.device, "two\nlines");
    assert_int_equal(tg_wisdom_add(path, &w, &log_sink), TG_E_ARGUMENT);
}

static void two_writers_lose_nothing(void **state)
{
    (void)state;
    enum { N = 60 };
    pid_t child = fork();
    for (int i = 0; i < N; i++) {
        tg_wisdom w = sample_wisdom(1 + 2 * i + (child == 0));
        tg_status status = tg_wisdom_add(path, &w, NULL);
        if (child == 0 && (status != TG_OK || i == N - 1))
            _exit(status != TG_OK);
        assert_int_equal(status, TG_OK);
    }
    int result, is_found;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    for (int64_t tokens = 1; tokens <= 2 * N; tokens++) {
        tg_wisdom wanted = sample_wisdom(tokens), found;
        LOG(log);
        assert_int_equal(tg_wisdom_find(path, &wanted, &found, &is_found, &log_sink), TG_OK);
        assert_int_equal(found.tokens, tokens);
        assert_int_equal(log.n_warnings, 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_damaged_cache_file_is_missing),
        TEST(an_impossible_cache_is_an_error),
        TEST(the_cache_survives_concurrent_writers),
        TEST(lookup_finds_the_nearest_shape),
        TEST(adding_replaces_the_same_shape),
        TEST(damaged_lines_are_left_out),
        TEST(a_text_in_memory_is_read_like_a_file),
        TEST(a_file_of_another_version_is_not_touched),
        TEST(entries_that_would_not_read_back_are_refused),
        TEST(two_writers_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
