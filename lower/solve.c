/* lower/solve.c - the inverse T of I + L, L strictly lower, positions x positions of one chunk, by blocks of 16 x 16.
 *
 * The diagonal blocks by substitution: a lane has one column and takes each row, once it is known, off those behind it,
 * which do not wait for one another. Of T (I + L) = I the others follow from right to left in each block row,
 *
 *     T_ij = -(sum over j < k <= i of T_ik L_kj) T_jj
 *
 * by products on tensor cores. Their left operands are accumulators as they are, and block rows have nothing to do with one
 * another: a warp makes those whose rows of L it has (plan_row_block).
 *
 * Operands have two parts each, and products three: parts in bf16, 16 bits of a number, where T is rounded to 16 bits in the
 * end; else in TF32.
 *
 * Shared memory has the right operands: L_kj, and in the place of L_jj, once it is known, T_jj. In fp32 all are transposed. In
 * parts a row has 16 numbers' leading parts and then their trailing ones, in the place of 16 floats: T_jj is transposed, and
 * so is L_kj if it is given with keys' rows; else it is where it is in L, and transposed when it is fetched.
 *
 * A NaN in a right operand would reach all rows of a product. So if there is anything in L that is not finite, from the first
 * row of such on L is zero there, and T_jj NaN: the rows of T from there on are NaN, and no others know of it. */
#include "compiler/plan_tile.h"
#include "lower/matrix.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 16, TRAIL = 2 * BLOCK /* bytes to the trailing parts of a row */ };

struct solve {
    struct emit *e;
    const struct value *out;
    uint32_t n, pitch;
    struct shape shape;
    LLVMValueRef *t; /* T, its rows those of queries */
    bool in_parts;
    bool is_turned; /* has L keys' rows? */
    /* What lane l names. In fp32 elements: (l / 4, 2 (l % 4)), and (2 (l % 4), l / 4). */
    LLVMValueRef by_result, by_left;
    /* In parts rows of 8 x 8 matrices, two of leading parts and then two of trailing ones; or four of leading parts. */
    LLVMValueRef side_by_side, one_above, square;
};

/* A left operand in parts. */
struct left {
    struct split word[4];
};

static LLVMValueRef scratch_at(struct emit *e, LLVMValueRef index)
{
    return byte_offset(e, e->arena, add(e, imm(e, e->p->scratch_offset), mul(e, index, imm(e, 4))));
}

static LLVMValueRef element_at(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column)
{
    return byte_offset(s->e, from, imm(s->e, 4 * (row * s->pitch + column)));
}

/* Address of element (row, column), both known at run time. */
static LLVMValueRef place_of(const struct solve *s, LLVMValueRef row, LLVMValueRef column)
{
    return scratch_at(s->e, add(s->e, mul(s->e, row, imm(s->e, s->pitch)), column));
}

static LLVMValueRef load_float(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column)
{
    return LLVMBuildLoad2(s->e->b, s->e->f32, element_at(s, from, row, column), "");
}

static LLVMValueRef is_nan(struct emit *e, LLVMValueRef x)
{
    return LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, "");
}

/* ---- L ---- */

/* Are the tile's rows keys' (orient.c)? */
static bool is_turned(const struct value *v)
{
    return v->dims[0] == TG_LKV;
}

/* Address of the element in register r of the warp's m-th 16 rows, transposed. */
static LLVMValueRef turned_place(const struct solve *s, const struct value *v, uint32_t m, uint32_t r)
{
    struct emit *e = s->e;
    const uint32_t by_row = (r & 2) * 4, by_column = r / 4 * 8 + (r & 1);
    LLVMValueRef row = fragment_row(e, v, 2 * m), column = fragment_column(e, v, 0);
    return is_turned(v) ? element_at(s, place_of(s, row, column), by_row, by_column)
                        : element_at(s, place_of(s, column, row), by_column, by_row);
}

/* Is the query of register r behind the end of the chunk, where gates count as zero and a decay may be infinite? */
static LLVMValueRef is_behind(const struct solve *s, const struct value *v, uint32_t m, uint32_t r)
{
    struct emit *e = s->e;
    LLVMValueRef query =
        is_turned(v) ? fragment_column(e, v, r / 4 * 2 + (r & 1)) : fragment_row(e, v, 2 * m + (r & 2) / 2);
    return LLVMBuildICmp(e->b, LLVMIntSGE, query, e->at.length, "");
}

