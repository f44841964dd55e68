/* lower/walk_factors.c - exponentials of differences between positions by factors (compiler/factor.c): the warps that load make
 * them of the vectors of a stage, in their places, and say for each head whether they have. */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

enum { LANES = 32, HALVES = WALK_TILE / LANES, MIDDLE = WALK_TILE / 2 - 1, LARGEST = 60 /* of a factor's log */ };

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

/* Both vectors of a head. All lanes have read theirs before any writes: a vote alone does not order that. */
static void make_factors(struct emit *e, const struct walk *w, LLVMValueRef head)
{
    const struct plan *p = e->p;
    const uint32_t vectors[] = {p->factor_rows, p->factor_columns};
    LLVMValueRef slot = add(e, mul(e, w->stage, imm(e, p->heads)), head), at[2], logs[2][HALVES], middle[2],
                 small = NULL;
    for (uint32_t k = 0; k < 2; k++) {
        at[k] = slot_address(e, &p->values[vectors[k]], slot);
        for (uint32_t half = 0; half < HALVES; half++) {
            LLVMValueRef x[2];
            load_gate(e, at[k], half, x);
            for (uint32_t i = 0; k == 0 && half == 0 && i < 2; i++)
                middle[i] = from_lane(e, x[i], MIDDLE);
            logs[k][half] = k == 0 ? difference(e, x, middle) : difference(e, middle, x);
            small = both(e, small, is_small(e, logs[k][half]));
        }
    }
    LLVMValueRef args[] = {imm(e, -1), small}, all = call(e, "llvm.nvvm.vote.all.sync", NULL, 0, args, 2);
    sync_warp(e);
    LLVMBasicBlockRef after = begin_if(e, all);
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t half = 0; half < HALVES; half++)
            LLVMBuildStore(e->b, exp2_approx(e, logs[k][half]),
                           byte_offset(e, at[k], mul(e, add(e, e->lane, imm(e, half * LANES)), imm(e, 4))));
    end_if(e, after);
    after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    LLVMBuildStore(e->b, LLVMBuildZExt(e->b, all, e->i32, ""), flag_address(e, w, head));
    end_if(e, after);
}

void producer_factors(struct emit *e, const struct walk *w)
{
    const struct role *role = &e->p->roles[ROLE_LOAD];
    if (!e->p->factors)
        return;
    LLVMValueRef head;
    const struct counted l = loop_from(e, sub(e, e->warp, imm(e, role->first_warp)), imm(e, e->p->heads), &head);
    make_factors(e, w, head);
    loop_end(e, &l, role->warps);
    sync_warp(e);
}

LLVMValueRef walk_has_factors(struct emit *e, const struct walk *w)
{
    LLVMValueRef flag = LLVMBuildLoad2(e->b, e->i32, flag_address(e, w, e->at.start[TG_MEMBER]), "");
    return LLVMBuildICmp(e->b, LLVMIntNE, uniform(e, flag), imm(e, 0), "");
}
