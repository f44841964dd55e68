/* lower/channel.c - kernels on tensor cores that make decays of channels themselves (plan.by_channel, SPACE_CHANNEL).
 *
 * A chunk is 64 positions: each of four warps has 16 of them, a lane a few channels side by side, of all 16. So sums over positions
 * need no other lane, rows of memory are read and written whole, and what maps make of keys, queries and gates is made
 * once. A product P_ij = sum_c Q_ic K_jc 2^(b_ic - b_jc) takes its operands, with the factors on them, by way of shared
 * memory (decay.c says what a factor is):
 *
 *     blocks beyond the diagonal   queries to the end of the keys' block, 2^(b_i - e_J), and keys to there, 2^(e_J - b_j)
 *     a diagonal block             the reference is in its middle, where no channel decays by much; otherwise its pairs are
 *                                  taken apart by halves: the upper 8, 4, 2, 1 rows of each 16, 8, 4, 2 are queries, the
 *                                  lower ones keys, and the reference is the last of these. No factor is above 1 then.
 *
 * What the query does not reach is left out by selection. */
#include "lower/channel.h"

#include "lower/matrix.h"

#include <stdlib.h>

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS };

struct channels channels_of(struct emit *e)
{
    const uint32_t n = e->p->block[TG_DQK];
    return (struct channels){.e = e,
                             .n = n,
                             .each = n / 32,
                             .row_bytes = 2 * n,
                             .first = mul(e, e->lane, imm(e, n / 32)),
                             .row = mul(e, e->warp, imm(e, ROWS))};
}

static bool is_packed(const struct value *v)
{
    return v->stmt < 0 && tg_dtype_bytes(v->dtype) == 2;
}

/* Words are taken apart at each use anew: two floats kept for each are registers that there are not. */
static LLVMValueRef unpacked(struct emit *e, uint32_t v, uint32_t index, LLVMValueRef nothing)
{
    LLVMValueRef word = opaque(e, as(e, get(e, e->f32, e->registers[v][index & ~1u]), e->i32));
    return unpack(e, nothing ? LLVMBuildOr(e->b, word, nothing, "") : word, index & 1);
}

/* A map of a loaded word's element and of what channels have in common, not stored: made at each use anew, as words are taken apart. */
static bool is_made_anew(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    const tg_stmt *s = value->stmt < 0 ? NULL : &p->algorithm->body[value->stmt];
    tg_operand reads[TG_MAX_READS];
    bool packed = s && s->op == TG_STMT_MAP && value->n_dims == 2 && !(p->slice.stores >> TG_OPERAND_TILE(s->out) & 1);
    for (uint32_t k = 0, n = packed ? tg_stmt_reads(s, reads) : 0; k < n; k++) {
        const struct value *read = &p->values[plan_find(p, reads[k], -1)];
        packed &= read->stmt < 0 && (read->space != SPACE_CHANNEL || is_packed(read));
    }
    return packed;
}

static LLVMValueRef map_element(const struct channels *c, struct expression *x, uint32_t i);

static LLVMValueRef made_anew(struct emit *e, uint32_t v, uint32_t index)
{
    const int stmt = e->p->values[v].stmt;
    const struct value *made = &e->p->values[plan_find(e->p, e->p->algorithm->body[stmt].out, -1)];
    const struct channels c = channels_of(e);
    struct expression *x = expression_begin(e, stmt, made, false);
    LLVMValueRef out = x ? map_element(&c, x, index) : real(e, 0);
    free(x);
    return out;
}

LLVMValueRef channel_element(struct emit *e, uint32_t v, uint32_t index)
{
    const struct value *value = &e->p->values[v];
    if (is_made_anew(e->p, v))
        return made_anew(e, v, index);
    if (value->n_dims == 1)
        index %= e->p->block[TG_DQK] / 32;
    return is_packed(value) ? unpacked(e, v, index, NULL) : get(e, e->f32, e->registers[v][index]);
}

/* ---- memory ---- */

/* Bytes from one position's row to the next. */
static LLVMValueRef row_stride(struct emit *e, uint32_t tile)
{
    return mul(e, tensor_stride(e, tile, 2), imm64(e, tg_dtype_bytes(plan_memory_dtype(e->p, tile))));
}

