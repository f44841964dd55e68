/* dsl/check_segments.c - segments of a kernel: what it reads of their states, how these are composed, what is left behind them. */
#include "dsl/check.h"
#include "dsl/fields.h"

/* What a row with segments reads of another one's, or of the caller's, are the states of the same segments: of so many
 * chunks. 0: it reads no states of segments. */
static uint32_t read_segments(const struct kernel *k, uint32_t tile)
{
    return k->slice.loads & TG_BIT(tile) ? tg_tile_segment(k->schedule, tile) : 0;
}

/* What every segment makes by itself, by the time that the row begins: has an earlier one composed it? */
static bool is_composed(const struct kernel *k, uint32_t tile)
{
    const int writer = tg_tile_row(k->schedule, tile);
    if (writer < 0 || !tg_row_makes_segments(k->schedule, (uint32_t)writer))
        return true;
    const int composer = tg_composing_row(k->schedule, (uint32_t)writer, tile);
    return composer >= 0 && composer < (int)(k->row - k->schedule->rows);
}

static bool is_in_memory(const struct kernel *k, uint32_t tile)
{
    const int writer = tg_tile_row(k->schedule, tile);
    return (k->schedule->algorithm->tensors[tile].flags & TG_IN) ||
           (writer >= 0 ? &k->schedule->rows[writer] < k->row : tg_tile_kept(k->schedule, tile));
}

/* Does a statement of the row read the state that arrives? */
static bool depends_on_state(const struct kernel *k, uint32_t state)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    bool any = false;
    for (uint32_t s = 0; s < algorithm->n_body; s++) {
        tg_operand reads[TG_MAX_READS];
        for (uint32_t i = 0, n = tg_computed(k, s) ? tg_stmt_reads(&algorithm->body[s], reads) : 0; i < n; i++)
            any |= TG_OPERAND_TILE(reads[i]) == state;
    }
    return any;
}

/* A row that makes segments lists the transition of each carry whose state is read in it, and no other; no other row lists
 * any. */
static void check_transitions(const struct kernel *k)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    const bool makes = tg_row_makes_segments(k->schedule, (uint32_t)(k->row - k->schedule->rows));
    for (uint32_t s = 0; s < algorithm->n_body; s++) {
        const tg_stmt *stmt = &algorithm->body[s];
        const uint32_t state = TG_OPERAND_TILE(stmt->out), transition = TG_OPERAND_TILE(stmt->transition);
        struct tg_text text;
        if (stmt->op != TG_STMT_CARRY)
            continue;
        const bool lists = transition && tg_row_lists(k->row, transition),
                   needs = makes && tg_row_lists(k->row, state) && depends_on_state(k, state) &&
                           !tg_transposed_of(k->schedule, stmt);
        if (lists == needs)
            continue;
        tg_fault(
            k->check, TG0246,
            needs
                ? "give the CARRY a transition and list it behind the state; or let an earlier row write what is added"
                : "leave it out",
            needs ? "%s: what segments make of %s depends on the state that they begin with"
                  : "%s: no state of segments that it makes needs the transition of %s",
            k->name, tg_tile_text(algorithm, state, &text));
    }
}

/* In the place of what another row has made of as many chunks. */
static void check_composing(const struct kernel *k)
{
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && k->row->outputs[i]; i++) {
        struct tg_text text;
        const uint32_t tile = k->row->outputs[i], chunks = tg_tile_segment(k->schedule, tile);
        const int writer = tg_tile_row(k->schedule, tile);
        const tg_stmt *carry = &k->schedule->algorithm->body[tg_tile_stmt(k->schedule->algorithm, tile)];
        const uint32_t decay = TG_OPERAND_TILE(carry->decay);
        const uint32_t transposed = tg_transposed_of(k->schedule, carry);
        const bool by_values =
            writer >= 0 &&
            ((carry->transition && tg_row_lists(&k->schedule->rows[writer], TG_OPERAND_TILE(carry->transition))) ||
             transposed);
        if (transposed && (!is_in_memory(k, transposed) || tg_tile_segment(k->schedule, transposed) != chunks))
            tg_fault(k->check, TG0242, "let an earlier row make it, by as many chunks",
                     "%s: it composes segments of %u chunks by %s, which is not there", k->name, chunks,
                     tg_tile_text(k->schedule->algorithm, transposed, &text));
        if (decay && !by_values && !is_in_memory(k, decay))
            tg_fault(k->check, TG0242, "list it in the .outputs of an earlier kernel",
                     "%s: it composes segments of %s by its decay, which is not in memory", k->name,
                     tg_tile_text(k->schedule->algorithm, tile, &text));
        if (writer < 0 || &k->schedule->rows[writer] >= k->row ||
            !tg_row_makes_segments(k->schedule, (uint32_t)writer) || chunks != k->row->row[TG_SEG].block)
            tg_fault(k->check, TG0242, "let an earlier row with TG_P and the same block of seg make it",
                     "%s: it composes segments of %u chunks of %s, which no row has made", k->name,
                     k->row->row[TG_SEG].block, tg_tile_text(k->schedule->algorithm, tile, &text));
    }
}

