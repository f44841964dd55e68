/* variants/delta_schedules.c - the schedules of the delta rule, with and without a decay: a table a structure. A chunk is one
 * block of so many positions. */
#include "variants/delta.h"

#include "variants/delta_rows.h"

#define POSITIONS_OF(chunks) .warps = 1, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(chunks), [TG_LKV] = TG_W(64)}
#define POSITIONS            POSITIONS_OF(1)
#define GATE_ROW                                                                                                       \
    {ROW("unit", (Q, K)), .has = K2, .lacks = DQ_RAW, ROWS}, {ROW("unit", (QQ, K2, Q, K, QSC)), .has = DQ_RAW, ROWS},   \
    {ROW("scaled", (QSC)), .lacks = DQ_RAW, ELEMENTS},                                                                  \
    {ROW("gates", (B, GT, WI, W, BN, RB)), .lacks = BETA_RAW, POSITIONS_OF(4)}, {ROW("gates", (B, GT, WI, W, BN, RB, BETA)), .has = BETA_RAW, POSITIONS_OF(4)}
#define GATE_GRADIENT_ROW                                                                                              \
    {ROW("dgates", (DBETA, DA)), .lacks = BETA_RAW, POSITIONS},                                                        \
    {ROW("dgates", (DBETA_RAW, DG_RAW, SUM_BIAS, SUM_RATE)), POSITIONS},                                               \
    {ROW("params", (DDT_BIAS, DA_LOG)), .warps = 2, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_W(64)}},             \
    {ROW("dunit", (DQ_RAW, DK_RAW)), ROWS}

/* ---- by mma.sync ---- */

/* T of every chunk; the states and the values that are written by a walk, a warp for 16 values; everything else of all chunks
 * at once. What a sum has of its dimension at a time is 32, of fp32 16.
 *
 *   small   for 99 KB of shared memory (RTX 30xx, 40xx, 50xx)
 *   wide    for dqk up to 256, and for fp32: half of the registers for values, more for the state
 *   narrow  few heads: more thread blocks, whose warps share the columns of a state */
#define PRODUCTS(stages_) .mma = TG_MMA_SYNC, .warps = 4, .stages = stages_, .blocks_per_sm = 1
#define WALK_ROW(name_, outputs_)                                                                                      \
    {ROW(name_, outputs_), PRODUCTS(2), .row = {[TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64)}}
#define T_OF(outputs_)                                                                                                 \
    {ROW("T", outputs_), PRODUCTS(2), .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(32)}}

#define WIDE_T                                                                                                         \
    "chunk=32 gates.warps=1 gates.Lkv=32 T.warps=2 T.Lhq=32 T.Lkv=32 "                                                 \
    "walk.warps=2 walk.stages=1 walk.Lhq=32 walk.Lkv=32 walk.dhv=32 "
#define WIDE   WIDE_T "H.warps=2 H.Lhq=32 H.Lkv=32 H.dhv=32 "
#define FP32   "T.mma=tf32x3 T.dqk=16 walk.mma=tf32x3 walk.stages=1 H.mma=tf32x3 H.dqk=16"
#define FP32_SHARED   "walk.warps=8 walk.dhv=16 " /* the state in eight warps */
#define SMALL_H       "H.warps=1 H.Lhq=16 H.Lkv=16 "
static const tg_point portable_points[] = {
    {.name = "portable"},
    {.name = "portable-small", .changes = "walk.stages=1"},
    {.name = "portable-wide", .changes = WIDE},
    {.name = "portable-fp32", .changes = WIDE FP32},
    {.name = "portable-narrow", .changes = "walk.dhv=32"},
    {.name = "portable-fp32-narrow", .changes = WIDE FP32 " " SHARED},
    {.name = "portable-shared", .changes = WIDE SHARED},
    {.name = "portable-shared-small", .changes = WIDE SMALL SMALL_H},
    {.name = "portable-fp32-shared", .changes = WIDE FP32 " " SMALL SMALL_H FP32_SHARED},
    {.name = NULL},
};
static const tg_schedule portable = {
    SCHEDULE("portable"), .chunk = 64, .points = portable_points,
    .rows = {GATE_ROW, T_OF((T_)), WALK_ROW("walk", (CK, N)),
             {ROW("H", (H)), PRODUCTS(2), .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(32), [TG_DHV] = TG_P(64)}}},
};

