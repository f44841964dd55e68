/* tests/declarations/algorithm.c - random algorithms: gates, scaled keys and values, a state, what is read from it, pairs
 * of positions, on chip or in memory, inverses of them, and sums beside them. Each part may be there or not and takes its
 * operands from what is there. */
#include "declare.h"

#include <string.h>

#include "dsl/slice.h"

/* What has been declared so far; 0: it is not there. */
struct parts {
    struct draw *draw;
    struct declaration *d;
    uint32_t q, k, v, k2, v2, x, s0; /* inputs */
    uint32_t decay, sum, total, weight,
        arrival;            /* of the gate: log decay, its running sum, that of the chunk, 2^ of them */
    uint8_t gate;           /* the gate's axis beside TG_T: TG_DQK, TG_DHV; 0: one a token */
    uint32_t state, vector; /* carried */
    uint32_t inverse;       /* of I + keys by keys below the diagonal */
    uint32_t written;       /* the values that go into the state: v, or the inverse times something */
    uint32_t pairs;         /* weights of positions by positions */
    uint32_t rows;          /* {TG_T, TG_DHV}: the output so far */
};

static bool chance(struct parts *p, uint32_t percent)
{
    return draw_chance(p->draw, percent);
}

/* ---- tensors and statements ---- */

static uint32_t tile(struct parts *p, const char *name, int dtype, int flags, uint8_t a, uint8_t b, uint8_t c)
{
    tg_algorithm *algorithm = &p->d->algorithm;
    const uint32_t number = algorithm->n_tensors++;
    snprintf(p->d->names[number], sizeof p->d->names[number], "%s", name);
    p->d->tensors[number] = (tg_tensor){p->d->names[number], (uint8_t)dtype, (uint8_t)flags, {a, b, c}};
    return number;
}

static tg_stmt *statement(struct parts *p, tg_stmt stmt)
{
    tg_stmt *added = &p->d->body[p->d->algorithm.n_body++];
    *added = stmt;
    added->file = "declaration";
    added->line = (int)p->d->algorithm.n_body;
    return added;
}

static bool has_axis(const struct parts *p, uint32_t number, uint8_t axis)
{
    return memchr(p->d->tensors[number].axes, axis, TG_MAX_AXES) != NULL;
}

/* The tile as an operand, at a position if it has tokens. */
static tg_operand at(const struct parts *p, uint32_t number, int position)
{
    return has_axis(p, number, TG_T) ? (tg_operand)(number | (uint32_t)position << 8) : (tg_operand)number;
}

static void code(tg_stmt *map, tg_x x)
{
    map->expr[tg_expr_length(map)] = x;
}

static void get(tg_stmt *map, tg_operand operand)
{
    code(map, (tg_x){TG_X_TILE, 0, operand, 0});
}

static void apply(tg_stmt *map, tg_x_op op)
{
    code(map, (tg_x){(uint8_t)op, 0, 0, 0});
}

static void number(tg_stmt *map, float value)
{
    code(map, (tg_x){TG_X_NUMBER, 0, 0, value});
}

static tg_stmt *map_to(struct parts *p, uint32_t out, int position)
{
    return statement(p, (tg_stmt){.op = TG_STMT_MAP, .out = at(p, out, position)});
}

/* A tile like `like`, with its name and a letter. */
static uint32_t derived(struct parts *p, uint32_t like, const char *name)
{
    const tg_tensor *t = &p->d->tensors[like];
    return tile(p, name, TG_F32, t->flags & (TG_SHARED | TG_NO_BATCH), t->axes[0], t->axes[1], t->axes[2]);
}

/* ---- parts ---- */

