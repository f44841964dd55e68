/* variants/kda_schedules.c - the schedules of the delta rule with a decay of a key dimension: those of delta_schedules.c by
 * mma.sync, with gates by threads that have a channel each. A chunk is one block of so many positions. */
#include "variants/kda.h"

#include "variants/delta_rows.h"

#define CHANNELS             .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [TG_DQK] = TG_P(64)}
#define GATE_ROW             {ROW("gates", (B, GT)), CHANNELS}
#define POSITIONS            .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}
#define UNIT_ROW             ROW("unit", (QR, KR, BETA, Q, K)), .has = KR, ROWS
#define PRODUCTS(stages_)    .mma = TG_MMA_SYNC, .warps = 4, .stages = stages_, .blocks_per_sm = 1
#define WALK_ROW(name_, outputs_)                                                                                      \
    {ROW(name_, outputs_), PRODUCTS(2), .row = {[TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64)}}
#define CHUNK_TILES          (T_, P, KB, KE, QB)
#define T_OF(outputs_)                                                                                                 \
    {ROW("T", outputs_), PRODUCTS(2), .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(32)}}

/* The same with the gates, whose sums do not go through memory; and with the norms of rows, of which gradients have more in memory. */
#define CHUNK_ROW(resident_)                                                                                           \
    {ROW("T", (T_, P, KB, KE, QB, GT)), .lacks = KR, ALL_CHANNELS(resident_)},                                         \
    {ROW("T", (T_, P, KB, KE, QB, GT, BETA)), .has = KR, ALL_CHANNELS(resident_)}
#define BACK_CHUNK_ROW                                                                                                 \
    {UNIT_ROW, .only = TG_IF_KEPT},                                                                                    \
    {ROW("T", (T_, P, KB, KE, QB, GT)), .lacks = KR, .only = TG_IF_NOT_KEPT, ALL_CHANNELS(3)},                         \
    {ROW("T", (T_, P, KB, KE, QB, GT, QR, KR, BETA, Q, K)), .has = KR, .only = TG_IF_NOT_KEPT, ALL_CHANNELS(3)}
#define ALL_CHANNELS(resident_) .mma = TG_MMA_SYNC, .warps = 4, .blocks_per_sm = resident_,                                \
    .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(0)}
/* Of dqk beyond 128 lanes have one block after another, and sums of both products beside it. */
#define WIDE "T.blocks_per_sm=2 "

/* Chunks of 32 spill less than those of 64, and are up to 1.5 times faster. fp32 takes chunks of 16. Two warps with all columns of a
 * state are faster for many heads, up to dqk 128: at 256 they spilled 7 KB a thread, and were four times slower than four that share. */
#define WIDE_T                                                                                                         \
    "chunk=32 T.warps=2 T.Lhq=32 T.Lkv=32 walk.warps=2 walk.stages=1 walk.Lhq=32 walk.Lkv=32 walk.dhv=32 "
#define FP32                                                                                                           \
    "T.mma=tf32x3 T.dqk=16 walk.mma=tf32x3 walk.stages=1 chunk=16 T.warps=1 T.Lhq=16 T.Lkv=16 walk.Lhq=16 walk.Lkv=16 "
#define WHOLE_STATE "walk.warps=2 walk.dqk=128 walk.dhv=32 "
static const tg_point portable_points[] = {
    {.name = "portable-wide", .changes = WIDE_T},
    {.name = "portable"},
    {.name = "portable-small", .changes = "walk.stages=1"},
    {.name = "portable-fp32-shared", .changes = FP32 SHARED},
    {.name = "portable-fp32", .changes = FP32 WHOLE_STATE},
    {.name = "portable-shared", .changes = WIDE_T SHARED},
    {.name = "portable-shared-small", .changes = WIDE_T SMALL},
    {.name = NULL},
};
static const tg_schedule portable = {
    SCHEDULE("portable"), .chunk = 64, .points = portable_points,
    .rows = {{UNIT_ROW}, GATE_ROW, T_OF(CHUNK_TILES), WALK_ROW("walk", (H, S))},
};

