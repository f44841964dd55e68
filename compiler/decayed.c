/* compiler/decayed.c - another way of a chunk of several heads, with what it decays by in operands.
 *
 *     S'    = 2^g S + sum_j y_j (u_j z_j)                                    with u_j = 2^(g - c_j)
 *     sum_i = w_i (S x_i) + sum_j s 2^(a_i - c_j) (x_i.y_j) z_j              with w_i = s 2^a_i
 *
 * A tile of exponentials for each head is most of what such a kernel computes beside its products, and the weights of what comes by the
 * state are most of the rest. Where no head of a chunk decays by more than 2^60 there is another way, in which nothing has a decay but
 * operands in 16 bits, and the state:
 *
 *   heads of its own   A warpgroup has z_j in registers, as the left operand of both its products, and u_j z_j there for the state. So
 *                      sum_i = 2^(a_i - g) ((2^g S) x_i + sum_j (x_i.y_j) (u_j z_j)): the tile is one for all heads, and the first
 *                      factor multiplies the sum where a map reads it. From keys to queries, with u_i = s 2^a_i: 2^-c_j.
 *   sums of heads      Both matrices of the tile are of heads, x and z, and everything else is made of these two. The warps that load
 *                      multiply them, in their places, by s 2^(a_i - g) and 2^(g - c_j): tiles and products by the state are sums over
 *                      heads without any weight, on tensor cores. The state decays before products by it, 2^g S x', where they have x',
 *                      and behind those into it, 2^g (S + y x'), where they have z'.
 *
 * Both ways are planned; in each chunk a kernel takes this one if all of the heads have such factors, which the warps that load find out.
 * In f16 2^-60 is nothing, and there is one way.
 *
 * requires: walk's spaces and heads */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"

#include <string.h>

enum { LOAD_WARPS = 4 }; /* of several heads, each at most one (order.c) */

/* The statement that makes the tile, in whatever kernel. */
static const tg_stmt *maker_of(const struct plan *p, uint32_t tile)
{
    for (uint32_t i = 0; i < p->algorithm->n_body; i++)
        if (p->algorithm->body[i].op == TG_STMT_MAP && TG_OPERAND_TILE(p->algorithm->body[i].out) == tile)
            return &p->algorithm->body[i];
    return NULL;
}

/* The one operation of its kind that makes the value; NULL: there are several, or none. */
static const struct op *only_maker(const struct plan *p, enum op_kind kind, uint32_t v)
{
    const struct op *found = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == kind && p->ops[i].v == v) {
            found = &p->ops[i];
            n++;
        }
    return n == 1 ? found : NULL;
}

/* Is the vector 2^a, of queries; or 2^(g - c), of keys, g the log of the state's decay? */
static bool is_factor(const struct plan *p, uint32_t vector, bool of_rows)
{
    const tg_stmt *s = maker_of(p, plan_tile_of(p, vector));
    const struct op *decay = only_maker(p, OP_DECAY, p->state);
    const uint8_t of = of_rows ? p->factor_rows : p->factor_columns;
    if (!s || !decay || p->values[vector].n_dims != 1 || p->values[vector].dims[0] != p->values[of].dims[0])
        return false;
    if (of_rows)
        return tg_expr_length(s) == 2 && plan_is_tile_code(&s->expr[0], plan_tile_of(p, of)) &&
               s->expr[1].op == TG_X_EXP2;
    return tg_expr_length(s) == 4 && plan_is_tile_code(&s->expr[0], plan_tile_of(p, decay->a)) &&
           plan_is_tile_code(&s->expr[1], plan_tile_of(p, of)) && s->expr[2].op == TG_X_SUB &&
           s->expr[3].op == TG_X_EXP2;
}

/* ---- products: tiles and scalars multiplied by each other ---- */

/* Is it one from code `from` on, maybe masked, of as many tiles? */
static bool is_product(const tg_stmt *s, uint32_t from, uint32_t tiles)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < tg_expr_length(s); i++) {
        const uint8_t op = s->expr[i].op;
        n += op == TG_X_TILE;
        if (op != TG_X_TILE && op != TG_X_SCALAR && op != TG_X_MUL && op != TG_X_CAUSAL && op != TG_X_BEFORE)
            return false;
    }
    return n == tiles;
}