LLVMTypeRef channel_type(const struct channels *c, tg_dtype dtype)
{
    return tg_dtype_bytes(dtype) == 2 ? LLVMVectorType(c->e->i32, c->each / 2) : LLVMVectorType(c->e->f32, c->each);
}

static void load_row(const struct channels *c, uint32_t v, LLVMValueRef from, LLVMValueRef *registers)
{
    struct emit *e = c->e;
    const tg_dtype dtype = e->p->values[v].dtype;
    const uint32_t words = tg_dtype_bytes(dtype) == 2 ? c->each / 2 : c->each;
    LLVMValueRef x = LLVMBuildLoad2(e->b, channel_type(c, dtype), from, "");
    LLVMSetAlignment(x, c->each * tg_dtype_bytes(dtype));
    for (uint32_t i = 0; i < words; i++)
        set(e, registers[i * (c->each / words)], as(e, LLVMBuildExtractElement(e->b, x, imm(e, i), ""), e->f32));
}

/* A value before it of the same tile, at the other positions; -1: none. */
static int loaded_before(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < v; i++)
        if (p->values[i].space == SPACE_CHANNEL && p->values[i].stmt < 0 &&
            TG_OPERAND_TILE(p->values[i].operand) == TG_OPERAND_TILE(p->values[v].operand))
            return (int)i;
    return -1;
}

/* Behind the end of the chunk the last row once more: nothing of it is stored or reached. */
static void load_channels(struct emit *e, uint32_t v)
{
    const struct channels c = channels_of(e);
    const struct value *value = &e->p->values[v];
    const uint32_t tile = TG_OPERAND_TILE(value->operand);
    const int before = loaded_before(e->p, v);
    for (uint32_t i = 0; before >= 0 && i < ROWS * c.each; i++)
        set(e, e->registers[v][i], get(e, e->f32, e->registers[before][i]));
    if (before >= 0)
        return;
    if (value->n_dims == 1) {
        load_row(&c, v, tensor_address(e, value->operand, tile, &e->at, value->dims, c.first, NULL), e->registers[v]);
        return;
    }
    LLVMValueRef row = smaller(e, c.row, sub(e, e->at.length, imm(e, 1))), stride = row_stride(e, tile);
    LLVMValueRef from = tensor_address(e, value->operand, tile, &e->at, value->dims, row, c.first);
    for (uint32_t r = 0; r < ROWS; r++) {
        load_row(&c, v, from, &e->registers[v][r * c.each]);
        LLVMValueRef is_last = LLVMBuildNot(e->b, less(e, add(e, c.row, imm(e, r + 1)), e->at.length), "");
        from = byte_offset(e, from, choose(e, is_last, imm64(e, 0), stride));
    }
}

LLVMValueRef channel_words(const struct channels *c, tg_dtype dtype, const LLVMValueRef *x)
{
    struct emit *e = c->e;
    LLVMValueRef out = LLVMGetUndef(channel_type(c, dtype));
    const uint32_t together = tg_dtype_bytes(dtype) == 2 ? 2 : 1;
    for (uint32_t i = 0; i < c->each / together; i++)
        out = LLVMBuildInsertElement(e->b, out, together == 2 ? pack(e, x[2 * i], x[2 * i + 1]) : x[i], imm(e, i), "");
    return out;
}

/* ---- maps ---- */

/* Does nothing read the map but its store? Then it is made there, row by row: registers are what is short. */
static bool is_only_stored(const struct plan *p, uint32_t v)
{
    bool read = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        tg_operand reads[TG_MAX_READS];
        const uint32_t n = op->stmt >= 0 && op->v != v ? tg_stmt_reads(&p->algorithm->body[op->stmt], reads) : 0;
        for (uint32_t k = 0; k < n; k++)
            read |= plan_find(p, reads[k], p->values[op->v].nest) == (int)v;
    }
    return p->values[v].n_dims == 2 && p->algorithm->body[p->values[v].stmt].op == TG_STMT_MAP && !read;
}

