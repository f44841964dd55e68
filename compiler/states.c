/* compiler/states.c - how callers keep states: in which order, of which type, in which slots.
 *
 * A state is an input or output [dqk, dhv] of a head. The class says how it lies in memory: with the values first it is
 * [dhv, dqk], and it may be of 16 bits. That is all that changes: on chip a state is fp32 and lies as its products want it,
 * and who moves it asks here for its axes and its type. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"

static bool is_matrix(const uint8_t axes[TG_MAX_AXES])
{
    const bool keys_first = axes[0] == TG_DQK && axes[1] == TG_DHV,
               values_first = axes[0] == TG_DHV && axes[1] == TG_DQK;
    return (keys_first || values_first) && axes[2] == TG_AXIS_NONE;
}

int tg_tensor_is_state(const tg_tensor *t)
{
    return (t->flags & (TG_IN | TG_OUT)) && !(t->flags & TG_NO_BATCH) && is_matrix(t->axes);
}

int tg_algorithm_has_states(const tg_algorithm *algorithm)
{
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        const tg_tensor *t = &algorithm->tensors[tile];
        if (t->flags & (TG_IN | TG_OUT) && tg_tensor_is_of_sequence(t))
            return 1;
    }
    return 0;
}

const uint8_t *plan_axes_of(const tg_tensor *tensor, const tg_shape_class *shape)
{
    static const uint8_t values_first[TG_MAX_AXES] = {TG_DHV, TG_DQK};
    return shape->values_first && tg_tensor_is_state(tensor) ? values_first : tensor->axes;
}

const uint8_t *plan_memory_axes(const struct plan *p, uint32_t tile)
{
    return plan_axes_of(&p->algorithm->tensors[tile], &p->shape);
}

uint32_t plan_axis_of(const struct plan *p, uint32_t tile, uint32_t dim)
{
    const uint8_t *axes = plan_memory_axes(p, tile);
    uint32_t axis = 0;
    while (axis < TG_MAX_AXES - 1 && axes[axis] != dim)
        axis++;
    return axis;
}

uint32_t plan_last_axis(const struct plan *p, uint32_t tile)
{
    const uint8_t *axes = plan_memory_axes(p, tile);
    uint32_t last = TG_AXIS_NONE;
    for (uint32_t axis = 0; axis < TG_MAX_AXES && axes[axis] != TG_AXIS_NONE; axis++)
        last = axes[axis];
    return last;
}

uint32_t plan_part_step(const struct plan *p, uint32_t tile)
{
    const uint32_t last = plan_last_axis(p, tile);
    return plan_is_width(last) ? plan_dim_size(p, last) : 1;
}

tg_dtype plan_dtype_of(const tg_tensor *tensor, const tg_shape_class *shape)
{
    if (shape->state && tg_tensor_is_state(tensor))
        return (tg_dtype)shape->state;
    return tensor->dtype == TG_IO ? shape->io : tensor->dtype == TG_DTYPE_NONE ? TG_F32 : (tg_dtype)tensor->dtype;
}

static tg_dtype dtype_in(const tg_tensor *tensor, const tg_shape_class *shape, bool for_heads, uint32_t parts)
{
    const tg_dtype declared = plan_dtype_of(tensor, shape);
    return declared == TG_F32 && for_heads && parts == 1 ? shape->io : declared;
}

tg_dtype plan_dtype_in(const tg_schedule *schedule, const struct tg_slices *slices, const tg_shape_class *shape,
                       uint32_t tile)
{
    return dtype_in(&schedule->algorithm->tensors[tile], shape, plan_is_for_heads(schedule, shape, tile),
                    plan_parts(schedule, slices, shape, tile));
}

tg_dtype plan_memory_dtype(const struct plan *p, uint32_t tile)
{
    return dtype_in(&p->algorithm->tensors[tile], &p->shape, p->for_heads >> tile & 1, p->parts[tile]);
}

bool plan_is_pooled(const struct plan *p, uint32_t tile)
{
    const tg_tensor *t = &p->algorithm->tensors[tile];
    const uint32_t mask = tg_operand_mask(p->algorithm, (tg_operand)tile);
    return p->shape.pooled && (t->flags & (TG_IN | TG_OUT)) && !(t->flags & TG_NO_BATCH) &&
           !(mask & (1u << TG_T | 1u << TG_CHUNK));
}

bool plan_keeps_on_the_way(const struct plan *p, uint32_t tile)
{
    return p->shape.pooled >= TG_POOL_TOKENS && plan_is_pooled(p, tile);
}

/* Does the loop over tokens or chunks, from the first to the last, leave the value as it is behind each of them? */
static bool is_walked(const struct plan *p, uint32_t v)
{
    const bool by_chunk = !p->thread_dim && p->nests[0].loops[0].dim == TG_CHUNK && !p->nests[0].reverse;
    bool inside = false, found = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        inside = p->ops[i].kind == OP_NEST || (inside && p->ops[i].kind != OP_END);
        found |= inside && p->ops[i].v == v;
    }
    return found && p->n_nests == 1 && (p->shape.pooled == TG_POOL_TOKENS ? p->by_token : by_chunk) &&
           !(p->groups && v != p->state);
}

static bool check_kept(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind != OP_STORE || !plan_keeps_on_the_way(p, op->tile) || is_walked(p, op->v))
            continue;
        plan_refuse(
            p, "TG0553", "take another schedule, or store the state behind the last token",
            "kernel %s does not walk %s one by one, or %s is made behind them, so that it does not have it behind each",
            p->row->name, p->shape.pooled == TG_POOL_TOKENS ? "tokens" : "chunks",
            p->algorithm->tensors[op->tile].name);
        return false;
    }
    return true;
}

bool plan_keep_states(struct plan *p)
{
    for (uint32_t i = 1; i < p->n_ops; i++) {
        const struct op store = p->ops[i];
        if (store.kind != OP_STORE || !plan_keeps_on_the_way(p, store.tile))
            continue;
        uint32_t to = i;
        for (; p->ops[to].kind != OP_END; to--)
            p->ops[to] = p->ops[to - 1];
        p->ops[to] = store;
        p->ops[to].guard = p->nests[p->ops[to + 1].n].n_loops > 1 ? GUARD_LAST : GUARD_ALWAYS;
    }
    return true;
}

/* A ring of copies brings rows of a matrix as they are declared, in the type of the instruction or in fp32, and from a slot
 * that there is. */
static bool is_copied_as_declared(const struct plan *p, const struct value *v)
{
    const uint32_t tile = TG_OPERAND_TILE(v->operand);
    const tg_tensor *t = &p->algorithm->tensors[tile];
    const bool is_copied = v->stmt < 0 && (v->space == SPACE_MATRIX || (v->space == SPACE_VECTOR && !p->thread_dim)),
               differs = plan_axes_of(t, &p->shape) != t->axes ||
                         (p->shape.state && tg_tensor_is_state(t) && p->shape.state != t->dtype),
               may_lack = p->shape.pooled >= TG_POOL_MOVES && plan_is_pooled(p, tile);
    return !is_copied || !(differs || may_lack);
}

bool plan_check_states(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        if (is_copied_as_declared(p, &p->values[i]))
            continue;
        plan_refuse(p, "TG0549", "keep states as they are declared, or let an earlier row copy them",
                    "kernel %s takes the state %s as an operand of a product, which must be in a slot and lie as it is "
                    "declared",
                    p->row->name, plan_tensor(p, &p->values[i])->name);
        return false;
    }
    return check_kept(p);
}
