/* compiler/walk_rows.c - of a kernel on warpgroups: tiles of positions by channels that it makes on chip, for products to have on
 * the right, instead of loading what an earlier row has written.
 *
 * Makers make them in the stage of the ring, row by row (lower/walk_rows.c): maps, and sums over the positions before, of loaded
 * matrices of the same positions and channels, and of vectors and numbers that are loaded. A maker has channels of its own. So a
 * tile that is made takes the place of a loaded matrix that nobody else reads: who writes an element has read what was there.
 *
 * requires: owner; space   makes: places of such tiles; it answers */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "compiler/walk.h"

enum { MAKERS = 128 };

bool walk_is_of_rows(const struct plan *p, uint32_t i)
{
    const struct value *v = &p->values[i];
    if (!p->row->makers || v->stmt < 0 || v->n_dims != 2 || !plan_is_position(v->dims[0]) ||
        plan_is_position(v->dims[1]) || plan_is_owned(p, v))
        return false;
    const tg_stmt *s = &p->algorithm->body[v->stmt];
    return s->op == TG_STMT_MAP || (s->op == TG_STMT_SCAN && !s->flags);
}

bool walk_is_parameter(const struct plan *p, uint32_t i)
{
    const struct value *v = &p->values[i];
    if (!p->row->makers || v->nest >= 0)
        return false;
    return v->stmt < 0 ? v->n_dims == 1 && !plan_is_position(v->dims[0])
                       : v->n_dims == 0 && p->algorithm->body[v->stmt].op == TG_STMT_MAP;
}

bool plan_is_for_rows(const struct plan *p, uint32_t v)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    const uint32_t tile = TG_OPERAND_TILE(p->values[v].operand);
    for (uint32_t i = 0; i < p->n_ops; i++)
        for (uint32_t k = 0, n = plan_op_reads(p, &p->ops[i], reads); !plan_works_on_rows(p, &p->ops[i]) && k < n; k++)
            if (TG_OPERAND_TILE(p->values[plan_matrix_of(p, reads[k])].operand) == tile)
                return false;
    return plan_is_loaded(&p->values[v]);
}

static bool can_give_place(const struct plan *p, uint32_t matrix, const struct value *v)
{
    return plan_is_for_rows(p, matrix) && p->values[matrix].dims[1] == v->dims[1] &&
           p->values[matrix].dtype == p->shape.io;
}

void walk_find_places_of_rows(struct plan *p)
{
    tg_bits taken = 0; /* tiles: one may be loaded for two values */
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (!plan_is_made_of_rows(v))
            continue;
        v->place = (uint8_t)i;
        for (uint32_t k = 0; k < p->n_values && v->place == i; k++) {
            const uint32_t tile = TG_OPERAND_TILE(p->values[k].operand);
            if ((taken >> tile & 1) || !can_give_place(p, k, v))
                continue;
            v->place = (uint8_t)k;
            taken |= TG_BIT(tile);
        }
    }
}

/* Of what rows are made, by a maker for its channels: what it has in registers, and what is loaded. */
static bool can_read(const struct value *v)
{
    return v->space == SPACE_CHANNEL || v->space == SPACE_UNIFORM || plan_is_loaded(v) ||
           (v->space == SPACE_VECTOR && v->stmt < 0);
}

static bool check_reads(const struct plan *p)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const struct value *made = &p->values[op->v];
        const bool of_rows = plan_works_on_rows(p, op), of_number = op->kind == OP_MAP && made->space == SPACE_UNIFORM;
        for (uint32_t k = 0, n = plan_op_reads(p, op, reads); k < n; k++) {
            const struct value *v = &p->values[reads[k]];
            const bool of_makers = v->space == SPACE_CHANNEL || (v->space == SPACE_UNIFORM && v->stmt >= 0);
            if (of_rows ? can_read(v) : of_number ? v->space == SPACE_UNIFORM : !of_makers)
                continue;
            plan_refuse(p, "TG0518", "let an earlier row write it",
                        "kernel %s on warpgroups: makers make rows of what is loaded, for products, and not %s of %s",
                        p->row->name, plan_tensor(p, made)->name, plan_tensor(p, v)->name);
            return false;
        }
    }
    return true;
}

bool walk_check_rows(const struct plan *p)
{
    if (!check_reads(p))
        return false;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (!plan_is_made_of_rows(v))
            continue;
        const uint32_t n = plan_dim_size(p, v->dims[1]);
        if (v->extent[1] > MAKERS || v->extent[1] != n)
            return walk_refuse(p, "let an earlier row write it",
                               "it makes rows of other than 64 or 128 channels, all of them in one block");
        if (!p->has_makers || p->cluster)
            return walk_refuse(
                p, "let an earlier row write it",
                "rows are for makers to make, where each group has one tile of one head, nothing is summed "
                "and there is no cluster");
    }
    return true;
}
