/* dsl/check_algorithm.c - the algorithm as a whole: its tensors, and that every tile is written
 * once, before it is read. Single statements are check_stmt.c. */
#include "dsl/check.h"

#include <math.h>
#include <stdio.h>

enum { MEMORY_AXES = 1 << TG_T | 1 << TG_CHUNK | 1 << TG_DQK | 1 << TG_DHV };

/* `square_of_state`: the transition of a CARRY, whose second and third axis are one (check_stmt.c). */
static void check_axes(struct check *check, const tg_tensor *tensor, bool square_of_state, const char *name)
{
    const uint32_t positions = 1u << TG_LQ | 1u << TG_LKV;
    uint32_t seen = 0;
    bool ended = false;
    for (uint32_t i = 0; i < TG_MAX_AXES; i++) {
        const uint8_t axis = tensor->axes[i];
        if (axis == TG_AXIS_NONE) {
            ended = true;
            continue;
        }
        if (axis >= TG_N_DIMS || axis == TG_SEG || !(1u << axis & (MEMORY_AXES | positions))) {
            tg_fault(check, TG0108, "use TG_T, TG_CHUNK, TG_DQK, TG_DHV, TG_LQ or TG_LKV",
                     "%s: axis %u is %u, which is no axis of a tensor", name, i, axis);
            continue;
        }
        if (ended)
            tg_fault(check, TG0108, "list the axes without gaps", "%s: axis %u follows an empty one", name, i);
        if ((seen & 1u << axis) && !(square_of_state && i == 2))
            tg_fault(check, TG0108, "every axis once", "%s: axis %s is given twice", name, tg_dim_name(axis));
        seen |= 1u << axis;
    }
    if ((seen & positions) && (tensor->flags & (TG_IN | TG_OUT)))
        tg_fault(check, TG0109, "use TG_T: positions inside a chunk exist only in kernels",
                 "%s: a tensor of the caller has axis %s", name, tg_dim_name(seen & 1u << TG_LQ ? TG_LQ : TG_LKV));
    const uint32_t exclusive = seen & (positions | 1u << TG_T);
    struct tg_text text;
    const bool square = tensor->axes[0] == TG_T && tensor->axes[1] == TG_LKV && seen == (1u << TG_T | 1u << TG_LKV);
    if (((seen & 1u << TG_T) && (seen & positions) && !square) || (exclusive && (seen & 1u << TG_CHUNK)))
        tg_fault(check, TG0115,
                 "TG_T, TG_LQ and TG_LKV imply the chunk; TG_T is read as TG_LQ or TG_LKV, beside TG_LKV as TG_LQ",
                 "%s: axes %s exclude each other", name, tg_mask_text(exclusive | (seen & 1u << TG_CHUNK), &text));
}

bool tg_tensor_unused(const tg_tensor *tensor)
{
    uint32_t bits = tensor->dtype | tensor->flags | tensor->drawn;
    for (uint32_t i = 0; i < TG_MAX_AXES; i++)
        bits |= tensor->axes[i];
    return !tensor->name && !bits;
}

static void check_flags(struct check *check, uint32_t flags, const char *name)
{
    if (flags & TG_NO_HEADS)
        tg_fault(check, TG0107, "use TG_NO_BATCH for what all sequences share",
                 "%s is TG_NO_HEADS, which is for tensors that the compiler adds", name);
    const uint32_t known = TG_IN | TG_OUT | TG_OPTIONAL | TG_NO_BATCH | TG_SHARED | TG_NO_HEADS | TG_STEADY;
    if (flags & ~known)
        tg_fault(check, TG0107, "use TG_IN, TG_OUT, TG_OPTIONAL, TG_NO_BATCH, TG_SHARED and TG_STEADY",
                 "%s: flags 0x%x are unknown", name, flags & ~known);
    if ((flags & TG_IN) && (flags & TG_OUT))
        tg_fault(check, TG0107, "declare two tensors; the caller may pass the same memory for states",
                 "%s is TG_IN and TG_OUT", name);
    if ((flags & TG_OPTIONAL) && !(flags & (TG_IN | TG_OUT)))
        tg_fault(check, TG0107, "add TG_IN or TG_OUT, or remove TG_OPTIONAL", "%s is TG_OPTIONAL but an intermediate",
                 name);
}

