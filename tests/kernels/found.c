/* tests/kernels/found.c - what random declarations (tests/declarations/) have found: sums of positions behind the end of a
 * sequence, scans that would go on from one to the next, positions for which a row has no role; inverses that products take
 * turned, vectors beside right operands, states that go opposite ways; and a tensor that nobody can size. */
#include "harness.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 };

/* ---- positions without a mask, summed; the maximum of what came before ---- */

enum { FQ = 1, FK, FV, FQK, FP, FRS, FY };
static const tg_tensor summed_tensors[] = {
    [FQ] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},   [FK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [FV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},   [FQK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [FP] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},     [FRS] = {"rs", TG_F32, TG_OUT, {TG_T}},
    [FY] = {"y", TG_F32, TG_OUT, {TG_T, TG_DHV}},
};
static const tg_stmt summed_body[] = {
    TG_CONTRACT_TO(FQK, TG_AT_Q(FQ), TG_AT_KV(FK)),
    TG_MAP_TO(FP, TG_SIGMOID(TG_TILE(FQK))),
    TG_SUM_TO(TG_AT_Q(FRS), FP),
    TG_SCAN_MAX_TO(TG_AT_KV(FY), TG_AT_KV(FV)),
};
static const tg_algorithm summed = {
    TG_HEADER(tg_algorithm),   .name = "summed",
    .title = "summed",         .file = __FILE__,
    .tensors = summed_tensors, .n_tensors = TG_COUNT(summed_tensors),
    .body = summed_body,       .n_body = TG_COUNT(summed_body),
};

static tg_schedule summed_by(tg_axis_role positions, tg_axis_role channels)
{
    tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "one",
        .file = __FILE__,
        .algorithm = &summed,
        .chunk = CHUNK,
        .n_rows = 2,
        .rows = {{.name = "sums",
                  .outputs = {FRS},
                  .mma = TG_MMA_SYNC,
                  .warps = 4,
                  .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(CHUNK), [TG_LKV] = TG_L(16), [TG_DQK] = TG_L(16)}},
                 {.name = "maxima", .outputs = {FY}, .warps = 1, .row = {[TG_CHUNK] = TG_P(1)}}},
    };
    schedule.rows[1].row[TG_LKV] = positions;
    schedule.rows[1].row[TG_DHV] = channels;
    return schedule;
}

static void try_sums(void)
{
    const tg_schedule schedule = summed_by((tg_axis_role)TG_W(1), (tg_axis_role)TG_P(32));
    if (!tap_begin("sums of positions without a mask end where the sequence does"))
        return;
    try_declared(&summed, &schedule, (struct spec){.heads = 1, .tokens = 65, .dqk = 32, .dhv = 32});
    tap_end();
}

/* A half where the key is behind the query, so blocks above the diagonal are visited and end where the sequence does. */
static void try_masked_inside(void)
{
    tg_stmt body[TG_COUNT(summed_body)];
    tg_algorithm algorithm = summed;
    tg_schedule schedule = summed_by((tg_axis_role)TG_W(1), (tg_axis_role)TG_P(32));
    memcpy(body, summed_body, sizeof body);
    body[1] = (tg_stmt)TG_MAP_TO(FP, TG_SIGMOID(TG_CAUSAL(TG_TILE(FQK))));
    algorithm.body = body;
    schedule.algorithm = &algorithm;
    schedule.rows[0].warps = 2;
    schedule.rows[0].row[TG_LQ].block = 32;
    if (!tap_begin("a mask inside of an expression that is not zero there"))
        return;
    try_declared(&algorithm, &schedule, (struct spec){.heads = 1, .tokens = 65, .dqk = 32, .dhv = 32});
    tap_end();
}

