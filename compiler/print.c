/* compiler/print.c - a plan as text: what `tegula explain --stage plan` shows and tests compare. */
#include "compiler/plan.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_walk.h"

#include <stdlib.h>

static const char *const space_names[] = {
    "-",      "fragment", "on the fly", "shared",        "shared vector", "row registers",
    "thread", "uniform",  "channels",   "parts of a sum"};
_Static_assert(sizeof space_names / sizeof *space_names == SPACE_N_KINDS, "one name for each space");
static const char *const scope_names[SCOPE_N_KINDS] = {
    [SCOPE_BLOCK] = "", [SCOPE_GROUP] = " of each warpgroup", [SCOPE_WARP] = " of each warp"};
static const char *const op_names[] = {[OP_LOAD] = "load",
                                       [OP_COMMIT] = "commit",
                                       [OP_WAIT] = "wait",
                                       [OP_BARRIER] = "barrier",
                                       [OP_PROLOGUE] = "prologue",
                                       [OP_ISSUE] = "issue",
                                       [OP_NEST] = "nest",
                                       [OP_END] = "end",
                                       [OP_ZERO] = "zero",
                                       [OP_COPY] = "copy",
                                       [OP_ADDEND] = "addend",
                                       [OP_BEGIN] = "begin",
                                       [OP_SCALE] = "scale",
                                       [OP_INIT] = "init",
                                       [OP_ENTER] = "enter",
                                       [OP_MAP] = "map",
                                       [OP_SCAN] = "scan",
                                       [OP_TOTAL] = "total",
                                       [OP_CONTRACT] = "contract",
                                       [OP_ADD_UP] = "add up",
                                       [OP_SOLVE] = "solve",
                                       [OP_DOT] = "dot",
                                       [OP_DECAY] = "decay",
                                       [OP_WALK] = "walk",
                                       [OP_COMPOSE] = "compose",
                                       [OP_STORE] = "store",
                                       [OP_LEAVE] = "leave",
                                       [OP_MEET] = "meet",
                                       [OP_TAKE] = "take",
                                       [OP_PASS] = "pass on",
                                       [OP_START] = "start",
                                       [OP_KEEP] = "keep",
                                       [OP_TILES] = "tiles",
                                       [OP_END_TILES] = "end of tiles",
                                       [OP_ROWS] = "rows",
                                       [OP_END_ROWS] = "end of rows",
                                       [OP_HEADS] = "heads",
                                       [OP_END_HEADS] = "end of heads",
                                       [OP_WAYS] = "where decays are small",
                                       [OP_END_WAYS] = "end of both ways",
                                       [OP_FACTORS] = "factors",
                                       [OP_PUT_OFF] = "put off the decay of",
                                       [OP_CATCH_UP] = "catch up with the decay of",
                                       [OP_MULTIPLY] = "multiply matrices",
                                       [OP_CLEAR] = "clear",
                                       [OP_FETCH] = "fetch",
                                       [OP_PUT] = "put",
                                       [OP_SEND] = "send",
                                       [OP_RECEIVE] = "receive",
                                       [OP_EXPECT] = "expect",
                                       [OP_ARRIVE] = "arrive",
                                       [OP_AWAIT] = "await",
                                       [OP_FENCE] = "fence",
                                       [OP_REST] = "rest",
                                       [OP_FORGET] = "forget"};
_Static_assert(sizeof op_names / sizeof *op_names == OP_N_KINDS, "one name for each operation");

