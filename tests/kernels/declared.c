/* tests/kernels/declared.c - small declarations outside the family: what the compiler makes of them is right, or it
 * refuses them. Each was once accepted and computed wrongly, or crashed the compiler. */
#include "dsl/slice.h"
#include "harness.h"
#include "suites.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 64 };

/* ---- every channel by itself: a scan in a loop while the threads share out dqk, and a decay for each element -------- */

enum { X = 1, Y, NF, N0, LA, B, G, NK, N };
static const tg_tensor channel_tensors[] = {
    [X] = {"x", TG_F32, TG_IN, {TG_T, TG_DQK}},  [Y] = {"y", TG_F32, TG_OUT, {TG_T, TG_DQK}},
    [NF] = {"n", TG_F32, TG_OUT, {TG_DQK}},      [N0] = {"n0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK}},
    [LA] = {"la", TG_F32, 0, {TG_T, TG_DQK}},    [B] = {"b", TG_F32, 0, {TG_T, TG_DQK}},
    [G] = {"g", TG_F32, 0, {TG_CHUNK, TG_DQK}},  [NK] = {"nk", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [N] = {"ns", TG_F32, 0, {TG_CHUNK, TG_DQK}},
};
static const tg_stmt channel_body[] = {
    TG_MAP_TO(TG_AT_KV(LA), TG_MUL(TG_LOGSIG2(TG_KV(X)), TG_NUM(1.0f / CHUNK))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(LA)),
    TG_MAP_TO(TG_AT_KV(Y), TG_MUL(TG_KV(B), TG_SCALE)),
    TG_TOTAL_TO(G, TG_AT_KV(LA)),
    TG_TOTAL_TO(NK, TG_AT_KV(X)),
    TG_CARRY_TO(N, NF, N0, G, NK, 0),
};
static const tg_algorithm channels = {
    TG_HEADER(tg_algorithm),    .name = "channels",
    .title = "channels",        .file = __FILE__,
    .tensors = channel_tensors, .n_tensors = TG_COUNT(channel_tensors),
    .body = channel_body,       .n_body = TG_COUNT(channel_body),
};

static void channels_oracle(const tg_oracle_call *c)
{
    for (int64_t row = 0; row < c->batch * c->heads * c->dqk; row++) {
        const int64_t d = row % c->dqk, at = row / c->dqk;
        double b = 0, sum = 0, n = c->in[N0] ? c->in[N0][at * c->dqk + d] : 0;
        for (int64_t t = 0; t < c->tokens; t++) {
            const int64_t i = (at * c->tokens + t) * c->dqk + d;
            const double x = c->in[X][i], la = (fmin(x, 0) - log1p(exp(-fabs(x)))) / log(2) / CHUNK;
            b = t % CHUNK ? b + la : la;
            sum = t % CHUNK ? sum + x : x;
            c->out[Y][i] = b * c->scalars[0];
            if (t % CHUNK == CHUNK - 1 || t + 1 == c->tokens)
                n = exp2(b) * n + sum;
        }
        c->out[NF][at * c->dqk + d] = n;
    }
}

static void try_channels(const char *what, uint8_t warps, uint16_t scan_block, uint16_t carry_block)
{
    const tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "one",
        .file = __FILE__,
        .algorithm = &channels,
        .chunk = CHUNK,
        .n_rows = 2,
        .rows = {{.name = "scan",
                  .outputs = {Y, G, NK},
                  .warps = warps,
                  .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(scan_block)}},
                 {.name = "carry",
                  .outputs = {N},
                  .warps = warps,
                  .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(carry_block)}}},
    };
    const tg_schedule *const schedules[] = {&schedule, NULL};
    const char *const aliases[] = {NULL};
    const tg_variant variant = {TG_HEADER(tg_variant),  .name = "channels",     .aliases = aliases,
                                .algorithm = &channels, .schedules = schedules, .oracle = channels_oracle};
    if (!tap_begin("channels by themselves, %s", what))
        return;
    try_both_ways(&(struct spec){.own = &variant,
                                 .variant = "channels",
                                 .io = TG_BF16,
                                 .batch = 2,
                                 .heads = 2,
                                 .tokens = 150,
                                 .dqk = 136,
                                 .dhv = 16,
                                 .schedule = "one",
                                 .has_s0 = true},
                  7);
    tap_end();
}

