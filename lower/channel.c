/* lower/channel.c - kernels on tensor cores that make decays of channels themselves (plan.by_channel, SPACE_CHANNEL).
 *
 * A chunk is 64 positions: each of four warps has 16 of them, a lane a few channels side by side, of all 16. So sums over positions
 * need no other lane, and rows of memory are read and written whole.
 *
 * Registers are what is short. In them are gates, as they come in fp32, and their sums; rows of 16-bit tensors wait in
 * shared memory, where the lane that reads them has had them copied; what maps make of either is made where it is read. All that needs
 * rows is done in one pass over them, before the first product that needs it: what is stored of them, and operands of
 * products of positions (channel_product.c), which take the places of the rows that they are made of. */
#include "compiler/plan_channel.h"
#include "compiler/plan_program.h"
#include "lower/channel.h"

#include "lower/matrix.h"

#include <stdlib.h>

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS };
enum { HALF = ROWS / 2 }; /* of a warp's rows of fp32 that wait */

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

bool is_of_channels(const struct plan *p, const struct op *op)
{
    if (op->kind == OP_CONTRACT || op->kind == OP_DOT)
        return p->values[op->a].space == SPACE_CHANNEL || p->values[op->v].space == SPACE_CHANNEL;
    const bool has_value = op->kind == OP_LOAD || op->kind == OP_ZERO || op->kind == OP_COPY || op->kind == OP_MAP ||
                           op->kind == OP_SCAN || op->kind == OP_TOTAL || op->kind == OP_STORE;
    return has_value && p->values[op->v].space == SPACE_CHANNEL;
}

/* ---- elements ---- */

/* A map of rows. */
static bool is_made_at_use(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    return value->stmt >= 0 && value->n_dims == 2 && p->algorithm->body[value->stmt].op == TG_STMT_MAP;
}

LLVMValueRef channel_map_made(struct emit *e, uint32_t v, uint32_t index)
{
    const int stmt = e->p->values[v].stmt;
    const struct value *made = &e->p->values[plan_find(e->p, e->p->algorithm->body[stmt].out, e->p->values[v].nest)];
    const struct channels c = channels_of(e);
    struct expression *x = expression_begin(e, stmt, made, false);
    LLVMValueRef out = x ? channel_map_element(&c, x, index) : real(e, 0);
    free(x);
    return out;
}

LLVMValueRef channel_element(struct emit *e, uint32_t v, uint32_t index)
{
    const struct value *value = &e->p->values[v];
    if (e->p->spreads)
        return spread_element(e, v, index);
    if (is_made_at_use(e->p, v))
        return channel_map_made(e, v, index);
    if (value->n_dims == 1)
        index %= e->p->block[TG_DQK] / 32;
    if (value->stmt >= 0 || tg_dtype_bytes(value->dtype) != 2)
        return get(e, e->f32, e->registers[v][index]);
    return unpack(e, as(e, get(e, e->f32, e->registers[v][index & ~1u]), e->i32), index & 1);
}

LLVMValueRef channel_term(const struct channels *c, uint32_t v, uint32_t index)
{
    struct emit *e = c->e;
    LLVMValueRef x = channel_element(e, v, index), there = plan_is_zero_behind(e->p, v) ? NULL : channels_there(c);
    return there ? choose(e, there, x, real(e, 0)) : x;
}

bool channel_is_of(const struct plan *p, uint32_t v, uint32_t u)
{
    tg_operand reads[TG_MAX_READS];
    bool is = v == u;
    for (uint32_t k = 0, n = is_made_at_use(p, v) ? tg_stmt_reads(&p->algorithm->body[p->values[v].stmt], reads) : 0;
         k < n; k++)
        is |= channel_is_of(p, (uint32_t)plan_find(p, reads[k], p->values[v].nest), u);
    return is;
}

LLVMValueRef query_decay(const struct channels *c, const struct op *op, uint32_t r, uint32_t j)
{
    return channel_element(c->e, op->c, r * c->each + j);
}

LLVMValueRef key_decay(const struct channels *c, const struct op *op, uint32_t r, uint32_t j)
{
    return channel_element(c->e, op->w, r * c->each + j);
}