/* If the block is not above the diagonal. */
static LLVMBasicBlockRef begin_below(const struct solve *s, const struct value *v, uint32_t m, uint32_t n)
{
    return begin_if(s->e, LLVMBuildICmp(s->e->b, LLVMIntUGE, fragment_block(s->e, v, m), imm(s->e, n), ""));
}

/* Two elements that are side by side, in parts. */
static void put_parts(const struct solve *s, LLVMValueRef to, const LLVMValueRef x[2])
{
    struct emit *e = s->e;
    const struct split parts = split_bf16(e, x);
    LLVMBuildStore(e->b, parts.lead, to);
    LLVMBuildStore(e->b, parts.trail, byte_offset(e, to, imm(e, TRAIL)));
}

/* Block n of 16 columns of the warp's m-th 16 rows, in parts. */
static void put_block_parts(const struct solve *s, const struct value *v, uint32_t m, uint32_t n, LLVMValueRef x[8])
{
    struct emit *e = s->e;
    LLVMValueRef from =
        byte_offset(e, place_of(s, fragment_row(e, v, 2 * m), imm(e, 0)), mul(e, e->quad_column, imm(e, 4)));
    for (uint32_t r = 0; r < 8; r += 2) {
        LLVMValueRef to = element_at(s, from, r / 2 % 2 * 8, BLOCK * n);
        put_parts(s, byte_offset(e, to, imm(e, r / 4 * BLOCK)), &x[r]);
    }
}

/* The same in fp32, transposed. */
static void put_block(const struct solve *s, const struct value *v, uint32_t m, uint32_t n, LLVMValueRef x[8])
{
    for (uint32_t r = 0; r < 8; r++)
        LLVMBuildStore(s->e->b, x[r], turned_place(s, v, m, 8 * n + r));
}

/* In parts what is below the diagonal; what is on it is solved in fp32. */
static void put_either(const struct solve *s, const struct value *v, uint32_t m, uint32_t n, LLVMValueRef x[8])
{
    struct emit *e = s->e;
    LLVMValueRef is_diagonal = LLVMBuildICmp(e->b, LLVMIntEQ, fragment_block(e, v, m), imm(e, n), "");
    LLVMBasicBlockRef after = begin_if(e, is_diagonal);
    put_block(s, v, m, n, x);
    end_if(e, after);
    after = begin_if(e, LLVMBuildNot(e->b, is_diagonal, ""));
    put_block_parts(s, v, m, n, x);
    end_if(e, after);
}

/* To shared memory, as far as it may not be above the diagonal. Is there anything in it that is not finite? Where keys' rows
 * are made of T, its rows behind the end are terms of their sums. */
static LLVMValueRef put_lower(const struct solve *s, uint32_t v)
{
    struct emit *e = s->e;
    const struct value *value = &e->p->values[v];
    LLVMValueRef nothing[4];
    for (uint32_t i = 0; i < 4; i++)
        nothing[i] = real(e, 0);
    for (uint32_t m = 0; m < s->shape.m; m++)
        for (uint32_t n = 0; n < s->shape.n / 2 && !plan_is_above(e->p, value, m, n); n++) {
            LLVMValueRef x[8];
            for (uint32_t r = 0; r < 8; r++) {
                x[r] = get(e, e->f32, e->registers[v][(m * s->shape.n + 2 * n) * 4 + r]);
                if (is_turned(s->out))
                    x[r] = choose(e, is_behind(s, value, m, r), real(e, 0), x[r]);
                nothing[r % 4] = add_nothing(e, TG_F32, nothing[r % 4], x[r]);
            }
            LLVMBasicBlockRef after = plan_is_above_some(e->p, value, m, n) ? begin_below(s, value, m, n) : NULL;
            (!s->in_parts                       ? put_block
             : plan_is_below(e->p, value, m, n) ? put_block_parts
                                                : put_either)(s, value, m, n, x);
            if (after)
                end_if(e, after);
        }
    LLVMValueRef one = LLVMBuildFAdd(e->b, nothing[0], nothing[1], ""),
                 other = LLVMBuildFAdd(e->b, nothing[2], nothing[3], "");
    return is_nan(e, LLVMBuildFAdd(e->b, one, other, ""));
}

