/* lower/walk_sums.c - sums of products in a kernel on warpgroups, which go to memory: one for each position, or one for the
 * chunk. What is summed lies in registers of all warps: each puts its part into shared memory, and behind a barrier
 * that the chunk has anyway one warpgroup adds the parts in order. Two buffers, in turn, or three.
 *
 *   rows      of tiles of positions (E's rows and columns), or of loaded matrices: the barrier of the same chunk
 *   positions made from sums of rows, and needed by all warps: each of them adds the parts
 *   state     a sum for each of its rows goes to memory at once: a row is in one warp
 *   columns   of accumulators of the owner's rows (q.dq), and the whole state: the barrier of the next chunk. The latter's are
 *             put before that of their own, so that they have a third buffer */
#include "compiler/plan_walk.h"
#include "lower/walk.h"

#include <stdlib.h>
#include <string.h>

/* Part `part` of the buffer of this chunk, or of the one before. */
static LLVMValueRef part_address(struct emit *e, const struct walk *w, const struct value *v, LLVMValueRef part)
{
    LLVMValueRef buffer = plan_part_buffers(e->p, v) == 3 ? w->third : w->buffer;
    const uint32_t bytes = v->stage_bytes / plan_sum_parts(e->p, v);
    LLVMValueRef slot = v->by_head ? add(e, mul(e, buffer, imm(e, e->p->heads)), e->at.start[TG_MEMBER]) : buffer;
    return byte_offset(e, slot_address(e, v, slot), mul(e, part, imm(e, bytes)));
}

/* Of a sum over tiles: what is in registers from one to the next. */
static LLVMValueRef *sum_so_far(struct emit *e, const struct walk *w, uint32_t v)
{
    return e->registers[v] + 2 * w->column_head;
}

LLVMValueRef warp_of_all(struct emit *e, const struct walk *w)
{
    return add(e, mul(e, w->group, imm(e, 4)), e->warp);
}

/* ---- rows ---- */

static bool is_of_loaded(const struct plan *p, const struct op *op)
{
    return plan_is_loaded(&p->values[op->a]);
}

/* Elements of a row of a loaded matrix, those of 16-byte unit number lane_unit + unit, where the bits of one are 0 in the
 * other: one address serves all. */
static void load_unit(struct emit *e, const struct walk *w, uint32_t v, LLVMValueRef row, LLVMValueRef lane_unit,
                      uint32_t unit, LLVMValueRef x[8])
{
    LLVMTypeRef words = LLVMVectorType(e->i32, 4);
    LLVMValueRef offset = LLVMBuildXor(e->b, unit_offset(e, row, lane_unit), imm(e, unit % 8 * 16), "");
    offset = add(e, offset, imm(e, unit / 8 * WALK_TILE * WALK_SPAN_BYTES));
    LLVMValueRef y = LLVMBuildLoad2(e->b, words, byte_offset(e, matrix_pointer(e, w, v), offset), "");
    LLVMSetAlignment(y, 16);
    for (uint32_t i = 0; i < 8; i++)
        x[i] = unpack(e, LLVMBuildExtractElement(e->b, y, imm(e, i / 2), ""), i % 2);
}

/* The same elements of a vector along the rows. */
static void load_along(struct emit *e, uint32_t v, LLVMValueRef lane_unit, uint32_t unit, LLVMValueRef x[8])
{
    LLVMValueRef from = byte_offset(e, slot_address(e, &e->p->values[v], e->slot[v]), mul(e, lane_unit, imm(e, 32)));
    for (uint32_t i = 0; i < 8; i++)
        x[i] = LLVMBuildLoad2(e->b, e->f32, byte_offset(e, from, imm(e, 32 * unit + 4 * i)), "");
}

/* This lane's parts of its two rows of one loaded matrix times another, or times a vector along them. */
static void matrix_rows(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef sum[2])
{
    const struct value *a = &e->p->values[op->a], *b = &e->p->values[op->b];
    const uint32_t lanes = 4 * e->p->groups; /* of a row */
    LLVMValueRef lane_unit = add(e, mul(e, w->group, imm(e, 4)), e->quad_column), x[8], y[8];
    sum[0] = sum[1] = real(e, 0);
    for (uint32_t unit = 0; unit < a->extent[1] / 8; unit += lanes) {
        if (b->n_dims == 1)
            load_along(e, op->b, lane_unit, unit, y);
        for (uint32_t half = 0; half < 2; half++) {
            load_unit(e, w, op->a, tile_row(e, half), lane_unit, unit, x);
            if (b->n_dims == 2)
                load_unit(e, w, op->b, tile_row(e, half), lane_unit, unit, y);
            for (uint32_t i = 0; i < 8; i++)
                sum[half] = fma_of(e, x[i], y[i], sum[half]);
        }
    }
}

