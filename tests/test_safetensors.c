/* tests/test_safetensors.c
 * Malformed headers are data: tests/safetensors/<rule>.case. "expect:" is a part of the message,
 * "opens:" the number of tensors of a file that must open; "payload:" is the number of bytes after
 * the header; "length:" replaces the length field, "keep:" cuts the file to its first bytes; what
 * follows "header:" is the header, to its last newline and with it.
 *
 * Run from the root of the repository, or with the tests folder as the argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors.h"
#include "tests/usage.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *tests_folder = "tests";
static char scratch[256]; /* a folder of this run's own */

static const char *in_scratch(char path[512], const char *name)
{
    snprintf(path, 512, "%s/%s", scratch, name);
    return path;
}

static const char *in_tests(char path[512], const char *name)
{
    snprintf(path, 512, "%s/%s", tests_folder, name);
    return path;
}

static char *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    char *bytes = calloc(1, 1 << 20);
    *size = fread(bytes, 1, (1 << 20) - 1, file);
    fclose(file);
    return bytes;
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void assert_contains(const char *text, const char *part, const char *where)
{
    if (!strstr(text, part))
        fail_msg("%s: expected a message with\n  %s\nfound\n  %s", where, part, text);
}

/* ---- cases ---- */

struct test_case {
    char expect[300];
    long opens; /* -1: must not open */
    size_t payload;
    bool has_length;
    uint64_t length;
    bool is_cut;
    size_t keep;
    const char *header;
    size_t header_bytes;
};

/* True until the line before the header's text. */
static bool read_field(struct test_case *c, const char *line, const char *end)
{
    char text[300];
    snprintf(text, sizeof(text), "%.*s", (int)(end - line), line);
    const char *value = strchr(text, ' ');
    if (strncmp(text, "expect: ", 8) == 0) {
        snprintf(c->expect, sizeof(c->expect), "%s", text + 8);
    } else if (strncmp(text, "opens: ", 7) == 0) {
        c->opens = strtol(value, NULL, 10);
    } else if (strncmp(text, "payload: ", 9) == 0) {
        c->payload = (size_t)strtoull(value, NULL, 10);
    } else if (strncmp(text, "length: ", 8) == 0) {
        c->has_length = true;
        c->length = strtoull(value, NULL, 10);
    } else if (strncmp(text, "keep: ", 6) == 0) {
        c->is_cut = true;
        c->keep = (size_t)strtoull(value, NULL, 10);
    } else {
        return false;
    }
    return true;
}

static struct test_case read_case(const char *text, size_t size, const char *name)
{
    struct test_case c = {.opens = -1};
    const char *line = text;
    const char *end;
    while ((end = strchr(line, '\n')) && read_field(&c, line, end))
        line = end + 1;
    if (!end || strncmp(line, "header:\n", 8) != 0)
        fail_msg("%s: expected a field or header:, found %.40s", name, line);
    c.header = line + 8;
    c.header_bytes = size - (size_t)(c.header - text);
    if (!c.has_length)
        c.length = c.header_bytes;
    return c;
}

static unsigned char *build_file(const struct test_case *c, size_t *size)
{
    *size = 8 + c->header_bytes + c->payload;
    unsigned char *bytes = calloc(1, *size);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(c->length >> (8 * i));
    memcpy(bytes + 8, c->header, c->header_bytes);
    if (c->is_cut)
        *size = c->keep;
    return bytes;
}

static void check_answer(const struct test_case *c, struct st_file *file, const char *err, const char *name)
{
    if (c->opens < 0) {
        if (file)
            fail_msg("%s: expected \"%s\", found a file that opens", name, c->expect);
        assert_true(strlen(c->expect) > 0);
        assert_contains(err, c->expect, name);
    } else {
        if (!file)
            fail_msg("%s: expected %ld tensors, found \"%s\"", name, c->opens, err);
        assert_int_equal(st_count(file), c->opens);
        st_close(file);
    }
}