static const char *const sync_names[] = {[SYNC_BLOCK] = "block",
                                         [SYNC_GROUPS] = "all groups",
                                         [SYNC_GROUP] = "the group",
                                         [SYNC_PRODUCT] = "product",
                                         [SYNC_PART] = "products before the last",
                                         [SYNC_STATE] = "state",
                                         [SYNC_LANDED] = "matrices",
                                         [SYNC_FULL] = "full stage",
                                         [SYNC_EMPTY] = "empty stage",
                                         [SYNC_OPEN] = "stage open in the cluster",
                                         [SYNC_READ] = "stores to have read",
                                         [SYNC_WRITTEN] = "stores to be done",
                                         [SYNC_BEHIND] = "empty stage of the step before",
                                         [SYNC_PUT] = "output put",
                                         [SYNC_MADE] = "tiles made",
                                         [SYNC_LOADED] = "loaded",
                                         [SYNC_TOLD] = "loaded, all together",
                                         [SYNC_LEFT] = "left",
                                         [SYNC_CLEARED] = "cleared stage",
                                         [SYNC_TURN] = "turn to add",
                                         [SYNC_READY] = "ready in the other thread block"};
_Static_assert(sizeof sync_names / sizeof *sync_names == SYNC_N_KINDS, "one name for each of them");

static void print_value(const struct plan *p, uint32_t i, const tg_writer *w)
{
    const struct value *v = &p->values[i];
    const uint32_t at = TG_OPERAND_AT(v->operand);
    tg_printf(w, "  v%-2u %s%s%s [", i, plan_tensor(p, v)->name, at ? "@" : "", at ? tg_dim_name(at) : "");
    for (uint32_t d = 0; d < v->n_dims; d++)
        tg_printf(w, "%s%s %u", d ? ", " : "", tg_dim_name(v->dims[d]), v->extent[d]);
    tg_printf(w, "] %s %s%s", tg_dtype_name(v->dtype), space_names[v->space], scope_names[v->scope]);
    if (v->space == SPACE_MATRIX || v->space == SPACE_VECTOR || (p->groups && v->stage_bytes))
        tg_printf(w, " at %u, %u x %u bytes", v->offset, v->stages, v->stage_bytes);
    if (v->by_head)
        tg_printf(w, ", of each head");
    if (v->staged && v->nest >= 0)
        tg_printf(w, ", staged at %u, %u bytes a step", v->offset, v->row_bytes);
    else if (v->staged)
        tg_printf(w, ", at %u in shared memory while a nest runs", v->offset);
    if (v->apart)
        tg_printf(w, ", decay apart");
    if (v->rows_apart)
        tg_printf(w, ", decays of rows apart");
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
    if (nest->n_loads && !p->thread_dim) {
        tg_printf(w, ", ring of %u:", nest->stages);
        for (uint32_t i = 0; i < nest->n_loads; i++)
            tg_printf(w, " v%u", nest->loads[i]);
    }
    if (nest->steps > 1)
        tg_printf(w, ", rounds of %u steps%s", nest->steps, nest->halves ? ", one half ahead of the other" : "");
    if (nest->blocks)
        tg_printf(w, ", %u %s", nest->blocks, tg_dim_name(nest->loops[0].dim));
    tg_printf(w, "%s%s%s%s", nest->shared_out ? ", what is uniform shared out first" : "",
              nest->causal_end ? ", up to the diagonal" : "", nest->causal_begin ? ", from the diagonal" : "",
              nest->reverse ? ", last chunk first" : "");
}