static const tg_schedule fused = {
    SCHEDULE("fused"), .chunk = 64,
    .rows = {CHUNK_ROW(2), WALK_ROW("walk", (H, S))},
};

#define BACK_WIDE                                                                                                      \
    WIDE_T "dV.warps=2 dV.stages=1 dV.Lhq=32 dV.Lkv=32 dV.dhv=32 dQ.warps=2 dQ.Lhq=32 dQ.Lkv=32 dQ.dqk=32 "             \
           "dKr.warps=2 dKr.Lhq=32 dKr.Lkv=32 dKr.dqk=32 dK.warps=2 dK.Lhq=32 dK.Lkv=32 dK.dqk=32 dbeta.warps=1 dbeta.Lkv=32 "
#define BACK_FP32                                                                                                      \
    FP32 "dV.mma=tf32x3 dV.stages=1 dQ.mma=tf32x3 dQ.dhv=16 dKr.mma=tf32x3 dKr.dhv=16 dK.mma=tf32x3 dK.dhv=16 "        \
         "dV.Lhq=16 dV.Lkv=16 dQ.warps=1 dQ.Lhq=16 dQ.Lkv=16 dQ.dqk=32 "                           \
         "dKr.warps=1 dKr.Lhq=16 dKr.Lkv=16 dKr.dqk=32 dK.warps=1 dK.Lhq=16 dK.Lkv=16 dK.dqk=32 dbeta.warps=1 dbeta.Lkv=32 "
#define KEYS .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(32), [TG_MEMBER] = TG_L(1)}
/* Of all chunks at once, from N, dR, and the states of both directions in memory. Rows of states o dstates, then the gates: a thread a channel;
 * sums of the chunk first; then parameters, and rows of length 1. */
#define KEY_ROWS                                                                                                       \
    {ROW("dQ", (DQ, QDQ)), PRODUCTS(2), KEYS},                                                                         \
    {ROW("dKr", (DKR, RDK, KZ, RV)), PRODUCTS(2), .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(32)}},\
    {ROW("dK", (DK, WDK, RK)), PRODUCTS(2), KEYS},                                                                     \
    GATE_GRADIENT_ROWS
/* All of it in one row by lanes that have channels; but sums over dhv (rv), which dV makes. Where heads share q and k each writes what it
 * gives their gradients, which rows sum up (`sums`). */
#define KEYS_OF(...)                                                                                                   \
    {ROW("keys", (__VA_ARGS__, KZ, DA)), .mma = TG_MMA_SYNC, .warps = 4, .stages = 8, .blocks_per_sm = 2,              \
     .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(32)}}
#define CHANNEL_KEY_ROWS KEYS_OF(DQ, DK), PARAMETER_ROWS
#define SUMMED_KEY_ROWS                                                                                                \
    KEYS_OF(DQM, DKM), {ROW("dQsum", (DQ)), HEADS(TG_LQ)}, {ROW("dKsum", (DK)), HEADS(TG_LKV)}, PARAMETER_ROWS
#define GATE_GRADIENT_ROWS                                                                                             \
    {ROW("cross", (XC)), .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(1)}},          \
    {ROW("sums", (TE, TX)), .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(64)}},       \
    {ROW("dgates", (DA)), .lacks = KR, CHANNELS},                                                                      \
    PARAMETER_ROWS
/* Of what operands are made of. */
#define PARAMETER_ROWS                                                                                                 \
    {ROW("dbeta", (DBETA)), .lacks = KR, POSITIONS},                                                                   \
    {ROW("dbeta", (DBETA_RAW)), POSITIONS},                                                                            \
    {ROW("dgates", (DG_RAW, SUM_BIAS, SUM_RATE)), CHANNELS},                                                           \
    {ROW("dbias", (DDT_BIAS)), .warps = 2, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_L(1), [TG_DQK] = TG_P(64)}},  \
    {ROW("chunks", (SUM_CHUNK)), .warps = 2, .row = {[TG_CHUNK] = TG_W(64), [TG_DQK] = TG_L(1)}},                      \
    {ROW("drate", (DA_LOG)), .warps = 2, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_W(64)}},                        \
    {ROW("dunit", (DQ_RAW, DK_RAW)), ROWS}
