/* lower/spread_rows.c - rows of channels in a kernel of gradients (lower/spread.c): each of four warps has 16 of the chunk's 64
 * positions, a lane 2 or 4 channels side by side, of all 16.
 *
 * Registers are what is short. What is loaded waits in shared memory, each warp's rows where its lanes have had them copied, all at
 * once when the kernel begins: 16 bytes a copy, zeros behind the end of the chunk. There are decays, too, and what products stand
 * before its reader (compiler/spread.c). Maps are made at each use, those that are stored and no more row by row as they are stored. */
#include "compiler/plan_channel.h"
#include "compiler/plan_program.h"
#include "lower/channel.h"

#include <stdlib.h>

enum { ROWS = CHANNEL_ROWS };

/* ---- shared memory ---- */

/* Where the warp's rows of the value are; NULL: they are in registers. */
static LLVMValueRef kept_rows(const struct channels *c, uint32_t v)
{
    struct emit *e = c->e;
    const struct plan *p = e->p;
    const uint32_t tile = TG_OPERAND_TILE(p->values[v].operand), again = e->again ? p->rows_again[tile] : 0,
                   place = again ? again : p->rows_at[tile];
    if (p->values[v].n_dims != 2 || !place)
        return NULL;
    LLVMValueRef first = imm(e, p->scratch_offset + plan_spread_rows(p) + place - 1);
    return byte_offset(e, e->arena, add(e, mul(e, e->warp, imm(e, p->rows_bytes)), first));
}

static bool is_packed(const struct value *v)
{
    return v->stmt < 0 && tg_dtype_bytes(v->dtype) == 2;
}

/* Where the element is, or the word of two of them; NULL: in a register. */
static LLVMValueRef kept_at(struct emit *e, uint32_t v, uint32_t index)
{
    const struct channels c = channels_of(e);
    const uint32_t bytes = is_packed(&e->p->values[v]) ? 2 : 4, row = bytes * c.n, column = index % c.each;
    LLVMValueRef rows = kept_rows(&c, v);
    if (!rows)
        return NULL;
    LLVMValueRef at = mul(e, c.first, imm(e, bytes));
    return byte_offset(e, byte_offset(e, rows, at),
                       imm(e, index / c.each * row + (bytes == 2 ? column & ~1u : column) * bytes));
}

void spread_set(struct emit *e, uint32_t v, uint32_t index, LLVMValueRef x)
{
    LLVMValueRef at = kept_at(e, v, index);
    if (at)
        LLVMBuildStore(e->b, x, at);
    else
        set(e, e->registers[v][index], x);
}

LLVMValueRef spread_element(struct emit *e, uint32_t v, uint32_t index)
{
    const struct value *value = &e->p->values[v];
    LLVMValueRef at = kept_at(e, v, index);
    if (at && is_packed(value))
        return unpack(e, LLVMBuildLoad2(e->b, e->i32, at, ""), index & 1);
    if (at)
        return LLVMBuildLoad2(e->b, e->f32, at, "");
    if (plan_is_made_anew(e->p, v))
        return channel_map_made(e, v, index);
    if (value->n_dims == 1)
        index %= e->p->block[TG_DQK] / 32;
    return is_packed(value) ? unpack(e, as(e, get(e, e->f32, e->registers[v][index & ~1u]), e->i32), index & 1)
                            : get(e, e->f32, e->registers[v][index]);
}

/* ---- memory ---- */

/* The warp's first row, from which the addresses of a tile are made anew. */
static LLVMValueRef row_for_addresses(const struct channels *c)
{
    emit_bases(c->e, opaque(c->e, c->e->batch), opaque(c->e, c->e->head));
    return opaque(c->e, c->row);
}

