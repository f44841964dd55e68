/* compiler/spread.c - of kernels that make gradients of products with decays of channels (lower/spread.c): what they make anew, and what
 * lies where in their shared memory.
 *
 * requires: place */
#include "compiler/plan.h"

/* ---- maps ---- */

/* Tiles of rows in fp32 that have to be there to make the value: itself, or what it is made of. */
static uint32_t count_needed(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    const bool anew = plan_is_made_anew(p, v);
    tg_operand reads[TG_MAX_READS];
    uint32_t needed = 0;
    if (value->n_dims < 2 || value->stmt < 0)
        return 0;
    for (uint32_t k = 0, n = anew ? tg_stmt_reads(&p->algorithm->body[value->stmt], reads) : 0; k < n; k++)
        needed += count_needed(p, (uint32_t)plan_find(p, reads[k], value->nest));
    return anew ? needed : 1;
}

bool plan_is_made_anew(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    const tg_stmt *s = value->stmt < 0 ? NULL : &p->algorithm->body[value->stmt];
    tg_operand reads[TG_MAX_READS];
    uint32_t needed = 0;
    if (!s || s->op != TG_STMT_MAP || value->n_dims != 2 || (p->slice.stores >> TG_OPERAND_TILE(s->out) & 1))
        return false;
    for (uint32_t k = 0, n = tg_stmt_reads(s, reads); k < n; k++)
        needed += count_needed(p, (uint32_t)plan_find(p, reads[k], value->nest));
    return needed < 2;
}

/* ---- weights ---- */

/* Does a product take the weights where their rows are queries, or the other way round? */
static bool is_turned(const struct plan *p, uint32_t weights)
{
    bool turned = false;
    for (uint32_t i = 0; i < p->n_ops; i++)
        turned |= plan_is_spread(p, &p->ops[i]) && plan_spread_weights(p, &p->ops[i]) == weights &&
                  p->values[weights].dims[0] != p->values[p->ops[i].v].dims[0];
    return turned;
}

uint32_t plan_turned(const struct plan *p, uint32_t weights)
{
    uint32_t n = 1;
    for (uint32_t v = 0; v < weights; v++)
        n += is_turned(p, v) ? 1 : 0;
    return is_turned(p, weights) ? n : 0;
}

uint32_t plan_spread_places(const struct plan *p)
{
    uint32_t n = 1;
    for (uint32_t v = 0; v < p->n_values; v++)
        n += is_turned(p, v) ? 1 : 0;
    return n;
}

/* ---- what waits ---- */

uint32_t plan_spread_parks(const struct plan *p)
{
    const uint32_t positions = CHANNEL_WARPS * CHANNEL_ROWS, places = plan_spread_places(p);
    return plan_spread_blocks(p) + places * 4 * CHANNEL_ROWS * positions + (places - 1) * 2 * positions * positions;
}

/* Is the tile a decay of products that the kernel sums up itself? */
static bool is_summed_decay(const struct plan *p, uint32_t tile)
{
    bool is = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool decays = plan_is_spread(p, op) && (TG_OPERAND_TILE(p->values[op->c].operand) == tile ||
                                                      TG_OPERAND_TILE(p->values[op->w].operand) == tile);
        is |= decays && p->values[op->c].stmt >= 0;
    }
    return is;
}

/* Is the tile a map that is made before one of the products, and is read behind another one? */
static bool is_left(const struct plan *p, uint32_t tile)
{
    bool is_made = false, is_left = false;
    for (uint32_t i = 0, products = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool is_it = op->kind == OP_MAP && p->values[op->v].space == SPACE_CHANNEL &&
                           p->values[op->v].n_dims == 2 && TG_OPERAND_TILE(p->values[op->v].operand) == tile &&
                           !plan_is_made_anew(p, op->v);
        tg_operand reads[TG_MAX_READS];
        for (uint32_t k = 0, n = op->kind == OP_MAP ? tg_stmt_reads(&p->algorithm->body[op->stmt], reads) : 0; k < n;
             k++)
            is_left |= is_made && products > 1 && TG_OPERAND_TILE(reads[k]) == tile;
        is_made |= is_it;
        products = is_it ? 0 : products + plan_is_spread(p, op);
    }
    return is_left && !(p->slice.stores >> tile & 1);
}

static bool is_parked(const struct plan *p, uint32_t tile)
{
    return p->spreads && (is_summed_decay(p, tile) || is_left(p, tile));
}

uint32_t plan_parked(const struct plan *p, uint32_t tile)
{
    uint32_t n = 1;
    if (!is_parked(p, tile))
        return 0;
    for (uint32_t t = 1; t < tile; t++)
        n += is_parked(p, t) ? 1 : 0;
    return n;
}

uint32_t plan_spread_scratch(const struct plan *p)
{
    uint32_t parked = 0;
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++)
        parked += is_parked(p, t) ? 1 : 0;
    return plan_spread_parks(p) + parked * 4 * CHANNEL_WARPS * CHANNEL_ROWS * p->block[TG_DQK];
}
