/* variants/scalar_schedules.c - the schedules of the scalar-gate family: a table a structure, for all its variants.
 *
 * A table lists all tiles that some variant has; rows that differ with a normaliser (N0, HD), or a max state (M0), are
 * there twice. Its points are the blocks that suit some widths, types and GPUs: data that differ in their numbers. Which
 * GPU they are for is said at each. */
#include "variants/scalar.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define SCHEDULE(name_)      TG_HEADER(tg_schedule), .name = name_, .file = __FILE__

/* ---- rows that several tables have ---- */

/* Gates, one thread two tokens side by side, which share addresses and the steps of scans; what has no scan, one token (its
 * loads and stores are dense then); max states, one thread a chunk. */
#define ROW_OF_POSITIONS(warps_, tokens, chunks)                                                                       \
    .warps = warps_, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(chunks), [TG_LKV] = TG_W(tokens)}
#define POSITIONS(tokens) ROW_OF_POSITIONS((tokens) / 64, tokens, 1)
#define GATES(tokens)     ROW_OF_POSITIONS((tokens) / 64, tokens, (tokens) == 64 ? 4 : 1)
#define NO_SCAN(tokens)   ROW_OF_POSITIONS((tokens) / 32, tokens, 1)
#define MAXIMA_ROW                                                                                                     \
    {ROW("maxima", (MARR, M)), .warps = 4, .row = {[TG_CHUNK] = TG_W(128)}}
#define GATE_ROWS(tokens)                                                                                              \
    {ROW("gates", (B, CJ, WI, W, GT)), .lacks = M0, GATES(tokens)},                                                \
    {ROW("gates", (B, CJ, GT, MI, MT)), .has = M0, GATES(tokens)},                                                 \
    MAXIMA_ROW,                                                                                                        \
    {ROW("weights", (R, WI, W, G, FLOOR)), .has = M0, NO_SCAN(tokens)}

/* The normaliser's state: sums of chunks, then along the chunks. */
#define CHUNK_SUM_ROW(name_, out, position)                                                                            \
    {ROW(name_, (out)), .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [position] = TG_L(1), [TG_DQK] = TG_P(128)}}
#define VECTOR_ROW(name_, out)                                                                                         \
    {ROW(name_, (out)), .warps = 4, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(128)}}
#define NORMALISER_ROWS CHUNK_SUM_ROW("nsum", NK, TG_LKV), VECTOR_ROW("nstate", NS)

/* Axes of a walk on warpgroups. */
#define WALK [TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_LKV] = TG_L(64)
#define ON_WARPGROUPS(warps_, stages_) .mma = TG_MMA_WGMMA, .warps = warps_, .stages = stages_, .blocks_per_sm = 1
#define AS_FIT                         0 /* stages: 3, or 2 where 3 are too many (compiler/walk_place.c) */
/* States that segments begin with, all of them by one walk. */
#define START_ROW                                                                                                      \
    {ROW("state", (CK)), ON_WARPGROUPS(4, 4),                                                                          \
     .row = {[TG_SEG] = TG_W(4), [TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_P(64)}}
/* Of what segments make of zero, the states with which they begin: a thread has four columns of a row. */
#define COMPOSED .warps = 2, .row = {[TG_SEG] = TG_W(0), [TG_DQK] = TG_P(1), [TG_DHV] = TG_P(256)}

/* ---- forward: decode ---- */

/* Tokens one after the other, a chunk each, and the state in registers from the first to the last: threads share out dqk for
 * four values each, four threads of 128 rows without a normaliser, which takes registers, else eight. `wide` for dqk up to 256,
 * `wider` beyond. n and m are written by a kernel of their own, for all blocks of dhv read them; one thread block writes them,
 * so that they may be changed in place.
 *
 * Several tokens with a normaliser: a token is a position of a chunk, all of them held in registers; every thread has two value
 * columns and walks down its state, which it reads and writes once; what is alike for all columns the threads share out first
 * (compiler/share.c). 3 blocks of 168 registers, which the max state needs to be told; without it they take less by themselves. */
#define COLUMNS "step.chunk=8 step.dqk=1 nstep.chunk=8 nstep.warps=4 "
static const tg_point step_points[] = {
    {.name = "step", .max_tokens = 1, .lacks = N0},
    {.name = "step-wide", .changes = "step.warps=4", .max_tokens = 1, .lacks = N0},
    {.name = "step-wider", .changes = "step.dhv=32 step.warps=4", .max_tokens = 1, .lacks = N0},
    {.name = "step", .changes = "step.warps=4", .max_tokens = 1, .has = N0},
    {.name = "step-wide", .changes = "step.dhv=32 step.warps=4", .max_tokens = 1, .has = N0},
    {.name = "step-wider", .changes = "step.dhv=16 step.warps=4", .max_tokens = 1, .has = N0},
    {.name = "step8", .changes = "step.warps=4", .lacks = N0},
    {.name = "step8-narrow", .changes = "step.dhv=32 step.warps=4", .lacks = N0},
    {.name = "step8", .changes = COLUMNS "step.dhv=256 step.warps=4 step.blocks_per_sm=2", .has = N0, .lacks = M0},
    {.name = "step8", .changes = COLUMNS "step.dhv=256 step.warps=4 step.blocks_per_sm=3", .has = M0},
    {.name = "step8-narrow", .changes = COLUMNS "step.dhv=128 step.blocks_per_sm=2", .has = N0, .lacks = M0},
    {.name = "step8-narrow", .changes = COLUMNS "step.dhv=128 step.blocks_per_sm=3", .has = M0},
    {.name = NULL},
};
static const tg_schedule step = {
    SCHEDULE("step"), .chunk = 1, .max_tokens = 8, .points = step_points,
    .rows = {{ROW("step", (H, S, QN)), .warps = 2,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64)}},
             {ROW("nstep", (N, M)), .warps = 16, .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(512)}}},
};

