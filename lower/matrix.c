/* lower/matrix.c - products on tensor cores.
 *
 * 16-bit operands: mma.sync m16n8k16, operands fetched by ldmatrix, transposed on the way when the summed
 * dimension runs along the rows in shared memory. fp32 operands: mma.sync m16n8k8 in TF32, three times, each
 * operand split into a leading and a trailing part (the product of the trailing parts is below fp32's
 * rounding and left out). Both sum the 8 or 16 positions of a step in an order of their own: inside a TF32
 * step, position 2t of memory is the instruction's t and 2t + 1 its t + 4, so that an accumulator can be an
 * operand without moving data between lanes. */
#include "compiler/plan_tile.h"
#include "lower/matrix.h"

#include <stdlib.h>
#include <string.h>

static void find_matrix(struct emit *e, struct side *s)
{
    const struct value *v = &e->p->values[s->v];
    s->map_stmt = -1;
    s->mapped = v;
    if (v->space == SPACE_FRAGMENT)
        return;
    uint32_t from = s->v;
    if (v->space == SPACE_OPERAND) {
        s->map_stmt = v->stmt;
        from = (uint32_t)plan_fetched(e->p, s->v);
    }
    s->matrix = &e->p->values[from];
    s->slot = slot_address(e, s->matrix, e->slot[from] ? e->slot[from] : imm(e, 0));
}

LLVMValueRef is_finite(struct emit *e, LLVMValueRef x)
{
    LLVMValueRef exponent = imm(e, 0x7f800000), bits = LLVMBuildAnd(e->b, as(e, x, e->i32), exponent, "");
    return LLVMBuildICmp(e->b, LLVMIntNE, bits, exponent, "");
}

static struct side make_side(struct emit *e, uint32_t v, uint32_t outer_dim)
{
    struct side s = {.v = v, .finite = e->finite == v + 1};
    find_matrix(e, &s);
    if (s.matrix)
        s.transposed = s.matrix->dims[1] == outer_dim;
    if (s.map_stmt >= 0)
        s.x = expression_begin(e, s.map_stmt, s.mapped, false);
    if (s.x)
        s.x->fetched = s.matrix;
    return s;
}

void side_free(struct side *s)
{
    free(s->x);
}

void side_forget(struct side *s)
{
    if (s->x)
        memset(s->x->memo, 0, sizeof s->x->memo);
}

static bool is_power_of_two(uint32_t x)
{
    return (x & (x - 1)) == 0;
}

static struct side make_rows(struct emit *e, uint32_t v, const struct value *out)
{
    LLVMValueRef first = fragment_first_row(e, out, 0);
    struct side s = make_side(e, v, out->dims[0]);
    s.first[0] = first;
    s.first[1] = e->p->to_and_fro ? fragment_first_row(e, out, 1) : first;
    s.step = fragment_row_step(e);
    s.simple = e->p->warps_m == 1 || is_power_of_two(e->p->to_and_fro ? e->p->warps_m : fragment_shape(e->p, out).m);
    return s;
}

static struct side make_columns(struct emit *e, uint32_t v, const struct value *out, LLVMValueRef warp)
{
    const uint32_t columns = fragment_shape(e->p, out).n * 8;
    LLVMValueRef first = mul(e, warp, imm(e, columns));
    struct side s = make_side(e, v, out->dims[1]);
    s.first[0] = s.first[1] = first;
    s.step = 16;
    s.simple = plan_column_warps(e->p, out) == 1 || is_power_of_two(columns);
    return s;
}

/* Address of the row that this lane names for ldmatrix: local row `row` + R, unit `unit` + c with c even. */
static LLVMValueRef lane_address(struct emit *e, const struct side *s, LLVMValueRef row, uint32_t R, LLVMValueRef unit,
                                 uint32_t c, bool split)
{
    const struct value *v = s->matrix;
    if (!split)
        return byte_offset(e, s->slot, swizzled(e, v, add(e, row, imm(e, R)), add(e, unit, imm(e, c))));
    /* (unit + c) ^ swizzle = (unit ^ swizzle) ^ c: one exclusive-or with a constant per fetch */
    LLVMValueRef start = swizzled(e, v, row, unit), row_start = mul(e, row, imm(e, v->row_bytes));
    LLVMValueRef place = LLVMBuildXor(e->b, sub(e, start, row_start), imm(e, c * 16), "");
    return byte_offset(e, s->slot, add(e, add(e, row_start, place), imm(e, R * v->row_bytes)));
}

