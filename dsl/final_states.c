/* dsl/final_states.c - of a variant what its final states are made of, and nothing else: statements, tensors, schedules.
 *
 * Who has some of a sequence's tokens tells others by it what they do to a state, without what comes out for the tokens: two
 * of the four tensors are read, and nothing of their length is written. The tables of schedules are the variant's own: rows lose
 * tiles and axes that are not there (dsl/bind.c), and those that are left without a tile are no rows. Points of which nothing good is
 * left are none, and then spaces. */
#include "dsl/bind.h"
#include "dsl/slice.h"
#include "dsl/tegula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 64, LONGEST_TITLE = 256 };

/* One algorithm, by itself. */
struct part {
    tg_algorithm algorithm;
    tg_tensor tensors[TG_MAX_TILES];
    tg_stmt body[TG_MAX_BODY];
    char title[LONGEST_TITLE];
    uint32_t n;               /* tables that are left: */
    const tg_schedule **list; /* NULL-terminated */
    tg_schedule *own;         /* what it points to */
    const tg_schedule **from; /* what they are in the whole */
};

struct states {
    tg_variant variant; /* first: what the caller holds */
    char name[LONGEST_NAME];
    tg_way *ways;
    uint32_t n_ways;
    struct part *parts; /* of the variant's algorithm, then of the others' */
    const tg_space **spaces;
    tg_space *own_spaces;
};

static bool is_final_state(const tg_algorithm *algorithm, uint32_t tile)
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, tile);
    return tensor && tensor->flags & TG_OUT && tg_tensor_is_of_sequence(tensor);
}

static void add(tg_bits *set, tg_operand operand)
{
    const uint32_t tile = TG_OPERAND_TILE(operand);
    *set |= tile && tile < TG_MAX_TILES ? TG_BIT(tile) : 0;
}

/* What the statement writes; where it is needed, all it reads is. */
static tg_bits outputs_of(const tg_stmt *stmt)
{
    tg_bits bits = 0;
    add(&bits, stmt->out);
    if (tg_stmt_has_final(stmt))
        add(&bits, stmt->final_);
    return bits;
}

/* The tiles that final states are made of, those among them. 0: there is no final state. */
static tg_bits needed_of(const tg_algorithm *algorithm)
{
    tg_bits needed = 0, before;
    for (uint32_t t = 1; t < algorithm->n_tensors && t < TG_MAX_TILES; t++)
        needed |= is_final_state(algorithm, t) ? TG_BIT(t) : 0;
    do {
        before = needed;
        for (uint32_t i = algorithm->n_body; i-- > 0;) {
            const tg_stmt *stmt = &algorithm->body[i];
            tg_operand reads[TG_MAX_READS];
            const bool is_needed = (outputs_of(stmt) & needed) != 0;
            const uint32_t n = is_needed ? tg_stmt_reads(stmt, reads) : 0;
            for (uint32_t k = 0; k < n; k++)
                add(&needed, reads[k]);
            if (is_needed && tg_stmt_has_final(stmt)) { /* states of segments, and their transitions */
                add(&needed, stmt->out);
                add(&needed, stmt->transition);
            }
        }
    } while (needed != before);
    return needed;
}

static bool is_same_state(const tg_stmt *one, const tg_stmt *other)
{
    return one->op == TG_STMT_CARRY && other->op == TG_STMT_CARRY && one->flags == other->flags && one->a == other->a &&
           one->b == other->b && one->init == other->init && one->decay == other->decay;
}

static bool is_read(const tg_algorithm *algorithm, uint32_t tile)
{
    for (uint32_t i = 0; i < algorithm->n_body; i++) {
        tg_operand reads[TG_MAX_READS];
        for (uint32_t k = tg_stmt_reads(&algorithm->body[i], reads); k-- > 0;)
            if (TG_OPERAND_TILE(reads[k]) == tile)
                return true;
    }
    return false;
}

