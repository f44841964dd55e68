/* lower/thread_share.c - the uniform part of a loop, shared out among the threads (compiler/share.c).
 *
 * Thread t does steps t, t + threads, ... of what is uniform: its loads then lie side by side, where a loop would fetch
 * the same few bytes for all threads and step by step. What the other threads read goes to shared memory, the held
 * chunks of a step side by side, so that two 16-byte loads bring eight tokens. Sums over the steps are added up across
 * the threads, in an order that does not depend on anything. */
#include "compiler/plan_thread.h"
#include "lower/emit.h"

/* ---- staged tiles ---- */

bool is_staged_in(const struct emit *e, uint32_t i, const struct nest *nest)
{
    const struct value *v = &e->p->values[i];
    return v->staged && v->nest >= 0 && &e->p->nests[v->nest] == nest;
}

static LLVMValueRef staged_address(struct emit *e, const struct value *v, LLVMValueRef step, uint32_t first)
{
    LLVMValueRef row = add(e, mul(e, step, imm(e, v->row_bytes)), imm(e, v->offset + 4 * first));
    return byte_offset(e, e->arena, row);
}

/* Floats moved at once from number `first` of `n` on. */
static uint32_t width_at(uint32_t first, uint32_t n)
{
    return n - first >= 4 ? 4 : n - first >= 2 ? 2 : 1;
}

static void put_staged(struct emit *e, uint32_t i, LLVMValueRef step)
{
    const struct value *v = &e->p->values[i];
    const uint32_t n = plan_held_count(e->p, v);
    for (uint32_t r = 0, width; r < n; r += width) {
        width = width_at(r, n);
        LLVMValueRef x = LLVMGetUndef(LLVMVectorType(e->f32, width));
        for (uint32_t k = 0; k < width; k++)
            x = LLVMBuildInsertElement(e->b, x, get(e, e->f32, e->registers[i][2 * (r + k)]), imm(e, k), "");
        LLVMSetAlignment(LLVMBuildStore(e->b, x, staged_address(e, v, step, r)), 4 * width);
    }
}

void load_staged(struct emit *e, uint32_t i, LLVMValueRef step)
{
    const struct value *v = &e->p->values[i];
    const uint32_t n = plan_held_count(e->p, v);
    for (uint32_t r = 0, width; r < n; r += width) {
        width = width_at(r, n);
        LLVMValueRef x = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, width), staged_address(e, v, step, r), "");
        LLVMSetAlignment(x, 4 * width);
        for (uint32_t k = 0; k < width; k++) {
            set(e, e->registers[i][2 * (r + k)], LLVMBuildExtractElement(e->b, x, imm(e, k), ""));
            set(e, e->registers[i][2 * (r + k) + 1], real(e, 0));
        }
    }
}

/* What waits for the end of the nest: from one thread, which has what all have. */
static void put_kept(struct emit *e, const struct nest *nest)
{
    LLVMBasicBlockRef after = nest->kept ? begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), "")) : NULL;
    for (uint32_t i = 0; i < e->p->n_values; i++)
        if (nest->kept >> i & 1)
            put_staged(e, i, imm(e, 0));
    if (after)
        end_if(e, after);
}

void load_kept(struct emit *e, const struct nest *nest)
{
    for (uint32_t i = 0; i < e->p->n_values; i++)
        if (nest->kept >> i & 1)
            load_staged(e, i, imm(e, 0));
}

/* ---- sums over the steps ---- */

/* Calls `each` for every register of every uniform sum of the nest, with its number. The register beside it, of no use
 * to a float, has what the sum was before. */
typedef void each_sum(struct emit *e, LLVMValueRef *slot, uint32_t at);

static void for_sums(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end, each_sum *each)
{
    uint32_t at = 0;
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &e->p->ops[i];
        const uint32_t n = plan_is_uniform_sum(e->p, nest, op) ? plan_held_count(e->p, &e->p->values[op->v]) : 0;
        for (uint32_t r = 0; r < n; r++, at++)
            each(e, &e->registers[op->v][2 * r], at);
    }
}

