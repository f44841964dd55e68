/* compiler/pipeline.c - copies from memory, and the waits and barriers that make them safe.
 *
 * What a nest loads every step goes through a ring of `stages` slots, one group of asynchronous copies a
 * step, issued P = stages - 1 steps ahead (P = stages where there are no more steps than slots: all at once). At the top of step f
 *     wait until only P - 1 groups are pending     the copies of this step have arrived (for this thread)
 *     barrier                                      ... for all threads; and all have left the slot of step f - 1
 *     issue step f + P into that slot
 * With one slot there is none to spare: a barrier, the copies of this step, and they are waited for.
 * What is loaded once is issued at the top of the kernel, before the prologue of the first nest, so that
 * everything is in flight together; one wait and one barrier stand before its first use.
 *
 * What the threads of a thread kernel share out (share.c) lies in shared memory too, filled before its nest; and what a
 * decode step that walks its tokens loads, of all tokens: a few rows, which no thread can load ahead one by one beside the
 * state that it holds.
 *
 * requires: nest, place   makes: loads of nests, OP_LOAD/COMMIT/PROLOGUE/WAIT/BARRIER, shared offsets */
#include "compiler/plan.h"
#include "compiler/plan_channel.h"
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"

#include <string.h>

static bool in_shared(const struct value *v)
{
    return v->space == SPACE_MATRIX || v->space == SPACE_VECTOR;
}

/* A matrix whose element type changes on the way goes through registers: the copy is not asynchronous. */
bool plan_is_async(const struct plan *p, const struct value *v)
{
    return in_shared(v) && v->dtype == plan_memory_dtype(p, TG_OPERAND_TILE(v->operand));
}

static void add_load(struct plan *p, uint32_t v)
{
    plan_add_op(p, OP_LOAD, -1)->v = (uint8_t)v;
}

static bool fill_rings(struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->stmt >= 0 || v->nest < 0 || v->direct || v->shared_with >= 0 || v->space == SPACE_CHANNEL)
            continue;
        struct nest *nest = &p->nests[v->nest];
        if (nest->n_loads == PLAN_MAX_LOADS) {
            plan_refuse(p, "TG0520", "split the kernel into two rows", "kernel %s loads more than %d tiles in one loop",
                        p->row->name, PLAN_MAX_LOADS);
            return false;
        }
        nest->loads[nest->n_loads++] = (uint8_t)i;
    }
    return true;
}

bool plan_is_shared_row(const struct plan *p, const struct value *v)
{
    return p->sharers && v->staged && plan_has_dim(v, plan_shared_dim(p));
}

/* Rows of tokens go there by units of 16 bytes, numbers by 4. What sharers read again and again becomes fp32 there. */
static void fetch_tokens(struct plan *p, const struct nest *nest)
{
    for (uint32_t i = 0; i < nest->n_loads; i++) {
        struct value *v = &p->values[nest->loads[i]];
        const uint32_t tile = TG_OPERAND_TILE(v->operand);
        uint32_t elements = 1;
        for (uint32_t d = 0; d < v->n_dims; d++)
            elements *= v->extent[d];
        v->row_bytes = elements * tg_dtype_bytes(v->dtype);
        v->stage_bytes = v->row_bytes * p->schedule->max_tokens;
        v->staged = tg_tile_has_t(p->algorithm, tile) && p->parts[tile] == 1 && v->dtype != TG_F32X2 &&
                    (v->row_bytes % 16 == 0 || v->dtype == TG_F32);
        for (uint32_t k = 0; k < i && v->staged && v->shared_with < 0; k++)
            if (p->values[nest->loads[k]].staged && TG_OPERAND_TILE(p->values[nest->loads[k]].operand) == tile)
                v->shared_with = (int8_t)nest->loads[k];
        if (!plan_is_shared_row(p, v) || v->dtype == TG_F32)
            continue;
        v->row_bytes = elements * tg_dtype_bytes(TG_F32);
        v->stage_bytes += v->row_bytes * p->schedule->max_tokens;
    }
}

/* A sum over what is shared out of nothing but what is there before the step? */
static bool is_early_sum(const struct plan *p, const struct op *op)
{
    const struct value *a = &p->values[op->a], *b = &p->values[op->b];
    return plan_sums_shared(p, op) && (a->stmt < 0 || a->nest < 0 || a->staged) &&
           (b->stmt < 0 || b->nest < 0 || b->staged);
}