static uint32_t count_scalars(const tg_stmt *s, int number)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < tg_expr_length(s); i++)
        n += s->expr[i].op == TG_X_SCALAR && (number < 0 || (int)s->expr[i].operand == number);
    return n;
}

static bool have_same_scalars(const tg_stmt *s, const tg_stmt *t)
{
    bool same = count_scalars(s, -1) == count_scalars(t, -1);
    for (uint32_t i = 0; i < tg_expr_length(s); i++)
        if (s->expr[i].op == TG_X_SCALAR) {
            const int number = (int)s->expr[i].operand;
            same = same && count_scalars(s, number) == count_scalars(t, number);
        }
    return same;
}

/* Codes of the tile's map: its two vectors, their difference, the exponential, and the product. */
enum { DIFFERENCE = 2, PRODUCT = 4 };

void plan_product_of_map(const tg_stmt *s, tg_stmt *product)
{
    uint32_t n = 0;
    *product = *s;
    memset(product->expr, 0, sizeof product->expr);
    for (uint32_t i = PRODUCT; i < tg_expr_length(s); i++)
        if (s->expr[i].op != TG_X_SCALAR && s->expr[i].op != TG_X_MUL)
            product->expr[n++] = s->expr[i];
}

/* Is the value read by its one map, and by sums, alone? */
static bool is_for_map(const struct plan *p, uint32_t v, enum op_kind kind, uint32_t made)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    bool is = true;
    for (uint32_t i = 0; i < p->n_ops; i++)
        for (uint32_t k = 0, n = plan_op_reads(p, &p->ops[i], reads); k < n; k++)
            is &= reads[k] != v || p->ops[i].v == v || p->ops[i].kind == OP_DOT ||
                  (p->ops[i].kind == kind && p->ops[i].v == made);
    return is;
}

/* The one tile of positions, made of two loaded matrices' product, which nothing else reads but sums along its rows. */
static bool find_tile(const struct plan *p, struct plan_ways *w)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < p->n_values; v++)
        if (plan_is_made_tile(&p->values[v])) {
            w->tile = (uint8_t)v;
            n++;
        }
    const tg_stmt *s = n == 1 ? &p->algorithm->body[p->values[w->tile].stmt] : NULL;
    if (!s || plan_difference(p, s) != DIFFERENCE || !is_product(s, PRODUCT, 1))
        return false;
    for (uint32_t i = PRODUCT; i < tg_expr_length(s); i++)
        if (s->expr[i].op == TG_X_TILE)
            w->product = (uint8_t)plan_find(p, s->expr[i].operand, p->values[w->tile].nest);
    const uint8_t last = s->expr[tg_expr_length(s) - 1].op;
    return p->values[w->product].space == SPACE_FRAGMENT && only_maker(p, OP_CONTRACT, w->product) &&
           is_for_map(p, w->product, OP_MAP, w->tile) && (last == TG_X_CAUSAL || last == TG_X_BEFORE);
}

static const tg_stmt *stmt_of(const struct plan *p, uint32_t v)
{
    return &p->algorithm->body[p->values[v].stmt];
}

/* Is what an operand has beside its matrix the factor of queries, times the tile's scalars, or that of keys? */
static bool is_decayed_operand(const struct plan *p, const struct plan_ways *w, uint32_t operand, bool of_rows)
{
    const struct value *v = &p->values[operand];
    const tg_stmt *s = v->space == SPACE_OPERAND ? stmt_of(p, operand) : NULL;
    bool is =
        s && is_product(s, 0, 2) && (of_rows ? have_same_scalars(s, stmt_of(p, w->tile)) : count_scalars(s, -1) == 0);
    for (uint32_t i = 0; is && i < tg_expr_length(s); i++) {
        const int a = s->expr[i].op == TG_X_TILE ? plan_find(p, s->expr[i].operand, v->nest) : -1;
        is = a < 0 || p->values[a].n_dims == 2 || is_factor(p, (uint32_t)a, of_rows);
    }
    return is;
}