static LLVMValueRef sum_address(struct emit *e, LLVMValueRef warp, uint32_t at)
{
    const uint32_t warps = e->p->threads / 32;
    return byte_offset(e, e->arena, add(e, mul(e, warp, imm(e, 4)), imm(e, e->p->sums_offset + 4 * at * warps)));
}

static void start_sum(struct emit *e, LLVMValueRef *slot, uint32_t at)
{
    (void)at;
    set(e, slot[1], get(e, e->f32, slot[0]));
    set(e, slot[0], real(e, 0));
}

static void add_in_warp(struct emit *e, LLVMValueRef *slot, uint32_t at)
{
    (void)at;
    LLVMValueRef sum = get(e, e->f32, slot[0]);
    for (uint32_t by = 1; by < 32; by *= 2) {
        LLVMValueRef args[4] = {imm(e, -1), sum, imm(e, by), imm(e, 31)};
        sum = LLVMBuildFAdd(e->b, sum, call(e, "llvm.nvvm.shfl.sync.bfly.f32", NULL, 0, args, 4), "");
    }
    set(e, slot[0], sum);
}

static void put_sum(struct emit *e, LLVMValueRef *slot, uint32_t at)
{
    LLVMBuildStore(e->b, get(e, e->f32, slot[0]), sum_address(e, e->warp, at));
}

static void add_warps(struct emit *e, LLVMValueRef *slot, uint32_t at)
{
    LLVMValueRef sum = get(e, e->f32, slot[1]);
    for (uint32_t w = 0; w < e->p->threads / 32; w++)
        sum = LLVMBuildFAdd(e->b, sum, LLVMBuildLoad2(e->b, e->f32, sum_address(e, imm(e, w), at), ""), "");
    set(e, slot[0], sum);
    set(e, slot[1], real(e, 0));
}

/* Of all threads, in all threads. No branch between the sums: each waits long for its shuffles. */
static void add_up(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    for_sums(e, nest, begin, end, add_in_warp);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    for_sums(e, nest, begin, end, put_sum);
    end_if(e, after);
    barrier(e);
    for_sums(e, nest, begin, end, add_warps);
}

/* ---- the steps ---- */

static void share_step(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].kind == OP_LOAD && !(e->p->ops[i].flags & OP_ONCE) &&
            plan_is_shared_out(e->p, nest, &e->p->ops[i]))
            load_thread(e, e->p->ops[i].v);
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].kind != OP_LOAD && plan_is_shared_out(e->p, nest, &e->p->ops[i]))
            emit_ops(e, i, i + 1);
    for (uint32_t i = 0; i < e->p->n_values; i++)
        if (is_staged_in(e, i, nest))
            put_staged(e, i, e->at.start[nest->loops[0].dim]);
}

void share_out(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    const uint32_t trips = nest->loops[0].trips, dim = nest->loops[0].dim;
    LLVMValueRef outside = e->at.start[dim], first;
    if (e->shares)
        barrier(e); /* all have read what the nest before left in shared memory */
    e->shares = true;
    for_sums(e, nest, begin, end, start_sum);
    struct counted l = loop_begin(e, imm(e, trips), &first);
    l.rolled = trips > e->p->threads; /* unrolled, its loads would take all registers */
    LLVMValueRef step = add(e, e->tid, first);
    LLVMBasicBlockRef after = trips % e->p->threads ? begin_if(e, less(e, step, imm(e, trips))) : NULL;
    e->at.start[dim] = step;
    share_step(e, nest, begin, end);
    if (after)
        end_if(e, after);
    loop_end(e, &l, e->p->threads);
    e->at.start[dim] = outside;
    put_kept(e, nest);
    add_up(e, nest, begin, end);
}