static const tg_point back_portable_points[] = {
    {.name = "portable-wide", .changes = BACK_WIDE},
    {.name = "portable"},
    {.name = "portable-small", .changes = "walk.stages=1 dV.stages=1"},
    {.name = "portable-fp32-shared", .changes = BACK_FP32 BACK_SHARED},
    {.name = "portable-fp32", .changes = BACK_FP32 WHOLE_STATE "dV.warps=2 dV.dqk=128 dV.dhv=32"},
    {.name = "portable-shared", .changes = BACK_WIDE BACK_SHARED},
    {.name = "portable-shared-small", .changes = BACK_WIDE BACK_SMALL},
    {.name = NULL},
};
static const tg_schedule back_portable = {
    SCHEDULE("portable"), .chunk = 64, .points = back_portable_points,
    .rows = {{UNIT_ROW}, GATE_ROW, T_OF(CHUNK_TILES), WALK_ROW("walk", (CK, N)), WALK_ROW("dV", (DC, DR, DV)), KEY_ROWS},
};

/* Decode: as in delta_schedules.c, by sixteen threads that share out dqk, or eight: what is of dqk is in registers too. */
static const tg_point step_points[] = {
    {.name = "step8"},
    {.name = "step8-whole", .changes = "step.dhv=64"}, /* of two that the model thinks alike the faster one first */
    {.name = "step8-wide", .changes = "step.dhv=32"},
    {.name = NULL},
};
static const tg_schedule step = {
    SCHEDULE("step"), .chunk = 1, .max_tokens = 8, .points = step_points,
    .rows = {{ROW("step", (H, S)), .warps = 2,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(16)}}},
};

/* ---- on warpgroups (sm_90a) ---- */

/* A walk reads T and P, and its keys and queries as the ends of the chunk have them: every left operand is a map of the product
 * before, and what carries the state on is its decay, of each key dimension. */
/* What stays in the caller's memory for the backward's walk-kept: the chunk's tiles, and the values that are written. */
#define KEPT .kept = {T_, P, KB, KE, QB, GT, N}
/* T beside the walk of the piece before, which has less of memory then: what its blocks of dhv share is loaded once. */
#define RELAY  " walk.seg=R/32"
#define PIECES NARROW " walk.dhv=M2/64 pieces=4"
static const tg_point walk_points[] = {
    {.name = "walk"},
    {.name = "walk-narrow", .changes = NARROW},
    {.name = "relay", .changes = RELAY},
    {.name = "relay-narrow", .changes = NARROW RELAY},
    {.name = "relay-keep", .changes = RELAY, KEPT},
    {.name = "walk-keep", KEPT},
    {.name = "walk-narrow-keep", .changes = NARROW, KEPT},
    {.name = "pieces", .changes = PIECES},
    {.name = "pieces-keep", .changes = PIECES, KEPT},
    {.name = "segments", .changes = "seg=32"},
    {.name = "segments-narrow", .changes = NARROW " seg=32"},
    {.name = "walk-wide", .changes = WIDE},
    {.name = "walk-wide-narrow", .changes = WIDE NARROW},
    {.name = "walk-wide-single", .changes = WIDE NARROW " walk.stages=1"},
    {.name = "walk-wide-shared", .changes = WIDE SHARED_WALK},
    {.name = NULL},
};
static const tg_schedule walk = {
    SCHEDULE("walk"), .chunk = 64, .points = walk_points,
    .rows = {CHUNK_ROW(3),
             {ROW("state", (CK, TR)), .only = TG_IF_CUT, CUT_STATES(2)},
             {ROW("compose", (CK)), .only = TG_IF_CUT, COMPOSED_BY_VALUES},
             {ROW("walk", (H, S)), .only = TG_IF_NOT_KEPT, ON_WARPGROUPS(2), CUT_VALUES},
             {ROW("walk", (H, S, N)), .only = TG_IF_KEPT, ON_WARPGROUPS(2), CUT_VALUES}},
};

