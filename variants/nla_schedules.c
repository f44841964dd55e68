/* variants/nla_schedules.c - the schedules of normalised linear attention: a table a structure. Where every token reads all
 * there are no products inside of a chunk, and the states after the last token are all there are of states. */
#include "variants/nla.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define SCHEDULE(name_)      TG_HEADER(tg_schedule), .name = name_, .file = __FILE__

/* ---- threads: a token, a chunk, an element of a vector each ---- */

#define POSITIONS .warps = 4, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(128)}
/* Sums of rows by warps that have rows: a thread would read one a line apart from its neighbour's. */
#define DOTS(position, dim) .mma = TG_MMA_SYNC, .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [position] = TG_P(64), [dim] = TG_L(64)}
#define SUM_OF_ROWS         {ROW("norms", (RQ, RK)), DOTS(TG_LKV, TG_DQK)}
#define NORM_ROW            SUM_OF_ROWS, {ROW("ones", (ONE, LEN)), POSITIONS}
#define TILE_NORM_ROW                                                                                                  \
    SUM_OF_ROWS, {ROW("ones", (ONE, LEN)), .warps = 2, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}}
#define COUNT_ROW {ROW("count", (SEEN, CNT)), .warps = 4, .row = {[TG_CHUNK] = TG_W(128)}}
/* What the chunks add to a vector, and the vector along the chunks. */
#define SUM_ROW(name_, out, position, dim)                                                                             \
    {ROW(name_, (out)), .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [position] = TG_L(1), [dim] = TG_P(128)}}
#define VECTOR_ROW(name_, out, dim) {ROW(name_, (out)), .warps = 4, .row = {[TG_CHUNK] = TG_W(1), [dim] = TG_P(128)}}

/* ---- products by mma.sync ---- */

#define STATE_ROW(name_, out, position)                                                                                \
    {ROW(name_, (out)), .mma = TG_MMA_SYNC, .warps = 4, .stages = 3,                                                   \
     .row = {[TG_CHUNK] = TG_W(1), [position] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}}
#define PRODUCTS .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1

#define FP32_STATE  "norms.mma=tf32x3 state.mma=tf32x3 state.Lkv=32 state.dhv=64 state.stages=2 "
#define SMALL_STATE "state.Lkv=32 state.dhv=64 state.stages=2 "
/* tfla: for GPUs with 160 KB of shared memory and more (A100, H100, H200, B200); tfla-small: for 99 KB (RTX 30xx, 40xx, 50xx);
 * tfla-keep: the states of the chunks stay in the caller's memory, for the backward's tfla-kept. */
static const tg_point two_level_points[] = {
    {.name = "tfla-keep", .kept = {CK, NS, VS}, .has = NS},
    {.name = "tfla"},
    {.name = "tfla-small", .changes = SMALL_STATE "H.dhv=64", .fixed = TG_FIXED_CUT},
    {.name = "tfla-fp32", .changes = FP32_STATE "H.mma=tf32x3 H.dqk=16 H.dhv=32", .fixed = TG_FIXED_CUT},
    {.name = NULL},
};
static const tg_schedule two_level = {
    SCHEDULE("two-level"), .chunk = 128, .points = two_level_points,
    .rows = {NORM_ROW, COUNT_ROW,
             SUM_ROW("nsum", NK, TG_LKV, TG_DQK), VECTOR_ROW("nstate", NS, TG_DQK),
             SUM_ROW("vsum", VK, TG_LKV, TG_DHV), VECTOR_ROW("vstate", VS, TG_DHV),
             STATE_ROW("state", CK, TG_LKV),
             {ROW("H", (H, DEN)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(64), [TG_DHV] = TG_P(128)}}},
};
static const tg_schedule full = {
    SCHEDULE("two-level"), .chunk = 128, .points = two_level_points + 1, /* no states of chunks to be kept */
    .rows = {NORM_ROW, COUNT_ROW,
             SUM_ROW("nsum", NK, TG_LKV, TG_DQK), VECTOR_ROW("nstate", N, TG_DQK),
             SUM_ROW("vsum", VK, TG_LKV, TG_DHV), VECTOR_ROW("vstate", SV, TG_DHV),
             STATE_ROW("state", C, TG_LKV),
             {ROW("H", (H, DEN)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_DQK] = TG_L(64), [TG_DHV] = TG_P(128)}}},
};