static void check_steady(struct check *check, const tg_tensor *tensor, const char *name)
{
    const bool is_of_chunks = tensor->axes[0] == TG_CHUNK && tensor->axes[2] == TG_AXIS_NONE;
    if (tensor->flags & TG_STEADY && (!is_of_chunks || tensor->flags & (TG_IN | TG_OUT)))
        tg_fault(check, TG0107, "remove it, or give an intermediate TG_CHUNK, alone or with dqk or dhv",
                 "%s is TG_STEADY but no intermediate with one number a chunk, or one of each dqk or dhv", name);
}

/* A type of 16 bits is the inputs', whichever that is. */
static void check_dtype(struct check *check, const tg_tensor *tensor, const char *name)
{
    static const char *const hint = "use TG_IO, TG_F32, or of an intermediate TG_F32X2; 0 is TG_F32";
    const uint8_t dtype = tensor->dtype;
    if (dtype == TG_I32)
        tg_fault(check, TG0106, hint, "%s: element type i32 is for tensors that the compiler adds", name);
    else if (dtype == TG_BF16 || dtype == TG_F16)
        tg_fault(check, TG0106, hint, "%s: element type %s is for calls: TG_IO is that of the call's inputs", name,
                 tg_dtype_name((tg_dtype)dtype));
    else if (dtype == TG_F32X2 && tensor->flags & (TG_IN | TG_OUT))
        tg_fault(check, TG0106, hint, "%s: element type f32x2 is for intermediates", name);
    else if (dtype > TG_F32X2)
        tg_fault(check, TG0106, hint, "%s: element type %u is unknown", name, dtype);
}

static void check_drawn(struct check *check, const tg_tensor *tensor, const char *name)
{
    if (tensor->drawn >= TG_N_DRAWN)
        tg_fault(check, TG0119, "use one of tg_drawn, as TG_DRAWN_NORMAL", "%s: drawn is %u, expected at most %d", name,
                 tensor->drawn, TG_N_DRAWN - 1);
    else if (tensor->drawn && !(tensor->flags & TG_IN))
        tg_fault(check, TG0119, "leave .drawn out", "%s is drawn but no input", name);
    else if (tensor->drawn == TG_DRAWN_UNIT && !tensor->axes[tensor->axes[0] == TG_T])
        tg_fault(check, TG0119, "give it TG_DQK or TG_DHV, or draw it otherwise", "%s is TG_DRAWN_UNIT but has no rows",
                 name);
}

/* Tensors that the compiler may add to those of a call. */
static bool is_added(const char *name)
{
    static const char *const added[] = {"cu", "index", "count", "relayed", "turns", "summed"};
    for (uint32_t i = 0; i < TG_COUNT(added); i++)
        if (tg_same_name(name, added[i]))
            return true;
    return false;
}

static void check_tensor(struct check *check, const tg_algorithm *algorithm, uint32_t tile)
{
    const tg_tensor *tensor = &algorithm->tensors[tile];
    char what[24];
    struct tg_text text;
    if (tg_tensor_unused(tensor))
        return;
    (void)snprintf(what, sizeof what, "tile %u", tile);
    if (tg_check_identifier(check, TG0103, what, tensor->name))
        for (uint32_t other = 1; other < tile; other++)
            if (tg_same_name(algorithm->tensors[other].name, tensor->name))
                tg_fault(check, TG0105, "rename one", "tiles %u and %u are both named '%s'", other, tile, tensor->name);
    const char *name = tg_tile_text(algorithm, tile, &text);
    if (is_added(tensor->name))
        tg_fault(check, TG0105, "rename it", "tile %u is named '%s', as a tensor that the compiler adds", tile, name);
    check_steady(check, tensor, name);
    check_dtype(check, tensor, name);
    check_flags(check, tensor->flags, name);
    check_drawn(check, tensor, name);
    check_axes(check, tensor, tg_tile_is_transition(algorithm, tile), name);
}

