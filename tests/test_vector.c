/* test_vector.c - the fp64 truth of the vector-gate family and of the delta rule against results of another program, in
 * tests/data, and its gradients against finite differences of its values (with groups of heads and packed sequences).
 * test_vector [--only TEXT], from the repository's root. */
#include "kernels/tap.h"
#include "tuning/numbers.h"
#include "safetensors.h"
#include "variants/variants.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TILES = 128 };

/* A call with its memory. */
struct problem {
    const tg_algorithm *algorithm;
    tg_oracle_call call;
    double *in[MOST_TILES], *out[MOST_TILES], scalars[TG_MAX_SCALARS];
    size_t n[MOST_TILES];
};

static uint32_t find_tile(const tg_algorithm *algorithm, const char *name)
{
    for (uint32_t t = 1; t < algorithm->n_tensors; t++)
        if (algorithm->tensors[t].name && strcmp(algorithm->tensors[t].name, name) == 0)
            return t;
    return 0;
}

static size_t count(const tg_oracle_call *c, const tg_tensor *t)
{
    const int64_t heads = t->flags & TG_SHARED ? c->heads / c->group : c->heads;
    const int64_t batch = t->flags & TG_NO_BATCH || (t->axes[0] == TG_T && c->cuts) ? 1 : c->batch;
    int64_t n = batch * heads * (t->axes[0] == TG_T ? c->tokens : 1);
    for (uint32_t i = 0; i < TG_MAX_AXES; i++)
        n *= t->axes[i] == TG_DQK ? c->dqk : t->axes[i] == TG_DHV ? c->dhv : 1;
    return (size_t)n;
}

/* Those of the file, or what they are by default. */
static void set_scalars(struct problem *p, const json_t *given)
{
    const json_t *scale = json_object_get(given, "scale");
    p->scalars[0] = scale ? json_number_value(scale) : 0.5;
    for (uint32_t i = 1; i < p->algorithm->n_scalars; i++) {
        const tg_scalar *scalar = &p->algorithm->scalars[i];
        const json_t *value = json_object_get(given, scalar->name);
        p->scalars[i] = value ? json_number_value(value) : (double)scalar->value;
    }
}

static void open_problem(struct problem *p, const tg_algorithm *algorithm, const tg_oracle_call *shape,
                         const json_t *scalars)
{
    *p = (struct problem){.algorithm = algorithm, .call = *shape};
    set_scalars(p, scalars);
    p->call.scalars = p->scalars;
    p->call.in = (const double *const *)p->in;
    p->call.out = p->out;
    for (uint32_t t = 1; t < algorithm->n_tensors; t++) {
        const uint32_t flags = algorithm->tensors[t].flags;
        if (!(flags & (TG_IN | TG_OUT)))
            continue;
        p->n[t] = count(shape, &algorithm->tensors[t]);
        double *x = calloc(p->n[t] + 1, sizeof *x);
        *(flags & TG_IN ? &p->in[t] : &p->out[t]) = x;
    }
}

static void close_problem(struct problem *p)
{
    for (uint32_t t = 0; t < MOST_TILES; t++) {
        free(p->in[t]);
        free(p->out[t]);
    }
}

/* ---- finite differences ---- */

/* Decays are taken as numbers of either sign; where there are two of them the state would grow too far. */
static void fill_inputs(struct problem *p)
{
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++) {
        const char *name = p->algorithm->tensors[t].name;
        const bool falls = name && (strcmp(name, "gl") == 0 || strcmp(name, "gr") == 0);
        for (size_t i = 0; p->in[t] && i < p->n[t]; i++) {
            const double x = tg_num_normal((tg_random){7, tg_num_stream(name)}, i);
            p->in[t][i] = falls ? -fabs(x) : x;
        }
    }
}

/* sum of h dh and S dS. */
static double loss(const tg_variant *variant, const struct problem *forward, const struct problem *backward)
{
    static const char *const outputs[] = {"h", "S"}, *const gradients[] = {"dh", "dS"};
    double sum = 0;
    variant->oracle(&forward->call);
    for (uint32_t i = 0; i < 2; i++) {
        const double *x = forward->out[find_tile(forward->algorithm, outputs[i])];
        const uint32_t d = find_tile(backward->algorithm, gradients[i]);
        for (size_t k = 0; k < backward->n[d]; k++)
            sum += x[k] * backward->in[d][k];
    }
    return sum;
}

/* A few elements of every input, moved both ways. */
static void difference_input(const tg_variant *variant, struct problem *forward, const struct problem *backward,
                             uint32_t t)
{
    const double step = 1e-5;
    char name[40] = "d";
    strncat(name, forward->algorithm->tensors[t].name, sizeof name - 2);
    const double *gradient = backward->out[find_tile(backward->algorithm, name)];
    for (size_t i = 0; i < forward->n[t]; i += 1 + forward->n[t] / 23) {
        const double x = forward->in[t][i];
        forward->in[t][i] = x + step;
        const double above = loss(variant, forward, backward);
        forward->in[t][i] = x - step;
        const double slope = (above - loss(variant, forward, backward)) / (2 * step);
        forward->in[t][i] = x;
        tap_expect(fabs(gradient[i] - slope) < 1e-6 * (1 + fabs(slope)), "%s[%zu] is %.9g, the slope is %.9g", name, i,
                   gradient[i], slope);
    }
}

