/* compiler/rounded.c - factors of positions that left operands are multiplied by, rounded by the warps that load.
 *
 * A matrix times a vector, k_j w_j, is the left operand of products in 16 bits: its words times pairs of factors, rounded. Every thread
 * would load and round them for itself; the warps that load do it once, in the vector's place, which nothing else reads. Where there
 * are several heads, for which four warps load: one would be late (bench/NOTES.md).
 *
 * requires: walk's spaces and heads */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"

/* The one vector that the factor is made of, with what has no positions; -1: there is another one, or none. */
static int find_vector(const struct plan *p, uint32_t v)
{
    tg_operand reads[TG_MAX_READS];
    int found = -1;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[p->values[v].stmt], reads); k < n; k++) {
        const int a = plan_find(p, reads[k], p->values[v].nest);
        const struct value *x = &p->values[a];
        if (x->n_dims == 2)
            continue;
        const bool is_vector = x->space == SPACE_VECTOR && x->stmt < 0 && x->dtype == TG_F32 && x->n_dims == 1 &&
                               plan_is_position(x->dims[0]) && x->extent[0] == WALK_TILE;
        if (found >= 0 || !is_vector)
            return -1;
        found = a;
    }
    return found;
}

static bool is_read_elsewhere(const struct plan *p, uint32_t vector, uint32_t v)
{
    const struct op *reader = plan_only_reader(p, vector);
    return !reader || reader->v != v;
}

/* Do all products that take it have a loaded matrix on the left? */
static bool is_of_fetched(const struct plan *p, uint32_t v)
{
    bool is = true;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_LOAD || (op->a != v && op->b != v))
            continue;
        const uint32_t a = plan_matrix_of(p, op->a), b = plan_matrix_of(p, op->b),
                       left = plan_is_owned(p, &p->values[a]) ? a : b;
        is &= op->kind == OP_CONTRACT && plan_is_owned(p, &p->values[left]) && plan_is_loaded(&p->values[left]);
    }
    return is;
}

void plan_find_rounded(struct plan *p)
{
    for (uint32_t v = 0; v < p->n_values && p->heads > 1; v++) {
        const int vector = p->values[v].space == SPACE_OPERAND ? find_vector(p, v) : -1;
        if (vector >= 0 && is_of_fetched(p, v) && !is_read_elsewhere(p, (uint32_t)vector, v))
            p->rounded[v] = (uint8_t)(vector + 1);
    }
}
