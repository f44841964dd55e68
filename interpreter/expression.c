/* interpreter/expression.c - MAP: the codes of its expression, for every element of the result. */
#include "interpreter/interpret.h"

#include <math.h>

static const double log2_e = 1.4426950408889634;

static double unary(uint8_t op, double a)
{
    switch (op) {
    case TG_X_NEG:
        return -a;
    case TG_X_ABS:
        return fabs(a);
    case TG_X_EXP2:
        return exp2(a);
    case TG_X_LOG2:
        return log2(a);
    case TG_X_LOGSIG2:
        return log2_e * (fmin(a, 0) - log1p(exp(-fabs(a))));
    case TG_X_SIGMOID:
        return 1 / (1 + exp(-a));
    case TG_X_SOFTPLUS:
        return fmax(a, 0) + log1p(exp(-fabs(a)));
    default: /* TG_X_STEP */
        return a > 0 ? 1 : 0;
    }
}

static double binary(uint8_t op, double a, double b)
{
    switch (op) {
    case TG_X_ADD:
        return a + b;
    case TG_X_SUB:
        return a - b;
    case TG_X_MUL:
        return a * b;
    case TG_X_DIV:
        return a / b;
    case TG_X_MAX:
        return larger(a, b);
    default: /* TG_X_MIN */
        return -larger(-a, -b);
    }
}

static double value_of(const struct machine *m, const tg_stmt *stmt, const struct view *views,
                       const int64_t at[N_INNER])
{
    double stack[TG_MAX_EXPR];
    int n = 0;
    for (int i = 0; i < TG_MAX_EXPR && stmt->expr[i].op != TG_X_END; i++) {
        const tg_x *x = &stmt->expr[i];
        if (x->op == TG_X_TILE)
            stack[n++] = *element_of(views[i], at);
        else if (x->op == TG_X_NUMBER)
            stack[n++] = (double)x->number;
        else if (x->op == TG_X_SCALAR)
            stack[n++] = m->call->scalars[x->operand];
        else if (x->op == TG_X_SIZE)
            stack[n++] = (double)(x->operand == TG_DQK   ? m->call->dqk
                                  : x->operand == TG_DHV ? m->call->dhv
                                                         : m->call->group);
        else if (x->op == TG_X_CAUSAL)
            stack[n - 1] = at[BY_Q] >= at[BY_KV] ? stack[n - 1] : 0;
        else if (x->op == TG_X_BEFORE)
            stack[n - 1] = at[BY_Q] > at[BY_KV] ? stack[n - 1] : 0;
        else if (tg_expr_arity(x->op) == 1)
            stack[n - 1] = kept(m, unary(x->op, stack[n - 1]));
        else {
            n--;
            stack[n - 1] = kept(m, binary(x->op, stack[n - 1], stack[n]));
        }
    }
    return stack[0];
}

void evaluate_map(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const struct extent extent = extent_of(m, &stmt->out, 1, place);
    struct view views[TG_MAX_EXPR] = {0};
    int64_t at[N_INNER] = {0};
    for (int i = 0; i < TG_MAX_EXPR && stmt->expr[i].op != TG_X_END; i++)
        if (stmt->expr[i].op == TG_X_TILE)
            views[i] = view_of(m, stmt->expr[i].operand, place);
    do
        *element_of(out, at) = value_of(m, stmt, views, at);
    while (next_element(at, &extent));
}