static LLVMValueRef map_element(const struct channels *c, struct expression *x, uint32_t i)
{
    struct emit *e = c->e;
    LLVMValueRef row = add(e, c->row, imm(e, i / c->each)), channel = add(e, c->first, imm(e, i % c->each));
    const bool is_row = x->out->n_dims == 2;
    const struct element_at at = {.row_class = is_row ? i / c->each : i,
                                  .column_class = i % c->each,
                                  .row = is_row ? row : channel,
                                  .column = channel,
                                  .self_index = i};
    return expression_element(e, x, &at);
}

static void map_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct value *v = &e->p->values[op->v];
    const bool is_later = is_only_stored(e->p, op->v) || is_made_anew(e->p, op->v);
    struct expression *x = is_later ? NULL : expression_begin(e, op->stmt, v, false);
    for (uint32_t i = 0; x && i < (v->n_dims == 1 ? 1 : ROWS) * c->each; i++)
        set(e, e->registers[op->v][i], map_element(c, x, i));
    free(x);
}

/* ---- stores ---- */

static void store_row(const struct channels *c, const struct op *op, LLVMValueRef words, LLVMValueRef to)
{
    const uint32_t bytes = tg_dtype_bytes(plan_memory_dtype(c->e->p, op->tile));
    LLVMSetAlignment(LLVMBuildStore(c->e->b, words, to), c->each * bytes);
}

static LLVMValueRef words_of(const struct channels *c, const struct op *op, struct expression *x, uint32_t r)
{
    struct emit *e = c->e;
    LLVMValueRef row[8];
    for (uint32_t j = 0; j < c->each; j++)
        row[j] = x ? map_element(c, x, r * c->each + j) : channel_element(e, op->v, r * c->each + j);
    return channel_words(c, plan_memory_dtype(e->p, op->tile), row);
}

static void store_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct value *v = &e->p->values[op->v];
    if (v->n_dims == 1) { /* every warp has it */
        LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, 0), ""));
        LLVMValueRef to = tensor_address(e, v->operand, op->tile, &e->at, v->dims, c->first, NULL);
        store_row(c, op, words_of(c, op, NULL, 0), to);
        end_if(e, after);
        return;
    }
    struct expression *x = is_only_stored(e->p, op->v) ? expression_begin(e, v->stmt, v, false) : NULL;
    LLVMValueRef to = tensor_address(e, v->operand, op->tile, &e->at, v->dims, c->row, c->first),
                 stride = row_stride(e, op->tile);
    for (uint32_t r = 0; r < ROWS; r++) {
        LLVMValueRef words = words_of(c, op, x, r);
        LLVMBasicBlockRef after = begin_if(e, less(e, add(e, c->row, imm(e, r)), e->at.length));
        store_row(c, op, words, to);
        end_if(e, after);
        to = byte_offset(e, to, stride);
    }
    free(x);
}

/* ---- sums over positions ---- */

static LLVMValueRef exchange_place(const struct channels *c, LLVMValueRef warp)
{
    struct emit *e = c->e;
    LLVMValueRef index = add(e, mul(e, warp, imm(e, c->n)), c->first);
    const uint32_t behind = e->p->scratch_offset + CHANNEL_TILES * WARPS * ROWS * c->row_bytes;
    return byte_offset(e, e->arena, add(e, imm(e, behind), mul(e, index, imm(e, 4))));
}

/* What warp w has left there. */
static void load_exchanged(const struct channels *c, uint32_t w, LLVMValueRef out[8])
{
    struct emit *e = c->e;
    LLVMValueRef x = LLVMBuildLoad2(e->b, channel_type(c, TG_F32), exchange_place(c, imm(e, w)), "");
    LLVMSetAlignment(x, 4 * c->each);
    for (uint32_t j = 0; j < c->each; j++)
        out[j] = LLVMBuildExtractElement(e->b, x, imm(e, j), "");
}

