/* compiler/search.c - what the cost model thinks of a variant's schedules and of the points of their spaces.
 *
 * A cost is a sum over the rows (plan_seconds), and a row is planned once for each of its own fields' values: how the sequence is cut, into
 * chunks and segments, is an argument of the model, not of the plan. So for every cut each row takes what is best for it
 * alone. A row starts from what is declared and changes one field at a time, and only for more than the model's error:
 * it tells cuts apart, and blocks hardly. Fields of several rows are an outer loop. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"

#include "dsl/bind.h"
#include "dsl/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CUTS = 64, MAX_FIELDS = 16, MAX_POINTS = 4096, MAX_JOINT_POINTS = 128 };

/* Chunk size, and chunks of a segment; 0: there are none. */
struct cut {
    uint32_t chunk, segment;
};

/* Fields and all combinations of their values: point 0 is what is declared, and value 0 of a field the declared one. */
struct fields {
    const tg_vary *vary[MAX_FIELDS];
    uint32_t n_values[MAX_FIELDS]; /* with the declared one */
    uint32_t n, n_points;
};

/* What is best for one cut. */
struct best {
    double seconds, weight; /* HUGE_VAL: nothing fits */
    uint32_t joint;         /* point of the joint fields */
    uint16_t points[TG_MAX_ROWS];
};

struct search {
    const tg_target *target;
    const tg_shape_class *shape;
    tg_sizes sizes; /* as the model counts them */
    bool is_empty;

    const tg_schedule *declared;
    const tg_space *space;   /* NULL: there is none */
    uint32_t fixed;          /* TG_FIXED_... of the point: what stays as declared */
    tg_schedule schedule;    /* at the point that is planned */
    struct tg_slices slices; /* of what is declared */
    struct plan plan;
    struct cut cuts[MAX_CUTS];
    uint32_t n_cuts;
    struct fields joint;                    /* those that several rows have */
    double seconds[TG_MAX_ROWS][MAX_CUTS];  /* of each row at its best point, for the joint point at hand */
    uint16_t points[TG_MAX_ROWS][MAX_CUTS]; /* which that is */
    struct best best[MAX_CUTS];
    double limit; /* seconds beyond which nobody wants to know; HUGE_VAL: there is none */
    bool limits;  /* a choice sets it */

    double *table; /* [point][cut] of the row at hand; NaN: not known yet */
};

/* ---- cuts ---- */

/* The declared value, and those of the space whose unit of `tokens` is below `most`. */
static uint32_t cut_values(const tg_vary *vary, uint32_t declared, int64_t tokens, int64_t most,
                           uint32_t values[TG_MAX_VALUES + 1])
{
    uint32_t n = 0;
    values[n++] = declared;
    for (uint32_t i = 0; vary && i < TG_MAX_VALUES && vary->values[i]; i++)
        if (vary->values[i] != declared && vary->values[i] * tokens < most)
            values[n++] = vary->values[i];
    return n;
}

/* Chunks beyond twice the sequence would only grow its padding. A sequence that is one segment is not cut: rows that make and compose
 * states of segments would be launched for nothing. */
static void find_cuts(struct search *s, int64_t chunk)
{
    const tg_vary *by_chunk = NULL, *by_segment = NULL;
    uint32_t chunks[TG_MAX_VALUES + 1] = {(uint32_t)chunk}, segments[TG_MAX_VALUES + 1], n = 1;
    const uint32_t segment = tg_field_get(s->declared, (struct tg_field_at){.field = TG_FIELD_SEGMENT});
    for (uint32_t v = 0; s->space && !(s->fixed & TG_FIXED_CUT) && v < s->space->n_vary; v++) {
        by_chunk = s->space->vary[v].field == TG_FIELD_CHUNK ? &s->space->vary[v] : by_chunk;
        by_segment = segment && s->space->vary[v].field == TG_FIELD_SEGMENT ? &s->space->vary[v] : by_segment;
    }
    if (!chunk)
        n = cut_values(by_chunk, s->declared->chunk, 1, 2 * s->sizes.tokens, chunks);
    s->n_cuts = 0;
    for (uint32_t c = 0; c < n; c++) {
        const uint32_t m = cut_values(by_segment, segment, chunks[c], s->sizes.tokens, segments);
        for (uint32_t i = 0; i < m && s->n_cuts < MAX_CUTS; i++)
            s->cuts[s->n_cuts++] = (struct cut){chunks[c], segments[i]};
    }
}