/* ---- a state whose channels decay by themselves, on warpgroups: rows of it, or columns, are in the accumulators ---- */

enum { QW = 1, KW, VW, SW, HW, UW, AW, GW, CW, IW, TW, PW };
static const tg_tensor decayed_tensors[] = {
    [QW] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [KW] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [VW] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [SW] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
    [HW] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [UW] = {"u", TG_IO, TG_OUT, {TG_T, TG_DQK}},
    [AW] = {"a", TG_F32, 0, {TG_T, TG_DQK}},
    [GW] = {"g", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [CW] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [IW] = {"i", TG_F32, 0, {TG_T, TG_DHV}},
    [TW] = {"t", TG_F32, 0, {TG_LQ, TG_LKV}},
    [PW] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
};
static const tg_stmt decayed_body[] = {
    TG_MAP_TO(TG_AT_KV(AW), TG_MUL(TG_LOGSIG2(TG_KV(KW)), TG_NUM(1.0f / CHUNK))),
    TG_TOTAL_TO(GW, TG_AT_KV(AW)),
    TG_CARRY_TO(CW, SW, 0, GW, TG_AT_KV(KW), TG_AT_KV(VW)),
    TG_CONTRACT_TO(TG_AT_KV(UW), TG_AT_KV(VW), CW),
    TG_CONTRACT_TO(TG_AT_Q(IW), TG_AT_Q(QW), CW),
    TG_CONTRACT_TO(TW, TG_AT_Q(QW), TG_AT_KV(KW)),
    TG_MAP_TO(PW, TG_CAUSAL(TG_TILE(TW))),
    TG_CONTRACT_ONTO(TG_AT_Q(HW), TG_AT_Q(IW), PW, TG_AT_KV(VW)),
};
static const tg_algorithm decayed = {
    TG_HEADER(tg_algorithm),    .name = "decayed",
    .title = "decayed",         .file = __FILE__,
    .tensors = decayed_tensors, .n_tensors = TG_COUNT(decayed_tensors),
    .body = decayed_body,       .n_body = TG_COUNT(decayed_body),
};

/* The output of rows [first, end) of one head's chunk, from the state that arrives. */
static void linear_rows(const tg_oracle_call *c, int64_t first, int64_t end, const double *state)
{
    for (int64_t t = first; t < end; t++)
        for (int64_t x = 0; x < c->dhv; x++) {
            double h = 0;
            for (int64_t d = 0; d < c->dqk; d++) {
                double value = state[d * c->dhv + x];
                for (int64_t j = first; j <= t; j++)
                    value += c->in[KW][j * c->dqk + d] * c->in[VW][j * c->dhv + x];
                h += c->in[QW][t * c->dqk + d] * value;
            }
            c->out[HW][t * c->dhv + x] = h;
        }
}

/* ... and the state behind them. */
typedef void chunk_fn(const tg_oracle_call *c, int64_t first, int64_t end, double *state);

static void decayed_chunk(const tg_oracle_call *c, int64_t first, int64_t end, double *state)
{
    linear_rows(c, first, end, state);
    for (int64_t d = 0; d < c->dqk; d++) {
        double decay = 0;
        for (int64_t t = first; t < end; t++) {
            const double k = c->in[KW][t * c->dqk + d];
            double u = 0;
            for (int64_t x = 0; x < c->dhv; x++)
                u += c->in[VW][t * c->dhv + x] * state[d * c->dhv + x];
            c->out[UW][t * c->dqk + d] = u;
            decay += (fmin(k, 0) - log1p(exp(-fabs(k)))) / log(2) / CHUNK;
        }
        for (int64_t x = 0; x < c->dhv; x++) {
            double sum = exp2(decay) * state[d * c->dhv + x];
            for (int64_t t = first; t < end; t++)
                sum += c->in[KW][t * c->dqk + d] * c->in[VW][t * c->dhv + x];
            state[d * c->dhv + x] = sum;
        }
    }
}

static void each_chunk(const tg_oracle_call *c, chunk_fn *chunk)
{
    for (int64_t at = 0; at < c->batch * c->heads; at++) {
        double *state = c->out[SW] + at * c->dqk * c->dhv;
        memset(state, 0, (size_t)(c->dqk * c->dhv) * sizeof *state);
        for (int64_t t = 0; t < c->tokens; t += CHUNK)
            chunk(c, at * c->tokens + t, at * c->tokens + (t + CHUNK < c->tokens ? t + CHUNK : c->tokens), state);
    }
}

static void decayed_oracle(const tg_oracle_call *c)
{
    each_chunk(c, decayed_chunk);
}

static void try_walks(const char *what, const tg_schedule *schedule, void (*oracle)(const tg_oracle_call *))
{
    const tg_schedule *const schedules[] = {schedule, NULL};
    static const char *const aliases[] = {NULL};
    const tg_variant variant = {TG_HEADER(tg_variant),  .name = schedule->algorithm->name,
                                .aliases = aliases,     .algorithm = schedule->algorithm,
                                .schedules = schedules, .oracle = oracle};
    if (!tap_begin("%s", what))
        return;
    try_both_ways(&(struct spec){.own = &variant,
                                 .variant = variant.name,
                                 .io = TG_BF16,
                                 .batch = 1,
                                 .heads = 2,
                                 .tokens = 150,
                                 .dqk = 128,
                                 .dhv = 64,
                                 .schedule = "walks"},
                  7);
    tap_end();
}

#define WALKED(name_, outputs_, ...)                                                                                   \
    {                                                                                                                  \
        .name = name_, .outputs = {TG_CODES outputs_}, .mma = TG_MMA_WGMMA, .warps = 4, .stages = 2, .row = {          \
            [TG_CHUNK] = TG_W(1),                                                                                      \
            [TG_LKV] = TG_L(CHUNK),                                                                                    \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

static void try_decayed(void)
{
    static const tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "walks",
        .file = __FILE__,
        .algorithm = &decayed,
        .chunk = CHUNK,
        .n_rows = 3,
        .rows = {{.name = "gates",
                  .outputs = {GW},
                  .warps = 1,
                  .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(32)}},
                 WALKED("columns", (HW, SW), [TG_LQ] = TG_L(CHUNK), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64)),
                 WALKED("rows", (UW), [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(0))},
    };
    try_walks("channels of a state decay by themselves, as rows and as columns of accumulators", &schedule,
              decayed_oracle);
}

/* ---- keys that makers make of two matrices, in the place of one of them, without a sum over positions ---------------------------- */

enum { GM = UW, MM = AW, CM, IM, TM, PM }; /* behind those that it has like `decayed` */
static const tg_tensor made_tensors[] = {
    [QW] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},  [KW] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [VW] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},  [SW] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
    [HW] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}}, [GM] = {"g", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [MM] = {"m", TG_F32, 0, {TG_T, TG_DQK}},     [CM] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [IM] = {"i", TG_F32, 0, {TG_T, TG_DHV}},     [TM] = {"t", TG_F32, 0, {TG_LQ, TG_LKV}},
    [PM] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
};
static const tg_stmt made_body[] = {
    TG_MAP_TO(TG_AT_KV(MM), TG_MUL(TG_KV(KW), TG_SIGMOID(TG_KV(GM)))),
    TG_CARRY_TO(CM, SW, 0, 0, TG_AT_KV(MM), TG_AT_KV(VW)),
    TG_CONTRACT_TO(TG_AT_Q(IM), TG_AT_Q(QW), CM),
    TG_CONTRACT_TO(TM, TG_AT_Q(QW), TG_AT_KV(KW)),
    TG_MAP_TO(PM, TG_CAUSAL(TG_TILE(TM))),
    TG_CONTRACT_ONTO(TG_AT_Q(HW), TG_AT_Q(IM), PM, TG_AT_KV(VW)),
};
static const tg_algorithm made = {
    TG_HEADER(tg_algorithm), .name = "made",
    .title = "made",         .file = __FILE__,
    .tensors = made_tensors, .n_tensors = TG_COUNT(made_tensors),
    .body = made_body,       .n_body = TG_COUNT(made_body),
};