/* What each warp has of the lane's channels, to all warps. */
static void exchange(const struct channels *c, const LLVMValueRef *mine, LLVMValueRef all[WARPS][8])
{
    struct emit *e = c->e;
    barrier(e); /* what was there has been read */
    LLVMSetAlignment(LLVMBuildStore(e->b, channel_words(c, TG_F32, mine), exchange_place(c, e->warp)), 4 * c->each);
    barrier(e);
    for (uint32_t w = 0; w < WARPS; w++)
        load_exchanged(c, w, all[w]);
}

/* Element of what is summed: nothing behind the end of the chunk. */
static LLVMValueRef addend(const struct channels *c, const struct op *op, uint32_t r, uint32_t j)
{
    LLVMValueRef there = less(c->e, add(c->e, c->row, imm(c->e, r)), c->e->at.length);
    return choose(c->e, there, channel_element(c->e, op->a, r * c->each + j), real(c->e, 0));
}

/* A prefix sum: of the warp's rows, and before them those of the warps before. */
static void scan_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const bool exclusive = e->p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE;
    LLVMValueRef sum[8] = {NULL}, all[WARPS][8], sums[ROWS][8];
    for (uint32_t j = 0; j < c->each; j++)
        sum[j] = real(e, 0);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t j = 0; j < c->each; j++) {
            LLVMValueRef before = sum[j];
            sum[j] = LLVMBuildFAdd(e->b, sum[j], addend(c, op, r, j), "");
            sums[r][j] = exclusive ? before : sum[j];
        }
    exchange(c, sum, all);
    for (uint32_t j = 0; j < c->each; j++) {
        LLVMValueRef base = real(e, 0);
        for (uint32_t w = 0; w + 1 < WARPS; w++)
            base = choose(e, less(e, imm(e, w), e->warp), LLVMBuildFAdd(e->b, base, all[w][j], ""), base);
        for (uint32_t r = 0; r < ROWS; r++)
            set(e, e->registers[op->v][r * c->each + j], LLVMBuildFAdd(e->b, base, sums[r][j], ""));
    }
}

static void total_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    LLVMValueRef sum[8] = {NULL}, all[WARPS][8];
    for (uint32_t j = 0; j < c->each; j++) {
        sum[j] = real(e, 0);
        for (uint32_t r = 0; r < ROWS; r++)
            sum[j] = LLVMBuildFAdd(e->b, sum[j], addend(c, op, r, j), "");
    }
    exchange(c, sum, all);
    for (uint32_t j = 0; j < c->each; j++) {
        LLVMValueRef total = real(e, 0);
        for (uint32_t w = 0; w < WARPS; w++)
            total = LLVMBuildFAdd(e->b, total, all[w][j], "");
        set(e, e->registers[op->v][j], total);
    }
}

/* ---- products of positions ---- */

enum tile { QUERIES, NEAR_KEYS, KEYS }; /* CHANNEL_TILES */

struct product {
    struct channels c;
    const struct op *op;
    uint32_t queries, keys; /* values */
    bool strict;
    LLVMValueRef begin[8], end[8],
        middle[8];        /* decay before the warp's rows, of their last and of the one in their middle */
    LLVMValueRef *sums;   /* 16 rows by 64 */
    LLVMValueRef nothing; /* 0, of which ptxas cannot know that it is the same in each step of a loop; or NULL */
    LLVMValueRef lane;    /* its number, anew for each set of operands, lest addresses be kept */
};

static LLVMValueRef query_decay(const struct product *p, uint32_t r, uint32_t j)
{
    return channel_element(p->c.e, p->op->c, r * p->c.each + j);
}

static LLVMValueRef key_decay(const struct product *p, uint32_t r, uint32_t j)
{
    return channel_element(p->c.e, p->op->w, r * p->c.each + j);
}

/* The same number, of which nothing that was made of it before is kept in registers. */
static LLVMValueRef forgotten(struct emit *e, LLVMValueRef x)
{
    return as(e, opaque(e, as(e, x, e->i32)), e->f32);
}

static LLVMValueRef two_to(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    return exp2_approx(e, LLVMBuildFSub(e->b, a, b, ""));
}

static LLVMValueRef tile_address(const struct product *p, enum tile tile)
{
    struct emit *e = p->c.e;
    return byte_offset(e, e->arena, imm(e, e->p->scratch_offset + tile * (WARPS * ROWS * p->c.row_bytes)));
}

