/* tests/kernels/mutants.c - kernels damaged on purpose: the emulator's checks and the comparison
 * with the oracle must find out. Emulator only: a GPU would compute nonsense, or hang. */
#include "damage.h"
#include "harness.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

/* What is damaged. Every line runs in one or two calls, of these chunk sizes. */
struct call_under_test {
    const char *name;
    struct spec spec;
    bool is_backward;
    int64_t chunks[2]; /* up to the first 0 but for the first */
    void (*change)(tg_problem *problem);
};

struct place {
    int64_t head, token, column;
};

static void place_nans_at(tg_problem *problem, const struct place *nans, size_t n)
{
    const tg_host_tensor *v = tg_problem_tensor(problem, "v");
    for (size_t i = 0; i < n; i++) {
        const int64_t row = nans[i].head * problem->shape.tokens + nans[i].token;
        tg_num_store(v->data, v->dtype, (size_t)(row * problem->shape.dhv + nans[i].column), (double)NAN);
    }
}

/* The NaNs lie in two steps of one row block, and one is cleaned by another warp than the one that
 * clears its column's mark. */
static void place_nans(tg_problem *problem)
{
    static const struct place nans[] = {{1, 80, 9}, {1, 101, 5}};
    place_nans_at(problem, nans, 2);
}

/* In both tiles of a warpgroup. */
static void place_nans_of_tiles(tg_problem *problem)
{
    static const struct place nans[] = {{0, 80, 9}, {0, 101, 77}};
    place_nans_at(problem, nans, 2);
}

static void place_nan_of_gradient(tg_problem *problem)
{
    const tg_host_tensor *dh = tg_problem_tensor(problem, "dh");
    tg_num_store(dh->data, dh->dtype, (size_t)(80 * problem->shape.dhv + 9), (double)NAN);
}

/* One channel forgets almost all of every token, the others little. */
static void close_channel(tg_problem *problem)
{
    const tg_host_tensor *g = tg_problem_tensor(problem, "g");
    for (size_t e = 5; e < g->n; e += (size_t)problem->shape.dqk)
        tg_num_store(g->data, g->dtype, e, -40);
}

/* All of the last sequence: the one before must not notice. */
static void spoil_last(tg_problem *problem)
{
    static const char *const names[] = {"q", "k", "v"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tg_host_tensor *x = tg_problem_tensor(problem, names[i]);
        for (int64_t e = problem->cuts.at[2] * x->extent[3]; e < (int64_t)x->n; e++)
            tg_num_store(x->data, x->dtype, (size_t)e, (double)NAN);
    }
}

/* Sequences of one token, of none and of several chunks; slots of a pool; shared heads. */
#define PACKED_EXP                                                                                                     \
    {                                                                                                                  \
        .variant = "mlstm-exp", .io = TG_BF16, .heads = 4, .group = 2, .dqk = 24, .dhv = 40, .cuts = "0 1 1 150 290",  \
        .is_pooled = true, .schedule = "tfla-small", .backward = "", .has_s0 = true                                    \
    }

