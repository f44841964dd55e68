/* compiler/spread.c - of kernels that make gradients of products with decays of channels (lower/spread.c): what they make anew, and what
 * lies where in their shared memory.
 *
 * requires: place */
#include "compiler/plan.h"
#include "compiler/plan_channel.h"

#include <string.h>

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

/* What is known of a number behind the end of the chunk. */
enum { IS_ZERO = 1, NOT_ABOVE = 2, NOT_BELOW = 4, ALL_OF_ZERO = 7 };

static uint8_t combine(uint8_t op, uint8_t a, uint8_t b)
{
    bool is_zero = a & b & IS_ZERO;
    if (op == TG_X_MUL)
        is_zero = (a | b) & IS_ZERO;
    else if (op == TG_X_MAX || op == TG_X_MIN) /* the other is no limit to it */
        is_zero = (a | b) & IS_ZERO && a & b & (op == TG_X_MAX ? NOT_ABOVE : NOT_BELOW);
    else if (op == TG_X_DIV)
        is_zero = false;
    return is_zero ? ALL_OF_ZERO : 0;
}

bool plan_is_loaded_decay(const struct plan *p, uint32_t v)
{
    const uint32_t tile = TG_OPERAND_TILE(p->values[v].operand);
    bool is = false;
    for (const struct op *op = p->ops; op < p->ops + p->n_ops; op++)
        is |= plan_is_spread(p, op) &&
              (TG_OPERAND_TILE(p->values[op->c].operand) == tile || TG_OPERAND_TILE(p->values[op->w].operand) == tile);
    return is && plan_is_loaded_row(&p->values[v]);
}

/* What is loaded is zero, but decays; of maps what their expressions make of it. */
bool plan_is_zero_behind(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    const tg_stmt *s = value->stmt < 0 ? NULL : &p->algorithm->body[value->stmt];
    uint8_t known[TG_MAX_EXPR] = {0};
    uint32_t n = 0;
    if (!s || s->op != TG_STMT_MAP)
        return plan_is_loaded_row(value) && !plan_is_loaded_decay(p, v);
    for (const tg_x *x = s->expr; x->op != TG_X_END; x++)
        if (x->op == TG_X_TILE)
            known[n++] = plan_is_zero_behind(p, (uint32_t)plan_find(p, x->operand, value->nest)) ? ALL_OF_ZERO : 0;
        else if (x->op == TG_X_NUMBER)
            known[n++] = (uint8_t)((x->number <= 0 ? NOT_ABOVE : 0) | (x->number >= 0 ? NOT_BELOW : 0));
        else if (x->op == TG_X_SCALAR || x->op == TG_X_SIZE)
            known[n++] = 0;
        else if (x->op >= TG_X_ADD && x->op <= TG_X_MIN) {
            n--;
            known[n - 1] = combine(x->op, known[n - 1], known[n]);
        } else if (x->op != TG_X_NEG)
            known[n - 1] = 0;
    return known[0] & IS_ZERO;
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

uint32_t plan_turned_places(const struct plan *p)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < p->n_values; v++)
        n += is_turned(p, v) ? 1 : 0;
    return n;
}

uint32_t plan_own_place(const struct plan *p, const struct op *op)
{
    const uint32_t turned = plan_turned(p, plan_spread_weights(p, op));
    return turned ? turned - 1 : plan_turned_places(p) + (plan_spread_is_part(p, op) ? 1 : 0);
}

uint32_t plan_own_places(const struct plan *p)
{
    uint32_t n = 0;
    for (const struct op *op = p->ops; op < p->ops + p->n_ops; op++)
        if (plan_is_spread(p, op) && plan_own_place(p, op) >= n)
            n = plan_own_place(p, op) + 1;
    return n;
}

/* ---- what operations read ---- */

/* Is the value the tile, or made of it by maps alone? */
static bool is_made_of(const struct plan *p, tg_operand operand, int nest, uint32_t tile)
{
    const int v = plan_find(p, operand, nest);
    const tg_stmt *s = v < 0 || p->values[v].stmt < 0 ? NULL : &p->algorithm->body[p->values[v].stmt];
    tg_operand reads[TG_MAX_READS];
    bool is = TG_OPERAND_TILE(operand) == tile;
    for (uint32_t k = 0, n = s && (s->op == TG_STMT_MAP || s->op == TG_STMT_TOTAL) ? tg_stmt_reads(s, reads) : 0;
         k < n && !is; k++)
        is = is_made_of(p, reads[k], nest, tile);
    return is;
}

static uint32_t read_by(const struct plan *p, const struct op *op, tg_operand reads[TG_MAX_READS])
{
    if (op->kind == OP_COPY || op->kind == OP_STORE) {
        reads[0] = p->values[op->kind == OP_COPY ? op->a : op->v].operand;
        return 1;
    }
    return op->stmt < 0 ? 0 : tg_stmt_reads(&p->algorithm->body[op->stmt], reads);
}

/* ---- products that are made together ---- */

