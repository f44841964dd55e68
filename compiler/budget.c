/* compiler/budget.c - does the kernel fit: shared memory, registers, threads.
 *
 * requires: pipeline   makes: registers */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_channel.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"

/* Addresses, counters and predicates, as ptxas 13.0 reports for our kernels beyond the tiles: a tile of
 * 128 x 128 with its 128 x 32 weights must fit in 255 when one loop feeds it and must not when two do. */
enum { REGISTERS_BASE = 60, REGISTERS_SECOND_LOOP = 24 };
/* The same where a chunk is inverted: one loop, whose addresses are gone when the inverse is made. */
enum { REGISTERS_BESIDE_INVERSE = 36 };
/* Where lanes have one block of channels after another, what they have of one beside the sums of all. */
enum { REGISTERS_OF_BLOCKS = 40 };
/* Where warps share the columns of a state: what of a sum is on its way. */
enum { REGISTERS_OF_SUMS = 16 };
/* The same beside a state that threads share. */
enum { REGISTERS_BESIDE_STATE = 36 };

static uint32_t fragment_registers(const struct plan *p, const struct value *v)
{
    const uint32_t rows = v->extent[0] / p->warps_m / 16;
    uint32_t all = plan_fragment_elements(p, v);
    for (uint32_t block = 0; block < rows * v->extent[1] / 16; block++)
        all -= plan_is_above(p, v, block / (v->extent[1] / 16), block % (v->extent[1] / 16)) ? 8 : 0;
    /* read from memory 16 rows at a time; in a loop also what is on its way for the next step */
    return !v->direct ? all : v->nest >= 0 ? 2 * all / rows : all / rows;
}

static bool has_value(const struct op *op)
{
    return op->kind != OP_NEST && op->kind != OP_END && op->kind != OP_COMMIT && op->kind != OP_WAIT &&
           op->kind != OP_BARRIER && op->kind != OP_PROLOGUE && op->kind != OP_ISSUE;
}

static uint32_t fragment_last_use(const struct plan *p, uint32_t v)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        bool uses = op->v == v && has_value(op);
        uses |= ((op->kind == OP_CONTRACT || op->kind == OP_DOT) && (op->a == v || op->b == v)) ||
                ((op->kind == OP_COPY || op->kind == OP_SOLVE) && op->a == v);
        if (op->kind == OP_MAP) {
            tg_operand reads[TG_MAX_READS];
            const uint32_t n = tg_stmt_reads(&p->algorithm->body[op->stmt], reads);
            for (uint32_t k = 0; k < n; k++)
                uses |= plan_find(p, reads[k], p->values[op->v].nest) == (int)v;
        }
        if (uses)
            last = i;
    }
    return last;
}

static uint32_t first_definition(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].v == v && has_value(&p->ops[i]))
            return p->ops[i].when == WHEN_BEFORE ? 0 : i;
    return p->n_ops;
}

/* Most fragment registers alive at once; a tile made and consumed by one operation shares its registers
 * with the operand that dies there. */
static uint32_t live_fragments(const struct plan *p, uint32_t *worst)
{
    uint32_t most = 0, n = 0, begin[PLAN_MAX_VALUES], end[PLAN_MAX_VALUES], registers[PLAN_MAX_VALUES];
    for (uint32_t i = 0; i < p->n_values; i++) {
        if (p->values[i].space != SPACE_FRAGMENT)
            continue;
        begin[n] = first_definition(p, i);
        end[n] = fragment_last_use(p, i);
        registers[n++] = fragment_registers(p, &p->values[i]);
    }
    for (uint32_t at = 0; at < p->n_ops; at++) {
        uint32_t live = 0;
        for (uint32_t i = 0; i < n; i++)
            live += begin[i] <= at && at < end[i] ? registers[i] : 0;
        if (live > most) {
            most = live;
            *worst = at;
        }
    }
    return most;
}

static uint32_t operand_registers(const struct plan *p)
{
    const uint32_t words = p->shape.io == TG_F32 ? 4 : 1; /* 3xTF32 splits every element into two */
    uint32_t rows = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_FRAGMENT && p->values[i].extent[0] / p->warps_m / 16 > rows)
            rows = p->values[i].extent[0] / p->warps_m / 16;
    return rows * 4 * words + 4 * words;
}

