/* tests/kernels/decays.c - products with a decay inside of a chunk, left and right, strict and not, from keys and from
 * queries, against the interpreter; and those that are refused. */
#include "dsl/slice.h"
#include "harness.h"
#include "suites.h"

#include <string.h>

enum { CHUNK = 64 }; /* the interpreter's, too */

enum { EQ = 1, EK, EV, EGX, EGY, EH, EY, EA, EB, EBX, EE, EF, EP, EO, ETP, EYS, ETQ };
static const tg_tensor pair_tensors[] = {
    [EQ] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},    [EK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [EV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},    [EGX] = {"gx", TG_F32, TG_IN, {TG_T, TG_DQK}, TG_DRAWN_FORGET},
    [EGY] = {"gy", TG_F32, TG_IN, {TG_T, TG_DHV}}, [EH] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
    [EY] = {"y", TG_IO, TG_OUT, {TG_T, TG_DHV}},   [EA] = {"a", TG_F32, 0, {TG_T, TG_DQK}},
    [EB] = {"b", TG_F32, 0, {TG_T, TG_DQK}},       [EBX] = {"bx", TG_F32, 0, {TG_T, TG_DQK}},
    [EE] = {"e", TG_F32, 0, {TG_T, TG_DHV}},       [EF] = {"f", TG_F32, 0, {TG_T, TG_DHV}},
    [EP] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},      [EO] = {"o", TG_F32, 0, {TG_T, TG_DHV}},
    [ETP] = {"tp", TG_F32, 0, {TG_LKV, TG_LQ}},    [EYS] = {"ys", TG_F32, 0, {TG_T, TG_DHV}},
    [ETQ] = {"tq", TG_F32, 0, {TG_T, TG_DQK}},
};
static const tg_stmt pair_body[] = {
    TG_MAP_TO(TG_AT_KV(EA), TG_LOGSIG2(TG_KV(EGX))),
    TG_SCAN_TO(TG_AT_KV(EB), TG_AT_KV(EA)),
    {.op = TG_STMT_SCAN, .flags = TG_EXCLUSIVE, .out = TG_AT_KV(EBX), .a = TG_AT_KV(EA), TG_HERE},
    TG_MAP_TO(TG_AT_KV(EE), TG_LOGSIG2(TG_KV(EGY))),
    TG_SCAN_TO(TG_AT_KV(EF), TG_AT_KV(EE)),
    TG_MAP_TO(TG_AT_Q(ETQ), TG_MUL(TG_Q(EQ), TG_SCALE)),
    TG_CONTRACT_DECAY_BEFORE_TO(EP, TG_AT_Q(ETQ), TG_AT_KV(EK), TG_AT_Q(EBX), TG_AT_KV(EB)),
    TG_CONTRACT_DECAY_TO(TG_AT_Q(EO), EP, TG_AT_KV(EV), TG_AT_Q(EF), TG_AT_KV(EF)),
    TG_MAP_TO(TG_AT_Q(EH), TG_Q(EO)),
    TG_CONTRACT_DECAY_TO(ETP, TG_AT_KV(EK), TG_AT_Q(EQ), TG_AT_Q(EB), TG_AT_KV(EB)),
    TG_CONTRACT_DECAY_BEFORE_TO(TG_AT_KV(EYS), ETP, TG_AT_Q(EV), TG_AT_Q(EF), TG_AT_KV(EF)),
    TG_MAP_TO(TG_AT_KV(EY), TG_MUL(TG_KV(EYS), TG_SCALE)),
};
static const tg_algorithm pairs = {
    TG_HEADER(tg_algorithm), .name = "pairs",
    .title = "pairs",        .file = __FILE__,
    .tensors = pair_tensors, .n_tensors = TG_COUNT(pair_tensors),
    .body = pair_body,       .n_body = TG_COUNT(pair_body),
};

static void try_pairs(uint8_t mma, uint8_t warps, uint16_t reached, int64_t dqk, int64_t dhv, tg_dtype io,
                      enum gates gates)
{
    const tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "one",
        .file = __FILE__,
        .algorithm = &pairs,
        .chunk = CHUNK,
        .n_rows = 4,
        .rows = {{.name = "left",
                  .outputs = {EB, EBX},
                  .warps = 1,
                  .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(32)}},
                 {.name = "right",
                  .outputs = {EF},
                  .warps = 1,
                  .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DHV] = TG_P(32)}},
                 {.name = "queries",
                  .outputs = {EH},
                  .mma = mma,
                  .warps = warps,
                  .row = {[TG_CHUNK] = TG_P(1),
                          [TG_LQ] = TG_P(CHUNK),
                          [TG_LKV] = TG_L(reached),
                          [TG_DQK] = TG_L(32),
                          [TG_DHV] = TG_P(32)}},
                 {.name = "keys",
                  .outputs = {EY},
                  .mma = mma,
                  .warps = warps,
                  .row = {[TG_CHUNK] = TG_P(1),
                          [TG_LQ] = TG_L(reached),
                          [TG_LKV] = TG_P(CHUNK),
                          [TG_DQK] = TG_L(32),
                          [TG_DHV] = TG_P(32)}}},
    };
    const tg_schedule *const schedules[] = {&schedule, NULL};
    const char *const aliases[] = {NULL};
    const tg_variant variant = {TG_HEADER(tg_variant), .name = "pairs", .aliases = aliases, .algorithm = &pairs,
                                .schedules = schedules};
    if (!tap_begin("products with a decay, %s, %u warps, blocks of %u, gates %d", tg_dtype_name(io), warps, reached,
                   gates))
        return;
    try_both_ways(&(struct spec){.own = &variant,
                                 .variant = "pairs",
                                 .io = io,
                                 .batch = 1,
                                 .heads = 2,
                                 .tokens = 211,
                                 .dqk = dqk,
                                 .dhv = dhv,
                                 .gates = gates,
                                 .schedule = "one"},
                  7);
    tap_end();
}

