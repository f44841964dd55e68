/* dsl/check_stmt.c - one statement: the fields it uses, its operands, its axes, its expression. */
#include "dsl/check.h"

#include <math.h>
#include <string.h>

enum {
    Q_AND_KV = 1 << TG_LQ | 1 << TG_LKV,
    CHUNK = 1 << TG_CHUNK,
};

/* Which fields a kind of statement has. */
enum {
    FIELD_A = 1,
    FIELD_B = 2,
    FIELD_INIT = 4,
    FIELD_DECAY = 8,
    FIELD_FINAL = 16,
    FIELD_SINCE = 32,
    FIELD_TRANSITION = 64,
    FIELD_BEHIND = 128,
    FIELD_SAME = 256,
    FIELD_TRANSPOSED = 512
};

struct stmt_kind {
    const char *name;
    uint16_t needs, may; /* FIELD_... */
    uint8_t flags;       /* TG_REVERSE ... */
};

static const struct stmt_kind kinds[TG_STMT_N_OPS] = {
    [TG_STMT_MAP] = {"MAP", 0, 0, 0},
    [TG_STMT_SCAN] = {"SCAN", FIELD_A, 0, TG_REVERSE | TG_MAXIMUM | TG_EXCLUSIVE},
    [TG_STMT_TOTAL] = {"TOTAL", FIELD_A, 0, TG_MAXIMUM},
    [TG_STMT_CONTRACT] = {"CONTRACT", FIELD_A, FIELD_B | FIELD_INIT | FIELD_DECAY | FIELD_SINCE, TG_EXCLUSIVE},
    [TG_STMT_CARRY] = {"CARRY", FIELD_A,
                       FIELD_B | FIELD_INIT | FIELD_DECAY | FIELD_FINAL | FIELD_TRANSITION | FIELD_BEHIND | FIELD_SAME |
                           FIELD_TRANSPOSED,
                       TG_REVERSE},
    [TG_STMT_SOLVE] = {"SOLVE", FIELD_A, 0, 0},
    [TG_STMT_SHIFT] = {"SHIFT", 0, FIELD_A | FIELD_INIT | FIELD_FINAL, TG_REVERSE},
};

/* One statement under check. */
struct subject {
    struct check *check;
    const tg_algorithm *algorithm;
    const tg_stmt *stmt;
    const char *kind;
};

bool tg_check_tile_exists(const tg_algorithm *algorithm, tg_operand operand)
{
    const tg_tensor *tensor = tg_tile_tensor(algorithm, TG_OPERAND_TILE(operand));
    return tensor && !tg_tensor_unused(tensor);
}

static uint32_t mask_of(const struct subject *s, tg_operand operand)
{
    return tg_operand_mask(s->algorithm, operand);
}

/* Sequences and heads: which of TG_BATCH and TG_MEMBER the operand has; none when there is none. */
static uint32_t implicit_of(const struct subject *s, tg_operand operand)
{
    return operand ? tg_tile_implicit(s->algorithm, TG_OPERAND_TILE(operand)) : 0;
}

/* Axes as text, '{Lhq, dqk}' without braces. */
static const char *axes(const struct subject *s, tg_operand operand, struct tg_text *text)
{
    return tg_mask_text(mask_of(s, operand), text);
}

/* `field`: NULL for an operand of an expression. */
static bool check_operand(const struct subject *s, const char *field, tg_operand operand)
{
    struct tg_text text;
    const char *give = field ? "write TG_AT_Q(tile) or TG_AT_KV(tile)" : "write TG_Q(tile) or TG_KV(tile)";
    const char *take = field ? "remove TG_AT_Q or TG_AT_KV" : "write TG_TILE(tile)";
    field = field ? field : "an operand";
    const uint32_t tile = TG_OPERAND_TILE(operand), at = TG_OPERAND_AT(operand);
    if (!tg_check_tile_exists(s->algorithm, operand)) {
        const bool empty = tg_tile_tensor(s->algorithm, tile) != NULL;
        tg_fault(s->check, TG0121, empty ? "declare it" : "tiles are numbered from 1 to n_tensors - 1",
                 "%s: %s is tile %u, %s %u", s->kind, field, tile,
                 empty ? "whose entry in the table of tensors is empty; they are" : "of", s->algorithm->n_tensors);
        return false;
    }
    const char *name = tg_tile_text(s->algorithm, tile, &text);
    if (tg_tile_has_t(s->algorithm, tile)) {
        if (at == TG_LQ || (at == TG_LKV && !tg_tile_is_square(s->algorithm, tile)))
            return true;
        if (at == TG_LKV) {
            tg_fault(s->check, TG0125, "write TG_AT_Q(tile): its columns are the key positions",
                     "%s: %s has axes T and Lkv and is used as %s at Lkv", s->kind, name, field);
            return false;
        }
        if (at == 0)
            tg_fault(s->check, TG0124, give, "%s: %s has axis TG_T and is used as %s without a position", s->kind, name,
                     field);
        else
            tg_fault(s->check, TG0125, give, "%s: %s is used as %s at position %u, which is none", s->kind, name, field,
                     at);
        return false;
    }
    if (at == 0)
        return true;
    tg_fault(s->check, TG0125, take, "%s: %s has no axis TG_T but is used as %s at a position", s->kind, name, field);
    return false;
}

