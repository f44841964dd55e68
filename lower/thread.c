/* lower/thread.c - kernels without matrix products: one element a thread, or a few side by side.
 *
 * One dimension is shared out among the threads; positions may be held whole, in registers of every thread; the
 * others are loops (thread_loop.c) or the grid. Gates, max states and normaliser states, sums over groups and
 * batches, and decode steps are made of these. */
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "lower/emit.h"

#include <stdlib.h>
#include <string.h>

/* ---- elements ------------------------------------------------------------------------------------------- */

/* Next combination of the held positions in `mask`; false after the last. */
bool next_held(const struct plan *p, uint32_t mask, uint32_t held[TG_N_DIMS])
{
    for (uint32_t d = TG_N_DIMS - 1; d > 0; d--) {
        if (!(mask & p->held & 1u << d))
            continue;
        if (++held[d] < plan_held_of(p, d))
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
            r = r * plan_held_of(p, v->dims[i]) + held[v->dims[i]];
    return r;
}

/* Index of this thread's element inside the block of a dimension; NULL: the block has one element. */
LLVMValueRef thread_index(struct emit *e, uint32_t dim, const uint32_t held[TG_N_DIMS])
{
    if (dim == e->p->thread_dim && e->p->backwards) /* thread t of block b has the chunk that is the 128 b + t last */
        return sub(e, sub(e, e->at.chunks, imm(e, 1)), add(e, mul(e, e->at.start[dim], imm(e, 2)), e->tid));
    if (dim == e->p->thread_dim)
        return e->p->each > 1 ? add(e, mul(e, e->owner, imm(e, e->p->each)), imm(e, held[dim])) : e->owner;
    if (e->p->sharers && dim == plan_shared_dim(e->p)) { /* dealt out in groups: 16 bytes side by side */
        const uint32_t group = held[dim] / SHARED_OUT_GROUP, rest = held[dim] % SHARED_OUT_GROUP;
        return add(e, mul(e, e->sharer, imm(e, SHARED_OUT_GROUP)),
                   imm(e, group * SHARED_OUT_GROUP * e->p->sharers + rest));
    }
    return e->p->held >> dim & 1 ? imm(e, held[dim]) : NULL;
}

/* A thread block has one position of every chunk, which the last chunk may lack. */
static bool is_beyond_some_chunks(const struct plan *p, uint32_t dim)
{
    return plan_is_position(dim) && p->row->row[dim].role == TG_ROLE_P && p->row->row[TG_CHUNK].role != TG_ROLE_P &&
           p->row->row[TG_CHUNK].role != TG_ROLE_NONE;
}

/* `reading`: chunks behind the last are read as the last, and not used: no branch stands before a load. */
static struct element_place place_to(struct emit *e, const struct value *v, const uint32_t held[TG_N_DIMS],
                                     bool reading)
{
    struct element_place place = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_dims; i++) {
        LLVMValueRef index = thread_index(e, v->dims[i], held);
        if (!index && is_beyond_some_chunks(e->p, v->dims[i]))
            place.valid = both(e, place.valid, inside(e, &e->at, v->dims[i], 1, imm(e, 0)));
        if (!index || n == 2)
            continue;
        const bool clamps = reading && v->dims[i] == TG_CHUNK && (e->p->held >> TG_CHUNK & 1);
        index = clamps ? smaller(e, index, sub(e, e->at.chunks, imm(e, 1))) : index;
        LLVMValueRef is_inside = clamps ? NULL : inside(e, &e->at, v->dims[i], v->extent[i], index);
        place.valid = is_inside ? both(e, place.valid, is_inside) : place.valid;
        place.dims[n] = v->dims[i];
        place.index[n++] = index;
    }
    return place;
}

static struct element_place place_of(struct emit *e, const struct value *v, const uint32_t held[TG_N_DIMS])
{
    return place_to(e, v, held, false);
}

/* Of an element's registers, what lies behind it in memory too: how many, and how far from one to the next. */
static void set_neighbours(const struct plan *p, const struct value *v, uint32_t tile, struct element_place *at)
{
    const uint32_t last = plan_last_axis(p, tile);
    uint32_t step = 2;
    for (uint32_t i = v->n_dims; i-- > 0 && v->dims[i] != last;)
        step *= p->held >> v->dims[i] & 1 ? plan_held_of(p, v->dims[i]) : 1;
    at->n = plan_together(p, tile);
    at->between = at->n > 1 ? step - 2 : 0;
}

