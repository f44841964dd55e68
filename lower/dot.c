/* lower/dot.c - sums of products along the rows of a tile, or over all of it, in registers.
 *
 * Gate gradients are made of them (reference 2.5): q.dq and k.dk per token from the fp32 values, before
 * these are rounded, and <C, dC> per chunk. Where a tile is cut into blocks of a parallel dimension, every
 * thread block writes its part and the reader adds the parts in order: no atomics, the same bits every run. */
#include "lower/emit.h"

static LLVMValueRef shuffle_xor(struct emit *e, LLVMValueRef x, uint32_t by)
{
    LLVMValueRef args[4] = {imm(e, -1), x, imm(e, by), imm(e, 31)};
    return call(e, "llvm.nvvm.shfl.sync.bfly.f32", NULL, 0, args, 4);
}

static LLVMValueRef product(struct emit *e, const struct op *op, uint32_t r, LLVMValueRef sum)
{
    LLVMValueRef args[3] = {get(e, e->f32, e->registers[op->a][r]), get(e, e->f32, e->registers[op->b][r]), sum};
    return call(e, "llvm.fma", &e->f32, 1, args, 3);
}

static void accumulate(struct emit *e, const struct op *op, uint32_t r, LLVMValueRef x)
{
    LLVMValueRef slot = e->registers[op->v][r];
    set(e, slot, LLVMBuildFAdd(e->b, get(e, e->f32, slot), x, ""));
}

/* One sum a row: the four lanes of a quad hold its columns. */
static void dot_rows(struct emit *e, const struct op *op)
{
    const struct shape s = fragment_shape(e->p, &e->p->values[op->a]);
    for (uint32_t c = 0; c < 2 * s.m; c++) {
        LLVMValueRef sum = real(e, 0);
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
    const struct value *a = &e->p->values[op->a];
    const uint32_t n = a->extent[0] * a->extent[1] / e->p->threads;
    LLVMValueRef sum = real(e, 0), scratch = byte_offset(e, e->arena, imm(e, e->p->scratch_offset));
    for (uint32_t r = 0; r < n; r++)
        sum = product(e, op, r, sum);
    for (uint32_t by = 1; by < 32; by *= 2)
        sum = LLVMBuildFAdd(e->b, sum, shuffle_xor(e, sum, by), "");
    barrier(e); /* the sums of the chunk before have been read */
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    LLVMBuildStore(e->b, sum, byte_offset(e, scratch, mul(e, e->warp, imm(e, 4))));
    end_if(e, after);
    barrier(e);
    LLVMValueRef total = real(e, 0);
    for (uint32_t w = 0; w < e->p->threads / 32; w++)
        total = LLVMBuildFAdd(e->b, total, LLVMBuildLoad2(e->b, e->f32, byte_offset(e, scratch, imm(e, 4 * w)), ""), "");
    accumulate(e, op, 0, total);
}

void emit_dot(struct emit *e, const struct op *op)
{
    if (e->p->values[op->v].space == SPACE_ROWS)
        dot_rows(e, op);
    else
        dot_tile(e, op);
}

/* Which of the parts in memory this thread block writes: its block among those of the summed dimensions. */
LLVMValueRef part_index(struct emit *e, uint32_t tile)
{
    const struct plan *p = e->p;
    const int s = tg_tile_stmt(p->algorithm, tile);
    const uint32_t summed = s < 0 ? 0 : tg_stmt_product(p->algorithm, &p->algorithm->body[s]).k;
    LLVMValueRef index = imm(e, 0);
    for (uint32_t d = 1; d < TG_N_DIMS; d++) {
        const uint32_t size = plan_dim_size(p, d);
        if ((summed >> d & 1) && size && p->row->row[d].role == TG_ROLE_P)
            index = add(e, mul(e, index, imm(e, (size + p->block[d] - 1) / p->block[d])), divide(e, e->at.start[d], imm(e, p->block[d])));
    }
    return index;
}
