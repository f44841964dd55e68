/* tests/dsl/kda.c - Kimi delta attention, forward.
 *
 * The state is read by a statement whose result goes into the state: V* = U - W C, then
 * C' = 2^gt C + Ke^T V*. That is allowed since the out of a CARRY is what arrives from the chunk
 * before.
 *
 * Two things are stand-ins, because no statement says them yet: A = (I + beta Lkk)^-1 is a plain
 * copy (to be TG_STMT_SOLVE), and Lkk is causal where it must be strictly so. */
#include "tests/dsl/declarations.h"

enum {
    Q = 1,
    K,
    V,
    GL,
    BETA,
    S0,
    O,
    S,
    A,
    B,
    GT,
    QB,
    KB,
    KN,
    KE,
    QK,
    AQK,
    KK,
    LKK,
    TINV,
    BK,
    BV,
    W,
    U,
    WC,
    VSTAR,
    C,
    INTER,
    SUM,
    N_TILES
};

static const tg_tensor tensors[N_TILES] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [GL] = {"g", TG_F32, TG_IN, {TG_T, TG_DQK}},
    [BETA] = {"beta", TG_F32, TG_IN, {TG_T}},
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [O] = {"o", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [S] = {"S", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [A] = {"a", TG_F32, 0, {TG_T, TG_DQK}},
    [B] = {"b", TG_F32X2, 0, {TG_T, TG_DQK}},
    [GT] = {"gt", TG_F32X2, 0, {TG_CHUNK, TG_DQK}},
    [QB] = {"qb", TG_F32, 0, {TG_T, TG_DQK}},
    [KB] = {"kb", TG_F32, 0, {TG_T, TG_DQK}},
    [KN] = {"kn", TG_F32, 0, {TG_T, TG_DQK}},
    [KE] = {"ke", TG_F32, 0, {TG_T, TG_DQK}},
    [QK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [AQK] = {"Aqk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [KK] = {"kk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [LKK] = {"Lkk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [TINV] = {"Tinv", TG_F32, 0, {TG_LQ, TG_LKV}},
    [BK] = {"bk", TG_F32, 0, {TG_T, TG_DQK}},
    [BV] = {"bv", TG_F32, 0, {TG_T, TG_DHV}},
    [W] = {"W", TG_IO, 0, {TG_T, TG_DQK}},
    [U] = {"U", TG_IO, 0, {TG_T, TG_DHV}},
    [WC] = {"WC", TG_F32, 0, {TG_T, TG_DHV}},
    [VSTAR] = {"Vstar", TG_F32, 0, {TG_T, TG_DHV}},
    [C] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [INTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [SUM] = {"sum", TG_F32, 0, {TG_T, TG_DHV}},
};

static const tg_stmt body[] = {
    TG_MAP_TO(TG_AT_KV(A), TG_MUL(TG_KV(GL), TG_NUM(1.44269504f))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(GT, TG_AT_KV(A)),
    TG_MAP_TO(TG_AT_Q(QB), TG_MUL(TG_MUL(TG_Q(Q), TG_SCALE), TG_EXP2(TG_Q(B)))),
    TG_MAP_TO(TG_AT_Q(KB), TG_MUL(TG_Q(K), TG_EXP2(TG_Q(B)))),
    TG_MAP_TO(TG_AT_KV(KN), TG_MUL(TG_KV(K), TG_EXP2(TG_NEG(TG_KV(B))))),
    TG_MAP_TO(TG_AT_KV(KE), TG_MUL(TG_KV(K), TG_EXP2(TG_SUB(TG_TILE(GT), TG_KV(B))))),
    /* (1) */
    TG_CONTRACT_TO(QK, TG_AT_Q(QB), TG_AT_KV(KN)),
    TG_MAP_TO(AQK, TG_CAUSAL(TG_TILE(QK))),
    TG_CONTRACT_TO(KK, TG_AT_Q(KB), TG_AT_KV(KN)),
    TG_MAP_TO(LKK, TG_CAUSAL(TG_MUL(TG_Q(BETA), TG_TILE(KK)))),
    /* (2) */
    TG_MAP_TO(TINV, TG_TILE(LKK)),
    /* (3) */
    TG_MAP_TO(TG_AT_KV(BK), TG_MUL(TG_KV(BETA), TG_KV(KB))),
    TG_MAP_TO(TG_AT_KV(BV), TG_MUL(TG_KV(BETA), TG_KV(V))),
    TG_CONTRACT_TO(TG_AT_Q(W), TINV, TG_AT_KV(BK)),
    TG_CONTRACT_TO(TG_AT_Q(U), TINV, TG_AT_KV(BV)),
    /* (4) */
    TG_CONTRACT_TO(TG_AT_KV(WC), TG_AT_KV(W), C),
    TG_MAP_TO(TG_AT_KV(VSTAR), TG_SUB(TG_KV(U), TG_KV(WC))),
    TG_CARRY_TO(C, S, S0, GT, TG_AT_KV(KE), TG_AT_KV(VSTAR)),
    /* (5) */
    TG_CONTRACT_TO(TG_AT_Q(INTER), TG_AT_Q(QB), C),
    TG_CONTRACT_ONTO(TG_AT_Q(SUM), TG_AT_Q(INTER), AQK, TG_AT_KV(VSTAR)),
    TG_MAP_TO(TG_AT_Q(O), TG_Q(SUM)),
};

static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "kda",
    .title = "Kimi delta attention, forward",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = N_TILES,
    .n_body = TG_COUNT(body),
    .body = body,
};

#define ROW(name_, chunk_, dhv_, ...)                                                              \
    {                                                                                              \
        .name = (name_), .outputs = {__VA_ARGS__}, .mma = TG_MMA_SYNC, .warps = 4,                 \
        .line = __LINE__, .row = {                                                                 \
            [TG_CHUNK] = chunk_,                                                                   \
            [TG_LQ] = TG_L(64),                                                                    \
            [TG_LKV] = TG_L(64),                                                                   \
            [TG_DQK] = TG_L(0),                                                                    \
            [TG_DHV] = dhv_                                                                        \
        }                                                                                          \
    }

/* W and U of all chunks in memory, then the walk. */
const tg_schedule kda_three = {
    TG_HEADER(tg_schedule),
    .name = "three",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 64,
    .n_rows = 3,
    .rows =
        {
            {.name = "gates",
             .outputs = {B, GT},
             .warps = 1,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(32)}},
            ROW("WU", TG_P(1), TG_L(64), W, U),
            ROW("O", TG_W(1), TG_P(64), O),
        },
};

/* All in one walk: W and U are computed as rows and read as columns, so a chunk is one block. */
const tg_schedule kda_one = {
    TG_HEADER(tg_schedule),
    .name = "one",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 64,
    .n_rows = 1,
    .rows = {ROW("O", TG_W(1), TG_P(64), O)},
};
