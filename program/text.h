/* program/text.h - text in memory that grows. For program/ and compiler/; not installed. */
#ifndef TEGULA_PROGRAM_TEXT_H
#define TEGULA_PROGRAM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed, it is empty. After a failed allocation it takes no more. */
struct text {
    char *bytes; /* NUL-terminated, or NULL; the owner frees it */
    size_t size, room;
    bool is_failed;
};

/* Room for `more` bytes and a NUL; false: the allocation failed. */
bool text_reserve(struct text *text, size_t more);
void text_add(struct text *text, const char *bytes, size_t n);

#endif
