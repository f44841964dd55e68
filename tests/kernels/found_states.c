/* tests/kernels/found_states.c - what random declarations have found in kernels on mma.sync that carry a state: sums of
 * products that are added to it while positions go block by block; a map that is taken at the other position; what is
 * behind the end of an inverse; and on warpgroups two products into the state by one matrix, and sums that tiles read. */
#include "harness.h"
#include "suites.h"

#include <string.h>

enum { CHUNK = 64 };

enum { AQ = 1, AK, AV, AONE, ATWO, ASTATES, AS, AN, ANS, ANF };
static const tg_tensor tensors[] = {
    [AQ] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [AK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [AV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [AONE] = {"one", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [ATWO] = {"two", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [ASTATES] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [AS] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
    [AN] = {"nk", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [ANS] = {"ns", TG_F32, 0, {TG_CHUNK, TG_DQK}},
    [ANF] = {"n", TG_F32, TG_OUT, {TG_DQK}},
};
static const tg_stmt body[] = {
    TG_CONTRACT_TO(AONE, TG_AT_KV(AK), TG_AT_KV(AV)),
    TG_CONTRACT_ONTO(ATWO, AONE, TG_AT_KV(AQ), TG_AT_KV(AV)),
    TG_CARRY_TO(ASTATES, AS, 0, 0, ATWO, 0),
    TG_SUM_TO(AN, TG_AT_KV(AK)),
    TG_CARRY_TO(ANS, ANF, 0, 0, AN, 0),
};
static const tg_algorithm added = {
    TG_HEADER(tg_algorithm), .name = "added", .title = "added", .file = __FILE__,
    .tensors = tensors,      .n_tensors = AN, .n_body = 3,      .body = body,
};
static const tg_schedule blocks = {
    TG_HEADER(tg_schedule),
    .name = "blocks",
    .file = __FILE__,
    .algorithm = &added,
    .chunk = CHUNK,
    .n_rows = 1,
    .rows = {{.name = "state",
              .outputs = {AS},
              .mma = TG_MMA_SYNC,
              .warps = 2,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(16), [TG_DQK] = TG_P(32), [TG_DHV] = TG_P(32)}}},
};

static void try_products(void)
{
    if (!tap_begin("two products into a state, block by block of positions"))
        return;
    try_declared(&added, &blocks, (struct spec){.heads = 2, .tokens = 100, .dqk = 32, .dhv = 32});
    tap_end();
}

/* No product. */
static void refuse_vector(void)
{
    tg_algorithm algorithm = added;
    tg_schedule schedule = blocks;
    algorithm.n_tensors = TG_COUNT(tensors);
    algorithm.n_body = TG_COUNT(body);
    schedule.algorithm = &algorithm;
    schedule.rows[0].outputs[1] = ANF;
    schedule.rows[0].row[TG_DQK] = (tg_axis_role)TG_L(0);
    if (!tap_begin("refused: a vector beside a state, block by block of positions"))
        return;
    expect_refused(&schedule, "TG0529", "adds nk to a state, which is no sum of products of this kernel alone");
    tap_end();
}

/* ---- a map at one position, taken at the other: no product makes it as it fetches it ---- */

enum { XQ = 1, XK, XX, XKN, XT, XS };
static const tg_tensor across_tensors[] = {
    [XQ] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}}, [XK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [XX] = {"x", TG_F32, TG_IN, {TG_T}},        [XKN] = {"kn", TG_F32, 0, {TG_T, TG_DQK}},
    [XT] = {"t", TG_F32, 0, {TG_T, TG_LKV}},    [XS] = {"s", TG_F32, TG_OUT, {TG_T}},
};
static const tg_stmt across_body[] = {
    TG_MAP_TO(TG_AT_KV(XKN), TG_MUL(TG_KV(XK), TG_KV(XX))),
    TG_CONTRACT_TO(TG_AT_Q(XT), TG_AT_Q(XKN), TG_AT_KV(XQ)),
    TG_SUM_TO(TG_AT_Q(XS), TG_AT_Q(XT)),
};

static void refuse_across(void)
{
    static const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm),   .name = "across",
        .title = "across",         .file = __FILE__,
        .tensors = across_tensors, .n_tensors = TG_COUNT(across_tensors),
        .body = across_body,       .n_body = TG_COUNT(across_body),
    };
    tg_schedule schedule = blocks;
    schedule.algorithm = &algorithm;
    schedule.rows[0] = (tg_kernel_row){
        .name = "rows",
        .outputs = {XS},
        .mma = TG_MMA_SYNC,
        .warps = 4,
        .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(CHUNK), [TG_LKV] = TG_L(CHUNK), [TG_DQK] = TG_L(0)}};
    if (!tap_begin("refused: a map of one position as what a product takes at the other"))
        return;
    expect_refused(&schedule, "TG0511", "a computed tile can only be the left operand");
    tap_end();
}