void fetch_matrices(struct emit *e, LLVMValueRef address, bool transposed, LLVMValueRef out[4])
{
    LLVMValueRef r = call(e,
                          transposed ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
                                     : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
                          &e->shared, 1, &address, 1);
    for (uint32_t i = 0; i < 4; i++)
        out[i] = element(e, r, i);
}

/* The word with zeros for those of its two elements that are not finite. */
static LLVMValueRef finite_word(struct emit *e, LLVMValueRef word)
{
    const int64_t exponent = e->p->shape.io == TG_BF16 ? 0x7f80 : 0x7c00;
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef mask = imm(e, exponent << 16 * i), bits = LLVMBuildAnd(e->b, word, mask, "");
        word = choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, bits, mask, ""),
                      LLVMBuildAnd(e->b, word, imm(e, i ? 0xffff : (int64_t)0xffff0000), ""), word);
    }
    return word;
}

/* An index of the summed dimension, in so many elements, of those that this warp sums. */
static LLVMValueRef behind_first(struct emit *e, const struct side *s, LLVMValueRef index, uint32_t elements)
{
    return s->first_k ? add(e, index, divide(e, s->first_k, imm(e, elements))) : index;
}

/* The 16 x 16 block (outer block o, step k) of an operand as four registers. `outer_low` says which of the two
 * matrix-number bits of ldmatrix selects the outer half: A wants (rows, k), B wants (k, columns). */
static void fetch_block(struct emit *e, const struct side *s, uint32_t o, uint32_t k, bool outer_low,
                        LLVMValueRef out[4])
{
    LLVMValueRef in_matrix = modulo(e, e->lane, imm(e, 8)), low = modulo(e, divide(e, e->lane, imm(e, 8)), imm(e, 2)),
                 high = divide(e, e->lane, imm(e, 16));
    LLVMValueRef outer_half = outer_low ? low : high, k_half = outer_low ? high : low;
    if (s->transposed) { /* rows: k; units: outer */
        LLVMValueRef row = behind_first(e, s, add(e, in_matrix, mul(e, k_half, imm(e, 8))), 1);
        LLVMValueRef unit = add(e, divide(e, s->first[o % 2], imm(e, 8)), outer_half);
        fetch_matrices(e, lane_address(e, s, row, 16 * k, unit, s->step / 8 * o, s->simple), true, out);
    } else {
        LLVMValueRef row = add(e, s->first[o % 2], add(e, in_matrix, mul(e, outer_half, imm(e, 8))));
        LLVMValueRef unit = behind_first(e, s, k_half, 8);
        fetch_matrices(e, lane_address(e, s, row, s->step * o, unit, 2 * k, !s->first_k), false, out);
    }
}

