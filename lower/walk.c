/* lower/walk.c - a kernel on warpgroups: who does what, and when (compiler/walk.c says what is computed).
 *
 * One warp fills the ring (walk_producer.c). The groups compute, chunk by chunk:
 *
 *     wait until the stage is full
 *     tiles of positions, each group some columns of them; rounded to shared memory; meanwhile sums of rows of what is
 *         loaded
 *     barrier of all groups: the tiles are whole
 *     for each of the group's tiles of the output
 *         issue the product by the state
 *         meanwhile decay the state, make factors from sums of rows, and fetch `left`
 *         add the product by the tile of positions
 *         issue the state's product; meanwhile round and store the output
 *
 * Where the state is made alone only its own product is left, and what is carried beside it is made meanwhile.
 *
 * The output goes to where the group's part of `left` was and from there to memory, so a stage is empty when those
 * stores have read it. */
#include "lower/walk.h"

enum { PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240 };

struct range {
    uint32_t begin, end;
};

/* The operations of a chunk. */
static struct range chunk_ops(const struct plan *p)
{
    struct range r = {0, 0};
    for (uint32_t i = 0; i < p->n_ops; i++) {
        if (p->ops[i].kind == OP_NEST)
            r.begin = i + 1;
        if (p->ops[i].kind == OP_END)
            r.end = i;
    }
    return r;
}

static bool is_position_sum(const struct emit *e, const struct op *op, bool of_loaded)
{
    return op->kind == OP_DOT && e->p->values[op->v].space == SPACE_ROWS && walk_is_of_loaded(e->p, op) == of_loaded;
}

/* The products of positions, all under way before one is waited for; meanwhile sums of rows of loaded matrices. */
static void emit_position_products(struct emit *e, struct walk *w)
{
    enum { ISSUE, MEANWHILE, WAIT, N_PHASES };
    const struct range r = chunk_ops(e->p);
    for (uint32_t phase = ISSUE; phase < N_PHASES; phase++)
        for (uint32_t i = r.begin; i < r.end; i++) {
            const struct op *op = &e->p->ops[i];
            const bool is_product = op->kind == OP_CONTRACT && !plan_is_owned(e->p, &e->p->values[op->v]);
            debug_line(e, op->stmt);
            if (is_product && phase == ISSUE)
                walk_positions(e, w, op);
            else if (is_product && phase == WAIT)
                walk_wait(e, w, op->v);
            else if (phase == MEANWHILE && is_position_sum(e, op, true))
                walk_row_sums(e, w, op);
            else if (phase == MEANWHILE && op->kind == OP_DOT && e->p->values[op->v].space == SPACE_GATHERED)
                walk_gather(e, w, op);
        }
}

static void emit_positions(struct emit *e, struct walk *w)
{
    const struct range r = chunk_ops(e->p);
    emit_position_products(e, w);
    for (uint32_t i = r.begin; i < r.end; i++) {
        const struct op *op = &e->p->ops[i];
        const struct value *v = &e->p->values[op->v];
        debug_line(e, op->stmt);
        if (op->kind == OP_MAP && !plan_is_owned(e->p, v) && v->space != SPACE_POSITIONS)
            walk_map(e, w, op);
        else if (is_position_sum(e, op, false))
            walk_row_sums(e, w, op);
    }
}

/* What is made of sums of rows or of positions, behind the barrier; while products are under way. */
static void emit_vectors(struct emit *e, struct walk *w)
{
    const struct range r = chunk_ops(e->p);
    for (uint32_t i = r.begin; i < r.end; i++) {
        const struct op *op = &e->p->ops[i];
        debug_line(e, op->stmt);
        if (op->kind == OP_MAP && e->p->values[op->v].space == SPACE_POSITIONS)
            walk_positions_vector(e, w, op);
        else if (op->kind == OP_DOT && e->p->values[op->v].space == SPACE_CARRIED)
            walk_add_carried(e, w, op);
    }
}

/* Stores the sums that are complete behind the barrier of a chunk: its own of rows, the others of the one before. */
static void store_sums(struct emit *e, const struct walk *w, bool of_rows, LLVMValueRef buffer)
{
    const struct range r = chunk_ops(e->p);
    for (uint32_t i = r.begin; i < r.end; i++) {
        const enum space space = e->p->values[e->p->ops[i].v].space;
        if (e->p->ops[i].kind == OP_STORE && of_rows && space == SPACE_CARRIED)
            walk_keep_carried(e, w, &e->p->ops[i], present(e, e->p->ops[i].tile));
        if (e->p->ops[i].kind == OP_STORE && of_rows && space == SPACE_GATHERED)
            walk_store_gathered(e, w, &e->p->ops[i]);
        if (e->p->ops[i].kind == OP_STORE &&
            (of_rows ? space == SPACE_ROWS || space == SPACE_POSITIONS : space == SPACE_COLUMNS || space == SPACE_SUM))
            walk_store_sum(e, w, &e->p->ops[i], buffer);
    }
}

