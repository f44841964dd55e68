/* compiler/verify_stages.c - of the rules of verify_order.c those of stages: when they are filled, read and left, those of matrices with one
 * of their own too; and what roles, and the thread blocks of a cluster, tell each other about them.
 *
 * requires: order */
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "compiler/verify_order.h"

/* Does a store read what is where the matrix is loaded, or is it still to do so? */
static bool is_under_output(const struct check *c, uint32_t v)
{
    const struct plan *p = c->p;
    bool is = false;
    for (uint32_t i = 0; p->hands && i < p->n_ops; i++)
        is |= plan_is_handed(&p->ops[i]) && p->values[p->ops[i].a].offset == p->values[v].offset &&
              (c->storing || !(c->handed >> p->ops[i].v & 1));
    return is;
}

/* Who loads waits until it is left, says that it is loaded, and tells that to those who walk if they are told; these wait until it is
 * loaded, or are told, and leave it. */
static bool check_own_stage(struct check *c, const struct op *op)
{
    const uint32_t own = order_own_stage(c->p, op->v);
    const bool loads = op->role == ROLE_LOAD, awaits = op->kind == OP_AWAIT, arrives = op->kind == OP_ARRIVE;
    const bool begins = awaits && (loads ? op->sync == SYNC_LEFT : op->sync == SYNC_LOADED || op->sync == SYNC_TOLD),
               ends = arrives && op->sync == (loads ? SYNC_LOADED : SYNC_LEFT);
    for (uint32_t i = 0; i < c->p->n_values; i++)
        if (ends && (c->flying >> i & 1) && (c->rights[i] & order_loaded_to(c->p, op->v)))
            return order_broken(c, "leaves a matrix that a product under way reads");
    if (begins && (((c->there | c->left_own) >> own & 1) || !own))
        return order_broken(c, "waits for a matrix twice in a step");
    if (ends && (!(c->there >> own & 1) || (loads && !(c->loaded >> op->v & 1))))
        return order_broken(c, "leaves a matrix that it has not waited for, or not loaded");
    c->there = begins ? c->there | TG_BIT(own) : ends ? c->there & ~TG_BIT(own) : c->there;
    c->left_own |= ends ? TG_BIT(own) : 0;
    c->awaited_own |= loads && awaits && op->sync == SYNC_LOADED ? TG_BIT(own) : 0;
    if (loads && arrives && op->sync == SYNC_TOLD && !(c->awaited_own >> own & 1))
        return order_broken(c, "tells that a matrix is loaded, for which it has not waited");
    c->expected_own |= op->kind == OP_EXPECT && op->sync == SYNC_LOADED ? TG_BIT(own) : 0;
    if (op->kind == OP_LOAD && loads && own && !(c->expected_own >> own & 1))
        return order_broken(c, "a load that is not expected");
    if (op->kind == OP_LOAD && loads && c->p->values[op->v].told)
        c->untold |= TG_BIT(own);
    if (loads && arrives && op->sync == SYNC_TOLD)
        c->untold &= ~TG_BIT(own);
    if (op->kind == OP_END && c->untold)
        return order_broken(c, "tells nobody that a matrix is loaded");
    if (op->kind == OP_END && c->left_own != (tg_bits)((1u << c->p->own_stages) - 1) << 1)
        return order_broken(c, "a step without all matrices that have stages of their own");
    if (op->kind == OP_END)
        c->left_own = c->awaited_own = c->expected_own = 0;
    return true;
}

/* Matrices are multiplied when they have come, and before others may read them. */
static bool check_multiplied(struct check *c, const struct op *op)
{
    if (op->kind == OP_AWAIT && op->sync == SYNC_EMPTY)
        c->factors = c->expects_landed = c->landed = c->multiplied = false;
    if (op->kind == OP_LOAD && op->role == ROLE_LOAD && plan_is_multiplied(c->p, op->v) && !c->expects_landed)
        return order_broken(c, "a load of what is multiplied, which is not waited for");
    if (op->kind == OP_LOAD && op->role == ROLE_LOAD && c->p->values[op->v].space == SPACE_VECTOR && c->factors)
        return order_broken(c, "a vector that comes behind what is made of them");
    c->factors |= op->kind == OP_FACTORS;
    if (op->kind == OP_AWAIT && op->sync == SYNC_LANDED && !c->expects_landed)
        return order_broken(c, "waits for matrices whose bytes nobody expects");
    c->landed |= op->kind == OP_AWAIT && op->sync == SYNC_LANDED;
    if (op->kind == OP_MULTIPLY && !(c->landed && c->factors))
        return order_broken(c, "multiplies matrices that may not have come, or by what is not there");
    c->multiplied |= op->kind == OP_MULTIPLY;
    return op->kind != OP_ARRIVE || op->sync != SYNC_FULL || op->role != ROLE_LOAD ||
           ((c->factors || c->p->heads == 1) && (c->multiplied || !c->p->ways.scales)) ||
           order_broken(c,
                        "a stage is full without what is made of its vectors, or without the factors of its matrices");
}

