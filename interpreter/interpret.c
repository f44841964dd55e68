/* interpreter/interpret.c - the memory of the tiles, and which instance is evaluated when: where it is needed. */
#include "interpreter/interpret.h"

#include <stdlib.h>

enum { UNKNOWN, UNDER_WAY, KNOWN }; /* an instance */

/* The first mistake is told. */
#define FAIL(m, status_, code, line_, hint, ...)                                                                       \
    do {                                                                                                               \
        if ((m)->status == TG_OK)                                                                                      \
            tg_report((m)->sink, TG_ERROR, code, (m)->what->algorithm->file, line_, hint, __VA_ARGS__);                \
        (m)->status = (m)->status == TG_OK ? (status_) : (m)->status;                                                  \
    } while (0)

/* ---- sizes ---- */

static int64_t divide_up(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

static int64_t length_of(const struct machine *m, int64_t sequence)
{
    const int64_t *cuts = m->call->cuts;
    return cuts ? cuts[sequence + 1] - cuts[sequence] : m->call->tokens;
}

int64_t chunks_of(const struct machine *m, int64_t sequence)
{
    return divide_up(length_of(m, sequence), m->what->chunk);
}

static int64_t tokens_of(const struct machine *m, struct place place)
{
    const int64_t left = length_of(m, place.sequence) - place.chunk * m->what->chunk;
    return left < m->what->chunk ? left : m->what->chunk;
}

static enum inner inner_of(uint8_t dim)
{
    return dim == TG_LQ ? BY_Q : dim == TG_LKV ? BY_KV : dim == TG_DQK ? BY_DQK : BY_DHV;
}

struct extent extent_of(const struct machine *m, const tg_operand *operands, uint32_t n, struct place place)
{
    struct extent extent = {{1, 1, 1, 1}};
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n; i++)
        mask |= operands[i] ? tg_operand_mask(m->what->algorithm, operands[i]) : 0;
    if (mask & 1u << TG_LQ)
        extent.n[BY_Q] = tokens_of(m, place);
    if (mask & 1u << TG_LKV)
        extent.n[BY_KV] = tokens_of(m, place);
    if (mask & 1u << TG_DQK)
        extent.n[BY_DQK] = m->call->dqk;
    if (mask & 1u << TG_DHV)
        extent.n[BY_DHV] = m->call->dhv;
    return extent;
}

/* ---- tiles ---- */

/* Sequences of a packed call are told apart by their tokens and chunks. */
static bool is_run(const struct machine *m, const struct tile *tile)
{
    return m->call->cuts && (tile->has_tokens || tile->has_chunks);
}

/* As in memory: [sequences, heads, axes...], contiguous. What has positions that are axes, but no tokens, has an axis of
 * chunks before all others. */
static void lay_out(struct machine *m, struct tile *tile)
{
    const tg_oracle_call *call = m->call;
    const uint8_t *axes = tile->tensor->axes;
    bool has_positions = false;
    tile->n = 1;
    for (int i = TG_MAX_AXES; i-- > 0;) {
        const int64_t below = tile->n;
        if (axes[i] == TG_AXIS_NONE)
            continue;
        tile->has_tokens |= axes[i] == TG_T;
        tile->has_chunks |= axes[i] == TG_CHUNK;
        has_positions |= axes[i] == TG_LQ || axes[i] == TG_LKV;
        if (axes[i] == TG_T)
            tile->by_token = below, tile->n *= call->tokens;
        else if (axes[i] == TG_CHUNK)
            tile->by_chunk = below, tile->n *= m->slots;
        else {
            tile->stride[inner_of(axes[i])] = below;
            tile->n *= axes[i] == TG_DQK ? call->dqk : axes[i] == TG_DHV ? call->dhv : m->what->chunk;
        }
    }
    if (has_positions && !tile->has_tokens) {
        tile->has_chunks = true;
        tile->by_chunk = tile->n;
        tile->n *= m->slots;
    }
    tile->sequences = tile->tensor->flags & TG_NO_BATCH || is_run(m, tile) ? 1 : call->batch;
    tile->heads = tile->tensor->flags & TG_SHARED ? call->heads / call->group : call->heads;
}

static bool out_of_memory(struct machine *m)
{
    FAIL(m, TG_E_MEMORY, "TG0699", 0, "interpret a smaller call", "no memory for the tiles of %s",
         m->what->algorithm->name);
    return false;
}

/* Ours when the caller has none. */
static bool allocate(struct machine *m, struct tile *tile)
{
    const int64_t instances = tile->sequences * tile->heads * (tile->has_tokens || tile->has_chunks ? m->slots : 1);
    const size_t n = (size_t)(tile->sequences * tile->heads * tile->n);
    if (!tile->state)
        tile->state = calloc((size_t)instances + 1, 1);
    if (!tile->data) {
        tile->data = malloc((n + 1) * sizeof *tile->data);
        tile->is_own = true;
    }
    return (tile->state && tile->data) || out_of_memory(m);
}

