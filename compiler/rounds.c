/* compiler/rounds.c - what the loops of a kernel without matrix products load, and how far ahead.
 *
 * A thread waits for what it loads. So a loop goes in rounds of several steps: what the thread has an element of, tiles and
 * states, is loaded for all steps of the round before the first of them. Where the nest has been shared out, all that is
 * stored goes to memory behind the last step of the round, so that no branch is between its steps; and if the number of
 * steps allows, rounds have two halves, of which one is loaded while the other is computed. What every thread has alike is
 * in the L1 cache, and is loaded in each step; but in walks over chunks, whose steps store, ahead too: it would be waited for behind each
 * store.
 *
 * Where the inner of two loops is short a round has several blocks of the outer one, of which nothing is carried to the next.
 *
 * A decode step that walks its tokens has them in shared memory (pipeline.c) and no rounds; rows that threads share out
 * are read from there where they are used.
 *
 * requires: budget   makes: steps, blocks and halves of nests, OP_LOAD, OP_AHEAD, OP_BEHIND, OP_ONCE */
#include "compiler/plan.h"
#include "compiler/plan_thread.h"

#include <string.h>

enum { LONG_STEPS_AHEAD = 8, REGISTERS_AHEAD = 128, MOST_BLOCKS = 8 };

/* Operations [begin, end) of a nest. */
struct body {
    struct nest *nest;
    uint32_t begin, end;
};

static bool is_outer(const struct body *b, const struct value *v)
{
    return b->nest->n_loops == 2 && v->outer;
}

static bool is_ahead(const struct plan *p, const struct body *b, const struct op *op)
{
    const bool walks = b->nest->loops[b->nest->n_loops - 1].dim == TG_CHUNK && !b->nest->shared_out;
    if (op->kind == OP_LOAD)
        return p->values[op->v].nest >= 0 && (p->values[op->v].space == SPACE_THREAD || walks) &&
               !is_outer(b, &p->values[op->v]);
    return op->kind == OP_INIT && !plan_is_shared_out(p, b->nest, op);
}