static void set_segment(tg_schedule *schedule, uint32_t chunks)
{
    tg_field_set(schedule, (struct tg_field_at){.field = TG_FIELD_SEGMENT}, chunks);
}

/* The plan is the same for any length of segments; what it says of the length follows. */
static void cut_plan(struct search *s, const struct cut *cut)
{
    struct plan *p = &s->plan;
    set_segment(&s->schedule, cut->segment);
    s->sizes.chunk = cut->chunk;
    p->block[TG_SEG] = cut->segment;
    p->segment = p->segment ? cut->segment : 0;
    p->starts = p->starts ? cut->segment : 0;
    p->composes = p->composes ? cut->segment : 0;
}

/* ---- points of a row ---- */

/* A block wider than the dimension is cut to it: one such value is enough. */
static bool is_repeated(const struct search *s, const tg_vary *vary, uint32_t value, uint32_t declared)
{
    const uint32_t size = vary->dim == TG_DQK ? s->shape->dqk : vary->dim == TG_DHV ? s->shape->dhv : UINT32_MAX;
    if (value == declared)
        return true;
    if (vary->field != TG_FIELD_BLOCK || value < size)
        return false;
    bool repeated = declared == 0 || declared >= size;
    for (uint32_t i = 0; i < TG_MAX_VALUES && vary->values[i]; i++)
        repeated |= vary->values[i] >= size && vary->values[i] < value;
    return repeated;
}

/* Value `i` of a field: the declared one, then those of the space that say something else. 0: there are no more; blocks of a
 * space are never 0. */
static uint32_t value_of(const struct search *s, const tg_vary *vary, uint32_t i)
{
    struct tg_field_at at;
    const uint32_t declared = tg_vary_at(s->declared, vary, &at) ? tg_field_get(s->declared, at) : 0;
    for (uint32_t k = 0; i > 0 && k < TG_MAX_VALUES && vary->values[k]; k++)
        if (!is_repeated(s, vary, vary->values[k], declared) && --i == 0)
            return vary->values[k];
    return i == 0 ? declared : 0;
}

static void add_field(const struct search *s, const tg_vary *vary, uint32_t most, struct fields *fields)
{
    uint32_t n = 1;
    while (n <= TG_MAX_VALUES && value_of(s, vary, n))
        n++;
    if (fields->n == MAX_FIELDS || fields->n_points * n > most)
        return; /* it stays as declared */
    fields->n_points *= n;
    fields->vary[fields->n] = vary;
    fields->n_values[fields->n++] = n;
}

/* Of kernels with mma.sync the model knows neither what registers a block leaves nor which of them spill: its blocks are
 * those that were declared, and other ones for tuning to measure. What composes segments it knows. */
static bool is_fitted(const struct search *s, uint32_t row)
{
    const tg_kernel_row *const declared = &s->declared->rows[row];
    return declared->mma == TG_MMA_WGMMA || declared->row[TG_SEG].role == TG_ROLE_W;
}

/* The point's blocks are where to begin, not all there is. */
static bool has_blocks(const struct search *s)
{
    return s->space && !(s->fixed & TG_FIXED_BLOCKS);
}

/* Of a row alone. */
static void find_own(const struct search *s, uint32_t row, struct fields *own)
{
    *own = (struct fields){.n_points = 1};
    for (uint32_t v = 0; has_blocks(s) && v < s->space->n_vary; v++) {
        const tg_vary *vary = &s->space->vary[v];
        struct tg_field_at at;
        if (tg_field_is_of_row(vary->field) && !tg_vary_is_joint(vary) && tg_vary_at(s->declared, vary, &at) &&
            at.row == row && is_fitted(s, row))
            add_field(s, vary, MAX_POINTS, own);
    }
}

