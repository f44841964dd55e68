/* compiler/verify_order.c - what must hold of the operations of a kernel on warpgroups, as each role executes them (order.c).
 *
 *   values are defined before they are used
 *   every product is awaited before its accumulators are touched, or what it has on the left in registers, and before the stage
 *       is left that its operands are in; those that are said to be under way meanwhile are; those by the state before others
 *       of its columns are a left operand, or where parts overlap all but the last; and by all its columns before they are read
 *   what a product into the state has on the left while one by a tile reads the same matrix is made before
 *   what is written to shared memory is fenced where wgmma reads it, and behind a barrier where other warps do; of two
 *       buffers one is written while the other may still be read: there is a barrier of all groups in every step; where all
 *       have one there is such a barrier at the end of the step, too; one alone is written behind a barrier that follows
 *       its last product
 *   tiles that makers make are put and fenced before they say so, and read behind that, all in a stage of the ring; rows are made
 *       row by row, of elements that were fetched, and where they are put nobody else reads what was loaded
 *   where transitions end early, both roles know in every step, before the stage is left or filled
 *   where groups share the columns of the state, each sum over these is added up before it is read, behind a barrier of all groups that
 *       follows the sum before, or all reads of the matrix in whose place it is made, which is fenced before its stage is left; and the
 *       state is awaited between two products by it
 *   a carried vector that is read in the step after is read behind a barrier of the group
 *   what each of several heads has of its own is read where one of them, or a tile, is at hand; where a group has whole
 *       heads, nobody else reads what it makes, and its own barrier is that of all
 *   an output goes to a buffer of its own behind a barrier that follows the wait for the store that read it
 *   ... or those who walk leave it in its stage, and say so when it is put and fenced: the warp that loads stores it behind that, before it
 *       loads to there again, and what the last steps have left
 *   the state is put to where all groups have it, rounded, behind a barrier of all that follows all reads of what was there, by products
 *       and by the store of the output; that goes there behind one of the group that follows its product; and what a product of a tile
 *       across and a masked one has on the right is looked at before, and read by nobody meanwhile or behind that in its step
 *   roles have no more registers than there are
 *   exponentials that a map takes are those of the map before it
 *   where the other way of a chunk puts off decays, the state has caught up in each step before it is read, and behind the last
 *   a matrix that has a stage of its own is read between its being loaded and left, and loaded when it is left, once in every step
 *   stages of the ring are read between full and empty, and filled between empty and full, each matrix once; the thread that
 *       stores leaves that of the step before once, when it has been read and before it stores again
 *
 * requires: order */
#include "compiler/plan.h"
#include "compiler/plan_program.h"
#include "compiler/plan_walk.h"
#include "compiler/verify_order.h"

bool order_broken(const struct check *c, const char *rule)
{
    tg_report(c->p->sink, TG_ERROR, "TG0599", NULL, 0, "this is a defect of Tegula: please report it with the schedule",
              "kernel %s, after pass order, operation %u: %s", c->p->row->name, c->at, rule);
    return false;
}

bool order_is_ring(const struct plan *p, uint32_t v)
{
    return p->values[v].stmt < 0 && (p->values[v].space == SPACE_MATRIX || p->values[v].space == SPACE_VECTOR);
}

/* The number of the matrix's own stage; 0: it has none. */
uint32_t order_own_stage(const struct plan *p, uint32_t v)
{
    return order_is_ring(p, v) ? p->values[v].own_stage : 0;
}

/* Whatever is loaded to the same place. */
tg_bits order_loaded_to(const struct plan *p, uint32_t v)
{
    tg_bits there = 0;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (order_is_ring(p, i) && p->values[i].space == SPACE_MATRIX && p->values[i].offset == p->values[v].offset)
            there |= TG_BIT(i);
    return there;
}

bool order_is_written(const struct op *op)
{
    return op->kind == OP_LOAD || op->kind == OP_INIT || op->kind == OP_ENTER || op->kind == OP_MAP ||
           op->kind == OP_CONTRACT || op->kind == OP_DOT || op->kind == OP_DECAY || op->kind == OP_COPY ||
           op->kind == OP_SCAN || op->kind == OP_RECEIVE || op->kind == OP_MEET || op->kind == OP_TAKE ||
           op->kind == OP_ADD_UP;
}

