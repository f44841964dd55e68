/* tests/kernels/family.c - every line of family.def, forward then backward, against the fp64
 * oracle. */
#include "harness.h"
#include "suites.h"

#define FAMILY(variant_, io_, b, nh, t, dqk_, dhv_, gates_, forward_, backward_, ...)                                  \
    {.name = #io_ " B=" #b " NH=" #nh " T=" #t " dqk=" #dqk_ " dhv=" #dhv_ " " #gates_ " " #forward_ " " #backward_    \
                  " " #__VA_ARGS__,                                                                                    \
     .variant = variant_,                                                                                              \
     SPEC_SIZES(io_, b, nh, t, dqk_, dhv_),                                                                            \
     .gates = gates_,                                                                                                  \
     .schedule = forward_,                                                                                             \
     .backward = backward_,                                                                                            \
     __VA_ARGS__},
#define NONE NULL
static const struct spec specs[] = {
#include "family.def"
};
#undef FAMILY

static void try_backward(const struct trial *forward)
{
    struct trial trial;
    if (!trial_open_backward(&trial, forward))
        return;
    if (trial_runs(&trial))
        outputs_right(&trial.problem);
    trial_close(&trial);
}

void try_both_ways(const struct spec *spec, uint64_t seed)
{
    struct trial trial;
    if (!trial_open(&trial, spec))
        return;
    emulator_seed(seed);
    if (trial_runs(&trial)) {
        outputs_right(&trial.problem);
        if (spec->backward)
            try_backward(&trial);
    }
    trial_close(&trial);
}

void suite_family(void)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        if (!tap_begin("family %s %s", specs[i].variant, specs[i].name))
            continue;
        try_both_ways(&specs[i], i + 1);
        tap_end();
    }
}
