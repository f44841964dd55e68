/* lower/channel_sums.c - sums over positions, and of rows, in kernels whose lanes have channels of rows (lower/channel.c, lower/spread_rows.c): a lane
 * adds up the rows of its warp; what each of the four warps has goes through shared memory. */
#include "compiler/plan_channel.h"
#include "lower/channel.h"

#include "lower/matrix.h"

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS };

/* The lane's channels of what warp w leaves for the others. */
static LLVMValueRef left_by(const struct channels *c, LLVMValueRef w)
{
    struct emit *e = c->e;
    if (!e->p->spreads)
        return channel_floats(c, add(e, w, imm(e, WARPS)));
    const uint32_t row = 4 * c->n, offset = e->p->scratch_offset + plan_spread_rows(e->p) - WARPS * row;
    LLVMValueRef at = add(e, mul(e, w, imm(e, row)), mul(e, c->first, imm(e, 4)));
    return byte_offset(e, e->arena, add(e, at, imm(e, offset)));
}

/* Is the operation a product whose operands take the place of sums? */
static bool takes_place(const struct plan *p, const struct op *op)
{
    return !p->spreads && is_channel_product(p, op);
}

/* What warp w has left there. */
static void load_sums(const struct channels *c, uint32_t w, LLVMValueRef out[8])
{
    struct emit *e = c->e;
    LLVMValueRef x = LLVMBuildLoad2(e->b, channel_type(c, TG_F32), left_by(c, imm(e, w)), "");
    LLVMSetAlignment(x, 4 * c->each);
    for (uint32_t j = 0; j < c->each; j++)
        out[j] = LLVMBuildExtractElement(e->b, x, imm(e, j), "");
}

/* What each warp has of the lane's channels, to all warps. */
static void exchange(const struct channels *c, const struct op *op, const LLVMValueRef *mine)
{
    struct emit *e = c->e;
    bool is_used = false;
    for (const struct op *before = e->p->ops; before < op; before++)
        if (plan_is_spread(e->p, before) && !plan_spread_is_part(e->p, before))
            is_used = false; /* its barriers stand between */
        else
            is_used |= before->kind == OP_SCAN || before->kind == OP_TOTAL || takes_place(e->p, before);
    if (is_used)
        barrier(e); /* what was there has been read */
    LLVMValueRef to = left_by(c, e->warp);
    LLVMSetAlignment(LLVMBuildStore(e->b, channel_words(c, TG_F32, mine), to), 4 * c->each);
    barrier(e);
    e->ends.is_read = false;
}

static LLVMValueRef is_there(const struct channels *c, uint32_t r)
{
    return less(c->e, add(c->e, c->row, imm(c->e, r)), c->e->at.length);
}

/* Element of what is summed: nothing behind the end of the chunk. */
static LLVMValueRef addend(const struct channels *c, const struct op *op, uint32_t r, uint32_t j)
{
    LLVMValueRef x = channel_term(c, op->a, r * c->each + j);
    return plan_is_zero_behind(c->e->p, op->a) ? x : choose(c->e, is_there(c, r), x, real(c->e, 0));
}

/* All of them, in registers: what is behind the end is dropped where there is such a row. */
static void find_addends(const struct channels *c, const struct op *op, LLVMValueRef x[ROWS][8])
{
    struct emit *e = c->e;
    bring_waiting(c, op, op->a);
    for (uint32_t i = 0; i < ROWS * c->each; i++)
        set(e, x[i / c->each][i % c->each] = local(e, e->f32, "addend"), channel_term(c, op->a, i));
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildNot(e->b, is_there(c, ROWS - 1), ""));
    for (uint32_t i = 0; i < ROWS * c->each; i++) {
        LLVMValueRef slot = x[i / c->each][i % c->each];
        set(e, slot, choose(e, is_there(c, i / c->each), get(e, e->f32, slot), real(e, 0)));
    }
    end_if(e, after);
    for (uint32_t i = 0; i < ROWS * c->each; i++)
        x[i / c->each][i % c->each] = get(e, e->f32, x[i / c->each][i % c->each]);
}

