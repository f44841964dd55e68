/* lower/expression.c - element-wise expressions, evaluated on whatever registers hold the elements.
 *
 * A sub-expression that depends on the row only is the same for every column: it is evaluated once per row
 * class and remembered; likewise for columns and for scalars. That is what hoists 2^b out of a tile. */
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"
#include "compiler/plan_walk.h"
#include "lower/channel.h"

#include <stdlib.h>
#include <string.h>

enum { BY_ROW = 1, BY_COLUMN = 2 };

static bool is_mask(uint8_t code)
{
    return code == TG_X_CAUSAL || code == TG_X_BEFORE;
}

struct term {
    struct pair x;
    LLVMValueRef of[2]; /* it is the product of these, where an addition may take it so; NULL: it is none */
    uint32_t by;        /* what it depends on */
    uint32_t split;     /* dimensions of whose sum this thread block has a part */
};

static bool has_causal(const tg_stmt *s)
{
    for (uint32_t i = 0; i < TG_MAX_EXPR && s->expr[i].op != TG_X_END; i++)
        if (is_mask(s->expr[i].op))
            return true;
    return false;
}

/* A tile of positions that no zeros above the diagonal end where the sequence does, and of which a sum takes everything? Products need no
 * such end: the other operand is zero there. */
static bool is_summed_to_the_end(const struct plan *p, const struct value *out)
{
    if (out->n_dims < 2 || !plan_is_position(out->dims[0]) || !plan_is_position(out->dims[1]) ||
        plan_is_lower(p->algorithm, TG_OPERAND_TILE(out->operand)))
        return false;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_DOT && &p->values[p->ops[i].a] == out && !p->algorithm->body[p->ops[i].stmt].b)
            return true;
    return false;
}

struct expression *expression_begin(struct emit *e, int stmt, const struct value *out, bool causal)
{
    struct expression *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->stmt = &e->p->algorithm->body[stmt];
    x->out = out;
    x->causal = causal;
    x->ends = is_summed_to_the_end(e->p, out);
    return x;
}

static LLVMValueRef absolute(struct emit *e, LLVMValueRef a)
{
    return call(e, "llvm.fabs", &e->f32, 1, &a, 1);
}

LLVMValueRef exp2_approx(struct emit *e, LLVMValueRef a)
{
    return call(e, "llvm.nvvm.ex2.approx.ftz", &e->f32, 1, &a, 1);
}

/* log1p(t) for t in [0, 1] by 2 atanh(t / (2 + t)): the hardware logarithm of 1 + t would lose the small t
 * that a long cumulative sum is made of. Eight terms: the ninth is below 2^-26 of the sum. The reciprocal of a number
 * in [2, 3] is good to one unit in the last place. */
static LLVMValueRef log1p_series(struct emit *e, const struct expression *x, LLVMValueRef t)
{
    if (e->p->spreads || plan_is_of_rows(e->p, x->out)) { /* sums of one chunk, in products of 16 bits: to 2^-22 */
        LLVMValueRef more = LLVMBuildFAdd(e->b, t, real(e, 1), "");
        return LLVMBuildFMul(e->b, call1(e, "llvm.nvvm.lg2.approx.ftz.f", more), real(e, 0.6931471805599453), "");
    }
    LLVMValueRef s =
        LLVMBuildFMul(e->b, t, call1(e, "llvm.nvvm.rcp.approx.ftz.f", LLVMBuildFAdd(e->b, t, real(e, 2), "")), "");
    LLVMValueRef square = LLVMBuildFMul(e->b, s, s, ""), sum = real(e, 1.0 / 17);
    for (int n = 15; n >= 1; n -= 2)
        sum = fma_of(e, sum, square, real(e, 1.0 / n));
    return LLVMBuildFMul(e->b, LLVMBuildFMul(e->b, s, real(e, 2), ""), sum, "");
}

static const double log2_e = 1.4426950408889634;

/* log2(sigmoid(a)) = (min(a, 0) - log1p(e^-|a|)) log2(e). */
static LLVMValueRef log_sigmoid(struct emit *e, const struct expression *x, LLVMValueRef a)
{
    LLVMValueRef t = exp2_approx(e, LLVMBuildFMul(e->b, absolute(e, a), real(e, -log2_e), ""));
    LLVMValueRef low =
        LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealOGT, a, real(e, 0), ""), real(e, 0), a, ""); /* keeps NaN */
    return LLVMBuildFMul(e->b, LLVMBuildFSub(e->b, low, log1p_series(e, x, t), ""), real(e, log2_e), "");
}

