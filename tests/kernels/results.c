/* tests/kernels/results.c */
#include "results.h"

#include <stdlib.h>
#include <string.h>

void results_take(struct results *results, struct problem *problem)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        struct host_tensor *tensor = &problem->tensors[i];
        if (!(tensor->flags & TG_OUT) || !tensor->data || tensor->is_kept || results->n == TG_MAX_TENSORS)
            continue;
        results->tensors[results->n++] = *tensor;
        tensor->data = NULL;
    }
}

void results_free(struct results *results)
{
    while (results->n > 0)
        free(results->tensors[--results->n].data);
}

struct host_tensor *results_find(struct results *results, const char *name)
{
    for (uint32_t i = 0; i < results->n; i++)
        if (strcmp(results->tensors[i].name, name) == 0)
            return &results->tensors[i];
    return NULL;
}

/* The forward's results go before the backward's end, which they feed. */
static bool run_backward(const struct trial *forward, change_fn *change, void *user, struct results *results)
{
    struct trial trial;
    if (!forward->spec->backward)
        return true;
    if (!trial_open_backward(&trial, forward))
        return false;
    if (change)
        change(&trial.problem, user);
    const bool ok = trial_runs(&trial);
    if (ok)
        results_take(results, &trial.problem);
    trial_close(&trial);
    return ok;
}

bool results_of(const struct spec *spec, change_fn *change, void *user, struct results *results)
{
    struct trial trial;
    *results = (struct results){.n = 0};
    if (!trial_open(&trial, spec))
        return false;
    if (change)
        change(&trial.problem, user);
    const bool ok = trial_runs(&trial) && run_backward(&trial, change, user, results);
    if (ok)
        results_take(results, &trial.problem);
    trial_close(&trial);
    return ok;
}

/* ---- comparison ---- */

void expect_same(struct results *x, struct results *y, const char *what)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct host_tensor *a = &x->tensors[i], *b = results_find(y, a->name);
        n += b != NULL;
        tap_expect(!b || (a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0), "%s differs: %s", a->name,
                   what);
    }
    tap_expect(n > 0, "nothing to compare: %s", what);
}

void expect_near(const struct host_tensor *x, const struct host_tensor *y, double limit, const char *what)
{
    const struct tensor_error error = num_compare((struct num_const_array){x->data, x->dtype, x->n},
                                                  (struct num_const_array){y->data, y->dtype, y->n});
    tap_expect(!error.finite_mismatch && error.rms_ratio <= limit, "%s, %s: rms %.2e, at most %.2e", x->name, what,
               error.rms_ratio, limit);
}

/* ---- parts ---- */

void part_of_tensor(const struct part *at, const struct host_tensor *whole, const struct host_tensor *part,
                    bool to_whole)
{
    const size_t heads = (size_t)part->extent[1], part_bytes = heads ? part->bytes / heads : 0;
    const size_t entries = (size_t)whole->extent[0] * heads;
    const size_t whole_bytes = entries ? whole->bytes / entries : 0;
    const int64_t *cuts = at->whole->cuts.at;
    size_t entry = 0, skip = 0;
    if (whole->has_tokens && cuts)
        skip = (size_t)(cuts[at->sequence] + at->first);
    else if (!(whole->flags & TG_NO_BATCH))
        entry = (size_t)at->sequence;
    if (whole->has_tokens && !cuts)
        skip = (size_t)at->first;
    if (whole->has_tokens)
        skip *= whole_bytes / (size_t)whole->extent[2];
    for (size_t head = 0; head < heads; head++) {
        char *a = (char *)whole->data + (entry * heads + head) * whole_bytes + skip;
        char *b = (char *)part->data + head * part_bytes;
        memcpy(to_whole ? a : b, to_whole ? b : a, part_bytes);
    }
}

void take_part(struct problem *problem, void *user)
{
    const struct part *parts = user, *at = &parts[0];
    if (at->whole->variant != problem->variant)
        at = &parts[1];
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const struct host_tensor *to = &problem->tensors[i];
        const struct host_tensor *from = problem_tensor((struct problem *)at->whole, to->name);
        if (to->flags & TG_IN && to->data && from && from->data && !to->is_fed && !to->is_kept)
            part_of_tensor(at, from, to, false);
    }
}
