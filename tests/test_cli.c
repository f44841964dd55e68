/* tests/test_cli.c - runs the command on the cases in tests/cli/ and compares what it says.
 *
 *   test_cli TEGULA DATA_FOLDER FILE.t...
 *
 * A file holds cases; a line that begins with "-- " opens a part:
 *   -- case WHAT              a new case; what comes before the first is a comment
 *   -- tensors NAME           makes a safetensors file: lines "name DTYPE 1,2,64,32" and "meta key
 * value"
 *   -- text NAME              makes a file of these lines
 *   -- program NAME           the same, to be executed; no other programs are found
 *   -- pipe NAME              makes a pipe with a name, which nobody writes to
 *   -- args                   one line, split at spaces; "..." keeps spaces; $DATA and $TMP are
 * replaced
 *   -- full                   there is no room for what it prints
 *   -- terminal N [any]       it prints, all to stdout, on a terminal of N columns; no line may be wider than
 * these or than 100, unless any may
 *   -- exit N                 the exit status
 *   -- stderr, -- stdout      every line must be part of that output; "! line" must not
 *   -- file NAME              the same of a file that is there afterwards
 * Each case runs in an empty folder of its own, with its caches there. */
#include "tuning/numbers.h"
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_FILES = 2, MAX_ARGS = 40, MAX_LINES = 32, MAX_TENSORS = 16, LINE = 1024, OUTPUT = 1 << 20 };

struct expectation {
    char lines[MAX_LINES][LINE];
    int n;
};

struct test {
    char name[LINE];
    char args[LINE];
    bool is_full;
    int columns; /* of a terminal; 0: into files */
    char any[8]; /* width that lines have */
    int exit_code;
    struct expectation out, err, files[MAX_FILES];
    char file_names[MAX_FILES][64];
    int n_files;
};

struct maker {
    char path[LINE];
    struct st_tensor tensors[MAX_TENSORS];
    char names[MAX_TENSORS][64];
    size_t n_tensors;
    char keys[MAX_LINES][64], values[MAX_LINES][LINE];
    size_t n_meta;
};

static char tegula[4096], data[4096], library[4200], folder[4096];
static int n_run, n_failed;
static double seconds; /* of processors, that the command took */

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "test_cli: %s: %s\n", what, detail);
    exit(2);
}

/* ---- files a case brings along ---- */

static void add_tensor(struct maker *maker, const char *line)
{
    char type[16], shape[128];
    struct st_tensor *tensor = &maker->tensors[maker->n_tensors];
    char *name = maker->names[maker->n_tensors];
    if (maker->n_tensors == MAX_TENSORS || sscanf(line, "%63s %15s %127s", name, type, shape) != 3)
        die("not a tensor", line);
    *tensor = (struct st_tensor){.name = name};
    while (tensor->dtype < TG_N_NUM_TYPES && strcmp(tg_num_name(tensor->dtype), type) != 0)
        tensor->dtype++;
    if (tensor->dtype == TG_N_NUM_TYPES)
        die("not a type", line);
    for (char *at = strtok(shape, ","); at && tensor->rank < ST_MAX_RANK; at = strtok(NULL, ","))
        tensor->shape[tensor->rank++] = atoll(at);
    size_t n = (size_t)st_elements(tensor);
    tensor->bytes = n * tg_num_bytes(tensor->dtype);
    void *numbers = calloc(tensor->bytes + 1, 1);
    if (!numbers)
        die("no memory", line);
    if (tensor->dtype < TG_NUM_I32)
        tg_num_fill_normal((tg_array){numbers, tensor->dtype, n}, (tg_random){1, tg_num_stream(name)}, 0, 1);
    tensor->data = numbers;
    maker->n_tensors++;
}

static void add_meta(struct maker *maker, const char *line)
{
    if (maker->n_meta == MAX_LINES ||
        sscanf(line, "meta %63s %1023[^\n]", maker->keys[maker->n_meta], maker->values[maker->n_meta]) != 2)
        die("not metadata", line);
    maker->n_meta++;
}

static void make_file(struct maker *maker)
{
    struct st_pair meta[MAX_LINES];
    char error[512];
    if (!*maker->path)
        return;
    for (size_t i = 0; i < maker->n_meta; i++)
        meta[i] = (struct st_pair){maker->keys[i], maker->values[i]};
    const struct st_contents contents = {maker->tensors, maker->n_tensors, meta, maker->n_meta};
    if (!st_write(maker->path, &contents, error, sizeof error))
        die("cannot make a file", error);
    for (size_t i = 0; i < maker->n_tensors; i++)
        free((void *)(uintptr_t)maker->tensors[i].data);
    *maker = (struct maker){.path = ""};
}

/* ---- running ---- */

