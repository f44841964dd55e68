/* lower/walk_output.c - maps of the accumulators' elements in a kernel on warpgroups, and where tiles go: rounded to shared memory,
 * and from there to memory. */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "lower/walk.h"

#include <stdlib.h>
#include <string.h>

enum { SPAN_BYTES = WALK_TILE * WALK_SPAN_BYTES };

/* The loaded matrix among what a map of the owner's tiles reads; -1: none. */
static int owned_matrix(const struct plan *p, const struct op *op)
{
    tg_operand reads[TG_MAX_READS];
    for (uint32_t i = 0, n = tg_stmt_reads(&p->algorithm->body[op->stmt], reads); i < n; i++) {
        const int v = plan_find(p, reads[i], p->values[op->v].nest);
        if (plan_is_loaded(&p->values[v]))
            return v;
    }
    return -1;
}

static void keep_exponentials(struct emit *e, struct walk *w, const struct op *op, struct expression *x)
{
    if (!op->n)
        return;
    x->kept = w->kept;
    x->kept_at = plan_exponential(x->stmt);
    x->keeps = op->n == EXPONENTIALS_KEPT;
    for (uint32_t r = 0; x->keeps && r < walk_registers(e->p, x->out); r++)
        w->kept[r] = local(e, e->f32, "exponential");
}

/* What the map of a tile of positions ends with. */
static uint8_t last_code(const struct plan *p, const struct value *v)
{
    const tg_stmt *s = &p->algorithm->body[v->stmt];
    return s->op == TG_STMT_MAP ? s->expr[tg_expr_length(s) - 1].op : TG_X_END;
}

/* Of several heads' tiles: is nothing but their 16 bits in shared memory read of what the map makes? Then zeros are put there alone, two
 * by two, by masks that all heads have. */
static bool is_masked_when_put(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    uint8_t reads[PLAN_MAX_OP_READS];
    bool is = (p->heads > 1 || p->rounds_state) && plan_is_made_tile(v) && !v->summed &&
              (last_code(p, v) == TG_X_CAUSAL || last_code(p, v) == TG_X_BEFORE);
    for (uint32_t i = 0; is && i < p->n_ops; i++)
        for (uint32_t k = 0, n = plan_op_reads(p, &p->ops[i], reads); k < n; k++)
            is &= reads[k] != op->v || p->ops[i].kind == OP_PUT || p->ops[i].kind == OP_CONTRACT;
    return is;
}

/* What the sum among what the map reads is multiplied by, for each of the lane's positions; does it read it? */
static bool load_multipliers(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef by[WALK_TILE / 4])
{
    uint8_t reads[PLAN_MAX_OP_READS];
    const struct plan *p = e->p;
    if (!p->decayed || p->ways.scales || !memchr(reads, p->ways.sum, plan_op_reads(p, op, reads)))
        return false;
    for (uint32_t c = 0; c < WALK_TILE / 4; c++)
        by[c] = walk_multiplier(e, w, tile_column(e, c));
    return true;
}

