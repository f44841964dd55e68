/* tests/kernels/cases.c - every line of cases.def against the fp64 oracle. */
#include "harness.h"
#include "suites.h"

#define CASE(io, b, nh, t, dqk, dhv, chunk, schedule, gates, s0, layout, scale)                    \
    {#io " B=" #b " NH=" #nh " T=" #t " dqk=" #dqk " dhv=" #dhv " L=" #chunk " " #gates " S0=" #s0 \
         " " #layout " x" #scale " ",                                                              \
     TG_##io,                                                                                      \
     b,                                                                                            \
     nh,                                                                                           \
     t,                                                                                            \
     dqk,                                                                                          \
     dhv,                                                                                          \
     chunk,                                                                                        \
     schedule,                                                                                     \
     gates,                                                                                        \
     s0,                                                                                           \
     layout,                                                                                       \
     scale},
static const struct spec specs[] = {
#include "cases.def"
};
#undef CASE

void suite_cases(void)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct trial trial;
        if (!tap_begin("case %s%s", specs[i].name, specs[i].schedule))
            continue;
        if (trial_open(&trial, &specs[i])) {
            emulator_seed(i + 1);
            if (trial_runs(&trial))
                outputs_right(&trial.problem, true);
            trial_close(&trial);
        }
        tap_end();
    }
}
