/* lower/compose_values.c - composes segments whose transitions are blocks of values: state = transition state + what the segment
 * makes of zero (compiler/compose.c).
 *
 * A thread block has 16 columns of the state. Transposed, they are the rows of the accumulators and of the left operand, which
 * all warps read from shared memory, two buffers in turn, split into TF32 parts already: a unit of 16 bytes is what a lane has of
 * the left operand of one product. The transition is the right operand, each of its rows read by the
 * one warp that makes that row of the state, where there are registers enough while the segment before is composed. In fp32
 * (three products of TF32 parts): what one composition rounds the next ones multiply.
 *
 * The first segment has begun with the initial state: what it makes is the state behind it. */
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_walk.h"
#include "lower/matrix.h"

enum {
    COLUMNS = PLAN_COMPOSED,
    PARTS = 2,
    MOST_TILES = PLAN_COMPOSED_TILES,
    EIGHT = 8,
    UNIT = 16, /* bytes */
    PAIR = PLAN_COMPOSED_PAIR,
    SUMS = 4,        /* at once, of all tiles that a warp has, for each waits for the one before */
    MOST_AHEAD = 64, /* registers for the next transition */
    MOST_STATE = 4 * MOST_TILES
};

/* A segment in registers: 4 of the state for each tile, two columns by two rows; and of the transition two for each 8 columns. */
struct segment {
    LLVMValueRef made[MOST_STATE], transition[MOST_AHEAD];
};

_Static_assert(MOST_TILES <= SUMS, "each tile has a sum");

struct composer {
    struct emit *e;
    uint32_t v, tile, transition;     /* the state, value and tensor; its transition */
    uint32_t rows;                    /* of the state: the transition is rows x rows */
    uint32_t tiles;                   /* of 8 rows, of a warp */
    bool ahead;                       /* transitions are read into registers */
    LLVMValueRef count;               /* i32: segments */
    LLVMValueRef first[MOST_TILES];   /* i32: the tile's first row */
    LLVMValueRef arrived[MOST_STATE]; /* the state with which the segment begins */
    struct segment now, next;
};

/* Where tiles do not come out even the last ones of some warps are none. */
static bool is_ragged(const struct composer *c)
{
    return c->rows / EIGHT % c->e->p->row->warps != 0;
}

static LLVMBasicBlockRef begin_tile(const struct composer *c, uint32_t tile)
{
    const bool may_lack = is_ragged(c) && tile + 1 == c->tiles;
    return may_lack ? begin_if(c->e, less(c->e, c->first[tile], imm(c->e, c->rows))) : NULL;
}

static void end_tile(const struct composer *c, LLVMBasicBlockRef after)
{
    if (after)
        end_if(c->e, after);
}

/* 16 columns of a transition are read together, four neighbours a lane: the first two of them count as those of one step of the sum,
 * the other two as those of the next. Which of 8 columns a lane takes to be which is of no account, as long as it is the same on
 * the left. */
static LLVMValueRef four_of_lane(struct emit *e)
{
    return mul(e, e->quad_column, imm(e, 4));
}

static LLVMValueRef two_of_lane(struct emit *e)
{
    return mul(e, e->quad_column, imm(e, 2));
}

/* ---- memory ---- */

typedef void each_element(struct emit *e, tg_dtype dtype, LLVMValueRef slot, LLVMValueRef address);

static void fetch_element(struct emit *e, tg_dtype dtype, LLVMValueRef slot, LLVMValueRef address)
{
    if (dtype == TG_F32)
        set(e, slot, LLVMBuildLoad2(e->b, e->f32, address, ""));
    else
        load_side_by_side(e, false, dtype, address, &slot, 1, 0);
}

static void keep_element(struct emit *e, tg_dtype dtype, LLVMValueRef slot, LLVMValueRef address)
{
    (void)dtype; /* entries of segments are fp32: compiler/compose.c */
    LLVMBuildStore(e->b, get(e, e->f32, slot), address);
}

/* Of a tensor with the axes of the state, at this entry: what this lane has of it. */
static void for_elements(const struct composer *c, uint32_t tensor, const LLVMValueRef *slots, each_element *each)
{
    struct emit *e = c->e;
    const struct value *v = &e->p->values[c->v];
    for (uint32_t half = 0; half < 2; half++) {
        LLVMValueRef column = add(e, e->quad_row, imm(e, EIGHT * half)),
                     valid = inside(e, &e->at, v->dims[1], COLUMNS, column);
        LLVMBasicBlockRef outside = valid ? begin_if(e, valid) : NULL;
        for (uint32_t tile = 0; tile < c->tiles; tile++) {
            LLVMBasicBlockRef after = begin_tile(c, tile);
            for (uint32_t i = 0; i < 2; i++) {
                LLVMValueRef row = add(e, c->first[tile], add(e, two_of_lane(e), imm(e, i)));
                each(e, plan_memory_dtype(e->p, tensor), slots[4 * tile + 2 * half + i],
                     tensor_address(e, v->operand, tensor, &e->at, v->dims, row, column));
            }
            end_tile(c, after);
        }
        if (outside)
            end_if(e, outside);
    }
}

