/* compiler/rows_apart.c - decays of a state's rows that wait for the end of a decode step.
 *
 * In a walk of tokens whose threads share the state out, its decay by a number a row is a multiplication of every element in every token.
 * Where all that sums with the state or is added to it are rows that are made before the walk (early.c), those take the decays
 * since the first token instead, and the state takes all of them behind the last one (lower/thread_rows.c).
 *
 * requires: what is made early   makes: rows_apart of values */
#include "compiler/plan.h"
#include "compiler/plan_thread.h"

int plan_row_beside(const struct plan *p, const struct op *op, uint32_t state)
{
    const uint32_t dim = plan_shared_dim(p);
    if (op->kind == OP_DECAY)
        return op->v == state ? op->a : -1;
    if (op->kind != OP_DOT || (op->v != state && op->a != state && op->b != state))
        return -1;
    if (op->a != state && plan_has_dim(&p->values[op->a], dim))
        return op->a;
    return op->b != state && plan_has_dim(&p->values[op->b], dim) ? op->b : -1;
}

/* How often an operation has value v. */
static uint32_t times(const struct plan *p, const struct op *op, uint32_t v)
{
    uint8_t reads[TG_MAX_READS];
    uint32_t n = op->v == v;
    for (uint32_t k = 0, count = plan_reads(p, op, reads); k < count; k++)
        n += reads[k] == v;
    return n;
}

/* Is it a row that is made before the walk, for one operation of it? */
static bool is_made_for_one(const struct plan *p, uint32_t begin, uint32_t v)
{
    uint32_t n = 0;
    for (uint32_t i = begin + 1; p->ops[i].kind != OP_END; i++)
        n += plan_is_early(p, &p->ops[i]) ? 0 : times(p, &p->ops[i], v);
    return n == 1 && (p->nests[p->ops[begin].n].early >> v & 1) && plan_is_shared_row(p, &p->values[v]);
}

/* Sums with the state, then its decay, then what is added to it; and nothing else. */
static bool can_wait(const struct plan *p, uint32_t begin, uint32_t state)
{
    bool decayed = false;
    for (uint32_t i = begin + 1; p->ops[i].kind != OP_END; i++) {
        const struct op *op = &p->ops[i];
        if (!times(p, op, state) || op->kind == OP_STORE)
            continue;
        const int row = plan_row_beside(p, op, state);
        const bool decays = op->kind == OP_DECAY, adds = op->v == state && !decays;
        if (row < 0 || adds != decayed || !is_made_for_one(p, begin, (uint32_t)row) ||
            decays != plan_leaves_power(p, (uint32_t)row))
            return false;
        decayed = decayed || decays;
    }
    return decayed;
}

void plan_keep_rows_apart(struct plan *p, uint32_t begin)
{
    const uint32_t dim = plan_shared_dim(p);
    if (p->schedule->max_tokens < 2 || p->block[dim] > SHARED_OUT_GROUP * p->threads)
        return;
    if (p->nests[p->ops[begin].n].reverse) /* its first token is the last */
        return;
    for (uint32_t i = 0; i < p->n_values; i++)
        p->values[i].rows_apart = p->values[i].nest != p->ops[begin].n && plan_has_dim(&p->values[i], dim) &&
                                  plan_has_dim(&p->values[i], p->thread_dim) && can_wait(p, begin, i);
}
