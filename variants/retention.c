/* variants/retention.c - a constant decay for each head, with its gradient (lightning.c: without):
 *
 *     S_t = lambda_h S_{t-1} + k_t v_t^T        h_t = scale S_t^T q_t
 *
 * The caller gives log lambda_h <= 0. RetNet: lambda_h = 1 - 2^(-5-h). Lightning (eq. 10), layer l of n:
 * log lambda_h = -(8 h / NH) (1 - l / n). */
#include "variants/scalar.h"

enum { LOG_LAMBDA = SCALAR_TILES, DLOG_LAMBDA = DPARAMETER, DCHUNK = CHUNK_SUM };

#define VARIANT retention
#define VARIANT_NAME "retention"
#define VARIANT_TITLE "retention: a constant decay of a head"
#define VARIANT_ALIASES "cdecay",
#define GATE_TENSORS [LOG_LAMBDA] = {"log_lambda", TG_F32, TG_IN | TG_NO_BATCH, {0}, TG_DRAWN_LOG_DECAY},
#define LOG2_DECAY TG_MUL(TG_TILE(LOG_LAMBDA), TG_NUM(LOG2_E))
#define GRADIENT_TENSORS                                                                                               \
    [DCHUNK] = {"dchunk", TG_F32, 0, {TG_CHUNK}}, [DLOG_LAMBDA] = {"dlog_lambda", TG_F32, TG_OUT | TG_NO_BATCH, {0}},
#define GATE_GRADIENTS TG_TOTAL_TO(DCHUNK, TG_AT_KV(DA)), TG_TOTAL_TO(DLOG_LAMBDA, DCHUNK),

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    *a = call->in[LOG_LAMBDA][at.head];
    *li = 0;
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    (void)dli;
    call->out[DLOG_LAMBDA][at.head] += da;
}

#include "variants/scalar.inc"
