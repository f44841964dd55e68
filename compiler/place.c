/* compiler/place.c - where every tile lives.
 *
 * Vector kernels (no matrix product): thread t holds position t. Matrix kernels: operands in shared memory,
 * sums in registers in the accumulator layout, shared among the warps by rows (a product whose result is
 * the operand of another must keep whole rows in one warp) or by rows and columns.
 *
 * requires: nest   makes: space, dtype, row_bytes, stage_bytes, stages, lower of values; warps_m, warps_n, to_and_fro; columns.c: shares_columns */
#include "compiler/plan.h"
#include "compiler/plan_channel.h"
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"
#include "compiler/plan_walk.h"

static bool is_operand_of_contract(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_CONTRACT && (p->ops[i].a == v || p->ops[i].b == v))
            return true;
    return false;
}

/* Does an expression read the value? */
static bool is_read_by_map(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        if (p->ops[i].kind != OP_MAP && p->ops[i].kind != OP_COPY)
            continue; /* (a copy reads what its statement does) */
        tg_operand reads[TG_MAX_READS];
        const tg_stmt *s = &p->algorithm->body[p->ops[i].stmt];
        const uint32_t n = tg_stmt_reads(s, reads);
        for (uint32_t k = 0; k < n; k++)
            if (plan_find(p, reads[k], p->values[p->ops[i].v].nest) == (int)v)
                return true;
    }
    return false;
}

bool plan_is_on_the_fly(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    const tg_stmt *s = &p->algorithm->body[value->stmt];
    const bool is_map = s->op == TG_STMT_MAP && value->operand == s->out; /* else a copy, for the other position */
    if (!is_map || value->n_dims != 2 || !is_operand_of_contract(p, v) || is_read_by_map(p, v))
        return false;
    tg_operand reads[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(s, reads);
    bool matrix = false;
    for (uint32_t k = 0; k < n; k++) {
        const int a = plan_find(p, reads[k], value->nest);
        if (a >= 0 && p->values[a].n_dims == 2) {
            if (p->values[a].stmt >= 0)
                return false;
            matrix = true;
        }
    }
    return matrix;
}

int plan_fetched(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    tg_operand reads[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(&p->algorithm->body[value->stmt], reads);
    int fetched = -1;
    for (uint32_t k = 0; k < n; k++) {
        const int i = plan_find(p, reads[k], value->nest);
        if (i < 0 || p->values[i].n_dims != 2)
            continue;
        const bool is_io = p->algorithm->tensors[TG_OPERAND_TILE(reads[k])].dtype == TG_IO;
        if (fetched < 0 || is_io || p->algorithm->tensors[TG_OPERAND_TILE(p->values[fetched].operand)].dtype != TG_IO)
            fetched = i;
    }
    return fetched;
}

/* Is the loaded matrix a decay, or a weight beside what a product fetches? Then it stays fp32 in shared memory. */
static bool is_weight(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (plan_is_decayed(p, op) && (op->c == v || op->w == v))
            return true;
        const struct value *out = &p->values[op->v];
        tg_operand reads[TG_MAX_READS];
        const uint32_t n =
            op->kind == OP_MAP && out->space == SPACE_OPERAND ? tg_stmt_reads(&p->algorithm->body[op->stmt], reads) : 0;
        for (uint32_t k = 0; k < n; k++)
            if (plan_find(p, reads[k], out->nest) == (int)v && plan_fetched(p, op->v) != (int)v)
                return true;
    }
    return false;
}

/* A map that was made again before anything read it, see need() in statement.c? */
static bool is_made_in_vain(const struct plan *p, uint32_t v)
{
    const struct value *value = &p->values[v];
    for (uint32_t i = v + 1; i < p->n_values; i++)
        if (p->values[i].operand == value->operand && p->values[i].stmt == value->stmt)
            return !is_operand_of_contract(p, v) && !is_read_by_map(p, v) && !value->stored;
    return false;
}

static bool is_dot(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_DOT && p->ops[i].v == v)
            return true;
    return false;
}

/* Does a map of channels read the vector of positions? */
static bool is_beside_channels(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; p->by_channel && i < p->n_ops; i++) {
        const struct value *out = &p->values[p->ops[i].v];
        tg_operand reads[TG_MAX_READS];
        const bool maps = p->ops[i].kind == OP_MAP && plan_is_of_channels(p, out);
        const uint32_t n = maps ? tg_stmt_reads(&p->algorithm->body[p->ops[i].stmt], reads) : 0;
        for (uint32_t k = 0; k < n; k++)
            if (plan_find(p, reads[k], out->nest) == (int)v)
                return true;
    }
    return false;
}