static void add_inputs(struct parts *p)
{
    const int shared = chance(p, 45) ? TG_SHARED : 0, given = TG_IN;
    tile(p, "", 0, 0, 0, 0, 0); /* none */
    p->d->tensors[0].name = NULL;
    p->q = tile(p, "q", TG_IO, given | shared, TG_T, TG_DQK, 0);
    p->k = tile(p, "k", TG_IO, given | shared, TG_T, TG_DQK, 0);
    p->v = tile(p, "v", TG_IO, given, TG_T, TG_DHV, 0);
    p->k2 = chance(p, 25) ? tile(p, "k2", DRAW(p->draw, TG_IO, TG_F32), given, TG_T, TG_DQK, 0) : 0;
    p->v2 = chance(p, 25) ? tile(p, "v2", DRAW(p->draw, TG_IO, TG_F32), given, TG_T, TG_DHV, 0) : 0;
    p->x = chance(p, 40) ? tile(p, "x", TG_F32, given, TG_T, 0, 0) : 0;
    p->s0 = chance(p, 40) ? tile(p, "S0", TG_F32, given | (chance(p, 50) ? TG_OPTIONAL : 0), TG_DQK, TG_DHV, 0) : 0;
}

/* Log decays of a sixteenth, so that a chunk forgets much and overflows nothing. */
static void add_gate(struct parts *p)
{
    const int position = DRAW(p->draw, TG_LQ, TG_LKV, TG_LKV);
    const uint8_t axis = p->gate = (uint8_t)DRAW(p->draw, 0, 0, 0, TG_DQK, TG_DHV);
    const int exact = axis && chance(p, 90) ? TG_F32 : DRAW(p->draw, TG_F32, TG_F32X2); /* a product's is of fp32 */
    const uint32_t gx = tile(p, "gx", axis ? DRAW(p->draw, TG_IO, TG_F32) : TG_F32, TG_IN, TG_T, axis, 0);
    p->decay = tile(p, "la", TG_F32, 0, TG_T, axis, 0);
    p->sum = tile(p, "b", exact, 0, TG_T, axis, 0);
    p->total = tile(p, "g", exact, 0, TG_CHUNK, axis, 0);
    tg_stmt *map = map_to(p, p->decay, position);
    get(map, at(p, gx, position));
    apply(map, TG_X_LOGSIG2);
    number(map, 0.0625f);
    apply(map, TG_X_MUL);
    statement(p, (tg_stmt){.op = TG_STMT_SCAN,
                           .flags = chance(p, 15) ? TG_EXCLUSIVE : 0,
                           .out = at(p, p->sum, position),
                           .a = at(p, p->decay, position)});
    statement(p, (tg_stmt){.op = TG_STMT_TOTAL, .out = at(p, p->total, 0), .a = at(p, p->decay, position)});
    p->weight = tile(p, "w", TG_F32, 0, TG_T, axis, 0);
    map = map_to(p, p->weight, position);
    get(map, at(p, p->total, 0));
    get(map, at(p, p->sum, position));
    apply(map, TG_X_SUB);
    apply(map, TG_X_EXP2);
    p->arrival = tile(p, "wi", TG_F32, 0, TG_T, axis, 0);
    map = map_to(p, p->arrival, position);
    get(map, at(p, p->sum, position));
    apply(map, TG_X_EXP2);
}

/* Is every axis of the one an axis of the other, so that it can be a factor? */
static bool is_factor(const struct parts *p, uint32_t factor, uint32_t of)
{
    const tg_tensor *f = &p->d->tensors[factor], *t = &p->d->tensors[of];
    for (int i = 0; i < TG_MAX_AXES; i++)
        if (f->axes[i] && !memchr(t->axes, f->axes[i], TG_MAX_AXES))
            return false;
    return factor != 0;
}

