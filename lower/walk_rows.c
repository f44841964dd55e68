/* lower/walk_rows.c - tiles of positions by channels that makers make in a stage of the ring (compiler/walk_rows.c).
 *
 * A maker has two neighbouring channels: a word of a row of 16-bit elements. Of eight rows at a time it has four, and the lane 16 on
 * the other four, which the swizzle has in the other half of the banks; sums over the positions before are in registers, and
 * go from the one to the other. One warp of a scheduler makes, so nothing hides what its instructions wait for but others of its own:
 * operation by operation, each for all these rows; and what comes before the first sum (the decays) is made of the next rows beside
 * what is made of the sums of those at hand. All is read before anything is put, for in addresses it is not to be seen that what
 * is put is not what is read next. */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "lower/walk.h"

#include <stdlib.h>

enum { SPAN_BYTES = WALK_TILE * WALK_SPAN_BYTES };
enum { OWN = 4, BOTH = 2 * OWN, APART = 16, CHANNELS = 2 }; /* rows of a lane, and of two; between these; of a maker */
enum { ELEMENTS = OWN * CHANNELS };                         /* row by row; behind them the sums over all rows before */
_Static_assert(ELEMENTS + CHANNELS == WALK_ROW_REGISTERS, "of a value");

/* What is done, and where. */
struct rows {
    const struct op *ops;
    uint32_t n;
    LLVMValueRef channel, stage; /* i32: the maker's first; of the ring */
    LLVMValueRef is_later;       /* i1: the lane's rows are behind those of the other one */
    LLVMValueRef first;          /* i32: the first of the lane's rows */
};

/* The maker's word of a row in the place of a matrix: units of 16 bytes are exclusive-ored with the row's number. What differs between
 * matrices of one type is a constant. */
static LLVMValueRef place_of(struct emit *e, const struct rows *rows, uint32_t matrix, tg_dtype dtype, uint32_t row)
{
    const struct value *v = &e->p->values[matrix];
    LLVMValueRef byte = mul(e, rows->channel, imm(e, tg_dtype_bytes(dtype)));
    LLVMValueRef span = mul(e, divide(e, byte, imm(e, WALK_SPAN_BYTES)), imm(e, SPAN_BYTES)),
                 stage = mul(e, rows->stage, imm(e, v->stage_bytes));
    LLVMValueRef begin = add(e, add(e, stage, span), modulo(e, byte, imm(e, WALK_SPAN_BYTES)));
    begin = LLVMBuildXor(e->b, begin, choose(e, rows->is_later, imm(e, 16 * OWN), imm(e, 0)), "");
    begin = LLVMBuildXor(e->b, begin, imm(e, 16 * row), "");
    LLVMValueRef to = byte_offset(e, e->arena, add(e, begin, mul(e, rows->first, imm(e, WALK_SPAN_BYTES))));
    return byte_offset(e, to, imm(e, v->offset + row * WALK_SPAN_BYTES));
}

static void fetch_row(struct emit *e, const struct rows *rows, const struct op *op, uint32_t row)
{
    const tg_dtype dtype = e->p->values[op->v].dtype;
    const bool floats = dtype == TG_F32;
    LLVMValueRef *const to = e->registers[op->v] + CHANNELS * row, from = place_of(e, rows, op->v, dtype, row),
                        x = LLVMBuildLoad2(e->b, floats ? e->v2f32 : e->i32, from, "");
    LLVMSetAlignment(x, CHANNELS * tg_dtype_bytes(dtype));
    for (uint32_t c = 0; c < CHANNELS; c++)
        set(e, to[c], floats ? LLVMBuildExtractElement(e->b, x, imm(e, c), "") : unpack(e, x, c));
}