static void run_case(const char *name)
{
    char path[512];
    char inside[300];
    char err[512] = "";
    size_t text_bytes;
    size_t size;
    struct st_file *file;
    snprintf(inside, sizeof(inside), "safetensors/%s", name);
    char *text = read_all(in_tests(path, inside), &text_bytes);
    const struct test_case c = read_case(text, text_bytes, name);
    unsigned char *bytes = build_file(&c, &size);

    st_parse(bytes, size, &file, err, sizeof(err));
    check_answer(&c, file, err, name);

    write_bytes(in_scratch(path, "case"), bytes, size);
    st_open(path, &file, err, sizeof(err));
    if (!file)
        assert_contains(err, path, name);
    check_answer(&c, file, err, name);
    unlink(path);
    free(bytes);
    free(text);
}

static void test_cases(void **state)
{
    (void)state;
    char path[512];
    DIR *folder = opendir(in_tests(path, "safetensors"));
    if (!folder)
        fail_msg("cannot open %s", path);
    int n_cases = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        if (length > 5 && strcmp(entry->d_name + length - 5, ".case") == 0) {
            run_case(entry->d_name);
            n_cases++;
        }
    }
    closedir(folder);
    assert_true(n_cases >= 50);
}

static void test_header_over_limit(void **state)
{
    (void)state;
    const size_t size = 8 + 100000001;
    unsigned char *bytes = calloc(1, size);
    const uint64_t length = 100000001;
    memcpy(bytes, &length, 8);
    char err[256];
    struct st_file *file;
    assert_false(st_parse(bytes, size, &file, err, sizeof(err)));
    assert_string_equal(err, "header length: expected at most 100000000 bytes, found 100000001");
    free(bytes);
}

static void test_message_is_cut_to_its_buffer(void **state)
{
    (void)state;
    char err[6] = "12345";
    struct st_file *file;
    assert_false(st_parse("", 0, &file, err, 4));
    assert_string_equal(err, "the");
    assert_int_equal(err[4], '5');
    assert_false(st_parse("", 0, &file, NULL, 0));
    assert_null(file);
}

/* ---- files that cannot be opened ---- */

static void assert_open_fails(const char *path, const char *part)
{
    char err[1024];
    struct st_file *file;
    assert_false(st_open(path, &file, err, sizeof(err)));
    assert_null(file);
    assert_contains(err, path, "st_open");
    assert_contains(err, part, "st_open");
}

static void test_not_a_file(void **state)
{
    (void)state;
    char path[512];
    assert_open_fails(in_scratch(path, "absent"), "cannot open: No such file");
    assert_open_fails(scratch, "expected a file, found a directory");
    assert_open_fails("/dev/null", "expected a regular file, found a device");
    assert_int_equal(mkfifo(in_scratch(path, "pipe"), 0600), 0);
    assert_open_fails(path, "expected a regular file, found a device, pipe or socket");
    unlink(path);
}

static void test_no_permission(void **state)
{
    (void)state;
    char path[512];
    write_bytes(in_scratch(path, "secret"), "x", 1);
    assert_int_equal(chmod(path, 0), 0);
    bool is_root = geteuid() == 0; /* whom a mode of 0 does not stop */
    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    assert_open_fails(path, "cannot open: Permission denied");
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    unlink(path);
}

/* ---- golden files ---- */

static void test_golden(void **state)
{
    (void)state;
    char path[512];
    char err[256] = "";
    struct st_file *file;
    if (!st_open(in_tests(path, "data/mlstmsig_b.safetensors"), &file, err, sizeof(err)))
        fail_msg("%s", err);
    assert_int_equal(st_count(file), 16);
    assert_string_equal(st_at(file, 0)->name, "in.q");
    assert_string_equal(st_at(file, 15)->name, "grad.S0");
    assert_string_equal(st_meta(file, "variant"), "mlstmsig");
    assert_string_equal(st_meta(file, "scalars"), "{\"scale\": 0.1767766952966369}");
    assert_null(st_meta(file, "absent"));
    assert_null(st_find(file, "in.absent"));
    assert_null(st_find(file, "__metadata__"));

    const struct st_tensor *q = st_find(file, "in.q");
    const int64_t shape[4] = {1, 2, 150, 32};
    assert_int_equal(q->dtype, TG_NUM_BF16);
    assert_int_equal(q->rank, 4);
    assert_memory_equal(q->shape, shape, sizeof(shape));
    assert_int_equal(q->bytes, 19200);
    assert_int_equal(st_elements(q), 9600);
    const struct st_tensor *f = st_find(file, "in.f");
    assert_int_equal(f->dtype, TG_NUM_F32);
    assert_ptr_equal(f->data, (const char *)q->data + 57600);
    st_close(file);
}

