/* tests/harness/options.c - random option lines: a status, and a message where it is not 0. The options are those that the
 * command's help lists, the values such as it takes, and such as it does not. */
#include "tests/harness/harness.h"

#include "tests/kernels/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPTIONS = 64 };
static const char *const commands[] = {"variants", "explain", "compile", "run", "check", "tune", "bench", "devices"};
static const char *const variants[] = {"mlstm-sig", "gated-delta", "kda", "gla",  "linear-backward", "conv4",
                                       "nla",       "mamba2",      "",    "nope", "mlstm-sig",       "-"};
static const char *const values[] = {"0",
                                     "1",
                                     "2",
                                     "-1",
                                     "16",
                                     "64",
                                     "8",
                                     "99999999999999999999",
                                     "1e300",
                                     "nan",
                                     "",
                                     " ",
                                     "x",
                                     "none",
                                     "/dev/null/x",
                                     "B=1,NH=2,T=20,dqk=16,dhv=16",
                                     "B=1,NH=1,T=1,dqk=16,dhv=32",
                                     "B=1,NH=1,T=0,dqk=16,dhv=16",
                                     "B=0,NH=1,T=5,dqk=16",
                                     "T=1",
                                     "B=1,NH=1,T=9223372036854775807,dqk=64,dhv=64",
                                     "emu",
                                     "sm_80",
                                     "sm_90a",
                                     "sm_80,sm_90a",
                                     "H200",
                                     "bf16",
                                     "f16",
                                     "f32",
                                     "tfla",
                                     "walk",
                                     "step",
                                     "tfla chunk=64",
                                     "chunk=0",
                                     "H.Lhq=7",
                                     "plan",
                                     "ptx",
                                     "fig5",
                                     "scale=2",
                                     "tau=1",
                                     "0,7,20",
                                     "0,20",
                                     "20,0",
                                     "bf16,v-first",
                                     "index-out",
                                     "v-first,v-first",
                                     "token-major",
                                     "head-major",
                                     "$DATA/mlstmsig_x.safetensors",
                                     "$DATA/gdn_b.safetensors",
                                     "missing.safetensors",
                                     "made",
                                     "w.txt",
                                     "\x1b[31m",
                                     "%s%n"};
#define PICK(h, list) list[harness_draw(h, sizeof(list) / sizeof(list)[0])]

static int n_ok, n_refused;

struct option {
    char name[40];
    bool takes;
};

static int options_of(const struct harness *h, const char *command, struct option options[MOST_OPTIONS])
{
    char *const words[] = {(char *)(uintptr_t)h->tegula, (char *)"help", (char *)(uintptr_t)command, NULL};
    char *const nothing[] = {NULL};
    struct outcome *outcome = harness_run(h, words, nothing);
    int n = 0;
    for (char *line = strtok(outcome->out, "\n"); line && n < MOST_OPTIONS; line = strtok(NULL, "\n")) {
        struct option *option = &options[n];
        if (sscanf(line, "  %39[a-z0-9-]", option->name) != 1 || strncmp(line, "  --", 4) != 0)
            continue;
        option->takes = line[2 + strlen(option->name) + 1] != ' ';
        n++;
    }
    return n;
}

static char *value_of(struct harness *h, char *room, size_t size)
{
    const char *value = PICK(h, values);
    const bool is_data = strncmp(value, "$DATA", strlen("$DATA")) == 0;
    snprintf(room, size, "%s%s", is_data ? h->data : "", is_data ? value + strlen("$DATA") : value);
    return room;
}

/* Something is always small, so that there is no waiting for the emulator. */
static void add_usual(char *words[], int *n, const char *command)
{
    static const char *const usual[][2] = {{"--shape", "B=1,NH=1,T=20,dqk=16,dhv=16"},
                                           {"--device", "emu"},
                                           {"--ptxas", "none"},
                                           {"--runs", "1"},
                                           {"--budget-seconds", "0.1"}};
    const bool is_call = strcmp(command, "check") == 0 || strcmp(command, "tune") == 0 || strcmp(command, "bench") == 0;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (is_call && (i < 3 || strcmp(command, "check") != 0) && (i < 4 || strcmp(command, "tune") == 0)) {
            words[(*n)++] = (char *)(uintptr_t)usual[i][0];
            words[(*n)++] = (char *)(uintptr_t)usual[i][1];
        }
}

static void judge(const struct outcome *outcome, char *const words[])
{
    const bool is_lost = outcome->code > 0 && !*outcome->err && !*outcome->out;
    n_ok += outcome->code == 0;
    n_refused += outcome->code > 0;
    if (tap_expect(outcome->code >= 0 && outcome->code <= 2 && !is_lost, "exit status %d, signal %d%s", outcome->code,
                   outcome->signal, is_lost ? ", without a word" : ""))
        return;
    harness_show(words);
    tap_note("it says: %.300s", outcome->err);
}

bool options_play(struct harness *h)
{
    static struct option options[MOST_OPTIONS];
    static char room[MAX_WORDS][300];
    char *words[MAX_WORDS], *const nothing[] = {NULL};
    int n = 0;
    if (!h) {
        tap_note("%d lines were taken, %d refused", n_ok, n_refused);
        return n_ok > 0 && n_refused > 0;
    }
    const char *command = PICK(h, commands);
    const int n_options = options_of(h, command, options);
    words[n++] = (char *)(uintptr_t)h->tegula;
    words[n++] = (char *)(uintptr_t)command;
    if (strcmp(command, "bench") == 0 || harness_draw(h, 8)) /* a bench of all variants takes minutes */
        words[n++] = (char *)(uintptr_t)PICK(h, variants);
    if (harness_draw(h, 4))
        add_usual(words, &n, command);
    for (int i = (int)harness_draw(h, 5); i > 0 && n_options; i--) {
        const struct option *option = &options[harness_draw(h, (uint32_t)n_options)];
        words[n] = strcpy(room[n], option->name);
        n++;
        if (option->takes == (harness_draw(h, 20) != 0)) {
            words[n] = value_of(h, room[n], sizeof room[n]);
            n++;
        }
    }
    words[n] = NULL;
    judge(harness_run(h, words, nothing), words);
    return true;
}
