/* compiler/factor.c - exponentials of differences between positions, made of a factor for each position.
 *
 * Where warpgroups have heads of their own each head has a tile 2^(a_i - c_j), 64 x 64 exponentials a chunk. With m the a of a
 * position in the middle it is 2^(a_i - m) 2^(m - c_j), 128 exponentials and a multiplication for each element. The warps that
 * load make these factors, where the vectors are: as long as none is beyond 2^60 either way, so that no product overflows or
 * is lost; they say for each head and stage whether they have, and maps are there for both. Where outputs are summed over
 * heads, what registers the second map takes costs more (bench/NOTES.md).
 *
 * Elsewhere two maps of a chunk may have the same difference, one behind the other: then the first one leaves its exponentials in
 * registers for the second.
 *
 * requires: walk's spaces and heads */
#include "compiler/plan.h"
#include "compiler/plan_walk.h"

static int tile_at(const struct plan *p, const tg_stmt *s, int i)
{
    return s->expr[i].op == TG_X_TILE ? plan_find(p, s->expr[i].operand, 0) : -1;
}

/* A pair for each position of every head, which the ring loads. */
static bool is_gate(const struct plan *p, int v, uint32_t dim)
{
    const struct value *x = v < 0 ? NULL : &p->values[v];
    return x && x->space == SPACE_VECTOR && x->stmt < 0 && x->by_head && x->dtype == TG_F32X2 && x->n_dims == 1 &&
           x->dims[0] == dim && x->extent[0] == WALK_TILE;
}

/* The next difference of two tiles in the map, from code i on, of which it has 2^; -1: none. */
static int next_difference(const tg_stmt *s, int i)
{
    for (; s->op == TG_STMT_MAP && i + 1 < (int)tg_expr_length(s); i++)
        if (i >= 2 && s->expr[i].op == TG_X_SUB && s->expr[i + 1].op == TG_X_EXP2 && s->expr[i - 1].op == TG_X_TILE &&
            s->expr[i - 2].op == TG_X_TILE)
            return i;
    return -1;
}

int plan_difference(const struct plan *p, const tg_stmt *s)
{
    int i = next_difference(s, 0);
    while (i >= 0 && !(is_gate(p, tile_at(p, s, i - 2), TG_LQ) && is_gate(p, tile_at(p, s, i - 1), TG_LKV)))
        i = next_difference(s, i + 1);
    return i;
}

static bool is_tile_of_positions(const struct plan *p, const tg_stmt *s)
{
    const uint32_t mask = tg_operand_mask(p->algorithm, s->out);
    return (mask >> TG_LQ & 1) && (mask >> TG_LKV & 1);
}

/* How often does the statement read the tile, beside the difference at `except`? */
static uint32_t other_reads(const tg_stmt *s, uint32_t tile, int except)
{
    uint32_t n = 0;
    for (int i = 0; s->op == TG_STMT_MAP && i < (int)tg_expr_length(s); i++)
        n += plan_is_tile_code(&s->expr[i], tile) && i != except - 1 && i != except - 2;
    tg_operand reads[TG_MAX_READS];
    for (uint32_t k = 0, all = s->op == TG_STMT_MAP ? 0 : tg_stmt_reads(s, reads); k < all; k++)
        n += TG_OPERAND_TILE(reads[k]) == tile;
    return n;
}

/* Nothing but such maps reads what becomes factors, and the two vectors have a place each. */
static bool are_alone(const struct plan *p)
{
    const uint32_t rows = plan_tile_of(p, p->factor_rows), columns = plan_tile_of(p, p->factor_columns);
    if (rows == columns)
        return false;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const tg_stmt *s = p->values[i].stmt < 0 ? NULL : &p->algorithm->body[p->values[i].stmt];
        if (!s)
            continue;
        const int at = is_tile_of_positions(p, s) ? plan_difference(p, s) : -1;
        if (other_reads(s, rows, at) || other_reads(s, columns, at))
            return false;
    }
    return true;
}

/* For both maps, in one of which the vectors are what they were. Where outputs are summed over heads, exponentials of four are worth
 * what is spilled for them, in walks from the end; in walks to the end, or of two heads, they are not. */
static bool has_registers(const struct plan *p)
{
    return p->own_heads || (p->sums_heads && p->heads > 2 && p->nests[0].reverse);
}

bool plan_find_difference(struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const tg_stmt *s = p->values[i].stmt < 0 ? NULL : &p->algorithm->body[p->values[i].stmt];
        const int at = s && is_tile_of_positions(p, s) ? plan_difference(p, s) : -1;
        if (at < 0)
            continue;
        p->factor_rows = (uint8_t)tile_at(p, s, at - 2);
        p->factor_columns = (uint8_t)tile_at(p, s, at - 1);
        return true;
    }
    return false;
}

void plan_find_factors(struct plan *p)
{
    p->factors = !p->ways.any && has_registers(p) && plan_find_difference(p) && are_alone(p);
}

