/* compiler/early.c - what a decode step that walks its tokens makes of all of them before the walk.
 *
 * In the walk, threads with different values would make alike what is of a token alone: the factors of its gates, rows of q and k and sums
 * over them. Where maps of dqk are among it, threads make it before, each a part of dqk (lower/thread_early.c), and leave what
 * the walk reads in shared memory, in fp32. Then the walk is the state's own work alone, and keeps no rows in registers.
 *
 * requires: place; what is fetched   makes: early of nests, staged, row_bytes and stage_bytes of values */
#include "compiler/plan.h"
#include "compiler/plan_thread.h"

#include <string.h>

bool plan_is_early(const struct plan *p, const struct op *op)
{
    const int nest = p->values[op->v].nest;
    return nest >= 0 && (p->nests[nest].early >> op->v & 1) && op->kind != OP_STORE;
}

uint32_t plan_makers(const struct plan *p)
{
    uint32_t makers = 1;
    while (makers < 32 && p->block[plan_shared_dim(p)] / SHARED_OUT_GROUP % (2 * makers) == 0)
        makers *= 2;
    return makers;
}

static bool is_changed(const struct plan *p, uint32_t begin, uint32_t v)
{
    for (uint32_t i = begin + 1; p->ops[i].kind != OP_END; i++)
        if (p->ops[i].v == v && p->ops[i].kind != OP_STORE)
            return true;
    return false;
}

/* Can an operation before the walk read value v? What is of no token may be a tensor's rows, or a number. */
static bool is_readable(const struct plan *p, uint32_t begin, uint32_t v, tg_bits early)
{
    const struct value *value = &p->values[v];
    if (value->stmt >= 0 && value->nest >= 0)
        return early >> v & 1;
    if (plan_has_dim(value, p->thread_dim))
        return false;
    return value->nest >= 0 ? value->staged
                            : !is_changed(p, begin, v) && (value->stmt < 0 || !plan_has_dim(value, plan_shared_dim(p)));
}

static bool can_be_early(const struct plan *p, uint32_t begin, const struct op *op, tg_bits early)
{
    uint8_t reads[TG_MAX_READS];
    const bool is_known = op->kind == OP_ZERO || op->kind == OP_COPY || op->kind == OP_MAP || op->kind == OP_DOT;
    for (uint32_t k = 0, n = plan_reads(p, op, reads); k < n; k++)
        if (!is_readable(p, begin, reads[k], early))
            return false;
    return is_known;
}

/* Values that nothing makes but operations that can stand before the walk; no rows of pairs. */
static tg_bits find_early(const struct plan *p, uint32_t begin)
{
    tg_bits early = 0, before;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].nest == p->ops[begin].n && p->values[i].stmt >= 0 &&
            !plan_has_dim(&p->values[i], p->thread_dim) &&
            (p->values[i].dtype != TG_F32X2 || !plan_has_dim(&p->values[i], plan_shared_dim(p))))
            early |= TG_BIT(i);
    do {
        before = early;
        for (uint32_t i = begin + 1; p->ops[i].kind != OP_END; i++)
            if (p->ops[i].kind != OP_STORE && !can_be_early(p, begin, &p->ops[i], early))
                early &= ~TG_BIT(p->ops[i].v);
    } while (early != before);
    return early;
}

/* One map of a row costs the readers of one token less than a barrier more. */
static bool has_maps_of_rows(const struct plan *p, uint32_t begin, tg_bits early)
{
    uint32_t n = 0;
    for (uint32_t i = begin + 1; p->ops[i].kind != OP_END; i++)
        n += p->ops[i].kind == OP_MAP && (early >> p->ops[i].v & 1) &&
             plan_has_dim(&p->values[p->ops[i].v], plan_shared_dim(p));
    return n > (p->schedule->max_tokens == 1);
}

/* Those before the walk come first, in their order; returns how many they are. */
static uint32_t move_early(struct plan *p, uint32_t begin)
{
    struct op late[PLAN_MAX_OPS];
    uint32_t to = begin + 1, n = 0, i = to;
    for (; p->ops[i].kind != OP_END; i++)
        if (plan_is_early(p, &p->ops[i]))
            p->ops[to++] = p->ops[i];
        else
            late[n++] = p->ops[i];
    memcpy(&p->ops[to], late, n * sizeof late[0]);
    return to - begin - 1;
}

/* Does an operation of the walk read it, or store it, that is of another kind? OP_N_KINDS: any. */
static bool is_late(const struct plan *p, uint32_t begin, uint32_t v, enum op_kind other_than)
{
    for (uint32_t i = begin + 1; p->ops[i].kind != OP_END; i++) {
        uint8_t reads[TG_MAX_READS + 1];
        uint32_t count = plan_reads(p, &p->ops[i], reads);
        reads[count++] = p->ops[i].v; /* what is stored */
        for (uint32_t k = 0; k < count && !plan_is_early(p, &p->ops[i]) && p->ops[i].kind != other_than; k++)
            if (reads[k] == v)
                return true;
    }
    return false;
}

static uint32_t begin_of(const struct plan *p, uint32_t nest)
{
    uint32_t begin = 0;
    while (p->ops[begin].kind != OP_NEST || p->ops[begin].n != nest)
        begin++;
    return begin;
}

bool plan_leaves_power(const struct plan *p, uint32_t v)
{
    const int nest = p->values[v].nest;
    return nest >= 0 && (p->nests[nest].early >> v & 1) && !is_late(p, begin_of(p, (uint32_t)nest), v, OP_DECAY);
}

bool plan_is_converted(const struct plan *p, const struct value *v)
{
    return v->stage_bytes > v->row_bytes * p->schedule->max_tokens;
}

static void leave(struct plan *p, uint32_t v)
{
    struct value *value = &p->values[v];
    value->staged = true;
    value->row_bytes = tg_dtype_bytes(value->dtype == TG_F32X2 ? TG_F32X2 : TG_F32);
    for (uint32_t d = 0; d < value->n_dims; d++)
        value->row_bytes *= value->extent[d];
    value->stage_bytes = value->row_bytes * p->schedule->max_tokens;
}

/* At key positions or at query positions: they are in one place. */
static bool is_row_late(const struct plan *p, uint32_t begin, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].nest == p->values[v].nest && p->values[i].stmt < 0 &&
            TG_OPERAND_TILE(p->values[i].operand) == TG_OPERAND_TILE(p->values[v].operand) &&
            is_late(p, begin, i, OP_N_KINDS))
            return true;
    return false;
}

/* A row that nothing reads but what is made early stays as it was copied. */
static void keep_type(struct plan *p, uint32_t v)
{
    struct value *value = &p->values[v];
    value->row_bytes = value->row_bytes / tg_dtype_bytes(TG_F32) * tg_dtype_bytes(value->dtype);
    value->stage_bytes = value->row_bytes * p->schedule->max_tokens;
}

uint32_t plan_make_early(struct plan *p, uint32_t begin)
{
    const tg_bits early = find_early(p, begin);
    if (!has_maps_of_rows(p, begin, early))
        return 0;
    p->nests[p->ops[begin].n].early = early;
    for (uint32_t v = 0; v < p->n_values; v++)
        if ((early >> v & 1) && is_late(p, begin, v, OP_N_KINDS))
            leave(p, v);
        else if (p->values[v].nest == p->ops[begin].n && plan_is_converted(p, &p->values[v]) &&
                 !is_row_late(p, begin, v))
            keep_type(p, v);
    return move_early(p, begin);
}