/* A tile of positions in memory, of which each thread adds up a row. */
static void try_rows_in_memory(void)
{
    tg_tensor tensors[TG_COUNT(summed_tensors)];
    tg_stmt body[TG_COUNT(summed_body)];
    tg_algorithm algorithm = summed;
    tg_schedule schedule = summed_by((tg_axis_role)TG_W(1), (tg_axis_role)TG_P(32));
    memcpy(tensors, summed_tensors, sizeof tensors);
    memcpy(body, summed_body, sizeof body);
    tensors[FP] = (tg_tensor){"p", TG_IO, 0, {TG_T, TG_LKV}, 0};
    body[1] = (tg_stmt)TG_MAP_TO(TG_AT_Q(FP), TG_CAUSAL(TG_TILE(FQK)));
    body[2] = (tg_stmt)TG_SUM_TO(TG_AT_Q(FRS), TG_AT_Q(FP));
    algorithm.tensors = tensors;
    algorithm.body = body;
    schedule.algorithm = &algorithm;
    schedule.rows[2] = schedule.rows[1];
    schedule.rows[0].outputs[0] = FP;
    schedule.rows[0].row[TG_LQ] = schedule.rows[0].row[TG_LKV] = (tg_axis_role)TG_L(CHUNK);
    schedule.rows[1] = (tg_kernel_row){.name = "rows",
                                       .outputs = {FRS},
                                       .warps = 2,
                                       .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(CHUNK), [TG_LKV] = TG_L(1)}};
    schedule.n_rows = 3;
    if (!tap_begin("rows of a tile of positions in memory, added up by threads"))
        return;
    try_declared(&algorithm, &schedule, (struct spec){.heads = 2, .tokens = 100, .dqk = 32, .dhv = 32});
    tap_end();
}

static void refuse_scan(void)
{
    const tg_schedule schedule = summed_by((tg_axis_role)TG_W(32), (tg_axis_role)TG_L(1));
    if (!tap_begin("refused: a scan along one loop with another loop in it"))
        return;
    expect_refused(&schedule, "TG0508", "kernel maxima would go on with the scan y from one dhv to the next");
    tap_end();
}

/* ---- a state, what it is read with, and what is added to it ---- */

enum { SQ = 1, SK, SV, SX, SW, SADD, SHALF, SSTATES, SREAD, SH };
static const tg_tensor state_tensors[] = {
    [SQ] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [SK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [SV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [SX] = {"x", TG_F32, TG_IN, {TG_T}},
    [SW] = {"w", TG_F32, 0, {TG_T}},
    [SADD] = {"add", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [SHALF] = {"half", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [SSTATES] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [SREAD] = {"read", TG_F32, 0, {TG_T, TG_DHV}},
    [SH] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
};
/* The weight is made at key positions, and all else is at those of queries. */
static const tg_stmt elsewhere_body[] = {
    TG_MAP_TO(TG_AT_KV(SW), TG_EXP2(TG_KV(SX))),
    TG_CARRY_TO(SSTATES, 0, 0, 0, TG_AT_Q(SK), TG_AT_Q(SV)),
    TG_CONTRACT_TO(TG_AT_Q(SREAD), TG_AT_Q(SQ), SSTATES),
    TG_MAP_TO(TG_AT_Q(SH), TG_MUL(TG_Q(SREAD), TG_Q(SW))),
};
/* What is added is half of a product. */
static const tg_stmt half_body[] = {
    TG_MAP_TO(TG_AT_Q(SW), TG_EXP2(TG_Q(SX))),
    TG_CONTRACT_TO(SADD, TG_AT_KV(SK), TG_AT_KV(SV)),
    TG_MAP_TO(SHALF, TG_MUL(TG_TILE(SADD), TG_NUM(0.5))),
    TG_CARRY_TO(SSTATES, 0, 0, 0, SHALF, 0),
    TG_CONTRACT_TO(TG_AT_Q(SREAD), TG_AT_Q(SQ), SSTATES),
    TG_MAP_TO(TG_AT_Q(SH), TG_MUL(TG_Q(SREAD), TG_Q(SW))),
};

static void refuse_state(const char *what, const tg_stmt *body, uint32_t n, uint8_t mma, const char *code,
                         const char *fragment)
{
    tg_tensor tensors[TG_COUNT(state_tensors)];
    memcpy(tensors, state_tensors, sizeof tensors);
    if (body == elsewhere_body)
        tensors[SADD] = tensors[SHALF] = (tg_tensor){0};
    const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm),        .name = "state", .title = "state", .file = __FILE__, .tensors = tensors,
        .n_tensors = TG_COUNT(tensors), .body = body,    .n_body = n};
    tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "one",
        .file = __FILE__,
        .algorithm = &algorithm,
        .chunk = CHUNK,
        .n_rows = 1,
        .rows = {{.name = "walk",
                  .outputs = {SH},
                  .mma = mma,
                  .warps = 4,
                  .stages = 2,
                  .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(CHUNK), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64)}}},
    };
    if (body == half_body)
        schedule.rows[0].row[TG_LKV] = (tg_axis_role)TG_L(CHUNK);
    if (!tap_begin("refused: %s, %s", code, what))
        return;
    expect_refused(&schedule, code, fragment);
    tap_end();
}

/* ---- an inverse on chip, and states beside it ---- */