#define BACK_WIDE                                                                                                      \
    WIDE_T "dV.warps=2 dV.stages=1 dV.Lhq=32 dV.Lkv=32 dV.dhv=32 dQ.warps=2 dQ.Lhq=32 dQ.Lkv=32 dQ.dqk=32 "             \
           "dKr.warps=2 dKr.Lhq=32 dKr.Lkv=32 dKr.dqk=32 dK.warps=2 dK.Lhq=32 dK.Lkv=32 dK.dqk=32 dgates.warps=1 dgates.Lkv=32 "
#define BACK_FP32                                                                                                      \
    "T.mma=tf32x3 T.dqk=16 walk.mma=tf32x3 walk.stages=1 dV.mma=tf32x3 dV.stages=1 dQ.mma=tf32x3 dQ.dhv=16 "            \
    "dKr.mma=tf32x3 dKr.dhv=16 dK.mma=tf32x3 dK.dhv=16 product.mma=tf32x3"
#define KEYS .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(32), [TG_MEMBER] = TG_L(1)}
static const tg_point back_portable_points[] = {
    {.name = "portable"},
    {.name = "portable-small", .changes = "walk.stages=1 dV.stages=1"},
    {.name = "portable-wide", .changes = BACK_WIDE},
    {.name = "portable-fp32", .changes = BACK_WIDE BACK_FP32 " walk.warps=4 dV.warps=4"},
    {.name = "portable-narrow", .changes = "walk.dhv=32 dV.dhv=32"},
    {.name = "portable-fp32-narrow", .changes = BACK_WIDE BACK_FP32 " " BACK_SHARED},
    {.name = "portable-shared", .changes = BACK_WIDE BACK_SHARED},
    {.name = "portable-shared-small", .changes = BACK_WIDE BACK_SMALL},
    {.name = "portable-fp32-shared", .changes = BACK_WIDE BACK_FP32 " " BACK_SMALL FP32_SHARED "dV.warps=8"},
    {.name = NULL},
};
static const tg_schedule back_portable = {
    SCHEDULE("portable"), .chunk = 64, .points = back_portable_points,
    .rows = {GATE_ROW, T_OF((T_, PT)), WALK_ROW("walk", (CK, N)), WALK_ROW("dV", (DC, DR, DV)),
             {ROW("dQ", (DQ, QD)), PRODUCTS(2), KEYS},
             {ROW("dKr", (DKR, RV, ZD)), PRODUCTS(2), .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(32)}},
             {ROW("dK", (DK, KX, KD)), PRODUCTS(2), KEYS},
             {ROW("product", (XI)), PRODUCTS(2), .row = {[TG_CHUNK] = TG_P(1), [TG_DQK] = TG_L(64), [TG_DHV] = TG_L(64)}},
             GATE_GRADIENT_ROW},
};

/* ---- decode ---- */

/* Tokens one after the other, a chunk each, and the state in registers from the first to the last: four threads share out dqk
 * for four values; or eight, where there are few heads or dqk is large. */
static const tg_point step_points[] = {
    {.name = "step8"},
    {.name = "step8-narrow", .changes = "step.dhv=32"},
    {.name = "step8-deep", .changes = "step.dhv=16"}, /* q and k are in registers too, or dqk is beyond 256 */
    {.name = NULL},
};
static const tg_schedule step = {
    SCHEDULE("step"), .chunk = 1, .max_tokens = 8, .points = step_points,
    .rows = {{ROW("step", (H, S)), .warps = 2,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64)}}},
};

/* ---- on warpgroups (sm_90a) ---- */

/* A walk reads T and makes all else: each of its left operands is a map of the product before, so that what is not in that chain,
 * tiles of positions, is for makers. T: as many warps as pairs of block columns, and many thread blocks. `keep`: T and N stay in the caller's memory, for the backward's walk-kept. */
