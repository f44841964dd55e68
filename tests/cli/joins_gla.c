/* tests/cli/joins_gla.c - a table that is added to the backward of gla, whose algorithm it gets from there. For `tegula
 * --load`. */
#include "variants/vector.h"

#define ROW(name_, outputs_) .name = name_, .outputs = {TG_CODES outputs_}, .line = __LINE__
#define PRODUCTS             .mma = TG_MMA_SYNC, .warps = 4
#define STATE(position)      .row = {[TG_CHUNK] = TG_W(1), [position] = TG_L(32), [TG_DQK] = TG_P(32), [TG_DHV] = TG_P(32)}
#define CHANNELS(...)        .warps = 1, .row = {[TG_CHUNK] = TG_P(1), [TG_DQK] = TG_P(32), __VA_ARGS__}

static const tg_point points[] = {{.name = "own-kept", .kept = {CK}}, {.name = "own"}, {.name = NULL}};
static const tg_schedule backward = {
    TG_HEADER(tg_schedule),
    .name = "own",
    .file = "joins_gla.c",
    .chunk = 64,
    .points = points,
    .rows = {{ROW("gates", (B, GT)), CHANNELS([TG_LKV] = TG_W(1))},
             {ROW("state", (CK)), .only = TG_IF_NOT_KEPT, PRODUCTS, STATE(TG_LKV)},
             {ROW("dstate", (DC)), PRODUCTS, STATE(TG_LQ)},
             {ROW("dQ", (DQ, QDQ)), PRODUCTS,
              .row = {[TG_CHUNK] = TG_P(1),
                      [TG_LQ] = TG_P(64),
                      [TG_LKV] = TG_L(16),
                      [TG_DQK] = TG_P(32),
                      [TG_DHV] = TG_L(32)}},
             {ROW("dK", (DK, KDK, RK)), PRODUCTS,
              .row = {[TG_CHUNK] = TG_P(1),
                      [TG_LQ] = TG_L(16),
                      [TG_LKV] = TG_P(64),
                      [TG_DQK] = TG_P(32),
                      [TG_DHV] = TG_L(32)}},
             {ROW("dV", (DV)), PRODUCTS,
              .row = {[TG_CHUNK] = TG_P(1),
                      [TG_LQ] = TG_L(16),
                      [TG_LKV] = TG_P(64),
                      [TG_DQK] = TG_L(32),
                      [TG_DHV] = TG_P(32)}},
             {ROW("cross", (X)), CHANNELS([TG_DHV] = TG_L(1))},
             {ROW("sums", (TE, TR)), CHANNELS([TG_LKV] = TG_L(1))},
             {ROW("dgates", (DGATE)), CHANNELS([TG_LKV] = TG_W(1))}},
};

static const tg_schedule *const schedules[] = {&backward, NULL};
static const tg_variant to_backward = {TG_HEADER(tg_variant), .name = "gla-backward", .schedules = schedules};
TG_API const tg_variant *const tg_variants[] = {&to_backward, NULL};
