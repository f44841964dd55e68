/* tests/compile/walks.c - kernels on warpgroups, on sm_90a. */
#include "compile.h"

#include "variants/variants.h"

/* Every block that they hold, for the plainest and the richest variants that walk; one of these in
 * packed sequences (gradients not: some of those spill a few words). */
static const struct walk {
    const char *schedule;
    struct width width;
    bool with_floor;    /* of the normalised variants alone */
    uint32_t group;     /* of gradients; 0: 1 */
    bool unpacked;      /* it takes no packed sequences */
    bool without_floor; /* not of these: refused, or ptxas serialises its products (C7512) */
} walks[] =
    {
        {.schedule = "walk", .width = {128, 256}},
        {.schedule = "walk", .width = {64, 256}},
        {.schedule = "walk", .width = {128, 512}},
        {.schedule = "walk walk.warps=4", .width = {64, 256}},
        {.schedule = "walk walk.dhv=128", .width = {128, 128}},
        {.schedule = "walk-wide", .width = {192, 384}},
        {.schedule = "walk-wide", .width = {256, 128}},
        {.schedule = "walk walk.dhv=512 walk.stages=2", .width = {64, 512}, .without_floor = true},
        {.schedule = "walk-narrow", .width = {192, 192}},
        {.schedule = "walk-narrow walk.stages=4", .width = {64, 64}},
        {.schedule = "walk walk.dhv=128 walk.warps=4", .width = {128, 128}},
        {.schedule = "walk-n", .width = {128, 256}, .with_floor = true},
        {.schedule = "walk-n-wide", .width = {256, 512}, .with_floor = true},
        {.schedule = "segments", .width = {128, 256}, .unpacked = true},
        {.schedule = "segments", .width = {64, 512}, .unpacked = true},
        {.schedule = "segments-wide", .width = {256, 128}, .unpacked = true},
        {.schedule = "segments-narrow", .width = {192, 64}, .unpacked = true},
        {.schedule = "walk-wide-cast", .width = {256, 512}},
        {.schedule = "walk-wide-cast4", .width = {256, 512}, .unpacked = true},
        {.schedule = "walk-n-wide-cast", .width = {128, 256}, .with_floor = true},
        {.schedule = "tfla-wgmma", .width = {128, 256}},
        {.schedule = "tfla-wgmma", .width = {64, 512}},
        {.schedule = "tfla-wgmma state.warps=8 state.dhv=256", .width = {128, 256}},
        {.schedule = "tfla-wgmma-wide", .width = {256, 512}},
        {.schedule = "tfla-wgmma-narrow", .width = {192, 64}},
        {.schedule = "walk-parts walk.dqk=192", .width = {384, 64}},
        {.schedule = "walk-parts", .width = {512, 128}},
        {.schedule = "segments-n", .width = {128, 256}, .with_floor = true},
        {.schedule = "segments-n-wide", .width = {256, 512}, .with_floor = true},
},
  back_walks[] = {
      {.schedule = "walk", .width = {128, 256}},
      {.schedule = "walk dV.stages=2", .width = {256, 128}},
      {.schedule = "walk-narrow", .width = {64, 64}},
      {.schedule = "walk-narrow", .width = {192, 128}},
      {.schedule = "walk-n", .width = {128, 256}, .with_floor = true},
      {.schedule = "walk-n", .width = {128, 128}, .with_floor = true},
      {.schedule = "segments", .width = {128, 256}},
      {.schedule = "segments-narrow", .width = {64, 64}},
      {.schedule = "tfla-wgmma", .width = {128, 256}},
      {.schedule = "tfla-wgmma-narrow", .width = {64, 64}},
      {.schedule = "walk-cluster", .width = {128, 512}},
      {.schedule = "walk-parts", .width = {128, 256}, .group = 4},
      {.schedule = "walk-parts-narrow", .width = {128, 64}, .group = 8},
      {.schedule = "walk-parts-deep", .width = {512, 256}},
      {.schedule = "walk-parts-narrow dQ.dhv=192 dK.dhv=192", .width = {192, 384}},
      {.schedule = "walk-cluster-cast", .width = {128, 256}},
      {.schedule = "walk-cluster-cast4", .width = {256, 512}},
      {.schedule = "walk-parts-heads", .width = {128, 64}, .group = 8, .without_floor = true},
};