/* tfla-grouped: heads that share q. One thread block does all of a group and keeps the sum. */
#define GROUPED " dQ.member=L dQ.dqk=32"
#define SMALL   SMALL_STATE "dstate.Lhq=32 dstate.dhv=64 dstate.stages=2 dK.Lhq=32 dK.dqk=64 dV.dqk=64 dV.dhv=64"
#define FP32                                                                                                           \
    FP32_STATE "delta.mma=tf32x3 dstate.mma=tf32x3 dstate.Lhq=32 dstate.dhv=64 dstate.stages=2 dQ.mma=tf32x3 dQ.dqk=32 dQ.dhv=16 " \
               "dK.mma=tf32x3 dK.dqk=32 dK.dhv=32 dV.mma=tf32x3 dV.Lhq=16 dV.dqk=32 dV.dhv=32"
static const tg_point back_points[] = {
    {.name = "tfla"},
    {.name = "tfla-small", .changes = SMALL, .fixed = TG_FIXED_CUT},
    {.name = "tfla-fp32", .changes = FP32, .fixed = TG_FIXED_CUT},
    {.name = "tfla-grouped", .changes = GROUPED, .fixed = TG_FIXED_CUT},
    {.name = "tfla-small-grouped", .changes = SMALL GROUPED, .fixed = TG_FIXED_CUT},
    {.name = "tfla-fp32-grouped", .changes = FP32 GROUPED, .fixed = TG_FIXED_CUT},
    {.name = "tfla-kept", .kept = {CK, NS, VS}},
    {.name = "tfla-kept-grouped", .changes = GROUPED, .kept = {CK, NS, VS}},
    {.name = NULL},
};
#define OD_ROW {ROW("delta", (OD)), DOTS(TG_LQ, TG_DHV)}
#define WEIGHT_ROW {ROW("weights", (READS, RI, QW, ZW)), POSITIONS}
#define EXACT_ROW {ROW("exact", (ODX, NW, SUM_A, SUM_B)), POSITIONS}
/* What k's norm takes off, and the sum over the heads of a group. */
#define DK_NORM_ROW                                                                                                    \
    {ROW("dKnorm", (DK)), .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(128), [TG_MEMBER] = TG_L(1)}}
#define PARAMETER_ROW {ROW("params", (DA, DB)), .warps = 4, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_W(128)}}
static const tg_schedule back_two_level = {
    SCHEDULE("two-level"), .chunk = 128, .points = back_points,
    .rows = {NORM_ROW, COUNT_ROW, OD_ROW, WEIGHT_ROW,
             {ROW("nsum", (NK)), .only = TG_IF_NOT_KEPT, .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(128)}},
             {ROW("nstate", (NS)), .only = TG_IF_NOT_KEPT, .warps = 4, .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(128)}},
             {ROW("vsum", (VK)), .only = TG_IF_NOT_KEPT, .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_P(128)}},
             {ROW("vstate", (VS)), .only = TG_IF_NOT_KEPT, .warps = 4, .row = {[TG_CHUNK] = TG_W(1), [TG_DHV] = TG_P(128)}},
             {ROW("state", (CK)), .only = TG_IF_NOT_KEPT, .mma = TG_MMA_SYNC, .warps = 4, .stages = 3,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}},
             STATE_ROW("dstate", DCK, TG_LQ),
             {ROW("dQ", (DQ, XA, XI, QN, XE, QE)), PRODUCTS,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(16), [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(64)}},
             EXACT_ROW,
             SUM_ROW("dnsum", DNK, TG_LQ, TG_DQK), VECTOR_ROW("dnstate", DNS, TG_DQK),
             SUM_ROW("dvsum", DVK, TG_LQ, TG_DHV), VECTOR_ROW("dvstate", DVSS, TG_DHV),
             {ROW("dK", (DKS, KD)), PRODUCTS,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(16), [TG_LKV] = TG_P(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(64)}},
             {ROW("dV", (DV)), PRODUCTS,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(32), [TG_LKV] = TG_P(64), [TG_DQK] = TG_L(128), [TG_DHV] = TG_P(128)}},
             DK_NORM_ROW, PARAMETER_ROW},
};