/* log(1 + e^a) = max(a, 0) + log1p(e^-|a|). */
static LLVMValueRef softplus(struct emit *e, const struct expression *x, LLVMValueRef a)
{
    LLVMValueRef t = exp2_approx(e, LLVMBuildFMul(e->b, absolute(e, a), real(e, -log2_e), ""));
    LLVMValueRef high =
        LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealOLT, a, real(e, 0), ""), real(e, 0), a, ""); /* keeps NaN */
    return LLVMBuildFAdd(e->b, high, log1p_series(e, x, t), "");
}

/* To one unit in the last place: the exact reciprocal branches. */
static LLVMValueRef sigmoid(struct emit *e, LLVMValueRef a)
{
    LLVMValueRef t = exp2_approx(e, LLVMBuildFMul(e->b, a, real(e, -log2_e), ""));
    return call1(e, "llvm.nvvm.rcp.approx.ftz.f", LLVMBuildFAdd(e->b, t, real(e, 1), ""));
}

/* On warpgroups, and in each element of channels, to two units in the last place: the exact one branches. */
static LLVMValueRef divide_reals(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef args[] = {a, b};
    return e->p->groups || e->p->by_channel ? call(e, "llvm.nvvm.div.full", NULL, 0, args, 2)
                                            : LLVMBuildFDiv(e->b, a, b, "");
}

/* Minimum and maximum that hand a NaN on, unlike the hardware's. */
static LLVMValueRef extremum(struct emit *e, LLVMRealPredicate takes_a, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, takes_a, a, b, ""), a, b, "");
}

/* query >= key, and the query inside of the chunk where gates behind its end matter: few registers for any number of columns. */
static LLVMValueRef below_diagonal(struct emit *e, const struct element_at *at, bool row_is_query, bool strict)
{
    LLVMValueRef query = row_is_query ? at->row_base : at->column_base,
                 key = row_is_query ? at->column_base : at->row_base;
    const int32_t query_offset = row_is_query ? at->row_offset : at->column_offset,
                  key_offset = row_is_query ? at->column_offset : at->row_offset;
    LLVMValueRef keep = LLVMBuildICmp(e->b, strict ? LLVMIntSGT : LLVMIntSGE, sub(e, query, key),
                                      imm(e, key_offset - query_offset), "");
    return row_is_query ? keep
                        : LLVMBuildAnd(e->b, keep, less(e, imm(e, query_offset), sub(e, e->at.length, query)), "");
}

static LLVMValueRef causal(struct emit *e, const struct expression *x, uint8_t code, const struct element_at *at,
                           LLVMValueRef a)
{
    if (!x->causal)
        return a;
    if (at->row_base)
        return LLVMBuildSelect(e->b, below_diagonal(e, at, x->out->dims[0] == TG_LQ, code == TG_X_BEFORE), a,
                               real(e, 0), "");
    LLVMValueRef row = add(e, e->at.start[x->out->dims[0]], at->row),
                 column = add(e, e->at.start[x->out->dims[1]], at->column);
    const bool row_is_query = x->out->dims[0] == TG_LQ;
    LLVMValueRef query = row_is_query ? row : column, key = row_is_query ? column : row;
    LLVMValueRef keep = LLVMBuildICmp(e->b, code == TG_X_BEFORE ? LLVMIntSGT : LLVMIntSGE, query, key, "");
    if (!row_is_query) /* behind the end of the chunk gates count as zero and 2^(b_i - b_j) may be infinite */
        keep = LLVMBuildAnd(e->b, keep, less(e, query, e->at.length), "");
    return LLVMBuildSelect(e->b, keep, a, real(e, 0), "");
}

static struct pair load_pair(struct emit *e, LLVMValueRef from, tg_dtype dtype)
{
    if (dtype != TG_F32X2)
        return (struct pair){LLVMBuildLoad2(e->b, e->f32, from, ""), NULL};
    LLVMValueRef x = LLVMBuildLoad2(e->b, e->v2f32, from, "");
    LLVMSetAlignment(x, 8);
    return (struct pair){LLVMBuildExtractElement(e->b, x, imm(e, 0), ""),
                         LLVMBuildExtractElement(e->b, x, imm(e, 1), "")};
}