static uint32_t reads_of_map(const struct plan *p, uint32_t v, uint8_t reads[TG_MAX_READS])
{
    tg_operand list[TG_MAX_READS];
    const uint32_t n = tg_stmt_reads(&p->algorithm->body[p->values[v].stmt], list);
    for (uint32_t i = 0; i < n; i++)
        reads[i] = (uint8_t)plan_find(p, list[i], p->values[v].nest);
    return n;
}

uint32_t plan_op_reads(const struct plan *p, const struct op *op, uint8_t reads[PLAN_MAX_OP_READS])
{
    uint32_t n = 0;
    switch (op->kind) {
    case OP_MAP:
        if (!p->decayed || op->v != p->ways.tile)
            return reads_of_map(p, op->v, reads);
        reads[n++] = p->ways.product;
        return n;
    case OP_ADDEND:
    case OP_BEGIN:
        reads[n++] = op->a;
        reads[n++] = op->b;
        return n + (op->flags & OP_SCALED ? reads_of_map(p, op->c, reads + n) : 0);
    case OP_CONTRACT:
    case OP_DOT:
        reads[n++] = op->a;
        reads[n++] = op->b;
        if (op->flags & OP_OF_PRODUCT)
            reads[n++] = op->w;
        if ((op->flags & OP_ONTO) || plan_is_carried(&p->values[op->v]))
            reads[n++] = op->v;
        if (op->flags & OP_DECAYED)
            reads[n++] = op->c;
        return n + (op->flags & OP_SCALED ? reads_of_map(p, op->c, reads + n) : 0);
    case OP_SCALE:
        return op->flags & OP_SCALED ? reads_of_map(p, op->c, reads) : 0;
    case OP_DECAY:
    case OP_REST:
        if (op->role == ROLE_LOAD)
            return 0;
        reads[n++] = op->v;
        reads[n++] = op->a;
        return n;
    case OP_ADD_UP:
        reads[n++] = op->v;
        return n;
    case OP_PUT_OFF:
        reads[n++] = op->a;
        return n;
    case OP_COPY:
    case OP_SCAN:
    case OP_MEET:
        reads[n++] = op->a;
        return n;
    case OP_TOTAL:
    case OP_FETCH:
    case OP_PUT:
    case OP_SEND:
    case OP_RECEIVE:
    case OP_STORE:
    case OP_LEAVE:
    case OP_TAKE: /* nothing, of the first segment */
    case OP_PASS:
    case OP_START:
    case OP_KEEP:
        if (op->role == ROLE_LOAD) /* it is in the stage */
            return 0;
        reads[n++] = op->v;
        return n;
    default:
        return 0;
    }
}

const struct op *plan_only_reader(const struct plan *p, uint32_t v)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    const struct op *only = NULL;
    uint32_t readers = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        for (uint32_t k = 0, n = plan_op_reads(p, op, reads); k < n; k++)
            if (reads[k] == v && (op->v != v || op->kind == OP_STORE)) {
                only = op;
                readers++;
            }
    }
    return readers == 1 ? only : NULL;
}

/* Do makers put rows where the matrix is loaded? */
static bool gives_place(const struct plan *p, uint32_t v)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (plan_is_made_of_rows(&p->values[i]) && plan_is_loaded(&p->values[v]) &&
            p->values[i].offset == p->values[v].offset)
            return true;
    return false;
}

static bool check_read_of_rows(const struct check *c, const struct op *op, uint32_t v)
{
    const struct plan *p = c->p;
    if (op->role == ROLE_WALK && gives_place(p, v))
        return order_broken(c, "reads a matrix in whose place makers put rows");
    if (!plan_works_on_rows(p, op))
        return true;
    if (!c->of_row)
        return order_broken(c, "makes rows, but not row by row");
    return !plan_is_loaded(&p->values[v]) || (c->fetched >> v & 1) ||
           order_broken(c, "makes a row of what has not been fetched");
}