static LLVMValueRef pack_as(struct emit *e, tg_dtype dtype, LLVMValueRef lo, LLVMValueRef hi)
{
    LLVMValueRef args[2] = {hi, lo};
    return as(e, call(e, dtype == TG_BF16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn", NULL, 0, args, 2),
              e->i32);
}

LLVMValueRef pack(struct emit *e, LLVMValueRef lo, LLVMValueRef hi)
{
    return pack_as(e, (tg_dtype)e->p->shape.io, lo, hi);
}

LLVMValueRef unpack(struct emit *e, LLVMValueRef word, uint32_t i)
{
    return unpack_as(e, (tg_dtype)e->p->shape.io, word, i);
}

LLVMValueRef unpack_as(struct emit *e, tg_dtype dtype, LLVMValueRef word, uint32_t i)
{
    if (dtype == TG_BF16) /* a bf16 is the upper half of a float */
        return as(
            e, i ? LLVMBuildAnd(e->b, word, imm(e, (int64_t)0xffff0000), "") : LLVMBuildShl(e->b, word, imm(e, 16), ""),
            e->f32);
    LLVMValueRef half = LLVMBuildExtractElement(e->b, as(e, word, e->v2f16), imm(e, i), "");
    return LLVMBuildFPExt(e->b, half, e->f32, "");
}

/* x times the weight of its position (row) and channel (column). */
static LLVMValueRef weighted(struct emit *e, const struct weight *w, LLVMValueRef x, LLVMValueRef position,
                             LLVMValueRef channel, uint32_t channel_class)
{
    LLVMValueRef gate = matrix_element(e, w->gate, position, channel), reference = w->reference[channel_class];
    LLVMValueRef log2_weight = LLVMBuildFSub(e->b, w->later ? gate : reference, w->later ? reference : gate, "");
    x = LLVMBuildFMul(e->b, x, exp2_approx(e, log2_weight), "");
    return w->behind ? choose(e, less(e, position, w->behind), x, real(e, 0)) : x;
}

/* Applies the side's expression to an element at (outer index, summed index), and its weight. */
static LLVMValueRef mapped(struct emit *e, const struct side *s, LLVMValueRef self, LLVMValueRef outer,
                           uint32_t outer_class, LLVMValueRef k, uint32_t k_class)
{
    const bool k_is_row = s->transposed;
    const struct element_at at = {.row = k_is_row ? k : outer,
                                  .column = k_is_row ? outer : k,
                                  .row_class = k_is_row ? k_class : outer_class,
                                  .column_class = k_is_row ? outer_class : k_class,
                                  .self = self};
    LLVMValueRef x = s->x ? expression_element(e, s->x, &at) : self;
    return s->weight ? weighted(e, s->weight, x, at.row, at.column, s->weight->by_sum ? k_class : outer_class) : x;
}

static LLVMValueRef finite_or_zero(struct emit *e, const struct side *s, LLVMValueRef x)
{
    return s->finite ? choose(e, is_finite(e, x), x, real(e, 0)) : x;
}

/* The two elements in register r of a fetched block, mapped: outer index first + step o + l/4 + 8 (outer half), summed index
 * 16 k + 2 (l%4) + 8 (k half) + i. */
static void map_word(struct emit *e, const struct side *s, uint32_t o, uint32_t k, bool outer_low, uint32_t r,
                     LLVMValueRef word, LLVMValueRef x[2])
{
    const uint32_t outer_half = outer_low ? r & 1 : r >> 1, k_half = outer_low ? r >> 1 : r & 1;
    LLVMValueRef outer = add(e, add(e, s->first[o % 2], e->quad_row), imm(e, s->step * o + 8 * outer_half));
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef index =
            behind_first(e, s, add(e, mul(e, e->quad_column, imm(e, 2)), imm(e, 16 * k + 8 * k_half + i)), 1);
        x[i] = mapped(e, s, unpack(e, word, i), outer, 2 * o + outer_half, index, 4 * k + 2 * k_half + i);
    }
}

static void map_block(struct emit *e, const struct side *s, uint32_t o, uint32_t k, bool outer_low,
                      LLVMValueRef block[4])
{
    for (uint32_t r = 0; (s->x || s->weight) && r < 4; r++) {
        LLVMValueRef x[2];
        map_word(e, s, o, k, outer_low, r, block[r], x);
        block[r] = pack(e, x[0], x[1]);
    }
    for (uint32_t r = 0; s->finite && r < 4; r++)
        block[r] = finite_word(e, block[r]);
}

void pack_fragment(struct emit *e, uint32_t v, uint32_t m, uint32_t k, LLVMValueRef out[4])
{
    const struct shape s = fragment_shape(e->p, &e->p->values[v]);
    for (uint32_t r = 0; r < 4; r++) {
        LLVMValueRef *x = &e->registers[v][(m * s.n + 2 * k + r / 2) * 4 + r % 2 * 2];
        out[r] = pack(e, get(e, e->f32, x[0]), get(e, e->f32, x[1]));
    }
}

static void multiply_words_as(struct emit *e, tg_dtype dtype, LLVMValueRef c[4], const LLVMValueRef a[4],
                              LLVMValueRef b0, LLVMValueRef b1)
{
    const bool bf16 = dtype == TG_BF16;
    LLVMValueRef args[10] = {a[0], a[1], a[2], a[3], b0, b1, c[0], c[1], c[2], c[3]};
    for (uint32_t i = 0; i < 6 && !bf16; i++)
        args[i] = as(e, args[i], e->v2f16);
    LLVMValueRef d = call(e, bf16 ? "llvm.nvvm.mma.m16n8k16.row.col.bf16" : "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
                          NULL, 0, args, 10);
    for (uint32_t i = 0; i < 4; i++)
        c[i] = element(e, d, i);
}