/* Moves to the next element of a value that is moved by itself: of those that go to or from the tile at once, the first. */
static bool next_moved(struct emit *e, uint32_t tile, uint32_t mask, uint32_t held[TG_N_DIMS])
{
    const uint32_t together = plan_together(e->p, tile), last = plan_last_axis(e->p, tile);
    bool more;
    do
        more = next_held(e->p, mask, held);
    while (more && held[last] % together);
    return more;
}

/* Of a thread's own tiles, what chunks behind the last one have: it is added to the state. */
static bool is_zero_behind(const struct plan *p, const struct value *v)
{
    return v->stmt < 0 && (p->held >> TG_CHUNK & 1) && plan_has_dim(v, TG_CHUNK) && v->space == SPACE_THREAD;
}

void load_thread(struct emit *e, uint32_t v)
{
    const struct value *value = &e->p->values[v];
    const uint32_t tile = TG_OPERAND_TILE(value->operand);
    uint32_t held[TG_N_DIMS] = {0};
    do {
        struct element_place at = place_to(e, value, held, true);
        set_neighbours(e->p, value, tile, &at);
        LLVMValueRef *registers = &e->registers[v][2 * thread_register(e->p, value, held)];
        load_element(e, v, registers, &at);
        for (uint32_t i = 0; i < at.n && is_zero_behind(e->p, value); i++)
            set(e, registers[2 * i],
                choose(e, less(e, imm(e, held[TG_CHUNK]), e->at.chunks), get(e, e->f32, registers[2 * i]), real(e, 0)));
    } while (next_moved(e, tile, value_dims(value), held));
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
    return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealUNO, a, b, ""), LLVMBuildFAdd(e->b, a, b, ""), largest,
                           "");
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

/* Of a float in two registers; `which` lane, and how far that counts. */
static LLVMValueRef shuffle_f64(struct emit *e, const char *shuffle, LLVMValueRef x, uint32_t which, uint32_t most)
{
    LLVMValueRef words = as(e, x, e->v2i32), moved = LLVMGetUndef(e->v2i32);
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef args[4] = {imm(e, -1), LLVMBuildExtractElement(e->b, words, imm(e, i), ""), imm(e, which),
                                imm(e, most)};
        moved = LLVMBuildInsertElement(e->b, moved, call(e, shuffle, NULL, 0, args, 4), imm(e, i), "");
    }
    return as(e, moved, e->f64);
}

/* The value `by` lanes below, or the identity. */
static LLVMValueRef lane_before(struct emit *e, bool maximum, LLVMValueRef x, uint32_t by)
{
    LLVMValueRef has = LLVMBuildICmp(e->b, LLVMIntUGE, e->lane, imm(e, by), "");
    return choose(e, has, shuffle_f64(e, "llvm.nvvm.shfl.sync.up.i32", x, by, 0), identity(e, maximum));
}

struct scanned {
    LLVMValueRef inclusive, exclusive, total;
};

/* A warp by itself needs no shared memory for it. */
static struct scanned block_scan(struct emit *e, bool maximum, LLVMValueRef x)
{
    LLVMValueRef scratch = byte_offset(e, e->arena, imm(e, e->p->scratch_offset)), before = identity(e, maximum);
    for (uint32_t by = 1; by < 32; by *= 2)
        x = combine(e, maximum, x, lane_before(e, maximum, x, by));
    if (e->p->threads == 32)
        return (struct scanned){x, lane_before(e, maximum, x, 1),
                                shuffle_f64(e, "llvm.nvvm.shfl.sync.idx.i32", x, 31, 31)};
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
    return (struct scanned){combine(e, maximum, before, x), combine(e, maximum, before, lane_before(e, maximum, x, 1)),
                            total};
}

/* ---- scans and totals ----------------------------------------------------------------------------------------- */

