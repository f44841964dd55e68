/* dsl/print.c - an algorithm as equations, one line a statement.
 *
 * Indices: t token, i and j position of the query and of the key/value row in the chunk, k chunk.
 * Parentheses are as few as keep the order of evaluation. Prints declarations that are wrong, too:
 * a message about line 40 is easier to understand next to what line 40 became. */
#include "dsl/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void tg_printf(const tg_writer *writer, const char *format, ...)
{
    if (!writer || !writer->write)
        return;
    char brief[512];
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    const int length = vsnprintf(brief, sizeof brief, format, values);
    if (length >= 0 && (size_t)length < sizeof brief) {
        writer->write(writer->user, brief, (size_t)length);
    } else if (length >= 0) {
        char *whole = malloc((size_t)length + 1);
        if (whole)
            (void)vsnprintf(whole, (size_t)length + 1, format, again);
        writer->write(writer->user, whole ? whole : brief, whole ? (size_t)length : sizeof brief - 1);
        free(whole);
    }
    va_end(again);
    va_end(values);
}

const char *tg_dim_name(uint32_t dim)
{
    static const char *const names[TG_N_DIMS] = {
        [TG_AXIS_NONE] = "none", [TG_T] = "T",         [TG_CHUNK] = "chunk",       [TG_DQK] = "dqk", [TG_DHV] = "dhv",
        [TG_PARTS] = "parts",    [TG_CUTS] = "cuts",   [TG_POSITION] = "position", [TG_SEG] = "seg", [TG_LQ] = "Lhq",
        [TG_LKV] = "Lkv",        [TG_BATCH] = "batch", [TG_MEMBER] = "member",
    };
    return dim < TG_N_DIMS ? names[dim] : "?";
}

/* What is printed, and where to. */
struct printer {
    const tg_algorithm *algorithm;
    const tg_writer *writer;
};

static const char *index_name(uint32_t dim)
{
    switch (dim) {
    case TG_T:
        return "t";
    case TG_CHUNK:
        return "k";
    case TG_LQ:
        return "i";
    case TG_LKV:
        return "j";
    default:
        return tg_dim_name(dim);
    }
}

static void print_tile(const struct printer *p, uint32_t tile)
{
    struct tg_text text;
    tg_printf(p->writer, "%s", tg_tile_text(p->algorithm, tile, &text));
}

/* "q[i,dqk]". `from` is printed as `to`: the running index of a scan, the chunk after this one. */
static void print_indexed(const struct printer *p, tg_operand operand, uint32_t from, const char *to)
{
    uint8_t dims[TG_MAX_AXES];
    const uint32_t count = tg_operand_dims(p->algorithm, operand, dims);
    print_tile(p, TG_OPERAND_TILE(operand));
    for (uint32_t i = 0; i < count; i++)
        tg_printf(p->writer, "%s%s", i ? "," : "[", from != TG_AXIS_NONE && dims[i] == from ? to : index_name(dims[i]));
    if (count)
        tg_printf(p->writer, "]");
}

static void print_operand(const struct printer *p, tg_operand operand)
{
    print_indexed(p, operand, TG_AXIS_NONE, "");
}

/* ---- expressions ---- */

enum precedence { SUM = 1, PRODUCT, SIGN, POWER, ATOM };

struct notation {
    const char *text;
    enum precedence precedence;
};

static const struct notation notations[TG_X_N_OPS] = {
    [TG_X_ADD] = {" + ", SUM},
    [TG_X_SUB] = {" - ", SUM},
    [TG_X_MUL] = {" * ", PRODUCT},
    [TG_X_DIV] = {" / ", PRODUCT},
    [TG_X_MAX] = {"max", ATOM},
    [TG_X_MIN] = {"min", ATOM},
    [TG_X_NEG] = {"-", SIGN},
    [TG_X_ABS] = {"abs", ATOM},
    [TG_X_EXP2] = {"2^", POWER},
    [TG_X_LOG2] = {"log2", ATOM},
    [TG_X_LOGSIG2] = {"logsig2", ATOM},
    [TG_X_SIGMOID] = {"sigmoid", ATOM},
    [TG_X_SOFTPLUS] = {"softplus", ATOM},
    [TG_X_STEP] = {"step", ATOM},
    [TG_X_CAUSAL] = {"causal", ATOM},
    [TG_X_BEFORE] = {"before", ATOM},
};