/* Which entry along chunks. */
static int64_t slot_of(const struct machine *m, struct place place)
{
    const int64_t *cuts = m->call->cuts;
    return (cuts ? cuts[place.sequence] / m->what->chunk + place.sequence : 0) + place.chunk;
}

/* Number of the sequence and head in the tile. */
static int64_t entry_of(const struct machine *m, const struct tile *tile, struct place place)
{
    const int64_t sequence = tile->sequences == 1 ? 0 : place.sequence;
    return sequence * tile->heads + (tile->heads == m->call->heads ? place.head : place.head / m->call->group);
}

static struct view view_at(const struct machine *m, struct tile *tile, tg_operand operand, struct place place)
{
    struct view view = {.at = tile->data + entry_of(m, tile, place) * tile->n};
    for (int d = 0; d < N_INNER; d++)
        view.stride[d] = tile->stride[d];
    if (tile->has_chunks)
        view.at += slot_of(m, place) * tile->by_chunk;
    if (tile->has_tokens) {
        view.at +=
            ((m->call->cuts ? m->call->cuts[place.sequence] : 0) + place.chunk * m->what->chunk) * tile->by_token;
        view.stride[inner_of((uint8_t)TG_OPERAND_AT(operand))] = tile->by_token;
    }
    return view;
}

static void round_all(struct machine *m, tg_operand out, struct view view, struct place place)
{
    const struct extent extent = extent_of(m, &out, 1, place);
    int64_t at[N_INNER] = {0};
    do {
        double *element = element_of(view, at);
        *element = kept(m, *element);
        if (m->what->round)
            *element = m->what->round(m->what->user, TG_OPERAND_TILE(out), m->n_rounded++, *element);
    } while (next_element(at, &extent));
}

/* Of a steady tile a schedule may have those of one chunk for many. */
static void check_steady(struct machine *m, struct tile *tile, struct place place, struct view view)
{
    const double least = 1e-6;
    const int64_t chunk = place.chunk;
    const tg_operand out = (tg_operand)(tile - m->tiles);
    const struct extent extent = extent_of(m, &out, 1, place);
    int64_t at[N_INNER] = {0};
    place.chunk = 0;
    if (!(tile->tensor->flags & TG_STEADY) || chunk == 0 || m->what->round || m->what->least > 0)
        return;
    const struct view first = view_of(m, out, place);
    do {
        const double x = *element_of(view, at), y = m->status == TG_OK ? *element_of(first, at) : x;
        if (fabs(x - y) > least * (1 + fabs(x) + fabs(y)))
            FAIL(m, TG_E_DECLARATION, "TG0605", tile->stmt->line, "remove TG_STEADY, or mend the statements",
                 "%s is TG_STEADY, but %g for chunk %lld and %g for the first", tile->tensor->name, x, (long long)chunk,
                 y);
    } while (next_element(at, &extent));
}

/* The statement's own way to name the tile: with the positions that it is written at. */
static void make(struct machine *m, struct tile *tile, struct place place, uint8_t *state)
{
    const tg_stmt *stmt = tile->stmt;
    const uint32_t number = (uint32_t)(tile - m->tiles);
    const tg_operand out = TG_OPERAND_TILE(stmt->out) == number ? stmt->out : (tg_operand)number;
    if (*state == UNDER_WAY) {
        FAIL(m, TG_E_DECLARATION, "TG0603", stmt->line, "let a chunk of a CARRY depend on the chunks before it alone",
             "%s depends on itself", tile->tensor->name);
        return;
    }
    *state = UNDER_WAY;
    const struct view view = view_at(m, tile, out, place);
    evaluate(m, stmt, number, view, place);
    if (m->what->round || m->what->least > 0)
        round_all(m, out, view, place);
    *state = KNOWN;
    check_steady(m, tile, place, view);
}

struct view view_of(struct machine *m, tg_operand operand, struct place place)
{
    static double zero;
    struct tile *tile = &m->tiles[TG_OPERAND_TILE(operand)];
    const bool is_absent = !tile->stmt && !tile->data;
    if (!operand || is_absent || m->status != TG_OK || !allocate(m, tile))
        return (struct view){.at = &zero};
    if (tile->stmt) {
        const bool is_many = tile->has_tokens || tile->has_chunks;
        uint8_t *state =
            &tile->state[entry_of(m, tile, place) * (is_many ? m->slots : 1) + (is_many ? slot_of(m, place) : 0)];
        if (*state != KNOWN)
            make(m, tile, place, state);
    }
    return view_at(m, tile, operand, place);
}

/* ---- a call ---- */