bool order_check_ring(struct check *c, const struct op *op)
{
    const struct plan *p = c->p;
    if (!check_own_stage(c, op) || !check_multiplied(c, op))
        return false;
    if (op->kind == OP_LOAD && op->role == ROLE_LOAD && is_under_output(c, op->v))
        return order_broken(c, "a load to where an output is, or a store still reads");
    if (op->kind == OP_EXPECT)
        *(op->sync == SYNC_LANDED ? &c->expects_landed : &c->expects) = true;
    if (op->kind == OP_LOAD && op->role == ROLE_LOAD &&
        ((order_own_stage(p, op->v) ? !(c->there >> order_own_stage(p, op->v) & 1) : !c->in_stage) ||
         (c->loaded >> op->v & 1) || (p->values[op->v].space == SPACE_MATRIX && !c->expects)))
        return order_broken(c, "a load into a stage that is not empty, twice, or unexpected");
    if (op->kind == OP_AWAIT && (op->sync == SYNC_FULL || op->sync == SYNC_EMPTY)) {
        c->in_stage = true;
        c->expects = c->is_open = c->tells = c->has_barrier = c->awaited = c->told = c->made = c->cleared = false;
        c->put_told &= op->sync == SYNC_EMPTY;
        c->seen = c->looked = 0;
        c->loaded = c->covered = c->placed = c->fetched = c->scaled = c->put = c->ready = c->sent = 0;
    }
    c->told |= op->kind == OP_REST;
    if (op->kind == OP_REST && !c->in_stage)
        return order_broken(c, "asks whether a step is the last one when it has left its stage");
    if (op->kind == OP_LOAD && op->role == ROLE_LOAD && p->rests && !c->told)
        return order_broken(c, "fills a stage that may be one too many");
    if (op->kind != OP_ARRIVE || (op->sync != SYNC_FULL && op->sync != SYNC_EMPTY))
        return true;
    if (p->rests && !c->told)
        return order_broken(c, "leaves a stage without having asked whether it is the last one");
    if (op->sync == SYNC_EMPTY && p->shares_columns && p->sums_in >= 0 &&
        (c->unfenced & order_loaded_to(p, (uint32_t)p->sums_in)))
        return order_broken(c, "leaves a stage that it has written to, without a fence");
    if (op->sync == SYNC_EMPTY && op->role == ROLE_WALK && p->hands && !c->put_told)
        return order_broken(c, "leaves a stage and has not said that the output is there");
    if (!c->in_stage || c->flying || (c->storing && !p->lags && !p->apart) || c->lags)
        return order_broken(c, "leaves a stage that it has not waited for, or that a product or a store reads");
    c->lags = c->storing && !p->apart;
    for (uint32_t i = 0; op->sync == SYNC_FULL && i < p->nests[0].n_loads; i++)
        if (!(c->loaded >> p->nests[0].loads[i] & 1) && !order_own_stage(p, p->nests[0].loads[i]))
            return order_broken(c, "a stage is full without all that the ring loads");
    c->in_stage = false;
    c->handed = op->sync == SYNC_FULL ? 0 : c->handed;
    return true;
}

/* Tiles of positions that one role makes for another: all of them, fenced, in a stage that nobody can fill anew meanwhile. */
bool order_check_made(struct check *c, const struct op *op)
{
    c->cleared |= op->kind == OP_AWAIT && op->sync == SYNC_CLEARED;
    if (op->sync != SYNC_MADE)
        return true;
    for (uint32_t i = 0; i < c->p->n_values; i++) {
        if (!plan_is_made_tile(&c->p->values[i]))
            continue;
        if (op->kind == OP_ARRIVE && (!(c->put >> i & 1) || (c->unfenced >> i & 1)))
            return order_broken(c, "says that tiles are made which are not, or not fenced");
        c->defined |= TG_BIT(i);
        c->put |= TG_BIT(i);
    }
    c->made |= op->kind == OP_ARRIVE;
    return c->in_stage || order_broken(c, "tiles of a stage that is not full, or empty already");
}

