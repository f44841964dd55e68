/* lower/thread_rows.c - a state whose decays of rows are in the rows that it meets (compiler/rows_apart.c).
 *
 * What is in registers is the state over c, the product of its rows' decays since the first token. Rows that are summed with it are
 * multiplied by c before the walk, what is added to it is divided by c. The decay of each token becomes c as it is behind that token, by which
 * what is stored is multiplied. From the first token on at which c of any row is so small, or large, that this would overflow, all stays as it was
 * made, and tokens decay the state. Which that is hangs on the tokens up to it alone, so that a state is to the bit the same whatever follows. */
#include "lower/emit.h"

#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"

#include <stdlib.h>

enum { MOST_TOKENS = 8 };
static const double least_c = 0x1p-60, most_c = 0x1p60;

/* A thread's channels of a row, side by side. */
struct channels {
    LLVMTypeRef type;
    uint32_t n;
    LLVMValueRef first, there; /* index of the first of them; i1: is it one? */
};

static struct channels channels_of(struct emit *e)
{
    const uint32_t all = e->p->block[plan_shared_dim(e->p)];
    struct channels at = {.n = 1};
    while (at.n * e->p->threads < all)
        at.n *= 2;
    at.type = LLVMVectorType(e->f32, at.n);
    LLVMValueRef first = mul(e, e->tid, imm(e, at.n));
    at.there = less(e, first, imm(e, all));
    at.first = smaller(e, first, imm(e, all - at.n));
    return at;
}

static LLVMValueRef address(struct emit *e, const struct channels *at, uint32_t v, LLVMValueRef token)
{
    const struct value *row = &e->p->values[v];
    LLVMValueRef offset = add(e, mul(e, token, imm(e, row->row_bytes)), imm(e, row->offset));
    return byte_offset(e, e->arena, add(e, offset, mul(e, at->first, imm(e, tg_dtype_bytes(TG_F32)))));
}

static LLVMValueRef load(struct emit *e, const struct channels *at, uint32_t v, LLVMValueRef token)
{
    LLVMValueRef x = LLVMBuildLoad2(e->b, at->type, address(e, at, v, token), "");
    LLVMSetAlignment(x, at->n * tg_dtype_bytes(TG_F32));
    return x;
}

static void put(struct emit *e, const struct channels *at, uint32_t v, LLVMValueRef token, LLVMValueRef x)
{
    LLVMSetAlignment(LLVMBuildStore(e->b, x, address(e, at, v, token)), at->n * tg_dtype_bytes(TG_F32));
}

static LLVMValueRef each_of(struct emit *e, const struct channels *at, double x)
{
    LLVMValueRef all = LLVMGetUndef(at->type);
    for (uint32_t i = 0; i < at->n; i++)
        all = LLVMBuildInsertElement(e->b, all, real(e, x), imm(e, i), "");
    return all;
}

static LLVMValueRef reciprocal(struct emit *e, const struct channels *at, LLVMValueRef x)
{
    LLVMValueRef y = LLVMGetUndef(at->type);
    for (uint32_t i = 0; i < at->n; i++) {
        LLVMValueRef one = call1(e, "llvm.nvvm.rcp.approx.ftz.f", LLVMBuildExtractElement(e->b, x, imm(e, i), ""));
        y = LLVMBuildInsertElement(e->b, y, one, imm(e, i), "");
    }
    return y;
}

/* c behind each token; behind those that are there it stays. */
static void products(struct emit *e, const struct channels *at, uint32_t decay, LLVMValueRef c[MOST_TOKENS])
{
    LLVMValueRef last = sub(e, e->at.chunks, imm(e, 1)), before = each_of(e, at, 1);
    for (uint32_t t = 0; t < e->p->schedule->max_tokens; t++) {
        LLVMValueRef x = LLVMBuildFMul(e->b, before, load(e, at, decay, smaller(e, imm(e, t), last)), "");
        before = c[t] = choose(e, less(e, imm(e, t), e->at.chunks), x, before);
    }
}