/* Where sequences are too few they are cut, as in delta_schedules.c. */
#define LENGTHS {.field = TG_FIELD_SEGMENT, .values = {4, 8, 11, 16, 22, 32, 43, 64, 86, 128, 171, 256}, .line = __LINE__}
static const tg_vary walk_vary[] = {LENGTHS, {.field = TG_FIELD_PIECES, .values = {2, 3, 4, 5, 6}, .line = __LINE__}, VARY_COMPOSED("compose")};
static const tg_space walk_space = {TG_HEADER(tg_space), .name = "segments", .file = __FILE__, .schedule = &walk,
                                    .vary = walk_vary, .n_vary = TG_COUNT(walk_vary)};

/* ... with these made on chip, of keys, queries and gates as they are: of what T writes they would be most. Of two that the model thinks
 * alike it is the faster one where gates are given; where they and the norms of rows are made too, the makers take longer than those who walk. */
static const tg_point walk_made_points[] = {
    {.name = "walk-made", .lacks = KR},
    {.name = "walk-made-narrow", .changes = NARROW, .lacks = KR},
    {.name = "relay-made", .changes = RELAY, .lacks = KR},
    {.name = NULL},
};
static const tg_point walk_made_gates_points[] = {
    {.name = "walk-made", .has = KR},
    {.name = "walk-made-narrow", .changes = NARROW, .has = KR},
    {.name = "relay-made", .changes = RELAY, .has = KR},
    {.name = NULL},
};
#define MADE_ROWS                                                                                                      \
    {ROW("T", (T_, P, GT)), .lacks = KR, ALL_CHANNELS(3)},                                                             \
    {ROW("T", (T_, P, GT, BETA, QR, KR)), .has = KR, ALL_CHANNELS(3)},                                                 \
    {ROW("walk", (H, S)), ON_WARPGROUPS(AS_FIT), .makers = 4, VALUES}
static const tg_schedule walk_made = {SCHEDULE("walk-made"), .chunk = 64, .points = walk_made_points, .rows = {MADE_ROWS}};
static const tg_schedule walk_made_gates = {
    SCHEDULE("walk-made-gates"), .chunk = 64, .points = walk_made_gates_points, .rows = {MADE_ROWS}};
static const tg_vary made_vary[] = {LENGTHS};
#define MADE_SPACE(name_, schedule_)                                                                                   \
    {TG_HEADER(tg_space), .name = name_, .file = __FILE__, .schedule = &schedule_, .vary = made_vary, .n_vary = TG_COUNT(made_vary)}
static const tg_space walk_made_space = MADE_SPACE("made", walk_made), walk_made_gates_space = MADE_SPACE("made-gates", walk_made_gates);
const tg_space *const tg_kda_forward_spaces[] = {&walk_space, &walk_made_space, &walk_made_gates_space, NULL};

/* The gradients in four walks: the values that are written, again; back, their gradients; what the states give dQ and keys as they
 * are read; back, keys as they are written. All that is of a chunk alone all chunks do at once. */
#define KEY_WALK ON_WARPGROUPS(2), .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}
#define COMPOSED .only = TG_IF_CUT, .warps = 1, .row = {[TG_SEG] = TG_W(0), [TG_DQK] = TG_P(1), [TG_DHV] = TG_P(128)}
/* Where sequences are too few all of them are cut: the values' by transitions; with N and dR in memory the other states are sums of
 * products. */
#define VALUE_WALKS                                                                                                    \
    {ROW("nstate", (CK, TR)), .only = TG_IF_CUT, CUT_STATES(2)},                                                       \
    {ROW("ncompose", (CK)), .only = TG_IF_CUT, COMPOSED_BY_VALUES},                                                    \
    {ROW("N", (N)), .only = TG_IF_NOT_KEPT, ON_WARPGROUPS(2), CUT_VALUES},                                             \
    {ROW("vstate", (DC)), .has = SE, .only = TG_IF_CUT, ON_WARPGROUPS(2), CUT_VALUES}, /* by the transpose of TR */    \
    {ROW("vstate", (DC, DTR)), .lacks = SE, .only = TG_IF_CUT, ON_WARPGROUPS(2), CUT_VALUES},                          \
    {ROW("vcompose", (DC)), .only = TG_IF_CUT, COMPOSED_BY_VALUES},                                                    \
    {ROW("dV", (DR, DV, RV)), .has = DV, ON_WARPGROUPS(2), CUT_VALUES}
