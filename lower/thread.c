/* lower/thread.c - kernels without matrix products: one element a thread.
 *
 * One dimension is shared out among the threads; positions may be held whole, in registers of every thread; the
 * others are loops or the grid. Gates, max states and normaliser states, sums over groups and batches, and decode
 * steps are made of these. Loops that go one element at a time load several steps ahead of computing them: that is
 * what hides the latency of memory here. */
#include "lower/emit.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_AHEAD = 32, REGISTERS_AHEAD = 160 };

/* ---- elements ------------------------------------------------------------------------------------------- */

/* Next combination of the held positions in `mask`; false after the last. */
bool next_held(const struct plan *p, uint32_t mask, uint32_t held[TG_N_DIMS])
{
    for (uint32_t d = TG_LKV; d >= TG_LQ; d--) {
        if (!(mask & p->held & 1u << d))
            continue;
        if (++held[d] < p->block[d])
            return true;
        held[d] = 0;
    }
    return false;
}

uint32_t value_dims(const struct value *v)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < v->n_dims; i++)
        mask |= 1u << v->dims[i];
    return mask;
}

uint32_t thread_register(const struct plan *p, const struct value *v, const uint32_t held[TG_N_DIMS])
{
    uint32_t r = 0;
    for (uint32_t i = 0; i < v->n_dims; i++)
        if (p->held >> v->dims[i] & 1)
            r = r * v->extent[i] + held[v->dims[i]];
    return r;
}

/* Index of this thread's element inside the block of a dimension; NULL: the block has one element. */
LLVMValueRef thread_index(struct emit *e, uint32_t dim, const uint32_t held[TG_N_DIMS])
{
    if (dim == e->p->thread_dim)
        return e->tid;
    return e->p->held >> dim & 1 ? imm(e, held[dim]) : NULL;
}

struct element_place {
    LLVMValueRef index[2]; /* NULL: first and only element of the block */
    LLVMValueRef valid;    /* NULL: always inside of the tensor */
};

static struct element_place place_of(struct emit *e, const struct value *v, const uint32_t held[TG_N_DIMS])
{
    struct element_place place = {{NULL, NULL}, NULL};
    for (uint32_t i = 0; i < v->n_dims; i++) {
        place.index[i] = thread_index(e, v->dims[i], held);
        if (!place.index[i])
            continue;
        LLVMValueRef is_inside = inside(e, &e->at, v->dims[i], v->extent[i], place.index[i]);
        place.valid = is_inside ? both(e, place.valid, is_inside) : place.valid;
    }
    return place;
}

void load_thread(struct emit *e, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    uint32_t held[TG_N_DIMS] = {0};
    do {
        const struct element_place at = place_of(e, value, held);
        load_element(e, v, &e->registers[v][2 * thread_register(e->p, value, held)], at.index[0], at.index[1], at.valid);
    } while (next_held(e->p, value_dims(value), held));
}

/* ---- fp64: a cumulative log gate reaches thousands, and differences of it are wanted to 24 bits ------------- */

static LLVMValueRef get_f64(struct emit *e, LLVMValueRef *reg)
{
    return LLVMBuildFAdd(e->b, LLVMBuildFPExt(e->b, get(e, e->f32, reg[0]), e->f64, ""),
                         LLVMBuildFPExt(e->b, get(e, e->f32, reg[1]), e->f64, ""), "");
}

/* x as an unevaluated sum of two floats. */
struct pair pair_of_f64(struct emit *e, LLVMValueRef x)
{
    LLVMValueRef hi = LLVMBuildFPTrunc(e->b, x, e->f32, "");
    LLVMValueRef rest = LLVMBuildFSub(e->b, x, LLVMBuildFPExt(e->b, hi, e->f64, ""), "");
    return (struct pair){hi, LLVMBuildFPTrunc(e->b, rest, e->f32, "")};
}

static void set_f64(struct emit *e, LLVMValueRef *reg, LLVMValueRef x)
{
    const struct pair pair = pair_of_f64(e, x);
    set(e, reg[0], pair.hi);
    set(e, reg[1], pair.lo);
}

LLVMValueRef larger_f64(struct emit *e, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef largest = LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealOGT, a, b, ""), a, b, "");
    return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealUNO, a, b, ""), LLVMBuildFAdd(e->b, a, b, ""), largest, "");
}