/* ---- forward: two levels ---- */

/* The two-level schedule of the TFLA paper: states of every chunk in memory, H by Table 1's P L L P. For GPUs with
 * 160 KB of shared memory and more (A100, H100, H200, B200). blocks_per_sm = 1 lets ptxas have all 255 registers:
 * left alone it may spill to fit a third block. q.n and sums of rows beside the accumulators leave no room for 128 queries
 * or long rows of q.
 *
 *   tfla-wide    for dqk beyond 128, where a second loop over dqk needs registers of its own
 *   tfla-small   for 99 KB of shared memory (RTX 30xx, 40xx, 50xx)
 *   tfla-fp32    for fp32 inputs: operands split in two take twice the registers, and twice the shared memory
 *   tfla-keep    the states of the chunks stay in the caller's memory, for the backward's tfla-kept */
#define FP32_STATE "state.mma=tf32x3 state.Lkv=32 state.dhv=64 state.stages=2 state.blocks_per_sm=1 "
static const tg_point two_level_points[] = {
    {.name = "tfla", .changes = "chunk=256", .lacks = N0},
    {.name = "tfla", .has = N0},
    {.name = "tfla-wide", .changes = "H.Lhq=64", .lacks = N0},
    {.name = "tfla-wide", .changes = "H.dqk=64", .has = N0},
    {.name = "tfla-small", .changes = "state.Lkv=32 state.dhv=64 state.stages=2 H.Lhq=64 H.dqk=64 H.dhv=64"},
    {.name = "tfla-fp32", .changes = FP32_STATE "H.mma=tf32x3 H.Lhq=64 H.Lkv=16 H.dqk=32 H.dhv=32", .lacks = N0},
    {.name = "tfla-fp32", .changes = FP32_STATE "H.mma=tf32x3 H.Lhq=64 H.Lkv=32 H.dqk=16 H.dhv=32", .has = N0},
    {.name = "tfla-keep", .kept = {CK, NS}},
    {.name = NULL},
};
static const tg_schedule two_level = {
    SCHEDULE("two-level"), .chunk = 128, .points = two_level_points,
    .rows = {GATE_ROWS(128),
             {ROW("state", (CK)), .mma = TG_MMA_SYNC, .warps = 4, .stages = 3,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}},
             NORMALISER_ROWS,
             {ROW("H", (H)), .lacks = N0, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(128), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(128), [TG_DHV] = TG_P(128)}},
             {ROW("H", (H, QN)), .has = N0, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_L(128), [TG_DHV] = TG_P(128)}}},
};
static const tg_vary two_level_vary[] = {
    {.field = TG_FIELD_CHUNK, .values = {64, 128, 192, 256, 384, 512, 1024, 2048, 4096}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"state"}, .dim = TG_DQK, .values = {32, 64, 128}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"state"}, .dim = TG_DHV, .values = {32, 64, 128, 256}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"state"}, .dim = TG_LKV, .values = {32, 64}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .rows = {"state"}, .values = {2, 3, 4}, .line = __LINE__},
    {.field = TG_FIELD_BLOCKS_PER_SM, .rows = {"state"}, .values = {1, 2, 3}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"H"}, .dim = TG_LQ, .values = {64, 128}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"H"}, .dim = TG_LKV, .values = {16, 32, 64}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"H"}, .dim = TG_DHV, .values = {32, 64, 128, 256}, .line = __LINE__},
    {.field = TG_FIELD_WARPS, .rows = {"H"}, .values = {4, 8}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .rows = {"H"}, .values = {2, 3}, .line = __LINE__},
};

/* ---- forward: a walk ---- */

/* The state never leaves the chip (sm_90a). `walk` for dqk up to 128 and dhv in blocks of 256 or 128, `wide` for dqk up to
 * 256, `narrow` for any width. `heads`: several heads of a group in one thread block, which load q and k once.
 *
 * Where sequences are too few to fill the GPU they are cut into segments of so many chunks, whose states a row makes from k
 * and v, which it reads once more, and another composes: `segments`. 128 chunks are 8192 tokens. Short segments fill the GPU
 * with fewer heads, and each begins with the states of more others.
 *
 * `cast`: neighbouring blocks of dhv, a cluster, load q and k once, which the H200 is hardly faster for: by name, or where
 * tuning has found them fastest. `keep`: the states of segments stay in the caller's memory, for the backward's
 * segments-kept, made with blocks of dqk as that makes them. */
