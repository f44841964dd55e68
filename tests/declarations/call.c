/* tests/declarations/call.c - the rest of a declaration: random numbers, target, element type, sizes; what it has,
 * and its text. */
#include "declare.h"
#include "dsl/fields.h"
#include "dsl/slice.h"

#include <string.h>

static struct draw draw_of(uint64_t seed, const char *stream)
{
    return (struct draw){{seed, tg_num_stream(stream)}, 0};
}

uint32_t draw_below(struct draw *draw, uint32_t n)
{
    return (uint32_t)(tg_num_bits(draw->random, draw->n++) >> 33) % n;
}

bool draw_chance(struct draw *draw, uint32_t percent)
{
    return draw_below(draw, 100) < percent;
}

void declare_call(struct draw *draw, struct declaration *d)
{
    tg_shape *s = &d->shape;
    d->target = tg_target_find(DRAW(draw, 0, 1) ? "sm_90a" : "sm_80");
    d->io = (tg_dtype)DRAW(draw, TG_BF16, TG_BF16, TG_F16, TG_F32);
    s->group = DRAW(draw, 1, 1, 2);
    s->heads = s->group * DRAW(draw, 1, 2);
    s->batch = DRAW(draw, 1, 2);
    s->tokens = DRAW(draw, 1, 15, 64, 65, 100, 130);
    s->dqk = DRAW(draw, 16, 24, 32, 64);
    s->dhv = DRAW(draw, 16, 32, 40, 64);
    if (d->target->exact && draw_chance(draw, 70)) {
        s->dqk = DRAW(draw, 64, 64, 64, 128);
        s->dhv = DRAW(draw, 64, 64, 128);
    }
    s->packed = draw_chance(draw, 20);
    s->pooled = draw_chance(draw, 10);
    d->without_optional = draw_chance(draw, 25);
}

/* ---- kinds ---- */

static bool has_row(const struct declaration *d, bool (*is)(const tg_schedule *, const tg_kernel_row *))
{
    for (uint32_t r = 0; r < d->schedule.n_rows; r++)
        if (is(&d->schedule, &d->schedule.rows[r]))
            return true;
    return false;
}

static bool has_statement(const struct declaration *d, bool (*is)(const tg_algorithm *, const tg_stmt *))
{
    for (uint32_t s = 0; s < d->algorithm.n_body; s++)
        if (is(&d->algorithm, &d->algorithm.body[s]))
            return true;
    return false;
}

static bool solves(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    (void)algorithm;
    return stmt->op == TG_STMT_SOLVE;
}

static bool reads_square(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    tg_operand reads[TG_MAX_READS];
    for (uint32_t i = 0, n = tg_stmt_reads(stmt, reads); i < n; i++)
        if (tg_tile_is_square(algorithm, TG_OPERAND_TILE(reads[i])))
            return true;
    return false;
}

static bool decays(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    (void)algorithm;
    return tg_stmt_decays(stmt);
}

static bool has_segments(const tg_schedule *schedule, const tg_kernel_row *row)
{
    (void)schedule;
    return row->row[TG_SEG].role != TG_ROLE_NONE && !tg_row_relays(row);
}

static bool joins_heads(const tg_schedule *schedule, const tg_kernel_row *row)
{
    (void)schedule;
    return row->row[TG_MEMBER].role == TG_ROLE_P && row->row[TG_MEMBER].block > 1;
}

static bool clusters_heads(const tg_schedule *schedule, const tg_kernel_row *row)
{
    (void)schedule;
    return row->row[TG_MEMBER].role == TG_ROLE_P && row->row[TG_MEMBER].cluster & TG_ADDS;
}

static bool has_ends(const tg_schedule *schedule, const tg_kernel_row *row)
{
    (void)schedule;
    return tg_row_has_ends(row);
}

static bool holds_state(const tg_schedule *schedule, const tg_kernel_row *row)
{
    return schedule->max_tokens > 1 && tg_row_walks_tokens(schedule, row) && tg_row_sharers(row);
}

static bool is_walk(const tg_schedule *schedule, const tg_kernel_row *row)
{
    (void)schedule;
    return row->mma == TG_MMA_WGMMA;
}

/* Two groups have the same 64 rows. */
static bool shares_columns(const tg_schedule *schedule, const tg_kernel_row *row)
{
    (void)schedule;
    return row->mma == TG_MMA_WGMMA && row->warps == 8 &&
           (row->row[TG_DQK].block == 64) != (row->row[TG_DHV].block == 64);
}

