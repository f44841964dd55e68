/* tests/kernels/states.c - every line of states.def: what docs/states.md promises of states. */
#include "states.h"
#include "suites.h"

struct state_case {
    struct spec spec;
    struct contract contract;
};

#define CONTRACT(...)                                                                                                  \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define STATES(variant_, io_, b, nh, t, dqk_, dhv_, forward_, backward_, contract_, ...)                               \
    {{.name = #io_ " B=" #b " NH=" #nh " T=" #t " dqk=" #dqk_ " dhv=" #dhv_ " " forward_ " " #backward_ " " #contract_ \
                   " " #__VA_ARGS__,                                                                                   \
      .variant = variant_,                                                                                             \
      .io = TG_##io_,                                                                                                  \
      .batch = b,                                                                                                      \
      .heads = nh,                                                                                                     \
      .tokens = t,                                                                                                     \
      .dqk = dqk_,                                                                                                     \
      .dhv = dhv_,                                                                                                     \
      .schedule = forward_,                                                                                            \
      .backward = backward_,                                                                                           \
      .has_s0 = true,                                                                                                  \
      __VA_ARGS__},                                                                                                    \
     CONTRACT contract_},
#define NONE      NULL
#define SLOTS     .pool = TG_POOL_SLOTS
#define MOVES     .pool = TG_POOL_MOVES
#define FROM(...) .read = {__VA_ARGS__}
#define TO(...)   .written = {__VA_ARGS__}
#define AT(...)   .read = {__VA_ARGS__}, .written = {__VA_ARGS__}
static const struct state_case cases[] = {
#include "states.def"
};

/* What the gradient of the final state is read from is where the initial state was: one table for inputs, one for outputs. */
static void try_backward(const struct trial *forward, const struct contract *contract)
{
    struct trial trial;
    if (!trial_open_backward(&trial, forward))
        return;
    contract_prepare(&trial, contract);
    if (trial_runs(&trial))
        contract_kept(&trial, contract);
    trial_close(&trial);
}

void suite_states(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct state_case *c = &cases[i];
        struct trial trial;
        if (!tap_begin("contract %s %s", c->spec.variant, c->spec.name))
            continue;
        emulator_seed(i + 1);
        if (trial_open(&trial, &c->spec)) {
            contract_prepare(&trial, &c->contract);
            if (trial_runs(&trial)) {
                contract_kept(&trial, &c->contract);
                if (c->spec.backward)
                    try_backward(&trial, &c->contract);
            }
            trial_close(&trial);
        }
        tap_end();
    }
}
