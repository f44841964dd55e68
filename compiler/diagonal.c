/* compiler/diagonal.c - sums along the rows of two loaded matrices that are on the diagonal of their product.
 *
 *     s_j = sum_c a_jc b_jc = (a b^T)_jj
 *
 * A kernel on warpgroups that makes the product of both, positions by positions, has them: nothing is read or multiplied once more.
 *
 * requires: walk's spaces */
#include "compiler/plan.h"
#include "compiler/plan_walk.h"

bool plan_is_diagonal(const struct plan *p, const struct op *op)
{
    const struct value *a = &p->values[op->a];
    return op->kind == OP_DOT && op->a == op->b && a->space == SPACE_FRAGMENT && a->n_dims == 2 &&
           TG_OPERAND_TILE(p->algorithm->body[op->stmt].a) != plan_tile_of(p, op->a);
}

/* Of whole rows of two loaded matrices, for each position, which goes to memory? */
static bool is_sum_of_rows(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v], *a = &p->values[op->a], *b = &p->values[op->b];
    return op->kind == OP_DOT && v->space == SPACE_PARTS && !v->late && v->n_dims == 1 &&
           plan_is_position(v->dims[0]) && plan_is_loaded(a) && plan_is_loaded(b) && b->n_dims == 2;
}

/* Accumulators of the product of both, in either order; -1: there are none. */
static int find_tile(const struct plan *p, const struct op *sum)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const struct value *v = &p->values[op->v];
        if (op->kind != OP_CONTRACT || v->space != SPACE_FRAGMENT || v->n_dims != 2 ||
            v->dims[0] != p->values[sum->v].dims[0] || !plan_is_position(v->dims[1]))
            continue;
        const uint32_t a = plan_tile_of(p, op->a), b = plan_tile_of(p, op->b), x = plan_tile_of(p, sum->a),
                       y = plan_tile_of(p, sum->b);
        if ((a == x && b == y) || (a == y && b == x))
            return op->v;
    }
    return -1;
}

void plan_find_diagonals(struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops && !p->row->makers; i++) {
        struct op *op = &p->ops[i];
        const int tile = is_sum_of_rows(p, op) ? find_tile(p, op) : -1;
        if (tile >= 0)
            op->a = op->b = (uint8_t)tile;
    }
}
