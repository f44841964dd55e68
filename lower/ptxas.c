/* lower/ptxas.c - assembles PTX with NVIDIA's ptxas where it is installed; the product does not need it.
 *
 * Registers, spills and the C75xx messages, in which ptxas confesses to have repaired the program, are read
 * from its log. PTX, cubin and log are files in memory: no folder has to be writable, and nothing is left behind. */
#include "compiler/lower.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool failed(const struct plan *p, const char *what, const char *text)
{
    tg_report(p->sink, TG_ERROR, "TG0591", NULL, 0, NULL, "kernel %s: %s: %s", p->name, what, text);
    return false;
}

static bool write_all(int fd, const char *text, size_t n)
{
    while (n) {
        const ssize_t done = write(fd, text, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        text += done;
        n -= (size_t)done;
    }
    return true;
}

/* A file in memory, beyond the numbers that ptxas gets its files by. */
enum { PTX_FILE = 3, CUBIN_FILE = 4, FIRST_OWN_FILE = 16 };

static int open_memory(const char *name)
{
    const int low = memfd_create(name, MFD_CLOEXEC);
    if (low < 0)
        return -1;
    const int file = fcntl(low, F_DUPFD_CLOEXEC, FIRST_OWN_FILE);
    close(low);
    return file;
}

static char *read_file(int file, size_t *size)
{
    const off_t n = lseek(file, 0, SEEK_END);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    for (off_t at = 0; text && at < n;) {
        const ssize_t done = pread(file, text + at, (size_t)(n - at), at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            free(text);
            return NULL;
        }
        at += done;
    }
    if (text) {
        text[n] = 0;
        *size = (size_t)n;
    }
    return text;
}

struct files {
    int ptx, cubin, log;
};

/* Runs ptxas; its exit status, or -1 with errno. */
static int run(const char *ptxas, const char *arch, const struct files *files)
{
    const char *const argv[] = {ptxas, "-arch", arch, "-v", "-lineinfo", "-o", "/proc/self/fd/4", "/proc/self/fd/3",
                                NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, files->ptx, PTX_FILE);
    posix_spawn_file_actions_adddup2(&actions, files->cubin, CUBIN_FILE);
    posix_spawn_file_actions_adddup2(&actions, files->log, 1);
    posix_spawn_file_actions_adddup2(&actions, files->log, 2);
    pid_t child;
    int status = -1;
    const int error = posix_spawnp(&child, ptxas, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    while (!error && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        errno = error;
    return error || status == -1 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static uint32_t number_before(const char *log, const char *words)
{
    const char *at = strstr(log, words);
    if (!at)
        return 0;
    while (at > log && at[-1] == ' ')
        at--;
    while (at > log && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return (uint32_t)strtoul(at, NULL, 10);
}

static void read_numbers(const char *log, struct lowered *out)
{
    const char *used = strstr(log, "Used ");
    out->registers = used ? (uint32_t)strtoul(used + 5, NULL, 10) : 0;
    out->spill_bytes = number_before(log, "bytes spill stores") + number_before(log, "bytes spill loads") +
                       number_before(log, "bytes stack frame");
    out->confession = strstr(log, "(C75") != NULL;
}

bool lower_judge(const struct plan *p, const char *log, bool strict, const struct lowered *out)
{
    const char *confession = strstr(log, "(C75");
    if (!out->spill_bytes && !confession)
        return true;
    char line[200] = "";
    if (confession)
        snprintf(line, sizeof line, "; %.*s", (int)strcspn(confession, "\n"), confession);
    tg_report(p->sink, strict ? TG_ERROR : TG_WARNING, "TG0592", NULL, 0, "use smaller blocks or more warps",
              "kernel %s on %s: ptxas reports %u bytes of spills and stack%s", p->name, p->target->arch,
              out->spill_bytes, line);
    return !strict;
}

static bool assemble(const struct plan *p, const char *ptxas, bool strict, const struct files *files,
                     struct lowered *out)
{
    size_t log_bytes = 0;
    if (files->ptx < 0 || files->cubin < 0 || files->log < 0 || !write_all(files->ptx, out->ptx, strlen(out->ptx)))
        return failed(p, "no memory for the files of ptxas", strerror(errno));
    const int status = run(ptxas, p->target->arch, files);
    if (status < 0) {
        tg_report(p->sink, TG_ERROR, "TG0591", NULL, 0, NULL, "%s could not be started: %s", ptxas, strerror(errno));
        return false;
    }
    char *text = read_file(files->log, &log_bytes);
    bool ok = status == 0 || failed(p, "ptxas refused the PTX", text && *text ? text : "it does not say why");
    if (ok)
        read_numbers(text ? text : "", out);
    ok = ok && lower_judge(p, text ? text : "", strict, out);
    free(text);
    if (ok && (!(out->cubin = read_file(files->cubin, &out->cubin_bytes)) || !out->cubin_bytes))
        ok = failed(p, "ptxas wrote no cubin", ptxas);
    return ok;
}

bool lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out)
{
    const struct files files = {open_memory("ptx"), open_memory("cubin"), open_memory("log")};
    const bool ok = assemble(p, ptxas, strict, &files, out);
    const int all[] = {files.ptx, files.cubin, files.log};
    for (uint32_t i = 0; i < 3; i++)
        if (all[i] >= 0)
            close(all[i]);
    return ok;
}