#define FULL_SMALL "dstate.Lhq=32 dstate.dhv=64 dstate.stages=2 dQ.dqk=32 dK.dqk=64 dV.dqk=64 dV.dhv=64"
#define FULL_FP32                                                                                                      \
    "norms.mma=tf32x3 delta.mma=tf32x3 dstate.mma=tf32x3 dstate.Lhq=32 dstate.dhv=64 dstate.stages=2 dQ.mma=tf32x3 dQ.dqk=32 dQ.dhv=16 " \
    "dK.mma=tf32x3 dK.dqk=32 dK.dhv=32 dV.mma=tf32x3 dV.dqk=32 dV.dhv=32"
static const tg_point back_full_points[] = {
    {.name = "tfla"},
    {.name = "tfla-small", .changes = FULL_SMALL, .fixed = TG_FIXED_CUT},
    {.name = "tfla-fp32", .changes = FULL_FP32, .fixed = TG_FIXED_CUT},
    {.name = "tfla-grouped", .changes = GROUPED, .fixed = TG_FIXED_CUT},
    {.name = "tfla-small-grouped", .changes = FULL_SMALL GROUPED, .fixed = TG_FIXED_CUT},
    {.name = "tfla-fp32-grouped", .changes = FULL_FP32 GROUPED, .fixed = TG_FIXED_CUT},
    {.name = NULL},
};
static const tg_schedule back_full = {
    SCHEDULE("two-level"), .chunk = 128, .points = back_full_points,
    .rows = {NORM_ROW, COUNT_ROW, OD_ROW, WEIGHT_ROW,
             STATE_ROW("dstate", DC0, TG_LQ),
             {ROW("dQ", (DQ, XA, XI, QN)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_DQK] = TG_P(32), [TG_DHV] = TG_L(64)}},
             EXACT_ROW,
             SUM_ROW("dnsum", DNK, TG_LQ, TG_DQK), VECTOR_ROW("dnstate", DN0, TG_DQK),
             SUM_ROW("dvsum", DVK, TG_LQ, TG_DHV), VECTOR_ROW("dvstate", DSV0, TG_DHV),
             {ROW("dK", (DKG, KD)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_P(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(64)}},
             {ROW("dV", (DV)), PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_P(64), [TG_DQK] = TG_L(128), [TG_DHV] = TG_P(128)}},
             DK_NORM_ROW, PARAMETER_ROW},
};

/* ---- decode ---- */

/* Tokens one after the other, and the state in registers from the first to the last: eight threads share out dqk for four
 * values, or sixteen. What blocks of dhv share, n and c, a kernel of its own writes: all of them read it. */
static const tg_point step_points[] = {
    {.name = "step8"},
    {.name = "step8-narrow", .changes = "step.dhv=16"},
    {.name = NULL},
};
static const tg_schedule step = {
    SCHEDULE("step"), .chunk = 1, .max_tokens = 8, .points = step_points,
    .rows = {{ROW("step", (H, C, SV, DEN, RK)), .warps = 2,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(32)}},
             {ROW("nstep", (N, CNT)), .warps = 16, .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(512)}}},
};

/* ---- the walk: the state never leaves the chip (sm_90a) ---- */

#define WALK                   [TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_LKV] = TG_L(64), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)
#define ON_WARPGROUPS(stages_) .mma = TG_MMA_WGMMA, .warps = 8, .stages = stages_, .blocks_per_sm = 1

/* n and what it adds up come from rows before it. */
static const tg_point walk_points[] = {
    {.name = "walk"},
    {.name = "walk-wide", .changes = "walk.dhv=128 walk.stages=2"},
    {.name = "walk-narrow", .changes = "walk.warps=4 walk.dhv=64 walk.stages=2"},
    {.name = "walk-shared", .changes = "walk.dhv=64 walk.stages=1"}, /* dqk beyond 256: both groups share the columns of the state */
    {.name = NULL},
};
static const tg_schedule walk = {
    SCHEDULE("walk"), .chunk = 64, .points = walk_points,
    .rows = {TILE_NORM_ROW, COUNT_ROW, SUM_ROW("nsum", NK, TG_LKV, TG_DQK), VECTOR_ROW("nstate", NS, TG_DQK),
             {ROW("walk", (H, C, SV, DEN)), ON_WARPGROUPS(3), .row = {WALK}}},
};