/* A decay without a channel, and one that is an operand of a product too. */
static void refuse_pairs(const char *code, const char *fragment, tg_operand a, uint32_t decay)
{
    tg_tensor tensors[TG_COUNT(pair_tensors)];
    const tg_stmt body[] = {
        TG_MAP_TO(TG_AT_KV(EA), TG_LOGSIG2(TG_KV(EGX))),
        TG_SCAN_TO(TG_AT_KV(EB), TG_AT_KV(EA)),
        TG_CONTRACT_DECAY_TO(EP, a, TG_AT_KV(EK), TG_AT_Q(decay), TG_AT_KV(decay)),
        TG_CONTRACT_TO(TG_AT_Q(EO), EP, TG_AT_KV(EV)),
        TG_MAP_TO(TG_AT_Q(EH), TG_Q(EO)),
    };
    const tg_bits used = TG_BIT(EK) | TG_BIT(EV) | TG_BIT(EGX) | TG_BIT(EH) | TG_BIT(EA) | TG_BIT(EB) | TG_BIT(EP) |
                         TG_BIT(EO) | TG_BIT(TG_OPERAND_TILE(a)) | TG_BIT(decay);
    for (uint32_t t = 0; t < TG_COUNT(tensors); t++)
        tensors[t] = used >> t & 1 ? pair_tensors[t] : (tg_tensor){0};
    tensors[EGY].axes[1] = 0; /* {TG_T} */
    const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm),        .name = "pairs", .title = "pairs",        .file = __FILE__, .tensors = tensors,
        .n_tensors = TG_COUNT(tensors), .body = body,    .n_body = TG_COUNT(body)};
    const tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "one",
        .file = __FILE__,
        .algorithm = &algorithm,
        .chunk = CHUNK,
        .n_rows = 2,
        .rows = {{.name = "left",
                  .outputs = {EB},
                  .warps = 1,
                  .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(32)}},
                 {.name = "queries",
                  .outputs = {EH},
                  .mma = TG_MMA_SYNC,
                  .warps = 4,
                  .row = {[TG_CHUNK] = TG_P(1),
                          [TG_LQ] = TG_P(CHUNK),
                          [TG_LKV] = TG_L(16),
                          [TG_DQK] = TG_L(32),
                          [TG_DHV] = TG_P(32)}}},
    };
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 64, .dhv = 64};
    if (!tap_begin("refused: a product with a decay, %s", code))
        return;
    log_clear();
    tap_expect(tg_plan_check(&schedule, tg_target_find("sm_90a"), &shape, &log_sink) != TG_OK, "it is accepted");
    tap_expect(strstr(log_text(), code) && strstr(log_text(), fragment), "expected %s \"%s\", found: %s", code,
               fragment, log_text());
    tap_end();
}

/* Gates made beside the products: blocks whose channels decay by little, and those that are taken apart by halves. */
static void try_channels(const char *variant, tg_dtype io, uint32_t dqk, enum gates gates)
{
    if (!tap_begin("decays of channels beside their products, %s, %s, dqk %u, gates %d", variant, tg_dtype_name(io),
                   dqk, gates))
        return;
    try_both_ways(&(struct spec){.variant = variant,
                                 .io = io,
                                 .batch = 1,
                                 .heads = 2,
                                 .tokens = 150,
                                 .dqk = dqk,
                                 .dhv = 64,
                                 .gates = gates,
                                 .schedule = "fused"},
                  7);
    tap_end();
}

void suite_decays(void)
{
    try_channels("gla", TG_BF16, 128, ORDINARY);
    try_channels("gla", TG_F16, 64, EXTREME);
    try_channels("gla", TG_BF16, 64, MASKED);
    try_channels("vector-decay", TG_BF16, 64, EXTREME);
    try_channels("kda", TG_BF16, 64, EXTREME);
    try_channels("kda", TG_BF16, 128, ORDINARY);
    try_pairs(TG_MMA_SYNC, 4, 16, 72, 24, TG_BF16, ORDINARY);
    try_pairs(TG_MMA_SYNC, 4, 16, 72, 24, TG_BF16, EXTREME);
    try_pairs(TG_MMA_SYNC, 2, 32, 24, 72, TG_F16, ORDINARY);
    try_pairs(TG_MMA_TF32X3, 4, 16, 24, 24, TG_F32, CLOSED);
    refuse_pairs("TG0526", "has b as a decay or a weight and multiplies by it", TG_AT_Q(EB), EB);
    refuse_pairs("TG0527", "the decay of p cannot be evaluated", TG_AT_Q(EB), EGY);
}