static void test_every_data_file_opens(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t count;
        const char *T;
    } files[] = {
        {"data/mlstmsig_a.safetensors", 13, "192"},
        {"data/mlstmsig_x.safetensors", 16, "72"},
        {"data/mlstmsig_real.safetensors", 6, "300"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[512];
        char err[256] = "";
        struct st_file *file;
        if (!st_open(in_tests(path, files[i].name), &file, err, sizeof(err)))
            fail_msg("%s", err);
        assert_int_equal(st_count(file), files[i].count);
        assert_string_equal(st_meta(file, "T"), files[i].T);
        st_close(file);
    }
}

/* ---- writing ---- */

static const uint16_t words[3] = {1, 2, 0xffff};
static const float floats[4] = {0.5f, -1, 3e38f, 0};
static const double doubles[1] = {0.1};
static const int64_t longs[2] = {INT64_MIN, 7};
static const int32_t ints[1] = {-5};

static const struct st_tensor all_types[] = {
    {"in.q", TG_NUM_BF16, 2, {1, 3}, words, 6},
    {"half", TG_NUM_F16, 1, {3}, words, 6},
    {"in.f", TG_NUM_F32, 3, {2, 1, 2}, floats, 16},
    {"scalar", TG_NUM_F64, 0, {0}, doubles, 8},
    {"long", TG_NUM_I64, 8, {1, 1, 1, 1, 1, 1, 1, 2}, longs, 16},
    {"int \"quoted\" \xc3\xa9", TG_NUM_I32, 1, {1}, ints, 4},
    {"none", TG_NUM_F32, 2, {5, 0}, NULL, 0},
    {"", TG_NUM_F32, 1, {4}, floats, 16},
};
static const struct st_pair all_meta[] = {
    {"variant", "mlstmsig"},
    {"scalars", "{\"scale\": 0.125}"},
    {"empty", ""},
    {"two\nlines", "tab\t, \xc3\xa9"},
};
static const struct st_contents all_contents = {all_types, 8, all_meta, 4};

static void test_round_trip(void **state)
{
    (void)state;
    char path[512];
    char err[256] = "";
    struct st_file *file;
    if (!st_write(in_scratch(path, "all"), &all_contents, err, sizeof(err)) || !st_open(path, &file, err, sizeof(err)))
        fail_msg("%s", err);
    assert_int_equal(st_count(file), 8);
    for (size_t i = 0; i < 8; i++) {
        const struct st_tensor *in = &all_types[i];
        const struct st_tensor *out = st_at(file, i);
        assert_string_equal(out->name, in->name);
        assert_int_equal(out->dtype, in->dtype);
        assert_int_equal(out->rank, in->rank);
        if (in->rank > 0)
            assert_memory_equal(out->shape, in->shape, (size_t)in->rank * sizeof(int64_t));
        assert_int_equal(out->bytes, in->bytes);
        if (in->bytes > 0)
            assert_memory_equal(out->data, in->data, in->bytes);
        assert_int_equal((uintptr_t)out->data % tg_num_bytes(out->dtype), 0);
    }
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(st_meta(file, all_meta[i].key), all_meta[i].value);
    st_close(file);
    unlink(path);
}

/* The mapping of the old file outlives its replacement, so a file may be rewritten from itself. */
static void test_rewrite_from_itself(void **state)
{
    (void)state;
    char path[512];
    char err[256] = "";
    struct st_file *file;
    assert_true(st_write(in_scratch(path, "self"), &all_contents, err, sizeof(err)));
    assert_true(st_open(path, &file, err, sizeof(err)));
    const struct st_contents second = {st_find(file, "in.f"), 1, NULL, 0};
    assert_true(st_write(path, &second, err, sizeof(err)));
    assert_memory_equal(st_find(file, "in.f")->data, floats, sizeof(floats));
    st_close(file);
    assert_true(st_open(path, &file, err, sizeof(err)));
    assert_int_equal(st_count(file), 1);
    assert_memory_equal(st_at(file, 0)->data, floats, sizeof(floats));
    st_close(file);
    unlink(path);
}