enum call_id {
    SIG,
    EXP,
    LONG,
    EXP_BACK,
    SSD_BACK,
    STEP,
    FIRST_STEP,
    WALK,
    PACKED_WALK,
    TOGETHER,
    TOGETHER_BACK,
    SEGMENTS,
    STARTS,
    PARTS,
    CLUSTER,
    CLUSTER_IN_TURN,
    JOINT,
    PAIRED,
    PAIRED_IN_TURN,
    CAST,
    WALK_N,
    WALK_BACK,
    SEGMENTS_N,
    NLA_BACK,
    NLA_WALK_BACK,
    NLA_STEP,
    HELD,
    KDA_STEP,
    KDA_BACK,
    KDA_CHUNK,
    KDA_STRONG,
    KDA_PIECES,
    KDA_WALK_BACK,
    DELTA_BACK,
    DELTA_WIDE,
    KDA_SHARED,
    GLA_SHARED,
    DELTA_SHARED_BACK,
    DELTA_PARTS,
    DELTA_RELAY,
    DELTA_LEAVING,
    MADE,
    MANY_MADE,
    PACKED_MADE,
    ROWS_MADE,
    N_CALLS
};
static const struct call_under_test calls[N_CALLS] = {
    /* An initial state; several steps of every ring. A NaN in v opens the path of kernel H that
     * keeps it from earlier tokens. With one block a chunk, the prologues of rings cross chunks;
     * with several, vector kernels go around their loop. */
    [SIG] = {"mlstm-sig",
             {.io = TG_BF16,
              .batch = 1,
              .heads = 2,
              .tokens = 300,
              .dqk = 32,
              .dhv = 32,
              .schedule = "tfla H.Lhq=64",
              .has_s0 = true},
             false,
             {64, 256},
             place_nans},
    [EXP] = {"mlstm-exp", PACKED_EXP, false, {128}, NULL},
    /* More chunks than a warp has threads; a whole round of 32 steps, and all steps but one of the last. */
    [LONG] = {"mlstm-exp of 63 chunks",
              {.variant = "mlstm-exp",
               .io = TG_BF16,
               .batch = 1,
               .heads = 1,
               .tokens = 3992,
               .dqk = 16,
               .dhv = 16,
               .schedule = "tfla-small",
               .has_s0 = true},
              false,
              {64},
              NULL},
    [EXP_BACK] = {"mlstm-exp-backward", PACKED_EXP, true, {128}, NULL},
    /* Parameters; two blocks of dqk, whose sums go through memory in parts. */
    [SSD_BACK] = {"mamba2-backward",
                  {.variant = "mamba2",
                   .io = TG_BF16,
                   .batch = 2,
                   .heads = 2,
                   .tokens = 150,
                   .dqk = 72,
                   .dhv = 24,
                   .schedule = "tfla-small",
                   .backward = "",
                   .has_s0 = true},
                  true,
                  {128},
                  NULL},
    [STEP] = {"mlstm-exp step",
              {.variant = "mlstm-exp",
               .io = TG_BF16,
               .batch = 3,
               .heads = 4,
               .group = 2,
               .tokens = 8,
               .dqk = 24,
               .dhv = 40,
               .is_pooled = true,
               .schedule = "step8",
               .has_s0 = true},
              false,
              {0},
              NULL},
    [FIRST_STEP] = {"mlstm-exp first step",
                    {.variant = "mlstm-exp",
                     .io = TG_BF16,
                     .batch = 3,
                     .heads = 4,
                     .group = 2,
                     .tokens = 8,
                     .dqk = 24,
                     .dhv = 40,
                     .schedule = "step8"},
                    false,
                    {0},
                    NULL},
    /* Two warpgroups of two tiles each; more chunks than stages. */
    [WALK] = {"mlstm-sig walk",
              {.io = TG_BF16,
               .batch = 1,
               .heads = 1,
               .tokens = 300,
               .dqk = 64,
               .dhv = 256,
               .schedule = "walk",
               .has_s0 = true},
              false,
              {0},
              place_nans_of_tiles},
    [PACKED_WALK] = {"mlstm-sig packed walk",
                     {.io = TG_BF16,
                      .heads = 1,
                      .dqk = 64,
                      .dhv = 128,
                      .cuts = "0 114 194 260",
                      .schedule = "walk walk.dhv=128",
                      .has_s0 = true},
                     false,
                     {0},
                     spoil_last},
    /* Four heads in a thread block, two tiles of one each for a warpgroup; with factors and without, in either order. */
    [TOGETHER] = {"mamba2 heads",
                  {.variant = "mamba2",
                   .io = TG_BF16,
                   .batch = 1,
                   .heads = 8,
                   .group = 8,
                   .tokens = 300,
                   .dqk = 64,
                   .dhv = 64,
                   .schedule = "walk-heads",
                   .gates = UNEVEN,
                   .has_s0 = true},
                  false,
                  {0},
                  NULL},
    /* ... which sum up what they have of dQ and dK; more chunks than buffers. */
    [TOGETHER_BACK] = {"mamba2 heads, backward",
                       {.variant = "mamba2",
                        .io = TG_BF16,
                        .batch = 1,
                        .heads = 4,
                        .group = 4,
                        .tokens = 200,
                        .dqk = 128,
                        .dhv = 64,
                        .schedule = "",
                        .backward = "walk-parts-heads",
                        .gates = UNEVEN,
                        .has_s0 = true},
                       true,
                       {0},
                       NULL},
    /* Five segments: the last one begins with what four before it and the initial state come to, and the third head
     * remembers them. */
    [SEGMENTS] = {"mlstm-sig segments",
                  {.io = TG_BF16,
                   .batch = 1,
                   .heads = 3,
                   .tokens = 600,
                   .dqk = 64,
                   .dhv = 64,
                   .schedule = "segments-narrow walk.seg=2 state.stages=1",
                   .has_s0 = true},
                  false,
                  {0},
                  NULL},
    /* Three segments, each of which begins with a state that another kernel has left; the third
     * head remembers them. */
    [STARTS] = {"mlstm-sig starts",
                {.io = TG_BF16,
                 .batch = 1,
                 .heads = 3,
                 .tokens = 300,
                 .dqk = 64,
                 .dhv = 64,
                 .schedule = "tfla-wgmma-narrow walk.seg=2 state.stages=1",
                 .has_s0 = true},
                false,
                {0},
                NULL},
    /* Two blocks of dhv, two heads that share q and k. */
    [PARTS] = {"simple-gla parts",
               {.variant = "simple-gla",
                .io = TG_BF16,
                .batch = 1,
                .heads = 2,
                .group = 2,
                .tokens = 70,
                .dqk = 64,
                .dhv = 128,
                .schedule = "",
                .backward = "walk-parts-narrow dQ.dhv=64 dK.dhv=64",
                .has_s0 = true},
               true,
               {0},
               NULL},
/* Two blocks of dhv; the last chunk ends in its second half. Packed they are a cluster, else they add in turn. */
#define TWO_BLOCKS                                                                                                     \
    .io = TG_BF16, .heads = 2, .dqk = 64, .dhv = 128, .schedule = "", .has_s0 = true,                                  \
    .backward = "walk-cluster dQ.warps=4 dQ.dqk=64 dQ.dhv=64 dK.warps=4 dK.dqk=64 dK.dhv=64 dV.warps=4 dV.dhv=64"
    [CLUSTER] = {"mlstm-sig cluster", {TWO_BLOCKS, .cuts = "0 170"}, true, {0}, NULL},
    [CLUSTER_IN_TURN] = {"mlstm-sig in turn", {TWO_BLOCKS, .batch = 1, .tokens = 170}, true, {0}, NULL},
    /* dK and dV in one walk; v and dh have a stage each. A NaN, the last chunk not whole. */
    [JOINT] = {"linear joint",
               {.variant = "linear",
                .io = TG_BF16,
                .batch = 1,
                .heads = 1,
                .tokens = 170,
                .dqk = 128,
                .dhv = 256,
                .schedule = "",
                .backward = "walk-joint",
                .has_s0 = true},
               true,
               {0},
               place_nan_of_gradient},
/* Two heads of a group, in segments of an odd number of chunks, the last one shorter; so is the last chunk. */
#define TWO_HEADS                                                                                                      \
    .variant = "gated-delta", .io = TG_BF16, .heads = 2, .group = 2, .dqk = 64, .dhv = 64, .schedule = "",             \
    .has_s0 = true, .backward = "segments-all-paired seg=3 dQ.warps=4 dQ.dqk=64 dK.warps=4 dK.dqk=64"
    [PAIRED] = {"gated-delta paired", {TWO_HEADS, .cuts = "0 490"}, true, {0}, NULL},
    [PAIRED_IN_TURN] = {"gated-delta in turn", {TWO_HEADS, .batch = 1, .tokens = 490}, true, {0}, NULL},
    /* Two blocks of dhv that load q and k once; more chunks than stages. */
    [CAST] = {"mlstm-sig cast",
              {.io = TG_BF16,
               .batch = 1,
               .heads = 2,
               .tokens = 300,
               .dqk = 128,
               .dhv = 128,
               .schedule = "walk-wide-cast walk.warps=4 walk.dhv=64",
               .has_s0 = true},
              false,
              {0},
              NULL},
    /* Beside dV h.dh and the sums that the normaliser's state is made of, by the first of two blocks of dhv. */
    [WALK_BACK] = {"mlstm-exp walk, backward",
                   {.variant = "mlstm-exp",
                    .io = TG_BF16,
                    .batch = 1,
                    .heads = 2,
                    .tokens = 170,
                    .dqk = 64,
                    .dhv = 128,
                    .schedule = "",
                    .backward = "walk-narrow dQ.dhv=128 dK.dhv=128",
                    .has_s0 = true},
                   true,
                   {0},
                   NULL},
    /* The normaliser's state in the walk, of three heads, one of which remembers. */
    [WALK_N] = {"mlstm-exp walk-n",
                {.variant = "mlstm-exp",
                 .io = TG_BF16,
                 .batch = 1,
                 .heads = 3,
                 .tokens = 200,
                 .dqk = 64,
                 .dhv = 128,
                 .schedule = "walk-n",
                 .has_s0 = true},
                false,
                {0},
                NULL},
    /* ... beside those of five segments. */
    [SEGMENTS_N] = {"mlstm-exp segments-n",
                    {.variant = "mlstm-exp",
                     .io = TG_BF16,
                     .batch = 1,
                     .heads = 3,
                     .tokens = 560,
                     .dqk = 64,
                     .dhv = 128,
                     .schedule = "segments-n walk.seg=2",
                     .has_s0 = true},
                    false,
                    {0},
                    NULL},
    /* Two blocks of dqk, whose sums go through memory in parts; rows that normalise. */
    [NLA_BACK] = {"nla-backward",
                  {.variant = "nla",
                   .io = TG_BF16,
                   .batch = 2,
                   .heads = 2,
                   .tokens = 150,
                   .dqk = 72,
                   .dhv = 24,
                   .schedule = "tfla-small",
                   .backward = "tfla-small",
                   .has_s0 = true},
                  true,
                  {128},
                  NULL},
    /* Vectors carried beside the states, both ways; the second chunk ends in its second block. */
    [NLA_WALK_BACK] = {"nla-backward in walks",
                       {.variant = "nla",
                        .io = TG_BF16,
                        .batch = 1,
                        .heads = 2,
                        .tokens = 200,
                        .dqk = 128,
                        .dhv = 64,
                        .schedule = "walk-n",
                        .backward = "walk-n",
                        .has_s0 = true},
                       true,
                       {0},
                       NULL},
    [NLA_STEP] = {"nla step",
                  {.variant = "nla",
                   .io = TG_BF16,
                   .batch = 2,
                   .heads = 2,
                   .tokens = 1,
                   .dqk = 24,
                   .dhv = 40,
                   .is_pooled = true,
                   .schedule = "step8",
                   .has_s0 = true},
                  false,
                  {0},
                  NULL},
    [HELD] = {"gated-delta step",
              {.variant = "gated-delta",
               .io = TG_BF16,
               .batch = 2,
               .heads = 2,
               .tokens = 8,
               .dqk = 40,
               .dhv = 72,
               .is_pooled = true,
               .schedule = "step8",
               .has_s0 = true},
              false,
              {0},
              NULL},
    /* Rows and numbers are made before the walk. */
    [KDA_STEP] = {"kda-safe step",
                  {.variant = "kda-safe",
                   .io = TG_BF16,
                   .batch = 2,
                   .heads = 2,
                   .tokens = 8,
                   .dqk = 40,
                   .dhv = 72,
                   .gates = EXTREME,
                   .schedule = "step8",
                   .has_s0 = true},
                  false,
                  {0},
                  NULL},
    /* Three chunks, the last one of 22 positions. */
    [KDA_BACK] = {"kda back",
                  {.variant = "kda",
                   .io = TG_BF16,
                   .batch = 1,
                   .heads = 2,
                   .tokens = 150,
                   .dqk = 24,
                   .dhv = 40,
                   .schedule = "portable",
                   .backward = "portable",
                   .has_s0 = true},
                  true,
                  {0},
                  NULL},
    /* Gates beside the products: one chunk and a part; blocks that decay by little, and by much. */
    [KDA_CHUNK] = {"kda chunk",
                   {.variant = "kda",
                    .io = TG_BF16,
                    .batch = 1,
                    .heads = 1,
                    .tokens = 90,
                    .dqk = 64,
                    .dhv = 64,
                    .schedule = "fused"},
                   false,
                   {0},
                   NULL},
    [KDA_STRONG] = {"kda strong",
                    {.variant = "kda",
                     .io = TG_BF16,
                     .batch = 1,
                     .heads = 1,
                     .tokens = 90,
                     .dqk = 64,
                     .dhv = 64,
                     .schedule = "fused"},
                    false,
                    {0},
                    close_channel},
    /* The row of the second piece beside the walk of the first. */
    [KDA_PIECES] = {"kda pieces",
                    {.variant = "kda",
                     .io = TG_BF16,
                     .batch = 1,
                     .heads = 1,
                     .tokens = 200,
                     .dqk = 64,
                     .dhv = 64,
                     .schedule = "pieces pieces=2"},
                    false,
                    {0},
                    NULL},
    /* Lanes that have channels; the second chunk ends in its third block. */
    [KDA_WALK_BACK] = {"kda walk, backward",
                       {.variant = "kda",
                        .io = TG_BF16,
                        .batch = 1,
                        .heads = 1,
                        .tokens = 100,
                        .dqk = 64,
                        .dhv = 64,
                        .schedule = "",
                        .backward = "walk-narrow",
                        .has_s0 = true},
                       true,
                       {0},
                       close_channel},
    /* A NaN in dh, which the zeros of two tiles in memory keep from the tokens behind it. */
    [DELTA_BACK] = {"delta-net back",
                    {.variant = "delta-net",
                     .io = TG_BF16,
                     .batch = 1,
                     .heads = 2,
                     .tokens = 100,
                     .dqk = 32,
                     .dhv = 32,
                     .schedule = "portable",
                     .backward = "portable",
                     .has_s0 = true},
                    true,
                    {0},
                    place_nan_of_gradient},
    /* The state is a left operand by some of its columns at a time. */
    [DELTA_WIDE] = {"gated-delta of a wide state",
                    {.variant = "gated-delta",
                     .io = TG_BF16,
                     .batch = 1,
                     .heads = 1,
                     .tokens = 200,
                     .dqk = 256,
                     .dhv = 128,
                     .schedule = "walk",
                     .has_s0 = true},
                    false,
                    {0},
                    NULL},
    /* Four warps with the columns of one state, whose sums are made twice a chunk. */
    [KDA_SHARED] = {"kda of a state that warps share",
                    {.variant = "kda",
                     .io = TG_BF16,
                     .batch = 1,
                     .heads = 1,
                     .tokens = 40,
                     .dqk = 64,
                     .dhv = 24,
                     .schedule = "portable-shared-small",
                     .has_s0 = true},
                    false,
                    {0},
                    NULL},
    /* Two warpgroups with the columns of one state: in the place of the queries, and in memory of their own. */
    [GLA_SHARED] = {"gla of a state that warpgroups share",
                    {.variant = "gla",
                     .io = TG_BF16,
                     .batch = 1,
                     .heads = 1,
                     .tokens = 100,
                     .dqk = 264,
                     .dhv = 40,
                     .gates = OPEN,
                     .schedule = "walk-shared",
                     .has_s0 = true},
                    false,
                    {0},
                    NULL},
    [DELTA_SHARED_BACK] = {"gradients of gated-delta of a state that warpgroups share",
                           {.variant = "gated-delta",
                            .io = TG_BF16,
                            .batch = 1,
                            .heads = 1,
                            .tokens = 100,
                            .dqk = 128,
                            .dhv = 40,
                            .gates = OPEN,
                            .schedule = "walk-narrow",
                            .backward = "walk-parts-shared",
                            .has_s0 = true},
                           true,
                           {0},
                           NULL},
    /* Two blocks of dhv, whose sums go through memory in parts. */
    [DELTA_PARTS] = {"gated-delta in parts",
                     {.variant = "gated-delta",
                      .io = TG_BF16,
                      .batch = 1,
                      .heads = 2,
                      .tokens = 100,
                      .dqk = 64,
                      .dhv = 192,
                      .schedule = "walk",
                      .backward = "walk-parts",
                      .has_s0 = true},
                     true,
                     {0},
                     NULL},
    /* Walks that leave states on their way, with which others begin. */
    [DELTA_LEAVING] = {"gated-delta leaving states",
                       {.variant = "gated-delta",
                        .io = TG_BF16,
                        .batch = 1,
                        .heads = 2,
                        .tokens = 150,
                        .dqk = 64,
                        .dhv = 64,
                        .schedule = "walk-narrow",
                        .backward = "segments seg=1",
                        .has_s0 = true},
                       true,
                       {0},
                       NULL},
    /* Three thread blocks one after the other. */
    [DELTA_RELAY] = {"gated-delta relayed",
                     {.variant = "gated-delta",
                      .io = TG_BF16,
                      .batch = 1,
                      .heads = 2,
                      .tokens = 150,
                      .dqk = 64,
                      .dhv = 128,
                      .schedule = "relay seg=1",
                      .has_s0 = true},
                     false,
                     {0},
                     NULL},
    /* Two warpgroups that walk, one that makes tiles for them: more chunks than stages, the last not whole. */
    [MADE] = {"gated-delta made",
              {.variant = "gated-delta",
               .io = TG_BF16,
               .batch = 1,
               .heads = 1,
               .tokens = 460,
               .dqk = 64,
               .dhv = 128,
               .schedule = "walk",
               .has_s0 = true},
              false,
              {0},
              NULL},
    /* ... by as many thread blocks as the emulator's device has multiprocessors. */
    [MANY_MADE] = {"gated-delta made, many blocks",
                   {.variant = "gated-delta",
                    .io = TG_BF16,
                    .batch = 4,
                    .heads = 1,
                    .tokens = 260,
                    .dqk = 64,
                    .dhv = 128,
                    .schedule = "walk",
                    .has_s0 = true},
                   false,
                   {0},
                   NULL},
    [PACKED_MADE] = {"gated-delta packed, made",
                     {.variant = "gated-delta",
                      .io = TG_BF16,
                      .heads = 1,
                      .dqk = 64,
                      .dhv = 128,
                      .cuts = "0 114 194 260",
                      .schedule = "walk",
                      .has_s0 = true},
                     false,
                     {0},
                     spoil_last},
    /* ... and makes rows, in the places of what they are made of and beside it. */
    [ROWS_MADE] = {"kda made",
                   {.variant = "kda",
                    .io = TG_BF16,
                    .batch = 1,
                    .heads = 1,
                    .tokens = 460,
                    .dqk = 128,
                    .dhv = 128,
                    .schedule = "walk-made",
                    .has_s0 = true},
                   false,
                   {0},
                   NULL},
};