/* Is the tile's entry of a segment that of the segment's last chunk? */
static bool is_at_end(const tg_algorithm *algorithm, uint32_t tile)
{
    const bool sums = tg_tile_sums_behind(algorithm, tile);
    const uint32_t of = sums ? TG_OPERAND_TILE(algorithm->body[tg_tile_stmt(algorithm, tile)].a) : tile;
    const int s = tg_tile_stmt(algorithm, of);
    const bool reverse = s >= 0 && algorithm->body[s].flags & TG_REVERSE;
    return tg_tile_is_behind(algorithm, of) ? !reverse : reverse && !tg_tile_is_transition(algorithm, of);
}

/* A row that has of each segment the last chunk makes what is the same for all of them. */
static void check_ends(const struct kernel *k)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    struct tg_text text;
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && k->row->outputs[i]; i++)
        if (!tg_tile_is_steady(algorithm, k->row->outputs[i]))
            tg_fault(k->check, TG0249, "leave seg out, or declare it TG_STEADY",
                     "%s: it visits only the last chunk of each segment, but lists %s, which is not TG_STEADY", k->name,
                     tg_tile_text(algorithm, k->row->outputs[i], &text));
    if (k->row->row[TG_SEG].block == 0)
        tg_fault(k->check, TG0249, "give it that of the other rows", "%s: seg has no block", k->name);
    for (uint32_t tile = 1; tile < TG_MAX_TILES; tile++) {
        const uint32_t chunks = read_segments(k, tile);
        if (chunks && (chunks != k->row->row[TG_SEG].block || !is_composed(k, tile) || !is_at_end(algorithm, tile)))
            tg_fault(k->check, TG0249, "read states behind chunks, or backwards those that arrive, of as many chunks",
                     "%s: it has the last chunk of each segment, of which %s says nothing", k->name,
                     tg_tile_text(algorithm, tile, &text));
    }
}

/* What the states that a walk leaves behind its segments meet there: what a walk back begins with, composed. */
static bool meets_states(const struct kernel *k, uint32_t tile)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    const tg_stmt *sum = &algorithm->body[tg_tile_stmt(algorithm, tile)];
    const uint32_t other = TG_OPERAND_TILE(sum->b);
    return is_at_end(algorithm, tile) && tg_tile_is_state(algorithm, other) && is_at_end(algorithm, other) &&
           read_segments(k, other) == k->row->row[TG_SEG].block && is_composed(k, other);
}

/* States behind chunks are left by segments alone; what is the same for all chunks of one is of each of them. */
static void check_left(const struct kernel *k)
{
    const tg_algorithm *algorithm = k->schedule->algorithm;
    struct tg_text text;
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && k->row->outputs[i]; i++)
        if (tg_tile_is_of_ends(algorithm, k->row->outputs[i]) &&
            (!tg_row_has_segments(k->row) ||
             tg_row_makes_segments(k->schedule, (uint32_t)(k->row - k->schedule->rows))))
            tg_fault(k->check, TG0249, "list it in a row that walks segments on from where they begin",
                     "%s: it lists %s, but walks no segments from the states with which they begin", k->name,
                     tg_tile_text(algorithm, k->row->outputs[i], &text));
        else if (tg_tile_sums_behind(algorithm, k->row->outputs[i]) && !meets_states(k, k->row->outputs[i]))
            tg_fault(
                k->check, TG0249,
                "multiply states behind chunks by those with which a walk back begins its segments of as many chunks",
                "%s: it lists %s, which is no product with states of segments in memory", k->name,
                tg_tile_text(algorithm, k->row->outputs[i], &text));
    for (uint32_t tile = 1; tile < TG_MAX_TILES; tile++)
        if (read_segments(k, tile) && tg_tile_is_of_ends(algorithm, tile))
            tg_fault(k->check, TG0249, "let a row with TG_P for seg and for chunk read it",
                     "%s: it reads %s, which exists only after the last chunk of each segment", k->name,
                     tg_tile_text(algorithm, tile, &text));
}