enum { IK = 1, IV, IX, IG, IKK, IL, IT, ITV, IR, INV, IW, IKW, ISTATES, IS, INK, INS, IN_, N_INVERSE };
static const tg_tensor inverse_tensors[N_INVERSE] = {
    [IK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [IV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [IX] = {"x", TG_F32, TG_IN, {TG_T}},
    [IG] = {"g", TG_F32, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_LOG_DECAY},
    [IKK] = {"kk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [IL] = {"l", TG_F32, 0, {TG_LQ, TG_LKV}},
    [IT] = {"t", TG_F32, 0, {TG_LQ, TG_LKV}},
    [ITV] = {"tv", TG_F32, TG_OUT, {TG_T, TG_DHV}},
    [IR] = {"r", TG_F32, 0, {TG_T, TG_DHV}},
    [INV] = {"nv", TG_F32, TG_OUT, {TG_T, TG_DHV}},
    [IW] = {"w", TG_F32, 0, {TG_T, TG_DQK}},
    [IKW] = {"kw", TG_F32, 0, {TG_T, TG_DQK}},
    [ISTATES] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [IS] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
    [INK] = {"nk", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [INS] = {"ns", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [IN_] = {"n", TG_F32, TG_OUT, {TG_DQK}},
};
/* What is above the diagonal of l is not read. The weight is made at key positions and read at those of queries. */
static const tg_stmt inverse_body[] = {
    TG_CONTRACT_TO(IKK, TG_AT_Q(IK), TG_AT_KV(IK)),
    TG_MAP_TO(IL, TG_MUL(TG_TILE(IKK), TG_NUM(1.0f / 64))),
    TG_SOLVE_TO(IT, IL),
    TG_CONTRACT_TO(TG_AT_KV(ITV), IT, TG_AT_Q(IV)),
    TG_MAP_TO(TG_AT_KV(IR), TG_MUL(TG_KV(IV), TG_SIGMOID(TG_KV(IX)))),
    TG_CONTRACT_TO(TG_AT_Q(INV), IT, TG_AT_KV(IR)),
    TG_MAP_TO(TG_AT_KV(IW), TG_SIGMOID(TG_KV(IG))),
    TG_MAP_TO(TG_AT_Q(IKW), TG_MUL(TG_Q(IK), TG_Q(IW))),
    TG_CARRY_TO(ISTATES, IS, 0, 0, TG_AT_Q(IKW), TG_AT_Q(IV)),
    TG_SUM_TO(INK, TG_AT_KV(IK)),
    TG_CARRY_BACK_TO(INS, IN_, 0, 0, INK, 0),
};
static const tg_algorithm inverse = {
    TG_HEADER(tg_algorithm),    .name = "inverse",      .title = "inverse",   .file = __FILE__,
    .tensors = inverse_tensors, .n_tensors = N_INVERSE, .body = inverse_body, .n_body = TG_COUNT(inverse_body),
};
#define SQUARE_ROW(name_, out)                                                                                         \
    {                                                                                                                  \
        .name = name_, .outputs = {out}, .mma = TG_MMA_SYNC, .warps = 2, .row = {                                      \
            [TG_CHUNK] = TG_P(1),                                                                                      \
            [TG_LQ] = TG_L(CHUNK),                                                                                     \
            [TG_LKV] = TG_L(CHUNK),                                                                                    \
            [TG_DQK] = TG_L(32),                                                                                       \
            [TG_DHV] = TG_P(32)                                                                                        \
        }                                                                                                              \
    }
static const tg_schedule inverse_rows = {
    TG_HEADER(tg_schedule),
    .name = "rows",
    .file = __FILE__,
    .algorithm = &inverse,
    .chunk = CHUNK,
    .n_rows = 6,
    .rows = {SQUARE_ROW("turned", ITV),
             SQUARE_ROW("values", INV),
             {.name = "weights",
              .outputs = {IW},
              .warps = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_P(1), [TG_DQK] = TG_P(32)}},
             {.name = "state",
              .outputs = {IS},
              .mma = TG_MMA_SYNC,
              .warps = 2,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(CHUNK), [TG_DQK] = TG_P(32), [TG_DHV] = TG_P(32)}},
             {.name = "sums",
              .outputs = {INK},
              .warps = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(32)}},
             {.name = "walk", .outputs = {IN_}, .warps = 1, .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(32)}}},
};

static const tg_schedule *const inverse_schedules[] = {&inverse_rows, NULL};
static const char *const no_aliases[] = {NULL};
static const tg_variant inverse_variant = {TG_HEADER(tg_variant), .name = "inverse", .aliases = no_aliases,
                                           .algorithm = &inverse, .schedules = inverse_schedules};
static const struct spec inverse_spec = {.own = &inverse_variant,
                                         .variant = "inverse",
                                         .io = TG_BF16,
                                         .batch = 1,
                                         .heads = 1,
                                         .tokens = 100,
                                         .dqk = 32,
                                         .dhv = 32,
                                         .schedule = "rows"};

static void try_inverse(void)
{
    if (!tap_begin("an inverse on chip as it lies and turned, a vector beside what it is multiplied by"))
        return;
    try_both_ways(&inverse_spec, 7);
    tap_end();
}

/* Rows of the tensor from token `begin` to `end` may change, and those of `token` are bad. */
static void check_rows(tg_problem *problem, const char *name, const char *clean, size_t begin, size_t end, size_t token)
{
    const tg_host_tensor *x = tg_problem_tensor(problem, name);
    const size_t width = (size_t)problem->shape.dhv, bytes = tg_num_bytes(x->dtype);
    bool is_bad = false;
    for (size_t e = 0; e < x->n; e++) {
        const bool same = memcmp((const char *)x->data + e * bytes, clean + e * bytes, bytes) == 0;
        is_bad |= e / width == token && !isfinite(tg_num_load(x->data, x->dtype, e));
        tap_expect(same || (e / width >= begin && e / width < end), "reached %s of token %zu", name, e / width);
    }
    tap_expect(is_bad, "did not reach %s of its own token", name);
}

/* In the second chunk; what is multiplied by the inverse is mapped as it is fetched. */
static void try_bad_inverse(const char *input)
{
    enum { TOKEN = 70, COLUMN = 3 };
    struct trial trial;
    if (!tap_begin("NaN in %s beside an inverse on chip", input))
        return;
    if (trial_open(&trial, &inverse_spec)) {
        char *nv = trial_runs(&trial) ? tensor_copy(&trial.problem, "nv") : NULL,
             *tv = nv ? tensor_copy(&trial.problem, "tv") : NULL;
        const tg_host_tensor *x = tg_problem_tensor(&trial.problem, input);
        const size_t width = x->rank > 3 ? (size_t)x->extent[3] : 1;
        tg_num_store(x->data, x->dtype, TOKEN * width + (width > 1 ? COLUMN : 0), (double)NAN);
        if (tv && trial_runs(&trial)) {
            check_rows(&trial.problem, "nv", nv, TOKEN, 100, TOKEN);
            if (width > 1)
                check_rows(&trial.problem, "tv", tv, CHUNK, TOKEN + 1, TOKEN);
        }
        free(nv);
        free(tv);
        trial_close(&trial);
    }
    tap_end();
}

static void refuse_inverse(void)
{
    tg_schedule schedule = inverse_rows;
    memmove(&schedule.rows[2], &schedule.rows[3], 3 * sizeof schedule.rows[0]);
    schedule.n_rows = 5;
    if (tap_begin("refused: a tile kernel with a statement at positions that it has not")) {
        expect_refused(&schedule, "TG0524", "kernel state: g is at positions for which the row has no role");
        tap_end();
    }
    schedule.chunk = 1;
    schedule.max_tokens = 8;
    schedule.n_rows = 1;
    schedule.rows[0] = (tg_kernel_row){
        .name = "step",
        .outputs = {IS, IN_, ITV, INV},
        .warps = 1,
        .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(32)}};
    if (tap_begin("refused: states that go opposite ways through the tokens")) {
        expect_refused(&schedule, "TG0519", "kernel step walks the chunks for states and the other way for ns");
        tap_end();
    }
}