/* One of `of`, times what there is. */
static uint32_t scaled(struct parts *p, uint32_t of, const char *name, int position, uint32_t usual)
{
    const uint32_t others[] = {usual, p->x, p->k2, p->v2};
    uint32_t factor = chance(p, 65) ? usual : others[draw_below(p->draw, 4)];
    if (!factor && chance(p, 70))
        return of;
    const uint32_t out = derived(p, of, name);
    p->d->tensors[out].flags = 0;
    tg_stmt *map = map_to(p, out, position);
    get(map, at(p, of, position));
    if (is_factor(p, factor, of)) {
        get(map, at(p, factor, position));
        if (chance(p, 15) && factor != usual)
            apply(map, TG_X_SIGMOID);
    } else {
        number(map, 0.5f);
    }
    apply(map, TG_X_MUL);
    return out;
}

/* Positions x positions: on chip, or in memory. */
static uint32_t square(struct parts *p, const char *name, uint32_t in_memory)
{
    const bool stays = !chance(p, in_memory);
    return tile(p, name, stays ? TG_F32 : DRAW(p->draw, TG_IO, TG_IO, TG_F32), 0, stays ? TG_LQ : TG_T, TG_LKV, 0);
}

/* Times what the gate leaves of the key at the query. */
static void apply_gate(struct parts *p, tg_stmt *map)
{
    if (!p->sum || p->gate != 0 || !chance(p, 80))
        return;
    get(map, at(p, p->sum, TG_LQ));
    get(map, at(p, p->sum, TG_LKV));
    apply(map, TG_X_SUB);
    apply(map, TG_X_EXP2);
    apply(map, TG_X_MUL);
}

/* How much of a token is written: little, so that the inverse stays small. */
static void apply_share(struct parts *p, tg_stmt *map, int position)
{
    number(map, 1.0f / 64);
    apply(map, TG_X_MUL);
    if (!p->x || !chance(p, 50))
        return;
    get(map, at(p, p->x, position));
    apply(map, TG_X_SIGMOID);
    apply(map, TG_X_MUL);
}

/* T of the delta rule. */
static void add_inverse(struct parts *p)
{
    const uint32_t kk = tile(p, "kk", TG_F32, 0, TG_LQ, TG_LKV, 0), lower = tile(p, "l", TG_F32, 0, TG_LQ, TG_LKV, 0);
    p->inverse = square(p, "t", 92);
    statement(
        p, (tg_stmt){.op = TG_STMT_CONTRACT, .out = (tg_operand)kk, .a = at(p, p->k, TG_LQ), .b = at(p, p->k, TG_LKV)});
    tg_stmt *map = map_to(p, lower, 0);
    get(map, (tg_operand)kk);
    apply_gate(p, map);
    apply_share(p, map, TG_LQ);
    apply(map, DRAW(p->draw, TG_X_BEFORE, TG_X_BEFORE, TG_X_BEFORE, TG_X_CAUSAL));
    statement(p, (tg_stmt){.op = TG_STMT_SOLVE, .out = at(p, p->inverse, TG_LQ), .a = (tg_operand)lower});
}

/* The inverse times the values, or times what they are more than the state says of the keys. */
static void add_written(struct parts *p)
{
    const uint32_t read = chance(p, 60) ? tile(p, "sk", TG_F32, 0, TG_T, TG_DHV, 0) : 0;
    const uint32_t more = tile(p, "r", TG_F32, 0, TG_T, TG_DHV, 0);
    p->written = tile(p, "nv", DRAW(p->draw, TG_IO, TG_F32), 0, TG_T, TG_DHV, 0);
    if (read)
        statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                               .out = at(p, read, TG_LKV),
                               .a = at(p, p->k, TG_LKV),
                               .b = (tg_operand)p->state});
    tg_stmt *map = map_to(p, more, TG_LKV);
    get(map, at(p, p->v, TG_LKV));
    if (read) {
        get(map, at(p, read, TG_LKV));
        if (p->arrival && p->gate != TG_DQK) {
            get(map, at(p, p->arrival, TG_LKV));
            apply(map, TG_X_MUL);
        }
        apply(map, TG_X_SUB);
    }
    apply_share(p, map, TG_LKV);
    statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                           .out = at(p, p->written, TG_LQ),
                           .a = at(p, p->inverse, TG_LQ),
                           .b = at(p, more, TG_LKV)});
}

