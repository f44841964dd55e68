/* lower/walk_careful.c - a NaN in a value reaches the rows that it influences and no others: kernels on warpgroups.
 *
 * The masked tile of positions is zero where a value has no influence, and zero times NaN is NaN (careful.c). Here the
 * values are the left operand in registers, whose row of 64 positions four lanes have. Bad ones become 0 for the product; what
 * they reach becomes NaN before: in the output the positions from the first bad one on (in gradients that go from queries to
 * keys: up to the last). A fetched matrix stays so for the state's products, and the whole row of the state becomes NaN too;
 * a computed tile is packed anew for these. No wgmma is in flight there.
 *
 * requires: the product's sum has begun */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

enum { WORDS = 16, CHAINS = 2, ROWS = 2, NOWHERE = 1000 }; /* of `left`; sums beside each other; a lane's; a position */

/* Word i has row i % 2 and these two positions, k = 0 and 1, from the first one of the lane on. */
static int32_t position_of(uint32_t word, uint32_t k)
{
    return (int32_t)(word / 4 * 16 + word / 2 % 2 * 8 + k);
}

/* Bad as soon as one of the two is, or when their product is too large: then they are looked at one by one. */
static LLVMValueRef add_product(struct emit *e, LLVMValueRef sum, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef args[3] = {as(e, a, e->v2bf16), as(e, b, e->v2bf16), sum};
    return call(e, "llvm.fma", &e->v2bf16, 1, args, 3);
}

/* Is there a NaN or an infinity in the words? f16's products would often be too large. */
static LLVMValueRef sum_of_words(struct emit *e, const LLVMValueRef words[WORDS], uint32_t first, uint32_t step)
{
    const bool in_pairs = e->p->shape.io == TG_BF16;
    LLVMValueRef sum = LLVMConstNull(in_pairs ? e->v2bf16 : e->v2f16);
    for (uint32_t i = first; i < WORDS; i += in_pairs ? 2 * step : step)
        sum = in_pairs ? add_product(e, sum, words[i], words[i + step]) : add_nothing(e, TG_F16, sum, words[i]);
    return in_pairs ? add_nothing(e, TG_BF16, LLVMConstNull(e->v2bf16), as(e, sum, e->i32)) : sum;
}

LLVMValueRef careful_sees(struct emit *e, const LLVMValueRef words[WORDS], bool soon)
{
    LLVMValueRef any = NULL;
    for (uint32_t i = 0; i < (soon ? CHAINS : 1); i++) {
        LLVMValueRef sum = as(e, sum_of_words(e, words, i, soon ? CHAINS : 1), e->i32);
        any = any ? LLVMBuildOr(e->b, any, sum, "") : sum;
    }
    LLVMValueRef bits = LLVMBuildAnd(e->b, any, imm(e, 0x7fff7fff), ""); /* zeros of either sign, or NaN */
    LLVMValueRef args[] = {imm(e, -1), LLVMBuildICmp(e->b, LLVMIntNE, bits, imm(e, 0), "")};
    return call(e, "llvm.nvvm.vote.any.sync", NULL, 0, args, 2);
}

/* The output's positions that a value at a position reaches: up to it, or from it on? */
bool walk_is_backward(const struct emit *e, const struct op *op)
{
    return e->p->values[op->v].dims[0] == TG_LKV;
}

static LLVMValueRef nearer(struct emit *e, bool backward, LLVMValueRef a, LLVMValueRef b)
{
    return choose(e, LLVMBuildICmp(e->b, backward ? LLVMIntSGT : LLVMIntSLT, a, b, ""), a, b);
}

