/* compiler/set.c - several programs of one variant, and the tables by which calls take one.
 *
 * A table is the cost model's opinion at every step of heads and tokens: of the programs that can take such a call the
 * fastest, or one before it that is hardly slower (plan_tie), for the model is no better than that. A row of a schedule is
 * planned once; at each step only its cost is computed. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef double steps[TG_PICK_HEADS][TG_PICK_TOKENS];

/* The call that a step stands for: sequences of so many tokens, with so many heads in all. */
static tg_sizes sizes_at(const tg_shape_class *shape, uint32_t heads_step, uint32_t tokens_step)
{
    enum { HEADS = 16 }; /* of a sequence when there are several */
    const int64_t heads = tg_pick_size(heads_step), tokens = tg_pick_size(tokens_step);
    const uint32_t group = group_of(shape);
    tg_sizes sizes = {.batch = 1, .heads = (heads + group - 1) / group * group, .tokens = tokens};
    if (shape->packed && heads > HEADS && HEADS % group == 0) {
        sizes.batch = (heads + HEADS / 2) / HEADS;
        sizes.heads = HEADS;
        sizes.tokens = tokens * sizes.batch;
    }
    return sizes;
}

/* ... as the model counts it. */
static tg_sizes counted_at(const tg_schedule *schedule, const tg_shape_class *shape, uint32_t h, uint32_t t)
{
    const tg_sizes call = sizes_at(shape, h, t);
    tg_sizes sizes = plan_sizes(shape, &call);
    sizes.chunk = schedule->chunk;
    return sizes;
}

/* What one row takes at every step, behind others. */
static void predict_row(const struct plan *plan, const tg_schedule *schedule, const tg_shape_class *shape,
                        bool is_first, steps seconds)
{
    for (uint32_t h = 0; h < TG_PICK_HEADS; h++)
        for (uint32_t t = 0; t < TG_PICK_TOKENS; t++) {
            const tg_sizes sizes = counted_at(schedule, shape, h, t);
            const tg_cost cost = plan_cost(plan, &sizes);
            seconds[h][t] = cost.seconds - (is_first ? 0 : cost.hidden_seconds);
        }
}

static bool predict_rows(const tg_schedule *schedule, const struct tg_slices *slices, const tg_target *target,
                         const tg_shape_class *shape, steps rows[TG_MAX_ROWS], const tg_sink *sink)
{
    struct plan *plan = malloc(sizeof *plan);
    bool ok = plan != NULL;
    for (uint32_t r = 0; r < schedule->n_rows && ok; r++) {
        ok = plan_build(plan, schedule, slices, r, target, shape, sink);
        if (ok)
            predict_row(plan, schedule, shape, r == 0, rows[r]);
    }
    free(plan);
    return ok;
}

/* What the model thinks that a program takes at every step; HUGE_VAL where it cannot take the call. */
static tg_status predict(const tg_schedule *schedule, const tg_program *program, const tg_target *target,
                         const tg_shape_class *shape, steps seconds, const tg_sink *sink)
{
    steps *rows = malloc(sizeof *rows * TG_MAX_ROWS);
    struct tg_slices slices;
    tg_schedule_slice(schedule, TG_MAX_ROWS, &slices);
    const bool ok = rows && predict_rows(schedule, &slices, target, shape, rows, sink);
    for (uint32_t h = 0; h < TG_PICK_HEADS && ok; h++)
        for (uint32_t t = 0; t < TG_PICK_TOKENS; t++) {
            const tg_sizes call = sizes_at(shape, h, t), sizes = counted_at(schedule, shape, h, t);
            double each[TG_MAX_ROWS];
            for (uint32_t r = 0; r < schedule->n_rows; r++)
                each[r] = rows[r][h][t];
            seconds[h][t] = tg_sizes_check(program, &call, NULL) == TG_OK
                                ? plan_seconds(schedule, &slices, target, shape, &sizes, each)
                                : HUGE_VAL;
        }
    const tg_status status = ok ? TG_OK : rows ? TG_E_UNSUPPORTED : TG_E_MEMORY;
    free(rows);
    return status;
}

/* The fastest of n, or one before it that is hardly slower; 0 where none can. */
static uint8_t fastest(const steps *seconds, uint32_t n, uint32_t h, uint32_t t)
{
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < n; i++)
        least = fmin(least, seconds[i][h][t]);
    for (uint32_t i = 0; i < n; i++)
        if (seconds[i][h][t] < HUGE_VAL && seconds[i][h][t] <= plan_tie * least)
            return (uint8_t)i;
    return 0;
}