bool plan_is_beside(const struct plan *p, uint32_t v)
{
    return p->values[v].space == SPACE_ROWS && p->values[v].stmt >= 0 && is_beside_channels(p, v);
}

uint32_t plan_beside_before(const struct plan *p, uint32_t tensor)
{
    tg_bits beside = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_beside(p, i))
            beside |= TG_BIT(TG_OPERAND_TILE(p->values[i].operand));
    for (uint32_t t = 0; t < tensor; t++)
        n += beside & TG_BIT(t) ? 1 : 0;
    return n;
}

/* Does a tile in registers read the vector along its columns? */
static bool is_column(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct value *out = &p->values[p->ops[i].v];
        tg_operand reads[TG_MAX_READS];
        const uint32_t n = p->ops[i].kind == OP_MAP ? tg_stmt_reads(&p->algorithm->body[p->ops[i].stmt], reads) : 0;
        for (uint32_t k = 0; k < n; k++)
            if (plan_find(p, reads[k], out->nest) == (int)v && out->n_dims == 2 && p->values[v].n_dims == 1 &&
                p->values[v].dims[0] == out->dims[1])
                return true;
    }
    return false;
}

bool plan_is_read_while_fetched(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        for (uint32_t side = 0; op->kind == OP_CONTRACT && side < 2; side++) {
            const struct value *operand = &p->values[side ? op->b : op->a];
            tg_operand reads[TG_MAX_READS];
            const uint32_t n = operand->stmt >= 0 && plan_is_on_the_fly(p, side ? op->b : op->a)
                                   ? tg_stmt_reads(&p->algorithm->body[operand->stmt], reads)
                                   : 0;
            for (uint32_t k = 0; k < n; k++)
                if (plan_find(p, reads[k], operand->nest) == (int)v && p->values[v].n_dims == 1 &&
                    p->values[v].dims[0] != p->values[op->v].dims[0])
                    return true;
        }
    }
    return false;
}

static bool inverts(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_SOLVE)
            return true;
    return false;
}

/* Is a vector along rows copied, in a kernel that inverts, where a chunk is one block? It has no registers to spare for one that is
 * loaded along columns too; and where all copies are under way at once, none is to be waited for before them. */
static bool is_copied_row(const struct plan *p, uint32_t v)
{
    if (!p->one_block || !inverts(p) || !plan_is_position(p->values[v].dims[0]))
        return false;
    bool any = p->n_nests && plan_known_steps(&p->nests[0]) == p->nests[0].steps_ahead && !p->spreads;
    for (uint32_t i = 0; i < p->n_values; i++)
        any |= i != v && p->values[i].stmt < 0 && p->values[i].nest == p->values[v].nest &&
               TG_OPERAND_TILE(p->values[i].operand) == TG_OPERAND_TILE(p->values[v].operand) && is_column(p, i);
    return any;
}

static enum space space_of(const struct plan *p, uint32_t i)
{
    const struct value *v = &p->values[i];
    if (p->row->mma == TG_MMA_NONE) {
        const bool is_own = plan_has_dim(v, p->thread_dim) || (p->sharers && plan_has_dim(v, plan_shared_dim(p)));
        return is_own ? SPACE_THREAD : SPACE_UNIFORM;
    }
    if (plan_is_of_channels(p, v))
        return SPACE_CHANNEL;
    if (v->direct)
        return SPACE_FRAGMENT;
    if (v->stmt >= 0 && v->n_dims < 2) {
        const bool is_row = v->n_dims == 0 || plan_is_position(v->dims[0]);
        return !is_row || (v->nest >= 0 && !is_dot(p, i)) ? SPACE_NONE : v->n_dims ? SPACE_ROWS : SPACE_UNIFORM;
    }
    if (v->stmt >= 0)
        return plan_is_on_the_fly(p, i) || is_made_in_vain(p, i) ? SPACE_OPERAND : SPACE_FRAGMENT;
    if (v->n_dims == 2)
        return SPACE_MATRIX;
    if (v->nest >= 0 || (v->n_dims && is_beside_channels(p, i)) || (v->n_dims && plan_is_width(v->dims[0])) ||
        is_column(p, i) || (v->n_dims && is_copied_row(p, i)) || plan_is_read_while_fetched(p, i))
        return SPACE_VECTOR;
    return v->n_dims == 0 ? SPACE_UNIFORM : SPACE_ROWS;
}

