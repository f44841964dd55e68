/* tests/declarations/parts.h - what random algorithms are put together with: tiles, statements, expressions, and what has
 * been declared so far. */
#ifndef TEGULA_TESTS_PARTS_H
#define TEGULA_TESTS_PARTS_H

#include "declare.h"

#include <string.h>

#include "dsl/slice.h"

/* What has been declared so far; 0: it is not there. */
struct parts {
    struct draw *draw;
    struct declaration *d;
    uint32_t q, k, v, k2, v2, x, s0; /* inputs */
    uint32_t decay, sum, total, weight,
        arrival;            /* of the gate: log decay, its running sum, that of the chunk, 2^ of them */
    uint8_t gate;           /* the gate's axis beside TG_T: TG_DQK, TG_DHV; 0: one a token */
    uint32_t rate;          /* a parameter of it */
    float share;            /* of the log that is taken */
    uint32_t state, vector; /* carried */
    uint32_t inverse;       /* of I + keys by keys below the diagonal */
    uint32_t written;       /* the values that go into the state: v, or the inverse times something */
    uint32_t pairs;         /* weights of positions by positions */
    uint32_t rows;          /* {TG_T, TG_DHV}: the output so far */
};

static inline bool chance(struct parts *p, uint32_t percent)
{
    return draw_chance(p->draw, percent);
}

/* ---- tensors and statements ---- */

static inline uint32_t tile(struct parts *p, const char *name, int dtype, int flags, uint8_t a, uint8_t b, uint8_t c)
{
    tg_algorithm *algorithm = &p->d->algorithm;
    const uint32_t number = algorithm->n_tensors++;
    snprintf(p->d->names[number], sizeof p->d->names[number], "%s", name);
    p->d->tensors[number] = (tg_tensor){p->d->names[number], (uint8_t)dtype, (uint8_t)flags, {a, b, c}, 0};
    return number;
}

static inline tg_stmt *statement(struct parts *p, tg_stmt stmt)
{
    tg_stmt *added = &p->d->body[p->d->algorithm.n_body++];
    *added = stmt;
    added->file = "declaration";
    added->line = (int)p->d->algorithm.n_body;
    return added;
}

static inline bool has_axis(const struct parts *p, uint32_t number, uint8_t axis)
{
    return memchr(p->d->tensors[number].axes, axis, TG_MAX_AXES) != NULL;
}

/* The tile as an operand, at a position if it has tokens. */
static inline tg_operand at(const struct parts *p, uint32_t number, int position)
{
    return has_axis(p, number, TG_T) ? (tg_operand)(number | (uint32_t)position << 8) : (tg_operand)number;
}

static inline void code(tg_stmt *map, tg_x x)
{
    map->expr[tg_expr_length(map)] = x;
}

static inline void get(tg_stmt *map, tg_operand operand)
{
    code(map, (tg_x){TG_X_TILE, 0, operand, 0});
}

static inline void apply(tg_stmt *map, tg_x_op op)
{
    code(map, (tg_x){(uint8_t)op, 0, 0, 0});
}

static inline void number(tg_stmt *map, float value)
{
    code(map, (tg_x){TG_X_NUMBER, 0, 0, value});
}

static inline tg_stmt *map_to(struct parts *p, uint32_t out, int position)
{
    return statement(p, (tg_stmt){.op = TG_STMT_MAP, .out = at(p, out, position)});
}

/* A tile like `like`, with its name and a letter. */
static inline uint32_t derived(struct parts *p, uint32_t like, const char *name)
{
    const tg_tensor *t = &p->d->tensors[like];
    return tile(p, name, TG_F32, t->flags & (TG_SHARED | TG_NO_BATCH), t->axes[0], t->axes[1], t->axes[2]);
}

/* ---- operands ---- */

/* Is every axis of the one an axis of the other, so that it can be a factor? */
static inline bool is_factor(const struct parts *p, uint32_t factor, uint32_t of)
{
    const tg_tensor *f = &p->d->tensors[factor], *t = &p->d->tensors[of];
    for (int i = 0; i < TG_MAX_AXES; i++)
        if (f->axes[i] && !memchr(t->axes, f->axes[i], TG_MAX_AXES))
            return false;
    return factor != 0;
}

/* One of `of`, times what there is. */
static inline uint32_t scaled(struct parts *p, uint32_t of, const char *name, int position, uint32_t usual)
{
    const uint32_t others[] = {usual, p->x, p->k2, p->v2};
    uint32_t factor = chance(p, 65) ? usual : others[draw_below(p->draw, 4)];
    if (!factor && chance(p, 70))
        return of;
    const uint32_t out = derived(p, of, name);
    p->d->tensors[out].flags = 0;
    tg_stmt *map = map_to(p, out, position);
    get(map, at(p, of, position));
    if (is_factor(p, factor, of)) {
        get(map, at(p, factor, position));
        if (chance(p, 15) && factor != usual)
            apply(map, TG_X_SIGMOID);
    } else {
        number(map, 0.5f);
    }
    apply(map, TG_X_MUL);
    return out;
}

/* Positions x positions: on chip, or in memory. */
static inline uint32_t square(struct parts *p, const char *name, uint32_t in_memory)
{
    const bool stays = !chance(p, in_memory);
    return tile(p, name, stays ? TG_F32 : DRAW(p->draw, TG_IO, TG_IO, TG_F32), 0, stays ? TG_LQ : TG_T, TG_LKV, 0);
}

/* Times what the gate leaves of the key at the query. */
static inline void apply_gate(struct parts *p, tg_stmt *map)
{
    if (!p->sum || p->gate != 0 || !chance(p, 80))
        return;
    get(map, at(p, p->sum, TG_LQ));
    get(map, at(p, p->sum, TG_LKV));
    apply(map, TG_X_SUB);
    apply(map, TG_X_EXP2);
    apply(map, TG_X_MUL);
}

/* The product may have the gate's decay from the key to the query: of the axis that is summed, or of one that is kept. */
static inline void decay_of(struct parts *p, tg_stmt *product, bool fits)
{
    if (!fits || !chance(p, 60))
        return;
    product->decay = at(p, p->sum, TG_LQ);
    product->since = at(p, p->sum, TG_LKV);
    product->flags = chance(p, 20) ? TG_EXCLUSIVE : 0;
}

/* sums.c: products and sums beside those of the output. */
void add_norm(struct parts *p);
uint32_t added_products(struct parts *p, tg_operand a, tg_operand b, int position);
void add_gradients(struct parts *p);
void add_row_products(struct parts *p);
void add_parameter_sums(struct parts *p);

#endif