/* May what the other thread block of a cluster sends come to where the matrix is loaded? */
static bool may_be_overwritten(const struct check *c, uint32_t v)
{
    const struct plan *p = c->p;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_RECEIVE && (c->ready >> p->ops[i].v & 1) && plan_is_loaded(&p->values[v]) &&
            p->values[p->ops[i].a].offset == p->values[v].offset)
            return true;
    return false;
}

/* Where a product has taken NaN out of what was fetched, it has spoiled what they reach: the map reads that, too. */
static bool check_map_of_fetched(const struct check *c, const struct op *op, uint32_t v)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    const uint32_t first = plan_first_of(c->p, v);
    bool has_product = !(c->cleaned >> first & 1);
    if (!(c->fetched >> first & 1))
        return order_broken(c, "a map of what has not been fetched");
    for (uint32_t k = 0, n = plan_op_reads(c->p, op, reads); k < n; k++)
        has_product |= c->cleans[reads[k]] >> first & 1;
    return has_product || order_broken(c, "a map of what NaN were taken out of, without the product that they spoil");
}

static bool check_read(const struct check *c, const struct op *op, uint32_t v)
{
    const struct plan *p = c->p;
    const bool by_wgmma = op->kind == OP_CONTRACT, is_sum = by_wgmma && v == op->v;
    if (!(c->defined >> v & 1))
        return order_broken(c, "a use before the definition");
    const bool of_all = p->values[v].summed || op->kind == OP_STORE; /* sums of all heads are stored at once */
    if (p->values[v].by_head && c->in_loop && !c->of_head && !of_all)
        return order_broken(c, "reads what each head has, and knows not which");
    const bool is_rounded = v == p->state && by_wgmma && p->rounds_state; /* as it was put */
    if ((c->flying >> v & 1) && !is_sum && !is_rounded)
        return order_broken(c, "reads what a product is still under way to");
    if (v == p->state && c->owes_decay)
        return order_broken(c, "reads a state that may not have caught up with its decay");
    if (op->kind == OP_DOT && (op->flags & OP_AHEAD) && plan_is_loaded(&p->values[v]) &&
        plan_is_owned(p, &p->values[v]) && !(c->fetched >> plan_first_of(p, v) & 1))
        return order_broken(c, "a sum of what has not been fetched");
    if (c->next_part[v] && !is_sum)
        return order_broken(c, "reads a product by some columns of the state, and not by all");
    if ((c->parts >> v & 1) && op->kind != OP_ADD_UP && !is_sum)
        return order_broken(c, "reads the part of a sum that the columns of one group are");
    const uint32_t own = order_own_stage(p, v);
    if (own ? !(c->there >> own & 1) : order_is_ring(p, v) && !c->in_stage)
        return order_broken(c, "reads a stage that is not full, or empty already");
    if (p->has_makers && p->shape.packed && plan_is_loaded(&p->values[v]) && op->role != ROLE_LOAD && !c->cleared)
        return order_broken(c, "reads a stage that may still have tokens of the next sequence");
    const bool fetched = by_wgmma && v == op->a && plan_is_owned(p, &p->values[op->v]); /* it is in registers */
    if (!fetched && (c->covered >> v & 1))
        return order_broken(c, "reads a tile where an output is already");
    if (!fetched && may_be_overwritten(c, v))
        return order_broken(c, "reads a tile whose place the other thread block of the cluster may write to");
    const bool in_shared =
        v == op->b || plan_is_made_tile(&p->values[v]) || (p->rounds_state && v == p->state && v != op->v);
    const tg_bits unseen =
        v == p->state && v == op->a ? c->ungrouped : c->unseen; /* of the state: the rows of the group */
    if (by_wgmma && in_shared && ((c->unfenced | unseen) >> v & 1))
        return order_broken(c, "a product by a tile that is not fenced, or not whole");
    if ((op->flags & OP_OF_PRODUCT) && v == p->state && !c->awaited && !c->sums)
        return order_broken(c, "a sum of the state, which the assembler does not see to be made");
    const bool by_others = v != op->v && (op->kind == OP_MAP || op->kind == OP_DOT);
    if (plan_is_carried(&p->values[v]) && by_others && (c->owed >> v & 1))
        return order_broken(c, "reads what the group carries on, without a barrier");
    if (op->guard == GUARD_LATER && c->in_loop)
        return c->has_barrier || order_broken(c, "stores what other warps left in the step before, without a barrier");
    if (!by_wgmma && (c->unseen >> v & 1) && !plan_is_made_tile(&p->values[v]) && v != p->state)
        return order_broken(c, "reads what other warps have written, without a barrier");
    if (op->kind == OP_MAP && op->flags & OP_AHEAD && plan_is_loaded(&p->values[v]) && !check_map_of_fetched(c, op, v))
        return false;
    return check_read_of_rows(c, op, v);
}