/* An element of the operand; what is outside of the tensor changes nothing. */
static LLVMValueRef summand(struct emit *e, uint32_t a, const uint32_t held[TG_N_DIMS], bool maximum)
{
    const struct value *v = &e->p->values[a];
    LLVMValueRef x = get_f64(e, &e->registers[a][2 * thread_register(e->p, v, held)]),
                 valid = place_of(e, v, held).valid;
    return valid ? choose(e, valid, x, identity(e, maximum)) : x;
}

/* All that the thread has side by side. */
static LLVMValueRef summands(struct emit *e, uint32_t a, const uint32_t held[TG_N_DIMS], bool maximum)
{
    LLVMValueRef x = summand(e, a, held, maximum);
    uint32_t at[TG_N_DIMS];
    memcpy(at, held, sizeof at);
    while (++at[e->p->thread_dim] < e->p->each)
        x = combine(e, maximum, x, summand(e, a, at, maximum));
    return x;
}

/* The positions along which a scan runs have one running total; NULL: they are all there at once. */
static LLVMValueRef running_total(struct emit *e, const struct op *op, const uint32_t held[TG_N_DIMS])
{
    if (e->p->values[op->a].nest < 0 && plan_is_position(e->p->thread_dim) &&
        plan_has_dim(&e->p->values[op->a], e->p->thread_dim))
        return NULL;
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
    if (e->scanned == a->operand && e->scanned_max == maximum && plan_held_count(e->p, a) == e->p->each)
        return (struct scanned){e->scan_inclusive, e->scan_exclusive, e->scan_total};
    const struct scanned s = block_scan(e, maximum, summands(e, op->a, held, maximum));
    e->scanned = a->operand;
    e->scanned_max = maximum;
    e->scan_inclusive = s.inclusive;
    e->scan_exclusive = s.exclusive;
    e->scan_total = s.total;
    return s;
}

/* Where the open loop is over something else, every step of it has a scan of its own. */
static void begin_scan(struct emit *e, const struct op *op)
{
    const struct plan *p = e->p;
    const int nest = p->values[op->v].nest;
    const uint32_t along = tg_stmt_along(p->algorithm, &p->algorithm->body[op->stmt]);
    for (uint32_t i = 0; nest >= 0 && i < p->nests[nest].n_loops; i++)
        if (along >> p->nests[nest].loops[i].dim & 1)
            return;
    if (nest >= 0)
        zero_thread(e, &(struct op){.kind = OP_ZERO, .stmt = op->stmt, .v = op->v});
}

/* Of what lies along the threads a thread has the first elements by what is before it, and the last by what the scan says. */
void emit_scan(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v], *a = &e->p->values[op->a];
    const tg_stmt *s = &e->p->algorithm->body[op->stmt];
    const uint32_t dim = e->p->thread_dim;
    const bool maximum = s->flags & TG_MAXIMUM,
               across = tg_stmt_along(e->p->algorithm, s) >> dim & 1; /* else each thread by itself */
    const uint32_t each = across ? e->p->each : 1, apart = value_dims(a) & ~(across ? 1u << dim : 0);
    uint32_t held[TG_N_DIMS] = {0};
    begin_scan(e, op);
    do {
        LLVMValueRef total = running_total(e, op, held), carried = total ? get(e, e->f64, total) : NULL;
        struct scanned x = {.exclusive = identity(e, maximum)};
        if (across)
            x = scan_block(e, op, held, maximum);
        else
            x.inclusive = x.total = summand(e, op->a, held, maximum);
        LLVMValueRef before = x.exclusive;
        for (uint32_t h = 0; h < each; h++) {
            held[dim] = across ? h : held[dim];
            LLVMValueRef inclusive =
                h + 1 < each ? combine(e, maximum, before, summand(e, op->a, held, maximum)) : x.inclusive;
            LLVMValueRef here = s->flags & TG_EXCLUSIVE ? before : inclusive;
            set_f64(e, &e->registers[op->v][2 * thread_register(e->p, v, held)],
                    carried ? combine(e, maximum, carried, here) : here);
            before = inclusive;
        }
        held[dim] = across ? 0 : held[dim];
        if (carried)
            set(e, total, combine(e, maximum, carried, x.total));
    } while (next_held(e->p, apart, held));
}

