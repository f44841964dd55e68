/* dsl/segments.c - segments: which rows make, begin, compose and end them, and which tiles have one entry each, see slice.h. */
#include "dsl/slice.h"

bool tg_row_has_segments(const tg_kernel_row *row)
{
    return row->row[TG_SEG].role == TG_ROLE_P && row->row[TG_CHUNK].role == TG_ROLE_W;
}

bool tg_tile_is_state(const tg_algorithm *algorithm, uint32_t tile)
{
    const int stmt = tg_tile_stmt(algorithm, tile);
    return stmt >= 0 && algorithm->body[stmt].op == TG_STMT_CARRY && TG_OPERAND_TILE(algorithm->body[stmt].out) == tile;
}

static bool lists_state(const tg_schedule *schedule, const tg_kernel_row *row)
{
    for (uint32_t i = 0; i < TG_MAX_OUTPUTS && row->outputs[i]; i++)
        if (tg_tile_is_state(schedule->algorithm, row->outputs[i]))
            return true;
    return false;
}

bool tg_row_makes_segments(const tg_schedule *schedule, uint32_t row)
{
    const tg_kernel_row *r = &schedule->rows[row];
    return tg_row_has_segments(r) && lists_state(schedule, r);
}

bool tg_row_starts_segments(const tg_schedule *schedule, uint32_t row)
{
    const tg_kernel_row *r = &schedule->rows[row];
    return r->row[TG_SEG].role == TG_ROLE_W && r->row[TG_CHUNK].role == TG_ROLE_W && lists_state(schedule, r);
}

bool tg_row_writes_segments(const tg_schedule *schedule, uint32_t row)
{
    return tg_row_makes_segments(schedule, row) || tg_row_starts_segments(schedule, row);
}

bool tg_row_has_ends(const tg_kernel_row *row)
{
    return row->row[TG_SEG].role == TG_ROLE_P && row->row[TG_CHUNK].role == TG_ROLE_P;
}

bool tg_row_composes_segments(const tg_schedule *schedule, uint32_t row)
{
    const tg_kernel_row *r = &schedule->rows[row];
    return r->row[TG_SEG].role == TG_ROLE_W && r->row[TG_CHUNK].role == TG_ROLE_NONE && lists_state(schedule, r);
}

uint32_t tg_transposed_of(const tg_schedule *schedule, const tg_stmt *carry)
{
    const uint32_t tile = carry->op == TG_STMT_CARRY ? TG_OPERAND_TILE(carry->transposed) : 0;
    const bool is_there =
        tg_tile_tensor(schedule->algorithm, tile) && (tg_tile_row(schedule, tile) >= 0 || tg_tile_kept(schedule, tile));
    return is_there ? tile : 0;
}

int tg_composing_row(const tg_schedule *schedule, uint32_t row, uint32_t tile)
{
    for (uint32_t r = row + 1; r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        if (tg_row_lists(&schedule->rows[r], tile) && tg_row_composes_segments(schedule, r))
            return (int)r;
    return -1;
}

uint32_t tg_tile_segment(const tg_schedule *schedule, uint32_t tile)
{
    bool any = false;
    for (uint32_t r = 0; r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        any |= schedule->rows[r].row[TG_SEG].role != TG_ROLE_NONE;
    if (!any)
        return 0;
    const int writer = tg_tile_row(schedule, tile), stmt = tg_tile_stmt(schedule->algorithm, tile);
    const uint8_t op = stmt < 0 ? TG_STMT_MAP : schedule->algorithm->body[stmt].op; /* most are: a search asks of all */
    const bool is_of_ends = op != TG_STMT_MAP && tg_tile_is_of_ends(schedule->algorithm, tile);
    if (is_of_ends || tg_tile_is_steady(schedule->algorithm, tile)) {
        const tg_kernel_row *row = writer >= 0 ? &schedule->rows[writer] : NULL;
        return row && (is_of_ends ? tg_row_has_segments(row) : tg_row_has_ends(row)) ? row->row[TG_SEG].block : 0;
    }
    if (op != TG_STMT_CARRY ||
        (!tg_tile_is_state(schedule->algorithm, tile) && !tg_tile_is_transition(schedule->algorithm, tile)))
        return 0;
    if (writer >= 0)
        return tg_row_writes_segments(schedule, (uint32_t)writer) ? schedule->rows[writer].row[TG_SEG].block : 0;
    if (!schedule->algorithm->body[stmt].b)
        return 0; /* vectors beside a state are kept one a chunk */
    for (uint32_t r = 0; tg_tile_kept(schedule, tile) && r < schedule->n_rows && r < TG_MAX_ROWS; r++)
        if (tg_row_has_segments(&schedule->rows[r]))
            return schedule->rows[r].row[TG_SEG].block;
    return 0;
}