void multiply_words(struct emit *e, LLVMValueRef c[4], const LLVMValueRef a[4], LLVMValueRef b0, LLVMValueRef b1)
{
    multiply_words_as(e, (tg_dtype)e->p->shape.io, c, a, b0, b1);
}

static void multiply_block16(struct emit *e, const struct side *a, const struct side *b, uint32_t m, uint32_t n,
                             uint32_t k, LLVMValueRef c[8])
{
    LLVMValueRef rows[4], columns[4];
    if (a->matrix) {
        fetch_block(e, a, m, k, true, rows);
        map_block(e, a, m, k, true, rows);
    } else {
        pack_fragment(e, a->v, m, k, rows);
    }
    fetch_block(e, b, n, k, false, columns);
    map_block(e, b, n, k, false, columns);
    for (uint32_t half = 0; half < 2; half++)
        multiply_words(e, &c[4 * half], rows, columns[2 * half], columns[2 * half + 1]);
}

static void contract16(struct emit *e, const struct value *out, const struct side *a, const struct side *b,
                       uint32_t extent_k, LLVMValueRef *c)
{
    const struct shape s = fragment_shape(e->p, out);
    LLVMValueRef(*rows)[4] = calloc(s.m, sizeof *rows);
    for (uint32_t k = 0; rows && k < extent_k / 16; k++) {
        for (uint32_t m = 0; m < s.m; m++) {
            if (!a->matrix) {
                pack_fragment(e, a->v, m, k, rows[m]);
                continue;
            }
            fetch_block(e, a, m, k, true, rows[m]);
            map_block(e, a, m, k, true, rows[m]);
        }
        for (uint32_t n = 0; n < s.n / 2; n++) {
            LLVMValueRef columns[4];
            fetch_block(e, b, n, k, false, columns);
            map_block(e, b, n, k, false, columns);
            for (uint32_t m = 0; m < s.m; m++)
                for (uint32_t half = 0; !plan_is_above(e->p, out, m, n) && half < 2; half++)
                    multiply_words(e, &c[(m * s.n + 2 * n + half) * 4], rows[m], columns[2 * half],
                                   columns[2 * half + 1]);
        }
    }
    free(rows);
}

/* ---- fp32 ---------------------------------------------------------------------------------------- */

static struct split split_tf32(struct emit *e, LLVMValueRef x)
{
    LLVMValueRef lead = call1(e, "llvm.nvvm.f2tf32.rna", x);
    LLVMValueRef rest = LLVMBuildFSub(e->b, x, as(e, lead, e->f32), "");
    return (struct split){lead, call1(e, "llvm.nvvm.f2tf32.rna", rest)};
}

/* Element (outer index 8 o8 + l/4, summed index 8 k8 + 2 (l%4) + i) of an operand in shared memory. */
static LLVMValueRef fetch_float(struct emit *e, const struct side *s, uint32_t o8, uint32_t k8, uint32_t i)
{
    LLVMValueRef outer = add(e, add(e, s->first[o8 / 2 % 2], e->quad_row), imm(e, o8 / 2 * s->step + o8 % 2 * 8));
    LLVMValueRef k = behind_first(e, s, add(e, mul(e, e->quad_column, imm(e, 2)), imm(e, 8 * k8 + i)), 1);
    LLVMValueRef row = s->transposed ? k : outer, column = s->transposed ? outer : k;
    LLVMValueRef place = add(e, swizzled(e, s->matrix, row, divide(e, column, imm(e, 4))),
                             mul(e, modulo(e, column, imm(e, 4)), imm(e, 4)));
    LLVMValueRef x = LLVMBuildLoad2(e->b, e->f32, byte_offset(e, s->slot, place), "");
    return finite_or_zero(e, s, mapped(e, s, x, outer, o8, k, 2 * k8 + i));
}