void emit_total(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v], *a = &e->p->values[op->a];
    const bool maximum = e->p->algorithm->body[op->stmt].flags & TG_MAXIMUM;
    const bool across = plan_has_dim(a, e->p->thread_dim) && !plan_has_dim(v, e->p->thread_dim);
    const uint32_t apart = value_dims(a) & ~(across ? 1u << e->p->thread_dim : 0);
    uint32_t held[TG_N_DIMS] = {0};
    do {
        LLVMValueRef total = running_total(e, op, held);
        LLVMValueRef x = across ? scan_block(e, op, held, maximum).total : summand(e, op->a, held, maximum);
        if (total)
            set(e, total, x = combine(e, maximum, get(e, e->f64, total), x));
        set_f64(e, &e->registers[op->v][2 * thread_register(e->p, v, held)], x);
    } while (next_held(e->p, apart, held));
}

/* ---- products and states ------------------------------------------------------------------------------------------ */

/* Position inside the chunk; in each held chunk there is but one. */
static LLVMValueRef position_of(struct emit *e, uint32_t dim, const uint32_t held[TG_N_DIMS])
{
    if (e->p->held >> TG_CHUNK & 1)
        return imm(e, 0);
    LLVMValueRef index = thread_index(e, dim, held);
    return index ? add(e, e->at.start[dim], index) : e->at.start[dim];
}

/* x times what is left of the key's position at the query's; 0 where the query comes before. */
static LLVMValueRef decayed(struct emit *e, const struct op *op, LLVMValueRef x, const uint32_t held[TG_N_DIMS])
{
    const struct plan *p = e->p;
    const bool strict = p->algorithm->body[op->stmt].flags & TG_EXCLUSIVE;
    LLVMValueRef decay = get(e, e->f32, e->registers[op->c][2 * thread_register(p, &p->values[op->c], held)]),
                 since = get(e, e->f32, e->registers[op->w][2 * thread_register(p, &p->values[op->w], held)]);
    x = LLVMBuildFMul(e->b, x, exp2_approx(e, LLVMBuildFSub(e->b, decay, since, "")), "");
    LLVMValueRef query = position_of(e, TG_LQ, held), key = position_of(e, TG_LKV, held);
    return choose(e, LLVMBuildICmp(e->b, strict ? LLVMIntSGT : LLVMIntSGE, query, key, ""), x, real(e, 0));
}

/* x, or 0 where the thread's part of that dimension reaches beyond the tensor. */
static LLVMValueRef zero_beyond(struct emit *e, LLVMValueRef x, const uint32_t held[TG_N_DIMS])
{
    const uint32_t dim = plan_shared_dim(e->p);
    LLVMValueRef is_inside = inside(e, &e->at, dim, e->p->block[dim], thread_index(e, dim, held));
    return is_inside ? choose(e, is_inside, x, real(e, 0)) : x;
}

/* The sum of what all threads have, in each of them. */
static LLVMValueRef add_threads(struct emit *e, LLVMValueRef x)
{
    const uint32_t warps = e->p->threads / 32;
    LLVMValueRef scratch = byte_offset(e, e->arena, imm(e, e->p->scratch_offset));
    for (uint32_t by = 1; by < 32; by *= 2)
        x = LLVMBuildFAdd(e->b, x, shuffle_xor(e, x, by), "");
    if (warps == 1)
        return x;
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, e->lane, imm(e, 0), ""));
    LLVMBuildStore(e->b, x, byte_offset(e, scratch, mul(e, e->warp, imm(e, 4))));
    end_if(e, after);
    barrier(e);
    x = LLVMBuildLoad2(e->b, e->f32, scratch, "");
    for (uint32_t w = 1; w < warps; w++)
        x = LLVMBuildFAdd(e->b, x, LLVMBuildLoad2(e->b, e->f32, byte_offset(e, scratch, imm(e, 4 * w)), ""), "");
    barrier(e); /* scratch may be written again */
    return x;
}

