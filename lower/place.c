/* lower/place.c - where a thread block is: its part of the grid, the chunks of packed sequences, the slots of pools,
 * the heads of groups; and from there the address of an element. */
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "lower/emit.h"

void set_chunk(struct emit *e, struct place *at, LLVMValueRef chunk)
{
    LLVMValueRef length = e->p->by_token ? imm(e, 1) : argument(e, TG_ARG_SIZE, TG_SIZE_CHUNK, 0);
    at->start[TG_CHUNK] = chunk;
    at->token = mul(e, chunk, length);
    at->length = smaller(e, length, sub(e, at->tokens, at->token));
}

void go_to_entry(struct emit *e, LLVMValueRef entry)
{
    e->at.start[TG_CHUNK] = entry;
    e->at.first_chunk = NULL;
}

LLVMValueRef end_of_walk(struct emit *e, const struct nest *nest)
{
    const uint32_t cut = e->p->segment + e->p->starts + e->p->composes;
    return nest->reverse && cut ? mul(e, ceil_div(e, e->at.chunks, cut), imm(e, cut)) : e->at.chunks;
}

LLVMValueRef first_of_walk(struct emit *e, const struct nest *nest)
{
    return sub(e, end_of_walk(e, nest), e->at.chunks);
}

LLVMValueRef walked_chunk(struct emit *e, const struct nest *nest, LLVMValueRef step)
{
    return nest->reverse ? sub(e, sub(e, end_of_walk(e, nest), imm(e, 1)), step) : step;
}

/* The sequence's number in a table. */
static LLVMValueRef number_of(struct emit *e, uint32_t table, LLVMValueRef sequence)
{
    LLVMValueRef offset = mul(e, mul(e, wide(e, sequence), argument(e, TG_ARG_STRIDE, table, 0)), imm64(e, 4));
    return LLVMBuildLoad2(e->b, e->i32, byte_offset(e, argument(e, TG_ARG_POINTER, table, 0), offset), "");
}

/* Boundary `i` of the packed sequences; whatever is in memory there, at most the number of tokens. */
static LLVMValueRef boundary(struct emit *e, LLVMValueRef i)
{
    LLVMValueRef offset = mul(e, mul(e, wide(e, i), argument(e, TG_ARG_STRIDE, TILE_CU, 2)), imm64(e, 4));
    LLVMValueRef x = LLVMBuildLoad2(e->b, e->i32, byte_offset(e, argument(e, TG_ARG_POINTER, TILE_CU, 0), offset), "");
    LLVMValueRef tokens = argument(e, TG_ARG_SIZE, TG_SIZE_TOKENS, 0);
    return choose(e, LLVMBuildICmp(e->b, LLVMIntULT, x, tokens, ""), x, tokens);
}

/* Chunks of packed sequences lie in slots: those of sequence s from boundary / L + s on. No two share one, and
 * no table is needed to find them. */
static LLVMValueRef first_slot(struct emit *e, LLVMValueRef begin, LLVMValueRef s)
{
    return add(e, divide(e, begin, argument(e, TG_ARG_SIZE, TG_SIZE_CHUNK, 0)), s);
}

void set_sequence(struct emit *e, struct place *at, LLVMValueRef s)
{
    LLVMValueRef begin = boundary(e, s), end = boundary(e, add(e, s, imm(e, 1)));
    at->first_token = begin;
    at->first_chunk = first_slot(e, begin, s);
    at->tokens = choose(e, less(e, begin, end), sub(e, end, begin), imm(e, 0));
    if (e->p->schedule->max_tokens) /* whatever is in memory there */
        at->tokens = smaller(e, at->tokens, imm(e, e->p->schedule->max_tokens));
    LLVMValueRef length = argument(e, TG_ARG_SIZE, TG_SIZE_CHUNK, 0);
    at->chunks = divide(e, add(e, at->tokens, sub(e, length, imm(e, 1))), length);
}

