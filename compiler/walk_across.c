/* compiler/walk_across.c - of a kernel on warpgroups: tiles of positions by the dimension that the state has as columns, beside those of
 * the owner's. With both, one walk makes what would take two that carry the same state and load the same matrices: dK, whose rows are
 * those of the state, and dV.
 *
 *     N   = map(K C)          positions x columns: each group some of the columns; C, rounded, from shared memory
 *     N   = N + P V           ... by a tile of positions and a loaded matrix
 *
 * In each step the groups put what they have of the state to shared memory, rounded, where all of them have it as a right operand; the
 * output goes there when it has been read, and from there to memory.
 *
 * requires: owner, groups, tiles, space   makes: rounds_state; it answers */
#include "compiler/plan.h"
#include "compiler/plan_walk.h"
#include "compiler/walk.h"

static bool makes_across(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_across(p, &p->values[i]))
            return true;
    return false;
}

/* Is there a product of positions by the matrix, of which something else is made? NaN are looked for there (lower/walk_across.c). */
static bool shows_in_product(const struct plan *p, uint32_t matrix)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const struct value *v = &p->values[op->v];
        if (op->kind == OP_CONTRACT && (op->a == matrix || op->b == matrix) && v->n_dims == 2 &&
            plan_is_position(v->dims[0]) && plan_is_position(v->dims[1]) && v->space == SPACE_FRAGMENT)
            return true;
    }
    return false;
}

/* An output, which is a product by the state and one by a tile of positions, whose matrix is multiplied by others, too. */
static bool is_one_output(const struct plan *p)
{
    uint32_t stores = 0, by_state = 0, by_tile = 0, shown = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool is_across = plan_is_across(p, &p->values[op->v]), is_by_state = plan_is_by_rounded_state(p, op);
        stores += is_across && op->kind == OP_STORE;
        by_state += is_by_state;
        by_tile += is_across && op->kind == OP_CONTRACT && !is_by_state;
        shown += is_across && op->kind == OP_CONTRACT && !is_by_state &&
                 (shows_in_product(p, op->a) || shows_in_product(p, op->b));
    }
    return stores == 1 && by_state == 1 && by_tile == 1 && shown == 1;
}

enum { MOST_COLUMNS = 128 };

bool walk_check_across(struct plan *p)
{
    if (!makes_across(p))
        return true;
    if (p->heads > 1 || p->tiles > 1 || p->shares_columns || p->cluster || p->row->makers)
        return walk_refuse(
            p, "let another row write one of its outputs",
            "with outputs of dqk and of dhv it has one head and one tile of 64 rows for each four warps, no makers, "
            "and is in no cluster");
    if (plan_blocks(p, p->owner) != 1 || plan_state_columns(p) % (WALK_TILE * p->groups))
        return walk_refuse(
            p, "let another row write one of its outputs",
            "with outputs of dqk and of dhv it has all of both, and of one of them 64 columns, or 128, for each four warps");
    if (plan_across_columns(p) > MOST_COLUMNS)
        return walk_refuse(
            p, "give the row eight warps",
            "with outputs of dqk and of dhv, a state and a tile of more than 128 columns need more registers than a "
            "thread has");
    if (!is_one_output(p))
        return walk_refuse(
            p, "let another row write it",
            "beside outputs of the one dimension it has one of the other, the sum of a product by the state and of one "
            "by a tile of positions, whose matrix another tile of positions is made of, too");
    p->rounds_state = true;
    p->values[p->state].place = p->state;
    return true;
}

bool plan_is_right_of_state(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const uint32_t a = plan_matrix_of(p, op->a), b = plan_matrix_of(p, op->b);
        if (op->kind == OP_CONTRACT && op->v == p->state && v == (plan_is_owned(p, &p->values[a]) ? b : a))
            return true;
    }
    return false;
}