#define T_BLOCKS .mma = TG_MMA_SYNC, .warps = 2, .stages = 2, .blocks_per_sm = 10, .row = {[TG_CHUNK] = TG_P(1), BLOCK, [TG_DQK] = TG_L(64)}
#define KEPT        .kept = {T_, N}
#define KEPT_STARTS .kept = {T_, N, CK}     /* ... and the states with which segments begin */
#define KEPT_STATES .kept = {T_, N, CK, TR} /* ... and their transitions */
#define RELAY " walk.seg=R/32"    /* thread blocks a little too many */
#define DEEP "state.blocks_per_sm=1 seg=32" /* dqk beyond 192: no two thread blocks of a state at a time */
static const tg_point walk_points[] = {
    {.name = "walk"},
    {.name = "segments", .changes = "seg=32"},
    {.name = "segments-narrow", .changes = NARROW " seg=32"},
    {.name = "walk-narrow", .changes = NARROW},
    {.name = "segments-deep", .changes = DEEP},
    {.name = "relay", .changes = RELAY},
    {.name = "relay-narrow", .changes = NARROW RELAY},
    {.name = "walk-keep", KEPT},
    {.name = "relay-keep", .changes = RELAY, KEPT},
    {.name = "walk-narrow-keep", .changes = NARROW, KEPT},
    {.name = "segments-keep", .changes = "seg=32", KEPT_STARTS},
    {.name = "segments-deep-keep", .changes = DEEP, KEPT_STARTS},
    {.name = "segments-keep-states", .changes = "seg=32", KEPT_STATES},
    {.name = "walk-shared", .changes = SHARED_WALK},
    {.name = "walk-shared-keep", .changes = SHARED_WALK, KEPT},
    {.name = NULL},
};
static const tg_schedule walk = {
    SCHEDULE("walk"), .chunk = 64, .points = walk_points,
    .rows = {GATE_ROW, {ROW("T", (T_)), T_BLOCKS},
             {ROW("state", (CK, TR)), .only = TG_IF_CUT, CUT_STATES(3)},
             {ROW("compose", (CK)), .only = TG_IF_CUT, COMPOSED_BY_VALUES},
             {ROW("walk", (H, S)), .only = TG_IF_NOT_KEPT, ON_WARPGROUPS(AS_FIT), .makers = 4, CUT_VALUES},
             {ROW("walk", (H, S, N)), .only = TG_IF_KEPT, ON_WARPGROUPS(AS_FIT), .makers = 4, CUT_VALUES}},
};

/* Where sequences are too few they are cut: what a segment makes of its first state is that state times a block of values, and what it
 * makes of zero. */
static const tg_vary walk_vary[] = {
    {.field = TG_FIELD_SEGMENT, .values = {8, 11, 16, 22, 32, 43, 64, 86, 128, 171, 256}, .line = __LINE__},
    VARY_COMPOSED("compose"),
};
static const tg_space walk_space = {TG_HEADER(tg_space), .name = "segments", .file = __FILE__, .schedule = &walk,
                                    .vary = walk_vary, .n_vary = TG_COUNT(walk_vary)};
const tg_space *const tg_delta_forward_spaces[] = {&walk_space, NULL};

/* The gradients in four walks: the values that are written, again; back, their gradients; dQ and keys as they are read; back,
 * keys as they are written. Where they are kept, T and N are as walk-keep left them. */
#define VALUE_ROWS(stages_)                                                                                            \
    GATE_ROW,                                                                                                          \
    {ROW("T", (T_)), .only = TG_IF_NOT_KEPT, T_BLOCKS},                                                                \
    {ROW("N", (N)), .only = TG_IF_NOT_KEPT, ON_WARPGROUPS(stages_), VALUES},                                           \
    {ROW("dV", (DR, DV, RV)), ON_WARPGROUPS(2), .makers = 4, VALUES}
