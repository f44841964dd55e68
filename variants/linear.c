/* variants/linear.c - linear attention without decay (Katharopoulos et al. 2020):
 *
 *     S_t = S_{t-1} + k_t v_t^T        h_t = scale S_t^T q_t */
#include "variants/scalar.h"

#define VARIANT linear
#define VARIANT_NAME "linear"
#define VARIANT_TITLE "linear attention, no decay"
#define VARIANT_ALIASES "la",

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    (void)call;
    (void)at;
    *a = *li = 0;
}

#include "variants/scalar.inc"
