/* tests/declarations/schedule.c - random schedules: which tiles are in memory, which kernel writes which of them, and roles
 * that its slice allows for; most of the time, and then some field is changed. */
#include "declare.h"

#include <stdlib.h>
#include <string.h>

#include "dsl/slice.h"
#include "variants/variants.h"

/* ---- which kernel writes what ---- */

static bool is_in_memory(const struct declaration *d, uint32_t tile)
{
    const uint8_t *axes = d->tensors[tile].axes;
    return !memchr(axes, TG_LQ, TG_MAX_AXES) && !memchr(axes, TG_LKV, TG_MAX_AXES);
}

/* What is decided for all rows at once. */
struct manner {
    bool walks; /* states stay on chip, on warpgroups */
    bool holds; /* a decode step that walks its tokens beside a state that threads share */
    bool cuts;  /* sequences into segments, where a walk allows it */
    bool joins; /* heads of a group into one thread block */
};

/* What a row for the states of segments reads too, which makes nothing else. */
static bool feeds_state(const struct declaration *d, uint32_t tile)
{
    for (uint32_t s = 0; s < d->algorithm.n_body && is_in_memory(d, tile); s++) {
        const tg_stmt *stmt = &d->body[s];
        if (stmt->op == TG_STMT_CARRY && (TG_OPERAND_TILE(stmt->a) == tile || TG_OPERAND_TILE(stmt->b) == tile ||
                                          TG_OPERAND_TILE(stmt->decay) == tile))
            return true;
    }
    return false;
}

/* Outputs are written by someone; of the intermediates, those that many tiles need more often than others. A walk has its
 * states on chip. */
static bool is_listed(struct draw *draw, const struct declaration *d, const tg_stmt *stmt, const struct manner *how)
{
    const tg_tensor *tensor = &d->tensors[TG_OPERAND_TILE(stmt->out)];
    if (how->walks && how->cuts && feeds_state(d, TG_OPERAND_TILE(stmt->out)))
        return draw_chance(draw, 90);
    if (stmt->op == TG_STMT_SHIFT)
        return draw_chance(draw, 1);
    if (tensor->flags & TG_OUT || (stmt->final_ && tensor->axes[2] == TG_AXIS_NONE))
        return true;
    if (how->holds)
        return draw_chance(draw, 3);
    if (!is_in_memory(d, TG_OPERAND_TILE(stmt->out)))
        return draw_chance(draw, 1);
    if (tg_tile_is_square(&d->algorithm, TG_OPERAND_TILE(stmt->out)))
        return draw_chance(draw, 97);
    if (stmt->op == TG_STMT_CARRY)
        return !how->walks || draw_chance(draw, 4);
    return draw_chance(draw, stmt->op == TG_STMT_SCAN || stmt->op == TG_STMT_TOTAL ? 95
                             : tensor->axes[1] == TG_AXIS_NONE                     ? (how->walks ? 95 : 75)
                             : tensor->dtype == TG_IO                              ? 60
                                                                                   : 15);
}

static struct tg_slice slice_of(const struct declaration *d, uint32_t row)
{
    struct tg_slice slice = {0};
    tg_row_slice(&d->schedule, row, &slice);
    return slice;
}

/* The tile joins the last row, if that computes what it does in the same way, or begins one. */
static void list_tile(struct draw *draw, struct declaration *d, uint32_t tile, uint32_t join)
{
    tg_schedule *s = &d->schedule;
    if (s->n_rows == TG_MAX_ROWS)
        return;
    tg_kernel_row *row = &s->rows[s->n_rows++];
    row->outputs[0] = (uint8_t)tile;
    const struct tg_slice own = slice_of(d, s->n_rows - 1);
    tg_kernel_row *last = s->n_rows > 1 ? row - 1 : NULL;
    const uint32_t n = last ? (uint32_t)strnlen((const char *)last->outputs, TG_MAX_OUTPUTS) : 0;
    if (!last || n == TG_MAX_OUTPUTS)
        return;
    const struct tg_slice others = slice_of(d, s->n_rows - 2);
    if (tg_tile_is_square(&d->algorithm, tile) || tg_tile_is_square(&d->algorithm, last->outputs[n - 1]))
        join /= 8; /* no walk makes it */
    if (!own.matrix != !others.matrix || (!own.matrix && own.dims != others.dims) || !draw_chance(draw, join))
        return;
    *row = (tg_kernel_row){0};
    last->outputs[n] = (uint8_t)tile;
    s->n_rows--;
}

