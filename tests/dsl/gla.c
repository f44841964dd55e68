/* tests/dsl/gla.c - gated linear attention, one decay per key dimension, and beside it what it gives
 * with a right decay too: a product with a decay whose channel is summed over, and one whose channel is kept. */
#include "tests/dsl/declarations.h"

enum { Q = 1, K, V, GX, S0, O, S, A, B, G, KE, QB, C, INTER, P, E, F, SUM, N_TILES };

static const tg_tensor tensors[N_TILES] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [GX] = {"gx", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [O] = {"o", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [S] = {"S", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [A] = {"a", TG_F32, 0, {TG_T, TG_DQK}},
    [B] = {"b", TG_F32, 0, {TG_T, TG_DQK}},
    [G] = {"g", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [KE] = {"ke", TG_F32, 0, {TG_T, TG_DQK}},
    [QB] = {"qb", TG_F32, 0, {TG_T, TG_DQK}},
    [C] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [INTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [E] = {"e", TG_F32, 0, {TG_T, TG_DHV}},
    [F] = {"f", TG_F32, 0, {TG_T, TG_DHV}},
    [SUM] = {"sum", TG_F32, 0, {TG_T, TG_DHV}},
};

static const tg_stmt body[] = {
    TG_MAP_TO(TG_AT_KV(A), TG_DIV(TG_LOGSIG2(TG_KV(GX)), TG_NUM(16.0f))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(G, TG_AT_KV(A)),
    TG_MAP_TO(TG_AT_KV(KE), TG_MUL(TG_KV(K), TG_EXP2(TG_SUB(TG_TILE(G), TG_KV(B))))),
    TG_CARRY_TO(C, S, S0, G, TG_AT_KV(KE), TG_AT_KV(V)),
    TG_MAP_TO(TG_AT_Q(QB), TG_MUL(TG_MUL(TG_Q(Q), TG_SCALE), TG_EXP2(TG_Q(B)))),
    TG_CONTRACT_TO(TG_AT_Q(INTER), TG_AT_Q(QB), C),
    TG_CONTRACT_DECAY_TO(P, TG_AT_Q(Q), TG_AT_KV(K), TG_AT_Q(B), TG_AT_KV(B)),
    TG_MAP_TO(TG_AT_KV(E), TG_LOGSIG2(TG_KV(V))),
    {.op = TG_STMT_SCAN, .flags = TG_EXCLUSIVE, .out = TG_AT_KV(F), .a = TG_AT_KV(E), TG_HERE},
    TG_CONTRACT_DECAY_BEFORE_ONTO(TG_AT_Q(SUM), TG_AT_Q(INTER), P, TG_AT_KV(V), TG_AT_Q(F), TG_AT_KV(F)),
    TG_MAP_TO(TG_AT_Q(O), TG_Q(SUM)),
};

static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "gla",
    .title = "gated linear attention, forward",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = N_TILES,
    .n_body = TG_COUNT(body),
    .body = body,
};

const tg_schedule gla_tfla = {
    TG_HEADER(tg_schedule),
    .name = "tfla",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 64,
    .n_rows = 4,
    .rows =
        {
            {.name = "gates",
             .outputs = {B, G},
             .warps = 1,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(32)}},
            {.name = "right",
             .outputs = {F},
             .warps = 1,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DHV] = TG_P(32)}},
            {.name = "state",
             .outputs = {C},
             .mma = TG_MMA_SYNC,
             .warps = 4,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_W(1),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_P(64),
                     [TG_DHV] = TG_P(64)}},
            {.name = "O",
             .outputs = {O},
             .mma = TG_MMA_SYNC,
             .warps = 4,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_P(1),
                     [TG_LQ] = TG_P(64),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_L(64),
                     [TG_DHV] = TG_P(64)}},
        },
};
