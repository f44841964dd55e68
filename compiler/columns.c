/* compiler/columns.c - warps that share the columns of a state, where 16 of its rows are too many registers for one warp.
 *
 * A walk on tensor cores has its state as rows of values by columns of dqk: a warp has whole rows of 16, dqk / 2 registers a
 * thread. With more warps than rows of 16, `warps_n` of them have the same rows, each its part of the columns. What else is in
 * registers is whole in each of these warps, so all of them do the same with it; what a product sums over the columns is a part
 * in each, and OP_ADD_UP behind it makes the sum, in the same order in all of them. Called by place.c.
 *
 * requires: space and extent of values   makes: warps_m, warps_n, shares_columns, OP_ADD_UP */
#include "compiler/plan_tile.h"

/* The products of a state, zero before; nothing else with its columns is in registers. */
static bool can_share(const struct plan *p)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->space == SPACE_FRAGMENT && plan_has_dim(v, TG_DQK) && !plan_is_state(p, v))
            return false;
        any |= v->space == SPACE_FRAGMENT && plan_is_state(p, v) && v->dims[1] == TG_DQK;
    }
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_SOLVE || op->kind == OP_DOT || op->kind == OP_TOTAL || plan_is_decayed(p, op))
            return false;
        if (plan_is_part(p, op) && (i == 0 || p->ops[i - 1].kind != OP_ZERO || p->ops[i - 1].v != op->v))
            return false;
    }
    return any && !p->by_channel;
}

static bool fits(const struct plan *p, uint32_t wm, uint32_t wn)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->space == SPACE_FRAGMENT &&
            (v->extent[0] % (16 * wm) || v->extent[1] % (16 * (plan_is_state(p, v) ? wn : 1))))
            return false;
    }
    return true;
}

/* All sums of a step are made in the same memory: between two of them is a barrier, and one of the ring's between two steps. */
static void add_up(struct plan *p)
{
    bool again = false;
    for (uint32_t i = 0; i < p->n_ops && i < PLAN_MAX_OPS; i++) {
        again &= p->ops[i].kind != OP_NEST;
        if (!plan_is_part(p, &p->ops[i]))
            continue;
        plan_insert_op(p, i + 1, (struct op){.kind = OP_ADD_UP, .stmt = p->ops[i].stmt, .v = p->ops[i].v});
        if (again)
            plan_insert_op(p, i + 1, (struct op){.kind = OP_BARRIER, .stmt = -1});
        again = true;
    }
}

bool plan_share_columns(struct plan *p)
{
    for (uint32_t wn = 2; can_share(p) && wn <= p->row->warps; wn *= 2) {
        const uint32_t wm = p->row->warps / wn;
        if (wm * wn != p->row->warps || !fits(p, wm, wn))
            continue;
        p->warps_m = wm;
        p->warps_n = wn;
        p->shares_columns = true;
        add_up(p);
        return true;
    }
    return false;
}