/* Of a decode step: no more tokens of the sequence than are counted. */
static void count_tokens(struct emit *e, struct place *at, LLVMValueRef s)
{
    if (e->p->shape.counted)
        at->tokens = smaller(e, at->tokens, number_of(e, TILE_COUNT, s));
    if (plan_has_single_positions(e->p))
        at->chunks = at->tokens;
}

/* The sequence that has this slot: the last one that begins at or before it. */
static LLVMValueRef find_sequence(struct emit *e, LLVMValueRef slot)
{
    LLVMValueRef low = local(e, e->i32, "low"), high = local(e, e->i32, "high");
    set(e, low, imm(e, 0));
    set(e, high, argument(e, TG_ARG_SIZE, TG_SIZE_BATCH, 0));
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->context, e->function, "search");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->context, e->function, "halve");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "found");
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    LLVMValueRef a = get(e, e->i32, low), b = get(e, e->i32, high);
    LLVMBuildCondBr(e->b, less(e, imm(e, 1), sub(e, b, a)), body, after);
    LLVMPositionBuilderAtEnd(e->b, body);
    LLVMValueRef middle = divide(e, add(e, a, b), imm(e, 2));
    LLVMValueRef is_before = less(e, slot, first_slot(e, boundary(e, middle), middle));
    set(e, low, choose(e, is_before, a, middle));
    set(e, high, choose(e, is_before, middle, b));
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, after);
    return a;
}

LLVMValueRef is_last_of_segment(struct emit *e)
{
    LLVMValueRef next = add(e, e->at.start[TG_CHUNK], imm(e, 1)), length = imm(e, e->p->row->row[TG_SEG].block);
    return LLVMBuildOr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, next, e->at.chunks, ""),
                       LLVMBuildICmp(e->b, LLVMIntEQ, modulo(e, next, length), imm(e, 0), ""), "");
}

/* Where a tile has one entry a segment, that of the chunk's; walks go to theirs by themselves. NULL: one a chunk. */
static LLVMValueRef entry_of_chunk(struct emit *e, uint32_t tile, LLVMValueRef chunk)
{
    const struct plan *p = e->p;
    const uint32_t length = p->segment || p->starts || p->composes ? 0 : tg_tile_segment(p->schedule, tile);
    const int stmt = tg_tile_stmt(p->algorithm, tile);
    if (!length)
        return NULL;
    if (p->algorithm->body[stmt].flags & TG_REVERSE)
        chunk = sub(e, sub(e, mul(e, ceil_div(e, e->at.chunks, length), imm(e, length)), imm(e, 1)), chunk);
    return divide(e, chunk, imm(e, length));
}

LLVMValueRef tensor_stride(struct emit *e, uint32_t tile, uint32_t axis)
{
    LLVMValueRef stride = argument(e, TG_ARG_STRIDE, tile, axis);
    return stride ? stride : imm64(e, 1); /* the innermost dqk or dhv */
}

