/* examples/algorithm/normed.c - an epilogue as statements: simple gated linear attention, whose output is normalised and gated in
 * the kernel that makes it, before it goes to memory:
 *
 *     o_t = scale q_t S_t,  S_t = e^{a_t} S_{t-1} + k_t v_t^T        h_t = w o_t / sqrt(mean(o_t^2) + eps) z_t sigmoid(z_t)
 *
 *     cc -std=c11 -shared -fPIC -Ibuild/include examples/algorithm/normed.c -o build/normed.so
 *     build/bin/tegula check --load build/normed.so normed-gla --shape B=2,NH=2,T=200,dqk=64,dhv=128
 *
 * `fused`: the row that writes h has all of dhv (TG_L(0)), so that it has the mean. `apart`: where dhv is too wide for that,
 * o goes to memory and a row of its own normalises it. There is no recurrence in fp64: `check` compares with what the
 * statements say. */
#include <tegula/dsl/tegula.h>

enum {
    Q = 1, K, V, A, /* queries, keys [T, dqk], values [T, dhv], log decays [T] */
    Z, WEIGHT,      /* output gate before SiLU [T, dhv], weights [dhv] */
    S0, H, S,       /* initial state [dqk, dhv], output [T, dhv], final state */
    LOG2_A, B, GT,  /* log2 decay, its sum up to the token [T], over the chunk [chunk] */
    W, KW, WI,      /* weight of a token in the state behind the chunk, and keys with it; of the state before it [T] */
    CK, INTER, QK, P, SUM, O,
    SQUARES, R, GATE,
    N_TILES
};
enum { EPS = 1 };

static const tg_tensor tensors[] = {
    [Q] = {"q", TG_IO, TG_IN | TG_SHARED, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN | TG_SHARED, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [A] = {"a", TG_F32, TG_IN, {TG_T}, TG_DRAWN_LOG_DECAY},
    [Z] = {"z", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [WEIGHT] = {"weight", TG_F32, TG_IN | TG_NO_BATCH, {TG_DHV}},
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [H] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [S] = {"S", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [LOG2_A] = {"log2_a", TG_F32, 0, {TG_T}},
    [B] = {"b", TG_F32X2, 0, {TG_T}},
    [GT] = {"gt", TG_F32X2, 0, {TG_CHUNK}},
    [W] = {"w", TG_F32, 0, {TG_T}},
    [KW] = {"kw", TG_F32, 0, {TG_T, TG_DQK}},
    [WI] = {"wi", TG_F32, 0, {TG_T}},
    [CK] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [INTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [QK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [SUM] = {"sum", TG_F32, 0, {TG_T, TG_DHV}},
    [O] = {"o", TG_IO, 0, {TG_T, TG_DHV}},
    [SQUARES] = {"squares", TG_F32, 0, {TG_T}},
    [R] = {"r", TG_F32, 0, {TG_T}},
    [GATE] = {"gate", TG_F32, 0, {TG_T, TG_DHV}},
};

static const tg_stmt body[] = {
    TG_MAP_TO(TG_AT_KV(LOG2_A), TG_MAX(TG_MUL(TG_KV(A), TG_NUM(1.44269504f)), TG_NUM(-1e6f))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(LOG2_A)),
    TG_TOTAL_TO(GT, TG_AT_KV(LOG2_A)),
    TG_MAP_TO(TG_AT_KV(W), TG_EXP2(TG_SUB(TG_TILE(GT), TG_KV(B)))),
    TG_MAP_TO(TG_AT_KV(WI), TG_EXP2(TG_KV(B))),
    TG_MAP_TO(TG_AT_KV(KW), TG_MUL(TG_KV(K), TG_KV(W))),
    TG_CARRY_TO(CK, S, S0, GT, TG_AT_KV(KW), TG_AT_KV(V)),
    TG_CONTRACT_TO(TG_AT_Q(INTER), TG_AT_Q(Q), CK),
    TG_MAP_TO(TG_AT_Q(SUM), TG_MUL(TG_Q(INTER), TG_Q(WI))),
    TG_CONTRACT_TO(QK, TG_AT_Q(Q), TG_AT_KV(K)),
    TG_MAP_TO(P, TG_CAUSAL(TG_MUL(TG_EXP2(TG_SUB(TG_Q(B), TG_KV(B))), TG_TILE(QK)))),
    TG_CONTRACT_ONTO(TG_AT_Q(O), TG_AT_Q(SUM), P, TG_AT_KV(V)),
    /* the epilogue; the norm takes the scale with it, but for eps */
    TG_CONTRACT_TO(TG_AT_Q(SQUARES), TG_AT_Q(O), TG_AT_Q(O)),
    TG_MAP_TO(TG_AT_Q(R), TG_EXP2(TG_MUL(TG_LOG2(TG_ADD(TG_DIV(TG_MUL(TG_MUL(TG_Q(SQUARES), TG_SCALE), TG_SCALE), TG_SIZE(TG_DHV)), TG_SCALAR(EPS))), TG_NUM(-0.5f)))),
    TG_MAP_TO(TG_AT_Q(GATE), TG_MUL(TG_Q(Z), TG_SIGMOID(TG_Q(Z)))),
    TG_MAP_TO(TG_AT_Q(H), TG_MUL(TG_MUL(TG_MUL(TG_Q(O), TG_MUL(TG_Q(R), TG_SCALE)), TG_TILE(WEIGHT)), TG_Q(GATE))),
};

static const tg_scalar scalars[] = {{"scale", 0}, {"eps", 1e-6f}};
static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "normed-gla",
    .title = "simple GLA, normalised and gated in the kernel",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = TG_COUNT(tensors),
    .body = body,
    .n_body = TG_COUNT(body),
    .scalars = scalars,
    .n_scalars = TG_COUNT(scalars),
};

#define GATES {.name = "gates", .outputs = {B, WI, W, GT}, .warps = 2, .line = __LINE__, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}}
#define STATE                                                                                                          \
    {.name = "state", .outputs = {CK}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .line = __LINE__,                  \
     .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(32), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(64)}}
static const tg_schedule fused = {
    TG_HEADER(tg_schedule), .name = "fused", .file = __FILE__, .algorithm = &algorithm, .chunk = 64,
    .rows = {GATES, STATE,
             {.name = "H", .outputs = {H}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(32), [TG_DHV] = TG_L(0)}}},
};
static const tg_schedule apart = {
    TG_HEADER(tg_schedule), .name = "apart", .file = __FILE__, .algorithm = &algorithm, .chunk = 64,
    .rows = {GATES, STATE,
             {.name = "O", .outputs = {O}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .line = __LINE__,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(32), [TG_DHV] = TG_P(64)}},
             {.name = "norm", .outputs = {H}, .warps = 4, .line = __LINE__,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(1), [TG_DHV] = TG_L(512)}}},
};

static const tg_schedule *const schedules[] = {&fused, &apart, NULL};
static const tg_variant variant = {
    TG_HEADER(tg_variant), .name = "normed-gla", .algorithm = &algorithm, .schedules = schedules,
};

/* What `--load` looks for. */
TG_API const tg_variant *const tg_variants[] = {&variant, NULL};