/* ---- how a kernel computes it ---- */

static tg_axis_role role(int kind, int block)
{
    return (tg_axis_role){(uint8_t)kind, 0, (uint16_t)block};
}

static bool has_carry(const struct declaration *d, const struct tg_slice *slice)
{
    for (uint32_t s = 0; s < d->algorithm.n_body; s++)
        if (slice->stmts & TG_BIT(s) && d->body[s].op == TG_STMT_CARRY)
            return true;
    return false;
}

/* Products over the dimension, whether a row may make them in parts or not. */
static bool sums_over(const struct declaration *d, const struct tg_slice *slice, uint32_t dim)
{
    for (uint32_t s = 0; s < d->algorithm.n_body; s++)
        if (slice->stmts & TG_BIT(s) && (d->body[s].op == TG_STMT_CONTRACT || d->body[s].op == TG_STMT_CARRY) &&
            (tg_stmt_product(&d->algorithm, &d->body[s]).k >> dim & 1))
            return true;
    return slice->summed >> dim & 1;
}

static int chunk_role(const struct declaration *d, const struct tg_slice *slice)
{
    if (has_carry(d, slice) || slice->scanned & 1u << TG_CHUNK)
        return TG_ROLE_W;
    return slice->summed & 1u << TG_CHUNK ? TG_ROLE_L : TG_ROLE_P;
}

/* One dimension is the threads', the others go one by one. */
static void thread_roles(struct draw *draw, const struct declaration *d, const struct tg_slice *slice,
                         tg_kernel_row *row)
{
    uint32_t candidates[TG_N_DIMS], n = 0;
    row->warps = (uint8_t)DRAW(draw, 1, 1, 2, 4);
    for (uint32_t dim = 0; dim < TG_N_DIMS; dim++) {
        const bool walks = slice->scanned & 1u << dim, sums = slice->summed & 1u << dim;
        if (!((slice->dims | slice->summed) & 1u << dim))
            continue;
        row->row[dim] = role(dim == TG_CHUNK   ? chunk_role(d, slice)
                             : walks           ? TG_ROLE_W
                             : sums            ? TG_ROLE_L
                             : dim >= TG_BATCH ? TG_ROLE_L
                                               : TG_ROLE_P,
                             1);
        if (dim == TG_DQK || dim == TG_DHV || dim == TG_LQ || dim == TG_LKV)
            candidates[n++] = dim;
    }
    if (n == 0 && slice->summed >> TG_CHUNK & 1) /* a thread for each chunk */
        row->row[TG_CHUNK] = role(TG_ROLE_W, 32 * row->warps);
    if (n == 0)
        return;
    const uint32_t dim = candidates[draw_below(draw, n)];
    const bool is_width = dim == TG_DQK || dim == TG_DHV;
    while (!is_width && 32u * row->warps > d->schedule.chunk && row->warps > 1)
        row->warps /= 2;
    row->row[dim].block = (uint16_t)(32 * row->warps * (is_width ? DRAW(draw, 1, 1, 2, 4) : 1));
    if (row->warps == 1 && row->row[TG_CHUNK].role == TG_ROLE_P)
        row->row[TG_CHUNK].block = (uint16_t)DRAW(draw, 1, 2, 3, 4);
}

/* Something of the caller's, a row for each token. */
static bool writes_rows(const struct declaration *d, const tg_kernel_row *row)
{
    for (int i = 0; i < TG_MAX_OUTPUTS && row->outputs[i]; i++)
        if (d->tensors[row->outputs[i]].flags & TG_OUT && d->tensors[row->outputs[i]].axes[0] == TG_T)
            return true;
    return false;
}

