/* tests/dsl/good.c - mLSTM with sigmoid input gate, as in variants/mlstm_sig.c but with every field
 * of the structs in use; three ways to schedule it. */
#include "tests/dsl/good.h"

static const tg_tensor tensors[N_GOOD] = {
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
    [INTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [GATED] = {"gated", TG_F32, 0, {TG_T, TG_DHV}},
    [QK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [SUM] = {"sum", TG_F32, 0, {TG_T, TG_DHV}},
};

static const tg_stmt body[] = {
    TG_MAP_TO(TG_AT_KV(A), TG_LOGSIG2(TG_KV(F))),
    TG_MAP_TO(TG_AT_KV(LI), TG_LOGSIG2(TG_KV(I))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(G, TG_AT_KV(A)),
    TG_MAP_TO(TG_AT_KV(W), TG_EXP2(TG_ADD(TG_SUB(TG_TILE(G), TG_KV(B)), TG_KV(LI)))),
    TG_MAP_TO(TG_AT_KV(KW), TG_MUL(TG_KV(K), TG_KV(W))),
    TG_CARRY_TO(C, S, S0, G, TG_AT_KV(KW), TG_AT_KV(V)),
    TG_CONTRACT_TO(TG_AT_Q(INTER), TG_AT_Q(Q), C),
    TG_MAP_TO(TG_AT_Q(GATED), TG_MUL(TG_Q(INTER), TG_EXP2(TG_Q(B)))),
    TG_CONTRACT_TO(QK, TG_AT_Q(Q), TG_AT_KV(K)),
    TG_MAP_TO(P, TG_CAUSAL(TG_MUL(TG_EXP2(TG_ADD(TG_SUB(TG_Q(B), TG_KV(B)), TG_KV(LI))),
                                  TG_TILE(QK)))),
    TG_CONTRACT_ONTO(TG_AT_Q(SUM), TG_AT_Q(GATED), P, TG_AT_KV(V)),
    TG_MAP_TO(TG_AT_Q(H), TG_MUL(TG_Q(SUM), TG_SCALE)),
};

static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),  .name = "good",     .title = "mLSTM with sigmoid input gate, forward",
    .file = __FILE__,         .tensors = tensors, .n_tensors = N_GOOD,
    .n_body = TG_COUNT(body), .body = body,
};

/* States of every chunk in memory. */
static const tg_schedule tfla = {
    TG_HEADER(tg_schedule),
    .name = "tfla",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 128,
    .n_rows = 3,
    .rows =
        {
            {.name = "gates",
             .outputs = {B, LI, G, W},
             .warps = 4,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(128)}},
            {.name = "state",
             .outputs = {C},
             .mma = TG_MMA_SYNC,
             .warps = 4,
             .stages = 3,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_W(1),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_P(64),
                     [TG_DHV] = TG_P(128)}},
            {.name = "H",
             .outputs = {H},
             .mma = TG_MMA_SYNC,
             .warps = 8,
             .stages = 2,
             .blocks_per_sm = 1,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_P(1),
                     [TG_LQ] = TG_P(128),
                     [TG_LKV] = TG_L(32),
                     [TG_DQK] = TG_L(0),
                     [TG_DHV] = TG_P(128)}},
        },
};

/* One kernel walks all chunks of a head: neither states nor gates are in memory. A chunk is one
 * block, so the prefix sums are inside it. */
const tg_schedule good_walk = {
    TG_HEADER(tg_schedule),
    .name = "walk",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 64,
    .n_rows = 1,
    .rows = {{.name = "H",
              .outputs = {H},
              .mma = TG_MMA_SYNC,
              .warps = 8,
              .stages = 2,
              .line = __LINE__,
              .row = {[TG_CHUNK] = TG_W(1),
                      [TG_LQ] = TG_L(64),
                      [TG_LKV] = TG_L(64),
                      [TG_DQK] = TG_L(0),
                      [TG_DHV] = TG_P(64)}}},
};