/* Of the warp's rows: the sum, and what it was at each of them. */
static void sum_rows(const struct channels *c, const struct op *op, LLVMValueRef sum[8], LLVMValueRef sums[ROWS][8])
{
    struct emit *e = c->e;
    const tg_stmt *s = &e->p->algorithm->body[op->stmt];
    LLVMValueRef x[ROWS][8];
    if (!e->p->spreads)
        find_addends(c, op, x);
    for (uint32_t j = 0; j < c->each; j++)
        sum[j] = real(e, 0);
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t j = 0; j < c->each; j++) {
            LLVMValueRef before = sum[j];
            sum[j] = LLVMBuildFAdd(e->b, sum[j], e->p->spreads ? addend(c, op, r, j) : x[r][j], "");
            sums[r][j] = s->flags & TG_EXCLUSIVE ? before : sum[j];
        }
    }
}

/* Are the sums of the warps' rows there, of a prefix sum of the same? */
static bool has_sums(const struct plan *p, const struct op *op)
{
    bool has = false;
    for (const struct op *before = p->ops; before < op; before++)
        if (before->kind == OP_SCAN || before->kind == OP_TOTAL)
            has = before->a == op->a;
        else if (takes_place(p, before)) /* its factors are in their place */
            has = false;
    return has;
}

/* What the warps before have. */
static void load_base(const struct channels *c, LLVMValueRef base[8])
{
    struct emit *e = c->e;
    LLVMValueRef all[WARPS][8];
    for (uint32_t w = 0; w + 1 < WARPS; w++)
        load_sums(c, w, all[w]);
    for (uint32_t j = 0; j < c->each; j++) {
        base[j] = real(e, 0);
        for (uint32_t w = 0; w + 1 < WARPS; w++)
            base[j] = choose(e, less(e, imm(e, w), e->warp), LLVMBuildFAdd(e->b, base[j], all[w][j], ""), base[j]);
    }
}

/* A prefix sum before each position where there is that up to each: the same registers, a row on. */
static bool shift_sums(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    const struct op *same = e->p->ops;
    while (same < op &&
           !(same->kind == OP_SCAN && same->a == op->a && !(e->p->algorithm->body[same->stmt].flags & TG_EXCLUSIVE)))
        same++;
    if (e->p->spreads || same == op || !(e->p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE) || !has_sums(e->p, op))
        return false;
    LLVMValueRef base[8];
    load_base(c, base);
    for (uint32_t i = 0; i < ROWS * c->each; i++)
        set(e, e->registers[op->v][i], i < c->each ? base[i] : get(e, e->f32, e->registers[same->v][i - c->each]));
    return true;
}

/* A prefix sum: of the warp's rows, and before them those of the warps before. */
static void scan_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    LLVMValueRef sum[8], base[8], sums[ROWS][8];
    if (shift_sums(c, op))
        return;
    sum_rows(c, op, sum, sums);
    exchange(c, op, sum);
    load_base(c, base);
    for (uint32_t j = 0; j < c->each; j++)
        for (uint32_t r = 0; r < ROWS; r++)
            spread_set(e, op->v, r * c->each + j, LLVMBuildFAdd(e->b, base[j], sums[r][j], ""));
}

static void total_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    LLVMValueRef sum[8], sums[ROWS][8];
    if (!has_sums(e->p, op)) {
        sum_rows(c, op, sum, sums);
        exchange(c, op, sum);
    }
    for (uint32_t w = 0; w < WARPS; w++) {
        LLVMValueRef of_warp[8];
        load_sums(c, w, of_warp);
        for (uint32_t j = 0; j < c->each; j++)
            sum[j] = LLVMBuildFAdd(e->b, w ? sum[j] : real(e, 0), of_warp[j], "");
    }
    for (uint32_t j = 0; j < c->each; j++)
        set(e, e->registers[op->v][j], sum[j]);
}

void sum_channels(const struct channels *c, const struct op *op)
{
    if (op->kind == OP_SCAN)
        scan_channels(c, op);
    else
        total_channels(c, op);
}

/* ---- sums over channels ---- */

/* Of n sums a lane keeps half, those whose rows have the bit as the lane's number has it, and adds what the lane that keeps
 * the others has of them. Sums stay in the order of their rows. */
