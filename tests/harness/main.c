/* tests/harness/main.c TEGULA FAULTY_DRIVER EMULATOR DATA [--seconds S | --rounds N] [--seed SEED] [--only TEXT] - what strangers,
 * machines and chance do to the command and to its files: driver calls that fail, lines of options, kill -9 among writers,
 * flipped bits. A round follows from its seed; each part says whether it reached what it is for. */
#include "tests/harness/harness.h"

#include "tests/kernels/tap.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MINUTE = 60, HANGS = 600 }; /* of a processor; others use the machine, too */
enum { SANITIZER = 99 };           /* the status of a command that one has stopped */

/* splitmix64: the draw's number and the seed, mixed. */
uint32_t harness_draw(struct harness *h, uint32_t n)
{
    uint64_t x = (h->seed * 1000003 + ++h->drawn) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((x ^ x >> 31) >> 32) % n;
}

void harness_show(char *const words[])
{
    char line[2000] = "";
    size_t used = 0;
    for (int i = 1; words[i] && used < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, " '%s'", words[i]);
    tap_note("tegula%.1500s", line);
}

static void become(const struct harness *h, char *const words[], char *const environment[])
{
    if (chdir(h->folder) != 0 || !freopen("/dev/null", "r", stdin) || !freopen("out", "w", stdout) ||
        !freopen("err", "w", stderr))
        _exit(127);
    for (int i = 0; environment[i]; i++)
        putenv(environment[i]);
    setenv("HOME", h->folder, 1);
    setenv("XDG_CACHE_HOME", h->folder, 1);
    setenv("ASAN_OPTIONS", "exitcode=99", 1);
    setrlimit(RLIMIT_CPU, &(struct rlimit){MINUTE, MINUTE});
    alarm(HANGS);
    execv(words[0], words);
    _exit(127);
}

static void read_whole(const struct harness *h, const char *name, char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", h->folder, name);
    FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, size - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
}

struct outcome *harness_run(const struct harness *h, char *const words[], char *const environment[])
{
    static struct outcome outcome;
    int status = 0;
    fflush(NULL);
    const pid_t process = fork();
    if (process == 0)
        become(h, words, environment);
    waitpid(process, &status, 0);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : outcome.code == SANITIZER ? SIGABRT : 0;
    read_whole(h, "out", outcome.out, sizeof outcome.out);
    read_whole(h, "err", outcome.err, sizeof outcome.err);
    return &outcome;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

struct limits {
    long long rounds, seconds, seed;
};

static void play(struct harness *h, const char *name, harness_part *part, int rounds, const struct limits *limits)
{
    const time_t end = time(NULL) + limits->seconds / 4;
    if (!tap_begin("%s", name))
        return;
    for (long long r = 0; r < limits->rounds * rounds || time(NULL) < end; r++) {
        h->seed = (uint64_t)(limits->seed + r);
        h->drawn = 0;
        part(h);
    }
    tap_expect(part(NULL), "what it is for was not reached");
    tap_end();
}

static bool read_options(int argc, char **argv, struct limits *limits)
{
    for (int i = 5; i < argc; i += 2) {
        if (i + 1 == argc)
            return false;
        if (strcmp(argv[i], "--rounds") == 0)
            limits->rounds = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            limits->seconds = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            limits->seed = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--only") == 0)
            tap_only(argv[i + 1]);
        else
            return false;
    }
    return argc > 4;
}

int main(int argc, char **argv)
{
    static char paths[4][PATH_MAX];
    struct harness h = {.folder = "/tmp/tegula-harness-XXXXXX"};
    struct limits limits = {1, 0, 1};
    char link[128];
    if (!read_options(argc, argv, &limits) || !mkdtemp(h.folder)) {
        fputs(
            "usage: harness TEGULA FAULTY_DRIVER EMULATOR DATA [--seconds S] [--rounds N] [--seed SEED] [--only TEXT]\n",
            stderr);
        return 2;
    }
    for (int i = 0; i < 4; i++)
        if (!realpath(argv[1 + i], paths[i]))
            return 2;
    h.tegula = paths[0];
    h.faulty = paths[1];
    h.emulator = paths[2];
    h.data = paths[3];
    snprintf(link, sizeof link, "%s/libcuda.so.1", h.folder);
    if (symlink(h.faulty, link) != 0)
        return 2;
    play(&h, "faults: call N of the driver fails", faults_play, 24, &limits);
    play(&h, "options: random lines", options_play, 40, &limits);
    play(&h, "kills: of writers", kills_play, 2, &limits);
    play(&h, "flips: of bits in a cache entry", flips_play, 4, &limits);
    nftw(h.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return tap_finish();
}