#define KEY_WALK ON_WARPGROUPS(2), .row = {[TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}
#define END_ROW {ROW("ends", (Y)), .mma = TG_MMA_SYNC, .warps = 4, .row = {[TG_DQK] = TG_P(32), [TG_DHV] = TG_L(64)}}
#define WALKED_GATE_ROWS {ROW("sums", (PZ)), .warps = 4, .row = {[TG_CHUNK] = TG_W(128)}}, GATE_GRADIENT_ROW

#define FEWER "N.stages=3" /* dqk beyond 192 */
#define BACK_RELAY "N.seg=R/32 dV.seg=R/32 dQ.seg=R/32 dK.seg=R/32"
#define SPLIT "N.warps=4 N.dhv=64 dV.warps=4 dV.stages=0 dV.dhv=64"
/* Where dhv is too wide for one thread block of the keys' walks two are a cluster, which adds up dQ and both parts of dK. */
#define CLUSTERED     "dQ.dhv=C/128 dK.dhv=C/128 "
static const tg_point back_walk_points[] = {
    {.name = "walk"},
    {.name = "walk-deep", .changes = FEWER},
    {.name = "relay", .changes = BACK_RELAY},
    {.name = "relay-kept", .changes = BACK_RELAY, KEPT},
    {.name = "walk-cluster", .changes = CLUSTERED},
    {.name = "walk-cluster-deep", .changes = CLUSTERED FEWER},
    {.name = "walk-cluster-split", .changes = CLUSTERED SPLIT},
    {.name = "walk-kept", KEPT},
    {.name = "walk-cluster-kept", .changes = CLUSTERED, KEPT},
    {.name = "walk-cluster-split-kept", .changes = CLUSTERED SPLIT, KEPT},
    {.name = NULL},
};
static const tg_schedule back_walk = {
    SCHEDULE("walk"), .chunk = 64, .points = back_walk_points,
    .rows = {VALUE_ROWS(4),
             {ROW("dQ", (DQ, DKR, QD, ZD, SR, SF)), KEY_WALK},
             END_ROW,
             {ROW("dK", (DK, DS0, KX, KD, SK)), KEY_WALK},
             WALKED_GATE_ROWS},
};

/* What heads share is summed by rows of their own, and so are both parts of dK where the last walk has no shared memory for a
 * sixth tile (`apart`). `split`: few heads, the values by two thread blocks. */
static const tg_point back_apart_points[] = {{.name = "walk-apart"}, {.name = "walk-apart-kept", KEPT}, {.name = NULL}};
static const tg_schedule back_apart = {
    SCHEDULE("walk-apart"), .chunk = 64, .points = back_apart_points,
    .rows = {VALUE_ROWS(4),
             {ROW("dQ", (DQ, DKR, QD, ZD, SR, SF)), KEY_WALK},
             END_ROW,
             {ROW("dK", (DKW, DS0, KX, KD, SK)), KEY_WALK},
             {ROW("dKsum", (DK)), HEADS(TG_LKV)},
             WALKED_GATE_ROWS},
};
#define BACK_NARROW SPLIT " dQ.warps=4 dQ.stages=0 dQ.dqk=64 dK.warps=4 dK.stages=0 dK.dqk=64"
static const tg_point back_grouped_points[] = {
    {.name = "walk-grouped"},
    {.name = "relay-grouped", .changes = BACK_RELAY},
    {.name = "relay-grouped-kept", .changes = BACK_RELAY, KEPT},
    {.name = "walk-split", .changes = SPLIT},
    {.name = "walk-narrow", .changes = BACK_NARROW},
    {.name = "walk-grouped-cluster", .changes = CLUSTERED},
    {.name = "walk-shared", .changes = CLUSTERED SHARED_N SHARED_DV},
    {.name = "walk-grouped-kept", KEPT},
    {.name = "walk-grouped-cluster-kept", .changes = CLUSTERED, KEPT},
    {.name = "walk-shared-kept", .changes = CLUSTERED SHARED_DV, KEPT},
    {.name = "walk-split-kept", .changes = SPLIT, KEPT},
    {.name = "walk-narrow-kept", .changes = BACK_NARROW, KEPT},
    {.name = NULL},
};
#define GROUPED_KEY_ROWS                                                                                               \
    {ROW("dQ", (DQH, DKR, QD, ZD, SR, SF)), KEY_WALK},                                                                 \
    {ROW("dQsum", (DQ)), HEADS(TG_LQ)},                                                                                \
    END_ROW,                                                                                                           \
    {ROW("dK", (DKW, DS0, KX, KD, SK)), .has = DKW, KEY_WALK},                                                         \
    {ROW("dKsum", (DK)), HEADS(TG_LKV)},                                                                               \
    WALKED_GATE_ROWS
