/* tests/kernels/together.c - products with a decay of channels that one kernel has several of: those that go on where another one ends, three
 * of them too, those with the same right operand, and others between them. Decays are summed up in the kernel, or by one before it. */
#include "harness.h"
#include "suites.h"

enum { CHUNK = 64 };

enum { Q = 1, K, V, W, GX, A, B };
/* Positions: queries by keys, and keys by queries. */
enum { S = B + 1, SA, SB, SC, T, TA, TB, TC };
/* Three by queries, of the same keys; three by keys, each onto the one before. */
enum { O1 = TC + 1, O2, O3, Y1, Y2, Y3, C1, C2, C3, YC };
/* Two of the same queries, and one onto the second of them; two by keys, one onto the other, and between them one of the same weights. */
enum { N1 = YC + 1, N2, N3, YN, YO, U1, U2, U3, YU, YV };
/* Two by keys that begin with something, one onto the other; two of gates, the second of which begins with what is loaded late. */
enum { P1 = YV + 1, P2, YP, L1, L2, L3, YL, YM };
/* Three products of positions by the same keys; what makes a chunk one block. */
enum { D1 = YM + 1, D2, D3, E1, E2, E3, R1, R2, R3, X, RS, N_TENSORS };

#define POSITIONS                                                                                                      \
    {                                                                                                                  \
        TG_LQ, TG_LKV                                                                                                  \
    }
#define TRANSPOSED                                                                                                     \
    {                                                                                                                  \
        TG_LKV, TG_LQ                                                                                                  \
    }
#define CHANNELS                                                                                                       \
    {                                                                                                                  \
        TG_T, TG_DQK                                                                                                   \
    }
