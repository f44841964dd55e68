/* tests/interpreter_states.h - variants with what no built-in variant has, and their oracles: a state that decays by
 * channel, one that is read before the statement that carries it, exclusive scans over positions. */
#ifndef TEGULA_TESTS_INTERPRETER_STATES_H
#define TEGULA_TESTS_INTERPRETER_STATES_H

#include "dsl/tegula.h"

extern const tg_variant channel_variant; /* S_t = e^{g_t} o S_{t-1} + k_t v_t^T, g_t of [dqk] */
extern const tg_variant delta_variant;   /* S_t = S_{t-1} + k_t (v_t - S_{t-1}^T k_t)^T; right in chunks of one token */
extern const tg_variant prefix_variant;  /* sum and maximum of what was before the token; right in one chunk */
extern const tg_algorithm circular;      /* a state that depends on the sum of itself over all chunks */

#endif