/* Of a step in which threads share sums, those come first, behind what is made before the walk, that need nothing else of it: one loop over what is held makes all of
 * them (lower/thread.c), and threads exchange their parts of all at once. Each begins with the operation before it. */
static void sum_early(struct plan *p, uint32_t begin, uint32_t behind)
{
    uint32_t to = begin + 1 + behind;
    for (uint32_t i = to + 1; p->ops[i].kind != OP_END; i++) {
        if (!is_early_sum(p, &p->ops[i]) || p->ops[i - 1].kind != OP_ZERO || p->ops[i - 1].v != p->ops[i].v)
            continue;
        const struct op moved[2] = {p->ops[i - 1], p->ops[i]};
        memmove(&p->ops[to + 2], &p->ops[to], (i - 1 - to) * sizeof moved[0]);
        memcpy(&p->ops[to], moved, sizeof moved);
        to += 2;
    }
}

int plan_factor_beside(const struct plan *p, const struct op *op)
{
    const uint32_t dim = plan_shared_dim(p);
    const bool a = plan_has_dim(&p->values[op->a], dim), b = plan_has_dim(&p->values[op->b], dim);
    return a == b ? -1 : a ? op->b : op->a;
}

/* A state that decays by one number, and which in the loop from `begin` on such sums alone read: the number is a factor of
 * what they make, of what is added to the state, and of the state behind the last token. */
static void keep_decays_apart(struct plan *p, uint32_t begin)
{
    const int nest = p->ops[begin].n;
    tg_bits decayed = 0, others = 0;
    for (uint32_t i = begin + 1; p->ops[i].kind != OP_END; i++) {
        const struct op *op = &p->ops[i];
        uint8_t reads[TG_MAX_READS];
        const uint32_t n = plan_reads(p, op, reads);
        if (op->kind == OP_DECAY && p->values[op->a].n_dims == 0 && p->values[op->v].nest != nest)
            decayed |= TG_BIT(op->v);
        else if (op->kind != OP_DOT || plan_factor_beside(p, op) < 0)
            others |= TG_BIT(op->v);
        for (uint32_t k = 0; k < n && !(op->kind == OP_DECAY) && !is_early_sum(p, op); k++)
            others |= TG_BIT(reads[k]);
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        p->values[i].apart = (decayed & ~others) >> i & 1 && plan_has_dim(&p->values[i], plan_shared_dim(p)) &&
                             plan_has_dim(&p->values[i], p->thread_dim);
}

bool plan_maps_root_shared(const struct plan *p, const struct op *op)
{
    tg_operand reads[TG_MAX_READS];
    bool any = false;
    if (op->kind != OP_MAP)
        return false;
    for (uint32_t k = 0, n = tg_stmt_reads(&p->algorithm->body[op->stmt], reads); k < n; k++) {
        const int v = plan_find(p, reads[k], p->values[op->v].nest);
        any |= v >= 0 && in_shared(&p->values[v]) && p->values[v].nest < 0;
    }
    return any;
}

/* Does this operation read shared memory that the top of the kernel filled? */
static bool reads_root_shared(const struct plan *p, const struct op *op)
{
    if (op->kind == OP_NEST)
        return true;
    if (op->kind == OP_MAP)
        return plan_maps_root_shared(p, op);
    if (op->kind != OP_CONTRACT && op->kind != OP_DOT)
        return false;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (in_shared(&p->values[i]) && p->values[i].nest < 0)
            return true;
    return false;
}

/* In a kernel whose uniform part is shared out, what differs from thread to thread is loaded where it is first read:
 * behind the gates and what is uniform, which need all registers. */
static bool is_loaded_late(const struct plan *p, const struct value *v)
{
    bool shares = false;
    for (uint32_t n = 0; n < p->n_nests; n++)
        shares |= p->nests[n].shared_out;
    return shares && v->space == SPACE_THREAD && v->stmt < 0 && v->nest < 0;
}

/* Loads what operation i of `ops` reads, or anything in the nest that begins there; `loaded`: what is there already. */
static void add_late_loads(struct plan *p, const struct op *ops, uint32_t i, tg_bits *loaded)
{
    const bool is_nest = ops[i].kind == OP_NEST;
    for (;; i++) {
        uint8_t reads[TG_MAX_READS];
        const uint32_t n = p->thread_dim ? plan_reads(p, &ops[i], reads) : 0;
        for (uint32_t k = 0; k < n; k++)
            if (is_loaded_late(p, &p->values[reads[k]]) && !(*loaded >> reads[k] & 1)) {
                add_load(p, reads[k]);
                *loaded |= TG_BIT(reads[k]);
            }
        if (!is_nest || ops[i].kind == OP_END)
            return;
    }
}

static bool has_ring(const struct plan *p, uint32_t nest)
{
    return p->row->mma != TG_MMA_NONE && p->nests[nest].n_loads > 0;
}

static bool has_prologue(const struct plan *p, uint32_t nest)
{
    return has_ring(p, nest) || plan_walks_tokens(p, &p->nests[nest]);
}

/* The first product of the nest whose masked weights are zeros: its other operand is looked through for NaN. Where a chunk is
 * one block products do that as they fetch it. */
static const struct op *find_masked(const struct plan *p, const struct op *nest)
{
    for (const struct op *op = nest; op->kind != OP_END; op++)
        if (plan_is_masked(p, op))
            return p->slices->has_one_chunk ? NULL : op;
    return NULL;
}

static void add_wait(struct plan *p, uint32_t pending)
{
    plan_add_op(p, OP_WAIT, -1)->n = (uint8_t)pending;
}

/* The top of a step: `nest` begins it. */
static void begin_step(struct plan *p, const struct op *nest)
{
    const uint32_t ahead = p->nests[nest->n].steps_ahead;
    const struct op *masked = find_masked(p, nest);
    if (ahead) {
        add_wait(p, ahead - 1);
    } else {
        plan_add_op(p, OP_BARRIER, -1);
        plan_add_op(p, OP_ISSUE, -1)->n = nest->n;
        add_wait(p, 0);
    }
    struct op *visible = plan_add_op(p, OP_BARRIER, -1);
    if (masked) {
        visible->flags = OP_CAREFUL;
        visible->v = masked->b;
    }
    if (ahead)
        plan_add_op(p, OP_ISSUE, -1)->n = nest->n;
}

/* Rows of channels that are asynchronous copies too: those that are read first. */
static tg_bits find_early_rows(const struct plan *p)
{
    tg_bits early = 0;
    for (uint32_t i = 0; p->spreads && i < p->n_values; i++)
        if (plan_is_loaded_row(&p->values[i]) && plan_is_early_row(p, TG_OPERAND_TILE(p->values[i].operand)))
            early |= TG_BIT(i);
    return early;
}

/* What lanes have of a block, behind a barrier: all warps have read the block's before. */
static void load_channels(struct plan *p, uint32_t nest)
{
    if (!plan_has_blocks(p))
        return;
    plan_add_op(p, OP_BARRIER, -1);
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].stmt < 0 && p->values[i].nest == (int)nest && p->values[i].space == SPACE_CHANNEL)
            add_load(p, i);
}

