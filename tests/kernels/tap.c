/* tests/kernels/tap.c */
#include "tap.h"
#include "tests/usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { NAME = 256, NOTES = 16384, MAX_FAILURES_SHOWN = 12, GROUP = 24, MAX_GROUPS = 64 };

/* Tests whose names begin with the same word. */
struct group {
    char name[GROUP];
    int n_tests;
    double seconds; /* of processors */
};

struct tap {
    const char *only, *without[4];
    int n_without;
    int part, n_parts;
    bool is_list;
    int n_tests, n_failed, n_skipped;
    char name[NAME], skip[NAME], notes[NOTES];
    size_t n_notes;
    int failures; /* of the test begun last */
    bool is_open;
    double start; /* processor seconds */
    struct group groups[MAX_GROUPS];
};

static struct tap own, *tap = &own;

/* Processor seconds of this process and of those that it waited for: what a test takes, whatever else the machine does. */
static double seconds_used(void)
{
    double seconds = 0;
    const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (size_t i = 0; i < sizeof whose / sizeof *whose; i++) {
        struct rusage used;
        getrusage(whose[i], &used);
        seconds += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    }
    return seconds;
}

bool tap_argument(int argc, char **argv, int *i)
{
    const char *option = *i < argc ? argv[*i] : "", *value = *i + 1 < argc ? argv[*i + 1] : NULL;
    if (strcmp(option, "--list") == 0) {
        tap_list();
        ++*i;
        return true;
    }
    if (value && strcmp(option, "--only") == 0)
        tap_only(value);
    else if (value && strcmp(option, "--without") == 0)
        tap_without(value);
    else if (!value || strcmp(option, "--part") != 0 || !tap_part(value))
        return false;
    *i += 2;
    return true;
}

bool tap_arguments(int argc, char **argv)
{
    int i = 1;
    while (tap_argument(argc, argv, &i))
        ;
    if (i < argc)
        usage_wrong(argv, argv[i], TAP_USAGE);
    return i == argc;
}

bool tap_share(void)
{
    struct tap *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    *shared = *tap;
    tap = shared;
    return true;
}

bool tap_is_open(void)
{
    return tap->is_open;
}

void tap_only(const char *text)
{
    tap->only = text;
}

void tap_without(const char *text)
{
    if (tap->n_without < (int)(sizeof tap->without / sizeof *tap->without))
        tap->without[tap->n_without++] = text;
}

void tap_list(void)
{
    tap->is_list = true;
}

bool tap_part(const char *text)
{
    return sscanf(text, "%d/%d", &tap->part, &tap->n_parts) == 2 && tap->part >= 1 && tap->part <= tap->n_parts;
}

static bool is_wanted(void)
{
    static int n_wanted, n_passed; /* by this process */
    for (int i = 0; i < tap->n_without; i++)
        if (strstr(tap->name, tap->without[i]))
            return false;
    if (tap->only && !strstr(tap->name, tap->only))
        return false;
    if (tap->n_parts && n_wanted++ % tap->n_parts != tap->part - 1)
        return false;
    return n_passed++ >= tap->n_tests;
}

bool tap_begin(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(tap->name, sizeof tap->name, format, list);
    va_end(list);
    if (!is_wanted())
        return false;
    if (tap->is_list) {
        printf("%s\n", tap->name);
        return false;
    }
    tap->n_tests++;
    tap->is_open = true;
    tap->failures = 0;
    tap->n_notes = 0;
    tap->notes[0] = tap->skip[0] = '\0';
    tap->start = seconds_used();
    return true;
}

static void add_note(const char *format, va_list list)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, list);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int n = snprintf(tap->notes + tap->n_notes, NOTES - tap->n_notes, "#   %s\n", line);
        tap->n_notes += (size_t)n < NOTES - tap->n_notes ? (size_t)n : 0;
        tap->notes[tap->n_notes] = '\0';
    }
}

void tap_note(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add_note(format, list);
    va_end(list);
}

bool tap_expect(bool ok, const char *format, ...)
{
    if (ok)
        return true;
    va_list list;
    va_start(list, format);
    if (tap->failures++ < MAX_FAILURES_SHOWN)
        add_note(format, list);
    va_end(list);
    return false;
}

void tap_skip(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(tap->skip, sizeof tap->skip, format, list);
    va_end(list);
}

/* A group too many is counted with the last. */
static void count_in_group(double seconds)
{
    int g = 0;
    const size_t n = strcspn(tap->name, " ,:") < GROUP - 1 ? strcspn(tap->name, " ,:") : GROUP - 1;
    while (g < MAX_GROUPS - 1 && tap->groups[g].n_tests &&
           (strncmp(tap->groups[g].name, tap->name, n) != 0 || tap->groups[g].name[n]))
        g++;
    struct group *group = &tap->groups[g];
    if (!group->n_tests)
        snprintf(group->name, sizeof group->name, "%.*s", (int)n, tap->name);
    group->n_tests++;
    group->seconds += seconds;
}

static void print_groups(void)
{
    for (int g = 0; g < MAX_GROUPS && tap->groups[g].n_tests; g++)
        if (tap->groups[g].seconds >= 1)
            printf("# %s: %d tests, %.1f s of processors\n", tap->groups[g].name, tap->groups[g].n_tests,
                   tap->groups[g].seconds);
}

void tap_end(void)
{
    const double seconds = seconds_used() - tap->start;
    count_in_group(seconds);
    printf("%s %d - %s%s%s\n", tap->failures ? "not ok" : "ok", tap->n_tests, tap->name, *tap->skip ? " # SKIP " : "",
           tap->skip);
    if (tap->failures > MAX_FAILURES_SHOWN)
        printf("#   and %d more failures, not shown\n", tap->failures - MAX_FAILURES_SHOWN);
    fputs(tap->notes, stdout);
    if (seconds >= 1)
        printf("#   %.1f s of processors\n", seconds);
    fflush(stdout);
    tap->n_failed += tap->failures > 0;
    tap->n_skipped += *tap->skip != '\0';
    tap->is_open = false;
}

int tap_finish(void)
{
    if (tap->is_list)
        return EXIT_SUCCESS;
    print_groups();
    printf("1..%d\n# %d tests, %d failed, %d skipped\n", tap->n_tests, tap->n_tests, tap->n_failed, tap->n_skipped);
    return tap->n_failed == 0 && tap->n_tests > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