/* One number a segment, read by a row that has a chunk of it. */
static bool reads_steady(const struct kernel *k, uint32_t tile)
{
    return tg_tile_is_steady(k->schedule->algorithm, tile) && k->row->row[TG_SEG].role == TG_ROLE_NONE &&
           k->row->row[TG_CHUNK].role == TG_ROLE_P;
}

/* Thread blocks that wait for one another go on with a state, and a row before them clears what they wait for. */
static void check_relay(const struct kernel *k)
{
    const bool walks = k->row->row[TG_CHUNK].role == TG_ROLE_W && k->row->mma == TG_MMA_WGMMA && tg_computes_carry(k);
    if (tg_schedule_is_cut(k->schedule))
        tg_fault(k->check, TG0251, "give seg either TG_R or the roles of segments, in all rows that have it",
                 "%s: seg is relayed, and other rows are cut into segments", k->name);
    else if (!walks || k->row->row[TG_SEG].block == 0)
        tg_fault(k->check, TG0251, "walk chunk with TG_MMA_WGMMA, and give seg a block; or leave seg out",
                 "%s: seg is relayed, but no state goes on from so many chunks to the next", k->name);
    else if (k->row == k->schedule->rows)
        tg_fault(k->check, TG0251, "let a row before it write something that it reads, or leave seg out",
                 "%s: seg is relayed in the first row; a row before it must clear what thread blocks wait for",
                 k->name);
}

/* A segment starts from nothing and its state goes to memory, or from what such rows have written and
 * another has composed. Who walks them all writes what they begin with. */
void tg_check_segments(const struct kernel *k)
{
    const tg_axis_role *segment = &k->row->row[TG_SEG];
    const uint32_t row = (uint32_t)(k->row - k->schedule->rows);
    bool starts = tg_row_makes_segments(k->schedule, row);
    check_transitions(k);
    if (tg_row_has_ends(k->row)) {
        check_ends(k);
        return;
    }
    check_left(k);
    if (tg_row_composes_segments(k->schedule, row)) {
        check_composing(k);
        return;
    }
    for (uint32_t tile = 1; tile < TG_MAX_TILES; tile++) {
        struct tg_text text;
        const uint32_t chunks = read_segments(k, tile);
        const bool entered = chunks && tg_row_has_segments(k->row) && segment->block == chunks;
        starts |= entered;
        if (entered && !is_composed(k, tile))
            tg_fault(k->check, TG0225,
                     "let a row before it list the tile with TG_W and the same block of seg, without chunk",
                     "%s: it reads %s, which each segment has made by itself and no row has composed", k->name,
                     tg_tile_text(k->schedule->algorithm, tile, &text));
        if (!entered && chunks && !reads_steady(k, tile))
            tg_fault(k->check, TG0225, "give this row TG_P and the same block of seg",
                     "%s: it reads %s, which has one entry for each segment of %u chunks", k->name,
                     tg_tile_text(k->schedule->algorithm, tile, &text), chunks);
    }
    if (tg_row_relays(k->row)) {
        check_relay(k);
    } else if (segment->role == TG_ROLE_W) {
        if (!tg_row_starts_segments(k->schedule, row) || segment->block == 0)
            tg_fault(k->check, TG0242, "list the out of a carry, walk chunk, and give seg a block; or use TG_P",
                     "%s: it walks all segments, but not to write the states with which they begin", k->name);
    } else if ((segment->role != TG_ROLE_NONE || segment->block != 0) &&
               !(starts && segment->role == TG_ROLE_P && segment->block > 0 && tg_computes_carry(k)))
        tg_fault(k->check, TG0225,
                 "walk chunk, and let an earlier kernel with the same segments write the state; or leave seg out",
                 "%s: seg has a role or block, but its segments have no states to start from", k->name);
}