/* From one column of the transition to the next, in elements. A transpose is another walk's, whose first segment is this one's
 * last. */
static LLVMValueRef column_stride(const struct composer *c)
{
    return c->e->p->transposed ? tensor_stride(c->e, c->transition, 3) : imm64(c->e, 1);
}

/* Where this lane's first elements of a tile's row of the transition are. */
static LLVMValueRef transition_row(const struct composer *c, uint32_t tile)
{
    struct emit *e = c->e;
    const bool transposed = e->p->transposed;
    LLVMValueRef row = add(e, c->first[tile], e->quad_row), last = imm(e, c->rows - 1), entry = e->at.start[TG_CHUNK];
    row = is_ragged(c) ? choose(e, less(e, row, last), row, last) : row;
    entry = transposed ? sub(e, sub(e, c->count, imm(e, 1)), entry) : entry;
    LLVMValueRef stride = transposed ? imm64(e, 1) : tensor_stride(e, c->transition, 3),
                 offset = add(e, mul(e, wide(e, entry), tensor_stride(e, c->transition, 2)),
                              add(e, mul(e, wide(e, row), stride), mul(e, wide(e, four_of_lane(e)), column_stride(c))));
    return byte_offset(e, e->base[c->transition], mul(e, offset, imm64(e, sizeof(float))));
}

/* Those from column 8 k on; of the last 8 columns of a width that is not a multiple of 16, two. */
static void load_step(const struct composer *c, LLVMValueRef row, uint32_t k, LLVMValueRef x[4])
{
    struct emit *e = c->e;
    const bool both = k + 1 < c->rows / EIGHT;
    const uint32_t n = both ? 4 : 2;
    LLVMValueRef bytes = mul(e, column_stride(c), imm64(e, sizeof(float))),
                 first = both ? row : byte_offset(e, row, sub(e, imm64(e, 0), mul(e, wide(e, two_of_lane(e)), bytes))),
                 from = byte_offset(e, first, mul(e, bytes, imm64(e, k * EIGHT)));
    for (uint32_t i = 0; e->p->transposed && i < n; i++)
        x[i] = LLVMBuildLoad2(e->b, e->f32, byte_offset(e, from, mul(e, bytes, imm64(e, i))), "");
    if (e->p->transposed)
        return;
    LLVMValueRef some = LLVMBuildLoad2(e->b, LLVMVectorType(e->f32, n), from, "");
    LLVMSetAlignment(some, n * sizeof(float));
    for (uint32_t i = 0; i < n; i++)
        x[i] = LLVMBuildExtractElement(e->b, some, imm(e, i), "");
}

static void load_transition(const struct composer *c, const LLVMValueRef *slots)
{
    const uint32_t eights = c->rows / EIGHT;
    for (uint32_t tile = 0; tile < c->tiles; tile++) {
        LLVMValueRef row = transition_row(c, tile);
        for (uint32_t k = 0; k < eights; k += 2) {
            LLVMValueRef x[4];
            load_step(c, row, k, x);
            for (uint32_t i = 0; i < (k + 1 < eights ? 4 : 2); i++)
                set(c->e, slots[2 * (tile * eights + k) + i], x[i]);
        }
    }
}

/* ---- shared memory ---- */

/* The unit of two neighbouring rows of the state, the pair-th, and of two columns, `column` and 8 more: that of leading parts. */
static LLVMValueRef shared_unit(const struct composer *c, uint32_t buffer, LLVMValueRef pair, LLVMValueRef column)
{
    struct emit *e = c->e;
    LLVMValueRef place = add(e, mul(e, pair, imm(e, PAIR)), mul(e, column, imm(e, UNIT)));
    return byte_offset(e, e->arena, add(e, place, imm(e, buffer * PARTS * (c->rows / 2) * PAIR)));
}

/* From leading parts to trailing ones. */
static uint32_t trailing(const struct composer *c)
{
    return c->rows / 2 * PAIR;
}