/* ---- the same difference in two maps ---- */

int plan_exponential(const tg_stmt *s)
{
    const int i = next_difference(s, 0);
    return i < 0 ? -1 : i + 1;
}

bool plan_has_same_exponential(const struct plan *p, const struct op *a, const struct op *b)
{
    const tg_stmt *s = &p->algorithm->body[a->stmt], *t = &p->algorithm->body[b->stmt];
    const struct value *x = &p->values[a->v], *y = &p->values[b->v];
    const int i = plan_exponential(s), j = plan_exponential(t);
    return i >= 0 && j >= 0 && is_tile_of_positions(p, s) && x->n_dims == 2 && y->n_dims == 2 &&
           x->dims[0] == y->dims[0] && x->dims[1] == y->dims[1] && s->expr[i - 3].operand == t->expr[j - 3].operand &&
           s->expr[i - 2].operand == t->expr[j - 2].operand;
}

/* The map behind this one, if nothing but what is made of this one's elements stands between; where the state is rounded to shared memory
 * there are registers for more, and what a map reads of vectors is slow to come behind that. */
static struct op *next_map(struct plan *p, const struct op *op)
{
    for (struct op *next = &p->ops[op - p->ops] + 1; next < p->ops + p->n_ops && next->role == op->role; next++) {
        if (next->kind == OP_MAP)
            return next;
        if (p->rounds_state && next->kind != OP_TILES && next->kind != OP_END)
            continue;
        if (next->kind != OP_PUT && next->kind != OP_DOT && next->kind != OP_BARRIER && next->kind != OP_FENCE)
            return NULL;
    }
    return NULL;
}

void plan_share_exponentials(struct plan *p)
{
    for (struct op *op = p->ops; op < p->ops + p->n_ops && !p->factors; op++) {
        struct op *next = op->kind == OP_MAP ? next_map(p, op) : NULL;
        if (!next || !plan_has_same_exponential(p, op, next))
            continue;
        op->n = op->n ? op->n : EXPONENTIALS_KEPT;
        next->n = EXPONENTIALS_TAKEN;
    }
}

/* Accumulators of a head, and the numbers of positions that they are to be multiplied by: which sums over heads and over rows do
 * themselves, so that the value is nowhere. */
bool plan_is_weighted(const struct plan *p, const struct value *v, struct plan_weight *weight)
{
    const tg_stmt *s = v->stmt < 0 ? NULL : &p->algorithm->body[v->stmt];
    const bool is_map = s && s->op == TG_STMT_MAP && v->by_head && plan_is_owned(p, v);
    const uint32_t n = is_map ? tg_expr_length(s) : 0;
    const bool is_scaled = n == 5 && s->expr[2].op == TG_X_SCALAR && s->expr[3].op == TG_X_MUL;
    if ((n != 3 && !is_scaled) || s->expr[n - 1].op != TG_X_MUL)
        return false;
    const int of = tile_at(p, s, 0), by = tile_at(p, s, 1);
    if (of < 0 || by < 0)
        return false;
    const struct value *x = &p->values[of], *y = &p->values[by];
    *weight = (struct plan_weight){(uint32_t)of, (uint32_t)by, is_scaled ? (int)s->expr[2].operand : -1};
    return x->space == SPACE_FRAGMENT && x->by_head && x->n_dims == 2 && y->space == SPACE_VECTOR && y->stmt < 0 &&
           y->dtype == TG_F32 && y->n_dims == 1 && plan_is_position(y->dims[0]);
}

/* Sums over rows or over heads, of their own accord. */
static bool is_weighted_sum(const struct plan *p, const struct op *op)
{
    const struct value *out = &p->values[op->v];
    return (op->kind == OP_DOT && out->late && out->n_dims) || (op->kind == OP_COPY && out->summed);
}

static bool map_reads(const struct plan *p, const struct op *op, uint32_t v)
{
    tg_operand reads[TG_MAX_READS];
    bool any = false;
    for (uint32_t k = 0, n = op->stmt < 0 ? 0 : tg_stmt_reads(&p->algorithm->body[op->stmt], reads); k < n; k++)
        any |= plan_find(p, reads[k], p->values[op->v].nest) == (int)v;
    return any;
}

bool plan_find_weight(const struct plan *p, uint32_t v, struct plan_weight *weight)
{
    bool ok = p->sums_heads && plan_is_weighted(p, &p->values[v], weight);
    for (uint32_t i = 0; i < p->n_ops && ok; i++) {
        const struct op *op = &p->ops[i];
        const bool is_map = op->kind == OP_MAP;
        const bool reads = is_map ? map_reads(p, op, v) : op->kind != OP_LOAD && (op->a == v || op->b == v);
        ok = (is_map || op->v != v) && (!reads || is_weighted_sum(p, op));
    }
    return ok;
}
