/* tests/kernels/results.c */
#include "results.h"

#include <stdlib.h>
#include <string.h>

void results_take(struct results *results, tg_problem *problem)
{
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        tg_host_tensor *tensor = &problem->tensors[i];
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

tg_host_tensor *results_find(struct results *results, const char *name)
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

bool results_anew(const struct spec *spec, change_fn *change, void *user, struct results *results)
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

/* ---- what calls of late came to ---- */

enum { MOST_KEPT = 4, KEY = 512 };

static struct kept {
    char key[KEY];
    struct results results;
} kept[MOST_KEPT]; /* the last one used comes first */

/* All that a spec says. False: one that goes by another variant than that of its name, or one too long. */
static bool write_key(const struct spec *s, char key[KEY])
{
    const char *const texts[] = {s->variant, s->schedule, s->backward, s->without, s->cuts, s->scalars};
    int n = snprintf(key, KEY, "%d %lld %lld %lld %lld %lld %lld %lld %d %d %d %d %d %d %d %a", (int)s->io,
                     (long long)s->batch, (long long)s->heads, (long long)s->tokens, (long long)s->dqk,
                     (long long)s->dhv, (long long)s->chunk, (long long)s->group, (int)s->gates, s->has_s0, s->no_final,
                     s->zero_states, (int)s->layout, s->is_wide, s->is_pooled, s->scale);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && n < KEY; i++)
        n += snprintf(key + n, (size_t)(KEY - n), "|%s", texts[i] ? texts[i] : "(none)");
    return n < KEY && !s->own;
}

static bool results_copy(const struct results *from, struct results *to)
{
    *to = (struct results){.n = 0};
    for (uint32_t i = 0; i < from->n; i++) {
        const tg_host_tensor *tensor = &from->tensors[i];
        void *data = malloc(tensor->bytes + 1);
        if (!data) {
            results_free(to);
            return false;
        }
        to->tensors[to->n] = *tensor;
        to->tensors[to->n++].data = memcpy(data, tensor->data, tensor->bytes);
    }
    return true;
}

/* To the front: there already, or in place of the one that has not been used for longest. */
static bool find_kept(const char *key)
{
    int i = 0;
    while (i < MOST_KEPT - 1 && strcmp(kept[i].key, key) != 0)
        i++;
    const struct kept found = kept[i];
    memmove(&kept[1], &kept[0], (size_t)i * sizeof *kept);
    kept[0] = found;
    return strcmp(found.key, key) == 0;
}

static void keep(const char *key, const struct results *results)
{
    results_free(&kept[0].results);
    kept[0].key[0] = '\0';
    if (results_copy(results, &kept[0].results))
        memcpy(kept[0].key, key, KEY);
}

bool results_of(const struct spec *spec, struct results *results)
{
    char key[KEY];
    if (!write_key(spec, key))
        return results_anew(spec, NULL, NULL, results);
    if (find_kept(key))
        return results_copy(&kept[0].results, results);
    emulator_seed(1);
    if (!results_anew(spec, NULL, NULL, results))
        return false;
    keep(key, results);
    return true;
}

void results_forget(void)
{
    for (int i = 0; i < MOST_KEPT; i++)
        results_free(&kept[i].results);
    memset(kept, 0, sizeof kept);
}

/* ---- comparison ---- */

void expect_same(struct results *x, struct results *y, const char *what)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const tg_host_tensor *a = &x->tensors[i], *b = results_find(y, a->name);
        n += b != NULL;
        tap_expect(!b || (a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0), "%s differs: %s", a->name,
                   what);
    }
    tap_expect(n > 0, "nothing to compare: %s", what);
}

void expect_near(const tg_host_tensor *x, const tg_host_tensor *y, double limit, const char *what)
{
    const tg_tensor_error error =
        tg_num_compare((tg_const_array){x->data, x->dtype, x->n}, (tg_const_array){y->data, y->dtype, y->n});
    tap_expect(!error.finite_mismatch && error.rms_ratio <= limit, "%s, %s: rms %.2e, at most %.2e", x->name, what,
               error.rms_ratio, limit);
}

/* ---- parts ---- */

void part_of_tensor(const struct part *at, const tg_host_tensor *whole, const tg_host_tensor *part, bool to_whole)
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

void take_part(tg_problem *problem, void *user)
{
    const struct part *parts = user, *at = &parts[0];
    if (at->whole->variant != problem->variant)
        at = &parts[1];
    for (uint32_t i = 0; i < problem->n_tensors; i++) {
        const tg_host_tensor *to = &problem->tensors[i];
        const tg_host_tensor *from = tg_problem_tensor((tg_problem *)at->whole, to->name);
        if (to->flags & TG_IN && to->data && from && from->data && !to->is_fed && !to->is_kept)
            part_of_tensor(at, from, to, false);
    }
}
