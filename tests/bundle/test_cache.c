/* tests/bundle/test_cache.c - compiled programs on disk: damage, foreign and strange files, concurrency, room. */
#include "tests/bundle/files.h"
#include "tests/bundle/sample.h"
#include "tests/usage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

static const char ptx[] = ".version 7.0\n";

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
        assert_non_null(strstr(log.text, "TG0832 cache file ignored: "));
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
    assert_int_equal(tg_cache_get(file, "key", &read, &log_sink), TG_OK); /* as good as missing */
    assert_null(read);
    assert_int_equal(log.n_warnings, 1);
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

/* Makes an entry and gives its path. */
static void put_entry(char *name, size_t capacity)
{
    char directory[64];
    tg_program p = sample_program(ptx);
    snprintf(directory, sizeof directory, "%s/cache", folder);
    assert_int_equal(tg_cache_put(directory, "key", &p, NULL), TG_OK);
    cached_file(name, capacity);
}

/* The entry of "key" is not taken, with this reason. */
static void expect_ignored(const char *reason)
{
    char directory[64];
    tg_program *read;
    LOG(log);
    snprintf(directory, sizeof directory, "%s/cache", folder);
    assert_int_equal(tg_cache_get(directory, "key", &read, &log_sink), TG_OK);
    assert_null(read);
    assert_int_equal(log.n_warnings, 1);
    if (!strstr(log.text, reason))
        fail_msg("expected \"%s\" in: %s", reason, log.text);
}

static void an_entry_of_another_key_is_ignored(void **state)
{
    (void)state;
    char directory[64], mine[200], other[200], bytes[4096];
    tg_program p = sample_program(ptx);
    put_entry(mine, sizeof mine);
    assert_int_equal(remove(mine), 0);
    snprintf(directory, sizeof directory, "%s/cache", folder);
    assert_int_equal(tg_cache_put(directory, "another key", &p, NULL), TG_OK);
    cached_file(other, sizeof other);
    overwrite(mine, bytes, slurp(other, bytes, sizeof bytes));
    assert_int_equal(chmod(mine, 0600), 0);
    expect_ignored("expected an entry of this key");
}

static void what_others_may_write_is_not_executed(void **state)
{
    (void)state;
    char name[200];
    struct stat info;
    put_entry(name, sizeof name);
    assert_int_equal(stat(name, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(chmod(name, 0620), 0);
    expect_ignored("others may write");
    assert_int_equal(chmod(name, 0602), 0);
    expect_ignored("others may write");
    if (geteuid() != 0 || chown(name, 65534, (gid_t)-1) != 0 || chmod(name, 0600) != 0)
        return; /* only root can give a file away */
    expect_ignored("somebody else owns");
}

static void what_is_no_file_is_ignored(void **state)
{
    (void)state;
    char name[200];
    put_entry(name, sizeof name);
    assert_int_equal(remove(name), 0);
    assert_int_equal(mkfifo(name, 0600), 0);
    expect_ignored("expected a regular file");
    assert_int_equal(remove(name), 0);
    assert_int_equal(mkdir(name, 0700), 0);
    expect_ignored("expected a regular file");
    assert_int_equal(remove(name), 0);
    overwrite(name, "", 0);
    assert_int_equal(chmod(name, 0600), 0);
    assert_int_equal(truncate(name, (off_t)20 << 30), 0); /* takes no room */
    expect_ignored("expected at most 268435456 bytes, found 21474836480");
}

static void make_old(const char *name, off_t size, time_t age)
{
    const struct timespec times[2] = {{time(NULL) - age, 0}, {time(NULL) - age, 0}};
    overwrite(name, "", 0);
    assert_int_equal(truncate(name, size), 0);
    assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

static bool exists(const char *name)
{
    struct stat info;
    return lstat(name, &info) == 0;
}

/* Of more than 1 GiB those go that were not read for longest; so does what a writer that died has left; nothing else. */
static void the_cache_keeps_within_its_room(void **state)
{
    (void)state;
    const off_t mebi = 1 << 20;
    char mine[200], oldest[100], older[100], left[100], fresh[100], foreign[100];
    put_entry(mine, sizeof mine);
    snprintf(oldest, sizeof oldest, "%s/cache/%032d.tgc", folder, 1);
    snprintf(older, sizeof older, "%s/cache/%032d.tgc", folder, 2);
    snprintf(left, sizeof left, "%s/cache/%032d.tgc.abcdef", folder, 3);
    snprintf(fresh, sizeof fresh, "%s/cache/%032d.tgc.ghijkl", folder, 3);
    snprintf(foreign, sizeof foreign, "%s/cache/precious", folder);
    make_old(oldest, 500 * mebi, 3000);
    make_old(older, 500 * mebi, 2000);
    make_old(left, 1, 4000);
    make_old(fresh, 1, 10);
    make_old(foreign, 500 * mebi, 9000);
    tg_program p = sample_program(ptx), *read;
    char directory[64];
    snprintf(directory, sizeof directory, "%s/cache", folder);
    assert_int_equal(tg_cache_put(directory, "another key", &p, NULL), TG_OK);
    assert_true(exists(oldest) && exists(older)); /* 1000 MiB */
    assert_false(exists(left));
    make_old(older, 600 * mebi, 2000);
    assert_int_equal(tg_cache_put(directory, "a third key", &p, NULL), TG_OK);
    assert_false(exists(oldest));
    assert_true(exists(older) && exists(fresh) && exists(foreign) && exists(mine));
    assert_int_equal(tg_cache_get(directory, "key", &read, NULL), TG_OK);
    assert_non_null(read);
    tg_program_free(read);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_damaged_cache_file_is_missing),       TEST(an_impossible_cache_is_an_error),
        TEST(the_cache_survives_concurrent_writers), TEST(an_entry_of_another_key_is_ignored),
        TEST(what_others_may_write_is_not_executed), TEST(what_is_no_file_is_ignored),
        TEST(the_cache_keeps_within_its_room),
    };
    if (!usage_is(argc, argv, 0, 0, ""))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
