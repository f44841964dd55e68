/* compiler/walk_place.c - of a kernel on warpgroups: where outputs lie on their way to memory, and offsets in shared memory.
 * Called by walk.c, behind which nothing more comes there.
 *
 * requires: space, by_head   makes: place, offset, stages, stage_bytes of values; offsets of barriers; shared_bytes */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "compiler/walk.h"

/* Of matrices that are on the left of products into the state. */
static tg_bits left_of_state(const struct plan *p)
{
    tg_bits left = 0;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_CONTRACT && p->ops[i].v == p->state)
            left |= TG_BIT(plan_matrix_of(p, p->ops[i].a)) | TG_BIT(plan_matrix_of(p, p->ops[i].b));
    return left;
}

/* Loaded matrices of the owner's, in whose places outputs can be put: what products have on the left before others, the last
 * one first; not those of products into the state, where outputs leave before these, nor of tiles across, which come behind the
 * outputs. Returns their number. */
static uint32_t list_places(const struct plan *p, uint8_t places[PLAN_MAX_VALUES])
{
    tg_bits later = p->sums_heads ? left_of_state(p) : 0;
    tg_bits left = 0;
    uint32_t n = 0;
    for (uint32_t i = p->n_ops; i-- > 0;) {
        const struct op *op = &p->ops[i];
        const uint32_t sides[] = {plan_matrix_of(p, op->b), plan_matrix_of(p, op->a)};
        for (uint32_t k = 0; op->kind == OP_CONTRACT && plan_is_across(p, &p->values[op->v]) && k < 2; k++)
            later |= TG_BIT(sides[k]);
    }
    for (uint32_t i = p->n_ops; i-- > 0;) {
        const struct op *op = &p->ops[i];
        const uint32_t sides[] = {plan_matrix_of(p, op->b), plan_matrix_of(p, op->a)};
        for (uint32_t k = 0; op->kind == OP_CONTRACT && k < 2; k++)
            if (plan_is_loaded(&p->values[sides[k]]) && plan_is_owned(p, &p->values[sides[k]]) &&
                !((left | later) >> sides[k] & 1)) {
                left |= TG_BIT(sides[k]);
                places[n++] = (uint8_t)sides[k];
            }
    }
    for (uint32_t i = p->n_values; i-- > 0;)
        if (plan_is_loaded(&p->values[i]) && plan_is_owned(p, &p->values[i]) && !((left | later) >> i & 1))
            places[n++] = (uint8_t)i;
    return n;
}

/* The last operation that reads the tensor where it lies: not as a left operand of the owner's, which is fetched. */
static uint32_t last_read(const struct plan *p, uint32_t matrix)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool fetched = op->kind == OP_CONTRACT && plan_is_owned(p, &p->values[op->v]);
        uint8_t reads[PLAN_MAX_OP_READS];
        for (uint32_t k = 0, n = plan_op_reads(p, op, reads); k < n && !fetched; k++)
            if (plan_is_loaded(&p->values[reads[k]]) &&
                TG_OPERAND_TILE(p->values[reads[k]].operand) == TG_OPERAND_TILE(p->values[matrix].operand))
                last = i;
    }
    return last;
}

/* The place for what a cluster adds up is the one that is free first: half of the sum is sent there as soon as it is. */
static void put_first_free_first(const struct plan *p, uint8_t places[PLAN_MAX_VALUES], uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (last_read(p, places[i]) < last_read(p, places[0])) {
            const uint8_t first = places[0];
            places[0] = places[i];
            places[i] = first;
        }
}

/* Where each of the outputs is put on its way to memory: a place that no other takes, or a buffer of its own. All are put there
 * behind the last read of what is loaded (order.c) by the group that puts: another that has the same rows may still read. */