/* Of the state one left operand is in registers at a time, or two where they overlap. */
static bool check_columns(struct check *c, const struct op *op)
{
    if (op->a != c->p->state)
        return true;
    if (op->n != c->next_part[op->v])
        return order_broken(c, "a product by some columns of the state, and not by those before them");
    c->next_part[op->v] = (uint8_t)((op->n + 1U) % plan_state_parts(c->p));
    const bool others = op->n != c->columns && (c->flying & c->by_columns);
    if (others && (!c->p->overlaps_parts || c->parts_ahead > 0))
        return order_broken(c, "a product by some columns of the state while one by others is under way");
    c->parts_ahead = others ? c->parts_ahead + 1 : 0;
    c->by_columns = (op->n == c->columns ? c->by_columns : 0) | TG_BIT(op->v);
    c->columns = op->n;
    return true;
}

static bool check_product_across(struct check *c, const struct op *op)
{
    const struct plan *p = c->p;
    tg_bits others = 0;
    if (!plan_is_across(p, &p->values[op->v]))
        return true;
    if (!plan_is_loaded(&p->values[op->a]) && !(c->put >> op->a & 1))
        return order_broken(c, "a left operand that is not in shared memory");
    if (op->b == p->state)
        return true;
    for (uint32_t i = 0; i < p->n_values; i++)
        others |= (c->flying >> i & 1) ? c->rights[i] : 0;
    c->covered |= order_loaded_to(p, op->b);
    return ((c->looked >> op->b & 1) && !(others & order_loaded_to(p, op->b))) ||
           order_broken(c, "takes NaN out of a matrix that nobody has looked at, or that a product under way reads");
}

static bool check_product(struct check *c, const struct op *op)
{
    const struct plan *p = c->p;
    const bool owned = plan_is_owned(p, &p->values[op->v]);
    if (op->a == p->state && !c->awaited)
        return order_broken(c, "a product by the state, which the assembler does not see to be made");
    const bool by_rounded = p->rounds_state && op->v != p->state && (op->a == p->state || op->b == p->state);
    c->by_rounded |= by_rounded ? TG_BIT(op->v) : 0;
    c->read |= by_rounded ? TG_BIT(p->state) : 0;
    c->rights[op->v] |= by_rounded ? TG_BIT(p->state) : 0;
    if (by_rounded && !(c->put >> p->state & 1))
        return order_broken(c, "a product by the rounded state, which is not in shared memory");
    if (!check_columns(c, op) || !check_product_across(c, op))
        return false;
    const bool of_fetched = owned && plan_is_loaded(&p->values[op->a]);
    if (of_fetched && !(c->fetched >> op->a & 1))
        return order_broken(c, "a left operand that has not been fetched");
    if (of_fetched && op->v != p->state && (c->cleaned >> op->a & 1))
        return order_broken(c, "a product by a tile of what another has taken NaN out of");
    if (of_fetched && op->v != p->state)
        c->cleaned |= TG_BIT(op->a), c->cleans[op->v] |= TG_BIT(op->a);
    for (uint32_t i = 0; i < p->n_values; i++)
        if (of_fetched && (c->flying >> i & 1) && (c->lefts[i] >> op->a & 1) && !(op->flags & OP_AHEAD))
            return order_broken(c, "reads a left operand that a product is still under way from");
    if (op->flags & OP_AHEAD && !(c->scaled >> op->a & 1))
        return order_broken(c, "a left operand that has not been made before");
    c->lefts[op->v] |= of_fetched ? TG_BIT(op->a) : 0;
    if (!plan_is_loaded(&p->values[op->b]) && !(c->put >> op->b & 1))
        return order_broken(c, "a right operand that is not in shared memory");
    if (p->shares_columns && op->a == p->state) {
        if (c->packed && c->packed != op->v + 1)
            return order_broken(
                c, "a product by the state, which the compiler has kept as an operand from the one before");
        c->packed = (uint8_t)(op->v + 1);
        c->parts |= TG_BIT(op->v);
    }
    c->read |= TG_BIT(op->b) | (owned ? 0 : TG_BIT(op->a));
    c->rights[op->v] |= TG_BIT(op->b) | (owned ? 0 : TG_BIT(op->a));
    c->flying |= TG_BIT(op->v);
    c->last[op->v] = ++c->issued;
    return true;
}

