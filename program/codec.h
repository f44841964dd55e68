/* program/codec.h - values as bytes and back, for the fields of a bundle (bundle.c): each function measures, writes or reads
 * one, as the codec's mode says, so that one description of the fields serves all three. Integers are little endian.
 * False after a message that names the field, its place, what was expected and what was found. */
#ifndef TEGULA_CODEC_H
#define TEGULA_CODEC_H

#include "program/program.h"

#include <stdbool.h>

enum mode { MEASURE, WRITE, READ };

struct codec {
    enum mode mode;
    uint8_t *bytes;  /* to write or to read; not looked at when measuring */
    size_t size, at; /* at <= size always */
    const tg_sink *sink;
};

bool code_bytes(struct codec *c, void *data, size_t n, const char *field);
bool code_u8(struct codec *c, uint8_t *value, const char *field);
bool code_u16(struct codec *c, uint16_t *value, const char *field);
bool code_u32(struct codec *c, uint32_t *value, const char *field);
bool code_u64(struct codec *c, uint64_t *value, const char *field);
bool code_i64(struct codec *c, int64_t *value, const char *field);
bool code_f32(struct codec *c, float *value, const char *field);
/* A count guards the array that follows, so its limit is checked here and not only by verify. */
bool code_count(struct codec *c, uint32_t *count, uint32_t limit, const char *field);
/* A length and its bytes; `text` holds `capacity` with the NUL, and is zero before it is read. */
bool code_text(struct codec *c, char *text, uint32_t capacity, const char *field);
/* A length and its bytes at a multiple of 16. When reading, the image stays where it is: the program owns the buffer. */
bool code_image(struct codec *c, const void **image, uint64_t *n_bytes, const char *field);
/* Reports a value beyond its limit; yields false. */
bool code_refuse(const struct codec *c, const char *field, uint64_t expected, uint64_t found);

uint64_t get_little(const uint8_t *bytes, size_t width);
void put_little(uint8_t *bytes, size_t width, uint64_t value);

#endif