/* The fields that the statement has, and no others. */
static bool check_fields(const struct subject *s)
{
    const struct stmt_kind *kind = &kinds[s->stmt->op];
    const struct {
        const char *name;
        tg_operand value;
        uint16_t bit;
    } fields[] = {
        {"a", s->stmt->a, FIELD_A},
        {"b", s->stmt->b, FIELD_B},
        {"init", s->stmt->init, FIELD_INIT},
        {"decay", s->stmt->decay, FIELD_DECAY},
        {"final_", s->stmt->final_, FIELD_FINAL},
        {"since", s->stmt->since, FIELD_SINCE},
        {"transition", s->stmt->transition, FIELD_TRANSITION},
        {"behind", s->stmt->behind, FIELD_BEHIND},
        {"same", s->stmt->same, FIELD_SAME},
        {"transposed", s->stmt->transposed, FIELD_TRANSPOSED},
    };
    bool ok = true;
    if (s->stmt->out == 0) {
        tg_fault(s->check, TG0122, "tile 0 is 'none': number them from 1", "%s: out is missing", s->kind);
        ok = false;
    } else {
        ok = check_operand(s, "out", s->stmt->out);
    }
    for (uint32_t i = 0; i < TG_COUNT(fields); i++) {
        if (fields[i].value == 0) {
            if (kind->needs & fields[i].bit) {
                tg_fault(s->check, TG0122, "tile 0 is 'none': number them from 1", "%s: %s is missing", s->kind,
                         fields[i].name);
                ok = false;
            }
        } else if (!((kind->needs | kind->may) & fields[i].bit)) {
            tg_fault(s->check, TG0123, "remove it", "%s: field %s is set but has no meaning here", s->kind,
                     fields[i].name);
        } else if (!check_operand(s, fields[i].name, fields[i].value)) {
            ok = false;
        }
    }
    const bool of_positions = s->stmt->op == TG_STMT_SCAN && tg_check_tile_exists(s->algorithm, s->stmt->a) &&
                              tg_tile_has_t(s->algorithm, TG_OPERAND_TILE(s->stmt->a));
    const bool undecayed = s->stmt->op == TG_STMT_CONTRACT && !s->stmt->decay && !s->stmt->since;
    const uint32_t allowed =
        kind->flags & ~(uint32_t)(of_positions ? TG_REVERSE : 0) & ~(uint32_t)(undecayed ? TG_EXCLUSIVE : 0);
    const uint32_t strange = s->stmt->flags & ~allowed;
    if (strange)
        tg_fault(
            s->check, TG0123,
            "TG_REVERSE is for CARRY, SHIFT and SCAN over chunks, TG_MAXIMUM for SCAN and TOTAL, TG_EXCLUSIVE for SCAN and for "
            "CONTRACT with a decay",
            "%s: flags 0x%x have no meaning here", s->kind, strange);
    if (s->stmt->op != TG_STMT_MAP && s->stmt->expr[0].op != TG_X_END)
        tg_fault(s->check, TG0123, "only MAP has an expression", "%s: expr has no meaning here", s->kind);
    return ok;
}

/* ---- MAP ---- */

static void check_read_axes(const struct subject *s, tg_operand operand)
{
    struct tg_text name, extra;
    const uint32_t more =
        (mask_of(s, operand) | implicit_of(s, operand)) & ~(mask_of(s, s->stmt->out) | implicit_of(s, s->stmt->out));
    if (more)
        tg_fault(s->check, TG0155, "sum over it with CONTRACT or TOTAL, or give it to the result",
                 "MAP: %s has axis %s, which the result lacks",
                 tg_tile_text(s->algorithm, TG_OPERAND_TILE(operand), &name), tg_mask_text(more, &extra));
}

