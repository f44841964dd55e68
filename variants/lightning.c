/* variants/lightning.c - retention whose decays are fixed, not learned: Lightning Attention, TransNormerLLM, RetNet as
 * they are trained:
 *
 *     S_t = lambda_h S_{t-1} + k_t v_t^T        h_t = scale S_t^T q_t
 *
 * No gradient of log lambda_h <= 0 is asked for, so none of the sums that it is made of are computed: a third of the
 * products of dQ and dK. Lightning (eq. 10), layer l of n: log lambda_h = -(8 h / NH) (1 - l / n). */
#include "variants/scalar.h"

enum { LOG_LAMBDA = SCALAR_TILES };

#define VARIANT lightning
#define VARIANT_NAME "lightning"
#define VARIANT_TITLE "Lightning attention, RetNet: a fixed decay of a head"
#define GATE_TENSORS [LOG_LAMBDA] = {"log_lambda", TG_F32, TG_IN | TG_NO_BATCH, {0}, TG_DRAWN_LOG_DECAY},
#define LOG2_DECAY TG_MUL(TG_TILE(LOG_LAMBDA), TG_NUM(LOG2_E))

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    *a = call->in[LOG_LAMBDA][at.head];
    *li = 0;
}

#include "variants/scalar.inc"