static void add_state(struct parts *p)
{
    const int position = p->inverse ? TG_LKV : DRAW(p->draw, TG_LKV, TG_LKV, TG_LQ);
    p->state = tile(p, "states", TG_F32, 0, TG_CHUNK, TG_DQK, TG_DHV);
    if (p->inverse && chance(p, 75))
        add_written(p);
    const uint32_t kw = scaled(p, p->k, "kw", position, p->gate == TG_DHV ? 0 : p->weight);
    const uint32_t vw = scaled(p, p->written, "vw", position, p->gate == TG_DHV ? p->weight : 0);
    const uint32_t final_ = chance(p, 60) ? tile(p, "S", TG_F32, TG_OUT, TG_DQK, TG_DHV, 0) : 0;
    statement(p, (tg_stmt){.op = TG_STMT_CARRY,
                           .flags = chance(p, 15) ? TG_REVERSE : 0,
                           .out = (tg_operand)p->state,
                           .final_ = (tg_operand)final_,
                           .init = (tg_operand)p->s0,
                           .decay = (tg_operand)(chance(p, 85) ? p->total : 0),
                           .a = at(p, kw, position),
                           .b = at(p, vw, position)});
}

/* The normaliser's state: a sum of keys, carried without a product. */
static void add_vector(struct parts *p)
{
    const int position = DRAW(p->draw, TG_LKV, TG_LKV, TG_LQ);
    const uint32_t factor = p->gate == 0 && p->weight ? p->weight : p->x;
    const uint32_t added = tile(p, "nk", TG_F32, 0, TG_CHUNK, TG_DQK, 0);
    const uint32_t final_ = chance(p, 50) ? tile(p, "n", TG_F32, TG_OUT, TG_DQK, 0, 0) : 0;
    p->vector = tile(p, "ns", TG_F32, 0, TG_CHUNK, TG_DQK, 0);
    statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                           .out = (tg_operand)added,
                           .a = at(p, p->k, position),
                           .b = factor ? at(p, factor, position) : 0});
    statement(p, (tg_stmt){.op = TG_STMT_CARRY,
                           .out = (tg_operand)p->vector,
                           .final_ = (tg_operand)final_,
                           .decay = (tg_operand)(p->gate != TG_DHV && chance(p, 85) ? p->total : 0),
                           .a = (tg_operand)added});
}

/* What arrives at the chunk, in the rows of queries. */
static void add_arriving(struct parts *p)
{
    const uint32_t query = chance(p, 20) ? scaled(p, p->q, "qw", TG_LQ, p->gate == TG_DQK ? p->arrival : p->x) : p->q;
    const uint32_t read = tile(p, "inter", TG_F32, 0, TG_T, TG_DHV, 0);
    statement(
        p, (tg_stmt){
               .op = TG_STMT_CONTRACT, .out = at(p, read, TG_LQ), .a = at(p, query, TG_LQ), .b = (tg_operand)p->state});
    p->rows = read;
    if (p->arrival && p->gate != TG_DQK && chance(p, 80))
        p->rows = scaled(p, read, "gated", TG_LQ, p->arrival);
}

/* The product may have the gate's decay from the key to the query: of the axis that is summed, or of one that is kept. */
static void decay_of(struct parts *p, tg_stmt *product, bool fits)
{
    if (!fits || !chance(p, 60))
        return;
    product->decay = at(p, p->sum, TG_LQ);
    product->since = at(p, p->sum, TG_LKV);
    product->flags = chance(p, 20) ? TG_EXCLUSIVE : 0;
}

