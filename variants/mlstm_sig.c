/* variants/mlstm_sig.c - mLSTM with sigmoid input gate and no normaliser (TFLA paper, section 2 and eq. 28-30).
 *
 *     C_t = sigmoid(f_t) C_{t-1} + sigmoid(i_t) k_t v_t^T        h_t = scale C_t^T q_t
 *
 * Chunkwise, with a = log2 sigmoid(f), b its prefix sum inside the chunk and g the sum over the chunk:
 * every exponent below is <= 0, for any gate. */
#include "variants/mlstm_sig.h"
#include "variants/variants.h"

#include <math.h>
#include <stdlib.h>

static const tg_tensor tensors[N_MLSTM_SIG_TILES] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [F] = {"f", TG_F32, TG_IN, {TG_T}}, /* forget gate pre-activation */
    [I] = {"i", TG_F32, TG_IN, {TG_T}}, /* input gate pre-activation */
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [H] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [S] = {"S", TG_F32, TG_OUT | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [A] = {"a", TG_F32, 0, {TG_T}},                     /* log2 sigmoid(f) */
    [LI] = {"li", TG_F32, 0, {TG_T}},                   /* log2 sigmoid(i) */
    [B] = {"b", TG_F32X2, 0, {TG_T}},                   /* prefix sum of a in the chunk */
    [G] = {"g", TG_F32X2, 0, {TG_CHUNK}},               /* sum of a over the chunk */
    [W] = {"w", TG_F32, 0, {TG_T}},                     /* weight of a token in the outgoing state */
    [KW] = {"kw", TG_F32, 0, {TG_T, TG_DQK}},           /* weighted keys */
    [C] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}}, /* state that arrives at the chunk */
    [INTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [GATED] = {"gated", TG_F32, 0, {TG_T, TG_DHV}},
    [QK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [SUM] = {"sum", TG_F32, 0, {TG_T, TG_DHV}},
};

static const tg_stmt body[] = {
    /* gates, eq. 29, in log2 space */
    TG_MAP_TO(TG_AT_KV(A), TG_GET(TG_AT_KV(F)), TG_LOGSIG2),
    TG_MAP_TO(TG_AT_KV(LI), TG_GET(TG_AT_KV(I)), TG_LOGSIG2),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(A)),
    TG_TOTAL_TO(G, TG_AT_KV(A)),
    TG_MAP_TO(TG_AT_KV(W), TG_GET(G), TG_GET(TG_AT_KV(B)), TG_SUB, TG_GET(TG_AT_KV(LI)), TG_ADD, TG_EXP2),
    /* state, eq. 28 */
    TG_MAP_TO(TG_AT_KV(KW), TG_GET(TG_AT_KV(K)), TG_GET(TG_AT_KV(W)), TG_MUL),
    TG_CARRY_TO(C, S, S0, G, TG_AT_KV(KW), TG_AT_KV(V)),
    /* H, eq. 30: what arrives from before the chunk, then the causal part inside it. The row factor
     * 2^b commutes with the product by C, so q stays an unmodified matrix operand. */
    TG_CONTRACT_TO(TG_AT_Q(INTER), TG_AT_Q(Q), C),
    TG_MAP_TO(TG_AT_Q(GATED), TG_GET(TG_AT_Q(INTER)), TG_GET(TG_AT_Q(B)), TG_EXP2, TG_MUL),
    TG_CONTRACT_TO(QK, TG_AT_Q(Q), TG_AT_KV(K)),
    TG_MAP_TO(P, TG_GET(TG_AT_Q(B)), TG_GET(TG_AT_KV(B)), TG_SUB, TG_GET(TG_AT_KV(LI)), TG_ADD, TG_EXP2,
              TG_GET(QK), TG_MUL, TG_CAUSAL),
    TG_CONTRACT_ONTO(TG_AT_Q(SUM), TG_AT_Q(GATED), P, TG_AT_KV(V)),
    TG_MAP_TO(TG_AT_Q(H), TG_GET(TG_AT_Q(SUM)), TG_SCALE, TG_MUL),
};