static void find_joint(struct search *s)
{
    struct tg_field_at at;
    s->joint = (struct fields){.n_points = 1};
    for (uint32_t v = 0; has_blocks(s) && v < s->space->n_vary; v++)
        if (tg_vary_is_joint(&s->space->vary[v]) && tg_vary_at(s->declared, &s->space->vary[v], &at))
            add_field(s, &s->space->vary[v], MAX_JOINT_POINTS, &s->joint);
}

static void set_point(const struct search *s, tg_schedule *schedule, const struct fields *fields, uint32_t point)
{
    for (uint32_t i = 0; i < fields->n; point /= fields->n_values[i++])
        (void)tg_vary_apply(fields->vary[i], value_of(s, fields->vary[i], point % fields->n_values[i]), schedule);
}

/* Blocks of positions in a matrix product divide the chunk. */
static bool divides(const tg_kernel_row *row, uint32_t chunk)
{
    for (uint32_t d = TG_LQ; d <= TG_LKV; d++)
        if (row->mma != TG_MMA_NONE && row->row[d].block && chunk % row->row[d].block)
            return false;
    return true;
}

/* The first row has none before it. */
static double in_call(uint32_t row, tg_cost cost)
{
    return cost.seconds - (row ? cost.hidden_seconds : 0);
}

/* The row's seconds at every cut; HUGE_VAL where it does not fit. */
static void plan_point(struct search *s, const struct fields *own, uint32_t row, uint32_t point)
{
    const tg_sink quiet = {0};
    double *seconds = &s->table[point * s->n_cuts];
    set_point(s, &s->schedule, own, point);
    s->schedule.chunk = s->cuts[0].chunk;
    set_segment(&s->schedule, s->cuts[0].segment);
    const bool fits = plan_draft(&s->plan, &s->schedule, &s->slices, row, s->target, s->shape, &quiet);
    for (uint32_t c = 0; c < s->n_cuts; c++) {
        seconds[c] = HUGE_VAL;
        if (!fits || !divides(s->plan.row, s->cuts[c].chunk))
            continue;
        cut_plan(s, &s->cuts[c]);
        seconds[c] = s->is_empty ? 0 : in_call(row, plan_cost(&s->plan, &s->sizes));
    }
}

static double seconds_at(struct search *s, const struct fields *own, uint32_t row, uint32_t point, uint32_t cut)
{
    if (isnan(s->table[point * s->n_cuts]))
        plan_point(s, own, row, point);
    return s->table[point * s->n_cuts + cut];
}

/* Where the declared one does not fit: any that does, and the fastest of them. */
static uint32_t any_point(struct search *s, const struct fields *own, uint32_t row, uint32_t cut)
{
    uint32_t best = 0;
    for (uint32_t point = 1; point < own->n_points; point++)
        if (seconds_at(s, own, row, point, cut) < seconds_at(s, own, row, best, cut))
            best = point;
    return best;
}

/* One field after the other, until none helps. */
static uint32_t descend(struct search *s, const struct fields *own, uint32_t row, uint32_t cut)
{
    uint32_t here = seconds_at(s, own, row, 0, cut) < HUGE_VAL ? 0 : any_point(s, own, row, cut), before;
    do {
        before = here;
        for (uint32_t i = 0, step = 1; i < own->n; step *= own->n_values[i++]) {
            const uint32_t other = here - here / step % own->n_values[i] * step;
            uint32_t best = here;
            for (uint32_t k = 0; k < own->n_values[i]; k++)
                if (seconds_at(s, own, row, other + k * step, cut) < seconds_at(s, own, row, best, cut))
                    best = other + k * step;
            if (plan_tie * seconds_at(s, own, row, best, cut) < seconds_at(s, own, row, here, cut))
                here = best;
        }
    } while (here != before);
    return here;
}

static bool search_row(struct search *s, uint32_t row)
{
    struct fields own;
    bool any = false;
    find_own(s, row, &own);
    s->table = malloc(sizeof *s->table * own.n_points * s->n_cuts);
    for (uint32_t i = 0; s->table && i < own.n_points; i++)
        s->table[i * s->n_cuts] = NAN;
    for (uint32_t c = 0; s->table && c < s->n_cuts; c++) {
        s->points[row][c] = (uint16_t)descend(s, &own, row, c);
        s->seconds[row][c] = seconds_at(s, &own, row, s->points[row][c], c);
        any |= s->seconds[row][c] < HUGE_VAL;
    }
    free(s->table);
    set_point(s, &s->schedule, &own, 0);
    return any;
}

