/* program/piece.h - a call that is taken in pieces (tg_program.pieces), for runtime/ and tests. */
#ifndef TEGULA_PIECE_H
#define TEGULA_PIECE_H

#include "program/program.h"

#include <stdbool.h>

struct piece {
    tg_sizes sizes;       /* those of the call, but for the tokens */
    int64_t first, chunk; /* the first chunk; the chunk size, which is the call's however short the piece is */
    bool is_last;
};

/* The first chunk behind so many pieces. */
static inline int64_t piece_begin(int64_t chunks, int64_t pieces, int64_t i)
{
    const int64_t left = pieces - i;
    return chunks - chunks * left * (left + 1) / (pieces * (pieces + 1));
}

/* How many there are at most; a call that `is_whole` is one. */
static inline uint32_t piece_count(const tg_program *program, bool is_whole)
{
    return program->pieces > 1 && !is_whole ? program->pieces : 1;
}

/* Piece `i` of so many; false: there is none of its chunks. */
static inline bool piece_of(const tg_program *program, const tg_sizes *sizes, uint32_t pieces, uint32_t i,
                            struct piece *piece)
{
    const int64_t chunks = tg_size_value(program, sizes, TG_SIZE_CHUNKS);
    const int64_t chunk = tg_size_value(program, sizes, TG_SIZE_CHUNK);
    const int64_t end = piece_begin(chunks, pieces, i + 1);
    *piece = (struct piece){
        .sizes = *sizes, .first = piece_begin(chunks, pieces, i), .chunk = chunk, .is_last = end == chunks};
    if (pieces == 1)
        return true;
    piece->sizes.tokens = (piece->is_last ? sizes->tokens : end * chunk) - piece->first * chunk;
    return piece->first < end;
}

static inline int64_t piece_size(const tg_program *program, const struct piece *piece, uint32_t size)
{
    return size == TG_SIZE_FIRST   ? piece->first
           : size == TG_SIZE_CHUNK ? piece->chunk
                                   : tg_size_value(program, &piece->sizes, size);
}

/* The kernel's grid, which tg_sizes_check has found small enough. */
static inline int64_t piece_blocks(const tg_program *program, const struct piece *piece, const tg_kernel *kernel)
{
    int64_t blocks = 1;
    for (uint32_t i = 0; i < kernel->n_grid; i++) {
        const tg_term *term = &kernel->grid[i];
        blocks *= (piece_size(program, piece, term->size) + term->div - 1) / term->div * term->mul;
    }
    return blocks;
}

#endif
