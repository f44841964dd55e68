/* lower/dot.c - sums of products along the rows of a tile, or over all of it, in registers.
 *
 * Gate gradients are made of them: q.dq and k.dk per token from the fp32 values, before
 * these are rounded, and <C, dC> per chunk. Where a tile is cut into blocks of a parallel dimension, every
 * thread block writes its part and the reader adds the parts in order: no atomics, the same bits every run. */
#include "compiler/plan_program.h"
#include "compiler/plan_tile.h"
#include "lower/emit.h"

/* Is it a sum of squares of what is read straight from memory? That is read once then. */
static bool is_of_squares(const struct plan *p, const struct op *op)
{
    const struct value *a = &p->values[op->a], *b = &p->values[op->b];
    return a->direct && b->direct && a->operand == b->operand;
}

/* What element r of the tile a is multiplied by: the same element of b, or b's value of its column. */
static LLVMValueRef factor(struct emit *e, const struct op *op, uint32_t r)
{
    const struct value *a = &e->p->values[op->a], *b = &e->p->values[op->b];
    if (is_of_squares(e->p, op))
        return get(e, e->f32, e->registers[op->a][r]);
    if (b->space != SPACE_VECTOR)
        return get(e, e->f32, e->registers[op->b][r]);
    const uint32_t tile_n = r / 4 % fragment_shape(e->p, a).n;
    LLVMValueRef from = slot_address(e, b, e->slot[op->b] ? e->slot[op->b] : imm(e, 0));
    LLVMValueRef column = fragment_column(e, a, tile_n * 2 + (r & 1));
    return LLVMBuildLoad2(e->b, e->f32, byte_offset(e, from, mul(e, column, imm(e, 4))), "");
}

/* sum + a b, or sum + a where the statement has no b. */
static LLVMValueRef product(struct emit *e, const struct op *op, uint32_t r, LLVMValueRef sum)
{
    LLVMValueRef a = get(e, e->f32, e->registers[op->a][r]);
    if (!e->p->algorithm->body[op->stmt].b)
        return LLVMBuildFAdd(e->b, sum, a, "");
    return fma_of(e, a, factor(e, op, r), sum);
}

static void accumulate(struct emit *e, const struct op *op, uint32_t r, LLVMValueRef x)
{
    LLVMValueRef slot = e->registers[op->v][r];
    set(e, slot, LLVMBuildFAdd(e->b, get(e, e->f32, slot), x, ""));
}

/* What is read straight from memory, 16 rows at a time: so few registers suffice. */
static void load_operands(struct emit *e, const struct op *op, uint32_t row_class)
{
    if (row_class % 2)
        return;
    load_rows_of(e, op->a, row_class / 2);
    if (op->b != op->a && !is_of_squares(e->p, op))
        load_rows_of(e, op->b, row_class / 2);
}

/* One sum a row: the four lanes of a quad hold its columns. */
static void dot_rows(struct emit *e, const struct op *op)
{
    const struct shape s = fragment_shape(e->p, &e->p->values[op->a]);
    for (uint32_t c = 0; c < 2 * s.m; c++) {
        LLVMValueRef sum = real(e, 0);
        load_operands(e, op, c);
        for (uint32_t n = 0; n < 2 * s.n; n++)
            sum = product(e, op, (c / 2 * s.n + n / 2) * 4 + c % 2 * 2 + n % 2, sum);
        for (uint32_t by = 1; by < 4; by *= 2)
            sum = LLVMBuildFAdd(e->b, sum, shuffle_xor(e, sum, by), "");
        accumulate(e, op, 2 * c, sum);
    }
}