static void layout_matrix(const struct plan *p, struct value *v)
{
    const bool is_f32 = plan_memory_dtype(p, TG_OPERAND_TILE(v->operand)) == TG_F32;
    v->dtype =
        is_f32 && is_weight(p, (uint32_t)(v - p->values)) ? TG_F32 : p->shape.io; /* what the instruction takes */
    const uint32_t units = v->extent[1] * tg_dtype_bytes(v->dtype) / 16;
    uint32_t pitch = 1;
    while (pitch < units && pitch < 8)
        pitch *= 2;
    if (units > 8)
        pitch = round_up(units, 8); /* the swizzle permutes 8 units of 16 bytes */
    v->row_bytes = pitch * 16;
    v->stage_bytes = v->row_bytes * v->extent[0];
}

/* What is computed on fetched operands begins with the matrix as it is fetched, rounded to the input type; what it reads
 * beside that one is in the input type or in fp32. */
static bool check_on_the_fly(const struct plan *p, uint32_t v)
{
    const struct value *out = &p->values[v];
    const tg_stmt *s = &p->algorithm->body[out->stmt];
    tg_operand reads[TG_MAX_READS];
    for (uint32_t k = 0, n = tg_stmt_reads(s, reads); k < n; k++) {
        const int a = plan_find(p, reads[k], out->nest);
        const tg_dtype dtype = plan_memory_dtype(p, TG_OPERAND_TILE(reads[k]));
        const bool is_fetched = a == plan_fetched(p, v);
        if (p->values[a].n_dims != 2 || dtype == p->shape.io || (dtype == TG_F32 && !is_fetched))
            continue;
        plan_refuse(p, "TG0523", "let an earlier row (without matrix products) write it",
                    "kernel %s would compute operand %s from %s while it fetches it, which it would round to the input "
                    "type first",
                    p->row->name, plan_tensor(p, out)->name, plan_tensor(p, &p->values[a])->name);
        return false;
    }
    return true;
}

static bool place_value(struct plan *p, uint32_t i)
{
    struct value *v = &p->values[i];
    const tg_tensor *tensor = plan_tensor(p, v);
    v->space = space_of(p, i);
    const tg_dtype in_memory = plan_memory_dtype(p, TG_OPERAND_TILE(v->operand));
    v->dtype = (v->stmt >= 0 || v->direct) && in_memory != TG_F32X2 ? TG_F32 : in_memory;
    if (v->nest >= 0 && p->nests[v->nest].n_loops == 2) {
        const uint32_t inner = p->nests[v->nest].loops[1].dim;
        const uint32_t mask =
            tg_operand_mask(p->algorithm, v->operand) | tg_tile_implicit(p->algorithm, TG_OPERAND_TILE(v->operand));
        v->outer = !(mask >> inner & 1);
    }
    if (v->space == SPACE_NONE) {
        plan_refuse(p, "TG0510", "let an earlier row (roles: chunk P, Lkv W) write it",
                    "kernel %s computes the vector %s, but a kernel with matrix products takes vectors from memory",
                    p->row->name, tensor->name);
        return false;
    }
    if (v->space == SPACE_OPERAND && !check_on_the_fly(p, i))
        return false;
    if (v->space == SPACE_VECTOR)
        v->stage_bytes = round_up(tg_dtype_bytes(v->dtype) * (v->n_dims ? v->extent[0] : 1), 16);
    if ((v->space == SPACE_MATRIX || v->space == SPACE_VECTOR) && v->nest >= 0)
        v->stages = (uint8_t)p->nests[v->nest].stages;
    return true;
}

/* A matrix lies in shared memory in one element type: what a product fetches is rounded, a decay is not. */
static bool check_weight(const struct plan *p, uint32_t v)
{
    const bool is_f32 = plan_memory_dtype(p, TG_OPERAND_TILE(p->values[v].operand)) == TG_F32;
    if (!is_f32 || p->shape.io == TG_F32 || !is_weight(p, v))
        return true;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const bool maps = op->kind == OP_MAP && p->values[op->v].space == SPACE_OPERAND;
        if ((op->kind == OP_CONTRACT && (op->a == v || op->b == v)) || (maps && plan_fetched(p, op->v) == (int)v)) {
            plan_refuse(p, "TG0526", "let an earlier row write a copy of it",
                        "kernel %s has %s as a decay or a weight and multiplies by it on tensor cores too",
                        p->row->name, plan_tensor(p, &p->values[v])->name);
            return false;
        }
    }
    return true;
}

