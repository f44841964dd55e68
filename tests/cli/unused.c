/* tests/cli/unused.c - a variant for `tegula --load` with a tile that nobody uses, which is a warning, and a schedule that is refused
 * for another reason. */
#include "dsl/tegula.h"

enum { Q = 1, K, V, UNUSED, P, Y };
static const tg_tensor tensors[] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}}, [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}}, [UNUSED] = {"u", TG_F32, 0, {TG_T}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},   [Y] = {"y", TG_IO, TG_OUT, {TG_T, TG_DHV}},
};
static const tg_stmt body[] = {
    TG_CONTRACT_TO(P, TG_AT_Q(Q), TG_AT_KV(K)),
    TG_CONTRACT_TO(TG_AT_Q(Y), P, TG_AT_KV(V)),
};
static const tg_algorithm algorithm = {
    TG_HEADER(tg_algorithm),        .name = "unused", .title = "products",      .file = __FILE__, .tensors = tensors,
    .n_tensors = TG_COUNT(tensors), .body = body,     .n_body = TG_COUNT(body),
};
#define SCHEDULE(name_, mma_)                                                                                          \
    {                                                                                                                  \
        TG_HEADER(tg_schedule), .name = name_, .file = __FILE__, .algorithm = &algorithm, .chunk = 64, .n_rows = 1,    \
                                .rows = {{.name = "rows",                                                              \
                                          .outputs = {Y},                                                              \
                                          .warps = 4,                                                                  \
                                          .mma = mma_,                                                                 \
                                          .line = __LINE__,                                                            \
                                          .row = {[TG_CHUNK] = TG_P(1),                                                \
                                                  [TG_LQ] = TG_P(64),                                                  \
                                                  [TG_LKV] = TG_L(32),                                                 \
                                                  [TG_DQK] = TG_L(32),                                                 \
                                                  [TG_DHV] = TG_P(64)}}},                                              \
    }
static const tg_schedule good = SCHEDULE("good", TG_MMA_SYNC), refused = SCHEDULE("refused", TG_MMA_TF32X3);
static const tg_schedule *const schedules[] = {&good, &refused, NULL};
static const tg_variant unused = {TG_HEADER(tg_variant), .name = "unused", .algorithm = &algorithm,
                                  .schedules = schedules};

TG_API const tg_variant *const tg_variants[] = {&unused, NULL};