/* The thread blocks of two heads that share queries and keys are a cluster, which adds up dQ and dK. */
#define PAIRED .row = {[TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0), [TG_MEMBER] = TG_CLUSTER(1)}
static const tg_schedule back_grouped = {
    SCHEDULE("walk-grouped"), .chunk = 64, .points = back_grouped_points,
    .rows = {VALUE_ROWS(4), GROUPED_KEY_ROWS},
};
static const tg_point back_paired_points[] = {
    {.name = "walk-paired"},
    {.name = "relay-paired", .changes = BACK_RELAY},
    {.name = "relay-paired-kept", .changes = BACK_RELAY, KEPT},
    {.name = "walk-paired-deep", .changes = FEWER},
    {.name = "walk-paired-split", .changes = SPLIT},
    {.name = "walk-paired-kept", KEPT},
    {.name = "walk-paired-split-kept", .changes = SPLIT, KEPT},
    {.name = NULL},
};
static const tg_schedule back_paired = {
    SCHEDULE("walk-paired"), .chunk = 64, .points = back_paired_points,
    .rows = {VALUE_ROWS(4),
             {ROW("dQ", (DQ, DKR, QD, ZD, SR, SF)), ON_WARPGROUPS(2), PAIRED},
             END_ROW,
             {ROW("dK", (DK, DS0, KX, KD, SK)), ON_WARPGROUPS(2), PAIRED},
             WALKED_GATE_ROWS},
};

/* Where dhv is too wide for one thread block the keys' walks have a part of it each, whose sums the rows behind them add up; dqk
 * beyond 128 is several thread blocks' as well, and leaves the walk of N fewer stages. */
#define PARTS     "dQ.dhv=P/128 dK.dhv=P/128 "
static const tg_point back_parted_points[] = {
    {.name = "walk-parts", .changes = PARTS},
    {.name = "walk-parts-split", .changes = PARTS SPLIT},
    {.name = "walk-parts-shared", .changes = PARTS SHARED_N SHARED_DV},
    {.name = "walk-parts-shared-kept", .changes = PARTS SHARED_DV, KEPT},
    {.name = "walk-parts-kept", .changes = PARTS, KEPT},
    {.name = "walk-parts-split-kept", .changes = PARTS SPLIT, KEPT},
    {.name = NULL},
};
static const tg_schedule back_parted = {
    SCHEDULE("walk-parts"), .chunk = 64, .points = back_parted_points,
    .rows = {VALUE_ROWS(3), GROUPED_KEY_ROWS},
};

/* With N and dR in memory states are sums of products, so the keys' walks may begin anywhere: with the states that the values' walks
 * leave on their way. For few heads and long sequences. */
#define CUT_KEYS    .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}
#define CUT_PAIRED                                                                                                     \
    .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0), [TG_MEMBER] = TG_CLUSTER(1)}
#define LEAVING .row = {[TG_SEG] = TG_W(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(128)}
#define LEAVING_VALUE_ROWS(stages_)                                                                                    \
    GATE_ROW,                                                                                                          \
    {ROW("T", (T_)), .only = TG_IF_NOT_KEPT, T_BLOCKS},                                                                \
    {ROW("N", (N, CK)), .only = TG_IF_NOT_KEPT, ON_WARPGROUPS(stages_), LEAVING},                                      \
    {ROW("dV", (DR, DV, RV, DC)), ON_WARPGROUPS(2), .makers = 4, LEAVING}