/* The lane's channels of the warp's r-th row: units of 16 bytes, exclusive-ored with the row. */
static void put_row(const struct product *p, enum tile tile, uint32_t r, LLVMValueRef words)
{
    struct emit *e = p->c.e;
    const uint32_t bytes = 2 * p->c.each;
    LLVMValueRef place = LLVMBuildXor(e->b, mul(e, p->lane, imm(e, bytes)), imm(e, (r & 7) * 16), "");
    LLVMValueRef at = add(e, add(e, mul(e, p->c.row, imm(e, p->c.row_bytes)), place), imm(e, r * p->c.row_bytes));
    LLVMSetAlignment(LLVMBuildStore(e->b, words, byte_offset(e, tile_address(p, tile), at)), bytes);
}

/* Row r of queries or keys times a weight, and times more where that is not NULL; zeros unless `there`, which NULL always is. */
static void put_weighted(const struct product *p, enum tile tile, uint32_t r, const LLVMValueRef *weight,
                         const LLVMValueRef *more, LLVMValueRef there)
{
    struct emit *e = p->c.e;
    const uint32_t v = tile == QUERIES ? p->queries : p->keys;
    LLVMValueRef x[8];
    for (uint32_t j = 0; j < p->c.each; j++) {
        const uint32_t i = r * p->c.each + j;
        LLVMValueRef own = is_packed(&e->p->values[v]) ? unpacked(e, v, i, p->nothing) : channel_element(e, v, i);
        x[j] = LLVMBuildFMul(e->b, own, weight[j], "");
        x[j] = more ? LLVMBuildFMul(e->b, x[j], more[j], "") : x[j];
    }
    LLVMValueRef words = channel_words(&p->c, e->p->shape.io, x), none = LLVMConstNull(LLVMTypeOf(words));
    put_row(p, tile, r, there ? choose(e, there, words, none) : words);
}

/* sums of block `column` += the warp's rows of queries by 16 rows of keys from `row` on. */
static void multiply(const struct product *p, enum tile keys, LLVMValueRef row, LLVMValueRef c[8])
{
    struct emit *e = p->c.e;
    LLVMValueRef lane = opaque(e, e->lane), in_matrix = modulo(e, lane, imm(e, 8)),
                 low = modulo(e, divide(e, lane, imm(e, 8)), imm(e, 2)), high = divide(e, lane, imm(e, 16));
    LLVMValueRef pitch = imm(e, p->c.row_bytes);
    LLVMValueRef query_row = add(e, p->c.row, add(e, in_matrix, mul(e, low, imm(e, 8)))),
                 key_row = add(e, row, add(e, in_matrix, mul(e, high, imm(e, 8))));
    LLVMValueRef a = byte_offset(e, tile_address(p, QUERIES), mul(e, query_row, pitch)),
                 b = byte_offset(e, tile_address(p, keys), mul(e, key_row, pitch));
    LLVMValueRef a_unit = LLVMBuildXor(e->b, high, in_matrix, ""), b_unit = LLVMBuildXor(e->b, low, in_matrix, "");
    for (uint32_t k = 0; k < p->c.n / 16; k++) {
        LLVMValueRef rows[4], columns[4];
        fetch_matrices(e, byte_offset(e, a, mul(e, LLVMBuildXor(e->b, a_unit, imm(e, 2 * k), ""), imm(e, 16))), false,
                       rows);
        fetch_matrices(e, byte_offset(e, b, mul(e, LLVMBuildXor(e->b, b_unit, imm(e, 2 * k), ""), imm(e, 16))), false,
                       columns);
        for (uint32_t half = 0; half < 2; half++)
            multiply_words(e, &c[4 * half], rows, columns[2 * half], columns[2 * half + 1]);
    }
}

/* Adds what `keep` says of a diagonal block to its sums. */
typedef LLVMValueRef keeps(const struct product *p, LLVMValueRef query, LLVMValueRef key, LLVMValueRef level);