static const tg_point walk_points[] = {
    {.name = "walk", .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-wide", .changes = "walk.dhv=128 walk.stages=2", .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-wide-cast", .changes = "walk.dhv=M2/128 walk.stages=2", .by_name = TG_NAMED, .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-wide-cast4", .changes = "walk.dhv=M4/128 walk.stages=2", .by_name = TG_NAMED, .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-narrow", .changes = "walk.warps=4 walk.dhv=64"},
    {.name = "relay", .changes = "walk.seg=R/32", .fixed = TG_FIXED_BLOCKS},
    {.name = "relay-wide", .changes = "walk.dhv=128 walk.stages=2 walk.seg=R/32", .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-heads", .changes = "walk.dhv=64 walk.stages=2 walk.member=P/4", .lacks = N0},
    {.name = "segments", .changes = "seg=128", .fixed = TG_FIXED_BLOCKS},
    {.name = "segments-wide", .changes = "seg=128 state.dhv=128 walk.dhv=128 walk.stages=2", .fixed = TG_FIXED_BLOCKS},
    {.name = "segments-wide-cast", .changes = "seg=128 state.dhv=M2/128 walk.dhv=M2/128 walk.stages=2", .by_name = TG_NAMED, .fixed = TG_FIXED_CUT | TG_FIXED_BLOCKS},
    {.name = "segments-narrow", .changes = "seg=128 state.warps=4 state.stages=3 state.dhv=64 walk.warps=4 walk.dhv=64", .fixed = TG_FIXED_BLOCKS},
    {.name = "segments-keep", .changes = "seg=128 state.dqk=P/128 state.dhv=L/0", .kept = {CK, NS}},
    {.name = NULL},
};
static const tg_schedule walk = {
    SCHEDULE("walk"), .chunk = 64, .points = walk_points,
    .rows = {GATE_ROWS(64), NORMALISER_ROWS,
             {ROW("state", (CK)), .only = TG_IF_CUT, ON_WARPGROUPS(8, 4),
              .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             {ROW("compose", (CK)), .only = TG_IF_CUT, COMPOSED},
             {ROW("walk", (H, S, QN)), ON_WARPGROUPS(8, 3), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}}},
};

/* The normaliser's state in the walk, every block of dhv its own; where there are segments, in all their rows. */
static const tg_point walk_n_points[] = {
    {.name = "walk-n", .has = N0, .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-n-wide", .changes = "walk.dhv=128 walk.stages=2", .has = N0, .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-n-wide-cast", .changes = "walk.dhv=M2/128 walk.stages=2", .has = N0, .by_name = TG_NAMED, .fixed = TG_FIXED_BLOCKS},
    {.name = "segments-n", .changes = "seg=128", .has = N0, .fixed = TG_FIXED_BLOCKS},
    {.name = "segments-n-wide", .changes = "seg=128 state.dhv=128 walk.dhv=128 walk.stages=2", .has = N0, .fixed = TG_FIXED_BLOCKS},
    {.name = NULL},
};
static const tg_schedule walk_n = {
    SCHEDULE("walk-n"), .chunk = 64, .points = walk_n_points,
    .rows = {GATE_ROWS(64),
             {ROW("state", (CK, NS)), .only = TG_IF_CUT, ON_WARPGROUPS(8, 4),
              .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             {ROW("compose", (CK, NS)), .only = TG_IF_CUT, COMPOSED},
             {ROW("walk", (H, S, N, QN)), ON_WARPGROUPS(8, 3), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}}},
};
#define CUTS_AND_STAGES                                                                                                \
    {.field = TG_FIELD_SEGMENT, .values = {8, 16, 32, 64, 128, 256, 512}, .line = __LINE__},                           \
    {.field = TG_FIELD_STAGES, .rows = {"walk"}, .values = {2, 3}, .line = __LINE__}
static const tg_vary walk_n_vary[] = {CUTS_AND_STAGES};
static const tg_vary walk_vary[] = {
    CUTS_AND_STAGES,
    {.field = TG_FIELD_BLOCK, .rows = {"walk"}, .dim = TG_MEMBER, .values = {2, 4, 8}, .line = __LINE__},
};

/* For dqk beyond 256, of which the registers do not hold a state: by blocks of dqk too, each of which makes a part of the sum,
 * and a row adds the parts up. The products by n and the sums of rows of P, which are of dqk or have parts as well, go with it. */
static const tg_schedule parts = {
    SCHEDULE("walk-parts"), .chunk = 64,
    .rows = {GATE_ROWS(64), NORMALISER_ROWS,
             {ROW("walk", (SUM, S, QNI, RS)), ON_WARPGROUPS(4, 2), .row = {WALK, [TG_DQK] = TG_P(256), [TG_DHV] = TG_P(64)}},
             {ROW("H", (H, QN)), .warps = 4, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(1), [TG_DHV] = TG_P(128)}}},
};
static const tg_vary parts_vary[] = {
    {.field = TG_FIELD_BLOCK, .rows = {"walk"}, .dim = TG_DQK, .values = {64, 128, 192, 256}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"walk"}, .dim = TG_DHV, .values = {64, 128, 256}, .line = __LINE__},
    {.field = TG_FIELD_WARPS, .rows = {"walk"}, .values = {4, 8}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .rows = {"walk"}, .values = {2, 3}, .line = __LINE__},
};