/* From positions of the lane to those of the lane by way of the row's. */
static LLVMValueRef of_quad(struct emit *e, bool backward, LLVMValueRef x)
{
    LLVMValueRef lane_begin = mul(e, e->quad_column, imm(e, 2));
    x = add(e, x, lane_begin);
    for (uint32_t lane = 1; lane < 4; lane *= 2) {
        LLVMValueRef args[] = {imm(e, -1), x, imm(e, lane), imm(e, 31)};
        x = nearer(e, backward, x, call(e, "llvm.nvvm.shfl.sync.bfly.i32", NULL, 0, args, 4));
    }
    return sub(e, x, lane_begin);
}

/* Takes bad values out of the words. first[row]: the first bad position, or the last one; beyond all if there is none. */
static void clean(struct emit *e, const LLVMValueRef left[WORDS], LLVMValueRef words[WORDS], bool backward,
                  LLVMValueRef first[ROWS])
{
    const uint32_t exponent = e->p->shape.io == TG_BF16 ? 0x7f80 : 0x7c00;
    first[0] = first[1] = imm(e, backward ? -NOWHERE : NOWHERE);
    for (uint32_t i = 0; i < WORDS; i++) {
        LLVMValueRef word = left[i];
        for (uint32_t k = 0; k < 2; k++) {
            LLVMValueRef mask = imm(e, (int64_t)exponent << 16 * k), keep = imm(e, k ? 0xffff : (int64_t)0xffff0000u);
            LLVMValueRef bad = LLVMBuildICmp(e->b, LLVMIntEQ, LLVMBuildAnd(e->b, left[i], mask, ""), mask, "");
            first[i % 2] = choose(e, bad, nearer(e, backward, first[i % 2], imm(e, position_of(i, k))), first[i % 2]);
            word = choose(e, bad, LLVMBuildAnd(e->b, word, keep, ""), word);
        }
        set(e, words[i], word);
    }
    for (uint32_t row = 0; row < ROWS; row++)
        first[row] = of_quad(e, backward, first[row]);
}

static void spoil(struct emit *e, LLVMValueRef slot, LLVMValueRef when)
{
    set(e, slot, choose(e, when, LLVMConstReal(e->f32, __builtin_nan("")), get(e, e->f32, slot)));
}

/* Is the row of the state to become NaN? Only where its products take the words too (`kept`); but it is read in any case, by a
 * question whose answer is no: the assembler would move the decay of a state that is not read here behind the branch, where it
 * waits for products that it could run beside. */
static LLVMValueRef is_state_spoilt(struct emit *e, LLVMValueRef first, bool backward, bool kept)
{
    if (!kept)
        return LLVMBuildICmp(e->b, LLVMIntEQ, first, imm(e, 2 * NOWHERE), "");
    return LLVMBuildICmp(e->b, backward ? LLVMIntSGT : LLVMIntSLT, first, imm(e, backward ? -WALK_TILE : WALK_TILE),
                         "");
}

void careful_left(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef left[WORDS], LLVMValueRef careful,
                  bool kept)
{
    const struct plan *p = e->p;
    const bool backward = walk_is_backward(e, op);
    const uint32_t n_state = walk_registers(p, &p->values[p->state]) * plan_heads_in_columns(p),
                   n = walk_registers(p, &p->values[op->v]);
    LLVMValueRef words[WORDS], first[ROWS];
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = local(e, e->i32, "left");
        set(e, words[i], left[i]);
    }
    LLVMBasicBlockRef after = begin_if(e, careful);
    clean(e, left, words, backward, first);
    for (uint32_t r = 0; r < n; r++)
        spoil(e, e->registers[op->v][r],
              LLVMBuildICmp(e->b, backward ? LLVMIntSGE : LLVMIntSLE, first[r / 2 % 2], imm(e, r / 4 * 8 + r % 2), ""));
    for (uint32_t r = 0; (kept || !p->sums_heads) && r < n_state; r++)
        spoil(e, e->registers[p->state][w->tile * n_state + r], is_state_spoilt(e, first[r / 2 % 2], backward, kept));
    end_if(e, after);
    for (uint32_t i = 0; i < WORDS; i++)
        left[i] = get(e, e->i32, words[i]);
}