static void add_kept(const struct product *p, LLVMValueRef own[8], LLVMValueRef c[8], keeps *keep, LLVMValueRef level)
{
    struct emit *e = p->c.e;
    for (uint32_t i = 0; i < 8; i++) {
        LLVMValueRef query = add(e, e->quad_row, imm(e, i % 4 / 2 * 8)),
                     key = add(e, mul(e, e->quad_column, imm(e, 2)), imm(e, i / 4 * 8 + i % 2));
        LLVMValueRef kept = choose(e, keep(p, query, key, level), c[i], real(e, 0));
        set(e, own[i], LLVMBuildFAdd(e->b, get(e, e->f32, own[i]), kept, ""));
    }
}

static LLVMValueRef is_reached(const struct product *p, LLVMValueRef query, LLVMValueRef key, LLVMValueRef level)
{
    (void)level;
    return LLVMBuildICmp(p->c.e->b, p->strict ? LLVMIntSGT : LLVMIntSGE, query, key, "");
}

static LLVMValueRef is_number(struct emit *e, LLVMValueRef x, int64_t number)
{
    return LLVMBuildICmp(e->b, LLVMIntEQ, x, imm(e, number), "");
}

/* Levels 0 to 3 are halves of 16, 8, 4, 2 rows; of level 4 are queries and keys that are the same. */
enum { LEVELS = 4 };

static LLVMValueRef is_of_level(const struct product *p, LLVMValueRef query, LLVMValueRef key, LLVMValueRef level)
{
    struct emit *e = p->c.e;
    LLVMValueRef differ = LLVMBuildXor(e->b, query, key, ""), same = is_number(e, level, LEVELS);
    LLVMValueRef half = LLVMBuildLShr(e->b, differ, choose(e, same, imm(e, 0), sub(e, imm(e, LEVELS - 1), level)), "");
    LLVMValueRef halves =
        LLVMBuildAnd(e->b, is_number(e, half, 1), LLVMBuildICmp(e->b, LLVMIntSGT, query, key, ""), "");
    return choose(e, same, is_number(e, differ, 0), halves);
}

static void zeros(struct emit *e, LLVMValueRef c[8])
{
    for (uint32_t i = 0; i < 8; i++)
        c[i] = real(e, 0);
}

/* Decay of the last key of the half that row r is in or behind. */
static LLVMValueRef level_reference(const struct product *p, uint32_t r, uint32_t j, LLVMValueRef level)
{
    LLVMValueRef reference = key_decay(p, r, j);
    for (uint32_t i = 0; i < LEVELS; i++) {
        const uint32_t half = ROWS / 2 >> i;
        reference = choose(p->c.e, is_number(p->c.e, level, i), key_decay(p, r / (2 * half) * 2 * half + half - 1, j),
                           reference);
    }
    return reference;
}

/* Is row r a query of its level? */
static LLVMValueRef is_query_of(const struct product *p, uint32_t r, LLVMValueRef level)
{
    struct emit *e = p->c.e;
    uint32_t queries = 0;
    for (uint32_t i = 0; i < LEVELS; i++)
        queries |= (r / (ROWS / 2 >> i) & 1) << i;
    LLVMValueRef bit = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, imm(e, queries), level, ""), imm(e, 1), "");
    return is_number(e, bit, 1);
}

static void put_level(struct product *p, LLVMValueRef level)
{
    struct emit *e = p->c.e;
    LLVMValueRef same = is_number(e, level, LEVELS);
    p->lane = opaque(e, e->lane);
    for (uint32_t r = 0; r < ROWS; r++) {
        LLVMValueRef is_query = is_query_of(p, r, level), weight[8];
        for (uint32_t j = 0; j < p->c.each; j++) {
            LLVMValueRef reference = level_reference(p, r, j, level);
            LLVMValueRef decay = choose(e, is_query, LLVMBuildFSub(e->b, query_decay(p, r, j), reference, ""),
                                        LLVMBuildFSub(e->b, reference, key_decay(p, r, j), ""));
            weight[j] = choose(e, same, real(e, 1), exp2_approx(e, decay));
        }
        put_weighted(p, QUERIES, r, weight, NULL, LLVMBuildOr(e->b, same, is_query, ""));
        put_weighted(p, NEAR_KEYS, r, weight, NULL, LLVMBuildNot(e->b, is_query, ""));
    }
}

