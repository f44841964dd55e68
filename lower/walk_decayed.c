/* lower/walk_decayed.c - the other way of a chunk, with what it decays by in operands (compiler/decayed.c): what the warps that load make for
 * it, and what those who walk find there. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

enum { LANES = 32, LOADERS = 15 /* the number of their barrier */ };

/* What the logs of a head refer to: a number of its chunk, in two parts, or 0. */
static void find_reference(struct emit *e, LLVMValueRef slot, LLVMValueRef reference[2])
{
    const struct value *number = e->p->ways.number < 0 ? NULL : &e->p->values[e->p->ways.number];
    LLVMValueRef from = number ? slot_address(e, number, slot) : NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_there = number && i < tg_dtype_bytes(number->dtype) / 4;
        reference[i] = is_there ? LLVMBuildLoad2(e->b, e->f32, byte_offset(e, from, imm(e, 4 * i)), "") : real(e, 0);
    }
}

static LLVMValueRef slot_of_head(struct emit *e, const struct walk *w, LLVMValueRef head)
{
    return add(e, mul(e, w->stage, imm(e, e->p->heads)), head);
}

/* ---- numbers that multiply a sum, or a diagonal ---- */

static LLVMValueRef multiplier_address(struct emit *e, LLVMValueRef slot, LLVMValueRef position)
{
    LLVMValueRef first = add(e, imm(e, e->p->ways.offset), mul(e, slot, imm(e, 4 * WALK_TILE)));
    return byte_offset(e, e->arena, add(e, first, mul(e, position, imm(e, 4))));
}

/* 2^ of the logs, times a number; NULL: 1. */
static void put_multipliers(struct emit *e, LLVMValueRef slot, const LLVMValueRef logs[HALVES_OF_TILE],
                            LLVMValueRef times)
{
    for (uint32_t half = 0; half < HALVES_OF_TILE; half++) {
        LLVMValueRef by = exp2_approx(e, logs[half]);
        by = times ? LLVMBuildFMul(e->b, by, times, "") : by;
        LLVMBuildStore(e->b, by, multiplier_address(e, slot, add(e, e->lane, imm(e, half * LANES))));
    }
}

LLVMValueRef walk_multiplier(struct emit *e, const struct walk *w, LLVMValueRef position)
{
    return LLVMBuildLoad2(e->b, e->f32, multiplier_address(e, slot_of_head(e, w, e->at.start[TG_MEMBER]), position),
                          "");
}

/* ---- matrices times their factors ---- */

/* The product of the scalars that the tile is multiplied by; NULL: there are none. */
static LLVMValueRef tile_scalars(struct emit *e)
{
    const tg_stmt *s = &e->p->algorithm->body[e->p->values[e->p->ways.tile].stmt];
    LLVMValueRef product = NULL;
    for (uint32_t i = 0; i < tg_expr_length(s); i++) {
        if (s->expr[i].op != TG_X_SCALAR)
            continue;
        LLVMValueRef scalar = argument(e, TG_ARG_SCALAR, (uint32_t)s->expr[i].operand, 0);
        product = product ? LLVMBuildFMul(e->b, product, scalar, "") : scalar;
    }
    return product;
}

/* i1: neither 0 nor beyond what factors may be */
static LLVMValueRef are_ordinary(struct emit *e, LLVMValueRef scalars)
{
    LLVMValueRef size = call(e, "llvm.fabs", &e->f32, 1, &scalars, 1);
    return both(e, LLVMBuildFCmp(e->b, LLVMRealOGE, size, real(e, 0x1p-60), ""),
                LLVMBuildFCmp(e->b, LLVMRealOLE, size, real(e, 0x1p60), ""));
}

/* Eight elements times a factor, which the word has twice. */
static LLVMValueRef times(struct emit *e, LLVMValueRef x, LLVMValueRef factor)
{
    for (uint32_t i = 0; i < 4; i++) {
        LLVMValueRef word = as(e, LLVMBuildExtractElement(e->b, x, imm(e, i), ""), e->v2bf16),
                     y = LLVMBuildFMul(e->b, word, as(e, factor, e->v2bf16), "");
        x = LLVMBuildInsertElement(e->b, x, as(e, y, e->i32), imm(e, i), "");
    }
    return x;
}

/* A head's part of a matrix, a row of 128 bytes to each lane, 16 bytes at a time: lanes side by side begin with others of the 8, so that their
 * banks differ. Each is loaded two steps ahead. factors: of the lane's row in each half of the positions. */