/* Registers of what the threads' own operations have to do with. */
static uint32_t own_registers(const struct plan *p, const struct body *b)
{
    tg_bits values = 0;
    uint32_t registers = 0;
    for (uint32_t i = b->begin; i < b->end; i++) {
        uint8_t reads[TG_MAX_READS];
        const uint32_t n = plan_is_shared_out(p, b->nest, &p->ops[i]) ? 0 : plan_reads(p, &p->ops[i], reads);
        for (uint32_t k = 0; k < n; k++)
            values |= TG_BIT(reads[k]);
        values |= n ? TG_BIT(p->ops[i].v) : 0;
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        registers += values >> i & 1 ? plan_held_count(p, &p->values[i]) : 0;
    return registers;
}

/* Registers for what is loaded of v for a step: what is summed up in fp64 becomes fp64 as soon as it is there. */
static uint32_t loaded_registers(const struct plan *p, const struct body *b, uint32_t v)
{
    bool is_summed = false;
    for (uint32_t i = b->begin; i < b->end; i++)
        is_summed |= (p->ops[i].kind == OP_TOTAL || p->ops[i].kind == OP_SCAN) && p->ops[i].a == v;
    return plan_held_count(p, &p->values[v]) * (is_summed ? 2 : 1);
}

/* As many steps as registers allow. Steps of held chunks are long. */
static uint32_t steps_ahead(const struct plan *p, const struct body *b)
{
    const struct nest *nest = b->nest;
    uint32_t registers = 0, beside = 0, ahead = PLAN_STEPS_AHEAD;
    for (uint32_t i = b->begin; i < b->end; i++)
        registers += p->ops[i].flags & OP_AHEAD ? loaded_registers(p, b, p->ops[i].v) : 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        beside += plan_held_count(p, &p->values[i]);
    const uint32_t most = nest->shared_out ? LONG_STEPS_AHEAD : beside > 64 ? 4 : PLAN_STEPS_AHEAD;
    beside = nest->shared_out ? own_registers(p, b) : beside / 2; /* half of it lives at once */
    registers *= nest->shared_out ? 2 : 1;                        /* of the half that is computed, too */
    while (ahead > 2 && ahead * registers + beside > REGISTERS_AHEAD)
        ahead /= 2;
    ahead = ahead > most ? most : ahead;
    while (nest->shared_out && ahead > 2 && nest->loops[0].trips % (2 * ahead)) /* so that halves of rounds are whole */
        ahead /= 2;
    return nest->loops[nest->n_loops - 1].block > 1 ? 1 : ahead;
}

/* The loads come first: of the outer loop, of rounds, of steps. */
static void add_loads(struct plan *p, struct body *b)
{
    const bool walks = plan_walks_tokens(p, b->nest);
    for (uint32_t order = 0; order < 3; order++)
        for (uint32_t i = 0; i < b->nest->n_loads; i++) {
            const struct value *v = &p->values[b->nest->loads[i]];
            const uint32_t own = walks ? 2 : is_outer(b, v) ? 0 : v->space == SPACE_THREAD ? 1 : 2;
            if (own != order || (walks && plan_is_shared_row(p, v)))
                continue;
            struct op op = {.kind = OP_LOAD, .stmt = -1, .v = b->nest->loads[i]};
            op.guard = (uint8_t)(order == 0 ? GUARD_FIRST : GUARD_ALWAYS);
            plan_add_op(p, OP_LOAD, -1); /* makes room */
            if (p->n_ops > PLAN_MAX_OPS)
                return;
            memmove(&p->ops[b->begin + 1], &p->ops[b->begin], (p->n_ops - 1 - b->begin) * sizeof op);
            p->ops[b->begin++] = op;
            b->end++;
        }
}

static bool is_outer_load(const struct op *op)
{
    return op->kind == OP_LOAD && op->guard == GUARD_FIRST;
}

/* Has a round several blocks of the outer loop, if there is room for them? Then what a block loads is loaded in its steps. */
static bool can_have_blocks(const struct plan *p, const struct body *b)
{
    const struct nest *nest = b->nest;
    bool can = nest->n_loops == 2 && nest->loops[1].trips && nest->loops[0].dim != TG_CHUNK &&
               !plan_is_position(nest->loops[1].dim) && !nest->shared_out;
    for (uint32_t i = b->begin; i < b->end; i++) {
        const struct op *op = &p->ops[i];
        can &= op->kind != OP_SCAN && (op->guard != GUARD_FIRST || op->kind == OP_LOAD || op->kind == OP_ZERO);
    }
    return can;
}

/* What is loaded before the round; with what a block loads, or without. */
static void mark_loads(struct plan *p, const struct body *b, bool of_blocks)
{
    uint32_t n = 0;
    for (uint32_t i = b->begin; i < b->end; i++) {
        struct op *op = &p->ops[i];
        const bool is_own =
            is_outer_load(op) ? of_blocks && p->values[op->v].space == SPACE_THREAD : is_ahead(p, b, op);
        const bool ahead = is_own && (op->kind == OP_LOAD || n < PLAN_MAX_AHEAD);
        n += ahead;
        op->flags &= (uint8_t)~OP_AHEAD;
        op->flags |= ahead ? OP_AHEAD : 0;
        op->flags |= b->nest->shared_out && op->kind == OP_STORE ? OP_BEHIND : 0;
        op->flags |= op->kind == OP_LOAD && p->values[op->v].nest < 0 ? OP_ONCE : 0;
    }
}

/* Those of a round; 0: it has less than two. */
static uint32_t blocks_ahead(struct plan *p, const struct body *b)
{
    mark_loads(p, b, true);
    const uint32_t most = steps_ahead(p, b) / b->nest->loops[1].trips, blocks = most < MOST_BLOCKS ? most : MOST_BLOCKS;
    for (uint32_t i = b->begin; blocks > 1 && i < b->end; i++)
        if (is_outer_load(&p->ops[i]))
            p->ops[i].guard = GUARD_ALWAYS;
    return blocks > 1 ? blocks : 0;
}

static void find_rounds(struct plan *p, struct body *b)
{
    struct nest *nest = b->nest;
    nest->blocks = (uint8_t)(can_have_blocks(p, b) ? blocks_ahead(p, b) : 0);
    if (nest->blocks) {
        nest->steps = (uint8_t)(nest->blocks * nest->loops[1].trips);
        return;
    }
    mark_loads(p, b, false);
    const uint32_t ahead = steps_ahead(p, b);
    nest->halves = nest->shared_out && nest->loops[0].trips % (2 * ahead) == 0;
    nest->steps = (uint8_t)(nest->halves ? 2 * ahead : ahead);
}

bool pass_rounds(struct plan *p)
{
    for (uint32_t begin = 0; begin < p->n_ops && p->n_ops <= PLAN_MAX_OPS; begin++) {
        struct body b = {&p->nests[p->ops[begin].n], begin + 1, begin + 1};
        if (p->ops[begin].kind != OP_NEST)
            continue;
        while (p->ops[b.end].kind != OP_END)
            b.end++;
        add_loads(p, &b);
        b.begin = begin + 1;
        if (p->n_ops <= PLAN_MAX_OPS && !plan_walks_tokens(p, b.nest))
            find_rounds(p, &b);
    }
    if (p->n_ops <= PLAN_MAX_OPS)
        return true;
    plan_refuse(p, "TG0507", "split the kernel into two rows", "kernel %s needs more than %d tile operations",
                p->row->name, PLAN_MAX_OPS);
    return false;
}
