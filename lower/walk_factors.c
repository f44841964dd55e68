/* lower/walk_factors.c - exponentials of differences between positions by factors (compiler/factor.c): the warps that load make
 * them of the vectors of a stage, in their places, and say for each head whether they have. Factors of left operands in 16 bits. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

#include <stdlib.h>

enum { LANES = 32, MIDDLE = WALK_TILE / 2 - 1, LARGEST = 60 /* of a factor's log */ };

static LLVMValueRef flag_address(struct emit *e, const struct walk *w, LLVMValueRef head)
{
    LLVMValueRef index = add(e, mul(e, w->stage, imm(e, e->p->heads)), head);
    return byte_offset(e, e->arena, add(e, imm(e, e->p->factors_offset), mul(e, index, imm(e, 4))));
}

/* Both parts of the lane's element of a vector, of one half of the positions. */
static void load_gate(struct emit *e, LLVMValueRef from, uint32_t half, LLVMValueRef x[2])
{
    LLVMValueRef at = byte_offset(e, from, mul(e, add(e, e->lane, imm(e, half * LANES)), imm(e, 8))),
                 pair = LLVMBuildLoad2(e->b, e->v2f32, at, "");
    LLVMSetAlignment(pair, 8);
    for (uint32_t i = 0; i < 2; i++)
        x[i] = LLVMBuildExtractElement(e->b, pair, imm(e, i), "");
}

static LLVMValueRef from_lane(struct emit *e, LLVMValueRef x, uint32_t lane)
{
    LLVMValueRef args[] = {imm(e, -1), x, imm(e, lane), imm(e, LANES - 1)};
    return call(e, "llvm.nvvm.shfl.sync.idx.f32", NULL, 0, args, 4);
}

static LLVMValueRef difference(struct emit *e, const LLVMValueRef a[2], const LLVMValueRef b[2])
{
    return LLVMBuildFAdd(e->b, LLVMBuildFSub(e->b, a[0], b[0], ""), LLVMBuildFSub(e->b, a[1], b[1], ""), "");
}

/* false of a NaN, too */
static LLVMValueRef is_small(struct emit *e, LLVMValueRef x)
{
    return LLVMBuildFCmp(e->b, LLVMRealOLE, call(e, "llvm.fabs", &e->f32, 1, &x, 1), real(e, LARGEST), "");
}

LLVMValueRef head_logs(struct emit *e, LLVMValueRef slot, const LLVMValueRef *reference,
                       LLVMValueRef logs[2][HALVES_OF_TILE])
{
    const struct plan *p = e->p;
    const uint32_t vectors[] = {p->factor_rows, p->factor_columns};
    LLVMValueRef middle[2], small = NULL;
    for (uint32_t k = 0; k < 2; k++) {
        LLVMValueRef from = slot_address(e, &p->values[vectors[k]], slot);
        for (uint32_t half = 0; half < HALVES_OF_TILE; half++) {
            LLVMValueRef x[2];
            load_gate(e, from, half, x);
            for (uint32_t i = 0; i < 2 && !reference && k == 0 && half == 0; i++)
                middle[i] = from_lane(e, x[i], MIDDLE);
            const LLVMValueRef *to = reference ? reference : middle;
            logs[k][half] = k == 0 ? difference(e, x, to) : difference(e, to, x);
            small = both(e, small, is_small(e, logs[k][half]));
        }
    }
    LLVMValueRef args[] = {imm(e, -1), small};
    return call(e, "llvm.nvvm.vote.all.sync", NULL, 0, args, 2);
}

void put_flag(struct emit *e, const struct walk *w, LLVMValueRef head, LLVMValueRef has_factors)
{
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    LLVMBuildStore(e->b, LLVMBuildZExt(e->b, has_factors, e->i32, ""), flag_address(e, w, head));
    end_if(e, after);
}

/* Both vectors of a head, in their places. All lanes have read theirs before any writes: a vote alone does not order that. */
static void make_factors(struct emit *e, const struct walk *w, LLVMValueRef head)
{
    const struct plan *p = e->p;
    const uint32_t vectors[] = {p->factor_rows, p->factor_columns};
    LLVMValueRef slot = add(e, mul(e, w->stage, imm(e, p->heads)), head), logs[2][HALVES_OF_TILE],
                 all = head_logs(e, slot, NULL, logs);
    sync_warp(e);
    LLVMBasicBlockRef after = begin_if(e, all);
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t half = 0; half < HALVES_OF_TILE; half++)
            LLVMBuildStore(e->b, exp2_approx(e, logs[k][half]),
                           byte_offset(e, slot_address(e, &p->values[vectors[k]], slot),
                                       mul(e, add(e, e->lane, imm(e, half * LANES)), imm(e, 4))));
    end_if(e, after);
    put_flag(e, w, head, all);
}