/* Where lanes have channels, products of these are those with a decay. */
static bool check_channels(const struct plan *p, const struct op *op)
{
    const bool of_channels =
        op->kind == OP_CONTRACT && (p->values[op->v].space == SPACE_CHANNEL ||
                                    p->values[op->a].space == SPACE_CHANNEL || p->values[op->b].space == SPACE_CHANNEL);
    if (!of_channels || plan_is_decayed(p, op))
        return true;
    plan_refuse(p, "TG0535", "let a row of its own make it",
                "kernel %s has channels in registers: %s is a product of them without a decay", p->row->name,
                plan_tensor(p, &p->values[op->v])->name);
    return false;
}

/* Products with a decay: positions x positions, or spread from a computed tile; one channel, in shared memory. */
static bool check_decayed(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (!check_channels(p, op))
            return false;
        if (!plan_is_decayed(p, op))
            continue;
        const struct value *out = &p->values[op->v], *gate = &p->values[op->c];
        const bool is_pair = plan_is_position(out->dims[0]) && out->n_dims == 2 && plan_is_position(out->dims[1]);
        const bool is_spread = out->n_dims == 2 && plan_is_position(out->dims[0]) && plan_has_dim(out, gate->dims[1]);
        const uint32_t left = plan_has_dim(&p->values[op->a], out->dims[0]) ? op->a : op->b;
        const bool of_channels = op->kind == OP_CONTRACT && is_pair && out->dims[0] == TG_LQ &&
                                 gate->space == SPACE_CHANNEL && p->values[op->w].space == SPACE_CHANNEL &&
                                 p->values[op->a].space == SPACE_CHANNEL && p->values[op->b].space == SPACE_CHANNEL;
        const bool spreads = plan_is_spread(p, op) && p->values[left].space == SPACE_FRAGMENT &&
                             p->values[left == op->a ? op->b : op->a].space == SPACE_CHANNEL;
        if (of_channels || spreads)
            continue;
        if (op->kind == OP_CONTRACT && gate->n_dims == 2 && gate->space == SPACE_MATRIX &&
            p->values[op->w].space == SPACE_MATRIX &&
            ((is_pair && p->values[left].space != SPACE_FRAGMENT) ||
             (is_spread && p->values[left].space == SPACE_FRAGMENT)))
            continue;
        plan_refuse(
            p, "TG0527",
            gate->n_dims < 2 ? "multiply the product by 2^(decay - since) with TG_MAP_TO and TG_CAUSAL"
                             : "let an earlier row write the decay; spread a tile that this kernel computes",
            "kernel %s: the decay of %s cannot be evaluated on tensor cores: expected a decay of a channel, from "
            "memory, of positions x positions or of a computed tile of them by a loaded one",
            p->row->name, plan_tensor(p, out)->name);
        return false;
    }
    return true;
}

/* Do the warps' tiles of wm x wn divide all fragments? */
static bool split_fits(const struct plan *p, uint32_t wm, uint32_t wn)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->space == SPACE_FRAGMENT && (v->extent[0] % (16 * wm) || v->extent[1] % (16 * wn)))
            return false;
    }
    return true;
}

/* Sum over fragments of the operand elements a warp fetches: rows + columns of its tile. */
static uint32_t split_cost(const struct plan *p, uint32_t wm, uint32_t wn)
{
    uint32_t cost = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_FRAGMENT)
            cost += p->values[i].extent[0] / wm + p->values[i].extent[1] / wn;
    return cost;
}

