/* compiler/walk_heads.c - several heads of a group in one thread block: which values each of them has of its own, whose sums are
 * made on chip, and what such a kernel can do. Called by walk.c.
 *
 * requires: owner, state; space   makes: by_head, summed of values */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "compiler/walk.h"

/* Does each of the heads have its own? What is made of what they share is theirs together. */
static bool is_by_head(const struct plan *p, uint32_t i)
{
    tg_operand reads[TG_MAX_READS];
    const struct value *v = &p->values[i];
    if (v->stmt < 0)
        return !(plan_tensor(p, v)->flags & (TG_SHARED | TG_NO_HEADS));
    bool any = false;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[v->stmt], reads); k < n && !any; k++) {
        const int a = plan_find(p, reads[k], 0);
        any = a >= 0 && (uint32_t)a != i && is_by_head(p, (uint32_t)a);
    }
    return any;
}

void walk_find_heads(struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values && p->heads > 1; i++)
        p->values[i].by_head = is_by_head(p, i);
}

/* Has each warpgroup what its heads need of positions, and no other any of it? */
bool walk_has_own_heads(const struct plan *p)
{
    bool own = p->heads > 1 && !p->sums_heads && p->heads % p->groups == 0;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        own = own && v->space != SPACE_PARTS && !(plan_is_made_tile(v) && !v->by_head);
    }
    return own;
}

/* What is uniform differs between them then, and comes with the chunks. */
void walk_find_uniforms(struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (!v->by_head || v->space != SPACE_UNIFORM)
            continue;
        v->space = SPACE_VECTOR;
        v->nest = 0;
    }
}

/* Heads have tiles of the output's rows of their own, and their maps of what positions have in common. */
static bool check_own_rows(const struct plan *p)
{
    bool ok = true;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        ok = ok && !(plan_is_loaded(v) && plan_is_owned(p, v) != v->by_head);
        ok = ok && !(v->space == SPACE_PARTS && (v->by_head || v->stored));
    }
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct value *v = &p->values[p->ops[i].v];
        ok = ok && !(p->ops[i].kind == OP_CONTRACT && v->by_head && !plan_is_owned(p, v));
    }
    return ok ||
           walk_refuse(p, "leave member out",
                       "heads work together on an output that each has its own of, from what they share and from their "
                       "own vectors, without sums");
}

/* Is it the value, times what heads share? */
static bool is_multiple(const struct plan *p, const struct value *v, int *of)
{
    tg_operand reads[TG_MAX_READS];
    *of = -1;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[v->stmt], reads); k < n; k++) {
        const int a = plan_find(p, reads[k], v->nest);
        if (!p->values[a].by_head)
            continue;
        if (*of >= 0)
            return false;
        *of = a;
    }
    return *of >= 0 && walk_is_multiple_of(p, v, (uint32_t)*of);
}

/* Of what is stored of all heads the sum is made as early as it can be: of accumulators with which the output's sum begins,
 * and of the computed tile that what they share is multiplied by. */
static bool find_sum(struct plan *p, uint32_t i)
{
    struct value *v = &p->values[i];
    int of = -1;
    v->summed = true;
    v->by_head = false;
    for (uint32_t k = 0; k < p->n_ops; k++) {
        const struct op *op = &p->ops[k];
        if (op->v != i)
            continue;
        if (op->kind == OP_MAP && !(is_multiple(p, v, &of) && find_sum(p, (uint32_t)of)))
            return false;
        if (op->kind != OP_CONTRACT)
            continue;
        const bool in_order = plan_is_owned(p, &p->values[op->a]);
        struct value *left = &p->values[in_order ? op->a : op->b], *right = &p->values[in_order ? op->b : op->a];
        if (left->by_head || !right->by_head || !plan_is_made_tile(right))
            return false;
        right->summed = true;
    }
    return true;
}

/* Nothing but what the sum is made for reads it. */
static bool is_read_once(const struct plan *p, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_ops; k++) {
        const struct op *op = &p->ops[k];
        tg_operand reads[TG_MAX_READS];
        const struct value *v = &p->values[op->v];
        n += op->kind == OP_STORE && op->v == i;
        n += op->kind == OP_CONTRACT && (op->a == i || op->b == i);
        n += !plan_is_made_tile(&p->values[i]) && (op->kind == OP_DOT || op->kind == OP_COPY) &&
             (op->a == i || op->b == i);
        for (uint32_t r = 0, m = op->kind == OP_MAP ? tg_stmt_reads(&p->algorithm->body[op->stmt], reads) : 0; r < m;
             r++)
            n += plan_find(p, reads[r], v->nest) == (int)i;
    }
    return n == 1;
}

/* Heads share what has the rows of the output, and sum it up: each has its own columns of the state, and of what goes into it. */
static bool find_sums_of_heads(struct plan *p)
{
    bool ok = true;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        ok = ok && !(plan_is_loaded(v) && plan_is_owned(p, v) == v->by_head);
        ok = ok && !(v->space == SPACE_PARTS && !v->by_head && v->stored);
    }
    for (uint32_t i = 0; ok && i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_STORE && p->values[op->v].space == SPACE_FRAGMENT && op->v != p->state)
            ok = p->heads_summed[op->tile] == p->heads && p->values[op->v].by_head && find_sum(p, op->v);
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        ok = ok && (!p->values[i].summed || is_read_once(p, i));
    return ok ||
           walk_refuse(
               p, "leave member out",
               "heads work together on a sum of theirs, of which each has multiples of products of what they share by its "
               "own, and of its own by its state");
}

bool walk_check_heads(struct plan *p)
{
    if (p->heads == 1)
        return true;
    bool ok = !plan_is_state_alone(p) && !p->segment && !p->cluster && !p->carries;
    for (uint32_t i = 0; i < p->n_values; i++)
        ok = ok && !(p->values[i].by_head && plan_is_of_warp(&p->values[i])) && p->values[i].space != SPACE_ROWS;
    if (!ok)
        return walk_refuse(
            p, "leave member out",
            "heads work together without segments, clusters, carried vectors, sums of rows, and vectors made of them");
    return p->sums_heads ? find_sums_of_heads(p) : check_own_rows(p);
}

bool plan_is_ahead(const struct plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct value *v = &p->values[p->ops[i].v];
        n += p->ops[i].kind == OP_CONTRACT && v->by_head && !plan_is_owned(p, v);
    }
    return p->sums_heads && n == 1;
}
