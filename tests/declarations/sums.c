/* tests/declarations/sums.c - what stands beside the output of a random algorithm: keys divided by their norms, a state that
 * several products go into, products of gradients (with a decay of the axis that is summed, or of one that is kept, in
 * either direction), sums of rows, and sums over sequences and heads, as parameters' gradients are. */
#include "parts.h"

static uint32_t output(struct parts *p, const char *name, uint8_t axis)
{
    return tile(p, name, axis || chance(p, 20) ? DRAW(p->draw, TG_IO, TG_IO, TG_F32) : TG_F32, TG_OUT, TG_T, axis, 0);
}

/* Keys, or queries, divided by their norm. Both positions may want them. */
void add_norm(struct parts *p)
{
    const bool of_keys = chance(p, 60);
    const uint32_t of = of_keys ? p->k : p->q;
    const int shared = p->d->tensors[of].flags & TG_SHARED, position = DRAW(p->draw, TG_LQ, TG_LKV);
    const uint32_t squares = tile(p, "ss", TG_F32, shared, TG_T, 0, 0),
                   norm = tile(p, "rn", TG_F32, shared, TG_T, 0, 0);
    const uint32_t out = derived(p, of, of_keys ? "kn" : "qn1");
    p->d->tensors[out].flags = (uint8_t)shared;
    p->d->tensors[out].dtype = (uint8_t)DRAW(p->draw, TG_IO, TG_F32);
    statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                           .out = at(p, squares, position),
                           .a = at(p, of, position),
                           .b = at(p, of, position)});
    tg_stmt *map = map_to(p, norm, position);
    get(map, at(p, squares, position));
    number(map, 1);
    apply(map, TG_X_ADD);
    apply(map, TG_X_LOG2);
    number(map, chance(p, 80) ? -0.5f : -0.25f);
    apply(map, TG_X_MUL);
    apply(map, TG_X_EXP2);
    map = map_to(p, out, position);
    get(map, at(p, of, position));
    get(map, at(p, norm, position));
    apply(map, TG_X_MUL);
    *(of_keys ? &p->k : &p->q) = out;
}

/* What goes into the state as a tile: the product, and another one. */
uint32_t added_products(struct parts *p, tg_operand a, tg_operand b, int position)
{
    const uint32_t first = tile(p, "u1", TG_F32, 0, TG_CHUNK, TG_DQK, TG_DHV);
    statement(p, (tg_stmt){.op = TG_STMT_CONTRACT, .out = (tg_operand)first, .a = a, .b = b});
    if (chance(p, 20))
        return first;
    const uint32_t keys = p->k2 && chance(p, 60) ? p->k2 : p->q, values = p->v2 && chance(p, 60) ? p->v2 : p->v;
    const uint32_t both = tile(p, "u2", TG_F32, 0, TG_CHUNK, TG_DQK, TG_DHV);
    statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                           .out = (tg_operand)both,
                           .init = (tg_operand)first,
                           .a = at(p, keys, position),
                           .b = at(p, values, position)});
    return both;
}

/* From queries to keys or the other way, by a tile of positions: of `of`, which is read at the other end. */
static void add_gradient(struct parts *p, const char *name, uint32_t positions, uint32_t of, int to)
{
    const uint8_t axis = p->d->tensors[of].axes[1];
    const uint32_t out = output(p, name, axis);
    tg_stmt *product = statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                                              .out = at(p, out, to),
                                              .a = at(p, positions, TG_LQ),
                                              .b = at(p, of, to == TG_LQ ? TG_LKV : TG_LQ)});
    decay_of(p, product, p->sum && p->gate == axis);
}

/* dP and what comes of it: of queries and keys; beside them, of values by P. */
void add_gradients(struct parts *p)
{
    const uint32_t incoming = p->v2 ? p->v2 : p->v;
    const uint32_t product = tile(p, "dpr", TG_F32, 0, TG_LQ, TG_LKV, 0), masked = square(p, "dp", 12);
    tg_stmt *stmt = statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                                           .out = (tg_operand)product,
                                           .a = at(p, incoming, TG_LQ),
                                           .b = at(p, p->v, TG_LKV)});
    decay_of(p, stmt, p->sum && p->gate == TG_DHV);
    tg_stmt *map = map_to(p, masked, TG_LQ);
    get(map, (tg_operand)product);
    apply_gate(p, map);
    if (chance(p, 85))
        apply(map, chance(p, 80) ? TG_X_CAUSAL : TG_X_BEFORE);
    if (chance(p, 65))
        add_gradient(p, "dq", masked, p->k, TG_LQ);
    if (chance(p, 65))
        add_gradient(p, "dk", masked, p->q, TG_LKV);
    if (p->pairs && chance(p, 50))
        add_gradient(p, "dv", p->pairs, incoming, TG_LKV);
}

/* Sums of rows: of the output so far times something, and of pairs times a number a position. */
void add_row_products(struct parts *p)
{
    if (p->rows && chance(p, 60)) {
        const uint32_t out = output(p, "rd", 0);
        statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                               .out = at(p, out, TG_LQ),
                               .a = at(p, p->rows, TG_LQ),
                               .b = at(p, p->v2 ? p->v2 : p->v, TG_LQ)});
    }
    if (p->pairs && chance(p, 60)) {
        const int to = DRAW(p->draw, TG_LQ, TG_LKV);
        const uint32_t out = output(p, "rx", 0), by = p->gate == 0 && p->weight && chance(p, 50) ? p->weight : p->x;
        statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                               .out = at(p, out, to),
                               .a = at(p, p->pairs, TG_LQ),
                               .b = by ? at(p, by, to == TG_LQ ? TG_LKV : TG_LQ) : 0});
    }
}

/* Of every token what a parameter has of it, then the sum over chunks, sequences and heads of a group. */
void add_parameter_sums(struct parts *p)
{
    const int position = DRAW(p->draw, TG_LQ, TG_LKV);
    const uint8_t axis = (uint8_t)DRAW(p->draw, 0, 0, TG_DQK, TG_DHV);
    const uint32_t of = axis == TG_DHV ? p->v : axis == TG_DQK ? p->k : p->x ? p->x : 0;
    if (!of)
        return;
    const uint32_t own = tile(p, "po", TG_F32, 0, TG_T, axis, 0), chunk = tile(p, "pc", TG_F32, 0, TG_CHUNK, axis, 0);
    const bool by_head = chance(p, 60);
    tg_stmt *map = map_to(p, own, position);
    get(map, at(p, of, position));
    get(map, at(p, p->x && chance(p, 50) ? p->x : of, position));
    apply(map, TG_X_MUL);
    statement(p, (tg_stmt){.op = TG_STMT_TOTAL, .out = (tg_operand)chunk, .a = at(p, own, position)});
    uint32_t sum = chunk;
    if (!by_head && chance(p, 50)) {
        sum = tile(p, "pb", TG_F32, 0, axis, 0, 0);
        statement(p, (tg_stmt){.op = TG_STMT_TOTAL, .out = (tg_operand)sum, .a = (tg_operand)chunk});
    }
    const uint32_t out = tile(p, "pg", TG_F32, TG_OUT | TG_NO_BATCH | (by_head ? 0 : TG_SHARED), axis, 0, 0);
    statement(p, (tg_stmt){.op = TG_STMT_TOTAL, .out = (tg_operand)out, .a = (tg_operand)sum});
}