/* v += a b, summed over what is held. */
void dot_elements(struct emit *e, const struct op *op, uint32_t held[TG_N_DIMS], uint32_t mask)
{
    const struct plan *p = e->p;
    const struct value *v = &p->values[op->v], *a = &p->values[op->a], *b = &p->values[op->b];
    const bool plain = !p->algorithm->body[op->stmt].b, decays = plan_is_decayed(p, op),
               shared = plan_sums_shared(p, op);
    do {
        LLVMValueRef x = get(e, e->f32, e->registers[op->a][2 * thread_register(p, a, held)]);
        LLVMValueRef slot = e->registers[op->v][2 * thread_register(p, v, held)];
        x = shared ? zero_beyond(e, x, held) : x;
        if (!plain && !decays) {
            LLVMValueRef y = get(e, e->f32, e->registers[op->b][2 * thread_register(p, b, held)]);
            y = shared ? zero_beyond(e, y, held) : y;
            set(e, slot, fma_of(e, x, y, get(e, e->f32, slot)));
            continue;
        }
        if (!plain)
            x = LLVMBuildFMul(e->b, x, get(e, e->f32, e->registers[op->b][2 * thread_register(p, b, held)]), "");
        if (decays)
            x = decayed(e, op, x, held);
        set(e, slot, LLVMBuildFAdd(e->b, get(e, e->f32, slot), x, ""));
    } while (next_held(p, mask, held));
}

uint32_t dims_of_dot(const struct plan *p, const struct op *op)
{
    return value_dims(&p->values[op->v]) | value_dims(&p->values[op->a]) | value_dims(&p->values[op->b]);
}

/* The same, and over the threads: of each sum a thread makes its part from nothing. Elements beyond the tensor are none. */
static void dot_across(struct emit *e, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *v = &p->values[op->v], *a = &p->values[op->a], *b = &p->values[op->b];
    const uint32_t each = plan_held_of(p, p->thread_dim), all = dims_of_dot(p, op);
    uint32_t held[TG_N_DIMS] = {0};
    do {
        LLVMValueRef part = real(e, 0), slot = e->registers[op->v][2 * thread_register(p, v, held)];
        for (held[p->thread_dim] = 0; held[p->thread_dim] < each; held[p->thread_dim]++) {
            LLVMValueRef x = get(e, e->f32, e->registers[op->a][2 * thread_register(p, a, held)]);
            LLVMValueRef is_inside =
                inside(e, &e->at, p->thread_dim, p->block[p->thread_dim], thread_index(e, p->thread_dim, held));
            if (p->algorithm->body[op->stmt].b)
                x = LLVMBuildFMul(e->b, x, get(e, e->f32, e->registers[op->b][2 * thread_register(p, b, held)]), "");
            if (plan_is_decayed(p, op))
                x = decayed(e, op, x, held);
            part = LLVMBuildFAdd(e->b, part, is_inside ? choose(e, is_inside, x, real(e, 0)) : x, "");
        }
        held[p->thread_dim] = 0;
        set(e, slot, LLVMBuildFAdd(e->b, get(e, e->f32, slot), add_threads(e, part), ""));
    } while (next_held(p, all & ~(1u << p->thread_dim), held));
}

