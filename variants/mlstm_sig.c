/* variants/mlstm_sig.c - mLSTM with sigmoid input gate and no normaliser (TFLA paper, section 2 and eq. 28-30).
 *
 *     C_t = sigmoid(f_t) C_{t-1} + sigmoid(i_t) k_t v_t^T        h_t = scale C_t^T q_t
 *
 * Chunkwise, with a = log2 sigmoid(f), b its prefix sum inside the chunk and g the sum over the chunk:
 * every exponent below is <= 0, for any gate. */
#include "variants/variants.h"

#include <math.h>
#include <stdlib.h>

enum { Q = 1, K, V, F, I, S0, H, S, A, LI, B, G, W, KW, C, QK, P, INTER, GATED, N_TILES };

static const tg_tensor tensors[N_TILES] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [F] = {"f", TG_F32, TG_IN, {TG_T}},
    [I] = {"i", TG_F32, TG_IN, {TG_T}},
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [H] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [S] = {"S", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [A] = {"a", TG_F32, 0, {TG_T}},
    [LI] = {"li", TG_F32, 0, {TG_T}},
    [B] = {"b", TG_F32X2, 0, {TG_T}},
    [G] = {"g", TG_F32X2, 0, {TG_CHUNK}},
    [W] = {"w", TG_F32, 0, {TG_T}},
    [KW] = {"kw", TG_F32, 0, {TG_T, TG_DQK}},
    [C] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [QK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [INTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [GATED] = {"gated", TG_F32, 0, {TG_T, TG_DHV}},
};

static const tg_stmt body[] = {
    /* gates, eq. 29: in log2 space; b is a cumulative sum inside the chunk */
    TG_MAP_TO(TG_AT_KV(A), TG_GET(TG_AT_KV(F)), TG_LOGSIG2),
    TG_MAP_TO(TG_AT_KV(LI), TG_GET(TG_AT_KV(I)), TG_LOGSIG2),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(G, TG_AT_KV(A)),
    /* state, eq. 28: weight of token j in the state that leaves the chunk */
    TG_MAP_TO(TG_AT_KV(W), TG_GET(G), TG_GET(TG_AT_KV(B)), TG_SUB, TG_GET(TG_AT_KV(LI)), TG_ADD, TG_EXP2),
    TG_MAP_TO(TG_AT_KV(KW), TG_GET(TG_AT_KV(K)), TG_GET(TG_AT_KV(W)), TG_MUL),
    TG_CARRY_TO(C, S, S0, G, TG_AT_KV(KW), TG_AT_KV(V)),
    /* H, eq. 30: what arrives from before the chunk, then the causal part inside it */
    TG_CONTRACT_TO(TG_AT_Q(INTER), TG_AT_Q(Q), C),
    TG_MAP_TO(TG_AT_Q(GATED), TG_GET(TG_AT_Q(INTER)), TG_GET(TG_AT_Q(B)), TG_EXP2, TG_MUL, TG_SCALE, TG_MUL),
    TG_CONTRACT_TO(QK, TG_AT_Q(Q), TG_AT_KV(K)),
    TG_MAP_TO(P, TG_GET(TG_AT_Q(B)), TG_GET(TG_AT_KV(B)), TG_SUB, TG_GET(TG_AT_KV(LI)), TG_ADD, TG_EXP2,
              TG_SCALE, TG_MUL, TG_GET(QK), TG_MUL, TG_CAUSAL),
    TG_CONTRACT_ONTO(TG_AT_Q(H), TG_AT_Q(GATED), P, TG_AT_KV(V)),
};

static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "mlstm-sig",
    .title = "mLSTM with sigmoid input gate, forward (TFLA, arXiv 2503.14376, eq. 28-30)",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = N_TILES,
    .body = body,
    .n_body = TG_COUNT(body),
};
