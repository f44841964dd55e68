/* variants/mlstm_sig_norm.c - mLSTM with sigmoid input gate and normaliser:
 *
 *     C_t = sigmoid(f_t) C_{t-1} + sigmoid(i_t) k_t v_t^T      n_t = sigmoid(f_t) n_{t-1} + sigmoid(i_t) k_t
 *     h_t = scale C_t^T q_t / (max(|scale q_t.n_t|, 1) + eps) */
#include "variants/mlstm_gates.h"

#define VARIANT mlstm_sig_norm
#define VARIANT_NAME "mlstm-sig-norm"
#define VARIANT_TITLE "mLSTM with sigmoid input gate and normaliser"
#define VARIANT_ALIASES "mlstmsign",
#define NORMALISED
#define SCALARS {"eps", 0}, {"exact", 1}
#define INPUT_DRAWN TG_DRAWN_LET_IN
#define LOG2_INPUT TG_LOGSIG2(TG_KV(I))
#define INPUT_GRADIENT(dli) TG_MUL(dli, TG_SIGMOID(TG_NEG(TG_KV(I))))

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    *a = log_sigmoid(call->in[F][at.gate]);
    *li = log_sigmoid(call->in[I][at.gate]);
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    call->out[DF][at.gate] += da / (1 + exp(call->in[F][at.gate]));
    call->out[DI][at.gate] += dli / (1 + exp(call->in[I][at.gate]));
}

#include "variants/scalar.inc"
