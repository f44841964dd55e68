/* interpreter/statements.c - what each statement means: one instance of its result, from instances of what it reads. */
#include "interpreter/interpret.h"

#include <math.h>
#include <stdlib.h>

static const double least = -1e30; /* the largest of nothing */

double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static void fill(struct view out, struct extent extent, double value)
{
    int64_t at[N_INNER] = {0};
    do
        *element_of(out, at) = value;
    while (next_element(at, &extent));
}

/* ---- sums ---- */

/* out and a, element by element; out may lack what a has. */
static void gather(const tg_stmt *stmt, struct view out, struct view a, struct extent extent)
{
    int64_t at[N_INNER] = {0};
    do {
        double *to = element_of(out, at);
        const double value = *element_of(a, at);
        *to = stmt->flags & TG_MAXIMUM ? larger(*to, value) : *to + value;
    } while (next_element(at, &extent));
}

static double nothing(const tg_stmt *stmt)
{
    return stmt->flags & TG_MAXIMUM ? least : 0;
}

/* Of a tile that has an instance a chunk, made from the one before: those before this one, in order, so that none has to
 * be evaluated inside another. */
static struct view previous(struct machine *m, const tg_stmt *stmt, struct place place, struct place *before)
{
    const bool is_reverse = stmt->flags & TG_REVERSE;
    struct view view = {0};
    *before = place;
    before->chunk = is_reverse ? chunks_of(m, place.sequence) - 1 : 0;
    for (const int64_t step = is_reverse ? -1 : 1; before->chunk != place.chunk; before->chunk += step)
        view = view_of(m, stmt->out, *before);
    before->chunk += is_reverse ? 1 : -1;
    return view;
}

static void scan_chunks(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const struct extent extent = extent_of(m, &stmt->out, 1, place);
    struct place before;
    const struct view last = previous(m, stmt, place, &before);
    fill(out, extent, nothing(stmt));
    if (last.at)
        gather(stmt, out, last, extent);
    if (!(stmt->flags & TG_EXCLUSIVE))
        gather(stmt, out, view_of(m, stmt->a, place), extent);
    else if (last.at)
        gather(stmt, out, view_of(m, stmt->a, before), extent);
}

static struct view shifted(struct view view, enum inner along, int64_t by)
{
    view.at += by * view.stride[along];
    return view;
}

static void scan_positions(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const enum inner along = tg_operand_mask(m->what->algorithm, stmt->a) & 1u << TG_LQ ? BY_Q : BY_KV;
    const struct extent all = extent_of(m, &stmt->out, 1, place);
    const struct view a = view_of(m, stmt->a, place);
    const int64_t lag = stmt->flags & TG_EXCLUSIVE ? 1 : 0;
    struct extent one = all;
    one.n[along] = 1;
    fill(out, all, nothing(stmt));
    for (int64_t i = 0; i < all.n[along]; i++) {
        const struct view here = shifted(out, along, i);
        if (i > 0)
            gather(stmt, here, shifted(out, along, i - 1), one);
        if (i >= lag)
            gather(stmt, here, shifted(a, along, i - lag), one);
    }
}

/* Over sequences, heads of the group, chunks and positions, as far as a has them and out lacks them. */
static void total(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const uint32_t along = tg_stmt_along(m->what->algorithm, stmt);
    struct place from = place, to = {place.sequence + 1, place.head + 1, place.chunk + 1}, at;
    if (along & 1u << TG_BATCH)
        from.sequence = 0, to.sequence = m->call->batch;
    if (along & 1u << TG_MEMBER)
        from.head -= place.head % m->call->group, to.head = from.head + m->call->group;
    fill(out, extent_of(m, &stmt->out, 1, place), nothing(stmt));
    for (at.sequence = from.sequence; at.sequence < to.sequence; at.sequence++) {
        if (along & 1u << TG_CHUNK)
            from.chunk = 0, to.chunk = chunks_of(m, at.sequence);
        for (at.head = from.head; at.head < to.head; at.head++)
            for (at.chunk = from.chunk; at.chunk < to.chunk; at.chunk++)
                gather(stmt, out, view_of(m, stmt->a, at), extent_of(m, &stmt->a, 1, at));
    }
}

/* ---- products ---- */