/* ---- a tile that a product takes turned, and the sums of its rows ---- */

enum { TQ = 1, TV, TP, TPV, TRS };
static const tg_tensor turned_tensors[] = {
    [TQ] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}}, [TV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [TP] = {"p", TG_F32, 0, {TG_T, TG_LKV}},    [TPV] = {"pv", TG_F32, TG_OUT, {TG_T, TG_DHV}},
    [TRS] = {"rs", TG_F32, TG_OUT, {TG_T}},
};
static const tg_stmt turned_body[] = {
    TG_CONTRACT_TO(TG_AT_Q(TP), TG_AT_Q(TQ), TG_AT_KV(TQ)),
    TG_CONTRACT_TO(TG_AT_KV(TPV), TG_AT_Q(TP), TG_AT_Q(TV)),
    TG_SUM_TO(TG_AT_Q(TRS), TG_AT_Q(TP)),
};

static void refuse_turned(void)
{
    static const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm),   .name = "turned",
        .title = "turned",         .file = __FILE__,
        .tensors = turned_tensors, .n_tensors = TG_COUNT(turned_tensors),
        .body = turned_body,       .n_body = TG_COUNT(turned_body),
    };
    const tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "one",
        .file = __FILE__,
        .algorithm = &algorithm,
        .chunk = CHUNK,
        .n_rows = 1,
        .rows = {{.name = "both",
                  .outputs = {TPV, TRS},
                  .mma = TG_MMA_SYNC,
                  .warps = 4,
                  .row = {[TG_CHUNK] = TG_P(1),
                          [TG_LQ] = TG_L(CHUNK),
                          [TG_LKV] = TG_L(CHUNK),
                          [TG_DQK] = TG_L(0),
                          [TG_DHV] = TG_P(64)}}},
    };
    if (!tap_begin("refused: a tile that a product takes turned, and the sums of its rows"))
        return;
    expect_refused(&schedule, "TG0511", "kernel both: a computed tile can only be the left operand of a product");
    tap_end();
}