/* Another implementation's golden file, read and written, reads the same. */
static void test_golden_round_trip(void **state)
{
    (void)state;
    char golden[512];
    char path[512];
    char err[256] = "";
    struct st_file *in;
    struct st_file *out;
    assert_true(st_open(in_tests(golden, "data/mlstmsig_x.safetensors"), &in, err, sizeof(err)));
    const struct st_pair meta = {"error_levels", st_meta(in, "error_levels")};
    const struct st_contents contents = {st_at(in, 0), st_count(in), &meta, 1};
    assert_true(st_write(in_scratch(path, "golden"), &contents, err, sizeof(err)));
    assert_true(st_open(path, &out, err, sizeof(err)));
    assert_string_equal(st_meta(out, "error_levels"), meta.value);
    assert_int_equal(st_count(out), st_count(in));
    for (size_t i = 0; i < st_count(in); i++) {
        assert_string_equal(st_at(out, i)->name, st_at(in, i)->name);
        assert_int_equal(st_at(out, i)->bytes, st_at(in, i)->bytes);
        assert_memory_equal(st_at(out, i)->data, st_at(in, i)->data, st_at(in, i)->bytes);
    }
    st_close(out);
    st_close(in);
    unlink(path);
}

/* Whatever the header's length, the data begin at a multiple of 8. */
static void test_header_is_padded(void **state)
{
    (void)state;
    char path[512];
    char err[256] = "";
    in_scratch(path, "padded");
    for (int n = 0; n < 8; n++) {
        struct st_file *file;
        const struct st_pair meta = {"key", &"12345678"[n]};
        const struct st_contents contents = {&all_types[3], 1, &meta, 1};
        assert_true(st_write(path, &contents, err, sizeof(err)));
        assert_true(st_open(path, &file, err, sizeof(err)));
        assert_int_equal((uintptr_t)st_at(file, 0)->data % 8, 0);
        assert_string_equal(st_meta(file, "key"), meta.value);
        st_close(file);
    }
    unlink(path);
}

static void test_write_nothing(void **state)
{
    (void)state;
    char path[512];
    char err[256] = "";
    struct st_file *file;
    const struct st_contents nothing = {0};
    assert_true(st_write(in_scratch(path, "nothing"), &nothing, err, sizeof(err)));
    assert_true(st_open(path, &file, err, sizeof(err)));
    assert_int_equal(st_count(file), 0);
    assert_null(st_meta(file, "x"));
    st_close(file);
    unlink(path);
}

static void test_write_refuses(void **state)
{
    (void)state;
    static const struct {
        struct st_tensor tensors[2];
        const char *expect;
    } rows[] = {
        {{{NULL, TG_NUM_F32, 1, {1}, floats, 4}}, "tensor 0: name: expected a string"},
        {{{"__metadata__", TG_NUM_F32, 1, {1}, floats, 4}}, "reserved by the format"},
        {{{"x", (tg_num_type)6, 1, {1}, floats, 4}}, "dtype: expected 0 to 5, found 6"},
        {{{"x", TG_NUM_F32, 9, {1}, floats, 4}}, "rank: expected 0 to 8, found 9"},
        {{{"x", TG_NUM_F32, -1, {1}, floats, 4}}, "rank: expected 0 to 8, found -1"},
        {{{"x", TG_NUM_F32, 2, {1, -1}, floats, 4}}, "shape[1]: expected 0 or more, found -1"},
        {{{"x", TG_NUM_F32, 2, {INT64_MAX, 2}, floats, 4}}, "has more than 2^63 bytes"},
        {{{"x", TG_NUM_F32, 1, {2}, floats, 4}}, "bytes: expected 8 for F32 [2], found 4"},
        {{{"x", TG_NUM_F32, 1, {1}, NULL, 4}}, "data: expected 4 bytes, found null"},
        {{{"x\xff", TG_NUM_F32, 1, {1}, floats, 4}}, "expected names and values in UTF-8"},
    };
    char path[512];
    char err[1024];
    in_scratch(path, "refused");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct st_contents contents = {rows[i].tensors, 1, NULL, 0};
        assert_false(st_write(path, &contents, err, sizeof(err)));
        assert_contains(err, rows[i].expect, "st_write");
        assert_int_not_equal(access(path, F_OK), 0);
    }
    const struct st_tensor twice[2] = {all_types[0], all_types[0]};
    const struct st_contents names = {twice, 2, NULL, 0};
    assert_false(st_write(path, &names, err, sizeof(err)));
    assert_contains(err, "tensor 'in.q': expected every name once", "st_write");
    const struct st_pair pairs[2] = {{"a", "1"}, {"a", "2"}};
    const struct st_contents keys = {all_types, 1, pairs, 2};
    assert_false(st_write(path, &keys, err, sizeof(err)));
    assert_contains(err, "metadata 'a': expected every name once", "st_write");
    const struct st_pair null_value = {"a", NULL};
    const struct st_contents nulls = {all_types, 1, &null_value, 1};
    assert_false(st_write(path, &nulls, err, sizeof(err)));
    assert_contains(err, "metadata 0: expected a key and a value", "st_write");
}

