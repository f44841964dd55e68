/* variants/dfw_schedules.c - the schedules of dfw: those of vector_schedules.c, with rows of what columns decay by. */
#include "variants/dfw.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define SCHEDULE(name_)      TG_HEADER(tg_schedule), .name = name_, .file = __FILE__
#define PRODUCTS             .mma = TG_MMA_SYNC, .warps = 4, .stages = 2, .blocks_per_sm = 1
/* A thread a channel, down the positions of the chunk, in order or not. */
#define CHANNELS(dim)     .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(1), [dim] = TG_P(64)}
#define EACH_CHANNEL(dim) .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [dim] = TG_P(64)}
#define OPERAND_ROWS                                                                                                   \
    {ROW("left", (BL, GTL)), CHANNELS(TG_DQK)}, {ROW("right", (BR, GTR, WR)), CHANNELS(TG_DHV)},                           \
        {ROW("keys", (KE, QB)), EACH_CHANNEL(TG_DQK)}, {ROW("values", (VE, DHB)), EACH_CHANNEL(TG_DHV)}
#define STATE(name_, out, position)                                                                                    \
    {ROW(name_, (out)), PRODUCTS, .row = {[TG_CHUNK] = TG_W(1), [position] = TG_L(32), [TG_DQK] = TG_P(64), [TG_DHV] = TG_P(64)}}
#define OF_QUERIES(dim, other)                                                                                         \
    PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_P(64), [TG_LKV] = TG_L(16), [dim] = TG_P(32), [other] = TG_L(32)}
#define OF_KEYS(dim, other)                                                                                            \
    PRODUCTS, .row = {[TG_CHUNK] = TG_P(1), [TG_LQ] = TG_L(16), [TG_LKV] = TG_P(64), [dim] = TG_P(32), [other] = TG_L(32)}

static const tg_point step_points[] = {
    {.name = "step"},
    {.name = "step8", .changes = "step.chunk=8 step.warps=2", .max_tokens = 8},
    {.name = NULL},
};
static const tg_schedule step = {
    SCHEDULE("step"), .chunk = 1, .max_tokens = 1, .points = step_points,
    .rows = {{ROW("step", (H, S)), .warps = 4,
              .row = {[TG_CHUNK] = TG_W(1), [TG_LQ] = TG_L(1), [TG_LKV] = TG_L(1), [TG_DQK] = TG_L(1), [TG_DHV] = TG_P(128)}}},
};

#define FP32 "state.mma=tf32x3 state.Lkv=16 H.mma=tf32x3"
static const tg_point two_level_points[] = {
    {.name = "tfla"},
    {.name = "tfla-fp32", .changes = FP32},
    {.name = NULL},
};
static const tg_schedule two_level = {
    SCHEDULE("two-level"), .chunk = 64, .points = two_level_points,
    .rows = {OPERAND_ROWS, STATE("state", CK, TG_LKV), {ROW("H", (H)), OF_QUERIES(TG_DHV, TG_DQK)}},
};

#define BACK_FP32                                                                                                      \
    FP32 " dstate.mma=tf32x3 dstate.Lhq=16 dQ.mma=tf32x3 dK.mma=tf32x3 dV.mma=tf32x3"
#define OF_GROUP " dQ.member=L dK.member=L"
static const tg_point back_points[] = {
    {.name = "tfla"},
    {.name = "tfla-fp32", .changes = BACK_FP32},
    {.name = "tfla-grouped", .changes = OF_GROUP},
    {.name = "tfla-fp32-grouped", .changes = BACK_FP32 OF_GROUP},
    {.name = NULL},
};

static const tg_schedule back_two_level = {
    SCHEDULE("two-level"), .chunk = 64, .points = back_points,
    .rows = {OPERAND_ROWS, STATE("state", CK, TG_LKV), STATE("dstate", DC, TG_LQ),
             {ROW("H", (HDH)), OF_QUERIES(TG_DHV, TG_DQK)},
             {ROW("dQ", (DQ, QDQ)), OF_QUERIES(TG_DQK, TG_DHV)},
             {ROW("dK", (DK, KDK, RK)), OF_KEYS(TG_DQK, TG_DHV)},
             {ROW("dV", (DV, VDV, RV)), OF_KEYS(TG_DHV, TG_DQK)},
             {ROW("rows", (XL)), .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_DQK] = TG_P(64), [TG_DHV] = TG_L(1)}},
             {ROW("columns", (XR)), .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_DQK] = TG_L(1), [TG_DHV] = TG_P(64)}},
             {ROW("lsums", (TEL, TRL)), EACH_CHANNEL(TG_DQK)}, {ROW("rsums", (TER, TRR)), EACH_CHANNEL(TG_DHV)},
             {ROW("dleft", (DGL)), CHANNELS(TG_DQK)}, {ROW("dright", (DGR)), CHANNELS(TG_DHV)}},
};

const tg_schedule *const tg_dfw_forward[] = {&step, &two_level, NULL};
const tg_schedule *const tg_dfw_backward[] = {&back_two_level, NULL};