static LLVMValueRef tile_row_sum(struct emit *e, const struct op *op, uint32_t half)
{
    LLVMValueRef sum = real(e, 0);
    for (uint32_t r = 0; r < walk_registers(e->p, &e->p->values[op->a]); r++) {
        if (r / 2 % 2 != half)
            continue;
        LLVMValueRef x = get(e, e->f32, e->registers[op->a][r]);
        sum = e->p->algorithm->body[op->stmt].b ? fma_of(e, x, get(e, e->f32, e->registers[op->b][r]), sum)
                                                : LLVMBuildFAdd(e->b, sum, x, "");
    }
    return sum;
}

/* Elements of the diagonal are in the lanes whose two columns of each eight are their row's pair, one for each of the two rows; of a row whose
 * diagonal is among the other group's columns the part is 0. */
static LLVMValueRef diagonal_element(struct emit *e, const struct walk *w, const struct op *op, uint32_t half)
{
    const uint32_t n = walk_registers(e->p, &e->p->values[op->a]);
    LLVMValueRef x = real(e, 0), eight = add(e, mul(e, e->warp, imm(e, 2)), imm(e, half)),
                 first = positions_before(e, w, WALK_TILE / 8),
                 odd = LLVMBuildICmp(e->b, LLVMIntNE, modulo(e, e->quad_row, imm(e, 2)), imm(e, 0), "");
    for (uint32_t r = 2 * half; r < n; r += 4) {
        LLVMValueRef *const pair = &e->registers[op->a][r],
                            here = LLVMBuildICmp(e->b, LLVMIntEQ, eight, add(e, first, imm(e, r / 4)), ""),
                            element = choose(e, odd, get(e, e->f32, pair[1]), get(e, e->f32, pair[0]));
        x = choose(e, here, element, x);
    }
    return x;
}

static void walk_diagonal(struct emit *e, struct walk *w, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    LLVMValueRef mine = LLVMBuildICmp(e->b, LLVMIntEQ, divide(e, e->quad_row, imm(e, 2)), e->quad_column, ""), x[2];
    for (uint32_t half = 0; half < 2; half++)
        x[half] = diagonal_element(e, w, op, half);
    LLVMBasicBlockRef after = begin_if(e, mine);
    for (uint32_t half = 0; half < 2; half++) {
        LLVMValueRef row = tile_row(e, half);
        x[half] = e->p->decayed ? LLVMBuildFMul(e->b, x[half], walk_multiplier(e, w, row), "") : x[half];
        LLVMBuildStore(e->b, x[half], byte_offset(e, part_address(e, w, v, w->group), mul(e, row, imm(e, 4))));
    }
    end_if(e, after);
    sync_warp(e);
}

void walk_row_sums(struct emit *e, struct walk *w, const struct op *op)
{
    if (plan_is_diagonal(e->p, op)) {
        walk_diagonal(e, w, op);
        return;
    }
    const struct value *v = &e->p->values[op->v];
    LLVMValueRef sums[2];
    if (is_of_loaded(e->p, op))
        matrix_rows(e, w, op, sums);
    for (uint32_t half = 0; half < 2; half++) {
        LLVMValueRef row = tile_row(e, half), sum = is_of_loaded(e->p, op) ? sums[half] : tile_row_sum(e, op, half);
        for (uint32_t by = 1; by < 4; by *= 2)
            sum = LLVMBuildFAdd(e->b, sum, shuffle_xor(e, sum, by), "");
        LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->quad_column, imm(e, 0), ""));
        LLVMBuildStore(e->b, sum, byte_offset(e, part_address(e, w, v, w->group), mul(e, row, imm(e, 4))));
        end_if(e, after);
    }
    sync_warp(e);
}

/* ---- positions ---- */

static LLVMValueRef load_part(struct emit *e, const struct walk *w, const struct value *v, uint32_t part,
                              LLVMValueRef index)
{
    return LLVMBuildLoad2(e->b, e->f32, byte_offset(e, part_address(e, w, v, imm(e, part)), mul(e, index, imm(e, 4))),
                          "");
}

/* Of n parts from `first` on: in pairs, which rounds less than one after the other. */
static LLVMValueRef sum_of_pairs(struct emit *e, const struct walk *w, const struct value *v, uint32_t first,
                                 uint32_t n, LLVMValueRef index)
{
    if (n == 1)
        return load_part(e, w, v, first, index);
    LLVMValueRef lower = sum_of_pairs(e, w, v, first, n / 2, index);
    return LLVMBuildFAdd(e->b, lower, sum_of_pairs(e, w, v, first + n / 2, n - n / 2, index), "");
}