static void check_call(struct machine *m)
{
    const tg_oracle_call *c = m->call;
    const struct {
        const char *name;
        int64_t value, least;
    } sizes[] = {{"batch", c->batch, 0}, {"heads", c->heads, 1},       {"tokens", c->tokens, 0}, {"dqk", c->dqk, 1},
                 {"dhv", c->dhv, 1},     {"chunk", m->what->chunk, 1}, {"group", c->group, 1}};
    for (uint32_t i = 0; i < TG_COUNT(sizes); i++)
        if (sizes[i].value < sizes[i].least || sizes[i].value > INT32_MAX)
            FAIL(m, TG_E_ARGUMENT, "TG0601", 0, "every size is below 2^31", "%s: expected at least %lld, found %lld",
                 sizes[i].name, (long long)sizes[i].least, (long long)sizes[i].value);
    if (m->status == TG_OK && c->heads % c->group != 0)
        FAIL(m, TG_E_ARGUMENT, "TG0601", 0, "give a group that divides the heads", "group: found %lld, of %lld heads",
             (long long)c->group, (long long)c->heads);
    for (int64_t s = 0; c->cuts && m->status == TG_OK && s < c->batch; s++)
        if (c->cuts[0] != 0 || c->cuts[s] > c->cuts[s + 1] || c->cuts[c->batch] != c->tokens)
            FAIL(m, TG_E_ARGUMENT, "TG0601", 0, "let the boundaries rise from 0 to the number of tokens",
                 "sequence %lld lies from %lld to %lld", (long long)s, (long long)c->cuts[s],
                 (long long)c->cuts[s + 1]);
}

static void open_tile(struct machine *m, uint32_t number)
{
    const tg_algorithm *algorithm = m->what->algorithm;
    struct tile *tile = &m->tiles[number];
    const int stmt = tg_tile_stmt(algorithm, number);
    tile->tensor = &algorithm->tensors[number];
    tile->stmt = stmt < 0 ? NULL : &algorithm->body[stmt];
    lay_out(m, tile);
    if (tile->tensor->flags & TG_IN)
        tile->data = (double *)m->call->in[number]; /* never written: no statement has it as its out */
    if (tile->tensor->flags & TG_OUT)
        tile->data = m->call->out[number];
    if (tile->tensor->flags & TG_IN && !(tile->tensor->flags & TG_OPTIONAL) && !tile->data)
        FAIL(m, TG_E_ARGUMENT, "TG0602", 0, "give it", "%s is required and missing", tile->tensor->name);
}

/* All instances of an output. */
static void write_output(struct machine *m, uint32_t number)
{
    const struct tile *tile = &m->tiles[number];
    const tg_operand out = TG_OPERAND_TILE(tile->stmt->out) == number ? tile->stmt->out : (tg_operand)number;
    const int64_t sequences = tile->tensor->flags & TG_NO_BATCH && !is_run(m, tile) ? 1 : m->call->batch;
    for (int64_t s = 0; s < sequences; s++) {
        const int64_t chunks = tile->has_tokens || tile->has_chunks ? chunks_of(m, s) : 1;
        for (int64_t head = 0; head < m->call->heads; head += m->call->heads / tile->heads)
            for (int64_t chunk = 0; chunk < chunks && m->status == TG_OK; chunk++)
                view_of(m, out, (struct place){s, head, chunk});
    }
}

/* Sums over sequences need the same chunks in each. */
static void check_packed(struct machine *m, const tg_stmt *stmt)
{
    const uint32_t along = tg_stmt_along(m->what->algorithm, stmt);
    if (m->call->cuts && along & 1u << TG_BATCH && tg_operand_mask(m->what->algorithm, stmt->out) & 1u << TG_CHUNK)
        FAIL(m, TG_E_UNSUPPORTED, "TG0604", stmt->line, "sum over the tokens first",
             "TOTAL sums over packed sequences, whose tokens are not the same");
}

static void run(struct machine *m)
{
    const tg_algorithm *algorithm = m->what->algorithm;
    check_call(m);
    if (m->status != TG_OK)
        return;
    m->slots = m->call->cuts ? m->call->tokens / m->what->chunk + m->call->batch : chunks_of(m, 0);
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++)
        open_tile(m, tile);
    for (uint32_t s = 0; s < algorithm->n_body; s++)
        check_packed(m, &algorithm->body[s]);
    for (uint32_t tile = 1; m->status == TG_OK && tile < algorithm->n_tensors; tile++)
        if (m->tiles[tile].tensor->flags & TG_OUT && m->tiles[tile].data)
            write_output(m, tile);
}

static void release(struct machine *m)
{
    for (uint32_t tile = 0; tile < TG_MAX_TILES; tile++) {
        free(m->tiles[tile].state);
        if (m->tiles[tile].is_own)
            free(m->tiles[tile].data);
    }
    free(m);
}

tg_status tg_interpret(const tg_interpretation *interpretation, const tg_sink *sink)
{
    if (tg_algorithm_check(interpretation->algorithm, NULL) != TG_OK)
        return tg_algorithm_check(interpretation->algorithm, sink); /* else no warnings: they have been told */
    struct machine *m = calloc(1, sizeof *m);
    if (!m)
        return TG_E_MEMORY;
    m->what = interpretation;
    m->call = interpretation->call;
    m->sink = sink;
    run(m);
    const tg_status status = m->status;
    release(m);
    return status;
}