/* Of the delta rule and of decays of a key dimension: widths beyond one thread block's, or beyond one left operand's. */
static const struct wide_walk {
    const tg_variant *variant;
    bool is_backward;
    struct walk walk;
} wide_walks[] = {
    {&tg_gated_delta, false, {.schedule = "walk", .width = {256, 256}}},
    {&tg_gated_delta, false, {.schedule = "segments-deep", .width = {208, 128}}},
    {&tg_delta_net, false, {.schedule = "walk-keep", .width = {256, 512}}},
    {&tg_gated_delta, true, {.schedule = "walk-parts", .width = {128, 256}}},
    {&tg_gated_delta, true, {.schedule = "walk-parts", .width = {208, 208}}},
    {&tg_delta_net, true, {.schedule = "walk-parts-split", .width = {256, 512}}},
    {&tg_gated_delta, true, {.schedule = "segments-parts", .width = {128, 256}}},
    {&tg_rwkv6, true, {.schedule = "walk-cluster", .width = {256, 512}}},
    {&tg_rwkv6, true, {.schedule = "walk-cluster", .width = {128, 384}}},
    {&tg_nla, true, {.schedule = "walk-n", .width = {128, 128}}},
    {&tg_nla, true, {.schedule = "walk", .width = {128, 256}}},
    {&tg_nla, true, {.schedule = "segments-n-grouped", .width = {64, 128}}},
    {&tg_nla, true, {.schedule = "walk-parts", .width = {256, 512}}},
    {&tg_gated_delta, true, {.schedule = "segments-all-paired-kept vcompose.warps=4", .width = {128, 128}, .group = 2}},
    {&tg_gated_delta, true, {.schedule = "segments-all ncompose.warps=4", .width = {128, 96}}},
    {&tg_gated_delta, true, {.schedule = "segments-all", .width = {192, 128}}},
    {&tg_kda, true, {.schedule = "segments-cluster", .width = {128, 256}}},
    {&tg_kda_safe, true, {.schedule = "walk-sums-cluster", .width = {128, 256}, .group = 2}},
    {&tg_kda, true, {.schedule = "walk-wide-cluster", .width = {256, 256}}},
    {&tg_gla, true, {.schedule = "walk-sums-cluster", .width = {256, 512}, .group = 2}},
    {&tg_gla, false, {.schedule = "walk-narrow", .width = {160, 128}}},
    {&tg_kda, false, {.schedule = "walk-wide-single", .width = {256, 512}}},
    {&tg_kda_safe, true, {.schedule = "walk-wide", .width = {192, 128}}},
    {&tg_kda_gate, false, {.schedule = "walk-wide", .width = {144, 128}}},
    {&tg_gated_delta, false, {.schedule = "walk-shared", .width = {512, 512}}},
    {&tg_delta_net, false, {.schedule = "walk-shared-keep", .width = {320, 128}}},
    {&tg_delta_net, true, {.schedule = "walk-parts-shared", .width = {512, 256}}},
    {&tg_gated_delta, true, {.schedule = "walk-shared", .width = {264, 256}}},
    {&tg_kda, false, {.schedule = "walk-wide-shared", .width = {512, 128}}},
    {&tg_kda, true, {.schedule = "walk-wide-shared", .width = {384, 256}}},
    {&tg_kda_safe, true, {.schedule = "walk-wide-sums-shared", .width = {384, 256}, .group = 2}},
    {&tg_gla, false, {.schedule = "walk-shared", .width = {512, 256}}},
    {&tg_rwkv6, true, {.schedule = "walk-shared", .width = {512, 512}}},
    {&tg_nla, false, {.schedule = "walk-shared", .width = {512, 256}}},
    {&tg_nla, true, {.schedule = "walk-parts-shared", .width = {512, 512}}},
    {&tg_mlstm_sig, true, {.schedule = "walk-joint", .width = {128, 256}, .group = 1}},
    {&tg_simple_gla, true, {.schedule = "walk-joint", .width = {128, 128}, .group = 1}},
    {&tg_simple_gla, true, {.schedule = "segments-joint", .width = {96, 224}, .group = 1}},
    {&tg_mlstm_sig, true, {.schedule = "walk-joint-narrow", .width = {64, 128}, .group = 1}},
    {&tg_linear, true, {.schedule = "walk-joint", .width = {128, 256}, .group = 1}},
};

static void cover_walk(const tg_variant *variant, const struct walk *walk, size_t i, const char *ptxas)
{
    const tg_target *target = tg_target_find("sm_90a");
    const bool packed = variant == &tg_mamba2 && !walk->unpacked;
    tg_shape_class shape = {.io = types[i % 2],
                            .dqk = walk->width.dqk,
                            .dhv = walk->width.dhv,
                            .group = walk->group                       ? walk->group
                                     : variant->backward && i % 3 == 1 ? 2
                                                                       : 1,
                            .packed = packed,
                            .pooled = i % 4 == 1};
    tg_schedule schedule;
    if (!tap_begin("%s of %s, %s dqk %u dhv %u%s%s%s%s", walk->schedule, variant->name, tg_dtype_name(shape.io),
                   shape.dqk, shape.dhv, shape.group > 1 ? ", shared heads" : "", packed ? ", packed" : "",
                   shape.pooled ? ", pooled" : "", ptxas ? "" : " (no ptxas: not assembled)"))
        return;
    log_clear();
    if (tap_expect(schedule_of(variant, walk->schedule, &schedule), "no schedule: %s", log_text()))
        compile_with(variant, &schedule, target, &shape, ptxas);
    tap_end();
}

static void cover_wide_walks(const char *ptxas)
{
    for (size_t i = 0; i < sizeof wide_walks / sizeof *wide_walks; i++) {
        const struct wide_walk *of = &wide_walks[i];
        cover_walk(of->is_backward ? of->variant->backward : of->variant, &of->walk, i, ptxas);
    }
}

void suite_walks(const char *ptxas)
{
    cover_wide_walks(ptxas);
    const tg_variant *const variants[] = {&tg_mlstm_sig, &tg_mlstm_exp, &tg_mamba2};
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        for (size_t i = 0; i < sizeof walks / sizeof *walks; i++)
            if (variants[v] == &tg_mlstm_exp ? !walks[i].without_floor : !walks[i].with_floor)
                cover_walk(variants[v], &walks[i], i, ptxas);
        for (size_t i = 0; i < sizeof back_walks / sizeof *back_walks; i++)
            if (variants[v] == &tg_mlstm_exp ? !back_walks[i].without_floor : !back_walks[i].with_floor)
                cover_walk(variants[v]->backward, &back_walks[i], i, ptxas);
    }
}
