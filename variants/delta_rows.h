/* variants/delta_rows.h - what the schedules of the delta rule and those of KDA share of rows: a chunk is one block of so many
 * positions; on warpgroups, the values by 128, sequences whole or cut into segments that are composed by transitions. */
#ifndef TEGULA_DELTA_ROWS_H
#define TEGULA_DELTA_ROWS_H

#include "../dsl/tegula.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define SCHEDULE(name_)      TG_HEADER(tg_schedule), .name = name_, .file = __FILE__
#define BLOCK                [TG_LQ] = TG_L(64), [TG_LKV] = TG_L(64)

#define AS_FIT                 0 /* stages: 3, or 2 where 3 are too many (compiler/walk_place.c) */
#define ON_WARPGROUPS(stages_) .mma = TG_MMA_WGMMA, .warps = 8, .stages = stages_, .blocks_per_sm = 1
#define VALUES .row = {[TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(128)}
#define NARROW "walk.warps=4 walk.stages=0 walk.dhv=64"
#define CUT_VALUES .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(128)}
#define CUT_STATES(stages_)                                                                                            \
    .mma = TG_MMA_WGMMA, .warps = 4, .stages = stages_, .blocks_per_sm = 2,                                            \
    .row = {[TG_SEG] = TG_P(0), [TG_CHUNK] = TG_W(1), BLOCK, [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(64)}
/* What each head gives, of those that share it: threads have two channels, 4 bytes each. */
#define HEADS(position)                                                                                                \
    .warps = 2, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [position] = TG_L(1), [TG_DQK] = TG_P(128), [TG_MEMBER] = TG_L(1)}
/* Where operands are made in the kernel: a thread block has a whole row, four channels a thread, and its sum. */
#define ROWS .warps = 1, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(128)}
/* ... or two channels a thread, where there is no sum. */
#define ELEMENTS .warps = 2, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_P(128)}
#define COMPOSED_BY_VALUES                                                                                             \
    .mma = TG_MMA_TF32X3, .warps = 8, .blocks_per_sm = 1, .row = {[TG_SEG] = TG_W(0), [TG_DQK] = TG_L(0), [TG_DHV] = TG_P(16)}
/* By four warps, two thread blocks of a multiprocessor, each of which takes longer: for as many as would take turns by eight. */
#define VARY_COMPOSED(row_) {.field = TG_FIELD_WARPS, .rows = {row_}, .values = {4, 8}, .line = __LINE__}

/* For dqk beyond 256: the two groups of a walk share the columns of its state, and there is room for one stage of the keys and queries. */
#define SHARED_WALK "walk.dhv=64 walk.stages=1"
#define SHARED_N    "N.dhv=64 N.stages=2 "
#define SHARED_DV   "dV.dhv=64 dV.stages=1 "
/* By mma.sync, for dqk beyond 256: warps share the columns of a state. SMALL: chunks of 16 positions, for 99 KB of shared memory and for
 * fp32. */
#define SHARED      "walk.warps=4 walk.dhv=16 "
#define BACK_SHARED SHARED "dV.warps=4 dV.dhv=16"
#define SMALL       SHARED "chunk=16 T.warps=1 T.Lhq=16 T.Lkv=16 walk.Lhq=16 walk.Lkv=16 "
#define BACK_SMALL                                                                                                     \
    SMALL "dV.warps=4 dV.Lhq=16 dV.Lkv=16 dV.dhv=16 dQ.warps=1 dQ.Lhq=16 dQ.Lkv=16 dKr.warps=1 dKr.Lhq=16 dKr.Lkv=16 "    \
          "dK.warps=1 dK.Lhq=16 dK.Lkv=16 "

#endif
