/* program/codec.c - see codec.h. */
#include "program/codec.h"

#include <inttypes.h>
#include <string.h>

enum { IMAGE_ALIGNMENT = 16 };

bool code_refuse(const struct codec *c, const char *field, uint64_t expected, uint64_t found)
{
    tg_report(c->sink, TG_ERROR, "TG0715", NULL, 0, NULL,
              "bundle: %s at byte %zu: expected at most %" PRIu64 ", found %" PRIu64, field, c->at, expected, found);
    return false;
}

static bool has_room(const struct codec *c, uint64_t n, const char *field)
{
    if (n <= c->size - c->at)
        return true;
    tg_report(c->sink, TG_ERROR, "TG0713", NULL, 0, NULL,
              "bundle: %s at byte %zu: expected %" PRIu64 " bytes, found %zu", field, c->at, n, c->size - c->at);
    return false;
}

bool code_bytes(struct codec *c, void *data, size_t n, const char *field)
{
    if (!has_room(c, n, field))
        return false;
    if (c->mode == WRITE)
        memcpy(c->bytes + c->at, data, n);
    else if (c->mode == READ)
        memcpy(data, c->bytes + c->at, n);
    c->at += n;
    return true;
}

uint64_t get_little(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

void put_little(uint8_t *bytes, size_t width, uint64_t value)
{
    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

bool code_u64(struct codec *c, uint64_t *value, const char *field)
{
    uint8_t bytes[8];
    put_little(bytes, sizeof bytes, *value);
    if (!code_bytes(c, bytes, sizeof bytes, field))
        return false;
    *value = get_little(bytes, sizeof bytes);
    return true;
}

bool code_u32(struct codec *c, uint32_t *value, const char *field)
{
    uint8_t bytes[4];
    put_little(bytes, sizeof bytes, *value);
    if (!code_bytes(c, bytes, sizeof bytes, field))
        return false;
    *value = (uint32_t)get_little(bytes, sizeof bytes);
    return true;
}

bool code_u16(struct codec *c, uint16_t *value, const char *field)
{
    uint8_t bytes[2];
    put_little(bytes, sizeof bytes, *value);
    if (!code_bytes(c, bytes, sizeof bytes, field))
        return false;
    *value = (uint16_t)get_little(bytes, sizeof bytes);
    return true;
}

bool code_f32(struct codec *c, float *value, const char *field)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    if (!code_u32(c, &bits, field))
        return false;
    memcpy(value, &bits, sizeof bits);
    return true;
}

bool code_u8(struct codec *c, uint8_t *value, const char *field)
{
    return code_bytes(c, value, 1, field);
}

bool code_count(struct codec *c, uint32_t *count, uint32_t limit, const char *field)
{
    return code_u32(c, count, field) && (*count <= limit || code_refuse(c, field, limit, *count));
}

bool code_text(struct codec *c, char *text, uint32_t capacity, const char *field)
{
    uint32_t length = c->mode == READ ? 0 : (uint32_t)strlen(text);
    if (!code_count(c, &length, capacity - 1, field) || !code_bytes(c, text, length, field))
        return false;
    return strlen(text) == length || code_refuse(c, field, strlen(text), length); /* a NUL inside */
}

/* Padding is zero, so that equal programs have equal bytes and every byte of a file means
 * something. */
static bool code_padding(struct codec *c, const char *field)
{
    while (c->at % IMAGE_ALIGNMENT) {
        uint8_t zero = 0;
        if (!code_u8(c, &zero, field) || (zero != 0 && !code_refuse(c, field, 0, zero)))
            return false;
    }
    return true;
}

bool code_image(struct codec *c, const void **image, uint64_t *n_bytes, const char *field)
{
    if (!code_u64(c, n_bytes, field) || !code_padding(c, field) || !has_room(c, *n_bytes, field))
        return false;
    if (c->mode == READ)
        *image = *n_bytes ? c->bytes + c->at : NULL;
    else if (c->mode == WRITE && *n_bytes)
        memcpy(c->bytes + c->at, *image, *n_bytes);
    c->at += *n_bytes;
    return true;
}

bool code_i64(struct codec *c, int64_t *value, const char *field)
{
    uint64_t bits = (uint64_t)*value;
    if (!code_u64(c, &bits, field))
        return false;
    *value = (int64_t)bits;
    return true;
}
