/* jit/jit.c - a table of what was loaded, by the key of its code, and a ring of the last decisions. One lock: who comes
 * while another compiles waits. */
#include "jit/jit.h"

#include "program/fail.h"
#include "tuning/tuning.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 33, N_DECISIONS = 64 };

struct entry {
    char key[KEY_SIZE]; /* tg_compile_key */
    tg_program *program;
    tg_module *module;
};

/* Which module a call took. What differs in padding alone is decided anew. */
struct decision {
    const tg_variant *variant; /* NULL: none yet */
    tg_shape_class shape;
    tg_sizes sizes;
    const tg_module *module;
};

struct tg_jit {
    const tg_driver *driver;
    tg_device device;
    const tg_target *target;
    char *cache, *wisdom, *ptxas; /* NULL: none */
    pthread_mutex_t lock;
    struct entry *entries;
    size_t n, room;
    struct decision decisions[N_DECISIONS];
    size_t oldest; /* of the decisions */
};

static bool copy_text(const char *from, char **to)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

static tg_status no_memory(const tg_sink *sink)
{
    return tg_fail(sink, TG_E_MEMORY, "TG0799", NULL, "out of host memory");
}

static void jit_free(tg_jit *jit)
{
    free(jit->entries);
    free(jit->cache);
    free(jit->wisdom);
    free(jit->ptxas);
    free(jit);
}

static tg_jit *make(const tg_driver *driver, const tg_device *device, const tg_target *target,
                    const tg_jit_options *options)
{
    tg_jit *jit = calloc(1, sizeof *jit);
    if (!jit)
        return NULL;
    jit->driver = driver;
    jit->device = *device;
    jit->target = target;
    if (copy_text(options->cache, &jit->cache) && copy_text(options->wisdom, &jit->wisdom) &&
        copy_text(options->ptxas, &jit->ptxas) && pthread_mutex_init(&jit->lock, NULL) == 0)
        return jit;
    jit_free(jit);
    return NULL;
}

tg_status tg_jit_open(const tg_driver *driver, int ordinal, const tg_jit_options *options, tg_jit **jit,
                      const tg_sink *sink)
{
    tg_device device = {.struct_size = sizeof device};
    if (!driver || !jit)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_jit_open: %s is NULL", driver ? "jit" : "driver");
    const tg_status status = tg_device_query(driver, ordinal, &device, sink);
    if (status != TG_OK)
        return status;
    const tg_target *target = tg_target_for_gpu(device.cc_major * 10 + device.cc_minor, device.name, device.sms,
                                                device.memory_clock_khz, device.memory_bus_bits);
    if (!target)
        return tg_fail(sink, TG_E_UNSUPPORTED, "TG0811", NULL,
                       "device %d, %s: expected compute capability 8.0 or newer, found %d.%d", ordinal, device.name,
                       device.cc_major, device.cc_minor);
    *jit = make(driver, &device, target, options ? options : &(tg_jit_options){.cache = NULL});
    return *jit ? TG_OK : no_memory(sink);
}

static void entry_free(struct entry *entry)
{
    if (entry->module)
        tg_unload(entry->module);
    tg_program_free(entry->program);
}

void tg_jit_close(tg_jit *jit)
{
    if (!jit)
        return;
    for (size_t i = 0; i < jit->n; i++)
        entry_free(&jit->entries[i]);
    pthread_mutex_destroy(&jit->lock);
    jit_free(jit);
}

/* From the cache, or compiled and put there. */
static tg_status make_program(const tg_jit *jit, const tg_variant *variant, const tg_schedule *schedule,
                              const tg_shape_class *shape, struct entry *entry, const tg_sink *sink)
{
    if (jit->cache) {
        const tg_status status = tg_cache_get(jit->cache, entry->key, &entry->program, sink);
        if (status != TG_OK || entry->program)
            return status;
    }
    const tg_compile_options how = {.ptxas = jit->ptxas};
    const tg_status status = tg_compile(variant, schedule, jit->target, shape, &how, &entry->program, sink);
    if (status == TG_OK && jit->cache && tg_cache_put(jit->cache, entry->key, entry->program, NULL) != TG_OK)
        tg_report(sink, TG_WARNING, "TG0831", jit->cache, 0, "choose another folder, or none",
                  "cannot write the kernel cache: kernels are compiled anew in every process");
    return status;
}

static tg_status add(tg_jit *jit, const struct entry *made, const tg_sink *sink)
{
    if (jit->n == jit->room) {
        const size_t room = jit->room ? 2 * jit->room : 16;
        struct entry *entries = realloc(jit->entries, room * sizeof *entries);
        if (!entries)
            return no_memory(sink);
        jit->entries = entries;
        jit->room = room;
    }
    jit->entries[jit->n++] = *made;
    return TG_OK;
}

static const struct entry *find(const tg_jit *jit, const char *key)
{
    for (size_t i = 0; i < jit->n; i++)
        if (memcmp(jit->entries[i].key, key, KEY_SIZE) == 0)
            return &jit->entries[i];
    return NULL;
}

