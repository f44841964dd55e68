/* runtime/file.c - read a file whole, replace a file whole. */
#include "runtime/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tg_status fail_errno(const tg_sink *sink, const char *path, const char *what)
{
    const char *reason = strerrordesc_np(errno);
    tg_report(sink, TG_ERROR, "TG0831", path, 0, NULL, "cannot %s %s: %s", what, path,
              reason ? reason : "unknown error");
    return TG_E_FILE;
}

static bool read_all(int file, char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = read(file, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? EIO : errno; /* shorter than it was a moment ago */
            return false;
        }
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static tg_status read_open(int file, const char *path, char **bytes, size_t *size, const tg_sink *sink)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return fail_errno(sink, path, "read");
    if (!S_ISREG(info.st_mode))
        return tg_fail(sink, TG_E_FILE, "TG0831", NULL, "cannot read %s: expected a regular file", path);
    size_t n = (size_t)info.st_size;
    char *buffer = malloc(n + 1);
    if (!buffer)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "%s: no memory for %zu bytes", path, n);
    if (!read_all(file, buffer, n)) {
        free(buffer);
        return fail_errno(sink, path, "read");
    }
    buffer[n] = '\0';
    *bytes = buffer;
    *size = n;
    return TG_OK;
}

tg_status file_read(const char *path, char **bytes, size_t *size, const tg_sink *sink)
{
    *bytes = NULL;
    *size = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT ? TG_OK : fail_errno(sink, path, "read");
    tg_status status = read_open(file, path, bytes, size, sink);
    (void)close(file);
    return status;
}

static bool write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(file, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

/* The name is unique, so two writers of one file do not meet; the last rename wins. */
tg_status file_replace(const char *path, const void *bytes, size_t size, const tg_sink *sink)
{
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "%s: no memory", path);
    int file = mkstemp(temporary);
    if (file < 0) {
        tg_status status = fail_errno(sink, path, "write");
        free(temporary);
        return status;
    }
    /* Data before name: after a power failure the new name must not stand for an empty file. */
    bool ok = write_all(file, bytes, size) && fchmod(file, 0644) == 0 && fsync(file) == 0;
    ok = close(file) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    tg_status status = ok ? TG_OK : fail_errno(sink, path, "write");
    if (!ok)
        (void)unlink(temporary);
    free(temporary);
    return status;
}

tg_status file_make_parents(const char *path, const tg_sink *sink)
{
    tg_status status = TG_OK;
    char *folder = strdup(path);
    if (!folder)
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "%s: no memory", path);
    for (char *at = strchr(folder + 1, '/'); at && status == TG_OK; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            status = fail_errno(sink, folder, "create");
        *at = '/';
    }
    free(folder);
    return status;
}
