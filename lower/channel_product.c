/* lower/channel_product.c - products of positions that decay in each channel, in kernels that make the decays (channel.c).
 *
 *     P_ij = sum_c Q_ic K_jc 2^(b_ic - b_jc)
 *
 * goes through tensor cores by 16 x 16 blocks, operands with a factor on each: Q_i 2^(b_i - m_I) and K_j 2^(m_J - b_j), whose references m are those of
 * the 16 rows of a warp, so that each is made once. What is left, 2^(m_I - m_J), is a factor of each channel and pair of blocks, put on the
 * keys as they are fetched. References are whole numbers, so that it is a power of two and rounds nothing;
 * with 2^RANGE on it, which is taken off the sums, it does not vanish before the product does.
 *
 *     rows that decay by little   the reference is in their middle: no factor is above 2^RANGE
 *     others                      it is before them for queries and behind them for keys: no factor is above 1; their diagonal
 *                                 block is evaluated as it is written, in fp32, by way of shared memory
 *
 * What the query does not reach is left out by selection. A second product by the same keys takes them as they are. */
#include "compiler/plan_channel.h"
#include "lower/channel.h"

#include "lower/matrix.h"

#include <math.h>

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS };

struct product {
    struct channels c;
    const struct op *op;
    uint32_t queries, keys; /* values */
    bool strict;
};

static struct product product_of(const struct channels *c, const struct op *op)
{
    const struct plan *p = c->e->p;
    const bool in_order = p->values[op->a].dims[0] == TG_LQ;
    return (struct product){.c = *c,
                            .op = op,
                            .queries = in_order ? op->a : op->b,
                            .keys = in_order ? op->b : op->a,
                            .strict = p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE};
}

bool is_channel_product(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && p->values[op->a].space == SPACE_CHANNEL;
}

/* ---- products that share their keys ---- */

/* Is all that the value is made of there before the operation? */
static bool is_made_before(const struct plan *p, uint32_t v, const struct op *op)
{
    for (const struct op *later = op; later < p->ops + p->n_ops; later++)
        if ((later->kind == OP_LOAD || later->kind == OP_SCAN || later->kind == OP_TOTAL || later->kind == OP_COPY ||
             (later->kind == OP_MAP && p->values[later->v].n_dims == 1)) &&
            channel_is_of(p, v, later->v) && !(later->kind == OP_COPY && later->v == v))
            return false;
    return true;
}

/* Do the operations between two products leave the operands in shared memory, and nothing to be stored of rows? */
static bool is_quiet(const struct plan *p, const struct op *from, const struct op *to)
{
    for (const struct op *op = from + 1; op < to; op++)
        if (is_channel_product(p, op) || (op->kind != OP_MAP && op->kind != OP_ZERO && op->kind != OP_COPY &&
                                          (op->kind != OP_STORE || p->values[op->v].space == SPACE_CHANNEL)))
            return false;
    return true;
}

static const struct op *product_before(const struct plan *p, const struct op *op)
{
    for (const struct op *before = op; before-- > p->ops;)
        if (is_channel_product(p, before))
            return before;
    return NULL;
}

const struct op *channel_leader(const struct plan *p, const struct op *op)
{
    const struct op *before = product_before(p, op);
    if (!before || channel_leader(p, before) != before || before->c != op->c || before->w != op->w)
        return op;
    const bool in_order = p->values[op->a].dims[0] == TG_LQ, before_in_order = p->values[before->a].dims[0] == TG_LQ;
    const uint32_t keys = in_order ? op->b : op->a, queries = in_order ? op->a : op->b;
    const bool same = keys == (before_in_order ? before->b : before->a);
    return same && is_quiet(p, before, op) && is_made_before(p, queries, before) ? before : op;
}

/* The product led by this one; NULL: none is. */
static const struct op *follower(const struct plan *p, const struct op *leader)
{
    for (const struct op *op = leader + 1; op < p->ops + p->n_ops; op++)
        if (is_channel_product(p, op))
            return channel_leader(p, op) == leader ? op : NULL;
    return NULL;
}