/* ---- decisions; all with the lock held ---- */

static tg_status choose(const tg_jit *jit, const tg_variant *variant, const tg_shape_class *shape,
                        const tg_sizes *sizes, tg_schedule *schedule, const tg_sink *sink)
{
    tg_wanted wanted = {.variant = variant, .target = jit->target, .shape_class = shape, .chunk = sizes->chunk};
    tg_wisdom found;
    if (tg_wisdom_of(&jit->device, variant, shape, sizes, &wanted.like) &&
        ((jit->wisdom && tg_wisdom_advice(&wanted, jit->wisdom, &found, schedule, sink)) ||
         tg_wisdom_advice(&wanted, NULL, &found, schedule, sink)))
        return tg_schedule_set_chunk(schedule, sizes->chunk, sink);
    return tg_schedule_default(variant, jit->target, shape, sizes, schedule, sink);
}

static tg_status load(tg_jit *jit, const tg_variant *variant, const tg_schedule *schedule, const tg_shape_class *shape,
                      const tg_module **module, const tg_sink *sink)
{
    struct entry entry = {.program = NULL};
    tg_compile_key(schedule, jit->target, shape, jit->ptxas, entry.key);
    const struct entry *found = find(jit, entry.key);
    if (found) {
        *module = found->module;
        return TG_OK;
    }
    tg_status status = make_program(jit, variant, schedule, shape, &entry, sink);
    if (status == TG_OK)
        status = tg_load(jit->driver, entry.program, &entry.module, sink);
    if (status == TG_OK)
        status = add(jit, &entry, sink);
    if (status == TG_OK)
        *module = entry.module;
    else
        entry_free(&entry);
    return status;
}

static const tg_module *decided(const tg_jit *jit, const tg_variant *variant, const tg_shape_class *shape,
                                const tg_sizes *sizes)
{
    for (const struct decision *d = jit->decisions; d < jit->decisions + N_DECISIONS; d++)
        if (d->variant == variant && memcmp(&d->sizes, sizes, sizeof *sizes) == 0 &&
            memcmp(&d->shape, shape, sizeof *shape) == 0)
            return d->module;
    return NULL;
}

static tg_status decide(tg_jit *jit, const tg_variant *variant, const tg_shape_class *shape, const tg_sizes *sizes,
                        const tg_module **module, const tg_sink *sink)
{
    tg_schedule schedule;
    *module = decided(jit, variant, shape, sizes);
    if (*module)
        return TG_OK;
    tg_status status = choose(jit, variant, shape, sizes, &schedule, sink);
    if (status == TG_OK)
        status = load(jit, variant, &schedule, shape, module, sink);
    if (status == TG_OK) {
        jit->decisions[jit->oldest] = (struct decision){.variant = variant, .sizes = *sizes, .module = *module};
        memcpy(&jit->decisions[jit->oldest].shape, shape, sizeof *shape); /* padding too */
        jit->oldest = (jit->oldest + 1) % N_DECISIONS;
    }
    return status;
}