static void halve(struct emit *e, LLVMValueRef *sums, uint32_t n, uint32_t apart, uint32_t lane_bit)
{
    LLVMValueRef upper =
        LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, e->lane, imm(e, lane_bit), ""), imm(e, 0), "");
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i & apart)
            continue;
        LLVMValueRef low = sums[i], high = sums[i + apart];
        LLVMValueRef other = shuffle_xor(e, choose(e, upper, low, high), lane_bit);
        sums[kept++] = LLVMBuildFAdd(e->b, choose(e, upper, high, low), other, "");
    }
}

/* Squares of a tensor that waits: the diagonal of the product of the warp's rows by themselves. */
static bool is_of_squares(const struct plan *p, const struct op *op)
{
    return !p->spreads && op->a == op->b && plan_waits(&p->values[op->a]) && p->algorithm->body[op->stmt].b;
}

/* The element of a 16 x 8 tile in which the row of the quad, or 8 more, meets the column of the same number. */
static LLVMValueRef on_diagonal(struct emit *e, const LLVMValueRef two[2])
{
    LLVMValueRef is_odd = LLVMBuildICmp(e->b, LLVMIntNE, modulo(e, e->quad_row, imm(e, 2)), imm(e, 0), "");
    LLVMValueRef lane = add(e, mul(e, e->quad_row, imm(e, 4)), divide(e, e->quad_row, imm(e, 2)));
    LLVMValueRef args[4] = {imm(e, -1), choose(e, is_odd, two[1], two[0]), lane, imm(e, 31)};
    return call(e, "llvm.nvvm.shfl.sync.idx.f32", NULL, 0, args, 4);
}

static void square_rows(const struct channels *c, const struct op *op, LLVMValueRef sums[ROWS])
{
    struct emit *e = c->e;
    LLVMValueRef in_matrix = modulo(e, e->lane, imm(e, 8)), low = modulo(e, divide(e, e->lane, imm(e, 8)), imm(e, 2));
    LLVMValueRef row = add(e, c->row, add(e, in_matrix, mul(e, low, imm(e, 8)))),
                 unit = LLVMBuildXor(e->b, divide(e, e->lane, imm(e, 16)), in_matrix, "");
    LLVMValueRef from = byte_offset(e, waiting_tile(e, op->a), mul(e, row, imm(e, c->row_bytes))), x[2][4];
    for (uint32_t i = 0; i < 8; i++)
        x[i / 4][i % 4] = real(e, 0);
    for (uint32_t k = 0; k < c->n / 16; k++) {
        LLVMValueRef rows[4];
        fetch_matrices(e, byte_offset(e, from, mul(e, LLVMBuildXor(e->b, unit, imm(e, 2 * k), ""), imm(e, 16))), false,
                       rows);
        for (uint32_t half = 0; half < 2; half++)
            multiply_words(e, x[half], rows, rows[half], rows[half + 2]);
    }
    for (uint32_t half = 0; half < 2; half++)
        sums[half] = on_diagonal(e, &x[half][2 * half]);
}

/* Of products, by lanes: in sums[0] and sums[1]. */
static void add_products(const struct channels *c, const struct op *op, LLVMValueRef sums[ROWS])
{
    struct emit *e = c->e;
    for (uint32_t r = 0; r < ROWS; r++) {
        sums[r] = real(e, 0);
        if (!e->p->spreads)
            fetch_channels(c, r);
        for (uint32_t j = 0; j < c->each; j++) {
            LLVMValueRef a = channel_term(c, op->a, r * c->each + j);
            LLVMValueRef b = e->p->algorithm->body[op->stmt].b ? channel_term(c, op->b, r * c->each + j) : real(e, 1);
            sums[r] = fma_of(e, a, b, sums[r]);
        }
    }
    halve(e, sums, ROWS, 4, 16);
    halve(e, sums, ROWS / 2, 2, 8);
    halve(e, sums, ROWS / 4, 1, 4);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t by = 2; by; by /= 2)
            sums[i] = LLVMBuildFAdd(e->b, sums[i], shuffle_xor(e, sums[i], by), "");
}

void dot_channels(const struct channels *c, const struct op *op)
{
    struct emit *e = c->e;
    LLVMValueRef sums[ROWS];
    if (!e->p->spreads)
        bring_rows(c, op);
    (is_of_squares(e->p, op) ? square_rows : add_products)(c, op, sums);
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef *to = &e->registers[op->v][2 * i];
        set(e, *to, LLVMBuildFAdd(e->b, get(e, e->f32, *to), sums[i], ""));
    }
}