/* The product by the state, which is read with its weight alone, with which a sum begins. */
static bool find_sum(const struct plan *p, struct plan_ways *w, struct plan_weight *weight)
{
    for (uint32_t v = 0; v < p->n_values; v++) {
        if (!plan_is_weighted(p, &p->values[v], weight))
            continue;
        const struct op *product = only_maker(p, OP_CONTRACT, weight->of);
        if (!product || (product->a != p->state && product->b != p->state))
            continue;
        w->inter = (uint8_t)weight->of;
        w->weighted = (uint8_t)v;
        const struct op *copy = NULL;
        for (uint32_t i = 0; i < p->n_ops; i++)
            copy = p->ops[i].kind == OP_COPY && p->ops[i].a == v ? &p->ops[i] : copy;
        w->sum = copy ? copy->v : 0;
        return copy && only_maker(p, OP_CONTRACT, w->sum) && plan_only_reader(p, w->inter) &&
               is_for_map(p, w->weighted, OP_COPY, w->sum);
    }
    return false;
}

/* ---- heads of their own ---- */

/* Has the product into the state the same matrix on the left as the one by the tile, times the factor that does not multiply the sum? */
static bool find_operand(const struct plan *p, struct plan_ways *w)
{
    const struct op *update = only_maker(p, OP_CONTRACT, p->state), *by_tile = only_maker(p, OP_CONTRACT, w->sum);
    if (!update || !plan_only_reader(p, w->tile))
        return false;
    w->operand = p->values[update->a].space == SPACE_OPERAND ? update->a : update->b;
    const uint32_t left = w->operand == update->a ? update->b : update->a,
                   by = by_tile->a == w->tile ? by_tile->b : by_tile->a;
    return plan_is_loaded(&p->values[left]) && plan_first_of(p, left) == plan_first_of(p, by) &&
           is_decayed_operand(p, w, w->operand, !w->of_rows) &&
           (!w->of_rows || count_scalars(stmt_of(p, w->tile), -1) == 0);
}

/* One map reads the sum; the scalar by which it multiplies that before anything else. */
static bool find_reader(const struct plan *p, struct plan_ways *w)
{
    const struct op *reader = plan_only_reader(p, w->sum);
    if (!reader || reader->kind != OP_MAP)
        return false;
    const tg_stmt *s = &p->algorithm->body[reader->stmt];
    uint32_t reads = 0;
    w->scale = -1;
    for (uint32_t i = 0; i < tg_expr_length(s); i++) {
        if (!plan_is_tile_code(&s->expr[i], plan_tile_of(p, w->sum)))
            continue;
        reads++;
        if (s->expr[i + 1].op == TG_X_SCALAR && s->expr[i + 2].op == TG_X_MUL)
            w->scale = (int)s->expr[i + 1].operand;
    }
    return reads == 1;
}

static bool find_own_way(const struct plan *p, struct plan_ways *w)
{
    struct plan_weight weight;
    w->decays_first = true;
    if (!find_sum(p, w, &weight) || weight.scalar >= 0 || !plan_only_reader(p, w->weighted))
        return false;
    w->of_rows = is_factor(p, weight.by, true);
    w->number = w->of_rows ? only_maker(p, OP_DECAY, p->state)->a : -1;
    return (w->of_rows || is_factor(p, weight.by, false)) && find_operand(p, w) && find_reader(p, w);
}

/* ---- sums of heads ---- */

static bool find_matrices(const struct plan *p, struct plan_ways *w)
{
    const struct op *product = only_maker(p, OP_CONTRACT, w->product);
    const bool in_order = p->values[product->a].dims[0] == p->values[p->factor_rows].dims[0];
    w->matrices[0] = in_order ? product->a : product->b;
    w->matrices[1] = in_order ? product->b : product->a;
    bool ok = true;
    for (uint32_t k = 0; k < 2; k++) {
        const struct value *v = &p->values[w->matrices[k]];
        ok = ok && plan_is_loaded(v) && v->by_head && !v->own_stage;
    }
    return ok;
}

static bool is_matrix(const struct plan *p, uint32_t v, uint32_t matrix)
{
    return plan_is_loaded(&p->values[v]) && plan_tile_of(p, v) == plan_tile_of(p, matrix);
}