/* The statements that are left: one state is carried once, where rows of the whole variant carry it each for themselves. */
static void merge_states(struct part *part, tg_bits *needed)
{
    tg_algorithm *algorithm = &part->algorithm;
    for (uint32_t i = 0; i < algorithm->n_body; i++)
        for (uint32_t j = algorithm->n_body; --j > i;) {
            tg_stmt *stmt = &part->body[i], *later = &part->body[j];
            const uint32_t out = TG_OPERAND_TILE(later->out);
            if (!is_same_state(stmt, later) || stmt->final_ || is_read(algorithm, out))
                continue;
            stmt->final_ = later->final_;
            *needed &= ~TG_BIT(out);
            memmove(later, later + 1, (--algorithm->n_body - j) * sizeof *later);
        }
}

static bool reduce(const tg_algorithm *from, const char *name, struct part *part)
{
    tg_bits needed = needed_of(from);
    uint32_t n = 0;
    for (uint32_t i = 0; i < from->n_body; i++)
        if (outputs_of(&from->body[i]) & needed) {
            part->body[n] = from->body[i];
            tg_operand *const others[] = {&part->body[n].final_, &part->body[n].behind, &part->body[n].same,
                                          &part->body[n].transposed};
            for (uint32_t k = 0; k < TG_COUNT(others); k++)
                if (!(needed & TG_BIT(TG_OPERAND_TILE(*others[k]))))
                    *others[k] = 0;
            n++;
        }
    snprintf(part->title, sizeof part->title, "%s, final states alone", from->title);
    part->algorithm = *from;
    part->algorithm.name = name;
    part->algorithm.title = part->title;
    part->algorithm.tensors = part->tensors;
    part->algorithm.body = part->body;
    part->algorithm.n_body = n;
    merge_states(part, &needed);
    for (uint32_t t = 1; t < from->n_tensors && t < TG_MAX_TILES; t++)
        if (needed & TG_BIT(t)) {
            part->tensors[t] = from->tensors[t];
            if (is_final_state(from, t))
                part->tensors[t].flags &= (uint8_t)~TG_OPTIONAL;
        }
    return n > 0;
}

/* ---- schedules ---- */

static uint32_t count_schedules(const tg_schedule *const *schedules)
{
    uint32_t n = 0;
    while (schedules && schedules[n])
        n++;
    return n;
}

static uint32_t count_points(const tg_schedule *table)
{
    uint32_t n = 0;
    while (table->points && table->points[n].name)
        n++;
    return n;
}

/* Whether there is something left of a point, or of a table without points, that makes all states. Nothing is kept for a backward. */
static bool is_good(const tg_schedule *table, const tg_point *point, const tg_algorithm *algorithm)
{
    const struct tg_table of = {.declared = table, .algorithm = algorithm};
    tg_schedule schedule;
    return tg_point_bind(&of, point, NULL, &schedule, NULL) == TG_OK && schedule.n_rows && !schedule.kept[0] &&
           tg_schedule_check(&schedule, NULL) == TG_OK;
}

/* A table with those of its points that are good. False: there are none, or there is no memory. */
static bool take_table(const tg_schedule *from, const tg_algorithm *algorithm, tg_schedule *to)
{
    const struct tg_table of = {.declared = to, .algorithm = algorithm};
    const tg_point *point;
    uint32_t n = 0;
    *to = *from;
    to->algorithm = NULL;
    if (!from->points)
        return is_good(to, NULL, algorithm);
    tg_point *points = calloc(count_points(from) + 1, sizeof *points);
    for (uint32_t at = 0; points && tg_point_next(&of, &at, &point);)
        if (is_good(to, point, algorithm))
            points[n++] = *point;
    to->points = points;
    if (n == 0)
        free(points);
    return n > 0;
}

/* One of a third algorithm is left out. */
static bool take_schedules(const tg_schedule *const *from, const tg_algorithm *whole, struct part *part)
{
    const uint32_t n = count_schedules(from);
    part->list = calloc(n + 1, sizeof *part->list);
    part->own = calloc(n + 1, sizeof *part->own);
    part->from = calloc(n + 1, sizeof *part->from);
    if (!part->list || !part->own || !part->from)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if ((from[i]->algorithm && from[i]->algorithm != whole) ||
            !take_table(from[i], &part->algorithm, &part->own[part->n]))
            continue;
        part->from[part->n] = from[i];
        part->list[part->n] = &part->own[part->n];
        part->n++;
    }
    return true;
}