/* Tiles: queries of the leader, keys, queries of its follower. */
enum { KEYS = 1, FOLLOWER = 2 };

/* ---- references ---- */

/* A whole number that differs by at most one half, for |x| < 2^22. */
static LLVMValueRef whole(struct emit *e, LLVMValueRef x)
{
    LLVMValueRef large = real(e, 0x1.8p23);
    return LLVMBuildFSub(e->b, LLVMBuildFAdd(e->b, x, large, ""), large, "");
}

/* Do all channels decay by little from the warp's first row to the one in the middle, and from there to the last? */
static LLVMValueRef is_near(const struct product *p)
{
    struct emit *e = p->c.e;
    LLVMValueRef near = NULL, most = real(e, most_growth(e));
    for (uint32_t j = 0; j < p->c.each; j++) {
        LLVMValueRef middle = key_decay(&p->c, p->op, ROWS / 2 - 1, j);
        LLVMValueRef first = LLVMBuildFSub(e->b, query_decay(&p->c, p->op, 0, j), middle, ""),
                     second = LLVMBuildFSub(e->b, middle, key_decay(&p->c, p->op, ROWS - 1, j), "");
        near = both(e, near, LLVMBuildFCmp(e->b, LLVMRealOLE, first, most, ""));
        near = both(e, near, LLVMBuildFCmp(e->b, LLVMRealOLE, second, most, ""));
    }
    return all_lanes(e, near);
}

static void find_references(const struct product *p)
{
    struct emit *e = p->c.e;
    struct channel_products *s = &e->products;
    for (uint32_t j = 0; j < p->c.each; j++) {
        LLVMValueRef middle = whole(e, key_decay(&p->c, p->op, ROWS / 2 - 1, j)), one = real(e, 1);
        LLVMValueRef before = LLVMBuildFAdd(e->b, whole(e, query_decay(&p->c, p->op, 0, j)), one, ""),
                     behind = LLVMBuildFSub(e->b, whole(e, key_decay(&p->c, p->op, ROWS - 1, j)), one, "");
        s->mine[j] = choose(e, s->near, middle, before);
        s->reference[j] = choose(e, s->near, middle, behind);
    }
    LLVMValueRef to = channel_floats(&p->c, e->warp);
    LLVMSetAlignment(LLVMBuildStore(e->b, channel_words(&p->c, TG_F32, s->reference), to), 4 * p->c.each);
}

/* ---- a diagonal block as it is written ---- */

/* In the warp's rows of the last tile an eighth of the channels, one behind the other: both decays, in fp32, keys, and queries of
 * either product, of 16 rows each. */
enum {
    PARTS = 8,
    QUERY_DECAY = 0,
    KEY_DECAY = 64,
    KEY = 128,
    QUERY = 160,
    CHANNEL_BYTES = QUERY + CHANNEL_PRODUCTS * 32
};

static LLVMValueRef room_at(const struct channels *c, LLVMValueRef channel)
{
    struct emit *e = c->e;
    LLVMValueRef room =
        byte_offset(e, channel_tile(e, plan_channel_tiles(e->p) - 1), mul(e, c->row, imm(e, c->row_bytes)));
    return byte_offset(e, room, mul(e, channel, imm(e, CHANNEL_BYTES)));
}

/* Two rows of the value side by side, rounded. */
static void put_two(const struct channels *c, uint32_t v, uint32_t r, uint32_t j, LLVMValueRef at)
{
    struct emit *e = c->e;
    LLVMValueRef word = pack(e, channel_term(c, v, r * c->each + j), channel_term(c, v, (r + 1) * c->each + j));
    LLVMBuildStore(e->b, word, byte_offset(e, at, imm(e, 2 * r)));
}

/* What a lane has, if it has channels of this part. Tensors in registers are known anew, lest what maps make of them be kept from one
 * part to the next. */
