/* variants/mamba2.c - Mamba-2's state-space duality (Dao & Gu 2024):
 *
 *     dt_t = softplus(dt_raw_t + dt_bias_h)      a_t = -exp(A_log_h) dt_t
 *     S_t = e^{a_t} S_{t-1} + dt_t B_t x_t^T     h_t = S_t^T C_t + D_h x_t
 *
 * B is the key, C the query, x the value; B and C may be shared by the heads of a group. dt is the input gate, so that
 * B and x stay unmodified operands. */
#include "variants/scalar.h"

#include <math.h>

enum {
    DT_RAW = SCALAR_TILES, DT_BIAS, A_LOG, D, Z, DT, AH, DAT,
    D_DT_RAW = DGATE, D_DT_BIAS = DPARAMETER, D_A_LOG, D_SKIP,
    SUM_DT = CHUNK_SUM, SUM_A, XH = SKIPPED, SUM_X
};

#define VARIANT mamba2
#define VARIANT_NAME "mamba2"
#define VARIANT_TITLE "Mamba-2 SSD (arXiv 2405.21060)"
#define VARIANT_ALIASES "ssd", "ssd_grouped",
#define QUERY "Cm"
#define KEY "Bm"
#define VALUE "x"
#define SCALE 1
#define SKIP D
#define PARAMETER(name_, flags_, drawn_) {name_, TG_F32, (flags_) | TG_NO_BATCH, {0}, drawn_}
#define GATE_TENSORS                                                                                                   \
    [DT_RAW] = {"dt_raw", TG_F32, TG_IN, {TG_T}, TG_DRAWN_STEP}, [DT_BIAS] = PARAMETER("dt_bias", TG_IN, TG_DRAWN_SMALL),         \
    [A_LOG] = PARAMETER("A_log", TG_IN, TG_DRAWN_LOG_RATE), [D] = PARAMETER("D", TG_IN, TG_DRAWN_NEAR_ONE),            \
    [Z] = {"z", TG_F32, 0, {TG_T}}, [DT] = {"dt", TG_F32, 0, {TG_T}}, [AH] = PARAMETER("ah", 0, 0),
#define GATES                                                                                                          \
    TG_MAP_TO(AH, TG_NEG(TG_EXP2(TG_MUL(TG_TILE(A_LOG), TG_NUM(LOG2_E))))),                                            \
    TG_MAP_TO(TG_AT_KV(Z), TG_ADD(TG_KV(DT_RAW), TG_TILE(DT_BIAS))),                                                   \
    TG_MAP_TO(TG_AT_KV(DT), TG_MAX(TG_SOFTPLUS(TG_KV(Z)), TG_NUM(1e-37f))),
#define LOG2_DECAY TG_MUL(TG_MUL(TG_KV(DT), TG_TILE(AH)), TG_NUM(LOG2_E))
#define LOG2_INPUT TG_LOG2(TG_KV(DT))
#define GRADIENT_TENSORS                                                                                               \
    [D_DT_RAW] = {"ddt_raw", TG_F32, TG_OUT, {TG_T}}, [D_DT_BIAS] = PARAMETER("ddt_bias", TG_OUT, 0),                      \
    [D_A_LOG] = PARAMETER("dA_log", TG_OUT, 0), [D_SKIP] = PARAMETER("dD", TG_OUT, 0), [DAT] = {"dat", TG_F32, 0, {TG_T}},    \
    [SUM_DT] = {"sum_dt", TG_F32, 0, {TG_CHUNK}}, [SUM_A] = {"sum_a", TG_F32, 0, {TG_CHUNK}},                           \
    [XH] = {"xh", TG_F32, 0, {TG_T}}, [SUM_X] = {"sum_x", TG_F32, 0, {TG_CHUNK}},
#define GATE_GRADIENTS                                                                                                 \
    TG_CONTRACT_TO(TG_AT_KV(XH), TG_AT_KV(V), TG_AT_KV(DH)),                                                            \
    TG_MAP_TO(TG_AT_KV(D_DT_RAW), TG_MUL(TG_ADD(TG_MUL(TG_KV(DA), TG_TILE(AH)), TG_DIV(TG_KV(DLI), TG_KV(DT))),        \
                                         TG_SIGMOID(TG_KV(Z)))),                                                       \
    TG_MAP_TO(TG_AT_KV(DAT), TG_MUL(TG_MUL(TG_KV(DA), TG_TILE(AH)), TG_KV(DT))),                                       \
    TG_TOTAL_TO(SUM_DT, TG_AT_KV(D_DT_RAW)), TG_TOTAL_TO(SUM_A, TG_AT_KV(DAT)), TG_TOTAL_TO(SUM_X, TG_AT_KV(XH)),       \
    TG_TOTAL_TO(D_DT_BIAS, SUM_DT), TG_TOTAL_TO(D_A_LOG, SUM_A), TG_TOTAL_TO(D_SKIP, SUM_X),

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void gate(const tg_oracle_call *call, struct scalar_token at, double *a, double *li)
{
    const double dt = softplus(call->in[DT_RAW][at.gate] + call->in[DT_BIAS][at.head]);
    *a = -exp(call->in[A_LOG][at.head]) * dt;
    *li = log(dt);
}

static void gate_back(const tg_oracle_call *call, struct scalar_token at, double da, double dli)
{
    const double z = call->in[DT_RAW][at.gate] + call->in[DT_BIAS][at.head], dt = softplus(z), ah = -exp(call->in[A_LOG][at.head]);
    const double dz = dt > 0 ? (da * ah + dli / dt) / (1 + exp(-z)) : 0; /* a masked token: sigmoid(z) is 0 */
    call->out[D_DT_RAW][at.gate] += dz;
    call->out[D_DT_BIAS][at.head] += dz;
    call->out[D_A_LOG][at.head] += da * ah * dt;
}

#include "variants/scalar.inc"