/* First code of the value whose last code is `last`; -1 when the codes before do not make one. */
static int value_start(const tg_stmt *stmt, int last)
{
    int missing = 1;
    for (int i = last; i >= 0; i--) {
        const int arity = tg_expr_arity(stmt->expr[i].op);
        if (arity < 0)
            return -1;
        missing += arity - 1;
        if (missing == 0)
            return i;
    }
    return -1;
}

static void print_value(const struct printer *p, const tg_stmt *stmt, int last, enum precedence least);

static void print_leaf(const struct printer *p, const tg_x *x, enum precedence least)
{
    struct tg_text text;
    if (x->op == TG_X_TILE)
        print_operand(p, x->operand);
    else if (x->op == TG_X_SCALAR)
        tg_printf(p->writer, "%s", tg_scalar_text(p->algorithm, x->operand, &text));
    else if (x->op == TG_X_SIZE)
        tg_printf(p->writer, "|%s|", tg_dim_name(x->operand));
    else if (x->number < 0 && least > SUM)
        tg_printf(p->writer, "(%.9g)", (double)x->number);
    else
        tg_printf(p->writer, "%.9g", (double)x->number);
}

/* a + b, max(a, b). The right side keeps its parentheses: a + (b + c) rounds differently, and
 * a - -b reads badly. */
static void print_binary(const struct printer *p, const tg_stmt *stmt, int last)
{
    const struct notation *notation = &notations[stmt->expr[last].op];
    const int middle = value_start(stmt, last - 1) - 1;
    if (notation->precedence == ATOM) {
        tg_printf(p->writer, "%s(", notation->text);
        print_value(p, stmt, middle, SUM);
        tg_printf(p->writer, ", ");
        print_value(p, stmt, last - 1, SUM);
        tg_printf(p->writer, ")");
        return;
    }
    const bool negated = stmt->expr[last - 1].op == TG_X_NEG;
    const enum precedence above = notation->precedence == SUM && !negated ? PRODUCT : POWER;
    print_value(p, stmt, middle, notation->precedence);
    tg_printf(p->writer, "%s", notation->text);
    print_value(p, stmt, last - 1, above);
}

static void print_unary(const struct printer *p, const tg_stmt *stmt, int last)
{
    const struct notation *notation = &notations[stmt->expr[last].op];
    tg_printf(p->writer, "%s%s", notation->text, notation->precedence == ATOM ? "(" : "");
    print_value(p, stmt, last - 1, notation->precedence == ATOM ? SUM : notation->precedence == SIGN ? POWER : ATOM);
    if (notation->precedence == ATOM)
        tg_printf(p->writer, ")");
}

/* The value that ends at `last`, in parentheses when it binds weaker than `least`. */
static void print_value(const struct printer *p, const tg_stmt *stmt, int last, enum precedence least)
{
    const tg_x *x = &stmt->expr[last];
    const int arity = tg_expr_arity(x->op);
    if (arity == 0) {
        print_leaf(p, x, least);
        return;
    }
    const bool parentheses = notations[x->op].precedence < least;
    tg_printf(p->writer, "%s", parentheses ? "(" : "");
    if (arity == 1)
        print_unary(p, stmt, last);
    else
        print_binary(p, stmt, last);
    tg_printf(p->writer, "%s", parentheses ? ")" : "");
}

static void print_expr(const struct printer *p, const tg_stmt *stmt)
{
    const int length = (int)tg_expr_length(stmt);
    if (length == 0 || value_start(stmt, length - 1) != 0)
        tg_printf(p->writer, "(malformed expression)");
    else
        print_value(p, stmt, length - 1, SUM);
}

/* ---- statements ---- */

static void print_sum(const struct printer *p, const tg_stmt *stmt, uint32_t dims)
{
    tg_printf(p->writer, stmt->flags & TG_MAXIMUM ? "max" : "sum");
    for (uint32_t dim = 0; dim < TG_N_DIMS; dim++)
        if (dims & 1u << dim)
            tg_printf(p->writer, "_%s", index_name(dim));
    tg_printf(p->writer, " ");
}

