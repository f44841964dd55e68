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
            address[n++] = l.start + i % 8 * row + i / 8 * l.stride + u * (l.width == 1 ? l.leading : ASYNC_UNIT);
    for (u32 k = 0; k < 16 && m->is_lines_first; k++)
        for (u32 u = 0; u < m->lines / 8; u++)
            address[n++] = l.start + k % 8 * row +
                           (l.width == 1 ? u * l.stride + k / 8 * l.leading
                                         : u % l.width * ASYNC_UNIT + u / l.width * l.leading + k / 8 * l.stride);
    for (u32 i = 0; i < n; i++)
        address[i] = swizzle(&l, address[i]);
    return n;
}

/* -- elements -------------------------------------------------------------------------------- */

typedef u16 halves __attribute__((vector_size(ASYNC_UNIT)));

static halves load_halves(const u8 *from)
{
    halves x;
    memcpy(&x, from, sizeof x);
    return x;
}

#define LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)

/* Element e of unit r becomes element r of row e: three times, the rows are interleaved with those
 * four further on. */
static void transpose(const u8 *const from[8], u16 *to, size_t pitch)
{
    halves x[8], y[8];
    for (u32 r = 0; r < 8; r++)
        x[r] = load_halves(from[r]);
    for (u32 pass = 0; pass < 3; pass++) {
        for (u32 r = 0; r < 4; r++) {
            y[2 * r] = LOW(x[r], x[r + 4]);
            y[2 * r + 1] = HIGH(x[r], x[r + 4]);
        }
        memcpy(x, y, sizeof x);
    }
    for (u32 e = 0; e < 8; e++)
        memcpy(to + e * pitch, &x[e], sizeof x[e]);
}

/* Eight columns as multiply.c wants them: the even ones first. */
static const u32 column_order[8] = {0, 2, 4, 6, 1, 3, 5, 7};

CLONES static void widen(const u16 *from, u32 n, bool is_half, u32 sign, float *to)
{
    for (u32 i = 0; i < n && is_half; i++)
        to[i] = bits_float(float_bits(half_to_float(from[i])) ^ sign);
    for (u32 i = 0; i < n && !is_half; i++)
        to[i] = bits_float((u32)from[i] << 16 ^ sign);
}

/* The hardware does not look at the low 13 bits. */
static float widen_tf32(u32 x, u32 sign)
{
    return bits_float((x & ~0x1fffu) ^ sign);
}

/* A, by rows. */
void matrix_load_a(const struct cta *c, const struct operand_units *units, const struct matrix *m, u32 type, u32 sign,
                   float out[64][16])
{
    u16 raw[64][16];
    for (u32 i = 0; i < units->n && type == TYPE_TF32; i++)
        for (u32 k = 0; k < 4; k++) {
            u32 x;
            memcpy(&x, c->shared + units->offset[i] + 4 * k, sizeof x);
            out[i / 2][i % 2 * 4 + k] = widen_tf32(x, sign);
        }
    if (type == TYPE_TF32)
        return;
    for (u32 i = 0; i < units->n && !m->is_lines_first; i++)
        memcpy(&raw[i / 2][i % 2 * 8], c->shared + units->offset[i], ASYNC_UNIT);
    for (u32 i = 0; i < 16 && m->is_lines_first; i++) {
        const u8 *from[8];
        for (u32 k = 0; k < 8; k++)
            from[k] = c->shared + units->offset[(i / 8 * 8 + k) * 8 + i % 8];
        transpose(from, &raw[i % 8 * 8][i / 8 * 8], 16);
    }
    widen(raw[0], 64 * 16, type == TYPE_F16, sign, out[0]);
}

/* B, by steps, each eight columns in their order. */
void matrix_load_b(const struct cta *c, const struct operand_units *units, const struct matrix *m, u32 type, u32 sign,
                   float out[16][256])
{
    u16 raw[16][256];
    for (u32 i = 0; i < units->n && type == TYPE_TF32; i++)
        for (u32 k = 0; k < 4; k++) {
            u32 x;
            memcpy(&x, c->shared + units->offset[(i / 16 * 8 + column_order[i / 2 % 8]) * 2 + i % 2] + 4 * k, sizeof x);
            out[i % 2 * 4 + k][i / 2] = widen_tf32(x, sign);
        }
    if (type == TYPE_TF32)
        return;
    for (u32 i = 0; i < units->n && m->is_lines_first; i++) {
        const halves x = load_halves(c->shared + units->offset[i]),
                     y = __builtin_shufflevector(x, x, 0, 2, 4, 6, 1, 3, 5, 7);
        memcpy(&raw[i / (m->lines / 8)][i % (m->lines / 8) * 8], &y, sizeof y);
    }
    for (u32 i = 0; i < m->lines / 4 && !m->is_lines_first; i++) {
        const u8 *from[8];
        for (u32 k = 0; k < 8; k++)
            from[k] = c->shared + units->offset[(i / 2 * 8 + column_order[k]) * 2 + i % 2];
        transpose(from, &raw[i % 2 * 8][i / 2 * 8], 256);
    }
    for (u32 k = 0; k < 16; k++)
        widen(raw[k], m->lines, type == TYPE_F16, sign, out[k]);
}