static bool has_late_sums(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_COLUMNS || p->values[i].space == SPACE_SUM)
            return true;
    return false;
}

/* ... of the step before this one of the walk, if there is one. */
static void store_late_sums(struct emit *e, const struct walk *w, LLVMValueRef step, LLVMValueRef is_later)
{
    if (!has_late_sums(e->p))
        return;
    const struct place here = e->at;
    LLVMBasicBlockRef after = begin_if(e, is_later);
    LLVMValueRef before = sub(e, step, imm(e, 1));
    set_chunk(e, &e->at, walked_chunk(e, &e->p->nests[0], before));
    store_sums(e, w, false, modulo(e, before, imm(e, 2)));
    end_if(e, after);
    e->at = here;
}

/* Sums over the state as it arrives. */
static void emit_arrival(struct emit *e, struct walk *w)
{
    const struct range r = chunk_ops(e->p);
    for (uint32_t i = r.begin; i < r.end; i++)
        if (e->p->ops[i].kind == OP_DOT && e->p->values[e->p->ops[i].v].space == SPACE_SUM)
            walk_state_sum(e, w, &e->p->ops[i]);
}

static bool reads_state(const struct plan *p, const struct op *op)
{
    return op->kind == OP_CONTRACT && op->v != p->state && (op->a == p->state || op->b == p->state);
}

/* A product by a tile of positions. */
static bool adds_tile(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    return op->kind == OP_CONTRACT && op->v != p->state && plan_is_owned(p, v) && plan_is_position(v->dims[0]) &&
           !reads_state(p, op);
}

static void emit_output(struct emit *e, struct walk *w, uint32_t begin, uint32_t end)
{
    const struct plan *p = e->p;
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &p->ops[i];
        const struct value *v = &p->values[op->v];
        const bool by_columns = op->kind == OP_DOT && v->space == SPACE_COLUMNS;
        const bool of_output = plan_is_owned(p, v) && op->v != p->state && plan_is_position(v->dims[0]);
        if (!(of_output || by_columns) || reads_state(p, op))
            continue;
        debug_line(e, op->stmt);
        if (by_columns)
            walk_column_sums(e, w, op);
        else if (op->kind == OP_MAP)
            walk_map(e, w, op);
        else if (op->kind == OP_COPY)
            for (uint32_t r = 0; r < walk_registers(p, &p->values[op->v]); r++)
                set(e, e->registers[op->v][r], get(e, e->f32, e->registers[op->a][r]));
        else if (op->kind == OP_CONTRACT)
            walk_add_tile(e, w, op);
        else if (op->kind == OP_STORE)
            walk_store(e, w, op);
    }
}

static const struct op *state_op(const struct plan *p, enum op_kind kind)
{
    const struct range r = chunk_ops(p);
    for (uint32_t i = r.begin; i < r.end; i++)
        if (p->ops[i].kind == kind && p->ops[i].v == p->state)
            return &p->ops[i];
    return NULL;
}

/* The state's decay in this chunk; NULL: none. */
static LLVMValueRef decay_factor(struct emit *e)
{
    const struct op *op = state_op(e->p, OP_DECAY);
    if (!op)
        return NULL;
    LLVMValueRef from = slot_address(e, &e->p->values[op->a], e->slot[op->a]);
    return exp2_approx(e, LLVMBuildLoad2(e->b, e->f32, from, ""));
}

/* What is carried beside a state by itself, while its products are under way: gathered with the first, added behind a barrier
 * with the last. */
static void emit_beside(struct emit *e, struct walk *w)
{
    if (w->tile == 0)
        emit_position_products(e, w); /* it has none of these, only the sums made meanwhile */
    if (w->tile + 1 < e->p->tiles)
        return;
    named_barrier(e, imm(e, ALL_GROUPS), 128 * e->p->groups);
    emit_vectors(e, w);
}

