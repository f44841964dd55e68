/* cli/parts.c - what `tegula compile` makes a set of: for every architecture of --arch and pair of widths the default
 * schedule and those for the sizes of each --shape, or the schedules that --schedule names. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

void parts_free(struct set_parts *parts)
{
    free(parts->row);
    *parts = (struct set_parts){.n = 0};
}

static tg_set_part *find_part(struct set_parts *parts, const tg_target *target, const tg_shape_class *class)
{
    for (uint32_t i = 0; i < parts->n; i++) {
        tg_set_part *part = &parts->row[i];
        if (part->target == target && part->shape.dqk == class->dqk && part->shape.dhv == class->dhv)
            return part;
    }
    return NULL;
}

static tg_set_part *make_part(struct context *context, struct set_parts *parts, const tg_target *target,
                              const tg_shape_class *class)
{
    tg_set_part *row = realloc(parts->row, (parts->n + 1) * sizeof *row);
    if (row)
        parts->row = row;
    if (!row || parts->n == TG_MAX_BRANCHES) {
        complain(context, "make two sets, with names of their own",
                 "more than %d pairs of an architecture and widths, or no memory for them", TG_MAX_BRANCHES);
        return NULL;
    }
    row = &parts->row[parts->n++];
    *row = (tg_set_part){.target = target, .shape = *class};
    return row;
}

/* The number of a schedule in its part: what makes the same code is there once. */
static uint8_t add_schedule(tg_set_part *part, const tg_schedule *schedule)
{
    char key[33], other[33];
    tg_compile_key(schedule, part->target, &part->shape, NULL, key);
    for (uint32_t i = 0; i < part->n_schedules; i++) {
        tg_compile_key(&part->schedules[i], part->target, &part->shape, NULL, other);
        if (strcmp(key, other) == 0)
            return (uint8_t)i;
    }
    part->schedules[part->n_schedules] = *schedule;
    return (uint8_t)part->n_schedules++;
}

/* The schedule of a part for these sizes; not `is_default`: for them and for what is near. */
static bool add_choice(struct context *context, const tg_variant *variant, struct set_parts *parts, tg_set_part *part,
                       const tg_shape *sizes, bool is_default)
{
    const struct wish wish = wish_of(&context->options);
    struct choice choice;
    struct chosen *chosen = &parts->chosen[parts->n_chosen];
    if (parts->n_chosen == MAX_CHOSEN || part->n_schedules == TG_MAX_BRANCH_PROGRAMS) {
        complain(context, "ask for fewer shapes", "more than %d choices, or %d for one architecture and widths",
                 MAX_CHOSEN, TG_MAX_BRANCH_PROGRAMS);
        return false;
    }
    const bool is_measured =
        (!is_default || context->options.wisdom) && !wish.schedule &&
        schedule_measured(context, variant, part->target, &part->shape, sizes, wish.chunk, &choice);
    if (is_measured ? tg_schedule_set_chunk(&choice.schedule, wish.chunk, &context->sink) != TG_OK
                    : !schedule_choose(context, variant, part->target, &part->shape, sizes, wish, &choice))
        return false;
    *chosen = (struct chosen){.part = (uint32_t)(part - parts->row), .sizes = *sizes, .is_default = is_default};
    chosen->program = add_schedule(part, &choice.schedule);
    snprintf(chosen->origin, sizeof chosen->origin, "%s", choice.origin);
    tg_schedule_text(variant, &choice.schedule, chosen->schedule);
    if (!is_default)
        part->points[part->n_points++] = (tg_point_of_set){.batch = sizes->batch,
                                                           .heads = sizes->heads,
                                                           .tokens = sizes->tokens,
                                                           .program = (uint8_t)chosen->program,
                                                           .origin = is_measured ? TG_BY_WISDOM : TG_BY_MODEL};
    parts->n_chosen++;
    return true;
}

/* What nobody gave sizes for. */
static tg_shape usual_sizes(const tg_shape_class *class, const tg_shape *like)
{
    const tg_sizes usual = tg_sizes_usual(class);
    tg_shape shape = *like;
    shape.batch = usual.batch;
    shape.heads = usual.heads;
    shape.tokens = usual.tokens;
    return shape;
}

/* Each --schedule, the first being the default: by name, for any sizes. */
static bool add_named(struct context *context, const tg_variant *variant, struct set_parts *parts, tg_set_part *part,
                      const tg_shape *sizes)
{
    struct options *options = &context->options;
    const char *const last = options->schedule;
    bool ok = true;
    for (uint32_t i = 0; i < options->n_schedules && ok; i++) {
        options->schedule = options->schedules[i];
        ok = add_choice(context, variant, parts, part, sizes, true);
    }
    options->schedule = last;
    return ok;
}

/* The first choices of a pair of widths on an architecture. */
static bool begin_part(struct context *context, const tg_variant *variant, struct set_parts *parts,
                       const tg_target *target, const tg_shape_class *class, const tg_shape *shape)
{
    const tg_shape usual = usual_sizes(class, shape);
    const bool is_named = context->options.n_schedules > 0;
    tg_set_part *part = make_part(context, parts, target, class);
    return part && (is_named ? add_named(context, variant, parts, part, context->options.n_shapes ? shape : &usual)
                             : add_choice(context, variant, parts, part, &usual, true));
}

static bool add_target(struct context *context, const tg_variant *variant, const tg_shape *shapes, uint32_t n,
                       tg_dtype io, const tg_target *target, struct set_parts *parts)
{
    for (uint32_t i = 0; i < n; i++) {
        tg_shape_class class = tg_shape_class_of(&shapes[i], io);
        if (!options_states(context, &class) || !shape_class_check(context, &class) ||
            (!find_part(parts, target, &class) && !begin_part(context, variant, parts, target, &class, &shapes[i])))
            return false;
        if (context->options.n_shapes && !context->options.n_schedules &&
            !add_choice(context, variant, parts, find_part(parts, target, &class), &shapes[i], false))
            return false;
    }
    return true;
}

bool parts_wanted(struct context *context, const tg_variant *variant, struct set_parts *parts)
{
    struct options *options = &context->options;
    const tg_target *targets[MAX_TARGETS];
    tg_shape shapes[MAX_SHAPES];
    uint32_t n_shapes, n_targets;
    tg_dtype io = TG_BF16;
    *parts = (struct set_parts){.n = 0};
    if (!shapes_wanted(context, shapes, &n_shapes) || (options->dtype && !dtype_parse(context, options->dtype, &io)) ||
        !targets_wanted(context, targets, &n_targets))
        return false;
    for (uint32_t i = 0; i < n_targets; i++)
        if (!add_target(context, variant, shapes, n_shapes, io, targets[i], parts)) {
            parts_free(parts);
            return false;
        }
    return true;
}