/* What neighbours of a cluster tell each other before they write to each other's shared memory. */
bool order_check_cluster(struct check *c, const struct op *op)
{
    const struct value *v = &c->p->values[op->v];
    if (op->kind == OP_ARRIVE && op->sync == SYNC_OPEN)
        c->tells = true;
    if (op->kind == OP_ARRIVE && op->sync == SYNC_READY)
        c->ready |= TG_BIT(op->v);
    if (op->kind == OP_AWAIT && op->sync == SYNC_OPEN) {
        if (!c->tells)
            return order_broken(c, "waits for a stage that it has not said to be open");
        c->is_open = true;
    }
    if (op->kind == OP_LOAD && op->role == ROLE_LOAD && plan_is_loaded(v) && plan_shared_along(c->p, v) && !c->is_open)
        return order_broken(c, "loads into a stage that is not open");
    if (order_is_written(op) && op->kind != OP_RECEIVE && (c->sent >> op->v & 1))
        return order_broken(c, "makes what has been sent already");
    if (op->kind == OP_SEND && !(c->ready >> op->v & 1))
        return order_broken(c, "sends before it has said that the place is free");
    c->sent |= op->kind == OP_SEND ? TG_BIT(op->v) : 0;
    if (op->kind != OP_RECEIVE)
        return true;
    c->exchanged = true;
    return (c->sent >> op->v & 1) ||
           order_broken(c, "receives what the other thread block has no place for, for nothing was sent to it");
}

/* Are all outputs that are handed over in their places? */
static bool all_are_placed(const struct check *c)
{
    const struct plan *p = c->p;
    bool all = true;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        bool is = !plan_is_handed(&p->ops[i]);
        for (uint32_t v = 0; v < p->n_values && !is; v++)
            is = (c->placed >> v & 1) && p->values[v].offset == p->values[p->ops[i].a].offset;
        all &= is;
    }
    return all;
}

/* Who adds in turn waits for its turn in each step, adds, and passes it on behind that; of the last steps a store does all three. */
static bool check_turn(struct check *c, const struct op *op)
{
    const bool stores = plan_is_handed(op) && c->in_loop;
    if (op->kind == OP_AWAIT && op->sync == SYNC_TURN)
        c->has_turn = true;
    if (c->p->in_turn && stores && !c->has_turn)
        return order_broken(c, "adds to an output before it is its turn");
    c->owes_turn |= c->p->in_turn && stores;
    if (op->kind == OP_ARRIVE && op->sync == SYNC_TURN) {
        if (!c->owes_turn)
            return order_broken(c, "passes on a turn that it has not had");
        c->has_turn = c->owes_turn = false;
    }
    return op->kind != OP_END || !(c->has_turn || c->owes_turn) || order_broken(c, "keeps its turn to add");
}

/* An output that those who walk leave in its stage for the warp that loads: put and fenced; stored when it is, and of the last steps too. */
bool order_check_handed(struct check *c, const struct op *op)
{
    const struct plan *p = c->p;
    if (op->kind == OP_ARRIVE && op->sync == SYNC_PUT && (!all_are_placed(c) || c->unfenced))
        return order_broken(c, "says that the output is in its stage, which it is not, or not fenced");
    c->put_told |= op->sync == SYNC_PUT;
    if (!check_turn(c, op))
        return false;
    if (!plan_is_handed(op))
        return true;
    if (c->in_loop && (!c->put_told || c->in_stage))
        return order_broken(c, "stores an output that may not be there, or from a stage that is filled anew");
    *(c->in_loop ? &c->handed : &c->handed_last) |= TG_BIT(op->v);
    return p->hands || order_broken(c, "stores an output that nobody has handed over");
}

/* Of the step before. */
bool order_check_left_stage(struct check *c, const struct op *op)
{
    bool behind = op->kind == OP_ARRIVE && op->sync == SYNC_BEHIND;
    const bool by_blocks = op->guard == GUARD_FEW || op->guard == GUARD_MANY;
    if (behind && c->of_head && op->guard != GUARD_FIRST && !(by_blocks && c->p->tiles == 1))
        return order_broken(c, "leaves the stage of the step before more than once");
    if (behind && (op->guard == GUARD_MANY) != c->left_by_few)
        return order_broken(c, "leaves the stage of the step before only where thread blocks are many, or few");
    c->left_by_few = behind && op->guard == GUARD_FEW ? true : c->left_by_few && !behind;
    behind &= op->guard != GUARD_FEW;
    c->storing &= !behind && !(op->kind == OP_AWAIT && (op->sync == SYNC_READ || op->sync == SYNC_WRITTEN));
    c->lags &= !behind;
    c->writing &= !(op->kind == OP_AWAIT && op->sync == SYNC_WRITTEN);
    return true;
}
