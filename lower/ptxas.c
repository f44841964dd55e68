/* lower/ptxas.c - assembles PTX with NVIDIA's ptxas where it is installed; the product does not need it.
 *
 * Registers, spills and the C75xx messages, in which ptxas confesses to have repaired the program, are read
 * from its log. */
#include "compiler/lower.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text && fread(text, 1, (size_t)n, f) != (size_t)n) {
        free(text);
        text = NULL;
    }
    fclose(f);
    if (text) {
        text[n] = 0;
        *size = (size_t)n;
    }
    return text;
}

/* Runs ptxas; its exit status, or -1. */
static int run(const char *ptxas, const char *arch, const char *ptx, const char *cubin, const char *log)
{
    const char *const argv[] = {ptxas, "-arch", arch, "-v", "-lineinfo", "-o", cubin, ptx, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, ptxas, &actions, NULL, (char *const *)(uintptr_t)argv, environ) == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    posix_spawn_file_actions_destroy(&actions);
    return status == -1 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128;
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

static bool read_log(const struct plan *p, const char *log, bool strict, struct lowered *out)
{
    const char *used = strstr(log, "Used ");
    out->registers = used ? (uint32_t)strtoul(used + 5, NULL, 10) : 0;
    out->spill_bytes = number_before(log, "bytes spill stores") + number_before(log, "bytes spill loads") +
                       number_before(log, "bytes stack frame");
    const char *confession = strstr(log, "C75");
    if (!out->spill_bytes && !confession)
        return true;
    char line[200] = "";
    if (confession)
        snprintf(line, sizeof line, "%.*s", (int)strcspn(confession, "\n"), confession);
    tg_report(p->sink, strict ? TG_ERROR : TG_WARNING, "TG0592", NULL, 0, "use smaller blocks or more warps",
              "kernel %s on %s: ptxas reports %u bytes of spills and stack%s%s", p->name, p->target->arch,
              out->spill_bytes, *line ? "; " : "", line);
    return !strict;
}

bool lower_assemble(const struct plan *p, const char *ptxas, bool strict, struct lowered *out)
{
    char folder[] = "/tmp/tegula-XXXXXX", ptx[64], cubin[64], log[64];
    if (!mkdtemp(folder))
        return failed(p, "no temporary folder", strerror(errno));
    snprintf(ptx, sizeof ptx, "%s/k.ptx", folder);
    snprintf(cubin, sizeof cubin, "%s/k.cubin", folder);
    snprintf(log, sizeof log, "%s/k.log", folder);
    const int fd = open(ptx, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool ok = fd >= 0 && write_all(fd, out->ptx, strlen(out->ptx));
    if (fd >= 0)
        close(fd);
    if (!ok)
        failed(p, "cannot write PTX", strerror(errno));
    const int status = ok ? run(ptxas, p->target->arch, ptx, cubin, log) : -1;
    size_t log_bytes = 0;
    char *text = ok ? read_file(log, &log_bytes) : NULL;
    if (ok && status != 0)
        ok = failed(p, status < 0 ? "ptxas could not be started" : "ptxas refused the PTX", text ? text : ptxas);
    ok = ok && read_log(p, text ? text : "", strict, out);
    if (ok && !(out->cubin = read_file(cubin, &out->cubin_bytes)))
        ok = failed(p, "ptxas wrote no cubin", cubin);
    free(text);
    unlink(ptx);
    unlink(cubin);
    unlink(log);
    rmdir(folder);
    return ok;
}
