/* tests/dsl/forms.h - tiles, statements and kernels of forms.c by name. */
#ifndef TESTS_DSL_FORMS_H
#define TESTS_DSL_FORMS_H

#include "tests/dsl/declarations.h"

enum {
    X_Q = 1,
    X_K,
    X_V,
    X_F,
    X_BIAS,
    X_GAIN,
    X_S0,
    X_N0,
    X_UNUSED, /* a number without a tensor */
    X_H,
    X_S,
    X_DB,
    X_DK,
    X_M,
    X_A,
    X_B,
    X_BX,
    X_MX,
    X_G,
    X_GM,
    X_GS,
    X_GX,
    X_W,
    X_KW,
    X_C,
    X_NK,
    X_N,
    X_Z,
    X_YX,
    X_QN,
    X_QK,
    X_P,
    X_RS,
    X_INTER,
    X_SUM,
    X_DEN,
    X_E,
    X_TE,
    X_DKH,
    N_FORMS
};
enum {
    IS_A,
    IS_B,
    IS_BX,
    IS_MX,
    IS_G,
    IS_GM,
    IS_GS,
    IS_GX,
    IS_M,
    IS_W,
    IS_KW,
    IS_C,
    IS_NK,
    IS_N,
    IS_Z,
    IS_YX,
    IS_QN,
    IS_QK,
    IS_P,
    IS_RS,
    IS_INTER,
    IS_SUM,
    IS_DEN,
    IS_H,
    IS_E,
    IS_TE,
    IS_DB,
    IS_DKH,
    IS_DK
};
enum { FORM_GATES, FORM_SCAN, FORM_STATE, FORM_NORM, FORM_Y, FORM_H, FORM_DK, FORM_DB };

#endif
