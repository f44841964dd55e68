/* variants/vector_schedules.c - the schedules of the vector-gate family: a table a structure. */
#include "variants/vector.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define SCHEDULE(name_)      TG_HEADER(tg_schedule), .name = name_, .file = __FILE__
#define PRODUCTS             .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1

/* A thread a channel, down the positions of the chunk. */
#define CHANNELS .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(64)}
#define DOTS(dim)        .mma = TG_MMA_SYNC, .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_P(64), [dim] = TG_L(64)}
/* ... and what a token reads of itself, where it is read before it is written. */
#define GATE_ROW                                                                                                       \
    {ROW("gates", (B, GT, BE)), .lacks = MADE_K, CHANNELS}, {ROW("gates", (K, B, GT)), .has = MADE_K, CHANNELS}, OWN_ROW
#define OWN_ROW {ROW("own", (BONUS)), DOTS(TG_DQK)}
#define STATE(position, block) PRODUCTS, .row = {[TG_CHUNK] = TG_W(1), [position] = TG_L(block), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(64)}

/* Decode: a token is a chunk, all of them held in registers; every thread has a value column, or two, and walks down its
 * state, which it reads and writes once. */
static const tg_point step_points[] = {
    {.name = "step"},
    {.name = "step8", .changes = "step.chunk=8 step.dhv=256", .max_tokens = 8},
    {.name = "step8-narrow", .changes = "step.chunk=8 step.warps=2", .max_tokens = 8},
    {.name = NULL},
};
static const tg_schedule step = {
    SCHEDULE("step"), .chunk = 1, .max_tokens = 1, .points = step_points,
    .rows = {{ROW("step", (H, S)), .warps = 4,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(1), [TG_DHV] = TG_P(128)}}},
};

/* Two levels: products of positions and what else is of one chunk alone; states of every chunk in memory; then the chunks by
 * themselves. tfla-small: less shared memory; tfla-fp32: fp32 inputs; tfla-keep: the states of the chunks stay in the caller's
 * memory, for the backward's tfla-kept. */
#define BLOCK [TG_LQ] = TG_L(64), [TG_LKV] = TG_L(64)
#define PAIR_ROW                                                                                                       \
    {ROW("pairs", (P, QB, KE)), .has = P, PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(32)}},        \
    {ROW("ends", (QB, KE)), .lacks = P, .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(64)}}
/* ... the same with the gates: their sums do not go through memory. */
#define ALL_CHANNELS(resident_) .mma = TG_MMA_SYNC, .warps = 4, .blocks_per_sm = resident_,                                \
    .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(0)}
#define CHUNK_ROW(resident_) {ROW("pairs", (P, QB, KE, GT, BONUS)), ALL_CHANNELS(resident_)}
/* ... and keys that are made there, which gradients need. */
#define BACK_CHUNK_ROW                                                                                                 \
    {ROW("pairs", (P, QB, KE, GT, BONUS)), .lacks = MADE_K, ALL_CHANNELS(3)},                                          \
    {ROW("pairs", (P, QB, KE, K, GT)), .has = MADE_K, ALL_CHANNELS(3)}
static const tg_point two_level_points[] = {
    {.name = "tfla"},
    {.name = "tfla-small", .changes = "H.dqk=32 H.dhv=64"},
    {.name = "tfla-fp32", .changes = "own.mma=tf32x3 pairs.mma=tf32x3 state.mma=tf32x3 H.mma=tf32x3 H.dqk=32 H.dhv=32"},
    {.name = "tfla-keep", .kept = {CK}},
    {.name = NULL},
};
static const tg_schedule two_level = {
    SCHEDULE("two-level"), .chunk = 64, .points = two_level_points,
    .rows = {GATE_ROW, PAIR_ROW, {ROW("state", (CK)), STATE(TG_LKV, 64)},
             {ROW("H", (H)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(64), [TG_DHV] = TG_P(128)}}},
};

static const tg_schedule fused = {
    SCHEDULE("fused"), .chunk = 64,
    .rows = {CHUNK_ROW(2), {ROW("state", (CK)), STATE(TG_LKV, 64)},
             {ROW("H", (H)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(64), [TG_DHV] = TG_P(128)}}},
};