/* out += a * b over all elements of the three. The innermost loop is over the last axis that there is. */
static void add_products(struct view out, struct view a, struct view b, struct extent extent)
{
    int64_t at[N_INNER] = {0};
    int inner = N_INNER - 1;
    while (inner > 0 && extent.n[inner] == 1)
        inner--;
    const int64_t n = extent.n[inner], by_out = out.stride[inner], by_a = a.stride[inner], by_b = b.stride[inner];
    extent.n[inner] = 1;
    do {
        double *to = element_of(out, at), sum = 0;
        const double *x = element_of(a, at), *y = element_of(b, at);
        for (int64_t i = 0; i < n && by_out == 0; i++)
            sum += x[i * by_a] * y[i * by_b];
        for (int64_t i = 0; i < n && by_out != 0; i++)
            to[i * by_out] += x[i * by_a] * y[i * by_b];
        *to += sum;
    } while (next_element(at, &extent));
}

/* The same where what a key has decays until a query reads it, which only later ones do. */
static void add_decayed(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const tg_operand operands[] = {stmt->a, stmt->b, stmt->out, stmt->decay, stmt->since};
    const struct extent extent = extent_of(m, operands, TG_COUNT(operands), place);
    const struct view a = view_of(m, stmt->a, place), b = view_of(m, stmt->b, place);
    const struct view decay = view_of(m, stmt->decay, place), since = view_of(m, stmt->since, place);
    const int64_t least_distance = stmt->flags & TG_EXCLUSIVE ? 1 : 0;
    int64_t at[N_INNER] = {0};
    do
        if (at[BY_Q] - at[BY_KV] >= least_distance)
            *element_of(out, at) += kept(m, *element_of(a, at) * *element_of(b, at) *
                                                kept(m, exp2(*element_of(decay, at) - *element_of(since, at))));
    while (next_element(at, &extent));
}

/* A copy of a state as products take it, the caller's to free; NULL: they take it as it is. */
static double *state_operand(struct machine *m, tg_operand operand, struct place place, struct view *view)
{
    const struct tile *tile = &m->tiles[TG_OPERAND_TILE(operand)];
    const struct extent extent = extent_of(m, &operand, 1, place);
    const bool is_state = tile->stmt && tile->stmt->op == TG_STMT_CARRY;
    int64_t at[N_INNER] = {0}, n = 1;
    if (!m->what->operand || !is_state || m->status != TG_OK)
        return NULL;
    struct view to = {.at = NULL};
    for (int d = N_INNER; d-- > 0; n *= extent.n[d])
        to.stride[d] = extent.n[d] > 1 ? n : 0;
    to.at = malloc((size_t)n * sizeof *to.at);
    if (!to.at) {
        m->status = TG_E_MEMORY;
        return NULL;
    }
    do {
        const double *element = element_of(*view, at);
        *element_of(to, at) =
            m->what->operand(m->what->user, TG_OPERAND_TILE(operand), (uint64_t)(element - tile->data), *element);
    } while (next_element(at, &extent));
    *view = to;
    return to.at;
}

/* Adds the statement's sum over a and b of this place. */
static void add_sum(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    static double one = 1;
    if (tg_stmt_decays(stmt)) {
        add_decayed(m, stmt, out, place);
        return;
    }
    const tg_operand operands[] = {stmt->a, stmt->b, stmt->out};
    struct view a = view_of(m, stmt->a, place);
    struct view b = stmt->b ? view_of(m, stmt->b, place) : (struct view){.at = &one};
    double *copy_a = state_operand(m, stmt->a, place, &a),
           *copy_b = stmt->b ? state_operand(m, stmt->b, place, &b) : NULL;
    add_products(out, a, b, extent_of(m, operands, TG_COUNT(operands), place));
    free(copy_a);
    free(copy_b);
}

static void contract(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const struct extent extent = extent_of(m, &stmt->out, 1, place);
    fill(out, extent, 0);
    gather(stmt, out, view_of(m, stmt->init, place), extent);
    add_sum(m, stmt, out, place);
}

/* Row by row: e_r less what the rows before it contribute. */
static void solve(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const int64_t n = extent_of(m, &stmt->out, 1, place).n[BY_Q];
    const struct view a = view_of(m, stmt->a, place);
    for (int64_t row = 0; row < n; row++)
        for (int64_t column = 0; column < n; column++) {
            double sum = row == column ? 1 : 0;
            for (int64_t k = column; k < row; k++)
                sum -= *element_of(a, (int64_t[]){row, k, 0, 0}) * *element_of(out, (int64_t[]){k, column, 0, 0});
            *element_of(out, (int64_t[]){row, column, 0, 0}) = sum;
        }
}

/* ---- states ---- */

/* to = 2^decay from + sum: what leaves the chunk, of what arrives at it. */
static void advance(struct machine *m, const tg_stmt *stmt, struct view to, struct view from, struct place place)
{
    const struct extent extent = extent_of(m, &stmt->out, 1, place);
    const struct view decay = view_of(m, stmt->decay, place);
    int64_t at[N_INNER] = {0};
    do
        *element_of(to, at) = kept(m, exp2(*element_of(decay, at))) * *element_of(from, at);
    while (next_element(at, &extent));
    add_sum(m, stmt, to, place);
}