static void made_chunk(const tg_oracle_call *c, int64_t first, int64_t end, double *state)
{
    linear_rows(c, first, end, state);
    for (int64_t t = first; t < end; t++)
        for (int64_t d = 0; d < c->dqk; d++) {
            const double key = c->in[KW][t * c->dqk + d] / (1 + exp(-c->in[GM][t * c->dqk + d]));
            for (int64_t x = 0; x < c->dhv; x++)
                state[d * c->dhv + x] += key * c->in[VW][t * c->dhv + x];
        }
}

static void made_oracle(const tg_oracle_call *c)
{
    each_chunk(c, made_chunk);
}

static void try_made(void)
{
    static tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "walks",
        .file = __FILE__,
        .algorithm = &made,
        .chunk = CHUNK,
        .n_rows = 1,
        .rows = {WALKED("walk", (HW, SW), [TG_LQ] = TG_L(CHUNK), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64))},
    };
    schedule.rows[0].makers = 4;
    try_walks("keys that makers make without a sum over positions", &schedule, made_oracle);
}

/* ---- what kernels with matrix products cannot do --------------------------------------------------------------- */

enum { K = 1, K2, V, GX, S0, S, A, B2, D, KE, C };
static const tg_tensor state_tensors[] = {
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K2] = {"k2", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [GX] = {"gx", TG_F32, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_FORGET},
    [S0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [S] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
    [A] = {"a", TG_F32, 0, {TG_T, TG_DQK}},
    [B2] = {"b", TG_F32, 0, {TG_T, TG_DQK}},
    [D] = {"g", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [KE] = {"ke", TG_F32, 0, {TG_T, TG_DQK}},
    [C] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
};
#define GATES                                                                                                          \
    TG_MAP_TO(TG_AT_KV(A), TG_LOGSIG2(TG_KV(GX))), TG_SCAN_TO(TG_AT_KV(B2), TG_AT_KV(A)), TG_TOTAL_TO(D, TG_AT_KV(A))
static const tg_stmt decay_of_channels[] = {
    GATES,
    TG_CARRY_TO(C, S, S0, D, TG_AT_KV(K), TG_AT_KV(V)),
};
static const tg_stmt two_matrices[] = {
    GATES,
    TG_MAP_TO(TG_AT_KV(KE), TG_MUL(TG_KV(K), TG_KV(K2))),
    TG_CARRY_TO(C, S, S0, 0, TG_AT_KV(KE), TG_AT_KV(V)),
};
static const tg_stmt rounded_gate[] = {
    GATES,
    TG_MAP_TO(TG_AT_KV(KE), TG_EXP2(TG_KV(B2))),
    TG_CARRY_TO(C, S, S0, 0, TG_AT_KV(KE), TG_AT_KV(V)),
};
/* As rounded_gate, but what is rounded is the operand. */
static const tg_stmt once_rounded[] = {
    GATES,
    TG_MAP_TO(TG_AT_KV(KE), TG_MUL(TG_KV(K), TG_SCALE)),
    TG_CARRY_TO(C, S, S0, 0, TG_AT_KV(KE), TG_AT_KV(V)),
};

static const struct state_case {
    const char *what;
    const tg_stmt *body;
    uint32_t n;
    uint8_t mma;
    const char *code, *fragment; /* NULL: it is accepted */
} states[] = {
    {"a decay for each channel", decay_of_channels, TG_COUNT(decay_of_channels), TG_MMA_SYNC, NULL, NULL},
    {"a decay for each channel, on warpgroups", decay_of_channels, TG_COUNT(decay_of_channels), TG_MMA_WGMMA, NULL,
     NULL},
    {"an operand made of two matrices", two_matrices, TG_COUNT(two_matrices), TG_MMA_SYNC, NULL, NULL},
    {"an operand made of two matrices, on warpgroups", two_matrices, TG_COUNT(two_matrices), TG_MMA_WGMMA, "TG0524",
     "cannot compute an expression of another matrix and tile k2"},
    {"an operand made of a matrix of f32", rounded_gate, TG_COUNT(rounded_gate), TG_MMA_SYNC, "TG0523",
     "kernel state would compute operand ke from b while it fetches it, which it would round"},
    {"an operand made of one matrix", once_rounded, TG_COUNT(once_rounded), TG_MMA_SYNC, NULL, NULL},
};

static void check_state(const struct state_case *state)
{
    const tg_algorithm algorithm = {TG_HEADER(tg_algorithm),  .name = "state",
                                    .title = "state",         .file = __FILE__,
                                    .tensors = state_tensors, .n_tensors = TG_COUNT(state_tensors),
                                    .body = state->body,      .n_body = state->n};
    const bool walks = state->mma == TG_MMA_WGMMA;
    const tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "one",
        .file = __FILE__,
        .algorithm = &algorithm,
        .chunk = CHUNK,
        .n_rows = 2,
        .rows = {{.name = "gates",
                  .outputs = {B2, D},
                  .warps = 1,
                  .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(32)}},
                 {.name = "state",
                  .outputs = {C},
                  .mma = state->mma,
                  .warps = 4,
                  .row = {[TG_SEG] = {walks ? TG_ROLE_W : TG_ROLE_NONE, 0, walks ? 4 : 0},
                          [TG_CHUNK] = TG_W(1),
                          [TG_LKV] = TG_L(CHUNK),
                          [TG_DQK] = TG_P(64),
                          [TG_DHV] = TG_P(64)}}},
    };
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 64, .dhv = 64};
    log_clear();
    const tg_status status = tg_plan_check(&schedule, tg_target_find("sm_90a"), &shape, &log_sink);
    if (!state->code) {
        tap_expect(status == TG_OK, "refused: %s", log_text());
        return;
    }
    tap_expect(status != TG_OK, "it is accepted");
    tap_expect(strstr(log_text(), state->code) && strstr(log_text(), state->fragment), "expected %s \"%s\", found: %s",
               state->code, state->fragment, log_text());
}