/* Its decay is of an axis that the result has too. */
static bool spreads(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    const uint8_t axis = tg_stmt_decays(stmt) ? algorithm->tensors[TG_OPERAND_TILE(stmt->decay)].axes[1] : 0;
    return axis && memchr(algorithm->tensors[TG_OPERAND_TILE(stmt->out)].axes, axis, TG_MAX_AXES);
}

static bool adds_sums(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    return stmt->op == TG_STMT_CARRY && !stmt->b && algorithm->tensors[TG_OPERAND_TILE(stmt->a)].axes[2];
}

static bool sums_batch(const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    return algorithm->tensors[TG_OPERAND_TILE(stmt->out)].flags & TG_NO_BATCH && stmt->op == TG_STMT_TOTAL;
}

const char *const kind_names[N_KINDS] = {"inverse",
                                         "positions in memory",
                                         "decayed product",
                                         "kept decay",
                                         "sum into a state",
                                         "parameter",
                                         "walk",
                                         "segments",
                                         "heads together",
                                         "heads in a cluster",
                                         "ends of segments",
                                         "held state",
                                         "pool",
                                         "kept tensor",
                                         "final states alone",
                                         "pieces",
                                         "relayed states",
                                         "shared columns"};

bool is_of_kind(const struct declaration *d, enum kind kind)
{
    switch (kind) {
    case KIND_SOLVE:
        return has_statement(d, solves);
    case KIND_SQUARE:
        return has_statement(d, reads_square);
    case KIND_DECAY:
        return has_statement(d, decays);
    case KIND_SPREAD:
        return has_statement(d, spreads);
    case KIND_SUM:
        return has_statement(d, adds_sums);
    case KIND_PARAMETER:
        return has_statement(d, sums_batch);
    case KIND_POOL:
        return d->shape.pooled;
    case KIND_KEPT:
        return d->schedule.kept[0];
    case KIND_STATES:
        return d->is_states;
    case KIND_PIECES:
        return d->schedule.pieces > 1;
    case KIND_RELAY:
        return tg_schedule_relays(&d->schedule);
    case KIND_WALK:
        return has_row(d, is_walk);
    case KIND_SEGMENTS:
        return has_row(d, has_segments);
    case KIND_HEADS:
        return has_row(d, joins_heads);
    case KIND_CLUSTER:
        return has_row(d, clusters_heads);
    case KIND_ENDS:
        return has_row(d, has_ends);
    case KIND_COLUMNS:
        return has_row(d, shares_columns);
    default:
        return has_row(d, holds_state);
    }
}

void declare(uint64_t seed, struct declaration *d)
{
    struct draw draw = draw_of(seed / SCHEDULES_OF_EACH, "declaration"), own = draw_of(seed, "schedule");
    *d = (struct declaration){.schedules = {&d->schedule, NULL}};
    declare_call(&draw, d);
    if (draw_chance(&draw, 25)) {
        d->is_mutant = true;
        declare_mutant(&own, d);
    } else {
        declare_algorithm(&draw, d);
        d->shape.pooled = d->shape.pooled && tg_algorithm_has_states(&d->algorithm); /* else it is refused */
        declare_schedule(&own, d);
        static const char *const no_aliases[] = {NULL};
        d->variant = (tg_variant){TG_HEADER(tg_variant), .name = "random", .aliases = no_aliases};
    }
    if (draw_chance(&own, 12))
        declare_states(d);
    d->variant.algorithm = &d->algorithm;
    d->variant.schedules = d->schedules;
    d->variant.spaces = NULL;
    d->variant.oracle = NULL;
    d->variant.backward = NULL;
}

void print_declaration(const struct declaration *d)
{
    const tg_shape *s = &d->shape;
    const tg_writer writer = file_writer(stdout);
    tg_algorithm_print(&d->algorithm, &writer);
    tg_schedule_print(&d->schedule, &writer);
    printf("%s, %s, chunk %u: B=%lld NH=%lld T=%lld dqk=%lld dhv=%lld group=%lld%s%s%s\n", d->target->arch,
           tg_dtype_name(d->io), d->schedule.chunk, (long long)s->batch, (long long)s->heads, (long long)s->tokens,
           (long long)s->dqk, (long long)s->dhv, (long long)s->group, s->packed ? " packed" : "",
           s->pooled ? " pooled" : "", d->without_optional ? ", nothing optional" : "");
}