static bool check_scaled(struct check *c, const struct op *op)
{
    for (uint32_t i = 0; i < c->p->n_values; i++)
        if ((c->flying >> i & 1) && (c->lefts[i] >> op->v & 1))
            return order_broken(c, "reads a left operand that a product is still under way from");
    c->scaled |= TG_BIT(op->v);
    return (c->fetched >> op->v & 1) || order_broken(c, "a left operand that has not been fetched");
}

/* A sum of the state whose first product was under way is the one behind it, and the end of that product. */
static bool check_begun(struct check *c, const struct op *op)
{
    const bool ends = op->kind == OP_DOT && (op->flags & OP_OF_PRODUCT);
    if (op->kind != OP_BEGIN && !ends)
        return true;
    if (op->kind == OP_BEGIN && (c->flying >> op->v & 1))
        return order_broken(c, "begins a sum of the state that is under way");
    if (op->kind == OP_BEGIN)
        c->last[op->v] = ++c->issued;
    c->flying = op->kind == OP_BEGIN ? c->flying | TG_BIT(op->v) : c->flying & ~TG_BIT(op->v);
    return true;
}

/* Parts of a sum, and what is made of them for a group: seen by others behind a barrier. */
static bool is_for_others(const struct plan *p, const struct op *op)
{
    return (op->kind == OP_DOT || op->kind == OP_MEET) && p->values[op->v].space == SPACE_PARTS;
}

/* What is read in the step after, behind its barrier, is overwritten behind another one: in two buffers behind that of the step, in
 * three anywhere. */
static bool check_parts(const struct check *c, const struct op *op)
{
    const struct plan *p = c->p;
    if (is_for_others(p, op) && p->values[op->v].late && plan_part_buffers(p, &p->values[op->v]) == 2 &&
        !c->has_barrier)
        return order_broken(c, "makes parts of a sum where those of the step before the last may still be read");
    return true;
}

static void write_value(struct check *c, const struct op *op)
{
    const struct plan *p = c->p;
    c->defined |= TG_BIT(op->v);
    if (is_for_others(p, op))
        c->unseen |= TG_BIT(op->v);
    if (op->kind == OP_DOT && plan_is_carried(&p->values[op->v]))
        c->left |= TG_BIT(op->v);
    if (op->kind != OP_DOT && plan_is_carried(&p->values[op->v]))
        c->begins = true;
    if (op->kind == OP_LOAD)
        c->loaded |= TG_BIT(op->v);
}

static bool put_rounded_state(struct check *c)
{
    const tg_bits state = TG_BIT(c->p->state);
    for (uint32_t i = 0; i < c->p->n_values; i++)
        if (plan_is_across(c->p, &c->p->values[i]) && (c->stored >> i & 1))
            return order_broken(c, "puts the state where a store may still read an output");
    if (c->read & state)
        return order_broken(c, "puts the state where another group may still read that of the step before");
    c->put |= state;
    c->unfenced |= state;
    c->ungrouped |= state;
    c->unseen |= state;
    return true;
}