/* What an operation of a kernel on warpgroups has beside its value. */
static void print_walk_op(const struct plan *p, const struct op *op, const tg_writer *w)
{
    if (op->kind == OP_AWAIT && op->sync == SYNC_PRODUCT)
        tg_printf(w, op->n ? " v%u, %u later ones under way" : " v%u", op->v, op->n);
    else if (op->kind == OP_AWAIT || op->kind == OP_ARRIVE || op->kind == OP_EXPECT)
        tg_printf(w, " %s", sync_names[op->sync]);
    if (plan_is_diagonal(p, op))
        tg_printf(w, ", its diagonal");
    if (op->kind == OP_MAP && p->decayed && op->v == p->ways.tile)
        tg_printf(w, " without its decay");
    if (op->kind == OP_MAP && op->n)
        tg_printf(w, op->n == EXPONENTIALS_KEPT ? ", whose exponentials stay" : ", with the exponentials that stayed");
    if (op->kind == OP_FORGET)
        tg_printf(w, "%s%s%s", op->n & FORGET_THREAD ? " thread" : "", op->n & FORGET_BASES ? " bases" : "",
                  op->n & FORGET_CHUNK ? " chunk" : "");
    if ((op->kind == OP_PUT && (p->values[op->v].space == SPACE_FRAGMENT || plan_is_made_of_rows(&p->values[op->v]))) ||
        op->kind == OP_SEND || op->kind == OP_RECEIVE)
        tg_printf(w, " %s v%u",
                  op->kind == OP_PUT    ? "over"
                  : op->kind == OP_SEND ? "to the place of"
                                        : "from that of",
                  op->a);
    if (plan_is_by_state(p, op) && plan_state_parts(p) > 1)
        tg_printf(w, ", its columns %u to %u", op->n * p->state_part,
                  op->n * p->state_part + plan_part_columns(p, op->n) - 1);
    if (op->flags & OP_OF_PRODUCT)
        tg_printf(w, " with v%u", op->w);
    if (op->flags & OP_SCALED)
        tg_printf(w, ", scaled as v%u", op->c);
    if (op->flags & OP_DECAYED)
        tg_printf(w, ", decayed by v%u", op->c);
    if (op->flags & OP_CAREFUL)
        tg_printf(w, ", looking for NaN");
    if (op->kind == OP_MAP && op->flags & OP_AHEAD)
        tg_printf(w, " of what has been fetched");
}

static bool has_value(const struct op *op)
{
    switch (op->kind) {
    case OP_NEST:
    case OP_END:
    case OP_PROLOGUE:
    case OP_ISSUE:
    case OP_WAIT:
    case OP_COMMIT:
    case OP_BARRIER:
    case OP_TILES:
    case OP_END_TILES:
    case OP_ROWS:
    case OP_END_ROWS:
    case OP_HEADS:
    case OP_END_HEADS:
    case OP_WAYS:
    case OP_END_WAYS:
    case OP_FACTORS:
    case OP_MULTIPLY:
    case OP_CLEAR:
    case OP_EXPECT:
    case OP_ARRIVE:
    case OP_AWAIT:
    case OP_FENCE:
    case OP_FORGET:
        return false;
    default:
        return true;
    }
}

static bool names_tile(const struct op *op)
{
    return op->tile && (op->kind == OP_STORE || op->kind == OP_LEAVE || op->kind == OP_START || op->kind == OP_KEEP ||
                        op->kind == OP_INIT || op->kind == OP_ENTER || op->kind == OP_COMPOSE || op->kind == OP_MEET);
}