/* ---- all rows ---- */

/* Rows that have one of the joint fields, or read what such a row has written, perhaps in parts. */
static uint32_t joint_rows(const struct search *s)
{
    uint32_t rows = 0;
    tg_bits written = 0;
    for (uint32_t i = 0; i < s->joint.n; i++)
        for (uint32_t k = 0; k < TG_MAX_VARIED && s->joint.vary[i]->rows[k]; k++)
            rows |= 1u << tg_row_named(s->declared, s->joint.vary[i]->rows[k]);
    for (uint32_t r = 0; r < s->declared->n_rows; r++) {
        if (s->slices.good >> r & 1 && s->slices.rows[r].loads & written)
            rows |= 1u << r;
        written |= rows >> r & 1 ? s->slices.rows[r].stores : 0;
    }
    return rows;
}

static void keep_best(struct search *s, uint32_t joint)
{
    for (uint32_t c = 0; c < s->n_cuts; c++) {
        struct best *best = &s->best[c];
        double rows[TG_MAX_ROWS];
        for (uint32_t r = 0; r < s->declared->n_rows; r++)
            rows[r] = s->seconds[r][c];
        const double seconds = plan_seconds(s->declared, &s->slices, s->target, s->shape, &s->sizes, rows);
        const double weight = joint ? plan_tie * seconds : seconds;
        if (weight >= best->weight)
            continue;
        *best = (struct best){.seconds = seconds, .weight = weight, .joint = joint};
        for (uint32_t r = 0; r < s->declared->n_rows; r++)
            best->points[r] = s->points[r][c];
    }
}

/* Adds the row's seconds at every cut; is there one within the limit? */
static bool add_row(const struct search *s, uint32_t row, double sums[MAX_CUTS])
{
    bool any = false;
    for (uint32_t c = 0; c < s->n_cuts; c++) {
        sums[c] += s->seconds[row][c];
        any |= sums[c] <= s->limit || s->declared->pieces > 1; /* that take less than the sum */
    }
    return any;
}

/* Those with matrix products first, for they take longest, and are refused; the last of them first. */
static void order_rows(const tg_schedule *declared, uint8_t order[TG_MAX_ROWS])
{
    uint32_t n = 0;
    for (int products = 1; products >= 0; products--)
        for (uint32_t r = declared->n_rows; r-- > 0;)
            if ((declared->rows[r].mma != TG_MMA_NONE) == products)
                order[n++] = (uint8_t)r;
}

static void search_rows(struct search *s)
{
    const uint32_t n = s->declared->n_rows, joint = joint_rows(s);
    uint8_t order[TG_MAX_ROWS];
    uint32_t left = (1u << n) - 1; /* rows that have not been searched */
    order_rows(s->declared, order);
    for (uint32_t point = 0; point < s->joint.n_points; point++) {
        double sums[MAX_CUTS] = {0};
        uint32_t refused = 0;
        bool is_wanted = true;
        s->schedule = *s->declared;
        set_point(s, &s->schedule, &s->joint, point);
        for (uint32_t i = 0; i < n && !refused && is_wanted; i++) {
            const uint32_t r = order[i], bit = 1u << r;
            if ((left | joint) & bit)
                refused |= search_row(s, r) ? 0 : bit;
            left &= ~bit;
            is_wanted = add_row(s, r, sums);
        }
        if (refused & ~joint)
            return; /* whatever the joint fields are */
        left |= refused;
        if (!refused && is_wanted)
            keep_best(s, point);
    }
}