static void share_state(const struct composer *c, uint32_t buffer)
{
    struct emit *e = c->e;
    LLVMTypeRef v4i32 = LLVMVectorType(e->i32, 4);
    for (uint32_t tile = 0; tile < c->tiles; tile++) {
        LLVMBasicBlockRef after = begin_tile(c, tile);
        LLVMValueRef parts[PARTS] = {LLVMGetUndef(v4i32), LLVMGetUndef(v4i32)};
        for (uint32_t r = 0; r < 4; r++) {
            const struct split x = split_float(e, get(e, e->f32, c->arrived[4 * tile + r % 2 * 2 + r / 2]));
            parts[0] = LLVMBuildInsertElement(e->b, parts[0], x.lead, imm(e, r), "");
            parts[1] = LLVMBuildInsertElement(e->b, parts[1], x.trail, imm(e, r), "");
        }
        LLVMValueRef pair = add(e, divide(e, c->first[tile], imm(e, 2)), e->quad_column),
                     to = shared_unit(c, buffer, pair, e->quad_row);
        for (uint32_t i = 0; i < PARTS; i++)
            LLVMSetAlignment(LLVMBuildStore(e->b, parts[i], byte_offset(e, to, imm(e, i * trailing(c)))), UNIT);
        end_tile(c, after);
    }
}

/* ---- segment by segment ---- */

/* Both parts of what this lane has of a left operand. */
static void load_left(const struct composer *c, LLVMValueRef from, struct split left[4])
{
    struct emit *e = c->e;
    LLVMTypeRef v4i32 = LLVMVectorType(e->i32, 4);
    LLVMValueRef parts[PARTS];
    for (uint32_t i = 0; i < PARTS; i++) {
        parts[i] = LLVMBuildLoad2(e->b, v4i32, byte_offset(e, from, imm(e, i * trailing(c))), "");
        LLVMSetAlignment(parts[i], UNIT);
    }
    for (uint32_t r = 0; r < 4; r++)
        left[r] = (struct split){LLVMBuildExtractElement(e->b, parts[0], imm(e, r), ""),
                                 LLVMBuildExtractElement(e->b, parts[1], imm(e, r), "")};
}

/* What the segment makes += its transition x the columns in shared memory. */
static void multiply(const struct composer *c, uint32_t buffer)
{
    struct emit *e = c->e;
    const uint32_t eights = c->rows / EIGHT, n_sums = SUMS / c->tiles;
    LLVMValueRef sums[MOST_TILES][SUMS][4], right[MOST_TILES][4], row[MOST_TILES];
    struct split left[4];
    LLVMValueRef columns = shared_unit(c, buffer, two_of_lane(e), e->quad_row),
                 last = shared_unit(c, buffer, e->quad_column, e->quad_row);
    for (uint32_t tile = 0; tile < c->tiles; tile++)
        row[tile] = c->ahead ? NULL : transition_row(c, tile);
    for (uint32_t i = 0; i < c->tiles * SUMS * 4; i++)
        sums[i / 4 / SUMS][i / 4 % SUMS][i % 4] =
            i / 4 % SUMS ? real(e, 0) : get(e, e->f32, c->now.made[i / 4 / SUMS * 4 + i % 4]);
    for (uint32_t k = 0; k < eights; k++) {
        const bool alone = k + 1 == eights && k % 2 == 0;
        LLVMValueRef from = byte_offset(e, alone ? last : columns, imm(e, PAIR * (k / 2 * EIGHT + k % 2)));
        load_left(c, from, left);
        for (uint32_t tile = 0; tile < c->tiles; tile++) {
            if (!c->ahead && k % 2 == 0)
                load_step(c, row[tile], k, right[tile]);
            for (uint32_t i = 0; i < 2 && c->ahead; i++)
                right[tile][k % 2 * 2 + i] = get(e, e->f32, c->now.transition[2 * (tile * eights + k) + i]);
            multiply_split(e, sums[tile][k % n_sums], left, right[tile] + k % 2 * 2);
        }
    }
    for (uint32_t r = 0; r < 4 * c->tiles; r++) {
        LLVMValueRef sum = sums[r / 4][0][r % 4];
        for (uint32_t i = 1; i < n_sums; i++)
            sum = LLVMBuildFAdd(e->b, sum, sums[r / 4][i][r % 4], "");
        set(e, c->now.made[r], sum);
    }
}

/* What the segment makes of zero, and its transition. */
static void read_segment(const struct composer *c, LLVMValueRef segment, bool with_transition)
{
    const struct place outside = c->e->at;
    go_to_entry(c->e, segment);
    for_elements(c, c->tile, c->next.made, fetch_element);
    if (c->ahead && with_transition)
        load_transition(c, c->next.transition);
    c->e->at = outside;
}

/* The state with which the segment begins, to the place of what it makes. */
static void write_segment(const struct composer *c, LLVMValueRef segment)
{
    const struct place outside = c->e->at;
    go_to_entry(c->e, segment);
    for_elements(c, c->tile, c->arrived, keep_element);
    c->e->at = outside;
}

static void move(struct emit *e, const LLVMValueRef *to, const LLVMValueRef *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        set(e, to[i], get(e, e->f32, from[i]));
}

/* From the state with which the segment begins to that of the next one. What comes then is read meanwhile: behind `last` the same
 * again, for what is read under a condition is waited for at its end. */