static void scale_matrix(struct emit *e, const struct walk *w, const struct value *v, LLVMValueRef head,
                         LLVMValueRef *const factors)
{
    enum { UNIT = 16, UNITS = WALK_SPAN_BYTES / UNIT, AHEAD = 2, IN_FLIGHT = AHEAD + 1 };
    const uint32_t bytes = v->stage_bytes / e->p->heads, steps = bytes / (LANES * UNIT);
    LLVMTypeRef type = LLVMVectorType(e->i32, 4);
    LLVMValueRef stage = add(e, imm(e, v->offset), mul(e, w->stage, imm(e, v->stage_bytes))),
                 lane = add(e, mul(e, e->lane, imm(e, WALK_SPAN_BYTES)),
                            mul(e, modulo(e, e->lane, imm(e, UNITS)), imm(e, UNIT))),
                 row = add(e, add(e, stage, mul(e, head, imm(e, bytes))), lane), at[IN_FLIGHT], x[IN_FLIGHT];
    for (uint32_t step = 0; step < steps + AHEAD; step++) {
        const uint32_t slot = step % IN_FLIGHT, done = step - AHEAD;
        if (step < steps &&
            step % UNITS == 0) /* one register, or all addresses are kept, or made anew of the thread's number */
            row = opaque(e, step ? add(e, row, imm(e, LANES * WALK_SPAN_BYTES)) : row);
        if (step < steps) {
            at[slot] = byte_offset(e, e->arena, LLVMBuildXor(e->b, row, imm(e, step % UNITS * UNIT), ""));
            x[slot] = LLVMBuildLoad2(e->b, type, at[slot], "");
            LLVMSetAlignment(x[slot], UNIT);
        }
        if (step < AHEAD)
            continue;
        LLVMValueRef y = times(e, x[done % IN_FLIGHT], get(e, e->i32, factors[done / UNITS % HALVES_OF_TILE]));
        LLVMSetAlignment(LLVMBuildStore(e->b, y, at[done % IN_FLIGHT]), UNIT);
    }
}

/* ... of a head, for when they have come. */
static void keep_factors(struct emit *e, struct walk *w, LLVMValueRef logs[2][HALVES_OF_TILE], LLVMValueRef scalars)
{
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t half = 0; half < HALVES_OF_TILE; half++) {
            LLVMValueRef factor = exp2_approx(e, logs[k][half]);
            factor = k == 0 && scalars ? LLVMBuildFMul(e->b, factor, scalars, "") : factor;
            set(e, w->multipliers[k][half], pack(e, factor, factor));
        }
}

/* ---- both ---- */

LLVMValueRef landed_address(struct emit *e, LLVMValueRef stage)
{
    return shared_address(e, add(e, imm(e, e->p->ways.landed_offset), mul(e, stage, imm(e, 8))));
}

/* What undoes both factors of a position. */
static void put_undone(struct emit *e, LLVMValueRef slot, LLVMValueRef logs[2][HALVES_OF_TILE], LLVMValueRef scalars)
{
    LLVMValueRef less[HALVES_OF_TILE];
    for (uint32_t half = 0; half < HALVES_OF_TILE; half++)
        less[half] = LLVMBuildFNeg(e->b, LLVMBuildFAdd(e->b, logs[0][half], logs[1][half], ""), "");
    put_multipliers(e, slot, less, scalars ? call1(e, "llvm.nvvm.rcp.approx.ftz.f", scalars) : NULL);
}

static void find_factors(struct emit *e, struct walk *w, LLVMValueRef head)
{
    const struct plan_ways *ways = &e->p->ways;
    LLVMValueRef slot = slot_of_head(e, w, head), reference[2], logs[2][HALVES_OF_TILE],
                 scalars = ways->scales ? tile_scalars(e) : NULL;
    find_reference(e, slot, reference);
    LLVMValueRef has = head_logs(e, slot, reference, logs);
    if (ways->scales)
        keep_factors(e, w, logs, scalars);
    else
        put_multipliers(e, slot, logs[ways->of_rows ? 0 : 1],
                        ways->scale < 0 ? NULL : argument(e, TG_ARG_SCALAR, (uint32_t)ways->scale, 0));
    if (ways->undoes)
        put_undone(e, slot, logs, scalars);
    put_flag(e, w, head, scalars ? both(e, has, are_ordinary(e, scalars)) : has);
}

/* A warp has a head, or none. */
static LLVMBasicBlockRef begin_own_head(struct emit *e, LLVMValueRef *head)
{
    *head = sub(e, e->warp, imm(e, e->p->roles[ROLE_LOAD].first_warp));
    return begin_if(e, less(e, *head, imm(e, e->p->heads)));
}

void producer_find_ways(struct emit *e, struct walk *w)
{
    for (uint32_t k = 0; k < 2 * HALVES_OF_TILE && e->p->ways.scales; k++) {
        LLVMValueRef *word = &w->multipliers[k / HALVES_OF_TILE][k % HALVES_OF_TILE];
        set(e, *word = local(e, e->i32, "multiplier"), imm(e, 0));
    }
    LLVMValueRef head;
    LLVMBasicBlockRef after = begin_own_head(e, &head);
    find_factors(e, w, head);
    end_if(e, after);
    sync_warp(e);
    if (e->p->ways.scales) /* it takes all heads' */
        named_barrier(e, imm(e, LOADERS), LANES * e->p->roles[ROLE_LOAD].warps);
}

void producer_multiply(struct emit *e, struct walk *w, const struct op *op)
{
    (void)op;
    LLVMValueRef head;
    LLVMBasicBlockRef decayed = begin_if(e, walk_is_decayed(e, w)), own = begin_own_head(e, &head);
    for (uint32_t k = 0; k < 2; k++)
        scale_matrix(e, w, &e->p->values[e->p->ways.matrices[k]], head, w->multipliers[k]);
    end_if(e, own);
    sync_warp(e);
    fence_async(e);
    end_if(e, decayed);
}

LLVMValueRef walk_is_decayed(struct emit *e, const struct walk *w)
{
    const uint32_t heads = e->p->heads / (e->p->own_heads ? e->p->groups : 1);
    return walk_has_factors(e, w, e->p->own_heads ? mul(e, w->group, imm(e, heads)) : imm(e, 0), heads);
}
