/* tests/compile/combinations.c - any combination of fields either compiles or is refused with a reason: LLVM never aborts,
 * and no plan that passed its checks fails later. */
#include "assembled.h"
#include "compile.h"

#include "variants/variants.h"

#include <string.h>

struct combination {
    const tg_variant *variant;
    tg_schedule schedule;
    tg_shape_class shape;
    const tg_target *target;
};

/* Picks of a stream of random numbers. */
static uint64_t pick(uint64_t *draw, uint64_t n)
{
    return tg_num_bits((tg_random){11, tg_num_stream("combinations")}, (*draw)++) % n;
}

/* Half of the draws are of mlstm-sig, whose rows the fields name. */
static void draw_variant(uint64_t *draw, struct combination *c)
{
    uint64_t n_variants = 0, n_schedules = 0;
    while (tg_builtin_variants[n_variants])
        n_variants++;
    c->variant = pick(draw, 2) ? tg_builtin_variants[pick(draw, n_variants)] : &tg_mlstm_sig;
    if (pick(draw, 3) == 0)
        c->variant = c->variant->backward;
    while (tg_variant_schedule(c->variant, (uint32_t)n_schedules, &c->schedule))
        n_schedules++;
    (void)tg_variant_schedule(c->variant, (uint32_t)pick(draw, n_schedules), &c->schedule);
}

static bool is_on_warpgroups(const tg_schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->n_rows; r++)
        if (schedule->rows[r].mma == TG_MMA_WGMMA)
            return true;
    return false;
}

/* Half of the schedules on warpgroups are drawn again: few targets and widths take them, and the next draw is theirs. */
static void draw_combination(uint64_t *draw, struct combination *c)
{
    static const char *const fields[] = {
        "H.Lhq",     "H.Lkv",      "H.dqk",  "H.dhv",  "H.warps",      "H.stages",        "state.Lkv",   "state.dqk",
        "state.dhv", "chunk",      "dQ.Lhq", "dK.Lkv", "state.stages", "H.blocks_per_sm", "gates.warps", "gates.Lkv",
        "step.dhv",  "step.warps", "dQ.dhv", "dV.dqk", "nsum.dqk",     "state.warps",     "maxima.warps"};
    static const uint32_t values[] = {0, 1, 2, 3, 4, 8, 16, 32, 48, 64, 128, 256, 512};
    static const uint32_t sizes[] = {16, 24, 64, 136, 256, 512};
    static const uint32_t tokens[] = {0, 0, 0, 1, 2, 8, 9};
    do {
        draw_variant(draw, c);
    } while (is_on_warpgroups(&c->schedule) && pick(draw, 2));
    c->shape = (tg_shape_class){.io = types[pick(draw, N_TYPES)],
                                .dqk = sizes[pick(draw, 6)],
                                .dhv = sizes[pick(draw, 6)],
                                .group = (uint32_t)pick(draw, 3),
                                .tokens = tokens[pick(draw, 7)],
                                .packed = pick(draw, 3) == 0,
                                .pooled = pick(draw, 3) == 0};
    c->target = tg_targets()[pick(draw, N_TARGETS)];
    for (uint64_t n = pick(draw, 4); n > 0; n--) {
        char change[64];
        const char *field = fields[pick(draw, sizeof fields / sizeof *fields)];
        snprintf(change, sizeof change, "%s=%u", field, values[pick(draw, 13)]);
        tg_schedule_apply(change, &c->schedule, &silent_sink);
    }
}

static tg_status try_combination(const struct combination *c, int number)
{
    tg_program *program = NULL;
    log_clear();
    assembled_ask(ASSEMBLED_CODE);
    const tg_status status = tg_compile(c->variant, &c->schedule, c->target, &c->shape, NULL, &program, &log_sink);
    assembled_ask(ASSEMBLED_NOTHING);
    tap_expect((status == TG_OK) == (program != NULL), "combination %d: status %d", number, (int)status);
    tap_expect(status == TG_OK || *log_text(), "combination %d: no reason", number);
    tap_expect(status != TG_E_COMPILE && !strstr(log_text(), "TG0590") && !strstr(log_text(), "TG0599"),
               "combination %d, %s %s %s dqk %u dhv %u: %s", number, c->variant->name, c->target->arch,
               tg_dtype_name(c->shape.io), c->shape.dqk, c->shape.dhv, log_text());
    tg_program_free(program);
    return status;
}

/* Walks, forward and backward, of widths and blocks that are seldom drawn together otherwise. */
static void draw_walk(uint64_t *draw, struct combination *c)
{
    static const char *const changes[] = {
        "walk.dhv=64", "walk.dhv=128", "walk.dhv=512", "walk.warps=4", "walk.stages=2", "walk.stages=4",  "dQ.dqk=64",
        "dQ.warps=4",  "dK.dqk=64",    "dK.warps=4",   "dV.dhv=64",    "dV.dhv=128",    "dV.warps=4",     "dV.stages=2",
        "dK.dqk=256",  "walk.seg=1",   "dQ.seg=7",     "state.dhv=64", "state.dqk=64",  "dstate.warps=4", "dQ.dhv=64",
        "dQ.dhv=128",  "dK.dhv=192",   "dKsum.dqk=64", "dQsum.warps=2"};
    static const uint32_t sizes[] = {64, 128, 192, 256, 512};
    do {
        draw_variant(draw, c);
    } while (!is_on_warpgroups(&c->schedule));
    c->shape = (tg_shape_class){.io = types[pick(draw, 2)],
                                .dqk = sizes[pick(draw, 5)],
                                .dhv = sizes[pick(draw, 5)],
                                .group = (uint32_t)pick(draw, 3),
                                .packed = pick(draw, 3) == 0,
                                .pooled = pick(draw, 3) == 0};
    c->target = tg_target_find("sm_90a");
    for (uint64_t n = pick(draw, 4); n > 0; n--)
        tg_schedule_apply(changes[pick(draw, sizeof changes / sizeof *changes)], &c->schedule, &silent_sink);
}

static void try_combinations(void (*draw_one)(uint64_t *, struct combination *), int n)
{
    uint64_t draw = 0;
    int n_compiled = 0, n_refused = 0;
    for (int i = 0; i < n; i++) {
        struct combination c;
        draw_one(&draw, &c);
        const bool ok = try_combination(&c, i) == TG_OK;
        n_compiled += ok;
        n_refused += !ok;
    }
    tap_note("%d compiled, %d refused", n_compiled, n_refused);
    tap_expect(n_compiled > n / 8 && n_refused > n / 8, "a one-sided draw");
}

void suite_combinations(void)
{
    if (tap_begin("any combination compiles or is refused with a reason")) {
        try_combinations(draw_combination, 400);
        tap_end();
    }
    if (tap_begin("any walk compiles or is refused with a reason")) {
        try_combinations(draw_walk, 200);
        tap_end();
    }
}
