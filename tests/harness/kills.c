/* tests/harness/kills.c - kill -9 among writers of one wisdom file and one cache: nothing that was acknowledged is lost, nothing
 * is torn, and whoever comes next can write. */
#include "runtime/runtime.h"
#include "tests/bundle/sample.h"
#include "tests/harness/harness.h"

#include "tests/kernels/tap.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_WRITERS = 4, N_KILLS = 16, MOST_LINES = 4096 };

static int n_kills, n_amid; /* of all rounds; in the midst of writing */

/* Shared with the writers. */
struct writer {
    volatile int n_done; /* lines acknowledged: 0 .. n_done - 1 */
    volatile int is_writing;
};

struct check {
    int n_messages;
    bool is_there[N_WRITERS][MOST_LINES];
};

static void count_message(void *user, const tg_diag *diag)
{
    struct check *check = user;
    tap_note("%.200s", diag->message);
    check->n_messages++;
}

static tg_wisdom line_of(int writer, int line)
{
    tg_wisdom entry = {.dtype = "bf16", .cc = 90, .dqk = 16, .dhv = 16, .batch = 1, .heads = 1, .chunk = 64};
    entry.tokens = line + 1;
    entry.milliseconds = 1;
    snprintf(entry.variant, sizeof entry.variant, "w%d", writer);
    snprintf(entry.device, sizeof entry.device, "a GPU");
    snprintf(entry.schedule, sizeof entry.schedule, "tfla chunk=%d", 64 * (line + 1));
    return entry;
}

static void write_on(int number, struct writer *writer, const char *wisdom, const char *cache)
{
    const tg_program program = sample_program(".version 7.0\n");
    char key[16];
    snprintf(key, sizeof key, "writer %d", number);
    while (writer->n_done < MOST_LINES) {
        const tg_wisdom entry = line_of(number, writer->n_done);
        writer->is_writing = 1;
        if (tg_wisdom_add(wisdom, &entry, NULL) != TG_OK || tg_cache_put(cache, key, &program, NULL) != TG_OK)
            _exit(1);
        writer->n_done++;
        writer->is_writing = 0;
    }
    _exit(0);
}

static pid_t start(int number, struct writer *writer, const char *wisdom, const char *cache)
{
    const pid_t process = fork();
    writer->is_writing = 0;
    if (process == 0)
        write_on(number, writer, wisdom, cache);
    return process;
}

static void end(pid_t process, const struct writer *writer)
{
    int status;
    n_kills++;
    n_amid += writer->is_writing;
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    tap_expect(!WIFEXITED(status) || WEXITSTATUS(status) == 0, "a writer could not write");
}

static void mark(void *user, const tg_wisdom *entry)
{
    struct check *check = user;
    const int writer = entry->variant[1] - '0';
    if (tap_expect(writer >= 0 && writer < N_WRITERS && entry->tokens >= 1 && entry->tokens <= MOST_LINES,
                   "another line"))
        check->is_there[writer][entry->tokens - 1] = true;
}

static void check_wisdom(const struct writer *writers, const char *path)
{
    static struct check check;
    static char text[1 << 21];
    const tg_sink sink = {count_message, &check};
    const tg_wisdom last = line_of(0, 0);
    check = (struct check){.n_messages = 0};
    tap_expect(tg_wisdom_add(path, &last, &sink) == TG_OK, "who comes next cannot write");
    FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
    tg_wisdom_each(text, path, mark, &check, &sink);
    for (int w = 0; w < N_WRITERS; w++)
        for (int i = 0; i < writers[w].n_done; i++)
            if (!tap_expect(check.is_there[w][i], "line %d of writer %d of %d is lost", i, w, writers[w].n_done))
                break;
    tap_expect(check.n_messages == 0, "there were messages");
}

static void check_cache(const char *folder)
{
    struct check check = {.n_messages = 0};
    for (int w = 0; w < N_WRITERS; w++) {
        char key[16];
        tg_program *program;
        snprintf(key, sizeof key, "writer %d", w);
        tap_expect(tg_cache_get(folder, key, &program, &(tg_sink){count_message, &check}) == TG_OK, "no answer");
        tg_program_free(program);
    }
    tap_expect(check.n_messages == 0, "an entry is torn");
}

bool kills_play(struct harness *h)
{
    char wisdom[200], cache[200];
    pid_t processes[N_WRITERS];
    if (!h) {
        tap_note("%d writers were killed, %d in the midst", n_kills, n_amid);
        return n_amid > 0;
    }
    struct writer *writers =
        mmap(NULL, sizeof *writers * N_WRITERS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!tap_expect(writers != MAP_FAILED, "no memory"))
        return false;
    snprintf(wisdom, sizeof wisdom, "%s/kills-%llu/wisdom.txt", h->folder, (unsigned long long)h->seed);
    snprintf(cache, sizeof cache, "%s/kills-%llu/cache", h->folder, (unsigned long long)h->seed);
    for (int w = 0; w < N_WRITERS; w++)
        processes[w] = start(w, &writers[w], wisdom, cache);
    for (int i = 0; i < N_KILLS; i++) {
        const uint32_t w = harness_draw(h, N_WRITERS);
        usleep(harness_draw(h, 20000));
        end(processes[w], &writers[w]);
        processes[w] = start((int)w, &writers[w], wisdom, cache);
    }
    for (int w = 0; w < N_WRITERS; w++)
        end(processes[w], &writers[w]);
    check_wisdom(writers, wisdom);
    check_cache(cache);
    munmap(writers, sizeof *writers * N_WRITERS);
    return true;
}
