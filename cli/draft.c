/* cli/draft.c - see draft.h. */
#include "draft.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NO_FILE = EEXIST }; /* it is there and could not be replaced by a file */

bool draft_is_possible(const char *path)
{
    struct stat there;
    if (stat(path, &there) != 0 || S_ISREG(there.st_mode))
        return true;
    errno = S_ISDIR(there.st_mode) ? EISDIR : NO_FILE;
    return false;
}

const char *draft_reason(void)
{
    return errno == NO_FILE ? "it is there and no regular file" : strerror(errno);
}

/* A link stays, and what it leads to is replaced. */
static bool set_target(struct draft *draft, const char *path)
{
    char target[PATH_MAX];
    const int n = snprintf(draft->target, sizeof draft->target, "%s", realpath(path, target) ? target : path);
    if ((size_t)n < sizeof draft->target)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

bool draft_open(struct draft *draft, const char *path)
{
    draft->path = path;
    draft->file = -1;
    if (!draft_is_possible(path) || !set_target(draft, path))
        return false;
    for (int attempt = 0; attempt < 1000; attempt++) { /* one that was killed may have left a name like ours */
        const int n =
            snprintf(draft->name, sizeof draft->name, "%s.%ld-%d.part", draft->target, (long)getpid(), attempt);
        if ((size_t)n >= sizeof draft->name) {
            errno = ENAMETOOLONG;
            return false;
        }
        draft->file = open(draft->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (draft->file >= 0 || errno != EEXIST)
            break;
    }
    return draft->file >= 0;
}

bool draft_write(const struct draft *draft, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (size > 0) {
        const ssize_t n = write(draft->file, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* Bytes before the name: after a power failure the name must not stand for an empty file. */
bool draft_keep(struct draft *draft)
{
    const bool is_stored = fsync(draft->file) == 0;
    const bool is_closed = close(draft->file) == 0;
    if (is_stored && is_closed && rename(draft->name, draft->target) == 0) {
        draft->file = -1;
        return true;
    }
    const int why = errno;
    draft->file = -1;
    (void)unlink(draft->name);
    errno = why;
    return false;
}

void draft_end(struct draft *draft)
{
    const int why = errno;
    if (draft->file >= 0) {
        (void)close(draft->file);
        (void)unlink(draft->name);
    }
    draft->file = -1;
    errno = why;
}