static void put_part(const struct product *p, const struct product *other)
{
    const struct channels *c = &p->c;
    struct emit *e = c->e;
    for (uint32_t r = 0; r < ROWS; r++)
        fetch_channels(c, r);
    for (uint32_t v = 0; v < e->p->n_values; v++) {
        const struct value *value = &e->p->values[v];
        const bool reads = channel_is_of(e->p, p->keys, v) || channel_is_of(e->p, p->queries, v) ||
                           (other && channel_is_of(e->p, other->queries, v));
        for (uint32_t i = 0; reads && value->space == SPACE_CHANNEL && value->stmt < 0 && !plan_waits(value) &&
                             i < ROWS * c->each && value->n_dims == 2;
             i++)
            set(e, e->registers[v][i], as(e, opaque(e, as(e, get(e, e->f32, e->registers[v][i]), e->i32)), e->f32));
    }
    for (uint32_t j = 0; j < c->each; j++) {
        LLVMValueRef at =
            room_at(c, add(e, mul(e, modulo(e, e->lane, imm(e, 32 / PARTS)), imm(e, c->each)), imm(e, j)));
        for (uint32_t r = 0; r < ROWS; r++) {
            LLVMBuildStore(e->b, query_decay(&p->c, p->op, r, j), byte_offset(e, at, imm(e, QUERY_DECAY + 4 * r)));
            LLVMBuildStore(e->b, key_decay(&p->c, p->op, r, j), byte_offset(e, at, imm(e, KEY_DECAY + 4 * r)));
        }
        for (uint32_t r = 0; r < ROWS; r += 2) {
            put_two(c, p->keys, r, j, byte_offset(e, at, imm(e, KEY)));
            put_two(c, p->queries, r, j, byte_offset(e, at, imm(e, QUERY)));
            if (other)
                put_two(c, other->queries, r, j, byte_offset(e, at, imm(e, QUERY + 32)));
        }
    }
}

static LLVMValueRef load_float(struct emit *e, LLVMValueRef at, LLVMValueRef row)
{
    return LLVMBuildLoad2(e->b, e->f32, byte_offset(e, at, mul(e, row, imm(e, 4))), "");
}

/* One of two elements side by side. */
static LLVMValueRef load_rounded(struct emit *e, LLVMValueRef at, LLVMValueRef row)
{
    LLVMValueRef from = byte_offset(e, at, mul(e, divide(e, row, imm(e, 2)), imm(e, 4)));
    LLVMValueRef word = LLVMBuildLoad2(e->b, e->i32, from, "");
    LLVMValueRef is_odd = LLVMBuildICmp(e->b, LLVMIntNE, modulo(e, row, imm(e, 2)), imm(e, 0), "");
    return choose(e, is_odd, unpack(e, word, 1), unpack(e, word, 0));
}

/* Row and column of element i of the lane's, of two 16 x 8 tiles side by side. */
static LLVMValueRef query_row(struct emit *e, uint32_t i)
{
    return add(e, e->quad_row, imm(e, i % 4 / 2 * 8));
}

static LLVMValueRef key_row(struct emit *e, uint32_t i)
{
    return add(e, mul(e, e->quad_column, imm(e, 2)), imm(e, i / 4 * 8 + i % 2));
}

/* What the channel adds to the block of each product. */
static void add_channel(const struct product *p, LLVMValueRef at, uint32_t n_products)
{
    struct emit *e = p->c.e;
    LLVMValueRef x[8];
    for (uint32_t i = 0; i < 8; i++) {
        LLVMValueRef query = load_float(e, byte_offset(e, at, imm(e, QUERY_DECAY)), query_row(e, i)),
                     key = load_float(e, byte_offset(e, at, imm(e, KEY_DECAY)), key_row(e, i));
        x[i] = LLVMBuildFMul(e->b, load_rounded(e, byte_offset(e, at, imm(e, KEY)), key_row(e, i)),
                             two_to(e, query, key), "");
    }
    for (uint32_t k = 0; k < n_products; k++)
        for (uint32_t i = 0; i < 8; i++) {
            LLVMValueRef slot = e->products.own[k][i];
            LLVMValueRef query = load_rounded(e, byte_offset(e, at, imm(e, QUERY + 32 * k)), query_row(e, i));
            set(e, slot, fma_of(e, query, x[i], get(e, e->f32, slot)));
        }
}