/* ---- heads in one thread block, and a sum of what they share ---- */

enum { JQ = 1, JK, JV, JSTATES, JREAD, JP, JC, JRS, JH, N_JOINED };
static const tg_tensor joined_tensors[N_JOINED] = {
    [JQ] = {"q", TG_IO, TG_IN | TG_SHARED, {TG_T, TG_DQK}},
    [JK] = {"k", TG_IO, TG_IN | TG_SHARED, {TG_T, TG_DQK}},
    [JV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [JSTATES] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [JREAD] = {"read", TG_F32, 0, {TG_T, TG_DHV}},
    [JP] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
    [JC] = {"c", TG_F32, 0, {TG_LQ, TG_LKV}},
    [JRS] = {"rs", TG_F32, TG_OUT, {TG_T}},
    [JH] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
};
static const tg_stmt joined_body[] = {
    TG_CARRY_TO(JSTATES, 0, 0, 0, TG_AT_KV(JK), TG_AT_KV(JV)),
    TG_CONTRACT_TO(TG_AT_Q(JREAD), TG_AT_Q(JQ), JSTATES),
    TG_CONTRACT_TO(JP, TG_AT_Q(JQ), TG_AT_KV(JK)),
    TG_MAP_TO(JC, TG_CAUSAL(TG_TILE(JP))),
    TG_CONTRACT_ONTO(TG_AT_Q(JH), TG_AT_Q(JREAD), JC, TG_AT_KV(JV)),
    TG_SUM_TO(TG_AT_Q(JRS), JC),
};

static const tg_algorithm joined = {
    TG_HEADER(tg_algorithm),   .name = "joined",      .title = "joined",   .file = __FILE__,
    .tensors = joined_tensors, .n_tensors = N_JOINED, .body = joined_body, .n_body = TG_COUNT(joined_body),
};
static const tg_schedule joined_walk = {
    TG_HEADER(tg_schedule),
    .name = "one",
    .file = __FILE__,
    .algorithm = &joined,
    .chunk = CHUNK,
    .n_rows = 1,
    .rows = {{.name = "walk",
              .outputs = {JH, JRS},
              .mma = TG_MMA_WGMMA,
              .warps = 8,
              .stages = 2,
              .row = {[TG_CHUNK] = TG_W(1),
                      [TG_LQ] = TG_L(CHUNK),
                      [TG_LKV] = TG_L(CHUNK),
                      [TG_DQK] = TG_L(0),
                      [TG_DHV] = TG_P(64),
                      [TG_MEMBER] = TG_P(2)}}},
};

static void refuse_joined(void)
{
    if (!tap_begin("refused: a sum of what heads share, of which memory has one for each of them"))
        return;
    expect_refused(&joined_walk, "TG0518", "heads work together on an output that each has its own of");
    tap_end();
}

/* Each warpgroup has a head of its own, and half of the tile that is theirs together. */
static void try_joined(void)
{
    tg_tensor tensors[N_JOINED];
    tg_algorithm algorithm = joined;
    tg_schedule schedule = joined_walk;
    memcpy(tensors, joined_tensors, sizeof tensors);
    tensors[JRS] = (tg_tensor){0};
    algorithm.tensors = tensors;
    algorithm.n_body--;
    schedule.algorithm = &algorithm;
    schedule.rows[0].outputs[1] = 0;
    if (!tap_begin("two heads in one thread block that share a tile of positions"))
        return;
    try_declared(&algorithm, &schedule, (struct spec){.heads = 2, .tokens = 130, .dqk = 64, .dhv = 64, .group = 2});
    tap_end();
}

/* The same with a decay between positions, of one vector at those of queries and at those of keys. */
static void try_joined_decay(void)
{
    enum { JX = N_JOINED, JA, JB, N };
    static const tg_stmt body[] = {
        TG_MAP_TO(TG_AT_KV(JA), TG_LOGSIG2(TG_KV(JX))),
        TG_SCAN_TO(TG_AT_KV(JB), TG_AT_KV(JA)),
        TG_CARRY_TO(JSTATES, 0, 0, 0, TG_AT_KV(JK), TG_AT_KV(JV)),
        TG_CONTRACT_TO(TG_AT_Q(JREAD), TG_AT_Q(JQ), JSTATES),
        TG_CONTRACT_TO(JP, TG_AT_Q(JQ), TG_AT_KV(JK)),
        TG_MAP_TO(JC, TG_CAUSAL(TG_MUL(TG_EXP2(TG_SUB(TG_Q(JB), TG_KV(JB))), TG_TILE(JP)))),
        TG_CONTRACT_ONTO(TG_AT_Q(JH), TG_AT_Q(JREAD), JC, TG_AT_KV(JV)),
    };
    tg_tensor tensors[N] = {
        [JX] = {"x", TG_F32, TG_IN, {TG_T}}, [JA] = {"a", TG_F32, 0, {TG_T}}, [JB] = {"b", TG_F32X2, 0, {TG_T}}};
    tg_algorithm algorithm = joined;
    tg_schedule schedule = joined_walk;
    memcpy(tensors, joined_tensors, sizeof joined_tensors);
    tensors[JRS] = (tg_tensor){0};
    algorithm.tensors = tensors;
    algorithm.n_tensors = N;
    algorithm.body = body;
    algorithm.n_body = TG_COUNT(body);
    schedule.algorithm = &algorithm;
    schedule.n_rows = 2;
    schedule.rows[1] = schedule.rows[0];
    schedule.rows[1].outputs[1] = 0;
    schedule.rows[0] = (tg_kernel_row){
        .name = "gates", .outputs = {JB}, .warps = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(32)}};
    if (!tap_begin("two heads in one thread block, each with a decay of one vector between positions"))
        return;
    try_declared(&algorithm, &schedule, (struct spec){.heads = 2, .tokens = 130, .dqk = 64, .dhv = 64, .group = 2});
    tap_end();
}