/* One of them, opened for the first test that wants it. Every mutant loads a program of its own in place of the trial's. */
struct under_test {
    const struct call_under_test *call;
    bool is_tried, is_open;
    struct trial forward, trial; /* the forward of a backward, or nothing */
    struct trial_call *begun;
    tg_truth truth;
};

static bool open_trial(struct under_test *u)
{
    if (!u->call->is_backward)
        return trial_open(&u->trial, &u->call->spec);
    if (!trial_open(&u->forward, &u->call->spec))
        return false;
    if (trial_runs(&u->forward) && trial_open_backward(&u->trial, &u->forward))
        return true;
    trial_close(&u->forward);
    return false;
}

static void close_trials(struct under_test *u)
{
    trial_close(&u->trial);
    if (u->call->is_backward)
        trial_close(&u->forward);
}

static bool open_call(struct under_test *u)
{
    if (!open_trial(u))
        return false;
    if (u->call->change)
        u->call->change(&u->trial.problem);
    if (tap_expect(truth_compute(&machine_context, &u->trial.problem, 0, &u->truth), "no oracle"))
        return true;
    close_trials(u);
    return false;
}

static bool has_call(struct under_test *u)
{
    if (!u->is_tried)
        u->is_open = open_call(u);
    u->is_tried = true;
    return tap_expect(u->is_open, "there is nothing to damage");
}