/* The diagonal block, by halves. */
static void multiply_levels(struct product *p, LLVMValueRef own[8])
{
    struct emit *e = p->c.e;
    LLVMValueRef level, c[8];
    struct counted l = loop_begin(e, imm(e, p->strict ? LEVELS : LEVELS + 1), &level);
    l.rolled = true;
    p->nothing = LLVMBuildAnd(e->b, divide(e, e->at.length, imm(e, 1 << 20)), level, ""); /* a chunk has 64 */
    sync_warp(e);
    put_level(p, level);
    p->nothing = NULL;
    sync_warp(e);
    zeros(e, c);
    multiply(p, NEAR_KEYS, p->c.row, c);
    add_kept(p, own, c, is_of_level, level);
    loop_end(e, &l, 1);
}

/* Do all channels decay by little from before the warp's rows to their middle, and from there to their end? */
static LLVMValueRef is_near(const struct product *p)
{
    struct emit *e = p->c.e;
    LLVMValueRef near = NULL, most = real(e, most_growth(e));
    for (uint32_t j = 0; j < p->c.each; j++) {
        LLVMValueRef first = LLVMBuildFSub(e->b, p->begin[j], p->middle[j], ""),
                     second = LLVMBuildFSub(e->b, p->middle[j], p->end[j], "");
        near = both(e, near, LLVMBuildFCmp(e->b, LLVMRealOLE, first, most, ""));
        near = both(e, near, LLVMBuildFCmp(e->b, LLVMRealOLE, second, most, ""));
    }
    return all_lanes(e, near);
}

/* Operands of the diagonal block with the reference in its middle, and keys as the end of their block has them. */
static void put_operands(struct product *p, bool has_keys)
{
    struct emit *e = p->c.e;
    LLVMValueRef grown[8], middle[8], end[8];
    p->lane = opaque(e, e->lane);
    for (uint32_t j = 0; j < p->c.each; j++) {
        middle[j] = forgotten(e, p->middle[j]);
        end[j] = forgotten(e, p->end[j]);
        grown[j] = two_to(e, middle[j], end[j]);
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        LLVMValueRef query[8], key[8];
        for (uint32_t j = 0; j < p->c.each; j++) {
            query[j] = two_to(e, query_decay(p, r, j), middle[j]);
            key[j] = two_to(e, end[j], key_decay(p, r, j));
        }
        put_weighted(p, QUERIES, r, query, NULL, NULL);
        if (has_keys)
            continue;
        put_weighted(p, KEYS, r, key, NULL, NULL);
        put_weighted(p, NEAR_KEYS, r, key, grown, NULL);
    }
}

/* Has the product before this one left the same keys there? What is stored between them goes through the place of queries
 * (fragment.c): 64 rows of 9 units of 16 bytes at most. What a block that is not near does to its keys, it does again. */
static bool has_keys(const struct product *p)
{
    const struct plan *plan = p->c.e->p;
    bool same = false;
    for (const struct op *op = plan->ops; op < p->op; op++)
        if (op->kind == OP_CONTRACT && plan->values[op->a].space == SPACE_CHANNEL)
            same = (op->a == p->keys || op->b == p->keys) && op->w == p->op->w;
    return same && WARPS * ROWS * p->c.row_bytes >= WARPS * ROWS * 9 * 16;
}

static void multiply_diagonal(struct product *p, LLVMValueRef own[8])
{
    struct emit *e = p->c.e;
    LLVMValueRef near = is_near(p), c[8];
    put_operands(p, has_keys(p));
    sync_warp(e);
    LLVMBasicBlockRef after = begin_if(e, near);
    zeros(e, c);
    multiply(p, NEAR_KEYS, p->c.row, c);
    add_kept(p, own, c, is_reached, NULL);
    end_if(e, after);
    after = begin_if(e, LLVMBuildNot(e->b, near, ""));
    multiply_levels(p, own);
    end_if(e, after);
}