static bool make_part(const tg_algorithm *whole, const tg_schedule *const *schedules, const char *name,
                      struct part *part)
{
    return tg_algorithm_check(whole, NULL) == TG_OK && reduce(whole, name, part) &&
           take_schedules(schedules, whole, part);
}

/* ---- the variant ---- */

static uint32_t count_ways(const tg_variant *variant)
{
    uint32_t n = 0;
    while (variant->others && variant->others[n].algorithm)
        n++;
    return n;
}

static const tg_schedule *own_table(const struct states *s, const tg_schedule *from)
{
    for (uint32_t i = 0; i <= s->n_ways; i++)
        for (uint32_t k = 0; k < s->parts[i].n; k++)
            if (s->parts[i].from[k] == from)
                return s->parts[i].list[k];
    return NULL;
}

/* Those of tables that are left, whose fields are all there. */
static bool take_spaces(const tg_space *const *from, struct states *s)
{
    uint32_t n = 0, left = 0;
    while (from && from[n])
        n++;
    s->spaces = calloc(n + 1, sizeof *s->spaces);
    s->own_spaces = calloc(n + 1, sizeof *s->own_spaces);
    for (uint32_t i = 0; s->spaces && s->own_spaces && i < n; i++) {
        const tg_space *const one[] = {&s->own_spaces[left], NULL};
        tg_variant with = s->variant;
        s->own_spaces[left] = *from[i];
        s->own_spaces[left].schedule = own_table(s, from[i]->schedule);
        with.spaces = one;
        if (s->own_spaces[left].schedule && tg_variant_check(&with, NULL) == TG_OK) {
            s->spaces[left] = &s->own_spaces[left];
            left++;
        }
    }
    s->variant.spaces = s->spaces;
    return s->spaces && s->own_spaces;
}

void tg_states_free(const tg_variant *states)
{
    struct states *s = (struct states *)(uintptr_t)states;
    if (!s)
        return;
    for (uint32_t i = 0; s->parts && i <= s->n_ways; i++) {
        for (uint32_t k = 0; k < s->parts[i].n; k++)
            free((void *)(uintptr_t)s->parts[i].own[k].points);
        free(s->parts[i].list);
        free(s->parts[i].own);
        free(s->parts[i].from);
    }
    free(s->parts);
    free(s->ways);
    free(s->spaces);
    free(s->own_spaces);
    free(s);
}

static bool fill(struct states *s, const tg_variant *variant)
{
    static const char *const no_aliases[] = {NULL};
    snprintf(s->name, sizeof s->name, "%s-state", variant->name);
    s->n_ways = count_ways(variant);
    s->ways = calloc(s->n_ways + 1, sizeof *s->ways);
    s->parts = calloc(s->n_ways + 1, sizeof *s->parts);
    if (!s->ways || !s->parts || !make_part(variant->algorithm, variant->schedules, s->name, &s->parts[0]))
        return false;
    for (uint32_t i = 0; i < s->n_ways; i++) {
        if (!make_part(variant->others[i].algorithm, variant->others[i].schedules, s->name, &s->parts[i + 1]))
            return false;
        s->ways[i] = (tg_way){&s->parts[i + 1].algorithm, s->parts[i + 1].list};
    }
    s->variant = (tg_variant){TG_HEADER(tg_variant),         .name = s->name,
                              .aliases = no_aliases,         .algorithm = &s->parts[0].algorithm,
                              .schedules = s->parts[0].list, .others = s->ways};
    return take_spaces(variant->spaces, s);
}

const tg_variant *tg_states_of(const tg_variant *variant)
{
    struct states *s = variant && variant->name ? calloc(1, sizeof *s) : NULL;
    if (s && !fill(s, variant)) {
        tg_states_free(&s->variant);
        return NULL;
    }
    return s ? &s->variant : NULL;
}
