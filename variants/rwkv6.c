/* variants/rwkv6.c - RWKV-6 (arXiv 2404.05892): a token reads the state before it is written, and of itself as much as
 * a bonus of its key dimensions says:
 *
 *     h_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T q_t        S_t = diag(e^{-e^{w_t}}) S_{t-1} + k_t v_t^T
 *
 * So queries have the sum of log decays before their token, products are of tokens strictly before, and the bonus, u.(q o k), is a
 * number of the token by which its own value is added. Gradients of log decays are as in vector.inc, but that of a token has
 * no part of q o dq of the token itself. */
#include "variants/vector.h"

#include <math.h>

enum { RAW = VECTOR_TILES, DRAW = DGATE };

#define VARIANT rwkv6
#define VARIANT_NAME "rwkv6"
#define VARIANT_TITLE "RWKV-6: reads before it writes, with a bonus (arXiv 2404.05892)"
#define VARIANT_ALIASES
#define SCALARS
#define GATE_TENSORS [RAW] = {"w", TG_F32, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_STEP},
#define GATES                                                                                                          \
    TG_MAP_TO(TG_AT_KV(A),                                                                                             \
              TG_MAX(TG_MUL(TG_EXP2(TG_MUL(TG_KV(RAW), TG_NUM(LOG2_E))), TG_NUM(-LOG2_E)), TG_NUM(LEAST_LOG2))),
#define GRADIENT_TENSORS [DRAW] = {"dw", TG_F32, TG_OUT, {TG_T, TG_DQK}},
/* Of a decay that counts as LEAST_LOG2 there is no gradient: nothing is left of what it weights. */
#define GATE_GRADIENTS                                                                                                 \
    TG_MAP_TO(TG_AT_KV(DRAW), TG_MUL(TG_MUL(TG_KV(DA), TG_MUL(TG_KV(A), TG_NUM(1 / LOG2_E))),                          \
                                     TG_STEP(TG_SUB(TG_KV(A), TG_NUM(LEAST_LOG2))))),

#define READ BE
#define SCALE_IS 1
#define READS_BEFORE true
#define PAIR_TO TG_CONTRACT_DECAY_BEFORE_TO
#define SPREAD_ONTO TG_CONTRACT_DECAY_BEFORE_ONTO
#define OF_CHANNEL(name_, flags_) {name_, TG_F32, (flags_) | TG_NO_BATCH, {TG_DQK}}
#define READ_TENSORS                                                                                                   \
    [U] = OF_CHANNEL("u", TG_IN), [BE] = {"be", TG_F32, 0, {TG_T, TG_DQK}}, [UQ] = {"uq", TG_F32, 0, {TG_T, TG_DQK}},   \
    [BONUS] = {"bonus", TG_F32, 0, {TG_T}},
#define READ_GRADIENT_TENSORS                                                                                          \
    [VDH] = {"vdh", TG_F32, 0, {TG_T}}, [UT] = {"ut", TG_F32, 0, {TG_T, TG_DQK}},                                       \
    [SUM_U] = {"sum_u", TG_F32, 0, {TG_CHUNK, TG_DQK}}, [DU] = OF_CHANNEL("du", TG_OUT),
#define READ_STATEMENTS                                                                                                \
    , {.op = TG_STMT_SCAN, .flags = TG_EXCLUSIVE, .out = TG_AT_KV(BE), .a = TG_AT_KV(A), TG_HERE},                      \
    TG_MAP_TO(TG_AT_KV(UQ), TG_MUL(TG_MUL(TG_KV(Q), TG_TILE(U)), TG_SCALE)),                                           \
    TG_CONTRACT_TO(TG_AT_KV(BONUS), TG_AT_KV(UQ), TG_AT_KV(K))
#define READ_BACK_STATEMENTS TG_CONTRACT_TO(TG_AT_KV(VDH), TG_AT_KV(V), TG_AT_KV(DH)),
#define READ_GRADIENTS                                                                                                 \
    TG_MAP_TO(TG_AT_KV(UT), TG_MUL(TG_MUL(TG_KV(VDH), TG_SCALE), TG_MUL(TG_KV(Q), TG_KV(K)))),                         \
    TG_TOTAL_TO(SUM_U, TG_AT_KV(UT)),                                                                                  \
    TG_TOTAL_TO(DU, SUM_U),
#define WITH_OWN(sum, own) TG_ADD(sum, own)
#define DQ_OF_STATE TG_Q(DQS)
#define DK_OF_STATE TG_KV(DKS)
#define OF_LATER(sum) TG_SUB(sum, TG_KV(QDQ))

static double gate(const tg_oracle_call *call, int64_t at)
{
    return -exp(call->in[RAW][at]);
}

static void gate_back(const tg_oracle_call *call, int64_t at, double da, double dk)
{
    (void)dk;
    if (call->out[DRAW])
        call->out[DRAW][at] = da * gate(call, at);
}

#include "variants/vector.inc"