/* ---- decode steps that hold a state: of algorithms that ship with other ones, and a sum that they cannot make --------- */

static uint8_t tile_named(const tg_algorithm *algorithm, const char *name)
{
    for (uint32_t t = 1; t < algorithm->n_tensors; t++)
        if (algorithm->tensors[t].name && strcmp(algorithm->tensors[t].name, name) == 0)
            return (uint8_t)t;
    return 0;
}

static tg_schedule held_step(const tg_algorithm *algorithm, uint8_t warps, uint16_t dhv)
{
    return (tg_schedule){
        TG_HEADER(tg_schedule),
        .name = "held",
        .file = __FILE__,
        .algorithm = algorithm,
        .chunk = 1,
        .max_tokens = 8,
        .n_rows = 1,
        .rows = {{.name = "step",
                  .outputs = {tile_named(algorithm, "h"), tile_named(algorithm, "S")},
                  .warps = warps,
                  .row = {[TG_CHUNK] = TG_W(1),
                          [TG_LQ] = TG_L(1),
                          [TG_LKV] = TG_L(1),
                          [TG_DQK] = TG_L(0),
                          [TG_DHV] = TG_P(dhv)}}},
    };
}

static void try_held(const tg_variant *shipped, uint8_t warps, uint16_t dhv, enum gates gates)
{
    const tg_schedule schedule = held_step(shipped->algorithm, warps, dhv);
    const tg_schedule *const schedules[] = {&schedule, NULL};
    const char *const aliases[] = {NULL};
    const tg_variant variant = {TG_HEADER(tg_variant),           .name = shipped->name,  .aliases = aliases,
                                .algorithm = shipped->algorithm, .schedules = schedules, .oracle = shipped->oracle};
    if (!tap_begin("%s held by %u warps, blocks of %u, gates %d", shipped->name, warps, dhv, (int)gates))
        return;
    try_both_ways(&(struct spec){.own = &variant,
                                 .variant = shipped->name,
                                 .io = TG_BF16,
                                 .batch = 2,
                                 .heads = 2,
                                 .tokens = 7,
                                 .dqk = 40,
                                 .dhv = 72,
                                 .gates = gates,
                                 .schedule = "held",
                                 .has_s0 = true,
                                 .is_pooled = true},
                  7);
    tap_end();
}

