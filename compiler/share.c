/* compiler/share.c - what all threads of a thread kernel would compute alike in a loop.
 *
 * A tile without the dimension that the threads share out is the same for every thread. Where a step of a loop holds
 * several chunks (a decode step of several tokens), such tiles are most of its work: queries, weighted keys and their
 * products, for every token. So the threads share out the steps first, each does what is uniform in some of them, and
 * leaves what the others read in shared memory, the chunks of one step side by side (lower/thread_share.c). Then the
 * loop is the threads' own work alone.
 *
 * requires: place   makes: shared_out of nests, staged, row_bytes and stage_bytes of values */
#include "compiler/plan.h"
#include "compiler/plan_thread.h"

#include <string.h>

static bool is_uniform(const struct plan *p, uint32_t v)
{
    return p->values[v].space == SPACE_UNIFORM;
}

bool plan_is_shared_out(const struct plan *p, const struct nest *nest, const struct op *op)
{
    return nest->shared_out && is_uniform(p, op->v);
}

bool plan_is_uniform_sum(const struct plan *p, const struct nest *nest, const struct op *op)
{
    return plan_is_shared_out(p, nest, op) && op->kind == OP_DOT && p->values[op->v].nest < 0;
}

uint32_t plan_reads(const struct plan *p, const struct op *op, uint8_t reads[TG_MAX_READS])
{
    uint32_t n = 0;
    if (op->kind == OP_DOT || op->kind == OP_WALK) {
        reads[n++] = op->a;
        reads[n++] = op->b;
    }
    if (op->kind == OP_WALK || plan_is_decayed(p, op))
        reads[n++] = op->c;
    if (plan_is_decayed(p, op))
        reads[n++] = op->w;
    if (op->kind == OP_COPY || op->kind == OP_DECAY || op->kind == OP_SCAN || op->kind == OP_TOTAL)
        reads[n++] = op->a;
    if (op->kind != OP_MAP)
        return n;
    tg_operand list[TG_MAX_READS];
    const uint32_t count = tg_stmt_reads(&p->algorithm->body[op->stmt], list);
    for (uint32_t i = 0; i < count; i++)
        reads[n++] = (uint8_t)plan_find(p, list[i], p->values[op->v].nest);
    return n;
}

/* A step of it, whichever thread does it: a sum across the threads, or something written once, is none. */
static bool is_separable(const struct plan *p, const struct op *op)
{
    uint8_t reads[TG_MAX_READS];
    const uint32_t n = plan_reads(p, op, reads);
    const bool is_known = op->kind == OP_ZERO || op->kind == OP_COPY || op->kind == OP_INIT || op->kind == OP_MAP ||
                          op->kind == OP_DOT || op->kind == OP_WALK;
    for (uint32_t i = 0; i < n; i++)
        if (!is_uniform(p, reads[i]))
            return false;
    return is_known;
}

/* Of the threads' own operations: does each go its way alone? */
static bool is_of_one_thread(const struct op *op)
{
    return op->kind != OP_SCAN && op->kind != OP_TOTAL;
}

/* Gives the value a place in shared memory, for so many steps. */
static void stage_value(const struct plan *p, struct value *v, uint32_t steps)
{
    const uint32_t n = plan_held_count(p, v);
    v->staged = true;
    v->row_bytes = round_up(4 * n, n > 2 ? 16 : 4);
    v->stage_bytes = v->row_bytes * steps;
}

/* Marks what the threads' own work reads of the uniform tiles of the nest; false when that cannot be staged. */
static bool stage(struct plan *p, int nest, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        uint8_t reads[TG_MAX_READS];
        const uint32_t n = is_uniform(p, p->ops[i].v) ? 0 : plan_reads(p, &p->ops[i], reads);
        for (uint32_t k = 0; k < n; k++) {
            struct value *v = &p->values[reads[k]];
            if (v->space != SPACE_UNIFORM || v->nest != nest)
                continue;
            if (v->dtype == TG_F32X2)
                return false;
            stage_value(p, v, p->nests[nest].loops[0].trips);
        }
    }
    return true;
}

/* Ops [begin, end) of the plan are one operation, or a nest. */
static uint32_t unit_end(const struct plan *p, uint32_t begin)
{
    uint32_t end = begin + 1;
    if (p->ops[begin].kind == OP_NEST)
        while (p->ops[end++].kind != OP_END)
            continue;
    return end;
}

static bool is_bracket(const struct op *op)
{
    return op->kind == OP_NEST || op->kind == OP_END;
}

/* Values that operations [begin, end) write. */
static tg_bits writes_of(const struct plan *p, uint32_t begin, uint32_t end)
{
    tg_bits set = 0;
    for (uint32_t i = begin; i < end; i++)
        if (!is_bracket(&p->ops[i]))
            set |= TG_BIT(p->ops[i].v) | (p->ops[i].kind == OP_WALK ? TG_BIT(p->ops[i].w) : 0);
    return set;
}