/* As in the TFLA paper, whose chunk a segment then is: the state with which each begins, made from all before it in order; by
 * as few thread blocks as a state has blocks, so these are small. Where each begins with one state, that is the price of
 * more of them. */
static const tg_point starts_points[] = {
    {.name = "tfla-wgmma"},
    {.name = "tfla-wgmma-narrow", .changes = "state.dqk=64 walk.warps=4 walk.dhv=64"},
    {.name = "tfla-wgmma-wide", .changes = "state.dqk=64 state.dhv=128 walk.dhv=128 walk.stages=2"},
    {.name = NULL},
};
static const tg_schedule starts = {
    SCHEDULE("starts"), .chunk = 64, .points = starts_points,
    .rows = {GATE_ROWS(64), NORMALISER_ROWS,
             START_ROW,
             {ROW("walk", (H, S, QN)), ON_WARPGROUPS(8, 3), .row = {[TG_SEG] = TG_P(4), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}}},
};
static const tg_vary starts_vary[] = {
    {.field = TG_FIELD_SEGMENT, .values = {2, 4, 8, 16, 32}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"state"}, .dim = TG_DQK, .values = {64, 128}, .line = __LINE__},
    {.field = TG_FIELD_BLOCK, .rows = {"state"}, .dim = TG_DHV, .values = {64, 128, 256}, .line = __LINE__},
    {.field = TG_FIELD_STAGES, .rows = {"state"}, .values = {3, 4, 6}, .line = __LINE__},
};

/* ---- backward: two levels ---- */

/* A row of its own: in dnstate the product's sum would be between two chunks. */
#define PRODUCT_ROW                                                                                                    \
    {ROW("xn", (XN)), .warps = 4, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_DQK] = TG_P(128)}}
#define DNORMALISER_ROWS CHUNK_SUM_ROW("dnsum", DNK, TG_LQ), VECTOR_ROW("dnstate", DNS), PRODUCT_ROW
/* Where a chunk is more tokens than there are threads what is summed up to each of them is read anew. */
#define GATE_GRADIENTS DGATE, DGATE2, CHUNK_SUM, CHUNK_SUM2, CHUNK_SUM3
#define GATE_GRADIENT_ROW(tokens, outputs_)                                                                            \
    {ROW("dgates", outputs_), POSITIONS(tokens)}
#define PARAMETER_ROW                                                                                                  \
    {ROW("params", (DPARAMETER, DPARAMETER2, DPARAMETER3)), .warps = 4, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_W(128)}}

/* tfla-kept: states as tfla-keep left them. tfla-grouped: heads that share q and k. One thread block does all heads of a
 * group and keeps the sum, so that no gradient of a single head is ever in memory; half the width leaves registers for it.
 * tfla-small and tfla-fp32: as forward. */
#define GROUPED "dQ.Lkv=16 dQ.dqk=64 dQ.dhv=64 dQ.stages=3 dQ.member=L dK.Lhq=16 dK.dqk=64 dK.dhv=64 dK.stages=3 dK.member=L"
#define SMALL                                                                                                          \
    "state.Lkv=32 state.dhv=64 state.stages=2 dstate.Lhq=32 dstate.dhv=64 dstate.stages=2 "                            \
    "dQ.Lkv=32 dQ.dqk=64 dQ.dhv=64 dK.Lhq=32 dK.dqk=64 dK.dhv=64 dV.dqk=64 dV.dhv=64"
#define FP32                                                                                                           \
    FP32_STATE "dstate.mma=tf32x3 dstate.Lhq=32 dstate.dhv=64 dstate.stages=2 dstate.blocks_per_sm=1 delta.mma=tf32x3 " \
    "dQ.mma=tf32x3 dQ.Lkv=16 dQ.dqk=32 dQ.dhv=32 dK.mma=tf32x3 dK.Lhq=16 dK.dqk=32 dK.dhv=32 "                         \
    "dV.mma=tf32x3 dV.Lhq=16 dV.dqk=32 dV.dhv=32"