LLVMValueRef two_to(struct emit *e, LLVMValueRef later, LLVMValueRef earlier)
{
    return exp2_approx(e, LLVMBuildFSub(e->b, later, earlier, ""));
}

/* ---- shared memory ---- */

LLVMValueRef channel_tile(struct emit *e, uint32_t tile)
{
    return byte_offset(e, e->arena, imm(e, e->p->scratch_offset + tile * plan_channel_tile(e->p)));
}

LLVMValueRef channel_place(const struct channels *c, uint32_t r)
{
    struct emit *e = c->e;
    LLVMValueRef unit = LLVMBuildXor(e->b, mul(e, e->lane, imm(e, 2 * c->each)), imm(e, (r & 7) * 16), "");
    LLVMValueRef at = add(e, add(e, mul(e, c->row, imm(e, c->row_bytes)), unit), imm(e, r * c->row_bytes));
    return byte_offset(e, channel_tile(e, 0), at);
}

/* The first tile in which the value waits. */
static uint32_t first_tile(const struct plan *p, uint32_t v)
{
    const uint32_t tensor = TG_OPERAND_TILE(p->values[v].operand);
    return plan_waits(&p->values[v]) ? plan_waiting_before(p, tensor, 2)
                                     : plan_channel_tiles(p) - 1 + plan_waiting_before(p, tensor, 4);
}

LLVMValueRef channel_spare(struct emit *e, uint32_t pitch)
{
    const uint32_t left = ROWS * (2 * e->p->block[TG_DQK] - pitch);
    return byte_offset(e, channel_tile(e, plan_channel_tiles(e->p) - 1), mul(e, e->warp, imm(e, left)));
}

LLVMValueRef waiting_tile(struct emit *e, uint32_t v)
{
    return channel_tile(e, first_tile(e->p, v));
}

/* Where the lane's elements of the warp's r-th row wait: in the tiles of fp32 tensors nothing is exclusive-ored. */
static LLVMValueRef waiting_place(const struct channels *c, uint32_t v, uint32_t r)
{
    struct emit *e = c->e;
    const uint32_t row_bytes = 4 * c->n;
    if (plan_waits(&e->p->values[v]))
        return byte_offset(e, channel_place(c, r), imm(e, first_tile(e->p, v) * plan_channel_tile(e->p)));
    LLVMValueRef at = add(e, mul(e, c->row, imm(e, row_bytes / 2)), mul(e, c->first, imm(e, 4)));
    return byte_offset(e, byte_offset(e, waiting_tile(e, v), at), imm(e, r * row_bytes));
}

LLVMValueRef channel_floats(const struct channels *c, LLVMValueRef row)
{
    struct emit *e = c->e;
    LLVMValueRef index = add(e, mul(e, row, imm(e, c->n)), c->first);
    LLVMValueRef floats = byte_offset(e, channel_tile(e, 0), imm(e, plan_channel_floats(e->p)));
    return byte_offset(e, floats, mul(e, index, imm(e, 4)));
}

LLVMTypeRef channel_type(const struct channels *c, tg_dtype dtype)
{
    return tg_dtype_bytes(dtype) == 2 ? LLVMVectorType(c->e->i32, c->each / 2) : LLVMVectorType(c->e->f32, c->each);
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

/* ---- numbers of rows ---- */

static LLVMValueRef place_beside(struct emit *e, uint32_t v, LLVMValueRef row)
{
    const uint32_t before = plan_beside_before(e->p, TG_OPERAND_TILE(e->p->values[v].operand)),
                   numbers = plan_channel_numbers(e->p) + before * CHANNEL_NUMBERS;
    return byte_offset(e, channel_tile(e, 0), add(e, imm(e, numbers), mul(e, row, imm(e, 4))));
}

void put_beside(struct emit *e, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    if (!plan_is_beside(e->p, v))
        return;
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->quad_column, imm(e, 0), ""));
    for (uint32_t i = 0; i < 2; i++)
        LLVMBuildStore(e->b, get(e, e->f32, e->registers[v][2 * i]), place_beside(e, v, fragment_row(e, value, i)));
    end_if(e, after);
    sync_warp(e);
}

