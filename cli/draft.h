/* cli/draft.h - a file that is whole or not there (draft.c). It is made beside the one that is meant, and takes its name
 * when it is whole: a crash, a signal or a full disk leaves what was there before. */
#ifndef TEGULA_CLI_DRAFT_H
#define TEGULA_CLI_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

struct draft {
    const char *path;  /* that is meant; the caller's, as long as the draft */
    char target[4096]; /* what that leads to, where it is a link */
    char name[4200];   /* of the draft */
    int file;          /* to write to; -1 once it is kept or given up */
};

/* Could a draft take this name? What is there and no regular file, a device or a pipe, would be lost. False: errno says why. */
bool draft_is_possible(const char *path);
/* A new file in the same folder, with the rights that the umask leaves any new file. False: errno says why, and there is
 * nothing to end. */
bool draft_open(struct draft *draft, const char *path);
/* Writes all bytes. False: errno says why. */
bool draft_write(const struct draft *draft, const void *bytes, size_t size);
/* Closes it, with its bytes on the disk, and gives it the name. False: errno says why. */
bool draft_keep(struct draft *draft);
/* Closes and removes one that was not kept. Leaves errno as it is. */
void draft_end(struct draft *draft);
/* What errno says after one of these has failed. */
const char *draft_reason(void);

#endif