/* One sum for the thread block. */
static void dot_tile(struct emit *e, const struct op *op)
{
    const struct shape s = fragment_shape(e->p, &e->p->values[op->a]);
    enum { SUMS = 4 }; /* a long one is rounded as what it has grown to */
    LLVMValueRef sums[SUMS], scratch = byte_offset(e, e->arena, imm(e, e->p->scratch_offset));
    for (uint32_t i = 0; i < SUMS; i++)
        sums[i] = real(e, 0);
    for (uint32_t r = 0; r < s.m * s.n * 4; r++) {
        if (r % (s.n * 4) == 0)
            load_operands(e, op, r / (s.n * 4) * 2);
        sums[r % SUMS] = product(e, op, r, sums[r % SUMS]);
    }
    LLVMValueRef sum =
        LLVMBuildFAdd(e->b, LLVMBuildFAdd(e->b, sums[0], sums[1], ""), LLVMBuildFAdd(e->b, sums[2], sums[3], ""), "");
    for (uint32_t by = 1; by < 32; by *= 2)
        sum = LLVMBuildFAdd(e->b, sum, shuffle_xor(e, sum, by), "");
    barrier(e); /* the sums of the chunk before have been read */
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    LLVMBuildStore(e->b, sum, byte_offset(e, scratch, mul(e, e->warp, imm(e, 4))));
    end_if(e, after);
    barrier(e);
    LLVMValueRef total = real(e, 0);
    for (uint32_t w = 0; w < e->p->threads / 32; w++)
        total =
            LLVMBuildFAdd(e->b, total, LLVMBuildLoad2(e->b, e->f32, byte_offset(e, scratch, imm(e, 4 * w)), ""), "");
    accumulate(e, op, 0, total);
}

void emit_dot(struct emit *e, const struct op *op)
{
    if (e->p->thread_dim)
        emit_thread_dot(e, op);
    else if (e->p->values[op->v].space == SPACE_ROWS)
        dot_rows(e, op);
    else
        dot_tile(e, op);
}

/* Parts of all threads, one behind the other; the sum of those who have the same rows, in the order of their columns. */
void emit_add_up(struct emit *e, const struct op *op)
{
    const struct plan *p = e->p;
    const uint32_t n = plan_fragment_elements(p, &p->values[op->v]);
    LLVMValueRef scratch = byte_offset(e, e->arena, imm(e, p->scratch_offset)), lane = mul(e, e->lane, imm(e, 4)),
                 first = sub(e, e->warp, modulo(e, e->warp, imm(e, p->warps_n)));
    LLVMValueRef own = byte_offset(e, scratch, add(e, mul(e, e->warp, imm(e, 128)), lane)),
                 parts = byte_offset(e, scratch, add(e, mul(e, first, imm(e, 128)), lane));
    for (uint32_t r = 0; r < n; r++)
        LLVMBuildStore(e->b, get(e, e->f32, e->registers[op->v][r]), byte_offset(e, own, imm(e, r * 4 * p->threads)));
    barrier(e);
    for (uint32_t r = 0; r < n; r++) {
        LLVMValueRef sum = NULL;
        for (uint32_t w = 0; w < p->warps_n; w++) {
            LLVMValueRef from = byte_offset(e, parts, imm(e, r * 4 * p->threads + 128 * w));
            LLVMValueRef part = LLVMBuildLoad2(e->b, e->f32, from, "");
            sum = sum ? LLVMBuildFAdd(e->b, sum, part, "") : part;
        }
        set(e, e->registers[op->v][r], sum);
    }
}

/* Where the part is that this thread block writes, in bytes: its block among those of the summed dimensions. */
LLVMValueRef part_offset(struct emit *e, uint32_t tile)
{
    const struct plan *p = e->p;
    const uint32_t split = plan_split_dims(p, tile);
    LLVMValueRef index = imm(e, 0);
    for (uint32_t d = 1; d < TG_N_DIMS; d++)
        if (split >> d & 1)
            index = add(e, mul(e, index, imm(e, plan_blocks(p, d))), divide(e, e->at.start[d], imm(e, p->block[d])));
    return mul(e, index, imm(e, 4 * plan_part_step(p, tile)));
}