/* Pairs of positions, gated and masked, times the values. */
static void add_pairs(struct parts *p)
{
    const uint32_t qk = tile(p, "qk", TG_F32, 0, TG_LQ, TG_LKV, 0), pairs = square(p, "p", p->inverse ? 40 : 15);
    p->pairs = pairs;
    tg_stmt *product = statement(
        p, (tg_stmt){.op = TG_STMT_CONTRACT, .out = (tg_operand)qk, .a = at(p, p->q, TG_LQ), .b = at(p, p->k, TG_LKV)});
    decay_of(p, product, p->sum && p->gate == TG_DQK);
    tg_stmt *map = map_to(p, pairs, TG_LQ);
    get(map, (tg_operand)qk);
    apply_gate(p, map);
    if (p->x && chance(p, 20)) {
        get(map, at(p, p->x, DRAW(p->draw, TG_LQ, TG_LKV)));
        apply(map, TG_X_MUL);
    }
    if (chance(p, 15))
        apply(map, DRAW(p->draw, TG_X_ABS, TG_X_NEG, TG_X_SIGMOID, TG_X_STEP));
    if (chance(p, 80))
        apply(map, TG_X_CAUSAL);
    const uint32_t values = chance(p, 15) ? scaled(p, p->written, "vp", TG_LKV, p->x) : p->written;
    const uint32_t sum = tile(p, "sum", TG_F32, 0, TG_T, TG_DHV, 0);
    product = statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                                     .out = at(p, sum, TG_LQ),
                                     .init = p->rows ? at(p, p->rows, TG_LQ) : 0,
                                     .a = at(p, pairs, TG_LQ),
                                     .b = at(p, values, TG_LKV)});
    decay_of(p, product, p->sum && p->gate == TG_DHV);
    p->rows = sum;
    if (chance(p, 20)) {
        const uint32_t row_sums = tile(p, "rs", TG_F32, TG_OUT, TG_T, 0, 0);
        statement(p, (tg_stmt){.op = TG_STMT_CONTRACT, .out = at(p, row_sums, TG_LQ), .a = at(p, pairs, TG_LQ)});
    }
}

/* From queries to keys, as gradients go: by the transposed tile. */
static void add_transposed(struct parts *p, const char *name, uint32_t tile_of_positions)
{
    const uint32_t out = tile(p, name, DRAW(p->draw, TG_IO, TG_IO, TG_F32), TG_OUT, TG_T, TG_DHV, 0);
    statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                           .out = at(p, out, TG_LKV),
                           .a = at(p, tile_of_positions, TG_LQ),
                           .b = at(p, p->v2 && chance(p, 50) ? p->v2 : p->v, TG_LQ)});
}

static void add_output(struct parts *p)
{
    const uint32_t h = tile(p, "h", chance(p, 15) ? TG_F32 : TG_IO, TG_OUT, TG_T, TG_DHV, 0);
    const uint32_t qn = p->vector ? tile(p, "qn", TG_F32, chance(p, 30) ? TG_OUT : 0, TG_T, 0, 0) : 0;
    if (qn)
        statement(p, (tg_stmt){.op = TG_STMT_CONTRACT,
                               .out = at(p, qn, TG_LQ),
                               .a = at(p, p->q, TG_LQ),
                               .b = (tg_operand)p->vector});
    const int position = p->rows ? TG_LQ : DRAW(p->draw, TG_LQ, TG_LKV);
    tg_stmt *map = map_to(p, h, position);
    get(map, at(p, p->rows ? p->rows : p->v, position));
    code(map, (tg_x){TG_X_SCALAR, 0, 0, 0});
    apply(map, TG_X_MUL);
    if (qn && position == TG_LQ) {
        get(map, at(p, qn, TG_LQ));
        apply(map, TG_X_ABS);
        number(map, 1);
        apply(map, TG_X_MAX);
        apply(map, TG_X_DIV);
    }
    if (p->v2 && chance(p, 50)) {
        get(map, at(p, p->v2, position));
        apply(map, DRAW(p->draw, TG_X_ADD, TG_X_MUL, TG_X_MAX));
    }
}