/* How a SCAN or TOTAL puts two values together, and what changes nothing. */
static LLVMValueRef combine(struct emit *e, bool maximum, LLVMValueRef a, LLVMValueRef b)
{
    return maximum ? larger_f64(e, a, b) : LLVMBuildFAdd(e->b, a, b, "");
}

static LLVMValueRef identity(struct emit *e, bool maximum)
{
    return LLVMConstReal(e->f64, maximum ? -1e30 : 0);
}

/* ---- sums across the thread block --------------------------------------------------------------------------- */

static LLVMValueRef shuffle_up(struct emit *e, LLVMValueRef x, uint32_t by)
{
    LLVMValueRef words = as(e, x, e->v2i32), moved = LLVMGetUndef(e->v2i32);
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef args[4] = {imm(e, -1), LLVMBuildExtractElement(e->b, words, imm(e, i), ""), imm(e, by), imm(e, 0)};
        moved = LLVMBuildInsertElement(e->b, moved, call(e, "llvm.nvvm.shfl.sync.up.i32", NULL, 0, args, 4), imm(e, i), "");
    }
    return as(e, moved, e->f64);
}

/* The value `by` lanes below, or the identity. */
static LLVMValueRef lane_before(struct emit *e, bool maximum, LLVMValueRef x, uint32_t by)
{
    LLVMValueRef has = LLVMBuildICmp(e->b, LLVMIntUGE, e->lane, imm(e, by), "");
    return choose(e, has, shuffle_up(e, x, by), identity(e, maximum));
}

struct scanned {
    LLVMValueRef inclusive, exclusive, total;
};

static struct scanned block_scan(struct emit *e, bool maximum, LLVMValueRef x)
{
    LLVMValueRef scratch = byte_offset(e, e->arena, imm(e, e->p->scratch_offset)), before = identity(e, maximum);
    for (uint32_t by = 1; by < 32; by *= 2)
        x = combine(e, maximum, x, lane_before(e, maximum, x, by));
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 31), ""));
    LLVMBuildStore(e->b, x, byte_offset(e, scratch, mul(e, e->warp, imm(e, 8))));
    end_if(e, after);
    barrier(e);
    LLVMValueRef total = before;
    for (uint32_t w = 0; w < e->p->threads / 32; w++) {
        LLVMValueRef part = LLVMBuildLoad2(e->b, e->f64, byte_offset(e, scratch, imm(e, 8 * w)), "");
        LLVMValueRef earlier = LLVMBuildICmp(e->b, LLVMIntULT, imm(e, w), e->warp, "");
        before = combine(e, maximum, before, choose(e, earlier, part, identity(e, maximum)));
        total = combine(e, maximum, total, part);
    }
    barrier(e); /* scratch may be written again */
    return (struct scanned){combine(e, maximum, before, x), combine(e, maximum, before, lane_before(e, maximum, x, 1)), total};
}

/* ---- scans and totals ----------------------------------------------------------------------------------------- */

/* An element of the operand; what is outside of the tensor changes nothing. */
static LLVMValueRef summand(struct emit *e, uint32_t a, const uint32_t held[TG_N_DIMS], bool maximum)
{
    const struct value *v = &e->p->values[a];
    LLVMValueRef x = get_f64(e, &e->registers[a][2 * thread_register(e->p, v, held)]), valid = place_of(e, v, held).valid;
    return valid ? choose(e, valid, x, identity(e, maximum)) : x;
}

/* The positions along which a scan runs have one running total. */
static LLVMValueRef running_total(struct emit *e, const struct op *op, const uint32_t held[TG_N_DIMS])
{
    const uint32_t along = tg_stmt_along(e->p->algorithm, &e->p->algorithm->body[op->stmt]);
    uint32_t first[TG_N_DIMS];
    for (uint32_t d = 0; d < TG_N_DIMS; d++)
        first[d] = along >> d & 1 ? 0 : held[d];
    return e->total[op->v][thread_register(e->p, &e->p->values[op->v], first)];
}

/* A scan and a total of the same operand share the work across the block. */
static struct scanned scan_block(struct emit *e, const struct op *op, const uint32_t held[TG_N_DIMS], bool maximum)
{
    const struct value *a = &e->p->values[op->a];
    if (e->scanned == a->operand && e->scanned_max == maximum && plan_held_count(e->p, a) == 1)
        return (struct scanned){e->scan_inclusive, e->scan_exclusive, e->scan_total};
    const struct scanned s = block_scan(e, maximum, summand(e, op->a, held, maximum));
    e->scanned = a->operand;
    e->scanned_max = maximum;
    e->scan_inclusive = s.inclusive;
    e->scan_exclusive = s.exclusive;
    e->scan_total = s.total;
    return s;
}

