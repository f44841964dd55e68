/* cli/join.c - additions to the variants that come with Tegula: a loaded variant without an algorithm adds its schedules
 * and spaces to the one of its name, forward or backward. What results hides that one, as every loaded variant does. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "variants/variants.h"

enum { MAX_JOINED = 64 };

/* One direction of a variant with what is added to it. */
struct addition {
    tg_variant variant;
    const tg_schedule *schedules[MAX_JOINED + 1];
    const tg_space *spaces[MAX_JOINED + 1];
};

struct joined {
    const tg_variant *list[2 * MAX_JOINED + 1];
    uint32_t n, n_additions;
    struct addition additions[MAX_JOINED];
};

static const tg_variant *addition_to(const tg_variant *const *loaded, const tg_variant *variant)
{
    for (; variant && *loaded; loaded++)
        if (!(*loaded)->algorithm && (*loaded)->name && strcmp((*loaded)->name, variant->name) == 0)
            return *loaded;
    return NULL;
}

/* Both NULL-terminated or NULL; cut off where there is no more room, which the check of the variant then reports. */
#define JOIN(to, first, second)                                                                                        \
    do {                                                                                                               \
        uint32_t n_ = 0;                                                                                               \
        for (uint32_t i_ = 0; (first) && (first)[i_] && n_ < MAX_JOINED; i_++)                                         \
            (to)[n_++] = (first)[i_];                                                                                  \
        for (uint32_t i_ = 0; (second) && (second)[i_] && n_ < MAX_JOINED; i_++)                                       \
            (to)[n_++] = (second)[i_];                                                                                 \
    } while (0)

/* The variant itself where nothing is added. */
static const tg_variant *join_one(struct joined *joined, const tg_variant *variant, const tg_variant *added,
                                  const tg_variant *backward)
{
    if (!variant || (!added && backward == variant->backward) || joined->n_additions == MAX_JOINED)
        return variant;
    struct addition *a = &joined->additions[joined->n_additions++];
    a->variant = *variant;
    a->variant.backward = backward;
    if (added) {
        JOIN(a->schedules, added->schedules, variant->schedules);
        JOIN(a->spaces, added->spaces, variant->spaces);
        a->variant.schedules = a->schedules;
        a->variant.spaces = a->spaces;
    }
    return &a->variant;
}

static bool is_builtin_name(const char *name)
{
    const tg_variant *found = name ? tg_variant_find(name) : NULL;
    return found && strcmp(found->name, name) == 0;
}

static bool add_loaded(struct context *context, struct joined *joined, const tg_variant *variant)
{
    if (variant->struct_size == sizeof *variant && !variant->algorithm) {
        if (is_builtin_name(variant->name))
            return true; /* it has been joined */
        complain(context, "set .algorithm, or name a variant that comes with tegula",
                 "--load %s: variant '%s' has no algorithm, and there is none of that name to add to",
                 context->options.load, variant->name ? variant->name : "");
        return false;
    }
    if (joined->n < 2 * MAX_JOINED)
        joined->list[joined->n++] = variant;
    return true;
}

bool plugin_join(struct context *context, const tg_variant *const *loaded)
{
    struct joined *joined = calloc(1, sizeof *joined);
    if (!joined)
        return complain(context, "free some memory", "out of memory"), false;
    context->joined = joined;
    context->plugin_variants = joined->list;
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++) {
        const tg_variant *backward = (*v)->backward;
        backward = join_one(joined, backward, addition_to(loaded, backward), backward ? backward->backward : NULL);
        const tg_variant *forward = join_one(joined, *v, addition_to(loaded, *v), backward);
        if (forward != *v)
            joined->list[joined->n++] = forward;
    }
    for (; *loaded; loaded++)
        if (!add_loaded(context, joined, *loaded))
            return false;
    return true;
}