/* tfla-grouped: heads that share q and k. One thread block does all heads of a group and keeps the sum, in half the width. */
#define FP32                                                                                                           \
    "own.mma=tf32x3 vdh.mma=tf32x3 state.mma=tf32x3 state.Lkv=16 dstate.mma=tf32x3 dstate.Lhq=16 dQ.mma=tf32x3 dQ.dqk=32 dQ.dhv=32 "                  \
    "dK.mma=tf32x3 dK.dhv=32 dV.mma=tf32x3 dV.dhv=32"
#define OF_GROUP " dQ.member=L dQ.stages=3 dK.member=L"
#define GROUPED  "dK.dhv=32 dV.dhv=32" OF_GROUP
#define DGATE_ROWS                                                                                                     \
    {ROW("sums", (TE, TR, SUM_U)), .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(64)}}, \
    {ROW("dgates", (DGATE)), .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(64)}},       \
    DBONUS_ROW
#define DBONUS_ROW {ROW("dbonus", (DU)), .warps = 2, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_L(1), [TG_DQK] = TG_P(64)}}
static const tg_point back_two_level_points[] = {
    {.name = "tfla"},
    {.name = "tfla-small", .changes = "dV.dhv=32"},
    {.name = "tfla-fp32", .changes = FP32},
    {.name = "tfla-grouped", .changes = GROUPED},
    {.name = "tfla-fp32-grouped", .changes = FP32 OF_GROUP},
    {.name = "tfla-kept", .kept = {CK}},
    {.name = "tfla-kept-grouped", .changes = GROUPED, .kept = {CK}},
    {.name = NULL},
};
static const tg_schedule back_two_level = {
    SCHEDULE("two-level"), .chunk = 64, .points = back_two_level_points,
    .rows = {GATE_ROW, {ROW("vdh", (VDH)), DOTS(TG_DHV)},
             {ROW("state", (CK)), .only = TG_IF_NOT_KEPT, STATE(TG_LKV, 32)},
             {ROW("dstate", (DC)), STATE(TG_LQ, 32)},
             {ROW("dQ", (DQ, QDQ)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(16), [TG_DQK] = TG_P(32), [TG_DHV] = TG_L(64)}},
             {ROW("dK", (DK, KDK, RK)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(16), [TG_LKV] = TG_P(64), [TG_DQK] = TG_P(32), [TG_DHV] = TG_L(64)}},
             {ROW("dV", (DV)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(16), [TG_LKV] = TG_P(64), [TG_DQK] = TG_L(32), [TG_DHV] = TG_P(64)}},
             /* Rows of states o dstates, then the gates: a thread a channel; sums of the chunk first. */
             {ROW("cross", (X)), .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(1)}},
             DGATE_ROWS},
};

/* ---- on warpgroups (sm_90a) ---- */

/* A walk reads what the pairs' row has made of the chunk: the state, which decays by a vector of its own, never leaves the chip. */
#define WALK(stages_) .mma = TG_MMA_WGMMA, .warps = 8, .stages = stages_, .blocks_per_sm = 1
#define WALK_ROW      {ROW("walk", (H, S)), WALK(2), .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}}
#define RELAY         " walk.seg=R/32"
#define HALF          "walk.dhv=128 walk.stages=3"
#define NARROW        "walk.warps=4 walk.stages=0 walk.dhv=64"
#define SHARED        "walk.dhv=64 walk.stages=1" /* dqk beyond 256: both groups share the columns of the state */
/* Where sequences are too few they are cut: a row makes what a segment makes of zero, another composes, a row of the state a thread block. */
#define CUT_ROWS(state_, compose_, out_, position_)                                                                    \
    {ROW(state_, (out_)), .only = TG_IF_CUT, .mma = TG_MMA_WGMMA, .warps = 4, .stages = 3, .blocks_per_sm = 2,         \
     .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [position_] = TG_L(64), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64)}}, \
    {ROW(compose_, (out_)), .only = TG_IF_CUT, .warps = 2, .row = {[TG_SEG] = TG_W(0), [TG_DQK] = TG_P(1), [TG_DHV] = TG_P(256)}}