static const tg_point back_two_level_points[] = {
    {.name = "tfla"},
    {.name = "tfla-small", .changes = SMALL},
    {.name = "tfla-fp32", .changes = FP32}, /* a group of one */
    {.name = "tfla-grouped", .changes = GROUPED},
    {.name = "tfla-small-grouped", .changes = SMALL " dQ.member=L dQ.stages=3 dK.member=L dK.stages=3", .fixed = TG_FIXED_CUT},
    {.name = "tfla-fp32-grouped", .changes = FP32 " dQ.dhv=16 dQ.member=L dQ.stages=3 dK.dhv=16 dK.member=L dK.stages=3", .fixed = TG_FIXED_CUT},
    {.name = "tfla-kept", .kept = {CK, NS}},
    {.name = "tfla-kept-grouped", .changes = GROUPED, .kept = {CK, NS}},
    {.name = NULL},
};
static const tg_schedule back_two_level = {
    SCHEDULE("two-level"), .chunk = 128, .points = back_two_level_points,
    .rows = {GATE_ROWS(128),
             {ROW("delta", (HD)), .mma = TG_MMA_SYNC, .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_DHV] = TG_L(64)}},
             {ROW("normal", (RN, WIN, DELTA)), NO_SCAN(128)},
             {ROW("state", (CK)), .only = TG_IF_NOT_KEPT, .mma = TG_MMA_SYNC, .warps = 4, .stages = 3,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}},
             {ROW("nsum", (NK)), .only = TG_IF_NOT_KEPT, .warps = 4, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(128)}},
             {ROW("nstate", (NS)), .only = TG_IF_NOT_KEPT, .warps = 4, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(128)}},
             {ROW("dstate", (DC, X)), .mma = TG_MMA_SYNC, .warps = 4, .stages = 3,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(128)}},
             {ROW("dQ", (DQ, RE, RX)), .lacks = HD, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(32), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(128)}},
             {ROW("dQ", (DQ, RE, RX)), .has = HD, .mma = TG_MMA_SYNC, .warps = 4, .stages = 3, .blocks_per_sm = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(16), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(64)}},
             {ROW("exact", (DELTAX, REX, DNW)), NO_SCAN(128)},
             DNORMALISER_ROWS,
             {ROW("dK", (DK, CE, KX)), .lacks = HD, .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(32), [TG_LKV] = TG_P(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(128)}},
             {ROW("dK", (DK, CE, KX)), .has = HD, .mma = TG_MMA_SYNC, .warps = 4, .stages = 3, .blocks_per_sm = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(16), [TG_LKV] = TG_P(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(64)}},
             {ROW("dV", (DV, SKIPPED)), .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(32), [TG_LKV] = TG_P(64), [TG_DQK] = TG_L(128), [TG_DHV] = TG_P(128)}},
             GATE_GRADIENT_ROW(128, (GATE_GRADIENTS, PE)), PARAMETER_ROW},
};
static const tg_vary back_two_level_vary[] = {
    {.field = TG_FIELD_CHUNK, .values = {64, 128, 192, 256, 384, 512, 1024}, .line = __LINE__},
};

/* ---- backward: walks ---- */

/* dV, which has dh and k on chip, makes h.dh beside it, and of k what the normaliser's state is made of; it comes before dQ,
 * which needs both. What else the normaliser asks for is made with the gates. dQ and dK by blocks of dqk, with all of dhv
 * or a block of it; dV by blocks of dhv. dK comes last of the walks: its gradient of the initial state may lie where
 * that of the final one does. */
#define BACK_GATE_ROWS                                                                                                 \
    {ROW("gates", (B, CJ, WI, W, GT, RN, WIN)), .lacks = M0, GATES(64)},                                           \
    {ROW("gates", (B, CJ, GT, MI, MT)), .has = M0, GATES(64)},                                                     \
    MAXIMA_ROW,                                                                                                        \
    {ROW("weights", (R, WI, W, G, FLOOR, RN, WIN)), .has = M0, NO_SCAN(64)}
#define DELTA_ROW {ROW("delta", (DELTA)), NO_SCAN(64)}
#define EXACT_ROW {ROW("exact", (DELTAX, REX, DNW)), NO_SCAN(64)}
/* The final states' part of <C, dC>, and the sums from the last chunk on. */
#define END_ROW {ROW("ends", (Y)), .mma = TG_MMA_SYNC, .warps = 4, .row = {[TG_DQK] = TG_P(32), [TG_DHV] = TG_P(128)}}
#define WALKED_GATE_ROWS {ROW("sums", (PZ)), .warps = 4, .row = {[TG_CHUNK] = TG_W(128)}}, GATE_GRADIENT_ROW(64, (GATE_GRADIENTS)), PARAMETER_ROW

/* States of segments, of keys by values. */
#define DSTATE_ROWS                                                                                                    \
    {ROW("dstate", (DC)), .only = TG_IF_CUT, ON_WARPGROUPS(8, 4),                                                      \
     .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}}, \
    {ROW("dcompose", (DC)), .only = TG_IF_CUT, COMPOSED}
#define STATE_ROWS(only_)                                                                                              \
    {ROW("state", (CK)), .only = only_, ON_WARPGROUPS(8, 4),                                                           \
     .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), [TG_LKV] = TG_L(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}}, \
    {ROW("compose", (CK)), .only = only_, COMPOSED}

/* States of segments are made with dqk's blocks, as dQ and dK make them: what telescopes (SR, SK) has the same operands,
 * rounded alike. `cluster`: two blocks of dhv, which a cluster adds up; `paired`: two heads that share queries and keys, likewise.
 * segments-kept: states as segments-keep left them. */
