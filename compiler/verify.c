/* compiler/verify.c - the rules every plan obeys, checked between passes. A violation is a defect of the
 * pass that just ran, never of the user; it is reported all the same instead of aborting. */
#include "compiler/plan.h"
#include "compiler/plan_channel.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"
#include "compiler/plan_walk.h"

static bool broken(const struct plan *p, const char *stage, uint32_t at, const char *rule)
{
    tg_report(p->sink, TG_ERROR, "TG0599", NULL, 0, "this is a defect of Tegula: please report it with the schedule",
              "kernel %s, after pass %s, operation %u: %s", p->row->name, stage, at, rule);
    return false;
}

static bool is_defining(const struct op *op)
{
    return op->kind == OP_LOAD || op->kind == OP_ZERO || op->kind == OP_COPY || op->kind == OP_INIT ||
           op->kind == OP_ENTER || op->kind == OP_MAP || op->kind == OP_SCAN || op->kind == OP_TOTAL ||
           op->kind == OP_DOT || op->kind == OP_WALK || op->kind == OP_SOLVE || op->kind == OP_MEET;
}

/* Nests open and close in order, guards only where there are two loops, values are defined before use. */
static bool check_structure(const struct plan *p, const char *stage)
{
    tg_bits defined = 0;
    int open = -1;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].stmt < 0)
            defined |= TG_BIT(i);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind >= OP_N_KINDS || op->v >= PLAN_MAX_VALUES || op->a >= PLAN_MAX_VALUES || op->b >= PLAN_MAX_VALUES)
            return broken(p, stage, i, "unknown operation or value");
        if (op->kind == OP_NEST && open >= 0)
            return broken(p, stage, i, "a nest inside a nest");
        if (op->kind == OP_END && open != op->n)
            return broken(p, stage, i, "end of a nest that is not open");
        if (op->kind == OP_NEST || op->kind == OP_END)
            open = op->kind == OP_NEST ? op->n : -1;
        if (op->guard != GUARD_ALWAYS && (open < 0 || p->nests[open].n_loops < 2))
            return broken(p, stage, i, "a guard outside of a nest of two loops");
        if (op->kind == OP_CONTRACT && (!(defined >> op->v & 1) || !(defined >> op->a & 1) || !(defined >> op->b & 1)))
            return broken(p, stage, i, "a product of something not yet computed");
        if ((op->kind == OP_STORE || op->kind == OP_DECAY) && !(defined >> op->v & 1))
            return broken(p, stage, i, "a use before the definition");
        if (is_defining(op))
            defined |= TG_BIT(op->v);
    }
    return open < 0 || broken(p, stage, p->n_ops, "a nest without an end");
}

/* What a loop without products reads of memory is loaded in it before; rows that threads share out are where they are read. */
static bool check_loads(const struct plan *p, const char *stage)
{
    const struct value *values = p->values;
    tg_bits loaded = 0;
    int open = -1;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        uint8_t reads[TG_MAX_READS];
        if (op->kind == OP_NEST || op->kind == OP_END)
            open = op->kind == OP_NEST ? op->n : -1;
        loaded |= op->kind == OP_LOAD ? TG_BIT(op->v) : 0;
        for (uint32_t k = 0, n = open >= 0 ? plan_reads(p, op, reads) : 0; k < n; k++)
            if (reads[k] < p->n_values && values[reads[k]].stmt < 0 && values[reads[k]].nest == open &&
                !(loaded >> reads[k] & 1) && !plan_is_shared_row(p, &values[reads[k]]))
                return broken(p, stage, i, "reads a tile that its loop has not loaded");
    }
    return true;
}

static bool in_memory_of_block(const struct value *v)
{
    return v->space == SPACE_MATRIX || v->space == SPACE_VECTOR;
}

/* Rows of one block of channels after another are copied to the same places. */
static bool copies_rows(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return plan_has_blocks(p) && op->kind == OP_LOAD && plan_is_loaded_row(v) && v->nest >= 0;
}

/* What was copied into shared memory is waited for and synchronised before use, at the top of the kernel and in every step of a
 * ring; and nothing is copied to where a thread may still read what was there in the step before. */
static bool check_sync(const struct plan *p, const char *stage)
{
    bool copied = false, waited = false, visible = true, left = true, entered = false;
    uint32_t ahead = 0; /* groups of copies of a ring, which are waited for later */
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool is_of_ring =
            (op->kind == OP_NEST || op->kind == OP_END) && p->nests[op->n].n_loads > 0 && p->row->mma != TG_MMA_NONE;
        const bool begins = op->kind == OP_NEST && is_of_ring;
        const bool copies = op->kind == OP_LOAD && in_memory_of_block(&p->values[op->v]);
        copied |= copies || op->kind == OP_PROLOGUE;
        if (begins || copies || (op->kind == OP_ISSUE && p->nests[op->n].steps_ahead == 0))
            waited = visible = false;
        if (is_of_ring || (op->kind == OP_NEST && plan_has_blocks(p)))
            left = false;
        ahead = op->kind == OP_PROLOGUE ? p->nests[op->n].steps_ahead : ahead;
        if (op->kind == OP_WAIT && op->n > ahead)
            return broken(p, stage, i, "waits for fewer copies than were begun");
        waited |= op->kind == OP_WAIT;
        left |= op->kind == OP_BARRIER;
        visible |= op->kind == OP_BARRIER && waited;
        if ((op->kind == OP_ISSUE || op->kind == OP_PROLOGUE || copies_rows(p, op)) && !left)
            return broken(p, stage, i, "copies to where a thread may still read");
        entered |= op->kind == OP_NEST;
        const bool maps = p->row->mma != TG_MMA_NONE && !entered && plan_maps_root_shared(p, op);
        if ((op->kind == OP_CONTRACT || maps || (op->kind == OP_END && is_of_ring)) && copied && !visible)
            return broken(p, stage, i, "reads shared memory before it was waited for and synchronised");
    }
    return true;
}