static void check_sum_of_held(void)
{
    enum { QH = 1, KH, VH, SH, CH, IH, HH, EH, VE, CE, SE };
    static const tg_tensor tensors[] = {
        [QH] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
        [KH] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
        [VH] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
        [SH] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
        [CH] = {"C", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
        [IH] = {"i", TG_F32, 0, {TG_T, TG_DHV}},
        [HH] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
        [EH] = {"e", TG_F32, 0, {TG_T}},
        [VE] = {"ve", TG_F32, 0, {TG_CHUNK, TG_DHV}},
        [CE] = {"c", TG_F32, 0, {TG_CHUNK, TG_DHV}},
        [SE] = {"s", TG_F32, TG_OUT, {TG_DHV}},
    };
    static const tg_stmt body[] = {
        TG_CARRY_TO(CH, SH, 0, 0, TG_AT_KV(KH), TG_AT_KV(VH)),
        TG_CONTRACT_TO(TG_AT_Q(IH), TG_AT_Q(QH), CH),
        TG_MAP_TO(TG_AT_Q(HH), TG_Q(IH)),
        TG_SUM_TO(TG_AT_Q(EH), TG_AT_Q(IH)),
        TG_CONTRACT_TO(VE, TG_AT_KV(VH), TG_AT_KV(EH)),
        TG_CARRY_TO(CE, SE, 0, 0, VE, 0),
    };
    const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm),        .name = "held", .title = "held",         .file = __FILE__, .tensors = tensors,
        .n_tensors = TG_COUNT(tensors), .body = body,   .n_body = TG_COUNT(body)};
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 64, .dhv = 64, .tokens = 8};
    tg_schedule schedule = held_step(&algorithm, 2, 64);
    schedule.rows[0].outputs[2] = EH;
    schedule.rows[schedule.n_rows++] =
        (tg_kernel_row){.name = "sums",
                        .outputs = {SE},
                        .warps = 1,
                        .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_P(32)}};
    log_clear();
    tap_expect(tg_plan_check(&schedule, tg_target_find("sm_90a"), &shape, &log_sink) != TG_OK, "it is accepted");
    tap_expect(strstr(log_text(), "TG0533") && strstr(log_text(), "e would be a sum over dhv"), "found: %s",
               log_text());
}