static bool check_registers(struct plan *p)
{
    uint32_t worst = 0;
    const uint32_t live = live_fragments(p, &worst);
    p->registers = live + operand_registers(p) + (p->to_and_fro ? REGISTERS_BESIDE_INVERSE : REGISTERS_BASE) +
                   (plan_has_blocks(p) ? REGISTERS_OF_BLOCKS : 0) + (p->shares_columns ? REGISTERS_OF_SUMS : 0);
    for (uint32_t n = 0; n < p->n_nests; n++)
        if (p->nests[n].n_loops == 2 && p->nests[n].loops[0].dim != TG_CHUNK) {
            p->registers += REGISTERS_SECOND_LOOP;
            break;
        }
    const uint32_t resident = p->row->blocks_per_sm ? p->row->blocks_per_sm : 1;
    uint32_t limit = p->target->registers_per_sm / (p->threads * resident) / 8 * 8;
    if (limit > 255)
        limit = 255;
    if (p->registers <= limit)
        return true;
    const struct value *v = &p->values[p->ops[worst].v];
    plan_refuse(
        p, "TG0530", "use smaller blocks or more warps",
        "kernel %s: %s %u x %s %u fp32 accumulators and what is alive beside them need %u registers a thread; at most %u",
        p->row->name, v->n_dims ? tg_dim_name(v->dims[0]) : "", v->extent[0],
        v->n_dims > 1 ? tg_dim_name(v->dims[1]) : "", v->extent[1], p->registers, limit);
    return false;
}

/* What threads that share out dqk have of it. */
static bool check_held(struct plan *p)
{
    p->registers = REGISTERS_BESIDE_STATE;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_has_dim(&p->values[i], plan_shared_dim(p)) && !plan_is_shared_row(p, &p->values[i]) &&
            !(p->values[i].nest >= 0 && p->nests[p->values[i].nest].early >> i & 1))
            p->registers += plan_held_count(p, &p->values[i]);
    const uint32_t resident = p->row->blocks_per_sm ? p->row->blocks_per_sm : 1;
    const uint32_t room = p->target->registers_per_sm / (p->threads * resident) / 8 * 8,
                   limit = room < 255 ? room : 255;
    if (p->registers <= limit)
        return true;
    plan_refuse(p, "TG0530", "give dhv a smaller block, so that more threads share out dqk",
                "kernel %s: %u threads share out %u of dqk, each with %u values, and need %u registers; at most %u",
                p->row->name, p->sharers, plan_dim_size(p, plan_shared_dim(p)), p->each, p->registers, limit);
    return false;
}

uint32_t plan_shared_limit(const struct plan *p)
{
    const uint32_t resident = p->row->blocks_per_sm ? p->row->blocks_per_sm : 1,
                   share = p->target->shared_per_sm / resident - PLAN_SHARED_OF_DRIVER;
    return resident > 1 && share < p->target->shared_optin ? share : p->target->shared_optin;
}

bool pass_budget(struct plan *p)
{
    bool ok = true;
    const uint32_t limit = plan_shared_limit(p);
    if (p->shared_bytes > limit) {
        plan_refuse(p, "TG0531", "use smaller blocks or fewer stages",
                    "kernel %s needs %u bytes of shared memory; at most %u%s", p->row->name, p->shared_bytes, limit,
                    p->row->blocks_per_sm > 1 ? " with that many blocks a multiprocessor" : "");
        ok = false;
    }
    if (plan_chunks_together(p) > 1 && p->shared_bytes) {
        plan_refuse(p, "TG0531", "use TG_P(1) for the chunk",
                    "kernel %s has %u chunks, a warp each, and needs shared memory, which would be that of all of them",
                    p->row->name, plan_chunks_together(p));
        ok = false;
    }
    if (p->row->mma != TG_MMA_NONE)
        ok = check_registers(p) && ok;
    else if (p->sharers)
        ok = check_held(p) && ok;
    return ok;
}