const tg_algorithm tg_mlstm_sig_algorithm = {
    TG_HEADER(tg_algorithm),
    .name = "mlstm-sig",
    .title = "mLSTM with sigmoid input gate, forward (TFLA, arXiv 2503.14376, eq. 28-30)",
    .file = __FILE__,
    .tensors = tensors,
    .n_tensors = N_MLSTM_SIG_TILES,
    .n_body = TG_COUNT(body),
    .body = body,
};

/* One thread a token; the same in every schedule. */
#define GATES_ROW                                                                                                      \
    {.name = "gates", .outputs = {B, LI, G, W}, .warps = 4, .line = __LINE__,                                          \
     .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(128)}}

/* The two-level schedule of the TFLA paper: states of every chunk in memory, H by Table 1's P L L P.
 * Blocks for GPUs with 160 KB of shared memory and more (A100, H100, H200, B200). blocks_per_sm = 1 lets ptxas
 * have all 255 registers: left alone it may spill to fit a third block. */
static const tg_schedule tfla = {
    TG_HEADER(tg_schedule),
    .name = "tfla",
    .file = __FILE__,
    .algorithm = &tg_mlstm_sig_algorithm,
    .chunk = 256,
    .n_rows = 3,
    .rows = {
        GATES_ROW,
        {.name = "state", .outputs = {C}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 3, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}},
        {.name = "H", .outputs = {H}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(128), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(128),
                 [TG_DHV] = TG_P(128)}},
    },
};

/* The same for dqk beyond 128, where a second loop over dqk needs registers of its own. */
static const tg_schedule tfla_wide = {
    TG_HEADER(tg_schedule),
    .name = "tfla-wide",
    .file = __FILE__,
    .algorithm = &tg_mlstm_sig_algorithm,
    .chunk = 128,
    .n_rows = 3,
    .rows = {
        GATES_ROW,
        {.name = "state", .outputs = {C}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 3, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}},
        {.name = "H", .outputs = {H}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(128),
                 [TG_DHV] = TG_P(128)}},
    },
};

/* The same for 99 KB of shared memory (RTX 30xx, 40xx, 50xx). */
static const tg_schedule tfla_small = {
    TG_HEADER(tg_schedule),
    .name = "tfla-small",
    .file = __FILE__,
    .algorithm = &tg_mlstm_sig_algorithm,
    .chunk = 128,
    .n_rows = 3,
    .rows = {
        GATES_ROW,
        {.name = "state", .outputs = {C}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(32), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(64)}},
        {.name = "H", .outputs = {H}, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(64),
                 [TG_DHV] = TG_P(64)}},
    },
};

/* fp32 inputs: operands split in two take twice the registers, and twice the shared memory of 16-bit ones.
 * One block per multiprocessor is said aloud: left alone, ptxas spills to fit three. */
static const tg_schedule tfla_fp32 = {
    TG_HEADER(tg_schedule),
    .name = "tfla-fp32",
    .file = __FILE__,
    .algorithm = &tg_mlstm_sig_algorithm,
    .chunk = 128,
    .n_rows = 3,
    .rows = {
        GATES_ROW,
        {.name = "state", .outputs = {C}, .mma = TG_MMA_TF32X3, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(32), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(64)}},
        {.name = "H", .outputs = {H}, .mma = TG_MMA_TF32X3, .warps = 4, .stages = 2, .blocks_per_sm = 1, .line = __LINE__,
         .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(32),
                 [TG_DHV] = TG_P(32)}},
    },
};

static const tg_vary tfla_vary[] = {
    {.field = TG_FIELD_CHUNK, .values = {64, 128, 192, 256, 384, 512, 1024, 2048, 4096}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 1, .dim = TG_DQK, .values = {32, 64, 128}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 1, .dim = TG_DHV, .values = {32, 64, 128, 256}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 1, .dim = TG_LKV, .values = {32, 64}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .row = 1, .values = {2, 3, 4}, .line = __LINE__},
    {.field = TG_FIELD_BLOCKS_PER_SM, .row = 1, .values = {1, 2, 3}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 2, .dim = TG_LQ, .values = {64, 128}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 2, .dim = TG_LKV, .values = {32, 64}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 2, .dim = TG_DHV, .values = {64, 128, 256}, .line = __LINE__},
    {.field = TG_FIELD_WARPS, .row = 2, .values = {4, 8}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .row = 2, .values = {2, 3}, .line = __LINE__},
};

