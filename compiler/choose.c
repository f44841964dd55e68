/* compiler/choose.c - which of a variant's schedules, and which point of its space, when nobody says.
 *
 * What was decided once is kept: a table of as many decisions as a program with many shapes has, the oldest of
 * which make room. Its key is what the declarations say, not where they are. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"

#include "dsl/bind.h"
#include "dsl/fields.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

tg_sizes tg_sizes_usual(const tg_shape_class *shape)
{
    tg_sizes sizes = {.batch = 8, .heads = 16, .tokens = 8192};
    if (shape->tokens) {
        sizes.batch = 64;
        sizes.tokens = shape->tokens;
    }
    if (group_of(shape) > 1)
        sizes.heads = round_up((uint32_t)sizes.heads, group_of(shape));
    if (shape->packed)
        sizes.tokens *= sizes.batch;
    return sizes;
}

/* ---- the decision ---- */

enum { MAX_STARTS = 64 };

/* The model orders the lengths of chunks and segments of one schedule better than it knows each. */
static const double tie_of_cuts = 1.02;

/* A declared schedule at its best point. */
struct start {
    tg_schedule schedule; /* by the name of the declared one */
    double seconds;
    double weight; /* ... more where the cut is not the declared one */
    double least;  /* seconds at its fastest cut */
};

struct starts {
    uint32_t n;
    struct start all[MAX_STARTS];
};

static uint32_t segment_of(const tg_schedule *schedule)
{
    return tg_field_get(schedule, (struct tg_field_at){.field = TG_FIELD_SEGMENT});
}

/* Choices of one schedule come one after the other. */
static void add_choice(void *user, const tg_choice *choice)
{
    struct starts *starts = user;
    const tg_schedule *schedule = choice->schedule, *declared = choice->declared;
    const bool is_declared = schedule->chunk == declared->chunk && segment_of(schedule) == segment_of(declared);
    const double seconds = choice->seconds + 1e-9; /* calls of no tokens cost nothing and have a schedule */
    const double weight = is_declared ? seconds : seconds * tie_of_cuts;
    struct start *last = starts->n ? &starts->all[starts->n - 1] : NULL;
    if (last && last->schedule.name == declared->name) {
        const double least = fmin(last->least, seconds);
        if (weight < last->weight)
            *last = (struct start){*schedule, seconds, weight, least};
        last->least = least;
    } else if (starts->n < MAX_STARTS) {
        starts->all[starts->n++] = (struct start){*schedule, seconds, weight, seconds};
    }
}

/* Of decode steps one with room for as few tokens as there are. */
static uint32_t room_of(const struct starts *starts)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < starts->n; i++) {
        const uint32_t own = starts->all[i].schedule.max_tokens;
        room = own && (!room || own < room) ? own : room;
    }
    return room;
}

/* The fastest, or one declared before it that is hardly slower. */
static const struct start *fastest(const struct starts *starts)
{
    const uint32_t room = room_of(starts);
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < starts->n; i++)
        if (starts->all[i].schedule.max_tokens == room)
            least = fmin(least, starts->all[i].least);
    for (uint32_t i = 0; i < starts->n; i++)
        if (starts->all[i].schedule.max_tokens == room && starts->all[i].seconds <= plan_tie * least)
            return &starts->all[i];
    return NULL;
}

static tg_status choose(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                        const tg_sizes *sizes, tg_schedule *schedule)
{
    const tg_sink quiet = {0};
    struct starts *starts = calloc(1, sizeof *starts);
    if (!starts)
        return TG_E_MEMORY;
    tg_status status = plan_check_shape(variant->algorithm, shape, &quiet)
                           ? plan_each_fast(variant, target, shape, sizes, add_choice, starts)
                           : TG_E_ARGUMENT;
    const struct start *found = NULL;
    while (status == TG_OK && (found = fastest(starts)) != NULL) {
        if (tg_plan_check(&found->schedule, target, shape, &quiet) == TG_OK)
            break; /* what rows do not say one by one, their whole does */
        const size_t at = (size_t)(found - starts->all);
        memmove(&starts->all[at], &starts->all[at + 1], (--starts->n - at) * sizeof starts->all[0]);
    }
    if (found)
        *schedule = found->schedule;
    free(starts);
    return found ? TG_OK : status == TG_OK ? TG_E_UNSUPPORTED : status;
}

static uint32_t chunk_most(const tg_schedule *s)
{
    struct tg_slices slices;
    tg_schedule_slice(s, s->n_rows, &slices);
    return plan_chunk_most(s, &slices);
}

/* Can it be called with this chunk size? 0: its own. */
static bool takes_chunk(const tg_schedule *s, int64_t chunk)
{
    return chunk == 0 || (chunk % plan_chunk_multiple(s) == 0 && (chunk_most(s) == 0 || chunk <= chunk_most(s)));
}

/* What is said against a schedule: how much, and the first of it. One that has too little room for a call, or another chunk size, is
 * nearer to it than one for other types or another GPU. */
struct faults {
    uint32_t weight;
    char first[400];
};

static void add_fault(void *user, const tg_diag *diag)
{
    static const char *const of_room[] = {"TG0530", "TG0531", "TG0542"};
    struct faults *faults = user;
    bool is_of_room = false;
    for (uint32_t i = 0; i < sizeof of_room / sizeof *of_room; i++)
        is_of_room |= diag->code && strcmp(diag->code, of_room[i]) == 0;
    if (diag->severity != TG_ERROR)
        return;
    if (!faults->weight)
        snprintf(faults->first, sizeof faults->first, "%s", diag->message);
    faults->weight += is_of_room ? 1 : 4;
}