static void test_gradients(const tg_variant *variant, const char *what, const tg_oracle_call *shape)
{
    struct problem forward, backward;
    if (!tap_begin("gradients of %s against differences, %s", variant->name, what))
        return;
    open_problem(&forward, variant->algorithm, shape, NULL);
    open_problem(&backward, variant->backward->algorithm, shape, NULL);
    fill_inputs(&forward);
    fill_inputs(&backward);
    variant->backward->oracle(&backward.call);
    for (uint32_t t = 1; t < forward.algorithm->n_tensors; t++)
        if (forward.in[t])
            difference_input(variant, &forward, &backward, t);
    close_problem(&forward);
    close_problem(&backward);
    tap_end();
}

/* ---- golden data: rounded to float (relative 3e-8 rms) ---- */

static void load(struct problem *p, const struct st_file *file, const char *role, const char *prefix)
{
    for (size_t i = 0; i < st_count(file); i++) {
        const struct st_tensor *t = st_at(file, i);
        char name[40];
        if (strncmp(t->name, role, strlen(role)) != 0)
            continue;
        snprintf(name, sizeof name, "%s%s", prefix, t->name + strlen(role));
        const uint32_t tile = find_tile(p->algorithm, name);
        if (tap_expect(tile && p->in[tile] && p->n[tile] == (size_t)st_elements(t), "%s: unknown", t->name))
            tg_num_convert((tg_array){p->in[tile], TG_NUM_F64, p->n[tile]}, st_array(t));
    }
}

static void compare(const struct problem *p, const struct st_file *file, const char *role, const char *prefix)
{
    int n = 0;
    for (size_t i = 0; i < st_count(file); i++) {
        const struct st_tensor *t = st_at(file, i);
        char name[40];
        if (strncmp(t->name, role, strlen(role)) != 0)
            continue;
        snprintf(name, sizeof name, "%s%s", prefix, t->name + strlen(role));
        const uint32_t tile = find_tile(p->algorithm, name);
        double *truth = calloc((size_t)st_elements(t) + 1, sizeof *truth), error = 0, sum = 0;
        tg_num_convert((tg_array){truth, TG_NUM_F64, (size_t)st_elements(t)}, st_array(t));
        for (size_t k = 0; k < p->n[tile]; k++) {
            error += (p->out[tile][k] - truth[k]) * (p->out[tile][k] - truth[k]);
            sum += truth[k] * truth[k];
        }
        tap_expect(error < 1e-12 * sum, "%s: rms error %g", t->name, sqrt(error / sum));
        free(truth);
        n++;
    }
    tap_expect(n >= 2, "%d tensors %s", n, role);
}

static void check_golden(const tg_variant *variant, const struct st_file *file)
{
    json_t *scalars = json_loads(st_meta(file, "scalars"), 0, NULL);
    const struct st_tensor *q = st_find(file, "in.q"), *v = st_find(file, "in.v");
    const tg_oracle_call shape = {q->shape[0], q->shape[1], q->shape[2], q->shape[3], v->shape[3], .group = 1};
    struct problem forward, backward;
    open_problem(&forward, variant->algorithm, &shape, scalars);
    open_problem(&backward, variant->backward->algorithm, &shape, scalars);
    load(&forward, file, "in.", "");
    load(&backward, file, "in.", "");
    load(&backward, file, "dout.", "d");
    variant->oracle(&forward.call);
    variant->backward->oracle(&backward.call);
    compare(&forward, file, "out.", "");
    compare(&backward, file, "grad.", "d");
    close_problem(&forward);
    close_problem(&backward);
    json_decref(scalars);
}

static void test_golden(const tg_variant *variant, const char *name)
{
    struct st_file *file = NULL;
    char path[128], err[256];
    if (!tap_begin("golden %s", name))
        return;
    snprintf(path, sizeof path, "tests/data/%s.safetensors", name);
    if (tap_expect(st_open(path, &file, err, sizeof err), "%s", err)) {
        check_golden(variant, file);
        st_close(file);
    }
    tap_end();
}

int main(int argc, char **argv)
{
    static const int64_t cuts[] = {0, 0, 7, 8, 13};
    static const tg_variant *const variants[] = {
        &tg_gla,      &tg_vector_decay, &tg_hgrn2,          &tg_delta_net,        &tg_gated_delta,      &tg_kda,
        &tg_kda_gate, &tg_kda_safe,     &tg_delta_net_unit, &tg_gated_delta_unit, &tg_gated_delta_gate, &tg_rwkv6,
        &tg_dfw};
    if (!tap_arguments(argc, argv))
        return 2;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        test_gradients(variants[i], "batches", &(tg_oracle_call){2, 2, 11, 3, 5, .group = 1});
        test_gradients(variants[i], "a group", &(tg_oracle_call){1, 4, 6, 4, 3, .group = 2});
        test_gradients(variants[i], "packed", &(tg_oracle_call){4, 2, 13, 3, 4, .group = 1, .cuts = cuts});
    }
    test_golden(&tg_gla, "gla_b");
    test_golden(&tg_gla, "gla_x");
    test_golden(&tg_hgrn2, "hgrn2_b");
    test_golden(&tg_hgrn2, "hgrn2_x");
    test_golden(&tg_rwkv6, "rwkv6_b");
    test_golden(&tg_rwkv6, "rwkv6_x");
    test_golden(&tg_dfw, "dfw_b");
    test_golden(&tg_dfw, "dfw_x");
    test_golden(&tg_delta_net, "delta_b");
    test_golden(&tg_gated_delta, "gdn_b");
    test_golden(&tg_kda, "kda_b");
    test_golden(&tg_kda, "kda_x");
    test_golden(&tg_kda_gate, "kda_full_x");
    test_golden(&tg_kda_safe, "kda_lb_x");
    return tap_finish();
}