LLVMValueRef tensor_address(struct emit *e, tg_operand operand, uint32_t tile, const struct place *at,
                            const uint8_t *dims, LLVMValueRef row, LLVMValueRef column)
{
    const tg_tensor *t = &e->p->algorithm->tensors[tile];
    const uint32_t position = TG_OPERAND_AT(operand);
    LLVMValueRef offset = imm64(e, 0);
    if (e->known[tile])
        return e->known[tile];
    if (e->p->row->row[TG_BATCH].role != TG_ROLE_NONE)
        offset = add(e, offset, mul(e, wide(e, at->start[TG_BATCH]), tensor_stride(e, tile, 0)));
    if (e->p->row->row[TG_MEMBER].role != TG_ROLE_NONE && !(t->flags & TG_SHARED))
        offset = add(e, offset, mul(e, wide(e, at->start[TG_MEMBER]), tensor_stride(e, tile, 1)));
    const uint8_t *axes = plan_memory_axes(e->p, tile);
    for (uint32_t axis = 0; axis < TG_MAX_AXES && axes[axis] != TG_AXIS_NONE; axis++) {
        const bool by_chunk = axes[axis] == TG_T && (e->p->held >> TG_CHUNK & 1); /* held chunks have one position */
        const uint32_t dim = by_chunk ? (uint32_t)TG_CHUNK : axes[axis] == TG_T ? position : axes[axis];
        LLVMValueRef index = at->start[dim];
        if (axes[axis] == TG_T)
            index = add(e, at->token, index);
        LLVMValueRef first = axes[axis] == TG_T       ? at->first_token
                             : axes[axis] == TG_CHUNK ? at->first_chunk
                                                      : NULL,
                     entry = axes[axis] == TG_CHUNK ? entry_of_chunk(e, tile, index) : NULL;
        if (entry)
            index = entry;
        else if (first)
            index = add(e, index, first);
        if (row && dims[0] == dim)
            index = add(e, index, row);
        else if (column && dims[1] == dim)
            index = add(e, index, column);
        offset = add(e, offset, mul(e, wide(e, index), tensor_stride(e, tile, 2 + axis)));
    }
    const uint32_t bytes = tg_dtype_bytes(plan_memory_dtype(e->p, tile));
    return byte_offset(e, e->base[tile], mul(e, offset, imm64(e, bytes)));
}

LLVMValueRef inside(struct emit *e, const struct place *at, uint32_t dim, uint32_t extent, LLVMValueRef i)
{
    LLVMValueRef index = add(e, at->start[dim], i);
    if (plan_is_position(dim))
        return less(e, index, at->length);
    if (dim == TG_CHUNK) /* unsigned: backwards, what is none is before the first */
        return LLVMBuildICmp(e->b, LLVMIntULT, index, at->chunks, "");
    const uint32_t size = plan_dim_size(e->p, dim);
    return size % extent == 0 ? NULL : less(e, index, imm(e, size));
}

LLVMValueRef inside_tile(struct emit *e, const struct place *at, uint32_t tile, uint32_t dim, uint32_t extent,
                         LLVMValueRef i)
{
    const bool always = dim == TG_LKV && tg_tile_is_square(e->p->algorithm, tile);
    return always ? NULL : inside(e, at, dim, extent, i);
}

/* What is left of the grid's index, without its number in a dimension of so many. */
static LLVMValueRef take_index(struct emit *e, LLVMValueRef *rest, LLVMValueRef count)
{
    LLVMValueRef index = modulo(e, *rest, count);
    *rest = divide(e, *rest, count);
    return index;
}

static LLVMValueRef blocks_of(struct emit *e, uint32_t d)
{
    const struct plan *p = e->p;
    if (d == TG_CHUNK)
        return ceil_div(e, argument(e, TG_ARG_SIZE, TG_SIZE_CHUNKS, 0), plan_chunk_step(p) * plan_chunks_together(p));
    if (d == TG_SEG)
        return ceil_div(e, argument(e, TG_ARG_SIZE, TG_SIZE_CHUNKS, 0), p->segment);
    return plan_dim_size(p, d) ? imm(e, plan_blocks(p, d))
                               : ceil_div(e, argument(e, TG_ARG_SIZE, TG_SIZE_CHUNK, 0), p->block[d]);
}

/* Heads that thread blocks have one each of, of a cluster neighbours. */
static LLVMValueRef blocks_of_heads(struct emit *e)
{
    const uint32_t together = e->p->heads * (e->p->adds == TG_MEMBER ? e->p->along[TG_MEMBER] : 1);
    return divide(e, argument(e, TG_ARG_SIZE, TG_SIZE_HEADS, 0), imm(e, together));
}

/* Where a thread block has several chunks, that of the warp, whose threads count from its first. */
static LLVMValueRef chunk_of_warp(struct emit *e, LLVMValueRef block)
{
    const uint32_t together = plan_chunks_together(e->p);
    if (together == 1)
        return block;
    LLVMValueRef chunk = add(e, mul(e, block, imm(e, together)), e->warp);
    find_thread(e, e->lane);
    return chunk;
}

