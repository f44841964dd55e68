/* program/text.c - text in memory that grows. */
#include "program/text.h"

#include <stdlib.h>
#include <string.h>

bool text_reserve(struct text *text, size_t more)
{
    if (text->is_failed || more < text->room - text->size)
        return !text->is_failed;
    const size_t room = 2 * text->room + more + 1;
    char *bytes = realloc(text->bytes, room);
    text->is_failed = bytes == NULL;
    if (!bytes)
        return false;
    text->bytes = bytes;
    text->room = room;
    return true;
}

void text_add(struct text *text, const char *bytes, size_t n)
{
    if (!text_reserve(text, n))
        return;
    memcpy(text->bytes + text->size, bytes, n);
    text->size += n;
    text->bytes[text->size] = '\0';
}