/* Rebuilds the operation list with copies and synchronisation in it. */
static void insert_copies(struct plan *p)
{
    struct op old[PLAN_MAX_OPS];
    const uint32_t n = p->n_ops;
    memcpy(old, p->ops, n * sizeof old[0]);
    bool root_shared = false, root_async = false, late_rows = false;
    const tg_bits early = find_early_rows(p);
    p->n_ops = 0;
    for (uint32_t pass = 0; pass < 2; pass++) { /* asynchronous copies first, the blocking ones behind them */
        for (uint32_t i = 0; i < p->n_values; i++) {
            const struct value *v = &p->values[i];
            if (v->stmt < 0 && v->nest < 0 && !v->direct && v->shared_with < 0 && !is_loaded_late(p, v) &&
                (plan_is_async(p, v) || (early >> i & 1)) == (pass == 0)) {
                add_load(p, i);
                root_shared |= in_shared(v);
                root_async |= plan_is_async(p, v) || (early >> i & 1);
                late_rows |= pass == 1 && p->spreads && plan_is_loaded_row(v);
            }
        }
        if (pass == 0 && root_async)
            plan_add_op(p, OP_COMMIT, -1);
        if (pass == 0 && p->n_nests && has_prologue(p, 0))
            plan_add_op(p, OP_PROLOGUE, -1)->n = 0;
        if (pass == 1 && late_rows)
            plan_add_op(p, OP_COMMIT, -1);
    }
    bool visible = !root_shared;
    tg_bits loaded = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct op *op = &old[i];
        if (!visible && reads_root_shared(p, op)) {
            const bool is_nest = op->kind == OP_NEST;
            if (!is_nest || p->nests[op->n].n_loads == 0) { /* a ring's first step waits itself */
                add_wait(p, p->n_nests && has_prologue(p, 0) ? p->nests[0].steps_ahead : 0);
                if (!is_nest || !plan_has_blocks(p))
                    plan_add_op(p, OP_BARRIER, -1);
            }
            visible = true;
        }
        const bool is_shared_out = op->kind == OP_NEST && p->nests[op->n].shared_out;
        if (!is_shared_out)
            add_late_loads(p, old, i, &loaded);
        if (op->kind == OP_NEST && op->n > 0 && has_prologue(p, op->n)) {
            plan_add_op(p, OP_BARRIER, -1); /* all threads have left the ring of the nest before */
            plan_add_op(p, OP_PROLOGUE, -1)->n = op->n;
        }
        *plan_add_op(p, OP_NEST, -1) = *op;
        if (op->kind == OP_NEST && has_ring(p, op->n))
            begin_step(p, op);
        if (op->kind == OP_NEST)
            load_channels(p, op->n);
        if (is_shared_out)
            add_late_loads(p, old, i, &loaded); /* behind what is uniform */
    }
}

