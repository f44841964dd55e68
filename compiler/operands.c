/* compiler/operands.c - does every operation of a kernel with matrix products find its tiles where it can take them from?
 *
 * A declaration may list or keep any tile. One that is fetched, or made while it is fetched, is in no registers, from
 * which alone it could be stored, copied or read by another statement.
 *
 * requires: place or walk */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_tile.h"
#include "compiler/plan_walk.h"

static bool refuse(const struct plan *p, uint32_t v, const char *what)
{
    plan_refuse(p, "TG0524", "let another row write it, or do not keep it", "kernel %s cannot %s tile %s here",
                p->row->name, what, plan_tensor(p, &p->values[v])->name);
    return false;
}

static bool is_in_registers(const struct value *v)
{
    return v->space == SPACE_FRAGMENT || v->space == SPACE_ROWS || v->space == SPACE_UNIFORM ||
           v->space == SPACE_CHANNEL || v->space == SPACE_PARTS || (v->space == SPACE_VECTOR && v->stmt >= 0);
}

static bool check_store(const struct plan *p, const struct op *op)
{
    if (!is_in_registers(&p->values[op->v]))
        return refuse(p, op->v, "store");
    if (plan_memory_dtype(p, op->tile) == TG_F32X2)
        return refuse(p, op->v, "store as two floats");
    return true;
}

static bool check_dot(const struct plan *p, const struct op *op)
{
    const struct value *a = &p->values[op->a], *b = &p->values[op->b];
    if (a->space == SPACE_CHANNEL && p->values[op->v].space == SPACE_ROWS && p->values[op->v].n_dims == 1 &&
        (b->space == SPACE_CHANNEL || !p->algorithm->body[op->stmt].b) && a->n_dims == 2 && b->n_dims == 2)
        return true;
    if (a->space != SPACE_FRAGMENT)
        return refuse(p, op->a, "sum up products of");
    if (p->algorithm->body[op->stmt].b && b->space != SPACE_FRAGMENT && b->space != SPACE_VECTOR)
        return refuse(p, op->b, "sum up products of");
    return true;
}

static bool check_map(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    tg_operand reads[TG_MAX_READS];
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[op->stmt], reads); k < n; k++) {
        const int r = plan_find(p, reads[k], v->nest);
        const enum space space = r < 0 ? SPACE_UNIFORM : p->values[r].space;
        const bool at_rows = v->space != SPACE_OPERAND || !plan_is_read_while_fetched(p, (uint32_t)r);
        const bool ok = (space == SPACE_ROWS && at_rows && !(p->spreads && v->space == SPACE_CHANNEL)) ||
                        space == SPACE_VECTOR || space == SPACE_UNIFORM ||
                        ((space == SPACE_FRAGMENT || space == SPACE_CHANNEL) && v->space == space) ||
                        (space == SPACE_MATRIX && v->space == SPACE_OPERAND);
        if (!ok)
            return refuse(p, (uint32_t)r, "compute an expression of");
    }
    return true;
}

/* A map of a walk takes the elements of one matrix from shared memory. */
static bool check_walk_map(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    tg_operand reads[TG_MAX_READS];
    int matrix = -1;
    if (plan_works_on_rows(p, op)) /* walk_rows.c */
        return true;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[op->stmt], reads); k < n; k++) {
        const int r = plan_find(p, reads[k], v->nest);
        if (r < 0 || !plan_is_loaded(&p->values[r]))
            continue;
        if (v->space != SPACE_OPERAND && !plan_is_owned(p, v))
            return refuse(p, (uint32_t)r, "compute an expression of");
        if (matrix >= 0 && matrix != r)
            return refuse(p, (uint32_t)r, "compute an expression of another matrix and");
        matrix = r;
    }
    return true;
}

/* wgmma takes operands as they lie in memory; rows are made of fp32 too. */
static bool check_types(const struct plan *p)
{
    for (uint32_t i = 0; p->groups && i < p->n_values; i++)
        if (plan_is_loaded(&p->values[i]) &&
            plan_memory_dtype(p, TG_OPERAND_TILE(p->values[i].operand)) != p->shape.io &&
            !(p->values[i].dtype == TG_F32 && plan_is_for_rows(p, i)))
            return refuse(p, i, "take, in other than the input type,");
    return true;
}