LLVMValueRef number_beside(struct emit *e, uint32_t v, LLVMValueRef row)
{
    return LLVMBuildLoad2(e->b, e->f32, place_beside(e, v, row), "");
}

/* ---- memory ---- */

LLVMValueRef channel_is_there(const struct channels *c, LLVMValueRef channel)
{
    return inside(c->e, &c->e->at, TG_DQK, c->n, channel);
}

LLVMValueRef channels_there(const struct channels *c)
{
    return channel_is_there(c, c->first);
}

/* The first of the lane's channels from which to load: where they are not there the block's first, which is. */
static LLVMValueRef first_there(const struct channels *c)
{
    LLVMValueRef there = channels_there(c);
    return there ? choose(c->e, there, c->first, imm(c->e, 0)) : c->first;
}

LLVMValueRef channel_row_stride(struct emit *e, uint32_t tile)
{
    return mul(e, tensor_stride(e, tile, 2), imm64(e, tg_dtype_bytes(plan_memory_dtype(e->p, tile))));
}

void channel_load_row(const struct channels *c, uint32_t v, LLVMValueRef from, LLVMValueRef *registers)
{
    struct emit *e = c->e;
    const tg_dtype dtype = e->p->values[v].dtype;
    const uint32_t words = tg_dtype_bytes(dtype) == 2 ? c->each / 2 : c->each;
    LLVMValueRef x = LLVMBuildLoad2(e->b, channel_type(c, dtype), from, "");
    LLVMSetAlignment(x, c->each * tg_dtype_bytes(dtype));
    for (uint32_t i = 0; i < words; i++)
        set(e, registers[i * (c->each / words)], as(e, LLVMBuildExtractElement(e->b, x, imm(e, i), ""), e->f32));
}

void channel_load_vector(const struct channels *c, uint32_t v)
{
    struct emit *e = c->e;
    const struct value *value = &e->p->values[v];
    const uint32_t tile = TG_OPERAND_TILE(value->operand);
    channel_load_row(c, v, tensor_address(e, value->operand, tile, &e->at, value->dims, first_there(c), NULL),
                     e->registers[v]);
}

static void fetch_row(const struct channels *c, uint32_t v, uint32_t r)
{
    channel_load_row(c, v, waiting_place(c, v, r), &c->e->registers[v][r * c->each]);
}

void fetch_channels(const struct channels *c, uint32_t r)
{
    const struct plan *p = c->e->p;
    for (uint32_t v = 0; v < p->n_values; v++)
        if (plan_waits(&p->values[v]))
            fetch_row(c, v, r);
}

int channel_same_before(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < v; i++)
        if (p->values[i].space == SPACE_CHANNEL && p->values[i].stmt < 0 && !p->values[i].direct &&
            p->values[i].nest == p->values[v].nest &&
            TG_OPERAND_TILE(p->values[i].operand) == TG_OPERAND_TILE(p->values[v].operand))
            return (int)i;
    return -1;
}

/* The warp's rows, neighbouring units of 16 bytes by neighbouring lanes. All of it is under way before any of it is read: a load into
 * registers would be put off until there is room for it. Behind the end of the chunk are zeros: nothing of them is stored or reached. */