/* Four elements side by side. */
static void load_four(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column, LLVMValueRef out[4])
{
    struct emit *e = s->e;
    LLVMValueRef four = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, 4), element_at(s, from, row, column), "");
    LLVMSetAlignment(four, 16);
    for (uint32_t i = 0; i < 4; i++)
        out[i] = LLVMBuildExtractElement(e->b, four, imm(e, i), "");
}

static void store_four(struct emit *e, LLVMValueRef to, uint32_t offset, LLVMTypeRef type, const LLVMValueRef x[4])
{
    LLVMValueRef four = LLVMGetUndef(LLVMVectorType(type, 4));
    for (uint32_t i = 0; i < 4; i++)
        four = LLVMBuildInsertElement(e->b, four, x[i], imm(e, i), "");
    LLVMSetAlignment(LLVMBuildStore(e->b, four, byte_offset(e, to, imm(e, offset))), 16);
}

/* A column of T_jj, as a row of 16 floats. */
static void put_column(const struct solve *s, LLVMValueRef to, const LLVMValueRef y[BLOCK])
{
    for (uint32_t r = 0; r < BLOCK; r += 4)
        store_four(s->e, to, 4 * r, s->e->f32, &y[r]);
}

static void put_column_parts(const struct solve *s, LLVMValueRef to, const LLVMValueRef y[BLOCK])
{
    struct emit *e = s->e;
    LLVMValueRef lead[BLOCK / 2], trail[BLOCK / 2];
    for (uint32_t i = 0; i < BLOCK / 2; i++) {
        const struct split parts = split_bf16(e, &y[2 * i]);
        lead[i] = parts.lead;
        trail[i] = parts.trail;
    }
    for (uint32_t i = 0; i < BLOCK / 2; i += 4) {
        store_four(e, to, 4 * i, e->i32, &lead[i]);
        store_four(e, to, TRAIL + 4 * i, e->i32, &trail[i]);
    }
}

/* T_jj of two blocks of this warp, the m-th and the one behind it: lanes have a column each. */
static void solve_diagonal(const struct solve *s, uint32_t m)
{
    struct emit *e = s->e;
    const bool is_last = m + 1 == s->shape.m;
    LLVMValueRef is_first = less(e, e->lane, imm(e, BLOCK)), column = modulo(e, e->lane, imm(e, BLOCK));
    LLVMValueRef block = fragment_block(e, s->out, m);
    if (!is_last)
        block = choose(e, is_first, block, fragment_block(e, s->out, m + 1));
    LLVMValueRef corner = scratch_at(e, mul(e, block, imm(e, BLOCK * (s->pitch + 1)))), y[BLOCK], l[BLOCK];
    for (uint32_t r = 0; r < BLOCK; r++)
        y[r] = choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, column, imm(e, r), ""), real(e, 1), real(e, 0));
    for (uint32_t k = 0; k + 1 < BLOCK; k++) { /* column k of L */
        for (uint32_t r = (k + 1) / 4 * 4; r < BLOCK; r += 4)
            load_four(s, corner, k, r, &l[r]);
        for (uint32_t r = k + 1; r < BLOCK; r++)
            y[r] = fma_of(e, LLVMBuildFNeg(e->b, l[r], ""), y[k], y[r]);
    }
    sync_warp(e); /* L_jj has been read */
    LLVMValueRef to = byte_offset(e, corner, mul(e, column, imm(e, 4 * s->pitch)));
    LLVMBasicBlockRef after = is_last ? begin_if(e, is_first) : NULL;
    if (s->in_parts)
        put_column_parts(s, to, y);
    else
        put_column(s, to, y);
    if (after)
        end_if(e, after);
}

/* ---- what is not finite ---- */

/* for (*index = thread; *index < n; *index += threads) */
static struct counted for_threads(const struct solve *s, LLVMValueRef *index)
{
    return loop_from(s->e, s->e->tid, imm(s->e, s->n), index);
}

/* Are both in one block on the diagonal? */
static LLVMValueRef is_on_diagonal(const struct solve *s, LLVMValueRef row, LLVMValueRef column)
{
    struct emit *e = s->e;
    return LLVMBuildICmp(e->b, LLVMIntEQ, divide(e, row, imm(e, BLOCK)), divide(e, column, imm(e, BLOCK)), "");
}