/* As tg_sizes_check, which needs a program; before one is compiled for nothing. */
static tg_status check_sizes(const tg_shape_class *shape, const tg_sizes *sizes, const tg_sink *sink)
{
    const struct {
        const char *field;
        int64_t value, least;
    } each[] = {{"batch", sizes->batch, 0},
                {"heads", sizes->heads, 1},
                {"tokens", sizes->tokens, 0},
                {"chunk", sizes->chunk, 0}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (each[i].value < each[i].least)
            return tg_fail(sink, TG_E_ARGUMENT, "TG0702", NULL, "sizes.%s: expected at least %lld, found %lld",
                           each[i].field, (long long)each[i].least, (long long)each[i].value);
    const int64_t group = shape->group ? shape->group : 1;
    if (sizes->heads % group == 0)
        return TG_OK;
    return tg_fail(sink, TG_E_ARGUMENT, "TG0703", NULL,
                   "sizes.heads: expected a multiple of %lld, the heads of a group, found %lld", (long long)group,
                   (long long)sizes->heads);
}

/* ---- what a forward keeps for its backward ---- */

_Static_assert((int)TG_JIT_KEPT == (int)TG_MAX_KEPT, "room for what a schedule keeps");

/* The tensor of the k-th that a schedule of the variant keeps, whichever; NULL: there are no more of that schedule. */
static const tg_tensor *kept_of(const tg_schedule *s, uint32_t k)
{
    return k < TG_MAX_KEPT && s->kept[k] ? &s->algorithm->tensors[s->kept[k]] : NULL;
}

const tg_tensor *tg_jit_kept_tensor(const tg_variant *variant, uint32_t i)
{
    enum { MAX_FOUND = 32 };
    const tg_tensor *found[MAX_FOUND], *tensor;
    uint32_t n = 0;
    tg_schedule s;
    for (uint32_t at = 0; tg_variant_schedule(variant, at, &s); at++)
        for (uint32_t k = 0; n < MAX_FOUND && (tensor = kept_of(&s, k)); k++) {
            uint32_t j = 0;
            while (j < n && strcmp(found[j]->name, tensor->name) != 0)
                j++;
            if (j < n)
                continue;
            found[n++] = tensor;
            if (n > i)
                return tensor;
        }
    return NULL;
}

/* Predicted seconds of what a call takes when nobody says. */
static tg_status cost_of_choice(const tg_jit *jit, const tg_variant *variant, const tg_shape_class *shape,
                                const tg_sizes *sizes, double *seconds, const tg_sink *sink)
{
    tg_schedule schedule;
    tg_cost cost;
    tg_status status = choose(jit, variant, shape, sizes, &schedule, sink);
    if (status == TG_OK)
        status = tg_cost_estimate(&schedule, jit->target, shape, sizes, &cost, sink);
    *seconds += status == TG_OK ? cost.seconds : 0;
    return status;
}

static void describe_pair(const tg_jit *jit, const tg_keeping *pair, const tg_shape_class *shape, const tg_sizes *sizes,
                          tg_jit_kept *kept)
{
    const tg_tensor *tensor;
    tg_cost costs[2];
    if (tg_cost_estimate(&pair->forward, jit->target, shape, sizes, &costs[0], NULL) != TG_OK ||
        tg_cost_estimate(&pair->backward, jit->target, shape, sizes, &costs[1], NULL) != TG_OK)
        return;
    for (uint32_t k = 0; (tensor = kept_of(&pair->forward, k)); k++)
        kept->names[kept->n++] = tensor->name;
    kept->chunk = pair->forward.chunk;
    kept->segment = tg_schedule_cut(&pair->forward);
    kept->seconds = costs[0].seconds + costs[1].seconds;
}

tg_status tg_jit_keeping(tg_jit *jit, const tg_variant *forward, const tg_shape_class *shape, const tg_sizes *sizes,
                         tg_jit_kept *kept, const tg_sink *sink)
{
    tg_keeping pair;
    if (!jit || !forward || !shape || !sizes || !kept)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_jit_keeping: expected five pointers, found a NULL");
    *kept = (tg_jit_kept){.n = 0};
    if (check_sizes(shape, sizes, sink) != TG_OK)
        return TG_E_ARGUMENT;
    if (!forward->backward || shape->tokens || shape->pooled || sizes->tokens == 0 || sizes->batch == 0 ||
        !tg_schedules_keeping(forward, NULL, jit->target, shape, sizes, &pair))
        return TG_OK;
    tg_status status = cost_of_choice(jit, forward, shape, sizes, &kept->seconds_without, sink);
    if (status == TG_OK)
        status = cost_of_choice(jit, forward->backward, shape, sizes, &kept->seconds_without, sink);
    if (status == TG_OK)
        describe_pair(jit, &pair, shape, sizes, kept);
    return status;
}

static tg_status no_keeper(const tg_variant *variant, const tg_jit_kept *kept, const tg_sink *sink)
{
    char names[TG_JIT_KEPT * 18] = "";
    for (uint32_t i = 0; i < kept->n && i < TG_JIT_KEPT; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", kept->names[i]);
    return tg_fail(sink, TG_E_UNSUPPORTED, "TG0836", "keep what tg_jit_keeping says",
                   "%s: expected a schedule that keeps %s in chunks of %u and segments of %u, found none",
                   variant->name, names, kept->chunk, kept->segment);
}

tg_status tg_jit_module_keeping(tg_jit *jit, const tg_variant *variant, const tg_shape_class *shape,
                                const tg_sizes *sizes, const tg_jit_kept *kept, const tg_module **module,
                                const tg_sink *sink)
{
    tg_schedule schedule;
    if (!jit || !variant || !shape || !sizes || !kept || !module)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL,
                       "tg_jit_module_keeping: expected six pointers, found a NULL");
    tg_sizes cut = *sizes;
    cut.chunk = kept->chunk;
    *module = NULL;
    if (check_sizes(shape, &cut, sink) != TG_OK)
        return TG_E_ARGUMENT;
    if (!tg_schedule_keeping(variant, kept->names, kept->n, kept->segment, jit->target, shape, &cut, &schedule))
        return no_keeper(variant, kept, sink);
    pthread_mutex_lock(&jit->lock);
    const tg_status status = load(jit, variant, &schedule, shape, module, sink);
    pthread_mutex_unlock(&jit->lock);
    return status;
}

tg_status tg_jit_module(tg_jit *jit, const tg_variant *variant, const tg_shape_class *shape, const tg_sizes *sizes,
                        const tg_module **module, const tg_sink *sink)
{
    if (!jit || !variant || !shape || !sizes || !module)
        return tg_fail(sink, TG_E_ARGUMENT, "TG0828", NULL, "tg_jit_module: expected five pointers, found a NULL");
    *module = NULL;
    if (check_sizes(shape, sizes, sink) != TG_OK)
        return TG_E_ARGUMENT;
    pthread_mutex_lock(&jit->lock);
    const tg_status status = decide(jit, variant, shape, sizes, module, sink);
    pthread_mutex_unlock(&jit->lock);
    return status;
}