static void load_rows(const struct channels *c, uint32_t v)
{
    struct emit *e = c->e;
    const struct value *value = &e->p->values[v];
    const uint32_t tile = TG_OPERAND_TILE(value->operand), bytes = tg_dtype_bytes(value->dtype),
                   row_bytes = c->n * bytes, together = 512 / row_bytes;
    LLVMValueRef row = divide(e, e->lane, imm(e, 32 / together)),
                 unit = mul(e, modulo(e, e->lane, imm(e, 32 / together)), imm(e, 16)), first = add(e, c->row, row);
    LLVMValueRef channel = divide(e, unit, imm(e, bytes)), there = channel_is_there(c, channel),
                 from = tensor_address(e, value->operand, tile, &e->at, value->dims, first, channel),
                 step = mul(e, channel_row_stride(e, tile), imm64(e, together)),
                 left = opaque(e, sub(e, e->at.length, first));
    for (uint32_t r = 0; r < (bytes == 2 ? ROWS : HALF); r += together) {
        LLVMValueRef turn = mul(e, modulo(e, add(e, row, imm(e, r)), imm(e, 8)), imm(e, 16));
        LLVMValueRef in_row = bytes == 2 ? LLVMBuildXor(e->b, unit, turn, "") : unit,
                     in_warp = mul(e, add(e, row, imm(e, r)), imm(e, row_bytes));
        LLVMValueRef to = add(e, mul(e, c->row, imm(e, c->row_bytes)), add(e, in_warp, in_row));
        async_copy(e, byte_offset(e, waiting_tile(e, v), to), from, 16, both(e, less(e, imm(e, r), left), there));
        from = byte_offset(e, from, step);
    }
    call0(e, "llvm.nvvm.cp.async.commit.group");
}

/* Those that do not wait. Behind the end of the chunk the last row once more. */
static void load_other_half(const struct channels *c, uint32_t v)
{
    struct emit *e = c->e;
    const struct value *value = &e->p->values[v];
    const uint32_t tile = TG_OPERAND_TILE(value->operand);
    LLVMValueRef there = channels_there(c), last = sub(e, e->at.length, imm(e, 1)),
                 row = smaller(e, add(e, c->row, imm(e, HALF)), last);
    LLVMValueRef from = tensor_address(e, value->operand, tile, &e->at, value->dims, row, first_there(c)),
                 stride = channel_row_stride(e, tile);
    for (uint32_t r = HALF; r < ROWS; r++) {
        channel_load_row(c, v, from, &e->registers[v][r * c->each]);
        for (uint32_t i = r * c->each; there && i < (r + 1) * c->each; i++)
            set(e, e->registers[v][i], choose(e, there, get(e, e->f32, e->registers[v][i]), real(e, 0)));
        LLVMValueRef is_next = less(e, add(e, c->row, imm(e, r)), last);
        from = byte_offset(e, from, choose(e, is_next, stride, imm64(e, 0)));
    }
}

static void load_channels(const struct channels *c, uint32_t v)
{
    struct emit *e = c->e;
    const struct value *value = &e->p->values[v];
    if (value->n_dims == 1) {
        channel_load_vector(c, v);
    } else if (channel_same_before(e->p, v) < 0) {
        load_rows(c, v);
        if (!plan_waits(value))
            load_other_half(c, v);
    }
}

void await_channels(struct emit *e, uint32_t behind)
{
    call1(e, "llvm.nvvm.cp.async.wait.group", imm(e, behind));
    sync_warp(e);
}

/* Has an earlier product made operands in the place of rows? */
static bool are_rows_gone(const struct plan *p, const struct op *op)
{
    bool are_gone = false;
    for (const struct op *before = p->ops; before < op; before++)
        are_gone |= is_channel_product(p, before);
    return are_gone;
}

static bool reads_rows(const struct plan *p, const struct op *op)
{
    return is_of_channels(p, op) && op->kind != OP_LOAD && op->kind != OP_ZERO && op->kind != OP_MAP;
}

/* Copies that were begun behind the last of those that are needed. */
static uint32_t begun_behind(const struct plan *p, const struct op *op, const bool *is_needed)
{
    uint32_t behind = 0;
    for (const struct op *before = p->ops; before < op; before++)
        if (before->kind == OP_LOAD && p->values[before->v].n_dims == 2 && is_of_channels(p, before) &&
            channel_same_before(p, before->v) < 0)
            behind = is_needed[before->v] ? 0 : behind + 1;
    return behind;
}

