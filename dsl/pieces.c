/* dsl/pieces.c - sequences that are taken in pieces (tegula.h): which rows can be, and which of them begins beside a walk. */
#include "dsl/check.h"

/* The first row, where it has chunks side by side and reads inputs alone. */
bool tg_begins_beside(const tg_schedule *schedule, const struct tg_slices *slices)
{
    const tg_algorithm *algorithm = schedule->algorithm;
    bool ok = schedule->pieces > 1 && schedule->n_rows > 1 && schedule->rows[0].row[TG_CHUNK].role == TG_ROLE_P &&
              slices->good & 1;
    for (uint32_t tile = 1; tile < algorithm->n_tensors && ok; tile++)
        ok = !(slices->rows[0].loads & TG_BIT(tile)) || (algorithm->tensors[tile].flags & (TG_IN | TG_OUT)) == TG_IN;
    return ok;
}

/* What the statement takes from chunk to chunk, and why a walk of a piece cannot; NULL: it can, or there is nothing. */
static const char *statement_fault(const struct kernel *k, const tg_stmt *stmt)
{
    const uint32_t along = tg_stmt_along(k->schedule->algorithm, stmt) & 1u << TG_CHUNK;
    const uint32_t final_ = TG_OPERAND_TILE(stmt->final_);
    if (stmt->op == TG_STMT_SHIFT || along)
        return "which goes on from one piece to the next without a state";
    if (stmt->op != TG_STMT_CARRY)
        return NULL;
    if (stmt->flags & TG_REVERSE)
        return "which goes back in time";
    return stmt->init && final_ && k->slice.stores & TG_BIT(final_)
               ? NULL
               : "of which an initial or the final state is not the row's";
}

void tg_check_pieces(const struct kernel *k)
{
    const uint32_t role = k->row->row[TG_CHUNK].role;
    const char *hint = "leave .pieces out";
    if (k->schedule->pieces < 2)
        return;
    if (k->schedule->max_tokens || k->row->row[TG_SEG].role != TG_ROLE_NONE)
        tg_fault(k->check, TG0250, hint, "%s: a decode step, or one with segments, is not taken in pieces", k->name);
    else if (role != TG_ROLE_P && role != TG_ROLE_W)
        tg_fault(k->check, TG0250, hint, "%s: chunk is taken in pieces: expected TG_P or TG_W, found %s", k->name,
                 role == TG_ROLE_L ? "TG_L" : "no role");
    for (uint32_t s = 0; s < k->schedule->algorithm->n_body; s++) {
        const tg_stmt *stmt = tg_computed(k, s);
        const char *fault = stmt ? statement_fault(k, stmt) : NULL;
        struct tg_text text;
        if (fault)
            tg_fault(k->check, TG0250, hint, "%s: chunk is taken in pieces, but it makes %s, %s", k->name,
                     tg_tile_text(k->schedule->algorithm, TG_OPERAND_TILE(stmt->out), &text), fault);
    }
}
