/* lower/thread_early.c - what a decode step that walks its tokens makes of all of them before the walk (compiler/early.c).
 *
 * For it dqk is shared out among more threads: so many that each has a group of four, or 32. Each warp takes as many tokens at a time as
 * it has such threads. The operations are those of the walk; only the plan says other sharers. */
#include "compiler/plan_thread.h"
#include "lower/emit.h"

#include <stdlib.h>

/* The plan of those who make it; what they make is not in shared memory yet. */
static struct plan *plan_of_makers(const struct plan *p)
{
    struct plan *own = malloc(sizeof *own);
    if (!own)
        abort(); /* as where LLVM has no memory */
    *own = *p;
    own->sharers = plan_makers(p);
    for (uint32_t i = 0; i < own->n_values; i++)
        own->values[i].staged &= own->values[i].stmt < 0;
    return own;
}

/* Rows that are of no token: a thread has others of them here than in the walk. */
static bool is_own_row(const struct plan *p, const struct value *v)
{
    return v->nest < 0 && v->stmt < 0 && plan_has_dim(v, plan_shared_dim(p)) && !plan_has_dim(v, p->thread_dim);
}

static void make_of_token(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    for (uint32_t k = 0; k < nest->n_loads; k++) {
        const struct value *v = &e->p->values[nest->loads[k]];
        if (v->staged && !plan_has_dim(v, e->p->thread_dim) && !plan_is_shared_row(e->p, v))
            load_fetched(e, nest->loads[k]);
    }
    for (uint32_t i = begin; i < end; i++) {
        load_rows_for(e, &e->p->ops[i]);
        emit_ops(e, i, i + 1);
    }
}

/* What the walk reads of it, as `walk` places it. */
static void leave_for_walk(struct emit *e, const struct plan *walk, tg_bits early)
{
    for (uint32_t v = 0; v < walk->n_values; v++) {
        if (!(early >> v & 1) || !walk->values[v].staged)
            continue;
        const bool is_row = plan_is_shared_row(walk, &walk->values[v]);
        LLVMBasicBlockRef after = is_row ? NULL : begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->sharer, imm(e, 0), ""));
        for (uint32_t r = 0; plan_leaves_power(walk, v) && r < plan_held_count(e->p, &e->p->values[v]); r++)
            set(e, e->registers[v][2 * r], exp2_approx(e, get(e, e->f32, e->registers[v][2 * r])));
        put_fetched(e, &walk->values[v], e->registers[v]);
        if (after)
            end_if(e, after);
    }
}

/* In registers of their own until they are given back. */
static void load_own_rows(struct emit *e, LLVMValueRef *rows[PLAN_MAX_VALUES])
{
    for (uint32_t v = 0; v < e->p->n_values; v++) {
        rows[v] = e->registers[v];
        if (is_own_row(e->p, &e->p->values[v])) {
            e->registers[v] = new_registers(e, v);
            load_thread(e, v);
        }
    }
}

static void give_back(struct emit *e, LLVMValueRef *rows[PLAN_MAX_VALUES])
{
    for (uint32_t v = 0; v < e->p->n_values; v++) {
        if (e->registers[v] != rows[v])
            free(e->registers[v]);
        e->registers[v] = rows[v];
    }
}

void make_early(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    const struct plan *const walk = e->p;
    const struct place outside = e->at;
    struct plan *const own = plan_of_makers(walk);
    const uint32_t together = 32 / own->sharers; /* tokens of a warp at a time */
    LLVMValueRef *rows[PLAN_MAX_VALUES], first, tokens = thread_trips(e, &nest->loops[0]);
    e->p = own;
    find_thread(e, e->tid);
    load_own_rows(e, rows);
    const struct counted l = loop_from(e, mul(e, e->warp, imm(e, together)), tokens, &first);
    LLVMValueRef token = add(e, first, modulo(e, e->owner, imm(e, together)));
    e->at = place_in_nest(e, nest, &nest->loops[0], smaller(e, token, sub(e, tokens, imm(e, 1))));
    make_of_token(e, nest, begin, end);
    LLVMBasicBlockRef after = begin_if(e, less(e, token, tokens));
    leave_for_walk(e, walk, nest->early);
    end_if(e, after);
    e->at = outside;
    loop_end(e, &l, own->threads / own->sharers);
    give_back(e, rows);
    e->p = walk;
    free(own);
    find_thread(e, e->tid);
    barrier(e);
}
