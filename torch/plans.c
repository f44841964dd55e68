/* torch/plans.c - a hash table of plans. Who finds one takes a copy, so that the table may forget any at any time: a call
 * writes its addresses into one anyway. */
#include "torch/plans.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { N_BUCKETS = 1024, MAX_PLANS = 2048 };

struct entry {
    struct entry *next;
    uint64_t hash;
    tg_torch_plan *plan;
    uint32_t n;
    int64_t words[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[N_BUCKETS];
static uint32_t n_plans;

static size_t used_bytes(const tg_torch_plan *plan)
{
    return offsetof(tg_torch_plan, args) + plan->n_args * sizeof plan->args[0];
}

/* FNV-1a by words, mixed at the end: sizes differ in low bits. */
static uint64_t hash_of(const struct plan_key *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < key->n; i++)
        hash = (hash ^ (uint64_t)key->words[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static struct entry *find(const struct plan_key *key, uint64_t hash)
{
    struct entry *entry = buckets[hash % N_BUCKETS];
    while (entry && (entry->hash != hash || entry->n != key->n ||
                     memcmp(entry->words, key->words, key->n * sizeof key->words[0]) != 0))
        entry = entry->next;
    return entry;
}

bool plans_find(const struct plan_key *key, tg_torch_plan *plan)
{
    const uint64_t hash = hash_of(key);
    pthread_mutex_lock(&lock);
    const struct entry *found = find(key, hash);
    if (found)
        memcpy(plan, found->plan, used_bytes(found->plan));
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

static void free_entry(struct entry *entry)
{
    if (entry)
        free(entry->plan);
    free(entry);
}

static void forget(void)
{
    for (uint32_t b = 0; b < N_BUCKETS; b++)
        while (buckets[b]) {
            struct entry *next = buckets[b]->next;
            free_entry(buckets[b]);
            buckets[b] = next;
        }
    n_plans = 0;
}

static struct entry *make_entry(const struct plan_key *key, const tg_torch_plan *plan)
{
    struct entry *made = malloc(sizeof *made + key->n * sizeof key->words[0]);
    if (!made)
        return NULL;
    *made = (struct entry){.plan = malloc(used_bytes(plan)), .n = key->n, .hash = hash_of(key)};
    memcpy(made->words, key->words, key->n * sizeof key->words[0]);
    if (made->plan) {
        memcpy(made->plan, plan, used_bytes(plan));
        return made;
    }
    free_entry(made);
    return NULL;
}

void plans_add(const struct plan_key *key, const tg_torch_plan *plan)
{
    struct entry *made = make_entry(key, plan);
    if (!made)
        return;
    pthread_mutex_lock(&lock);
    if (find(key, made->hash)) { /* another thread was as fast */
        free_entry(made);
    } else {
        if (n_plans == MAX_PLANS)
            forget();
        made->next = buckets[made->hash % N_BUCKETS];
        buckets[made->hash % N_BUCKETS] = made;
        n_plans++;
    }
    pthread_mutex_unlock(&lock);
}

uint32_t plans_count(void)
{
    pthread_mutex_lock(&lock);
    const uint32_t n = n_plans;
    pthread_mutex_unlock(&lock);
    return n;
}

void plans_forget(void)
{
    pthread_mutex_lock(&lock);
    forget();
    pthread_mutex_unlock(&lock);
}