void emit_thread_dot(struct emit *e, const struct op *op)
{
    const struct plan *p = e->p;
    const bool across =
        !plan_has_dim(&p->values[op->v], p->thread_dim) &&
        (plan_has_dim(&p->values[op->a], p->thread_dim) || plan_has_dim(&p->values[op->b], p->thread_dim));
    uint32_t held[TG_N_DIMS] = {0};
    if (plan_sums_shared(e->p, op))
        dot_of_sharers(e, op);
    else if (across)
        dot_across(e, op);
    else
        dot_elements(e, op, held, dims_of_dot(e->p, op));
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

LLVMValueRef thread_address(struct emit *e, uint32_t v, uint32_t tile)
{
    const uint32_t held[TG_N_DIMS] = {0}; /* the first, where it has held positions */
    const struct element_place at = place_of(e, &e->p->values[v], held);
    return tensor_address(e, e->p->values[v].operand, tile, &e->at, at.dims, at.index[0], at.index[1]);
}

/* The initial state, which is there. */
void read_state(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    uint32_t held[TG_N_DIMS] = {0}; /* states have no positions */
    do {
        struct element_place at = place_of(e, v, held);
        set_neighbours(e->p, v, op->tile, &at);
        load_tile_element(e, op->v, op->tile, &e->registers[op->v][2 * thread_register(e->p, v, held)], &at);
    } while (next_moved(e, op->tile, value_dims(v) & (1u << e->p->thread_dim | 1u << plan_shared_dim(e->p)), held));
}

void init_thread(struct emit *e, const struct op *op)
{
    zero_thread(e, op);
    LLVMValueRef there = op->tile ? present(e, op->tile) : NULL;
    LLVMBasicBlockRef after = there ? begin_if(e, there) : NULL;
    if (op->tile)
        read_state(e, op);
    if (after)
        end_if(e, after);
}

/* A chunk behind the last one changes nothing: decay 1, and zeros for what is added, whose choice depends on no loop. */
void walk_thread(struct emit *e, const struct op *op)
{
    const struct plan *p = e->p;
    const struct value *a = &p->values[op->a], *b = &p->values[op->b], *decay = &p->values[op->c],
                       *w = &p->values[op->w];
    uint32_t held[TG_N_DIMS] = {0};
    do {
        LLVMValueRef slot = e->registers[op->w][2 * thread_register(p, w, held)];
        LLVMValueRef state = get(e, e->f32, slot), is_chunk = less(e, imm(e, held[TG_CHUNK]), e->at.chunks);
        LLVMValueRef y = get(e, e->f32, e->registers[op->b][2 * thread_register(p, b, held)]);
        y = is_zero_behind(p, b) ? y : choose(e, is_chunk, y, real(e, 0));
        LLVMValueRef by = exp2_approx(e, get(e, e->f32, e->registers[op->c][2 * thread_register(p, decay, held)]));
        if (p->algorithm->body[op->stmt].b)
            y = LLVMBuildFMul(e->b, get(e, e->f32, e->registers[op->a][2 * thread_register(p, a, held)]), y, "");
        set(e, e->registers[op->v][2 * thread_register(p, &p->values[op->v], held)], state);
        set(e, slot, fma_of(e, state, choose(e, is_chunk, by, real(e, 1)), y));
    } while (next_held(p, 1u << TG_CHUNK | value_dims(w), held));
}

LLVMValueRef thread_decay(struct emit *e, const struct op *op, uint32_t r)
{
    LLVMValueRef x = get(e, e->f32, e->registers[op->a][2 * r]);
    return plan_leaves_power(e->p, op->a) ? x : exp2_approx(e, x);
}

void decay_thread(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v], *g = &e->p->values[op->a];
    LLVMValueRef decay = NULL;
    uint32_t held[TG_N_DIMS] = {0};
    do {
        if (!decay || plan_held_count(e->p, g) > 1)
            decay = thread_decay(e, op, thread_register(e->p, g, held));
        LLVMValueRef slot = e->registers[op->v][2 * thread_register(e->p, v, held)];
        set(e, slot, LLVMBuildFMul(e->b, get(e, e->f32, slot), decay, ""));
    } while (next_held(e->p, value_dims(v), held));
}

/* Of the threads that have the same element, the one that writes it; NULL: there is but one. */
static LLVMValueRef is_writer(struct emit *e, const struct value *v)
{
    const bool owns = plan_has_dim(v, e->p->thread_dim);
    const bool shares = e->p->sharers > 1 && !plan_has_dim(v, plan_shared_dim(e->p));
    LLVMValueRef first = owns ? NULL : LLVMBuildICmp(e->b, LLVMIntEQ, e->owner, imm(e, 0), "");
    return shares ? both(e, first, LLVMBuildICmp(e->b, LLVMIntEQ, e->sharer, imm(e, 0), "")) : first;
}

void store_thread(struct emit *e, const struct op *op)
{
    const struct value *v = &e->p->values[op->v];
    uint32_t held[TG_N_DIMS] = {0};
    const bool is_state = !(tg_operand_mask(e->p->algorithm, (tg_operand)op->tile) & (1u << TG_T | 1u << TG_CHUNK));
    if (is_state && !plan_has_dim(v, e->p->thread_dim))
        barrier(e); /* it may lie where the initial one does, which all threads have read */
    do {
        struct element_place at = place_of(e, v, held);
        set_neighbours(e->p, v, op->tile, &at);
        LLVMValueRef mine = both(e, at.valid, is_writer(e, v));
        LLVMBasicBlockRef after = mine ? begin_if(e, mine) : NULL;
        store_element(e, op, &e->registers[op->v][2 * thread_register(e->p, v, held)], &at);
        if (after)
            end_if(e, after);
    } while (next_moved(e, op->tile, value_dims(v), held));
}