/* The element of another matrix than the one that the product fetches. */
static LLVMValueRef beside(struct emit *e, const struct expression *x, uint32_t v, const struct element_at *at)
{
    const bool in_order = e->p->values[v].dims[0] == x->out->dims[0];
    return matrix_element(e, v, in_order ? at->row : at->column, in_order ? at->column : at->row);
}

/* Of which of the dimensions of the result an operand is. Where there are three, chunks that a thread holds and two more, every
 * element is made by itself. */
static uint32_t by_of(const struct expression *x, const struct value *v)
{
    const struct value *out = x->out;
    if (out->n_dims > 2)
        return BY_ROW | BY_COLUMN;
    return (out->n_dims > 0 && plan_has_dim(v, out->dims[0]) ? BY_ROW : 0) |
           (out->n_dims > 1 && plan_has_dim(v, out->dims[1]) ? BY_COLUMN : 0);
}

static bool is_factor(const struct plan *p, const struct expression *x, uint32_t v)
{
    return x->factored && (v == p->factor_rows || v == p->factor_columns);
}

/* The element of an operand. */
static struct pair fetch(struct emit *e, const struct expression *x, tg_operand operand, const struct element_at *at)
{
    const int i = plan_find(e->p, operand, x->out->nest);
    const struct value *v = &e->p->values[i];
    const bool row = plan_has_dim(v, x->out->dims[0]) && x->out->n_dims > 0;
    const bool two = v->dtype == TG_F32X2;
    switch (v->space) {
    case SPACE_FRAGMENT: {
        LLVMValueRef element = get(e, e->f32, e->registers[i][at->self_index]);
        const bool is_multiplied = x->multipliers && i == e->p->ways.sum;
        return (struct pair){is_multiplied ? LLVMBuildFMul(e->b, element, x->multipliers[at->row_class], "") : element,
                             NULL};
    }
    case SPACE_MATRIX:
        if (v->stmt >= 0 || plan_is_of_rows(e->p, x->out)) /* what it was before it was rounded; the row's element */
            return (struct pair){get(e, e->f32, e->registers[i][at->self_index]), NULL};
        if (x->fetched && v != x->fetched)
            return (struct pair){beside(e, x, (uint32_t)i, at), NULL};
        return (struct pair){at->self, NULL};
    case SPACE_CHANNEL:
        if (e->p->groups)
            return (struct pair){get(e, e->f32, e->registers[i][v->n_dims == 2 ? at->self_index : at->column_class]),
                                 NULL};
        return (struct pair){channel_element(e, (uint32_t)i, at->self_index), NULL};
    case SPACE_PARTS: /* added up before */
    case SPACE_ROWS:
        if (x->out->space == SPACE_CHANNEL)
            return (struct pair){number_beside(e, (uint32_t)i, at->row), NULL};
        return (struct pair){get(e, e->f32, e->registers[i][2 * at->row_class]),
                             two ? get(e, e->f32, e->registers[i][2 * at->row_class + 1]) : NULL};
    case SPACE_VECTOR: {
        if (plan_is_of_warp(v) && plan_is_of_warp(x->out)) /* still in registers */
            return (struct pair){get(e, e->f32, e->registers[i][2 * at->row_class]), NULL};
        const tg_dtype dtype = is_factor(e->p, x, (uint32_t)i) ? TG_F32 : v->dtype;
        LLVMValueRef from = slot_address(e, v, e->slot[i] ? e->slot[i] : imm(e, 0));
        if (v->n_dims)
            from = byte_offset(e, from, mul(e, row ? at->row : at->column, imm(e, tg_dtype_bytes(dtype))));
        return load_pair(e, from, dtype);
    }
    default: {
        LLVMValueRef *reg = &e->registers[i][at->held ? 2 * thread_register(e->p, v, at->held) : 0];
        return (struct pair){get(e, e->f32, reg[0]), two ? get(e, e->f32, reg[1]) : NULL};
    }
    }
}

static LLVMValueRef f64_of_pair(struct emit *e, const struct pair *x)
{
    LLVMValueRef hi = LLVMBuildFPExt(e->b, x->hi, e->f64, "");
    return x->lo ? LLVMBuildFAdd(e->b, hi, LLVMBuildFPExt(e->b, x->lo, e->f64, ""), "") : hi;
}

