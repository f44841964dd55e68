/* lower/spread_weights.c - weights of a gradient (lower/spread.c), which are in accumulators, a warp's 16 rows of 64: diagonal blocks in
 * fp32 and, where a product takes them the other way round, all of them in 16 bits go through shared memory. */
#include "compiler/plan_channel.h"
#include "lower/spread.h"

#include "lower/matrix.h"

enum { ROWS = CHANNEL_ROWS, WARPS = CHANNEL_WARPS };

/* This warp's diagonal block of P: 16 columns of 16 floats. */
enum { OWN_BYTES = WARPS * ROWS * ROWS * 4 };
static LLVMValueRef own_address(const struct spread *s)
{
    struct emit *e = s->c.e;
    const uint32_t offset = plan_spread_tiles(e->p) + plan_own_place(e->p, s->op) * OWN_BYTES;
    return byte_offset(e, spread_scratch(s, offset), mul(e, e->warp, imm(e, ROWS * ROWS * 4)));
}

/* The diagonal block of the warp's rows of P, which is the block of columns that has the warp's number. */
static void put_own(const struct spread *s)
{
    struct emit *e = s->c.e;
    LLVMValueRef *p = e->registers[s->weights];
    LLVMValueRef at = add(e, mul(e, e->quad_column, imm(e, 2 * ROWS * 4)), mul(e, e->quad_row, imm(e, 4)));
    LLVMValueRef block = byte_offset(e, own_address(s), at);
    for (uint32_t w = 0; w < WARPS; w++) {
        LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->warp, imm(e, w), ""));
        for (uint32_t i = 0; i < 8; i++) {
            const uint32_t row = i % 4 / 2 * 8, column = i / 4 * 8 + i % 2;
            LLVMBuildStore(e->b, get(e, e->f32, p[8 * w + i]),
                           byte_offset(e, block, imm(e, (column * ROWS + row) * 4)));
        }
        end_if(e, after);
    }
}

/* Where that has what row r of the result takes of position q. */
static LLVMValueRef own_weight(const struct spread *s, LLVMValueRef r, LLVMValueRef q)
{
    struct emit *e = s->c.e;
    LLVMValueRef row = s->turned ? q : r, column = s->turned ? r : q;
    return byte_offset(e, own_address(s), add(e, mul(e, column, imm(e, ROWS * 4)), mul(e, row, imm(e, 4))));
}

/* A row of P to turn: units of 16 bytes, exclusive-ored with the row. */
enum { TURNED_ROW = 2 * WARPS * ROWS, TURNED_BYTES = WARPS * ROWS * TURNED_ROW };
static LLVMValueRef turned_at(const struct spread *s, LLVMValueRef row, LLVMValueRef unit)
{
    struct emit *e = s->c.e;
    const uint32_t places = plan_own_places(e->p), place = plan_turned(e->p, s->weights) - 1;
    LLVMValueRef moved = LLVMBuildXor(e->b, unit, modulo(e, row, imm(e, 8)), "");
    LLVMValueRef at = add(e, mul(e, row, imm(e, TURNED_ROW)), mul(e, moved, imm(e, 16)));
    return byte_offset(e, spread_scratch(s, plan_spread_tiles(e->p) + places * OWN_BYTES + place * TURNED_BYTES), at);
}

static void put_turned(const struct spread *s)
{
    struct emit *e = s->c.e;
    for (uint32_t w = 0; w < WARPS; w++) {
        LLVMValueRef words[4];
        pack_fragment(e, s->weights, 0, w, words);
        for (uint32_t i = 0; i < 4; i++) {
            LLVMValueRef row = add(e, add(e, s->c.row, e->quad_row), imm(e, i % 2 * 8));
            LLVMValueRef to = turned_at(s, row, imm(e, 2 * w + i / 2));
            LLVMBuildStore(e->b, words[i], byte_offset(e, to, mul(e, e->quad_column, imm(e, 4))));
        }
    }
}

void fetch_weights(const struct spread *s, uint32_t w, LLVMValueRef out[4])
{
    struct emit *e = s->c.e;
    if (!s->turned) {
        pack_fragment(e, s->weights, 0, w, out);
        return;
    }
    LLVMValueRef matrix = divide(e, e->lane, imm(e, 8));
    LLVMValueRef row = add(e, modulo(e, e->lane, imm(e, 8)), mul(e, divide(e, matrix, imm(e, 2)), imm(e, 8)));
    LLVMValueRef unit = add(e, mul(e, e->warp, imm(e, 2)), modulo(e, matrix, imm(e, 2)));
    fetch_matrices(e, turned_at(s, add(e, row, imm(e, ROWS * w)), unit), true, out);
}

void fetch_own(const struct spread *s, uint32_t k, LLVMValueRef out[4])
{
    struct emit *e = s->c.e;
    for (uint32_t i = 0; i < 4; i++) {
        LLVMValueRef row = add(e, e->quad_row, imm(e, i % 2 * 8)),
                     q = add(e, e->quad_column, imm(e, 8 * k + i / 2 * 4));
        LLVMValueRef x = LLVMBuildLoad2(e->b, e->f32, own_weight(s, row, q), "");
        LLVMValueRef reaches = s->by_query ? less(e, q, row) : less(e, row, q);
        out[i] = as(e, choose(e, reaches, x, real(e, 0)), e->i32);
    }
}

void load_weights(const struct spread *s, uint32_t row, uint32_t rows, uint32_t q, LLVMValueRef *out)
{
    struct emit *e = s->c.e;
    const uint32_t together = rows < 4 || s->turned ? 1 : 4;
    for (uint32_t r = 0; r < rows; r += together) {
        LLVMValueRef from = own_weight(s, imm(e, row + r), imm(e, q));
        LLVMValueRef x = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, together), from, "");
        LLVMSetAlignment(x, 4 * together);
        for (uint32_t i = 0; i < together; i++)
            out[r + i] = LLVMBuildExtractElement(e->b, x, imm(e, i), "");
    }
}

void put_weights(const struct spread *s)
{
    const struct plan *p = s->c.e->p;
    const bool turns = plan_turned(p, s->weights) > 0;
    for (const struct op *before = p->ops; turns && before < s->op; before++)
        if (plan_is_spread(p, before) && plan_spread_weights(p, before) == s->weights)
            return;
    put_own(s);
    if (turns)
        put_turned(s);
}