/* ---- segments of states that are not linear in those they begin with ---- */

enum { LQ = 1, LK, LV, LX, LR, LSTATES, LM, LH, N_LINEAR };
static const tg_tensor linear_tensors[N_LINEAR] = {
    [LQ] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [LK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [LV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [LX] = {"x", TG_F32, 0, {TG_T, TG_DHV}},
    [LR] = {"r", TG_F32, 0, {TG_T, TG_DHV}},
    [LSTATES] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [LM] = {"m", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DQK}},
    [LH] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
};

/* What `made` makes of v and x, the product of k and the state, is added to the state, times k. code NULL: it is linear. */
static void try_transition(const char *what, tg_stmt made, const char *code, const char *message)
{
    const tg_stmt body[] = {
        TG_CONTRACT_TO(TG_AT_KV(LX), TG_AT_KV(LK), LSTATES),
        made,
        TG_CARRY_LINEAR_TO(LSTATES, LM, 0, 0, 0, TG_AT_KV(LK), TG_AT_KV(LR)),
        TG_CONTRACT_TO(TG_AT_Q(LH), TG_AT_Q(LQ), LSTATES),
    };
    const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm),   .name = "linear",      .title = "linear", .file = __FILE__,
        .tensors = linear_tensors, .n_tensors = N_LINEAR, .body = body,      .n_body = TG_COUNT(body),
    };
    const tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "segments",
        .file = __FILE__,
        .algorithm = &algorithm,
        .chunk = CHUNK,
        .n_rows = 3,
        .rows = {{.name = "state",
                  .outputs = {LSTATES, LM},
                  .mma = TG_MMA_WGMMA,
                  .warps = 4,
                  .stages = 2,
                  .row = {[TG_SEG] = TG_P(4),
                          [TG_CHUNK] = TG_W(1),
                          [TG_LKV] = TG_L(CHUNK),
                          [TG_DQK] = TG_L(0),
                          [TG_DHV] = TG_P(64)}},
                 {.name = "compose",
                  .outputs = {LSTATES},
                  .mma = TG_MMA_TF32X3,
                  .warps = 8,
                  .row = {[TG_SEG] = TG_W(4), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(16)}},
                 {.name = "walk",
                  .outputs = {LH},
                  .mma = TG_MMA_WGMMA,
                  .warps = 4,
                  .stages = 2,
                  .row = {[TG_SEG] = TG_P(4),
                          [TG_CHUNK] = TG_W(1),
                          [TG_LQ] = TG_L(CHUNK),
                          [TG_LKV] = TG_L(CHUNK),
                          [TG_DQK] = TG_L(0),
                          [TG_DHV] = TG_P(64)}}},
    };
    if (!tap_begin("%s: a state to which %s is added, in segments", code ? "refused" : "taken", what))
        return;
    if (code) {
        expect_refused(&schedule, code, message);
    } else {
        const tg_shape_class class = {.io = TG_BF16, .dqk = 64, .dhv = 64};
        const tg_sink silent = {0};
        tap_expect(tg_plan_check(&schedule, tg_target_find("sm_90a"), &class, &silent) == TG_OK, "it is refused");
    }
    tap_end();
}