static void initial(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const struct extent extent = extent_of(m, &stmt->out, 1, place);
    fill(out, extent, 0);
    gather(stmt, out, view_of(m, stmt->init, place), extent);
}

static void carry(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    struct place before;
    const struct view last = previous(m, stmt, place, &before);
    if (last.at)
        advance(m, stmt, out, last, before);
    else
        initial(m, stmt, out, place);
}

static void final_state(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const int64_t chunks = chunks_of(m, place.sequence);
    place.chunk = stmt->flags & TG_REVERSE ? 0 : chunks - 1;
    if (chunks > 0)
        advance(m, stmt, out, view_of(m, stmt->out, place), place);
    else
        initial(m, stmt, out, place);
}

/* ---- shifts ---- */

/* a at one end of the sequence's tokens, or of a chunk's: its first or last position. */
static struct view at_end(const struct machine *m, const tg_stmt *stmt, struct view a, struct place place, bool last)
{
    const enum inner along = TG_OPERAND_AT(stmt->out) == TG_LQ ? BY_Q : BY_KV;
    return last ? shifted(a, along, extent_of(m, &stmt->out, 1, place).n[along] - 1) : a;
}

/* The token next to the chunk: of the chunk there, or none, which init stands for. */
static struct view beside(struct machine *m, const tg_stmt *stmt, struct place place)
{
    const bool reverse = stmt->flags & TG_REVERSE;
    const bool is_outer = reverse ? place.chunk == chunks_of(m, place.sequence) - 1 : place.chunk == 0;
    if (is_outer)
        return view_of(m, stmt->init, place);
    place.chunk += reverse ? 1 : -1;
    return at_end(m, stmt, view_of(m, stmt->a, place), place, !reverse);
}

static void shift(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const enum inner along = TG_OPERAND_AT(stmt->out) == TG_LQ ? BY_Q : BY_KV;
    const bool reverse = stmt->flags & TG_REVERSE;
    const struct extent all = extent_of(m, &stmt->out, 1, place);
    const struct view a = view_of(m, stmt->a, place);
    struct extent one = all;
    one.n[along] = 1;
    fill(out, all, 0);
    for (int64_t i = 0; i < all.n[along]; i++) {
        const int64_t from = reverse ? i + 1 : i - 1;
        const bool is_inside = from >= 0 && from < all.n[along];
        gather(stmt, shifted(out, along, i), is_inside ? shifted(a, along, from) : beside(m, stmt, place), one);
    }
}

static void final_token(struct machine *m, const tg_stmt *stmt, struct view out, struct place place)
{
    const int64_t chunks = chunks_of(m, place.sequence);
    const bool reverse = stmt->flags & TG_REVERSE;
    struct extent extent = extent_of(m, &stmt->out, 1, place);
    extent.n[BY_Q] = extent.n[BY_KV] = 1;
    place.chunk = reverse ? 0 : chunks - 1;
    fill(out, extent, 0);
    gather(stmt, out,
           chunks > 0 ? at_end(m, stmt, view_of(m, stmt->a, place), place, !reverse) : view_of(m, stmt->init, place),
           extent);
}

void evaluate(struct machine *m, const tg_stmt *stmt, uint32_t tile, struct view out, struct place place)
{
    const bool of_chunks = tg_stmt_along(m->what->algorithm, stmt) & 1u << TG_CHUNK;
    switch (stmt->op) {
    case TG_STMT_MAP:
        evaluate_map(m, stmt, out, place);
        break;
    case TG_STMT_SCAN:
        (of_chunks ? scan_chunks : scan_positions)(m, stmt, out, place);
        break;
    case TG_STMT_TOTAL:
        total(m, stmt, out, place);
        break;
    case TG_STMT_CONTRACT:
        contract(m, stmt, out, place);
        break;
    case TG_STMT_CARRY:
        if (tile == TG_OPERAND_TILE(stmt->behind))
            advance(m, stmt, out, view_of(m, stmt->out, place), place);
        else
            (tile == TG_OPERAND_TILE(stmt->out) ? carry : final_state)(m, stmt, out, place);
        break;
    case TG_STMT_SOLVE:
        solve(m, stmt, out, place);
        break;
    case TG_STMT_SHIFT:
        (tile == TG_OPERAND_TILE(stmt->out) ? shift : final_token)(m, stmt, out, place);
        break;
    default:
        break; /* no checked algorithm has another */
    }
}