/* The first place, up to `at`, behind everything that writes what operations [begin, end) have to do with. */
static uint32_t earliest(const struct plan *p, uint32_t at, uint32_t begin, uint32_t end)
{
    tg_bits wanted = writes_of(p, begin, end);
    uint32_t place = 0;
    for (uint32_t i = begin; i < end; i++) {
        uint8_t reads[TG_MAX_READS];
        const uint32_t n = plan_reads(p, &p->ops[i], reads);
        for (uint32_t k = 0; k < n; k++)
            wanted |= TG_BIT(reads[k]);
    }
    for (uint32_t i = 0, next; i < at; i = next) {
        next = unit_end(p, i);
        place = writes_of(p, i, next) & wanted ? next : place;
    }
    return place;
}

/* Uniform from first to last, and of nothing that `late` has. */
static bool may_go_ahead(const struct plan *p, uint32_t begin, uint32_t end, tg_bits late)
{
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &p->ops[i];
        uint8_t reads[TG_MAX_READS];
        const uint32_t n = plan_reads(p, op, reads);
        if (is_bracket(op) && p->nests[op->n].shared_out)
            continue;
        if (is_bracket(op) || !is_uniform(p, op->v) || !is_separable(p, op) || (late >> op->v & 1))
            return false;
        for (uint32_t k = 0; k < n; k++)
            if (late >> reads[k] & 1)
                return false;
    }
    return true;
}

static void move_ahead(struct plan *p, uint32_t to, uint32_t begin, uint32_t end)
{
    for (; begin < end; begin++, to++) {
        const struct op op = p->ops[begin];
        memmove(&p->ops[to + 1], &p->ops[to], (begin - to) * sizeof op);
        p->ops[to] = op;
    }
}

/* What is uniform and does not need the nest at `at` goes ahead of it: its many operands then die before the loop that
 * needs the registers. Nests among it, which need registers too, go as far ahead as they can: before the gates. */
static void go_ahead(struct plan *p, uint32_t at)
{
    tg_bits late = 0;
    for (uint32_t i = at, end; i < p->n_ops; i = end) {
        end = unit_end(p, i);
        if (i > at && may_go_ahead(p, i, end, late)) {
            const bool is_far = p->ops[i].kind == OP_NEST || p->ops[i].kind == OP_ZERO;
            move_ahead(p, is_far ? earliest(p, at, i, end) : at, i, end);
            at += end - i;
            continue;
        }
        late |= writes_of(p, i, end);
    }
}

/* Values that operations [begin, end) have to do with. */
static tg_bits touched(const struct plan *p, uint32_t begin, uint32_t end)
{
    tg_bits set = writes_of(p, begin, end);
    for (uint32_t i = begin; i < end; i++) {
        uint8_t reads[TG_MAX_READS];
        const uint32_t n = is_bracket(&p->ops[i]) ? 0 : plan_reads(p, &p->ops[i], reads);
        for (uint32_t k = 0; k < n; k++)
            set |= TG_BIT(reads[k]);
    }
    return set;
}

/* What is uniform, made before the nest and wanted behind it only, waits in shared memory: a register less for each held
 * chunk, where the loop needs them all. */
static void keep_aside(struct plan *p, uint32_t begin)
{
    struct nest *nest = &p->nests[p->ops[begin].n];
    const uint32_t end = unit_end(p, begin);
    const tg_bits waiting = writes_of(p, 0, begin) & ~touched(p, begin, end) & touched(p, end, p->n_ops);
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (!(waiting >> i & 1) || v->space != SPACE_UNIFORM || v->dtype == TG_F32X2 || plan_held_count(p, v) < 2)
            continue;
        stage_value(p, v, 1);
        nest->kept |= TG_BIT(i);
    }
}

static bool has_own_work(const struct plan *p, uint32_t begin)
{
    for (uint32_t i = begin + 1; p->ops[i].kind != OP_END; i++)
        if (!is_uniform(p, p->ops[i].v))
            return true;
    return false;
}

void plan_share_out(struct plan *p)
{
    uint32_t first = p->n_ops;
    for (uint32_t begin = 0; begin < p->n_ops; begin++) {
        if (p->ops[begin].kind != OP_NEST || !(p->held >> TG_CHUNK & 1))
            continue;
        struct nest *nest = &p->nests[p->ops[begin].n];
        bool possible = nest->n_loops == 1 && nest->loops[0].block == 1 && nest->loops[0].trips;
        uint32_t end = begin + 1;
        for (; p->ops[end].kind != OP_END; end++)
            possible &= is_uniform(p, p->ops[end].v) ? is_separable(p, &p->ops[end]) : is_of_one_thread(&p->ops[end]);
        nest->shared_out = possible && stage(p, p->ops[begin].n, begin + 1, end);
        first = nest->shared_out && begin < first ? begin : first;
    }
    if (first < p->n_ops)
        go_ahead(p, first);
    for (uint32_t begin = 0; begin < p->n_ops; begin++)
        if (p->ops[begin].kind == OP_NEST && p->nests[p->ops[begin].n].shared_out && has_own_work(p, begin))
            keep_aside(p, begin);
}
