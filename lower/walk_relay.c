/* lower/walk_relay.c - the state from one thread block to the next, which walks on (compiler/relay.c).
 *
 * A warp leaves the registers that it has of the state as they are, and the same warp of the next thread block takes them. Between
 * the two stands a number for each warp: that of the segment whose turn it is. It is 0 when the kernel begins, for the program's
 * first one clears it, and 0 again when the last segment has begun, for the next kernel that relays. */
#include "compiler/plan_program.h"
#include "lower/walk.h"

enum { PER_ACCESS = 4 }; /* numbers that a thread loads or stores at once */

static LLVMValueRef turn_address(struct emit *e, const struct walk *w)
{
    LLVMValueRef warps = imm(e, 4 * e->p->groups), warp = add(e, mul(e, w->group, imm(e, 4)), e->warp);
    LLVMValueRef number = add(e, wide(e, warp), mul(e, wide(e, e->relayed), wide(e, warps)));
    return byte_offset(e, argument(e, TG_ARG_POINTER, TILE_TURN, 0), mul(e, number, imm64(e, sizeof(int32_t))));
}

/* Of the thread's numbers the first ones: 16 bytes, beside those of its neighbours. */
static LLVMValueRef first_address(struct emit *e, const struct walk *w)
{
    LLVMValueRef thread = add(e, mul(e, w->group, imm(e, 128)), e->tid),
                 before = mul(e, wide(e, e->relayed), imm64(e, 128 * e->p->groups * plan_relayed(e->p) / PER_ACCESS));
    return byte_offset(e, argument(e, TG_ARG_POINTER, TILE_RELAY, 0),
                       mul(e, add(e, before, wide(e, thread)), imm64(e, PER_ACCESS * sizeof(float))));
}

/* ... of access `i`. */
static LLVMValueRef relayed_address(struct emit *e, LLVMValueRef first, uint32_t i)
{
    return byte_offset(e, first, imm64(e, i * 128 * e->p->groups * PER_ACCESS * sizeof(float)));
}

static LLVMValueRef segment_of(struct emit *e)
{
    return divide(e, e->at.start[TG_SEG], imm(e, e->p->segment));
}

void walk_take(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMTypeRef type = LLVMVectorType(e->f32, PER_ACCESS);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, is_first_segment(e), ""));
    LLVMValueRef first = first_address(e, w);
    turn_wait(e, turn_address(e, w), segment_of(e));
    for (uint32_t i = 0; i < plan_relayed(e->p) / PER_ACCESS; i++) {
        LLVMValueRef x = LLVMBuildLoad2(e->b, type, relayed_address(e, first, i), "");
        LLVMSetAlignment(x, PER_ACCESS * sizeof(float));
        for (uint32_t r = 0; r < PER_ACCESS; r++)
            set(e, e->registers[op->v][PER_ACCESS * i + r], LLVMBuildExtractElement(e->b, x, imm(e, r), ""));
    }
    end_if(e, after);
}

static void store_state(struct emit *e, const struct walk *w, uint32_t v)
{
    LLVMValueRef first = first_address(e, w);
    for (uint32_t i = 0; i < plan_relayed(e->p) / PER_ACCESS; i++) {
        LLVMValueRef x = LLVMGetUndef(LLVMVectorType(e->f32, PER_ACCESS));
        for (uint32_t r = 0; r < PER_ACCESS; r++)
            x = LLVMBuildInsertElement(e->b, x, get(e, e->f32, e->registers[v][PER_ACCESS * i + r]), imm(e, r), "");
        LLVMSetAlignment(LLVMBuildStore(e->b, x, relayed_address(e, first, i)), PER_ACCESS * sizeof(float));
    }
}

void walk_pass(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef is_last = LLVMBuildICmp(e->b, LLVMIntEQ, w->end, end_of_walk(e, &e->p->nests[0]), "");
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, is_last, ""));
    store_state(e, w, op->v);
    end_if(e, after);
    sync_warp(e);
    after = begin_if(e, both(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""),
                             LLVMBuildNot(e->b, both(e, is_last, is_first_segment(e)), "")));
    turn_set(e, turn_address(e, w), choose(e, is_last, imm(e, 0), add(e, segment_of(e), imm(e, 1))));
    end_if(e, after);
}

/* By no more thread blocks than are there at once. */
void clear_numbers(struct emit *e, uint32_t tile)
{
    enum { MOST_BLOCKS = 1024 };
    LLVMValueRef threads = imm(e, e->p->threads * plan_chunks_together(e->p)),
                 block = call0(e, "llvm.nvvm.read.ptx.sreg.ctaid.x"),
                 blocks = smaller(e, call0(e, "llvm.nvvm.read.ptx.sreg.nctaid.x"), imm(e, MOST_BLOCKS)),
                 of_sequence = LLVMBuildTrunc(e->b, argument(e, TG_ARG_STRIDE, tile, 0), e->i32, ""),
                 count = mul(e, argument(e, TG_ARG_SIZE, TG_SIZE_BATCH, 0), of_sequence), round;
    LLVMBasicBlockRef others = begin_if(e, less(e, block, blocks));
    const struct counted l = loop_begin(e, add(e, divide(e, count, mul(e, blocks, threads)), imm(e, 1)), &round);
    LLVMValueRef i = add(e, mul(e, add(e, mul(e, round, blocks), block), threads), e->tid);
    LLVMBasicBlockRef after = begin_if(e, less(e, i, count));
    LLVMBuildStore(e->b, imm(e, 0),
                   byte_offset(e, argument(e, TG_ARG_POINTER, tile, 0), mul(e, wide(e, i), imm64(e, sizeof(int32_t)))));
    end_if(e, after);
    loop_end(e, &l, 1);
    end_if(e, others);
}