#define CLUSTER "dV.dhv=128 dV.stages=2 dQ.dhv=C/256 dK.dhv=C/256"
#define CAST    "dV.dhv=M2/128 dV.stages=2 dQ.dhv=CM2/256 dK.dhv=CM2/256"
#define NARROW  "dV.warps=4 dV.stages=0 dV.dhv=64 dQ.warps=4 dQ.dqk=64 dK.warps=4 dK.dqk=64"
#define RELAY   "dV.seg=R/32 dQ.seg=R/32 dK.seg=R/32"
#define PAIRED  "dQ.member=C/1 dK.member=C/1"
static const tg_point back_walk_points[] = {
    {.name = "walk"},
    {.name = "walk-narrow", .changes = NARROW},
    {.name = "relay", .changes = RELAY},
    {.name = "relay-paired", .changes = RELAY " " PAIRED},
    {.name = "walk-cluster", .changes = CLUSTER},
    {.name = "walk-paired", .changes = PAIRED},
    {.name = "walk-cluster-cast", .changes = CAST, .by_name = TG_NAMED},
    {.name = "walk-cluster-cast4", .changes = CAST " dQ.dqk=M2/128 dK.dqk=M2/128", .by_name = TG_NAMED},
    {.name = "segments", .changes = "seg=128"},
    {.name = "segments-paired", .changes = "seg=128 " PAIRED},
    {.name = "segments-narrow", .changes = "seg=128 dstate.warps=4 dstate.stages=3 dstate.dqk=64 state.warps=4 state.stages=3 state.dqk=64 " NARROW},
    {.name = "segments-kept", .changes = "seg=128", .kept = {CK, NS}},
    {.name = NULL},
};
static const tg_schedule back_walk = {
    SCHEDULE("walk"), .chunk = 64, .points = back_walk_points,
    .rows = {BACK_GATE_ROWS,
             DSTATE_ROWS,
             {ROW("dV", (DV)), .lacks = HD, ON_WARPGROUPS(8, 3), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             {ROW("dV", (DV, HD, NK)), .has = HD, .only = TG_IF_NOT_KEPT, ON_WARPGROUPS(8, 2),
              .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             {ROW("dV", (DV, HD)), .has = HD, .only = TG_IF_KEPT, ON_WARPGROUPS(8, 2),
              .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             DELTA_ROW,
             {ROW("nstate", (NS)), .only = TG_IF_NOT_KEPT, .warps = 4, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_W(1), [TG_DQK] = TG_P(128)}},
             STATE_ROWS(TG_IF_CUT | TG_IF_NOT_KEPT),
             {ROW("dQ", (DQ, RE, RX, SR, SF)), ON_WARPGROUPS(8, AS_FIT), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},
             EXACT_ROW, DNORMALISER_ROWS, END_ROW,
             {ROW("dK", (DK, DS0, CE, KX, SKIPPED, SK)), ON_WARPGROUPS(8, AS_FIT), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},
             WALKED_GATE_ROWS},
};
static const tg_vary back_walk_vary[] = {
    {.field = TG_FIELD_SEGMENT, .values = {8, 16, 32, 64, 128, 256, 512}, .line = __LINE__},
};

/* dK and dV in one walk, where a thread block has all of dqk and dhv: both carry the same state and load the same matrices. With a
 * normaliser dV comes before dQ, and dK behind it. `narrow` for dqk up to 64. */
#define JOINT_NARROW "dQ.warps=4 dQ.dqk=64 dKV.warps=4"
#define JOINT_RELAY  "dQ.seg=R/32 dKV.seg=R/32"
static const tg_point back_joint_points[] = {
    {.name = "walk-joint", .lacks = HD},
    {.name = "walk-joint-narrow", .changes = JOINT_NARROW, .lacks = HD},
    {.name = "relay-joint", .changes = JOINT_RELAY, .lacks = HD},
    {.name = "segments-joint", .changes = "seg=128", .lacks = HD},
    {.name = "segments-joint-kept", .changes = "seg=128", .kept = {CK}, .lacks = HD},
    {.name = NULL},
};
static const tg_schedule back_joint = {
    SCHEDULE("walk-joint"), .chunk = 64, .points = back_joint_points,
    .rows = {BACK_GATE_ROWS,
             DSTATE_ROWS,
             STATE_ROWS(TG_IF_CUT | TG_IF_NOT_KEPT),
             {ROW("dQ", (DQ, RE, RX, SR, SF)), ON_WARPGROUPS(8, AS_FIT), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},
             END_ROW,
             {ROW("dKV", (DK, DV, DS0, CE, KX, SKIPPED, SK)), ON_WARPGROUPS(8, AS_FIT), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_L(0)}},
             WALKED_GATE_ROWS},
};
static const tg_vary back_joint_vary[] = {
    {.field = TG_FIELD_SEGMENT, .values = {8, 16, 32, 64, 128, 256, 512}, .line = __LINE__},
};

/* n in the walk of dQ and dn in that of dK, which write them for xn. */
static const tg_point back_walk_n_points[] = {{.name = "walk-n", .has = HD}, {.name = NULL}};
static const tg_schedule back_walk_n = {
    SCHEDULE("walk-n"), .chunk = 64, .points = back_walk_n_points,
    .rows = {BACK_GATE_ROWS,
             {ROW("dV", (DV, HD)), ON_WARPGROUPS(8, 2), .row = {WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             DELTA_ROW,
             {ROW("dQ", (DQ, NS, RE, RX, SR, SF)), ON_WARPGROUPS(8, AS_FIT), .row = {WALK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},
             EXACT_ROW, END_ROW,
             {ROW("dK", (DK, DS0, DNS, CE, KX, SKIPPED, SK)), ON_WARPGROUPS(8, AS_FIT), .row = {WALK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},
             PRODUCT_ROW, WALKED_GATE_ROWS},
};

/* Where dhv is wider than the registers hold of a state, or heads share q and k: dQ and dK by blocks of dhv and head by head,
 * in fp32, and summed up by a row of their own. `heads`, `pairs`: several heads of a group in one thread block, which loads q
 * and k once and sums up what they have of dQ and dK first, for memory in the input type. `deep` for dqk beyond 256: dV by blocks of dqk, too. */
#define HEADS_ROW(name_, out, position)                                                                                \
    {ROW(name_, (out)), .warps = 4, .blocks_per_sm = 1,                                                                \
     .row = {[TG_CHUNK] = TG_P(1), [position] = TG_L(1), [TG_DQK] = TG_P(128), [TG_MEMBER] = TG_L(1)}}
#define SUMMED_ROWS(warps_, dqk)                                                                                       \
    {ROW("dQ", (DQH, RE, RX, SR, SF)), ON_WARPGROUPS(warps_, 2), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_P(dqk), [TG_DHV] = TG_P(256)}}, \
    HEADS_ROW("dQsum", DQ, TG_LQ), EXACT_ROW, DNORMALISER_ROWS, END_ROW,                                               \
    {ROW("dK", (DKH, DS0, CE, KX, SKIPPED, SK)), ON_WARPGROUPS(warps_, 2), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_P(dqk), [TG_DHV] = TG_P(256)}}, \
    HEADS_ROW("dKsum", DK, TG_LKV), WALKED_GATE_ROWS
#define HEADS_IN(row, dhv, heads) row ".dhv=" #dhv " " row ".member=P/" #heads
#define HEADS(dhv, heads)                                                                                              \
    HEADS_IN("dV", dhv, heads) " " HEADS_IN("dQ", dhv, heads) " " HEADS_IN("dK", dhv, heads) " dQsum.warps=2 dKsum.warps=2"
static const tg_point back_parts_points[] = {
    {.name = "walk-parts", .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-parts-heads", .changes = HEADS(64, 4), .lacks = HD, .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-parts-pairs", .changes = HEADS(128, 2), .lacks = HD, .fixed = TG_FIXED_BLOCKS},
    {.name = "walk-parts-narrow", .changes = "dV.warps=4 dV.dhv=64 dQ.warps=4 dQ.dqk=64 dK.warps=4 dK.dqk=64"},
    {.name = "segments-parts", .changes = "seg=128"},
    {.name = NULL},
};
static const tg_schedule back_parts = {
    SCHEDULE("walk-parts"), .chunk = 64, .points = back_parts_points,
    .rows = {BACK_GATE_ROWS,
             DSTATE_ROWS,
             {ROW("dV", (DV, HD, NK)), ON_WARPGROUPS(8, 2), .row = {[TG_SEG] = TG_P(0), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(128)}},
             DELTA_ROW, VECTOR_ROW("nstate", NS),
             STATE_ROWS(TG_IF_CUT),
             SUMMED_ROWS(8, 128)},
};
static const tg_schedule back_deep = {
    SCHEDULE("walk-parts-deep"), .chunk = 64,
    .rows = {BACK_GATE_ROWS,
             {ROW("dV", (DVS, HD, NK)), ON_WARPGROUPS(4, 2), .row = {WALK, [TG_DQK] = TG_P(256), [TG_DHV] = TG_P(64)}},
             {ROW("dVsum", (DV)), .warps = 4, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_P(128)}},
             DELTA_ROW, VECTOR_ROW("nstate", NS), SUMMED_ROWS(4, 64)},
};
/* Blocks whose parts another row adds up, and what dQ and dK must round alike. */
#define BACK_PARTS_VARY                                                                                                \
    {.field = TG_FIELD_BLOCK, .rows = {"dQ", "dK"}, .dim = TG_DQK, .values = {64, 128, 192}, .line = __LINE__},        \
    {.field = TG_FIELD_BLOCK, .rows = {"dQ", "dK"}, .dim = TG_DHV, .values = {64, 128, 192, 256}, .line = __LINE__},   \
    {.field = TG_FIELD_WARPS, .rows = {"dQ", "dK"}, .values = {4, 8}, .line = __LINE__},                               \
    {.field = TG_FIELD_BLOCK, .rows = {"dV"}, .dim = TG_DHV, .values = {64, 128}, .line = __LINE__},                   \
    {.field = TG_FIELD_WARPS, .rows = {"dV"}, .values = {4, 8}, .line = __LINE__}
static const tg_vary back_parts_vary[] = {
    BACK_PARTS_VARY,
    {.field = TG_FIELD_SEGMENT, .values = {16, 32, 64, 128, 256, 512}, .line = __LINE__},
};
static const tg_vary back_deep_vary[] = {
    BACK_PARTS_VARY,
    {.field = TG_FIELD_BLOCK, .rows = {"dV"}, .dim = TG_DQK, .values = {64, 128, 192, 256}, .line = __LINE__},
};

#define DSTART_ROW                                                                                                     \
    {ROW("dstate", (DC)), ON_WARPGROUPS(4, 4),                                                                         \
     .row = {[TG_SEG] = TG_W(4), [TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(64), [TG_DQK] = TG_P(128), [TG_DHV] = TG_P(64)}}
/* As forward; states by blocks of dhv too, which keeps what dQ and dK carry to the end they round like them
 * (compiler/walk.c). */
static const tg_point back_starts_points[] = {
    {.name = "tfla-wgmma"},
    {.name = "tfla-wgmma-narrow", .changes = "dstate.dqk=64 state.dqk=64 " NARROW},
    {.name = NULL},
};
static const tg_schedule back_starts = {
    SCHEDULE("starts"), .chunk = 64, .points = back_starts_points,
    .rows = {BACK_GATE_ROWS,
             DSTART_ROW,
             {ROW("dV", (DV)), .lacks = HD, ON_WARPGROUPS(8, 3), .row = {[TG_SEG] = TG_P(4), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             {ROW("dV", (DV, HD, NK)), .has = HD, ON_WARPGROUPS(8, 2), .row = {[TG_SEG] = TG_P(4), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(256)}},
             DELTA_ROW, VECTOR_ROW("nstate", NS),
             START_ROW,
             {ROW("dQ", (DQ, RE, RX, SR, SF)), ON_WARPGROUPS(8, AS_FIT), .row = {[TG_SEG] = TG_P(4), WALK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},
             EXACT_ROW, DNORMALISER_ROWS, END_ROW,
             {ROW("dK", (DK, DS0, CE, KX, SKIPPED, SK)), ON_WARPGROUPS(8, AS_FIT), .row = {[TG_SEG] = TG_P(4), WALK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},
             WALKED_GATE_ROWS},
};
/* ... dK and dV in one. */
static const tg_point back_joint_starts_points[] = {{.name = "tfla-wgmma-joint", .lacks = HD}, {.name = NULL}};
static const tg_schedule back_joint_starts = {
    SCHEDULE("joint-starts"), .chunk = 64, .points = back_joint_starts_points,
    .rows = {BACK_GATE_ROWS,
             DSTART_ROW,
             START_ROW,
             {ROW("dQ", (DQ, RE, RX, SR, SF)), ON_WARPGROUPS(8, AS_FIT), .row = {[TG_SEG] = TG_P(4), WALK, [TG_DQK] = TG_P(128), [TG_DHV] = TG_L(0)}},
             END_ROW,
             {ROW("dKV", (DK, DV, DS0, CE, KX, SKIPPED, SK)), ON_WARPGROUPS(8, AS_FIT), .row = {[TG_SEG] = TG_P(4), WALK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_L(0)}},
             WALKED_GATE_ROWS},
};
static const tg_vary back_starts_vary[] = {
    {.field = TG_FIELD_SEGMENT, .values = {2, 4, 8, 16, 32}, .line = __LINE__},
};

/* ---- all of them ---- */

#define SPACE(symbol, schedule_, vary_)                                                                                \
    static const tg_space symbol = {TG_HEADER(tg_space), .name = #schedule_, .file = __FILE__, .schedule = &schedule_, .vary = vary_, .n_vary = TG_COUNT(vary_)}
SPACE(two_level_space, two_level, two_level_vary);
SPACE(walk_space, walk, walk_vary);
SPACE(walk_n_space, walk_n, walk_n_vary);
SPACE(parts_space, parts, parts_vary);
SPACE(starts_space, starts, starts_vary);
SPACE(back_two_level_space, back_two_level, back_two_level_vary);
SPACE(back_walk_space, back_walk, back_walk_vary);
SPACE(back_joint_space, back_joint, back_joint_vary);
SPACE(back_parts_space, back_parts, back_parts_vary);
SPACE(back_deep_space, back_deep, back_deep_vary);
SPACE(back_starts_space, back_starts, back_starts_vary);
SPACE(back_joint_starts_space, back_joint_starts, back_starts_vary);

const tg_schedule *const tg_scalar_forward[] = {&step, &two_level, &walk_n, &walk, &starts, &parts, NULL};
const tg_schedule *const tg_scalar_backward[] = {&back_two_level, NULL};
const tg_schedule *const tg_scalar_walked[] = {&back_walk_n, &back_walk, &back_joint, &back_parts, &back_deep, &back_starts, &back_joint_starts, NULL};
const tg_schedule *const tg_scalar_alone[] = {&back_walk, &back_joint, &back_starts, &back_joint_starts, NULL};
const tg_schedule *const tg_scalar_together[] = {&back_parts, &back_deep, NULL};
const tg_space *const tg_scalar_forward_spaces[] = {&two_level_space, &walk_n_space, &walk_space, &parts_space, &starts_space, NULL};
const tg_space *const tg_scalar_backward_spaces[] = {&back_two_level_space, &back_walk_space, &back_joint_space, &back_parts_space, &back_deep_space, &back_starts_space, &back_joint_starts_space, NULL};
/* Lengths that had a schedule each before the model searched for them. */
const tg_alias tg_scalar_names[] = {{"segments-short", "segments seg=32"}, {"segments-shorter", "segments seg=16"}, {NULL, NULL}};
const tg_alias tg_scalar_normalised_names[] = {
    {"segments-short", "segments seg=32"}, {"segments-shorter", "segments seg=16"}, {"segments-n-short", "segments-n seg=32"}, {NULL, NULL},
};