/* Segments of 16 chunks in parallel: what each makes of nothing, composed, and the walk on from there. */
const tg_schedule good_segments = {
    TG_HEADER(tg_schedule),
    .name = "segments",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 64,
    .n_rows = 4,
    .rows =
        {
            {.name = "gates",
             .outputs = {G},
             .warps = 2,
             .line = __LINE__,
             .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}},
            {.name = "state",
             .outputs = {C},
             .mma = TG_MMA_SYNC,
             .warps = 4,
             .line = __LINE__,
             .row = {[TG_SEG] = TG_P(16),
                     [TG_CHUNK] = TG_W(1),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_P(64),
                     [TG_DHV] = TG_P(64)}},
            {.name = "compose",
             .outputs = {C},
             .warps = 2,
             .line = __LINE__,
             .row = {[TG_SEG] = TG_W(16), [TG_DQK] = TG_P(1), [TG_DHV] = TG_P(256)}},
            {.name = "H",
             .outputs = {H},
             .mma = TG_MMA_SYNC,
             .warps = 8,
             .line = __LINE__,
             .row = {[TG_SEG] = TG_P(16),
                     [TG_CHUNK] = TG_W(1),
                     [TG_LQ] = TG_L(64),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_L(0),
                     [TG_DHV] = TG_P(64)}},
        },
};

/* The states with which segments of 16 chunks begin, and the walks on from there. */
const tg_schedule good_starts = {
    TG_HEADER(tg_schedule),
    .name = "starts",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 64,
    .n_rows = 2,
    .rows =
        {
            {.name = "state",
             .outputs = {C},
             .mma = TG_MMA_SYNC,
             .warps = 4,
             .line = __LINE__,
             .row = {[TG_SEG] = TG_W(16),
                     [TG_CHUNK] = TG_W(1),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_P(64),
                     [TG_DHV] = TG_P(64)}},
            {.name = "H",
             .outputs = {H},
             .mma = TG_MMA_SYNC,
             .warps = 8,
             .line = __LINE__,
             .row = {[TG_SEG] = TG_P(16),
                     [TG_CHUNK] = TG_W(1),
                     [TG_LQ] = TG_L(64),
                     [TG_LKV] = TG_L(64),
                     [TG_DQK] = TG_L(0),
                     [TG_DHV] = TG_P(64)}},
        },
};

/* A decode step: up to 4 tokens, held in registers, against one column of the state a thread. */
const tg_schedule good_step = {
    TG_HEADER(tg_schedule),
    .name = "step",
    .file = __FILE__,
    .algorithm = &algorithm,
    .chunk = 64,
    .max_tokens = 4,
    .n_rows = 1,
    .rows = {{.name = "step",
              .outputs = {H, S},
              .warps = 2,
              .line = __LINE__,
              .row = {[TG_CHUNK] = TG_W(1),
                      [TG_LQ] = TG_L(4),
                      [TG_LKV] = TG_L(4),
                      [TG_DQK] = TG_L(1),
                      [TG_DHV] = TG_P(64)}}},
};

static const tg_vary vary[] = {
    {.field = TG_FIELD_CHUNK, .values = {128, 256, 512}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"H"}, .dim = TG_LQ, .values = {64, 128}, .line = __LINE__},
    {.field = TG_FIELD_WARPS, .rows = {"H"}, .values = {4, 8}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .rows = {"state"}, .values = {2, 3, 4}, .line = __LINE__},
    {.field = TG_FIELD_BLOCKS_PER_SM, .rows = {"H"}, .values = {1, 2}, .line = __LINE__},
};

static const tg_space space = {
    TG_HEADER(tg_space), .name = "tfla", .file = __FILE__,
    .schedule = &tfla,   .vary = vary,   .n_vary = TG_COUNT(vary),
};

static void oracle(const tg_oracle_call *call)
{
    (void)call;
}

static const char *const aliases[] = {"good-alias", NULL};
static const tg_schedule *const schedules[] = {&tfla,        &good_walk, &good_segments,
                                               &good_starts, &good_step, NULL};
static const tg_space *const spaces[] = {&space, NULL};

const tg_variant good = {
    TG_HEADER(tg_variant),  .name = "good",   .aliases = aliases, .algorithm = &algorithm,
    .schedules = schedules, .spaces = spaces, .oracle = oracle,
};