static tg_status fill_picks(const tg_set_part *part, const uint8_t *program_of, const tg_program *programs,
                            tg_branch *branch, const tg_sink *sink)
{
    steps *seconds = malloc(sizeof *seconds * branch->n_programs);
    tg_status status = seconds ? TG_OK : TG_E_MEMORY;
    for (uint32_t i = 0, next = 0; i < part->n_schedules && status == TG_OK; i++)
        if (program_of[i] == next) { /* the first schedule of its program */
            status = predict(&part->schedules[i], &programs[next], part->target, &part->shape, seconds[next], sink);
            next++;
        }
    for (uint32_t h = 0; h < TG_PICK_HEADS && status == TG_OK; h++)
        for (uint32_t t = 0; t < TG_PICK_TOKENS; t++)
            branch->picks[h][t] = fastest((const steps *)seconds, branch->n_programs, h, t);
    free(seconds);
    return status;
}

/* Which program each schedule of a part becomes: the same code is compiled once. Yields how many there are. */
static uint32_t number_programs(const tg_set_part *part, const char *ptxas, uint8_t program_of[TG_MAX_BRANCH_PROGRAMS])
{
    char keys[TG_MAX_BRANCH_PROGRAMS][33];
    uint32_t n = 0;
    for (uint32_t i = 0; i < part->n_schedules; i++) {
        tg_compile_key(&part->schedules[i], part->target, &part->shape, ptxas, keys[i]);
        uint32_t same = 0;
        while (strcmp(keys[same], keys[i]) != 0)
            same++;
        program_of[i] = same < i ? program_of[same] : (uint8_t)n++;
    }
    return n;
}

/* Compiles the programs of a part behind the `first` of the set. */
static tg_status compile_part(const tg_variant *variant, const tg_set_part *part, const tg_compile_options *options,
                              tg_set *set, uint32_t at, uint32_t first, const tg_sink *sink)
{
    tg_branch *branch = &set->branches[at];
    uint8_t program_of[TG_MAX_BRANCH_PROGRAMS];
    const uint32_t n = number_programs(part, options ? options->ptxas : NULL, program_of);
    tg_status status = TG_OK;
    if (first + n > TG_MAX_SET_PROGRAMS) {
        tg_report(sink, TG_ERROR, "TG0548", NULL, 0, "ask for fewer shapes, or make two sets",
                  "set of %s: expected at most %d programs, found %u and more", variant->name, TG_MAX_SET_PROGRAMS,
                  first + n);
        return TG_E_ARGUMENT;
    }
    for (uint32_t i = 0; i < part->n_schedules && status == TG_OK; i++) {
        tg_program *program = NULL;
        if (program_of[i] < branch->n_programs)
            continue;
        status = tg_compile(variant, &part->schedules[i], part->target, &part->shape, options, &program, sink);
        if (status == TG_OK) {
            tg_set_take(set, first + branch->n_programs, program);
            branch->n_programs++;
        }
    }
    branch->first = first;
    branch->n_points = part->n_points;
    for (uint32_t i = 0; i < part->n_points; i++) {
        branch->points[i] = part->points[i];
        branch->points[i].program = program_of[part->points[i].program];
    }
    return status == TG_OK && n > 1 ? fill_picks(part, program_of, &set->programs[first], branch, sink) : status;
}

static bool is_possible(const tg_set_part *part)
{
    bool ok = part->target && part->n_schedules >= 1 && part->n_schedules <= TG_MAX_BRANCH_PROGRAMS &&
              part->n_points <= TG_MAX_POINTS;
    for (uint32_t i = 0; ok && i < part->n_points; i++)
        ok = part->points[i].program < part->n_schedules;
    return ok;
}

tg_status tg_compile_set(const tg_variant *variant, const tg_set_part *parts, uint32_t n_parts,
                         const tg_compile_options *options, tg_set **set, const tg_sink *sink)
{
    if (!variant || !parts || !set || n_parts < 1 || n_parts > TG_MAX_BRANCHES)
        return TG_E_ARGUMENT;
    *set = NULL;
    for (uint32_t i = 0; i < n_parts; i++)
        if (!is_possible(&parts[i]))
            return TG_E_ARGUMENT;
    tg_set *made = tg_set_new(TG_MAX_SET_PROGRAMS, n_parts);
    tg_status status = made ? TG_OK : TG_E_MEMORY;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_parts && status == TG_OK; n += made->branches[i++].n_programs)
        status = compile_part(variant, &parts[i], options, made, i, n, sink);
    if (status == TG_OK) {
        made->n_programs = n;
        status = tg_set_verify(made, sink);
    }
    if (status == TG_OK)
        *set = made;
    else
        tg_set_free(made);
    return status;
}