/* Sums, differences and maxima of pairs in thread kernels, to the last bit of both parts: what cumulative gates
 * are made with. */
static bool apply_pair(struct emit *e, uint8_t code, const struct pair *a, const struct pair *b, struct pair *result)
{
    LLVMValueRef x = f64_of_pair(e, a), y = b ? f64_of_pair(e, b) : NULL;
    switch (code) {
    case TG_X_ADD:
        *result = pair_of_f64(e, LLVMBuildFAdd(e->b, x, y, ""));
        return true;
    case TG_X_SUB:
        *result = pair_of_f64(e, LLVMBuildFSub(e->b, x, y, ""));
        return true;
    case TG_X_MAX:
        *result = pair_of_f64(e, larger_f64(e, x, y));
        return true;
    case TG_X_NEG:
        *result = pair_of_f64(e, LLVMBuildFNeg(e->b, x, ""));
        return true;
    default:
        return false;
    }
}

/* What is added to parts of a sum counts once: in the first of them. */
static struct term in_first_part(struct emit *e, const struct term *t, uint32_t split)
{
    struct term first = *t;
    LLVMValueRef is_one = NULL;
    for (uint32_t d = TG_DQK; d <= TG_DHV; d++)
        if (split >> d & 1)
            is_one = both(e, is_one, LLVMBuildICmp(e->b, LLVMIntEQ, e->at.start[d], imm(e, 0), ""));
    first.x.hi = choose(e, is_one, t->x.hi, real(e, 0));
    first.x.lo = t->x.lo ? choose(e, is_one, t->x.lo, real(e, 0)) : NULL;
    return first;
}

static struct pair apply(struct emit *e, const struct expression *x, const tg_x *code, const struct term *a,
                         const struct term *b, const struct element_at *at);

static struct pair add_parts(struct emit *e, const struct expression *x, const tg_x *code, const struct term *a,
                             const struct term *b, const struct element_at *at)
{
    struct term p = *a, q = *b;
    if (b->split & ~a->split)
        p = in_first_part(e, a, b->split & ~a->split);
    if (a->split & ~b->split)
        q = in_first_part(e, b, a->split & ~b->split);
    p.split = q.split = 0;
    return apply(e, x, code, &p, &q, at);
}

/* Elements of a dimension, as TG_X_SIZE has it. */
static uint32_t size_of_dim(const struct plan *p, uint32_t dim)
{
    return dim == TG_MEMBER ? group_of(&p->shape) : plan_dim_size(p, dim);
}

/* A pair used as a float is its leading part: the rest is below half a unit in the last place. */
static struct pair apply(struct emit *e, const struct expression *x, const tg_x *code, const struct term *a,
                         const struct term *b, const struct element_at *at)
{
    LLVMBuilderRef bld = e->b;
    LLVMValueRef p = a ? a->x.hi : NULL, q = b ? b->x.hi : NULL;
    struct pair exact;
    if (b && a->split != b->split && (code->op == TG_X_ADD || code->op == TG_X_SUB))
        return add_parts(e, x, code, a, b, at);
    const bool pairs = x->out->dtype == TG_F32X2 || (a && a->x.lo) || (b && b->x.lo);
    if (e->p->thread_dim && a && pairs && apply_pair(e, code->op, &a->x, b ? &b->x : NULL, &exact))
        return exact;
    switch (code->op) {
    case TG_X_NUMBER:
        return (struct pair){real(e, (double)code->number), NULL};
    case TG_X_SCALAR:
        return (struct pair){argument(e, TG_ARG_SCALAR, code->operand, 0), NULL};
    case TG_X_SIZE:
        return (struct pair){real(e, (double)size_of_dim(e->p, code->operand)), NULL};
    case TG_X_ADD:
        return (struct pair){LLVMBuildFAdd(bld, p, q, ""), NULL};
    case TG_X_SUB:
        p = LLVMBuildFSub(bld, p, q, "");
        if (a->x.lo && b->x.lo)
            p = LLVMBuildFAdd(bld, p, LLVMBuildFSub(bld, a->x.lo, b->x.lo, ""), "");
        return (struct pair){p, NULL};
    case TG_X_MUL:
        return (struct pair){LLVMBuildFMul(bld, p, q, ""), NULL};
    case TG_X_DIV:
        return (struct pair){divide_reals(e, p, q), NULL};
    case TG_X_MAX:
        return (struct pair){extremum(e, LLVMRealUGT, p, q), NULL};
    case TG_X_MIN:
        return (struct pair){extremum(e, LLVMRealULT, p, q), NULL};
    case TG_X_NEG:
        return (struct pair){LLVMBuildFNeg(bld, p, ""), NULL};
    case TG_X_ABS:
        return (struct pair){absolute(e, p), NULL};
    case TG_X_EXP2:
        return (struct pair){exp2_approx(e, p), NULL};
    case TG_X_LOG2:
        return (struct pair){call1(e, "llvm.nvvm.lg2.approx.f", p), NULL};
    case TG_X_LOGSIG2:
        return (struct pair){log_sigmoid(e, x, p), NULL};
    case TG_X_SIGMOID:
        return (struct pair){sigmoid(e, p), NULL};
    case TG_X_SOFTPLUS:
        return (struct pair){softplus(e, x, p), NULL};
    case TG_X_STEP:
        return (struct pair){
            LLVMBuildSelect(bld, LLVMBuildFCmp(bld, LLVMRealOGT, p, real(e, 0), ""), real(e, 1), real(e, 0), ""), NULL};
    default:
        return (struct pair){causal(e, x, code->op, at, p), NULL};
    }
}