static LLVMValueRef left_float(struct emit *e, const struct side *a, uint32_t m, uint32_t k8, uint32_t half, uint32_t i)
{
    if (a->matrix)
        return fetch_float(e, a, 2 * m + half, k8, i);
    const struct shape s = fragment_shape(e->p, &e->p->values[a->v]);
    return get(e, e->f32, e->registers[a->v][(m * s.n + k8) * 4 + half * 2 + i]);
}

/* The same in four instructions, where cvt.rna takes six: the trailing part is cut off, not rounded, and what is left out of
 * a product is twice as much. A NaN is in either of the two. */
static struct split cut_tf32(struct emit *e, LLVMValueRef x)
{
    LLVMValueRef mask = imm(e, (int64_t)0xffffe000), half = imm(e, 0x1000);
    LLVMValueRef lead = LLVMBuildAnd(e->b, LLVMBuildAdd(e->b, as(e, x, e->i32), half, ""), mask, "");
    LLVMValueRef rest = LLVMBuildFSub(e->b, x, as(e, lead, e->f32), "");
    return (struct split){lead, LLVMBuildAnd(e->b, as(e, rest, e->i32), mask, "")};
}

void multiply_tf32(struct emit *e, LLVMValueRef c[4], const LLVMValueRef a[4], const LLVMValueRef b[2])
{
    LLVMValueRef args[10] = {a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], c[2], c[3]};
    LLVMValueRef d = call(e, "llvm.nvvm.mma.m16n8k8.row.col.tf32", NULL, 0, args, 10);
    for (uint32_t i = 0; i < 4; i++)
        c[i] = element(e, d, i);
}

typedef struct split split_tf32_into(struct emit *e, LLVMValueRef x);

static void multiply_parts(struct emit *e, LLVMValueRef c[4], const LLVMValueRef a[4], const LLVMValueRef b[2],
                           split_tf32_into *split)
{
    LLVMValueRef lead[4], trail[4], b_lead[2], b_trail[2];
    for (uint32_t i = 0; i < 4; i++) {
        const struct split x = split(e, a[i]);
        lead[i] = x.lead;
        trail[i] = x.trail;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct split x = split(e, b[i]);
        b_lead[i] = x.lead;
        b_trail[i] = x.trail;
    }
    multiply_tf32(e, c, trail, b_lead);
    multiply_tf32(e, c, lead, b_trail);
    multiply_tf32(e, c, lead, b_lead);
}

void multiply_floats(struct emit *e, LLVMValueRef c[4], const LLVMValueRef a[4], const LLVMValueRef b[2])
{
    multiply_parts(e, c, a, b, cut_tf32);
}

struct split split_bf16(struct emit *e, const LLVMValueRef x[2])
{
    LLVMValueRef lead = pack_as(e, TG_BF16, x[0], x[1]), rest[2];
    for (uint32_t i = 0; i < 2; i++)
        rest[i] = LLVMBuildFSub(e->b, x[i], unpack_as(e, TG_BF16, lead, i), "");
    return (struct split){lead, pack_as(e, TG_BF16, rest[0], rest[1])};
}

LLVMValueRef sum_bf16(struct emit *e, struct split x, uint32_t i)
{
    LLVMValueRef lead = unpack_as(e, TG_BF16, x.lead, i), trail = unpack_as(e, TG_BF16, x.trail, i);
    return LLVMBuildFAdd(e->b, lead, trail, "");
}

void multiply_split_bf16(struct emit *e, LLVMValueRef c[4], const struct split a[4], const struct split b[2])
{
    const LLVMValueRef lead[4] = {a[0].lead, a[1].lead, a[2].lead, a[3].lead},
                       trail[4] = {a[0].trail, a[1].trail, a[2].trail, a[3].trail};
    multiply_words_as(e, TG_BF16, c, trail, b[0].lead, b[1].lead);
    multiply_words_as(e, TG_BF16, c, lead, b[0].trail, b[1].trail);
    multiply_words_as(e, TG_BF16, c, lead, b[0].lead, b[1].lead);
}