/* `ends` by segments: what the sums of all chunks say of <C, dC> is put right at the end of each (delta.inc). */
#define CUT_GATE_ROWS                                                                                                  \
    {ROW("sums", (PZ)), .warps = 4, .row = {[TG_CHUNK] = TG_W(128)}},                                                  \
    {ROW("ends", (YS)), .mma = TG_MMA_SYNC, .warps = 1, .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_P(1)}},             \
    GATE_GRADIENT_ROW
#define CUT_KEY_ROWS                                                                                                   \
    {ROW("dQ", (DQH, DKR, QD, ZD, SR, Y)), ON_WARPGROUPS(2), CUT_KEYS},                                                \
    {ROW("dQsum", (DQ)), HEADS(TG_LQ)},                                                                                \
    {ROW("dK", (DKW, DS0, KX, KD, SK)), .has = DKW, ON_WARPGROUPS(2), CUT_KEYS},                                       \
    {ROW("dKsum", (DK)), HEADS(TG_LKV)},                                                                               \
    CUT_GATE_ROWS
#define CUT_PAIRED_ROWS                                                                                                \
    {ROW("dQ", (DQ, DKR, QD, ZD, SR, Y)), ON_WARPGROUPS(2), CUT_PAIRED},                                               \
    {ROW("dK", (DK, DS0, KX, KD, SK)), ON_WARPGROUPS(2), CUT_PAIRED},                                                  \
    CUT_GATE_ROWS
static const tg_point back_cut_keys_points[] = {
    {.name = "segments", .changes = SPLIT " seg=16"},
    {.name = "segments-cluster", .changes = CLUSTERED SPLIT " seg=16"},
    {.name = "segments-kept", .changes = SPLIT " seg=32", KEPT_STARTS},
    {.name = "segments-cluster-kept", .changes = CLUSTERED SPLIT " seg=32", KEPT_STARTS},
    {.name = NULL},
};
static const tg_schedule back_cut_keys = {
    SCHEDULE("segments"), .chunk = 64, .points = back_cut_keys_points, .rows = {LEAVING_VALUE_ROWS(4), CUT_KEY_ROWS}};
static const tg_point back_cut_pairs_points[] = {
    {.name = "segments-paired", .changes = SPLIT " seg=16"},
    {.name = "segments-paired-kept", .changes = SPLIT " seg=32", KEPT_STARTS},
    {.name = NULL},
};
static const tg_schedule back_cut_pairs = {
    SCHEDULE("segments-paired"), .chunk = 64, .points = back_cut_pairs_points, .rows = {LEAVING_VALUE_ROWS(4), CUT_PAIRED_ROWS}};
static const tg_point back_cut_parts_points[] = {
    {.name = "segments-parts", .changes = PARTS SPLIT " seg=16"},
    {.name = "segments-parts-kept", .changes = PARTS SPLIT " seg=16", KEPT_STARTS},
    {.name = NULL},
};
static const tg_schedule back_cut_parts = {
    SCHEDULE("segments-parts"), .chunk = 64, .points = back_cut_parts_points, .rows = {LEAVING_VALUE_ROWS(3), CUT_KEY_ROWS}};