/* Where the value of code i is remembered for this element; NULL: it differs for every element. */
static struct pair *memo_of(struct expression *x, uint32_t i, uint32_t by, const struct element_at *at)
{
    const uint32_t index = by == BY_ROW ? at->row_class : by == BY_COLUMN ? at->column_class : 0;
    return by == (BY_ROW | BY_COLUMN) || index >= 160 ? NULL : &x->memo[i][index];
}

/* Is the multiplication by a scalar in the number already by which the sum was multiplied? */
static bool is_multiplied(const struct expression *x, const struct plan *p, const tg_x *code)
{
    return x->multipliers && p->ways.scale >= 0 && code->op == TG_X_MUL && code - x->stmt->expr >= 2 &&
           code[-2].op == TG_X_TILE && plan_find(p, code[-2].operand, x->out->nest) == p->ways.sum;
}

/* Elements of accumulators on warpgroups: a product and a sum in one instruction, rounded once. */
static bool fuses(const struct plan *p, const struct expression *x)
{
    return p->groups && x->out->space == SPACE_FRAGMENT && plan_is_owned(p, x->out);
}

static LLVMValueRef fused_sum(struct emit *e, const struct term *a, const struct term *b)
{
    const struct term *product = b->of[0] ? b : a, *other = b->of[0] ? a : b;
    return fma_of(e, product->of[0], product->of[1], other->x.hi);
}

static bool is_factored(const struct expression *x, uint32_t i)
{
    return x->factored && (int)i == x->factored;
}

/* What code i makes of its operands. */
static struct pair evaluate(struct emit *e, const struct expression *x, uint32_t i, const struct term *a,
                            const struct term *b, const struct element_at *at)
{
    const tg_x *code = &x->stmt->expr[i];
    if (code->op == TG_X_TILE)
        return fetch(e, x, code->operand, at);
    if (is_factored(x, i))
        return (struct pair){LLVMBuildFMul(e->b, a->x.hi, b->x.hi, ""), NULL};
    if ((i > 0 && is_factored(x, i - 1)) || is_multiplied(x, e->p, code)) /* the factors are exponentials */
        return a->x;
    if (x->kept && (int)i == x->kept_at && !x->keeps)
        return (struct pair){get(e, e->f32, x->kept[at->self_index]), NULL};
    if (code->op == TG_X_ADD && a->split == b->split && (a->of[0] || b->of[0]))
        return (struct pair){fused_sum(e, a, b), NULL};
    return apply(e, x, code, a, b, at);
}

/* What the result of code i depends on, and whose sum is in parts. */
static void describe(struct emit *e, const struct expression *x, uint32_t i, const struct term *a, const struct term *b,
                     struct term *result)
{
    const tg_x *code = &x->stmt->expr[i];
    result->split = (a ? a->split : 0) | (b ? b->split : 0);
    result->by = (a ? a->by : 0) | (b ? b->by : 0) | (is_mask(code->op) ? (uint32_t)(BY_ROW | BY_COLUMN) : 0);
    if (code->op != TG_X_TILE)
        return;
    const int v = plan_find(e->p, code->operand, x->out->nest);
    result->split =
        e->p->groups && e->p->values[v].stmt >= 0 ? plan_split_dims(e->p, TG_OPERAND_TILE(code->operand)) : 0;
    result->by = by_of(x, &e->p->values[v]);
}