/* Places the shared tiles of a nest (-1: of the whole kernel) from `offset` on; returns their end. */
static uint32_t place_nest(struct plan *p, int nest, uint32_t offset)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        struct value *v = &p->values[i];
        if (v->nest != nest || !v->staged)
            continue;
        if (v->shared_with >= 0) {
            v->offset = p->values[v->shared_with].offset;
            continue;
        }
        v->offset = offset;
        offset += round_up(v->stage_bytes, 16);
    }
    const uint32_t matrices =
        (p->spreads || p->to_and_fro) && nest < 0; /* behind vectors, where scratch memory begins */
    for (uint32_t pass = 0; pass < 2; pass++)      /* matrices first: their swizzle wants 128-byte alignment */
        for (uint32_t i = 0; i < p->n_values; i++) {
            struct value *v = &p->values[i];
            if (v->nest != nest || v->space != (pass == matrices ? SPACE_MATRIX : SPACE_VECTOR))
                continue;
            if (v->shared_with >= 0) {
                v->offset = p->values[v->shared_with].offset;
                continue;
            }
            if (pass == matrices)
                offset = round_up(offset, 128);
            v->offset = offset;
            offset += v->stage_bytes * v->stages;
        }
    return offset;
}

/* The most uniform sums that a nest which is shared out makes. */
static uint32_t uniform_sums(const struct plan *p)
{
    const struct nest *nest = NULL;
    uint32_t n = 0, most = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_NEST || op->kind == OP_END) {
            nest = op->kind == OP_NEST ? &p->nests[op->n] : NULL;
            n = 0;
        } else if (nest && plan_is_uniform_sum(p, nest, op)) {
            n += plan_held_count(p, &p->values[op->v]);
        }
        most = n > most ? n : most;
    }
    return most;
}

uint32_t plan_waiting_before(const struct plan *p, uint32_t tensor, uint32_t bytes)
{
    tg_bits waiting = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_waits_with(&p->values[i], bytes))
            waiting |= TG_BIT(TG_OPERAND_TILE(p->values[i].operand));
    for (uint32_t t = 0; t < tensor; t++)
        n += waiting & TG_BIT(t) ? 1 : 0;
    return n;
}

/* One fp64 sum a warp, but for threads that have elements, if there is one; one mark a column. */
static uint32_t scratch_bytes(const struct plan *p)
{
    const uint32_t warps = p->threads / 32, sum_bytes = p->thread_dim && warps == 1 ? 0 : 8 * warps;
    uint32_t bytes = 0;
    if (p->spreads)
        return round_up(plan_spread_scratch(p), 16);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool sums = op->kind == OP_SCAN || op->kind == OP_TOTAL || op->kind == OP_DOT;
        const uint32_t wanted = p->by_channel && sums   ? plan_channel_scratch(p)
                                : sums                  ? sum_bytes
                                : op->kind == OP_SOLVE  ? 4 * p->values[op->v].extent[0] * plan_solve_pitch(p, op)
                                : op->kind == OP_ADD_UP ? 4 * p->threads * plan_fragment_elements(p, &p->values[op->v])
                                                        : 4 * plan_marked_columns(p, op);
        bytes = wanted > bytes ? wanted : bytes;
    }
    return round_up(bytes, 16);
}