void emit_scan(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v], *a = &e->p->values[op->a];
    const tg_stmt *s = &e->p->algorithm->body[op->stmt];
    const bool maximum = s->flags & TG_MAXIMUM, across = plan_has_dim(a, e->p->thread_dim);
    uint32_t held[TG_N_DIMS] = {0};
    do {
        LLVMValueRef total = running_total(e, op, held), carried = get(e, e->f64, total);
        struct scanned x = {.exclusive = identity(e, maximum)};
        if (across)
            x = scan_block(e, op, held, maximum);
        else
            x.inclusive = x.total = summand(e, op->a, held, maximum);
        set_f64(e, &e->registers[op->v][2 * thread_register(e->p, v, held)],
                combine(e, maximum, carried, s->flags & TG_EXCLUSIVE ? x.exclusive : x.inclusive));
        set(e, total, combine(e, maximum, carried, x.total));
    } while (next_held(e->p, value_dims(a), held));
}

void emit_total(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v], *a = &e->p->values[op->a];
    const bool maximum = e->p->algorithm->body[op->stmt].flags & TG_MAXIMUM;
    const bool across = plan_has_dim(a, e->p->thread_dim) && !plan_has_dim(v, e->p->thread_dim);
    uint32_t held[TG_N_DIMS] = {0};
    do {
        LLVMValueRef total = running_total(e, op, held);
        LLVMValueRef x = across ? scan_block(e, op, held, maximum).total : summand(e, op->a, held, maximum);
        set(e, total, combine(e, maximum, get(e, e->f64, total), x));
        set_f64(e, &e->registers[op->v][2 * thread_register(e->p, v, held)], get(e, e->f64, total));
    } while (next_held(e->p, value_dims(a), held));
}

/* ---- products and states ------------------------------------------------------------------------------------------ */

/* v += a b, summed over held positions, and over the threads where v has no element for each. */
void emit_thread_dot(struct emit *e, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *v = &p->values[op->v], *a = &p->values[op->a], *b = &p->values[op->b];
    const bool plain = !p->algorithm->body[op->stmt].b;
    const bool across = !plan_has_dim(v, p->thread_dim) && (plan_has_dim(a, p->thread_dim) || plan_has_dim(b, p->thread_dim));
    uint32_t held[TG_N_DIMS] = {0};
    do {
        LLVMValueRef x = get(e, e->f32, e->registers[op->a][2 * thread_register(p, a, held)]);
        LLVMValueRef slot = e->registers[op->v][2 * thread_register(p, v, held)];
        if (!plain && !across) {
            LLVMValueRef args[3] = {x, get(e, e->f32, e->registers[op->b][2 * thread_register(p, b, held)]), get(e, e->f32, slot)};
            set(e, slot, call(e, "llvm.fma", &e->f32, 1, args, 3));
            continue;
        }
        if (!plain)
            x = LLVMBuildFMul(e->b, x, get(e, e->f32, e->registers[op->b][2 * thread_register(p, b, held)]), "");
        if (across)
            x = LLVMBuildFPTrunc(e->b, block_scan(e, false, LLVMBuildFPExt(e->b, x, e->f64, "")).total, e->f32, "");
        set(e, slot, LLVMBuildFAdd(e->b, get(e, e->f32, slot), x, ""));
    } while (next_held(p, value_dims(v) | value_dims(a) | value_dims(b), held));
}

void zero_thread(struct emit *e, const struct op *op)
{
    const uint32_t n = plan_held_count(e->p, &e->p->values[op->v]);
    const bool maximum = op->stmt >= 0 && (e->p->algorithm->body[op->stmt].flags & TG_MAXIMUM);
    for (uint32_t r = 0; r < 2 * n; r++) {
        LLVMValueRef nothing = real(e, maximum && r % 2 == 0 ? -1e30 : 0);
        set(e, e->registers[op->v][r], op->kind == OP_COPY ? get(e, e->f32, e->registers[op->a][r]) : nothing);
    }
    for (uint32_t r = 0; e->total[op->v] && r < n; r++)
        set(e, e->total[op->v][r], identity(e, maximum));
}