/* ---- schedules of a variant that ships, changed: what they list or keep is nowhere to be had ----------------------- */

struct changed {
    tg_tensor tensors[256];
    tg_algorithm algorithm;
    tg_schedule schedule;
};

static bool take_schedule(struct changed *c, const tg_variant *variant, const char *name)
{
    if (tg_variant_schedule_named(variant, name, &c->schedule, NULL) != TG_OK)
        return false;
    for (uint32_t i = 0; i < c->schedule.n_rows; i++)
        c->schedule.rows[i].only = 0; /* it keeps its rows, whatever is kept */
    c->algorithm = *c->schedule.algorithm;
    memcpy(c->tensors, c->algorithm.tensors, c->algorithm.n_tensors * sizeof *c->tensors);
    c->algorithm.tensors = c->tensors;
    c->schedule.algorithm = &c->algorithm;
    return true;
}

static const struct change {
    const char *what, *variant, *schedule;
    const char *keep;       /* a tile that the caller is to have */
    const char *row, *list; /* a row, and a tile that it is to write, too */
    const char *two_floats; /* a tile that is to be TG_F32X2 */
    const char *code, *fragment;
    uint32_t dqk;       /* 0: 128 */
    const char *floats; /* a tile that is to be TG_F32 */
} changes[] = {
    {"a sum that begins with a kept tile", "mlstm-sig", "tfla", "gated", NULL, NULL, NULL, "TG0524",
     "kernel H cannot begin a sum with tile gated", 0, NULL},
    {"an operand made while it is fetched, to be stored", "mlstm-sig", "tfla", NULL, "state", "kw", NULL, "TG0524",
     "kernel state cannot store tile kw", 0, NULL},
    {"the same on warpgroups", "mlstm-sig", "walk", NULL, "walk", "kw", NULL, "TG0518",
     "its chunks write positions by dqk or dhv as its rows are", 0, NULL},
    {"what a walk makes, in two floats", "mlstm-exp", "walk-n", NULL, "walk", "hn", "hn", "TG0524",
     "cannot store as two floats tile hn", 0, NULL},
    {"a sum that is made in parts, kept", "mlstm-sig-backward", "tfla", "kx", NULL, NULL, NULL, "TG0525",
     "kernel dK makes kx in parts, which cannot be kept", 256, NULL},
    {"a sum that is made in parts, of the input type", "gated-delta-backward", "walk-grouped dQ.dhv=P/128", NULL, NULL,
     NULL, NULL, "TG0525", "kernel dQ makes dqh in parts, which are fp32", 0, NULL},
    {"parts of a sum, for rows that lanes load", "kda-backward", "walk dQi.dhv=P/128", NULL, NULL, NULL, NULL, "TG0524",
     "kernel keys cannot take, in parts, tile dqi", 0, "dqi"},
    {"what begins a gradient, kept", "mlstm-sig-backward", "tfla", "dqg", NULL, NULL, NULL, "TG0524",
     "kernel dQ cannot begin a sum with tile dqg", 0, NULL},
};