static LLVMValueRef sum_of_parts(struct emit *e, const struct walk *w, const struct value *v, LLVMValueRef index)
{
    return sum_of_pairs(e, w, v, 0, plan_sum_parts(e->p, v), index);
}

void walk_positions_vector(struct emit *e, struct walk *w, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *out = &p->values[op->v];
    tg_operand reads[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(&p->algorithm->body[op->stmt], reads);
    struct expression *x = expression_begin(e, op->stmt, out, true);
    for (uint32_t i = 0; x && i < 2; i++) {
        LLVMValueRef index = add(e, mul(e, e->lane, imm(e, 2)), imm(e, i));
        for (uint32_t k = 0; k < n; k++) {
            const int a = plan_find(p, reads[k], out->nest);
            if (p->values[a].space == SPACE_PARTS)
                set(e, e->registers[a][2 * i], sum_of_parts(e, w, &p->values[a], index));
        }
        LLVMValueRef y =
            expression_element(e, x, &(struct element_at){.row_class = i, .row = index, .column = imm(e, 0)});
        set(e, e->registers[op->v][2 * i], y);
        LLVMBuildStore(e->b, y, byte_offset(e, slot_address(e, out, e->slot[op->v]), mul(e, index, imm(e, 4))));
    }
    free(x);
    sync_warp(e);
}

/* ---- columns ---- */

/* x[n], of a lane's columns -> x[n / 8]: the sums over the 8 lanes that have the same columns, of some of them. Lanes hand each
 * other half of what they have, three times. */
static void scatter_sums(struct emit *e, LLVMValueRef *x, uint32_t n)
{
    for (uint32_t by = 16; by >= 4; by /= 2) {
        LLVMValueRef upper = LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, e->lane, imm(e, by), ""), imm(e, 0), "");
        n /= 2;
        for (uint32_t i = 0; i < n; i++) {
            LLVMValueRef keep = choose(e, upper, x[i + n], x[i]), give = choose(e, upper, x[i], x[i + n]);
            x[i] = LLVMBuildFAdd(e->b, keep, shuffle_xor(e, give, by), "");
        }
    }
}

/* This lane's parts of its columns, from column `first` on every so many. */
static void column_parts(struct emit *e, struct walk *w, const struct op *op, uint32_t first, uint32_t step,
                         LLVMValueRef *x)
{
    const struct plan *p = e->p;
    const uint32_t matrix = plan_is_loaded(&p->values[op->a]) ? op->a : op->b, other = matrix == op->a ? op->b : op->a;
    struct plan_weight weight;
    const uint32_t tile = plan_find_weight(p, other, &weight) ? weight.of : other;
    LLVMValueRef words[16];
    /* Accumulators that grow from head to head: ptxas takes sums of them that look alike for the same (bench/NOTES.md). */
    LLVMValueRef zero = p->decayed ? as(e, walk_zero(e, w), e->f32) : real(e, 0);
    if (op->flags & OP_AHEAD)
        memcpy(words, w->words[plan_first_of(p, matrix)], sizeof words);
    for (uint32_t i = 0; i < 16 / step; i++) {
        const uint32_t c = i * step + first;
        if (c % 4 == first && !(op->flags & OP_AHEAD)) /* the elements of 16 positions: few registers at a time */
            load_owned(e, w, matrix, c / 4, words);
        x[i] = zero;
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t r = c / 2 * 4 + half * 2 + c % 2;
            x[i] = fma_of(e, owned_element(e, words, r), get(e, e->f32, e->registers[tile][r]), x[i]);
        }
    }
}

/* Of sum i of this lane. */
static LLVMValueRef sum_column(struct emit *e, uint32_t i)
{
    return add(e, add(e, mul(e, e->quad_row, imm(e, 8)), mul(e, e->quad_column, imm(e, 2))), imm(e, i));
}