static bool split_warps(struct plan *p)
{
    bool chained = p->by_channel;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        chained |= op->kind == OP_CONTRACT &&
                   (p->values[op->a].space == SPACE_FRAGMENT || p->values[op->b].space == SPACE_FRAGMENT);
        chained |=
            op->kind == OP_SOLVE || (op->kind == OP_DOT && p->values[op->v].n_dims == 1); /* whole rows in one warp */
    }
    uint32_t best = 0;
    for (uint32_t wn = 1; wn <= (chained ? 1u : p->row->warps); wn++) {
        const uint32_t wm = p->row->warps / wn;
        if (wm * wn != p->row->warps || !split_fits(p, wm, wn) || (p->warps_m && split_cost(p, wm, wn) >= best))
            continue;
        best = split_cost(p, wm, wn);
        p->warps_m = wm;
        p->warps_n = wn;
    }
    if (p->warps_m || plan_share_columns(p))
        return true;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (v->space == SPACE_FRAGMENT)
            plan_refuse(p, "TG0512", "change warps or the block so that every warp gets a multiple of 16 rows",
                        "kernel %s: %u warps cannot share tile %s of %u x %u%s", p->row->name, p->row->warps,
                        plan_tensor(p, v)->name, v->extent[0], v->extent[1],
                        chained ? " by rows (its product feeds another one)" : "");
    }
    return false;
}

/* Is what the map makes zero above the diagonal of a chunk, whose queries are rows? */
static bool is_masked_map(const struct plan *p, const struct op *op)
{
    const struct value *v = &p->values[op->v];
    const tg_x *expr = p->algorithm->body[op->stmt].expr;
    uint32_t last = 0;
    while (last + 1 < TG_MAX_EXPR && expr[last + 1].op != TG_X_END)
        last++;
    return v->n_dims == 2 && v->dims[0] == TG_LQ && v->dims[1] == TG_LKV &&
           (expr[last].op == TG_X_CAUSAL || expr[last].op == TG_X_BEFORE);
}

/* Does nothing but such maps read the product, element by element? */
static bool is_read_below(const struct plan *p, uint32_t v)
{
    bool wanted = p->values[v].stored || is_operand_of_contract(p, v);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        tg_operand reads[TG_MAX_READS];
        const uint32_t n = op->stmt >= 0 && op->v != v ? tg_stmt_reads(&p->algorithm->body[op->stmt], reads) : 0;
        for (uint32_t k = 0; k < n; k++)
            wanted |= reads[k] == p->values[v].operand && !(op->kind == OP_MAP && is_masked_map(p, op));
    }
    return !wanted;
}

/* A kernel that inverts: what of its tiles is below the diagonal, and how the warps share that. */
static void find_lower(struct plan *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        p->to_and_fro |= p->ops[i].kind == OP_SOLVE;
    for (uint32_t i = 0; i < p->n_ops; i++)
        p->to_and_fro &= !plan_is_decayed(p, &p->ops[i]);
    for (uint32_t i = 0; p->to_and_fro && i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        struct value *v = &p->values[op->v];
        if (v->space == SPACE_FRAGMENT)
            v->lower = op->kind == OP_MAP        ? is_masked_map(p, op)
                       : op->kind == OP_CONTRACT ? is_read_below(p, op->v)
                                                 : v->lower || (op->kind == OP_SOLVE && v->dims[0] == TG_LQ);
    }
}

/* A thread kernel: one dimension has one element a thread; what else a tile has is looped, in the grid, or held. */
static bool check_thread_kernel(const struct plan *p)
{
    if (!p->thread_dim) {
        plan_refuse(p, "TG0513", "make one block 32 x warps",
                    "kernel %s has no matrix products: one of its dimensions must have a block of %u (32 x warps)",
                    p->row->name, p->threads);
        return false;
    }
    const uint32_t positions = 1u << TG_LQ | 1u << TG_LKV;
    if ((p->held & positions) == positions && p->block[TG_LQ] != p->block[TG_LKV]) {
        plan_refuse(p, "TG0514", "give both the same block",
                    "kernel %s holds %u positions of queries and %u of keys, which are the same tokens", p->row->name,
                    p->block[TG_LQ], p->block[TG_LKV]);
        return false;
    }
    for (uint32_t d = 1; d < TG_N_DIMS; d++) {
        const bool used = (p->slice.dims >> d & 1) && d != TG_T;
        if (d == p->thread_dim || (p->held >> d & 1) || !used || d == TG_BATCH || d == TG_MEMBER)
            continue;
        const uint32_t one = d == TG_CHUNK ? plan_chunks_together(p) : 1;
        if (p->row->row[d].role == TG_ROLE_NONE || p->block[d] != one) {
            plan_refuse(p, "TG0514", "give it a role and the block 1",
                        "kernel %s has no matrix products: its block of %s must be 1, not %u", p->row->name,
                        tg_dim_name(d), p->row->row[d].role == TG_ROLE_NONE ? 0 : p->block[d]);
            return false;
        }
    }
    return true;
}