/* A code by itself, whatever is on the stack. */
static void check_code(const struct subject *s, uint32_t i, bool out_ok)
{
    const tg_x *x = &s->stmt->expr[i];
    if (x->op == TG_X_TILE && check_operand(s, NULL, x->operand) && out_ok)
        check_read_axes(s, x->operand);
    if (x->op == TG_X_NUMBER && !isfinite(x->number))
        tg_fault(s->check, TG0157, "masks are TG_CAUSAL, not infinities",
                 "MAP: number %u of the expression is not finite", i);
    if (x->op == TG_X_SCALAR && tg_scalars_are_listed(s->algorithm) && x->operand >= tg_scalar_count(s->algorithm))
        tg_fault(s->check, TG0158, "list it in the algorithm's .scalars",
                 "MAP: code %u of the expression is scalar %u, of %u", i, x->operand, tg_scalar_count(s->algorithm));
    if (x->op == TG_X_SIZE && x->operand != TG_DQK && x->operand != TG_DHV && x->operand != TG_MEMBER)
        tg_fault(s->check, TG0159, "give TG_DQK, TG_DHV or TG_MEMBER",
                 "MAP: code %u of the expression is the size of dimension %u, which a kernel does not know", i,
                 x->operand);
    const bool masks = x->op == TG_X_CAUSAL || x->op == TG_X_BEFORE;
    if (masks && out_ok && (mask_of(s, s->stmt->out) & Q_AND_KV) != Q_AND_KV)
        tg_fault(s->check, TG0156, "give the result axes TG_LQ and TG_LKV",
                 "MAP: %s compares two positions, but the result has not both",
                 x->op == TG_X_CAUSAL ? "TG_CAUSAL" : "TG_BEFORE");
}

static void check_expr(const struct subject *s, bool out_ok)
{
    const uint32_t length = tg_expr_length(s->stmt);
    uint32_t depth = 0;
    if (length == 0)
        tg_fault(s->check, TG0150, "give it a tile: TG_Q, TG_KV or TG_TILE", "MAP: the expression is empty");
    if (length == TG_MAX_EXPR)
        tg_fault(s->check, TG0151, "split it into two statements",
                 "MAP: the expression has no end: it may have %d codes", TG_MAX_EXPR - 1);
    for (uint32_t i = 0; i < length; i++) {
        const tg_x *x = &s->stmt->expr[i];
        const int arity = tg_expr_arity(x->op);
        if (arity < 0) {
            tg_fault(s->check, TG0152, "use the TG_X_ codes", "MAP: code %u of the expression is %u", i, x->op);
            return; /* how it changes the stack is not known */
        }
        if (depth < (uint32_t)arity) {
            tg_fault(s->check, TG0153, "operands come before their operation",
                     "MAP: code %u of the expression needs %d operands and finds %u", i, arity, depth);
            depth = (uint32_t)arity;
        }
        depth = depth - (uint32_t)arity + 1;
        check_code(s, i, out_ok);
    }
    if (depth > 1)
        tg_fault(s->check, TG0154, "add the missing operation", "MAP: the expression leaves %u values, expected 1",
                 depth);
}

/* ---- SCAN, TOTAL ---- */

static void report_axes(const struct subject *s, const char *hint)
{
    struct tg_text a, out;
    tg_fault(s->check, TG0129, hint, "%s: out has axes %s, a has %s", s->kind, axes(s, s->stmt->out, &out),
             axes(s, s->stmt->a, &a));
}

/* Along positions when a has TG_T, else along chunks. */
static void check_scan(const struct subject *s)
{
    struct tg_text text;
    const tg_stmt *stmt = s->stmt;
    const uint32_t from = mask_of(s, stmt->a), to = mask_of(s, stmt->out);
    const uint32_t other = implicit_of(s, stmt->a) ^ implicit_of(s, stmt->out);
    const bool has_t = tg_tile_has_t(s->algorithm, TG_OPERAND_TILE(stmt->a));
    if (!has_t && ((from & Q_AND_KV) || !(from & CHUNK)))
        tg_fault(s->check, TG0129, "scan a tile with axis TG_T or TG_CHUNK",
                 "SCAN: a has axes %s, without TG_T or TG_CHUNK", axes(s, stmt->a, &text));
    else if (to != from)
        report_axes(s, "both have the same axes, at the same position");
    else if (other)
        tg_fault(s->check, TG0129, "give both the same of TG_NO_BATCH and TG_SHARED",
                 "SCAN: %s has axis %s, %s lacks it", implicit_of(s, stmt->a) & other ? "a" : "out",
                 tg_mask_text(other, &text), implicit_of(s, stmt->a) & other ? "out" : "a");
}