/* Who copies to shared memory adds nothing up, nor do rows that lanes load whole. */
static bool adds_parts(const struct plan *p, const struct value *v)
{
    return !p->groups && !p->by_channel && (v->space == SPACE_ROWS || v->space == SPACE_UNIFORM);
}

static bool check_parts(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->stmt >= 0 || adds_parts(p, v) || p->parts[TG_OPERAND_TILE(v->operand)] == 1)
            continue;
        plan_refuse(p, "TG0524", "let a row without matrix products add them up, or sum it in one block",
                    "kernel %s cannot take, in parts, tile %s here", p->row->name, plan_tensor(p, v)->name);
        return false;
    }
    return true;
}

/* What is loaded into fragments has one float an element, and of vectors and numbers each element has one or two. */
static bool check_loads(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->stmt < 0 && v->space == SPACE_FRAGMENT && v->dtype == TG_F32X2)
            return refuse(p, i, "take, as two floats,");
        if (v->stmt < 0 && v->n_dims < 2 && tg_dtype_bytes(plan_memory_dtype(p, TG_OPERAND_TILE(v->operand))) == 2)
            return refuse(p, i, "take, as 16 bits an element,");
    }
    return true;
}

/* What a group carries on beside the state is fp32, in memory too. */
static bool check_carried(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool in_memory = op->kind == OP_INIT || op->kind == OP_ENTER || op->kind == OP_STORE;
        if (in_memory && p->groups && plan_is_carried(&p->values[op->v]) &&
            tg_dtype_bytes(plan_memory_dtype(p, op->tile)) == 2)
            return refuse(p, op->v, "carry, as 16 bits an element,");
    }
    return true;
}

/* A factor of positions is put on what is on the left of the product: there is one. */
static bool check_factors(const struct plan *p, const struct op *op)
{
    const bool both = p->values[op->a].space == SPACE_OPERAND && p->values[op->b].space == SPACE_OPERAND;
    return !p->groups || !both || refuse(p, op->b, "put on one operand the factors of two, the other of which is");
}

/* The state is read as it arrives: nothing reads it between its first change and the end of the chunk. */
static bool check_order(const struct plan *p)
{
    tg_bits changed = 0;
    for (uint32_t i = 0; i < p->n_ops && !p->groups; i++) {
        const struct op *op = &p->ops[i];
        const bool of_state =
            op->stmt >= 0 && p->algorithm->body[op->stmt].op == TG_STMT_CARRY && p->values[op->v].stmt == op->stmt;
        const bool reads = (op->kind == OP_CONTRACT || op->kind == OP_DOT) && !of_state;
        if (op->kind == OP_END)
            changed = 0;
        if (reads && (changed & (TG_BIT(op->a) | TG_BIT(op->b))))
            return refuse(p, changed & TG_BIT(op->a) ? op->a : op->b, "read, after it has changed,");
        if (of_state && (op->kind == OP_CONTRACT || op->kind == OP_DECAY))
            changed |= TG_BIT(op->v);
    }
    return true;
}

bool plan_check_operands(const struct plan *p)
{
    bool ok = check_types(p) && check_parts(p) && check_loads(p) && check_carried(p) && check_order(p);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_STORE)
            ok = check_store(p, op) && ok;
        if (op->kind == OP_COPY && !is_in_registers(&p->values[op->a]))
            ok = refuse(p, op->a, "begin a sum with");
        if (op->kind == OP_DOT && !p->groups) /* walks check their sums where they place them */
            ok = check_dot(p, op) && ok;
        if (op->kind == OP_CONTRACT)
            ok = check_factors(p, op) && ok;
        const bool sums = op->kind == OP_SCAN || (op->kind == OP_TOTAL && !p->by_member);
        if (sums && (p->values[op->v].space != SPACE_CHANNEL || p->values[op->a].space != SPACE_CHANNEL))
            ok = refuse(p, op->v, "beside matrix products make the sums over positions") && ok;
        if (op->kind == OP_MAP)
            ok = (p->groups ? check_walk_map(p, op) : check_map(p, op)) && ok;
    }
    return ok;
}
