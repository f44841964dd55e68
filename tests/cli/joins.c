/* tests/cli/joins.c - schedules that are added to variants that come with Tegula, forward and backward. For `tegula --load`. */
#include "variants/scalar.h"
#include "variants/variants.h"

/* The gates of the variant come behind the tiles that all share. */
enum { F = SCALAR_TILES, I, DF = DGATE, DI };

#define GATES                                                                                                          \
    {                                                                                                                  \
        .name = "gates", .outputs = {B, CJ, WI, W, GT}, .warps = 2, .line = __LINE__, .row = {                         \
            [TG_CHUNK] = TG_P(1),                                                                                      \
            [TG_LKV] = TG_W(64)                                                                                        \
        }                                                                                                              \
    }
#define ROW(name_, ...) .name = name_, .outputs = {__VA_ARGS__}, .mma = TG_MMA_SYNC, .warps = 4, .line = __LINE__
#define STATE(name_, position, ...)                                                                                    \
    {                                                                                                                  \
        ROW(name_, __VA_ARGS__), .row = {                                                                              \
            [TG_CHUNK] = TG_W(1),                                                                                      \
            [position] = TG_L(32),                                                                                     \
            [TG_DQK] = TG_P(32),                                                                                       \
            [TG_DHV] = TG_P(32)                                                                                        \
        }                                                                                                              \
    }

static const tg_schedule forward = {
    TG_HEADER(tg_schedule),
    .name = "own",
    .file = "joins.c",
    .algorithm = &tg_mlstm_sig_algorithm,
    .chunk = 64,
    .n_rows = 3,
    .rows = {GATES,
             STATE("state", TG_LKV, CK),
             {ROW("H", H), .row = {[TG_CHUNK] = TG_P(1),
                                   [TG_LQ] = TG_P(64),
                                   [TG_LKV] = TG_L(32),
                                   [TG_DQK] = TG_L(32),
                                   [TG_DHV] = TG_P(32)}}},
};

/* Of the two ways to the gradients the one with every chunk's states in memory. */
static const tg_schedule backward = {
    TG_HEADER(tg_schedule),
    .name = "own",
    .file = "joins.c",
    .algorithm = &tg_mlstm_sig_backward_algorithm,
    .chunk = 64,
    .n_rows = 7,
    .rows = {GATES,
             STATE("state", TG_LKV, CK),
             STATE("dstate", TG_LQ, DC, X),
             {ROW("dQ", DQ, RE, RX), .row = {[TG_CHUNK] = TG_P(1),
                                             [TG_LQ] = TG_P(64),
                                             [TG_LKV] = TG_L(32),
                                             [TG_DQK] = TG_P(32),
                                             [TG_DHV] = TG_L(32)}},
             {ROW("dK", DK, CE, KX), .row = {[TG_CHUNK] = TG_P(1),
                                             [TG_LQ] = TG_L(32),
                                             [TG_LKV] = TG_P(64),
                                             [TG_DQK] = TG_P(32),
                                             [TG_DHV] = TG_L(32)}},
             {ROW("dV", DV), .row = {[TG_CHUNK] = TG_P(1),
                                     [TG_LQ] = TG_L(32),
                                     [TG_LKV] = TG_P(64),
                                     [TG_DQK] = TG_L(32),
                                     [TG_DHV] = TG_P(32)}},
             {.name = "dgates",
              .outputs = {DF, DI, PE},
              .warps = 2,
              .line = __LINE__,
              .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}}},
};

static const tg_schedule *const forward_schedules[] = {&forward, NULL}, *const backward_schedules[] = {&backward, NULL};
static const tg_variant to_forward = {TG_HEADER(tg_variant), .name = "mlstm-sig", .schedules = forward_schedules};
static const tg_variant to_backward = {TG_HEADER(tg_variant), .name = "mlstm-sig-backward",
                                       .schedules = backward_schedules};
TG_API const tg_variant *const tg_variants[] = {&to_forward, &to_backward, NULL};