static void check_change(const struct change *change)
{
    const tg_shape_class shape = {
        .io = TG_BF16, .dqk = change->dqk ? change->dqk : 128, .dhv = 256, .packed = change->two_floats != NULL};
    struct changed c;
    if (!tap_expect(take_schedule(&c, tg_variant_find(change->variant), change->schedule), "no such schedule"))
        return;
    if (change->keep)
        c.schedule.kept[0] = tile_named(&c.algorithm, change->keep);
    for (uint32_t r = 0; change->row && r < c.schedule.n_rows; r++)
        if (strcmp(c.schedule.rows[r].name, change->row) == 0)
            *(uint8_t *)memchr(c.schedule.rows[r].outputs, 0, TG_MAX_OUTPUTS) = tile_named(&c.algorithm, change->list);
    if (change->two_floats)
        c.tensors[tile_named(&c.algorithm, change->two_floats)].dtype = TG_F32X2;
    if (change->floats)
        c.tensors[tile_named(&c.algorithm, change->floats)].dtype = TG_F32;
    log_clear();
    tap_expect(tg_plan_check(&c.schedule, tg_target_find("sm_90a"), &shape, &log_sink) != TG_OK, "it is accepted");
    tap_expect(strstr(log_text(), change->code) && strstr(log_text(), change->fragment),
               "expected %s \"%s\", found: %s", change->code, change->fragment, log_text());
}

/* A number of each sequence and head, kept: without a pool it may be; with one the caller's would be in slots. */
static void check_kept_of_sequences(void)
{
    tg_shape_class shape = {.io = TG_BF16, .dqk = 64, .dhv = 64};
    struct changed c;
    if (!tap_expect(take_schedule(&c, tg_variant_find("kda-safe"), "portable"), "no such schedule"))
        return;
    const uint8_t rate = tile_named(&c.algorithm, "rate");
    c.tensors[rate].flags = 0;
    c.schedule.kept[0] = rate;
    log_clear();
    tap_expect(tg_plan_check(&c.schedule, tg_target_find("sm_80"), &shape, &log_sink) == TG_OK, "found: %s",
               log_text());
    shape.pooled = TG_POOL_SLOTS;
    tap_expect(tg_plan_check(&c.schedule, tg_target_find("sm_80"), &shape, &log_sink) != TG_OK, "it is accepted");
    tap_expect(strstr(log_text(), "TG0558") && strstr(log_text(), "rate, of whole sequences, cannot be kept"),
               "found: %s", log_text());
}