#define WALKED_ROWS                                                                                                    \
    VALUE_WALKS,                                                                                                       \
    {ROW("state", (CQ)), .only = TG_IF_CUT, ON_WARPGROUPS(4),                                                          \
     .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},\
    {ROW("compose", (CQ)), COMPOSED},                                                                                  \
    {ROW("dQi", (DQI, GI, SQ, SR, SF)), KEY_WALK},                                                                     \
    {ROW("ends", (Y)), .warps = 2, .row = {[TG_DQK] = TG_P(64), [TG_DHV] = TG_L(1)}},                                  \
    {ROW("dstate", (DCK)), .only = TG_IF_CUT, KEY_WALK},                                                               \
    {ROW("dcompose", (DCK)), COMPOSED},                                                                                \
    {ROW("dKi", (NI, DS0, SK)), .has = NI, KEY_WALK},                                                                             \
    {ROW("walked", (XL)), .warps = 2, .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(64)}}
#define NARROW_WALKS \
    "N.warps=4 N.stages=0 N.dhv=64 dV.warps=4 dV.stages=0 dV.dhv=64 dQi.warps=4 dQi.stages=0 dQi.dqk=64 dKi.warps=4 dKi.stages=0 dKi.dqk=64"
/* Where the state has more values than the keys' walks have room for: two thread blocks, a cluster that adds up what is by dqk. */
#define PAIR_OF_VALUES "dQi.dhv=C/128 dKi.dhv=C/128"
/* For dqk beyond 128, whose walks take narrow blocks; of 256 there is room for one stage of what dV reads. */
#define WIDE_WALKS WIDE NARROW_WALKS
#define WIDE_PAIR  WIDE_WALKS " dV.stages=1 " PAIR_OF_VALUES
#define SHARED_VALUES WIDE_PAIR " N.warps=8 N.stages=1 dV.warps=8" /* for dqk beyond 256 */
#define BACK_RELAY "N.seg=R/32 dV.seg=R/32 dQi.seg=R/32 dKi.seg=R/32"
static const tg_point back_walk_points[] = {
    {.name = "walk"},
    {.name = "walk-narrow", .changes = NARROW_WALKS},
    {.name = "relay", .changes = BACK_RELAY},
    {.name = "relay-kept", .changes = BACK_RELAY, KEPT, .has = KR},
    {.name = "walk-kept", KEPT},
    {.name = "walk-cluster", .changes = PAIR_OF_VALUES},
    {.name = "walk-cluster-kept", .changes = PAIR_OF_VALUES, KEPT},
    {.name = "walk-wide", .changes = WIDE_WALKS},
    {.name = "walk-wide-cluster", .changes = WIDE_PAIR},
    {.name = "walk-wide-shared", .changes = SHARED_VALUES},
    {.name = NULL},
};
#define STATE_GRADIENT_ROW {ROW("dV", (DS0)), .lacks = DV, ON_WARPGROUPS(2), CUT_VALUES}
static const tg_schedule back_walk = {
    SCHEDULE("walk"), .chunk = 64, .points = back_walk_points,
    .rows = {BACK_CHUNK_ROW, WALKED_ROWS, STATE_GRADIENT_ROW, CHANNEL_KEY_ROWS},
};
/* ... that begin with the states which are made for the values' walks; `ends` puts right what chunks say of <C, dC> (kda.inc). */
static const tg_point back_cut_points[] = {
    {.name = "segments", .changes = "seg=32"},
    {.name = "segments-cluster", .changes = "seg=32 " PAIR_OF_VALUES},
    {.name = NULL},
};
#define CUT_ROWS                                                                                                       \
    VALUE_WALKS, STATE_GRADIENT_ROW,                                                                                   \
    {ROW("dQi", (DQI, GI, SQ, SR, SE)), KEY_WALK},                                                                     \
    {ROW("dKi", (NI, DS0, SK)), .has = NI, KEY_WALK},                                                                  \
    {ROW("walked", (YK, XL)), .warps = 2, .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(64)}},                         \
    {ROW("ends", (YS)), .warps = 2, .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_P(1), [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(1)}}