/* Is c of one of the tensor's channels out of range, or a NaN? */
static LLVMValueRef is_bad(struct emit *e, const struct channels *at, LLVMValueRef c)
{
    LLVMValueRef any = LLVMConstInt(e->i1, 0, 0), end = imm(e, plan_dim_size(e->p, plan_shared_dim(e->p)));
    for (uint32_t i = 0; i < at->n; i++) {
        LLVMValueRef x = LLVMBuildExtractElement(e->b, c, imm(e, i), ""),
                     small = LLVMBuildFCmp(e->b, LLVMRealULT, x, real(e, least_c), ""),
                     large = LLVMBuildFCmp(e->b, LLVMRealUGT, x, real(e, most_c), "");
        LLVMValueRef bad = both(e, less(e, add(e, at->first, imm(e, i)), end), LLVMBuildOr(e->b, small, large, ""));
        any = LLVMBuildOr(e->b, any, bad, "");
    }
    return both(e, at->there, any);
}

static LLVMValueRef any_thread(struct emit *e, LLVMValueRef x)
{
    LLVMValueRef args[2] = {imm(e, 0), x};
    return call(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", NULL, 0, args, 2);
}

/* The first token at which c of any thread's channels is bad, else most. */
static void find_first(struct emit *e, const struct channels *at, const LLVMValueRef c[MOST_TOKENS], LLVMValueRef first)
{
    const uint32_t most = e->p->schedule->max_tokens;
    LLVMValueRef bad[MOST_TOKENS], any = LLVMConstInt(e->i1, 0, 0);
    for (uint32_t t = 0; t < most; t++)
        any = LLVMBuildOr(e->b, any, bad[t] = is_bad(e, at, c[t]), "");
    set(e, first, imm(e, most));
    LLVMBasicBlockRef after = begin_if(e, any_thread(e, any));
    for (uint32_t t = most; t-- > 0;)
        set(e, first, choose(e, any_thread(e, bad[t]), imm(e, t), get(e, e->i32, first)));
    end_if(e, after);
}

/* Does every token leave the state in memory? */
static bool is_kept_each(const struct plan *p, uint32_t state)
{
    bool is_kept = false;
    for (uint32_t i = 0; i < p->n_ops; i++)
        is_kept |= p->ops[i].kind == OP_STORE && p->ops[i].v == state && plan_keeps_on_the_way(p, p->ops[i].tile);
    return is_kept;
}

/* The rows of token t that the state of that decay meets, from operation `begin` on. */
static void part_token(struct emit *e, const struct channels *at, const struct op *decay, uint32_t begin, uint32_t t,
                       const LLVMValueRef c[MOST_TOKENS])
{
    LLVMValueRef token = imm(e, t),
                 is_first = LLVMBuildICmp(e->b, LLVMIntEQ, token, get(e, e->i32, e->decayed_from[decay->v]), "");
    for (uint32_t i = begin; e->p->ops[i].kind != OP_END; i++) {
        const struct op *op = &e->p->ops[i];
        const int row = plan_row_beside(e->p, op, decay->v);
        const bool sums = op->v != decay->v;
        if (row < 0 || op == decay || (sums && !t))
            continue;
        LLVMValueRef by = sums ? c[t - 1] : choose(e, is_first, each_of(e, at, 1), reciprocal(e, at, c[t]));
        put(e, at, (uint32_t)row, token, LLVMBuildFMul(e->b, load(e, at, (uint32_t)row, token), by, ""));
    }
    if (is_kept_each(e->p, decay->v))
        put(e, at, decay->a, token, c[t]);
}

static void part_tokens(struct emit *e, const struct channels *at, const struct op *decay, uint32_t begin,
                        const LLVMValueRef c[MOST_TOKENS])
{
    LLVMValueRef first = get(e, e->i32, e->decayed_from[decay->v]),
                 end = smaller(e, e->at.chunks, add(e, first, imm(e, 1)));
    LLVMValueRef last = c[0];
    LLVMBasicBlockRef after = begin_if(e, at->there);
    for (uint32_t t = 0; t < e->p->schedule->max_tokens; t++) {
        LLVMValueRef is_parted = less(e, imm(e, t), end);
        LLVMBasicBlockRef behind = begin_if(e, is_parted);
        part_token(e, at, decay, begin, t, c);
        end_if(e, behind);
        last = choose(e, is_parted, c[t], last);
    }
    if (!is_kept_each(e->p, decay->v))
        put(e, at, decay->a, sub(e, end, imm(e, 1)), last);
    end_if(e, after);
}

static void part_state(struct emit *e, const struct op *decay, uint32_t begin)
{
    const struct channels at = channels_of(e);
    LLVMValueRef c[MOST_TOKENS];
    e->decayed_from[decay->v] = local(e, e->i32, "first");
    set(e, e->decayed_from[decay->v], imm(e, 0));
    LLVMBasicBlockRef after = begin_if(e, less(e, imm(e, 0), e->at.chunks));
    products(e, &at, decay->a, c);
    find_first(e, &at, c, e->decayed_from[decay->v]);
    part_tokens(e, &at, decay, begin, c);
    barrier(e);
    end_if(e, after);
}

/* The operation that decays the state; those of others have no rows apart. */
static uint32_t decay_of(const struct plan *p, uint32_t state)
{
    uint32_t i = 0;
    while (p->ops[i].kind != OP_DECAY || p->ops[i].v != state)
        i++;
    return i;
}

void part_rows(struct emit *e, uint32_t begin)
{
    for (uint32_t v = 0; v < e->p->n_values; v++)
        if (e->p->values[v].rows_apart)
            part_state(e, &e->p->ops[decay_of(e->p, v)], begin);
}

/* From the row of the token at hand, if that is before the first that decays the state, or from there on. */
static void decay_where(struct emit *e, uint32_t state, LLVMIntPredicate where)
{
    const uint32_t i = decay_of(e->p, state);
    LLVMValueRef first = get(e, e->i32, e->decayed_from[state]);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, where, e->at.start[TG_CHUNK], first, ""));
    load_rows_for(e, &e->p->ops[i]);
    emit_ops(e, i, i + 1);
    end_if(e, after);
}

