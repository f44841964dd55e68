/* compiler/orient.c - which way round computed tiles lie in registers.
 *
 * On tensor cores a computed tile can be the left operand of a product as it lies there, its rows those of the result;
 * it cannot be the right one. A product out = a b with a computed b is out^T = b^T a^T: so out and b are turned, their
 * rows are b's free dimension, and with them the tiles that maps make of them or they of others. The state of a delta
 * rule's walk is such a chain: x = k S, r = map(v, x), n = T r and S' = S + k^T n all have the rows dhv.
 *
 * requires: nest   makes: dims and extent of computed tiles, in the order rows, columns */
#include "compiler/plan.h"
#include "compiler/plan_channel.h"
#include "compiler/plan_tile.h"

struct turns {
    struct plan *p;
    tg_bits fixed; /* values whose rows a product has decided on */
    bool changed;
};

/* In registers: computed here, or loaded straight into them. */
static bool is_tile(const struct plan *p, uint32_t i)
{
    const struct value *v = &p->values[i];
    return v->n_dims == 2 && !plan_is_of_channels(p, v) && (v->direct || (v->stmt >= 0 && !plan_is_on_the_fly(p, i)));
}

static bool set_rows(struct turns *t, uint32_t i, uint32_t dim)
{
    struct value *v = &t->p->values[i];
    if (v->dims[0] != dim) {
        if (t->fixed >> i & 1)
            return false;
        const uint8_t first = v->dims[0];
        const uint32_t extent = v->extent[0];
        v->dims[0] = v->dims[1];
        v->extent[0] = v->extent[1];
        v->dims[1] = first;
        v->extent[1] = extent;
    }
    t->changed |= !(t->fixed >> i & 1);
    t->fixed |= TG_BIT(i);
    return true;
}

/* The rows of a computed operand are those of the result. */
static bool orient_product(struct turns *t, const struct op *op)
{
    const bool a = is_tile(t->p, op->a), b = is_tile(t->p, op->b);
    if ((!a && !b) || plan_is_of_channels(t->p, &t->p->values[op->v])) /* its weights go through shared memory */
        return true;
    const struct value *left = &t->p->values[a ? op->a : op->b], *out = &t->p->values[op->v];
    const uint32_t rows = plan_has_dim(out, left->dims[0]) ? left->dims[0] : left->dims[1];
    return !(a && b) && set_rows(t, op->v, rows) && set_rows(t, a ? op->a : op->b, rows);
}

/* A sum for each row adds up what a thread has of it: the rows of what is summed are those of the result. */
static bool orient_sum(struct turns *t, const struct op *op)
{
    const struct value *out = &t->p->values[op->v];
    const uint8_t sides[] = {op->a, op->b};
    bool ok = true;
    for (uint32_t i = 0; out->n_dims == 1 && i < 2; i++)
        ok = ok && (!is_tile(t->p, sides[i]) || set_rows(t, sides[i], out->dims[0]));
    return ok;
}

/* Tiles that are combined element by element lie alike. */
static bool orient_elements(struct turns *t, const struct op *op)
{
    uint32_t list[TG_MAX_READS + 1], n = 0;
    tg_operand reads[TG_MAX_READS];
    list[n++] = op->v;
    if (op->kind == OP_MAP) {
        const uint32_t count = tg_stmt_reads(&t->p->algorithm->body[op->stmt], reads);
        for (uint32_t k = 0; k < count; k++)
            list[n++] = (uint32_t)plan_find(t->p, reads[k], t->p->values[op->v].nest);
    } else {
        list[n++] = op->a;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!is_tile(t->p, list[k]) || !(t->fixed >> list[k] & 1))
            continue;
        for (uint32_t other = 0; other < n; other++)
            if (is_tile(t->p, list[other]) && !set_rows(t, list[other], t->p->values[list[k]].dims[0]))
                return false;
    }
    return true;
}

static bool is_element_wise(const struct op *op)
{
    return op->kind == OP_MAP || op->kind == OP_COPY || op->kind == OP_TOTAL;
}

bool pass_orient(struct plan *p)
{
    struct turns t = {.p = p};
    if (p->row->mma == TG_MMA_NONE)
        return true;
    do {
        t.changed = false;
        for (uint32_t i = 0; i < p->n_ops; i++) {
            const struct op *op = &p->ops[i];
            if ((op->kind == OP_CONTRACT && !orient_product(&t, op)) || (op->kind == OP_DOT && !orient_sum(&t, op)) ||
                (is_element_wise(op) && !orient_elements(&t, op))) {
                plan_refuse(
                    p, "TG0511", "let an earlier row write one of its operands",
                    "kernel %s: a computed tile can only be the left operand of a product, whose rows are those of its sums",
                    p->row->name);
                return false;
            }
        }
    } while (t.changed);
    return true;
}