/* ---- an inverse, turned, whose decays are infinite behind the end: 2^(0 - b) ---- */

enum { EK = 1, EV, EG, EA, EB, EKK, EL, ET, ETV };
static const tg_tensor end_tensors[] = {
    [EK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [EV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [EG] = {"g", TG_F32, TG_IN, {TG_T}, TG_DRAWN_LOG_DECAY},
    [EA] = {"la", TG_F32, 0, {TG_T}},
    [EB] = {"b", TG_F32X2, 0, {TG_T}},
    [EKK] = {"kk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [EL] = {"l", TG_F32, 0, {TG_LQ, TG_LKV}},
    [ET] = {"t", TG_F32, 0, {TG_LQ, TG_LKV}},
    [ETV] = {"tv", TG_F32, TG_OUT, {TG_T, TG_DHV}},
};
static const tg_stmt end_body[] = {
    TG_MAP_TO(TG_AT_KV(EA), TG_MUL(TG_LOGSIG2(TG_KV(EG)), TG_NUM(100))),
    TG_SCAN_TO(TG_AT_KV(EB), TG_AT_KV(EA)),
    TG_CONTRACT_TO(EKK, TG_AT_Q(EK), TG_AT_KV(EK)),
    TG_MAP_TO(EL, TG_BEFORE(TG_MUL(TG_MUL(TG_TILE(EKK), TG_EXP2(TG_SUB(TG_Q(EB), TG_KV(EB)))), TG_NUM(0.01f)))),
    TG_SOLVE_TO(ET, EL),
    TG_CONTRACT_TO(TG_AT_KV(ETV), ET, TG_AT_Q(EV)),
};

static void try_end(void)
{
    static const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm), .name = "end",
        .title = "end",          .file = __FILE__,
        .tensors = end_tensors,  .n_tensors = TG_COUNT(end_tensors),
        .body = end_body,        .n_body = TG_COUNT(end_body),
    };
    tg_schedule schedule = blocks;
    schedule.algorithm = &algorithm;
    schedule.n_rows = 2;
    schedule.rows[0] = (tg_kernel_row){
        .name = "gates", .outputs = {EB}, .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(CHUNK)}};
    schedule.rows[1] = (tg_kernel_row){.name = "rows",
                                       .outputs = {ETV},
                                       .mma = TG_MMA_SYNC,
                                       .warps = 4,
                                       .row = {[TG_CHUNK] = TG_P(1),
                                               [TG_LQ] = TG_L(CHUNK),
                                               [TG_LKV] = TG_L(CHUNK),
                                               [TG_DQK] = TG_L(0),
                                               [TG_DHV] = TG_L(0)}};
    if (!tap_begin("an inverse, turned, with gates that forget all: behind the end there is nothing"))
        return;
    try_declared(&algorithm, &schedule, (struct spec){.heads = 2, .tokens = 100, .dqk = 32, .dhv = 32});
    tap_end();
}

/* ---- on warpgroups, and what of it mma.sync cannot do ---- */

