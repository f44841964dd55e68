/* tests/kernels/found.c - what random declarations (tests/declarations/) have found: sums of positions behind the end of a
 * sequence, scans that would go on from one to the next, positions for which a walk has no role;
 * and a tensor that nobody can size. */
#include "harness.h"
#include "suites.h"

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
    const tg_schedule *const schedules[] = {&schedule, NULL};
    const char *const aliases[] = {NULL};
    const tg_variant variant = {TG_HEADER(tg_variant), .name = "summed", .aliases = aliases, .algorithm = &summed,
                                .schedules = schedules};
    if (!tap_begin("sums of positions without a mask end where the sequence does"))
        return;
    try_both_ways(&(struct spec){.own = &variant,
                                 .variant = "summed",
                                 .io = TG_BF16,
                                 .batch = 1,
                                 .heads = 1,
                                 .tokens = 65,
                                 .dqk = 32,
                                 .dhv = 32,
                                 .schedule = "one"},
                  7);
    tap_end();
}

static void expect_refused(const tg_schedule *schedule, const char *code, const char *fragment)
{
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 64, .dhv = 64};
    log_clear();
    tap_expect(tg_plan_check(schedule, tg_target_find("sm_90a"), &shape, &log_sink) != TG_OK, "it is accepted");
    tap_expect(strstr(log_text(), code) && strstr(log_text(), fragment), "expected %s \"%s\", found: %s", code,
               fragment, log_text());
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
    const struct shape shape = {.batch = 1, .heads = 1, .tokens = 130, .dqk = 32, .dhv = 16, .group = 1};
    struct problem problem = {0};
    if (!tap_begin("refused: a tensor of the caller's with a row for each chunk"))
        return;
    if (!tap_expect(!problem_random(&machine_context, &variant, &shape, TG_BF16, 1, &problem), "it is made"))
        problem_free(&problem);
    tap_end();
}

void suite_found(void)
{
    try_sums();
    refuse_chunks();
    refuse_scan();
    refuse_state("a walk with a statement at positions that it has not", elsewhere_body, TG_COUNT(elsewhere_body),
                 TG_MMA_WGMMA, "TG0518", "a statement of it is at positions for which the row has no role");
    refuse_state("a state to which something else than products is added", half_body, TG_COUNT(half_body), TG_MMA_WGMMA,
                 "TG0529", "adds half to a state, which is no sum of products of this kernel alone");
}