void decay_rows(struct emit *e, uint32_t state)
{
    decay_where(e, state, LLVMIntUGE);
}

/* ... without a branch, behind which all of a copy would have to be there at once. */
static void decay_copy(struct emit *e, uint32_t state)
{
    const uint32_t i = decay_of(e->p, state), row = e->p->ops[i].a;
    LLVMValueRef first = get(e, e->i32, e->decayed_from[state]);
    LLVMValueRef is_apart = LLVMBuildICmp(e->b, LLVMIntULT, e->at.start[TG_CHUNK], first, "");
    load_rows_for(e, &e->p->ops[i]);
    for (uint32_t r = 0; r < plan_held_count(e->p, &e->p->values[row]); r++) {
        LLVMValueRef slot = e->registers[row][2 * r];
        set(e, slot, choose(e, is_apart, get(e, e->f32, slot), real(e, 1)));
    }
    emit_ops(e, i, i + 1);
}

/* A copy, for the walk goes on with what there is. */
void store_undecayed(struct emit *e, const struct op *op)
{
    const uint32_t n = plan_held_count(e->p, &e->p->values[op->v]);
    LLVMValueRef *const state = e->registers[op->v], *whole = new_registers(e, op->v);
    for (uint32_t r = 0; r < n; r++)
        set(e, whole[2 * r], get(e, e->f32, state[2 * r]));
    e->registers[op->v] = whole;
    decay_copy(e, op->v);
    emit_store(e, op);
    e->registers[op->v] = state;
    free(whole);
}

/* Without tokens there is none before the first. */
void end_rows(struct emit *e)
{
    const struct place outside = e->at;
    e->at.start[TG_CHUNK] = sub(e, e->at.chunks, imm(e, 1));
    for (uint32_t v = 0; v < e->p->n_values; v++)
        if (e->p->values[v].rows_apart)
            decay_where(e, v, LLVMIntULT);
    e->at = outside;
}