/* Address of the leading part of element (row, column). */
static LLVMValueRef part_of(const struct solve *s, LLVMValueRef row, LLVMValueRef column)
{
    struct emit *e = s->e;
    LLVMValueRef is_transposed = s->is_turned ? LLVMConstInt(e->i1, 1, false) : is_on_diagonal(s, row, column);
    LLVMValueRef outer = choose(e, is_transposed, column, row), inner = choose(e, is_transposed, row, column);
    LLVMValueRef in_block = modulo(e, inner, imm(e, BLOCK));
    return byte_offset(e, place_of(s, outer, sub(e, inner, in_block)), mul(e, in_block, imm(e, 2)));
}

static LLVMValueRef load_element_of(const struct solve *s, LLVMValueRef row, LLVMValueRef column)
{
    struct emit *e = s->e;
    if (!s->in_parts)
        return LLVMBuildLoad2(e->b, e->f32, place_of(s, column, row), "");
    LLVMValueRef half = LLVMBuildLoad2(e->b, e->i16, part_of(s, row, column), "");
    return unpack_as(e, TG_BF16, LLVMBuildZExt(e->b, half, e->i32, ""), 0);
}

/* NaN on the diagonal, zero elsewhere. */
static void store_nothing(const struct solve *s, LLVMValueRef row, LLVMValueRef column)
{
    struct emit *e = s->e;
    LLVMValueRef is_diagonal = is_on_diagonal(s, row, column);
    if (!s->in_parts) {
        LLVMBuildStore(e->b, choose(e, is_diagonal, real(e, (double)NAN), real(e, 0)), place_of(s, column, row));
        return;
    }
    LLVMValueRef to = part_of(s, row, column);
    LLVMValueRef half = choose(e, is_diagonal, LLVMConstInt(e->i16, 0x7fff, false), LLVMConstInt(e->i16, 0, false));
    LLVMBuildStore(e->b, half, to);
    LLVMBuildStore(e->b, half, byte_offset(e, to, imm(e, TRAIL)));
}

/* A mark behind each row of L or T_jj that has something: NaN. */
static void mark_rows(const struct solve *s)
{
    struct emit *e = s->e;
    LLVMValueRef row, column, sum = local(e, e->f32, "nothing");
    const struct counted rows = for_threads(s, &row);
    set(e, sum, real(e, 0));
    const struct counted columns = loop_from(e, imm(e, 0), add(e, row, imm(e, 1)), &column);
    set(e, sum, add_nothing(e, TG_F32, get(e, e->f32, sum), load_element_of(s, row, column)));
    loop_end(e, &columns, 1);
    LLVMBuildStore(e->b, get(e, e->f32, sum), place_of(s, row, imm(e, s->n)));
    loop_end(e, &rows, e->p->threads);
}

static LLVMValueRef first_marked(const struct solve *s)
{
    struct emit *e = s->e;
    LLVMValueRef back, first = local(e, e->i32, "first");
    set(e, first, imm(e, s->n));
    const struct counted rows = loop_from(e, imm(e, 0), imm(e, s->n), &back);
    LLVMValueRef row = sub(e, imm(e, s->n - 1), back);
    LLVMValueRef mark = LLVMBuildLoad2(e->b, e->f32, place_of(s, row, imm(e, s->n)), "");
    set(e, first, choose(e, is_nan(e, mark), row, get(e, e->i32, first)));
    loop_end(e, &rows, 1);
    return get(e, e->i32, first);
}

static void contain(const struct solve *s)
{
    struct emit *e = s->e;
    LLVMValueRef row, column;
    mark_rows(s);
    barrier(e);
    LLVMValueRef first = first_marked(s);
    const struct counted columns = for_threads(s, &column), rows = loop_from(e, first, imm(e, s->n), &row);
    store_nothing(s, row, column);
    loop_end(e, &rows, 1);
    loop_end(e, &columns, e->p->threads);
    barrier(e);
}

/* ---- T ---- */

/* Registers of block (i, j) of T, which is in the warp's m-th row of blocks. */
static LLVMValueRef *registers_of(const struct solve *s, uint32_t m, uint32_t j)
{
    return &s->t[(m * s->shape.n + 2 * j) * 4];
}