static const tg_schedule back_cut = {
    SCHEDULE("segments"), .chunk = 64, .points = back_cut_points,
    .rows = {BACK_CHUNK_ROW, CUT_ROWS, CHANNEL_KEY_ROWS},
};
/* The same where heads share q and k, whose unit rows are made once for them. */
#define SHARED_CHUNK_ROWS                                                                                              \
    {UNIT_ROW},                                                                                                        \
    {ROW("T", (T_, P, KB, KE, QB, GT)), .lacks = KR, .only = TG_IF_NOT_KEPT, ALL_CHANNELS(3)},                         \
    {ROW("T", (T_, P, KB, KE, QB, GT)), .has = KR, .only = TG_IF_NOT_KEPT, ALL_CHANNELS(2)}
static const tg_point back_walk_sums_points[] = {
    {.name = "walk-sums"},
    {.name = "walk-sums-narrow", .changes = NARROW_WALKS},
    {.name = "relay-sums", .changes = BACK_RELAY},
    {.name = "walk-sums-kept", KEPT},
    {.name = "walk-sums-cluster", .changes = PAIR_OF_VALUES},
    {.name = "walk-wide-sums", .changes = WIDE_WALKS},
    {.name = "walk-wide-sums-cluster", .changes = WIDE_PAIR},
    {.name = "walk-wide-sums-shared", .changes = SHARED_VALUES},
    {.name = NULL},
};
static const tg_schedule back_walk_sums = {
    SCHEDULE("walk-sums"), .chunk = 64, .by_name = TG_NAMED_ALONE, .points = back_walk_sums_points,
    .rows = {SHARED_CHUNK_ROWS, WALKED_ROWS, STATE_GRADIENT_ROW, SUMMED_KEY_ROWS},
};
static const tg_point back_cut_sums_points[] = {
    {.name = "segments-sums", .changes = "seg=32"},
    {.name = "segments-sums-cluster", .changes = "seg=32 " PAIR_OF_VALUES},
    {.name = NULL},
};
static const tg_schedule back_cut_sums = {
    SCHEDULE("segments-sums"), .chunk = 64, .by_name = TG_NAMED_ALONE, .points = back_cut_sums_points,
    .rows = {SHARED_CHUNK_ROWS, CUT_ROWS, SUMMED_KEY_ROWS},
};

static const tg_vary back_vary[] = {LENGTHS, VARY_COMPOSED("ncompose"), VARY_COMPOSED("vcompose")};
#define BACK_SPACE(name_, schedule_)                                                                                   \
    {TG_HEADER(tg_space), .name = name_, .file = __FILE__, .schedule = &schedule_, .vary = back_vary, .n_vary = TG_COUNT(back_vary)}
static const tg_space back_cut_space = BACK_SPACE("segments", back_cut), back_cut_sums_space = BACK_SPACE("segments-sums", back_cut_sums),
                      back_walk_space = BACK_SPACE("relay", back_walk), back_walk_sums_space = BACK_SPACE("relay-sums", back_walk_sums);
const tg_space *const tg_kda_backward_spaces[] = {&back_cut_space, &back_cut_sums_space, &back_walk_space, &back_walk_sums_space, NULL};

const tg_schedule *const tg_kda_forward[] = {&step, &walk_made, &walk, &walk_made_gates, &fused, &portable, NULL};
const tg_schedule *const tg_kda_at_once[] = {&back_walk, &back_walk_sums, NULL};
const tg_schedule *const tg_kda_cut[] = {&back_cut, &back_cut_sums, NULL};
const tg_schedule *const tg_kda_backward[] = {&back_portable, NULL};

/* Names from before lanes took one block of channels after another, and fp32 had two forms. */
#define FP32_NAMES                                                                                                     \
    {"portable-fp32-wide", "portable-fp32"}, {"portable-fp32-shared-small", "portable-fp32-shared"}, {NULL, NULL}
const tg_alias tg_kda_forward_names[] = {
    {"walk-gates", "walk-wide"}, {"walk-gates-narrow", "walk-wide-narrow"}, FP32_NAMES};
const tg_alias tg_kda_backward_names[] = {FP32_NAMES};
