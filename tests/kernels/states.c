/* tests/kernels/states.c - every line of states.def: what docs/states.md promises of states. */
#include "states.h"
#include "suites.h"

#include <string.h>

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
#define NONE         NULL
#define SLOTS        .pool = TG_POOL_SLOTS
#define MOVES        .pool = TG_POOL_MOVES
#define FROM(...)    .read = {__VA_ARGS__}
#define LENGTHS(...) .length = {__VA_ARGS__}
#define COUNTS(...)  .is_counted = true, .count = {__VA_ARGS__}
#define EACH(...)    .pool = TG_POOL_TOKENS, .each = {__VA_ARGS__}
#define CHUNKS(...)  .pool = TG_POOL_CHUNKS, .each = {__VA_ARGS__}
#define TO(...)      .written = {__VA_ARGS__}
#define AT(...)      .read = {__VA_ARGS__}, .written = {__VA_ARGS__}
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
        contract_kept(&trial, NULL, contract);
    trial_close(&trial);
}

/* The first tokens of every row. */
static void copy_first(const tg_host_tensor *from, tg_host_tensor *to)
{
    const size_t bytes = to->bytes / (size_t)(to->extent[0] * to->extent[1]),
                 apart = from->bytes / (size_t)(from->extent[0] * from->extent[1]);
    for (size_t row = 0; row < (size_t)(to->extent[0] * to->extent[1]); row++)
        memcpy((char *)to->data + row * bytes, (const char *)from->data + row * apart, bytes);
}

/* The same step with fewer tokens. */
static bool open_first(struct trial *trial, const struct spec *spec, const struct trial *whole)
{
    if (!trial_open(trial, spec))
        return false;
    for (uint32_t i = 0; i < trial->problem.n_tensors; i++) {
        tg_host_tensor *to = &trial->problem.tensors[i];
        const tg_host_tensor *from = &whole->problem.tensors[i];
        if (to->flags & TG_IN && to->data)
            copy_first(from, to);
    }
    return trial_runs(trial);
}

/* Sequences of fewer tokens, or states behind each or behind chunks: as calls of fewer tokens leave them. */
static void try_ragged(const struct trial *whole, const struct contract *contract)
{
    enum { MOST = 256, AT_ONCE = 16 };
    static struct trial first[AT_ONCE];
    static struct spec spec[AT_ONCE];
    const struct trial *after[MOST] = {NULL};
    int n = 0, step = contract_step(contract);
    bool ok = true;
    after[whole->problem.shape.tokens] = whole;
    for (int64_t b = 0; b < whole->problem.shape.batch; b++)
        for (int last = contract_tokens(whole, contract, b), end = 0; end < last && ok;) {
            end = end + step < last ? end + step : last;
            if (after[end])
                continue;
            spec[n] = *whole->spec;
            spec[n].tokens = end;
            after[end] = &first[n];
            ok = n < AT_ONCE && open_first(&first[n], &spec[n], whole);
            n += ok;
        }
    if (ok)
        contract_kept(whole, after, contract);
    while (n--)
        trial_close(&first[n]);
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
                if (contract_is_ragged(&c->contract))
                    try_ragged(&trial, &c->contract);
                else
                    contract_kept(&trial, NULL, &c->contract);
                if (c->spec.backward)
                    try_backward(&trial, &c->contract);
            }
            trial_close(&trial);
        }
        tap_end();
    }
}