/* c += the block by what is of (k, j) in shared memory. */
static void add_product32(const struct solve *s, LLVMValueRef *block, uint32_t k, uint32_t j, LLVMValueRef c[8])
{
    struct emit *e = s->e;
    for (uint32_t step = 0; step < 2; step++) {
        LLVMValueRef a[4];
        for (uint32_t r = 0; r < 4; r++) /* in an order of the summed dimension of its own (matrix.c) */
            a[r] = get(e, e->f32, block[4 * step + r % 2 * 2 + r / 2]);
        for (uint32_t half = 0; half < 2; half++) {
            LLVMValueRef from = element_at(s, s->by_result, BLOCK * j + 8 * half, BLOCK * k + 8 * step), b[2];
            LLVMValueRef two = LLVMBuildLoad2(e->b, e->v2f32, from, "");
            LLVMSetAlignment(two, 8);
            for (uint32_t i = 0; i < 2; i++)
                b[i] = LLVMBuildExtractElement(e->b, two, imm(e, i), "");
            multiply_floats(e, &c[4 * half], a, b);
        }
    }
}

/* Two 8 x 8 matrices of leading parts and the same two of trailing ones, from (row, column) of shared memory on. */
static void fetch_parts(const struct solve *s, LLVMValueRef from, uint32_t row, uint32_t column, bool transposed,
                        struct split out[2])
{
    LLVMValueRef x[4];
    fetch_matrices(s->e, element_at(s, from, row, column), transposed, x);
    for (uint32_t i = 0; i < 2; i++)
        out[i] = (struct split){x[i], x[2 + i]};
}

static void add_product16(const struct solve *s, const struct left *a, uint32_t k, uint32_t j, LLVMValueRef c[8])
{
    for (uint32_t half = 0; half < 2; half++) {
        struct split b[2];
        if (k != j && !s->is_turned) /* 8 numbers of a part are in the place of 4 floats */
            fetch_parts(s, s->one_above, BLOCK * k, BLOCK * j + 4 * half, true, b);
        else
            fetch_parts(s, s->side_by_side, BLOCK * j + 8 * half, BLOCK * k, false, b);
        multiply_split_bf16(s->e, &c[4 * half], a->word, b);
    }
}

/* A block of T as a left operand. */
static struct left left_of(const struct solve *s, LLVMValueRef *block)
{
    struct emit *e = s->e;
    struct left a = {0};
    for (uint32_t r = 0; r < 4 && s->in_parts; r++) {
        const LLVMValueRef x[2] = {get(e, e->f32, block[2 * r]), get(e, e->f32, block[2 * r + 1])};
        a.word[r] = split_bf16(e, x);
    }
    return a;
}

static void add_product(const struct solve *s, LLVMValueRef *block, const struct left *a, uint32_t k, uint32_t j,
                        LLVMValueRef c[8])
{
    if (s->in_parts)
        add_product16(s, a, k, j, c);
    else
        add_product32(s, block, k, j, c);
}

/* T_ii as a left operand; in fp32 that is what its registers have. */
static struct left load_diagonal(const struct solve *s, uint32_t i, LLVMValueRef *block)
{
    struct emit *e = s->e;
    struct left a = {0};
    LLVMValueRef at = element_at(s, s->square, BLOCK * i, BLOCK * i), lead[4], trail[4];
    for (uint32_t r = 0; r < 8 && !s->in_parts; r++)
        set(e, block[r], load_float(s, s->by_left, BLOCK * i + r / 4 * 8 + r % 2, BLOCK * i + r % 4 / 2 * 8));
    if (!s->in_parts)
        return a;
    fetch_matrices(e, at, true, lead);
    fetch_matrices(e, byte_offset(e, at, imm(e, TRAIL)), true, trail);
    for (uint32_t r = 0; r < 4; r++)
        a.word[r] = (struct split){lead[r], trail[r]};
    return a;
}