/* What a has and out lacks is summed: positions into their chunk, chunks, sequences, heads of a
 * group. */
static void check_total(const struct subject *s)
{
    struct tg_text text;
    const tg_stmt *stmt = s->stmt;
    const bool has_t = tg_tile_has_t(s->algorithm, TG_OPERAND_TILE(stmt->a));
    const uint32_t from = mask_of(s, stmt->a), to = mask_of(s, stmt->out);
    const uint32_t in = implicit_of(s, stmt->a), out = implicit_of(s, stmt->out);
    const uint32_t summed = from & ~to;
    const uint32_t may = CHUNK | (has_t ? (uint32_t)Q_AND_KV : 0);
    if (to & ~from)
        report_axes(s, "out has the axes of a, with TG_CHUNK in the place of TG_T where positions are "
                       "summed");
    else if (summed & ~may)
        tg_fault(s->check, TG0129, "use TG_SUM_TO", "TOTAL: it would sum over %s", tg_mask_text(summed & ~may, &text));
    else if ((summed & CHUNK) && (summed & Q_AND_KV))
        tg_fault(s->check, TG0129, "sum over the positions first, into a tile with axis TG_CHUNK",
                 "TOTAL: it would sum over positions and chunks at once");
    else if (out & ~in)
        tg_fault(s->check, TG0129, "give out the same of TG_NO_BATCH and TG_SHARED, or more",
                 "TOTAL: out has axis %s, a lacks it", tg_mask_text(out & ~in, &text));
    else if (!summed && in == out)
        tg_fault(s->check, TG0129, "leave the axis to be summed out of the result",
                 "TOTAL: out has all the axes of a, nothing is summed over");
}

/* ---- SOLVE ---- */

static void check_solve(const struct subject *s)
{
    struct tg_text have;
    const tg_stmt *stmt = s->stmt;
    const tg_operand both[] = {stmt->out, stmt->a};
    for (uint32_t i = 0; i < TG_COUNT(both); i++)
        if ((mask_of(s, both[i]) & ~(uint32_t)CHUNK) != Q_AND_KV)
            tg_fault(s->check, TG0142, "give it the axes TG_LQ, TG_LKV, or TG_T, TG_LKV",
                     "SOLVE: %s has axes %s, expected Lhq, Lkv", i ? "a" : "out", axes(s, both[i], &have));
    if (implicit_of(s, stmt->out) != implicit_of(s, stmt->a))
        tg_fault(s->check, TG0142, "give both the same of TG_NO_BATCH and TG_SHARED",
                 "SOLVE: out and a do not have the same sequences and heads");
    if (s->algorithm->tensors[TG_OPERAND_TILE(stmt->a)].dtype == TG_F32X2)
        tg_fault(s->check, TG0133, "make it TG_F32", "SOLVE: a is of type f32x2");
}

/* ---- CONTRACT, CARRY ---- */

static void check_product_type(const struct subject *s, const char *field, tg_operand operand)
{
    struct tg_text text;
    const uint32_t tile = TG_OPERAND_TILE(operand);
    if (s->algorithm->tensors[tile].dtype == TG_F32X2)
        tg_fault(s->check, TG0133, "make it TG_F32 with a MAP first",
                 "%s: %s is %s, of type f32x2, expected a matrix element", s->kind, field,
                 tg_tile_text(s->algorithm, tile, &text));
}

/* Sequences and heads of a group are summed over by TOTAL alone. */
static void check_product_implicit(const struct subject *s)
{
    struct tg_text text;
    const tg_stmt *stmt = s->stmt;
    const uint32_t lost = (implicit_of(s, stmt->a) | implicit_of(s, stmt->b)) & ~implicit_of(s, stmt->out);
    if (lost)
        tg_fault(s->check, TG0130, "use TG_TOTAL_TO, or give out the flags of a and b", "%s: it would sum over %s",
                 s->kind, tg_mask_text(lost, &text));
}

