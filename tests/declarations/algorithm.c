/* tests/declarations/algorithm.c - random algorithms: gates, scaled keys and values, a state, what is read from it, pairs
 * of positions, on chip or in memory, inverses of them, and sums beside them. Each part may be there or not and takes its
 * operands from what is there. */
#include "parts.h"

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

/* Log decays of a sixteenth, so that a chunk forgets much; or more, so that it forgets all. */
static void add_gate(struct parts *p)
{
    const int position = DRAW(p->draw, TG_LQ, TG_LKV, TG_LKV);
    const uint8_t axis = p->gate = (uint8_t)DRAW(p->draw, 0, 0, 0, TG_DQK, TG_DHV);
    const int exact = axis && chance(p, 90) ? TG_F32 : DRAW(p->draw, TG_F32, TG_F32X2); /* a product's is of fp32 */
    p->share = (float[]){1.0f / 16, 1.0f / 16, 1.0f / 16, 1, 30}[draw_below(p->draw, 5)];
    p->rate = chance(p, 20) ? tile(p, "rate", TG_F32, TG_IN | TG_NO_BATCH, chance(p, 50) ? axis : 0, 0, 0) : 0;
    const uint32_t gx =
        tile(p, "gx", axis || chance(p, 15) ? DRAW(p->draw, TG_IO, TG_F32) : TG_F32, TG_IN, TG_T, axis, 0);
    p->decay = tile(p, "la", TG_F32, 0, TG_T, axis, 0);
    p->sum = tile(p, "b", exact, 0, TG_T, axis, 0);
    p->total = tile(p, "g", exact, 0, TG_CHUNK, axis, 0);
    tg_stmt *map = map_to(p, p->decay, position);
    get(map, at(p, gx, position));
    apply(map, TG_X_LOGSIG2);
    if (p->rate) {
        get(map, (tg_operand)p->rate);
        apply(map, TG_X_SIGMOID);
        apply(map, TG_X_MUL);
    }
    number(map, p->share);
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
    const uint32_t added = chance(p, 15) ? added_products(p, at(p, kw, position), at(p, vw, position), position) : 0;
    statement(p, (tg_stmt){.op = TG_STMT_CARRY,
                           .flags = chance(p, 15) ? TG_REVERSE : 0,
                           .out = (tg_operand)p->state,
                           .final_ = (tg_operand)final_,
                           .init = (tg_operand)p->s0,
                           .decay = (tg_operand)(chance(p, 85) ? p->total : 0),
                           .a = added ? (tg_operand)added : at(p, kw, position),
                           .b = added ? 0 : at(p, vw, position)});
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

/* A token beside those before it, or behind it, and the state that this takes. */
static void add_shift(struct parts *p)
{
    const int position = DRAW(p->draw, TG_LQ, TG_LKV), flags = chance(p, 40) ? TG_REVERSE : 0;
    const uint32_t of = p->k2 && chance(p, 40)  ? p->k2
                        : p->x && chance(p, 40) ? p->x
                                                : p->v,
                   far = (uint32_t)DRAW(p->draw, 1, 2, 3);
    const tg_tensor *t = &p->d->tensors[of];
    const int shared = t->flags & (TG_SHARED | TG_NO_BATCH), dtype = t->dtype;
    const uint8_t axis = t->axes[1];
    static const char *const shifted[] = {"x1", "x2", "x3"}, *const first[] = {"x1_0", "x2_0", "x3_0"},
                             *const last[] = {"x1_t", "x2_t", "x3_t"};
    uint32_t from = chance(p, 90) ? of : 0, out = 0;
    for (uint32_t i = 0; i < far; i++) {
        const uint32_t init = chance(p, 60) ? tile(p, first[i], dtype, shared | TG_IN | TG_OPTIONAL, axis, 0, 0) : 0,
                       final_ = chance(p, 60) ? tile(p, last[i], dtype, shared | TG_OUT, axis, 0, 0) : 0;
        out = derived(p, of, shifted[i]);
        p->d->tensors[out].flags = (uint8_t)shared;
        statement(p, (tg_stmt){.op = TG_STMT_SHIFT,
                               .flags = (uint8_t)flags,
                               .out = at(p, out, position),
                               .a = from ? at(p, from, position) : 0,
                               .init = (tg_operand)init,
                               .final_ = (tg_operand)final_});
        from = out;
    }
    const uint32_t sum = derived(p, of, "xs");
    p->d->tensors[sum].flags = (uint8_t)(shared | TG_OUT);
    tg_stmt *map = map_to(p, sum, position);
    get(map, at(p, out, position));
    get(map, at(p, of, position));
    code(map, (tg_x){TG_X_SIZE, 0, (tg_operand)DRAW(p->draw, TG_DQK, TG_DHV, TG_MEMBER), 0});
    apply(map, TG_X_DIV);
    apply(map, TG_X_ADD);
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
    const bool has_more = chance(p, 45); /* than an output: the more there is, the sooner something is refused */
    if (has_more && chance(p, 30))
        add_norm(p);
    if (chance(p, 75))
        add_gate(p);
    if (chance(p, 30))
        add_inverse(p);
    if (chance(p, has_more ? 50 : 80))
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
    if (has_more && chance(p, 50))
        add_gradients(p);
    if (has_more && chance(p, 30))
        add_row_products(p);
    if (has_more && chance(p, 30))
        add_parameter_sums(p);
    if (chance(p, 20))
        add_total(p);
    if (chance(p, 25))
        add_scan(p);
    if (chance(p, 15))
        add_shared(p);
    if (chance(p, 15))
        add_shift(p);
}