void init_thread(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    uint32_t held[TG_N_DIMS] = {0};
    const struct element_place at = place_of(e, v, held); /* states have no positions */
    zero_thread(e, op);
    if (op->tile)
        load_tile_element(e, op->v, op->tile, e->registers[op->v], at.index[0], at.index[1], both(e, at.valid, present(e, op->tile)));
}

void decay_thread(struct emit *e, const struct op *op)
{
    LLVMValueRef decay = exp2_approx(e, get(e, e->f32, e->registers[op->a][0]));
    for (uint32_t r = 0; r < plan_held_count(e->p, &e->p->values[op->v]); r++)
        set(e, e->registers[op->v][2 * r], LLVMBuildFMul(e->b, get(e, e->f32, e->registers[op->v][2 * r]), decay, ""));
}

void store_thread(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    uint32_t held[TG_N_DIMS] = {0};
    do {
        const struct element_place at = place_of(e, v, held);
        LLVMValueRef mine = plan_has_dim(v, e->p->thread_dim) ? at.valid : both(e, at.valid, LLVMBuildICmp(e->b, LLVMIntEQ, e->tid, imm(e, 0), ""));
        LLVMBasicBlockRef after = mine ? begin_if(e, mine) : NULL;
        store_element(e, op, &e->registers[op->v][2 * thread_register(e->p, v, held)], at.index[0], at.index[1]);
        if (after)
            end_if(e, after);
    } while (next_held(e->p, value_dims(v), held));
}

/* ---- loops ---------------------------------------------------------------------------------------------------------- */

static LLVMValueRef thread_trips(struct emit *e, const struct loop *loop)
{
    if (loop->trips)
        return imm(e, loop->trips);
    if (loop->dim == TG_BATCH)
        return argument(e, TG_ARG_SIZE, TG_SIZE_BATCH, 0);
    return ceil_div(e, loop->dim == TG_CHUNK ? e->at.chunks : e->at.length, loop->block);
}

static struct place place_at(struct emit *e, const struct nest *nest, const struct loop *loop, LLVMValueRef index)
{
    struct place at = e->at;
    if (loop->dim == TG_CHUNK && e->p->thread_dim != TG_CHUNK) {
        set_chunk(e, &at, nest->reverse ? sub(e, sub(e, at.chunks, imm(e, 1)), index) : index);
        return at;
    }
    at.start[loop->dim] = mul(e, index, imm(e, loop->block));
    if (loop->dim == TG_BATCH && e->p->shape.packed)
        set_sequence(e, &at, index);
    return at;
}

static void emit_guarded(struct emit *e, uint32_t begin, uint32_t end, uint32_t guard)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].guard == guard && e->p->ops[i].kind != OP_INIT) /* read early */
            emit_ops(e, i, i + 1);
}

static void load_nest(struct emit *e, const struct nest *nest, bool outer)
{
    for (uint32_t i = 0; i < nest->n_loads; i++)
        if (nest->n_loops < 2 || e->p->values[nest->loads[i]].outer == outer)
            load_thread(e, nest->loads[i]);
}

/* Scans start anew with every outer block. */
static void reset_scans(struct emit *e, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].kind == OP_SCAN)
            zero_thread(e, &(struct op){.kind = OP_ZERO, .stmt = e->p->ops[i].stmt, .v = e->p->ops[i].v});
}

/* What is read from memory in every step: tiles, and states of calls of one chunk. */
struct early {
    uint32_t n;
    uint8_t values[PLAN_MAX_LOADS + 8];
    bool outer[PLAN_MAX_LOADS + 8]; /* read by the outer loop */
};

static struct early find_early(const struct plan *p, const struct nest *nest, uint32_t begin, uint32_t end)
{
    struct early early = {0};
    for (uint32_t i = 0; i < nest->n_loads; i++) {
        early.outer[early.n] = nest->n_loops == 2 && p->values[nest->loads[i]].outer;
        early.values[early.n++] = nest->loads[i];
    }
    for (uint32_t i = begin; i < end; i++)
        if (p->ops[i].kind == OP_INIT && early.n < sizeof early.values)
            early.values[early.n++] = p->ops[i].v;
    return early;
}

static void load_step(struct emit *e, const struct nest *nest, uint32_t begin, uint32_t end)
{
    load_nest(e, nest, false);
    for (uint32_t i = begin; i < end; i++)
        if (e->p->ops[i].kind == OP_INIT)
            init_thread(e, &e->p->ops[i]);
}