static void check_scalars(struct check *check, const tg_algorithm *algorithm)
{
    const uint32_t n = algorithm->n_scalars;
    if (!tg_scalars_are_listed(algorithm)) {
        tg_fault(check, TG0104, "use TG_COUNT(scalars), or leave both out: the scale alone",
                 "%u scalars%s, expected 1 to %d", n, algorithm->scalars ? "" : " (the array is NULL)", TG_MAX_SCALARS);
        return;
    }
    for (uint32_t i = 0; algorithm->scalars && i < n; i++) {
        const tg_scalar *scalar = &algorithm->scalars[i];
        char what[24];
        struct tg_text text;
        (void)snprintf(what, sizeof what, "scalar %u", i);
        if (tg_check_identifier(check, TG0103, what, scalar->name)) {
            for (uint32_t other = 0; other < i; other++)
                if (tg_same_name(algorithm->scalars[other].name, scalar->name))
                    tg_fault(check, TG0116, "rename one", "scalars %u and %u are both named '%s'", other, i,
                             scalar->name);
            if (i == 0 && !tg_same_name(scalar->name, "scale"))
                tg_fault(check, TG0117, "list {\"scale\", 0} first", "scalar 0 is named '%s', expected 'scale'",
                         scalar->name);
        }
        if (!isfinite(scalar->value))
            tg_fault(check, TG0118, "give a finite default", "%s: its default is not finite",
                     tg_scalar_text(algorithm, i, &text));
    }
}

/* How the tiles are used, as the statements are gone through in order. */
struct usage {
    tg_bits read, written;    /* by any statement */
    tg_bits so_far;           /* written by the statements before */
    tg_bits arriving;         /* outs of carries: they are there before the statement is reached */
    tg_bits final_;           /* final states */
    tg_bits transitions;      /* of carries: what composes segments reads them, no statement */
    uint8_t by[TG_MAX_TILES]; /* statement that writes the tile */
};

static void note_write(struct usage *use, const tg_algorithm *algorithm, tg_operand out, uint32_t s)
{
    const uint32_t tile = TG_OPERAND_TILE(out);
    if (!tg_check_tile_exists(algorithm, out))
        return;
    if (!(use->written & TG_BIT(tile)))
        use->by[tile] = (uint8_t)s;
    use->written |= TG_BIT(tile);
}

static void gather(struct usage *use, const tg_algorithm *algorithm)
{
    for (uint32_t s = 0; s < algorithm->n_body; s++) {
        const tg_stmt *stmt = &algorithm->body[s];
        tg_operand reads[TG_MAX_READS];
        const uint32_t count = tg_stmt_reads(stmt, reads);
        for (uint32_t i = 0; i < count; i++)
            if (tg_check_tile_exists(algorithm, reads[i]))
                use->read |= TG_BIT(TG_OPERAND_TILE(reads[i]));
        note_write(use, algorithm, stmt->out, s);
        if (!tg_stmt_has_final(stmt))
            continue;
        note_write(use, algorithm, stmt->final_, s);
        note_write(use, algorithm, stmt->transition, s);
        note_write(use, algorithm, stmt->behind, s);
        if (tg_check_tile_exists(algorithm, stmt->transition))
            use->transitions |= TG_BIT(TG_OPERAND_TILE(stmt->transition));
        if (stmt->op == TG_STMT_CARRY && tg_check_tile_exists(algorithm, stmt->out))
            use->arriving |= TG_BIT(TG_OPERAND_TILE(stmt->out));
        if (tg_check_tile_exists(algorithm, stmt->final_))
            use->final_ |= TG_BIT(TG_OPERAND_TILE(stmt->final_));
    }
}