static void multiply_exactly(const struct product *p, const struct product *other)
{
    struct emit *e = p->c.e;
    LLVMValueRef part, channel;
    struct counted parts = loop_begin(e, imm(e, PARTS), &part);
    parts.rolled = true;
    sync_warp(e); /* those of the part before have been read */
    LLVMValueRef is_mine = LLVMBuildICmp(e->b, LLVMIntEQ, divide(e, e->lane, imm(e, 32 / PARTS)), part, "");
    LLVMBasicBlockRef after = begin_if(e, is_mine);
    put_part(p, other);
    end_if(e, after);
    sync_warp(e);
    struct counted channels = loop_begin(e, imm(e, p->c.n / PARTS), &channel);
    channels.rolled = true;
    add_channel(p, room_at(&p->c, channel), other ? 2 : 1);
    loop_end(e, &channels, 1);
    loop_end(e, &parts, 1);
    sync_warp(e);
}

/* ---- operands ---- */

void begin_operands(const struct channels *c, const struct op *leader)
{
    struct emit *e = c->e;
    const struct op *second = follower(e->p, leader);
    const struct product p = product_of(c, leader), other = product_of(c, second ? second : leader);
    e->products.near = is_near(&p);
    for (uint32_t k = 0; k < (second ? 2 : 1); k++)
        for (uint32_t i = 0; i < 8; i++)
            set(e, e->products.own[k][i] = local(e, e->f32, "own"), real(e, 0));
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, e->products.near, ""));
    multiply_exactly(&p, second ? &other : NULL);
    end_if(e, after);
    find_references(&p);
}

/* The value's elements times the weights. */
static LLVMValueRef weighted(const struct channels *c, uint32_t v, uint32_t r, const LLVMValueRef *weight)
{
    struct emit *e = c->e;
    LLVMValueRef x[8];
    for (uint32_t j = 0; j < c->each; j++)
        x[j] = LLVMBuildFMul(e->b, channel_term(c, v, r * c->each + j), weight[j], "");
    return channel_words(c, e->p->shape.io, x);
}

uint32_t make_operands(const struct channels *c, const struct op *leader, uint32_t r, LLVMValueRef words[CHANNEL_WORDS])
{
    struct emit *e = c->e;
    const struct op *second = follower(e->p, leader);
    const struct product p = product_of(c, leader);
    LLVMValueRef query[8], key[8];
    for (uint32_t j = 0; j < c->each; j++) {
        query[j] = two_to(e, query_decay(&p.c, p.op, r, j), e->products.mine[j]);
        key[j] = two_to(e, e->products.reference[j], key_decay(&p.c, p.op, r, j));
    }
    words[0] = weighted(c, p.queries, r, query);
    words[KEYS] = weighted(c, p.keys, r, key);
    if (second)
        words[FOLLOWER] = weighted(c, product_of(c, second).queries, r, query);
    return second ? 3 : 2;
}

void put_operands(const struct channels *c, uint32_t n, LLVMValueRef place, LLVMValueRef words[CHANNEL_WORDS])
{
    struct emit *e = c->e;
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef to = byte_offset(e, place, imm(e, i * plan_channel_tile(e->p)));
        LLVMSetAlignment(LLVMBuildStore(e->b, words[i], to), 2 * c->each);
    }
}

/* ---- factors of pairs of blocks ---- */