/* Its blocks side by side, now and then as clusters that load once what they share. */
static tg_axis_role cluster_role(struct draw *draw, const struct declaration *d, uint32_t dim, int block)
{
    tg_axis_role parallel = role(TG_ROLE_P, block);
    const int64_t blocks = (dim == TG_DQK ? d->shape.dqk : d->shape.dhv) / block;
    if (blocks >= 2 && draw_chance(draw, 70))
        parallel.cluster = (uint8_t)(blocks >= 4 ? DRAW(draw, 2, 4) : DRAW(draw, 2, 2, TG_ADDS));
    return parallel;
}

static void product_roles(struct draw *draw, const struct declaration *d, const struct tg_slice *slice,
                          tg_kernel_row *row)
{
    const bool by_warpgroups = d->io != TG_F32 && d->target->exact && !d->schedule.max_tokens &&
                               draw_chance(draw, has_carry(d, slice) && writes_rows(d, row) ? 80 : 2);
    row->mma = (uint8_t)(d->io == TG_F32 ? TG_MMA_TF32X3 : by_warpgroups ? TG_MMA_WGMMA : TG_MMA_SYNC);
    row->warps = (uint8_t)(by_warpgroups ? DRAW(draw, 4, 8) : DRAW(draw, 1, 2, 2, 4, 4));
    row->stages = (uint8_t)(by_warpgroups ? DRAW(draw, 2, 3) : DRAW(draw, 0, 1, 2, 3));
    row->makers = by_warpgroups && draw_chance(draw, 50) ? 4 : 0;
    const bool shares_columns = row->warps == 8 && draw_chance(draw, 40);
    for (uint32_t dim = 0; dim < TG_N_DIMS; dim++) {
        const bool is_position = dim == TG_LQ || dim == TG_LKV,
                   sums = is_position || dim == TG_CHUNK ? slice->summed >> dim & 1 : sums_over(d, slice, dim);
        const int block = DRAW(draw, 16, 32, 32, 64), fits = is_position && block > (int)d->schedule.chunk ? 16 : block;
        const bool is_whole = is_position ? tg_has_one_chunk(&d->algorithm) && draw_chance(draw, 97)
                                          : has_carry(d, slice) && draw_chance(draw, 40);
        if (!((slice->dims | slice->summed) & 1u << dim))
            continue;
        if (dim == TG_CHUNK)
            row->row[dim] = role(by_warpgroups ? TG_ROLE_W : chunk_role(d, slice), 1);
        else if (by_warpgroups)
            row->row[dim] = is_position ? role(TG_ROLE_L, 64)
                            : draw_chance(draw, sums ? 97 : 10)
                                ? role(TG_ROLE_L, 0)
                                : cluster_role(draw, d, dim, shares_columns ? 64 : 16 * row->warps);
        else
            row->row[dim] = role(slice->scanned & 1u << dim                    ? TG_ROLE_W
                                 : sums || (is_whole && draw_chance(draw, 50)) ? TG_ROLE_L
                                                                               : TG_ROLE_P,
                                 dim >= TG_BATCH            ? 1
                                 : is_whole && !is_position ? 0
                                 : is_whole                 ? (int)d->schedule.chunk
                                                            : fits);
    }
}

static void held_roles(struct draw *draw, const struct declaration *d, const struct tg_slice *slice, tg_kernel_row *row)
{
    const int sharers = DRAW(draw, 2, 4, 8, 16);
    row->warps = (uint8_t)DRAW(draw, 1, 2, 2, 4);
    for (uint32_t dim = 0; dim < TG_BATCH; dim++)
        if ((slice->dims | slice->summed) & 1u << dim)
            row->row[dim] = dim == TG_CHUNK ? role(chunk_role(d, slice), 1)
                            : dim == TG_DQK ? role(TG_ROLE_L, 0)
                            : dim == TG_DHV ? role(TG_ROLE_P, 128 * row->warps / sharers)
                                            : role(TG_ROLE_L, 1);
}

/* ---- sequences cut into segments, heads of a group together ---- */

