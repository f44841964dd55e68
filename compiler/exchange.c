/* compiler/exchange.c - when the two thread blocks of a cluster that add up an output tell each other that its place is free, and when
 * each sends its half: as early as can be, so that what is between hides how long it is under way. Called by order.c, which has put
 * OP_RECEIVE where the sum is needed.
 *
 * requires: all operations of role walk   makes: its SYNC_READY and OP_SEND */
#include "compiler/order.h"
#include "compiler/plan_walk.h"

static bool is_in_place(const struct plan *p, uint32_t v, uint32_t place)
{
    return plan_is_loaded(&p->values[v]) && p->values[v].offset == p->values[place].offset;
}

/* Does it read the matrix from shared memory? What has been fetched is in registers. */
bool order_reads_place(const struct plan *p, const struct op *op, uint32_t place)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    const uint32_t n = plan_op_reads(p, op, reads);
    const bool of_fetched = op->kind == OP_CONTRACT && plan_is_owned(p, &p->values[op->v]);
    for (uint32_t i = 0; i < n; i++)
        if (is_in_place(p, reads[i], place) && !(of_fetched && reads[i] == op->a))
            return true;
    return false;
}

static bool writes(const struct op *op, uint32_t v)
{
    return op->v == v && (op->kind == OP_MAP || op->kind == OP_COPY || op->kind == OP_CONTRACT ||
                          (op->kind == OP_AWAIT && op->sync == SYNC_PRODUCT));
}

bool order_awaits(const struct plan *p, const struct op *op, uint32_t v)
{
    return op->kind == OP_AWAIT &&
           ((op->sync == SYNC_PRODUCT && op->v == v) || (op->sync == SYNC_STATE && v == p->state));
}

/* Where an operation comes for that the place must be free: behind the last one that reads it, the end of a product that does, and the
 * last barrier of all groups, for products of positions read what others own. */
static uint32_t first_free(const struct plan *p, uint32_t begin, uint32_t end, uint32_t place)
{
    uint32_t free = begin;
    for (uint32_t i = begin; i < end; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_BARRIER && op->sync == SYNC_GROUPS)
            free = i + 1;
        if (!order_reads_place(p, op, place))
            continue;
        free = i + 1;
        for (uint32_t k = i + 1; op->kind == OP_CONTRACT && k <= end; k++)
            if (k == end || order_awaits(p, &p->ops[k], op->v)) {
                free = k == end ? end : k + 1;
                break;
            }
    }
    return free;
}

/* Where v can be sent: it is made, the other one has had time to say that its place is free, and a product is under way that was
 * issued since. Those that were issued with v are awaited with it, one behind the other, and nothing stands between. */
static uint32_t first_sent(const struct plan *p, uint32_t from, uint32_t end, uint32_t v)
{
    uint32_t made = from;
    for (uint32_t i = from; i < end; i++)
        made = writes(&p->ops[i], v) ? i + 1 : made;
    while (made < end && p->ops[made].kind == OP_AWAIT && p->ops[made].sync == SYNC_PRODUCT)
        made++;
    for (uint32_t i = made; i < end; i++)
        if (p->ops[i].kind == OP_AWAIT || p->ops[i].kind == OP_RECEIVE)
            return i;
    return end;
}

/* Of the sum that is received by the operation at `end`; returns where that is then. */
static uint32_t hide(struct plan *p, uint32_t begin, uint32_t end)
{
    struct op send = p->ops[end], ready = send;
    send.kind = OP_SEND;
    ready.kind = OP_ARRIVE;
    ready.sync = SYNC_READY;
    const uint32_t free = first_free(p, begin, end, send.a), sent = first_sent(p, free, end, send.v);
    plan_insert_op(p, sent, send);
    plan_insert_op(p, free, ready);
    return end + 2;
}

void order_hide_exchange(struct plan *p)
{
    uint32_t begin = 0;
    for (uint32_t i = 0; i < p->n_ops && i < PLAN_MAX_OPS; i++) {
        if (p->ops[i].role == ROLE_WALK && p->ops[i].kind == OP_TILES)
            begin = i + 1;
        if (p->ops[i].kind == OP_RECEIVE)
            i = hide(p, begin, i);
    }
}
