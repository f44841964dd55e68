/* variants/norm_schedules.c - the schedules of norms: a thread block has a row, and walks down the rows of a chunk. */
#include "variants/norm.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define SCHEDULE(name_)      TG_HEADER(tg_schedule), .name = name_, .file = __FILE__
/* Four elements of dhv a thread: of all of it, where its sum is wanted. */
#define EACH .warps = 1, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_P(128)}
#define ROWS .warps = 1, .blocks_per_sm = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_L(128)}

static const tg_schedule forward = {SCHEDULE("rows"), .chunk = 32, .rows = {{ROW("norm", (H)), ROWS}}};
static const tg_schedule backward = {
    SCHEDULE("rows"), .chunk = 64,
    .rows = {{ROW("norm", (DX, DZ, OF_CHUNK)), ROWS},
             {ROW("heads", (OF_HEAD)), .warps = 2, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_L(1), [TG_DHV] = TG_P(64)}},
             {ROW("weights", (DWEIGHT)), .warps = 2, .row = {[TG_MEMBER] = TG_L(1), [TG_DHV] = TG_P(64)}}},
};

/* Over the heads of a group: sums of heads, those of groups, then the rows. */
#define GROUP_SUMS .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64), [TG_MEMBER] = TG_L(1)}
static const tg_schedule group_forward = {
    SCHEDULE("rows"), .chunk = 64,
    .rows = {{ROW("squares", (SQUARES)), ROWS}, {ROW("means", (R)), GROUP_SUMS}, {ROW("norm", (H)), EACH}},
};
static const tg_schedule group_backward = {
    SCHEDULE("rows"), .chunk = 64,
    .rows = {{ROW("squares", (SQUARES)), ROWS}, {ROW("means", (R)), GROUP_SUMS},
             {ROW("along", (ALONG)), ROWS}, {ROW("sums", (ALL_ALONG)), GROUP_SUMS},
             {ROW("norm", (DX, DZ, OF_CHUNK)), EACH},
             {ROW("weights", (DWEIGHT)), .warps = 2, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_L(1), [TG_DHV] = TG_P(64)}}},
};

/* From when each width had a point of its own. */
const tg_alias tg_norm_names[] = {{"rows-256", "rows"}, {"rows-512", "rows"}, {NULL, NULL}};

/* Long chunks leave fewer sums of weights to be added up, short ones fill the GPU with few rows. */
static const tg_vary vary[] = {{.field = TG_FIELD_CHUNK, .values = {64, 128, 256, 512}, .line = __LINE__}};
#define SPACE(of)                                                                                                      \
    {                                                                                                                  \
        TG_HEADER(tg_space), .name = "rows", .file = __FILE__, .schedule = of, .vary = vary, .n_vary = TG_COUNT(vary)  \
    }
static const tg_space forward_space = SPACE(&forward), backward_space = SPACE(&backward),
                      group_forward_space = SPACE(&group_forward), group_backward_space = SPACE(&group_backward);

const tg_schedule *const tg_norm_group_forward[] = {&group_forward, NULL};
const tg_schedule *const tg_norm_group_backward[] = {&group_backward, NULL};
const tg_schedule *const tg_norm_forward[] = {&forward, NULL};
const tg_schedule *const tg_norm_backward[] = {&backward, NULL};
const tg_space *const tg_norm_forward_spaces[] = {&forward_space, NULL};
const tg_space *const tg_norm_backward_spaces[] = {&backward_space, NULL};
const tg_space *const tg_norm_group_forward_spaces[] = {&group_forward_space, NULL};
const tg_space *const tg_norm_group_backward_spaces[] = {&group_backward_space, NULL};