static bool put_value(struct check *c, const struct op *op)
{
    const struct plan *p = c->p;
    if (op->v == p->state)
        return put_rounded_state(c);
    if (plan_has_one_buffer(p, &p->values[op->v]) && (c->read >> op->v & 1))
        return order_broken(c, "overwrites a tile that another group may still read");
    if (plan_is_made_tile(&p->values[op->v])) {
        c->added &= ~TG_BIT(op->v);
        c->put |= TG_BIT(op->v);
        c->unfenced |= TG_BIT(op->v);
        c->unseen |= TG_BIT(op->v);
        if (!plan_is_made_of_rows(&p->values[op->v]))
            return true;
    } else {
        c->unfenced |= TG_BIT(op->a);
        c->ungrouped |= TG_BIT(op->a);
        c->placed |= TG_BIT(op->a);
    }
    c->covered |= order_loaded_to(p, op->a);
    return true;
}

/* The output, which a tensor map fetches from where it was put. */
static bool is_from_shared(const struct plan *p, const struct op *op)
{
    return op->kind == OP_STORE && p->values[op->v].space == SPACE_FRAGMENT && plan_memory_dtype(p, op->tile) != TG_F32;
}

static bool check_awaited(struct check *c, const struct op *op)
{
    c->awaited |= op->kind == OP_AWAIT && (op->sync == SYNC_PRODUCT || op->sync == SYNC_STATE);
    if (op->kind == OP_AWAIT && op->sync == SYNC_PART)
        c->parts_ahead = 0;
    c->of_state = op->kind == OP_AWAIT ? op->sync == SYNC_STATE : c->of_state;
    if (op->kind == OP_AWAIT && (op->sync == SYNC_STATE || (op->sync == SYNC_PRODUCT && op->v == c->p->state)))
        c->packed = 0;
    c->sums = c->of_state && (op->flags & OP_OF_PRODUCT || (c->sums && op->kind != OP_AWAIT));
    c->awaited &= !c->sums;
    if (op->kind != OP_AWAIT || op->sync != SYNC_PRODUCT)
        return true;
    if (!(c->flying >> op->v & 1))
        return order_broken(c, "waits for a product that is not under way");
    if (op->n > c->issued - c->last[op->v])
        return order_broken(c, "waits for a product with more under way than were issued later");
    c->flying &= ~TG_BIT(op->v);
    c->lefts[op->v] = c->rights[op->v] = 0;
    return true;
}

static void note_barrier(struct check *c, const struct op *op)
{
    if (op->kind == OP_FENCE)
        c->unfenced = 0;
    const bool is_told = op->kind == OP_AWAIT && op->sync == SYNC_TOLD; /* all who walk meet there */
    if (op->kind != OP_BARRIER && !is_told)
        return;
    c->ungrouped = c->left = c->owed = 0;
    c->looked |= op->flags & OP_CAREFUL ? c->seen & TG_BIT(op->v) : 0;
    c->by_rounded &= c->flying;
    c->stored &= c->storing ? ~(tg_bits)0 : 0;
    c->exchanged = false;
    if (op->sync != SYNC_GROUPS && !is_told && !c->p->own_heads)
        return;
    c->unseen = 0;
    c->adds_up = false;
    c->ended = true;
    c->read = 0;
    for (uint32_t i = 0; i < c->p->n_values; i++)
        c->read |= c->rights[i];
    c->begins = false;
    c->has_barrier = true;
}

