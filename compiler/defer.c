/* compiler/defer.c - what an output's position decays by multiplies the sum, not each element of a tile and what came before it.
 *
 *     sum_i = w_i x_i + sum_j 2^(a_i - c_j) y_ij z_j              with w_i = 2^(a_i - m), m a number of the chunk, or 0,
 *           = w_i (x_i + sum_j 2^(m - c_j) y_ij z_j)
 *
 * Where differences of positions are factors (factor.c) these refer to m then, not to a position in the middle; w_i is the other one. It
 * is deferred to the map that reads the sum, with the number that this multiplies by first. The warps that load put the product of both
 * where that map finds it; or, of a head whose factors are too large, the number alone, and x_i is multiplied as it is written.
 * Likewise with i and j exchanged.
 *
 * Of warpgroups that have heads of their own: what is summed over heads cannot be multiplied behind that sum.
 *
 * A tile's elements grow by a factor, up to 2^60 (lower/walk_factors.c), which is beyond what f16 has: there nothing is deferred.
 *
 * requires: factor.c's vectors */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"

static bool is_tile_code(const tg_x *x, uint32_t tile)
{
    return x->op == TG_X_TILE && TG_OPERAND_TILE(x->operand) == tile;
}

/* The statement that makes the tile, in whatever kernel. */
static const tg_stmt *maker_of(const struct plan *p, uint32_t tile)
{
    for (uint32_t i = 0; i < p->algorithm->n_body; i++)
        if (p->algorithm->body[i].op == TG_STMT_MAP && TG_OPERAND_TILE(p->algorithm->body[i].out) == tile)
            return &p->algorithm->body[i];
    return NULL;
}

/* A number of each head's chunk, which the ring loads; -1: none. */
static int find_number(const struct plan *p, const tg_x *x)
{
    for (uint32_t v = 0; v < p->n_values; v++)
        if (is_tile_code(x, plan_tile_of(p, v)) && p->values[v].space == SPACE_VECTOR && p->values[v].stmt < 0 &&
            p->values[v].by_head && !p->values[v].n_dims)
            return (int)v;
    return -1;
}

/* Is w one of the two factors, 2^a of queries, or 2^(m - c) of keys? */
static bool is_factor_of_position(const struct plan *p, struct plan_deferral *d)
{
    const tg_stmt *s = maker_of(p, plan_tile_of(p, d->weight));
    const uint8_t dim = p->values[d->weight].dims[0];
    d->of_rows = dim == p->values[p->factor_rows].dims[0];
    if (!s || (!d->of_rows && dim != p->values[p->factor_columns].dims[0]))
        return false;
    if (d->of_rows)
        return tg_expr_length(s) == 2 && is_tile_code(&s->expr[0], plan_tile_of(p, p->factor_rows)) &&
               s->expr[1].op == TG_X_EXP2;
    d->reference = find_number(p, &s->expr[0]);
    return tg_expr_length(s) == 4 && d->reference >= 0 &&
           is_tile_code(&s->expr[1], plan_tile_of(p, p->factor_columns)) && s->expr[2].op == TG_X_SUB &&
           s->expr[3].op == TG_X_EXP2;
}

/* Does the map of a tile multiply by the exponential of the difference, and do nothing else with it? */
static bool is_product_of_difference(const struct plan *p, const tg_stmt *s)
{
    const int difference = plan_difference(p, s);
    for (int i = difference + 2; difference >= 0 && i < (int)tg_expr_length(s); i++)
        if (s->expr[i].op != TG_X_MUL && s->expr[i].op != TG_X_CAUSAL && s->expr[i].op != TG_X_BEFORE &&
            tg_expr_arity(s->expr[i].op))
            return false;
    return difference >= 0;
}

/* The tile of positions among the product's operands; -1: there is none. */
static int tile_of_positions(const struct plan *p, const struct op *op)
{
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t v = k ? op->b : op->a;
        if (plan_is_made_tile(&p->values[v]) && plan_is_position(p->values[v].dims[0]) &&
            plan_is_position(p->values[v].dims[1]))
            return (int)v;
    }
    return -1;
}

/* What the sum begins with, which nothing else reads; to it are added products by such tiles, which nothing else reads either. */
static bool is_sum_of_products(const struct plan *p, struct plan_deferral *d)
{
    const struct op *copy = plan_only_reader(p, d->map);
    if (!copy || copy->kind != OP_COPY)
        return false;
    d->sum = copy->v;
    bool any = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->v != d->sum || op == copy)
            continue;
        const int tile = op->kind == OP_CONTRACT ? tile_of_positions(p, op) : -1;
        if (tile < 0 || !is_product_of_difference(p, &p->algorithm->body[p->values[tile].stmt]) ||
            !plan_only_reader(p, (uint32_t)tile))
            return false;
        any = true;
    }
    return any;
}

/* One map reads the sum; the scalar by which it multiplies that before anything else. */
static bool find_reader(const struct plan *p, struct plan_deferral *d)
{
    const struct op *reader = plan_only_reader(p, d->sum);
    if (!reader || reader->kind != OP_MAP)
        return false;
    const tg_stmt *s = &p->algorithm->body[reader->stmt];
    uint32_t reads = 0;
    d->scale = -1;
    for (uint32_t i = 0; i < tg_expr_length(s); i++) {
        if (!is_tile_code(&s->expr[i], plan_tile_of(p, d->sum)))
            continue;
        reads++;
        if (s->expr[i + 1].op == TG_X_SCALAR && s->expr[i + 2].op == TG_X_MUL)
            d->scale = (int)s->expr[i + 1].operand;
    }
    return reads == 1;
}

static bool can_defer(const struct plan *p, uint32_t v, struct plan_deferral *d)
{
    struct plan_weight weight;
    if (!plan_is_weighted(p, &p->values[v], &weight))
        return false;
    *d = (struct plan_deferral){.any = true, .map = (uint8_t)v, .weight = (uint8_t)weight.by, .reference = -1};
    return is_factor_of_position(p, d) && is_sum_of_products(p, d) && find_reader(p, d);
}

void plan_find_deferral(struct plan *p)
{
    struct plan_deferral d;
    for (uint32_t v = 0; v < p->n_values && p->factors && p->own_heads && p->shape.io == TG_BF16; v++)
        if (can_defer(p, v, &d)) {
            p->deferral = d;
            return;
        }
}