static int count_entries(const char *path)
{
    int n = 0;
    DIR *folder = opendir(path);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void assert_write_fails(const char *path, const char *part)
{
    char err[1024];
    int before = count_entries(scratch);
    assert_false(st_write(path, &all_contents, err, sizeof(err)));
    assert_contains(err, path, "st_write");
    assert_contains(err, part, "st_write");
    assert_int_equal(count_entries(scratch), before); /* nothing left behind */
}

static void test_failed_write_keeps_the_old_file(void **state)
{
    (void)state;
    char path[512];
    write_bytes(in_scratch(path, "old"), "old", 3);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit low = {100, limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_write_fails(path, "cannot write: File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    size_t size;
    char *bytes = read_all(path, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(bytes, "old", 3);
    free(bytes);
    unlink(path);
}

static void test_write_to_no_place(void **state)
{
    (void)state;
    char path[512];
    assert_write_fails(in_scratch(path, "absent/file"), "cannot write: No such file");
    assert_int_equal(mkdir(in_scratch(path, "folder"), 0700), 0);
    assert_write_fails(path, "cannot write: Is a directory");
    rmdir(path);
}

/* A pipe stands for what is no file: a device would be lost just so. */
static void test_what_is_no_file_stays(void **state)
{
    (void)state;
    char path[512];
    struct stat status;
    assert_int_equal(mkfifo(in_scratch(path, "pipe"), 0600), 0);
    assert_write_fails(path, "cannot write: it is there and no regular file");
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    unlink(path);
}

static void test_a_link_stays(void **state)
{
    (void)state;
    char path[512], real[512], err[256];
    struct stat status;
    write_bytes(in_scratch(real, "real"), "old", 3);
    assert_int_equal(symlink("real", in_scratch(path, "link")), 0);
    assert_true(st_write(path, &all_contents, err, sizeof(err)));
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(lstat(real, &status), 0);
    assert_true(S_ISREG(status.st_mode) && status.st_size > 3);
    unlink(path);
    unlink(real);
}

static void test_written_mode_follows_umask(void **state)
{
    (void)state;
    char path[512];
    char err[256];
    struct stat status;
    mode_t before = umask(027);
    assert_true(st_write(in_scratch(path, "mode"), &all_contents, err, sizeof(err)));
    umask(before);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    unlink(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_header_over_limit),
        cmocka_unit_test(test_message_is_cut_to_its_buffer),
        cmocka_unit_test(test_not_a_file),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_every_data_file_opens),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_rewrite_from_itself),
        cmocka_unit_test(test_golden_round_trip),
        cmocka_unit_test(test_header_is_padded),
        cmocka_unit_test(test_write_nothing),
        cmocka_unit_test(test_write_refuses),
        cmocka_unit_test(test_failed_write_keeps_the_old_file),
        cmocka_unit_test(test_write_to_no_place),
        cmocka_unit_test(test_what_is_no_file_stays),
        cmocka_unit_test(test_a_link_stays),
        cmocka_unit_test(test_written_mode_follows_umask),
    };
    if (!usage_is(argc, argv, 0, 1, "[TESTS_FOLDER]"))
        return 2;
    if (argc > 1)
        tests_folder = argv[1];
    const char *temporary = getenv("TMPDIR");
    snprintf(scratch, sizeof(scratch), "%s/tegula_safetensors_XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(scratch)) {
        perror(scratch);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(scratch);
    return failed;
}