static bool check_put(struct check *c, const struct op *op)
{
    const struct value *v = &c->p->values[op->v];
    if (op->kind == OP_TOTAL)
        c->added |= TG_BIT(op->v);
    if (op->kind != OP_PUT)
        return true;
    if (plan_is_across(c->p, v) && c->by_rounded)
        return order_broken(c, "puts an output where the group may still read the state");
    if (c->exchanged)
        return order_broken(c, "puts the output where some still read the other thread block's part");
    if (plan_is_made_tile(v) && v->summed && !(c->added >> op->v & 1))
        return order_broken(c, "puts a sum over heads that has not been made");
    if (v->space == SPACE_FRAGMENT && c->p->shares_columns && op->a != op->v)
        return order_broken(c, "puts an output over a matrix that the other group of the same rows may still read");
    if (v->space == SPACE_FRAGMENT && (c->placed >> op->a & 1))
        return order_broken(c, "puts an output where another one is");
    if (v->space == SPACE_FRAGMENT && (c->stored >> op->a & 1))
        return order_broken(c, "puts an output where a store may still read the one of the step before");
    return true;
}

static bool check_shared_store(struct check *c, const struct op *op)
{
    if (!is_from_shared(c->p, op))
        return true;
    if (op->role != ROLE_LOAD && (!(c->placed >> op->a & 1) || ((c->unfenced | c->ungrouped) >> op->a & 1)))
        return order_broken(c, "a store from shared memory that is not put there, fenced, and whole");
    if (c->lags)
        return order_broken(c, "stores before it has left the stage that the stores of the step before read");
    c->storing = c->writing = true;
    c->stored |= op->a == op->v ? TG_BIT(op->v) : 0;
    return true;
}

/* Each group leaves its part where it left that of the sum before. */
static bool check_sum_of_columns(struct check *c, const struct op *op)
{
    if (op->kind != OP_ADD_UP)
        return true;
    if (c->p->sums_in >= 0) {
        const tg_bits there = order_loaded_to(c->p, (uint32_t)c->p->sums_in);
        if (c->read & there)
            return order_broken(c, "leaves a part of a sum where another group may still read a matrix");
        c->covered |= there;
        c->unfenced |= there;
    }
    if (c->adds_up)
        return order_broken(c, "leaves a part of a sum where another group may still read that of the one before");
    if (!(c->parts >> op->v & 1))
        return order_broken(c, "adds up what groups have no parts of");
    c->parts &= ~TG_BIT(op->v);
    c->adds_up = true;
    return true;
}

static bool check_sync(struct check *c, const struct op *op)
{
    if (!check_awaited(c, op))
        return false;
    note_barrier(c, op);
    if (op->kind == OP_NEST && c->begins)
        return order_broken(c, "begins the walk before all have read what they carry");
    return check_sum_of_columns(c, op) && check_put(c, op) && order_check_handed(c, op) && check_shared_store(c, op) &&
           order_check_left_stage(c, op) && order_check_made(c, op) && order_check_cluster(c, op) &&
           order_check_ring(c, op);
}

static bool check_op(struct check *c, const struct op *op)
{
    uint8_t reads[PLAN_MAX_OP_READS];
    const uint32_t n = plan_op_reads(c->p, op, reads);
    if (op->kind == OP_NEST || op->kind == OP_END) {
        c->in_loop = op->kind == OP_NEST;
        c->owes_decay = c->p->ways.scales && !c->p->ways.decays_first;
    }
    c->owes_decay &= op->kind != OP_CATCH_UP;
    if (op->kind == OP_TILES || op->kind == OP_HEADS || op->kind == OP_END_TILES || op->kind == OP_END_HEADS)
        c->of_head = op->kind == OP_HEADS || (op->kind == OP_TILES && !c->p->sums_heads);
    if (op->kind == OP_ROWS || op->kind == OP_END_ROWS)
        c->of_row = op->kind == OP_ROWS;
    if (op->kind == OP_END)
        c->owed |= c->left;
    c->taken |= op->kind == OP_TAKE;
    c->passed = op->kind == OP_PASS || (c->passed && op->kind != OP_NEST);
    if (op->kind == OP_NEST && op->role == ROLE_WALK && c->p->relays && !c->taken)
        return order_broken(c, "walks without the state of the segment before");
    if (op->kind == OP_MAP && op->n == EXPONENTIALS_TAKEN &&
        !(c->stays && plan_has_same_exponential(c->p, c->stays, op)))
        return order_broken(c, "takes exponentials that the map before it has not left in registers");
    if (op->kind == OP_MAP && op->flags & OP_CAREFUL)
        c->seen |= TG_BIT(op->a);
    if (op->kind == OP_MAP || op->kind == OP_NEST || op->kind == OP_END)
        c->stays = op->kind == OP_MAP && op->n ? op : NULL;
    c->ended &= !order_is_written(op) && op->kind != OP_PUT;
    for (uint32_t i = 0; i < n; i++)
        if (!check_read(c, op, reads[i]))
            return false;
    if (op->kind == OP_CONTRACT && !check_product(c, op))
        return false;
    if (!check_begun(c, op))
        return false;
    if (op->kind != OP_CONTRACT && order_is_written(op) && (c->flying >> op->v & 1))
        return order_broken(c, "writes what a product is still under way to");
    if (!check_sync(c, op))
        return false;
    if (op->kind == OP_SCALE && !check_scaled(c, op))
        return false;
    if (op->kind == OP_FETCH) {
        c->scaled &= ~TG_BIT(op->v);
        c->fetched |= TG_BIT(op->v);
        c->cleaned &= ~TG_BIT(op->v);
    }
    if (op->kind == OP_PUT && !put_value(c, op))
        return false;
    if (!check_parts(c, op))
        return false;
    if (order_is_written(op))
        write_value(c, op);
    return true;
}