/* The warp's rows, neighbouring units by neighbouring lanes; of decays the last row in place of those behind the end. */
static void copy_rows(const struct channels *c, uint32_t v)
{
    struct emit *e = c->e;
    const struct value *value = &e->p->values[v];
    const uint32_t tile = TG_OPERAND_TILE(value->operand), bytes = tg_dtype_bytes(value->dtype),
                   units = c->n * bytes / 16, together = 32 / units;
    LLVMValueRef row = divide(e, e->lane, imm(e, units)), unit = modulo(e, e->lane, imm(e, units));
    const bool stays = plan_is_loaded_decay(e->p, v);
    LLVMValueRef first = add(e, c->row, row), last = sub(e, e->at.length, imm(e, 1)),
                 begin = stays ? smaller(e, first, last) : first, stride = channel_row_stride(e, tile);
    LLVMValueRef channel = mul(e, unit, imm(e, 16 / bytes)), there = channel_is_there(c, channel),
                 from = tensor_address(e, value->operand, tile, &e->at, value->dims, begin, channel),
                 to = byte_offset(e, kept_rows(c, v), mul(e, e->lane, imm(e, 16)));
    for (uint32_t r = 0; r < ROWS; r += together) {
        LLVMValueRef position = add(e, first, imm(e, r)), next = add(e, position, imm(e, together)),
                     rows = imm(e, together);
        async_copy(e, byte_offset(e, to, imm(e, r * units * 16)), from, 16,
                   stays ? there : both(e, less(e, position, e->at.length), there));
        if (stays)
            rows = sub(e, smaller(e, next, last), smaller(e, position, last));
        from = byte_offset(e, from, mul(e, stride, LLVMBuildZExt(e->b, rows, e->i64, "")));
    }
}

static void load_channels(const struct channels *c, uint32_t v)
{
    struct emit *e = c->e;
    if (e->p->values[v].n_dims == 1)
        channel_load_vector(c, v);
    else if (channel_same_before(e->p, v) < 0)
        copy_rows(c, v);
}

void spread_load_again(const struct channels *c)
{
    struct emit *e = c->e;
    const struct plan *p = e->p;
    for (uint32_t v = 0; v < p->n_values; v++) {
        if (!plan_is_loaded_row(&p->values[v]) || !p->rows_again[TG_OPERAND_TILE(p->values[v].operand)] ||
            channel_same_before(p, v) >= 0)
            continue;
        if (!e->again)
            sync_warp(e); /* what was in their places has been read */
        e->again = AGAIN_LOADED;
        copy_rows(c, v);
    }
    if (e->again)
        call0(e, "llvm.nvvm.cp.async.commit.group");
}

/* ---- maps ---- */

/* Is it what the sums of a gradient begin with? They take it where they are complete. */
static bool is_begun_sum(const struct plan *p, const struct op *copy)
{
    for (const struct op *op = copy + 1; op < p->ops + p->n_ops; op++)
        if (op->v == copy->v && plan_is_spread(p, op))
            return true;
    return false;
}

/* Does an operation take the value for more than to store it? In a kernel of gradients its copy stands for it. */
static bool is_read(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        tg_operand reads[TG_MAX_READS];
        const bool copies = op->kind == OP_COPY, takes = op->stmt >= 0 && op->v != v && op->kind != OP_STORE && !copies;
        if (copies && op->a == v && (is_begun_sum(p, op) || is_read(p, op->v)))
            return true;
        for (uint32_t k = 0, n = takes ? tg_stmt_reads(&p->algorithm->body[op->stmt], reads) : 0; k < n; k++)
            if (plan_find(p, reads[k], p->values[op->v].nest) == (int)v)
                return true;
    }
    return false;
}

/* Does nothing read the map but its store? Then it is made there, row by row: registers are what is short. */
static bool is_only_stored(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    return value->n_dims == 2 && value->stmt >= 0 && p->algorithm->body[value->stmt].op == TG_STMT_MAP &&
           !is_read(p, v);
}

/* What the value is a copy of, where that is made when it is stored; or itself. */
static uint32_t stored_as(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_COPY && p->ops[i].v == v && is_only_stored(p, p->ops[i].a))
            return p->ops[i].a;
    return v;
}

/* Some elements are made before they are put where they wait: no load waits for a store that ptxas cannot tell apart. */
static void map_channels(const struct channels *c, const struct op *op)
{
    enum { TOGETHER = 16 };
    struct emit *e = c->e;
    const struct value *v = &e->p->values[op->v];
    const bool is_later = is_only_stored(e->p, op->v) || plan_is_made_anew(e->p, op->v);
    struct expression *x = is_later ? NULL : expression_begin(e, op->stmt, v, false);
    if (x && kept_rows(c, op->v))
        sync_warp(e); /* all lanes have read what was there */
    const uint32_t n = (v->n_dims == 1 ? 1 : ROWS) * c->each;
    for (uint32_t first = 0; x && first < n; first += TOGETHER) {
        LLVMValueRef made[TOGETHER];
        for (uint32_t i = 0; i < TOGETHER && first + i < n; i++)
            made[i] = channel_map_element(c, x, first + i);
        for (uint32_t i = 0; i < TOGETHER && first + i < n; i++)
            spread_set(e, op->v, first + i, made[i]);
    }
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
        row[j] = x ? channel_map_element(c, x, r * c->each + j) : spread_element(e, op->v, r * c->each + j);
    return channel_words(c, plan_memory_dtype(e->p, op->tile), row);
}