int plan_spread_start(const struct plan *p, const struct op *op)
{
    for (const struct op *before = op; before-- > p->ops;)
        if ((before->kind == OP_COPY || before->kind == OP_ZERO) && before->v == op->v)
            return before->kind == OP_COPY ? before->a : -1;
    return -1;
}

/* Have the products the same decays, in the same direction? */
static bool decay_alike(const struct plan *p, const struct op *a, const struct op *b)
{
    return a->c == b->c && a->w == b->w && p->values[a->v].dims[0] == p->values[b->v].dims[0];
}

/* Does the sum begin with what the product before it makes, which nothing else reads? */
static bool goes_on(const struct plan *p, const struct op *before, const struct op *op)
{
    bool goes = plan_spread_start(p, op) == (int)before->v;
    for (const struct op *other = p->ops; goes && other < p->ops + p->n_ops; other++) {
        tg_operand reads[TG_MAX_READS];
        const bool is_own = other == op || other->v == op->v; /* its start, which is a copy */
        for (uint32_t k = 0, n = is_own ? 0 : read_by(p, other, reads); k < n; k++)
            goes &= reads[k] != p->values[before->v].operand;
    }
    return goes;
}

/* Is all there, before the first of the products, that the other one takes beside X? */
static bool is_there(const struct plan *p, const struct op *first, const struct op *op)
{
    const int start = plan_spread_start(p, op);
    for (const struct op *other = first; other < op; other++) {
        const uint32_t tile = TG_OPERAND_TILE(p->values[other->v].operand);
        const bool is_none =
            other->stmt < 0 || other->v == op->v || (other->kind == OP_MAP && plan_is_made_anew(p, other->v));
        if (!is_none && (other->v == plan_spread_weights(p, op) ||
                         (start >= 0 && is_made_of(p, p->values[start].operand, p->values[start].nest, tile))))
            return false;
    }
    return start < 0 || plan_is_made_anew(p, (uint32_t)start);
}

static uint32_t terms_of(const struct plan *p, const struct op *op)
{
    return plan_spread_weights(p, op) == op->a ? op->b : op->a;
}

static const struct op *product_before(const struct plan *p, const struct op *op)
{
    while (op-- > p->ops)
        if (plan_is_spread(p, op))
            return op;
    return NULL;
}

static const struct op *product_behind(const struct plan *p, const struct op *op)
{
    while (++op < p->ops + p->n_ops)
        if (plan_is_spread(p, op))
            return op;
    return NULL;
}

/* How the product is made with the one before it, which is not made with another one. */
enum joint { JOINT_NONE, JOINT_ONTO, JOINT_BESIDE };
static enum joint joint_of(const struct plan *p, const struct op *op)
{
    const struct op *before = op ? product_before(p, op) : NULL;
    if (!before || !decay_alike(p, before, op) || joint_of(p, before))
        return JOINT_NONE;
    if (goes_on(p, before, op))
        return JOINT_ONTO;
    return terms_of(p, before) == terms_of(p, op) && is_there(p, before, op) ? JOINT_BESIDE : JOINT_NONE;
}

const struct op *plan_spread_onto(const struct plan *p, const struct op *op)
{
    return joint_of(p, op) == JOINT_ONTO ? product_before(p, op) : NULL;
}

const struct op *plan_spread_beside(const struct plan *p, const struct op *op)
{
    const struct op *behind = product_behind(p, op);
    return joint_of(p, behind) == JOINT_BESIDE ? behind : NULL;
}

bool plan_spread_is_part(const struct plan *p, const struct op *op)
{
    return joint_of(p, op) == JOINT_BESIDE || joint_of(p, product_behind(p, op)) == JOINT_ONTO;
}

/* ---- rows in shared memory ---- */

uint32_t plan_spread_vectors(const struct plan *p)
{
    const uint32_t positions = CHANNEL_WARPS * CHANNEL_ROWS, own = 4 * CHANNEL_ROWS * positions,
                   turned = 2 * positions * positions;
    return plan_spread_tiles(p) + plan_own_places(p) * own + plan_turned_places(p) * turned;
}

uint32_t plan_spread_rows(const struct plan *p)
{
    return plan_spread_vectors(p) + CHANNEL_WARPS * SPREAD_VECTORS * 4 * p->block[TG_DQK];
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

/* A tile of rows that is kept there, of a warp: bytes, 0 where it is none, and the operations between which it is there, twice their
 * number. Sums have read all of what they are made of before they are there. */
struct kept {
    uint32_t bytes, first, last;
};

static uint32_t kept_bytes(const struct plan *p, uint32_t tile, bool is_made)
{
    uint32_t element = 0;
    for (uint32_t v = 0; v < p->n_values; v++)
        if (TG_OPERAND_TILE(p->values[v].operand) == tile && (is_made || plan_is_loaded_row(&p->values[v])))
            element = is_made ? 4 : tg_dtype_bytes(p->values[v].dtype);
    return CHANNEL_ROWS * p->block[TG_DQK] * element;
}

/* The product that is made as this one is; NULL: none. */
static const struct op *part_of(const struct plan *p, const struct op *op)
{
    const struct op *onto = plan_spread_onto(p, op);
    return onto ? onto : plan_spread_beside(p, op);
}

/* The last of the operations from `begin` to `end` that reads the tile; -1: none. */
static int last_reader(const struct plan *p, uint32_t tile, uint32_t begin, uint32_t end)
{
    int last = -1;
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &p->ops[i], *part = plan_is_spread(p, op) ? part_of(p, op) : NULL;
        tg_operand reads[TG_MAX_READS];
        for (const struct op *reader = op; reader; reader = reader == op ? part : NULL)
            for (uint32_t k = 0, n = read_by(p, reader, reads); k < n; k++)
                if (is_made_of(p, reads[k], p->values[reader->v].nest, tile))
                    last = (int)i;
    }
    return last;
}