/* sum_j kw[j,dqk] v[j,dhv], or what there is of it */
static void print_product(const struct printer *p, const tg_stmt *stmt)
{
    const uint32_t summed = tg_stmt_product(p->algorithm, stmt).k;
    if (stmt->b || summed)
        print_sum(p, stmt, summed);
    print_operand(p, stmt->a);
    if (!stmt->b)
        return;
    tg_printf(p->writer, " ");
    print_operand(p, stmt->b);
    if (!tg_stmt_decays(stmt))
        return;
    tg_printf(p->writer, " 2^(");
    print_operand(p, stmt->decay);
    tg_printf(p->writer, " - ");
    print_operand(p, stmt->since);
    tg_printf(p->writer, ") for i %s j", stmt->flags & TG_EXCLUSIVE ? ">" : ">=");
}

static void print_carry(const struct printer *p, const tg_stmt *stmt)
{
    const bool reverse = stmt->flags & TG_REVERSE;
    print_indexed(p, stmt->out, TG_CHUNK, reverse ? "k-1" : "k+1");
    tg_printf(p->writer, " = ");
    if (stmt->decay) {
        tg_printf(p->writer, "2^");
        print_operand(p, stmt->decay);
        tg_printf(p->writer, " ");
    }
    print_operand(p, stmt->out);
    tg_printf(p->writer, " + ");
    print_product(p, stmt);
    tg_printf(p->writer, "\n    ");
    print_indexed(p, stmt->out, TG_CHUNK, reverse ? "last" : "first");
    tg_printf(p->writer, " = ");
    if (stmt->init)
        print_operand(p, stmt->init);
    else
        tg_printf(p->writer, "0");
    if (stmt->final_) {
        tg_printf(p->writer, ", ");
        print_operand(p, stmt->final_);
        tg_printf(p->writer, " = ");
        print_indexed(p, stmt->out, TG_CHUNK, reverse ? "first-1" : "last+1");
    }
    if (stmt->transition) {
        tg_printf(p->writer, ", of a segment its transition ");
        print_operand(p, stmt->transition);
    }
    if (stmt->transposed) {
        tg_printf(p->writer, ", or that of ");
        print_operand(p, stmt->transposed);
        tg_printf(p->writer, ", transposed");
    }
    if (stmt->same) {
        tg_printf(p->writer, ", which is ");
        print_operand(p, stmt->same);
        tg_printf(p->writer, " once more");
    }
    if (stmt->behind) {
        tg_printf(p->writer, ", ");
        print_operand(p, stmt->behind);
        tg_printf(p->writer, " = ");
        print_indexed(p, stmt->out, TG_CHUNK, reverse ? "k-1" : "k+1");
    }
}

static void print_scan(const struct printer *p, const tg_stmt *stmt)
{
    const bool has_t = tg_tile_has_t(p->algorithm, TG_OPERAND_TILE(stmt->a));
    const uint32_t along = has_t ? TG_OPERAND_AT(stmt->a) : TG_CHUNK;
    const char *than = stmt->flags & TG_REVERSE ? ">" : "<";
    tg_printf(p->writer, "%s_{s%s%s%s} ", stmt->flags & TG_MAXIMUM ? "max" : "sum", than,
              stmt->flags & TG_EXCLUSIVE ? "" : "=", index_name(along));
    print_indexed(p, stmt->a, along, "s");
}

/* x[j-1,dhv] with the states before and behind the sequence. */
static void print_shift(const struct printer *p, const tg_stmt *stmt)
{
    const uint32_t at = TG_OPERAND_AT(stmt->out);
    const bool reverse = stmt->flags & TG_REVERSE;
    if (stmt->a)
        print_indexed(p, stmt->a, at, at == TG_LQ ? (reverse ? "i+1" : "i-1") : reverse ? "j+1" : "j-1");
    else
        tg_printf(p->writer, "0");
    tg_printf(p->writer, reverse ? ", behind the last token " : ", before the first token ");
    if (stmt->init)
        print_operand(p, stmt->init);
    else
        tg_printf(p->writer, "0");
    if (!stmt->final_)
        return;
    tg_printf(p->writer, "; ");
    print_operand(p, stmt->final_);
    tg_printf(p->writer, reverse ? " is of the first token" : " is of the last token");
}

