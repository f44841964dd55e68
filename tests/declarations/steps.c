/* tests/declarations/steps.c - declarations that are not drawn: weights of positions are steps of products with a decay
 * that fp32 has as zero and fp64 has not. Both are right; kernels with another code there are wrong. And weights that are the
 * difference of two such steps: zero where both numbers are there and where neither is, but kernels have one of them. In f16
 * a product with a decay of channels has zeros above those of fp32, too. */
#include "declare.h"

#include <string.h>

enum { Q = 1, K, V, X, H, LA, B, QK, P, N };
static const tg_tensor tensors[] = {
    [Q] = {"q", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [K] = {"k", TG_IO, TG_IN, {TG_T, TG_DQK}},
    [V] = {"v", TG_IO, TG_IN, {TG_T, TG_DHV}},
    [X] = {"x", TG_F32, TG_IN, {TG_T}},
    [H] = {"h", TG_F32, TG_OUT, {TG_T, TG_DHV}},
    [LA] = {"la", TG_F32, 0, {TG_T}},
    [B] = {"b", TG_F32, 0, {TG_T}},
    [QK] = {"qk", TG_F32, 0, {TG_LQ, TG_LKV}},
    [P] = {"p", TG_F32, 0, {TG_LQ, TG_LKV}},
};
static const tg_stmt body[] = {
    TG_MAP_TO(TG_AT_KV(LA), TG_MUL(TG_LOGSIG2(TG_KV(X)), TG_NUM(30.0f))),
    TG_SCAN_TO(TG_AT_KV(B), TG_AT_KV(LA)),
    TG_CONTRACT_TO(QK, TG_AT_Q(Q), TG_AT_KV(K)),
    TG_MAP_TO(P, TG_CAUSAL(TG_STEP(TG_MUL(TG_TILE(QK), TG_EXP2(TG_SUB(TG_Q(B), TG_KV(B))))))),
    TG_CONTRACT_TO(TG_AT_Q(H), P, TG_AT_KV(V)),
};
enum { STEPS = 3 };
static const char *const no_aliases[] = {NULL};

static void declare_steps(struct declaration *d)
{
    *d = (struct declaration){.schedules = {&d->schedule, NULL},
                              .target = tg_target_find("sm_90a"),
                              .io = TG_BF16,
                              .shape = {.batch = 1, .heads = 2, .tokens = 130, .dqk = 64, .dhv = 32, .group = 1}};
    memcpy(d->tensors, tensors, sizeof tensors);
    memcpy(d->body, body, sizeof body);
    d->algorithm = (tg_algorithm){TG_HEADER(tg_algorithm), .name = "steps",         .title = "steps",
                                  .file = __FILE__,        .tensors = d->tensors,   .n_tensors = TG_COUNT(tensors),
                                  .body = d->body,         .n_body = TG_COUNT(body)};
    d->schedule = (tg_schedule){
        TG_HEADER(tg_schedule),
        .name = "steps",
        .file = __FILE__,
        .algorithm = &d->algorithm,
        .chunk = 64,
        .n_rows = 2,
        .rows = {{.name = "gates", .outputs = {B}, .warps = 2, .row = {[TG_CHUNK] = TG_P(1), [TG_LKV] = TG_W(64)}},
                 {.name = "h",
                  .outputs = {H},
                  .mma = TG_MMA_SYNC,
                  .warps = 2,
                  .stages = 1,
                  .row = {[TG_CHUNK] = TG_P(1),
                          [TG_LQ] = TG_P(32),
                          [TG_LKV] = TG_L(16),
                          [TG_DQK] = TG_L(64),
                          [TG_DHV] = TG_P(32)}}}};
    d->variant = (tg_variant){TG_HEADER(tg_variant), .name = "steps", .aliases = no_aliases, .algorithm = &d->algorithm,
                              .schedules = d->schedules};
}

static void declare_difference(struct declaration *d)
{
    declare_steps(d);
    d->body[0] = (tg_stmt)TG_MAP_TO(TG_AT_KV(LA), TG_MUL(TG_KV(X), TG_NUM(0)));
    d->body[STEPS] =
        (tg_stmt)TG_MAP_TO(P, TG_CAUSAL(TG_MUL(TG_TILE(QK), TG_SUB(TG_STEP(TG_EXP2(TG_SUB(TG_Q(B), TG_NUM(125.5f)))),
                                                                   TG_STEP(TG_EXP2(TG_SUB(TG_KV(B), TG_NUM(130))))))));
}

/* Sums of products in f16, whose operands are rounded with their decay, of channels: those below 2^-25 to zero. */
static void declare_channels(struct declaration *d)
{
    declare_steps(d);
    d->io = TG_F16;
    for (int tile = X; tile <= B; tile++)
        if (tile != H)
            d->tensors[tile].axes[1] = TG_DQK;
    d->body[0] = (tg_stmt)TG_MAP_TO(TG_AT_KV(LA), TG_LOGSIG2(TG_KV(X)));
    d->body[2] = (tg_stmt)TG_CONTRACT_DECAY_TO(QK, TG_AT_Q(Q), TG_AT_KV(K), TG_AT_Q(B), TG_AT_KV(B));
    d->body[STEPS] = (tg_stmt)TG_MAP_TO(P, TG_CAUSAL(TG_STEP(TG_TILE(QK))));
    d->schedule.rows[0].row[TG_DQK] = (tg_axis_role)TG_P(64);
    d->schedule.rows[0].row[TG_LKV] = (tg_axis_role)TG_W(1);
    d->schedule.rows[1].row[TG_LQ] = (tg_axis_role)TG_P(64);
    d->schedule.rows[1].row[TG_LKV] = (tg_axis_role)TG_L(64);
}

bool judge_steps(struct context *context, struct result *result)
{
    static const uint8_t others[] = {TG_X_ABS, TG_X_SIGMOID, TG_X_NEG};
    static struct declaration meant, d;
    declare_steps(&meant);
    judge_declaration(context, 1, &meant, result);
    bool ok = result->outcome == RIGHT;
    for (uint32_t i = 0; i < TG_COUNT(others); i++) {
        declare_steps(&d);
        for (int x = 0; x < TG_MAX_EXPR; x++)
            if (d.body[STEPS].expr[x].op == TG_X_STEP)
                d.body[STEPS].expr[x].op = others[i];
        judge_as(context, 1, &d, &meant, result);
        ok = ok && result->outcome == WRONG;
    }
    declare_difference(&d);
    judge_declaration(context, 1, &d, result);
    ok = ok && result->outcome == RIGHT;
    declare_channels(&d);
    judge_declaration(context, 1, &d, result);
    return ok && result->outcome == RIGHT;
}
