/* compiler/turns.c - thread blocks that add up an output (TG_CLUSTER) in memory, one after the other, instead of sending each other halves:
 * where the warp that loads stores it, for which waiting is cheap (walk_place.c). The first stores its part of a chunk, the next adds
 * its own to that. A number of each chunk says how many parts the sum has. The order is that of the grid, so whoever waits does so for
 * a thread block that has begun. The lowering is lower/walk_turns.c.
 *
 * Packed sequences end anywhere, and what lies behind is the next one's: their thread blocks are clusters, which exchange halves. */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "dsl/fields.h"

static bool is_first(const struct plan *p)
{
    return p->row == p->schedule->rows;
}

bool plan_clears_sums(const struct plan *p)
{
    return is_first(p) && !p->shape.packed && tg_schedule_adds(p->schedule);
}

/* A row before it must have cleared the numbers, of all chunks of the call. */
bool plan_may_add_in_turn(const struct plan *p)
{
    return p->adds && !is_first(p) && p->schedule->pieces <= 1;
}

uint32_t plan_sums_of_chunk(const struct plan *p)
{
    return plan_blocks(p, p->owner);
}

void plan_add_summed(tg_program *program, const struct plan *plans, uint32_t n, uint8_t index[TG_MAX_TILES])
{
    uint32_t sums = 1;
    if (!plan_clears_sums(&plans[0]))
        return;
    for (uint32_t r = 0; r < n; r++)
        sums = plans[r].in_turn && plan_sums_of_chunk(&plans[r]) > sums ? plan_sums_of_chunk(&plans[r]) : sums;
    index[TILE_SUMMED] = (uint8_t)program->n_tensors;
    program->tensors[program->n_tensors++] =
        (tg_tensor_info){.name = "summed", .dtype = TG_I32, .parts = (uint8_t)sums, .axes = {TG_CHUNK, TG_PARTS}};
}