static void print_stmt(const struct printer *p, const tg_stmt *stmt)
{
    tg_printf(p->writer, "  ");
    if (stmt->op == TG_STMT_CARRY) {
        print_carry(p, stmt);
        tg_printf(p->writer, "\n");
        return;
    }
    print_operand(p, stmt->out);
    tg_printf(p->writer, " = ");
    switch (stmt->op) {
    case TG_STMT_MAP:
        print_expr(p, stmt);
        break;
    case TG_STMT_SCAN:
        print_scan(p, stmt);
        break;
    case TG_STMT_TOTAL:
        print_sum(p, stmt, tg_stmt_along(p->algorithm, stmt));
        print_operand(p, stmt->a);
        break;
    case TG_STMT_SOLVE:
        tg_printf(p->writer, "(I + strictly lower ");
        print_operand(p, stmt->a);
        tg_printf(p->writer, ")^-1");
        break;
    case TG_STMT_SHIFT:
        print_shift(p, stmt);
        break;
    case TG_STMT_CONTRACT:
        if (stmt->init) {
            print_operand(p, stmt->init);
            tg_printf(p->writer, " + ");
        }
        print_product(p, stmt);
        break;
    default:
        tg_printf(p->writer, "(unknown statement %u)", stmt->op);
        break;
    }
    tg_printf(p->writer, "\n");
}

/* What not every sequence, or not every head, has its own of. */
static const char *shared_by(uint8_t flags)
{
    switch (flags & (TG_NO_BATCH | TG_SHARED)) {
    case TG_NO_BATCH:
        return " (of a head)";
    case TG_SHARED:
        return " (of a group)";
    case TG_NO_BATCH | TG_SHARED:
        return " (of a group, no batch)";
    default:
        return "";
    }
}

/* The tensors of the caller: "  in  q[t,dqk] io, S0[dqk,dhv] f32?" */
static void print_tensors(const struct printer *p, const char *title, uint8_t flag)
{
    const char *separator = title;
    for (uint32_t tile = 1; tile < p->algorithm->n_tensors && tile < TG_MAX_TILES; tile++) {
        const tg_tensor *tensor = &p->algorithm->tensors[tile];
        if (!(tensor->flags & flag))
            continue;
        tg_printf(p->writer, "%s", separator);
        print_operand(p, (tg_operand)tile);
        const tg_dtype dtype = tensor->dtype ? (tg_dtype)tensor->dtype : TG_F32;
        tg_printf(p->writer, " %s%s%s", tg_dtype_name(dtype), tensor->flags & TG_OPTIONAL ? "?" : "",
                  shared_by(tensor->flags));
        separator = ", ";
    }
    if (separator != title)
        tg_printf(p->writer, "\n");
}

/* "  with scale = 1/sqrt(dqk), eps = 1e-06"; nothing where there is only the scale */
static void print_scalars(const struct printer *p)
{
    const uint32_t n = p->algorithm->scalars ? tg_scalar_count(p->algorithm) : 0;
    for (uint32_t i = 0; i < n; i++) {
        struct tg_text text;
        tg_printf(p->writer, "%s%s = ", i ? ", " : "  with ", tg_scalar_text(p->algorithm, i, &text));
        if (i == 0 && p->algorithm->scalars[i].value == 0)
            tg_printf(p->writer, "1/sqrt(dqk)");
        else
            tg_printf(p->writer, "%g", (double)p->algorithm->scalars[i].value);
    }
    if (n)
        tg_printf(p->writer, "\n");
}

void tg_algorithm_print(const tg_algorithm *algorithm, const tg_writer *writer)
{
    if (!algorithm || algorithm->struct_size != sizeof *algorithm) {
        tg_printf(writer, "(no algorithm of this version)\n");
        return;
    }
    const struct printer p = {algorithm, writer};
    const bool named = tg_is_name(algorithm->name, TG_MAX_NAME, true);
    tg_printf(writer, "%s", named ? algorithm->name : "(no name)");
    tg_printf(writer, "%s%s\n", algorithm->title ? ": " : "", algorithm->title ? algorithm->title : "");
    if (!algorithm->tensors || !algorithm->body) {
        tg_printf(writer, "  (no %s)\n", algorithm->tensors ? "statements" : "tensors");
        return;
    }
    print_tensors(&p, "  in   ", TG_IN);
    print_tensors(&p, "  out  ", TG_OUT);
    print_scalars(&p);
    for (uint32_t s = 0; s < algorithm->n_body && s < TG_MAX_BODY; s++)
        print_stmt(&p, &algorithm->body[s]);
}