static void try_transitions(void)
{
    static const char message[] = "what it makes is not linear in them";
    try_transition("a difference", (tg_stmt)TG_MAP_TO(TG_AT_KV(LR), TG_SUB(TG_KV(LV), TG_KV(LX))), NULL, NULL);
    try_transition("a product", (tg_stmt)TG_MAP_TO(TG_AT_KV(LR), TG_MUL(TG_KV(LV), TG_KV(LX))), "TG0534", message);
    try_transition("a number", (tg_stmt)TG_MAP_TO(TG_AT_KV(LR), TG_SUB(TG_NUM(1), TG_KV(LX))), "TG0534", message);
    try_transition("a function", (tg_stmt)TG_MAP_TO(TG_AT_KV(LR), TG_SIGMOID(TG_KV(LX))), "TG0534", message);
}

/* ---- a tensor of the caller's by chunks ---- */

enum { CK = 1, CSUM };
static const tg_tensor chunk_tensors[] = {
    [CK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [CSUM] = {"sum", TG_F32, TG_OUT, {TG_CHUNK, TG_DQK}},
};
static const tg_stmt chunk_body[] = {TG_TOTAL_TO(CSUM, TG_AT_KV(CK))};

static void refuse_chunks(void)
{
    static const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm),  .name = "sums",
        .title = "sums",          .file = __FILE__,
        .tensors = chunk_tensors, .n_tensors = TG_COUNT(chunk_tensors),
        .body = chunk_body,       .n_body = TG_COUNT(chunk_body),
    };
    const tg_variant variant = {TG_HEADER(tg_variant), .name = "sums", .algorithm = &algorithm};
    const tg_shape shape = {.batch = 1, .heads = 1, .tokens = 130, .dqk = 32, .dhv = 16, .group = 1};
    tg_problem problem = {0};
    if (!tap_begin("refused: a tensor of the caller's with a row for each chunk"))
        return;
    if (!tap_expect(!problem_random(&machine_context, &variant, &shape, TG_BF16, 1, &problem), "it is made"))
        tg_problem_free(&problem);
    tap_end();
}

/* ---- more inputs than a kernel has parameters for ---- */

enum { N_GIVEN = 36, EACH = 6, N_SUMS = N_GIVEN / EACH };

static void refuse_parameters(void)
{
    static tg_tensor tensors[1 + N_GIVEN + N_SUMS];
    static tg_stmt body[N_SUMS];
    static char names[TG_COUNT(tensors)][4];
    for (uint32_t t = 1; t < TG_COUNT(tensors); t++) {
        snprintf(names[t], sizeof names[t], "t%u", (unsigned)t % 100);
        tensors[t] = (tg_tensor){names[t], TG_F32, t <= N_GIVEN ? TG_IN : TG_OUT, {TG_T}, 0};
    }
    for (uint8_t s = 0; s < N_SUMS; s++) {
        tg_x *x = body[s].expr;
        body[s] = (tg_stmt){.op = TG_STMT_MAP, .out = TG_AT_KV(1 + N_GIVEN + s), .line = 10 + s};
        for (uint8_t i = 0; i < EACH; i++) {
            *x++ = (tg_x){.op = TG_X_TILE, .operand = TG_AT_KV(1 + s * EACH + i)};
            if (i)
                *x++ = (tg_x){.op = TG_X_ADD};
        }
    }
    const tg_algorithm algorithm = {TG_HEADER(tg_algorithm),
                                    .name = "many",
                                    .title = "sums of many inputs",
                                    .tensors = tensors,
                                    .n_tensors = TG_COUNT(tensors),
                                    .body = body,
                                    .n_body = N_SUMS};
    tg_schedule schedule = {TG_HEADER(tg_schedule), .name = "many", .algorithm = &algorithm, .chunk = CHUNK,
                            .n_rows = 1};
    schedule.rows[0] =
        (tg_kernel_row){.name = "sums", .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_P(CHUNK)}};
    for (uint8_t s = 0; s < N_SUMS; s++)
        schedule.rows[0].outputs[s] = (uint8_t)(1 + N_GIVEN + s);
    if (!tap_begin("refused: a kernel with more parameters than there is room for"))
        return;
    expect_refused(&schedule, "TG0555", "kernel sums would have 174 parameters, 0 tensor maps among them; at most 128");
    tap_end();
}