/* Of relayed segments all first ones come before all second ones. Returns what is left, the thread block's number among those of its
 * segment. */
static LLVMValueRef take_segment(struct emit *e, LLVMValueRef index)
{
    LLVMValueRef all = call0(e, "llvm.nvvm.read.ptx.sreg.nctaid.x"), count = divide(e, all, blocks_of(e, TG_SEG));
    e->relayed = modulo(e, index, count);
    e->at.start[TG_SEG] = mul(e, divide(e, index, count), imm(e, e->p->segment));
    return e->relayed;
}

/* Numbers of the blocks of this thread block, from its index in the grid. */
void emit_grid(struct emit *e, LLVMValueRef *batch, LLVMValueRef *head)
{
    const struct plan *p = e->p;
    uint8_t dims[TG_N_DIMS];
    const uint32_t n = plan_grid_dims(p, dims), members = p->adds == TG_MEMBER ? p->along[TG_MEMBER] : 1;
    LLVMValueRef rest = call0(e, "llvm.nvvm.read.ptx.sreg.ctaid.x"), chunk = imm(e, 0);
    if (p->relays)
        rest = take_segment(e, rest);
    LLVMValueRef member = members > 1 ? take_index(e, &rest, imm(e, members)) : NULL;
    if (p->sequences_first) {
        *head = take_index(e, &rest, blocks_of_heads(e));
        *batch = take_index(e, &rest, argument(e, TG_ARG_SIZE, TG_SIZE_BATCH, 0));
    }
    for (uint32_t i = 0; i < n; i++) {
        if (dims[i] == TG_SEG && p->relays)
            continue;
        LLVMValueRef index = i + 1 == n && p->sequences_first ? rest : take_index(e, &rest, blocks_of(e, dims[i]));
        if (dims[i] == TG_CHUNK)
            chunk = chunk_of_warp(e, index);
        else
            e->at.start[dims[i]] = mul(e, index, imm(e, p->block[dims[i]]));
    }
    if (!p->sequences_first) {
        *head = mul(e, take_index(e, &rest, blocks_of_heads(e)), imm(e, members));
        *head = member ? add(e, *head, member) : *head;
        *batch = rest;
    }
    e->at.tokens = argument(e, TG_ARG_SIZE, TG_SIZE_TOKENS, 0);
    e->at.chunks = argument(e, TG_ARG_SIZE, plan_has_single_positions(p) ? TG_SIZE_TOKENS : TG_SIZE_CHUNKS, 0);
    if (p->shape.packed && p->row->row[TG_BATCH].role == TG_ROLE_NONE) {
        const bool by_slot = p->row->row[TG_CHUNK].role == TG_ROLE_P;
        *batch = by_slot ? find_sequence(e, chunk) : *batch;
        set_sequence(e, &e->at, *batch);
        chunk = by_slot ? sub(e, chunk, e->at.first_chunk) : chunk;
    }
    if (p->schedule->pieces > 1) {
        e->at.first_chunk = argument(e, TG_ARG_SIZE, TG_SIZE_FIRST, 0);
        e->at.first_token = mul(e, e->at.first_chunk, argument(e, TG_ARG_SIZE, TG_SIZE_CHUNK, 0));
    }
    if (plan_counts_tokens(p))
        count_tokens(e, &e->at, *batch);
    if (plan_chunk_step(p) > 1) /* the last chunk of a segment */
        chunk =
            sub(e, smaller(e, mul(e, add(e, chunk, imm(e, 1)), imm(e, plan_chunk_step(p))), e->at.chunks), imm(e, 1));
    set_chunk(e, &e->at, chunk);
}

static void find_slots(struct emit *e, LLVMValueRef batch, LLVMValueRef *read, LLVMValueRef *written)
{
    *read = number_of(e, TILE_INDEX, batch);
    *written = e->p->shape.pooled == TG_POOL_MOVES ? number_of(e, TILE_INDEX_OUT, batch) : *read;
}