#define STATE_ROWS CUT_ROWS("state", "compose", CK, TG_LKV)
static const tg_point walk_points[] = {
    {.name = "walk"},
    {.name = "walk-half", .changes = HALF},
    {.name = "walk-narrow", .changes = NARROW},
    {.name = "relay", .changes = RELAY},
    {.name = "relay-half", .changes = HALF RELAY},
    {.name = "segments", .changes = "seg=32"},
    {.name = "segments-half", .changes = HALF " seg=32"},
    {.name = "segments-narrow", .changes = NARROW " seg=32"},
    {.name = "walk-shared", .changes = SHARED},
    {.name = NULL},
};
static const tg_schedule walk = {
    SCHEDULE("walk"), .chunk = 64, .points = walk_points,
    .rows = {CHUNK_ROW(3), STATE_ROWS, WALK_ROW},
};

/* The gradients: dV, and back and forth what the states give dQ and dK, by walks that leave no state in memory; what is of a chunk
 * alone all chunks do at once. */
#define KEY_WALK .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}
#define KEYS     PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_P(32), [TG_DHV] = TG_L(64), [TG_MEMBER] = TG_L(1)}
#define STATE_WALKS                                                                                                    \
    {ROW("vdh", (VDH)), DOTS(TG_DHV)},                                                                                 \
    CUT_ROWS("dstate", "dcompose", DC, TG_LQ),                                                                         \
    {ROW("dV", (DV)), WALK(2), .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},\
    STATE_ROWS,                                                                                                        \
    {ROW("dQi", (DQI, SQ, SF)), WALK(2), KEY_WALK},                                                                    \
    {ROW("ends", (Y)), .warps = 2, .row = {[TG_DQK] = TG_P(64), [TG_DHV] = TG_L(1)}},                                  \
    {ROW("dKi", (DKI, DS0, SK)), WALK(2), KEY_WALK},                                                                   \
    {ROW("chunks", (XL)), .warps = 2, .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(64)}}
#define KEY_ROWS {ROW("dQ", (DQ, QDQ)), KEYS}, {ROW("dK", (DK, KDK, RK)), KEYS}, DGATE_ROWS
/* ... all in one by lanes that have channels. Where heads share q and k each writes what it gives their gradients, which rows sum up
 * (`sums`). */
#define AT_ONCE(...)                                                                                                   \
    {ROW("keys", (__VA_ARGS__, DGATE, SUM_U)), .mma = TG_MMA_SYNC, .warps = 4, .stages = 8, .blocks_per_sm = 2,        \
     .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(32)}},                                  \
    DBONUS_ROW
#define HEADS_ROW(name_, out, position)                                                                                \
    {ROW(name_, (out)), .warps = 2, .blocks_per_sm = 1,                                                                \
     .row = {[TG_CHUNK] = TG_P(1), [position] = TG_L(1), [TG_DQK] = TG_P(128), [TG_MEMBER] = TG_L(1)}}
#define NARROW_WALKS \
    "dV.warps=4 dV.stages=0 dV.dhv=64 dQi.warps=4 dQi.stages=0 dQi.dqk=64 dKi.warps=4 dKi.stages=0 dKi.dqk=64"