static void find_places(struct plan *p)
{
    uint8_t places[PLAN_MAX_VALUES];
    const uint32_t n = p->apart || p->shares_columns ? 0 : list_places(p, places);
    bool taken[TG_MAX_TILES] = {false}; /* a tensor read at query and at key positions is one tile */
    if (p->adds)
        put_first_free_first(p, places, n);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        uint32_t k = p->adds && !plan_is_added_up(p, op->tile) ? 1 : 0;
        if (!plan_is_mapped_store(p, op))
            continue;
        if (plan_is_across(p, &p->values[op->v])) {
            p->values[op->v].place = op->v;
            continue;
        }
        while (k < n && taken[TG_OPERAND_TILE(p->values[places[k]].operand)])
            k++;
        p->values[op->v].place = k < n ? places[k] : op->v;
        p->values[op->v].stage_bytes = 0; /* it may have had a buffer, as it was tried before */
        if (k < n)
            taken[TG_OPERAND_TILE(p->values[places[k]].operand)] = true;
    }
}

/* Vectors of several heads have a place each in a stage, matrices are one behind the other as if they were wider. */
static void place_ring(struct plan *p, uint32_t i, uint32_t *offset)
{
    struct value *v = &p->values[i];
    const bool matrix = plan_is_loaded(v);
    v->dtype = plan_memory_dtype(p, TG_OPERAND_TILE(v->operand));
    v->row_bytes = matrix ? WALK_SPAN_BYTES : 0;
    v->stage_bytes =
        round_up(tg_dtype_bytes(v->dtype) * (v->n_dims ? v->extent[0] : 1) * (matrix ? v->extent[1] : 1), 16);
    v->stages = (uint8_t)(v->own_stage ? 1 : p->nests[v->nest].stages);
    if (v->by_head && matrix)
        v->stage_bytes *= p->heads;
    else if (v->by_head)
        v->stages = (uint8_t)(v->stages * p->heads);
    if (plan_share_tile(p, i)) {
        v->offset = p->values[v->shared_with].offset;
        return;
    }
    v->offset = *offset;
    *offset += v->stage_bytes * v->stages;
    p->nests[v->nest].loads[p->nests[v->nest].n_loads++] = (uint8_t)i;
}

static void place_buffers(struct value *v, uint32_t bytes, uint32_t n, uint32_t *offset)
{
    v->row_bytes = WALK_SPAN_BYTES;
    v->stage_bytes = bytes;
    v->stages = (uint8_t)n;
    v->offset = *offset;
    *offset += bytes * v->stages;
}

/* In the place of a loaded matrix, or beside it, a stage each. */
static void place_rows(struct plan *p, struct value *v, uint32_t *offset)
{
    const struct value *place = &p->values[v->place];
    if (place == v) {
        place_buffers(v, v->extent[1] * WALK_SPAN_BYTES, p->nests[0].stages, offset);
        return;
    }
    uint32_t there = place->offset;
    place_buffers(v, place->stage_bytes, place->stages, &there);
}

/* Computed tiles have two buffers, the last `single` of them one. */
static void place_made_tiles(struct plan *p, uint32_t single, uint32_t *offset)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        left += plan_is_made_tile(&p->values[i]) && !plan_is_made_of_rows(&p->values[i]);
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (plan_is_made_of_rows(v))
            place_rows(p, v, offset);
        else if (plan_is_made_tile(v))
            place_buffers(v, WALK_TILE * WALK_SPAN_BYTES,
                          p->has_makers
                              ? p->nests[0].stages
                              : (left-- > single ? plan_buffers(p) : 1) * (v->by_head && !v->summed ? p->heads : 1),
                          offset);
    }
}

/* The warp that loads knows of a step what those know who walk, where a thread block has one sequence that is not packed; and by tiles of
 * one output, or of several where thread blocks add up in turn. Of a ring of two: of a longer one a stage is left late, which is faster where memory is the limit. */
static bool can_hand(const struct plan *p)
{
    uint32_t stores = 0;
    bool in_place = true;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (plan_is_mapped_store(p, &p->ops[i])) {
            stores++;
            in_place &= p->values[p->ops[i].v].place != p->ops[i].v;
        }
    return (stores == 1 || plan_may_add_in_turn(p)) && in_place && p->nests[0].stages == 2 && p->tiles == 1 &&
           !p->has_makers && !p->shape.packed && !plan_shares(p) && !p->rests && !p->carries;
}