/* It carries them too, every block of dhv its own. Where sequences are too few to fill the GPU they are cut into segments of
 * so many chunks, whose states a row makes from k and v, which it reads once more, and another composes. */
static const tg_point walk_n_points[] = {
    {.name = "walk-n"},
    {.name = "walk-n-wide", .changes = "walk.dhv=128"},
    {.name = "segments-n", .changes = "seg=128"},
    {.name = NULL},
};
static const tg_schedule walk_n = {
    SCHEDULE("walk-n"), .chunk = 64, .points = walk_n_points,
    .rows = {TILE_NORM_ROW, COUNT_ROW,
             {ROW("state", (CK, NS, VS)), .only = TG_IF_CUT, ON_WARPGROUPS(4),
              .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             {ROW("compose", (CK, NS, VS)), .only = TG_IF_CUT, .warps = 2, .row = {[TG_SEG] = TG_W(0), [TG_DQK] = TG_P(1), [TG_DHV] = TG_P(256)}},
             {ROW("walk", (H, C, SV, DEN, N)), ON_WARPGROUPS(2), .row = {[TG_SEG] = TG_P(0), WALK}}},
};

/* The gradients in three walks, each of which makes its states again. What is carried beside them goes along, but for the sums that dQ
 * reads where dhv is large (`walk`): rows before it make those. Where sequences are too few they are cut, as in walk_n. */
#define KEY_WALK   .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}
#define VALUE_WALK .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_LKV] = TG_L(64), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}
#define TILE_POSITIONS .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}
#define BACK_NORM_ROWS TILE_NORM_ROW, COUNT_ROW, OD_ROW, {ROW("weights", (READS, RI, QW, ZW)), TILE_POSITIONS}
#define CUT_STATES(state_, compose_, outputs_, position_)                                                              \
    {ROW(state_, outputs_), .only = TG_IF_CUT, ON_WARPGROUPS(3),                                                       \
     .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [position_] = TG_L(64), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(128)}},\
    {ROW(compose_, outputs_), .only = TG_IF_CUT, .warps = 2, .row = {[TG_SEG] = TG_W(0), [TG_DQK] = TG_P(1), [TG_DHV] = TG_P(256)}}
#define SUMS_OF_POSITIONS XA, XI, QN, XE, QE
#define QUERY_WALK        {ROW("dQ", (DQ, SUMS_OF_POSITIONS)), ON_WARPGROUPS(2), KEY_WALK}
#define GROUP_WALK        {ROW("dQ", (DQH, SUMS_OF_POSITIONS)), ON_WARPGROUPS(2), KEY_WALK}, GROUP_SUM_ROW /* heads share q and k */
#define GROUP_SUM_ROW                                                                                                  \
    {ROW("dQsum", (DQ)), .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(1), [TG_DQK] = TG_P(128), [TG_MEMBER] = TG_L(1)}}
#define WALKS_BEHIND                                                                                                   \
    {ROW("exact", (ODX, NW, SUM_A, SUM_B)), TILE_POSITIONS},                                                           \
    CUT_STATES("dstate", "dcompose", (DCK, DNS, DVSS), TG_LQ),                                                         \
    {ROW("dK", (DKS, KD)), ON_WARPGROUPS(2), KEY_WALK},                                                                \
    {ROW("dV", (DV, DC0)), ON_WARPGROUPS(2), VALUE_WALK},                                                              \
    DK_NORM_ROW, PARAMETER_ROW
#define STATES_OF_SEGMENTS CUT_STATES("state", "compose", (CK, NS, VS), TG_LKV)
#define SUMS_BEFORE                                                                                                    \
    SUM_ROW("nsum", NK, TG_LKV, TG_DQK), VECTOR_ROW("nstate", NS, TG_DQK),                                             \
    SUM_ROW("vsum", VK, TG_LKV, TG_DHV), VECTOR_ROW("vstate", VS, TG_DHV)