static void emit_tile(struct emit *e, struct walk *w)
{
    const struct plan *p = e->p;
    const struct range r = chunk_ops(p);
    uint32_t last = r.begin; /* behind the last product by a tile */
    emit_arrival(e, w);
    for (uint32_t i = r.begin; i < r.end; i++) {
        last = adds_tile(p, &p->ops[i]) ? i + 1 : last;
        if (reads_state(p, &p->ops[i]))
            walk_read_state(e, w, &p->ops[i]);
    }
    LLVMValueRef factor = decay_factor(e);
    if (factor)
        walk_decay(e, w, state_op(p, OP_DECAY), factor);
    if (w->tile == 0 && !plan_is_state_alone(p))
        emit_vectors(e, w);
    walk_load_left(e, w);
    w->careful = plan_is_state_alone(p) ? NULL : careful_sees(e, w); /* a state by itself spoils itself */
    for (uint32_t i = r.begin; i < r.end; i++)
        if (reads_state(p, &p->ops[i]))
            walk_wait(e, w, p->ops[i].v);
    emit_output(e, w, r.begin, last);
    debug_line(e, state_op(p, OP_CONTRACT)->stmt);
    walk_add_state(e, w, state_op(p, OP_CONTRACT));
    if (plan_is_state_alone(p) && p->carries)
        emit_beside(e, w);
    if (p->adds)
        cluster_ready(e, w);
    emit_output(e, w, last, r.end);
    walk_wait(e, w, p->state);
}

/* The thread has left the stage, and the stores that it issued have read it. */
static void release(struct emit *e, const struct walk *w)
{
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    map_store_wait(e, true);
    end_if(e, after);
    sync_warp(e);
    mbarrier_arrive(e, barrier_address(e, w->stage, true));
}

static void emit_chunk(struct emit *e, struct walk *w, LLVMValueRef step)
{
    const struct plan *p = e->p;
    for (uint32_t i = 0; i < p->n_values; i++)
        e->slot[i] = p->values[i].space == SPACE_VECTOR      ? w->stage
                     : p->values[i].space == SPACE_POSITIONS ? warp_of_all(e, w)
                                                             : NULL;
    w->buffer =
        p->nests[0].stages == 2 && p->segment % 2 == 0 ? w->stage : modulo(e, step, imm(e, 2)); /* the same in turn */
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_CARRIED)
            e->slot[i] = walk_carried_slot(e, w, w->buffer);
    w->tile = 0;
    if (p->shape.packed)
        clear_behind_end(e, w);
    if (!plan_is_state_alone(p)) {
        emit_positions(e, w);
        fence_async(e);
        named_barrier(e, imm(e, ALL_GROUPS), 128 * p->groups);
    }
    set_chunk(e, &e->at, opaque(e, e->at.start[TG_CHUNK])); /* made again: registers are what is short */
    for (w->tile = 0; w->tile < p->tiles; w->tile++)
        emit_tile(e, w);
    release(e, w);
    if (p->starts)
        walk_start_segment(e, w, state_op(p, OP_STORE), add(e, step, imm(e, 1)));
    store_sums(e, w, true, w->buffer);
    store_late_sums(e, w, step,
                    p->segment ? LLVMBuildICmp(e->b, LLVMIntNE, modulo(e, step, imm(e, p->segment)), imm(e, 0), "")
                               : less(e, imm(e, 0), step));
}

struct counted walk_begin(struct emit *e, LLVMValueRef *step)
{
    const bool leaves_last = e->p->starts && !plan_final_tile(e->p); /* nobody needs what the last segment makes */
    return loop_from(e, e->at.start[TG_SEG], leaves_last ? walk_last_start(e) : e->at.chunks, step);
}

void walk_end(struct emit *e, const struct counted *l)
{
    if (!e->p->segment) {
        loop_end(e, l, 1);
        return;
    }
    LLVMValueRef next = add(e, get(e, e->i32, l->counter), imm(e, 1)); /* its end needs no register of its own */
    set(e, l->counter, next);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, modulo(e, next, imm(e, e->p->segment)), imm(e, 0), ""),
                    l->after, l->head);
    LLVMMoveBasicBlockAfter(l->after, LLVMGetInsertBlock(e->b));
    LLVMPositionBuilderAtEnd(e->b, l->after);
}

/* What is carried, before the first chunk. */
static void emit_begin(struct emit *e, const struct walk *w)
{
    const struct plan *p = e->p;
    for (uint32_t i = 0; p->ops[i].kind != OP_NEST; i++)
        if (p->ops[i].kind == OP_INIT)
            walk_init(e, w, &p->ops[i]);
        else if (p->ops[i].kind == OP_ENTER)
            walk_enter(e, w, &p->ops[i]);
    if (p->starts)
        walk_start_segment(e, w, state_op(p, OP_STORE), imm(e, 0));
}