static const tg_tensor tensors[N_TENSORS] = {
    [Q] = {"q", TG_IO, TG_IN, CHANNELS},
    [K] = {"k", TG_IO, TG_IN, CHANNELS},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [W] = {"w", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [GX] = {"gx", TG_F32, TG_IN, CHANNELS, TG_DRAWN_FORGET},
    [A] = {"a", TG_F32, 0, CHANNELS},
    [B] = {"b", TG_F32, 0, CHANNELS},
    [S] = {"s", TG_F32, 0, POSITIONS},
    [SA] = {"sa", TG_F32, 0, POSITIONS},
    [SB] = {"sb", TG_F32, 0, POSITIONS},
    [SC] = {"sc", TG_F32, 0, POSITIONS},
    [D1] = {"d1", TG_F32, 0, POSITIONS},
    [D2] = {"d2", TG_F32, 0, POSITIONS},
    [D3] = {"d3", TG_F32, 0, POSITIONS},
    [E1] = {"e1", TG_F32, 0, POSITIONS},
    [E2] = {"e2", TG_F32, 0, POSITIONS},
    [E3] = {"e3", TG_F32, 0, POSITIONS},
    [T] = {"t", TG_F32, 0, TRANSPOSED},
    [TA] = {"ta", TG_F32, 0, TRANSPOSED},
    [TB] = {"tb", TG_F32, 0, TRANSPOSED},
    [TC] = {"tc", TG_F32, 0, TRANSPOSED},
    [O1] = {"o1", TG_F32, 0, CHANNELS},
    [O2] = {"o2", TG_F32, 0, CHANNELS},
    [O3] = {"o3", TG_F32, 0, CHANNELS},
    [C1] = {"c1", TG_F32, 0, CHANNELS},
    [C2] = {"c2", TG_F32, 0, CHANNELS},
    [C3] = {"c3", TG_F32, 0, CHANNELS},
    [N1] = {"n1", TG_F32, 0, CHANNELS},
    [N2] = {"n2", TG_F32, 0, CHANNELS},
    [N3] = {"n3", TG_F32, 0, CHANNELS},
    [U1] = {"u1", TG_F32, 0, CHANNELS},
    [U2] = {"u2", TG_F32, 0, CHANNELS},
    [U3] = {"u3", TG_F32, 0, CHANNELS},
    [P1] = {"p1", TG_F32, 0, CHANNELS},
    [P2] = {"p2", TG_F32, 0, CHANNELS},
    [L1] = {"l1", TG_F32, 0, CHANNELS},
    [L2] = {"l2", TG_F32, 0, CHANNELS},
    [L3] = {"l3", TG_F32, 0, CHANNELS},
    [Y1] = {"y1", TG_F32, TG_OUT, CHANNELS},
    [Y2] = {"y2", TG_F32, TG_OUT, CHANNELS},
    [Y3] = {"y3", TG_F32, TG_OUT, CHANNELS},
    [YC] = {"yc", TG_F32, TG_OUT, CHANNELS},
    [YN] = {"yn", TG_F32, TG_OUT, CHANNELS},
    [YO] = {"yo", TG_F32, TG_OUT, CHANNELS},
    [YU] = {"yu", TG_F32, TG_OUT, CHANNELS},
    [YV] = {"yv", TG_F32, TG_OUT, CHANNELS},
    [YP] = {"yp", TG_F32, TG_OUT, CHANNELS},
    [YL] = {"yl", TG_F32, TG_OUT, CHANNELS},
    [YM] = {"ym", TG_F32, TG_OUT, CHANNELS},
    [X] = {"x", TG_IO, 0, {TG_T, TG_LKV}},
    [R1] = {"r1", TG_F32, TG_OUT, {TG_T}},
    [R2] = {"r2", TG_F32, TG_OUT, {TG_T}},
    [R3] = {"r3", TG_F32, TG_OUT, {TG_T}},
    [RS] = {"rs", TG_F32, TG_OUT, {TG_T}},
};
#define BY_QUERY_OF(op_, out_, x_, ...) op_(TG_AT_Q(out_), __VA_ARGS__, TG_AT_KV(x_), TG_AT_Q(B), TG_AT_KV(B))
#define BY_QUERY(op_, out_, ...)        BY_QUERY_OF(op_, out_, K, __VA_ARGS__)
#define BY_KEY(op_, out_, x_, ...)      op_(TG_AT_KV(out_), __VA_ARGS__, TG_AT_Q(x_), TG_AT_Q(B), TG_AT_KV(B))
static const tg_stmt body[] = {
    TG_MAP_TO(TG_AT_KV(A), TG_LOGSIG2(TG_KV(GX))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_CONTRACT_TO(S, TG_AT_Q(W), TG_AT_KV(V)),
    TG_MAP_TO(SA, TG_MUL(TG_TILE(S), TG_SCALE)),
    TG_MAP_TO(SB, TG_NEG(TG_TILE(S))),
    TG_MAP_TO(SC, TG_MUL(TG_TILE(S), TG_NUM(0.5))),
    TG_CONTRACT_TO(T, TG_AT_KV(V), TG_AT_Q(W)),
    TG_MAP_TO(TA, TG_MUL(TG_TILE(T), TG_SCALE)),
    TG_MAP_TO(TB, TG_NEG(TG_TILE(T))),
    TG_MAP_TO(TC, TG_MUL(TG_TILE(T), TG_NUM(0.5))),
    BY_QUERY(TG_CONTRACT_DECAY_TO, O1, SA),
    BY_QUERY(TG_CONTRACT_DECAY_BEFORE_TO, O2, SB),
    BY_QUERY(TG_CONTRACT_DECAY_TO, O3, SC),
    TG_MAP_TO(TG_AT_Q(Y1), TG_Q(O1)),
    TG_MAP_TO(TG_AT_Q(Y2), TG_Q(O2)),
    TG_MAP_TO(TG_AT_Q(Y3), TG_Q(O3)),
    BY_KEY(TG_CONTRACT_DECAY_TO, C1, Q, TA),
    BY_KEY(TG_CONTRACT_DECAY_BEFORE_ONTO, C2, K, TG_AT_KV(C1), TB),
    BY_KEY(TG_CONTRACT_DECAY_ONTO, C3, Q, TG_AT_KV(C2), TC),
    TG_MAP_TO(TG_AT_KV(YC), TG_KV(C3)),
    BY_KEY(TG_CONTRACT_DECAY_TO, N1, Q, TA),
    BY_KEY(TG_CONTRACT_DECAY_BEFORE_TO, N2, Q, TB),
    BY_KEY(TG_CONTRACT_DECAY_ONTO, N3, K, TG_AT_KV(N2), TC),
    TG_MAP_TO(TG_AT_KV(YN), TG_KV(N1)),
    TG_MAP_TO(TG_AT_KV(YO), TG_KV(N3)),
    BY_KEY(TG_CONTRACT_DECAY_TO, U1, Q, SA),
    BY_QUERY(TG_CONTRACT_DECAY_TO, U2, SA),
    BY_KEY(TG_CONTRACT_DECAY_BEFORE_ONTO, U3, K, TG_AT_KV(U1), SB),
    TG_MAP_TO(TG_AT_KV(YU), TG_KV(U3)),
    TG_MAP_TO(TG_AT_Q(YV), TG_Q(U2)),
    BY_KEY(TG_CONTRACT_DECAY_ONTO, P1, Q, TG_AT_KV(K), TA),
    BY_KEY(TG_CONTRACT_DECAY_BEFORE_ONTO, P2, K, TG_AT_KV(P1), TB),
    TG_MAP_TO(TG_AT_KV(YP), TG_KV(P2)),
    BY_QUERY_OF(TG_CONTRACT_DECAY_TO, L1, GX, SA),
    TG_MAP_TO(TG_AT_Q(L2), TG_MUL(TG_Q(K), TG_NUM(2))),
    BY_QUERY_OF(TG_CONTRACT_DECAY_ONTO, L3, GX, TG_AT_Q(L2), SB),
    TG_MAP_TO(TG_AT_Q(YL), TG_Q(L1)),
    TG_MAP_TO(TG_AT_Q(YM), TG_Q(L3)),
    TG_CONTRACT_DECAY_TO(D1, TG_AT_Q(Q), TG_AT_KV(K), TG_AT_Q(B), TG_AT_KV(B)),
    TG_CONTRACT_DECAY_BEFORE_TO(D2, TG_AT_Q(K), TG_AT_KV(K), TG_AT_Q(B), TG_AT_KV(B)),
    TG_CONTRACT_DECAY_TO(D3, TG_AT_Q(K), TG_AT_KV(K), TG_AT_Q(B), TG_AT_KV(B)),
    TG_MAP_TO(E1, TG_MUL(TG_TILE(D1), TG_TILE(D1))),
    TG_MAP_TO(E2, TG_MUL(TG_TILE(D2), TG_TILE(D2))),
    TG_MAP_TO(E3, TG_MUL(TG_TILE(D3), TG_TILE(D3))),
    TG_SUM_TO(TG_AT_Q(R1), E1),
    TG_SUM_TO(TG_AT_Q(R2), E2),
    TG_SUM_TO(TG_AT_Q(R3), E3),
    TG_MAP_TO(TG_AT_Q(X), TG_CAUSAL(TG_TILE(S))),
    TG_SUM_TO(TG_AT_Q(RS), TG_AT_Q(X)),
};
static const tg_algorithm together = {
    TG_HEADER(tg_algorithm), .name = "together",     .title = "together", .file = __FILE__,
    .tensors = tensors,      .n_tensors = N_TENSORS, .body = body,        .n_body = TG_COUNT(body),
};

#define PRODUCTS    .mma = TG_MMA_SYNC, .warps = 4, .stages = 4
#define IN_A_CHUNK  [TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(CHUNK), [TG_LKV] = TG_L(CHUNK)
#define OF_CHANNELS PRODUCTS, .row = {IN_A_CHUNK, [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(32)}
#define ROWS                                                                                                           \
    {.name = "alike", .outputs = {Y1, Y2, Y3}, OF_CHANNELS}, {.name = "chain", .outputs = {YC}, OF_CHANNELS},          \
        {.name = "either", .outputs = {YN, YO}, OF_CHANNELS}, {.name = "between", .outputs = {YU, YV}, OF_CHANNELS},   \
        {.name = "pair", .outputs = {YP}, OF_CHANNELS}, {.name = "late", .outputs = {YL, YM}, OF_CHANNELS},            \
        {.name = "pairs", .outputs = {R1, R2, R3}, PRODUCTS, .row = {IN_A_CHUNK, [TG_DQK] = TG_L(0)}},                 \
    {                                                                                                                  \
        .name = "positions", .outputs = {RS}, PRODUCTS, .row = { IN_A_CHUNK, [TG_DHV] = TG_L(32) }                     \
    }
#define SCHEDULE .name = "one", .file = __FILE__, .algorithm = &together, .chunk = CHUNK
static const tg_schedule loaded = {TG_HEADER(tg_schedule), SCHEDULE, .n_rows = 9,
                                   .rows = {{.name = "sums",
                                             .outputs = {B},
                                             .warps = 1,
                                             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(32)}},
                                            ROWS}},
                         summed = {TG_HEADER(tg_schedule), SCHEDULE, .n_rows = 8, .rows = {ROWS}};

static void try_together(const tg_schedule *schedule, const char *decays, int64_t dqk, enum gates gates)
{
    if (!tap_begin("products that are made together, decays %s, dqk %d, gates %d", decays, (int)dqk, gates))
        return;
    try_declared(&together, schedule, (struct spec){.heads = 1, .tokens = 130, .dqk = dqk, .dhv = 64, .gates = gates});
    tap_end();
}

void suite_together(void)
{
    try_together(&loaded, "loaded", 64, ORDINARY);
    try_together(&loaded, "loaded", 128, EXTREME);
    try_together(&summed, "summed", 64, ORDINARY);
    try_together(&summed, "summed", 64, EXTREME);
}