static struct faults faults_of(const tg_schedule *s, const tg_target *target, const tg_shape_class *shape,
                               int64_t chunk)
{
    struct faults faults = {.weight = 0};
    const tg_sink sink = {add_fault, &faults};
    if (tg_plan_check(s, target, shape, &sink) == TG_OK && !takes_chunk(s, chunk))
        tg_report(&sink, TG_ERROR, "TG0542", NULL, 0, NULL, "schedule %s: chunk size %lld, expected a multiple of %u%s",
                  s->name, (long long)chunk, plan_chunk_multiple(s), chunk_most(s) ? " and no more" : "");
    return faults;
}

/* One message: of all schedules, against the one of which the least is said. */
static void say_why_not(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape, int64_t chunk,
                        const tg_sink *sink)
{
    struct faults least = {.weight = UINT32_MAX};
    uint32_t n = 0;
    tg_schedule s;
    if (!plan_check_shape(variant->algorithm, shape, sink))
        return;
    for (; tg_variant_schedule(variant, n, &s); n++) {
        const struct faults faults = faults_of(&s, target, shape, chunk);
        if (faults.weight && faults.weight <= least.weight)
            least = faults;
    }
    if (least.weight == UINT32_MAX)
        tg_report(sink, TG_ERROR, "TG0546", NULL, 0, "name one, or leave .by_name out",
                  "%s: every schedule that fits is taken by name only, keeps tensors for another call, or is one for "
                  "decode steps",
                  variant->name);
    else
        tg_report(sink, TG_ERROR, "TG0547", NULL, 0, "`tegula explain` has what is said against each",
                  "%s: none of its %u schedules is for such calls; %s", variant->name, n, least.first);
}

/* ---- what was decided ---- */

enum { MAX_DECISIONS = 64 };

struct decision {
    XXH128_hash_t key;
    tg_schedule schedule;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct decision decisions[MAX_DECISIONS];
static uint32_t n_decisions; /* ever made */

static void hash(XXH128_hash_t *key, const void *bytes, size_t n)
{
    *key = XXH3_128bits_withSeed(bytes, n, key->low64 ^ key->high64);
}

static void hash_text(XXH128_hash_t *key, const char *text)
{
    hash(key, text ? text : "", text ? strlen(text) + 1 : 0);
}

static void hash_table(XXH128_hash_t *key, const struct tg_table *table, const tg_algorithm **last)
{
    const tg_schedule *s = table->declared;
    const tg_algorithm *a = s->algorithm ? s->algorithm : table->algorithm;
    hash(key, s, sizeof *s);
    for (const tg_point *point = s->points; point && point->name; point++) {
        hash(key, point, sizeof *point);
        hash_text(key, point->changes);
    }
    if (a && a != *last && a->tensors && a->body) {
        hash(key, a->tensors, a->n_tensors * sizeof a->tensors[0]);
        hash(key, a->body, a->n_body * sizeof a->body[0]);
    }
    *last = a;
}

/* Of all that the search reads. */
static void hash_variant(XXH128_hash_t *key, const tg_variant *variant)
{
    const tg_algorithm *last = NULL;
    for (struct tg_table table = {0}; tg_table_next(variant, &table);)
        hash_table(key, &table, &last);
    for (const tg_space *const *s = variant->spaces; s && *s; s++) {
        hash(key, &(*s)->schedule, sizeof(*s)->schedule);
        hash(key, (*s)->vary, (*s)->n_vary * sizeof(*s)->vary[0]);
    }
}

static XXH128_hash_t key_of(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                            const tg_sizes *sizes)
{
    const int64_t numbers[] = {shape->io,     shape->dqk,    shape->dhv,    shape->group,        shape->tokens,
                               shape->packed, shape->pooled, shape->state,  shape->values_first, shape->counted,
                               sizes->batch,  sizes->heads,  sizes->tokens, sizes->chunk};
    XXH128_hash_t key = XXH3_128bits(numbers, sizeof numbers);
    hash(&key, target, sizeof *target);
    hash_variant(&key, variant);
    return key;
}

static bool recall(XXH128_hash_t key, tg_schedule *schedule)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < MAX_DECISIONS && i < n_decisions && !found; i++) {
        found = XXH128_isEqual(decisions[i].key, key);
        if (found)
            *schedule = decisions[i].schedule;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void remember(XXH128_hash_t key, const tg_schedule *schedule)
{
    pthread_mutex_lock(&lock);
    decisions[n_decisions++ % MAX_DECISIONS] = (struct decision){key, *schedule};
    pthread_mutex_unlock(&lock);
}

tg_status tg_schedule_default(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                              const tg_sizes *sizes, tg_schedule *schedule, const tg_sink *sink)
{
    if (!variant || !target || !shape || !schedule)
        return TG_E_ARGUMENT;
    const tg_sizes usual = tg_sizes_usual(shape);
    const tg_sizes *const s = sizes ? sizes : &usual;
    const XXH128_hash_t key = key_of(variant, target, shape, s);
    if (recall(key, schedule))
        return TG_OK;
    const tg_status status = choose(variant, target, shape, s, schedule);
    if (status == TG_OK)
        remember(key, schedule);
    else if (status != TG_E_MEMORY)
        say_why_not(variant, target, shape, s->chunk, sink);
    return status;
}