#define BACK_RELAY "dV.seg=R/32 dQi.seg=R/32 dKi.seg=R/32"
/* Where the state has more values than one thread block takes: two, a cluster that adds up what both have of positions by dqk. */
#define PAIR_OF(block_) "dV.dhv=128 dQi.dhv=C/" #block_ " dKi.dhv=C/" #block_
#define SHARED_VALUES   PAIR_OF(256) " dV.dhv=64 dV.stages=1" /* dqk beyond 256 */
static const tg_point back_walk_points[] = {
    {.name = "walk"},
    {.name = "walk-narrow", .changes = NARROW_WALKS},
    {.name = "relay", .changes = BACK_RELAY},
    {.name = "segments", .changes = "seg=32"},
    {.name = "segments-narrow", .changes = NARROW_WALKS " seg=32"},
    {.name = "walk-cluster", .changes = PAIR_OF(256)},
    {.name = "walk-shared", .changes = SHARED_VALUES},
    {.name = NULL},
};
static const tg_schedule back_walk = {
    SCHEDULE("walk"), .chunk = 64, .points = back_walk_points,
    .rows = {BACK_CHUNK_ROW, STATE_WALKS, AT_ONCE(DQ, DK)},
};
static const tg_point back_walk_sums_points[] = {
    {.name = "walk-sums"},
    {.name = "walk-sums-narrow", .changes = NARROW_WALKS},
    {.name = "relay-sums", .changes = BACK_RELAY},
    {.name = "segments-sums", .changes = "seg=32"},
    {.name = "segments-sums-narrow", .changes = NARROW_WALKS " seg=32"},
    {.name = "walk-sums-cluster", .changes = PAIR_OF(256)},
    {.name = "walk-sums-shared", .changes = SHARED_VALUES},
    {.name = NULL},
};
#define AT_ONCE_SUMMED AT_ONCE(DQM, DKM), HEADS_ROW("dQsum", DQ, TG_LQ), HEADS_ROW("dKsum", DK, TG_LKV)
static const tg_schedule back_walk_sums = {
    SCHEDULE("walk-sums"), .chunk = 64, .by_name = TG_NAMED_ALONE, .points = back_walk_sums_points,
    .rows = {BACK_CHUNK_ROW, STATE_WALKS, AT_ONCE_SUMMED},
};
/* Gradients of keys by fragments, which read sums of gates in memory and add up heads on chip: for short calls of heads that share keys. */
static const tg_point back_walk_gates_points[] = {
    {.name = "walk-gates"},
    {.name = "walk-gates-narrow", .changes = NARROW_WALKS},
    {.name = "segments-gates", .changes = "seg=32"},
    {.name = "segments-gates-narrow", .changes = NARROW_WALKS " seg=32"},
    {.name = NULL},
};
static const tg_schedule back_walk_gates = {
    SCHEDULE("walk-gates"), .chunk = 64, .points = back_walk_gates_points,
    .rows = {GATE_ROW, PAIR_ROW, STATE_WALKS, KEY_ROWS},
};

static const tg_vary vary[] = {
    {.field = TG_FIELD_SEGMENT, .values = {4, 8, 16, 32, 64, 128, 256}, .line = __LINE__},
};
#define SPACE(name_, schedule_)                                                                                        \
    {TG_HEADER(tg_space), .name = name_, .file = __FILE__, .schedule = &schedule_, .vary = vary, .n_vary = TG_COUNT(vary)}
static const tg_space walk_space = SPACE("segments", walk),
                      back_walk_space = SPACE("segments", back_walk), back_walk_sums_space = SPACE("segments-sums", back_walk_sums),
                      back_walk_gates_space = SPACE("segments-gates", back_walk_gates);
const tg_space *const tg_vector_forward_spaces[] = {&walk_space, NULL};
const tg_space *const tg_vector_backward_spaces[] = {&back_walk_space, &back_walk_sums_space, &back_walk_gates_space, NULL};

const tg_schedule *const tg_vector_at_once[] = {&back_walk, &back_walk_sums, NULL};
const tg_schedule *const tg_vector_walked[] = {&back_walk_gates, NULL};
const tg_schedule *const tg_vector_forward[] = {&step, &walk, &fused, &two_level, NULL};
const tg_schedule *const tg_vector_backward[] = {&back_two_level, NULL};

/* Names of schedules for dqk beyond 128, from before lanes took one block of channels after another. */
const tg_alias tg_vector_forward_names[] = {
    {"walk-gates", "walk"}, {"walk-gates-half", "walk-half"}, {"walk-gates-narrow", "walk-narrow"},
    {"segments-gates", "segments"}, {"segments-gates-half", "segments-half"}, {"segments-gates-narrow", "segments-narrow"},
    {NULL, NULL},
};
const tg_alias tg_vector_backward_names[] = {
    {"walk-wide", "walk"}, {"walk-wide-narrow", "walk-narrow"}, {"walk-wide-cluster", "walk-cluster"},
    {"walk-wide-sums", "walk-sums"}, {"walk-wide-sums-narrow", "walk-sums-narrow"}, {"walk-wide-sums-cluster", "walk-sums-cluster"},
    {"walk-gates-cluster", "walk-cluster"}, {"walk-gates-cluster-narrow", "walk-cluster"},
    {NULL, NULL},
};
