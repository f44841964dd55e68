/* matrix_units.c - wgmma's matrices in shared memory: where a descriptor puts their units of 16
 * bytes.
 *
 * The canonical layouts of the PTX ISA, in units, with W units to a swizzled row (1 without
 * swizzle), LBO and SBO the descriptor's two offsets; "unit u" is 8 elements of 2 bytes, or 4 of 4:
 *   K-major    line l, unit u along the sum:  l % 8 rows of W, l / 8 of SBO; u units (of LBO if W
 * is 1) MN-major   unit u along the lines, step k of the sum: W > 1   u % W units, u / W of LBO; k
 * % 8 rows of W, k / 8 of SBO W = 1   u of SBO; k % 8 rows, k / 8 of LBO The swizzle then works on
 * the address, as in box.c. */
#include "float_bits.h"
#include "hopper.h"

struct layout {
    u32 start, leading, stride, base, width;
};

static struct layout decode(u64 descriptor)
{
    static const u32 widths[] = {1, 8, 4, 2};
    return (struct layout){.start = (u32)(descriptor & 0x3fff) << 4,
                           .leading = (u32)(descriptor >> 16 & 0x3fff) << 4,
                           .stride = (u32)(descriptor >> 32 & 0x3fff) << 4,
                           .base = (u32)(descriptor >> 49 & 7),
                           .width = widths[descriptor >> 62]};
}

static u32 swizzle(const struct layout *l, u32 address)
{
    return address ^ ((((address >> 7) - l->base) & (l->width - 1)) << 4);
}

/* Addresses of all units: K-major those of line 0, of line 1 ..; MN-major those of step 0 .. Their
 * number. */
u32 matrix_units(const struct matrix *m, u32 *address)
{
    const struct layout l = decode(m->descriptor);
    const u32 row = ASYNC_UNIT * l.width;
    u32 n = 0;
    for (u32 i = 0; i < m->lines && !m->is_lines_first; i++)
        for (u32 u = 0; u < 2; u++)
            address[n++] = l.start + i % 8 * row + i / 8 * l.stride +
                           u * (l.width == 1 ? l.leading : ASYNC_UNIT);
    for (u32 k = 0; k < 16 && m->is_lines_first; k++)
        for (u32 u = 0; u < m->lines / 8; u++)
            address[n++] = l.start + k % 8 * row +
                           (l.width == 1 ? u * l.stride + k / 8 * l.leading
                                         : u % l.width * ASYNC_UNIT + u / l.width * l.leading +
                                               k / 8 * l.stride);
    for (u32 i = 0; i < n; i++)
        address[i] = swizzle(&l, address[i]);
    return n;
}

static void load_unit(const u8 *from, u32 type, float sign, float *out)
{
    u16 half[8];
    u32 word[4];
    memcpy(half, from, ASYNC_UNIT);
    memcpy(word, from, ASYNC_UNIT);
    for (u32 i = 0; i < 4 && type == TYPE_TF32; i++)
        out[i] = sign * bits_float(word[i] & ~0x1fffu);
    for (u32 i = 0; i < 8 && type == TYPE_BF16; i++)
        out[i] = sign * bits_float((u32)half[i] << 16);
    for (u32 i = 0; i < 8 && type == TYPE_F16; i++)
        out[i] = sign * half_to_float(half[i]);
}

/* The elements, line by line or step by step, as they lie; rows of out are `pitch` apart. */
void matrix_load(const struct cta *c, const struct matrix *m, u32 type, bool is_negated, float *out,
                 u32 pitch)
{
    u32 address[MATRIX_UNITS];
    const u32 n = matrix_units(m, address), per_row = m->is_lines_first ? m->lines / 8 : 2,
              elements = type == TYPE_TF32 ? 4 : 8;
    for (u32 i = 0; i < n; i++)
        load_unit(c->shared + (address[i] - SHARED_BASE), type, is_negated ? -1.0f : 1.0f,
                  out + (size_t)(i / per_row) * pitch + i % per_row * elements);
}