static void check_product(const struct subject *s)
{
    struct tg_text text;
    const tg_stmt *stmt = s->stmt;
    const struct tg_product product = tg_stmt_product(s->algorithm, stmt);
    const uint32_t out = mask_of(s, stmt->out);
    const uint32_t operands = mask_of(s, stmt->a) | mask_of(s, stmt->b);
    const uint32_t extra = out & ~operands & ~(uint32_t)CHUNK, one_sided = product.wrong & ~out;
    const char *nowhere = stmt->b ? "neither a nor b has" : "a lacks";
    if (extra)
        tg_fault(s->check, TG0131, "every axis of out is one of a or b", "%s: out has axis %s, which %s", s->kind,
                 tg_mask_text(extra, &text), nowhere);
    if (one_sided)
        tg_fault(s->check, TG0130, "a summed axis is in a and in b; other axes are in out",
                 "%s: axis %s is in one operand only and not in out", s->kind, tg_mask_text(one_sided, &text));
    if (!product.k && !one_sided && !extra)
        tg_fault(s->check, TG0130, "use MAP for element-wise products, TOTAL for sums over chunks",
                 "%s: nothing is summed over", s->kind);
    if (!(out & CHUNK) && (operands & CHUNK))
        tg_fault(s->check, TG0130, "use CARRY, or TOTAL", "%s: it would sum over the chunks", s->kind);
    if ((out & CHUNK) && !(operands & CHUNK))
        tg_fault(s->check, TG0131, "every axis of out is one of a or b", "%s: out has one value a chunk, which %s",
                 s->kind, nowhere);
    check_product_implicit(s);
    check_product_type(s, "a", stmt->a);
    if (stmt->b)
        check_product_type(s, "b", stmt->b);
    check_product_type(s, "out", stmt->out);
}

/* One end of a decay: its position, its type, nothing that the result has not. */
static void check_decay_end(const struct subject *s, const char *field, tg_operand operand, uint32_t position)
{
    struct tg_text text;
    const char *name = tg_tile_text(s->algorithm, TG_OPERAND_TILE(operand), &text);
    const uint32_t lost = implicit_of(s, operand) & ~implicit_of(s, s->stmt->out);
    const uint32_t dtype = s->algorithm->tensors[TG_OPERAND_TILE(operand)].dtype;
    struct tg_text axis;
    if (TG_OPERAND_AT(operand) != position)
        tg_fault(s->check, TG0143, "decay is read with TG_AT_Q, since with TG_AT_KV, both of tiles with axis TG_T",
                 "CONTRACT: %s is %s, which is not at %s positions", field, name,
                 position == TG_LQ ? "query" : "key/value");
    else if (dtype != TG_F32 && dtype != TG_DTYPE_NONE)
        tg_fault(s->check, TG0133, "make it TG_F32: of 16 bits a cumulative log would lose its decimals",
                 "CONTRACT: %s is %s, of type %s, expected f32", field, name, tg_dtype_name((tg_dtype)dtype));
    else if (lost)
        tg_fault(s->check, TG0144, "give the result the flags of its decay",
                 "CONTRACT: %s has axis %s, which out lacks", field, tg_mask_text(lost, &axis));
}

/* The factor 2^(decay_i - since_j) of a query's and a key's position. */
static void check_contract_decay(const struct subject *s)
{
    struct tg_text decay, since;
    const tg_stmt *stmt = s->stmt;
    if (!stmt->decay || !stmt->since || !stmt->b) {
        tg_fault(s->check, TG0143, "use TG_CONTRACT_DECAY_TO", "CONTRACT: with a decay it needs b, decay and since%s",
                 stmt->b ? "" : ", but has no b");
        return;
    }
    check_decay_end(s, "decay", stmt->decay, TG_LQ);
    check_decay_end(s, "since", stmt->since, TG_LKV);
    const uint32_t of_product = mask_of(s, stmt->a) | mask_of(s, stmt->b);
    const uint32_t channels = mask_of(s, stmt->decay) & ~(uint32_t)(Q_AND_KV | CHUNK);
    if ((of_product & Q_AND_KV) != Q_AND_KV)
        tg_fault(s->check, TG0143, "give one operand TG_AT_Q and the other TG_AT_KV",
                 "CONTRACT: a decay is from a key's position to a query's, but the product has not both");
    else if (channels != (mask_of(s, stmt->since) & ~(uint32_t)(Q_AND_KV | CHUNK)))
        tg_fault(s->check, TG0144, "both have TG_T and the same channel", "CONTRACT: decay has axes %s, since has %s",
                 axes(s, stmt->decay, &decay), axes(s, stmt->since, &since));
    else if (channels & ~of_product)
        tg_fault(s->check, TG0144, "a channel that is summed over or in the result, or none",
                 "CONTRACT: decay has axis %s, which neither a nor b has",
                 tg_mask_text(channels & ~of_product, &decay));
}