static void compose_segment(const struct composer *c, LLVMValueRef segment, LLVMValueRef last, uint32_t buffer)
{
    struct emit *e = c->e;
    LLVMValueRef next = add(e, segment, imm(e, 1));
    read_segment(c, choose(e, less(e, last, next), last, next), true);
    write_segment(c, segment);
    share_state(c, buffer);
    barrier(e);
    const struct place outside = e->at;
    go_to_entry(e, segment);
    multiply(c, buffer);
    e->at = outside;
    move(e, c->arrived, c->now.made, 4 * c->tiles);
}

/* Segments from 1 to `last`, two in turn: what one has read is the next one's, and stays where it is. */
static void compose_by_turns(struct composer *c, LLVMValueRef last)
{
    struct emit *e = c->e;
    LLVMBasicBlockRef odd = LLVMAppendBasicBlockInContext(e->context, e->function, "odd"),
                      done = LLVMAppendBasicBlockInContext(e->context, e->function, "composed");
    LLVMValueRef slot = local(e, e->i32, "segment");
    set(e, slot, imm(e, 1));
    LLVMBuildBr(e->b, odd);
    LLVMPositionBuilderAtEnd(e->b, odd);
    for (uint32_t buffer = 0; buffer < 2; buffer++) {
        LLVMValueRef segment = get(e, e->i32, slot);
        const struct segment read = c->next;
        c->next = c->now;
        c->now = read;
        compose_segment(c, segment, last, buffer);
        set(e, slot, add(e, segment, imm(e, 1)));
        LLVMBasicBlockRef next = buffer ? odd : LLVMAppendBasicBlockInContext(e->context, e->function, "even");
        LLVMBuildCondBr(e->b, less(e, segment, last), next, done);
        if (buffer == 0)
            LLVMPositionBuilderAtEnd(e->b, next);
    }
    LLVMMoveBasicBlockAfter(done, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, done);
}

/* Those between the first, behind which the state is what it has made, and the last, behind which nothing is wanted. */
static void compose_inner(struct composer *c, LLVMValueRef count)
{
    struct emit *e = c->e;
    LLVMValueRef last = sub(e, count, imm(e, 2));
    LLVMBasicBlockRef after = begin_if(e, less(e, imm(e, 0), last));
    read_segment(c, imm(e, 1), true);
    compose_by_turns(c, last);
    end_if(e, after);
}

static void make_slots(struct emit *e, LLVMValueRef *slots, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        set(e, slots[i] = local(e, e->f32, name), real(e, 0));
}

static void make_registers(struct composer *c)
{
    struct emit *e = c->e;
    const uint32_t n = 4 * c->tiles, ahead = 2 * c->tiles * (c->rows / EIGHT);
    c->ahead = ahead <= MOST_AHEAD;
    make_slots(e, c->arrived, n, "arrived");
    make_slots(e, c->now.made, n, "made");
    make_slots(e, c->next.made, n, "made");
    make_slots(e, c->now.transition, c->ahead ? ahead : 0, "transition");
    make_slots(e, c->next.transition, c->ahead ? ahead : 0, "transition");
}

/* An empty sequence has a segment. */
void compose_by_values(struct emit *e, const struct op *op)
{
    const uint32_t warps = e->p->row->warps;
    const uint32_t init = TG_OPERAND_TILE(e->p->algorithm->body[op->stmt].init);
    struct composer c = {.e = e, .v = op->v, .tile = op->tile, .transition = e->p->transition};
    c.rows = plan_dim_size(e->p, plan_transition_of(e->p));
    c.tiles = (c.rows / EIGHT + warps - 1) / warps;
    for (uint32_t tile = 0; tile < c.tiles; tile++)
        c.first[tile] = mul(e, add(e, e->warp, imm(e, tile * warps)), imm(e, EIGHT));
    make_registers(&c);
    if (init) {
        LLVMBasicBlockRef after = present(e, init) ? begin_if(e, present(e, init)) : NULL;
        for_elements(&c, init, c.arrived, fetch_element);
        if (after)
            end_if(e, after);
    }
    LLVMValueRef count =
                     ceil_div(e, choose(e, less(e, imm(e, 0), e->at.chunks), e->at.chunks, imm(e, 1)), e->p->composes),
                 has_second = less(e, imm(e, 1), count);
    c.count = count;
    LLVMBasicBlockRef after = begin_if(e, has_second);
    read_segment(&c, imm(e, 0), false);
    end_if(e, after);
    write_segment(&c, imm(e, 0));
    after = begin_if(e, has_second);
    move(e, c.arrived, c.next.made, 4 * c.tiles);
    compose_inner(&c, count);
    write_segment(&c, sub(e, count, imm(e, 1)));
    end_if(e, after);
}
