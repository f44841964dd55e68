/* compiler/print.c - a plan as text: what `tegula explain --stage plan` shows and tests compare. */
#include "compiler/plan.h"

static const char *const space_names[] = {
    "-",       "fragment", "on the fly", "shared",      "shared vector", "row registers", "thread",
    "uniform", "columns",  "sum",        "shared rows", "gathered",      "carried",       "shared tile"};
_Static_assert(sizeof space_names / sizeof *space_names == SPACE_N_KINDS, "one name for each space");
static const char *const op_names[] = {
    [OP_LOAD] = "load",         [OP_COMMIT] = "commit", [OP_WAIT] = "wait",         [OP_BARRIER] = "barrier",
    [OP_PROLOGUE] = "prologue", [OP_NEST] = "nest",     [OP_END] = "end",           [OP_ZERO] = "zero",
    [OP_COPY] = "copy",         [OP_INIT] = "init",     [OP_ENTER] = "enter",       [OP_MAP] = "map",
    [OP_SCAN] = "scan",         [OP_TOTAL] = "total",   [OP_CONTRACT] = "contract", [OP_DOT] = "dot",
    [OP_DECAY] = "decay",       [OP_WALK] = "walk",     [OP_COMPOSE] = "compose",   [OP_STORE] = "store"};
_Static_assert(sizeof op_names / sizeof *op_names == OP_N_KINDS, "one name for each operation");

static void print_value(const struct plan *p, uint32_t i, const tg_writer *w)
{
    const struct value *v = &p->values[i];
    const uint32_t at = TG_OPERAND_AT(v->operand);
    tg_printf(w, "  v%-2u %s%s%s [", i, plan_tensor(p, v)->name, at ? "@" : "", at ? tg_dim_name(at) : "");
    for (uint32_t d = 0; d < v->n_dims; d++)
        tg_printf(w, "%s%s %u", d ? ", " : "", tg_dim_name(v->dims[d]), v->extent[d]);
    tg_printf(w, "] %s %s", tg_dtype_name(v->dtype), space_names[v->space]);
    if (v->space == SPACE_MATRIX || v->space == SPACE_VECTOR)
        tg_printf(w, " at %u, %u x %u bytes", v->offset, v->stages, v->stage_bytes);
    if (v->staged && v->nest >= 0)
        tg_printf(w, ", staged at %u, %u bytes a step", v->offset, v->row_bytes);
    else if (v->staged)
        tg_printf(w, ", at %u in shared memory while a nest runs", v->offset);
    if (v->nest >= 0)
        tg_printf(w, ", nest %d%s", v->nest, v->outer ? " outer" : "");
    tg_printf(w, "\n");
}

static void print_nest(const struct plan *p, const struct nest *nest, const tg_writer *w)
{
    for (uint32_t i = 0; i < nest->n_loops; i++) {
        tg_printf(w, " %s by %u", tg_dim_name(nest->loops[i].dim), nest->loops[i].block);
        if (nest->loops[i].trips)
            tg_printf(w, " (%u times)", nest->loops[i].trips);
    }
    if (nest->n_loads) {
        tg_printf(w, ", ring of %u:", nest->stages);
        for (uint32_t i = 0; i < nest->n_loads; i++)
            tg_printf(w, " v%u", nest->loads[i]);
    }
    tg_printf(w, "%s%s%s%s", nest->shared_out ? ", what is uniform shared out first" : "",
              nest->causal_end ? ", up to the diagonal" : "", nest->causal_begin ? ", from the diagonal" : "",
              nest->reverse ? ", last chunk first" : "");
    (void)p;
}

static void print_op(const struct plan *p, const struct op *op, int indent, const tg_writer *w)
{
    static const char *const guards[] = {"", "first: ", "last: "};
    static const char *const whens[] = {"", "before all heads: ", "after all heads: "};
    tg_printf(w, "  %*s%s%s%s", indent, "", whens[op->when], guards[op->guard], op_names[op->kind]);
    if (op->kind == OP_NEST || op->kind == OP_END || op->kind == OP_PROLOGUE || op->kind == OP_WAIT)
        tg_printf(w, " %u", op->n);
    else if (op->kind != OP_COMMIT && op->kind != OP_BARRIER)
        tg_printf(w, " v%u", op->v);
    if (op->kind == OP_CONTRACT || op->kind == OP_DOT)
        tg_printf(w, " += v%u v%u", op->a, op->b);
    if (op->kind == OP_COPY || op->kind == OP_SCAN || op->kind == OP_TOTAL || op->kind == OP_DECAY ||
        op->kind == OP_COMPOSE)
        tg_printf(w, ", v%u", op->a);
    if ((op->kind == OP_STORE || op->kind == OP_INIT || op->kind == OP_ENTER || op->kind == OP_COMPOSE) && op->tile)
        tg_printf(w, " %s %s", op->kind == OP_STORE ? "to" : "from", p->algorithm->tensors[op->tile].name);
    if (op->kind == OP_NEST)
        print_nest(p, &p->nests[op->n], w);
    tg_printf(w, "\n");
}

void plan_print(const struct plan *p, const tg_writer *w)
{
    tg_printf(w, "kernel %s: %u threads (%u x %u warps), %u bytes of shared memory, about %u registers\n", p->name,
              p->threads, p->warps_m, p->warps_n, p->shared_bytes, p->registers);
    tg_printf(w, " tiles\n");
    for (uint32_t i = 0; i < p->n_values; i++)
        print_value(p, i, w);
    tg_printf(w, " operations\n");
    int indent = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        if (p->ops[i].kind == OP_END)
            indent -= 2;
        print_op(p, &p->ops[i], indent, w);
        if (p->ops[i].kind == OP_NEST)
            indent += 2;
    }
}
