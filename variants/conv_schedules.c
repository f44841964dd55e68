/* variants/conv_schedules.c - the schedules of the convolution: threads with four channels each walk down the tokens of a chunk; two each
 * where the gradient of a bias is summed too.
 * x of the tokens before is in the cache, for it has just been read. */
#include "variants/conv.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define SCHEDULE(name_)      TG_HEADER(tg_schedule), .name = name_, .file = __FILE__
#define CHANNELS .warps = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_P(128)}
#define ENDS .warps = 2, .row = {[TG_DHV] = TG_P(64)}
#define SUMS .warps = 2, .row = {[TG_BATCH] = TG_L(1), [TG_CHUNK] = TG_L(1), [TG_DHV] = TG_P(64)}

static const tg_schedule forward = {
    SCHEDULE("rows"), .chunk = 64, .rows = {{ROW("conv", (H)), CHANNELS}, {ROW("state", (S1, S2, S3)), ENDS}},
};

/* A decode step holds its tokens, and writes the state where it was. */
static const tg_point step_points[] = {
    {.name = "step", .changes = "step.chunk=1", .max_tokens = 1},
    {.name = "step8"},
    {.name = NULL},
};
static const tg_schedule step = {
    SCHEDULE("step"), .chunk = 1, .max_tokens = 8, .points = step_points,
    .rows = {{ROW("step", (H, S1, S2, S3)), .warps = 2, .row = {[TG_CHUNK] = TG_W(8), [TG_LKV] = TG_L(1), [TG_DHV] = TG_P(64)}}},
};

static const tg_schedule backward = {
    SCHEDULE("rows"), .chunk = 256,
    .rows = {{ROW("dy", (DY, C0, C1, C2, C3)), .lacks = CB, CHANNELS},
             {ROW("dy", (DY, C0, C1, C2, C3, CB)), .has = CB, .warps = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_L(1), [TG_DHV] = TG_P(64)}},
             {ROW("dx", (DX)), CHANNELS},
             {ROW("dstate", (DS10, DS20, DS30)), ENDS},
             {ROW("sums", (DW0, DW1, DW2)), SUMS},
             {ROW("sums3", (DW3, DBIAS)), SUMS}},
};

/* Long chunks leave fewer sums of weights to be added up, short ones fill the GPU with few channels. */
static const tg_vary vary[] = {{.field = TG_FIELD_CHUNK, .values = {32, 64, 128, 256, 512}, .line = __LINE__}};
static const tg_space forward_space = {
    TG_HEADER(tg_space), .name = "rows", .file = __FILE__, .schedule = &forward, .vary = vary, .n_vary = TG_COUNT(vary),
};
static const tg_space backward_space = {
    TG_HEADER(tg_space), .name = "rows", .file = __FILE__, .schedule = &backward, .vary = vary, .n_vary = TG_COUNT(vary),
};

const tg_schedule *const tg_conv_forward[] = {&step, &forward, NULL};
const tg_schedule *const tg_conv_backward[] = {&backward, NULL};
const tg_space *const tg_conv_forward_spaces[] = {&forward_space, NULL};
const tg_space *const tg_conv_backward_spaces[] = {&backward_space, NULL};