static void close_call(struct under_test *u)
{
    if (!u->is_open)
        return;
    tg_truth_free(&u->truth);
    close_trials(u);
}

/* ---- running ---- */

/* At one of the chunk sizes. */
static bool begin(void *user, int c)
{
    struct under_test *u = user;
    u->trial.chunk = u->call->chunks[c];
    return trial_begin(&u->trial, &u->begun) == TG_OK;
}

static const char *go(void *user, const tg_module *module)
{
    struct under_test *u = user;
    if (trial_go(u->begun, module) != TG_OK)
        return damage_kind();
    return outputs_match(&u->trial.problem, &u->truth, false) ? "nothing" : "numbers";
}

static void end(void *user)
{
    struct under_test *u = user;
    trial_end(u->begun);
}

static const tg_program *open_program(void *user)
{
    struct under_test *u = user;
    return has_call(u) ? u->trial.kernel.program : NULL;
}

static void tell(void *user)
{
    struct under_test *u = user;
    outputs_match(&u->trial.problem, &u->truth, true);
}

static const struct mutant mutants[] = {
#include "mutants.def"
};

/* ---- damage to the call ---- */

/* The forget gate's numbers taken for the input gate's. */
static void swapped_gates(const struct patient *patient)
{
    const tg_program *whole = patient->open(patient->user);
    if (!whole)
        return;
    tg_program program = *whole;
    const int f = tg_program_tensor(&program, "f"), i = tg_program_tensor(&program, "i");
    for (uint32_t a = 0; a < program.kernels[0].n_args; a++) {
        tg_arg_desc *arg = &program.kernels[0].args[a];
        if (arg->kind == TG_ARG_POINTER && (arg->index == f || arg->index == i))
            arg->index = (uint8_t)(f + i - arg->index);
    }
    emulator_seed(1);
    tap_expect(strcmp(damage_outcome(patient, &program, 0), "numbers") == 0, "not found out");
}