/* Sums of something over tokens, then chunks, heads or sequences. */
static void add_total(struct parts *p)
{
    const int position = DRAW(p->draw, TG_LQ, TG_LKV), flags = chance(p, 25) ? TG_MAXIMUM : 0;
    const uint32_t of = p->x ? p->x : p->weight ? p->weight : p->k;
    const uint8_t axis = p->d->tensors[of].axes[1];
    const int shared = p->d->tensors[of].flags & TG_SHARED;
    const uint32_t chunk = tile(p, "tc", TG_F32, shared, TG_CHUNK, axis, 0);
    const uint32_t all = tile(p, "ta", TG_F32, TG_OUT | shared | (chance(p, 40) ? TG_NO_BATCH : 0), axis, 0, 0);
    statement(
        p, (tg_stmt){.op = TG_STMT_TOTAL, .flags = (uint8_t)flags, .out = (tg_operand)chunk, .a = at(p, of, position)});
    statement(p,
              (tg_stmt){.op = TG_STMT_TOTAL, .flags = (uint8_t)flags, .out = (tg_operand)all, .a = (tg_operand)chunk});
}

static void add_scan(struct parts *p)
{
    const int position = DRAW(p->draw, TG_LQ, TG_LKV);
    const uint32_t of = DRAW(p->draw, 0, 1) && p->x ? p->x : p->k2 ? p->k2 : p->v;
    const uint32_t y = derived(p, of, "y"), out = derived(p, of, "yo");
    p->d->tensors[y].flags = 0;
    p->d->tensors[out].flags = TG_OUT;
    statement(p, (tg_stmt){.op = TG_STMT_SCAN,
                           .flags = (uint8_t)DRAW(p->draw, 0, 0, TG_EXCLUSIVE, TG_MAXIMUM),
                           .out = at(p, y, position),
                           .a = at(p, of, position)});
    tg_stmt *map = map_to(p, out, position);
    get(map, at(p, y, position));
    number(map, 0.25f);
    apply(map, TG_X_MUL);
}

/* Over the heads that share it. */
static void add_shared(struct parts *p)
{
    const uint32_t own = tile(p, "ko", TG_F32, 0, TG_T, TG_DQK, 0);
    const uint32_t out = tile(p, "ks", DRAW(p->draw, TG_IO, TG_F32), TG_OUT | TG_SHARED, TG_T, TG_DQK, 0);
    const int position = DRAW(p->draw, TG_LQ, TG_LKV);
    tg_stmt *map = map_to(p, own, position);
    get(map, at(p, p->k, position));
    if (p->x) {
        get(map, at(p, p->x, position));
        apply(map, TG_X_MUL);
    }
    statement(p, (tg_stmt){.op = TG_STMT_TOTAL, .out = at(p, out, position), .a = at(p, own, position)});
}

void declare_algorithm(struct draw *draw, struct declaration *d)
{
    struct parts parts = {.draw = draw, .d = d}, *p = &parts;
    d->algorithm = (tg_algorithm){TG_HEADER(tg_algorithm), .name = "random",      .title = "random",
                                  .file = "declaration",   .tensors = d->tensors, .body = d->body};
    add_inputs(p);
    p->written = p->v;
    if (chance(p, 75))
        add_gate(p);
    if (chance(p, 30))
        add_inverse(p);
    if (chance(p, 80))
        add_state(p);
    if (chance(p, 20))
        add_vector(p);
    if (p->state && chance(p, 75))
        add_arriving(p);
    if (chance(p, 50))
        add_pairs(p);
    if (p->pairs && chance(p, 15))
        add_transposed(p, "pv", p->pairs);
    if (p->inverse && (p->written == p->v || chance(p, 15)))
        add_transposed(p, "tv", p->inverse);
    if (p->rows || d->algorithm.n_body == 0 || chance(p, 50))
        add_output(p);
    if (chance(p, 20))
        add_total(p);
    if (chance(p, 25))
        add_scan(p);
    if (chance(p, 15))
        add_shared(p);
}
