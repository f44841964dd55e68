/* compiler/compose.c - a kernel that composes segments: of what each of them makes by itself, the state with which each begins.
 *
 * Every thread has some neighbouring elements of the state, or one of a vector beside it, and goes through the segments in the
 * order of the walk: it writes what it has come to where what the segment makes was, and adds that (reference 2.7). The walks
 * could do it themselves, each for the segments before its own; but then the last one of eight reads seven states before it
 * begins, which took 0.04 ms, and every row that walks does it again.
 *
 * makes: values, one operation a listed tile, registers */
#include "compiler/plan.h"

enum { REGISTERS = 64 };

bool pass_compose(struct plan *p)
{
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && p->row->outputs[i]; i++) {
        const int s = tg_tile_stmt(p->algorithm, p->row->outputs[i]);
        const tg_stmt *stmt = &p->algorithm->body[s];
        const int v = plan_add_value(p, stmt->out, s, -1),
                  decay = stmt->decay ? plan_add_value(p, stmt->decay, -1, -1) : v;
        if (v < 0 || decay < 0)
            return false;
        if (p->values[decay].n_dims && decay != v) {
            plan_refuse(p, "TG0521", stmt->line, "take a schedule without segments",
                        "kernel %s composes segments by %s, which is not one number a chunk", p->row->name,
                        plan_tensor(p, &p->values[decay])->name);
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