LLVMValueRef slot_of(struct emit *e, uint32_t tile)
{
    if (!plan_is_pooled(e->p, tile))
        return NULL;
    return e->p->algorithm->tensors[tile].flags & TG_OUT ? e->written_slot : e->read_slot;
}

LLVMValueRef is_slot(struct emit *e, LLVMValueRef slot)
{
    return LLVMBuildICmp(e->b, LLVMIntSGE, slot, imm(e, 0), "");
}

LLVMValueRef is_padding(struct emit *e, LLVMValueRef batch)
{
    LLVMValueRef read, written;
    find_slots(e, batch, &read, &written);
    return LLVMBuildNot(e->b, LLVMBuildOr(e->b, is_slot(e, read), is_slot(e, written), ""), "");
}

/* The head's entry of a tensor; `head` counts what thread blocks work on together. */
LLVMValueRef head_of(struct emit *e, uint32_t tile, LLVMValueRef head)
{
    const uint32_t heads = e->p->heads, blocks = group_of(&e->p->shape) / heads; /* of a group */
    if (e->p->algorithm->tensors[tile].flags & TG_SHARED)
        return blocks > 1 ? divide(e, head, imm(e, blocks)) : head;
    return heads > 1 ? mul(e, head, imm(e, heads)) : head;
}

static void find_base(struct emit *e, uint32_t tile, LLVMValueRef entry, LLVMValueRef head)
{
    LLVMValueRef offset = add(e, mul(e, wide(e, entry), argument(e, TG_ARG_STRIDE, tile, 0)),
                              mul(e, wide(e, head_of(e, tile, head)), argument(e, TG_ARG_STRIDE, tile, 1)));
    const uint32_t bytes = tg_dtype_bytes(plan_memory_dtype(e->p, tile));
    /* not inbounds: an absent optional tensor is a null pointer, and never read */
    LLVMValueRef scaled = mul(e, offset, imm64(e, bytes));
    e->base[tile] =
        LLVMBuildGEP2(e->b, LLVMInt8TypeInContext(e->context), argument(e, TG_ARG_POINTER, tile, 0), &scaled, 1, "");
}

void go_to_slot(struct emit *e, uint32_t tile)
{
    const bool by_token = e->p->shape.pooled == TG_POOL_TOKENS;
    LLVMValueRef step = by_token ? e->at.token : e->at.start[TG_CHUNK],
                 first = by_token ? e->at.first_token : e->at.first_chunk;
    LLVMValueRef offset =
        add(e, mul(e, wide(e, e->batch), argument(e, TG_ARG_STRIDE, TILE_INDEX_OUT, 0)),
            mul(e, wide(e, first ? add(e, first, step) : step), argument(e, TG_ARG_STRIDE, TILE_INDEX_OUT, 2)));
    LLVMValueRef from = byte_offset(e, argument(e, TG_ARG_POINTER, TILE_INDEX_OUT, 0), mul(e, offset, imm64(e, 4)));
    e->written_slot = LLVMBuildLoad2(e->b, e->i32, from, "");
    find_base(e, tile, e->written_slot, e->head);
}

void emit_bases(struct emit *e, LLVMValueRef batch, LLVMValueRef head)
{
    const bool has_sequence = e->p->row->row[TG_BATCH].role == TG_ROLE_NONE;
    if (has_sequence && e->p->shape.pooled)
        find_slots(e, batch, &e->read_slot, &e->written_slot);
    for (uint32_t t = 1; t < e->p->algorithm->n_tensors; t++) {
        if (!argument(e, TG_ARG_POINTER, t, 0))
            continue;
        LLVMValueRef slot = slot_of(e, t), entry = !has_sequence ? imm(e, 0) : slot ? slot : batch;
        find_base(e, t, entry, head);
    }
}