/* Threads that share out dqk add up what they have of a sum over it. Sums over the others of the thread block, or scans, they
 * do not make. */
static bool check_sums_of_sharers(const struct plan *p)
{
    for (uint32_t i = 0; p->sharers && i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const struct value *v = &p->values[op->v], *a = &p->values[op->a], *b = &p->values[op->b];
        const uint32_t dim = p->thread_dim, shared = plan_shared_dim(p);
        const bool sums = op->kind == OP_DOT && !plan_has_dim(v, dim) && (plan_has_dim(a, dim) || plan_has_dim(b, dim));
        const bool totals = op->kind == OP_TOTAL && ((plan_has_dim(a, dim) && !plan_has_dim(v, dim)) ||
                                                     (plan_has_dim(a, shared) && !plan_has_dim(v, shared)));
        if (!sums && !totals)
            continue;
        plan_refuse(p, "TG0533", "let another row make it",
                    "kernel %s: threads share out %s, and %s would be a sum over %s", p->row->name, tg_dim_name(shared),
                    plan_tensor(p, v)->name,
                    totals && plan_has_dim(a, shared) ? tg_dim_name(shared) : tg_dim_name(dim));
        return false;
    }
    return true;
}

/* The schedule says which instruction; the types must be able to. */
static bool check_instruction(const struct plan *p)
{
    const bool is_f32 = p->shape.io == TG_F32;
    if (p->row->mma == TG_MMA_NONE || (p->row->mma == TG_MMA_TF32X3) == is_f32)
        return true;
    plan_refuse(p, "TG0515", is_f32 ? "use a schedule with TG_MMA_TF32X3" : "use a schedule with TG_MMA_SYNC",
                "kernel %s: mma.sync m16n8k%u takes %s operands, the inputs are %s", p->row->name, is_f32 ? 16 : 8,
                is_f32 ? "bf16 or f16" : "f32", tg_dtype_name(p->shape.io));
    return false;
}

/* The checker lets a sum run over a parallel position if one block is the whole chunk. The chunk size is a
 * run-time value here, and another one would leave parts of the sum in other thread blocks. */
static bool check_whole_chunk(const struct plan *p)
{
    for (uint32_t d = TG_LQ; d <= TG_LKV; d++)
        if (p->row->row[d].role == TG_ROLE_P && ((p->slice.summed | p->slice.scanned) >> d & 1)) {
            plan_refuse(p, "TG0516", "give it the role L or W",
                        "kernel %s sums over %s, which is parallel: that is a whole sum at one chunk size only",
                        p->row->name, tg_dim_name(d));
            return false;
        }
    return true;
}

/* Blocks of positions that a sequence has not do nothing: of an empty one, none would write the final state. */
static bool check_finals(const struct plan *p)
{
    const bool parallel = p->row->row[TG_LQ].role == TG_ROLE_P || p->row->row[TG_LKV].role == TG_ROLE_P;
    for (uint32_t s = 0; parallel && s < p->algorithm->n_body; s++) {
        const tg_stmt *stmt = &p->algorithm->body[s];
        const uint32_t tile = TG_OPERAND_TILE(stmt->final_);
        if (stmt->op != TG_STMT_CARRY || !tile || !(p->slice.stores >> tile & 1))
            continue;
        plan_refuse(p, "TG0506", "let another row list it",
                    "kernel %s writes the final state %s, but its positions are parallel", p->row->name,
                    p->algorithm->tensors[tile].name);
        return false;
    }
    return true;
}

bool pass_place(struct plan *p)
{
    if (!check_instruction(p) || !check_whole_chunk(p) || !check_finals(p))
        return false;
    bool ok = p->row->mma != TG_MMA_NONE || (check_thread_kernel(p) && check_sums_of_sharers(p));
    for (uint32_t i = 0; i < p->n_values; i++)
        ok = place_value(p, i) && ok;
    if (!ok || p->row->mma == TG_MMA_NONE)
        return ok;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->values[i].space == SPACE_MATRIX && check_weight(p, i))
            layout_matrix(p, &p->values[i]);
        else if (p->values[i].space == SPACE_MATRIX)
            return false;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_loaded(&p->values[i]) || (p->values[i].space == SPACE_VECTOR && p->values[i].stmt < 0))
            plan_share_tile(p, i);
    find_lower(p);
    return check_decayed(p) && plan_check_operands(p) && split_warps(p);
}