static void show(struct search *s, tg_choice_fn *visit, void *user)
{
    for (uint32_t c = 0; c < s->n_cuts; c++) {
        if (s->best[c].seconds == HUGE_VAL)
            continue;
        s->schedule = *s->declared;
        s->schedule.chunk = s->cuts[c].chunk;
        set_segment(&s->schedule, s->cuts[c].segment);
        set_point(s, &s->schedule, &s->joint, s->best[c].joint);
        for (uint32_t r = 0; r < s->schedule.n_rows; r++) {
            struct fields own;
            find_own(s, r, &own);
            set_point(s, &s->schedule, &own, s->best[c].points[r]);
        }
        visit(user, &(tg_choice){&s->schedule, s->declared, s->space, s->best[c].seconds});
        if (s->limits)
            s->limit = fmin(s->limit, plan_tie * s->best[c].seconds);
    }
}

static void search_one(struct search *s, const tg_schedule *declared, const tg_space *space, int64_t chunk,
                       tg_choice_fn *visit, void *user)
{
    s->declared = declared;
    s->space = space;
    find_cuts(s, chunk);
    find_joint(s);
    for (uint32_t c = 0; c < s->n_cuts; c++)
        s->best[c] = (struct best){.seconds = HUGE_VAL, .weight = HUGE_VAL};
    search_rows(s);
    show(s, visit, user);
}

/* ---- all of a variant ---- */

static const tg_space *space_of(const tg_variant *variant, const tg_schedule *table)
{
    for (const tg_space *const *space = variant->spaces; space && *space; space++)
        if ((*space)->schedule == table)
            return *space;
    return NULL;
}

static bool is_wanted(const struct search *s, const struct tg_table *table, const tg_point *point, uint32_t which)
{
    const uint32_t when = table->declared->by_name | (point ? point->by_name : 0);
    const bool by_name = when & ~(uint32_t)TG_NAMED_ALONE || (when & TG_NAMED_ALONE && group_of(s->shape) == 1);
    return tg_point_keeps(table, point) == ((which & TG_EACH_KEEPING) != 0) && (!by_name || which & TG_EACH_BY_NAME);
}

/* All points of a table. */
static void search_table(struct search *s, const tg_variant *variant, const struct tg_table *table, int64_t chunk,
                         uint32_t which, tg_choice_fn *visit, void *user)
{
    const tg_space *space = space_of(variant, table->declared);
    const tg_point *point;
    tg_schedule declared;
    for (uint32_t at = 0; tg_point_next(table, &at, &point);) {
        if (!is_wanted(s, table, point, which) || tg_point_slice(table, point, &declared, &s->slices) != TG_OK)
            continue;
        const uint32_t room = declared.max_tokens;
        const bool takes = !room || (s->shape->tokens && s->shape->tokens <= room && plan_takes_ragged(s->shape));
        s->fixed = point ? point->fixed : 0;
        if (takes)
            search_one(s, &declared, space, room ? declared.chunk : chunk, visit, user);
    }
}

static tg_status search_all(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                            const tg_sizes *sizes, uint32_t which, bool limits, tg_choice_fn *visit, void *user)
{
    struct search *s = malloc(sizeof *s);
    if (!s)
        return TG_E_MEMORY;
    s->target = target;
    s->shape = shape;
    s->sizes = plan_sizes(shape, sizes);
    s->is_empty = s->sizes.tokens < 1 || s->sizes.batch < 1 || s->sizes.heads < 1;
    s->limits = limits;
    s->limit = HUGE_VAL;
    for (struct tg_table table = {0}; tg_table_next(variant, &table);)
        search_table(s, variant, &table, sizes->chunk, which, visit, user);
    free(s);
    return TG_OK;
}

tg_status tg_schedule_each(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                           const tg_sizes *sizes, uint32_t which, tg_choice_fn *visit, void *user, const tg_sink *sink)
{
    if (!variant || !target || !shape || !sizes || !visit)
        return TG_E_ARGUMENT;
    if (!plan_check_shape(variant->algorithm, shape, sink))
        return TG_E_ARGUMENT;
    return search_all(variant, target, shape, sizes, which, false, visit, user);
}

/* Decode steps with room for fewer tokens go before faster ones. */
tg_status plan_each_fast(const tg_variant *variant, const tg_target *target, const tg_shape_class *shape,
                         const tg_sizes *sizes, tg_choice_fn *visit, void *user)
{
    return search_all(variant, target, shape, sizes, 0, !shape->tokens, visit, user);
}