/* Adds this tile's part to the registers of the sum; the last tile hands them over. */
static void leave_columns(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef x[2])
{
    const struct plan *p = e->p;
    const struct value *v = &p->values[op->v];
    struct plan_weight weight;
    LLVMBasicBlockRef once = begin_one_of_rows(e, w);
    const bool weighted = plan_find_weight(p, plan_is_loaded(&p->values[op->a]) ? op->b : op->a, &weight);
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef so_far = x[i];
        if (e->p->decayed && w->column_head)
            x[i] = LLVMBuildFSub(e->b, x[i], w->so_far[i], "");
        w->so_far[i] = so_far;
        if (weighted)
            x[i] = LLVMBuildFMul(e->b, x[i], walk_weight(e, &weight, sum_column(e, i)), "");
        LLVMValueRef slot = sum_so_far(e, w, op->v)[i],
                     sum = w->tile ? LLVMBuildFAdd(e->b, x[i], get(e, e->f32, slot), "") : x[i];
        set(e, slot, sum);
        if (w->tile + 1 < p->tiles)
            continue;
        LLVMBuildStore(e->b, sum,
                       byte_offset(e, part_address(e, w, v, warp_of_all(e, w)), mul(e, sum_column(e, i), imm(e, 4))));
    }
    end_one_of_rows(e, once);
}

void walk_end_columns(struct emit *e, struct walk *w)
{
    const struct op *op = w->summed;
    const uint32_t here = w->column_head;
    if (!op)
        return;
    w->summed = NULL;
    if (here)
        walk_enter_head(e, w, here - 1);
    scatter_sums(e, w->columns, 16);
    leave_columns(e, w, op, w->columns);
    if (here)
        walk_enter_head(e, w, here);
}

/* Lanes add theirs up while the next head's product by the state runs; the last head's in two parts, for registers are short. */
void walk_column_sums(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[16];
    if (e->p->sums_heads && w->column_head + 1 < e->p->heads && !w->summed) {
        column_parts(e, w, op, 0, 1, w->columns);
        w->summed = op;
        return;
    }
    const uint32_t parts = e->p->sums_heads ? 2 : 1;
    LLVMValueRef sums[2];
    for (uint32_t part = 0; part < parts; part++) {
        column_parts(e, w, op, part, parts, x);
        scatter_sums(e, x, 16 / parts);
        for (uint32_t i = 0; i < 2 / parts; i++)
            sums[part + i] = x[i];
    }
    leave_columns(e, w, op, sums);
}

/* ---- the state ---- */

/* The warp's parts of a sum of the whole state, of each head's, of which this lane has one. */
static void hand_over(struct emit *e, struct walk *w, const struct value *v, LLVMValueRef *sums, uint32_t n)
{
    for (uint32_t by = 1; by < 32; by *= 2)
        for (uint32_t i = 0; i < n; i++)
            sums[i] = LLVMBuildFAdd(e->b, sums[i], shuffle_xor(e, sums[i], by), "");
    LLVMValueRef to[MOST_HEADS];
    for (uint32_t i = 0; i < n; i++) {
        if (n > 1)
            walk_enter_head(e, w, i);
        to[i] = part_address(e, w, v, warp_of_all(e, w));
    }
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    for (uint32_t i = 0; i < n; i++)
        LLVMBuildStore(e->b, sums[i], to[i]);
    end_if(e, after);
    sync_warp(e);
}

/* This tile's part to a register; the last tile, or head, hands over what there is. */
static void add_to_sum(struct emit *e, struct walk *w, const struct op *op, LLVMValueRef sum)
{
    const uint32_t n = plan_heads_in_columns(e->p);
    LLVMValueRef sums[MOST_HEADS];
    if (w->tile)
        sum = LLVMBuildFAdd(e->b, sum, get(e, e->f32, sum_so_far(e, w, op->v)[0]), "");
    set(e, sum_so_far(e, w, op->v)[0], sum);
    if (w->tile + 1 < e->p->tiles || w->column_head + 1 < n)
        return;
    for (uint32_t i = 0; i < n; i++)
        sums[i] = get(e, e->f32, e->registers[op->v][2 * i]);
    hand_over(e, w, &e->p->values[op->v], sums, n);
}

/* <what the chunk adds to the other state, state>. */
void walk_state_sum(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef rows[2];
    dot_with_state(e, w, op, rows);
    add_to_sum(e, w, op, LLVMBuildFAdd(e->b, rows[0], rows[1], ""));
}

/* <a loaded matrix, a tile of accumulators>: all of it. */
void walk_tile_sum(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef x[16];
    column_parts(e, w, op, 0, 1, x);
    for (uint32_t n = 8; n > 0; n /= 2)
        for (uint32_t i = 0; i < n; i++)
            x[i] = LLVMBuildFAdd(e->b, x[i], x[i + n], "");
    if (e->p->shares_columns) /* the other group has the same tile */
        x[0] = choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, w->group, imm(e, 0), ""), x[0], real(e, 0));
    add_to_sum(e, w, op, x[0]);
}