/* The first and the last of the products. */
static void find_products(const struct plan *p, uint32_t *first, uint32_t *last)
{
    *first = p->n_ops;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (plan_is_spread(p, &p->ops[i])) {
            *first = *first < i ? *first : i;
            *last = i;
        }
}

/* From when on what is made is there. */
static uint32_t find_made(const struct plan *p, uint32_t tile)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->stmt >= 0 && op->kind != OP_LOAD && TG_OPERAND_TILE(p->values[op->v].operand) == tile)
            return 2 * i + (op->kind == OP_SCAN ? 1 : 0);
    }
    return 0;
}

/* What is loaded and is read before all products and behind all of them is loaded again behind the last of them: `again`. */
static struct kept find_kept(const struct plan *p, uint32_t tile, struct kept *again)
{
    const bool is_made = is_summed_decay(p, tile) || is_left(p, tile);
    struct kept kept = {.bytes = kept_bytes(p, tile, is_made)};
    if (!kept.bytes)
        return kept;
    uint32_t first, last = 0;
    find_products(p, &first, &last);
    const int before = last_reader(p, tile, 0, first), between = last_reader(p, tile, first, last + 1),
              behind = last_reader(p, tile, last + 1, p->n_ops);
    kept.first = is_made ? find_made(p, tile) : 0;
    kept.last = 2 * (uint32_t)(behind >= 0 ? behind : between >= 0 ? between : before);
    if (!is_made && before >= 0 && between < 0 && behind >= 0) {
        *again = (struct kept){kept.bytes, 2 * last + 1, kept.last};
        kept.last = 2 * (uint32_t)before;
    }
    return kept;
}

/* All of them: as they are first, and, from TG_MAX_TILES on, again; `at`: 1 + their places. */
enum { KEPT = 2 * TG_MAX_TILES };

/* The first place where nothing else lies at the same time. */
static uint32_t find_place(const struct kept kept[KEPT], const uint32_t at[KEPT], uint32_t tile)
{
    const struct kept *of = &kept[tile];
    uint32_t place = 0;
    for (uint32_t u = 0; u < KEPT; u++)
        if (at[u] && of->first <= kept[u].last && kept[u].first <= of->last && at[u] - 1 < place + of->bytes &&
            place < at[u] - 1 + kept[u].bytes) {
            place = at[u] - 1 + kept[u].bytes;
            u = 0; /* others may lie there */
        }
    return place;
}

/* What is loaded; behind it what is read before the first product alone, so that a larger tile has room there; what is made. */
enum { N_PASSES = 3 };
static uint32_t pass_of(const struct plan *p, const struct kept *kept)
{
    uint32_t first, last = 0;
    find_products(p, &first, &last);
    return kept->first ? 2 : kept->last < 2 * first ? 1 : 0;
}

void plan_keep_rows(struct plan *p)
{
    struct kept kept[KEPT] = {{0}};
    uint32_t at[KEPT] = {0};
    for (uint32_t t = 1; t < p->algorithm->n_tensors; t++)
        kept[t] = find_kept(p, t, &kept[TG_MAX_TILES + t]);
    for (uint32_t pass = 0; pass < N_PASSES; pass++)
        for (uint32_t t = 0; t < KEPT; t++) {
            if (!kept[t].bytes || pass != pass_of(p, &kept[t]))
                continue;
            at[t] = 1 + find_place(kept, at, t);
            const uint32_t end = at[t] - 1 + kept[t].bytes;
            p->rows_bytes = end > p->rows_bytes ? end : p->rows_bytes;
        }
    memcpy(p->rows_at, at, sizeof p->rows_at);
    memcpy(p->rows_again, &at[TG_MAX_TILES], sizeof p->rows_again);
}

bool plan_reads_row(const struct plan *p, const struct op *op, uint32_t tile)
{
    const uint32_t i = (uint32_t)(op - p->ops);
    return last_reader(p, tile, i, i + 1) >= 0;
}

bool plan_is_early_row(const struct plan *p, uint32_t tile)
{
    for (uint32_t i = 0; i < p->n_ops && p->ops[i].kind != OP_NEST && p->ops[i].kind != OP_CONTRACT; i++)
        if (p->ops[i].kind == OP_SCAN && plan_reads_row(p, &p->ops[i], tile))
            return true;
    return false;
}

uint32_t plan_spread_scratch(const struct plan *p)
{
    return plan_spread_rows(p) + CHANNEL_WARPS * p->rows_bytes;
}