void bring_waiting(const struct channels *c, const struct op *op, uint32_t u)
{
    struct emit *e = c->e;
    const struct plan *p = e->p;
    bool is_needed[PLAN_MAX_VALUES] = {false}, is_any = false;
    for (uint32_t v = 0; v < p->n_values; v++)
        is_any |= is_needed[v] = plan_waits(&p->values[v]) && channel_is_of(p, u, v);
    if (!is_any)
        return;
    if (are_rows_gone(p, op))
        bring_rows(c, op);
    else
        await_channels(e, begun_behind(p, op, is_needed));
    for (uint32_t v = 0; v < p->n_values; v++)
        for (uint32_t r = 0; r < ROWS && is_needed[v]; r++)
            fetch_row(c, v, r);
}

/* What waits as fp32, if the operation is the first that reads rows. */
static void fetch_floats(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct plan *p = e->p;
    bool is_needed[PLAN_MAX_VALUES];
    for (const struct op *before = p->ops; before < op; before++)
        if (reads_rows(p, before))
            return;
    for (uint32_t v = 0; v < p->n_values; v++)
        is_needed[v] = plan_waits_with(&p->values[v], 4);
    await_channels(e, begun_behind(p, op, is_needed));
    for (uint32_t v = 0; v < p->n_values; v++) {
        const int same = plan_waits_with(&p->values[v], 4) ? channel_same_before(p, v) : -1;
        for (uint32_t r = 0; r < HALF && plan_waits_with(&p->values[v], 4); r++)
            channel_load_row(c, v, waiting_place(c, v, r), &e->registers[v][r * c->each]);
        for (uint32_t i = HALF * c->each; i < ROWS * c->each && same >= 0; i++)
            set(e, e->registers[v][i], get(e, e->f32, e->registers[same][i]));
    }
}

/* ---- maps ---- */

LLVMValueRef channel_map_element(const struct channels *c, struct expression *x, uint32_t i)
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
    struct expression *x = is_made_at_use(e->p, op->v) ? NULL : expression_begin(e, op->stmt, v, false);
    for (uint32_t i = 0; x && i < c->each; i++)
        set(e, e->registers[op->v][i], channel_map_element(c, x, i));
    free(x);
}

/* ---- the pass over rows ---- */

/* The operation for which rows are gone through to store what this one stores: the next product, or itself. */
static const struct op *pass_of(const struct plan *p, const struct op *store)
{
    for (const struct op *op = store; op < p->ops + p->n_ops; op++)
        if (is_channel_product(p, op))
            return op;
    return store;
}

static bool is_store_of_rows(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && p->values[op->v].space == SPACE_CHANNEL && p->values[op->v].n_dims == 2;
}

/* A tensor that is stored, row by row. */
struct stored {
    const struct op *op;
    LLVMValueRef to, stride, words;
};

struct pass {
    const struct channels *c;
    const struct op *op;
    uint32_t n_stored, n_operands;
    struct stored stored[PLAN_MAX_VALUES];
    LLVMValueRef operands[CHANNEL_WORDS];
};

static void find_stored(struct pass *pass)
{
    struct emit *e = pass->c->e;
    for (const struct op *op = e->p->ops; op <= pass->op; op++) {
        if (!is_store_of_rows(e->p, op) || pass_of(e->p, op) != pass->op)
            continue;
        const struct value *v = &e->p->values[op->v];
        struct stored *s = &pass->stored[pass->n_stored++];
        s->op = op;
        s->to = tensor_address(e, v->operand, op->tile, &e->at, v->dims, pass->c->row, pass->c->first);
        s->stride = channel_row_stride(e, op->tile);
    }
}

static void make_row(struct pass *pass, uint32_t r)
{
    const struct channels *c = pass->c;
    struct emit *e = c->e;
    fetch_channels(c, r);
    for (uint32_t i = 0; i < pass->n_stored; i++) {
        LLVMValueRef x[8];
        for (uint32_t j = 0; j < c->each; j++)
            x[j] = channel_element(e, pass->stored[i].op->v, r * c->each + j);
        pass->stored[i].words = channel_words(c, plan_memory_dtype(e->p, pass->stored[i].op->tile), x);
    }
    if (is_channel_product(e->p, pass->op))
        pass->n_operands = make_operands(c, pass->op, r, pass->operands);
}