static void contract32(struct emit *e, const struct value *out, const struct side *a, const struct side *b,
                       uint32_t extent_k, LLVMValueRef *c)
{
    const struct shape s = fragment_shape(e->p, out);
    LLVMValueRef(*lead)[4] = calloc(s.m, sizeof *lead), (*trail)[4] = calloc(s.m, sizeof *trail);
    for (uint32_t k = 0; lead && trail && k < extent_k / 8; k++) {
        for (uint32_t m = 0; m < s.m; m++)
            for (uint32_t r = 0; r < 4; r++) { /* (row half, element): (0,0) (1,0) (0,1) (1,1) */
                const struct split x = split_tf32(e, left_float(e, a, m, k, r & 1, r >> 1));
                lead[m][r] = x.lead;
                trail[m][r] = x.trail;
            }
        for (uint32_t n = 0; n < s.n; n++) {
            const struct split x = split_tf32(e, fetch_float(e, b, n, k, 0)),
                               y = split_tf32(e, fetch_float(e, b, n, k, 1));
            const LLVMValueRef b_lead[2] = {x.lead, y.lead}, b_trail[2] = {x.trail, y.trail};
            for (uint32_t m = 0; m < s.m; m++) {
                LLVMValueRef *sum = &c[(m * s.n + n) * 4];
                if (plan_is_above(e->p, out, m, n / 2))
                    continue;
                multiply_tf32(e, sum, trail[m], b_lead);
                multiply_tf32(e, sum, lead[m], b_trail);
                multiply_tf32(e, sum, lead[m], b_lead);
            }
        }
    }
    free(lead);
    free(trail);
}

static void multiply_block32(struct emit *e, const struct side *a, const struct side *b, uint32_t m, uint32_t n,
                             uint32_t k, LLVMValueRef c[8])
{
    for (uint32_t k8 = 2 * k; k8 < 2 * k + 2; k8++) {
        LLVMValueRef rows[4], columns[2];
        for (uint32_t r = 0; r < 4; r++)
            rows[r] = left_float(e, a, m, k8, r & 1, r >> 1);
        for (uint32_t half = 0; half < 2; half++) {
            for (uint32_t i = 0; i < 2; i++)
                columns[i] = fetch_float(e, b, 2 * n + half, k8, i);
            multiply_parts(e, &c[4 * half], rows, columns, split_tf32);
        }
    }
}

/* A block of 16-bit inputs in TF32, from registers or mapped as they come from memory, with elements of registers as in map_block. */
static void fine_block(struct emit *e, const struct side *s, uint32_t o, uint32_t k, bool outer_low,
                       LLVMValueRef x[4][2])
{
    const uint32_t n = s->matrix ? 0 : fragment_shape(e->p, &e->p->values[s->v]).n;
    LLVMValueRef words[4];
    if (s->matrix)
        fetch_block(e, s, o, k, outer_low, words);
    for (uint32_t r = 0; r < 4; r++) {
        if (s->matrix)
            map_word(e, s, o, k, outer_low, r, words[r], x[r]);
        for (uint32_t i = 0; i < 2; i++) {
            if (!s->matrix)
                x[r][i] = get(e, e->f32, e->registers[s->v][(o * n + 2 * k + r / 2) * 4 + r % 2 * 2 + i]);
            x[r][i] = call1(e, "llvm.nvvm.f2tf32.rna", finite_or_zero(e, s, x[r][i]));
        }
    }
}

/* The order of what is summed is the same for both operands: elements i = 0 of all lanes, then those with i = 1. */
void multiply_finely(struct emit *e, const struct side *a, const struct side *b, uint32_t m, uint32_t n, uint32_t k,
                     LLVMValueRef c[8])
{
    LLVMValueRef rows[4][2], columns[4][2];
    if (e->p->shape.io == TG_F32) {
        multiply_block32(e, a, b, m, n, k, c);
        return;
    }
    fine_block(e, a, m, k, true, rows);
    fine_block(e, b, n, k, false, columns);
    for (uint32_t h = 0; h < 2; h++)
        for (uint32_t half = 0; half < 2; half++) {
            const LLVMValueRef left[4] = {rows[2 * h][0], rows[2 * h + 1][0], rows[2 * h][1], rows[2 * h + 1][1]};
            multiply_tf32(e, &c[4 * half], left, columns[2 * half + h]);
        }
}

void multiply_block(struct emit *e, const struct side *a, const struct side *b, uint32_t m, uint32_t n, uint32_t k,
                    LLVMValueRef c[8])
{
    (e->p->shape.io == TG_F32 ? multiply_block32 : multiply_block16)(e, a, b, m, n, k, c);
}