/* The walks of the values too, by transitions: for few heads. The keys' walks begin with the same states. */
static const tg_point back_cut_points[] = {
    {.name = "segments-all", .changes = "seg=32"},
    {.name = "segments-all-kept", .changes = "seg=32", KEPT_STATES},
    {.name = NULL},
};
#define CUT_VALUE_ROWS                                                                                                 \
    GATE_ROW,                                                                                                          \
    {ROW("T", (T_)), .only = TG_IF_NOT_KEPT, T_BLOCKS},                                                                \
    {ROW("nstate", (CK, TR)), .only = TG_IF_CUT | TG_IF_NOT_KEPT, CUT_STATES(3)},                                      \
    {ROW("ncompose", (CK)), .only = TG_IF_CUT | TG_IF_NOT_KEPT, COMPOSED_BY_VALUES},                                   \
    {ROW("N", (N)), .only = TG_IF_NOT_KEPT, ON_WARPGROUPS(4), CUT_VALUES},                                             \
    {ROW("vstate", (DC)), .has = TR, .only = TG_IF_CUT, ON_WARPGROUPS(2), CUT_VALUES},                                 \
    {ROW("vstate", (DC, DTR)), .lacks = TR, .only = TG_IF_CUT, ON_WARPGROUPS(2), CUT_VALUES},                                       \
    {ROW("vcompose", (DC)), .only = TG_IF_CUT, COMPOSED_BY_VALUES},                                                    \
    {ROW("dV", (DR, DV, RV)), .has = DV, ON_WARPGROUPS(2), .makers = 4, CUT_VALUES},                                   \
    {ROW("dV", (DS0)), .lacks = DV, ON_WARPGROUPS(2), CUT_VALUES}
static const tg_schedule back_cut = {
    SCHEDULE("segments-all"), .chunk = 64, .points = back_cut_points,
    .rows = {CUT_VALUE_ROWS, CUT_KEY_ROWS},
};
static const tg_point back_cut_paired_points[] = {
    {.name = "segments-all-paired", .changes = "seg=32"},
    {.name = "segments-all-paired-kept", .changes = "seg=32", KEPT_STATES},
    {.name = NULL},
};
static const tg_schedule back_cut_paired = {
    SCHEDULE("segments-all-paired"), .chunk = 64, .points = back_cut_paired_points,
    .rows = {CUT_VALUE_ROWS, CUT_PAIRED_ROWS},
};

#define LENGTHS {.field = TG_FIELD_SEGMENT, .values = {4, 8, 16, 32, 64, 128}, .line = __LINE__}
static const tg_vary keys_vary[] = {LENGTHS}, all_vary[] = {LENGTHS, VARY_COMPOSED("ncompose"), VARY_COMPOSED("vcompose")};
#define CUTS(name_, schedule_, vary_)                                                                                  \
    {TG_HEADER(tg_space), .name = name_, .file = __FILE__, .schedule = &schedule_, .vary = vary_, .n_vary = TG_COUNT(vary_)}
static const tg_space back_walk_space = CUTS("relay", back_walk, keys_vary),
                      back_grouped_space = CUTS("relay-grouped", back_grouped, keys_vary),
                      back_paired_space = CUTS("relay-paired", back_paired, keys_vary),
                      back_cut_keys_space = CUTS("segments", back_cut_keys, keys_vary),
                      back_cut_space = CUTS("segments-all", back_cut, all_vary),
                      back_cut_paired_space = CUTS("segments-all-paired", back_cut_paired, all_vary),
                      back_cut_pairs_space = CUTS("segments-paired", back_cut_pairs, keys_vary),
                      back_cut_parts_space = CUTS("segments-parts", back_cut_parts, keys_vary);
const tg_space *const tg_delta_backward_spaces[] = {
    &back_cut_paired_space, &back_cut_pairs_space, &back_cut_keys_space, &back_cut_parts_space, &back_cut_space,
    &back_paired_space, &back_grouped_space, &back_walk_space, NULL};

const tg_schedule *const tg_delta_forward[] = {&step, &walk, &portable, NULL};
const tg_schedule *const tg_delta_walked[] = {&back_walk, &back_apart, NULL};
const tg_schedule *const tg_delta_cut[] = {&back_cut_paired, &back_cut, NULL};
const tg_schedule *const tg_delta_grouped[] = {&back_grouped, &back_paired, NULL};
const tg_schedule *const tg_delta_cut_keys[] = {&back_cut_keys, &back_cut_pairs, NULL};
const tg_schedule *const tg_delta_parted[] = {&back_parted, NULL};
const tg_schedule *const tg_delta_cut_parts[] = {&back_cut_parts, NULL};
const tg_schedule *const tg_delta_backward[] = {&back_portable, NULL};

const tg_alias tg_delta_names[] = {{"portable-fp32-wide", "portable-fp32"}, {NULL, NULL}};