/* `factored`: the map's difference of positions is a product of factors, and where. */
static void map_elements(struct emit *e, struct walk *w, const struct op *op, int factored)
{
    const struct value *out = &e->p->values[op->v];
    const bool owned = plan_is_owned(e->p, out);
    const int matrix = owned ? owned_matrix(e->p, op) : -1;
    const bool is_decayed = e->p->decayed && op->v == e->p->ways.tile;
    LLVMValueRef words[16], multipliers[WALK_TILE / 4];
    tg_stmt product;
    if (is_decayed)
        plan_product_of_map(&e->p->algorithm->body[op->stmt], &product);
    if (matrix >= 0 && op->flags & OP_AHEAD)
        memcpy(words, w->words[plan_first_of(e->p, (uint32_t)matrix)], sizeof words);
    else if (matrix >= 0)
        load_all_owned(e, w, (uint32_t)matrix,
                       words); /* even `left`: kept, it would take 16 registers beside the state's product */
    struct expression *x = expression_begin(e, op->stmt, out, !is_masked_when_put(e->p, op));
    if (x) {
        x->factored = factored;
        x->multipliers = load_multipliers(e, w, op, multipliers) ? multipliers : NULL;
        x->stmt = is_decayed ? &product : x->stmt;
        keep_exponentials(e, w, op, x);
    }
    for (uint32_t r = 0; x && r < walk_registers(e->p, out); r++) {
        const uint32_t half = r / 2 % 2, column_class = r / 4 * 2 + r % 2;
        LLVMValueRef column = tile_column(e, column_class), row = owned ? owner_row(e, w, half) : tile_row(e, half);
        struct element_at at = {
            .row_class = half, .column_class = column_class, .row = row, .column = column, .self_index = r};
        if (owned) {
            at = (struct element_at){
                .row_class = column_class, .column_class = half, .row = column, .column = row, .self_index = r};
            at.self = matrix >= 0 ? owned_element(e, words, r) : NULL;
        } else {
            LLVMValueRef first = plan_is_across(e->p, out) ? across_column(e, w) : positions_before(e, w, WALK_TILE);
            at.column = add(e, column, first);
            at.row_base = tile_row(e, 0);
            at.column_base = add(e, tile_column(e, 0), first);
            at.row_offset = 8 * (int32_t)half;
            at.column_offset = (int32_t)(column_class / 2 * 8 + column_class % 2);
        }
        set(e, slots(e, w, op->v)[r], expression_element(e, x, &at));
    }
    free(x);
}

void walk_map(struct emit *e, struct walk *w, const struct op *op)
{
    struct plan_weight weight;
    if (plan_find_weight(e->p, op->v, &weight))
        return;
    if (op->flags & OP_CAREFUL)
        across_look(e, w, op);
    const int difference = w->factored && !plan_is_owned(e->p, &e->p->values[op->v])
                               ? plan_difference(e->p, &e->p->algorithm->body[op->stmt])
                               : -1;
    if (difference < 0) {
        map_elements(e, w, op, 0);
        return;
    }
    LLVMBasicBlockRef by_factors = LLVMAppendBasicBlockInContext(e->context, e->function, "factors"),
                      by_differences = LLVMAppendBasicBlockInContext(e->context, e->function, "differences"),
                      after = LLVMAppendBasicBlockInContext(e->context, e->function, "mapped");
    LLVMBuildCondBr(e->b, w->factored, by_factors, by_differences);
    LLVMPositionBuilderAtEnd(e->b, by_factors);
    map_elements(e, w, op, difference);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, by_differences);
    map_elements(e, w, op, 0);
    LLVMBuildBr(e->b, after);
    LLVMPositionBuilderAtEnd(e->b, after);
}

/* Of two elements side by side those that are there: a word's mask. The second one is there with the first alone, or the other way. */
static LLVMValueRef mask_of(struct emit *e, LLVMValueRef first, LLVMValueRef second, bool first_alone)
{
    LLVMValueRef one = first_alone ? choose(e, first, imm(e, 0xffff), imm(e, 0))
                                   : choose(e, second, imm(e, (int32_t)0xffff0000), imm(e, 0));
    return choose(e, first_alone ? second : first, imm(e, -1), one);
}

/* Zeros above the diagonal, and where queries are columns, behind the chunk's end: gates count as zero there, and 2^(b_i - b_j) may be
 * infinite. `eight`: the words' first 8 columns. */
static void mask_words(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef words[4], uint32_t eight)
{
    const struct value *v = &e->p->values[op->v];
    const bool row_is_query = v->dims[0] == TG_LQ;
    const int32_t strict = last_code(e->p, v) == TG_X_BEFORE;
    LLVMValueRef first = add(e, tile_column(e, 0), positions_before(e, w, WALK_TILE)),
                 behind = sub(e, tile_row(e, 0), first), rest = sub(e, e->at.length, first);
    for (uint32_t i = 0; i < 4; i++) {
        const int32_t column = 8 * (int32_t)(eight + i / 2), ahead = column - 8 * (int32_t)(i % 2);
        LLVMValueRef keep[2], there[2];
        for (int32_t k = 0; k < 2; k++) {
            keep[k] = row_is_query ? less(e, imm(e, ahead + k + strict - 1), behind)
                                   : less(e, behind, imm(e, ahead + k - strict + 1));
            there[k] = less(e, imm(e, column + k), rest);
        }
        words[i] = LLVMBuildAnd(e->b, words[i], mask_of(e, keep[0], keep[1], row_is_query), "");
        if (!row_is_query)
            words[i] = LLVMBuildAnd(e->b, words[i], mask_of(e, there[0], there[1], true), "");
    }
}