/* Block row i. A block that is known is added at once to the sums of all that stand left of it. */
static void solve_row(const struct solve *s, uint32_t m, uint32_t i)
{
    struct emit *e = s->e;
    LLVMValueRef sum[EMIT_MAX_FRAGMENT / 8][8];
    for (uint32_t j = 0; j < s->n / BLOCK; j++)
        for (uint32_t r = 0; r < 8; r++)
            set(e, registers_of(s, m, j)[r], sum[j][r] = real(e, 0));
    const struct left diagonal = load_diagonal(s, i, registers_of(s, m, i));
    struct left a = diagonal;
    for (uint32_t k = i; k > 0; k--) {
        LLVMValueRef x[8], *left = registers_of(s, m, k - 1);
        for (uint32_t j = k; j-- > 0;)
            add_product(s, registers_of(s, m, k), &a, k, j, sum[j]);
        for (uint32_t r = 0; r < 8; r++) {
            set(e, left[r], LLVMBuildFNeg(e->b, sum[k - 1][r], ""));
            x[r] = real(e, 0);
        }
        a = left_of(s, left);
        add_product(s, left, &a, k - 1, k - 1, x);
        for (uint32_t r = 0; r < 8; r++)
            set(e, left[r], x[r]);
        a = left_of(s, left);
    }
    for (uint32_t r = 0; r < 8 && s->in_parts; r++) /* last: until then they are in parts */
        set(e, registers_of(s, m, i)[r], sum_bf16(e, diagonal.word[r / 2], r % 2));
}

/* Where lanes find operands. */
static void find_operands(struct solve *s)
{
    struct emit *e = s->e;
    LLVMValueRef twice = mul(e, e->quad_column, imm(e, 2)), row = modulo(e, e->lane, imm(e, 8)),
                 which = divide(e, e->lane, imm(e, 8)), second = modulo(e, which, imm(e, 2)),
                 is_trail = divide(e, which, imm(e, 2));
    s->by_result = place_of(s, e->quad_row, twice);
    s->by_left = place_of(s, twice, e->quad_row);
    s->side_by_side = byte_offset(e, place_of(s, row, imm(e, 0)), mul(e, which, imm(e, TRAIL / 2)));
    s->one_above =
        byte_offset(e, place_of(s, add(e, row, mul(e, second, imm(e, 8))), imm(e, 0)), mul(e, is_trail, imm(e, TRAIL)));
    s->square = byte_offset(e, place_of(s, add(e, row, mul(e, is_trail, imm(e, 8))), imm(e, 0)),
                            mul(e, second, imm(e, TRAIL / 2)));
}

/* T by way of shared memory, for a product that takes it with keys' rows. */
static void turn(const struct solve *s, uint32_t v)
{
    struct emit *e = s->e;
    struct value straight = *s->out;
    straight.dims[0] = TG_LQ;
    straight.dims[1] = TG_LKV;
    barrier(e); /* right operands have been read */
    for (uint32_t m = 0; m < s->shape.m; m++)
        for (uint32_t r = 0; r < s->shape.n * 4; r++)
            LLVMBuildStore(e->b, get(e, e->f32, s->t[m * s->shape.n * 4 + r]), turned_place(s, &straight, m, r));
    barrier(e);
    for (uint32_t m = 0; m < s->shape.m; m++)
        for (uint32_t r = 0; r < s->shape.n * 4; r++)
            set(e, e->registers[v][m * s->shape.n * 4 + r],
                LLVMBuildLoad2(e->b, e->f32, turned_place(s, s->out, m, r), ""));
}

void emit_solve(struct emit *e, const struct op *op)
{
    const struct value *out = &e->p->values[op->v];
    struct solve s = {.e = e, .out = out, .n = out->extent[0], .pitch = plan_solve_pitch(e->p, op)};
    s.in_parts = e->p->shape.io != TG_F32;
    s.is_turned = is_turned(&e->p->values[op->a]);
    s.t = is_turned(out) ? new_registers(e, op->v) : e->registers[op->v];
    if (!s.t)
        return;
    s.shape = fragment_shape(e->p, out);
    barrier(e); /* what was there before has been read */
    LLVMValueRef args[2] = {imm(e, 0), put_lower(&s, op->a)};
    sync_warp(e);
    for (uint32_t m = 0; m < s.shape.m; m += 2)
        solve_diagonal(&s, m);
    LLVMBasicBlockRef after = begin_if(e, call(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", NULL, 0, args, 2));
    contain(&s);
    end_if(e, after);
    for (uint32_t w = 0; w < e->p->warps_m; w++) {
        after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, w), ""));
        find_operands(&s);
        for (uint32_t m = s.shape.m; m-- > 0;) /* the longest one first, which needs most registers */
            solve_row(&s, m, plan_row_block(e->p, s.shape.m, m, w));
        end_if(e, after);
    }
    if (!is_turned(out))
        return;
    turn(&s, op->v);
    free(s.t);
}