/* The block of the warp's queries by the keys of warp J, if these are before them. */
static void multiply_beyond(struct product *p, uint32_t J)
{
    struct emit *e = p->c.e;
    LLVMValueRef *sums = &p->sums[8 * J], c[8], end[8];
    LLVMBasicBlockRef after = begin_if(e, less(e, imm(e, J), e->warp));
    p->lane = opaque(e, e->lane);
    load_exchanged(&p->c, J, end);
    sync_warp(e); /* queries have been read */
    for (uint32_t r = 0; r < ROWS; r++) {
        LLVMValueRef weight[8];
        for (uint32_t j = 0; j < p->c.each; j++)
            weight[j] = two_to(e, query_decay(p, r, j), end[j]);
        put_weighted(p, QUERIES, r, weight, NULL, NULL);
    }
    sync_warp(e);
    zeros(e, c);
    multiply(p, KEYS, imm(e, J * ROWS), c);
    for (uint32_t i = 0; i < 8; i++)
        set(e, sums[i], LLVMBuildFAdd(e->b, get(e, e->f32, sums[i]), c[i], ""));
    end_if(e, after);
}

static void find_ends(struct product *p)
{
    struct emit *e = p->c.e;
    LLVMValueRef ends[WARPS][8];
    for (uint32_t j = 0; j < p->c.each; j++) {
        p->middle[j] = key_decay(p, ROWS / 2 - 1, j);
        p->end[j] = key_decay(p, ROWS - 1, j);
    }
    exchange(&p->c, p->end, ends);
    for (uint32_t j = 0; j < p->c.each; j++) {
        p->begin[j] = real(e, 0);
        for (uint32_t w = 0; w + 1 < WARPS; w++)
            p->begin[j] = choose(e, less(e, imm(e, w), e->warp), ends[w][j], p->begin[j]);
    }
}

static void multiply_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    LLVMValueRef own[8];
    const bool in_order = e->p->values[op->a].dims[0] == TG_LQ;
    struct product p = {.c = *c,
                        .op = op,
                        .queries = in_order ? op->a : op->b,
                        .keys = in_order ? op->b : op->a,
                        .strict = e->p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE,
                        .sums = e->registers[op->v]};
    find_ends(&p);
    for (uint32_t i = 0; i < 8; i++)
        set(e, own[i] = local(e, e->f32, "own"), real(e, 0));
    multiply_diagonal(&p, own);
    barrier(e); /* keys are there */
    for (uint32_t J = 0; J + 1 < WARPS; J++)
        multiply_beyond(&p, J);
    for (uint32_t w = 0; w < WARPS; w++) {
        LLVMValueRef is_own = LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, w), "");
        for (uint32_t i = 0; i < 8; i++) {
            LLVMValueRef sum = get(e, e->f32, p.sums[8 * w + i]);
            LLVMValueRef term = choose(e, is_own, get(e, e->f32, own[i]), real(e, 0));
            set(e, p.sums[8 * w + i], LLVMBuildFAdd(e->b, sum, term, ""));
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------------------- */

static void copy_channels(const struct op *op, struct emit *e, uint32_t n)
{
    if (op->kind == OP_COPY && is_made_anew(e->p, op->v))
        return;
    for (uint32_t i = 0; i < n; i++)
        set(e, e->registers[op->v][i], op->kind == OP_COPY ? channel_element(e, op->a, i) : real(e, 0));
}

void emit_channels(struct emit *e, const struct op *op)
{
    const struct channels c = channels_of(e);
    switch (op->kind) {
    case OP_LOAD:
        load_channels(e, op->v);
        break;
    case OP_ZERO:
    case OP_COPY:
        copy_channels(op, e, (e->p->values[op->v].n_dims == 2 ? ROWS : 1) * c.each);
        break;
    case OP_MAP:
        map_channels(&c, op);
        break;
    case OP_SCAN:
        scan_channels(&c, op);
        break;
    case OP_TOTAL:
        total_channels(&c, op);
        break;
    case OP_STORE:
        store_channels(&c, op);
        break;
    default:
        multiply_channels(&c, op);
    }
}