static void make_all_factors(struct emit *e, const struct walk *w)
{
    const struct role *role = &e->p->roles[ROLE_LOAD];
    LLVMValueRef head;
    const struct counted l = loop_from(e, sub(e, e->warp, imm(e, role->first_warp)), imm(e, e->p->heads), &head);
    make_factors(e, w, head);
    loop_end(e, &l, role->warps);
    sync_warp(e);
}

LLVMValueRef walk_has_factors(struct emit *e, const struct walk *w, LLVMValueRef first, uint32_t heads)
{
    LLVMValueRef all = NULL;
    for (uint32_t i = 0; i < heads; i++) {
        LLVMValueRef flag = LLVMBuildLoad2(e->b, e->i32, flag_address(e, w, add(e, first, imm(e, i))), "");
        all = all ? LLVMBuildAnd(e->b, all, flag, "") : flag;
    }
    return LLVMBuildICmp(e->b, LLVMIntNE, uniform(e, all), imm(e, 0), "");
}

/* ---- factors of left operands (compiler/rounded.c) ---- */

/* Two positions of the vector, a word in the place where the first half of the words was. */
static void round_pair(struct emit *e, const struct value *operand, uint32_t vector, LLVMValueRef slot)
{
    LLVMValueRef factor[2], to = slot_address(e, &e->p->values[vector], slot), outside = e->slot[vector];
    struct expression *x = expression_begin(e, operand->stmt, operand, true);
    e->slot[vector] = slot;
    for (uint32_t i = 0; x && i < 2; i++) {
        const struct element_at at = {.row_class = i,
                                      .row = add(e, mul(e, e->lane, imm(e, 2)), imm(e, i)),
                                      .column = imm(e, 0),
                                      .self = real(e, 1)};
        factor[i] = expression_element(e, x, &at);
    }
    LLVMValueRef word = x ? pack(e, factor[0], factor[1]) : imm(e, 0);
    e->slot[vector] = outside;
    free(x);
    sync_warp(e); /* all have read */
    LLVMBuildStore(e->b, word, byte_offset(e, to, mul(e, e->lane, imm(e, 4))));
}

static void round_all(struct emit *e, const struct walk *w)
{
    const struct plan *p = e->p;
    const struct role *role = &p->roles[ROLE_LOAD];
    for (uint32_t v = 0; v < p->n_values; v++) {
        if (!p->rounded[v])
            continue;
        const uint32_t vector = p->rounded[v] - 1U, heads = p->values[vector].by_head ? p->heads : 1;
        LLVMValueRef head;
        const struct counted l = loop_from(e, sub(e, e->warp, imm(e, role->first_warp)), imm(e, heads), &head);
        round_pair(e, &p->values[v], vector, add(e, mul(e, w->stage, imm(e, heads)), head));
        loop_end(e, &l, role->warps);
        sync_warp(e);
    }
}

LLVMValueRef walk_rounded(struct emit *e, uint32_t operand, uint32_t column_class)
{
    const uint32_t vector = e->p->rounded[operand] - 1U;
    LLVMValueRef slot = e->slot[vector] ? e->slot[vector] : imm(e, 0),
                 at = mul(e, tile_column(e, column_class), imm(e, 2));
    return LLVMBuildLoad2(e->b, e->i32, byte_offset(e, slot_address(e, &e->p->values[vector], slot), at), "");
}

void producer_factors(struct emit *e, struct walk *w, const struct op *op)
{
    (void)op;
    call0(e, "llvm.nvvm.cp.async.commit.group");
    call1(e, "llvm.nvvm.cp.async.wait.group", imm(e, 0));
    sync_warp(e); /* what other lanes have loaded is there */
    if (e->p->factors)
        make_all_factors(e, w);
    if (e->p->ways.any)
        producer_find_ways(e, w);
    LLVMBasicBlockRef after = e->p->ways.scales ? begin_if(e, LLVMBuildNot(e->b, walk_is_decayed(e, w), "")) : NULL;
    round_all(e, w);
    if (after)
        end_if(e, after);
}
