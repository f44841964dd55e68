/* compiler/pieces.c - calls that are taken in pieces (tegula.h): what cannot be, which kernels run side by side, and where states
 * are between one piece and the next. */
#include "compiler/plan.h"
#include "compiler/plan_program.h"

#include <stdio.h>

static bool is_row(const struct plan *p, uint32_t row)
{
    return p->row == &p->schedule->rows[row];
}

bool plan_begins_beside(const struct plan *p)
{
    return is_row(p, 0) && plan_overlaps(p) && tg_begins_beside(p->schedule, p->slices);
}

bool plan_lets_next_begin(const struct plan *p)
{
    return is_row(p, p->schedule->n_rows - 1) && plan_overlaps(p) && tg_begins_beside(p->schedule, p->slices);
}

bool plan_check_pieces(const struct plan *p)
{
    const tg_shape_class *s = &p->shape;
    const char *what = s->packed                        ? "packed sequences are"
                       : s->pooled                      ? "states in a pool are"
                       : s->state && s->state != TG_F32 ? "states that are not fp32 are"
                                                        : NULL;
    if (p->schedule->pieces < 2 || !what)
        return true;
    plan_refuse(p, "TG0557", "take a schedule without pieces", "%s not taken in pieces", what);
    return false;
}

bool plan_add_between(tg_program *program, const tg_schedule *schedule, const tg_sink *sink)
{
    const uint32_t n = program->n_tensors;
    for (uint32_t i = 0; i < n && schedule->pieces > 1; i++) {
        const int source = program->tensors[i].flags & TG_OUT ? tg_tensor_source(program, i) : TG_SOURCE_NONE;
        if (source < 0)
            continue;
        if (program->n_tensors == TG_MAX_TENSORS) {
            tg_report(sink, TG_ERROR, "TG0543", schedule->file, schedule->rows[0].line,
                      "take a schedule without pieces", "schedule %s: more than %d tensors in memory", schedule->name,
                      TG_MAX_TENSORS);
            return false;
        }
        tg_tensor_info *to = &program->tensors[program->n_tensors++];
        *to = program->tensors[source];
        snprintf(to->name, sizeof to->name, "between_%.6s", program->tensors[i].name);
        to->flags &= (uint8_t) ~(TG_IN | TG_OUT | TG_OPTIONAL);
        to->between = (uint8_t)(i + 1);
    }
    return true;
}