/* As a wrong constant would be. */
static void wrong_scale(const struct patient *patient, double factor)
{
    struct under_test *u = patient->user;
    const tg_program *program = patient->open(u);
    if (!program)
        return;
    const double scale = u->trial.problem.scale;
    u->trial.problem.scale = scale * factor;
    emulator_seed(1);
    const char *outcome = damage_outcome(patient, program, 0);
    u->trial.problem.scale = scale;
    tap_expect(strcmp(outcome, "numbers") == 0, "not found out");
}

/* The lines name instructions as LLVM writes them. */
void suite_mutants(void)
{
    harness_plainly(false);
    for (enum call_id id = 0; on_emulator() && id < N_CALLS; id++) {
        struct under_test u = {.call = &calls[id]};
        const struct patient patient = {u.call->name, &u, u.call->chunks[1] ? 2 : 1, open_program, begin, go, end};
        try_undamaged(&patient, tell);
        try_mutants(&patient, (int)id, mutants, sizeof mutants / sizeof *mutants);
        if (id == SIG && tap_begin("mutant of the call: gates exchanged")) {
            swapped_gates(&patient);
            tap_end();
        }
        if (id == SIG && tap_begin("mutant of the call: scale off by 2 percent")) {
            wrong_scale(&patient, 1.02);
            tap_end();
        }
        close_call(&u);
    }
    harness_plainly(true);
}