LLVMValueRef lane_row(struct emit *e, LLVMValueRef matrix)
{
    LLVMValueRef in_matrix = modulo(e, e->lane, imm(e, 8));
    return add(e, add(e, mul(e, e->warp, imm(e, 16)), mul(e, modulo(e, matrix, imm(e, 2)), imm(e, 8))), in_matrix);
}

/* The group's columns of a tile of positions, rounded, to shared memory. */
static void put_tile(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[WALK_TILE], base = matrix_address(e, w, op->v);
    const uint32_t n = walk_registers(e->p, &e->p->values[op->v]);
    const bool is_masked = is_masked_when_put(e->p, op);
    LLVMValueRef *const from = e->p->values[op->v].summed ? sum_slots(e, op->v) : slots(e, w, op->v);
    for (uint32_t r = 0; r < n; r++)
        x[r] = get(e, e->f32, from[r]);
    LLVMValueRef matrix = divide(e, e->lane, imm(e, 8)), row = lane_row(e, matrix);
    LLVMValueRef unit = add(e, positions_before(e, w, WALK_TILE / 8), divide(e, matrix, imm(e, 2)));
    LLVMValueRef first = add(e, base, unit_offset(e, row, unit));
    for (uint32_t u = 0; u < n / 4;
         u += 2) { /* bits of the unit's number that are 0 in the first: one address serves all */
        LLVMValueRef words[4];
        for (uint32_t i = 0; i < 4; i++)
            words[i] = pack(e, x[4 * u + 2 * i], x[4 * u + 2 * i + 1]);
        if (is_masked)
            mask_words(e, w, op, words, u);
        store_matrices(e, LLVMBuildXor(e->b, first, imm(e, 16 * u), ""), words, false);
    }
}

/* Of a sum that a cluster exchanges a thread block has half of the positions, from this one on; NULL: all of them. */
static LLVMValueRef first_row(struct emit *e, const struct op *op)
{
    return plan_is_exchanged(e->p, op->tile) ? cluster_first_position(e) : NULL;
}

static uint32_t rows_of(const struct emit *e, const struct op *op)
{
    return plan_is_exchanged(e->p, op->tile) ? WALK_TILE / 2 : WALK_TILE;
}

/* The tile, rounded, over the group's part of a's place; of a cluster's sum the half of the positions that is this thread
 * block's. Each warp writes where it has read. */
static void put_output(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[WALK_TILE / 2];
    take(e, w, op->v, x);
    const uint32_t rows = rows_of(e, op);
    LLVMValueRef to = owned_address(e, w, op->a), first = first_row(e, op);
    if (first)
        to = add(e, to, mul(e, first, imm(e, WALK_SPAN_BYTES)));
    for (uint32_t u = 0; u < rows / 8; u += 2) {
        LLVMValueRef words[4];
        for (uint32_t i = 0; i < 4; i++)
            words[i] = pack(e, x[4 * u + 2 * i], x[4 * u + 2 * i + 1]);
        store_matrices(e, add(e, to, imm(e, u * 8 * WALK_SPAN_BYTES)), words, true);
    }
}

void walk_put(struct emit *e, struct walk *w, const struct op *op)
{
    if (op->v == e->p->state) {
        across_put_state(e, w);
        return;
    }
    if (plan_is_across(e->p, &e->p->values[op->v])) {
        across_put(e, w, op);
        return;
    }
    if (plan_is_made_tile(&e->p->values[op->v])) {
        put_tile(e, w, op);
        return;
    }
    w->place[op->v] = add(e, matrix_address(e, w, op->a), mul(e, owner_span(e, w), imm(e, SPAN_BYTES)));
    LLVMBasicBlockRef once = begin_one_of_rows(e, w);
    put_output(e, w, op);
    end_one_of_rows(e, once);
}