static uint32_t find_walk(const struct declaration *d)
{
    uint32_t r = 0;
    while (r < d->schedule.n_rows && d->schedule.rows[r].mma != TG_MMA_WGMMA)
        r++;
    return r;
}

/* The state that a row carries and nobody has written: its statement, or NULL. */
static const tg_stmt *carried_by(const struct declaration *d, uint32_t row)
{
    const struct tg_slice slice = slice_of(d, row);
    for (uint32_t s = 0; s < d->algorithm.n_body; s++)
        if (slice.stmts & TG_BIT(s) && d->body[s].op == TG_STMT_CARRY && d->body[s].b &&
            tg_tile_row(&d->schedule, TG_OPERAND_TILE(d->body[s].out)) < 0)
            return &d->body[s];
    return NULL;
}

/* The table has its rows for segments, whether the point cuts or not: what it is then, binding says. */
static void bind_table(struct draw *draw, struct declaration *d, bool cuts)
{
    const tg_schedule table = d->schedule, *const tables[] = {&table, NULL};
    const tg_variant variant = {TG_HEADER(tg_variant), .algorithm = &d->algorithm, .schedules = tables};
    const char *const points[] = {"random seg=1", "random seg=2", "random"};
    if (tg_variant_schedule_named(&variant, points[DRAW(draw, 0, 0, 1, 1, cuts ? 1 : 2)], &d->schedule, &silent_sink) !=
        TG_OK)
        d->schedule = table;
}

/* A row that makes what each segment adds, and one that composes it; or one that walks them all. */
static void cut(struct draw *draw, struct declaration *d)
{
    tg_schedule *s = &d->schedule;
    const uint32_t at = find_walk(d);
    const tg_stmt *carry = at < s->n_rows ? carried_by(d, at) : NULL;
    if (!carry || s->n_rows + 2 > TG_MAX_ROWS)
        return;
    const bool composes = draw_chance(draw, 75), by_keys = draw_chance(draw, 50);
    const uint8_t tile = (uint8_t)TG_OPERAND_TILE(carry->out), only = composes ? TG_IF_CUT : 0;
    const int warps = DRAW(draw, 4, 4, 8);
    tg_kernel_row state = {
        .name = "state", .outputs = {tile}, .mma = TG_MMA_WGMMA, .warps = (uint8_t)warps, .stages = 2, .only = only};
    state.row[TG_SEG] = role(composes ? TG_ROLE_P : TG_ROLE_W, 0);
    state.row[TG_CHUNK] = role(TG_ROLE_W, 1);
    state.row[TG_OPERAND_AT(carry->a)] = role(TG_ROLE_L, 64);
    state.row[by_keys ? TG_DQK : TG_DHV] = role(TG_ROLE_P, 16 * warps);
    state.row[by_keys ? TG_DHV : TG_DQK] = role(TG_ROLE_L, 0);
    tg_kernel_row compose = {.name = "compose", .outputs = {tile}, .warps = (uint8_t)DRAW(draw, 1, 1, 2), .only = only};
    compose.row[TG_SEG] = role(TG_ROLE_W, 0);
    compose.row[TG_DQK] = role(TG_ROLE_P, 1);
    compose.row[TG_DHV] = role(TG_ROLE_P, 32 * compose.warps * DRAW(draw, 1, 2));
    for (uint32_t r = at; r < s->n_rows; r++)
        if (s->rows[r].mma == TG_MMA_WGMMA)
            s->rows[r].row[TG_SEG] = role(TG_ROLE_P, 0);
    const uint32_t more = composes ? 2 : 1;
    memmove(&s->rows[at + more], &s->rows[at], (s->n_rows - at) * sizeof s->rows[0]);
    s->rows[at] = state;
    if (composes)
        s->rows[at + 1] = compose;
    s->n_rows += more;
    bind_table(draw, d, !composes);
    d->shape.tokens = DRAW(draw, 64, 130, 200, 330);
}

