/* release.c - what lies before a warp's accesses by st.release and ld.acquire of gpu scope, in other CTAs too.
 *
 * A store that releases leaves a note at its address, before its value is there: what the warp had seen by then, on the
 * clock of its cluster, and the notes that it knew. A load that acquires takes the note of its address, once its value is
 * there. A warp knows of a note that it has taken, or that another of its cluster took before, by that clock: a barrier
 * between the two tells it, as it tells of shared memory.
 *
 * CTAs often run one after the other here, so who forgets to wait would find what it needs. Therefore a load that acquires
 * finds what was there before the last note, as it may, when the warp looks for the first time. */
#include "emu.h"

#include <stdlib.h>

struct note {
    u64 address, before; /* the value before */
    u64 cluster, cta[MAX_CLUSTER];
    u32 n_ctas, n_known, by;   /* the agent */
    u32 *seen;                 /* by agent of the cluster */
    const struct note **known; /* itself, and all that the warp knew */
    struct note *next;         /* of the allocation */
};

/* Times of the CTA's agents up to this one are before the note. */
static bool tells_of(const struct note *n, u64 cta, u32 warp, u32 time)
{
    for (u32 r = 0; r < n->n_ctas; r++)
        if (n->cta[r] == cta)
            return time <= n->seen[r * CTA_AGENTS + warp];
    return false;
}

static bool is_known(const struct warp *w, const struct taken *t)
{
    return !t->is_early && is_before(w, t->agent, t->time);
}

/* Is an access, by the warp of the CTA at that time, before what this warp does now? */
bool release_orders(const struct warp *w, u64 cta, u32 warp, u32 time)
{
    const struct cluster *k = w->cta->cluster;
    for (u32 i = 0; i < k->n_taken; i++) {
        const struct note *note = k->taken[i].note;
        for (u32 j = 0; is_known(w, &k->taken[i]) && j < note->n_known; j++)
            if (tells_of(note->known[j], cta, warp, time))
                return true;
    }
    return false;
}

/* Does this warp know anything of that cluster? */
bool release_tells_of(const struct warp *w, u64 cluster)
{
    const struct cluster *k = w->cta->cluster;
    for (u32 i = 0; i < k->n_taken; i++) {
        const struct note *note = k->taken[i].note;
        for (u32 j = 0; is_known(w, &k->taken[i]) && j < note->n_known; j++)
            if (note->known[j]->cluster == cluster)
                return true;
    }
    return false;
}

/* A set of notes, without room for more than it has. */
struct notes {
    const struct note **list;
    u32 n;
};

static void add(struct notes *to, const struct note *note)
{
    for (u32 i = 0; i < to->n; i++)
        if (to->list[i] == note)
            return;
    to->list[to->n++] = note;
}

/* The note, and all that the warp knows; the list is NULL if there is no memory for it. */
static struct notes known_with(const struct warp *w, const struct note *own)
{
    const struct cluster *k = w->cta->cluster;
    size_t most = 1;
    for (u32 i = 0; i < k->n_taken; i++)
        most += k->taken[i].note->n_known;
    struct notes known = {.list = malloc(most * sizeof(void *))};
    if (known.list)
        add(&known, own);
    for (u32 i = 0; known.list && i < k->n_taken; i++) {
        const struct note *note = k->taken[i].note;
        for (u32 j = 0; is_known(w, &k->taken[i]) && j < note->n_known; j++)
            add(&known, note->known[j]);
    }
    return known;
}

static void free_note(struct note *n)
{
    free(n->seen);
    free((void *)n->known);
    free(n);
}

static struct note *note_new(struct warp *w, u64 address, u64 before)
{
    struct cluster *k = w->cta->cluster;
    const u32 n_agents = w->cta->n_agents;
    struct note *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    *n = (struct note){.address = address, .before = before, .cluster = k->index, .n_ctas = k->n, .by = w->agent};
    for (u32 r = 0; r < k->n; r++)
        n->cta[r] = k->cta[r]->index;
    n->seen = malloc(n_agents * sizeof *n->seen);
    const struct notes known = known_with(w, n);
    n->known = known.list;
    n->n_known = known.n;
    if (n->seen && n->known) {
        for (u32 i = 0; i < n_agents; i++)
            n->seen[i] = w->seen[i];
        n->seen[w->agent] = k->now; /* this store too; what comes after it is later: access.c */
        return n;
    }
    free_note(n);
    return NULL;
}

/* Before the value is stored. Without memory for a note nobody learns of anything. */
void release_announce(struct warp *w, struct allocation *a, u64 address, u32 bytes)
{
    struct note *n = note_new(w, address, global_load(a->data + (address - a->base), bytes));
    if (!n)
        return;
    n->next = __atomic_load_n(&a->notes, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&a->notes, &n->next, n, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static struct taken *find_taken(const struct warp *w, const struct note *note)
{
    struct cluster *k = w->cta->cluster;
    for (u32 i = 0; i < k->n_taken; i++)
        if (k->taken[i].note == note && k->taken[i].agent == w->agent)
            return &k->taken[i];
    return NULL;
}

static struct taken *add_taken(struct warp *w, const struct note *note)
{
    struct cluster *k = w->cta->cluster;
    if (k->n_taken == k->room_taken) {
        const u32 room = 2 * k->room_taken + 8;
        struct taken *more = realloc(k->taken, room * sizeof *more);
        if (!more)
            return NULL;
        k->taken = more;
        k->room_taken = room;
    }
    k->taken[k->n_taken] = (struct taken){.note = note, .agent = w->agent};
    return &k->taken[k->n_taken++];
}

/* Does the warp know that the note's store has come? */
static bool has_come(const struct warp *w, const struct note *n)
{
    return n->cluster == w->cta->cluster->index ||
           release_orders(w, n->cta[n->by / CTA_AGENTS], n->by % CTA_AGENTS, n->seen[n->by]);
}

/* Once the value has been loaded: takes the last note of the address. True when the warp looks too early, and finds the value
 * before it. */
bool release_take(struct warp *w, u64 address, u64 *before)
{
    const struct allocation *a = memory_find(w->cta->launch->memory, address, 1);
    const struct note *note = a ? __atomic_load_n(&a->notes, __ATOMIC_ACQUIRE) : NULL;
    while (note && note->address != address)
        note = note->next;
    struct taken *t = note ? find_taken(w, note) : NULL;
    if (!note || (t && !t->is_early))
        return false;
    const bool is_early = !t && !has_come(w, note);
    t = t ? t : add_taken(w, note);
    if (!t)
        return false;
    t->is_early = is_early;
    t->time = w->cta->cluster->now++;
    *before = note->before;
    return is_early;
}

/* After a launch. */
void release_forget(struct allocation *a)
{
    for (struct note *n = a->notes, *next; n; n = next) {
        next = n->next;
        free_note(n);
    }
    a->notes = NULL;
}