static void check_write(struct check *check, const tg_algorithm *algorithm, struct usage *use, tg_operand out)
{
    struct tg_text text;
    const uint32_t tile = TG_OPERAND_TILE(out);
    if (!tg_check_tile_exists(algorithm, out))
        return;
    const char *name = tg_tile_text(algorithm, tile, &text);
    if (algorithm->tensors[tile].flags & TG_IN)
        tg_fault(check, TG0128, "write to another tile", "%s is an input and is written", name);
    if (use->so_far & TG_BIT(tile))
        tg_fault(check, TG0127, "give the second value a tile of its own", "%s is written twice, first at line %d",
                 name, algorithm->body[use->by[tile]].line);
    use->so_far |= TG_BIT(tile);
}

static void check_read(struct check *check, const tg_algorithm *algorithm, const struct usage *use, const tg_stmt *stmt,
                       tg_operand operand)
{
    struct tg_text text;
    const uint32_t tile = TG_OPERAND_TILE(operand);
    if (!tg_check_tile_exists(algorithm, operand))
        return;
    const char *name = tg_tile_text(algorithm, tile, &text);
    const uint32_t flags = algorithm->tensors[tile].flags;
    const bool is_initial = tg_stmt_has_final(stmt) && operand == stmt->init;
    const bool is_number = algorithm->tensors[tile].axes[0] == TG_AXIS_NONE;
    const struct tg_product product = tg_stmt_product(algorithm, stmt);
    const bool is_summed = stmt->op == TG_STMT_CONTRACT && !product.m && !product.n;
    if ((flags & TG_IN) && (flags & TG_OPTIONAL) && !is_initial && !is_number && !is_summed)
        tg_fault(
            check, TG0140, "remove TG_OPTIONAL",
            "%s is optional, but only the initial state of a CARRY or SHIFT, tensors without axes and what a CONTRACT sums over all of its axes may be absent",
            name);
    if (use->transitions & TG_BIT(tile))
        tg_fault(check, TG0146, "leave it to the rows that compose segments", "%s is the transition of a CARRY", name);
    else if ((use->final_ & TG_BIT(tile)) && (flags & TG_OUT) && (flags & TG_OPTIONAL))
        tg_fault(check, TG0139, "read the state that arrives at a chunk, the out of the CARRY; or remove TG_OPTIONAL",
                 "%s is a final state, which nobody may want: expected one that is always there", name);
    else if (!(flags & TG_IN) && (use->written & TG_BIT(tile)) && !((use->so_far | use->arriving) & TG_BIT(tile)))
        tg_fault(check, TG0126, "move the statement that writes it up", "%s is read before it is written at line %d",
                 name, algorithm->body[use->by[tile]].line);
}

static void check_order(struct check *check, const tg_algorithm *algorithm, struct usage *use)
{
    for (uint32_t s = 0; s < algorithm->n_body; s++) {
        const tg_stmt *stmt = &algorithm->body[s];
        check->file = stmt->file ? stmt->file : algorithm->file;
        check->line = stmt->line;
        tg_operand reads[TG_MAX_READS];
        const uint32_t count = tg_stmt_reads(stmt, reads);
        for (uint32_t i = 0; i < count; i++) {
            bool repeated = false; /* one message a tile and statement */
            for (uint32_t j = 0; j < i; j++)
                repeated = repeated || TG_OPERAND_TILE(reads[j]) == TG_OPERAND_TILE(reads[i]);
            if (!repeated)
                check_read(check, algorithm, use, stmt, reads[i]);
        }
        check_write(check, algorithm, use, stmt->out);
        if (tg_stmt_has_final(stmt)) {
            check_write(check, algorithm, use, stmt->final_);
            check_write(check, algorithm, use, stmt->transition);
            check_write(check, algorithm, use, stmt->behind);
        }
        tg_check_stmt(check, algorithm, stmt);
    }
    check->file = algorithm->file;
    check->line = 0;
}