static void join_heads(struct draw *draw, struct declaration *d)
{
    const uint32_t at = find_walk(d);
    if (at == d->schedule.n_rows || d->schedule.rows[at].row[TG_MEMBER].role != TG_ROLE_NONE)
        return;
    const int n = DRAW(draw, 2, 2, 4);
    d->schedule.rows[at].row[TG_MEMBER] = role(TG_ROLE_P, n);
    d->shape.group = n * DRAW(draw, 1, 1, 2);
    d->shape.heads = d->shape.group * DRAW(draw, 1, 2);
}

/* Of rows behind the first, walks by several thread blocks that pass the state on. */
static void relay(struct draw *draw, struct declaration *d)
{
    const int chunks = DRAW(draw, 1, 1, 2, 3);
    for (uint32_t r = draw_chance(draw, 97) ? 1 : 0; r < d->schedule.n_rows; r++)
        if (d->schedule.rows[r].mma == TG_MMA_WGMMA && draw_chance(draw, 80))
            d->schedule.rows[r].row[TG_SEG] = role(TG_ROLE_R, chunks);
    d->shape.tokens = DRAW(draw, 1, 64, 130, 200, 330);
}

/* ---- a change that nobody asked for ---- */

static void change_field(struct draw *draw, struct declaration *d)
{
    tg_schedule *s = &d->schedule;
    tg_kernel_row *row = &s->rows[draw_below(draw, s->n_rows)];
    uint32_t dim = (uint32_t)DRAW(draw, TG_CHUNK, TG_LQ, TG_LKV, TG_DQK, TG_DHV, TG_SEG, TG_MEMBER);
    for (int i = 0; i < 8 && row->row[dim].role == TG_ROLE_NONE && draw_chance(draw, 95); i++)
        dim = (uint32_t)DRAW(draw, TG_CHUNK, TG_LQ, TG_LKV, TG_DQK, TG_DHV);
    switch (draw_below(draw, 8)) {
    case 0:
        s->chunk = (uint32_t)DRAW(draw, 16, 32, 64, 128, 256);
        break;
    case 1:
    case 2:
        row->row[dim].block = (uint16_t)DRAW(draw, 0, 1, 8, 16, 32, 64, 128);
        break;
    case 3:
        row->row[dim].role = (uint8_t)DRAW(draw, TG_ROLE_NONE, TG_ROLE_P, TG_ROLE_L, TG_ROLE_W, TG_ROLE_R);
        break;
    case 4:
        row->warps = (uint8_t)DRAW(draw, 1, 2, 4, 8, 8);
        break;
    case 5:
        row->stages = (uint8_t)DRAW(draw, 1, 2, 3, 4);
        break;
    case 6:
        row->mma = (uint8_t)DRAW(draw, TG_MMA_NONE, TG_MMA_SYNC, TG_MMA_TF32X3, TG_MMA_WGMMA);
        break;
    default:
        row->row[dim].cluster = (uint8_t)DRAW(draw, 0, TG_ADDS, 2, TG_ADDS | 2);
    }
}

/* Few tokens where the schedule is for decode steps. */
static void fit_step(struct declaration *d)
{
    if (!d->schedule.max_tokens)
        return;
    d->shape.most_tokens = d->schedule.max_tokens;
    d->shape.tokens = 1 + d->shape.tokens % d->schedule.max_tokens;
    d->shape.packed = false;
}

/* Does anything that heads share go into a product? */
static bool has_shared(const struct declaration *d)
{
    for (uint32_t tile = 1; tile < d->algorithm.n_tensors; tile++)
        if (d->tensors[tile].flags & TG_IN && d->tensors[tile].flags & TG_SHARED)
            return true;
    return false;
}