/* Warps that share columns add up in scratch memory, which all of them have read behind the next barrier. */
static bool check_sums(const struct plan *p, const char *stage)
{
    bool is_free = true;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        is_free = op->kind == OP_BARRIER || (is_free && op->kind != OP_NEST);
        if (op->kind == OP_ADD_UP && !is_free)
            return broken(p, stage, i, "adds up where a thread may still read");
        is_free &= op->kind != OP_ADD_UP;
    }
    return true;
}

static bool is_shared(const struct value *v)
{
    const bool is_buffered = v->space == SPACE_FRAGMENT && v->stage_bytes > 0; /* on its way to memory */
    return v->space == SPACE_MATRIX || v->space == SPACE_VECTOR || v->space == SPACE_PARTS || v->staged || is_buffered;
}

static uint32_t end_of(const struct value *v)
{
    return v->offset + v->stage_bytes * v->stages;
}

/* Is it where another value is, whose tile it is too? */
static bool is_second(const struct plan *p, const struct value *v)
{
    if (v->shared_with < 0)
        return false;
    const struct value *w = &p->values[v->shared_with];
    return v->offset == w->offset && v->stage_bytes == w->stage_bytes &&
           TG_OPERAND_TILE(v->operand) == TG_OPERAND_TILE(w->operand);
}

/* Is it a tile that makers make, right in the place of the loaded matrix? */
static bool is_in_place_of(const struct plan *p, const struct value *v, const struct value *matrix)
{
    return p->groups && plan_is_made_of_rows(v) && plan_is_loaded(matrix) && v->offset == matrix->offset &&
           v->stage_bytes == matrix->stage_bytes && v->stages == matrix->stages &&
           p->values[v->place].offset == matrix->offset;
}

/* Shared tiles do not overlap and keep their alignment. */
static bool check_shared(const struct plan *p, const char *stage)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (!is_shared(v))
            continue;
        if (end_of(v) > p->shared_bytes || v->offset % 16 || v->stage_bytes == 0)
            return broken(p, stage, i, "a shared tile outside of shared memory or misaligned");
        for (uint32_t k = 0; k < i && !is_second(p, v); k++) {
            const struct value *w = &p->values[k];
            const bool apart =
                !p->groups && v->nest >= 0 && w->nest >= 0 && v->nest != w->nest; /* never live together */
            const bool replaces = is_in_place_of(p, v, w) || is_in_place_of(p, w, v);
            if (!apart && !replaces && is_shared(w) && v->offset < end_of(w) && w->offset < end_of(v))
                return broken(p, stage, i, "two shared tiles overlap");
        }
    }
    return true;
}

/* ---- kernels on warpgroups (walk.c) ---- */

static bool is_loaded(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->nests[0].n_loads; i++)
        if (p->nests[0].loads[i] == v)
            return true;
    return false;
}

/* What tensor maps and wgmma ask of matrices and tiles; the ring's barriers behind everything else. */
static bool check_ring(const struct plan *p, const char *stage)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        const bool swizzled = v->space == SPACE_MATRIX;
        const uint32_t places = v->own_stage ? 1 : p->nests[0].stages * (v->by_head && !swizzled ? p->heads : 1);
        if (swizzled && (v->offset % 1024 || v->extent[0] != WALK_TILE || v->extent[1] % WALK_TILE ||
                         v->row_bytes != WALK_SPAN_BYTES))
            return broken(p, stage, i, "a matrix that is not spans of 64 swizzled rows");
        if (v->stmt < 0 && is_shared(v) && (v->stages != places || is_loaded(p, i) == is_second(p, v)))
            return broken(p, stage, i, "a tile that the ring does not load, or loads twice");
        if (is_shared(v) && end_of(v) > p->barrier_offset)
            return broken(p, stage, i, "barriers inside of a tile");
    }
    if ((p->has_makers || p->hands) && p->made_offset + 8 * (p->nests[0].stages + p->has_makers) > p->shared_bytes)
        return broken(p, stage, p->n_ops, "no room for the barriers of what is made");
    return (p->barrier_offset % 8 == 0 && p->barrier_offset + 16 * p->nests[0].stages <= p->shared_bytes) ||
           broken(p, stage, p->n_ops, "a ring without room for its barriers");
}

bool plan_verify(const struct plan *p, const char *stage)
{
    if (!check_structure(p, stage))
        return false;
    const bool placed = p->shared_bytes > 0 || stage[0] == 'b' || stage[0] == 'r';
    if (placed && p->groups && !check_ring(p, stage))
        return false;
    if (stage[0] == 'r' && !check_loads(p, stage))
        return false;
    return !placed || (check_sync(p, stage) && check_sums(p, stage) && check_shared(p, stage));
}