enum { WQ = 1, WK, WV, WONE, WTWO, WSTATES, WS, WINTER, WSUM, WH };
static const tg_tensor walk_tensors[] = {
    [WQ] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [WK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [WV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [WONE] = {"one", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [WTWO] = {"two", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [WSTATES] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [WS] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
    [WINTER] = {"inter", TG_F32, 0, {TG_T, TG_DHV}},
    [WSUM] = {"sum", TG_F32, 0, {TG_T}},
    [WH] = {"h", TG_IO, TG_OUT, {TG_T, TG_DHV}},
};
static const tg_stmt two_products[] = {
    TG_CONTRACT_TO(WONE, TG_AT_KV(WK), TG_AT_KV(WV)),
    TG_CONTRACT_ONTO(WTWO, WONE, TG_AT_KV(WQ), TG_AT_KV(WV)),
    TG_CARRY_TO(WSTATES, WS, 0, 0, WTWO, 0),
    TG_CONTRACT_TO(TG_AT_Q(WINTER), TG_AT_Q(WQ), WSTATES),
    TG_MAP_TO(TG_AT_Q(WH), TG_MUL(TG_Q(WINTER), TG_NUM(0.25f))),
};
static const tg_stmt sum_read[] = {
    TG_CARRY_TO(WSTATES, WS, 0, 0, TG_AT_KV(WK), TG_AT_KV(WV)),
    TG_CONTRACT_TO(TG_AT_Q(WINTER), TG_AT_Q(WQ), WSTATES),
    TG_CONTRACT_TO(TG_AT_Q(WSUM), TG_AT_Q(WQ), TG_AT_Q(WK)),
    TG_MAP_TO(TG_AT_Q(WH), TG_MUL(TG_Q(WINTER), TG_Q(WSUM))),
};
static const tg_algorithm walked = {
    TG_HEADER(tg_algorithm), .name = "walked",
    .title = "walked",       .file = __FILE__,
    .tensors = walk_tensors, .n_tensors = TG_COUNT(walk_tensors),
    .body = two_products,    .n_body = TG_COUNT(two_products),
};
static const tg_schedule walk = {
    TG_HEADER(tg_schedule),
    .name = "walk",
    .file = __FILE__,
    .algorithm = &walked,
    .chunk = CHUNK,
    .n_rows = 1,
    .rows = {{.name = "walk",
              .outputs = {WS, WH},
              .mma = TG_MMA_WGMMA,
              .warps = 4,
              .stages = 2,
              .row = {[TG_CHUNK] = TG_W(1),
                      [TG_LQ] = TG_L(CHUNK),
                      [TG_LKV] = TG_L(CHUNK),
                      [TG_DQK] = TG_L(0),
                      [TG_DHV] = TG_P(64)}}},
};

static void try_walk(void)
{
    if (!tap_begin("two products into a state by the same matrix, on warpgroups"))
        return;
    try_declared(&walked, &walk, (struct spec){.heads = 2, .tokens = 100, .dqk = 64, .dhv = 64});
    tap_end();
}

static void refuse_sum(void)
{
    tg_algorithm algorithm = walked;
    tg_schedule schedule = walk;
    algorithm.body = sum_read;
    algorithm.n_body = TG_COUNT(sum_read);
    schedule.algorithm = &algorithm;
    if (!tap_begin("refused: a sum in parts that a map of a tile reads, on warpgroups"))
        return;
    expect_refused(&schedule, "TG0510", "sum is a sum that warpgroups have parts of; a map of a tile cannot read it");
    tap_end();
}

static void refuse_read(void)
{
    tg_schedule schedule = walk;
    schedule.rows[0].mma = TG_MMA_SYNC;
    schedule.rows[0].row[TG_LQ] = (tg_axis_role)TG_P(16);
    schedule.rows[0].row[TG_LKV] = (tg_axis_role)TG_L(16);
    if (!tap_begin("refused: what reads a state that changes block by block of positions"))
        return;
    expect_refused(&schedule, "TG0508", "changes its state block by block of positions; inter reads it as it arrives");
    tap_end();
}

static void refuse_table(void)
{
    tg_schedule schedule = walk;
    schedule.rows[0].row[TG_SEG] = (tg_axis_role)TG_P(0);
    if (!tap_begin("refused: a table whose segments have no length"))
        return;
    expect_refused(&schedule, "TG0225", "kernel walk has segments of no length: a table, not one of its points");
    tap_end();
}

/* ---- states behind segments, by those of a walk back that have their axes the other way ---- */

enum { LK = 1, LV, LSTATES, LS, LENDS, LBACK, LBACKS, LY, LYS };
static const tg_tensor last_tensors[] = {
    [LK] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [LV] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [LSTATES] = {"states", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [LS] = {"S", TG_F32, TG_OUT, {TG_DQK, TG_DHV}},
    [LENDS] = {"ends", TG_F32, 0, {TG_CHUNK, TG_DQK, TG_DHV}},
    [LBACK] = {"back", TG_F32, 0, {TG_CHUNK, TG_DHV, TG_DQK}},
    [LBACKS] = {"B", TG_F32, TG_OUT, {TG_DHV, TG_DQK}},
    [LY] = {"y", TG_F32, 0, {TG_CHUNK}},
    [LYS] = {"ys", TG_F32, TG_OUT, {0}},
};
static const tg_stmt last_body[] = {
    {.op = TG_STMT_CARRY, .out = LSTATES, .final_ = LS, .a = TG_AT_KV(LK), .b = TG_AT_KV(LV), .behind = LENDS, TG_HERE},
    TG_CARRY_BACK_TO(LBACK, LBACKS, 0, 0, TG_AT_KV(LV), TG_AT_KV(LK)),
    TG_CONTRACT_TO(LY, LENDS, LBACK),
    TG_TOTAL_TO(LYS, LY),
};

static void refuse_last_states(void)
{
    static const tg_algorithm algorithm = {
        TG_HEADER(tg_algorithm), .name = "last",
        .title = "last",         .file = __FILE__,
        .tensors = last_tensors, .n_tensors = TG_COUNT(last_tensors),
        .body = last_body,       .n_body = TG_COUNT(last_body),
    };
#define OF_SEGMENTS(name_, ...)                                                                                        \
    {                                                                                                                  \
        .name = name_, .outputs = {__VA_ARGS__}, .mma = TG_MMA_WGMMA, .warps = 4, .stages = 2, .row = {                \
            [TG_SEG] = TG_P(2),                                                                                        \
            [TG_CHUNK] = TG_W(1),                                                                                      \
            [TG_LKV] = TG_L(CHUNK),                                                                                    \
            [TG_DQK] = TG_L(0),                                                                                        \
            [TG_DHV] = TG_P(64)                                                                                        \
        }                                                                                                              \
    }
#define COMPOSING(name_, out_)                                                                                         \
    {                                                                                                                  \
        .name = name_, .outputs = {out_}, .warps = 2, .row = {                                                         \
            [TG_SEG] = TG_W(2),                                                                                        \
            [TG_DQK] = TG_P(1),                                                                                        \
            [TG_DHV] = TG_P(256)                                                                                       \
        }                                                                                                              \
    }
    static const tg_schedule schedule = {
        TG_HEADER(tg_schedule),
        .name = "last",
        .file = __FILE__,
        .algorithm = &algorithm,
        .chunk = CHUNK,
        .n_rows = 6,
        .rows = {OF_SEGMENTS("state", LSTATES),
                 COMPOSING("compose", LSTATES),
                 OF_SEGMENTS("back", LBACK),
                 COMPOSING("composed", LBACK),
                 OF_SEGMENTS("walk", LS, LY),
                 {.name = "sum", .outputs = {LYS}, .warps = 4, .row = {[TG_CHUNK] = TG_W(128)}}}};
    if (!tap_begin("refused: states behind segments by those of a walk back that have their axes the other way"))
        return;
    expect_refused(&schedule, "TG0519", "kernel walk walks the chunks for states and the other way for back");
    tap_end();
}

void suite_found_states(void)
{
    try_walk();
    refuse_sum();
    refuse_read();
    refuse_table();
    refuse_last_states();
    try_end();
    refuse_across();
    try_products();
    refuse_vector();
}