static const tg_vary small_vary[] = {
    {.field = TG_FIELD_CHUNK, .values = {64, 128, 192, 256, 384, 512, 1024, 2048}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 1, .dim = TG_DHV, .values = {32, 64, 128}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 2, .dim = TG_LKV, .values = {16, 32, 64}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .row = 2, .dim = TG_DHV, .values = {32, 64, 128}, .line = __LINE__},
};

static const tg_space small_space = {
    TG_HEADER(tg_space), .name = "tfla-small", .file = __FILE__, .schedule = &tfla_small, .vary = small_vary, .n_vary = TG_COUNT(small_vary),
};

static const tg_space fp32_space = {
    TG_HEADER(tg_space), .name = "tfla-fp32", .file = __FILE__, .schedule = &tfla_fp32, .vary = small_vary, .n_vary = TG_COUNT(small_vary),
};

static const tg_space wide_space = {
    TG_HEADER(tg_space), .name = "tfla-wide", .file = __FILE__, .schedule = &tfla_wide, .vary = small_vary, .n_vary = TG_COUNT(small_vary),
};

static const tg_space tfla_space = {
    TG_HEADER(tg_space),
    .name = "tfla",
    .file = __FILE__,
    .schedule = &tfla,
    .vary = tfla_vary,
    .n_vary = TG_COUNT(tfla_vary),
};

/* The recurrence, token by token, in fp64. */
static void oracle(const tg_oracle_call *c)
{
    const size_t n_state = (size_t)(c->dqk * c->dhv);
    double *state = calloc(n_state, sizeof *state);
    if (!state)
        return; /* the outputs keep their NaN and no comparison passes */
    for (int64_t head = 0; head < c->batch * c->heads; head++) {
        for (size_t s = 0; s < n_state; s++)
            state[s] = c->in[S0] ? c->in[S0][(size_t)head * n_state + s] : 0.0;
        for (int64_t t = head * c->tokens; t < (head + 1) * c->tokens; t++) {
            const double *q = c->in[Q] + t * c->dqk, *k = c->in[K] + t * c->dqk, *v = c->in[V] + t * c->dhv;
            const double forget = 1.0 / (1.0 + exp(-c->in[F][t])), input = 1.0 / (1.0 + exp(-c->in[I][t]));
            double *h = c->out[H] + t * c->dhv;
            for (int64_t y = 0; y < c->dhv; y++)
                h[y] = 0.0;
            for (int64_t x = 0; x < c->dqk; x++) {
                double *row = state + x * c->dhv;
                for (int64_t y = 0; y < c->dhv; y++) {
                    row[y] = forget * row[y] + input * k[x] * v[y];
                    h[y] += c->scale * q[x] * row[y];
                }
            }
        }
        for (size_t s = 0; c->out[S] && s < n_state; s++)
            c->out[S][(size_t)head * n_state + s] = state[s];
    }
    free(state);
}

static const char *const aliases[] = {"mlstmsig", NULL};
static const tg_schedule *const schedules[] = {&tfla, &tfla_wide, &tfla_small, &tfla_fp32, NULL};
static const tg_space *const spaces[] = {&tfla_space, &wide_space, &small_space, &fp32_space, NULL};

const tg_variant tg_mlstm_sig = {
    TG_HEADER(tg_variant),
    .name = "mlstm-sig",
    .aliases = aliases,
    .algorithm = &tg_mlstm_sig_algorithm,
    .schedules = schedules,
    .spaces = spaces,
    .oracle = oracle,
    .backward = &tg_mlstm_sig_backward,
};
