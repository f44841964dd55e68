/* cli/find.c - variants and schedules by name: built in, or loaded with --load. */
#include "cli.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "variants/variants.h"

enum { MAX_NAMES = 256 };

const tg_variant *variant_forward(const struct context *context, const tg_variant *variant)
{
    for (const tg_variant *const *v = context->plugin_variants; v && *v; v++)
        if ((*v)->backward == variant)
            return *v;
    return tg_variant_forward(variant);
}

static bool plugin_check(struct context *context, const tg_variant *variant)
{
    if (tg_variant_check(variant, &context->sink) == TG_OK)
        return true;
    complain(context, "mend the mistakes above and compile it again", "--load %s: a declaration is not valid",
             context->options.load);
    return false;
}

bool plugin_load(struct context *context)
{
    const char *path = context->options.load;
    char here[4096];
    /* dlopen looks for a bare name in the library path, where nobody expects "mine.so" to be. */
    snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
    struct stat there;
    if (stat(here, &there) != 0 || access(here, R_OK) != 0) {
        complain(context, "compile it first: cc -std=c11 -shared -fPIC -Ibuild/include mine.c -o mine.so",
                 "--load %s: no such file, or it cannot be read", path);
        return false;
    }
    if (!S_ISREG(there.st_mode)) { /* of a pipe dlopen would wait for whoever writes */
        complain(context, "name a shared object", "--load %s: expected a regular file", path);
        return false;
    }
    context->plugin = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    if (!context->plugin) {
        complain(context, "it must be a shared object for this machine, with nothing undefined", "--load %s: %s", path,
                 dlerror());
        return false;
    }
    const tg_variant *const *loaded = dlsym(context->plugin, TG_PLUGIN_SYMBOL);
    if (!loaded) {
        complain(context, "end it with: const tg_variant *const tg_variants[] = {&mine, NULL};",
                 "--load %s: it does not export `%s`", path, TG_PLUGIN_SYMBOL);
        return false;
    }
    if (!plugin_join(context, loaded))
        return false;
    for (const tg_variant *const *v = context->plugin_variants; *v; v++)
        if (!plugin_check(context, *v))
            return false;
    return true;
}

static bool has_name(const tg_variant *variant, const char *name)
{
    if (strcmp(variant->name, name) == 0)
        return true;
    for (const char *const *alias = variant->aliases; alias && *alias; alias++)
        if (strcmp(*alias, name) == 0)
            return true;
    return false;
}

static bool is_hidden(const struct context *context, const tg_variant *builtin)
{
    for (const tg_variant *const *v = context->plugin_variants; v && *v; v++)
        if (strcmp((*v)->name, builtin->name) == 0)
            return true;
    return false;
}

void variants_each(const struct context *context, void (*visit)(void *user, const tg_variant *variant), void *user)
{
    for (const tg_variant *const *v = tg_builtin_variants; *v; v++)
        if (!is_hidden(context, *v))
            visit(user, *v);
    for (const tg_variant *const *v = context->plugin_variants; v && *v; v++)
        visit(user, *v);
}

const tg_variant *variant_lookup(const struct context *context, const char *name)
{
    /* A loaded variant hides the built-in one of that name: it was asked for. */
    for (const tg_variant *const *v = context->plugin_variants; v && *v; v++)
        if (has_name(*v, name))
            return *v;
        else if ((*v)->backward && has_name((*v)->backward, name))
            return (*v)->backward;
    return tg_variant_find(name);
}

struct names {
    const char *list[MAX_NAMES + 1];
    size_t n;
};

static void add_names(void *user, const tg_variant *variant)
{
    struct names *names = user;
    if (names->n < MAX_NAMES)
        names->list[names->n++] = variant->name;
    for (const char *const *alias = variant->aliases; alias && *alias; alias++)
        if (names->n < MAX_NAMES)
            names->list[names->n++] = *alias;
}

const tg_variant *variant_by_name(struct context *context, const char *name)
{
    const tg_variant *variant = variant_lookup(context, name);
    if (variant)
        return variant;
    struct names names = {.n = 0};
    variants_each(context, add_names, &names);
    const char *near = nearest_name(name, names.list);
    char hint[128];
    snprintf(hint, sizeof hint, "did you mean '%s'?", near ? near : "");
    complain(context, near ? hint : "`tegula variants` lists them; --load brings your own", "unknown variant '%s'",
             name);
    return NULL;
}

bool shape_class_check(struct context *context, const tg_shape_class *shape)
{
    const struct {
        const char *name;
        uint32_t width;
    } widths[] = {{"dqk", shape->dqk}, {"dhv", shape->dhv}};
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        uint32_t width = widths[i].width;
        if (width >= 16 && width <= 512 && width % 8 == 0)
            continue;
        complain(context, "pad the tensors with zero columns to the next multiple of 8",
                 "%s is %u: expected a multiple of 8 from 16 to 512", widths[i].name, width);
        ok = false;
    }
    return ok;
}