static void declare_rows(struct draw *draw, struct declaration *d, const struct manner *how)
{
    tg_schedule *s = &d->schedule;
    for (uint32_t i = 0; i < d->algorithm.n_body; i++)
        if (is_listed(draw, d, &d->body[i], how))
            list_tile(draw, d, TG_OPERAND_TILE(d->body[i].out), how->holds ? 90 : 40);
    for (uint32_t i = 0; i < d->algorithm.n_body; i++)
        if (d->body[i].op == TG_STMT_SHIFT && d->body[i].final_)
            list_tile(draw, d, TG_OPERAND_TILE(d->body[i].final_), 60);
    for (uint32_t r = 0; r < s->n_rows; r++) {
        static const char names[TG_MAX_ROWS][4] = {"ra", "rb", "rc", "rd", "re", "rf", "rg", "rh", "ri", "rj", "rk",
                                                   "rl", "rm", "rn", "ro", "rp", "rq", "rr", "rs", "rt", "ru", "rv",
                                                   "rw", "rx", "ry", "rz", "sa", "sb", "sc", "sd", "se", "sf"};
        tg_kernel_row *row = &s->rows[r];
        const struct tg_slice slice = slice_of(d, r);
        row->name = names[r];
        row->line = (int)(100 + r);
        (how->holds ? held_roles : slice.matrix ? product_roles : thread_roles)(draw, d, &slice, row);
    }
}

/* What goes into a state that is cut is in memory, in 16 bits most of the time. */
static void round_operands(struct draw *draw, struct declaration *d)
{
    for (uint32_t s = 0; s < d->algorithm.n_body; s++)
        for (int i = 0; i < 2 && d->body[s].op == TG_STMT_CARRY; i++) {
            const uint32_t tile = TG_OPERAND_TILE(i ? d->body[s].b : d->body[s].a);
            if (tile && d->tensors[tile].axes[1] && !d->tensors[tile].axes[2] && draw_chance(draw, 90))
                d->tensors[tile].dtype = TG_IO;
        }
}

/* Intermediates that rows write, in the caller's memory. */
static void keep(struct draw *draw, tg_schedule *s, const tg_algorithm *algorithm)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < s->n_rows; r++)
        for (int i = 0; i < TG_MAX_OUTPUTS && s->rows[r].outputs[i]; i++) {
            const uint8_t tile = s->rows[r].outputs[i];
            const bool is_more = !(algorithm->tensors[tile].flags & TG_OUT) && !memchr(s->kept, tile, TG_MAX_KEPT);
            if (is_more && n < TG_MAX_KEPT && draw_chance(draw, 40))
                s->kept[n++] = tile;
        }
}

/* Several chunks, and mostly what can be taken so. */
static void take_in_pieces(struct draw *draw, struct declaration *d)
{
    const tg_schedule whole = d->schedule;
    const bool is_any = draw_chance(draw, 10);
    d->schedule.pieces = (uint32_t)DRAW(draw, 2, 2, 3, 5);
    if (!is_any && tg_schedule_check(&d->schedule, &silent_sink) != TG_OK) {
        d->schedule = whole;
        return;
    }
    d->shape.tokens = DRAW(draw, 65, 130, 200, 330);
    d->shape.packed = d->shape.packed && is_any;
    d->shape.pooled = d->shape.pooled && is_any;
}

void declare_schedule(struct draw *draw, struct declaration *d)
{
    tg_schedule *s = &d->schedule;
    *s = (tg_schedule){TG_HEADER(tg_schedule), .name = "random", .file = "declaration", .algorithm = &d->algorithm};
    s->max_tokens = draw_chance(draw, 15) ? 8 : 0;
    s->chunk = (uint32_t)(s->max_tokens ? 1 : d->target->exact ? 64 : DRAW(draw, 16, 32, 32, 64, 64, 64, 128));
    const struct manner how = {.walks = d->target->exact && d->io != TG_F32 && !s->max_tokens && draw_chance(draw, 75),
                               .holds = s->max_tokens && draw_chance(draw, 90),
                               .cuts = draw_chance(draw, 45),
                               .joins = has_shared(d) && draw_chance(draw, 75)};
    if (how.walks && how.cuts)
        round_operands(draw, d);
    declare_rows(draw, d, &how);
    if (how.walks && how.cuts)
        cut(draw, d);
    else if (how.walks && how.joins)
        join_heads(draw, d);
    if (how.walks && !how.cuts && draw_chance(draw, 70))
        relay(draw, d);
    while (s->n_rows && draw_chance(draw, 12))
        change_field(draw, d);
    if (!s->max_tokens && draw_chance(draw, 40))
        take_in_pieces(draw, d);
    if (draw_chance(draw, 25))
        keep(draw, s, &d->algorithm);
    fit_step(d);
}