static void put_row(struct pass *pass, uint32_t r)
{
    const struct channels *c = pass->c;
    struct emit *e = c->e;
    put_operands(c, pass->n_operands, channel_place(c, r), pass->operands);
    LLVMBasicBlockRef after = begin_if(e, both(e, less(e, add(e, c->row, imm(e, r)), e->at.length), channels_there(c)));
    for (uint32_t i = 0; i < pass->n_stored; i++) {
        struct stored *s = &pass->stored[i];
        LLVMSetAlignment(LLVMBuildStore(e->b, s->words, s->to),
                         c->each * tg_dtype_bytes(plan_memory_dtype(e->p, s->op->tile)));
    }
    end_if(e, after);
    for (uint32_t i = 0; i < pass->n_stored; i++)
        pass->stored[i].to = byte_offset(e, pass->stored[i].to, pass->stored[i].stride);
}

/* What an earlier product has made in the place of rows is read no more: they are copied there once more. */
void bring_rows(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const bool is_gone = are_rows_gone(e->p, op);
    if (is_gone)
        barrier(e);
    for (uint32_t v = 0; is_gone && v < e->p->n_values; v++)
        if (plan_waits(&e->p->values[v]) && channel_same_before(e->p, v) < 0)
            load_rows(c, v);
    await_channels(e, 0);
}

/* A row is made before the one before it is put, which nothing may pass. */
void go_through_rows(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    struct pass pass[2] = {{.c = c, .op = op}};
    find_stored(&pass[0]);
    bring_rows(c, op);
    if (is_channel_product(e->p, op))
        begin_operands(c, op);
    make_row(&pass[0], 0);
    for (uint32_t r = 0; r < ROWS; r++) {
        pass[1] = pass[0];
        if (r + 1 < ROWS)
            make_row(&pass[0], r + 1);
        put_row(&pass[1], r);
        for (uint32_t i = 0; i < pass->n_stored; i++)
            pass[0].stored[i].to = pass[1].stored[i].to;
    }
}

static void store_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct value *v = &e->p->values[op->v];
    if (v->n_dims == 2) {
        if (pass_of(e->p, op) == op)
            go_through_rows(c, op);
        return;
    }
    const tg_dtype dtype = plan_memory_dtype(e->p, op->tile);
    LLVMValueRef x[8];
    for (uint32_t j = 0; j < c->each; j++)
        x[j] = channel_element(e, op->v, j);
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, 0), ""); /* every warp has it */
    LLVMBasicBlockRef after = begin_if(e, both(e, is_first, channels_there(c)));
    LLVMValueRef to = tensor_address(e, v->operand, op->tile, &e->at, v->dims, c->first, NULL);
    LLVMSetAlignment(LLVMBuildStore(e->b, channel_words(c, dtype, x), to), c->each * tg_dtype_bytes(dtype));
    end_if(e, after);
}

/* ---------------------------------------------------------------------------------------------------------------------- */

static void copy_channels(const struct op *op, struct emit *e, uint32_t n)
{
    if (op->kind == OP_COPY && is_made_at_use(e->p, op->v))
        return;
    for (uint32_t i = 0; i < n; i++)
        set(e, e->registers[op->v][i], op->kind == OP_COPY ? channel_element(e, op->a, i) : real(e, 0));
}

void emit_channels(struct emit *e, const struct op *op)
{
    const struct channels c = channels_of(e);
    if (e->p->spreads) {
        emit_spread_rows(e, op);
        return;
    }
    if (reads_rows(e->p, op))
        fetch_floats(&c, op);
    switch (op->kind) {
    case OP_LOAD:
        load_channels(&c, op->v);
        break;
    case OP_ZERO:
    case OP_COPY:
        copy_channels(op, e, (e->p->values[op->v].n_dims == 2 ? ROWS : 1) * c.each);
        break;
    case OP_MAP:
        map_channels(&c, op);
        break;
    case OP_SCAN:
    case OP_TOTAL:
        sum_channels(&c, op);
        break;
    case OP_STORE:
        store_channels(&c, op);
        break;
    case OP_DOT:
        dot_channels(&c, op);
        break;
    default:
        multiply_channels(&c, op);
    }
}