/* Is the tensor read by more than products of positions and the first product by the state, which are behind when sums over the state's
 * columns are made? */
static bool is_read_later(const struct plan *p, uint32_t tile)
{
    bool is_behind = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool is_product = op->kind == OP_CONTRACT,
                   is_by_state = is_product && op->v != p->state && (op->a == p->state || op->b == p->state),
                   is_early = is_product && (!plan_is_owned(p, &p->values[op->v]) || (is_by_state && !is_behind));
        is_behind |= is_by_state;
        uint8_t reads[PLAN_MAX_OP_READS];
        const uint32_t n = plan_op_reads(p, op, reads);
        for (uint32_t k = 0; !is_early && p->values[op->v].space != SPACE_OPERAND && k < n; k++) {
            const struct value *v = &p->values[is_product ? plan_matrix_of(p, reads[k]) : reads[k]];
            if (plan_is_loaded(v) && TG_OPERAND_TILE(v->operand) == tile)
                return true;
        }
    }
    return false;
}

/* What groups that share the state's columns leave for each other: in the place of a loaded matrix that nobody reads any more. */
static void place_sums(struct plan *p, uint32_t *offset)
{
    const uint32_t bytes = 4 * WALK_TILE * WALK_TILE * p->groups;
    p->sums_in = -1;
    for (uint32_t i = 0; i < p->n_values && p->shares_columns; i++)
        if (plan_is_loaded(&p->values[i]) && p->values[i].stage_bytes >= bytes &&
            !is_read_later(p, TG_OPERAND_TILE(p->values[i].operand)))
            p->sums_in = (int)i;
    p->sums_offset = *offset;
    *offset += p->shares_columns && p->sums_in < 0 ? bytes : 0;
}

/* Matrices and tiles at multiples of 1024 bytes, as the swizzle wants them; then vectors; then barriers. */
static void place_all(struct plan *p, uint32_t single)
{
    uint32_t offset = 0;
    p->nests[0].n_loads = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_loaded(&p->values[i]))
            place_ring(p, i, &offset);
    place_made_tiles(p, single, &offset);
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (plan_is_mapped_store(p, &p->ops[i]) && p->values[p->ops[i].v].place == p->ops[i].v &&
            !plan_is_across(p, &p->values[p->ops[i].v]))
            place_buffers(&p->values[p->ops[i].v], plan_heads_in_rows(p) * p->block[p->owner] * WALK_SPAN_BYTES, 1,
                          &offset);
    place_sums(p, &offset);
    if (p->rounds_state)
        place_buffers(&p->values[p->state], plan_state_columns(p) / WALK_TILE * plan_rounded_span(p), 1, &offset);
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_VECTOR && p->values[i].stmt < 0)
            place_ring(p, i, &offset);
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (plan_is_gathered(v)) /* two elements from each thread */
            place_buffers(v, 8 * 128 * p->groups, 2, &offset);
        else if (v->space == SPACE_PARTS)
            place_buffers(v, 4 * plan_sum_parts(p, v) * (v->n_dims ? v->extent[0] : 1),
                          plan_part_buffers(p, v) * (v->by_head ? p->heads : 1), &offset);
        if (plan_is_carried(v))
            place_buffers(v, 4 * v->extent[0], 2 * p->groups, &offset);
        if (plan_is_of_warp(v))
            place_buffers(v, 4 * v->extent[0], 4 * p->groups, &offset);
    }
    p->barrier_offset = round_up(offset, 16);
    p->shared_bytes = p->barrier_offset + 16u * (p->nests[0].stages + plan_cluster_sums(p, 0) * p->groups) +
                      (plan_shares(p) ? 8u * p->nests[0].stages : 0);
    p->own_offset = p->shared_bytes;
    p->shared_bytes += 16u * p->own_stages;
    p->rest_offset = p->shared_bytes;
    p->shared_bytes += p->rests ? 4u * p->nests[0].stages : 0;
    p->factors_offset = p->shared_bytes;
    p->shared_bytes += p->factors || p->ways.any ? 4u * p->nests[0].stages * p->heads : 0;
    p->ways.landed_offset = round_up(p->shared_bytes, 16);
    if (p->ways.any)
        p->shared_bytes = p->ways.landed_offset + 8u * p->nests[0].stages * p->ways.scales;
    p->ways.offset = p->shared_bytes;
    if (p->ways.any && (!p->ways.scales || p->ways.undoes))
        p->shared_bytes += 4u * WALK_TILE * p->heads * p->nests[0].stages;
    p->made_offset = round_up(p->shared_bytes, 8);
    p->hands = can_hand(p);
    p->in_turn = p->hands && plan_may_add_in_turn(p);
    if (p->has_makers || p->hands)
        p->shared_bytes = p->made_offset + 8u * (p->nests[0].stages + p->has_makers);
}