static void check_contract(const struct subject *s)
{
    struct tg_text init, out;
    const tg_stmt *stmt = s->stmt;
    check_product(s);
    if (stmt->decay || stmt->since)
        check_contract_decay(s);
    if (!stmt->init)
        return;
    const uint32_t lost = implicit_of(s, stmt->init) & ~implicit_of(s, stmt->out);
    if (mask_of(s, stmt->init) != mask_of(s, stmt->out))
        tg_fault(s->check, TG0132, "accumulate onto a tile with the axes of out",
                 "CONTRACT: init has axes %s, out has %s", axes(s, stmt->init, &init), axes(s, stmt->out, &out));
    else if (lost)
        tg_fault(s->check, TG0132, "accumulate onto a tile with the flags of out",
                 "CONTRACT: init has axis %s, which out lacks", tg_mask_text(lost, &init));
}

/* An initial or final state: the axes of the state without the chunk, or of what is shifted without the token. */
static void check_boundary(const struct subject *s, const char *field, tg_operand operand, uint8_t flag)
{
    struct tg_text name, have, want;
    if (operand == 0)
        return;
    const char *tile = tg_tile_text(s->algorithm, TG_OPERAND_TILE(operand), &name);
    const uint32_t expected = mask_of(s, s->stmt->out) & ~(uint32_t)(CHUNK | Q_AND_KV);
    /* one initial state may serve all sequences; a final one is of one sequence and head */
    const uint32_t state = implicit_of(s, s->stmt->out), own = implicit_of(s, operand);
    const uint32_t other = flag == TG_IN ? own & ~state : own ^ state;
    if (mask_of(s, operand) != expected)
        tg_fault(s->check, TG0136, "the axes of the state without TG_CHUNK, of what is shifted without TG_T",
                 "%s: %s is %s with axes %s, expected %s", s->kind, field, tile, axes(s, operand, &have),
                 tg_mask_text(expected, &want));
    else if (other)
        tg_fault(s->check, TG0136, "give it the same of TG_NO_BATCH and TG_SHARED",
                 "%s: %s is %s, which %s axis %s, other than the state", s->kind, field, tile,
                 own & other ? "has" : "lacks", tg_mask_text(other, &have));
    const uint32_t flags = s->algorithm->tensors[TG_OPERAND_TILE(operand)].flags;
    const bool is_intermediate = flag == TG_OUT && !(flags & TG_IN);
    if (!(flags & flag) && !is_intermediate)
        tg_fault(s->check, TG0138, flag == TG_IN ? "make it TG_IN" : "make it TG_OUT",
                 "%s: %s is %s, expected %s tensor of the caller", s->kind, field, tile,
                 flag == TG_IN ? "an input" : "an output");
}

/* Without b nothing is summed: a is what a chunk adds to the state. */
static void check_added(const struct subject *s)
{
    struct tg_text a, out;
    const tg_stmt *stmt = s->stmt;
    if (mask_of(s, stmt->a) != mask_of(s, stmt->out))
        tg_fault(s->check, TG0141, "give b, or add a tile with TG_CHUNK and the axes of the state",
                 "CARRY: a has axes %s, the state has %s", axes(s, stmt->a, &a), axes(s, stmt->out, &out));
    check_product_implicit(s);
    check_product_type(s, "a", stmt->a);
    check_product_type(s, "out", stmt->out);
}

static void check_decay(const struct subject *s)
{
    struct tg_text have, want;
    const tg_stmt *stmt = s->stmt;
    const uint32_t decay = mask_of(s, stmt->decay), out = mask_of(s, stmt->out);
    const uint32_t lost = implicit_of(s, stmt->decay) & ~implicit_of(s, stmt->out);
    if (stmt->decay && (!(decay & CHUNK) || (decay & ~out)))
        tg_fault(s->check, TG0137, "TG_CHUNK alone, or with axes of the state",
                 "CARRY: decay has axes %s, the state has %s", tg_mask_text(decay, &have), tg_mask_text(out, &want));
    else if (lost)
        tg_fault(s->check, TG0137, "give the state the flags of its decay",
                 "CARRY: decay has axis %s, which the state lacks", tg_mask_text(lost, &have));
}