static void replace_variables(const char *from, char *to, size_t size)
{
    size_t n = 0;
    while (*from && n + 1 < size) {
        const char *value = strncmp(from, "$DATA", 5) == 0 ? data : strncmp(from, "$LIB", 4) == 0 ? library : NULL;
        if (value) {
            n += (size_t)snprintf(to + n, size - n, "%s", value);
            from += value == data ? 5 : 4;
        } else {
            to[n++] = *from++;
        }
    }
    to[n < size ? n : size - 1] = '\0';
}

static void split(char *text, char *argv[MAX_ARGS + 2])
{
    int n = 1;
    argv[0] = tegula;
    for (;;) {
        text += strspn(text, " ");
        if (!*text || n == MAX_ARGS)
            break;
        char end = *text == '"' ? '"' : ' ';
        text += end == '"';
        argv[n++] = text;
        text = strchr(text, end);
        if (!text)
            break;
        *text++ = '\0';
    }
    argv[n] = NULL;
}

/* What a terminal shows, until nobody writes to it. */
static void record(int terminal)
{
    char path[4200], bytes[4096];
    snprintf(path, sizeof path, "%s/stdout.txt", folder);
    FILE *file = fopen(path, "w");
    for (ssize_t n; file && (n = read(terminal, bytes, sizeof bytes)) > 0;)
        fwrite(bytes, 1, (size_t)n, file);
    if (file)
        fclose(file);
    close(terminal);
}

static bool redirect(const char *output, int terminal)
{
    if (terminal >= 0)
        return dup2(terminal, STDOUT_FILENO) >= 0 && dup2(terminal, STDERR_FILENO) >= 0;
    return freopen(output, "w", stdout) && freopen("stderr.txt", "w", stderr);
}