/* ---- to memory ---- */

/* What the reader adds up, or sums over heads, is fp32: from registers, where eight lanes have neighbours. It is in the
 * workspace, whose strides are known: every address is one register and a constant. LLVM must not see that columns
 * are the same in every chunk: each would take a register through all of them. */
static void store_floats(struct emit *e, const struct walk *w, const struct op *op, const LLVMValueRef x[WALK_TILE / 2])
{
    const struct value *v = &e->p->values[op->v];
    const uint32_t row = e->p->parts[op->tile] * plan_dim_size(e->p, e->p->owner);
    LLVMValueRef column = tile_column(e, 0),
                 first = tensor_address(e, v->operand, op->tile, &e->at, v->dims, column, owner_row(e, w, 0));
    first = byte_offset(e, first, part_offset(e, op->tile));
    for (uint32_t c = 0; c < WALK_TILE / 4; c++) {
        const uint32_t position = c / 2 * 8 + c % 2;
        LLVMBasicBlockRef after = begin_if(e, less(e, add(e, column, imm(e, position)), e->at.length));
        for (uint32_t i = 0; i < 2; i++) {
            LLVMBasicBlockRef there = begin_inside(e, e->p->owner, owner_eight(e, w, i));
            LLVMValueRef to = byte_offset(e, first, imm64(e, 4 * (position * row + 8 * i)));
            LLVMSetAlignment(LLVMBuildStore(e->b, x[c / 2 * 4 + 2 * i + c % 2], to), 4);
            end_inside(e, there);
        }
        end_if(e, after);
    }
    sync_warp(e); /* lanes may have parted, and what follows is for warps */
}

void walk_store_tile(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef from)
{
    LLVMValueRef at[5], span = add(e, divide(e, e->at.start[e->p->owner], imm(e, WALK_TILE)), head_span(e, w));
    map_place(e, op->tile, w->batch, w->head, span, at);
    LLVMValueRef first = first_row(e, op);
    if (first) {
        at[1] = add(e, at[1], first);
        from = add(e, from, mul(e, first, imm(e, WALK_SPAN_BYTES)));
    }
    if (e->p->in_turn && plan_is_added_up(e->p, op->tile))
        turn_store(e, w, map_argument(e, op->tile), from, at);
    else
        map_store(e, map_argument(e, op->tile), from, at);
}

/* From where it has been put, by one thread; row by row where the chunk is not whole. */
static void store_rows_of_group(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[WALK_TILE / 2];
    if (plan_memory_dtype(e->p, op->tile) == TG_F32) {
        take(e, w, op->v, x);
        store_floats(e, w, op, x);
        return;
    }
    LLVMValueRef first = e->p->shape.packed ? first_row(e, op) : NULL,
                 one = LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), "");
    if (e->p->shape.packed)
        walk_store_rows(e, op, head_span(e, w),
                        byte_offset(e, slot_address(e, &e->p->values[op->a], matrix_slot(e, w, op->a)),
                                    mul(e, owner_span(e, w), imm(e, SPAN_BYTES))),
                        first ? first : imm(e, 0), rows_of(e, op));
    LLVMBasicBlockRef after = begin_if(e, both(e, one, e->p->shape.packed ? is_whole(e) : NULL));
    walk_store_tile(e, w, op, w->place[op->v]);
    map_store_commit(e);
    end_if(e, after);
    sync_warp(e);
}

void walk_store(struct emit *e, struct walk *w, const struct op *op)
{
    if (plan_is_across(e->p, &e->p->values[op->v])) {
        across_store(e, w, op);
        return;
    }
    LLVMBasicBlockRef once = begin_one_of_rows(e, w);
    store_rows_of_group(e, w, op);
    end_one_of_rows(e, once);
}