/* Line of the first statement that reads the tile. */
static int first_read(const tg_algorithm *algorithm, uint32_t tile)
{
    for (uint32_t s = 0; s < algorithm->n_body; s++) {
        tg_operand reads[TG_MAX_READS];
        const uint32_t count = tg_stmt_reads(&algorithm->body[s], reads);
        for (uint32_t i = 0; i < count; i++)
            if (TG_OPERAND_TILE(reads[i]) == tile)
                return algorithm->body[s].line;
    }
    return 0;
}

static void check_usage(struct check *check, const tg_algorithm *algorithm, const struct usage *use)
{
    bool has_output = false;
    for (uint32_t tile = 1; tile < algorithm->n_tensors; tile++) {
        struct tg_text text;
        const char *name = tg_tile_text(algorithm, tile, &text);
        const uint32_t flags = algorithm->tensors[tile].flags;
        const bool read = use->read & TG_BIT(tile), written = use->written & TG_BIT(tile);
        has_output = has_output || (flags & TG_OUT);
        check->line = 0;
        if (tg_tensor_unused(&algorithm->tensors[tile])) {
            continue; /* who refers to it has been told */
        } else if (flags & TG_IN) {
            if (!read && !written)
                tg_warn(check, TG0110, "remove it", "%s is an input that no statement reads", name);
        } else if (flags & TG_OUT) {
            if (!written)
                tg_fault(check, TG0111, "add a statement that writes it, or remove TG_OUT",
                         "%s is an output that no statement writes", name);
        } else if (!read && !written) {
            tg_warn(check, TG0110, "remove it", "%s is not used", name);
        } else if (!written) {
            check->line = first_read(algorithm, tile);
            tg_fault(check, TG0112, "add a statement that writes it, or make it TG_IN",
                     "%s is read, but no statement writes it", name);
        } else if (!read && !((use->arriving | use->transitions) & TG_BIT(tile))) {
            check->line = algorithm->body[use->by[tile]].line;
            tg_warn(check, TG0113, "remove the statement, or make it TG_OUT",
                    "%s is written, but no statement reads it", name);
        }
    }
    check->line = 0;
    if (!has_output)
        tg_fault(check, TG0114, "add TG_OUT to a tensor", "no tensor is TG_OUT");
}

void tg_check_algorithm(struct check *check, const tg_algorithm *algorithm)
{
    check->file = NULL;
    check->line = 0;
    if (!algorithm) {
        tg_fault(check, TG0101, "pass a tg_algorithm", "the algorithm is NULL");
        return;
    }
    if (!tg_check_header(check, TG0102, "algorithm", algorithm->struct_size, sizeof *algorithm, algorithm->version))
        return;
    check->file = algorithm->file;
    tg_check_name(check, TG0103, "algorithm", algorithm->name);

    const bool tensors_ok = algorithm->tensors && algorithm->n_tensors >= 2 && algorithm->n_tensors <= TG_MAX_TILES;
    const bool body_ok = algorithm->body && algorithm->n_body >= 1 && algorithm->n_body <= TG_MAX_BODY;
    if (!tensors_ok)
        tg_fault(check, TG0104, "tile 0 is reserved: number them from 1, and count it",
                 "%u tensors%s, expected 2 to %d", algorithm->n_tensors,
                 algorithm->tensors ? "" : " (the array is NULL)", TG_MAX_TILES);
    if (!body_ok)
        tg_fault(check, TG0104, "use TG_COUNT(body)", "%u statements%s, expected 1 to %d", algorithm->n_body,
                 algorithm->body ? "" : " (the array is NULL)", TG_MAX_BODY);
    for (uint32_t tile = 1; tensors_ok && tile < algorithm->n_tensors; tile++)
        check_tensor(check, algorithm, tile);
    check_scalars(check, algorithm);
    if (!tensors_ok || !body_ok)
        return;
    struct usage use = {0};
    gather(&use, algorithm);
    check_order(check, algorithm, &use);
    check_usage(check, algorithm, &use);
}