#define DEEP  "dV.dhv=128"
#define PARTS "dQ.dhv=P/256 dK.dhv=P/256 " DEEP /* of dhv a thread block has a part; the rows behind add up its sums */
static const tg_point back_walk_n_points[] = {
    {.name = "walk-n"},
    {.name = "walk-n-deep", .changes = DEEP},
    {.name = "segments-n", .changes = DEEP " seg=16"},
    {.name = NULL},
};
static const tg_schedule back_walk_n = {
    SCHEDULE("walk-n"), .chunk = 64, .points = back_walk_n_points,
    .rows = {BACK_NORM_ROWS, STATES_OF_SEGMENTS, QUERY_WALK, WALKS_BEHIND},
};
static const tg_point back_walk_points[] = {
    {.name = "walk"},
    {.name = "walk-deep", .changes = DEEP},
    {.name = NULL},
};
static const tg_schedule back_walk = {
    SCHEDULE("walk"), .chunk = 64, .points = back_walk_points,
    .rows = {BACK_NORM_ROWS, SUMS_BEFORE, QUERY_WALK, WALKS_BEHIND},
};
static const tg_point back_group_n_points[] = {
    {.name = "walk-n-grouped"},
    {.name = "walk-n-deep-grouped", .changes = DEEP},
    {.name = "segments-n-grouped", .changes = DEEP " seg=16"},
    {.name = NULL},
};
static const tg_schedule back_group_n = {
    SCHEDULE("walk-n-grouped"), .chunk = 64, .points = back_group_n_points,
    .rows = {BACK_NORM_ROWS, STATES_OF_SEGMENTS, GROUP_WALK, WALKS_BEHIND},
};
static const tg_point back_group_points[] = {
    {.name = "walk-grouped"},
    {.name = "walk-deep-grouped", .changes = DEEP},
    {.name = "walk-parts", .changes = PARTS},
    {.name = "walk-parts-shared", .changes = PARTS " dV.dhv=64 dV.stages=1"},
    {.name = NULL},
};
static const tg_schedule back_group = {
    SCHEDULE("walk-grouped"), .chunk = 64, .points = back_group_points,
    .rows = {BACK_NORM_ROWS, SUMS_BEFORE, GROUP_WALK, WALKS_BEHIND},
};

/* ---- all of them ---- */

static const tg_vary chunk_vary[] = {{.field = TG_FIELD_CHUNK, .values = {64, 128, 192, 256, 384, 512, 1024}, .line = __LINE__}};
static const tg_vary segment_vary[] = {{.field = TG_FIELD_SEGMENT, .values = {8, 16, 32, 64, 128, 256, 512}, .line = __LINE__}};
#define SPACE(symbol, schedule_, vary_)                                                                                \
    static const tg_space symbol = {TG_HEADER(tg_space), .name = #schedule_, .file = __FILE__, .schedule = &schedule_, .vary = vary_, .n_vary = TG_COUNT(vary_)}
SPACE(two_level_space, two_level, chunk_vary);
SPACE(full_space, full, chunk_vary);
SPACE(back_space, back_two_level, chunk_vary);
SPACE(back_full_space, back_full, chunk_vary);
SPACE(walk_n_space, walk_n, segment_vary);
SPACE(back_walk_n_space, back_walk_n, segment_vary);
SPACE(back_group_n_space, back_group_n, segment_vary);

const tg_schedule *const tg_nla_forward[] = {&step, &walk_n, &walk, &two_level, NULL};
const tg_schedule *const tg_nla_backward[] = {&back_walk_n, &back_walk, &back_group_n, &back_group, &back_two_level, NULL};
const tg_schedule *const tg_nla_full_forward[] = {&full, NULL};
const tg_schedule *const tg_nla_full_backward[] = {&back_full, NULL};
const tg_space *const tg_nla_forward_spaces[] = {&two_level_space, &walk_n_space, NULL};
const tg_space *const tg_nla_backward_spaces[] = {&back_space, &back_walk_n_space, &back_group_n_space, NULL};
const tg_space *const tg_nla_full_forward_spaces[] = {&full_space, NULL};
const tg_space *const tg_nla_full_backward_spaces[] = {&back_full_space, NULL};