/* gated-delta's walk, with the weight of a token in its key and not in the value that is in registers, which takes it all the same. */
static void try_weighted_keys(void)
{
    static tg_stmt body[TG_MAX_BODY];
    static struct changed c;
    const tg_variant *variant = tg_variant_find("gated-delta");
    if (!tap_expect(take_schedule(&c, variant, "walk"), "no such schedule"))
        return;
    const uint8_t k = tile_named(&c.algorithm, "k"), n = tile_named(&c.algorithm, "n"),
                  weighted = tile_named(&c.algorithm, "nw");
    memcpy(body, c.algorithm.body, c.algorithm.n_body * sizeof *body);
    for (uint32_t i = 0; i < c.algorithm.n_body; i++) {
        if (body[i].op == TG_STMT_MAP && TG_OPERAND_TILE(body[i].out) == weighted)
            body[i].expr[0].operand = TG_AT_KV(k);
        if (body[i].op == TG_STMT_CARRY)
            body[i].a = TG_AT_KV(weighted), body[i].b = TG_AT_KV(n);
    }
    c.algorithm.body = body;
    c.tensors[weighted].axes[1] = TG_DQK;
    const tg_schedule *const schedules[] = {&c.schedule, NULL};
    const char *const aliases[] = {NULL};
    const tg_variant own = {TG_HEADER(tg_variant),     .name = "weighted",     .aliases = aliases,
                            .algorithm = &c.algorithm, .schedules = schedules, .oracle = variant->oracle};
    try_both_ways(&(struct spec){.own = &own,
                                 .variant = "weighted",
                                 .io = TG_BF16,
                                 .batch = 1,
                                 .heads = 2,
                                 .tokens = 150,
                                 .dqk = 64,
                                 .dhv = 128,
                                 .schedule = "walk",
                                 .has_s0 = true},
                  7);
}

/* mlstm-sig's walk, which is also to sum its weights over the queries: a row of them is in a warp, a column in all of them. */
static void check_sum_of_columns(void)
{
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 128, .dhv = 256};
    static tg_stmt body[TG_MAX_BODY];
    struct changed c;
    if (!tap_expect(take_schedule(&c, &tg_mlstm_sig, "walk"), "no such schedule"))
        return;
    const uint32_t sum = c.algorithm.n_tensors++, weights = tile_named(&c.algorithm, "p");
    c.tensors[sum] = (tg_tensor){"rx", TG_F32, TG_OUT, {TG_T}, 0};
    memcpy(body, c.algorithm.body, c.algorithm.n_body * sizeof *body);
    body[c.algorithm.n_body++] =
        (tg_stmt){.op = TG_STMT_CONTRACT, .out = TG_AT_KV(sum), .a = (tg_operand)weights, .file = __FILE__};
    c.algorithm.body = body;
    tg_kernel_row *walk = &c.schedule.rows[c.schedule.n_rows - 1];
    *(uint8_t *)memchr(walk->outputs, 0, TG_MAX_OUTPUTS) = (uint8_t)sum;
    log_clear();
    tap_expect(tg_plan_check(&c.schedule, tg_target_find("sm_90a"), &shape, &log_sink) != TG_OK, "it is accepted");
    tap_expect(strstr(log_text(), "TG0518") && strstr(log_text(), "it sums a tile of positions over its rows"),
               "found: %s", log_text());
}

void suite_declared(void)
{
    try_channels("an element a thread", 1, 32, 32);
    try_channels("two elements side by side", 1, 64, 64);
    try_channels("two warps, four elements side by side", 2, 256, 256);
    try_decayed();
    try_made();
    for (size_t i = 0; i < TG_COUNT(states); i++) {
        if (!tap_begin("%s: %s", states[i].code ? "refused" : "accepted", states[i].what))
            continue;
        check_state(&states[i]);
        tap_end();
    }
    try_held(&tg_gla, 2, 64, ORDINARY);
    try_held(&tg_simple_gla, 1, 16, MASKED);
    try_held(&tg_mlstm_sig, 4, 256, EXTREME);
    if (tap_begin("refused: a sum over the value columns beside a held state")) {
        check_sum_of_held();
        tap_end();
    }
    if (tap_begin("refused: what is of whole sequences kept beside states in a pool")) {
        check_kept_of_sequences();
        tap_end();
    }
    if (tap_begin("the weight of a key, where the value that it multiplies is in registers")) {
        try_weighted_keys();
        tap_end();
    }
    if (tap_begin("refused: a sum of columns of a walk's weights")) {
        check_sum_of_columns();
        tap_end();
    }
    for (size_t i = 0; i < TG_COUNT(changes); i++) {
        if (!tap_begin("refused: %s", changes[i].what))
            continue;
        check_change(&changes[i]);
        tap_end();
    }
}