/* Those of the warp's queries and the keys of warp J: elements of 16 bits, of all channels. */
static LLVMValueRef factors_at(const struct channels *c, uint32_t J)
{
    struct emit *e = c->e;
    LLVMValueRef rows = byte_offset(e, channel_tile(e, 0), imm(e, plan_channel_floats(e->p) + WARPS * 4 * c->n));
    LLVMValueRef pair = add(e, mul(e, e->warp, imm(e, WARPS - 1)), imm(e, J));
    return byte_offset(e, rows, mul(e, pair, imm(e, 2 * c->n)));
}

static void put_factors(const struct channels *c)
{
    struct emit *e = c->e;
    LLVMValueRef range = real(e, most_growth(e));
    for (uint32_t J = 0; J + 1 < WARPS; J++) {
        LLVMValueRef x = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, c->each), channel_floats(c, imm(e, J)), ""),
                     factor[8];
        LLVMSetAlignment(x, 4 * c->each);
        for (uint32_t j = 0; j < c->each; j++)
            factor[j] = two_to(e, LLVMBuildFAdd(e->b, e->products.mine[j], range, ""),
                               LLVMBuildExtractElement(e->b, x, imm(e, j), ""));
        LLVMValueRef to = byte_offset(e, factors_at(c, J), mul(e, e->lane, imm(e, 2 * c->each)));
        LLVMSetAlignment(LLVMBuildStore(e->b, channel_words(c, e->p->shape.io, factor), to), 2 * c->each);
    }
    sync_warp(e);
}

/* A word of two elements by factors of theirs. */
static LLVMValueRef times(struct emit *e, LLVMValueRef word, LLVMValueRef factors)
{
    LLVMTypeRef type = e->p->shape.io == TG_BF16 ? e->v2bf16 : e->v2f16;
    LLVMValueRef args[3] = {as(e, word, type), as(e, factors, type), LLVMConstNull(type)};
    return as(e, call(e, "llvm.fma", &type, 1, args, 3), e->i32);
}

/* ---- products ---- */

/* The first tile of queries of a product, the leader or the one that it leads. */
static uint32_t query_tile(uint32_t product)
{
    return product ? FOLLOWER : 0;
}

/* sums += the warp's rows of queries of n products by 16 rows of keys from `row` on, times factors where there are some. */
static void multiply(const struct channels *c, uint32_t n, LLVMValueRef row, LLVMValueRef factors,
                     LLVMValueRef sums[CHANNEL_PRODUCTS][8])
{
    struct emit *e = c->e;
    LLVMValueRef lane = opaque(e, e->lane), in_matrix = modulo(e, lane, imm(e, 8)),
                 low = modulo(e, divide(e, lane, imm(e, 8)), imm(e, 2)), high = divide(e, lane, imm(e, 16));
    LLVMValueRef pitch = imm(e, c->row_bytes);
    LLVMValueRef query = mul(e, add(e, c->row, add(e, in_matrix, mul(e, low, imm(e, 8)))), pitch),
                 key = add(e, row, add(e, in_matrix, mul(e, high, imm(e, 8))));
    LLVMValueRef b = byte_offset(e, channel_tile(e, KEYS), mul(e, key, pitch));
    LLVMValueRef a_unit = LLVMBuildXor(e->b, high, in_matrix, ""), b_unit = LLVMBuildXor(e->b, low, in_matrix, "");
    factors = factors ? byte_offset(e, factors, mul(e, modulo(e, lane, imm(e, 4)), imm(e, 4))) : NULL;
    for (uint32_t k = 0; k < c->n / 16; k++) {
        LLVMValueRef rows[4], columns[4], at = mul(e, LLVMBuildXor(e->b, a_unit, imm(e, 2 * k), ""), imm(e, 16));
        fetch_matrices(e, byte_offset(e, b, mul(e, LLVMBuildXor(e->b, b_unit, imm(e, 2 * k), ""), imm(e, 16))), false,
                       columns);
        for (uint32_t i = 0; factors && i < 4; i++)
            columns[i] = times(e, columns[i],
                               LLVMBuildLoad2(e->b, e->i32, byte_offset(e, factors, imm(e, 32 * k + i % 2 * 16)), ""));
        for (uint32_t i = 0; i < n; i++) {
            LLVMValueRef a = byte_offset(e, channel_tile(e, query_tile(i)), query);
            fetch_matrices(e, byte_offset(e, a, at), false, rows);
            for (uint32_t half = 0; half < 2; half++)
                multiply_words(e, &sums[i][4 * half], rows, columns[2 * half], columns[2 * half + 1]);
        }
    }
}