/* The same for each row of the state: four lanes have it, and the first of them stores the sum. */
void walk_state_rows(struct emit *e, struct walk *w, const struct op *op)
{
    LLVMValueRef rows[2];
    dot_with_state(e, w, op, rows);
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t by = 1; by < 4; by *= 2)
            rows[half] = LLVMBuildFAdd(e->b, rows[half], shuffle_xor(e, rows[half], by), "");
        set(e, e->registers[op->v][half], rows[half]);
    }
}

void walk_store_state_rows(struct emit *e, struct walk *w, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    LLVMValueRef first = LLVMBuildICmp(e->b, LLVMIntEQ, e->quad_column, imm(e, 0), "");
    LLVMBasicBlockRef after = begin_if(e, both(e, first, both(e, present(e, op->tile), is_first(e, op->tile))));
    for (uint32_t half = 0; half < 2; half++) {
        const struct element_place at = {.dims = {v->dims[0]}, .index = {owner_row(e, w, half)}};
        LLVMBasicBlockRef outside = begin_inside(e, v->dims[0], owner_eight(e, w, half));
        store_element(e, op, &e->registers[op->v][half], &at);
        end_inside(e, outside);
    }
    end_if(e, after);
    sync_warp(e); /* lanes may have parted, and what follows is for warps */
}

/* ---- to memory ---- */

static LLVMValueRef made_position(struct emit *e, uint32_t v)
{
    return LLVMBuildLoad2(e->b, e->f32,
                          byte_offset(e, slot_address(e, &e->p->values[v], e->slot[v]), mul(e, e->tid, imm(e, 4))), "");
}

/* Behind the barrier: some threads add the parts of the buffer, one a position. */
static void store_sum(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef whose)
{
    const struct value *v = &e->p->values[op->v];
    LLVMValueRef valid = v->n_dims ? inside(e, &e->at, v->dims[0], v->extent[0], e->tid) : NULL;
    LLVMValueRef mine = less(e, e->tid, imm(e, v->n_dims ? v->extent[0] : 1));
    LLVMBasicBlockRef after = begin_if(e, both(e, both(e, whose, mine), valid));
    LLVMValueRef slot = local(e, e->f32, "sum"), there = both(e, present(e, op->tile), is_first(e, op->tile));
    set(e, slot, plan_is_of_warp(v) ? made_position(e, op->v) : sum_of_parts(e, w, v, e->tid));
    LLVMBasicBlockRef writes = there ? begin_if(e, there) : NULL;
    struct element_place at = {0};
    if (v->n_dims) {
        at.dims[0] = v->dims[0];
        at.index[0] = e->tid;
    }
    store_element(e, op, &slot, &at);
    if (writes)
        end_if(e, writes);
    end_if(e, after);
    sync_warp(e);
}

/* The first group; of several heads all groups, each 64 threads one after the other. */
void walk_store_sum(struct emit *e, struct walk *w, const struct op *op)
{
    const struct place outside = e->at;
    const uint32_t at_once = 128 / WALK_TILE * e->p->groups;
    LLVMValueRef tid = e->tid, thread = add(e, mul(e, w->group, imm(e, 128)), tid);
    if (!e->p->values[op->v].by_head) {
        store_sum(e, w, op, LLVMBuildICmp(e->b, LLVMIntEQ, w->group, imm(e, 0), ""));
        return;
    }
    e->tid = modulo(e, thread, imm(e, WALK_TILE));
    for (uint32_t first = 0; first < e->p->heads; first += at_once) {
        e->at.start[TG_MEMBER] = add(e, divide(e, thread, imm(e, WALK_TILE)), imm(e, first));
        store_sum(e, w, op, less(e, e->at.start[TG_MEMBER], imm(e, e->p->heads)));
    }
    e->at = outside;
    e->tid = tid;
}

/* ---- behind the last chunk ---- */

/* Of such sums there is one, in the first buffer. */
static struct walk in_first_buffer(struct emit *e, const struct walk *w)
{
    struct walk first = *w;
    first.buffer = first.third = imm(e, 0);
    return first;
}

void walk_meet_sum(struct emit *e, const struct walk *w, const struct op *op, LLVMValueRef sum)
{
    struct walk first = in_first_buffer(e, w);
    hand_over(e, &first, &e->p->values[op->v], &sum, 1);
}

void walk_leave_sum(struct emit *e, const struct walk *w, const struct op *op)
{
    const struct walk first = in_first_buffer(e, w);
    store_sum(e, &first, op, LLVMBuildICmp(e->b, LLVMIntEQ, w->group, imm(e, 0), ""));
}
