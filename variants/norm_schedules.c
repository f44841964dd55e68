/* variants/norm_schedules.c - the schedules of norms: a thread block has a row, and walks down the rows of a chunk. */
#include "variants/norm.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define SCHEDULE(name_)      TG_HEADER(tg_schedule), .name = name_, .file = __FILE__
/* All of dhv, four elements a thread. */
#define ROWS .warps = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_L(128)}

static const tg_point points[] = {
    {.name = "rows"},
    {.name = "rows-256", .changes = "norm.warps=2 norm.dhv=256"},
    {.name = "rows-512", .changes = "norm.warps=4 norm.dhv=512"},
    {.name = NULL},
};
static const tg_schedule forward = {SCHEDULE("rows"), .chunk = 32, .points = points, .rows = {{ROW("norm", (H)), ROWS}}};
static const tg_schedule backward = {
    SCHEDULE("rows"), .chunk = 64, .points = points,
    .rows = {{ROW("norm", (DX, DZ, OF_CHUNK)), ROWS},
             {ROW("heads", (OF_HEAD)), .warps = 2, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_L(1), [TG_DHV] = TG_P(64)}},
             {ROW("weights", (DWEIGHT)), .warps = 2, .row = {[TG_MEMBER] = TG_L(1), [TG_DHV] = TG_P(64)}}},
};

const tg_schedule *const tg_norm_forward[] = {&forward, NULL};
const tg_schedule *const tg_norm_backward[] = {&backward, NULL};