/* Is the product by the state weighted by the factor of the matrix that is its other operand? Then the state decays before, or behind. */
static bool is_decayed_inter(const struct plan *p, struct plan_ways *w, bool of_rows)
{
    struct plan_weight weight;
    const tg_stmt *tile = stmt_of(p, w->tile);
    if (!plan_is_weighted(p, &p->values[w->weighted], &weight) || !is_factor(p, weight.by, of_rows))
        return false;
    w->decays_first = of_rows;
    const bool has_scalars = of_rows && weight.scalar >= 0;
    return (weight.scalar >= 0) == has_scalars && (!of_rows || count_scalars(tile, -1) == has_scalars) &&
           (!has_scalars || count_scalars(tile, weight.scalar) == 1);
}

/* Does the operation take the matrix, if at all, as one that has its factor may be taken? */
static bool takes_decayed(const struct plan *p, struct plan_ways *w, const struct op *op, uint32_t k)
{
    const uint32_t matrix = w->matrices[k];
    const bool is_a = is_matrix(p, op->a, matrix), is_b = is_matrix(p, op->b, matrix);
    if (op->kind == OP_LOAD || (op->kind == OP_CONTRACT && op->v == w->product) || plan_is_diagonal(p, op))
        return true;
    if (op->kind == OP_CONTRACT && op->v == w->inter)
        return !(is_a || is_b) || is_decayed_inter(p, w, k == 0);
    if (op->kind == OP_CONTRACT && (is_a || is_b))
        return is_decayed_operand(p, w, is_a ? op->b : op->a, k == 0);
    uint8_t reads[PLAN_MAX_OP_READS];
    bool takes = op->kind == OP_DOT && (is_a || is_b);
    for (uint32_t i = 0, n = op->kind == OP_MAP ? plan_op_reads(p, op, reads) : 0; i < n; i++)
        takes |= is_matrix(p, reads[i], matrix);
    return !takes;
}

/* Is the product by the state, weighted, summed up along the state's rows: for gradients of gates? */
static bool is_summed(const struct plan *p, uint32_t weighted)
{
    bool is = false;
    for (uint32_t i = 0; i < p->n_ops; i++)
        is |= plan_sums_value(&p->ops[i], weighted);
    return is;
}

/* Products into the state have the one matrix, those by it the other. Without gradients of gates there is little beside products, and ptxas
 * refuses dQ (C7512, bench/NOTES.md). */
static bool find_sums_way(const struct plan *p, struct plan_ways *w)
{
    struct plan_weight weight;
    const struct op *update = only_maker(p, OP_CONTRACT, p->state);
    if (!update || !find_sum(p, w, &weight) || !is_summed(p, w->weighted) || !find_matrices(p, w))
        return false;
    w->scales = true;
    w->number = only_maker(p, OP_DECAY, p->state)->a;
    for (uint32_t i = 0; i < p->n_ops; i++)
        w->undoes |= plan_is_diagonal(p, &p->ops[i]);
    for (uint32_t i = 0; i < p->n_ops; i++)
        for (uint32_t k = 0; k < 2; k++)
            if (!takes_decayed(p, w, &p->ops[i], k))
                return false;
    const uint32_t into = w->matrices[w->decays_first ? 1 : 0], by = w->matrices[w->decays_first ? 0 : 1];
    const struct op *inter = only_maker(p, OP_CONTRACT, w->inter);
    return (is_matrix(p, update->a, into) || is_matrix(p, update->b, into)) &&
           (is_matrix(p, inter->a, by) || is_matrix(p, inter->b, by));
}

void plan_find_ways(struct plan *p)
{
    struct plan_ways w = {.any = true, .scale = -1};
    const bool can = p->heads > 1 && p->heads <= LOAD_WARPS && (p->own_heads || p->sums_heads) &&
                     p->shape.io == TG_BF16 && only_maker(p, OP_DECAY, p->state) && plan_find_difference(p) &&
                     find_tile(p, &w);
    if (can && (p->own_heads ? find_own_way(p, &w) : find_sums_way(p, &w)))
        p->ways = w;
    else
        p->decayed = false;
}
