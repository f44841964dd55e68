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

static tg_status check_open(int file, const char *path, enum file_use use, size_t *size, const tg_sink *sink)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return fail_errno(sink, path, "read");
    if (!S_ISREG(info.st_mode))
        return tg_fail(sink, TG_E_FILE, "TG0831", NULL, "cannot read %s: expected a regular file", path);
    if (info.st_size > FILE_MOST)
        return tg_fail(sink, TG_E_FILE, "TG0831", NULL, "cannot read %s: expected at most %d bytes, found %lld", path,
                       FILE_MOST, (long long)info.st_size);
    const bool is_foreign = info.st_uid != geteuid() && info.st_uid != 0;
    if (use == FILE_CODE && (is_foreign || (info.st_mode & (S_IWGRP | S_IWOTH))))
        return tg_fail(sink, TG_E_FILE, "TG0831", "remove it, or choose another folder",
                       "%s: expected a file that only its user may write, found one that %s", path,
                       is_foreign ? "somebody else owns" : "others may write");
    *size = (size_t)info.st_size;
    return TG_OK;
}

static tg_status read_open(int file, const char *path, enum file_use use, char **bytes, size_t *size,
                           const tg_sink *sink)
{
    size_t n = 0;
    const tg_status status = check_open(file, path, use, &n, sink);
    if (status != TG_OK)
        return status;
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

tg_status file_read(const char *path, enum file_use use, char **bytes, size_t *size, const tg_sink *sink)
{
    *bytes = NULL;
    *size = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a FIFO that nobody writes: no waiting */
    if (file < 0)
        return errno == ENOENT ? TG_OK : fail_errno(sink, path, "read");
    tg_status status = read_open(file, path, use, bytes, size, sink);
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

/* Data before name: after a power failure the new name must not stand for an empty file. */
static tg_status write_and_rename(const char *path, char *temporary, const void *bytes, size_t size,
                                  const tg_sink *sink)
{
    int file = mkstemp(temporary); /* a name of its own, so two writers of one file do not meet; the last rename wins */
    if (file < 0)
        return fail_errno(sink, path, "write");
    bool ok = write_all(file, bytes, size) && fsync(file) == 0;
    ok = close(file) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    const tg_status status = ok ? TG_OK : fail_errno(sink, path, "write");
    if (!ok)
        (void)unlink(temporary);
    return status;
}

tg_status file_replace(const char *path, const void *bytes, size_t size, const tg_sink *sink)
{
    char *target = realpath(path, NULL), *temporary = NULL; /* NULL: there is no such file yet */
    if (asprintf(&temporary, "%s.XXXXXX", target ? target : path) < 0) {
        free(target);
        return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "%s: no memory", path);
    }
    const tg_status status = write_and_rename(target ? target : path, temporary, bytes, size, sink);
    free(temporary);
    free(target);
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