/* What a segment does to a state: a block of values, from and to the axis that products by the state sum over. */
static void check_transition(const struct subject *s)
{
    struct tg_text text;
    if (!s->stmt->transition)
        return;
    const tg_tensor *state = &s->algorithm->tensors[TG_OPERAND_TILE(s->stmt->out)],
                    *t = &s->algorithm->tensors[TG_OPERAND_TILE(s->stmt->transition)];
    const uint32_t axis = state->axes[1];
    const bool is_square = t->axes[0] == TG_CHUNK && t->axes[1] == axis && t->axes[2] == axis;
    if (!is_square || !state->axes[2] || t->flags != state->flags || t->dtype != TG_F32 ||
        (t->flags & (TG_IN | TG_OUT)))
        tg_fault(s->check, TG0145,
                 "give the state TG_CHUNK and two axes, and the transition TG_CHUNK and twice the first of them",
                 "CARRY: the transition %s is no intermediate like the state, from its first axis to its first axis",
                 tg_tile_text(s->algorithm, TG_OPERAND_TILE(s->stmt->transition), &text));
}

static bool is_like(const tg_tensor *a, const tg_tensor *b)
{
    return memcmp(a->axes, b->axes, sizeof a->axes) == 0 && (a->flags & ~(uint32_t)TG_OUT) == b->flags &&
           (a->dtype ? a->dtype : TG_F32) == (b->dtype ? b->dtype : TG_F32);
}

static void check_behind(const struct subject *s)
{
    struct tg_text text;
    const tg_tensor *state = &s->algorithm->tensors[TG_OPERAND_TILE(s->stmt->out)],
                    *behind = &s->algorithm->tensors[TG_OPERAND_TILE(s->stmt->behind)];
    if (s->stmt->behind && !is_like(behind, state))
        tg_fault(s->check, TG0148, "give it the axes, flags and element type of out",
                 "CARRY: behind %s is no tile like the state",
                 tg_tile_text(s->algorithm, TG_OPERAND_TILE(s->stmt->behind), &text));
}

/* Another CARRY before it, of a state that begins alike and goes through the chunks in the same order. */
static void check_same(const struct subject *s)
{
    struct tg_text text;
    const uint32_t same = TG_OPERAND_TILE(s->stmt->same), out = TG_OPERAND_TILE(s->stmt->out);
    const int i = s->stmt->same ? tg_tile_stmt(s->algorithm, same) : -1;
    const tg_stmt *other = i >= 0 ? &s->algorithm->body[i] : NULL;
    const bool is_other = other && other < s->stmt && tg_tile_is_state(s->algorithm, same);
    if (s->stmt->same &&
        !(is_other && other->flags == s->stmt->flags && other->init == s->stmt->init &&
          other->decay == s->stmt->decay && is_like(&s->algorithm->tensors[out], &s->algorithm->tensors[same])))
        tg_fault(s->check, TG0149, "name the out of an earlier CARRY with the same axes, init, decay and flags",
                 "CARRY: same is %s, which is not the same state", tg_tile_text(s->algorithm, same, &text));
}

/* That of a CARRY before it, which goes through the chunks the other way and has the same axes. */
static void check_transposed(const struct subject *s)
{
    struct tg_text text;
    const uint32_t tile = TG_OPERAND_TILE(s->stmt->transposed), out = TG_OPERAND_TILE(s->stmt->out);
    const int i = tile ? tg_tile_stmt(s->algorithm, tile) : -1;
    const tg_stmt *other = i >= 0 ? &s->algorithm->body[i] : NULL;
    const bool is_other = other && other < s->stmt && tg_tile_is_transition(s->algorithm, tile) &&
                          ((other->flags ^ s->stmt->flags) & TG_REVERSE) && TG_OPERAND_TILE(other->transition) == tile;
    if (tile &&
        !(is_other && is_like(&s->algorithm->tensors[out], &s->algorithm->tensors[TG_OPERAND_TILE(other->out)])))
        tg_fault(s->check, TG0170,
                 "name the transition of an earlier CARRY with the same axes and the other TG_REVERSE",
                 "CARRY: transposed is %s, expected the transition of a CARRY in the other direction",
                 tg_tile_text(s->algorithm, tile, &text));
}