/* ---- what is built in, changed ---- */

/* One of the gradients' schedules whose thread blocks add up heads, or that reads the ends of segments, for a call of heads in
 * groups: random algorithms have none that could. */
static const tg_variant *draw_gradients(struct draw *draw, struct declaration *d)
{
    const enum kind kind = draw_chance(draw, 50) ? KIND_CLUSTER : KIND_ENDS;
    const tg_variant *variant = NULL;
    tg_schedule drawn;
    uint32_t n = 0;
    for (uint32_t v = 0; tg_builtin_variants[v]; v++)
        for (uint32_t i = 0; tg_variant_schedule(tg_builtin_variants[v]->backward, i, &d->schedule); i++)
            if (is_of_kind(d, kind) && draw_below(draw, ++n) == 0) {
                drawn = d->schedule;
                variant = tg_builtin_variants[v]->backward;
            }
    d->schedule = drawn;
    d->target = tg_target_find("sm_90a");
    d->io = (tg_dtype)DRAW(draw, TG_BF16, TG_F16);
    d->shape.group = DRAW(draw, 2, 2, 2, 4);
    d->shape.heads = d->shape.group * DRAW(draw, 1, 2);
    d->shape.dqk = DRAW(draw, 64, 128, 128);
    d->shape.dhv = DRAW(draw, 64, 128, 128, 192);
    return variant;
}

static const tg_variant *draw_builtin(struct draw *draw, struct declaration *d)
{
    uint32_t n = 0;
    while (tg_builtin_variants[n])
        n++;
    const tg_variant *variant = tg_builtin_variants[draw_below(draw, n)];
    if (draw_chance(draw, 50))
        variant = variant->backward;
    for (n = 0; tg_variant_schedule(variant, n, &d->schedule);)
        n++;
    (void)tg_variant_schedule(variant, draw_below(draw, n), &d->schedule);
    return variant;
}

void declare_mutant(struct draw *draw, struct declaration *d)
{
    const tg_variant *variant = draw_chance(draw, 15) ? draw_gradients(draw, d) : draw_builtin(draw, d);
    d->algorithm = *d->schedule.algorithm;
    d->schedule.algorithm = &d->algorithm;
    for (uint32_t i = 0; i < TG_MAX_KEPT && d->schedule.kept[i]; i++)
        if (tg_tile_row(&d->schedule, d->schedule.kept[i]) < 0)
            memset(d->schedule.kept, 0, sizeof d->schedule.kept); /* nobody has it */
    d->variant = *variant;
    for (uint32_t i = 0; i < 3 && (i == 0 || draw_chance(draw, 50)); i++)
        change_field(draw, d);
    fit_step(d);
}

/* ---- final states alone ---- */

void declare_states(struct declaration *d)
{
    const tg_variant whole = {TG_HEADER(tg_variant), .name = "random", .algorithm = &d->algorithm,
                              .schedules = d->schedules};
    const tg_variant *found = tg_states_of(&whole);
    tg_schedule schedule;
    if (found && found->algorithm->n_tensors <= MOST_TILES && found->algorithm->n_body <= MOST_STATEMENTS &&
        tg_variant_schedule(found, 0, &schedule) && schedule.n_rows) {
        d->algorithm = *found->algorithm;
        memcpy(d->tensors, d->algorithm.tensors, d->algorithm.n_tensors * sizeof *d->tensors);
        memcpy(d->body, d->algorithm.body, d->algorithm.n_body * sizeof *d->body);
        d->algorithm.name = d->algorithm.title = "random";
        d->algorithm.tensors = d->tensors;
        d->algorithm.body = d->body;
        d->schedule = schedule;
        d->schedule.algorithm = &d->algorithm;
        d->is_states = true;
    }
    tg_states_free(found);
}
