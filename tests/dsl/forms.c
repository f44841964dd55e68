/* tests/dsl/forms.c - one statement of every form and one kernel of every kind, put together to no
 * purpose but that: keys of a group of heads, parameters without a batch, scalars, scans over
 * chunks and their maxima, vector states, plain sums, sums that go to memory in parts, sums over
 * sequences and over the heads of a group, kept states. */
#include "tests/dsl/forms.h"

static const tg_tensor tensors[N_FORMS] = {
    [X_Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [X_K] = {"k", TG_IO, TG_IN | TG_SHARED, {TG_T, TG_DQK}},
    [X_V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [X_F] = {"f", TG_F32, TG_IN, {TG_T}},
    [X_BIAS] = {"bias", TG_F32, TG_IN | TG_NO_BATCH, {0}},
    [X_GAIN] = {"gain", TG_F32, TG_IN | TG_NO_BATCH | TG_SHARED, {TG_DQK}},
    [X_S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [X_N0] = {"n0", TG_F32, TG_IN | TG_OPTIONAL | TG_NO_BATCH, {TG_DQK}},
    [X_H] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [X_S] = {"S", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [X_DB] = {"dbias", TG_F32, TG_OUT | TG_NO_BATCH, {0}},
    [X_DK] = {"dk", TG_IO, TG_OUT | TG_SHARED, {TG_T, TG_DQK}},
    [X_M] = {"m", TG_F32, TG_OUT, {0}},
    [X_A] = {"a", TG_F32, 0, {TG_T}},
    [X_B] = {"b", TG_F32X2, 0, {TG_T}},
    [X_BX] = {"bx", TG_F32, 0, {TG_T}},
    [X_MX] = {"mx", TG_F32, 0, {TG_T}},
    [X_G] = {"g", TG_F32X2, 0, {TG_CHUNK}},
    [X_GM] = {"gm", TG_F32, 0, {TG_CHUNK}},
    [X_GS] = {"gs", TG_F32, 0, {TG_CHUNK}},
    [X_GX] = {"gx", TG_F32, 0, {TG_CHUNK}},
    [X_W] = {"w", TG_F32, 0, {TG_T}},
    [X_KW] = {"kw", TG_F32, 0, {TG_T, TG_DQK}},
    [X_C] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [X_NK] = {"nk", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [X_N] = {"n", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [X_Z] = {"z", TG_F32, 0, {TG_T, TG_DQK}},
    [X_YX] = {"yx", TG_F32, 0, {TG_T}},
    [X_QN] = {"qn", TG_F32, 0, {TG_T}},
    [X_QK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [X_P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [X_RS] = {"rs", TG_F32, 0, {TG_T}},
    [X_INTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [X_SUM] = {"sum", TG_F32, 0, {TG_T, TG_DHV}},
    [X_DEN] = {"den", TG_F32, 0, {TG_T}},
    [X_E] = {"e", TG_F32, 0, {TG_T}},
    [X_TE] = {"te", TG_F32, 0, {TG_CHUNK}},
    [X_DKH] = {"dkh", TG_F32, 0, {TG_T, TG_DQK}},
};

static const tg_scalar scalars[] = {{"scale", 0}, {"tau", 16.0f}, {"eps", 1e-6f}};
#define TAU TG_SCALAR(1)
#define EPS TG_SCALAR(2)

static const tg_stmt body[] = {
    TG_MAP_TO(TG_AT_KV(X_A), TG_DIV(TG_NEG(TG_SOFTPLUS(TG_ADD(TG_KV(X_F), TG_TILE(X_BIAS)))),
                                    TAU)),
    TG_SCAN_TO(TG_AT_KV(X_B), TG_AT_KV(X_A)),
    {.op = TG_STMT_SCAN, .flags = TG_EXCLUSIVE, .out = TG_AT_KV(X_BX), .a = TG_AT_KV(X_A), TG_HERE},
    TG_SCAN_MAX_TO(TG_AT_KV(X_MX), TG_AT_KV(X_A)),
    TG_TOTAL_TO(X_G, TG_AT_KV(X_A)),
    TG_TOTAL_MAX_TO(X_GM, TG_AT_KV(X_A)),
    TG_SCAN_TO(X_GS, X_G),
    {.op = TG_STMT_SCAN, .flags = TG_MAXIMUM | TG_EXCLUSIVE, .out = X_GX, .a = X_GM, TG_HERE},
    TG_TOTAL_MAX_TO(X_M, X_GM),
    TG_MAP_TO(TG_AT_KV(X_W), TG_MUL(TG_EXP2(TG_SUB(TG_TILE(X_G), TG_KV(X_B))),
                                    TG_STEP(TG_SUB(TG_KV(X_MX), TG_KV(X_BX))))),
    TG_MAP_TO(TG_AT_KV(X_KW), TG_MUL(TG_MUL(TG_KV(X_K), TG_TILE(X_GAIN)), TG_KV(X_W))),
    TG_CARRY_TO(X_C, X_S, X_S0, X_G, TG_AT_KV(X_KW), TG_AT_KV(X_V)),
    TG_CONTRACT_TO(X_NK, TG_AT_KV(X_K), TG_AT_KV(X_W)),
    TG_CARRY_BACK_TO(X_N, 0, X_N0, X_G, X_NK, 0),
    TG_CONTRACT_TO(TG_AT_KV(X_Z), TG_AT_KV(X_V), X_C),
    TG_CONTRACT_TO(TG_AT_KV(X_YX), TG_AT_KV(X_K), TG_AT_KV(X_Z)),
    TG_CONTRACT_TO(TG_AT_Q(X_QN), TG_AT_Q(X_Q), X_N),
    TG_CONTRACT_TO(X_QK, TG_AT_Q(X_Q), TG_AT_KV(X_K)),
    TG_MAP_TO(X_P, TG_CAUSAL(TG_TILE(X_QK))),
    TG_SUM_TO(TG_AT_Q(X_RS), X_P),
    TG_CONTRACT_TO(TG_AT_Q(X_INTER), TG_AT_Q(X_Q), X_C),
    TG_CONTRACT_ONTO(TG_AT_Q(X_SUM), TG_AT_Q(X_INTER), X_P, TG_AT_KV(X_V)),
    TG_MAP_TO(TG_AT_Q(X_DEN), TG_MAX(TG_SUB(TG_ADD(TG_Q(X_QN), TG_Q(X_RS)), TG_TILE(X_GX)), EPS)),
    TG_MAP_TO(TG_AT_Q(X_H), TG_DIV(TG_MUL(TG_Q(X_SUM), TG_SCALE), TG_Q(X_DEN))),
    TG_MAP_TO(TG_AT_KV(X_E), TG_MUL(TG_KV(X_YX), TG_TILE(X_GS))),
    TG_TOTAL_TO(X_TE, TG_AT_KV(X_E)),
    TG_TOTAL_TO(X_DB, X_TE),
    TG_CONTRACT_TO(TG_AT_KV(X_DKH), X_P, TG_AT_Q(X_Q)),
    TG_TOTAL_TO(TG_AT_KV(X_DK), TG_AT_KV(X_DKH)),
};

static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "forms",
    .title = "one statement of every form",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = N_FORMS,
    .n_body = TG_COUNT(body),
    .body = body,
    .scalars = scalars,
    .n_scalars = TG_COUNT(scalars),
};

/* One element of Lkv, of chunk or of dqk a thread. */
#define GATES                                                                                      \
    {                                                                                              \
        .name = "gates", .outputs = {X_W, X_G, X_GM}, .warps = 4, .line = __LINE__, .row = {       \
            [TG_CHUNK] = TG_P(1),                                                                  \
            [TG_LKV] = TG_W(128)                                                                   \
        }                                                                                          \
    }
#define SCAN                                                                                       \
    {                                                                                              \
        .name = "scan", .outputs = {X_GS, X_GX, X_M}, .warps = 2, .line = __LINE__, .row = {       \
            [TG_CHUNK] = TG_W(64)                                                                  \
        }                                                                                          \
    }
#define STATE                                                                                      \
    {                                                                                              \
        .name = "state", .outputs = {X_C}, .mma = TG_MMA_SYNC, .warps = 4, .line = __LINE__,       \
        .row = {                                                                                   \
            [TG_CHUNK] = TG_W(1),                                                                  \
            [TG_LKV] = TG_L(64),                                                                   \
            [TG_DQK] = TG_P(64),                                                                   \
            [TG_DHV] = TG_P(64)                                                                    \
        }                                                                                          \
    }
#define NORM                                                                                       \
    {                                                                                              \
        .name = "norm", .outputs = {X_N}, .warps = 1, .line = __LINE__, .row = {                   \
            [TG_CHUNK] = TG_W(1),                                                                  \
            [TG_LKV] = TG_L(1),                                                                    \
            [TG_DQK] = TG_P(32)                                                                    \
        }                                                                                          \
    }
/* z is never in memory: what a thread block has of its sum over dhv, and of the sum of its rows
 * over dqk, is one of the parts of yx. */
#define PARTS                                                                                      \
    {                                                                                              \
        .name = "y", .outputs = {X_YX}, .mma = TG_MMA_SYNC, .warps = 4, .line = __LINE__, .row = { \
            [TG_CHUNK] = TG_P(1),                                                                  \
            [TG_LKV] = TG_P(64),                                                                   \
            [TG_DQK] = TG_P(64),                                                                   \
            [TG_DHV] = TG_P(64)                                                                    \
        }                                                                                          \
    }
#define HIDDEN                                                                                     \
    {                                                                                              \
        .name = "H", .outputs = {X_H}, .mma = TG_MMA_SYNC, .warps = 4, .line = __LINE__, .row = {  \
            [TG_CHUNK] = TG_P(1),                                                                  \
            [TG_LQ] = TG_P(64),                                                                    \
            [TG_LKV] = TG_L(64),                                                                   \
            [TG_DQK] = TG_L(0),                                                                    \
            [TG_DHV] = TG_P(64)                                                                    \
        }                                                                                          \
    }
#define GROUP_KEYS                                                                                 \
    {                                                                                              \
        .name = "dK", .outputs = {X_DK}, .mma = TG_MMA_SYNC, .warps = 4, .line = __LINE__,         \
        .row = {                                                                                   \
            [TG_CHUNK] = TG_P(1),                                                                  \
            [TG_LQ] = TG_L(64),                                                                    \
            [TG_LKV] = TG_P(64),                                                                   \
            [TG_DQK] = TG_P(0),                                                                    \
            [TG_MEMBER] = TG_L(1)                                                                  \
        }                                                                                          \
    }
#define BIAS                                                                                       \
    {                                                                                              \
        .name = "dbias", .outputs = {X_DB}, .warps = 4, .line = __LINE__, .row = {                 \
            [TG_BATCH] = TG_L(1),                                                                  \
            [TG_CHUNK] = TG_L(1),                                                                  \
            [TG_LKV] = TG_W(128)                                                                   \
        }                                                                                          \
    }

/* The caller gets the states ... */
static const tg_schedule all = {
    TG_HEADER(tg_schedule),
    .name = "all",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 128,
    .kept = {X_C, X_N},
    .n_rows = 8,
    .rows = {GATES, SCAN, STATE, NORM, PARTS, HIDDEN, GROUP_KEYS, BIAS},
};

/* ... and gives some of them back. */
static const tg_schedule again = {
    TG_HEADER(tg_schedule),
    .name = "again",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 128,
    .kept = {X_N},
    .n_rows = 7,
    .rows = {GATES, SCAN, STATE, PARTS, HIDDEN, GROUP_KEYS, BIAS},
};

static const tg_vary vary[] = {
    {.field = TG_FIELD_CHUNK, .values = {64, 128}, .line = __LINE__},
};

static const tg_space space = {
    TG_HEADER(tg_space), .name = "all", .file = __FILE__,
    .schedule = &all,    .vary = vary,  .n_vary = TG_COUNT(vary),
};

static void oracle(const tg_oracle_call *call)
{
    (void)call;
}

static const char *const aliases[] = {"forms-alias", NULL};
static const tg_schedule *const schedules[] = {&all, &again, NULL};
static const tg_space *const spaces[] = {&space, NULL};

const tg_variant forms = {
    TG_HEADER(tg_variant),  .name = "forms",  .aliases = aliases, .algorithm = &algorithm,
    .schedules = schedules, .spaces = spaces, .oracle = oracle,
};