struct split split_float(struct emit *e, LLVMValueRef x)
{
    return cut_tf32(e, x);
}

void multiply_split(struct emit *e, LLVMValueRef c[4], const struct split a[4], const LLVMValueRef b[2])
{
    const struct split x = cut_tf32(e, b[0]), y = cut_tf32(e, b[1]);
    const LLVMValueRef lead[4] = {a[0].lead, a[1].lead, a[2].lead, a[3].lead},
                       trail[4] = {a[0].trail, a[1].trail, a[2].trail, a[3].trail}, b_lead[2] = {x.lead, y.lead},
                       b_trail[2] = {x.trail, y.trail};
    multiply_tf32(e, c, trail, b_lead);
    multiply_tf32(e, c, lead, b_trail);
    multiply_tf32(e, c, lead, b_lead);
}

LLVMValueRef side_element(struct emit *e, const struct side *s, LLVMValueRef outer, uint32_t outer_class,
                          LLVMValueRef k, uint32_t k_class)
{
    LLVMValueRef x =
        matrix_element(e, (uint32_t)(s->matrix - e->p->values), s->transposed ? k : outer, s->transposed ? outer : k);
    return finite_or_zero(e, s, mapped(e, s, x, outer, outer_class, k, k_class));
}

/* Elements of the summed dimension that a warp has of a left operand in registers. */
static uint32_t summed_here(const struct plan *p, uint32_t left)
{
    return p->values[left].extent[1] / plan_column_warps(p, &p->values[left]);
}

void make_sides(struct emit *e, const struct op *op, struct side *a, struct side *b)
{
    const struct plan *p = e->p;
    const struct value *out = &p->values[op->v];
    const bool in_order = plan_has_dim(&p->values[op->a], out->dims[0]);
    const bool is_part = p->shares_columns && plan_is_part(p, op);
    LLVMValueRef warp_n = p->warps_n == 1 ? imm(e, 0) : modulo(e, e->warp, imm(e, p->warps_n));
    *a = make_rows(e, in_order ? op->a : op->b, out);
    *b = make_columns(e, in_order ? op->b : op->a, out, plan_column_warps(p, out) == 1 ? imm(e, 0) : warp_n);
    if (is_part)
        b->first_k = mul(e, warp_n, imm(e, summed_here(p, a->v)));
}

/* Tensor cores cut off what is beyond fp32, towards zero: a state that they add to over many chunks, three products for 8 positions,
 * would lose 7e-9 of itself for each token, and a sum over 512 channels 3e-6. So in fp32 the product begins with zeros wherever there is
 * a sum from steps before, and is added to that outside; but not for the blocks of up to 128 channels. */
static bool is_added_outside(const struct plan *p, const struct value *out, uint32_t summed)
{
    enum { FEW_CHANNELS = 128 };
    const bool is_wide = plan_blocks(p, summed) > 1 && plan_dim_size(p, summed) > FEW_CHANNELS;
    return p->shape.io == TG_F32 && (out->nest < 0 || is_wide);
}

void emit_contract(struct emit *e, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *out = &p->values[op->v];
    const struct shape s = fragment_shape(p, out);
    struct side a, b;
    make_sides(e, op, &a, &b);
    const struct value *left = &p->values[a.v];
    const uint32_t k_index = left->dims[0] == out->dims[0] ? 1 : 0;
    const uint32_t n = s.m * s.n * 4;
    const bool is_fp32 = p->shape.io == TG_F32, is_apart = is_added_outside(p, out, left->dims[k_index]);
    LLVMValueRef *c = calloc(n, sizeof *c), *const sums = e->registers[op->v];
    for (uint32_t i = 0; c && i < n; i++)
        c[i] = is_apart ? real(e, 0) : get(e, e->f32, sums[i]);
    if (c)
        (is_fp32 ? contract32 : contract16)(e, out, &a, &b, a.matrix ? left->extent[k_index] : summed_here(p, a.v), c);
    for (uint32_t i = 0; c && i < n; i++)
        set(e, sums[i], is_apart ? LLVMBuildFAdd(e->b, get(e, e->f32, sums[i]), c[i], "") : c[i]);
    free(c);
    side_free(&a);
    side_free(&b);
}