static void put_row(struct emit *e, const struct rows *rows, const struct op *op, uint32_t row)
{
    LLVMValueRef *const from = e->registers[op->v] + CHANNELS * row,
                        word = pack(e, get(e, e->f32, from[0]), get(e, e->f32, from[1]));
    LLVMSetAlignment(LLVMBuildStore(e->b, word, place_of(e, rows, op->a, e->p->shape.io, row)), 4);
}

static void copy_row(struct emit *e, const struct op *op, uint32_t row)
{
    for (uint32_t i = CHANNELS * row; i < CHANNELS * (row + 1); i++)
        set(e, e->registers[op->v][i], get(e, e->f32, e->registers[op->a][i]));
}

static void map_row(struct emit *e, const struct rows *rows, const struct op *op, struct expression *map, uint32_t row)
{
    for (uint32_t c = 0; c < CHANNELS; c++) {
        const struct element_at at = {.row_class = row,
                                      .column_class = c,
                                      .row = add(e, rows->first, imm(e, row)),
                                      .column = add(e, rows->channel, imm(e, c)),
                                      .self_index = CHANNELS * row + c};
        set(e, e->registers[op->v][at.self_index], expression_element(e, map, &at));
    }
}

/* The sums of a channel: of the lane's rows, behind those of the other lane where these are earlier. Behind the end of the chunk nothing
 * is added. */
static void scan_channel(struct emit *e, const struct rows *rows, const struct op *op, uint32_t c)
{
    LLVMValueRef *const to = e->registers[op->v] + c, *const from = e->registers[op->a] + c,
                        before = get(e, e->f32, to[ELEMENTS]), left = sub(e, e->at.length, rows->first), sums[OWN];
    for (uint32_t row = 0; row < OWN; row++) {
        LLVMValueRef x = choose(e, less(e, imm(e, row), left), get(e, e->f32, from[CHANNELS * row]), real(e, 0));
        sums[row] = row ? LLVMBuildFAdd(e->b, sums[row - 1], x, "") : x;
    }
    LLVMValueRef mine = sums[OWN - 1], other = shuffle_xor(e, mine, APART);
    LLVMValueRef between = LLVMBuildFAdd(e->b, before, choose(e, rows->is_later, other, mine), "");
    LLVMValueRef base = choose(e, rows->is_later, between, before);
    for (uint32_t row = 0; row < OWN; row++)
        set(e, to[CHANNELS * row], LLVMBuildFAdd(e->b, base, sums[row], ""));
    set(e, to[ELEMENTS], LLVMBuildFAdd(e->b, between, choose(e, rows->is_later, mine, other), ""));
}

/* In all rows at hand: a map remembers what is of a channel alone. */
static void work_on_rows(struct emit *e, const struct rows *rows, const struct op *op)
{
    struct expression *map = op->kind == OP_MAP ? expression_begin(e, op->stmt, &e->p->values[op->v], false) : NULL;
    debug_line(e, op->stmt);
    for (uint32_t c = 0; op->kind == OP_SCAN && c < CHANNELS; c++)
        scan_channel(e, rows, op, c);
    for (uint32_t row = 0; row < OWN; row++) {
        if (op->kind == OP_FETCH)
            fetch_row(e, rows, op, row);
        else if (op->kind == OP_PUT)
            put_row(e, rows, op, row);
        else if (op->kind == OP_COPY)
            copy_row(e, op, row);
        else if (map)
            map_row(e, rows, op, map, row);
    }
    free(map);
}

/* ---- of the rows at hand, and of the next ones ---- */

/* Is the operation before the first sum, or does it fetch for nothing but such? Nothing is put ahead: who reads the first rows once
 * more would read what is there by then. */
static bool is_ahead(const struct emit *e, const struct rows *rows, uint32_t i)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    const struct op *op = &rows->ops[i];
    uint32_t sum = 0;
    while (sum < rows->n && rows->ops[sum].kind != OP_SCAN)
        sum++;
    bool is = i < sum && op->kind != OP_PUT;
    for (uint32_t k = sum; k < rows->n; k++)
        for (uint32_t r = 0, n = plan_op_reads(e->p, &rows->ops[k], reads); r < n; r++)
            is &= op->kind != OP_FETCH || reads[r] != op->v;
    return is;
}

