/* compiler/compose.c - a kernel that composes segments: of what each of them makes by itself, the state with which each begins.
 *
 * Every thread has some neighbouring elements of the state, or one of a vector beside it, and goes through the segments in the
 * order of the walk: it writes what it has come to where what the segment makes was, and adds that. The walks
 * could do it themselves, each for the segments before its own; but then the last one of eight reads seven states before it
 * begins, which took 0.04 ms, and every row that walks does it again.
 *
 * Where the state goes through a segment by a transition, that is a product: see lower/compose_values.c.
 *
 * makes: values, one operation a listed tile, registers */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_walk.h"

enum { REGISTERS = 64, PRODUCT_REGISTERS = 255 };

/* By transitions: each warp has some of the state's rows, and all read the columns of the thread block from shared memory. */
static bool compose_by_values(struct plan *p)
{
    const int s = tg_tile_stmt(p->algorithm, p->row->outputs[0]);
    const tg_stmt *stmt = &p->algorithm->body[s];
    const uint32_t of = plan_transition_of(p), along = plan_transition_along(p);
    const int v = plan_add_value(p, stmt->out, s, -1);
    if (v < 0)
        return false;
    const uint32_t eights = plan_dim_size(p, of) / 8;
    const bool one = !p->row->outputs[1] && eights <= PLAN_COMPOSED_TILES * p->row->warps &&
                     plan_memory_dtype(p, p->row->outputs[0]) == TG_F32,
               whole = p->block[of] >= plan_dim_size(p, of);
    if (!one || !whole || p->block[along] != PLAN_COMPOSED || p->row->mma != TG_MMA_TF32X3 ||
        p->row->row[along].role != TG_ROLE_P) {
        plan_refuse(p, "TG0521",
                    "list one state, with TG_MMA_TF32X3, the first axis of the state TG_L(0) and the second TG_P(16)",
                    "kernel %s composes segments by a block of values", p->row->name);
        return false;
    }
    p->values[v].dtype = TG_F32;
    p->shared_bytes = 2 * 2 * PLAN_COMPOSED_PAIR * plan_dim_size(p, of) / 2; /* two buffers of two parts */
    struct op *op = plan_add_op(p, OP_COMPOSE, s);
    op->v = op->a = (uint8_t)v;
    op->tile = p->row->outputs[0];
    p->registers = PRODUCT_REGISTERS;
    return true;
}

/* Each thread block has some of the state, for all heads of their own. */
static bool check_roles(const struct plan *p)
{
    for (uint32_t d = 1; d < TG_N_DIMS; d++)
        if (d != TG_SEG && p->row->row[d].role != TG_ROLE_NONE && p->row->row[d].role != TG_ROLE_P) {
            plan_refuse(p, "TG0521", "use TG_P", "kernel %s composes segments, but %s is not parallel", p->row->name,
                        tg_dim_name(d));
            return false;
        }
    return true;
}

/* One number for all that the thread block has of the state, in each chunk? */
static bool is_single(const struct plan *p, const struct value *decay)
{
    bool single = true;
    for (uint32_t i = 0; i < decay->n_dims; i++)
        single &= decay->dims[i] != p->thread_dim && p->block[decay->dims[i]] == 1;
    return single;
}

bool pass_compose(struct plan *p)
{
    if (p->transition)
        return compose_by_values(p);
    if (!check_roles(p))
        return false;
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && p->row->outputs[i]; i++) {
        const int s = tg_tile_stmt(p->algorithm, p->row->outputs[i]);
        const tg_stmt *stmt = &p->algorithm->body[s];
        const int v = plan_add_value(p, stmt->out, s, -1),
                  decay = stmt->decay ? plan_add_value(p, stmt->decay, -1, -1) : v;
        if (v < 0 || decay < 0)
            return false;
        if (decay != v && !is_single(p, &p->values[decay])) {
            plan_refuse(p, "TG0521", "give the axis that decays the role TG_P(1), or take a schedule without segments",
                        "kernel %s composes segments by %s, which is not one number a chunk and thread block",
                        p->row->name, plan_tensor(p, &p->values[decay])->name);
            return false;
        }
        p->values[v].space = plan_has_dim(&p->values[v], p->thread_dim) ? SPACE_THREAD : SPACE_UNIFORM;
        p->values[decay].space = decay == v ? p->values[v].space : SPACE_UNIFORM;
        p->values[v].dtype = p->values[decay].dtype = TG_F32;
        struct op *op = plan_add_op(p, OP_INIT, s);
        op->v = (uint8_t)v;
        op->tile = (uint8_t)TG_OPERAND_TILE(stmt->init);
        op = plan_add_op(p, OP_COMPOSE, s);
        op->v = (uint8_t)v;
        op->a = (uint8_t)decay;
        op->tile = p->row->outputs[i];
    }
    p->registers = REGISTERS;
    return true;
}
