/* compiler/relay.c - walks whose thread blocks go on with what the one before has left (tegula.h): which cannot, and where states and
 * what says that they are there lie in memory. The lowering is lower/walk_relay.c. */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "dsl/fields.h"

bool plan_clears_turns(const struct plan *p)
{
    return p->row == p->schedule->rows && tg_schedule_relays(p->schedule);
}

uint32_t plan_relayed(const struct plan *p)
{
    return p->tiles * plan_heads_in_columns(p) * plan_state_columns(p) / 2;
}

/* Of a head so many for each of its thread blocks: of one with several heads it has a part. */
static uint32_t of_head(const struct plan *p, uint32_t of_block)
{
    uint8_t dims[TG_N_DIMS];
    uint32_t blocks = 1;
    for (uint32_t i = 0, n = plan_grid_dims(p, dims); i < n; i++)
        blocks *= plan_blocks(p, dims[i]) ? plan_blocks(p, dims[i]) : 1;
    return (blocks * of_block + p->heads - 1) / p->heads;
}

/* Of the state's size so many times. */
static uint32_t states_of(const struct plan *p)
{
    const uint32_t whole = p->shape.dqk * p->shape.dhv;
    return (of_head(p, 128 * p->groups * plan_relayed(p)) + whole - 1) / whole;
}

bool plan_check_relay(const struct plan *p)
{
    if (!p->relays)
        return true;
    const uint32_t states = states_of(p), turns = of_head(p, 4 * p->groups);
    if (p->finals_only)
        plan_refuse(p, "TG0559", "leave seg out", "kernel %s makes final states alone, which are not relayed",
                    p->row->name);
    else if (states > UINT8_MAX || turns > UINT8_MAX)
        plan_refuse(p, "TG0559", "leave seg out, or use larger blocks",
                    "kernel %s relays states of %u warps a head, and %u times what these are; at most %d of either",
                    p->row->name, turns, states, UINT8_MAX);
    else
        return true;
    return false;
}

static void add(tg_program *program, uint8_t index[TG_MAX_TILES], uint32_t tile, const tg_tensor_info *tensor)
{
    index[tile] = (uint8_t)program->n_tensors;
    program->tensors[program->n_tensors++] = *tensor;
}

void plan_add_relay(tg_program *program, const struct plan *plans, uint32_t n, uint8_t index[TG_MAX_TILES])
{
    uint32_t states = 0, turns = 0;
    for (uint32_t r = 0; r < n; r++) {
        const struct plan *p = &plans[r];
        const uint32_t parts = p->relays ? states_of(p) : 0, warps = p->relays ? of_head(p, 4 * p->groups) : 0;
        states = parts > states ? parts : states;
        turns = warps > turns ? warps : turns;
    }
    if (!turns)
        return;
    add(program, index, TILE_RELAY,
        &(tg_tensor_info){
            .name = "relayed", .dtype = TG_F32, .parts = (uint8_t)states, .axes = {TG_DQK, TG_DHV, TG_PARTS}});
    add(program, index, TILE_TURN,
        &(tg_tensor_info){.name = "turns", .dtype = TG_I32, .parts = (uint8_t)turns, .axes = {TG_PARTS}});
}
