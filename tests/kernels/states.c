/* tests/kernels/states.c - every line of states.def: what docs/states.md promises of states. */
#include "state_line.h"
#include "suites.h"

#include <string.h>

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
    if (trial_runs(trial))
        return true;
    trial_close(trial);
    return false;
}

static bool add_first(struct firsts *firsts, const struct trial *whole, int tokens)
{
    enum { MOST = sizeof firsts->trials / sizeof *firsts->trials };
    if (firsts->after[tokens])
        return true;
    if (!tap_expect(firsts->n < MOST, "more than %d lengths", MOST))
        return false;
    struct trial *trial = &firsts->trials[firsts->n];
    struct spec *spec = &firsts->specs[firsts->n];
    *spec = *whole->spec;
    spec->tokens = tokens;
    if (!open_first(trial, spec, whole))
        return false;
    firsts->after[tokens] = trial;
    firsts->n++;
    return true;
}

bool firsts_open(struct firsts *firsts, const struct trial *whole, const struct contract *contract)
{
    const int step = contract_step(contract);
    bool ok = true;
    *firsts = (struct firsts){.n = 0};
    firsts->after[whole->problem.shape.tokens] = whole;
    for (int64_t b = 0; b < whole->problem.shape.batch; b++)
        for (int last = contract_tokens(whole, contract, b), end = 0; end < last && ok;) {
            end = end + step < last ? end + step : last;
            ok = add_first(firsts, whole, end);
        }
    if (!ok)
        firsts_close(firsts);
    return ok;
}

void firsts_close(struct firsts *firsts)
{
    while (firsts->n)
        trial_close(&firsts->trials[--firsts->n]);
}

/* Sequences of fewer tokens, or states behind each or behind chunks: as calls of fewer tokens leave them. */
static void try_ragged(const struct trial *whole, const struct contract *contract)
{
    static struct firsts firsts;
    if (firsts_open(&firsts, whole, contract))
        contract_kept(whole, firsts.after, contract);
    firsts_close(&firsts);
}

void try_contract(const struct spec *spec, const struct contract *contract, uint64_t seed)
{
    struct trial trial;
    emulator_seed(seed);
    if (!trial_open(&trial, spec))
        return;
    contract_prepare(&trial, contract);
    if (trial_runs(&trial)) {
        if (contract_is_ragged(contract))
            try_ragged(&trial, contract);
        else
            contract_kept(&trial, NULL, contract);
        if (spec->backward)
            try_backward(&trial, contract);
    }
    trial_close(&trial);
}

void suite_states(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!tap_begin("contract %s %s", cases[i].spec.variant, cases[i].spec.name))
            continue;
        try_contract(&cases[i].spec, &cases[i].contract, i + 1);
        tap_end();
    }
}
