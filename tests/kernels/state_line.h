/* tests/kernels/state_line.h - what a line of states.def is, for those who have such lines. */
#ifndef TEGULA_TESTS_STATE_LINE_H
#define TEGULA_TESTS_STATE_LINE_H

#include "states.h"

struct state_case {
    struct spec spec;
    struct contract contract;
};
#define CONTRACT(...)                                                                                                  \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define STATES(variant_, io_, b, nh, t, dqk_, dhv_, forward_, backward_, contract_, ...)                               \
    {{.name = #io_ " B=" #b " NH=" #nh " T=" #t " dqk=" #dqk_ " dhv=" #dhv_ " " forward_ " " #backward_ " " #contract_ \
                   " " #__VA_ARGS__,                                                                                   \
      .variant = variant_,                                                                                             \
      SPEC_SIZES(io_, b, nh, t, dqk_, dhv_),                                                                           \
      .schedule = forward_,                                                                                            \
      .backward = backward_,                                                                                           \
      .has_s0 = true,                                                                                                  \
      __VA_ARGS__},                                                                                                    \
     CONTRACT contract_},
#define NONE         NULL
#define SLOTS        .pool = TG_POOL_SLOTS
#define MOVES        .pool = TG_POOL_MOVES
#define FROM(...)    .read = {__VA_ARGS__}
#define LENGTHS(...) .length = {__VA_ARGS__}
#define COUNTS(...)  .is_counted = true, .count = {__VA_ARGS__}
#define EACH(...)    .pool = TG_POOL_TOKENS, .each = {__VA_ARGS__}
#define CHUNKS(...)  .pool = TG_POOL_CHUNKS, .each = {__VA_ARGS__}
#define TO(...)      .written = {__VA_ARGS__}
#define AT(...)      .read = {__VA_ARGS__}, .written = {__VA_ARGS__}

#endif