bool shapes_wanted(struct context *context, tg_shape shapes[MAX_SHAPES], uint32_t *n)
{
    struct options *options = &context->options;
    if (options->n_shapes && (options->dqk || options->dhv)) {
        complain(context, "leave --dqk and --dhv out", "--shape has the widths already");
        return false;
    }
    for (uint32_t i = 0; i < options->n_shapes; i++) {
        if (!options_shape(context, &options->shapes[i]))
            return false;
        shapes[i] = options->shapes[i];
    }
    *n = options->n_shapes ? options->n_shapes : 1;
    if (!options->n_shapes)
        shapes[0] = (tg_shape){.dqk = options->dqk ? options->dqk : 128,
                               .dhv = options->dhv ? options->dhv : 256,
                               .group = options->group,
                               .most_tokens = options->tokens,
                               .packed = options->packed,
                               .pooled = options->pool};
    return true;
}

/* The widths of --dqk and --dhv, or all that --shape says. */
static bool shape_wanted(struct context *context, tg_shape *shape)
{
    tg_shape shapes[MAX_SHAPES];
    uint32_t n;
    if (context->options.n_shapes > 1) {
        complain(context, "run the command once more for the other", "%u --shape options; a schedule is for one",
                 context->options.n_shapes);
        return false;
    }
    if (!shapes_wanted(context, shapes, &n))
        return false;
    *shape = shapes[0];
    return true;
}

bool shape_class_wanted(struct context *context, tg_shape_class *shape, tg_shape *sizes)
{
    const struct options *options = &context->options;
    tg_dtype io = TG_BF16;
    if (!shape_wanted(context, sizes) || (options->dtype && !dtype_parse(context, options->dtype, &io)))
        return false;
    *shape = tg_shape_class_of(sizes, io);
    if (!options_states(context, shape) || !shape_class_check(context, shape))
        return false;
    if (!options->n_shapes) {
        const tg_sizes usual = tg_sizes_usual(shape);
        sizes->batch = usual.batch;
        sizes->heads = usual.heads;
        sizes->tokens = usual.tokens;
    }
    return true;
}

static bool schedule_default(struct context *context, const tg_variant *variant, const tg_target *target,
                             const tg_shape_class *shape, const tg_shape *sizes, const char *changes,
                             tg_schedule *schedule)
{
    tg_sizes of_call = tg_sizes_usual(shape); /* where nobody says what it will be called with */
    if (sizes)
        of_call = (tg_sizes){sizes->batch, sizes->heads, sizes->tokens, 0};
    const char *chunk = strstr(changes, "chunk=");
    of_call.chunk = chunk ? strtol(chunk + strlen("chunk="), NULL, 10) : context->options.chunk;
    return tg_schedule_default(variant, target, shape, &of_call, schedule, &context->sink) == TG_OK;
}

bool schedule_from_text(struct context *context, const tg_variant *variant, const tg_target *target,
                        const tg_shape_class *shape, const tg_shape *sizes, const char *text, tg_schedule *schedule)
{
    char base[TG_SCHEDULE_TEXT], whole[2 * TG_SCHEDULE_TEXT];
    text += strspn(text, " ");
    const size_t length = strcspn(text, " ");
    if (length > 0 && !memchr(text, '=', length))
        return tg_variant_schedule_named(variant, text, schedule, &context->sink) == TG_OK;
    if (!schedule_default(context, variant, target, shape, sizes, text, schedule))
        return false;
    tg_schedule_text(variant, schedule, base);
    snprintf(whole, sizeof whole, "%s %s", base, text);
    return tg_variant_schedule_named(variant, whole, schedule, &context->sink) == TG_OK;
}

struct wish wish_of(const struct options *options)
{
    return (struct wish){options->schedule, options->chunk};
}

bool schedule_choose(struct context *context, const tg_variant *variant, const tg_target *target,
                     const tg_shape_class *shape, const tg_shape *sizes, struct wish wish, struct choice *choice)
{
    if (!shape_class_check(context, shape))
        return false;
    if (wish.schedule) {
        if (!schedule_from_text(context, variant, target, shape, sizes, wish.schedule, &choice->schedule))
            return false;
        snprintf(choice->origin, sizeof choice->origin, "--schedule");
    } else if (!schedule_remembered(context, variant, target, shape, sizes, wish.chunk, choice)) {
        if (!schedule_default(context, variant, target, shape, sizes, "", &choice->schedule))
            return false;
        snprintf(choice->origin, sizeof choice->origin, "default");
    }
    return tg_schedule_set_chunk(&choice->schedule, wish.chunk, &context->sink) == TG_OK &&
           tg_plan_check(&choice->schedule, target, shape, &context->sink) == TG_OK;
}
