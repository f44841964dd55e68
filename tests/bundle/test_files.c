/* tests/bundle/test_files.c - wisdom: damage, concurrency, locks, links, nearest shapes. */
#include "tests/bundle/files.h"
#include "tests/usage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static char path[64]; /* of the wisdom file */

static int setup_path(void **state)
{
    const int result = setup(state);
    snprintf(path, sizeof path, "%s/a/b/wisdom", folder);
    return result;
}

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

static void a_lock_that_is_never_given_back_is_an_error(void **state)
{
    (void)state;
    char name[100];
    LOG(log);
    const tg_wisdom w = sample_wisdom(64);
    assert_int_equal(tg_wisdom_add(path, &w, NULL), TG_OK);
    snprintf(name, sizeof name, "%s.lock", path);
    const int lock = open(name, O_RDWR);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_int_equal(tg_wisdom_add(path, &w, &log_sink), TG_E_FILE);
    assert_non_null(strstr(log.text, "another process has held it"));
    close(lock);
    assert_int_equal(tg_wisdom_add(path, &w, NULL), TG_OK);
}

static void what_a_link_leads_to_is_replaced(void **state)
{
    (void)state;
    char real[100], bytes[4096];
    struct stat info;
    const tg_wisdom first = sample_wisdom(64), second = sample_wisdom(128);
    snprintf(real, sizeof real, "%s/real", folder);
    assert_int_equal(tg_wisdom_add(path, &first, NULL), TG_OK);
    assert_int_equal(rename(path, real), 0);
    assert_int_equal(symlink(real, path), 0);
    assert_int_equal(tg_wisdom_add(path, &second, NULL), TG_OK);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    slurp(real, bytes, sizeof bytes);
    assert_non_null(strstr(bytes, "T 64 "));
    assert_non_null(strstr(bytes, "T 128 "));
}

static void a_fifo_is_no_wisdom(void **state)
{
    (void)state;
    int is_found;
    tg_wisdom wanted = sample_wisdom(64), found;
    LOG(log);
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(tg_wisdom_find(path, &wanted, &found, &is_found, &log_sink), TG_E_FILE);
    assert_non_null(strstr(log.text, "expected a regular file"));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_path, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lookup_finds_the_nearest_shape),
        TEST(adding_replaces_the_same_shape),
        TEST(damaged_lines_are_left_out),
        TEST(a_text_in_memory_is_read_like_a_file),
        TEST(a_file_of_another_version_is_not_touched),
        TEST(entries_that_would_not_read_back_are_refused),
        TEST(two_writers_lose_nothing),
        TEST(a_lock_that_is_never_given_back_is_an_error),
        TEST(what_a_link_leads_to_is_replaced),
        TEST(a_fifo_is_no_wisdom),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
