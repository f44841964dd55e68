/* tests/dsl/good.h - tiles, statements and kernels of good.c by name. */
#ifndef TESTS_DSL_GOOD_H
#define TESTS_DSL_GOOD_H

#include "tests/dsl/declarations.h"

enum { Q = 1, K, V, F, I, S0, H, S, A, LI, B, G, W, KW, C, INTER, GATED, QK, P, SUM, N_GOOD };
enum { AT_A, AT_LI, AT_B, AT_G, AT_W, AT_KW, AT_C, AT_INTER, AT_GATED, AT_QK, AT_P, AT_SUM, AT_H };
enum { ROW_GATES, ROW_STATE, ROW_H };

#endif