/* Where pairs end: anything but TG_X_TILE drops the rest of its operands unless it is a difference. */
struct pair expression_pair(struct emit *e, struct expression *x, const struct element_at *at)
{
    struct term stack[TG_MAX_EXPR];
    uint32_t n = 0;
    for (uint32_t i = 0; i < TG_MAX_EXPR && x->stmt->expr[i].op != TG_X_END; i++) {
        const tg_x *code = &x->stmt->expr[i];
        const int arity = tg_expr_arity(code->op);
        struct term result = {0};
        const struct term *a = arity > 0 ? &stack[n - (uint32_t)arity] : NULL, *b = arity > 1 ? &stack[n - 1] : NULL;
        describe(e, x, i, a, b, &result);
        struct pair *memo = memo_of(x, i, result.by, at);
        result.x = memo && memo->hi ? *memo : evaluate(e, x, i, a, b, at);
        if (code->op == TG_X_MUL && fuses(e->p, x) && !memo && !is_multiplied(x, e->p, code))
            result.of[0] = a->x.hi, result.of[1] = b->x.hi;
        if (x->kept && (int)i == x->kept_at && x->keeps)
            set(e, x->kept[at->self_index], result.x.hi);
        if (memo)
            *memo = result.x;
        n -= (uint32_t)arity;
        stack[n++] = result;
    }
    return stack[0].x;
}

static LLVMValueRef is_inside(struct emit *e, const struct expression *x, uint32_t axis, LLVMValueRef at)
{
    LLVMValueRef start = e->at.start[x->out->dims[axis]];
    return less(e, start ? add(e, start, at) : at, e->at.length);
}

LLVMValueRef expression_element(struct emit *e, struct expression *x, const struct element_at *at)
{
    LLVMValueRef a = expression_pair(e, x, at).hi;
    if (!x->ends)
        return a;
    LLVMValueRef inside = LLVMBuildAnd(e->b, is_inside(e, x, 0, at->row), is_inside(e, x, 1, at->column), "");
    return LLVMBuildSelect(e->b, inside, a, real(e, 0), "");
}

/* Rows of the tiles that the expression reads straight from memory. */
static void load_read_rows(struct emit *e, const struct expression *x, uint32_t tile_m)
{
    tg_operand reads[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(x->stmt, reads);
    for (uint32_t i = 0; i < n; i++)
        load_rows_of(e, (uint32_t)plan_find(e->p, reads[i], x->out->nest), tile_m);
}

static void clear_block(struct emit *e, const struct op *op, uint32_t first)
{
    for (uint32_t r = first; r < first + 8; r++)
        set(e, e->registers[op->v][r], real(e, 0));
}

/* The elements of block n of 16 columns of the warp's m-th 16 rows, from register `first` on. */
static void map_block(struct emit *e, const struct op *op, struct expression *x, uint32_t m, uint32_t n, uint32_t first)
{
    const bool causal = x->causal;
    x->causal = causal && !plan_is_below(e->p, x->out, m, n);
    for (uint32_t r = 0; r < 8; r++) {
        struct element_at at = {
            .row_class = m * 2 + (r & 2) / 2, .column_class = 4 * n + r / 4 * 2 + (r & 1), .self_index = first + r};
        at.row = fragment_row(e, x->out, at.row_class);
        at.column = fragment_column(e, x->out, at.column_class);
        set(e, e->registers[op->v][at.self_index], expression_element(e, x, &at));
    }
    x->causal = causal;
}

/* ... where some warps have it above the diagonal: what is remembered of it the others alone know. */
static void map_below(struct emit *e, const struct op *op, const struct expression *x, uint32_t m, uint32_t n,
                      uint32_t first)
{
    struct expression here = *x;
    clear_block(e, op, first);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntUGE, fragment_block(e, x->out, m), imm(e, n), ""));
    map_block(e, op, &here, m, n, first);
    end_if(e, after);
}