/* ---- a step whose tokens go backwards ---- */

enum { BK = 1, BV, BG, BS0, BA, BB, BGT, BKE, BCK, BS };
static const tg_tensor backwards_tensors[] = {
    [BK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [BV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [BG] = {"g", TG_F32, TG_IN, {TG_T, TG_DQK}},
    [BS0] = {"S0", TG_F32, TG_IN | TG_OPTIONAL, {TG_DQK, TG_DHV}},
    [BA] = {"a", TG_F32, 0, {TG_T, TG_DQK}},
    [BB] = {"b", TG_F32, 0, {TG_T, TG_DQK}},
    [BGT] = {"gt", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [BKE] = {"ke", TG_F32, 0, {TG_T, TG_DQK}},
    [BCK] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [BS] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
};
static const tg_stmt backwards_body[] = {
    TG_MAP_TO(TG_AT_KV(BA), TG_LOGSIG2(TG_KV(BG))),
    TG_SCAN_TO(TG_AT_KV(BB), TG_AT_KV(BA)),
    TG_TOTAL_TO(BGT, TG_AT_KV(BA)),
    TG_MAP_TO(TG_AT_KV(BKE), TG_MUL(TG_KV(BK), TG_EXP2(TG_SUB(TG_KV(BB), TG_KV(BA))))),
    TG_CARRY_BACK_TO(BCK, BS, BS0, BGT, TG_AT_KV(BKE), TG_AT_KV(BV)),
};
static const tg_algorithm backwards = {
    TG_HEADER(tg_algorithm),      .name = "backwards",
    .title = "backwards",         .file = __FILE__,
    .tensors = backwards_tensors, .n_tensors = TG_COUNT(backwards_tensors),
    .body = backwards_body,       .n_body = TG_COUNT(backwards_body),
};
static const tg_schedule backwards_step = {
    TG_HEADER(tg_schedule),
    .name = "step8",
    .file = __FILE__,
    .algorithm = &backwards,
    .chunk = 1,
    .max_tokens = 8,
    .n_rows = 1,
    .rows = {{.name = "step",
              .outputs = {BS},
              .warps = 2,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(32)}}},
};

/* Decays of rows that wait for the step's end are those since the first token that is walked, which is not the first. */
static void try_backwards(void)
{
    static const tg_schedule *const schedules[] = {&backwards_step, NULL};
    static const tg_variant variant = {TG_HEADER(tg_variant), .name = "backwards", .aliases = no_aliases,
                                       .algorithm = &backwards, .schedules = schedules};
    static const struct spec spec = {.own = &variant,
                                     .variant = "backwards",
                                     .io = TG_BF16,
                                     .batch = 2,
                                     .heads = 1,
                                     .tokens = 5,
                                     .dqk = 64,
                                     .dhv = 64,
                                     .schedule = "step8",
                                     .has_s0 = true};
    if (!tap_begin("a step whose tokens go backwards, with decays of rows"))
        return;
    try_both_ways(&spec, 7);
    tap_end();
}

void suite_found(void)
{
    try_sums();
    try_masked_inside();
    try_rows_in_memory();
    try_inverse();
    try_bad_inverse("v");
    try_bad_inverse("x");
    refuse_inverse();
    refuse_turned();
    refuse_joined();
    try_transitions();
    try_backwards();
    try_joined();
    try_joined_decay();
    refuse_chunks();
    refuse_scan();
    refuse_parameters();
    refuse_state("a walk with a statement at positions that it has not", elsewhere_body, TG_COUNT(elsewhere_body),
                 TG_MMA_WGMMA, "TG0518", "kernel walk: x is at positions for which the row has no role");
    refuse_state("a state to which something else than products is added", half_body, TG_COUNT(half_body), TG_MMA_WGMMA,
                 "TG0529", "adds half to a state, which is no sum of products of this kernel alone");
}
