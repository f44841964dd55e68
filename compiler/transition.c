/* compiler/transition.c - segments whose states depend on those they begin with: what a row on warpgroups that makes them has to be.
 *
 * A segment makes of a state S the state M S + L, M dqk x dqk for a state dqk x dhv. L is the walk from zero. A column of M is
 * the walk from a column of the identity with zeros for all that is loaded of dhv, whose columns have nothing to do with one
 * another: so thread blocks behind the last one of dhv walk the same chunks, and tensor maps, which end with dhv, load zeros for
 * them. That is right if everything that has dhv is linear in the state and in what is loaded of dhv, column by column, and
 * nothing else is made of it.
 *
 * Where chunks decay a transition ends up as zeros, and stays so whatever comes: its thread block need not walk on. It
 * looks at its registers, once the decays are so small that they may be zero. The other thread blocks have other heads, or other
 * columns, so nothing depends on what is beside it. All groups together, for they share tiles; and the warp that loads is told
 * by a number beside the stage that it is waiting for, so that it has filled as many more as the ring has.
 *
 * requires: nest, walk's spaces and owner */
#include "compiler/plan.h"
#include "compiler/plan_walk.h"

enum term {
    FREE,
    LINEAR,
    OTHER
}; /* of what has the columns: does not depend on it; linear, without a constant; neither */

static enum term operation(const tg_x *x, enum term a, enum term b)
{
    switch (x->op) {
    case TG_X_ADD:
    case TG_X_SUB:
        return a == b ? a : OTHER;
    case TG_X_MUL:
        return a == FREE ? b : b == FREE ? a : OTHER;
    case TG_X_NEG:
    case TG_X_CAUSAL:
    case TG_X_BEFORE:
        return a;
    default:
        return a == FREE && b == FREE ? FREE : OTHER;
    }
}

static bool has_columns(const struct plan *p, tg_operand operand)
{
    return operand && (tg_operand_mask(p->algorithm, operand) >> p->owner & 1);
}

static enum term term_of_map(const struct plan *p, const tg_stmt *s)
{
    enum term stack[TG_MAX_EXPR + 2] = {FREE};
    uint32_t n = 0;
    for (uint32_t i = 0; i < tg_expr_length(s); i++) {
        const tg_x *x = &s->expr[i];
        const uint32_t arity = (uint32_t)tg_expr_arity(x->op);
        n -= arity;
        const enum term a = arity > 0 ? stack[n] : FREE, b = arity > 1 ? stack[n + 1] : FREE;
        const bool is_column = x->op == TG_X_TILE && has_columns(p, x->operand);
        stack[n++] = is_column ? LINEAR : arity > 2 ? OTHER : operation(x, a, b);
    }
    return stack[0];
}

static enum term term_of(const struct plan *p, const tg_stmt *s)
{
    tg_operand reads[TG_MAX_READS];
    bool any = false;
    for (uint32_t i = 0, n = tg_stmt_reads(s, reads); i < n; i++)
        any |= has_columns(p, reads[i]);
    if (!any)
        return FREE;
    const bool a = has_columns(p, s->a), b = has_columns(p, s->b), sums = !has_columns(p, s->out);
    switch (s->op) {
    case TG_STMT_MAP:
        return term_of_map(p, s);
    case TG_STMT_CONTRACT:
        return sums || (a && b) || (s->init && !has_columns(p, s->init)) ? OTHER : LINEAR;
    case TG_STMT_CARRY:
        return sums || (a && b) || has_columns(p, s->decay) ? OTHER : LINEAR;
    default:
        return OTHER;
    }
}

bool plan_can_rest(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_DECAY && p->ops[i].v == p->state)
            return p->makes_segments && p->transition && p->values[p->ops[i].a].n_dims == 0;
    return false;
}

bool plan_check_transition(const struct plan *p)
{
    if (!p->transition)
        return true;
    bool ok = p->owner == plan_transition_along(p) && !p->cluster && !p->carries && p->heads == 1;
    for (uint32_t i = 0; i < p->algorithm->n_body && ok; i++) {
        const tg_stmt *s = &p->algorithm->body[i];
        ok = !(p->slice.stmts >> i & 1) || term_of(p, s) == (has_columns(p, s->out) ? LINEAR : FREE);
    }
    for (uint32_t i = 0; i < p->n_values && ok; i++)
        ok = p->values[i].stmt >= 0 || !plan_is_owned(p, &p->values[i]) || plan_is_loaded(&p->values[i]);
    if (!ok)
        plan_refuse(
            p, "TG0534", "give the second axis of the state the role P and the first TG_L(0)",
            "kernel %s makes segments whose states depend on those they begin with: what it makes is not linear in "
            "them, column by column, or its output is not their second axis",
            p->row->name);
    return ok;
}