enum { MOST_STAGES = 3 };

/* Rows of one group: two keep a multiprocessor busy meanwhile. Who adds up in a cluster does so in the place, and several heads have
 * too much of it. */
static bool can_be_apart(const struct plan *p)
{
    bool stores = false;
    for (uint32_t i = 0; i < p->n_ops; i++)
        stores |= plan_is_mapped_store(p, &p->ops[i]);
    return stores && plan_row_groups(p) == 1 && !p->has_makers && !p->cluster && p->heads == 1;
}

static void place_as(struct plan *p, uint32_t stages, bool apart)
{
    p->nests[0].stages = stages;
    p->apart = apart;
    find_places(p);
    place_all(p, 0);
}

/* With outputs in their places a stage is left in the step after its own, when the stores that read it have (order.c): of two, none
 * would be filled until then. So rows that do not say take three, and outputs go to buffers of their own, where there is room beside two
 * buffers of each tile and no thread block of the multiprocessor goes. */
static bool place_roomy(struct plan *p)
{
    const uint32_t fewest = p->nests[0].stages;
    place_as(p, fewest, false);
    const uint32_t resident = walk_resident(p);
    for (uint32_t stages = p->row->stages ? fewest : MOST_STAGES; stages >= fewest; stages--)
        for (int apart = can_be_apart(p); apart >= 0; apart--) {
            place_as(p, stages, apart);
            if (p->shared_bytes <= p->target->shared_optin && walk_resident(p) >= resident)
                return true;
        }
    return false;
}

/* Where the rounded state takes the room of a second stage, matrices that are no left operands have one, and barriers of their own: as
 * many as must. */
static void place_with_own_stages(struct plan *p)
{
    if (!p->rounds_state)
        return;
    for (uint32_t i = p->n_values; p->shared_bytes > p->target->shared_optin && i-- > 0;) {
        struct value *v = &p->values[i];
        if (!plan_is_loaded(v) || plan_is_owned(p, v) || v->shared_with >= 0)
            continue;
        v->own_stage = (uint8_t)++p->own_stages;
        v->told = plan_is_right_of_state(p, i);
        for (uint32_t k = 0; k < p->n_values; k++)
            if (p->values[k].shared_with == (int)i) {
                p->values[k].own_stage = v->own_stage;
                v->told |= plan_is_right_of_state(p, k);
            }
        place_all(p, 2);
    }
}

/* A tile with one buffer costs a barrier in every chunk (order.c): where there is no room for two. Tiles of several heads
 * have two each. */
void walk_place_shared(struct plan *p)
{
    uint32_t tiles = 0;
    if (place_roomy(p))
        return;
    for (uint32_t i = 0; i < p->n_values; i++)
        tiles += p->heads == 1 && plan_is_made_tile(&p->values[i]);
    for (uint32_t single = 1; single <= tiles && p->shared_bytes > p->target->shared_optin; single++)
        place_all(p, single);
    place_with_own_stages(p);
}
