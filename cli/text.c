/* cli/text.c - text in memory, sizes for people, JSON that cannot fail. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void append(void *user, const char *bytes, size_t size)
{
    struct text *text = user;
    if (text->size + size + 1 > text->room) {
        size_t room = 2 * (text->size + size) + 256;
        char *grown = realloc(text->bytes, room);
        if (!grown)
            return; /* what does not fit is left out: the text is for people */
        text->bytes = grown;
        text->room = room;
    }
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = '\0';
}

static void print(void *user, const char *bytes, size_t size)
{
    fwrite(bytes, 1, size, user);
}

tg_writer text_writer(struct text *text)
{
    return (tg_writer){append, text};
}

tg_writer file_writer(FILE *file)
{
    return (tg_writer){print, file};
}

const char *text_of(const struct text *text)
{
    return text->bytes ? text->bytes : "";
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

const char *bytes_text(double bytes, char buffer[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buffer, 32, unit && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return buffer;
}

json_t *json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

void json_print(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(object);
}