static void work(struct emit *e, const struct rows *rows, bool ahead)
{
    for (uint32_t i = 0; i < rows->n; i++)
        if (is_ahead(e, rows, i) == ahead)
            work_on_rows(e, rows, &rows->ops[i]);
}

/* What is made ahead is in registers twice: those that are named, and `other`. */
static void change_registers(struct emit *e, const struct rows *rows, LLVMValueRef other[PLAN_MAX_OPS][ELEMENTS])
{
    for (uint32_t i = 0; i < rows->n; i++)
        for (uint32_t k = 0; is_ahead(e, rows, i) && k < ELEMENTS; k++) {
            LLVMValueRef slot = e->registers[rows->ops[i].v][k], x = get(e, e->f32, slot);
            if (other[i][k])
                set(e, slot, other[i][k]);
            other[i][k] = x;
        }
}

/* Behind the last rows the first are read once more, for nothing. */
static void go_through_rows(struct emit *e, struct rows *rows)
{
    LLVMValueRef begin, own = choose(e, rows->is_later, imm(e, OWN), imm(e, 0)),
                        other[PLAN_MAX_OPS][ELEMENTS] = {{NULL}};
    rows->first = own;
    work(e, rows, true);
    struct counted l = loop_begin(e, imm(e, WALK_TILE), &begin);
    l.rolled = true;
    struct rows next = *rows;
    next.first = add(e, modulo(e, add(e, begin, imm(e, BOTH)), imm(e, WALK_TILE)), own);
    rows->first = add(e, begin, own);
    change_registers(e, rows, other);
    work(e, &next, true);
    change_registers(e, rows, other);
    work(e, rows, false);
    change_registers(e, rows, other);
    loop_end(e, &l, BOTH);
}

/* ---- */

static LLVMValueRef first_channel(struct emit *e)
{
    LLVMValueRef pair = add(e, mul(e, e->warp, imm(e, APART)), modulo(e, e->lane, imm(e, APART)));
    return mul(e, pair, imm(e, CHANNELS));
}

/* As many makers as channels: two of them each, of half of the rows. */
static uint32_t makers_of_rows(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_made_of_rows(&p->values[i]))
            return p->values[i].extent[1];
    return 0;
}

uint32_t walk_rows(struct emit *e, struct walk *w, uint32_t begin)
{
    const uint32_t makers = makers_of_rows(e->p);
    struct rows rows = {.ops = &e->p->ops[begin + 1], .channel = first_channel(e), .stage = w->stage};
    rows.is_later = less(e, imm(e, APART - 1), e->lane);
    for (; rows.ops[rows.n].kind != OP_END_ROWS; rows.n++)
        for (uint32_t c = 0; rows.ops[rows.n].kind == OP_SCAN && c < CHANNELS; c++)
            set(e, e->registers[rows.ops[rows.n].v][ELEMENTS + c], real(e, 0));
    LLVMBasicBlockRef after =
        makers < 128 ? begin_if(e, less(e, uniform(e, e->warp), imm(e, makers / 32))) : NULL; /* by whole warps */
    go_through_rows(e, &rows);
    if (after)
        end_if(e, after);
    return begin + 1 + rows.n;
}

void walk_load_channel(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    LLVMValueRef first = smaller(e, first_channel(e), imm(e, v->extent[0] - CHANNELS));
    for (uint32_t c = 0; c < CHANNELS; c++) {
        LLVMValueRef from =
            tensor_address(e, v->operand, TG_OPERAND_TILE(v->operand), &e->at, v->dims, add(e, first, imm(e, c)), NULL);
        set(e, e->registers[op->v][c], LLVMBuildLoad2(e->b, e->f32, from, ""));
    }
}
