/* compiler/walk_space.c - of a kernel on warpgroups: where each value lives while a chunk is worked on. Called by walk.c.
 *
 * requires: owner, state   makes: nothing; it answers */
#include "compiler/plan.h"
#include "compiler/plan_walk.h"
#include "compiler/walk.h"

static bool is_operand(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_CONTRACT && (p->ops[i].a == v || p->ops[i].b == v))
            return true;
    return false;
}

/* Is the map's value a multiple of the one, by factors of positions? */
bool walk_is_multiple_of(const struct plan *p, const struct value *v, uint32_t of)
{
    bool stack[TG_MAX_EXPR] = {false}; /* is it in this term? */
    uint32_t n = 0, times = 0;
    const tg_stmt *s = &p->algorithm->body[v->stmt];
    for (uint32_t i = 0; s->op == TG_STMT_MAP && i < tg_expr_length(s); i++) {
        const tg_x *x = &s->expr[i];
        const uint32_t arity = (uint32_t)tg_expr_arity(x->op);
        bool has = false;
        for (uint32_t k = 0; k < arity; k++)
            has |= stack[n - 1 - k];
        if (has && x->op != TG_X_MUL && x->op != TG_X_NEG)
            return false;
        n -= arity;
        if (x->op == TG_X_TILE) {
            const uint32_t a = (uint32_t)plan_find(p, x->operand, v->nest);
            has = a == of;
            times += has;
            if (!has && p->values[a].n_dims && (p->values[a].n_dims > 1 || !plan_is_position(p->values[a].dims[0])))
                return false;
        }
        stack[n++] = has;
    }
    return times == 1;
}

/* A matrix, or computed tile of the owner's rows, times a factor of its positions: the factor can go to the left operand. */
static bool is_scaled(const struct plan *p, const struct value *v)
{
    tg_operand reads[TG_MAX_READS];
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[v->stmt], reads); k < n; k++) {
        const uint32_t a = (uint32_t)plan_find(p, reads[k], v->nest);
        if (p->values[a].n_dims == 2)
            return (p->values[a].stmt < 0 || plan_is_owned(p, &p->values[a])) && walk_is_multiple_of(p, v, a);
    }
    return false;
}

/* The sum of products that makes the value, or NULL. */
static const struct op *sum_of(const struct plan *p, uint32_t i)
{
    for (uint32_t k = 0; k < p->n_ops; k++)
        if ((p->ops[k].kind == OP_DOT || p->ops[k].kind == OP_MEET) && p->ops[k].v == i)
            return &p->ops[k];
    return NULL;
}

/* Accumulators, not a vector in shared memory? */
static bool is_made_tile(const struct value *v)
{
    return v->stmt >= 0 && v->n_dims == 2;
}

/* Is it a sum of the state, or of accumulators? */
bool walk_is_late(const struct plan *p, uint32_t i)
{
    const struct op *op = sum_of(p, i);
    return op && (op->a == p->state || op->b == p->state ||
                  (plan_is_owned(p, &p->values[op->a]) &&
                   (is_made_tile(&p->values[op->a]) || is_made_tile(&p->values[op->b]))));
}

/* A vector along the rows of loaded matrices? */
static bool is_along(const struct value *v)
{
    return v->n_dims == 1 && !plan_is_position(v->dims[0]);
}

/* A factor of positions whose operands are there behind the barrier of the chunk. */
static enum space space_of_vector(const struct plan *p, uint32_t i)
{
    tg_operand reads[TG_MAX_READS];
    const struct value *v = &p->values[i];
    if (v->n_dims != 1 || !plan_is_position(v->dims[0]))
        return SPACE_NONE;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[v->stmt], reads); k < n; k++) {
        const uint32_t from = (uint32_t)plan_find(p, reads[k], v->nest);
        const enum space space = walk_space(p, from);
        const bool is_whole = space == SPACE_VECTOR || (space == SPACE_PARTS && !walk_is_late(p, from));
        if (space != SPACE_UNIFORM && (!is_whole || is_along(&p->values[from])))
            return SPACE_NONE;
    }
    return SPACE_VECTOR;
}

/* A sum for each row of the state? */
static bool sums_rows_of_state(const struct plan *p, uint32_t i)
{
    const struct op *op = sum_of(p, i);
    return op && p->values[i].dims[0] == p->owner && (op->a == p->state || op->b == p->state);
}

/* What is made of such a vector, carried or about to be. */
static enum space space_along(const struct plan *p, uint32_t i)
{
    if (sums_rows_of_state(p, i))
        return SPACE_ROWS;
    const tg_stmt *s = &p->algorithm->body[p->values[i].stmt];
    const bool gathers = s->op == TG_STMT_CONTRACT && s->b && !s->init;
    return s->op == TG_STMT_CARRY ? SPACE_VECTOR : gathers || sum_of(p, i) ? SPACE_PARTS : SPACE_NONE;
}

enum space walk_space(const struct plan *p, uint32_t i)
{
    const struct value *v = &p->values[i];
    const bool owned = plan_is_owned(p, v);
    if (v->stmt < 0 && v->n_dims == 2)
        return plan_is_position(v->dims[0]) ? SPACE_MATRIX : SPACE_NONE;
    if (walk_is_parameter(p, i))
        return v->n_dims ? SPACE_CHANNEL : SPACE_UNIFORM;
    if (v->stmt < 0)
        return v->nest < 0 ? SPACE_UNIFORM : SPACE_VECTOR;
    if (is_along(v))
        return space_along(p, i);
    if (v->n_dims < 2 && p->algorithm->body[v->stmt].op == TG_STMT_MAP)
        return space_of_vector(p, i);
    if (v->n_dims < 2)
        return sum_of(p, i) ? SPACE_PARTS : SPACE_NONE;
    if (i == p->state || (owned && !plan_is_position(v->dims[0])))
        return SPACE_FRAGMENT;
    if (is_operand(p, i) && is_scaled(p, v))
        return SPACE_OPERAND;
    if (walk_is_of_rows(p, i))
        return is_operand(p, i) ? SPACE_MATRIX : SPACE_CHANNEL;
    if (!owned && plan_is_position(v->dims[0]) && plan_is_position(v->dims[1]))
        return is_operand(p, i) ? SPACE_MATRIX : SPACE_FRAGMENT;
    return plan_is_position(v->dims[0]) ? SPACE_FRAGMENT : SPACE_NONE;
}

uint32_t plan_matrix_of(const struct plan *p, uint32_t v)
{
    tg_operand reads[TG_MAX_READS];
    const uint32_t n =
        p->values[v].space == SPACE_OPERAND ? tg_stmt_reads(&p->algorithm->body[p->values[v].stmt], reads) : 0;
    for (uint32_t k = 0; k < n; k++) {
        const int a = plan_find(p, reads[k], p->values[v].nest);
        if (p->values[a].n_dims == 2)
            return (uint32_t)a;
    }
    return v;
}
