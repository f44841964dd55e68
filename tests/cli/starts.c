/* tests/cli/starts.c - rows that walk all segments (TG_W), in schedules that no variant has: who
 * else may write the final state, and what is refused. For `tegula --load`. */
#include "variants/scalar.h"
#include "variants/variants.h"

#define NUMBERS(mma_) .mma = mma_, .warps = 4, .stages = 3, .blocks_per_sm = 1, .line = __LINE__
#define GATES                                                                                                          \
    {                                                                                                                  \
        .name = "gates", .outputs = {B, CJ, WI, W, GT}, .warps = 2, .line = __LINE__, .row = {                         \
            [TG_CHUNK] = TG_P(1),                                                                                      \
            [TG_LKV] = TG_W(64)                                                                                        \
        }                                                                                                              \
    }
#define STATE(mma_, ...)                                                                                               \
    {                                                                                                                  \
        .name = "state", .outputs = {__VA_ARGS__}, NUMBERS(mma_), .row = {                                             \
            [TG_SEG] = TG_W(2),                                                                                        \
            [TG_CHUNK] = TG_W(1),                                                                                      \
            [TG_LKV] = TG_L(64),                                                                                       \
            [TG_DQK] = TG_P(64),                                                                                       \
            [TG_DHV] = TG_P(64)                                                                                        \
        }                                                                                                              \
    }
#define WALK(role, ...)                                                                                                \
    {                                                                                                                  \
        .name = "walk", .outputs = {__VA_ARGS__}, NUMBERS(TG_MMA_WGMMA), .row = {                                      \
            [TG_SEG] = {role, 0, (role) ? 2 : 0},                                                                      \
            [TG_CHUNK] = TG_W(1),                                                                                      \
            [TG_LQ] = TG_L(64),                                                                                        \
            [TG_LKV] = TG_L(64),                                                                                       \
            [TG_DQK] = TG_L(0),                                                                                        \
            [TG_DHV] = TG_P(64)                                                                                        \
        }                                                                                                              \
    }
#define SCHEDULE(symbol, name_, algorithm_, n, ...)                                                                    \
    static const tg_schedule symbol = {TG_HEADER(tg_schedule),                                                         \
                                       .name = name_,                                                                  \
                                       .file = "starts.c",                                                             \
                                       .algorithm = &algorithm_,                                                       \
                                       .chunk = 64,                                                                    \
                                       .n_rows = n,                                                                    \
                                       __VA_ARGS__}

SCHEDULE(by_state, "final-by-state", tg_mlstm_sig_algorithm, 3,
         .rows = {GATES, STATE(TG_MMA_WGMMA, CK), WALK(TG_ROLE_P, H)});
SCHEDULE(by_one, "by-one-kernel", tg_mlstm_sig_algorithm, 2, .rows = {GATES, WALK(TG_ROLE_W, H, S, CK)});
SCHEDULE(kept, "kept-segments", tg_mlstm_sig_algorithm, 3, .kept = {CK},
         .rows = {GATES, STATE(TG_MMA_WGMMA, CK), WALK(TG_ROLE_P, H, S)});
SCHEDULE(by_sync, "by-mma-sync", tg_mlstm_sig_algorithm, 3,
         .rows = {GATES, STATE(TG_MMA_SYNC, CK), WALK(TG_ROLE_P, H, S)});
/* The vector beside a state that segments begin with: nobody says what it begins with; it is in the
 * row that walks them all. */
SCHEDULE(n_unsaid, "n-unsaid", tg_mlstm_sig_norm_algorithm, 3,
         .rows = {GATES, STATE(TG_MMA_WGMMA, CK), WALK(TG_ROLE_P, H, S, N, QN)});
SCHEDULE(n_started, "n-started", tg_mlstm_sig_norm_algorithm, 3,
         .rows = {GATES, STATE(TG_MMA_WGMMA, CK, NS), WALK(TG_ROLE_P, H, S, N, QN)});

/* What nobody gets who does not ask for it. */
SCHEDULE(named, "named", tg_mlstm_sig_algorithm, 2, .by_name = TG_NAMED, .rows = {GATES, WALK(TG_ROLE_NONE, H, S)});

static const char *const no_aliases[] = {NULL};
static const tg_schedule *const schedules[] = {&by_state, &by_one, &kept, &by_sync, NULL};
static const tg_schedule *const normalised[] = {&n_unsaid, &n_started, NULL};
static const tg_variant starts = {
    TG_HEADER(tg_variant),  .name = "starts", .aliases = no_aliases, .algorithm = &tg_mlstm_sig_algorithm,
    .schedules = schedules,
};
static const tg_variant starts_n = {
    TG_HEADER(tg_variant),   .name = "starts-n", .aliases = no_aliases, .algorithm = &tg_mlstm_sig_norm_algorithm,
    .schedules = normalised,
};
static const tg_schedule *const by_name[] = {&named, NULL};
static const tg_variant starts_named = {
    TG_HEADER(tg_variant), .name = "starts-named", .aliases = no_aliases, .algorithm = &tg_mlstm_sig_algorithm,
    .schedules = by_name,
};
TG_API const tg_variant *const tg_variants[] = {&starts, &starts_n, &starts_named, NULL};
