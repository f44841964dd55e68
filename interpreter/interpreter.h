/* interpreter/interpreter.h - what an algorithm means: its statements, evaluated one element after the other in fp64,
 * without schedule, blocks or threads. Every kernel of the algorithm must compute this, up to rounding. No LLVM, no GPU.
 *
 * A call has `batch` sequences of `heads` heads, each cut into chunks of `chunk` tokens; the last chunk of a sequence
 * has what is left, and a sequence without tokens has no chunk. Where the algorithm has no tile that shows it, the
 * results do not depend on `chunk`.
 *
 *   elements    A tile has an element for every sequence (not TG_NO_BATCH: one for all), every head (TG_SHARED: one for
 *               a group of neighbours) and along its axes. TG_T: every token; an operand at TG_LQ or TG_LKV is the part
 *               of it in the chunk at hand. TG_CHUNK: every chunk. TG_LQ, TG_LKV: every position of the chunk that there
 *               is, and then the tile has an entry a chunk, too. A statement is evaluated for each sequence, head and
 *               chunk that its result has; an operand without one of these axes is the same for all of them.
 *   MAP         each element of the result by itself. A number is the float that is written. TG_X_MAX and TG_X_MIN are
 *               NaN where an operand is. TG_X_CAUSAL and TG_X_BEFORE compare the positions of query and key in the chunk.
 *   SCAN        over the positions of each chunk, from its first one; or over the chunks of the sequence, with
 *               TG_REVERSE from the last one. Of nothing: 0, with TG_MAXIMUM -1e30.
 *   TOTAL       over positions of the chunk, chunks of the sequence, sequences, heads of the group: those that a has and
 *               out lacks. Of nothing as above.
 *   CONTRACT    init plus the sum of products over the axes of a and b that out lacks; with a decay, of the pairs of
 *               positions i >= j (TG_EXCLUSIVE: i > j), each product times 2^(decay_i - since_j).
 *   SOLVE       the inverse of I plus what of a is below the diagonal, over the positions of the chunk that there are.
 *   SHIFT       out is a of the token before, in the sequence, with TG_REVERSE of the one behind; of the first (last) token it
 *               is init. Final is a of the last (first) token; of a sequence without tokens init. Without a: of zeros.
 *   CARRY       out at the first chunk, with TG_REVERSE the last one, is init; at the next one 2^decay times that plus
 *               the sum of products. What is after all chunks is final; of a sequence without tokens that is init. The
 *               result may be read by statements before it, as long as no chunk of it depends on itself.
 *
 * Absent optional inputs are zeros. Packed sequences (cuts) lie one behind the other along TG_T and, in runs of their
 * own, along TG_CHUNK: those of sequence s begin at entry cuts[s] / chunk + s of tokens / chunk + batch. Element types
 * are not simulated: `round` may do so. */
#ifndef TEGULA_INTERPRETER_H
#define TEGULA_INTERPRETER_H

#include "../dsl/tegula.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tg_interpretation {
    const tg_algorithm *algorithm;
    const tg_oracle_call *call; /* as an oracle gets it: inputs that are NULL are absent, outputs not wanted */
    int64_t chunk;              /* tokens of a chunk, >= 1 */
    /* What becomes of each element that a statement has computed, before anything reads it: a rounding, or a small
     * error whose effect is to be known. NULL: nothing. `element` counts from 0 in the order of the evaluation. */
    double (*round)(void *user, uint32_t tile, uint64_t element, double value);
    /* ... and what a product takes in place of an element of a state, which is carried on as it is. `element` counts from the first one of
     * the tile. NULL: the element. */
    double (*operand)(void *user, uint32_t tile, uint64_t element, double value);
    void *user;
    /* What is computed and nearer to zero than this is zero, inside expressions and decayed products too: exponents of
     * fp32 have fewer bits. 0: nothing is. */
    double least;
} tg_interpretation;

/* Writes the outputs that the call wants; what no chunk writes is left as it is. The same arguments give the same bits.
 * Checks the algorithm first (TG_E_DECLARATION); TG_E_ARGUMENT for a call that cannot be, TG_E_MEMORY without memory
 * for the intermediates. The outputs are then undefined. */
TG_API tg_status tg_interpret(const tg_interpretation *interpretation, const tg_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