static void check_carry(const struct subject *s)
{
    struct tg_text text;
    const tg_stmt *stmt = s->stmt;
    const uint32_t out = mask_of(s, stmt->out);
    if (stmt->b)
        check_product(s);
    if (!(out & CHUNK) || (out & Q_AND_KV))
        tg_fault(s->check, TG0134, "give it TG_CHUNK and the axes of the state",
                 "CARRY: out has axes %s, expected one state a chunk", tg_mask_text(out, &text));
    const uint32_t summed = tg_stmt_product(s->algorithm, stmt).k;
    if (!stmt->b)
        check_added(s);
    else if (summed != 1u << TG_LQ && summed != 1u << TG_LKV)
        tg_fault(s->check, TG0135, "a and b have axis TG_T, both at the same position",
                 "CARRY: it sums over %s, expected Lhq or Lkv", tg_mask_text(summed, &text));
    check_boundary(s, "init", stmt->init, TG_IN);
    check_boundary(s, "final_", stmt->final_, TG_OUT);
    check_decay(s);
    check_transition(s);
    check_behind(s);
    check_same(s);
    check_transposed(s);
}

/* ---- SHIFT ---- */

static void check_shift(const struct subject *s)
{
    struct tg_text have, want;
    const tg_stmt *stmt = s->stmt;
    const uint32_t out = TG_OPERAND_TILE(stmt->out), a = TG_OPERAND_TILE(stmt->a);
    if (!tg_tile_has_t(s->algorithm, out) || tg_tile_is_square(s->algorithm, out))
        tg_fault(s->check, TG0147, "give it TG_T, and dqk or dhv if it is more than a number",
                 "SHIFT: out has axes %s, expected tokens", axes(s, stmt->out, &have));
    else if (a && mask_of(s, stmt->a) != mask_of(s, stmt->out))
        tg_fault(s->check, TG0147, "both have the same axes, at the same position", "SHIFT: a has axes %s, out has %s",
                 axes(s, stmt->a, &have), axes(s, stmt->out, &want));
    else if (a && implicit_of(s, stmt->a) != implicit_of(s, stmt->out))
        tg_fault(s->check, TG0147, "give both the same of TG_NO_BATCH and TG_SHARED",
                 "SHIFT: out and a do not have the same sequences and heads");
    const struct tg_shift shift = tg_tile_shift(s->algorithm, out);
    const int from = tg_tile_stmt(s->algorithm, shift.base);
    if (shift.base && from >= 0 && s->algorithm->body[from].op == TG_STMT_SHIFT)
        tg_fault(s->check, TG0147, "write it to memory with a MAP and shift that",
                 "SHIFT: a is itself shifted the other way, or %d times, or a final state", TG_MAX_SHIFTS);
    check_product_type(s, "out", stmt->out);
    if (a)
        check_product_type(s, "a", stmt->a);
    check_boundary(s, "init", stmt->init, TG_IN);
    check_boundary(s, "final_", stmt->final_, TG_OUT);
}

void tg_check_stmt(struct check *check, const tg_algorithm *algorithm, const tg_stmt *stmt)
{
    if (stmt->op == TG_STMT_NONE || stmt->op >= TG_STMT_N_OPS) {
        tg_fault(
            check, TG0120,
            "use TG_MAP_TO, TG_SCAN_TO, TG_TOTAL_TO, TG_SUM_TO, TG_CONTRACT_TO, TG_CARRY_TO, TG_SOLVE_TO, TG_SHIFT_TO",
            "statement kind %u is unknown", stmt->op);
        return;
    }
    const struct subject s = {check, algorithm, stmt, kinds[stmt->op].name};
    const bool ok = check_fields(&s);
    switch (stmt->op) {
    case TG_STMT_MAP:
        check_expr(&s, ok);
        break;
    case TG_STMT_SCAN:
        if (ok)
            check_scan(&s);
        break;
    case TG_STMT_TOTAL:
        if (ok)
            check_total(&s);
        break;
    case TG_STMT_CONTRACT:
        if (ok)
            check_contract(&s);
        break;
    case TG_STMT_CARRY:
        if (ok)
            check_carry(&s);
        break;
    case TG_STMT_SOLVE:
        if (ok)
            check_solve(&s);
        break;
    case TG_STMT_SHIFT:
        if (ok)
            check_shift(&s);
        break;
    default:
        break; /* refused above */
    }
}
