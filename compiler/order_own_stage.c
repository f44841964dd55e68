/* compiler/order_own_stage.c - matrices that have a stage of their own (walk_place.c): those who walk await each right before the first
 * operation that reads it, and leave it behind the last, so that what comes before and behind hides how long it is under way. Called by
 * order.c.
 *
 * requires: all operations   makes: SYNC_LOADED, SYNC_TOLD and SYNC_LEFT of those who walk, and what the warp that loads tells them */
#include "compiler/order.h"
#include "compiler/plan_walk.h"

static bool reads(const struct plan *p, const struct op *op, uint32_t matrix)
{
    const bool looks =
        op->kind == OP_BARRIER && op->flags & OP_CAREFUL && p->values[op->v].offset == p->values[matrix].offset;
    const bool clears = op->kind == OP_CLEAR && !p->values[matrix].told;
    return op->role == ROLE_WALK && (clears || looks || order_reads_place(p, op, matrix));
}

/* Behind the operation, or the end of the product that it issues. */
static uint32_t behind(const struct plan *p, uint32_t i)
{
    uint32_t end = i + 1;
    while (p->ops[i].kind == OP_CONTRACT && !order_awaits(p, &p->ops[end - 1], p->ops[i].v))
        end++;
    return end;
}

static void put(struct plan *p, uint32_t at, enum role_kind role, enum op_kind kind, enum sync sync, uint32_t matrix)
{
    plan_insert_op(
        p, at,
        (struct op){
            .kind = (uint8_t)kind, .role = (uint8_t)role, .sync = (uint8_t)sync, .stmt = -1, .v = (uint8_t)matrix});
}

static uint32_t find(const struct plan *p, enum role_kind role, enum op_kind kind, enum sync sync, uint32_t matrix)
{
    uint32_t i = 0;
    while (i < p->n_ops &&
           !(p->ops[i].role == role && p->ops[i].kind == kind && p->ops[i].sync == sync && p->ops[i].v == matrix))
        i++;
    return i;
}

static uint32_t first_read(const struct plan *p, uint32_t matrix)
{
    uint32_t i = 0;
    while (i < p->n_ops && !reads(p, &p->ops[i], matrix))
        i++;
    return i;
}

static uint32_t behind_last_read(const struct plan *p, uint32_t matrix)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (reads(p, &p->ops[i], matrix))
            last = behind(p, i) > last ? behind(p, i) : last;
    return last;
}

/* In the middle of a step a loop that waits costs uniform registers, which would go from before to behind it: the warp that loads waits
 * there, and those who walk meet at a barrier. */
static void put_told(struct plan *p, uint32_t matrix)
{
    const uint32_t first = first_read(p, matrix), loads = find(p, ROLE_LOAD, OP_ARRIVE, SYNC_LOADED, matrix) + 1;
    if (p->shape.packed)
        put(p, first, ROLE_WALK, OP_CLEAR, SYNC_TOLD, matrix);
    put(p, first, ROLE_WALK, OP_AWAIT, SYNC_TOLD, matrix);
    put(p, loads, ROLE_LOAD, OP_ARRIVE, SYNC_TOLD, matrix);
    put(p, loads, ROLE_LOAD, OP_AWAIT, SYNC_LOADED, matrix);
}

/* Others are awaited with the stage. */
void order_own_stages(struct plan *p)
{
    for (uint32_t m = 0; m < p->n_values; m++) {
        if (!p->values[m].own_stage || p->values[m].shared_with >= 0)
            continue;
        put(p, behind_last_read(p, m), ROLE_WALK, OP_ARRIVE, SYNC_LEFT, m);
        if (p->values[m].told)
            put_told(p, m);
        else
            put(p, find(p, ROLE_WALK, OP_AWAIT, SYNC_FULL, 0) + 1, ROLE_WALK, OP_AWAIT, SYNC_LOADED, m);
    }
}
