/* tests/harness/faults.c - call N of the driver fails, in every command that calls it: a status, a message that names the call,
 * nothing left behind. */
#include "tests/harness/harness.h"

#include "tests/kernels/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const commands[] = {
    "devices",
    "check mlstm-sig --shape B=1,NH=1,T=20,dqk=16,dhv=16",
    "check gated-delta --shape B=1,NH=1,T=20,dqk=16,dhv=16 --grad",
    "check simple-gla --shape B=2,NH=1,T=1,dqk=16,dhv=16 --tokens 1 --pool",
    "run mlstm-sig --in $DATA/mlstmsig_x.safetensors --out h.safetensors --time",
    "bench mlstm-sig --shape B=1,NH=1,T=20,dqk=16,dhv=16 --runs 1 --flush",
    "bench linear --shape B=1,NH=1,T=20,dqk=16,dhv=16 --runs 1 --roofline --grad",
    "tune linear --shape B=1,NH=1,T=20,dqk=16,dhv=16 --runs 1 --budget-seconds 0.2 --wisdom w.txt",
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0], MOST_NAMES = 64 };

/* What the faulty driver saw. */
struct seen {
    int calls, alive[4];
    char failed[64];
};

static char reached[MOST_NAMES][64];
static uint32_t n_reached;

static void reach(const char *name)
{
    uint32_t i = 0;
    while (i < n_reached && strcmp(reached[i], name) != 0)
        i++;
    if (i == n_reached && n_reached < MOST_NAMES)
        strcpy(reached[n_reached++], name);
}

static bool read_log(const struct harness *h, struct seen *seen)
{
    char path[128];
    snprintf(path, sizeof path, "%s/driver.log", h->folder);
    FILE *file = fopen(path, "r");
    const int n = file ? fscanf(file, "%d %63s %d %d %d %d", &seen->calls, seen->failed, &seen->alive[0],
                                &seen->alive[1], &seen->alive[2], &seen->alive[3])
                       : 0;
    if (file)
        fclose(file);
    (void)remove(path);
    return n == 6;
}

/* The command's words; $DATA is the folder of test data. */
static void split(const struct harness *h, const char *command, char *line, size_t size, char *words[MAX_WORDS])
{
    const char *at = strstr(command, "$DATA");
    int n = 0;
    words[n++] = (char *)(uintptr_t)h->tegula;
    snprintf(line, size, "%.*s%s%s", at ? (int)(at - command) : 1000, command, at ? h->data : "",
             at ? at + strlen("$DATA") : "");
    for (char *word = strtok(line, " "); word && n < MAX_WORDS - 3; word = strtok(NULL, " "))
        words[n++] = word;
    words[n] = NULL;
    if (strcmp(words[1], "devices") == 0)
        return;
    words[n++] = (char *)"--ptxas";
    words[n++] = (char *)"none";
    words[n] = NULL;
}

static struct outcome *run(const struct harness *h, char *const words[], long call, bool after, int result)
{
    static char lines[6][300];
    snprintf(lines[0], sizeof lines[0], "FAULTY_CALL=%ld", call);
    snprintf(lines[1], sizeof lines[1], "FAULTY_RESULT=%d", result);
    snprintf(lines[2], sizeof lines[2], "FAULTY_AFTER=%d", after);
    snprintf(lines[3], sizeof lines[3], "FAULTY_DRIVER=%s", h->emulator);
    snprintf(lines[4], sizeof lines[4], "FAULTY_LOG=%s/driver.log", h->folder);
    snprintf(lines[5], sizeof lines[5], "LD_LIBRARY_PATH=%s", h->folder);
    char *const environment[] = {lines[0], lines[1], lines[2], lines[3], lines[4], lines[5], NULL};
    return harness_run(h, words, environment);
}

/* What may fail without the command's failing: the end of something, what can be done without, and what wakes a GPU while
 * the command does something else, which is tried again. */
static bool is_harmless(const char *name, const char *command)
{
    static const char *const names[] = {
        "cuMemFree",       "cuModuleUnload", "cuEventDestroy",   "cuDevicePrimaryCtxRelease", "cuDriverGetVersion",
        "cuCtxSetCurrent", "cuDeviceGet",    "cuDeviceGetCount", "cuDevicePrimaryCtxRetain"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    /* One says of each device what is wrong with it, the other loads what it found once more, for the cache. */
    return strcmp(command, "devices") == 0 || strncmp(command, "tune ", strlen("tune ")) == 0;
}

static bool expect(bool ok, const char *what, char *const words[], const struct seen *seen,
                   const struct outcome *outcome, long call)
{
    if (ok)
        return true;
    tap_expect(
        false,
        "call %ld, %s, failed: %s; exit status %d, signal %d; left: memory %d, modules %d, events %d, contexts %d",
        call, seen->failed, what, outcome->code, outcome->signal, seen->alive[0], seen->alive[1], seen->alive[2],
        seen->alive[3]);
    harness_show(words);
    tap_note("it says: %.300s", outcome->err);
    return false;
}

static void play(struct harness *h, const char *command)
{
    static const int results[] = {1, 2, 100, 200, 700, 719, 999};
    char line[500], *words[MAX_WORDS];
    struct seen seen = {0};
    split(h, command, line, sizeof line, words);
    struct outcome *outcome = run(h, words, 0, false, 0);
    if (!expect(read_log(h, &seen) && outcome->code == 0, "not even when none does", words, &seen, outcome, 0))
        return;
    const long call = 1 + harness_draw(h, (uint32_t)seen.calls);
    const bool after = harness_draw(h, 4) == 0;
    outcome = run(h, words, call, after, results[harness_draw(h, sizeof results / sizeof results[0])]);
    if (!expect(read_log(h, &seen) && outcome->code >= 0 && outcome->code <= 2, "it crashed", words, &seen, outcome,
                call))
        return;
    for (int kind = 0; kind < 4; kind++)
        expect(seen.alive[kind] == 0, "something was left behind", words, &seen, outcome, call);
    const bool is_told = strstr(outcome->err, seen.failed) || strstr(outcome->out, seen.failed) ||
                         (after && strstr(outcome->err, "TG0803")); /* of one that failed later */
    const bool is_needed = strcmp(seen.failed, "none") != 0 && !is_harmless(seen.failed, command);
    expect(!is_needed || outcome->code != 0 || is_told, "and it says that all is well", words, &seen, outcome, call);
    expect(outcome->code == 0 || is_told, "no message names it", words, &seen, outcome, call);
    reach(seen.failed);
}

bool faults_play(struct harness *h)
{
    if (h)
        play(h, commands[harness_draw(h, N_COMMANDS)]);
    else
        tap_note("%u functions of the driver failed", n_reached);
    return h || n_reached >= 12;
}
