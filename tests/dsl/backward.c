/* tests/dsl/backward.c - gradients of q, k, v and of the initial state of mLSTMsig: the state kernel in both directions
 * and the bindings dQ, dK, dV of the intra-inter kernel. */
#include "tests/dsl/declarations.h"

enum {
    Q = 1,
    K,
    V,
    F,
    I,
    S0,
    A,
    LI,
    B,
    G,
    W,
    KW,
    C,
    QK,
    P,
    DH,
    DS,
    DQ,
    DK,
    DV,
    DS0,
    QB,
    QS,
    DC,
    DP,
    DPG,
    DQ_INTER,
    DQ_GATED,
    DQ_SUM,
    DK_INTER,
    DK_GATED,
    DK_SUM,
    DV_INTER,
    DV_GATED,
    DV_SUM,
    N_TILES
};

static const tg_tensor tensors[N_TILES] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [F] = {"f", TG_F32, TG_IN, {TG_T}},
    [I] = {"i", TG_F32, TG_IN, {TG_T}},
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [A] = {"a", TG_F32, 0, {TG_T}},
    [LI] = {"li", TG_F32, 0, {TG_T}},
    [B] = {"b", TG_F32X2, 0, {TG_T}},
    [G] = {"g", TG_F32X2, 0, {TG_CHUNK}},
    [W] = {"w", TG_F32, 0, {TG_T}},
    [KW] = {"kw", TG_F32, 0, {TG_T, TG_DQK}},
    [C] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [QK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [DH] = {"dh", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [DS] = {"dS", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [DQ] = {"dq", TG_IO, TG_OUT, {TG_T, TG_DQK}},
    [DK] = {"dk", TG_IO, TG_OUT, {TG_T, TG_DQK}},
    [DV] = {"dv", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [DS0] = {"dS0", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [QB] = {"qb", TG_F32, 0, {TG_T, TG_DQK}},
    [QS] = {"qs", TG_F32, 0, {TG_T, TG_DQK}},
    [DC] = {"dC", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [DP] = {"dp", TG_F32, 0, {TG_LQ, TG_LKV}},
    [DPG] = {"dpg", TG_F32, 0, {TG_LQ, TG_LKV}},
    [DQ_INTER] = {"dq_inter", TG_F32, 0, {TG_T, TG_DQK}},
    [DQ_GATED] = {"dq_gated", TG_F32, 0, {TG_T, TG_DQK}},
    [DQ_SUM] = {"dq_sum", TG_F32, 0, {TG_T, TG_DQK}},
    [DK_INTER] = {"dk_inter", TG_F32, 0, {TG_T, TG_DQK}},
    [DK_GATED] = {"dk_gated", TG_F32, 0, {TG_T, TG_DQK}},
    [DK_SUM] = {"dk_sum", TG_F32, 0, {TG_T, TG_DQK}},
    [DV_INTER] = {"dv_inter", TG_F32, 0, {TG_T, TG_DHV}},
    [DV_GATED] = {"dv_gated", TG_F32, 0, {TG_T, TG_DHV}},
    [DV_SUM] = {"dv_sum", TG_F32, 0, {TG_T, TG_DHV}},
};

/* D_ij, the decay from j to i */
#define PAIR_GATE TG_EXP2(TG_ADD(TG_SUB(TG_Q(B), TG_KV(B)), TG_KV(LI)))

static const tg_stmt body[] = {
    TG_MAP_TO(TG_AT_KV(A), TG_LOGSIG2(TG_KV(F))),
    TG_MAP_TO(TG_AT_KV(LI), TG_LOGSIG2(TG_KV(I))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(G, TG_AT_KV(A)),
    TG_MAP_TO(TG_AT_KV(W), TG_EXP2(TG_ADD(TG_SUB(TG_TILE(G), TG_KV(B)), TG_KV(LI)))),
    /* the state, forward */
    TG_MAP_TO(TG_AT_KV(KW), TG_MUL(TG_KV(K), TG_KV(W))),
    TG_CARRY_TO(C, 0, S0, G, TG_AT_KV(KW), TG_AT_KV(V)),
    /* its gradient, from the last chunk to the first: dC_k is at the boundary after chunk k */
    TG_MAP_TO(TG_AT_Q(QS), TG_MUL(TG_Q(Q), TG_SCALE)),
    TG_MAP_TO(TG_AT_Q(QB), TG_MUL(TG_Q(QS), TG_EXP2(TG_Q(B)))),
    {.op = TG_STMT_CARRY,
     .flags = TG_REVERSE,
     .out = DC,
     .a = TG_AT_Q(QB),
     .b = TG_AT_Q(DH),
     .init = DS,
     .decay = G,
     .final_ = DS0,
     TG_HERE},
    /* the two quadratic tiles */
    TG_CONTRACT_TO(QK, TG_AT_Q(QS), TG_AT_KV(K)),
    TG_MAP_TO(P, TG_CAUSAL(TG_MUL(PAIR_GATE, TG_TILE(QK)))),
    TG_CONTRACT_TO(DP, TG_AT_Q(DH), TG_AT_KV(V)),
    TG_MAP_TO(DPG, TG_CAUSAL(TG_MUL(PAIR_GATE, TG_TILE(DP)))),
    /* dQ */
    TG_CONTRACT_TO(TG_AT_Q(DQ_INTER), TG_AT_Q(DH), C),
    TG_MAP_TO(TG_AT_Q(DQ_GATED), TG_MUL(TG_Q(DQ_INTER), TG_EXP2(TG_Q(B)))),
    TG_CONTRACT_ONTO(TG_AT_Q(DQ_SUM), TG_AT_Q(DQ_GATED), DPG, TG_AT_KV(K)),
    TG_MAP_TO(TG_AT_Q(DQ), TG_MUL(TG_Q(DQ_SUM), TG_SCALE)),
    /* dK */
    TG_CONTRACT_TO(TG_AT_KV(DK_INTER), TG_AT_KV(V), DC),
    TG_MAP_TO(TG_AT_KV(DK_GATED), TG_MUL(TG_KV(DK_INTER), TG_KV(W))),
    TG_CONTRACT_ONTO(TG_AT_KV(DK_SUM), TG_AT_KV(DK_GATED), DPG, TG_AT_Q(QS)),
    TG_MAP_TO(TG_AT_KV(DK), TG_KV(DK_SUM)),
    /* dV */
    TG_CONTRACT_TO(TG_AT_KV(DV_INTER), TG_AT_KV(K), DC),
    TG_MAP_TO(TG_AT_KV(DV_GATED), TG_MUL(TG_KV(DV_INTER), TG_KV(W))),
    TG_CONTRACT_ONTO(TG_AT_KV(DV_SUM), TG_AT_KV(DV_GATED), P, TG_AT_Q(DH)),
    TG_MAP_TO(TG_AT_KV(DV), TG_KV(DV_SUM)),
};

static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "backward",
    .title = "gradients of q, k, v and S0 of mLSTMsig",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = N_TILES,
    .n_body = TG_COUNT(body),
    .body = body,
};

#define ROW(name_, outputs_, ...)                                                                  \
    {                                                                                              \
        .name = (name_), .outputs = {outputs_}, .mma = TG_MMA_SYNC, .warps = 4, .line = __LINE__,  \
        .row = {                                                                                   \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const tg_schedule backward_tfla = {
    TG_HEADER(tg_schedule),
    .name = "tfla",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 128,
    .n_rows = 6,
    .rows =
        {
            {.name = "gates",
             .outputs = {B, LI, G, W},
             .warps = 4,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(128)}},
            ROW("C", C, [TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(64),
                [TG_DHV] = TG_P(64)),
            ROW("dC", DC, [TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_DQK] = TG_P(64),
                [TG_DHV] = TG_P(64)),
            ROW("dQ", DQ, [TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(64),
                [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(64)),
            ROW("dK", DK, [TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(64), [TG_LKV] = TG_P(64),
                [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(64)),
            ROW("dV", DV, [TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(64), [TG_LKV] = TG_P(64),
                [TG_DQK] = TG_L(64), [TG_DHV] = TG_P(64)),
        },
};