/* Is scratch memory needed outside of nests alone, and by what stands between barriers? Rings may lie there then. */
static bool is_outside_nests(const struct plan *p)
{
    bool in_nest = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        in_nest = op->kind == OP_NEST || (in_nest && op->kind != OP_END);
        if (op->kind == OP_SCAN || op->kind == OP_TOTAL || op->kind == OP_DOT || plan_marked_columns(p, op) ||
            ((op->kind == OP_SOLVE || op->kind == OP_ADD_UP) && in_nest))
            return false;
    }
    return true;
}

/* Does no operation from the first gradient of a product with decays of channels on, or from an inverse on, read a tile of positions from
 * shared memory? Its scratch memory may begin where those lie. */
static bool is_read_before(const struct plan *p)
{
    bool needed = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        uint8_t reads[TG_MAX_READS + 2] = {op->a, op->b};
        needed |= plan_is_spread(p, op) || (p->to_and_fro && op->kind == OP_SOLVE);
        for (uint32_t k = op->kind == OP_CONTRACT ? 0 : 2, n = 2 + plan_reads(p, op, reads + 2); k < n; k++)
            if (needed && p->values[reads[k]].space == SPACE_MATRIX)
                return false;
    }
    return p->spreads || (p->to_and_fro && is_outside_nests(p));
}

/* Nests run one after the other and share the memory of their rings. */
static void place_shared(struct plan *p)
{
    const uint32_t begin = round_up(place_nest(p, -1, 0), 128);
    uint32_t end = begin;
    for (uint32_t n = 0; n < p->n_nests; n++) {
        const uint32_t nest_end = place_nest(p, (int)n, begin);
        end = nest_end > end ? nest_end : end;
    }
    uint32_t first = is_outside_nests(p)
                         ? begin
                         : end; /* the rings lie there, or all that products read before the first of others */
    for (uint32_t i = 0; is_read_before(p) && i < p->n_values; i++)
        if (p->values[i].space == SPACE_MATRIX && p->values[i].offset < first)
            first = p->values[i].offset;
    const uint32_t over = p->spreads ? plan_spread_vectors(p) : end - first;
    p->scratch_offset = round_up(end - first > over ? end - over : first, 16);
    const uint32_t scratch_end = p->scratch_offset + scratch_bytes(p);
    p->sums_offset = scratch_end > end ? scratch_end : round_up(end, 16);
    p->shared_bytes = p->sums_offset + uniform_sums(p) * 4 * (p->threads / 32);
}

enum { LEAST_STAGES = 2 };

/* Rings of so many stages, but no more than there are steps. */
static void set_stages(struct plan *p, uint32_t stages)
{
    for (uint32_t n = 0; n < p->n_nests; n++) {
        struct nest *nest = &p->nests[n];
        const uint32_t known = plan_known_steps(nest), most = known && known < stages ? known : stages;
        nest->stages = most > LEAST_STAGES ? most : LEAST_STAGES;
        plan_look_ahead(nest, p->row->mma);
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].nest >= 0 && in_shared(&p->values[i]))
            p->values[i].stages = (uint8_t)p->nests[p->values[i].nest].stages;
}

/* Where a row makes gradients with decays of channels: as many as it asks for, if there is room. */
static void fit_rings(struct plan *p)
{
    plan_keep_rows(p);
    for (uint32_t stages = p->row->stages; stages >= LEAST_STAGES; stages--) {
        set_stages(p, stages);
        place_shared(p);
        if (p->shared_bytes <= plan_shared_limit(p))
            break;
    }
}

bool pass_pipeline(struct plan *p)
{
    if (!fill_rings(p))
        return false;
    if (p->spreads)
        fit_rings(p);
    if (p->thread_dim)
        plan_share_out(p);
    for (uint32_t n = 0; n < p->n_nests; n++)
        if (plan_walks_tokens(p, &p->nests[n]))
            fetch_tokens(p, &p->nests[n]);
    for (uint32_t i = 0; p->sharers && i < p->n_ops; i++)
        if (p->ops[i].kind == OP_NEST) {
            sum_early(p, i, plan_walks_tokens(p, &p->nests[p->ops[i].n]) ? plan_make_early(p, i) : 0);
            keep_decays_apart(p, i);
            plan_keep_rows_apart(p, i);
        }
    insert_copies(p);
    if (p->n_ops > PLAN_MAX_OPS) {
        plan_refuse(p, "TG0507", "split the kernel into two rows", "kernel %s needs more than %d tile operations",
                    p->row->name, PLAN_MAX_OPS);
        return false;
    }
    if (p->spreads)
        plan_keep_rows(p);
    place_shared(p);
    return true;
}
