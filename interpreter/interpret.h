/* interpreter/interpret.h - what the interpreter's files share. Internal.
 *
 * A tile is evaluated by instances: its elements of one sequence, head and chunk. An instance is evaluated when it is
 * first needed, and kept; the order of the statements does not matter. */
#ifndef TEGULA_INTERPRETER_INTERPRET_H
#define TEGULA_INTERPRETER_INTERPRET_H

#include "dsl/slice.h"
#include "interpreter/interpreter.h"

#include <math.h>

/* Inside an instance: positions of query and key, elements of dqk and dhv. */
enum inner { BY_Q, BY_KV, BY_DQK, BY_DHV, N_INNER };

struct place {
    int64_t sequence, head, chunk;
};

/* An instance: its first element, and how far apart neighbours are; 0 along what it lacks. */
struct view {
    double *at;
    int64_t stride[N_INNER];
};

/* How many elements; 1 along what nobody has. */
struct extent {
    int64_t n[N_INNER];
};

struct tile {
    const tg_tensor *tensor;
    const tg_stmt *stmt; /* that writes it; NULL: an input, or nothing */
    double *data;        /* the caller's or our own; NULL: absent, or not yet allocated */
    uint8_t *state;      /* of its instances */
    bool is_own, has_tokens, has_chunks;
    int64_t sequences, heads, n; /* entries, elements */
    int64_t by_chunk, by_token;  /* strides */
    int64_t stride[N_INNER];
};

struct machine {
    const tg_interpretation *what;
    const tg_oracle_call *call;
    const tg_sink *sink;
    int64_t slots; /* entries along TG_CHUNK */
    tg_status status;
    uint64_t n_rounded;
    struct tile tiles[TG_MAX_TILES];
};

/* ---- interpret.c ---- */

/* The instance of the operand at this place, evaluated; of no operand, and after a failure, a zero. */
struct view view_of(struct machine *m, tg_operand operand, struct place place);
int64_t chunks_of(const struct machine *m, int64_t sequence);
/* What the operands have together; one that is 0 has nothing. */
struct extent extent_of(const struct machine *m, const tg_operand *operands, uint32_t n, struct place place);

/* From one element to the next: all zeros, then as long as it says true. */
static inline bool next_element(int64_t at[N_INNER], const struct extent *extent)
{
    for (int d = N_INNER; d-- > 0; at[d] = 0)
        if (++at[d] < extent->n[d])
            return true;
    return false;
}

static inline double *element_of(struct view view, const int64_t at[N_INNER])
{
    double *element = view.at;
    for (int d = 0; d < N_INNER; d++)
        element += at[d] * view.stride[d];
    return element;
}

static inline double kept(const struct machine *m, double value)
{
    return fabs(value) < m->what->least ? 0 : value;
}

/* ---- statements.c, expression.c ---- */

/* Writes one instance of `tile`, the statement's out or final_. */
void evaluate(struct machine *m, const tg_stmt *stmt, uint32_t tile, struct view out, struct place place);
void evaluate_map(struct machine *m, const tg_stmt *stmt, struct view out, struct place place);
/* NaN if either is one. */
double larger(double a, double b);

#endif