static void zeros(struct emit *e, uint32_t n, LLVMValueRef sums[CHANNEL_PRODUCTS][8])
{
    for (uint32_t i = 0; i < n * 8; i++)
        sums[i / 8][i % 8] = real(e, 0);
}

/* The diagonal blocks, where rows decay by little. */
static void multiply_own(const struct channels *c, uint32_t n)
{
    struct emit *e = c->e;
    LLVMValueRef sums[CHANNEL_PRODUCTS][8];
    LLVMBasicBlockRef after = begin_if(e, e->products.near);
    zeros(e, n, sums);
    multiply(c, n, c->row, NULL, sums);
    for (uint32_t i = 0; i < n * 8; i++)
        set(e, e->products.own[i / 8][i % 8], sums[i / 8][i % 8]);
    end_if(e, after);
}

/* The blocks of the warp's queries by the keys of warp J, if these are before them. */
static void multiply_before(const struct channels *c, uint32_t n, uint32_t J)
{
    struct emit *e = c->e;
    LLVMValueRef sums[CHANNEL_PRODUCTS][8];
    for (uint32_t i = 0; i < n * 8; i++)
        set(e, e->products.before[i / 8][J][i % 8] = local(e, e->f32, "before"), real(e, 0));
    LLVMBasicBlockRef after = begin_if(e, less(e, imm(e, J), e->warp));
    zeros(e, n, sums);
    multiply(c, n, imm(e, J * ROWS), factors_at(c, J), sums);
    for (uint32_t i = 0; i < n * 8; i++)
        set(e, e->products.before[i / 8][J][i % 8],
            LLVMBuildFMul(e->b, sums[i / 8][i % 8], real(e, exp2(-most_growth(e))), ""));
    end_if(e, after);
}

/* Adds up the blocks of a product: the diagonal one is zero where the query does not reach the key. */
static void add_blocks(const struct product *p, uint32_t product)
{
    struct emit *e = p->c.e;
    const struct channel_products *s = &e->products;
    for (uint32_t J = 0; J < WARPS; J++) {
        LLVMValueRef is_own = LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, J), "");
        for (uint32_t i = 0; i < 8; i++) {
            LLVMValueRef *sum = &e->registers[p->op->v][8 * J + i];
            LLVMValueRef reaches =
                LLVMBuildICmp(e->b, p->strict ? LLVMIntSGT : LLVMIntSGE, query_row(e, i), key_row(e, i), "");
            LLVMValueRef own = choose(e, both(e, is_own, reaches), get(e, e->f32, s->own[product][i]), real(e, 0)),
                         x = J + 1 < WARPS ? choose(e, is_own, own, get(e, e->f32, s->before[product][J][i])) : own;
            set(e, *sum, LLVMBuildFAdd(e->b, get(e, e->f32, *sum), x, ""));
        }
    }
}

void multiply_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct op *leader = channel_leader(e->p, op);
    const struct product p = product_of(c, op);
    if (leader == op) {
        const uint32_t n = follower(e->p, op) ? 2 : 1;
        go_through_rows(c, op);
        barrier(e); /* keys and references are there */
        put_factors(c);
        multiply_own(c, n);
        for (uint32_t J = 0; J + 1 < WARPS; J++)
            multiply_before(c, n, J);
    }
    add_blocks(&p, leader == op ? 0 : 1);
}
