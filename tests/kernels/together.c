/* tests/kernels/together.c - products with a decay of channels that one kernel has several of: those that go on where another one ends, three
 * of them too, those with the same right operand, and others between them. Decays are summed up in the kernel, or by one before it. */
#include "harness.h"
#include "suites.h"

enum { CHUNK = 64 };

enum {
    Q = 1,
    K,
    V,
    W,
    GX,
    A,
    B,
    S,
    SA,
    SB,
    SC, /* positions: queries by keys */
    T,
    TA,
    TB,
    TC, /* ... keys by queries */
    O1,
    O2,
    O3,
    Y1,
    Y2,
    Y3, /* three by queries, of the same keys */
    C1,
    C2,
    C3,
    YC, /* three by keys, each onto the one before */
    N1,
    N2,
    N3,
    YN,
    YO, /* two of the same queries, and one onto the second of them */
    U1,
    U2,
    U3,
    YU,
    YV, /* two by keys, one onto the other; between them one by queries of the same weights */
    P1,
    P2,
    YP, /* two by keys that begin with something, one onto the other */
    X,
    RS,
    N_TENSORS /* what makes a chunk one block */
};
#define POSITIONS(name_)                                                                                               \
    {                                                                                                                  \
        name_, TG_F32, 0,                                                                                              \
        {                                                                                                              \
            TG_LQ, TG_LKV                                                                                              \
        }                                                                                                              \
    }
#define TRANSPOSED(name_)                                                                                              \
    {                                                                                                                  \
        name_, TG_F32, 0,                                                                                              \
        {                                                                                                              \
            TG_LKV, TG_LQ                                                                                              \
        }                                                                                                              \
    }
#define SUM(name_)                                                                                                     \
    {                                                                                                                  \
        name_, TG_F32, 0,                                                                                              \
        {                                                                                                              \
            TG_T, TG_DQK                                                                                               \
        }                                                                                                              \
    }
#define OUTPUT(name_)                                                                                                  \
    {                                                                                                                  \
        name_, TG_F32, TG_OUT,                                                                                         \
        {                                                                                                              \
            TG_T, TG_DQK                                                                                               \
        }                                                                                                              \
    }
static const tg_tensor tensors[N_TENSORS] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [W] = {"w", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [GX] = {"gx", TG_F32, TG_IN, {TG_T, TG_DQK}},
    [A] = SUM("a"),
    [B] = SUM("b"),
    [S] = POSITIONS("s"),
    [SA] = POSITIONS("sa"),
    [SB] = POSITIONS("sb"),
    [SC] = POSITIONS("sc"),
    [T] = TRANSPOSED("t"),
    [TA] = TRANSPOSED("ta"),
    [TB] = TRANSPOSED("tb"),
    [TC] = TRANSPOSED("tc"),
    [O1] = SUM("o1"),
    [O2] = SUM("o2"),
    [O3] = SUM("o3"),
    [Y1] = OUTPUT("y1"),
    [Y2] = OUTPUT("y2"),
    [Y3] = OUTPUT("y3"),
    [C1] = SUM("c1"),
    [C2] = SUM("c2"),
    [C3] = SUM("c3"),
    [YC] = OUTPUT("yc"),
    [N1] = SUM("n1"),
    [N2] = SUM("n2"),
    [N3] = SUM("n3"),
    [YN] = OUTPUT("yn"),
    [YO] = OUTPUT("yo"),
    [U1] = SUM("u1"),
    [U2] = SUM("u2"),
    [U3] = SUM("u3"),
    [YU] = OUTPUT("yu"),
    [YV] = OUTPUT("yv"),
    [P1] = SUM("p1"),
    [P2] = SUM("p2"),
    [YP] = OUTPUT("yp"),
    [X] = {"x", TG_IO, 0, {TG_T, TG_LKV}},
    [RS] = {"rs", TG_F32, TG_OUT, {TG_T}},
};
#define BY_QUERY(op_, out_, ...)   op_(TG_AT_Q(out_), __VA_ARGS__, TG_AT_KV(K), TG_AT_Q(B), TG_AT_KV(B))
#define BY_KEY(op_, out_, x_, ...) op_(TG_AT_KV(out_), __VA_ARGS__, TG_AT_Q(x_), TG_AT_Q(B), TG_AT_KV(B))
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
    TG_MAP_TO(TG_AT_Q(X), TG_CAUSAL(TG_TILE(S))),
    TG_SUM_TO(TG_AT_Q(RS), TG_AT_Q(X)),
};
static const tg_algorithm together = {
    TG_HEADER(tg_algorithm), .name = "together",     .title = "together", .file = __FILE__,
    .tensors = tensors,      .n_tensors = N_TENSORS, .body = body,        .n_body = TG_COUNT(body),
};

#define PRODUCTS(...)                                                                                                  \
    .outputs = {__VA_ARGS__}, .mma = TG_MMA_SYNC, .warps = 4,                                                          \
    .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(CHUNK), [TG_LKV] = TG_L(CHUNK), [TG_DHV] = TG_L(32)
#define SUMS                                                                                                           \
    {                                                                                                                  \
        .name = "sums", .outputs = {B}, .warps = 1, .row = {                                                           \
            [TG_CHUNK] = TG_P(1),                                                                                      \
            [TG_LKV] = TG_W(1),                                                                                        \
            [TG_DQK] = TG_P(32)                                                                                        \
        }                                                                                                              \
    }
#define OF_CHANNELS(name_, ...)                                                                                        \
    {                                                                                                                  \
        .name = name_, PRODUCTS(__VA_ARGS__), [TG_DQK] = TG_P(64)                                                      \
    }                                                                                                                  \
    }
#define ROWS                                                                                                           \
    OF_CHANNELS("alike", Y1, Y2, Y3), OF_CHANNELS("chain", YC), OF_CHANNELS("either", YN, YO),                         \
        OF_CHANNELS("between", YU, YV), OF_CHANNELS("pair", YP),                                                       \
    {                                                                                                                  \
        .name = "positions", PRODUCTS(RS)                                                                              \
    }                                                                                                                  \
    }
#define SCHEDULE(...)                                                                                                  \
    {                                                                                                                  \
        TG_HEADER(tg_schedule), .name = "one", .file = __FILE__, .algorithm = &together, .chunk = CHUNK, __VA_ARGS__   \
    }
static const tg_schedule loaded = SCHEDULE(.n_rows = 7, .rows = {SUMS, ROWS}),
                         summed = SCHEDULE(.n_rows = 6, .rows = {ROWS});

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
