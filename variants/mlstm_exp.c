/* variants/mlstm_exp.c - mLSTM with exponential input gate (TFLA paper, section 2):
 *
 *     m_t = max(log sigmoid(f_t) + m_{t-1}, i_t)      f'_t = sigmoid(f_t) e^(m_{t-1} - m_t)      i'_t = e^(i_t - m_t)
 *     C_t = f'_t C_{t-1} + i'_t k_t v_t^T             n_t = f'_t n_{t-1} + i'_t k_t
 *     h_t = scale C_t^T q_t / (max(|scale q_t.n_t|, e^-m_t) + eps)
 *
 * Gradients are exact by default. With the scalar exact = 0 they follow the paper: the denominator is a constant (which
 * is the same when h goes into a norm of the head that ignores its scale). */
#include "variants/mlstm_gates.h"

#define VARIANT mlstm_exp
#define VARIANT_NAME "mlstm-exp"
#define VARIANT_TITLE "mLSTM with exponential input gate, normaliser and max state (TFLA, arXiv 2503.14376)"
#define VARIANT_ALIASES "mlstmexp",
#define NORMALISED
#define MAX_STATE
#define SCALARS {"eps", 0}, {"exact", 1}
#define INPUT_DRAWN TG_DRAWN_LOG_LET_IN
#define LOG2_INPUT TG_MUL(TG_KV(I), TG_NUM(LOG2_E))
#define INPUT_GRADIENT(dli) dli

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    *a = log_sigmoid(call->in[F][at.gate]);
    *li = call->in[I][at.gate];
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    call->out[DF][at.gate] += da / (1 + exp(call->in[F][at.gate]));
    call->out[DI][at.gate] += dli;
}

#include "variants/scalar.inc"