static void store_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct value *v = &e->p->values[op->v];
    if (v->n_dims == 1) { /* every warp has it */
        LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, 0), "");
        LLVMBasicBlockRef after = begin_if(e, both(e, is_first, channels_there(c)));
        LLVMValueRef to = tensor_address(e, v->operand, op->tile, &e->at, v->dims, c->first, NULL);
        store_row(c, op, words_of(c, op, NULL, 0), to);
        end_if(e, after);
        return;
    }
    const uint32_t made = stored_as(e->p, op->v);
    struct expression *x =
        is_only_stored(e->p, made) ? expression_begin(e, e->p->values[made].stmt, &e->p->values[made], false) : NULL;
    LLVMValueRef row = row_for_addresses(c), stride = channel_row_stride(e, op->tile);
    LLVMValueRef to = tensor_address(e, v->operand, op->tile, &e->at, v->dims, row, c->first);
    for (uint32_t r = 0; r < ROWS; r++) {
        LLVMValueRef words = words_of(c, op, x, r);
        LLVMBasicBlockRef after =
            begin_if(e, both(e, less(e, add(e, row, imm(e, r)), e->at.length), channels_there(c)));
        store_row(c, op, words, to);
        end_if(e, after);
        to = byte_offset(e, to, stride);
    }
    free(x);
}

/* What a sum of products begins with, and what is made where it is read or stored. */
static bool needs_no_copy(const struct channels *c, const struct op *op)
{
    const struct plan *p = c->e->p;
    return is_begun_sum(p, op) || (op->kind == OP_COPY && (plan_is_made_anew(p, op->v) || kept_rows(c, op->v) ||
                                                           stored_as(p, op->v) != op->v));
}

static void copy_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct plan *p = e->p;
    if (needs_no_copy(c, op))
        return;
    for (uint32_t i = 0; i < (p->values[op->v].n_dims == 2 ? ROWS : 1) * c->each; i++)
        set(e, e->registers[op->v][i], op->kind == OP_COPY ? spread_element(e, op->a, i) : real(e, 0));
}

/* ---------------------------------------------------------------------------------------------------------------------- */

/* Is nothing made by the operation itself, but where its result is read? */
static bool is_made_later(const struct channels *c, const struct op *op)
{
    const struct plan *p = c->e->p;
    if (op->kind == OP_MAP)
        return is_only_stored(p, op->v) || plan_is_made_anew(p, op->v);
    return (op->kind == OP_COPY || op->kind == OP_ZERO) && needs_no_copy(c, op);
}

/* Groups of copies that have been begun behind the first. */
static uint32_t groups_behind(const struct plan *p, const struct op *end)
{
    uint32_t n = 0;
    for (const struct op *op = p->ops; op < end; op++)
        n += op->kind == OP_COMMIT ? 1 : op->kind == OP_PROLOGUE ? p->nests[op->n].steps_ahead : 0;
    return n - 1;
}

/* The rows that the operation reads are there, as all lanes of the warp have had them copied. */
static void await_rows(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct plan *p = e->p;
    bool early = false, all = false;
    for (uint32_t v = 0; v < p->n_values && !is_made_later(c, op); v++) {
        const uint32_t tile = TG_OPERAND_TILE(p->values[v].operand);
        if (!plan_is_loaded_row(&p->values[v]) || !plan_reads_row(p, op, tile))
            continue;
        early |= e->rows < ROWS_EARLY;
        all |=
            (e->rows < ROWS_THERE && !plan_is_early_row(p, tile)) || (e->again == AGAIN_LOADED && p->rows_again[tile]);
    }
    if (!early && !all)
        return;
    call1(e, "llvm.nvvm.cp.async.wait.group", imm(e, all ? 0 : groups_behind(p, op)));
    sync_warp(e);
    e->rows = all ? ROWS_THERE : ROWS_EARLY;
    e->again = e->again == AGAIN_LOADED && all ? AGAIN_THERE : e->again;
}

void emit_spread_rows(struct emit *e, const struct op *op)
{
    const struct channels c = channels_of(e);
    if (op->kind != OP_LOAD)
        await_rows(&c, op);
    switch (op->kind) {
    case OP_LOAD:
        load_channels(&c, op->v);
        break;
    case OP_ZERO:
    case OP_COPY:
        copy_channels(&c, op);
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
        emit_spread(e, op);
    }
}