static void print_op(const struct plan *p, const struct op *op, int indent, const tg_writer *w)
{
    static const char *const guards[] = {"",
                                         "first: ",
                                         "last: ",
                                         "of the step before: ",
                                         "one lane: ",
                                         "of the stage, one lane: ",
                                         "few blocks: ",
                                         "many blocks: "};
    static const char *const whens[] = {"", "before all heads: ", "after all heads: "};
    tg_printf(w, "  %*s%s%s%s", indent, "", whens[op->when], guards[op->guard], op_names[op->kind]);
    if (op->kind == OP_NEST || op->kind == OP_END || op->kind == OP_PROLOGUE || op->kind == OP_ISSUE ||
        op->kind == OP_WAIT)
        tg_printf(w, " %u", op->n);
    else if (has_value(op))
        tg_printf(w, " v%u", op->v);
    if (op->kind == OP_CONTRACT || op->kind == OP_DOT || op->kind == OP_ADDEND || op->kind == OP_BEGIN)
        tg_printf(w, " %s v%u v%u", p->groups && op->kind == OP_CONTRACT && !(op->flags & OP_ONTO) ? "=" : "+=", op->a,
                  op->b);
    if (op->kind == OP_COPY || op->kind == OP_SCAN || op->kind == OP_TOTAL || op->kind == OP_DECAY ||
        op->kind == OP_REST || op->kind == OP_COMPOSE || op->kind == OP_MEET)
        tg_printf(w, ", v%u", op->a);
    if (op->kind == OP_BARRIER && op->sync != SYNC_BLOCK)
        tg_printf(w, " of %s", sync_names[op->sync]);
    if (op->kind == OP_BARRIER && op->flags & OP_CAREFUL && !p->groups)
        tg_printf(w, ", looking for NaN in v%u", op->v);
    if (p->groups)
        print_walk_op(p, op, w);
    if (names_tile(op)) {
        const bool from = op->kind == OP_INIT || op->kind == OP_ENTER || op->kind == OP_COMPOSE;
        tg_printf(w, " %s %s",
                  op->kind == OP_MEET ? "and"
                  : from              ? "from"
                                      : "to",
                  p->algorithm->tensors[op->tile].name);
    }
    if (!p->groups && op->flags & (OP_AHEAD | OP_BEHIND) && p->nests[p->values[op->v].nest].steps > 1)
        tg_printf(w, ", all steps %s", op->flags & OP_AHEAD ? "before the round" : "behind the round");
    if (op->flags & OP_ONCE)
        tg_printf(w, ", before the first step");
    if (plan_is_early(p, op) && has_value(op))
        tg_printf(w, ", of all steps before the walk");
    if (op->kind == OP_NEST)
        print_nest(p, &p->nests[op->n], w);
    if (op->kind == OP_TILES)
        tg_printf(w, " of 64 rows: %u", p->tiles);
    if (op->kind == OP_HEADS)
        tg_printf(w, ": %u", p->heads);
    tg_printf(w, "\n");
}

static void print_role(const struct plan *p, enum role_kind kind, const tg_writer *w)
{
    static const char *const names[ROLE_N_KINDS] = {"all", "load", "make", "walk"};
    const struct role *role = &p->roles[kind];
    tg_printf(w, "  role %s: warps %u to %u", names[kind], role->first_warp, role->first_warp + role->warps - 1);
    if (role->registers)
        tg_printf(w, ", %u registers a thread", role->registers);
    tg_printf(w, "\n");
}

static bool begins_part(const struct op *op)
{
    return op->kind == OP_NEST || op->kind == OP_TILES || op->kind == OP_ROWS || op->kind == OP_HEADS ||
           op->kind == OP_WAYS;
}

static bool ends_part(const struct op *op)
{
    return op->kind == OP_END || op->kind == OP_END_TILES || op->kind == OP_END_ROWS || op->kind == OP_END_HEADS ||
           op->kind == OP_END_WAYS;
}

/* What is done where decays are small. */
static void print_decayed(const struct plan *p, int indent, const tg_writer *w)
{
    struct plan *decayed = malloc(sizeof *decayed);
    bool inside = false;
    if (decayed && plan_build_decayed(p, decayed))
        for (uint32_t i = 0; i < decayed->n_ops; i++) {
            const struct op *op = &decayed->ops[i];
            inside &= op->kind != OP_END_WAYS;
            indent -= inside && ends_part(op) ? 2 : 0;
            if (inside)
                print_op(decayed, op, indent, w);
            inside |= op->kind == OP_WAYS;
            indent += inside && begins_part(op) ? 2 : 0;
        }
    free(decayed);
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
        const struct op *op = &p->ops[i];
        if (op->role != (i ? p->ops[i - 1].role : ROLE_ALL)) {
            print_role(p, op->role, w);
            indent = 2;
        }
        if (ends_part(op))
            indent -= 2;
        print_op(p, op, indent, w);
        if (op->kind == OP_WAYS) {
            print_decayed(p, indent, w);
            tg_printf(w, "  %*sor else\n", indent, "");
        }
        if (begins_part(op))
            indent += 2;
    }
}