static int run_command(const char *args, const char *output, int columns)
{
    char text[4 * LINE], *argv[MAX_ARGS + 2], path[2 * 4096];
    const char *kept = getenv("TEGULA_KEPT"); /* programs that ./dev test puts before others */
    snprintf(path, sizeof path, "%s%s%s", folder, kept ? ":" : "", kept ? kept : "");
    replace_variables(args, text, sizeof text);
    split(text, argv);
    int ours = -1, its = -1;
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    if (columns && openpty(&ours, &its, NULL, NULL, &size) != 0)
        die("openpty", strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        die("fork", strerror(errno));
    if (child == 0) {
        if (chdir(folder) != 0 || !redirect(output, its))
            _exit(126);
        setenv("XDG_CACHE_HOME", folder, 1);
        setenv("HOME", folder, 1);
        setenv("PATH", path, 1);
        execv(tegula, argv);
        _exit(127);
    }
    if (columns) {
        close(its);
        record(ours);
    }
    int status;
    struct rusage used;
    wait4(child, &status, 0, &used);
    seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
              1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *read_output(const char *name)
{
    char path[4200];
    static char text[OUTPUT];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = '\0';
    if (file)
        fclose(file);
    return text;
}

static bool compare(const struct expectation *expected, const char *name, const char *label)
{
    const char *text = read_output(name);
    bool ok = true;
    for (int i = 0; i < expected->n; i++) {
        const char *line = expected->lines[i];
        bool is_unwanted = strncmp(line, "! ", 2) == 0;
        bool is_there = strstr(text, is_unwanted ? line + 2 : line) != NULL;
        if (is_there != is_unwanted)
            continue;
        fprintf(stderr, "  %s %s: %s\n", label, is_unwanted ? "has" : "lacks", is_unwanted ? line + 2 : line);
        ok = false;
    }
    if (!ok)
        fprintf(stderr, "  it is:\n%.4000s", text);
    return ok;
}

/* A character of UTF-8 is a column; what clears a line is none. */
static bool is_narrow(const char *text, int columns)
{
    bool ok = true;
    columns = columns < 100 ? columns : 100;
    for (const char *line = text; *line;) {
        if (strncmp(line, "\033[K", 3) == 0)
            line += 3;
        const size_t bytes = strcspn(line, "\r\n");
        int width = 0;
        for (size_t i = 0; i < bytes; i++)
            width += ((unsigned char)line[i] & 0xc0) != 0x80;
        if (width > columns)
            fprintf(stderr, "  %d columns, expected at most %d: %.*s\n", width, columns, (int)bytes, line);
        ok &= width <= columns;
        line += bytes + (line[bytes] != '\0');
    }
    return ok;
}

static void run_test(const char *file, struct test *test, struct maker *maker)
{
    make_file(maker);
    if (!*test->name)
        return;
    int code = run_command(test->args, test->is_full ? "/dev/full" : "stdout.txt", test->columns);
    bool ok = code == test->exit_code;
    if (!ok)
        fprintf(stderr, "  exit status %d, expected %d\n%.4000s", code, test->exit_code, read_output("stderr.txt"));
    ok &= test->columns == 0 || *test->any || is_narrow(read_output("stdout.txt"), test->columns);
    ok &= compare(&test->err, "stderr.txt", "stderr");
    ok &= compare(&test->out, "stdout.txt", "stdout");
    for (int i = 0; i < test->n_files; i++)
        ok &= compare(&test->files[i], test->file_names[i], test->file_names[i]);
    n_run++;
    if (seconds >= 1)
        printf("# %.1f s of processors: %s\n", seconds, test->name);
    if (!ok) {
        n_failed++;
        fprintf(stderr, "FAILED %s: %s\n  tegula %s\n", file, test->name, test->args);
    }
}

/* ---- folders and files of cases ---- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void new_folder(void)
{
    if (*folder)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    snprintf(folder, sizeof folder, "/tmp/test_cli.XXXXXX");
    if (!mkdtemp(folder))
        die("mkdtemp", strerror(errno));
}

static void add_line(struct expectation *expected, const char *line)
{
    if (expected->n == MAX_LINES)
        die("too many lines", line);
    snprintf(expected->lines[expected->n++], LINE, "%s", line);
}

static void make_pipe(const char *name)
{
    char path[2 * LINE];
    snprintf(path, sizeof path, "%.500s/%.500s", folder, name);
    if (mkfifo(path, 0600) != 0)
        die(path, strerror(errno));
}

static void run_file(const char *path)
{
    static struct test test;
    static struct maker maker;
    char line[LINE], part[32] = "", rest[LINE];
    FILE *text = NULL, *file = fopen(path, "r");
    if (!file)
        die(path, strerror(errno));
    test = (struct test){.name = ""};
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        *rest = '\0';
        if (strncmp(line, "-- ", 3) == 0) {
            if (text)
                fclose(text);
            text = NULL;
            sscanf(line, "-- %31s %1023[^\n]", part, rest);
            if (strcmp(part, "case") == 0) {
                run_test(path, &test, &maker);
                test = (struct test){.name = ""};
                new_folder();
                snprintf(test.name, sizeof test.name, "%s", rest);
            } else if (strcmp(part, "full") == 0) {
                test.is_full = true;
            } else if (strcmp(part, "terminal") == 0) {
                sscanf(rest, "%d %7s", &test.columns, test.any);
            } else if (strcmp(part, "pipe") == 0) {
                make_pipe(rest);
            } else if (strcmp(part, "exit") == 0) {
                test.exit_code = atoi(rest);
            } else if (strcmp(part, "tensors") == 0) {
                make_file(&maker);
                snprintf(maker.path, sizeof maker.path, "%.500s/%.500s", folder, rest);
            } else if (strcmp(part, "file") == 0) {
                if (test.n_files == MAX_FILES)
                    die("too many files", rest);
                snprintf(test.file_names[test.n_files++], sizeof test.file_names[0], "%.63s", rest);
            } else if (strcmp(part, "text") == 0 || strcmp(part, "program") == 0) {
                char name[2 * LINE];
                snprintf(name, sizeof name, "%.1000s/%.1000s", folder, rest);
                text = fopen(name, "w");
                if (text && strcmp(part, "program") == 0)
                    fchmod(fileno(text), 0755);
            }
        } else if (text) {
            fprintf(text, "%s\n", line);
        } else if (!*line) {
            continue;
        } else if (strcmp(part, "tensors") == 0) {
            if (strncmp(line, "meta ", 5) == 0)
                add_meta(&maker, line);
            else
                add_tensor(&maker, line);
        } else if (strcmp(part, "args") == 0) {
            snprintf(test.args, sizeof test.args, "%s", line);
        } else if (strcmp(part, "stderr") == 0) {
            add_line(&test.err, line);
        } else if (strcmp(part, "stdout") == 0) {
            add_line(&test.out, line);
        } else if (strcmp(part, "file") == 0) {
            add_line(&test.files[test.n_files - 1], line);
        }
    }
    fclose(file);
    run_test(path, &test, &maker);
}

int main(int argc, char **argv)
{
    int part = 1, n_parts = 1;
    if (argc > 2 && strcmp(argv[argc - 2], "--part") == 0) {
        if (sscanf(argv[argc - 1], "%d/%d", &part, &n_parts) != 2 || part < 1 || part > n_parts)
            die("not a part", argv[argc - 1]);
        argc -= 2;
    }
    if (argc < 4) {
        fputs("usage: test_cli TEGULA DATA_FOLDER FILE.t... [--part K/N]\n", stderr);
        return 2;
    }
    if (!realpath(argv[1], tegula) || !realpath(argv[2], data))
        die("no such file", strerror(errno));
    snprintf(library, sizeof library, "%s", tegula);
    strcpy(strrchr(library, '/'), "/../lib");
    for (int i = 3; i < argc; i++)
        if (i % n_parts == part - 1)
            run_file(argv[i]);
    if (*folder)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("%d cases, %d failed\n", n_run, n_failed);
    return n_failed != 0 || n_run == 0;
}