/* How many steps to load ahead: as many as registers allow. */
static uint32_t steps_ahead(const struct plan *p, const struct loop *loop, const struct early *early)
{
    uint32_t registers = 0, beside = 0, ahead = STEPS_AHEAD;
    for (uint32_t i = 0; i < early->n; i++)
        if (!early->outer[i])
            registers += plan_held_count(p, &p->values[early->values[i]]);
    for (uint32_t i = 0; i < p->n_values; i++)
        beside += plan_held_count(p, &p->values[i]);
    while (ahead > 2 && ahead * registers + beside > REGISTERS_AHEAD)
        ahead /= 2;
    return loop->block > 1 ? 1 : ahead;
}

typedef LLVMValueRef *register_sets[STEPS_AHEAD][PLAN_MAX_LOADS + 8];

static void use_registers(struct emit *e, const struct early *early, uint32_t step, register_sets sets)
{
    for (uint32_t i = 0; i < early->n; i++)
        e->registers[early->values[i]] = sets[step][i];
}

static void make_registers(struct emit *e, const struct early *early, uint32_t ahead, register_sets sets)
{
    for (uint32_t i = 0; i < early->n; i++)
        for (uint32_t step = 0; step < ahead; step++)
            sets[step][i] = step == 0 ? e->registers[early->values[i]] : early->outer[i] ? sets[0][i] : new_registers(e, early->values[i]);
}

static void free_registers(const struct early *early, uint32_t ahead, register_sets sets)
{
    for (uint32_t i = 0; i < early->n; i++)
        for (uint32_t step = 1; step < ahead && !early->outer[i]; step++)
            free(sets[step][i]);
}

static void inner_loop(struct emit *e, const struct nest *nest, const struct loop *loop, uint32_t begin, uint32_t end)
{
    const struct early early = find_early(e->p, nest, begin, end);
    const uint32_t ahead = steps_ahead(e->p, loop, &early);
    register_sets sets;
    make_registers(e, &early, ahead, sets);
    LLVMValueRef base, trips = thread_trips(e, loop), last = sub(e, trips, imm(e, 1));
    const struct place outside = e->at;
    const struct counted l = loop_begin(e, trips, &base);
    struct place at[STEPS_AHEAD];
    for (uint32_t i = 0; i < ahead; i++) { /* behind the last step the last one is loaded again, and not used */
        at[i] = e->at = place_at(e, nest, loop, i ? smaller(e, add(e, base, imm(e, i)), last) : base);
        use_registers(e, &early, i, sets);
        load_step(e, nest, begin, end);
        e->at = outside;
    }
    for (uint32_t i = 0; i < ahead; i++) {
        LLVMBasicBlockRef after = i ? begin_if(e, less(e, add(e, base, imm(e, i)), trips)) : NULL;
        e->at = at[i];
        e->scanned = 0;
        use_registers(e, &early, i, sets);
        emit_guarded(e, begin, end, GUARD_ALWAYS);
        if (after)
            end_if(e, after);
    }
    use_registers(e, &early, 0, sets);
    free_registers(&early, ahead, sets);
    e->at = outside;
    e->scanned = 0;
    loop_end(e, &l, ahead);
}

uint32_t emit_thread_nest(struct emit *e, uint32_t begin)
{
    const struct nest *nest = &e->p->nests[e->p->ops[begin].n];
    const struct place outside = e->at;
    uint32_t end = begin;
    while (e->p->ops[end].kind != OP_END)
        end++;
    e->scanned = 0;
    if (nest->n_loops == 1) {
        reset_scans(e, begin + 1, end);
        inner_loop(e, nest, &nest->loops[0], begin + 1, end);
        return end;
    }
    LLVMValueRef index;
    const struct counted l = loop_begin(e, thread_trips(e, &nest->loops[0]), &index);
    e->at = place_at(e, nest, &nest->loops[0], index);
    load_nest(e, nest, true);
    reset_scans(e, begin + 1, end);
    emit_guarded(e, begin + 1, end, GUARD_FIRST);
    inner_loop(e, nest, &nest->loops[1], begin + 1, end);
    emit_guarded(e, begin + 1, end, GUARD_LAST);
    e->at = outside;
    loop_end(e, &l, 1);
    return end;
}