static void map_fragment(struct emit *e, const struct op *op, bool causal)
{
    const struct value *out = &e->p->values[op->v];
    const struct shape s = fragment_shape(e->p, out);
    struct expression *x = expression_begin(e, op->stmt, out, causal);
    for (uint32_t m = 0; x && m < s.m; m++) {
        load_read_rows(e, x, m);
        for (uint32_t n = 0; n < s.n / 2; n++) {
            const uint32_t first = (m * s.n + 2 * n) * 4;
            if (plan_is_above(e->p, out, m, n))
                clear_block(e, op, first);
            else if (plan_is_above_some(e->p, out, m, n))
                map_below(e, op, x, m, n, first);
            else
                map_block(e, op, x, m, n, first);
        }
    }
    free(x);
}

/* Blocks wholly below the diagonal need no mask; most are. */
static void map_causal(struct emit *e, const struct op *op)
{
    LLVMBasicBlockRef masked = LLVMAppendBasicBlockInContext(e->context, e->function, "masked");
    LLVMBasicBlockRef plain = LLVMAppendBasicBlockInContext(e->context, e->function, "plain");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
    LLVMValueRef last_key = add(e, e->at.start[TG_LKV], imm(e, e->p->block[TG_LKV] - 1));
    LLVMValueRef below = LLVMBuildICmp(e->b, LLVMIntSLE, last_key, e->at.start[TG_LQ], "");
    if (e->p->values[op->v].dims[0] == TG_LKV) /* queries are columns here: none may lie behind the end */
        below = LLVMBuildAnd(e->b, below,
                             less(e, add(e, e->at.start[TG_LQ], imm(e, e->p->block[TG_LQ] - 1)), e->at.length), "");
    LLVMBuildCondBr(e->b, below, plain, masked);
    LLVMPositionBuilderAtEnd(e->b, masked);
    map_fragment(e, op, true);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, plain);
    map_fragment(e, op, false);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, after);
}

static void set_registers(struct emit *e, LLVMValueRef *reg, const struct pair *x)
{
    set(e, reg[0], x->hi);
    set(e, reg[1], x->lo ? x->lo : real(e, 0));
}

/* One value a row of the fragments, or one for all. */
static void map_rows(struct emit *e, const struct op *op, struct expression *x)
{
    const uint32_t rows = x->out->space == SPACE_ROWS ? x->out->extent[0] / (8 * e->p->warps_m) : 1;
    for (uint32_t c = 0; c < rows; c++) {
        const struct element_at at = {.row_class = c, .row = rows > 1 ? fragment_row(e, x->out, c) : imm(e, 0)};
        const struct pair result = expression_pair(e, x, &at);
        set_registers(e, &e->registers[op->v][2 * c], &result);
    }
}

static void map_thread(struct emit *e, const struct op *op, struct expression *x)
{
    const struct value *out = x->out;
    uint32_t held[TG_N_DIMS] = {0};
    do {
        LLVMValueRef index[2] = {imm(e, 0), imm(e, 0)};
        for (uint32_t i = 0; i < out->n_dims && i < 2; i++)
            index[i] = thread_index(e, out->dims[i], held) ? thread_index(e, out->dims[i], held) : index[i];
        const struct element_at at = {.row_class = held[out->dims[0]],
                                      .column_class = held[out->dims[1]],
                                      .row = index[0],
                                      .column = index[1],
                                      .held = held};
        const struct pair result = expression_pair(e, x, &at);
        set_registers(e, &e->registers[op->v][2 * thread_register(e->p, out, held)], &result);
    } while (next_held(e->p, value_dims(out), held));
}

void emit_map(struct emit *e, const struct op *op)
{
    const struct value *out = &e->p->values[op->v];
    if (out->space == SPACE_OPERAND)
        return; /* computed where it is used */
    if (out->space == SPACE_FRAGMENT) {
        if (has_causal(&e->p->algorithm->body[op->stmt]))
            map_causal(e, op);
        else
            map_fragment(e, op, false);
        return;
    }
    const bool one_position = plan_has_single_positions(e->p); /* in each chunk: nothing to mask */
    struct expression *x =
        expression_begin(e, op->stmt, out, !one_position && has_causal(&e->p->algorithm->body[op->stmt]));
    if (x && e->p->thread_dim)
        map_thread(e, op, x);
    else if (x)
        map_rows(e, op, x);
    free(x);
}