static void emit_consumer(struct emit *e, struct walk *w)
{
    const struct plan *p = e->p;
    const struct nest *nest = &p->nests[0];
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_UNIFORM && p->values[i].stmt < 0)
            emit_load(e, i);
    w->buffer = modulo(e, e->at.start[TG_SEG], imm(e, 2));
    emit_begin(e, w);
    LLVMValueRef step, round = local(e, e->i32, "round"); /* of the ring, twice: stage and parity in one register */
    set(e, round, imm(e, 0));
    const struct counted l = walk_begin(e, &step);
    LLVMValueRef now = get(e, e->i32, round), second = less(e, imm(e, nest->stages - 1), now);
    w->stage = choose(e, second, sub(e, now, imm(e, nest->stages)), now);
    mbarrier_wait(e, barrier_address(e, w->stage, false), choose(e, second, imm(e, 1), imm(e, 0)));
    set_chunk(e, &e->at, walked_chunk(e, nest, step));
    /* made again in every chunk: registers are what is short */
    const LLVMValueRef outside[] = {e->tid, e->lane, e->warp, e->quad_row, e->quad_column};
    find_thread(e, e->tid);
    emit_bases(e, opaque(e, w->batch), opaque(e, w->head));
    emit_chunk(e, w, step);
    e->tid = outside[0], e->lane = outside[1], e->warp = outside[2], e->quad_row = outside[3],
    e->quad_column = outside[4];
    LLVMValueRef next = add(e, now, imm(e, 1));
    set(e, round, choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, next, imm(e, 2 * nest->stages), ""), imm(e, 0), next));
    walk_end(e, &l);
    w->end = p->segment ? get(e, e->i32, l.counter) : e->at.chunks;
    find_thread(e, opaque(e, e->tid)); /* what both sides of the loop knew would live through it */
    emit_bases(e, opaque(e, w->batch), opaque(e, w->head));
    if (has_late_sums(p)) {
        named_barrier(e, imm(e, ALL_GROUPS), 128 * p->groups);
        store_late_sums(e, w, w->end, less(e, imm(e, 0), w->end));
    }
    w->buffer = modulo(e, w->end, imm(e, 2));
    for (uint32_t i = chunk_ops(p).end; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_STORE)
            walk_final(e, w, &p->ops[i]);
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    map_store_wait(e, false);
    end_if(e, after);
}

static void init_barriers(struct emit *e)
{
    const struct plan *p = e->p;
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
    for (uint32_t s = 0; s < p->nests[0].stages; s++) {
        mbarrier_init(e, barrier_address(e, imm(e, s), false), 32);
        mbarrier_init(e, barrier_address(e, imm(e, s), true), 128 * p->groups);
    }
    if (p->adds)
        cluster_init(e);
    if (plan_shares(p))
        cast_init(e);
    fence_mbarrier_init(e);
    end_if(e, after);
    if (p->cluster)
        cluster_barrier(e);
    else
        barrier(e);
}

/* The same in all lanes, and the assembler knows it. */
static LLVMValueRef uniform(struct emit *e, LLVMValueRef x)
{
    LLVMValueRef args[] = {imm(e, -1), x, imm(e, 0), imm(e, 31)};
    return call(e, "llvm.nvvm.shfl.sync.idx.i32", NULL, 0, args, 4);
}

void emit_walk(struct emit *e, LLVMValueRef batch, LLVMValueRef head)
{
    const struct plan *p = e->p;
    const bool moves_registers = p->groups == 2;
    init_barriers(e);
    struct walk w = {.batch = batch, .head = head};
    w.group = uniform(e, divide(e, e->tid, imm(e, 128)));
    const struct place outside = e->at;
    LLVMBasicBlockRef producer = LLVMAppendBasicBlockInContext(e->context, e->function, "producer");
    LLVMBasicBlockRef consumer = LLVMAppendBasicBlockInContext(e->context, e->function, "consumer");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, w.group, imm(e, p->groups), ""), producer, consumer);
    LLVMPositionBuilderAtEnd(e->b, producer);
    if (moves_registers)
        set_registers_of_warps(e, false, PRODUCER_REGISTERS);
    LLVMBasicBlockRef after =
        begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, uniform(e, e->warp), imm(e, 4 * p->groups), ""));
    emit_producer(e, batch, head);
    end_if(e, after);
    LLVMBuildRetVoid(e->b);
    LLVMPositionBuilderAtEnd(e->b, consumer);
    LLVMMoveBasicBlockAfter(consumer, after);
    if (moves_registers)
        set_registers_of_warps(e, true, CONSUMER_REGISTERS);
    e->at = outside;
    e->tid = modulo(e, e->tid, imm(e, 128));
    e->warp = modulo(e, e->warp, imm(e, 4));
    emit_consumer(e, &w);
}