static bool has_two_buffers(const struct plan *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if ((plan_is_made_tile(&p->values[i]) && !p->has_makers) ||
            (p->values[i].space == SPACE_PARTS && (p->values[i].late || plan_is_gathered(&p->values[i]))))
            return true;
    return false;
}

/* The loop twice: what a step leaves for the next one counts. */
static bool check_role(const struct plan *p, enum role_kind role)
{
    struct check c = {.p = p};
    for (uint32_t i = 0; i < p->n_values; i++)
        if (order_is_ring(p, i))
            c.defined |= TG_BIT(i);
    for (uint32_t begin = 0; c.at < p->n_ops; c.at++) {
        const struct op *op = &p->ops[c.at];
        if (op->role != role)
            continue;
        if (!check_op(&c, op))
            return false;
        if (op->kind == OP_NEST)
            begin = c.at;
        if (op->kind == OP_END && has_two_buffers(p) && role == ROLE_WALK && !c.has_barrier)
            return order_broken(&c, "two buffers in turn without a barrier of all groups in every step");
        if (op->kind == OP_END && role == ROLE_MAKE && !c.made)
            return order_broken(&c, "makes tiles and does not say so");
        if (op->kind == OP_END && plan_buffers(p) == 1 && role == ROLE_WALK && !c.ended)
            return order_broken(&c, "one buffer without a barrier of all groups at the end of every step");
        if (op->kind == OP_END && !c.again) {
            c.again = true;
            c.at = begin - 1;
        }
    }
    for (uint32_t i = 0; role == ROLE_LOAD && i < p->n_ops; i++)
        if (plan_is_handed(&p->ops[i]) && !(c.handed_last >> p->ops[i].v & 1))
            return order_broken(&c, "ends with outputs of the last steps in their stages");
    if (p->relays && role == ROLE_WALK && !c.passed)
        return order_broken(&c, "ends without a word to the thread block of the next segment");
    if (c.flying || c.in_stage || c.writing)
        return order_broken(&c, "ends with a product or a store under way, or a stage that it has not left");
    return true;
}

/* A role waits for registers until others have left them; all of them are what the thread block was launched with. */
static bool check_registers(const struct plan *p)
{
    const uint32_t blocks = p->resident ? p->resident : 1,
                   all = p->target->registers_per_sm / blocks / p->threads / 8 * 8 * p->threads;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < ROLE_N_KINDS; i++)
        taken += 32 * p->roles[i].warps * p->roles[i].registers;
    return taken <= all || order_broken(&(struct check){.p = p}, "roles that wait for more registers than there are");
}

bool plan_verify_order(const struct plan *p)
{
    return check_registers(p) && check_role(p, ROLE_LOAD) && (!p->has_makers || check_role(p, ROLE_MAKE)) &&
           check_role(p, ROLE_WALK);
}
