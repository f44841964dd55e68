/* tests/kernels/cases.c - every line of cases.def against the fp64 oracle. */
#include "harness.h"
#include "suites.h"

#define CASE(io_, b, nh, t, dqk_, dhv_, l, schedule_, gates_, s0, layout_, scale_)                                     \
    {                                                                                                                  \
        .name = #io_ " B=" #b " NH=" #nh " T=" #t " dqk=" #dqk_ " dhv=" #dhv_ " L=" #l " " #gates_ " S0=" #s0          \
                     " " #layout_ " x" #scale_ " ",                                                                    \
        SPEC_SIZES(io_, b, nh, t, dqk_, dhv_),                                                                         \
        .chunk = l,                                                                                                    \
        .schedule = schedule_,                                                                                         \
        .gates = gates_,                                                                                               \
        .has_s0 = s0,                                                                                                  \
        .layout = layout_,                                                                                             \
        .scale = scale_,                                                                                               \
    },
static const struct spec specs[] = {
#include "cases.def"
};
#undef CASE

/* ---- schedules at random ---- */

static const char *const schedules[] = {"tfla", "tfla-small", "tfla-fp32"};
static const char *const changes[] = {
    "H.Lhq=32",      "H.Lhq=64",      "H.Lhq=128",     "H.Lkv=16",       "H.Lkv=32",       "H.Lkv=64",
    "H.Lkv=128",     "H.dqk=16",      "H.dqk=32",      "H.dqk=64",       "H.dqk=128",      "H.dhv=16",
    "H.dhv=32",      "H.dhv=64",      "H.dhv=128",     "H.warps=1",      "H.warps=2",      "H.warps=8",
    "H.stages=1",    "H.stages=3",    "H.stages=5",    "state.Lkv=16",   "state.Lkv=32",   "state.Lkv=128",
    "state.dqk=16",  "state.dqk=32",  "state.dqk=64",  "state.dhv=16",   "state.dhv=32",   "state.dhv=64",
    "state.warps=1", "state.warps=2", "state.warps=8", "state.stages=1", "state.stages=4", "H.dqk=48",
};
static const int64_t widths[] = {16, 24, 40, 64, 72, 96, 136};
static const int64_t lengths[] = {1, 33, 64, 130, 200, 300};
enum { N_SCHEDULES = 3, N_CHANGES = 36, N_WIDTHS = 7, N_LENGTHS = 6, N_DRAWS = 160, MOST_CHANGES = 4 };

/* Three of four draws keep to what the type needs; what the compiler refuses is no failure. */
static void draw_spec(uint64_t at, struct spec *spec, char text[TG_SCHEDULE_TEXT])
{
    const tg_random random = {at, tg_num_stream("schedules")};
    uint64_t n = 0;
    const uint64_t which = tg_num_bits(random, n++) % N_SCHEDULES;
    *spec = (struct spec){.name = "", .batch = 1, .heads = 2, .gates = ORDINARY, .has_s0 = true, .schedule = text};
    spec->io = which == 2 ? TG_F32 : tg_num_bits(random, n++) % 4 ? TG_BF16 : TG_F16;
    spec->dqk = widths[tg_num_bits(random, n++) % N_WIDTHS];
    spec->dhv = widths[tg_num_bits(random, n++) % N_WIDTHS];
    spec->tokens = lengths[tg_num_bits(random, n++) % N_LENGTHS];
    spec->layout = (enum layout)(tg_num_bits(random, n++) % 3);
    spec->chunk = 128 << tg_num_bits(random, n++) % 3;
    size_t length = (size_t)snprintf(text, TG_SCHEDULE_TEXT, "%s", schedules[which]);
    for (uint64_t c = 1 + tg_num_bits(random, n++) % MOST_CHANGES; c > 0; c--)
        length += (size_t)snprintf(text + length, TG_SCHEDULE_TEXT - length, " %s",
                                   changes[tg_num_bits(random, n++) % N_CHANGES]);
}

static bool is_accepted(const struct spec *spec)
{
    const tg_target *target = machine_context.machine.target;
    const tg_shape_class class = {.io = spec->io, .dqk = (uint32_t)spec->dqk, .dhv = (uint32_t)spec->dhv};
    tg_schedule schedule;
    machine_context.sink = log_sink;
    log_clear();
    return schedule_from_text(&machine_context, &tg_mlstm_sig, target, &class, NULL, spec->schedule, &schedule) &&
           tg_plan_check(&schedule, target, &class, &log_sink) == TG_OK;
}

static void suite_random(void)
{
    for (uint64_t at = 0; at < N_DRAWS; at++) {
        struct spec spec;
        struct trial trial;
        char text[TG_SCHEDULE_TEXT];
        draw_spec(at, &spec, text);
        if (!is_accepted(&spec) ||
            !tap_begin("draw %d: %s B=1 NH=2 T=%d dqk=%d dhv=%d L=%d layout %d %s", (int)at, tg_dtype_name(spec.io),
                       (int)spec.tokens, (int)spec.dqk, (int)spec.dhv, (int)spec.chunk, (int)spec.layout, text))
            continue;
        if (trial_open(&trial, &spec)) {
            emulator_seed(at + 1);
            if (trial_runs(&trial))
                outputs_right(&trial.problem);
            trial_close(&trial);
        }
        tap_end();
    }
}

void suite_cases(void)
{
    suite_random();
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct trial trial;
        if (!tap_begin("case %s%s", specs[i].name, specs[i].schedule))
            continue;
        if (trial_open(&trial, &specs[i])) {
            emulator_seed(i + 1);
            if (trial_runs(&trial))
                outputs_right(&trial.problem);
            trial_close(&trial);
        }
        tap_end();
    }
}
